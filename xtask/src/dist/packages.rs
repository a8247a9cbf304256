//! The packages: one tree of files, packed three times.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{Arch, Dependencies, Release, output, run_command};

const SUMMARY: &str = "sandbox for coding agents";
const DESCRIPTION: &str = include_str!("../../../packaging/description");

pub(super) fn pack(
    release: &Release,
    arch: Arch,
    program: &Path,
    speaking: &Path,
    dependencies: &Dependencies,
) -> Result<()> {
    let work = release.root.join("target/dist").join(arch.name());
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("emptying {}", work.display()))?;
    }
    let (version, arch_name) = (&release.version, arch.name());
    let name = format!("stockade-{version}-{arch_name}-linux");
    let tree = work.join(&name);
    let bill = dependencies.bill(release)?;
    put(&release.out().join(format!("{name}.cdx.json")), &bill)?;

    copy(program, &tree.join("bin/stockade"))?;
    let documents = tree.join("share/doc/stockade");
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&release.root.join(licence), &documents.join(licence))?;
    }
    copy(
        &release.root.join("packaging/copyright"),
        &documents.join("copyright"),
    )?;
    copy(
        &release.root.join("CHANGELOG.md"),
        &documents.join("changelog"),
    )?;
    copy(
        &dependencies.standard_library(),
        &documents.join("rust-library.html"),
    )?;
    put(
        &documents.join("licences-of-libraries"),
        &dependencies.licences(release)?,
    )?;
    put(&documents.join("commit"), &format!("{}\n", release.commit))?;
    put(&documents.join("stockade.cdx.json"), &bill)?;
    for (shell, place) in [
        ("bash", "bash-completion/completions/stockade"),
        ("zsh", "zsh/site-functions/_stockade"),
        ("fish", "fish/vendor_completions.d/stockade.fish"),
    ] {
        let script = output(Command::new(speaking).args(["completions", shell]))?;
        put(&tree.join("share").join(place), &format!("{script}\n"))?;
    }
    let pages = tree.join("share/man/man1");
    run_command(
        Command::new(speaking)
            .args(["man", "--directory"])
            .arg(&pages),
    )?;
    let compress = "gzip -9n share/man/man1/* share/doc/stockade/changelog \
        share/doc/stockade/licences-of-libraries share/doc/stockade/rust-library.html \
        share/doc/stockade/stockade.cdx.json && chmod -R u=rwX,go=rX .";
    run_shell(&tree, compress)?;

    tar_gz(release, &work, &name, &format!("{name}.tar.gz"))?;
    deb(release, arch, &work, &tree)?;
    rpm(release, arch, &work, &tree)
}

/// The devcontainer feature with the programs beside it, in one file whose address a devcontainer.json can name.
pub(super) fn feature(release: &Release) -> Result<()> {
    let work = release.root.join("target/dist/feature");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("emptying {}", work.display()))?;
    }
    let source = release.root.join("devcontainer/stockade");
    for name in ["devcontainer-feature.json", "install.sh"] {
        copy(&source.join(name), &work.join(name))?;
    }
    for entry in fs::read_dir(release.out()).context("reading dist/")? {
        let path = entry.context("reading dist/")?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().ends_with("-linux.tar.gz") {
            copy(&path, &work.join(name))?;
        }
    }
    run_shell(&work, "chmod 644 ./* && chmod 755 . install.sh")?;
    tar_gz(release, &work, ".", "devcontainer-feature-stockade.tgz")
}

/// Packs a file or directory of `work` into a file of dist/.
fn tar_gz(release: &Release, work: &Path, member: &str, file: &str) -> Result<()> {
    let archive = release.out().join("archive.tar");
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--format=ustar",
        "--numeric-owner",
    ]);
    tar.args([
        "--owner=0",
        "--group=0",
        &format!("--mtime=@{}", release.epoch),
    ]);
    tar.arg("--directory").arg(work).arg("--file").arg(&archive);
    run_command(tar.arg(member))?;
    run_command(Command::new("gzip").arg("-9n").arg(&archive))?;
    fs::rename(
        release.out().join("archive.tar.gz"),
        release.out().join(file),
    )
    .with_context(|| format!("naming {file}"))
}

