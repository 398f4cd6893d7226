//! Files that NumPy, pandas, PyArrow and safetensors wrote are read for what they are.

mod common;

use common::{CLASSES, IDS, LABELS, X, golden, read_in_blocks};
use genus_data::{TableFile, TableReader, read_table};

/// What a golden file has beside its features.
#[derive(Clone, Copy, PartialEq)]
enum Has {
    /// Nothing.
    Features,
    /// Texts as ids.
    Ids,
    /// Texts as ids and labels.
    Texts,
    /// Texts as ids, and labels that `classes` name.
    Classes,
    /// Integers as ids and labels.
    Integers,
    /// Integers as labels only.
    IntegerLabels,
}

const GOLDENS: &[(&str, Has)] = &[
    ("f2.npy", Has::Features),
    ("f4.npy", Has::Features),
    ("f8.npy", Has::Features),
    ("f2_big.npy", Has::Features),
    ("f4_big.npy", Has::Features),
    ("f8_big.npy", Has::Features),
    ("fortran.npy", Has::Features),
    ("fortran_big_f8.npy", Has::Features),
    ("version2.npy", Has::Features),
    ("version3.npy", Has::Features),
    ("texts.npz", Has::Texts),
    ("texts_compressed.npz", Has::Texts),
    ("classes.npz", Has::Classes),
    ("classes_compressed.npz", Has::Classes),
    ("fortran.npz", Has::Texts),
    ("fortran_compressed.npz", Has::Texts),
    ("big_endian.npz", Has::Texts),
    ("bytes.npz", Has::Texts),
    ("aliases.npz", Has::Texts),
    ("integers.npz", Has::Integers),
    ("only_x.npz", Has::Features),
    ("f2.safetensors", Has::Classes),
    ("f4.safetensors", Has::Classes),
    ("f8.safetensors", Has::Classes),
    ("aliases.safetensors", Has::Classes),
    ("integers.safetensors", Has::IntegerLabels),
    ("bf16.safetensors", Has::Ids),
    ("list_f2.parquet", Has::Texts),
    ("list_f4.parquet", Has::Texts),
    ("list_f8.parquet", Has::Texts),
    ("large_list_f2.parquet", Has::Texts),
    ("large_list_f4.parquet", Has::Texts),
    ("large_list_f8.parquet", Has::Texts),
    ("fixed_f2.parquet", Has::Texts),
    ("fixed_f4.parquet", Has::Texts),
    ("fixed_f8.parquet", Has::Texts),
    ("dictionary.parquet", Has::Texts),
    ("large_texts.parquet", Has::Texts),
    ("text_views.parquet", Has::Texts),
    ("element.parquet", Has::Texts),
    ("item.parquet", Has::Texts),
    ("pages_v2.parquet", Has::Texts),
    ("row_groups.parquet", Has::Texts),
    ("required.parquet", Has::Ids),
    ("required_fixed.parquet", Has::Ids),
    ("rows.csv", Has::Texts),
    ("list.csv", Has::Texts),
    ("rows.jsonl", Has::Texts),
    ("wide.tsv", Has::Texts),
    ("wide.tsv.gz", Has::Texts),
    ("semicolons.csv", Has::Texts),
    ("tabs.csv", Has::Texts),
    ("wide.csv.gz", Has::Texts),
    ("with_index.csv", Has::Texts),
    ("capitals.csv", Has::Texts),
    ("wide.jsonl", Has::Texts),
    ("wide.jsonl.gz", Has::Texts),
    ("only_numbers.csv", Has::Features),
    ("wide.parquet", Has::Texts),
    ("wide_types.parquet", Has::Texts),
    ("wide_groups.parquet", Has::Texts),
    ("lz4.feather", Has::Texts),
    ("zstd.feather", Has::Texts),
    ("uncompressed.feather", Has::Texts),
    ("category.feather", Has::Texts),
    ("list.feather", Has::Texts),
    ("fixed.arrow", Has::Texts),
    ("stream.arrow", Has::Texts),
];

fn owned<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_golden_file_holds_the_same_rows() {
    for &(name, has) in GOLDENS {
        let TableFile { table, class_names, .. } = read_table(golden(name)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(table.features.dim(), 3, "{name}");
        assert_eq!(table.features.values(), X.as_flattened(), "{name}");
        let ids = match has {
            Has::Ids | Has::Texts | Has::Classes => owned(IDS),
            Has::Integers => owned(["10", "11", "12", "13", "14"]),
            Has::Features | Has::IntegerLabels => owned(["0", "1", "2", "3", "4"]),
        };
        assert_eq!(table.ids, ids, "{name}");
        let labels = match has {
            Has::Texts | Has::Classes => LABELS,
            Has::Integers | Has::IntegerLabels => [Some("0"), Some("1"), None, Some("2"), Some("0")],
            Has::Features | Has::Ids => [None; 5],
        };
        assert_eq!(table.labels, labels.map(|label| label.map(str::to_owned)), "{name}");
        assert_eq!(class_names, (has == Has::Classes).then(|| owned(CLASSES)), "{name}");
    }
}

#[test]
fn every_golden_file_reads_the_same_in_blocks_of_any_size() {
    for &(name, _) in GOLDENS {
        let whole = read_table(golden(name)).unwrap().table;
        for max_rows in 1..=6 {
            assert_eq!(
                read_in_blocks(&golden(name), max_rows).unwrap(),
                whole,
                "{name} in blocks of {max_rows}"
            );
        }
    }
}

#[test]
fn binary_files_know_their_rows_up_front() {
    for &(name, _) in GOLDENS {
        let reader = TableReader::open(golden(name)).unwrap();
        let known = [".npy", ".npz", ".safetensors", ".parquet"]
            .iter()
            .any(|ending| name.ends_with(ending));
        assert_eq!(reader.rows(), known.then_some(5), "{name}");
        assert_eq!(reader.dim(), 3, "{name}");
        assert_eq!(reader.path(), golden(name));
    }
}

#[test]
fn integer_features_become_floats() {
    let eightfold: Vec<f32> = X.as_flattened().iter().map(|v| v * 8.0).collect();
    for name in ["integers_i2.npy", "integers_i8_big.npy"] {
        assert_eq!(
            read_table(golden(name)).unwrap().table.features.values(),
            eightfold,
            "{name}"
        );
    }
    let magnitudes: Vec<f32> = eightfold.iter().map(|v| v.abs()).collect();
    assert_eq!(
        read_table(golden("integers_u2.npy")).unwrap().table.features.values(),
        magnitudes
    );
}

#[test]
fn integers_of_parquet_are_ids_and_labels() {
    let table = read_table(golden("integers.parquet")).unwrap().table;
    assert_eq!(table.ids, ["10", "11", "12", "13", "14"]);
    let labels: Vec<_> = table.labels.iter().map(Option::as_deref).collect();
    assert_eq!(labels, [Some("0"), Some("1"), None, Some("2"), None]);
}

#[test]
fn a_table_gives_its_classes_and_any_rows() {
    let table = read_table(golden("texts.npz")).unwrap().table;
    assert_eq!(table.classes(), CLASSES);
    let some = table.select(&[4, 0]);
    assert_eq!(some.ids, ["日本", "a"]);
    assert_eq!(some.features.row(0), X[4]);
    assert_eq!(some.labels, [Some("cat".to_owned()), Some("cat".to_owned())]);
    assert!(table.select(&[]).is_empty());
}
