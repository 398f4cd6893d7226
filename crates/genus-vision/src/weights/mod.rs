//! The tensors of a weights file, by name.

use std::collections::BTreeMap;
use std::path::Path;

use thiserror::Error;

/// A dense tensor of 32-bit floats, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The length of every dimension.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Vec<f32>,
}

/// The tensors of a file under the names that they have there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// The tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Why a weights file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Not there yet.
    #[error("{path}: unknown format")]
    UnknownFormat {
        /// The file.
        path: String,
    },
}

/// Reads the floating-point tensors of a `.safetensors` or PyTorch file.
pub fn read_weights(path: impl AsRef<Path>) -> Result<Weights, WeightsError> {
    Err(WeightsError::UnknownFormat {
        path: path.as_ref().display().to_string(),
    })
}
