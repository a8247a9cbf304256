//! How much to measure: handed from the outer process to the one inside the
//! world as it is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::column::Column;
use super::measure::Measurement;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) product: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) columns: Vec<Column>,
    pub(crate) measurements: Vec<Measurement>,
    /// For one stream; iperf3 knows whole seconds only.
    pub(crate) stream_seconds: u32,
    /// For several.
    pub(crate) streams_seconds: u32,
    /// For everything that is repeated and counted.
    pub(crate) exchange_seconds: f64,
    /// How many connections to keep open at once.
    pub(crate) connections: usize,
}
