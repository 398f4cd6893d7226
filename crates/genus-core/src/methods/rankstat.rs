//! RankStat: the ranking of the nearest known classes is the category.

use super::parameters::{Parameter, Values};
use super::{Discover, check_known};
use crate::choice::choice;
use crate::discovery::{Discovery, Stop};
use crate::error::{DiscoverError, ParameterError};
use crate::task::Task;

pub(super) const NAME: &str = "rankstat";

/// Puts queries together whose nearest prototypes are the same.
#[derive(Clone, Debug, PartialEq)]
pub struct RankStat {
    /// How many of the nearest prototypes make the key.
    pub top: usize,
    /// Whether their order counts.
    pub order: KeyOrder,
}

choice! {
    /// Whether the order of the nearest prototypes counts.
    KeyOrder {
        /// Nearest first.
        Ordered = "ordered",
        /// As a set.
        Unordered = "unordered",
    }
}

impl Default for RankStat {
    fn default() -> Self {
        Self {
            top: 2,
            order: KeyOrder::Ordered,
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("top", "2", "how many of the nearest known classes make the key"),
    Parameter::new("order", "ordered", "ordered|unordered keys"),
];

impl RankStat {
    pub(super) fn from_values(values: &Values) -> Result<Self, ParameterError> {
        let default = Self::default();
        Self {
            top: values.get("top", default.top)?,
            order: values.get("order", default.order)?,
        }
        .checked()
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        if self.top < 2 {
            return Err(ParameterError::new(NAME, "top", self.top, "at least 2"));
        }
        Ok(self)
    }

    /// The key of a point with these prototype similarities. A prototype itself always ranks first.
    pub(crate) fn key(&self, dots: &[f32], prototype: Option<usize>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..dots.len()).collect();
        order.sort_by(|&a, &b| {
            let itself = |class: usize| prototype == Some(class);
            itself(b).cmp(&itself(a)).then(dots[b].total_cmp(&dots[a]))
        });
        order.truncate(self.top);
        if self.order == KeyOrder::Unordered {
            order.sort_unstable();
        }
        order
    }

    /// Fails unless there are enough known classes for a key.
    pub(crate) fn check_known(&self, known: usize) -> Result<(), DiscoverError> {
        check_known(NAME, self.top, known)
    }
}

impl Discover for RankStat {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl RankStat {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let known = task.known();
        self.check_known(known)?;
        let mut numbers = std::collections::HashMap::new();
        let clusters = (0..task.points().rows())
            .map(|point| {
                let key = self.key(task.prototype_dots(point), (point < known).then_some(point));
                let next = numbers.len();
                *numbers.entry(key).or_insert(next)
            })
            .collect();
        Ok(Discovery::from_clusters(task, clusters, Stop::Direct))
    }
}
