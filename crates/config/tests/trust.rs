//! `.stockade.toml` counts while it is what the user agreed to, and its loss widens nothing.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::Path,
    process::Command,
};

use stockade_config::{Loader, Trust, WorkspaceFile};

mod support;

use support::{NO_INTERNET, User, mode};

const WIDE: &str = "[network]\nallow = [\"10.0.0.1\"]\n";

/// Agrees to the file as it is.
fn agree(user: &User) {
    let loader = user.loader();
    let proposal = loader.proposal().expect("a proposal").expect("a file");
    Trust::new(&loader.places)
        .record(&proposal.record)
        .expect("recorded");
}

fn rules(user: &User) -> usize {
    user.load().effective.network.allow.len()
}

fn state(user: &User) -> WorkspaceFile {
    user.load().workspace_file
}

#[test]
fn a_file_counts_once_it_is_trusted_and_until_it_changes() {
    let user = User::new();
    assert_eq!(state(&user), WorkspaceFile::Absent);
    assert_eq!(state(&user).notice(), None);

    user.write(user.workspace_file(), WIDE);
    assert_eq!((state(&user), rules(&user)), (WorkspaceFile::Untrusted, 0));
    let notice = state(&user).notice().expect("a notice");
    assert!(
        notice.contains("not trusted") && notice.contains("`stockade trust`"),
        "{notice}"
    );

    agree(&user);
    assert_eq!((state(&user), rules(&user)), (WorkspaceFile::Trusted, 1));
    assert_eq!(state(&user).notice(), None);

    // A single blank is a change.
    user.write(user.workspace_file(), format!("{WIDE} "));
    assert_eq!((state(&user), rules(&user)), (WorkspaceFile::Changed, 0));
    assert!(
        state(&user)
            .notice()
            .expect("a notice")
            .contains("has changed")
    );

    user.write(user.workspace_file(), WIDE);
    assert_eq!(rules(&user), 1);
    assert!(Trust::new(&user.loader().places).revoke().expect("revoked"));
    assert_eq!((state(&user), rules(&user)), (WorkspaceFile::Untrusted, 0));
    assert!(
        !Trust::new(&user.loader().places)
            .revoke()
            .expect("nothing to revoke")
    );
}

#[test]
fn an_untrusted_file_is_not_even_parsed() {
    let user = User::new();
    for text in ["what is this", "lock = []", "[network]\nmode = \"x\"\n"] {
        user.write(user.workspace_file(), text);
        assert_eq!(state(&user), WorkspaceFile::Untrusted);
        user.loader()
            .proposal()
            .expect_err("it cannot be trusted either");
    }
}

#[test]
fn an_older_version_that_was_trusted_once_does_not_count_again() {
    let user = User::new();
    user.write(user.workspace_file(), WIDE);
    agree(&user);
    user.write(user.workspace_file(), "# nothing any more\n");
    agree(&user);
    assert_eq!(state(&user), WorkspaceFile::Trusted);
    user.write(user.workspace_file(), WIDE);
    assert_eq!((state(&user), rules(&user)), (WorkspaceFile::Changed, 0));
}

#[test]
fn trust_is_for_one_workspace() {
    let user = User::new();
    user.write(user.workspace_file(), WIDE);
    agree(&user);
    user.write(user.path("home/other/.stockade.toml"), WIDE);
    let mut loader = user.loader();
    loader.places.workspace = user.path("home/other");
    assert_eq!(
        loader.load().expect("loaded").workspace_file,
        WorkspaceFile::Untrusted
    );
}

