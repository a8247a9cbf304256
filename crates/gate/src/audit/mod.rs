//! What the user learns: events for the log, denials for the receipt, and packets that are only
//! looked at to explain why they went nowhere.

pub(crate) mod attribution;
pub(crate) mod denials;
pub(crate) mod events;
pub(crate) mod hints;
pub(crate) mod unseen;

use std::{rc::Rc, time::Duration};

use tokio::time::sleep;

use crate::judge::Judge;

const INTERVAL: Duration = Duration::from_secs(1);

/// Tells the log, now and then, of what is not told at once.
pub(crate) async fn tell(unseen: Rc<unseen::Unseen>, judge: Rc<Judge>) {
    loop {
        sleep(INTERVAL).await;
        unseen.tell();
        judge.tell_folded(denials::FOLD);
    }
}
