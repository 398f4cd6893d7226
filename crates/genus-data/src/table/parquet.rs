//! Parquet: a column `embedding` of lists and, where known, `id` and `label`.
//!
//! The features are by far the most of such a file. [`pages`] decodes them at the speed of memory as long as their
//! pages are of the usual kind; from the first page that is not, [`lists`] goes on, which reads everything and says
//! what is wrong. Ids and labels come from [`texts`], the encoder from the file's metadata or a column of that name.

mod headers;
mod lists;
mod pages;
mod texts;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

use super::encoder;
use super::source::{Block, Origin, Source};
use crate::error::DataError;
use lists::ListReader;
use pages::PageReader;
pub(crate) use texts::Cell;
use texts::TextReader;

/// Where the key-value metadata of the file name the encoder.
pub(super) const ENCODER_KEY: &str = "genus.encoder";

/// Opens a `.parquet` file and decodes its first row, which tells the number of features.
pub(super) fn open(origin: Origin, file: File) -> Result<Box<dyn Source>, DataError> {
    let file_length = file.metadata().map_err(|e| origin.io(e))?.len();
    let input = Input::open(origin, &file)?;
    let rows = input.rows()?;
    let Some(embedding) = input.column("embedding") else {
        let present = input.columns();
        return Err(input.origin.malformed(format!(
            "no column \"embedding\" with the features; the file has {}; rename the column of lists to \"embedding\"",
            present.join(", ")
        )));
    };
    let dim = ListReader::first_dim(&input, embedding)?;
    let in_metadata = input.encoder_in_metadata();
    let texts = TextReader::open(&input, in_metadata.is_none())?;
    let encoder = match in_metadata {
        Some(encoder) => Some(encoder),
        None => texts::first_encoder(&input)?,
    };
    let pages = if dim > 0 {
        PageReader::open(&input, embedding, dim)
    } else {
        None
    };
    let features = match pages {
        Some(pages) => Features::Pages(Box::new(pages)),
        None => Features::Lists(ListReader::open(&input, embedding, dim, 0)?),
    };
    Ok(Box::new(ParquetRows {
        input,
        rows,
        row: 0,
        file_length,
        dim,
        embedding,
        features,
        texts,
        encoder,
    }))
}

/// The names of the columns of a `.parquet` file.
pub(crate) fn column_names(path: &Path) -> Result<Vec<String>, DataError> {
    let origin = Origin::new(path);
    let file = File::open(path).map_err(|e| origin.io(e))?;
    let input = Input::open(origin, &file)?;
    Ok(input.columns().into_iter().map(str::to_owned).collect())
}

/// Reads columns of texts or integers row by row, with the row's number from zero.
pub(crate) fn for_each_row(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(u64, Vec<Cell>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let origin = Origin::new(path);
    let file = File::open(path).map_err(|e| origin.io(e))?;
    let input = Input::open(origin, &file)?;
    let rows = input.rows()?;
    texts::for_each_row(&input, rows, columns, &mut each)
}

/// A file whose metadata are read.
struct Input {
    origin: Origin,
    metadata: ArrowReaderMetadata,
    /// The bytes of the largest page of every column that was looked at.
    largest_pages: RefCell<BTreeMap<usize, u64>>,
}

impl Input {
    fn open(origin: Origin, file: &File) -> Result<Self, DataError> {
        let metadata = guarded(|| ArrowReaderMetadata::load(file, ArrowReaderOptions::new())).map_err(|e| {
            origin.malformed(format!(
                "not a readable Parquet file ({e}); it was cut off or is damaged, write it again"
            ))
        })?;
        Ok(Self {
            origin,
            metadata,
            largest_pages: RefCell::default(),
        })
    }

    /// The names of the columns.
    fn columns(&self) -> Vec<&str> {
        let fields = self.metadata.schema().fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    /// The number of rows that the file claims.
    fn rows(&self) -> Result<u64, DataError> {
        match u64::try_from(self.metadata.metadata().file_metadata().num_rows()) {
            Ok(0) => Err(DataError::NoRows {
                path: self.origin.path.clone(),
            }),
            Ok(rows) => Ok(rows),
            Err(_) => Err(self
                .origin
                .malformed("the file claims a negative number of rows; it is damaged, write it again")),
        }
    }

    /// The encoder's mark among the key-value metadata of the file.
    fn encoder_in_metadata(&self) -> Option<String> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        let found = pairs.iter().find(|pair| pair.key == ENCODER_KEY)?;
        found.value.clone().and_then(encoder::from_text)
    }

    /// Which column has this name.
    fn column(&self, name: &str) -> Option<usize> {
        self.metadata
            .schema()
            .fields()
            .iter()
            .position(|field| field.name() == name)
    }

    /// The bytes of the largest page of some columns, none of which is larger than it may be.
    fn largest_page(&self, columns: &[usize]) -> Result<u64, DataError> {
        let mut largest = 0;
        for &column in columns {
            let known = self.largest_pages.borrow().get(&column).copied();
            let found = match known {
                Some(found) => found,
                None => headers::largest_page(self, column)?,
            };
            self.largest_pages.borrow_mut().insert(column, found);
            largest = largest.max(found);
        }
        Ok(largest)
    }

    /// A reader of some columns with a handle of its own, since readers of one handle would move each other's position.
    fn reader(&self, columns: &[usize], rows: Batches) -> Result<ParquetRecordBatchReader, DataError> {
        self.largest_page(columns)?;
        let file = File::open(&self.origin.path).map_err(|e| self.origin.io(e))?;
        let build = || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
            let builder = builder
                .with_projection(mask)
                .with_batch_size(rows.size)
                .with_offset(rows.first);
            rows.limit
                .into_iter()
                .fold(builder, |builder, limit| builder.with_limit(limit))
                .build()
        };
        guarded(build).map_err(|e| self.undecodable(rows.first as u64, e))
    }

    fn undecodable(&self, row: u64, error: ParquetError) -> DataError {
        self.origin.malformed(format!(
            "the rows after row {row} cannot be decoded ({error}); the file is damaged, write it again"
        ))
    }

    fn ends_early(&self, row: u64) -> DataError {
        self.origin.malformed(format!(
            "the file ends after row {row}, before it should; it is damaged, write it again"
        ))
    }
}

