//! Which formats of tables there are, and which of them a file is in.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::extension;

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// One array of NumPy.
    Npy,
    /// NumPy's archive of arrays.
    Npz,
    /// Tensors behind a JSON header.
    Safetensors,
    /// Values with commas, semicolons or tabs between them, and a header.
    Csv,
    /// Values with tabs between them, and a header.
    Tsv,
    /// A JSON object a line.
    Jsonl,
    /// Parquet.
    Parquet,
    /// Arrow IPC, as a file (Feather) or as a stream.
    Arrow,
}

/// How the names of files end, and what that says; the first of a format is its name.
const ENDINGS: [(&str, TableFormat); 11] = [
    ("npy", TableFormat::Npy),
    ("npz", TableFormat::Npz),
    ("safetensors", TableFormat::Safetensors),
    ("csv", TableFormat::Csv),
    ("tsv", TableFormat::Tsv),
    ("jsonl", TableFormat::Jsonl),
    ("ndjson", TableFormat::Jsonl),
    ("parquet", TableFormat::Parquet),
    ("arrow", TableFormat::Arrow),
    ("feather", TableFormat::Arrow),
    ("ipc", TableFormat::Arrow),
];

impl TableFormat {
    /// The format that a name says, but for `.gz` at its end; of a compressed file only a text is one.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match is_gzip(path) {
            false => Self::by_ending(&extension(path)),
            true => Self::by_ending(&extension(Path::new(path.file_stem()?))).filter(|format| format.is_text()),
        }
    }

    fn by_ending(ending: &str) -> Option<Self> {
        let found = ENDINGS.iter().find(|(known, _)| *known == ending);
        found.map(|(_, format)| *format)
    }

    /// Whether it is read a line at a time.
    pub fn is_text(self) -> bool {
        matches!(self, TableFormat::Csv | TableFormat::Tsv | TableFormat::Jsonl)
    }
}

/// Whether a name says that the file is compressed with gzip.
pub(crate) fn is_gzip(path: &Path) -> bool {
    extension(path) == "gz"
}

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ENDINGS.iter().find(|(_, format)| format == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// A word that names no format of tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a table format; there are csv, tsv, jsonl, parquet, arrow, npy, npz and safetensors")]
pub struct ParseTableFormatError(String);

impl FromStr for TableFormat {
    type Err = ParseTableFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let word = text.trim_start_matches('.').to_ascii_lowercase();
        Self::by_ending(&word).ok_or_else(|| ParseTableFormatError(text.to_owned()))
    }
}
