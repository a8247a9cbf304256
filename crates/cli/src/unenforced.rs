//! Settings that this version reads but does not enforce.
//!
//! A protection that was asked for and is silently absent is worse than none. So a launch
//! with such a setting is refused, unless its value is the default, which holds anyway. A
//! key leaves the table with the commit that enforces it.

use anyhow::{Result, bail};
use stockade_config::{Effective, Key, Shown};

const UNENFORCED: [Key; 16] = [
    // The modes "none" and "host".
    Key::Mode,
    Key::Root,
    Key::Read,
    Key::Write,
    Key::Hide,
    Key::PassEnv,
    Key::SetEnv,
    Key::Github,
    Key::Gitlab,
    Key::ForgeHosts,
    Key::Hardening,
    Key::Processes,
    Key::Memory,
    Key::OpenFiles,
    Key::Tmpfs,
    Key::CpuTime,
];

pub(crate) fn refuse(effective: &Effective) -> Result<()> {
    let asked: Vec<String> = UNENFORCED
        .into_iter()
        .filter(|key| !effective.is_default(*key))
        .flat_map(|key| {
            effective
                .shown(key)
                .into_iter()
                .map(move |shown| said(key, &shown))
        })
        .collect();
    match asked.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one} is not enforced by this version: leave it out"),
        all => bail!(
            "these settings are not enforced by this version, leave them out:\n  {}",
            all.join("\n  ")
        ),
    }
}

fn said(key: Key, shown: &Shown) -> String {
    let name = shown
        .name
        .iter()
        .map(|name| format!(".{name}"))
        .collect::<String>();
    format!("{key}{name} = {} ({})", shown.literal(), shown.origin)
}
