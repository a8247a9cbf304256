//! What programs inside can ask of their session: one line of JSON each way, then the connection
//! ends.
//!
//! # Theory of operation
//! ```text
//! inside                                     the warden
//! connect(/run/stockade/session.sock) ─────► accept; is the peer this user's, and does it descend
//! is the peer in none of our process           from this session's bubblewrap?
//! namespaces, and this user's?
//! {"ask":"inside"} ────────────────────────► [`answer`]
//! ◄─────────────── {"protocol":1,"session":"…"}
//! ```
//! Both sides have the kernel's word for who the other is. The socket is in a directory that only the
//! session sees; the warden listens, which is not in the session's process namespace, as nobody inside
//! can be (docs/decisions/0029-the-session-socket-and-the-guard.md).
//!
//! Questions change nothing, and answers say nothing that the command does not know already. What
//! arrives is hostile: [`serve`](self::serve()) bounds length, number, time and rate.

mod ask;
mod serve;

use serde::{Deserialize, Serialize};

pub use self::ask::{Inside, NotInside, ask_inside};
pub(crate) use self::serve::serve;

/// Changes when an older program would misunderstand an answer.
const PROTOCOL: u32 = 1;

/// The longest line of either side.
const LONGEST: usize = 4096;

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

/// The answer of a session to a line of hostile bytes.
#[must_use]
pub fn answer(line: &[u8], session: &str) -> String {
    let question = match line.len() {
        0..=LONGEST => serde_json::from_slice(line).ok(),
        _ => None,
    };
    match question {
        Some(Question::Inside {}) => reply(Inside {
            session: session.to_owned(),
        }),
        None => reply(Misunderstood {
            error: "unknown question".to_owned(),
        }),
    }
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
                let said = answer(&line, "s");
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
            assert_eq!(answer(question.as_bytes(), "s"), inside, "{question}");
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
            "{\"ask\":\"inside\"",
            "\u{0}\u{ff}",
            &long,
            &deep,
        ] {
            let said = answer(question.as_bytes(), "s");
            assert_eq!(said, "{\"protocol\":1,\"error\":\"unknown question\"}\n");
        }
    }
}
