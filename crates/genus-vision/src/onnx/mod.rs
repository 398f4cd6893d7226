//! Networks of any kind in files of ONNX: what such a file says of its network, what the settings beside it say, and, with the cargo
//! feature `onnx`, the network itself.

mod model;
#[cfg(feature = "onnx")]
mod session;
mod settings;

use std::path::PathBuf;

use thiserror::Error;

pub use model::{OnnxLength, OnnxModel, OnnxValue};
#[cfg(feature = "onnx")]
pub use session::OnnxEncoder;
pub use settings::{OnnxPooling, OnnxSettings};

/// The variable that names the library of ONNX Runtime.
const LIBRARY: &str = "ORT_DYLIB_PATH";

/// Why a model cannot be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing says what images the network takes.
    #[error(
        "{} is missing, which says what images {} takes; write for example\n  size = 224\n  \
         mean = [0.485, 0.456, 0.406]\n  std = [0.229, 0.224, 0.225]",
        settings.display(),
        model.display()
    )]
    NoSettings {
        /// The file that is missing.
        settings: PathBuf,
        /// The model.
        model: PathBuf,
    },
    /// The settings make no sense.
    #[error("{}: {problem}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The library is not there.
    #[error(
        "ONNX Runtime cannot be loaded: {problem}\nInstall it, for example with `pip install onnxruntime`, and name its library in \
         {LIBRARY}, as in\n  {LIBRARY}=…/site-packages/onnxruntime/capi/libonnxruntime.so.1.22.0"
    )]
    Library {
        /// What the system said.
        problem: String,
    },
    /// The model cannot be run.
    #[error("{}: {problem}", model.display())]
    Model {
        /// The model.
        model: PathBuf,
        /// What is wrong.
        problem: String,
    },
}
