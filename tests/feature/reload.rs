//! A change of the configuration reaches a session that runs.

use std::fs;

use stockade_world::{Laptop, Running, Signal, World, test};

use crate::support::standard;

/// Keeps a connection to each of the names, and tries new ones; a word on a line of its input
/// says what to do: `old` asks what became of the kept ones, `new` tries again.
const CLIENT: &str = "
import socket, sys
names = sys.argv[1:]
def connect(name):
    s = socket.create_connection((name, 7), 5)
    s.sendall(b'x')
    assert s.recv(1) == b'x'
    return s
def attempt(what):
    try:
        what()
        return 'works'
    except OSError as error:
        return 'fails'
def ask(s):
    s.settimeout(20)
    s.sendall(b'y')
    if s.recv(1) != b'y':
        raise OSError('closed')
kept = {name: connect(name) for name in names}
print('ready', flush=True)
for line in sys.stdin:
    for name in names:
        if line.strip() == 'old':
            print(name, 'old', attempt(lambda: ask(kept[name])), flush=True)
        else:
            print(name, 'new', attempt(lambda: connect(name)), flush=True)
    print('done', flush=True)
";

const BOTH: &str =
    "[network]\ninternet = false\nallow = [\"example.com\", \"mirror.example.org\"]\n";
const ONE: &str = "[network]\ninternet = false\nallow = [\"mirror.example.org\"]\n";

fn configure(laptop: &Laptop, text: &str) {
    let directory = laptop.home().join(".config/stockade");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("config.toml"), text).expect("a configuration");
}

fn start(world: &World) -> Running {
    for host in ["web", "mirror"] {
        world.host(host).tcp_echo(7).expect("an echo server");
    }
    configure(world.laptop(), BOTH);
    let line = ["run", "--", "python3", "-I", "-c", CLIENT];
    let client = world
        .laptop()
        .stockade(line)
        .args(["example.com", "mirror.example.org"])
        .spawn()
        .expect("a session");
    client.expect("ready").expect("connections");
    client
}

