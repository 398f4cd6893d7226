//! Where items come from: a path to images or features, or features in memory; and how they are read, block by block.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use genus_data::{DataError, ImageItem, Table, TableFile, TableOptions, TableReader, read_table_with};
use genus_files::ScratchFolder;

use crate::Error;

/// Rows of a block: 12 MB of 768 features. Larger ones leave the cache between reading and use.
const BLOCK: usize = 4096;

/// What standard input is called in messages.
const STANDARD_INPUT: &str = "the standard input";
/// What features in memory are called in messages.
const IN_MEMORY: &str = "the features in memory";

/// Where items come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A feature file, a folder of images, a manifest or list of images, or `-` for standard input: a table where its format
    /// is said, or else a list of images.
    Path(PathBuf),
    /// Features in memory.
    Table {
        /// The items.
        table: Table,
        /// The fingerprint of the encoder that made the features, if known.
        encoder: Option<String>,
    },
}

impl Source {
    /// The path, or its name in messages.
    pub fn path(&self) -> &Path {
        match self {
            Source::Path(path) => path,
            Source::Table { .. } => Path::new(IN_MEMORY),
        }
    }
}

impl Source {
    /// What messages call it.
    pub(crate) fn called(&self) -> &Path {
        match self.path() {
            path if path == Path::new("-") => Path::new(STANDARD_INPUT),
            path => path,
        }
    }

