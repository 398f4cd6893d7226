//! Files that are damaged or hold what cannot be used. Every failure names the file and the place, has code 1 and leaves
//! nothing behind.

use super::support::{Folder, Item, NARROW_SUPPORT, animals, csv, golden, jsonl, npy, unlabelled};

/// An intact file of every format.
const GOOD: [&str; 8] = [
    "rows.csv",
    "list.csv",
    "rows.jsonl",
    "f4.npy",
    "texts.npz",
    "classes_compressed.npz",
    "f4.safetensors",
    "list_f4.parquet",
];

fn narrow() -> Folder {
    let folder = Folder::new();
    folder.write("support.csv", NARROW_SUPPORT);
    folder
}

/// As the pile, as the examples and as one table, the file is refused.
#[track_caller]
fn refused(folder: &Folder, name: &str, mentions: &[&str]) {
    let mut mentions = mentions.to_vec();
    mentions.push(name);
    folder.discover_fails(&format!("--support support.csv --query {name}"), &mentions);
    folder.fails(&format!("discover --support {name} --query support.csv"), &mentions);
    folder.fails(&format!("discover {name}"), &mentions);
    folder.fails(&format!("bench main --features {name}"), &mentions);
}

#[test]
fn intact_files_are_read() {
    let folder = narrow();
    for name in GOOD {
        folder.write(name, golden(name));
        let rows = folder
            .genus(&format!("discover --support support.csv --query {name}"))
            .rows();
        assert_eq!(rows.len(), 5, "{name}");
    }
}

#[test]
fn truncated_files_are_refused() {
    for name in GOOD {
        let folder = narrow();
        let whole = golden(name);
        let extension = name.split('.').next_back().unwrap();
        let text = ["csv", "jsonl"].contains(&extension);
        // Text is cut within a line, so that it is not just a shorter file.
        let cuts = if text {
            let middle = whole.len() / 2;
            let end = (middle..).find(|&at| whole[at] == b'\n').unwrap();
            vec![end - 4]
        } else {
            vec![whole.len() - 1, whole.len() / 2, 9, 3]
        };
        for cut in cuts {
            let name = format!("cut-{cut}-{name}");
            folder.write(&name, &whole[..cut]);
            refused(&folder, &name, if text { &["line "] } else { &[] });
        }
    }
}

#[test]
fn empty_files_are_refused() {
    let folder = narrow();
    for extension in ["csv", "jsonl", "ndjson", "npy", "npz", "safetensors", "parquet"] {
        let name = format!("empty.{extension}");
        folder.write(&name, "");
        refused(&folder, &name, &[]);
    }
}

#[test]
fn files_of_another_kind_are_refused() {
    let folder = narrow();
    let other = "<!DOCTYPE html>\n<html>404, page not found</html>\n";
    for extension in ["csv", "jsonl", "npy", "npz", "safetensors", "parquet"] {
        let name = format!("page.{extension}");
        folder.write(&name, other);
        refused(&folder, &name, &[]);
    }
    // One format under the name of another.
    for (content, name) in [
        ("f4.npy", "table.npz"),
        ("texts.npz", "table.npy"),
        ("list_f4.parquet", "table.csv"),
        ("rows.csv", "table.jsonl"),
        ("rows.jsonl", "table.parquet"),
        ("f4.safetensors", "table.safetensors.csv"),
    ] {
        folder.write(name, golden(content));
        refused(&folder, name, &[]);
    }
    folder.write("notes.pdf", "");
    refused(&folder, "notes.pdf", &["cannot tell the format", ".npy", ".parquet"]);
    folder.write("folder.csv/inside", "");
    refused(&folder, "folder.csv", &[]);
}

#[test]
fn arrays_of_a_kind_that_holds_no_features_are_refused() {
    let folder = narrow();
    for (name, mention) in [
        ("object.npy", "object"),
        ("one_dimension.npy", "dimension"),
        ("three_dimensions.npy", "dimension"),
        ("complex.npy", "c8"),
        ("no_x.npz", "x"),
        ("no_x.safetensors", "x"),
        ("short_labels.npz", "y"),
        ("short_ids.npz", "ids"),
        ("label_outside.npz", "row "),
        ("label_outside.safetensors", "row "),
        ("null_list.parquet", "row "),
        ("null_value.parquet", "row "),
    ] {
        folder.write(name, golden(name));
        refused(&folder, name, &[mention]);
    }
}

#[test]
fn rows_of_different_length_are_refused() {
    let folder = narrow();
    folder.write("wide.csv", "id,f0,f1,f2\na,1,2,3\nb,1,2,3,4\n");
    refused(&folder, "wide.csv", &["line 3", "5 cells", "4 columns"]);
    folder.write("list.csv", "id,embedding\na,1 2 3\nb,1 2\n");
    refused(&folder, "list.csv", &["line 3", "2 features", "3"]);
    folder.write("short.jsonl", "{\"embedding\": [1, 2, 3]}\n\n{\"embedding\": [1, 2]}\n");
    refused(&folder, "short.jsonl", &["line 3", "2 features", "3"]);
    folder.write("ragged.parquet", golden("ragged.parquet"));
    refused(&folder, "ragged.parquet", &["row ", "features"]);
}

