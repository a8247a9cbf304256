//! Connections, as a client could send them.

mod connection;
mod opening;
mod refusals;
mod unanswered;

use super::*;

/// What a caller saw of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// Whom the requests were for, in order, and where their heads started.
    heads: Vec<(usize, String, Kind)>,
    /// How many bytes went on their way.
    released: usize,
    end: Step,
}

impl Seen {
    fn hosts(&self) -> Vec<&str> {
        self.heads
            .iter()
            .map(|(_, host, _)| host.as_str())
            .collect()
    }
}

/// Does what a caller does, while the bytes arrive in pieces of these sizes, and one
/// by one after that.
fn arrive(sent: &[u8], sizes: impl IntoIterator<Item = usize>) -> Seen {
    let mut requests = Requests::new();
    let mut sizes = sizes.into_iter();
    let mut heads = Vec::new();
    let (mut released, mut arrived) = (0, 0);
    loop {
        let end = match requests.step(&sent[released..arrived]) {
            Step::NeedMore if arrived < sent.len() => {
                arrived = sent.len().min(arrived + sizes.next().unwrap_or(1));
                continue;
            }
            Step::Release(count) => {
                assert!(count > 0);
                released += count;
                continue;
            }
            Step::Head(head) => {
                let host = head
                    .authority
                    .map_or(String::new(), |host| host.to_string());
                heads.push((released, host, head.kind));
                released += head.length;
                continue;
            }
            end => end,
        };
        assert!(released <= arrived);
        return Seen {
            heads,
            released,
            end,
        };
    }
}

/// All at once; and the same must be seen byte by byte.
fn seen(sent: &[u8]) -> Seen {
    let seen = arrive(sent, [sent.len()]);
    assert_eq!(arrive(sent, []), seen);
    seen
}

/// Whom the requests of a connection are for, all of which is understood.
fn hosts(sent: &str) -> Vec<String> {
    let seen = seen(sent.as_bytes());
    assert_eq!((&seen.end, seen.released), (&Step::NeedMore, sent.len()));
    seen.hosts().into_iter().map(str::to_owned).collect()
}

fn refusal(sent: &[u8]) -> Broken {
    match seen(sent).end {
        Step::Broken(why) => why,
        other => panic!("{other:?}"),
    }
}

/// A head with these fields after a good Host.
fn with(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}
