//! Baselines that have to be trained before they answer: once a data set (OCD), or in every episode (SimGCD).

mod ocd;
mod simgcd;
mod simgcd_blocks;

use genus_core::methods::MethodEntry;

pub use ocd::{CodeRadius, Ocd, OcdError, OcdTraining, SupportCode, train_on_features};
pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
pub use simgcd_blocks::SimGcdTrainer;

/// Every baseline that is trained; the bench runs them beside the methods of the core.
pub const BASELINES: &[MethodEntry] = &[
    MethodEntry::trained(
        SimGcd::NAME,
        "SimGCD: a classifier that teaches itself in every episode, told the number of classes",
        SimGcd::PARAMETERS,
        |values| SimGcd::from_values(values).map(drop),
    ),
    MethodEntry::trained(
        Ocd::NAME,
        "OCD: items with the same hash code form a category; the codes are learnt on base classes",
        Ocd::PARAMETERS,
        |values| Ocd::from_values(values, 0).map(drop),
    ),
    MethodEntry::trained(
        Ocd::RADIUS_NAME,
        "OCD with the radius of PHE: a code near that of a known class belongs to it",
        Ocd::PARAMETERS,
        |values| Ocd::from_values(values, 0).map(drop),
    ),
];
