//! Real servers on hosts of the world: programs of the machine.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};

use stockade_world::{Host, PATIENCE, eventually};

/// Where every distribution keeps its programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that serves on a host. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts `program` on `host` and waits until it listens on `port`, TCP.
    #[track_caller]
    pub(crate) fn start(host: &Host, port: u16, program: &str, arguments: &[&str]) -> Self {
        let log = format!("/tmp/{program}.log", program = program.replace('/', "-"));
        let output = fs::File::create(&log).expect("a log file");
        let mut command = Command::new("env");
        command
            .args(["-i", &format!("PATH={PATH}"), "HOME=/nonexistent", program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second descriptor"))
            .stderr(output);
        let mut daemon = Self(host.enter(|| command.spawn()).expect("start the server"));
        let listens = eventually(&format!("{program} on port {port}"), PATIENCE, || {
            daemon.has_ended() || host.enter(|| connects(port))
        });
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(!daemon.has_ended(), "{program} ended: {}", said());
        listens.unwrap_or_else(|error| panic!("{error}\n{program} said: {}", said()));
        daemon
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

fn connects(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
