//! Names that may lead to private addresses lead there, and never to the machine itself, to what is
//! sensitive, or to anywhere by the word of a server that anybody may own (N13, N10).

use std::net::IpAddr;
use std::time::Duration;

use stockade_world::dns_messages::Name;
use stockade_world::dns_messages::rdata::{RData, SVCB, SVCParam};
use stockade_world::{
    Builder, Host, HostSpec, Misbehaviour, PATIENCE, Running, World, eventually, test,
};

use super::empty::configure;
use super::hello::hello;
use super::probe::{PROBE, Place, Prober, Watch, dig};
use super::say::{Saying, Speaker};
use crate::support::standard;

const NAME: &str = "wiki.lab.example";
const RULES: &[&str] = &["*.lab.example"];
const PLACES: [Place<'_>; 2] = [Place::Near(RULES), Place::ClosedNear(RULES)];
const KINDS: [&str; 3] = ["tcp://?:7", "udp://?:7", "icmp://?"];

fn lab() -> Builder {
    standard().host(HostSpec::new("nat64").at("64:ff9b::10.20.0.5"))
}

fn serve(host: &Host) {
    host.tcp_echo(7).expect("listen");
    host.udp_echo(7).expect("listen");
}

fn everything_at(host: &str) -> [String; 3] {
    KINDS.map(|kind| kind.replace('?', host))
}

/// Addresses that no name opens, each with servers: of others, and of the laptop itself.
fn forbidden(world: &World) -> Vec<IpAddr> {
    let own = world.laptop().addresses().iter().copied();
    let others = [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "fd00:ec2::254",
        "64:ff9b::10.20.0.5",
    ];
    let others = others.map(|text| text.parse().expect("address"));
    own.chain(others).collect()
}

#[test]
fn n13_a_near_name_that_flips_between_two_look_ups_opens_private_addresses_alone() {
    test(&lab(), |world| {
        for name in ["intranet", "metadata", "nat64"] {
            serve(world.host(name));
        }
        let laptop = world.laptop();
        let own = laptop.tcp_echo(7).expect("listen");
        let own_udp = laptop.udp_echo(7).expect("listen");
        let private = world.host("intranet");
        let watch = Watch::on(&["metadata", "nat64"].map(|name| world.host(name)));
        for inward in forbidden(world) {
            let good = match inward.is_ipv4() {
                true => private.v4(),
                false => private.v6(),
            };
            for place in PLACES {
                let session = &mut place.prober(laptop);
                // The loopback inside is the sandbox's own, and hears its own echo.
                let is_own = |target: &String| inward.is_loopback() && target.starts_with("icmp");
                for target in everything_at(NAME).iter().filter(|target| !is_own(target)) {
                    world.dns().rotate(NAME, &[&[good][..], &[inward]]);
                    session.ask(&[target]).expect_answers();
                    session.ask(&[target]).expect_none();
                    session.ask(&[target]).expect_answers();
                }
            }
            watch.expect_nothing();
            assert_eq!(own.connections().count(), 0, "{inward}");
            assert_eq!(own_udp.datagrams().count(), 0, "{inward}");
        }
        for inward in forbidden(world) {
            world.dns().rotate(NAME, &[&[inward]]);
            let outside = Place::Outside.probe(laptop, &everything_at(NAME));
            outside.expect_answers();
        }
        watch.expect_something();
        assert!(own.connections().count() > 0 && own_udp.datagrams().count() > 0);
    });
}

#[test]
fn n13_a_device_with_a_host_name_is_as_any_near_name() {
    test(&lab(), |world| {
        for name in ["intranet", "metadata", "nat64"] {
            serve(world.host(name));
        }
        let laptop = world.laptop();
        let own = laptop.tcp_echo(7).expect("listen");
        let private = world.host("intranet");
        let watch = Watch::on(&["metadata", "nat64"].map(|name| world.host(name)));
        let device = format!("cam={NAME}");
        for inward in forbidden(world) {
            let good = match inward.is_ipv4() {
                true => private.v4(),
                false => private.v6(),
            };
            let probe = [
                "run",
                "--device",
                &device,
                "--",
                "/usr/bin/python3",
                "-IS",
                "-c",
                PROBE,
            ];
            let session = &mut Prober::start(laptop.stockade(probe));
            world.dns().rotate(NAME, &[&[good][..], &[inward]]);
            session.ask(&["tcp://cam:7"]).expect_answers();
            session.ask(&["tcp://cam:7"]).expect_none();
            session.ask(&["tcp://cam:7"]).expect_answers();
            watch.expect_nothing();
            assert_eq!(own.connections().count(), 0, "{inward}");
        }
        world.dns().rotate(NAME, &[&[world.host("metadata").v4()]]);
        let outside = Place::Outside.probe(laptop, &[format!("tcp://{NAME}:7")]);
        outside.expect_answers();
    });
}

/// What is sent to many stays inside, under whatever name.
#[test]
fn n13_a_near_name_opens_no_broadcast_and_no_group() {
    test(&lab(), |world| {
        serve(world.host("device"));
        serve(world.host("intranet"));
        let watch = Watch::on(&[world.host("device")]);
        for many in [
            "192.168.10.255",
            "255.255.255.255",
            "224.0.0.251",
            "ff02::1",
        ] {
            let many: IpAddr = many.parse().expect("address");
            world.dns().rotate(NAME, &[&[many]]);
            for place in PLACES {
                let told = place.probe(world.laptop(), &everything_at(NAME));
                told.expect_none();
            }
        }
        watch.expect_nothing();
        // The same name at the device itself is open.
        world.dns().rotate(NAME, &[&[world.host("device").v4()]]);
        for place in PLACES {
            let told = place.probe(world.laptop(), &everything_at(NAME));
            told.expect_answers();
        }
        watch.expect_something();
    });
}

#[test]
fn n13_a_private_address_is_open_under_its_near_name_alone() {
    test(&lab(), |world| {
        let device = world.host("device");
        serve(device);
        world.dns().record(NAME, device.v4());
        world.dns().record("other.example", device.v4());
        let numbers = everything_at("192.168.10.21");
        let watch = Watch::on(&[device]);
        for place in PLACES {
            let session = &mut place.prober(world.laptop());
            session.ask(&numbers).expect_denials();
            session.ask(&everything_at("other.example")).expect_none();
            session.ask(&everything_at("device.lan")).expect_none();
            watch.expect_nothing();
        }
        for place in PLACES {
            let session = &mut place.prober(world.laptop());
            session.ask(&everything_at(NAME)).expect_answers();
            session.ask(&numbers).expect_answers();
        }
        // A rule of `allow` for the same name opens nothing near.
        let allowed = Place::Closed(RULES).probe(world.laptop(), &everything_at(NAME));
        allowed.expect_denials();
    });
}

/// A name server that a rule names may belong to anybody, and be told what to answer.
#[test]
fn n13_a_name_server_that_a_rule_names_does_not_place_near_names() {
    test(&lab(), |world| {
        let (laptop, evil) = (world.laptop(), world.host("mirror"));
        serve(world.host("intranet"));
        serve(world.host("device"));
        let intranet = world.host("intranet").v4();
        let hostile = evil.dns(53).expect("a name server");
        hostile.record(NAME, world.host("device").v4());
        hostile.record("plain.example", world.host("web").v4());
        world.dns().record(NAME, intranet);
        let server = format!("@{}", evil.v4());
        let rule = evil.v4().to_string();
        let ask = |name: &str, near: &[&str]| {
            let near = near.iter().flat_map(|rule| ["--near", rule]);
            let dig = laptop.stockade(["run", "--allow", &rule]).args(near);
            let dig = dig.args([
                "--", "dig", "+short", "+time=6", "+tries=1", &server, name, "A",
            ]);
            dig.run().expect("dig").stdout().trim().to_owned()
        };
        assert_eq!(ask(NAME, RULES), intranet.to_string());
        assert_eq!(hostile.queries_for(NAME), 0);
        // It is asked itself for other names, and for this one if it is no near one.
        assert_eq!(
            ask("plain.example", RULES),
            world.host("web").v4().to_string()
        );
        assert_eq!(ask(NAME, &[]), world.host("device").v4().to_string());
        assert_eq!(hostile.queries_for(NAME), 1);
    });
}

/// The server at a private address may serve others, too: a router, a reverse proxy.
#[test]
fn n10_a_connection_to_a_near_name_shows_no_other_name() {
    test(&lab(), |world| {
        let intranet = world.host("intranet");
        for port in [80, 443] {
            intranet.tcp_echo(port).expect("listen");
        }
        intranet.udp_echo(443).expect("listen");
        world.dns().record(NAME, intranet.v4());
        let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for place in PLACES {
            let mut speaker = Speaker::start(place, world.laptop());
            // An echo server says the same.
            let good = speaker.say_one(&Saying::tcp(NAME, 80, get(NAME)));
            assert_eq!(good.bytes(), get(NAME).as_bytes(), "{place:?}");
            let good = speaker.say_one(&Saying::tcp(NAME, 443, hello(NAME.as_bytes())));
            assert_eq!(good.bytes(), hello(NAME.as_bytes()), "{place:?}");
            let other = speaker.say_one(&Saying::tcp(NAME, 80, get("admin.lab.example")));
            assert_eq!(other.statuses(), "403", "{place:?}");
            let other = speaker.say_one(&Saying::tcp(NAME, 443, hello(b"admin.lab.example")));
            assert_eq!(other.tls(), "alert 49", "{place:?}");
            // QUIC shows no name.
            let quic = speaker.say_one(&Saying::udp(NAME, 443, [0xc0; 1200]));
            assert_eq!(quic.bytes(), b"", "{place:?}");
            let receipt = speaker.end();
            assert!(receipt.contains("given under other names"), "{receipt}");
            assert!(receipt.contains("QUIC"), "{receipt}");
        }
    });
}

/// A search domain makes a whole name of a short one, and not the other way round.
#[test]
fn n10_a_short_near_name_shows_no_whole_name() {
    test(&lab(), |world| {
        let (laptop, intranet) = (world.laptop(), world.host("intranet"));
        intranet.tcp_echo(80).expect("listen");
        world.dns().record("wiki", intranet.v4());
        let search = "nameserver 8.8.8.8\nsearch lab.example\n";
        laptop.write_etc("resolv.conf", search).expect("write");
        let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for place in [Place::Near(&["wiki"]), Place::ClosedNear(&["wiki"])] {
            let mut speaker = Speaker::start(place, laptop);
            let good = speaker.say_one(&Saying::tcp("wiki", 80, get("wiki")));
            assert_eq!(good.bytes(), get("wiki").as_bytes(), "{place:?}");
            let other = speaker.say_one(&Saying::tcp("wiki", 80, get(NAME)));
            assert_eq!(other.statuses(), "403", "{place:?}");
            speaker.end();
        }
    });
}

/// A record that lets clients hide the name.
fn hiding() -> RData<'static> {
    let service = SVCB::new(1, Name::new_unchecked(".").into_owned());
    let key = b"a key to hide names with".to_vec();
    let service = service.with_param(SVCParam::Ech(key.into()));
    RData::HTTPS(service.into_owned().into())
}

