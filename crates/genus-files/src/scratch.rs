//! Folders for one run only.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use tempfile::{Builder, TempDir};

use crate::atomic;

const PREFIX: &str = "genus-";
const LETTERS: usize = 6;
/// Locked as long as the folder is in use.
const LOCK: &str = "lock";

/// How old an empty folder is that nobody will use any more.
const STALE: Duration = Duration::from_secs(3600);

/// A folder among the system's temporary ones that goes with this value, with the process when a signal ends it, and with the
/// next such folder of anybody when it was killed.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    _lock: File,
}

impl ScratchFolder {
    /// Makes one.
    pub fn new() -> io::Result<Self> {
        static COLLECT: Once = Once::new();
        COLLECT.call_once(|| collect_left(&env::temp_dir()));
        loop {
            let folder = atomic::remembered(|| {
                let folder = Builder::new().prefix(PREFIX).rand_bytes(LETTERS).tempdir()?;
                let path = folder.path().to_owned();
                Ok((folder, path))
            })?;
            let path = folder.path().join(LOCK);
            let lock = File::create_new(&path)?;
            if cfg!(unix) {
                // Where there are no locks, nothing is collected.
                let _ = lock.lock();
            }
            // Before it was locked it looked like one that was left.
            if atomic::is_at(&lock, &path) {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        atomic::discard(self.folder.path());
    }
}

/// Removes the folders of processes that were killed: those whose lock can be had.
fn collect_left(folder: &Path) {
    if !cfg!(unix) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path: PathBuf = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || !is_scratch(&path) {
            continue;
        }
        let lock = path.join(LOCK);
        let Ok(file) = atomic::open_own(OpenOptions::new().read(true), &lock) else {
            // One that is being made, or somebody else's. If it stays empty, nobody makes it any more.
            let age = entry
                .metadata()
                .and_then(|found| found.modified())
                .ok()
                .and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_dir(&path);
            }
            continue;
        };
        if file.metadata().is_ok_and(|found| found.is_file()) && file.try_lock().is_ok() && atomic::is_at(&file, &lock)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_scratch(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix(PREFIX)
        .is_some_and(|letters| letters.len() == LETTERS && letters.bytes().all(|b| b.is_ascii_alphanumeric()))
}
