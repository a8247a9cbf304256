//! The settings of a repository that a session may change, because they only describe.
//!
//! A list of dangerous settings is never complete: git has hundreds, other programs add theirs,
//! and every release has new ones. So this is a list of harmless settings, each with its reason.
//! A setting that is not on the list counts as dangerous. `docs/git-settings.md` has the verdict on
//! every setting that git documents.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{Setting, address::is_on_a_server, worktree::is_own_worktree};

/// What a setting does to people who run git outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It only describes: what.
    Describes(&'static str),
    /// It is not known to only describe: what it does, as far as that is known.
    Drives(&'static str),
}

/// What the verdict on a value depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context<'a> {
    /// The directory of the repository that the file belongs to.
    pub(crate) repository: Option<&'a Path>,
    /// The file counts for all repositories of the user's.
    pub(crate) is_for_all: bool,
    /// What a session can write.
    pub(crate) writable: &'a [PathBuf],
    /// The session made the repository.
    pub(crate) is_new: bool,
    /// The file is that of one worktree (`config.worktree`).
    pub(crate) is_of_worktree: bool,
    /// The worktree that the file named before.
    pub(crate) worktree: Option<Vec<u8>>,
    /// The session runs, and may be between two steps of a `git mv`.
    pub(crate) is_live: bool,
    /// The branches that were there before; nothing if they are not known.
    pub(crate) branches: Option<&'a BTreeSet<Vec<u8>>>,
    /// The branches that had a remote and are still there.
    pub(crate) left: BTreeSet<Vec<u8>>,
    /// The remotes that other files of the repository had an address of.
    pub(crate) elsewhere: BTreeSet<Vec<u8>>,
    /// Those that keep one in a file that git reads wherever it reads this one.
    pub(crate) kept_elsewhere: BTreeSet<Vec<u8>>,
    /// Those of which other files said something, or say it now.
    pub(crate) named_elsewhere: BTreeSet<Vec<u8>>,
    /// The remotes that have an address of their own.
    pub(crate) remotes: BTreeSet<Vec<u8>>,
    /// Those whose address was there before.
    pub(crate) known: BTreeSet<Vec<u8>>,
    /// Those that git may fetch from without being asked.
    pub(crate) promisors: BTreeSet<Vec<u8>>,
}

/// Which values of a setting are harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// On one line. Only for what git neither hands on nor writes into a text that it reads again.
    Any,
    /// The same, on several.
    Lines,
    /// Words that are no option, and nothing special in any notation.
    Plain,
    /// In a repository that the session made.
    New,
    OneOf(&'static [&'static str]),
    /// Of a repository on another machine, or what a remote had before, under whatever name. No other
    /// path: the session may write there by another name (its kept cache), and run hooks, or it may be
    /// a repository that was not given, which git would bring into this one.
    Address,
    /// The name of a remote with such an address, or the address itself. Git takes every other
    /// name for a path, and the repository there may be the session's.
    Remote,
    /// The branch that a branch is merged with, and may be pushed to. Which branches are the session's
    /// own is not known here.
    Merge,
    /// Of a remote from which git fetches what is missing whenever it comes to that, or its name: also
    /// `git status` talks to it. So a session cannot make one of what there was. A repository that it
    /// cloned is of no use without; there a server with a global name passes, to which the session
    /// could have sent what it has anyway.
    Promisor,
    /// A directory in the same place as the repository.
    Worktree,
}

use Value::{Address, Any, Lines, Merge, New, OneOf, Plain, Promisor, Remote, Worktree};

const BOOLEAN: Value = OneOf(&["true", "false", "yes", "no", "on", "off", "1", "0", ""]);

#[rustfmt::skip]
const DATE: Value = OneOf(&[
    "auto:default", "auto:human", "auto:iso", "auto:relative", "auto:short", "default", "human", "iso",
    "iso-local", "iso-strict", "iso-strict-local", "iso8601", "iso8601-strict", "local", "raw", "raw-local",
    "relative", "rfc", "rfc2822", "short", "short-local", "unix",
]);

