//! Which images there are: those of a folder, or those that a manifest lists.

mod manifest;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::vec;

use crate::error::DataError;
use crate::sorting::UNSURE;
use crate::table::extension;
use crate::table::source::STANDARD_INPUT;
use crate::table::{ColumnProblem, TableOptions};
use genus_files::{RawPixels, is_shortage};
pub use manifest::{list_manifest, read_list};

/// How the names of images end.
const EXTENSIONS: [&str; 10] = ["jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff"];

/// How the names of pictures end that cannot be read.
const UNSUPPORTED: [&str; 22] = [
    "heic", "heif", "avif", "jxl", "jp2", "psd", "svg", "tga", "dds", "exr", "hdr", // Raw files of cameras.
    "arw", "cr2", "cr3", "dng", "nef", "orf", "pef", "raf", "raw", "rw2", "srw",
];

/// How the names of texts end.
const TEXTS: [&str; 4] = ["txt", "md", "pdf", "docx"];

/// An image that is not opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageItem {
    /// What it is called, different from all others of its list.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its class, when it is known.
    pub label: Option<String>,
    /// Where in the file its pixels are, when the file holds many images and not one encoded image.
    pub pixels: Option<RawPixels>,
}

/// The images of a folder or a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageList {
    /// The images, in an order that depends on their names alone or is that of the manifest.
    pub items: Vec<ImageItem>,
    /// What could not be listed, and why.
    pub skipped: Vec<(PathBuf, String)>,
    /// Pictures of formats that cannot be read.
    pub unsupported: Vec<PathBuf>,
    /// Folders of classes, by the names of the classes, in which there is no image.
    pub empty_classes: Vec<String>,
}

impl ImageList {
    /// How many pictures there are of each format that cannot be read, by how their names end.
    pub fn unsupported(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for path in &self.unsupported {
            let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            *counts.entry(ending).or_default() += 1;
        }
        counts
    }
}

/// Whether a path given as input means images rather than a feature file: a folder, an image, a `.txt` file, `-` for the
/// standard input where nothing is said of its format, or a table that has a column of paths and no features.
pub fn is_image_source(path: impl AsRef<Path>, options: &TableOptions) -> Result<bool, DataError> {
    let path = path.as_ref();
    if path.as_os_str() == STANDARD_INPUT {
        return Ok(options.format.is_none());
    }
    if path.is_dir() || has_image_extension(path) || is_unsupported(path) {
        return Ok(true);
    }
    manifest::is_manifest(path, options)
}

/// Lists the images of a folder or a manifest, or the one image, whichever the path is.
pub fn list_images(path: impl AsRef<Path>, options: &TableOptions) -> Result<ImageList, DataError> {
    let path = path.as_ref();
    if path.as_os_str() != STANDARD_INPUT && path.is_dir() {
        let mut list = list_folder(path)?;
        for item in &mut list.items {
            item.label = options.labelled(item.label.take());
        }
        Ok(list)
    } else if has_image_extension(path) {
        Ok(ImageList {
            items: vec![ImageItem {
                id: readable(path.as_os_str()),
                path: path.to_owned(),
                label: None,
                pixels: None,
            }],
            ..ImageList::default()
        })
    } else if is_unsupported(path) && path.exists() {
        Err(DataError::Malformed {
            path: path.to_owned(),
            problem: "pictures of this format cannot be read; convert it to .jpg".to_owned(),
        })
    } else {
        list_manifest(path, options)
    }
}

/// Lists all images below a folder, sorted by the bytes of their names, folder by folder.
///
/// An image in a sub-folder has the name of the first folder below the root as its label, one in the root has none.
/// So has one that was sorted with doubt (`unsure/CATEGORY/IMAGE`). What is hidden is left out; links are followed, but not in
/// circles.
pub fn list_folder(path: impl AsRef<Path>) -> Result<ImageList, DataError> {
    let root = path.as_ref();
    let (list, texts) = walk_counting_texts(root)?;
    match list.items.is_empty() {
        true => Err(no_images(root, &list, texts)),
        false => Ok(list),
    }
}

/// All images below a folder as [`list_folder`] lists them, be there any or none.
pub(crate) fn walk(root: &Path) -> Result<ImageList, DataError> {
    Ok(walk_counting_texts(root)?.0)
}

