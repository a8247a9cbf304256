//! Facts about the machine and the caller: everything that the plan depends on, read
//! once, so that the plan itself is a pure function.

mod caches;
mod earlier;
mod environments;
mod etc;
mod git;
mod guards;
mod identity;
pub(crate) mod indexes;
mod installation;
mod limits;
mod mounts;
mod place;
mod proc;
mod scripts;
mod shared;
mod toolchains;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags};
use stockade_sys::confine::Landlock;

pub use self::{
    caches::{CachePlace, Caches},
    earlier::{EarlierSessions, Environments, repository_around},
    etc::{EtcFile, EtcSecret},
    git::{Git, GitRefusal},
    guards::{Guarded, Guards},
    installation::{Installation, behind_shim, behind_shim_in},
    limits::{Limit, Resource},
    mounts::{Mounts, mounted_elsewhere},
    place::{Found, Kind, Place, is_led_from_inside, way},
    proc::Procfs,
    shared::SharedFiles,
    toolchains::Toolchains,
};
pub(crate) use self::{
    git::{Given, line_of, looks_like_repository, named_directory, named_path},
    place::{absolute, is_in},
    scripts::{ScriptsForm, ScriptsInState},
};
use self::{
    installation::Search,
    place::{directory, first_missing, look, without_links},
    toolchains::Surroundings,
};
use crate::{
    config::{Agent, Config, PathRequest, Starter},
    error::Error,
    nofollow::Names,
    plan::environment::{CERTIFICATES, USUAL_PATH},
    tables::{credentials, home, system::SYSTEM},
};

/// A place of the table of system directories that exists on this machine.
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
    pub mounts: Mounts,
    /// The kernel takes this user for the owner of its settings below `/proc`. So it does
    /// with root, also without any capability.
    pub owns_kernel_settings: bool,
    pub is_root: bool,
    pub resolv_conf: EtcFile,
    pub hosts: EtcFile,
    pub nsswitch: EtcFile,
    /// What exists of the paths that configuration and tables name.
    pub found: BTreeMap<PathBuf, Found>,
    /// Where known places of secrets, or what holds them, would be in the directories that are
    /// shown whole, but do not exist; without links on the way.
    pub reserved: Vec<PathBuf>,
    /// What was asked for whose end a link decides that the command could have made.
    pub led_from_inside: BTreeMap<PathBuf, PathBuf>,
    /// What is to be read or written and leads by a link to credentials that it does not name, with
    /// their place.
    pub led_to_credentials: BTreeMap<PathBuf, &'static str>,
    /// Of what nobody asked for, but is usually shown: what leads astray, and so is not.
    pub astray: Vec<PathBuf>,
    /// Variables for certificates that name something else, with what that is.
    pub no_certificates: Vec<(&'static str, PathBuf, &'static str)>,
    pub git: Git,
    /// What counts like the workspace, since the command may write there; of agents' state only git's part.
    pub(crate) given: Vec<Given>,
    /// What programs outside execute of the workspace, and of what is given like it.
    pub guards: Guards,
    /// Files of the workspace, and of what is given like it, that other directories have, too.
    pub shared: SharedFiles,
    /// What agents outside run of their settings as they go.
    pub(crate) scripts: Vec<ScriptsInState>,
    /// The user's settings of git that are taken over.
    pub git_settings: Vec<(String, String)>,
    /// The user's settings of package managers that name indexes, without logins.
    pub(crate) indexes: Vec<indexes::IndexFile>,
    /// How the command is installed, if it was found.
    pub installation: Option<Installation>,
    /// The same of the agent that the command may start.
    pub brought: Option<Installation>,
    /// The agent's program, if it was found only where an earlier session could have put it.
    pub doubtful: Option<PathBuf>,
    /// The directories of the caller's search path that exist: as they are named, and where they
    /// are.
    pub search_path: Vec<(PathBuf, PathBuf)>,
    /// The toolchains of the home, and those that variables name.
    pub toolchains: Toolchains,
    /// The package caches of the home, and those that variables name.
    pub caches: Caches,
    /// The caller's limit of open files. The gate raises the warden's own.
    pub open_files: Limit,
    pub landlock: Landlock,
    /// The file of this program.
    pub executable: PathBuf,
    /// The links by which the caller started it, each by the place where it lies.
    pub launched_by: Vec<PathBuf>,
    /// How else the user starts a program of Stockade: the links on the way to it, and its file.
    pub(crate) starters: Vec<(Starter, Vec<PathBuf>)>,
    /// Of these programs, those that may have another name where the command can write.
    pub(crate) hard_linked: BTreeSet<PathBuf>,
}

