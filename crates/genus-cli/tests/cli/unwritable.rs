//! Output that cannot be written: said before the work is done, and nothing is lost or left behind.

use super::support::{Folder, csv, labelled};

const DISCOVER: &str = "discover --support support.csv --query pile.csv";

#[test]
fn a_file_where_a_folder_is_needed() {
    let folder = Folder::with_animals();
    folder.write("taken", "mine");
    for out in ["taken", "taken/below", "taken/below/deep"] {
        folder.fails(&format!("{DISCOVER} --out {out}"), &[out, "--out"]);
        folder.fails(&format!("{DISCOVER} --subset 5 --out {out}"), &[out, "--out"]);
    }
    folder.genus(&format!("{DISCOVER} --out result")).success();
    folder.fails(
        "assign --taxonomy result --query pile.csv --out taken",
        &["taken", "--out"],
    );
    assert_eq!(folder.read("taken"), "mine");
}

#[test]
fn a_folder_where_a_file_is_needed() {
    let folder = Folder::with_animals();
    for name in ["assignments.csv", "centres.safetensors", "taxonomy.toml"] {
        folder.write(&format!("{name}-taken/{name}/inside"), "mine");
        folder.fails(&format!("{DISCOVER} --out {name}-taken"), &[name, "directory"]);
    }
}

#[test]
fn new_folders_on_the_way_are_removed_again() {
    let folder = Folder::with_animals();
    folder.write("here/mine.txt", "");
    folder.fails(&format!("{DISCOVER} --out new/deep/er -m gcd:k=99"), &["99"]);
    folder.fails(&format!("{DISCOVER} --out here/new/deep -m gcd:k=99"), &["99"]);
    folder.fails("discover none.csv --out ./new/../other/deep", &["none.csv"]);
}

#[test]
fn a_json_file_that_cannot_be_written() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(6, 8)));
    folder.write("taken/inside", "mine");
    let bench = "bench main --features features.csv --way 2 --new 2 --shot 2 --query 3 --episodes 2";
    folder.fails(&format!("{bench} --json taken"), &["taken", "directory"]);
    folder.fails(
        &format!("{bench} --json features.csv/result.json"),
        &["features.csv/result.json"],
    );
    folder.fails(
        &format!("{bench} --json none/result.json"),
        &["none/result.json", "create the folder"],
    );
    // Nobody should wait for the episodes to hear that: it is said before what only the episodes show.
    let command = format!("{bench} --json none/result.json");
    folder.fails(
        &command.replace("--way 2", "--way 1"),
        &["none/result.json", "create the folder"],
    );
}
