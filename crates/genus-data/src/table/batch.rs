//! Batches of rows as Arrow holds them, for the formats that are read by way of it.

use std::cell::Cell as Flag;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::columns::{ColumnKind, Columns, FeatureColumns, Named};
use super::element::append_f16;
use super::limits::{MAX_TEXT, MemoryGrowth, kept};
use super::source::{BadRows, FileOrigin, RowBlock};
use super::{encoder, label};
use crate::error::{DataError, FilePosition};

/// Where the metadata of a file name the encoder.
pub(crate) const ENCODER_KEY: &str = "genus.encoder";

/// Runs a decoder; `None` when it panics. Decoders check most of what they read, but not everything.
///
/// What it leaves behind is not used again: after an error the reader is at its end.
pub(super) fn caught<T>(decode: impl FnOnce() -> T) -> Option<T> {
    let before = CAUGHT.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    CAUGHT.set(before);
    decoded.ok()
}

thread_local! {
    /// Whether a panic on this thread becomes an error.
    static CAUGHT: Flag<bool> = const { Flag::new(false) };
}

/// Whether this thread is in a decoder whose panics become errors, for panic hooks: such a panic is no news.
pub fn panic_is_caught() -> bool {
    CAUGHT.get()
}

/// The columns of a schema with what is in them.
pub(super) fn named(schema: &Schema) -> Vec<Named<'_>> {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().as_str(), kind(field.data_type())))
        .collect()
}

