//! Any bytes are a list of images or an error: no panic, no endless loop, and every image has an id of its own.
#![no_main]

use std::collections::BTreeSet;
use std::path::Path;

use genus_data::{ManifestFormat, read_manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses the format.
    let Some((first, rest)) = bytes.split_first() else { return };
    let format = [ManifestFormat::Text, ManifestFormat::Csv, ManifestFormat::Jsonl][usize::from(first % 3)];
    if let Ok(list) = read_manifest(rest, format, Path::new("fuzz"), Path::new("folder")) {
        let ids: BTreeSet<&str> = list.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), list.items.len());
    }
});
