//! Baselines that train something in every episode.

mod simgcd;

pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
