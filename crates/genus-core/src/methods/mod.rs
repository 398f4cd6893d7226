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

/// One row of a table of methods.
pub struct MethodEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// The method in one sentence.
    pub summary: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Those of them that say how a calibration is learnt from base classes, and do nothing where none is.
    pub learning: &'static [&'static str],
    build: Build,
}

/// How a method of your own is made of its parameters.
pub type BuildOwn = fn(&Values, &Context) -> Result<Box<dyn Discover + Send>, ParameterError>;

/// How a method is made of its parameters.
enum Build {
    /// A method of this crate.
    Core(fn(&Values, &Context) -> Result<Built, ParameterError>),
    /// A method of somebody else's.
    Own(BuildOwn),
    /// One that another crate trains; here its parameters are checked only.
    Trained(fn(&Values) -> Result<(), ParameterError>),
}

impl MethodEntry {
    /// A row for a method of your own, in a table of your own that [`MethodSpec::parse`] takes beside [`METHODS`].
    pub const fn own(
        name: &'static str,
        summary: &'static str,
        parameters: &'static [Parameter],
        build: BuildOwn,
    ) -> Self {
        Self {
            name,
            summary,
            parameters,
            learning: &[],
            build: Build::Own(build),
        }
    }

    /// A row for a method that another crate trains, in a table of that crate. `check` makes sure that its parameters make sense.
    pub const fn trained(
        name: &'static str,
        summary: &'static str,
        parameters: &'static [Parameter],
        check: fn(&Values) -> Result<(), ParameterError>,
    ) -> Self {
        Self {
            name,
            summary,
            parameters,
            learning: &[],
            build: Build::Trained(check),
        }
    }
}

/// What a method is built with besides its parameters.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The random seed.
    pub seed: u64,
    /// What is known of the features.
    pub calibration: Option<Arc<Calibration>>,
}

impl Context {
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
        build: Build::Core(|_, _| Ok((Box::new(Proto), Some(Rule::Always), None))),
    },
    MethodEntry {
        name: rankstat::NAME,
        summary: "RankStat: queries with the same ranking of nearest known classes form a category",
        parameters: rankstat::PARAMETERS,
        learning: &[],
        build: Build::Core(|values, _| {
            let method = RankStat::from_values(values)?;
            Ok((Box::new(method.clone()), Some(Rule::Ranking(method)), None))
        }),
    },
    MethodEntry {
        name: gcd::NAME,
        summary: "GCD: estimates the number of categories on the labelled items, then semi-supervised k-means",
        parameters: gcd::PARAMETERS,
        learning: &[],
        build: Build::Core(|values, context| Ok((Box::new(Gcd::from_values(values, context.seed)?), None, None))),
    },
    MethodEntry {
        name: shc::NAME,
        summary: "SHC: merges the most similar until two known classes would meet",
        parameters: shc::PARAMETERS,
        learning: &[],
        build: Build::Core(|values, _| {
            let method = Shc::from_values(values)?;
            let rule = method.rule();
            Ok((Box::new(method), Some(rule), None))
        }),
    },
    MethodEntry {
        name: ukc::NAME,
        summary: "UKC: k-means from the known classes, splitting clusters that are too large",
        parameters: ukc::PARAMETERS,
        learning: &[],
        build: Build::Core(|values, context| {
            let method = Ukc::from_values(values, context.seed)?;
            let rule = method.rule();
            Ok((Box::new(method), rule, None))
        }),
    },
    MethodEntry {
        name: calibrated::NAME,
        summary: "Calibrated: merges by how far items of one class lie apart",
        parameters: calibrated::PARAMETERS,
        learning: &["centre", "directions", "tree", "eagerness"],
        build: Build::Core(|values, context| {
            let (method, settings) = Calibrated::from_values(values, context.calibration.clone(), context.seed)?;
            let rule = method.rule();
            Ok((Box::new(method), Some(rule), settings))
        }),
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

    /// The parameters that were set.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Parses a text such as `ukc:alpha=1.3` by tables of methods.
    pub fn parse(text: &str, tables: &[&'static [MethodEntry]]) -> Result<Self, MethodError> {
        let name = text.split(':').next().unwrap_or_default();
        let mut entries = tables.iter().flat_map(|table| table.iter());
        match entries.clone().find(|entry| entry.name == name) {
            Some(entry) => Self::of_entry(entry, text.to_owned()),
            None => Err(MethodError::Unknown {
                name: name.to_owned(),
                known: entries.by_ref().map(|entry| entry.name).collect(),
            }),
        }
    }

    fn of_entry(entry: &'static MethodEntry, text: String) -> Result<Self, MethodError> {
        let values = Values::parse(entry.name, entry.parameters, text.split(':').skip(1))?;
        // Values are checked by whoever takes them.
        let takes_calibration = match entry.build {
            Build::Core(build) => build(&values, &Context::default())?.2.is_some(),
            Build::Own(build) => build(&values, &Context::default()).map(|_| false)?,
            Build::Trained(check) => check(&values).map(|()| false)?,
        };
        Ok(Self {
            text,
            entry,
            values,
            takes_calibration,
        })
    }

    /// The same method with one parameter more.
    pub fn with(&self, parameter: &str, value: impl fmt::Display) -> Result<Self, MethodError> {
        Self::of_entry(self.entry, format!("{}:{parameter}={value}", self.text))
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

    /// The method itself; one that another crate trains is not built here.
    pub fn build(&self, context: &Context) -> Result<Method, MethodError> {
        let (discover, rule, settings) = match self.entry.build {
            Build::Core(build) => build(&self.values, context)?,
            Build::Own(build) => (build(&self.values, context)?, None, None),
            Build::Trained(_) => return Err(MethodError::Trained { name: self.entry.name }),
        };
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
        Self::parse(text, &[METHODS])
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
    #[error("there is no method `{name}`; the methods are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The methods that there are.
        known: Vec<&'static str>,
    },
    /// It is trained by another crate.
    #[error("the method `{name}` is trained, which only a bench does")]
    Trained {
        /// The method.
        name: &'static str,
    },
    /// A parameter is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Method {
    /// Builds the method of a text such as `shc` or `ukc:alpha=1.3:first-alpha=1.4`.
    pub fn parse(spec: &str, seed: u64) -> Result<Self, MethodError> {
        Self::with(spec, &Context::seed(seed))
    }

    /// The same with what else is known.
    pub fn with(spec: &str, context: &Context) -> Result<Self, MethodError> {
        spec.parse::<MethodSpec>()?.build(context)
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
