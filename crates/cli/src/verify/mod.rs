//! `stockade verify`: whether a session of this configuration is what it promises to be.
//!
//! # Theory of operation
//! ```text
//! outside    puts up what a session must not find: files, sockets, listeners, a variable
//! session    starts `stockade run` with the prober as its command
//! probe      inside: looks around, tries what a hostile program would, and tells
//! judge      pure: what was seen against what was to be expected
//! report     PASS, FAIL or INCONCLUSIVE, each with its reason
//! ```
//!
//! Nothing is concluded from the absence of something that would not have shown, and what is tried
//! stays on this machine: see docs/verify.md.

mod destinations;
mod identity;
mod judge;
mod messages;
mod outside;
mod probe;
mod report;
mod session;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{Effective, Key, Loader, Mode};
use stockade_jail::NAME_SERVER;
use stockade_sys::{
    confine::Landlock,
    signals::{self, Signal},
};
use stockade_wall::{Facts, INNER_STAGE, Plan};
use stockade_warden::LogDirectory;

pub(crate) use probe::probe;

use crate::{args, context, terminal, wall_config};
use judge::{Case, Controls, Log};
use messages::{
    Assignment, Observations, SecondAssignment, SecondObservations, Target, Transport, Tried,
};
use outside::Outside;
use report::Outcome;
use session::ProbedSession;

/// Whether a session's command, as its log has it, is the prober.
pub(crate) fn is_session(command: &Value) -> bool {
    let is = |at: usize, word: &str| command.get(at).and_then(Value::as_str) == Some(word);
    is(0, INNER_STAGE) && is(1, session::PROBE)
}

