//! A real tmux on the laptop, with windows of a given size that programs draw in.

use std::fs;

use stockade_world::{Command, Laptop, PATIENCE, eventually};
use tempfile::TempDir;

pub(crate) struct Tmux<'l> {
    laptop: &'l Laptop,
    directory: TempDir,
}

impl<'l> Tmux<'l> {
    /// With one window, in which a shell runs.
    pub(crate) fn start(laptop: &'l Laptop, columns: u16, rows: u16) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let settings =
            "set -g status off\nset -g default-shell /bin/sh\nset -g remain-on-exit on\n";
        fs::write(directory.path().join("settings"), settings).expect("settings");
        let tmux = Self { laptop, directory };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.run(&[
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-n",
            "first",
            "sleep 1000",
        ]);
        tmux
    }

    /// Runs a line in a new window of this name.
    pub(crate) fn window(&self, name: &str, line: &str) {
        self.run(&["new-window", "-d", "-n", name, line]);
    }

    /// Presses a key, as tmux names it, or types letters.
    pub(crate) fn press(&self, window: &str, key: &str) {
        self.run(&["send-keys", "-t", window, key]);
    }

    pub(crate) fn resize(&self, window: &str, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-t", window, "-x", &columns, "-y", &rows]);
    }

    /// What a window shows.
    pub(crate) fn screen(&self, window: &str) -> String {
        self.run(&["capture-pane", "-p", "-t", window])
    }

    /// The same with colours.
    pub(crate) fn coloured(&self, window: &str) -> String {
        self.run(&["capture-pane", "-p", "-e", "-t", window])
    }

    /// What a window shows once it has this text.
    #[track_caller]
    pub(crate) fn expect(&self, window: &str, text: &str) -> String {
        self.expect_that(window, text, |screen| screen.contains(text))
    }

    #[track_caller]
    pub(crate) fn expect_that(
        &self,
        window: &str,
        what: &str,
        is_there: impl Fn(&str) -> bool,
    ) -> String {
        let mut screen = String::new();
        let seen = eventually(what, PATIENCE, || {
            screen = self.screen(window);
            is_there(&screen)
        });
        assert!(seen.is_ok(), "{what} is not in window {window}:\n{screen}");
        screen
    }

    /// Waits for the end of what runs in a window.
    #[track_caller]
    pub(crate) fn expect_end(&self, window: &str) {
        let ended = eventually("an end", PATIENCE, || {
            self.ask(window, "#{pane_dead}") == "1\n"
        });
        assert!(ended.is_ok(), "{}", self.screen(window));
    }

    /// Asks tmux about a window.
    pub(crate) fn ask(&self, window: &str, format: &str) -> String {
        self.run(&["display-message", "-p", "-t", window, format])
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).run();
        output.expect("tmux").expect_success().stdout()
    }

    fn command(&self) -> Command {
        let path = |name: &str| self.directory.path().join(name);
        let command = self.laptop.command("tmux").arg("-f").arg(path("settings"));
        // That of the desktop is a decoy.
        command
            .arg("-S")
            .arg(path("socket"))
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").run();
    }
}
