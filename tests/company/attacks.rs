//! The proxy is no way around the policy (N21), and its login stays outside (N22).

use std::{fs, time::Duration};

use stockade_world::{Misbehaviour, Page, Site, Standard, World, test};

use crate::feature::daemon::Daemon;

use super::network::{LOGIN, PASSWORD, PROXY, TinyProxy, company, inside, login_file, settle};

/// Whether the same thing works for somebody who speaks to the proxy himself: the control.
fn by_hand(world: &World, url: &str) -> String {
    let laptop = world.laptop();
    let line = [
        "-sS",
        "-p",
        "--max-time",
        "20",
        "-x",
        PROXY,
        "-U",
        LOGIN,
        url,
    ];
    let output = laptop.command("curl").args(line).run().expect("curl");
    output.expect_success().stdout()
}

#[test]
fn n21_the_proxy_is_no_way_to_what_is_near() {
    test(&company(), |world| {
        let net = Standard::serve(world).expect("servers");
        let resolver = settle(world);
        // Names that only the proxy knows, of the company's domain and of none on the internet.
        for name in [
            "wiki.corp.example",
            "metadata.google.internal",
            "printer.local",
            "db1.staging",
        ] {
            world.dns().record(name, world.host("intranet").v4());
        }
        world.dns().record("wiki", world.host("intranet").v4());
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let targets = [
            "http://intranet.corp.example/",
            "http://wiki.corp.example/",
            "http://wiki/",
            "http://metadata.google.internal/",
            "http://db1.staging/",
            "http://10.20.0.5/",
            "http://192.168.10.21/",
            "http://169.254.169.254/latest/meta-data/iam/security-credentials/role",
            "http://[::ffff:10.20.0.5]/",
            "http://[64:ff9b::10.20.0.5]/",
            "http://198.18.0.1/",
            "http://127.0.0.1:3128/",
        ];
        for target in [
            "http://10.20.0.5/",
            "http://wiki.corp.example/",
            "http://db1.staging/",
        ] {
            assert_eq!(by_hand(world, target), "hello from intranet\n", "{target}");
        }
        let asked = TinyProxy::requests();
        let before = (
            net.intranet.requests().count(),
            net.metadata.requests().count(),
        );
        let lines = targets.map(|target| {
            format!("curl -sS --max-time 20 -o /dev/null '{target}' 2>/dev/null; echo $?")
        });
        let script = format!("curl -sS http://www.example.com/; {}", lines.join("\n"));
        let output = inside(laptop, &[], &script).run().expect("its end");
        let stdout = output.stdout();
        let mut lines = stdout.lines();
        assert_eq!(lines.next(), Some("hello from web"), "{output:?}");
        for (target, code) in targets.iter().zip(lines.by_ref()) {
            assert!(["6", "7"].contains(&code), "{target}: {code}: {output:?}");
        }
        assert_eq!(lines.next(), None);
        let after = (
            net.intranet.requests().count(),
            net.metadata.requests().count(),
        );
        assert_eq!(before, after);
        let mut wanted = asked;
        wanted.push("CONNECT www.example.com:80".to_owned());
        wanted.sort();
        assert_eq!(TinyProxy::requests(), wanted);
        // A resolver that does not answer for the company's own names does not change that.
        resolver.stop();
        let script = "curl -sS --max-time 30 http://intranet.corp.example/ || echo $?";
        let output = inside(laptop, &[], script).run().expect("its end");
        assert_eq!(output.stdout(), "6\n", "{output:?}");
        assert_eq!(TinyProxy::requests(), wanted);
    });
}

