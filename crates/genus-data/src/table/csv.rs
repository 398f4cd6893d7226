//! CSV: a header, then a row a line. `id`, `label`, `encoder`, `text` and `truth` may be there; the features are one column
//! `embedding` with a list in every cell, or else all the other columns.

use std::fs::File;
use std::io::{self, Read};

use csv::{Reader, ReaderBuilder, StringRecord, Terminator};

use super::encoder;
use super::label;
use super::limits::{MAX_FEATURES, MAX_ROW_BYTES, too_long};
use super::rows::{Row, RowBlocks, Rows};
use super::source::{Origin, Source};
use crate::error::{DataError, Place};

const HEADER_NEEDED: &str =
    "the first line must name the columns, for example \"id,label,f0,f1\" or \"id,label,embedding\"";

/// Columns that are for people and never features.
const BESIDE: [&str; 2] = ["text", "truth"];

/// Opens a `.csv` file and reads its header.
pub(super) fn open(origin: Origin, file: File) -> Result<Box<dyn Source>, DataError> {
    let mut records = Records::new(origin.clone(), file, MAX_ROW_BYTES);
    let Some(line) = records.read()? else {
        return Err(DataError::NoRows { path: origin.path });
    };
    let columns = Columns::of(&origin, Place::Line(line), &records.record)?;
    RowBlocks::open(
        origin.clone(),
        CsvRows {
            origin,
            records,
            columns,
        },
    )
}

/// What stands where.
struct Columns {
    id: Option<usize>,
    label: Option<usize>,
    encoder: Option<usize>,
    /// The column `embedding`.
    list: Option<usize>,
    /// Otherwise the columns of the features.
    features: Vec<usize>,
    names: Vec<String>,
}

impl Columns {
    fn of(origin: &Origin, place: Place, header: &StringRecord) -> Result<Self, DataError> {
        let refuse = |problem: String| origin.row(place, problem);
        if header.len() > MAX_FEATURES {
            return Err(refuse(format!(
                "{} columns; a row has at most {MAX_FEATURES} features",
                header.len()
            )));
        }
        let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(refuse(format!(
                "there are only numbers where the header should be; {HEADER_NEEDED}"
            )));
        }
        let find = |wanted: &str| -> Result<Option<usize>, DataError> {
            let mut found = names
                .iter()
                .enumerate()
                .filter(|(_, name)| *name == wanted)
                .map(|(column, _)| column);
            match (found.next(), found.next()) {
                (column, None) => Ok(column),
                _ => Err(refuse(format!("two columns are called \"{wanted}\"; rename one"))),
            }
        };
        let (id, label, encoder, list) = (find("id")?, find("label")?, find("encoder")?, find("embedding")?);
        let features = match list {
            Some(_) => Vec::new(),
            None => (0..names.len())
                .filter(|&column| ![id, label, encoder].contains(&Some(column)))
                .filter(|&column| !BESIDE.contains(&names[column].as_str()))
                .collect(),
        };
        if list.is_none() && features.is_empty() {
            return Err(refuse(format!("there is no column with features; {HEADER_NEEDED}")));
        }
        // pandas writes its index so, and nobody means it to be a feature.
        if let Some(&column) = features.iter().find(|&&column| names[column].is_empty()) {
            return Err(refuse(format!(
                "column {} has no name; name it or remove it (pandas leaves it out with index=False)",
                column + 1
            )));
        }
        Ok(Self {
            id,
            label,
            encoder,
            list,
            features,
            names,
        })
    }
}

struct CsvRows {
    origin: Origin,
    records: Records<File>,
    columns: Columns,
}