#[test]
fn a_trusted_file_that_narrowed_cannot_be_got_rid_of_from_inside() {
    for narrowing in [
        NO_INTERNET,
        "[network]\nmode = \"none\"\n",
        "[files]\nhide = [\"secrets\"]\n",
        "[agent]\nhardening = \"strict\"\n",
        "[limits]\nmemory = \"1G\"\n",
    ] {
        let user = User::new();
        user.write(user.workspace_file(), narrowing);
        agree(&user);
        assert_eq!(state(&user), WorkspaceFile::Trusted);

        user.write(user.workspace_file(), WIDE);
        let refusal = user.refused();
        assert!(
            refusal.contains("has changed since you trusted it, so its restrictions"),
            "{refusal}"
        );
        assert!(refusal.contains("`stockade trust --revoke`"), "{refusal}");
        fs::remove_file(user.workspace_file()).expect("remove");
        let refusal = user.refused();
        assert!(
            refusal.contains("is gone, so its restrictions"),
            "{refusal}"
        );
        // There is nothing to look at, so nobody is told to look at it.
        assert!(refusal.contains("restore it"), "{refusal}");
        assert!(!refusal.contains("review"), "{refusal}");
        symlink("/dev/null", user.workspace_file()).expect("a link");
        assert!(user.refused().contains("cannot be used"));

        // Each way out that is named.
        fs::remove_file(user.workspace_file()).expect("remove");
        Trust::new(&user.loader().places).revoke().expect("revoked");
        user.load();
    }
    let user = User::new();
    user.write(user.workspace_file(), NO_INTERNET);
    agree(&user);
    user.write(user.workspace_file(), WIDE);
    agree(&user);
    assert_eq!(state(&user), WorkspaceFile::Trusted);
}

#[test]
fn what_others_narrow_as_well_is_not_lost() {
    let user = User::new();
    user.write(user.config(), NO_INTERNET);
    user.write(user.workspace_file(), NO_INTERNET);
    agree(&user);
    fs::remove_file(user.workspace_file()).expect("remove");
    let loaded = user.load();
    assert_eq!(loaded.workspace_file, WorkspaceFile::Gone);
    assert!(loaded.workspace_file.notice().is_some());
    assert!(!loaded.effective.network.internet.value);
}

#[test]
fn what_is_no_file_does_not_count_and_does_not_wait() {
    let user = User::new();
    symlink(
        user.path("home/.config/stockade/config.toml"),
        user.workspace_file(),
    )
    .expect("a link");
    assert!(matches!(state(&user), WorkspaceFile::Unusable(_)));
    fs::remove_file(user.workspace_file()).expect("remove");
    let status = Command::new("mkfifo")
        .arg(user.workspace_file())
        .status()
        .expect("mkfifo");
    assert!(status.success());
    assert!(matches!(state(&user), WorkspaceFile::Unusable(_)));
    fs::remove_file(user.workspace_file()).expect("remove");
    user.write(user.workspace_file(), vec![b'\n'; 1 << 20]);
    let state = state(&user);
    assert!(
        state.notice().expect("a notice").contains("larger than"),
        "{state:?}"
    );
    user.loader().proposal().expect_err("too large");
}

#[test]
fn the_record_is_the_users_own_and_a_strange_one_is_refused() {
    let user = User::new();
    user.write(user.workspace_file(), WIDE);
    agree(&user);
    let trust = Trust::new(&user.loader().places);
    let bits = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!(bits(&trust.file()), 0o600);
    assert_eq!(bits(trust.file().parent().expect("a directory")), 0o700);
    let left: Vec<_> = fs::read_dir(trust.file().parent().expect("a directory"))
        .expect("a list")
        .collect();
    assert_eq!(left.len(), 1);

    mode(trust.file(), 0o666);
    assert!(user.refused().contains("others can write"));
    mode(trust.file(), 0o600);
    assert_eq!(rules(&user), 1);
    let text = fs::read_to_string(trust.file()).expect("a record");
    for damaged in ["", "{}", "[]", &text.replace("10.0.0.1", "10.0.0.2")] {
        fs::write(trust.file(), damaged).expect("write");
        assert!(user.refused().contains("is damaged"), "{damaged}");
    }
}