    /// Fails if the path does not exist.
    pub(crate) fn check_there(&self) -> Result<(), Error> {
        match self {
            Source::Path(path) if path != Path::new("-") => match std::fs::metadata(path) {
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                    let path = path.clone();
                    Err(DataError::Read { path, source }.into())
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Source {
    fn from(path: &P) -> Self {
        Source::Path(path.as_ref().to_owned())
    }
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        Source::Path(path)
    }
}

impl From<Table> for Source {
    fn from(table: Table) -> Self {
        Source::Table { table, encoder: None }
    }
}

/// Items whose features can be read: a feature file, that of images, or features in memory.
#[derive(Default)]
pub struct Items {
    path: PathBuf,
    /// What is said about the file.
    tables: TableOptions,
    /// A reader of what can be read once only, until somebody takes it.
    once: Mutex<Option<TableReader>>,
    in_memory: Option<TableFile>,
    /// The images that the features are of.
    images: Vec<ImageItem>,
    /// Keeps a file that was made for this run as long as it is needed.
    _temporary: Option<ScratchFolder>,
}

/// What is known about items before they are read.
pub struct Header {
    /// Features per item.
    pub dim: usize,
    /// The number of items, if the file says so.
    pub rows: Option<u64>,
    /// The fingerprint of the encoder that made the features, if known.
    pub encoder: Option<String>,
    /// Columns that somebody might have meant as features.
    pub left_out: Vec<String>,
}

impl Header {
    fn of(reader: &TableReader) -> Self {
        Self {
            dim: reader.dim(),
            rows: reader.rows(),
            encoder: reader.encoder().map(str::to_owned),
            left_out: reader.left_out().to_vec(),
        }
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = f.debug_struct("Items");
        items.field("path", &self.path).field("tables", &self.tables);
        items.field("images", &self.images.len()).finish_non_exhaustive()
    }
}

impl Items {
    pub(crate) fn file(path: &Path, tables: TableOptions) -> Self {
        Self {
            path: path.to_owned(),
            tables,
            ..Self::default()
        }
    }

    /// A table that is streamed once.
    pub(crate) fn once(reader: TableReader) -> Self {
        Self {
            path: reader.path().to_owned(),
            once: Mutex::new(Some(reader)),
            ..Self::default()
        }
    }

    pub(crate) fn made(path: PathBuf, images: Vec<ImageItem>, folder: ScratchFolder, tables: TableOptions) -> Self {
        Self {
            path,
            tables,
            images,
            _temporary: Some(folder),
            ..Self::default()
        }
    }

    pub(crate) fn in_memory(table: Table, encoder: Option<String>) -> Result<Self, Error> {
        let path = PathBuf::from(IN_MEMORY);
        if table.is_empty() {
            return Err(DataError::NoRows { path }.into());
        }
        let rows = table.features.rows();
        if table.ids.len() != rows || table.labels.len() != rows {
            return Err(Error::Ragged {
                rows,
                ids: table.ids.len(),
                labels: table.labels.len(),
            });
        }
        let in_memory = TableFile {
            table,
            class_names: None,
            encoder,
            left_out: Vec::new(),
        };
        Ok(Self {
            path,
            in_memory: Some(in_memory),
            ..Self::default()
        })
    }

    /// Whether they can be read once only.
    pub(crate) fn is_read_once(&self) -> bool {
        self.once.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The feature file, or what stands for it in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The images that the features are of; none when they came as features.
    pub fn images(&self) -> &[ImageItem] {
        &self.images
    }

    /// All items at once.
    pub fn read(&self) -> Result<TableFile, DataError> {
        match &self.in_memory {
            Some(table) => Ok(table.clone()),
            None => read_table_with(&self.path, &self.tables),
        }
    }

    /// What is known about them before they are read.
    pub fn header(&self) -> Result<Header, DataError> {
        if let Some(reader) = &*self.once.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Header::of(reader));
        }
        Ok(match &self.in_memory {
            Some(file) => Header {
                dim: file.table.features.dim(),
                rows: Some(file.table.len() as u64),
                encoder: file.encoder.clone(),
                left_out: Vec::new(),
            },
            None => Header::of(&TableReader::open_with(&self.path, &self.tables)?),
        })
    }

    pub(crate) fn for_each_block(&self, work: impl FnMut(Table) -> Result<(), Error>) -> Result<(), Error> {
        self.for_each(work)
    }

    /// Hands every block of the items to `work`, in order; of a file the next block is read meanwhile.
    pub fn for_each<E: From<Error>>(&self, mut work: impl FnMut(Table) -> Result<(), E>) -> Result<(), E> {
        if let Some(TableFile { table, .. }) = &self.in_memory {
            let rows: Vec<usize> = (0..table.len()).collect();
            return rows.chunks(BLOCK).try_for_each(|rows| work(table.select(rows)));
        }
        let once = self.once.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut reader = match once {
            Some(reader) => reader,
            None => TableReader::open_with(&self.path, &self.tables).map_err(Error::from)?,
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Result<Table, DataError>>(1);
            scope.spawn(move || {
                while let Some(block) = reader.next_block(BLOCK).transpose() {
                    let failed = block.is_err();
                    // When the receiver has gone the work has failed, and there is nothing more to read for.
                    if sender.send(block).is_err() || failed {
                        return;
                    }
                }
            });
            receiver
                .into_iter()
                .try_for_each(|block| work(block.map_err(Error::from)?))
        })
    }

    /// Finds the file of an item by its id: the image, or what the id names, from here or from where the feature file is.
    pub(crate) fn files(&self) -> impl Fn(&str) -> ItemFile {
        let images: HashMap<&str, &Path> = self.images.iter().map(|item| (&*item.id, &*item.path)).collect();
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let inside: Vec<PathBuf> = [Path::new("."), &folder]
            .into_iter()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        move |id| {
            if !images.is_empty() {
                return images
                    .get(id)
                    .map_or(ItemFile::Missing, |&path| ItemFile::Inside(path.to_owned()));
            }
            let places = [PathBuf::from(id), folder.join(id)];
            let Some(path) = places.into_iter().find(|path| path.is_file()) else {
                return ItemFile::Missing;
            };
            // Where it leads in the end: a link in the folder may have been packed with the table.
            match path.canonicalize() {
                Ok(end) if inside.iter().any(|folder| end.starts_with(folder)) => ItemFile::Inside(path),
                _ => ItemFile::Outside(path),
            }
        }
    }
}

/// The file of an item.
pub(crate) enum ItemFile {
    /// One of the images, or one that a table may name.
    Inside(PathBuf),
    /// One elsewhere, which only somebody who trusts the table would want.
    Outside(PathBuf),
    /// There is none.
    Missing,
}
