//! Layouts in which every class has a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::listing::Listing;
use crate::error::DataError;
use crate::images::{is_hidden, readable, walk};

/// A folder with its name as text.
pub(super) struct ClassFolder {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// The folders in a folder, sorted by the bytes of their names; what is hidden is left out.
pub(super) fn class_folders(path: &Path) -> Result<Vec<ClassFolder>, DataError> {
    let failed = |source| DataError::Read {
        path: path.to_owned(),
        source,
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !is_hidden(&name) && entry.path().is_dir() {
            folders.push((name, entry.path()));
        }
    }
    folders.sort_by(|a, b| a.0.as_encoded_bytes().cmp(b.0.as_encoded_bytes()));
    let folder = |(name, path): (_, PathBuf)| ClassFolder {
        name: readable(std::ffi::OsString::as_os_str(&name)),
        path,
    };
    Ok(folders.into_iter().map(folder).collect())
}

impl Listing {
    /// Adds all images of a class's folder; `prefix` is the folder's path below the root with `/`.
    pub(super) fn folder(&mut self, folder: &Path, prefix: &str, class: usize) -> Result<(), DataError> {
        let list = walk(folder)?;
        for item in list.items {
            self.found(format!("{prefix}/{}", item.id), item.path, class);
        }
        self.skip(list.skipped);
        Ok(())
    }
}

/// A name without what systems and people change in it: only letters and digits, all of them small.
pub(super) fn bare(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