const BRANCH: &str = "what a branch follows";
const REMOTE: &str = "what is fetched from a remote";
const ADDRESS: &str = "where a remote is";
const FORM: &str = "the form of the repository";
const FILES: &str = "how files are checked out and compared";
const LOOKS: &str = "how git shows things";
const IDENTITY: &str = "who commits";
const SUBMODULE: &str = "which submodules there are";
const DEFAULT: &str = "what a command of git's does by default";
const SPEED: &str = "how git stores and looks things up";

/// Settings that only describe, by which values do and what. `*` stands for one subsection; a name of only `*` for all names of
/// the section, with subsections or without.
#[rustfmt::skip]
const TABLE: &[(Value, &str, &[&str])] = &[
    (BOOLEAN, LOOKS, &["advice.*"]),
    (Any, LOOKS, &[
        "blame.blankboundary", "blame.coloring", "blame.markignoredlines", "blame.markunblamablelines",
        "blame.showemail", "blame.showroot", "branch.sort", "column.branch", "column.clean", "column.status",
        "column.tag", "column.ui", "commit.status", "commit.verbose", "core.abbrev", "core.quotepath",
        "core.warnambiguousrefs", "core.whitespace", "diff.algorithm", "diff.colormoved", "diff.colormovedws",
        "diff.context", "diff.dirstat", "diff.indentheuristic", "diff.interhunkcontext",
        "diff.mnemonicprefix", "diff.noprefix", "diff.renamelimit", "diff.renames",
        "diff.statgraphwidth", "diff.statnamewidth", "diff.submodule",
        "diff.wserrorhighlight", "fetch.output", "grep.column", "grep.fullname", "grep.linenumber",
        "log.abbrevcommit", "log.decorate", "log.follow", "log.graphcolors", "log.showroot",
        "merge.log", "merge.stat", "merge.verbosity", "stash.showincludeuntracked", "stash.showpatch",
        "stash.showstat", "tag.sort", "versionsort.suffix",
    ]),
    // Git writes it before lines of the list of steps of a rebase, which it then reads.
    (OneOf(&["#", ";", "%", "@", "!", "//", "auto"]), LOOKS, &["core.commentchar", "core.commentstring"]),
    // In some encodings, a letter of a commit's title becomes the end of a line of that list.
    (OneOf(&["utf-8", "utf8", "iso-8859-1", "latin1", "us-ascii", "ascii"]), LOOKS, &[
        "gui.encoding", "i18n.commitencoding", "i18n.logoutputencoding",
    ]),
    // Not `format:…`, which can have ends of lines in it: other programs read what git shows.
    (DATE, LOOKS, &["blame.date", "log.date"]),
    (Plain, LOOKS, &["diff.dstprefix", "diff.srcprefix", "gui.geometry", "gui.wmstate"]),
    (Any, DEFAULT, &[
        "apply.whitespace", "branch.autosetupmerge", "branch.autosetuprebase", "commit.cleanup",
        "grep.extendedregexp", "grep.patterntype", "merge.directoryrenames", "merge.ff",
        "merge.renamelimit", "merge.renames", "merge.renormalize", "rebase.missingcommitscheck",
        "rebase.rebasemerges",
    ]),
    (Plain, DEFAULT, &["init.defaultbranch"]),
    (Any, IDENTITY, &[
        "author.email", "author.name", "committer.email", "committer.name", "user.email", "user.name",
    ]),
    (Lines, BRANCH, &["branch.*.description"]),
    (Plain, BRANCH, &[
        "branch.*.gh-merge-base", "branch.*.github-pr-base-branch", "branch.*.github-pr-owner-number",
        "branch.*.vscode-merge-base",
    ]),
    (Merge, BRANCH, &["branch.*.merge"]),
    (Any, SPEED, &[
        "checkout.thresholdforparallelism", "checkout.workers", "commitgraph.changedpathsversion",
        "commitgraph.generationversion", "commitgraph.maxnewfilters", "commitgraph.readchangedpaths",
        "core.compression", "core.deltabasecachelimit", "core.loosecompression",
        "core.packedgitlimit", "core.packedgitwindowsize", "core.untrackedcache", "fetch.parallel",
        "fetch.unpacklimit", "gc.auto", "gc.autopacklimit", "gc.packrefs", "grep.threads", "index.version",
        "maintenance.strategy", "pack.allowpackreuse", "pack.compression", "pack.deltacachelimit",
        "pack.deltacachesize", "pack.depth", "pack.indexversion", "pack.island", "pack.islandcore",
        "pack.packsizelimit", "pack.preferbitmaptips", "pack.readreverseindex", "pack.threads",
        "pack.usebitmapboundarytraversal", "pack.usebitmaps", "pack.usesparse", "pack.window",
        "pack.windowmemory", "pack.writebitmaphashcache", "pack.writebitmaplookuptable",
        "pack.writereverseindex", "protocol.version", "splitindex.maxpercentchange",
        "splitindex.sharedindexexpire", "submodule.fetchjobs",
    ]),
    (Any, FILES, &["core.autocrlf", "core.checkroundtripencoding", "core.eol", "core.safecrlf"]),
    (Any, FORM, &[
        "core.logallrefupdates", "core.repositoryformatversion", "lfs.repositoryformatversion",
    ]),
    (New, FORM, &["extensions.compatobjectformat", "extensions.objectformat"]),
    (Any, REMOTE, &["remote.*.fetch", "remote.*.followremotehead"]),
    // Not the name of another repository, which `gh` then works on. Nor is every remote one that it may
    // work on.
    (OneOf(&["base"]), REMOTE, &["remote.*.gh-resolved"]),
    (Any, SUBMODULE, &["submodule.active", "submodule.*.branch", "submodule.*.fetchrecursesubmodules"]),
    (BOOLEAN, DEFAULT, &[
        "checkout.guess", "fetch.prune", "fetch.prunetags", "merge.autostash",
        "push.autosetupremote", "push.followtags", "push.useforceifincludes", "rebase.autosquash",
        "rebase.autostash", "rebase.forkpoint", "rebase.updaterefs", "rerere.autoupdate", "rerere.enabled",
        "submodule.propagatebranches", "worktree.guessremote",
    ]),
    (BOOLEAN, FORM, &[
        "core.bare", "extensions.relativeworktrees", "extensions.worktreeconfig", "worktree.userelativepaths",
    ]),
    (BOOLEAN, SPEED, &[
        "core.commitgraph", "core.multipackindex", "core.preloadindex", "core.splitindex",
        "feature.experimental", "feature.manyfiles", "fetch.writecommitgraph", "gc.writecommitgraph",
        "index.recordendofindexentries", "index.recordoffsettable", "index.skiphash", "index.sparse",
        "maintenance.auto", "push.negotiate",
    ]),
    (BOOLEAN, FILES, &[
        "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.sparsecheckout",
        "core.sparsecheckoutcone", "core.symlinks", "sparse.expectfilesoutsideofpatterns",
    ]),
    (BOOLEAN, LOOKS, &[
        "fetch.showforcedupdates", "rebase.abbreviatecommands", "rebase.stat", "status.aheadbehind",
        "status.branch", "status.displaycommentprefix", "status.relativepaths", "status.short",
        "status.showstash",
    ]),
    (BOOLEAN, REMOTE, &[
        "lfs.*.locksverify", "remote.*.prune", "remote.*.prunetags",
        "remote.*.skipdefaultupdate", "remote.*.skipfetchall",
    ]),
    (BOOLEAN, SUBMODULE, &["submodule.*.active", "submodule.*.shallow"]),
    (BOOLEAN, IDENTITY, &["user.useconfigonly"]),
    (OneOf(&["--tags", "--no-tags"]), REMOTE, &["remote.*.tagopt"]),
    (OneOf(&["basic", "none", "negotiate", "ntlm"]), REMOTE, &["lfs.*.access"]),
    (OneOf(&["checkout", "rebase", "merge", "none"]), SUBMODULE, &["submodule.*.update"]),
    (OneOf(&["files", "reftable"]), FORM, &["extensions.refstorage"]),
    // Not the colours themselves: black on black hides what a session added from who reads the diff.
    (OneOf(&["always", "auto", "never", "true", "false"]), LOOKS, &[
        "color.advice", "color.branch", "color.diff", "color.grep", "color.interactive", "color.pager",
        "color.push", "color.remote", "color.showbranch", "color.status", "color.transport", "color.ui",
    ]),
    (OneOf(&["merge", "diff3", "zdiff3"]), LOOKS, &["merge.conflictstyle"]),
    // Not `upstream`: a branch that was made from another one follows that, and would be pushed there.
    (OneOf(&["nothing", "current", "simple"]), DEFAULT, &["push.default"]),
    (OneOf(&["true", "false", "merges", "interactive", "m", "i"]), BRANCH, &["branch.*.rebase"]),
    (OneOf(&["true", "false", "merges", "interactive", "m", "i"]), DEFAULT, &["pull.rebase"]),
    (OneOf(&["true", "false", "only"]), DEFAULT, &["pull.ff"]),
    (Address, ADDRESS, &["remote.*.url"]),
    (Address, SUBMODULE, &["submodule.*.url"]),
    (Remote, BRANCH, &["branch.*.pushremote", "branch.*.remote"]),
    (Promisor, FORM, &["extensions.partialclone"]),
    (Promisor, REMOTE, &["remote.*.partialclonefilter", "remote.*.promisor"]),
    (Remote, ADDRESS, &["remote.pushdefault"]),
    (Worktree, FORM, &["core.worktree"]),
];

