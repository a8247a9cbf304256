//! Facts about the machine and the caller: everything that the plan depends on, read
//! once, so that the plan itself is a pure function.

mod proc;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags};

pub use self::proc::Procfs;
use crate::{
    error::Error,
    limits::{Limit, Resource},
    system::{ETC_SECRETS, SSH_HOST_KEYS, SYSTEM},
};

/// A directory under the name that the caller uses, and where that name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub named: PathBuf,
    /// The same, without links on the way.
    pub real: PathBuf,
}

/// A place of [`SYSTEM`] that exists on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPlace {
    pub path: PathBuf,
    pub form: SystemForm,
    pub reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemForm {
    Directory,
    /// A link with this text, which leads to `real`.
    Link {
        text: PathBuf,
        real: PathBuf,
    },
}

/// A secret below `/etc` that this user can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcSecret {
    pub path: PathBuf,
    pub is_directory: bool,
}

/// Where `/etc/resolv.conf` leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvConf {
    pub real: PathBuf,
    pub exists: bool,
}

/// Everything that a plan is made from, besides configuration.
#[derive(Debug, Clone)]
pub struct Facts {
    pub home: Place,
    /// The directory the command may write to; links resolved.
    pub workspace: PathBuf,
    /// Where the command starts; links resolved.
    pub current_directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    pub system: Vec<SystemPlace>,
    pub secrets: Vec<EtcSecret>,
    pub procfs: Procfs,
    /// The kernel takes this user for the owner of its settings below `/proc`. So it does
    /// with root, also without any capability.
    pub owns_kernel_settings: bool,
    pub resolv_conf: ResolvConf,
    /// The caller's limit of open files. The gate raises the warden's own.
    pub open_files: Limit,
    /// The file of this program.
    pub executable: PathBuf,
}

impl Facts {
    /// Reads the facts. The workspace is the current directory unless another is named.
    ///
    /// # Errors
    /// If the home directory, the current directory or the workspace is not usable.
    pub fn gather(workspace: Option<&Path>) -> Result<Self, Error> {
        let current_directory = fs::canonicalize(".").map_err(Error::CurrentDirectoryGone)?;
        let workspace = match workspace {
            Some(path) => directory(path).map_err(|error| Error::WorkspaceUnusable {
                path: path.to_owned(),
                error,
            })?,
            None => current_directory.clone(),
        };
        Ok(Self {
            home: home()?,
            workspace,
            current_directory,
            environment: env::vars_os().collect(),
            system: SYSTEM
                .iter()
                .filter_map(|(path, reason)| system_place(Path::new(path), reason))
                .collect(),
            secrets: etc_secrets(),
            procfs: Procfs::detect()?,
            owns_kernel_settings: owns_kernel_settings(),
            resolv_conf: resolv_conf(),
            open_files: Limit::current(Resource::OpenFiles),
            executable: fs::canonicalize("/proc/self/exe")
                .map_err(|error| Error::OwnExecutable { error })?,
        })
    }
}

fn home() -> Result<Place, Error> {
    let named = env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .ok_or(Error::HomeUnset)?;
    if !named.is_absolute() {
        return Err(Error::HomeRelative(named));
    }
    match directory(&named) {
        Ok(real) => Ok(Place {
            named: absolute(&named),
            real,
        }),
        Err(error) => Err(Error::HomeUnusable { path: named, error }),
    }
}

/// The path of a directory, links resolved.
fn directory(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if !fs::metadata(&real)?.is_dir() {
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    Ok(real)
}

fn system_place(path: &Path, reason: &'static str) -> Option<SystemPlace> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    let form = if kind.is_symlink() {
        SystemForm::Link {
            text: fs::read_link(path).ok()?,
            real: fs::canonicalize(path).ok()?,
        }
    } else if kind.is_dir() {
        SystemForm::Directory
    } else {
        return None;
    };
    Some(SystemPlace {
        path: path.to_owned(),
        form,
        reason,
    })
}

