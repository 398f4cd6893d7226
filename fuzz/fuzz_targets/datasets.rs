//! Any bytes are the annotations of a data set or an error: no panic, no endless loop, no memory without bounds, and pixels
//! lie inside the file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::datasets::{DatasetEntry, Images};
use genus_fuzz::{chosen, folder, write};
use libfuzzer_sys::fuzz_target;

/// A data set and the file of it that is fuzzed.
const FUZZED: [(&str, &str); 8] = [
    ("cars", "cars_train_annos.mat"),
    ("cifar100", "train"),
    ("cub200", "images.txt"),
    ("cub200", "image_class_labels.txt"),
    ("cub200", "train_test_split.txt"),
    ("cub200", "classes.txt"),
    ("aircraft", "data/variants.txt"),
    ("aircraft", "data/images_variant_trainval.txt"),
];

/// What the others need beside it.
const OTHERS: [(&str, &str, &str); 8] = [
    ("cars", "cars_train/00001.jpg", ""),
    ("cub200", "images/001.Bird/a.jpg", ""),
    ("cub200", "images.txt", "1 001.Bird/a.jpg\n"),
    ("cub200", "image_class_labels.txt", "1 1\n"),
    ("cub200", "train_test_split.txt", "1 1\n"),
    ("aircraft", "data/images/1.jpg", ""),
    ("aircraft", "data/variants.txt", "707-320\n727-200\n"),
    ("aircraft", "data/images_variant_trainval.txt", "1 707-320\n"),
];

/// A folder for each of them, with all but the file that is fuzzed.
static FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let folders = FUZZED.iter().enumerate().map(|(number, (name, _))| {
        let folder = folder(&format!("datasets/{number}"));
        for (_, file, text) in OTHERS.iter().filter(|(of, ..)| of == name) {
            write(&folder.join(file), text.as_bytes());
        }
        folder
    });
    folders.collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, FUZZED.len()) else {
        return;
    };
    let (name, file) = FUZZED[which];
    write(&FOLDERS[which].join(file), rest);
    let entry = DatasetEntry::find(name).unwrap();
    if let Ok(set) = entry.open(&FOLDERS[which], Images::Train) {
        for item in &set.list.items {
            let Some(pixels) = item.pixels else { continue };
            let end = pixels.offset + 3 * u64::from(pixels.width) * u64::from(pixels.height);
            assert!(end <= rest.len() as u64);
        }
        // What annotations name lies in the folder.
        let outside = |path: &PathBuf| !fs::canonicalize(path).is_ok_and(|path| path.starts_with(&FOLDERS[which]));
        assert!(!set.list.items.iter().any(|item| outside(&item.path)));
    }
});
