//! What git has of a merge, a rebase and the like that is not finished. When it goes on, git takes paths,
//! options and commands from these files, and believes them.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::ErrorKind::{NotADirectory, NotFound},
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use super::{
    controls::{Collection, Kind},
    links::has_second_name,
    settings,
};
use crate::{
    facts::{absolute, line_of, named_directory},
    leftovers::content::Content,
    nofollow,
    tables::autorun::{ARGUMENT, CONFLICT},
};

/// Where git has which files are about which recorded conflict.
const CONFLICTS: &str = "MERGE_RR";

/// What of an unfinished command git takes arguments from, or others who hand them to git, and which contents
/// do no harm. Git's other files of this kind hold messages and flags.
type Check = fn(&[u8]) -> bool;
#[rustfmt::skip]
const ARGUMENTS: &[(&str, Check)] = &[
    ("rebase-merge/strategy", is_own_strategy),
    ("rebase-apply/strategy", is_own_strategy),
    ("rebase-merge/strategy_opts", are_options_of_merges),
    ("rebase-apply/strategy_opts", are_options_of_merges),
    ("rebase-merge/gpg_sign_opt", is_key),
    ("rebase-apply/gpg_sign_opt", is_key),
    ("rebase-apply/apply-opt", are_options_of_patches),
    ("rebase-merge/autostash", is_commit),
    ("rebase-apply/autostash", is_commit),
    ("MERGE_AUTOSTASH", is_commit),
    // Editors and prompts of shells hand these to git, to which another word would be an option.
    ("REBASE_HEAD", are_commits),
    ("MERGE_HEAD", are_commits),
    ("CHERRY_PICK_HEAD", are_commits),
    ("REVERT_HEAD", are_commits),
    ("ORIG_HEAD", are_commits),
    ("BISECT_EXPECTED_REV", are_commits),
    ("rebase-merge/onto", are_commits),
    ("rebase-merge/orig-head", are_commits),
    ("rebase-merge/stopped-sha", are_commits),
    ("rebase-merge/amend", are_commits),
    ("rebase-merge/squash-onto", are_commits),
    ("rebase-merge/rewritten-list", are_commits),
    ("rebase-merge/rewritten-pending", are_commits),
    ("rebase-merge/head-name", is_no_option),
    ("rebase-apply/onto", are_commits),
    ("rebase-apply/orig-head", are_commits),
    ("rebase-apply/original-commit", are_commits),
    ("rebase-apply/abort-safety", are_commits),
    ("rebase-apply/rewritten", are_commits),
    ("rebase-apply/head-name", is_no_option),
    ("sequencer/head", are_commits),
    ("sequencer/abort-safety", are_commits),
    // The prompt of a shell shows them, and bash runs what is in a prompt.
    ("rebase-merge/msgnum", is_number),
    ("rebase-merge/end", is_number),
    ("rebase-apply/next", is_number),
    ("rebase-apply/last", is_number),
    ("BISECT_START", is_no_option),
    // Older gits have a shell read them.
    ("BISECT_NAMES", are_in_quotes),
    ("sequencer/opts", are_options_of_a_sequence),
];

/// What every rebase has that applies patches, which has no list of steps.
const WAITING: &str = "rebase-apply/next";

/// The lists of steps.
const STEPS: [&str; 2] = ["rebase-merge/git-rebase-todo", "sequencer/todo"];

