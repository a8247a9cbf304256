//! Files that programs outside execute, or agents obey, without being asked to.
//!
//! One table: the name, and who runs it when. What people do not ask an agent to change every day is
//! *guarded*: where it exists it is read-only inside, so that a session leaves nothing behind that
//! runs later, outside. The rest is a part of the work and stays writable. A change of either,
//! and one that appears, is told at the end ([`crate::Watch`]): what does not exist cannot be
//! protected without leaving something in the checkout.
//!
//! Build scripts and the like, which run when a person starts a build, are not here: all of a
//! workspace is such a script. `docs/files-that-run.md` is made from this table.

/// A file or directory that runs by itself, or is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Runs {
    /// At the top of the workspace, or below the home directory.
    pub(crate) name: &'static str,
    /// Who runs it, and when.
    pub(crate) why: &'static str,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Read-only inside if it exists; told if it changes or appears.
    Guard,
    /// Writable; told if it changes or appears.
    Tell,
}

const fn guard(name: &'static str, why: &'static str) -> Runs {
    let how = How::Guard;
    Runs { name, why, how }
}

const fn tell(name: &'static str, why: &'static str) -> Runs {
    let how = How::Tell;
    Runs { name, why, how }
}

const DIRENV: &str = "direnv runs it outside, when a shell enters the directory";
const AUTOENV: &str = "autoenv runs it outside, when a shell enters or leaves the directory";
const MISE: &str = "mise may run it outside, when a shell enters the directory";
const NIX: &str = "direnv may run it outside, when a shell enters the directory";
const VIM: &str = "vim may run it outside, when it starts here";
const NEOVIM: &str = "Neovim may run it outside, when it starts here";
const EMACS: &str = "Emacs may run it outside, when it opens a file";
const EDITOR: &str = "editors run its commands outside, when they open the directory";
const DEBUGGER: &str = "a debugger may run it outside, when it starts here";
const PROMPT: &str = "an interpreter may run it outside, when its prompt starts here";
const VCS: &str = "names programs that version control runs outside, with every command";
const GIT_HOOKS: &str = "git's hooks run its commands outside, with commits";
const NPM: &str = "npm, pnpm and yarn take programs and settings from it, with every command";
const CARGO: &str = "cargo and rustup take programs from it, with every command";
const CLAUDE: &str = "Claude Code runs or obeys it outside, when it starts here";
const CODEX: &str = "Codex runs or obeys it outside, when it starts here";
const GEMINI: &str = "Gemini CLI runs or obeys it outside, when it starts here";
const AGENTS: &str = "agents run or obey it outside, when they start here";
const FORGE: &str = "the forge runs it, when it is pushed";

