//! Files that hold something else than they should are refused with the way out.

mod common;

use common::{assert_mentions, file, golden, message, npy, npy_with_header, refusal};
use genus_data::{DataError, TableReader, read_table};

fn refused_golden(name: &str) -> String {
    message(read_table(golden(name)), name)
}

#[test]
fn a_missing_file_is_named() {
    for extension in ["npy", "npz", "safetensors", "csv", "jsonl", "parquet"] {
        let name = format!("missing.{extension}");
        assert_mentions(&message(read_table(golden(&name)), &name), &["cannot read"]);
    }
}

#[test]
fn a_directory_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["d.npy", "d.csv", "d.jsonl", "d.parquet", "d"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        assert_mentions(
            &message(read_table(folder.path().join(name)), name),
            &["is a directory"],
        );
    }
}

#[test]
fn an_unknown_extension_is_refused_with_those_that_are_known() {
    for name in ["f.txt", "f", "f.json.gz", "f.parquet.gz"] {
        let all = [
            ".npy",
            ".npz",
            ".safetensors",
            ".csv",
            ".tsv",
            ".jsonl",
            ".parquet",
            ".csv.gz",
            ".feather",
        ];
        assert_mentions(&refusal(name, "a\n1\n"), &all);
    }
}

#[test]
fn the_case_of_the_extension_does_not_matter() {
    let (_folder, path) = file("F.CSV", "f0\n1\n");
    assert_eq!(read_table(path).unwrap().table.len(), 1);
}

#[test]
fn empty_files_are_refused() {
    for name in ["f.npy", "f.npz", "f.safetensors", "f.csv", "f.jsonl", "f.parquet"] {
        refusal(name, "");
    }
}

#[test]
fn files_without_rows_or_columns_are_refused() {
    for name in ["no_rows.npy", "no_rows.parquet"] {
        assert!(
            matches!(read_table(golden(name)), Err(DataError::NoRows { .. })),
            "{name}"
        );
    }
    for name in ["no_columns.npy", "empty_lists.parquet"] {
        assert!(
            matches!(read_table(golden(name)), Err(DataError::NoFeatures { .. })),
            "{name}"
        );
    }
    assert_mentions(&refusal("f.csv", "id,f0\n"), &["no rows"]);
    assert_mentions(&refusal("f.jsonl", "\n  \n"), &["no rows"]);
    assert_mentions(&refusal("f.jsonl", "{\"embedding\":[]}"), &["no features"]);
    assert_mentions(&refusal("f.csv", "embedding\n[]\n"), &["no features"]);
}

#[test]
fn files_of_another_kind_are_refused() {
    let names = ["f.npy", "f.npz", "f.safetensors", "f.jsonl", "f.parquet"];
    for content in [&b"hello, world\nthis is text\n"[..], &[0; 1000], &[0xff; 1000]] {
        for name in names {
            refusal(name, content);
        }
    }
    for (wrong, name) in [
        ("f4.npy", "f.parquet"),
        ("list_f4.parquet", "f.npz"),
        ("texts.npz", "f.npy"),
        ("f4.npy", "f.csv"),
    ] {
        refusal(name, std::fs::read(golden(wrong)).unwrap());
    }
}

#[test]
fn csv_needs_a_header_with_features() {
    assert_mentions(&refusal("f.csv", "1,2\n3,4\n"), &["line 1", "header", "id,label,f0,f1"]);
    assert_mentions(&refusal("f.csv", "id,label\na,b\n"), &["features", "\"label\""]);
    assert_mentions(&refusal("f.csv", "id,id,f0\na,b,1\n"), &["line 1", "\"id\"", "rename"]);
}

#[test]
fn csv_cells_that_are_no_numbers_are_named() {
    assert_mentions(
        &refusal("f.csv", "id,f0,f1\nx,1,2\ny,1,tall\n"),
        &["line 3", "\"f1\"", "\"tall\""],
    );
    assert_mentions(&refusal("f.csv", "id,f0,f1\nx,1,\n"), &["line 2", "\"f1\"", "\"\""]);
    assert_mentions(
        &refusal("f.csv", "embedding\n\"[1, two]\"\n"),
        &["line 2", "\"embedding\"", "\"two\""],
    );
    let long = "ä".repeat(10_000);
    assert!(refusal("f.csv", format!("f0\n{long}\n")).len() < 1000);
    assert_mentions(&refusal("f.csv", b"f0,f1\n1,2\n1,\xff\n"), &["line 3", "UTF-8"]);
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    for end in ["\n", "\r\n"] {
        let lines = ["id,f0", "", "x,1", "", "", "\"y\nz\",2", "w,bad"].join(end);
        assert_mentions(&refusal("f.csv", lines), &["line 8", "bad"]);
        let lines = ["id,f0", "", "x,1", "\"y\nz\",bad"].join(end);
        assert_mentions(&refusal("f.csv", lines), &["line 4", "bad"]);
        let lines = ["", "{\"embedding\":[1]}", "", "{\"embedding\":[\"bad\"]}"].join(end);
        assert_mentions(&refusal("f.jsonl", lines), &["line 4", "bad"]);
    }
}

