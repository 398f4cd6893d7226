//! Readers that leave early: no failure, no panic, no message.

use std::io::pipe;

use super::support::{Folder, csv, labelled};

fn folder() -> Folder {
    let folder = Folder::with_animals();
    folder.write("features.csv", csv(&labelled(6, 8)));
    folder
        .genus("discover --support support.csv --query pile.csv --out result")
        .success();
    folder
}

const COMMANDS: [&str; 8] = [
    "discover --support support.csv --query pile.csv",
    "discover --support support.csv --query pile.csv --format jsonl",
    "discover --support support.csv --query pile.csv --format parquet",
    "discover --support support.csv --query pile.csv --subset 5",
    "assign --taxonomy result --query pile.csv",
    "bench main --features features.csv --way 2 --new 2 --shot 2 --query 3 --episodes 2 --methods proto",
    "methods",
    "completions bash",
];

#[test]
fn a_closed_standard_output_ends_quietly() {
    let folder = folder();
    for command in COMMANDS {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = folder
            .command(&format!("{command} --quiet"))
            .stdout(writer)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{command}");
    }
}

#[test]
fn help_and_the_demo_end_quietly_too() {
    let folder = Folder::new();
    for command in ["--help", "discover --help", "--version", "demo digits"] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = folder.command(command).stdout(writer).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{command}");
    }
}

#[test]
fn a_closed_standard_error_does_not_disturb_the_results() {
    let folder = folder();
    for command in COMMANDS {
        let expected = folder.genus(command).success();
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = folder.command(command).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(output.stdout == expected.stdout, "{command}");
    }
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let status = folder.command("discover none.csv").stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(1));
}
