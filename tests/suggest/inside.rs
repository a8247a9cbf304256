//! `stockade explain` and `stockade denials` inside a session.

use std::fs;

use serde_json::Value;
use stockade_world::{Laptop, Standard, test};

use super::{STOCKADE, session, stockade};
use crate::support::standard;

/// Says for each target what is explained, and what an attempt with curl does.
const BOTH: &str = "
for target in \"$@\"; do
    /run/world/bin/stockade explain $target > /tmp/said; explained=$?
    curl -sS --max-time 5 -o /dev/null $target 2> /tmp/error; tried=$?
    echo \"$target explained=$explained tried=$((tried != 0))\"
done";

/// Waits for so many denials to be noted: `wait COUNT`.
const WAIT: &str = "wait() { for n in {1..200}; do
    [ $(/run/world/bin/stockade denials | grep -c '^denied:') -ge $1 ] && return; sleep 0.05; done; }; wait";

fn explained(laptop: &Laptop, options: &[&str], targets: &[&str]) -> Vec<String> {
    let line = [&["run"], options, &["--", "bash", "-c", BOTH, "x"], targets].concat();
    let said = stockade(laptop, &line).expect_success().stdout();
    said.lines().map(str::to_owned).collect()
}

#[test]
fn explain_inside_agrees_with_what_happens() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let targets = [
            "http://www.example.com",
            "http://93.184.216.34",
            "http://mirror.example.org",
            "http://192.168.10.21",
            "http://10.20.0.5",
            "http://169.254.169.254",
            "http://device.lan",
        ];
        let agree = |options: &[&str], allowed: &[&str]| {
            let said = explained(laptop, options, &targets);
            let expected = targets.map(|target| {
                let code = u8::from(!allowed.contains(&target));
                format!("{target} explained={code} tried={code}")
            });
            assert_eq!(said, expected, "{options:?}");
        };
        agree(&[], &targets[..3]);
        agree(
            &[
                "--allow",
                "192.168.10.21",
                "--allow",
                "tcp://10.20.0.0/16:80",
            ],
            &[&targets[..5], &targets[6..]].concat(),
        );
        // An address is open if the program was given it for a name that is.
        agree(
            &["--no-internet", "--allow", "www.example.com:80"],
            &targets[..2],
        );
        agree(&["--no-internet", "--allow", "www.example.com:81"], &[]);
        agree(&["--mode", "none"], &[]);
    });
}

#[test]
fn explain_inside_follows_a_reload() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = "while read line; do
            /run/world/bin/stockade explain --json tcp://192.168.10.21:80 | tr -d '\\n '
            echo; /run/world/bin/stockade explain $line > /dev/null; echo \"code $?\"; done";
        let line = ["run", "--", "bash", "-c", script];
        let mut running = laptop.stockade(line).spawn().expect("a session");
        let mut ask = |target: &str| {
            running.write(format!("{target}\n")).expect("a question");
            let said = running.expect("code ").expect("an answer");
            let json: Value = serde_json::from_str(said.lines().next().unwrap_or_default())
                .unwrap_or_else(|error| panic!("{error}: {said}"));
            assert_eq!(json["target"], "tcp://192.168.10.21:80");
            (running.expect("\n").expect("a code"), json)
        };
        let (code, json) = ask("http://192.168.10.21");
        assert_eq!((code.trim(), &json["outcome"]), ("1", &"denied".into()));
        // The shell took the blanks out.
        assert_eq!(
            json["ask_user_to_run"][0],
            "stockadeallowtcp://192.168.10.21:80"
        );
        let mut ask = |target: &str| ask(target).0;
        assert_eq!(ask("http://www.example.com").trim(), "0");
        // The line that is proposed inside, typed outside, is all that it takes.
        let allowed = stockade(laptop, &["allow", "tcp://192.168.10.21:80"]).expect_success();
        let said = allowed.stdout();
        assert!(
            said.contains("projects/project.toml: allows tcp://192.168.10.21:80"),
            "{said}"
        );
        assert!(
            said.contains("reloaded: the internet is open, 1 rule"),
            "{said}"
        );
        assert_eq!(ask("http://192.168.10.21").trim(), "0");
        let file = laptop.home().join(".config/stockade/projects/project.toml");
        let text = fs::read_to_string(&file).expect("a file");
        fs::write(&file, format!("{text}internet = false\n")).expect("a file");
        stockade(laptop, &["reload"]).expect_success();
        assert_eq!(ask("http://192.168.10.21").trim(), "0");
        assert_eq!(ask("http://www.example.com").trim(), "1");
        running.close_stdin();
        running.wait().expect("its end").expect_success();
        let again = stockade(laptop, &["allow", "tcp://192.168.10.21:80"]).expect_success();
        assert!(again.stdout().contains("allows this already"), "{again:?}");
    });
}

