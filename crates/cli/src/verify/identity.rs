//! What tells a place from another of the same name: the file system it is on, and its number
//! there.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt as _, path::PathBuf};

pub(super) fn all(paths: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let of = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        let identity = format!("{}:{}", metadata.dev(), metadata.ino());
        Some((path.clone(), identity))
    };
    paths.iter().filter_map(of).collect()
}