/// What other settings do, as far as it is worth saying.
#[rustfmt::skip]
const DRIVES: &[(&str, &[&str])] = &[
    (SETTINGS, &["include.path", "includeif.*.path", "core.attributesfile"]),
    ("can hide files from `git status`", &["core.excludesfile", "status.showuntrackedfiles"]),
    ("can hide lines from who reads them", &["color.*"]),
    ("makes git read another file", &["blame.ignorerevsfile"]),
    ("makes git read the index in another way", &["index.threads"]),
    ("can write commands into the list of steps of a rebase", &[
        "core.commentchar", "core.commentstring", "i18n.commitencoding", "i18n.logoutputencoding",
        "rebase.instructionformat",
    ]),
    (GH, &["remote.*.gh-resolved"]),
    ("makes git work on other files", &["core.worktree"]),
    ("makes git copy files into new repositories", &["init.templatedir"]),
    (ELSEWHERE, &[
        "branch.*.remote", "branch.*.pushremote", "remote.pushdefault", "remote.*.url", "remote.*.pushurl",
        "remote.*.proxy", "submodule.*.url", "url.*.insteadof", "url.*.pushinsteadof",
    ]),
    (UNASKED, &["remote.*.partialclonefilter", "remote.*.promisor", "extensions.partialclone"]),
    ("makes git fetch from every remote without being asked", &["fetch.all"]),
    ("makes git go into every submodule without being asked", &["submodule.recurse"]),
    ("makes git read the repository in another form", &["extensions.compatobjectformat", "extensions.objectformat"]),
    ("changes how git talks to servers", &["http.*"]),
    (COMMAND, &[
        "alias.*", "core.alternaterefscommand", "core.askpass", "core.editor", "core.fsmonitor",
        "core.gitproxy", "core.hookspath", "core.pager", "core.sshcommand", "credential.*", "diff.external",
        "diff.*.command", "diff.*.textconv", "filter.*", "gc.recentobjectshook", "gpg.*", "hook.*",
        "interactive.difffilter", "merge.*.driver", "pager.*", "protocol.*", "remote.*.receivepack",
        "remote.*.uploadpack", "remote.*.vcs", "sequence.editor", "submodule.*.update",
    ]),
];

