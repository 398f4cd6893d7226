//! JSON Lines: an object a line with `embedding` and, where known, `id` and `label`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use super::label;
use super::rows::{MAX_ROW_BYTES, ROW_TOO_LONG, Row, RowBlocks, Rows};
use super::source::{Origin, Source};
use crate::error::{DataError, Place};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Opens a `.jsonl` file.
pub(super) fn open(origin: Origin, file: File) -> Result<Box<dyn Source>, DataError> {
    let reader = BufReader::with_capacity(256 << 10, file);
    RowBlocks::open(
        origin.clone(),
        JsonRows {
            origin,
            reader,
            text: Vec::new(),
            line: 0,
        },
    )
}

#[derive(Deserialize)]
struct Object {
    embedding: Option<Vec<f32>>,
    id: Option<Key>,
    label: Option<Key>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an id or a label must be a text or an integer")]
enum Key {
    // `i128` is not among the integers that untagged enums can hold.
    Negative(i64),
    Natural(u64),
    Text(String),
}

struct JsonRows {
    origin: Origin,
    reader: BufReader<File>,
    text: Vec<u8>,
    line: u64,
}

impl JsonRows {
    /// Reads the next line, or says that there is none.
    fn read_line(&mut self) -> Result<bool, DataError> {
        self.text.clear();
        self.line += 1;
        let mut limited = self.reader.by_ref().take(MAX_ROW_BYTES);
        let count = limited
            .read_until(b'\n', &mut self.text)
            .map_err(|e| self.origin.io(e))?;
        if count as u64 == MAX_ROW_BYTES && self.text.last() != Some(&b'\n') {
            return Err(self.origin.row(Place::Line(self.line), ROW_TOO_LONG));
        }
        if self.line == 1 && self.text.starts_with(BOM) {
            self.text.drain(..BOM.len());
        }
        Ok(count > 0)
    }
}

impl Rows for JsonRows {
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.text.trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.line;
        let refuse = |problem: String| self.origin.row(Place::Line(line), problem);
        let object: Object = serde_json::from_slice(&self.text).map_err(|e| {
            let problem = e.to_string();
            // The place that serde names is within the line.
            let problem = problem
                .rsplit_once(" at line ")
                .map_or(problem.as_str(), |(problem, _)| problem);
            refuse(format!(
                "{problem} (at character {}); a line must be an object like {{\"id\": \"a\", \"label\": \
                 \"cat\", \"embedding\": [0.1, 0.2]}}",
                e.column()
            ))
        })?;
        let Some(embedding) = object.embedding else {
            return Err(refuse(
                "no \"embedding\"; every line needs one, a list of numbers".to_owned(),
            ));
        };
        values.extend_from_slice(&embedding);
        let id = object.id.map(|id| match id {
            Key::Text(text) => text,
            Key::Negative(integer) => integer.to_string(),
            Key::Natural(integer) => integer.to_string(),
        });
        let label = object.label.and_then(|label| match label {
            Key::Text(text) => label::from_text(text),
            Key::Negative(integer) => label::from_integer(integer.into()),
            Key::Natural(integer) => label::from_integer(integer.into()),
        });
        Ok(Some(Row { line, id, label }))
    }

    fn column_name(&self, _feature: usize) -> Option<&str> {
        None
    }
}