impl Facts {
    /// Reads the facts that a plan for this configuration needs. The workspace is the current
    /// directory unless another is named, by its path without links: a session that runs could put one
    /// there after the path was chosen.
    ///
    /// # Errors
    /// If the home directory, the current directory or the workspace is not usable.
    pub fn gather(config: &Config, workspace: Option<&Path>) -> Result<Self, Error> {
        let current_directory = fs::canonicalize(".").map_err(Error::CurrentDirectoryGone)?;
        let workspace = match workspace {
            Some(path) => without_links(path).map_err(|error| Error::WorkspaceUnusable {
                path: path.to_owned(),
                error,
            })?,
            None => current_directory.clone(),
        };
        let home = home()?;
        let environment: Vec<_> = env::vars_os().collect();
        let git = Git::find(&workspace, &home);
        let Agent {
            program,
            brought,
            is_known,
            ..
        } = &config.agent;
        let mut found: BTreeMap<_, _> = paths(config, &home.real, &environment)
            .filter_map(|path| Some((path.clone(), look(&path)?)))
            .collect();
        let real = |request: &PathRequest| Some(found.get(&request.path)?.real.clone());
        let state: Vec<PathBuf> = config.agent.state.iter().filter_map(real).collect();
        let writable: Vec<PathBuf> = (config.write.iter().filter_map(real))
            .chain(state.iter().cloned())
            .chain([workspace.clone()])
            .collect();
        let mounts = Mounts::read()?;
        let names = |path: &PathBuf| mounts.all_names(path);
        // By whatever path: what is mounted twice can be named by either.
        let reached: Vec<PathBuf> = writable.iter().flat_map(names).collect();
        let agents = agents_state(config, &home.real);
        let planted: Vec<PathBuf> = [reached.as_slice(), &agents].concat();
        let directories: Vec<PathBuf> = given_directories(config, &found).collect();
        let given = Given::find(&directories, &state, &workspace, &home, &writable);
        let trees = writable.iter().chain(&git.outside).map(PathBuf::as_path);
        let trees: Vec<&Path> = trees.collect();
        let own = Given {
            path: workspace.clone(),
            git: git.clone(),
            is_state: false,
        };
        let tops: Vec<&Given> = [&own].into_iter().chain(&given).collect();
        let guards = Guards::find(config, &tops, &trees, &home.real);
        let environments = Environments::OfProjects;
        let earlier = EarlierSessions::new(config, &home.real, environments, |name| {
            variable(&environment, name).map(OsStr::to_owned)
        });
        let led_from_inside = led_from_inside(config, &planted, &earlier, &found);
        let led_to_credentials = led_to_credentials(config, &found, &home);
        let astray = take_astray(&mut found, &home.real, &environment, &planted);
        let secrets = etc::secrets();
        let no_certificates = no_certificates(&found, &secrets, config, &home.real, &environment);
        let elsewhere = mounts.all_names(&workspace);
        let search = Search {
            path: variable(&environment, "PATH").unwrap_or(USUAL_PATH.as_ref()),
            current_directory: &current_directory,
            home: &home.real,
            workspace: &workspace,
            elsewhere: &elsewhere,
            state: &state,
            writable: &reached,
            earlier: Some(&earlier),
            is_agent: false,
        };
        let find = |program: &Option<OsString>, outside, is_agent: bool| {
            let search = Search { is_agent, ..search };
            Installation::find(program.as_deref()?, search, outside)
        };
        // Another command that runs with an agent's profile is the caller's own.
        let is_agent = *is_known && brought.is_none();
        let installation = find(program, *is_known, is_agent);
        let brought = find(brought, true, true);
        let doubtful = match &installation {
            None if is_agent => program.as_deref().and_then(|it| search.program(it, true)),
            _ => None,
        };
        let surroundings = Surroundings {
            home: &home.real,
            workspace: &workspace,
            writable: &reached,
            earlier: &earlier,
            own: &own_directories(config, &home.real),
            environment: &environment,
            names: &Names::of(home.real.clone()),
        };
        let mut toolchains = Toolchains::find(surroundings);
        let programs: Vec<_> = installation.iter().chain(&brought).collect();
        toolchains.add_environments(&programs, surroundings);
        toolchains.find_settings(&home.real, &programs);
        let caches = Caches::find(surroundings);
        let executable =
            fs::canonicalize("/proc/self/exe").map_err(|error| Error::OwnExecutable { error })?;
        let launched_by = env::args_os()
            .next()
            .and_then(|name| search.links_to(&name, &executable))
            .unwrap_or_default();
        let starters = config.starters.iter();
        let starters: Vec<_> = starters.map(|it| (it.clone(), way(&it.path))).collect();
        let ends = starters.iter().filter_map(|(_, way)| way.last());
        let hard_linked = hard_linked(ends, &writable);
        let has_store = |place: &Path, by| shared::has_store(place, by, &home.real, &environment);
        let places = tops.iter().filter(|top| !top.is_state).map(|top| &top.path);
        let shared = SharedFiles::find(places, &writable, &has_store);
        Ok(Self {
            system: SYSTEM
                .iter()
                .filter_map(|(path, reason)| system_place(Path::new(path), reason))
                .collect(),
            secrets,
            procfs: Procfs::detect()?,
            mounts,
            owns_kernel_settings: owns_kernel_settings(),
            is_root: rustix::process::geteuid().is_root(),
            resolv_conf: EtcFile::find("/etc/resolv.conf"),
            hosts: EtcFile::find("/etc/hosts"),
            nsswitch: EtcFile::find("/etc/nsswitch.conf"),
            reserved: reserved(&home.real, &found),
            found,
            led_from_inside,
            led_to_credentials,
            astray,
            no_certificates,
            git,
            given,
            indexes: indexes::find(&home.real, &environment, &planted),
            guards,
            shared,
            scripts: scripts::find(config, &home.real),
            git_settings: identity::settings(&home.real, &workspace),
            installation,
            doubtful: doubtful.map(|(found, _)| found.at),
            brought,
            search_path: search_path(&environment),
            toolchains,
            caches,
            open_files: Limit::current(Resource::OpenFiles),
            landlock: Landlock::of_this_kernel(),
            executable,
            launched_by,
            starters,
            hard_linked,
            home,
            workspace,
            current_directory,
            environment,
        })
    }

