//! The formats of assignments, and names that need care in them.

use std::fs::File;

use arrow_array::{Array, Float32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::support::{Folder, Item, Row, animals, csv, jsonl};

const FILES: &str = "discover --support support.csv --query pile.csv";

/// Ids and labels that a careless writer would break.
const NAMES: [&str; 6] = [
    "a,b",
    "she said \"no\"",
    "two\nlines",
    "grüße 日本 🦉",
    " blanks ",
    "'=1+1",
];

/// The animals, the first of the pile and one class under difficult names.
fn folder_with_difficult_names() -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let (mut support, mut pile) = animals();
    for item in &mut support {
        item.label = item.label.replace("ant", "ant, \"the\"\nsmall 蟻");
    }
    for (item, name) in pile.iter_mut().zip(NAMES) {
        item.id = name.to_owned();
    }
    let pile: Vec<Item> = super::support::unlabelled(&pile);
    folder.write("support.csv", csv(&support));
    folder.write("pile.csv", csv(&pile));
    folder.write("support.jsonl", jsonl(&support));
    folder.write("pile.jsonl", jsonl(&pile));
    (folder, pile.into_iter().map(|item| item.id).collect())
}

fn ids(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.id.clone()).collect()
}

#[test]
fn difficult_names_survive_csv() {
    let (folder, expected) = folder_with_difficult_names();
    let outcome = folder.genus(FILES);
    let rows = outcome.rows();
    assert_eq!(ids(&rows), expected);
    assert_eq!(rows[0].category, "ant, \"the\"\nsmall 蟻");
    // Quoted only where it is needed, in the way that every spreadsheet reads.
    let first = "id,category,kind,score,margin,probability,scene\n\"a,b\",\"ant, \"\"the\"\"\nsmall 蟻\",known,";
    assert!(outcome.text().starts_with(first), "{}", outcome.text());
    assert!(outcome.text().contains("\ngrüße 日本 🦉,owl") || outcome.text().contains("\ngrüße 日本 🦉,new-1,new,"));
    // The summary stays on its lines.
    assert!(
        outcome.stderr.contains("ant, \"the\"\u{fffd}small 蟻"),
        "{}",
        outcome.stderr
    );
    let same = folder.genus("discover --support support.jsonl --query pile.jsonl");
    assert_eq!(same.text(), outcome.text());
}

#[test]
fn jsonl_has_an_object_a_row() {
    let (folder, expected) = folder_with_difficult_names();
    let rows = folder.genus(FILES).rows();
    let outcome = folder.genus(&format!("{FILES} --format jsonl")).success();
    let objects: Vec<serde_json::Value> = outcome
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects.len(), expected.len());
    for (object, row) in objects.iter().zip(&rows) {
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 7, "{object}");
        assert_eq!(object["id"], row.id.as_str());
        assert_eq!(object["category"], row.category.as_str());
        assert_eq!(object["kind"], row.kind.as_str());
        assert_eq!(object["score"].as_f64().unwrap(), row.score());
        assert_eq!(object["margin"].as_f64().unwrap(), row.margin());
        assert_eq!(object["probability"].as_f64(), row.probability());
        assert_eq!(object["scene"].to_string(), row.scene);
    }
    let first = outcome.text().lines().next().unwrap();
    assert!(
        first.starts_with(r#"{"id":"a,b","category":"ant, \"the\"\nsmall 蟻","kind":"known","score":0."#),
        "{first}"
    );
    folder.genus(&format!("{FILES} --format jsonl --out result")).success();
    assert_eq!(folder.read("result/assignments.jsonl"), outcome.text());
    assert_eq!(
        folder.names("result"),
        [
            "assignments.jsonl",
            "calibration.safetensors",
            "centres.safetensors",
            "report.html",
            "taxonomy.toml"
        ]
    );
}

pub(super) fn check_parquet(file: File, rows: &[Row]) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let mut at = 0;
    for batch in &batches {
        let schema = batch.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(
            columns,
            ["id", "category", "kind", "score", "margin", "probability", "scene"]
        );
        let text = |column: usize| batch.column(column).as_any().downcast_ref::<StringArray>().unwrap();
        let number = |column: usize| batch.column(column).as_any().downcast_ref::<Float32Array>().unwrap();
        for row in 0..batch.num_rows() {
            let expected = &rows[at];
            assert_eq!(text(0).value(row), expected.id);
            assert_eq!(text(1).value(row), expected.category);
            assert_eq!(text(2).value(row), expected.kind);
            assert!((f64::from(number(3).value(row)) - expected.score()).abs() < 1e-6);
            assert!((f64::from(number(4).value(row)) - expected.margin()).abs() < 1e-6);
            match expected.probability() {
                None => assert!(number(5).is_null(row)),
                Some(probability) => assert!((f64::from(number(5).value(row)) - probability).abs() < 1e-6),
            }
            let scenes = batch.column(6).as_any().downcast_ref::<Int64Array>().unwrap();
            match expected.scene.parse::<i64>() {
                Ok(scene) => assert_eq!(scenes.value(row), scene),
                Err(_) => assert!(scenes.is_null(row)),
            }
            at += 1;
        }
        assert!((0..5).all(|column| batch.column(column).null_count() == 0));
    }
    assert_eq!(at, rows.len());
}

#[test]
fn parquet_has_the_same_rows() {
    let (folder, _) = folder_with_difficult_names();
    let rows = folder.genus(FILES).rows();
    folder
        .genus(&format!("{FILES} --format parquet --out result"))
        .success();
    assert_eq!(
        folder.names("result"),
        [
            "assignments.parquet",
            "calibration.safetensors",
            "centres.safetensors",
            "report.html",
            "taxonomy.toml"
        ]
    );
    check_parquet(File::open(folder.path("result/assignments.parquet")).unwrap(), &rows);
    // To a pipe it goes as well.
    folder.write(
        "piped.parquet",
        folder.genus(&format!("{FILES} -f parquet")).success().stdout,
    );
    check_parquet(File::open(folder.path("piped.parquet")).unwrap(), &rows);
}

#[test]
fn every_input_format_gives_the_same_rows() {
    let folder = Folder::new();
    folder.write("support.csv", super::support::NARROW_SUPPORT);
    let mut first: Option<Vec<Row>> = None;
    for name in [
        "rows.csv",
        "rows.jsonl",
        "texts.npz",
        "classes.npz",
        "f4.safetensors",
        "list_f4.parquet",
        "fixed_f8.parquet",
        "large_list_f2.parquet",
    ] {
        folder.write(name, super::support::golden(name));
        let rows = folder
            .genus(&format!("discover --support support.csv --query {name} -m proto"))
            .rows();
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["a", "b c", "d,e", "grüße", "日本"], "{name}");
        assert_eq!(first.get_or_insert(rows.clone()), &rows, "{name}");
    }
    // The labelled rows of the same files know two classes more than one example of.
    for name in ["rows.csv", "texts.npz", "f4.safetensors", "list_f4.parquet"] {
        let rows = folder.genus(&format!("discover {name} -m proto")).rows();
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.id.as_str(), row.category.as_str()))
            .collect();
        assert_eq!(found, [("d,e", "dog")], "{name}");
    }
}
