//! Any bytes are a split of classes or an error, and a split that fits some classes names no other.
#![cfg_attr(fuzzing, no_main)]

use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::Split;
use genus_fuzz::{folder, fuzz_target, write};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| folder("split").join("split.json"));

fuzz_target!(|bytes: &[u8]| {
    write(&FILE, bytes);
    let Ok(split) = Split::read(&*FILE) else { return };
    let classes = ["cat", "dog", "owl", "0", "1"].map(str::to_owned);
    for names in [None, Some(&classes[..3])] {
        if let Ok(found) = split.resolve(&classes, names) {
            assert!(
                found
                    .base
                    .iter()
                    .chain(&found.novel)
                    .all(|class| classes.contains(class))
            );
        }
    }
});
