//! What AppArmor makes of this process.

use std::fs;

/// The name of the profile that `stockade doctor --write-apparmor` gives this program, or how it begins.
pub const PROFILE: &str = "stockade";

/// In which profile a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// In none, or in one that only has a name: a program that it starts gets its own.
    Unconfined,
    /// In that of this program.
    Own,
    /// In that of another program, which started it and passes its own on.
    Foreign(String),
}

impl Confinement {
    pub fn of_this_process() -> Self {
        let read = |file| fs::read_to_string(format!("/proc/thread-self/attr/{file}"));
        let label = read("apparmor/current").or_else(|_| read("current"));
        Self::of(&label.unwrap_or_default())
    }

    /// From `NAME (MODE)`.
    pub fn of(label: &str) -> Self {
        let label = label.trim_end_matches(['\n', '\0']);
        let (name, mode) = label.rsplit_once(" (").unwrap_or((label, ""));
        let rest = name.strip_prefix(PROFILE);
        match (name, mode) {
            _ if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) => Self::Own,
            ("" | "unconfined", _) | (_, "unconfined)") => Self::Unconfined,
            (name, _) => Self::Foreign(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_known_by_its_name_and_mode() {
        let foreign = |name: &str| Confinement::Foreign(name.to_owned());
        for (label, wanted) in [
            ("", Confinement::Unconfined),
            ("unconfined\n", Confinement::Unconfined),
            ("vscode (unconfined)\n", Confinement::Unconfined),
            ("stockade (unconfined)\n", Confinement::Own),
            (
                "stockade.usr.local.bin.stockade (unconfined)\n",
                Confinement::Own,
            ),
            ("stockades (enforce)", foreign("stockades")),
            ("snap.code.code (complain)\n", foreign("snap.code.code")),
            (
                "bwrap//&unpriv_bwrap (enforce)\n",
                foreign("bwrap//&unpriv_bwrap"),
            ),
        ] {
            assert_eq!(Confinement::of(label), wanted, "{label}");
        }
    }
}
