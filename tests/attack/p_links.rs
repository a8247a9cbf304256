//! Where links, pipes and modes of directories lead git outside, or keep Stockade from looking (P1, P2).

use stockade_world::{PATIENCE, eventually, test};

use super::f_files::said;
use super::p_git::{EVIL, REPOSITORY, ran, session};
use super::probe::Place;
use crate::support::standard;

/// What settings of the user's name is not there, and a session makes a link on the way to it.
#[test]
fn p01_links_on_the_way_to_what_settings_name_lead_nowhere() {
    const SETTINGS: &str = "printf '[core]\\nfsmonitor = /home/dev/project/evil\\n'";
    let cases = [
        (
            "hooks",
            "git config core.hooksPath .husky/_".to_owned(),
            "mkdir -p h/_; cp evil h/_/post-checkout; ln -s h .husky".to_owned(),
        ),
        (
            "hooks of all repositories, behind two links",
            "git config --global core.hooksPath .githooks/a/b".to_owned(),
            "mkdir -p h/b .githooks; cp evil h/b/post-checkout; ln -s h i; ln -s ../i .githooks/a"
                .to_owned(),
        ),
        (
            "included settings",
            "git config include.path ../conf/git.inc".to_owned(),
            format!("mkdir c; {SETTINGS} > c/git.inc; ln -s c conf"),
        ),
        (
            "settings that those of the user include, behind a link that was there",
            "git config --global include.path ~/project/conf/git/inc; mkdir -p real; ln -s real conf"
                .to_owned(),
            format!("mkdir c; {SETTINGS} > c/inc; ln -s ../c real/git"),
        ),
        (
            "another directory behind a link that was there",
            "mkdir real; touch real/git.inc; ln -s real conf; git config include.path ../conf/git.inc"
                .to_owned(),
            format!("mkdir c; {SETTINGS} > c/git.inc; rm conf; ln -s c conf"),
        ),
    ];
    const USE: &str = "git status; git checkout -q -b x; git checkout -q main; git branch -q -D x";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        for (what, own, change) in cases {
            let plant = format!("{EVIL}; {change}");
            outside(&format!("rm -f ~/.gitconfig; {REPOSITORY}; {own}"));
            outside(&plant);
            outside(USE);
            assert!(ran(laptop), "positive control: {what}");
            outside(&format!("rm -f ~/.gitconfig; {REPOSITORY}; {own}"));
            let output = session(laptop, &plant);
            outside(USE);
            assert!(!ran(laptop), "{what}: {output:?}");
            let stderr = output.stderr();
            assert!(stderr.contains("stockade: undone: "), "{what}: {stderr}");
            assert!(!stderr.contains("NOT be undone"), "{what}: {stderr}");
            // Nor is it what the next session starts from.
            session(laptop, "true");
            outside(USE);
            assert!(!ran(laptop), "{what}");
        }
        outside("rm -f ~/.gitconfig");
    });
}

/// A session that knows a commit of another repository could have the user check it out.
#[test]
fn p02_no_link_among_objects_leads_git_outside_to_those_of_another_repository() {
    const OTHER: &str = "rm -rf ~/other; git init -q ~/other; cd ~/other; echo secret > secret
        git add .; git -c user.name=a -c user.email=a commit -q -m one";
    const USE: &str = "git checkout -q planted; cat secret; git checkout -q main";
    const LIST: &str = ".git/objects/info/alternates";
    const EACH: &str = "cd ~/other/.git/objects; for o in [0-9a-f][0-9a-f]/*; do";
    let plants = [
        format!("git -C ~/other gc -q; mkdir x; ln -s ~/other/.git/objects/pack x/pack; echo ../../x > {LIST}"),
        format!(
            "git -C ~/other gc -q; mkdir -p x/pack; ln -s ~/other/.git/objects/pack/* x/pack; echo ../../x > {LIST}"
        ),
        format!("mkdir x; ln -s ~/other/.git/objects/?? x; echo ../../x > {LIST}"),
        format!(
            "{EACH} mkdir -p ~/project/x/${{o%/*}}; ln -s $PWD/$o ~/project/x/$o; done
             cd ~/project; echo ../../x > {LIST}"
        ),
        format!(
            "mkdir x y; ln -s ~/other/.git/objects/?? y; mkdir x/info; echo ~/project/y > x/info/alternates
             echo ../../x > {LIST}"
        ),
        format!(
            "{EACH} mkdir -p ~/project/.git/objects/${{o%/*}}; ln -s $PWD/$o ~/project/.git/objects/$o; done
             cd ~/project"
        ),
        "git -C ~/other gc -q; ln -s ~/other/.git/objects/pack/* .git/objects/pack".to_owned(),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for plant in &plants {
            let outside = |line: &str| said(laptop, Place::Outside, line);
            outside(OTHER);
            let id = outside("git -C ~/other rev-parse HEAD");
            let plant = format!("{plant}; echo {} > .git/refs/heads/planted", id.trim());
            outside(REPOSITORY);
            outside(&plant);
            assert_eq!(outside(USE), "secret\n", "positive control: {plant}");
            // A session does not see the other repository, but may know the names of its files.
            let names = "cd ~/other/.git; find objects -type f";
            let names = outside(names);
            let copied = names.lines().map(|name| format!("~/other/.git/{name}"));
            let copied: Vec<String> = copied.collect();
            let directories = "mkdir -p ~/other; cd ~/other; mkdir -p .git/objects/pack";
            let directories = format!(
                "{directories}; for f in {}; do mkdir -p $(dirname $f); touch $f; done; cd ~/project",
                copied.join(" ")
            );
            outside(REPOSITORY);
            let plant = plant.replace("git -C ~/other gc -q; ", "");
            let output = session(laptop, &format!("{directories}; {plant}"));
            let told = output.stderr();
            assert!(told.contains("undone: "), "{plant}: {output:?}");
            assert_eq!(outside(USE), "", "{plant}: {output:?}");
        }
    });
}