/// The same with the number of files that are texts.
fn walk_counting_texts(root: &Path) -> Result<(ImageList, u64), DataError> {
    let failed = |source| DataError::Read {
        path: root.to_owned(),
        source,
    };
    let (mut list, mut texts) = (ImageList::default(), 0);
    let first = FolderWalk::open(root, &mut list.skipped).map_err(failed)?;
    let (mut ids, mut classes) = (HashSet::new(), Vec::new());
    // The folders from the root down to where the walk is.
    let mut branch = vec![first];
    while let Some(folder) = branch.last_mut() {
        let Some(entry) = folder.entries.next() else {
            branch.pop();
            continue;
        };
        let mut skip = |reason: String| list.skipped.push((entry.clone(), reason));
        let found = match fs::metadata(&entry) {
            Ok(found) => found,
            Err(e) if fs::symlink_metadata(&entry).is_ok_and(|link| link.is_symlink()) => {
                skip(format!("the link leads nowhere ({e})"));
                continue;
            }
            Err(e) if is_shortage(&e) => return Err(failed(e)),
            Err(e) => {
                skip(e.to_string());
                continue;
            }
        };
        if found.is_dir() {
            match FolderWalk::open(&entry, &mut list.skipped) {
                Ok(below) if branch.iter().any(|above| above.canonical == below.canonical) => {
                    let reason = "the link leads back to a folder that it is in".to_owned();
                    list.skipped.push((entry, reason));
                }
                Ok(below) => {
                    if branch.len() == 1 {
                        classes.push(readable(entry.file_name().unwrap_or_default()));
                    }
                    branch.push(below);
                }
                // What cannot be looked at for want of file handles is not to be left out.
                Err(source) if is_shortage(&source) => return Err(DataError::Read { path: entry, source }),
                Err(e) => list.skipped.push((entry, e.to_string())),
            }
        } else if has_image_extension(&entry) {
            if found.is_file() {
                list.items.push(item(root, entry, &mut ids));
            } else {
                skip("not a regular file".to_owned());
            }
        } else if found.is_file() {
            match is_unsupported(&entry) {
                true => list.unsupported.push(entry),
                false => texts += u64::from(TEXTS.contains(&extension(&entry).as_str())),
            }
        }
    }
    let seen: HashSet<&str> = list.items.iter().filter_map(|item| item.label.as_deref()).collect();
    classes.retain(|class| class != UNSURE && !seen.contains(class.as_str()));
    list.empty_classes = classes;
    Ok((list, texts))
}

/// A folder being walked.
struct FolderWalk {
    /// Its one true name, by which it is known again.
    canonical: PathBuf,
    /// What is left of its entries, sorted.
    entries: vec::IntoIter<PathBuf>,
}

impl FolderWalk {
    fn open(path: &Path, skipped: &mut Vec<(PathBuf, String)>) -> io::Result<Self> {
        let canonical = fs::canonicalize(path)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            match entry {
                Ok(entry) if is_hidden(&entry.file_name()) => {}
                Ok(entry) => entries.push(entry.path()),
                Err(e) => skipped.push((path.to_owned(), e.to_string())),
            }
        }
        // All share the folder, so that this is the order of their names.
        entries.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
        let entries = entries.into_iter();
        Ok(Self { canonical, entries })
    }
}

pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn has_image_extension(path: &Path) -> bool {
    EXTENSIONS.contains(&extension(path).as_str())
}

fn is_unsupported(path: &Path) -> bool {
    UNSUPPORTED.contains(&extension(path).as_str())
}

fn item(root: &Path, path: PathBuf, ids: &mut HashSet<String>) -> ImageItem {
    let below = path.strip_prefix(root).unwrap_or(&path);
    let names: Vec<String> = below
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(readable(name)),
            _ => None,
        })
        .collect();
    let mut id = names.join("/");
    // A name may look like another's encoded bytes; no encoding ends like this.
    while !ids.insert(id.clone()) {
        id.push('%');
    }
    let is_doubtful = names.len() > 2 && names[0] == UNSURE;
    let label = match names.len() > 1 && !is_doubtful {
        true => names.into_iter().next(),
        false => None,
    };
    ImageItem {
        id,
        path,
        label,
        pixels: None,
    }
}

/// A name as text: as it is, or else with the bytes that are not UTF-8, and the percent signs, as `%` and two digits.
pub(crate) fn readable(name: &OsStr) -> String {
    if let Some(text) = name.to_str() {
        return text.to_owned();
    }
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text += &chunk.valid().replace('%', "%25");
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text
}

fn no_images(root: &Path, list: &ImageList, texts: u64) -> DataError {
    if texts > 0 && list.unsupported.is_empty() && list.skipped.is_empty() {
        let problem = ColumnProblem::Texts { column: None };
        let path = root.to_owned();
        return DataError::Columns { path, problem };
    }
    let mut problem = format!("no images in it; files that end in .{} count", EXTENSIONS.join(", ."));
    for (ending, count) in list.unsupported() {
        problem += &format!("; there are {count} that end in .{ending}, convert them to .jpg");
    }
    if let Some((path, reason)) = list.skipped.first() {
        problem += &format!("; {} could not be listed: {reason}", path.display());
    }
    DataError::Malformed {
        path: root.to_owned(),
        problem,
    }
}
