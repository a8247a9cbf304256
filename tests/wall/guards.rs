//! What runs outside later cannot be changed inside, and what appears is told (F5).

use std::{fs, os::unix::fs::symlink};

use stockade_world::{Login, Signal};

use super::{Caller, MARK, output, processes_with, run, test, test_as, wait_until};

const REPOSITORY: &str = "git init -q -b main . && echo '#!/bin/sh' > .git/hooks/pre-commit
    mkdir .vscode .husky && echo '{}' > .vscode/tasks.json && echo 'use nix' > .envrc
    echo x > .husky/pre-commit";

/// Every file outside that must stay as it is, with its contents.
fn protected(caller: &Caller<'_>) -> String {
    caller.outside(
        "tail -n 99 .git/hooks/pre-commit .vscode/tasks.json .envrc; ls -A .git/hooks .vscode",
    )
}

#[test]
fn what_runs_outside_can_be_read_and_not_changed() {
    test(|caller| {
        caller.outside(REPOSITORY);
        let before = protected(caller);
        let attack = "cat .git/hooks/pre-commit .envrc; exec 2>/dev/null
        for path in .git/hooks/pre-commit .vscode/tasks.json .envrc; do
            echo evil > $path && echo wrote $path; echo evil >> $path && echo appended $path
            rm -f $path && echo removed $path; mv $path x && echo moved $path
            cp /bin/true new; mv -f new $path && echo replaced $path
            ln $path hard && echo linked $path
        done
        for path in .git/hooks .vscode .git .envrc; do
            mv $path aside && echo moved $path; rm -rf $path && echo removed $path
            ln -sfn /tmp $path && [ -L $path ] && echo linked $path
        done
        touch .git/hooks/post-checkout .vscode/new && echo new
        chmod -R 777 .git/hooks .vscode .envrc && echo modes; touch -d yesterday .envrc && echo time";
        let (_, seen, _) = run(caller.script(attack));
        assert_eq!(seen, "#!/bin/sh\nuse nix\n");
        assert_eq!(protected(caller), before);
    });
}

#[test]
fn nested_namespaces_do_not_uncover_what_is_protected() {
    test_as(Login::Dev, |caller| {
        caller.outside(REPOSITORY);
        let before = protected(caller);
        let attack = "unshare --user --map-root-user --mount bash -c '
        echo nested; exec 2>/dev/null
        umount .git/hooks && echo unmounted; umount -l .git && echo unmounted
        mount -o remount,rw,bind .git/hooks && echo remounted
        mount --bind . /mnt && echo bound; mount --bind .git /tmp && echo bound
        mount --rbind . /tmp && { echo evil > /tmp/.git/hooks/pre-commit && echo wrote; umount -R /tmp; }
        mkdir -p /tmp/u /tmp/w /tmp/m
        mount -t overlay overlay -o lowerdir=/tmp,upperdir=.git/hooks,workdir=.git/w /tmp/m && echo laid
        mount --move .git/hooks /tmp && echo moved; mv .git x && echo renamed
        echo evil > .git/hooks/pre-commit && echo wrote; true'";
        assert_eq!(run(caller.with(&["--nested"], attack)).1, "nested\n");
        assert_eq!(protected(caller), before);
        // By default there is no such namespace.
        assert_eq!(run(caller.script(attack)).1, "");
        assert_eq!(protected(caller), before);
    });
}

#[test]
fn git_works_with_its_hooks_protected() {
    test(|caller| {
        caller.outside("git init -q -b main .; echo one > file");
        caller.write(
            caller.home().join(".gitconfig"),
            "[user]\n\tname = Ada \"the\" L\n\temail = ada@example.org\n[core]\n\teditor = evil\n",
        );
        let work =
            "set -e; git add file; git commit -qm one; git switch -qc other; echo two >> file
        git commit -qam two; git tag t; git gc -q; git stash list; git config core.bare false
        git remote add origin /nowhere; git log --format='%an <%ae> %s'";
        let log = "Ada the L <ada@example.org> two\nAda the L <ada@example.org> one\n";
        assert_eq!(output(caller.script(work)), log);
        assert_eq!(
            caller.outside("git status --porcelain; git log --format=%s"),
            "two\none\n"
        );
    });
}

#[test]
fn configuration_can_lift_the_protection_of_one_path() {
    test(|caller| {
        caller.outside(REPOSITORY);
        let path = caller.project().join(".vscode");
        let options = ["--write", path.to_str().unwrap()];
        let (_, _, messages) = run(caller.with(&options, "echo new > .vscode/x; echo x >> .envrc"));
        assert!(path.join("x").exists());
        assert_eq!(caller.outside("cat .envrc"), "use nix\n");
        // It is told all the same.
        assert!(messages.contains(".vscode\" has changed"), "{messages}");
    });
}

