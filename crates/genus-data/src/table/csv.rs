//! CSV: a header, then a row a line, with commas, semicolons or tabs between the cells. [`Columns`] says which columns are
//! what.

use std::collections::HashMap;
use std::io::{self, BufRead, Cursor, Read};

use csv::{Reader, ReaderBuilder, StringRecord, Terminator};

use super::columns::{ColumnKind, Columns, FeatureColumns, Named, TableOptions};
use super::encoder;
use super::format::TableFormat;
use super::label;
use super::limits::{MAX_FEATURES, MAX_ROW_BYTES, too_long};
use super::rows::{Row, RowBlocks, RowReader};
use super::source::{BadRows, FileOrigin, TableSource};
use super::text::{self, LineReader, Text, has_line};
use crate::error::{DataError, FilePosition};

const HEADER_NEEDED: &str =
    "the first line must name the columns, for example \"id,label,f0,f1\" or \"id,label,embedding\"";

/// What stands between the cells of a format; `None` when the header of a file says it.
pub(super) fn delimiter(format: TableFormat) -> Option<u8> {
    (format == TableFormat::Tsv).then_some(b'\t')
}

/// The columns of a file with what is in them in its first row.
pub(super) fn columns_of(origin: &FileOrigin, format: TableFormat) -> Result<Vec<(String, ColumnKind)>, DataError> {
    let mut records = Records::sniffed(origin.clone(), text::open(origin)?, delimiter(format), MAX_ROW_BYTES)?;
    records.read()?;
    let names: Vec<String> = records.record.iter().map(|name| name.trim().to_owned()).collect();
    records.record.clear();
    records.read()?;
    let kinds: Vec<ColumnKind> = kinds(&names, &records).into_iter().map(|(_, kind)| kind).collect();
    Ok(names.into_iter().zip(kinds).collect())
}

/// Opens a file of values.
pub(super) fn open(
    origin: FileOrigin,
    format: TableFormat,
    options: &TableOptions,
    bad: BadRows,
) -> Result<Box<dyn TableSource>, DataError> {
    let mut records = Records::sniffed(origin.clone(), text::open(&origin)?, delimiter(format), MAX_ROW_BYTES)?;
    let Some(line) = records.read()? else {
        return Err(DataError::NoRows { path: origin.path });
    };
    let place = FilePosition::Line(line);
    let names = header(&origin, place, &records.record)?;
    let Some(first) = records.read()? else {
        return Err(DataError::NoRows { path: origin.path });
    };
    let columns = Columns::of(&origin, &kinds(&names, &records), options)?;
    let mut times: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *times.entry(name).or_default() += 1);
    let features = match &columns.features {
        FeatureColumns::List(list) => std::slice::from_ref(list),
        FeatureColumns::Wide(features) => features,
    };
    let chosen = [columns.id, columns.label, columns.encoder].into_iter().flatten();
    if let Some(column) = chosen
        .chain(features.iter().copied())
        .find(|&column| times[names[column].as_str()] > 1)
    {
        let name = &names[column];
        return Err(origin.row(place, format!("two columns are called \"{name}\"; rename one")));
    }
    RowBlocks::open(
        origin.clone(),
        CsvRows {
            origin,
            records,
            first: Some(first),
            columns,
            names,
        },
        bad,
    )
}

/// The names of the columns.
fn header(origin: &FileOrigin, place: FilePosition, header: &StringRecord) -> Result<Vec<String>, DataError> {
    if header.len() > MAX_FEATURES {
        let problem = format!("{} columns; a row has at most {MAX_FEATURES} features", header.len());
        return Err(origin.row(place, problem));
    }
    let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
    // pandas numbers columns that have no names, from zero.
    let in_turn = names.iter().enumerate().all(|(at, name)| *name == at.to_string());
    if !in_turn && names.iter().all(|name| name.parse::<f64>().is_ok()) {
        let problem = format!("there are only numbers where the header should be; {HEADER_NEEDED}");
        return Err(origin.row(place, problem));
    }
    Ok(names)
}

