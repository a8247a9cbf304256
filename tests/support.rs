//! What the tests share.

use stockade_world::Builder;

/// A world with one host of each kind, and the built program on the laptop.
pub(crate) fn standard() -> Builder {
    Builder::standard().product(env!("CARGO_BIN_EXE_stockade"))
}
