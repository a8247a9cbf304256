//! Takes one protection away: the one that the variable `STOCKADE_SABOTAGE` names.
//!
//! What is in the plan or in the policy is taken out of it, for the session and not for the
//! `verify` that looks at it. What the kernel or bubblewrap do in any case cannot be taken
//! away; there, what the prober says is changed to what it would say without.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use stockade_policy::Policy;
use stockade_wall::{Isolation, Operation, Plan, Resource, Step};

// The program's own package does not compile with this file, whatever flags the compiler is given.
const _: () = assert!(matches!(
    env!("CARGO_PKG_NAME").as_bytes(),
    b"stockade-sabotaged"
));

fn wanted() -> String {
    env::var("STOCKADE_SABOTAGE").unwrap_or_default()
}

pub(crate) fn plan(mut plan: Plan) -> Plan {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let wanted = wanted();
    match wanted.as_str() {
        "ipc" => without(&mut plan, Isolation::Ipc),
        "host name" => without(&mut plan, Isolation::HostName),
        "broker" | "capabilities" | "landlock" | "descriptors" | "filter" => plan.sabotage(&wanted),
        rule if rule.starts_with("filter ") => plan.sabotage(rule),
        "jail and landlock" => plan.sabotage("landlock"),
        "hardening" => plan.hardening = stockade_wall::Hardening::Default,
        "core" => plan
            .limits
            .retain(|(limit, _)| limit.resource != Resource::Core),
        "proc" => show_instead(&mut plan, "/proc"),
        "home" => {
            // There is no place for them in the host's home.
            plan.files
                .retain(|step| !matches!(step.operation, Operation::Kept(_)));
            show_instead(&mut plan, &home);
        }
        "tmp" => write_instead(&mut plan, "/tmp"),
        "var tmp" => write_instead(&mut plan, "/var/tmp"),
        "shared memory" => write_instead(&mut plan, "/dev/shm"),
        "etc" => write_instead(&mut plan, "/etc"),
        "credentials" => show_too(&mut plan, &home.join(".ssh")),
        "run" => show_too(&mut plan, Path::new("/run/user/1000")),
        "dev" => show_too(&mut plan, Path::new("/dev/net/tun")),
        "freeze" => plan
            .files
            .retain(|step| step.at != Path::new("/") || step.operation != Operation::Freeze),
        "guards" => plan
            .files
            .retain(|step| !matches!(step.operation, Operation::Guard(_))),
        "environment" => pass(&mut plan, "STOCKADE_VERIFY_SECRET"),
        "display" => pass(&mut plan, "DISPLAY"),
        "git" => plan
            .environment
            .retain(|variable| variable.name != "GIT_CONFIG_SYSTEM"),
        "names" => resolve_elsewhere(&mut plan),
        _ => {}
    }
    plan
}

fn without(plan: &mut Plan, isolation: Isolation) {
    plan.isolation.retain(|(other, _)| *other != isolation);
}

/// Shows the host's own in the place of what is there.
fn show_instead(plan: &mut Plan, path: impl AsRef<Path>) {
    replace(plan, path.as_ref(), |source| Operation::ReadOnly { source });
}

fn write_instead(plan: &mut Plan, path: impl AsRef<Path>) {
    replace(plan, path.as_ref(), |source| Operation::Writable { source });
}

fn replace(plan: &mut Plan, path: &Path, by: fn(PathBuf) -> Operation) {
    for Step { at, operation, .. } in &mut plan.files {
        if at == path && *operation != Operation::Freeze {
            *operation = by(path.to_owned());
        }
    }
}

/// Shows something of the host's besides, before the root is closed.
fn show_too(plan: &mut Plan, path: &Path) {
    let source = path.to_owned();
    let step = Step::new(path, Operation::ReadOnly { source }, "a test");
    let is_closing = |step: &Step| step.operation == Operation::Freeze;
    let at = plan.files.iter().position(is_closing);
    plan.files.insert(at.unwrap_or_default(), step);
}

fn pass(plan: &mut Plan, name: &str) {
    let Some(mut variable) = plan.environment.first().cloned() else {
        return;
    };
    variable.name = name.into();
    plan.environment.push(variable);
}

fn resolve_elsewhere(plan: &mut Plan) {
    for Step { at, operation, .. } in &mut plan.files {
        if let Operation::Text(text) = operation
            && at.ends_with("resolv.conf")
        {
            *text = "nameserver 8.8.8.8\n".to_owned();
        }
    }
}

pub(crate) fn policy(mut policy: Policy) -> Policy {
    let opened: &[&str] = match wanted().as_str() {
        // The laptop of the closed world.
        "addresses" => &["192.168.10.5"],
        "lateral" => &["10.255.255.254"],
        "metadata" => &["169.254.169.254"],
        _ => &[],
    };
    let rules = policy.rules.iter().cloned();
    let opened = opened.iter().filter_map(|rule| rule.parse().ok());
    policy.rules = rules.chain(opened).collect();
    policy
}

pub(crate) fn in_jail(launch: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    let outside = wanted().starts_with("jail");
    let launch = if outside {
        // At once, where nobody has entered it.
        launch();
        None
    } else {
        Some(launch)
    };
    || launch.map_or((), |launch| launch())
}

pub(crate) fn heard(line: Vec<u8>) -> Vec<u8> {
    let Ok(mut said) = serde_json::from_slice::<Value>(&line) else {
        return line;
    };
    let own = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
        json!(link.to_string_lossy())
    };
    let worked = json!({ "Worked": "" });
    match wanted().as_str() {
        "said: user" => said["namespaces"]["user"] = own("user"),
        "said: mount" => said["namespaces"]["mnt"] = own("mnt"),
        "said: process" => said["namespaces"]["pid"] = own("pid"),
        "said: privileges" => said["status"]["NoNewPrivs"] = json!("0"),
        "said: control group" => said["namespaces"]["cgroup"] = own("cgroup"),
        // These are in its second line.
        "said: immutable" if said["changes"].is_object() => said["changes"]["filter"] = worked,
        "said: nested" if said["nested"]["changes"].is_object() => {
            said["nested"]["changes"]["route"] = worked;
        }
        "said: mounts" if said["nested"].is_object() => said["nested"]["remount"] = worked,
        _ => return line,
    }
    said.to_string().into_bytes()
}
