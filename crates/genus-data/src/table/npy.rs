//! NumPy's array format: the `.npy` file and the header that the entries of an `.npz` share with it.

use std::fs::File;
use std::io::{BufReader, Read};

use super::arrays::{Arrays, Column, Matrix, SideColumns, byte_length, matrix_shape, stream_error};
use super::element::{Element, Number};
use super::limits::{MAX_COLUMN, MAX_TEXT, kept};
use super::source::{FileOrigin, TableSource};
use crate::error::{DataError, FilePosition};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy itself refuses headers beyond 10,000 bytes.
const MAX_HEADER: usize = 1 << 16;

/// Opens a `.npy` file: features only.
pub(super) fn open(origin: FileOrigin, mut file: File) -> Result<Box<dyn TableSource>, DataError> {
    let length = file.metadata().map_err(|e| origin.io(e))?.len();
    let header = NpyHeader::read(&origin, "the file", &mut file, length)?;
    let matrix = header.into_matrix(&origin, "the array", Box::new(file))?;
    Arrays::open(origin, matrix, SideColumns::default())
}

/// The head of an array.
pub(super) struct NpyHeader {
    descr: String,
    columns_first: bool,
    pub(super) shape: Vec<u64>,
    /// Bytes of the array itself.
    data_length: u64,
}

impl NpyHeader {
    /// Reads the head of an array that takes `length` bytes with its head; `what` names it in errors.
    pub(super) fn read(origin: &FileOrigin, what: &str, from: &mut impl Read, length: u64) -> Result<Self, DataError> {
        let damaged = |problem: &str| {
            origin.malformed(format!(
                "{what} is not a NumPy array: {problem}; write it again with numpy.save or numpy.savez"
            ))
        };
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|e| stream_error(origin, e))?;
        if &start[..6] != MAGIC {
            return Err(damaged("it does not begin with NumPy's mark"));
        }
        let mut size = [0; 4];
        let size_bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(damaged(&format!("its version {version} is unknown"))),
        };
        from.read_exact(&mut size[..size_bytes])
            .map_err(|e| stream_error(origin, e))?;
        let size = u32::from_le_bytes(size) as usize;
        if size > MAX_HEADER {
            return Err(damaged(&format!("its header claims {size} bytes")));
        }
        let mut text = vec![0; size];
        from.read_exact(&mut text).map_err(|e| stream_error(origin, e))?;
        let text = String::from_utf8_lossy(&text);
        let (descr, columns_first, shape) = parse(&text).map_err(|problem| damaged(&problem))?;
        let data_length = length.saturating_sub((8 + size_bytes + size) as u64);
        Ok(Self {
            descr,
            columns_first,
            shape,
            data_length,
        })
    }

    /// The features, whose bytes come next from the stream.
    pub(super) fn into_matrix(
        self,
        origin: &FileOrigin,
        what: &str,
        bytes: Box<dyn Read + Send>,
    ) -> Result<Matrix, DataError> {
        let Some(element) = element(&self.descr) else {
            return Err(match self.kind() {
                b'O' => object_array(origin, what),
                _ => origin.malformed(format!(
                    "{what} holds \"{}\" where numbers are needed; save it with .astype(\"float32\")",
                    self.descr
                )),
            });
        };
        let (rows, dim) = matrix_shape(origin, what, &self.shape)?;
        self.check_length(origin, what, element.size())?;
        // One row or one column is stored the same way in either order.
        let columns_first = self.columns_first && rows > 1 && dim > 1;
        Ok(Matrix {
            rows,
            dim,
            element,
            bytes,
            columns_first,
        })
    }

    /// Reads a one-dimensional array of integers or texts, whose bytes come next from the stream.
    pub(super) fn read_column(
        self,
        origin: &FileOrigin,
        name: &str,
        from: &mut impl Read,
    ) -> Result<Column, DataError> {
        let what = format!("\"{name}\"");
        let text = TextType::of(&self.descr);
        let size = match (&text, element(&self.descr)) {
            (Some(text), _) => text.width,
            (None, Some(element)) => element.size(),
            (None, None) if matches!(self.kind(), b'O' | b'T') => return Err(object_array(origin, &what)),
            (None, None) => {
                return Err(origin.malformed(format!(
                    "{what} holds \"{}\" where integers or texts are needed",
                    self.descr
                )));
            }
        };
        // Elements of no bytes would let a header of any length pass for true.
        if size == 0 {
            return Err(origin.malformed(format!("{what} holds texts of no length; save it with .astype(str)")));
        }
        let length = self.check_length(origin, &what, size)?;
        if let Some(text) = text {
            let texts = read_texts(origin, &what, &text, length, from)?;
            // The checksum of a compressed array is compared at its end.
            from.read(&mut [0]).map_err(|e| stream_error(origin, e))?;
            return Ok(Column::Texts(texts));
        }
        // Kept, every integer takes sixteen bytes, however few it takes in the file.
        if (length / size as u64).saturating_mul(size_of::<i128>() as u64) > MAX_COLUMN {
            return Err(origin.malformed(format!(
                "{what} has {} integers, which take more than {} MiB, the most of a column",
                length / size as u64,
                MAX_COLUMN >> 20
            )));
        }
        let mut bytes = Vec::new();
        from.by_ref()
            .take(length)
            .read_to_end(&mut bytes)
            .map_err(|e| stream_error(origin, e))?;
        if bytes.len() as u64 != length {
            return Err(stream_error(origin, std::io::ErrorKind::UnexpectedEof.into()));
        }
        from.read(&mut [0]).map_err(|e| stream_error(origin, e))?;
        element(&self.descr)
            .and_then(|element| element.decode_integers(&bytes))
            .map(Column::Integers)
            .ok_or_else(|| {
                origin.malformed(format!(
                    "{what} holds \"{}\" where integers or texts are needed; save it with .astype(int) or .astype(str)",
                    self.descr
                ))
            })
    }

    /// Compares the declared length with the real one, before anything is allocated by it.
    fn check_length(&self, origin: &FileOrigin, what: &str, element_size: usize) -> Result<u64, DataError> {
        match byte_length(&self.shape, element_size) {
            Some(length) if length == self.data_length => Ok(length),
            length => Err(origin.malformed(format!(
                "{what} should take {} bytes by its shape {:?} but has {}; the file was cut off or is damaged, \
                 write it again",
                length.map_or("more than 2^64".to_owned(), |n| n.to_string()),
                self.shape,
                self.data_length
            ))),
        }
    }

    /// The letter of the type.
    fn kind(&self) -> u8 {
        self.descr.bytes().find(u8::is_ascii_alphabetic).unwrap_or(b'?')
    }
}

