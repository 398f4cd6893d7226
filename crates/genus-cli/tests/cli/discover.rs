//! `genus discover`: the rows it gives and the folder it writes.

use std::collections::{BTreeMap, BTreeSet};

use super::support::{
    Folder, Item, Row, animals, bursts, csv, jsonl, labelled, npy, parse_csv, unlabelled, without_times,
};

const FILES: &str = "discover --support support.csv --query pile.csv";

/// The class that an item of the pile really has: its id without the number.
fn truth(row: &Row) -> &str {
    row.id.rsplit_once('-').unwrap().0
}

/// Scores to two decimals: the last digits differ between processors.
fn rounded(text: &str) -> String {
    let rows = parse_csv(text).into_iter().map(|row| {
        let (score, margin) = (row.score(), row.margin());
        let probability = row.probability().map_or(String::new(), |v| format!("{v:.2}"));
        format!(
            "{},{},{},{score:.2},{margin:.2},{probability},{}\n",
            row.id, row.category, row.kind, row.scene
        )
    });
    format!(
        "id,category,kind,score,margin,probability,scene\n{}",
        rows.collect::<String>()
    )
}

#[test]
fn a_small_pile_as_a_person_sees_it() {
    let folder = Folder::with_animals();
    let mut outcome = folder.genus(FILES).success();
    outcome.stdout = rounded(outcome.text()).into_bytes();
    outcome.stderr = without_times(&outcome.stderr);
    insta::assert_snapshot!("small_pile", outcome.transcript());
    let mut summaries = String::new();
    for method in [
        "proto",
        "rankstat",
        "gcd",
        "gcd:k=6",
        "shc:min-similarity=0.9",
        "ukc",
        "ukc:alpha=1.1",
    ] {
        let outcome = folder.genus(&format!("{FILES} --method {method}")).success();
        summaries.push_str(&without_times(&outcome.stderr));
    }
    insta::assert_snapshot!("summaries", summaries);
}

#[test]
fn known_classes_keep_their_names_and_new_ones_are_found() {
    let folder = Folder::with_animals();
    for method in ["shc", "ukc", "shc:linkage=sequential", "ukc:m=mean-all"] {
        let rows = folder.genus(&format!("{FILES} -m {method}")).rows();
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            let expected = if ["owl", "yak"].contains(&truth(row)) {
                "new"
            } else {
                "known"
            };
            assert_eq!(row.kind, expected, "{method}: {row:?}");
            groups.entry(truth(row)).or_default().insert(&row.category);
        }
        for known in ["ant", "bee", "cow"] {
            assert_eq!(groups[known], BTreeSet::from([known]), "{method}");
        }
        // Equal sizes are numbered by their first query.
        assert_eq!(groups["owl"], BTreeSet::from(["new-1"]), "{method}");
        assert_eq!(groups["yak"], BTreeSet::from(["new-2"]), "{method}");
    }
}

#[test]
fn rows_keep_the_order_of_the_pile_whatever_it_is() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let mut mixed = unlabelled(&pile);
    mixed.reverse();
    mixed.swap(0, 7);
    folder.write("mixed.csv", csv(&mixed));
    for method in ["proto", "rankstat", "gcd", "shc", "ukc"] {
        let rows = folder
            .genus(&format!("discover --support support.csv --query mixed.csv -m {method}"))
            .rows();
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let expected: Vec<&str> = mixed.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, expected, "{method}");
    }
    // The order is no part of what is found: only the last digits of sums depend on it.
    let sorted = |query: &str| {
        let mut rows = folder
            .genus(&format!("discover --support support.csv --query {query}"))
            .rows();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        rows
    };
    for (a, b) in sorted("mixed.csv").iter().zip(sorted("pile.csv")) {
        assert_eq!((&a.id, &a.kind), (&b.id, &b.kind));
        assert!((a.score() - b.score()).abs() < 1e-5, "{a:?} {b:?}");
    }
}

#[test]
fn scores_are_cosines_with_a_lead_over_the_next() {
    let folder = Folder::with_animals();
    for row in folder.genus(FILES).rows() {
        assert!((0.9..=1.0).contains(&row.score()), "{row:?}");
        assert!(row.margin() > 0.3 && row.margin() <= 2.0, "{row:?}");
    }
}

#[test]
fn the_score_is_the_cosine_with_the_prototype_where_nothing_else_joins() {
    // One query between two known classes of one example each; to ProtoNet the centre of a class is the mean of the
    // prototype and its queries, all as units.
    let folder = Folder::new();
    folder.write("support.csv", "label,f0,f1\nright,2,0\nup,0,3\n");
    folder.write("pile.csv", "f0,f1\n3,4\n");
    let rows = folder
        .genus("discover --support support.csv --query pile.csv -m proto")
        .rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].category.as_str(), rows[0].kind.as_str()), ("up", "known"));
    // The centre is the direction of (0, 1) + (0.6, 0.8); the cosine is (0.36 + 0.8 * 1.8) / |(0.6, 1.8)|.
    let score = (0.36 + 0.8 * 1.8) / f64::hypot(0.6, 1.8);
    assert!((rows[0].score() - score).abs() < 2e-6, "{rows:?}");
    // The other centre is (1, 0).
    assert!((rows[0].margin() - (score - 0.6)).abs() < 2e-6, "{rows:?}");
}

