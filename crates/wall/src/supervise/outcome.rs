//! How the command ended, and the exit code for it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    path::{Path, PathBuf},
};

use stockade_sys::signals::Signal;

use crate::facts::is_led_from_inside;

/// The exit code for everything that is Stockade's fault: the command was not run, or was ended.
pub const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
/// The exit code if the command is not there.
pub const NOT_FOUND: u8 = 127;
const KILLED: u8 = 128;

/// What became of the command.
#[derive(Debug)]
pub enum Outcome {
    Exited(u8),
    Killed(Signal),
    NotFound(NotFound),
    NotExecutable { program: OsString, error: io::Error },
}

/// A program that does not exist inside.
#[derive(Debug)]
pub struct NotFound {
    pub program: OsString,
    /// Where it is outside, if it is.
    pub outside: Option<PathBuf>,
    /// That is no place where it was looked for inside.
    pub off_path: bool,
    /// A link that the command could have made leads there.
    pub is_led: bool,
}

/// A program, and where it is looked for inside.
#[derive(Debug)]
pub(crate) struct Sought {
    pub(crate) program: OsString,
    pub(crate) search_path: OsString,
}

impl Outcome {
    /// The exit code, by the customs of shells.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Exited(code) => *code,
            Self::Killed(signal) => KILLED + signal.number(),
            Self::NotFound(_) => NOT_FOUND,
            Self::NotExecutable { .. } => NOT_EXECUTABLE,
        }
    }

    /// What to tell the user, beyond the exit code.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        match self {
            Self::Exited(_) | Self::Killed(_) => None,
            Self::NotFound(missing) => Some(missing.to_string()),
            Self::NotExecutable { program, error } => {
                Some(format!("{program:?} cannot be executed: {error}"))
            }
        }
    }
}

impl NotFound {
    /// Looks whether the program is hidden, or nowhere.
    pub(crate) fn look_outside(sought: &Sought) -> Self {
        let Sought {
            program,
            search_path,
        } = sought;
        let is_path = program.as_encoded_bytes().contains(&b'/');
        let outside = if is_path {
            Some(PathBuf::from(program)).filter(|path| path.exists())
        } else {
            env::var_os("PATH").and_then(|path| find(program, &path))
        };
        let directory = outside.as_deref().and_then(Path::parent);
        let is_searched = |directory| env::split_paths(search_path).any(|one| one == directory);
        Self {
            program: program.clone(),
            off_path: !is_path && directory.is_some_and(|directory| !is_searched(directory)),
            is_led: outside.as_deref().is_some_and(is_led_from_here),
            outside,
        }
    }
}

/// Whether a link in the current directory, which the command can write, leads there.
fn is_led_from_here(path: &Path) -> bool {
    env::current_dir()
        .is_ok_and(|here| is_led_from_inside(&here.join(path), std::slice::from_ref(&here)))
}

fn find(program: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    env::split_paths(search_path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = Path::new(&self.program);
        match &self.outside {
            None if is_a_line(&self.program) => write!(
                f,
                "{program:?} was not found: it is one word with blanks in it; write the command \
                 and its arguments as words of their own, or have a shell read the line: \
                 sh -c {}",
                quoted(&self.program)
            ),
            None => write!(
                f,
                "{program:?} was not found: install it, or name it by its path"
            ),
            Some(path) if self.is_led => write!(
                f,
                "{program:?} was not found: outside it is {path:?}, and a link in this directory \
                 leads from there to what is not visible in the sandbox: that is suspicious unless \
                 you made the link"
            ),
            Some(path) if self.off_path => write!(
                f,
                "{program:?} was not found: outside it is {path:?}, and the PATH that is set \
                 inside does not lead there; name it by its path"
            ),
            Some(path) => write!(
                f,
                "{program:?} was not found: outside it is {path:?}, \
                 which is not visible in the sandbox; --read shows it"
            ),
        }
    }
}

/// Whether somebody took a whole line for the name of a program.
fn is_a_line(program: &OsStr) -> bool {
    program
        .as_encoded_bytes()
        .iter()
        .any(u8::is_ascii_whitespace)
}

/// A line as one word for a shell.
fn quoted(line: &OsStr) -> String {
    let line = line.to_string_lossy();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    format!("'{}'", line.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_outside(program: &str, search_path: &str) -> NotFound {
        NotFound::look_outside(&Sought {
            program: program.into(),
            search_path: search_path.into(),
        })
    }

    #[test]
    fn exit_codes_follow_the_customs_of_shells() {
        assert_eq!(Outcome::Exited(3).exit_code(), 3);
        assert_eq!(Outcome::Killed(Signal::TERM).exit_code(), 143);
        let missing = look_outside("no-such-program-anywhere", "/bin");
        assert_eq!(missing.outside, None);
        assert_eq!(Outcome::NotFound(missing).exit_code(), 127);
    }

    #[test]
    fn a_line_in_one_word_is_told_from_a_name() {
        let told = |program| look_outside(program, "/bin").to_string();
        assert!(told("no-such-program").ends_with("install it, or name it by its path"));
        let line = told("ls -la 'it'");
        assert!(line.ends_with(r"sh -c 'ls -la '\''it'\'''"), "{line}");
    }

    #[test]
    fn a_hidden_program_is_told_from_one_that_does_not_exist() {
        let found = look_outside("/bin/sh", "/x");
        assert_eq!(found.outside, Some("/bin/sh".into()));
        assert!(found.to_string().contains("not visible"));
        assert_eq!(
            find(OsStr::new("sh"), OsStr::new("relative:/bin")),
            Some("/bin/sh".into())
        );
    }

    #[test]
    fn a_program_off_the_path_that_is_set_is_not_said_to_be_hidden() {
        let program = OsStr::new("sh");
        let usual = env::var_os("PATH").expect("a PATH");
        let path = find(program, &usual).expect("a shell");
        let told = look_outside("sh", "/x:/y").to_string();
        assert!(told.contains("the PATH that is set inside"), "{told}");
        let directory = path.parent().and_then(Path::to_str).expect("a directory");
        let told = look_outside("sh", directory).to_string();
        assert!(told.contains("not visible"), "{told}");
    }
}
