//! Variables that configuration passes or sets.

use std::fs;

use super::{output, run, test};

#[test]
fn variables_pass_by_name_and_are_set_by_value() {
    test(|caller| {
        let options = [
            "--pass-env",
            "TOKEN",
            "--set-env",
            "MODE=a b\nc",
            "--set-env",
            "TERM=dumb",
        ];
        let command = caller
            .with(
                &options,
                "printf '%s|' \"$TOKEN\" \"$MODE\" \"$TERM\" \"$OTHER\"",
            )
            .env("TOKEN", "t")
            .env("OTHER", "o")
            .env("TERM", "xterm");
        assert_eq!(output(command), "t|a b\nc|dumb||");
    });
}

#[test]
fn the_sandboxes_own_variables_cannot_be_set() {
    test(|caller| {
        for (variable, why) in [
            ("HOME=/", "cannot be set"),
            ("STOCKADE=0", "cannot be set"),
            ("=x", "the variable name is empty"),
        ] {
            let (code, stdout, messages) = run(caller.with(&["--set-env", variable], "echo ran"));
            assert_eq!((code, stdout.as_str()), (125, ""), "{variable}");
            assert!(messages.contains(why), "{messages}");
        }
    });
}

/// A library that says which program loaded it.
const HOOK: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void hook(void) {
    char name[64] = "";
    FILE *file = fopen("/proc/self/comm", "r");
    if (file) { fgets(name, sizeof name, file); fclose(file); }
    fprintf(stderr, "loaded by %s as %d\n", name, getpid());
}
"#;

#[test]
fn a_hook_of_the_loader_passes_on_request_and_to_the_command_alone() {
    test(|caller| {
        let (source, library) = (caller.project().join("h.c"), caller.project().join("h.so"));
        fs::write(&source, HOOK).unwrap();
        let compiler = caller.command("cc").args(["-shared", "-fPIC", "-o"]);
        output(compiler.args([&library, &source]));
        let preload = format!("LD_PRELOAD={}", library.display());
        let without = caller
            .script("exec true")
            .env("LD_LIBRARY_PATH", caller.project());
        assert_eq!(run(without).2, "");
        let (code, _, messages) = run(caller.with(&["--set-env", &preload], "exec true"));
        assert_eq!(code, 0);
        assert!(messages.contains("loaded by bash"), "{messages}");
        // Neither bubblewrap nor process 1.
        assert!(
            !messages.contains("bwrap") && !messages.contains("as 1\n"),
            "{messages}"
        );
    });
}
