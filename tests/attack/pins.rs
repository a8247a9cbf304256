//! With the internet closed, only an address that was given out for an allowed name can be
//! reached, and only under that name (N10).

use stockade_world::{HttpServer, Standard, test};

use super::hello::hello;
use super::probe::{Place, Watch};
use super::say::{Heard, Saying, Speaker};
use crate::support::standard;

const NAME: &str = "www.example.com";
const MIRROR_NAME: &str = "mirror.example.org";
/// At the address of the first.
const OTHER: &str = "other.example.net";
const WEB: [&str; 2] = ["93.184.216.34", "2606:2800:220:1::34"];
const MIRROR: [&str; 2] = ["151.101.1.69", "2a04:4e42::69"];
/// What a client hears that shows another name: access_denied, and Forbidden.
const DENIED: [&str; 2] = ["alert 49", "403"];
const SERVED: [&str; 2] = ["hello", "200"];

/// All there is at these addresses.
fn everything_at(addresses: [&str; 2]) -> Vec<String> {
    let [v4, v6] = [addresses[0].to_owned(), format!("[{}]", addresses[1])];
    let kinds = [
        "tcp://?:7",
        "udp://?:7",
        "tcp://?:80",
        "tcp://?:443",
        "icmp://?",
    ];
    let at = |host: String| kinds.map(|target| target.replace('?', &host));
    [at(v4), at(v6)].concat()
}

fn look_up(name: &str) -> Saying {
    Saying::tcp(name, 80, get(name))
}

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Shows a name at addresses, in TLS and in HTTP, and gives what each heard.
fn show(speaker: &mut Speaker, name: &str, addresses: [&str; 2]) -> Vec<[String; 2]> {
    let both = |address: &str| {
        [
            Saying::tcp(address, 443, hello(name.as_bytes())),
            Saying::tcp(address, 80, get(name)),
        ]
    };
    let heard = speaker.say(&addresses.map(both).concat());
    let outcome = |heard: &[Heard]| match heard {
        [tls, http] if tls.bytes().is_empty() && http.bytes().is_empty() => {
            [format!("{tls:?}"), format!("{http:?}")]
        }
        [tls, http] => [tls.tls(), http.statuses()],
        _ => Default::default(),
    };
    heard.chunks(2).map(outcome).collect()
}

#[test]
fn n10_an_address_that_was_not_given_out_is_never_answered() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let [web, mirror] = ["web", "mirror"].map(|name| world.host(name));
        mirror.tcp_echo(7).expect("listen");
        mirror.udp_echo(7).expect("listen");
        let watch = Watch::on(&[web, mirror]);
        let mut session = Place::Closed(&[NAME]).prober(world.laptop());
        session.ask(&everything_at(WEB)).expect_denials();
        session.ask(&everything_at(MIRROR)).expect_denials();
        watch.expect_nothing();
        // Asked for by its name, the same address answers; the other one still does not.
        session.ask(&[format!("tcp://{NAME}:7")]).expect_answers();
        session.ask(&everything_at(WEB)).expect_answers();
        let watch = Watch::on(&[mirror]);
        session.ask(&everything_at(MIRROR)).expect_denials();
        watch.expect_nothing();
        session.end();
        Place::Outside
            .probe(world.laptop(), &everything_at(MIRROR))
            .expect_answers();
    });
}

#[test]
fn n10_an_allowed_name_does_not_open_an_address_that_was_not_given_out() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let mut speaker = Speaker::start(Place::Closed(&[NAME]), world.laptop());
        assert_eq!(speaker.say_one(&look_up(NAME)).statuses(), "200");
        assert_eq!(show(&mut speaker, NAME, WEB), [SERVED; 2]);
        let watch = Watch::on(&[world.host("mirror")]);
        let denied = ["EHOSTUNREACH", "EHOSTUNREACH"];
        let heard = show(&mut speaker, NAME, MIRROR);
        assert!(
            heard
                .iter()
                .all(|heard| *heard == denied || *heard == ["EACCES"; 2]),
            "{heard:?}"
        );
        watch.expect_nothing();
        speaker.end();
        let mut speaker = Speaker::start(Place::Outside, world.laptop());
        assert_eq!(show(&mut speaker, NAME, MIRROR), [SERVED; 2]);
        assert_eq!(net.mirror.requests().count(), 2);
    });
}

/// How many bytes got through to these.
fn received(servers: &[&HttpServer]) -> u64 {
    servers.iter().map(|server| server.tcp().received()).sum()
}

