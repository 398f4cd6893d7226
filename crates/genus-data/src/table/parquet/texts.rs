//! Ids, labels and other columns of texts.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::{Batches, Input, guarded};
use crate::error::{DataError, Place};
use crate::table::arrays::ENCODER;
use crate::table::limits::{Growth, MAX_TEXT, kept};
use crate::table::source::Block;
use crate::table::{encoder, label};

/// The most rows of a batch.
const BATCH_ROWS: u64 = 8192;
/// The most bytes of a batch: a text is no longer than the largest page, and every row may have it by a dictionary.
const BATCH_BYTES: u64 = 128 << 20;

/// Reads ids and labels batch by batch.
pub(super) struct TextReader {
    reader: ParquetRecordBatchReader,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(RecordBatch, usize)>,
    /// What the texts given so far take.
    growth: Growth,
}

impl TextReader {
    /// `None` when the file has neither ids nor labels, nor encoders where those are asked for.
    pub(super) fn open(input: &Input, with_encoder: bool) -> Result<Option<Self>, DataError> {
        let names = ["id", "label"].into_iter().chain(with_encoder.then_some(ENCODER));
        Self::of_columns(input, names)
    }

    fn of_columns<'a>(input: &Input, names: impl Iterator<Item = &'a str>) -> Result<Option<Self>, DataError> {
        let columns: Vec<usize> = names.filter_map(|name| input.column(name)).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let largest = input.largest_page(&columns)?.max(1);
        let reader = input.reader(
            &columns,
            Batches {
                first: 0,
                size: (BATCH_BYTES / largest).clamp(1, BATCH_ROWS) as usize,
                limit: None,
            },
        )?;
        Ok(Some(Self {
            reader,
            batch: None,
            growth: Growth::of(&input.origin),
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
        block: &mut Block,
    ) -> Result<(), DataError> {
        let mut done = 0;
        while done < rows {
            let row = first + done as u64;
            let (batch, given) = self.refill(input, row)?;
            let take = (batch.num_rows() - *given).min(rows - done);
            let batch = batch.slice(*given, take);
            *given += take;
            let texts = append(input, &batch, row, encoder, block)?;
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

/// Appends a batch whose first row is row `first` of the file; gives what its texts take.
fn append(
    input: &Input,
    batch: &RecordBatch,
    first: u64,
    encoder: Option<&str>,
    block: &mut Block,
) -> Result<u64, DataError> {
    let mut bytes = 0;
    let place = |row: usize| Place::Row(first + row as u64 + 1);
    if let Some(encoders) = named_cells(input, batch, first, ENCODER)? {
        for (row, cell) in encoders.into_iter().enumerate() {
            encoder::agree(&input.origin, place(row), encoder, mark(cell).as_deref())?;
        }
    }
    if let Some(ids) = named_cells(input, batch, first, "id")? {
        let target = block.ids.get_or_insert_default();
        for (row, id) in ids.into_iter().enumerate() {
            target.push(match id.into_text() {
                Some(id) => {
                    bytes += kept(&id);
                    id
                }
                None => {
                    return Err(input
                        .origin
                        .row(place(row), "the id is null; give every row an id or remove the column"));
                }
            });
        }
    }
    if let Some(labels) = named_cells(input, batch, first, "label")? {
        let labels = labels.into_iter().map(Cell::into_label);
        block
            .labels
            .extend(labels.inspect(|label| bytes += label.as_deref().map_or(0, kept)));
    }
    Ok(bytes)
}

/// The mark of the first row in the column of encoders.
pub(super) fn first_encoder(input: &Input) -> Result<Option<String>, DataError> {
    let Some(mut texts) = TextReader::of_columns(input, [ENCODER].into_iter())? else {
        return Ok(None);
    };
    let (batch, _) = texts.refill(input, 0)?;
    let cells = named_cells(input, &batch.slice(0, 1), 0, ENCODER)?;
    Ok(cells.unwrap_or_default().into_iter().next().and_then(mark))
}

fn mark(cell: Cell) -> Option<String> {
    cell.into_text().and_then(encoder::from_text)
}

/// Gives every row of some columns that exist, with its number from zero.
pub(super) fn for_each_row(
    input: &Input,
    rows: u64,
    names: &[&str],
    each: &mut dyn FnMut(u64, Vec<Cell>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let Some(mut texts) = TextReader::of_columns(input, names.iter().copied())? else {
        return Ok(());
    };
    let (mut row, mut growth) = (0, Growth::of(&input.origin));
    while row < rows {
        let (batch, given) = texts.refill(input, row)?;
        let columns = names
            .iter()
            .map(|name| Ok(named_cells(input, batch, row, name)?.unwrap_or_default()))
            .collect::<Result<Vec<_>, DataError>>()?;
        *given = batch.num_rows();
        // Rows without a text count too.
        let texts = columns.iter().flatten().map(|cell| cell.as_text().unwrap_or_default());
        growth.add_texts(&input.origin, texts)?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..*given {
            let cells = columns.iter_mut().map(|column| column.next().unwrap_or(Cell::Null));
            each(row, cells.collect())?;
            row += 1;
        }
    }
    Ok(())
}

/// The cells of a column of a batch whose first row is row `first` of the file, where there is such a column.
fn named_cells(input: &Input, batch: &RecordBatch, first: u64, name: &str) -> Result<Option<Vec<Cell>>, DataError> {
    let Some(column) = batch.column_by_name(name) else {
        return Ok(None);
    };
    let cells = cells(column).ok_or_else(|| {
        input.origin.malformed(format!(
            "column \"{name}\" holds {} where texts or integers are needed; convert it",
            column.data_type()
        ))
    })?;
    let is_long = |cell: &Cell| cell.as_text().is_some_and(|text| text.len() > MAX_TEXT);
    if let Some(row) = cells.iter().position(is_long) {
        let problem = format!(
            "its \"{name}\" has more than {} KiB, the most of a text",
            MAX_TEXT >> 10
        );
        return Err(input.origin.row(Place::Row(first + row as u64 + 1), problem));
    }
    Ok(Some(cells))
}

/// What stands in a row of a column.
#[derive(Clone)]
pub(crate) enum Cell {
    Text(String),
    Integer(i128),
    Null,
}

impl Cell {
    fn as_text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            Cell::Integer(_) | Cell::Null => None,
        }
    }

    /// What stands there as a text, an integer as its digits.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Cell::Text(text) => Some(text),
            Cell::Integer(integer) => Some(integer.to_string()),
            Cell::Null => None,
        }
    }

    /// The label it means.
    pub(crate) fn into_label(self) -> Option<String> {
        match self {
            Cell::Text(text) => label::from_text(text),
            Cell::Integer(integer) => label::from_integer(integer),
            Cell::Null => None,
        }
    }
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
