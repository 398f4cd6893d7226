//! `genus assign`: further items for a taxonomy, and taxonomies that are damaged.

use super::support::{Folder, Item, animals, csv, jsonl, npy, unlabelled, without_times};

const DISCOVER: &str = "discover --support support.csv --query pile.csv";

/// A folder with the animals and what was found among them.
fn folder_with_taxonomy() -> Folder {
    let folder = Folder::with_animals();
    folder.genus(&format!("{DISCOVER} --out result")).success();
    folder
}

#[test]
fn further_items_as_a_person_sees_them() {
    let folder = folder_with_taxonomy();
    let (_, pile) = animals();
    folder.write("more.csv", csv(&unlabelled(&pile[5..9])));
    let mut outcome = folder.genus("assign --taxonomy result --query more.csv").success();
    let rows = outcome.rows();
    let lines = rows
        .iter()
        .map(|row| format!("{},{},{},{:.2}\n", row.id, row.category, row.kind, row.score()));
    outcome.stdout = lines.collect::<String>().into_bytes();
    outcome.stderr = without_times(&outcome.stderr);
    insta::assert_snapshot!("assign", outcome.transcript());
}

#[test]
fn the_pile_itself_goes_where_discovery_put_it() {
    let folder = folder_with_taxonomy();
    let found = folder.genus(DISCOVER).rows();
    let (_, pile) = animals();
    folder.write("pile.jsonl", jsonl(&unlabelled(&pile)));
    for query in ["pile.csv", "pile.jsonl"] {
        let rows = folder
            .genus(&format!("assign --taxonomy result --query {query}"))
            .rows();
        assert_eq!(rows.len(), found.len());
        for (assigned, found) in rows.iter().zip(&found) {
            assert_eq!(
                (&assigned.id, &assigned.category, &assigned.kind),
                (&found.id, &found.category, &found.kind)
            );
            assert!(
                (assigned.score() - found.score()).abs() < 1e-5,
                "{assigned:?} {found:?}"
            );
            assert!(
                (assigned.margin() - found.margin()).abs() < 1e-5,
                "{assigned:?} {found:?}"
            );
        }
    }
}

#[test]
fn the_nearest_centre_by_cosine_gets_the_item() {
    let folder = Folder::new();
    folder.write("support.csv", "label,f0,f1\nright,1,0\nup,0,1\n");
    folder.write("pile.csv", "f0,f1\n1,0\n0,1\n");
    folder.genus(&format!("{DISCOVER} -m proto --out result")).success();
    // The centres are (1, 0) and (0, 1) exactly; the length of an item does not matter.
    folder.write("more.csv", "id,f0,f1\na,3,4\nb,4e20,3e20\nc,-1,-2\nd,6e-30,8e-30\n");
    let outcome = folder.genus("assign --taxonomy result --query more.csv");
    let expected = "id,category,kind,score,margin,probability,scene\n\
                    a,up,known,0.800000,0.200000,,\n\
                    b,right,known,0.800000,0.200000,,\n\
                    c,right,known,-0.447214,0.447214,,\n\
                    d,up,known,0.800000,0.200000,,\n";
    assert_eq!(outcome.success().text(), expected);
}

#[test]
fn many_items_in_several_blocks_keep_their_order() {
    let folder = folder_with_taxonomy();
    let (_, pile) = animals();
    // More than two blocks of the reader.
    let many: Vec<Item> = pile.iter().cycle().take(17_000).cloned().collect();
    folder.write("many.npy", npy(&many));
    let rows = folder.genus("assign --taxonomy result --query many.npy").rows();
    let few = folder.genus("assign --taxonomy result --query pile.csv").rows();
    assert_eq!(rows.len(), 17_000);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row.id, number.to_string());
        assert_eq!(row.category, few[number % few.len()].category);
    }
    let outcome = folder
        .genus("assign --taxonomy result --query many.npy --out sorted --format jsonl")
        .success();
    assert!(
        outcome
            .stderr
            .starts_with("17,000 items: 10,200 in 3 known classes, 6,800 in 2 new groups")
    );
    assert_eq!(folder.names("sorted"), ["assignments.jsonl", "report.html"]);
    assert_eq!(folder.read("sorted/assignments.jsonl").lines().count(), 17_000);
}

