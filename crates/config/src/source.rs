//! Where a value was written: in which text, and where in it.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{profiles::STATE_VARIABLES, text::shown_path};

/// A text that settings are read from.
#[derive(Debug)]
pub struct Source {
    kind: SourceKind,
    text: String,
    lines: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    File(PathBuf),
    /// A profile that comes with the program, by its name.
    BuiltIn(&'static str),
    /// A flag, with its dashes. The text is its value.
    Flag(String),
    /// An environment variable. The text is its value.
    Environment(&'static str),
}

impl Source {
    pub fn new(kind: SourceKind, text: impl Into<String>) -> Arc<Self> {
        let text = text.into();
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_newlines).collect();
        Arc::new(Self { kind, text, lines })
    }

    pub fn file(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        Self::new(SourceKind::File(path.into()), text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn kind(&self) -> &SourceKind {
        &self.kind
    }

    /// The path, flag or variable, fit for a terminal.
    pub fn name(&self) -> String {
        match &self.kind {
            SourceKind::File(path) => shown_path(path),
            SourceKind::BuiltIn(profile) => format!("profile {profile}"),
            SourceKind::Flag(flag) => flag.clone(),
            SourceKind::Environment(variable) => (*variable).to_owned(),
        }
    }

    /// The number of the line that has this byte, from 1.
    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).max(1)
    }
}

#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Range<usize>,
}

impl Place {
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        let source = Arc::clone(source);
        Self { source, span }
    }

    pub fn whole(source: &Arc<Source>) -> Self {
        Self::new(source, 0..source.text.len())
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub fn line(&self) -> usize {
        self.source.line(self.span.start)
    }

    /// It is in a file: not in a flag or a variable.
    pub fn is_in_file(&self) -> bool {
        matches!(
            self.source.kind,
            SourceKind::File(_) | SourceKind::BuiltIn(_)
        )
    }

    /// Whether both are the same part of the same source, by identity.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && self.span == other.span
    }
}

/// `path:line`, or the name of the profile, flag or variable.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.kind {
            SourceKind::File(_) => write!(f, "{}:{}", self.source.name(), self.line()),
            SourceKind::BuiltIn(_) | SourceKind::Flag(_) | SourceKind::Environment(_) => {
                f.write_str(&self.source.name())
            }
        }
    }
}

/// Where a value in force comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Nobody set it.
    BuiltIn,
    Written(Place),
}

impl Origin {
    pub fn file_line(&self) -> Option<(&Path, usize)> {
        let Self::Written(place) = self else {
            return None;
        };
        match &place.source.kind {
            SourceKind::File(path) => Some((path, place.line())),
            SourceKind::BuiltIn(_) | SourceKind::Flag(_) | SourceKind::Environment(_) => None,
        }
    }

    /// A profile that comes with the program says so, or the variable by which an agent finds its
    /// state elsewhere than its profile says.
    pub fn is_built_in_profile(&self) -> bool {
        let Self::Written(place) = self else {
            return false;
        };
        match place.source.kind {
            SourceKind::BuiltIn(_) => true,
            SourceKind::Environment(name) => STATE_VARIABLES.iter().any(|it| it.name == name),
            SourceKind::File(_) | SourceKind::Flag(_) => false,
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn, Self::BuiltIn) => true,
            (Self::Written(a), Self::Written(b)) => a.is(b),
            _ => false,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Written(place) => place.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

/// A value that nobody set.
impl<T> From<T> for Sourced<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            origin: Origin::BuiltIn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_up_to_the_end_of_the_file() {
        let source = Source::file("/f", "a\nbc\r\n\nd");
        let line = |offset| Place::new(&source, offset..offset).line();
        assert_eq!([0, 1, 2, 5, 6, 7, 8].map(line), [1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(Place::new(&source, 7..8).to_string(), "/f:4");
        assert_eq!(Place::whole(&Source::file("/empty", "")).line(), 1);
    }
}
