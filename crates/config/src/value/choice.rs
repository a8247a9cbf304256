//! Keys whose value is one of a few words.

use std::fmt;

use serde_json::Value;

use super::{ConfigValue, Fault, Given, Roots, expected};
use crate::{
    keys::Kind,
    text::{meant, shown},
};

/// Defines an enum of words, ordered as they are written here.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$of_word:meta])* $variant:ident as $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$of_word])* $variant,)* }

        impl ConfigValue for $name {
            const KIND: Kind = Kind::Choice(&[$($word),*]);

            fn read(
                given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault,
            ) -> Result<Self, Fault> {
                match given.text().ok_or_else(wrong)? {
                    $($word => Ok(Self::$variant),)*
                    other => Err(unknown(other, Self::KIND, &[$($word),*])),
                }
            }

            fn to_json(&self) -> Value {
                self.to_string().into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }
    };
}

fn unknown(text: &str, kind: Kind, words: &[&'static str]) -> Fault {
    let message = format!(
        "invalid value `{}`: expected {}",
        shown(text),
        expected(kind)
    );
    Fault::new(message).instead_if(meant(text, words.iter().copied()))
}

choice! {
    /// Which network the command has.
    Mode {
        None as "none",
        /// One of its own, whose every flow the policy judges.
        Jail as "jail",
        /// The host's, unprotected.
        Host as "host",
    }
}

choice! {
    /// What becomes of a flow or name that no rule covers.
    Unknown {
        Deny as "deny",
        /// It waits for the user's answer.
        Ask as "ask",
    }
}

choice! {
    /// Where denials are shown while the command runs.
    Notify {
        Off as "off",
        /// Where that disturbs nobody: in tmux, inside tmux.
        Auto as "auto",
        Tmux as "tmux",
        Desktop as "desktop",
    }
}

choice! {
    /// What of the disk is the floor that everything else stands on.
    Root {
        /// The directories of the system, read-only.
        System as "system",
        /// The whole disk, read-only.
        All as "all",
    }
}

choice! {
    /// What becomes of settings and hooks of git's that a session leaves behind.
    GitSettings {
        /// They are undone and reported.
        Defuse as "defuse",
        /// They are only reported.
        Tell as "tell",
    }
}

choice! {
    /// What becomes of what the command writes to package caches. The host's never change.
    Caches {
        /// They start empty, and are gone at the end.
        Empty as "empty",
        /// They have what the host's have, and changes are gone at the end.
        Scratch as "scratch",
        /// They have what the host's have, and changes are there in the next session.
        Keep as "keep",
    }
}

choice! {
    /// How narrow the kernel's interface is for the command.
    Hardening {
        /// Programs inside can make user namespaces.
        Default as "default",
        /// No user namespaces inside; files by Landlock too.
        Strict as "strict",
    }
}
