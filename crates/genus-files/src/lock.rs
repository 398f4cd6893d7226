//! One process at a time in a folder that is changed in several steps.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::atomic;
use crate::error::FileError;

/// The file that is locked.
const NAME: &str = ".genus.lock";
/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much is said of the command of who holds a lock.
const COMMAND_LENGTH: usize = 200;

/// The right to change a folder, which one process has at a time.
///
/// The operating system takes it back when the process ends, however that happens. Where the file system knows no locks it is
/// given to everyone.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl FolderLock {
    /// Takes the lock of a folder that exists. Another process that has it is waited for a few seconds; then the error says who
    /// it is.
    pub fn take(folder: impl AsRef<Path>) -> Result<Self, FileError> {
        let folder = folder.as_ref();
        let path = folder.join(NAME);
        let failed = |source| FileError::write(path.display(), source);
        let give_up = Instant::now() + PATIENCE;
        loop {
            let mut file = open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(failed(e)),
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                    sleep(LOOK_EVERY);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(FileError::Locked {
                        folder: folder.to_owned(),
                        holder: holder(&file),
                    });
                }
            }
            // Whoever had it before may have taken the file away in between: then this lock is of no file.
            if atomic::is_at(&file, &path) {
                // Who it is matters to people only.
                let _ = introduce(&mut file);
                atomic::discard_later(&path);
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Elsewhere a name cannot be told from the file that had it, and the file stays.
        if cfg!(unix) {
            atomic::discard(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    atomic::open_own(&mut options, path)
}

/// Writes down who holds a lock.
fn introduce(file: &mut File) -> io::Result<()> {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command: String = words.join(" ").chars().take(COMMAND_LENGTH).collect();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("process {} (genus {command})", std::process::id()).as_bytes())
}

/// Who holds a lock, as far as is known.
fn holder(file: &File) -> String {
    let mut text = Vec::new();
    // A command of so many characters, and what is around it.
    let most = 4 * COMMAND_LENGTH as u64 + 64;
    let read = file.take(most).read_to_end(&mut text);
    let text: String = String::from_utf8_lossy(&text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process".to_owned(),
    }
}
