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

use crate::{config::Hardening, plan::Plan};

/// How the command is to be confined, and its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerSettings {
    /// Signals and abstract sockets do not reach out of the sandbox.
    pub(crate) scopes: bool,
    pub(crate) hardening: Hardening,
    /// Programs inside can have mount namespaces.
    pub(crate) nested: bool,
    /// The command's user is root.
    pub(crate) is_root: bool,
    /// Where the command can write: the only places, if hardening is strict.
    pub(crate) writable: Vec<PathBuf>,
    /// What is hidden or read-only, and has to stay so.
    pub(crate) covers: Vec<PathBuf>,
    /// Each as `NAME=value`.
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
            covers: plan.covers().map(ToOwned::to_owned).collect(),
            environment: plan
                .environment
                .iter()
                .filter_map(|variable| assignment(&variable.name, &variable.value))
                .collect(),
        }
    }

    /// Fields that end in NUL: four flags, the two lists of paths, each with an
    /// empty field after it, the environment.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flag = |value: bool| if value { b"1" } else { b"0" };
        let mut bytes = Vec::new();
        let mut field = |contents: &[u8]| {
            bytes.extend(contents);
            bytes.push(0);
        };
        field(flag(self.scopes));
        field(flag(self.hardening == Hardening::Strict));
        field(flag(self.nested));
        field(flag(self.is_root));
        for paths in [&self.writable, &self.covers] {
            for path in paths {
                field(path.as_os_str().as_bytes());
            }
            field(b"");
        }
        for assignment in &self.environment {
            field(assignment.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_suffix(&[0])?;
        let mut fields = bytes.split(|byte| *byte == 0);
        let mut flag = || match fields.next()? {
            b"0" => Some(false),
            b"1" => Some(true),
            _ => None,
        };
        let scopes = flag()?;
        let hardening = if flag()? {
            Hardening::Strict
        } else {
            Hardening::Default
        };
        let nested = flag()?;
        let is_root = flag()?;
        let mut paths = || {
            let mut paths = Vec::new();
            loop {
                match fields.next()? {
                    b"" => return Some(paths),
                    path => paths.push(OsStr::from_bytes(path).into()),
                }
            }
        };
        let writable = paths()?;
        let covers = paths()?;
        Some(Self {
            scopes,
            hardening,
            nested,
            is_root,
            writable,
            covers,
            environment: fields
                .map(|field| CString::new(field).ok())
                .collect::<Option<_>>()?,
        })
    }

    /// Reads them from the descriptor that the inner stage was started with.
    pub(super) fn read(fd: OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::from(fd).read_to_end(&mut bytes)?;
        Self::decode(&bytes).ok_or(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            InnerSettings::decode(&settings.encode()),
            Some(settings.clone())
        );
        let bare = InnerSettings {
            scopes: false,
            hardening: Hardening::Default,
            nested: true,
            is_root: true,
            writable: Vec::new(),
            covers: Vec::new(),
            environment: vec![c"A=1".into()],
        };
        assert_eq!(InnerSettings::decode(&bare.encode()), Some(bare));
        let whole = settings.encode();
        assert_eq!(InnerSettings::decode(&whole[..whole.len() - 1]), None);
        assert_eq!(InnerSettings::decode(b""), None);
    }
}