/// At the top of the workspace.
pub(crate) const WORKSPACE: &[Runs] = &[
    guard(".envrc", DIRENV),
    tell("flake.nix", NIX),
    tell("shell.nix", NIX),
    tell("devenv.nix", NIX),
    tell("devbox.json", NIX),
    guard(".autoenv", AUTOENV),
    guard(".autoenv.zsh", AUTOENV),
    guard(".autoenv_leave.zsh", AUTOENV),
    guard(".env.leave", AUTOENV),
    guard("mise.toml", MISE),
    guard(".mise.toml", MISE),
    guard("mise.local.toml", MISE),
    guard(".mise.local.toml", MISE),
    guard("mise/config.toml", MISE),
    guard(".mise/config.toml", MISE),
    guard(".config/mise.toml", MISE),
    guard(".config/mise/config.toml", MISE),
    guard(".rtx.toml", MISE),
    tell(".tool-versions", MISE),
    guard(
        ".vscode",
        "VS Code runs its tasks outside, when it opens the directory",
    ),
    guard(".devcontainer", EDITOR),
    guard(".devcontainer.json", EDITOR),
    guard(".idea", "JetBrains IDEs run its configurations outside"),
    guard(".zed", "Zed runs its tasks and servers outside"),
    guard(".fleet", "Fleet runs its configurations outside"),
    guard(".nova", EDITOR),
    guard(".vs", EDITOR),
    guard(".lapce", EDITOR),
    guard(".theia", EDITOR),
    guard(
        ".externalToolBuilders",
        "Eclipse runs its builders outside, when it builds",
    ),
    guard(
        ".helix/config.toml",
        "Helix takes programs from it, when it starts here",
    ),
    guard(
        ".helix/languages.toml",
        "Helix takes programs from it, when it starts here",
    ),
    guard(".exrc", VIM),
    guard(".vimrc", VIM),
    guard(".lvimrc", VIM),
    guard(".local.vimrc", VIM),
    guard(".nvimrc", NEOVIM),
    guard(".nvim.lua", NEOVIM),
    guard(".dir-locals.el", EMACS),
    guard(".dir-locals-2.el", EMACS),
    guard(".gdbinit", DEBUGGER),
    guard(".lldbinit", DEBUGGER),
    guard(".pdbrc", DEBUGGER),
    guard(".perldb", DEBUGGER),
    guard(".byebugrc", DEBUGGER),
    guard(".rdbgrc", DEBUGGER),
    guard(".Rprofile", "R runs it outside, when it starts here"),
    guard(
        ".Renviron",
        "R takes its environment from it, when it starts here",
    ),
    guard(".RData", "R loads it outside, when it starts here"),
    guard(".irbrc", PROMPT),
    guard(".pryrc", PROMPT),
    guard(".ghci", PROMPT),
    guard(".ocamlinit", PROMPT),
    guard(".iex.exs", PROMPT),
    guard(".erlang", PROMPT),
    guard(".octaverc", PROMPT),
    guard("startup.m", PROMPT),
    guard(".hg/hgrc", VCS),
    guard(".hg/hgrc-not-shared", VCS),
    guard(".sl/config", VCS),
    guard(".jj/repo/config.toml", VCS),
    guard("_darcs/prefs/defaults", VCS),
    guard(".pijul/config", VCS),
    guard(".bzr/branch/branch.conf", VCS),
    guard(".git/lazygit.yml", "lazygit runs its commands outside"),
    guard(".lazygit.yml", "lazygit runs its commands outside"),
    tell(".husky", GIT_HOOKS),
    tell(".pre-commit-config.yaml", GIT_HOOKS),
    tell(".overcommit.yml", GIT_HOOKS),
    tell("lefthook.yml", GIT_HOOKS),
    tell("lefthook.yaml", GIT_HOOKS),
    tell("lefthook.toml", GIT_HOOKS),
    tell("lefthook.json", GIT_HOOKS),
    tell(".lefthook.yml", GIT_HOOKS),
    tell(".lefthook.yaml", GIT_HOOKS),
    tell(".lefthook.toml", GIT_HOOKS),
    tell(".lefthook.json", GIT_HOOKS),
    tell("lefthook-local.yml", GIT_HOOKS),
    tell("lefthook-local.yaml", GIT_HOOKS),
    tell(".lefthook-local.yml", GIT_HOOKS),
    tell(".lefthook-local.yaml", GIT_HOOKS),
    tell(".config/lefthook.yml", GIT_HOOKS),
    tell(".npmrc", NPM),
    tell(".yarnrc", NPM),
    tell(".yarnrc.yml", NPM),
    tell(".yarn/plugins", NPM),
    tell(".yarn/releases", NPM),
    tell(".pnpmfile.cjs", NPM),
    tell(".pnpmfile.mjs", NPM),
    tell("bunfig.toml", "bun runs what it names, with every command"),
    tell(".cargo/config.toml", CARGO),
    tell(".cargo/config", CARGO),
    tell("rust-toolchain", CARGO),
    tell("rust-toolchain.toml", CARGO),
    tell(
        ".bazelrc",
        "bazel takes settings from it, with every command",
    ),
    tell(
        "tools/bazel",
        "bazelisk runs it outside, with every command",
    ),
    tell(
        ".mvn",
        "Maven takes programs and settings from it, with every command",
    ),
    tell(".claude/settings.json", CLAUDE),
    tell(".claude/settings.local.json", CLAUDE),
    tell(".claude/hooks", CLAUDE),
    tell(".claude/skills", CLAUDE),
    tell(".claude/commands", CLAUDE),
    tell(".claude/agents", CLAUDE),
    tell(".claude/plugins", CLAUDE),
    tell(".claude/rules", CLAUDE),
    tell(".claude/output-styles", CLAUDE),
    tell("CLAUDE.md", CLAUDE),
    tell("CLAUDE.local.md", CLAUDE),
    tell(".claude/CLAUDE.md", CLAUDE),
    tell(".codex", CODEX),
    tell(".gemini", GEMINI),
    tell("GEMINI.md", GEMINI),
    tell("AGENTS.md", AGENTS),
    tell("AGENTS.override.md", AGENTS),
    tell(".agents", AGENTS),
    tell(".mcp.json", AGENTS),
    tell(".cursor", AGENTS),
    tell(".cursorrules", AGENTS),
    tell(".windsurf", AGENTS),
    tell(".windsurfrules", AGENTS),
    tell(".continue", AGENTS),
    tell(".clinerules", AGENTS),
    tell(".roo", AGENTS),
    tell(".kilocode", AGENTS),
    tell(".kiro", AGENTS),
    tell(".amazonq", AGENTS),
    tell(".junie", AGENTS),
    tell(".trae", AGENTS),
    tell(".opencode", AGENTS),
    tell("opencode.json", AGENTS),
    tell("opencode.jsonc", AGENTS),
    tell(".crush.json", AGENTS),
    tell("crush.json", AGENTS),
    tell(".qwen", AGENTS),
    tell(".goosehints", AGENTS),
    tell(".aider.conf.yml", AGENTS),
    tell(".github/copilot-instructions.md", AGENTS),
    tell(".github/workflows", FORGE),
    tell(".github/actions", FORGE),
    tell(".gitlab-ci.yml", FORGE),
    tell(".circleci", FORGE),
    tell(".gitpod.yml", FORGE),
    tell("Jenkinsfile", FORGE),
];

