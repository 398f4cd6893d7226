//! The methods, all behind one trait, and the table by which they are found by name.

mod calibrated;
mod gcd;
mod parameters;
mod proto;
mod rankstat;
mod shc;
mod ukc;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

pub use calibrated::Calibrated;
pub use gcd::{Gcd, NumberOfCategories};
pub use parameters::{Parameter, Values};
pub use proto::Proto;
pub use rankstat::{KeyOrder, RankStat};
pub use shc::{Attach, BoostBlock, Linkage, Remainder, Shc, SmallKnown, StopAt};
pub use ukc::{ReferenceSize, Ukc};

use crate::calibration::{Calibration, CalibrationSettings};
use crate::discovery::Discovery;
use crate::error::{DiscoverError, ParameterError};
use crate::real_time::Rule;
use crate::task::Task;

/// A way to sort the queries of a task into known classes and new groups.
pub trait Discover: Sync {
    /// Gives every query a category.
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError>;
}

impl<M: Discover + ?Sized> Discover for &M {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        (**self).discover(task)
    }
}

/// Fails unless a method has as many known classes as it needs.
pub(crate) fn check_known(method: &'static str, needed: usize, known: usize) -> Result<(), DiscoverError> {
    match known < needed {
        true => Err(DiscoverError::TooFewClasses {
            method,
            needed,
            found: known,
        }),
        false => Ok(()),
    }
}

/// One row of the table of methods.
pub struct MethodEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// The method in one sentence.
    pub summary: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Those of them that say how a calibration is learnt from base classes, and do nothing where none is.
    pub learning: &'static [&'static str],
    build: fn(&Values, &Given) -> Result<Built, ParameterError>,
}

/// What a method is given beside its parameters.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The seed of what is random.
    pub seed: u64,
    /// What is known of the features.
    pub calibration: Option<Arc<Calibration>>,
}

impl Given {
    /// A seed and nothing else.
    pub fn seed(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }
}

/// A method, its decision for single queries, and how it asks to be calibrated.
type Built = (Box<dyn Discover + Send>, Option<Rule>, Option<CalibrationSettings>);

/// Every method: those of the paper's tables in their order, then those that are not in the paper.
pub const METHODS: &[MethodEntry] = &[
    MethodEntry {
        name: proto::NAME,
        summary: "ProtoNet: every query joins its nearest known class",
        parameters: proto::PARAMETERS,
        learning: &[],
        build: |_, _| Ok((Box::new(Proto), Some(Rule::Always), None)),
    },
    MethodEntry {
        name: rankstat::NAME,
        summary: "RankStat: queries with the same ranking of nearest known classes form a category",
        parameters: rankstat::PARAMETERS,
        learning: &[],
        build: |values, _| {
            let method = RankStat::from_values(values)?;
            Ok((Box::new(method.clone()), Some(Rule::Ranking(method)), None))
        },
    },
    MethodEntry {
        name: gcd::NAME,
        summary: "GCD: estimates the number of categories on the labelled items, then semi-supervised k-means",
        parameters: gcd::PARAMETERS,
        learning: &[],
        build: |values, given| Ok((Box::new(Gcd::from_values(values, given.seed)?), None, None)),
    },
    MethodEntry {
        name: shc::NAME,
        summary: "SHC: merges the most similar until two known classes would meet",
        parameters: shc::PARAMETERS,
        learning: &[],
        build: |values, _| {
            let method = Shc::from_values(values)?;
            let rule = method.rule();
            Ok((Box::new(method), Some(rule), None))
        },
    },
    MethodEntry {
        name: ukc::NAME,
        summary: "UKC: k-means from the known classes, splitting clusters that are too large",
        parameters: ukc::PARAMETERS,
        learning: &[],
        build: |values, given| {
            let method = Ukc::from_values(values, given.seed)?;
            let rule = method.rule();
            Ok((Box::new(method), rule, None))
        },
    },
    MethodEntry {
        name: calibrated::NAME,
        summary: "Calibrated: merges by how far items of one class lie apart",
        parameters: calibrated::PARAMETERS,
        learning: &["centre", "directions", "tree", "eagerness"],
        build: |values, given| {
            let (method, settings) = Calibrated::from_values(values, given.calibration.clone(), given.seed)?;
            let rule = method.rule();
            Ok((Box::new(method), Some(rule), settings))
        },
    },
];

/// A method by name with its parameters: what a text such as `ukc:alpha=1.3` says, parsed and checked once.
#[derive(Clone)]
pub struct MethodSpec {
    text: String,
    entry: &'static MethodEntry,
    values: Values,
    takes_calibration: bool,
}

impl MethodSpec {
    /// The name of the method.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Whether the method, with these parameters, has a use for a calibration.
    pub fn takes_calibration(&self) -> bool {
        self.takes_calibration
    }

    /// A parameter that says how a calibration is learnt from base classes, if one is given: where nothing is learnt, it has no
    /// effect.
    pub fn learning_parameter(&self) -> Option<&'static str> {
        let mut names = self.entry.learning.iter().copied();
        names.find(|name| self.values.given(name).is_some())
    }

    /// The method itself.
    pub fn build(&self, given: &Given) -> Result<Method, MethodError> {
        let (discover, rule, settings) = (self.entry.build)(&self.values, given)?;
        Ok(Method {
            spec: self.text.clone(),
            discover,
            rule,
            settings,
        })
    }
}

impl Default for MethodSpec {
    /// The method that `discover` uses unless told otherwise.
    fn default() -> Self {
        calibrated::NAME.parse().expect("it is in the table")
    }
}

impl FromStr for MethodSpec {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let entry = METHODS
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| MethodError::Unknown { name: name.to_owned() })?;
        let values = Values::parse(entry.name, entry.parameters, parts)?;
        // Values are checked by whoever takes them.
        let (_, _, settings) = (entry.build)(&values, &Given::default())?;
        Ok(Self {
            text: text.to_owned(),
            entry,
            values,
            takes_calibration: settings.is_some(),
        })
    }
}

impl fmt::Display for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MethodSpec").field(&self.text).finish()
    }
}

/// A method that was built, ready to run.
pub struct Method {
    spec: String,
    discover: Box<dyn Discover + Send>,
    rule: Option<Rule>,
    settings: Option<CalibrationSettings>,
}

/// A text that names no method.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MethodError {
    /// The name is in no row of the table.
    #[error("there is no method `{name}`; the methods are {}", METHODS.iter().map(|m| m.name).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A parameter is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Method {
    /// Builds the method of a text such as `shc` or `ukc:alpha=1.3:first-alpha=1.4`.
    pub fn parse(spec: &str, seed: u64) -> Result<Self, MethodError> {
        Self::with(spec, &Given::seed(seed))
    }

    /// The same with what else is known.
    pub fn with(spec: &str, given: &Given) -> Result<Self, MethodError> {
        spec.parse::<MethodSpec>()?.build(given)
    }

    /// The text it was built from.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// How a calibration is to be made for the method, if it has a use for one.
    pub fn calibration_settings(&self) -> Option<CalibrationSettings> {
        self.settings
    }

    /// Whether it judges by cosines in a calibrated space.
    pub fn is_calibrated(&self) -> bool {
        matches!(self.rule, Some(Rule::Calibrated(_)))
    }

    /// The decision for single queries in closed form, where the method has one.
    pub fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }
}

impl Discover for Method {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        self.discover.discover(task)
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Method").field(&self.spec).finish()
    }
}
