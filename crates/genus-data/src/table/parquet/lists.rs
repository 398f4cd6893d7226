//! Features of every kind that Arrow knows, by way of its reader.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::pages::for_each_length;
use super::{Batches, Input, guarded};
use crate::error::{DataError, Place};
use crate::table::element::append_f16;
use crate::table::limits::check_features;
use crate::table::source::Origin;

/// Bytes of features decoded at a time: they are still in the processor's cache when they are copied into the block.
const BATCH_BYTES: u64 = 1 << 20;

/// Reads lists batch by batch.
pub(super) struct ListReader {
    reader: ParquetRecordBatchReader,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(ArrayRef, usize)>,
}

impl ListReader {
    /// Begins at a row of the file, all of whose rows must have so many features.
    pub(super) fn open(input: &Input, column: usize, dim: usize, first: u64) -> Result<Self, DataError> {
        check_lengths(input, column, dim)?;
        let rows = Batches {
            first: first as usize,
            size: batch_rows(dim),
            limit: None,
        };
        Ok(Self {
            reader: input.reader(&[column], rows)?,
            batch: None,
        })
    }

    /// The number of features of the first row.
    pub(super) fn first_dim(input: &Input, column: usize) -> Result<usize, DataError> {
        Lists::check_type(&input.origin, input.metadata.schema().field(column).data_type())?;
        // Before any of them is decoded: a page of a few bytes may stand for any number of values.
        let mut first = 0;
        for_each_length(input, column, |length, _| {
            first = length;
            false
        })?;
        check_features(&input.origin, first as u64)?;
        let rows = Batches {
            first: 0,
            size: 1,
            limit: Some(1),
        };
        let mut first = Self {
            reader: input.reader(&[column], rows)?,
            batch: None,
        };
        let (array, _) = first.refill(input, 0)?;
        let lists = Lists::of(&input.origin, array)?;
        if array.is_null(0) {
            return Err(null_list(input, 0));
        }
        Ok(lists.length(0))
    }

    /// Appends at least one and at most `max_rows` rows, the first of which is row `first` of the file; gives their
    /// number.
    pub(super) fn append(
        &mut self,
        input: &Input,
        first: u64,
        dim: usize,
        max_rows: usize,
        values: &mut Vec<f32>,
    ) -> Result<usize, DataError> {
        let (array, given) = self.refill(input, first)?;
        let rows = (array.len() - *given).min(max_rows);
        append(input, array, *given..*given + rows, first, dim, values)?;
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
    for_each_length(input, column, |length, rows| {
        // What is null or empty has one value here too, and Arrow knows which it is.
        if length != dim && length != 1 {
            wrong = Some(length);
            return false;
        }
        row += rows;
        true
    })?;
    match wrong {
        Some(length) => Err(input.origin.dimension(Place::Row(row + 1), dim, length)),
        None => Ok(()),
    }
}

/// Rows whose features take [`BATCH_BYTES`].
fn batch_rows(dim: usize) -> usize {
    let bytes_a_row = (dim.max(1) as u64).saturating_mul(4);
    (BATCH_BYTES / bytes_a_row).clamp(16, 1 << 16) as usize
}

/// Appends some rows of a batch; the first of them is row `first` of the file.
fn append(
    input: &Input,
    array: &ArrayRef,
    range: Range<usize>,
    first: u64,
    dim: usize,
    values: &mut Vec<f32>,
) -> Result<(), DataError> {
    let lists = Lists::of(&input.origin, array)?;
    let row_in_file = |row: usize| first + (row - range.start) as u64;
    if array.null_count() > 0
        && let Some(row) = range.clone().find(|&row| array.is_null(row))
    {
        return Err(null_list(input, row_in_file(row)));
    }
    if let Some(row) = range.clone().find(|&row| lists.length(row) != dim) {
        return Err(input
            .origin
            .dimension(Place::Row(row_in_file(row) + 1), dim, lists.length(row)));
    }
    // Lists of which none is null follow each other without gaps.
    let elements = lists.start(range.start)..lists.start(range.end);
    if let Some(nulls) = lists.values.nulls().filter(|nulls| nulls.null_count() > 0)
        && let Some(at) = elements.clone().position(|at| nulls.is_null(at))
    {
        return Err(input.origin.row(
            Place::Row(first + (at / dim) as u64 + 1),
            format!(
                "feature {} of \"embedding\" is null; fill it in or remove the row",
                at % dim + 1
            ),
        ));
    }
    append_numbers(&lists.values, elements, values).ok_or_else(|| {
        input
            .origin
            .malformed("column \"embedding\" is damaged; write the file again")
    })
}

fn null_list(input: &Input, row: u64) -> DataError {
    input.origin.row(
        Place::Row(row + 1),
        "\"embedding\" is null; fill it in or remove the row",
    )
}

/// Appends a range of an array of floats; `None` when it has no such range.
fn append_numbers(array: &ArrayRef, range: Range<usize>, values: &mut Vec<f32>) -> Option<()> {
    fn slice<T: ArrowPrimitiveType>(array: &ArrayRef, range: Range<usize>) -> Option<&[T::Native]> {
        array
            .as_primitive_opt::<T>()
            .and_then(|array| array.values().get(range))
    }
    match array.data_type() {
        DataType::Float32 => values.extend_from_slice(slice::<Float32Type>(array, range)?),
        DataType::Float64 => values.extend(slice::<Float64Type>(array, range)?.iter().map(|&v| v as f32)),
        _ => append_f16(slice::<Float16Type>(array, range)?, values),
    }
    Some(())
}

/// A column of lists of any of the three kinds.
struct Lists<'a> {
    values: ArrayRef,
    offsets: Offsets<'a>,
}

