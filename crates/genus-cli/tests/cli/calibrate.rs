//! `genus calibrate` and what others make of a calibration.

use super::support::{Folder, Item, Noise, csv, npy, unlabelled, without_times};

/// Items of so many classes around random directions, some of which they have in common.
fn classes(count: usize, each: usize, spread: f32) -> Vec<Item> {
    let mut noise = Noise(11);
    let directions: Vec<Vec<f32>> = (0..count)
        .map(|_| (0..16).map(|_| noise.next() + 0.3).collect())
        .collect();
    let mut items = Vec::new();
    for number in 0..each {
        for (class, direction) in directions.iter().enumerate() {
            items.push(Item {
                id: format!("class {class:02}-{number}"),
                label: format!("class {class:02}"),
                row: direction
                    .iter()
                    .map(|v| ((v + spread * noise.next()) * 1000.0).round() / 1000.0)
                    .collect(),
            });
        }
    }
    items
}

/// The class that an item really has.
fn truth(id: &str) -> &str {
    id.rsplit_once('-').unwrap().0
}

/// A folder with twenty labelled base classes in `base.csv`, and a task of ten others: five examples of four of them in
/// `support.csv`, and a pile in `pile.csv`.
fn folder() -> Folder {
    let folder = Folder::new();
    let (base, others): (Vec<Item>, Vec<Item>) = classes(30, 20, 0.5)
        .into_iter()
        .partition(|item| item.label.as_str() < "class 20");
    let (support, pile): (Vec<Item>, Vec<Item>) = others.into_iter().partition(|item| {
        let (class, number) = item.id.rsplit_once('-').unwrap();
        class < "class 24" && number.parse::<usize>().unwrap() < 5
    });
    folder.write("base.csv", csv(&base));
    folder.write("support.csv", csv(&support));
    folder.write("pile.csv", csv(&unlabelled(&pile)));
    folder
}

/// The same with a calibration in `base.safetensors`.
fn calibrated() -> Folder {
    let folder = folder();
    folder.genus("calibrate base.csv -o base.safetensors").success();
    folder
}

const DISCOVER: &str = "discover --support support.csv --query pile.csv";

#[test]
fn from_base_classes_to_further_items() {
    let folder = folder();
    let mut text = String::new();
    for command in [
        "calibrate base.csv -o base.safetensors",
        "calibrate --show base.safetensors",
        &format!("{DISCOVER} --calibration base.safetensors --out result"),
        "assign --taxonomy result --query pile.csv --out sorted",
        &format!("{DISCOVER} --method shc --out plain"),
        "assign --taxonomy plain --query pile.csv --calibration base.safetensors --out judged",
    ] {
        let mut outcome = folder.genus(command).success();
        if !outcome.stderr.is_empty() {
            outcome.stderr = without_times(&outcome.stderr);
        }
        // The last digits of what was fitted differ between processors.
        let fitted = ["merges", "arrivals", "places", "made by"];
        let lines = outcome.text().lines().filter(|line| {
            let name = line.trim_start();
            !fitted.iter().any(|fitted| name.starts_with(fitted))
        });
        outcome.stdout = lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        text.push_str(&outcome.transcript());
        text.push('\n');
    }
    insta::assert_snapshot!("calibrate", text);
    assert_eq!(
        folder.names("result"),
        [
            "assignments.csv",
            "calibration.safetensors",
            "centres.safetensors",
            "report.html",
            "taxonomy.toml"
        ]
    );
    // What was found is what there is.
    for name in ["result", "sorted"] {
        let rows = super::support::parse_csv(&folder.read(&format!("{name}/assignments.csv")));
        let right = rows.iter().filter(|row| {
            let class = truth(&row.id);
            match class < "class 24" {
                true => row.category == class,
                false => row.category.starts_with("new-"),
            }
        });
        assert!(right.count() * 10 > rows.len() * 9, "{name}: {rows:?}");
        for row in &rows {
            let probability = row.probability().unwrap();
            assert!((0.0..=1.0).contains(&probability), "{row:?}");
            assert!(["known", "new", "unsure"].contains(&row.kind.as_str()), "{row:?}");
        }
    }
}

#[test]
fn the_copy_in_a_taxonomy_says_the_same() {
    let folder = calibrated();
    folder
        .genus(&format!("{DISCOVER} --calibration base.safetensors --out result"))
        .success();
    let copy = std::fs::read(folder.path("result/calibration.safetensors")).unwrap();
    assert!(copy == std::fs::read(folder.path("base.safetensors")).unwrap());
}

