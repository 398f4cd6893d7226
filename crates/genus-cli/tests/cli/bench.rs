//! `genus bench`: the tables and the JSON.

use serde_json::Value;

use super::support::{Folder, Outcome, csv, golden, labelled, without_times};

/// A folder with thirty classes of nine items.
fn with_features() -> Folder {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(30, 9)));
    folder
}

/// The names of some of the classes, as JSON.
fn names(classes: std::ops::Range<usize>) -> String {
    let name = |class: usize| format!("\"class {class:02}\"");
    classes.map(name).collect::<Vec<_>>().join(", ")
}

/// The first twenty classes become base classes.
fn with_split(folder: &Folder) {
    let split = format!("{{\"base\": [{}], \"novel\": [{}]}}", names(0..20), names(20..30));
    folder.write("split.json", split);
}

const SHAPE: &str = "--features features.csv --way 3 --new 3 --shot 2";

const PILES: &str = "--features features.csv --classes 6 --way 3 --shot 2 --items 2,4,6 --tail 1-6 --bursts 2 \
                     --examples 1,2,4 --outliers 2 --draws 2";

fn bench(folder: &Folder, options: &str) -> Outcome {
    folder.genus(&format!("bench {options}")).success()
}

#[test]
fn tables_as_a_person_sees_them() {
    let folder = with_features();
    with_split(&folder);
    for (name, options) in [
        (
            "ablation",
            format!("ablation {SHAPE} --query 4 --outliers 2 --episodes 6 --split split.json"),
        ),
        ("main", format!("main {SHAPE} --query 4 --episodes 6")),
        (
            "main_tail_outliers",
            format!("main {SHAPE} --tail 1-7 --outliers 3 --episodes 6"),
        ),
        ("realtime", format!("realtime {SHAPE} --query 4 --episodes 6")),
        ("large", format!("large {SHAPE} --tasks 2 --subset 20")),
        ("queries", format!("queries {SHAPE} --episodes 3")),
        (
            "piles",
            format!("piles {PILES} --split split.json --methods calibrated,shc"),
        ),
        (
            "stream",
            "stream --features features.csv --classes 6 --way 3 --shot 2 --items 6 --orders 2 --looks 2".to_owned(),
        ),
        (
            "tasks",
            "tasks --features features.csv --shot 2 --query 4 --episodes 3".to_owned(),
        ),
        (
            "alpha",
            format!("alpha {SHAPE} --query 4 --episodes 6 --alpha 1.1,1.4,2.5"),
        ),
        ("threshold", format!("threshold {SHAPE} --query 4 --episodes 6")),
    ] {
        let outcome = bench(&folder, &format!("{options} --quiet"));
        assert_eq!(outcome.stderr, "");
        insta::assert_snapshot!(format!("table_{name}"), outcome.transcript());
    }
}

#[test]
fn times_go_to_the_standard_error() {
    let folder = with_features();
    let outcome = bench(
        &folder,
        &format!("main {SHAPE} --query 4 --episodes 2 --methods shc,ukc:alpha=1.6"),
    );
    insta::assert_snapshot!("bench_times", without_times(&outcome.stderr));
    assert!(!outcome.text().contains(" ms"), "{}", outcome.text());
}

