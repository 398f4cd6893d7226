//! Tables as people have them, pipes, what is left out, and how a run ends.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::images::{self, ENCODER};
use super::support::{Folder, animals, csv, jsonl};

/// A folder in which a taxonomy of the animals is.
fn sorted() -> Folder {
    let folder = Folder::with_animals();
    folder
        .genus("discover --support support.csv --query pile.csv --out result")
        .success();
    folder
}

/// The pile as lines of JSON.
fn lines() -> Vec<String> {
    let (_, pile) = animals();
    jsonl(&pile).lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_line_of_a_pipe_is_answered_as_it_comes() {
    let folder = sorted();
    let expected = folder
        .genus("assign --taxonomy result --query pile.csv --format jsonl")
        .success();
    let mut child = folder
        .command("assign --taxonomy result --query - --input jsonl --format jsonl --quiet")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (sender, answers) = channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || stdout.lines().try_for_each(|line| sender.send(line.unwrap())));
    for (line, expected) in lines().iter().zip(expected.text().lines()) {
        stdin.write_all(line.as_bytes()).unwrap();
        // It would never come if the program waited for the next line.
        let answer = answers.recv_timeout(Duration::from_secs(120)).unwrap();
        assert_eq!(answer, expected);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(answers.recv().is_err());
}

#[test]
fn tables_come_on_the_standard_input() {
    let folder = sorted();
    let expected = folder
        .genus("discover --support support.csv --query pile.csv")
        .success();
    folder.write("pile.jsonl", lines().concat());
    for (format, file) in [("csv", "pile.csv"), ("jsonl", "pile.jsonl")] {
        let command = format!("discover --support support.csv --query - --input {format}");
        let input = std::fs::File::open(folder.path(file)).unwrap();
        let output = folder.command(&command).stdin(input).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.stdout == expected.stdout, "{format}");
    }
    // Where nothing is said of the format, it is asked for.
    for (file, mention) in [
        ("pile.csv", "rows of a table"),
        ("pile.jsonl", "rows of a table"),
        ("words.txt", "texts"),
    ] {
        folder.write("words.txt", "A good film.\nA bad, sad one.\n");
        let input = std::fs::File::open(folder.path(file)).unwrap();
        let output = folder.command("discover --query -").stdin(input).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: the standard input: there are "), "{said}");
        assert!(said.contains(mention) && said.contains("--input"), "{said}");
    }
}

