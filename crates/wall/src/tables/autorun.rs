//! Files that programs outside execute, or agents obey, without being asked to.
//!
//! One table: the names, who runs them, and when. Files that people do not ask an agent to change
//! every day are *guarded*: if they exist and git does not track them, they are read-only inside, so
//! that a session leaves nothing behind that runs outside later. The others are a part of the work and stay writable. The
//! end of a session reports every change of either kind, and every new one ([`crate::Watch`]): a
//! file that does not exist cannot be protected without leaving something in the checkout.
//!
//! Build scripts, which run when a person starts a build, are not here: a whole workspace is such a
//! script. `docs/files-that-run.md` is made from this table.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// Read-only inside if it exists untracked; told if it changes or appears.
    Guard,
    /// Writable; told if it changes or appears.
    Tell,
}

/// Files and directories that run by themselves, or are obeyed: who runs them and when, and their
/// names at the top of the workspace or below the home directory.
#[derive(Debug)]
pub(crate) struct Autoruns(Treatment, &'static str, &'static [&'static str]);

const fn guard(why: &'static str, names: &'static [&'static str]) -> Autoruns {
    Autoruns(Treatment::Guard, why, names)
}

const fn tell(why: &'static str, names: &'static [&'static str]) -> Autoruns {
    Autoruns(Treatment::Tell, why, names)
}

impl Autoruns {
    pub(crate) fn are_guarded(&self) -> bool {
        self.0 == Treatment::Guard
    }

    /// Where those of them are that lie among git's own files, below a directory of git's.
    pub(crate) fn in_git(&self, directory: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let names = self.names();
        names
            .filter_map(move |(name, why)| Some((directory.join(name.strip_prefix(".git/")?), why)))
    }

    /// Where they are below a directory, and who runs them.
    pub(crate) fn below(&self, directory: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
        self.names()
            .map(move |(name, why)| (directory.join(name), why))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let Self(_, why, names) = *self;
        names.iter().map(move |name| (*name, why))
    }
}

/// Where a reason stands in the table of the workspace. What runs soonest comes first.
pub(crate) fn position(why: &str) -> usize {
    let mut all = WORKSPACE.iter();
    all.position(|runs| runs.1 == why)
        .unwrap_or(WORKSPACE.len())
}

const MISE: &str = "mise may run it outside, when a shell enters the directory";
const EDITOR: &str = "editors run its commands outside, when they open the directory";
const CLAUDE: &str = "Claude Code runs or obeys it outside, when it starts here";
const GEMINI: &str = "Gemini CLI runs or obeys it outside, when it starts here";
const AGENTS: &str = "agents run or obey it outside, when they start here";

/// At the top of the workspace.
#[rustfmt::skip]
pub(crate) const WORKSPACE: &[Autoruns] = &[
    guard("direnv runs it outside, when a shell enters the directory", &[".envrc"]),
    tell("direnv may run it outside, when a shell enters the directory", &[
        "flake.nix", "shell.nix", "devenv.nix", "devbox.json",
    ]),
    guard("autoenv runs it outside, when a shell enters or leaves the directory", &[
        ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".env.leave",
    ]),
    guard("RVM may run it outside, when a shell enters the directory", &[".rvmrc"]),
    guard("shadowenv takes variables from it outside, when a shell enters the directory", &[".shadowenv.d"]),
    guard(MISE, &[
        "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise/config.toml",
        ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".rtx.toml",
        "mise/config.local.toml", ".mise/config.local.toml", ".config/mise.local.toml",
        ".config/mise/config.local.toml", "mise/conf.d", ".mise/conf.d", ".config/mise/conf.d",
    ]),
    tell(MISE, &[".tool-versions"]),
    guard("tmux-sessionizer runs it outside, when it opens the directory", &[
        ".tmux-sessionizer", "tmux-sessionizer.conf",
    ]),
    tell("Hermit takes programs and variables from its directory, when a shell enters the workspace", &[
        "bin/activate-hermit", "bin/hermit.hcl",
    ]),
    // A version may be a path, and the programs there come first in `PATH`.
    guard("fnm may take programs from where it leads, when a shell enters the directory", &[
        ".nvmrc", ".node-version",
    ]),
    guard("SDKMAN may take programs from where it leads, when a shell enters the directory", &[".sdkmanrc"]),
    guard("jenv may run programs from where it leads", &[".java-version"]),
    tell("version managers may run programs from where it leads", &[".python-version", ".ruby-version"]),
    guard("VS Code runs its tasks outside, when it opens the directory", &[".vscode"]),
    guard(EDITOR, &[".devcontainer", ".devcontainer.json"]),
    guard("JetBrains IDEs run its configurations outside", &[".idea", ".run"]),
    guard("Zed runs its tasks and servers outside", &[".zed"]),
    guard("Fleet runs its configurations outside", &[".fleet"]),
    guard(EDITOR, &[".nova", ".vs", ".lapce", ".theia"]),
    guard("Eclipse runs its builders outside, when it builds", &[".externalToolBuilders"]),
    guard("Helix takes programs from it, when it starts here", &[
        ".helix/config.toml", ".helix/languages.toml",
    ]),
    guard("vim may run it outside, when it starts here", &[
        ".exrc", ".vimrc", ".lvimrc", ".local.vimrc", ".vim/coc-settings.json", "Session.vim",
    ]),
    guard("Neovim may run it outside, when it starts here", &[".nvimrc", ".nvim.lua", ".lazy.lua"]),
    guard("Emacs may run it outside, when it opens a file", &[".dir-locals.el", ".dir-locals-2.el"]),
    guard("a debugger may run it outside, when it starts here", &[
        ".gdbinit", ".lldbinit", ".pdbrc", ".perldb", ".byebugrc", ".rdbgrc",
    ]),
    guard("R runs it outside, when it starts here", &[".Rprofile"]),
    guard("R takes its environment from it, when it starts here", &[".Renviron"]),
    guard("R loads it outside, when it starts here", &[".RData"]),
    guard("an interpreter may run it outside, when its prompt starts here", &[
        ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".iex.exs", ".erlang", ".octaverc", "startup.m",
    ]),
    guard("names programs that version control runs outside, with every command", &[
        ".hg/hgrc", ".hg/hgrc-not-shared", ".sl/config", ".jj/repo/config.toml",
        ".jj/workspace-config.toml", "_darcs/prefs/defaults", ".pijul/config", ".bzr/branch/branch.conf",
        ".git/sl/config",
    ]),
    guard("leads version control to other settings outside, which name programs", &[
        ".hg/requires", ".hg/sharedpath", ".sl/requires", ".sl/sharedpath",
    ]),
    guard("lazygit runs its commands outside", &[".git/lazygit.yml", ".lazygit.yml"]),
    guard("glab runs the programs outside that it names", &[".git/glab-cli/config.yml"]),
    tell("git's hooks run its commands outside, with commits", &[
        ".husky", ".pre-commit-config.yaml", ".overcommit.yml", "lefthook.yml", "lefthook.yaml",
        "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml",
        ".lefthook.json", "lefthook-local.yml", "lefthook-local.yaml", ".lefthook-local.yml",
        ".lefthook-local.yaml", ".config/lefthook.yml",
    ]),
    tell("git-lfs sends files to the server that it names, with every push", &[".lfsconfig"]),
    tell("npm, pnpm and yarn take programs and settings from it, with every command", &[
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins", ".yarn/releases", ".pnpmfile.cjs",
        ".pnpmfile.mjs",
    ]),
    tell("bun runs what it names, with every command", &["bunfig.toml"]),
    tell("cargo and rustup take programs from it, with every command", &[
        ".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml",
    ]),
    tell("bazel takes settings from it, with every command", &[".bazelrc"]),
    tell("bazelisk runs it outside, with every command", &["tools/bazel"]),
    tell("Maven takes programs and settings from it, with every command", &[".mvn"]),
    tell(CLAUDE, &[
        ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/skills",
        ".claude/commands", ".claude/agents", ".claude/plugins", ".claude/rules", ".claude/output-styles",
        "CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/workflows", ".claude/launch.json",
        ".claude/scheduled_tasks.json",
    ]),
    tell("Codex runs or obeys it outside, when it starts here", &[".codex"]),
    tell(GEMINI, &[".gemini", "GEMINI.md"]),
    tell(AGENTS, &[
        "AGENTS.md", "AGENTS.override.md", ".agents", ".mcp.json", ".cursor", ".cursorrules", ".windsurf",
        ".windsurfrules", ".continue", ".clinerules", ".roo", ".kilocode", ".kiro", ".amazonq", ".junie",
        ".trae", ".opencode", "opencode.json", "opencode.jsonc", ".crush.json", "crush.json", ".qwen",
        ".goosehints", ".aider.conf.yml", ".github/copilot-instructions.md", ".github/hooks",
        ".aider.model.settings.yml", ".github/instructions", ".github/agents", ".agent", ".rules",
    ]),
    tell("the forge runs it, when it is pushed", &[
        ".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", ".gitpod.yml", "Jenkinsfile",
        ".forgejo/workflows", ".gitea/workflows",
    ]),
];

/// In the home directory, where an agent has its state. All of it is writable there.
#[rustfmt::skip]
pub(crate) const STATE: &[Autoruns] = &[
    tell("Claude Code runs or obeys it outside, in any project", &[
        ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/agents",
        ".claude/commands", ".claude/skills", ".claude/plugins", ".claude/rules", ".claude/output-styles",
        ".claude/CLAUDE.md", ".claude/remote-settings.json", ".claude/workflows",
        ".claude/scheduled_tasks.json", ".claude/scheduled-tasks", ".claude/keybindings.json", ".claude/daemon.json",
        ".claude/cowork_settings.json", ".claude/loop.md", ".claude/chrome",
    ]),
    tell("Claude Code starts servers and logs in by it outside, in any project", &[".claude.json", ".claude/.config.json"]),
    tell("Codex runs or obeys it outside, in any project", &[
        ".codex/config.toml", ".codex/hooks.json", ".codex/hooks", ".codex/prompts", ".codex/skills",
        ".codex/rules", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".codex/.env", ".codex/agents",
        ".codex/plugins", ".codex/automations", ".codex/requirements.toml", ".codex/environments.toml",
        ".codex/vendor_imports",
    ]),
    tell("Gemini CLI runs or obeys it outside, in any project", &[
        ".gemini/settings.json", ".gemini/trustedFolders.json", ".gemini/commands", ".gemini/extensions",
        ".gemini/skills", ".gemini/hooks", ".gemini/agents", ".gemini/GEMINI.md", ".gemini/policies",
        ".gemini/.env", ".gemini/keybindings.json", ".gemini/tmp/bin", ".gemini/config/mcp_config.json",
        ".gemini/antigravity/mcp_config.json", ".gemini/antigravity-cli",
    ]),
    tell("aider runs or obeys it outside, in any project", &[
        ".aider.conf.yml", ".aider.model.settings.yml", ".aider/oauth-keys.env",
    ]),
];

/// Claude Code writes to this file all the time. Of it these parts run or are obeyed.
pub(crate) const CLAUDE_JSON: &str = ".claude.json";
/// If it is there, Claude Code reads this one instead, in the directory of its settings.
pub(crate) const CLAUDE_JSON_INSTEAD: &str = ".config.json";
pub(crate) const CLAUDE_JSON_PARTS: &[&str] = &[
    "mcpServers",
    "env",
    "hooks",
    "allowedTools",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "apiKeyHelper",
    "statusLine",
    "enableAllProjectMcpServers",
    "bypassPermissionsModeAccepted",
    "primaryApiKey",
    "accountUuid",
];
/// What says that nobody has to be asked about a project any more.
pub(crate) const CLAUDE_JSON_TRUST: &[&str] = &[
    "hasTrustDialogAccepted",
    "hasClaudeMdExternalIncludesApproved",
];

pub(crate) const HOOKS: &str = "git runs them outside";
pub(crate) const ATTRIBUTES: &str = "says which files git gives to programs";
/// In a repository's directory: files that git leaves out although they are not in `.gitignore`.
pub(crate) const EXCLUDE: &str = "info/exclude";
pub(crate) const EXCLUDED: &str =
    "`git status` and `git add` leave out the new files that it names";
pub(crate) const REMOTES: &str = "says where git fetches from and pushes to";
pub(crate) const DOT_GIT: &str = "tells git outside where the repository is";
pub(crate) const REDIRECTION: &str = "git takes settings and hooks from where it leads";
pub(crate) const ALTERNATES: &str = "git takes objects from a repository that was not given";
pub(crate) const NAMES: &str = "git uses files of other directories by the names in it";
pub(crate) const WORKTREE: &str = "`git worktree repair` writes a file to where it leads";
pub(crate) const PIPE: &str = "git outside waits there for the session";
pub(crate) const INDEX: &str = "git may find other repositories in it than can be read from it";
pub(crate) const ARGUMENT: &str =
    "`git rebase --continue` and its like run what it names, or write to it";
pub(crate) const CONFLICT: &str = "`git commit` copies the files that it names, and writes to them";
pub(crate) const NAMED: &str = "an agent's settings name it, so agents run or obey it outside";
pub(crate) const DOTFILE: &str = "a link in your home leads to it, so programs outside read it";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::leftovers::DOTFILES;

    /// The page says what the table says. `STOCKADE_UPDATE=1` writes it.
    #[test]
    fn the_page_of_files_that_run_is_the_table() {
        let mut page = "# Files that run by themselves\n\n\
            Programs outside run these files, or agents obey them, without being asked to. *Read-only* ones \
            cannot be\nchanged inside if they exist and git does not track them (`--write` lifts that for one); \
            the others are part of\nthe daily work. In both cases the end of a session tells of those that are \
            new or have changed.\n\n\
            This page is written by a test: \
            `STOCKADE_UPDATE=1 cargo test -p stockade-wall the_page_of_files`.\n"
            .to_owned();
        let parts = [
            (
                "At the top of the workspace, and of each directory given with `write`",
                WORKSPACE,
            ),
            ("In an agent's own state, below your home", STATE),
        ];
        for (heading, table) in parts {
            page.push_str(&format!(
                "\n## {heading}\n\n| file | inside | who runs it, and when |\n|---|---|---|\n"
            ));
            let mut names = BTreeSet::new();
            for Autoruns(treatment, why, run) in table {
                let inside = match treatment {
                    Treatment::Guard => "read-only",
                    Treatment::Tell => "writable",
                };
                for name in *run {
                    page.push_str(&format!("| `{name}` | {inside} | {why} |\n"));
                    assert!(names.insert(name), "{name} stands twice");
                }
            }
        }
        let directories = DOTFILES.map(|name| format!("`~/{name}`"));
        let (last, first) = directories.split_last().unwrap();
        let lines: Vec<_> = first.chunks(5).map(|some| some.join(", ")).collect();
        page.push_str(&format!(
            "\nDotfiles of your home that are links into the workspace are treated like the writable ones. \
             Stockade looks for such\nlinks at the top of your home (names that begin with a dot) and directly in \
             these directories, not deeper:\n{} and {last}.\n\n\
             Of `~/.claude.json` only the parts count that run or are obeyed. State that \
             `CLAUDE_CONFIG_DIR`, `CODEX_HOME` or\n`GEMINI_CLI_HOME` moves is treated alike where it is. So are \
             files in an agent's state that the\nsettings of agents name at the start (a command for the \
             status line, a hook, `@file` in `CLAUDE.md`), unless output goes\nto them (`>> ~/.claude/log`).\n",
            lines.join(",\n")
        ));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/files-that-run.md");
        if std::env::var_os("STOCKADE_UPDATE").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/files-that-run.md is not what the table says"
        );
    }
}
