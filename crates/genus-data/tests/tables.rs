//! Real-world tables: which columns are what, by their names or by what somebody says.

mod common;

use std::io::Write;

use common::{X, assert_mentions, file, golden};
use flate2::Compression;
use flate2::write::GzEncoder;
use genus_data::{
    ColumnProblem, ColumnRole, DataError, TableFile, TableFormat, TableOptions, TableReader, nearest, read_table,
    read_table_with,
};

fn read(content: &str, options: &TableOptions) -> Result<TableFile, DataError> {
    let (_folder, path) = file("t.csv", content);
    read_table_with(path, options)
}

fn usual(content: &str) -> Result<TableFile, DataError> {
    read(content, &TableOptions::default())
}

fn problem(result: Result<TableFile, DataError>) -> ColumnProblem {
    match result {
        Err(DataError::Columns { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn labels(file: &TableFile) -> Vec<Option<&str>> {
    file.table.labels.iter().map(Option::as_deref).collect()
}

#[test]
fn labels_go_by_many_names() {
    for name in ["label", "Label", "LABEL", "labels", "class", "Class", "target", "y"] {
        let file = usual(&format!("f0,{name},f1\n1,cat,2\n3,,4\n")).unwrap();
        assert_eq!(labels(&file), [Some("cat"), None], "{name}");
        assert_eq!(file.table.features.values(), [1.0, 2.0, 3.0, 4.0], "{name}");
        assert!(file.left_out.is_empty(), "{name}");
    }
    // Two of them are not chosen among in silence.
    let two = problem(usual("f0,label,class\n1,a,b\n"));
    let columns = ["label", "class"].map(str::to_owned);
    let role = ColumnRole::Label;
    assert_eq!(two, ColumnProblem::Ambiguous { role, columns });
    let said = TableOptions {
        label: Some("class".to_owned()),
        ..TableOptions::default()
    };
    assert_eq!(labels(&read("f0,label,class\n1,a,b\n", &said).unwrap()), [Some("b")]);
}

#[test]
fn a_place_is_no_class() {
    let numbers = problem(usual("id,x,y\na,1,2\n"));
    assert!(matches!(numbers, ColumnProblem::NoFeatures { numbers, .. } if numbers == ["x", "y"]));
    let said = TableOptions {
        features: texts(&["x", "y"]),
        ..TableOptions::default()
    };
    let file = read("id,x,y\na,1,2\n", &said).unwrap();
    assert_eq!(file.table.features.values(), [1.0, 2.0]);
    assert_eq!(labels(&file), [None]);
}

#[test]
fn numbers_are_no_features_unless_somebody_says_so() {
    let table = "id,age,timestamp,label\na,41,1700000000,cat\n";
    let numbers = texts(&["age", "timestamp"]);
    let present = texts(&["id", "age", "timestamp", "label"]);
    assert_eq!(problem(usual(table)), ColumnProblem::NoFeatures { numbers, present });
    // Beside features they are left out, and named.
    let file = usual("age,f1,f0,city,text\n41,2,1,Rome,words\n").unwrap();
    assert_eq!(file.table.features.values(), [1.0, 2.0]);
    assert_eq!(file.left_out, ["age", "city"]);
    let said = TableOptions {
        features: texts(&["age", "f*"]),
        ..TableOptions::default()
    };
    let file = read("age,f1,f0,city\n41,2,1,Rome\n", &said).unwrap();
    assert_eq!(file.table.features.values(), [41.0, 1.0, 2.0]);
    assert!(file.left_out.is_empty());
}

#[test]
fn the_order_of_columns_does_not_matter() {
    for table in ["a0,a1,a2\n0,1,2\n", "a2,a0,a1\n2,0,1\n", "a1,x,a2,a0\n1,?,2,0\n"] {
        assert_eq!(
            usual(table).unwrap().table.features.values(),
            [0.0, 1.0, 2.0],
            "{table}"
        );
    }
    // Ten comes after nine.
    let names: Vec<String> = (0..12).rev().map(|number| format!("emb_{number}")).collect();
    let cells: Vec<String> = (0..12).rev().map(|number| number.to_string()).collect();
    let table = format!("{}\n{}\n", names.join(","), cells.join(","));
    let expected: Vec<f32> = (0..12).map(|number| number as f32).collect();
    assert_eq!(usual(&table).unwrap().table.features.values(), expected);
    let said = TableOptions {
        features: texts(&["emb_*"]),
        ..TableOptions::default()
    };
    assert_eq!(read(&table, &said).unwrap().table.features.values(), expected);
}

#[test]
fn a_family_has_no_gaps_and_no_rival() {
    for table in [
        "f0,f2\n1,2\n",
        "f2,f3\n1,2\n",
        "a1,a01\n1,2\n",
        "year2024,year2025\n1,2\n",
        "a0\n1\n",
    ] {
        assert!(
            matches!(problem(usual(table)), ColumnProblem::NoFeatures { .. }),
            "{table}"
        );
    }
    let two = problem(usual("f0,f1,pca1,pca2\n1,2,3,4\n"));
    let columns = ["f0", "pca1"].map(str::to_owned);
    let role = ColumnRole::Features;
    assert_eq!(two, ColumnProblem::Ambiguous { role, columns });
    for table in ["0,1,2\n1,2,3\n", "dim_1,dim_2\n1,2\n", "f000,f001\n1,2\n", "f0\n1\n"] {
        usual(table).unwrap();
    }
}

#[test]
fn a_name_that_is_not_there_is_answered_with_the_nearest() {
    let said = TableOptions {
        label: Some("speceis".to_owned()),
        ..TableOptions::default()
    };
    let missing = read("species,f0,f1\ncat,1,2\n", &said).unwrap_err();
    assert_mentions(
        &missing.to_string(),
        &["t.csv", "\"speceis\"", "there is \"species\"", "\"f0\""],
    );
    assert!(read("species,f0,f1\ncat,1,2\n", &said.for_pile()).is_ok());
    assert!(read("species,f0,f1\ncat,1,2\n", &said.for_examples()).is_err());
    assert_eq!(nearest("lablled", ["labelled", "photos"]).as_deref(), Some("labelled"));
    assert_eq!(nearest("photos", ["labelled", "x"]), None);
    assert_eq!(nearest("ab", ["ba"]).as_deref(), Some("ba"));
}

#[test]
fn words_may_mean_that_there_is_no_label() {
    let said = TableOptions {
        unlabelled: texts(&["unknown", "NA", "?"]),
        ..TableOptions::default()
    };
    let table = "label,f0\ncat,1\nunknown,1\n NA ,1\n?,1\n,1\nna,1\n";
    assert_eq!(
        labels(&read(table, &said).unwrap()),
        [Some("cat"), None, None, None, None, Some("na")]
    );
    let (_folder, path) = file("t.jsonl", "{\"f0\":1,\"class\":\"?\"}\n{\"f0\":1,\"class\":\"cat\"}\n");
    assert_eq!(labels(&read_table_with(path, &said).unwrap()), [None, Some("cat")]);
    let parquet = read_table_with(
        golden("wide.parquet"),
        &TableOptions {
            unlabelled: texts(&["cat"]),
            ..TableOptions::default()
        },
    );
    assert_eq!(
        labels(&parquet.unwrap()),
        [None, Some("dog"), None, Some("éléphant"), None]
    );
}

#[test]
fn a_label_may_come_late_in_json() {
    let table = "{\"embedding\":[1]}\n{\"embedding\":[2],\"label\":\"cat\"}\n{\"embedding\":[3],\"n\":1}\n";
    let (_folder, path) = file("t.jsonl", table);
    assert_eq!(labels(&read_table(&path).unwrap()), [None, Some("cat"), None]);
    let said = |label: &str| TableOptions {
        label: Some(label.to_owned()),
        ..TableOptions::default()
    };
    assert_eq!(
        labels(&read_table_with(&path, &said("label")).unwrap()),
        [None, Some("cat"), None]
    );
    assert!(matches!(
        problem(read_table_with(&path, &said("kind"))),
        ColumnProblem::Missing { .. }
    ));
    let both = format!("{table}{{\"embedding\":[3],\"class\":\"dog\"}}\n");
    let (_folder, path) = file("t.jsonl", both);
    assert!(matches!(problem(read_table(&path)), ColumnProblem::Ambiguous { .. }));
}

#[test]
fn wide_rows_of_json_are_whole_or_refused() {
    let said = common::refusal("t.jsonl", "{\"f0\":1,\"f1\":2}\n{\"f1\":2}\n");
    assert_mentions(&said, &["line 2", "no \"f0\""]);
    let said = common::refusal("t.jsonl", "{\"f0\":1,\"f1\":2}\n{\"f0\":1,\"f1\":\"two\"}\n");
    assert_mentions(&said, &["line 2", "two"]);
}

#[test]
fn texts_are_told_from_features() {
    let text = |table: &str| problem(usual(table));
    let column = Some("text".to_owned());
    assert_eq!(
        text("id,text,label\n1,some words,good\n"),
        ColumnProblem::Texts { column }
    );
    let column = Some("review".to_owned());
    assert_eq!(text("review,label\nsome words,good\n"), ColumnProblem::Texts { column });
    let (_folder, path) = file("t.txt", "It was a good film.\nIt was a bad one.\n");
    let said = genus_data::list_images(&path, &TableOptions::default()).unwrap_err();
    assert!(matches!(
        said,
        DataError::Columns {
            problem: ColumnProblem::Texts { column: None },
            ..
        }
    ));
    // Names of images may have spaces, and no ending.
    for list in ["my cat.jpg\n", "cat\n"] {
        let (_folder, path) = file("t.txt", list);
        assert!(
            genus_data::list_images(&path, &TableOptions::default()).is_ok(),
            "{list}"
        );
    }
}

#[test]
fn what_stands_between_cells_is_seen_in_the_header() {
    for (table, expected) in [
        ("id;f0;f1\na,b;1,5;2\n", [1.5, 2.0]),
        ("id\tf0\tf1\na;b\t1.5\t2\n", [1.5, 2.0]),
        ("\"a;b;c;d\",f0,f1\nx,1.5,2\n", [1.5, 2.0]),
    ] {
        assert_eq!(usual(table).unwrap().table.features.values(), expected, "{table}");
    }
    let said = common::refusal("t.csv", "id,f0,f1\na,\"1,5\",2\n");
    assert_mentions(&said, &["line 2", "\"1,5\""]);
}

#[test]
fn arrays_are_found_by_what_somebody_says() {
    let said = TableOptions {
        features: texts(&["vectors"]),
        ..TableOptions::default()
    };
    for name in ["no_x.npz", "no_x.safetensors"] {
        assert_eq!(
            read_table_with(golden(name), &said).unwrap().table.features.values(),
            X.as_flattened(),
            "{name}"
        );
    }
    let wrong = TableOptions {
        features: texts(&["vectros"]),
        ..TableOptions::default()
    };
    assert_mentions(
        &read_table_with(golden("no_x.npz"), &wrong).unwrap_err().to_string(),
        &["no_x.npz", "there is \"vectors\""],
    );
}

#[test]
fn what_arrow_and_wide_parquet_lack_is_named() {
    for name in ["null.feather", "null_wide.parquet"] {
        let said = common::message(read_table(golden(name)), name);
        assert_mentions(&said, &["row 4", "\"f1\"", "null"]);
    }
    assert!(matches!(
        read_table(golden("no_rows.feather")),
        Err(DataError::NoRows { .. })
    ));
    assert_mentions(
        &common::message(read_table(golden("version1.feather")), "version1.feather"),
        &["first version"],
    );
    assert_mentions(
        &common::message(read_table(golden("encoders.feather")), "encoders.feather"),
        &["row 4", "\"one\"", "\"two\""],
    );
}

/// A text that takes a thousandth of its size.
fn gzip(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    parts.for_each(|part| packed.write_all(&part).unwrap());
    packed.finish().unwrap()
}

#[test]
fn packed_texts_do_not_fill_the_memory() {
    // More than a gibibyte of blank lines, which are no rows.
    let line: Vec<u8> = [vec![b' '; (1 << 20) - 1], vec![b'\n']].concat();
    let lines = gzip((0..1025).map(|_| line.clone()));
    let (_folder, path) = file("t.jsonl.gz", &lines);
    assert!(lines.len() < 4 << 20);
    let said = common::message(read_table(&path), "t.jsonl.gz");
    assert_mentions(&said, &["the most for a compressed table"]);
    // A row without an end.
    let row = gzip((0..17).map(|_| vec![b'1'; 1 << 20]));
    for name in ["t.csv.gz", "t.jsonl.gz", "t.tsv.gz"] {
        let (_folder, path) = file(name, &row);
        assert_mentions(&common::message(read_table(&path), name), &["line 1", "16 MiB"]);
    }
    for (content, name) in [
        (&b"f0,f1\n1,2\n"[..], "t.csv.gz"),
        (&[0x1f, 0x8b, 8, 0][..], "t.jsonl.gz"),
    ] {
        assert_mentions(&common::refusal(name, content), &["gzip"]);
    }
}

#[test]
fn the_format_may_be_said() {
    let (_folder, path) = file("t.data", "f0;f1\n1;2\n");
    assert!(matches!(read_table(&path), Err(DataError::UnknownFormat { .. })));
    let said = TableOptions {
        format: Some("CSV".parse().unwrap()),
        ..TableOptions::default()
    };
    assert_eq!(
        read_table_with(&path, &said).unwrap().table.features.values(),
        [1.0, 2.0]
    );
    assert_eq!("feather".parse(), Ok(TableFormat::Arrow));
    assert!("excel".parse::<TableFormat>().is_err());
}

#[test]
fn what_is_not_there_is_not_called_unreadable() {
    let error = TableReader::open("nowhere/labelled").err().unwrap();
    assert!(matches!(error, DataError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}
