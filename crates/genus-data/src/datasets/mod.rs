//! The images of well-known data sets, in the layouts that people have on disk, with their classes in the official
//! order and those that count as new.
//!
//! ```no_run
//! use genus_data::datasets::{DatasetEntry, Images};
//!
//! let birds = DatasetEntry::find("cub200")?.open("data".as_ref(), Images::Train)?;
//! println!("{} images of {} known classes", birds.images_of(&birds.base), birds.base.len());
//! println!("{} images of {} new classes", birds.images_of(&birds.novel), birds.novel.len());
//! # Ok::<(), genus_data::DataError>(())
//! ```

mod aircraft;
mod annotation;
mod cars;
mod cifar100;
mod cub200;
mod folders;
mod herbarium19;
mod imagenet100;
mod listing;
mod mat;
mod omniglot;
mod pickle;
mod splits;

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::error::DataError;
use crate::images::ImageList;
use listing::SearchedPaths;
use splits::ClassSplit;

/// One of the data sets that Genus knows the layout of.
pub struct DatasetEntry {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is called in the paper.
    pub title: &'static str,
    /// Which files are looked for, in one or more sentences.
    pub layouts: &'static str,
    /// Which images [`Images::Paper`] takes.
    pub paper: &'static str,
    /// The folders that it usually lies in.
    folders: &'static [&'static str],
    open: Opener,
}

/// Looks for a data set in one folder: its images, or nothing when none of its layouts is there.
type Opener = fn(&'static DatasetEntry, &Path, Images, &mut SearchedPaths) -> Result<Option<ImageSet>, DataError>;

/// The data sets, in the order of the paper's tables.
pub const DATASETS: &[DatasetEntry] = &[
    cifar100::ENTRY,
    imagenet100::ENTRY,
    cub200::ENTRY,
    cars::ENTRY,
    aircraft::ENTRY,
    herbarium19::ENTRY,
    omniglot::ENTRY,
];

/// The same entries at one lasting address.
static ENTRIES: &[DatasetEntry] = DATASETS;

/// Which of a data set's images are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// The official training images.
    Train,
    /// The official test images.
    Test,
    /// All images.
    #[default]
    All,
    /// Those that the paper's tables were made of, with the oversights of its authors' loader.
    Paper,
}

impl Images {
    /// All of them, in the order of the command line's help.
    pub const ALL: [Self; 4] = [Images::Train, Images::Test, Images::All, Images::Paper];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Images::Train => "train",
            Images::Test => "test",
            Images::All => "all",
            Images::Paper => "paper",
        }
    }
}

/// The two halves of most data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Train,
    Test,
}

impl Images {
    /// The halves that are taken, when [`Images::Paper`] means the same as another choice.
    fn parts(self, paper: Images) -> &'static [Part] {
        match if self == Images::Paper { paper } else { self } {
            Images::Train => &[Part::Train],
            Images::Test => &[Part::Test],
            Images::All | Images::Paper => &[Part::Train, Part::Test],
        }
    }
}

impl Part {
    /// Its name in most layouts.
    fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Test => "test",
        }
    }

    /// How to do without it.
    fn without(self) -> &'static str {
        match self {
            Part::Train => "or take the test images alone (\"test\")",
            Part::Test => "or take the training images alone (\"train\")",
        }
    }
}

impl fmt::Display for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`Images`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{0}\" is not a choice of images; choose train, test, all or paper")]
pub struct ParseImagesError(String);

impl FromStr for Images {
    type Err = ParseImagesError;

    fn from_str(text: &str) -> Result<Self, ParseImagesError> {
        let found = Images::ALL
            .into_iter()
            .find(|images| text.eq_ignore_ascii_case(images.name()));
        found.ok_or_else(|| ParseImagesError(text.to_owned()))
    }
}

/// The images of a data set that was found on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSet {
    /// What the data set is called on the command line.
    pub name: String,
    /// What it is called in the paper.
    pub title: String,
    /// The folder that it was found in.
    pub root: PathBuf,
    /// Every class, with or without images, in the official order.
    pub classes: Vec<String>,
    /// The known classes that have images, in the order of the published list.
    pub base: Vec<String>,
    /// The new classes that have images, in the order of the published list.
    pub novel: Vec<String>,
    /// The images, each with its class as the label; listed ones that are not there are among the skipped.
    pub list: ImageList,
    /// What one should know: pieces that are missing, classes without images, oversights that are reproduced.
    pub notes: Vec<String>,
}

impl ImageSet {
    /// How many of the images are of these classes.
    pub fn images_of(&self, classes: &[String]) -> usize {
        let classes: HashSet<&str> = classes.iter().map(String::as_str).collect();
        let of_them = |label: &Option<String>| label.as_deref().is_some_and(|label| classes.contains(label));
        self.list.items.iter().filter(|item| of_them(&item.label)).count()
    }
}

impl DatasetEntry {
    /// The data set of this name, in letters of either case.
    pub fn find(name: &str) -> Result<&'static DatasetEntry, DataError> {
        let found = ENTRIES.iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| DataError::UnknownDataset {
            name: name.to_owned(),
            known: ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Looks for the data set in a folder and in the sub-folders that it usually has, and lists its images.
    ///
    /// An image that an annotation names and that is not there is skipped with a reason; only when none is there, the
    /// data set is refused. Files that do not belong to it are ignored.
    pub fn open(&self, data_root: &Path, images: Images) -> Result<ImageSet, DataError> {
        let entry = Self::find(self.name)?;
        let unreadable = |source| DataError::Read {
            path: data_root.to_owned(),
            source,
        };
        if !fs::metadata(data_root).map_err(unreadable)?.is_dir() {
            return Err(DataError::Malformed {
                path: data_root.to_owned(),
                problem: format!("not a folder; name the folder that {} was unpacked into", self.title),
            });
        }
        let mut looked = SearchedPaths::default();
        for folder in [""].iter().chain(entry.folders) {
            let root = if folder.is_empty() {
                data_root.to_owned()
            } else {
                data_root.join(folder)
            };
            // A folder that is not there is named instead of everything that could be in it.
            if !folder.is_empty() && looked.folder(root.clone()).is_none() {
                continue;
            }
            if let Some(found) = (entry.open)(entry, &root, images, &mut looked)? {
                return Ok(found);
            }
        }
        Err(DataError::NoDataset {
            title: self.title,
            root: data_root.to_owned(),
            looked: looked.paths,
        })
    }

    /// Where the lists of known and new classes are from.
    pub fn split_source(&self) -> &'static str {
        &ClassSplit::of(self.name).source
    }

    fn split(&self) -> &'static ClassSplit {
        ClassSplit::of(self.name)
    }

    /// An error about a piece that is missing.
    fn missing(&self, path: PathBuf, way_out: impl Into<String>) -> DataError {
        DataError::MissingPiece {
            title: self.title,
            path,
            way_out: way_out.into(),
        }
    }
}
