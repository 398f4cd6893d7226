//! One folder a category: links to the files that were sorted, or copies of them.
//!
//! Everything is planned and checked before the first link is made, and no file that is there is ever moved, replaced or
//! removed. A link that is there already is left, so that a run that was interrupted can be run again, and further items can
//! join those of before.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use genus_core::{Kind, Score};
use thiserror::Error;

use crate::assignments::AssignmentRow;
use crate::images::readable;
use genus_files::{AtomicFile, FileError};

/// The folder of the items whose category is only the best guess.
pub(crate) const UNSURE: &str = "unsure";
/// The longest name that is taken over as it is, in bytes; file systems allow 255.
const LONGEST: usize = 200;
/// Names in the sorted folder that are not for categories.
const RESERVED: [&str; 3] = [UNSURE, super::exports::METADATA, super::exports::CARD];

/// An item that was sorted, and its file.
#[derive(Clone, Debug, PartialEq)]
pub struct SortedItem {
    /// What it is called.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// The name of its category.
    pub category: String,
    /// Whether the category is known or new.
    pub kind: Kind,
    /// How well it fits.
    pub score: Score,
    /// The number of its scene from 1 on, where scenes were looked for.
    pub scene: Option<usize>,
}

impl SortedItem {
    /// An item whose file is not known yet.
    pub fn new(row: &AssignmentRow) -> Self {
        Self {
            id: row.id.to_owned(),
            path: PathBuf::new(),
            category: row.category.to_owned(),
            kind: row.kind,
            score: row.score,
            scene: row.scene,
        }
    }

    /// The same as a row of the assignments.
    pub fn row(&self) -> AssignmentRow<'_> {
        AssignmentRow {
            id: &self.id,
            category: &self.category,
            kind: self.kind,
            score: self.score,
            scene: self.scene,
        }
    }
}

/// Whether sorted files are links or copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkKind {
    /// A symbolic link: it takes no space, and breaks when the file moves.
    #[default]
    Sym,
    /// A hard link: a second name of the same file, on the same disk.
    Hard,
    /// A copy.
    Copy,
}

impl LinkKind {
    /// All kinds.
    pub const ALL: [LinkKind; 3] = [LinkKind::Sym, LinkKind::Hard, LinkKind::Copy];
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LinkKind::Sym => "sym",
            LinkKind::Hard => "hard",
            LinkKind::Copy => "copy",
        })
    }
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = LinkKind::ALL.into_iter().find(|link| link.to_string() == text);
        found.ok_or_else(|| "one of sym, hard, copy".to_owned())
    }
}