/// Real resolvers refuse questions about names that they know: of other types, of other classes.
#[test]
fn n21_a_question_that_is_refused_leaves_no_name_of_the_company_to_the_proxy() {
    test(&company(), |world| {
        let net = Standard::serve(world).expect("servers");
        settle(world).stop();
        // A domain of the company's that no setting names.
        let (name, intranet) = ("wiki.acme.com", world.host("intranet").v4());
        world.dns().record(name, intranet);
        let own = format!("--host-record={name},{intranet}");
        let at_proxy = "--host-record=proxy.corp.example,10.20.0.9";
        let arguments = [
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--no-resolv",
            "--no-hosts",
            "--user=root",
            "--pid-file=",
            at_proxy,
            &own,
        ];
        let _resolver = Daemon::start(world.host("resolver"), 53, "dnsmasq", &arguments);
        let _proxy = TinyProxy::start(world);
        let url = format!("http://{name}/");
        assert_eq!(by_hand(world, &url), "hello from intranet\n");
        let before = net.intranet.requests().count();
        let asked = TinyProxy::requests();
        let questions = [
            "AAAA",
            "TXT",
            "SOA",
            "TYPE65280",
            "CH A",
            "CH TXT",
            "A +norecurse",
        ];
        let lines = questions.map(|question| {
            let tries = "+time=3 +tries=1";
            format!(
                "dig {tries} -q www.example.com {question} >/dev/null
                 dig {tries} -q {name} {question} | grep -o 'status: [A-Z]*'
                 curl -sS --max-time 20 {url} 2>/dev/null; echo $?"
            )
        });
        // Nor is an address left to it that is asked for as if it were a name.
        let script = format!(
            "{}
             for odd in 10.20.0.5 127.1 0x7f.1 10.20.1280 012.024.0.5; do dig +short A $odd.; done
             dig +short A www.example.com | cut -d. -f1,2
             curl -sS http://www.example.com/",
            lines.join("\n")
        );
        let output = inside(world.laptop(), &[], &script).run().expect("its end");
        let said = output.stdout();
        assert!(said.contains("status: REFUSED"), "{output:?}");
        assert_eq!(said.matches("7\n").count(), questions.len(), "{output:?}");
        // The control: a name that nobody knows here is left to the proxy, whatever is asked first.
        assert!(said.ends_with("7\n198.19\nhello from web\n"), "{output:?}");
        assert_eq!(net.intranet.requests().count(), before);
        let mut wanted = asked;
        wanted.push("CONNECT www.example.com:80".to_owned());
        wanted.sort();
        assert_eq!(TinyProxy::requests(), wanted);
    });
}

#[test]
fn n21_a_network_that_the_host_knows_is_near_with_a_proxy_too() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let script = "curl -sS --max-time 20 http://93.184.216.34/ || echo $?";
        let output = inside(laptop, &[], script).run().expect("its end");
        assert_eq!(output.stdout(), "hello from web\n", "{output:?}");
        let before = TinyProxy::requests();
        laptop
            .ip("route add 93.184.0.0/16 via 192.168.10.1")
            .expect("ip");
        let output = inside(laptop, &[], script).run().expect("its end");
        assert_eq!(output.stdout(), "7\n", "{output:?}");
        assert!(
            output.stderr().contains("is reached through 93.184.0.0/16"),
            "{output:?}"
        );
        assert_eq!(TinyProxy::requests(), before);
    });
}

#[test]
fn n21_the_proxy_itself_is_out_of_reach_inside() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let resolver = settle(world);
        // Where it is, is known before the command runs.
        let slow = Misbehaviour::Slow(Duration::from_millis(700));
        resolver.misbehave("proxy.corp.example", slow);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let script = format!(
            "curl -sS -p --max-time 20 -x http://10.20.0.9:3128 -U {LOGIN} http://10.20.0.5/ || echo $?; \
             curl -sS -p --max-time 20 -x {PROXY} -U {LOGIN} http://10.20.0.5/ >/dev/null || echo $?; \
             curl -sS --max-time 20 http://proxy.corp.example:3128/ >/dev/null || echo $?"
        );
        assert_eq!(by_hand(world, "http://10.20.0.5/"), "hello from intranet\n");
        let before = TinyProxy::requests();
        // A rule for the whole network, or for all names of the company, does not mean it either.
        for options in [
            &[][..],
            &["--allow", "10.20.0.8/29"],
            &["--near", "*.corp.example"],
        ] {
            let output = inside(laptop, options, &script).run().expect("its end");
            assert_eq!(output.stdout(), "7\n7\n7\n", "{output:?}");
            let told = "is the proxy, which Stockade itself uses";
            assert!(output.stderr().contains(told), "{output:?}");
            assert!(
                output.stderr().contains("bypasses your rules"),
                "{output:?}"
            );
        }
        assert_eq!(TinyProxy::requests(), before);
        resolver.behave();
        // Who names it has it, and is warned.
        let options = ["--allow", "tcp://10.20.0.9:3128"];
        let output = inside(laptop, &options, &script).run().expect("its end");
        assert!(
            output.stdout().starts_with("hello from intranet\n"),
            "{output:?}"
        );
        assert!(
            output
                .stderr()
                .contains("WARNING: rule `tcp://10.20.0.9:3128`"),
            "{output:?}"
        );
    });
}

