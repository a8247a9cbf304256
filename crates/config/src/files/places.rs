//! Where the files are.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{layer::LayerKind, value::Roots};

/// The paths that a configuration depends on.
#[derive(Debug, Clone)]
pub struct Places {
    pub system: PathBuf,
    /// The user's directory: `config.toml` and `projects/`.
    pub user: PathBuf,
    /// Where Stockade keeps what it writes itself: the logs, and what the user trusts.
    pub state: PathBuf,
    /// Where the shims are.
    pub data: PathBuf,
    pub home: PathBuf,
    /// Links resolved.
    pub workspace: PathBuf,
    /// Other paths of the workspace, its parts and what is mounted in it, where they are mounted
    /// again.
    pub workspace_elsewhere: Vec<PathBuf>,
    /// Where relative paths of options start.
    pub current_directory: PathBuf,
}

/// Stockade's own directory. XDG says that a relative path is ignored.
fn own(set: Option<OsString>, home: &Path, usual: &str) -> PathBuf {
    let set = set.map(PathBuf::from).filter(|path| path.is_absolute());
    set.unwrap_or_else(|| home.join(usual)).join("stockade")
}

impl Places {
    /// The usual places, by the rules of XDG. `variable` looks up the environment.
    pub fn new(home: &Path, workspace: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        Self {
            system: "/etc/stockade/config.toml".into(),
            user: own(variable("XDG_CONFIG_HOME"), home, ".config"),
            state: Self::state_of(home, &variable),
            data: own(variable("XDG_DATA_HOME"), home, ".local/share"),
            home: home.to_owned(),
            workspace: workspace.to_owned(),
            workspace_elsewhere: Vec::new(),
            current_directory: workspace.to_owned(),
        }
    }

    pub fn state_of(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
        own(variable("XDG_STATE_HOME"), home, ".local/state")
    }

    pub fn user_file(&self) -> PathBuf {
        self.user.join("config.toml")
    }

    pub fn workspace_file(&self) -> PathBuf {
        self.workspace.join(".stockade.toml")
    }

    pub fn trust(&self) -> PathBuf {
        self.state.join("trust")
    }

    /// Logins for forges that only sandboxed sessions use.
    pub fn logins(&self) -> PathBuf {
        self.state.join("logins")
    }

    pub fn projects(&self) -> PathBuf {
        self.user.join("projects")
    }

    /// A name for a file about this workspace: the last part of the path, in plain letters. The
    /// file says inside what it is about.
    pub fn project_file_name(&self, number: u32) -> String {
        let name = self.workspace.file_name().unwrap_or_default();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        };
        let name: String = name.to_string_lossy().chars().map(plain).take(64).collect();
        let name = name.trim_matches('.');
        let name = if name.is_empty() { "project" } else { name };
        match number {
            1 => format!("{name}.toml"),
            number => format!("{name}-{number}.toml"),
        }
    }

    /// The files about projects, in the order of their names.
    pub(crate) fn project_files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(self.projects()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    pub fn roots(&self) -> Roots {
        Roots {
            home: self.home.clone(),
            workspace: Some(self.workspace.clone()),
        }
    }

    /// Whose file this is, by its place; `None` if Stockade reads no file there. A
    /// `.stockade.toml` is a workspace's in any directory.
    pub fn kind_of(&self, path: &Path) -> Option<LayerKind> {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_own = path
            .file_name()
            .is_some_and(|name| name == ".stockade.toml");
        let path = real(path);
        let parent = path.parent();
        let is_toml = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        if is_own {
            Some(LayerKind::Workspace)
        } else if path == real(&self.system) {
            Some(LayerKind::System)
        } else if path == real(&self.user_file()) {
            Some(LayerKind::User)
        } else if is_toml && parent.is_some_and(|parent| parent == real(&self.projects())) {
            Some(LayerKind::Project)
        } else {
            None
        }
    }
}
