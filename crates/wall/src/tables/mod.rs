//! Tables of known paths, each with the reason why it is there.

pub(crate) mod autorun;
pub(crate) mod caches;
pub(crate) mod credentials;
pub(crate) mod home;
pub(crate) mod system;
pub(crate) mod toolchains;

pub use credentials::known_places;
pub use home::AGENTS_STATE;