    /// A variable of the caller's.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        variable(&self.environment, name)
    }

    /// The workspace and what counts like it, but for agents' state.
    pub(crate) fn projects(&self) -> impl Iterator<Item = &Path> {
        let given = self.given.iter().filter(|given| !given.is_state);
        let given = given.map(|given| given.path.as_path());
        given.chain([self.workspace.as_path()])
    }
}

fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    environment
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_os_str())
}

fn search_path(environment: &[(OsString, OsString)]) -> Vec<(PathBuf, PathBuf)> {
    let path = variable(environment, "PATH").unwrap_or_default();
    let mut all: Vec<(PathBuf, PathBuf)> = Vec::new();
    for named in env::split_paths(path).filter(|named| named.is_absolute()) {
        if let Ok(real) = directory(&named)
            && !all.iter().any(|(known, _)| *known == named)
        {
            all.push((named, real));
        }
    }
    all
}

/// Where Stockade keeps what it trusts.
pub(crate) fn own_directories(config: &Config, home: &Path) -> Vec<PathBuf> {
    let in_home = home::OWN_DIRECTORIES.iter().map(|name| home.join(name));
    config.own.iter().cloned().chain(in_home).collect()
}

/// Every path that a plan may have to know about.
fn paths(
    config: &Config,
    home: &Path,
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = PathBuf> {
    let tables = (home::EMPTY.iter().map(|(name, _)| *name))
        .chain(home::OWN_DIRECTORIES.iter().copied())
        .map(|name| home.join(name));
    let programs = home::PROGRAMS_IN_STATE.iter();
    let programs = programs.flat_map(|(name, _)| config.places_in_state(home, name));
    let credentials = home::SCRATCH.iter().flat_map(|(directory, _)| {
        let path = home.join(directory);
        let names = Names::of(path.clone());
        let below = credentials::below_bulk(directory);
        let below = below.filter(move |below| names.may_hold_below(Path::new(below)));
        below.map(move |below| path.join(below))
    });
    let shown = shown_unasked(home).chain(certificates(environment));
    let asked_for = config.paths().map(Path::to_owned);
    tables
        .chain(programs)
        .chain(credentials)
        .chain(shown)
        .chain(asked_for)
}

/// The directories besides the workspace that the command may write, without devices.
fn given_directories(
    config: &Config,
    found: &BTreeMap<PathBuf, Found>,
) -> impl Iterator<Item = PathBuf> {
    let given = config.write.iter().chain(&config.agent.state);
    let given = given.filter_map(|request| found.get(&request.path));
    let is_directory = |found: &&Found| {
        let is_device = found.real.starts_with("/dev") && !found.real.starts_with("/dev/shm");
        found.kind == Kind::Directory && !is_device
    };
    given.filter(is_directory).map(|found| found.real.clone())
}

/// Where the known places of secrets that are missing would be, or what would hold them.
fn reserved(home: &Path, found: &BTreeMap<PathBuf, Found>) -> Vec<PathBuf> {
    let mut reserved = BTreeSet::new();
    for (name, _) in home::SCRATCH {
        let directory = home.join(name);
        let Some(shown) = found.get(&directory) else {
            continue;
        };
        let names = Names::of(directory.clone());
        // Most of them, and many share their first name.
        let mut absent = BTreeSet::new();
        for below in credentials::below_bulk(name) {
            if !names.may_hold_below(Path::new(below)) {
                absent.extend(below.split('/').next());
            } else if !found.contains_key(&directory.join(below)) {
                reserved.insert(first_missing(&shown.real, Path::new(below)));
            }
        }
        reserved.extend(absent.into_iter().map(|first| shown.real.join(first)));
    }
    reserved.into_iter().collect()
}

/// What the tables show of the home.
fn shown_unasked(home: &Path) -> impl Iterator<Item = PathBuf> {
    let first = |(name, _): &(&'static str, &'static str)| *name;
    (home::SCRATCH.iter().map(first))
        .chain(home::READABLE.iter().map(first))
        .chain(home::PROGRAMS.iter().copied())
        .chain([home::GITHUB, home::GITLAB])
        .map(|name| home.join(name))
}

/// The files that variables of the caller's name.
fn certificates(environment: &[(OsString, OsString)]) -> impl Iterator<Item = PathBuf> {
    CERTIFICATES
        .iter()
        .filter_map(|name| variable(environment, name))
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
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

fn owns_kernel_settings() -> bool {
    rustix::process::geteuid().is_root()
        || may(Path::new("/proc/sys/kernel/core_pattern"), Access::WRITE_OK)
}

/// Whether this process, as it is now, may access a file.
fn may(path: &Path, access: Access) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, access, AtFlags::EACCESS).is_ok()
}

