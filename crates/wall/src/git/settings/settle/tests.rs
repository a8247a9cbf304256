use std::path::PathBuf;

use super::*;
use crate::git::settings::parse;

const OLD: &str = "# mine\n[core]\n\tbare = false\n\tsshCommand = good # keep\n\
    [remote \"origin\"]\n\turl = https://example.com/a\n[branch \"x\"]\n\tmerge = y\n";

/// What is left of a file, by git and by our own reader.
fn left(old: Option<&str>, new: &str) -> Option<String> {
    let own = parse(b"[filter \"lfs\"] clean = git-lfs clean").unwrap();
    let writable = [PathBuf::from("/w")];
    let branches = [b"x".to_vec()].into();
    let [one, other] = [GitProgram::find(), GitProgram::none()].map(|git| {
        let context = Context {
            writable: &writable,
            branches: Some(&branches),
            ..Context::default()
        };
        let old = old.map(str::as_bytes);
        let settled = settle(&git, old, new.as_bytes(), &own, context);
        assert_eq!(settled.undone.is_empty(), settled.contents.is_none());
        settled.contents
    });
    assert_eq!(one, other, "{new}");
    one.map(|contents| String::from_utf8(contents).unwrap())
}

#[test]
fn what_describes_is_kept_and_the_rest_is_as_before() {
    let kept = "[branch \"new\"]\n\tmerge = \"a b\"\n\tremote = origin\n";
    assert_eq!(left(Some(OLD), &format!("{OLD}{kept}")), None);
    for evil in [
        "[core] fsmonitor = evil\n",
        "[core]\n\tsshCommand = evil\n",
        "[include]\n\tpath = evil\n",
        "[filter.a \"b\"] clean = evil\n",
        "[filter \"lfs\"] clean = evil\n",
        "[alias] st = evil\n",
    ] {
        for new in [
            format!("{OLD}{evil}{kept}"),
            format!("{evil}{OLD}{kept}"),
            format!("{OLD}{kept}{evil}"),
        ] {
            assert_eq!(left(Some(OLD), &new), Some(format!("{OLD}{kept}")), "{new}");
        }
        assert_eq!(
            left(None, &format!("{evil}{kept}")).as_deref(),
            Some(""),
            "a remote that is not there is a path"
        );
    }
}

#[test]
fn a_remote_is_put_back_as_a_whole() {
    let fetch = "\tfetch = +refs/heads/*:refs/remotes/b/*\n";
    let branch = "[branch \"n\"]\n\tremote = b\n\tmerge = refs/heads/n\n";
    let new = format!("{OLD}[remote \"b\"]\n\turl = ./b.git\n{fetch}{branch}");
    assert_eq!(left(Some(OLD), &new).as_deref(), Some(OLD));
    // What describes one that stays, stays.
    let more = format!("{OLD}[remote \"origin\"]\n{fetch}");
    assert_eq!(left(Some(OLD), &more), None);
}

#[test]
fn changed_values_are_put_back_and_harmless_ones_are_not() {
    let evil = OLD
        .replace("good", "evil")
        .replace("= y", "= refs/heads/x")
        .replace("# mine\n", "");
    let expected = OLD.replace("\tmerge = y\n", "") + "[branch \"x\"]\n\tmerge = refs/heads/x\n";
    assert_eq!(left(Some(OLD), &evil), Some(expected));
    // Taken out, or moved elsewhere.
    let gone = OLD.replace("\tsshCommand = good # keep\n", "");
    assert_eq!(left(Some(OLD), &gone).as_deref(), Some(OLD));
    let moved = OLD.replace("example.com/a", "example.org/a");
    assert_eq!(left(Some(OLD), &moved).as_deref(), Some(OLD));
    let more = OLD.replace("/a\n", "/a\n\turl = https://example.org/a\n");
    assert_eq!(left(Some(OLD), &more).as_deref(), Some(OLD));
    // `git remote remove` is fine, unless git would take the next remote in its place; a name without an
    // address is not.
    let removed = OLD.replace("[remote \"origin\"]\n\turl = https://example.com/a\n", "");
    assert_eq!(left(Some(OLD), &removed).as_deref(), Some(OLD));
    let other = format!("{OLD}[remote \"b\"]\n\turl = https://example.net/b\n");
    assert_eq!(left(Some(&other), OLD), None);
    let named = format!("{removed}[branch \"x\"] remote = origin\n");
    assert!(left(Some(OLD), &named).unwrap().contains("example.com/a"));
}

