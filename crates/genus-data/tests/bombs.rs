//! Small files that would become large ones are refused by a limit that is named, before they do.

mod common;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder};
use arrow_array::{ArrayRef, LargeStringArray, RecordBatch};
use common::assert_mentions;
use genus_data::{TableOptions, for_each_cell, list_manifest, read_table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const MOST: usize = 1 << 20;

/// Lists of zeros of these lengths, and texts beside them.
fn write_parquet(path: &Path, lengths: &[usize], texts: Option<(&str, String)>, properties: WriterProperties) {
    let mut builder = ListBuilder::new(Float32Builder::new());
    for &length in lengths {
        builder.values().append_value_n(0.0, length);
        builder.append(true);
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![("embedding", Arc::new(builder.finish()))];
    if let Some((name, text)) = &texts {
        let texts = LargeStringArray::from_iter_values(lengths.iter().map(|_| text));
        columns.push((name, Arc::new(texts)));
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn refused(path: &Path, words: &[&str]) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let said = read_table(path).unwrap_err().to_string();
    assert_mentions(&said, &[&[name], words].concat());
}

#[test]
fn one_long_row_among_many_short_ones_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.parquet");
    // Whether values are plain or by another encoding, which Arrow reads.
    for encoding in [None, Some(Encoding::BYTE_STREAM_SPLIT)] {
        let properties = || {
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
            match encoding {
                Some(encoding) => properties.set_dictionary_enabled(false).set_encoding(encoding),
                None => properties,
            }
            .build()
        };
        // In the mean a row has few values.
        let mut lengths = vec![2; 5000];
        lengths[3] = MOST + 1;
        write_parquet(&path, &lengths, None, properties());
        assert!(path.metadata().unwrap().len() < 30_000);
        refused(&path, &["row 4", "1048577", "all rows need the same number"]);
        lengths.swap(0, 3);
        write_parquet(&path, &lengths, None, properties());
        refused(&path, &["1048577 values", "at most 1048576 features"]);
    }
}

#[test]
fn long_texts_of_a_dictionary_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.parquet");
    let text = "x".repeat((1 << 18) + 1);
    for column in ["id", "label", "encoder"] {
        write_parquet(&path, &[1; 50], Some((column, text.clone())), WriterProperties::new());
        refused(&path, &["row 1", column, "256 KiB"]);
    }
    write_parquet(&path, &[1; 50], Some(("path", text)), WriterProperties::new());
    let said = list_manifest(&path, &TableOptions::default()).unwrap_err().to_string();
    assert_mentions(&said, &["texts.parquet", "row 1", "256 KiB"]);
    let said = for_each_cell(&path, &["path"], &TableOptions::default(), |_, _| true)
        .unwrap_err()
        .to_string();
    assert_mentions(&said, &["texts.parquet", "256 KiB"]);
}

/// An archive whose arrays all have a head and so many zeros behind it.
fn write_npz(path: &Path, arrays: &[(&str, &str, &str, u64)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, kind, shape, length) in arrays {
        let options = SimpleFileOptions::default().compression_level(Some(1));
        archive.start_file(*name, options).unwrap();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
        archive.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        archive.write_all(header.as_bytes()).unwrap();
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), *length), &mut archive).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn arrays_that_grow_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.npz");
    let rows: u64 = (1 << 26) + 1;
    let shape = format!("({rows},)");
    let matrix = ("x.npy", "|u1", &*format!("({rows}, 1)"), rows);
    write_npz(&path, &[matrix, ("y.npy", "|u1", &shape, rows)]);
    refused(&path, &["\"y\"", "67108865 integers", "1024 MiB"]);
    write_npz(&path, &[("x.npy", "|u1", "(1, 1048577)", 1 << 20 | 1)]);
    refused(&path, &["1048577 values", "at most 1048576 features"]);
    // What the matrix claims is held against the limit before there is room made for it.
    let (rows, dim) = (1 << 18 | 1, 1 << 10);
    write_npz(&path, &[("x.npy", "|u1", &format!("({rows}, {dim})"), rows * dim)]);
    refused(&path, &["1 GiB", "256 times"]);
    let wide = 4 * ((1 << 16) + 1);
    let text = ("ids.npy", "<U65537", "(1,)", wide);
    write_npz(&path, &[("x.npy", "|u1", "(1, 1)", 1), text]);
    refused(&path, &["\"ids\"", "262148 bytes", "at most 262144"]);
}
