//! Baselines that have to be trained before they answer: once a data set (OCD), or in every episode (SimGCD).

mod ocd;
mod simgcd;
mod simgcd_blocks;

pub use ocd::{CodeRadius, Ocd, OcdError, OcdTraining, SupportCode, train_on_features};
pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
pub use simgcd_blocks::SimGcdTrainer;
