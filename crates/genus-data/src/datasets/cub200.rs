//! CUB-200-2011: with its lists of images, or only as a folder a class.

use std::collections::BTreeMap;
use std::path::Path;

use super::annotation::AnnotationLines;
use super::folders::{ClassFolder, class_folders};
use super::listing::{Listing, SearchedPaths};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::DataError;
use crate::table::source::FileOrigin;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "cub200",
    title: "CUB-200",
    layouts: "CUB_200_2011/{images.txt,image_class_labels.txt,train_test_split.txt,classes.txt,images/}; or only the \
              folders, 001.Black_footed_Albatross/*.jpg and so on, also in train/ and test/",
    paper: "the training images by train_test_split.txt",
    folders: &[
        "CUB_200_2011",
        "CUB-200-2011",
        "cub200",
        "cub",
        "CUB",
        "cub_200_2011",
        "CUB_200_2011/CUB_200_2011",
    ],
    open,
};

const IMAGES: &str = "images.txt";
const LABELS: &str = "image_class_labels.txt";
const SPLIT: &str = "train_test_split.txt";
const CLASSES: &str = "classes.txt";
const AGAIN: &str = "unpack CUB_200_2011.tgz again";

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    // A single one of these could belong to something else.
    let lists = [IMAGES, LABELS, SPLIT, CLASSES].map(|name| looked.file(root.join(name)).is_some());
    if lists.into_iter().filter(|&there| there).count() >= 2 {
        return annotated(entry, root, images).map(Some);
    }
    looked.folder(root.join("001.Black_footed_Albatross"));
    for (folder, prefix) in [
        (Some(root.to_owned()), ""),
        (looked.folder(root.join("images")), "images/"),
    ] {
        let Some(folder) = folder else { continue };
        let folders: Vec<(usize, ClassFolder)> = class_folders(&folder)?
            .into_iter()
            .filter_map(|folder| Some((number(&folder.name)?, folder)))
            .collect();
        if !folders.is_empty() {
            return in_folders(entry, root, folders, prefix, images).map(Some);
        }
    }
    in_halves(entry, root, images, looked)
}

/// Folders of classes in `train/` and `test/`.
fn in_halves(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let mut halves: BTreeMap<&str, Vec<(usize, ClassFolder)>> = BTreeMap::new();
    for part in [Part::Train, Part::Test] {
        if let Some(path) = looked.folder(root.join(part.name())) {
            let folders = class_folders(&path)?.into_iter();
            let numbered = folders.filter_map(|folder| Some((number(&folder.name)?, folder)));
            halves.insert(part.name(), numbered.collect());
        }
    }
    if halves.values().all(Vec::is_empty) {
        return Ok(None);
    }
    let mut listing = Listing::new(entry, root, names_of(entry, halves.values().flatten())?)?;
    for &part in images.parts(Images::Train) {
        let Some(folders) = halves.get(part.name()) else {
            let problem = format!("put a folder a class into it, {}", part.without());
            return Err(entry.missing(root.join(part.name()), problem));
        };
        for (number, folder) in folders {
            listing.folder(&folder.path, &format!("{}/{}", part.name(), folder.name), number - 1)?;
        }
    }
    listing.finish().map(Some)
}

/// The names of all classes; one without a folder is known by its number alone.
fn names_of<'a>(
    entry: &'static DatasetEntry,
    folders: impl Iterator<Item = &'a (usize, ClassFolder)>,
) -> Result<Vec<String>, DataError> {
    let mut classes: Vec<String> = (1..=entry.split().len()).map(|n| format!("{n:03}")).collect();
    for (number, folder) in folders {
        if let Some(name) = classes.get_mut(number - 1) {
            if name.contains('.') && *name != folder.name {
                return Err(FileOrigin::new(&folder.path).malformed(format!(
                    "two folders have the number {number:03}: \"{name}\" and this; remove one"
                )));
            }
            name.clone_from(&folder.name);
        }
    }
    Ok(classes)
}

