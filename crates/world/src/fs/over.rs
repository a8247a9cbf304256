//! Files of the machine that are others in the world. The disk is read-only, so
//! each is covered by a mount.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::mounts::{Detached, attach};
use crate::error::{Doing, Result};

const COVERS: &str = "/run/world/covers";

/// Lays `source` over the existing file `target`, wherever that is.
pub(crate) fn bind_over(source: &Path, target: &Path) -> Result<()> {
    let target = fs::canonicalize(target).doing(format_args!("find {}", target.display()))?;
    attach(&Detached::from(source)?, &target)
}

/// Lays an executable with these contents over the existing file `target`.
pub(crate) fn replace_program(target: &Path, contents: &str) -> Result<()> {
    let target = fs::canonicalize(target).doing(format_args!("find {}", target.display()))?;
    // One for each target, rewritten in place when there is another version: it may be
    // mounted already, and nothing can be mounted over a file that is gone.
    let name = target.to_string_lossy().replace('/', "-");
    let cover = Path::new(COVERS).join(name);
    let write = || {
        fs::create_dir_all(COVERS)?;
        fs::write(&cover, contents)?;
        fs::set_permissions(&cover, fs::Permissions::from_mode(0o755))
    };
    write().doing(format_args!("write {}", cover.display()))?;
    bind_over(&cover, &target)
}
