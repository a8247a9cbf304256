//! The stages behind the outer process. Each either becomes the next one or
//! ends the process; none returns to libtest.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, exit};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::process::{Pid, WaitOptions, setsid, wait};

use super::{Inside, Login, OUTSIDE_NETNS, PROGRAMS, STAGE};
use crate::builder::Builder;
use crate::error::{Doing, Result};
use crate::fs::shared;
use crate::guard::NetnsId;
use crate::tool;

/// Nobody's uid on any distribution: above the range of real users, below the
/// ranges for containers.
const ORDINARY_UID: &str = "61000";

pub(super) enum Stage {
    Outside,
    Drop,
    Init,
    World(Inside),
}

#[derive(Clone, Copy)]
pub(super) enum Session {
    /// A session without a terminal: no test can touch the developer's.
    New,
    /// That of the caller, for an interactive shell.
    Callers,
}

pub(super) fn current() -> Stage {
    match env::var(STAGE).as_deref() {
        Ok("drop") => Stage::Drop,
        Ok("init") => Stage::Init,
        Ok("world") => Stage::World(Inside {
            outside: NetnsId::named(env::var_os(OUTSIDE_NETNS).unwrap_or_default()),
            programs: env::var_os(PROGRAMS),
        }),
        _ => Stage::Outside,
    }
}

/// The first step from the outside: straight into the namespaces, or by way
/// of the drop stage when there is root to give up.
pub(super) fn first(builder: &Builder, arguments: &[OsString]) -> Result<Command> {
    let executable = env::current_exe().doing("find the running executable")?;
    let outside = NetnsId::current().doing("read the network namespace")?;
    let mut command;
    if builder.login == Login::Dev && is_root_over(ORDINARY_UID) {
        command = Command::new(tool::find("unshare")?);
        command
            .args(["--mount", "--propagation=private", "--"])
            .arg(executable)
            .args(arguments)
            .env(STAGE, "drop");
    } else {
        command = Command::new(tool::find("setpriv")?);
        command.args(["--pdeathsig=KILL", "--"]);
        add_unshare(&mut command, builder.login, &executable, arguments)?;
    }
    command.env(OUTSIDE_NETNS, outside.name());
    Ok(command)
}

/// Root that can become an ordinary user. In a container with a single mapped
/// id there is no other user to become, and none is needed.
fn is_root_over(uid: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return false;
    }
    let (Ok(map), Ok(uid)) = (fs::read_to_string("/proc/self/uid_map"), uid.parse::<u64>()) else {
        return false;
    };
    map.lines().any(|line| {
        let fields: Vec<u64> = line
            .split_whitespace()
            .filter_map(|field| field.parse().ok())
            .collect();
        matches!(fields[..], [first, _, count] if (first..first + count).contains(&uid))
    })
}

fn add_unshare(
    command: &mut Command,
    login: Login,
    executable: &Path,
    arguments: &[OsString],
) -> Result<()> {
    let (user, group) = match login {
        Login::Dev => ("--map-user=1000", "--map-group=1000"),
        Login::Root => ("--map-user=0", "--map-group=0"),
    };
    command
        .arg(tool::find("unshare")?)
        .args(["--user", user, group, "--keep-caps"])
        .args([
            "--net",
            "--ipc",
            "--uts",
            "--mount",
            "--propagation=private",
        ])
        .args(["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"])
        .arg(executable)
        .args(arguments)
        .env(STAGE, "init");
    Ok(())
}

/// Stage "drop", as root in a private mount namespace. The repository may lie
/// where no other user can look (below `/root`), so the executables are bound
/// to a place of their own before root is given up.
pub(super) fn drop_root(builder: &Builder) -> ! {
    let Err(error) = try_drop_root(builder);
    fail(&error)
}

