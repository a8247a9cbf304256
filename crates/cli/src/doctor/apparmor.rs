//! The profile that AppArmor wants on machines where it restricts user namespaces.
//!
//! It is for this program's own path and gives nothing but user namespaces. Switching the
//! restriction off instead would open it to every program. Each path has a file and a profile of its
//! own, so that several installations do not take each other's away.

use std::{
    env, fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context as _, Result, bail};
use stockade_sys::apparmor::PROFILE;

use crate::{
    exit::{Refused, refused},
    terminal,
};

const DIRECTORY: &str = "/etc/apparmor.d";

/// Never looked up in PATH.
const PARSERS: [&str; 2] = ["/usr/sbin/apparmor_parser", "/sbin/apparmor_parser"];

/// How to get the profile, and what it is.
pub(super) fn advice() -> String {
    let path = match executable() {
        Ok(path) => path,
        Err(error) => return format!("{error:#}"),
    };
    let shown = path.display();
    let Profile { file, text } = match Profile::of(&path, Path::new(DIRECTORY)) {
        Ok(profile) => profile,
        Err(refused) => return refused.fix,
    };
    let file = file.display();
    let mut advice = format!("sudo {shown} doctor --write-apparmor\nwhich writes {file}:");
    for line in text.lines() {
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
    let profile = Profile::of(&path, Path::new(DIRECTORY))?;
    let Some(parser) = PARSERS.iter().find(|path| Path::new(path).exists()) else {
        return Err(refused(
            "there is no apparmor_parser on this machine",
            "nothing has to be done if it has no AppArmor; else install the package `apparmor`",
        ));
    };
    profile.install(Path::new(parser), &path)?;
    terminal::print(format_args!(
        "wrote and loaded {}\n",
        profile.file.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn executable() -> Result<PathBuf> {
    env::current_exe().context("this program's own file cannot be found")
}

/// A profile, and the file for it.
struct Profile {
    file: PathBuf,
    text: String,
}

impl Profile {
    /// The profile for a program at this path.
    fn of(path: &Path, directory: &Path) -> Result<Self, Refused> {
        // AppArmor has a pattern here; what could mean something in one is not for it.
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        let Some(path) = path.to_str().filter(|path| path.chars().all(plain)) else {
            return Err(Refused {
                what: format!("{path:?} cannot stand in a profile"),
                fix: "install it under a path of plain letters, as /usr/local/bin/stockade"
                    .to_owned(),
            });
        };
        // One without the path in its name, if it is for this path: two for one path would not do.
        let is_for_path = |text: &String| text.contains(&format!("profile {PROFILE} {path} "));
        let short = fs::read_to_string(directory.join(PROFILE));
        let name = match short.is_ok_and(|text| is_for_path(&text)) {
            true => PROFILE.to_owned(),
            false => format!("{PROFILE}{}", path.replace('/', ".")),
        };
        Ok(Self {
            file: directory.join(&name),
            text: format!(
                "abi <abi/4.0>,\nprofile {name} {path} flags=(unconfined) {{ userns, }}\n"
            ),
        })
    }

    /// A profile that is not taken is not left behind: with it, others might not be loaded at the
    /// next start of the machine.
    fn install(&self, parser: &Path, program: &Path) -> Result<()> {
        let Self { file, text } = self;
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
        let directory = tempfile::tempdir().expect("a directory");
        let of = |path: &str| Profile::of(Path::new(path), directory.path()).expect("a profile");
        let first = of("/usr/local/bin/stockade");
        assert_eq!(
            first.text,
            "abi <abi/4.0>,\nprofile stockade.usr.local.bin.stockade /usr/local/bin/stockade \
             flags=(unconfined) { userns, }\n"
        );
        // Another installation has another.
        let second = of("/home/dev/.local/bin/stockade");
        assert_ne!(first.file, second.file);
        assert!(
            !first
                .text
                .contains(second.file.file_name().unwrap().to_str().unwrap())
        );
    }

    #[test]
    fn a_path_has_one_profile() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = |path: &str| Profile::of(Path::new(path), directory.path()).expect("a profile");
        let package = directory.path().join(PROFILE);
        fs::write(
            &package,
            "profile stockade /usr/bin/stockade flags=(unconfined) { userns, }",
        )
        .expect("a file");
        assert_eq!(of("/usr/bin/stockade").file, package);
        assert!(
            of("/usr/bin/stockade")
                .text
                .contains("profile stockade /usr/bin/stockade ")
        );
        assert_ne!(of("/usr/local/bin/stockade").file, package);
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
            assert!(
                Profile::of(Path::new(path), Path::new("/")).is_err(),
                "{path}"
            );
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
        let install = |text: &str| {
            let (file, text) = (file.clone(), text.to_owned());
            Profile { file, text }.install(&parser, program)
        };
        let refused = install("new").expect_err("refused");
        assert!(refused.to_string().contains("not kept"), "{refused}");
        assert!(!file.exists());

        parse(&format!(
            "test \"$1\" = --replace && cp \"$2\" {}",
            loaded.display()
        ));
        install("new").expect("installed");
        assert_eq!(fs::read_to_string(&loaded).expect("loaded"), "new");
        let mode = fs::metadata(&file).expect("a file").mode();
        assert_eq!(mode & 0o777, 0o644);

        parse("exit 1");
        install("newer").expect_err("refused");
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
