//! Annotations in text files: a line an image or a class.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{DataError, FilePosition};
use crate::table::source::FileOrigin;

/// The most bytes of a line; names of images are short.
const MAX_LINE: u64 = 1 << 16;

/// A text file that is read line by line.
pub(super) struct AnnotationLines {
    pub(super) origin: FileOrigin,
    reader: BufReader<File>,
    line: u64,
}

impl AnnotationLines {
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let origin = FileOrigin::new(path);
        let file = File::open(path).map_err(|e| origin.io(e))?;
        Ok(Self {
            reader: BufReader::new(file),
            origin,
            line: 0,
        })
    }

    /// The next line that is not empty, without the spaces around it.
    pub(super) fn next_line(&mut self) -> Result<Option<String>, DataError> {
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
            if read.map_err(|e| self.origin.io(e))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if bytes.len() as u64 == MAX_LINE {
                return Err(self.wrong("the line is too long for an annotation; unpack the file again"));
            }
            let text = String::from_utf8(bytes)
                .map_err(|_| self.wrong("the line is not UTF-8; save the file as UTF-8 or unpack it again"))?;
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim();
            if !text.is_empty() {
                return Ok(Some(text.to_owned()));
            }
        }
    }

    /// The next line as a number and the rest.
    pub(super) fn next_numbered(&mut self) -> Result<Option<(u64, String)>, DataError> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        let (number, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
        match number.parse() {
            Ok(number) => Ok(Some((number, rest.trim().to_owned()))),
            Err(_) => Err(self.wrong(format!("\"{number}\" is no number; a line begins with one"))),
        }
    }

    /// An error about the line that was read last.
    pub(super) fn wrong(&self, problem: impl std::fmt::Display) -> DataError {
        self.origin.row(FilePosition::Line(self.line), problem)
    }
}
