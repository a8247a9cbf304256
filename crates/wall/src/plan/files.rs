//! The part of the plan that is about files.

use std::path::{Path, PathBuf};

use super::{Config, INNER_STAGE, Operation, Step};
use crate::{
    error::Error,
    facts::{Facts, Procfs, SystemForm, SystemPlace},
    system::{PRIVATE, SECRET_REASON},
};

/// The steps, in order. What is not named here does not exist inside.
pub(super) fn steps(config: &Config, facts: &Facts) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    private_places(&mut steps);
    system(facts, &mut steps);
    devices(&mut steps);
    processes(facts, &mut steps);
    home(facts, &mut steps)?;
    if let Some(text) = &config.resolv_conf {
        resolv_conf(text, facts, &mut steps)?;
    }
    step(
        &mut steps,
        Operation::ReadOnly {
            source: facts.executable.clone(),
            at: INNER_STAGE.into(),
        },
        "starts the command and reports what becomes of it",
    );
    // After everything that hides a place around it.
    step(
        &mut steps,
        Operation::Writable {
            source: facts.workspace.clone(),
            at: facts.workspace.clone(),
        },
        "the workspace",
    );
    step(
        &mut steps,
        Operation::Freeze { at: "/".into() },
        "only the places above can be written to",
    );
    Ok(steps)
}

fn step(steps: &mut Vec<Step>, operation: Operation, reason: &'static str) {
    steps.push(Step { operation, reason });
}

fn private_places(steps: &mut Vec<Step>) {
    for private in PRIVATE {
        let operation = Operation::Empty {
            at: private.path.into(),
            mode: private.mode,
        };
        step(steps, operation, private.reason);
    }
    let operation = Operation::Link {
        text: "/run".into(),
        at: "/var/run".into(),
    };
    step(steps, operation, "the other name of /run");
}

fn system(facts: &Facts, steps: &mut Vec<Step>) {
    let visible = |path: &Path| {
        let in_system = facts
            .system
            .iter()
            .any(|place| place.form == SystemForm::Directory && path.starts_with(&place.path));
        in_system || PRIVATE.iter().any(|place| path.starts_with(place.path))
    };
    for SystemPlace { path, form, reason } in &facts.system {
        let operation = match form {
            SystemForm::Directory => Operation::ReadOnly {
                source: path.clone(),
                at: path.clone(),
            },
            SystemForm::Link { text, real } if visible(real) => Operation::Link {
                text: text.clone(),
                at: path.clone(),
            },
            // The link leads to where nothing is shown: show its target in its place.
            SystemForm::Link { real, .. } => Operation::ReadOnly {
                source: real.clone(),
                at: path.clone(),
            },
        };
        step(steps, operation, reason);
    }
    for secret in &facts.secrets {
        if !visible(&secret.path) {
            continue;
        }
        let at = secret.path.clone();
        let operation = if secret.is_directory {
            Operation::HiddenDirectory { at }
        } else {
            Operation::HiddenFile { at }
        };
        step(steps, operation, SECRET_REASON);
    }
}

fn devices(steps: &mut Vec<Step>) {
    let operation = Operation::Devices { at: "/dev".into() };
    step(
        steps,
        operation,
        "no disks, no input devices, no other terminals",
    );
    let operation = Operation::Empty {
        at: "/dev/shm".into(),
        mode: 0o1777,
    };
    step(steps, operation, "shared memory of the sandbox's own");
}

fn processes(facts: &Facts, steps: &mut Vec<Step>) {
    let at = PathBuf::from("/proc");
    match facts.procfs {
        Procfs::Fresh => {
            let operation = Operation::Processes { at: at.clone() };
            step(steps, operation, "the sandbox's own processes only");
            // Root owns the kernel's settings, also without any capability; bubblewrap
            // covers some of /proc for that reason, but not /proc/sys.
            if facts.owns_kernel_settings {
                let operation = Operation::Freeze { at };
                step(
                    steps,
                    operation,
                    "the kernel's settings belong to this user",
                );
            }
        }
        Procfs::Outer => {
            let operation = Operation::ReadOnly {
                source: at.clone(),
                at,
            };
            let reason = "a part of it is masked here, so the kernel refuses a fresh one";
            step(steps, operation, reason);
        }
    }
}

