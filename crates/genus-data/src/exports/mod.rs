//! What was sorted, in the files that other programs import as they are.
//!
//! Label Studio and FiftyOne get files that point to the images where they are; Hugging Face `datasets` gets a table
//! beside the images of a sorted folder.

mod fiftyone;
mod imagefolder;
mod label_studio;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::error::DataError;
use crate::sorting::{SortedItem, Sorting};
use genus_files::AtomicFile;
pub(crate) use imagefolder::{CARD, METADATA};

/// A program that what was sorted is exported for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Export {
    /// Tasks with predictions, and the labelling configuration of a project for them.
    LabelStudio,
    /// A data set of the type `FiftyOneImageClassificationDataset`.
    FiftyOne,
    /// `metadata.csv` and a data card in a sorted folder, for Hugging Face `datasets`.
    ImageFolder,
}

impl Export {
    /// All of them.
    pub const ALL: [Export; 3] = [Export::LabelStudio, Export::FiftyOne, Export::ImageFolder];
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Export::LabelStudio => "label-studio",
            Export::FiftyOne => "fiftyone",
            Export::ImageFolder => "imagefolder",
        })
    }
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Export::ALL.into_iter().find(|export| export.to_string() == text);
        found.ok_or_else(|| "one of label-studio, fiftyone, imagefolder".to_owned())
    }
}

/// Why something cannot be exported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A path that the format has no way to say.
    #[error(
        "item \"{id}\": the name of {} is not UTF-8, which the export {export} needs",
        path.display()
    )]
    NotText {
        /// The item.
        id: String,
        /// Its file.
        path: PathBuf,
        /// The export.
        export: Export,
    },
    /// A file of the user's where a table of ours would go.
    #[error("{} already exists with other contents", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// A file that cannot be written or read.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Files of an export, made but not yet written.
#[derive(Debug)]
pub struct ExportFiles {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// What to do with them, in words.
    next: String,
}

impl ExportFiles {
    /// Makes the tasks of Label Studio, which are to go into `folder`. `made_by` is what made the predictions.
    pub fn label_studio(folder: &Path, items: &[SortedItem], made_by: &str) -> Result<Self, ExportError> {
        label_studio::export(folder, items, made_by)
    }

    /// Makes a data set of FiftyOne, which is to go into `folder`.
    pub fn fiftyone(folder: &Path, items: &[SortedItem]) -> Result<Self, ExportError> {
        fiftyone::export(folder, items)
    }

    /// Makes the table of a sorted folder. Files of these names that are there already must say the same.
    pub fn imagefolder(sorting: &Sorting, items: &[SortedItem]) -> Result<Self, ExportError> {
        imagefolder::export(sorting, items)
    }

    /// Writes the files.
    pub fn write(&self) -> Result<(), DataError> {
        for (path, bytes) in &self.files {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(|e| DataError::write(folder.display(), e))?;
            }
            let mut file = AtomicFile::create_own(path)?;
            file.append(bytes)?;
            file.commit()?;
        }
        Ok(())
    }

    /// How the files are imported, in words.
    pub fn next(&self) -> &str {
        &self.next
    }
}

/// The absolute path of an item's file as text.
fn absolute<'a>(item: &SortedItem, export: Export, path: &'a mut PathBuf) -> Result<&'a str, ExportError> {
    *path = std::path::absolute(&item.path).map_err(|e| DataError::Read {
        path: item.path.clone(),
        source: e,
    })?;
    path.to_str().ok_or_else(|| ExportError::NotText {
        id: item.id.clone(),
        path: item.path.clone(),
        export,
    })
}

/// The names of all categories in their order.
fn categories(items: &[SortedItem]) -> Vec<&str> {
    let all: std::collections::BTreeSet<&str> = items.iter().map(|item| item.category.as_str()).collect();
    all.into_iter().collect()
}

/// A number as JSON has it; what is not finite is nothing.
fn number(value: f32) -> serde_json::Value {
    // By way of its shortest text, so that 0.1 is 0.1 in double precision too.
    let value = value.to_string().parse().ok().and_then(serde_json::Number::from_f64);
    value.map_or(serde_json::Value::Null, serde_json::Value::Number)
}
