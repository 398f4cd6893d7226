//! `genus bulk`, from the plan to the verdict.

use super::support::Folder;

fn planned(folder: &Folder, more: &str) {
    folder
        .genus("discover --support support.csv --query pile.csv --out result --no-report --quiet")
        .success();
    let line = format!("bulk plan pile.csv --taxonomy result --out sorted --no-estimate --format csv {more}");
    folder.genus(&line).success();
}

#[test]
fn a_pile_is_planned_run_and_verified() {
    let folder = Folder::with_animals();
    planned(&folder, "--quiet");
    let ran = folder.genus("bulk run sorted --all").success();
    insta::assert_snapshot!("bulk_ran", ran.stderr);
    insta::assert_snapshot!("bulk_status", folder.genus("bulk status sorted").success().text());
    insta::assert_snapshot!(
        "bulk_verified",
        folder.genus("bulk verify sorted/manifest.json").success().stderr
    );
    // The rows are those of `assign`.
    let assigned = folder
        .genus("assign --taxonomy result --query pile.csv --quiet")
        .success();
    let parts: Vec<_> = std::fs::read_dir(folder.path("sorted/assignments/parts"))
        .unwrap()
        .collect();
    assert_eq!(parts.len(), 1);
    let part = std::fs::read_to_string(parts[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(part, assigned.text());
    // And the result is a taxonomy like any other.
    folder
        .genus("assign --taxonomy sorted/taxonomy --query pile.csv --quiet")
        .success();
}

#[test]
fn what_is_wrong_is_said_with_the_way_out() {
    let folder = Folder::with_animals();
    planned(&folder, "--quiet");
    let said = |line: &str, code: i32| {
        let outcome = folder.genus(line);
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        outcome.stderr
    };
    insta::assert_snapshot!("bulk_not_run", said("bulk verify sorted", 1));
    assert!(said("bulk reduce sorted", 1).contains("1 of 1 shards"));
    assert!(said("bulk run sorted --shard 4", 2).contains("there is no shard 4"));
    assert!(said("bulk run sorted --shards 4-2 ", 2).contains("two numbers"));
    assert!(said("bulk run nowhere --all", 1).contains("genus bulk plan"));
    assert!(said("bulk plan none*.csv --taxonomy result --out other", 1).contains("there is no file"));
    let taken = said("bulk plan pile.csv --taxonomy result --out sorted --no-estimate", 1);
    assert!(taken.contains("--out"), "{taken}");
    folder.write("pile.csv", folder.read("pile.csv") + "one more");
    let changed = said("bulk run sorted --all", 1);
    assert!(
        changed.contains("shard 0 is refused") && changed.contains("pile.csv"),
        "{changed}"
    );
}
