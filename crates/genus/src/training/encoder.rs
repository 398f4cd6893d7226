//! What a training run gives: an encoder like those that have a name.

use std::path::{Path, PathBuf};

use genus_files::read_text;
use genus_vision::{EncoderSpec, Weights, to_safetensors};
use serde::{Deserialize, Serialize};

use super::TrainingError;
use super::checkpoint::write;

const TOML: &str = "encoder.toml";
const WEIGHTS: &str = "encoder.safetensors";
const FORMAT: &str = "genus encoder 1";

#[derive(Serialize, Deserialize)]
struct EncoderFile {
    format: String,
    /// The architecture and the transform, as on the command line.
    encoder: String,
    /// The file of the weights, beside this one.
    weights: String,
}

/// Writes the encoder of a run into its folder.
pub(crate) fn save(folder: &Path, spec: &EncoderSpec, weights: &Weights) -> Result<(), TrainingError> {
    write(
        &folder.join(WEIGHTS),
        &to_safetensors(&weights.tensors, &spec.to_string()),
    )?;
    let file = EncoderFile {
        format: FORMAT.to_owned(),
        encoder: spec.to_string(),
        weights: WEIGHTS.to_owned(),
    };
    let text = toml::to_string(&file).expect("three texts have a TOML form");
    write(&folder.join(TOML), text.as_bytes())
}

/// The encoder in the folder of a training run and the file of its weights; `None` when the path is not a folder.
pub fn trained_encoder(folder: impl AsRef<Path>) -> Result<Option<(EncoderSpec, PathBuf)>, TrainingError> {
    let folder = folder.as_ref();
    if !folder.is_dir() {
        return Ok(None);
    }
    let path = folder.join(TOML);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(_) if folder.join(super::CONFIG).exists() => {
            return Err(TrainingError::Unfinished {
                folder: folder.to_owned(),
            });
        }
        Err(source) => return Err(TrainingError::Read { path, source }),
    };
    let damaged = |problem: String| TrainingError::Settings {
        path: path.clone(),
        problem,
    };
    let file: EncoderFile = toml::from_str(&text).map_err(|e| damaged(e.message().to_owned()))?;
    if file.format != FORMAT {
        return Err(damaged(format!(
            "it is a `{}`, and this release reads `{FORMAT}`",
            file.format
        )));
    }
    let spec = EncoderSpec::parse(&file.encoder).map_err(|e| damaged(e.to_string()))?;
    Ok(Some((spec, folder.join(file.weights))))
}
