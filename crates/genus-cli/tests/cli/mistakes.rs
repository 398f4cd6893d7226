//! Typical mistakes and what the program says to them.

use super::support::Folder;

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