/// What is left of a file where `topic` is a new branch, or in a new repository.
fn left_in(is_new: bool, old: Option<&str>, new: &str) -> Settled {
    let branches = [b"main".to_vec(), b"other".to_vec()].into();
    let context = Context {
        is_new,
        branches: Some(&branches),
        ..Context::default()
    };
    let git = GitProgram::none();
    settle(&git, old.map(str::as_bytes), new.as_bytes(), &[], context)
}

#[test]
fn branches_that_were_there_stay_with_remotes_that_were_there() {
    let old = "[remote \"origin\"]\n\turl = https://example.com/a\n\
        [branch \"main\"]\n\tremote = origin\n";
    let fork = "[remote \"fork\"]\n\turl = https://example.org/b\n";
    let left = |more: &str| {
        let settled = left_in(false, Some(old), &format!("{old}{fork}{more}"));
        settled
            .contents
            .map(|left| String::from_utf8(left).unwrap())
    };
    for fine in [
        "[branch \"topic\"]\n\tremote = fork\n\tmerge = refs/heads/topic\n",
        "[branch \"topic\"]\n\tpushRemote = https://example.org/c\n",
        "[branch \"other\"]\n\tremote = origin\n",
        "[branch \"other\"]\n\tremote = .\n",
        "[branch \"other\"]\n\tremote = origin\n\tmerge = refs/heads/other\n",
        "[branch \"topic\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
        "[remote]\n\tpushDefault = origin\n",
    ] {
        assert_eq!(left(fine), None, "{fine}");
    }
    for evil in [
        "[branch \"main\"]\n\tremote = fork\n",
        "[branch \"main\"]\n\tremote = .\n",
        "[branch \"other\"]\n\tpushRemote = .\n",
        "[remote]\n\tpushDefault = .\n",
        "[branch \"main\"]\n\tmerge = refs/heads/other\n",
        "[branch \"other\"]\n\tmerge = refs/heads/main\n",
        "[push]\n\tdefault = upstream\n",
        "[branch \"main\"]\n\tpushRemote = fork\n",
        "[branch \"main\"]\n\tpushRemote = https://example.org/c\n",
        "[branch \"other\"]\n\tremote = fork\n\tmerge = refs/heads/other\n",
        "[remote]\n\tpushDefault = fork\n",
        "[checkout]\n\tdefaultRemote = fork\n",
    ] {
        assert_eq!(left(evil), Some(format!("{old}{fork}")), "{evil}");
    }
    // A remote that was there may be one that an earlier session made.
    let both = format!("{old}{fork}");
    for evil in [
        "[branch \"main\"]\n\tremote = fork\n",
        "[branch \"main\"]\n\tpushRemote = fork\n",
        "[branch \"other\"]\n\tremote = fork\n",
        "[branch \"other\"]\n\tpushRemote = fork\n",
        "[remote]\n\tpushDefault = fork\n",
    ] {
        let settled = left_in(false, Some(&both), &format!("{both}{evil}"));
        assert_eq!(settled.contents, Some(both.clone().into_bytes()), "{evil}");
    }
    // The same remote under another name is not another one.
    let renamed = old.replace("origin", "upstream");
    assert_eq!(left_in(false, Some(old), &renamed).contents, None);
    // Nor if it is a path, which no other remote may have.
    let path = old.replace("https://example.com/a", "/srv/a");
    let renamed = path.replace("origin", "upstream");
    assert_eq!(left_in(false, Some(&path), &renamed).contents, None);
    let removed = "[branch \"topic\"]\n\tmerge = refs/heads/topic\n";
    let settled = left_in(false, Some(&path), removed);
    let expected = format!("{path}{removed}").into_bytes();
    assert_eq!(settled.contents, Some(expected));
    let other = format!("{path}[remote \"b\"]\n\turl = /srv/b\n");
    let settled = left_in(false, Some(&path), &other);
    assert_eq!(settled.contents, Some(path.into_bytes()));
    // What is put back names no remote that is gone, which git would take for a path.
    let swapped = format!("{fork}[branch \"main\"]\n\tremote = fork\n");
    let settled = left_in(false, Some(old), &swapped);
    assert_eq!(settled.contents, Some(format!("{old}{fork}").into_bytes()));
    // Git takes that one by itself.
    let others = old.replace("origin", "upstream");
    let origin = fork.replace("fork", "origin");
    let settled = left_in(false, Some(&others), &format!("{others}{origin}"));
    assert_eq!(settled.contents, Some(others.into_bytes()));
    // In a file of the user's for all repositories, each would have the remote.
    let context = Context {
        is_for_all: true,
        ..Context::default()
    };
    let user = "[user]\n\tname = x\n";
    let new = format!("{user}{fork}").into_bytes();
    let settled = settle(
        &GitProgram::none(),
        Some(user.as_bytes()),
        &new,
        &[],
        context,
    );
    assert_eq!(settled.contents, Some(user.as_bytes().to_vec()));
    // In a new repository all of it is the session's own.
    let new = format!("{fork}[branch \"main\"]\n\tremote = fork\n");
    assert_eq!(left_in(true, None, &new).contents, None);
}

