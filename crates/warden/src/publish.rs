//! The ports of the two loopbacks that stand for each other, and why one cannot be had.

use std::io;

use stockade_config::{Effective, LOGIN, Origin, Published, Sourced};
use stockade_gate::{Local, Publish};

/// The kernel reserves the ports below for programs with a capability.
const FIRST_FOR_ALL: u16 = 1024;

/// Why a port cannot be published. [`Self::fix`] says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Inside, no program has the capability that low ports need, not even root.
    #[error(
        "{origin}: nobody can listen at port {} inside: it is below {FIRST_FOR_ALL}",
        ports.inside
    )]
    LowInside { ports: Published, origin: Origin },
    #[error("{origin}: port {} of this machine cannot be taken: {}", ports.outside, reason(error))]
    Unavailable {
        ports: Published,
        origin: Origin,
        error: io::Error,
    },
}

/// What of the loopbacks, inside and outside, stands for the other. Ports outside are taken now.
///
/// # Errors
/// If one cannot be had, or nobody could listen at it inside.
pub(crate) fn local(effective: &Effective) -> Result<Local, PublishError> {
    let mut publish: Vec<(Published, Publish)> = Vec::new();
    for Sourced { value, origin } in &effective.network.publish {
        if publish.iter().all(|(known, _)| known != value) {
            let (ports, origin) = (*value, origin.clone());
            if ports.inside.get() < FIRST_FOR_ALL {
                return Err(PublishError::LowInside { ports, origin });
            }
            match Publish::bind(ports.outside.get(), ports.inside.get()) {
                Ok(bound) => publish.push((ports, bound)),
                Err(error) => {
                    return Err(PublishError::Unavailable {
                        ports,
                        origin,
                        error,
                    });
                }
            }
        }
    }
    Ok(Local {
        host_ports: effective.host_ports(),
        publish: publish.into_iter().map(|(_, bound)| bound).collect(),
    })
}

impl PublishError {
    /// Other ports, which may be had.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::LowInside { ports, origin } => {
                let inside = ports.inside.get().saturating_add(8000);
                let outside = if ports.outside == ports.inside {
                    inside
                } else {
                    ports.outside.get()
                };
                let setting = setting(outside, inside, origin);
                format!("have the command listen at another one, as in {setting}")
            }
            // The browser is sent to this port, and no other.
            Self::Unavailable { ports, origin, .. } if origin.to_string() == LOGIN => format!(
                "end that program (`ss -ltnp 'sport = :{}'` names it), or log in with `{LOGIN} \
                 --device-auth`",
                ports.outside
            ),
            Self::Unavailable {
                ports,
                origin,
                error,
            } => {
                let outside = ports.outside.get();
                let outside = match error.kind() {
                    io::ErrorKind::PermissionDenied => outside.saturating_add(8000),
                    io::ErrorKind::AddrInUse => outside.checked_add(1).unwrap_or(8000),
                    _ => outside,
                };
                let setting = setting(outside, ports.inside.get(), origin);
                format!("another port outside, as in {setting}")
            }
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "ports below 1024 are for root".to_owned(),
        io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
        _ => error.to_string(),
    }
}

fn setting(outside: u16, inside: u16, origin: &Origin) -> String {
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
