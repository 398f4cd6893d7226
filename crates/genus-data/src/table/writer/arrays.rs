//! Formats made of whole arrays (`.npz`, `.safetensors`), whose heads say how many rows there are: the columns wait in
//! files without a name until that is known.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{RowOut, Sink, TableShape};
use crate::error::DataError;
use crate::table::arrays::{CLASSES, ENCODER, FEATURES, IDS, LABELS};
use genus_files::AtomicFile;

/// The longest header that safetensors allows.
const MAX_SAFETENSORS_HEADER: u64 = 100_000_000;
/// Sizes from which an entry of a ZIP file needs 64-bit fields, with room to spare.
const LARGE_ENTRY: u64 = 0xff00_0000;

/// What waits to be written.
struct Spool(BufWriter<File>);

impl Spool {
    fn new(out: &AtomicFile) -> Result<Self, DataError> {
        Ok(Self(BufWriter::with_capacity(256 << 10, out.scratch()?)))
    }

    fn floats(&mut self, values: &[f32]) -> io::Result<()> {
        values
            .iter()
            .try_for_each(|value| self.0.write_all(&value.to_le_bytes()))
    }

    /// Its bytes from the beginning, and how many there are.
    fn read_back(self) -> io::Result<(BufReader<File>, u64)> {
        let mut file = self.0.into_inner().map_err(|e| e.into_error())?;
        let length = file.stream_position()?;
        file.rewind()?;
        Ok((BufReader::with_capacity(256 << 10, file), length))
    }
}

/// Texts that wait, each behind its length, and the length of the longest.
struct TextSpool {
    spool: Spool,
    /// Characters of the longest text; NumPy has no texts of none.
    longest: usize,
}

impl TextSpool {
    fn new(out: &AtomicFile) -> Result<Self, DataError> {
        let spool = Spool::new(out)?;
        Ok(Self { spool, longest: 1 })
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        self.longest = self.longest.max(text.chars().count());
        self.spool.0.write_all(&(text.len() as u64).to_le_bytes())?;
        self.spool.0.write_all(text.as_bytes())
    }
}

/// Arrays `x`, `ids`, `y` and `encoder`, as `numpy.savez` stores them.
pub(super) struct NpzSink {
    shape: TableShape,
    out: AtomicFile,
    rows: u64,
    x: Spool,
    ids: TextSpool,
    labels: TextSpool,
}

impl NpzSink {
    pub(super) fn start(shape: TableShape, out: AtomicFile) -> Result<Box<dyn Sink>, DataError> {
        Ok(Box::new(Self {
            x: Spool::new(&out)?,
            ids: TextSpool::new(&out)?,
            labels: TextSpool::new(&out)?,
            rows: 0,
            shape,
            out,
        }))
    }
}