/// Git takes `origin`, or the only remote, where a branch has none, and looks for a remote of the name
/// before it takes that for a path or an address.
#[test]
fn no_remote_takes_the_place_of_another() {
    const MINE: &str = "[remote \"mine\"]\n\turl = https://example.com/a\n";
    const ORIGIN: &str = "[remote \"origin\"]\n\turl = https://example.com/a\n";
    const EVIL: &str = "[remote \"evil\"]\n\turl = https://example.net/b\n";
    const MORE: &str = "[remote \"more\"]\n\turl = https://example.net/c\n";
    const BRANCH: &str = "[branch \"main\"]\n\tremote = evil\n";
    let left = |old: &str, new: &str| {
        let settled = left_in(false, Some(old), new);
        settled.contents.map(|it| String::from_utf8(it).unwrap())
    };
    let both = format!("{MINE}{EVIL}");
    let follows = "[branch \"main\"]\n\tremote = mine\n\tmerge = refs/heads/main\n";
    let fork = "[remote]\n\tpushDefault = evil\n";
    let push = "[branch \"main\"]\n\tremote = mine\n\tpushRemote = evil\n";
    let path = "[branch \"main\"]\n\tremote = evil\n";
    let module = "[submodule \"sub\"]\n\turl = https://example.com/a\n";
    for (old, new, expected) in [
        // The default one is gone, alone or for another.
        (ORIGIN, "", ORIGIN),
        (ORIGIN, EVIL, &format!("{ORIGIN}{EVIL}")),
        (MINE, EVIL, &both),
        (
            MINE,
            &format!("{EVIL}{MORE}"),
            &format!("{MINE}{EVIL}{MORE}"),
        ),
        (&both, EVIL, &both),
        (
            &format!("{MINE}{follows}"),
            EVIL,
            &format!("{MINE}{follows}{EVIL}"),
        ),
        // One of an earlier session becomes the default one, or that of a branch which has none.
        (
            &both,
            &format!("{MINE}{}", EVIL.replace("evil", "origin")),
            &both,
        ),
        (&both, &format!("{both}{BRANCH}"), &both),
        // Where pushes go is taken out.
        (&format!("{both}{fork}"), &both, &format!("{both}{fork}")),
        (
            &format!("{both}{push}"),
            &format!("{both}[branch \"main\"]\n\tremote = mine\n"),
            &format!("{both}{push}"),
        ),
        // A path, or a remote of the user's settings for all repositories.
        (path, &format!("{path}{EVIL}"), path),
        (module, &module.replace("com/a", "net/b"), module),
    ] {
        assert_eq!(left(old, new).as_deref(), Some(expected), "{old} {new}");
    }
    for (old, new) in [
        ("", EVIL),
        ("", module),
        (MINE, &both),
        (MINE, ORIGIN),
        (&format!("{both}{MORE}"), &both),
        // The branch is gone.
        (&format!("{both}{push}"), &both),
        // That of the only remote is the one that git takes.
        (MINE, &format!("{MINE}{follows}")),
    ] {
        assert_eq!(left(old, new), None, "{old} {new}");
    }
}

