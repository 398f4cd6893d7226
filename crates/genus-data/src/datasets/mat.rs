//! MATLAB's files of level 5 (`save -v6` and `-v7`), as far as annotations of images need them: numbers, texts, cells
//! and structures, compressed or not, of either byte order.
//!
//! A file is foreign bytes: every length is compared with what is there before it is used, and what a file may make of
//! itself in memory is bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;

use crate::error::DataError;
use crate::table::source::FileOrigin;

/// The largest file; the annotations of 16,185 cars have 0.7 MB.
const MAX_FILE: u64 = 64 << 20;
/// The most bytes that all compressed variables together may become.
const MAX_INFLATED: u64 = 128 << 20;
/// The most arrays in a file, counting those in cells and fields.
const MAX_ARRAYS: usize = 1 << 21;
/// The most bytes that the numbers of all arrays may have in the file; in memory each becomes eight.
const MAX_NUMBERS: usize = 8 << 20;
/// How deep arrays may lie in one another.
const MAX_DEPTH: usize = 16;
const MAX_DIMENSIONS: usize = 32;
const HEADER: usize = 128;

/// The types of stored data.
mod mi {
    pub(super) const INT8: u32 = 1;
    pub(super) const UINT8: u32 = 2;
    pub(super) const INT16: u32 = 3;
    pub(super) const UINT16: u32 = 4;
    pub(super) const INT32: u32 = 5;
    pub(super) const UINT32: u32 = 6;
    pub(super) const SINGLE: u32 = 7;
    pub(super) const DOUBLE: u32 = 9;
    pub(super) const INT64: u32 = 12;
    pub(super) const UINT64: u32 = 13;
    pub(super) const MATRIX: u32 = 14;
    pub(super) const COMPRESSED: u32 = 15;
    pub(super) const UTF8: u32 = 16;
    pub(super) const UTF16: u32 = 17;
    pub(super) const UTF32: u32 = 18;
}

/// The classes of arrays.
mod mx {
    pub(super) const CELL: u8 = 1;
    pub(super) const STRUCT: u8 = 2;
    pub(super) const CHAR: u8 = 4;
    /// From here to [`LAST_NUMBER`]: doubles, singles and whole numbers of 8 to 64 bits.
    pub(super) const FIRST_NUMBER: u8 = 6;
    pub(super) const LAST_NUMBER: u8 = 15;
}

/// An array of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MatValue {
    /// Real numbers, column after column.
    Numbers(Vec<f64>),
    /// One row of letters.
    Text(String),
    /// Arrays, column after column.
    Cells(Vec<MatValue>),
    /// Records, column after column.
    Records {
        /// What the fields are called.
        fields: Vec<String>,
        /// The fields of the first record, then those of the second, and so on.
        values: Vec<MatValue>,
    },
    /// Something that annotations have no use for, as a function or a table of several rows of letters.
    Other,
}

impl MatValue {
    /// The one number of an array of one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            MatValue::Numbers(numbers) if numbers.len() == 1 => numbers.first().copied(),
            _ => None,
        }
    }

    /// The text, also that of a cell that holds one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            MatValue::Text(text) => Some(text),
            MatValue::Cells(cells) if cells.len() == 1 => cells.first().and_then(MatValue::text),
            _ => None,
        }
    }
}

/// Reads those variables of a file that are asked for and there.
pub(super) fn read(path: &Path, wanted: &[&str]) -> Result<BTreeMap<String, MatValue>, DataError> {
    let origin = FileOrigin::new(path);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| origin.io(e))?;
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| origin.io(e))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(origin.malformed("it has more than 64 MB, which is no list of images; take the original file"));
    }
    parse(&bytes, wanted).map_err(|problem| {
        origin.malformed(format!(
            "{problem}; take the original file, or save it again with MATLAB's `save -v7` or SciPy's `savemat`"
        ))
    })
}

fn parse(bytes: &[u8], wanted: &[&str]) -> Result<BTreeMap<String, MatValue>, String> {
    if bytes.starts_with(b"MATLAB 7.3 MAT-file") || bytes.get(512..516) == Some(b"\x89HDF") {
        return Err("it is a MAT file of version 7.3 (HDF5), which Genus does not read".to_owned());
    }
    let big = match bytes.get(124..HEADER) {
        Some([0x00, 0x01, b'I', b'M']) => false,
        Some([0x01, 0x00, b'M', b'I']) => true,
        Some(_) => return Err("it is no MAT file of level 5".to_owned()),
        None => {
            return Err(format!(
                "it has {} bytes and a MAT file begins with {HEADER}",
                bytes.len()
            ));
        }
    };
    let mut budget = MatBudget {
        inflated: MAX_INFLATED,
        arrays: MAX_ARRAYS,
        numbers: MAX_NUMBERS,
    };
    let mut found = BTreeMap::new();
    let mut elements = Elements {
        bytes: &bytes[HEADER..],
        big,
    };
    while !elements.bytes.is_empty() {
        let element = elements.next(true)?;
        let inflated;
        let body = match element.kind {
            mi::COMPRESSED => {
                inflated = inflate(element.data, &mut budget)?;
                let inside = Elements { bytes: &inflated, big }.next(true)?;
                if inside.kind != mi::MATRIX {
                    continue;
                }
                inside.data
            }
            mi::MATRIX => element.data,
            _ => continue,
        };
        let wanted = |name: &str| wanted.contains(&name);
        if let Some((name, value)) = matrix(body, big, 0, &mut budget, &wanted)?
            && found.insert(name.clone(), value).is_some()
        {
            return Err(format!("two variables are called \"{name}\""));
        }
    }
    Ok(found)
}

