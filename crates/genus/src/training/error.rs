//! Why a training run cannot go on.

use std::io;
use std::path::PathBuf;

use genus_core::DiscoverError;
use genus_core::episode::EpisodeError;
use genus_data::DataError;
use genus_files::FileError;
use genus_vision::train::TrainError;
use genus_vision::{ArchitectureError, EncodeError, IsaError, SpecError, WeightsError};
use thiserror::Error;

use super::CONFIG;

/// Why a training run cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// The files cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the run cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The images have no labels.
    #[error(
        "{data}: no image has a label; put the images of each class into a folder of its name, or name their classes in a manifest"
    )]
    NoLabels {
        /// The images.
        data: String,
    },
    /// The base classes cannot give an episode.
    #[error("{data}: {source}")]
    Episode {
        /// The images.
        data: String,
        /// What is wrong.
        source: EpisodeError,
    },
    /// The base classes that are left cannot give an episode.
    #[error("{data}: {source}, as {held} are held out for validation")]
    AfterHoldingOut {
        /// The images.
        data: String,
        /// What is wrong.
        source: EpisodeError,
        /// How many classes are held out.
        held: usize,
    },
    /// The base classes have too few images for a batch.
    #[error("{data}: a batch takes {needed} images, and there are {found} to train on")]
    TooFewImages {
        /// The images.
        data: String,
        /// Images of a batch.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// The held-out classes cannot give an episode.
    #[error("validation: {source}")]
    Validation {
        /// What is wrong.
        source: EpisodeError,
    },
    /// An image that could be read cannot be any more.
    #[error("{}: {problem}", path.display())]
    Image {
        /// The image.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A setting that makes no sense.
    #[error("{problem}")]
    Setting {
        /// What is wrong.
        problem: String,
    },
    /// The encoder is not known.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The weights are those of something else.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The frozen blocks cannot run as asked for.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The network cannot be trained like this.
    #[error(transparent)]
    Train(TrainError),
    /// The loss is not finite.
    #[error("the loss of step {step} is {loss}; the last good state, after step {saved}, is kept in {}", folder.display())]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f64,
        /// The step of the last checkpoint.
        saved: u64,
        /// The run.
        folder: PathBuf,
    },
    /// Features could not be made.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An episode of the held-out classes cannot be sorted.
    #[error("validation: shc, episode {number}: {source}")]
    Episodes {
        /// The number of the episode, from zero.
        number: u64,
        /// What is wrong.
        source: DiscoverError,
    },
    /// A file of settings that cannot be understood.
    #[error("{}: {problem}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The folder has no run.
    #[error("there is no training run in {}: it has no {CONFIG}", folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a run of the same settings.
    #[error("{} already contains this run", folder.display())]
    Begun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a run of other settings.
    #[error("{} contains a run with other settings ({})", folder.display(), differences.join(", "))]
    OtherSettings {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        differences: Vec<String>,
    },
    /// What the run depends on is not what it was.
    #[error("{}: {what} not those that the run started with; restore them, or start another run", folder.display())]
    Changed {
        /// The folder.
        folder: PathBuf,
        /// What has changed, and `are`.
        what: &'static str,
    },
    /// A checkpoint that cannot be gone on from.
    #[error("{} is damaged: {problem}; restore a copy, or start again in another folder", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A run without an encoder yet.
    #[error("the training in {} is not complete", folder.display())]
    Unfinished {
        /// The folder.
        folder: PathBuf,
    },
}

impl From<TrainError> for TrainingError {
    fn from(error: TrainError) -> Self {
        TrainingError::Train(error)
    }
}
