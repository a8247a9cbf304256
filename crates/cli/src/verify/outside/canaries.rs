//! Files and sockets that are there while a session is verified, and are removed after.

use std::{
    env,
    fs::{self, OpenOptions},
    io::Write as _,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{FileTypeExt as _, OpenOptionsExt as _},
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
};

use crate::verify::probe;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verify) enum Place {
    Home,
    /// Beside the workspace, where other projects may be.
    Beside,
    Temporary,
    /// The user's directory for sockets.
    Runtime,
    SharedMemory,
}

pub(in crate::verify) struct Canaries {
    /// Those that could be made, and can be read here.
    pub(in crate::verify) files: Vec<(Place, PathBuf)>,
    /// One in the workspace that is hidden in the session, if it could be made.
    pub(in crate::verify) hidden: Option<PathBuf>,
    pub(in crate::verify) abstract_name: String,
    /// The socket in the temporary directory, if one could be made.
    pub(in crate::verify) socket: Option<PathBuf>,
    /// Other sockets of this machine that have a path.
    pub(in crate::verify) sockets: Vec<PathBuf>,
    /// They listen as long as they are here.
    _listeners: Vec<UnixListener>,
}

/// More need not be tried.
const SOCKETS: usize = 200;

impl Canaries {
    pub(in crate::verify) fn put_up(token: &str, home: &Path, workspace: &Path) -> Self {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = [
            (Place::Home, Some(home.to_owned())),
            (Place::Beside, workspace.parent().map(Path::to_owned)),
            (Place::Temporary, Some("/tmp".into())),
            (Place::Temporary, Some("/var/tmp".into())),
            (Place::Runtime, runtime.filter(|path| path.is_absolute())),
            (Place::SharedMemory, Some("/dev/shm".into())),
        ];
        let name = format!(".stockade-verify-{token}");
        let mut files: Vec<(Place, PathBuf)> = Vec::new();
        for (place, directory) in places {
            let Some(directory) = directory else { continue };
            let path = directory.join(&name);
            // A workspace may lie right in one of the others.
            let is_there = files.iter().any(|(_, other)| *other == path);
            if is_there || make(&path, token) && probe::read(&path).worked() {
                files.push((place, path));
            }
        }
        let hidden = workspace.join(format!("{name}.hidden"));
        let hidden = (hidden.to_str().is_some() && make(&hidden, token)).then_some(hidden);
        let abstract_name = format!("stockade-verify/{token}");
        let listener = SocketAddr::from_abstract_name(&abstract_name)
            .and_then(|address| UnixListener::bind_addr(&address));
        let path = Path::new("/tmp").join(format!("{name}.socket"));
        let socket = UnixListener::bind(&path);
        Self {
            files,
            hidden,
            abstract_name,
            socket: socket.is_ok().then_some(path),
            sockets: sockets(),
            _listeners: [listener, socket].into_iter().flatten().collect(),
        }
    }

    pub(in crate::verify) fn at(&self, place: Place) -> impl Iterator<Item = &PathBuf> {
        let files = self.files.iter();
        files
            .filter(move |(other, _)| *other == place)
            .map(|(_, path)| path)
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let files = self.files.iter().map(|(_, path)| path);
        for path in files.chain(&self.socket).chain(&self.hidden) {
            // One that stays is empty but for a number.
            let _ = fs::remove_file(path);
        }
    }
}

fn make(path: &Path, token: &str) -> bool {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(token.as_bytes()));
    made.is_ok()
}

/// The sockets that have a path and are there for this user: those that the kernel knows of in
/// this network namespace, and those in the directories where services keep theirs.
fn sockets() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let path = |line: &str| {
        let path = line.split_whitespace().nth(7)?;
        (path.starts_with('/') && Path::new(path).exists()).then(|| PathBuf::from(path))
    };
    let mut paths: Vec<PathBuf> = table.lines().skip(1).filter_map(path).collect();
    let mut left = ENTRIES;
    for directory in ["/run", "/tmp"] {
        sockets_below(Path::new(directory), DEPTH, &mut left, &mut paths);
    }
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(SOCKETS);
    paths
}

/// How much of these directories is looked at.
const ENTRIES: usize = 10_000;
const DEPTH: usize = 4;

fn sockets_below(directory: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        match entry.file_type() {
            Ok(kind) if kind.is_socket() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 0 => {
                sockets_below(&entry.path(), depth - 1, left, found);
            }
            _ => {}
        }
    }
}
