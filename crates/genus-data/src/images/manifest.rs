//! Files that list images: a path a line, or a table with a column of paths.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{ImageItem, ImageList, STANDARD_INPUT, readable};
use crate::error::{DataError, Place};
use crate::table::csv::Records;
use crate::table::extension;
use crate::table::jsonl::{Key, problem};
use crate::table::label;
use crate::table::limits::MAX_ROW_BYTES;
use crate::table::lines::Lines;
use crate::table::parquet;
use crate::table::source::Origin;
use genus_files::refuse_device;

/// What the column of paths may be called, best name first.
const PATHS: [&str; 4] = ["path", "image", "file", "filename"];
/// Bytes that a line may take.
const MAX_LINE: u64 = 64 << 10;
const EXAMPLE: &str = r#"{"path": "images/1.jpg", "id": "1", "label": "cat"}"#;

/// The format of a manifest that is a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ManifestFormat {
    /// One path a line, or paths that each end with a NUL character.
    Text,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

impl ManifestFormat {
    fn of(path: &Path) -> Option<Self> {
        match extension(path).as_str() {
            "txt" => Some(ManifestFormat::Text),
            "csv" => Some(ManifestFormat::Csv),
            "jsonl" | "ndjson" => Some(ManifestFormat::Jsonl),
            _ => None,
        }
    }
}

/// Lists the images that a manifest names: `.csv`, `.jsonl` or `.parquet` with a column `path` (or `image`, `file`,
/// `filename`) and, where known, `id` and `label`; `.txt`, or `-` for the standard input, with a path a line.
///
/// Relative paths start from the manifest's folder, those of the standard input from the working directory. An image
/// without an id is called as its path is written. Whether the images exist is not looked at.
pub fn list_manifest(path: impl AsRef<Path>) -> Result<ImageList, DataError> {
    let path = path.as_ref();
    if path.as_os_str() == STANDARD_INPUT {
        let name = Path::new("the standard input");
        return read_manifest(io::stdin().lock(), ManifestFormat::Text, name, Path::new(""));
    }
    if path.is_dir() {
        return Err(DataError::Directory { path: path.to_owned() });
    }
    let base = path.parent().unwrap_or(Path::new(""));
    let Some(format) = ManifestFormat::of(path) else {
        return match extension(path).as_str() {
            "parquet" => read_parquet(path, base),
            _ => Err(Origin::new(path)
                .malformed("not a list of images by its name; lists end in .txt, .csv, .jsonl, .ndjson or .parquet")),
        };
    };
    read_manifest(open(path)?, format, path, base)
}

/// Reads a manifest from any reader; `name` is what errors call it, and relative paths start from `base`.
pub fn read_manifest(
    reader: impl BufRead,
    format: ManifestFormat,
    name: &Path,
    base: &Path,
) -> Result<ImageList, DataError> {
    let listing = Listing::new(name, base);
    match format {
        ManifestFormat::Text => read_text(reader, listing),
        ManifestFormat::Csv => read_csv(reader, listing),
        ManifestFormat::Jsonl => read_jsonl(reader, listing),
    }
}

/// Whether a file lists images and has no features.
pub(super) fn is_manifest(path: &Path) -> Result<bool, DataError> {
    let names = match (ManifestFormat::of(path), extension(path).as_str()) {
        (Some(ManifestFormat::Text), _) => return Ok(true),
        (Some(ManifestFormat::Csv), _) => {
            let mut records = Records::new(Origin::new(path), open(path)?, HEADER_LIMIT);
            records.read()?;
            records.record.iter().map(|name| name.trim().to_owned()).collect()
        }
        (Some(ManifestFormat::Jsonl), _) => {
            let mut lines = Lines::new(Origin::new(path), open(path)?, b'\n', HEADER_LIMIT);
            lines.read_filled()?;
            let first: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&lines.text).ok();
            first.into_iter().flatten().map(|(name, _)| name).collect()
        }
        (None, "parquet") => parquet::column_names(path)?,
        _ => return Ok(false),
    };
    Ok(PATHS.iter().any(|path| names.iter().any(|name| name == path)) && !has_features(&names))
}

