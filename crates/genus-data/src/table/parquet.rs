//! Parquet: features in one column of lists or in a column each, and ids and labels beside them.
//!
//! Lists are by far the most of such a file. [`pages`] decodes them at the speed of memory as long as their pages are of
//! the usual kind; from the first page that is not, [`lists`] goes on, which reads everything and says what is wrong.
//! [`wide`] reads a column a feature. Ids and labels come from [`texts`], the encoder from the file's metadata or a column
//! of that name.

mod headers;
mod lists;
mod pages;
mod texts;
mod wide;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};

use super::batch::{self, Cell, ENCODER_KEY, SideColumnNames, caught};
use super::columns::{Columns, FeatureColumns, TableOptions};
use super::encoder;
use super::source::{BadRows, FileOrigin, RowBlock, TableSource};
use crate::error::DataError;
use lists::ListReader;
use pages::PageReader;
use texts::TextReader;
use wide::WideReader;

/// Which rows of a file are read, and what is done with those that cannot be used.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// The row groups; all by default.
    pub(super) groups: Option<Range<usize>>,
    pub(super) bad: BadRows,
}

/// Opens a `.parquet` file and decodes its first row, which tells the number of features.
pub(super) fn open(
    origin: FileOrigin,
    file: File,
    options: &TableOptions,
    wanted: Wanted,
) -> Result<Box<dyn TableSource>, DataError> {
    let file_length = file.metadata().map_err(|e| origin.io(e))?.len();
    let mut input = Input::open(origin, &file)?;
    if let Some(groups) = wanted.groups {
        input = input.select(groups)?;
    }
    input.bad = wanted.bad;
    let rows = input.rows()?;
    let schema = input.metadata.schema().clone();
    let named = batch::named(&schema);
    let columns = Columns::of(&input.origin, &named, options)?;
    let in_metadata = input.encoder_in_metadata();
    let mut beside = SideColumnNames::of(&columns, &named);
    let encoder = match (in_metadata, &beside.encoder) {
        (Some(encoder), _) => {
            beside.encoder = None;
            Some(encoder)
        }
        (None, Some(column)) => texts::first_encoder(&input, column)?,
        (None, None) => None,
    };
    let (dim, features) = match &columns.features {
        FeatureColumns::List(list) if !is_list(schema.field(*list).data_type()) => {
            FeatureReader::wide(&input, &[*list])?
        }
        FeatureColumns::List(list) => FeatureReader::lists(&input, *list)?,
        FeatureColumns::Wide(features) => FeatureReader::wide(&input, features)?,
    };
    let names = match &columns.features {
        FeatureColumns::Wide(features) => features.iter().map(|&column| named[column].0.to_owned()).collect(),
        FeatureColumns::List(_) => Vec::new(),
    };
    let texts = TextReader::open(&input, beside)?;
    Ok(Box::new(ParquetRows {
        input,
        rows,
        row: 0,
        file_length,
        dim,
        features,
        names,
        left_out: columns.left_out,
        texts,
        encoder,
    }))
}

fn is_list(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
    )
}

/// What the columns of a `.parquet` file are.
pub(crate) fn schema(origin: &FileOrigin) -> Result<SchemaRef, DataError> {
    let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    let input = Input::open(origin.clone(), &file)?;
    Ok(input.metadata.schema().clone())
}

/// Rows of a Parquet file that can be read without those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// How many there are.
    pub rows: u64,
    /// Where its first byte is in the file.
    pub start: u64,
    /// Where its last byte ends.
    pub end: u64,
}

