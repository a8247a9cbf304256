//! The settings that the inner stage starts with.
//!
//! They come as a file in memory, whose descriptor the inner stage inherits: they are needed before
//! the first order, and may be longer than a message.

use std::{
    ffi::{CString, OsStr},
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::{
    config::Hardening,
    encoding::{decode, list},
    plan::Plan,
};

/// How the command is to be confined, and its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InnerSettings {
    /// Signals and abstract sockets do not reach out of the sandbox.
    pub(crate) scopes: bool,
    pub(crate) hardening: Hardening,
    /// Programs inside can have mount namespaces.
    pub(crate) nested: bool,
    /// The command's user is root.
    pub(crate) is_root: bool,
    /// Where the command can write: the only places, if hardening is strict.
    #[serde(with = "list")]
    pub(crate) writable: Vec<PathBuf>,
    /// What is hidden or read-only, and directories on the way to overlays. All have to stay mount points.
    #[serde(with = "list")]
    pub(crate) covers: Vec<PathBuf>,
    /// Each as `NAME=value`.
    #[serde(with = "list")]
    pub(crate) environment: Vec<CString>,
}

impl InnerSettings {
    pub(crate) fn of(plan: &Plan) -> Self {
        let assignment = |name: &OsStr, value: &OsStr| {
            let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
            // Neither can hold a NUL: they come from the kernel, or were checked.
            CString::new(bytes).ok()
        };
        Self {
            scopes: plan.scopes,
            hardening: plan.hardening,
            nested: plan.nested,
            is_root: plan.is_root,
            writable: plan.writable().map(ToOwned::to_owned).collect(),
            covers: (plan.covers().chain(plan.anchors()))
                .map(ToOwned::to_owned)
                .collect(),
            environment: plan
                .environment
                .iter()
                .filter_map(|variable| assignment(&variable.name, &variable.value))
                .collect(),
        }
    }

    /// Reads them from the descriptor that the inner stage was started with.
    pub(super) fn read(fd: OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::from(fd).read_to_end(&mut bytes)?;
        decode(&bytes).ok_or(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::encode;

    #[test]
    fn what_is_told_is_what_is_understood() {
        let settings = InnerSettings {
            scopes: true,
            hardening: Hardening::Strict,
            nested: false,
            is_root: false,
            writable: vec!["/tmp".into(), "/a\nb".into()],
            covers: vec!["/w/.env".into()],
            environment: vec![c"A=".into(), c"B=x\ny=z".into()],
        };
        let whole = encode(&settings).unwrap();
        assert_eq!(decode(&whole), Some(settings));
        let bare = InnerSettings {
            scopes: false,
            hardening: Hardening::Default,
            nested: true,
            is_root: true,
            writable: Vec::new(),
            covers: Vec::new(),
            environment: vec![c"A=1".into()],
        };
        assert_eq!(decode(&encode(&bare).unwrap()), Some(bare));
        assert_eq!(decode::<InnerSettings>(&whole[..whole.len() - 1]), None);
        assert_eq!(decode::<InnerSettings>(b""), None);
    }
}