const COMMAND: &str = "makes git run a program";
const SETTINGS: &str = "makes git take settings from another file";
const ELSEWHERE: &str = "makes git talk to another repository";
pub(super) const UNASKED: &str = "makes git fetch from there without being asked";
pub(super) const GH: &str = "makes gh work on another repository";
/// `git fetch --all` starts a git for each remote, with its name as an argument.
const OPTION: &str = "has a name that git takes for an option";
/// Git looks for a remote of that name before it takes a text for an address or a path.
const SHADOW: &str = "has a name that git and people use for an address or a path";
const UNKNOWN: &str = "is not known to be harmless";

impl Setting {
    /// Whether this setting, as it is, only describes.
    pub(crate) fn verdict(&self, context: &Context<'_>) -> Verdict {
        if self.subsection().is_some_and(|name| name.starts_with(b"-")) {
            return Verdict::Drives(OPTION);
        }
        if self.section() == b"remote" && self.subsection().is_some_and(is_address_or_path) {
            return Verdict::Drives(SHADOW);
        }
        // What is harmless in one repository may lead the others elsewhere.
        let is_of_repository = matches!(self.section(), b"remote" | b"branch" | b"submodule");
        if context.is_for_all && is_of_repository {
            return Verdict::Drives(ELSEWHERE);
        }
        let entry = TABLE.iter().find(|(.., patterns)| self.fits_any(patterns));
        if let Some((value, why, _)) = entry
            && value.allows(self, context)
        {
            return Verdict::Describes(why);
        }
        let known = DRIVES.iter().find(|(_, patterns)| self.fits_any(patterns));
        Verdict::Drives(known.map_or(UNKNOWN, |(effect, _)| effect))
    }

