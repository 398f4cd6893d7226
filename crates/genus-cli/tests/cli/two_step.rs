//! Piles of which a subset is clustered and the rest assigned.

use std::collections::BTreeMap;

use super::support::{Folder, Item, Outcome, Row, animals, csv, jsonl, npy, unlabelled, without_times};

/// A folder with the animals' examples and a larger pile of them in three formats, and the ids of the pile.
fn with_large_pile() -> (Folder, Vec<String>) {
    let folder = Folder::with_animals();
    let (support, pile) = animals();
    let mut noise = super::support::Noise(5);
    let pile: Vec<Item> = pile
        .iter()
        .cycle()
        .take(500)
        .enumerate()
        .map(|(number, item)| Item {
            id: format!("{} {number}", item.label),
            label: String::new(),
            row: item
                .row
                .iter()
                .map(|v| v + (100.0 * noise.next()).round() / 1000.0)
                .collect(),
        })
        .collect();
    folder.write("large.csv", csv(&pile));
    folder.write("large.jsonl", jsonl(&pile));
    folder.write("large.npy", npy(&pile));
    let mut table = unlabelled(&pile);
    for (number, example) in support.into_iter().enumerate() {
        table.insert(40 * number, example);
    }
    folder.write("table.csv", csv(&table));
    (folder, pile.into_iter().map(|item| item.id).collect())
}

fn run(folder: &Folder, query: &str, options: &str) -> Outcome {
    folder
        .genus(&format!("discover --support support.csv --query {query} {options}"))
        .success()
}

/// How many rows are in a category that most of their true class are in.
fn purity(rows: &[Row], ids: &[String]) -> f64 {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (row, id) in rows.iter().zip(ids) {
        *counts.entry((&id[..3], &row.category)).or_default() += 1;
    }
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for ((class, _), count) in counts {
        let best = most.entry(class).or_default();
        *best = count.max(*best);
    }
    most.values().sum::<usize>() as f64 / rows.len() as f64
}

#[test]
fn every_item_of_the_pile_comes_out_once_and_in_order() {
    let (folder, ids) = with_large_pile();
    let expected = run(&folder, "large.csv", "--subset 60");
    for (query, options) in [
        ("large.csv", "--subset 60"),
        ("large.jsonl", "--subset 60"),
        ("large.npy", "--subset 60"),
        ("large.csv", "--subset 499"),
        ("large.csv", "--subset 60 --refine 2"),
        ("large.csv", "--subset 60 -m shc --centre-norm authors-columns"),
        ("large.csv", "--subset 60 -m ukc"),
        ("large.csv", "--subset 60 -m gcd"),
        ("large.csv", "--subset 60 -m rankstat"),
        ("large.csv", "--subset 1 -m proto"),
    ] {
        let outcome = run(&folder, query, options);
        let rows = outcome.rows();
        let found: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        if query == "large.npy" {
            assert_eq!(found, (0..500).map(|row| row.to_string()).collect::<Vec<_>>());
        } else {
            assert_eq!(found, ids, "{query} {options}");
        }
        if options == "--subset 60" {
            let same = rows.iter().zip(expected.rows());
            for (row, expected) in same {
                assert_eq!(
                    (&row.category, &row.score, &row.margin),
                    (&expected.category, &expected.score, &expected.margin)
                );
            }
            assert_eq!(
                without_times(&outcome.stderr),
                without_times(&expected.stderr),
                "{query}"
            );
        }
    }
    // In a table the pile keeps its order among itself.
    let table = folder.genus("discover table.csv --subset 60").success();
    assert_eq!(table.text(), expected.text());
    insta::assert_snapshot!("two_step_summary", without_times(&table.stderr));
}

#[test]
fn the_subset_is_enough_to_sort_all() {
    let (folder, ids) = with_large_pile();
    for options in [
        "--subset 60 -m shc",
        "--subset 60 -m shc --refine 3",
        "--subset 60 -m ukc",
        "--subset 60 -m ukc --refine 1",
    ] {
        let rows = run(&folder, "large.csv", options).rows();
        let purity = purity(&rows, &ids);
        assert!(purity > 0.95, "{options}: {purity}");
        let known = rows
            .iter()
            .zip(&ids)
            .filter(|(row, id)| row.category == id[..3])
            .count();
        assert!(known > 285, "{options}: {known} of 300 are with their known class");
    }
}

#[test]
fn a_subset_of_everything_is_the_plain_run() {
    let (folder, _) = with_large_pile();
    let plain = run(&folder, "large.csv", "");
    for options in ["--subset 500", "--subset 501", "--subset 100000000"] {
        assert_eq!(run(&folder, "large.csv", options).text(), plain.text(), "{options}");
        assert_eq!(
            run(&folder, "large.npy", options).text().len(),
            run(&folder, "large.npy", "").text().len()
        );
    }
}

