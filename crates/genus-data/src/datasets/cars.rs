//! Stanford Cars: MATLAB's annotations in one file or two, CSV annotations, or a folder a class.
//!
//! The official order of the classes is that of the devkit, which is not the order of the sorted names: a class is found
//! by its number in the annotations, or by its name in the list of all names, never by the rank of its folder.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::annotation::AnnotationLines;
use super::folders::{bare, class_folders};
use super::listing::{Listing, SearchedPaths, some};
use super::mat::{self, MatValue};
use super::{DatasetEntry, ImageSet, Images, Part};
use crate::error::{DataError, FilePosition};
use crate::table::source::FileOrigin;

pub(super) const ENTRY: DatasetEntry = DatasetEntry {
    name: "cars",
    title: "StanfordCars",
    layouts: "cars_train/, cars_test/ and devkit/{cars_train_annos,cars_test_annos_withlabels,cars_meta}.mat, the \
              annotations also beside devkit; car_ims/ and cars_annos.mat; anno_train.csv, anno_test.csv and names.csv; or \
              a folder a class, {train,test}/<class>/*.jpg",
    paper: "the test images, and of the training images those of the first 160 classes, as the authors' loader drops the others",
    folders: &[
        "stanford_cars",
        "StanfordCars",
        "stanford-cars",
        "Stanford_Cars",
        "stanford_car",
        "cars",
        "Cars",
        "cars196",
        "scars",
    ],
    open,
};

/// Where the devkit's files may be, below the root.
const DEVKITS: [&str; 6] = [
    "devkit",
    "",
    "car_devkit/devkit",
    "car_devkit",
    "cars_devkit",
    "devkit/devkit",
];
/// Where the folders of classes may be, below the root.
const FOLDERS: [&str; 3] = ["", "car_data", "car_data/car_data"];
const META: &str = "cars_meta.mat";
const ALL: &str = "cars_annos.mat";
/// The authors' loader keeps a default of 160 classes for the training images.
const AUTHORS_CLASSES: usize = 160;

