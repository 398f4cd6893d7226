//! Any bytes are a list of images or an error: no panic, no endless loop, and every image has an id of its own.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use genus_data::{ManifestFormat, list_manifest, read_manifest};
use genus_fuzz::{chosen, folder, fuzz_target, pass_panics_of_parquet, write};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| folder("manifest").join("images.parquet"));

fuzz_target!(init: pass_panics_of_parquet(), |bytes: &[u8]| {
    // The first byte chooses the format; Parquet is read from a file only.
    let Some((which, rest)) = chosen(bytes, 4) else { return };
    let formats = [ManifestFormat::Text, ManifestFormat::Csv, ManifestFormat::Jsonl];
    let found = match formats.get(which) {
        Some(&format) => read_manifest(rest, format, Path::new("fuzz"), Path::new("folder")),
        None => {
            write(&FILE, rest);
            list_manifest(&*FILE)
        }
    };
    if let Ok(list) = found {
        let ids: BTreeSet<&str> = list.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), list.items.len());
    }
});