    /// Whether some value of this setting only describes, so that its order among others, which
    /// decide, counts for nothing.
    pub(crate) fn may_describe(&self) -> bool {
        TABLE.iter().any(|(.., patterns)| self.fits_any(patterns))
    }

    fn fits_any(&self, patterns: &[&str]) -> bool {
        patterns.iter().any(|pattern| self.fits(pattern))
    }

    fn fits(&self, pattern: &str) -> bool {
        let mut parts = pattern.split('.');
        if parts.next().map(str::as_bytes) != Some(self.section()) {
            return false;
        }
        match (parts.next(), parts.next()) {
            (Some("*"), None) => true,
            (Some(name), None) => self.subsection().is_none() && name.as_bytes() == self.name(),
            (Some(_), Some(name)) => self.subsection().is_some() && name.as_bytes() == self.name(),
            (None, _) => false,
        }
    }
}

impl Value {
    fn allows(self, setting: &Setting, context: &Context<'_>) -> bool {
        let value = setting.bytes();
        let text = std::str::from_utf8(value);
        match self {
            // Git prints values such as `log.date`, and terminals obey some characters.
            Any | Merge => text.map_or(!value.iter().any(u8::is_ascii_control), |text| {
                !text.contains(|c: char| c.is_control() && c != '\t')
            }),
            Lines => text.is_ok_and(|text| {
                let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
                !text.contains(is_obeyed)
            }),
            Plain => text.is_ok_and(|text| {
                let is_plain = |c: char| c.is_alphanumeric() || " ._/@#+-".contains(c);
                text.chars().all(is_plain) && !text.starts_with(['-', ' '])
            }),
            New => context.is_new,
            OneOf(words) => {
                text.is_ok_and(|text| words.contains(&text.to_ascii_lowercase().as_str()))
            }
            Address => {
                let name = setting.subsection().filter(|_| setting.is_address());
                name.is_some_and(|name| context.known.contains(name))
                    || text.is_ok_and(is_on_a_server)
            }
            Remote => {
                value == b"." || context.remotes.contains(value) || text.is_ok_and(is_on_a_server)
            }
            Promisor => {
                let promisors = &context.promisors;
                promisors.contains(setting.subsection().unwrap_or(value))
            }
            Worktree => text.is_ok_and(|text| is_own_worktree(text, context)),
        }
    }
}

