//! Data sets that have a name, and the experiments on them: a made-up CUB-200 of a few coloured squares.

use super::images::bmp;
use super::support::Folder;

/// Classes of the SSB lists, as the folders are called: ten base ones and ten novel ones.
const BASE: [usize; 10] = [151, 71, 35, 179, 200, 132, 130, 148, 135, 12];
const NOVEL: [usize; 10] = [30, 111, 4, 9, 14, 59, 21, 160, 174, 149];

/// Shapes and methods that take a moment.
const SMALL: &str = "--way 2 --new 2 --shot 2 --query 3 --episodes 3";
const METHODS: &str = "--methods proto,ocd:epochs=2:hidden=8:batch=8,simgcd:epochs=3,shc";

/// A data set with twenty images of every class, and an encoder for it.
fn folder() -> Folder {
    let folder = Folder::new();
    for &id in BASE.iter().chain(&NOVEL) {
        for at in 0..20 {
            let colour = [id as u8, (255 - id) as u8, (id * 7 % 256) as u8];
            folder.write(
                &format!("data/cub200/{id:03}.Bird/{at:02}.bmp"),
                bmp(colour, 20 * id + at),
            );
        }
    }
    folder
        .genus(
            "train --data cub200 --data-root data --encoder conv4:size=16,width=4 --from-scratch --way 2 --shot 1 --new 1 \
             --query 2 --head-hidden 8 --head-width 16 --epochs 0 --out run",
        )
        .success();
    folder
}

/// Runs a command that must fail, whichever way, and say why.
#[track_caller]
fn refused(folder: &Folder, arguments: &str, mention: &str) {
    let outcome = folder.genus(arguments);
    assert!(matches!(outcome.code, Some(1 | 2)), "{arguments}\n{}", outcome.text());
    assert!(outcome.stderr.contains(mention), "{arguments}\n{}", outcome.stderr);
}

#[test]
fn a_data_set_is_found_by_its_name() {
    let folder = folder();
    let counts = folder.genus("bench data --data-root data").success();
    let line = counts.text().lines().find(|line| line.contains("| all ")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells[1..8], ["CUB-200", "all", "10", "200", "10", "200", "100 / 100"]);
    assert!(
        counts.text().contains("`genus bench data --data cars`"),
        "{}",
        counts.text()
    );
    // What was looked for is named.
    folder.fails(
        "bench data --data-root data --data aircraft",
        &["images_variant_trainval.txt"],
    );
    folder.fails("bench data --data-root data/cub200/004.Bird", &["--data-root"]);

    let bench = format!("bench main --data cub200 --data-root data --encoder run {SMALL} {METHODS}");
    let outcome = folder.genus(&format!("{bench} --json main.json")).success();
    assert!(
        outcome.text().starts_with("**main**, CUB-200: 3 episodes"),
        "{}",
        outcome.text()
    );
    for method in [
        "proto",
        "ocd (batch = 8, epochs = 2, hidden = 8)",
        "simgcd (epochs = 3)",
        "shc",
    ] {
        assert!(outcome.text().contains(&format!("| {method} ")), "{}", outcome.text());
    }
    assert!(
        outcome.stderr.contains("400 view 2 of images embedded"),
        "{}",
        outcome.stderr
    );
    let json: serde_json::Value = serde_json::from_str(&folder.read("main.json")).unwrap();
    assert_eq!((&json["set"], &json["classes"]), (&"cub200".into(), &10.into()));
    assert!(json["machine"]["threads"].as_u64().unwrap() > 0);
    // The second time everything is remembered, and nothing else changes.
    let again = folder.genus(&bench).success();
    assert_eq!(again.text(), outcome.text());
    assert_eq!(
        again.stderr.matches("(all from the cache)").count(),
        3,
        "{}",
        again.stderr
    );
    // Without baselines there are no views; those that are taken by name are found in GENUS_DATA too.
    let mut command = folder.command(&format!(
        "bench main --data CUB200 --encoder run {SMALL} --methods proto"
    ));
    let plain = command.env("GENUS_DATA", folder.path("data")).output().unwrap();
    assert!(plain.status.success() && !String::from_utf8_lossy(&plain.stderr).contains("view"));
    // Blocks of the network are trained in every episode, and with images only.
    let blocks = format!("{SMALL} --methods shc,simgcd:epochs=2:blocks=1:rate=0.01");
    let trained = folder
        .genus(&format!(
            "bench main --data cub200 --data-root data --encoder run {blocks}"
        ))
        .success();
    assert!(trained.text().contains("| simgcd (blocks = 1,"), "{}", trained.text());
    folder
        .genus("embed data/cub200 --encoder run -o features.npz")
        .success();
    folder.fails(
        &format!("bench main --features features.npz {blocks}"),
        &["simgcd", "--images"],
    );
}

