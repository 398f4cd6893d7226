//! The pipeline as a Rust program calls it.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use genus::{
    AssignOptions, Destination, DiscoverOptions, Error, Features, Inputs, NextSteps, Output, OutputOptions, Page, Rows,
    Silent, SortedItem, Table, TableOptions,
};
use genus_core::methods::Shc;
use genus_core::{CentreNorm, Discover, Subset, Support, Task, TwoStep};

/// Items around three directions, the first two of which have labelled examples.
fn items(count: usize, labelled: bool) -> Table {
    let row = |at: usize| {
        let mut row = [0.1, 0.1, 0.1, 0.01 * (at % 17) as f32];
        row[at % 3] += 1.0 + 0.001 * at as f32;
        row
    };
    let rows: Vec<usize> = (0..count).filter(|at| !labelled || at % 3 < 2).collect();
    Table {
        ids: rows.iter().map(|at| format!("item {at}")).collect(),
        labels: rows
            .iter()
            .map(|at| labelled.then(|| ["left", "right"][at % 3].to_owned()))
            .collect(),
        features: Features::from_rows(rows.iter().map(|&at| row(at))).unwrap(),
    }
}

fn inputs() -> Inputs {
    Inputs::new(items(9, true), items(90, false))
}

fn options(method: &str) -> DiscoverOptions {
    DiscoverOptions {
        method: method.parse().unwrap(),
        ..DiscoverOptions::default()
    }
}

fn write_csv(path: &Path, table: &Table) {
    let rows = table.ids.iter().zip(&table.labels).zip(table.features.iter());
    let rows = rows.map(|((id, label), row)| {
        let values: Vec<String> = row.iter().map(f32::to_string).collect();
        format!("{id},{},{}\n", label.as_deref().unwrap_or_default(), values.join(","))
    });
    fs::write(path, format!("id,label,f0,f1,f2,f3\n{}", rows.collect::<String>())).unwrap();
}

#[test]
fn features_in_memory_are_those_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let [support, query] = ["support.csv", "query.csv"].map(|name| folder.path().join(name));
    write_csv(&support, &items(9, true));
    write_csv(&query, &items(90, false));
    for method in ["shc", "calibrated"] {
        let memory = genus::discover(inputs(), &options(method), &Silent).unwrap();
        let file = genus::discover(Inputs::new(&support, &query), &options(method), &Silent).unwrap();
        assert_eq!(memory.assignments, file.assignments, "{method}");
        assert_eq!(memory.assignments.len(), 90);
        assert_eq!(memory.assignments[0].category, "left", "{method}");
        assert_ne!(memory.assignments[2].category, "left", "{method}");
    }
}

#[test]
fn a_large_pile_is_clustered_in_part_and_handed_on_in_its_order() {
    let options = DiscoverOptions {
        subset: NonZeroUsize::new(30),
        refine: 1,
        ..options("shc")
    };
    let mut rows: Vec<SortedItem> = Vec::new();
    let handed_on = genus::discover_into(inputs(), &options, &mut rows, &Silent).unwrap();
    assert_eq!(handed_on.clustered.ids.len(), 30);
    assert!(handed_on.assignments.is_empty());
    assert_eq!(rows, genus::discover(inputs(), &options, &Silent).unwrap().assignments);
    assert!(rows.iter().zip(items(90, false).ids).all(|(row, id)| row.id == id));
    assert_eq!(handed_on.counts.items.iter().sum::<u64>(), 90);
    // What a bench measures is what happens here, when it clusters the same items.
    let (examples, pile) = (items(9, true), items(90, false));
    let chosen = handed_on.clustered.ids.iter();
    let mut order: Vec<usize> = chosen.map(|id| id["item ".len()..].parse().unwrap()).collect();
    order.extend((0..90).filter(|row| !handed_on.clustered.ids.contains(&format!("item {row}"))));
    let labels: Vec<String> = examples.labels.into_iter().flatten().collect();
    let support = Support::new(examples.features, &labels).unwrap();
    let two_step = TwoStep {
        method: Shc::default(),
        subset: Subset::First(30),
        centre_norm: CentreNorm::Cosine,
        refine: 1,
    };
    let task = Task::new(&support, pile.features.select(&order)).unwrap();
    let found = two_step.discover(&task).unwrap();
    let pairs: BTreeSet<(&str, usize)> = order
        .iter()
        .map(|&row| &*rows[row].category)
        .zip(found.query_clusters().iter().copied())
        .collect();
    let clusters: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let categories: BTreeSet<&str> = pairs.iter().map(|pair| pair.0).collect();
    assert_eq!((pairs.len(), pairs.len()), (clusters.len(), categories.len()));
}

