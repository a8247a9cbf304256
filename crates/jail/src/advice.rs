//! What to do about a machine on which the jail cannot be built.

use std::{fs, io};

use rustix::io::Errno;
use stockade_sys::{
    apparmor::Confinement,
    namespace::{Identity, UserNamespaceError},
    shortage,
};

use crate::Error;

pub(crate) fn for_error(error: &Error) -> String {
    if let Some(advice) = cause(error).and_then(shortage::advice) {
        return advice;
    }
    match error {
        Error::UserNamespace { identity, error } => for_user_namespace(*identity, error),
        Error::NetworkNamespace(_) => apparmor().unwrap_or_else(|| {
            "the kernel must have CONFIG_NET_NS, and a container engine must not forbid \
             unshare(2); see its seccomp profile"
                .to_owned()
        }),
        Error::Filter(error) if is_unknown(error) => module("nf_tables"),
        Error::Pair(error) if is_unknown(error) => module("veth"),
        Error::Filter(_) | Error::Pair(_) | Error::Plumbing { .. } => {
            apparmor().unwrap_or_else(|| {
                "the kernel must have nf_tables, veth, policy routing and packet sockets; \
                 in a container, the engine's seccomp profile must allow them in user namespaces"
                    .to_owned()
            })
        }
        Error::Thread => "this is a defect of Stockade; please report it".to_owned(),
    }
}

/// What the kernel said.
fn cause(error: &Error) -> Option<&io::Error> {
    match error {
        Error::NetworkNamespace(error) | Error::Pair(error) | Error::Filter(error) => Some(error),
        Error::Plumbing { error, .. } => Some(error),
        Error::UserNamespace { error, .. } => match error {
            UserNamespaceError::Create(error) => Some(error),
            UserNamespaceError::Threads | UserNamespaceError::Map { .. } => None,
        },
        Error::Thread => None,
    }
}

fn for_user_namespace(identity: Identity, error: &UserNamespaceError) -> String {
    match error {
        UserNamespaceError::Threads => "this is a defect of Stockade; please report it".to_owned(),
        UserNamespaceError::Create(_) => {
            if sysctl("kernel/unprivileged_userns_clone").as_deref() == Some("0") {
                return "sudo sysctl kernel.unprivileged_userns_clone=1".to_owned();
            }
            apparmor().unwrap_or_else(|| {
                "the kernel must have CONFIG_USER_NS; in a container, the engine's seccomp \
                 profile must allow unshare(2) (Docker: --security-opt seccomp=unconfined or a \
                 profile that allows it; rootless Podman allows it)"
                    .to_owned()
            })
        }
        UserNamespaceError::Map { .. } if identity.uid == 0 => {
            "a process of uid 0 needs CAP_SETFCAP to map itself in a user namespace, and this \
             container dropped it: add it back (--cap-add SETFCAP), or run as another user"
                .to_owned()
        }
        UserNamespaceError::Map { .. } => apparmor().unwrap_or_else(|| {
            "the kernel refused to map your user in a new user namespace; a security module or \
             the container engine forbids it"
                .to_owned()
        }),
    }
}

/// Ubuntu lets only programs with a profile use what a user namespace gives.
fn apparmor() -> Option<String> {
    let restricts = sysctl("kernel/apparmor_restrict_unprivileged_userns");
    if restricts.as_deref() != Some("1") {
        return None;
    }
    let path = std::env::current_exe();
    let path = path.map_or_else(|_| "stockade".to_owned(), |path| path.display().to_string());
    for_confinement(&Confinement::of_this_process(), &path)
}

/// What helps a program in this profile, if AppArmor restricts user namespaces.
#[must_use]
pub fn for_confinement(confinement: &Confinement, path: &str) -> Option<String> {
    match confinement {
        // It may use them, so something else is in the way.
        Confinement::Own => None,
        // By now it may be in the one that Ubuntu gives to programs without one.
        Confinement::Foreign(name) if name != "unprivileged_userns" => Some(format!(
            "start it from a program that AppArmor does not confine, such as a terminal of the desktop: \
             the program that started it has the profile {name:?}, passes it on, and may not use \
             user namespaces"
        )),
        Confinement::Unconfined | Confinement::Foreign(_) => Some(format!(
            "AppArmor restricts user namespaces on this machine; give Stockade a profile \
             (`stockade doctor` shows it): sudo {path} doctor --write-apparmor"
        )),
    }
}

fn module(name: &str) -> String {
    format!(
        "load the kernel's module for it: sudo modprobe {name} (a kernel without it cannot run the \
         jail)"
    )
}

/// What the kernel says without the module: by the kind, because an explanation may have taken the
/// place of the number.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    ) || Errno::from_io_error(error) == Some(Errno::PROTONOSUPPORT)
}

fn sysctl(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    Some(text.trim().to_owned())
}
