//! Programs inside reach the internet through the company's proxy, and know nothing of it.

use std::fs;

use stockade_world::{Misbehaviour, Standard, dns_messages::RCODE, test};

use super::network::{PROXY, TinyProxy, company, inside, inside_by, on_proxy, settle};
use crate::{
    daily::{model, serve_registry},
    feature::{
        agents::{CLAUDE, path, with_world},
        daemon::Daemon,
    },
};

#[test]
fn programs_without_a_proxy_setting_reach_names_that_only_the_proxy_knows() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let resolver = settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        // The control: without the proxy there is no internet.
        let line = "curl -sS --max-time 20 http://www.example.com/";
        let without = laptop.stockade(["run", "--", "sh", "-c", line]).run();
        assert_ne!(without.expect("its end").code(), 0);

        let script = "env | grep -i _proxy; set -e; curl -sS http://www.example.com/
            curl -sS https://mirror.example.org/
            python3 -c 'import urllib.request as u; print(u.urlopen(\"http://www.example.com/\").read().decode(), end=\"\")'
            node -e 'fetch(\"https://www.example.com/\").then(r => r.text()).then(t => process.stdout.write(t))'
            curl -sS http://93.184.216.34/
            exec 3<>/dev/tcp/www.example.com/7; echo echoed >&3; head -1 <&3";
        let session = inside(laptop, &[], script).env("NODE_EXTRA_CA_CERTS", world.ca_file());
        let output = session.run().expect("its end");
        let web = "hello from web\n";
        let wanted = format!("{web}hello from mirror\n{web}{web}{web}echoed\n");
        assert_eq!(output.expect_success().stdout(), wanted);
        assert_eq!(
            TinyProxy::requests(),
            [
                "CONNECT 93.184.216.34:80",
                "CONNECT mirror.example.org:443",
                "CONNECT www.example.com:443",
                "CONNECT www.example.com:7",
                "CONNECT www.example.com:80",
            ]
        );
        // The company's resolver was asked first, each time.
        assert!(resolver.queries_for("www.example.com") > 0);
        // The same if it fails in another way, or is gone.
        let fetch = || inside(laptop, &[], "curl -sS http://www.example.com/").run();
        for code in [RCODE::ServerFailure, RCODE::Refused] {
            resolver.misbehave("www.example.com", Misbehaviour::Code(code));
            let fetched = fetch().expect("its end");
            assert_eq!(fetched.stdout(), web, "{code:?} {fetched:?}");
        }
        // Where the proxy is has to be known.
        let hosts = "127.0.0.1 localhost\n10.20.0.9 proxy.corp.example\n";
        laptop.write_etc("hosts", hosts).expect("hosts");
        resolver.stop();
        let fetched = fetch().expect("its end");
        assert_eq!(fetched.stdout(), web, "{fetched:?}");
        // What is in the log is the name.
        let log = laptop.stockade(["log"]).run().expect("the log");
        assert!(log.stdout().contains("www.example.com"), "{log:?}");
    });
}

#[test]
fn git_npm_and_pip_work_through_the_proxy_and_it_sees_what_the_rules_allow() {
    test(&company(), |world| {
        let make = "git init -q -b main source; cd source; git -c user.name=a -c user.email=a@b \
            commit -q --allow-empty -m first; git clone -q --bare . ~/site/repo.git; \
            git -C ~/site/repo.git update-server-info";
        let made = world.laptop().shell(make).run().expect("git");
        made.expect_success();
        let _registry = serve_registry(world);
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let script = "set -e
            pip3 install -q --target lib --index-url http://www.example.com/simple/ \
                --trusted-host www.example.com --disable-pip-version-check small >&2
            PYTHONPATH=lib python3 -c 'import small; print(small.WORD)'
            (cd node; npm ci >&2; node -p 'require(\"small\")')
            git clone -q http://www.example.com/repo.git cloned; git -C cloned log --format=%s
            curl -sS --max-time 20 http://mirror.example.org/ || echo $?";
        let options = ["--no-internet", "--allow", "www.example.com"];
        let output = inside(laptop, &options, script).run().expect("its end");
        let output = output.expect_success();
        assert_eq!(output.stdout(), "small\nsmall\nfirst\n6\n", "{output:?}");
        assert!(
            output
                .stderr()
                .contains("denied the name mirror.example.org")
        );
        assert_eq!(TinyProxy::requests(), ["CONNECT www.example.com:80"]);
    });
}

