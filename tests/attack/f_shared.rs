//! Dependencies that other projects share by hard links change inside only (F5).

use stockade_world::{Laptop, Output, Signal, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

#[test]
fn f05_dependencies_that_other_projects_share_change_inside_only() {
    // As uv, pnpm and bun install: all projects have the files of one store.
    const INSTALL: &str = "mkdir -p ~/store; echo module.exports=1 > ~/store/index.js
        for at in ~/project/node_modules/a ~/project/web/.venv/lib/a ~/other/node_modules/a; do
            mkdir -p $at; ln -f ~/store/index.js $at
        done";
    const CHANGE: &str = "cd ~/project
        for at in node_modules/a web/.venv/lib/a; do
            echo evil > $at/index.js && mkdir $at/new && mv $at $at.moved && cat $at.moved/index.js
        done
        mv web web.moved; echo evil > web/.venv/lib/a.moved/index.js
        mv node_modules elsewhere; rm -r node_modules; echo evil > src.js";
    const LOOK: &str = "cat ~/store/* ~/other/node_modules/a/* ~/project/src.js
        cd ~/project; find . -name index.js | sort; find . -name new";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for nested in ["--nested=false", "--nested"] {
            said(laptop, Place::Outside, INSTALL);
            let words = ["run", nested, "--", "bash", "-c", CHANGE];
            let output = laptop.stockade(words).run().expect("an end");
            // Positive control: it was changed, as seen from inside, and so was the workspace.
            assert_eq!(output.stdout(), "evil\nevil\n", "{output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("by hard links, so changes to it are discarded"),
                "{stderr}"
            );
            assert!(stderr.contains("node_modules were discarded"), "{stderr}");
            let outside = said(laptop, Place::Outside, LOOK);
            assert_eq!(
                outside,
                "module.exports=1\nmodule.exports=1\nevil\n\
                 ./node_modules/a/index.js\n./web/.venv/lib/a/index.js\n",
                "{nested}"
            );
        }
        // Positive control: the links are what an attack needs, where the user gives them.
        said(laptop, Place::Outside, INSTALL);
        let change = "echo evil > node_modules/a/index.js";
        let words = ["run", "--write", "node_modules", "--", "bash", "-c", change];
        laptop
            .stockade(words)
            .run()
            .expect("an end")
            .expect_success();
        assert_eq!(
            said(laptop, Place::Outside, "cat ~/other/node_modules/a/*"),
            "evil\n"
        );
    });
}

/// A session fills a directory, the user installs there, and the next session looks for the links.
#[test]
fn f05_what_a_session_puts_beside_dependencies_hides_no_link() {
    const FILL: &str =
        "cd ~/project; mkdir -p .venv/lib/a; for d in .venv .venv/lib .venv/lib/a; do
            for n in 1 2 3 4 5 6 7 8; do mkdir -p $d/$n; (cd $d/$n; touch $(seq 300)); done
        done; cd .venv; find . -type f | wc -l";
    const INSTALL: &str = "mkdir -p ~/.cache/uv ~/other; echo good > ~/.cache/uv/a.py
        ln -f ~/.cache/uv/a.py ~/project/.venv/lib/a/a.py; ln -f ~/.cache/uv/a.py ~/other/a.py";
    const CHANGE: &str = "cd ~/project; echo evil > .venv/lib/a/a.py; cat .venv/lib/a/a.py";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let run = |change| {
            let words = ["run", "--", "bash", "-c", change];
            laptop.stockade(words).run().expect("an end").stdout()
        };
        assert_eq!(run(FILL), "7200\n");
        // Positive control: what is filled and has no link is the workspace's own.
        assert_eq!(
            said(laptop, Place::Outside, "ls ~/project/.venv/8 | wc -l"),
            "300\n"
        );
        said(laptop, Place::Outside, INSTALL);
        assert_eq!(run(CHANGE), "evil\n");
        assert_eq!(said(laptop, Place::Outside, "cat ~/other/a.py"), "good\n");
        // Positive control: with the links, it would be changed everywhere.
        said(laptop, Place::Outside, CHANGE);
        assert_eq!(said(laptop, Place::Outside, "cat ~/other/a.py"), "evil\n");
    });
}

