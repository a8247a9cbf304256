//! `cargo xtask dist`: the files of a release.
//!
//! For each architecture there is one static program, and it is packed three times: tar.gz, .deb
//! and .rpm. Two builds of one commit give the same bytes, wherever they are made with the same
//! compiler: all times are the commit's, paths are cut from the program, and the linker is the one
//! that comes with the compiler.

mod dependencies;
mod packages;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::bench::repository;
use dependencies::Dependencies;

/// Build the files of a release into dist/
#[derive(Args)]
#[command(
    long_about = "Builds static programs, and packs each as tar.gz, .deb and .rpm, with a bill of \
        materials (CycloneDX) and checksums, into dist/."
)]
pub(crate) struct Arguments {
    /// Build for this architecture only
    #[arg(long)]
    arch: Vec<Arch>,

    /// Build everything again in another directory, and compare the bytes
    #[arg(long)]
    check: bool,

    /// Install the packages in a root of their own, use, and remove them (needs root or sudo)
    #[arg(long = "try")]
    try_out: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Arch {
    /// As the kernel, Rust and rpm call it.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    fn in_debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// What is built, and from which source.
struct Release {
    root: PathBuf,
    version: String,
    commit: String,
    /// When the commit was made, in seconds since 1970.
    epoch: String,
    cargo_home: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match dist(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask dist: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dist(arguments: &Arguments) -> Result<()> {
    let architectures = match arguments.arch.as_slice() {
        [] => Arch::value_variants(),
        named => named,
    };
    install_targets(architectures)?;
    install_programs(&PACKERS)?;
    let release = Release::here()?;
    release.build(architectures)?;
    print!("{}", release.checksums()?);
    if arguments.check {
        release.compare(architectures)?;
    }
    if arguments.try_out {
        run_command(&mut Command::new(
            release.root.join("scripts/try-packages.sh"),
        ))?;
    }
    Ok(())
}

/// Builds the program of a release alone.
pub(crate) fn program(arch: Arch) -> Result<PathBuf> {
    install_targets(&[arch])?;
    Release::here()?.compile(arch)
}

/// Installs the compiler's libraries, if they are missing.
fn install_targets(architectures: &[Arch]) -> Result<()> {
    for target in architectures.iter().map(|arch| arch.target()) {
        let libraries =
            output(Command::new("rustc").args(["--print=target-libdir", "--target", &target]))?;
        if !Path::new(&libraries).exists() {
            run_command(Command::new("rustup").args(["target", "add", &target]))?;
        }
    }
    Ok(())
}

/// The programs that pack, each with its package.
const PACKERS: [(&str, &str); 3] = [
    ("dpkg-deb", "dpkg"),
    ("rpmbuild", "rpm"),
    ("xz", "xz-utils"),
];

/// Installs the packages of programs that are missing.
pub(crate) fn install_programs(programs: &[(&str, &str)]) -> Result<()> {
    let find = r#"PATH=$PATH:/usr/sbin:/sbin; command -v "$1" >/dev/null"#;
    let is_missing = |program: &str| {
        let found = Command::new("sh")
            .args(["-c", find, "sh", program])
            .status();
        !found.is_ok_and(|status| status.success())
    };
    let missing = programs.iter().filter(|(program, _)| is_missing(program));
    let missing: Vec<_> = missing.map(|(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = ". scripts/packages.sh && install_packages \"$@\"";
    run_command(
        Command::new("sh")
            .current_dir(repository())
            .args(["-euc", install, "sh"])
            .args(missing),
    )
}

impl Release {
    fn here() -> Result<Self> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        Self::of(&repository(), home.context("HOME is not set")?)
    }

    fn of(root: &Path, cargo_home: PathBuf) -> Result<Self> {
        let git =
            |arguments: &[&str]| output(Command::new("git").current_dir(root).args(arguments));
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        let manifest: toml::Table = toml::from_str(&manifest).context("Cargo.toml")?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        Ok(Self {
            root: root.to_owned(),
            version: version.context("Cargo.toml names no version")?.to_owned(),
            commit: git(&[
                "describe",
                "--always",
                "--abbrev=40",
                "--exclude=*",
                "--dirty",
            ])?,
            epoch: git(&["show", "--no-patch", "--format=%ct"])?,
            cargo_home,
        })
    }

    fn out(&self) -> PathBuf {
        self.root.join("dist")
    }

    /// As dpkg and rpm write it, so that 1.0.0-rc.1 is before 1.0.0.
    fn package_version(&self) -> String {
        self.version.replace('-', "~")
    }

    fn build(&self, architectures: &[Arch]) -> Result<()> {
        if self.out().exists() {
            fs::remove_dir_all(self.out()).context("emptying dist/")?;
        }
        fs::create_dir(self.out()).context("making dist/")?;
        // Pages and completions come from the program, which only this machine's can be asked for.
        let own = Arch::from_str(env::consts::ARCH, false)
            .map_err(|_| anyhow::anyhow!("cannot build a release on {}", env::consts::ARCH))?;
        let speaking = self.compile(own)?;
        for arch in architectures {
            let program = self.compile(*arch)?;
            let dependencies = Dependencies::find(self, *arch)?;
            packages::pack(self, *arch, &program, &speaking, &dependencies)?;
        }
        packages::feature(self)?;
        let sum = "LC_ALL=C; sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS";
        run_command(
            Command::new("sh")
                .current_dir(self.out())
                .args(["-euc", sum]),
        )
    }

    fn compile(&self, arch: Arch) -> Result<PathBuf> {
        let remap = |from: &Path, to| format!("--remap-path-prefix={}={to}", from.display());
        let flags = [
            remap(&self.root, "/stockade"),
            remap(&self.cargo_home, "/cargo"),
            "-Clinker=rust-lld".to_owned(),
        ];
        let target = arch.target();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&self.root);
        cargo.args(["build", "--release", "--locked", "--package=stockade"]);
        cargo.args(["--target", &target, "--target-dir=target"]);
        cargo.env("CARGO_HOME", &self.cargo_home);
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        cargo.env("SOURCE_DATE_EPOCH", &self.epoch);
        run_command(&mut cargo)?;
        Ok(self
            .root
            .join("target")
            .join(target)
            .join("release/stockade"))
    }

    fn checksums(&self) -> Result<String> {
        fs::read_to_string(self.out().join("SHA256SUMS")).context("reading SHA256SUMS")
    }

    /// Builds the commit again, with other paths, and compares.
    fn compare(&self, architectures: &[Arch]) -> Result<()> {
        let commit = &self.commit;
        ensure!(
            !commit.ends_with("-dirty"),
            "--check builds the last commit again, but there are changes that are not in it; commit first"
        );
        let elsewhere = env::temp_dir().join(format!("stockade-dist-{}", std::process::id()));
        let copy = elsewhere.join("some/other/place");
        let clone = ["clone", "--quiet", "--no-tags", "--"];
        run_command(Command::new("git").args(clone).args([&self.root, &copy]))?;
        let home = elsewhere.join("cargo");
        fs::create_dir(&home).context("making another CARGO_HOME")?;
        std::os::unix::fs::symlink(self.cargo_home.join("registry"), home.join("registry"))?;
        let second = Self::of(&copy, home)?;
        let built = second
            .build(architectures)
            .and_then(|()| second.checksums());
        let removed = fs::remove_dir_all(&elsewhere);
        let (first, second) = (self.checksums()?, built?);
        removed.with_context(|| format!("removing {}", elsewhere.display()))?;
        ensure!(
            first == second,
            "two builds of {commit} differ.\nhere:\n{first}in {}:\n{second}",
            copy.display()
        );
        println!(
            "built twice, in {} and {}: the same bytes",
            self.root.display(),
            copy.display()
        );
        Ok(())
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| started(command))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {stderr}");
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| started(command))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

fn started(command: &Command) -> String {
    format!("cannot start {}", OsStr::display(command.get_program()))
}
