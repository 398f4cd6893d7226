//! Folders for one run are gone after it, however it ends.

use std::fs::{self, File};
use std::path::PathBuf;

use genus_files::{ScratchFolder, discard_unfinished};

/// A folder as a killed process leaves it.
fn left(name: &str, lock: bool) -> (PathBuf, Option<File>) {
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("features.parquet"), "half").unwrap();
    let lock = lock.then(|| File::create(path.join("lock")).unwrap());
    (path, lock)
}

/// One test, as what was left is looked for once in a process.
#[test]
fn folders_go_with_their_process() {
    // Names of this process only: the folder is everybody's.
    let number = std::process::id() % 100_000;
    let (killed, _) = left(&format!("genus-{number:05}k"), true);
    let (living, lock) = left(&format!("genus-{number:05}l"), true);
    lock.as_ref().unwrap().lock().unwrap();
    let (others, _) = left(&format!("genus-{number:05}o"), false);
    let (named, _) = left(&format!("genus-notes-{number:05}"), true);
    let folder = ScratchFolder::new().unwrap();
    assert_eq!(killed.exists(), !cfg!(unix));
    assert!(living.exists() && others.exists() && named.exists());
    let path = folder.path().to_owned();
    fs::write(path.join("inside"), "").unwrap();
    drop(folder);
    assert!(!path.exists());
    let folder = ScratchFolder::new().unwrap();
    fs::write(folder.path().join("inside"), "").unwrap();
    drop(discard_unfinished());
    assert!(!folder.path().exists());
    for path in [killed, living, others, named] {
        fs::remove_dir_all(path).ok();
    }
}
