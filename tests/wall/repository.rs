//! Worktrees and submodules: their repository lies outside of the workspace (F5).

use std::fs;

use super::{Caller, output, run, test};

const MAKE: &str =
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b
    git init -q -b main part; git -C part commit -q --allow-empty -m part
    git init -q -b main whole; cd whole; echo secret > file; git add file
    git -c protocol.file.allow=always submodule --quiet add ../part sub 2>/dev/null
    git commit -qm whole; git worktree add -q ../tree 2>/dev/null; echo untracked > untracked";

fn in_directory(caller: &Caller<'_>, directory: &str, script: &str) -> (i32, String, String) {
    run(caller
        .script(script)
        .directory(caller.project().join(directory)))
}

const COMMIT: &str = "git -c user.name=a -c user.email=b commit -q --allow-empty -m inside";

#[test]
fn git_works_in_a_worktree_and_sees_no_more_than_the_repository() {
    test(|caller| {
        caller.outside(MAKE);
        let script =
            format!("{COMMIT} && git log --format=%s; ls -A ../whole; cat ../whole/untracked");
        let (_, seen, messages) = in_directory(caller, "tree", &script);
        assert_eq!(seen, "inside\nwhole\n.git\n", "{messages}");
        assert_eq!(
            caller.outside("git -C tree log --format=%s"),
            "inside\nwhole\n"
        );
    });
}

#[test]
fn git_works_in_a_submodule() {
    test(|caller| {
        caller.outside(MAKE);
        let script = format!("{COMMIT} && git log --format=%s; ls -A .. ../.git/modules");
        let (_, seen, messages) = in_directory(caller, "whole/sub", &script);
        assert_eq!(
            seen, "inside\npart\n..:\n.git\nsub\n\n../.git/modules:\nsub\n",
            "{messages}"
        );
    });
}

#[test]
fn hooks_of_the_repository_outside_are_protected_and_its_settings_told() {
    test(|caller| {
        caller.outside(MAKE);
        let attack = "r=$(git rev-parse --git-common-dir)
        echo evil > $r/hooks/pre-commit; mv $r/hooks $r/x; mv $r ${r}x; echo evil > $r/modules/sub/hooks/x
        echo 'gitdir: /tmp/evil' > .git; rm -f .git; git config core.sshCommand evil";
        let (_, _, messages) = in_directory(caller, "tree", attack);
        assert!(messages.contains("core.sshcommand = evil"), "{messages}");
        let hooks =
            "ls whole/.git/hooks whole/.git/modules/sub/hooks | grep -v sample; cat tree/.git";
        let seen = caller.outside(&format!("{hooks} || true"));
        assert!(
            !seen.contains("pre-commit") && !seen.contains("\nx\n"),
            "{seen}"
        );
        assert!(seen.contains("worktrees/tree"), "{seen}");
    });
}

#[test]
fn a_hostile_git_file_opens_no_directory() {
    test(|caller| {
        let secret = caller.home().join(".ssh");
        caller.write(secret.join("id_rsa"), "decoy");
        // As if a session before had planted it: a file, and all the parts of a worktree, in the
        // project; only what is outside does not point back.
        let named = [
            secret.display().to_string(),
            "/".to_owned(),
            caller.home().display().to_string(),
            "false/worktrees/x".to_owned(),
        ];
        caller.outside("mkdir -p false/worktrees/x; echo ../../../.git > false/worktrees/x/gitdir");
        let common = format!("{}\n", secret.display());
        fs::write(caller.project().join("false/worktrees/x/commondir"), common).unwrap();
        for path in named {
            fs::write(caller.project().join(".git"), format!("gitdir: {path}\n")).unwrap();
            let probe = format!("cat {}/id_rsa; ls -A ~", secret.display());
            let (_, seen, _) = run(caller.with(&["--caches", "scratch"], &probe));
            assert_eq!(seen, "", "{path}");
        }
        // Positive control: the file is there.
        assert!(fs::read_to_string(secret.join("id_rsa")).is_ok());
        // And the user is told.
        fs::write(
            caller.project().join(".git"),
            format!("gitdir: {}\n", secret.display()),
        )
        .unwrap();
        let (_, _, messages) = run(caller.script("true"));
        assert!(messages.contains("git will not work inside"), "{messages}");
        output(caller.script("true"));
    });
}

#[test]
fn a_worktree_that_was_replaced_by_a_link_opens_no_other_repository() {
    test(|caller| {
        let make =
            "cd ~; git init -q other; cd other; git config user.name x; git config user.email x
        echo private > s; git add s; git commit -qm s
        git worktree add -q $PROJECT/sub 2>/dev/null";
        let make = make.replace("$PROJECT", caller.project().to_str().unwrap());
        caller.outside(&make);
        let look = "git --git-dir=$HOME/other/.git show HEAD:s 2>/dev/null
        touch ~/other/.git/written 2>/dev/null && echo wrote; true";
        // Positive control: in the worktree itself the repository is there.
        let inside = caller.script(look).directory(caller.project().join("sub"));
        assert_eq!(output(inside), "private\nwrote\n");
        // What a session could have done in the directory that holds it.
        let plant = "rm -rf sub; ln -s . sub
        echo \"gitdir: $HOME/other/.git/worktrees/sub\" > .git";
        caller.outside(plant);
        assert_eq!(output(caller.script(look)), "");
    });
}