/// Why files cannot be sorted into folders.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SortError {
    /// An item whose file is not there.
    #[error("item \"{id}\": there is no file {}; only items that are files can be sorted into folders", path.display())]
    NoFile {
        /// The item.
        id: String,
        /// Where its file should be.
        path: PathBuf,
    },
    /// Something else has the name that a link or a folder needs.
    #[error("{} already exists and is {found}", path.display())]
    Taken {
        /// What is there.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A file that was sorted into another category before.
    #[error(
        "{} is already sorted as {}, and would now go to {}",
        path.display(), found.display(), wanted.display()
    )]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where it is.
        found: PathBuf,
        /// Where it would go.
        wanted: PathBuf,
    },
    /// A hard link from one disk to another.
    #[error(
        "{} and {} are on different disks, between which there are no hard links",
        path.display(), folder.display()
    )]
    OtherDisk {
        /// The file.
        path: PathBuf,
        /// The sorted folder.
        folder: PathBuf,
    },
    /// A folder or a link that cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    Make {
        /// The folder or link.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
        /// What it should have been; `None` is a folder.
        link: Option<LinkKind>,
    },
    /// A file that cannot be looked at.
    #[error("cannot look at {}: {source}", path.display())]
    Look {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A copy that cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Where every file is to go, with nothing in the way.
#[derive(Debug)]
pub struct Sorting {
    folder: PathBuf,
    link: LinkKind,
    /// In the order of the items.
    entries: Vec<SortedFile>,
}

#[derive(Debug)]
struct SortedFile {
    /// The file by its one true name.
    source: PathBuf,
    /// The place below the folder, with slashes on every system.
    target: String,
    /// Whether it is there already.
    there: bool,
}

impl Sorting {
    /// Plans the links of items below a folder, and fails where one of them cannot be made or something is in the way.
    ///
    /// Known classes have folders of their names, new groups of theirs, and unsure items are in `unsure/`, each in a folder
    /// of its best guess. A name that no system takes as that of a folder is changed as little as possible.
    pub fn plan(folder: &Path, link: LinkKind, items: &[SortedItem]) -> Result<Self, SortError> {
        if fs::symlink_metadata(folder).is_ok() && !folder.is_dir() {
            return Err(SortError::Taken {
                path: folder.to_owned(),
                found: "no folder",
            });
        }
        let before = EarlierFiles::read(folder)?;
        let mut entries = Vec::with_capacity(items.len());
        for (item, target) in items.iter().zip(targets(items)) {
            let entry = SortedFile::check(folder, link, item, target)?;
            let name = entry.target.rsplit('/').next().unwrap_or_default();
            for found in before.named(name) {
                let wanted = folder.join(&entry.target);
                if !entry.there && *found != wanted && is_same(link, &entry.source, found)? {
                    return Err(SortError::Elsewhere {
                        path: item.path.clone(),
                        found: found.clone(),
                        wanted,
                    });
                }
            }
            entries.push(entry);
        }
        let sorting = Self {
            folder: folder.to_owned(),
            link,
            entries,
        };
        sorting.check_disks()?;
        Ok(sorting)
    }

    /// The folder that everything goes below.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The place of every item below the folder, with slashes on every system.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| entry.target.as_str())
    }

    /// Makes what is not there yet, and says after each item that it is done.
    pub fn run(&self, mut done: impl FnMut()) -> Result<(), SortError> {
        self.make_folder(&self.folder)?;
        let mut made = BTreeSet::new();
        for entry in &self.entries {
            if !entry.there {
                let target = self.folder.join(&entry.target);
                if let Some(folder) = target.parent()
                    && made.insert(folder.to_owned())
                {
                    self.make_folder(folder)?;
                }
                self.make(&entry.source, &target)?;
            }
            done();
        }
        Ok(())
    }

    fn make_folder(&self, path: &Path) -> Result<(), SortError> {
        fs::create_dir_all(path).map_err(|source| SortError::Make {
            path: path.to_owned(),
            source,
            link: None,
        })
    }

    fn make(&self, source: &Path, target: &Path) -> Result<(), SortError> {
        let made = match self.link {
            LinkKind::Sym => symbolic_link(source, target),
            LinkKind::Hard => fs::hard_link(source, target),
            LinkKind::Copy => return copy(source, target),
        };
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(target),
            io::ErrorKind::CrossesDevices => SortError::OtherDisk {
                path: source.to_owned(),
                folder: self.folder.clone(),
            },
            _ => SortError::Make {
                path: target.to_owned(),
                source: error,
                link: Some(self.link),
            },
        })
    }

    /// Fails when a hard link would have to go from one disk to another.
    #[cfg(unix)]
    fn check_disks(&self) -> Result<(), SortError> {
        use std::os::unix::fs::MetadataExt;
        // The folder may have to be made; it will be on the disk of the nearest one that is there.
        let absolute = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let disk = absolute.ancestors().find_map(|folder| fs::metadata(folder).ok());
        let (LinkKind::Hard, Some(disk)) = (self.link, disk) else {
            return Ok(());
        };
        for entry in self.entries.iter().filter(|entry| !entry.there) {
            if look(&entry.source, fs::metadata(&entry.source))?.dev() != disk.dev() {
                return Err(SortError::OtherDisk {
                    path: entry.source.clone(),
                    folder: self.folder.clone(),
                });
            }
        }
        Ok(())
    }

    /// Whether hard links can be made is seen when they are.
    #[cfg(not(unix))]
    fn check_disks(&self) -> Result<(), SortError> {
        Ok(())
    }
}