#[test]
fn n10_an_allowed_name_is_not_believed_at_the_address_of_another() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let servers = [&net.web, &net.web_tls, &net.mirror, &net.mirror_tls];
        let mut speaker = Speaker::start(Place::Closed(&[NAME, MIRROR_NAME]), world.laptop());
        for name in [NAME, MIRROR_NAME] {
            assert_eq!(speaker.say_one(&look_up(name)).statuses(), "200");
        }
        let before = received(&servers);
        assert_eq!(show(&mut speaker, NAME, MIRROR), [DENIED; 2]);
        assert_eq!(show(&mut speaker, MIRROR_NAME, WEB), [DENIED; 2]);
        assert_eq!(received(&servers), before);
        assert_eq!(show(&mut speaker, NAME, WEB), [SERVED; 2]);
        assert_eq!(show(&mut speaker, MIRROR_NAME, MIRROR), [SERVED; 2]);
        assert!(received(&servers) > before);
        let receipt = speaker.end();
        assert!(receipt.contains("given under other names"), "{receipt}");
    });
}

#[test]
fn n10_of_two_names_on_one_address_only_the_allowed_one_can_be_shown() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        for address in world.host("web").addresses() {
            world.dns().record(OTHER, *address);
        }
        let servers = [&net.web, &net.web_tls];
        let mut speaker = Speaker::start(Place::Closed(&[NAME]), world.laptop());
        assert_eq!(speaker.say_one(&look_up(NAME)).statuses(), "200");
        let before = received(&servers);
        assert_eq!(show(&mut speaker, OTHER, WEB), [DENIED; 2]);
        assert_eq!(received(&servers), before);
        assert_eq!(show(&mut speaker, NAME, WEB), [SERVED; 2]);
        speaker.end();
        // Where both are allowed, and both were asked for, both can be shown.
        let mut speaker = Speaker::start(Place::Closed(&[NAME, OTHER]), world.laptop());
        assert_eq!(speaker.say_one(&look_up(NAME)).statuses(), "200");
        assert_eq!(show(&mut speaker, OTHER, WEB), [DENIED; 2]);
        assert_eq!(speaker.say_one(&look_up(OTHER)).statuses(), "200");
        assert_eq!(show(&mut speaker, OTHER, WEB), [SERVED; 2]);
        speaker.end();
    });
}

#[test]
fn n10_a_name_is_allowed_for_the_ports_of_its_own_rule() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in world.host("web").addresses() {
            world.dns().record(OTHER, *address);
        }
        let rules = ["tcp://www.example.com:443", "tcp://other.example.net:80"];
        let mut speaker = Speaker::start(Place::Closed(&rules), world.laptop());
        assert_eq!(speaker.say_one(&look_up(OTHER)).statuses(), "200");
        let by_tls = Saying::tcp(NAME, 443, hello(NAME.as_bytes()));
        assert_eq!(speaker.say_one(&by_tls).tls(), "hello");
        // The address is open at both ports now, for one name each.
        assert_eq!(show(&mut speaker, NAME, WEB), [[SERVED[0], DENIED[1]]; 2]);
        assert_eq!(show(&mut speaker, OTHER, WEB), [[DENIED[0], SERVED[1]]; 2]);
        // And at no other, nor by another protocol.
        let others = [Saying::tcp(NAME, 7, "x"), Saying::udp(NAME, 7, "x")];
        assert!(speaker.say(&others).iter().all(Heard::is_denial));
        speaker.end();
    });
}

#[test]
fn n10_names_below_a_wildcard_push_no_other_name_off_an_address() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let rules = [NAME, "*.pages.example.com"];
        let mut speaker = Speaker::start(Place::Closed(&rules), world.laptop());
        assert_eq!(speaker.say_one(&look_up(NAME)).statuses(), "200");
        // More than an address keeps, all at the address of the first.
        let names = (0..48).map(|number| format!("n{number}.pages.example.com"));
        let others: Vec<_> = names.map(|name| look_up(&name)).collect();
        let heard = speaker.say(&others);
        let served = heard.iter().filter(|heard| heard.statuses() == "200");
        assert!(served.count() > 0, "{heard:?}");
        assert_eq!(show(&mut speaker, NAME, WEB), [SERVED; 2]);
        // The address is theirs, too.
        assert_eq!(speaker.say_one(&others[47]).statuses(), "200");
        assert_eq!(show(&mut speaker, OTHER, WEB), [DENIED; 2]);
        speaker.end();
    });
}
