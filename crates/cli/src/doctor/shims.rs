//! Which program each shell of this machine would run for the agents that have shims.
//!
//! Shells are asked, since only they know what their files do: each once as a login shell and once
//! as an interactive one, with the environment of a new login, without a terminal.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Seek as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use stockade_config::{shown, shown_path};
use stockade_sys::{deadline::wait_readable, mark::is_stockade, process::without_terminal};
use stockade_wall::{Environments, behind_shim, behind_shim_in};

use super::Check;
use crate::{
    context,
    shim::{
        self, Shim,
        shells::{self, Shell},
    },
};

/// Some people's files take seconds.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a shell's `PATH` is answered as, which is no name of a shim.
const SEARCH: &str = "/PATH";

/// What begins a line of an answer. Files may print whatever they like.
const ANSWER: &str = "stockade-doctor:";

/// What a shell reads at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Login,
    Interactive,
}

impl Start {
    fn flag(self) -> &'static str {
        match self {
            Self::Login => "-l",
            Self::Interactive => "-i",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Login => "as a login shell",
            Self::Interactive => "interactively",
        }
    }
}

/// Nothing if there is no shim.
pub(super) fn checks() -> Vec<Check> {
    let shims = shim::all();
    if shims.is_empty() {
        return Vec::new();
    }
    let mut checks: Vec<Check> = shims.iter().filter_map(broken).collect();
    let mut names: Vec<&str> = shims.iter().map(|shim| shim.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // All at the same time.
    let asked: Vec<_> = shells::installed()
        .into_iter()
        .flat_map(|(shell, path)| {
            [Start::Login, Start::Interactive].map(|it| (shell, path.clone(), it))
        })
        .map(|(shell, path, start)| (shell, start, Question::ask(shell, &path, start, &names)))
        .collect();
    let deadline = Instant::now() + PATIENCE;
    let answers: Vec<_> = asked
        .into_iter()
        .map(|(shell, start, question)| {
            let answer = question.and_then(|question| question.answer(deadline));
            (shell, start, answer)
        })
        .collect();
    for shell in Shell::ALL {
        let mut of_shell = answers.iter().filter(|(it, ..)| *it == shell).peekable();
        if of_shell.peek().is_some() {
            let problems: Vec<Problem> = of_shell
                .flat_map(|(_, start, answer)| problems(shell, *start, answer, &names))
                .collect();
            checks.push(check(shell, &names, &problems));
        }
    }
    checks
}

/// A link that leads nowhere: shells pass it over.
fn broken(shim: &Shim) -> Option<Check> {
    let path = shown(&shim.path.to_string_lossy());
    let name = &shim.name;
    (!shim.leads_to_stockade()).then(|| {
        Check::warning("shims", format!("{path} leads nowhere"))
            .cost(format!("`{name}` runs without a sandbox"))
            .fix(format!("stockade shim add {name}"))
    })
}

/// What is wrong with a shell, and what mends it.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    found: String,
    cost: &'static str,
    fix: String,
}

/// What comes of a shell that passes a shim over.
const UNCONFINED: &str = "an agent that is started there has no sandbox";
/// What comes of a shim with nothing behind it.
const NOTHING: &str = "the shim does not find the agent there, and runs nothing";

fn check(shell: Shell, names: &[&str], problems: &[Problem]) -> Check {
    let title = match shell {
        Shell::Bash => "shims in bash",
        Shell::Zsh => "shims in zsh",
        Shell::Fish => "shims in fish",
    };
    if problems.is_empty() {
        let found = format!(
            "{} starts {} in the sandbox",
            shell.name(),
            names.join(", ")
        );
        return Check::ok(title, found);
    }
    let found: Vec<_> = problems.iter().map(|it| it.found.as_str()).collect();
    let mut fixes: Vec<_> = problems.iter().map(|it| it.fix.as_str()).collect();
    fixes.dedup();
    let mut costs: Vec<_> = problems.iter().map(|it| it.cost).collect();
    costs.sort_unstable();
    costs.dedup();
    Check::warning(title, found.join("\n"))
        .cost(costs.join("; "))
        .fix(fixes.join("\n"))
}

fn problems(
    shell: Shell,
    start: Start,
    answer: &Result<Vec<(String, String)>>,
    names: &[&str],
) -> Vec<Problem> {
    let who = format!("{}, started {},", shell.name(), start.name());
    let answers = match answer {
        Ok(answers) => answers,
        Err(error) => {
            let found = format!("{who} could not be asked: {error:#}");
            let fix = format!(
                "look at what it says: {} {} -c true",
                shell.name(),
                start.flag()
            );
            let cost = UNCONFINED;
            return vec![Problem { found, cost, fix }];
        }
    };
    let of = |name: &&str| {
        let answer = answers.iter().find(|(it, _)| it == name);
        let runs = answer.map_or("", |(_, runs)| runs.as_str());
        let search = answers.iter().find(|(it, _)| it == SEARCH);
        // Interactive shells mostly inherit the PATH of a login.
        let search = search.filter(|_| start == Start::Login);
        let behind = || nothing_behind(shell, name, &search?.1);
        problem(&who, shell, name, runs).or_else(behind)
    };
    names.iter().filter_map(of).collect()
}

