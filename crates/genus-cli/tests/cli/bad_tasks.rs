//! Readable files that make no task: the message names the class and the way out.

use super::support::{Folder, Item, animals, csv, labelled, unlabelled};

const FILES: &str = "--support support.csv --query pile.csv";

/// The animals of the named classes only.
fn with_classes(classes: &[&str]) -> Folder {
    let folder = Folder::with_animals();
    let (support, _) = animals();
    let kept: Vec<Item> = support
        .into_iter()
        .filter(|item| classes.contains(&item.label.as_str()))
        .collect();
    folder.write("support.csv", csv(&kept));
    folder
}

#[test]
fn methods_that_compare_known_classes_need_two() {
    let folder = with_classes(&["bee"]);
    for method in ["shc", "ukc", "rankstat"] {
        let mentions = [method, "at least 2 known classes", "there is 1", "min-similarity"];
        folder.discover_fails(&format!("{FILES} -m {method}"), &mentions);
        folder.discover_fails(&format!("{FILES} -m {method} --subset 5"), &mentions);
    }
    let folder = with_classes(&["ant", "bee"]);
    folder.discover_fails(
        &format!("{FILES} -m rankstat:top=3"),
        &["rankstat", "at least 3", "there are 2"],
    );
}

#[test]
fn one_known_class_is_enough_with_a_limit_of_ones_own() {
    let folder = with_classes(&["bee"]);
    let rows = folder
        .genus(&format!("discover {FILES} --method shc:min-similarity=0.6"))
        .rows();
    for row in &rows {
        assert_eq!(row.category == "bee", row.id.starts_with("bee-"), "{row:?}");
    }
    let new = rows
        .iter()
        .filter(|row| row.kind == "new")
        .map(|row| row.category.as_str());
    assert_eq!(new.collect::<std::collections::BTreeSet<_>>().len(), 4);
    // ProtoNet has no choice and GCD counts by itself.
    let rows = folder.genus(&format!("discover {FILES} --method proto")).rows();
    assert!(rows.iter().all(|row| row.category == "bee"));
    folder.genus(&format!("discover {FILES} --method gcd")).success();
}

#[test]
fn methods_that_go_by_known_classes_need_some() {
    let folder = Folder::with_animals();
    for (method, needed) in [
        ("proto", "1 known class "),
        ("gcd", "1 known class "),
        ("shc:min-similarity=0.6", "1 known class "),
        ("shc", "2 known classes "),
        ("ukc", "2 known classes "),
        ("rankstat", "2 known classes "),
    ] {
        let mentions = [&format!("at least {needed}"), "there are 0"];
        folder.discover_fails(&format!("--query pile.csv -m {method}"), &mentions);
    }
}

#[test]
fn classes_that_cannot_be_told_apart_are_named() {
    let folder = Folder::with_animals();
    let (mut support, pile) = animals();
    let ants: Vec<Vec<f32>> = support
        .iter()
        .filter(|item| item.label == "ant")
        .map(|item| item.row.clone())
        .collect();
    // The same examples in another order and at another length.
    let copies = support.iter_mut().filter(|item| item.label == "cow");
    for (cow, ant) in copies.zip(ants.iter().rev()) {
        cow.row = ant.iter().map(|v| 2.0 * v).collect();
    }
    folder.write("support.csv", csv(&support));
    let mentions = ["`ant`", "`cow`", "one label"];
    for method in ["proto", "rankstat", "gcd", "shc", "ukc"] {
        folder.discover_fails(&format!("{FILES} -m {method}"), &mentions);
    }
    folder.discover_fails(&format!("{FILES} --subset 3"), &mentions);
    support.extend(unlabelled(&pile).into_iter().map(|mut item| {
        item.id.push_str(" of the pile");
        item
    }));
    folder.write("table.csv", csv(&support));
    folder.discover_fails("table.csv", &mentions);
}

#[test]
fn a_class_whose_examples_cancel_out_is_named() {
    let folder = Folder::new();
    folder.write("support.csv", "label,f0,f1\nup,0,1\nboth,1,0\nboth,-1,0\n");
    folder.write("pile.csv", "f0,f1\n1,1\n");
    folder.discover_fails(FILES, &["`both`", "average to zero", "examples"]);
}

#[test]
fn examples_without_a_label_are_named() {
    let folder = Folder::with_animals();
    let (mut support, pile) = animals();
    support[4].label.clear();
    folder.write("support.csv", csv(&support));
    let mentions = [
        "support.csv",
        &support[4].id.clone(),
        "no label",
        "genus discover support.csv",
    ];
    folder.discover_fails(FILES, &mentions);
    // No example, or none with a label, is a mistake where examples were named.
    folder.write("none.csv", "label,f0,f1,f2,f3,f4,f5,f6,f7\n");
    folder.discover_fails(
        "--support none.csv --query pile.csv",
        &["none.csv has no rows", "leave out --support"],
    );
    folder.discover_fails("--support pile.csv --query pile.csv", &["leave out --support"]);
    // A table with nothing but labels.
    folder.write("full.csv", csv(&pile));
    folder.discover_fails("full.csv", &["full.csv", "every item has a label", "nothing to sort"]);
}

