//! A token shows nowhere: not in what is printed or logged, not in any program's arguments or
//! environment.

use std::fs;

use stockade_world::{World, test};

use super::{CLASSIC, FINE, auth, log_in, run, serve, store, world};

/// Runs a program under strace, with a text at its standard input. Returns what every program that
/// it started got as arguments and environment, and what was printed.
fn traced(world: &World, words: &[&str], input: &str) -> (String, String) {
    let trace = world.laptop().home().join("trace");
    let strace = world.laptop().command("strace");
    let strace = strace.args(["-qq", "-f", "-v", "-s", "9999", "-e", "trace=execve", "-o"]);
    let command = strace.arg(&trace).args(words).input(input);
    let output = run(command).expect_success();
    let calls = fs::read_to_string(&trace).expect("a trace");
    (calls, output.stdout() + &output.stderr())
}

const PRODUCT: &str = "/run/world/bin/stockade";

#[test]
fn no_program_has_the_token_in_its_arguments_or_environment() {
    test(&world(), |world| {
        let _forge = serve(world);
        let control = ["env", &format!("x={FINE}"), "true", FINE];
        let (calls, _) = traced(world, &control, "");
        assert!(calls.matches(FINE).count() >= 3, "{calls}");

        let input = format!("{FINE}\n");
        let (calls, said) = traced(world, &[PRODUCT, "auth", "github"], &input);
        assert!(
            calls.contains("\"/usr/bin/curl\", \"-q\", \"--config\", \"-\""),
            "{calls}"
        );
        assert!(
            !calls.contains(FINE) && !said.contains(FINE),
            "{calls} {said}"
        );
        // curl gets nothing of the environment but what the network needs.
        let curl = calls.lines().find(|call| call.contains("/usr/bin/curl"));
        assert!(!curl.unwrap_or_default().contains("HOME="), "{curl:?}");

        let (calls, said) = traced(world, &[PRODUCT, "auth", "status"], "");
        assert!(calls.contains("/usr/bin/curl"), "{calls}");
        assert!(
            !calls.contains(FINE) && !said.contains(FINE),
            "{calls} {said}"
        );

        // A session: everything outside, and everything inside, too.
        let count = "grep -c github_pat_ /run/stockade/logins/github.com";
        let run = [PRODUCT, "run", "--github", "--", "bash", "-c", count];
        let (calls, said) = traced(world, &run, "");
        assert!(calls.contains("/run/stockade/init"), "{calls}");
        assert!(said.starts_with("1\n"), "{said}");
        assert!(
            !calls.contains(FINE) && !said.contains(FINE),
            "{calls} {said}"
        );
    });
}

#[test]
fn nobody_sees_the_token_in_a_list_of_processes() {
    test(&world(), |world| {
        let _forge = serve(world);
        log_in(world, &["github"], FINE).expect_success();
        let list = || {
            let line = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'";
            let list = world.laptop().shell(line).run().expect("cat ends");
            list.stdout()
        };
        let hold = "grep -c pat_ /run/stockade/logins/github.com; read -r end";
        let command = ["run", "--github", "--", "bash", "-c", hold];
        let mut session = world.laptop().stockade(command).spawn().expect("a session");
        session.expect("1\n").expect("it has the login");
        let seen = list();
        assert!(seen.contains("--github") && !seen.contains(FINE), "{seen}");
        // The control: such a list has what programs are given.
        let given = ["-c", "echo up; read -r end", FINE];
        let control = world.laptop().command("bash").args(given).spawn();
        control
            .as_ref()
            .expect("it runs")
            .expect("up")
            .expect("it runs");
        assert!(list().contains(FINE));
        session.write("\n").expect("it ends");
        session.wait().expect("it ends").expect_success();
    });
}

#[test]
fn no_plan_no_check_and_no_log_has_the_token() {
    test(&world(), |world| {
        let _forge = serve(world);
        log_in(world, &["github"], FINE).expect_success();
        let commands: [&[&str]; 7] = [
            &["plan", "--github"],
            &["plan", "--github", "--json"],
            &["config", "show"],
            &["explain", "github.com", "--github"],
            &["doctor"],
            &[
                "run",
                "--github",
                "--",
                "bash",
                "-c",
                "grep -c pat_ ~/.config/gh/hosts.yml",
            ],
            &["log"],
        ];
        for words in commands {
            let output = run(world.laptop().stockade(words));
            let said = output.stdout() + &output.stderr();
            assert!(
                !said.is_empty() && !said.contains(FINE),
                "{words:?}: {said}"
            );
        }
        let plan = run(world.laptop().stockade(["plan", "--github"])).stdout();
        assert!(
            plan.contains("login       /run/stockade/logins/github.com "),
            "{plan}"
        );
        let state = store(world);
        let state = state.parent().expect("a directory").display().to_string();
        let look = format!("grep -rl {FINE} {state}; ls {state}/sessions >/dev/null || ls {state}");
        let found = world
            .laptop()
            .shell(&look)
            .run()
            .expect("grep ends")
            .stdout();
        assert_eq!(
            found.lines().next(),
            Some(&*format!("{state}/logins/github/github.com/login.json"))
        );
        assert_eq!(found.matches("login.json").count(), 1, "{found}");
    });
}

#[test]
fn the_users_own_logins_and_settings_stay_as_they_are() {
    test(&world(), |world| {
        let _forge = serve(world);
        let sum = "cd ~ && find . -path ./.local/state/stockade -prune -o -path ./project -prune -o \
                   -type f -print0 | sort -z | xargs -0 sha256sum";
        let sum = || {
            world
                .laptop()
                .shell(sum)
                .run()
                .expect("it ends")
                .expect_success()
                .stdout()
        };
        // A first session makes what sessions make.
        run(world.laptop().stockade(["run", "--github", "--", "true"])).expect_success();
        let before = sum();
        assert!(before.contains(".config/gh/hosts.yml"), "{before}");
        log_in(world, &["github"], CLASSIC).expect_success();
        log_in(world, &["github"], FINE).expect_success();
        let script = "gh config set editor evil; gh api user; git config --list";
        run(world
            .laptop()
            .stockade(["run", "--github", "--", "bash", "-c", script]));
        run(auth(world, &["status"])).expect_success();
        run(auth(world, &["remove", "github"])).expect_success();
        assert_eq!(sum(), before);
    });
}

#[test]
fn the_callers_curl_settings_do_not_count_and_its_proxy_does() {
    test(&world(), |world| {
        let _forge = serve(world);
        let home = world.laptop().home();
        let trace = home.join("curl-trace");
        fs::write(
            home.join(".curlrc"),
            format!("trace-ascii = \"{}\"\n", trace.display()),
        )
        .expect("write");
        log_in(world, &["github"], FINE).expect_success();
        assert!(!trace.exists());
        // The control: it counts for curl itself.
        let line = "curl -s https://api.github.com/user";
        world
            .laptop()
            .shell(line)
            .run()
            .expect("curl ends")
            .expect_success();
        assert!(trace.exists());
        let status = auth(world, &["status"]).env("https_proxy", "http://127.0.0.1:1");
        let said = run(status).expect_success().stdout();
        assert!(
            said.contains("could not ask") && said.contains("127.0.0.1"),
            "{said}"
        );
        let status = auth(world, &["status"]).env("SSL_CERT_FILE", "/dev/null");
        let status = status.env("CURL_CA_BUNDLE", "/dev/null");
        let said = run(status).expect_success().stdout();
        assert!(
            said.contains("could not ask") && said.contains("curl: (77)")
                || said.contains("curl: (60)"),
            "{said}"
        );
    });
}
