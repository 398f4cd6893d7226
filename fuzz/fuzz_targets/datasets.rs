//! Any bytes are annotations of Stanford Cars or a pickle of CIFAR-100, or an error: no panic, no endless loop, no memory
//! without bounds, and pixels lie inside the file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::datasets::{DatasetEntry, Images};
use libfuzzer_sys::fuzz_target;

/// A folder for each data set, with all but the file that is fuzzed.
static FOLDERS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("genus-fuzz-{}", std::process::id()));
    let folders = [root.join("cars"), root.join("cifar")];
    fs::create_dir_all(folders[0].join("cars_train")).unwrap();
    fs::create_dir_all(&folders[1]).unwrap();
    fs::write(folders[0].join("cars_train/00001.jpg"), "").unwrap();
    folders
});

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses the data set.
    let Some((first, rest)) = bytes.split_first() else { return };
    let which = usize::from(first % 2);
    let name = ["cars", "cifar100"][which];
    let file = FOLDERS[which].join(["cars_train_annos.mat", "train"][which]);
    fs::write(&file, rest).unwrap();
    let entry = DatasetEntry::find(name).unwrap();
    if let Ok(set) = entry.open(&FOLDERS[which], Images::Train) {
        for pixels in set.list.items.iter().filter_map(|item| item.pixels) {
            let end = pixels.offset + 3 * u64::from(pixels.width) * u64::from(pixels.height);
            assert!(end <= rest.len() as u64);
        }
    }
});
