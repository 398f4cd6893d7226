//! How well the network sorts classes that it is not trained on.

use genus_core::Features;
use genus_vision::train::Trainer;
use genus_vision::{Embedding, EncodeError, Encoder, EncoderSpec, ImageSource, NetworkEncoder, NoMemory};
use serde::{Deserialize, Serialize};

use crate::image_source;

use super::data::TrainingData;
use super::{TrainingError, TrainingSettings};
use crate::{Bench, Dataset, Experiment, Silent};

/// How well episodes of the held-out base classes are sorted by SHC, in the paper's metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The step after which they were judged.
    pub step: u64,
    /// The epoch that it ended.
    pub epoch: u64,
    /// Accuracy over all queries.
    pub all: f64,
    /// Over queries of known classes.
    pub old: f64,
    /// Over queries of new classes.
    pub new: f64,
}

/// Judges episodes of the held-out classes with the network as it is.
pub(crate) fn validate(
    data: &TrainingData,
    settings: &TrainingSettings,
    spec: &EncoderSpec,
    trainer: &Trainer,
    step: u64,
    epoch: u64,
) -> Result<Option<Validation>, TrainingError> {
    let Some(pool) = &data.validation else { return Ok(None) };
    let encoder = NetworkEncoder::new(
        *trainer.architecture(),
        spec.transform,
        trainer.weights(),
        trainer.isa(),
    )?;
    let held: Vec<usize> = (0..data.items.len())
        .filter(|&item| {
            let label = data.items[item].label.as_ref();
            label.is_some_and(|label| pool.classes().contains(label))
        })
        .collect();
    let features = features(data, &held, &encoder)?;
    let labels: Vec<Option<String>> = held.iter().map(|&item| data.items[item].label.clone()).collect();
    let dataset = Dataset::new("held-out classes", features, &labels, None)?;
    let bench = Bench {
        shape: settings.shape(),
        episodes: settings.validation_episodes,
        seed: settings.seed,
        methods: vec!["shc".into()],
        ..Bench::default()
    };
    let report = bench.run(&dataset, &Experiment::Main, &Silent)?;
    Ok(report.runs.first().map(|run| Validation {
        step,
        epoch,
        all: run.all.mean,
        old: run.old.mean,
        new: run.new.mean,
    }))
}

/// The features of some of the images.
pub(super) fn features(
    data: &TrainingData,
    items: &[usize],
    encoder: &NetworkEncoder,
) -> Result<Features, TrainingError> {
    let files: Vec<ImageSource> = items.iter().map(|&item| image_source(&data.items[item])).collect();
    let mut values = Vec::new();
    let mut broken = None;
    Embedding::default().run(encoder, &files, &NoMemory, |at, features| {
        match features {
            Ok(row) => values.extend(row),
            Err(error) => {
                broken.get_or_insert((files[at].path().to_owned(), error.to_string()));
            }
        }
        Ok::<(), EncodeError>(())
    })?;
    if let Some((path, problem)) = broken {
        return Err(TrainingError::Image { path, problem });
    }
    Features::new(encoder.dim(), values).map_err(|e| TrainingError::Setting { problem: e.to_string() })
}