/// A session makes a link, the user installs through it, and the next session writes where it leads.
#[test]
fn f05_links_to_elsewhere_in_the_workspace_hide_no_dependencies() {
    const INSTALL: &str = "mkdir -p ~/.cache/uv ~/other; echo good > ~/.cache/uv/a.py
        ln -f ~/.cache/uv/a.py ~/project/.venv/lib/a.py; ln -f ~/.cache/uv/a.py ~/other/a.py";
    const CHANGE: &str = "cd ~/project; echo evil > .venv/lib/a.py; cat .venv/lib/a.py
        echo evil > .v/lib/a.py; mv .v .w; echo evil > .w/lib/a.py; echo kept > src.py";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        let run = |script| {
            let words = ["run", "--", "bash", "-c", script];
            laptop.stockade(words).run().expect("an end")
        };
        for link in [
            "mkdir -p .v/lib; ln -s .v .venv",
            "mkdir -p .venv .v/lib; ln -s ../.v/lib .venv/lib",
            "mkdir -p .venv/x .v/lib; ln -s ../.v .venv/y; ln -s x/../y/lib .venv/lib",
            "mkdir -p .v/.git/lib; ln -s .git/lib .v/lib; ln -s .v .venv",
        ] {
            outside("cd ~; rm -rf project/.v* project/.w ~/.cache/uv ~/other");
            run(link).expect_success();
            outside(INSTALL);
            let output = run(CHANGE);
            // Positive control: it was changed, as seen from inside.
            assert!(output.stdout().contains("evil"), "{link}: {output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("by hard links, so changes"),
                "{link}: {stderr}"
            );
            assert_eq!(
                outside("cat ~/other/a.py ~/.cache/uv/a.py"),
                "good\ngood\n",
                "{link}"
            );
            assert_eq!(outside("cat ~/project/src.py"), "kept\n", "{link}");
            // Positive control: with the links, it would be changed everywhere.
            outside("cd ~/project; mv .w .v");
            outside(CHANGE);
            assert_eq!(outside("cat ~/other/a.py"), "evil\n", "{link}");
        }
    });
}

/// As uv does: one file in its cache, in another project, and in these places of the workspace.
fn install(laptop: &Laptop, places: &[&str]) {
    let places = places.join(" ");
    let line = format!(
        "mkdir -p ~/.cache/uv ~/other; echo good > ~/.cache/uv/a.py
        ln -f ~/.cache/uv/a.py ~/other/a.py; cd ~/project
        for at in {places}; do mkdir -p $at; ln -f ~/.cache/uv/a.py $at/a.py; done"
    );
    said(laptop, Place::Outside, &line);
}

fn run(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let command = laptop.stockade(["run"]).args(options);
    let command = command.args(["--", "bash", "-c", script]);
    command.run().expect("an end")
}

/// What another project has.
fn other(laptop: &Laptop) -> String {
    said(laptop, Place::Outside, "cat ~/other/a.py ~/.cache/uv/a.py")
}

/// With a mount namespace, a directory that holds nothing protected has a second view, and what is moved
/// there is seen without the mounts on it.
#[test]
fn f05_no_overlay_of_dependencies_can_be_walked_around() {
    const ATTACK: &str = "cd ~/project; mkdir -p empty; unshare -Urm bash -c 'mkdir -p /tmp/m
        mount --bind empty /tmp/m
        for at in app deep/down deep plain; do
            mv $at empty/it && echo evil >> /tmp/m/it/.venv/lib/a.py
            cat /tmp/m/it/.venv/token; mv empty/it $at
        done; mv app/.venv empty/it' 2>&1";
    test(&standard(), |world| {
        let laptop = world.laptop();
        install(laptop, &["app/.venv/lib", "deep/down/.venv/lib"]);
        let prepare = "cd ~/project; mkdir -p plain/.venv/lib; echo own > plain/.venv/lib/a.py
            for at in app deep/down plain; do echo secret > $at/.venv/token; done";
        said(laptop, Place::Outside, prepare);
        let hide = ["app", "deep/down"].map(|at| format!("--hide={at}/.venv/token"));
        for profile in ["generic", "codex"] {
            let [first, second] = &hide;
            let options = ["--profile", profile, "--nested", first, second];
            let output = run(laptop, &options, ATTACK);
            let told = output.stdout();
            // Positive control: what shares nothing can be moved, read and written that way.
            assert_eq!(told.matches("secret").count(), 1, "{output:?}");
            assert_eq!(told.matches("resource busy").count(), 4, "{output:?}");
            let plain = said(laptop, Place::Outside, "cat ~/project/plain/.venv/lib/a.py");
            assert!(plain.starts_with("own\nevil\n"), "{plain}");
            assert_eq!(other(laptop), "good\ngood\n");
        }
    });
}