fn kind(data_type: &DataType) -> ColumnKind {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            match item.data_type().is_floating() {
                true => ColumnKind::List,
                false => ColumnKind::Other,
            }
        }
        DataType::Dictionary(_, values) => kind(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnKind::Text,
        number if is_number(number) => ColumnKind::Number,
        _ => ColumnKind::Other,
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

/// The names of the columns beside the features.
#[derive(Clone, Debug, Default)]
pub(super) struct SideColumnNames {
    pub(super) id: Option<String>,
    pub(super) label: Option<String>,
    pub(super) encoder: Option<String>,
}

impl SideColumnNames {
    pub(super) fn of(columns: &Columns, named: &[Named]) -> Self {
        let name = |column: Option<usize>| column.map(|column| named[column].0.to_owned());
        Self {
            id: name(columns.id),
            label: name(columns.label),
            encoder: name(columns.encoder),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.id, &self.label, &self.encoder]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// Appends ids and labels of a batch whose first row is row `first` of the file, and compares its encoders with that of
    /// the rows before. Gives what the texts take.
    pub(super) fn append(
        &self,
        origin: &FileOrigin,
        batch: &RecordBatch,
        first: u64,
        encoder: Option<&str>,
        bad: BadRows,
        block: &mut RowBlock,
    ) -> Result<u64, DataError> {
        let place = |row: usize| FilePosition::Row(first + row as u64 + 1);
        let mut bytes = 0;
        if let Some((name, encoders)) = column(batch, &self.encoder) {
            for row in 0..batch.num_rows() {
                let mark = cell(origin, name, encoders, row, first)?
                    .into_text()
                    .and_then(encoder::from_text);
                encoder::agree(origin, place(row), encoder, mark.as_deref())?;
            }
        }
        if let Some((name, ids)) = column(batch, &self.id) {
            let target = block.ids.get_or_insert_default();
            for row in 0..batch.num_rows() {
                let id = cell(origin, name, ids, row, first)?.into_text();
                let id = match (id, bad) {
                    (Some(id), _) => id,
                    // Which is refused as an empty one is.
                    (None, BadRows::SetAside { .. }) => String::new(),
                    (None, BadRows::Refuse) => {
                        let problem = "the id is null; give every row an id or remove the column";
                        return Err(origin.row(place(row), problem));
                    }
                };
                bytes += kept(&id);
                target.push(id);
            }
        }
        if let Some((name, labels)) = column(batch, &self.label) {
            for row in 0..batch.num_rows() {
                let label = cell(origin, name, labels, row, first)?.into_label();
                bytes += label.as_deref().map_or(0, kept);
                block.labels.push(label);
            }
        }
        Ok(bytes)
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &'a Option<String>) -> Option<(&'a str, &'a ArrayRef)> {
    let name = name.as_deref()?;
    Some((name, batch.column_by_name(name)?))
}

/// What stands in a row of a column.
#[derive(Clone)]
pub(crate) enum Cell {
    Text(String),
    /// A text of a format that cannot tell texts from integers.
    Written(String),
    Integer(i128),
    Null,
}

impl Cell {
    /// What stands there as a text, an integer as its digits.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Cell::Text(text) | Cell::Written(text) => Some(text),
            Cell::Integer(integer) => Some(integer.to_string()),
            Cell::Null => None,
        }
    }

    /// The label it means.
    pub(crate) fn into_label(self) -> Option<String> {
        match self {
            Cell::Text(text) => label::from_text(text),
            Cell::Written(text) => label::from_cell(&text),
            Cell::Integer(integer) => label::from_integer(integer),
            Cell::Null => None,
        }
    }
}

/// A cell of the column of a batch whose first row is row `first` of the file.
pub(super) fn cell(
    origin: &FileOrigin,
    name: &str,
    array: &dyn Array,
    row: usize,
    first: u64,
) -> Result<Cell, DataError> {
    let place = || FilePosition::Row(first + row as u64 + 1);
    match value(array, row) {
        Some(CellValue::Text(text)) if text.len() > MAX_TEXT => {
            let problem = format!(
                "its \"{name}\" has more than {} KiB, the most of a text",
                MAX_TEXT >> 10
            );
            Err(origin.row(place(), problem))
        }
        Some(CellValue::Text(text)) => Ok(Cell::Text(text.to_owned())),
        Some(CellValue::Integer(integer)) => Ok(Cell::Integer(integer)),
        // pandas makes such a column of integers as soon as one of them is missing.
        Some(CellValue::Float(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Ok(Cell::Integer(number as i128))
        }
        Some(CellValue::Null) => Ok(Cell::Null),
        Some(CellValue::Float(_)) | None => Err(origin.malformed(format!(
            "column \"{name}\" holds {} where texts or integers are needed; convert it",
            array.data_type()
        ))),
    }
}

/// Gives the rows of a batch whose first row is row `first` of the file, a cell of every named column each, until `each` has
/// enough. Says whether it goes on.
pub(super) fn for_each_row(
    origin: &FileOrigin,
    batch: &RecordBatch,
    names: &[&str],
    first: u64,
    growth: &mut MemoryGrowth,
    each: &mut dyn FnMut(u64, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<bool, DataError> {
    let columns: Vec<_> = names.iter().map(|name| (name, batch.column_by_name(name))).collect();
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(names.len());
        for (name, array) in &columns {
            let cell = match array {
                Some(array) => cell(origin, name, array, row, first)?,
                None => Cell::Null,
            };
            // Rows without a text count too.
            let text = if let Cell::Text(text) = &cell {
                text.as_str()
            } else {
                ""
            };
            growth.add_texts(origin, [text])?;
            cells.push(cell);
        }
        if !each(first + row as u64, cells)? {
            return Ok(false);
        }
    }
    Ok(true)
}

enum CellValue<'a> {
    Text(&'a str),
    Integer(i128),
    Float(f64),
    Null,
}

/// What stands in a row of an array; `None` when it is neither a text nor a number.
fn value(array: &dyn Array, row: usize) -> Option<CellValue<'_>> {
    fn integer<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array, row: usize) -> CellValue<'a> {
        CellValue::Integer(array.as_primitive::<T>().value(row).into())
    }
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Some(CellValue::Null);
    }
    Some(match array.data_type() {
        DataType::Utf8 => CellValue::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => CellValue::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => CellValue::Text(array.as_string_view().value(row)),
        DataType::Int8 => integer::<Int8Type>(array, row),
        DataType::Int16 => integer::<Int16Type>(array, row),
        DataType::Int32 => integer::<Int32Type>(array, row),
        DataType::Int64 => integer::<Int64Type>(array, row),
        DataType::UInt8 => integer::<UInt8Type>(array, row),
        DataType::UInt16 => integer::<UInt16Type>(array, row),
        DataType::UInt32 => integer::<UInt32Type>(array, row),
        DataType::UInt64 => integer::<UInt64Type>(array, row),
        DataType::Float32 => CellValue::Float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => CellValue::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let Some(CellValue::Integer(key)) = value(dictionary.keys(), row) else {
                return None;
            };
            let values = dictionary.values().as_ref();
            let key = usize::try_from(key).ok().filter(|&key| key < values.len())?;
            return value(values, key);
        }
        _ => return None,
    })
}

