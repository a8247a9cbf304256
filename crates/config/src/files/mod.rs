//! The files that settings are read from: where they are, and how they are read.

mod places;
mod read;

pub use places::Places;
pub use read::resolved;
pub(crate) use read::{Guard, WorkspaceText, any_file, own_file, word_of_shell, workspace_file};