/// Bytes that the first line of a file of unknown purpose may take: it may be one with very many features.
const HEADER_LIMIT: u64 = MAX_ROW_BYTES;

/// Whether some columns are features: a column of lists, or columns that are numbered from zero or one.
fn has_features(names: &[String]) -> bool {
    let exists = |wanted: &str| names.iter().any(|name| name == wanted);
    exists("embedding")
        || exists("f0")
        || names.iter().any(|name| {
            [("0", "1"), ("1", "2")].iter().any(|(first, second)| {
                let stem = name
                    .strip_suffix(first)
                    .filter(|stem| !stem.ends_with(|c: char| c.is_ascii_digit()));
                stem.is_some_and(|stem| exists(&format!("{stem}{second}")))
            })
        })
}

fn open(path: &Path) -> Result<BufReader<File>, DataError> {
    let failed = |e| Origin::new(path).io(e);
    // A device may have no end.
    refuse_device(&std::fs::metadata(path).map_err(failed)?).map_err(failed)?;
    Ok(BufReader::new(File::open(path).map_err(failed)?))
}

/// The images listed so far.
struct Listing<'a> {
    origin: Origin,
    base: &'a Path,
    list: ImageList,
    places: HashMap<String, Place>,
}

impl<'a> Listing<'a> {
    fn new(name: &Path, base: &'a Path) -> Self {
        Self {
            origin: Origin::new(name),
            base,
            list: ImageList::default(),
            places: HashMap::new(),
        }
    }

