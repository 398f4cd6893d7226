//! Feature files: rows of id, label and features, read block by block.
//!
//! One submodule a format gives raw [`RowBlock`]s; what every row must satisfy is checked here, in one place for all of
//! them.

mod arrays;
mod arrow;
pub(crate) mod batch;
pub(crate) mod cells;
pub(crate) mod columns;
mod csv;
mod element;
mod encoder;
pub(crate) mod format;
mod jsonl;
mod label;
pub(crate) mod limits;
pub(crate) mod lines;
mod npy;
mod npz;
mod parquet;
mod rows;
mod safetensors;
pub(crate) mod source;
pub(crate) mod text;
mod writer;

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::Path;

use genus_core::{FeatureError, Features};

use crate::error::{DataError, FilePosition};
pub use batch::panic_is_caught;
pub use cells::for_each_cell;
pub use columns::{ColumnProblem, ColumnRole, TableOptions, nearest};
pub use encoder::same_encoder;
pub use format::{ParseTableFormatError, TableFormat};
use genus_files::refuse_device;
use limits::{MemoryGrowth, check_features};
pub use parquet::{RowGroup, row_groups};
use source::{BadRows, FileOrigin, RowBlock, TableSource};
pub use writer::FeatureWriter;

/// How many ids [`TableReader`] remembers to find duplicates: enough for most files, at some 40 MB.
const REMEMBERED_IDS: usize = 1 << 20;

/// Rows that [`read_table`] asks for at a time.
const READ_BLOCK: usize = 1 << 16;

/// Rows of a feature file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the file calls each row, or the row's number in the file, from zero, when it has no ids.
    pub ids: Vec<String>,
    /// The class of each row; `None` is an unlabelled row.
    pub labels: Vec<Option<String>>,
    /// The features of each row: finite, no row all zeros.
    pub features: Features,
}

impl Table {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The distinct labels, sorted.
    pub fn classes(&self) -> Vec<String> {
        let distinct: BTreeSet<&String> = self.labels.iter().flatten().collect();
        distinct.into_iter().cloned().collect()
    }

    /// The named rows in the named order.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            ids: rows.iter().map(|&row| self.ids[row].clone()).collect(),
            labels: rows.iter().map(|&row| self.labels[row].clone()).collect(),
            features: self.features.select(rows),
        }
    }
}

/// A whole feature file.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFile {
    /// Its rows.
    pub table: Table,
    /// Its `classes`, which name the integers of its labels, when it has them.
    pub class_names: Option<Vec<String>>,
    /// Which encoder made its features, when it says so.
    pub encoder: Option<String>,
    /// Columns that somebody might have meant as features; see [`TableReader::left_out`].
    pub left_out: Vec<String>,
}

/// Reads a whole feature file whose names say which of its columns are what; two rows with the same id are an error.
pub fn read_table(path: impl AsRef<Path>) -> Result<TableFile, DataError> {
    read_table_with(path, &TableOptions::default())
}

/// Reads a whole feature file with some options.
pub fn read_table_with(path: impl AsRef<Path>, options: &TableOptions) -> Result<TableFile, DataError> {
    let mut reader = TableReader::open_with(path, options)?;
    reader.seen.limit = usize::MAX;
    // A format that knows its size is read in one block, straight into the final matrix.
    let block = match reader.rows() {
        Some(rows) => usize::try_from(rows).unwrap_or(usize::MAX),
        None => READ_BLOCK,
    };
    // Which is a claim: it is held against the limit before there is room made for it.
    if let Some(rows) = reader.rows() {
        let values = rows.saturating_mul(reader.dim() as u64);
        MemoryGrowth::of(&reader.origin).add_values(&reader.origin, values)?;
    }
    let class_names = reader.class_names().map(<[_]>::to_vec);
    let encoder = reader.encoder().map(str::to_owned);
    let left_out = reader.left_out().to_vec();
    let Some(mut table) = reader.next_block(block)? else {
        return Err(DataError::NoRows {
            path: reader.path().to_owned(),
        });
    };
    if let Some(second) = reader.next_block(block)? {
        let mut values = table.features.into_values();
        let mut next = Some(second);
        while let Some(more) = next {
            table.ids.extend(more.ids);
            table.labels.extend(more.labels);
            values.extend_from_slice(more.features.values());
            next = reader.next_block(block)?;
        }
        table.features = Features::new(reader.dim(), values).map_err(|e| reader.origin.malformed(e))?;
    }
    Ok(TableFile {
        table,
        class_names,
        encoder,
        left_out,
    })
}

