//! Files that appear whole or not at all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

use crate::error::FileError;

/// The temporary files of this process that are neither committed nor removed.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// The folders in which this process has looked for what others left.
static COLLECTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// How the names of temporary files end.
const SUFFIX: &str = ".genus.tmp";
/// How many letters before that make the name one that nobody has.
const LETTERS: usize = 6;

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // The set is whole after every operation, whatever happened to the thread that held it.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this is kept, no file of this process is begun and none appears; see [`discard_unfinished`].
pub struct DiscardGuard(#[expect(dead_code, reason = "held for its lock")] MutexGuard<'static, BTreeSet<PathBuf>>);

/// Deletes the temporary file of every [`AtomicFile`] that is not committed, for a process that is about to be ended by
/// a signal. Threads that still write are kept from beginning another as long as the result lives.
pub fn discard_unfinished() -> DiscardGuard {
    let mut unfinished = unfinished();
    for path in std::mem::take(&mut *unfinished) {
        delete(&path);
    }
    DiscardGuard(unfinished)
}

/// Has a file deleted by [`discard_unfinished`].
pub fn discard_later(path: &Path) {
    unfinished().insert(path.to_owned());
}

/// Makes something that is then deleted by [`discard_unfinished`]; `make` gives its path as well.
pub(crate) fn remembered<T>(make: impl FnOnce() -> io::Result<(T, PathBuf)>) -> io::Result<T> {
    let mut unfinished = unfinished();
    let (made, path) = make()?;
    unfinished.insert(path);
    Ok(made)
}

/// Deletes such a file or folder now.
pub(crate) fn discard(path: &Path) {
    let mut unfinished = unfinished();
    unfinished.remove(path);
    delete(path);
}

/// Deletes a file, or a folder and all that is in it. Nothing is left to be done about what cannot be deleted.
fn delete(path: &Path) {
    let _ = match fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}

/// Renames a file, unless the process is being ended.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let _unfinished = unfinished();
    fs::rename(from, to)
}

/// Whether a path leads to this very file.
pub fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        #[cfg(unix)]
        (Ok(open), Ok(named)) => {
            use std::os::unix::fs::MetadataExt;
            (open.dev(), open.ino()) == (named.dev(), named.ino())
        }
        #[cfg(not(unix))]
        (Ok(_), Ok(_)) => true,
        _ => false,
    }
}

/// Opens a file of a folder that is ours; a link is refused, as it may lead anywhere.
pub fn open_own(options: &mut OpenOptions, path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let is_link = || is_link(path);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW);
    // Elsewhere nothing keeps the system from following it but a look beforehand.
    #[cfg(not(unix))]
    if is_link() {
        return Err(link_refused());
    }
    // The system's words speak of too many links.
    options
        .open(path)
        .map_err(|e| if is_link() { link_refused() } else { e })
}

/// Makes a folder in one that is ours, unless it is there; a link is refused, as it may lead anywhere.
pub fn create_own_folder(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match is_link(path) {
            true => Err(link_refused()),
            false if path.is_dir() => Ok(()),
            false => Err(io::ErrorKind::NotADirectory.into()),
        },
        made => made,
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn link_refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is a link, which is not followed here; remove it",
    )
}

