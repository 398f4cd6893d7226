//! How well the network sorts classes that it is not trained on.

use genus_core::episode::{Pile, Pool, ShortClasses};
use genus_core::methods::Shc;
use genus_core::metrics::{Accuracy, Convention, Evaluation, Summary, accuracy};
use genus_core::{Discover, DiscoverError, Features, Support, Task};
use genus_vision::train::Trainer;
use genus_vision::{Embedding, EncodeError, Encoder, EncoderSpec, ImageSource, NetworkEncoder, NoStore};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::data::TrainingData;
use super::{TrainingError, TrainingSettings};

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
    let shape = settings.shape();
    let mut classes: Vec<&String> = labels.iter().flatten().collect();
    classes.sort_unstable();
    classes.dedup();
    // Numbers in the order of numbers: class 10 comes after class 9.
    if classes.iter().all(|class| class.parse::<u64>().is_ok()) {
        classes.sort_by_key(|class| class.parse::<u64>().ok());
    }
    let cannot_draw = |source| TrainingError::Validation { source };
    let (pool, _) = Pool::new(&classes, &labels)
        .with_at_least(Pile::default().items(shape), ShortClasses::Error)
        .map_err(cannot_draw)?;
    let judge = |number: u64| -> Result<Accuracy, TrainingError> {
        let episode = pool.episode(shape, settings.seed, number).map_err(cannot_draw)?;
        let names: Vec<String> = episode.support_classes.iter().map(usize::to_string).collect();
        let found = Support::new(features.select(&episode.support), &names)
            .and_then(|support| Task::new(&support, features.select(&episode.queries)))
            .map_err(DiscoverError::from)
            .and_then(|task| Shc::default().discover(&task))
            .map_err(|source| TrainingError::Episodes { number, source })?;
        let judged = Evaluation {
            known: found.prototype_clusters(),
            clusters: found.query_clusters(),
            truth: &episode.truth,
        };
        Ok(accuracy(&judged, Convention::ALL[0]))
    };
    let judged: Vec<_> = (0..settings.validation_episodes).into_par_iter().map(judge).collect();
    // The first failure in the order of the episodes, whichever thread came to one first.
    let judged = judged.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mean = |part: fn(&Accuracy) -> f64| Summary::of(judged.iter().map(part)).mean;
    Ok(Some(Validation {
        step,
        epoch,
        all: mean(|found| found.all),
        old: mean(|found| found.old),
        new: mean(|found| found.new),
    }))
}

/// The features of some of the images.
pub(super) fn features(
    data: &TrainingData,
    items: &[usize],
    encoder: &NetworkEncoder,
) -> Result<Features, TrainingError> {
    let files: Vec<ImageSource> = items
        .iter()
        .map(|&item| &data.items[item])
        .map(|item| ImageSource::new(&item.path, item.pixels))
        .collect();
    let mut values = Vec::new();
    let mut broken = None;
    Embedding::default().run(encoder, &files, &NoStore, |at, features| {
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