fn json_of(folder: &Folder, options: &str) -> Value {
    let outcome = bench(folder, &format!("{options} --json result.json"));
    assert!(
        outcome.text().starts_with("**"),
        "the table is printed too\n{}",
        outcome.text()
    );
    let text = folder.read("result.json");
    assert!(text.ends_with("}\n"));
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn fraction(interval: &Value) -> f64 {
    let (mean, ci95) = (interval["mean"].as_f64().unwrap(), interval["ci95"].as_f64().unwrap());
    assert_eq!(interval.as_object().unwrap().len(), 2, "{interval}");
    assert!((0.0..=1.0).contains(&mean), "{interval}");
    assert!((0.0..=1.0).contains(&ci95), "{interval}");
    mean
}

#[test]
fn the_json_has_every_figure_as_a_fraction() {
    let folder = with_features();
    let json = json_of(&folder, &format!("main {SHAPE} --query 4 --episodes 7 --seed 11"));
    assert_eq!(json["experiment"], "main");
    assert_eq!(json["features"], "features.csv");
    assert_eq!(json["classes"], 30);
    let settings = ["way", "shot", "new", "query", "episodes", "seed"].map(|name| json[name].as_u64().unwrap());
    assert_eq!(settings, [3, 2, 3, 4, 7, 11]);
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["metric"], "paper");
    let runs = json["runs"].as_array().unwrap();
    let methods: Vec<&str> = runs.iter().map(|run| run["method"].as_str().unwrap()).collect();
    let usual = ["proto", "rankstat", "simgcd", "gcd", "shc", "ukc", "calibrated"];
    assert_eq!(methods, usual);
    for run in runs {
        let episodes = run["episodes"].as_array().unwrap();
        assert_eq!(episodes.len(), 7);
        for side in ["all", "old", "new"] {
            let values: Vec<f64> = episodes.iter().map(|episode| episode[side].as_f64().unwrap()).collect();
            let mean = values.iter().sum::<f64>() / 7.0;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 6.0;
            assert!((fraction(&run[side]) - mean).abs() < 1e-12, "{run}");
            let ci95 = 1.96 * (variance / 7.0).sqrt();
            assert!(
                (run[side]["ci95"].as_f64().unwrap() - ci95).abs() < 1e-6,
                "{ci95} {run}"
            );
        }
        for episode in episodes {
            // Every class has as many queries, and there are as many known as new classes.
            let [all, old, new] = ["all", "old", "new"].map(|side| episode[side].as_f64().unwrap());
            assert!((all - (old + new) / 2.0).abs() < 1e-12, "{episode}");
            assert!((all * 24.0 - (all * 24.0).round()).abs() < 1e-9, "{episode}");
        }
        let found: Vec<f64> = episodes.iter().map(|episode| episode["k"].as_f64().unwrap()).collect();
        let k = &run["k"];
        assert!((k["mean"].as_f64().unwrap() - found.iter().sum::<f64>() / 7.0).abs() < 1e-12);
        assert_eq!(k["truth"], 6);
        let error = found.iter().map(|k| (k - 6.0).abs()).sum::<f64>() / 7.0;
        assert!((k["error"].as_f64().unwrap() - error).abs() < 1e-12);
        let metrics = run["metrics"].as_object().unwrap();
        let mut names: Vec<&str> = metrics.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["ari", "authors-v2", "gcd-v1", "gcd-v2", "nmi"]);
        for convention in ["authors-v2", "gcd-v1", "gcd-v2"] {
            let sides = ["all", "old", "new"].map(|side| fraction(&metrics[convention][side]));
            assert!(
                (sides[0] - (sides[1] + sides[2]) / 2.0).abs() < 1e-9,
                "{convention}: {sides:?}"
            );
        }
        fraction(&metrics["nmi"]);
        let ari = metrics["ari"]["mean"].as_f64().unwrap();
        assert!((-1.0..=1.0).contains(&ari));
    }
    assert_eq!(runs[0]["new"]["mean"], 0.0, "ProtoNet never finds anything new");
    assert_eq!(runs[0]["k"]["mean"], 3.0);
}

#[test]
fn the_table_shows_the_figures_of_the_json() {
    let folder = with_features();
    let options = format!("main {SHAPE} --query 4 --episodes 6");
    let json = json_of(&folder, &options);
    let table = bench(&folder, &options);
    for run in json["runs"].as_array().unwrap() {
        let method = run["method"].as_str().unwrap();
        let row = table
            .text()
            .lines()
            .find(|line| line.starts_with(&format!("| {method} ")))
            .unwrap();
        for side in ["all", "old", "new"] {
            let [mean, ci95] = ["mean", "ci95"].map(|part| 100.0 * run[side][part].as_f64().unwrap());
            if mean > 0.0 {
                assert!(row.contains(&format!(" {mean:.1} ± {ci95:.1} |")), "{side} of {row}");
            }
        }
    }
}

#[test]
fn parameters_and_settings_are_in_the_json() {
    let folder = with_features();
    let json = json_of(&folder, &format!("alpha {SHAPE} --query 4 --episodes 2 --alpha 1.2,2"));
    let alphas: Vec<&Value> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["parameters"]["alpha"])
        .collect();
    assert_eq!(alphas, ["1.2", "2"]);
    let json = json_of(
        &folder,
        &format!("queries {SHAPE} --query 1,3 --episodes 2 --methods shc"),
    );
    let queries: Vec<&Value> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["query"])
        .collect();
    assert_eq!(queries, [1, 3]);
    let json = json_of(
        &folder,
        &format!("large {SHAPE} --tasks 2 --subset 25 --refine 1 --methods shc"),
    );
    assert_eq!(json["large"]["subset"], 25);
    assert_eq!(json["large"]["refine"], 1);
    assert_eq!(json["runs"][0]["episodes"].as_array().unwrap().len(), 2);
    // One query at a time cannot tell how many categories there are.
    let json = json_of(
        &folder,
        &format!("realtime {SHAPE} --query 4 --episodes 2 --methods shc"),
    );
    assert_eq!(json["runs"][0]["k"], Value::Null);
}