    fn push(
        &mut self,
        place: Place,
        path: OsString,
        id: Option<String>,
        label: Option<String>,
    ) -> Result<(), DataError> {
        if path.is_empty() {
            return Err(self
                .origin
                .row(place, "the path is empty; name an image or remove the row"));
        }
        let id = id.unwrap_or_else(|| readable(&path));
        if id.is_empty() {
            return Err(self.origin.row(place, "the id is empty; give every row an id or none"));
        }
        match self.places.entry(id.clone()) {
            Entry::Occupied(first) => Err(DataError::DuplicateId {
                path: self.origin.path.clone(),
                id,
                first: *first.get(),
                second: place,
            }),
            Entry::Vacant(free) => {
                free.insert(place);
                let path = self.base.join(PathBuf::from(path));
                self.list.items.push(ImageItem {
                    id,
                    path,
                    label,
                    pixels: None,
                });
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<ImageList, DataError> {
        if self.list.items.is_empty() {
            return Err(self.origin.malformed("it lists no images; name one a line"));
        }
        Ok(self.list)
    }

    fn no_path(&self, present: &[&str]) -> DataError {
        self.origin.malformed(format!(
            "no column \"{}\" with the paths of the images; the file has {}; rename the column of paths",
            PATHS[0],
            present.join(", ")
        ))
    }
}

fn read_text(mut reader: impl BufRead, mut listing: Listing) -> Result<ImageList, DataError> {
    let by_nul = loop {
        match reader.fill_buf() {
            Ok(start) => break start.contains(&0),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(listing.origin.io(e)),
        }
    };
    let separator = if by_nul { 0 } else { b'\n' };
    let mut lines = Lines::new(listing.origin.clone(), reader, separator, MAX_LINE);
    while lines.read()? {
        let line = lines.text.strip_suffix(&[separator]).unwrap_or(&lines.text);
        let (place, path) = if by_nul {
            // Such lists come from programs: every name is one, whatever it looks like.
            (Place::Row(lines.line), line)
        } else {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() || line.starts_with(b"#") {
                continue;
            }
            (Place::Line(lines.line), line)
        };
        if path.is_empty() {
            continue;
        }
        let path = os_string(path).ok_or_else(|| {
            let problem = "the path is not UTF-8 text; save the list as UTF-8";
            listing.origin.row(place, problem)
        })?;
        listing.push(place, path, None, None)?;
    }
    listing.finish()
}

/// A path as its bytes stand in a text.
#[cfg(unix)]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec()))
}

/// A path as its bytes stand in a text.
#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    String::from_utf8(bytes.to_vec()).ok().map(OsString::from)
}

fn read_csv(reader: impl BufRead, mut listing: Listing) -> Result<ImageList, DataError> {
    let mut records = Records::new(listing.origin.clone(), reader, MAX_LINE);
    if records.read()?.is_none() {
        return listing.finish();
    }
    let names: Vec<String> = records.record.iter().map(|name| name.trim().to_owned()).collect();
    let find = |wanted: &str| names.iter().position(|name| name == wanted);
    let Some(path) = PATHS.into_iter().find_map(find) else {
        let present: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(listing.no_path(&present));
    };
    let (id, label) = (find("id"), find("label"));
    while let Some(line) = records.read()? {
        let record = &records.record;
        let place = Place::Line(line);
        if record.len() != names.len() {
            return Err(listing.origin.row(
                place,
                format!(
                    "{} cells where the header has {} columns; quote cells that contain a comma",
                    record.len(),
                    names.len()
                ),
            ));
        }
        // The last cell keeps the carriage return of its line.
        let cell = |column: usize| match record[column].strip_suffix('\r') {
            Some(text) if column + 1 == record.len() => text,
            _ => &record[column],
        };
        let id = id.map(|column| cell(column).to_owned());
        let label = label.and_then(|column| label::from_cell(cell(column)));
        listing.push(place, cell(path).into(), id, label)?;
    }
    listing.finish()
}

#[derive(Deserialize)]
struct Object {
    path: Option<String>,
    image: Option<String>,
    file: Option<String>,
    filename: Option<String>,
    id: Option<Key>,
    label: Option<Key>,
}

fn read_jsonl(reader: impl BufRead, mut listing: Listing) -> Result<ImageList, DataError> {
    let mut lines = Lines::new(listing.origin.clone(), reader, b'\n', MAX_LINE);
    while lines.read_filled()? {
        let place = Place::Line(lines.line);
        let object: Object =
            serde_json::from_slice(&lines.text).map_err(|e| listing.origin.row(place, problem(&e, EXAMPLE)))?;
        let path = object.path.or(object.image).or(object.file).or(object.filename);
        let Some(path) = path else {
            let problem = format!("no \"{}\"; a line must be an object like {EXAMPLE}", PATHS[0]);
            return Err(listing.origin.row(place, problem));
        };
        let label = object.label.and_then(Key::into_label);
        listing.push(place, path.into(), object.id.map(Key::into_text), label)?;
    }
    listing.finish()
}

fn read_parquet(path: &Path, base: &Path) -> Result<ImageList, DataError> {
    let mut listing = Listing::new(path, base);
    let names = parquet::column_names(path)?;
    let exists = |wanted: &&str| names.iter().any(|name| name == wanted);
    let Some(paths) = PATHS.into_iter().find(exists) else {
        let present: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(listing.no_path(&present));
    };
    let (has_id, has_label) = (exists(&"id"), exists(&"label"));
    let columns: Vec<&str> = Some(paths)
        .into_iter()
        .chain(has_id.then_some("id"))
        .chain(has_label.then_some("label"))
        .collect();
    parquet::for_each_row(path, &columns, |row, cells| {
        let place = Place::Row(row + 1);
        let mut cells = cells.into_iter();
        let path = cells.next().and_then(parquet::Cell::into_text).unwrap_or_default();
        let id = if has_id { cells.next() } else { None };
        let label = cells.next().and_then(parquet::Cell::into_label);
        listing.push(place, path.into(), id.and_then(parquet::Cell::into_text), label)
    })?;
    listing.finish()
}