#[test]
fn n10_a_near_name_hides_no_name_of_later_connections() {
    test(&lab(), |world| {
        world.dns().record(NAME, world.host("intranet").v4());
        world.dns().records(NAME, 60, vec![hiding()]);
        world.dns().records("plain.example", 60, vec![hiding()]);
        for place in PLACES {
            let told = dig(world, place, &[NAME, "HTTPS"]).stdout();
            assert!(!told.contains("ech"), "{told}");
        }
        let told = dig(world, PLACES[0], &["plain.example", "HTTPS"]).stdout();
        assert!(told.contains("ech"), "{told}");
    });
}

/// Runs the lines that it is given, and says when each is done.
const SHELL: &str = "while read -r line; do eval \"$line\" 2>/dev/null; echo done; done";

fn said(session: &mut Running, line: &str) -> String {
    session.write(format!("{line}\n")).expect("ask");
    let said = session.expect("done\n").expect("an answer");
    said.trim().to_owned()
}

fn connect(to: &str) -> String {
    format!("(exec 3<>/dev/tcp/{to}/7) && echo open || echo closed")
}

/// What an address was called under other rules is not its name under these.
#[test]
fn n13_a_reload_leaves_no_address_to_a_name_that_has_become_near_or_another_device() {
    test(&lab(), |world| {
        let (laptop, evil) = (world.laptop(), world.host("mirror"));
        let [private, other] = ["intranet", "device"].map(|name| world.host(name));
        serve(private);
        serve(other);
        let hostile = evil.dns(53).expect("a name server");
        hostile.record(NAME, other.v4());
        world.dns().record(NAME, private.v4());
        world.dns().record("two.lab.example", other.v4());
        let server = evil.v4();
        let start = |text: &str| {
            configure(laptop, text);
            let session = laptop.stockade(["run", "--", "bash", "-c", SHELL]);
            session.spawn().expect("a session")
        };
        let reload = |text: &str| {
            configure(laptop, text);
            let reload = laptop.stockade(["reload"]).run().expect("a reload");
            reload.expect_success();
        };
        let rule = format!("[network]\nallow = [\"{server}\"]\n");
        let mut session = start(&rule);
        let dig = format!("dig +short +tries=1 @{server} {NAME} A");
        assert_eq!(said(&mut session, &dig), other.v4().to_string());
        let number = connect(&other.v4().to_string());
        assert_eq!(said(&mut session, &number), "closed");
        reload(&format!("{rule}near = [\"*.lab.example\"]\n"));
        assert_eq!(said(&mut session, &number), "closed");
        assert_eq!(said(&mut session, &connect(NAME)), "open");
        assert_eq!(said(&mut session, &number), "closed");
        session.write("exit\n").expect("end");
        session.wait().expect("an end");
        // Nor an answer that is under way.
        let mut session = start(&rule);
        hostile.misbehave(NAME, Misbehaviour::Slow(Duration::from_millis(700)));
        let asked = hostile.queries_for(NAME);
        said(&mut session, &format!("{dig} >/dev/null &"));
        let is_asked = || hostile.queries_for(NAME) > asked;
        eventually("a question", PATIENCE, is_asked).expect("it is asked");
        reload(&format!("{rule}near = [\"*.lab.example\"]\n"));
        said(&mut session, "wait");
        assert_eq!(said(&mut session, &number), "closed");
        assert_eq!(said(&mut session, &connect(NAME)), "open");
        session.write("exit\n").expect("end");
        session.wait().expect("an end");

        let mut session = start(&format!("[devices]\ncam = \"{NAME}\"\n"));
        let number = connect(&private.v4().to_string());
        assert_eq!(said(&mut session, &connect("cam")), "open");
        assert_eq!(said(&mut session, &number), "open");
        reload("[devices]\ncam = \"two.lab.example\"\n");
        assert_eq!(said(&mut session, &number), "closed");
        assert_eq!(said(&mut session, &connect("cam")), "open");
        assert_eq!(said(&mut session, &number), "closed");
        let number = connect(&other.v4().to_string());
        assert_eq!(said(&mut session, &number), "open");
        session.write("exit\n").expect("end");
        session.wait().expect("an end");
    });
}

