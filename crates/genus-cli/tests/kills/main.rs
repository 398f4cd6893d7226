//! `kill -9` at random moments during every command that writes a collection: afterwards the collection is sound, and nothing that
//! was acknowledged is missing.
//!
//! `GENUS_KILLS=1000 cargo test --test kills -- --nocapture` is the long run; a seed comes with `GENUS_SEED`.
#![cfg(unix)]

mod bulk;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often something is killed in a short run.
const KILLS: usize = 26;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn genus(folder: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_genus"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("GENUS_CACHE", folder.join("cache"))
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn run(folder: &Path, line: &str) -> Output {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let output = genus(folder, &words).output().unwrap();
    assert!(
        output.status.success(),
        "{line}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn json(folder: &Path, line: &str) -> Value {
    serde_json::from_slice(&run(folder, &format!("{line} --json")).stdout).unwrap()
}

/// A table of items of six kinds.
fn table(from: usize, count: usize) -> String {
    let mut text = String::from("id,f0,f1,f2,f3,f4,f5,f6,f7\n");
    for at in from..from + count {
        let cells = (0..8).map(|column| {
            let noise = ((at * 37 + column * 101) % 97) as f32 / 97.0 - 0.5;
            (0.3 * noise + f32::from(u8::from(column == at % 6))).to_string()
        });
        text += &format!("{at},{}\n", cells.collect::<Vec<_>>().join(","));
    }
    text
}

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let kills = number("GENUS_KILLS", KILLS as u64) as usize;
    let mut random = Random(number("GENUS_SEED", 7));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("first.csv"), table(0, 60)).unwrap();
    run(folder, "init c");
    run(folder, "add c first.csv");
    let mut acknowledged = json(folder, "status c")["log"].as_i64().unwrap();
    let (mut killed, mut finished) = (0, 0);
    for round in 0..kills {
        let groups = json(folder, "groups c");
        let names: Vec<String> = groups
            .as_array()
            .unwrap()
            .iter()
            .map(|group| format!("#{}", group["id"]))
            .collect();
        let pick = |random: &mut Random| names[random.below(names.len() as u64) as usize].clone();
        let item = |random: &mut Random| format!("#{}", 1 + random.below(60));
        let line = match round % 13 {
            0 => format!("name c {} n{round}", pick(&mut random)),
            1 => format!("merge c {} {} --into {0}", pick(&mut random), pick(&mut random)),
            2 => format!("split c {} --into 2", pick(&mut random)),
            3 => format!(
                "move c {} {} --to {}",
                item(&mut random),
                item(&mut random),
                pick(&mut random)
            ),
            4 => format!("confirm c {}", item(&mut random)),
            5 => format!("reject c {}", item(&mut random)),
            6 => format!("noise c {}", item(&mut random)),
            7 => "undo c".to_owned(),
            8 => "redo c".to_owned(),
            9 => {
                let file = format!("more{round}.csv");
                std::fs::write(folder.join(&file), table(100 + 40 * round, 40)).unwrap();
                format!("add c {file}")
            }
            10 => "refresh c".to_owned(),
            11 => {
                let rows = format!(
                    "id,category\n{},m{round}\n{},m{round}\n",
                    random.below(60),
                    random.below(60)
                );
                std::fs::write(folder.join("corrections.csv"), rows).unwrap();
                "apply c corrections.csv".to_owned()
            }
            _ => "compact c".to_owned(),
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words.push("--json".to_owned());
        // As long as the command takes, and a little longer.
        let usual = if round % 13 == 10 { 120 } else { 45 };
        let wait = Duration::from_micros(1000 * random.below(usual) + random.below(1000));
        let start = Instant::now();
        let mut child = genus(folder, &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(wait.saturating_sub(start.elapsed()));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        // What it said before it ended was on the disk.
        let said = serde_json::from_slice::<Value>(&output.stdout).unwrap_or(Value::Null);
        let entry = [&said["no"], &said["entry"]["no"]].into_iter().find_map(Value::as_i64);
        acknowledged = acknowledged.max(entry.unwrap_or(0));
        match output.status.code() {
            Some(_) => finished += 1,
            None => killed += 1,
        }
        let checked = json(folder, "check c");
        assert_eq!(checked["problems"], Value::Array(Vec::new()), "after {line}");
        let last = json(folder, "status c")["log"].as_i64().unwrap();
        assert!(
            last >= acknowledged,
            "after {line}: {acknowledged} was acknowledged, and the log ends with {last}"
        );
        acknowledged = last;
    }
    println!(
        "{killed} commands were killed and {finished} had ended before; seed {}",
        number("GENUS_SEED", 7)
    );
    // Whoever was killed holds nothing.
    run(folder, "name c #1 last");
}

#[test]
fn two_writers_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("first.csv"), table(0, 60)).unwrap();
    run(folder, "init c");
    run(folder, "add c first.csv");
    let before = json(folder, "status c")["log"].as_i64().unwrap();
    let children: Vec<_> = (0..6)
        .map(|at| {
            let words = ["noise".to_owned(), "c".to_owned(), format!("#{}", at + 1)];
            genus(folder, &words).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let status = json(folder, "status c");
    assert_eq!(status["noise"], 6);
    assert_eq!(status["log"].as_i64().unwrap(), before + 6);
}
