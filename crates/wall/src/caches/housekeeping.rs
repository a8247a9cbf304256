//! Keeps the caches of all workspaces below a limit, while a session runs: neither its start nor its
//! end waits for it.

use std::{
    ffi::OsStr,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::SystemTime,
};

use super::{CacheStore, TRASH, measure, modified, names_in, open_file, read_file, write_file};
use crate::{caches::CacheOfWorkspace, nofollow::pin_below};

/// What all of them may take. Those that were not used for longest go first.
const MOST: u64 = 20 << 30;

/// The thread that does it.
#[derive(Debug)]
pub struct Housekeeping {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    pub(crate) fn begin(store: CacheStore) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("caches".to_owned())
            // What fails now is tried again in the next session.
            .spawn(move || drop(store.tidy(MOST, &|| is_over.load(Ordering::Relaxed))))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

/// The rest is done by another session.
impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl CacheStore {
    /// Removes what is left to be removed, measures what was used since it was measured last, and
    /// removes what is too much.
    fn tidy(&self, most: u64, stop: &dyn Fn() -> bool) -> io::Result<()> {
        self.empty_trash(stop)?;
        let Some(caches) = self.handle()? else {
            return Ok(());
        };
        let mut all = Vec::new();
        for key in names_in(&caches)? {
            if stop() {
                return Ok(());
            }
            if key.as_encoded_bytes().starts_with(TRASH) {
                continue;
            }
            let Ok(handle) = pin_below(&caches, Path::new(&key)) else {
                continue;
            };
            let Ok(used) = modified(&handle, "users") else {
                continue;
            };
            let known = modified(&handle, "size").is_ok_and(|measured| measured > used);
            let known = if known { size(&handle) } else { None };
            let bytes = match known {
                Some(bytes) => bytes,
                None => {
                    // Before it is measured: what is written meanwhile counts the next time.
                    let size = open_file(&handle, "size")?;
                    let begun = SystemTime::now();
                    let (bytes, _) = measure::of(&handle, stop);
                    if stop() {
                        return Ok(());
                    }
                    write_file(&handle, "size", bytes.to_string().as_bytes())?;
                    size.set_modified(begun)?;
                    bytes
                }
            };
            all.push(cache(&key, used, bytes));
        }
        all.sort_by_key(|cache| cache.used);
        let mut total: u64 = all.iter().map(|cache| cache.bytes).sum();
        for cache in all {
            if total <= most || stop() {
                break;
            }
            if self.clear(&cache, stop)? == super::Cleared::Yes {
                total = total.saturating_sub(cache.bytes);
            }
        }
        Ok(())
    }
}

fn size(handle: &std::os::fd::OwnedFd) -> Option<u64> {
    let text = String::from_utf8(read_file(handle, "size")?).ok()?;
    text.parse().ok()
}

fn cache(key: &OsStr, used: SystemTime, bytes: u64) -> CacheOfWorkspace {
    CacheOfWorkspace {
        workspace: "".into(),
        bytes,
        is_at_least: false,
        used,
        is_in_use: false,
        key: key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::{fd::AsRawFd as _, unix::fs::PermissionsExt},
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn the_longest_unused_go_first_and_never_one_in_use() {
        let state = tempfile::tempdir().unwrap();
        let store = CacheStore::of(state.path());
        let open = |name: &str| {
            store
                .open(Path::new(name), [("npm", true)].into_iter())
                .unwrap()
        };
        let mut keys = Vec::new();
        // The oldest first; the first of them is in use.
        let in_use = open("/w/0");
        for (number, age) in [("0", 400), ("1", 300), ("2", 200), ("3", 100)] {
            let name = format!("/w/{number}");
            let one = open(&name);
            let directory = format!("/proc/self/fd/{}", one.handle.as_raw_fd());
            let file = Path::new(&directory).join("npm/private/file");
            fs::write(file, vec![1; 1_000_000]).unwrap();
            let used = SystemTime::now() - Duration::from_secs(age);
            open_file(&one.handle, "users")
                .unwrap()
                .set_modified(used)
                .unwrap();
            keys.push(one.key.clone());
        }
        let all = store.handle().unwrap().unwrap();
        let is_there = |key: &String| pin_below(&all, Path::new(key)).is_ok();
        let there = || keys.iter().map(is_there).collect::<Vec<_>>();
        store.tidy(10 << 20, &|| false).unwrap();
        assert_eq!(there(), [true, true, true, true]);
        store.tidy(3_500_000, &|| true).unwrap();
        assert_eq!(there(), [true, true, true, true]);
        store.tidy(3_500_000, &|| false).unwrap();
        assert_eq!(there(), [true, false, true, true]);
        store.tidy(1_500_000, &|| false).unwrap();
        assert_eq!(there(), [true, false, false, false]);
        drop(in_use);
        // A program that another test is just starting may have the lock until it has begun.
        let begun = Instant::now();
        while there().contains(&true) && begun.elapsed() < Duration::from_secs(60) {
            store.tidy(0, &|| false).unwrap();
        }
        assert_eq!(there(), [false; 4]);
        assert_eq!(names_in(&all).unwrap(), [""; 0]);
        // So that the directory can be removed.
        let closed = state.path().join("caches");
        fs::set_permissions(closed, PermissionsExt::from_mode(0o700)).unwrap();
    }
}
