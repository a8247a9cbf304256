//! Every range that is not the internet (N5, N6). Servers live at such addresses in the world
//! and answer on the laptop; inside, nobody hears of them.

use stockade_world::{Builder, HostSpec, Standard, World, test};

use super::probe::{INSIDE, INTERNET, Place, Watch, only_outside};
use crate::support::standard;

/// Both ends of ranges, where a mask that is one bit off shows.
const SPECIAL_V4: [&str; 26] = [
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.254",
    "100.64.0.1",
    "100.127.255.254",
    "169.254.0.1",
    "169.254.255.254",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.8",
    "192.0.0.171",
    "192.0.2.2",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.254",
    "198.18.0.1",
    "198.19.255.254",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "255.255.255.254",
    // Services of clouds, some with public numbers.
    "168.63.129.16",
    "100.100.100.200",
    "169.254.170.2",
    "192.0.0.192",
    "169.254.42.42",
];

/// And their neighbours, which are the internet.
const GLOBAL_V4: [&str; 10] = [
    "1.0.0.1",
    "9.255.255.254",
    "11.0.0.1",
    "100.63.255.254",
    "100.128.0.1",
    "172.15.255.254",
    "172.32.0.1",
    "192.167.255.254",
    "198.20.0.1",
    "223.255.255.254",
];

const SPECIAL_V6: [&str; 15] = [
    "100::1",
    "2001:2::1",
    "2001:1::1",
    "2001:10::1",
    "2001:db8::2",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fdff:ffff::1",
    "fec0::1",
    // Services of clouds.
    "fd00:ec2::23",
    "fd20:ce::254",
    // The last of unique local, the last of site-local.
    "fdff:ffff:ffff:ffff::2",
    "feff::1",
];

/// Addresses that carry 10.20.0.5 or another special one inside.
const EMBEDDING: [&str; 13] = [
    "::10.20.0.5",
    "::ffff:0:10.20.0.5",
    "64:ff9b::10.20.0.5",
    "64:ff9b::169.254.169.254",
    "64:ff9b::127.0.0.1",
    "64:ff9b::168.63.129.16",
    "64:ff9b:1::10.20.0.5",
    "64:ff9b:1:a14:0:500::",
    "2002:a14:5::1",
    "2002:7f00:1::1",
    "2001:0:a14:5::1",
    "2001:0:4136:e378:8000:63bf:f5eb:fffa",
    "2606:4700::5efe:10.20.0.5",
];

/// And addresses of the same forms that carry a global one.
const GLOBAL_V6: [&str; 6] = [
    "2600::1",
    "3ffe::1",
    "64:ff9b::8.8.4.4",
    "2002:808:404::1",
    "2001:0:4136:e378:8000:63bf:f7f7:fbfb",
    "2606:4700::5efe:8.8.4.4",
];

fn with_host(builder: Builder, name: &str, addresses: &[&str]) -> Builder {
    let spec = addresses
        .iter()
        .fold(HostSpec::new(name), |spec, address| spec.at(address));
    builder.host(spec)
}

fn serve_echo(world: &World, host: &str) {
    world.host(host).tcp_echo(7).expect("listen");
    world.host(host).udp_echo(7).expect("listen");
}

fn all_kinds(addresses: &[&str]) -> Vec<String> {
    let targets = |address: &&str| {
        let enclosed = if address.contains(':') {
            format!("[{address}]")
        } else {
            (*address).to_owned()
        };
        [
            format!("tcp://{enclosed}:7"),
            format!("udp://{enclosed}:7"),
            format!("icmp://{address}"),
        ]
    };
    addresses.iter().flat_map(targets).collect()
}

/// The special addresses are out of reach inside, by every protocol, and the global ones are not.
#[track_caller]
fn special_and_global(special: &[&str], global: &[&str]) {
    let builder = with_host(with_host(standard(), "special", special), "global", global);
    test(&builder, |world| {
        let _net = Standard::serve(world).expect("servers");
        serve_echo(world, "special");
        serve_echo(world, "global");
        only_outside(world, &[world.host("special")], INSIDE, &all_kinds(special));
        INSIDE
            .probe(world.laptop(), &all_kinds(global))
            .expect_answers();
    });
}

#[test]
fn n05_every_special_range_of_ipv4_is_unreachable() {
    special_and_global(&SPECIAL_V4, &GLOBAL_V4);
}

#[test]
fn n06_every_special_range_of_ipv6_is_unreachable() {
    special_and_global(&SPECIAL_V6, &GLOBAL_V6[..2]);
}

#[test]
fn n06_addresses_that_carry_a_special_one_inside_are_unreachable() {
    special_and_global(&EMBEDDING, &GLOBAL_V6[2..]);
}