#[test]
fn more_categories_than_points_are_refused() {
    let folder = Folder::with_animals();
    // 9 examples and 20 queries, or 5 queries of a subset.
    folder.discover_fails(&format!("{FILES} -m gcd:k=30"), &["30", "29", "ask for fewer"]);
    folder.genus(&format!("discover {FILES} -m gcd:k=29")).success();
    folder.discover_fails(
        &format!("{FILES} -m gcd:k=15 --subset 5"),
        &["15", "14", "ask for fewer"],
    );
}

/// A folder with six classes of eight items.
fn with_features() -> Folder {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(6, 8)));
    folder
}

const SMALL: &str = "bench main --features features.csv --way 2 --new 2 --shot 2 --query 3 --episodes 2 --methods shc";

#[test]
fn splits_that_do_not_fit_the_features_are_refused() {
    let folder = with_features();
    let class = |numbers: &[usize]| {
        let names: Vec<String> = numbers.iter().map(|number| format!("\"class {number:02}\"")).collect();
        names.join(", ")
    };
    let fails = |split: String, mentions: &[&str]| {
        folder.write("split.json", split);
        let mut mentions = mentions.to_vec();
        mentions.push("split.json");
        folder.fails(&format!("{SMALL} --split split.json"), &mentions);
        folder.write("older.json", "an older result\n");
        folder.fails(&format!("{SMALL} --split split.json --json older.json"), &mentions);
        folder.fails(&format!("{SMALL} --split split.json --json fresh.json"), &mentions);
    };
    let (base, novel) = (class(&[0, 1]), class(&[2, 3, 4, 5]));
    fails(
        format!("{{\"base\": [{base}], \"novel\": [{novel}, \"class 99\"]}}"),
        &["\"class 99\"", "not among the labels"],
    );
    fails(
        format!("{{\"base\": [{base}], \"novel\": [{novel}, \"class 01\"]}}"),
        &["\"class 01\"", "listed twice", "one place"],
    );
    fails(
        format!("{{\"base\": [{base}], \"novel\": [{}]}}", class(&[2, 3, 5])),
        &["\"class 04\"", "neither", "\"base\"", "\"novel\""],
    );
    fails(
        format!("{{\"base\": [{base}], \"novel\": []}}"),
        &["\"novel\"", "empty"],
    );
    fails(format!("{{\"base\": [{base}]}}"), &["novel"]);
    fails(format!("{{\"base\": [{base}], \"novel\": [{novel}"), &["line 1"]);
    fails("{\"novel\": [7]}".to_owned(), &["\"7\""]);
    fails(String::new(), &[]);
    folder.fails(&format!("{SMALL} --split none.json"), &["none.json"]);
    // The control: a split that fits.
    folder.write("split.json", format!("{{\"base\": [{base}], \"novel\": [{novel}]}}"));
    let outcome = folder.genus(&format!("{SMALL} --split split.json")).success();
    assert!(outcome.text().contains("from 4 classes"), "{}", outcome.text());
}

#[test]
fn classes_with_too_few_items_are_named() {
    let folder = Folder::new();
    let mut items = labelled(6, 8);
    items.retain(|item| item.label != "class 03" || item.id.ends_with(['0', '1', '2']));
    folder.write("features.csv", csv(&items));
    let mentions = ["features.csv", "`class 03`", "3 items", "5", "--short-classes skip"];
    folder.fails(SMALL, &mentions);
    for experiment in ["realtime", "alpha", "threshold"] {
        let command = SMALL.replace("main", experiment).replace(" --methods shc", "");
        folder.fails(&command, &mentions);
    }
    folder.fails(&SMALL.replace("main", "queries"), &mentions);
    let large = "bench large --features features.csv --way 2 --new 2 --tasks 2 --shot 3";
    folder.fails(large, &["`class 03`", "3 items", "4", "--short-classes skip"]);
    // The authors' batches are of twenty.
    let authors = large.replace("--shot 3", "--shot 2 --authors");
    folder.fails(&authors, &["features.csv", "class `class ", " items", "20"]);
    // What the message advises helps, and the table says what was left out.
    let outcome = folder.genus(&format!("{SMALL} --short-classes skip")).success();
    assert!(outcome.text().contains("left out: class 03"), "{}", outcome.text());
}

#[test]
fn too_few_classes_are_counted() {
    let folder = with_features();
    folder.fails(
        &SMALL.replace("--new 2", "--new 5"),
        &["features.csv", "7 classes", "there are 6", "fewer"],
    );
    let tasks = SMALL.replace("main", "tasks").replace("--way 2 --new 2", "");
    folder.fails(&tasks, &["features.csv", "25 classes", "6"]);
    for (option, mention) in [
        ("--way 2", "known class"),
        ("--shot 2", "example"),
        ("--query 3", "query"),
    ] {
        let none = format!("{} 0", option.split(' ').next().unwrap());
        folder.fails(
            &SMALL.replace(option, &none),
            &["features.csv", "at least one", mention],
        );
    }
    folder.fails(
        &SMALL.replace("--way 2", "--way 1"),
        &["shc", "at least 2 known classes"],
    );
    // Within the range of the numbers, and more than there are.
    folder.fails(
        &SMALL.replace("--query 3", "--query 1000000"),
        &["features.csv", "class "],
    );
    folder.fails(&SMALL.replace("--new 2", "--new 1000000"), &["features.csv", "classes"]);
}

#[test]
fn features_without_labels_cannot_be_scored() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&unlabelled(&labelled(6, 8))));
    folder.fails(SMALL, &["features.csv", "no row has a label"]);
}
