//! The paper's experiments, as runs that give tables and JSON.
//!
//! A [`Dataset`] is a feature file and the classes that episodes are drawn from. An [`Experiment`] run on it gives a
//! [`BenchReport`], which is printed as Markdown or written as JSON. Nothing here writes to a terminal: progress goes to a
//! [`Progress`].
//!
//! ```
//! use genus_core::{Features, episode::Shape};
//! use genus_lab::{Bench, BenchMethod, Dataset, Experiment};
//!
//! // Six classes of four items each, around six directions.
//! let rows = (0..24).map(|i| {
//!     let mut row = [0.1f32; 6];
//!     row[i % 6] = 1.0 + 0.01 * i as f32;
//!     row
//! });
//! let labels: Vec<_> = (0..24).map(|i| Some(format!("class {}", i % 6))).collect();
//! let data = Dataset::new("directions", Features::from_rows(rows)?, &labels, None)?;
//!
//! let bench = Bench {
//!     shape: Shape { way: 2, shot: 1, new: 2, query: 3 },
//!     episodes: 10,
//!     methods: BenchMethod::list(["proto", "shc"])?,
//!     ..Bench::default()
//! };
//! let report = bench.run(&data, &Experiment::Main, &genus_lab::Silent)?;
//! assert_eq!(report.runs[0].old.mean, 1.0);
//! println!("{}", report.markdown());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A method of your own is one more row of such a table: `examples/own_method.rs`.

mod baselines;
mod calibrations;
mod charts;
mod contender;
mod contest;
mod counts;
mod dataset;
mod digits;
mod emoji;
mod exchange;
mod experiment;
pub mod figures;
mod key;
mod machine;
mod paper;
mod piles;
mod plot;
mod report;
mod source;
mod streams;
mod study;
mod trial;

use thiserror::Error;

pub use baselines::{
    BASELINES, CodeRadius, Ocd, OcdError, OcdTraining, SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit,
    SimGcdTrainer, SupportCode, train_on_features,
};
pub use charts::Figure;
pub use contender::BenchMethod;
pub use contest::ScoredMethod;
pub use counts::DatasetCounts;
pub use dataset::{ClassLists, Dataset, ImageRows};
pub use digits::DigitsTask;
pub use emoji::{EmojiFolders, EmojiPile};
pub use exchange::{EpisodeSet, ExportedEpisode, PredictedLabel, Prediction, read_predictions};
pub use experiment::{Bench, Experiment, ExperimentKind, LargeSettings};
pub use genus::{Length, Progress, Silent};
pub use machine::Machine;
pub use paper::{CellPlace, PaperCell, PaperCounts, paper_cell, paper_counts};
pub use piles::{PileSettings, PileVariable};
pub use report::{
    AccuracySummary, BenchReport, Categories, ConfidenceReport, EpisodeFigures, Interval, NoveltyDetection,
    OtherMetrics, PileReport, Run, Settings, StreamReport, TailReport, TradeOff, UnsureShares, figures_page,
};
pub use source::{DataInput, DataSource, EmbeddingOptions};
pub use streams::StreamSettings;
pub use study::{ALPHAS, QUERIES, Study, THRESHOLDS};

/// Why an experiment cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// The files cannot be used.
    #[error(transparent)]
    Data(#[from] genus_data::DataError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] genus_files::FileError),
    /// What the machine is cannot be read.
    #[error("cannot learn what machine this is: {0}")]
    Machine(#[source] std::io::Error),
    /// Images cannot become features, or a training cannot be used.
    #[error(transparent)]
    Pipeline(Box<genus::Error>),
    /// An image without a label, where every one needs one.
    #[error(
        "{}: the image {id} has no label; put the images of each class into a folder of its name, or name their classes in a \
         manifest with the columns path and label",
        images.display()
    )]
    UnlabelledImage {
        /// The folder or manifest.
        images: std::path::PathBuf,
        /// The image.
        id: String,
    },
    /// A folder that is not that of a training of OCD.
    #[error("{} is not a training run of OCD", run.display())]
    NoHead {
        /// The folder.
        run: std::path::PathBuf,
    },
    /// The data cannot give such episodes.
    #[error("{data}: {source}")]
    Episode {
        /// The data set.
        data: String,
        /// What is wrong.
        source: genus_core::episode::EpisodeError,
        /// Whether a long tail was asked for.
        tail: bool,
    },
    /// An experiment has no use for a tail or outliers.
    #[error("{experiment}: {problem}")]
    Pile {
        /// The experiment.
        experiment: ExperimentKind,
        /// Why it has none.
        problem: &'static str,
    },
    /// A method is not known or wrongly set.
    #[error(transparent)]
    Method(#[from] genus_core::methods::MethodError),
    /// A method failed.
    #[error("{method}, episode {episode}: {source}")]
    Discover {
        /// The method.
        method: String,
        /// The number of the episode, from zero.
        episode: u64,
        /// What is wrong.
        source: genus_core::DiscoverError,
    },
    /// A method learns from base classes, and there are none.
    #[error("{data}: {method}: {problem}")]
    NoBaseClasses {
        /// The data set.
        data: String,
        /// The method.
        method: String,
        /// What is wrong.
        problem: String,
    },
    /// A baseline trains a network, and there are no images.
    #[error("{data}: {method}: to train blocks of a network it needs images")]
    NoImages {
        /// The data set.
        data: String,
        /// The method.
        method: String,
    },
    /// A baseline cannot be trained on a data set.
    #[error("{data}: {method}: {problem}")]
    Learning {
        /// The data set.
        data: String,
        /// The method.
        method: String,
        /// What is wrong.
        problem: String,
    },
    /// A baseline failed.
    #[error("{method}, episode {episode}: {problem}")]
    Baseline {
        /// The method.
        method: String,
        /// The number of the episode, from zero.
        episode: u64,
        /// What is wrong.
        problem: String,
    },
    /// The features have no labels.
    #[error("{data}: no row has a label, and without labels nothing can be scored")]
    NoLabels {
        /// The data set.
        data: String,
    },
    /// Nothing is left to run.
    #[error("{data}: {reason}")]
    NothingToRun {
        /// The data set.
        data: String,
        /// Why.
        reason: String,
    },
}

impl From<genus::Error> for LabError {
    fn from(error: genus::Error) -> Self {
        LabError::Pipeline(Box::new(error))
    }
}

impl From<genus::training::TrainingError> for LabError {
    fn from(error: genus::training::TrainingError) -> Self {
        genus::Error::from(error).into()
    }
}
