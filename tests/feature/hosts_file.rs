//! Names that only the host's own `/etc/hosts` has.

use stockade_world::{Output, Standard, World, test};

use super::place::Place;
use crate::support::standard;

const HOSTS: &str = "\
127.0.0.1 localhost laptop
::1 localhost
10.20.0.5   Nas.corp.example nas # the big one
fd00:20::5  nas
93.184.216.34 site.pinned.example
2606:2800:220:1::34 site.pinned.example
127.0.0.1 mine.pinned.example
192.168.10.5 self.pinned.example
";

fn fetch(world: &World, place: Place<'_>, url: &str) -> Output {
    let curl = place.command(world.laptop(), "curl");
    let curl = curl.args(["-sS", "--max-time", "20", url]);
    curl.run().expect("curl ends")
}

#[test]
fn names_of_the_hosts_own_file_resolve_inside() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        world.laptop().write_etc("hosts", HOSTS).expect("write");
        let open = Place::Inside(&["10.20.0.5", "fd00:20::5"]);
        let getent = |place: Place<'_>, name: &str| {
            let getent = place.command(world.laptop(), "getent");
            let told = getent
                .args(["ahosts", name])
                .run()
                .expect("getent")
                .stdout();
            let mut addresses: Vec<String> = told
                .lines()
                .filter(|line| line.contains("STREAM"))
                .filter_map(|line| line.split_whitespace().next())
                .map(str::to_owned)
                .collect();
            addresses.sort();
            addresses
        };
        for place in [Place::Outside, open, Place::Closed(&["nas"])] {
            assert_eq!(
                getent(place, "nas"),
                ["10.20.0.5", "fd00:20::5"],
                "{place:?}"
            );
        }
        for name in ["nas", "NAS.corp.example", "nas.corp.example."] {
            let page = fetch(world, open, &format!("http://{name}/")).expect_success();
            assert_eq!(page.stdout(), "hello from intranet\n");
        }
        // A rule for the name opens the internet, not what is near.
        let near = fetch(world, Place::Closed(&["nas"]), "http://nas/").expect_code(7);
        assert!(near.stderr().contains("nas points inward"), "{near:?}");
        let both = Place::Closed(&["nas", "10.20.0.5", "fd00:20::5"]);
        assert_eq!(
            fetch(world, both, "http://nas/").stdout(),
            "hello from intranet\n"
        );
        assert_eq!(world.dns().queries().count(), 0);
    });
}

#[test]
fn names_of_the_hosts_own_file_are_judged_as_all_others() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        laptop.write_etc("hosts", HOSTS).expect("write");
        let url = "http://site.pinned.example/";
        let closed = Place::Closed(&["*.pinned.example"]);
        for place in [Place::Inside(&[]), closed] {
            let page = fetch(world, place, url).expect_success();
            assert_eq!(page.stdout(), "hello from web\n");
        }
        let refused = fetch(world, Place::Closed(&["www.example.com"]), url).expect_code(6);
        assert!(
            refused
                .stderr()
                .contains("denied the name site.pinned.example"),
            "{refused:?}"
        );
        // The host by one of its names: its loopback is not there, its address is its own.
        let own = laptop.tcp_echo(80).expect("listen");
        for name in ["mine", "self"] {
            let url = format!("http://{name}.pinned.example/");
            let outcome = fetch(world, closed, &url);
            assert!([6, 7].contains(&outcome.code()), "{outcome:?}");
        }
        assert_eq!(own.connections().count(), 0);
        assert_eq!(world.dns().queries_for("site.pinned.example"), 0);
    });
}

#[test]
fn a_change_of_the_hosts_own_file_shows_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        laptop.write_etc("hosts", HOSTS).expect("write");
        let line = "getent ahostsv4 nas; echo once; read line; getent ahostsv4 nas; echo twice";
        let mut session = Place::Inside(&[])
            .shell(laptop, line)
            .spawn()
            .expect("spawn");
        let before = session.expect("once").expect("an answer");
        assert!(before.contains("10.20.0.5"), "{before}");
        let changed = HOSTS.replace("10.20.0.5", "10.20.0.6");
        laptop.write_etc("hosts", &changed).expect("write");
        session.write("\n").expect("write");
        let after = session.expect("twice").expect("an answer");
        assert!(after.contains("10.20.0.6"), "{after}");
    });
}