#[test]
fn a_split_names_the_base_classes() {
    let folder = folder();
    let novel: Vec<String> = (12..20).map(|class| format!("\"class {class}\"")).collect();
    folder.write("split.json", format!("{{\"novel\": [{}]}}", novel.join(", ")));
    let outcome = folder
        .genus("calibrate base.csv --split split.json -o a.safetensors")
        .success();
    assert!(
        outcome.stderr.contains("12 base classes of 240 items"),
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains("No --split"), "{}", outcome.stderr);
    // The novel classes have no part in it.
    let without: Vec<Item> = classes(30, 20, 0.5)
        .into_iter()
        .filter(|item| item.label.as_str() < "class 12")
        .collect();
    folder.write("twelve.csv", csv(&without));
    folder.genus("calibrate twelve.csv -o b.safetensors").success();
    let show = |name: &str| {
        let outcome = folder.genus(&format!("calibrate --show {name}")).success();
        let lines: Vec<String> = outcome.text().lines().map(str::to_owned).collect();
        lines
            .into_iter()
            .filter(|line| !line.contains("fitted on") && !line.contains(".safetensors"))
            .collect::<Vec<_>>()
    };
    assert_eq!(show("a.safetensors"), show("b.safetensors"));
    let outcome = folder.genus("calibrate --show a.safetensors").success();
    assert!(
        outcome.text().contains("base.csv, base classes of split.json"),
        "{}",
        outcome.text()
    );
}

#[test]
fn the_file_has_a_name_of_its_own_and_quiet_is_quiet() {
    let folder = folder();
    let outcome = folder.genus("calibrate base.csv --quiet").success();
    assert_eq!((outcome.text(), outcome.stderr.as_str()), ("", ""));
    folder.genus("calibrate --show calibration.safetensors").success();
}

#[test]
fn what_cannot_be_learnt_from_is_left_out_and_said() {
    let folder = folder();
    let mut items = classes(10, 6, 0.5);
    items.retain(|item| item.label != "class 09" || item.id == "class 09-0");
    items[3].label.clear();
    items[4].label.clear();
    folder.write("mixed.csv", csv(&items));
    let outcome = folder.genus("calibrate mixed.csv -o m.safetensors").success();
    for part in [
        "all 10 labelled classes are base classes",
        "2 items without a label",
        "1 class with a single item",
        "Calibrated on 9 classes of 52 items",
        "written to m.safetensors",
    ] {
        assert!(outcome.stderr.contains(part), "no {part:?} in\n{}", outcome.stderr);
    }
}

/// Calibrating must fail, leave nothing behind and an older file as it was.
#[track_caller]
fn calibrate_fails(folder: &Folder, arguments: &str, mentions: &[&str]) {
    folder.fails(&format!("calibrate {arguments} -o fresh.safetensors"), mentions);
    folder.write("older.safetensors", "an older calibration\n");
    folder.fails(&format!("calibrate {arguments} -o older.safetensors"), mentions);
}

#[test]
fn items_that_teach_nothing_are_refused() {
    let folder = folder();
    calibrate_fails(
        &folder,
        "pile.csv",
        &["pile.csv", "no item has a label", "classes are known"],
    );
    folder.write("few.csv", csv(&classes(5, 9, 0.5)));
    calibrate_fails(
        &folder,
        "few.csv",
        &[
            "few.csv",
            "at least 8 classes",
            "there are 5",
            "more classes",
            "without a calibration",
        ],
    );
    let mut copies = classes(9, 1, 0.5);
    copies.extend(copies.clone().into_iter().map(|item| Item {
        id: format!("{} again", item.id),
        ..item
    }));
    folder.write("copies.csv", csv(&copies));
    calibrate_fails(&folder, "copies.csv", &["copies.csv", "copies of each other"]);
    calibrate_fails(&folder, "none.npz", &["none.npz"]);
    calibrate_fails(&folder, ".", &["image"]);
}

