//! Which settings of a repository only describe, and so may be changed by a session.
//!
//! A list of dangerous settings is never complete: git has hundreds, other programs add theirs,
//! and every release has new ones. So this is a list of harmless ones, each with the reason why it
//! is; whatever is not on it is not harmless. `docs/git-settings.md` has the verdict on every
//! setting that git documents.

use std::{collections::BTreeSet, path::Path};

use super::Setting;

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
    /// What a session can write.
    pub(crate) writable: &'a [&'a Path],
    /// The remotes that have an address of their own.
    pub(crate) remotes: BTreeSet<Vec<u8>>,
}

/// Which values of a setting are harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Any,
    OneOf(&'static [&'static str]),
    /// Of a repository on another machine, or of one that no session writes to.
    Address,
    /// The name of a remote with such an address, or the address itself. Git takes every other
    /// name for a path, and the repository there may be the session's.
    Remote,
    /// A directory in the same place as the repository.
    Worktree,
}

use Value::{Address, Any, OneOf, Remote, Worktree};

const BOOLEAN: Value = OneOf(&["true", "false", "yes", "no", "on", "off", "1", "0", ""]);

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

/// Settings that only describe. `*` stands for one subsection; a name of only `*` for all names of
/// the section, with subsections or without.
const TABLE: &[(&str, Value, &str)] = &[
    ("advice.*", Any, LOOKS),
    ("apply.whitespace", Any, DEFAULT),
    ("author.email", Any, IDENTITY),
    ("author.name", Any, IDENTITY),
    ("blame.blankboundary", Any, LOOKS),
    ("blame.coloring", Any, LOOKS),
    ("blame.date", Any, LOOKS),
    ("blame.ignorerevsfile", Any, LOOKS),
    ("blame.markignoredlines", Any, LOOKS),
    ("blame.markunblamablelines", Any, LOOKS),
    ("blame.showemail", Any, LOOKS),
    ("blame.showroot", Any, LOOKS),
    ("branch.autosetupmerge", Any, DEFAULT),
    ("branch.autosetuprebase", Any, DEFAULT),
    ("branch.sort", Any, LOOKS),
    ("branch.*.description", Any, BRANCH),
    ("branch.*.gh-merge-base", Any, BRANCH),
    ("branch.*.github-pr-base-branch", Any, BRANCH),
    ("branch.*.github-pr-owner-number", Any, BRANCH),
    ("branch.*.merge", Any, BRANCH),
    ("branch.*.pushremote", Remote, BRANCH),
    (
        "branch.*.rebase",
        OneOf(&["true", "false", "merges", "interactive", "m", "i"]),
        BRANCH,
    ),
    ("branch.*.remote", Remote, BRANCH),
    ("branch.*.vscode-merge-base", Any, BRANCH),
    ("checkout.guess", BOOLEAN, DEFAULT),
    ("checkout.thresholdforparallelism", Any, SPEED),
    ("checkout.workers", Any, SPEED),
    ("color.*", Any, LOOKS),
    ("column.*", Any, LOOKS),
    ("commit.cleanup", Any, DEFAULT),
    ("commit.status", Any, LOOKS),
    ("commit.verbose", Any, LOOKS),
    ("commitgraph.*", Any, SPEED),
    ("committer.email", Any, IDENTITY),
    ("committer.name", Any, IDENTITY),
    ("core.abbrev", Any, LOOKS),
    ("core.autocrlf", Any, FILES),
    ("core.bare", BOOLEAN, FORM),
    ("core.bigfilethreshold", Any, SPEED),
    ("core.checkroundtripencoding", Any, FILES),
    ("core.commentchar", Any, LOOKS),
    ("core.commentstring", Any, LOOKS),
    ("core.commitgraph", BOOLEAN, SPEED),
    ("core.compression", Any, SPEED),
    ("core.deltabasecachelimit", Any, SPEED),
    ("core.eol", Any, FILES),
    ("core.filemode", BOOLEAN, FILES),
    ("core.ignorecase", BOOLEAN, FILES),
    ("core.logallrefupdates", Any, FORM),
    ("core.loosecompression", Any, SPEED),
    ("core.multipackindex", BOOLEAN, SPEED),
    ("core.packedgitlimit", Any, SPEED),
    ("core.packedgitwindowsize", Any, SPEED),
    ("core.precomposeunicode", BOOLEAN, FILES),
    ("core.preloadindex", BOOLEAN, SPEED),
    ("core.quotepath", Any, LOOKS),
    ("core.repositoryformatversion", Any, FORM),
    ("core.safecrlf", Any, FILES),
    ("core.sparsecheckout", BOOLEAN, FILES),
    ("core.sparsecheckoutcone", BOOLEAN, FILES),
    ("core.splitindex", BOOLEAN, SPEED),
    ("core.symlinks", BOOLEAN, FILES),
    ("core.untrackedcache", Any, SPEED),
    ("core.warnambiguousrefs", Any, LOOKS),
    ("core.whitespace", Any, LOOKS),
    ("core.worktree", Worktree, FORM),
    ("diff.algorithm", Any, LOOKS),
    ("diff.colormoved", Any, LOOKS),
    ("diff.colormovedws", Any, LOOKS),
    ("diff.context", Any, LOOKS),
    ("diff.dirstat", Any, LOOKS),
    ("diff.dstprefix", Any, LOOKS),
    ("diff.indentheuristic", Any, LOOKS),
    ("diff.interhunkcontext", Any, LOOKS),
    ("diff.mnemonicprefix", Any, LOOKS),
    ("diff.noprefix", Any, LOOKS),
    ("diff.relative", Any, LOOKS),
    ("diff.renamelimit", Any, LOOKS),
    ("diff.renames", Any, LOOKS),
    ("diff.srcprefix", Any, LOOKS),
    ("diff.statgraphwidth", Any, LOOKS),
    ("diff.statnamewidth", Any, LOOKS),
    ("diff.submodule", Any, LOOKS),
    ("diff.wserrorhighlight", Any, LOOKS),
    ("extensions.compatobjectformat", Any, FORM),
    ("extensions.objectformat", Any, FORM),
    ("extensions.partialclone", Remote, FORM),
    ("extensions.refstorage", OneOf(&["files", "reftable"]), FORM),
    ("extensions.relativeworktrees", BOOLEAN, FORM),
    ("extensions.worktreeconfig", BOOLEAN, FORM),
    ("feature.experimental", BOOLEAN, SPEED),
    ("feature.manyfiles", BOOLEAN, SPEED),
    ("fetch.all", BOOLEAN, DEFAULT),
    ("fetch.output", Any, LOOKS),
    ("fetch.parallel", Any, SPEED),
    ("fetch.prune", BOOLEAN, DEFAULT),
    ("fetch.prunetags", BOOLEAN, DEFAULT),
    ("fetch.showforcedupdates", BOOLEAN, LOOKS),
    ("fetch.unpacklimit", Any, SPEED),
    ("fetch.writecommitgraph", BOOLEAN, SPEED),
    ("gc.auto", Any, SPEED),
    ("gc.autopacklimit", Any, SPEED),
    ("gc.packrefs", Any, SPEED),
    ("gc.writecommitgraph", BOOLEAN, SPEED),
    ("grep.column", Any, LOOKS),
    ("grep.extendedregexp", Any, DEFAULT),
    ("grep.fullname", Any, LOOKS),
    ("grep.linenumber", Any, LOOKS),
    ("grep.patterntype", Any, DEFAULT),
    ("grep.threads", Any, SPEED),
    ("gui.encoding", Any, LOOKS),
    ("gui.geometry", Any, LOOKS),
    ("gui.wmstate", Any, LOOKS),
    ("i18n.commitencoding", Any, LOOKS),
    ("i18n.logoutputencoding", Any, LOOKS),
    ("index.*", Any, SPEED),
    ("init.defaultbranch", Any, DEFAULT),
    ("lfs.repositoryformatversion", Any, FORM),
    (
        "lfs.*.access",
        OneOf(&["basic", "none", "negotiate", "ntlm"]),
        REMOTE,
    ),
    ("lfs.*.locksverify", BOOLEAN, REMOTE),
    ("log.abbrevcommit", Any, LOOKS),
    ("log.date", Any, LOOKS),
    ("log.decorate", Any, LOOKS),
    ("log.follow", Any, LOOKS),
    ("log.graphcolors", Any, LOOKS),
    ("log.showroot", Any, LOOKS),
    ("maintenance.auto", BOOLEAN, SPEED),
    ("maintenance.strategy", Any, SPEED),
    ("merge.autostash", BOOLEAN, DEFAULT),
    (
        "merge.conflictstyle",
        OneOf(&["merge", "diff3", "zdiff3"]),
        LOOKS,
    ),
    ("merge.directoryrenames", Any, DEFAULT),
    ("merge.ff", Any, DEFAULT),
    ("merge.log", Any, LOOKS),
    ("merge.renamelimit", Any, DEFAULT),
    ("merge.renames", Any, DEFAULT),
    ("merge.renormalize", Any, DEFAULT),
    ("merge.stat", Any, LOOKS),
    ("merge.verbosity", Any, LOOKS),
    ("pack.*", Any, SPEED),
    ("protocol.version", Any, SPEED),
    ("pull.ff", OneOf(&["true", "false", "only"]), DEFAULT),
    (
        "pull.rebase",
        OneOf(&["true", "false", "merges", "interactive", "m", "i"]),
        DEFAULT,
    ),
    ("push.autosetupremote", BOOLEAN, DEFAULT),
    (
        "push.default",
        OneOf(&["nothing", "current", "upstream", "tracking", "simple"]),
        DEFAULT,
    ),
    ("push.followtags", BOOLEAN, DEFAULT),
    ("push.negotiate", BOOLEAN, SPEED),
    ("push.useforceifincludes", BOOLEAN, DEFAULT),
    ("rebase.abbreviatecommands", BOOLEAN, LOOKS),
    ("rebase.autosquash", BOOLEAN, DEFAULT),
    ("rebase.autostash", BOOLEAN, DEFAULT),
    ("rebase.forkpoint", BOOLEAN, DEFAULT),
    ("rebase.missingcommitscheck", Any, DEFAULT),
    ("rebase.rebasemerges", Any, DEFAULT),
    ("rebase.stat", BOOLEAN, LOOKS),
    ("rebase.updaterefs", BOOLEAN, DEFAULT),
    ("remote.pushdefault", Remote, ADDRESS),
    ("remote.*.fetch", Any, REMOTE),
    ("remote.*.followremotehead", Any, REMOTE),
    ("remote.*.gh-resolved", Any, REMOTE),
    ("remote.*.partialclonefilter", Any, REMOTE),
    ("remote.*.promisor", BOOLEAN, REMOTE),
    ("remote.*.prune", BOOLEAN, REMOTE),
    ("remote.*.prunetags", BOOLEAN, REMOTE),
    ("remote.*.skipdefaultupdate", BOOLEAN, REMOTE),
    ("remote.*.skipfetchall", BOOLEAN, REMOTE),
    ("remote.*.tagopt", OneOf(&["--tags", "--no-tags"]), REMOTE),
    ("remote.*.url", Address, ADDRESS),
    ("rerere.autoupdate", BOOLEAN, DEFAULT),
    ("rerere.enabled", BOOLEAN, DEFAULT),
    ("sparse.expectfilesoutsideofpatterns", BOOLEAN, FILES),
    ("splitindex.*", Any, SPEED),
    ("stash.*", Any, LOOKS),
    ("status.aheadbehind", BOOLEAN, LOOKS),
    ("status.branch", BOOLEAN, LOOKS),
    ("status.displaycommentprefix", BOOLEAN, LOOKS),
    ("status.relativepaths", BOOLEAN, LOOKS),
    ("status.short", BOOLEAN, LOOKS),
    ("status.showstash", BOOLEAN, LOOKS),
    ("submodule.active", Any, SUBMODULE),
    ("submodule.fetchjobs", Any, SPEED),
    ("submodule.propagatebranches", BOOLEAN, DEFAULT),
    ("submodule.recurse", BOOLEAN, DEFAULT),
    ("submodule.*.active", BOOLEAN, SUBMODULE),
    ("submodule.*.branch", Any, SUBMODULE),
    ("submodule.*.fetchrecursesubmodules", Any, SUBMODULE),
    ("submodule.*.shallow", BOOLEAN, SUBMODULE),
    (
        "submodule.*.update",
        OneOf(&["checkout", "rebase", "merge", "none"]),
        SUBMODULE,
    ),
    ("submodule.*.url", Address, SUBMODULE),
    ("tag.sort", Any, LOOKS),
    ("user.email", Any, IDENTITY),
    ("user.name", Any, IDENTITY),
    ("user.useconfigonly", BOOLEAN, IDENTITY),
    ("versionsort.suffix", Any, LOOKS),
    ("worktree.guessremote", BOOLEAN, DEFAULT),
    ("worktree.userelativepaths", BOOLEAN, FORM),
];

