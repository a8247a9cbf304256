//! Bubblewrap: whether it is there, which one it is, and what is known to be wrong with it.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use stockade_wall::{Bubblewrap, Version};

use super::Check;

const NAME: &str = "bubblewrap";

/// A fault that versions which Stockade takes may have.
struct Fault {
    cve: &'static str,
    /// The first and the first without it again.
    from: Version,
    fixed: Version,
    /// Only where the program runs as root for everybody.
    setuid: bool,
    what: &'static str,
    cost: &'static str,
}

const FAULTS: [Fault; 2] = [
    Fault {
        cve: "CVE-2026-41163",
        from: Version(0, 11, 0),
        fixed: Version(0, 11, 2),
        setuid: true,
        what: "its set-up can be traced, and runs with root's rights",
        cost: "any user of this machine may become root",
    },
    Fault {
        cve: "CVE-2026-87766",
        from: Version(0, 0, 0),
        fixed: Version(0, 12, 0),
        setuid: false,
        what: "it follows links when it makes files and directories for a sandbox",
        cost: "no effect on Stockade, which does not let it make files where a command could have left a link; \
               other programs that use bubblewrap may be affected",
    },
];

pub(super) fn check() -> Check {
    let found = Bubblewrap::find().and_then(Bubblewrap::identify);
    match found {
        Ok((path, version)) => judge(&path, version, is_setuid(&path)),
        Err(error) => {
            let text = error.to_string();
            match text.rsplit_once(": ") {
                // These messages end in what to do.
                Some((found, fix)) => Check::failure(NAME, found).fix(fix),
                None => Check::failure(NAME, text),
            }
        }
    }
}

fn is_setuid(path: &Path) -> bool {
    const SETUID: u32 = 0o4000;
    fs::metadata(path).is_ok_and(|file| file.mode() & SETUID != 0)
}

fn judge(path: &Path, version: Version, setuid: bool) -> Check {
    let faults: Vec<&Fault> = FAULTS
        .iter()
        .filter(|fault| version >= fault.from && version < fault.fixed)
        .filter(|fault| setuid || !fault.setuid)
        .collect();
    let mut found = vec![format!("{} is version {version}", path.display())];
    found.extend(faults.iter().map(|it| format!("{}: {}", it.cve, it.what)));
    let mut costs: Vec<&str> = faults.iter().map(|fault| fault.cost).collect();
    let mut fixes = Vec::new();
    if let Some(newest) = faults.iter().map(|fault| fault.fixed).max() {
        fixes.push(format!(
            "update it to {newest}, unless your distribution patched its {version}"
        ));
    }
    if setuid {
        found.push("it runs with root's rights (setuid)".to_owned());
        fixes.push(format!("sudo chmod u-s {}", path.display()));
        if costs.is_empty() {
            costs.push(
                "its faults are root's; Stockade does not need that, and newer versions refuse it",
            );
        }
    }
    if fixes.is_empty() {
        return Check::ok(NAME, found.join("\n"));
    }
    Check::warning(NAME, found.join("\n"))
        .cost(costs.join("\n"))
        .fix(fixes.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{super::CheckState, *};

    fn of(version: Version, setuid: bool) -> Check {
        judge(Path::new("/usr/bin/bwrap"), version, setuid)
    }

    #[test]
    fn faults_are_those_of_the_version_and_the_mode() {
        assert_eq!(of(Version(0, 12, 0), false).state, CheckState::Ok);
        let old = of(Version(0, 8, 0), false);
        assert_eq!(old.state, CheckState::Warning);
        assert!(old.found.contains("CVE-2026-87766") && !old.found.contains("41163"));
        assert!(old.fix.expect("a fix").contains("0.12.0"));
        assert!(!of(Version(0, 11, 1), false).found.contains("41163"));
        assert!(of(Version(0, 11, 1), true).found.contains("41163"));
        assert!(!of(Version(0, 10, 0), true).found.contains("41163"));
        assert!(!of(Version(0, 11, 2), true).found.contains("41163"));
    }

    #[test]
    fn a_program_that_runs_as_root_is_warned_of_whatever_its_version() {
        let check = of(Version(0, 12, 0), true);
        assert_eq!(check.state, CheckState::Warning);
        assert_eq!(check.fix.as_deref(), Some("sudo chmod u-s /usr/bin/bwrap"));
    }
}