impl Rows for CsvRows {
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        let Some(line) = self.records.read()? else {
            return Ok(None);
        };
        let (record, columns) = (&self.records.record, &self.columns);
        let refuse = |problem: String| self.origin.row(Place::Line(line), problem);
        if record.len() != columns.names.len() {
            return Err(refuse(format!(
                "{} cells where the header has {} columns; quote cells that contain a comma",
                record.len(),
                columns.names.len()
            )));
        }
        let not_a_number = |column: usize, cell: &str| {
            let name = &columns.names[column];
            refuse(format!(
                "column \"{name}\" holds \"{}\" where a number is needed; correct it, or remove the column if \
                 it is no feature (a column of texts may be called text)",
                shortened(cell)
            ))
        };
        match columns.list {
            Some(column) => {
                let cell = record[column].trim();
                let list = cell.strip_prefix('[').and_then(|c| c.strip_suffix(']')).unwrap_or(cell);
                for number in list
                    .split([',', ';', ' ', '\t', '\n', '\r'])
                    .filter(|number| !number.is_empty())
                {
                    values.push(number.parse().map_err(|_| not_a_number(column, number))?);
                }
            }
            None => {
                for &column in &columns.features {
                    let cell = &record[column];
                    values.push(cell.trim().parse().map_err(|_| not_a_number(column, cell))?);
                }
            }
        }
        let text = |column: usize| match record[column].strip_suffix('\r') {
            Some(text) if column + 1 == record.len() => text,
            _ => &record[column],
        };
        let id = columns.id.map(|column| text(column).to_owned());
        let label = columns.label.and_then(|column| label::from_cell(text(column)));
        let encoder = columns
            .encoder
            .and_then(|column| encoder::from_text(text(column).to_owned()));
        Ok(Some(Row {
            line,
            id,
            label,
            encoder,
        }))
    }

    fn column_name(&self, feature: usize) -> Option<&str> {
        self.columns
            .features
            .get(feature)
            .map(|&column| self.columns.names[column].as_str())
    }
}

/// Records and the lines they begin in.
///
/// The `csv` crate notes where it was before each record, which is not yet the record's line after an empty line or a
/// carriage return. So records here end with the line feed alone, and the lines are told from what was read; a carriage
/// return before it is left at the end of the last cell.
pub(crate) struct Records<R> {
    origin: Origin,
    reader: Reader<Limited<R>>,
    /// Bytes that a record may take.
    limit: u64,
    /// The record read last.
    pub(crate) record: StringRecord,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(origin: Origin, from: R, limit: u64) -> Self {
        let limited = Limited {
            inner: from,
            allowed: limit,
            given: 0,
            last: b'\n',
        };
        let mut builder = ReaderBuilder::new();
        builder
            .flexible(true)
            .has_headers(false)
            .terminator(Terminator::Any(b'\n'));
        Self {
            origin,
            reader: builder.from_reader(limited),
            limit,
            record: StringRecord::new(),
        }
    }

    /// Reads the next record that is not an empty line and gives the line it begins in; `None` at the end.
    pub(crate) fn read(&mut self) -> Result<Option<u64>, DataError> {
        loop {
            self.reader.get_mut().allowed = self.limit;
            let before = self.reader.position().line();
            if !self
                .reader
                .read_record(&mut self.record)
                .map_err(|e| self.refuse(e, before))?
            {
                return Ok(None);
            }
            let empty = self.record.len() == 1 && &self.record[0] == "\r";
            if !empty {
                let (after, input) = (self.reader.position(), self.reader.get_ref());
                let at_end_of_file = after.byte() == input.given && input.last != b'\n';
                let within = self.record.as_slice().bytes().filter(|&b| b == b'\n').count() as u64;
                let line = after.line().saturating_sub(within + u64::from(!at_end_of_file));
                let line = line.max(before);
                // The reader below counts what it gives into a buffer, which may hold more than one record.
                if self.record.as_slice().len() as u64 > self.limit {
                    return Err(self.origin.row(Place::Line(line), too_long(self.limit)));
                }
                return Ok(Some(line));
            }
        }
    }

    fn refuse(&self, error: csv::Error, before: u64) -> DataError {
        match error.into_kind() {
            csv::ErrorKind::Io(e) if e.kind() == io::ErrorKind::FileTooLarge => {
                self.origin.row(Place::Line(before), too_long(self.limit))
            }
            csv::ErrorKind::Io(e) => self.origin.io(e),
            csv::ErrorKind::Utf8 { .. } => self
                .origin
                .row(Place::Line(before), "not UTF-8 text; save the file as UTF-8"),
            _ => self
                .origin
                .row(Place::Line(before), "not readable as CSV; check the quotes"),
        }
    }
}

/// A cell short enough for a message.
fn shortened(cell: &str) -> String {
    const LONGEST: usize = 40;
    match cell.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell.to_owned(),
    }
}

/// A reader that fails once it has given as much as is allowed.
struct Limited<R> {
    inner: R,
    allowed: u64,
    /// Bytes given in all.
    given: u64,
    /// The byte given last.
    last: u8,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.allowed == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.inner.read(buffer)?;
        self.allowed = self.allowed.saturating_sub(count as u64);
        self.given += count as u64;
        self.last = buffer[..count].last().copied().unwrap_or(self.last);
        Ok(count)
    }
}
