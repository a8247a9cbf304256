//! Links on the way to what git reads: to what settings name, and to objects.

use super::*;

const LINK: &str = "is new: git takes settings and hooks from where it leads";

/// The link that is new goes, wherever it is on the way, and nothing behind it is touched.
#[test]
fn a_new_link_on_the_way_to_what_settings_name_is_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    workspace.write(
        ".git/config",
        "[core]\n\thooksPath = .husky/a/_\n\tattributesFile = info/attributes
         [include]\n\tpath = ../conf/a/b/git.inc\n",
    );
    // One of the user's own is as it was, and is followed.
    fs::create_dir_all(path("real")).unwrap();
    symlink("real", path("conf")).unwrap();
    let found = workspace.found(|| {
        workspace.write("h/_/post-checkout", "evil");
        workspace.write("i/attributes", "*.bin diff=x");
        workspace.write("c/b/git.inc", "[core]\n\tfsmonitor = evil\n");
        fs::create_dir(path(".husky")).unwrap();
        symlink("../h", path(".husky/a")).unwrap();
        symlink("i", path("info")).unwrap();
        symlink("../c", path("real/a")).unwrap();
    });
    let mut put_back: Vec<_> = found.iter().filter(|it| it.contains("put back")).collect();
    put_back.sort();
    let expected = [".husky/a", "info", "real/a"].map(|it| format!("put back: {it:?} {LINK}"));
    assert_eq!(put_back, expected.iter().collect::<Vec<_>>(), "{found:?}");
    assert!(path("h/_/post-checkout").exists() && path("c/b/git.inc").exists());
    assert_eq!(fs::read_link(path("conf")).unwrap(), Path::new("real"));

    // It is not the session's to change either.
    fs::remove_dir_all(path(".husky")).unwrap();
    let found = workspace.found(|| {
        fs::remove_file(path("conf")).unwrap();
        symlink("c", path("conf")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read_link(path("conf")).unwrap(), Path::new("real"));
    let found = workspace.found(|| workspace.write("real/a/b/git.inc", "[core]\n\tpager = x\n"));
    assert!(found.iter().all(|it| it.contains("put back")), "{found:?}");
    assert!(!path("real/a/b/git.inc").exists(), "{found:?}");
}

/// What a list that was there names has objects of the user's: links in it go, and the list stays.
#[test]
fn links_among_objects_that_a_list_of_the_users_names_are_put_back() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    fs::create_dir_all(path("shared/pack")).unwrap();
    fs::create_dir_all(path("shared/aa")).unwrap();
    symlink("/etc", path("shared/mine")).unwrap();
    symlink("shared", path("way")).unwrap();
    workspace.write(".git/objects/info/alternates", "../../way\n");
    let links = ["shared/pack/a.pack", "shared/aa/bb", "shared/info"];
    let mut found = workspace.found(|| {
        for link in links {
            symlink("/etc/hostname", path(link)).unwrap();
        }
    });
    found.sort();
    let mut expected = links.map(|it| format!("put back: {it:?} {LINK}"));
    expected.sort();
    assert_eq!(found, expected);
    assert!(path(".git/objects/info/alternates").exists());
    assert_eq!(
        fs::read_link(path("shared/mine")).unwrap(),
        Path::new("/etc")
    );

    // The way there, and a list behind the list.
    let found = workspace.found(|| {
        fs::remove_file(path("way")).unwrap();
        symlink("/etc", path("way")).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read_link(path("way")).unwrap(), Path::new("shared"));
    let found = workspace.found(|| workspace.write("shared/info/alternates", "/etc\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!path("shared/info/alternates").exists());

    // A list of the session's own goes with links in what it names, which stay: they are the user's.
    let own = ".git/objects/info/alternates";
    fs::remove_file(path(own)).unwrap();
    let found = workspace.found(|| workspace.write(own, "../../shared\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!path(own).exists());
    assert_eq!(
        fs::read_link(path("shared/mine")).unwrap(),
        Path::new("/etc")
    );
    fs::remove_file(path("shared/mine")).unwrap();
    let found = workspace.found(|| workspace.write(own, "../../shared\n"));
    assert_eq!(found, [""; 0]);
}

/// What was among the objects before is the user's.
#[test]
fn pipes_and_links_among_single_objects_are_put_back_if_they_are_new() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let pipe = |below: &str| {
        rustix::fs::mkfifoat(rustix::fs::CWD, path(below), rustix::fs::Mode::RWXU).unwrap();
    };
    workspace.write(".git/objects/aa/object", "");
    symlink("/etc/hostname", path(".git/objects/aa/old")).unwrap();
    // The clock of file systems is coarse.
    std::thread::sleep(Duration::from_millis(50));
    let mut found = workspace.found(|| {
        symlink("/etc/hostname", path(".git/objects/aa/new")).unwrap();
        pipe(".git/objects/aa/pipe");
        fs::create_dir(path(".git/objects/pack")).unwrap();
        pipe(".git/objects/pack/pipe");
    });
    found.sort();
    assert_eq!(found.len(), 3, "{found:?}");
    let left: Vec<_> = fs::read_dir(path(".git/objects/aa")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