/// Looks for a word in the memory of all processes but its own: for one that a child has, and for the
/// password.
const MEMORY: &str = "python3 -c '
import glob, os, subprocess, time
def has(process, word):
    try:
        with open(f\"{process}/maps\") as maps, open(f\"{process}/mem\", \"rb\", 0) as memory:
            for line in maps:
                start, end = (int(x, 16) for x in line.split()[0].split(\"-\"))
                try:
                    memory.seek(start)
                    if word in memory.read(end - start):
                        return True
                except (OSError, ValueError, OverflowError):
                    pass
    except OSError:
        pass
    return False
child = subprocess.Popen([\"sleep\", \"60\"], env={\"X\": \"seen-in-\" + \"memory\"})
time.sleep(0.5)
others = [p for p in glob.glob(\"/proc/[0-9]*\") if p != f\"/proc/{os.getpid()}\"]
print(sum(has(p, b\"seen-in-\" + b\"memory\") for p in others), sum(has(p, b\"s3cret-\" + b\"DECO\" + b\"Y\") for p in others))
child.kill()
'";

#[test]
fn n22_the_login_for_the_proxy_is_not_to_be_seen_inside_or_in_any_text() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let login = login_file(laptop);
        // In a place that the command sees.
        let shared = laptop.home().join(".local/share/proxy-login");
        fs::create_dir_all(shared.parent().expect("a directory")).expect("a directory");
        let copy = format!("cp -p {login} {}", shared.display());
        laptop.shell(&copy).run().expect("cp").expect_success();
        let script = format!(
            "curl -sS http://www.example.com/; env; cat /proc/*/environ /proc/*/cmdline; \
             cat {}; grep -rs 's3cret-DECO[Y]' ~ /tmp /run /etc; echo memory; {MEMORY}",
            shared.display()
        );
        let variable = PROXY.replace("http://", &format!("http://{LOGIN}@"));
        let with_file = [
            "--proxy",
            PROXY,
            "--proxy-login",
            &shared.display().to_string(),
        ]
        .map(str::to_owned);
        let by_variable =
            ["--proxy", "environment", "--pass-env", "https_proxy"].map(str::to_owned);
        for options in [with_file, by_variable] {
            let output = laptop
                .stockade(["run"])
                .args(&options)
                .args(["--", "bash", "-c", &script])
                .env("https_proxy", &variable)
                .env("no_proxy", "localhost")
                .run()
                .expect("its end");
            let said = format!("{}{}", output.stdout(), output.stderr());
            assert!(said.contains("hello from web"), "{said}");
            assert!(!said.contains(PASSWORD), "{said}");
            assert!(said.contains("memory\n1 0\n"), "{said}");
            assert!(!said.contains("_proxy="), "{said}");
            for line in [&["plan"][..], &["config", "show"], &["log"], &["explain"]] {
                let more = if line[0] == "log" { &[][..] } else { &options };
                let target = (line[0] == "explain").then_some("tcp://93.184.216.34:80");
                let output = laptop
                    .stockade(line)
                    .args(if line[0] == "config" { &[][..] } else { more })
                    .args(target)
                    .env("https_proxy", &variable)
                    .run()
                    .expect("its end");
                let said = format!("{}{}", output.stdout(), output.stderr());
                assert!(!said.contains(PASSWORD), "{line:?}: {said}");
            }
            // Without the setting it is a file like others there.
            let _ = fs::remove_file(&shared);
        }
        let logs = laptop.home().join(".local/state/stockade");
        let search = format!("grep -rls {PASSWORD} {}", logs.display());
        assert_eq!(laptop.shell(&search).run().expect("grep").stdout(), "");
        // The control: the search finds it where it is.
        let control = format!("grep -ls {PASSWORD} {login}");
        assert_eq!(
            laptop.shell(&control).run().expect("grep").stdout(),
            format!("{login}\n")
        );
    });
}

#[test]
fn n22_a_file_with_a_login_that_others_can_read_or_the_command_can_write_is_refused() {
    test(&company(), |world| {
        let laptop = world.laptop();
        let login = login_file(laptop);
        let run = |file: &str| {
            let line = ["run", "--proxy", PROXY, "--proxy-login", file, "--", "true"];
            let output = laptop.stockade(line).run().expect("its end");
            assert!(!output.stderr().contains(PASSWORD), "{output:?}");
            output
        };
        run(&login).expect_success();
        let change = |line: &str| laptop.shell(line).run().expect("sh").expect_success();
        change(&format!("chmod 640 {login}"));
        let refused = run(&login).expect_code(125);
        assert!(
            refused.stderr().contains("others can read the login"),
            "{refused:?}"
        );
        change(&format!(
            "cp {login} project-login; chmod 600 project-login"
        ));
        let refused = run("project-login").expect_code(125);
        assert!(refused.stderr().contains("in the workspace"), "{refused:?}");
        change(&format!("chmod 600 {login}; echo {PASSWORD} > {login}"));
        let refused = run(&login).expect_code(125);
        assert!(
            refused.stderr().contains("expected USER:PASSWORD"),
            "{refused:?}"
        );
        run("/nonexistent").expect_code(125);
        let typed = PROXY.replace("http://", &format!("http://{LOGIN}@"));
        let output = laptop
            .stockade(["run", "--proxy", &typed, "--", "true"])
            .run();
        let output = output.expect("its end").expect_code(125);
        assert!(!output.stderr().contains(PASSWORD), "{output:?}");
        assert!(output.stderr().contains("--proxy-login"), "{output:?}");
    });
}

/// With the internet closed, a name that only the proxy knows shows itself as any other does.
#[test]
fn n21_a_name_that_only_the_proxy_knows_is_held_to_its_rules() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let secret = Site::empty().page("/", Page::new(200, "secret"));
        let _secret = world.host("web").http(8080, secret).expect("a server");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let script = "curl -sS http://www.example.com/
            curl -sS -o /dev/null -w '%{http_code}\\n' -H 'Host: mirror.example.org' http://www.example.com/
            curl -sS --max-time 20 http://www.example.com:8080/ || echo $?
            curl -sS --max-time 20 http://93.184.216.34/ || echo $?
            a=$(getent ahostsv4 www.example.com | cut -d' ' -f1 | head -1); echo ${a%.*.*}
            curl -sS --max-time 20 http://${a%.*}.200/ || echo $?
            curl -sS --max-time 20 https://www.example.com/
            curl -sS -k --max-time 20 https://mirror.example.org/ --connect-to ::$a:443 || echo $?";
        let options = ["--no-internet", "--allow", "tcp://www.example.com:80,443"];
        let output = inside(laptop, &options, script).run().expect("its end");
        let wanted = "hello from web\n403\n7\n7\n198.19\n7\nhello from web\n35\n";
        assert_eq!(output.stdout(), wanted, "{output:?}");
        assert_eq!(
            TinyProxy::requests(),
            ["CONNECT www.example.com:443", "CONNECT www.example.com:80"]
        );
    });
}

/// A name that has become one of `near` is the company's own: the address that stood for it before
/// leads nowhere.
#[test]
fn n21_a_reload_takes_a_name_of_near_from_the_proxy() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let script = "a=$(getent ahostsv4 www.example.com | cut -d' ' -f1 | head -1)
            while read -r word && [ $word = go ]; do
                curl -sS --max-time 20 http://www.example.com/ --resolve www.example.com:80:$a 2>/dev/null
                echo $? done
            done";
        let mut session = inside(laptop, &[], script).spawn().expect("a session");
        let mut said = || {
            session.write("go\n").expect("ask");
            session.expect("done\n").expect("an answer")
        };
        assert_eq!(said().trim(), "hello from web\n0");
        let config = laptop.home().join(".config/stockade/config.toml");
        for (near, wanted) in [
            ("other.example.org", "hello from web\n0"),
            ("www.example.com", "7"),
        ] {
            let text = format!("[network]\nnear = [\"{near}\"]\n");
            fs::write(&config, text).expect("a file");
            let reload = laptop.stockade(["reload"]).run().expect("a reload");
            reload.expect_success();
            assert_eq!(said().trim(), wanted, "{near}");
        }
        session.write("end\n").expect("end");
        session.wait().expect("an end");
    });
}
