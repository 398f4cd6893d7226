//! A file read in blocks of any size is the file read whole, and both are what was written.

mod common;

use common::{file, npy_f32, read_in_blocks};
use genus_data::{TableReader, read_table};
use proptest::prelude::*;

/// Finite rows of equal length, none of them all zeros.
fn rows() -> impl Strategy<Value = Vec<Vec<f32>>> {
    let value = any::<f32>().prop_filter("finite", |v| v.is_finite());
    (1usize..6).prop_flat_map(move |dim| {
        let row =
            prop::collection::vec(value.clone(), dim).prop_filter("not zero", |row| row.iter().any(|&v| v != 0.0));
        prop::collection::vec(row, 1..40)
    })
}

fn csv(rows: &[Vec<f32>]) -> String {
    let names: Vec<String> = (0..rows[0].len()).map(|i| format!(",f{i}")).collect();
    let lines = rows.iter().enumerate().map(|(row, values)| {
        let cells: Vec<String> = values.iter().map(|v| format!(",{v:e}")).collect();
        let label = ["", "cat", "\"a \"\"dog\"\"\""][row % 3];
        format!("\"row\n{row}\",{label}{}\n", cells.concat())
    });
    format!("id,label{}\n{}", names.concat(), lines.collect::<String>())
}

fn jsonl(rows: &[Vec<f32>]) -> String {
    let lines = rows.iter().enumerate().map(|(row, values)| {
        let numbers: Vec<String> = values.iter().map(|v| format!("{v:e}")).collect();
        let label = ["null", "\"cat\"", "7"][row % 3];
        format!(
            "{{\"id\":{row},\"label\":{label},\"embedding\":[{}]}}\n",
            numbers.join(",")
        )
    });
    lines.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_are_the_whole(rows in rows(), max_rows in 1usize..50) {
        let (csv, jsonl) = (csv(&rows).into_bytes(), jsonl(&rows).into_bytes());
        for (name, content) in [("f.csv", csv), ("f.jsonl", jsonl), ("f.npy", npy_f32(&rows))] {
            let (_folder, path) = file(name, content);
            let whole = read_table(&path).unwrap().table;
            prop_assert_eq!(whole.features.values(), rows.concat(), "{}", name);
            prop_assert_eq!(whole.features.dim(), rows[0].len());
            prop_assert_eq!(read_in_blocks(&path, max_rows).unwrap(), whole, "{}", name);
        }
    }
}

#[test]
fn texts_come_through_as_they_are() {
    let rows = vec![vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0]];
    let (_folder, path) = file("f.csv", csv(&rows));
    let table = read_table(&path).unwrap().table;
    assert_eq!(table.ids, ["row\n0", "row\n1", "row\n2"]);
    assert_eq!(
        table.labels,
        [None, Some("cat".to_owned()), Some("a \"dog\"".to_owned())]
    );
    let (_folder, path) = file("f.jsonl", jsonl(&rows));
    assert_eq!(
        read_table(&path).unwrap().table.labels,
        [None, Some("cat".to_owned()), Some("7".to_owned())]
    );
}

#[test]
fn carriage_returns_end_lines_and_not_labels() {
    let (_folder, path) = file("f.csv", "f0,label\r\n1,cat\r\n\r\n2,\"dog\"\r\n3,\r\n4,owl");
    let labels = read_table(&path).unwrap().table.labels;
    let labels: Vec<_> = labels.iter().map(Option::as_deref).collect();
    assert_eq!(labels, [Some("cat"), Some("dog"), None, Some("owl")]);
}

#[test]
fn a_block_of_no_rows_counts_as_one_row() {
    let (_folder, path) = file("f.csv", "f0\n1\n2\n");
    let mut reader = TableReader::open(&path).unwrap();
    assert_eq!(reader.next_block(0).unwrap().unwrap().ids, ["0"]);
    assert_eq!(reader.next_block(usize::MAX).unwrap().unwrap().ids, ["1"]);
    assert!(reader.next_block(0).unwrap().is_none());
}

#[test]
fn files_larger_than_the_read_buffers_are_whole() {
    let rows: Vec<Vec<f32>> = (0..70_000)
        .map(|row| (0..3).map(|column| (row * 3 + column + 1) as f32).collect())
        .collect();
    let expected = rows.concat();
    for (name, content) in [("f.csv", csv(&rows).into_bytes()), ("f.npy", npy_f32(&rows))] {
        let (_folder, path) = file(name, content);
        assert_eq!(read_table(&path).unwrap().table.features.values(), expected, "{name}");
        assert_eq!(
            read_in_blocks(&path, 33_333).unwrap().features.values(),
            expected,
            "{name}"
        );
    }
}
