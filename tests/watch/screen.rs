//! The screen itself: its size, its colours, what hostile programs write on it, and the terminal
//! before and after.

use std::fs;

use stockade_world::{PATIENCE, Standard, eventually, test};

use super::{CURL, question, session, tmux::Tmux};
use crate::support::standard;

#[test]
fn the_screen_follows_the_size_of_its_window() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let tmux = Tmux::start(world.laptop(), 80, 24);
        tmux.window("watch", "stockade watch");
        let attempt = format!("{CURL} http://192.168.10.21/; echo code $?; sleep 1000");
        tmux.window("work", &session("", &attempt));
        question(&tmux, "tcp://192.168.10.21:80");
        for (columns, rows) in [(60, 15), (200, 50), (30, 8), (80, 24)] {
            tmux.resize("watch", columns, rows);
            // The last line is in its place, and the first one as wide as the window.
            let screen = tmux.expect_that("watch", "the last line", |screen| {
                let lines: Vec<_> = screen.lines().collect();
                lines.len() == usize::from(rows)
                    && lines.last().is_some_and(|line| line.starts_with(" ? help"))
                    && lines
                        .first()
                        .is_some_and(|line| line.starts_with(" stockade: 1 question"))
            });
            let words: String = screen.split_whitespace().collect();
            assert!(words.contains("192.168.10.21:80"), "{screen}");
            let widest = screen.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(columns)), "{screen}");
        }
        // In a window too small for the question, it can be denied only.
        tmux.resize("watch", 20, 8);
        tmux.expect("watch", " d deny   (too smal");
        for key in ["o", "s", "a"] {
            // The note goes away by itself.
            eventually("a note", PATIENCE, || {
                tmux.press("watch", key);
                tmux.screen("watch").contains("the window is too")
            })
            .expect("a note");
        }
        assert!(!tmux.screen("work").contains("code"));
        tmux.press("watch", "d");
        tmux.expect("work", "code 7\n");
    });
}

#[test]
fn there_is_no_colour_with_no_color() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let tmux = Tmux::start(world.laptop(), 80, 24);
        for (window, line) in [
            ("watch", "stockade watch"),
            ("plain", "NO_COLOR=1 stockade watch"),
        ] {
            tmux.window(window, line);
        }
        let attempt = format!("{CURL} http://192.168.10.21/; sleep 1000");
        tmux.window("work", &session("", &attempt));
        question(&tmux, "tcp://192.168.10.21:80");
        tmux.expect("plain", "o allow once");
        let colours = |window: &str| {
            let screen = tmux.coloured(window);
            let codes = screen
                .split("\x1b[")
                .skip(1)
                .filter_map(|rest| rest.split('m').next());
            let colours =
                codes.flat_map(|codes| codes.split(';').filter_map(|code| code.parse::<u8>().ok()));
            colours
                .filter(|code| (30..50).contains(code) && *code != 39 && *code != 49)
                .count()
        };
        assert!(colours("watch") > 0, "the control");
        assert_eq!(colours("plain"), 0);
    });
}

