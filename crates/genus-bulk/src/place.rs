//! Where files of a job are: a folder, or a prefix of an object store.
//!
//! A file appears whole. [`Place::publish`] gives it its name unless the name is taken: of any number of processes that publish under
//! one name, one wins, and the others see that it is there.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use genus_files::{AtomicFile, read_named, read_whole};

use crate::BulkError;
use crate::pictures::{is_archive, is_image};
#[cfg(feature = "object-store")]
use crate::remote::Remote;

/// The most bytes of a file of a job that is read whole.
const MOST: u64 = 4 << 30;

/// Where files of a job are.
#[derive(Clone, Debug)]
pub enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A prefix of an object store.
    #[cfg(feature = "object-store")]
    Remote(Remote),
}

/// Whether a name is an address in an object store.
pub(crate) fn is_address(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

impl Place {
    /// The place of a name: an address such as `s3://bucket/jobs/birds`, or a path.
    pub fn of(name: &str) -> Result<Self, BulkError> {
        if !is_address(name) {
            return Ok(Place::Folder(PathBuf::from(name)));
        }
        #[cfg(feature = "object-store")]
        return Ok(Place::Remote(Remote::open(name)?));
        #[cfg(not(feature = "object-store"))]
        Err(BulkError::NoObjectStore { name: name.to_owned() })
    }

    /// What a file of the place is called in full.
    pub fn full(&self, name: &str) -> String {
        match self {
            Place::Folder(folder) => folder.join(name).display().to_string(),
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.full(name),
        }
    }

    /// The bytes of a file, if there is one.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, BulkError> {
        match self {
            Place::Folder(folder) => match read_whole(folder.join(name), MOST) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(e) if is_missing(&e) => Ok(None),
                Err(source) => Err(self.unreadable(name, source)),
            },
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.read(name),
        }
    }

    /// The bytes of a file that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<Vec<u8>, BulkError> {
        let bytes = self.read(name)?;
        bytes.ok_or_else(|| self.unreadable(name, io::ErrorKind::NotFound.into()))
    }

    /// Gives some bytes a name unless it is taken. They are durable when this returns. Says whether they have it now.
    pub(crate) fn publish(&self, name: &str, bytes: &[u8]) -> Result<bool, BulkError> {
        match self {
            Place::Folder(_) => Ok(self.begin(name, bytes)?.publish()?),
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.publish(name, bytes),
        }
    }

    /// Writes a file in place of the one that may be there.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), BulkError> {
        match self {
            Place::Folder(_) => Ok(self.begin(name, bytes)?.commit()?),
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.replace(name, bytes),
        }
    }

    /// A file of the folder with its bytes, which has no name yet.
    fn begin(&self, name: &str, bytes: &[u8]) -> Result<AtomicFile, BulkError> {
        let path = match self {
            Place::Folder(folder) => folder.join(name),
            #[cfg(feature = "object-store")]
            Place::Remote(_) => PathBuf::from(name),
        };
        let failed = |source| BulkError::Write {
            name: path.display().to_string(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = AtomicFile::create_own(&path)?;
        file.write_all(bytes).map_err(failed)?;
        Ok(file)
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), BulkError> {
        match self {
            Place::Folder(folder) => match fs::remove_file(folder.join(name)) {
                Err(e) if !is_missing(&e) => Err(BulkError::Write {
                    name: self.full(name),
                    source: e,
                }),
                _ => Ok(()),
            },
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.remove(name),
        }
    }

    /// The names of the files in a folder of the place, in order, and none where there is no such folder. An object store may lag
    /// behind, so nothing that must be right goes by this.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, BulkError> {
        let mut names = match self {
            Place::Folder(root) => {
                let entries = match fs::read_dir(root.join(folder)) {
                    Ok(entries) => entries,
                    Err(e) if is_missing(&e) => return Ok(Vec::new()),
                    Err(source) => return Err(self.unreadable(folder, source)),
                };
                let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
                let names: io::Result<Vec<String>> = names.collect();
                let mut names = names.map_err(|source| self.unreadable(folder, source))?;
                names.retain(|name| !name.starts_with('.'));
                names
            }
            #[cfg(feature = "object-store")]
            Place::Remote(remote) => remote.list(folder)?,
        };
        names.sort_unstable();
        Ok(names)
    }

    fn unreadable(&self, name: &str, source: io::Error) -> BulkError {
        BulkError::Read {
            name: self.full(name),
            source,
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A file that is read, wherever it is.
#[derive(Clone, Debug)]
pub(crate) enum SourceFile {
    Path(PathBuf),
    #[cfg(feature = "object-store")]
    Remote(Remote),
}

/// What is known of a file without reading it.
pub(crate) struct Found {
    pub(crate) bytes: u64,
    pub(crate) etag: Option<String>,
}

impl SourceFile {
    pub(crate) fn of(name: &str) -> Result<Self, BulkError> {
        if !is_address(name) {
            return Ok(SourceFile::Path(PathBuf::from(name)));
        }
        #[cfg(feature = "object-store")]
        return Ok(SourceFile::Remote(Remote::open(name)?));
        #[cfg(not(feature = "object-store"))]
        Err(BulkError::NoObjectStore { name: name.to_owned() })
    }

    /// The path of a file on this machine.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            SourceFile::Path(path) => Some(path),
            #[cfg(feature = "object-store")]
            SourceFile::Remote(_) => None,
        }
    }

    pub(crate) fn find(&self) -> io::Result<Found> {
        match self {
            SourceFile::Path(path) => {
                let found = fs::metadata(path)?;
                match found.is_file() {
                    true => Ok(Found {
                        bytes: found.len(),
                        etag: None,
                    }),
                    false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
                }
            }
            #[cfg(feature = "object-store")]
            SourceFile::Remote(remote) => remote.find(),
        }
    }

    /// Hands on the bytes of a range, a few at a time.
    pub(crate) fn read_range(
        &self,
        start: u64,
        end: u64,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            SourceFile::Path(path) => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(start))?;
                let mut from = file.take(end - start);
                let mut buffer = vec![0; (end - start).min(1 << 20) as usize];
                let mut left = end - start;
                while left > 0 {
                    let count = from.read(&mut buffer)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    each(&buffer[..count])?;
                    left -= count as u64;
                }
                Ok(())
            }
            #[cfg(feature = "object-store")]
            SourceFile::Remote(remote) => remote.read_range(start, end, each),
        }
    }
}