/// What other settings do, as far as it is worth saying.
const DRIVES: &[(&str, &str)] = &[
    ("include.path", SETTINGS),
    ("includeif.*.path", SETTINGS),
    ("core.attributesfile", SETTINGS),
    ("core.excludesfile", "can hide files from `git status`"),
    (
        "status.showuntrackedfiles",
        "can hide files from `git status`",
    ),
    ("core.worktree", "makes git work on other files"),
    (
        "init.templatedir",
        "makes git copy files into new repositories",
    ),
    ("branch.*.remote", ELSEWHERE),
    ("branch.*.pushremote", ELSEWHERE),
    ("remote.pushdefault", ELSEWHERE),
    ("remote.*.url", ELSEWHERE),
    ("remote.*.pushurl", ELSEWHERE),
    ("remote.*.proxy", ELSEWHERE),
    ("submodule.*.url", ELSEWHERE),
    ("url.*.insteadof", ELSEWHERE),
    ("url.*.pushinsteadof", ELSEWHERE),
    ("http.*", "changes how git talks to servers"),
    ("alias.*", COMMAND),
    ("core.alternaterefscommand", COMMAND),
    ("core.askpass", COMMAND),
    ("core.editor", COMMAND),
    ("core.fsmonitor", COMMAND),
    ("core.gitproxy", COMMAND),
    ("core.hookspath", COMMAND),
    ("core.pager", COMMAND),
    ("core.sshcommand", COMMAND),
    ("credential.*", COMMAND),
    ("diff.external", COMMAND),
    ("diff.*.command", COMMAND),
    ("diff.*.textconv", COMMAND),
    ("filter.*", COMMAND),
    ("gc.recentobjectshook", COMMAND),
    ("gpg.*", COMMAND),
    ("hook.*", COMMAND),
    ("interactive.difffilter", COMMAND),
    ("merge.*.driver", COMMAND),
    ("pager.*", COMMAND),
    ("protocol.*", COMMAND),
    ("remote.*.receivepack", COMMAND),
    ("remote.*.uploadpack", COMMAND),
    ("remote.*.vcs", COMMAND),
    ("sequence.editor", COMMAND),
    ("submodule.*.update", COMMAND),
];

