//! Feature files on their way out: rows come block by block, the file appears when it is finished.

mod arrays;
mod parquet;
mod text;

use std::io;
use std::path::{Path, PathBuf};

use super::source::FileOrigin;
use super::{Magnitude, REMEMBERED_IDS, SeenIds, extension, largest_magnitude};
use crate::error::{DataError, FilePosition};
use arrays::{NpzSink, SafetensorsSink};
use genus_files::{AtomicFile, FileError};
use parquet::ParquetSink;
use text::{CsvSink, JsonlSink};

/// Writes a feature file of the format that its name says, in memory that does not grow with the number of rows.
///
/// What it writes [`read_table`](super::read_table) reads back bit for bit: rows that a reader would refuse are refused
/// here. Nothing appears at the path before [`finish`](Self::finish); dropped before, the writer leaves no trace.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("animals.parquet");
/// let mut writer = genus_data::FeatureWriter::create(&path, 2, Some("squares 1"), true)?;
/// writer.write(&["rex".to_owned()], &[Some("dog".to_owned())], &[0.9, 0.1])?;
/// assert_eq!(writer.finish()?, 1);
///
/// let file = genus_data::read_table(&path)?;
/// assert_eq!(file.encoder.as_deref(), Some("squares 1"));
/// assert_eq!(file.table.features.row(0), [0.9, 0.1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FeatureWriter {
    origin: FileOrigin,
    sink: Box<dyn Sink>,
    dim: usize,
    with_labels: bool,
    rows: u64,
    seen: SeenIds,
}

/// What a file holds besides its rows.
struct TableShape {
    path: PathBuf,
    dim: usize,
    encoder: Option<String>,
    with_labels: bool,
}

/// One row on its way out.
struct RowOut<'a> {
    id: &'a str,
    /// Always `None` in a file without labels.
    label: Option<&'a str>,
    values: &'a [f32],
}

/// A format's writer.
trait Sink: Send {
    /// What of this row the format cannot hold, with the way out.
    fn refuses(&self, _row: &RowOut) -> Option<&'static str> {
        None
    }

    fn write(&mut self, row: &RowOut) -> io::Result<()>;

    /// Writes what is still held back; gives the whole file.
    fn finish(self: Box<Self>) -> io::Result<AtomicFile>;
}

impl FeatureWriter {
    /// Begins a feature file with rows of `dim` features; `encoder` is one line of text that says what made them.
    pub fn create(
        path: impl AsRef<Path>,
        dim: usize,
        encoder: Option<&str>,
        with_labels: bool,
    ) -> Result<Self, DataError> {
        Self::begin(path.as_ref(), dim, encoder, with_labels, AtomicFile::create)
    }

    /// The same in a folder that is ours: a link in its place is replaced and not followed, as it may lead anywhere.
    pub fn create_own(
        path: impl AsRef<Path>,
        dim: usize,
        encoder: Option<&str>,
        with_labels: bool,
    ) -> Result<Self, DataError> {
        Self::begin(path.as_ref(), dim, encoder, with_labels, AtomicFile::create_own)
    }

    fn begin<'a>(
        path: &'a Path,
        dim: usize,
        encoder: Option<&str>,
        with_labels: bool,
        create: fn(&'a Path) -> Result<AtomicFile, FileError>,
    ) -> Result<Self, DataError> {
        let origin = FileOrigin::new(path);
        if dim == 0 {
            return Err(DataError::NoFeatures { path: origin.path });
        }
        if encoder.is_some_and(|text| text.trim().is_empty() || text.contains(['\n', '\r', '\0'])) {
            return Err(origin.malformed("the encoder's mark must be one line of text that is not empty"));
        }
        let shape = TableShape {
            path: path.to_owned(),
            dim,
            encoder: encoder.map(str::to_owned),
            with_labels,
        };
        type Starter = fn(TableShape, AtomicFile) -> Result<Box<dyn Sink>, DataError>;
        let start: Starter = match extension(path).as_str() {
            "npz" => NpzSink::start,
            "safetensors" => SafetensorsSink::start,
            "csv" => CsvSink::start,
            "jsonl" | "ndjson" => JsonlSink::start,
            "parquet" => ParquetSink::start,
            "npy" => {
                return Err(origin.malformed("a .npy file cannot hold the ids of its rows; write an .npz file instead"));
            }
            _ => return Err(DataError::UnknownFormat { path: origin.path }),
        };
        let sink = start(shape, create(path)?)?;
        Ok(Self {
            origin,
            sink,
            dim,
            with_labels,
            rows: 0,
            seen: SeenIds::new(REMEMBERED_IDS),
        })
    }

