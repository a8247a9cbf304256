//! How a command ends, as its caller sees it (F12).

use std::{fs, os::unix::fs::symlink};

use super::{output, run, test};

#[test]
fn the_commands_exit_code_is_the_wardens() {
    test(|caller| {
        for code in [0, 1, 7, 125, 126, 127, 255] {
            let (got, ..) = run(caller.script(&format!("exit {code}")));
            assert_eq!(got, code);
        }
    });
}

#[test]
fn a_command_that_a_signal_kills_exits_with_128_and_its_number() {
    test(|caller| {
        for (signal, code) in [("TERM", 143), ("KILL", 137), ("HUP", 129), ("SEGV", 139)] {
            let (got, ..) = run(caller.script(&format!("kill -s {signal} $$")));
            assert_eq!(got, code, "{signal}");
        }
    });
}

#[test]
fn a_command_that_does_not_exist_is_127_and_named() {
    test(|caller| {
        for program in ["no-such-program", "/no/such/program", "./no-such-program"] {
            let (code, _, messages) = run(caller.stockade(&[program]));
            assert_eq!(code, 127, "{messages}");
            assert!(messages.contains(program), "{messages}");
        }
    });
}

#[test]
fn a_command_that_is_only_hidden_is_said_to_be() {
    test(|caller| {
        let program = caller.home().join("bin/hidden-tool");
        caller.program(&program, "#!/bin/sh\n");
        // A link in the workspace has nothing shown.
        symlink(&program, caller.project().join("tool")).unwrap();
        let (code, _, messages) = run(caller.stockade(&["./tool"]));
        assert_eq!(code, 127);
        assert!(
            messages.contains("not visible in the sandbox"),
            "{messages}"
        );
        assert!(messages.contains("./tool"), "{messages}");
        // Without one, the program that is run is shown.
        output(caller.stockade(&[program.to_str().unwrap()]));
    });
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    test(|caller| {
        let project = caller.project();
        fs::write(project.join("no-permission"), "#!/bin/sh\n").unwrap();
        caller.program(project.join("no-interpreter"), "#!/no/such/interpreter\n");
        for program in ["./no-permission", "./no-interpreter", "/etc"] {
            let (code, _, messages) = run(caller.stockade(&[program]));
            assert_eq!(code, 126, "{program}: {messages}");
            assert!(messages.contains(program), "{messages}");
        }
    });
}

#[test]
fn a_script_without_a_first_line_runs_as_from_a_shell() {
    test(|caller| {
        caller.program(caller.project().join("script"), "exit 9\n");
        let (code, ..) = run(caller.stockade(&["./script"]));
        assert_eq!(code, 9);
    });
}

#[test]
fn a_program_in_the_project_is_found_by_path_only() {
    test(|caller| {
        caller.program(caller.project().join("ls"), "#!/bin/sh\necho planted\n");
        let command = caller
            .stockade(&["ls"])
            .env("PATH", format!(":.:{}", "/usr/bin:/bin"));
        assert_eq!(output(command), "ls\n");
        assert_eq!(output(caller.stockade(&["./ls"])), "planted\n");
    });
}

#[test]
fn arguments_pass_as_they_are() {
    test(|caller| {
        let arguments = ["", " ", "a\nb", "--", "-x", "$HOME", "*", "\x03\u{e9}"];
        let command = caller.stockade(&["printf", "<%s>"]).args(arguments);
        let expected: String = arguments.iter().map(|a| format!("<{a}>")).collect();
        assert_eq!(output(command), expected);
    });
}

#[test]
fn a_refused_workspace_is_125_with_the_reason() {
    test(|caller| {
        let link = caller.project().join("link");
        symlink(caller.home(), &link).unwrap();
        let parent = caller.home().parent().unwrap().to_owned();
        for workspace in ["/", "/usr", "/tmp", "/etc/ssl"]
            .map(Into::into)
            .into_iter()
            .chain([caller.home(), link, parent])
        {
            let command = caller.stockade(&["true"]).directory(&workspace);
            let (code, _, messages) = run(command);
            assert_eq!(code, 125, "{workspace:?}");
            assert!(messages.contains("workspace"), "{messages}");
        }
    });
}

#[test]
fn an_unusable_home_is_125_with_the_reason() {
    test(|caller| {
        for home in ["", "relative", "/no/such/home", "/etc/passwd", "/", "/usr"] {
            let command = caller.stockade(&["true"]).env("HOME", home);
            let (code, _, messages) = run(command);
            assert_eq!(code, 125, "{home:?}");
            // A file is found to be no home when settings are looked for in it.
            let is_named = messages.contains("HOME") || messages.contains("/etc/passwd/");
            assert!(is_named, "{messages}");
        }
    });
}

#[test]
fn a_current_directory_that_is_gone_is_125_with_the_reason() {
    test(|caller| {
        let command = caller.command("sh").args([
            "-c",
            "mkdir gone; cd gone; rmdir ../gone; exec stockade run -- true",
        ]);
        let (code, _, messages) = run(command);
        assert_eq!(code, 125);
        assert!(messages.contains("current directory"), "{messages}");
    });
}
