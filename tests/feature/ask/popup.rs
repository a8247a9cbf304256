//! Questions and notices in a real tmux.

use std::{fs, path::PathBuf, thread::sleep, time::Duration};

use stockade_world::{Laptop, Output, PATIENCE, Standard, eventually, test};

use super::{logged, project_file};
use crate::support::standard;

/// One tmux in another: the window of the outer one is the terminal that shows the inner one.
struct Tmux<'a> {
    laptop: &'a Laptop,
    _directory: tempfile::TempDir,
    inner: PathBuf,
    outer: PathBuf,
}

impl<'a> Tmux<'a> {
    fn start(laptop: &'a Laptop) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let [inner, outer] = ["inner", "outer"].map(|name| directory.path().join(name));
        let tmux = Self {
            laptop,
            _directory: directory,
            inner,
            outer,
        };
        let attach = format!(
            "exec env -u TMUX tmux -f /dev/null -S {} new-session -s agent sh",
            tmux.inner.display()
        );
        let begin = ["new-session", "-d", "-x", "120", "-y", "30", &attach];
        tmux.outer(&begin).expect_success();
        eventually("the inner tmux", PATIENCE, || {
            tmux.inner(&["list-clients"]).stdout().contains("agent")
        })
        .expect("a client");
        tmux
    }

    fn run(&self, socket: &PathBuf, arguments: &[&str]) -> Output {
        let command = self.laptop.command("tmux").args(["-f", "/dev/null", "-S"]);
        let command = command.arg(socket).args(arguments.iter().copied());
        command.run().expect("tmux")
    }

    fn inner(&self, arguments: &[&str]) -> Output {
        self.run(&self.inner, arguments)
    }

    fn outer(&self, arguments: &[&str]) -> Output {
        self.run(&self.outer, arguments)
    }

    /// Types a line into the inner one's window.
    fn line(&self, text: &str) {
        self.inner(&["send-keys", "-l", text]).expect_success();
        self.inner(&["send-keys", "Enter"]).expect_success();
    }

    fn press(&self, key: &str) {
        self.outer(&["send-keys", key]).expect_success();
    }

    /// What the user sees.
    fn screen(&self) -> String {
        self.outer(&["capture-pane", "-p"]).stdout()
    }

    /// What the agent's window holds.
    fn window(&self) -> String {
        self.inner(&["capture-pane", "-p"]).stdout()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        eventually(text, PATIENCE, || self.screen().contains(text))
            .unwrap_or_else(|error| panic!("{error}\n{}", self.screen()));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.inner(&["kill-server"]);
        self.outer(&["kill-server"]);
    }
}

#[test]
fn a_popup_of_tmux_asks_and_keys_answer_it() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop);
        tmux.line(
            "stockade run --quiet --ask -- sh -c 'curl -sS http://192.168.10.21/; \
             curl -sS http://192.168.10.21/; echo $? > code'; touch done",
        );
        tmux.shows("wanted by curl");
        tmux.shows("allowing it opens: tcp://192.168.10.21:80");
        // It is before the agent's window, not in it.
        assert!(
            !tmux.window().contains("wanted by curl"),
            "{}",
            tmux.window()
        );
        // The user may be typing elsewhere: a key right after another does not count.
        let typed = ["send-keys", "x", "o", "Enter"];
        tmux.outer(&typed).expect_success();
        let choose = |key: &str, chosen: &str| {
            // The question before may still be on the screen.
            eventually("a question without an answer", PATIENCE, || {
                let screen = tmux.screen();
                screen.contains("press a key, then Enter") && !screen.contains("Enter?")
            })
            .unwrap_or_else(|error| panic!("{error}\n{}", tmux.screen()));
            tmux.press(key);
            tmux.shows(chosen);
        };
        choose("o", "> o  allow once    Enter?");
        assert!(!tmux.screen().contains("hello from device"));
        tmux.press("Enter");
        tmux.shows("hello from device");
        tmux.shows("wanted by curl");
        choose("d", "> d  deny    Enter?");
        tmux.press("Enter");
        let done = laptop.workspace().join("done");
        eventually("the end", PATIENCE, || done.exists()).expect("the end");
        assert!(
            tmux.window().contains("Couldn't connect"),
            "{}",
            tmux.window()
        );
        let code = fs::read_to_string(laptop.workspace().join("code")).expect("a code");
        assert_eq!(code, "7\n");
        let answers = logged(laptop, "answer");
        let said: Vec<_> = answers
            .iter()
            .map(|it| (&it["answer"], &it["from"]))
            .collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|(_, from)| *from == "tmux"), "{said:?}");
        assert!(project_file(laptop).is_none());
    });
}