/// What few commands need is allowed, and what that gives away is said.
#[test]
fn who_allows_what_gives_much_away_is_warned() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (rule, danger) in [
            ("169.254.169.254", "WARNING: 169.254.169.254: it hands out"),
            (
                "tcp://192.168.10.5:80",
                "services there may take the command for the user",
            ),
            ("192.168.10.21", ""),
        ] {
            let explained = stockade(laptop, &["explain", rule]).stdout();
            let allowed = stockade(laptop, &["allow", rule]).expect_success();
            let warning = allowed.stderr();
            assert_eq!(warning.is_empty(), danger.is_empty(), "{allowed:?}");
            assert!(warning.contains(danger), "{allowed:?}");
            assert_eq!(
                explained.contains("WARNING"),
                !danger.is_empty(),
                "{explained}"
            );
        }
    });
}

/// The program asks for it, the user allows it meanwhile, and the receipt does not propose it again.
#[test]
fn the_receipt_leaves_out_what_is_allowed_by_now() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let script = "curl -sS http://192.168.10.21 http://192.168.10.22; echo tried; read line";
        let line = ["run", "--", "bash", "-c", script];
        let mut running = laptop.stockade(line).spawn().expect("a session");
        running.expect("tried").expect("the attempts");
        stockade(laptop, &["allow", "tcp://192.168.10.21:80"]).expect_success();
        running.write("\n").expect("a line");
        let receipt = running.wait().expect("its end").stderr();
        let always = "to allow it always: stockade allow tcp://192.168.10.22:80\n";
        assert!(receipt.contains(always), "{receipt}");
        assert!(
            !receipt.contains("stockade allow tcp://192.168.10.21"),
            "{receipt}"
        );
    });
}

#[test]
fn a_program_that_was_started_by_a_link_is_there_inside_by_that_name() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let bin = laptop.home().join(".local/bin");
        fs::create_dir_all(&bin).expect("a directory");
        std::os::unix::fs::symlink(STOCKADE, bin.join("stockade")).expect("a link");
        let line = "PATH=$HOME/.local/bin:/usr/bin:/bin
            stockade run -- stockade inside && stockade run -- sh -c 'stockade inside; ls -A ~/.local/bin'";
        let output = laptop.shell(line).run().expect("its end").expect_success();
        let text = output.stdout();
        assert!(text.starts_with("inside session "), "{text}");
        assert!(text.ends_with("\nstockade\n"), "{text}");
    });
}

/// Everything that explain can say, about targets that are special to this machine and those that
/// are not: the words are the same, and nothing of the machine is among them.
#[test]
fn explain_inside_says_nothing_of_the_machine() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let ip = laptop.command("ip").args(["-j", "-4", "address"]).run();
        let ip: Value = serde_json::from_str(&ip.expect("ip").stdout()).expect("JSON");
        let addresses = ip.as_array().expect("links").iter();
        let addresses = addresses.flat_map(|link| link["addr_info"].as_array().expect("addresses"));
        let private = |it: &&Value| {
            it["local"]
                .as_str()
                .is_some_and(|it| it.starts_with("192.168"))
        };
        let own = addresses.clone().find(private).expect("an address");
        let broadcast = own["broadcast"]
            .as_str()
            .unwrap_or("192.168.10.255")
            .to_owned();
        let own = own["local"].as_str().expect("an address").to_owned();
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
        fs::write(&config, "[network]\nallow = [\"10.20.0.5\"]\n").expect("a file");

        for options in [&[][..], &["--no-internet"]] {
            let explain = |target: &str| {
                let script = format!(
                    "{STOCKADE} explain {target}; {STOCKADE} explain --json tcp://{target}:80
                    curl -sS --max-time 5 http://{target} 2> /dev/null || {WAIT} 1
                    {STOCKADE} denials; {STOCKADE} denials --json | grep -v '\"last\"'"
                );
                session(laptop, options, &script)
                    .stdout()
                    .replace(target, "TARGET")
            };
            // A device of the LAN that does not exist, this machine itself, and a broadcast address.
            let device = explain("192.168.10.77");
            assert!(device.contains("TARGET"), "{device}");
            assert!(device.contains("denied"), "{device}");
            assert_eq!(device, explain(&own));
            assert_eq!(device, explain(&broadcast));
            let allowed = explain("10.20.0.5");
            assert!(
                allowed.contains("rule `10.20.0.5` allows it")
                    || allowed.contains("TARGET` allows it"),
                "{allowed}"
            );
            for text in [&device, &allowed] {
                for secret in [
                    "config.toml",
                    ".config",
                    "route",
                    "default",
                    "eth",
                    "the host",
                    "/24",
                ] {
                    assert!(!text.contains(secret), "{secret}: {text}");
                }
            }
        }
        // Positive control: outside, the user is told all of it.
        let outside = stockade(laptop, &["explain", &own]).stdout();
        assert!(
            outside.contains("an address of the host itself"),
            "{outside}"
        );
        let outside = stockade(laptop, &["explain", "10.20.0.5"]).stdout();
        assert!(outside.contains("config.toml:2"), "{outside}");
        // A port that is in use on this machine is like any other.
        let listener = laptop.http("127.0.0.1:8081", stockade_world::Site::text("x"));
        let listener = listener.expect("a server");
        let script = format!(
            "for port in 8081 8082; do curl -sS http://127.0.0.1:$port 2> /dev/null; \
             {STOCKADE} explain localhost:$port | sed s/$port/PORT/; done; {STOCKADE} denials"
        );
        let output = session(laptop, &[], &script);
        let said = output.stdout();
        let half = said
            .find("localhost:PORT")
            .and_then(|at| said[at + 1..].find("localhost:PORT"));
        let half = half.expect("two answers") + 1;
        assert_eq!(said[..half], said[half..2 * half], "{said}");
        assert!(
            said.ends_with("nothing was denied in this session\n"),
            "{said}"
        );
        // The user hears of it.
        assert!(output.stderr().contains("--host-port 8081"), "{output:?}");
        drop(listener);
    });
}

