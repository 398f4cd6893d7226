//! JSON Lines: an object a line with `embedding` and, where known, `id`, `label` and `encoder`.

use std::fs::File;
use std::io::BufReader;

use serde::Deserialize;

use super::encoder;
use super::label;
use super::limits::MAX_ROW_BYTES;
use super::lines::Lines;
use super::rows::{Row, RowBlocks, Rows};
use super::source::{Origin, Source};
use crate::error::{DataError, Place};

/// Opens a `.jsonl` file.
pub(super) fn open(origin: Origin, file: File) -> Result<Box<dyn Source>, DataError> {
    let reader = BufReader::with_capacity(256 << 10, file);
    RowBlocks::open(
        origin.clone(),
        JsonRows {
            lines: Lines::new(origin.clone(), reader, b'\n', MAX_ROW_BYTES),
            origin,
        },
    )
}

const EXAMPLE: &str = r#"{"id": "a", "label": "cat", "embedding": [0.1, 0.2]}"#;

/// What is wrong with a line that is no such object as the example.
pub(crate) fn problem(error: &serde_json::Error, example: &str) -> String {
    let text = error.to_string();
    // The place that serde names is within the line.
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(problem, _)| problem);
    format!(
        "{text} (at character {}); a line must be an object like {example}",
        error.column()
    )
}

#[derive(Deserialize)]
struct Object {
    // Wide enough for a number that no f32 holds: it becomes infinite and is then refused by its feature, as in other formats.
    embedding: Option<Vec<f64>>,
    id: Option<Key>,
    label: Option<Key>,
    encoder: Option<String>,
}

/// What stands for an item or a class.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an id or a label must be a text or an integer")]
pub(crate) enum Key {
    // `i128` is not among the integers that untagged enums can hold.
    Negative(i64),
    Natural(u64),
    Text(String),
}

impl Key {
    pub(crate) fn into_text(self) -> String {
        match self {
            Key::Text(text) => text,
            Key::Negative(integer) => integer.to_string(),
            Key::Natural(integer) => integer.to_string(),
        }
    }

    pub(crate) fn into_label(self) -> Option<String> {
        match self {
            Key::Text(text) => label::from_text(text),
            Key::Negative(integer) => label::from_integer(integer.into()),
            Key::Natural(integer) => label::from_integer(integer.into()),
        }
    }
}

struct JsonRows {
    origin: Origin,
    lines: Lines<BufReader<File>>,
}

impl Rows for JsonRows {
    fn next_row(&mut self, values: &mut Vec<f32>) -> Result<Option<Row>, DataError> {
        if !self.lines.read_filled()? {
            return Ok(None);
        }
        let line = self.lines.line;
        let refuse = |problem: String| self.origin.row(Place::Line(line), problem);
        let object: Object = serde_json::from_slice(&self.lines.text).map_err(|e| refuse(problem(&e, EXAMPLE)))?;
        let Some(embedding) = object.embedding else {
            return Err(refuse(
                "no \"embedding\"; every line needs one, a list of numbers".to_owned(),
            ));
        };
        values.extend(embedding.into_iter().map(|value| value as f32));
        let id = object.id.map(Key::into_text);
        let label = object.label.and_then(Key::into_label);
        Ok(Some(Row {
            line,
            id,
            label,
            encoder: object.encoder.and_then(encoder::from_text),
        }))
    }

    fn column_name(&self, _feature: usize) -> Option<&str> {
        None
    }
}