pub(crate) fn verify(arguments: &args::Verify) -> Result<ExitCode> {
    let args::About {
        json,
        profile,
        settings,
    } = &arguments.about;
    let program = Some(INNER_STAGE.as_ref());
    let loader = context::loader_for(settings, profile.as_deref(), program)?;
    // Files are put up that have to be removed again.
    let held = [Signal::INT, Signal::TERM, Signal::HUP]
        .into_iter()
        .collect();
    let before = signals::block(held)?;
    let findings = findings(loader);
    // A signal that came in the meantime takes its effect now.
    let _ = signals::set_mask(before);
    let (findings, effective) = findings?;
    if *json {
        let report = report::as_json(&findings, &effective);
        terminal::print(format_args!("{report:#}\n"))?;
    } else {
        terminal::write(report::as_text(&findings).as_bytes())?;
    }
    Ok(match report::count(&findings, Outcome::Fail) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn findings(mut loader: Loader) -> Result<(Vec<report::Finding>, Effective)> {
    // What is wrong with the configuration is said before anything is put up.
    let plain = loader.load()?.effective;
    let home = fs::canonicalize(&loader.places.home)?;
    let outside = Outside::put_up(&home, &loader.places.workspace)?;
    let (effective, controls, given) = with_controls(&mut loader, &outside)?;
    let program = INNER_STAGE.into();
    let config = wall_config::config(&effective, &loader, &program)?;
    let facts = Facts::gather(&config, Some(&loader.places.workspace))?;
    let plan = Plan::build(&config, &facts)?;
    let leaves = plan
        .working_directory
        .join(format!(".stockade-verify-{}", outside.token));

    // Where the logs are is among what must not be seen. The session would make it, too.
    let _ = LogDirectory::of(&loader.places.home).make();
    let assignment = assignment(&outside, &plan, &home, &leaves);
    let mut session = ProbedSession::start(&outside, &loader.places.workspace, &flags(&given))?;
    let seen: Observations = session.ask(&assignment)?;
    let left_is_found = fs::remove_file(&leaves).is_ok();
    let listener_was_reached = reached_from_here(&seen, &outside);
    let (denied, opened) = destinations::sorted(&effective);
    let is_apart = seen.namespaces.get("net") != outside.namespaces.get("net");
    let is_jailed = is_apart && effective.network.mode.value == Mode::Jail;
    let second = SecondAssignment {
        change: is_apart,
        denied: if is_jailed { denied } else { Vec::new() },
        covered: (controls == Controls::Given)
            .then(|| outside.canaries.hidden.clone())
            .flatten(),
        name_server: is_jailed.then_some(SocketAddr::new(NAME_SERVER.into(), 53)),
    };
    let then: SecondObservations = session.ask(&second)?;
    let pid = session.pid();
    session.end()?;

    let case = Case {
        effective: &effective,
        plan: &plan,
        home: &home,
        outside: &outside,
        controls,
        seen,
        left_is_found,
        listener_was_reached,
        second,
        then,
        opened,
        log: read_log(&loader.places.home, pid, &effective),
    };
    Ok((judge::judge(&case), plain))
}

/// The checks that can run inside a session, without anybody outside: whether one failed, then all of
/// them for people and for programs.
pub(crate) fn inside() -> (bool, String, Value) {
    let writes: Vec<PathBuf> = SYSTEM.map(PathBuf::from).to_vec();
    let seen = probe::look_around(&writes);
    let findings = judge::inside(&seen, Landlock::of_this_kernel());
    let failed = report::count(&findings, Outcome::Fail) > 0;
    (failed, report::as_text(&findings), json!(findings))
}

/// Gives the session something that it can reach: a port of the loopback, and one of this
/// machine's own addresses. Not where the administrator locked the network.
fn with_controls(
    loader: &mut Loader,
    outside: &Outside,
) -> Result<(Effective, Controls, Vec<String>)> {
    let mut given = Vec::new();
    let mut wider = loader.clone();
    if let Some(address) = outside.listeners.control(Transport::Tcp) {
        let port = address.port().to_string();
        wider.flags.set(Key::HostPorts, port.as_str());
        given.push(format!("--host-port={port}"));
    }
    if let Some(address) = outside.listeners.control(Transport::Udp) {
        let rule = format!("udp://{address}");
        wider.flags.set(Key::Allow, rule.as_str());
        given.push(format!("--allow={rule}"));
    }
    if let Some(path) = outside.canaries.hidden.as_deref().and_then(Path::to_str) {
        wider.flags.set(Key::Hide, path);
        given.push(format!("--hide={path}"));
    }
    if let Ok(loaded) = wider.load() {
        *loader = wider;
        return Ok((loaded.effective, Controls::Given, given));
    }
    Ok((loader.load()?.effective, Controls::Locked, Vec::new()))
}

/// The flags of this call that are those of the session, and what is given for control.
fn flags(given: &[String]) -> Vec<OsString> {
    let typed = env::args_os().skip(2).filter(|word| word != "--json");
    typed.chain(given.iter().map(OsString::from)).collect()
}

/// git's settings inside.
const GIT_CONFIG: &str = "/run/stockade/gitconfig";

/// What nobody inside can write to.
const SYSTEM: [&str; 7] = [
    "/",
    "/usr",
    "/usr/bin",
    "/etc",
    "/dev",
    INNER_STAGE,
    GIT_CONFIG,
];

/// Files and directories of a home that hold credentials, or what is private.
fn credentials() -> impl Iterator<Item = &'static str> {
    let places = stockade_wall::known_places().map(|(place, _)| place);
    // Some keep a token in it.
    places.chain([".gitconfig"])
}

fn assignment(outside: &Outside, plan: &Plan, home: &Path, leaves: &Path) -> Assignment {
    let guarded = judge::guarded(plan, outside);
    let mut reads: Vec<PathBuf> = credentials().map(|name| home.join(name)).collect();
    reads.retain(|path| probe::read(path).worked());
    reads.extend(outside.canaries.files.iter().map(|(_, path)| path.clone()));
    reads.extend(guarded.iter().chain(&outside.own_secrets).cloned());
    let mut writes: Vec<PathBuf> = SYSTEM.map(PathBuf::from).to_vec();
    writes.extend(guarded);
    let sockets = outside.canaries.sockets.iter();
    let mut sockets: Vec<PathBuf> = sockets.chain(&outside.canaries.socket).cloned().collect();
    // Other paths cannot be told to the prober.
    for paths in [&mut reads, &mut writes, &mut sockets] {
        paths.retain(|path| path.to_str().is_some());
    }
    let mut places: Vec<PathBuf> = outside::PRIVATE.map(PathBuf::from).to_vec();
    places.push(home.to_owned());
    Assignment {
        token: outside.token.clone(),
        reads,
        texts: [GIT_CONFIG.into(), "/etc/resolv.conf".into()]
            .into_iter()
            .chain(judge::replaced(plan, home))
            .collect(),
        lists: places.clone(),
        identities: places,
        writes,
        leaves: leaves.to_owned(),
        sockets,
        abstract_socket: outside.canaries.abstract_name.clone(),
        targets: outside.listeners.targets(),
    }
}

/// Whether what listens inside can be reached at any address of this machine.
fn reached_from_here(seen: &Observations, outside: &Outside) -> bool {
    let Some((port, _)) = seen.listener else {
        return false;
    };
    let addresses: BTreeSet<IpAddr> = outside
        .listeners
        .targets()
        .iter()
        .map(|target| target.address.ip())
        .collect();
    addresses.into_iter().any(|address| {
        let target = Target {
            transport: Transport::Tcp,
            address: SocketAddr::new(address, port),
        };
        // The same port may be somebody else's here.
        probe::ask(&target) == Tried::Worked(outside.token.clone())
    })
}

/// What the log of the session says of destinations; nothing if there is none, or denials are
/// not logged.
fn read_log(home: &Path, pid: u32, effective: &Effective) -> Option<Log> {
    if !effective.network.log_denials.value {
        return None;
    }
    let directory = LogDirectory::of(home);
    let sessions = directory.sessions();
    let mut latest = sessions.iter().rev();
    let id = latest.find(|id| stockade_warden::process_of(id) == Some(pid))?;
    let text = fs::read_to_string(directory.file(id, 1)).ok()?;
    let mut log = Log::default();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).ok()?;
        let field = |name: &str| line[name].as_str().map(str::to_owned);
        match line["event"].as_str() {
            Some("deny") => log.denied.extend(field("what")),
            Some("open") => log.opened.extend(field("to")),
            _ => {}
        }
    }
    Some(log)
}