/// Devices and near names open what rules of `allow` open, so a lock of those is a lock of these.
#[test]
fn n07_what_the_administrator_locked_is_not_opened_by_a_device_or_a_near_name() {
    test(&lab(), |world| {
        let (laptop, private) = (world.laptop(), world.host("intranet"));
        serve(private);
        world.dns().record(NAME, private.v4());
        let watch = Watch::on(&[private]);
        let number = connect(&private.v4().to_string());
        let ways = [
            (["--device", "x=10.20.0.5"], number),
            (["--near", NAME], connect(NAME)),
        ];
        let run = |options: [&str; 2], line: &str| {
            let run = laptop.stockade(["run"]).args(options);
            run.args(["--", "bash", "-c", line]).run().expect("an end")
        };
        for lock in ["network", "network.allow"] {
            let text = format!("lock = [\"{lock}\"]\n");
            laptop
                .write_etc("stockade/config.toml", &text)
                .expect("write");
            for (options, line) in &ways {
                let refused = run(*options, line).expect_code(125).stderr();
                assert!(refused.contains("locked"), "{refused}");
            }
            watch.expect_nothing();
        }
        let text = "lock = [\"network.mode\"]\n";
        laptop
            .write_etc("stockade/config.toml", text)
            .expect("write");
        for (options, line) in &ways {
            assert_eq!(run(*options, line).stdout(), "open\n");
        }
        watch.expect_something();
    });
}

