//! CIFAR-100: the Python version, the binary version, or images in a folder a class.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use genus_files::RawPixels;

use super::annotation::AnnotationLines;
use super::folders::{bare, class_folders};
use super::listing::{Listing, SearchedPaths, some};
use super::pickle::PickleDict;
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::{DataError, FilePosition};
use crate::table::source::FileOrigin;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "cifar100",
    title: "CIFAR-100",
    layouts: "cifar-100-python/{train,test,meta}; cifar-100-binary/{train.bin,test.bin,fine_label_names.txt}; or a \
              folder a class, {train,test}/<class>/*.png",
    paper: "the training images",
    folders: &[
        "cifar-100-python",
        "cifar-100-binary",
        "cifar100",
        "cifar-100",
        "CIFAR-100",
        "CIFAR100",
        "cifar100/cifar-100-python",
        "cifar-100/cifar-100-python",
        "cifar100/cifar-100-binary",
        "cifar-100/cifar-100-binary",
    ],
    open,
};

const SIDE: u32 = 32;
/// The bytes of an image: three planes.
const PIXELS: usize = 3 * 32 * 32;
/// The 20 coarse classes are not used, but a number beyond them betrays a file of another kind.
const COARSE: u8 = 20;

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let parts = images.parts(Images::Train);
    let mut there = |name: &str| looked.file(root.join(name)).is_some();
    if [there("train"), there("test")].contains(&true) {
        return pickles(entry, root, parts).map(Some);
    }
    if [there("train.bin"), there("test.bin")].contains(&true) {
        return binaries(entry, root, parts).map(Some);
    }
    folders(entry, root, parts, looked)
}

fn pickles(entry: &'static DatasetEntry, root: &Path, parts: &[Part]) -> Result<ImageSet, DataError> {
    let meta = root.join("meta");
    let names = if meta.is_file() {
        Some(PickleDict::read(&meta)?.texts("fine_label_names")?)
    } else {
        None
    };
    let mut listing = begin(entry, root, names, &meta)?;
    for &part in parts {
        let path = root.join(part.name());
        if !path.is_file() {
            return Err(entry.missing(
                path,
                format!("unpack cifar-100-python.tar.gz again, {}", part.without()),
            ));
        }
        let (origin, pickle) = (FileOrigin::new(&path), PickleDict::read(&path)?);
        let (labels, data) = (pickle.numbers("fine_labels")?, pickle.bytes("data")?);
        if data.columns != PIXELS {
            return Err(origin.malformed(format!(
                "its images have {} bytes where CIFAR has {PIXELS}",
                data.columns
            )));
        }
        if data.rows != labels.len() {
            return Err(origin.malformed(format!("it has {} images and {} labels", data.rows, labels.len())));
        }
        for (row, label) in labels.into_iter().enumerate() {
            let class = usize::try_from(label).ok().filter(|&class| class < entry.split().len());
            let class = class.ok_or_else(|| outside(&origin, row, label))?;
            add(
                &mut listing,
                &path,
                part,
                row,
                class,
                data.offset + (row * PIXELS) as u64,
            );
        }
    }
    listing.finish()
}

fn binaries(entry: &'static DatasetEntry, root: &Path, parts: &[Part]) -> Result<ImageSet, DataError> {
    let names_path = root.join("fine_label_names.txt");
    let names = if names_path.is_file() {
        let (mut lines, mut names) = (AnnotationLines::open(&names_path)?, Vec::new());
        while let Some(name) = lines.next_line()? {
            names.push(name);
        }
        Some(names)
    } else {
        None
    };
    let mut listing = begin(entry, root, names, &names_path)?;
    for &part in parts {
        let path = root.join(part.name()).with_extension("bin");
        if !path.is_file() {
            return Err(entry.missing(
                path,
                format!("unpack cifar-100-binary.tar.gz again, {}", part.without()),
            ));
        }
        let origin = FileOrigin::new(&path);
        let file = File::open(&path).map_err(|e| origin.io(e))?;
        let length = file.metadata().map_err(|e| origin.io(e))?.len();
        const RECORD: usize = 2 + PIXELS;
        if length == 0 || !length.is_multiple_of(RECORD as u64) {
            return Err(origin.malformed(format!(
                "its {length} bytes are no whole number of images of {RECORD} bytes; copy or unpack it again"
            )));
        }
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut record = [0; RECORD];
        for row in 0..(length / RECORD as u64) as usize {
            reader.read_exact(&mut record).map_err(|e| origin.io(e))?;
            let (coarse, class) = (record[0], usize::from(record[1]));
            if coarse >= COARSE || class >= entry.split().len() {
                return Err(outside(&origin, row, if coarse >= COARSE { coarse } else { record[1] }));
            }
            add(&mut listing, &path, part, row, class, (row * RECORD + 2) as u64);
        }
    }
    listing.finish()
}

fn folders(
    entry: &'static DatasetEntry,
    root: &Path,
    parts: &[Part],
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let official = &entry.split().classes;
    let class_of = |name: &str| official.iter().position(|class| bare(class) == bare(name));
    let mut found = Vec::new();
    for part in [Part::Train, Part::Test] {
        let folders = match looked.folder(root.join(part.name())) {
            Some(path) => class_folders(&path)?,
            None => Vec::new(),
        };
        found.push((part, folders));
    }
    if !found
        .iter()
        .flat_map(|(_, folders)| folders)
        .any(|folder| class_of(&folder.name).is_some())
    {
        return Ok(None);
    }
    let mut listing = Listing::new(entry, root, official.clone())?;
    let mut strange = Vec::new();
    for (part, folders) in found.into_iter().filter(|(part, _)| parts.contains(part)) {
        if folders.is_empty() {
            let path = root.join(part.name());
            return Err(entry.missing(path, format!("put a folder a class into it, {}", part.without())));
        }
        for folder in folders {
            match class_of(&folder.name) {
                Some(class) => listing.folder(&folder.path, &format!("{}/{}", part.name(), folder.name), class)?,
                None => strange.push(format!("{}/{}", part.name(), folder.name)),
            }
        }
    }
    if !strange.is_empty() {
        listing.note(format!(
            "folders that are no classes of CIFAR-100 are ignored: {}",
            some(&strange)
        ));
    }
    listing.finish().map(Some)
}

/// A list with the names that the data set came with, or else the official ones.
fn begin(
    entry: &'static DatasetEntry,
    root: &Path,
    names: Option<Vec<String>>,
    path: &Path,
) -> Result<Listing, DataError> {
    let official = &entry.split().classes;
    match names {
        Some(names) if names.len() == official.len() => Listing::new(entry, root, names),
        Some(names) => Err(FileOrigin::new(path).malformed(format!(
            "it names {} classes where CIFAR-100 has {}; unpack it again, or delete it to use the official names",
            names.len(),
            official.len()
        ))),
        None => {
            let mut listing = Listing::new(entry, root, official.clone())?;
            listing.note(format!(
                "{} is missing: the classes have their official names",
                path.display()
            ));
            Ok(listing)
        }
    }
}

fn add(listing: &mut Listing, path: &Path, part: Part, row: usize, class: usize, offset: u64) {
    let pixels = RawPixels {
        offset,
        width: SIDE,
        height: SIDE,
    };
    listing.inside(format!("{}/{row:05}", part.name()), path, class, pixels);
}

fn outside(origin: &FileOrigin, row: usize, label: impl std::fmt::Display) -> DataError {
    origin.row(
        FilePosition::Row(row as u64 + 1),
        format!("label {label} where CIFAR-100 has fine labels 0 to 99 and coarse ones 0 to 19; unpack the file again"),
    )
}
