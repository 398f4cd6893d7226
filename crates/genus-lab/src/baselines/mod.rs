//! Baselines that have to be trained before they answer: once a data set (OCD), or in every episode (SimGCD).

mod ocd;
mod simgcd;
mod simgcd_blocks;

use genus_core::methods::Parameter;

pub use ocd::{CodeRadius, Ocd, OcdError, OcdTraining, SupportCode, train_on_features};
pub use simgcd::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
pub use simgcd_blocks::SimGcdTrainer;

/// One row of the table of baselines.
pub struct BaselineEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// The baseline in one sentence.
    pub summary: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
}

/// Every baseline that is trained; the bench runs them beside the methods of the core.
pub const BASELINES: &[BaselineEntry] = &[
    BaselineEntry {
        name: SimGcd::NAME,
        summary: "SimGCD: a classifier that teaches itself in every episode, told the number of classes",
        parameters: SimGcd::PARAMETERS,
    },
    BaselineEntry {
        name: Ocd::NAME,
        summary: "OCD: items with the same hash code form a category; the codes are learnt on base classes",
        parameters: Ocd::PARAMETERS,
    },
    BaselineEntry {
        name: Ocd::RADIUS_NAME,
        summary: "OCD with the radius of PHE: a code near that of a known class belongs to it",
        parameters: Ocd::PARAMETERS,
    },
];