/// In the home directory, where an agent has its state. All of it is writable there.
pub(crate) const STATE: &[Runs] = &[
    tell(".claude/settings.json", CLAUDE_ANYWHERE),
    tell(".claude/settings.local.json", CLAUDE_ANYWHERE),
    tell(".claude/hooks", CLAUDE_ANYWHERE),
    tell(".claude/agents", CLAUDE_ANYWHERE),
    tell(".claude/commands", CLAUDE_ANYWHERE),
    tell(".claude/skills", CLAUDE_ANYWHERE),
    tell(".claude/plugins", CLAUDE_ANYWHERE),
    tell(".claude/rules", CLAUDE_ANYWHERE),
    tell(".claude/output-styles", CLAUDE_ANYWHERE),
    tell(".claude/CLAUDE.md", CLAUDE_ANYWHERE),
    tell(
        ".claude.json",
        "Claude Code starts its servers outside, in any project",
    ),
    tell(".codex/config.toml", CODEX_ANYWHERE),
    tell(".codex/hooks.json", CODEX_ANYWHERE),
    tell(".codex/hooks", CODEX_ANYWHERE),
    tell(".codex/prompts", CODEX_ANYWHERE),
    tell(".codex/skills", CODEX_ANYWHERE),
    tell(".codex/rules", CODEX_ANYWHERE),
    tell(".codex/AGENTS.md", CODEX_ANYWHERE),
    tell(".codex/AGENTS.override.md", CODEX_ANYWHERE),
    tell(".gemini/settings.json", GEMINI_ANYWHERE),
    tell(".gemini/trustedFolders.json", GEMINI_ANYWHERE),
    tell(".gemini/commands", GEMINI_ANYWHERE),
    tell(".gemini/extensions", GEMINI_ANYWHERE),
    tell(".gemini/skills", GEMINI_ANYWHERE),
    tell(".gemini/hooks", GEMINI_ANYWHERE),
    tell(".gemini/agents", GEMINI_ANYWHERE),
    tell(".gemini/GEMINI.md", GEMINI_ANYWHERE),
    tell(
        ".aider.conf.yml",
        "aider runs or obeys it outside, in any project",
    ),
];

const CLAUDE_ANYWHERE: &str = "Claude Code runs or obeys it outside, in any project";
const CODEX_ANYWHERE: &str = "Codex runs or obeys it outside, in any project";
const GEMINI_ANYWHERE: &str = "Gemini CLI runs or obeys it outside, in any project";

/// Claude Code writes to this file all the time. Of it these parts run or are obeyed.
pub(crate) const CLAUDE_JSON: &str = ".claude.json";
pub(crate) const CLAUDE_JSON_PARTS: &[&str] = &[
    "mcpServers",
    "hooks",
    "allowedTools",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "apiKeyHelper",
    "statusLine",
];

pub(crate) const HOOKS: &str = "git runs them outside";
pub(crate) const ATTRIBUTES: &str = "says which files git gives to programs";
pub(crate) const REMOTES: &str = "says where git fetches from and pushes to";
pub(crate) const DOT_GIT: &str = "tells git outside where the repository is";
pub(crate) const REDIRECTION: &str = "git takes settings and hooks from where it leads";
pub(crate) const INDEX: &str = "git may find other repositories in it than can be read from it";
pub(crate) const STRATEGY: &str = "`git rebase --continue` and its like run what it names";
pub(crate) const DOTFILE: &str = "a link in your home leads to it, so programs outside read it";

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    /// The page says what the table says. `STOCKADE_UPDATE=1` writes it.
    #[test]
    fn the_page_of_files_that_run_is_the_table() {
        let mut page = "# Files that run by themselves\n\n\
            Programs outside run these files, or agents obey them, without being asked to. *Read-only* ones \
            cannot be\nchanged inside if they exist (`--write` lifts that for one); the others are part of the \
            daily work. In both cases the\nend of a session tells of those that are new or have changed.\n\n\
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
            for Runs { name, why, how } in table {
                let how = match how {
                    How::Guard => "read-only",
                    How::Tell => "writable",
                };
                page.push_str(&format!("| `{name}` | {how} | {why} |\n"));
            }
            let names: BTreeSet<_> = table.iter().map(|runs| runs.name).collect();
            assert_eq!(names.len(), table.len(), "a name stands twice");
        }
        page.push_str(
            "\nDotfiles of your home that are links into the workspace are treated like the writable ones. \
             Of `~/.claude.json` only\nthe parts count that run or are obeyed.\n",
        );
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
