//! Any bytes are a list of images or an error: no panic, no endless loop, and every image has an id of its own.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::{TableOptions, list_manifest};
use genus_fuzz::{chosen, folder, fuzz_target, pass_panics_of_parquet, write};

const FORMATS: [&str; 6] = ["txt", "csv", "jsonl", "parquet", "feather", "csv.gz"];

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| folder("manifest"));

fuzz_target!(init: pass_panics_of_parquet(), |bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, FORMATS.len()) else { return };
    let path = FOLDER.join(format!("images.{}", FORMATS[which]));
    write(&path, rest);
    if let Ok(list) = list_manifest(&path, &TableOptions::default()) {
        let ids: BTreeSet<&str> = list.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), list.items.len());
    }
});
