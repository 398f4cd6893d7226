//! An output file is there whole or not at all.

mod common;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::assert_mentions;
use genus_files::{AtomicFile, discard_unfinished, open_own};

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
    std::thread::spawn(|| drop(discard_unfinished())).join().unwrap();
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

#[test]
fn what_a_killed_process_left_is_collected() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "half").unwrap();
        std::fs::File::open(path).unwrap()
    };
    write(".out.csv.a1B2c3.genus.tmp");
    write(".other.x.a1B2c3.genus.tmp");
    // One of a process that lives, and what others call theirs.
    let living = write(".out.csv.d4E5f6.genus.tmp");
    living.lock().unwrap();
    let others = [
        ".out.csv.a1B2c3.tmp",
        "out.csv.a1B2c3.genus.tmp",
        ".out.csv.long-name.genus.tmp",
    ];
    others.iter().for_each(|name| drop(write(name)));
    AtomicFile::create(folder.path().join("out.csv"))
        .unwrap()
        .commit()
        .unwrap();
    let mut left = names(&folder);
    left.sort();
    let mut expected: Vec<&str> = others.to_vec();
    expected.extend([".out.csv.d4E5f6.genus.tmp", "out.csv"]);
    expected.sort();
    match cfg!(unix) {
        true => assert_eq!(left, expected),
        false => assert_eq!(left.len(), expected.len() + 2),
    }
}

#[test]
fn nothing_is_begun_once_the_process_is_being_ended() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let discarded = discard_unfinished();
    let (send, began) = std::sync::mpsc::channel();
    let begin = std::thread::spawn(move || {
        let file = AtomicFile::create(path).unwrap();
        send.send(()).unwrap();
        drop(file);
    });
    // It waits for the end, which does not come here.
    assert!(began.recv_timeout(std::time::Duration::from_millis(100)).is_err());
    assert_eq!(names(&folder), [""; 0]);
    drop(discarded);
    began.recv().unwrap();
    begin.join().unwrap();
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
    fn a_link_in_a_folder_of_ours_is_replaced() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::fs::write(&target, "somebody's").unwrap();
        symlink(&target, &link).unwrap();
        let mut options = std::fs::OpenOptions::new();
        let refused = open_own(options.write(true).truncate(true), &link)
            .unwrap_err()
            .to_string();
        assert_mentions(&refused, &["link", "remove it"]);
        let mut file = AtomicFile::create_own(&link).unwrap();
        file.write_all(b"ours").unwrap();
        file.commit().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "ours");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "somebody's");
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

#[test]
fn of_those_that_are_published_under_a_name_the_first_stays() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.csv");
    let begin = |text: &str| {
        let mut file = AtomicFile::create_own(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let (first, second) = (begin("first"), begin("second"));
    assert!(!path.exists());
    assert!(second.publish().unwrap());
    assert!(!first.publish().unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
    assert_eq!(names(&folder), ["part.csv"]);
    // Of many at once one wins, and what is there is whole.
    let path = folder.path().join("race.csv");
    let wins: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|at| {
                let path = &path;
                scope.spawn(move || {
                    let mut file = AtomicFile::create_own(path).unwrap();
                    file.write_all(at.to_string().repeat(1000).as_bytes()).unwrap();
                    usize::from(file.publish().unwrap())
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(wins, 1);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() == 1000 && text.bytes().all(|byte| byte == text.as_bytes()[0]));
}
