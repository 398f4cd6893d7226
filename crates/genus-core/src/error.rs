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
