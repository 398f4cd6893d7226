//! Files that appear whole or not at all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

use crate::error::DataError;

/// The temporary files of this process that are neither committed nor removed.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // The set is whole after every operation, whatever happened to the thread that held it.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes the temporary file of every [`AtomicFile`] that is not committed, for a process that is about to be ended by
/// a signal.
pub fn discard_unfinished() {
    for path in std::mem::take(&mut *unfinished()) {
        // Nothing is left to be done about a file that cannot be deleted.
        let _ = fs::remove_file(path);
    }
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
    /// Begins a file that is to appear at `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let failed = |source, way_out| DataError::Write {
            target: path.display().to_string(),
            source,
            way_out,
        };
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => {
                return Err(failed(io::ErrorKind::IsADirectory.into(), "; name a file in it"));
            }
            // Renaming onto a device or a pipe would replace it for everyone.
            Ok(found) if !found.is_file() => {
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
        builder.prefix(&prefix).suffix(".tmp");
        #[cfg(unix)]
        {
            // What any new file gets: the umask takes its part from this.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(|e| {
            let way_out = match e.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; create the folder first",
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "; choose a folder you may write to"
                }
                _ => "",
            };
            failed(plain(e), way_out)
        })?;
        unfinished().insert(file.path().to_owned());
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
    pub(crate) fn scratch(&self) -> Result<File, DataError> {
        tempfile::tempfile_in(folder_of(&self.target)).map_err(|e| DataError::write(self.target.display(), plain(e)))
    }

    /// Brings everything onto the disk and gives the file its name.
    pub fn commit(self) -> Result<(), DataError> {
        let persist = |file: NamedTempFile, target: &Path| file.persist(target).map(drop).map_err(|e| e.error);
        self.finish(File::sync_all, persist)
    }

    /// Gives the file its name unless something has it already, which then stays and is the error.
    ///
    /// It may reach the disk a little later: this is for copies, of which there are many and which can be made again.
    pub(crate) fn commit_new(self) -> Result<(), DataError> {
        let persist =
            |file: NamedTempFile, target: &Path| file.persist_noclobber(target).map(drop).map_err(|e| e.error);
        self.finish(|_| Ok(()), persist)
    }

    fn finish(
        mut self,
        settle: impl FnOnce(&File) -> io::Result<()>,
        persist: impl FnOnce(NamedTempFile, &Path) -> io::Result<()>,
    ) -> Result<(), DataError> {
        let Some(writer) = self.file.take() else { return Ok(()) };
        let target = self.target.clone();
        let failed = |source: io::Error| DataError::write(target.display(), plain(source));
        let temporary = writer.get_ref().path().to_owned();
        let written = writer.into_inner().map_err(|e| e.into_error()).and_then(|file| {
            settle(file.as_file())?;
            // Held while renaming, so that `discard_unfinished` sees the file either before or after, never in between.
            let mut unfinished = unfinished();
            if !unfinished.remove(&temporary) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            persist(file, &self.target)
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

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
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
