//! `report.html`: that it is written, and that what it says is what was found.

use serde_json::Value;

use super::images::{ENCODER, folder as folder_of_images};
use super::support::{Folder, Item, animals, bursts, csv, labelled, parse_csv, unlabelled};

const FILES: &str = "discover --support support.csv --query pile.csv --method shc";

/// The block of data of a page.
pub(crate) fn block(page: &str, id: &str) -> Value {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, after) = page.split_once(&start).unwrap_or_else(|| panic!("no block {id}"));
    serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
}

fn data(folder: &Folder, out: &str) -> Value {
    block(&folder.read(&format!("{out}/report.html")), "data")
}

fn texts(values: &Value) -> Vec<&str> {
    values.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect()
}

fn items(data: &Value) -> u64 {
    data["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["items"].as_u64().unwrap())
        .sum()
}

#[test]
fn a_report_shows_what_was_found() {
    let folder = Folder::with_animals();
    let outcome = folder.genus(&format!("{FILES} --out result --seed 4")).success();
    assert!(
        outcome
            .stderr
            .ends_with("Written to result\nOpen result/report.html in a browser\n"),
        "{}",
        outcome.stderr
    );
    let data = data(&folder, "result");
    assert_eq!((data["title"].as_str(), items(&data)), (Some("pile.csv"), 20));
    assert_eq!(data["made"]["method"], "shc");
    assert_eq!(data["made"]["seed"], "4");
    // Every item is in the sheet of its category, with its score.
    let rows = parse_csv(&folder.read("result/assignments.csv"));
    let mut at = 0;
    for (category, length) in data["categories"]
        .as_array()
        .unwrap()
        .iter()
        .zip(data["sheets"].as_array().unwrap())
    {
        assert_eq!(category["items"], *length);
        for _ in 0..length.as_u64().unwrap() {
            let id = data["items"]["id"][at].as_str().unwrap();
            let row = rows.iter().find(|row| row.id == id).unwrap();
            assert_eq!(category["name"], row.category.as_str());
            assert_eq!(category["known"], row.kind == "known");
            assert!((data["items"]["score"][at].as_f64().unwrap() - row.score()).abs() < 1e-4);
            assert!((data["items"]["margin"][at].as_f64().unwrap() - row.margin()).abs() < 1e-4);
            assert!(data["items"]["places"][at][0].is_i64());
            at += 1;
        }
    }
    assert_eq!(at, rows.len());
    assert_eq!(data["examples"].as_array().unwrap().len(), 9);
    // The tree was cut where two known classes would have met.
    assert!(data["why"]["cut"].is_f64() && data["why"]["tree"]["merges"].as_array().unwrap().len() > 4);
    assert_eq!(data["why"]["nearest"].as_array().unwrap().len(), 5);
    assert_eq!(data["truth"], Value::Null);
    // Other methods have no tree, and calibrated ones a limit of doubt.
    folder
        .genus("discover --support support.csv --query pile.csv --method ukc --out ukc")
        .success();
    assert_eq!(self::data(&folder, "ukc")["why"]["tree"], Value::Null);
    folder
        .genus("discover --support support.csv --query pile.csv --out calibrated")
        .success();
    let calibrated = self::data(&folder, "calibrated");
    assert!(calibrated["why"]["doubt"].is_f64() && calibrated["items"]["probability"][0].is_f64());
    // What was sorted by neighbours is explained by them, and by a tree where the tree alone decided.
    assert_eq!(calibrated["why"]["tree"], Value::Null);
    let communities = &calibrated["why"]["communities"];
    let neighbours = communities["neighbours"].as_u64().unwrap();
    assert!((5..=15).contains(&neighbours) && communities["links"].is_array());
    for tied in calibrated["items"]["tied"].as_array().unwrap() {
        assert!(tied[0].as_u64().unwrap() <= neighbours && tied.as_array().unwrap().len() == 4);
        let nearest = tied.as_array().unwrap()[1..].iter().map(|near| near.as_i64().unwrap());
        assert!(nearest.into_iter().all(|near| (-9..20).contains(&near)));
    }
    folder
        .genus("discover --support support.csv --query pile.csv --method calibrated:refine=0 --out tree")
        .success();
    let tree = self::data(&folder, "tree");
    assert!(tree["why"]["tree"].is_object());
    assert_eq!(
        (&tree["why"]["communities"], &tree["items"]["tied"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn frames_of_one_scene_are_side_by_side() {
    let folder = Folder::with_animals();
    let (examples, frames) = bursts();
    folder.write("examples.csv", csv(&examples));
    folder.write("bursts.csv", csv(&frames));
    folder
        .genus("discover --support examples.csv --query bursts.csv --out result")
        .success();
    let data = self::data(&folder, "result");
    let scenes = data["items"]["scene"].as_array().unwrap();
    let scenes: Vec<u64> = scenes.iter().map(|scene| scene.as_u64().unwrap()).collect();
    assert_eq!(scenes.len(), 195);
    let mut seen: Vec<u64> = scenes
        .chunks(3)
        .map(|scene| {
            assert!(scene.iter().all(|&number| number == scene[0]), "{scene:?}");
            scene[0]
        })
        .collect();
    seen.sort();
    assert_eq!(seen, (0..65).collect::<Vec<_>>());
    // Where all are alone, and where nobody looked, nothing is said.
    for options in ["", "--method shc"] {
        folder
            .genus(&format!(
                "discover --support support.csv --query pile.csv --out plain {options}"
            ))
            .success();
        assert_eq!(self::data(&folder, "plain")["items"]["scene"], Value::Null);
    }
}

#[test]
fn terminal_page_and_table_count_the_same() {
    let folder = Folder::new();
    let (support, mut pile): (Vec<Item>, Vec<Item>) = labelled(6, 12).into_iter().partition(|item| {
        let (class, number) = item.id.rsplit_once('-').unwrap();
        class < "class 03" && number.parse::<usize>().unwrap() < 4
    });
    // What is like nothing else is unsure.
    let mut noise = super::support::Noise(8);
    pile.extend((0..20).map(|at| Item {
        id: format!("odd-{at}"),
        label: String::new(),
        row: (0..16).map(|_| noise.next()).collect(),
    }));
    folder.write("support.csv", csv(&support));
    folder.write("pile.csv", csv(&unlabelled(&pile)));
    let outcome = folder
        .genus("discover --support support.csv --query pile.csv --out result")
        .success();
    let rows = parse_csv(&folder.read("result/assignments.csv"));
    let of = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
    let counts = ["known", "new", "unsure"].map(of);
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    let data = self::data(&folder, "result");
    let categories = data["categories"].as_array().unwrap();
    let groups = categories.iter().filter(|category| category["known"] == false).count();
    let [known, new, unsure] = counts;
    let expected = format!("80 items: {known} in 3 known classes, {new} in {groups} new groups, {unsure} unsure (");
    assert!(outcome.stderr.starts_with(&expected), "{expected}\n{}", outcome.stderr);
    // The sentence of the page is made of these.
    let sum = |wanted: bool, key: &str| -> u64 {
        let own = categories.iter().filter(|category| category["known"] == wanted);
        own.map(|category| category[key].as_u64().unwrap()).sum()
    };
    let sure = |wanted: bool| sum(wanted, "items") - sum(wanted, "unsure");
    assert_eq!(
        [sure(true), sure(false), sum(true, "unsure") + sum(false, "unsure")],
        counts.map(|count| count as u64)
    );
    assert_eq!(data["items"]["unsure"].as_array().unwrap().len(), unsure);
    // By category, too.
    for category in categories.iter().filter(|category| category["unsure"] != 0) {
        let (name, unsure) = (category["name"].as_str().unwrap(), &category["unsure"]);
        let line = outcome
            .stderr
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(name))
            .unwrap();
        assert!(line.ends_with(&format!("█ {unsure} unsure")), "{line}");
    }
}

#[test]
fn it_is_left_out_when_it_is_not_wanted() {
    let folder = Folder::with_animals();
    let outcome = folder.genus(&format!("{FILES} --out result --no-report")).success();
    assert!(!outcome.stderr.contains("browser"));
    assert!(!folder.names("result").contains(&"report.html".to_owned()));
    for options in ["--no-report", "--text text", "--out r --no-report --text text"] {
        assert_eq!(folder.genus(&format!("{FILES} {options}")).code, Some(2), "{options}");
    }
}

/// Figures by the truth are for the terminal too, be there a report or none.
#[test]
fn the_truth_is_told_without_a_report() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    folder.write("labelled.csv", csv(&pile));
    let command = "discover --support support.csv --query labelled.csv --method shc --truth label";
    let told = |options: &str| {
        let outcome = folder.genus(&format!("{command} {options}")).success();
        let line = outcome
            .stderr
            .lines()
            .find(|line| line.starts_with("By the truth about"));
        line.unwrap_or_else(|| panic!("{options}: {}", outcome.stderr))
            .to_owned()
    };
    let with_report = told("--out with");
    assert!(
        with_report.ends_with("100.0 % right, 100.0 % of known classes, 100.0 % of new ones"),
        "{with_report}"
    );
    assert_eq!(told("--out without --no-report"), with_report);
    assert!(!folder.names("without").contains(&"report.html".to_owned()));
    assert_eq!(told(""), with_report);
    // What is wrong with it leaves nothing behind.
    folder.write("truth.csv", "id,truth\nnobody,ant\n");
    let wrong =
        folder.genus("discover --support support.csv --query labelled.csv --truth truth.csv --out none --no-report");
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(!folder.path("none").exists());
}

#[test]
fn the_truth_comes_from_a_table_or_from_the_pile() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let right = |data: &Value| {
        let truth = &data["truth"];
        assert_eq!(
            (&truth["all"], &truth["old"], &truth["new"]),
            (&1.0.into(), &1.0.into(), &1.0.into()),
            "{truth}"
        );
        assert_eq!(texts(&truth["classes"]), ["ant", "bee", "cow", "owl", "yak"]);
        assert_eq!(data["items"]["mistakes"], serde_json::json!([]));
    };
    let rows: String = pile
        .iter()
        .map(|item| format!("{},{}\n", item.id, item.label))
        .collect();
    for column in ["truth", "label"] {
        folder.write("truth.csv", format!("id,{column}\n{rows}"));
        folder
            .genus(&format!("{FILES} --out {column} --truth truth.csv"))
            .success();
        right(&data(&folder, column));
    }
    // The labels of the pile itself.
    folder.write("labelled.csv", csv(&pile));
    let own = "discover --support support.csv --query labelled.csv --method shc --truth label --out own";
    folder.genus(own).success();
    right(&data(&folder, "own"));
    // A column of any name, of the pile or of one table with everything.
    let (support, _) = animals();
    let line = |item: &Item, label: &str| {
        let numbers: Vec<String> = item.row.iter().map(f32::to_string).collect();
        format!(
            "{{\"id\": \"{}\", \"label\": \"{label}\", \"species\": \"{}\", \"says\": \"I am {}\", \"embedding\": [{}]}}\n",
            item.id,
            item.label,
            item.label,
            numbers.join(",")
        )
    };
    // The two have ids in common.
    let example = |item: &Item| {
        line(
            &Item {
                id: format!("example {}", item.id),
                ..item.clone()
            },
            &item.label,
        )
    };
    let table: String = support
        .iter()
        .map(example)
        .chain(pile.iter().map(|item| line(item, "")))
        .collect();
    folder.write("table.jsonl", table);
    folder
        .genus("discover table.jsonl --method shc --truth species --text says --out table")
        .success();
    let data = data(&folder, "table");
    right(&data);
    for (id, text) in texts(&data["items"]["id"])
        .into_iter()
        .zip(texts(&data["items"]["text"]))
    {
        assert_eq!(text, format!("I am {}", id.split('-').next().unwrap()));
    }
    assert_eq!(data["examples"][0]["text"], "I am ant");
}

#[test]
fn mistakes_are_found_and_items_without_a_truth_are_not_judged() {
    let folder = Folder::with_animals();
    folder.write("truth.csv", "id,truth\nant-0,bee\nant-1,ant\nowl-0,owl\n");
    folder
        .genus(&format!("{FILES} --out result --truth truth.csv"))
        .success();
    let data = data(&folder, "result");
    assert_eq!(data["truth"]["judged"], 3);
    assert_eq!(
        (&data["truth"]["old"], &data["truth"]["new"]),
        (&0.5.into(), &1.0.into())
    );
    let wrong = data["items"]["mistakes"].as_array().unwrap();
    assert_eq!(wrong.len(), 1);
    assert_eq!(data["items"]["id"][wrong[0].as_u64().unwrap() as usize], "ant-0");
}

#[test]
fn a_text_of_a_plain_csv_is_no_feature() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let plain = csv(&unlabelled(&pile));
    let with_texts: String = plain
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            0 => format!("{line},text,truth\n"),
            _ => format!("{line},\"<b>says</b>, {at}\",7\n"),
        })
        .collect();
    folder.write("texts.csv", with_texts);
    let without = folder.genus(FILES).rows();
    let command = "discover --support support.csv --query texts.csv --method shc";
    assert_eq!(folder.genus(command).rows(), without);
    folder.genus(&format!("{command} --text text --out result")).success();
    let page = folder.read("result/report.html");
    assert!(!page.contains("<b>says"));
    assert!(texts(&block(&page, "data")["items"]["text"]).contains(&"<b>says</b>, 20"));
}