/// The rules of a host name are judged by the device's name, which would be that of the other host,
/// too.
#[test]
fn n07_a_device_with_a_host_name_gives_its_ports_to_no_other_host() {
    test(&lab(), |world| {
        let [private, other] = ["intranet", "device"].map(|name| world.host(name));
        serve(private);
        serve(other);
        other.tcp_echo(22).expect("listen");
        world.dns().record(NAME, private.v4());
        let watch = Watch::on(&[other]);
        let [named, plain] = ["tcp://wiki.lab.example:7", "tcp://192.168.10.21:22"];
        let run = |rules: &[&str], line: &str| {
            let rules = rules.iter().flat_map(|rule| ["--device", rule]);
            let run = world.laptop().stockade(["run"]).args(rules);
            run.args(["--", "bash", "-c", line]).run().expect("an end")
        };
        let both = [format!("x={named}"), format!("x={plain}")];
        let both = both.each_ref().map(String::as_str);
        let line = format!("getent ahosts x; {}", connect(&other.v4().to_string()));
        let refused = run(&both, &line);
        assert!(!refused.stdout().contains("open"), "{refused:?}");
        let why = "device `x` has a host name and another host";
        assert!(refused.stderr().contains(why), "{refused:?}");
        watch.expect_nothing();
        let apart = [format!("x={named}"), format!("y={plain}")];
        let apart = apart.each_ref().map(String::as_str);
        let line = format!("{line}; {}", connect("x"));
        assert!(run(&apart, &line).stdout().ends_with("closed\nopen\n"));
    });
}