#[test]
fn what_is_packed_needs_no_name_and_errors_call_a_pipe_by_its_own() {
    let folder = Folder::with_animals();
    let expected = folder
        .genus("discover --support support.csv --query pile.csv")
        .success();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(folder.read("pile.csv").as_bytes()).unwrap();
    folder.write("pile.gz", packed.finish().unwrap());
    let command = "discover --support support.csv --query - --input csv";
    let input = std::fs::File::open(folder.path("pile.gz")).unwrap();
    let output = folder.command(command).stdin(input).output().unwrap();
    assert!(
        output.stdout == expected.stdout,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder.write("broken.csv", "id,f0\na,b\n");
    let input = std::fs::File::open(folder.path("broken.csv")).unwrap();
    let output = folder.command(command).stdin(input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: the standard input, line 2: "), "{said}");
    // A list of images by its name, unless something else is said.
    folder.write("pile.txt", folder.read("pile.csv"));
    let command = "discover --support support.csv --query pile.txt --input csv";
    assert!(folder.genus(command).success().stdout == expected.stdout);
    for (name, mention) in [("a.json", "jq -c"), ("a.xlsx", "save the sheet"), ("a.dat", "--input")] {
        folder.write(name, "[]");
        folder.fails(&format!("discover {name}"), &[name, mention]);
    }
}

#[test]
fn columns_are_named_or_asked_for() {
    let folder = Folder::new();
    let (mut support, mut pile) = animals();
    support.iter_mut().for_each(|item| item.id.insert_str(0, "example "));
    pile.iter_mut().for_each(|item| item.label = "unknown".to_owned());
    // As a biologist would have it.
    let mut lines = csv(&[support, pile].concat())
        .lines()
        .map(|line| format!("{line},{}", line.len()))
        .collect::<Vec<_>>();
    lines[0] = lines[0].replace("id,label", "photo,species").replace(",f", ",pc_");
    let end = lines[0].rfind(',').unwrap();
    lines[0].replace_range(end + 1.., "age");
    let table = lines.join("\n");
    folder.write("birds.csv", &table);
    let mut text = String::new();
    for command in [
        "discover birds.csv",
        "discover birds.csv --label speceis --id photo",
        "discover birds.csv --label species --id photo",
        "discover birds.csv --label species --id photo --unlabelled unknown",
        "discover birds.csv --label species --id photo --unlabelled unknown --features pc_*,age",
    ] {
        let outcome = folder.genus(command);
        let said: Vec<&str> = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("birds.csv") || line.starts_with("error"))
            .collect();
        text += &format!(
            "$ genus {command}\nexit code {:?}\n{}\n\n",
            outcome.code,
            said.join("\n")
        );
    }
    insta::assert_snapshot!("columns", text);
}

#[test]
fn numbers_and_texts_are_no_features() {
    let folder = Folder::new();
    folder.write("people.csv", "id,age,height,label\na,41,1.8,x\nb,12,1.4,\n");
    folder.write("reviews.csv", "id,text,label\n1,A good film.,good\n2,A bad one.,\n");
    folder.write("semicolons.csv", "id;review;label\n1;A good film, really.;good\n");
    folder.write("only.csv", "text\nA good film.\nA bad one.\n");
    folder.write("tabs.tsv", "id\ttext\n1\tA good film.\n");
    folder.write("lines.txt", "A good film.\nA bad one.\n");
    folder.write("letters/one.txt", "Dear Sir,");
    folder.write("two.csv", "label,class,f0,f1\na,b,1,2\n");
    folder.write("families.csv", "f0,f1,pca1,pca2\n1,2,3,4\n");
    folder.write("lablled/cat/a.bmp", "");
    let mut text = String::new();
    for command in [
        "discover people.csv",
        "discover reviews.csv",
        "discover semicolons.csv",
        "discover only.csv",
        "discover tabs.tsv",
        "discover --query lines.txt",
        "discover --query letters",
        "discover two.csv",
        "discover families.csv",
        "discover --support labelled --query lines.txt",
        "assign --taxonomy nowhere --query people.csv",
        "assign --taxonomy leters --query people.csv",
        "assign --taxonomy letters --query people.csv",
        "discover --query peopel.csv",
        "discover --query leters/one.txt",
        "discover --query letters/two.txt",
        "discover --support lablled/cta --query lines.txt",
    ] {
        let outcome = folder.genus(command);
        assert_eq!((outcome.code, outcome.text()), (Some(1), ""), "{command}");
        text += &format!("$ genus {command}\n{}\n", outcome.stderr);
    }
    insta::assert_snapshot!("no_features", text);
}

#[test]
fn what_is_skipped_is_counted_named_and_the_exit_code() {
    let folder = images::folder();
    for name in ["a.HEIC", "b.HEIC", "b.heic", "c.cr2"] {
        folder.write(&format!("photos/{name}"), "no picture");
    }
    folder.write("photos/broken.jpg", "no picture either");
    let command = format!("discover --support labelled --query photos --out result {ENCODER} --summary run.json");
    let outcome = folder.genus(&command);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    for words in [
        "3 .HEIC files were skipped: convert them with magick mogrify -format jpg *.HEIC *.heic",
        "1 .cr2 file was skipped: convert it with",
        "skipped photos/broken.jpg: ",
    ] {
        assert!(outcome.stderr.contains(words), "{words}\n{}", outcome.stderr);
    }
    let summary: serde_json::Value = serde_json::from_str(&folder.read("run.json")).unwrap();
    assert_eq!(summary["exit_code"], 3);
    assert_eq!(summary["skipped"]["count"], 5);
    assert_eq!(summary["skipped"]["unsupported"]["HEIC"], 2);
    assert_eq!(summary["skipped"]["files"][0][0], "photos/broken.jpg");
    let items = &summary["items"];
    let parts = ["known", "new", "unsure"].map(|part| items[part].as_u64().unwrap());
    assert_eq!(items["all"].as_u64().unwrap(), parts.iter().sum::<u64>());
    assert!(summary["seconds"]["total"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_summary_tells_a_failure_too() {
    let folder = Folder::new();
    let outcome = folder.genus("discover none.csv --summary run.json");
    assert_eq!(outcome.code, Some(1));
    let summary: serde_json::Value = serde_json::from_str(&folder.read("run.json")).unwrap();
    assert_eq!(summary["exit_code"], 1);
    assert_eq!(summary["error"], "there is no file none.csv");
    assert_eq!(summary["command"][0], "discover");
}

#[test]
fn unsure_is_no_class_of_a_sorted_folder() {
    let folder = images::folder();
    folder.write(
        "sorted/red/a.bmp",
        std::fs::read(folder.path("photos/red-0.bmp")).unwrap(),
    );
    folder.write(
        "sorted/unsure/red/b.bmp",
        std::fs::read(folder.path("photos/red-1.bmp")).unwrap(),
    );
    let command = format!("discover --support sorted --query photos {ENCODER}");
    let outcome = folder.genus(&command).success();
    assert!(
        outcome.stderr.contains("1 image in unsure/ was left out"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.rows().iter().all(|row| row.category != "unsure"));
}

#[test]
fn labels_in_a_column_of_another_name_are_asked_for() {
    let folder = Folder::new();
    let (mut support, mut pile) = animals();
    support.iter_mut().for_each(|item| item.id.insert_str(0, "example "));
    pile.iter_mut().for_each(|item| item.label.clear());
    let table = jsonl(&[support, pile].concat());
    folder.write("known.jsonl", &table);
    folder.write("birds.jsonl", table.replace("\"label\"", "\"species\""));
    let expected = folder.genus("discover known.jsonl").success();
    let said = folder.genus("discover birds.jsonl").success();
    assert!(
        said.stderr.contains("birds.jsonl: left out species;"),
        "{}",
        said.stderr
    );
    let named = folder.genus("discover birds.jsonl --label species").success();
    assert_eq!(named.stdout, expected.stdout);
    // A pile needs no labels, so nothing has to be said.
    let command = "discover --support known.jsonl --query birds.jsonl";
    let folder_of_examples = Folder::new();
    let (support, pile) = animals();
    folder_of_examples.write("known.jsonl", jsonl(&support));
    folder_of_examples.write("birds.jsonl", jsonl(&pile).replace("\"label\"", "\"species\""));
    let quiet = folder_of_examples.genus(command).success();
    assert!(!quiet.stderr.contains("left out"), "{}", quiet.stderr);
}

#[test]
fn what_a_pipe_brings_is_shown_and_grown_by_too() {
    let folder = sorted();
    folder.write("pile.jsonl", lines().concat());
    let piped = |command: &str| {
        let input = std::fs::File::open(folder.path("pile.jsonl")).unwrap();
        let output = folder.command(command).stdin(input).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    folder
        .genus("assign --taxonomy result --query pile.jsonl --out file")
        .success();
    piped("assign --taxonomy result --query - --input jsonl --out pipe");
    assert_eq!(folder.read("pipe/assignments.csv"), folder.read("file/assignments.csv"));
    // All but the time is the same.
    let shown = |name: &str| super::report::block(&folder.read(name), "data")["items"].clone();
    assert_eq!(shown("pipe/report.html"), shown("file/report.html"));
    piped("assign --taxonomy result --query - --input jsonl --grow grown");
    assert!(folder.path("grown/taxonomy.toml").exists());
}

/// Signals are of Unix.
#[cfg(unix)]
#[test]
fn a_run_that_is_stopped_says_by_what() {
    let folder = sorted();
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut child = folder
            .command(&format!(
                "assign --taxonomy result --query - --input jsonl --out {signal} --summary {signal}.json"
            ))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines()[0].as_bytes()).unwrap();
        // Until it listens for signals it would die of one; the file is there when it does.
        for _ in 0..12_000 {
            if folder.path(signal).exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = std::process::Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        let summary: serde_json::Value = serde_json::from_str(&folder.read(&format!("{signal}.json"))).unwrap();
        assert_eq!(summary["exit_code"], code);
        assert!(!folder.path(signal).join("assignments.csv").exists());
    }
}

#[test]
fn truth_is_told_on_the_terminal() {
    let folder = Folder::with_animals();
    let (_, pile) = animals();
    let truths: String = pile
        .iter()
        .map(|item| format!("{},{}\n", item.id, item.label))
        .collect();
    folder.write("truth.csv", format!("id,truth\n{truths}"));
    let outcome = folder
        .genus("discover --support support.csv --query pile.csv --truth truth.csv --out result")
        .success();
    let line = outcome.stderr.lines().find(|line| line.starts_with("By the truth"));
    insta::assert_snapshot!("truth_line", line.unwrap_or(&outcome.stderr));
}