#[test]
fn what_is_not_there_is_said_before_any_work() {
    let folder = Folder::with_animals();
    folder.write("truth.csv", "id,kind\nant-0,bee\n");
    folder.write("other.csv", "id,truth\nnobody,bee\n");
    folder.fails(
        &format!("{FILES} --out fresh --truth truth.csv"),
        &["truth.csv", "no column \"truth\" or \"label\"", "\"id\", \"kind\""],
    );
    folder.fails(
        &format!("{FILES} --out fresh --truth species"),
        &["pile.csv", "no column \"species\"", "no file species"],
    );
    folder.fails(
        &format!("{FILES} --out fresh --truth other.csv"),
        &["other.csv", "not one of its ids"],
    );
    folder.fails(
        &format!("{FILES} --out fresh --truth label"),
        &["the pile has no labels"],
    );
    folder.write("pile.npy", super::support::npy(&animals().1));
    folder.fails(
        "discover --support support.csv --query pile.npy --out fresh --text says",
        &["pile.npy", "no column \"says\"", ".csv, .jsonl, .parquet or .feather"],
    );
}

#[test]
fn images_are_shown_small() {
    let folder = folder_of_images();
    let command = format!("discover --method shc --support labelled --query photos {ENCODER} --out result");
    folder.genus(&command).success();
    let page = folder.read("result/report.html");
    let data = block(&page, "data");
    assert_eq!(data["things"][1], "images");
    assert_eq!(data["made"]["encoder"], "vit:heads=2,size=32");
    let mut pictures = 0;
    for (category, length) in data["sheets"].as_array().unwrap().iter().enumerate() {
        if length != 0 {
            let own = block(&page, &format!("pictures-{category}"));
            assert!(
                own.as_object()
                    .unwrap()
                    .values()
                    .all(|p| p.as_str().unwrap().starts_with("data:image/jpeg;base64,/9j/"))
            );
            pictures += own.as_object().unwrap().len();
        }
    }
    // 24 photos and three examples of two classes.
    assert_eq!(pictures, 30);
    // The folders say what the images are.
    let command =
        format!("discover --method shc --support labelled --query labelled {ENCODER} --truth label --out own");
    folder.genus(&command).success();
    assert_eq!(self::data(&folder, "own")["truth"]["old"], 1.0);
}