/// A program inside sees what the user types to it, and chooses the moment of its question.
#[test]
fn p08_the_end_of_a_sentence_answers_no_question() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop);
        tmux.line("stockade run --quiet --ask -- curl -sS http://192.168.10.21/; touch done");
        // The user has paused, and goes on.
        tmux.shows("press a key, then Enter");
        for key in ["t", "e", "s", "t", "s", "Enter"] {
            tmux.press(key);
            sleep(Duration::from_millis(100));
        }
        tmux.shows("press a key, then Enter");
        assert!(logged(laptop, "answer").is_empty(), "{}", tmux.screen());
        // The control: a key by itself is an answer.
        tmux.press("s");
        tmux.shows("> s  allow for this session    Enter?");
        tmux.press("Enter");
        tmux.shows("hello from device");
        let done = laptop.workspace().join("done");
        eventually("the end", PATIENCE, || done.exists()).expect("the end");
        let answers = logged(laptop, "answer");
        assert_eq!(answers[0]["answer"], "session", "{answers:?}");
        assert_eq!(answers.len(), 1);
    });
}

/// Nobody looks at a tmux without a client.
#[test]
fn a_tmux_that_no_terminal_shows_is_nobody_to_ask() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop);
        tmux.inner(&["detach-client", "-s", "agent"])
            .expect_success();
        tmux.line(
            "env -u DISPLAY -u WAYLAND_DISPLAY stockade run --ask -- \
             curl -sS http://192.168.10.21/; echo $? > code; touch done",
        );
        let done = laptop.workspace().join("done");
        eventually("the end", PATIENCE, || done.exists()).expect("the end");
        let code = fs::read_to_string(laptop.workspace().join("code")).expect("a code");
        assert_eq!(code, "7\n");
        let answers = logged(laptop, "answer");
        assert_eq!(answers[0]["from"], "unattended", "{answers:?}");
        assert_eq!(answers.len(), 1);
    });
}

#[test]
fn the_first_denial_of_a_target_is_shown_in_tmux_at_once() {
    // A program whose name would run a command, were it a format of tmux.
    const HOSTILE: &str = "#(touch planted)#[fg=red]";
    const NOTICE: &str = "stockade: denied tcp://192.168.10.21:80";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let tmux = Tmux::start(laptop);
        let run = |options: &str, word: &str| {
            let script = format!(
                "cp /usr/bin/curl \"{HOSTILE}\"; \"./{HOSTILE}\" -s http://192.168.10.21/; \
                 echo {word}; read go"
            );
            fs::write(laptop.workspace().join("script"), script).expect("a file");
            tmux.line(&format!(
                "clear; stockade run --quiet {options} -- sh script"
            ));
        };
        run("", "tried");
        // Not every tmux draws anything else meanwhile.
        tmux.shows(NOTICE);
        tmux.shows("; to allow it: --allow tcp://192.168.10.21:80 (??(touch?u?20?planted)");
        // Nothing of it is in the agent's own window.
        assert!(!tmux.window().contains(NOTICE), "{}", tmux.window());
        tmux.shows("tried");
        tmux.line("");
        eventually("it is gone", PATIENCE, || !tmux.screen().contains(NOTICE)).expect("gone");
        // Whoever does not want it gets none.
        run("--notify off", "again");
        tmux.shows("again\n");
        // Nothing of it was run.
        assert!(!laptop.workspace().join("planted").exists());
        assert!(!laptop.home().join("planted").exists());
        assert!(!tmux.screen().contains(NOTICE), "{}", tmux.screen());
        tmux.line("");
    });
}
