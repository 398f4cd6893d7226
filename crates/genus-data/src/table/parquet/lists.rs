//! Lists of every kind that Arrow knows, by way of its reader.

use arrow_array::{Array, ArrayRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::pages::for_each_length;
use super::{Input, RowBatches, guarded};
use crate::error::{DataError, FilePosition};
use crate::table::batch::{append_lists, append_usable, check_features_type, first_dim};
use crate::table::limits::check_features;
use crate::table::source::{BadRows, RowBlock};

/// Bytes of features decoded at a time: they are still in the processor's cache when they are copied into the block.
const BATCH_BYTES: u64 = 1 << 20;

/// How many times as long as it should be a list may be that is set aside.
const LONGER: usize = 16;

/// Reads lists batch by batch.
pub(super) struct ListReader {
    column: usize,
    reader: ParquetRecordBatchReader,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(ArrayRef, usize)>,
}

impl ListReader {
    /// Begins at a row of the file, all of whose rows must have so many features.
    pub(super) fn open(input: &Input, column: usize, dim: usize, first: u64) -> Result<Self, DataError> {
        check_lengths(input, column, dim)?;
        let rows = RowBatches {
            first: first as usize,
            size: batch_rows(dim),
            limit: None,
        };
        Ok(Self {
            column,
            reader: input.reader(&[column], rows)?,
            batch: None,
        })
    }

    /// The number of features of the first row.
    pub(super) fn first_dim(input: &Input, column: usize) -> Result<usize, DataError> {
        let data_type = input.metadata.schema().field(column).data_type();
        check_features_type(&input.origin, input.name(column), data_type)?;
        // Before any of them is decoded: a page of a few bytes may stand for any number of values.
        let mut first = 0;
        for_each_length(input, column, |length, _| {
            first = length;
            false
        })?;
        check_features(&input.origin, first as u64)?;
        let rows = RowBatches {
            first: 0,
            size: 1,
            limit: Some(1),
        };
        let mut first = Self {
            column,
            reader: input.reader(&[column], rows)?,
            batch: None,
        };
        let (array, _) = first.refill(input, 0)?;
        input.bad.dim(first_dim(&input.origin, &[(input.name(column), array)]))
    }

    /// Appends at least one and at most `max_rows` rows, the first of which is row `first` of the file; gives their
    /// number.
    pub(super) fn append(
        &mut self,
        input: &Input,
        first: u64,
        dim: usize,
        max_rows: usize,
        block: &mut RowBlock,
    ) -> Result<usize, DataError> {
        let name = input.name(self.column);
        let (array, given) = self.refill(input, first)?;
        let rows = (array.len() - *given).min(max_rows);
        let (from, RowBlock { values, refused, .. }) = (*given, block);
        append_usable(input.bad, from..from + rows, dim, values, refused, |part, values| {
            let first = first + (part.start - from) as u64;
            append_lists(&input.origin, name, array, part, first, dim, values)
        })?;
        *given += rows;
        Ok(rows)
    }

    /// The batch in hand, or the next one.
    fn refill(&mut self, input: &Input, row: u64) -> Result<&mut (ArrayRef, usize), DataError> {
        self.batch = self.batch.take().filter(|(array, given)| *given < array.len());
        if self.batch.is_none() {
            let next = guarded(|| Ok(self.reader.next().transpose()?)).map_err(|e| input.undecodable(row, e))?;
            let next = next.filter(|batch| batch.num_rows() > 0);
            self.batch = next.and_then(|batch| Some((batch.columns().first()?.clone(), 0)));
        }
        self.batch.as_mut().ok_or_else(|| input.ends_early(row))
    }
}

/// Makes sure that no row is longer than the first before Arrow decodes many of them at once.
fn check_lengths(input: &Input, column: usize, dim: usize) -> Result<(), DataError> {
    let (mut row, mut wrong) = (0, None);
    let is_wrong = |length: usize| match input.bad {
        BadRows::Refuse => length != dim,
        // They are left out one by one, as long as they do not fill the memory.
        BadRows::SetAside { features } => length > LONGER * features,
    };
    for_each_length(input, column, |length, rows| {
        // What is null or empty has one value here too, and Arrow knows which it is.
        if is_wrong(length) && length != 1 {
            wrong = Some(length);
            return false;
        }
        row += rows;
        true
    })?;
    match wrong {
        Some(length) => Err(input.origin.dimension(FilePosition::Row(row + 1), dim, length)),
        None => Ok(()),
    }
}

/// Rows whose features take [`BATCH_BYTES`].
fn batch_rows(dim: usize) -> usize {
    let bytes_a_row = (dim.max(1) as u64).saturating_mul(4);
    (BATCH_BYTES / bytes_a_row).clamp(16, 1 << 16) as usize
}