impl Sink for NpzSink {
    fn write(&mut self, row: &RowOut) -> io::Result<()> {
        self.rows += 1;
        self.x.floats(row.values)?;
        self.ids.push(row.id)?;
        match self.shape.with_labels {
            true => self.labels.push(row.label.unwrap_or_default()),
            false => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> io::Result<AtomicFile> {
        let Self {
            shape,
            out,
            rows,
            x,
            ids,
            labels,
        } = *self;
        let mut npz = Npz(ZipWriter::new(ErrorLatch::new(out)));
        let (mut x, length) = x.read_back()?;
        npz.begin(FEATURES[0], "<f4", &format!("({rows}, {})", shape.dim), length)?;
        io::copy(&mut x, &mut npz.0)?;
        npz.texts(IDS, rows, ids)?;
        if shape.with_labels {
            npz.texts(LABELS[0], rows, labels)?;
        }
        if let Some(encoder) = shape.encoder {
            let characters = encoder.chars().count();
            npz.begin(ENCODER, &format!("<U{characters}"), "()", 4 * characters as u64)?;
            npz.utf32(&encoder, characters)?;
        }
        npz.0.finish()?.into_inner()
    }
}

/// An output that goes on as if nothing had happened when it fails, and says so at the end: an archive that meets an error
/// tries to be finished all the same, and takes the place that it is then at for an impossible one.
struct ErrorLatch {
    out: AtomicFile,
    failed: Option<io::Error>,
    position: u64,
    length: u64,
}

impl ErrorLatch {
    fn new(out: AtomicFile) -> Self {
        Self {
            out,
            failed: None,
            position: 0,
            length: 0,
        }
    }

    fn into_inner(self) -> io::Result<AtomicFile> {
        self.failed.map_or(Ok(self.out), Err)
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl Write for ErrorLatch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_none() {
            let result = self.out.write_all(bytes);
            self.note(result);
        }
        self.position += bytes.len() as u64;
        self.length = self.length.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for ErrorLatch {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        let position = position.ok_or(io::ErrorKind::InvalidInput)?;
        let moved = std::mem::replace(&mut self.position, position) != position;
        if moved && self.failed.is_none() {
            let result = self.out.seek(SeekFrom::Start(self.position)).map(drop);
            self.note(result);
        }
        Ok(self.position)
    }
}

/// An archive of arrays.
struct Npz(ZipWriter<ErrorLatch>);

impl Npz {
    /// Begins an array whose `length` bytes come next.
    fn begin(&mut self, name: &str, descr: &str, shape: &str, length: u64) -> io::Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(length >= LARGE_ENTRY);
        self.0.start_file(format!("{name}.npy"), options)?;
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        // Mark, version, length and header together take a multiple of 64 bytes and end a line.
        while !(10 + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        self.0.write_all(b"\x93NUMPY\x01\x00")?;
        self.0.write_all(&(header.len() as u16).to_le_bytes())?;
        self.0.write_all(header.as_bytes())
    }

    fn texts(&mut self, name: &str, rows: u64, texts: TextSpool) -> io::Result<()> {
        let width = texts.longest;
        let length = (4 * width as u64).saturating_mul(rows);
        self.begin(name, &format!("<U{width}"), &format!("({rows},)"), length)?;
        let (mut waiting, _) = texts.spool.read_back()?;
        let mut text = String::new();
        for _ in 0..rows {
            let mut length = [0; 8];
            waiting.read_exact(&mut length)?;
            text.clear();
            waiting
                .by_ref()
                .take(u64::from_le_bytes(length))
                .read_to_string(&mut text)?;
            self.utf32(&text, width)?;
        }
        Ok(())
    }

    /// A text in UTF-32, filled up with zeros.
    fn utf32(&mut self, text: &str, width: usize) -> io::Result<()> {
        let units = text.chars().map(u32::from).chain(std::iter::repeat(0));
        let bytes: Vec<u8> = units.take(width).flat_map(u32::to_le_bytes).collect();
        self.0.write_all(&bytes)
    }
}

/// Tensors `x` and `y`, an index into the classes, which are in the metadata with the ids and the encoder.
pub(super) struct SafetensorsSink {
    shape: TableShape,
    out: AtomicFile,
    rows: u64,
    x: Spool,
    y: Spool,
    /// A JSON list as it stands within a JSON text, but for its brackets.
    ids: Spool,
    classes: Vec<String>,
    indices: HashMap<String, i64>,
}

impl SafetensorsSink {
    pub(super) fn start(shape: TableShape, out: AtomicFile) -> Result<Box<dyn Sink>, DataError> {
        Ok(Box::new(Self {
            x: Spool::new(&out)?,
            y: Spool::new(&out)?,
            ids: Spool::new(&out)?,
            rows: 0,
            classes: Vec::new(),
            indices: HashMap::new(),
            shape,
            out,
        }))
    }

    /// The index of a class, a new one for a class not met before.
    fn index(&mut self, label: Option<&str>) -> i64 {
        let Some(label) = label else { return -1 };
        if let Some(&index) = self.indices.get(label) {
            return index;
        }
        let index = self.classes.len() as i64;
        self.classes.push(label.to_owned());
        self.indices.insert(label.to_owned(), index);
        index
    }
}

impl Sink for SafetensorsSink {
    fn write(&mut self, row: &RowOut) -> io::Result<()> {
        self.x.floats(row.values)?;
        if self.shape.with_labels {
            let index = self.index(row.label);
            self.y.0.write_all(&index.to_le_bytes())?;
        }
        if self.rows > 0 {
            self.ids.0.write_all(b",")?;
        }
        self.ids
            .0
            .write_all(within_text(&serde_json::to_string(row.id)?)?.as_bytes())?;
        self.rows += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<AtomicFile> {
        let Self {
            shape,
            mut out,
            rows,
            x,
            y,
            ids,
            classes,
            ..
        } = *self;
        let (mut ids, ids_length) = ids.read_back()?;
        let (mut y, y_length) = y.read_back()?;
        let (mut x, x_length) = x.read_back()?;
        let start = format!("{{\"__metadata__\":{{\"{IDS}\":\"[");
        let mut end = "]\"".to_owned();
        if shape.with_labels {
            end += &format!(",\"{CLASSES}\":\"{}\"", within_text(&serde_json::to_string(&classes)?)?);
        }
        if let Some(encoder) = &shape.encoder {
            end += &format!(",\"{ENCODER}\":{}", serde_json::to_string(encoder)?);
        }
        end += "}";
        if shape.with_labels {
            // First, so that its wider numbers are aligned whatever the length of the other.
            end += &tensor(LABELS[0], "I64", &format!("{rows}"), 0, y_length);
        }
        let (x_start, x_end) = (y_length, y_length + x_length);
        end += &tensor(FEATURES[0], "F32", &format!("{rows},{}", shape.dim), x_start, x_end);
        end += "}";
        while !(start.len() as u64 + ids_length + end.len() as u64).is_multiple_of(8) {
            end.push(' ');
        }
        let header = start.len() as u64 + ids_length + end.len() as u64;
        if header > MAX_SAFETENSORS_HEADER {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the ids take more than the 100 MB that a safetensors header may have; write an .npz or .parquet file",
            ));
        }
        out.write_all(&header.to_le_bytes())?;
        out.write_all(start.as_bytes())?;
        io::copy(&mut ids, &mut out)?;
        out.write_all(end.as_bytes())?;
        io::copy(&mut y, &mut out)?;
        io::copy(&mut x, &mut out)?;
        Ok(out)
    }
}

/// One tensor in the header.
fn tensor(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(",\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{shape}],\"data_offsets\":[{start},{end}]}}")
}

/// JSON as it stands within a JSON text.
fn within_text(json: &str) -> io::Result<String> {
    let quoted = serde_json::to_string(json)?;
    Ok(quoted[1..quoted.len() - 1].to_owned())
}
