//! Programs of the system that answer a question: found at fixed places, never by `PATH`, and
//! bounded in time and output.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use rustix::{
    event::PollFlags,
    fs::{MemfdFlags, memfd_create},
};

use crate::deadline::poll_until;

/// The first of these absolute paths that is a file.
#[must_use]
pub fn find(places: &[&str]) -> Option<PathBuf> {
    let mut places = places.iter().map(Path::new);
    places.find(|path| path.is_file()).map(Path::to_owned)
}

/// An anonymous file with these bytes, to be read from its beginning: a standard input that never
/// makes anybody wait.
///
/// # Errors
/// If there is no memory or descriptor for it.
pub fn input(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// A helper that runs. It does not outlive this value.
#[derive(Debug)]
pub struct Helper(Child);

impl Helper {
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// Everything on its standard output, a pipe, up to its end. None if that is more than `most`
    /// bytes, or takes longer.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn output(&mut self, patience: Duration, most: usize) -> io::Result<Option<Vec<u8>>> {
        let mut output = self.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let deadline = Instant::now() + patience;
        let mut all = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            if poll_until(output.as_fd(), PollFlags::IN, deadline)?.is_empty() {
                return Ok(None);
            }
            let count = output.read(&mut buffer)?;
            if count == 0 {
                return Ok(Some(all));
            }
            all.extend(buffer.iter().take(count));
            if all.len() > most {
                return Ok(None);
            }
        }
    }

    /// Waits for its end, and says whether it succeeded.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn succeeded(&mut self) -> io::Result<bool> {
        Ok(self.0.wait()?.success())
    }

    /// The beginning of what it wrote to its standard error, a pipe.
    pub fn complaint(&mut self) -> String {
        let mut message = String::new();
        if let Some(stderr) = self.0.stderr.take() {
            // What is not text is not worth saying.
            let _ = stderr.take(4096).read_to_string(&mut message);
        }
        message
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