/// The row groups of a Parquet file, in order. Only the end of the file is read, which says where they are.
pub fn row_groups(path: impl AsRef<Path>) -> Result<Vec<RowGroup>, DataError> {
    let origin = FileOrigin::new(path.as_ref());
    let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    let input = Input::open(origin, &file)?;
    let damaged = || {
        input
            .origin
            .malformed("a row group makes no sense; the file is damaged, write it again")
    };
    let groups = input.metadata.metadata().row_groups().iter();
    groups
        .map(|group| {
            let rows = u64::try_from(group.num_rows()).map_err(|_| damaged())?;
            let (mut start, mut end) = (u64::MAX, 0);
            for column in group.columns() {
                let first = match column.dictionary_page_offset() {
                    Some(dictionary) if dictionary > 0 => dictionary.min(column.data_page_offset()),
                    _ => column.data_page_offset(),
                };
                let (first, length) = u64::try_from(first)
                    .ok()
                    .zip(u64::try_from(column.compressed_size()).ok())
                    .ok_or_else(damaged)?;
                start = start.min(first);
                end = end.max(first.checked_add(length).ok_or_else(damaged)?);
            }
            match start < end {
                true => Ok(RowGroup { rows, start, end }),
                false => Err(damaged()),
            }
        })
        .collect()
}

