//! The shims first in the `PATH` of every shell.
//!
//! Each shell reads a file of Stockade's by one line at the end of its own files. That file puts the
//! shims first, and does so again before each prompt (fish: whenever `PATH` changes), since what
//! comes later also likes to be first: a virtual environment, a manager of Node's versions.

use std::{
    env, fs,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use stockade_config::{Places, shown_path};

use super::{
    lines::{self, Removal},
    links::{self, Shims},
};
use crate::exit::refused;

/// A shell whose files Stockade knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub(crate) const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// The files that login shells and interactive ones read, to which the line is added.
    fn files(self, home: &Path) -> Vec<PathBuf> {
        match self {
            Self::Bash => {
                // Of these, bash reads the first that exists; desktops read the last.
                let login =
                    [".bash_profile", ".bash_login", ".profile"].map(|name| home.join(name));
                let [.., profile] = &login;
                let first = login.iter().find(|file| file.exists()).unwrap_or(profile);
                let mut files = vec![home.join(".bashrc"), first.clone()];
                if first != profile && profile.exists() {
                    files.push(profile.clone());
                }
                files
            }
            Self::Zsh => [".zprofile", ".zshrc"]
                .map(|name| zsh(home).join(name))
                .to_vec(),
            Self::Fish => vec![fish(home)],
        }
    }

    /// Every file to which the line may have been added.
    fn all_files(self, home: &Path) -> Vec<PathBuf> {
        let names: &[&str] = match self {
            Self::Bash => &[".bashrc", ".bash_profile", ".bash_login", ".profile"],
            Self::Zsh => &[".zprofile", ".zshrc"],
            Self::Fish => return vec![fish(home)],
        };
        let directories = [home.to_owned(), zsh(home)];
        let files = directories
            .iter()
            .flat_map(|it| names.iter().map(|name| it.join(name)));
        files.collect()
    }

    /// The line that has this shell read Stockade's file.
    fn line(self, data: &Path) -> Result<String> {
        let file = quoted(&self.own_file(data), self)?;
        Ok(match self {
            Self::Bash | Self::Zsh => format!("[ ! -r {file} ] || . {file}"),
            Self::Fish => format!("test -r {file}; and source {file}"),
        })
    }

    fn own_file(self, data: &Path) -> PathBuf {
        data.join(match self {
            Self::Bash | Self::Zsh => "shell.sh",
            Self::Fish => "shell.fish",
        })
    }

    /// What Stockade's file says.
    fn own_text(self, data: &Path) -> Result<String> {
        let directory = quoted(&Shims::of_user(data).directory, self)?;
        let text = match self {
            Self::Bash | Self::Zsh => include_str!("shell.sh"),
            Self::Fish => include_str!("shell.fish"),
        };
        Ok(text.replace("@SHIMS@", &directory))
    }
}

fn zsh(home: &Path) -> PathBuf {
    let set = env::var_os("ZDOTDIR").map(PathBuf::from);
    set.filter(|path| path.is_absolute())
        .unwrap_or_else(|| home.to_owned())
}

fn fish(home: &Path) -> PathBuf {
    let set = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let set = set.filter(|path| path.is_absolute());
    let config = set.unwrap_or_else(|| home.join(".config"));
    config.join("fish/conf.d/stockade.fish")
}

/// A path in quotes.
fn quoted(path: &Path, shell: Shell) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', ':']));
    let text = text.with_context(|| format!("{} cannot be in a PATH", shown_path(path)))?;
    Ok(match shell {
        Shell::Bash | Shell::Zsh => format!("'{}'", text.replace('\'', r"'\''")),
        Shell::Fish => format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'")),
    })
}

/// The shells of this machine that Stockade knows, by paths that nobody but root chooses.
pub(crate) fn installed() -> Vec<(Shell, PathBuf)> {
    const DIRECTORIES: [&str; 4] = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/run/current-system/sw/bin",
    ];
    let listed = fs::read_to_string("/etc/shells").unwrap_or_default();
    let listed = listed.lines().map(|line| PathBuf::from(line.trim()));
    let usual = DIRECTORIES
        .iter()
        .flat_map(|it| Shell::ALL.map(|shell| Path::new(it).join(shell.name())));
    let mut found: Vec<(Shell, PathBuf)> = Vec::new();
    let mut seen = Vec::new();
    for path in listed.chain(usual).filter(|path| path.is_absolute()) {
        let shell = Shell::ALL.into_iter().find(|it| path.ends_with(it.name()));
        if let (Some(shell), Ok(real)) = (shell, fs::canonicalize(&path))
            && fs::metadata(&real).is_ok_and(|it| it.is_file())
            && !seen.contains(&real)
        {
            seen.push(real);
            found.push((shell, path));
        }
    }
    found
}

