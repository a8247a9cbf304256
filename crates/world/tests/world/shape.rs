//! Desktop and container differ in what they allow.

use std::fs;
use std::io::ErrorKind;

use stockade_world::{Builder, HostSpec, Login, Shape, Standard, test};

const TUNNEL: &str = "/dev/net/tun";
const FRESH_PROC: &str = "unshare --user --map-root-user --pid --fork --mount-proc true";

#[test]
fn a_container_has_neither_capabilities_nor_a_way_to_any() {
    let builder = Builder::standard().shape(Shape::Container);
    test(&builder, |world| {
        let status = world.laptop().command("cat").arg("/proc/self/status").run();
        let status = status.unwrap().expect_success().stdout();
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let line = format!("{set}:\t0000000000000000\n");
            assert!(status.contains(&line), "{status}");
        }
    });
}

#[test]
fn a_container_lacks_what_containers_lack() {
    let builder = Builder::standard().shape(Shape::Container);
    test(&builder, |world| {
        let laptop = world.laptop();
        let says = |line: &str| {
            let output = laptop.shell(line).run().unwrap();
            output.stdout() + &output.stderr()
        };
        assert!(says("ls /dev/net/tun").contains("No such file"));
        let sysctl = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        assert!(says(sysctl).contains("Read-only file system"));
        // In a namespace of one's own, too, where all capabilities are there.
        let inside = format!("unshare --user --net --map-root-user sh -c '{sysctl}'");
        assert!(says(&inside).contains("Read-only file system"));
        assert_eq!(says("cat /proc/keys /proc/timer_list"), "");
        assert!(says("umount /proc/keys").contains("umount"));
        let nested = "unshare --user --mount --map-root-user umount /proc/keys";
        assert_ne!(says(nested), "", "a mask could be removed");
        assert!(says(FRESH_PROC).contains("Operation not permitted"));
    });
}

/// The positive control for the test above.
#[test]
fn a_desktop_has_it_all() {
    // Here, the machine's; the body has the laptop's.
    let tunnel = fs::File::options().read(true).write(true).open(TUNNEL);
    let machine = tunnel.map_err(|error| error.kind());
    test(&Builder::standard(), |world| {
        let laptop = world.laptop();
        laptop.shell(FRESH_PROC).run().unwrap().expect_success();
        let sysctl = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        let inside = format!("unshare --user --net --map-root-user sh -c '{sysctl}'");
        laptop.shell(&inside).run().unwrap().expect_success();
        // The tunnel device is there as on the machine; some keep it for root.
        let exists = laptop.shell(&format!("ls {TUNNEL}")).run().unwrap();
        let missing = matches!(machine, Err(ErrorKind::NotFound));
        assert_eq!(exists.succeeded(), !missing, "{exists:?}");
        let opened = laptop.shell(&format!("exec 3<>{TUNNEL}")).run().unwrap();
        assert_eq!(opened.succeeded(), machine.is_ok(), "{opened:?}");
        let status = laptop
            .command("cat")
            .arg("/proc/self/status")
            .run()
            .unwrap();
        assert!(!status.stdout().contains("CapBnd:\t0000000000000000"));
    });
}

#[test]
fn the_network_of_a_container_works_and_can_grow() {
    let builder = Builder::standard().shape(Shape::Container);
    test(&builder, |world| {
        let _servers = Standard::serve(world).unwrap();
        let late = HostSpec::new("late").at("10.77.0.1");
        world.add_host(late).unwrap().tcp_echo(7).unwrap();
        let laptop = world.laptop();
        let curl = laptop
            .command("curl")
            .args(["-sS", "http://www.example.com/"]);
        assert_eq!(curl.run().unwrap().stdout(), "hello from web\n");
        let echo =
            "echo hi | timeout 5 bash -c 'exec 3<>/dev/tcp/10.77.0.1/7; echo hi >&3; head -1 <&3'";
        assert_eq!(laptop.shell(echo).run().unwrap().stdout(), "hi\n");
    });
}

/// Root in a container with all capabilities dropped cannot map itself: what
/// the product has to refuse with a reason.
#[test]
fn root_in_a_container_without_capabilities_cannot_map_itself() {
    let builder = Builder::new().shape(Shape::Container).login(Login::Root);
    test(&builder, |world| {
        let output = world
            .laptop()
            .shell("id -u; unshare --user --map-root-user true")
            .run();
        let output = output.unwrap();
        assert_eq!(output.stdout(), "0\n");
        assert!(
            output.stderr().contains("Operation not permitted"),
            "{output:?}"
        );
    });
}
