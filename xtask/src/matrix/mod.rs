//! `cargo xtask matrix`: the product on other machines, which are emulated on this one.
//!
//! ```text
//!  images.sh   kernels and roots of Debian's releases, once; kept below target/matrix
//!  init.sh     in a guest: mounts the root, unpacks what the row adds, starts systemd
//!  guest.sh    in a guest: doctor, verify and sessions of an ordinary user; results on the console
//!  rows.rs     the machines, and what is expected of each
//! ```
//! A guest has no network but what its script makes, and its disk is never changed.

mod rows;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Mutex,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::rows::{Architecture, Expected, ROWS, Row};
use crate::{bench::repository, dist, sections::replaced};

const DOCUMENT: &str = "docs/portability.md";
const TOOLS: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("mmdebstrap", "mmdebstrap"),
    ("mkfs.ext4", "e2fsprogs"),
    ("depmod", "kmod"),
    ("cpio", "cpio"),
    ("apt-config", "apt"),
];
/// The root of a guest with another architecture is built by its own programs.
const TOOLS_ARM64: [(&str, &str); 3] = [
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("qemu-aarch64-static", "qemu-user-static"),
    ("arch-test", "arch-test"),
];
/// Guests at a time. Each has one processor: with more, the emulator runs code that the kernel of the guest is
/// just patching.
const AT_A_TIME: usize = 2;
/// Seconds after which a guest is given up.
const PATIENCE: &str = "300";

/// Try the product on other kernels and machines, which are emulated
#[derive(Args)]
#[command(
    long_about = "Boots Debian's kernels in an emulator, with and without what sessions need, and runs doctor, \
        verify and a session there as an ordinary user. Prints a table, and fails if a row is not as expected. \
        The first run installs what it needs, and builds images, as root, with mmdebstrap."
)]
pub(crate) struct Arguments {
    /// Only rows whose name contains this
    filter: Option<String>,

    /// Use this binary of the product instead of building the one that is shipped
    #[arg(long, value_name = "PATH")]
    product: Option<PathBuf>,

    /// The same for arm64
    #[arg(long, value_name = "PATH")]
    product_arm64: Option<PathBuf>,

    /// Also put the table into docs/portability.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match try_all(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask matrix: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_all(arguments: &Arguments) -> Result<bool> {
    let wanted = |row: &&Row| match &arguments.filter {
        Some(filter) => row.name.contains(filter.as_str()),
        None => true,
    };
    let rows: Vec<&Row> = ROWS.iter().filter(wanted).collect();
    ensure!(!rows.is_empty(), "no row has that in its name");
    ensure!(
        !arguments.write || rows.len() == ROWS.len(),
        "--write needs all rows: leave out the filter"
    );
    let has_arm64 = rows
        .iter()
        .any(|row| row.architecture == Architecture::Arm64);
    dist::install_programs(&TOOLS)?;
    if has_arm64 {
        dist::install_programs(&TOOLS_ARM64)?;
    }
    let products = Products::of(arguments, &rows)?;
    let images = Images::of(&rows)?;
    let begin = Instant::now();
    let outcomes = boot_all(&rows, &images, &products);
    let table = table(&rows, &outcomes);
    print!("{table}");
    eprintln!("{} guests in {} s", rows.len(), begin.elapsed().as_secs());
    let mut all = true;
    for (row, outcome) in rows.iter().zip(&outcomes) {
        if let Err(error) = outcome
            .as_ref()
            .map_err(|error| format!("{error:#}"))
            .and_then(|it| it.judge(row))
        {
            let log = images.log(row);
            eprintln!(
                "{}: not as expected: {error}; see {}",
                row.name,
                log.display()
            );
            all = false;
        }
    }
    if arguments.write {
        let path = repository().join(DOCUMENT);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
        let markers = ["begin", "end"]
            .map(|word| format!("<!-- cargo xtask matrix --write: machines: {word} -->"));
        let text = replaced(&text, &markers, &format!("\n{table}"));
        fs::write(
            &path,
            text.with_context(|| format!("{DOCUMENT} has lost its markers"))?,
        )?;
    }
    Ok(all)
}