#[test]
fn denials_inside_lists_each_with_the_line_for_the_user_and_prints_nothing_else() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let script = format!(
            "{STOCKADE} denials
            for n in 1 2 3; do curl -sS --max-time 5 http://192.168.10.21 2>> /tmp/error; done
            curl -sS --max-time 5 http://other.example.org 2>> /tmp/error
            curl -sS --max-time 5 http://169.254.169.254 2>> /tmp/error
            grep -ic stockade /tmp/error
            {WAIT} 3; {STOCKADE} denials; {STOCKADE} denials --json"
        );
        let output = session(
            laptop,
            &["--no-internet", "--allow", "example.com"],
            &script,
        );
        let said = output.stdout();
        let rest = said.strip_prefix("nothing was denied in this session\n0\n");
        let rest = rest.unwrap_or_else(|| panic!("{said}"));
        let (text, json) = rest.split_once("{\n").expect("JSON");
        assert!(
            text.starts_with("Denied by the user's policy. Do not work around it"),
            "{text}"
        );
        for line in [
            "denied: tcp://192.168.10.21:80",
            "  ask the user to run: stockade allow tcp://192.168.10.21:80\n",
            "denied: the name other.example.org",
            "  ask the user to run: stockade allow other.example.org\n",
            "denied: tcp://169.254.169.254:80\n",
            "is a cloud metadata service",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("allow tcp://169.254.169.254"), "{text}");
        let json: Value = serde_json::from_str(&format!("{{{json}")).expect("JSON");
        let denials = json["denials"].as_array().expect("denials");
        assert_eq!(denials.len(), 3, "{json}");
        let runs: Vec<_> = denials
            .iter()
            .filter_map(|it| it["ask_user_to_run"].as_str())
            .collect();
        assert!(
            runs.contains(&"stockade allow tcp://192.168.10.21:80"),
            "{json}"
        );
        // Outside it is the log's, and inside nobody can allow anything.
        let outside = stockade(laptop, &["denials"]).expect_success().stdout();
        assert!(outside.contains("tcp://192.168.10.21:80"), "{outside}");
        let script =
            "for c in 'allow 192.168.10.21' suggest ps log accept init doctor reload verify
            do $0 $c; echo $?; done";
        let line = ["run", "--", "bash", "-uc", script, STOCKADE];
        let refused = stockade(laptop, &line);
        assert_eq!(refused.stdout(), "125\n".repeat(9), "{refused:?}");
        let refused = refused.stderr();
        for command in [
            "allow", "suggest", "ps", "log", "accept", "init", "doctor", "reload", "verify",
        ] {
            let told = format!("`stockade {command}` works outside of a session only\n");
            assert!(refused.contains(&told), "{refused}");
        }
        assert!(!laptop.home().join(".config/stockade/projects").exists());
    });
}

/// As many questions as a program can ask, about a host with very many rules, while others ask too
/// and connections are made.
#[test]
fn a_flood_of_explanations_keeps_nobody_from_the_network() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
        let rules = (1..2000).map(|n| format!("\"tcp://192.168.10.21:{}\",\n", 30 * n));
        let rules: String = rules.collect();
        fs::write(&config, format!("[network]\nallow = [\n{rules}]\n")).expect("a file");
        let flood = "
import json, socket, threading, time
def ask():
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(5)
    peer.connect('/run/stockade/session.sock')
    peer.sendall(b'{\"ask\":\"explain\",\"target\":\"192.168.10.21\"}\\n')
    return peer.makefile().read()
answer = ask()
print(len(answer) < (48 << 10), json.loads(answer)['incomplete'], flush=True)
def flood():
    while True:
        try:
            ask()
        except OSError:
            pass
for number in range(8):
    threading.Thread(target=flood, daemon=True).start()
time.sleep(3600)";
        let script = format!(
            "exec 3< <(python3 -c \"$1\"); read -u 3 line; echo $line
            for n in 1 2 3 4 5; do curl -sS --max-time 20 http://www.example.com; done
            {STOCKADE} inside --quiet && echo inside
            {STOCKADE} denials"
        );
        let line = ["run", "--", "bash", "-c", &script, "x", flood];
        let said = stockade(laptop, &line).stdout();
        let expected = format!(
            "True True\n{}inside\nnothing was denied in this session\n",
            "hello from web\n".repeat(5)
        );
        assert_eq!(said, expected);
    });
}
