//! What the writer writes the reader reads, bit for bit, and so do NumPy, PyArrow and safetensors.

mod common;

use std::path::Path;
use std::process::Command;

use common::{IDS, LABELS, X, assert_mentions};
use genus_data::{DataError, FeatureWriter, TableReader, read_table};
use proptest::prelude::*;

const FORMATS: [&str; 5] = ["npz", "safetensors", "csv", "jsonl", "parquet"];
const MARK: &str = "clip vit-b/32 größe=224";

fn owned(texts: &[Option<&str>]) -> Vec<Option<String>> {
    texts.iter().map(|text| text.map(str::to_owned)).collect()
}

fn write_goldens(path: &Path) {
    let ids = IDS.map(str::to_owned);
    let labels = owned(&LABELS);
    let mut writer = FeatureWriter::create(path, 3, Some(MARK), true).unwrap();
    writer.write(&ids[..2], &labels[..2], X[..2].as_flattened()).unwrap();
    writer.write(&[], &[], &[]).unwrap();
    writer.write(&ids[2..], &labels[2..], X[2..].as_flattened()).unwrap();
    assert_eq!(writer.finish().unwrap(), 5);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn python_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        write_goldens(&folder.path().join(format!("written.{format}")));
    }
    let checked = Command::new("python3")
        .arg(common::golden("check_written.py"))
        .arg(folder.path())
        .output();
    match checked {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() != Some(77) => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        _ => eprintln!("skipped: no Python with NumPy, PyArrow and safetensors"),
    }
}

#[test]
fn every_format_gives_back_what_it_got() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("Written.{}", format.to_uppercase()));
        write_goldens(&path);
        let file = read_table(&path).unwrap();
        assert_eq!(file.table.ids, IDS, "{format}");
        assert_eq!(file.table.labels, owned(&LABELS), "{format}");
        assert_eq!(file.table.features.values(), X.as_flattened(), "{format}");
        assert_eq!(file.encoder.as_deref(), Some(MARK), "{format}");
        assert_eq!(names(folder.path()).len(), 1, "{format}");
    }
}

#[test]
fn a_file_without_labels_or_encoder_has_neither() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("w.{format}"));
        let mut writer = FeatureWriter::create(&path, 2, None, false).unwrap();
        writer.write(&["a".to_owned()], &[], &[1.0, 2.0]).unwrap();
        writer
            .write(&["b".to_owned()], &[Some("left out".to_owned())], &[3.0, 4.0])
            .unwrap();
        writer.finish().unwrap();
        let file = read_table(&path).unwrap();
        assert_eq!(file.table.labels, [None, None], "{format}");
        assert_eq!((file.encoder, file.class_names), (None, None), "{format}");
    }
}

#[test]
fn large_files_are_read_back() {
    // Enough for several batches and row groups of the formats that have them.
    let (rows, dim) = (25_000, 700);
    let value = |row: usize, column: usize| ((row * 31 + column * 7) % 1000) as f32 / 8.0 + 1.0;
    for format in ["npz", "safetensors", "parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("w.{format}"));
        let mut writer = FeatureWriter::create(&path, dim, Some("e"), true).unwrap();
        for first in (0..rows).step_by(1000) {
            let block = first..first + 1000;
            let ids: Vec<String> = block.clone().map(|row| format!("image {row}")).collect();
            let labels: Vec<_> = block.clone().map(|row| Some((row % 10).to_string())).collect();
            let values: Vec<f32> = block
                .flat_map(|row| (0..dim).map(move |column| value(row, column)))
                .collect();
            writer.write(&ids, &labels, &values).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), rows as u64);
        let mut reader = TableReader::open(&path).unwrap();
        assert_eq!(reader.rows(), Some(rows as u64));
        let mut row = 0;
        while let Some(block) = reader.next_block(4096).unwrap() {
            for (at, features) in block.features.iter().enumerate() {
                assert_eq!(block.ids[at], format!("image {row}"));
                assert_eq!(block.labels[at], Some((row % 10).to_string()));
                assert!(features.iter().enumerate().all(|(column, &v)| v == value(row, column)));
                row += 1;
            }
        }
        assert_eq!(row, rows);
    }
}

