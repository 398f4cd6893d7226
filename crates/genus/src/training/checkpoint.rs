//! A checkpoint of a training run, in one file that is replaced atomically.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use genus_files::{AtomicFile, MAX_TENSORS, read_whole};
use genus_vision::train::Trainer;
use genus_vision::{Tensor, Weights, read_weights_from, to_safetensors};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use super::TrainingError;

const NAME: &str = "checkpoint.safetensors";

/// What the header says besides the tensors.
#[derive(Serialize, Deserialize)]
struct CheckpointHeader {
    /// Steps that were taken.
    step: u64,
    /// The hash of all tensors: a file may be whole and still have lost a bit.
    tensors: String,
}

/// Where the checkpoint of a run is.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Replaces the checkpoint; when that fails, the one before is still there.
pub(crate) fn save(folder: &Path, trainer: &Trainer, step: u64) -> Result<(), TrainingError> {
    save_tensors(&path(folder), trainer.state(), step)
}

/// Brings a trainer to where the checkpoint of its run was written; the number of steps taken until then.
pub(crate) fn restore(folder: &Path, trainer: &mut Trainer) -> Result<u64, TrainingError> {
    let path = path(folder);
    let (state, step) = load_tensors(&path)?;
    trainer.restore(state).map_err(|e| damaged(&path, e.to_string()))?;
    Ok(step)
}

/// Writes the tensors of a run as they are after a step.
pub(crate) fn save_tensors(path: &Path, tensors: BTreeMap<String, Tensor>, step: u64) -> Result<(), TrainingError> {
    let state = Weights {
        tensors,
        ..Weights::default()
    };
    let about = CheckpointHeader {
        step,
        tensors: state.hash().to_hex().to_string(),
    };
    let about = serde_json::to_string(&about).expect("a number and a text have a JSON form");
    write(path, &to_safetensors(&state.tensors, &about))
}

/// Reads the tensors of a run and the step after which they were written.
pub(crate) fn load_tensors(path: &Path) -> Result<(BTreeMap<String, Tensor>, u64), TrainingError> {
    let damaged = |problem: String| damaged(path, problem);
    let bytes = read_whole(path, MAX_TENSORS).map_err(|source| TrainingError::Read {
        path: path.to_owned(),
        source,
    })?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
    let words = header.metadata().as_ref().and_then(|words| words.get("genus"));
    let words = words.ok_or_else(|| damaged("it does not say at which step it was written".into()))?;
    let about: CheckpointHeader = serde_json::from_str(words).map_err(|e| damaged(e.to_string()))?;
    let state = read_weights_from(Cursor::new(bytes), &path.display().to_string());
    let state = state.map_err(|e| damaged(e.to_string()))?;
    if state.hash().to_hex().as_str() != about.tensors {
        return Err(damaged("its values are not those that were written".into()));
    }
    Ok((state.tensors, about.step))
}

/// A file of a run that cannot be used.
pub(crate) fn damaged(path: &Path, problem: String) -> TrainingError {
    TrainingError::Checkpoint {
        path: path.to_owned(),
        problem,
    }
}

/// Writes a file as a whole.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), TrainingError> {
    let mut file = AtomicFile::create_own(path)?;
    file.append(bytes)?;
    Ok(file.commit()?)
}
