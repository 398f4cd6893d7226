//! What a file of ONNX says of its network, read without running it.
//!
//! The file is a message of Protocol Buffers: fields with a number each, one after the other, some of which are messages
//! themselves. Only those that matter are looked into; weights are stepped over.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::OnnxError;

/// The longest name that is read.
const MOST_NAME: usize = 1 << 16;
/// The most inputs, outputs and weights.
const MOST: usize = 1 << 20;
/// The most axes.
const MOST_AXES: usize = 64;

// The numbers of the fields, by the name of their message in onnx.proto.
const MODEL_GRAPH: u64 = 7;
const GRAPH_INITIALIZER: u64 = 5;
const GRAPH_INPUT: u64 = 11;
const GRAPH_OUTPUT: u64 = 12;
const TENSOR_DIMS: u64 = 1;
const TENSOR_DATA_TYPE: u64 = 2;
const TENSOR_NAME: u64 = 8;
const TENSOR_EXTERNAL_DATA: u64 = 13;
const ENTRY_KEY: u64 = 1;
const ENTRY_VALUE: u64 = 2;
const VALUE_NAME: u64 = 1;
const VALUE_TYPE: u64 = 2;
const TYPE_TENSOR: u64 = 1;
const TENSOR_TYPE_SHAPE: u64 = 2;
const SHAPE_DIM: u64 = 1;
const DIM_VALUE: u64 = 1;
const DIM_NAME: u64 = 2;

/// Whole numbers of 32 and 64 bits, texts and truth values: what shapes and places are made of, not weights.
const NO_WEIGHTS: [u64; 5] = [6, 7, 8, 9, 13];

/// What a file of ONNX says of its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxModel {
    /// The file.
    pub path: PathBuf,
    /// How many weights there are.
    pub parameters: u64,
    /// What goes in.
    pub inputs: Vec<OnnxValue>,
    /// What comes out.
    pub outputs: Vec<OnnxValue>,
    /// Files beside it that some of its weights are in.
    pub weights_in: Vec<PathBuf>,
}

/// An input or an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnnxValue {
    /// Its name.
    pub name: String,
    /// The lengths of its axes.
    pub shape: Vec<OnnxLength>,
}

/// The length of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnnxLength {
    /// So many.
    Fixed(u64),
    /// Whatever comes, by the name that it has in the file.
    Free(String),
}

impl fmt::Display for OnnxValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for (at, length) in self.shape.iter().enumerate() {
            f.write_str(if at == 0 { ", " } else { " × " })?;
            match length {
                OnnxLength::Fixed(length) => write!(f, "{length}")?,
                OnnxLength::Free(name) if name.is_empty() => f.write_str("?")?,
                OnnxLength::Free(name) => f.write_str(name)?,
            }
        }
        Ok(())
    }
}

impl OnnxModel {
    /// Reads what a file says of its network.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, OnnxError> {
        let path = path.as_ref();
        let found = Found::read(path).map_err(|source| OnnxError::Read {
            path: path.to_owned(),
            source,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        // Older files list weights among the inputs, too.
        let is_input = |value: &OnnxValue| !found.weights.contains(&value.name);
        Ok(Self {
            path: path.to_owned(),
            parameters: found.parameters,
            inputs: found.inputs.into_iter().filter(is_input).collect(),
            outputs: found.outputs,
            weights_in: found.files.iter().map(|file| folder.join(file)).collect(),
        })
    }
}

/// What was found in a file.
#[derive(Default)]
struct Found {
    parameters: u64,
    inputs: Vec<OnnxValue>,
    outputs: Vec<OnnxValue>,
    /// The names of weights.
    weights: BTreeSet<String>,
    /// Files that weights are in, by what the model calls them.
    files: BTreeSet<String>,
}

impl Found {
    fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let mut fields = Fields {
            reader: BufReader::new(file),
            at: 0,
        };
        let mut found = Self::default();
        fields.each(metadata.len(), |fields, field, value| match (field, value) {
            (MODEL_GRAPH, Value::Piece(end)) => fields.each(end, |fields, field, value| match (field, value) {
                (GRAPH_INITIALIZER, Value::Piece(end)) => found.weight(fields, end),
                (GRAPH_INPUT, Value::Piece(end)) => push(&mut found.inputs, fields, end),
                (GRAPH_OUTPUT, Value::Piece(end)) => push(&mut found.outputs, fields, end),
                _ => Ok(()),
            }),
            _ => Ok(()),
        })?;
        match found.outputs.is_empty() {
            true => Err(wrong("nothing comes out of it, so it is no network")),
            false => Ok(found),
        }
    }