fn deb(release: &Release, arch: Arch, work: &Path, tree: &Path) -> Result<()> {
    let (version, architecture) = (release.package_version(), arch.in_debian());
    let root = work.join("deb");
    lay_out(tree, &root)?;
    let zsh = root.join("usr/share/zsh");
    fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))?;
    // In KiB, of the files alone: the size of a directory depends on the file system.
    let sum =
        "find usr -type f -printf '%s\\n' | awk '{ sum += $1 } END { print int(sum / 1024) + 1 }'";
    let size = output(Command::new("sh").current_dir(&root).args(["-euc", sum]))?;
    let control = format!(
        "Package: stockade\nVersion: {version}\nArchitecture: {architecture}\nInstalled-Size: {size}\n\
        Maintainer: The Stockade developers <stockade@invalid>\nSection: utils\nPriority: optional\n\
        Depends: bubblewrap (>= 0.8)\nDescription: {SUMMARY}\n {}\n",
        DESCRIPTION.trim_end().replace('\n', "\n ")
    );
    put(&root.join("DEBIAN/control"), &control)?;
    for (script, name) in [
        ("after-install.sh", "postinst"),
        ("before-removal.sh", "prerm"),
    ] {
        let place = root.join("DEBIAN").join(name);
        copy(&release.root.join("packaging").join(script), &place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    }
    let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums
        chmod -R u=rwX,go=rX .";
    run_shell(&root, sums)?;
    let file = format!("stockade_{version}_{architecture}.deb");
    run_command(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
            .args([root, release.out().join(file)])
            .env("SOURCE_DATE_EPOCH", &release.epoch)
            .stdout(std::process::Stdio::null()),
    )
}

fn rpm(release: &Release, arch: Arch, work: &Path, tree: &Path) -> Result<()> {
    let staged = work.join("rpm-files");
    lay_out(tree, &staged)?;
    let packaging = release.root.join("packaging");
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args([
        "-bb",
        "--quiet",
        "--target",
        &format!("{}-linux", arch.name()),
    ]);
    for (name, value) in [
        ("package_version", release.package_version()),
        ("about", SUMMARY.to_owned()),
        ("packaging", packaging.display().to_string()),
        ("staged", staged.display().to_string()),
        ("_topdir", work.join("rpm").display().to_string()),
        ("_rpmdir", release.out().display().to_string()),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    rpmbuild.env("SOURCE_DATE_EPOCH", &release.epoch);
    run_command(rpmbuild.arg(packaging.join("stockade.spec")))
}

/// The files as a package of the system has them.
fn lay_out(tree: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("making {}", root.display()))?;
    run_command(Command::new("cp").arg("-a").args([tree, &root.join("usr")]))
}

fn run_shell(directory: &Path, line: &str) -> Result<()> {
    run_command(
        Command::new("sh")
            .current_dir(directory)
            .args(["-euc", line]),
    )
}

fn put(path: &Path, text: &str) -> Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    Ok(())
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a path without a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_file_has_its_script_and_the_programs_at_the_top() {
        let root = std::env::temp_dir().join(format!("stockade-feature-{}", std::process::id()));
        let release = Release {
            root: root.clone(),
            version: "1.2.3".to_owned(),
            commit: String::new(),
            epoch: "1".to_owned(),
            cargo_home: root.clone(),
        };
        let real = crate::bench::repository().join("devcontainer/stockade");
        for name in ["devcontainer-feature.json", "install.sh"] {
            let there = root.join("devcontainer/stockade").join(name);
            copy(&real.join(name), &there).expect("a file");
        }
        for name in [
            "stockade-1.2.3-x86_64-linux.tar.gz",
            "stockade_1.2.3_amd64.deb",
        ] {
            put(&release.out().join(name), "a package").expect("a file");
        }
        feature(&release).expect("the feature");
        let file = release.out().join("devcontainer-feature-stockade.tgz");
        let listed = output(Command::new("tar").arg("-tzvf").arg(file)).expect("a list");
        let members: Vec<_> = listed
            .lines()
            .filter_map(|line| Some((line.get(..10)?, line.split(' ').next_back()?)))
            .collect();
        assert_eq!(
            members,
            [
                ("drwxr-xr-x", "./"),
                ("-rw-r--r--", "./devcontainer-feature.json"),
                ("-rwxr-xr-x", "./install.sh"),
                ("-rw-r--r--", "./stockade-1.2.3-x86_64-linux.tar.gz"),
            ]
        );
        fs::remove_dir_all(root).expect("the end");
    }
}
