//! What a session makes look older than itself (P2): files that it planted are put back, in however
//! old a directory they lie.

use stockade_world::test;

use super::f_files::said;
use super::p_git::{REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

#[test]
fn p02_what_is_planted_in_old_directories_is_put_back() {
    let old = format!("{REPOSITORY}; mkdir -p old deep/er/and/er; touch deep/er/and/er/file");
    // Empty directories in one another, that a session before has left.
    let empty = "mkdir -p .git/modules/$(printf 'a/%.0s' $(seq 70))";
    let linked = "git init -q sub; git -C sub -c user.name=a -c user.email=a commit -q \
        --allow-empty -m one; git -c advice.addEmbeddedRepo=false add sub; mv old sub/.new
        mv sub/.git/* sub/.new/; rmdir sub/.git; mv sub/.new sub/.git
        git -C sub config core.fsmonitor 'touch ~/ran; false'";
    let bare = "git init -q --bare /tmp/bare; cp -r /tmp/bare/* deep/er/and/er
        git config -f deep/er/and/er/config core.bare false
        git config -f deep/er/and/er/config core.worktree .
        git config -f deep/er/and/er/config core.fsmonitor 'touch ~/ran; false'";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (plant, use_of) in [
            (linked, "cd ~/project; git status"),
            (bare, "cd ~/project/deep/er/and/er; git status"),
        ] {
            said(laptop, Place::Outside, &old);
            said(
                laptop,
                Place::Outside,
                &format!("rm -rf /tmp/bare; cd ~/project; {plant}"),
            );
            said(laptop, Place::Outside, use_of);
            assert!(ran(laptop), "positive control: {plant}");
            said(laptop, Place::Outside, &old);
            session(laptop, empty);
            let output = session(laptop, plant);
            said(laptop, Place::Outside, use_of);
            assert!(!ran(laptop), "{plant}: {output:?}");
            assert!(output.stderr().contains("undone"), "{output:?}");
        }

        // What was there and is as it was stays, however deep.
        let mine = "cd deep; git init -q er/and/er; git -C er/and/er config core.pager mine";
        // What changes in the last moment before a session counts as the session's.
        said(laptop, Place::Outside, &format!("{old}; {mine}; sleep 0.2"));
        let output = session(laptop, "touch deep/er/and/er/new");
        let pager = "git -C ~/project/deep/er/and/er config core.pager";
        assert_eq!(said(laptop, Place::Outside, pager), "mine\n", "{output:?}");
    });
}
