//! The folder of a taxonomy while it is changed.

use std::collections::BTreeSet;
use std::io;

use super::*;
use genus_files::{AtomicFile, FolderLock, discard_later, rename, sync_folder};

/// A file that a taxonomy that grows has beside it, and that others make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SideFile {
    /// The features of the items that wait.
    Waiting,
    /// Where items of earlier files have gone.
    Joined,
}

impl SideFile {
    fn name(self) -> &'static str {
        match self {
            SideFile::Waiting => WAITING,
            SideFile::Joined => JOINED,
        }
    }
}

/// Where a file waits for the `taxonomy.toml` that it belongs to.
pub(super) fn next(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".next.{name}"))
}

/// The folder of a taxonomy, which nobody else changes as long as this lives.
#[derive(Debug)]
pub struct TaxonomyFolder {
    folder: PathBuf,
    /// What is to appear with the next taxonomy.
    staged: BTreeSet<SideFile>,
    /// What shows the taxonomy that is there, and goes when it changes.
    outdated: Option<PathBuf>,
    _lock: FolderLock,
}

impl TaxonomyFolder {
    /// Takes a folder that exists, and finishes or undoes a change that was cut short.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, DataError> {
        let folder = folder.as_ref();
        let opened = Self {
            folder: folder.to_owned(),
            staged: BTreeSet::new(),
            outdated: None,
            _lock: FolderLock::take(folder)?,
        };
        opened.settle_as_found()?;
        Ok(opened)
    }

    /// Where to write a file that is to appear with the next taxonomy.
    pub fn stage(&mut self, file: SideFile) -> PathBuf {
        self.staged.insert(file);
        let path = next(&self.folder, file.name());
        discard_later(&path);
        path
    }

    /// Names a file of the folder that goes at the moment when the taxonomy changes, such as a page that shows the one before.
    pub fn outdate(&mut self, name: &str) {
        self.outdated = Some(self.folder.join(name));
    }

    /// Replaces the taxonomy and all that belongs to it in one step, which is on the disk when this returns. After an error
    /// the folder has the taxonomy before or this one.
    pub fn write(&mut self, taxonomy: &Taxonomy, made: &Origin, items: Option<&KnownItems>) -> Result<(), DataError> {
        let (mut file, mut files) = to_files(&self.folder, taxonomy, made)?;
        let unwritable = |name: &str, source| DataError::write(self.folder.join(name).display(), source);
        if let Some(items) = items {
            let bytes = items.to_bytes().map_err(|e| unwritable(ITEMS, e))?;
            file.beside.insert(ITEMS.to_owned(), fingerprint(&bytes));
            files.push((ITEMS, bytes));
        }
        for beside in &self.staged {
            let name = beside.name();
            let bytes = read_whole(next(&self.folder, name), MAX_TENSORS).map_err(|e| unwritable(name, e))?;
            file.beside.insert(name.to_owned(), fingerprint(&bytes));
        }
        let staged = self.staged.iter().map(|beside| beside.name());
        for name in files.iter().map(|(name, _)| *name).chain(staged).chain([TOML]) {
            // Found now and not when half of them have their names.
            if self.folder.join(name).is_dir() {
                return Err(unwritable(name, io::ErrorKind::IsADirectory.into()));
            }
        }
        for (name, bytes) in &files {
            let is_there = read_whole(self.folder.join(name), MAX_TENSORS).is_ok_and(|there| there == *bytes);
            if !is_there {
                self.put(name, bytes)?;
            }
        }
        if let Some(before) = self.file() {
            for name in BESIDE {
                if before.belongs(name) != FileMembership::No && file.belongs(name) == FileMembership::No {
                    // Nothing where something was: it goes with the taxonomy that it belonged to.
                    self.put(name, b"")?;
                }
            }
        }
        let text = toml::to_string(&file).map_err(|e| unwritable(TOML, io::Error::other(e)))?;
        let nexts = BESIDE.map(|name| next(&self.folder, name));
        let begun = begin_own(&self.folder.join(TOML), text.as_bytes())?;
        // Before the change: what shows other numbers is worse than nothing.
        if let Some(path) = self.outdated.take()
            && let Err(source) = fs::remove_file(&path)
            && source.kind() != io::ErrorKind::NotFound
        {
            return Err(DataError::write(path.display(), source));
        }
        begun.commit_with(&nexts)?;
        self.staged.clear();
        self.settle(|name| file.belongs(name))
    }

    /// The `taxonomy.toml` that is there, if there is one.
    fn file(&self) -> Option<TaxonomyText> {
        let path = self.folder.join(TOML);
        parse(&path, &read_whole(&path, MAX_TEXT).ok()?).ok()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), DataError> {
        let path = next(&self.folder, name);
        discard_later(&path);
        Ok(begin_own(&path, bytes)?.commit()?)
    }

    /// Settles what was left by the `taxonomy.toml` that is there.
    fn settle_as_found(&self) -> Result<(), DataError> {
        match self.file() {
            Some(file) => self.settle(|name| file.belongs(name)),
            None => self.settle(|_| FileMembership::No),
        }
    }

    /// Gives files that belong to the taxonomy their names, and removes those that do not.
    fn settle<'a>(&self, belongs: impl Fn(&str) -> FileMembership<'a>) -> Result<(), DataError> {
        let mut settled = false;
        for name in BESIDE {
            let (path, next) = (self.folder.join(name), next(&self.folder, name));
            let failed = |source| DataError::write(path.display(), source);
            let Ok(found) = fs::symlink_metadata(&next) else {
                continue;
            };
            settled = true;
            let bytes = match found.is_file() {
                true => read_whole(&next, MAX_TENSORS).map_err(failed)?,
                false => Vec::new(),
            };
            match belongs(name) {
                FileMembership::Marked(mark) if fingerprint(&bytes) == mark => {
                    rename(&next, &path).map_err(failed)?;
                    continue;
                }
                FileMembership::No if found.is_file() && bytes.is_empty() => remove(&path)?,
                _ => {}
            }
            remove(&next)?;
        }
        match settled {
            true => sync_folder(&self.folder).map_err(|e| DataError::write(self.folder.display(), e)),
            false => Ok(()),
        }
    }
}

impl Drop for TaxonomyFolder {
    fn drop(&mut self) {
        // What was made ready for a taxonomy that is not written, or not known to be: `taxonomy.toml` says which. Where this
        // fails too, the next one to open the folder does it.
        let _ = self.settle_as_found();
    }
}

fn begin_own(path: &Path, bytes: &[u8]) -> Result<AtomicFile, DataError> {
    let mut file = AtomicFile::create_own(path)?;
    file.append(bytes)?;
    Ok(file)
}

/// Removes a file that may be gone.
fn remove(path: &Path) -> Result<(), DataError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(DataError::Delete {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}