/// Files of the user's that have several names on a disk of which the command can write a part. Nobody
/// knows where all of them are. A store links what is alike, and no session can write there.
fn hard_linked<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    writable: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let devices = writable.iter().filter_map(|it| fs::metadata(it).ok());
    let devices: BTreeSet<u64> = devices.map(|it| it.dev()).collect();
    let user = rustix::process::geteuid().as_raw();
    let is_linked = |file: &&PathBuf| {
        fs::symlink_metadata(file).is_ok_and(|it| {
            it.is_file() && it.nlink() > 1 && it.uid() == user && devices.contains(&it.dev())
        })
    };
    let files = files.filter(|file| !is_in(file, &["/nix/store", "/gnu/store"]));
    files.filter(is_linked).cloned().collect()
}

/// Where sessions of other profiles than this one's can have made links.
fn agents_state(config: &Config, home: &Path) -> Vec<PathBuf> {
    let usual = home::AGENTS_STATE.iter().map(|name| home.join(name));
    let moved = config.moved_state.iter().map(|moved| moved.at.clone());
    let real = |path: PathBuf| fs::canonicalize(path).ok();
    usual.chain(moved).filter_map(real).collect()
}

/// Requests through a link in the workspace, or in another place that the command can write; and
/// through one that leads out of a place that an earlier session could write.
fn led_from_inside(
    config: &Config,
    writable: &[PathBuf],
    earlier: &EarlierSessions,
    found: &BTreeMap<PathBuf, Found>,
) -> BTreeMap<PathBuf, PathBuf> {
    let led = |path: &PathBuf| {
        let real = &found.get(path)?.real;
        let is_led = is_led_from_inside(path, writable) || earlier.lead(path, real);
        is_led.then(|| (path.clone(), real.clone()))
    };
    let paths = config.requests().map(|request| &request.path);
    paths.filter_map(led).collect()
}

