//! `stockade run`: one session, from the rules to the exit code.

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use rustix::thread::CapabilitySet;
use stockade_gate::{Denials, Gate, Local, Publish};
use stockade_jail::{NAME_SERVER, Owner, Settings};
use stockade_policy::{Policy, Rule, RuleError};
use stockade_wall::{Bubblewrap, CommandLine, Config, Facts, Names, Network, Plan, Signals};

use crate::{args, exit::Refused};

/// The order is load-bearing: what can refuse comes first, the jail is closed before the
/// gate serves it, and the command starts last. Any error on the way ends the process, and
/// with it all that was built.
pub(crate) fn run(arguments: &args::Run) -> Result<ExitCode> {
    let policy = policy(&arguments.allow)?;
    let command = command_line(&arguments.command)?;

    // Before there are threads: each inherits what is blocked.
    let signals = Signals::block()?;
    // Asks bubblewrap for its version; the answer is collected when it is needed.
    let bubblewrap = Bubblewrap::find()?;
    let config = Config {
        network: Network::Jail {
            resolv_conf: stockade_gate::resolv_conf(NAME_SERVER),
            names: Names::InHosts,
        },
        ..Config::default()
    };
    let facts = Facts::gather(&config, None)?;
    let launch = Plan::build(&config, &facts)?.prepare(command, bubblewrap, signals)?;

    let settings = Settings {
        ipv6: stockade_gate::host_has_ipv6() || policy.rules.iter().any(names_ipv6),
        host_ports: arguments.host_port.clone(),
    };
    let local = local(arguments)?;
    // While there is one thread: a process enters a user namespace as a whole.
    let owner = Owner::enter().map_err(|error| refused(&error))?;
    let (jail, sockets) = owner.build(settings).map_err(|error| refused(&error))?;
    let gate = Gate::start(policy, local, sockets)?;

    let running = jail
        .run(move || launch.spawn())
        .map_err(|error| refused(&error))??;
    // Nothing is built any more: what only building needed is given up.
    jail.confine().map_err(|error| refused(&error))?;
    stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
    // After the command has its own limits: the gate needs two descriptors for each flow.
    stockade_gate::claim_descriptors();
    let outcome = running.supervise()?;
    drop(jail);

    if let Some(complaint) = outcome.complaint() {
        eprintln!("stockade: {complaint}");
    }
    let denials = gate.finish()?;
    if !arguments.quiet {
        tell(&denials);
    }
    Ok(outcome.exit_code().into())
}

fn policy(allow: &[String]) -> Result<Policy> {
    let rules = allow
        .iter()
        .map(|text| text.parse::<Rule>().map_err(|error| bad_rule(text, &error)))
        .collect::<Result<_>>()?;
    Ok(Policy {
        internet: true,
        rules,
    })
}

/// The rule with a caret under what is wrong. A rule that would confuse the terminal is
/// shown escaped, and then without one.
fn bad_rule(text: &str, error: &RuleError) -> anyhow::Error {
    let escaped = text.escape_debug().to_string();
    let mut message = format!("--allow: {error}\n  {escaped}");
    if escaped == text {
        let span = error.span();
        let before = text.get(..span.start).unwrap_or_default().chars().count();
        let width = text.get(span).unwrap_or_default().chars().count().max(1);
        message.push_str(&format!("\n  {}{}", " ".repeat(before), "^".repeat(width)));
    }
    anyhow::anyhow!(message)
}

fn local(arguments: &args::Run) -> Result<Local> {
    let both = |published: &&args::Published| arguments.host_port.contains(&published.inside);
    if let Some(published) = arguments.publish.iter().find(both) {
        bail!(
            "port {0} cannot be published and be the host's at once: leave out --host-port {0} \
             or --publish {1}:{0}",
            published.inside,
            published.outside
        );
    }
    let publish = |published: &args::Published| {
        Publish::bind(published.outside, published.inside)
            .with_context(|| format!("--publish: cannot take port {} here", published.outside))
    };
    Ok(Local {
        host_ports: arguments.host_port.clone(),
        publish: arguments
            .publish
            .iter()
            .map(publish)
            .collect::<Result<_>>()?,
    })
}

fn names_ipv6(rule: &Rule) -> bool {
    rule.network().addr().is_ipv6()
}

fn command_line(words: &[OsString]) -> Result<CommandLine> {
    let (program, arguments) = words.split_first().context("no command was given")?;
    Ok(CommandLine {
        program: program.clone(),
        arguments: arguments.to_vec(),
    })
}

fn refused(error: &stockade_jail::Error) -> anyhow::Error {
    Refused {
        what: error.to_string(),
        fix: error.fix(),
    }
    .into()
}

/// At the end, not during the session: the terminal belongs to the command.
fn tell(denials: &Denials) {
    const LINES: usize = 8;
    let all = denials.by_count();
    for denial in all.iter().take(LINES) {
        let times = if denial.count > 1 {
            format!(" ({} times)", denial.count)
        } else {
            String::new()
        };
        eprintln!(
            "stockade: denied {}{times}: {}",
            denial.flow,
            denial.verdict.reason()
        );
        if let Some(fix) = denial.verdict.fix() {
            eprintln!("stockade:   to allow it: --allow {fix}");
        }
    }
    let more: u64 = all.iter().skip(LINES).map(|denial| denial.count).sum();
    if more + denials.others() > 0 {
        eprintln!(
            "stockade: denied {} more attempts to other destinations",
            more + denials.others()
        );
    }
}