/// Which rows a reader gives, and how many at a time.
struct Batches {
    first: usize,
    size: usize,
    limit: Option<usize>,
}

/// Turns a panic of the decoder into an error: it checks most of what it reads, but some damaged pages make it divide
/// by zero.
///
/// What it leaves behind is not used again: after an error the reader is at its end.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let before = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    decoded.unwrap_or_else(|_| Err(ParquetError::General("a page makes no sense".to_owned())))
}

thread_local! {
    /// Whether a panic on this thread becomes an error.
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether this thread is in a decoder whose panics become errors, for panic hooks: such a panic is no news.
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

struct ParquetRows {
    input: Input,
    /// Rows that the file claims.
    rows: u64,
    /// Rows given so far.
    row: u64,
    file_length: u64,
    dim: usize,
    /// Which column has the features.
    embedding: usize,
    features: Features,
    texts: Option<TextReader>,
    encoder: Option<String>,
}

/// The two ways to the features.
enum Features {
    Pages(Box<PageReader>),
    Lists(ListReader),
}

impl ParquetRows {
    /// Appends the features of the next rows.
    fn append_features(&mut self, rows: usize, values: &mut Vec<f32>) -> Result<(), DataError> {
        // The number of rows is only a claim as yet: not more room at once than a value a byte of the file.
        let expected = (rows as u64).saturating_mul(self.dim as u64).min(self.file_length);
        let too_large = || {
            self.input
                .origin
                .malformed("the features do not fit into memory; read fewer rows at a time")
        };
        values
            .try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX))
            .map_err(|_| too_large())?;
        let count = rows.checked_mul(self.dim).ok_or_else(too_large)?;
        if let Features::Pages(pages) = &mut self.features {
            if pages.append(count, values) {
                return Ok(());
            }
            // The row that a page broke off in is read again.
            let whole = values.len() / self.dim;
            values.truncate(whole * self.dim);
            let lists = ListReader::open(&self.input, self.embedding, self.dim, self.row + whole as u64)?;
            self.features = Features::Lists(lists);
        }
        if let Features::Lists(lists) = &mut self.features {
            let mut done = values.len() / self.dim;
            while done < rows {
                done += lists.append(&self.input, self.row + done as u64, self.dim, rows - done, values)?;
            }
        }
        Ok(())
    }
}

impl Source for ParquetRows {
    fn dim(&self) -> usize {
        self.dim
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn encoder(&self) -> Option<&str> {
        self.encoder.as_deref()
    }

    fn next_block(&mut self, max_rows: usize) -> Result<Option<Block>, DataError> {
        let rows = usize::try_from(self.rows - self.row)
            .unwrap_or(usize::MAX)
            .min(max_rows);
        if rows == 0 {
            return Ok(None);
        }
        let mut block = Block::default();
        self.append_features(rows, &mut block.values)?;
        if let Some(texts) = &mut self.texts {
            texts.append(&self.input, self.row, rows, self.encoder.as_deref(), &mut block)?;
        }
        self.row += rows as u64;
        Ok(Some(block))
    }
}
