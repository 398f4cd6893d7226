//! One column of a table beside its features, in every format that has columns.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use genus_data::{TableOptions, for_each_cell};
use parquet::arrow::ArrowWriter;

fn cells(path: &Path, columns: &[&str]) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let all = for_each_cell(path, columns, &TableOptions::default(), |id, cell| {
        found.push((id, cell));
        true
    });
    all.map(|()| found).map_err(|e| e.to_string())
}

fn pairs(expected: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    Ok(expected
        .iter()
        .map(|&(id, cell)| (id.to_owned(), cell.to_owned()))
        .collect())
}

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_format_gives_the_same_cells() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(
        file("t.csv"),
        "id,f0,says,label\na,1,\"x, \"\"y\"\"\n<z>\",c\r\nb,2,,d\r\nc,3,last,e\r\n",
    )
    .unwrap();
    let lines = "{\"id\":\"a\",\"says\":\"x, \\\"y\\\"\\n<z>\",\"label\":\"c\"}\n\n{\"id\":\"b\",\"says\":null,\"label\":\"d\"}\n\
                 {\"id\":\"c\",\"says\":\"last\",\"label\":\"e\"}\n";
    std::fs::write(file("t.jsonl"), lines).unwrap();
    let texts = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    parquet(
        &file("t.parquet"),
        vec![
            ("says", texts(vec![Some("x, \"y\"\n<z>"), None, Some("last")])),
            ("id", texts(vec![Some("a"), Some("b"), Some("c")])),
            ("label", texts(vec![Some("c"), Some("d"), Some("e")])),
        ],
    );
    for name in ["t.csv", "t.jsonl", "t.parquet"] {
        let path = file(name);
        assert_eq!(
            cells(&path, &["says"]),
            pairs(&[("a", "x, \"y\"\n<z>"), ("c", "last")]),
            "{name}"
        );
        // The first of the names that there is; a carriage return is none of the last cell.
        let expected = pairs(&[("a", "c"), ("b", "d"), ("c", "e")]);
        assert_eq!(cells(&path, &["truth", "label"]), expected, "{name}");
        let message = cells(&path, &["truth", "kind"]).unwrap_err();
        assert!(
            message.contains(name) && message.contains("no column \"truth\" or \"kind\""),
            "{message}"
        );
        assert!(message.contains("says") && message.contains("label"), "{message}");
        let mut calls = 0;
        for_each_cell(&path, &["label"], &TableOptions::default(), |_, _| {
            calls += 1;
            false
        })
        .unwrap();
        assert_eq!(calls, 1, "{name}");
    }
}

#[test]
fn rows_without_an_id_are_named_as_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "says,f0\nx,1\ny,2\n").unwrap();
    assert_eq!(cells(&path, &["says"]), pairs(&[("0", "x"), ("1", "y")]));
    std::fs::write(&path, "path,kind\nimages/1.jpg,cat\n").unwrap();
    assert_eq!(cells(&path, &["kind"]), pairs(&[("images/1.jpg", "cat")]));
    let path = folder.path().join("t.parquet");
    let numbers = Arc::new(Int64Array::from(vec![7, -8])) as ArrayRef;
    parquet(&path, vec![("kind", numbers)]);
    assert_eq!(cells(&path, &["kind"]), pairs(&[("0", "7"), ("1", "-8")]));
}

#[test]
fn what_is_no_such_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("short.csv"), "id,says\na,b\nc\n").unwrap();
    std::fs::write(file("broken.jsonl"), "{\"id\":\"a\",\"says\":\"b\"}\n{\"id\"\n").unwrap();
    std::fs::write(file("empty.csv"), "").unwrap();
    for (name, words) in [
        ("short.csv", "line 3"),
        ("broken.jsonl", "line 2"),
        ("empty.csv", "no column"),
        ("missing.csv", "cannot read"),
        ("table.npy", ".csv, .jsonl, .parquet or .feather"),
    ] {
        let message = cells(&file(name), &["says"]).unwrap_err();
        assert!(message.contains(name) && message.contains(words), "{message}");
    }
}

#[test]
fn texts_and_truths_of_a_csv_are_no_features() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "id,text,f0,truth,f1\na,words,1,3,2\n").unwrap();
    let table = genus_data::read_table(&path).unwrap().table;
    assert_eq!(table.features.row(0), [1.0, 2.0]);
}