#[test]
fn a_record_that_the_command_inside_could_write_is_neither_made_nor_believed() {
    let user = User::new();
    user.write(user.workspace_file(), WIDE);
    let mut loader = user.loader();
    loader.places.state = user.path("home/project/state");
    loader.proposal().expect_err("nothing to be recorded");
    let proposal = user.loader().proposal().expect("a proposal");
    let record = proposal.expect("a file").record;
    Trust::new(&loader.places)
        .record(&record)
        .expect_err("in the workspace");
    assert!(!loader.places.trust().exists());
    // Somebody inside writes it.
    fs::create_dir_all(loader.places.trust()).expect("directories");
    agree(&user);
    let made = Trust::new(&user.loader().places).file();
    let planted = Trust::new(&loader.places).file();
    fs::copy(made, &planted).expect("copy");
    mode(&planted, 0o600);
    let refusal = loader.load().expect_err("a refusal").to_string();
    assert!(refusal.contains("is in the workspace"), "{refusal}");
}

#[test]
fn a_proposal_tells_all_effects_for_every_command_and_profile() {
    let user = User::new();
    user.write(user.config(), "[network]\ninternet = false\nallow = [\"10.0.0.1\"]\n[profiles.npm.network]\npublish = [1]\n");
    user.write(
        user.path("home/.config/stockade/projects/p.toml"),
        "workspace = \"~/project\"\nagent.hardening = \"strict\"\n",
    );
    user.write(
        user.workspace_file(),
        "[network]\ninternet = true\nallow = [\"10.0.0.1\", \"10.0.0.2\"]\n\
         [agent]\nhardening = \"default\"\n\
         [devices]\nioc = [\"10.0.0.3\", \"10.0.0.4\"]\n\
         [profiles.claude.network]\nmode = \"host\"\n",
    );
    let proposal = user
        .loader()
        .proposal()
        .expect("a proposal")
        .expect("a file");
    assert!(!proposal.trusted);
    let told: Vec<_> = proposal
        .effects
        .iter()
        .map(|effect| {
            let keys = effect
                .differences
                .iter()
                .map(|difference| difference.key.to_string());
            (
                effect.profile.clone(),
                keys.collect::<Vec<_>>().join(" "),
                effect.idle.join(" | "),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                None,
                "network.internet network.allow devices".to_owned(),
                "network.allow \"10.0.0.1\" (line 3) | agent.hardening \"default\" (line 5)"
                    .to_owned(),
            ),
            (
                Some("claude".to_owned()),
                "network.mode network.internet network.allow devices".to_owned(),
                String::new(),
            ),
        ]
    );
    agree(&user);
    assert!(
        user.loader()
            .proposal()
            .expect("a proposal")
            .expect("a file")
            .trusted
    );
}

#[test]
fn a_project_that_was_moved_away_and_linked_back_keeps_what_it_narrowed() {
    let user = User::new();
    user.write(user.workspace_file(), NO_INTERNET);
    agree(&user);
    let (project, moved) = (user.path("home/project"), user.path("home/elsewhere"));
    fs::rename(&project, &moved).expect("rename");
    // Moved by the user, without a link: another project.
    let there = || {
        let mut loader = user.loader();
        loader.places.workspace = moved.clone();
        loader
    };
    let loaded = there().load().expect("loaded");
    assert_eq!(loaded.workspace_file, WorkspaceFile::Untrusted);

    symlink(&moved, &project).expect("a link");
    let refusal = there().load().expect_err("a refusal").to_string();
    assert!(refusal.contains("was moved away from"), "{refusal}");
    assert!(
        refusal.contains("restrictions of network.internet"),
        "{refusal}"
    );
    // Also if the file is gone, or another one was trusted there once.
    fs::rename(moved.join(".stockade.toml"), moved.join("kept")).expect("rename");
    there().load().expect_err("a refusal");
    fs::rename(moved.join("kept"), moved.join(".stockade.toml")).expect("rename");

    // Each way out that is named.
    let trust = Trust::new(&there().places);
    let proposal = there().proposal().expect("a file").expect("a proposal");
    trust.record(&proposal.record).expect("recorded");
    let loaded = there().load().expect("loaded");
    assert_eq!(loaded.workspace_file, WorkspaceFile::Trusted);
    assert!(!loaded.effective.network.internet.value);
    assert!(trust.revoke().expect("revoked"));
    assert!(!trust.revoke().expect("nothing is left"));
    there().load().expect("loaded");
}

