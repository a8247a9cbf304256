//! Names that git believes, in its index and other files of its own, and lists and links among objects that
//! lead elsewhere only after the session (P2).

use stockade_world::test;

use super::f_files::said;
use super::p_git::{REPOSITORY, session};
use super::probe::Place;
use crate::support::standard;

const OTHER: &str = "cd; rm -rf other; git init -q other; cd other; echo secret > secret; git add .
    git -c user.name=a -c user.email=a commit -q -m one; git rev-parse HEAD > ~/commit; cd ~/project";
/// Where the user's own are, for a session that knows their names.
const KNOWN: &str = "C=$(cat ~/project/known)";
const PLANTED: &str = "echo $C > .git/refs/heads/planted";

#[test]
fn p02_names_in_gits_own_files_lead_git_nowhere_else() {
    const DIRECTORY: &str =
        "mkdir -p ~/Documents; rm -rf ~/Documents/.git; touch ~/Documents/takeover.pdf
        git config status.showUntrackedFiles all";
    // A cache of what is not tracked, with a directory elsewhere in the place of one of its own.
    const CACHE: &str = "git config core.untrackedCache true
        mkdir aaaaaaaaaaaa; touch aaaaaaaaaaaa/new; git update-index --force-untracked-cache
        git status -s -uall; sleep 1.1; git status -s -uall; python3 - <<E
p='.git/index'; d=bytearray(open(p,'rb').read()); i=d.find(b'aaaaaaaaaaaa',d.find(b'UNTR')); d[i:i+12]=b'../Documents'
import hashlib; d[-20:]=hashlib.sha1(bytes(d[:-20])).digest(); open(p,'wb').write(d)
E";
    const STATUS: &str = "git status -s; echo x >> file.bin; git status -s; git add -u
        grep -a -o takeover .git/index | sort -u";
    // An index of a pack with a name of the same length as that of the other repository's.
    let packs = format!(
        "{OTHER}; git -C ~/other repack -adq; P=../../../../other/.git/objects/pack/
         for f in ~/other/.git/objects/pack/pack-*.[ip]*; do cp $f .git/objects/pack/${{P//?/x}}$(basename $f); done
         git multi-pack-index write; sed s:${{P//?/x}}:$P: .git/objects/pack/multi-pack-index > index
         cp ~/commit known; rm -f .git/objects/pack/*"
    );
    let cases = [
        (
            "cache",
            DIRECTORY.to_owned(),
            CACHE.to_owned(),
            STATUS,
            "takeover",
        ),
        (
            "worktree",
            format!("{DIRECTORY}; git worktree add -q w"),
            "echo ~/Documents/.git > .git/worktrees/w/gitdir; rm -r w".to_owned(),
            "git worktree repair; cd ~/Documents; ls -d .git",
            ".git",
        ),
        (
            "packs",
            packs,
            format!("{KNOWN}; cp index .git/objects/pack/multi-pack-index; {PLANTED}"),
            "git checkout -q planted; cat secret; git checkout -q main",
            "secret",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        for (what, own, plant, use_of, taken) in cases {
            let last = |said: String| said.lines().last().unwrap_or_default().to_owned();
            outside(&format!("{REPOSITORY}; {own}"));
            outside(&plant);
            assert_eq!(last(outside(use_of)), taken, "positive control: {what}");
            outside(&format!("{REPOSITORY}; {own}"));
            let output = session(laptop, &plant);
            assert_ne!(last(outside(use_of)), taken, "{what}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("stockade: undone: "), "{what}: {stderr}");
            assert!(!stderr.contains("NOT be undone"), "{what}: {stderr}");
        }
        // What git itself writes stays.
        let ordinary = "touch new; git update-index --force-untracked-cache; git status -s
            git worktree add -q w; git worktree add -q /tmp/x; git repack -adq; git multi-pack-index write";
        outside(REPOSITORY);
        let output = session(laptop, ordinary);
        assert!(!output.stderr().contains("undone"), "{output:?}");
        let left = outside(
            "cat .git/worktrees/{w,x}/gitdir; ls .git/objects/pack/multi-pack-index; grep -a -c UNTR .git/index",
        );
        assert_eq!(left.lines().count(), 4, "{left}");
    });
}

/// What a list named was harmless when the session ended, or what came there was older than the session.
#[test]
fn p02_objects_of_another_repository_do_not_come_later() {
    const LIST: &str = ".git/objects/info/alternates";
    const NICE: &str = "git commit -q -m main; git checkout -q -b nice; git rm -rq alt
        ln -s ../other/.git alt; git add -f alt; git commit -q -m nice; git checkout -q main";
    let own = format!("{REPOSITORY}; {OTHER}; cp ~/commit known");
    let listed =
        format!("{own}; mkdir -p alt/objects/{{info,pack}}; echo ~/project/alt/objects > {LIST}");
    let moved = "for o in $(cat names); do mkdir -p prep/objects/${o%/*}
        ln -s ~/other/.git/objects/$o prep/objects/$o; done; sleep 0.1";
    let names = "(cd ~/other/.git/objects; ls -d ??/*) > names";
    let cases = [
        (
            "a branch with a link in the place of what is listed",
            own.clone(),
            "true".to_owned(),
            format!(
                "mkdir -p alt/objects; touch alt/objects/keep; git add alt; {NICE}; echo ../../alt/objects > {LIST}"
            ),
            "git checkout -q nice",
        ),
        (
            "the same in the place of an ignored repository",
            own,
            "true".to_owned(),
            format!(
                "echo /alt > .gitignore; mkdir alt; touch alt/x; git add -f .gitignore alt/x
                 {}; rm -rf alt; git init -q --separate-git-dir=g alt; rm alt/.git; mv g alt/.git
                 echo ~/project/alt/.git/objects > {LIST}",
                NICE.replace("../other/.git", "../other")
            ),
            "git checkout -q nice",
        ),
        (
            "links of an earlier session, moved to what the user has listed",
            format!("{listed}; {names}"),
            moved.to_owned(),
            "mv alt/objects alt/old; mv prep/objects alt/objects".to_owned(),
            "true",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        for (what, own, first, second, use_of) in cases {
            let second = format!("{KNOWN}; {second}; {PLANTED}");
            let use_of = format!("{use_of}; git checkout -q planted; cat secret");
            outside(&own);
            outside(&first);
            outside(&second);
            assert_eq!(outside(&use_of), "secret\n", "positive control: {what}");
            outside(&own);
            session(laptop, &first);
            let output = session(laptop, &second);
            assert_eq!(outside(&use_of), "", "{what}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("stockade: undone: "), "{what}: {stderr}");
        }
    });
}
