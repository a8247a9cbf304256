//! `walled [--plan] [--workspace DIR] [--resolv-conf TEXT] -- PROGRAM [ARGUMENT]…`
//!
//! Runs a program behind the wall alone, without a jail: the network stays the caller's.
//! For the tests of this crate, and to try the wall by hand; it is not installed.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode, thread};

use stockade_sys::namespace::{Identity, enter_user_namespace};
use stockade_wall::{
    Bubblewrap, CommandLine, Config, Error, FAILED, Facts, Inner, Names, Network, Outcome, Plan,
    Signals,
};

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
        eprintln!(
            "usage: walled [--plan] [--workspace DIR] [--resolv-conf TEXT] -- PROGRAM [ARGUMENT]…"
        );
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
        match arguments.next()?.to_str()? {
            "--plan" => only_plan = true,
            "--workspace" => workspace = Some(arguments.next()?.into()),
            "--resolv-conf" => {
                config.network = Network::Jail {
                    resolv_conf: arguments.next()?.into_string().ok()?,
                    names: Names::InHosts,
                };
            }
            "--" => break,
            _ => return None,
        }
    }
    Some(Call {
        only_plan,
        workspace,
        config,
        command: CommandLine {
            program: arguments.next()?,
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
    let launch = plan.prepare(call.command, bubblewrap, signals)?;
    // As with the jail, the sandbox is started by a thread that outlives it.
    thread::scope(|scope| {
        let (started, wait) = std::sync::mpsc::channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let _ = started.send(launch.spawn());
            let _ = finished.recv();
        });
        let outcome = match wait.recv() {
            Ok(running) => running?.supervise(),
            Err(_) => unreachable!("the thread sends before it ends"),
        };
        drop(finish);
        outcome
    })
}