impl SortedFile {
    fn check(folder: &Path, link: LinkKind, item: &SortedItem, target: String) -> Result<Self, SortError> {
        let source = fs::canonicalize(&item.path).ok().filter(|path| path.is_file());
        let Some(source) = source else {
            return Err(SortError::NoFile {
                id: item.id.clone(),
                path: item.path.clone(),
            });
        };
        let wanted = folder.join(&target);
        // A folder of a category that is a file is in the way too, and so is a link: whoever made the sorted folder may have let
        // it lead anywhere. The sorted folder itself was named by the user.
        let mut above = folder.to_owned();
        for (depth, part) in target.split('/').enumerate() {
            let found = match fs::symlink_metadata(&above) {
                Ok(found) if depth > 0 && found.is_symlink() => Some("a link, which is not followed here"),
                Ok(_) if !above.is_dir() => Some("no folder"),
                _ => None,
            };
            if let Some(found) = found {
                return Err(SortError::Taken { path: above, found });
            }
            above.push(part);
        }
        let there = match fs::symlink_metadata(&wanted) {
            Ok(_) if is_same(link, &source, &wanted)? => true,
            Ok(_) => return Err(taken(&wanted)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(SortError::Look { path: wanted, source }),
        };
        Ok(Self { source, target, there })
    }
}

fn taken(path: &Path) -> SortError {
    SortError::Taken {
        path: path.to_owned(),
        found: "something else",
    }
}

fn look<T>(path: &Path, found: io::Result<T>) -> Result<T, SortError> {
    found.map_err(|source| SortError::Look {
        path: path.to_owned(),
        source,
    })
}

/// The files that a sorted folder has from before, by their names.
struct EarlierFiles {
    files: HashMap<OsString, Vec<PathBuf>>,
}

impl EarlierFiles {
    fn read(folder: &Path) -> Result<Self, SortError> {
        let mut files: HashMap<OsString, Vec<PathBuf>> = HashMap::new();
        // Categories are one folder deep, and two below the unsure ones.
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => look(&folder, entries)?,
            };
            for entry in entries {
                let entry = look(&folder, entry)?;
                let is_folder = look(&entry.path(), entry.file_type())?.is_dir();
                if is_folder && (depth == 0 || depth == 1 && folder.ends_with(UNSURE)) {
                    folders.push((entry.path(), depth + 1));
                } else if !is_folder && depth > 0 {
                    files.entry(entry.file_name()).or_default().push(entry.path());
                }
            }
        }
        // The order of a folder's entries is the system's affair.
        files.values_mut().for_each(|paths| paths.sort());
        Ok(Self { files })
    }

    fn named(&self, name: &str) -> &[PathBuf] {
        self.files.get(&OsString::from(name)).map_or(&[], Vec::as_slice)
    }
}

/// Whether a path is such a link to a file, or such a copy of it; `source` is its one true name.
fn is_same(link: LinkKind, source: &Path, path: &Path) -> Result<bool, SortError> {
    let found = look(path, fs::symlink_metadata(path))?;
    Ok(match link {
        LinkKind::Sym => found.is_symlink() && fs::canonicalize(path).is_ok_and(|target| target == source),
        LinkKind::Hard => found.is_file() && is_one_file(source, path)?,
        LinkKind::Copy => found.is_file() && same_content(source, path)?,
    })
}

