//! Directories that are mounted at more than one place.
//!
//! A bind mount, or the whole of a Btrfs file system beside one of its subvolumes, shows the same
//! directory under two paths. What is covered at one of them has to be covered at the other.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::proc::MOUNTINFO;
use crate::error::Error;

/// Here is nothing of a disk.
const KERNELS: &[&str] = &["/proc", "/sys", "/dev"];

const REMOTE: &[&str] = &["nfs", "nfs4", "cifs", "smb3", "ceph", "9p"];

/// Where mounts are, and which directories they show twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mounts {
    points: Vec<PathBuf>,
    /// Two paths of one directory.
    pub(crate) twins: Vec<(PathBuf, PathBuf)>,
}

struct Mount {
    id: u64,
    device: String,
    /// What of the file system is shown.
    root: PathBuf,
    point: PathBuf,
    /// A server has it.
    is_remote: bool,
}

impl Mounts {
    pub(super) fn read() -> Result<Self, Error> {
        let text = fs::read(MOUNTINFO).map_err(|error| Error::Read {
            path: MOUNTINFO,
            error,
        })?;
        // A mount that another one hides shows nothing: what is there is something else.
        let is_in_view = |mount: &Mount| {
            let flags =
                AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
            let found = statx(CWD, &mount.point, flags, StatxFlags::MNT_ID);
            let says = StatxFlags::MNT_ID.bits();
            found.is_ok_and(|it| it.stx_mask & says == 0 || it.stx_mnt_id == mount.id)
        };
        let is_same = |one: &Path, other: &Path| {
            let identity = |path: &Path| {
                let metadata = fs::symlink_metadata(path).ok()?;
                Some((metadata.dev(), metadata.ino()))
            };
            identity(one).is_some_and(|it| Some(it) == identity(other))
        };
        Ok(Self::from_mountinfo(&text, is_in_view, is_same))
    }