/// What is wrong with what a shell runs for a name, by its own words.
fn problem(who: &str, shell: Shell, name: &str, runs: &str) -> Option<Problem> {
    let write = format!("stockade shim add --write-shell {name}");
    let (found, fix) = if runs.is_empty() {
        (format!("{who} finds no `{name}`"), write)
    } else if !runs.starts_with('/') {
        let what = if runs.starts_with("alias") {
            "an alias"
        } else {
            "a function"
        };
        let fix = format!("remove {what} `{name}` from the files of {}", shell.name());
        (format!("{who} has {what} `{name}`: {}", shown(runs)), fix)
    } else if is_stockade(Path::new(runs)) {
        return None;
    } else {
        (format!("{who} runs {} for `{name}`", shown(runs)), write)
    };
    let cost = UNCONFINED;
    Some(Problem { found, cost, fix })
}

/// A login shell that finds a shim, and by whose `PATH` the shim finds no agent.
fn nothing_behind(shell: Shell, name: &str, search: &str) -> Option<Problem> {
    let home = context::home().ok()?;
    let earlier = context::earlier_sessions(&home, Environments::None);
    if behind_shim_in(search.as_ref(), name.as_ref(), &home, &earlier).is_some() {
        return None;
    }
    let who = shell.name();
    let file = match shell {
        Shell::Bash => "~/.profile or ~/.bash_profile",
        Shell::Zsh => "~/.zprofile",
        Shell::Fish => "~/.config/fish/config.fish",
    };
    let here = behind_shim(name.as_ref(), &home, None, Some(&earlier));
    let directory = here.as_deref().and_then(Path::parent);
    let fix = match directory {
        Some(directory) => format!("add {} to PATH in {file}", shown_path(directory)),
        None => format!("install `{name}`, or add its directory to PATH in {file}"),
    };
    Some(Problem {
        found: format!("{who}, as a login shell, finds the shim but no `{name}` behind it"),
        cost: NOTHING,
        fix,
    })
}

/// A shell that was started and has not answered yet.
struct Question {
    shell: Child,
    said: File,
}

impl Question {
    fn ask(shell: Shell, path: &Path, start: Start, names: &[&str]) -> Result<Self> {
        const PASSED: [&str; 8] = [
            "HOME",
            "USER",
            "LOGNAME",
            "LANG",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_RUNTIME_DIR",
            "ZDOTDIR",
        ];
        let said = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(path);
        command
            .args([start.flag(), "-c", &script(shell, names)])
            .env_clear()
            .envs(
                PASSED
                    .iter()
                    .filter_map(|name| Some((name, env::var_os(name)?))),
            )
            .env("SHELL", path)
            .env("TERM", "dumb")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            // Files of the user's may run or read what lies in the current directory.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(Stdio::null());
        without_terminal(&mut command);
        let shell = command.spawn().context("it does not start")?;
        Ok(Self { shell, said })
    }

    /// What it would run for each name: a path, or its own word for something else.
    fn answer(mut self, deadline: Instant) -> Result<Vec<(String, String)>> {
        let ended = self.wait(deadline);
        // It leads a group of its own, and its number is its own until it has been waited for.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _ = self.shell.wait();
        ended?;
        const LONGEST: u64 = 1 << 20;
        let mut said = Vec::new();
        self.said.rewind()?;
        (&self.said).take(LONGEST).read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let answer = |line: &str| {
            let (name, runs) = line.strip_prefix(ANSWER)?.split_once(':')?;
            Some((name.to_owned(), runs.trim().to_owned()))
        };
        let answers: Vec<_> = said.lines().filter_map(answer).collect();
        if answers.is_empty() {
            anyhow::bail!("its files end it, or start something else");
        }
        Ok(answers)
    }

    fn wait(&self, deadline: Instant) -> Result<()> {
        let process = pidfd_open(Pid::from_child(&self.shell), PidfdFlags::empty())?;
        wait_readable(&process, deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => {
                anyhow!("it did not end in {} seconds", PATIENCE.as_secs())
            }
            _ => error.into(),
        })?;
        Ok(())
    }
}

fn script(shell: Shell, names: &[&str]) -> String {
    let names = names.join(" ");
    match shell {
        Shell::Bash | Shell::Zsh => format!(
            "for name in {names}; do printf '\\n%s\\n' \"{ANSWER}$name:$(command -v \"$name\")\"; done; \
             printf '\\n%s\\n' \"{ANSWER}{SEARCH}:$PATH\""
        ),
        Shell::Fish => format!(
            "for name in {names}; printf '\\n%s%s:%s\\n' {ANSWER} $name \
             (functions -q $name; and echo function; or command -s $name); end; \
             printf '\\n%s%s:%s\\n' {ANSWER} {SEARCH} (string join : $PATH)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_stockade_is_a_problem_with_its_fix() {
        let said = |runs: &str| problem("zsh", Shell::Zsh, "claude", runs);
        let fix = |runs: &str| said(runs).expect(runs).fix;
        assert_eq!(said("/proc/self/exe"), None);
        assert_eq!(fix(""), "stockade shim add --write-shell claude");
        assert_eq!(fix("/bin/sh"), "stockade shim add --write-shell claude");
        assert!(fix("alias claude=/x").contains("remove an alias `claude`"));
        assert!(fix("claude").contains("remove a function `claude`"));
        assert_eq!(
            check(Shell::Zsh, &["claude"], &[]).state,
            super::super::CheckState::Ok
        );
        let problems = [said("/bin/sh").unwrap(), said("").unwrap()];
        let check = check(Shell::Zsh, &["claude"], &problems);
        assert_eq!(check.fix.unwrap(), "stockade shim add --write-shell claude");
    }
}
