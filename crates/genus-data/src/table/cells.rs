//! Columns of texts row by row: what items say, what they really are, where images lie.

use std::path::Path;

use arrow_schema::SchemaRef;

use super::batch::{self, Cell};
use super::columns::{ColumnKind, IDS, TableOptions, listed};
use super::csv::{self, Records};
use super::format::TableFormat;
use super::limits::MAX_ROW_BYTES;
use super::lines::Lines;
use super::source::FileOrigin;
use super::{arrow, jsonl, parquet, text};
use crate::error::{DataError, FilePosition};

/// Gives every cell that is not empty of the first of some columns that the table has, with the id of its row, until `each`
/// says that it is enough.
///
/// Tables are all but arrays (`.npy`, `.npz`, `.safetensors`). A row's id is that of [`Table::ids`](super::Table::ids) and of
/// [`ImageItem::id`](crate::ImageItem::id): the column of ids, or the path of an image, or else the row's number from zero.
pub fn for_each_cell(
    path: impl AsRef<Path>,
    columns: &[&str],
    options: &TableOptions,
    mut each: impl FnMut(String, String) -> bool,
) -> Result<(), DataError> {
    let origin = FileOrigin::new(path.as_ref()).called(options.called.as_deref());
    let format = match TableFormat::of(path.as_ref()).or(options.format) {
        Some(format) if has_columns(format) => format,
        _ => {
            return Err(origin.malformed(format!(
                "a file of this kind has no column {}; name a .csv, .jsonl, .parquet or .feather file with the columns id and {}",
                quoted(columns),
                columns.first().copied().unwrap_or_default()
            )));
        }
    };
    let ids: Vec<&str> = options.id.as_deref().into_iter().chain(IDS).collect();
    let mut row = 0u64;
    let found = for_each_row(&origin, format, MAX_ROW_BYTES, &[columns, &ids], &mut |_, mut cells| {
        let id = cells.pop().and_then(Cell::into_text);
        let cell = cells.pop().and_then(Cell::into_text).unwrap_or_default();
        let name = id.unwrap_or_else(|| row.to_string());
        row += 1;
        Ok(cell.is_empty() || each(name, cell))
    })?;
    match found.is_missing(0) {
        false => Ok(()),
        true => Err(origin.malformed(format!(
            "there is no column {}; the file has {}",
            quoted(columns),
            listed(&found.present)
        ))),
    }
}

fn quoted(columns: &[&str]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    columns.join(" or ")
}

/// Whether tables of a format have columns with names.
pub(crate) fn has_columns(format: TableFormat) -> bool {
    format.is_text() || matches!(format, TableFormat::Parquet | TableFormat::Arrow)
}

/// The columns of a table that has such, with what is in them in its first row.
pub(crate) fn columns_of(origin: &FileOrigin, format: TableFormat) -> Result<Vec<(String, ColumnKind)>, DataError> {
    let owned =
        |named: Vec<(&str, ColumnKind)>| named.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
    Ok(match format {
        TableFormat::Csv | TableFormat::Tsv => csv::columns_of(origin, format)?,
        TableFormat::Jsonl => {
            let mut lines = Lines::new(origin.clone(), text::open(origin)?, b'\n', MAX_ROW_BYTES);
            lines.read_filled()?;
            let first: Option<jsonl::Object> = serde_json::from_slice(&lines.text).ok();
            let fields = first.into_iter().flatten();
            fields.map(|(name, value)| (name, jsonl::kind(&value))).collect()
        }
        TableFormat::Parquet => owned(batch::named(parquet::schema(origin)?.as_ref())),
        TableFormat::Arrow => owned(batch::named(arrow::schema(origin)?.as_ref())),
        TableFormat::Npy | TableFormat::Npz | TableFormat::Safetensors => Vec::new(),
    })
}

/// Which columns of a table were found.
pub(crate) struct FoundColumns {
    /// What it calls its columns.
    pub(crate) present: Vec<String>,
    /// Whether each of those that were wanted is there under some name.
    there: Vec<bool>,
}

impl FoundColumns {
    /// Whether the table lacks a column that was wanted.
    pub(crate) fn is_missing(&self, wanted: usize) -> bool {
        !self.there[wanted]
    }
}