fn open(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let mut find = |name: &str| {
        let paths = DEVKITS.map(|devkit| looked.file(root.join(devkit).join(name)));
        paths.into_iter().flatten().next()
    };
    let annotations = [Part::Train, Part::Test].map(|part| find(mat_name(part)));
    let meta = find(META);
    let all = find(ALL);
    if annotations.iter().any(Option::is_some) {
        return devkit(entry, root, images, annotations, meta).map(Some);
    }
    if let Some(all) = all {
        return one_file(entry, root, images, &all).map(Some);
    }
    let lists = [Part::Train, Part::Test].map(|part| looked.file(root.join(csv_name(part))));
    if lists.iter().any(Option::is_some) {
        return csv(entry, root, images, lists).map(Some);
    }
    for below in FOLDERS {
        if let Some(found) = folders(entry, root, below, images, meta.as_deref(), looked)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The devkit: a file for the training images and one for the test images.
fn devkit(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    annotations: [Option<PathBuf>; 2],
    meta: Option<PathBuf>,
) -> Result<ImageSet, DataError> {
    let mut listing = begin(entry, root, names(entry, meta.as_deref())?, META)?;
    for (part, path) in [Part::Train, Part::Test].into_iter().zip(annotations) {
        if !images.parts(Images::All).contains(&part) {
            continue;
        }
        let Some(path) = path else {
            return Err(no_annotations(entry, &root.join("devkit").join(mat_name(part)), part));
        };
        let places = image_folders(root, part);
        if places.is_empty() {
            let name = format!("cars_{}", part.name());
            return Err(entry.missing(root.join(&name), format!("unpack {name}.tgz there, {}", part.without())));
        }
        for row in records(&path, &["class", "fname"])? {
            let class = class(entry, &path, &row, &row.values[0])?;
            let name = file_name(&path, &row, &row.values[1])?;
            take(&mut listing, root, &places, part, images, &name, class);
        }
    }
    finish(listing, images)
}

/// The first edition: all images in one folder, with a file that says which are for the test.
fn one_file(entry: &'static DatasetEntry, root: &Path, images: Images, path: &Path) -> Result<ImageSet, DataError> {
    let mut found = mat::read(path, &["class_names"])?;
    let names = class_names(entry, path, found.remove("class_names"))?;
    let mut listing = Listing::new(entry, root, names)?;
    let places = [String::from("car_ims"), String::from("car_ims/car_ims")];
    let places: Vec<String> = places.into_iter().filter(|place| root.join(place).is_dir()).collect();
    if places.is_empty() {
        return Err(entry.missing(root.join("car_ims"), "unpack car_ims.tgz there"));
    }
    for row in records(path, &["class", "relative_im_path", "test"])? {
        let class = class(entry, path, &row, &row.values[0])?;
        let name = file_name(path, &row, &row.values[1])?;
        let part = match row.values[2].number() {
            Some(0.0) => Part::Train,
            Some(1.0) => Part::Test,
            _ => return Err(FileOrigin::new(path).row(row.place, "\"test\" is neither 0 nor 1; unpack the file again")),
        };
        if images.parts(Images::All).contains(&part) {
            take(&mut listing, root, &places, part, images, &name, class);
        }
    }
    finish(listing, images)
}

/// Annotations as CSV, `file,x1,y1,x2,y2,class`, with or without a header.
fn csv(
    entry: &'static DatasetEntry,
    root: &Path,
    images: Images,
    lists: [Option<PathBuf>; 2],
) -> Result<ImageSet, DataError> {
    let path = root.join("names.csv");
    let names = if path.is_file() {
        let (mut lines, mut names) = (AnnotationLines::open(&path)?, Vec::new());
        while let Some(name) = lines.next_line()? {
            names.push(name.trim_matches('"').to_owned());
        }
        Some(counted(entry, &path, names)?)
    } else {
        None
    };
    let mut listing = begin(entry, root, names, "names.csv")?;
    for (part, path) in [Part::Train, Part::Test].into_iter().zip(lists) {
        if !images.parts(Images::All).contains(&part) {
            continue;
        }
        let Some(path) = path else {
            return Err(no_annotations(entry, &root.join(csv_name(part)), part));
        };
        let places = image_folders(root, part);
        let mut in_classes = in_class_folders(root, part)?;
        if places.is_empty() && in_classes.is_empty() {
            let name = format!("cars_{}", part.name());
            return Err(entry.missing(root.join(&name), format!("unpack the images there, {}", part.without())));
        }
        let mut lines = AnnotationLines::open(&path)?;
        let mut first = true;
        while let Some(line) = lines.next_line()? {
            let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
            let (Some(&name), Some(&number), 6) = (cells.first(), cells.last(), cells.len()) else {
                return Err(lines.wrong("a line has six cells: the file, four numbers of its box, and its class"));
            };
            let number: Result<usize, _> = number.parse();
            if std::mem::take(&mut first) && number.is_err() {
                continue;
            }
            let class = number.ok().filter(|number| (1..=entry.split().len()).contains(number));
            let class = class.ok_or_else(|| {
                lines.wrong(format!(
                    "\"{}\" is no class, as there are 1 to 196; unpack the file again",
                    cells[5]
                ))
            })? - 1;
            match in_classes.remove(name) {
                Some((id, path)) if wanted(images, part, class) => listing.found(id, path, class),
                Some(_) => {}
                None => take(&mut listing, root, &places, part, images, name, class),
            }
        }
    }
    finish(listing, images)
}

/// A folder a class; the names must be official ones.
fn folders(
    entry: &'static DatasetEntry,
    root: &Path,
    below: &str,
    images: Images,
    meta: Option<&Path>,
    looked: &mut SearchedPaths,
) -> Result<Option<ImageSet>, DataError> {
    let mut halves = Vec::new();
    for part in [Part::Train, Part::Test] {
        if let Some(path) = looked.folder(root.join(below).join(part.name())) {
            halves.push((part, class_folders(&path)?));
        }
    }
    let classes = match names(entry, meta)? {
        Some(names) => names,
        None => entry.split().classes.clone(),
    };
    // Folders cannot have the stroke of "Ram C/V", and people change spaces to underscores.
    let by_name: HashMap<String, usize> = classes
        .iter()
        .enumerate()
        .map(|(class, name)| (bare(name), class))
        .collect();
    let class_of = |name: &str| by_name.get(&bare(name)).copied();
    let all = || halves.iter().flat_map(|(_, folders)| folders);
    if !all().any(|folder| class_of(&folder.name).is_some()) {
        return Ok(None);
    }
    let strange: Vec<&str> = all()
        .map(|folder| folder.name.as_str())
        .filter(|name| class_of(name).is_none())
        .collect();
    let there: HashSet<usize> = all().filter_map(|folder| class_of(&folder.name)).collect();
    // A class under a wrong name would silently be missing, which spoils the split; once all are there, the rest is extra.
    if !strange.is_empty() && there.len() < classes.len() {
        return Err(DataError::Malformed {
            path: root.join(below),
            problem: format!(
                "{} classes of Stanford Cars have no folder, and {} folders are not called like a class: {}; rename or \
                 remove them, or add the devkit with {META}",
                classes.len() - there.len(),
                strange.len(),
                some(&strange)
            ),
        });
    }
    let mut listing = Listing::new(entry, root, classes.clone())?;
    for &part in images.parts(Images::All) {
        let Some((_, folders)) = halves.iter().find(|half| half.0 == part) else {
            let path = root.join(below).join(part.name());
            return Err(entry.missing(path, format!("put a folder a class into it, {}", part.without())));
        };
        let prefix = if below.is_empty() {
            part.name().to_owned()
        } else {
            format!("{below}/{}", part.name())
        };
        for folder in folders {
            match class_of(&folder.name) {
                Some(class) if wanted(images, part, class) => {
                    listing.folder(&folder.path, &format!("{prefix}/{}", folder.name), class)?;
                }
                _ => {}
            }
        }
    }
    if !strange.is_empty() {
        listing.note(format!(
            "folders that are no classes of Stanford Cars are ignored: {}",
            some(&strange)
        ));
    }
    finish(listing, images).map(Some)
}

fn mat_name(part: Part) -> &'static str {
    match part {
        Part::Train => "cars_train_annos.mat",
        Part::Test => "cars_test_annos_withlabels.mat",
    }
}

fn csv_name(part: Part) -> &'static str {
    match part {
        Part::Train => "anno_train.csv",
        Part::Test => "anno_test.csv",
    }
}