#[test]
fn claude_code_speaks_to_its_model_through_the_proxy() {
    with_world(company(), &CLAUDE, |world| {
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let (calls, results) = (
            laptop.home().join("calls.json"),
            laptop.home().join("results"),
        );
        fs::write(&calls, r#"["echo from inside"]"#).expect("calls");
        let script = model();
        let (calls, shown) = (calls.display().to_string(), results.display().to_string());
        let arguments = ["-c", script, &calls, &shown, "0.0.0.0"];
        let _model = Daemon::start(world.host("web"), 8765, "/usr/bin/python3", &arguments);
        let login = super::network::login_file(laptop);
        let session = laptop
            .stockade(["run", "--proxy", PROXY, "--proxy-login", &login])
            .args(["--", "claude", "-p", "Say it.", "--allowedTools", "Bash"])
            .env("PATH", path())
            .env("ANTHROPIC_API_KEY", "decoy")
            .env("ANTHROPIC_BASE_URL", "http://www.example.com:8765")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .limit(std::time::Duration::from_secs(120));
        let output = session.run().expect("its end").expect_success();
        let results = fs::read_to_string(&results).expect("results");
        assert!(results.contains("from inside"), "{results} {output:?}");
        let requests = TinyProxy::requests();
        assert!(
            requests.contains(&"CONNECT www.example.com:8765".to_owned()),
            "{requests:?}"
        );
    });
}

#[test]
fn a_proxy_of_socks5_is_given_names_and_a_login() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let line = "microsocks -p 1080 -u ada -P s3cret-DECOY";
        let _proxy = on_proxy(world, 1080, line);
        let laptop = world.laptop();
        let proxy = "socks5://proxy.corp.example:1080";
        let script = "curl -sS http://www.example.com/; curl -sS https://mirror.example.org/; \
            curl -sS http://93.184.216.34/; curl -sS http://93.184.216.34:81/ || echo $?";
        let output = inside_by(laptop, proxy, &[], script)
            .run()
            .expect("its end");
        let web = "hello from web\n";
        assert_eq!(output.stdout(), format!("{web}hello from mirror\n{web}7\n"));
        let told = "the destination refused the connection";
        assert!(output.stderr().contains(told), "{output:?}");
        // A wrong login.
        let wrong = laptop.home().join("wrong");
        let make = format!("umask 077; echo ada:wrong > {}", wrong.display());
        laptop.shell(&make).run().expect("a file").expect_success();
        let wrong = wrong.display().to_string();
        let options = ["--proxy", proxy, "--proxy-login", &wrong];
        let output = laptop
            .stockade(["run"])
            .args(options)
            .args(["--", "curl", "-sS", "http://www.example.com/"])
            .run()
            .expect("its end");
        assert_eq!(output.code(), 7);
        assert!(
            output.stderr().contains("does not accept the login"),
            "{output:?}"
        );
    });
}

/// Many companies' resolvers know the internet's names. Proxies filter by names all the same.
#[test]
fn the_proxy_is_asked_by_name_also_where_the_resolvers_know_the_name() {
    test(&company(), |world| {
        let net = Standard::serve(world).expect("servers");
        let resolver = settle(world);
        let [web, mirror] = ["web", "mirror"].map(|name| world.host(name).v4());
        resolver.record("www.example.com", web);
        resolver.record("shop.corp.example", web);
        resolver.record("mirror.example.org", mirror);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        laptop.ip("route add default via 192.168.10.1").expect("ip");
        let fetch = |options: &[&str], name: &str| {
            let script = format!("curl -sS http://{name}/; getent ahostsv4 {name} | head -1");
            let output = inside(laptop, options, &script).run().expect("its end");
            output.expect_success().stdout()
        };
        let page = fetch(&[], "www.example.com");
        // The name has its own address inside, and none that stands for it.
        assert!(
            page.starts_with(&format!("hello from web\n{web} ")),
            "{page}"
        );
        assert_eq!(TinyProxy::requests(), ["CONNECT www.example.com:80"]);
        // A rule for the address means the address, and the proxy is told no name of the company.
        let by_address = [
            format!("CONNECT {web}:80"),
            "CONNECT www.example.com:80".to_owned(),
        ];
        fetch(&["--allow", &web.to_string()], "www.example.com");
        assert_eq!(TinyProxy::requests(), by_address);
        fetch(&[], "shop.corp.example");
        assert_eq!(TinyProxy::requests(), by_address);
        // What needs no proxy, by its name.
        let page = fetch(&["--no-proxy", "example.org"], "mirror.example.org");
        assert!(page.starts_with("hello from mirror\n"), "{page}");
        assert_eq!(TinyProxy::requests(), by_address);
        let peers = |requests: Vec<stockade_world::Request>| -> Vec<String> {
            requests.iter().map(|it| it.peer.ip().to_string()).collect()
        };
        assert_eq!(peers(net.web.requests().all()), ["10.20.0.9"; 3]);
        assert!(!peers(net.mirror.requests().all()).contains(&"10.20.0.9".to_owned()));
    });
}

#[test]
fn what_is_near_and_what_needs_no_proxy_is_reached_directly() {
    test(&company(), |world| {
        let net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        // A default route that works: what needs no proxy uses it.
        laptop.ip("route add default via 192.168.10.1").expect("ip");
        let script = "curl -sS http://192.168.10.21/; curl -sS http://151.101.1.69/; \
            curl -sS http://93.184.216.34/";
        let options = ["--allow", "192.168.10.21", "--no-proxy", "151.101.0.0/16"];
        let output = inside(laptop, &options, script).run().expect("its end");
        let wanted = "hello from device\nhello from mirror\nhello from web\n";
        assert_eq!(output.expect_success().stdout(), wanted);
        assert_eq!(TinyProxy::requests(), ["CONNECT 93.184.216.34:80"]);
        let by = |requests: Vec<stockade_world::Request>| requests[0].peer.ip().to_string();
        assert_eq!(by(net.web.requests().all()), "10.20.0.9");
        assert_ne!(by(net.mirror.requests().all()), "10.20.0.9");
    });
}
