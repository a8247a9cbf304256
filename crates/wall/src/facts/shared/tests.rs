use std::ffi::OsString;

use super::{places::MOST_DIRECTORIES, *};

fn find(workspace: &Path) -> SharedFiles {
    let all = [fs::canonicalize(workspace).unwrap()];
    SharedFiles::find(all.iter(), &all, &|_, _| false)
}

#[test]
fn links_are_found_where_tools_make_them() {
    let place = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::write(&original, "").unwrap();
    for name in [
        ".venv/lib/x",
        "node_modules/a",
        "packages/web/node_modules/b",
        "packages/web/.venv",
        "a/b/c/node_modules",
        "src",
        ".git/objects/aa",
    ] {
        fs::create_dir_all(place.path().join(name)).unwrap();
    }
    fs::write(place.path().join(".venv/lib/x/own"), "").unwrap();
    std::os::unix::fs::symlink(cache.path(), place.path().join("venv")).unwrap();
    fs::write(cache.path().join("file"), "").unwrap();
    fs::hard_link(cache.path().join("file"), cache.path().join("linked")).unwrap();
    assert_eq!(find(place.path()), SharedFiles::default());
    for name in [
        "src/linked",
        "node_modules/a/linked",
        "packages/web/node_modules/b/linked",
        "a/b/c/node_modules/too-deep",
        ".git/objects/aa/linked",
    ] {
        fs::hard_link(&original, place.path().join(name)).unwrap();
    }
    let mut found = find(place.path());
    found.dependencies.sort();
    let expected = SharedFiles {
        dependencies: vec![
            place.path().join("node_modules"),
            place.path().join("packages/web/node_modules"),
        ],
        objects: vec![place.path().join(".git/objects")],
        ..SharedFiles::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn links_are_found_among_many_packages() {
    let place = tempfile::tempdir().unwrap();
    let packages = place.path().join(".venv/lib/python3.12/site-packages");
    for number in 0..300 {
        let package = packages.join(format!("package{number}"));
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("one"), "").unwrap();
        fs::hard_link(package.join("one"), package.join("two")).unwrap();
    }
    let found = find(place.path()).dependencies;
    assert_eq!(found, [place.path().join(".venv")]);
}

/// As a session can prepare it before the user installs.
#[test]
fn what_a_session_fills_a_directory_with_hides_no_link_if_there_is_a_store() {
    let place = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(place.path()).unwrap();
    let (workspace, store) = (home.join("project"), home.join(".cache/uv"));
    let packages = workspace.join(".venv/lib/python3.12/site-packages");
    let web = workspace.join("web/.venv");
    for directory in [&packages, &web] {
        fs::create_dir_all(directory).unwrap();
    }
    for directory in packages.ancestors().take(4) {
        for number in 0..4 {
            let padding = directory.join(format!("padding{number}"));
            fs::create_dir(&padding).unwrap();
            for file in 0..=SHORT.entries {
                fs::write(padding.join(file.to_string()), "").unwrap();
            }
        }
    }
    for number in 0..2 * MOST_DIRECTORIES {
        fs::create_dir_all(workspace.join(format!("padding{number}"))).unwrap();
    }
    let look = |environment: &[(OsString, OsString)]| {
        let has_store = |place: &Path, by| has_store(place, by, &home, environment);
        let all = [workspace.clone()];
        let mut found = SharedFiles::find(all.iter(), &all, &has_store).dependencies;
        found.sort();
        found
    };
    fs::create_dir_all(&store).unwrap();
    // Positive control: without a link nothing is shared.
    assert_eq!(look(&[]), [""; 0].map(PathBuf::from));
    for at in [packages.join("linked"), web.join("linked")] {
        fs::write(store.join("file"), "").unwrap();
        fs::hard_link(store.join("file"), at).unwrap();
    }
    assert_eq!(look(&[]), [workspace.join(".venv"), web.clone()]);
    // Another place of the store.
    fs::rename(&store, home.join("elsewhere")).unwrap();
    let named = ("UV_CACHE_DIR".into(), home.join("elsewhere").into());
    assert_eq!(look(&[named]), [workspace.join(".venv"), web]);
}

/// A workspace, a store, and what is found in the workspace.
struct Linked {
    _place: tempfile::TempDir,
    home: PathBuf,
}

impl Linked {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(place.path()).unwrap();
        for name in ["project", ".cache/uv", ".local/share/pnpm/store"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::write(home.join(".cache/uv/file"), "").unwrap();
        Self {
            _place: place,
            home,
        }
    }

    fn at(&self, below: &str) -> PathBuf {
        let path = self.home.join("project").join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// As a package manager does.
    fn install(&self, below: &str) {
        fs::hard_link(self.home.join(".cache/uv/file"), self.at(below)).unwrap();
    }

    fn link(&self, to: &str, below: &str) {
        std::os::unix::fs::symlink(to, self.at(below)).unwrap();
    }

    fn find(&self) -> SharedFiles {
        let all = [self.home.join("project")];
        let has_store = |place: &Path, by| has_store(place, by, &self.home, &[]);
        SharedFiles::find(all.iter(), &all, &has_store)
    }

    /// Those that become overlays, by their names in the workspace.
    fn found(&self) -> Vec<String> {
        let found = self.find();
        assert_eq!(found.unseen, [""; 0].map(PathBuf::from));
        assert_eq!(found.astray, [""; 0].map(PathBuf::from));
        let names = found.dependencies.iter().map(|path| {
            let below = path.strip_prefix(self.home.join("project")).unwrap();
            below.to_str().unwrap().to_owned()
        });
        names.collect()
    }
}

/// A session chooses the name of what a link leads to, and fills it.
#[test]
fn the_name_of_what_a_link_leads_to_hides_no_store() {
    const UV: &str = ".cache/uv";
    const PNPM: &str = ".local/share/pnpm/store";
    for (link, real, store, other) in [
        (".venv", "x/node_modules", UV, PNPM),
        ("node_modules", "x/venv", PNPM, UV),
        (".pixi", "x", UV, PNPM),
        (".hidden", "x/node_modules", UV, PNPM),
    ] {
        let place = Linked::new();
        let real = match link {
            ".pixi" => "x/envs",
            _ => real,
        };
        fs::create_dir_all(place.at(real).join("a")).unwrap();
        fs::write(place.at(real).join("pyvenv.cfg"), "").unwrap();
        for number in 0..2 * SHORT.entries {
            fs::create_dir_all(place.at(real).join("fill").join(number.to_string())).unwrap();
        }
        place.link(real.strip_suffix("/envs").unwrap_or(real), link);
        // Positive control: without a shared file, nothing is.
        assert_eq!(place.found(), [""; 0], "{link}");
        place.install(&format!("{real}/a/file"));
        fs::rename(place.home.join(other), place.home.join("elsewhere")).unwrap();
        assert!(place.home.join(store).exists());
        assert_eq!(place.found(), [real], "{link}");
    }
}

/// As a session can prepare it before the user installs.
#[test]
fn links_that_a_session_made_hide_no_shared_file() {
    // Links, where files are installed through them, and what holds those.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: [Case<'_>; 9] = [
        (&[(".v", ".venv")], ".v/lib/a.py", ".v/lib"),
        (&[("../.v/lib", ".venv/lib")], ".v/lib/a.py", ".v/lib"),
        (&[("../../.v", ".venv/lib/x")], ".v/y/a.py", ".v/y"),
        (
            &[("../.v", ".venv/lib"), ("../.w", ".v/python")],
            ".w/a.py",
            ".w",
        ),
        (
            &[("../.v", ".venv/a"), ("a/../.w", ".venv/lib")],
            ".w/x/a.py",
            ".w/x",
        ),
        (&[("../.p", "node_modules/.pnpm")], ".p/a/a.js", ".p/a"),
        (&[(".", ".venv")], "lib/python/a.py", "lib/python"),
        (&[(".web", "web")], ".web/.venv/a.py", ".web/.venv"),
        (
            &[("../.v", ".venv/lib")],
            ".v/node_modules/a.js",
            ".v/node_modules",
        ),
    ];
    for (links, file, expected) in cases {
        let place = Linked::new();
        fs::create_dir_all(place.at(file).parent().unwrap()).unwrap();
        for (to, below) in links {
            place.link(to, below);
        }
        // Positive control: without a shared file, nothing is.
        fs::write(place.at(".v/own"), "").unwrap();
        assert_eq!(place.found(), [""; 0], "{links:?}");
        place.install(file);
        assert_eq!(place.found(), [expected], "{links:?}");
        // What is found at once does not end the look.
        if fs::symlink_metadata(place.at(".venv")).is_ok_and(|it| it.is_dir()) {
            place.install(".venv/a.py");
            let mut both = [".venv", expected];
            both.sort_unstable();
            assert_eq!(place.found(), both, "{links:?}");
        }
    }
}

/// Tools make links, too, and the user's own files are not to be lost.
#[test]
fn links_that_tools_make_share_no_more_than_there_is() {
    let place = Linked::new();
    // uv and pip.
    place.link("lib", ".venv/lib64");
    place.link("/usr/bin/python3", ".venv/bin/python3");
    place.link("python3", ".venv/bin/python");
    place.install(".venv/lib/python3/site-packages/a.py");
    // pnpm, with packages of a workspace, of which one is built with hard links.
    place.install("node_modules/.pnpm/a@1/node_modules/a/index.js");
    place.link(".pnpm/a@1/node_modules/a", "node_modules/a");
    place.link("../../packages/web", "node_modules/@own/web");
    place.link(
        "../../../packages/native",
        "packages/web/node_modules/native",
    );
    place.link("../../..", "packages/web/node_modules/all");
    place.install("packages/native/node_modules/b/index.js");
    fs::create_dir_all(place.at("packages/native/target/debug/deps")).unwrap();
    fs::write(place.at("packages/native/target/debug/x"), "").unwrap();
    fs::hard_link(
        place.at("packages/native/target/debug/x"),
        place.at("packages/native/target/debug/deps/x"),
    )
    .unwrap();
    // As it is told to.
    fs::write(place.at("packages/web/index.js"), "").unwrap();
    fs::hard_link(
        place.at("packages/web/index.js"),
        place.at("node_modules/.pnpm/web/index.js"),
    )
    .unwrap();
    let expected = [".venv", "node_modules", "packages/native/node_modules"];
    assert_eq!(place.found(), expected);
    assert_eq!(place.find().objects, [""; 0].map(PathBuf::from));
}

/// conda, tox, direnv and people call environments as they like.
#[test]
fn environments_are_known_by_their_marks_and_by_their_tools() {
    let place = Linked::new();
    let (pyvenv, conda) = ("pyvenv.cfg", "conda-meta/history");
    // A directory, its mark, and what becomes an overlay.
    let cases = [
        ("env", conda, "env"),
        ("a/b/env", conda, "a/b/env"),
        ("a/custom", pyvenv, "a/custom"),
        (".env", pyvenv, ".env"),
        ("a/.e", conda, "a/.e"),
        (".conda", conda, ".conda"),
        (".direnv/python-3.12", pyvenv, ".direnv"),
        (".hatch/x", pyvenv, ".hatch"),
        (".nox/tests", pyvenv, ".nox"),
        (".pixi/envs/default", conda, ".pixi/envs"),
        (".tox/py312", pyvenv, ".tox"),
        ("a/.tox/py312", "none", "a/.tox"),
        ("__pypackages__/3.12", "none", "__pypackages__"),
        (".pnpm-store", "none", ".pnpm-store"),
    ];
    for (environment, mark, _) in cases {
        let mark = place.at(&format!("{environment}/{mark}"));
        fs::create_dir_all(mark.parent().unwrap()).unwrap();
        fs::write(mark, "").unwrap();
    }
    // Positive control: without a shared file, nothing is, and what has no mark is the user's own.
    place.install("a/b/src/lib/a.py");
    place.install("a/b/c/too-deep/pyvenv.cfg");
    assert_eq!(place.found(), [""; 0]);
    for (environment, _, expected) in cases {
        let file = format!("{environment}/lib/a.py");
        place.install(&file);
        assert_eq!(place.found(), [expected], "{environment}");
        fs::remove_file(place.at(&file)).unwrap();
    }
    // Links of these names lead there, too.
    place.install(".v/lib/a.py");
    for link in [".tox", ".pixi/envs", "a/environment"] {
        let at = place.at(link);
        let _ = fs::remove_dir_all(&at);
        std::os::unix::fs::symlink(place.at(".v"), &at).unwrap();
        fs::write(place.at(".v/pyvenv.cfg"), "").unwrap();
        assert_eq!(place.found(), [".v"], "{link}");
        fs::remove_file(at).unwrap();
        fs::remove_file(place.at(".v/pyvenv.cfg")).unwrap();
    }
}

/// Nobody can work where changes are discarded.
#[test]
fn an_environment_that_is_a_project_is_shared_in_parts() {
    let place = Linked::new();
    place.install("app/lib/python3/a.py");
    place.install("lib/b.py");
    for name in ["app/pyvenv.cfg", "app/pyproject.toml", "app/src.py"] {
        fs::write(place.at(name), "").unwrap();
    }
    assert_eq!(place.found(), ["app/lib/python3"]);
    fs::write(place.at("pyvenv.cfg"), "").unwrap();
    assert_eq!(place.found(), ["app/lib/python3", "lib"]);
}

#[test]
fn the_stores_of_conda_count_for_its_environments() {
    let place = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(place.path()).unwrap();
    for name in ["p/.venv", "p/env", "p/node_modules", "e/conda-meta"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    let have_store = |environment: &[(&str, &str)]| {
        let environment: Vec<(OsString, OsString)> = environment
            .iter()
            .map(|(name, value)| {
                (
                    name.into(),
                    value.replace('~', home.to_str().unwrap()).into(),
                )
            })
            .collect();
        let names = ["p/.venv", "p/env", "p/node_modules", "p", "e"];
        names.map(|name| has_store(&home.join(name), By::Name, &home, &environment))
    };
    // A machine of the tests' may have conda for all users.
    if have_store(&[]) != [false; 5] {
        return;
    }
    let condas = [false, true, false, true, true];
    for store in [
        ".conda/pkgs",
        "miniconda3/pkgs",
        "anaconda3/pkgs",
        "miniforge3/pkgs",
        "mambaforge/pkgs",
        "micromamba/pkgs",
        ".cache/rattler",
    ] {
        fs::create_dir_all(home.join(store)).unwrap();
        assert_eq!(have_store(&[]), condas, "{store}");
        let first = store.split('/').next().unwrap();
        fs::remove_dir_all(home.join(first)).unwrap();
        assert_eq!(have_store(&[]), [false; 5]);
    }
    fs::create_dir_all(home.join("else/pkgs")).unwrap();
    for variable in [
        ("CONDA_PKGS_DIRS", "/nowhere,~/else/pkgs"),
        ("CONDA_EXE", "~/else/bin/conda"),
        ("MAMBA_ROOT_PREFIX", "~/else"),
        ("RATTLER_CACHE_DIR", "~/else"),
    ] {
        assert_eq!(have_store(&[variable]), condas, "{variable:?}");
    }
    // conda makes environments of this name, too.
    fs::create_dir(home.join("p/.venv/conda-meta")).unwrap();
    assert!(have_store(&[("MAMBA_ROOT_PREFIX", "~/else")])[0]);
}

/// `/proc/self/cwd` is the workspace for who installs there.
#[test]
fn links_that_lead_elsewhere_for_each_process_do_not_lead_nowhere() {
    for (to, below) in [
        ("/proc/self/cwd/.v", ".venv"),
        ("/proc/thread-self/root/home", "web"),
        ("/proc/self/cwd/.v", ".venv/lib"),
        ("/proc/self/cwd/loop", ".venv/lib"),
        ("/dev/fd/987/x", ".venv/lib/y"),
        ("/proc/4194303/cwd/.v", ".venv/lib"),
        ("../way/.v", ".venv/lib"),
    ] {
        let place = Linked::new();
        place.link("loop", "loop");
        // Positive control: such links lead nowhere, to a file, or to the same place for all.
        place.link("/dev/stdout", "log");
        place.link("/proc/self/exe", ".venv/python");
        place.link("loop", ".venv/loop");
        place.link("../none", ".venv/none");
        place.link("/proc/mounts", ".venv/mounts");
        place.link("/proc/self/fd", ".venv/fd");
        place.install(".v/lib/a.py");
        assert_eq!(place.found(), [""; 0]);
        let is_way = to.starts_with("../way");
        if is_way {
            place.link("/proc/self/cwd", "way");
        }
        if below == ".venv" {
            fs::remove_dir_all(place.at(".venv")).unwrap();
        }
        place.link(to, below);
        let mut astray = place.find().astray;
        astray.sort();
        let mut expected = vec![place.at(below)];
        expected.extend(is_way.then(|| place.at("way")));
        assert_eq!(astray, expected, "{to}");
    }
}

#[test]
fn what_there_is_no_time_for_is_shared_and_told() {
    let place = tempfile::tempdir().unwrap();
    let workspace = fs::canonicalize(place.path()).unwrap();
    let (own, behind) = (workspace.join(".venv"), workspace.join("behind"));
    for directory in [&own, &behind] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("file"), "").unwrap();
    }
    std::os::unix::fs::symlink(&behind, own.join("lib")).unwrap();
    let all = [workspace.clone()];
    let late = Instant::now();
    let nothing = SharedFiles::find(all.iter(), &all, &|_, _| true);
    assert_eq!(nothing, SharedFiles::default());
    for has_store in [false, true] {
        let found = SharedFiles::find_until(late, all.iter(), &all, &|_, _| has_store);
        // Without a store, hardly anything is linked.
        assert_eq!(found.dependencies.contains(&own), has_store);
        // There may be others deeper.
        assert!(found.unseen.contains(&workspace), "{found:?}");
    }
}