#[test]
fn one_table_equals_the_same_rows_in_two_files() {
    let folder = Folder::with_animals();
    let (support, pile) = animals();
    let mut table: Vec<Item> = Vec::new();
    // Examples and pile interleaved, the order within each as before.
    let (mut examples, mut queries) = (support.iter(), unlabelled(&pile).into_iter());
    loop {
        let (example, query) = (examples.next(), queries.next());
        if example.is_none() && query.is_none() {
            break;
        }
        table.extend(query);
        // The same animal must not have one id twice.
        table.extend(example.map(|item| Item {
            id: format!("example {}", item.id),
            ..item.clone()
        }));
    }
    folder.write("table.csv", csv(&table));
    folder.write("table.jsonl", jsonl(&table));
    for method in ["proto", "rankstat", "gcd", "shc", "ukc"] {
        let expected = folder.genus(&format!("{FILES} -m {method}")).success();
        for file in ["table.csv", "table.jsonl"] {
            let found = folder.genus(&format!("discover {file} -m {method}")).success();
            assert_eq!(found.text(), expected.text(), "{file}, {method}");
            assert_eq!(
                without_times(&found.stderr),
                without_times(&expected.stderr),
                "{file}, {method}"
            );
        }
    }
}

#[test]
fn ids_default_to_the_numbers_of_the_rows_in_the_file() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    folder.write("pile.npy", npy(&pile));
    let rows = folder.genus("discover --support support.csv --query pile.npy").rows();
    let named = folder.genus(FILES).rows();
    for (number, (row, named)) in rows.iter().zip(&named).enumerate() {
        assert_eq!(row.id, number.to_string());
        assert_eq!((&row.category, &row.score), (&named.category, &named.score));
    }
    assert_eq!(rows.len(), named.len());
    // In a table the labelled rows count too, so that an id finds its row.
    folder.write("table.csv", "label,f0,f1\nright,2,0\n,1,2\nup,0,3\n,2,1\n");
    let rows = folder.genus("discover table.csv -m proto").rows();
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.id.as_str(), row.category.as_str()))
        .collect();
    assert_eq!(found, [("1", "up"), ("3", "right")]);
}

#[test]
fn labels_in_the_pile_of_its_own_file_are_not_looked_at() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    folder.write("labelled.csv", csv(&pile));
    let seen = folder
        .genus("discover --support support.csv --query labelled.csv")
        .success();
    assert_eq!(seen.text(), folder.genus(FILES).success().text());
}

