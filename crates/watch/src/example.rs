//! A session as tests have it.

use stockade_warden::{
    Process,
    live::{HeldQuestion, LiveCounts, LiveFlow, LiveSnapshot, QuestionKind},
};

pub(crate) fn process(exe: &str) -> Process {
    let name = exe.rsplit('/').next().unwrap_or_default();
    Process {
        pid: 812,
        exe: exe.to_owned(),
        argv: [name, "-sS", "https://api.example.com/"]
            .map(str::to_owned)
            .to_vec(),
        parents: ["bash", "claude"].map(str::to_owned).to_vec(),
    }
}

pub(crate) fn question(id: u64, name: &str) -> HeldQuestion {
    HeldQuestion {
        id,
        kind: QuestionKind::Flow,
        target: "tcp://203.0.113.10:443".to_owned(),
        protocol: Some("tcp".to_owned()),
        port: Some(443),
        address: "203.0.113.10".parse().ok(),
        names: vec![name.to_owned()],
        unicode: Vec::new(),
        process: Some(process("/usr/bin/curl")),
        rule: format!("tcp://{name}:443"),
        why: "the internet is closed, and no rule allows it".to_owned(),
        held: 1,
        waiting: 8,
        left: 52,
    }
}

pub(crate) fn flow(id: u64, name: &str) -> LiveFlow {
    LiveFlow {
        id,
        to: format!("tcp://203.0.113.{id}:443"),
        protocol: "tcp".to_owned(),
        names: vec![name.to_owned()],
        rule: format!("tcp://{name}:443"),
        at: Some("~/.config/stockade/config.toml:3".to_owned()),
        sent: 1200 * id,
        received: 340_000 * id,
        age: 10.0 * f64::from(u32::try_from(id).unwrap_or_default()),
        process: Some(process("/usr/bin/curl")),
    }
}

pub(crate) fn snapshot() -> LiveSnapshot {
    LiveSnapshot {
        session: "1794700000-77-ab12".to_owned(),
        workspace: "/home/dev/project".to_owned(),
        command: vec!["claude".to_owned()],
        mode: "jail".to_owned(),
        internet: false,
        ask: true,
        started: "2026-11-17T12:00:00.000Z".to_owned(),
        counts: LiveCounts {
            open: 3,
            opened: 9,
            denied: 2,
        },
        flows: vec![
            flow(1, "api.anthropic.com"),
            flow(2, "github.com"),
            flow(3, "registry.example.org"),
        ],
        flows_left_out: 0,
        questions: vec![question(7, "api.example.com")],
        paused: None,
    }
}