/// Assigning must fail, also into a folder, of which nothing may remain.
#[track_caller]
fn assign_fails(folder: &Folder, query: &str, mentions: &[&str]) {
    let command = format!("assign --taxonomy result --query {query}");
    folder.fails(&command, mentions);
    folder.fails(&format!("{command} --out fresh"), mentions);
    folder.write("older/assignments.csv", "an older result\n");
    folder.fails(&format!("{command} --out older"), mentions);
}

#[test]
fn items_of_another_width_are_refused() {
    let folder = folder_with_taxonomy();
    folder.write("narrow.csv", "f0,f1\n1,2\n");
    assign_fails(
        &folder,
        "narrow.csv",
        &["result", "8 features", "narrow.csv", "2", "same encoder"],
    );
}

#[test]
fn bad_items_are_refused() {
    let folder = folder_with_taxonomy();
    let (_, pile) = animals();
    let good = csv(&unlabelled(&pile));
    folder.write("nan.csv", format!("{good}odd,,0,0,nan,0,0,0,0,0\n"));
    assign_fails(&folder, "nan.csv", &["nan.csv", "line 22", "\"odd\"", "f2", "NaN"]);
    folder.write("twice.csv", format!("{good}owl-3,,0,0,1,0,0,0,0,0\n"));
    assign_fails(&folder, "twice.csv", &["twice.csv", "line 20", "line 22", "owl-3"]);
    // A bad row far down, when the blocks before it are already done.
    let mut many: Vec<Item> = pile.iter().cycle().take(17_000).cloned().collect();
    many[16_500].row.fill(0.0);
    folder.write("many.npy", npy(&many));
    for format in ["csv", "jsonl", "parquet"] {
        let command = format!("assign --taxonomy result --query many.npy --out fresh --format {format}");
        folder.fails(&command, &["many.npy", "row 16501", "zero"]);
    }
}

#[test]
fn a_missing_taxonomy_says_how_one_is_made() {
    let folder = Folder::with_animals();
    assign_fails(&folder, "pile.csv", &["no folder result", "genus discover", "--out"]);
    let folder = folder_with_taxonomy();
    std::fs::remove_file(folder.path("result/centres.safetensors")).unwrap();
    assign_fails(
        &folder,
        "pile.csv",
        &["centres.safetensors", "no such file", "genus discover"],
    );
}

#[test]
fn a_damaged_taxonomy_is_refused() {
    let folder = folder_with_taxonomy();
    let whole = folder.read("result/taxonomy.toml");
    for (broken, mentions) in [
        (whole[..whole.len() / 2].to_owned(), vec![]),
        (String::new(), vec![]),
        ("\u{0}\u{1}".to_owned(), vec![]),
        (
            whole.replace("genus taxonomy 2", "genus taxonomy 9"),
            vec!["genus taxonomy 9", "genus taxonomy 1", "genus taxonomy 2"],
        ),
        (
            whole.replacen("\"known\"", "\"unknown\"", 1),
            vec!["`ant`", "`unknown`"],
        ),
        (
            whole.replacen("features = 8", "features = 9", 1),
            vec!["centres.safetensors"],
        ),
        (whole.replacen("\"bee\"", "\"ant\"", 1), vec!["`ant`"]),
        (whole.replacen("items = ", "items = -", 1), vec!["items"]),
        (whole.replacen("members = ", "members = -", 1), vec!["`ant`", "member"]),
    ] {
        folder.write("result/taxonomy.toml", &broken);
        let mut all = mentions;
        all.push("result");
        if !broken.contains("features = 9") {
            all.push("taxonomy.toml");
        }
        assign_fails(&folder, "pile.csv", &all);
    }
    folder.write("result/taxonomy.toml", [0xff, 0xfe, 0x00]);
    assign_fails(&folder, "pile.csv", &["taxonomy.toml"]);
}

#[test]
fn centres_of_another_taxonomy_are_refused() {
    let folder = folder_with_taxonomy();
    let centres = std::fs::read(folder.path("result/centres.safetensors")).unwrap();
    folder.genus(&format!("{DISCOVER} -m proto --out other")).success();
    let other = std::fs::read(folder.path("other/centres.safetensors")).unwrap();
    for wrong in [&other[..], &centres[..centres.len() - 4], b"", b"not centres"] {
        folder.write("result/centres.safetensors", wrong);
        let mentions = [
            "result/centres.safetensors",
            "does not belong",
            "taxonomy.toml",
            "genus discover",
        ];
        assign_fails(&folder, "pile.csv", &mentions);
    }
    folder.write("result/centres.safetensors", &centres);
    folder.genus("assign --taxonomy result --query pile.csv").success();
}
