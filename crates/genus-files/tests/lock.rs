//! A folder is changed by one process at a time.

mod common;

use std::fs::{self, File};
use std::time::Duration;

use common::assert_mentions;
use genus_files::FolderLock;

const NAME: &str = ".genus.lock";

#[test]
fn the_second_is_told_who_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let lock = FolderLock::take(folder.path()).unwrap();
    let refused = FolderLock::take(folder.path()).unwrap_err().to_string();
    let process = format!("process {}", std::process::id());
    assert_mentions(&refused, &[&folder.path().display().to_string(), &process, "wait"]);
    drop(lock);
    FolderLock::take(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_second_waits_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let lock = FolderLock::take(folder.path()).unwrap();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(lock);
    });
    FolderLock::take(folder.path()).unwrap();
    other.join().unwrap();
}

#[test]
fn the_file_of_a_killed_process_is_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(NAME), "process 1 (genus assign)").unwrap();
    let lock = FolderLock::take(folder.path()).unwrap();
    let words = fs::read_to_string(folder.path().join(NAME)).unwrap();
    assert!(
        words.starts_with(&format!("process {} (genus", std::process::id())),
        "{words}"
    );
    drop(lock);
}

#[test]
fn only_one_of_many_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("counter");
    fs::write(&counter, "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let _lock = FolderLock::take(folder.path()).unwrap();
                    let count: u32 = fs::read_to_string(&counter).unwrap().parse().unwrap();
                    fs::write(&counter, (count + 1).to_string()).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&counter).unwrap(), "160");
}

#[test]
fn a_strange_lock_is_described_safely() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(NAME), format!("\u{1b}[31m{}", "x".repeat(100_000))).unwrap();
    let file = File::open(folder.path().join(NAME)).unwrap();
    file.lock().unwrap();
    let refused = FolderLock::take(folder.path()).unwrap_err().to_string();
    assert!(refused.len() < 2000 && !refused.contains('\u{1b}'), "{refused}");
}
