//! The fast way to the features: pages of plain or dictionary-encoded floats, in lists that all have the same length
//! and no nulls.
//!
//! Parquet says where lists begin with a "repetition level" for every value and where nulls are with a "definition
//! level". Arrow decodes these one by one, which takes several times as long as reading the values. In lists of one
//! length they are long runs, however, and comparing the runs with what they must be costs nothing. Whatever is
//! different makes [`PageReader::append`] give up, and what it refuses is left to be read, or refused in good words, by
//! way of Arrow.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Type};
use parquet::column::page::{Page, PageReader as _};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::{Input, guarded};
use crate::error::DataError;
use crate::table::element::{Element, Number};

/// Values of one page that are decoded at once through a dictionary; a page that claims more is left to Arrow.
const MAX_DICTIONARY_PAGE: usize = 1 << 24;

/// Reads features page by page.
pub(super) struct PageReader {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    /// Which of the columns without structure holds the values.
    leaf: usize,
    element: Element,
    /// The definition level of a value that is there.
    defined: u32,
    dim: usize,
    /// The row group to be read next.
    row_group: usize,
    pages: Option<SerializedPageReader<File>>,
    dictionary: Vec<f32>,
    /// Values of this row group in the pages so far.
    position: usize,
    current: PageValues,
}

/// Values of a page that are not given yet.
enum PageValues {
    None,
    /// The bytes of the page from the given one on.
    Plain(Page, usize),
    /// Decoded values from the given one on.
    Decoded(Vec<f32>, usize),
}

