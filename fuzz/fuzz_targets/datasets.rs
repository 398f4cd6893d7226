//! Any bytes are a file of a data set or an error: no panic, no endless loop, no memory without bounds, pixels lie inside the file
//! and images in the folder.
#![cfg_attr(fuzzing, no_main)]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::datasets::{DatasetEntry, Images};
use genus_fuzz::{chosen, folder, fuzz_target, write};

/// A data set, the file of it that is fuzzed, and the files that it needs beside that one.
type Layout = (&'static str, &'static str, &'static [(&'static str, &'static [u8])]);

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../../crates/genus-data/tests/goldens/datasets/", $name))
    };
}

const BIRDS: &[(&str, &[u8])] = &[
    ("images/001.Bird/a.jpg", b""),
    ("images.txt", b"1 001.Bird/a.jpg\n"),
    ("image_class_labels.txt", b"1 1\n"),
    ("train_test_split.txt", b"1 1\n"),
];
const AIRCRAFT: &[(&str, &[u8])] = &[
    ("data/images/1.jpg", b""),
    ("data/variants.txt", b"707-320\n727-200\n"),
    ("data/images_variant_trainval.txt", b"1 707-320\n"),
];

const LAYOUTS: [Layout; 16] = [
    ("cars", "cars_train_annos.mat", &[("cars_train/00001.jpg", b"")]),
    ("cifar100", "train", &[]),
    ("cub200", "images.txt", BIRDS),
    ("cub200", "image_class_labels.txt", BIRDS),
    ("cub200", "train_test_split.txt", BIRDS),
    ("cub200", "classes.txt", BIRDS),
    ("aircraft", "data/variants.txt", AIRCRAFT),
    ("aircraft", "data/images_variant_trainval.txt", AIRCRAFT),
    (
        "aircraft",
        "data/images_variant_train.txt",
        &[
            ("data/images/1.jpg", b""),
            ("data/variants.txt", b"707-320\n"),
            ("data/images_variant_val.txt", b"1 707-320\n"),
        ],
    ),
    (
        "cars",
        "cars_meta.mat",
        &[
            ("cars_train/00001.jpg", b""),
            ("cars_train_annos.mat", golden!("cars_train_annos.mat")),
        ],
    ),
    ("cars", "cars_annos.mat", &[("car_ims/000001.jpg", b"")]),
    ("cars", "anno_train.csv", &[("cars_train/00001.jpg", b"")]),
    (
        "cars",
        "names.csv",
        &[
            ("cars_train/00001.jpg", b""),
            ("anno_train.csv", b"00001.jpg,1,2,3,4,14\n"),
        ],
    ),
    ("cifar100", "meta", &[("train", golden!("cifar_protocol4"))]),
    ("cifar100", "train.bin", &[]),
    ("cifar100", "fine_label_names.txt", &[("train.bin", &[1; 3074])]),
];

/// A folder for each of them, with all but the file that is fuzzed.
static FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let folders = LAYOUTS.iter().enumerate().map(|(number, (_, _, others))| {
        let folder = folder(&format!("datasets/{number}"));
        others.iter().for_each(|(file, bytes)| write(&folder.join(file), bytes));
        folder
    });
    folders.collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, LAYOUTS.len()) else {
        return;
    };
    let (name, file, _) = LAYOUTS[which];
    write(&FOLDERS[which].join(file), rest);
    let entry = DatasetEntry::find(name).unwrap();
    if let Ok(set) = entry.open(&FOLDERS[which], Images::Train) {
        for item in &set.list.items {
            let Some(pixels) = item.pixels else { continue };
            let end = pixels.offset + 3 * u64::from(pixels.width) * u64::from(pixels.height);
            assert!(end <= fs::metadata(&item.path).unwrap().len());
        }
        // What annotations name lies in the folder.
        let outside = |path: &PathBuf| !fs::canonicalize(path).is_ok_and(|path| path.starts_with(&FOLDERS[which]));
        assert!(!set.list.items.iter().any(|item| outside(&item.path)));
    }
});