impl Collection<'_> {
    /// What of a command that is not finished makes git run programs, or write elsewhere.
    pub(super) fn add_unfinished(
        &mut self,
        directory: &Path,
        roots: &BTreeSet<PathBuf>,
        of: Option<&Path>,
    ) {
        for (name, is_harmless) in ARGUMENTS {
            let path = directory.join(name);
            let is_odd = match nofollow::read(&path) {
                Ok(contents) => !is_harmless(&contents),
                Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
            };
            // That a rebase of this kind waits counts, too, in what there was before.
            let is_waiting = self.before.is_none() && *name == WAITING;
            if (is_odd || is_waiting) && !self.is_below_link(&path) {
                self.add(&path, Kind::Whole(ARGUMENT), of);
            } else if has_second_name(&path) {
                self.add(&path, Kind::Linked, of);
            }
        }
        for name in STEPS {
            let path = directory.join(name);
            if !self.is_below_link(&path) {
                self.add(&path, Kind::Plan, of);
            }
        }
        let conflicts = directory.join(CONFLICTS);
        let stays = match nofollow::read(&conflicts) {
            // Git leaves an empty one behind after every commit.
            Ok(contents) => contents.is_empty() || self.is_own_list(&conflicts, &contents, roots),
            Err(error) => matches!(error.kind(), NotFound | NotADirectory),
        };
        if !stays {
            self.add(&conflicts, Kind::Gone(CONFLICT), of);
        }
    }

    /// Whether a list of conflicts is the user's own, and the session has put nothing else in the place of
    /// the files that it names.
    fn is_own_list(&self, list: &Path, contents: &[u8], roots: &BTreeSet<PathBuf>) -> bool {
        let before = self.before.and_then(|before| before.contents.get(list));
        let is_as_before = before.and_then(Content::bytes) == Some(contents);
        // That of a worktree where no session writes: only the file there says that it is.
        let is_elsewhere = || {
            let directory = list.parent()?;
            let back = nofollow::read(&directory.join("gitdir")).ok()?;
            let dot_git = absolute(&directory.join(OsStr::from_bytes(line_of(&back))));
            let leads_here = named_directory(&dot_git).as_deref() == Some(directory);
            Some(leads_here && !self.is_writable(&dot_git))
        };
        // The session may have made another directory look like the one that git works on.
        let around = list.ancestors().nth(1).filter(|it| it.ends_with(".git"));
        let around = around.and_then(Path::parent);
        is_as_before
            && match around {
                Some(around) => std::iter::once(around)
                    .chain(roots.iter().map(PathBuf::as_path))
                    .all(|root| are_files_below(root, contents)),
                None => is_elsewhere() == Some(true),
            }
    }
}

/// Whether this is a file from which git in this directory takes arguments, steps or paths when it goes on.
pub(crate) fn is_part_of_unfinished(directory: &Path, path: &Path) -> bool {
    let arguments = ARGUMENTS.iter().map(|(name, _)| *name);
    let mut names = arguments.chain(STEPS).chain([CONFLICTS]);
    path.strip_prefix(directory)
        .is_ok_and(|name| names.any(|other| name == Path::new(other)))
}

/// Git runs the program `git-merge-NAME` for every other strategy. `resolve` and `octopus` are git's own, but
/// shell scripts that hand options on to `git read-tree`, which writes to any file (`--index-output`).
fn is_own_strategy(name: &[u8]) -> bool {
    matches!(
        name.trim_ascii(),
        b"" | b"ort" | b"recursive" | b"ours" | b"subtree"
    )
}

/// Words as git quotes them for a shell, which then finds nothing else in them.
fn are_in_quotes(words: &[u8]) -> bool {
    let mut rest = words;
    loop {
        rest = match rest {
            [] => return true,
            [b'\\', b'\'' | b'!', rest @ ..] => rest,
            [b'\'', quoted @ ..] => match quoted.iter().position(|byte| *byte == b'\'') {
                Some(end) => quoted.get(end + 1..).unwrap_or_default(),
                None => return false,
            },
            [byte, rest @ ..] if byte.is_ascii_whitespace() => rest,
            _ => return false,
        };
    }
}

/// The options of a sequence are in the form of git's settings.
fn are_options_of_a_sequence(contents: &[u8]) -> bool {
    let is_harmless = |setting: &settings::Setting| {
        let (value, is) = (setting.bytes(), |name| setting.is("options", name));
        setting.section() == b"options"
            && (!is("strategy") || is_own_strategy(value))
            && (!is("strategy-option") || are_options_of_merges(value))
    };
    settings::parse(contents).is_ok_and(|settings| settings.iter().all(is_harmless))
}

/// Also where no strategy is named: the user's own settings may name one that hands them on.
fn are_options_of_merges(contents: &[u8]) -> bool {
    #[rustfmt::skip]
    const KNOWN: &[&str] = &[
        "ours", "theirs", "patience", "histogram", "minimal", "diff-algorithm", "renormalize", "no-renormalize",
        "ignore-space-change", "ignore-all-space", "ignore-space-at-eol", "ignore-cr-at-eol", "no-renames",
        "find-renames", "rename-threshold", "subtree",
    ];
    words(contents, b"\"'").is_some_and(|words| {
        words.iter().all(|word| {
            let name = word.trim_start_matches('-').split('=').next();
            name.is_some_and(|name| KNOWN.contains(&name))
        })
    })
}

