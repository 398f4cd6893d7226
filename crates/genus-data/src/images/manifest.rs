//! Files that list images: one path per line, or a table with a column of paths.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::{ImageItem, ImageList, has_image_extension, readable};
use crate::error::{DataError, FilePosition};
use crate::table::batch::Cell;
use crate::table::cells::{columns_of, for_each_row, has_columns};
use crate::table::columns::{Columns, LABELS, listed};
use crate::table::extension;
use crate::table::format::TableFormat;
use crate::table::lines::Lines;
use crate::table::source::FileOrigin;
use crate::table::text;
use crate::table::{ColumnProblem, ColumnRole, TableOptions};

/// What the column of paths may be called, best name first.
const PATHS: [&str; 4] = ["path", "image", "file", "filename"];
/// Bytes that a line may take.
const MAX_LINE: u64 = 64 << 10;

/// Lists the images that a manifest names: a table (`.csv`, `.tsv`, `.jsonl`, `.parquet`, `.feather`) with a column `path` (or
/// `image`, `file`, `filename`) and, where known, ids and labels; `.txt`, or `-` for standard input, with one path per line.
///
/// Relative paths start from the manifest's folder, those of standard input from the working directory. An image
/// without an id is called as its path is written. Whether the images exist is not looked at.
pub fn list_manifest(path: impl AsRef<Path>, options: &TableOptions) -> Result<ImageList, DataError> {
    let path = path.as_ref();
    let origin = FileOrigin::new(path).called(options.called.as_deref());
    if origin.is_standard_input() {
        return read_list(io::stdin().lock(), &origin.path, Path::new(""));
    }
    if path.is_dir() {
        return Err(DataError::Directory { path: path.to_owned() });
    }
    let base = path.parent().unwrap_or(Path::new(""));
    if is_list(path, options) {
        return read_list(text::open(&origin)?, path, base);
    }
    match format(path, options) {
        Some(format) => read_rows(&origin, format, base, options),
        None => Err(origin.malformed(
            "not a list of images by its name; lists end in .txt, .csv, .tsv, .jsonl, .ndjson, .parquet, .feather or .arrow",
        )),
    }
}

/// Whether a file lists images and has no features.
pub(super) fn is_manifest(path: &Path, options: &TableOptions) -> Result<bool, DataError> {
    if is_list(path, options) {
        return Ok(true);
    }
    let Some(format) = format(path, options) else {
        return Ok(false);
    };
    let origin = FileOrigin::new(path).called(options.called.as_deref());
    let columns = columns_of(&origin, format)?;
    let named: Vec<_> = columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let has_paths = PATHS.iter().any(|path| named.iter().any(|(name, _)| name == path));
    Ok(has_paths && !Columns::have_features(&origin, &named, options))
}

/// Whether a name is that of a list with one path per line, and nothing else is said of it.
fn is_list(path: &Path, options: &TableOptions) -> bool {
    extension(path) == "txt" && options.format.is_none()
}

fn format(path: &Path, options: &TableOptions) -> Option<TableFormat> {
    let format = TableFormat::of(path).or(options.format);
    format.filter(|&format| has_columns(format))
}

/// The images listed so far.
struct ManifestListing<'a> {
    origin: FileOrigin,
    base: &'a Path,
    list: ImageList,
    places: HashMap<String, FilePosition>,
}

impl<'a> ManifestListing<'a> {
    fn new(name: &Path, base: &'a Path) -> Self {
        Self {
            origin: FileOrigin::new(name),
            base,
            list: ImageList::default(),
            places: HashMap::new(),
        }
    }

    fn push(
        &mut self,
        place: FilePosition,
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
}

/// Reads a list with one path per line, or with paths that each end with a NUL character; `name` is what errors call it, and
/// relative paths start from `base`.
pub fn read_list(mut reader: impl BufRead, name: &Path, base: &Path) -> Result<ImageList, DataError> {
    let mut listing = ManifestListing::new(name, base);
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
            (FilePosition::Row(lines.line), line)
        } else {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() || line.starts_with(b"#") {
                continue;
            }
            (FilePosition::Line(lines.line), line)
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
    match no_paths(&listing.list) {
        Some(problem) => Err(DataError::Columns {
            path: name.to_owned(),
            problem,
        }),
        None => listing.finish(),
    }
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

/// What a list is where no line looks like the path of an image, and the first is none of a file: rows of a table, or sentences.
fn no_paths(list: &ImageList) -> Option<ColumnProblem> {
    let first = list.items.first().filter(|item| !item.path.exists())?;
    if list.items.iter().any(|item| has_image_extension(&item.path)) {
        return None;
    }
    let all = |is: &dyn Fn(&str) -> bool| list.items.iter().all(|item| is(&item.id));
    let cells = |delimiter: char| {
        let count = |line: &str| line.matches(delimiter).count();
        let of_first = count(&first.id);
        of_first > 0 && all(&|line| count(line) == of_first)
    };
    if all(&|line| line.starts_with('{')) || list.items.len() > 1 && [',', ';', '\t'].into_iter().any(cells) {
        return Some(ColumnProblem::Rows);
    }
    all(&|line| line.contains(char::is_whitespace)).then_some(ColumnProblem::Texts { column: None })
}

fn read_rows(
    origin: &FileOrigin,
    format: TableFormat,
    base: &Path,
    options: &TableOptions,
) -> Result<ImageList, DataError> {
    let mut listing = ManifestListing::new(&origin.path, base);
    let columns = columns_of(origin, format)?;
    let named: Vec<_> = columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut options = options.clone();
    if format == TableFormat::Jsonl {
        // Others may have what the first line has not.
        options.may_lack = Some(ColumnRole::Label);
    }
    let label = Columns::label_of(origin, &named, &options)?.map(|column| named[column].0);
    let labels: Vec<&str> = match (label, options.label.as_deref()) {
        (Some(label), _) | (None, Some(label)) => vec![label],
        (None, None) => LABELS.to_vec(),
    };
    let id = options.id.as_deref().unwrap_or("id");
    let found = for_each_row(
        origin,
        format,
        MAX_LINE,
        &[&PATHS, &[id], &labels],
        &mut |place, cells| {
            let mut cells = cells.into_iter();
            let mut text = || cells.next().and_then(Cell::into_text);
            let (path, id) = (text().unwrap_or_default(), text());
            let label = options.labelled(cells.next().and_then(Cell::into_label));
            listing.push(place, path.into(), id, label)?;
            Ok(true)
        },
    )?;
    if found.is_missing(0) && !found.present.is_empty() {
        return Err(origin.malformed(format!(
            "no column \"{}\" with the paths of the images; the file has {}; rename the column of paths",
            PATHS[0],
            listed(&found.present)
        )));
    }
    listing.finish()
}