#[test]
fn a_project_keeps_what_it_narrowed_whatever_bytes_are_in_its_path() {
    for name in [&b"cafe"[..], b"caf\xe9", b"caf\xef\xbf\xbd"] {
        let user = User::new();
        let at = |path: &Path| {
            let mut loader = user.loader();
            loader.places.workspace = path.to_owned();
            loader
        };
        let project = user.path("home/top").join(OsStr::from_bytes(name));
        let moved = user.path("home/top").join("elsewhere");
        user.write(project.join(".stockade.toml"), NO_INTERNET);
        let proposal = at(&project)
            .proposal()
            .expect("a file")
            .expect("a proposal");
        let trust = Trust::new(&at(&project).places);
        trust.record(&proposal.record).expect("recorded");
        let loaded = at(&project).load().expect("loaded");
        assert_eq!(loaded.workspace_file, WorkspaceFile::Trusted);
        fs::rename(&project, &moved).expect("rename");
        symlink(&moved, &project).expect("a link");
        let refusal = at(&moved).load().expect_err("a refusal").to_string();
        assert!(refusal.contains("was moved away from"), "{refusal}");
    }
}

/// A project in a directory that a session has, configured by a file of the user's or a trusted one.
fn in_a_wide_directory(by_project_file: bool) -> User {
    let user = User::new();
    let cafe = user.path("home/top/cafe");
    if by_project_file {
        fs::create_dir_all(&cafe).expect("directories");
        let text = format!("workspace = \"~/top/cafe\"\n{NO_INTERNET}");
        user.write(user.path("home/.config/stockade/projects/cafe.toml"), text);
    } else {
        user.write(cafe.join(".stockade.toml"), NO_INTERNET);
        let loader = in_shell(&user, "top/cafe", "top/cafe");
        let proposal = loader.proposal().expect("a file").expect("a proposal");
        let trust = Trust::new(&loader.places);
        trust.record(&proposal.record).expect("recorded");
    }
    user
}

/// A shell that believes to be in one directory of the home, and is in the other.
fn in_shell(user: &User, believed: &str, real: &str) -> Loader {
    let mut loader = user.loader();
    loader.places.workspace = user.home().join(real);
    loader.places.current_directory = user.home().join(real);
    let believed = user.home().join(believed);
    loader.environment.insert("PWD".into(), believed.into());
    loader
}

#[test]
fn a_project_that_was_moved_from_under_a_shell_keeps_what_it_narrowed() {
    for by_project_file in [true, false] {
        let user = in_a_wide_directory(by_project_file);
        let load = |believed: &str, real: &str| in_shell(&user, believed, real).load();
        let here = load("top/cafe", "top/cafe").expect("loaded");
        assert!(!here.effective.network.internet.value);
        symlink(user.home().join("top"), user.path("home").join("link")).expect("a link");
        load("link/cafe", "top/cafe").expect("the same directory");

        let rename = |from: &str, to: &str| {
            fs::rename(user.home().join(from), user.home().join(to)).expect("rename");
        };
        rename("top/cafe", "top/elsewhere");
        fs::create_dir_all(user.home().join("top/elsewhere/sub")).expect("directories");
        fs::create_dir_all(user.home().join("other")).expect("directories");
        let refused = |believed: &str, real: &str| {
            let refusal = load(believed, real).expect_err("a refusal").to_string();
            assert!(refusal.contains("would be lost"), "{refusal}");
            assert!(refusal.contains("move it back"), "{refusal}");
            assert!(refusal.contains("`cd /"), "{refusal}");
            refusal
        };
        let refusal = refused("top/cafe", "top/elsewhere");
        if by_project_file {
            assert!(
                refusal.contains("restrictions of network.internet"),
                "{refusal}"
            );
        }
        refused("link/cafe", "top/elsewhere");
        refused("top/cafe/sub", "top/elsewhere/sub");
        // Nobody agreed to a new directory in its place, or to a link there that leads astray.
        fs::create_dir(user.home().join("top/cafe")).expect("a directory");
        refused("top/cafe", "top/elsewhere");
        fs::remove_dir(user.home().join("top/cafe")).expect("removed");
        symlink(user.home().join("other"), user.home().join("top/cafe")).expect("a link");
        refused("top/cafe", "top/elsewhere");
        refused("link/cafe", "top/elsewhere");
        fs::remove_file(user.home().join("top/cafe")).expect("removed");

        // The ways out: each that is named, and what narrows as much.
        load("top/elsewhere", "top/elsewhere").expect("loaded");
        user.write(user.config(), NO_INTERNET);
        if by_project_file {
            load("top/cafe", "top/elsewhere").expect("nothing is lost");
        }
        fs::remove_file(user.config()).expect("removed");
        // No session could move it there, and nothing is configured where this shell was.
        load("top/cafe", "other").expect("loaded");
        load("top/plain", "top/elsewhere").expect("loaded");
        rename("top/elsewhere", "top/cafe");
        load("top/cafe", "top/cafe").expect("loaded");
    }
}