/// Requests through a link that a session of any workspace could have made, now or before.
fn led_to_credentials(
    config: &Config,
    found: &BTreeMap<PathBuf, Found>,
    home: &Place,
) -> BTreeMap<PathBuf, &'static str> {
    let requests = config.read.iter().chain(&config.write);
    let led = |PathRequest { path, .. }: &PathRequest| {
        let place = credentials::behind_link(path, found.get(path)?, home)?;
        Some((path.clone(), place))
    };
    requests.filter_map(led).collect()
}

/// Takes out what would be shown unasked, but leads where a link says that the command could
/// have made, now or in a session before: to credentials, or elsewhere by a link inside.
fn take_astray(
    found: &mut BTreeMap<PathBuf, Found>,
    home: &Path,
    environment: &[(OsString, OsString)],
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let mut astray: Vec<PathBuf> = shown_unasked(home)
        .chain(certificates(environment))
        .filter(|path| {
            found.get(path).is_some_and(|found| {
                credentials::behind(path, found, home).is_some()
                    || is_led_from_inside(path, writable)
            })
        })
        .collect();
    astray.sort();
    astray.dedup();
    found.retain(|path, _| !astray.contains(path));
    astray
}

/// What a variable names as certificates and is something else, unless it is asked for by its path
/// as well; or is hidden below `/etc`, which nobody gets back by a variable. It stays among what was
/// found, since it may have to be hidden.
fn no_certificates(
    found: &BTreeMap<PathBuf, Found>,
    secrets: &[EtcSecret],
    config: &Config,
    home: &Path,
    environment: &[(OsString, OsString)],
) -> Vec<(&'static str, PathBuf, &'static str)> {
    let refused = |name: &&'static str| {
        let path = PathBuf::from(variable(environment, name)?);
        let found = found.get(&path)?;
        let is_asked_for = config.requests().any(|request| request.path == path);
        let is_hidden = secrets.iter().any(|it| found.real.starts_with(&it.path));
        let what = match credentials::no_certificates(found, home) {
            Some(what) if !is_asked_for => what,
            _ if is_hidden => "hidden from everybody but root",
            _ => return None,
        };
        Some((*name, path, what))
    };
    CERTIFICATES.iter().filter_map(refused).collect()
}

#[cfg(test)]
pub(crate) mod tests;