/// Reads a feature file of any supported format block by block, in memory proportional to the block.
///
/// Every row is checked: the features are finite, as many as in the first row and not all zero. Explicit ids are unique
/// among the first 2²⁰ rows; beyond them a streaming reader cannot remember them all. After an error the reader is at
/// its end.
///
/// Blocks of some ten megabytes are fastest: larger ones are new memory each time, which costs more than reading into
/// it.
pub struct TableReader {
    origin: FileOrigin,
    source: Box<dyn TableSource>,
    options: TableOptions,
    rows_read: u64,
    seen: SeenIds,
    growth: MemoryGrowth,
    finished: bool,
    bad: BadRows,
    refused: Vec<RefusedRow>,
    is_numbered: bool,
}

/// A part of a feature file, all rows of which that can be used are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePart {
    /// The row groups of a Parquet file; all of them by default. Other formats have none.
    pub row_groups: Option<Range<usize>>,
    /// Features of a row that can be used.
    pub features: usize,
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRow {
    /// Where it is.
    pub place: FilePosition,
    /// What it is called, where that is known.
    pub id: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl TableReader {
    /// Opens a feature file, of the format that its extension says, and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_with(path, &TableOptions::default())
    }

    /// Opens a feature file of which something is said. The path `-` is standard input, whose format is said too and is a
    /// text; its blocks end where the next row is not at hand.
    pub fn open_with(path: impl AsRef<Path>, options: &TableOptions) -> Result<Self, DataError> {
        Self::open_wanted(path.as_ref(), options, parquet::Wanted::default())
    }

    /// Opens a part of a file. Rows that cannot be used are left out, and [`refused`](Self::refused) says what is wrong with them;
    /// copies of an id are no reason. Rows without an id have the number that they have in the whole file.
    pub fn open_part(path: impl AsRef<Path>, options: &TableOptions, part: &TablePart) -> Result<Self, DataError> {
        let wanted = parquet::Wanted {
            groups: part.row_groups.clone(),
            bad: BadRows::SetAside {
                features: part.features,
            },
        };
        Self::open_wanted(path.as_ref(), options, wanted)
    }

    fn open_wanted(path: &Path, options: &TableOptions, wanted: parquet::Wanted) -> Result<Self, DataError> {
        let bad = wanted.bad;
        let origin = FileOrigin::new(path).called(options.called.as_deref());
        let format = match TableFormat::of(path).or(options.format) {
            Some(format) if format.is_text() || !origin.is_standard_input() => format,
            // A directory of any name is better called that, and what is not there, missing.
            _ if path.is_dir() => return Err(DataError::Directory { path: path.to_owned() }),
            _ if !origin.is_standard_input() && !path.exists() => {
                return Err(origin.io(std::io::ErrorKind::NotFound.into()));
            }
            _ => return Err(DataError::UnknownFormat { path: origin.path }),
        };
        let file = || {
            let file = File::open(path).map_err(|e| origin.io(e))?;
            let found = file.metadata().map_err(|e| origin.io(e))?;
            if found.is_dir() {
                return Err(DataError::Directory { path: path.to_owned() });
            }
            // A device may have no end.
            refuse_device(&found).map_err(|e| origin.io(e))?;
            Ok(file)
        };
        let source = match format {
            TableFormat::Npy => npy::open(origin.clone(), file()?),
            TableFormat::Npz => npz::open(origin.clone(), file()?, options),
            TableFormat::Safetensors => safetensors::open(origin.clone(), file()?, options),
            TableFormat::Csv | TableFormat::Tsv => csv::open(origin.clone(), format, options, bad),
            TableFormat::Jsonl => jsonl::open(origin.clone(), options, bad),
            TableFormat::Parquet => parquet::open(origin.clone(), file()?, options, wanted),
            TableFormat::Arrow => arrow::open(origin.clone(), file()?, options, bad),
        }?;
        if source.rows() == Some(0) {
            return Err(DataError::NoRows { path: path.to_owned() });
        }
        if source.dim() == 0 {
            return Err(DataError::NoFeatures { path: path.to_owned() });
        }
        check_features(&origin, source.dim() as u64)?;
        Ok(Self {
            growth: MemoryGrowth::of(&origin),
            origin,
            options: options.clone(),
            rows_read: source.before(),
            source,
            seen: SeenIds::new(REMEMBERED_IDS),
            finished: false,
            bad,
            refused: Vec::new(),
            is_numbered: false,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.origin.path
    }

    /// The number of features of every row.
    pub fn dim(&self) -> usize {
        self.source.dim()
    }

    /// The number of rows in the file, when its format says so up front: all but texts and Arrow.
    pub fn rows(&self) -> Option<u64> {
        self.source.rows()
    }

    /// The `classes` of the file, which name the integers of its labels, when it has them.
    pub fn class_names(&self) -> Option<&[String]> {
        self.source.class_names()
    }

    /// Which encoder made the features, when the file says so; all rows of a file are of one encoder.
    pub fn encoder(&self) -> Option<&str> {
        self.source.encoder()
    }

    /// Columns that are neither features nor ids nor labels, though somebody might have meant them so: all of them where a table
    /// has a column a feature; else texts where no column has the labels that are looked for.
    pub fn left_out(&self) -> &[String] {
        self.source.left_out()
    }

    /// The next rows: at least one and at most `max_rows`, or `None` at the end of the file. A `max_rows` of zero
    /// counts as one.
    pub fn next_block(&mut self, max_rows: usize) -> Result<Option<Table>, DataError> {
        while !self.finished {
            let block = self
                .source
                .next_block(max_rows.max(1))
                .and_then(|block| block.map(|b| self.check(b)).transpose());
            self.finished = !matches!(block, Ok(Some(_)));
            match block {
                // None of its rows could be used.
                Ok(Some(block)) if block.is_empty() => {}
                block => return block,
            }
        }
        Ok(None)
    }

    /// Whether the rows that were read last have no ids in the file and are called by their numbers.
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// The rows of a part that could not be used, since this was asked last.
    pub fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.refused)
    }

    /// Turns a raw block into rows that keep the promises of [`Table`].
    fn check(&mut self, block: RowBlock) -> Result<Table, DataError> {
        let RowBlock {
            values,
            ids,
            mut labels,
            lines,
            refused,
        } = block;
        let dim = self.source.dim();
        let rows = values.len() / dim;
        self.growth.add_values(&self.origin, values.len() as u64)?;
        self.growth
            .add_texts(&self.origin, ids.iter().flatten().map(String::as_str))?;
        self.growth
            .add_texts(&self.origin, labels.iter().flatten().map(String::as_str))?;
        let first = self.rows_read;
        let place = |row: usize| {
            lines
                .get(row)
                .map_or(FilePosition::Row(first + row as u64 + 1), |&line| {
                    FilePosition::Line(line)
                })
        };

        let is_strict = self.bad == BadRows::Refuse;
        if let Some(ids) = ids.as_ref().filter(|_| is_strict) {
            for (row, id) in ids.iter().enumerate() {
                if id.is_empty() {
                    return Err(self
                        .origin
                        .row(place(row), "the id is empty; give every row an id or none"));
                }
                if let Some(first) = self.seen.first_place(id, place(row)) {
                    let (path, id) = (self.origin.path.clone(), id.clone());
                    return Err(DataError::DuplicateId {
                        path,
                        id,
                        first,
                        second: place(row),
                    });
                }
            }
        }
        self.is_numbered = ids.is_none();
        let mut ids = ids.unwrap_or_else(|| (first..first + rows as u64).map(|row| row.to_string()).collect());
        labels.resize(rows, None);
        let mut labels: Vec<_> = labels.into_iter().map(|label| self.options.labelled(label)).collect();

        let mut before = refused.into_iter().peekable();
        let mut set_aside = Vec::new();
        for (row, of_row) in values.chunks_exact(dim).enumerate() {
            let problem = match before.next_if(|(refused, _)| *refused == row) {
                Some((_, problem)) => Some(problem),
                None => self.problem(of_row, place(row), &ids[row]),
            };
            let Some(problem) = problem else { continue };
            if is_strict {
                return Err(problem);
            }
            self.refused.push(RefusedRow {
                place: place(row),
                id: Some(ids[row].clone()).filter(|id| !id.is_empty()),
                reason: problem.of_row(),
            });
            set_aside.push(row);
        }
        let mut values = values;
        if !set_aside.is_empty() {
            let kept: Vec<usize> = (0..rows).filter(|row| set_aside.binary_search(row).is_err()).collect();
            ids = kept.iter().map(|&row| std::mem::take(&mut ids[row])).collect();
            labels = kept.iter().map(|&row| labels[row].take()).collect();
            values = kept
                .iter()
                .flat_map(|&row| &values[row * dim..][..dim])
                .copied()
                .collect();
        }
        let features = Features::new(dim, values).map_err(|e: FeatureError| self.origin.malformed(e))?;
        self.rows_read += rows as u64;
        Ok(Table { ids, labels, features })
    }

    /// Why a row cannot be used, if it cannot.
    fn problem(&self, values: &[f32], place: FilePosition, id: &str) -> Option<DataError> {
        let path = || self.origin.path.clone();
        if id.is_empty() {
            return Some(self.origin.row(place, "the id is empty; give every row an id or none"));
        }
        match largest_magnitude(values) {
            Magnitude::Usable => None,
            Magnitude::Zero => Some(DataError::ZeroRow {
                path: path(),
                place,
                id: id.to_owned(),
            }),
            Magnitude::NotFinite => Some(self.not_finite(values, place, id)),
        }
    }

    fn not_finite(&self, values: &[f32], place: FilePosition, id: &str) -> DataError {
        let column = values.iter().position(|v| !v.is_finite()).unwrap_or_default();
        DataError::NotFinite {
            path: self.origin.path.clone(),
            place,
            id: id.to_owned(),
            column: match self.source.column_name(column) {
                Some(name) => format!("column \"{name}\""),
                None => format!("feature {}", column + 1),
            },
            value: values[column],
        }
    }
}