#[test]
fn an_older_json_is_replaced_as_a_whole() {
    let folder = with_features();
    folder.write("result.json", "x".repeat(1 << 20));
    json_of(&folder, &format!("main {SHAPE} --query 4 --episodes 2 --methods shc"));
    assert_eq!(folder.contents().len(), 2, "{:?}", folder.contents().keys());
}

#[test]
fn the_papers_shape_is_the_default() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(10, 20)));
    let json = json_of(&folder, "main --features features.csv --methods proto");
    let settings = ["way", "shot", "new", "query", "episodes", "seed"].map(|name| json[name].as_u64().unwrap());
    assert_eq!(settings, [5, 5, 5, 15, 500, 0]);
    assert_eq!(json["runs"][0]["episodes"].as_array().unwrap().len(), 500);
}

#[test]
fn a_split_chooses_the_classes() {
    let folder = with_features();
    with_split(&folder);
    folder.write("rest.json", format!("{{\"novel\": [{}]}}", names(20..30)));
    let options = format!("main {SHAPE} --query 4 --episodes 6 --methods rankstat,shc");
    let all = bench(&folder, &options);
    let novel = bench(&folder, &format!("{options} --split split.json"));
    assert!(novel.text().contains("from 10 classes"), "{}", novel.text());
    assert_ne!(all.text(), novel.text());
    assert_eq!(
        bench(&folder, &format!("{options} --split rest.json")).text(),
        novel.text()
    );
    // The same as a file of these classes alone.
    let mut only = labelled(30, 9);
    only.retain(|item| item.label.as_str() >= "class 20");
    folder.write("features.csv", csv(&only));
    assert_eq!(bench(&folder, &options).text(), novel.text());
}

