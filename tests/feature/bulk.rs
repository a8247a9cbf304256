//! Much data, and data that nobody takes.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use stockade_world::{PATIENCE, Running, Stream, World, test};

use super::daemon::Daemon;
use super::place::Place;
use crate::support::standard;

const SERVER: &str = include_str!("probes/bulk_server.py");
const CLIENT: &str = include_str!("probes/bulk_client.py");

#[test]
fn a_gibibyte_arrives_whole_each_way_while_two_hundred_connections_come_and_go() {
    test(&standard(), |world| {
        let web = world.host("web");
        let _server = Daemon::start(web, 9000, "python3", &["-I", "-c", SERVER, "9000"]);
        let size = (1_u64 << 30).to_string();
        let output = Place::Inside(&[])
            .python(world.laptop(), CLIENT)
            .args([&web.v4().to_string(), "9000", &size, "200"])
            .limit(Duration::from_secs(200))
            .run()
            .expect("the client ends")
            .expect_success();
        let stdout = output.stdout();
        let mut lines: Vec<_> = stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["200 others whole", "download whole", "upload whole"],
            "{output:?}"
        );
    });
}

/// Time without progress after which a writer knows that nobody reads.
const STALL: Duration = Duration::from_secs(1);
const FLOWS: usize = 10;
/// What the kernel's buffers on the way may come to hold for one flow: two connections, for
/// which newer kernels take up to 36 MiB each.
const MOST_ON_THE_WAY: u64 = 96 << 20;
/// All memory of the warden.
const MOST_MEMORY: u64 = 12 << 20;

/// Writes until nobody takes any more. Returns how much that was.
fn fill(stream: &mut Stream) -> io::Result<u64> {
    stream.socket.set_write_timeout(Some(STALL))?;
    let chunk = vec![0; 64 * 1024];
    let mut written = 0;
    while written < 2 * MOST_ON_THE_WAY {
        match stream.write(&chunk) {
            Ok(count) => written += count as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// The memory that a running program has for itself, without its own code, which grows with the product.
fn memory(running: &Running) -> u64 {
    let path = format!("/proc/{}/status", running.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).expect("a running program");
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kibibytes: u64 = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|number| number.parse().ok())
        .expect("a number of kibibytes");
    kibibytes * 1024
}

/// Before each script: a connection to somebody else, while others are held up.
const SOMEBODY_ELSE: &str = "
def ask_somebody_else():
    with socket.create_connection((sys.argv[1], 7), 5) as other:
        other.sendall(b'hello')
        print('somebody else says', other.recv(100).decode(), flush=True)
";
const ANSWERED: &str = "somebody else says hello\n";

fn start(world: &World, script: &str) -> Running {
    Place::Inside(&[])
        .python(world.laptop(), &format!("{SOMEBODY_ELSE}{script}"))
        .args([world.host("web").v4().to_string(), FLOWS.to_string()])
        .spawn()
        .expect("client")
}

const SLOW_READER: &str = "
import socket, sys
flows = [socket.create_connection((sys.argv[1], 9000), 20) for _ in range(int(sys.argv[2]))]
print('connected', flush=True)
input()
ask_somebody_else()
for flow in flows:
    count = 0
    while block := flow.recv(1 << 20):
        count += len(block)
    print(count, flush=True)
";

#[test]
fn a_client_that_does_not_read_holds_up_its_server_and_nobody_else() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp_echo(7).expect("server");
        let (sender, written) = mpsc::channel();
        web.tcp(9000, move |stream| {
            sender.send(fill(stream)?).map_err(io::Error::other)
        })
        .expect("server");
        let mut client = start(world, SLOW_READER);
        client.expect("connected").expect("connections");
        let mut sums: Vec<u64> = (0..FLOWS)
            .map(|_| written.recv_timeout(PATIENCE).expect("the server stalls"))
            .collect();
        assert!(sums.iter().all(|sum| *sum < MOST_ON_THE_WAY), "{sums:?}");
        let memory = memory(&client);
        assert!(memory < MOST_MEMORY, "the warden has {memory} bytes");

        client.write("\n").expect("let it read");
        client.expect(ANSWERED).expect("others are served");
        let output = client.wait().expect("the client ends").expect_success();
        let mut read: Vec<u64> = output
            .stdout()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect();
        read.sort_unstable();
        sums.sort_unstable();
        assert_eq!(read, sums);
    });
}

const EAGER_WRITER: &str = "
import concurrent.futures, socket, sys
def fill(flow):
    flow.settimeout(1)
    written = 0
    try:
        while written < 1 << 28:
            written += flow.send(bytes(65536))
    except TimeoutError:
        pass
    return written
flows = [socket.create_connection((sys.argv[1], 9000), 20) for _ in range(int(sys.argv[2]))]
with concurrent.futures.ThreadPoolExecutor(len(flows)) as pool:
    sums = list(pool.map(fill, flows))
print('stalled', max(sums), flush=True)
ask_somebody_else()
input()
for flow in flows:
    flow.shutdown(socket.SHUT_WR)
    flow.settimeout(20)
    flow.recv(1)
print(sum(sums))
";

#[test]
fn a_server_that_does_not_read_holds_up_its_client_and_nobody_else() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp_echo(7).expect("server");
        let go = Arc::new(Barrier::new(FLOWS + 1));
        let at_server = Arc::clone(&go);
        let server = web.tcp(9000, move |stream| {
            at_server.wait();
            io::copy(stream, &mut io::sink()).map(drop)
        });
        let server = server.expect("server");
        let mut client = start(world, EAGER_WRITER);
        client.expect("stalled ").expect("the client stalls");
        let most: u64 = client
            .expect("\n")
            .ok()
            .and_then(|number| number.parse().ok())
            .expect("a number");
        assert!(most < MOST_ON_THE_WAY, "{most} bytes on the way");
        let memory = memory(&client);
        assert!(memory < MOST_MEMORY, "the warden has {memory} bytes");

        client.expect(ANSWERED).expect("others are served");
        client.write("\n").expect("let it end");
        go.wait();
        let output = client.wait().expect("the client ends").expect_success();
        let stdout = output.stdout();
        let sum = stdout.lines().last().unwrap_or_default();
        assert_eq!(sum, server.received().to_string());
    });
}
