//! docs/laboratory.md, line by line: what it types is typed, and what it shows is compared.

use std::net::TcpStream;
use std::time::Duration;

use stockade_world::{Host, Packet, Protocol};

use super::{in_laboratory, start_gateway, start_ioc, start_pva, typed};

const PAGE: &str = include_str!("../../docs/laboratory.md");

/// A line that somebody types, and what is printed then.
struct Step {
    command: String,
    printed: String,
}

/// The steps of all blocks of the console. A line that begins with `> ` goes on with a command.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: format!("{command}\n"),
                printed: String::new(),
            });
        } else if inside && let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => step.command += &format!("{more}\n"),
                None => step.printed += &format!("{line}\n"),
            }
        }
    }
    steps
}

/// Without what differs from one time to another: the session, how long curl and ping took, and
/// which program was denied how often.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let line = match words.as_slice() {
            ["stockade:", "denied", what, rest @ ..] => {
                let rest = rest.join(" ");
                let reason = rest.split_once("): ").map_or(&*rest, |(_, reason)| reason);
                format!("stockade: denied {}: {reason}", what.trim_end_matches(':'))
            }
            ["stockade:", "`stockade", "log", _, rest @ ..] => rest.join(" "),
            ["LAB:TICKS", ..] => "LAB:TICKS".to_owned(),
            _ => without_times(line),
        };
        steady += &format!("{line}\n");
    }
    steady
}

fn without_times(line: &str) -> String {
    let is_time = |word: &&str| word.ends_with("ms") || word.parse::<u32>().is_ok();
    let words = line.split(' ').filter(|word| !is_time(word));
    words.collect::<Vec<_>>().join(" ")
}

fn answers(host: &Host, port: u16) -> bool {
    let address = (host.v4(), port).into();
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

#[test]
fn the_page_about_a_laboratory_is_what_happens() {
    in_laboratory(|world| {
        let _ioc = start_ioc(world.host("ioc"));
        let _pva = start_pva(world.host("far"), "LAB:NUMBER");
        let _gateway = start_gateway(world.host("gateway"));
        let pmac = world.host("pmac");
        for port in [23, 1025] {
            pmac.tcp_echo(port).expect("listen");
        }
        let neighbour = world.host("neighbour");
        neighbour.tcp_echo(7).expect("listen");
        let strangers = [pmac, neighbour];
        let captures = strangers.map(|host| host.capture().expect("capture"));
        // Servers of EPICS tell everybody that they are there. What matters is the laptop's.
        let laptop = world.laptop().v4();
        let is_ours = |packet: &Packet| {
            packet.source == laptop && !matches!(packet.protocol, Protocol::Other(_))
        };
        let heard = || captures.each_ref().map(|capture| capture.count(is_ours));
        let steps = steps(PAGE);
        assert!(steps.len() > 10, "{} steps", steps.len());
        for Step { command, printed } in steps {
            let output = typed(world, &format!("exec 2>&1; {command}")).run();
            let output = output.expect("its end").stdout();
            assert_eq!(
                steady(&output),
                steady(&printed),
                "docs/laboratory.md is not what is printed by: {command}\n{output}"
            );
        }
        assert_eq!(heard(), [0, 0]);
        // They are there, and take connections of everybody.
        for (host, port) in strangers.iter().zip([1025, 7]) {
            assert!(world.laptop().enter(|| answers(host, port)));
        }
        assert!(heard().iter().all(|count| *count > 0), "{:?}", heard());
    });
}
