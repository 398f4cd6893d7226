//! A machine that has never seen a network: photographs in, groups and a report out.

use std::process::Command;

use super::support::{Folder, Outcome};

/// Five pictures of three kinds as labelled folders, and two piles of six of those kinds and two more.
fn photographs() -> Folder {
    let folder = Folder::new();
    for (number, kind) in ["clocks", "faces", "flags", "hearts", "vehicles"].iter().enumerate() {
        let pictures = genus_data::emoji().into_iter().filter(|emoji| emoji.kind == *kind);
        for (at, picture) in pictures.enumerate() {
            let name = match at {
                0..5 if number < 3 => format!("labelled/{kind}/{}.png", picture.name),
                5..13 => format!("photos/{}.png", picture.name),
                13..15 => format!("next week/{}.png", picture.name),
                _ => continue,
            };
            folder.write(&name, picture.png);
        }
    }
    std::fs::create_dir(folder.path("home")).unwrap();
    folder
}

/// The program with an empty home and proxies that refuse.
fn newcomer(folder: &Folder, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_genus"));
    command.args(arguments).current_dir(folder.path("")).env_clear();
    command.env("HOME", folder.path("home"));
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(proxy, "http://127.0.0.1:9");
        command.env(proxy.to_lowercase(), "http://127.0.0.1:9");
    }
    folder.outcome(command, &arguments.join(" ")).success()
}

#[test]
fn photographs_become_groups_without_a_network() {
    let folder = photographs();
    let outcome = newcomer(
        &folder,
        &[
            "discover",
            "--support",
            "labelled",
            "--query",
            "photos",
            "--out",
            "result",
        ],
    );
    assert!(
        outcome
            .stderr
            .contains("40 images embedded with efficientnet-lite2-int8")
    );
    assert!(outcome.stderr.contains("Open result/report.html in a browser"));
    let rows = folder.read("result/assignments.csv");
    assert_eq!(rows.lines().count(), 1 + 40);
    // Eight pictures each of three kinds that were labelled and of two that were not.
    let found = |kind: &str| rows.lines().filter(|row| row.contains(kind)).count();
    assert!(found(",known,") >= 18 && found(",new,") >= 10, "{rows}");
    assert!(folder.read("result/report.html").contains("data:image/"));

    // Next week nobody remembers the encoder but the taxonomy.
    let outcome = newcomer(
        &folder,
        &[
            "assign",
            "--taxonomy",
            "result",
            "--query",
            "next week",
            "--out",
            "more",
        ],
    );
    assert!(
        outcome
            .stderr
            .contains("10 images embedded with efficientnet-lite2-int8")
    );
    assert!(folder.read("more/report.html").contains("data:image/"));
    assert_eq!(folder.read("more/assignments.csv").lines().count(), 1 + 10);

    // A folder that grows shows what it grew by, or nothing.
    let title = "\"title\":\"next week\"";
    assert!(!folder.read("result/report.html").contains(title));
    let grow = [
        "assign",
        "--taxonomy",
        "result",
        "--query",
        "next week",
        "--grow",
        "result",
    ];
    newcomer(&folder, &grow);
    assert!(folder.read("result/report.html").contains(title));
    // The same photographs again change nothing, and so does the page.
    let page = folder.read("result/report.html");
    newcomer(&folder, &[&grow[..], &["--no-report"]].concat());
    assert_eq!(folder.read("result/report.html"), page);
    // Others without a page leave none that is not theirs.
    let others = [
        "assign",
        "--taxonomy",
        "result",
        "--query",
        "labelled",
        "--grow",
        "result",
        "--no-report",
    ];
    newcomer(&folder, &others);
    assert!(!folder.path("result/report.html").exists());
}
