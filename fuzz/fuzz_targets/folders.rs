//! Any names of files and folders are a data set that has a folder a class, or an error: no panic, no endless loop; every image
//! has an id of its own and lies where it was put.
#![cfg_attr(fuzzing, no_main)]

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::datasets::{DATASETS, DatasetEntry, Images};
use genus_fuzz::{chosen, folder, fuzz_target, write};

/// The most files of an input.
const FILES: usize = 16;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| folder("folders"));

/// What an input names, without the paths that would lead out of the folder.
fn names(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| str::from_utf8(line).ok());
    let is_inside = |line: &&str| {
        let part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.len() < 200;
        !line.contains('\0') && line.split('/').count() < 8 && line.split('/').all(part)
    };
    lines.filter(is_inside).take(FILES)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, DATASETS.len()) else {
        return;
    };
    let Some((images, rest)) = chosen(rest, Images::ALL.len()) else {
        return;
    };
    let root = FOLDER.join("set");
    fs::create_dir_all(&root).unwrap();
    for name in names(rest) {
        let path = root.join(name);
        // A name may be that of a folder which is there already, or need a file to be one.
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
            write(&path, b"");
        }
    }
    let entry = DatasetEntry::find(DATASETS[which].name).unwrap();
    if let Ok(set) = entry.open(&root, Images::ALL[images]) {
        let mut ids = HashSet::new();
        for item in &set.list.items {
            assert!(ids.insert(&item.id), "{} is there twice", item.id);
            assert!(item.path.starts_with(&root) && item.path.is_file());
            assert!(item.label.as_ref().is_some_and(|label| set.classes.contains(label)));
        }
    }
    fs::remove_dir_all(&root).unwrap();
});
