//! Facts that tests of plans start from.

use super::*;

#[test]
fn a_workspace_that_does_not_exist_is_refused() {
    let facts = Facts::gather(&Config::default(), Some(Path::new("/no/such/workspace")));
    assert!(matches!(facts, Err(Error::WorkspaceUnusable { .. })));
}

fn etc_file(path: &str) -> EtcFile {
    EtcFile {
        real: path.into(),
        exists: true,
        text: String::new(),
    }
}

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
        mounts: Mounts::default(),
        owns_kernel_settings: false,
        is_root: false,
        resolv_conf: etc_file("/etc/resolv.conf"),
        hosts: etc_file("/etc/hosts"),
        nsswitch: etc_file("/etc/nsswitch.conf"),
        found: BTreeMap::new(),
        reserved: Vec::new(),
        led_from_inside: BTreeMap::new(),
        led_to_credentials: BTreeMap::new(),
        astray: Vec::new(),
        no_certificates: Vec::new(),
        git: Git::default(),
        given: Vec::new(),
        guards: Guards::default(),
        shared: SharedFiles::default(),
        scripts: Vec::new(),
        git_settings: Vec::new(),
        indexes: Vec::new(),
        installation: None,
        doubtful: None,
        brought: None,
        search_path: Vec::new(),
        toolchains: Toolchains::default(),
        caches: Caches::default(),
        open_files: Limit {
            resource: Resource::OpenFiles,
            soft: Some(1024),
            hard: Some(4096),
        },
        landlock: Landlock::Version(6),
        executable: "/usr/local/bin/stockade".into(),
        launched_by: Vec::new(),
        starters: Vec::new(),
        hard_linked: BTreeSet::new(),
    }
}

/// As if these paths, each without links, existed.
pub(crate) fn with(mut facts: Facts, paths: &[(&str, Kind)]) -> Facts {
    for (path, kind) in paths {
        let path = PathBuf::from(path);
        let found = Found {
            at: path.clone(),
            real: path.clone(),
            kind: *kind,
        };
        facts.found.insert(path, found);
    }
    facts
}