/// The names of columns with what stands in the record read last.
fn kinds<'a, R: Read>(names: &'a [String], records: &Records<R>) -> Vec<Named<'a>> {
    let kind = |column: usize| {
        records
            .record
            .get(column)
            .map_or(ColumnKind::Other, |cell| kind(cell, records.decimal))
    };
    names
        .iter()
        .enumerate()
        .map(|(column, name)| (name.as_str(), kind(column)))
        .collect()
}

fn kind(cell: &str, decimal: DecimalMark) -> ColumnKind {
    let mut numbers = list(cell).map(|number| decimal.parse(number).is_some());
    match (cell.trim(), numbers.next(), numbers.next()) {
        ("", ..) => ColumnKind::Other,
        (cell, ..) if decimal.parse(cell).is_some() => ColumnKind::Number,
        (cell, ..) if cell.starts_with('[') => ColumnKind::List,
        // Several numbers are a list only in a column that is called so.
        (_, Some(true), Some(true)) if numbers.all(|is_number| is_number) => ColumnKind::Other,
        _ => ColumnKind::Text,
    }
}

/// The numbers of a cell that holds a list.
fn list(cell: &str) -> impl Iterator<Item = &str> {
    let cell = cell.trim();
    let list = cell.strip_prefix('[').and_then(|c| c.strip_suffix(']')).unwrap_or(cell);
    list.split([',', ';', ' ', '\t', '\n', '\r'])
        .filter(|number| !number.is_empty())
}

/// What stands before the decimals of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalMark {
    Point,
    /// A comma too, where nothing else is one.
    Comma,
}

impl DecimalMark {
    fn parse(self, cell: &str) -> Option<f32> {
        let cell = cell.trim();
        match cell.parse() {
            Ok(number) => Some(number),
            Err(_) if self == DecimalMark::Comma && !cell.contains('.') => cell.replacen(',', ".", 1).parse().ok(),
            Err(_) => None,
        }
    }
}

struct CsvRows {
    origin: FileOrigin,
    records: Records<LineReader<io::Chain<Cursor<Vec<u8>>, Text>>>,
    /// The line of the first row, which was read to see what is in the columns.
    first: Option<u64>,
    columns: Columns,
    names: Vec<String>,
}

impl RowReader for CsvRows {
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        let line = match self.first.take() {
            Some(line) => line,
            None => match self.records.read()? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let (record, columns) = (&self.records.record, &self.columns);
        let refuse = |problem: String| self.origin.row(FilePosition::Line(line), problem);
        if record.len() != self.names.len() {
            return Err(refuse(wrong_cells(record.len(), self.names.len())));
        }
        let not_a_number = |column: usize, cell: &str| {
            let name = &self.names[column];
            refuse(format!(
                "column \"{name}\" holds \"{}\" where a number is needed; correct it, or remove the row",
                shortened(cell)
            ))
        };
        match &columns.features {
            &FeatureColumns::List(column) => {
                // A number with a decimal comma is no list.
                if let Some(number) = self.records.decimal.parse(&record[column]) {
                    values.push(number);
                } else {
                    for number in list(&record[column]) {
                        values.push(number.parse().map_err(|_| not_a_number(column, number))?);
                    }
                }
            }
            FeatureColumns::Wide(features) => {
                for &column in features {
                    let cell = &record[column];
                    let number = self.records.decimal.parse(cell);
                    values.push(number.ok_or_else(|| not_a_number(column, cell))?);
                }
            }
        }
        let text = |column: usize| self.records.cell(column);
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
        match &self.columns.features {
            FeatureColumns::List(_) => None,
            FeatureColumns::Wide(features) => features.get(feature).map(|&column| self.names[column].as_str()),
        }
    }

    fn left_out(&self) -> &[String] {
        &self.columns.left_out
    }

    fn is_ready(&self) -> bool {
        has_line(self.records.input().0.get_ref().1)
    }
}

/// The problem of a row whose cells are not as many as the columns.
pub(crate) fn wrong_cells(cells: usize, columns: usize) -> String {
    format!("{cells} cells where the header has {columns} columns; quote cells that contain what stands between cells")
}

