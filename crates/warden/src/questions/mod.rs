//! What programs inside can ask of their session: one line of JSON each way, then the connection
//! ends.
//!
//! # Theory of operation
//! ```text
//! inside                                     the warden
//! connect(/run/stockade/session.sock) ─────► accept; is the peer this user's, and does it descend
//! is the peer in none of our process           from this session's bubblewrap?
//! namespaces, and this user's?
//! {"ask":"inside"} ────────────────────────► [`SessionView::answer`]
//! ◄─────────────── {"protocol":1,"session":"…"}
//! ```
//! Both sides have the kernel's word for who the other is. The socket is in a directory that only the
//! session sees; the warden listens, which is not in the session's process namespace, as nobody inside
//! can be (docs/decisions/0029-the-session-socket-and-the-guard.md).
//!
//! Questions change nothing. Answers say nothing of the host that the command cannot find out by
//! trying (docs/decisions/0036-suggest-and-an-agent-that-asks.md). What arrives is hostile:
//! [`serve`](self::serve()) bounds length, number, time and rate.

mod ask;
mod denials;
mod serve;
mod view;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use self::{
    ask::{Inside, NotInside, ask_denials, ask_explain, ask_inside},
    denials::{DenialInside, DenialsInside},
    view::Explained,
};
pub(crate) use self::{denials::SharedDenials, serve::serve, view::SessionView};

/// Changes when an older program would misunderstand an answer.
const PROTOCOL: u32 = 1;

/// The longest question, and the longest answer.
const LONGEST: usize = 4096;
const LONGEST_ANSWER: usize = 48 << 10;

/// The error of a question that can be asked again in a second.
const BUSY: &str = "too many questions at a time";

/// Another question is another variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "ask",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
enum Question {
    /// Which session is this?
    Inside {},
    /// What does the policy say about a target? The addresses are those that a name has, as far as
    /// the program was given them.
    Explain {
        target: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<IpAddr>,
    },
    /// What was denied in this session?
    Denials {},
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reply<T> {
    protocol: u32,
    #[serde(flatten)]
    answer: T,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Misunderstood {
    error: String,
}

/// A question, if this line of hostile bytes is one.
fn question(line: &[u8]) -> Option<Question> {
    match line.len() {
        0..=LONGEST => serde_json::from_slice(line).ok(),
        _ => None,
    }
}

fn not_understood(error: &str) -> String {
    let error = error.to_owned();
    reply(Misunderstood { error })
}

fn reply(answer: impl Serialize) -> String {
    let reply = Reply {
        protocol: PROTOCOL,
        answer,
    };
    // Its values are texts and numbers, which all have a form in JSON.
    serde_json::to_string(&reply).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of a question replaced by every other, removed, or doubled.
    #[test]
    fn a_question_with_one_byte_changed_is_answered_only_if_it_means_the_same() {
        let question = br#" {"ask":"inside"} "#;
        let wanted = serde_json::json!({ "ask": "inside" });
        let mut answered = 0;
        for at in 0..question.len() {
            let [before, after] = [&question[..at], &question[at + 1..]];
            let removed = [before, after].concat();
            let doubled = [before, &question[at..=at], &question[at..]].concat();
            let replaced = (0..=u8::MAX).map(|byte| [before, &[byte], after].concat());
            for line in replaced.chain([removed, doubled]) {
                let said = SessionView::bare("s").answer(&line);
                let reply: Reply<serde_json::Value> = serde_json::from_str(&said).expect("JSON");
                let is_answered = reply.answer == serde_json::json!({ "session": "s" });
                let means = serde_json::from_slice::<serde_json::Value>(&line).ok();
                assert_eq!(is_answered, means == Some(wanted.clone()), "{line:?}");
                assert!(said.ends_with('\n') && said.len() < LONGEST, "{said}");
                answered += u32::from(is_answered);
            }
        }
        assert!(answered > 18, "{answered}");
    }

    #[test]
    fn only_a_known_question_is_answered() {
        let inside = "{\"protocol\":1,\"session\":\"s\"}\n";
        for question in [r#"{"ask":"inside"}"#, " {\"ask\" : \"inside\"}\r\n"] {
            let said = SessionView::bare("s").answer(question.as_bytes());
            assert_eq!(said, inside, "{question}");
        }
        let long = format!("{}{{\"ask\":\"inside\"}}", " ".repeat(LONGEST));
        let deep = "[".repeat(LONGEST);
        for question in [
            "",
            "inside",
            "\"inside\"",
            r#"{"ask":"Inside"}"#,
            r#"{"ask":"inside","session":"x"}"#,
            r#"{"ask":"inside"}{"ask":"inside"}"#,
            r#"{"ask":"allow","target":"10.0.0.1"}"#,
            r#"{"ask":"denials","session":"x"}"#,
            r#"{"ask":"explain"}"#,
            r#"{"ask":"explain","target":7}"#,
            r#"{"ask":"explain","target":"a","addresses":["b"]}"#,
            r#"{"ask":"explain","target":"a","address":"10.0.0.1"}"#,
            "{\"ask\":\"inside\"",
            "\u{0}\u{ff}",
            &long,
            &deep,
        ] {
            let said = SessionView::bare("s").answer(question.as_bytes());
            assert_eq!(said, "{\"protocol\":1,\"error\":\"unknown question\"}\n");
        }
    }
}
