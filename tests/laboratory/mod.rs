//! A laboratory: servers of EPICS at private addresses, a motion controller with its default
//! password, and the usual clients. `docs/laboratory.md` is what a person types there.

mod epics;
mod page;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::Mutex,
    time::Duration,
};

use stockade_world::{Builder, Command, Host, HostSpec, World, is_inside, test};

use crate::{feature::daemon::Daemon, support::standard};

/// Where the environment with the clients is on the laptop.
const PLACE: &str = "/home/dev/envs/epics";
const PYTHON: &str = "/home/dev/envs/epics/bin/python";
const PACKAGES: [&str; 3] = ["caproto", "pyepics", "p4p"];

/// Clients of EPICS wait for some seconds before they ask again.
const LIMIT: Duration = Duration::from_secs(60);

/// A server of Channel Access: a number that can be set, and one that counts.
const IOC: &str = "
from caproto.server import PVGroup, pvproperty, run

class Ioc(PVGroup):
    current = pvproperty(value=3.5, name='CURRENT')
    ticks = pvproperty(value=0, name='TICKS')

    @ticks.scan(period=0.1)
    async def ticks(self, instance, async_lib):
        await instance.write(instance.value + 1)

run(Ioc(prefix='LAB:').pvdb, interfaces=['0.0.0.0'])
";

/// A server of pvAccess with a number that can be set. Its argument is the number's name.
const PVA: &str = "
import sys, time
from p4p.nt import NTScalar
from p4p.server import Server
from p4p.server.thread import SharedPV

number = SharedPV(nt=NTScalar('d'), initial=1.5)

@number.put
def put(number, operation):
    number.post(operation.value())
    operation.done()

with Server(providers=[{sys.argv[1]: number}]):
    while True:
        time.sleep(1)
";

/// A gateway of pvAccess: its clients are those of the laboratory, its server is one at the port
/// that searches go to.
const GATEWAY: &str = r#"{
    "version": 2,
    "clients": [{"name": "client", "provider": "pva", "addrlist": "172.23.1.3", "autoaddrlist": false}],
    "servers": [{"name": "server", "clients": ["client"], "autoaddrlist": false}]
}"#;

/// Runs a test in the laboratory, if its clients can be installed.
fn in_laboratory(work: impl FnOnce(&World)) {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools/epics");
    if !is_inside()
        && let Err(why) = install(&environment)
    {
        // Past libtest, which would keep it to itself.
        let _ = writeln!(io::stderr(), "skipped: pip has no clients of EPICS: {why}");
        return;
    }
    let builder: Builder = standard()
        .directory(PLACE, environment)
        .host(
            HostSpec::new("ioc")
                .at("192.168.10.31")
                .named("ioc1.lab.example")
                .on_lan(),
        )
        .host(HostSpec::new("neighbour").at("192.168.10.32").on_lan())
        .host(HostSpec::new("gateway").at("192.168.10.35").on_lan())
        .host(HostSpec::new("pmac").at("192.168.10.40").on_lan())
        .host(HostSpec::new("far").at("172.23.1.3"));
    test(&builder.limit(5 * LIMIT), |world| {
        for (name, text) in [("ioc.py", IOC), ("pva.py", PVA), ("gateway.json", GATEWAY)] {
            fs::write(file(name), text).expect("a file");
        }
        work(world);
    });
}

fn file(name: &str) -> PathBuf {
    Path::new("/tmp").join(name)
}

fn start_ioc(host: &Host) -> Daemon {
    Daemon::start(host, 5064, PYTHON, &["/tmp/ioc.py"])
}

fn start_pva(host: &Host, name: &str) -> Daemon {
    Daemon::start(host, 5075, PYTHON, &["/tmp/pva.py", name])
}

fn start_gateway(host: &Host) -> Daemon {
    Daemon::start(host, 5075, PYTHON, &["-m", "p4p.gw", "/tmp/gateway.json"])
}

/// `stockade run OPTIONS -- COMMAND` in a shell, with the environment active.
fn inside(world: &World, options: &str, command: &str) -> Command {
    typed(world, &format!("stockade run {options} -- {command}"))
}

fn typed(world: &World, line: &str) -> Command {
    let line = format!(". {PLACE}/bin/activate; {line}");
    let shell = world.laptop().command("sh").args(["-c", &line]);
    shell.limit(LIMIT)
}

/// As a person does once, outside of all worlds. Fails with pip's own word if its registry is out of
/// reach, or has none for this machine.
fn install(environment: &Path) -> Result<(), String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    if environment.join("done").exists() {
        return Ok(());
    }
    let make = process::Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--clear"])
        .arg(environment)
        .status();
    assert!(
        make.is_ok_and(|status| status.success()),
        "python3-venv (test.sh installs it)"
    );
    let pip = process::Command::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--retries=1", "--only-binary=:all:"])
        .args(PACKAGES)
        .output()
        .expect("pip starts");
    let complaint = String::from_utf8_lossy(&pip.stderr);
    let is_unreachable = complaint.contains("onnection") || complaint.contains("No matching");
    assert!(pip.status.success() || is_unreachable, "{complaint}");
    if !pip.status.success() {
        return Err(complaint.lines().last().unwrap_or_default().to_owned());
    }
    move_programs(environment);
    fs::write(environment.join("done"), "").expect("a mark");
    Ok(())
}

/// Programs name their interpreter by where it was installed. In the world it is elsewhere.
fn move_programs(environment: &Path) {
    let was = environment.display().to_string();
    for program in fs::read_dir(environment.join("bin")).expect("programs") {
        let path = program.expect("a program").path();
        // Not the interpreter itself.
        if let Ok(text) = fs::read_to_string(&path)
            && text.contains(&was)
        {
            fs::write(&path, text.replace(&was, PLACE)).expect("a program");
        }
    }
}
