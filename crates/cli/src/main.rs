//! The `stockade` program: what was typed → a session → an exit code.

#![deny(clippy::print_stdout, reason = "terminal::print does not panic")]
#![deny(clippy::print_stderr, reason = "tell! does not panic")]

/// What `eprintln!` is for.
macro_rules! tell {
    ($($text:tt)*) => {
        stockade_sys::message::tell(&(format!($($text)*) + "\n"))
    };
}

mod accept;
mod advice;
mod allow;
mod args;
mod auth;
mod caches;
mod completions;
mod config;
mod context;
mod denials;
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
mod proxy;
mod question;
mod receipt;
mod reload;
mod run;
mod session_id;
mod settings;
mod shim;
mod suggest;
mod terminal;
mod trust;
mod verify;
mod wall_config;
mod watch;

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
    if let Some(name) = of_the_user(&arguments.command)
        && inside::proven()
    {
        let what = format!("`stockade {name}` works outside of a session only");
        return exit::failed(&exit::refused(what, "ask the user to run it"));
    }
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Accept(arguments) => accept::accept(&arguments),
        Command::Allow(arguments) => allow::allow(&arguments),
        Command::Auth(command) => auth::auth(&command),
        Command::Caches(arguments) => caches::caches(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Config(command) => config::config(&command),
        Command::Denials(arguments) => denials::denials(&arguments),
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
        Command::Question(arguments) => question::question(&arguments),
        Command::Reload(arguments) => reload::reload(&arguments),
        Command::Shim(command) => shim::shim(&command),
        Command::Suggest(arguments) => suggest::suggest(&arguments),
        Command::Trust(arguments) => trust::trust(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Watch(arguments) => watch::watch(&arguments),
        Command::VerifyProbe => verify::probe(),
        Command::Agent(words) => match args::agent(&words) {
            Ok(arguments) => run::run(&arguments),
            Err(message) => return exit::usage(&message),
        },
    };
    result.unwrap_or_else(|error| exit::failed(&error))
}

/// The name of a command about the user's sessions, files or machine. Of these, a session sees nothing
/// that it could tell.
fn of_the_user(command: &Command) -> Option<&'static str> {
    match command {
        Command::Accept(_) => Some("accept"),
        Command::Allow(_) => Some("allow"),
        Command::Caches(_) => Some("caches"),
        Command::Doctor(_) => Some("doctor"),
        Command::Init(_) => Some("init"),
        Command::Log(_) => Some("log"),
        Command::Ps(_) => Some("ps"),
        Command::Reload(_) => Some("reload"),
        Command::Suggest(_) => Some("suggest"),
        Command::Trust(_) => Some("trust"),
        Command::Verify(_) => Some("verify"),
        Command::Watch(_) => Some("watch"),
        _ => None,
    }
}