#[test]
fn an_unfinished_file_leaves_no_trace() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("w.{format}"));
        std::fs::write(&path, "as it was").unwrap();
        let mut writer = FeatureWriter::create(&path, 1, None, false).unwrap();
        writer.write(&["a".to_owned()], &[], &[1.0]).unwrap();
        drop(writer);
        let empty = FeatureWriter::create(&path, 1, None, false).unwrap();
        assert!(matches!(empty.finish(), Err(DataError::NoRows { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
        assert_eq!(names(folder.path()).len(), 1, "{format}");
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str, dim, mark| {
        let created = FeatureWriter::create(folder.path().join(name), dim, mark, true);
        created.err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_mentions(&create("w.npy", 1, None), &["w.npy", "ids", ".npz"]);
    assert_mentions(&create("w.txt", 1, None), &["w.txt", ".parquet"]);
    assert_mentions(&create("w.npz", 0, None), &["no features"]);
    assert_mentions(&create("w.npz", 1, Some("two\nlines")), &["one line"]);
    assert_mentions(&create("w.npz", 1, Some(" ")), &["one line"]);
    assert_mentions(&create("missing/w.npz", 1, None), &["missing", "create the folder"]);

    for format in FORMATS {
        let name = format!("w.{format}");
        let write = |ids: &[&str], labels: &[Option<&str>], rows: &[f32]| {
            let mut writer = FeatureWriter::create(folder.path().join(&name), 2, None, true).unwrap();
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            let written = writer.write(&ids, &owned(labels), rows);
            written.err().map(|e| e.to_string()).unwrap_or_default()
        };
        let two = [1.0, 2.0, 3.0, 4.0];
        let none = [None, None];
        assert_mentions(&write(&["a", "b"], &none, &two[..3]), &[&name, "3 numbers"]);
        assert_mentions(&write(&["a", "b"], &[None], &two), &[&name, "1 labels"]);
        assert_mentions(&write(&["a", "a"], &none, &two), &[&name, "row 1", "row 2", "\"a\""]);
        assert_mentions(&write(&["a", ""], &none, &two), &[&name, "row 2", "empty"]);
        assert_mentions(&write(&["a", "b\0"], &none, &two), &[&name, "row 2", "NUL"]);
        let nan = [1.0, 2.0, 3.0, f32::NAN];
        assert_mentions(&write(&["a", "b"], &none, &nan), &[&name, "row 2", "feature 2", "NaN"]);
        let zero = [1.0, 2.0, 0.0, -0.0];
        assert_mentions(&write(&["a", "b"], &none, &zero), &[&name, "row 2", "zero"]);
        let negative = write(&["a"], &[Some("-1")], &two[..2]);
        match format {
            "csv" => assert_mentions(&negative, &[&name, "row 1", ".parquet"]),
            _ => assert_eq!(negative, ""),
        }
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9/.,;\"'\\\\ \t\r\n%#-]{1,12}", "[^\0]{1,8}"]
}

/// Any finite float but zero, all magnitudes alike.
fn number() -> impl Strategy<Value = f32> {
    any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("finite", |v| v.is_finite() && *v != 0.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_round_trip(
        rows in prop::collection::vec((text(), prop::option::of(text()), prop::array::uniform4(number())), 1..20),
        zeros in 0..4usize,
        mark in prop::option::of("[^\0\r\n]{0,6}[a-z][^\0\r\n]{0,6}"),
        with_labels: bool,
    ) {
        let (mut ids, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (row, (id, label, mut features)) in rows.into_iter().enumerate() {
            ids.push(format!("{id}{row}"));
            // What means no label in CSV is a test of its own.
            labels.push(label.map(|label| format!("l{label}")));
            features[..zeros.min(3)].fill(-0.0);
            values.extend(features);
        }
        for format in FORMATS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("w.{format}"));
            let mut writer = FeatureWriter::create(&path, 4, mark.as_deref(), with_labels).unwrap();
            let half = ids.len() / 2;
            writer.write(&ids[..half], &labels[..half], &values[..half * 4]).unwrap();
            writer.write(&ids[half..], &labels[half..], &values[half * 4..]).unwrap();
            prop_assert_eq!(writer.finish().unwrap(), ids.len() as u64);
            let file = read_table(&path).unwrap();
            prop_assert_eq!(&file.table.ids, &ids, "{}", format);
            if with_labels {
                prop_assert_eq!(&file.table.labels, &labels, "{}", format);
            }
            prop_assert_eq!(&file.encoder, &mark, "{}", format);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(file.table.features.values()), bits(&values), "{}", format);
        }
    }
}