    /// Reads a tensor but for its values.
    fn weight(&mut self, fields: &mut Fields, end: u64) -> io::Result<()> {
        let (mut count, mut kind) = (1u64, 0);
        fields.each(end, |fields, field, value| {
            match (field, value) {
                (TENSOR_DIMS, Value::Number(length)) => count = count.saturating_mul(length),
                // All lengths in one piece.
                (TENSOR_DIMS, Value::Piece(end)) => {
                    while fields.at < end {
                        count = count.saturating_mul(fields.number(end)?);
                    }
                }
                (TENSOR_DATA_TYPE, Value::Number(number)) => kind = number,
                (TENSOR_NAME, Value::Piece(end)) if self.weights.len() < MOST => {
                    self.weights.insert(fields.text(end)?);
                }
                (TENSOR_EXTERNAL_DATA, Value::Piece(end)) if self.files.len() < MOST => {
                    let (mut key, mut text) = (String::new(), String::new());
                    fields.each(end, |fields, field, value| {
                        match (field, value) {
                            (ENTRY_KEY, Value::Piece(end)) => key = fields.text(end)?,
                            (ENTRY_VALUE, Value::Piece(end)) => text = fields.text(end)?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    if key == "location" {
                        self.files.insert(text);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        if !NO_WEIGHTS.contains(&kind) {
            self.parameters = self.parameters.saturating_add(count);
        }
        Ok(())
    }
}

/// Reads an input or an output.
fn push(values: &mut Vec<OnnxValue>, fields: &mut Fields, end: u64) -> io::Result<()> {
    if values.len() >= MOST {
        return Ok(());
    }
    let mut found = OnnxValue::default();
    fields.each(end, |fields, field, value| match (field, value) {
        (VALUE_NAME, Value::Piece(end)) => {
            found.name = fields.text(end)?;
            Ok(())
        }
        (VALUE_TYPE, Value::Piece(end)) => fields.each(end, |fields, field, value| match (field, value) {
            (TYPE_TENSOR, Value::Piece(end)) => fields.each(end, |fields, field, value| match (field, value) {
                (TENSOR_TYPE_SHAPE, Value::Piece(end)) => {
                    fields.each(end, |fields, field, value| match (field, value) {
                        (SHAPE_DIM, Value::Piece(end)) if found.shape.len() < MOST_AXES => {
                            found.shape.push(fields.length(end)?);
                            Ok(())
                        }
                        _ => Ok(()),
                    })
                }
                _ => Ok(()),
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    values.push(found);
    Ok(())
}

/// The value of a field.
#[derive(Clone, Copy)]
enum Value {
    Number(u64),
    /// A text or a message, and where it ends.
    Piece(u64),
    /// Of a kind that nothing here is of.
    Other,
}

/// A file of fields, read from the beginning to the end.
struct Fields {
    reader: BufReader<File>,
    at: u64,
}

fn wrong(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

impl Fields {
    /// Hands over all fields up to an end; what is left of one is stepped over.
    fn each(&mut self, end: u64, mut work: impl FnMut(&mut Self, u64, Value) -> io::Result<()>) -> io::Result<()> {
        while self.at < end {
            let key = self.number(end)?;
            let value = match key & 7 {
                0 => Value::Number(self.number(end)?),
                1 => self.step_to(self.at.saturating_add(8), end)?,
                2 => {
                    let length = self.number(end)?;
                    Value::Piece(self.at.saturating_add(length))
                }
                5 => self.step_to(self.at.saturating_add(4), end)?,
                _ => return Err(wrong("it is no file of ONNX")),
            };
            if matches!(value, Value::Piece(piece) if piece > end) {
                return Err(wrong("it is no file of ONNX, or ends too early"));
            }
            work(self, key >> 3, value)?;
            if let Value::Piece(piece) = value {
                self.step_to(piece, end)?;
            }
        }
        Ok(())
    }

    fn step_to(&mut self, place: u64, end: u64) -> io::Result<Value> {
        if place > end || place < self.at {
            return Err(wrong("it is no file of ONNX, or ends too early"));
        }
        let far = i64::try_from(place - self.at).map_err(|_| wrong("it is no file of ONNX"))?;
        self.reader.seek_relative(far)?;
        self.at = place;
        Ok(Value::Other)
    }

    fn bytes(&mut self, bytes: &mut [u8], end: u64) -> io::Result<()> {
        if bytes.len() as u64 > end.saturating_sub(self.at) {
            return Err(wrong("it is no file of ONNX, or ends too early"));
        }
        self.reader.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// A number of as many bytes as it needs.
    fn number(&mut self, end: u64) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.bytes(&mut byte, end)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(wrong("it is no file of ONNX"))
    }

    fn text(&mut self, end: u64) -> io::Result<String> {
        let length = usize::try_from(end - self.at)
            .ok()
            .filter(|&length| length <= MOST_NAME);
        let mut bytes = vec![0; length.ok_or_else(|| wrong("a name in it is too long"))?];
        self.bytes(&mut bytes, end)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The length of an axis.
    fn length(&mut self, end: u64) -> io::Result<OnnxLength> {
        let mut length = OnnxLength::Free(String::new());
        self.each(end, |fields, field, value| {
            match (field, value) {
                (DIM_VALUE, Value::Number(number)) => length = OnnxLength::Fixed(number),
                (DIM_NAME, Value::Piece(end)) => length = OnnxLength::Free(fields.text(end)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(length)
    }
}