#[test]
fn splits_that_do_not_fit_are_refused() {
    let folder = folder();
    let all: Vec<String> = (0..20).map(|class| format!("\"class {class:02}\"")).collect();
    let fails = |split: String, mentions: &[&str]| {
        folder.write("split.json", split);
        let mut all = mentions.to_vec();
        all.push("split.json");
        calibrate_fails(&folder, "base.csv --split split.json", &all);
    };
    fails(
        format!("{{\"novel\": [{}]}}", all.join(", ")),
        &["no base class", "--split"],
    );
    fails(
        format!("{{\"base\": [], \"novel\": [{}]}}", all.join(", ")),
        &["no base class"],
    );
    fails(
        format!("{{\"novel\": [{}]}}", all[5..].join(", ")),
        &["at least 8 classes", "there are 5"],
    );
    fails(
        "{\"novel\": [\"owl\"]}".to_owned(),
        &["\"owl\"", "not among the labels"],
    );
    calibrate_fails(&folder, "base.csv --split none.json", &["none.json"]);
}

#[test]
fn files_that_are_no_calibration_are_refused() {
    let folder = calibrated();
    folder.write("features.safetensors", super::support::golden("f4.safetensors"));
    let whole = std::fs::read(folder.path("base.safetensors")).unwrap();
    folder.write("cut.safetensors", &whole[..whole.len() / 2]);
    folder.genus(&format!("{DISCOVER} -m shc --out result")).success();
    for (name, mentions) in [
        ("pile.csv", ["pile.csv", "not a calibration", "genus calibrate"]),
        (
            "features.safetensors",
            ["features.safetensors", "not a calibration", "genus calibrate"],
        ),
        (
            "cut.safetensors",
            ["cut.safetensors", "not a calibration", "genus calibrate"],
        ),
        ("none.safetensors", ["none.safetensors", "", ""]),
        ("result", ["result", "is a directory", ""]),
    ] {
        let arguments = format!("--support support.csv --query pile.csv --calibration {name}");
        folder.fails(&format!("calibrate --show {name}"), &mentions);
        folder.discover_fails(&arguments, &mentions);
        let assign = format!("assign --taxonomy result --query pile.csv --calibration {name}");
        folder.fails(&assign, &mentions);
        folder.fails(&format!("{assign} --out fresh"), &mentions);
    }
}

#[test]
fn a_calibration_of_other_features_is_refused() {
    let folder = calibrated();
    // Eight features instead of sixteen.
    let (support, pile) = super::support::animals();
    folder.write("animals.csv", csv(&support));
    folder.write("photos.csv", csv(&unlabelled(&pile)));
    let files = "--support animals.csv --query photos.csv";
    let mentions = ["base.safetensors", "16 features", "animals.csv", "8", "genus calibrate"];
    folder.discover_fails(&format!("{files} --calibration base.safetensors"), &mentions);
    folder.genus(&format!("discover {files} -m shc --out result")).success();
    let mentions = ["base.safetensors", "16 features", "result", "8", "genus calibrate"];
    folder.fails(
        "assign --taxonomy result --query photos.csv --calibration base.safetensors",
        &mentions,
    );
}

/// The items as CSV with the name of an encoder.
fn by_encoder(items: &[Item], encoder: &str) -> String {
    let text = csv(items);
    let (header, rows) = text.split_once('\n').unwrap();
    let rows = rows.lines().map(|line| format!("{line},{encoder}\n"));
    format!("{header},encoder\n{}", rows.collect::<String>())
}

#[test]
fn a_calibration_of_another_encoder_is_refused() {
    let folder = Folder::new();
    let items = classes(12, 8, 0.5);
    let (support, pile) = items.split_at(36);
    folder.write("base.csv", by_encoder(&items, "one"));
    folder.genus("calibrate base.csv -o base.safetensors").success();
    let show = folder.genus("calibrate --show base.safetensors").success();
    assert!(show.text().contains("encoder      one\n"), "{}", show.text());
    for encoder in ["one", "two"] {
        folder.write(&format!("support-{encoder}.csv"), by_encoder(support, encoder));
        folder.write(&format!("pile-{encoder}.csv"), by_encoder(&unlabelled(pile), encoder));
    }
    let files = |encoder: &str| format!("--support support-{encoder}.csv --query pile-{encoder}.csv");
    let mentions = [
        "base.safetensors",
        "\"one\"",
        "support-two.csv",
        "\"two\"",
        "genus calibrate",
    ];
    folder.discover_fails(&format!("{} --calibration base.safetensors", files("two")), &mentions);
    folder
        .genus(&format!("discover {} --calibration base.safetensors", files("one")))
        .success();
    folder
        .genus(&format!("discover {} -m shc --out result", files("two")))
        .success();
    folder.fails(
        "assign --taxonomy result --query pile-two.csv --calibration base.safetensors",
        &["base.safetensors", "\"one\"", "result", "\"two\""],
    );
}