#[test]
fn a_known_class_may_be_called_like_a_new_one() {
    let folder = Folder::with_animals();
    let (support, _) = animals();
    let renamed: Vec<Item> = support
        .into_iter()
        .map(|mut item| {
            item.label = item.label.replace("ant", "new-1");
            item
        })
        .collect();
    folder.write("support.csv", csv(&renamed));
    let rows = folder.genus(FILES).rows();
    let kinds: BTreeSet<(&str, &str)> = rows.iter().map(|row| (&*row.category, &*row.kind)).collect();
    let expected = [
        ("bee", "known"),
        ("cow", "known"),
        ("new-1", "known"),
        ("new-2", "new"),
        ("new-3", "new"),
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
}

#[test]
fn the_folder_holds_the_assignments_and_the_taxonomy() {
    let folder = Folder::with_animals();
    let printed = folder.genus(FILES).success();
    let outcome = folder.genus(&format!("{FILES} --out result")).success();
    assert_eq!(outcome.text(), "", "the results are in the folder");
    assert!(outcome.stderr.contains("Written to result\n"), "{}", outcome.stderr);
    assert_eq!(
        folder.names("result"),
        [
            "assignments.csv",
            "calibration.safetensors",
            "centres.safetensors",
            "report.html",
            "taxonomy.toml"
        ]
    );
    assert_eq!(folder.read("result/assignments.csv"), printed.text());
    let toml: String = folder
        .read("result/taxonomy.toml")
        .lines()
        // The last digits differ between processors.
        .filter(|line| {
            !["centres = ", "calibration = ", "agreement = "]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
    assert!(toml.contains(version), "{toml}");
    insta::assert_snapshot!("taxonomy_toml", toml.replace(version, "version = [version]"));
}

#[test]
fn a_second_run_replaces_the_results_of_the_first() {
    let folder = Folder::with_animals();
    folder.genus(&format!("{FILES} --out a/b/result -m proto")).success();
    let proto = folder.contents();
    folder.genus(&format!("{FILES} --out a/b/result")).success();
    folder.write("note.txt", "");
    let calibrated = folder.contents();
    assert_eq!(
        folder.names("a/b/result"),
        [
            "assignments.csv",
            "calibration.safetensors",
            "centres.safetensors",
            "report.html",
            "taxonomy.toml"
        ]
    );
    for name in ["assignments.csv", "centres.safetensors", "taxonomy.toml"] {
        let name = format!("a/b/result/{name}");
        assert!(proto[&name] != calibrated[&name], "{name} is still the old one");
    }
    // What else is there stays.
    folder.write("a/b/result/notes.txt", "mine");
    folder
        .genus(&format!("{FILES} --out a/b/result --format jsonl"))
        .success();
    assert_eq!(folder.read("a/b/result/notes.txt"), "mine");
    assert_eq!(folder.names("a/b/result").len(), 7);
}

#[test]
fn prototypes_can_be_made_in_three_ways() {
    let folder = Folder::new();
    // A long and a short example: the mean of raw rows leans to the long one.
    folder.write("support.csv", "label,f0,f1\nleft,100,0\nleft,0,1\nright,-1,0.2\n");
    folder.write("pile.csv", "f0,f1\n1,0.5\n");
    let run = |kind: &str| {
        let rows = folder
            .genus(&format!(
                "discover --support support.csv --query pile.csv -m proto --proto {kind}"
            ))
            .rows();
        rows[0].score()
    };
    let (raw, unit) = (run("raw-mean"), run("unit-mean"));
    assert!((raw - unit).abs() > 1e-3, "{raw} {unit}");
    assert!(run("unit-mean-unnormalised") > 0.0);
    let default = folder
        .genus("discover --support support.csv --query pile.csv -m proto")
        .rows();
    assert!([raw, unit].contains(&default[0].score()));
}

#[test]
fn quiet_says_nothing() {
    let folder = Folder::with_animals();
    for command in [
        format!("{FILES} --quiet"),
        format!("-q {FILES} --out result"),
        format!("{FILES} -q --subset 7"),
        "assign --taxonomy result --query pile.csv -q".to_owned(),
    ] {
        let outcome = folder.genus(&command).success();
        assert_eq!(outcome.stderr, "", "{command}");
    }
    // Errors are still said.
    assert_ne!(folder.genus("discover none.csv -q").stderr, "");
}

#[test]
fn no_colours_in_files_and_colours_when_asked_for() {
    let folder = Folder::with_animals();
    let plain = folder.genus(FILES).success();
    assert!(!plain.stderr.contains('\u{1b}') && !plain.text().contains('\u{1b}'));
    let output = folder.command(FILES).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("\u{1b}["));
    assert_eq!(output.stdout, plain.stdout, "data never has colours");
}

#[test]
fn frames_of_one_scene_are_told_and_stay_together() {
    let folder = Folder::with_animals();
    let (examples, frames) = bursts();
    folder.write("examples.csv", csv(&examples));
    folder.write("bursts.csv", csv(&frames));
    let files = "discover --support examples.csv --query bursts.csv";
    let outcome = folder.genus(files).success();
    assert!(
        outcome.stderr.starts_with("195 items, 65 scenes: "),
        "{}",
        outcome.stderr
    );
    // Scenes are numbered in the order of the pile, and all of a scene goes where it goes.
    let rows = outcome.rows();
    for (number, scene) in rows.chunks(3).enumerate() {
        assert!(
            scene.iter().all(|row| row.scene == (number + 1).to_string()),
            "{scene:?}"
        );
        assert!(scene.iter().all(|row| row.category == scene[0].category), "{scene:?}");
    }
    // The same in every format.
    let lines = folder.genus(&format!("{files} --format jsonl")).success();
    for (line, row) in lines.text().lines().zip(&rows) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["scene"].to_string(), row.scene);
    }
    // Where items are alone there is nothing to say of scenes, but the column is there.
    let alone = folder.genus(FILES).success();
    assert!(alone.stderr.starts_with("20 items: "), "{}", alone.stderr);
    let numbers: Vec<String> = alone.rows().into_iter().map(|row| row.scene).collect();
    assert_eq!(numbers, (1..=20).map(|number| number.to_string()).collect::<Vec<_>>());
    // Other methods do not look for scenes, and where only a subset is clustered nobody knows those of all.
    for options in ["--method shc", "--method ukc", "--subset 100"] {
        let outcome = folder.genus(&format!("{files} {options}")).success();
        assert!(!outcome.stderr.contains("scene"), "{options}\n{}", outcome.stderr);
        assert!(outcome.rows().iter().all(|row| row.scene.is_empty()), "{options}");
    }
}

