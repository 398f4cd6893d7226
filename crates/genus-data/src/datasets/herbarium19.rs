//! Herbarium-19: a folder a class, in the small version of the 2019 challenge.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::folders::class_folders;
use super::listing::{Listing, SearchedPaths};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::DataError;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "herbarium19",
    title: "Herbarium-19",
    layouts: "{small-train,small-validation}/<class>/*.jpg with 683 classes",
    paper: "all images; the paper has no table of it",
    folders: &[
        "herbarium_19",
        "herbarium",
        "herbarium19",
        "herbarium-19",
        "Herbarium-19",
        "herbarium-2019-fgvc6",
    ],
    open,
};

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let mut halves = Vec::new();
    for part in [Part::Train, Part::Test] {
        if let Some(path) = looked.folder(folder(root, part)) {
            halves.push((part, class_folders(&path)?));
        }
    }
    if halves.is_empty() {
        return Ok(None);
    }
    // A class is known by its place among the sorted names, so that one too few would shift the others.
    let names: BTreeSet<&str> = halves
        .iter()
        .flat_map(|(_, folders)| folders)
        .map(|folder| folder.name.as_str())
        .collect();
    let classes: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if classes.len() != entry.split().len() {
        return Err(DataError::Malformed {
            path: root.to_owned(),
            problem: format!(
                "small-train and small-validation have {} folders of classes where Herbarium-19 has {}; remove those that \
                 do not belong to it, or unpack it again",
                classes.len(),
                entry.split().len()
            ),
        });
    }
    let mut listing = Listing::new(entry, root, classes.clone())?;
    for &part in images.parts(Images::All) {
        let Some((_, folders)) = halves.iter().find(|half| half.0 == part) else {
            let way_out = format!(
                "unpack the training and validation images of the challenge again, {}",
                part.without()
            );
            return Err(entry.missing(folder(root, part), way_out));
        };
        for class_folder in folders {
            if let Ok(class) = classes.binary_search(&class_folder.name) {
                listing.folder(
                    &class_folder.path,
                    &format!("{}/{}", half_name(part), class_folder.name),
                    class,
                )?;
            }
        }
    }
    if images == Images::Paper {
        listing.note("all images are taken: the paper has no table of Herbarium-19");
    }
    listing.finish().map(Some)
}

fn folder(root: &Path, part: Part) -> PathBuf {
    root.join(half_name(part))
}

fn half_name(part: Part) -> &'static str {
    match part {
        Part::Train => "small-train",
        Part::Test => "small-validation",
    }
}