#[test]
fn a_taxonomy_has_one_calibration() {
    let folder = calibrated();
    folder.genus(&format!("{DISCOVER} --out result")).success();
    folder.fails(
        "assign --taxonomy result --query pile.csv --calibration base.safetensors",
        &[
            "result",
            "calibration of its own",
            "by the examples",
            "leave out --calibration",
            "genus discover",
        ],
    );
}

#[test]
fn wrong_usage_ends_with_code_2() {
    let folder = calibrated();
    let before = folder.contents();
    let mut text = String::new();
    for command in [
        "calibrate",
        "calibrate base.csv --show base.safetensors",
        "calibrate base.csv -o base.csv",
        "calibrate base.csv -o calibration.npz",
        "calibrate base.safetensors -o base.safetensors",
        &format!("{DISCOVER} --method shc --calibration base.safetensors --out result"),
        &format!("{DISCOVER} --method calibrated:source=examples --calibration base.safetensors"),
        &format!("{DISCOVER} --centre-norm authors-columns"),
    ] {
        let outcome = folder.genus(command);
        assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
        text.push_str(&outcome.transcript());
        text.push('\n');
    }
    insta::assert_snapshot!("usage", text);
    assert!(folder.contents() == before);
}

#[test]
fn the_file_does_not_depend_on_the_number_of_threads() {
    let folder = folder();
    let run = |threads: usize, seed: u64, name: &str| {
        folder
            .genus(&format!(
                "calibrate base.csv --threads {threads} --seed {seed} -o {name}"
            ))
            .success();
        std::fs::read(folder.path(name)).unwrap()
    };
    let one = run(1, 5, "one.safetensors");
    assert!(one == run(2, 5, "two.safetensors"));
    assert!(one == run(3, 5, "one.safetensors"), "written over an older one");
    assert!(one != run(1, 6, "other.safetensors"), "the seed says nothing");
}

#[test]
fn what_is_said_of_what_was_known() {
    let folder = calibrated();
    let first = |arguments: &str| {
        let outcome = folder
            .genus(&format!("discover --query pile.csv {arguments}"))
            .success();
        outcome.stderr
    };
    let one = classes(30, 1, 0.5);
    let one: Vec<Item> = one
        .into_iter()
        .filter(|item| item.label.as_str() >= "class 20")
        .collect();
    folder.write("one.csv", csv(&one[..4]));
    let two = classes(30, 3, 0.5);
    let two: Vec<Item> = two
        .into_iter()
        .filter(|item| item.label.as_str() >= "class 28")
        .collect();
    folder.write("uneven.csv", csv(&two[..5]));
    folder.write("single.csv", csv(&two.into_iter().step_by(2).collect::<Vec<_>>()));
    for (arguments, said) in [
        ("--support support.csv", "(calibrated by the examples, 5 a class, "),
        ("--support uneven.csv", "(calibrated by the examples, 2 to 3 a class, "),
        (
            "--support one.csv",
            "(calibrated by the prior, for there is one example a class, ",
        ),
        (
            "--support support.csv -m calibrated:source=prior",
            "(calibrated:source=prior by the prior, ",
        ),
        (
            "--support support.csv --calibration base.safetensors",
            "(calibrated on 20 base classes, ",
        ),
        (
            "--support one.csv --calibration base.safetensors",
            "(calibrated on 20 base classes, ",
        ),
        // One known class is enough.
        ("--support single.csv", "(calibrated by the examples, 3 a class, "),
    ] {
        let stderr = first(arguments);
        assert!(stderr.contains(said), "{arguments}: no {said:?} in\n{stderr}");
        assert!(stderr.lines().next().unwrap().contains(" unsure ("), "{stderr}");
        let hint =
            stderr.contains("More examples, or base classes (genus calibrate), would make the result more certain.");
        assert_eq!(hint, said.contains("prior"), "{stderr}");
    }
    let stderr = first("--support support.csv -m shc");
    assert!(
        !stderr.contains("unsure") && !stderr.contains("genus calibrate"),
        "{stderr}"
    );
}