/// Writes Stockade's own files, and the lines if that was asked for; else says what to write.
pub(super) fn set_up(places: &Places, write: bool, names: &[String]) -> Result<String> {
    let Places { data, home, .. } = places;
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(data);
    made.with_context(|| format!("cannot make {}", shown_path(data)))?;
    for shell in [Shell::Bash, Shell::Fish] {
        let (file, text) = (shell.own_file(data), shell.own_text(data)?);
        fs::write(&file, text).with_context(|| format!("cannot write {}", shown_path(&file)))?;
    }
    let installed = installed();
    let shells = Shell::ALL.into_iter();
    let shells = shells.filter(|shell| installed.iter().any(|(it, _)| it == shell));
    let mut text = String::new();
    let mut failed = Vec::new();
    let mut by_line: Vec<(String, Vec<Shell>, Vec<PathBuf>)> = Vec::new();
    for shell in shells {
        let line = shell.line(data)?;
        match by_line.iter_mut().find(|(known, ..)| *known == line) {
            Some((_, shells, files)) => {
                shells.push(shell);
                files.extend(shell.files(home));
            }
            None => by_line.push((line, vec![shell], shell.files(home))),
        }
    }
    for (line, shells, files) in by_line {
        let shells: Vec<_> = shells.into_iter().map(Shell::name).collect();
        let shells = shells.join(" and ");
        let mut written = Vec::new();
        for file in files {
            let outcome = if write {
                lines::add(&file, &line)
            } else {
                Ok(())
            };
            match outcome {
                Ok(()) => written.push(shown_path(&file)),
                Err(error) => failed.push(format!("{} ({error})", shown_path(&file))),
            }
        }
        let written = written.join(", ");
        text += &match write {
            true => format!("{shells}: added a line to {written}\n"),
            false => format!(
                "{shells}: add this line at the end of {written}:\n  {line} {}\n",
                lines::MARK
            ),
        };
    }
    if !failed.is_empty() {
        crate::terminal::write(text.as_bytes())?;
        return Err(refused(
            format!(
                "the shims are made, but not in force everywhere: cannot write {}",
                failed.join(", ")
            ),
            "make these files writable and try again, or add the line that `stockade shim add` prints \
             without --write-shell to another file that your shell reads",
        ));
    }
    let names_in_line = names.join(" ");
    text += &match (write, is_in_force(names)) {
        (_, true) => "They are in force in this shell.\n".to_owned(),
        (true, false) => {
            "Start a new shell. `stockade doctor` says what each shell runs.\n".to_owned()
        }
        (false, false) => format!(
            "Or have it written: stockade shim add --write-shell {names_in_line}\n\
             Then start a new shell. `stockade doctor` says what each shell runs.\n"
        ),
    };
    Ok(text)
}

fn is_in_force(names: &[String]) -> bool {
    let is_shim = |name: &String| {
        let first = links::first_in_path(name);
        first
            .as_deref()
            .is_some_and(stockade_sys::mark::is_stockade)
    };
    names.iter().all(is_shim)
}

/// Takes out what [`set_up`] wrote, and Stockade's own files with it.
pub(super) fn clean_up(places: &Places) -> Result<String> {
    let Places { data, home, .. } = places;
    let mut text = String::new();
    for shell in Shell::ALL {
        for file in shell.all_files(home) {
            let removed = lines::remove(&file).with_context(|| {
                format!("cannot take Stockade's line out of {}", shown_path(&file))
            })?;
            let (shell, file) = (shell.name(), shown_path(&file));
            match removed {
                Removal::None => {}
                Removal::Restored => text += &format!("{shell}: restored {file}\n"),
                Removal::Deleted => {
                    text += &format!("{shell}: removed {file}, which Stockade had created\n");
                }
            }
        }
        let _ = fs::remove_file(shell.own_file(data));
    }
    // Not if somebody has put something there.
    let _ = fs::remove_dir(Shims::of_user(data).directory);
    let _ = fs::remove_dir(data);
    Ok(text)
}