fn no_annotations(entry: &DatasetEntry, path: &Path, part: Part) -> DataError {
    let further = match part {
        Part::Train => "",
        Part::Test => " (cars_test_annos.mat has no classes)",
    };
    let way_out = format!(
        "it says the classes of the {} images{further}; add it, {}",
        part.name(),
        part.without()
    );
    entry.missing(path.to_owned(), way_out)
}

/// The names of the classes in the official order, when the devkit's list of them is there.
fn names(entry: &'static DatasetEntry, meta: Option<&Path>) -> Result<Option<Vec<String>>, DataError> {
    let Some(path) = meta else { return Ok(None) };
    let mut found = mat::read(path, &["class_names"])?;
    class_names(entry, path, found.remove("class_names")).map(Some)
}

fn class_names(entry: &DatasetEntry, path: &Path, value: Option<MatValue>) -> Result<Vec<String>, DataError> {
    let wrong = || FileOrigin::new(path).malformed("no \"class_names\" with a text a class in it; unpack it again");
    let Some(MatValue::Cells(cells)) = value else {
        return Err(wrong());
    };
    let names: Option<Vec<String>> = cells.iter().map(|cell| cell.text().map(str::to_owned)).collect();
    counted(entry, path, names.ok_or_else(wrong)?)
}

fn counted(entry: &DatasetEntry, path: &Path, names: Vec<String>) -> Result<Vec<String>, DataError> {
    let expected = entry.split().len();
    if names.len() == expected {
        return Ok(names);
    }
    let problem = format!(
        "it names {} classes where Stanford Cars has {expected}; unpack it again, or remove it to use the official names",
        names.len()
    );
    Err(FileOrigin::new(path).malformed(problem))
}

/// A list with the names that the data set came with, or else the official ones.
fn begin(
    entry: &'static DatasetEntry,
    root: &Path,
    names: Option<Vec<String>>,
    source: &str,
) -> Result<Listing, DataError> {
    match names {
        Some(names) => Listing::new(entry, root, names),
        None => {
            let mut listing = Listing::new(entry, root, entry.split().classes.clone())?;
            listing.note(format!("{source} is missing: the classes have their official names"));
            Ok(listing)
        }
    }
}

