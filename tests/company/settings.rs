//! What is said of a proxy: before a session, by `explain`, `plan`, `doctor` and `verify`, and when
//! a program inside tries to reach the one that a variable names.

use stockade_world::{Standard, test};

use super::network::{LOGIN, PASSWORD, PROXY, TinyProxy, company, login_file, settle};

#[test]
fn who_tries_the_proxy_of_a_variable_is_told_to_have_stockade_use_it() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let variable = PROXY.replace("http://", &format!("http://{LOGIN}@"));
        // As some write it, where a search domain completes it.
        let short = variable.replace("proxy.corp.example", "proxy");
        let curl = ["--", "curl", "-sS", "https://mirror.example.org/"];
        let closed = ["run", "--no-internet", "--allow", "mirror.example.org"];
        for (options, variable) in [
            (&["run"][..], &variable),
            (&closed, &variable),
            (&["run"], &short),
            (&closed, &short),
        ] {
            let session = laptop.stockade(options).args(curl);
            let output = session.env("https_proxy", variable).run().expect("its end");
            assert_ne!(output.code(), 0);
            let told = output.stderr();
            assert!(told.contains("to allow it: --proxy environment"), "{told}");
            assert!(told.contains("proxy = \"environment\""), "{told}");
            assert!(!told.contains("--allow tcp://10.20.0.9:3128"), "{told}");
            assert!(!told.contains("proxy.corp.example:3128"), "{told}");
            // What it says works.
            let session = laptop
                .stockade(options)
                .args(["--proxy", "environment"])
                .args(curl);
            let output = session.env("https_proxy", variable).run().expect("its end");
            assert_eq!(output.expect_success().stdout(), "hello from mirror\n");
        }
    });
}

#[test]
fn the_proxy_in_use_is_shown_and_an_allowed_proxy_is_warned_of() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let login = login_file(laptop);
        let said = |words: &[&str]| {
            let output = laptop.stockade(words).run().expect("its end");
            let said = format!("{}{}", output.stdout(), output.stderr());
            assert!(!said.contains(PASSWORD), "{said}");
            said
        };
        let options = ["--proxy", PROXY, "--proxy-login", &login];
        let plan = said(&[&["plan"][..], &options].concat());
        assert!(
            plan.contains("proxy       http://proxy.corp.example:3128, with a login"),
            "{plan}"
        );
        let explain = |target: &str| said(&[&["explain"][..], &options, &[target]].concat());
        let known = explain("https://www.example.com");
        assert!(
            known.contains("https://www.example.com: allowed\n") || known.contains(": allowed"),
            "{known}"
        );
        assert!(
            known.contains("this machine's resolvers do not know it"),
            "{known}"
        );
        let near = explain("http://wiki.corp.example");
        assert!(near.contains("no address is known for it"), "{near}");
        let proxy = explain("tcp://10.20.0.9:3128");
        assert!(proxy.contains("denied: 10.20.0.9 is the proxy"), "{proxy}");
        let doctor = said(&["doctor"]);
        assert!(!doctor.contains("proxy"), "{doctor}");
        let output = laptop.stockade(["doctor"]).env("https_proxy", PROXY).run();
        let doctor = output.expect("its end").stdout();
        assert!(doctor.contains("--proxy environment"), "{doctor}");

        // The variable names it by its name, the rule by its address.
        let allow = ["run", "--allow", "10.20.0.9", "--", "true"];
        let output = laptop.stockade(allow).env("http_proxy", PROXY).run();
        let told = output.expect("its end").expect_success().stderr();
        assert!(
            told.contains("WARNING: rule `10.20.0.9` (--allow)"),
            "{told}"
        );
        assert!(told.contains("--proxy environment"), "{told}");
        let without = laptop.stockade(allow).run().expect("its end");
        assert!(!without.stderr().contains("proxy"), "{without:?}");
        // A name that leads to it allows it as well, and so does the internet where it is there.
        let public = "http://93.184.216.34:3128";
        let short = "http://proxy:3128";
        for (option, variable, setting) in [
            (
                "--near=*.corp.example",
                PROXY,
                "rule `*.corp.example` (--near)",
            ),
            (
                "--near=*.corp.example",
                short,
                "rule `*.corp.example` (--near)",
            ),
            (
                "--device=p=proxy.corp.example:3128",
                PROXY,
                "rule `proxy.corp.example:3128` (--device)",
            ),
            ("--near=tcp://*.corp.example:80", PROXY, ""),
            ("--allow=proxy.corp.example", PROXY, ""),
            ("--internet=true", PROXY, ""),
            ("--internet=false", public, ""),
        ] {
            let session = laptop.stockade(["run", option, "--", "true"]);
            let output = session.env("https_proxy", variable).run();
            let told = output.expect("its end").expect_success().stderr();
            let warning = format!("WARNING: {setting} allows the proxy that https_proxy names");
            let is_warned = !setting.is_empty();
            assert_eq!(told.contains(&warning), is_warned, "{option}: {told}");
            assert_eq!(told.contains("WARNING"), is_warned, "{option}: {told}");
        }
        laptop.ip("route add default via 192.168.10.1").expect("ip");
        let session = laptop.stockade(["run", "--", "true"]);
        let output = session.env("https_proxy", public).run().expect("its end");
        let warning = "WARNING: the open internet allows the proxy that https_proxy names";
        assert!(output.stderr().contains(warning), "{output:?}");
        // A relay on this machine, by its port.
        let relay = ["run", "--proxy", "http://localhost:3128", "--host-port"];
        for (port, is_warned) in [("3128", true), ("3129", false)] {
            let output = laptop.stockade(relay).args([port, "--", "true"]).run();
            let told = output.expect("its end").expect_success().stderr();
            let warning = "WARNING: host port 3128 (--host-port) allows the proxy in use";
            assert_eq!(told.contains(warning), is_warned, "{told}");
        }
        let explained = laptop
            .stockade(["explain", "--allow", "10.20.0.9", "tcp://10.20.0.9:3128"])
            .env("http_proxy", PROXY)
            .run()
            .expect("its end");
        assert!(
            explained.stderr().contains("WARNING: rule `10.20.0.9`"),
            "{explained:?}"
        );
    });
}

#[test]
fn verify_passes_in_a_company() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let config = laptop.home().join(".config/stockade/config.toml");
        let login = login_file(laptop);
        let text = format!("[network]\nproxy = \"{PROXY}\"\nproxy_login = \"{login}\"\n");
        std::fs::write(&config, text).expect("a file");
        let output = laptop
            .stockade(["verify"])
            .limit(std::time::Duration::from_secs(150));
        let output = output.run().expect("its end");
        assert_eq!(output.code(), 0, "{output:?}");
        assert!(!format!("{output:?}").contains(PASSWORD));
        let line = ["run", "--", "curl", "-sS", "http://www.example.com/"];
        let output = laptop.stockade(line).run().expect("its end");
        assert_eq!(output.expect_success().stdout(), "hello from web\n");
    });
}