/// How the name of a file ends, in small letters, which says its format.
pub(crate) fn extension(path: &Path) -> String {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.unwrap_or_default().to_ascii_lowercase()
}

/// What the largest magnitude of a row says about the row.
enum Magnitude {
    Usable,
    Zero,
    NotFinite,
}

/// Judges a row in one pass without a branch a value: without their sign, the bits of floats order as integers do, and
/// all that is not finite comes last.
fn largest_magnitude(row: &[f32]) -> Magnitude {
    const SIGN: u32 = 1 << 31;
    let largest = row
        .iter()
        .fold(0, |largest, v| largest.max((v.to_bits() & !SIGN) as i32));
    if largest == 0 {
        Magnitude::Zero
    } else if largest >= f32::INFINITY.to_bits() as i32 {
        Magnitude::NotFinite
    } else {
        Magnitude::Usable
    }
}

/// The ids met so far, as 64-bit fingerprints: two different ids among a million share one with a probability of
/// 3·10⁻⁸.
struct SeenIds {
    places: HashMap<u64, FilePosition>,
    limit: usize,
}

impl SeenIds {
    fn new(limit: usize) -> Self {
        Self {
            places: HashMap::new(),
            limit,
        }
    }

    /// Where the id was met before; remembers it otherwise.
    fn first_place(&mut self, id: &str, place: FilePosition) -> Option<FilePosition> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let full = self.places.len() >= self.limit;
        match self.places.entry(hasher.finish()) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(free) => {
                if !full {
                    free.insert(place);
                }
                None
            }
        }
    }
}
