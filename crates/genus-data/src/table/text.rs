//! Texts that are read a line at a time: files, files compressed with gzip, and standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};

use flate2::read::MultiGzDecoder;

use super::format::is_gzip;
use super::limits::most_unpacked;
use super::source::FileOrigin;
use crate::error::DataError;
use genus_files::refuse_device;

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// A text.
pub(crate) type Text = BufReader<Box<dyn Read + Send>>;

/// Opens the text that errors name.
pub(crate) fn open(origin: &FileOrigin) -> Result<Text, DataError> {
    if origin.is_standard_input() {
        let start = first_bytes(&mut io::stdin()).map_err(|e| origin.io(e))?;
        let is_packed = start == GZIP;
        let text = unpacked(Cursor::new(start).chain(io::stdin()), is_packed, u64::MAX);
        return Ok(BufReader::with_capacity(BUFFER, text));
    }
    let mut file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    let found = file.metadata().map_err(|e| origin.io(e))?;
    if found.is_dir() {
        let path = origin.path.clone();
        return Err(DataError::Directory { path });
    }
    // A device may have no end.
    refuse_device(&found).map_err(|e| origin.io(e))?;
    let mut is_packed = is_gzip(origin.file());
    // What comes through a pipe cannot be looked at twice.
    if found.is_file() {
        is_packed |= first_bytes(&mut file).map_err(|e| origin.io(e))? == GZIP;
        file.rewind().map_err(|e| origin.io(e))?;
    }
    Ok(BufReader::with_capacity(BUFFER, unpacked(file, is_packed, found.len())))
}

/// How everything begins that gzip has packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn first_bytes(bytes: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    bytes.take(GZIP.len() as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// The bytes of a text that takes so many of them, which gzip may have packed.
fn unpacked(bytes: impl Read + Send + 'static, is_packed: bool, length: u64) -> Box<dyn Read + Send> {
    match is_packed {
        false => Box::new(bytes),
        true => Box::new(GzipReader {
            inner: MultiGzDecoder::new(BufReader::new(bytes)),
            left: most_unpacked(length),
            length,
        }),
    }
}

/// Whether there is a whole line in what was read ahead, so that reading it waits for nobody.
pub(super) fn has_line(text: &BufReader<impl Read>) -> bool {
    text.buffer().contains(&b'\n')
}

/// What gzip has packed, up to what a file of its size may become.
struct GzipReader<R> {
    inner: R,
    left: u64,
    length: u64,
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it is not compressed with gzip, or damaged ({e}); copy or write it again"),
            ),
            _ => e,
        })?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(format!(
                "its {} bytes become more than {}, the most for a compressed table; if it is an honest one, unpack it first",
                self.length,
                most_unpacked(self.length)
            ))
        })?;
        Ok(count)
    }
}

/// Gives no more than a line at a time, so that whoever reads ahead does not wait for the line after the one that is needed.
pub(super) struct LineReader<R>(pub(super) R);

impl<R: BufRead> Read for LineReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.0.fill_buf()?;
        let line = ready
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(ready.len(), |at| at + 1);
        let count = line.min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.0.consume(count);
        Ok(count)
    }
}