/// Whether the name of a remote is none that `git remote add` takes: `.`, `../x` or an address.
fn is_address_or_path(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| *byte == b'/');
    name.contains(&b':') || parts.any(|part| part.is_empty() || part.starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::settings::parse;

    fn describes(text: &str) -> bool {
        let workspace = Path::new("/home/ada/project");
        let writable = [workspace.to_owned()];
        let repository = workspace.join(".git/modules/sub");
        let context = Context {
            repository: Some(&repository),
            writable: &writable,
            remotes: [b"origin".to_vec()].into(),
            known: [b"origin".to_vec()].into(),
            ..Context::default()
        };
        let settings = parse(text.as_bytes()).unwrap();
        assert!(!settings.is_empty(), "{text}");
        let describes =
            |setting: &Setting| matches!(setting.verdict(&context), Verdict::Describes(_));
        settings.iter().all(describes)
    }

    #[test]
    fn what_is_not_known_to_describe_does_not() {
        for text in [
            "[core] fsmonitor = ./x",
            "[core] fsmonitor = true",
            "[CORE] HooksPath = .hooks",
            "[core] sshCommand = x",
            "[filter \"lfs\"] clean = x",
            "[filter.a \"b\"] clean = x",
            "[diff \"pdf\"] textconv = x",
            "[diff.pdf] algorithm = x",
            "[credential] helper = !x",
            "[credential \"https://x\"] helper = store",
            "[alias] st = !x",
            "[alias] st = status",
            "[alias \"st\"] command = grep -Ox",
            "[include] path = ../x",
            "[includeIf \"gitdir:x\"] path = ../x",
            "[url \"https://evil/\"] insteadOf = https://good/",
            "[remote \"origin\"] uploadpack = x",
            "[remote \"origin\"] pushurl = https://example.com/x",
            "[remote \"x\"] url = ext::sh -c x",
            "[remote \"x\"] url = ../x",
            "[remote \"--upload-pack=x\"] url = https://example.com/x",
            "[remote \".\"] url = https://example.com/x",
            "[remote \"../x\"] url = https://example.com/x",
            "[remote \"https://example.org/x\"] url = https://example.com/x",
            "[remote \"git@example.org:x\"] url = https://example.com/x",
            "[remote \"x\"] url = x",
            "[remote \"x\"] url = /home/ada/project/x",
            "[remote \"x\"] url = file:///home/ada/project/x",
            "[remote \"x\"] url = /home/ada/../ada/project",
            "[remote \"x\"] url = /usr",
            "[remote \"x\"] url = file:///usr",
            "[remote \"x\"] url = fd::3",
            "[submodule \"origin\"] url = /usr",
            "[remote \"x\"] url = -oProxyCommand=x:y",
            "[remote \"x\"] url = ssh://-oProxyCommand=x/y",
            "[remote \"x\"] url = helper::https://x/y",
            "[remote \"x\"] tagopt = --upload-pack=x",
            "[branch \"main\"] remote = x",
            "[branch \"main\"] remote = ../x",
            "[branch \"main\"] mergeoptions = -s x",
            "[remote] pushDefault = x",
            "[push] default = upstream",
            "[push] default = tracking",
            "[remote \"x\"] url = http://127.0.0.1:8080/x",
            "[remote \"x\"] url = git@localhost:x",
            "[branch \"main\"] remote = https://192.168.1.5/x",
            "[remote \"origin\"] promisor = true",
            "[remote \"origin\"] partialCloneFilter = blob:none",
            "[extensions] partialClone = origin",
            "[extensions] objectFormat = sha256",
            "[fetch] all = true",
            "[submodule \"a\"] update = !x",
            "[core] worktree = /",
            "[core] worktree = ../../..",
            "[core] worktree = ../../../.git/x",
            "[core] worktree = ../../../a/../sub",
            "[pager] log = x",
            "[gc] recentObjectsHook = x",
            "[http] cookieFile = x",
            "[http] saveCookies = true",
            "[status] showUntrackedFiles = no",
            "[color \"diff\"] new = black black",
            "[color] ui = black",
            "[log] date = \"format:\u{1b}[8m\"",
            "[log] date = \"format:\u{9b}8m\"",
            "[log] date = format:%n",
            "[extensions] refStorage = x://y",
            "[core] commentString = \" x touch ran #\"",
            "[core] commentChar = x",
            "[i18n] logOutputEncoding = IBM922",
            "[i18n] commitEncoding = IBM856",
            "[diff] srcPrefix = \"a\\n\"",
            "[user] name = \"a\\nb\"",
            "[branch \"x\"] gh-merge-base = --output=x",
            "[remote \"origin\"] gh-resolved = other/repository",
            "[index] threads = 4",
            "[pack] unheard = x",
            "[blame] ignoreRevsFile = pipe",
            "[unheard] of = x",
        ] {
            assert!(!describes(text), "{text}");
        }
        assert!(!describes("naked = x"), "a setting without a section");
    }

    /// The setting that a line of git's documentation is about.
    fn documented(line: &str) -> Setting {
        let mut key = String::new();
        for (number, part) in line.split('.').enumerate() {
            if number > 0 {
                key.push('.');
            }
            let is_placeholder = part.starts_with('<') || part == "*";
            key.push_str(if is_placeholder { "x" } else { part });
        }
        let text = key.to_ascii_lowercase();
        Setting {
            key: text.into_bytes(),
            value: None,
        }
    }

    /// What becomes of it: as text, and whether that depends on its value.
    fn decided(setting: &Setting) -> (&'static str, &'static str) {
        let entry = TABLE
            .iter()
            .find(|(.., patterns)| setting.fits_any(patterns));
        match entry {
            Some((Any | Lines, why, _)) => ("stays", why),
            Some((Plain, why, _)) => ("stays if it is a plain word", why),
            Some((New, why, _)) => ("stays in a new repository", why),
            Some((OneOf(_), why, _)) => ("stays with harmless values that git itself defines", why),
            Some((Address, why, _)) => (
                "stays if new and on a server that is not near; no path",
                why,
            ),
            Some((Remote, why, _)) => (
                "stays if the branch is new and the remote has an address, or for the remote of before, or \
                 for `origin` if there was none",
                why,
            ),
            Some((Merge, why, _)) => (
                "stays if the branch is new, or for a branch of the same name",
                why,
            ),
            Some((Promisor, why, _)) => (
                "stays in a new repository, for a server with a global name",
                why,
            ),
            Some((Worktree, why, _)) => (
                "stays in a submodule, for a directory of the workspace",
                why,
            ),
            None => match setting.verdict(&Context::default()) {
                Verdict::Drives(why) => ("undone", why),
                Verdict::Describes(_) => ("undecided", ""),
            },
        }
    }

    /// Every setting that git documents is decided, and the page says how.
    /// `STOCKADE_UPDATE=1` writes the page.
    #[test]
    fn every_documented_setting_is_decided_and_the_page_says_how() {
        let keys = include_str!("documented.txt").lines().skip(1);
        let rows: Vec<(&str, Setting)> = keys.map(|line| (line, documented(line))).collect();
        assert!(rows.len() > 800, "{}", rows.len());
        let mut page = "# What becomes of each setting of git\n\n\
            A session may change these settings of a repository, or they are undone at its end and kept for \
            `stockade accept`.\nThe list is every setting that git 2.47.3 documents. Settings that are not \
            in it are undone.\n\n\
            This page is written by a test: \
            `STOCKADE_UPDATE=1 cargo test -p stockade-wall every_documented_setting`.\n\n\
            | setting | at the end | it concerns |\n|---|---|---|\n".to_owned();
        for (line, setting) in &rows {
            let (decision, why) = decided(setting);
            assert_ne!(decision, "undecided", "{line}");
            page.push_str(&format!("| `{line}` | {decision} | {why} |\n"));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/git-settings.md");
        if std::env::var_os("STOCKADE_UPDATE").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(
            written == page,
            "docs/git-settings.md is not what the table says"
        );
        // No entry of the table is misspelt: each is documented, or another program's.
        let others = [
            "gh-merge-base",
            "gh-resolved",
            "github-pr-",
            "vscode-",
            "lfs.",
            "gui.",
            "extensions.",
            "remote.*.followremotehead",
            "worktree.userelative",
            "core.",
            "init.",
            "submodule.*.shallow",
        ];
        for pattern in TABLE.iter().flat_map(|(.., patterns)| *patterns) {
            let is_documented = rows.iter().any(|(_, setting)| setting.fits(pattern));
            let is_others = others.iter().any(|other| pattern.contains(other));
            assert!(is_documented || is_others, "{pattern}");
        }
    }

    #[test]
    fn what_git_and_people_write_every_day_describes() {
        for text in [
            "[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates",
            "[user] name = x",
            "[remote \"origin\"]\nurl = https://example.com/x\nfetch = +refs/heads/*:refs/x/*",
            "[remote \"origin\"] url = git@example.com:a/b.git",
            "[remote \"origin\"] url = ssh://git@example.com:22/a",
            "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main",
            "[branch \"main\"]\nremote = https://example.com/fork.git",
            "[branch \"main\"]\nremote = .",
            "[submodule \"a\"]\nactive\nurl = https://example.com/a\nupdate = rebase",
            "[pull] rebase = true",
            "[color] ui = auto",
            "[core] commentChar = \";\"",
            "[i18n] commitEncoding = UTF-8",
            "[log] date = iso",
            "[branch \"x\"] vscode-merge-base = origin/größer",
            "[gui] geometry = 897x506+53+53 208 181",
            "[advice] detachedHead = false",
            "[remote \"origin\"] gh-resolved = base",
            "[branch \"main\"] description = \"one\\n\\ttwo\"",
            "[extensions] worktreeConfig = true",
        ] {
            assert!(describes(text), "{text}");
        }
    }
}
