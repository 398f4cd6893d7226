//! What can be wrong with the input of each step.

use thiserror::Error;

/// A matrix that cannot be used as [`Features`](crate::Features). Rows and columns count from zero.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum FeatureError {
    /// A matrix without columns.
    #[error("the features have no columns")]
    NoColumns,
    /// A row whose length differs from the first one's.
    #[error("row {row} has {found} features where {expected} are expected")]
    Ragged {
        /// The row.
        row: usize,
        /// The length of the rows before it.
        expected: usize,
        /// Its own length.
        found: usize,
    },
    /// A NaN or an infinity.
    #[error("row {row}, column {column} is {value}, not a finite number")]
    NotFinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// What stands there.
        value: f32,
    },
    /// A row of zeros, to which no cosine is defined.
    #[error("row {row} is all zeros and has no direction")]
    ZeroRow {
        /// The row.
        row: usize,
    },
}

/// A support and queries that do not make a [`Task`](crate::Task). Rows count from zero.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TaskError {
    /// No labelled example.
    #[error("there is no labelled example")]
    EmptySupport,
    /// Not one label a row.
    #[error("there are {rows} examples but {labels} labels")]
    LabelCount {
        /// The number of examples.
        rows: usize,
        /// The number of labels.
        labels: usize,
    },
    /// Nothing to sort.
    #[error("there is no query")]
    NoQueries,
    /// Support and queries of different width.
    #[error("the support has {support} features an item, the queries have {queries}")]
    Dimensions {
        /// The width of the support.
        support: usize,
        /// The width of the queries.
        queries: usize,
    },
    /// An example that cannot be used.
    #[error("in the support: {0}")]
    Support(FeatureError),
    /// A query that cannot be used.
    #[error("in the queries: {0}")]
    Queries(FeatureError),
    /// A class whose examples cancel each other out.
    #[error("the examples of class `{class}` average to zero, so the class has no direction")]
    ZeroPrototype {
        /// The class.
        class: String,
    },
}

/// Why a method could not give an answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A method was given fewer known classes than it needs.
    #[error(
        "{method} needs at least {needed} known {classes} to find its limit, and there {are} {found}",
        classes = if *needed == 1 { "class" } else { "classes" },
        are = if *found == 1 { "is" } else { "are" }
    )]
    TooFewClasses {
        /// The method.
        method: &'static str,
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// More categories asked for than there are points.
    #[error("{asked} categories were asked for, but there are only {points} points")]
    TooManyCategories {
        /// How many were asked for.
        asked: usize,
        /// How many points there are.
        points: usize,
    },
    /// Fewer categories asked for than there are known classes.
    #[error("{asked} categories were asked for, but {known} classes are known")]
    TooFewCategories {
        /// How many were asked for.
        asked: usize,
        /// How many classes are known.
        known: usize,
    },
    /// A matrix of all pairs that does not fit into memory.
    #[error(
        "{points} points at once need {gibibytes:.1} GiB for their distances; cluster a random subset and assign the rest"
    )]
    TooLarge {
        /// How many points there are.
        points: usize,
        /// The memory they need.
        gibibytes: f64,
    },
    /// A calibration of features of another width.
    #[error("the calibration is of {calibration} features, the items have {task}")]
    CalibrationWidth {
        /// The calibration's features.
        calibration: usize,
        /// The task's features.
        task: usize,
    },
    /// The inputs do not make a task.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Why there is no [`Calibration`](crate::Calibration).
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Too few classes of at least two items.
    #[error("a calibration needs at least {needed} classes of two or more items, and there are {found}")]
    TooFewClasses {
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// Every class is one point again and again.
    #[error("the items of every class are copies of each other, so there is no spread to learn")]
    NoSpread,
    /// Stored parts that do not make one.
    #[error("not a calibration: {problem}")]
    Parts {
        /// What is wrong.
        problem: &'static str,
    },
}

/// A parameter outside its range or not known to its method.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{method}: {parameter} = {value} is not possible: {expected}")]
pub struct ParameterError {
    /// The method.
    pub method: &'static str,
    /// The parameter.
    pub parameter: String,
    /// What was given.
    pub value: String,
    /// What is possible.
    pub expected: String,
}

/// Parts that do not make a [`Taxonomy`](crate::Taxonomy).
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TaxonomyError {
    /// No category.
    #[error("there is no category")]
    Empty,
    /// Not one centre a category.
    #[error("there are {categories} categories but {centres} centres")]
    CentreCount {
        /// The number of categories.
        categories: usize,
        /// The number of centres.
        centres: usize,
    },
    /// A known class listed behind a new group.
    #[error("the known class `{name}` comes after a new group; known classes come first")]
    KnownAfterNew {
        /// The class.
        name: String,
    },
    /// A calibration of other features than the centres'.
    #[error("the calibration is of {calibration} features, the centres have {centres}")]
    CalibrationWidth {
        /// The calibration's features.
        calibration: usize,
        /// The centres' features.
        centres: usize,
    },
    /// A second calibration.
    #[error("the taxonomy has a calibration of its own")]
    CalibratedAlready,
    /// A calibration around the middle of a task, and no task.
    #[error("the calibration centres each task on its own items, which a taxonomy does not have")]
    NoMiddle,
    /// Not one number of members a category.
    #[error("there are {categories} categories but the members of {members}")]
    MemberCount {
        /// The number of categories.
        categories: usize,
        /// Of how many the members are told.
        members: usize,
    },
    /// A category without members, or whose members agree more than perfectly.
    #[error("category `{name}` needs at least one member and a mean no longer than 1")]
    Members {
        /// The category.
        name: String,
    },
    /// A share of items that is none, or all.
    #[error("the share of familiar items is {share}; it has to be between 0 and 1")]
    Familiar {
        /// The share.
        share: f64,
    },
    /// Nothing that says how likely an item belongs to a category.
    #[error("the taxonomy has no calibration to judge items by; discover it with the method `calibrated`")]
    NoCalibration,
    /// Two categories of one name.
    #[error("two categories are called `{name}`")]
    NameTwice {
        /// The name.
        name: String,
    },
}
