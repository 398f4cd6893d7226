//! CSV and JSON Lines: every row is a line, written as it comes.

use std::io::{self, Write};

use serde::Serialize;

use super::{RowOut, Sink, TableShape};
use crate::error::DataError;
use crate::table::label;
use genus_files::AtomicFile;

/// `id,label,encoder,f0,f1,…`.
pub(super) struct CsvSink {
    shape: TableShape,
    writer: csv::Writer<AtomicFile>,
}

impl CsvSink {
    pub(super) fn start(shape: TableShape, out: AtomicFile) -> Result<Box<dyn Sink>, DataError> {
        let mut writer = csv::Writer::from_writer(out);
        let label = shape.with_labels.then_some("label");
        let encoder = shape.encoder.as_ref().map(|_| "encoder");
        let named = Some("id").into_iter().chain(label).chain(encoder).map(str::to_owned);
        let header = named.chain((0..shape.dim).map(|feature| format!("f{feature}")));
        writer
            .write_record(header)
            .map_err(|e| DataError::write(shape.path.display(), e.into()))?;
        Ok(Box::new(Self { shape, writer }))
    }
}

impl Sink for CsvSink {
    fn refuses(&self, row: &RowOut) -> Option<&'static str> {
        row.label.filter(|text| label::from_cell(text).is_none()).map(|_| {
            "the label is a negative number or blank, which in CSV means a row without label; rename the class or \
             write a .parquet file"
        })
    }

    fn write(&mut self, row: &RowOut) -> io::Result<()> {
        self.writer.write_field(row.id)?;
        if self.shape.with_labels {
            self.writer.write_field(row.label.unwrap_or_default())?;
        }
        if let Some(encoder) = &self.shape.encoder {
            self.writer.write_field(encoder)?;
        }
        for value in row.values {
            // The shortest text that is read as the same number.
            self.writer.write_field(format!("{value:?}"))?;
        }
        self.writer.write_record(None::<&[u8]>)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<AtomicFile> {
        self.writer.into_inner().map_err(|e| e.into_error())
    }
}

/// An object a line.
pub(super) struct JsonlSink {
    shape: TableShape,
    out: AtomicFile,
    line: Vec<u8>,
}

#[derive(Serialize)]
struct RowNames<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoder: Option<&'a str>,
}

impl JsonlSink {
    pub(super) fn start(shape: TableShape, out: AtomicFile) -> Result<Box<dyn Sink>, DataError> {
        let line = Vec::new();
        Ok(Box::new(Self { shape, out, line }))
    }
}

impl Sink for JsonlSink {
    fn write(&mut self, row: &RowOut) -> io::Result<()> {
        self.line.clear();
        let names = RowNames {
            id: row.id,
            label: self.shape.with_labels.then_some(row.label),
            encoder: self.shape.encoder.as_deref(),
        };
        serde_json::to_writer(&mut self.line, &names)?;
        // The list goes where the object ended.
        self.line.pop();
        self.line.extend(b",\"embedding\":[");
        for (at, &value) in row.values.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            self.line.extend(json_number(value).bytes());
        }
        self.line.extend(b"]}\n");
        self.out.write_all(&self.line)
    }

    fn finish(self: Box<Self>) -> io::Result<AtomicFile> {
        Ok(self.out)
    }
}

/// A text that is read as the same number even by those who read a 64-bit float first, and not to its last bit.
fn json_number(value: f32) -> String {
    let text = format!("{value:?}");
    let read: f64 = text.parse().unwrap_or(f64::NAN);
    // The shortest text may stand close to the middle between two floats, where a second rounding can go astray.
    let safe = [1.0 - 1e-14, 1.0 + 1e-14]
        .iter()
        .all(|nudge| (read * nudge) as f32 == value);
    if safe { text } else { format!("{:?}", f64::from(value)) }
}
