//! What can be wrong with a weights file.

use std::io;

use genus_files::FormatError;
use thiserror::Error;

/// Why a weights file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The file is in no format that is known here.
    #[error("{path}: not a weights file: {hint}")]
    UnknownFormat {
        /// The file.
        path: String,
        /// What it seems to be, and what to do.
        hint: String,
    },
    /// The file contradicts its format.
    #[error("{path}: {problem}; the file was cut off or is damaged, download or save it again")]
    Malformed {
        /// The file.
        path: String,
        /// The contradiction.
        problem: String,
    },
    /// The file is right, but in a form that is not read.
    #[error("{path}: {problem}")]
    Unsupported {
        /// The file.
        path: String,
        /// The form, and the way out.
        problem: String,
    },
    /// The pickle names a class or function that no weights need.
    #[error(
        "{path}: the file wants to run foreign code ({class}) and was not read further; save the network's \
         state_dict() alone, or convert it to .safetensors where you trust the file"
    )]
    ForeignCode {
        /// The file.
        path: String,
        /// The class or function with its module.
        class: String,
    },
    /// A tensor is of a kind that has no plain values.
    #[error("{path}: tensor {tensor:?} is {kind}; save it as a dense tensor of 16, 32 or 64-bit floats")]
    UnsupportedTensor {
        /// The file.
        path: String,
        /// The tensor.
        tensor: String,
        /// Such as `quantised`.
        kind: String,
    },
    /// A tensor has a value that is not finite.
    #[error("{path}: tensor {tensor:?} holds NaN or infinity as 32-bit floats; the network cannot be used")]
    NotFinite {
        /// The file.
        path: String,
        /// The tensor.
        tensor: String,
    },
    /// The file would grow far beyond its size when read.
    #[error("{path}: {problem}; no valid weights file does this, so reading stopped")]
    TooLarge {
        /// The file.
        path: String,
        /// What grows.
        problem: String,
    },
    /// The file is readable but has no floating-point tensors.
    #[error("{path}: no floating-point tensors in it; give the file of a network's state_dict()")]
    NoTensors {
        /// The file.
        path: String,
    },
}

/// A [`WeightsError`] that does not know yet which file it is about.
#[derive(Debug)]
pub(super) enum Problem {
    Io(io::Error),
    Unknown(&'static str),
    Malformed(String),
    Unsupported(&'static str),
    Foreign(String),
    Tensor { name: String, kind: &'static str },
    NotFinite(String),
    TooLarge(String),
    NoTensors,
}

impl Problem {
    pub(super) fn in_file(self, path: &str) -> WeightsError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => WeightsError::Io { path, source },
            Self::Unknown(hint) => WeightsError::UnknownFormat {
                path,
                hint: hint.to_owned(),
            },
            Self::Malformed(problem) => WeightsError::Malformed { path, problem },
            Self::Unsupported(problem) => WeightsError::Unsupported {
                path,
                problem: problem.to_owned(),
            },
            Self::Foreign(class) => WeightsError::ForeignCode { path, class },
            Self::Tensor { name, kind } => WeightsError::UnsupportedTensor {
                path,
                tensor: name,
                kind: kind.to_owned(),
            },
            Self::NotFinite(tensor) => WeightsError::NotFinite { path, tensor },
            Self::TooLarge(problem) => WeightsError::TooLarge { path, problem },
            Self::NoTensors => WeightsError::NoTensors { path },
        }
    }
}

impl From<FormatError> for Problem {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Io(error) => Self::Io(error),
            FormatError::Foreign(class) => Self::Foreign(class),
            FormatError::TooLarge(problem) => Self::TooLarge(problem),
            error => Self::Malformed(error.to_string()),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        FormatError::from(error).into()
    }
}