#[test]
fn unsure_items_are_called_so_in_every_format() {
    let folder = calibrated();
    folder
        .genus(&format!("{DISCOVER} --calibration base.safetensors --out result"))
        .success();
    // Items of other classes and plain noise among those of the pile.
    let mut noise = Noise(99);
    let mut items = classes(30, 3, 0.5);
    items.extend((0..30).map(|number| Item {
        id: format!("noise-{number}"),
        label: String::new(),
        row: (0..16).map(|_| noise.next()).collect(),
    }));
    folder.write("more.npy", npy(&items));
    let command = "assign --taxonomy result --query more.npy";
    let outcome = folder.genus(command);
    let rows = outcome.rows();
    let unsure = rows.iter().filter(|row| row.kind == "unsure").count();
    assert!(unsure > 10 && unsure < rows.len() - 10, "{unsure} of {}", rows.len());
    assert!(
        outcome.stderr.contains(&format!(", {unsure} unsure (")),
        "{}",
        outcome.stderr
    );
    let toml = folder.read("result/taxonomy.toml");
    for row in &rows {
        // Where no other word is said, the category says known or new; the best guess is a category too.
        assert!(toml.contains(&format!("name = \"{}\"", row.category)), "{row:?}");
        assert_eq!(row.kind == "unsure", row.probability().unwrap() < 0.5, "{row:?}");
    }
    let jsonl = folder.genus(&format!("{command} --format jsonl")).success();
    for (line, row) in jsonl.text().lines().zip(&rows) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["kind"], row.kind.as_str());
        assert_eq!(object["probability"].as_f64(), row.probability());
    }
    folder
        .genus(&format!("{command} --format parquet --out sorted"))
        .success();
    let file = std::fs::File::open(folder.path("sorted/assignments.parquet")).unwrap();
    super::formats::check_parquet(file, &rows);
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let folder = folder();
    folder.fails(
        "calibrate base.csv -o none/c.safetensors",
        &["none/c.safetensors", "create the folder"],
    );
    folder.write("taken.safetensors/inside", "");
    folder.fails("calibrate base.csv -o taken.safetensors", &["taken.safetensors"]);
}

/// The same folder with a taxonomy of the first six of the ten classes in `result`, and the items of all ten, those of six first
/// seen again, in `more.csv`.
pub(crate) fn with_more() -> Folder {
    let folder = calibrated();
    let all = folder.read("pile.csv");
    let header = all.lines().next().unwrap();
    let items = |classes: std::ops::Range<&str>| -> String {
        let chosen = all
            .lines()
            .skip(1)
            .filter(|line| classes.contains(&truth(line.split(',').next().unwrap().trim_matches('"'))));
        std::iter::once(header)
            .chain(chosen)
            .map(|line| format!("{line}\n"))
            .collect()
    };
    folder.write("first.csv", items("class 20".."class 26"));
    folder.write("more.csv", items("class 20".."class 30"));
    folder.genus(FIRST).success();
    folder
}

/// What finds the first categories.
const FIRST: &str = "discover --support support.csv --query first.csv --calibration base.safetensors --out result";