/// What a file may still ask for.
struct MatBudget {
    inflated: u64,
    arrays: usize,
    numbers: usize,
}

fn inflate(data: &[u8], budget: &mut MatBudget) -> Result<Vec<u8>, String> {
    let mut inflated = Vec::new();
    ZlibDecoder::new(data)
        .take(budget.inflated + 1)
        .read_to_end(&mut inflated)
        .map_err(|e| format!("a compressed variable is damaged ({e})"))?;
    let length = inflated.len() as u64;
    budget.inflated = budget
        .inflated
        .checked_sub(length)
        .ok_or("its compressed variables have more than 128 MB, which is no list of images")?;
    Ok(inflated)
}

/// A piece of data with its type.
struct MatElement<'a> {
    kind: u32,
    data: &'a [u8],
}

/// The elements of a file or of an array, one after the other.
struct Elements<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Elements<'a> {
    /// The next element. Those of an array are filled up to eight bytes; those of the file are not.
    fn next(&mut self, of_file: bool) -> Result<MatElement<'a>, String> {
        let cut = || "it ends in the middle of a variable".to_owned();
        let (tag, rest) = self.bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let [first, length] = [word(&tag[..4], self.big), word(&tag[4..], self.big)];
        let short = first >> 16;
        if short != 0 {
            // A short element: its type, its length and up to four bytes in eight.
            let data = tag[4..].get(..short as usize).ok_or("a short element is too long")?;
            self.bytes = rest;
            return Ok(MatElement {
                kind: first & 0xffff,
                data,
            });
        }
        let length = length as usize;
        let data = rest.get(..length).ok_or_else(cut)?;
        let step = if of_file {
            length
        } else {
            length.next_multiple_of(8).min(rest.len())
        };
        self.bytes = &rest[step..];
        Ok(MatElement { kind: first, data })
    }
}

