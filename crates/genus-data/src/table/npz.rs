//! NumPy's archive of arrays, a ZIP file with one `.npy` an entry.
//!
//! The `zip` crate reads the directory; the entries are read here, since its readers borrow the archive and cannot be
//! kept for streaming.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::arrays::{Arrays, Beside, CLASSES, Column, ENCODER, IDS, LABELS, column_shape, find_features};
use super::encoder;
use super::npy::Header;
use super::source::{Origin, Source};
use crate::error::DataError;

/// Deflate shrinks to no less than this; an entry that claims more is no honest one.
const MAX_RATIO: u64 = 1100;

/// Opens an `.npz` file: features and, where it has them, labels, class names and ids.
pub(super) fn open(origin: Origin, file: File) -> Result<Box<dyn Source>, DataError> {
    let mut archive = Archive::open(origin, file)?;
    let names = archive.names();
    let x = find_features(&archive.origin, "array", |name| names.iter().any(|n| n == name), &names)?;
    let (header, bytes) = archive.array(x)?;
    let matrix = header.into_matrix(&archive.origin, &format!("\"{x}\""), Box::new(bytes))?;

    let mut column = |name: &str| match names.iter().any(|n| n == name) {
        true => archive.column(name, matrix.rows).map(Some),
        false => Ok(None),
    };
    let labels = match LABELS.into_iter().find(|name| names.iter().any(|n| n == name)) {
        Some(y) => column(y)?,
        None => None,
    };
    let ids = column(IDS)?;
    let classes = if names.iter().any(|n| n == CLASSES) {
        Some(archive.classes()?)
    } else {
        None
    };
    let encoder = if names.iter().any(|n| n == ENCODER) {
        archive.encoder()?
    } else {
        None
    };
    let beside = Beside {
        ids,
        labels,
        classes,
        encoder,
    };
    Arrays::open(archive.origin, matrix, beside)
}

struct Archive {
    origin: Origin,
    zip: ZipArchive<File>,
    length: u64,
}

impl Archive {
    fn open(origin: Origin, file: File) -> Result<Self, DataError> {
        let length = file.metadata().map_err(|e| origin.io(e))?.len();
        let zip = ZipArchive::new(file).map_err(|e| {
            origin.malformed(format!(
                "not a readable .npz file ({e}); it was cut off or is damaged, write it again"
            ))
        })?;
        Ok(Self { origin, zip, length })
    }

    /// The names of the arrays.
    fn names(&self) -> Vec<String> {
        let entries = self.zip.file_names().filter_map(Result::ok);
        entries
            .filter_map(|entry| entry.strip_suffix(".npy").map(str::to_owned))
            .collect()
    }

    /// The head of an array and the bytes that follow it.
    fn array(&mut self, name: &str) -> Result<(Header, CheckedEntry), DataError> {
        let damaged = |problem: String| {
            self.origin.malformed(format!(
                "\"{name}\" cannot be read from the archive: {problem}; write the file again"
            ))
        };
        let index = self
            .zip
            .index_for_name(&format!("{name}.npy"))
            .ok_or_else(|| damaged("not found".to_owned()))?;
        let entry = self.zip.by_index_raw(index).map_err(|e| damaged(e.to_string()))?;
        let (stored, length) = (entry.compressed_size(), entry.size());
        let start = entry
            .data_start()
            .ok_or_else(|| damaged("it has no position".to_owned()))?;
        let (method, encrypted, crc) = (entry.compression(), entry.encrypted(), entry.crc32());
        drop(entry);

        if encrypted {
            return Err(damaged("it is encrypted".to_owned()));
        }
        if start.checked_add(stored).is_none_or(|end| end > self.length) {
            return Err(damaged("the archive ends before it".to_owned()));
        }
        let mut file = File::open(&self.origin.path).map_err(|e| self.origin.io(e))?;
        file.seek(SeekFrom::Start(start)).map_err(|e| self.origin.io(e))?;
        let raw = file.take(stored);
        let bytes: Box<dyn Read + Send> = match method {
            CompressionMethod::Stored if stored == length => Box::new(raw),
            CompressionMethod::Deflated if length / MAX_RATIO <= stored => Box::new(DeflateDecoder::new(raw)),
            CompressionMethod::Stored | CompressionMethod::Deflated => {
                return Err(damaged(format!("it claims {length} bytes but takes {stored}")));
            }
            other => {
                return Err(damaged(format!(
                    "its compression ({other}) is not the one of numpy.savez_compressed"
                )));
            }
        };
        // One byte more than declared, so that an entry that goes on is noticed.
        let bytes = bytes.take(length.saturating_add(1));
        let mut entry = CheckedEntry {
            bytes: CrcReader::new(bytes),
            crc,
        };
        let header = Header::read(&self.origin, &format!("\"{name}\""), &mut entry, length)?;
        Ok((header, entry))
    }

    /// An array with one value a row.
    fn column(&mut self, name: &str, rows: u64) -> Result<Column, DataError> {
        let (header, mut bytes) = self.array(name)?;
        column_shape(&self.origin, name, &header.shape, rows)?;
        header.read_column(&self.origin, name, &mut bytes)
    }

    /// The one text of the array that says which encoder made the features.
    fn encoder(&mut self) -> Result<Option<String>, DataError> {
        let (header, mut bytes) = self.array(ENCODER)?;
        if matches!(*header.shape, [] | [1])
            && let Column::Texts(mut texts) = header.read_column(&self.origin, ENCODER, &mut bytes)?
        {
            return Ok(texts.pop().and_then(encoder::from_text));
        }
        Err(self
            .origin
            .malformed("\"encoder\" must be one text; save it as numpy.array(\"...\")"))
    }

    fn classes(&mut self) -> Result<Vec<String>, DataError> {
        let (header, mut bytes) = self.array(CLASSES)?;
        if header.shape.len() != 1 {
            return Err(self
                .origin
                .malformed("\"classes\" must be a list of names, the first for label 0; flatten it"));
        }
        Ok(match header.read_column(&self.origin, CLASSES, &mut bytes)? {
            Column::Texts(names) => names,
            Column::Integers(names) => names.iter().map(i128::to_string).collect(),
        })
    }
}

/// The bytes of an entry; reading to their end compares the checksum.
struct CheckedEntry {
    bytes: CrcReader<io::Take<Box<dyn Read + Send>>>,
    crc: u32,
}

impl Read for CheckedEntry {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.bytes.crc().sum() != self.crc {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum is wrong"));
        }
        Ok(count)
    }
}
