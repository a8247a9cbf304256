//! How a command ends, as its caller sees it (F12).

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Caller, WALLED, output, run};

#[test]
fn the_commands_exit_code_is_the_wardens() {
    let caller = Caller::new();
    for code in [0, 1, 7, 125, 126, 127, 255] {
        let (got, ..) = run(caller.script(&format!("exit {code}")));
        assert_eq!(got, code);
    }
}

#[test]
fn a_command_that_a_signal_kills_exits_with_128_and_its_number() {
    let caller = Caller::new();
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("HUP", 129), ("SEGV", 139)] {
        let (got, ..) = run(caller.script(&format!("kill -s {signal} $$")));
        assert_eq!(got, code, "{signal}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_127_and_named() {
    let caller = Caller::new();
    for program in ["no-such-program", "/no/such/program", "./no-such-program"] {
        let (code, _, messages) = run(caller.walled(&[program]));
        assert_eq!(code, 127, "{messages}");
        assert!(messages.contains(program), "{messages}");
    }
}

#[test]
fn a_command_that_is_only_hidden_is_said_to_be() {
    let caller = Caller::new();
    let bin = caller.home().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("hidden-tool");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();

    let mut command = caller.walled(&["hidden-tool"]);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("PATH", path);
    let (code, _, messages) = run(command);
    assert_eq!(code, 127);
    assert!(
        messages.contains("not visible in the sandbox"),
        "{messages}"
    );
    assert!(messages.contains(program.to_str().unwrap()), "{messages}");
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    let caller = Caller::new();
    let project = caller.project();
    fs::write(project.join("no-permission"), "#!/bin/sh\n").unwrap();
    let lost = project.join("no-interpreter");
    fs::write(&lost, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&lost, fs::Permissions::from_mode(0o755)).unwrap();
    for program in ["./no-permission", "./no-interpreter", "/etc"] {
        let (code, _, messages) = run(caller.walled(&[program]));
        assert_eq!(code, 126, "{program}: {messages}");
        assert!(messages.contains(program), "{messages}");
    }
}

#[test]
fn a_script_without_a_first_line_runs_as_from_a_shell() {
    let caller = Caller::new();
    let script = caller.project().join("script");
    fs::write(&script, "exit 9\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, ..) = run(caller.walled(&["./script"]));
    assert_eq!(code, 9);
}

#[test]
fn a_program_in_the_project_is_found_by_path_only() {
    let caller = Caller::new();
    let planted = caller.project().join("ls");
    fs::write(&planted, "#!/bin/sh\necho planted\n").unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = caller.walled(&["ls"]);
    command.env("PATH", format!(":.:{}", "/usr/bin:/bin"));
    assert_eq!(output(command), "ls\n");
    assert_eq!(output(caller.walled(&["./ls"])), "planted\n");
}

#[test]
fn arguments_pass_as_they_are() {
    let caller = Caller::new();
    let arguments = ["", " ", "a\nb", "--", "-x", "$HOME", "*", "\x03\u{e9}"];
    let mut command = caller.walled(&["printf", "<%s>"]);
    command.args(arguments);
    let expected: String = arguments.iter().map(|a| format!("<{a}>")).collect();
    assert_eq!(output(command), expected);
}

#[test]
fn a_refused_workspace_is_125_with_the_reason() {
    let caller = Caller::new();
    let link = caller.project().join("link");
    std::os::unix::fs::symlink(caller.home(), &link).unwrap();
    let parent = caller.home().parent().unwrap().to_owned();
    for workspace in ["/", "/usr", "/tmp", "/etc/ssl"]
        .map(Into::into)
        .into_iter()
        .chain([caller.home(), link, parent, caller.home().join("missing")])
    {
        let mut command = caller.command(WALLED);
        command
            .arg("--workspace")
            .arg(&workspace)
            .args(["--", "true"]);
        let (code, _, messages) = run(command);
        assert_eq!(code, 125, "{workspace:?}");
        assert!(messages.contains("workspace"), "{messages}");
    }
}

#[test]
fn an_unusable_home_is_125_with_the_reason() {
    let caller = Caller::new();
    for home in ["", "relative", "/no/such/home", "/etc/passwd", "/", "/usr"] {
        let mut command = caller.walled(&["true"]);
        command.env("HOME", home);
        let (code, _, messages) = run(command);
        assert_eq!(code, 125, "{home:?}");
        assert!(messages.contains("HOME"), "{messages}");
    }
}

#[test]
fn a_current_directory_that_is_gone_is_125_with_the_reason() {
    let caller = Caller::new();
    let mut command = caller.command("sh");
    command.args([
        "-c",
        "mkdir gone; cd gone; rmdir ../gone; exec \"$0\" -- true",
        WALLED,
    ]);
    let (code, _, messages) = run(command);
    assert_eq!(code, 125);
    assert!(messages.contains("current directory"), "{messages}");
}