fn said(client: &mut Running, word: &str) -> Vec<String> {
    client.write(format!("{word}\n")).expect("ask");
    let text = client.expect("done\n").expect("an answer");
    text.lines()
        .filter(|line| line.contains(' '))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_rule_that_is_gone_cuts_its_flows_and_no_others() {
    test(&standard(), |world| {
        let mut client = start(world);
        assert_eq!(
            said(&mut client, "old"),
            ["example.com old works", "mirror.example.org old works"]
        );
        configure(world.laptop(), ONE);
        let reloaded = world
            .laptop()
            .stockade(["reload"])
            .run()
            .expect("run")
            .expect_success();
        assert!(
            reloaded.stdout().contains("the internet is closed, 1 rule"),
            "{reloaded:?}"
        );
        for word in ["old", "new"] {
            assert_eq!(
                said(&mut client, word),
                [
                    format!("example.com {word} fails"),
                    format!("mirror.example.org {word} works")
                ]
            );
        }
        // What was denied until now is not told of any more.
        configure(world.laptop(), &format!("{BOTH}log_denials = false\n"));
        world
            .laptop()
            .stockade(["reload"])
            .run()
            .expect("run")
            .expect_success();
        assert_eq!(
            said(&mut client, "new"),
            ["example.com new works", "mirror.example.org new works"]
        );
        client.close_stdin();
        let output = client.wait().expect("the session ends").expect_success();
        assert_eq!(output.stderr(), "");
    });
}

#[test]
fn a_hangup_signal_reloads_and_does_not_reach_the_command() {
    test(&standard(), |world| {
        let mut client = start(world);
        configure(world.laptop(), ONE);
        client.signal(Signal::HUP).expect("a signal");
        stockade_world::eventually("the reload", stockade_world::PATIENCE, || {
            said(&mut client, "new").contains(&"example.com new fails".to_owned())
        })
        .expect("a reload");
        client.close_stdin();
        client.wait().expect("the session ends").expect_success();
    });
}

#[test]
fn a_wrong_configuration_changes_nothing_and_is_told() {
    test(&standard(), |world| {
        let mut client = start(world);
        configure(
            world.laptop(),
            "[network]\ninternet = false\nalow = [\"a\"]\n",
        );
        let reloaded = world
            .laptop()
            .stockade(["reload"])
            .run()
            .expect("run")
            .expect_code(1);
        // As it stands in the file, quotes and all.
        let line = "3 | alow = [\"a\"]\n";
        assert!(reloaded.stderr().contains(line), "{reloaded:?}");
        assert_eq!(
            said(&mut client, "old"),
            ["example.com old works", "mirror.example.org old works"]
        );
        client.close_stdin();
        client.wait().expect("the session ends").expect_success();
    });
}

#[test]
fn without_sessions_there_is_nothing_to_reload() {
    test(&standard(), |world| {
        let reload = |session: &[&str]| {
            let line = ["reload"].iter().chain(session);
            world.laptop().stockade(line).run().expect("run")
        };
        let output = reload(&[]).expect_success();
        assert!(output.stdout().contains("no session"), "{output:?}");
        let output = reload(&["1-1"]).expect_code(125);
        assert!(output.stderr().contains("no session 1-1"), "{output:?}");
    });
}

#[test]
fn a_session_is_named_by_as_much_of_its_name_as_tells_it_from_others() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = ["run", "--", "sh", "-c", "echo started; cat"];
        let sessions = [(); 2].map(|()| {
            let session = laptop.stockade(line).spawn().expect("a session");
            session.expect("started").expect("a session");
            session
        });
        let mut names = Vec::new();
        stockade_world::eventually("both sessions", stockade_world::PATIENCE, || {
            let all = laptop.stockade(["reload"]).run().expect("run");
            let lines = all.expect_success().stdout();
            let reloaded = lines
                .lines()
                .filter_map(|line| line.split_once(": reloaded"));
            names = reloaded.map(|(name, _)| name.to_owned()).collect();
            names.len() == 2
        })
        .expect("two names");
        let reload = |name: &str| laptop.stockade(["reload", name]).run().expect("run");

        let both = reload(&names[0][..1]).expect_code(125);
        let why = format!(
            "2 sessions begin with {}: {}, {}",
            &names[0][..1],
            names[1],
            names[0]
        );
        assert!(both.stderr().contains(&why), "{both:?}");
        assert_eq!(both.stdout(), "");

        let first = names[0].as_str();
        let shortest = (1..=first.len()).find(|length| !names[1].starts_with(&first[..*length]));
        let one = reload(&first[..shortest.unwrap_or(first.len())]).expect_success();
        assert!(
            one.stdout().starts_with(&format!("{first}: reloaded")),
            "{one:?}"
        );
        assert_eq!(one.stdout().lines().count(), 1, "{one:?}");
        for mut session in sessions {
            session.close_stdin();
            session.wait().expect("the session ends").expect_success();
        }
    });
}

/// Asks each socket of a session whose name it reads to reload, and tells of those that it sees.
const INTRUDER: &str = "
import socket, sys
print('ready', flush=True)
name = sys.stdin.readline().strip()
seen = [line for line in open('/proc/net/unix') if 'stockade/' in line]
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(chr(0) + name)
    print('reached', seen)
except OSError as error:
    print('refused', seen)
";

#[test]
fn n20_the_control_socket_cannot_be_reached_from_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = ["run", "--", "python3", "-I", "-c", INTRUDER];
        let mut session = laptop.stockade(line).spawn().expect("a session");
        session.expect("ready").expect("a session");
        let find = "sed -n 's/.*@\\(stockade\\/.*\\)/\\1/p' /proc/net/unix | head -n 1";
        let mut name = String::new();
        stockade_world::eventually("the socket", stockade_world::PATIENCE, || {
            name = laptop.shell(find).run().expect("run").stdout();
            !name.is_empty()
        })
        .expect("a socket outside");
        session.write(&name).expect("tell the name");
        session.close_stdin();
        let output = session.wait().expect("an end").expect_success();
        assert!(output.stdout().contains("refused []"), "{output:?}");

        // Positive control: outside, the same program reaches it.
        let idle = laptop
            .stockade(["run", "--", "sh", "-c", "echo started; exec sleep 60"])
            .spawn()
            .expect("a session");
        idle.expect("started").expect("a session");
        stockade_world::eventually("the socket", stockade_world::PATIENCE, || {
            name = laptop.shell(find).run().expect("run").stdout();
            !name.is_empty()
        })
        .expect("a socket outside");
        let output = laptop
            .command("python3")
            .args(["-I", "-c", INTRUDER])
            .input(name)
            .run()
            .expect("run")
            .expect_success();
        assert!(output.stdout().contains("reached"), "{output:?}");
    });
}
