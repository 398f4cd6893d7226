//! Where the weights of an encoder are.

use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::{Weights, WeightsError, read_weights, read_weights_from};

/// What the weights built into this program are called where a file is named.
const EMBEDDED: &str = "embedded";

/// Where the weights of an encoder are read from.
///
/// As a text it is `embedded` or the path of the file, and [`recorded`](Self::recorded) reads that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsSource {
    /// Built into this program.
    Embedded,
    /// A file.
    File(PathBuf),
}

impl WeightsSource {
    /// The source that a settings file has as a text. Paths in such files are absolute.
    pub fn recorded(path: &Path) -> Self {
        match path == Path::new(EMBEDDED) {
            true => Self::Embedded,
            false => Self::File(path.to_owned()),
        }
    }

    /// The text for a settings file.
    pub fn to_record(&self) -> PathBuf {
        match self {
            Self::Embedded => PathBuf::from(EMBEDDED),
            Self::File(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        }
    }

    /// Reads the weights.
    pub fn read(&self) -> Result<Weights, WeightsError> {
        match self {
            Self::Embedded => read_weights_from(Cursor::new(embedded()), "the embedded weights"),
            Self::File(path) => read_weights(path),
        }
    }
}

#[cfg(feature = "embedded")]
fn embedded() -> &'static [u8] {
    genus_lite2::WEIGHTS
}

/// The catalogue has no encoder with embedded weights then; a settings file may still name them.
#[cfg(not(feature = "embedded"))]
fn embedded() -> &'static [u8] {
    &[]
}

impl<P: AsRef<Path> + ?Sized> From<&P> for WeightsSource {
    fn from(path: &P) -> Self {
        Self::File(path.as_ref().to_owned())
    }
}

impl From<PathBuf> for WeightsSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for WeightsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("the embedded weights"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
