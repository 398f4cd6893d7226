//! The paper's own figures: which there are, and which contradict themselves.

use genus_core::episode::Shape;
use genus_lab::{CellPlace, paper_cell, paper_counts};

const SETS: [&str; 5] = ["cifar100", "imagenet100", "cub200", "cars", "aircraft"];

fn shape(way: usize, shot: usize, new: usize) -> Shape {
    Shape {
        way,
        shot,
        new,
        query: 15,
    }
}

/// Every place that a table of the paper may have.
fn places() -> Vec<CellPlace<'static>> {
    let five = shape(5, 5, 5);
    let mut places = Vec::new();
    let mut table = |table, shape, subjects: &[&'static str], methods: &[&'static str]| {
        for &subject in subjects {
            for &method in methods {
                for set in SETS {
                    places.push(CellPlace {
                        table,
                        shape,
                        subject,
                        method,
                        set,
                    });
                }
            }
        }
    };
    let all = ["proto", "rankstat", "simgcd", "ocd", "gcd", "shc", "ukc"];
    table("main", five, &[""], &all);
    table("main", shape(5, 1, 5), &[""], &all);
    table(
        "realtime",
        five,
        &[""],
        &["proto", "rankstat", "ocd", "shc:boost=1.1", "ukc"],
    );
    table("large", five, &[""], &["proto", "rankstat", "ocd", "shc", "ukc"]);
    for (way, new) in [(5, 20), (10, 20), (10, 40)] {
        table("tasks", shape(way, 5, new), &[""], &["shc", "ukc"]);
    }
    let alphas = [
        "ukc:alpha=1.3",
        "ukc:alpha=1.35",
        "ukc:alpha=1.4",
        "ukc:alpha=1.45",
        "ukc:alpha=1.6",
    ];
    table("alpha", five, &[""], &alphas);
    table(
        "threshold",
        five,
        &[""],
        &["shc:t=0", "shc:t=1", "shc:t=2", "shc:t=3", "shc:t=4"],
    );
    let encoders = [
        "dino-vitb16",
        "resnet18",
        "resnet18 from scratch",
        "resnet50",
        "resnet50 from scratch",
    ];
    table("backbones", five, &encoders, &["proto", "shc", "ukc"]);
    table("transfer", five, &["cub200", "cars", "imagenet100"], &["shc", "ukc"]);
    places
}

#[test]
fn every_cell_is_found_and_those_that_contradict_themselves_are_marked() {
    let cells: Vec<_> = places()
        .into_iter()
        .filter_map(|place| Some((place, paper_cell(place)?)))
        .collect();
    // 5 × 7 twice, 5 × 5, 2 × 5, 3 × 4, 10, 10, 5 × 3 × 2 and 9 × 2.
    assert_eq!(cells.len(), 70 + 25 + 10 + 12 + 10 + 10 + 30 + 18);
    let marked = |text: &str| {
        let doubts = cells.iter().filter_map(|(_, cell)| cell.doubt.as_ref());
        doubts.filter(|doubt| doubt.contains(text)).count()
    };
    // Sixteen cells whose All is not the mean of Old and New; the one of OCD on ImageNet-100 is marked as collapsed.
    assert_eq!(marked("is not the mean"), 15);
    assert_eq!(marked("collapsed"), 4);
    assert_eq!(marked("repeats another row"), 1);
    for (place, cell) in &cells {
        assert_eq!(cell.new.is_none(), place.method == "proto", "{place:?}");
        assert!((0.0..=100.0).contains(&cell.all) && (0.0..=100.0).contains(&cell.old));
    }
}

#[test]
fn other_settings_have_no_cell() {
    let place = CellPlace {
        table: "main",
        shape: shape(5, 5, 5),
        subject: "",
        method: "shc",
        set: "cub200",
    };
    let cell = paper_cell(place).unwrap();
    assert_eq!(
        (cell.all, cell.old, cell.new, cell.doubt),
        (73.6, 94.5, Some(52.6), None)
    );
    let other_query = Shape {
        query: 14,
        ..place.shape
    };
    for other in [
        CellPlace {
            method: "shc:t=3",
            ..place
        },
        CellPlace { method: "sh", ..place },
        CellPlace {
            set: "omniglot",
            ..place
        },
        CellPlace {
            table: "tasks",
            ..place
        },
        CellPlace {
            shape: other_query,
            ..place
        },
    ] {
        assert_eq!(paper_cell(other), None, "{other:?}");
    }
    // In real time the paper's SHC is that of the authors' code.
    let real = CellPlace {
        table: "realtime",
        ..place
    };
    assert_eq!(paper_cell(real), None);
    let boosted = CellPlace {
        method: "shc:boost=1.1",
        ..real
    };
    assert_eq!(paper_cell(boosted).unwrap().old, 63.7);
    // A large task takes all items, whatever the number of queries.
    let large = CellPlace {
        table: "large",
        shape: other_query,
        set: "cifar100",
        ..place
    };
    assert_eq!(paper_cell(large).unwrap().all, 71.4);
    assert_eq!(paper_counts("cars").unwrap().novel, "8.1k");
    assert_eq!(paper_counts("omniglot"), None);
}
