//! What the user has and the command does not see. Each probe finds everything outside.

use std::collections::BTreeSet;
use std::path::Path;

use stockade_world::{DECOY, Login, SocketName, World, test};

use super::place::Place;
use crate::support::standard;

const INSIDE: Place<'_> = Place::Inside(&[]);

/// The secrets that occur in a text.
fn secrets(text: &str) -> BTreeSet<String> {
    let parts = text.split(DECOY).skip(1);
    parts
        .map(|rest| {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            format!("{DECOY}{number}")
        })
        .collect()
}

/// What a shell command line prints, whatever its exit code.
fn said(world: &World, place: Place<'_>, line: &str) -> String {
    let output = place.shell(world.laptop(), line).run();
    output.expect("the shell ends").stdout()
}

#[test]
fn no_decoy_file_can_be_read() {
    test(&standard(), |world| {
        let decoys = world.laptop().decoys();
        let paths = decoys
            .iter()
            .map(|decoy| format!("'{}'", decoy.path.display()));
        let line = format!("cat {} 2>&1", paths.collect::<Vec<_>>().join(" "));
        let all: BTreeSet<_> = decoys.iter().map(|decoy| decoy.secret.clone()).collect();
        assert_eq!(secrets(&said(world, Place::Outside, &line)), all);
        assert_eq!(secrets(&said(world, INSIDE, &line)), BTreeSet::new());
    });
}

#[test]
fn a_search_of_every_place_of_people_finds_nothing() {
    test(&standard(), |world| {
        let line =
            "grep -rIhos 'DECOY-SECRET-[0-9]*' /etc /home /mnt /root /run /srv /tmp /var/tmp";
        assert!(secrets(&said(world, Place::Outside, line)).len() > 30);
        assert_eq!(said(world, INSIDE, line), "");
    });
}

#[test]
fn no_decoy_variable_passes() {
    test(&standard(), |world| {
        let decoys = world.laptop().decoy_variables();
        let names = |text: &str| -> BTreeSet<String> {
            let lines = text.lines().filter_map(|line| line.split_once('='));
            lines.map(|(name, _)| name.to_owned()).collect()
        };
        let outside = names(&said(world, Place::Outside, "env"));
        let inside = names(&said(world, INSIDE, "env"));
        for decoy in decoys {
            assert!(outside.contains(decoy.name), "{}", decoy.name);
            assert!(!inside.contains(decoy.name), "{}", decoy.name);
        }
        assert!(inside.contains("PATH") && inside.contains("TERM"));
    });
}

/// Connects to each socket of the arguments, `@` for an abstract one; prints those that
/// accept.
const CONNECT: &str = "
import socket, sys
for name in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect('\\0' + name[1:] if name.startswith('@') else name)
            print(name)
        except OSError:
            pass
";

#[test]
fn no_socket_of_the_desktop_can_be_reached() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let sockets = laptop.sockets().iter();
        let names: Vec<String> = sockets
            .map(|socket| match &socket.name {
                SocketName::Path(path) => path.display().to_string(),
                SocketName::Abstract(name) => format!("@{name}"),
            })
            .collect();
        let connect = |place: Place<'_>| {
            let output = place.python(laptop, CONNECT).args(&names).run();
            output.expect("the probe ends").expect_success().stdout()
        };
        let outside = connect(Place::Outside);
        assert_eq!(outside.lines().collect::<Vec<_>>(), names);
        let reached = laptop.socket_connections().wait_for(names.len());
        reached.expect("all of them were reached");
        assert_eq!(connect(INSIDE), "");
        assert_eq!(laptop.socket_connections().count(), names.len());
    });
}

#[test]
fn root_inside_has_no_secrets_of_the_system_and_no_power_over_the_kernel() {
    test(&standard().login(Login::Root), |world| {
        let line = "cat /etc/shadow";
        assert_eq!(secrets(&said(world, Place::Outside, line)).len(), 1);
        assert_eq!(said(world, INSIDE, line), "");

        // A setting of the network namespace that the command is in, so that the machine's
        // own stays as it is.
        let setting = "/proc/sys/net/ipv4/conf/all/log_martians";
        let line = format!("echo 1 > {setting} && echo changed");
        assert_eq!(said(world, Place::Outside, &line), "changed\n");
        assert_eq!(said(world, INSIDE, &line), "");
    });
}

#[test]
fn what_is_written_to_the_workspace_stays_and_all_else_is_gone() {
    test(&standard(), |world| {
        let line = "echo kept > kept; for d in $HOME /tmp /var/tmp /dev/shm; do
            echo gone > $d/gone && echo $d; done";
        let written = said(world, INSIDE, line);
        assert!(written.contains("/home/dev\n/tmp\n"), "{written}");
        let kept = world.laptop().workspace().join("kept");
        assert_eq!(std::fs::read_to_string(kept).expect("a file"), "kept\n");
        for place in written.lines().map(Path::new) {
            assert!(!place.join("gone").exists(), "{}", place.display());
        }
    });
}