fn etc_secrets() -> Vec<EtcSecret> {
    let host_keys = fs::read_dir(SSH_HOST_KEYS)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            name.starts_with(b"ssh_host_") && name.ends_with(b"_key")
        })
        .map(|entry| entry.path());
    let mut closed = Vec::new();
    if rustix::process::geteuid().is_root() {
        closed_below(Path::new("/etc"), &mut closed);
    }
    let all: BTreeSet<PathBuf> = ETC_SECRETS
        .iter()
        .map(PathBuf::from)
        .chain(host_keys)
        .chain(closed)
        .filter(|path| may(path, Access::READ_OK))
        // A link is masked where it leads; masking the link itself is not possible.
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    // What lies in a masked directory is masked with it.
    let covered = |path: &Path| path.ancestors().skip(1).any(|above| all.contains(above));
    all.iter()
        .filter(|path| !covered(path))
        .filter_map(|path| {
            let is_directory = fs::metadata(path).ok()?.is_dir();
            let path = path.clone();
            Some(EtcSecret { path, is_directory })
        })
        .collect()
}

/// Collects what is not for everybody: root can read it all the same, and the modes are
/// the administrator's word on what is a secret. Links lead to what is judged by itself.
fn closed_below(directory: &Path, closed: &mut Vec<PathBuf>) {
    const READ_BY_OTHERS: u32 = 0o004;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let (path, kind) = (entry.path(), metadata.file_type());
        if !kind.is_symlink() && metadata.mode() & READ_BY_OTHERS == 0 {
            closed.push(path);
        } else if kind.is_dir() {
            closed_below(&path, closed);
        }
    }
}

fn owns_kernel_settings() -> bool {
    rustix::process::geteuid().is_root()
        || may(Path::new("/proc/sys/kernel/core_pattern"), Access::WRITE_OK)
}

/// Whether this process, as it is now, may access a file.
fn may(path: &Path, access: Access) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, access, AtFlags::EACCESS).is_ok()
}

/// Follows `/etc/resolv.conf`, which is often a link, and often one whose target exists
/// only while some service runs.
fn resolv_conf() -> ResolvConf {
    let mut path = PathBuf::from("/etc/resolv.conf");
    if let Ok(real) = fs::canonicalize(&path) {
        return ResolvConf { real, exists: true };
    }
    // As many links as the kernel would follow.
    for _ in 0..40 {
        let Ok(text) = fs::read_link(&path) else {
            break;
        };
        path = absolute(&path.parent().unwrap_or(Path::new("/")).join(text));
    }
    ResolvConf {
        real: canonical_as_far_as_it_exists(&path),
        exists: false,
    }
}

/// The path with the links of its existing part resolved.
fn canonical_as_far_as_it_exists(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|existing| {
            let missing = path.strip_prefix(existing).ok()?;
            Some(fs::canonicalize(existing).ok()?.join(missing))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// The path without `.` and `..`, by its text alone.
fn absolute(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Facts of an ordinary merged-/usr desktop.
    pub(crate) fn facts() -> Facts {
        let link = |path: &str, text: &str| SystemPlace {
            path: path.into(),
            form: SystemForm::Link {
                text: text.into(),
                real: Path::new("/").join(text),
            },
            reason: "programs",
        };
        let directory = |path: &str| SystemPlace {
            path: path.into(),
            form: SystemForm::Directory,
            reason: "system",
        };
        Facts {
            home: Place {
                named: "/home/ada".into(),
                real: "/home/ada".into(),
            },
            workspace: "/home/ada/project".into(),
            current_directory: "/home/ada/project/src".into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            system: vec![
                directory("/usr"),
                link("/bin", "usr/bin"),
                directory("/etc"),
                directory("/opt"),
            ],
            secrets: Vec::new(),
            procfs: Procfs::Fresh,
            owns_kernel_settings: false,
            resolv_conf: ResolvConf {
                real: "/etc/resolv.conf".into(),
                exists: true,
            },
            open_files: Limit {
                resource: Resource::OpenFiles,
                soft: Some(1024),
                hard: Some(4096),
            },
            executable: "/usr/local/bin/stockade".into(),
        }
    }

    #[test]
    fn text_of_links_is_cleaned_without_asking_the_disk() {
        let clean = |path: &str| absolute(Path::new(path));
        assert_eq!(clean("/etc/../run/./x"), Path::new("/run/x"));
        assert_eq!(clean("/../../x"), Path::new("/x"));
    }

    #[test]
    fn a_file_is_no_directory() {
        assert!(directory(Path::new("/etc/passwd")).is_err());
        assert!(directory(Path::new("/etc")).is_ok());
    }
}
