//! `walled [OPTION]… -- PROGRAM [ARGUMENT]…`
//!
//! Runs a program behind the wall alone, without a jail: the network stays the caller's.
//! For the tests of this crate, and to try the wall by hand; it is not installed.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode, thread};

use stockade_sys::namespace::{Identity, enter_user_namespace};
use stockade_wall::{
    Asked, Bubblewrap, CommandLine, Config, Error, FAILED, Facts, Hardening, Inner, Names, Nested,
    Network, Outcome, PathRequest, Plan, Root, Signals, Watch,
};

/// Who asks for everything here.
const BY: &str = "the command line";

struct Call {
    only_plan: bool,
    workspace: Option<PathBuf>,
    config: Config,
    command: CommandLine,
}

fn main() -> ExitCode {
    if let Some(inner) = Inner::detect() {
        inner.run();
    }
    let Some(call) = parse(env::args_os().skip(1)) else {
        eprintln!("usage: walled [OPTION]… -- PROGRAM [ARGUMENT]…");
        return FAILED.into();
    };
    // As the owner of a jail does.
    if let Err(error) = enter_user_namespace(Identity::current()) {
        eprintln!("walled: {error}");
        return FAILED.into();
    }
    match run(call) {
        Ok(outcome) => {
            if let Some(complaint) = outcome.complaint() {
                eprintln!("walled: {complaint}");
            }
            outcome.exit_code().into()
        }
        Err(error) => {
            eprintln!("walled: {error}");
            FAILED.into()
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Call> {
    let mut only_plan = false;
    let mut workspace = None;
    let mut config = Config::default();
    loop {
        let option = arguments.next()?;
        let mut text = || arguments.next()?.into_string().ok();
        let number = |text: String| Some(Asked::new(text.parse::<u64>().ok()?, BY));
        match option.to_str()? {
            "--plan" => only_plan = true,
            "--workspace" => workspace = Some(text()?.into()),
            "--resolv-conf" => {
                config.network = Network::Jail {
                    resolv_conf: text()?,
                    names: Names::AtServer,
                };
            }
            "--no-network" => config.network = Network::None,
            "--all" => config.root = Root::All,
            "--read" => config.read.push(PathRequest::by_user(text()?)),
            "--write" => config.write.push(PathRequest::by_user(text()?)),
            "--hide" => config.hide.push(PathRequest::by_user(text()?)),
            "--pass" => config.pass.push(Asked::new(text()?, BY)),
            "--set" => {
                let text = text()?;
                let (name, value) = text.split_once('=')?;
                config.set.push((name.into(), Asked::new(value, BY)));
            }
            "--github" => config.forge.github = true,
            "--gitlab" => config.forge.gitlab = true,
            "--forge-host" => config.forge.hosts.push(text()?),
            "--agent" => config.agent.is_known = true,
            "--state" => config.agent.state.push(PathRequest::by_profile(text()?)),
            "--strict" => config.hardening = Hardening::Strict,
            "--nested" => config.nested = Nested::Required(BY.to_owned()),
            "--processes" => config.limits.processes = number(text()?),
            "--memory" => config.limits.memory = number(text()?),
            "--open-files" => config.limits.open_files = number(text()?),
            "--tmpfs" => config.limits.tmpfs = number(text()?),
            "--cpu-time" => config.limits.cpu_time = number(text()?),
            "--" => break,
            _ => return None,
        }
    }
    let program = arguments.next()?;
    if config.agent.is_known {
        config.agent.program = Some(program.clone());
    }
    Some(Call {
        only_plan,
        workspace,
        config,
        command: CommandLine {
            program,
            arguments: arguments.collect(),
        },
    })
}

fn run(call: Call) -> Result<Outcome, Error> {
    let bubblewrap = Bubblewrap::find()?;
    let signals = Signals::block()?;
    let facts = Facts::gather(&call.config, call.workspace.as_deref())?;
    let plan = Plan::build(&call.config, &facts)?;
    if call.only_plan {
        print!("{plan}");
        return Ok(Outcome::Exited(0));
    }
    for note in &plan.notes {
        eprintln!("walled: note: {note}");
    }
    let watch = Watch::begin(&call.config, &facts, &plan, None)?;
    let launch = plan.prepare(call.command, bubblewrap, signals)?;
    // As with the jail, the sandbox is started by a thread that outlives it.
    let outcome = thread::scope(|scope| {
        let (started, wait) = std::sync::mpsc::channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let _ = started.send(launch.spawn());
            let _ = finished.recv();
        });
        let outcome = match wait.recv() {
            Ok(running) => running.and_then(|running| {
                if env::var_os("WALLED_LAYERS").is_some() {
                    for layer in running.layers() {
                        let name = layer.protection.name();
                        eprintln!("walled: layer: {name}: {}", layer.state);
                    }
                }
                running.supervise()
            }),
            Err(_) => unreachable!("the thread sends before it ends"),
        };
        drop(finish);
        outcome
    });
    for finding in watch.end(None, &|| false) {
        eprintln!("walled: found: {finding}");
    }
    outcome
}
