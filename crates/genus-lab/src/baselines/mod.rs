//! Baselines that have to be trained before they answer an episode.

mod ocd;
mod simgcd;
mod simgcd_blocks;

pub use ocd::{CodeRadius, Ocd, OcdError, OcdTraining, SupportCode, train_on_features};
pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
pub use simgcd_blocks::SimGcdTrainer;
