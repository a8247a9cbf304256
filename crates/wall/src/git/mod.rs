//! git's files: settings, indexes, and what makes git run a program.
//!
//! A repository decides much of what git does in it. The files here may be hostile, and no module
//! of this folder executes them or follows a link in them.

pub(crate) mod branches;
pub(crate) mod controls;
pub(crate) mod index;
pub(crate) mod links;
mod names;
pub(crate) mod objects;
pub(crate) mod repositories;
pub(crate) mod settings;
pub(crate) mod tracked;
pub(crate) mod unfinished;
pub(crate) mod ways;