#[test]
fn lists_in_csv_may_be_written_in_many_ways() {
    for list in [
        "\"[1, 2.5]\"",
        "\"1,2.5\"",
        "1 2.5",
        "1;2.5",
        "\" [1;2.5] \"",
        "[1 2.5]",
        "\"[1.0\n 2.5]\"",
    ] {
        let (_folder, path) = file("f.csv", format!("embedding,note\n{list},x\n"));
        assert_eq!(read_table(path).unwrap().table.features.values(), [1.0, 2.5], "{list}");
    }
}

#[test]
fn unlabelled_is_written_in_many_ways() {
    let (_folder, path) = file("f.csv", "label,f0\n,1\n-1,2\n-x,3\n0,4\n\" \",5\n");
    let labels = read_table(path).unwrap().table.labels;
    assert_eq!(
        labels.iter().map(Option::as_deref).collect::<Vec<_>>(),
        [None, None, Some("-x"), Some("0"), None]
    );
    let lines = ["null", "\"\"", "-1", "3", "\"-1\"", "18446744073709551615"]
        .map(|l| format!("{{\"label\":{l},\"embedding\":[1]}}\n"));
    let (_folder, path) = file("f.jsonl", lines.concat());
    let labels = read_table(path).unwrap().table.labels;
    let labels: Vec<_> = labels.iter().map(Option::as_deref).collect();
    assert_eq!(
        labels,
        [None, None, None, Some("3"), Some("-1"), Some("18446744073709551615")]
    );
}

#[test]
fn json_lines_must_be_objects_with_an_embedding() {
    for (line, about) in [
        ("[1, 2]", "object"),
        ("{\"id\": \"a\"}", "no \"embedding\""),
        ("{\"embedding\": [1, null]}", "null"),
        ("{\"embedding\": [[1], [2]]}", "sequence"),
        ("{\"embedding\": [1], \"id\": 1.5}", "text or an integer"),
        ("{\"embedding\": [1], \"label\": [1]}", "text or an integer"),
        ("{\"embedding\": [1", "EOF"),
        ("{\"embedding\": [1]} x", "trailing"),
    ] {
        let text = format!("{{\"embedding\": [1]}}\n{line}\n");
        assert_mentions(&refusal("f.jsonl", text), &["line 2", about]);
    }
    let nested = "[".repeat(100_000);
    assert_mentions(&refusal("f.jsonl", format!("{{\"embedding\": {nested}")), &["line 1"]);
}

#[test]
fn endless_lines_are_refused_without_reading_them_all() {
    let spaces = vec![b' '; 65 << 20];
    assert_mentions(&refusal("f.jsonl", &spaces), &["line 1", "16 MiB"]);
    let quoted = [b"f0\n1\n\"", &spaces[..]].concat();
    assert_mentions(&refusal("f.csv", quoted), &["line 3", "16 MiB"]);
}

#[test]
fn python_objects_are_refused_with_the_way_out() {
    assert_mentions(&refused_golden("object.npy"), &["Python objects", "astype"]);
    assert_mentions(
        &refused_golden("object_labels.npz"),
        &["\"y\"", "Python objects", "astype(str)"],
    );
}

#[test]
fn arrays_of_other_types_and_shapes_are_refused() {
    assert_mentions(&refused_golden("fields.npy"), &["fields"]);
    assert_mentions(&refused_golden("one_dimension.npy"), &["1 dimensions", "two"]);
    assert_mentions(&refused_golden("three_dimensions.npy"), &["3 dimensions", "two"]);
    assert_mentions(&refused_golden("complex.npy"), &["<c8", "float32"]);
    assert_mentions(&refused_golden("float_labels.npz"), &["\"y\"", "<f4", "astype(int)"]);
    assert_mentions(
        &refused_golden("float_labels.safetensors"),
        &["\"y\"", "F32", "integers"],
    );
}

#[test]
fn arrays_of_different_length_are_refused() {
    assert_mentions(&refused_golden("short_labels.npz"), &["\"y\"", "4 values", "5 rows"]);
    assert_mentions(&refused_golden("short_ids.npz"), &["\"ids\"", "4 values", "5 rows"]);
    assert_mentions(
        &refused_golden("short_ids.safetensors"),
        &["\"ids\"", "4 values", "5 rows"],
    );
}

#[test]
fn missing_features_are_refused_with_what_there_is() {
    assert_mentions(&refused_golden("no_x.npz"), &["\"x\"", "vectors, y"]);
    assert_mentions(&refused_golden("no_x.safetensors"), &["\"x\"", "vectors"]);
    assert_mentions(&refused_golden("bad_ids.safetensors"), &["\"ids\"", "JSON list"]);
}

#[test]
fn parquet_columns_of_other_types_are_refused() {
    // One number is one feature.
    assert_mentions(&refused_golden("not_a_list.parquet"), &["row 1", "zero"]);
    assert_mentions(
        &refused_golden("list_of_texts.parquet"),
        &["\"embedding\"", "Utf8", "floats"],
    );
    assert_mentions(&refused_golden("float_label.parquet"), &["\"label\"", "Float64"]);
}

