//! Ids, labels and other columns of texts.

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::{Input, RowBatches, guarded};
use crate::error::DataError;
use crate::table::batch::{self, Cell, SideColumnNames};
use crate::table::encoder;
use crate::table::limits::MemoryGrowth;
use crate::table::source::RowBlock;

/// The most rows of a batch.
const BATCH_ROWS: u64 = 8192;
/// The most bytes of a batch: a text is no longer than the largest page, and every row may have it by a dictionary.
const BATCH_BYTES: u64 = 128 << 20;

/// Reads ids and labels batch by batch.
pub(super) struct TextReader {
    beside: SideColumnNames,
    reader: ParquetRecordBatchReader,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(RecordBatch, usize)>,
    /// What the texts given so far take.
    growth: MemoryGrowth,
}

impl TextReader {
    /// `None` when there is no such column.
    pub(super) fn open(input: &Input, beside: SideColumnNames) -> Result<Option<Self>, DataError> {
        let columns: Vec<usize> = beside.names().filter_map(|name| input.column(name)).collect();
        Self::of_columns(input, &columns, beside)
    }

    fn of_columns(input: &Input, columns: &[usize], beside: SideColumnNames) -> Result<Option<Self>, DataError> {
        if columns.is_empty() {
            return Ok(None);
        }
        let largest = input.largest_page(columns)?.max(1);
        let reader = input.reader(
            columns,
            RowBatches {
                first: 0,
                size: (BATCH_BYTES / largest).clamp(1, BATCH_ROWS) as usize,
                limit: None,
            },
        )?;
        Ok(Some(Self {
            beside,
            reader,
            batch: None,
            growth: MemoryGrowth::of(&input.origin),
        }))
    }

    /// Appends the ids and labels of the next rows, the first of which is row `first` of the file, and compares their
    /// encoders with that of the first.
    pub(super) fn append(
        &mut self,
        input: &Input,
        first: u64,
        rows: usize,
        encoder: Option<&str>,
        block: &mut RowBlock,
    ) -> Result<(), DataError> {
        let mut done = 0;
        while done < rows {
            let row = first + done as u64;
            let (batch, given) = self.refill(input, row)?;
            let take = (batch.num_rows() - *given).min(rows - done);
            let batch = batch.slice(*given, take);
            *given += take;
            let texts = self
                .beside
                .append(&input.origin, &batch, row, encoder, input.bad, block)?;
            self.growth.add_bytes(&input.origin, texts)?;
            done += take;
        }
        Ok(())
    }

    /// The batch in hand, or the next one.
    fn refill(&mut self, input: &Input, row: u64) -> Result<&mut (RecordBatch, usize), DataError> {
        self.batch = self.batch.take().filter(|(batch, given)| *given < batch.num_rows());
        if self.batch.is_none() {
            let next = guarded(|| Ok(self.reader.next().transpose()?)).map_err(|e| input.undecodable(row, e))?;
            self.batch = next.filter(|batch| batch.num_rows() > 0).map(|batch| (batch, 0));
        }
        self.batch.as_mut().ok_or_else(|| input.ends_early(row))
    }
}

/// The mark of the first row in the column of encoders.
pub(super) fn first_encoder(input: &Input, column: &str) -> Result<Option<String>, DataError> {
    let mut first = None;
    for_each_row(input, 1, &[column], &mut |_, cells| {
        first = cells.into_iter().next().and_then(Cell::into_text);
        Ok(false)
    })?;
    Ok(first.and_then(encoder::from_text))
}

/// Gives every row of some columns that exist, with its number from zero, until `each` has enough.
pub(super) fn for_each_row(
    input: &Input,
    rows: u64,
    names: &[&str],
    each: &mut dyn FnMut(u64, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<(), DataError> {
    let columns: Vec<usize> = names.iter().filter_map(|name| input.column(name)).collect();
    let Some(mut texts) = TextReader::of_columns(input, &columns, SideColumnNames::default())? else {
        return Ok(());
    };
    let (mut row, mut growth) = (0, MemoryGrowth::of(&input.origin));
    while row < rows {
        let (batch, given) = texts.refill(input, row)?;
        *given = batch.num_rows();
        if !batch::for_each_row(&input.origin, batch, names, row, &mut growth, each)? {
            break;
        }
        row += batch.num_rows() as u64;
    }
    Ok(())
}