fn object_array(origin: &FileOrigin, what: &str) -> DataError {
    origin.malformed(format!(
        "{what} is an array of Python objects, which only Python can read; save it with a plain type, as \
         .astype(\"float32\") or .astype(str)"
    ))
}

/// The numbers that a type description like `<f4` means.
fn element(descr: &str) -> Option<Element> {
    let (order, kind) = descr.split_at_checked(1)?;
    let number = match kind {
        "f2" => Number::F16,
        "f4" => Number::F32,
        "f8" => Number::F64,
        "i1" => Number::I8,
        "i2" => Number::I16,
        "i4" => Number::I32,
        "i8" => Number::I64,
        "u1" | "b1" => Number::U8,
        "u2" => Number::U16,
        "u4" => Number::U32,
        "u8" => Number::U64,
        _ => return None,
    };
    matches!(order, "<" | ">" | "|" | "=").then_some(Element {
        number,
        big_endian: order == ">",
    })
}

/// Reads texts one by one: padding of many gigabytes compresses to nothing, and is not to be kept.
fn read_texts(
    origin: &FileOrigin,
    what: &str,
    text: &TextType,
    length: u64,
    from: &mut impl Read,
) -> Result<Vec<String>, DataError> {
    if text.width > MAX_TEXT {
        return Err(origin.malformed(format!(
            "{what} holds texts of up to {} bytes; a text has at most {MAX_TEXT}",
            text.width
        )));
    }
    let mut bytes = BufReader::new(from.by_ref().take(length));
    let mut buffer = vec![0; text.width];
    let rows = length / text.width as u64;
    // Growing it would take twice as much.
    let mut texts = Vec::with_capacity(rows.min(MAX_COLUMN / kept("")) as usize);
    let mut total = 0;
    for row in 1..=rows {
        bytes.read_exact(&mut buffer).map_err(|e| stream_error(origin, e))?;
        let found = text.decode(&buffer).ok_or_else(|| {
            let problem = format!("the text in {what} is not Unicode; save it as UTF-8");
            origin.row(FilePosition::Row(row), problem)
        })?;
        total += kept(&found);
        if total > MAX_COLUMN {
            let problem = format!(
                "the texts in {what} take more than {} MiB, the most of a column",
                MAX_COLUMN >> 20
            );
            return Err(origin.row(FilePosition::Row(row), problem));
        }
        texts.push(found);
    }
    Ok(texts)
}

