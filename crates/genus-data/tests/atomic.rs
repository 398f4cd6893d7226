//! An output file is there whole or not at all.

mod common;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::assert_mentions;
use genus_data::{AtomicFile, discard_unfinished};

/// `discard_unfinished` works on all files of the process, so the tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn an_existing_file_is_replaced_only_on_commit() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    std::fs::write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    file.flush().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    file.commit().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(names(&folder), ["out.csv"]);
}

#[test]
fn a_dropped_file_leaves_nothing() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&[1; 1 << 20]).unwrap();
    let [name] = &names(&folder)[..] else {
        panic!("no temporary file")
    };
    assert!(name.starts_with(".out.csv."), "{name} is not hidden");
    drop(file);
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn unfinished_files_can_be_discarded_from_outside() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let done = AtomicFile::create(folder.path().join("done")).unwrap();
    done.commit().unwrap();
    let mut file = AtomicFile::create(folder.path().join("out")).unwrap();
    file.write_all(b"half").unwrap();
    assert_eq!(names(&folder).len(), 2);
    std::thread::spawn(discard_unfinished).join().unwrap();
    assert_eq!(names(&folder), ["done"]);
    // What was discarded cannot appear any more.
    let message = file.commit().unwrap_err().to_string();
    assert_mentions(&message, &["out"]);
    assert_eq!(names(&folder), ["done"]);
}

#[test]
fn unusable_targets_are_refused_with_the_way_out() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &std::path::Path| AtomicFile::create(path).err().map(|e| e.to_string()).unwrap();
    assert_mentions(
        &message(&folder.path().join("none/out.csv")),
        &["none/out.csv", "create the folder first"],
    );
    assert_mentions(
        &message(folder.path()),
        &["cannot write", "is a directory", "name a file in it"],
    );
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert_mentions(
        &message(&folder.path().join("file/out.csv")),
        &["file/out.csv", "create the folder first"],
    );
    assert!(!message(&folder.path().join("none/out.csv")).contains(".out.csv."));
}

#[test]
fn a_target_that_becomes_unusable_leaves_nothing() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let file = AtomicFile::create(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_mentions(&file.commit().unwrap_err().to_string(), &["cannot write", "out"]);
    assert_eq!(names(&folder), ["out"]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_file_has_the_permissions_of_any_new_file() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("ours"), folder.path().join("other"));
        AtomicFile::create(&ours).unwrap().commit().unwrap();
        std::fs::write(&other, "").unwrap();
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn an_unwritable_folder_is_refused() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
        // The superuser may write anywhere: then there is nothing to be refused.
        if std::fs::write(folder.path().join("probe"), "").is_err() {
            let message = AtomicFile::create(folder.path().join("out.csv"))
                .err()
                .unwrap()
                .to_string();
            assert_mentions(&message, &["out.csv", "choose a folder you may write to"]);
        }
        // Where even the superuser may not create files.
        if std::path::Path::new("/proc/self").is_dir() {
            let message = AtomicFile::create("/proc/self/out.csv").err().unwrap().to_string();
            assert_mentions(&message, &["cannot write /proc/self/out.csv"]);
        }
    }

    #[test]
    fn devices_are_not_replaced() {
        let _turn = turn();
        let message = AtomicFile::create("/dev/null").err().unwrap().to_string();
        assert_mentions(&message, &["/dev/null", "not a regular file", "standard output"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
    }
}
