//! What a run knows beside the encoder: how far images of one class lie apart in its features.

use std::path::{Path, PathBuf};

use genus_core::{Calibration, CalibrationSettings};
use genus_data::{CalibrationOrigin, write_calibration};
use genus_files::FileError;
use genus_vision::train::Trainer;
use genus_vision::{Encoder, EncoderSpec, NetworkEncoder};

use super::data::TrainingData;
use super::validation::features;
use super::{TrainingError, TrainingSettings};

const FILE: &str = "calibration.safetensors";

/// Classes that the encoder was not trained on are like those to come; fewer than this say too little by themselves.
const ENOUGH_HELD_OUT: usize = 16;
/// Images of a class at most: more of them would say the same.
const IMAGES_OF_A_CLASS: usize = 40;

/// Writes the calibration of a finished encoder into the folder of its run; the number of classes that it was learnt from, or
/// `None` where there are too few to learn from.
pub(crate) fn save(
    folder: &Path,
    data: &TrainingData,
    settings: &TrainingSettings,
    spec: &EncoderSpec,
    trainer: &Trainer,
) -> Result<Option<usize>, TrainingError> {
    let held_out = data
        .validation
        .as_ref()
        .filter(|pool| pool.classes().len() >= ENOUGH_HELD_OUT);
    let mut items = Vec::new();
    let mut labels = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for (at, item) in data.items.iter().enumerate() {
        let Some(label) = &item.label else { continue };
        if held_out.is_some_and(|pool| !pool.classes().contains(label)) {
            continue;
        }
        let number = counts.len();
        let (class, count) = counts.entry(label).or_insert((number, 0usize));
        if *count < IMAGES_OF_A_CLASS {
            *count += 1;
            items.push(at);
            labels.push(*class);
        }
    }
    let encoder = NetworkEncoder::new(
        *trainer.architecture(),
        spec.transform,
        trainer.weights(),
        trainer.isa(),
    )?;
    let features = features(data, &items, &encoder)?;
    let wanted = CalibrationSettings {
        seed: settings.seed,
        ..CalibrationSettings::default()
    };
    let Ok(calibration) = Calibration::fit(&features, &labels, wanted) else {
        return Ok(None);
    };
    let which = if held_out.is_some() { "held-out" } else { "base" };
    let made = CalibrationOrigin {
        encoder: Some(encoder.fingerprint().as_str().to_owned()),
        fitted_on: format!("the {which} classes of {}", settings.images.display()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: settings.seed,
    };
    let path = folder.join(FILE);
    // A link in the folder of a run is replaced and not followed.
    if path.is_symlink() {
        std::fs::remove_file(&path).map_err(|e| FileError::write(path.display(), e))?;
    }
    write_calibration(path, &calibration, &made)?;
    Ok(Some(calibration.classes()))
}

/// The calibration of the encoder in the folder of a training run, if there is one.
pub fn trained_calibration(folder: impl AsRef<Path>) -> Option<PathBuf> {
    let path = folder.as_ref().join(FILE);
    path.is_file().then_some(path)
}