/// The names of a taxonomy's categories.
fn names(folder: &Folder, taxonomy: &str) -> Vec<String> {
    let text = folder.read(&format!("{taxonomy}/taxonomy.toml"));
    let names = text.lines().filter_map(|line| line.strip_prefix("name = "));
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

#[test]
fn a_taxonomy_grows_with_the_items() {
    let folder = with_more();
    let before = names(&folder, "result");
    let outcome = folder
        .genus("assign --taxonomy result --query more.csv --grow deep/grown")
        .success();
    assert!(
        outcome.stderr.contains("grown from a taxonomy of calibrated"),
        "{}",
        outcome.stderr
    );
    let rows = outcome.rows();
    let ids: Vec<String> = folder
        .read("more.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap().trim_matches('"').to_owned())
        .collect();
    assert_eq!(rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>(), ids);
    let grown = names(&folder, "deep/grown");
    assert_eq!(grown[..before.len()], before);
    assert!(grown.len() >= before.len() + 3, "{grown:?}");
    // Known classes go to themselves, and most of a new class into one new group of its own.
    let mut own = Vec::new();
    for class in 20..30 {
        let class = format!("class {class}");
        let places: Vec<&str> = rows
            .iter()
            .filter(|row| truth(&row.id) == class)
            .map(|row| &*row.category)
            .collect();
        let most = |name: &&str| places.iter().filter(|place| *place == name).count();
        let largest = *places.iter().max_by_key(|name| most(name)).unwrap();
        assert!(2 * most(&largest) > places.len(), "{class}: {places:?}");
        own.push(largest.to_owned());
    }
    assert!(
        (0..4).all(|class| own[class] == format!("class {}", 20 + class)),
        "{own:?}"
    );
    own.sort();
    own.dedup();
    assert!(own.len() >= 9, "{own:?}");
    // The original is as it was, and the grown one is a taxonomy like any other.
    assert_eq!(names(&folder, "result"), before);
    let again = folder.genus("assign --taxonomy deep/grown --query more.csv").rows();
    let same = again
        .iter()
        .zip(&rows)
        .filter(|(a, b)| a.category == b.category)
        .count();
    assert!(10 * same > 9 * rows.len(), "{same} of {}", rows.len());
}

#[test]
fn a_taxonomy_grows_in_its_place_and_at_any_number_of_threads() {
    let folder = with_more();
    let grow = "assign --taxonomy result --query more.csv --no-report --grow";
    let one = folder.genus(&format!("{grow} grown --threads 1")).success();
    let three = folder.genus(&format!("{grow} result --threads 3")).success();
    assert_eq!(one.text(), three.text());
    for file in folder.names("grown") {
        let bytes = |folder_of: &str| folder.contents().remove(&format!("{folder_of}/{file}"));
        assert!(bytes("grown") == bytes("result"), "{file}");
    }
}

#[test]
fn what_waits_is_there_in_the_next_run() {
    let folder = with_more();
    let more = folder.read("more.csv");
    let lines: Vec<&str> = more.lines().collect();
    let rows = |of: &dyn Fn(usize) -> bool| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at == 0 || of(*at));
        kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    // Items of class 29 come one in a file, so that none finds another in its own.
    let of_class: Vec<usize> = (1..lines.len())
        .filter(|&at| truth(lines[at].split(',').next().unwrap().trim_matches('"')) == "class 29")
        .collect();
    let mut joined = Vec::new();
    for (number, &own) in of_class.iter().take(8).enumerate() {
        folder.write("today.csv", rows(&|at| at == own));
        let outcome = folder
            .genus("assign --taxonomy result --query today.csv --grow result")
            .success();
        assert_eq!(outcome.rows().len(), 1);
        if folder.path("result/joined.csv").exists() {
            assert!(outcome.stderr.contains("of earlier files"), "{}", outcome.stderr);
            joined.push(folder.read("result/joined.csv"));
        } else if number == 0 {
            assert!(outcome.stderr.contains("1 item waits"), "{}", outcome.stderr);
        }
    }
    // Those that waited are in one new group.
    let found: Vec<(&str, &str)> = joined
        .iter()
        .flat_map(|text| text.lines().skip(1))
        .map(|line| {
            let mut cells = line.split(',');
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert!(found.len() >= 2, "{found:?}");
    let same = found
        .iter()
        .all(|&(id, category)| truth(id.trim_matches('"')) == "class 29" && category == found[0].1);
    assert!(
        same && !names(&with_more(), "result").contains(&found[0].1.to_owned()),
        "{found:?}"
    );
    // A new taxonomy in the same folder knows nothing of them.
    folder.genus(FIRST).success();
    folder.write("today.csv", rows(&|at| at == of_class[0]));
    let outcome = folder
        .genus("assign --taxonomy result --query today.csv --grow grown")
        .success();
    assert!(outcome.stderr.contains("1 item waits"), "{}", outcome.stderr);
    // Files that do not belong together are not taken for a taxonomy.
    std::fs::remove_file(folder.path("grown/waiting.npz")).unwrap();
    folder.fails(
        "assign --taxonomy grown --query today.csv --grow grown",
        &["waiting.npz"],
    );
}

#[test]
fn nothing_grows_that_no_calibration_judges() {
    let folder = calibrated();
    folder.genus(&format!("{DISCOVER} --method shc --out plain")).success();
    let grow = "assign --taxonomy plain --query pile.csv --grow grown";
    folder.fails(grow, &["--grow", "no calibration", "`calibrated`", "--calibration"]);
    folder.fails(&format!("{grow} --out fresh"), &["no calibration"]);
    folder
        .genus(&format!("{grow} --calibration base.safetensors"))
        .success();
    assert!(names(&folder, "grown").len() >= names(&folder, "plain").len());
    // What cannot be observed leaves nothing behind.
    let pile = folder.read("pile.csv");
    let (header, first) = (pile.lines().next().unwrap(), pile.lines().nth(1).unwrap());
    let zeros = format!("zero{}", ",0".repeat(header.split(',').count() - 1));
    folder.write("zeros.csv", format!("{header}\n{first}\n{zeros}\n"));
    let grow = "assign --taxonomy grown --query zeros.csv --grow further";
    folder.fails(grow, &["zeros.csv", "line 3", "zero"]);
}