impl PageReader {
    /// `None` when the column is of another kind.
    pub(super) fn open(input: &Input, column: usize, dim: usize) -> Option<Self> {
        let metadata = input.metadata.metadata().clone();
        let schema = metadata.file_metadata().schema_descr();
        let leaf = only_leaf(input, column)?;
        let description = schema.column(leaf);
        let number = match (description.physical_type(), description.logical_type_ref()) {
            (Type::FLOAT, _) => Number::F32,
            (Type::DOUBLE, _) => Number::F64,
            (Type::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)) if description.type_length() == 2 => Number::F16,
            _ => return None,
        };
        if description.max_rep_level() != 1 {
            return None;
        }
        let defined = u32::try_from(description.max_def_level()).ok()?;
        let file = Arc::new(File::open(input.origin.file()).ok()?);
        let element = Element {
            number,
            big_endian: false,
        };
        Some(Self {
            file,
            metadata,
            leaf,
            element,
            defined,
            dim,
            row_group: 0,
            pages: None,
            dictionary: Vec::new(),
            position: 0,
            current: PageValues::None,
        })
    }

    /// Appends the next `count` values, or as many as there are before something unusual, and then gives `false`.
    pub(super) fn append(&mut self, count: usize, values: &mut Vec<f32>) -> bool {
        let end = values.len() + count;
        while values.len() < end {
            let wanted = end - values.len();
            match &mut self.current {
                PageValues::Plain(page, from) if *from < page.buffer().len() => {
                    let bytes = &page.buffer()[*from..];
                    let bytes = &bytes[..bytes.len().min(wanted.saturating_mul(self.element.size()))];
                    self.element.decode(bytes, values);
                    *from += bytes.len();
                }
                PageValues::Decoded(decoded, from) if *from < decoded.len() => {
                    let part = &decoded[*from..];
                    let part = &part[..part.len().min(wanted)];
                    values.extend_from_slice(part);
                    *from += part.len();
                }
                _ => {
                    if self.next_page().is_none() {
                        self.current = PageValues::None;
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Goes to the next page; `None` when there is none or it is unusual.
    fn next_page(&mut self) -> Option<()> {
        loop {
            let page = match &mut self.pages {
                Some(pages) => guarded(|| pages.get_next_page()).ok()?,
                None => None,
            };
            match page {
                None => self.next_row_group()?,
                Some(Page::DictionaryPage {
                    buf,
                    encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                    ..
                }) => {
                    self.dictionary.clear();
                    self.element.decode(&buf, &mut self.dictionary);
                }
                Some(page) => {
                    self.current = self.check(page)?;
                    return Some(());
                }
            }
        }
    }

    fn next_row_group(&mut self) -> Option<()> {
        // A row never goes on in another row group.
        if !self.position.is_multiple_of(self.dim) {
            return None;
        }
        self.pages = Some(pages_of(&self.file, &self.metadata, self.row_group, self.leaf)?);
        self.row_group += 1;
        self.position = 0;
        self.dictionary.clear();
        Some(())
    }

    /// The values of a page, if it is of the usual kind.
    fn check(&mut self, page: Page) -> Option<PageValues> {
        let bytes: &[u8] = page.buffer();
        let (count, encoding, repetition, definition, values) = match &page {
            Page::DataPage {
                num_values,
                encoding,
                rep_level_encoding,
                def_level_encoding,
                ..
            } => {
                if *rep_level_encoding != Encoding::RLE || *def_level_encoding != Encoding::RLE {
                    return None;
                }
                let (repetition, rest) = prefixed(bytes)?;
                let (definition, values) = if self.defined > 0 {
                    prefixed(rest)?
                } else {
                    (&[][..], rest)
                };
                (*num_values as usize, *encoding, repetition, definition, values)
            }
            Page::DataPageV2 {
                num_values,
                encoding,
                rep_levels_byte_len,
                def_levels_byte_len,
                ..
            } => {
                let (repetition, rest) = bytes.split_at_checked(*rep_levels_byte_len as usize)?;
                let (definition, values) = rest.split_at_checked(*def_levels_byte_len as usize)?;
                (*num_values as usize, *encoding, repetition, definition, values)
            }
            Page::DictionaryPage { .. } => return None,
        };
        self.check_repetition(repetition, count)?;
        self.check_definition(definition, count)?;
        self.position += count;
        match encoding {
            Encoding::PLAIN if values.len() == count.checked_mul(self.element.size())? => {
                let start = bytes.len() - values.len();
                Some(PageValues::Plain(page, start))
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if count <= MAX_DICTIONARY_PAGE => {
                let (&width, indices) = values.split_first()?;
                let mut decoded = Vec::with_capacity(count);
                for run in Runs::new(indices, width.into(), count)? {
                    match run? {
                        HybridRun::Repeated { value, count } => {
                            let value = *self.dictionary.get(value as usize)?;
                            decoded.resize(decoded.len() + count, value);
                        }
                        HybridRun::Packed { bytes, count } => {
                            for index in unpack(bytes, width.into()).take(count) {
                                decoded.push(*self.dictionary.get(index as usize)?);
                            }
                        }
                    }
                }
                (decoded.len() == count).then_some(PageValues::Decoded(decoded, 0))
            }
            _ => None,
        }
    }

    /// Compares the repetition levels with those of lists of `dim` values: zero where a list begins, one elsewhere.
    fn check_repetition(&self, levels: &[u8], count: usize) -> Option<()> {
        let mut at = self.position;
        for run in Runs::new(levels, 1, count)? {
            match run? {
                HybridRun::Repeated { value: 1, count } => {
                    // No list begins within the run.
                    let next_start = at.next_multiple_of(self.dim);
                    if next_start < at + count {
                        return None;
                    }
                    at += count;
                }
                HybridRun::Repeated { count, .. } => {
                    if !at.is_multiple_of(self.dim) || (self.dim > 1 && count > 1) {
                        return None;
                    }
                    at += count;
                }
                HybridRun::Packed { bytes, count } => {
                    for level in unpack(bytes, 1).take(count) {
                        if (level == 0) != at.is_multiple_of(self.dim) {
                            return None;
                        }
                        at += 1;
                    }
                }
            }
        }
        (at == self.position + count).then_some(())
    }

    /// Makes sure that every value is there.
    fn check_definition(&self, levels: &[u8], count: usize) -> Option<()> {
        if self.defined == 0 {
            return Some(());
        }
        let width = u32::BITS - self.defined.leading_zeros();
        let mut checked = 0;
        for run in Runs::new(levels, width, count)? {
            let (all, count) = match run? {
                HybridRun::Repeated { value, count } => (value == self.defined, count),
                HybridRun::Packed { bytes, count } => (
                    unpack(bytes, width).take(count).all(|level| level == self.defined),
                    count,
                ),
            };
            checked += count;
            if !all {
                return None;
            }
        }
        (checked == count).then_some(())
    }
}

/// The one leaf of a column.
fn only_leaf(input: &Input, column: usize) -> Option<usize> {
    match input.leaves.get(column)?[..] {
        [leaf] => Some(leaf),
        _ => None,
    }
}

/// The pages of a leaf in a row group; none when there is no such group, or it is damaged.
fn pages_of(
    file: &Arc<File>,
    metadata: &ParquetMetaData,
    row_group: usize,
    leaf: usize,
) -> Option<SerializedPageReader<File>> {
    let group = metadata.row_groups().get(row_group)?;
    let chunk = group.columns().get(leaf)?;
    let rows = usize::try_from(group.num_rows()).ok()?;
    guarded(|| SerializedPageReader::new(file.clone(), chunk, rows, None)).ok()
}

/// Gives how many values the rows of a column of lists have, and how many rows in turn have as many, until `each` has enough.
/// No value is decoded for that, only where lists begin.
pub(super) fn for_each_length(
    input: &Input,
    column: usize,
    mut each: impl FnMut(usize, u64) -> bool,
) -> Result<(), DataError> {
    let metadata = input.metadata.metadata();
    let damaged = || {
        input
            .origin
            .malformed("where its lists begin cannot be told; the file is damaged, write it again")
    };
    let leaf = only_leaf(input, column).ok_or_else(damaged)?;
    let file = Arc::new(File::open(input.origin.file()).map_err(|e| input.origin.io(e))?);
    input.largest_page(&[column])?;
    for row_group in 0..metadata.num_row_groups() {
        let mut pages = pages_of(&file, metadata, row_group, leaf).ok_or_else(damaged)?;
        // The values of the row that goes on; a row never goes on in another row group.
        let mut length = 0usize;
        while let Some(page) = guarded(|| pages.get_next_page()).map_err(|_| damaged())? {
            if matches!(page, Page::DictionaryPage { .. }) {
                continue;
            }
            let (levels, count) = repetition(&page).ok_or_else(damaged)?;
            let mut found = 0;
            for run in Runs::new(levels, 1, count).ok_or_else(damaged)? {
                let mut go_on = |starts: bool, count: usize| {
                    found += count;
                    if !starts {
                        length = length.saturating_add(count);
                        return true;
                    }
                    let ended = length == 0 || each(length, 1);
                    length = 1;
                    ended && (count <= 1 || each(1, count as u64 - 1))
                };
                let is_enough = match run.ok_or_else(damaged)? {
                    HybridRun::Repeated { value, count } => !go_on(value == 0, count),
                    HybridRun::Packed { bytes, count } => {
                        !unpack(bytes, 1).take(count).all(|level| go_on(level == 0, 1))
                    }
                };
                if is_enough {
                    return Ok(());
                }
            }
            if found != count {
                return Err(damaged());
            }
        }
        if length > 0 && !each(length, 1) {
            return Ok(());
        }
    }
    Ok(())
}

/// The repetition levels of a page of data, and how many there are.
fn repetition(page: &Page) -> Option<(&[u8], usize)> {
    let bytes: &[u8] = page.buffer();
    match page {
        Page::DataPage {
            num_values,
            rep_level_encoding: Encoding::RLE,
            ..
        } => Some((prefixed(bytes)?.0, *num_values as usize)),
        Page::DataPageV2 {
            num_values,
            rep_levels_byte_len,
            ..
        } => Some((bytes.get(..*rep_levels_byte_len as usize)?, *num_values as usize)),
        _ => None,
    }
}

/// Splits off bytes that their length stands before.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Runs of Parquet's mix of run-length encoding and bit packing, until there are as many values as there should be. An
/// item of `None` is damage.
struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
    left: usize,
}

enum HybridRun<'a> {
    Repeated { value: u32, count: usize },
    Packed { bytes: &'a [u8], count: usize },
}

impl<'a> Runs<'a> {
    fn new(bytes: &'a [u8], width: u32, count: usize) -> Option<Self> {
        (width <= 32).then_some(Self {
            bytes,
            width,
            left: count,
        })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn run(&mut self) -> Option<HybridRun<'a>> {
        let mut header = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = *self.take(1)?.first()?;
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let length = usize::try_from(header >> 1).ok()?;
        if length == 0 {
            return None;
        }
        if header & 1 == 0 {
            let mut value = [0; 4];
            let width = self.width.div_ceil(8) as usize;
            value[..width].copy_from_slice(self.take(width)?);
            let count = length.min(self.left);
            self.left -= count;
            return Some(HybridRun::Repeated {
                value: u32::from_le_bytes(value),
                count,
            });
        }
        // Eight values a unit, of which the last may be filled up.
        let bytes = self.take(length.checked_mul(self.width as usize)?)?;
        let count = length.checked_mul(8)?.min(self.left);
        self.left -= count;
        Some(HybridRun::Packed { bytes, count })
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Option<HybridRun<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let run = self.run();
        if run.is_none() {
            self.left = 0;
        }
        Some(run)
    }
}

/// The values of `width` bits, lowest bits first.
fn unpack(bytes: &[u8], width: u32) -> impl Iterator<Item = u32> {
    let mask = (1u64 << width) - 1;
    let mut bytes = bytes.iter();
    let (mut bits, mut held) = (0u64, 0);
    std::iter::from_fn(move || {
        while held < width {
            bits |= u64::from(*bytes.next()?) << held;
            held += 8;
        }
        let value = (bits & mask) as u32;
        bits >>= width;
        held -= width;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

    use super::*;
    use crate::table::source::FileOrigin;

    /// Reading by way of Arrow gives the same, so that nothing else would show that the fast way is never taken.
    #[test]
    fn files_of_the_usual_kind_are_read_the_fast_way() {
        for name in [
            "list_f2",
            "list_f4",
            "list_f8",
            "large_list_f4",
            "fixed_f4",
            "row_groups",
            "pages_v2",
            "required",
            "element",
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/goldens")
                .join(name)
                .with_extension("parquet");
            let file = File::open(&path).unwrap();
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).unwrap();
            let input = Input::of(FileOrigin::new(&path), metadata);
            let column = input.column("embedding").unwrap();
            let mut pages = PageReader::open(&input, column, 3).unwrap();
            let mut values = Vec::new();
            assert!(pages.append(15, &mut values), "{name}");
            assert_eq!(values[12..], [0.75, -1.0, 16.0], "{name}");
            assert!(!pages.append(1, &mut values), "{name} goes on after its end");
            // Lists of another length are not taken for these.
            assert!(
                !PageReader::open(&input, column, 5).unwrap().append(15, &mut Vec::new()),
                "{name}"
            );
        }
    }
}