/// An array and its name, or nothing when it is a variable of the file that nobody wants.
fn matrix(
    body: &[u8],
    big: bool,
    depth: usize,
    budget: &mut MatBudget,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Option<(String, MatValue)>, String> {
    budget.arrays = budget
        .arrays
        .checked_sub(1)
        .ok_or("it has more than two million arrays")?;
    if depth > MAX_DEPTH {
        return Err(format!("its arrays lie more than {MAX_DEPTH} deep in one another"));
    }
    if body.is_empty() {
        return Ok(Some((String::new(), MatValue::Numbers(Vec::new()))));
    }
    let mut elements = Elements { bytes: body, big };
    let flags = elements.next(false)?;
    if flags.kind != mi::UINT32 || flags.data.len() != 8 {
        return Err("a variable does not say what it is".to_owned());
    }
    let class = word(&flags.data[..4], big) as u8;
    let readable =
        [mx::CELL, mx::STRUCT, mx::CHAR].contains(&class) || (mx::FIRST_NUMBER..=mx::LAST_NUMBER).contains(&class);
    if !readable {
        return Ok((depth > 0).then(|| (String::new(), MatValue::Other)));
    }
    let dimensions = dimensions(&elements.next(false)?, big)?;
    let count = dimensions
        .iter()
        .try_fold(1usize, |product, &n| product.checked_mul(n))
        .ok_or("an array is larger than any memory")?;
    let name = ascii(elements.next(false)?.data);
    if depth == 0 && !wanted(&name) {
        return Ok(None);
    }
    let value = match class {
        mx::CELL => MatValue::Cells(arrays(&mut elements, count, depth, budget)?),
        mx::STRUCT => records(&mut elements, count, depth, budget)?,
        mx::CHAR => {
            let letters = elements.next(false)?;
            let rows = dimensions.first().copied().unwrap_or(0);
            if rows > 1 && count > 0 {
                MatValue::Other
            } else {
                MatValue::Text(text(&letters, big)?)
            }
        }
        // The imaginary parts of complex numbers would follow; nobody annotates with them.
        _ => {
            let stored = elements.next(false)?;
            budget.numbers = budget
                .numbers
                .checked_sub(stored.data.len())
                .ok_or("it has more than 8 MB of numbers, which is no list of images")?;
            let numbers = numbers(&stored, big)?;
            if numbers.len() != count {
                return Err(format!("an array of {count} numbers has {}", numbers.len()));
            }
            MatValue::Numbers(numbers)
        }
    };
    Ok(Some((name, value)))
}

fn dimensions(element: &MatElement, big: bool) -> Result<Vec<usize>, String> {
    let (sizes, rest) = element.data.as_chunks::<4>();
    if element.kind != mi::INT32 || !rest.is_empty() || !(1..=MAX_DIMENSIONS).contains(&sizes.len()) {
        return Err("an array does not say how large it is".to_owned());
    }
    let size = |bytes: &[u8; 4]| {
        i32::try_from(word(bytes, big))
            .ok()
            .and_then(|n| usize::try_from(n).ok())
    };
    let sizes: Option<Vec<usize>> = sizes.iter().map(size).collect();
    sizes.ok_or_else(|| "an array has a negative size".to_owned())
}

/// So many arrays, one after the other.
fn arrays(
    elements: &mut Elements,
    count: usize,
    depth: usize,
    budget: &mut MatBudget,
) -> Result<Vec<MatValue>, String> {
    // An array has at least the eight bytes that say its length.
    if count > elements.bytes.len() / 8 {
        return Err(format!("{count} arrays are announced and not there"));
    }
    let mut values = Vec::with_capacity(count.min(1 << 16));
    for _ in 0..count {
        let element = elements.next(false)?;
        if element.kind != mi::MATRIX {
            return Err("a cell or a field holds no array".to_owned());
        }
        let found = matrix(element.data, elements.big, depth + 1, budget, &|_| true)?;
        values.push(found.map_or(MatValue::Other, |(_, value)| value));
    }
    Ok(values)
}

fn records(elements: &mut Elements, count: usize, depth: usize, budget: &mut MatBudget) -> Result<MatValue, String> {
    let width = elements.next(false)?;
    let width = match (width.kind, width.data) {
        (mi::INT32, data) if data.len() == 4 => word(data, elements.big) as usize,
        _ => 0,
    };
    let names = elements.next(false)?.data;
    if width == 0 || width > 1024 || !names.len().is_multiple_of(width) {
        return Err("a structure does not say what its fields are called".to_owned());
    }
    let fields: Vec<String> = names.chunks(width).map(ascii).collect();
    let total = count
        .checked_mul(fields.len())
        .ok_or("a structure is larger than any memory")?;
    let values = arrays(elements, total, depth, budget)?;
    Ok(MatValue::Records { fields, values })
}

/// A name: letters up to the first zero.
fn ascii(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Numbers of any type; MATLAB stores whole numbers in the smallest type that holds them.
fn numbers(element: &MatElement, big: bool) -> Result<Vec<f64>, String> {
    macro_rules! each {
        ($number:ty) => {{
            let (values, rest) = element.data.as_chunks::<{ size_of::<$number>() }>();
            if !rest.is_empty() {
                return Err("an array ends in the middle of a number".to_owned());
            }
            let number = |&bytes: &[u8; size_of::<$number>()]| {
                (if big {
                    <$number>::from_be_bytes(bytes)
                } else {
                    <$number>::from_le_bytes(bytes)
                }) as f64
            };
            values.iter().map(number).collect()
        }};
    }
    Ok(match element.kind {
        mi::INT8 => each!(i8),
        mi::UINT8 => each!(u8),
        mi::INT16 => each!(i16),
        mi::UINT16 => each!(u16),
        mi::INT32 => each!(i32),
        mi::UINT32 => each!(u32),
        mi::SINGLE => each!(f32),
        mi::DOUBLE => each!(f64),
        mi::INT64 => each!(i64),
        mi::UINT64 => each!(u64),
        kind => {
            return Err(format!(
                "an array of numbers is stored as type {kind}, which holds none"
            ));
        }
    })
}

fn text(element: &MatElement, big: bool) -> Result<String, String> {
    let wrong = || "a text is not valid Unicode".to_owned();
    match element.kind {
        mi::UTF8 => String::from_utf8(element.data.to_vec()).map_err(|_| wrong()),
        // One byte a letter, which is what the first 256 of Unicode are.
        mi::INT8 | mi::UINT8 => Ok(element.data.iter().map(|&b| char::from(b)).collect()),
        mi::UTF16 | mi::UINT16 => {
            let (units, rest) = element.data.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(wrong());
            }
            let unit = |&bytes: &[u8; 2]| {
                if big {
                    u16::from_be_bytes(bytes)
                } else {
                    u16::from_le_bytes(bytes)
                }
            };
            char::decode_utf16(units.iter().map(unit))
                .collect::<Result<_, _>>()
                .map_err(|_| wrong())
        }
        mi::UTF32 | mi::UINT32 => {
            let (units, rest) = element.data.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(wrong());
            }
            let letters: Option<String> = units.iter().map(|unit| char::from_u32(word(unit, big))).collect();
            letters.ok_or_else(wrong)
        }
        kind => Err(format!("a text is stored as type {kind}, which holds none")),
    }
}

/// Four bytes as a number.
fn word(bytes: &[u8], big: bool) -> u32 {
    let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
    if big {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    }
}
