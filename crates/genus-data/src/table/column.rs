//! One column of a table beside its features: what items say, or what they really are.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::csv::Records;
use super::limits::MAX_ROW_BYTES;
use super::lines::Lines;
use super::source::Origin;
use super::{extension, jsonl, parquet};
use crate::error::{DataError, Place};

/// What names a row, best name first: its id, or in a list of images the path.
const NAMES: [&str; 5] = ["id", "path", "image", "file", "filename"];

/// Gives every cell that is not empty of the first of some columns that the table has, with the id of its row, until `each`
/// says that it is enough.
///
/// Tables are `.csv`, `.jsonl` and `.parquet` files. A row's id is that of [`Table::ids`](super::Table::ids) and of
/// [`ImageItem::id`](crate::ImageItem::id): the column `id`, or the path of an image, or else the row's number from zero.
pub fn for_each_cell(
    path: impl AsRef<Path>,
    columns: &[&str],
    each: impl FnMut(String, String) -> bool,
) -> Result<(), DataError> {
    let path = path.as_ref();
    let origin = Origin::new(path);
    let wanted = Wanted {
        origin: &origin,
        columns,
    };
    match extension(path).as_str() {
        "csv" => wanted.of_csv(open(&origin)?, each),
        "jsonl" | "ndjson" => wanted.of_jsonl(open(&origin)?, each),
        "parquet" => wanted.of_parquet(path, each),
        _ => Err(origin.malformed(format!(
            "a file of this kind has no column {}; name a .csv, .jsonl or .parquet file with the columns id and {}",
            quoted(columns),
            columns.first().copied().unwrap_or_default()
        ))),
    }
}

fn open(origin: &Origin) -> Result<BufReader<File>, DataError> {
    let file = File::open(&origin.path).map_err(|e| origin.io(e))?;
    if origin.path.is_dir() {
        return Err(DataError::Directory {
            path: origin.path.clone(),
        });
    }
    Ok(BufReader::with_capacity(256 << 10, file))
}

fn quoted(columns: &[&str]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    columns.join(" or ")
}

struct Wanted<'a> {
    origin: &'a Origin,
    columns: &'a [&'a str],
}

impl Wanted<'_> {
    fn missing(&self, present: &[String]) -> DataError {
        let quoted = quoted(self.columns);
        const LISTED: usize = 12;
        let mut names = present.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
        if present.len() > LISTED {
            names.push_str(", …");
        }
        self.origin
            .malformed(format!("there is no column {quoted}; the file has {names}"))
    }

    fn of_csv(&self, reader: BufReader<File>, mut each: impl FnMut(String, String) -> bool) -> Result<(), DataError> {
        let mut records = Records::new(self.origin.clone(), reader, MAX_ROW_BYTES);
        records.read()?;
        let names: Vec<String> = records.record.iter().map(|name| name.trim().to_owned()).collect();
        let find = |wanted: &[&str]| {
            wanted
                .iter()
                .find_map(|want| names.iter().position(|name| name == want))
        };
        let Some(column) = find(self.columns) else {
            return Err(self.missing(&names));
        };
        let id = find(&NAMES);
        let mut row = 0u64;
        while let Some(line) = records.read()? {
            let record = &records.record;
            if record.len() != names.len() {
                let problem = format!(
                    "{} cells where the header has {} columns; quote cells that contain a comma",
                    record.len(),
                    names.len()
                );
                return Err(self.origin.row(Place::Line(line), problem));
            }
            // The last cell keeps the carriage return of its line.
            let cell = |column: usize| match record[column].strip_suffix('\r') {
                Some(text) if column + 1 == record.len() => text,
                _ => &record[column],
            };
            let name = id.map_or_else(|| row.to_string(), |id| cell(id).to_owned());
            row += 1;
            if !cell(column).is_empty() && !each(name, cell(column).to_owned()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn of_jsonl(&self, reader: BufReader<File>, mut each: impl FnMut(String, String) -> bool) -> Result<(), DataError> {
        let mut lines = Lines::new(self.origin.clone(), reader, b'\n', MAX_ROW_BYTES);
        let mut row = 0u64;
        let mut found = false;
        let mut present = Vec::new();
        while lines.read_filled()? {
            type Object = serde_json::Map<String, serde_json::Value>;
            let object: Object = serde_json::from_slice(&lines.text).map_err(|e| {
                let example = format!(
                    r#"{{"id": "a", "{}": "…"}}"#,
                    self.columns.first().copied().unwrap_or_default()
                );
                self.origin.row(Place::Line(lines.line), jsonl::problem(&e, &example))
            })?;
            let text = |wanted: &[&str]| {
                let value = wanted.iter().find_map(|name| object.get(*name))?;
                Some(match value {
                    serde_json::Value::Null => String::new(),
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            };
            let name = text(&NAMES).unwrap_or_else(|| row.to_string());
            row += 1;
            let cell = text(self.columns);
            found |= cell.is_some();
            if let Some(cell) = cell.filter(|cell| !cell.is_empty())
                && !each(name, cell)
            {
                return Ok(());
            }
            if row == 1 {
                present = object.into_iter().map(|(name, _)| name).collect();
            }
        }
        if found { Ok(()) } else { Err(self.missing(&present)) }
    }

    fn of_parquet(&self, path: &Path, mut each: impl FnMut(String, String) -> bool) -> Result<(), DataError> {
        let names = parquet::column_names(path)?;
        let find = |wanted: &[&'static str]| {
            wanted
                .iter()
                .copied()
                .find(|want| names.iter().any(|name| name == want))
        };
        let Some(&column) = self.columns.iter().find(|want| names.iter().any(|name| name == *want)) else {
            return Err(self.missing(&names));
        };
        let id = find(&NAMES).filter(|id| *id != column);
        let columns: Vec<&str> = id.into_iter().chain([column]).collect();
        let mut enough = false;
        parquet::for_each_row(path, &columns, |row, mut cells| {
            if enough {
                return Ok(());
            }
            let cell = cells.pop().and_then(parquet::Cell::into_text).unwrap_or_default();
            let name = cells.pop().and_then(parquet::Cell::into_text);
            let name = name.unwrap_or_else(|| row.to_string());
            enough = !cell.is_empty() && !each(name, cell);
            Ok(())
        })
    }
}