#[test]
fn the_seed_chooses_the_subset() {
    let (folder, _) = with_large_pile();
    let seeded = |seed: u64| run(&folder, "large.csv", &format!("--subset 60 --seed {seed}")).stdout;
    assert_eq!(seeded(7), seeded(7));
    assert!(seeded(7) != seeded(8));
}

#[test]
fn refinement_moves_the_centres() {
    let (folder, _) = with_large_pile();
    let mean = |options: &str| {
        let rows = run(&folder, "large.csv", options).rows();
        rows.iter().map(Row::score).sum::<f64>() / rows.len() as f64
    };
    let (before, after) = (mean("--subset 20"), mean("--subset 20 --refine 2"));
    assert!(after > before, "{before} {after}");
}

#[test]
fn counts_and_taxonomy_speak_of_the_whole_pile() {
    let (folder, _) = with_large_pile();
    for options in [
        "--subset 60",
        "--subset 60 --refine 1",
        "--subset 60 -m shc",
        "--subset 60 -m shc --centre-norm authors-columns",
    ] {
        let outcome = run(&folder, "large.csv", &format!("{options} --out result"));
        assert!(outcome.stderr.contains("500 items"), "{}", outcome.stderr);
        let rows = super::support::parse_csv(&folder.read("result/assignments.csv"));
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        rows.iter()
            .for_each(|row| *counts.entry(row.category.clone()).or_default() += 1);
        let taxonomy = folder.read("result/taxonomy.toml");
        let entries: Vec<&str> = taxonomy.split("[[category]]\n").skip(1).collect();
        let mut total = 0;
        for entry in entries {
            let field = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let (name, items) = (
                field("name = ").trim_matches('"'),
                field("items = ").parse::<u64>().unwrap(),
            );
            assert_eq!(counts.get(name).copied().unwrap_or(0), items, "{options}: {name}");
            total += items;
        }
        assert_eq!(total, 500, "{options}");
    }
}

#[test]
fn what_was_not_clustered_is_assigned_as_assign_does() {
    let (folder, _) = with_large_pile();
    for options in [
        "--subset 60 --refine 2",
        "--subset 60 -m shc --refine 2",
        "--subset 60 -m shc --refine 1 --centre-norm authors-columns",
    ] {
        run(&folder, "large.csv", &format!("{options} --out result"));
        let assigned = folder.genus("assign --taxonomy result --query large.csv").success();
        assert_eq!(assigned.text(), folder.read("result/assignments.csv"), "{options}");
    }
    // Without refinement the decisions of the method stand, all others are the same. RankStat does not go by centres.
    run(&folder, "large.csv", "--subset 60 -m rankstat --out result");
    let found = super::support::parse_csv(&folder.read("result/assignments.csv"));
    let assigned = folder.genus("assign --taxonomy result --query large.csv").rows();
    let differ = found
        .iter()
        .zip(&assigned)
        .filter(|(a, b)| a.category != b.category)
        .count();
    assert!((1..=60).contains(&differ), "{differ}");
}

/// Which items are clustered is decided by their content: shuffled rows come out the same, copies among them.
#[test]
fn the_order_of_the_rows_decides_nothing() {
    let (folder, _) = with_large_pile();
    let large = folder.read("large.csv");
    let (header, lines) = large.split_once('\n').unwrap();
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    // Some have copies under other names.
    let copies: Vec<String> = lines.iter().step_by(7).map(|line| format!("copy of {line}")).collect();
    lines.extend(copies);
    let sorted = |lines: &[String], options: &str| {
        folder.write("pile.csv", format!("{header}\n{}\n", lines.join("\n")));
        let mut rows: Vec<String> = run(&folder, "pile.csv", options)
            .text()
            .lines()
            .map(str::to_owned)
            .collect();
        rows.sort();
        rows
    };
    for options in [
        "--subset 60",
        "--subset 60 -m shc",
        "--subset 60 -m ukc",
        "--subset 60 -m rankstat",
    ] {
        let expected = sorted(&lines, options);
        let mut reversed = lines.clone();
        reversed.reverse();
        assert_eq!(sorted(&reversed, options), expected, "{options}");
        let middle = lines.len() / 2;
        let (first, second) = lines.split_at(middle);
        let turned: Vec<String> = second
            .iter()
            .zip(first)
            .flat_map(|(a, b)| [a.clone(), b.clone()])
            .collect();
        assert_eq!(turned.len(), lines.len() - lines.len() % 2);
        let turned = [turned, lines[2 * middle..].to_vec()].concat();
        assert_eq!(sorted(&turned, options), expected, "{options}");
    }
}
