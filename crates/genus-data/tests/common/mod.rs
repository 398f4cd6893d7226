//! What the tests of reading share.

// Every test binary uses its own part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use genus_data::{DataError, Table, TableFile, TableReader, read_table};

/// The features in every golden file.
pub(crate) const X: [[f32; 3]; 5] = [
    [1.0, -2.0, 0.5],
    [0.0, 0.25, 3.0],
    [-0.125, 8.0, 1.5],
    [2.0, 2.0, -4.0],
    [0.75, -1.0, 16.0],
];
pub(crate) const IDS: [&str; 5] = ["a", "b c", "d,e", "grüße", "日本"];
pub(crate) const LABELS: [Option<&str>; 5] = [Some("cat"), Some("dog"), None, Some("éléphant"), Some("cat")];
pub(crate) const CLASSES: [&str; 3] = ["cat", "dog", "éléphant"];

/// A file that PyArrow, NumPy or safetensors wrote.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name)
}

/// A golden file of each binary format.
pub(crate) const BINARY: [&str; 16] = [
    "f4.npy",
    "fortran.npy",
    "classes.npz",
    "texts_compressed.npz",
    "f4.safetensors",
    "list_f4.parquet",
    "fixed_f4.parquet",
    "dictionary.parquet",
    "pages_v2.parquet",
    "encoder.npz",
    "encoder_column.parquet",
    "wide.parquet",
    "lz4.feather",
    "zstd.feather",
    "category.feather",
    "list.feather",
];

/// A folder with one file of this name and content, and the file's path.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

/// What is said about a file of this name and content.
pub(crate) fn refusal(name: &str, content: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(name, content);
    message(read_table(&path), name)
}

/// The message of an error, which must name the file.
pub(crate) fn message(result: Result<TableFile, DataError>, name: &str) -> String {
    let message = match result {
        Ok(file) => panic!("{name} was read: {file:?}"),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(name), "{message:?} does not name {name}");
    message
}

/// Asserts that a text contains all parts.
#[track_caller]
pub(crate) fn assert_mentions(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
    }
}

/// A whole file, read in blocks of the given size.
pub(crate) fn read_in_blocks(path: &Path, max_rows: usize) -> Result<Table, DataError> {
    let mut reader = TableReader::open(path)?;
    let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(block) = reader.next_block(max_rows)? {
        assert!(
            !block.is_empty() && block.len() <= max_rows,
            "a block of {} rows where {max_rows} are allowed",
            block.len()
        );
        assert_eq!(block.features.rows(), block.len());
        assert_eq!(block.labels.len(), block.len());
        rows.extend(block.features.iter().map(<[f32]>::to_vec));
        ids.extend(block.ids);
        labels.extend(block.labels);
    }
    assert!(reader.next_block(max_rows)?.is_none(), "the end is not the end");
    if let Some(known) = reader.rows() {
        assert_eq!(known, ids.len() as u64);
    }
    let features = genus_core::Features::from_rows(rows).unwrap();
    Ok(Table { ids, labels, features })
}

/// The bytes of a `.npy` file of the given description and data.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_with_header(
        &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"),
        data,
    )
}

/// The bytes of a `.npy` file with any header.
pub(crate) fn npy_with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// The bytes of a `.npy` file of 32-bit floats.
pub(crate) fn npy_f32(rows: &[Vec<f32>]) -> Vec<u8> {
    let data: Vec<u8> = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    npy(
        "<f4",
        &format!("({}, {})", rows.len(), rows.first().map_or(0, Vec::len)),
        &data,
    )
}
