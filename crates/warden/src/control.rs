//! What other commands of the same user can ask of a running session: one line of JSON each
//! way.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{reload::Reloaded, sessions::is_mine};

const LONGEST: u64 = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Request {
    /// Take up the configuration as it is now. The name changes with the form of the answer: a
    /// session of another version must not reload, and then seem not to have.
    #[serde(rename = "reload-2")]
    Reload,
}

/// Why a session could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Unreachable(#[from] io::Error),
    #[error("the session did not answer")]
    NoAnswer(#[source] io::Error),
    #[error("the session is of another version")]
    OtherVersion(#[source] serde_json::Error),
}

/// What came of it, or why nothing did.
pub type Reply = Result<Reloaded, String>;

/// Serves requests on a thread of their own until the session ends.
pub(crate) fn serve(
    listener: UnixListener,
    reload: impl Fn() -> Reply + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    // Whoever asks nonsense, or does not wait for the answer, gets none.
                    Ok(stream) => {
                        let _ = answer(stream, &reload);
                    }
                    // Out of descriptors, most likely: that may pass.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
    Ok(())
}

fn answer(mut stream: UnixStream, reload: &impl Fn() -> Reply) -> io::Result<()> {
    if !is_mine(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Request::Reload = serde_json::from_str(&line(&stream)?)?;
    let reply = serde_json::to_string(&reload())?;
    writeln!(stream, "{reply}")
}

/// Has a session take up the configuration as it is now.
///
/// # Errors
/// If it does not answer, or not in a way that is understood here.
pub fn ask_to_reload(mut stream: UnixStream) -> Result<Reply, ControlError> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = serde_json::to_string(&Request::Reload).map_err(io::Error::from)?;
    writeln!(stream, "{request}")?;
    let answer = line(&stream).map_err(ControlError::NoAnswer)?;
    serde_json::from_str(&answer).map_err(ControlError::OtherVersion)
}

fn line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;

    #[test]
    fn a_session_does_not_reload_for_another_version_that_would_not_understand_the_answer() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let reloaded = Reloaded {
            internet: true,
            rules: 1,
            later: Vec::new(),
            notice: None,
        };
        let answer = reloaded.clone();
        serve(listener, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(answer.clone())
        })
        .expect("a thread");

        let mut older = UnixStream::connect(&path).expect("a connection");
        writeln!(older, "\"reload\"").expect("a request");
        assert_eq!(line(&older).expect("an end"), "");
        assert_eq!(count.load(Ordering::SeqCst), 0);
        // Positive control: this version is understood.
        let same = UnixStream::connect(&path).expect("a connection");
        assert_eq!(ask_to_reload(same).expect("an answer"), Ok(reloaded));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
