//! What a format gives to the checks that all formats share.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use genus_files::FormatError;

use crate::error::{DataError, FilePosition};

/// A format's reader.
pub(super) trait TableSource: Send {
    /// The number of features of every row.
    fn dim(&self) -> usize;

    /// The number of rows, when the format says so up front.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// Rows of the file before those that are read.
    fn before(&self) -> u64 {
        0
    }

    /// The names of the integers of the labels.
    fn class_names(&self) -> Option<&[String]> {
        None
    }

    /// Which encoder made the features, when the file says so.
    fn encoder(&self) -> Option<&str> {
        None
    }

    /// Columns that are no features, though somebody might have meant them so.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// What the file calls a feature.
    fn column_name(&self, _feature: usize) -> Option<&str> {
        None
    }

    /// The next rows: between one and `max_rows`, or `None` at the end.
    fn next_block(&mut self, max_rows: usize) -> Result<Option<RowBlock>, DataError>;
}

/// Rows of equal length as they stand in a file.
#[derive(Default)]
pub(super) struct RowBlock {
    /// Row after row.
    pub(super) values: Vec<f32>,
    /// `None` when the file has no ids.
    pub(super) ids: Option<Vec<String>>,
    /// One for each row, or none at all when the file has no labels.
    pub(super) labels: Vec<Option<String>>,
    /// The line each row begins in, for text formats only.
    pub(super) lines: Vec<u64>,
    /// Rows that cannot be used and why, in ascending order. Something stands in their place everywhere else.
    pub(super) refused: Vec<(usize, DataError)>,
}

/// What is done with rows that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BadRows {
    /// The first of them is an error.
    #[default]
    Refuse,
    /// They are left out, and what is wrong with them can be asked for.
    SetAside {
        /// Features of every row that can be used.
        features: usize,
    },
}

impl BadRows {
    /// Whether reading goes on behind an error: one of a row, and not of the file, where rows are set aside.
    pub(super) fn go_on(self, error: &DataError) -> bool {
        let of_a_row = matches!(error, DataError::MalformedRow { .. } | DataError::Dimension { .. });
        self != BadRows::Refuse && of_a_row
    }

    /// The number of features that the first row says, or where that cannot be used, the number that is needed.
    pub(super) fn dim(self, first: Result<usize, DataError>) -> Result<usize, DataError> {
        match (first, self) {
            (Err(error), BadRows::SetAside { features }) if self.go_on(&error) => Ok(features),
            (first, _) => first,
        }
    }

    /// Appends what stands for a row that is set aside.
    pub(super) fn fill(self, values: &mut Vec<f32>) {
        if let BadRows::SetAside { features } = self {
            values.resize(values.len() + features, f32::NAN);
        }
    }
}

/// The path that stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// The file that errors name.
#[derive(Clone)]
pub(crate) struct FileOrigin {
    /// What it is called.
    pub(crate) path: PathBuf,
    /// Where it is.
    file: PathBuf,
    is_standard_input: bool,
}

impl FileOrigin {
    pub(crate) fn new(path: &Path) -> Self {
        match path.as_os_str() == STANDARD_INPUT {
            false => Self {
                path: path.to_owned(),
                file: path.to_owned(),
                is_standard_input: false,
            },
            true => Self {
                path: "the standard input".into(),
                file: path.to_owned(),
                is_standard_input: true,
            },
        }
    }

    /// The same by another name, if there is one.
    pub(crate) fn called(self, name: Option<&Path>) -> Self {
        match name {
            Some(name) => Self {
                path: Self::new(name).path,
                ..self
            },
            None => self,
        }
    }

    /// Where it is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn is_standard_input(&self) -> bool {
        self.is_standard_input
    }

    pub(crate) fn io(&self, source: io::Error) -> DataError {
        DataError::Read {
            path: self.path.clone(),
            source,
        }
    }

    /// What is wrong with a container, in words that `explain` makes of the problem.
    pub(crate) fn format(&self, error: FormatError, explain: impl FnOnce(&str) -> String) -> DataError {
        match error {
            FormatError::Io(source) => self.io(source),
            error => self.malformed(explain(&error.to_string())),
        }
    }

    pub(crate) fn malformed(&self, problem: impl Display) -> DataError {
        DataError::Malformed {
            path: self.path.clone(),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn row(&self, place: FilePosition, problem: impl Display) -> DataError {
        DataError::MalformedRow {
            path: self.path.clone(),
            place,
            problem: problem.to_string(),
        }
    }

    pub(super) fn dimension(&self, place: FilePosition, expected: usize, found: usize) -> DataError {
        DataError::Dimension {
            path: self.path.clone(),
            place,
            expected,
            found,
        }
    }
}