/// One session moves a project to where the next one does not look for it.
#[test]
fn f05_a_project_with_shared_dependencies_cannot_be_moved_out_of_sight() {
    const MOVE: &str =
        "cd ~/project; mkdir -p 1/2/3; mv app 1/2/3/; mv plain 1/2/3/; chmod 0 app; rm -rf app";
    const CHANGE: &str = "cd ~/project; chmod 700 app; mv 1/2/3/* .; for at in app 1/2/3/app; do
        echo evil > $at/.venv/lib/a.py; done";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for nested in ["--nested=false", "--nested"] {
            install(laptop, &["app/.venv/lib"]);
            said(laptop, Place::Outside, "cd ~/project; mkdir plain");
            let output = run(laptop, &[nested], MOVE);
            assert!(output.stderr().contains("resource busy"), "{output:?}");
            let there = said(laptop, Place::Outside, "cd ~/project; ls -d 1/2/3/*");
            // Positive control: what shares nothing is moved.
            assert_eq!(there, "1/2/3/plain\n", "{nested}");
            let output = run(laptop, &[nested], CHANGE);
            assert_eq!(other(laptop), "good\ngood\n", "{nested}: {output:?}");
            said(
                laptop,
                Place::Outside,
                "cd ~/project; chmod 700 app; rm -rf plain 1",
            );
        }
        // Work in the project goes on.
        let work = "cd ~/project/app; mkdir src; echo one > src/a; mv src/a b; mv b ..; rm -r src
            cat ../b; rm ../b";
        assert_eq!(run(laptop, &[], work).stdout(), "one\n");
        // Positive control: the file is shared.
        said(
            laptop,
            Place::Outside,
            "echo evil > ~/project/app/.venv/lib/a.py",
        );
        assert_eq!(other(laptop), "evil\nevil\n");
    });
}

/// A program outside that moves the project ends the session, one that installs does not.
#[test]
fn f05_a_project_that_is_moved_outside_takes_no_overlay_along() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for nested in ["--nested=false", "--nested"] {
            install(laptop, &["app/.venv/lib", ".venv/lib"]);
            let start = || {
                let command = laptop.stockade(["run", nested, "--", "bash", "-c"]);
                let session = command.arg("echo up; sleep 60").spawn().expect("start");
                session.expect("up\n").expect("a session");
                session
            };
            let session = start();
            said(
                laptop,
                Place::Outside,
                "cd ~/project; rm -r .venv app/.venv",
            );
            install(laptop, &["app/.venv/lib", ".venv/lib"]);
            said(laptop, Place::Outside, "sleep 2");
            session.signal(Signal::TERM).expect("running");
            session.wait().expect("the end").expect_code(143);

            let session = start();
            said(
                laptop,
                Place::Outside,
                "cd ~/project; mv app moved; cp -al moved app",
            );
            let output = session.wait().expect("the end").expect_code(125);
            let stderr = output.stderr();
            assert!(stderr.contains("project/app\" was"), "{stderr}");
            said(laptop, Place::Outside, "cd ~/project; rm -r app moved");
        }
    });
}