#[test]
fn a_repository_in_a_configured_directory_takes_nothing_from_it() {
    for by_project_file in [true, false] {
        let user = in_a_wide_directory(by_project_file);
        user.write(user.config(), "workspace = \"repository\"\n");
        let workspace = |path: &str| {
            let path = user.home().join(path);
            fs::create_dir_all(&path).expect("directories");
            let mut loader = user.loader();
            loader.places.workspace = path;
            let workspace = loader.places.default_workspace();
            let below = workspace.strip_prefix(user.home()).expect("below the home");
            below.to_string_lossy().into_owned()
        };
        let git = |path: &str| fs::create_dir_all(user.home().join(path).join(".git"));
        // What a session in it can make, and what one around it can make and remove.
        for planted in [None, Some("top/cafe"), Some("top/cafe/sub"), Some("top")] {
            planted.map(git).transpose().expect("directories");
            assert_eq!(workspace("top/cafe"), "top/cafe", "{planted:?}");
            assert_eq!(workspace("top/cafe/sub/deep"), "top/cafe", "{planted:?}");
        }
        fs::remove_dir(user.home().join("top/cafe/.git")).expect("removed");
        assert_eq!(workspace("top/cafe/sub/deep"), "top/cafe");
        // Elsewhere it is the repository, or the directory, as without any file.
        assert_eq!(workspace("top/other/deep"), "top");
        assert_eq!(workspace("plain/deep"), "plain/deep");
        git("plain").expect("directories");
        assert_eq!(workspace("plain/deep"), "plain");
        // A file about the inner repository counts there.
        let inner = format!("workspace = \"~/top/cafe/sub\"\n{NO_INTERNET}");
        user.write(user.path("home/.config/stockade/projects/sub.toml"), inner);
        assert_eq!(workspace("top/cafe/sub/deep"), "top/cafe/sub");
        // A project that was moved and linked back is still one, but a link widens no workspace.
        let (cafe, moved) = (
            user.path("home/top/cafe"),
            user.path("home/top").join("moved"),
        );
        git("top/cafe").expect("directories");
        fs::rename(&cafe, &moved).expect("rename");
        symlink(&moved, &cafe).expect("a link");
        assert_eq!(workspace("top/moved/new/deep"), "top/moved");
        git("code/repository").expect("directories");
        fs::remove_file(&cafe).expect("removed");
        symlink(user.path("home/code"), &cafe).expect("a link");
        assert_eq!(workspace("code/repository/deep"), "code/repository");
        // A directory that holds the home is no workspace, whatever a file says.
        let home = format!("workspace = \"~\"\n{NO_INTERNET}");
        user.write(user.path("home/.config/stockade/projects/home.toml"), home);
        assert_eq!(workspace("unknown/deep"), "unknown/deep");
    }
}