const COMMAND: &str = "makes git run a program";
const SETTINGS: &str = "makes git take settings from another file";
const ELSEWHERE: &str = "makes git talk to another repository";
const UNKNOWN: &str = "is not known to be harmless";

impl Setting {
    /// Whether this setting, as it is, only describes.
    pub(crate) fn verdict(&self, context: &Context<'_>) -> Verdict {
        let entry = TABLE.iter().find(|(pattern, _, _)| self.fits(pattern));
        if let Some((_, value, why)) = entry
            && value.allows(self, context)
        {
            return Verdict::Describes(why);
        }
        let known = DRIVES.iter().find(|(pattern, _)| self.fits(pattern));
        Verdict::Drives(known.map_or(UNKNOWN, |(_, effect)| effect))
    }

    /// Whether some value of this setting only describes, so that its order among others, which
    /// decide, counts for nothing.
    pub(crate) fn may_describe(&self) -> bool {
        TABLE.iter().any(|(pattern, _, _)| self.fits(pattern))
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
            Any => true,
            OneOf(words) => {
                text.is_ok_and(|text| words.contains(&text.to_ascii_lowercase().as_str()))
            }
            Address => text.is_ok_and(|text| is_elsewhere(text, context.writable)),
            Remote => {
                value == b"." || context.remotes.contains(value) || text.is_ok_and(is_on_a_server)
            }
            Worktree => text.is_ok_and(|text| is_own_worktree(text, context)),
        }
    }
}

