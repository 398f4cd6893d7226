//! Typical mistakes and what the program says to them.

use super::support::{Folder, csv, labelled};

/// The transcripts of some commands, one after the other, each of which must end with the code.
fn transcripts(folder: &Folder, code: i32, commands: &[&str]) -> String {
    let mut text = String::new();
    for command in commands {
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(code), "{}", outcome.transcript());
        assert_eq!(outcome.text(), "", "a mistake has no results\n{}", outcome.transcript());
        assert_ne!(outcome.stderr, "", "{command} fails without a word");
        text.push_str(&outcome.transcript());
        text.push('\n');
    }
    text
}

#[test]
fn wrong_usage_ends_with_code_2() {
    let folder = Folder::with_animals();
    let text = transcripts(
        &folder,
        2,
        &[
            "",
            "discver",
            "discover",
            "discover --support support.csv",
            "discover support.csv --support support.csv",
            "discover support.csv --query pile.csv",
            "discover support.csv --metod shc",
            "discover support.csv --format xlsx",
            "discover support.csv --subset 0",
            "discover support.csv --proto median",
            "discover support.csv --centre-norm rows",
            "discover support.csv --seed minus",
            "--threads 0 demo",
            "assign --query pile.csv",
            "bench",
            "bench mian --features support.csv",
            "bench main",
            "bench main --features support.csv --episodes 0",
            "bench main --features support.csv --short-classes drop",
            "bench main --features support.csv --tail 24-3",
            "bench main --features support.csv --tail 24",
            "bench main --features support.csv --tail 0-0",
            "bench main --features support.csv --tail --query 3",
            "bench queries --features support.csv --tail",
            "bench piles --features support.csv --way 25",
            "bench piles --features support.csv --with-base",
            "bench piles --features support.csv --half third",
            "bench piles --features support.csv --vary everything",
            "bench piles --features support.csv --items 0",
            "bench realtime --features support.csv --outliers 3",
            "bench large --features support.csv --tail",
            "bench large --features support.csv --outliers 3",
            "completions tcsh",
        ],
    );
    insta::assert_snapshot!("usage", text);
}

#[test]
fn a_method_that_does_not_exist_or_cannot_be_set_so_is_wrong_usage() {
    let folder = Folder::with_animals();
    let discover = "discover --support support.csv --query pile.csv --method";
    let methods = [
        "shh",
        "",
        "shc:tt=3",
        "shc:t=-1",
        "shc:t",
        "shc:t=1:t=2",
        "shc:stop=later",
        "shc:boost=0.9",
        "shc:min-similarity=2",
        "ukc:alpha=0.9",
        "ukc:alpha=nan",
        "ukc:first-alpha=0",
        "ukc:restarts=0",
        "rankstat:top=1",
        "gcd:k=some",
        "proto:t=1",
    ];
    let mut text = String::new();
    for method in methods {
        // An empty name does not survive the splitting at spaces.
        let command = format!("{discover}={method}");
        text.push_str(&transcripts(&folder, 2, &[&command]));
    }
    let bench = "bench alpha --features support.csv --alpha 1.4,0.5";
    text.push_str(&transcripts(
        &folder,
        2,
        &[bench, "bench main --features support.csv --methods shc,unknown"],
    ));
    insta::assert_snapshot!("methods", text);
}

#[test]
fn a_wrong_method_is_found_before_files_are_read_or_folders_made() {
    let folder = Folder::new();
    let outcome = folder.genus("discover none.csv --method shh --out result");
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    assert!(folder.contents().is_empty(), "{:?}", folder.contents());
}

#[test]
fn what_cannot_be_done_ends_with_code_1() {
    let folder = Folder::with_animals();
    folder.write("pile.xlsx", "not a feature file");
    let text = transcripts(
        &folder,
        1,
        &[
            "discover none.csv",
            "discover --support support.csv --query none.npy",
            "discover --support support.csv --query pile.xlsx",
            "discover --support support.csv --query .",
            "discover --support support.csv --query pile.csv --method gcd:k=500",
            "discover --support pile.csv --query pile.csv",
            "discover support.csv",
            "assign --taxonomy none --query pile.csv",
            "assign --taxonomy . --query pile.csv",
            "bench main --features none.npz",
            "bench main --features pile.csv",
            "bench main --features support.csv",
            "bench main --features support.csv --split none.json",
            "bench main --features support.csv --way 1 --new 1 --shot 1 --tail 1-20",
            "bench main --features support.csv --way 1 --new 1 --shot 1 --query 1 --outliers 20",
        ],
    );
    insta::assert_snapshot!("failures", text);
}

#[test]
fn one_feature_is_too_few() {
    let folder = Folder::new();
    folder.write("support.csv", "label,f0\nlow,1\nlow,2\nhigh,8\nhigh,9\n");
    folder.write("pile.csv", "f0\n1\n9\n");
    folder.fails(
        "discover --support support.csv --query pile.csv",
        &["one feature", "direction", "`low` and `high`", "two or more columns"],
    );
}

/// Names come from files, and a terminal would obey what is in them.
#[test]
fn messages_are_printable_and_short() {
    let folder = Folder::with_animals();
    let pile = folder.read("pile.csv");
    let (header, rest) = pile.split_once('\n').unwrap();
    let first = rest.lines().next().unwrap();
    let values = first.split_once(',').unwrap().1;
    let id = format!("\u{1b}[2J\u{7}{}", "long ".repeat(5000));
    folder.write("pile.csv", format!("{header}\n\"{id}\",{values}\n\"{id}\",{values}\n"));
    let said = folder.fails(
        "discover --support support.csv --query pile.csv",
        &["pile.csv", "same id", "make the ids unique"],
    );
    assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
    assert!(said.chars().count() < 5000, "{}", said.chars().count());
}

/// Numbers beyond all reason are refused where they are read, and not by a lack of memory.
#[test]
fn numbers_have_a_range() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(6, 8)));
    let bench = "bench main --features features.csv --way 2 --new 2 --shot 2 --query 3";
    let train = "train base --encoder conv4:size=16,width=4 --from-scratch --out run";
    let huge = 1u64 << 32;
    for command in [
        format!("{bench} --episodes {huge}"),
        format!("{bench} --episodes 2 --threads 1000000000000"),
        format!("{bench} --episodes 2 --methods simgcd:epochs={huge}"),
        format!("{bench} --episodes 2 --methods ocd:hidden={huge}"),
        format!("{bench} --episodes 2 --methods ukc:restarts={huge}"),
        format!("{train} --head-hidden {huge}"),
        format!("{train} --bits {huge}"),
        format!("{train} --epochs {huge}"),
        format!("{train} --views {huge}"),
        format!("{train} --way {huge}"),
        format!("{train} --blocks {huge}"),
        format!("bench main --features features.csv --way {huge}"),
        format!("{bench} --outliers {huge}"),
        format!("{bench} --methods shc:t={huge}"),
        format!("{bench} --methods gcd:k={huge}"),
        format!("bench main --features features.csv --tail 1-{huge}"),
        format!("bench large --features features.csv --subset {huge}"),
        format!("bench threshold --features features.csv --threshold 0,{huge}"),
        format!("bench piles --features features.csv --items {huge}"),
        format!("bench piles --features features.csv --draws {huge}"),
        format!("bench stream --features features.csv --orders {huge}"),
        format!("discover --query features.csv --subset {huge}"),
        format!("discover --query features.csv --method rankstat:top={huge}"),
    ] {
        let outcome = folder.genus(&command);
        assert_eq!(outcome.code, Some(2), "{command}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains("at most"), "{command}\n{}", outcome.stderr);
    }
}
