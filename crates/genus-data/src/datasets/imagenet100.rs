//! ImageNet-100: a folder a class, either all of ImageNet's or the hundred alone.

use std::path::{Path, PathBuf};

use super::folders::{ClassFolder, class_folders};
use super::listing::{Listing, SearchedPaths, some};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::DataError;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "imagenet100",
    title: "ImageNet-100",
    layouts: "{train,val}/<wnid>/*.JPEG with all classes of ImageNet, of which the published hundred are taken, or with \
              exactly 100 folders, which are all taken",
    paper: "the training images",
    folders: &[
        "imagenet100",
        "imagenet_100",
        "imagenet-100",
        "ImageNet-100",
        "ImageNet100",
        "imagenet_100_gcd",
        "imagenet",
        "imagenet-img",
        "ImageNet",
        "imagenet-1k",
        "ILSVRC2012",
        "ILSVRC",
        "ILSVRC/Data/CLS-LOC",
    ],
    open,
};

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let official = &entry.split().classes;
    let (mut train, mut val) = (Vec::new(), Vec::new());
    for (part, found) in [(Part::Train, &mut train), (Part::Test, &mut val)] {
        if let Some(path) = looked.folder(folder(root, part)) {
            *found = class_folders(&path)?;
            found.retain(|folder| is_wnid(&folder.name));
        }
    }
    // The test images may be there alone.
    let all = if train.is_empty() { &val } else { &train };
    if all.is_empty() {
        return Ok(None);
    }
    let hundred = all.len() == official.len();
    let classes: Vec<String> = if hundred {
        all.iter().map(|folder| folder.name.clone()).collect()
    } else {
        official.clone()
    };
    let mut listing = Listing::new(entry, root, classes.clone())?;
    if hundred && classes != *official {
        listing.note("the 100 classes here are not the published hundred, so that results cannot be compared");
    }
    for &part in images.parts(Images::Train) {
        let folders: &[ClassFolder] = if part == Part::Train { &train } else { &val };
        let path = folder(root, part);
        if folders.is_empty() {
            let way_out = if path.is_dir() {
                "the images lie there without a folder a class (n01440764 and so on); sort them into folders"
            } else {
                "unpack it with a folder a class (n01440764 and so on)"
            };
            return Err(entry.missing(path.join("<wnid>"), format!("{way_out}, {}", part.without())));
        }
        let mut missing = Vec::new();
        for (class, name) in classes.iter().enumerate() {
            match folders.iter().find(|folder| folder.name == *name) {
                Some(folder) => listing.folder(&folder.path, &format!("{}/{name}", part_name(part)), class)?,
                None => missing.push(name),
            }
        }
        if let Some(&first) = missing.first() {
            let way_out = format!(
                "{} of the {} folders are missing there ({}); add them, or keep exactly 100 folders to use those",
                missing.len(),
                classes.len(),
                some(&missing)
            );
            return Err(entry.missing(path.join(first), way_out));
        }
    }
    listing.finish().map(Some)
}

fn folder(root: &Path, part: Part) -> PathBuf {
    root.join(part_name(part))
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Train => "train",
        Part::Test => "val",
    }
}

/// Whether a folder is called like a class of ImageNet: `n` and eight digits.
fn is_wnid(name: &str) -> bool {
    name.len() == 9 && name.starts_with('n') && name[1..].bytes().all(|b| b.is_ascii_digit())
}
