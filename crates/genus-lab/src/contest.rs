//! One method on one task whose truth is known.

use genus_core::methods::Method;
use genus_core::metrics::{Accuracy, Convention, Evaluation, accuracy};
use genus_core::{Discover, Discovery, Task};

use crate::LabError;

/// What a method found, and how right that is.
pub struct ScoredMethod {
    /// The method.
    pub method: &'static str,
    /// Its answer.
    pub discovery: Discovery,
    /// How well it did, by the paper's metric.
    pub accuracy: Accuracy,
}

impl ScoredMethod {
    /// Runs a method. The known classes of `truth` have the numbers that they have in the task.
    pub fn run(task: &Task, truth: &[usize], method: &'static str, seed: u64) -> Result<Self, LabError> {
        let found = Method::parse(method, seed)?.discover(task);
        let discovery = found.map_err(|source| LabError::Discover {
            method: method.to_owned(),
            episode: 0,
            source,
        })?;
        let judged = Evaluation {
            known: discovery.prototype_clusters(),
            clusters: discovery.query_clusters(),
            truth,
        };
        let accuracy = accuracy(&judged, Convention::Paper);
        Ok(Self {
            method,
            discovery,
            accuracy,
        })
    }
}
