//! Screens for docs/live.md. What differs from run to run is made the same: times, numbers of
//! processes and sessions.

use std::fs;

use stockade_world::{Standard, test};

use super::{CURL, question, tmux::Tmux};
use crate::support::{Document, standard};

const DOCUMENT: Document = Document {
    text: include_str!("../../docs/live.md"),
    task: "live",
    print: "STOCKADE_PRINT_LIVE",
};

#[test]
fn the_page_shows_what_the_screen_shows() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop, 80, 18);
        tmux.window("watch", "stockade watch");
        tmux.expect("watch", "no session is running");
        let script = format!(
            "exec 3<> /dev/tcp/192.168.10.21/7; echo hello >&3; head -n 1 <&3; \
             {CURL} http://192.168.10.1/; {CURL} http://www.example.com/; echo code $?; sleep 1000"
        );
        fs::write(laptop.workspace().join("work.sh"), script).expect("a script");
        let options = "--ask --no-internet --allow tcp://192.168.10.21:7";
        tmux.window(
            "work",
            &format!("stockade run --quiet {options} -- bash work.sh"),
        );
        question(&tmux, "tcp://192.168.10.1:80");
        tmux.press("watch", "d");
        tmux.expect("watch", "answered: deny");
        tmux.press("watch", "1");
        // For addresses of both families.
        let screen = question(&tmux, "the name www.example.com, wanted 2 times");
        compare("question", &screen);
        let ps = laptop.stockade(["ps"]).run().expect("an end");
        compare("ps", &ps.expect_success().stdout());

        tmux.press("watch", "s");
        tmux.expect("work", "hello from web\ncode 0\n");
        tmux.expect("watch", "answered: allow for this session");
        tmux.press("watch", "2");
        tmux.expect("watch", "tcp://192.168.10.1:80");
        tmux.press("watch", "Enter");
        let screen = tmux.expect_that("watch", "details, and an end of curl", |screen| {
            screen.contains("to allow it") && screen.contains("1 connection,")
        });
        compare("denial", &screen);
    });
}

fn compare(section: &str, screen: &str) {
    let text = format!("```text\n{}\n```\n", same(screen).trim_end());
    if DOCUMENT.is_to_be_printed() {
        return DOCUMENT.print(section, &text);
    }
    assert_eq!(
        DOCUMENT.section(section),
        Some(text.as_str()),
        "docs/live.md is not what is shown (if that is meant: cargo xtask live --write)"
    );
}

/// With the same times and numbers in each run.
fn same(screen: &str) -> String {
    screen.lines().map(same_line).collect::<Vec<_>>().join("\n")
}

fn same_line(line: &str) -> String {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let words: Vec<&str> = line.split(' ').collect();
    let mut is_after_clock = false;
    let same = |(at, word): (usize, &&str)| {
        let is_time = is_number(word) && words.get(at + 1) == Some(&"s");
        let is_left = words.get(at + 2) == Some(&"left");
        let is_dashed = word.matches('-').count() == 2;
        let is_clock = word.matches(':').count() == 2 && word.len() == 8;
        let is_process = word.starts_with('[') && is_number(word.trim_matches(['[', ']']));
        let same = match () {
            () if is_time && is_left => "57",
            () if is_time => "2",
            () if is_dashed && word.starts_with("17") => "1794915123-412-a1b2",
            () if is_dashed && word.starts_with("20") => "2026-11-17",
            () if is_clock => "12:12:03",
            () if is_process => "[12]",
            () if is_after_clock && is_number(word) => "412",
            () => word,
        };
        is_after_clock = is_clock || (is_after_clock && word.is_empty());
        same.to_owned()
    };
    words
        .iter()
        .enumerate()
        .map(same)
        .collect::<Vec<_>>()
        .join(" ")
}
