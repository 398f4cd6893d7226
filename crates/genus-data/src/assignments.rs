//! Where every item went: `id, category, kind, score, margin, probability, scene`, as CSV, JSON Lines or Parquet.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use genus_core::{Kind, Score};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use thiserror::Error;

use crate::error::DataError;
use genus_files::AtomicFile;

/// The columns, in every format. What comes later is at the end, where nobody counts on another.
pub(crate) const COLUMNS: [&str; 7] = ["id", "category", "kind", "score", "margin", "probability", "scene"];

/// Rows gathered before they are handed to the Parquet writer.
const PARQUET_BATCH: usize = 8192;

/// The column of the larger group that an item's category is one of, where categories have such.
const PARENT: &str = "parent";

/// The format of an assignments file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values with a header.
    #[default]
    Csv,
    /// One JSON object a line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Csv, Format::Jsonl, Format::Parquet];

    /// How the names of such files end, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.extension())
    }
}

/// A text that names no [`Format`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{0}\" is not a format for assignments; choose csv, jsonl or parquet")]
pub struct ParseFormatError(String);

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, ParseFormatError> {
        let found = Format::ALL
            .into_iter()
            .find(|format| text.eq_ignore_ascii_case(format.extension()));
        found.ok_or_else(|| ParseFormatError(text.to_owned()))
    }
}

/// Where one item went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssignmentRow<'a> {
    /// The item.
    pub id: &'a str,
    /// The name of its category, which is the best guess when the score is unsure.
    pub category: &'a str,
    /// Whether the category is known or new.
    pub kind: Kind,
    /// How well it fits.
    pub score: Score,
    /// The number of its scene from 1 on, where scenes were looked for; copies, crops and frames of one burst have the same.
    pub scene: Option<usize>,
}

impl AssignmentRow<'_> {
    /// The cells of a line of CSV, in the order of [`COLUMNS`].
    pub(crate) fn cells(&self) -> [Cow<'_, str>; 7] {
        let optional = |text: Option<String>| Cow::Owned(text.unwrap_or_default());
        [
            self.id.into(),
            self.category.into(),
            self.kind().into(),
            decimals(self.score.similarity).into(),
            decimals(self.score.margin).into(),
            optional(self.score.probability.map(decimals)),
            optional(self.scene.map(|scene| scene.to_string())),
        ]
    }

    /// The word of the column `kind`.
    pub(crate) fn kind(&self) -> &'static str {
        match (self.score.unsure, self.kind) {
            (true, _) => "unsure",
            (false, Kind::Known) => "known",
            (false, Kind::Novel) => "new",
        }
    }
}

/// Writes assignments, one item at a time; only [`finish`](Self::finish) makes them whole.
pub struct AssignmentWriter {
    /// What errors call the output.
    target: String,
    encoder: RowEncoder,
    /// Whether there is a column of parents.
    parents: bool,
    /// Whether cells of CSV that a spreadsheet would take for formulas are marked as texts.
    for_spreadsheets: bool,
}

impl AssignmentWriter {
    /// Writes into a file of a folder of results that appears, or replaces what is there, when the writer is finished.
    pub fn create(path: impl AsRef<Path>, format: Format) -> Result<Self, DataError> {
        Self::create_file(path.as_ref(), format, false)
    }

    /// The same with a last column, `parent`: the larger category that an item's own is one of.
    pub fn create_with_parents(path: impl AsRef<Path>, format: Format) -> Result<Self, DataError> {
        Self::create_file(path.as_ref(), format, true)
    }

    fn create_file(path: &Path, format: Format, parents: bool) -> Result<Self, DataError> {
        let out = AssignmentOutput::File(AtomicFile::create_own(path)?);
        Self::start(path.display().to_string(), out, format, parents)
    }

    /// Writes onto a stream; `name` is what errors call it, as "standard output".
    pub fn new(out: Box<dyn Write + Send>, name: impl Into<String>, format: Format) -> Result<Self, DataError> {
        Self::start(name.into(), AssignmentOutput::Stream(out), format, false)
    }

    fn start(target: String, out: AssignmentOutput, format: Format, parents: bool) -> Result<Self, DataError> {
        match RowEncoder::start(out, format, parents) {
            Ok(encoder) => Ok(Self {
                target,
                encoder,
                parents,
                for_spreadsheets: false,
            }),
            Err(source) => Err(DataError::write(&target, source)),
        }
    }

