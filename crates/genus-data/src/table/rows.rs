//! Formats that come a line at a time (`.csv`, `.tsv`, `.jsonl`): gathers their rows into blocks.

use std::collections::VecDeque;

use super::encoder;
use super::source::{BadRows, FileOrigin, RowBlock, TableSource};
use crate::error::{DataError, FilePosition};

/// One row but for its features.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) id: Option<String>,
    pub(super) label: Option<String>,
    pub(super) encoder: Option<String>,
}

/// A file that gives row after row.
pub(super) trait RowReader: Send {
    /// The next row, its features appended to `values`; `None` at the end.
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError>;

    /// What the file calls a feature.
    fn column_name(&self, feature: usize) -> Option<&str>;

    /// Columns that are no features, though somebody might have meant them so.
    fn left_out(&self) -> &[String];

    /// Whether the next row is at hand, so that reading it waits for nobody.
    fn is_ready(&self) -> bool;
}

/// Blocks of rows.
pub(super) struct RowBlocks<R> {
    origin: FileOrigin,
    rows: R,
    dim: usize,
    has_ids: bool,
    encoder: Option<String>,
    /// The row that was read to learn `dim`, `has_ids` and `encoder`.
    first: Option<(Row, Vec<f32>)>,
    bad: BadRows,
    /// What is wrong with the rows before that one.
    refused: VecDeque<DataError>,
}

impl<R: RowReader + 'static> RowBlocks<R> {
    pub(super) fn open(origin: FileOrigin, mut rows: R, bad: BadRows) -> Result<Box<dyn TableSource>, DataError> {
        let mut values = Vec::new();
        let mut refused = VecDeque::new();
        let first = loop {
            values.clear();
            match rows.next_row(&mut values) {
                Ok(Some(row)) => match bad {
                    BadRows::SetAside { features } if features != values.len() => {
                        refused.push_back(origin.dimension(FilePosition::Line(row.line), features, values.len()));
                    }
                    _ => break row,
                },
                // With all that is wrong: nothing else can be said of the file.
                Ok(None) => return Err(refused.pop_front().unwrap_or(DataError::NoRows { path: origin.path })),
                Err(error) if bad.go_on(&error) => refused.push_back(error),
                Err(error) => return Err(error),
            }
        };
        let (dim, has_ids, encoder) = (values.len(), first.id.is_some(), first.encoder.clone());
        Ok(Box::new(Self {
            origin,
            rows,
            dim,
            has_ids,
            encoder,
            first: Some((first, values)),
            bad,
            refused,
        }))
    }
}

impl<R: RowReader> RowBlocks<R> {
    /// The next row, if it is as the first one was.
    fn next_checked(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        if let Some(error) = self.refused.pop_front() {
            return Err(error);
        }
        let start = values.len();
        let row = match self.first.take() {
            Some((row, first)) => {
                values.extend(first);
                row
            }
            None => match self.rows.next_row(values)? {
                Some(row) => row,
                None => return Ok(None),
            },
        };
        let place = FilePosition::Line(row.line);
        let found = values.len() - start;
        if found != self.dim {
            return Err(self.origin.dimension(place, self.dim, found));
        }
        if row.id.is_some() != self.has_ids {
            let (this, others) = if self.has_ids { ("no", "an") } else { ("an", "no") };
            return Err(self.origin.row(
                place,
                format!("the row has {this} id but the rows before have {others} id; give every row an id or none"),
            ));
        }
        encoder::agree(&self.origin, place, self.encoder.as_deref(), row.encoder.as_deref())?;
        Ok(Some(row))
    }
}

/// The line that an error speaks of.
fn line_of(error: &DataError) -> u64 {
    match error {
        DataError::MalformedRow { place, .. } | DataError::Dimension { place, .. } => match *place {
            FilePosition::Line(at) | FilePosition::Row(at) => at,
        },
        _ => 0,
    }
}

impl<R: RowReader> TableSource for RowBlocks<R> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn encoder(&self) -> Option<&str> {
        self.encoder.as_deref()
    }

    fn column_name(&self, feature: usize) -> Option<&str> {
        self.rows.column_name(feature)
    }

    fn left_out(&self) -> &[String] {
        self.rows.left_out()
    }

    fn next_block(&mut self, max_rows: usize) -> Result<Option<RowBlock>, DataError> {
        let mut block = RowBlock::default();
        let mut ids = Vec::new();
        while block.lines.len() < max_rows {
            // Somebody may type the rows, or make them one by one, and wait for what becomes of each.
            let waits = self.origin.is_standard_input() && !block.lines.is_empty();
            if waits && !self.rows.is_ready() {
                break;
            }
            let start = block.values.len();
            let row = match self.next_checked(&mut block.values) {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) if self.bad.go_on(&error) => {
                    block.values.truncate(start);
                    self.bad.fill(&mut block.values);
                    let line = line_of(&error);
                    block.refused.push((block.lines.len(), error));
                    Row {
                        line,
                        id: self.has_ids.then(String::new),
                        label: None,
                        encoder: None,
                    }
                }
                Err(error) => return Err(error),
            };
            ids.extend(row.id);
            block.labels.push(row.label);
            block.lines.push(row.line);
        }
        if block.lines.is_empty() {
            return Ok(None);
        }
        block.ids = self.has_ids.then_some(ids);
        Ok(Some(block))
    }
}
