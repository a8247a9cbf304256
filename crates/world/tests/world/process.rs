//! Running programs with pipes.

use std::time::Duration;

use stockade_world::{Builder, Error, Signal, eventually, test};

#[test]
fn output_streams_and_exit_code_are_told_apart() {
    test(&Builder::new(), |world| {
        let laptop = world.laptop();
        let output = laptop
            .shell("echo out; echo err >&2; exit 3")
            .run()
            .unwrap();
        assert_eq!(output.code(), 3);
        assert_eq!(
            (output.stdout(), output.stderr()),
            ("out\n".into(), "err\n".into())
        );
        let killed = laptop.shell("kill -TERM $$").run().unwrap();
        assert_eq!(killed.code(), 128 + 15);
        assert!(matches!(
            laptop.command("no-such-program").run(),
            Err(Error::Io { .. })
        ));
    });
}

#[test]
fn input_is_fed_whole() {
    test(&Builder::new(), |world| {
        let input = vec![b'x'; 1 << 20];
        let output = world.laptop().command("wc").arg("-c").input(input).run();
        assert_eq!(output.unwrap().expect_success().stdout().trim(), "1048576");
    });
}

#[test]
fn environment_and_directory_can_be_changed() {
    test(&Builder::new(), |world| {
        let output = world
            .laptop()
            .shell("echo $PWD $HOME $USER $AWS_SECRET_ACCESS_KEY")
            .directory("/tmp")
            .env("HOME", "/tmp/other")
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .run();
        assert_eq!(output.unwrap().stdout(), "/tmp /tmp/other dev\n");
    });
}

/// The pid is the program's own: a signal reaches it and nobody else.
#[test]
fn signals_reach_the_program_itself() {
    test(&Builder::new(), |world| {
        let line = "trap 'echo caught; exit 7' USR1; echo $$; while :; do sleep 0.01; done";
        let shell = world.laptop().shell(line).spawn().unwrap();
        let pid = shell.expect("\n").unwrap();
        assert_eq!(pid, shell.pid().as_raw_nonzero().to_string());
        shell.signal(Signal::USR1).unwrap();
        shell.expect("caught").unwrap();
        assert_eq!(shell.wait().unwrap().code(), 7);
    });
}

/// Nothing of the test, of cargo or of the world is handed down.
#[test]
fn programs_inherit_three_descriptors() {
    test(&Builder::new(), |world| {
        let output = world.laptop().shell("exec ls /proc/self/fd").run().unwrap();
        // The fourth is the directory that ls reads.
        assert_eq!(output.expect_success().stdout(), "0\n1\n2\n3\n");
    });
}

#[test]
fn a_conversation_over_pipes() {
    test(&Builder::new(), |world| {
        let mut cat = world.laptop().command("cat").spawn().unwrap();
        cat.write("one\n").unwrap();
        cat.expect("one\n").unwrap();
        assert!(!cat.has_ended().unwrap());
        cat.write("two\n").unwrap();
        cat.expect("two\n").unwrap();
        assert_eq!(cat.wait().unwrap().stdout(), "one\ntwo\n");
    });
}

#[test]
fn the_time_limit_kills_the_whole_group() {
    test(&Builder::new(), |world| {
        let limit = Duration::from_millis(200);
        let line = "echo started; sleep 4242 & wait";
        let error = world.laptop().shell(line).limit(limit).run().unwrap_err();
        assert!(error.to_string().contains("started"), "{error}");
        let pgrep = || {
            let output = world
                .laptop()
                .shell("grep -l 4242 /proc/[0-9]*/cmdline")
                .run();
            // The grep finds itself, and the shell that runs it.
            output.unwrap().stdout().lines().count()
        };
        let baseline = "the sleeper's end";
        eventually(baseline, Duration::from_secs(5), || pgrep() <= 2).unwrap();
    });
}

#[test]
fn what_holds_the_output_open_is_noticed() {
    test(&Builder::new(), |world| {
        let line = "sleep 30 & exit 0";
        let limit = Duration::from_millis(300);
        let error = world.laptop().shell(line).limit(limit).run().unwrap_err();
        assert!(
            error.to_string().contains("the end of the output"),
            "{error}"
        );
    });
}