fn annotated(entry: &'static DatasetEntry, root: &Path, images: Images) -> Result<ImageSet, DataError> {
    let need = |name: &str, way_out: &str| {
        let path = root.join(name);
        if path.exists() {
            Ok(path)
        } else {
            Err(entry.missing(path, way_out))
        }
    };
    let classes = classes(entry, &need(CLASSES, AGAIN)?)?;
    let paths = numbered(&need(IMAGES, AGAIN)?)?;
    let labels_path = need(LABELS, AGAIN)?;
    let labels = numbered(&labels_path)?;
    need("images", "unpack the images of CUB_200_2011.tgz beside the lists")?;
    let in_part = match images {
        Images::All => None,
        _ => Some(numbered(&need(
            SPLIT,
            "unpack CUB_200_2011.tgz again, or take all images (\"all\")",
        )?)?),
    };
    let wanted = if images == Images::Test { "0" } else { "1" };
    let mut listing = Listing::new(entry, root, classes)?;
    let origin = FileOrigin::new(&labels_path);
    for (number, path) in &paths {
        let label = labels
            .get(number)
            .ok_or_else(|| origin.malformed(format!("no class for image {number} ({path}); {AGAIN}")))?;
        let class: Option<usize> = label
            .parse()
            .ok()
            .filter(|class| (1..=entry.split().len()).contains(class));
        let class = class.ok_or_else(|| {
            origin.malformed(format!(
                "image {number} has the class {label}, but there are 1 to 200; {AGAIN}"
            ))
        })?;
        match in_part.as_ref().map(|parts| parts.get(number).map(String::as_str)) {
            None => {}
            Some(Some(part @ ("0" | "1"))) if part == wanted => {}
            Some(Some("0" | "1")) => continue,
            Some(_) => {
                let origin = FileOrigin::new(&root.join(SPLIT));
                return Err(origin.malformed(format!("image {number} has neither 0 nor 1; {AGAIN}")));
            }
        }
        listing.annotated(&format!("images/{path}"), class - 1);
    }
    listing.finish()
}

/// The names of the classes by their numbers, which must be 1 to 200.
fn classes(entry: &'static DatasetEntry, path: &Path) -> Result<Vec<String>, DataError> {
    let names = numbered(path)?;
    let count = entry.split().len() as u64;
    if !names.keys().copied().eq(1..=count) {
        let problem = format!("the classes are not numbered from 1 to {count}; {AGAIN}");
        return Err(FileOrigin::new(path).malformed(problem));
    }
    Ok(names.into_values().collect())
}

/// A file of numbers, each with something and different from the others.
fn numbered(path: &Path) -> Result<BTreeMap<u64, String>, DataError> {
    let mut lines = AnnotationLines::open(path)?;
    let mut found = BTreeMap::new();
    while let Some((number, rest)) = lines.next_numbered()? {
        if rest.is_empty() {
            return Err(lines.wrong(format!("nothing follows the number {number}; {AGAIN}")));
        }
        if found.insert(number, rest).is_some() {
            return Err(lines.wrong(format!("the number {number} is there for the second time; {AGAIN}")));
        }
    }
    Ok(found)
}

fn in_folders(
    entry: &'static DatasetEntry,
    root: &Path,
    folders: Vec<(usize, ClassFolder)>,
    prefix: &str,
    images: Images,
) -> Result<ImageSet, DataError> {
    if images == Images::Test {
        return Err(entry.missing(
            root.join(SPLIT),
            "without it nobody knows which images are for the test; unpack CUB_200_2011.tgz, or take all images (\"all\")",
        ));
    }
    let mut listing = Listing::new(entry, root, names_of(entry, folders.iter())?)?;
    for (number, folder) in folders {
        listing.folder(&folder.path, &format!("{prefix}{}", folder.name), number - 1)?;
    }
    if images != Images::All {
        listing.note(format!(
            "{SPLIT} is not there, so that all images of the folders are taken and not only those for training"
        ));
    }
    listing.finish()
}

/// The number of a class's folder, as in `001.Black_footed_Albatross`.
fn number(name: &str) -> Option<usize> {
    let (number, rest) = name.split_once('.')?;
    let digits = number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit());
    let number = number.parse().ok().filter(|number| (1..=200).contains(number))?;
    (digits && !rest.is_empty()).then_some(number)
}