/// A program may ask for a name of its own that leads to a private address. Whoever allows that name
/// allows its owner to choose another address tomorrow.
#[test]
fn n13_a_name_that_strangers_could_own_is_proposed_with_a_warning_only() {
    test(&lab(), |world| {
        serve(world.host("device"));
        let warning = "(WARNING: whoever controls the DNS of this name chooses";
        for (name, is_public) in [("wiki.example.com", true), ("device.lan", false)] {
            world.dns().record(name, world.host("device").v4());
            let run = world.laptop().stockade(["run", "--", "bash", "-c"]);
            let output = run.arg(connect(name)).run().expect("an end");
            let (told, receipt) = (output.stdout(), output.stderr());
            assert!(told.ends_with("closed\n"), "{told}");
            assert!(
                receipt.contains(&format!("--near tcp://{name}:7")),
                "{receipt}"
            );
            assert_eq!(receipt.contains(warning), is_public, "{receipt}");
            let to_copy = format!("always: stockade allow --near tcp://{name}:7\n");
            assert_eq!(receipt.contains(&to_copy), !is_public, "{receipt}");
            let target = format!("tcp://{name}:7");
            let explain = world.laptop().stockade(["explain", &target]).run();
            let explained = explain.expect("an end").expect_code(1).stdout();
            let fix = format!("to allow it: near = [\"{target}\"]\n");
            assert!(explained.contains(&fix), "{explained}");
            assert!(explained.contains("or with --near\n"), "{explained}");
            assert_eq!(explained.contains("WARNING"), is_public, "{explained}");
        }
    });
}

/// A question for a device's host name says nothing but that.
#[test]
fn n12_a_device_carries_no_class_and_no_type_out() {
    test(&lab(), |world| {
        serve(world.host("intranet"));
        world.dns().record(NAME, world.host("intranet").v4());
        let device = format!("cam={NAME}");
        let run = |line: &str| {
            let run = world
                .laptop()
                .stockade(["run", "--no-internet", "--device", &device]);
            run.args(["--", "bash", "-c", line])
                .run()
                .expect("an end")
                .stdout()
        };
        let odd = "for kind in '-c CH -t A' '-c HS -t AAAA' '-t TXT' '-t TYPE4711' '-c CLASS4711 -t A'; \
            do dig +tries=1 +time=3 $kind cam; done";
        let told = run(odd);
        assert_eq!(told.matches("status: NOERROR").count(), 5, "{told}");
        assert_eq!(world.dns().queries_for(NAME), 0);
        assert_eq!(run("dig +short -t A cam"), "10.20.0.5\n");
        assert_eq!(world.dns().queries_for(NAME), 1);
    });
}

#[test]
fn n10_names_of_strangers_push_no_near_name_off_its_address() {
    test(&lab(), |world| {
        let private = world.host("intranet");
        serve(private);
        world.dns().record(NAME, private.v4());
        let near = format!("tcp://{NAME}:7");
        let at_address = format!("tcp://{}:7", private.v4());
        let strangers: Vec<_> = (0..80)
            .map(|number| format!("n{number}.stranger.example"))
            .collect();
        for name in &strangers {
            world.dns().record(name, private.v4());
        }
        let session = &mut Place::Near(RULES).prober(world.laptop());
        session.ask(&[&near]).expect_answers();
        let targets: Vec<_> = strangers
            .iter()
            .map(|name| format!("tcp://{name}:8"))
            .collect();
        // Their own names open nothing; nobody listens there either.
        session.ask(&targets).expect_none();
        assert!(
            strangers
                .iter()
                .all(|name| world.dns().queries_for(name) > 0)
        );
        // Without another look-up, which would bring the name back.
        session.ask(&[&at_address]).expect_answers();
    });
}
