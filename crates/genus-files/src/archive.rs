//! ZIP archives whose entries are read from wherever the archive lies.
//!
//! The `zip` crate reads the directory. Its entries borrow the archive and cannot be kept for streaming, so what an entry is
//! made of is located here and read from any handle on the same bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::FormatError;

/// Deflate shrinks to no less than this; an entry that claims more is no honest one.
const MAX_RATIO: u64 = 1100;

/// The entries of an archive by name.
#[derive(Debug)]
pub struct Directory {
    entries: BTreeMap<String, ArchiveEntry>,
}

/// Where an entry lies in its archive, and how.
#[derive(Clone, Debug)]
pub struct ArchiveEntry {
    start: u64,
    stored: u64,
    length: u64,
    method: CompressionMethod,
    encrypted: bool,
    crc: u32,
}

impl Directory {
    /// Reads the directory of an archive.
    pub fn read(reader: impl Read + Seek) -> Result<Self, FormatError> {
        let mut archive = ZipArchive::new(reader).map_err(unreadable)?;
        let mut entries = BTreeMap::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(unreadable)?;
            let (Ok(name), Some(start)) = (entry.name().map(|name| name.into_owned()), entry.data_start()) else {
                continue;
            };
            let located = ArchiveEntry {
                start,
                stored: entry.compressed_size(),
                length: entry.size(),
                method: entry.compression(),
                encrypted: entry.encrypted(),
                crc: entry.crc32(),
            };
            entries.insert(name, located);
        }
        Ok(Self { entries })
    }

    /// The names of the entries, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether there is an entry of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// An entry by name.
    pub fn entry(&self, name: &str) -> Result<&ArchiveEntry, FormatError> {
        let entry = self.entries.get(name);
        entry.ok_or_else(|| FormatError::Malformed(format!("the archive has no entry {name:?}")))
    }
}

impl ArchiveEntry {
    /// The bytes that the entry claims to have when unpacked, which are at most so many times those of the archive.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the entry, unpacked, from a handle on its archive.
    pub fn open<R: Read + Seek>(&self, mut archive: R) -> Result<EntryReader<R>, FormatError> {
        let malformed = |problem: String| Err(FormatError::Malformed(problem));
        if self.encrypted {
            return malformed("it is encrypted".to_owned());
        }
        let (stored, length) = (self.stored, self.length);
        let is_deflated = match self.method {
            CompressionMethod::Stored if stored == length => false,
            CompressionMethod::Deflated if length / MAX_RATIO <= stored => true,
            CompressionMethod::Stored | CompressionMethod::Deflated => {
                return malformed(format!("it claims {length} bytes but takes {stored}"));
            }
            other => return malformed(format!("its compression ({other}) is none but Deflate")),
        };
        archive.seek(SeekFrom::Start(self.start))?;
        let raw = archive.take(stored);
        let bytes = match is_deflated {
            true => EntryBytes::Deflated(DeflateDecoder::new(raw)),
            false => EntryBytes::Stored(raw),
        };
        Ok(EntryReader {
            // One byte more than claimed, so that an entry that goes on is noticed.
            bytes: CrcReader::new(bytes.take(length.saturating_add(1))),
            crc: self.crc,
        })
    }
}

/// The bytes of an entry; reading to their end compares the checksum.
#[derive(Debug)]
pub struct EntryReader<R> {
    bytes: CrcReader<io::Take<EntryBytes<R>>>,
    crc: u32,
}

#[derive(Debug)]
enum EntryBytes<R> {
    Stored(io::Take<R>),
    Deflated(DeflateDecoder<io::Take<R>>),
}

impl<R: Read> Read for EntryBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            EntryBytes::Stored(bytes) => bytes.read(buffer),
            EntryBytes::Deflated(bytes) => bytes.read(buffer),
        }
    }
}

impl<R: Read> Read for EntryReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.bytes.crc().sum() != self.crc {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum is wrong"));
        }
        Ok(count)
    }
}

fn unreadable(error: ZipError) -> FormatError {
    match error {
        ZipError::Io(error) => error.into(),
        error => FormatError::Malformed(error.to_string()),
    }
}
