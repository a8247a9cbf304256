//! Links on the way to what git reads: to what settings name, and to objects.

use super::*;

const LINK: &str = "is new: git takes settings and hooks from where it leads";

/// The link that is new goes, wherever it is on the way, and nothing behind it is touched.
#[test]
fn a_new_link_on_the_way_to_what_settings_name_is_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    workspace.write(
        ".git/config",
        "[core]\n\thooksPath = .husky/a/_\n\tattributesFile = info/attributes
         [include]\n\tpath = ../conf/a/b/git.inc\n",
    );
    // One of the user's own is as it was, and is followed.
    fs::create_dir_all(path("real")).unwrap();
    symlink("real", path("conf")).unwrap();
    let found = workspace.found(|| {
        workspace.write("h/_/post-checkout", "evil");
        workspace.write("i/attributes", "*.bin diff=x");
        workspace.write("c/b/git.inc", "[core]\n\tfsmonitor = evil\n");
        fs::create_dir(path(".husky")).unwrap();
        symlink("../h", path(".husky/a")).unwrap();
        symlink("i", path("info")).unwrap();
        symlink("../c", path("real/a")).unwrap();
    });
    let mut put_back: Vec<_> = found.iter().filter(|it| it.contains("undone")).collect();
    put_back.sort();
    let expected = [".husky/a", "info", "real/a"].map(|it| format!("undone: {it:?} {LINK}"));
    assert_eq!(put_back, expected.iter().collect::<Vec<_>>(), "{found:?}");
    assert!(path("h/_/post-checkout").exists() && path("c/b/git.inc").exists());
    assert_eq!(fs::read_link(path("conf")).unwrap(), Path::new("real"));

    // It is not the session's to change either.
    fs::remove_dir_all(path(".husky")).unwrap();
    let found = workspace.found(|| {
        fs::remove_file(path("conf")).unwrap();
        symlink("c", path("conf")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read_link(path("conf")).unwrap(), Path::new("real"));
    let found = workspace.found(|| workspace.write("real/a/b/git.inc", "[core]\n\tpager = x\n"));
    assert!(found.iter().all(|it| it.contains("undone")), "{found:?}");
    assert!(!path("real/a/b/git.inc").exists(), "{found:?}");
}

/// What a list that was there names has objects of the user's: links in it go, and the list stays.
#[test]
fn links_among_objects_that_a_list_of_the_users_names_are_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    fs::create_dir_all(path("shared/pack")).unwrap();
    fs::create_dir_all(path("shared/aa")).unwrap();
    symlink("/etc", path("shared/mine")).unwrap();
    symlink("shared", path("way")).unwrap();
    workspace.write(".git/objects/info/alternates", "../../way\n");
    let links = ["shared/pack/a.pack", "shared/aa/bb", "shared/info"];
    let mut found = workspace.found(|| {
        for link in links {
            symlink("/etc/hostname", path(link)).unwrap();
        }
    });
    found.sort();
    let mut expected = links.map(|it| format!("undone: {it:?} {LINK}"));
    expected.sort();
    assert_eq!(found, expected);
    assert!(path(".git/objects/info/alternates").exists());
    assert_eq!(
        fs::read_link(path("shared/mine")).unwrap(),
        Path::new("/etc")
    );

    // The way there, and a list behind the list.
    let found = workspace.found(|| {
        fs::remove_file(path("way")).unwrap();
        symlink("/etc", path("way")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read_link(path("way")).unwrap(), Path::new("shared"));
    let found = workspace.found(|| workspace.write("shared/info/alternates", "/etc\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!path("shared/info/alternates").exists());

    // A list of the session's own goes with links in what it names, which stay: they are the user's.
    let own = ".git/objects/info/alternates";
    fs::remove_file(path(own)).unwrap();
    let found = workspace.found(|| workspace.write(own, "../../shared\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!path(own).exists());
    assert_eq!(
        fs::read_link(path("shared/mine")).unwrap(),
        Path::new("/etc")
    );
}

/// `git checkout` can put a link in the place of anything that can be tracked, or is ignored.
#[test]
fn a_list_of_a_sessions_names_only_what_is_gits() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let top = workspace.path.display();
    fs::create_dir_all(path("alt/objects")).unwrap();
    fs::create_dir_all(path(".git/modules/lib/objects")).unwrap();
    workspace.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(path("sub/.git/objects")).unwrap();
    for (list, line, stays) in [
        (".git", "../modules/lib/objects".to_owned(), true),
        (".git", format!("{top}/.git/modules/lib/objects"), true),
        ("sub/.git", format!("{top}/.git/objects"), true),
        ("sub/.git", "../../../.git/objects".to_owned(), true),
        (".git", "../../alt/objects".to_owned(), false),
        (".git", format!("{top}/alt/objects"), false),
        (".git", "../../missing/objects".to_owned(), false),
        (".git", format!("{top}/sub/.git/objects"), false),
        (
            ".git",
            "../../alt/../.git/modules/lib/objects".to_owned(),
            false,
        ),
        (".git", "../../.gitx/objects".to_owned(), false),
        (".git", "/etc".to_owned(), false),
    ] {
        let list = path(&format!("{list}/objects/info/alternates"));
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        let found = workspace.found(|| fs::write(&list, line.clone() + "\n").unwrap());
        assert_eq!(list.exists(), stays, "{line}: {found:?}");
        assert_eq!(found.is_empty(), stays, "{line}: {found:?}");
        fs::remove_file(&list).ok();
    }
    // What was there before is the user's.
    workspace.write(".git/objects/info/alternates", "../../alt/objects\n");
    assert_eq!(workspace.found(|| ()), [""; 0]);
}

/// What is moved as a part of a directory keeps its times.
#[test]
fn old_links_in_directories_that_were_moved_to_the_objects_are_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let prepare = |below: &str| {
        fs::create_dir_all(path(below)).unwrap();
        symlink("/etc/hostname", path(below).join("link")).unwrap();
    };
    let rename = |from: &str, to: &str| fs::rename(path(from), path(to)).unwrap();
    workspace.write(".git/objects/aa/object", "");
    workspace.write("alt/objects/aa/object", "");
    workspace.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(path("sub/.git/objects")).unwrap();
    workspace.write(".git/objects/info/alternates", "../../alt/objects\n");
    // The user's own, in directories that stay.
    prepare(".git/objects/cc");
    prepare("alt/objects/cc");
    prepare("prep/one/bb");
    prepare("prep/two/bb");
    prepare("prep/three/bb");
    prepare("prep/bb");
    prepare("new/a/b/c/objects/bb");
    std::thread::sleep(Duration::from_millis(50));
    let found = workspace.found(|| {
        rename("alt/objects", "old");
        rename("prep/one", "alt/objects");
        rename("sub/.git/objects", "older");
        rename("prep/two", "sub/.git/objects");
        rename("prep/bb", ".git/objects/bb");
        fs::create_dir(path("new/a/b/c/refs")).unwrap();
        workspace.write("new/a/b/c/HEAD", "ref: refs/heads/main\n");
    });
    let left = |below: &str| fs::symlink_metadata(path(below).join("link")).is_ok();
    for moved in ["alt/objects", "sub/.git/objects", ".git/objects"] {
        assert!(!left(&format!("{moved}/bb")), "{moved}: {found:?}");
    }
    assert!(
        left(".git/objects/cc") && left("prep/three/bb"),
        "{found:?}"
    );
    // Nobody knew that this is a repository, so its link is older, and it is told.
    assert_eq!(found.len(), 4, "{found:?}");

    fs::remove_dir_all(path("new")).unwrap();
    rename("old", "alt/objects.old");
    fs::remove_dir_all(path("alt/objects")).unwrap();
    rename("alt/objects.old", "alt/objects");
    let found = workspace.found(|| workspace.write("alt/objects/dd/object", ""));
    assert!(left("alt/objects/cc"), "{found:?}");
}

/// Git joins these names to a directory, and LFS takes objects from beside what a list names.
#[test]
fn names_in_gits_own_files_lead_nowhere_else() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let git = |script: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-ec", script]).current_dir(&workspace.path);
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            command.env(name, "/dev/null");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git("rm -rf .git; git init -q .; git config user.name a; git config user.email a
        for n in 1 2; do git commit -q --allow-empty -m $n; git repack -dq; done; git multi-pack-index write");
    let index = path(".git/objects/pack/multi-pack-index");
    let written = fs::read(&index).unwrap();
    // What git writes stays.
    let rewrite = || {
        fs::remove_file(&index).unwrap();
        git(
            "git commit -q --allow-empty -m x; git repack -dq; git multi-pack-index write --bitmap",
        );
    };
    assert_eq!(workspace.found(rewrite), [""; 0]);
    let layer = path(".git/objects/pack/multi-pack-index.d/multi-pack-index-0.midx");
    fs::create_dir(layer.parent().unwrap()).unwrap();
    let at = |name: &[u8]| written.windows(4).position(|part| part == name).unwrap();
    let changed = |at: usize, to: &[u8]| {
        let mut other = written.clone();
        other[at..at + to.len()].copy_from_slice(to);
        other
    };
    for plant in [
        changed(at(b"pack"), b"../x"),
        // More names than there are, two lists of them, and none.
        changed(11, b"\x09"),
        changed(at(b"OIDF"), b"PNAM"),
        changed(at(b"PNAM"), b"ABCD"),
        b"MIDX".to_vec(),
    ] {
        for place in [&index, &layer] {
            let found = workspace.found(|| {
                fs::remove_file(place).ok();
                fs::write(place, &plant).unwrap();
            });
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(!place.exists());
        }
    }

    let tables = ".git/reftable/tables.list";
    workspace.write(tables, "0x1-0x2.ref\n");
    assert_eq!(
        workspace.found(|| workspace.write(tables, "0x1-0x3.ref\n")),
        [""; 0]
    );
    let found = workspace.found(|| workspace.write(tables, "../../../x.ref\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read(path(tables)).unwrap(), b"0x1-0x3.ref\n");

    workspace.write("alt/objects/aa/object", "");
    workspace.write("alt/lfs/objects/aa/bb/object", "");
    workspace.write(".git/objects/info/alternates", "../../alt/objects\n");
    let found = workspace.found(|| {
        symlink("/etc/hostname", path("alt/lfs/objects/aa/bb/link")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    let found = workspace.found(|| {
        fs::rename(path("alt/lfs"), path("alt/old")).unwrap();
        symlink("/etc", path("alt/lfs")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(fs::symlink_metadata(path("alt/lfs")).is_err());
}

#[test]
fn a_worktree_lies_where_a_session_can_write_or_where_it_lay() {
    let workspace = Workspace::new();
    let other = tempfile::tempdir().unwrap();
    let other = fs::canonicalize(other.path()).unwrap();
    let (top, outside) = (workspace.path.display(), other.display());
    fs::create_dir_all(other.join("mine")).unwrap();
    fs::create_dir_all(workspace.path.join("w")).unwrap();
    symlink(&other, workspace.path.join("link")).unwrap();
    let back = format!("gitdir: {top}/.git/worktrees/w\n");
    fs::write(other.join("mine/.git"), back).unwrap();
    let gitdir = ".git/worktrees/w/gitdir";
    workspace.write(".git/worktrees/w/commondir", "../..\n");
    for (line, stays) in [
        (format!("{top}/w/.git\n"), true),
        (format!("{top}/missing/.git\n"), true),
        ("../../../w/.git\n".to_owned(), true),
        // In a place of the session's own, and of the user's.
        ("/nowhere/w/.git\n".to_owned(), true),
        (format!("{outside}/mine/.git\n"), true),
        (format!("{outside}/.git\n"), false),
        (format!("{outside}\n"), false),
        (format!("{top}/link/.git\n"), false),
        (format!("{outside}/.git\0/../{top}/w/.git\n"), false),
        ("../Documents/.git\n".to_owned(), false),
    ] {
        workspace.write(gitdir, "/before/.git\n");
        let found = workspace.found(|| workspace.write(gitdir, &line));
        assert_eq!(found.is_empty(), stays, "{line}: {found:?}");
        let left = fs::read_to_string(workspace.path.join(gitdir)).unwrap();
        assert_eq!(left == line, stays, "{line}: {found:?}");
    }
    // As it was.
    workspace.write(gitdir, &format!("{outside}/.git\n"));
    assert_eq!(workspace.found(|| ()), [""; 0]);
}

/// What was in a directory of objects that nobody has touched is the user's.
#[test]
fn pipes_and_links_among_single_objects_are_put_back_if_they_are_new() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let pipe = |below: &str| {
        rustix::fs::mkfifoat(rustix::fs::CWD, path(below), rustix::fs::Mode::RWXU).unwrap();
    };
    workspace.write(".git/objects/aa/object", "");
    fs::create_dir(path(".git/objects/bb")).unwrap();
    symlink("/etc/hostname", path(".git/objects/bb/old")).unwrap();
    // The clock of file systems is coarse.
    std::thread::sleep(Duration::from_millis(50));
    let mut found = workspace.found(|| {
        symlink("/etc/hostname", path(".git/objects/aa/new")).unwrap();
        pipe(".git/objects/aa/pipe");
        fs::create_dir(path(".git/objects/pack")).unwrap();
        pipe(".git/objects/pack/pipe");
    });
    found.sort();
    assert_eq!(found.len(), 3, "{found:?}");
    let left: Vec<_> = fs::read_dir(path(".git/objects/aa")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(fs::symlink_metadata(path(".git/objects/bb/old")).is_ok());
}

/// There may have been no time to look at all before a session. What has moved since was not there.
#[test]
fn what_was_moved_to_a_gitlink_is_new_whatever_there_was_time_for() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let script = "rm -rf .git; git init -q -b main .; rm -rf .git/hooks
        for name in one two deep/er/new; do
            git init -q $name; git -C $name -c user.name=a -c user.email=a commit -q --allow-empty -m x
            git -C $name config core.fsmonitor evil; rm -rf $name/.git/hooks; done
        id=$(git -C one rev-parse HEAD); mkdir -p h1/h2/h3; mv deep/er/new/.git h1/h2/h3/x
        mv h1/h2/h3/x/HEAD h1/h2/h3/x/old; mkdir way; mv two way/
        for name in one sub way/two; do git update-index --add --cacheinfo 160000,$id,$name; done; mkdir sub";
    let mut command = std::process::Command::new("bash");
    let command = command.args(["-ec", script]).current_dir(&workspace.path);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(name, "/dev/null");
    }
    assert!(command.status().unwrap().success());
    std::thread::sleep(Duration::from_millis(50));
    let mut watch = workspace.watch();
    // As if all but the own repository had been too much.
    watch.baseline.is_partial = true;
    let own = path(".git");
    watch.baseline.repositories.retain(|path| *path == own);
    watch
        .baseline
        .contents
        .retain(|path, _| path.starts_with(&own));
    fs::rename(path("h1/h2/h3/x"), path("sub/.git")).unwrap();
    fs::rename(path("sub/.git/old"), path("sub/.git/HEAD")).unwrap();
    fs::rename(path("way"), path("moved")).unwrap();
    fs::rename(path("moved"), path("way")).unwrap();
    let found = watch.end(None, &|| false);
    let is_armed = |name: &str| {
        let settings = fs::read_to_string(path(name).join(".git/config")).unwrap();
        settings.contains("fsmonitor")
    };
    assert!(!is_armed("sub") && !is_armed("way/two"), "{found:?}");
    // Positive control: one that has not moved may be the user's own, and is told.
    assert!(is_armed("one"), "{found:?}");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let is_told = |it: &String| it.contains("one/.git/config") && it.contains("may have been");
    assert!(found.iter().any(is_told), "{found:?}");
}

/// Git lists what a directory of the untracked cache is without a look whether it is one.
#[test]
fn an_untracked_cache_with_a_link_in_it_is_set_aside() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let git = |script: &str| {
        let mut command = std::process::Command::new("bash");
        let command = command.args(["-ec", script]).current_dir(&workspace.path);
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            command.env(name, "/dev/null");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let make =
        "rm -rf .git x y secret; git init -q .; rm -rf .git/hooks; mkdir -p x/y; touch a x/f x/y/f
        git add a x/f x/y/f; git config core.untrackedCache true; sleep 1.1; git status -s";
    for (plant, stays) in [
        // As it comes about: the directory around it has changed.
        ("rm -r x; sleep 1.1; ln -s /etc x", true),
        ("rm -r x/y; sleep 1.1; ln -s /etc x/y", true),
        // It is as it was to git, or can be made to be.
        (
            "touch -r . /tmp/stamp-$$; rm -r x; ln -s /etc x; touch -r /tmp/stamp-$$ .",
            false,
        ),
        (
            "touch -r x /tmp/stamp-$$; rm -r x/y; ln -s /etc x/y; touch -r /tmp/stamp-$$ x",
            false,
        ),
        ("git status -s >/dev/null; touch new", true),
    ] {
        git(make);
        let index = fs::read(path(".git/index")).unwrap();
        assert!(index.windows(4).any(|it| it == b"UNTR"), "positive control");
        let found = workspace.found(|| {
            git(&format!("{plant}; rm -f /tmp/stamp-$$"));
        });
        assert_eq!(path(".git/index").exists(), stays, "{plant}: {found:?}");
        let is_told = found.iter().any(|it| it.contains("undone: \".git/index\""));
        assert_eq!(is_told, !stays, "{found:?}");
    }
}

/// Git opens them in every directory of a worktree.
#[test]
fn pipes_in_the_place_of_files_that_git_reads_are_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let make = |below: &str| {
        fs::create_dir_all(path(below).parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path(below),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
    };
    let pipes = [".gitignore", "a/b/c/d/.gitattributes", ".mailmap"];
    let found = workspace.found(|| {
        pipes.iter().for_each(|pipe| make(pipe));
        // Positive control: others are nobody's business.
        make("a/pipe");
        workspace.write("b/.gitignore", "x");
    });
    assert_eq!(found.len(), pipes.len(), "{found:?}");
    assert!(pipes.iter().all(|pipe| !path(pipe).exists()), "{found:?}");
    assert!(path("a/pipe").exists() && path("b/.gitignore").exists());
}

/// As `git update-index --cacheinfo` makes them; git's own entries are those of the user, who may work there.
#[test]
fn entries_for_files_that_were_not_given_are_told() {
    let place = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(place.path()).unwrap();
    let git = |script: &str| {
        let mut command = std::process::Command::new("bash");
        let command = command.args(["-ec", script]).current_dir(&top);
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            command.env(name, "/dev/null");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git("git init -q -b main main; cd main; echo a > a; git add a
        git -c user.name=a -c user.email=a commit -q -m one
        git worktree add -q ../tree; git worktree add -q ../other
        for at in . ../tree ../other; do echo secret > $at/.env; echo b > $at/b; done");
    let (tree, repository) = (top.join("tree"), top.join("main/.git"));
    let found = |hidden: Vec<PathBuf>, script: &str| {
        let git_of_tree = Git {
            outside: Some(repository.clone()),
            directories: vec![repository.clone()],
            ..Git::default()
        };
        let writable = [tree.clone(), repository.clone()];
        let entries = Entries::new(&tree, &git_of_tree, hidden, &writable);
        git(script);
        entries.findings().len()
    };
    let add = |at: &str| {
        format!("cd {at}; git update-index --add --cacheinfo 100644,$(git hash-object -w a),.env")
    };
    let remove = "for at in main tree other; do git -C $at reset -q; done";
    for (hidden, script, count) in [
        (vec![], add("main"), 1),
        (vec![], add("other"), 1),
        (vec![], add("tree"), 0),
        (vec![tree.join(".env")], add("tree"), 1),
        // The user's own, and one for no file.
        (
            vec![],
            "git -C main add -f .env b; git -C other add b".to_owned(),
            0,
        ),
        (vec![], add("main").replace(".env", "none"), 0),
    ] {
        assert_eq!(found(hidden, &script), count, "{script}");
        git(remove);
    }
}