/// A program inside chooses its name, its arguments and the names that it asks for.
#[test]
fn what_a_hostile_program_calls_itself_changes_nothing_on_the_screen() {
    const NAME: &str = "cu\u{1b}[2J\u{1b}[1;1Hrl\u{202e}\u{200b}";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop, 120, 24);
        // The control: as it is, it clears the screen.
        fs::write(laptop.workspace().join("name"), NAME).expect("a file");
        tmux.window("control", "echo before; cat name; sleep 1000");
        tmux.expect_that("control", "its end", |screen| screen.contains("rl"));
        assert!(!tmux.screen("control").contains("before"));

        tmux.window("watch", "stockade watch");
        let script = "cp /usr/bin/curl \"$(cat name)\"; \
            \"./$(cat name)\" -sS --max-time 100 -A \"$(cat name)\" http://192.168.10.21/; \
            curl -sS http://192.168.10.1/; sleep 1000";
        tmux.window("work", &session("", script));
        let screen = question(
            &tmux,
            "tcp://192.168.10.21:80, wanted by \"cu\\u{1b}[2J\\u{1b}[1;1Hrl\\u{202e}\\u{200b}\"",
        );
        assert!(screen.starts_with(" stockade: 1 question"), "{screen}");
        let odd = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{200b}".contains(c));
        assert_eq!(screen.chars().find(|c| odd(*c)), None, "{screen}");
        tmux.press("watch", "i");
        let screen = tmux.expect("watch", "arguments");
        let words: Vec<_> = screen.split_whitespace().collect();
        assert!(words.contains(&"-A"), "{screen}");
        tmux.press("watch", "d");
        // Keys that come together are a paste, which answers nothing.
        tmux.expect("work", "connect to 192.168.10.21 port 80");
        tmux.press("watch", "2");
        let screen = tmux.expect("watch", "192.168.10.21:80 ");
        assert!(screen.starts_with(" stockade: "), "{screen}");
        assert_eq!(screen.chars().find(|c| odd(*c)), None, "{screen}");
    });
}

#[test]
fn the_terminal_is_afterwards_as_it_was_before_however_it_ends() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop, 80, 24);
        for (name, end) in [("q", "q"), ("c", "C-c"), ("killed", ""), ("stopped", "C-z")] {
            let line = "stty -a > before; echo shell; sh -c \"echo \\$\\$ > pid; exec stockade watch\"; \
                echo ended; stty -a > after; read; fg > /dev/null; echo again; cat";
            tmux.window(name, &format!("bash -c 'set -m; {line}'"));
            tmux.expect(name, "no session is running");
            assert_eq!(tmux.ask(name, "#{alternate_on} #{cursor_flag}"), "1 0\n");
            match end {
                "" => {
                    let kill = laptop.command("sh").args(["-c", "kill $(cat pid)"]);
                    kill.run().expect("kill").expect_success();
                }
                key => tmux.press(name, key),
            }
            let screen = tmux.expect(name, "ended");
            assert!(screen.starts_with("shell\n"), "{screen}");
            assert_eq!(
                tmux.ask(name, "#{alternate_on} #{cursor_flag}"),
                "0 1\n",
                "{name}"
            );
            let read = |file: &str| {
                let text = fs::read_to_string(laptop.workspace().join(file));
                text.unwrap_or_default()
            };
            // Written in two steps.
            let is_written = || read("after").lines().count() == read("before").lines().count();
            eventually("the end", PATIENCE, is_written).expect("a file");
            assert_eq!(read("after"), read("before"), "{name}");
            if name == "stopped" {
                // It goes on where it was.
                tmux.press(name, "Enter");
                tmux.expect(name, "no session is running");
                tmux.press(name, "q");
                tmux.expect(name, "again");
            }
            fs::remove_file(laptop.workspace().join("after")).expect("a file less");
        }
    });
}

#[test]
fn without_a_terminal_there_is_an_error_that_says_what_to_do() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let refused = laptop
            .stockade(["watch"])
            .run()
            .expect("an end")
            .expect_code(125);
        assert_eq!(refused.stdout(), "");
        for part in ["not a terminal", "stockade log --follow", "stockade ps"] {
            assert!(refused.stderr().contains(part), "{refused:?}");
        }
        let tmux = Tmux::start(laptop, 120, 24);
        for (window, term) in [
            ("dumb", "TERM=dumb"),
            ("none", "env -u TERM"),
            ("piped", ""),
        ] {
            let end = if window == "piped" { "| cat" } else { "" };
            tmux.window(window, &format!("{term} stockade watch {end}; sleep 1000"));
            let screen = tmux.expect(window, "fix: run it in a terminal");
            assert!(screen.contains("cannot draw a screen"), "{screen}");
        }
        tmux.window("unknown", "stockade watch 99; sleep 1000");
        let screen = tmux.expect("unknown", "`stockade ps` lists those that run");
        assert!(screen.contains("no session 99 is running"), "{screen}");
    });
}