#[cfg(unix)]
fn is_one_file(a: &Path, b: &Path) -> Result<bool, SortError> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (look(a, fs::metadata(a))?, look(b, fs::metadata(b))?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Where files have no numbers that all programs may see, what is in them has to do.
#[cfg(not(unix))]
fn is_one_file(a: &Path, b: &Path) -> Result<bool, SortError> {
    same_content(a, b)
}

fn same_content(a: &Path, b: &Path) -> Result<bool, SortError> {
    let (mut one, mut other) = (look(a, File::open(a))?, look(b, File::open(b))?);
    if look(a, one.metadata())?.len() != look(b, other.metadata())?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        look(a, (&mut one).take(1 << 16).read_to_end(&mut left))?;
        look(b, (&mut other).take(1 << 16).read_to_end(&mut right))?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

#[cfg(unix)]
fn symbolic_link(source: &Path, target: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(source, target)
}

#[cfg(windows)]
fn symbolic_link(source: &Path, target: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(source, target)
}

fn copy(source: &Path, target: &Path) -> Result<(), SortError> {
    let mut from = look(source, File::open(source))?;
    let mut to = AtomicFile::create_own(target)?;
    io::copy(&mut from, &mut to).map_err(|e| FileError::write(target.display(), e))?;
    to.commit_new().map_err(|error| match error {
        FileError::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => taken(target),
        other => other.into(),
    })
}

/// The place of every item below the sorted folder.
///
/// A file keeps its name, unless another file of the pile has the same one: then both have the folders that they are in
/// before it. So a file's name depends on the pile and not on what was found.
fn targets(items: &[SortedItem]) -> Vec<String> {
    let folders = folders(items.iter().map(|item| item.category.as_str()));
    let base = |item: &SortedItem| safe(&item.path.file_name().map_or_else(|| item.id.clone(), readable));
    let mut count: HashMap<String, usize> = HashMap::new();
    for item in items {
        *count.entry(base(item).to_lowercase()).or_default() += 1;
    }
    let mut names = TakenNames::default();
    let own: Vec<Option<String>> = items
        .iter()
        .map(|item| {
            let name = base(item);
            // Names that nothing shares come first, so that no other takes them.
            (count[&name.to_lowercase()] == 1).then(|| names.free(name))
        })
        .collect();
    let named = items.iter().zip(own);
    named
        .map(|(item, own)| {
            let name = own.unwrap_or_else(|| {
                let extension = Path::new(&base(item))
                    .extension()
                    .map(|e| e.to_string_lossy().into_owned());
                let id = item.id.trim_start_matches(['.', '/', '\\']);
                let name = match extension {
                    // An id of a manifest may be any text, but a picture without its ending is no picture to most programs.
                    Some(extension) if !id.to_lowercase().ends_with(&format!(".{}", extension.to_lowercase())) => {
                        format!("{}.{extension}", safe(id))
                    }
                    _ => safe(id),
                };
                names.free(name)
            });
            let folder = &folders[item.category.as_str()];
            match item.score.unsure {
                true => format!("{UNSURE}/{folder}/{name}"),
                false => format!("{folder}/{name}"),
            }
        })
        .collect()
}

/// The folder of every category in a sorted folder: its name, or what comes nearest to it on every system.
pub fn folders<'a>(categories: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let mut names = TakenNames::default();
    RESERVED.into_iter().for_each(|name| {
        names.free(name.to_owned());
    });
    let categories: BTreeSet<&str> = categories.collect();
    // Those that are names as they are come first, so that no changed one takes their place.
    let (as_they_are, changed): (Vec<&str>, Vec<&str>) =
        categories.into_iter().partition(|category| safe(category) == *category);
    as_they_are
        .into_iter()
        .chain(changed)
        .map(|category| (category, names.free(safe(category))))
        .collect()
}

/// Names that were given away. Some systems do not tell capitals from small letters.
#[derive(Default)]
struct TakenNames {
    taken: HashSet<String>,
}

impl TakenNames {
    /// The name, or else the name with a number before its ending.
    fn free(&mut self, wanted: String) -> String {
        if self.taken.insert(wanted.to_lowercase()) {
            return wanted;
        }
        let (stem, ending) = match wanted.rfind('.') {
            Some(dot) if dot > 0 && wanted.len() - dot <= 6 => wanted.split_at(dot),
            _ => (wanted.as_str(), ""),
        };
        let mut number = 2;
        loop {
            let name = format!("{stem} ({number}){ending}");
            if self.taken.insert(name.to_lowercase()) {
                return name;
            }
            number += 1;
        }
    }
}

/// The nearest name that every system takes as that of one file or folder and no program skips.
fn safe(text: &str) -> String {
    let forbidden = |c: char| c.is_control() || r#"/\<>:"|?*"#.contains(c) || is_invisible(c);
    let mut name: String = text.chars().map(|c| if forbidden(c) { '_' } else { c }).collect();
    if name.len() > LONGEST {
        // The end tells names apart as often as the beginning, and it holds the kind of file.
        let mut from = name.len() - LONGEST / 2;
        let mut to = LONGEST / 2 - 3;
        while !name.is_char_boundary(from) {
            from += 1;
        }
        while !name.is_char_boundary(to) {
            to -= 1;
        }
        name = format!("{}…{}", &name[..to], &name[from..]);
    }
    // Windows drops dots and spaces at the end.
    let kept = name.trim_end_matches(['.', ' ']).len();
    let dropped = name.len() - kept;
    name.truncate(kept);
    name.extend(std::iter::repeat_n('_', dropped));
    // What begins with a dot is hidden, and what begins with two underscores is skipped by Hugging Face `datasets`.
    if let Some(rest) = name.strip_prefix('.') {
        name = format!("_{rest}");
    }
    while name.starts_with("__") {
        name.remove(0);
    }
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered = |prefix: &str| {
        let number = stem.strip_prefix(prefix);
        number.is_some_and(|number| number.len() == 1 && matches!(number.as_bytes()[0], b'1'..=b'9'))
    };
    if name.is_empty() || ["CON", "PRN", "AUX", "NUL"].contains(&&*stem) || numbered("COM") || numbered("LPT") {
        name.insert(0, '_');
    }
    name
}

/// Marks that turn the direction of text, or show nothing: in a name they only mislead.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
