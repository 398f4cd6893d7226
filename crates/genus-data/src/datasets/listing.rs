//! What the layouts share: looking for files, and a list of images that grows class by class.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use genus_files::RawPixels;

use super::{DatasetEntry, ImageSet};
use crate::error::DataError;
use crate::images::{ImageItem, ImageList};

/// How many names a note lists before it says how many more there are.
const NAMED: usize = 5;

/// What was looked for, so that a failure can say it.
#[derive(Default)]
pub(super) struct SearchedPaths {
    pub(super) paths: Vec<PathBuf>,
}

impl SearchedPaths {
    /// The path, when it is a file.
    pub(super) fn file(&mut self, path: PathBuf) -> Option<PathBuf> {
        self.remember(&path);
        path.is_file().then_some(path)
    }

    /// The path, when it is a folder.
    pub(super) fn folder(&mut self, path: PathBuf) -> Option<PathBuf> {
        self.remember(&path);
        path.is_dir().then_some(path)
    }

    fn remember(&mut self, path: &Path) {
        if !self.paths.iter().any(|known| known == path) {
            self.paths.push(path.to_owned());
        }
    }
}

/// A data set's list of images in the making.
pub(super) struct Listing {
    entry: &'static DatasetEntry,
    root: PathBuf,
    classes: Vec<String>,
    /// How many images each class has.
    counts: Vec<usize>,
    ids: HashSet<String>,
    list: ImageList,
    notes: Vec<String>,
}

impl Listing {
    /// Begins a list; the classes, in the official order, must have names of their own.
    pub(super) fn new(entry: &'static DatasetEntry, root: &Path, classes: Vec<String>) -> Result<Self, DataError> {
        let mut names = HashSet::new();
        if let Some(twice) = classes.iter().find(|name| !names.insert(name.as_str())) {
            return Err(DataError::Malformed {
                path: root.to_owned(),
                problem: format!(
                    "two classes of {} are called \"{twice}\"; unpack the data set again",
                    entry.title
                ),
            });
        }
        Ok(Self {
            entry,
            root: root.to_owned(),
            counts: vec![0; classes.len()],
            classes,
            ids: HashSet::new(),
            list: ImageList::default(),
            notes: Vec::new(),
        })
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds an image that an annotation names, by its path below the root with `/` between the folders.
    ///
    /// One that is not there, or was there before, or would lie outside the root, is skipped.
    pub(super) fn annotated(&mut self, name: &str, class: usize) {
        let path = self.root.join(name);
        let inside = Path::new(name)
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        let reason = if !inside {
            Some("the annotations name a file outside of the data set".to_owned())
        } else if self.ids.contains(name) {
            Some("the annotations list it twice; the first counts".to_owned())
        } else {
            match fs::metadata(&path) {
                Ok(found) if found.is_file() => None,
                Ok(_) => Some("not a regular file".to_owned()),
                Err(e) => Some(format!("the annotations list it, but it cannot be read ({e})")),
            }
        };
        match reason {
            Some(reason) => self.list.skipped.push((path, reason)),
            None => self.push(name.to_owned(), path, class, None),
        }
    }

    /// Adds an image that was found, under an id that may get a `%` when another has it.
    pub(super) fn found(&mut self, mut id: String, path: PathBuf, class: usize) {
        while self.ids.contains(&id) {
            id.push('%');
        }
        self.push(id, path, class, None);
    }

    /// Adds an image that lies inside a file.
    pub(super) fn inside(&mut self, id: String, path: &Path, class: usize, pixels: RawPixels) {
        self.push(id, path.to_owned(), class, Some(pixels));
    }

    pub(super) fn skip(&mut self, skipped: Vec<(PathBuf, String)>) {
        self.list.skipped.extend(skipped);
    }

    fn push(&mut self, id: String, path: PathBuf, class: usize, pixels: Option<RawPixels>) {
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
        self.ids.insert(id.clone());
        self.list.items.push(ImageItem {
            id,
            path,
            label: self.classes.get(class).cloned(),
            pixels,
        });
    }

    /// Ends the list with the data set's own split.
    pub(super) fn finish(self) -> Result<ImageSet, DataError> {
        let split = self.entry.split();
        self.finish_with(&split.known, &split.new)
    }

    /// Ends the list; the classes that count as known and as new are given by their places.
    pub(super) fn finish_with(mut self, known: &[usize], new: &[usize]) -> Result<ImageSet, DataError> {
        if self.list.items.is_empty() {
            return Err(self.nothing());
        }
        let with_images = |places: &[usize]| -> Vec<String> {
            let there = |&&class: &&usize| self.counts.get(class).is_some_and(|&count| count > 0);
            let name = |&class: &usize| self.classes.get(class).cloned();
            places.iter().filter(there).filter_map(name).collect()
        };
        let (base, novel) = (with_images(known), with_images(new));
        let empty: Vec<&str> = self
            .classes
            .iter()
            .zip(&self.counts)
            .filter(|class| *class.1 == 0)
            .map(|class| class.0.as_str())
            .collect();
        if !empty.is_empty() {
            let note = format!(
                "{} of {} classes have no images here and are left out: {}",
                empty.len(),
                self.classes.len(),
                some(&empty)
            );
            self.notes.push(note);
        }
        if let Some((path, reason)) = self.list.skipped.first() {
            let note = match self.list.skipped.len() {
                1 => format!("1 file is skipped, {}: {reason}", path.display()),
                count => format!("{count} files are skipped, as {}: {reason}", path.display()),
            };
            self.notes.push(note);
        }
        Ok(ImageSet {
            name: self.entry.name.to_owned(),
            title: self.entry.title.to_owned(),
            root: self.root,
            classes: self.classes,
            base,
            novel,
            list: self.list,
            notes: self.notes,
        })
    }

    fn nothing(&self) -> DataError {
        let problem = match self.list.skipped.first() {
            Some((path, reason)) => format!(
                "none of the {} images of {} can be used; {}: {reason}; unpack the images into this folder",
                self.list.skipped.len(),
                self.entry.title,
                path.display()
            ),
            None => format!(
                "{} is here, but without a single image of the kind asked for; unpack the images into this folder",
                self.entry.title
            ),
        };
        DataError::Malformed {
            path: self.root.clone(),
            problem,
        }
    }
}

/// The first few names, and how many more there are.
pub(super) fn some<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = names
        .iter()
        .take(NAMED)
        .map(AsRef::as_ref)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > NAMED {
        text += &format!(" and {} more", names.len() - NAMED);
    }
    text
}