/// Git waits at a pipe, for as long as the session likes.
#[test]
fn p01_pipes_among_objects_do_not_hold_up_a_git_outside() {
    const USE: &str = "timeout 2 git log --format=%s; test $? = 124 && echo held";
    let plants = [
        "C=$(git rev-parse HEAD); O=.git/objects/${C:0:2}/${C:2}; mv $O kept; mkfifo $O",
        "mkfifo .git/objects/pack/pack-1234567890123456789012345678901234567890.idx
         touch .git/objects/pack/pack-1234567890123456789012345678901234567890.pack",
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        for plant in plants {
            outside(REPOSITORY);
            outside(plant);
            assert!(outside(USE).contains("held"), "positive control: {plant}");
            outside(REPOSITORY);
            let script = format!("{plant}; echo planted; read");
            let words = ["run", "--", "bash", "-c", &script];
            let mut running = laptop.stockade(words).spawn().expect("a session");
            running.expect("planted").expect("it is planted");
            let is_there = || !outside("find .git -type p").is_empty();
            eventually("it is undone", PATIENCE, || !is_there()).expect("undone");
            assert!(!outside(USE).contains("held"), "{plant}");
            running.write("\n").expect("write");
            let output = running.wait().expect("an end");
            assert!(output.stderr().contains("undone"), "{output:?}");
            assert!(!outside(USE).contains("held"), "{plant}");
        }
    });
}

/// The gitlinks of an index are followed from each worktree that has this repository.
#[test]
fn p02_one_repository_of_two_gitlinks_hides_no_third() {
    const COMMIT: &str = "-c user.name=a -c user.email=a commit -q --allow-empty -m x";
    let nested = format!(
        "git init -q a; git -C a {COMMIT}; A=$(git -C a rev-parse HEAD)
         mkdir -p b/sub; echo 'gitdir: ../a/.git' > b/.git; git init -q b/sub; git -C b/sub {COMMIT}
         git -C a update-index --add --cacheinfo 160000,$(git -C b/sub rev-parse HEAD),sub
         git update-index --add --cacheinfo 160000,$A,a --cacheinfo 160000,$A,b
         git -C b/sub config core.fsmonitor $EVIL"
    );
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        outside(REPOSITORY);
        outside(&format!("{EVIL}; {nested}; git status"));
        assert!(ran(laptop), "positive control");
        outside(REPOSITORY);
        let script = format!("{EVIL}; {nested}; echo planted; read");
        let words = ["run", "--", "bash", "-c", &script];
        let mut running = laptop.stockade(words).spawn().expect("a session");
        running.expect("planted").expect("it is planted");
        let is_there = || outside("cat b/sub/.git/config").contains("fsmonitor");
        eventually("it is undone", PATIENCE, || !is_there()).expect("undone");
        outside("git status");
        assert!(!ran(laptop));
        running.write("\n").expect("write");
        running.wait().expect("an end");
    });
}

/// Programs go by name into a directory that nobody can list.
#[test]
fn p02_repositories_in_directories_that_cannot_be_listed_are_put_back() {
    let plant = "mkdir -p a/b; git init -q a/b/c; git -C a/b/c config core.fsmonitor $EVIL
        chmod 311 a/b; chmod 111 a";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        const USE: &str = "git -C a/b/c status; chmod -f 755 a a/b";
        outside(REPOSITORY);
        outside(&format!("{EVIL}; {plant}"));
        outside(USE);
        assert!(ran(laptop), "positive control");
        outside(REPOSITORY);
        let output = session(laptop, &format!("{EVIL}; {plant}"));
        outside(USE);
        assert!(!ran(laptop), "{output:?}");
        let stderr = output.stderr();
        assert!(stderr.contains("undone: "), "{stderr}");
        assert!(!stderr.contains("NOT CHECKED"), "{stderr}");
    });
}