/// The binaries that are tried, by what rows need.
struct Products {
    amd64: Option<PathBuf>,
    arm64: Option<PathBuf>,
}

impl Products {
    fn of(arguments: &Arguments, rows: &[&Row]) -> Result<Self> {
        let find = |architecture: Architecture, given: &Option<PathBuf>| {
            if !rows.iter().any(|row| row.architecture == architecture) {
                return Ok(None);
            }
            let program = match given {
                Some(program) => program.clone(),
                None => dist::program(architecture.shipped())?,
            };
            anyhow::Ok(Some(program))
        };
        Ok(Self {
            amd64: find(Architecture::Amd64, &arguments.product)?,
            arm64: find(Architecture::Arm64, &arguments.product_arm64)?,
        })
    }

    fn for_row(&self, row: &Row) -> Result<&Path> {
        let product = match row.architecture {
            Architecture::Amd64 => &self.amd64,
            Architecture::Arm64 => &self.arm64,
        };
        product
            .as_deref()
            .context("no binary for this architecture")
    }
}

/// Where kernels, disks and logs are.
struct Images(PathBuf);

impl Images {
    /// Builds those that these rows need and that are not there yet.
    fn of(rows: &[&Row]) -> Result<Self> {
        let images = Self(repository().join("target/matrix"));
        fs::create_dir_all(&images.0)?;
        fs::write(images.0.join("images.sh"), include_str!("images.sh"))?;
        fs::write(images.0.join("init.sh"), include_str!("init.sh"))?;
        let mut kernels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Also those of rows that are not wanted now: a disk is built once.
        for row in ROWS
            .iter()
            .filter(|row| rows.iter().any(|it| it.disk() == row.disk()))
        {
            let list = kernels.entry(row.disk()).or_default();
            if !list.contains(&row.kernel()) {
                images.build(&format!(
                    "kernel {} {}",
                    row.kernel,
                    row.architecture.name()
                ))?;
                images.build(&format!("root {} {}", row.root, row.architecture.name()))?;
                images.build(&format!("initrd {} {}", row.kernel(), row.disk()))?;
                list.push(row.kernel());
            }
        }
        for (disk, kernels) in kernels {
            images.build(&format!("disk {disk} {}", kernels.join(" ")))?;
        }
        Ok(images)
    }

    fn build(&self, what: &str) -> Result<()> {
        let root = if rustix::process::geteuid().is_root() {
            ""
        } else {
            "sudo "
        };
        let line =
            format!("PATH=$PATH:/usr/sbin:/sbin {root}sh images.sh {what} > images.log 2>&1");
        let status = shell(&line).current_dir(&self.0).status()?;
        if !status.success() {
            let log = fs::read_to_string(self.0.join("images.log")).unwrap_or_default();
            bail!("images.sh {what} failed:\n{log}");
        }
        Ok(())
    }

    fn log(&self, row: &Row) -> PathBuf {
        self.0.join(format!("{}.log", row.file_name()))
    }

    /// What the row adds to the root, as a disk that is an archive.
    fn archive(&self, row: &Row, product: &Path) -> Result<PathBuf> {
        let tree = self.0.join(format!("{}.tree", row.file_name()));
        let archive = self.0.join(format!("{}.tar", row.file_name()));
        // One that a run left behind.
        let _ = fs::remove_dir_all(&tree);
        let (own, units) = (tree.join("opt/matrix"), tree.join("etc/systemd/system"));
        fs::create_dir_all(&own)?;
        fs::create_dir_all(units.join("multi-user.target.wants"))?;
        fs::copy(product, own.join("stockade")).context("cannot copy the product")?;
        fs::write(own.join("guest.sh"), include_str!("guest.sh"))?;
        for program in ["stockade", "guest.sh"] {
            fs::set_permissions(own.join(program), fs::Permissions::from_mode(0o755))?;
        }
        fs::write(
            own.join("row"),
            format!("without='{}'\n{}", row.without, row.script),
        )?;
        fs::write(units.join("matrix.service"), SERVICE)?;
        symlink(
            "../matrix.service",
            units.join("multi-user.target.wants/matrix.service"),
        )?;
        let status = Command::new("tar")
            .args(["--owner=0", "--group=0", "-cf"])
            .arg(&archive)
            .arg("-C")
            .arg(&tree)
            .args(["opt", "etc"])
            .status()?;
        ensure!(status.success(), "tar failed");
        fs::remove_dir_all(&tree)?;
        Ok(archive)
    }