#[test]
fn codes_come_from_a_training_of_their_own() {
    let folder = folder();
    folder
        .genus(
            "train --data cub200 --data-root data --encoder conv4:size=16,width=4 --from-scratch --objective ocd --way 2 --shot 1 \
             --new 1 --query 2 --head-hidden 8 --bits 6 --batch 16 --epochs 1 --validation-episodes 5 --out codes",
        )
        .success();
    let bench = format!("bench main --data cub200 --data-root data --encoder run {SMALL}");
    let with = folder
        .genus(&format!("{bench} --methods ocd,shc --ocd codes --views 0"))
        .success();
    assert!(
        with.stderr.contains("400 images embedded with codes"),
        "{}",
        with.stderr
    );
    // A head that is trained on the features alone gives other codes; other methods do not look at any.
    let without = folder
        .genus(&format!("{bench} --methods ocd:epochs=1:hidden=8,shc --views 0"))
        .success();
    let row = |text: &str, method: &str| text.lines().find(|line| line.starts_with(method)).unwrap().to_owned();
    assert_ne!(row(with.text(), "| ocd"), row(without.text(), "| ocd"));
    let figures = |line: String| {
        line.split('|')
            .skip(2)
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        figures(row(with.text(), "| shc")),
        figures(row(without.text(), "| shc"))
    );
}

#[test]
fn the_papers_figures_stand_beside() {
    let folder = folder();
    let outcome = folder
        .genus("bench main --data cub200 --data-root data --encoder run --episodes 2 --methods shc,ukc,shc:t=3 --json main.json")
        .success();
    assert!(outcome.text().contains("| 73.6 / 94.5 / 52.6 |"), "{}", outcome.text());
    let cells: Vec<bool> = {
        let json: serde_json::Value = serde_json::from_str(&folder.read("main.json")).unwrap();
        let runs = json["runs"].as_array().unwrap().iter();
        runs.map(|run| run.get("paper").is_some()).collect()
    };
    assert_eq!(cells, [true, true, false]);
    // A cell that contradicts itself is marked.
    let sweep = "bench threshold --data cub200 --data-root data --encoder run --episodes 2 --threshold 2 --svg t.svg";
    let outcome = folder.genus(sweep).success();
    assert!(outcome.text().contains("73.5 / 93.8 / 54.3 [1]"), "{}", outcome.text());
    assert!(
        outcome
            .text()
            .contains("[1] In the paper: All is not the mean of Old and New, 74.0."),
        "{}",
        outcome.text()
    );
    assert!(folder.read("t.svg").starts_with("<svg "));
}