#[test]
fn nothing_appears_before_it_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("deep/result");
    let outcome = genus::discover(inputs(), &options("calibrated"), &Silent).unwrap();
    let to = Destination::Folder(result.clone());
    let mut dropped = Output::open(to, OutputOptions::default(), Path::new("pile")).unwrap();
    dropped.write(&outcome.assignments[0].row()).unwrap();
    drop(dropped);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let page = Page::new(&inputs(), &TableOptions::default(), None, None).unwrap();
    let to = Destination::Folder(result.clone());
    let saved = outcome
        .write(to, OutputOptions::default(), Some(&page), &Silent)
        .unwrap();
    assert!(saved.report.unwrap().is_file());
    let lines = fs::read_to_string(result.join("assignments.csv")).unwrap();
    assert_eq!(lines.lines().count(), 91);

    // A taxonomy grows when it is told to, and not before.
    let before = fs::read(result.join("taxonomy.toml")).unwrap();
    let grow = || genus::grow(&result, items(30, false), &result, &AssignOptions::default(), &Silent).unwrap();
    drop(grow());
    assert_eq!(fs::read(result.join("taxonomy.toml")).unwrap(), before);
    let _saved = grow().save(None, None, &Silent).unwrap();
    assert_ne!(fs::read(result.join("taxonomy.toml")).unwrap(), before);
    let more = genus::assign(&result, items(6, false), &AssignOptions::default(), &Silent).unwrap();
    assert_eq!(more.assignments.len(), 6);
}

#[test]
fn errors_say_what_is_wrong_and_name_no_flag() {
    let next = |next: NextSteps| {
        let options = OutputOptions {
            next,
            ..OutputOptions::default()
        };
        let writer = Box::new(std::io::sink());
        let name = "nowhere".to_owned();
        Output::open(Destination::Writer { name, writer }, options, Path::new("pile")).err()
    };
    let discover = |inputs: Inputs, method: &str| genus::discover(inputs, &options(method), &Silent).err();
    let mut ragged = items(9, false);
    ragged.labels.pop();
    let unlabelled = Inputs::new(items(9, false), items(90, false));
    let narrow = Table {
        features: Features::from_rows((0..90).map(|at| [1.0 + at as f32, 1.0])).unwrap(),
        ..items(90, false)
    };
    let errors = [
        discover(Inputs::Mixed(items(9, true).into()), "shc"),
        discover(Inputs::without_examples(ragged), "shc"),
        discover(unlabelled, "shc"),
        discover(Inputs::new(items(9, true), narrow), "shc"),
        discover(inputs(), "calibrated:directions=0"),
        discover(Inputs::without_examples("no such file.csv"), "shc"),
        next(NextSteps {
            exports: vec![genus::Export::FiftyOne],
            ..NextSteps::default()
        }),
    ];
    for error in errors {
        let text = error.expect("an error").to_string();
        assert!(!text.contains("--"), "{text}");
    }
    let error = discover(inputs(), "calibrated:directions=0");
    assert!(matches!(
        error,
        Some(Error::NoEffect {
            parameter: "directions",
            ..
        })
    ));
}