#[test]
fn a_large_pile_is_shown_by_those_that_were_clustered() {
    let folder = Folder::with_animals();
    folder.genus(&format!("{FILES} --subset 15 --out result")).success();
    let data = data(&folder, "result");
    assert_eq!(items(&data), 20);
    assert_eq!(data["items"]["id"].as_array().unwrap().len(), 15);
    let rows = parse_csv(&folder.read("result/assignments.csv"));
    for category in data["categories"].as_array().unwrap() {
        let of = rows
            .iter()
            .filter(|row| category["name"] == row.category.as_str())
            .count();
        assert_eq!(category["items"], of);
    }
}

#[test]
fn the_same_seed_gives_the_same_page_but_for_the_time() {
    let folder = Folder::with_animals();
    let page = |threads: usize| {
        folder
            .genus(&format!("{FILES} --threads {threads} --out result"))
            .success();
        let page = folder.read("result/report.html");
        let (before, after) = page.split_once("\"seconds\":").unwrap();
        format!("{before}{}", after.split_once(',').unwrap().1)
    };
    assert!(page(1) == page(2));
}

#[test]
fn the_demo_leaves_a_page() {
    let folder = Folder::new();
    let outcome = folder.genus("demo digits --out a/digits").success();
    assert!(outcome.text().contains("Open a/digits/report.html in a browser."));
    let page = folder.read("a/digits/report.html");
    let data = block(&page, "data");
    assert_eq!(items(&data), 1715);
    assert_eq!(data["truth"]["judged"], 1715);
    assert_eq!(data["things"][1], "digits");
    let first = block(&page, "pictures-0");
    let (examples, digits): (Vec<_>, Vec<_>) = first
        .as_object()
        .unwrap()
        .iter()
        .partition(|(key, _)| key.starts_with('e'));
    assert_eq!(examples.len(), 5);
    assert!(
        !digits.is_empty()
            && digits
                .iter()
                .all(|(_, p)| p.as_str().unwrap().starts_with("data:image/png;base64,iVBORw"))
    );
    folder.write("taken", "a file");
    folder.fails("demo digits --out taken/digits", &["taken/digits", "--out"]);
}