#[test]
fn git_fetches_unasked_in_new_repositories_only_and_from_global_names() {
    let promise = |url: &str| {
        format!(
            "[core]\n\tbare = false\n[remote \"x\"]\n\turl = {url}\n\tpromisor = true\n\
             \tpartialclonefilter = blob:none\n[extensions]\n\tpartialClone = x\n"
        )
    };
    let global = promise("https://example.com/a");
    let settled = left_in(true, None, &global);
    assert_eq!(settled.contents, None);
    assert_eq!(settled.told.len(), 1, "it stays, and is told");
    for url in [
        "http://127.0.0.1:8080/a",
        "https://93.184.216.34/a",
        "http://localhost/a",
        "https://git/a",
        "/usr",
    ] {
        let left = left_in(true, None, &promise(url)).contents.unwrap();
        let left = String::from_utf8(left).unwrap();
        assert!(
            !left.contains("promisor") && !left.contains("partial"),
            "{left}"
        );
    }
    let old = "[core]\n\tbare = false\n[remote \"x\"]\n\turl = https://example.com/a\n";
    let settled = left_in(false, Some(old), &global);
    assert_eq!(settled.contents.as_deref(), Some(old.as_bytes()));
    assert!(settled.told.is_empty());
    // What promised before still does, or not any more.
    let more = format!("{global}[user]\n\tname = x\n");
    assert_eq!(left_in(false, Some(&global), &more).contents, None);
    assert_eq!(left_in(false, Some(&global), old).contents, None);
}

#[test]
fn the_order_of_what_decides_is_put_back() {
    let old = "[include]\n\tpath = a\n[core]\n\tsshCommand = b\n[user]\n\tname = c\n";
    let new = "[core]\n\tsshCommand = b\n[include]\n\tpath = a\n[user]\n\tname = c\n";
    assert_eq!(left(Some(old), new).as_deref(), Some(old));
    let new = "[user]\n\tname = c\n[include]\n\tpath = a\n[core]\n\tsshCommand = b\n";
    assert_eq!(left(Some(old), new), None);
}

#[test]
fn what_git_does_not_read_is_put_back_as_a_whole() {
    for new in ["[core", "[core]\nfsmonitor = \"evil\n", "[a]\nb c"] {
        assert_eq!(left(Some(OLD), new).as_deref(), Some(OLD));
        assert_eq!(left(None, new).as_deref(), Some(""));
    }
}

#[test]
fn what_the_user_has_for_all_repositories_passes() {
    let lfs = format!("{OLD}[filter \"lfs\"]\n\tclean = git-lfs clean\n");
    assert_eq!(left(Some(OLD), &lfs), None);
}

/// What is relative to a file means another one in another file.
#[test]
fn what_the_user_has_for_all_repositories_does_not_pass_where_it_says_something_else() {
    let texts = [
        "[include]\n\tpath = .gitconfig-work\n",
        "[includeIf \"gitdir:~/work/\"]\n\tpath = .gitconfig-work\n",
        "[core]\n\tworktree = /home/ada\n",
        "[core]\n\thooksPath = hooks\n",
        // The user has another one since.
        "[core]\n\tpager = first\n",
    ];
    let own = texts.concat() + "[core] pager = last";
    let own = parse(own.as_bytes()).unwrap();
    let settled = |new: &str| {
        let new = format!("{OLD}{new}");
        let old = Some(OLD.as_bytes());
        settle(
            &GitProgram::none(),
            old,
            new.as_bytes(),
            &own,
            Context::default(),
        )
        .contents
    };
    for text in texts {
        assert_eq!(settled(text).as_deref(), Some(OLD.as_bytes()), "{text}");
    }
    assert_eq!(settled("[core]\n\tpager = last\n"), None);
}