    fn boot(&self, row: &Row, product: &Path) -> Result<Results> {
        let drive = |path: &Path, mode: &str| {
            format!("-drive file={},format=raw,if=virtio,{mode}", path.display())
        };
        let Self(here) = self;
        let (kernel, console) = (here.join(row.kernel()), row.architecture.console());
        let arguments = [
            format!("timeout {PATIENCE} {}", row.architecture.emulator()),
            "-accel tcg,thread=multi -smp 1 -m 1500 -nographic -no-reboot -net none".to_owned(),
            format!("-kernel {}/vmlinuz -initrd {0}.initrd", kernel.display()),
            drive(&here.join(format!("{}.ext4", row.disk())), "snapshot=on"),
            drive(&self.archive(row, product)?, "readonly=on"),
        ];
        let boot = format!("console={console} quiet panic=-1 {KERNEL} {}", row.boot);
        let line = format!("exec {} -append \"$0\"", arguments.join(" "));
        let output = shell(&line).arg(&boot).stderr(Stdio::piped()).output()?;
        fs::write(self.log(row), [&output.stdout[..], &output.stderr].concat())?;
        Ok(Results::of(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// What no row needs, and what takes long.
const KERNEL: &str = "systemd.mask=serial-getty@ttyS0.service systemd.mask=serial-getty@ttyAMA0.service \
    systemd.mask=apt-daily.timer systemd.mask=systemd-networkd.service systemd.mask=netavark-dhcp-proxy.socket";

const SERVICE: &str = "[Unit]\nAfter=systemd-user-sessions.service dbus.service apparmor.service\n\
    [Service]\nType=oneshot\nExecStart=/opt/matrix/guest.sh\n";

impl Row {
    fn kernel(&self) -> String {
        format!("kernel-{}-{}", self.kernel, self.architecture.name())
    }

    fn disk(&self) -> String {
        format!("root-{}-{}", self.root, self.architecture.name())
    }

    fn file_name(&self) -> String {
        self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }
}

fn boot_all(rows: &[&Row], images: &Images, products: &Products) -> Vec<Result<Results>> {
    let next = Mutex::new(rows.iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().map_or(None, |mut next| next.next());
                    let Some((index, row)) = taken else {
                        return;
                    };
                    let outcome = products
                        .for_row(row)
                        .and_then(|product| images.boot(row, product));
                    eprintln!("{}: done", row.name);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, outcome));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// What a guest said: results by name, and the messages of its session.
#[derive(Default)]
struct Results {
    values: BTreeMap<String, String>,
    messages: Vec<String>,
}

impl Results {
    fn of(console: &str) -> Self {
        let mut results = Self::default();
        for line in console.lines() {
            if let Some((_, result)) = line.split_once("matrix: ") {
                let (name, value) = result.split_once(' ').unwrap_or((result, ""));
                results
                    .values
                    .insert(name.trim().to_owned(), value.trim().to_owned());
            } else if let Some((_, message)) = line.split_once("run: stockade: ") {
                results.messages.push(message.trim().to_owned());
            }
        }
        results
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("–", String::as_str)
    }

    /// What is not as expected.
    fn judge(&self, row: &Row) -> Result<(), String> {
        const DENIED_BY_CURL: &str = "7";
        if !self.values.contains_key("end") {
            return Err("the guest did not come to its end".to_owned());
        }
        let is = |name: &str, wanted: &str| match self.value(name) {
            value if value == wanted => Ok(()),
            value => Err(format!("{name} ended with {value}, not with {wanted}")),
        };
        is("gone", "0")?;
        match row.expected {
            Expected::Works => {
                for name in ["doctor", "verify", "run", "datagrams"]
                    .iter()
                    .chain(row.also)
                {
                    is(name, "0")?;
                }
                is("denied", DENIED_BY_CURL)
            }
            Expected::Refuses(why) => {
                is("doctor", "1")?;
                is("run", "125")?;
                let said = self.messages.join("; ");
                said.contains(why)
                    .then_some(())
                    .ok_or_else(|| format!("run said {said:?}, not {why:?}"))
            }
        }
    }

    /// In the words of the table.
    fn session(&self, row: &Row) -> String {
        match (self.judge(row), row.expected) {
            (Err(_), _) => "**not as expected**".to_owned(),
            (Ok(()), Expected::Refuses(_)) => format!("refused: {}", self.messages.join("; ")),
            (Ok(()), Expected::Works) if row.also.is_empty() => "works".to_owned(),
            (Ok(()), Expected::Works) => format!("works; also {}", row.also.join(", ")),
        }
    }
}

fn table(rows: &[&Row], outcomes: &[Result<Results>]) -> String {
    let mut table =
        "| machine | Linux | bubblewrap | `verify` | session |\n|---|---|---|---|---|\n".to_owned();
    for (row, outcome) in rows.iter().zip(outcomes) {
        let none = Results::default();
        let results = outcome.as_ref().unwrap_or(&none);
        let verify = match row.expected {
            Expected::Works => results.value("counts"),
            Expected::Refuses(_) => "–",
        };
        let [kernel, bubblewrap] = ["kernel", "bubblewrap"].map(|name| results.value(name));
        let (name, session) = (row.name, results.session(row));
        table += &format!("| {name} | {kernel} | {bubblewrap} | {verify} | {session} |\n");
    }
    table
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "\x1b[matrix: kernel 6.12\r\nmatrix: gone 0\r\nmatrix: doctor 0\r\nmatrix: verify 0\r\nmatrix: run 0\r\n\
        matrix: datagrams 0\r\nmatrix: denied 7\r\nmatrix: counts 62 passed, 0 failed\r\nmatrix: end\r\n";

    fn row(named: &str) -> &'static Row {
        ROWS.iter().find(|row| row.name == named).expect("a row")
    }

    #[test]
    fn a_guest_that_works_is_told_from_one_that_does_not() {
        let works = row("Debian 13");
        assert_eq!(Results::of(FINE).judge(works), Ok(()));
        assert_eq!(Results::of(FINE).value("counts"), "62 passed, 0 failed");
        for (good, bad) in [
            ("run 0", "run 125"),
            ("verify 0", "verify 1"),
            ("datagrams 0", "datagrams 1"),
            // What is nearby was reached.
            ("denied 7", "denied 0"),
            // The kernel still has the modules that the row is without.
            ("gone 0", "gone 1"),
            ("matrix: end", ""),
        ] {
            let console = FINE.replace(good, bad);
            assert!(Results::of(&console).judge(works).is_err(), "{bad}");
        }
        assert!(
            Results::of(FINE)
                .judge(row("a login session of systemd"))
                .is_err(),
            "no limit was tried"
        );
    }

    #[test]
    fn a_refusal_needs_its_message() {
        let refuses = row("Debian 11's kernel");
        let console = FINE
            .replace("doctor 0", "doctor 1")
            .replace("run 0", "run 125");
        assert!(Results::of(&console).judge(refuses).is_err());
        let said = "run: stockade: no session can be started: Linux 5.10 is too old\r\n";
        assert_eq!(
            Results::of(&format!("{said}{console}")).judge(refuses),
            Ok(())
        );
        assert!(Results::of(FINE).judge(refuses).is_err());
    }

    #[test]
    fn names_of_rows_make_different_files() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(Row::file_name).collect();
        assert_eq!(names.len(), ROWS.len());
    }
}