fn home(facts: &Facts, steps: &mut Vec<Step>) -> Result<(), Error> {
    let home = &facts.home;
    let holds = |path: &Path| path.starts_with(&home.real);
    let holds_system = facts.system.iter().any(|place| holds(&place.path));
    let special = ["/dev", "/proc", "/sys", "/run", "/var"];
    if holds_system || special.iter().any(|path| holds(Path::new(path))) {
        return Err(Error::HomeIsSystem(home.named.clone()));
    }
    let operation = Operation::Empty {
        at: home.real.clone(),
        mode: 0o700,
    };
    step(steps, operation, "no credentials, no other projects");
    let in_system = facts
        .system
        .iter()
        .any(|place| home.named.starts_with(&place.path));
    // Inside a system directory the host's own link is in view.
    if home.named != home.real && !in_system {
        let operation = Operation::Link {
            text: home.real.clone(),
            at: home.named.clone(),
        };
        step(steps, operation, "the home directory under its other name");
    }
    Ok(())
}

fn resolv_conf(text: &str, facts: &Facts, steps: &mut Vec<Step>) -> Result<(), Error> {
    let target = &facts.resolv_conf;
    // Read-only places have room for a file only where there is one already.
    let in_system = facts
        .system
        .iter()
        .any(|place| target.real.starts_with(&place.path));
    if in_system && !target.exists {
        return Err(Error::NoResolvConf(target.real.clone()));
    }
    let operation = Operation::Text {
        at: target.real.clone(),
        text: text.to_owned(),
    };
    step(steps, operation, "the jail's own name server");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{EtcSecret, ResolvConf, tests::facts};

    fn plan(facts: &Facts) -> Vec<Operation> {
        let config = Config {
            resolv_conf: Some("nameserver 192.0.2.53\n".into()),
        };
        let steps = steps(&config, facts).unwrap();
        steps.into_iter().map(|step| step.operation).collect()
    }

    fn position(steps: &[Operation], wanted: impl Fn(&Operation) -> bool) -> usize {
        steps.iter().position(wanted).expect("a step of that kind")
    }

    #[test]
    fn the_workspace_comes_after_the_home_that_hides_it() {
        let steps = plan(&facts());
        let home = position(
            &steps,
            |step| matches!(step, Operation::Empty { at, mode: 0o700 } if at == "/home/ada"),
        );
        let workspace = position(
            &steps,
            |step| matches!(step, Operation::Writable { at, .. } if at == "/home/ada/project"),
        );
        assert!(home < workspace);
    }

    #[test]
    fn the_workspace_is_all_that_is_writable_of_the_disk() {
        let steps = plan(&facts());
        let writable = steps
            .iter()
            .filter(|step| matches!(step, Operation::Writable { .. }));
        assert_eq!(writable.count(), 1);
        assert_eq!(steps.last(), Some(&Operation::Freeze { at: "/".into() }));
    }

    #[test]
    fn only_named_places_of_the_disk_are_shown() {
        let shown: Vec<_> = plan(&facts())
            .into_iter()
            .filter_map(|step| match step {
                Operation::ReadOnly { source, .. } | Operation::Writable { source, .. } => {
                    Some(source.display().to_string())
                }
                _ => None,
            })
            .collect();
        let expected = [
            "/usr",
            "/etc",
            "/opt",
            "/usr/local/bin/stockade",
            "/home/ada/project",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn system_links_stay_links_if_their_target_is_shown() {
        let mut facts = facts();
        facts.system.push(SystemPlace {
            path: "/gnu".into(),
            form: SystemForm::Link {
                text: "data/gnu".into(),
                real: "/data/gnu".into(),
            },
            reason: "programs",
        });
        let steps = plan(&facts);
        position(
            &steps,
            |step| matches!(step, Operation::Link { text, at } if at == "/bin" && text == "usr/bin"),
        );
        position(
            &steps,
            |step| matches!(step, Operation::ReadOnly { source, at } if at == "/gnu" && source == "/data/gnu"),
        );
    }

    #[test]
    fn a_home_reached_by_a_link_is_hidden_where_it_really_is() {
        let mut facts = facts();
        facts.home.real = "/data/ada".into();
        facts.workspace = "/data/ada/project".into();
        let steps = plan(&facts);
        position(
            &steps,
            |step| matches!(step, Operation::Empty { at, .. } if at == "/data/ada"),
        );
        position(
            &steps,
            |step| matches!(step, Operation::Link { text, at } if at == "/home/ada" && text == "/data/ada"),
        );
    }

    #[test]
    fn a_home_that_holds_the_system_is_refused() {
        for home in ["/", "/usr", "/etc", "/dev", "/var"] {
            let mut facts = facts();
            facts.home.real = home.into();
            let result = steps(&Config::default(), &facts);
            assert!(matches!(result, Err(Error::HomeIsSystem(_))), "{home}");
        }
    }

    #[test]
    fn secrets_are_masked_after_the_directory_that_holds_them() {
        let mut facts = facts();
        facts.secrets = vec![
            EtcSecret {
                path: "/etc/shadow".into(),
                is_directory: false,
            },
            EtcSecret {
                path: "/etc/ssl/private".into(),
                is_directory: true,
            },
            // A link led here; nothing is shown of it.
            EtcSecret {
                path: "/data/secret".into(),
                is_directory: false,
            },
        ];
        let steps = plan(&facts);
        let etc = position(
            &steps,
            |step| matches!(step, Operation::ReadOnly { at, .. } if at == "/etc"),
        );
        let shadow = position(
            &steps,
            |step| matches!(step, Operation::HiddenFile { at } if at == "/etc/shadow"),
        );
        position(
            &steps,
            |step| matches!(step, Operation::HiddenDirectory { at } if at == "/etc/ssl/private"),
        );
        assert!(etc < shadow);
        let hidden = steps
            .iter()
            .filter(|step| matches!(step, Operation::HiddenFile { .. }));
        assert_eq!(hidden.count(), 1);
    }

    #[test]
    fn root_gets_a_frozen_proc_and_a_container_the_outer_one() {
        let frozen = Operation::Freeze { at: "/proc".into() };
        let mut facts = facts();
        assert!(!plan(&facts).contains(&frozen));

        facts.owns_kernel_settings = true;
        assert!(plan(&facts).contains(&frozen));

        facts.procfs = Procfs::Outer;
        assert!(plan(&facts).contains(&Operation::ReadOnly {
            source: "/proc".into(),
            at: "/proc".into(),
        }));
    }

    #[test]
    fn resolv_conf_lands_where_the_hosts_link_leads() {
        let mut facts = facts();
        let target = "/run/systemd/resolve/stub-resolv.conf";
        facts.resolv_conf = ResolvConf {
            real: target.into(),
            exists: false,
        };
        let steps = plan(&facts);
        let run = position(
            &steps,
            |step| matches!(step, Operation::Empty { at, .. } if at == "/run"),
        );
        let file = position(
            &steps,
            |step| matches!(step, Operation::Text { at, .. } if at == target),
        );
        assert!(run < file);
    }

    #[test]
    fn a_read_only_place_without_resolv_conf_is_refused_with_the_fix() {
        let mut facts = facts();
        facts.resolv_conf.exists = false;
        let config = Config {
            resolv_conf: Some(String::new()),
        };
        let refused = steps(&config, &facts);
        assert!(matches!(refused, Err(Error::NoResolvConf(_))));
        assert!(steps(&Config::default(), &facts).is_ok());
    }
}