/// What stands between the names of a header: the one of the three that is there most often, outside quotes.
fn delimiter_of(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    for &byte in header {
        quoted ^= byte == b'"';
        let counted = counts.iter_mut().filter(|(delimiter, _)| *delimiter == byte && !quoted);
        counted.for_each(|(_, count)| *count += 1);
    }
    // Of equal counts the first.
    let most = counts.iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(b',', |(delimiter, _)| *delimiter)
}

/// Records and the lines they begin in.
///
/// The `csv` crate notes where it was before each record, which is not yet the record's line after an empty line or a
/// carriage return. So records here end with the line feed alone, and the lines are told from what was read; a carriage
/// return before it is left at the end of the last cell.
pub(crate) struct Records<R> {
    origin: FileOrigin,
    reader: Reader<LimitedReader<R>>,
    /// Bytes that a record may take.
    limit: u64,
    /// How its numbers are written.
    decimal: DecimalMark,
    /// The record read last.
    pub(crate) record: StringRecord,
}

impl<R: BufRead> Records<LineReader<io::Chain<Cursor<Vec<u8>>, R>>> {
    /// Records with this between their cells, or with what the first line has between its names.
    pub(crate) fn sniffed(
        origin: FileOrigin,
        mut from: R,
        delimiter: Option<u8>,
        limit: u64,
    ) -> Result<Self, DataError> {
        let mut start = Vec::new();
        while start.iter().all(u8::is_ascii_whitespace) && (start.len() as u64) < limit {
            let line = from.by_ref().take(limit).read_until(b'\n', &mut start);
            if line.map_err(|e| origin.io(e))? == 0 {
                break;
            }
        }
        let delimiter = delimiter.unwrap_or_else(|| delimiter_of(&start));
        Ok(Self::new(
            origin,
            LineReader(Cursor::new(start).chain(from)),
            delimiter,
            limit,
        ))
    }
}

impl<R: Read> Records<R> {
    fn new(origin: FileOrigin, from: R, delimiter: u8, limit: u64) -> Self {
        let limited = LimitedReader {
            inner: from,
            allowed: limit,
            given: 0,
            last: b'\n',
        };
        let mut builder = ReaderBuilder::new();
        builder
            .flexible(true)
            .has_headers(false)
            .delimiter(delimiter)
            .terminator(Terminator::Any(b'\n'));
        Self {
            origin,
            reader: builder.from_reader(limited),
            limit,
            decimal: match delimiter {
                b',' => DecimalMark::Point,
                _ => DecimalMark::Comma,
            },
            record: StringRecord::new(),
        }
    }

    /// A cell of the record read last; the last cell keeps the carriage return of its line, which is none of its text.
    pub(crate) fn cell(&self, column: usize) -> &str {
        let cell = &self.record[column];
        match cell.strip_suffix('\r') {
            Some(text) if column + 1 == self.record.len() => text,
            _ => cell,
        }
    }

    /// What the records come from.
    fn input(&self) -> &R {
        &self.reader.get_ref().inner
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
                    return Err(self.origin.row(FilePosition::Line(line), too_long(self.limit)));
                }
                return Ok(Some(line));
            }
        }
    }

    fn refuse(&self, error: csv::Error, before: u64) -> DataError {
        match error.into_kind() {
            csv::ErrorKind::Io(e) if e.kind() == io::ErrorKind::FileTooLarge => {
                self.origin.row(FilePosition::Line(before), too_long(self.limit))
            }
            csv::ErrorKind::Io(e) => self.origin.io(e),
            csv::ErrorKind::Utf8 { .. } => self
                .origin
                .row(FilePosition::Line(before), "not UTF-8 text; save the file as UTF-8"),
            _ => self
                .origin
                .row(FilePosition::Line(before), "not readable as CSV; check the quotes"),
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
struct LimitedReader<R> {
    inner: R,
    allowed: u64,
    /// Bytes given in all.
    given: u64,
    /// The byte given last.
    last: u8,
}

impl<R: Read> Read for LimitedReader<R> {
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