/// Appends the features of some rows of a batch, the first of which is row `first` of the file.
pub(super) fn append_features(
    origin: &FileOrigin,
    columns: &[(&str, &ArrayRef)],
    features: &FeatureColumns,
    rows: Range<usize>,
    first: u64,
    dim: usize,
    values: &mut Vec<f32>,
) -> Result<(), DataError> {
    match (features, columns) {
        (FeatureColumns::List(_), [(name, array)]) if !is_number(array.data_type()) => {
            append_lists(origin, name, array, rows, first, dim, values)
        }
        _ => append_wide(origin, columns, rows, first, values),
    }
}

/// The same where rows that cannot be used are set aside: what is wrong with them is appended to `refused`, with their places
/// behind the rows that are in `values` already.
pub(super) fn append_usable(
    bad: BadRows,
    rows: Range<usize>,
    dim: usize,
    values: &mut Vec<f32>,
    refused: &mut Vec<(usize, DataError)>,
    mut append: impl FnMut(Range<usize>, &mut Vec<f32>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let start = values.len();
    match append(rows.clone(), values) {
        Err(error) if bad.go_on(&error) => values.truncate(start),
        result => return result,
    }
    for row in rows {
        let start = values.len();
        if let Err(error) = append(row..row + 1, values) {
            if !bad.go_on(&error) {
                return Err(error);
            }
            values.truncate(start);
            refused.push((start / dim.max(1), error));
            bad.fill(values);
        }
    }
    Ok(())
}

/// The number of features of the first row of a batch.
pub(super) fn first_dim(origin: &FileOrigin, columns: &[(&str, &ArrayRef)]) -> Result<usize, DataError> {
    match columns {
        [(name, array)] if !is_number(array.data_type()) => {
            let lists = Lists::of(origin, name, array)?;
            match array.is_null(0) {
                true => Err(null_list(origin, name, 0)),
                false => Ok(lists.length(0)),
            }
        }
        _ => Ok(columns.len()),
    }
}

/// Appends rows of columns that have a feature each.
fn append_wide(
    origin: &FileOrigin,
    columns: &[(&str, &ArrayRef)],
    rows: Range<usize>,
    first: u64,
    values: &mut Vec<f32>,
) -> Result<(), DataError> {
    let (start, dim) = (values.len(), columns.len());
    values.resize(start + rows.len() * dim, 0.0);
    let mut column = Vec::with_capacity(rows.len());
    for (feature, (name, array)) in columns.iter().enumerate() {
        if array.null_count() > 0
            && let Some(at) = rows.clone().position(|row| array.is_null(row))
        {
            let problem = format!("column \"{name}\" is null; fill it in or remove the row");
            return Err(origin.row(FilePosition::Row(first + at as u64 + 1), problem));
        }
        column.clear();
        append_numbers(array, rows.clone(), &mut column).ok_or_else(|| not_numbers(origin, name, array.data_type()))?;
        let places = values[start..].iter_mut().skip(feature).step_by(dim);
        places.zip(&column).for_each(|(to, from)| *to = *from);
    }
    Ok(())
}

/// Appends rows of a column of lists.
pub(super) fn append_lists(
    origin: &FileOrigin,
    name: &str,
    array: &ArrayRef,
    range: Range<usize>,
    first: u64,
    dim: usize,
    values: &mut Vec<f32>,
) -> Result<(), DataError> {
    let lists = Lists::of(origin, name, array)?;
    let row_in_file = |row: usize| first + (row - range.start) as u64;
    if array.null_count() > 0
        && let Some(row) = range.clone().find(|&row| array.is_null(row))
    {
        return Err(null_list(origin, name, row_in_file(row)));
    }
    if let Some(row) = range.clone().find(|&row| lists.length(row) != dim) {
        return Err(origin.dimension(FilePosition::Row(row_in_file(row) + 1), dim, lists.length(row)));
    }
    // Lists of which none is null follow each other without gaps.
    let elements = lists.start(range.start)..lists.start(range.end);
    if let Some(nulls) = lists.values.nulls().filter(|nulls| nulls.null_count() > 0)
        && let Some(at) = elements.clone().position(|at| nulls.is_null(at))
    {
        let problem = format!(
            "feature {} of \"{name}\" is null; fill it in or remove the row",
            at % dim + 1
        );
        return Err(origin.row(FilePosition::Row(first + (at / dim) as u64 + 1), problem));
    }
    append_numbers(&lists.values, elements, values)
        .ok_or_else(|| origin.malformed(format!("column \"{name}\" is damaged; write the file again")))
}

fn null_list(origin: &FileOrigin, name: &str, row: u64) -> DataError {
    let problem = format!("\"{name}\" is null; fill it in or remove the row");
    origin.row(FilePosition::Row(row + 1), problem)
}

/// Appends a range of an array of numbers; `None` when it has no such range or holds something else.
fn append_numbers(array: &ArrayRef, range: Range<usize>, values: &mut Vec<f32>) -> Option<()> {
    fn slice<T: ArrowPrimitiveType>(array: &ArrayRef, range: Range<usize>) -> Option<&[T::Native]> {
        array
            .as_primitive_opt::<T>()
            .and_then(|array| array.values().get(range))
    }
    macro_rules! extend {
        ($kind:ty) => {
            values.extend(slice::<$kind>(array, range)?.iter().map(|&v| v as f32))
        };
    }
    match array.data_type() {
        DataType::Float32 => values.extend_from_slice(slice::<Float32Type>(array, range)?),
        DataType::Float64 => extend!(Float64Type),
        DataType::Float16 => append_f16(slice::<Float16Type>(array, range)?, values),
        DataType::Int8 => extend!(Int8Type),
        DataType::Int16 => extend!(Int16Type),
        DataType::Int32 => extend!(Int32Type),
        DataType::Int64 => extend!(Int64Type),
        DataType::UInt8 => extend!(UInt8Type),
        DataType::UInt16 => extend!(UInt16Type),
        DataType::UInt32 => extend!(UInt32Type),
        DataType::UInt64 => extend!(UInt64Type),
        _ => return None,
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
    fn of(origin: &FileOrigin, name: &str, array: &'a ArrayRef) -> Result<Self, DataError> {
        fn variable<O: OffsetSizeTrait>(array: &ArrayRef) -> Option<(ArrayRef, &[O])> {
            let list = array.as_list_opt::<O>()?;
            Some((list.values().clone(), list.value_offsets()))
        }
        check_features_type(origin, name, array.data_type())?;
        if let Some((values, offsets)) = variable::<i32>(array) {
            let offsets = Offsets::Small(offsets);
            return Ok(Self { values, offsets });
        }
        if let Some((values, offsets)) = variable::<i64>(array) {
            let offsets = Offsets::Large(offsets);
            return Ok(Self { values, offsets });
        }
        let Some(list) = array.as_fixed_size_list_opt() else {
            return Err(not_numbers(origin, name, array.data_type()));
        };
        Ok(Self {
            values: list.values().clone(),
            offsets: Offsets::Fixed(usize::try_from(list.value_length()).unwrap_or(0)),
        })
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

/// Fails for a column that holds neither numbers nor lists of floats.
pub(super) fn check_features_type(origin: &FileOrigin, name: &str, data_type: &DataType) -> Result<(), DataError> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => match item.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Ok(()),
            other => Err(origin.malformed(format!(
                "column \"{name}\" holds lists of {other} where lists of 16-, 32- or 64-bit floats are needed; convert it"
            ))),
        },
        number if is_number(number) => Ok(()),
        other => Err(not_numbers(origin, name, other)),
    }
}

fn not_numbers(origin: &FileOrigin, name: &str, data_type: &DataType) -> DataError {
    origin.malformed(format!(
        "column \"{name}\" holds {data_type} where numbers or lists of floats are needed; convert it, or name other columns"
    ))
}
