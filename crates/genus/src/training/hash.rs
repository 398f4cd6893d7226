//! What a run that learns codes gives besides its encoder: the head that makes them.

use std::path::Path;

use genus_files::FileError;
use genus_vision::train::{HashHead, HashTrainer, Trainer};

use super::{CONFIG, Objective, TrainingError, checkpoint, read_config, trained_encoder};

const NAME: &str = "hash.safetensors";

/// Writes the head of a run into its folder.
pub(crate) fn save(folder: &Path, trainer: &Trainer, step: u64) -> Result<(), TrainingError> {
    checkpoint::save_tensors(&folder.join(NAME), trainer.head(), step)
}

/// The head that gives the codes of a training run in a folder; `None` when the path is not a folder of a run that learns codes.
pub fn trained_hash(folder: impl AsRef<Path>) -> Result<Option<HashHead>, TrainingError> {
    let folder = folder.as_ref();
    let config = folder.join(CONFIG);
    if !config.exists() || read_config(&config)?.settings.objective != Objective::Hash {
        return Ok(None);
    }
    // It says so when the run is not complete.
    trained_encoder(folder)?;
    load_head(&folder.join(NAME)).map(Some)
}

/// Reads a head.
pub fn load_head(path: &Path) -> Result<HashHead, TrainingError> {
    let (tensors, _) = checkpoint::load_tensors(path)?;
    HashHead::new(tensors).map_err(|e| checkpoint::damaged(path, e.to_string()))
}

/// Writes a head that was trained on features, with the folders above it.
pub fn save_head(path: &Path, trainer: &HashTrainer) -> Result<(), TrainingError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| FileError::write(folder.display(), e))?;
    }
    checkpoint::save_tensors(path, trainer.tensors(), 0)
}
