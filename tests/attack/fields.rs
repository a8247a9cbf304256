//! Every field of the configuration does something, and stops to do it when it is turned (N8).

use std::collections::BTreeSet;

use stockade_config::Key;
use stockade_world::{Laptop, Output, Site, Standard, test};

use super::empty::configure;
use crate::support::standard;

fn run(laptop: &Laptop, text: &str, line: &str) -> Output {
    configure(laptop, text);
    let command = laptop.stockade(["run", "--", "bash", "-c", line]);
    // What people keep in their environment.
    command.env("MINE", "a value of mine").run().expect("run")
}

/// A field: the file in which it is turned, a command inside, and what that says by default
/// and then.
struct Field {
    key: Key,
    file: &'static str,
    line: &'static str,
    says: [&'static str; 2],
}

const fn field(key: Key, file: &'static str, line: &'static str, says: [&'static str; 2]) -> Field {
    Field {
        key,
        file,
        line,
        says,
    }
}

/// Between what one command says and what the next does.
const NEXT: &str = "--next--";
const WEB: &str = "curl -s --max-time 20 http://www.example.com/ || echo nothing";

/// All but those that are seen from outside, which have tests of their own below.
const FIELDS: [Field; 26] = [
    field(
        Key::Mode,
        "[network]\nmode = \"none\"\n",
        WEB,
        ["hello from web", "nothing"],
    ),
    field(
        Key::Mode,
        "[network]\nmode = \"host\"\n",
        "curl -s --max-time 20 http://10.20.0.5/ || echo nothing",
        ["nothing", "hello from intranet"],
    ),
    field(
        Key::Internet,
        "[network]\ninternet = false\n",
        WEB,
        ["hello from web", "nothing"],
    ),
    field(
        Key::Allow,
        "[network]\nallow = [\"192.168.10.21\"]\n",
        "curl -s --max-time 20 http://192.168.10.21/ || echo nothing",
        ["nothing", "hello from device"],
    ),
    field(
        Key::Near,
        "[network]\nnear = [\"device.lan\"]\n",
        "curl -s --max-time 20 http://device.lan/ || echo nothing",
        ["nothing", "hello from device"],
    ),
    field(
        Key::Devices,
        "[devices]\npmac = \"192.168.10.21\"\n",
        "curl -s --max-time 20 http://pmac/ || echo nothing",
        ["nothing", "hello from device"],
    ),
    // Nobody listens there.
    field(
        Key::Proxy,
        "[network]\nproxy = \"http://10.20.0.5:3128\"\n",
        WEB,
        ["hello from web", "nothing"],
    ),
    field(
        Key::Discovery,
        "[network]\nallow = [\"192.168.10.21\"]\ndiscovery = [\"udp://7\"]\n",
        "python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.settimeout(5)
s.sendto(b\"anybody\", (\"255.255.255.255\", 7))
print(s.recvfrom(99)[1][0])' 2>/dev/null || echo nothing",
        ["nothing", "192.168.10.21"],
    ),
    field(
        Key::HostPorts,
        "[network]\nhost_ports = [5432]\n",
        "curl -s --max-time 20 http://127.0.0.1:5432/ || echo nothing",
        ["nothing", "the host's"],
    ),
    field(
        Key::Root,
        "[files]\nroot = \"all\"\n",
        "test -d /srv/www && echo there || echo nothing",
        ["nothing", "there"],
    ),
    field(
        Key::Read,
        "[files]\nread = [\"~/Documents\"]\n",
        "cat ~/Documents/taxes.txt 2>/dev/null || echo nothing",
        ["nothing", "DECOY-SECRET-"],
    ),
    field(
        Key::Write,
        "[files]\nwrite = [\"~/other-project\"]\n",
        "touch ~/other-project/src/new 2>/dev/null && echo written || echo nothing",
        ["nothing", "written"],
    ),
    field(
        Key::Hide,
        "[files]\nhide = [\"~/project/README.md\"]\n",
        "grep -c small README.md 2>/dev/null || echo nothing",
        ["1", "nothing"],
    ),
    field(
        Key::Caches,
        "[files]\ncaches = \"empty\"\n",
        "cat ~/.cache/mine 2>/dev/null || echo nothing",
        ["a download", "nothing"],
    ),
    field(
        Key::PassEnv,
        "[env]\npass = [\"MINE\"]\n",
        "echo ${MINE:-nothing}",
        ["nothing", "a value of mine"],
    ),
    field(
        Key::SetEnv,
        "[env]\nset = { GIVEN = \"given\" }\n",
        "echo ${GIVEN:-nothing}",
        ["nothing", "given"],
    ),
    field(
        Key::Github,
        "[forge]\ngithub = true\n",
        "cat ~/.config/gh/hosts.yml 2>/dev/null || echo nothing",
        ["nothing", "oauth_token"],
    ),
    field(
        Key::Gitlab,
        "[forge]\ngitlab = true\n",
        "cat ~/.config/glab-cli/config.yml 2>/dev/null || echo nothing",
        ["nothing", "token"],
    ),
    field(
        Key::ForgeHosts,
        "[forge]\ngithub = true\nhosts = [\"git.corp.example\"]\n",
        "git config --list | grep -F git.corp.example || echo nothing",
        ["nothing", "credential"],
    ),
    field(
        Key::Hardening,
        "[agent]\nhardening = \"strict\"\n",
        "unshare -Ur true 2>/dev/null && echo nested || echo nothing",
        ["nested", "nothing"],
    ),
    field(
        Key::Nested,
        "[agent]\nnested = true\n",
        "unshare -Urm true 2>/dev/null && echo nested || echo nothing",
        ["nothing", "nested"],
    ),
    field(
        Key::Processes,
        "[limits]\nprocesses = 50\n",
        "perl -e 'while (@all < 80) { $made = fork; last unless defined $made; \
         if (!$made) { sleep 60; exit } push @all, $made } \
         kill 9, @all; print scalar @all, qq( running\\n)'",
        ["80 running", " running"],
    ),
    field(
        Key::Memory,
        "[limits]\nmemory = \"256M\"\n",
        "python3 -c 'print(len(bytearray(1 << 29)))' 2>/dev/null || echo nothing",
        ["536870912", "nothing"],
    ),
    field(
        Key::OpenFiles,
        "[limits]\nopen_files = 100\n",
        "ulimit -n",
        ["", "100"],
    ),
    field(
        Key::Tmpfs,
        "[limits]\ntmpfs = \"1M\"\n",
        "head -c 3M /dev/zero > /tmp/large 2>/dev/null && echo written || echo nothing",
        ["written", "nothing"],
    ),
    field(
        Key::CpuTime,
        "[limits]\ncpu_time = \"1s\"\n",
        "ulimit -t",
        ["unlimited", "1"],
    ),
];

#[test]
fn n08_every_field_changes_what_is_inside() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let own = Site::text("the host's\n");
        laptop.http("127.0.0.1:5432", own).expect("listen");
        let cache = laptop.home().join(".cache/mine");
        std::fs::write(cache, "a download\n").expect("a cache");
        // By default, all in one session.
        let lines = FIELDS.map(|field| format!("({})", field.line));
        let usual = run(laptop, "", &lines.join(&format!("; echo {NEXT}; "))).stdout();
        let usual: Vec<&str> = usual.split(&format!("{NEXT}\n")).collect();
        assert_eq!(usual.len(), FIELDS.len(), "{usual:?}");
        let mut wrong = Vec::new();
        for (field, before) in FIELDS.iter().zip(usual) {
            let after = run(laptop, field.file, field.line);
            let turned = after.stdout();
            let [usually, then] = field.says;
            if !before.contains(usually) || !turned.contains(then) || before == turned {
                wrong.push(format!("{}: {before:?}, then {after:?}", field.key));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn n08_no_field_is_without_such_a_test() {
    // Of these p01_who_wants_to_be_told_only_is, where_nobody_attends_it_is_denied_at_once,
    // the_first_denial_of_a_target_is_shown_in_tmux_at_once,
    // a_proxy_of_socks5_is_given_names_and_a_login and
    // what_is_near_and_what_needs_no_proxy_is_reached_directly are the tests.
    let elsewhere = [
        Key::GitSettings,
        Key::Unknown,
        Key::Notify,
        Key::ProxyLogin,
        Key::NoProxy,
    ];
    let seen_outside = [Key::Publish, Key::LogDenials].into_iter().chain(elsewhere);
    let tested: BTreeSet<String> = FIELDS
        .iter()
        .map(|field| field.key)
        .chain(seen_outside)
        .map(|key| key.to_string())
        .collect();
    let all = Key::ALL.map(|key| key.to_string());
    assert_eq!(tested, all.into_iter().collect());
}

#[test]
fn n08_publishing_a_port_shows_it_outside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let fetch = |text: &str| {
            configure(laptop, text);
            let line = "python3 -m http.server -b 127.0.0.1 8000 2>/dev/null & \
                until curl -s -o /dev/null http://127.0.0.1:8000/; do sleep 0.02; done; \
                echo listening; read; kill %1";
            let run = laptop.stockade(["run", "--", "bash", "-c", line]);
            let mut session = run.spawn().expect("spawn");
            session.expect("listening").expect("a server inside");
            let fetched = laptop.command("curl").args(["-s", "-o", "/dev/null"]);
            let fetched = fetched.arg("http://127.0.0.1:3000/").run().expect("curl");
            session.write("\n").expect("write");
            session.wait().expect("end");
            fetched.code()
        };
        assert_eq!(fetch(""), 7);
        assert_eq!(fetch("[network]\npublish = [\"3000:8000\"]\n"), 0);
    });
}

#[test]
fn n08_not_to_log_denials_is_to_say_nothing_of_them() {
    test(&standard(), |world| {
        let said = |text: &str| {
            let line = "curl -s --max-time 20 http://10.20.0.5/";
            let output: Output = run(world.laptop(), text, line);
            output.stderr().contains("denied tcp://10.20.0.5:80")
        };
        assert!(said(""));
        assert!(!said("[network]\nlog_denials = false\n"));
        assert!(said("[network]\nlog_denials = true\n"));
    });
}
