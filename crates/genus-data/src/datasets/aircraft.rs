//! FGVC-Aircraft: lists of images by variant.

use std::path::{Path, PathBuf};

use super::annotation::AnnotationLines;
use super::listing::{Listing, SearchedPaths};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::DataError;
use crate::table::source::FileOrigin;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "aircraft",
    title: "FGVC-Aircraft",
    layouts: "fgvc-aircraft-2013b/data/{images/,variants.txt,images_variant_trainval.txt,images_variant_test.txt}; \
              images_variant_train.txt and images_variant_val.txt stand for trainval",
    paper: "all images; how many the paper counts cannot be had from the lists",
    folders: &[
        "fgvc-aircraft-2013b",
        "fgvc_aircraft",
        "fgvc-aircraft",
        "FGVC-Aircraft",
        "aircraft",
        "fgvc-aircraft/fgvc-aircraft-2013b",
        "aircraft/fgvc-aircraft-2013b",
    ],
    open,
};

const TRAINVAL: &str = "images_variant_trainval.txt";
const TRAIN: &str = "images_variant_train.txt";
const VAL: &str = "images_variant_val.txt";
const TEST: &str = "images_variant_test.txt";
const AGAIN: &str = "unpack fgvc-aircraft-2013b.tar.gz again";

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    for root in [root.join("data"), root.to_owned()] {
        let there = [TRAINVAL, TRAIN, VAL, TEST].map(|name| looked.file(root.join(name)).is_some());
        if there.contains(&true) {
            return annotated(entry, &root, images).map(Some);
        }
    }
    Ok(None)
}

fn annotated(entry: &'static DatasetEntry, root: &Path, images: Images) -> Result<ImageSet, DataError> {
    let mut rows = Vec::new();
    for &part in images.parts(Images::All) {
        for path in lists(entry, root, part)? {
            read(&path, &mut rows)?;
        }
    }
    let variants = root.join("variants.txt");
    let mut classes: Vec<String> = rows.iter().map(|row| row.variant.clone()).collect();
    let origin = if variants.is_file() {
        classes.clear();
        let mut lines = AnnotationLines::open(&variants)?;
        while let Some(name) = lines.next_line()? {
            classes.push(name);
        }
        FileOrigin::new(&variants)
    } else {
        FileOrigin::new(root)
    };
    // A class is known by its place among the sorted names, so that one too few would shift the others.
    classes.sort();
    classes.dedup();
    if classes.len() != entry.split().len() {
        return Err(origin.malformed(format!(
            "{} variants where FGVC-Aircraft has {}; {AGAIN}",
            classes.len(),
            entry.split().len()
        )));
    }
    let folder = root.join("images");
    if !folder.is_dir() {
        return Err(entry.missing(
            folder,
            "unpack the images of fgvc-aircraft-2013b.tar.gz beside the lists",
        ));
    }
    let mut listing = Listing::new(entry, root, classes.clone())?;
    for row in rows {
        let class = classes.binary_search(&row.variant).map_err(|_| {
            FileOrigin::new(&variants).malformed(format!(
                "\"{}\", the variant of image {}, is not in it; {AGAIN}",
                row.variant, row.image
            ))
        })?;
        listing.annotated(&format!("images/{}.jpg", row.image), class);
    }
    if images == Images::Paper {
        listing.note("all images are taken: the 4.4k of the paper's table are those of no combination of the lists");
    }
    listing.finish()
}

/// The lists of a half; those for training and validation may be one or two.
fn lists(entry: &'static DatasetEntry, root: &Path, part: Part) -> Result<Vec<PathBuf>, DataError> {
    let choices: &[&[&str]] = match part {
        Part::Train => &[&[TRAINVAL], &[TRAIN, VAL]],
        Part::Test => &[&[TEST]],
    };
    for choice in choices {
        let paths: Vec<PathBuf> = choice.iter().map(|name| root.join(name)).collect();
        if paths.iter().all(|path| path.is_file()) {
            return Ok(paths);
        }
    }
    let (name, further) = match part {
        Part::Train if root.join(TRAIN).is_file() => (VAL, format!(" (or {TRAINVAL})")),
        Part::Train if root.join(VAL).is_file() => (TRAIN, format!(" (or {TRAINVAL})")),
        Part::Train => (TRAINVAL, format!(" (or {TRAIN} and {VAL})")),
        Part::Test => (TEST, String::new()),
    };
    Err(entry.missing(root.join(name), format!("{AGAIN}{further}, {}", part.without())))
}

/// A line of a list.
struct VariantRow {
    image: String,
    variant: String,
}

fn read(path: &Path, rows: &mut Vec<VariantRow>) -> Result<(), DataError> {
    let mut lines = AnnotationLines::open(path)?;
    while let Some(line) = lines.next_line()? {
        let Some((image, variant)) = line.split_once(' ') else {
            return Err(lines.wrong(format!("no image and variant in \"{line}\"; {AGAIN}")));
        };
        rows.push(VariantRow {
            image: image.to_owned(),
            variant: variant.trim().to_owned(),
        });
    }
    Ok(())
}