/// The address of a repository on a server: a URL, or `user@host:path`. No helper of git's
/// (`ext::command`) and no path.
fn is_on_a_server(text: &str) -> bool {
    const SCHEMES: &[&str] = &[
        "https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps",
    ];
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return false;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        return SCHEMES.contains(&scheme)
            && !rest.starts_with(['-', '/'])
            && !host.starts_with('-')
            && !rest.is_empty();
    }
    let Some((host, path)) = text.split_once(':') else {
        return false;
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '~');
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    !name.is_empty()
        && !name.starts_with('-')
        && !host.starts_with('-')
        && host.chars().all(fits)
        && !path.is_empty()
        && !path.starts_with([':', '-'])
}

/// The same, or a directory that no session writes to.
fn is_elsewhere(text: &str, writable: &[&Path]) -> bool {
    if is_on_a_server(text) {
        return true;
    }
    let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
    if !path.is_absolute() {
        return false;
    }
    let is_outside = |path: &Path| !writable.iter().any(|place| path.starts_with(place));
    // By its name, and by where it leads: a link could be the session's.
    is_outside(&crate::facts::absolute(path))
        && crate::nofollow::real(path).is_ok_and(|real| is_outside(&real))
}

/// Whether a submodule's repository is told to work on a directory of the workspace, as git does
/// when it makes one.
fn is_own_worktree(text: &str, context: &Context<'_>) -> bool {
    let Some(repository) = context.repository else {
        return false;
    };
    let parts: Vec<_> = repository
        .components()
        .map(std::path::Component::as_os_str)
        .collect();
    let is_module = parts.windows(2).any(|pair| pair == [".git", "modules"]);
    let is_own = |worktree: &Path| {
        let is_inside = |place: &&Path| worktree.starts_with(place) && worktree != *place;
        context.writable.iter().any(is_inside)
            && !worktree.components().any(|part| part.as_os_str() == ".git")
    };
    let worktree = repository.join(text);
    // By its name, and by where it leads: a link could be the session's.
    let leads_away = crate::nofollow::real(&worktree).is_ok_and(|real| !is_own(&real));
    is_module && is_own(&crate::facts::absolute(&worktree)) && !leads_away
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::settings::parse;

    fn describes(text: &str) -> bool {
        let workspace = Path::new("/home/ada/project");
        let writable = [workspace];
        let repository = workspace.join(".git/modules/sub");
        let context = Context {
            repository: Some(&repository),
            writable: &writable,
            remotes: [b"origin".to_vec()].into(),
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
            "[remote \"x\"] url = x",
            "[remote \"x\"] url = /home/ada/project/x",
            "[remote \"x\"] url = file:///home/ada/project/x",
            "[remote \"x\"] url = /home/ada/../ada/project",
            "[remote \"x\"] url = -oProxyCommand=x:y",
            "[remote \"x\"] url = ssh://-oProxyCommand=x/y",
            "[remote \"x\"] url = helper::https://x/y",
            "[remote \"x\"] tagopt = --upload-pack=x",
            "[branch \"main\"] remote = x",
            "[branch \"main\"] remote = ../x",
            "[branch \"main\"] mergeoptions = -s x",
            "[remote] pushDefault = x",
            "[submodule \"a\"] update = !x",
            "[core] worktree = /",
            "[core] worktree = ../../..",
            "[core] worktree = ../../../.git/x",
            "[pager] log = x",
            "[gc] recentObjectsHook = x",
            "[http] cookieFile = x",
            "[http] saveCookies = true",
            "[status] showUntrackedFiles = no",
            "[extensions] refStorage = x://y",
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
        let entry = TABLE.iter().find(|(pattern, _, _)| setting.fits(pattern));
        match entry {
            Some((_, Any, why)) => ("stays", why),
            Some((_, OneOf(_), why)) => ("stays with values that git itself defines", why),
            Some((_, Address, why)) => (
                "stays if new and on a server or outside of the workspace",
                why,
            ),
            Some((_, Remote, why)) => ("stays if it names a remote that has an address", why),
            Some((_, Worktree, why)) => (
                "stays in a submodule, for a directory of the workspace",
                why,
            ),
            None => match setting.verdict(&Context::default()) {
                Verdict::Drives(why) => ("put back", why),
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
            A session may change these settings of a repository, or they are put back at its end and kept for \
            `stockade accept`.\nThe list is every setting that git 2.47.3 documents. Settings that are not \
            in it are put back.\n\n\
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
        for (pattern, _, _) in TABLE {
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
            "[remote \"origin\"] url = /usr",
            "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main",
            "[branch \"main\"]\nremote = https://example.com/fork.git",
            "[branch \"main\"]\nremote = .",
            "[submodule \"a\"]\nactive\nurl = https://example.com/a\nupdate = rebase",
            "[core] worktree = ../../../sub",
            "[pull] rebase = true",
            "[extensions] worktreeConfig = true",
        ] {
            assert!(describes(text), "{text}");
        }
    }
}