/// Git takes `origin` for a branch without a remote, which may be public.
#[test]
fn a_branch_that_is_still_there_keeps_its_remote() {
    const REMOTES: &str = "[remote \"origin\"]\n\turl = https://example.com/a\n\
        [remote \"mine\"]\n\turl = https://example.com/b\n";
    const BRANCH: &str = "[branch \"main\"]\n\tremote = mine\n";
    let old = format!("{REMOTES}{BRANCH}");
    let left = |branches: &[&[u8]], new: &str| {
        let context = Context {
            left: branches.iter().map(|name| name.to_vec()).collect(),
            ..Context::default()
        };
        let git = GitProgram::none();
        let settled = settle(&git, Some(old.as_bytes()), new.as_bytes(), &[], context);
        settled.contents.map(|it| String::from_utf8(it).unwrap())
    };
    assert_eq!(left(&[b"main"], REMOTES).as_deref(), Some(&*old));
    let origin = REMOTES.split_once("[remote \"mine").unwrap().0;
    assert_eq!(left(&[b"main"], origin).as_deref(), Some(&*old));
    for gone in [REMOTES, origin] {
        assert_eq!(left(&[], gone), None, "the branch is gone");
    }
    let renamed = old.replace("mine", "other");
    assert_eq!(left(&[b"main"], &renamed), None);
}

/// What `gh` works on gets secrets and requests.
#[test]
fn gh_goes_on_working_on_the_same_repository() {
    const ORIGIN: &str = "[remote \"origin\"]\n\turl = https://example.com/a\n";
    const OTHER: &str = "[remote \"other\"]\n\turl = https://example.com/b\n";
    const BASE: &str = "\tgh-resolved = base\n";
    let other_is_base = format!("{ORIGIN}{OTHER}{BASE}");
    let neither = format!("{ORIGIN}{OTHER}");
    // The remote is new, or was there before; it had another one, or none.
    let left_of = left(Some(ORIGIN), &other_is_base);
    assert_eq!(left_of.as_deref(), Some(&*neither));
    let left_of = left(Some(&neither), &other_is_base);
    assert_eq!(left_of.as_deref(), Some(&*neither));
    let origin_is_base = format!("{ORIGIN}{BASE}{OTHER}");
    for new in [&other_is_base, &neither] {
        let left_of = left(Some(&origin_is_base), new);
        assert_eq!(left_of.as_deref(), Some(&*origin_is_base), "{new}");
    }
    let others = neither.replace("origin", "mine");
    let is_base = other_is_base.replace("origin", "mine");
    assert_eq!(left(Some(&others), &is_base), Some(others), "no default");
    // The default one; that of before under another name; the first one.
    assert_eq!(left(Some(&neither), &origin_is_base), None);
    let renamed = origin_is_base.replace("origin", "mine");
    assert_eq!(left(Some(&origin_is_base), &renamed), None);
    assert_eq!(left(None, &format!("{ORIGIN}{BASE}")), None);
}

/// Without its lines for `fetch` and `merge`, a remote that is put back fetches no branches, and a branch follows none.
#[test]
fn what_is_put_back_comes_with_what_belonged_to_it() {
    const FETCH: &str = "\tfetch = +refs/heads/*:refs/remotes/mine/*\n";
    const MERGE: &str = "\tmerge = refs/heads/main\n";
    let origin = "[remote \"origin\"]\n\turl = https://example.com/a\n";
    let mine = format!("[remote \"mine\"]\n\turl = https://example.com/b\n{FETCH}");
    let branch = format!("[branch \"main\"]\n\tremote = mine\n{MERGE}");
    let old = format!("{origin}{mine}{branch}");
    let context = || Context {
        left: [b"main".to_vec()].into(),
        ..Context::default()
    };
    let without_remote = origin.to_owned();
    let without_upstream = format!("{origin}{mine}");
    for new in [without_remote, without_upstream] {
        let git = GitProgram::none();
        let settled = settle(&git, Some(old.as_bytes()), new.as_bytes(), &[], context());
        assert_eq!(settled.contents.as_deref(), Some(old.as_bytes()), "{new}");
    }
    // What says nothing of where either is may go.
    for gone in [FETCH, MERGE] {
        let new = old.replace(gone, "");
        let git = GitProgram::none();
        let settled = settle(&git, Some(old.as_bytes()), new.as_bytes(), &[], context());
        assert_eq!(settled.contents, None, "{new}");
    }
    // Another remote that takes the name of one that git would take by itself.
    let other = "[remote \"other\"]\n\turl = https://example.com/c\n";
    let old = format!("{mine}{other}{branch}");
    let new = old.replace("mine", "origin");
    assert_eq!(left(Some(&old), &new).as_deref(), Some(&*old));
}
