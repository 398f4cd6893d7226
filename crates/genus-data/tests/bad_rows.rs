//! Rows that cannot be used are refused, with their place and the way out.

mod common;

use common::{assert_mentions, golden, message, npy, npy_f32, refusal};
use genus_data::{DataError, FilePosition, read_table};

fn refused_golden(name: &str) -> String {
    message(read_table(golden(name)), name)
}

#[test]
fn not_finite_values_are_refused_in_every_format() {
    for (value, shown) in [("nan", "NaN"), ("inf", "inf"), ("-inf", "-inf"), ("1e39", "inf")] {
        let text = format!("id,label,f0,f1\na,,1,2\nb,,3,{value}\n");
        assert_mentions(&refusal("f.csv", text), &["line 3", "id \"b\"", "\"f1\"", shown]);
    }
    assert_mentions(
        &refusal("f.jsonl", "{\"embedding\":[1,2]}\n\n{\"embedding\":[1,1e39]}\n"),
        &["line 3", "\"1\"", "feature 2", "inf"],
    );
    assert_mentions(
        &refusal("f.jsonl", "{\"embedding\":[1,NaN]}\n"),
        &["line 1", "embedding"],
    );
    assert_mentions(
        &refusal("f.npy", npy_f32(&[vec![1.0, 2.0], vec![f32::NAN, 1.0]])),
        &["row 2", "feature 1", "NaN"],
    );
    let too_large = 1e300f64.to_le_bytes();
    assert_mentions(
        &refusal("f.npy", npy("<f8", "(1, 1)", &too_large)),
        &["row 1", "feature 1", "inf"],
    );
    let half_infinity = 0x7c00u16.to_le_bytes();
    assert_mentions(
        &refusal("f.npy", npy("<f2", "(1, 1)", &half_infinity)),
        &["row 1", "feature 1", "inf"],
    );
    assert_mentions(&refused_golden("not_finite.npz"), &["row 3", "d,e", "feature 2", "inf"]);
    assert_mentions(&refused_golden("nan.parquet"), &["row 4", "grüße", "feature 2", "NaN"]);
}

#[test]
fn rows_of_zeros_are_refused_in_every_format() {
    assert_mentions(
        &refusal("f.csv", "id,f0,f1\nx,1,2\ny,0,-0\n"),
        &["line 3", "id \"y\"", "zero", "remove"],
    );
    assert_mentions(&refusal("f.jsonl", "{\"embedding\":[0,0]}"), &["line 1", "zero"]);
    assert_mentions(
        &refusal("f.npy", npy_f32(&[vec![1.0], vec![0.0]])),
        &["row 2", "id \"1\"", "zero"],
    );
    // What is nothing in 32 bits is nothing.
    assert_mentions(
        &refusal("f.npy", npy("<f8", "(1, 1)", &1e-300f64.to_le_bytes())),
        &["row 1", "zero"],
    );
    assert_mentions(&refused_golden("zero.parquet"), &["row 4", "grüße", "zero"]);
}

#[test]
fn rows_of_different_length_are_refused() {
    let (_folder, path) = common::file("f.jsonl", "{\"embedding\":[1,2]}\n{\"embedding\":[1,2,3]}\n");
    match read_table(&path) {
        Err(DataError::Dimension {
            place,
            expected: 2,
            found: 3,
            ..
        }) => assert_eq!(place, FilePosition::Line(2)),
        other => panic!("{other:?}"),
    }
    assert_mentions(&refusal("f.csv", "embedding\n1 2\n1\n"), &["line 3", "1 features", "2"]);
    assert_mentions(
        &refusal("f.csv", "f0,f1\n1,2\n1,2,3\n"),
        &["line 3", "3 cells", "2 columns"],
    );
    assert_mentions(&refused_golden("ragged.parquet"), &["row 4", "2 features", "3"]);
}

#[test]
fn duplicate_ids_are_refused_with_both_rows() {
    assert_mentions(
        &refusal("f.csv", "id,f0\nx,1\ny,2\nx,3\n"),
        &["line 2", "line 4", "\"x\""],
    );
    assert_mentions(
        &refusal(
            "f.jsonl",
            "{\"id\":7,\"embedding\":[1]}\n{\"id\":\"7\",\"embedding\":[1]}",
        ),
        &["line 1", "line 2", "\"7\""],
    );
    assert_mentions(&refused_golden("duplicate_ids.npz"), &["row 2", "row 4", "\"b\""]);
    assert_mentions(&refused_golden("duplicate_ids.parquet"), &["row 2", "row 4", "\"b\""]);
}

#[test]
fn duplicate_ids_are_found_across_blocks() {
    let error = common::read_in_blocks(&golden("duplicate_ids.npz"), 1).unwrap_err();
    assert_mentions(&error.to_string(), &["duplicate_ids.npz", "row 2", "row 4"]);
}

#[test]
fn only_a_whole_file_is_searched_for_duplicates_beyond_a_million_rows() {
    let rows = (1 << 20) + 2;
    let lines = (0..rows).map(|row| format!("{},1\n", row.min(rows - 2)));
    let (_folder, path) = common::file("f.csv", format!("id,f0\n{}", lines.collect::<String>()));
    let message = message(read_table(&path), "f.csv");
    assert_mentions(&message, &["line 1048578", "line 1048579", "\"1048576\""]);
    let mut reader = genus_data::TableReader::open(&path).unwrap();
    let mut count = 0;
    while let Some(block) = reader.next_block(100_000).unwrap() {
        count += block.len();
    }
    assert_eq!(count, rows);
}

#[test]
fn after_an_error_the_reader_is_at_its_end() {
    let (_folder, path) = common::file("f.csv", "f0\n1\nx\n3\n");
    let mut reader = genus_data::TableReader::open(&path).unwrap();
    assert_eq!(reader.next_block(1).unwrap().unwrap().len(), 1);
    assert!(reader.next_block(1).is_err());
    assert!(reader.next_block(1).unwrap().is_none());
}

#[test]
fn ids_are_for_all_rows_or_none() {
    assert_mentions(&refusal("f.csv", "id,f0\nx,1\n,2\n"), &["line 3", "id is empty"]);
    let (with, without) = ("{\"id\":\"x\",\"embedding\":[1]}", "{\"embedding\":[1]}");
    assert_mentions(
        &refusal("f.jsonl", format!("{with}\n{without}\n")),
        &["line 2", "no id"],
    );
    assert_mentions(
        &refusal("f.jsonl", format!("{without}\n{with}\n")),
        &["line 2", "an id"],
    );
    assert_mentions(&refused_golden("null_id.parquet"), &["row 3", "id is null"]);
}

#[test]
fn labels_outside_the_classes_are_refused() {
    for name in ["label_outside.npz", "label_outside.safetensors"] {
        assert_mentions(&refused_golden(name), &["row 4", "label 3", "has 3 (0 to 2)"]);
    }
}

#[test]
fn nulls_among_the_features_are_refused() {
    assert_mentions(&refused_golden("null_list.parquet"), &["row 4", "null"]);
    assert_mentions(&refused_golden("null_fixed.parquet"), &["row 4", "null"]);
    assert_mentions(&refused_golden("null_value.parquet"), &["row 4", "feature 2", "null"]);
}

#[test]
fn places_are_right_in_any_block() {
    for name in [
        "null_list.parquet",
        "null_value.parquet",
        "nan.parquet",
        "zero.parquet",
        "ragged.parquet",
    ] {
        for max_rows in 1..5 {
            let error = common::read_in_blocks(&golden(name), max_rows).unwrap_err();
            assert_mentions(&error.to_string(), &[name, "row 4"]);
        }
    }
}