    /// Puts an apostrophe before ids and categories in CSV that a spreadsheet would take for formulas, if so asked. Programs that
    /// look for an id would not find it then, so it is not the rule.
    pub fn for_spreadsheets(self, wanted: bool) -> Self {
        Self {
            for_spreadsheets: wanted,
            ..self
        }
    }

    /// Writes where one item went.
    pub fn write(&mut self, row: &AssignmentRow) -> Result<(), DataError> {
        self.write_under(row, None)
    }

    /// Writes where one item went, and the larger category that its own is one of; without a column for it that is left out.
    pub fn write_under(&mut self, row: &AssignmentRow, parent: Option<&str>) -> Result<(), DataError> {
        let marked = self.for_spreadsheets && matches!(self.encoder, RowEncoder::Csv(_));
        let [id, category, parent_cell] =
            [row.id, row.category, parent.unwrap_or("")].map(|cell| match marked && is_formula(cell) {
                true => Cow::Owned(format!("'{cell}")),
                false => Cow::Borrowed(cell),
            });
        let row = AssignmentRow {
            id: &id,
            category: &category,
            ..*row
        };
        let parent = self.parents.then(|| parent.map(|_| &*parent_cell));
        self.encoder
            .write(&row, parent)
            .map_err(|e| DataError::write(&self.target, e))
    }

    /// Hands on what was written so far, for whoever reads it meanwhile. Of Parquet nothing can be read before its end.
    pub fn flush(&mut self) -> Result<(), DataError> {
        let flushed = match &mut self.encoder {
            RowEncoder::Csv(writer) => writer.flush(),
            RowEncoder::Jsonl(out) => out.flush(),
            RowEncoder::Parquet(_) => Ok(()),
        };
        flushed.map_err(|e| DataError::write(&self.target, e))
    }

    /// Writes what is still held back and, when writing into a file, lets it appear.
    pub fn finish(self) -> Result<(), DataError> {
        match self.encoder.finish().map_err(|e| DataError::write(&self.target, e))? {
            AssignmentOutput::File(file) => Ok(file.commit()?),
            AssignmentOutput::Stream(mut out) => out.flush().map_err(|e| DataError::write(&self.target, e)),
        }
    }
}

/// Whether a spreadsheet would compute a cell.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Where the bytes go.
enum AssignmentOutput {
    Stream(Box<dyn Write + Send>),
    File(AtomicFile),
}

impl Write for AssignmentOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            AssignmentOutput::Stream(out) => out.write(bytes),
            AssignmentOutput::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            AssignmentOutput::Stream(out) => out.flush(),
            AssignmentOutput::File(out) => out.flush(),
        }
    }
}

/// How an assignment becomes bytes.
enum RowEncoder {
    Csv(Box<csv::Writer<AssignmentOutput>>),
    Jsonl(AssignmentOutput),
    Parquet(Box<ParquetEncoder>),
}

impl RowEncoder {
    fn start(out: AssignmentOutput, format: Format, parents: bool) -> io::Result<Self> {
        Ok(match format {
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                let header = COLUMNS.into_iter().chain(parents.then_some(PARENT));
                writer.write_record(header).map_err(from_csv)?;
                RowEncoder::Csv(Box::new(writer))
            }
            Format::Jsonl => RowEncoder::Jsonl(out),
            Format::Parquet => RowEncoder::Parquet(Box::new(ParquetEncoder::start(out, parents)?)),
        })
    }

    /// Writes a row; where there is a column of parents, with what stands there.
    fn write(&mut self, row: &AssignmentRow, parent: Option<Option<&str>>) -> io::Result<()> {
        match self {
            RowEncoder::Csv(writer) => {
                let cells = row.cells();
                let parent = parent.map(|parent| parent.unwrap_or("").as_bytes());
                writer
                    .write_record(cells.iter().map(|cell| cell.as_bytes()).chain(parent))
                    .map_err(from_csv)
            }
            RowEncoder::Jsonl(out) => {
                let score = row.score;
                let names = JsonNames {
                    id: row.id,
                    category: row.category,
                    kind: row.kind(),
                };
                let text = names.to_json()?;
                // JSON has no word for what is not finite.
                let number = |v: Option<f32>| v.filter(|v| v.is_finite()).map_or("null".to_owned(), decimals);
                let parent = match parent {
                    Some(parent) => format!(",\"parent\":{}", serde_json::to_string(&parent)?),
                    None => String::new(),
                };
                let line = format!(
                    "{},\"score\":{},\"margin\":{},\"probability\":{},\"scene\":{}{parent}}}\n",
                    text.strip_suffix('}').unwrap_or(&text),
                    number(Some(score.similarity)),
                    number(Some(score.margin)),
                    number(score.probability),
                    row.scene.map_or("null".to_owned(), |scene| scene.to_string()),
                );
                out.write_all(line.as_bytes())
            }
            RowEncoder::Parquet(encoder) => encoder.write(row, parent.flatten()),
        }
    }

    fn finish(self) -> io::Result<AssignmentOutput> {
        match self {
            RowEncoder::Csv(writer) => writer.into_inner().map_err(|e| e.into_error()),
            RowEncoder::Jsonl(out) => Ok(out),
            RowEncoder::Parquet(encoder) => encoder.finish(),
        }
    }
}