/// Reads columns row by row until `each` has enough. Every wanted column has several names, best first. Where it is clear from the
/// start that the first is missing, no row is given.
pub(crate) fn for_each_row(
    origin: &FileOrigin,
    format: TableFormat,
    limit: u64,
    wanted: &[&[&str]],
    each: &mut dyn FnMut(FilePosition, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<FoundColumns, DataError> {
    let of_binary = |present: Vec<String>, rows: &mut dyn FnMut(&[&str]) -> Result<(), DataError>| {
        let find = |names: &&[&str]| names.iter().position(|name| present.iter().any(|other| other == name));
        let chosen: Vec<Option<usize>> = wanted.iter().map(find).collect();
        let names: Vec<&str> = chosen
            .iter()
            .zip(wanted)
            .map(|(at, names)| at.map_or("", |at| names[at]))
            .collect();
        let there: Vec<bool> = chosen.iter().map(Option::is_some).collect();
        if there.first() == Some(&true) {
            rows(&names)?;
        }
        Ok(FoundColumns { present, there })
    };
    match format {
        TableFormat::Csv | TableFormat::Tsv => of_csv(origin, format, limit, wanted, each),
        TableFormat::Jsonl => of_jsonl(origin, limit, wanted, each),
        TableFormat::Parquet => of_binary(names(&parquet::schema(origin)?), &mut |names| {
            parquet::for_each_row(origin, names, &mut |row, cells| each(FilePosition::Row(row + 1), cells))
        }),
        TableFormat::Arrow => of_binary(names(&arrow::schema(origin)?), &mut |names| {
            arrow::for_each_row(origin, names, &mut |row, cells| each(FilePosition::Row(row + 1), cells))
        }),
        TableFormat::Npy | TableFormat::Npz | TableFormat::Safetensors => Ok(FoundColumns {
            present: Vec::new(),
            there: vec![false; wanted.len()],
        }),
    }
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn of_csv(
    origin: &FileOrigin,
    format: TableFormat,
    limit: u64,
    wanted: &[&[&str]],
    each: &mut dyn FnMut(FilePosition, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<FoundColumns, DataError> {
    let mut records = Records::sniffed(origin.clone(), text::open(origin)?, csv::delimiter(format), limit)?;
    records.read()?;
    let present: Vec<String> = records.record.iter().map(|name| name.trim().to_owned()).collect();
    let find = |names: &&[&str]| {
        names
            .iter()
            .find_map(|want| present.iter().position(|name| name == want))
    };
    let columns: Vec<Option<usize>> = wanted.iter().map(find).collect();
    let there: Vec<bool> = columns.iter().map(Option::is_some).collect();
    while there.first() == Some(&true)
        && let Some(line) = records.read()?
    {
        if records.record.len() != present.len() {
            let problem = csv::wrong_cells(records.record.len(), present.len());
            return Err(origin.row(FilePosition::Line(line), problem));
        }
        let cell = |column: &Option<usize>| column.map_or(Cell::Null, |at| Cell::Written(records.cell(at).to_owned()));
        if !each(FilePosition::Line(line), columns.iter().map(cell).collect())? {
            break;
        }
    }
    Ok(FoundColumns { present, there })
}

fn of_jsonl(
    origin: &FileOrigin,
    limit: u64,
    wanted: &[&[&str]],
    each: &mut dyn FnMut(FilePosition, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<FoundColumns, DataError> {
    let mut lines = Lines::new(origin.clone(), text::open(origin)?, b'\n', limit);
    let mut found = FoundColumns {
        present: Vec::new(),
        there: vec![false; wanted.len()],
    };
    while lines.read_filled()? {
        let place = FilePosition::Line(lines.line);
        let object: jsonl::Object = serde_json::from_slice(&lines.text).map_err(|e| {
            let name = wanted
                .first()
                .and_then(|names| names.first())
                .copied()
                .unwrap_or_default();
            let example = format!(r#"{{"id": "a", "{name}": "…"}}"#);
            origin.row(place, jsonl::problem(&e, &example))
        })?;
        if found.present.is_empty() {
            found.present = object.keys().cloned().collect();
        }
        let mut cells = Vec::with_capacity(wanted.len());
        for (names, there) in wanted.iter().zip(&mut found.there) {
            let value = names.iter().find_map(|name| object.get(*name));
            *there |= value.is_some();
            cells.push(value.map_or(Cell::Null, jsonl::cell));
        }
        if !each(place, cells)? {
            break;
        }
    }
    Ok(found)
}
