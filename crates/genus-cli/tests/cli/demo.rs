//! `genus demo`: what a person sees first.

use super::support::{Folder, without_times};

fn digits(options: &str) -> String {
    let outcome = Folder::new().genus(&format!("demo digits {options}")).success();
    assert_eq!(outcome.stderr, "");
    without_times(outcome.text())
}

/// Photographs go the same way: from files through the encoder inside the program to groups and a page.
#[test]
fn the_demo_as_a_person_sees_it() {
    let folder = Folder::new();
    let outcome = folder.genus("demo --out result").success();
    let text = outcome.text();
    insta::assert_snapshot!("demo", text);
    assert!(
        outcome
            .stderr
            .contains("337 images embedded with efficientnet-lite2-int8")
    );
    assert!(text.contains("Noto") && text.contains("Apache-2.0"));
    let all = |method: &str| -> f64 {
        let row = text.lines().find(|line| line.starts_with(method)).unwrap();
        row.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    for method in ["proto", "rankstat", "gcd", "shc", "ukc"] {
        assert!(all("calibrated") > all(method), "{method}");
    }
    let page = folder.read("result/report.html");
    assert!(page.contains("data:image/") && page.contains("owl.png"));
    // It is sorted for once, and leaves nothing behind.
    assert!(folder.contents().keys().all(|name| name.starts_with("result")));
}

#[test]
fn the_digits_as_a_person_sees_them() {
    let text = digits("");
    insta::assert_snapshot!("digits", text);
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
fn the_same_seed_gives_the_same_digits_at_any_number_of_threads() {
    let one = digits("--seed 3 --threads 1");
    assert_eq!(one, digits("--seed 3 --threads 2"));
    let snapshot = include_str!("snapshots/cli__demo__digits.snap");
    assert!(
        !snapshot.contains(one.lines().next().unwrap()),
        "another seed draws other digits"
    );
}
