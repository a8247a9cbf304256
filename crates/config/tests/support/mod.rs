//! A user with a home and a project, in a directory that goes away.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use stockade_config::{Loaded, Loader, Places};
use tempfile::TempDir;

pub(crate) struct User {
    directory: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let user = Self { directory };
        for path in ["home/.config/stockade/projects", "home/project", "etc"] {
            fs::create_dir_all(user.path(path)).expect("directories");
        }
        user
    }

    /// A path below the directory, without links.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.directory.path())
            .expect("the directory")
            .join(path)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("home/.config/stockade/config.toml")
    }

    pub(crate) fn workspace_file(&self) -> PathBuf {
        self.path("home/project/.stockade.toml")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
        let path = path.as_ref();
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, contents).expect("a file");
        mode(path, 0o600);
    }

    pub(crate) fn loader(&self) -> Loader {
        let mut places = Places::new(&self.home(), &self.path("home/project"), |_| None);
        places.system = self.path("etc/config.toml");
        Loader::new(places)
    }

    #[track_caller]
    pub(crate) fn load(&self) -> Loaded {
        self.loader()
            .load()
            .unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// What is said when nothing can be loaded, with this directory as `/D`.
    #[track_caller]
    pub(crate) fn refused(&self) -> String {
        let problems = self.loader().load().expect_err("a refusal").to_string();
        problems.replace(&*self.path("").to_string_lossy(), "/D/")
    }
}

pub(crate) fn mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

pub(crate) const NO_INTERNET: &str = "[network]\ninternet = false\n";
