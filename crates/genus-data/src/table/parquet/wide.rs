//! A column a feature, by way of Arrow's reader.

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::{Input, RowBatches, guarded};
use crate::error::DataError;
use crate::table::batch::{append_features, append_usable, check_features_type};
use crate::table::columns::FeatureColumns;
use crate::table::limits::{MAX_BATCH, check_features};
use crate::table::source::RowBlock;

/// Bytes of features decoded at a time.
const BATCH_BYTES: usize = 4 << 20;

/// Reads features batch by batch.
pub(super) struct WideReader {
    reader: ParquetRecordBatchReader,
    /// The columns of a batch in the order of the features, with their names.
    columns: Vec<(String, usize)>,
    features: FeatureColumns,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(RecordBatch, usize)>,
}

impl WideReader {
    /// Features of these columns, in this order.
    pub(super) fn open(input: &Input, features: &[usize]) -> Result<Self, DataError> {
        check_features(&input.origin, features.len() as u64)?;
        let schema = input.metadata.schema();
        let mut pages = 0u64;
        for &column in features {
            check_features_type(&input.origin, input.name(column), schema.field(column).data_type())?;
            // A page of every column is in memory at a time.
            pages = pages.saturating_add(input.largest_page(&[column])?);
        }
        if pages > MAX_BATCH {
            return Err(input.origin.malformed(format!(
                "the pages of its {} columns take {} MiB together; they may take {} MiB, write the file with smaller row groups",
                features.len(),
                pages >> 20,
                MAX_BATCH >> 20
            )));
        }
        // Arrow gives columns in the order of the file.
        let mut in_file = features.to_vec();
        in_file.sort_unstable();
        let place = |column: usize| in_file.partition_point(|&before| before < column);
        let columns = features
            .iter()
            .map(|&column| (input.name(column).to_owned(), place(column)));
        let columns = columns.collect();
        let rows = RowBatches {
            first: 0,
            size: (BATCH_BYTES / (8 * features.len().max(1))).clamp(16, 1 << 16),
            limit: None,
        };
        Ok(Self {
            reader: input.reader(&in_file, rows)?,
            columns,
            features: FeatureColumns::Wide(features.to_vec()),
            batch: None,
        })
    }

    /// Appends at least one and at most `max_rows` rows, the first of which is row `first` of the file; gives their
    /// number.
    pub(super) fn append(
        &mut self,
        input: &Input,
        first: u64,
        max_rows: usize,
        block: &mut RowBlock,
    ) -> Result<usize, DataError> {
        self.batch = self.batch.take().filter(|(batch, given)| *given < batch.num_rows());
        if self.batch.is_none() {
            let next = guarded(|| Ok(self.reader.next().transpose()?)).map_err(|e| input.undecodable(first, e))?;
            self.batch = next.filter(|batch| batch.num_rows() > 0).map(|batch| (batch, 0));
        }
        let Some((batch, given)) = &mut self.batch else {
            return Err(input.ends_early(first));
        };
        let rows = (batch.num_rows() - *given).min(max_rows);
        let named = self.columns.iter();
        let named = named.filter_map(|(name, place)| Some((name.as_str(), batch.columns().get(*place)?)));
        let columns: Vec<_> = named.collect();
        let (from, dim) = (*given, columns.len());
        let RowBlock { values, refused, .. } = block;
        append_usable(input.bad, from..from + rows, dim, values, refused, |part, values| {
            let first = first + (part.start - from) as u64;
            append_features(&input.origin, &columns, &self.features, part, first, dim, values)
        })?;
        *given += rows;
        Ok(rows)
    }
}