#[test]
fn f05_environments_of_any_name_change_inside_only() {
    // Where tools make environments, with the mark that they leave.
    const PLACES: [(&str, &str); 11] = [
        ("env", "conda-meta/history"),
        ("tools/deep/custom", "pyvenv.cfg"),
        (".env", "pyvenv.cfg"),
        (".conda", "conda-meta/history"),
        (".tox/py312", "pyvenv.cfg"),
        (".nox/tests", "pyvenv.cfg"),
        (".direnv/python-3.12", "pyvenv.cfg"),
        (".hatch/x", "pyvenv.cfg"),
        (".pixi/envs/default", "conda-meta/history"),
        ("__pypackages__/3.12", "a"),
        (".pnpm-store/v3", "a"),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for store in ["~/.conda/pkgs", "~/.cache/rattler"] {
            for (place, mark) in PLACES {
                let prepare = format!(
                    "rm -rf ~/.conda ~/.cache/rattler ~/other; mkdir -p {store} ~/other
                    cd ~/project; mkdir -p {place}/conda-meta {place}/lib; echo > {place}/{mark}
                    rmdir {place}/conda-meta; echo good > {store}/a.py
                    ln -f {store}/a.py ~/other/a.py; ln -f {store}/a.py {place}/lib/a.py"
                );
                said(laptop, Place::Outside, &prepare);
                let change =
                    format!("cd ~/project; echo evil > {place}/lib/a.py; cat {place}/lib/a.py");
                let output = run(laptop, &[], &change);
                // Positive control: it was changed, as seen from inside.
                assert_eq!(output.stdout(), "evil\n", "{place}");
                let stderr = output.stderr();
                assert!(
                    stderr.contains("by hard links, so changes"),
                    "{place}: {stderr}"
                );
                let outside = said(laptop, Place::Outside, "cat ~/other/a.py");
                assert_eq!(outside, "good\n", "{place}");
                // Positive control: the file is shared.
                said(laptop, Place::Outside, &change);
                let outside = said(laptop, Place::Outside, "cat ~/other/a.py");
                assert_eq!(outside, "evil\n", "{place}");
                said(laptop, Place::Outside, "cd ~/project; rm -rf * .[a-z]*");
            }
        }
    });
}

/// For the user's package manager, such a link leads into the workspace.
#[test]
fn f05_links_through_proc_hide_no_dependencies() {
    const CHANGE: &str = "cd ~/project; echo evil > .venv/lib/a.py; echo evil > .z/lib/a.py";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for link in [
            "ln -s /proc/self/cwd/.z .venv",
            "ln -s /proc/self/root/home/dev/project/.z .venv",
            "mkdir .venv; ln -s /proc/self/cwd/.z/lib .venv/lib",
            "mkdir .venv; ln -s /proc/self/cwd way; ln -s ../way/.z/lib .venv/lib",
        ] {
            // A store is there before, as that of anybody who uses uv.
            install(laptop, &["elsewhere"]);
            run(
                laptop,
                &[],
                &format!("cd ~/project; mkdir -p .z/lib; {link}"),
            )
            .expect_success();
            install(laptop, &[".venv/lib"]);
            // Positive control: the user's files are in the workspace.
            assert_eq!(
                said(laptop, Place::Outside, "cat ~/project/.z/lib/a.py"),
                "good\n"
            );
            let output = run(laptop, &[], CHANGE).expect_code(125);
            let stderr = output.stderr();
            assert!(
                stderr.contains("is a link through /proc"),
                "{link}: {stderr}"
            );
            assert_eq!(other(laptop), "good\ngood\n", "{link}");
            // Positive control: without the link, there is a session.
            said(
                laptop,
                Place::Outside,
                "cd ~/project; rm -rf .venv way .z elsewhere",
            );
            run(laptop, &[], "true").expect_success();
        }
    });
}

/// A session closes a directory, and the next one opens it again.
#[test]
fn f05_a_directory_that_a_session_closed_hides_no_dependencies() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        install(laptop, &["app/.venv/lib", ".v/lib"]);
        said(
            laptop,
            Place::Outside,
            "cd ~/project; mkdir .venv; ln -s ../.v/lib .venv/lib",
        );
        for mode in ["0", "100", "400"] {
            let close = format!("cd ~/project; chmod {mode} app .v");
            run(laptop, &[], &close).expect_success();
            let open = "cd ~/project; chmod 700 app .v; echo evil > app/.venv/lib/a.py
                echo evil > .v/lib/a.py; cat app/.venv/lib/a.py";
            let output = run(laptop, &[], open);
            // Positive control: it was changed, as seen from inside.
            assert_eq!(output.stdout(), "evil\n", "{mode}: {output:?}");
            assert_eq!(other(laptop), "good\ngood\n", "{mode}");
            let stderr = output.stderr();
            assert!(stderr.contains("could not be checked"), "{mode}: {stderr}");
        }
    });
}
