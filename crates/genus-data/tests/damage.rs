//! Damaged files are refused or, where the format cannot know, read for what is left; nothing ever panics.

mod common;

use std::io::{Seek, SeekFrom, Write};

use common::{BINARY, file, golden};
use genus_data::{TableReader, read_table};
use proptest::prelude::*;

const TEXT: [&str; 5] = ["rows.csv", "list.csv", "rows.jsonl", "wide.tsv", "wide.jsonl"];

/// Reads in small blocks until the end or an error; both are fine.
fn read_somehow(path: &std::path::Path) {
    if let Ok(mut reader) = TableReader::open(path) {
        while let Ok(Some(block)) = reader.next_block(2) {
            assert!(block.features.values().iter().all(|v| v.is_finite()));
        }
    }
}

fn shorten(path: &std::path::Path, length: usize) {
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(length as u64)
        .unwrap();
}

#[test]
fn binary_files_cut_off_anywhere_are_refused() {
    for name in BINARY {
        let bytes = std::fs::read(golden(name)).unwrap();
        let (_folder, path) = file(name, &bytes);
        for length in (0..bytes.len()).rev() {
            shorten(&path, length);
            let error = match read_table(&path) {
                Ok(_) => panic!("{name} cut off after {length} of {} bytes was read", bytes.len()),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(name), "{error}");
        }
    }
}

#[test]
fn text_files_cut_off_anywhere_give_a_prefix_or_an_error() {
    for name in TEXT {
        let whole = read_table(golden(name)).unwrap().table;
        let bytes = std::fs::read(golden(name)).unwrap();
        let (_folder, path) = file(name, &bytes);
        for length in (0..bytes.len()).rev() {
            shorten(&path, length);
            match read_table(&path) {
                // The last row may have lost digits or letters; those before it are as they were.
                Ok(file) => {
                    let kept = file.table.len() - 1;
                    assert_eq!(file.table.ids[..kept], whole.ids[..kept], "{name} {length}");
                    assert_eq!(file.table.labels[..kept], whole.labels[..kept], "{name} {length}");
                }
                Err(error) => assert!(error.to_string().contains(name), "{error}"),
            }
        }
    }
}

#[test]
fn every_byte_may_be_anything() {
    for name in BINARY.into_iter().chain(TEXT) {
        let bytes = std::fs::read(golden(name)).unwrap();
        let (_folder, path) = file(name, &bytes);
        // In place: writing the whole file anew takes the file system a hundred times as long.
        let mut open = std::fs::File::options().write(true).open(&path).unwrap();
        let mut put = |at: usize, value: u8| {
            open.seek(SeekFrom::Start(at as u64)).unwrap();
            open.write_all(&[value]).unwrap();
        };
        for (at, &right) in bytes.iter().enumerate() {
            for value in [0, 0xff, right ^ 1] {
                put(at, value);
                read_somehow(&path);
            }
            put(at, right);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scattered_damage_never_panics(
        which in 0..BINARY.len() + TEXT.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let name = BINARY.into_iter().chain(TEXT).nth(which).unwrap();
        let mut bytes = std::fs::read(golden(name)).unwrap();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (_folder, path) = file(name, &bytes);
        read_somehow(&path);
    }

    #[test]
    fn garbage_never_panics(which in 0..6usize, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let name = ["f.npy", "f.npz", "f.safetensors", "f.csv", "f.jsonl", "f.parquet"][which];
        let (_folder, path) = file(name, &bytes);
        read_somehow(&path);
    }
}