/// The files that a pattern means, sorted: `*` and `?` stand for anything within a name, `**` for any folders; a folder or a prefix
/// that ends with `/` means what can be read below it.
pub(crate) fn matching(pattern: &str) -> Result<Vec<String>, BulkError> {
    let none = || BulkError::NoInputs {
        pattern: pattern.to_owned(),
    };
    let mut found = match is_address(pattern) {
        false => matching_paths(pattern)?,
        #[cfg(feature = "object-store")]
        true => Remote::matching(pattern)?,
        #[cfg(not(feature = "object-store"))]
        true => {
            return Err(BulkError::NoObjectStore {
                name: pattern.to_owned(),
            });
        }
    };
    found.sort_unstable();
    found.dedup();
    match found.is_empty() {
        true => Err(none()),
        false => Ok(found),
    }
}

/// How the names of feature files end.
const ENDINGS: [&str; 13] = [
    ".npy",
    ".npz",
    ".safetensors",
    ".csv",
    ".tsv",
    ".jsonl",
    ".ndjson",
    ".csv.gz",
    ".tsv.gz",
    ".jsonl.gz",
    ".parquet",
    ".arrow",
    ".feather",
];

/// Whether a name is that of a feature file.
fn is_table(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    !file.starts_with(['.', '_']) && ENDINGS.iter().any(|ending| file.ends_with(ending))
}

/// What is read of the files of a folder: tables and archives of images or, where there are none, images.
pub(crate) fn of_folder(mut names: Vec<String>) -> Vec<String> {
    let is_packed = |name: &String| is_table(name) || is_archive(name);
    match names.iter().any(is_packed) {
        true => names.retain(is_packed),
        false => names.retain(|name| is_image(name)),
    }
    names
}

fn matching_paths(pattern: &str) -> Result<Vec<String>, BulkError> {
    let text = |path: PathBuf| std::path::absolute(&path).unwrap_or(path).display().to_string();
    if Path::new(pattern).is_file() {
        return Ok(vec![text(PathBuf::from(pattern))]);
    }
    let is_folder = Path::new(pattern).is_dir();
    let pattern = match is_folder {
        true => format!("{}/**/*", glob::Pattern::escape(pattern.trim_end_matches('/'))),
        false => pattern.to_owned(),
    };
    let wrong = |problem: String| BulkError::Pattern {
        pattern: pattern.clone(),
        problem,
    };
    let options = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..glob::MatchOptions::new()
    };
    let mut found = Vec::new();
    for path in glob::glob_with(&pattern, options).map_err(|e| wrong(e.to_string()))? {
        let path = path.map_err(|e| BulkError::Read {
            name: e.path().display().to_string(),
            source: e.into(),
        })?;
        if path.is_file() {
            found.push(text(path));
        }
    }
    Ok(match is_folder {
        true => of_folder(found),
        false => found,
    })
}

/// The bytes of a file that somebody named, on this machine.
pub(crate) fn read_local(path: &Path) -> Result<Vec<u8>, BulkError> {
    read_named(path, MOST).map_err(|source| BulkError::Read {
        name: path.display().to_string(),
        source,
    })
}
