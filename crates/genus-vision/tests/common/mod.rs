//! What the tests of images share.

use std::path::PathBuf;

use serde_json::Value;

/// The folder of the goldens.
pub(crate) fn goldens() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// The table that the golden script wrote.
pub(crate) fn table() -> Value {
    let text = std::fs::read_to_string(goldens().join("images.json")).expect("the goldens are there");
    serde_json::from_str(&text).expect("the goldens are JSON")
}

/// Name and bytes of every golden image.
pub(crate) fn images() -> Vec<(String, Vec<u8>)> {
    let table = table();
    let names = table["images"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["name"].as_str().expect("a name"));
    names
        .map(|name| {
            let bytes = std::fs::read(goldens().join("images").join(name)).expect("the image is there");
            (name.to_owned(), bytes)
        })
        .collect()
}
