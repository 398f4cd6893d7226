//! Lines of a text, none longer than it may be.

use std::io::{BufRead, Read};

use super::limits::too_long;
use super::source::FileOrigin;
use crate::error::{DataError, FilePosition};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads line after line into one buffer.
pub(crate) struct Lines<R> {
    origin: FileOrigin,
    reader: R,
    /// What a line ends with.
    separator: u8,
    /// Bytes that a line may take.
    limit: u64,
    /// The line read last, with its end.
    pub(crate) text: Vec<u8>,
    /// The number of the line read last, from one.
    pub(crate) line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(origin: FileOrigin, reader: R, separator: u8, limit: u64) -> Self {
        Self {
            origin,
            reader,
            separator,
            limit,
            text: Vec::new(),
            line: 0,
        }
    }

    /// Where the lines come from.
    pub(super) fn reader(&self) -> &R {
        &self.reader
    }

    /// Reads the next line, or says that there is none.
    pub(crate) fn read(&mut self) -> Result<bool, DataError> {
        self.text.clear();
        self.line += 1;
        let mut limited = self.reader.by_ref().take(self.limit);
        let count = limited
            .read_until(self.separator, &mut self.text)
            .map_err(|e| self.origin.io(e))?;
        if count as u64 == self.limit && self.text.last() != Some(&self.separator) {
            return Err(self.origin.row(FilePosition::Line(self.line), too_long(self.limit)));
        }
        if self.line == 1 && self.text.starts_with(BOM) {
            self.text.drain(..BOM.len());
        }
        Ok(count > 0)
    }

    /// Reads the next line that is not blank, or says that there is none.
    pub(crate) fn read_filled(&mut self) -> Result<bool, DataError> {
        while self.read()? {
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
