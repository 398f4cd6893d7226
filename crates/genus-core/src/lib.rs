//! Features in, categories out.
//!
//! From a few labelled examples of *some* classes and a pile of unlabelled queries, a [method](methods) says which queries
//! belong to the known classes and sorts the rest into new groups, without being told how many there are.
//!
//! ```
//! use genus_core::{Category, Discover, Features, Support, Task, methods::Shc};
//!
//! // Two known classes with two examples each …
//! let examples = Features::from_rows([[1.0, 0.4, 0.0], [1.0, 0.6, 0.0], [0.4, 1.0, 0.0], [0.6, 1.0, 0.0]])?;
//! let support = Support::new(examples, &["cat", "cat", "dog", "dog"])?;
//! // … and five things to sort, of which three are neither.
//! let queries = Features::from_rows([
//!     [0.9, 0.4, 0.1],
//!     [0.0, 0.1, 1.0],
//!     [0.4, 0.9, 0.0],
//!     [0.1, 0.0, 1.0],
//!     [0.0, 0.0, 1.0],
//! ])?;
//!
//! let discovery = Shc::default().discover(&Task::new(&support, queries)?)?;
//! use Category::{Known, Novel};
//! assert_eq!(discovery.categories(), [Known(0), Novel(0), Known(1), Novel(0), Novel(0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate is pure: it touches no files, no clock and no global state, and the same input and seed give the same bits
//! at any number of threads.

mod brent;
mod calibration;
mod choice;
mod cluster;
mod discovery;
pub mod eigen;
pub mod episode;
mod error;
pub mod explain;
mod features;
mod linalg;
mod matching;
pub mod methods;
pub mod metrics;
pub mod projection;
pub mod ranges;
mod real_time;
pub mod rng;
mod scenes;
mod stream;
mod task;
mod taxonomy;
mod two_step;

pub use calibration::{
    Calibration, CalibrationParts, CalibrationSettings, Centre, Eagerness, Knowledge, MergeTree, Source,
};
pub use discovery::{Category, Discovery, Kind, Score, Stop};
pub use error::{CalibrationError, DiscoverError, FeatureError, ParameterError, TaskError, TaxonomyError};
pub use features::{Features, FeaturesView};
pub use methods::Discover;
pub use real_time::{RealTime, Rule};
pub use scenes::{ExampleIndex, Scenes, scenes};
pub use stream::{Observation, Stream, StreamParts, StreamPlace};
pub use task::{Prototypes, Support, Task};
pub use taxonomy::{Assignment, PartialSums, Refinement, Taxonomy, TaxonomyEntry};
pub use two_step::{Blocks, CentreNorm, Sample, Selection, Subset, TwoStep};