#[test]
fn headers_that_lie_about_the_length_are_refused() {
    let huge = "(1000000000000000000, 3)";
    assert_mentions(
        &refusal("f.npy", npy("<f4", huge, &[0; 12])),
        &["should take", "has 12"],
    );
    assert_mentions(
        &refusal("f.npy", npy("<f8", "(1000000000, 1000000000000)", &[])),
        &["2^64"],
    );
    assert_mentions(
        &refusal("f.npy", npy("<f4", "(3, 99999999999999999999999)", &[0; 12])),
        &["shape"],
    );
    assert_mentions(
        &refusal("f.npy", npy("<f4", "(2, 3)", &[1; 23])),
        &["24 bytes", "has 23"],
    );
    assert_mentions(
        &refusal("f.npy", npy("<f4", "(2, 3)", &[1; 25])),
        &["24 bytes", "has 25"],
    );
    for header in [
        "",
        "{",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, -1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1}",
        "{'descr': 'é', 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1, 1)}",
    ] {
        refusal("f.npy", npy_with_header(header, &1f32.to_le_bytes()));
    }
    let mut long_header = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
    long_header.extend([b' '; 100]);
    assert_mentions(&refusal("f.npy", long_header), &["header claims"]);

    let mut safetensors = (1u64 << 60).to_le_bytes().to_vec();
    safetensors.extend(b"{}");
    assert_mentions(&refusal("f.safetensors", safetensors), &["header claims"]);
    for header in [
        r#"{"x":{"dtype":"F32","shape":[1000000000000000000,3],"data_offsets":[0,12]}}"#,
        r#"{"x":{"dtype":"F32","shape":[1,3],"data_offsets":[12,0]}}"#,
        r#"{"x":{"dtype":"F32","shape":[1,3],"data_offsets":[0,18446744073709551615]}}"#,
        r#"{"x":{"dtype":"F32","shape":[1,3],"data_offsets":[4,16]}}"#,
    ] {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([1; 12]);
        assert_mentions(&refusal("f.safetensors", bytes), &["not a readable safetensors file"]);
    }
}

#[test]
fn archives_that_lie_are_refused() {
    let archive = std::fs::read(golden("texts_compressed.npz")).unwrap();
    let entry = |needle: &[u8]| {
        archive
            .windows(needle.len())
            .position(|window| window == needle)
            .unwrap()
    };
    // The uncompressed size of the first entry in the central directory, 2^31 bytes from a few dozen.
    let directory = entry(b"PK\x01\x02");
    let mut lying = archive.clone();
    lying[directory + 24..directory + 28].copy_from_slice(&(1u32 << 31).to_le_bytes());
    assert_mentions(&refusal("f.npz", &lying), &["\"x\"", "2147483648"]);
    // A checksum that does not fit.
    let mut damaged = archive.clone();
    damaged[directory + 16] ^= 1;
    assert_mentions(&refusal("f.npz", &damaged), &["checksum"]);
    // An entry that begins beyond the end.
    let mut beyond = archive.clone();
    beyond[directory + 42..directory + 46].copy_from_slice(&0x7fff_0000u32.to_le_bytes());
    refusal("f.npz", &beyond);
}

#[cfg(unix)]
#[test]
fn a_reader_can_move_to_another_thread() {
    let mut reader = TableReader::open(golden("list_f4.parquet")).unwrap();
    let table = std::thread::spawn(move || reader.next_block(9).unwrap().unwrap())
        .join()
        .unwrap();
    assert_eq!(table.len(), 5);
}

/// A few bytes may stand for any number of values; a row has a limit.
#[test]
fn rows_of_too_many_values_are_refused() {
    use arrow_array::builder::{Float32Builder, ListBuilder};
    use arrow_array::{ArrayRef, RecordBatch};
    let mut lists = ListBuilder::new(Float32Builder::new());
    lists.append_value(std::iter::repeat_n(Some(1.0), (1 << 20) + 1));
    let batch = RecordBatch::try_from_iter([("embedding", std::sync::Arc::new(lists.finish()) as ArrayRef)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(bytes.len() < 5000, "{}", bytes.len());
    assert_mentions(
        &refusal("f.parquet", bytes),
        &["f.parquet", "1048577", "at most 1048576 features"],
    );
}

/// Texts are padded to the longest of them, and padding compresses to nothing.
#[test]
fn long_texts_in_arrays_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.npz");
    let write = |id: String| {
        let mut writer = genus_data::FeatureWriter::create(&path, 1, None, false).unwrap();
        writer.write(&[id, "b".to_owned()], &[], &[1.0, 2.0]).unwrap();
        writer.finish().unwrap();
        genus_data::read_table(&path)
    };
    assert_eq!(write("a".repeat(1 << 16)).unwrap().table.ids[0].len(), 1 << 16);
    let refused = write("a".repeat((1 << 16) + 1)).unwrap_err().to_string();
    assert_mentions(&refused, &["ids", "262148 bytes", "at most 262144"]);
}