/// `git apply`, which takes these, has others that write to any file.
fn are_options_of_patches(contents: &[u8]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = |text: &str| {
        let mut parts = Path::new(text).components();
        parts.all(|part| matches!(part, Component::Normal(_)))
    };
    let is_known = |word: &String| match word.split_once('=') {
        Some(("--whitespace", how)) => is_plain(how),
        Some(("--directory" | "--include" | "--exclude", path)) => is_plain(path),
        Some(_) => false,
        None => {
            let number = word.strip_prefix("-p").or(word.strip_prefix("-C"));
            let is_flag = ["--reject", "--ignore-whitespace", "--ignore-space-change"];
            number.is_some_and(is_number) || is_flag.contains(&word.as_str())
        }
    };
    words(contents, b"'").is_some_and(|words| words.iter().all(is_known))
}

/// The words of a list in which git quotes each. `None` if there is anything that git would read otherwise.
fn words(contents: &[u8], quotes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(contents).ok()?;
    let words = text.split_ascii_whitespace().map(|word| {
        let quote = word.bytes().next().filter(|first| quotes.contains(first));
        let word = match quote.map(char::from) {
            Some(quote) => word.strip_prefix(quote)?.strip_suffix(quote)?,
            None => word,
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./%*".contains(c);
        word.chars().all(is_plain).then(|| word.to_owned())
    });
    words.collect()
}

/// `-S` and the name of a key. `git rebase` hands it on to `git am` as it is.
fn is_key(option: &[u8]) -> bool {
    let option = option.trim_ascii();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"@._+-<> !".contains(byte);
    option.is_empty()
        || option
            .strip_prefix(b"-S")
            .is_some_and(|key| key.iter().all(is_plain))
}

fn is_commit(name: &[u8]) -> bool {
    name.trim_ascii().iter().all(u8::is_ascii_hexdigit)
}

fn are_commits(names: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
    names.iter().all(is_part)
}

fn is_number(text: &[u8]) -> bool {
    text.trim_ascii().iter().all(u8::is_ascii_digit)
}

fn is_no_option(name: &[u8]) -> bool {
    !name.trim_ascii().starts_with(b"-")
}

/// Whether all files that a list of conflicts names are files below a directory, and no links. Git
/// copies what they hold into the repository, and writes to them.
fn are_files_below(root: &Path, conflicts: &[u8]) -> bool {
    let mut records = conflicts.split(|byte| *byte == 0);
    records.all(|record| {
        let path = record.splitn(2, |byte| *byte == b'\t').nth(1);
        let Some(path) = path.map(|path| Path::new(OsStr::from_bytes(path))) else {
            return record.is_empty();
        };
        let is_plain = |part| matches!(part, Component::Normal(name) if name != ".git");
        let at = root.join(path);
        // What is gone is nothing to git, either.
        path.components().all(is_plain)
            && match nofollow::real(&at) {
                Ok(real) => real == at && real.is_file(),
                Err(error) => error.kind() == NotFound,
            }
    })
}

/// The steps of a rebase without those that run programs; nothing if there are none.
pub(crate) fn without_commands(todo: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let is_command = |line: &&[u8]| {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let word = words.find(|word| !word.is_empty());
        let word = word.map(<[u8]>::trim_ascii);
        matches!(word, Some(b"exec" | b"x"))
    };
    let known: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let lines = todo.split_inclusive(|byte| *byte == b'\n');
    let kept = lines.filter(|line| !is_command(line) || known.contains(line));
    let kept: Vec<u8> = kept.flatten().copied().collect();
    (kept != todo).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_harmless(name: &str, contents: &str) -> bool {
        let mut all = ARGUMENTS.iter();
        let (_, check) = all.find(|(known, _)| *known == name).unwrap();
        check(contents.as_bytes())
    }

    #[test]
    fn only_arguments_that_git_writes_for_ordinary_work_stay() {
        for (name, contents) in [
            ("rebase-merge/strategy", "ort\n"),
            (
                "rebase-merge/strategy_opts",
                "theirs \"diff-algorithm=patience\"\n",
            ),
            ("rebase-merge/strategy_opts", " '--theirs'\n"),
            ("rebase-merge/gpg_sign_opt", "-S\n"),
            ("rebase-merge/gpg_sign_opt", "-Sada@example.com\n"),
            ("rebase-apply/apply-opt", "\n"),
            (
                "rebase-apply/apply-opt",
                " '-p2' '--whitespace=fix' '--directory=a/b' '--exclude=*.x'",
            ),
            (
                "rebase-merge/autostash",
                "0123456789abcdef0123456789abcdef01234567\n",
            ),
            ("BISECT_START", "main\n"),
            (
                "rebase-apply/rewritten",
                "0123456789abcdef0123456789abcdef01234567 89abcdef0123456789abcdef0123456789abcdef\n",
            ),
            ("rebase-merge/head-name", "detached HEAD\n"),
            ("rebase-merge/stopped-sha", "0123abc\n"),
            ("BISECT_NAMES", " '--' 'a b' 'it'\\''s; x'\n"),
            ("rebase-merge/msgnum", "3\n"),
            ("rebase-apply/last", "12"),
            (
                "sequencer/opts",
                "[options]\n\tedit = true\n\tstrategy = ort\n\tstrategy-option = ours\n",
            ),
        ] {
            assert!(is_harmless(name, contents), "{name}: {contents}");
        }
        for (name, contents) in [
            ("rebase-merge/strategy", "x/../evil"),
            ("rebase-merge/msgnum", "$(touch ran)\n"),
            ("rebase-merge/end", "`touch ran`"),
            ("rebase-apply/next", "1 $(touch ran)"),
            ("rebase-apply/last", "${x:=1}"),
            ("rebase-merge/strategy", "[options]\nx=/../evil"),
            ("rebase-merge/strategy", "resolve"),
            (
                "rebase-merge/strategy_opts",
                "\"index-output=/home/ada/.profile\"",
            ),
            ("rebase-merge/strategy_opts", "ours\" --x"),
            ("rebase-apply/gpg_sign_opt", "--directory=x"),
            (
                "rebase-apply/apply-opt",
                "'--build-fake-ancestor=/home/ada/.profile'",
            ),
            ("rebase-apply/apply-opt", "'--directory=../x'"),
            ("rebase-apply/apply-opt", "'--unsafe-paths'"),
            ("rebase-apply/apply-opt", "'-p1'\\''x'"),
            ("MERGE_AUTOSTASH", "--index"),
            ("BISECT_START", "--pathspec-from-file=x"),
            ("REBASE_HEAD", "--output=/home/ada/.profile\n"),
            ("rebase-apply/rewritten", "--output=x --format=%b side"),
            ("rebase-merge/head-name", "--output=x"),
            ("MERGE_HEAD", "side\n"),
            ("BISECT_NAMES", " '--'; touch ran"),
            ("BISECT_NAMES", " 'a' $(touch ran)"),
            ("BISECT_NAMES", " 'a"),
            ("sequencer/opts", "[options]\n\tstrategy = x/../evil\n"),
            ("sequencer/opts", "[options]\n\tstrategy = resolve\n"),
            (
                "sequencer/opts",
                "[options]\n\tstrategy-option = index-output=x\n",
            ),
            ("sequencer/opts", "[core]\n\tx = y\n"),
            ("sequencer/opts", "[options"),
        ] {
            assert!(!is_harmless(name, contents), "{name}: {contents}");
        }
    }

    #[test]
    fn conflicts_are_in_files_and_in_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::fs::write(root.join("dir/file"), "").unwrap();
        std::os::unix::fs::symlink("dir/file", root.join("link")).unwrap();
        std::os::unix::fs::symlink("dir", root.join("way")).unwrap();
        let are_files = |paths: &[&str]| {
            let records = paths.iter().map(|path| format!("0123\t{path}\0"));
            are_files_below(&root, records.collect::<String>().as_bytes())
        };
        assert!(are_files(&["dir/file", "gone"]));
        for path in [
            "link",
            "way/file",
            "../x",
            "/etc/passwd",
            "dir/./../dir/file",
            "dir",
            ".git/hooks/x",
            "",
        ] {
            assert!(!are_files(&["dir/file", path]), "{path}");
        }
    }
}
