//! The `stockade` program: what was typed → a session → an exit code.

#![deny(clippy::print_stdout, reason = "terminal::print does not panic")]

mod accept;
mod advice;
mod args;
mod auth;
mod caches;
mod completions;
mod config;
mod context;
mod doctor;
mod exit;
mod explain;
mod guard;
#[cfg_attr(sabotage, path = "../../../sabotage/src/hooks.rs")]
mod hooks;
mod import;
mod init;
mod inside;
mod log;
mod login;
mod man;
mod plan;
mod receipt;
mod reload;
mod run;
mod session_id;
mod settings;
mod shim;
mod terminal;
mod trust;
mod verify;
mod wall_config;

use std::process::ExitCode;

use args::Command;

/// musl's own gives memory back to the kernel at once and asks for it again: 300 mappings in a session.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    // Process 1 inside the sandbox is this same program. It comes first: it is on the way
    // of every start and must not know anything of the rest.
    if let Some(inner) = stockade_wall::Inner::detect() {
        inner.run();
    }
    // By an agent's name, nothing on the line is ours.
    if let Some(name) = shim::invoked_as() {
        return shim::run(&name).unwrap_or_else(|error| exit::failed(&error));
    }
    let arguments = match args::parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(message) => return exit::usage(&message),
    };
    if let Some(workspace) = arguments.workspace {
        context::choose_workspace(workspace);
    }
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Accept(arguments) => accept::accept(&arguments),
        Command::Auth(command) => auth::auth(&command),
        Command::Caches(arguments) => caches::caches(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Config(command) => config::config(&command),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Guard(command) => guard::guard(&command),
        Command::Import(arguments) => import::import(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Inside(arguments) => inside::inside(&arguments),
        Command::Log(arguments) => log::log(&arguments),
        Command::Ps(arguments) => log::ps(&arguments),
        Command::Man(arguments) => man::man(&arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Reload(arguments) => reload::reload(&arguments),
        Command::Shim(command) => shim::shim(&command),
        Command::Trust(arguments) => trust::trust(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::VerifyProbe => verify::probe(),
        Command::Agent(words) => match args::agent(&words) {
            Ok(arguments) => run::run(&arguments),
            Err(message) => return exit::usage(&message),
        },
    };
    result.unwrap_or_else(|error| exit::failed(&error))
}
