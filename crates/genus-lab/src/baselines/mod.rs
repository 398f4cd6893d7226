//! Baselines that train something in every episode.

mod simgcd;
mod simgcd_blocks;

pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
pub use simgcd_blocks::SimGcdTrainer;
