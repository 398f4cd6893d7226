//! The encoder's mark is read from every format and compared.

mod common;

use std::path::Path;

use common::{assert_mentions, file, golden, refusal};
use genus_core::{Features, Kind, Taxonomy, TaxonomyEntry};
use genus_data::{Origin, TableReader, read_table, read_taxonomy, same_encoder, write_taxonomy};

const MARK: &str = "clip vit-b/32 größe=224";

#[test]
fn goldens_name_their_encoder() {
    for name in [
        "encoder.npz",
        "encoder_list.npz",
        "encoder.safetensors",
        "encoder.parquet",
        "encoder_column.parquet",
        "encoder.csv",
        "encoder.jsonl",
        "encoder.feather",
    ] {
        let file = read_table(golden(name)).unwrap();
        assert_eq!(file.encoder.as_deref(), Some(MARK), "{name}");
        assert_eq!(file.table.features.values(), common::X.as_flattened(), "{name}");
        assert_eq!(TableReader::open(golden(name)).unwrap().encoder(), Some(MARK), "{name}");
    }
}

#[test]
fn files_without_a_mark_have_no_encoder() {
    for name in [
        "f4.npy",
        "texts.npz",
        "f4.safetensors",
        "rows.csv",
        "rows.jsonl",
        "list_f4.parquet",
    ] {
        assert_eq!(read_table(golden(name)).unwrap().encoder, None, "{name}");
    }
    let (_folder, path) = file("f.csv", "f0,encoder\n1,\n2,\n");
    assert_eq!(read_table(path).unwrap().encoder, None);
}

#[test]
fn rows_of_two_encoders_are_refused() {
    let csv = refusal("f.csv", "f0,encoder\n1,one\n2,one\n3,two\n");
    assert_mentions(&csv, &["line 4", "\"one\"", "\"two\""]);
    assert_mentions(&refusal("f.csv", "f0,encoder\n1,one\n2,\n"), &["line 3", "no encoder"]);
    let lines = "{\"embedding\":[1],\"encoder\":\"one\"}\n{\"embedding\":[1],\"encoder\":\"two\"}\n";
    assert_mentions(&refusal("f.jsonl", lines), &["line 2", "\"one\"", "\"two\""]);
    let parquet = read_table(golden("encoders.parquet")).unwrap_err().to_string();
    assert_mentions(&parquet, &["encoders.parquet", "row 4", "\"one\"", "\"two\""]);
    let npz = read_table(golden("encoders.npz")).unwrap_err().to_string();
    assert_mentions(&npz, &["encoders.npz", "\"encoder\"", "one text"]);
}

#[test]
fn different_encoders_are_named() {
    let (a, b) = (Path::new("a.npz"), Path::new("b.npz"));
    assert!(same_encoder((a, Some("x")), (b, Some("x"))).is_ok());
    assert!(same_encoder((a, None), (b, Some("x"))).is_ok());
    assert!(same_encoder((a, Some("x")), (b, None)).is_ok());
    let message = same_encoder((a, Some("x")), (b, Some("y"))).unwrap_err().to_string();
    assert_mentions(&message, &["a.npz", "b.npz", "\"x\"", "\"y\"", "cannot be compared"]);
}

#[test]
fn a_taxonomy_remembers_its_encoder() {
    let folder = tempfile::tempdir().unwrap();
    let entry = TaxonomyEntry {
        name: "cat".to_owned(),
        kind: Kind::Known,
        items: 3,
    };
    let centres = Features::new(2, vec![1.0, 0.5]).unwrap();
    let taxonomy = Taxonomy::from_parts(vec![entry], centres).unwrap();
    for encoder in [None, Some(MARK.to_owned())] {
        let made = Origin {
            method: "ukc".to_owned(),
            seed: 1,
            version: "0".to_owned(),
            encoder,
            images: None,
            growing: None,
            calibration: None,
        };
        write_taxonomy(folder.path(), &taxonomy, &made).unwrap();
        let text = std::fs::read_to_string(folder.path().join("taxonomy.toml")).unwrap();
        assert_eq!(text.contains("encoder"), made.encoder.is_some());
        assert_eq!(read_taxonomy(folder.path()).unwrap().1, made);
    }
}
