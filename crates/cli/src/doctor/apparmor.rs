//! The profile that AppArmor wants on machines where it restricts user namespaces.
//!
//! It is for this program's own path and gives nothing but user namespaces. Switching the
//! restriction off instead would open it to every program.

use std::{
    env, fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    exit::{Refused, refused},
    terminal,
};

const FILE: &str = "/etc/apparmor.d/stockade";

/// Never looked up in PATH.
const PARSERS: [&str; 2] = ["/usr/sbin/apparmor_parser", "/sbin/apparmor_parser"];

/// How to get the profile, and what it is.
pub(super) fn advice() -> String {
    let path = match executable() {
        Ok(path) => path,
        Err(error) => return format!("{error:#}"),
    };
    let shown = path.display();
    let mut advice = format!("sudo {shown} doctor --write-apparmor\nwhich writes {FILE}:");
    for line in profile(&path).unwrap_or_else(|refused| refused.fix).lines() {
        advice.push_str("\n  ");
        advice.push_str(line);
    }
    if let Some(who) = open_to(&path) {
        advice.push_str(&format!(
            "\n{who} can replace {shown}, and so make user namespaces with any program: \
             better install it in /usr/local/bin first"
        ));
    }
    advice
}

/// Writes the profile, and has it loaded.
pub(super) fn write() -> Result<ExitCode> {
    let path = executable()?;
    let text = profile(&path)?;
    let Some(parser) = PARSERS.iter().find(|path| Path::new(path).exists()) else {
        return Err(refused(
            "there is no apparmor_parser on this machine",
            "nothing has to be done if it has no AppArmor; else install the package `apparmor`",
        ));
    };
    install(Path::new(FILE), &text, Path::new(parser), &path)?;
    terminal::print(format_args!("wrote and loaded {FILE}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// A profile that is not taken is not left behind: with it, others might not be loaded at the
/// next start of the machine.
fn install(file: &Path, text: &str, parser: &Path, program: &Path) -> Result<()> {
    let before = fs::read(file).ok();
    if let Err(error) = fs::write(file, text) {
        let fix = if error.kind() == io::ErrorKind::PermissionDenied {
            format!("sudo {} doctor --write-apparmor", program.display())
        } else {
            "`stockade doctor` shows it, to be written by hand".to_owned()
        };
        let what = format!("cannot write {}: {error}", file.display());
        return Err(refused(what, fix));
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))?;
    let status = Command::new(parser)
        .arg("--replace")
        .arg(file)
        .env_clear()
        .status()
        .with_context(|| format!("cannot start {}", parser.display()));
    if status.as_ref().is_ok_and(ExitStatus::success) {
        return Ok(());
    }
    match before {
        Some(before) => fs::write(file, before)?,
        None => fs::remove_file(file)?,
    }
    bail!(
        "{} did not take the profile ({}), so it was not kept; its message is above",
        parser.display(),
        status?
    )
}

fn executable() -> Result<PathBuf> {
    env::current_exe().context("this program's own file cannot be found")
}

/// The profile for a program at this path.
fn profile(path: &Path) -> Result<String, Refused> {
    // AppArmor has a pattern here; what could mean something in one is not for it.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match path.to_str().filter(|path| path.chars().all(plain)) {
        Some(path) => Ok(format!(
            "abi <abi/4.0>,\nprofile stockade {path} flags=(unconfined) {{ userns, }}\n"
        )),
        None => Err(Refused {
            what: format!("{path:?} cannot stand in a profile"),
            fix: "install it under a path of plain letters, as /usr/local/bin/stockade".to_owned(),
        }),
    }
}

/// Who besides root can put another program at this path.
fn open_to(path: &Path) -> Option<String> {
    let writer = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        if metadata.uid() != 0 {
            return Some(format!("user {}", metadata.uid()));
        }
        let sticky = metadata.is_dir() && metadata.mode() & 0o1000 != 0;
        (metadata.mode() & 0o022 != 0 && !sticky).then(|| "others".to_owned())
    };
    path.ancestors().find_map(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_for_one_path_and_gives_user_namespaces_only() {
        let text = profile(Path::new("/usr/local/bin/stockade")).expect("a profile");
        assert_eq!(
            text,
            "abi <abi/4.0>,\nprofile stockade /usr/local/bin/stockade flags=(unconfined) \
             { userns, }\n"
        );
    }

    #[test]
    fn no_path_becomes_a_pattern_or_another_rule() {
        for path in [
            "/a/*",
            "/a b",
            "/a{b,c}",
            "/x\n}",
            "/\u{e9}",
            "/@{HOME}/x",
            "/a\"b",
        ] {
            assert!(profile(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn the_profile_is_loaded_and_one_that_is_not_taken_is_not_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let (file, parser, loaded) = (at("stockade"), at("parser"), at("loaded"));
        let program = Path::new("/usr/bin/stockade");
        let parse = |script: &str| {
            fs::write(&parser, format!("#!/bin/sh\n{script}\n")).expect("a parser");
            fs::set_permissions(&parser, fs::Permissions::from_mode(0o700)).expect("a mode");
        };
        parse("exit 1");
        let refused = install(&file, "new", &parser, program).expect_err("refused");
        assert!(refused.to_string().contains("not kept"), "{refused}");
        assert!(!file.exists());

        parse(&format!(
            "test \"$1\" = --replace && cp \"$2\" {}",
            loaded.display()
        ));
        install(&file, "new", &parser, program).expect("installed");
        assert_eq!(fs::read_to_string(&loaded).expect("loaded"), "new");
        let mode = fs::metadata(&file).expect("a file").mode();
        assert_eq!(mode & 0o777, 0o644);

        parse("exit 1");
        install(&file, "newer", &parser, program).expect_err("refused");
        assert_eq!(fs::read_to_string(&file).expect("the one before"), "new");
    }

    #[test]
    fn a_path_that_only_root_can_change_is_told_from_others() {
        assert_eq!(open_to(Path::new("/usr/bin/env")), None);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("stockade");
        fs::write(&file, "").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("its mode");
        assert!(open_to(&file).is_some());
    }
}
