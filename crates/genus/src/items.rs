//! Where items come from: a path to images or features, or features in memory; and how they are read, block by block.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use genus_data::{DataError, ImageItem, Table, TableFile, TableReader, read_table};
use genus_files::ScratchFolder;

use crate::Error;

/// Rows of a block: 12 MB of 768 features. Larger ones leave the cache between reading and use.
const BLOCK: usize = 4096;

/// What features in memory are called in messages.
const IN_MEMORY: &str = "the features in memory";

/// Where items come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A feature file, a folder of images, a manifest or list of images, or `-` for a list on the standard input.
    Path(PathBuf),
    /// Features in memory.
    Table {
        /// The items.
        table: Table,
        /// The fingerprint of the encoder that made the features, where it is known.
        encoder: Option<String>,
    },
}

impl Source {
    /// The path, or what stands for it in messages.
    pub fn path(&self) -> &Path {
        match self {
            Source::Path(path) => path,
            Source::Table { .. } => Path::new(IN_MEMORY),
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
#[derive(Debug, Default)]
pub struct Items {
    path: PathBuf,
    in_memory: Option<TableFile>,
    /// The images that the features are of.
    images: Vec<ImageItem>,
    /// Keeps a file that was made for this run as long as it is needed.
    _temporary: Option<ScratchFolder>,
}

/// What is known of items before they are read.
pub(crate) struct Header {
    pub(crate) dim: usize,
    pub(crate) rows: Option<u64>,
    pub(crate) encoder: Option<String>,
}

impl Items {
    pub(crate) fn file(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            in_memory: None,
            images: Vec::new(),
            _temporary: None,
        }
    }

    pub(crate) fn made(path: PathBuf, images: Vec<ImageItem>, folder: ScratchFolder) -> Self {
        Self {
            path,
            in_memory: None,
            images,
            _temporary: Some(folder),
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
        };
        Ok(Self {
            path,
            in_memory: Some(in_memory),
            images: Vec::new(),
            _temporary: None,
        })
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
            None => read_table(&self.path),
        }
    }

    pub(crate) fn header(&self) -> Result<Header, DataError> {
        Ok(match &self.in_memory {
            Some(file) => Header {
                dim: file.table.features.dim(),
                rows: Some(file.table.len() as u64),
                encoder: file.encoder.clone(),
            },
            None => {
                let reader = TableReader::open(&self.path)?;
                Header {
                    dim: reader.dim(),
                    rows: reader.rows(),
                    encoder: reader.encoder().map(str::to_owned),
                }
            }
        })
    }

    /// Hands every block of the items to `work`, in order; of a file the next block is read meanwhile.
    pub(crate) fn for_each_block(&self, mut work: impl FnMut(Table) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(TableFile { table, .. }) = &self.in_memory {
            let rows: Vec<usize> = (0..table.len()).collect();
            return rows.chunks(BLOCK).try_for_each(|rows| work(table.select(rows)));
        }
        let mut reader = TableReader::open(&self.path)?;
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
            receiver.into_iter().try_for_each(|block| work(block?))
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