#[test]
fn support_and_pile_of_different_width_are_refused() {
    let folder = narrow();
    let (_, pile) = animals();
    let pile = unlabelled(&pile);
    folder.write("wide.csv", csv(&pile));
    folder.write("wide.jsonl", jsonl(&pile));
    folder.write("wide.npy", npy(&pile));
    for name in ["wide.csv", "wide.jsonl", "wide.npy"] {
        let mentions = ["support.csv has 3 features", name, "8", "same encoder"];
        folder.discover_fails(&format!("--support support.csv --query {name}"), &mentions);
        folder.discover_fails(&format!("--support support.csv --query {name} --subset 2"), &mentions);
    }
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let folder = narrow();
    for (value, shown) in [("nan", "NaN"), ("-inf", "-inf"), ("1e39", "inf")] {
        folder.write("odd.csv", format!("id,f0,f1,f2\na,1,2,3\nb c,1,{value},3\n"));
        refused(
            &folder,
            "odd.csv",
            &["line 3", "\"b c\"", "f1", shown, "remove the row"],
        );
    }
    let item = |value: f32| Item {
        id: String::new(),
        label: String::new(),
        row: vec![1.0, 2.0, value],
    };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        folder.write("odd.npy", npy(&[item(1.0), item(value)]));
        refused(&folder, "odd.npy", &["row 2", &value.to_string(), "remove the row"]);
    }
    folder.write(
        "odd.jsonl",
        "{\"id\": 7, \"embedding\": [1, 2, 3]}\n{\"id\": 8, \"embedding\": [1, 2, 1e39]}\n",
    );
    refused(&folder, "odd.jsonl", &["line 2"]);
    for name in ["not_finite.npz", "nan.parquet"] {
        folder.write(name, golden(name));
        refused(&folder, name, &["row ", "not a finite number"]);
    }
}

#[test]
fn cells_that_are_no_numbers_are_refused() {
    let folder = narrow();
    folder.write("words.csv", "id,f0,f1,f2\na,1,2,3\nb,1,many,3\n");
    refused(&folder, "words.csv", &["line 3", "\"f1\"", "\"many\""]);
    folder.write("gap.csv", "id,f0,f1,f2\na,1,,3\n");
    refused(&folder, "gap.csv", &["line 2", "\"f1\""]);
    folder.write("words.jsonl", "{\"embedding\": [1, 2, \"3\"]}\n");
    refused(&folder, "words.jsonl", &["line 1", "embedding"]);
    folder.write("headless.csv", "1,2,3\n4,5,6\n");
    refused(&folder, "headless.csv", &["line 1", "header"]);
}

#[test]
fn rows_of_zeros_are_refused() {
    let folder = narrow();
    folder.write("zero.csv", "id,f0,f1,f2\na,1,2,3\nb,0,-0,0.0\n");
    refused(&folder, "zero.csv", &["line 3", "\"b\"", "zero", "remove the row"]);
    folder.write("zero.jsonl", "{\"id\": \"a\", \"embedding\": [0, 0, 0]}\n");
    refused(&folder, "zero.jsonl", &["line 1", "\"a\"", "zero"]);
    let row = |row: [f32; 3]| Item {
        id: String::new(),
        label: String::new(),
        row: row.to_vec(),
    };
    folder.write("zero.npy", npy(&[row([1.0, 2.0, 3.0]), row([0.0; 3])]));
    refused(&folder, "zero.npy", &["row 2", "zero"]);
    folder.write("zero.parquet", golden("zero.parquet"));
    refused(&folder, "zero.parquet", &["row ", "zero"]);
}

#[test]
fn ids_that_two_rows_share_are_refused() {
    let folder = narrow();
    folder.write("twice.csv", "id,f0,f1,f2\na,1,2,3\nb,3,2,1\na,2,2,2\n");
    refused(&folder, "twice.csv", &["line 2", "line 4", "\"a\"", "unique"]);
    folder.write(
        "twice.jsonl",
        "{\"id\": 5, \"embedding\": [1, 2, 3]}\n{\"id\": \"5\", \"embedding\": [1, 2, 4]}\n",
    );
    refused(&folder, "twice.jsonl", &["line 1", "line 2", "\"5\""]);
    for name in ["duplicate_ids.npz", "duplicate_ids.parquet"] {
        folder.write(name, golden(name));
        refused(&folder, name, &["row ", "same id", "unique"]);
    }
    folder.write(
        "some.jsonl",
        "{\"id\": 5, \"embedding\": [1, 2, 3]}\n{\"embedding\": [1, 2, 4]}\n",
    );
    refused(&folder, "some.jsonl", &["line 2", "id"]);
}

#[test]
fn files_without_rows_are_refused() {
    let folder = narrow();
    folder.write("header.csv", "id,label,f0,f1,f2\n");
    folder.write("blank.jsonl", "\n\n");
    for name in ["no_rows.npy", "no_rows.parquet"] {
        folder.write(name, golden(name));
    }
    for name in ["header.csv", "blank.jsonl", "no_rows.npy", "no_rows.parquet"] {
        refused(&folder, name, &["no rows"]);
    }
    folder.write("no_columns.npy", golden("no_columns.npy"));
    refused(&folder, "no_columns.npy", &["no features"]);
}

#[test]
fn a_bad_row_far_down_is_found_before_anything_is_printed() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let mut many: Vec<Item> = unlabelled(&pile).into_iter().cycle().take(9_000).collect();
    many.iter_mut()
        .enumerate()
        .for_each(|(number, item)| item.id = number.to_string());
    many[8_900].row.fill(0.0);
    folder.write("many.npy", npy(&many));
    folder.write("many.csv", csv(&many));
    folder.write("many.jsonl", jsonl(&many));
    for (name, place) in [
        ("many.npy", "row 8901"),
        ("many.csv", "line 8902"),
        ("many.jsonl", "line 8901"),
    ] {
        let command = format!("--support support.csv --query {name} --subset 10");
        folder.discover_fails(&command, &[name, place, "\"8900\"", "zero"]);
    }
}