#[test]
fn n06_an_ipv4_address_in_ipv6_notation_is_judged_as_what_it_is() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let hosts = ["intranet", "metadata"].map(|name| world.host(name));
        let targets = [
            "tcp://[::ffff:10.20.0.5]:7",
            "udp://[::ffff:10.20.0.5]:7",
            "tcp://[::ffff:169.254.169.254]:80",
        ];
        only_outside(world, &hosts, INSIDE, &targets);
        let web = [
            "tcp://[::ffff:93.184.216.34]:7",
            "udp://[::ffff:93.184.216.34]:7",
        ];
        INSIDE.probe(world.laptop(), &web).expect_answers();
    });
}

#[test]
fn n05_n06_a_wide_rule_covers_no_metadata_service_and_no_disguise() {
    let covered = ["10.20.0.5", "fd00:20::5", "240.0.0.1"];
    let not_covered = [
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "fd00:ec2::254",
        "64:ff9b::10.20.0.5",
        "2002:a14:5::1",
        "2001:0:a14:5::1",
    ];
    let own: Vec<&str> = [&covered[2..], &not_covered[1..3], &not_covered[4..]].concat();
    test(&with_host(standard(), "special", &own), |world| {
        let _net = Standard::serve(world).expect("servers");
        world.host("metadata").tcp_echo(7).expect("listen");
        world.host("metadata").udp_echo(7).expect("listen");
        serve_echo(world, "special");
        let wide = Place::Inside(&[
            "0.0.0.0/0",
            "::/0",
            "169.254.0.0/16",
            "fd00::/8",
            "2000::/3",
        ]);
        wide.probe(world.laptop(), &all_kinds(&covered))
            .expect_answers();
        let hosts = ["special", "metadata"].map(|name| world.host(name));
        only_outside(world, &hosts, wide, &all_kinds(&not_covered));
        // What means it does.
        let exact = Place::Inside(&["169.254.169.254", "fd00:ec2::254", "64:ff9b::/96"]);
        let meant = ["169.254.169.254", "fd00:ec2::254", "64:ff9b::10.20.0.5"];
        exact
            .probe(world.laptop(), &all_kinds(&meant))
            .expect_answers();
    });
}

#[test]
fn n05_multicast_and_broadcast_stay_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let to_all = [
            "udp://224.0.0.251:5353",
            "udp://239.255.255.250:1900",
            "udp://255.255.255.255:5353",
            "udp://192.168.10.255:5353",
            "icmp://224.0.0.1",
            "icmp://192.168.10.255",
        ];
        let zoned = |zone: &str| {
            ["udp://[ff02::fb%Z]:5353", "icmp://ff02::1%Z"].map(|target| target.replace('Z', zone))
        };
        let capture = world.host("device").capture().expect("capture");
        let heard = || {
            let heard = |destination: &str| capture.to(destination.parse().expect("address"));
            [
                "224.0.0.251",
                "239.255.255.250",
                "255.255.255.255",
                "192.168.10.255",
                "224.0.0.1",
                "ff02::fb",
                "ff02::1",
            ]
            .map(heard)
        };

        // The jail's devices by number: there is no telling their names.
        let mut targets: Vec<String> = to_all.iter().map(ToString::to_string).collect();
        for zone in ["1", "2", "100", "101"] {
            targets.extend(zoned(zone));
        }
        let prober = &mut INSIDE.prober(laptop);
        // The jail's own kernel is among all nodes of its device, and answers itself.
        let answers = prober.ask(&targets);
        answers.without(&["icmp://ff02::1%100"]).0.expect_none();
        // The gate has seen them when it has answered what came after.
        prober.ask(&["tcp://8.8.8.8:53"]);
        assert_eq!(heard(), [0; 7]);

        targets.truncate(to_all.len());
        targets.extend(zoned("eth0"));
        Place::Outside.probe(laptop, &targets);
        assert!(heard().iter().all(|count| *count > 0), "{:?}", heard());
    });
}

#[test]
fn n06_link_local_addresses_are_unreachable_with_and_without_a_zone() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let device = world.host("device");
        device
            .ip("address add fe80::21/64 dev eth0 nodad")
            .expect("ip");
        let targets = |zone: &str| {
            ["tcp://[fe80::21Z]:7", "icmp://fe80::21Z"].map(|target| target.replace('Z', zone))
        };
        let watch = Watch::on(&[device]);
        for zone in ["", "%1", "%2", "%100", "%101"] {
            INSIDE.probe(laptop, &targets(zone)).expect_none();
        }
        // The host's own link-local address, too.
        INSIDE
            .probe(laptop, &["tcp://[fe80::5%100]:5432"])
            .expect_none();
        watch.expect_nothing();
        INSIDE.probe(laptop, &INTERNET).expect_answers();
        Place::Outside
            .probe(laptop, &targets("%eth0"))
            .expect_answers();
        watch.expect_something();
    });
}
