//! What can go wrong with a collection.

use std::io;
use std::path::{Path, PathBuf};

use genus_core::{DiscoverError, FeatureError, TaskError, TaxonomyError};
use genus_data::{DataError, ExportError, SortError};
use genus_files::FileError;
use rusqlite::ErrorCode;
use thiserror::Error;

use crate::rules::Refusal;

/// What can go wrong with a collection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// What was said cannot be done.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no collection.
    #[error("{} is no collection", path.display())]
    NoCollection {
        /// The folder.
        path: PathBuf,
    },
    /// There is one already.
    #[error("{} is already a collection", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A later release made it.
    #[error(
        "{} was made by a newer release of Genus (its schema is {found}, this one knows {known}); use that release",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The latest that is known.
        known: i64,
    },
    /// The database is damaged.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// The disk is full.
    #[error("cannot write {}: the disk is full; nothing was changed", path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// It may not be written.
    #[error("cannot write {}: it is read-only", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// Another process is writing and says nothing of itself.
    #[error("another process is writing {}", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The database cannot do something for any other reason.
    #[error("{}: {problem}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What it said.
        problem: String,
    },
    /// There is no group of a name or number.
    #[error("there is no group \"{group}\"{}", nearest.as_ref().map_or(String::new(), |name| format!("; did you mean \"{name}\"?")))]
    NoSuchGroup {
        /// What was asked for.
        group: String,
        /// The name that is most like it.
        nearest: Option<String>,
    },
    /// There is no item of a name or number.
    #[error("there is no item \"{item}\"")]
    NoSuchItem {
        /// What was asked for.
        item: String,
    },
    /// Several items are called the same.
    #[error("{count} items are called \"{item}\"; say which by its number: {}", numbers.join(", "))]
    AmbiguousItem {
        /// What was asked for.
        item: String,
        /// How many.
        count: usize,
        /// The numbers of the first of them.
        numbers: Vec<String>,
    },
    /// Features of another width than those of the collection.
    #[error("{} has {found} features an item, and the collection has {dim}", source_path.display())]
    Dim {
        /// The items.
        source_path: PathBuf,
        /// Theirs.
        found: usize,
        /// The collection's.
        dim: usize,
    },
    /// The name of an item that came without a file leads out of the current folder.
    #[error(
        "the item \"{item}\" names {}, which is not below the current folder; whoever added it may have chosen that",
        path.display()
    )]
    FileOutside {
        /// The item.
        item: String,
        /// Where its name leads.
        path: PathBuf,
    },
    /// There is nothing to sort.
    #[error("there is nothing in the collection to sort; add items first")]
    Nothing,
    /// A correction that names nothing of the collection.
    #[error("{}: {problem}", path.display())]
    Corrections {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The pipeline failed.
    #[error(transparent)]
    Genus(Box<genus::Error>),
    /// Items cannot be read or results not written.
    #[error(transparent)]
    Data(Box<DataError>),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Files cannot be sorted into folders.
    #[error(transparent)]
    Sort(Box<SortError>),
    /// An export.
    #[error(transparent)]
    Export(Box<ExportError>),
    /// Discovery.
    #[error(transparent)]
    Discover(Box<DiscoverError>),
    /// Features.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Features.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// A taxonomy.
    #[error(transparent)]
    Taxonomy(#[from] TaxonomyError),
    /// The operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

// Boxed, so that what goes well does not carry room for all that can go wrong.
macro_rules! boxed {
    ($($name:ident: $error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$name(Box::new(error))
            }
        })*
    };
}

boxed!(Genus: genus::Error, Data: DataError, Sort: SortError, Export: ExportError, Discover: DiscoverError);

impl Error {
    /// What a database said, as what it means.
    pub(crate) fn database(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged { path, problem },
            Some(ErrorCode::DiskFull) => Error::Full { path },
            Some(ErrorCode::ReadOnly) => Error::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
            _ => match error {
                // A cell that is not what it can be.
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::FromSqlConversionFailure(..) => Error::Damaged { path, problem },
                _ => Error::Database { path, problem },
            },
        }
    }
}