    /// Writes rows: an id, a label and `dim` features each. A writer without labels wants no labels or ignores them.
    ///
    /// After an error the file cannot be finished as it should be; drop the writer.
    pub fn write(&mut self, ids: &[String], labels: &[Option<String>], rows: &[f32]) -> Result<(), DataError> {
        let labels_fit = labels.len() == ids.len() || (labels.is_empty() && !self.with_labels);
        if ids.len().checked_mul(self.dim) != Some(rows.len()) || !labels_fit {
            return Err(self.origin.malformed(format!(
                "{} ids, {} labels and {} numbers are no rows of {} features; give as many of each as there are rows",
                ids.len(),
                labels.len(),
                rows.len(),
                self.dim
            )));
        }
        for (at, (id, values)) in ids.iter().zip(rows.chunks_exact(self.dim)).enumerate() {
            let label = match labels.get(at) {
                Some(Some(label)) if self.with_labels && !label.is_empty() => Some(label.as_str()),
                _ => None,
            };
            let row = RowOut { id, label, values };
            self.check(&row)?;
            self.sink
                .write(&row)
                .map_err(|e| DataError::write(self.origin.path.display(), e))?;
            self.rows += 1;
        }
        Ok(())
    }

    /// Writes what is still held back and lets the file appear; gives the number of its rows.
    ///
    /// Without a row there is not a file but an error, as nothing could read it.
    pub fn finish(self) -> Result<u64, DataError> {
        if self.rows == 0 {
            return Err(DataError::NoRows { path: self.origin.path });
        }
        self.sink
            .finish()
            .map_err(|e| DataError::write(self.origin.path.display(), e))?
            .commit()?;
        Ok(self.rows)
    }

    /// Refuses what a reader would refuse.
    fn check(&mut self, row: &RowOut) -> Result<(), DataError> {
        let place = FilePosition::Row(self.rows + 1);
        let path = || self.origin.path.clone();
        let nul = |text: &str| text.contains('\0');
        if row.id.is_empty() {
            return Err(self.origin.row(place, "the id is empty; give every row an id"));
        }
        if nul(row.id) || row.label.is_some_and(nul) {
            let problem = "the id or the label contains a NUL character, which not every format can hold; remove it";
            return Err(self.origin.row(place, problem));
        }
        if let Some(problem) = self.sink.refuses(row) {
            return Err(self.origin.row(place, problem));
        }
        let id = row.id.to_owned();
        match largest_magnitude(row.values) {
            Magnitude::Usable => {}
            Magnitude::Zero => {
                return Err(DataError::ZeroRow {
                    path: path(),
                    place,
                    id,
                });
            }
            Magnitude::NotFinite => {
                let column = row.values.iter().position(|v| !v.is_finite()).unwrap_or_default();
                return Err(DataError::NotFinite {
                    path: path(),
                    place,
                    id,
                    column: format!("feature {}", column + 1),
                    value: row.values[column],
                });
            }
        }
        match self.seen.first_place(row.id, place) {
            None => Ok(()),
            Some(first) => Err(DataError::DuplicateId {
                path: path(),
                id,
                first,
                second: place,
            }),
        }
    }
}