#[test]
fn a_split_may_count_the_classes() {
    let folder = Folder::new();
    folder.write("features.npz", golden("classes.npz"));
    folder.write("split.json", "{\"base\": [1], \"novel\": [0, 2]}");
    let shape = "--way 1 --new 1 --shot 1 --query 1 --episodes 2 --methods proto --short-classes skip";
    let outcome = folder.genus(&format!(
        "bench main --features features.npz --split split.json {shape}"
    ));
    // The class "éléphant" has one item only, and then "cat" is alone.
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("needs 2 classes, and there are 1"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn numbers_of_queries_go_as_far_as_the_data() {
    let folder = with_features();
    let tried = |options: &str| -> Vec<u64> {
        let json = json_of(
            &folder,
            &format!("queries {SHAPE} --episodes 1 --methods proto {options}"),
        );
        json["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["query"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(tried(""), [1, 5]);
    assert_eq!(tried("--query 7,2"), [7, 2]);
}

#[test]
fn tails_and_outliers_are_in_the_json_where_there_are_some() {
    let folder = Folder::new();
    folder.write("features.csv", csv(&labelled(30, 27)));
    let options = "--way 3 --new 3 --shot 2 --episodes 3 --methods proto,shc --features features.csv";
    let json = json_of(&folder, &format!("main {options} --outliers 4 --tail"));
    // By itself it is the usual tail, and may be followed by another option.
    assert_eq!(json["tail"]["smallest"], 3);
    assert_eq!(json["tail"]["largest"], 24);
    assert_eq!(json["outliers"], 4);
    let k = &json["runs"][0]["k"];
    assert_eq!(
        (&k["truth"], &k["relative_error"]),
        (&Value::from(6), &Value::from(0.5))
    );
    for spelling in ["--tail --outliers 4", "--tail=3-24 --outliers 4"] {
        assert_eq!(json_of(&folder, &format!("main {options} {spelling}")), json);
    }
    let plain = json_of(&folder, &format!("main {options} --outliers 0"));
    assert_eq!((&plain["tail"], &plain["outliers"]), (&Value::Null, &Value::Null));
    assert_eq!(plain, json_of(&folder, &format!("main {options}")));
    // Every experiment on episodes has them.
    for experiment in [
        "realtime --tail 1-5",
        "queries --query 2,3 --outliers 3",
        "tasks --tail 1-5 --outliers 2",
        "alpha --methods ukc --tail 1-5 --outliers 3",
        "threshold --methods shc --tail 1-5 --outliers 3",
    ] {
        let shape = "--way 2 --new 2 --shot 2 --episodes 2 --features features.csv";
        let json = json_of(&folder, &format!("{experiment} {shape}"));
        let named = (json["tail"].is_object(), json["outliers"].is_u64());
        assert_eq!(
            named,
            (experiment.contains("--tail"), experiment.contains("--outliers"))
        );
    }
}

#[test]
fn scores_and_doubts_are_in_the_json_and_the_trade_off_is_drawn() {
    let folder = with_features();
    with_split(&folder);
    let options = format!("{SHAPE} --split split.json --episodes 4 --methods shc,gcd,calibrated");
    let json = json_of(&folder, &format!("realtime {options} --query 4 --svg trade-off.svg"));
    for (run, scored) in json["runs"].as_array().unwrap().iter().zip([true, false, true]) {
        let scores = &run["known_or_new"];
        assert_eq!(scores.is_object(), scored, "{run}");
        if scored {
            fraction(&scores["auroc"]);
            // Every episode has as many queries, so that their mean is what they have together.
            for side in ["old", "new"] {
                let together = scores["at"][side].as_f64().unwrap();
                assert!((together - fraction(&run[side])).abs() < 1e-12, "{run}");
            }
            assert!(scores["curve"].as_array().unwrap().len() > 5);
        }
    }
    assert!(folder.read("trade-off.svg").starts_with("<svg "));
    let json = json_of(&folder, &format!("main {options} --query 4 --outliers 3"));
    for (run, says) in json["runs"].as_array().unwrap().iter().zip([false, false, true]) {
        assert_eq!(run["unsure"].is_object(), says, "{run}");
        if says {
            for side in ["outliers", "others"] {
                fraction(&run["unsure"][side]);
            }
        }
    }
}

#[test]
fn an_ablation_needs_base_classes() {
    let folder = with_features();
    let outcome = folder.genus(&format!("bench ablation {SHAPE} --query 4 --episodes 2"));
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("no base classes") && outcome.stderr.contains("--split"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_page_says_what_was_run_and_by_which_command() {
    let folder = with_features();
    let command = format!("bench main {SHAPE} --query 4 --episodes 3 --methods proto,shc --report page.html");
    folder.genus(&command).success();
    let page = folder.read("page.html");
    for part in [
        "<!doctype html>",
        "main: features.csv",
        &format!("<code>genus {command}</code>"),
        "3 classes that are known from 2 examples each",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    folder.genus(&command).success();
    assert_eq!(folder.read("page.html"), page, "the same bytes again");
    let plot = format!("bench plot {SHAPE} --query 4 --episodes 1 --methods shc --out drawings --report plot.html");
    folder.genus(&plot).success();
    assert_eq!(folder.read("plot.html").matches("<figure>").count(), 2);
    assert!(
        folder
            .read("plot.html")
            .contains(folder.read("drawings/map.svg").trim_end())
    );
    folder.fails(
        &format!("bench main {SHAPE} --report nowhere/page.html"),
        &["nowhere/page.html", "create the folder"],
    );
}

#[test]
fn piles_of_a_half_say_so_and_have_a_chart() {
    let folder = with_features();
    let options = format!("piles {PILES} --vary items,tail --methods proto,calibrated");
    let outcome = bench(
        &folder,
        &format!("{options} --half second --with-base --svg piles.svg --quiet"),
    );
    assert!(
        outcome.text().contains("from 15 classes (the second half)"),
        "{}",
        outcome.text()
    );
    // The other half taught it, so no examples had to.
    assert!(!outcome.text().contains("no base classes"), "{}", outcome.text());
    let chart = folder.read("piles.svg");
    assert!(chart.contains("Categories found") && chart.contains(">1–6<"), "{chart}");
    let first = bench(&folder, &format!("{options} --half first --quiet"));
    assert!(first.text().contains("no base classes"), "{}", first.text());
    let json = json_of(&folder, &format!("{options} --half first"));
    assert_eq!(json["half"], "first");
    assert_eq!(json["runs"][0]["pile"]["name"], "6 × 2");
    assert_eq!(json["runs"].as_array().unwrap().len(), 8);
}

#[test]
fn a_stream_has_a_chart_and_stands_beside_ocd_where_there_are_base_classes() {
    let folder = with_features();
    with_split(&folder);
    let options = "stream --features features.csv --classes 6 --way 3 --shot 2 --tail 1-6 --orders 2 --looks 2";
    let methods = "calibrated,ocd:epochs=2:hidden=8:batch=8";
    let outcome = bench(
        &folder,
        &format!("{options} --methods {methods} --split split.json --svg stream.svg --quiet"),
    );
    for wanted in ["| stream ", "| calibrated ", "| ocd (", "1 to 6 queries a class"] {
        assert!(outcome.text().contains(wanted), "{wanted}: {}", outcome.text());
    }
    let chart = folder.read("stream.svg");
    assert!(chart.contains("Items seen") && chart.contains("Waiting, %"), "{chart}");
}
