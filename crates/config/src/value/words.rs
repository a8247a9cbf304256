//! Keys whose value is one of a few words.

use std::fmt;

/// Defines an enum of words: `as "word"` is how each is written.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of_word:meta])* $variant:ident as $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$of_word])* $variant,)* }

        impl $name {
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            pub(crate) fn find(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }
    };
}

words! {
    /// Which network the command has.
    Mode {
        /// One of its own, whose every flow the policy judges.
        Jail as "jail",
        /// None.
        None as "none",
        /// The host's, unprotected.
        Host as "host",
    }
}

words! {
    /// What of the disk is the floor that everything else stands on.
    Root {
        /// The directories of the system, read-only.
        System as "system",
        /// The whole disk, read-only.
        All as "all",
    }
}

words! {
    /// What becomes of settings and hooks of git's that a session leaves behind.
    GitSettings {
        /// They are put back, and told of.
        Defuse as "defuse",
        /// They are told of.
        Tell as "tell",
    }
}

words! {
    /// How narrow the kernel's interface is for the command.
    Hardening {
        /// Programs inside can make user namespaces.
        Default as "default",
        /// No user namespaces inside; files by Landlock too.
        Strict as "strict",
    }
}
