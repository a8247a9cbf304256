//! Input, output and messages pass untouched (F12).

use super::{output, run, test};

#[test]
fn a_mebibyte_without_a_newline_passes_through() {
    test(|caller| {
        // Every byte value, so also the terminal's special ones: 0x03, 0x04, 0x1a …
        let sent: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
        let cat = caller.stockade(&["cat"]).input(sent.clone());
        let received = cat.run().unwrap().expect_success().stdout;
        assert!(received == sent, "{} bytes came back", received.len());
    });
}

#[test]
fn messages_stay_apart_from_output() {
    test(|caller| {
        let (code, stdout, stderr) = run(caller.script("echo out; echo err >&2"));
        assert_eq!(
            (code, stdout.as_str(), stderr.as_str()),
            (0, "out\n", "err\n")
        );
    });
}

#[test]
fn a_closed_reader_ends_the_command_as_without_the_wall() {
    test(|caller| {
        let script = "stockade run -- yes | head -n 1; echo ${PIPESTATUS[0]}";
        let stdout = output(caller.command("bash").args(["-c", script]));
        // 141: killed by SIGPIPE, which the Rust runtime ignores and the command must not.
        assert_eq!(stdout, "y\n141\n");
    });
}

#[test]
fn closed_standard_descriptors_do_not_break_the_start() {
    test(|caller| {
        let script = "stockade run -- bash -c 'exit 3' <&- >&- 2>&-; echo $?";
        let stdout = output(caller.command("bash").args(["-c", script]));
        assert_eq!(stdout, "3\n");
    });
}

#[test]
fn inherited_descriptors_are_closed() {
    test(|caller| {
        // Positive control: without the wall the descriptor is there.
        let script = "exec 7</etc/passwd; ls /proc/self/fd | grep -cx 7; \
                      stockade run -- ls /proc/self/fd | grep -cx 7";
        let (_, stdout, _) = run(caller.command("bash").args(["-c", script]));
        assert_eq!(stdout, "1\n0\n");
    });
}
