//! More of a person's home: what is shown of it, and what lies right beside that.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use stockade_world::Laptop;

use super::SCRIPT;

/// Each kind of place that the plan shows a part of has a neighbour that it does not.
const FILES: [&str; 32] = [
    ".cache/mozilla/firefox/cache2",
    ".cache/pip/wheel",
    ".cargo/bin/cargo-expand",
    ".cargo/registry/index",
    ".claude.json",
    ".claude/.credentials.json",
    ".claude/settings.json",
    ".claude/projects/project/session.jsonl",
    ".codex/auth.json",
    ".config/nvim/init.lua",
    ".gemini/oauth_creds.json",
    ".local/bin/mine",
    ".local/bin/uv",
    ".local/share/applications/mine.desktop",
    ".local/share/fish/fish_history",
    ".local/share/fonts/mine.ttf",
    ".local/state/mine/log",
    ".nvm/versions/node/v22/bin/node",
    ".terminfo/x/mine",
    // All that are made for whoever has the program, so that the list is the same on all machines.
    ".bun/install/cache/x",
    ".cargo/git/db",
    ".conda/pkgs/x",
    ".gradle/caches/x",
    ".gradle/gradle.properties",
    ".gradle/wrapper/x",
    ".local/share/pnpm/store/x",
    ".m2/repository/x",
    ".m2/wrapper/x",
    ".npm/_cacache/x",
    ".nuget/packages/x",
    ".yarn/berry/x",
    "go/pkg/mod",
];

/// Adds the files, and the audit as an agent, in the place where Claude Code's own installer
/// puts it.
pub(super) fn furnish(laptop: &Laptop) {
    let home = laptop.home();
    for path in FILES {
        write(&home.join(path), "mine\n", 0o700);
    }
    let script = SCRIPT.replacen("#!/usr/bin/env python3", "#!/usr/bin/python3 -I", 1);
    assert_ne!(script, SCRIPT, "the first line has changed");
    let version = home.join(".local/share/claude/versions/2.0.0");
    write(&version, &script, 0o755);
    symlink(&version, home.join(".local/bin/claude")).expect("a link");
}

fn write(path: &Path, contents: &str, mode: u32) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("a directory");
    }
    fs::write(path, contents).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}
