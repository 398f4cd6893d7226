//! What can go wrong with a file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A file that cannot be written, or a folder that another process has.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// An output that cannot be written.
    #[error("cannot write {target}: {source}{way_out}")]
    Write {
        /// The path of the output, or what it is called when it has none.
        target: String,
        /// What the operating system said.
        source: io::Error,
        /// What to do about it, or nothing where the operating system's words say it all.
        way_out: &'static str,
    },
    /// A folder that another process is changing.
    #[error("{} is in use by {holder}; wait until it is done and try again", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// Who changes it.
        holder: String,
    },
}

impl FileError {
    /// A failed write, with the way out where there is a common one.
    pub fn write(target: impl fmt::Display, source: io::Error) -> Self {
        FileError::Write {
            target: target.to_string(),
            way_out: if source.kind() == io::ErrorKind::StorageFull {
                "; free some space"
            } else {
                ""
            },
            source,
        }
    }
}

/// Bytes that are not what their format says. Which file they are of is for the caller to add.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The operating system would not give them.
    #[error(transparent)]
    Io(io::Error),
    /// They contradict the format.
    #[error("{0}")]
    Malformed(String),
    /// They would take more memory or time than any honest file.
    #[error("{0}")]
    TooLarge(String),
    /// A pickle names a class or function that the reader does not accept.
    #[error("the pickle names {0}")]
    Foreign(String),
}

impl From<io::Error> for FormatError {
    /// Readers of compressed and checked bytes report damage as I/O errors; the system's own are others.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Malformed("the file ends too early".to_owned()),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Self::Malformed(error.to_string()),
            _ => Self::Io(error),
        }
    }
}