/// A record of the annotations.
struct CarRecord {
    place: FilePosition,
    /// The fields that were asked for.
    values: Vec<MatValue>,
}

fn records(path: &Path, wanted: &[&str]) -> Result<Vec<CarRecord>, DataError> {
    let origin = FileOrigin::new(path);
    let Some(MatValue::Records { fields, values }) = mat::read(path, &["annotations"])?.remove("annotations") else {
        return Err(origin.malformed("no structures \"annotations\" in it; unpack it again"));
    };
    let mut places = Vec::new();
    for &name in wanted {
        let place = fields.iter().position(|field| field == name);
        places.push(place.ok_or_else(|| {
            let hint = if name == "class" {
                "; it may be the file without the classes"
            } else {
                ""
            };
            origin.malformed(format!(
                "its annotations have no \"{name}\" but {}{hint}",
                fields.join(", ")
            ))
        })?);
    }
    let record = |(row, values): (usize, &[MatValue])| CarRecord {
        place: FilePosition::Row(row as u64 + 1),
        values: places.iter().map(|&place| values[place].clone()).collect(),
    };
    Ok(values.chunks_exact(fields.len()).enumerate().map(record).collect())
}

fn class(entry: &DatasetEntry, path: &Path, row: &CarRecord, value: &MatValue) -> Result<usize, DataError> {
    let number = value
        .number()
        .filter(|number| number.fract() == 0.0 && (1.0..=entry.split().len() as f64).contains(number));
    let number = number.ok_or_else(|| {
        FileOrigin::new(path).row(
            row.place,
            "\"class\" is no class, as there are 1 to 196; unpack the file again",
        )
    })?;
    Ok(number as usize - 1)
}

/// The name of the image without the folders that some copies have before it.
fn file_name(path: &Path, row: &CarRecord, value: &MatValue) -> Result<String, DataError> {
    let name = value.text().and_then(|text| text.rsplit(['/', '\\']).next());
    let name = name.filter(|name| !name.is_empty());
    let wrong = || FileOrigin::new(path).row(row.place, "no name of an image; unpack the file again");
    name.map(str::to_owned).ok_or_else(wrong)
}

/// The folders, below the root, in which the images of a half may be.
fn image_folders(root: &Path, part: Part) -> Vec<String> {
    let name = format!("cars_{}", part.name());
    let places = [name.clone(), format!("{name}/{name}")];
    places.into_iter().filter(|place| root.join(place).is_dir()).collect()
}

/// The images of a half by their names, with id and path, when they lie in a folder a class.
fn in_class_folders(root: &Path, part: Part) -> Result<HashMap<String, (String, PathBuf)>, DataError> {
    for below in FOLDERS {
        let prefix = Path::new(below).join(part.name());
        let path = root.join(&prefix);
        if !path.is_dir() {
            continue;
        }
        let list = crate::images::walk(&path)?;
        let named = list.items.into_iter().map(|item| {
            let name = item.id.rsplit('/').next().unwrap_or(&item.id).to_owned();
            let below = if below.is_empty() {
                String::new()
            } else {
                format!("{below}/")
            };
            (name, (format!("{below}{}/{}", part.name(), item.id), item.path))
        });
        return Ok(named.collect());
    }
    Ok(HashMap::new())
}

/// Whether an image is asked for; the paper's images lack the later classes of the training half.
fn wanted(images: Images, part: Part, class: usize) -> bool {
    !(images == Images::Paper && part == Part::Train && class >= AUTHORS_CLASSES)
}

/// Adds an image out of the first of the folders that has it.
fn take(listing: &mut Listing, root: &Path, places: &[String], part: Part, images: Images, name: &str, class: usize) {
    if !wanted(images, part, class) {
        return;
    }
    let there = places.iter().find(|place| root.join(place).join(name).is_file());
    let fallback = format!("cars_{}", part.name());
    let place = there.or(places.first()).unwrap_or(&fallback);
    listing.annotated(&format!("{place}/{name}"), class);
}

fn finish(mut listing: Listing, images: Images) -> Result<ImageSet, DataError> {
    if images == Images::Paper {
        listing.note(
            "as in the authors' loader, training images of classes 161 to 196 are dropped, which gives the counts of the \
             paper's table; \"all\" takes them too",
        );
    }
    listing.finish()
}