/// The texts of a line of JSON.
#[derive(Serialize)]
struct JsonNames<'a> {
    id: &'a str,
    category: &'a str,
    kind: &'a str,
}

impl JsonNames<'_> {
    fn to_json(&self) -> io::Result<String> {
        serde_json::to_string(self).map_err(io::Error::from)
    }
}

/// A number to six decimals, the same text on every machine; zero has no sign.
pub(crate) fn decimals(value: f32) -> String {
    let text = format!("{value:.6}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|b| matches!(b, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// Gathers columns and writes them in batches.
struct ParquetEncoder {
    writer: ArrowWriter<AssignmentOutput>,
    columns: ParquetColumns,
}

#[derive(Default)]
struct ParquetColumns {
    id: StringBuilder,
    category: StringBuilder,
    kind: StringBuilder,
    score: Float32Builder,
    margin: Float32Builder,
    probability: Float32Builder,
    scene: Int64Builder,
    parent: Option<StringBuilder>,
    rows: usize,
}

impl ParquetColumns {
    /// The rows gathered so far, which are then forgotten.
    fn take(&mut self) -> io::Result<RecordBatch> {
        self.rows = 0;
        let parent = self
            .parent
            .as_mut()
            .map(|parent| (Arc::new(parent.finish()) as ArrayRef, true));
        let columns: [(ArrayRef, bool); 7] = [
            (Arc::new(self.id.finish()), false),
            (Arc::new(self.category.finish()), false),
            (Arc::new(self.kind.finish()), false),
            (Arc::new(self.score.finish()), false),
            (Arc::new(self.margin.finish()), false),
            (Arc::new(self.probability.finish()), true),
            (Arc::new(self.scene.finish()), true),
        ];
        let names = COLUMNS.into_iter().chain([PARENT]);
        let named = names.zip(columns.into_iter().chain(parent));
        RecordBatch::try_from_iter_with_nullable(named.map(|(name, (column, nullable))| (name, column, nullable)))
            .map_err(io::Error::other)
    }
}

impl ParquetEncoder {
    fn start(out: AssignmentOutput, parents: bool) -> io::Result<Self> {
        let mut columns = ParquetColumns {
            parent: parents.then(StringBuilder::default),
            ..ParquetColumns::default()
        };
        let schema = columns.take()?.schema();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(out, schema, Some(properties)).map_err(into_io)?;
        Ok(Self { writer, columns })
    }

    fn write(&mut self, row: &AssignmentRow, parent: Option<&str>) -> io::Result<()> {
        let columns = &mut self.columns;
        if let Some(parents) = &mut columns.parent {
            parents.append_option(parent);
        }
        columns.id.append_value(row.id);
        columns.category.append_value(row.category);
        columns.kind.append_value(row.kind());
        columns.score.append_value(row.score.similarity);
        columns.margin.append_value(row.score.margin);
        columns.probability.append_option(row.score.probability);
        columns.scene.append_option(row.scene.map(|scene| scene as i64));
        columns.rows += 1;
        if columns.rows == PARQUET_BATCH {
            self.writer.write(&columns.take()?).map_err(into_io)?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<AssignmentOutput> {
        if self.columns.rows > 0 {
            self.writer.write(&self.columns.take()?).map_err(into_io)?;
        }
        // `into_inner` would lose what kind of error there was, so the output is taken out after the end is written.
        self.writer.finish().map_err(into_io)?;
        Ok(std::mem::replace(
            self.writer.inner_mut(),
            AssignmentOutput::Stream(Box::new(io::sink())),
        ))
    }
}

/// The operating system's error where there is one, so that a broken pipe is still known as such.
pub(crate) fn from_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The same for Parquet.
pub(crate) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
