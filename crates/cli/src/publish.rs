//! The ports of the two loopbacks that stand for each other, and why one cannot be had.

use std::io;

use anyhow::Result;
use stockade_config::{Effective, Origin, Published, Sourced};
use stockade_gate::{Local, Publish};

use crate::exit::Refused;

/// What of the loopbacks, inside and outside, stands for the other. Ports outside are taken now.
///
/// # Errors
/// If one cannot be had, or nobody could listen at it inside.
pub(crate) fn local(effective: &Effective) -> Result<Local> {
    let mut publish: Vec<(Published, Publish)> = Vec::new();
    for Sourced { value, origin } in &effective.network.publish {
        if publish.iter().all(|(known, _)| known != value) {
            can_listen(*value, origin)?;
            let bound = Publish::bind(value.outside.get(), value.inside.get())
                .map_err(|error| not_published(*value, origin, &error))?;
            publish.push((*value, bound));
        }
    }
    Ok(Local {
        host_ports: effective.host_ports(),
        publish: publish.into_iter().map(|(_, bound)| bound).collect(),
    })
}

/// Inside, no program has the capability that the kernel wants for the low ports, not even root.
fn can_listen(ports: Published, origin: &Origin) -> Result<()> {
    const FIRST_FOR_ALL: u16 = 1024;
    let Published { outside, inside } = ports;
    if inside.get() >= FIRST_FOR_ALL {
        return Ok(());
    }
    let inside_other = inside.get().saturating_add(8000);
    let outside = if outside == inside {
        inside_other
    } else {
        outside.get()
    };
    Err(Refused {
        what: format!(
            "{origin}: nobody can listen at port {inside} inside: it is below {FIRST_FOR_ALL}"
        ),
        fix: format!(
            "have the command listen at another one, as in {}",
            publishing(outside, inside_other, origin)
        ),
    }
    .into())
}

/// Why a port cannot be had here, with one that may be.
fn not_published(ports: Published, origin: &Origin, error: &io::Error) -> anyhow::Error {
    let Published { outside, inside } = ports;
    let (why, other) = match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "ports below 1024 are for root".to_owned(),
            outside.get().saturating_add(8000),
        ),
        io::ErrorKind::AddrInUse => (
            "another program listens there".to_owned(),
            outside.get().checked_add(1).unwrap_or(8000),
        ),
        _ => (error.to_string(), outside.get()),
    };
    let fix = publishing(other, inside.get(), origin);
    Refused {
        what: format!("{origin}: port {outside} of this machine cannot be taken: {why}"),
        fix: format!("another port outside, as in {fix}"),
    }
    .into()
}

fn publishing(outside: u16, inside: u16, origin: &Origin) -> String {
    let ports = if outside == inside {
        inside.to_string()
    } else {
        format!("{outside}:{inside}")
    };
    match origin.file_line() {
        Some(_) => format!("publish = [\"{ports}\"]"),
        None => format!("--publish {ports}"),
    }
}
