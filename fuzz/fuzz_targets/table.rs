//! Any bytes are a feature table of any format or an error: no panic, no endless loop, no memory without bounds, and what
//! is read keeps its promises.
#![cfg_attr(fuzzing, no_main)]

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use genus_data::{TableOptions, TableReader, for_each_cell};
use genus_fuzz::{chosen, folder, fuzz_target, pass_panics_of_parquet, write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The archive of the seventh and the compressed text of the last are made here, so that their checksums are right and changes reach
/// what is in them.
const FORMATS: [&str; 10] = [
    "npy",
    "npz",
    "safetensors",
    "csv",
    "jsonl",
    "parquet",
    "npz",
    "feather",
    "tsv",
    "csv.gz",
];

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| folder("table"));

/// An archive of four arrays, whose lengths stand first.
fn archive(bytes: &[u8]) -> Option<Vec<u8>> {
    let (lengths, mut rest) = bytes.split_first_chunk::<3>()?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let lengths = lengths.iter().map(|&length| usize::from(length)).chain([usize::MAX]);
    for (name, length) in ["ids.npy", "y.npy", "classes.npy", "x.npy"].into_iter().zip(lengths) {
        let (array, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        if !array.is_empty() {
            let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            archive.start_file(name, options).unwrap();
            archive.write_all(array).unwrap();
        }
    }
    Some(archive.finish().unwrap().into_inner())
}

fuzz_target!(init: pass_panics_of_parquet(), |bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, FORMATS.len()) else { return };
    let path = FOLDER.join(format!("table.{}", FORMATS[which]));
    match which {
        6 => match archive(rest) {
            Some(archive) => write(&path, &archive),
            None => return,
        },
        9 => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(rest).unwrap();
            write(&path, &packed.finish().unwrap());
        }
        _ => write(&path, rest),
    }
    if let Ok(mut reader) = TableReader::open(&path) {
        let dim = reader.dim();
        assert!(dim > 0);
        while let Ok(Some(block)) = reader.next_block(100) {
            assert!(!block.is_empty() && block.len() <= 100);
            assert_eq!(block.features.dim(), dim);
            assert_eq!(block.features.values().len(), dim * block.len());
            assert_eq!(block.labels.len(), block.len());
            assert!(block.features.values().iter().all(|value| value.is_finite()));
        }
    }
    if FORMATS[which] != "npz" {
        let _ = for_each_cell(&path, &["label", "text"], &TableOptions::default(), |_, _| true);
    }
});