enum Offsets<'a> {
    Small(&'a [i32]),
    Large(&'a [i64]),
    Fixed(usize),
}

impl<'a> Lists<'a> {
    fn of(origin: &Origin, array: &'a ArrayRef) -> Result<Self, DataError> {
        fn variable<O: OffsetSizeTrait>(array: &ArrayRef) -> Option<(ArrayRef, &[O])> {
            let list = array.as_list_opt::<O>()?;
            Some((list.values().clone(), list.value_offsets()))
        }
        let lists = if let Some((values, offsets)) = variable::<i32>(array) {
            Self {
                values,
                offsets: Offsets::Small(offsets),
            }
        } else if let Some((values, offsets)) = variable::<i64>(array) {
            Self {
                values,
                offsets: Offsets::Large(offsets),
            }
        } else if let Some(list) = array.as_fixed_size_list_opt() {
            let length = usize::try_from(list.value_length()).unwrap_or(0);
            Self {
                values: list.values().clone(),
                offsets: Offsets::Fixed(length),
            }
        } else {
            return Err(not_lists(origin, array.data_type()));
        };
        Self::check_type(origin, array.data_type())?;
        Ok(lists)
    }

    /// Fails for what is no list of floats.
    fn check_type(origin: &Origin, kind: &DataType) -> Result<(), DataError> {
        let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) = kind else {
            return Err(not_lists(origin, kind));
        };
        match item.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Ok(()),
            other => Err(origin.malformed(format!(
                "column \"embedding\" holds lists of {other} where lists of 16-, 32- or 64-bit floats are \
                 needed; convert it"
            ))),
        }
    }

    /// Where a row begins; for the row after the last, where that ends.
    fn start(&self, row: usize) -> usize {
        match self.offsets {
            Offsets::Small(offsets) => offsets[row] as usize,
            Offsets::Large(offsets) => offsets[row] as usize,
            Offsets::Fixed(length) => row * length,
        }
    }

    fn length(&self, row: usize) -> usize {
        self.start(row + 1) - self.start(row)
    }
}

fn not_lists(origin: &Origin, kind: &DataType) -> DataError {
    origin.malformed(format!(
        "column \"embedding\" holds {kind} where lists of floats are needed; store one list a row"
    ))
}