#[test]
fn what_is_equal_to_an_example_has_its_label() {
    let folder = Folder::new();
    let (mut support, pile) = animals();
    // Somebody calls one of the bees and one of the owls an ant.
    let odd: Vec<Item> = pile
        .iter()
        .filter(|item| ["bee-2", "owl-1"].contains(&&*item.id))
        .cloned()
        .collect();
    assert_eq!(odd.len(), 2);
    support.extend(odd.iter().map(|item| Item {
        id: format!("{}, called an ant", item.id),
        label: "ant".to_owned(),
        row: item.row.clone(),
    }));
    folder.write("support.csv", csv(&support));
    folder.write("pile.csv", csv(&unlabelled(&pile)));
    // At once, and where some are clustered and the others assigned.
    for options in ["", "--subset 12", "--subset 12 --refine 1"] {
        let rows = folder.genus(&format!("{FILES} {options}")).rows();
        for item in &odd {
            let row = rows.iter().find(|row| row.id == item.id).unwrap();
            assert_eq!(
                (&*row.category, &*row.kind, &*row.probability),
                ("ant", "known", "1.000000"),
                "{options} {row:?}"
            );
        }
        // Its neighbours are not ants for that.
        let others = rows
            .iter()
            .filter(|row| row.category == "ant" && !row.id.starts_with("ant"));
        assert_eq!(others.count(), 2, "{options}");
    }
}

#[test]
fn one_known_class_is_enough() {
    let folder = Folder::with_animals();
    let (support, _) = animals();
    let bees: Vec<Item> = support.into_iter().filter(|item| item.label == "bee").collect();
    folder.write("bees.csv", csv(&bees));
    for (examples, options) in [(&bees[..], ""), (&bees[..1], ""), (&bees[..], "--subset 15")] {
        folder.write("bees.csv", csv(examples));
        let rows = folder
            .genus(&format!("discover --support bees.csv --query pile.csv {options}"))
            .rows();
        assert_eq!(rows.len(), 20);
        for row in &rows {
            let (is_bee, called_bee) = (truth(row) == "bee", row.category == "bee");
            assert_eq!(is_bee, called_bee, "{} examples {options} {row:?}", examples.len());
        }
    }
}

#[test]
fn labels_of_a_pile_without_examples_are_not_passed_over_in_silence() {
    let folder = Folder::with_animals();
    let outcome = folder.genus("discover --query support.csv --out result").success();
    let note = "support.csv: 9 items have a label, which --query does not use; `genus discover support.csv` takes them as examples\n";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    let outcome = folder.genus("discover --query pile.csv --out result2").success();
    assert!(!outcome.stderr.contains("label, which"), "{}", outcome.stderr);
}

#[test]
fn without_examples_everything_is_new() {
    let folder = Folder::with_animals();
    let outcome = folder.genus("discover --query pile.csv --out result").success();
    assert!(
        outcome.stderr.starts_with("20 items: 20 in 5 new groups, 0 unsure ("),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome
            .stderr
            .contains("\nThere are no labelled examples, so everything is new.\n"),
        "{}",
        outcome.stderr
    );
    let rows = parse_csv(&folder.read("result/assignments.csv"));
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in &rows {
        assert_eq!(row.kind, "new", "{row:?}");
        groups.entry(truth(row)).or_default().insert(&row.category);
    }
    let found: BTreeSet<&BTreeSet<&str>> = groups.values().collect();
    assert!(
        groups.values().all(|own| own.len() == 1) && found.len() == 5,
        "{groups:?}"
    );
    // One table without a label is the same, and the taxonomy takes further items.
    assert_eq!(folder.genus("discover pile.csv").rows(), rows);
    let again = folder.genus("assign --taxonomy result --query pile.csv").rows();
    for (row, again) in rows.iter().zip(&again) {
        assert_eq!(row.category, again.category);
    }
    // Where some are clustered and the others assigned, too.
    let rows = folder.genus("discover --query pile.csv --subset 15").rows();
    assert!(rows.len() == 20 && rows.iter().all(|row| row.kind != "known"));
    // Nobody is told so in vain.
    assert!(!folder.genus(FILES).stderr.contains("everything is new"));
}

#[test]
fn a_pile_of_hundreds_needs_no_example_either() {
    let folder = Folder::new();
    let pile = labelled(12, 60);
    folder.write("pile.csv", csv(&unlabelled(&pile)));
    let outcome = folder.genus("discover --query pile.csv").success();
    assert!(outcome.stderr.contains("everything is new"), "{}", outcome.stderr);
    let rows = outcome.rows();
    assert!(rows.len() == 720 && rows.iter().all(|row| row.kind != "known"));
    let categories: BTreeSet<&str> = rows.iter().map(|row| row.category.as_str()).collect();
    assert!((8..=16).contains(&categories.len()), "{categories:?}");
}
