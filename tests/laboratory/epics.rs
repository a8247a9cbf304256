//! The usual clients find and use servers of EPICS by themselves.

use stockade_world::World;

use super::{in_laboratory, inside, start_gateway, start_ioc, start_pva};

/// What a client prints, and what Stockade says.
fn said(world: &World, options: &str, command: &str) -> (String, String) {
    let output = inside(world, options, command).run().expect("its end");
    (output.stdout(), output.stderr())
}

#[track_caller]
fn prints(world: &World, options: &str, command: &str, wanted: &str) {
    let (stdout, stderr) = said(world, options, command);
    assert_eq!(stdout, wanted, "{command}\n{stderr}");
    assert!(!stderr.contains("stockade: denied"), "{command}\n{stderr}");
}

#[test]
fn clients_find_a_server_of_channel_access_by_themselves() {
    in_laboratory(|world| {
        let _ioc = start_ioc(world.host("ioc"));
        let options = "--discovery epics --allow 192.168.10.31";
        prints(world, options, "caproto-get -t LAB:CURRENT", "3.5\n");
        prints(
            world,
            options,
            "caproto-put -t LAB:CURRENT 4.5",
            "3.5\n4.5\n",
        );
        // By the C library, which asks the interface for its broadcast address.
        let script = "import epics; print(epics.caget('LAB:CURRENT'), \
            epics.caput('LAB:CURRENT', 7, wait=True), epics.caget('LAB:CURRENT', use_monitor=False))";
        prints(
            world,
            options,
            &format!("python -c \"{script}\""),
            "4.5 1 7.0\n",
        );
        let script = "import epics, queue; seen = queue.Queue(); \
            epics.camonitor('LAB:TICKS', callback=lambda value, **_: seen.put(value)); \
            print(seen.get(timeout=20) < seen.get(timeout=20))";
        prints(world, options, &format!("python -c \"{script}\""), "True\n");
        let (stdout, _) = said(world, options, "caproto-monitor --maximum 3 LAB:TICKS");
        assert_eq!(stdout.matches("LAB:TICKS").count(), 3, "{stdout}");
    });
}

#[test]
fn clients_find_servers_and_a_gateway_of_pv_access_by_themselves() {
    in_laboratory(|world| {
        let _pva = start_pva(world.host("ioc"), "LAB:NUMBER");
        let _far = start_pva(world.host("far"), "FAR:NUMBER");
        let options = "--discovery epics --allow 192.168.10.31 --allow 192.168.10.35";
        let script = "
from p4p.client.thread import Context
from queue import Queue
context, seen = Context('pva'), Queue()
print(float(context.get('LAB:NUMBER')))
with context.monitor('LAB:NUMBER', lambda value: seen.put(float(value))):
    print(seen.get(timeout=20))
    context.put('LAB:NUMBER', 7)
    print(seen.get(timeout=20))
";
        prints(
            world,
            options,
            &format!("python -c \"{script}\""),
            "1.5\n1.5\n7.0\n",
        );
        let _gateway = start_gateway(world.host("gateway"));
        let get = "python -m p4p.client.cli get FAR:NUMBER";
        let (stdout, stderr) = said(world, options, get);
        assert!(stdout.ends_with(" 1.5\n"), "{stdout}{stderr}");
        // What is behind the gateway is out of reach by itself.
        let curl = "curl -sS -m 10 http://172.23.1.3:5075/";
        let (_, stderr) = said(world, options, curl);
        assert!(stderr.contains("denied tcp://172.23.1.3:5075"), "{stderr}");
    });
}

#[test]
fn clients_find_a_device_that_the_rules_know_by_its_host_name_alone() {
    in_laboratory(|world| {
        let _ioc = start_ioc(world.host("ioc"));
        let _pva = start_pva(world.host("ioc"), "LAB:NUMBER");
        let options = "--discovery epics --device ioc=ioc1.lab.example";
        prints(world, options, "caproto-get -t LAB:CURRENT", "3.5\n");
        let script = "import epics; print(epics.caput('LAB:CURRENT', 7, wait=True), \
            epics.caget('LAB:CURRENT', use_monitor=False))";
        prints(
            world,
            options,
            &format!("python -c \"{script}\""),
            "1 7.0\n",
        );
        let get = "python -m p4p.client.cli get LAB:NUMBER";
        let (stdout, stderr) = said(world, options, get);
        assert!(stdout.ends_with(" 1.5\n"), "{stdout}{stderr}");
        // It is the device that is found so, and no other host.
        let options = "--discovery epics --device ioc=device.lan";
        let get = "caproto-get -t --timeout 2 LAB:CURRENT";
        let (stdout, stderr) = said(world, options, get);
        assert!(!stdout.contains("7"), "{stdout}{stderr}");
    });
}