#[test]
fn what_appears_is_told_and_what_was_there_is_not() {
    test(|caller| {
        caller.outside(REPOSITORY);
        let (_, _, quiet) = run(caller.script("echo x > file; git config user.name x"));
        assert_eq!(quiet, "");
        let attack = "echo evil > .devcontainer.json; git config core.fsmonitor ./evil
        git config alias.x '!evil'; echo evil > .husky/pre-commit; mkdir -p sub; echo > sub/.envrc";
        let (_, _, messages) = run(caller.script(attack));
        for expected in [
            ".devcontainer.json\" is new",
            "core.fsmonitor = ./evil",
            "alias.x = !evil",
            ".husky\" has changed",
        ] {
            assert!(messages.contains(expected), "{messages}");
        }
        assert!(messages.contains("stockade:   +evil"), "{messages}");
        let beside = ["stockade: to apply what was undone", "stockade:   "];
        let is_finding = |line: &&str| beside.iter().all(|other| !line.starts_with(other));
        let findings = messages.lines().filter(is_finding);
        assert_eq!(findings.count(), 4, "{messages}");
    });
}

#[test]
fn a_repository_that_is_made_inside_is_looked_through() {
    test(|caller| {
        let attack = "git init -q .; echo evil > .git/hooks/pre-commit; git config core.pager evil";
        let (_, _, messages) = run(caller.script(attack));
        assert!(messages.contains("hooks/pre-commit\" is new"), "{messages}");
        assert!(messages.contains("core.pager = evil"), "{messages}");
    });
}

#[test]
fn a_planted_link_moves_no_mount() {
    test(|caller| {
        let secret = caller.home().join("secret");
        caller.write(secret.join("key"), "decoy");
        caller.outside("git init -q .; rm -rf .git/hooks");
        // In place of what would be protected, links to elsewhere: out of the project, and to
        // a place of the sandbox's own.
        symlink(&secret, caller.project().join(".vscode")).unwrap();
        symlink("../../../../../../usr", caller.project().join(".git/hooks")).unwrap();
        let probe = "cat .vscode/key; ls /usr/bin/env; ls -d .git/hooks/pre* ; \
                 touch /usr/x 2>/dev/null && echo wrote";
        let (code, seen, messages) = run(caller.script(probe));
        assert_ne!(code, 125, "{messages}");
        assert_eq!(seen, "/usr/bin/env\n");
        assert!(messages.contains("because it is a link"), "{messages}");
    });
}

#[test]
fn directories_that_turn_into_links_during_the_start_move_no_mount() {
    test(|caller| {
        let secret = caller.home().join("secret");
        caller.write(secret.join("key"), "decoy");
        caller.outside("git init -q .; mkdir .vscode; echo fine > .vscode/key");
        // What is protected is in turn a directory, a link out of the project, a link to a place
        // of the sandbox's own, and nothing.
        let swap = format!(
        "while :; do for target in {} ../../../../../usr; do mv .vscode a; ln -s $target .vscode
            rm .vscode; mv a .vscode; mv .git b; ln -s $target .git; rm .git; mv b .git; done; done",
        secret.display()
    );
        let _swapper = caller.command("bash").args(["-c", &swap]).spawn().unwrap();
        let (mut ran, mut refused) = (0, 0);
        for _ in 0..25 {
            let probe = format!(
                "ls -d /usr/bin/env /usr/lib; cat {}/key 2>/dev/null; touch /usr/x 2>/dev/null && echo wrote; true",
                secret.display()
            );
            let (code, seen, messages) = run(caller.script(&probe));
            match code {
                0 => ran += 1,
                125 => refused += 1,
                _ => panic!("{code} {messages}"),
            }
            let expected = if code == 0 {
                "/usr/bin/env\n/usr/lib\n"
            } else {
                ""
            };
            assert_eq!(seen, expected, "{messages}");
        }
        eprintln!("{ran} ran, {refused} were refused");
        assert_eq!(fs::read_to_string(secret.join("key")).unwrap(), "decoy");
    });
}

#[test]
fn nothing_is_left_in_the_checkout_however_it_ends() {
    test(|caller| {
        caller.outside("git init -q .; rm -rf .git/hooks; echo x > file; echo > .envrc");
        let list = "find . -printf '%p %y %m %s\\n' | sort";
        let before = caller.outside(list);
        output(caller.script("true"));
        run(caller.script("kill -KILL $$"));
        run(caller.with(&["--read", "/no/such"], "true"));
        let script = ["bash", "-c", "echo up; sleep 1000; true", MARK];
        let warden = caller.stockade(&script).spawn().unwrap();
        wait_until("it runs", || processes_with(MARK).len() >= 4);
        warden.signal(Signal::KILL).unwrap();
        drop(warden);
        wait_until("it is gone", || processes_with(MARK).is_empty());
        assert_eq!(caller.outside(list), before);
    });
}