/// Reads columns of texts or integers row by row, with the row's number from zero.
pub(crate) fn for_each_row(
    origin: &FileOrigin,
    columns: &[&str],
    each: &mut dyn FnMut(u64, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<(), DataError> {
    let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    let input = Input::open(origin.clone(), &file)?;
    let rows = input.rows()?;
    texts::for_each_row(&input, rows, columns, each)
}

/// A file whose metadata are read.
struct Input {
    origin: FileOrigin,
    metadata: ArrowReaderMetadata,
    /// The columns without structure that every column is made of.
    leaves: Vec<Vec<usize>>,
    /// The bytes of the largest page of every column that was looked at.
    largest_pages: RefCell<BTreeMap<usize, u64>>,
    /// Rows of the file before those that are read.
    before: u64,
    bad: BadRows,
}

impl Input {
    fn open(origin: FileOrigin, file: &File) -> Result<Self, DataError> {
        let metadata = guarded(|| ArrowReaderMetadata::load(file, ArrowReaderOptions::new())).map_err(|e| {
            origin.malformed(format!(
                "not a readable Parquet file ({e}); it was cut off or is damaged, write it again"
            ))
        })?;
        Ok(Self::of(origin, metadata))
    }

    fn of(origin: FileOrigin, metadata: ArrowReaderMetadata) -> Self {
        let schema = metadata.metadata().file_metadata().schema_descr();
        let mut leaves = vec![Vec::new(); metadata.schema().fields().len()];
        for leaf in 0..schema.num_columns() {
            if let Some(of_column) = leaves.get_mut(schema.get_column_root_idx(leaf)) {
                of_column.push(leaf);
            }
        }
        Self {
            origin,
            leaves,
            metadata,
            largest_pages: RefCell::default(),
            before: 0,
            bad: BadRows::Refuse,
        }
    }

    /// The same as if the file had these row groups only; rows keep their numbers.
    fn select(self, groups: Range<usize>) -> Result<Self, DataError> {
        let whole = self.metadata.metadata();
        let Some(chosen) = whole
            .row_groups()
            .get(groups.clone())
            .filter(|chosen| !chosen.is_empty())
        else {
            return Err(self.origin.malformed(format!(
                "it has {} row groups, and {} to {} are asked for; it was written again since",
                whole.num_row_groups(),
                groups.start,
                groups.end
            )));
        };
        let count = |groups: &[RowGroupMetaData]| groups.iter().map(RowGroupMetaData::num_rows).sum::<i64>();
        let before = u64::try_from(count(&whole.row_groups()[..groups.start])).unwrap_or(0);
        let of_file = whole.file_metadata();
        let file = FileMetaData::new(
            of_file.version(),
            count(chosen),
            of_file.created_by().map(str::to_owned),
            of_file.key_value_metadata().cloned(),
            of_file.schema_descr_ptr(),
            of_file.column_orders().cloned(),
        );
        let part = Arc::new(ParquetMetaData::new(file, chosen.to_vec()));
        let metadata = guarded(|| ArrowReaderMetadata::try_new(part, ArrowReaderOptions::new()));
        let metadata = metadata.map_err(|e| self.origin.malformed(format!("not a readable Parquet file ({e})")))?;
        Ok(Self {
            before,
            ..Self::of(self.origin, metadata)
        })
    }

    /// What a column is called.
    fn name(&self, column: usize) -> &str {
        self.metadata.schema().field(column).name()
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

    /// Which column has a name.
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
    fn reader(&self, columns: &[usize], rows: RowBatches) -> Result<ParquetRecordBatchReader, DataError> {
        self.largest_page(columns)?;
        let file = File::open(self.origin.file()).map_err(|e| self.origin.io(e))?;
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
struct RowBatches {
    first: usize,
    size: usize,
    limit: Option<usize>,
}

/// Turns a panic of the decoder into an error: some damaged pages make it divide by zero.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    caught(decode).unwrap_or_else(|| Err(ParquetError::General("a page makes no sense".to_owned())))
}

struct ParquetRows {
    input: Input,
    /// Rows that the file claims.
    rows: u64,
    /// Rows given so far.
    row: u64,
    file_length: u64,
    dim: usize,
    features: FeatureReader,
    /// What the features are called, where they have a column each.
    names: Vec<String>,
    left_out: Vec<String>,
    texts: Option<TextReader>,
    encoder: Option<String>,
}

/// The ways to the features.
enum FeatureReader {
    /// Pages of the column of lists.
    Pages(usize, Box<PageReader>),
    Lists(ListReader),
    Wide(WideReader),
}

impl FeatureReader {
    /// Those of a column of lists, and how many there are in a row.
    fn lists(input: &Input, column: usize) -> Result<(usize, Self), DataError> {
        let dim = ListReader::first_dim(input, column)?;
        let pages = match dim {
            0 => None,
            _ => PageReader::open(input, column, dim),
        };
        let features = match pages {
            Some(pages) => FeatureReader::Pages(column, Box::new(pages)),
            None => FeatureReader::Lists(ListReader::open(input, column, dim, 0)?),
        };
        Ok((dim, features))
    }

    /// Those of several columns.
    fn wide(input: &Input, columns: &[usize]) -> Result<(usize, Self), DataError> {
        Ok((columns.len(), FeatureReader::Wide(WideReader::open(input, columns)?)))
    }
}

impl ParquetRows {
    /// Appends the features of the next rows.
    fn append_features(&mut self, rows: usize, block: &mut RowBlock) -> Result<(), DataError> {
        let values = &mut block.values;
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
        if let FeatureReader::Pages(column, pages) = &mut self.features {
            if pages.append(count, values) {
                return Ok(());
            }
            // The row that a page broke off in is read again.
            let whole = values.len() / self.dim;
            values.truncate(whole * self.dim);
            let lists = ListReader::open(&self.input, *column, self.dim, self.row + whole as u64)?;
            self.features = FeatureReader::Lists(lists);
        }
        let mut done = values.len() / self.dim;
        while done < rows {
            let (row, left) = (self.input.before + self.row + done as u64, rows - done);
            done += match &mut self.features {
                FeatureReader::Lists(lists) => lists.append(&self.input, row, self.dim, left, block)?,
                FeatureReader::Wide(wide) => wide.append(&self.input, row, left, block)?,
                FeatureReader::Pages(..) => return Err(self.input.ends_early(row)),
            };
        }
        Ok(())
    }
}

impl TableSource for ParquetRows {
    fn dim(&self) -> usize {
        self.dim
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn before(&self) -> u64 {
        self.input.before
    }

    fn encoder(&self) -> Option<&str> {
        self.encoder.as_deref()
    }

    fn column_name(&self, feature: usize) -> Option<&str> {
        self.names.get(feature).map(String::as_str)
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn next_block(&mut self, max_rows: usize) -> Result<Option<RowBlock>, DataError> {
        let rows = usize::try_from(self.rows - self.row)
            .unwrap_or(usize::MAX)
            .min(max_rows);
        if rows == 0 {
            return Ok(None);
        }
        let mut block = RowBlock::default();
        self.append_features(rows, &mut block)?;
        if let Some(texts) = &mut self.texts {
            let first = self.input.before + self.row;
            texts.append(&self.input, first, rows, self.encoder.as_deref(), &mut block)?;
        }
        self.row += rows as u64;
        Ok(Some(block))
    }
}