#[test]
fn encoders_are_compared_and_carried_over() {
    let folder = folder();
    let common = format!("--data cub200 --data-root data {SMALL}");
    // A comma ends an encoder, so that one with several parameters is named by a folder.
    let several = "--encoders run,conv4:size=16,width=4@run/encoder.safetensors";
    refused(&folder, &format!("bench backbones {common} {several}"), "--weights");
    let outcome = folder
        .genus(&format!(
            "bench backbones {common} --encoders run,conv4:width=4@run/encoder.safetensors --json b.json"
        ))
        .success();
    assert!(
        outcome.text().contains("| Encoder ") && outcome.text().contains("| conv4:width=4 "),
        "{}",
        outcome.text()
    );
    refused(&folder, "bench backbones --features x.npz --encoders run", "--data");
    let outcome = folder
        .genus(&format!("bench transfer {common} --trained cub200=run --methods proto"))
        .success();
    assert!(outcome.text().contains("| Trained on "), "{}", outcome.text());
    for (trained, mentions) in [
        ("run", "cub200=runs/cub"),
        ("cub200=nowhere", "nowhere"),
        ("cubs=run", "cifar100"),
    ] {
        refused(
            &folder,
            &format!("bench transfer {common} --trained {trained}"),
            mentions,
        );
    }
    let outcome = folder
        .genus("bench plot --data cub200 --data-root data --encoder run --way 2 --new 2 --shot 2 --query 3 --episodes 2 --out drawings")
        .success();
    assert_eq!(outcome.text().lines().count(), 4);
    assert!(folder.read("drawings/map.svg").contains("Episode 2"));
}

#[test]
fn a_study_goes_on_where_it_was() {
    let folder = folder();
    let paper = format!(
        "bench paper --data-root data --encoder run --episodes 3 --train 0 --encoders run {METHODS} --out results --report study.html"
    );
    let done = folder.genus(&paper).success();
    assert_eq!(done.text(), "results/report.md\n");
    assert!(done.stderr.contains("left out: StanfordCars: "), "{}", done.stderr);
    let report = folder.read("results/report.md");
    for text in [
        "| CUB-200  | all ",
        "## Encoders",
        "## Transfer",
        "| cub200     | shc ",
        "![Episodes in the plane](figures/cub200-map.svg)",
        "- cub200 tasks: CUB-200: ",
    ] {
        assert!(report.contains(text), "{text} is not in\n{report}");
    }
    let page = folder.read("study.html");
    for text in [
        "<h2>Data sets</h2>",
        "<h2>CUB-200</h2>",
        "<h2>Transfer</h2>",
        "<code>genus bench paper ",
        "<h2>Left out</h2>",
    ] {
        assert!(page.contains(text), "{text} is not in\n{page}");
    }
    let complete = folder.contents();
    let again = folder.genus(&paper).success();
    assert!(
        again.stderr.contains("0 experiments run, 9 already done"),
        "{}",
        again.stderr
    );
    assert!(folder.contents() == complete, "a second run changed something");
    std::fs::remove_file(folder.path("results/cub200/realtime.json")).unwrap();
    folder.write("results/cub200/alpha.json", "{\"key\":");
    let again = folder.genus(&paper).success();
    assert!(
        again.stderr.contains("2 experiments run, 7 already done"),
        "{}",
        again.stderr
    );
    assert!(folder.contents() == complete, "the study ended otherwise");
    folder.fails("bench paper --data-root run", &["none of the data sets", "--data-root"]);
}

#[test]
fn mistakes_are_told() {
    let folder = folder();
    for (arguments, mentions) in [
        ("main --data cubs", "cub200"),
        ("main --data cub200 --data-root nowhere", "nowhere"),
        (
            "main --data cub200 --data-root data --images sideways",
            "train, test, all or paper",
        ),
        (
            "main --data cub200 --data-root data --images test",
            "train_test_split.txt",
        ),
        (
            "main --data cub200 --data-root data --encoder run --ocd run",
            "--objective ocd",
        ),
        ("main --data cub200 --features x.npz", "cannot be used"),
        ("main --data cub200 --split x.json", "cannot be used"),
        (
            "main --data cub200 --data-root data --encoder run --methods smile",
            "ocd-radius",
        ),
        (
            "main --data cub200 --data-root data --encoder run --methods ocd:epochs=x",
            "epochs",
        ),
        // Looked at before anything is read.
        (
            "main --data cub200 --data-root nowhere --methods simgcd:entropy=-1",
            "entropy",
        ),
        ("paper --data-root nowhere --methods smile", "ocd-radius"),
    ] {
        refused(&folder, &format!("bench {arguments}"), mentions);
    }
}
