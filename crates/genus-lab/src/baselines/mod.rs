//! Baselines that have to be trained before they answer an episode.

mod ocd;

pub use ocd::{CodeRadius, Ocd, OcdError, OcdTraining, SupportCode, train_on_features};
