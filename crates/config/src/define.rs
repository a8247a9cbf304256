//! The macro behind the table of keys: it makes everything that a key needs from one entry.

/// Makes of each entry a [`Key`](crate::Key), a field of [`Effective`](crate::Effective), a
/// `Change`, and what parses, shows and compares it.
macro_rules! keys {
    ($(
        $(#[doc = $about:literal])+
        [$section:ident] $Section:ident, $heading:literal {$(
            $(#[doc = $help:literal])+
            $Key:ident $name:ident: $Setting:ty = $default:expr, $option:literal, $widens:ident;
        )+}
    )+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key { $($($Key,)+)+ }

        impl Key {
            const COUNT: usize = [$($(Self::$Key),+),+].len();
            pub const ALL: [Self; Self::COUNT] = [$($(Self::$Key),+),+];

            pub const fn spec(self) -> Spec {
                match self {$($(
                    Self::$Key => Spec {
                        section: stringify!($section),
                        name: stringify!($name),
                        kind: <$Setting as Setting>::KIND,
                        flag: concat!("--", $option),
                        option: $option,
                        off: concat!("no-", $option),
                        help: &[$($help),+],
                        widens: Widens::$widens,
                    },
                )+)+}
            }
        }

        /// The sections, in the order in which they are shown.
        pub const SECTIONS: &[Section] = &[$(
            Section { name: stringify!($section), about: concat!($($about),+), heading: $heading },
        )+];

        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone)]
            pub struct $Section { $($(#[doc = $help])+ pub $name: $Setting,)+ }
        )+

        /// The configuration that a session is made from: every setting with its value, and each
        /// value with its origin.
        #[derive(Debug, Clone)]
        pub struct Effective {
            $(pub $section: $Section,)+
            pub profile: Option<String>,
        }

        impl Default for Effective {
            fn default() -> Self {
                Self {
                    $($section: $Section { $($name: $default,)+ },)+
                    profile: None,
                }
            }
        }

        impl Effective {
            pub(crate) fn apply(&mut self, change: &Change, origin: Origin) {
                match change.clone() {
                    $($(Change::$Key(item) => self.$section.$name.set(item, origin),)+)+
                    Change::Clear(key) => match key {
                        $($(Key::$Key => self.$section.$name.clear(),)+)+
                    },
                }
            }

            /// The value of a scalar, or the entries of a list or table, in a form that is the
            /// same for all keys. Empty: the list is, or nobody set the limit.
            pub fn shown(&self, key: Key) -> Vec<Shown> {
                match key { $($(Key::$Key => self.$section.$name.shown(),)+)+ }
            }

            /// Whether `other` has a higher value or more entries.
            pub(crate) fn is_exceeded_by(&self, other: &Self, key: Key) -> bool {
                match key {$($(
                    Key::$Key => self.$section.$name.is_exceeded_by(&other.$section.$name),
                )+)+}
            }
        }

        /// One thing that a layer says: a scalar that it sets, or an entry that it adds to a list.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Change {
            $($($Key(<$Setting as Setting>::Item),)+)+
            /// Drops the entries of earlier layers. Only `--no-forge` and its variable do this.
            Clear(Key),
        }

        impl Change {
            pub(crate) fn key(&self) -> Key {
                match self {
                    $($(Self::$Key(_) => Key::$Key,)+)+
                    Self::Clear(key) => *key,
                }
            }

            /// What a scalar, or an entry of a list, says.
            pub(crate) fn read(key: Key, given: Given<'_>, roots: &Roots) -> Result<Self, Fault> {
                let wrong = || wrong_type(key, given);
                match key {$($(
                    Key::$Key => ConfigValue::read(given, roots, &wrong).map(Self::$Key),
                )+)+}
            }
        }
    };
}
