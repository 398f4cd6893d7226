//! Progress of long runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genus_data::DataError;
use genus_vision::Isa;

/// Receives the progress of a long run. Called from several threads.
pub trait Progress: Sync {
    /// A stage begins, and the previous one ends.
    fn start(&self, stage: &str, length: Length);

    /// More steps of the stage are done.
    fn advance(&self, steps: u64);

    /// The stage is over.
    fn end(&self) {}

    /// Something happened that a user may want to know.
    fn note(&self, note: &Note) {
        let _ = note;
    }

    /// One more step is done.
    fn step(&self) {
        self.advance(1);
    }
}

/// How long a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many steps.
    Steps(u64),
    /// So many bytes.
    Bytes(u64),
    /// Nobody knows.
    Unknown,
}

/// Something worth telling while a run goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Note<'a> {
    /// Images have become features.
    Embedded {
        /// How many.
        images: u64,
        /// Which augmented view of them, from 0; `None` is the images themselves.
        view: Option<u64>,
        /// How many of them were in the feature cache.
        recalled: u64,
        /// The encoder, as it was asked for.
        encoder: &'a str,
        /// What it ran on.
        isa: Option<Isa>,
        /// The running time.
        seconds: f64,
    },
    /// Images that cannot be read are missing from the result.
    Skipped(&'a [Skipped]),
    /// Pictures of formats that cannot be read are missing from the result: how many, by how their names end.
    Unsupported(&'a BTreeMap<String, u64>),
    /// Examples that were sorted with doubt are no examples.
    DoubtfulExamples {
        /// How many.
        images: u64,
    },
    /// Folders of classes have no image, so that nothing is known of these classes.
    EmptyClasses {
        /// The folder of examples.
        examples: &'a Path,
        /// The classes.
        classes: &'a [String],
    },
    /// All examples are of one class, and lie in several folders in it: these may be the classes that were meant.
    ClassOfFolders {
        /// The folder of examples.
        examples: &'a Path,
        /// The class.
        class: &'a str,
        /// How many folders.
        folders: u64,
    },
    /// Columns of a table are neither features nor anything else.
    ColumnsLeftOut {
        /// The table.
        table: &'a Path,
        /// The columns.
        columns: &'a [String],
    },
    /// Items of a pile without examples have labels, which are not used.
    UnusedLabels {
        /// The pile.
        pile: &'a Path,
        /// How many have one.
        items: u64,
    },
    /// A label reads as if it said that there is none.
    OddLabel {
        /// The label.
        label: &'a str,
        /// How many examples have it.
        examples: u64,
    },
    /// Features could not be written to the cache, and will have to be computed again.
    NotRemembered(&'a DataError),
    /// Something about a data set, such as classes without images.
    DataSet {
        /// What the data set is called.
        title: &'a str,
        /// What there is to say.
        note: &'a str,
    },
    /// The pile is too large to be clustered at once.
    TwoStep {
        /// The items of the pile.
        items: u64,
        /// How many of them are clustered.
        subset: u64,
    },
}

/// An image that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// Ignores all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _stage: &str, _length: Length) {}
    fn advance(&self, _steps: u64) {}
}
