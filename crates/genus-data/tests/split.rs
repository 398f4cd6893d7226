//! Splits are found among the classes of the features, or refused with the class that is wrong.

mod common;

use common::{assert_mentions, file};
use genus_data::{DataError, ResolvedSplit, Split};

fn resolve(json: &str, classes: &[&str], names: Option<&[&str]>) -> Result<ResolvedSplit, DataError> {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
    let (_folder, path) = file("split.json", json);
    Split::read(path)?.resolve(&owned(classes), names.map(owned).as_deref())
}

#[track_caller]
fn refused(json: &str, classes: &[&str], names: Option<&[&str]>, parts: &[&str]) {
    let message = resolve(json, classes, names).unwrap_err().to_string();
    assert_mentions(&message, &["split.json"]);
    assert_mentions(&message, parts);
}

const ANIMALS: [&str; 3] = ["cat", "dog", "owl"];

#[test]
fn classes_are_found_by_name() {
    let split = resolve(r#"{"base": ["dog", "cat"], "novel": ["owl"]}"#, &ANIMALS, None).unwrap();
    assert_eq!(
        (split.base, split.novel),
        (vec!["dog".into(), "cat".into()], vec!["owl".into()])
    );
}

#[test]
fn without_base_all_others_are_base() {
    for json in [r#"{"novel": ["dog"]}"#, r#"{"base": null, "novel": ["dog"]}"#] {
        let split = resolve(json, &ANIMALS, None).unwrap();
        assert_eq!(
            (split.base, split.novel),
            (vec!["cat".into(), "owl".into()], vec!["dog".into()])
        );
    }
}

#[test]
fn an_index_counts_class_names_or_is_one() {
    let names = ["owl", "dog", "cat", "emu"];
    let split = resolve(r#"{"novel": [2, "owl"]}"#, &ANIMALS, Some(&names)).unwrap();
    assert_eq!(
        (split.base, split.novel),
        (vec!["dog".into()], vec!["cat".into(), "owl".into()])
    );
    let split = resolve(r#"{"novel": [7]}"#, &["3", "7"], None).unwrap();
    assert_eq!((split.base, split.novel), (vec!["3".into()], vec!["7".into()]));
}

#[test]
fn classes_that_are_not_in_the_features_are_refused() {
    refused(
        r#"{"novel": ["emu"]}"#,
        &ANIMALS,
        None,
        &["\"emu\"", "not among the labels"],
    );
    refused(
        r#"{"base": ["emu"], "novel": ["owl"]}"#,
        &ANIMALS,
        None,
        &["\"emu\"", "not among the labels"],
    );
    refused(
        r#"{"novel": [3]}"#,
        &ANIMALS,
        Some(&["owl", "dog", "cat", "emu"]),
        &["\"emu\"", "not among the labels"],
    );
    refused(
        r#"{"novel": [5]}"#,
        &["3", "7"],
        None,
        &["\"5\"", "not among the labels"],
    );
}

#[test]
fn an_index_out_of_range_is_refused() {
    refused(r#"{"novel": [3]}"#, &ANIMALS, Some(&ANIMALS), &["class 3", "3 classes"]);
    refused(
        r#"{"novel": [18446744073709551615]}"#,
        &ANIMALS,
        Some(&ANIMALS),
        &["class 18446744073709551615"],
    );
}

#[test]
fn a_class_stands_in_one_place() {
    refused(r#"{"novel": ["owl", "owl"]}"#, &ANIMALS, None, &["\"owl\"", "twice"]);
    refused(
        r#"{"base": ["owl", "cat"], "novel": ["dog", "owl"]}"#,
        &ANIMALS,
        None,
        &["\"owl\"", "twice"],
    );
    refused(
        r#"{"novel": ["owl", 2]}"#,
        &ANIMALS,
        Some(&ANIMALS),
        &["\"owl\"", "twice"],
    );
}

#[test]
fn no_class_of_the_features_is_left_out_silently() {
    refused(
        r#"{"base": ["cat"], "novel": ["owl"]}"#,
        &ANIMALS,
        None,
        &["\"dog\"", "neither", "leave out \"base\""],
    );
}

#[test]
fn something_must_be_new() {
    refused(r#"{"novel": []}"#, &ANIMALS, None, &["\"novel\"", "at least one"]);
}

#[test]
fn files_of_another_shape_are_refused() {
    for json in [
        "",
        "[]",
        "{}",
        "{\"novel\": \"owl\"}",
        "{\"novel\": [1.5]}",
        "{\"novel\": [-1]}",
        "{\"novel\": [null]}",
        "{\"base\": {}, \"novel\": [1]}",
        "{\"novel\": [1], \"bas\": [2]}",
        "{\"novel\": [1]",
        "\u{feff}x",
    ] {
        refused(
            json,
            &ANIMALS,
            None,
            &["{\"base\": [\"cat\", \"dog\"], \"novel\": [\"owl\"]}"],
        );
    }
}

#[test]
fn missing_files_and_directories_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert_mentions(
        &Split::read(folder.path().join("none.json")).unwrap_err().to_string(),
        &["none.json", "cannot read"],
    );
    let error = Split::read(folder.path()).unwrap_err();
    assert!(matches!(error, DataError::Directory { .. }), "{error}");
}
