//! `genus demo`: what a person sees first.

use super::support::{Folder, without_times};

fn demo(options: &str) -> String {
    let outcome = Folder::new().genus(&format!("demo {options}")).success();
    assert_eq!(outcome.stderr, "");
    without_times(outcome.text())
}

#[test]
fn the_demo_as_a_person_sees_it() {
    let text = demo("");
    insta::assert_snapshot!("demo", text);
    for line in text.lines() {
        let width = line.chars().count();
        assert!(width <= 120, "{width} columns: {line}");
    }
    assert!(text.contains("UCI") && text.contains("CC BY 4.0") && text.contains("Alpaydin"));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" of 10 ")).collect();
    let methods: Vec<&str> = rows.iter().map(|row| row.split(' ').next().unwrap()).collect();
    assert_eq!(methods, ["proto", "rankstat", "gcd", "shc", "ukc", "calibrated"]);
}

#[test]
fn the_same_seed_gives_the_same_demo_at_any_number_of_threads() {
    let one = demo("--seed 3 --threads 1");
    assert_eq!(one, demo("--seed 3 --threads 2"));
    let snapshot = include_str!("snapshots/cli__demo__demo.snap");
    assert!(
        !snapshot.contains(one.lines().next().unwrap()),
        "another seed draws other digits"
    );
}
