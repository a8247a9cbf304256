//! Fairness: a loop that always finds something to do lets the others have their turn.

use tokio::task::yield_now;

const AT_ONCE: u32 = 128;

/// Counts what a loop did without pausing. Waiting for a socket that is ready does not
/// give the thread away, so a flood of packets could keep it forever.
#[derive(Debug, Default)]
pub(crate) struct Turns(u32);

impl Turns {
    pub(crate) async fn next(&mut self) {
        self.0 += 1;
        if self.0 > AT_ONCE {
            self.0 = 0;
            yield_now().await;
        }
    }
}
