//! Input, output and messages pass untouched (F12).

use std::{
    io::{self, Read, Write},
    process::Stdio,
};

use stockade_world::is_real_root;

use crate::support::{Caller, run};

#[test]
fn a_mebibyte_without_a_newline_passes_through() {
    let caller = Caller::new();
    let mut child = caller
        .walled(&["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Every byte value, so also the terminal's special ones: 0x03, 0x04, 0x1a …
    let sent: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = {
        let sent = sent.clone();
        std::thread::spawn(move || stdin.write_all(&sent).unwrap())
    };
    let mut received = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut received)
        .unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(received == sent, "{} bytes came back", received.len());
}

#[test]
fn messages_stay_apart_from_output() {
    let caller = Caller::new();
    let (code, stdout, stderr) = run(caller.script("echo out; echo err >&2"));
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (0, "out\n", "err\n")
    );
}

#[test]
fn a_closed_reader_ends_the_command_as_without_the_wall() {
    let caller = Caller::new();
    let mut command = caller.command("bash");
    command.args([
        "-c",
        "\"$0\" -- yes | head -n 1; echo ${PIPESTATUS[0]}",
        crate::support::WALLED,
    ]);
    let (_, stdout, _) = run(command);
    // 141: killed by SIGPIPE, which the Rust runtime ignores and the command must not.
    assert_eq!(stdout, "y\n141\n");
}

#[test]
fn closed_standard_descriptors_do_not_break_the_start() {
    let caller = Caller::new();
    let mut command = caller.command("bash");
    let script = "\"$0\" -- bash -c 'exit 3' <&- >&- 2>&-; echo $?";
    command.args(["-c", script, crate::support::WALLED]);
    let (_, stdout, _) = run(command);
    assert_eq!(stdout, "3\n");
}

#[test]
fn inherited_descriptors_are_closed() {
    let caller = Caller::new();
    let mut command = caller.command("bash");
    // Positive control: without the wall the descriptor is there.
    let script = "exec 7</etc/passwd; ls /proc/self/fd | grep -cx 7; \
                  \"$0\" -- ls /proc/self/fd | grep -cx 7";
    command.args(["-c", script, crate::support::WALLED]);
    let (_, stdout, _) = run(command);
    assert_eq!(stdout, "1\n0\n");
}

#[test]
fn a_disk_is_refused_as_a_stream() {
    // Others can open none, as a rule.
    if !is_real_root() {
        return;
    }
    let caller = Caller::new();
    let find = "for disk in /dev/*; do test -b $disk && head -c 1 $disk >/dev/null 2>&1 && echo $disk && break; done";
    let disk = caller.outside(&format!("{find} || true"));
    let disk = disk.trim();
    if disk.is_empty() {
        // Not by a macro: libtest would keep the line to itself.
        let _ =
            io::stderr().write_all(b"NOT TESTED: a_disk_is_refused_as_a_stream: no disk here\n");
        return;
    }
    let mut command = caller.command("bash");
    let script = format!("\"$0\" -- bash -c 'echo ran' < {disk}; echo $?");
    command.args(["-c", &script, crate::support::WALLED]);
    let (_, stdout, stderr) = run(command);
    assert_eq!(stdout, "125\n");
    assert!(stderr.contains("standard input is a disk"), "{stderr}");
}
