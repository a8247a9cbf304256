//! Questions and notices on a desktop: a real bus and `notify-send`, and a service that shows
//! notifications as text.

use std::time::Duration;

use stockade_world::{Laptop, Running, Standard, test};

use super::logged;
use crate::support::standard;

const SERVICE: &str = include_str!("desktop.py");
const CURL: &str = "curl -sS --max-time 100 http://192.168.10.21/; echo code $?";

struct Desktop<'a> {
    laptop: &'a Laptop,
    directory: tempfile::TempDir,
    bus: Option<Running>,
    service: Option<Running>,
}

impl<'a> Desktop<'a> {
    /// `kind` says whether its notifications have buttons.
    fn start(laptop: &'a Laptop, kind: &str) -> Self {
        let mut desktop = Self {
            laptop,
            directory: tempfile::tempdir().expect("a directory"),
            bus: None,
            service: None,
        };
        let limit = Duration::from_secs(180);
        let bus = laptop
            .command("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1", "--address"])
            .arg(desktop.address())
            .limit(limit)
            .spawn()
            .expect("a bus");
        bus.expect("unix:path=").expect("a bus");
        desktop.bus = Some(bus);
        let service = laptop
            .command("/usr/bin/python3")
            .args(["-I", "-c", SERVICE, kind])
            .env("DBUS_SESSION_BUS_ADDRESS", desktop.address())
            .limit(limit)
            .spawn()
            .expect("a service");
        service.expect("serving\n").expect("a service");
        desktop.service = Some(service);
        desktop
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.directory.path().join("bus").display())
    }

    fn session(&self, options: &[&str], script: &str) -> Running {
        self.laptop
            .stockade(["run"])
            .args(options)
            .args(["--", "bash", "-c", script])
            .env("DISPLAY", ":99")
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .env_remove("TMUX")
            .limit(Duration::from_secs(120))
            .spawn()
            .expect("a session")
    }

    fn notified(&self) -> String {
        let service = self.service.as_ref().expect("a service");
        service.expect("notified ").expect("a notification");
        service.expect("\n").expect("a line")
    }

    /// The next denial that is shown.
    fn denied(&self) -> String {
        let mut shown = self.notified();
        while shown.starts_with("Stockade asks") {
            shown = self.notified();
        }
        shown
    }

    fn press(&mut self, button: &str) {
        let service = self.service.as_mut().expect("a service");
        service.write(format!("{button}\n")).expect("a button");
    }
}

#[test]
fn a_notification_asks_and_its_buttons_answer() {
    // A program whose name is markup, and would be an option.
    const HOSTILE: &str = "--<b>&amp;x";
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let mut desktop = Desktop::start(laptop, "buttons");
        let hostile = CURL.replacen("curl", &format!("'./{HOSTILE}'"), 1);
        let script = format!("cp /usr/bin/curl './{HOSTILE}'; {hostile}; {CURL}; {CURL}");
        let session = desktop.session(&["--ask"], &script);
        let shown = desktop.notified();
        assert!(shown.starts_with("Stockade asks |"), "{shown}");
        assert!(shown.contains("tcp://192.168.10.21:80"), "{shown}");
        assert!(
            shown.contains("Allowing it opens: tcp://192.168.10.21:80"),
            "{shown}"
        );
        assert!(shown.contains("--?b??amp;x"), "{shown}");
        assert!(!shown.contains(['<', '&']), "{shown}");
        assert!(
            shown.contains("once,Allow once,session,This session"),
            "{shown}"
        );
        desktop.press("once");
        session
            .expect("hello from device\ncode 0\n")
            .expect("a page");
        desktop.notified();
        // Closed is no.
        desktop.press("close");
        session.expect("code 7\n").expect("a denial");
        session.expect("code 7\n").expect("not asked again");
        session.wait().expect("an end").expect_success();
        let answers = logged(laptop, "answer");
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert!(
            answers.iter().all(|it| it["from"] == "desktop"),
            "{answers:?}"
        );
    });
}

#[test]
fn a_desktop_without_buttons_is_nobody_to_ask_but_shows_denials() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let desktop = Desktop::start(laptop, "plain");
        let session = desktop.session(&["--ask", "--notify", "desktop"], CURL);
        session.expect("code 7\n").expect("a denial");
        session.wait().expect("an end").expect_success();
        let answers = logged(laptop, "answer");
        assert!(
            answers.iter().all(|it| it["from"] == "unattended"),
            "{answers:?}"
        );
        // Nobody could answer, so nobody knows yet.
        let denied = "stockade: denied tcp://192.168.10.21:80; \
                      to allow it: --allow tcp://192.168.10.21:80 (curl)";
        let shown = desktop.denied();
        assert!(shown.contains(denied), "{shown}");

        // The first one of a target is shown, and none if that is off.
        for (how, script) in [
            ("desktop", format!("{CURL}; {CURL}")),
            ("off", CURL.to_owned()),
            ("desktop", CURL.replace("192.168.10.21", "10.20.0.5")),
        ] {
            let session = desktop.session(&["--notify", how], &script);
            session.wait().expect("an end").expect_success();
        }
        let shown = desktop.denied();
        assert!(shown.contains(denied), "{shown}");
        let shown = desktop.denied();
        assert!(shown.contains("denied tcp://10.20.0.5:80"), "{shown}");
    });
}