/// Texts of fixed width, filled up with zeros: `<U5` in UTF-32, `|S5` in UTF-8.
struct TextType {
    /// Bytes a text.
    width: usize,
    utf32: bool,
    big_endian: bool,
}

impl TextType {
    fn of(descr: &str) -> Option<Self> {
        let (order, kind) = descr.split_at_checked(1)?;
        let (kind, length) = kind.split_at_checked(1)?;
        let (utf32, unit) = match kind {
            "U" => (true, 4),
            "S" | "a" => (false, 1),
            _ => return None,
        };
        let width = length.parse::<u32>().ok()?.checked_mul(unit)? as usize;
        matches!(order, "<" | ">" | "|" | "=").then_some(Self {
            width,
            utf32,
            big_endian: order == ">",
        })
    }

    fn decode(&self, bytes: &[u8]) -> Option<String> {
        // Without its padding, which a text would keep room for.
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let end = if self.utf32 { end.next_multiple_of(4) } else { end };
        let bytes = &bytes[..end];
        Some(if self.utf32 {
            let (units, _) = bytes.as_chunks::<4>();
            let decode = if self.big_endian {
                u32::from_be_bytes
            } else {
                u32::from_le_bytes
            };
            units
                .iter()
                .map(|&unit| char::from_u32(decode(unit)))
                .collect::<Option<String>>()?
        } else {
            String::from_utf8(bytes.to_vec()).ok()?
        })
    }
}

/// Parses the header, a Python dictionary like `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse(text: &str) -> Result<(String, bool, Vec<u64>), String> {
    let mut rest = Literal { rest: text };
    let (mut descr, mut order, mut shape) = (None, None, None);
    rest.require("{")?;
    while !rest.take("}") {
        let key = rest.quoted()?;
        rest.require(":")?;
        match key {
            "descr" if rest.peek("[") => return Err("it has fields with names; save one plain array".to_owned()),
            "descr" => descr = Some(rest.quoted()?.to_owned()),
            "fortran_order" => order = Some(rest.boolean()?),
            "shape" => shape = Some(rest.tuple()?),
            other => return Err(format!("its header has the unknown key \"{other}\"")),
        }
        if !rest.take(",") && !rest.peek("}") {
            return Err("its header is damaged".to_owned());
        }
    }
    match (descr, order, shape) {
        (Some(descr), Some(order), Some(shape)) => Ok((descr, order, shape)),
        _ => Err("its header is not complete".to_owned()),
    }
}

/// What is left of a Python literal.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn peek(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(token)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.rest = &self.rest[token.len()..];
        }
        found
    }

    fn require(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            Ok(())
        } else {
            Err(format!("its header has no \"{token}\" where one is due"))
        }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.take("'") { '\'' } else { '"' };
        if quote == '"' {
            self.require("\"")?;
        }
        let (text, rest) = self
            .rest
            .split_once(quote)
            .ok_or("its header has a quote without end")?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.take("True") {
            return Ok(true);
        }
        self.require("False").map(|()| false)
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        self.require("(")?;
        let mut numbers = Vec::new();
        while !self.take(")") {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            numbers.push(
                self.rest[..end]
                    .parse()
                    .map_err(|_| "its shape is not a list of lengths")?,
            );
            self.rest = &self.rest[end..];
            // Python 2 marks long integers.
            self.take("L");
            if !self.take(",") && !self.peek(")") {
                return Err("its shape is not a list of lengths".to_owned());
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_no_room_for_their_padding() {
        let utf32: Vec<u8> = ['a', 'Ā', '\0']
            .iter()
            .flat_map(|&c| u32::from(c).to_le_bytes())
            .collect();
        for (kind, mut bytes, expected) in [("<U60000", utf32, "aĀ"), ("|S60000", b"a\0b".to_vec(), "a\0b")] {
            bytes.resize(60_000, 0);
            let text = TextType::of(kind).unwrap().decode(&bytes).unwrap();
            assert_eq!(text, expected);
            assert!(text.capacity() < 100, "{}", text.capacity());
        }
    }
}
