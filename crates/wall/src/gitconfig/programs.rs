//! Settings by which a repository makes git run programs, or take other settings or files
//! than its own.

use super::Setting;

/// Sections, names and what they do; `*` stands for any subsection (or none), and any name.
const TABLE: &[(&str, &str, &str)] = &[
    ("alias", "*", COMMAND),
    ("browser", "cmd", COMMAND),
    ("browser", "path", COMMAND),
    ("core", "alternaterefscommand", COMMAND),
    ("core", "askpass", COMMAND),
    ("core", "attributesfile", SETTINGS),
    ("core", "editor", COMMAND),
    ("core", "excludesfile", SETTINGS),
    ("core", "fsmonitor", COMMAND),
    ("core", "gitproxy", COMMAND),
    ("core", "hookspath", COMMAND),
    ("core", "pager", COMMAND),
    ("core", "sshcommand", COMMAND),
    ("core", "worktree", FILES),
    ("credential", "helper", COMMAND),
    ("diff", "command", COMMAND),
    ("diff", "external", COMMAND),
    ("diff", "textconv", COMMAND),
    ("difftool", "cmd", COMMAND),
    ("difftool", "path", COMMAND),
    ("extensions", "worktreeconfig", SETTINGS),
    ("filter", "clean", COMMAND),
    ("filter", "process", COMMAND),
    ("filter", "smudge", COMMAND),
    ("gpg", "defaultkeycommand", COMMAND),
    ("gpg", "program", COMMAND),
    ("guitool", "cmd", COMMAND),
    ("hook", "command", COMMAND),
    ("imap", "tunnel", COMMAND),
    ("include", "path", SETTINGS),
    ("includeif", "path", SETTINGS),
    ("init", "templatedir", FILES),
    ("instaweb", "httpd", COMMAND),
    ("interactive", "difffilter", COMMAND),
    ("man", "cmd", COMMAND),
    ("man", "path", COMMAND),
    ("merge", "driver", COMMAND),
    ("mergetool", "cmd", COMMAND),
    ("mergetool", "path", COMMAND),
    ("pager", "*", COMMAND),
    ("protocol", "allow", COMMAND),
    ("remote", "receivepack", COMMAND),
    ("remote", "uploadpack", COMMAND),
    ("remote", "vcs", COMMAND),
    ("remote", "proxy", ELSEWHERE),
    ("http", "proxy", ELSEWHERE),
    ("sendemail", "*", COMMAND),
    ("sequence", "editor", COMMAND),
    ("submodule", "update", COMMAND),
    ("tar", "command", COMMAND),
    ("trailer", "cmd", COMMAND),
    ("trailer", "command", COMMAND),
    ("uploadpack", "packobjectshook", COMMAND),
    ("url", "insteadof", ELSEWHERE),
    ("url", "pushinsteadof", ELSEWHERE),
    ("web", "browser", COMMAND),
];

const COMMAND: &str = "makes git run a program";
const SETTINGS: &str = "makes git take settings from another file";
const FILES: &str = "makes git work on other files";
const ELSEWHERE: &str = "makes git talk to another host";

impl Setting {
    /// What this setting makes git do that its caller did not ask for, if anything.
    pub(crate) fn drives_git(&self) -> Option<&'static str> {
        let entry = TABLE.iter().find(|(section, name, _)| {
            *section == self.section && (*name == "*" || *name == self.name)
        });
        let (_, _, effect) = entry?;
        let value = self.value();
        let is_harmless = match (self.section.as_str(), self.name.as_str()) {
            // git's own watcher, or none.
            ("core", "fsmonitor") => matches!(value, "true" | "false" | "1" | "0" | ""),
            // One of git's commands; only `!` starts another program, and `-c` sets what does.
            ("alias", _) => !value.starts_with('!') && !value.contains("-c"),
            ("pager", _) => matches!(value, "true" | "false"),
            ("submodule", _) => !value.starts_with('!'),
            _ => false,
        };
        (!is_harmless).then_some(effect)
    }
}

#[cfg(test)]
mod tests {
    use crate::gitconfig::parse;

    fn drives(text: &str) -> bool {
        let settings = parse(text.as_bytes()).unwrap();
        settings
            .iter()
            .any(|setting| setting.drives_git().is_some())
    }

    #[test]
    fn settings_that_run_programs_are_told_from_those_that_do_not() {
        for text in [
            "[core] fsmonitor = ./x",
            "[CORE] HooksPath = .hooks",
            "[core] sshCommand = x",
            "[filter \"lfs\"] clean = x",
            "[diff \"pdf\"] textconv = x",
            "[credential] helper = !x",
            "[credential \"https://x\"] helper = store",
            "[alias] st = !x",
            "[alias] ci = -c core.editor=x commit",
            "[include] path = ../x",
            "[includeIf \"gitdir:x\"] path = ../x",
            "[url \"https://evil/\"] insteadOf = https://good/",
            "[remote \"origin\"] uploadpack = x",
            "[submodule \"a\"] update = !x",
            "[core] worktree = /",
            "[pager] log = x",
        ] {
            assert!(drives(text), "{text}");
        }
        for text in [
            "[core] bare = false",
            "[core] fsmonitor = true",
            "[user] name = x",
            "[alias] st = status",
            "[remote \"origin\"] url = https://example.com/x",
            "[branch \"main\"] merge = refs/heads/main",
            "[submodule \"a\"] update = rebase",
            "[pager] log = false",
        ] {
            assert!(!drives(text), "{text}");
        }
    }
}
