//! A collection as a person meets it: made, added to, corrected, undone; and two at once.

use std::process::Command;

use serde_json::Value;

use super::support::{Folder, Outcome};

/// A collection with the examples and the pile of the animals.
fn animals() -> Folder {
    let folder = Folder::with_animals();
    folder.genus("init zoo --support support.csv --author ann").success();
    folder.genus("add zoo pile.csv --author ann").success();
    folder
}

/// What a command says with `--json`.
#[track_caller]
fn json(folder: &Folder, arguments: &str) -> Value {
    let outcome = folder.genus(&format!("{arguments} --json")).success();
    serde_json::from_str(outcome.text()).unwrap_or_else(|e| panic!("{arguments}: {e}\n{}", outcome.text()))
}

/// A command whose arguments have blanks.
fn run(folder: &Folder, arguments: &[&str]) -> Outcome {
    let mut command: Command = folder.command("");
    command.args(arguments);
    folder.outcome(command, &arguments.join(" "))
}

fn names(folder: &Folder) -> Vec<String> {
    let groups = json(folder, "groups zoo");
    let groups = groups.as_array().unwrap().iter();
    groups.map(|group| group["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn items_come_in_and_are_sorted() {
    let folder = animals();
    let status = json(&folder, "status zoo");
    assert_eq!(status["items"], 9 + 20);
    assert_eq!(status["named_groups"], 3);
    assert_eq!(status["new_groups"], 2, "{status:#}");
    assert_eq!(status["confirmed"], 9);
    assert_eq!(names(&folder), ["ant", "bee", "cow", "new-1", "new-2"]);
    let owls = json(&folder, "show zoo new-1");
    assert_eq!(owls["group"]["items"], 4);
    let text = folder.genus("groups zoo").success();
    assert!(
        text.text().contains("ant") && text.text().contains("3 confirmed"),
        "{}",
        text.text()
    );
}

#[test]
fn the_same_again_adds_nothing() {
    let folder = animals();
    let before = json(&folder, "status zoo");
    let added = json(&folder, "add zoo pile.csv");
    assert_eq!((&added["new"], &added["known"]), (&0.into(), &20.into()));
    assert_eq!(json(&folder, "status zoo"), before);
    folder.fails("init zoo", &["is a collection already", "genus add"]);
}

#[test]
fn names_merges_and_moves_are_done_undone_and_redone() {
    let folder = animals();
    run(&folder, &["name", "zoo", "new-1", "Herring gull"]).success();
    assert_eq!(names(&folder)[3], "Herring gull");
    let taken = run(&folder, &["name", "zoo", "new-2", "Herring gull"]);
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("--merge"), "{}", taken.stderr);
    run(&folder, &["name", "zoo", "new-2", "Herring gull", "--merge"]).success();
    let gulls = json(&folder, "groups zoo")[0].clone();
    assert_eq!(
        (&gulls["name"], &gulls["items"]),
        (&"Herring gull".into(), &8.into()),
        "{gulls:#}"
    );
    // What was merged is found by its old name.
    let shown = json(&folder, "show zoo new-2");
    assert_eq!(shown["group"]["name"], "Herring gull");
    let item = shown["items"][0]["name"].as_str().unwrap().to_owned();
    run(&folder, &["move", "zoo", &item, "--to", "ant"]).success();
    assert_eq!(json(&folder, &format!("show zoo {item}"))["group_name"], "ant");
    for _ in 0..3 {
        folder.genus("undo zoo").success();
    }
    assert_eq!(names(&folder), ["ant", "bee", "cow", "new-1", "new-2"]);
    for _ in 0..3 {
        folder.genus("redo zoo").success();
    }
    assert_eq!(json(&folder, &format!("show zoo {item}"))["group_name"], "ant");
    folder.fails("redo zoo", &["nothing to redo"]);
    let log = json(&folder, "log zoo");
    assert_eq!(log[0]["kind"], "redo");
    assert_eq!(log.as_array().unwrap().last().unwrap()["author"], "ann");
    let checked = folder.genus("check zoo").success();
    assert!(checked.text().contains("In order"), "{}", checked.text());
}

#[test]
fn what_was_said_holds_when_everything_is_sorted_anew() {
    let folder = animals();
    let owl = json(&folder, "show zoo new-1")["items"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let yak = json(&folder, "show zoo new-2")["items"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    folder.genus(&format!("reject zoo {owl}")).success();
    folder.genus(&format!("noise zoo {yak}")).success();
    folder.genus("split zoo cow --into 2").success();
    folder.genus("confirm zoo --group new-2").success();
    let refreshed = json(&folder, "refresh zoo");
    assert!(refreshed["fixed"].as_u64().unwrap() >= 9 + 7, "{refreshed:#}");
    assert_ne!(json(&folder, &format!("show zoo {owl}"))["group_name"], "new-1");
    assert_eq!(json(&folder, &format!("show zoo {yak}"))["state"], "noise");
    let cows = json(&folder, "show zoo cow")["group"]["items"].as_u64().unwrap();
    let calves = json(&folder, "show zoo new-3")["group"]["items"].as_u64().unwrap();
    assert_eq!(cows + calves, 7);
    assert_eq!(json(&folder, "show zoo new-2")["group"]["confirmed"], 3);
    folder.genus("check zoo").success();
}

#[test]
fn who_is_wrong_is_told_the_way_out() {
    let folder = animals();
    folder.fails("status nowhere", &["is no collection", "genus init"]);
    folder.fails("show zoo new-11", &["no group \"new-11\"", "did you mean \"new-1\"?"]);
    folder.fails("move zoo nobody --to ant", &["no item \"nobody\""]);
    folder.fails("merge zoo ant bee", &["both have names", "--into"]);
    folder.fails("merge zoo ant", &["it takes two groups"]);
    folder.fails("undo nowhere", &["is no collection"]);
    folder.write("broken.csv", "id,f0\na,1\n");
    folder.fails("add zoo broken.csv", &["1 features", "has 8"]);
    folder.fails("init fresh --support nowhere/", &["nowhere"]);
    let nameless = run(&folder, &["name", "zoo", "new-1", " \u{a0}\n"]);
    assert!(nameless.stderr.contains("needs a letter"), "{}", nameless.stderr);
}

#[test]
fn a_collection_of_a_later_release_is_left_alone() {
    let folder = animals();
    // The version is a number in the header of the file.
    let path = folder.path("zoo/collection.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    for command in ["status zoo", "name zoo new-1 x", "undo zoo", "check zoo"] {
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(1));
        assert!(outcome.stderr.contains("later release"), "{}", outcome.stderr);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn who_holds_a_collection_is_said() {
    let folder = animals();
    // Nobody leaves a lock behind but who is killed, and that one is given up by the system.
    let lock = genus_files::FolderLock::take(folder.path("zoo")).unwrap();
    let outcome = folder.genus("name zoo new-1 x");
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains(&format!("process {}", std::process::id())),
        "{}",
        outcome.stderr
    );
    // Readers do not wait.
    folder.genus("groups zoo").success();
    drop(lock);
    folder.genus("name zoo new-1 x").success();
}