/// Brings the names in a folder onto the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder)?.sync_all() {
        // Some file systems do so by themselves and know no such request.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
        result => result?,
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Deletes the temporary files that processes left in a folder when they were killed; once a folder and process.
///
/// A process holds a lock on each of its own, which ends with it: a file whose lock can be had is nobody's.
fn collect_left(folder: &Path) {
    if !cfg!(unix) {
        // Locks elsewhere keep others from reading, and are not taken.
        return;
    }
    let mut collected = COLLECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !collected.insert(folder.to_owned()) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_temporary(path))
    {
        let Ok(file) = open_own(OpenOptions::new().read(true), &path) else {
            continue;
        };
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        if regular && file.try_lock().is_ok() && is_at(&file, &path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a name is one that [`AtomicFile`] gives.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((target, letters)) = name.strip_suffix(SUFFIX).and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    target.len() > 1
        && target.starts_with('.')
        && letters.len() == LETTERS
        && letters.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// A file being written under a temporary name beside its target, which it replaces on [`commit`](Self::commit).
///
/// Dropped without a commit, it leaves nothing behind and the target as it was.
pub struct AtomicFile {
    target: PathBuf,
    /// `None` only once committed.
    file: Option<BufWriter<NamedTempFile>>,
}

impl AtomicFile {
    /// Begins a file that is to appear at `path`. Where that is a link, it stays one: what it points to is replaced.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let found = fs::metadata(&target);
        Self::begin(path, target, found.ok())
    }

    /// Begins a file of a folder that is ours, as it was made for results: a link in it is replaced and not followed, as it
    /// may lead anywhere.
    pub fn create_own(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let found = fs::symlink_metadata(path).ok().filter(|found| !found.is_symlink());
        Self::begin(path, path.to_owned(), found)
    }

    /// `found` is what is there already.
    fn begin(path: &Path, target: PathBuf, found: Option<fs::Metadata>) -> Result<Self, FileError> {
        let failed = |source, way_out| FileError::Write {
            target: path.display().to_string(),
            source,
            way_out,
        };
        match found {
            Some(found) if found.is_dir() => {
                return Err(failed(io::ErrorKind::IsADirectory.into(), "; name a file in it"));
            }
            // Renaming onto a device or a pipe would replace it for everyone.
            Some(found) if !found.is_file() => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                return Err(failed(source, "; name a regular file, or write to the standard output"));
            }
            _ => {}
        }
        let Some(name) = target.file_name() else {
            return Err(failed(io::ErrorKind::InvalidInput.into(), "; name a file"));
        };
        let folder = folder_of(&target);
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(LETTERS);
        #[cfg(unix)]
        {
            // What any new file gets: the umask takes its part from this.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        collect_left(folder);
        let file = temporary(&builder, folder).map_err(|e| {
            let way_out = match e.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; create the folder first",
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "; choose a folder you may write to"
                }
                _ => "",
            };
            failed(plain(e), way_out)
        })?;
        Ok(Self {
            target,
            file: Some(BufWriter::with_capacity(256 << 10, file)),
        })
    }

    /// Where the file is to appear.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// A file without a name on the same disk, for what has to wait until the rest is known; it is gone when it is
    /// closed, however the process ends.
    pub fn scratch(&self) -> Result<File, FileError> {
        tempfile::tempfile_in(folder_of(&self.target)).map_err(|e| FileError::write(self.target.display(), plain(e)))
    }

    /// Appends bytes; unlike [`Write::write_all`] its error names the file.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let target = self.target.display().to_string();
        self.write_all(bytes).map_err(|e| FileError::write(target, e))
    }

    /// Brings everything onto the disk and gives the file its name, which is then on the disk as well.
    pub fn commit(self) -> Result<(), FileError> {
        self.commit_with(&[])
    }

    /// The same for a file that others belong to: with it those are finished as well, and are not discarded any more.
    pub fn commit_with(self, others: &[PathBuf]) -> Result<(), FileError> {
        let target = self.target.clone();
        let persist = |file: NamedTempFile, target: &Path| file.persist(target).map(drop).map_err(|e| e.error);
        self.finish(File::sync_all, persist, others)?;
        sync_folder(folder_of(&target)).map_err(|e| FileError::write(target.display(), e))
    }

    /// Brings everything onto the disk and gives the file its name unless something has it already, which then stays. Says
    /// whether the name is this file's.
    pub fn publish(self) -> Result<bool, FileError> {
        let target = self.target.clone();
        let persist = |file: NamedTempFile, target: &Path| match file.persist_noclobber(target) {
            Ok(_) => Ok(true),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e.error),
        };
        let published = self.finish(File::sync_all, persist, &[])?;
        sync_folder(folder_of(&target)).map_err(|e| FileError::write(target.display(), e))?;
        Ok(published)
    }

    /// Gives the file its name unless something has it already, which then stays and is the error.
    ///
    /// It may reach the disk a little later: this is for copies, of which there are many and which can be made again.
    pub fn commit_new(self) -> Result<(), FileError> {
        let persist =
            |file: NamedTempFile, target: &Path| file.persist_noclobber(target).map(drop).map_err(|e| e.error);
        self.finish(|_| Ok(()), persist, &[])
    }

    fn finish<T: Default>(
        mut self,
        settle: impl FnOnce(&File) -> io::Result<()>,
        persist: impl FnOnce(NamedTempFile, &Path) -> io::Result<T>,
        others: &[PathBuf],
    ) -> Result<T, FileError> {
        let Some(writer) = self.file.take() else {
            return Ok(T::default());
        };
        let target = self.target.clone();
        let failed = |source: io::Error| FileError::write(target.display(), plain(source));
        let temporary = writer.get_ref().path().to_owned();
        let written = writer.into_inner().map_err(|e| e.into_error()).and_then(|file| {
            settle(file.as_file())?;
            // Held while renaming, so that `discard_unfinished` sees the file either before or after, never in between.
            let mut unfinished = unfinished();
            if !unfinished.remove(&temporary) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let persisted = persist(file, &self.target)?;
            others.iter().for_each(|other| {
                unfinished.remove(other);
            });
            Ok(persisted)
        });
        unfinished().remove(&temporary);
        written.map_err(failed)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.file {
            Some(file) => file.seek(to),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(writer) = self.file.take() {
            let path = writer.get_ref().path().to_owned();
            // Taken apart, so that what is still buffered is not written to a file about to go.
            let (file, _) = writer.into_parts();
            drop(file);
            unfinished().remove(&path);
        }
    }
}

/// A new temporary file that is locked and will be discarded.
fn temporary(builder: &Builder, folder: &Path) -> io::Result<NamedTempFile> {
    let mut unfinished = unfinished();
    loop {
        let file = builder.tempfile_in(folder)?;
        if cfg!(unix) {
            // Where there are no locks, nobody can have one and nothing is collected.
            let _ = file.as_file().lock();
        }
        // Before it was locked it looked like one that was left.
        if is_at(file.as_file(), file.path()) {
            unfinished.insert(file.path().to_owned());
            return Ok(file);
        }
    }
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The error without the temporary name that `tempfile` puts into its words.
fn plain(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        error
    } else {
        error.kind().into()
    }
}