fn try_drop_root(builder: &Builder) -> Result<Infallible> {
    let bin = Path::new("/run/world/bin");
    let executable = bin.join("world-itself");
    mount("world", "/run", "tmpfs", MountFlags::NOSUID, c"mode=0755").doing("mount /run")?;
    fs::create_dir_all(bin).doing("make /run/world/bin")?;
    for directory in [Path::new("/run/world"), bin] {
        // Whatever the umask: the ordinary user has to look inside.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
            .doing("open /run/world for everybody")?;
    }
    bind_program(Path::new("/proc/self/exe"), &executable)?;
    for (name, path) in &builder.programs {
        bind_program(path, &bin.join(name))?;
    }
    for (number, (_, source)) in builder.directories.iter().enumerate() {
        bind_directory(source, &shared(number))?;
    }
    share_tunnel_device()?;

    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let id = OsStr::new(ORDINARY_UID);
    let mut command = Command::new(tool::find("setpriv")?);
    command
        .args([OsStr::new("--reuid"), id, OsStr::new("--regid"), id])
        // After the change of uid, which would clear it.
        .args(["--clear-groups", "--pdeathsig=KILL", "--"])
        .env(PROGRAMS, bin);
    add_unshare(&mut command, builder.login, &executable, &arguments)?;
    Err(command.exec()).doing("become an ordinary user")
}

/// Desktops let every user open the tunnel device; some servers and virtual
/// machines keep it for root. In this mount namespace, and only here, it is as
/// on a desktop.
fn share_tunnel_device() -> Result<()> {
    let (device, shared) = (Path::new("/dev/net/tun"), Path::new("/run/world/tun"));
    let Ok(found) = fs::metadata(device) else {
        return Ok(());
    };
    let make = || {
        mknodat(
            CWD,
            shared,
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            found.rdev(),
        )?;
        fs::set_permissions(shared, fs::Permissions::from_mode(0o666))?;
        Ok::<_, std::io::Error>(mount_bind(shared, device)?)
    };
    make().doing("let the ordinary user open /dev/net/tun")
}

pub(crate) fn bind_program(from: &Path, to: &Path) -> Result<()> {
    fs::write(to, "").doing(format_args!("make {}", to.display()))?;
    let from: PathBuf = fs::canonicalize(from).doing(format_args!("find {}", from.display()))?;
    mount_bind(&from, to).doing(format_args!("bind {} to {}", from.display(), to.display()))
}

fn bind_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).doing(format_args!("make {}", to.display()))?;
    for directory in to.ancestors().take(2) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
            .doing("open the shared directories for everybody")?;
    }
    mount_bind(from, to).doing(format_args!("bind {} to {}", from.display(), to.display()))
}

/// Stage "init", pid 1 of the world: starts the body and reaps whatever is
/// orphaned until the body ends. The kernel kills the rest.
pub(super) fn init(session: Session) -> ! {
    if let Session::New = session
        && let Err(errno) = setsid()
    {
        eprintln!("world: cannot leave the caller's session: {errno}");
    }
    let child = match start_body() {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        Err(error) => fail(&error),
    };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => {
                let code = status
                    .exit_status()
                    .or_else(|| status.terminating_signal().map(|signal| 128 + signal));
                leave(code.unwrap_or(1));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                eprintln!("world: lost the body: {errno}");
                leave(1);
            }
        }
    }
}

/// Descriptors that the caller's shell or terminal left open would reach the
/// product and every test of what it inherits. Closing a number that nobody
/// owns takes unsafe code in Rust, and one line in a shell (bash: `sh` may know
/// one-digit descriptors only).
const WITHOUT_STRAY_DESCRIPTORS: &str = r#"
for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi
done
exec "$@""#;

fn start_body() -> Result<Child> {
    let executable = env::current_exe().doing("find the running executable")?;
    Command::new(tool::find("bash")?)
        .args(["-c", WITHOUT_STRAY_DESCRIPTORS, "world"])
        .arg(executable)
        .args(env::args_os().skip(1))
        .env(STAGE, "world")
        .spawn()
        .doing("start the body of the world")
}

fn fail(error: &crate::Error) -> ! {
    eprintln!("world: {error}");
    leave(1)
}

#[expect(
    clippy::exit,
    reason = "a stage is a process of its own inside libtest's, and its exit code is its result"
)]
pub(super) fn leave(code: i32) -> ! {
    exit(code)
}
