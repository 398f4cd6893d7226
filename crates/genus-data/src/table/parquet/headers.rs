//! The sizes of pages, by their headers alone: a page of a few bytes may claim to be two gigabytes, and the decoder would
//! believe it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use parquet::file::metadata::ColumnChunkMetaData;

use super::Input;
use crate::error::DataError;
use crate::table::limits::MAX_PAGE;

/// The most bytes of a header, which may have the least and the largest text of its page.
const MAX_HEADER: u64 = 16 << 20;
/// Bytes that are read at a time: a header has some fifty.
const BUFFER: usize = 256;
/// How deep the structures of a header may lie in each other.
const MAX_DEPTH: usize = 8;

/// The bytes of the largest page of a column, which may have several leaves; none is larger than it may be.
pub(super) fn largest_page(input: &Input, column: usize) -> Result<u64, DataError> {
    let metadata = input.metadata.metadata();
    let leaves = input.leaves.get(column).map_or(&[][..], Vec::as_slice);
    let file = File::open(input.origin.file()).map_err(|e| input.origin.io(e))?;
    let mut from = BufReader::with_capacity(BUFFER, file);
    let mut largest = 0;
    for group in metadata.row_groups() {
        for chunk in leaves.iter().filter_map(|&leaf| group.columns().get(leaf)) {
            let found = largest_of_chunk(&mut from, chunk).map_err(|e| match e.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => {
                    input.origin.malformed(format!(
                        "a page of the column {} makes no sense ({e}); the file is damaged, write it again",
                        chunk.column_path()
                    ))
                }
                _ => input.origin.io(e),
            })?;
            if found > MAX_PAGE {
                return Err(input.origin.malformed(format!(
                    "a page of the column {} takes {} MiB; a page has at most {} MiB, write the file with smaller ones",
                    chunk.column_path(),
                    found >> 20,
                    MAX_PAGE >> 20
                )));
            }
            largest = largest.max(found);
        }
    }
    Ok(largest)
}

fn largest_of_chunk(from: &mut BufReader<File>, chunk: &ColumnChunkMetaData) -> io::Result<u64> {
    let number = |value: i64| u64::try_from(value).map_err(|_| damage("a negative length"));
    let start = match chunk.dictionary_page_offset() {
        // Some writers say zero for none.
        Some(dictionary) if dictionary > 0 => dictionary,
        _ => chunk.data_page_offset(),
    };
    let (mut at, length) = (number(start)?, number(chunk.compressed_size())?);
    let end = at.checked_add(length).ok_or_else(|| damage("no end"))?;
    let mut values_left = chunk.num_values();
    let mut largest = 0;
    while at < end && values_left > 0 {
        from.seek(SeekFrom::Start(at))?;
        let mut header = ThriftReader {
            from: from.by_ref().take(MAX_HEADER.min(end - at)),
            taken: 0,
        };
        let page = header.page()?;
        let header_length = header.taken;
        largest = largest.max(number(page.uncompressed)?);
        values_left -= page.values.max(0);
        at = at
            .saturating_add(header_length)
            .saturating_add(number(page.compressed)?);
    }
    Ok(largest)
}

fn damage(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// What matters of the head of a page.
#[derive(Default)]
struct PageHeader {
    uncompressed: i64,
    compressed: i64,
    /// None for dictionaries.
    values: i64,
}

/// Reads Thrift's compact protocol, in which headers are written.
struct ThriftReader<R> {
    from: R,
    taken: u64,
}

impl<R: Read> ThriftReader<R> {
    fn page(&mut self) -> io::Result<PageHeader> {
        let mut page = PageHeader::default();
        self.fields(|header, field, kind| {
            match (field, kind) {
                (2, 5) => page.uncompressed = header.integer()?,
                (3, 5) => page.compressed = header.integer()?,
                // The heads of data pages of either version begin with the number of values.
                (5 | 8, 12) => header.fields(|header, field, kind| {
                    match (field, kind) {
                        (1, 5) => page.values = header.integer()?,
                        _ => header.skip(kind, MAX_DEPTH)?,
                    }
                    Ok(())
                })?,
                _ => header.skip(kind, MAX_DEPTH)?,
            }
            Ok(())
        })?;
        Ok(page)
    }

    /// Gives the number and the kind of every field of a structure.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, u8) -> io::Result<()>) -> io::Result<()> {
        let mut field = 0i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            field = match byte >> 4 {
                0 => self.integer()?,
                more => field.saturating_add(more.into()),
            };
            each(self, field, byte & 0x0f)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        let deeper = depth.checked_sub(1).ok_or_else(|| damage("too many structures"))?;
        match kind {
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.number()?),
            7 => self.skip_bytes(8)?,
            8 => {
                let length = self.number()?;
                self.skip_bytes(length)?;
            }
            9 | 10 => {
                let byte = self.byte()?;
                let length = match byte >> 4 {
                    15 => self.number()?,
                    few => few.into(),
                };
                // Truths are a byte each in a list, and nothing but a bit of the field elsewhere.
                for _ in 0..length {
                    match byte & 0x0f {
                        1 | 2 => drop(self.byte()?),
                        kind => self.skip(kind, deeper)?,
                    }
                }
            }
            12 => self.fields(|header, _, kind| header.skip(kind, deeper))?,
            _ => return Err(damage("a field of no known kind")),
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        self.taken += 1;
        Ok(byte[0])
    }

    fn skip_bytes(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.from.by_ref().take(count), &mut io::sink())?;
        self.taken += skipped;
        match skipped == count {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// A number of a variable number of bytes.
    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damage("a number without end"))
    }

    /// A number with a sign, which is its last bit.
    fn integer(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: &[u8]) -> io::Result<(PageHeader, u64)> {
        let mut header = ThriftReader { from: bytes, taken: 0 };
        let page = header.page()?;
        Ok((page, header.taken))
    }

    #[test]
    fn sizes_are_those_of_the_header() {
        // Type 0, two gigabytes less one, 300 bytes, a checksum; of the data page 7 values, an encoding and a structure.
        let header = [
            0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0xd8, 0x04, 0x15, 0x01, 0x1c, 0x15, 0x0e, 0x15, 0x00,
            0x3c, 0x18, 0x03, b'a', b'b', b'c', 0x29, 0x25, 0x02, 0x04, 0x11, 0x00, 0x00, 0x00,
        ];
        let (page, length) = self::page(&[&header[..], &[9; 10]].concat()).unwrap();
        assert_eq!(
            (page.uncompressed, page.compressed, page.values),
            (i64::from(i32::MAX), 300, 7)
        );
        assert_eq!(length, header.len() as u64);
        for end in 0..header.len() {
            assert!(self::page(&header[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert!(page(&[0x15; 100]).is_err());
        assert!(page(&[0xff; 100]).is_err());
        assert!(page(&[0x1c; 100]).is_err());
        // A list of as many structures as there are numbers.
        assert!(page(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).is_err());
    }
}
