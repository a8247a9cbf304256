//! What a program has written so far, collected by a thread of its own, so
//! that no program ever waits for its reader.

use std::io::{ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

#[derive(Clone)]
pub(super) struct Transcript(Arc<Shared>);

struct Shared {
    text: Mutex<Text>,
    changed: Condvar,
}

#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// How far [`Transcript::expect`] has read.
    expected: usize,
    ended: bool,
}

impl Transcript {
    pub(super) fn of(mut source: impl Read + Send + 'static) -> Self {
        let transcript = Self(Arc::new(Shared {
            text: Mutex::default(),
            changed: Condvar::new(),
        }));
        let writer = transcript.clone();
        thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                match source.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => writer.append(buffer.get(..count).unwrap_or_default()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // A terminal ends with EIO when its last user is gone.
                    Err(_) => break,
                }
            }
            writer.lock().ended = true;
            writer.0.changed.notify_all();
        });
        transcript
    }

    fn append(&self, bytes: &[u8]) {
        self.lock().bytes.extend_from_slice(bytes);
        self.0.changed.notify_all();
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits for `text` after whatever was expected before. Returns what came
    /// in between.
    pub(super) fn expect(&self, text: &str, limit: Duration) -> Result<String> {
        let found = |content: &Text| {
            let rest = content.bytes.get(content.expected..).unwrap_or_default();
            rest.windows(text.len().max(1))
                .position(|window| window == text.as_bytes())
        };
        let mut content = self.wait(limit, |content| found(content).is_some() || content.ended);
        let Some(position) = found(&content) else {
            return Err(Error::Overdue {
                what: format!("the output {text:?}"),
                limit,
                seen: format!("output was:\n{}", String::from_utf8_lossy(&content.bytes)),
            });
        };
        let start = content.expected;
        content.expected += position + text.len();
        let before = content.bytes.get(start..start + position);
        Ok(String::from_utf8_lossy(before.unwrap_or_default()).into_owned())
    }

    /// Waits until nobody can write any more.
    pub(super) fn ends_within(&self, limit: Duration) -> bool {
        self.wait(limit, |content| content.ended).ended
    }

    fn wait(&self, limit: Duration, done: impl Fn(&Text) -> bool) -> MutexGuard<'_, Text> {
        self.0
            .changed
            .wait_timeout_while(self.lock(), limit, |content| !done(content))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn lock(&self) -> MutexGuard<'_, Text> {
        self.0.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
