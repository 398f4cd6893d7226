//! Ids and labels.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::{Batches, Input, guarded};
use crate::error::{DataError, Place};
use crate::table::label;
use crate::table::source::Block;

const BATCH_ROWS: usize = 8192;

/// Reads ids and labels batch by batch.
pub(super) struct TextReader {
    reader: ParquetRecordBatchReader,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(RecordBatch, usize)>,
}

impl TextReader {
    /// `None` when the file has neither ids nor labels.
    pub(super) fn open(input: &Input) -> Result<Option<Self>, DataError> {
        let columns: Vec<usize> = ["id", "label"]
            .into_iter()
            .filter_map(|name| input.column(name))
            .collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let reader = input.reader(
            columns,
            Batches {
                first: 0,
                size: BATCH_ROWS,
                limit: None,
            },
        )?;
        Ok(Some(Self { reader, batch: None }))
    }

    /// Appends the ids and labels of the next rows, the first of which is row `first` of the file.
    pub(super) fn append(
        &mut self,
        input: &Input,
        first: u64,
        rows: usize,
        block: &mut Block,
    ) -> Result<(), DataError> {
        let mut done = 0;
        while done < rows {
            let row = first + done as u64;
            let (batch, given) = self.refill(input, row)?;
            let take = (batch.num_rows() - *given).min(rows - done);
            append(input, &batch.slice(*given, take), row, block)?;
            *given += take;
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

/// Appends a batch whose first row is row `first` of the file.
fn append(input: &Input, batch: &RecordBatch, first: u64, block: &mut Block) -> Result<(), DataError> {
    let cells = |name: &str| match batch.column_by_name(name) {
        None => Ok(None),
        Some(column) => cells(column).map(Some).ok_or_else(|| {
            input.origin.malformed(format!(
                "column \"{name}\" holds {} where texts or integers are needed; convert it",
                column.data_type()
            ))
        }),
    };
    if let Some(ids) = cells("id")? {
        let target = block.ids.get_or_insert_default();
        for (row, id) in ids.into_iter().enumerate() {
            target.push(match id {
                Cell::Text(text) => text,
                Cell::Integer(integer) => integer.to_string(),
                Cell::Null => {
                    let place = Place::Row(first + row as u64 + 1);
                    return Err(input
                        .origin
                        .row(place, "the id is null; give every row an id or remove the column"));
                }
            });
        }
    }
    if let Some(labels) = cells("label")? {
        block.labels.extend(labels.into_iter().map(|cell| match cell {
            Cell::Text(text) => label::from_text(text),
            Cell::Integer(integer) => label::from_integer(integer),
            Cell::Null => None,
        }));
    }
    Ok(())
}

/// What stands in a row of a column.
#[derive(Clone)]
enum Cell {
    Text(String),
    Integer(i128),
    Null,
}

/// The cells of a column of texts or integers; `None` when it holds something else.
fn cells(array: &ArrayRef) -> Option<Vec<Cell>> {
    fn texts<'a>(cells: impl Iterator<Item = Option<&'a str>>) -> Vec<Cell> {
        cells
            .map(|cell| cell.map_or(Cell::Null, |text| Cell::Text(text.to_owned())))
            .collect()
    }
    fn integers<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef) -> Vec<Cell> {
        let cells = array.as_primitive::<T>().iter();
        cells
            .map(|cell| cell.map_or(Cell::Null, |integer| Cell::Integer(integer.into())))
            .collect()
    }
    Some(match array.data_type() {
        DataType::Utf8 => texts(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter()),
        DataType::Utf8View => texts(array.as_string_view().iter()),
        DataType::Int8 => integers::<Int8Type>(array),
        DataType::Int16 => integers::<Int16Type>(array),
        DataType::Int32 => integers::<Int32Type>(array),
        DataType::Int64 => integers::<Int64Type>(array),
        DataType::UInt8 => integers::<UInt8Type>(array),
        DataType::UInt16 => integers::<UInt16Type>(array),
        DataType::UInt32 => integers::<UInt32Type>(array),
        DataType::UInt64 => integers::<UInt64Type>(array),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let meanings = cells(dictionary.values())?;
            if meanings.is_empty() {
                return Some(vec![Cell::Null; array.len()]);
            }
            let cell = |(row, key): (usize, usize)| match dictionary.keys().is_null(row) {
                true => Cell::Null,
                false => meanings.get(key).cloned().unwrap_or(Cell::Null),
            };
            dictionary.normalized_keys().into_iter().enumerate().map(cell).collect()
        }
        _ => return None,
    })
}