#[test]
fn a_server_that_answers_from_another_address_needs_a_rule_for_that_one() {
    in_laboratory(|world| {
        let ioc = world.host("ioc");
        ioc.ip("address add 192.168.10.33/24 dev eth0").expect("ip");
        let _ioc = start_ioc(ioc);
        // Asked at its second address, it answers from its first.
        let options = "--discovery epics --allow 192.168.10.33";
        let get = "caproto-get -t --timeout 3 LAB:CURRENT";
        let (stdout, stderr) = said(world, options, get);
        assert!(!stdout.contains("5\n"), "{stdout}{stderr}");
        let told = "udp://192.168.10.31:5064 answered a search for devices, but no rule covers it";
        assert!(stderr.contains(told), "{stderr}");
        let fix = "to allow it: --allow udp://192.168.10.31:5064 (WARNING:";
        assert!(stderr.contains(fix), "{stderr}");
        let options = "--discovery epics --allow 192.168.10.33 --allow 192.168.10.31:5064";
        prints(world, options, get, "3.5\n");
    });
}

#[test]
fn a_connection_that_follows_a_search_is_judged_by_the_rules() {
    in_laboratory(|world| {
        let _ioc = start_ioc(world.host("ioc"));
        let options = "--discovery epics --allow udp://192.168.10.31:5064";
        let get = "caproto-get -t --timeout 3 LAB:CURRENT";
        let (stdout, stderr) = said(world, options, get);
        assert!(!stdout.contains("5\n"), "{stdout}{stderr}");
        assert!(
            stderr.contains("denied tcp://192.168.10.31:5064"),
            "{stderr}"
        );
        assert!(stderr.contains("to allow it: --allow "), "{stderr}");
        let options = "--discovery epics --allow 192.168.10.31:5064";
        prints(world, options, get, "3.5\n");
    });
}

#[test]
fn a_search_that_is_not_passed_on_is_told_and_so_are_variables() {
    in_laboratory(|world| {
        let _ioc = start_ioc(world.host("ioc"));
        let _pva = start_pva(world.host("ioc"), "LAB:NUMBER");
        let get = "python -m p4p.client.cli -w 2 get LAB:NUMBER";
        let (stdout, stderr) = said(world, "", get);
        assert!(!stdout.contains("5\n"), "{stdout}{stderr}");
        let told = "stockade: denied udp://255.255.255.255:5076";
        assert!(stderr.contains(told), "{stderr}");
        let fix = "to allow it, with `--allow ADDRESS` for each device: --discovery epics\n";
        assert!(stderr.contains(fix), "{stderr}");

        let get = "caproto-get -t --timeout 2 LAB:CURRENT";
        let with = |addresses: &str, options: &str| {
            let run = inside(world, options, get);
            let run = run.env("EPICS_CA_ADDR_LIST", addresses);
            let output = run
                .env("EPICS_CA_AUTO_ADDR_LIST", "NO")
                .run()
                .expect("its end");
            (output.stdout(), output.stderr())
        };
        let (stdout, stderr) = with("192.168.10.31", "--allow 192.168.10.31");
        assert!(!stdout.contains("5\n"), "{stdout}{stderr}");
        let told = "stockade: EPICS_CA_ADDR_LIST is not passed on";
        assert!(stderr.contains(told), "{stderr}");
        let options = "--discovery epics --allow 192.168.10.31";
        let (stdout, stderr) = with("192.168.10.31", options);
        assert_eq!((stdout.as_str(), stderr.as_str()), ("3.5\n", ""));
        // A variable opens nothing.
        let (stdout, stderr) = with("192.168.10.32", options);
        assert!(!stdout.contains("5\n"), "{stdout}{stderr}");
        let fix = "to allow it: --allow 192.168.10.32:5064 (TCP and UDP)\n";
        assert!(stderr.contains(fix), "{stderr}");
    });
}
