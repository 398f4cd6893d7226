//! What comes after sorting: `--sort-into`, `--link` and `--export`.

use std::collections::BTreeSet;
use std::fs;

use super::images::{ENCODER, folder};
use super::support::{Folder, animals, csv, unlabelled};

/// The places of all files below a folder.
fn files(folder: &Folder, below: &str) -> BTreeSet<String> {
    let prefix = format!("{below}/");
    let all = folder.contents();
    let files = all.iter().filter(|(_, content)| content.is_some());
    files
        .filter_map(|(name, _)| name.strip_prefix(&prefix).map(str::to_owned))
        .collect()
}

fn discover(more: &str) -> String {
    format!("discover --method shc --support labelled --query photos {ENCODER} {more}")
}

#[test]
fn images_are_sorted_and_exported() {
    let folder = folder();
    let command = discover(
        "--out result --sort-into sorted --export label-studio --export fiftyone --export imagefolder --export fiftyone",
    );
    let outcome = folder.genus(&command).success();
    let rows = folder.read("result/assignments.csv");
    let expected: BTreeSet<String> = rows
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|cells| format!("{}/{}", cells[1], cells[0]))
        .chain(["README.md".to_owned(), "metadata.csv".to_owned()])
        .collect();
    assert_eq!(files(&folder, "sorted"), expected);
    assert!(expected.contains("red/red-0.bmp"), "{expected:?}");
    for said in [
        "24 files sorted into sorted",
        "Label Studio: ",
        "FiftyOne: ",
        "datasets.load_dataset(\"sorted\")",
    ] {
        assert_eq!(outcome.stderr.matches(said).count(), 1, "{said} in {}", outcome.stderr);
    }
    let link = fs::read(folder.path("sorted/red/red-0.bmp")).unwrap();
    assert_eq!(link, fs::read(folder.path("photos/red-0.bmp")).unwrap());
    let tasks: serde_json::Value = serde_json::from_str(&folder.read("result/label-studio.json")).unwrap();
    assert_eq!(tasks.as_array().unwrap().len(), 24);
    assert_eq!(tasks[0]["data"]["image"], "/data/local-files/?d=photos/blue-0.bmp");
    let version = tasks[0]["predictions"][0]["model_version"].as_str().unwrap();
    assert!(version.starts_with("genus ") && version.ends_with(" shc"), "{version}");
    // The same once more is no change, and items that come later join them.
    folder.genus(&command).success();
    assert_eq!(files(&folder, "sorted"), expected);
    folder.write("later/red-9.bmp", fs::read(folder.path("photos/red-1.bmp")).unwrap());
    folder
        .genus(&format!(
            "assign --taxonomy result --query later {ENCODER} --sort-into sorted"
        ))
        .success();
    assert!(files(&folder, "sorted").contains("red/red-9.bmp"));
}

#[test]
fn nothing_is_written_when_something_is_in_the_way() {
    let folder = folder();
    folder.write("sorted/red/red-3.bmp", "mine");
    let command = discover("--out result --sort-into sorted --export label-studio");
    let way_out = "red-3.bmp already exists and is something else; choose another folder with --sort-into";
    folder.fails(&command, &[way_out]);
    folder.fails(&discover("--sort-into sorted"), &[way_out]);
}

#[test]
fn what_cannot_be_done_is_said_before_the_work() {
    let folder = folder();
    for (more, code, said) in [
        ("--link hard", 2, "--sort-into"),
        ("--sort-into sorted --link move", 2, "one of sym, hard, copy"),
        ("--export coco", 2, "one of label-studio, fiftyone, imagefolder"),
        ("--export label-studio", 2, "needs --out DIR"),
        ("--out result --export imagefolder", 2, "needs --sort-into DIR"),
        ("--sort-into photos/sorted", 2, "is inside photos"),
        ("--sort-into photos", 2, "is inside photos"),
        ("--sort-into tiny.safetensors", 1, "is no folder"),
    ] {
        let outcome = folder.genus(&discover(more));
        assert_eq!(outcome.code, Some(code), "{more}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{more}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("embedded"), "{more}: {}", outcome.stderr);
    }
}

#[test]
fn the_ids_of_a_table_may_be_paths() {
    let folder = Folder::with_animals();
    folder.discover_fails(
        "--method shc --support support.csv --query pile.csv --sort-into sorted",
        &["beside pile.csv", "a table whose ids are their paths"],
    );
    let rows = folder
        .genus("discover --method shc --support support.csv --query pile.csv")
        .rows();
    // Beside the table, and from where the program runs.
    for (table, place) in [("data/pile.csv", "data"), ("pile.csv", ".")] {
        folder.write(table, folder.read("pile.csv"));
        for row in &rows {
            folder.write(&format!("{place}/{}", row.id), &row.id);
        }
        let out = format!("sorted-{}", place.len());
        folder
            .genus(&format!(
                "discover --method shc --support support.csv --query {table} --out result --sort-into {out} --link copy"
            ))
            .success();
        assert_eq!(files(&folder, &out).len(), rows.len());
    }
}

/// A table may come from anywhere, and its ids may name anything.
#[test]
fn ids_do_not_lead_out_of_the_folder() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let secret = tempfile::tempdir().unwrap();
    let path = secret.path().join("secret");
    fs::write(&path, "secret").unwrap();
    let path = path.to_str().unwrap();
    pile.iter().for_each(|item| folder.write(&item.id, "a file"));
    let mut ids = vec![path.to_owned()];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path, folder.path("link")).unwrap();
        ids.push("link".to_owned());
    }
    for id in ids {
        let mut items = unlabelled(&pile);
        items[0].id = id;
        folder.write("named.csv", csv(&items));
        for link in ["sym", "copy"] {
            let command = format!("discover --support support.csv --query named.csv --sort-into sorted --link {link}");
            folder.fails(&command, &["neither below here", "--allow-outside"]);
        }
    }
    folder
        .genus("discover --support support.csv --query named.csv --sort-into sorted --link copy --allow-outside")
        .success();
}
