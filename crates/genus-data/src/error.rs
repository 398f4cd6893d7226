//! What can be wrong with a file: every message names the file, the place in it and the way out.

use std::fmt;
use std::io;
use std::path::PathBuf;

use genus_files::FileError;
use thiserror::Error;

use crate::table::ColumnProblem;

/// Where in a file something stands, counted from one as editors and people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePosition {
    /// A row of a binary file.
    Row(u64),
    /// A line of a text file; the header of a CSV file is line 1.
    Line(u64),
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePosition::Row(n) => write!(f, "row {n}"),
            FilePosition::Line(n) => write!(f, "line {n}"),
        }
    }
}

/// A file that cannot be read, used or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system would not give the file.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A directory where a file is needed.
    #[error("{} is a directory; name a file in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A feature file whose name says nothing about its format.
    #[error(
        "cannot tell the format of {} from its name; feature files end in .npy, .npz, .safetensors, .csv, \
         .tsv, .jsonl, .csv.gz, .tsv.gz, .jsonl.gz, .parquet, .feather or .arrow",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A file that is damaged or does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do about it.
        problem: String,
    },
    /// A row that does not hold what it should.
    #[error("{}, {place}: {problem}", path.display())]
    MalformedRow {
        /// The file.
        path: PathBuf,
        /// The row.
        place: FilePosition,
        /// What is wrong and what to do about it.
        problem: String,
    },
    /// A table of which it is not clear which columns are what.
    #[error("{}: {problem}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// What is not clear.
        problem: ColumnProblem,
    },
    /// A folder that is not that of a taxonomy.
    #[error("{}: there is no such file", path.display())]
    NoTaxonomy {
        /// The file that it should have.
        path: PathBuf,
    },
    /// A file without rows.
    #[error("{} has no rows; a feature file needs at least one", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// A file whose rows have no features.
    #[error("{}: the rows have no features; a row needs at least one number", path.display())]
    NoFeatures {
        /// The file.
        path: PathBuf,
    },
    /// A row whose length differs from that of the rows before it.
    #[error(
        "{}, {place}: {found} features where the rows before have {expected}; all rows need the same number",
        path.display()
    )]
    Dimension {
        /// The file.
        path: PathBuf,
        /// The row.
        place: FilePosition,
        /// The number of features of the rows before.
        expected: usize,
        /// The number of features of this row.
        found: usize,
    },
    /// A value that is NaN or infinite, or becomes infinite as a 32-bit float.
    #[error(
        "{}, {place} (id \"{id}\"): {column} is {value} as a 32-bit float, not a finite number; correct the \
         value or remove the row",
        path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The row.
        place: FilePosition,
        /// The item's id.
        id: String,
        /// The column, by name or number.
        column: String,
        /// The value as a 32-bit float.
        value: f32,
    },
    /// A row of zeros, which has no direction and so no cosine to anything.
    #[error(
        "{}, {place} (id \"{id}\"): all features are zero, so the item is like nothing else; remove the row or \
         compute its features again",
        path.display()
    )]
    ZeroRow {
        /// The file.
        path: PathBuf,
        /// The row.
        place: FilePosition,
        /// The item's id.
        id: String,
    },
    /// An id that two rows share.
    #[error(
        "{}: {first} and {second} have the same id \"{id}\"; make the ids unique or leave them out",
        path.display()
    )]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
        /// The row that has it first.
        first: FilePosition,
        /// The row that has it again.
        second: FilePosition,
    },
    /// A label that indexes no class.
    #[error(
        "{}, {place}: label {label} names no class, as `classes` has {classes} (0 to {}); correct it, or use -1 \
         for an unlabelled row",
        path.display(),
        classes.saturating_sub(1)
    )]
    LabelOutsideClasses {
        /// The file.
        path: PathBuf,
        /// The row.
        place: FilePosition,
        /// The label.
        label: i128,
        /// The number of classes.
        classes: usize,
    },
    /// Two files whose features were made by different encoders.
    #[error(
        "{} was made by the encoder \"{first_encoder}\" and {} by \"{second_encoder}\", so their features cannot \
         be compared",
        first.display(),
        second.display()
    )]
    Encoders {
        /// A file.
        first: PathBuf,
        /// The encoder of its features.
        first_encoder: String,
        /// The other file.
        second: PathBuf,
        /// The encoder of its features.
        second_encoder: String,
    },
    /// A split file that is malformed or does not fit the features.
    #[error("split {}: {problem}", path.display())]
    Split {
        /// The split file.
        path: PathBuf,
        /// What is wrong and what to do about it; names the class.
        problem: String,
    },
    /// A name that is not that of a data set.
    #[error("no data set is called \"{name}\"; there are {known}")]
    UnknownDataset {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A folder in which nothing looks like the data set.
    #[error(
        "no {title} in {}; name the folder that it was unpacked into. Looked for:{}",
        root.display(),
        lines(looked)
    )]
    NoDataset {
        /// What the data set is called.
        title: &'static str,
        /// The folder.
        root: PathBuf,
        /// Everything that was looked for.
        looked: Vec<PathBuf>,
    },
    /// A data set that lacks a file or a folder.
    #[error("{title}: {} is missing; {way_out}", path.display())]
    MissingPiece {
        /// What the data set is called.
        title: &'static str,
        /// What is missing.
        path: PathBuf,
        /// What to do about it.
        way_out: String,
    },
    /// A file that cannot be deleted.
    #[error("cannot delete {}: {source}; delete it yourself or ask its owner to", path.display())]
    Delete {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file that cannot be written, or a folder that another process has.
    #[error(transparent)]
    File(#[from] FileError),
}

impl DataError {
    /// What is wrong with a row, without the file and the place in it.
    pub(crate) fn of_row(&self) -> String {
        match self {
            DataError::MalformedRow { problem, .. } => problem.clone(),
            DataError::Dimension { expected, found, .. } => format!("{found} features where {expected} are needed"),
            DataError::NotFinite { column, value, .. } => format!("{column} is {value} as a 32-bit float"),
            DataError::ZeroRow { .. } => "all features are zero".to_owned(),
            other => other.to_string(),
        }
    }

    /// What a failed write means, with the way out where there is a common one.
    pub(crate) fn write(target: impl fmt::Display, source: io::Error) -> Self {
        FileError::write(target, source).into()
    }
}

/// Paths, each on a line of its own.
fn lines(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("\n  {}", path.display())).collect()
}
