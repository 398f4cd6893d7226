//! Any bytes are a segment of the feature cache: records that are whole are found, all others are not there.
#![cfg_attr(fuzzing, no_main)]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus_data::FeatureCache;
use genus_fuzz::{folder, fuzz_target};

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| folder("cache"));

fuzz_target!(|bytes: &[u8]| {
    drop(FeatureCache::open(&ROOT, "fuzz", 2).unwrap());
    let features = fs::read_dir(ROOT.join("features")).unwrap().next().unwrap().unwrap();
    fs::write(features.path().join("0.seg"), bytes).unwrap();
    let cache = FeatureCache::open(&ROOT, "fuzz", 2).unwrap();
    let mut key = [7; 32];
    key[0] = bytes.first().copied().unwrap_or_default();
    assert!(cache.get(&key).is_none_or(|row| row.len() == 2));
    FeatureCache::info(&ROOT).unwrap();
});