    fn from_mountinfo(
        text: &[u8],
        is_in_view: impl Fn(&Mount) -> bool,
        is_same: impl Fn(&Path, &Path) -> bool,
    ) -> Self {
        let mounts = text.split(|byte| *byte == b'\n').filter_map(Mount::parse);
        let mut mounts: Vec<_> = mounts
            .filter(|mount| !KERNELS.iter().any(|place| mount.point.starts_with(place)))
            .collect();
        // A server that is gone would not answer. What is mounted once needs no answer.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for mount in &mounts {
            *counts.entry(mount.device.clone()).or_default() += 1;
        }
        mounts.retain(|mount| {
            let is_once = counts.get(&mount.device) == Some(&1);
            (mount.is_remote && is_once) || is_in_view(mount)
        });
        let mut twins = Vec::new();
        for (index, one) in mounts.iter().enumerate() {
            for other in mounts.iter().skip(index + 1) {
                if let Some((first, second)) = one.shared_with(other)
                    && first != second
                    && is_same(&first, &second)
                {
                    twins.push((first, second));
                }
            }
        }
        let points = mounts.into_iter().map(|mount| mount.point).collect();
        Self { points, twins }
    }

    /// The other paths of a file or directory, where it is mounted again.
    pub(crate) fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> = Vec::new();
        for (here, there) in self.both_ways() {
            let Ok(below) = path.strip_prefix(here) else {
                continue;
            };
            let name: PathBuf = there.components().chain(below.components()).collect();
            // What another mount covers, on either side, is not the same.
            let is_whole = self.point_of(path) == self.point_of(here)
                && self.point_of(&name) == self.point_of(there);
            if is_whole && name != path && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The paths at which parts of a directory are mounted, other than in itself. What is mounted in
    /// it from elsewhere is no part of it.
    pub(crate) fn parts_elsewhere(&self, path: &Path) -> Vec<PathBuf> {
        let is_part = |(here, there): &(&Path, &Path)| {
            let is_own = self.point_of(here) == self.point_of(path);
            here.starts_with(path) && *here != path && is_own && !there.starts_with(path)
        };
        let parts = self.both_ways().filter(is_part);
        parts.map(|(_, there)| there.to_owned()).collect()
    }

    /// All paths at which a directory can be reached, or parts of it, or what is mounted in it: who
    /// can write the directory can write there. The directory itself is the first.
    pub(crate) fn all_names(&self, path: &Path) -> Vec<PathBuf> {
        let mut names = vec![path.to_owned()];
        let inside = self.points.iter().map(PathBuf::as_path);
        let inside = inside.filter(|point| point.starts_with(path) && *point != path);
        for top in [path].into_iter().chain(inside) {
            let others = self.other_names(top);
            for name in others.into_iter().chain(self.parts_elsewhere(top)) {
                if !name.starts_with(path) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    fn both_ways(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let twins = self.twins.iter();
        twins.flat_map(|(one, other)| [(&**one, &**other), (&**other, &**one)])
    }

    fn point_of(&self, path: &Path) -> Option<&PathBuf> {
        let points = self.points.iter().filter(|point| path.starts_with(point));
        points.max_by_key(|point| point.components().count())
    }
}

/// The other paths at which a directory, its parts and what is mounted in it can be reached. None if
/// the kernel does not say.
#[must_use]
pub fn mounted_elsewhere(path: &Path) -> Vec<PathBuf> {
    let names = Mounts::read().map(|mounts| mounts.all_names(path));
    names.unwrap_or_default().into_iter().skip(1).collect()
}

impl Mount {
    /// `id parent major:minor root point … - type …`
    fn parse(line: &[u8]) -> Option<Self> {
        let mut kind = line
            .split(|byte| *byte == b' ')
            .skip_while(|field| *field != b"-");
        let is_remote = kind
            .nth(1)
            .is_some_and(|kind| REMOTE.iter().any(|it| kind == it.as_bytes()));
        let mut fields = line.split(|byte| *byte == b' ');
        let id = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let mut fields = fields.skip(1);
        Some(Self {
            id,
            device: String::from_utf8(fields.next()?.to_owned()).ok()?,
            root: unescaped(fields.next()?),
            point: unescaped(fields.next()?),
            is_remote,
        })
    }

    /// The widest directory that both show, by its two paths.
    fn shared_with(&self, other: &Self) -> Option<(PathBuf, PathBuf)> {
        if self.device != other.device {
            return None;
        }
        let join =
            |point: &Path, below: &Path| point.components().chain(below.components()).collect();
        if let Ok(below) = other.root.strip_prefix(&self.root) {
            return Some((join(&self.point, below), other.point.clone()));
        }
        let below = self.root.strip_prefix(&other.root).ok()?;
        Some((self.point.clone(), join(&other.point, below)))
    }
}

/// The kernel writes blanks and backslashes of a path in octal.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let code =
            digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        rest = match code {
            Some(_) => after.get(3..).unwrap_or_default(),
            None => after,
        };
        bytes.push(code.unwrap_or(*first));
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n";

    fn with(lines: &str) -> Mounts {
        Mounts::from_mountinfo(format!("{ROOT}{lines}").as_bytes(), |_| true, |_, _| true)
    }

    const NONE: [&Path; 0] = [];

    fn names(mounts: &Mounts, path: &str) -> Vec<PathBuf> {
        mounts.other_names(Path::new(path))
    }

    #[test]
    fn a_bind_mount_has_two_names_for_all_that_is_in_it() {
        let mounts = with("2 1 8:1 /home/ada /mnt/x\\040y rw - ext4 /dev/sda1 rw\n");
        for (path, name) in [
            ("/home/ada", "/mnt/x y"),
            ("/home/ada/.ssh", "/mnt/x y/.ssh"),
            ("/mnt/x y/.ssh", "/home/ada/.ssh"),
        ] {
            assert_eq!(names(&mounts, path), [Path::new(name)], "{path}");
        }
        assert_eq!(names(&mounts, "/home"), NONE);
        let parts = mounts.parts_elsewhere(Path::new("/home"));
        assert_eq!(parts, [Path::new("/mnt/x y")]);
        // What is mounted there is not of there.
        assert_eq!(mounts.parts_elsewhere(Path::new("/mnt")), NONE);
        assert_eq!(mounts.parts_elsewhere(Path::new("/")), NONE);
    }

    #[test]
    fn what_can_be_written_can_be_reached_by_all_its_parts_and_what_is_mounted_in_it() {
        let mounts = with(
            "2 1 8:1 /home/ada/w /mnt/w rw - ext4 /dev/sda1 rw\n\
             3 1 8:1 /home/ada/w/part /mnt/part rw - ext4 /dev/sda1 rw\n\
             4 1 8:2 / /srv rw - ext4 /dev/sdb rw\n\
             5 1 8:2 /data /home/ada/w/data rw - ext4 /dev/sdb rw\n",
        );
        let all = mounts.all_names(Path::new("/home/ada/w"));
        for name in ["/home/ada/w", "/mnt/w", "/mnt/part", "/srv/data"] {
            assert!(all.contains(&name.into()), "{name}: {all:?}");
        }
        for other in ["/srv", "/mnt", "/"] {
            assert!(!all.contains(&other.into()), "{other}: {all:?}");
        }
        let once = mounts.all_names(Path::new("/home/ada/v"));
        assert_eq!(once, [Path::new("/home/ada/v")]);
    }

    #[test]
    fn a_file_system_that_is_mounted_whole_shows_its_subvolumes_again() {
        let mounts = with(
            "2 1 0:30 /@home /home rw - btrfs /dev/sdb rw\n\
             3 1 0:30 / /mnt/all rw - btrfs /dev/sdb rw\n",
        );
        assert_eq!(
            names(&mounts, "/home/ada/.env"),
            [Path::new("/mnt/all/@home/ada/.env")]
        );
        // Nothing of the first disk is there twice.
        assert_eq!(names(&mounts, "/etc/shadow"), NONE);
    }

    #[test]
    fn what_another_mount_covers_has_no_second_name() {
        let mounts = with(
            "2 1 8:1 /home /mnt rw - ext4 /dev/sda1 rw\n\
             3 1 8:2 / /home/ada rw - ext4 /dev/sdb rw\n\
             4 2 8:3 / /mnt/bob rw - ext4 /dev/sdc rw\n",
        );
        for path in ["/home/ada", "/home/ada/x", "/home/bob", "/mnt/bob/x"] {
            assert_eq!(names(&mounts, path), NONE, "{path}");
        }
        assert_eq!(names(&mounts, "/home/eve"), [Path::new("/mnt/eve")]);
    }

    #[test]
    fn a_mount_that_another_one_hides_does_not_count() {
        let lines = "2 1 8:2 / /home/ada rw - ext4 /dev/sdb rw\n\
                     3 1 8:1 /data/home /home rw - ext4 /dev/sda1 rw\n";
        let text = format!("{ROOT}{lines}");
        let mounts = Mounts::from_mountinfo(text.as_bytes(), |mount| mount.id != 2, |_, _| true);
        assert_eq!(names(&mounts, "/home/ada"), [Path::new("/data/home/ada")]);
    }

    #[test]
    fn what_is_not_the_same_on_the_disk_is_no_twin() {
        let line = "2 1 8:1 /home /mnt rw - ext4 /dev/sda1 rw\n";
        let mounts =
            Mounts::from_mountinfo(format!("{ROOT}{line}").as_bytes(), |_| true, |_, _| false);
        assert_eq!(mounts.twins, []);
        let mounts =
            with("2 1 0:21 / /proc rw - proc proc rw\n3 2 0:21 /sys /proc/sys ro - proc proc rw\n");
        assert_eq!(mounts.twins, []);
    }
}
