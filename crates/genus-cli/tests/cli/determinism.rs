//! The same seed gives the same bytes at any number of threads.

use super::support::{Folder, Item, animals, csv, labelled, npy};

#[test]
fn discovery_does_not_depend_on_the_number_of_threads() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let mut noise = super::support::Noise(6);
    // Enough for the work to be divided, and noise enough for ties and doubtful cases.
    let pile: Vec<Item> = pile
        .iter()
        .cycle()
        .take(700)
        .map(|item| Item {
            row: item.row.iter().map(|v| v + 0.5 * noise.next()).collect(),
            ..item.clone()
        })
        .collect();
    folder.write("large.npy", npy(&pile));
    for method in [
        "proto",
        "rankstat",
        "gcd",
        "shc",
        "ukc",
        "calibrated",
        "calibrated --subset 200 --refine 1",
        "shc:remainder=sample:attach=cosine:stop=after",
        "shc --subset 200 --refine 2",
        "ukc --subset 200",
    ] {
        let run = |threads: usize| {
            let out = format!("out-{threads}");
            let files = "discover --support support.csv --query large.npy --seed 5";
            let printed = folder
                .genus(&format!("{files} --method {method} --threads {threads}"))
                .success();
            folder
                .genus(&format!("{files} --method {method} --threads {threads} --out {out}"))
                .success();
            let written = ["assignments.csv", "centres.safetensors", "taxonomy.toml"];
            (
                printed.stdout,
                written.map(|name| std::fs::read(folder.path(&format!("{out}/{name}"))).unwrap()),
            )
        };
        assert!(run(1) == run(2), "{method}");
    }
}

#[test]
fn a_bench_does_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(12, 10)));
    let shape = "--features features.csv --way 3 --new 3 --shot 2 --seed 9";
    for command in [
        format!("bench main {shape} --query 5 --episodes 8"),
        format!("bench realtime {shape} --query 5 --episodes 8"),
        format!("bench large {shape} --subset 20 --tasks 3 --refine 1"),
        format!("bench queries {shape} --query 2,4 --episodes 5"),
        "bench piles --features features.csv --classes 6 --way 3 --shot 2 --items 2,4 --tail 1-6 --draws 2".to_owned(),
        "bench stream --features features.csv --classes 6 --way 3 --shot 2 --items 6 --orders 3 --looks 2".to_owned(),
    ] {
        let run = |threads: usize| {
            let outcome = folder
                .genus(&format!("{command} --threads {threads} --json {threads}.json"))
                .success();
            (outcome.stdout, folder.read(&format!("{threads}.json")))
        };
        let (one, two) = (run(1), run(2));
        assert!(one == two, "{command}");
        assert!(one == run(1), "{command} again");
    }
}

#[test]
fn another_seed_draws_other_episodes() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(12, 10)));
    let run = |seed: u64| {
        let shape = "--features features.csv --way 3 --new 3 --shot 1 --query 5 --episodes 8 --methods rankstat";
        folder
            .genus(&format!("bench main {shape} --json {seed}.json --seed {seed}"))
            .success();
        let json: serde_json::Value = serde_json::from_str(&folder.read(&format!("{seed}.json"))).unwrap();
        assert_eq!(json["seed"], seed);
        json["runs"][0]["episodes"].clone()
    };
    let (first, second) = (run(1), run(2));
    assert_ne!(first, second);
    let distinct: std::collections::HashSet<String> =
        first.as_array().unwrap().iter().map(ToString::to_string).collect();
    assert!(distinct.len() > 1, "all episodes are the same: {first}");
}
