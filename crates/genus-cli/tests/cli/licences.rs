//! Whatever is built upon has a licence of `deny.toml`, and comes from crates.io.

use std::path::Path;
use std::process::Command;

/// Whether a licence expression can be met by some licences.
fn is_met(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let expression = expression.trim();
    // Before there was a standard a stroke meant a choice.
    for (word, any) in [(" OR ", true), ("/", true), (" AND ", false)] {
        let parts = split(expression, word);
        if parts.len() > 1 {
            let mut parts = parts.into_iter().map(|part| is_met(part, allowed));
            return if any {
                parts.any(|met| met)
            } else {
                parts.all(|met| met)
            };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_met(inner, allowed),
        None => allowed(expression),
    }
}

/// The parts between a word that stands in no parentheses.
fn split<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= from && expression[at..].starts_with(word) => {
                parts.push(&expression[from..at]);
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[from..]);
    parts
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = |licence: &str| ["MIT", "IJG"].contains(&licence);
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("Apache-2.0 / MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR Apache-2.0) AND IJG", true),
        ("(GPL-3.0 OR Apache-2.0) AND IJG", false),
        ("GPL-3.0 OR MIT AND IJG", true),
        ("MIT WITH exception", false),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn every_dependency_has_a_licence_of_the_policy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let policy: toml::Table = std::fs::read_to_string(root.join("deny.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let texts = |value: &toml::Value| -> Vec<String> {
        let texts = value.as_array().unwrap().iter();
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let allow = texts(&policy["licenses"]["allow"]);
    let exceptions: Vec<(&str, Vec<String>)> = policy["licenses"]["exceptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|exception| (exception["crate"].as_str().unwrap(), texts(&exception["allow"])))
        .collect();
    // What was built is here already, so that no network is asked.
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none"])
        .args(["--edges", "normal,build,dev", "--format", "{l}|{p}"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let mut lines: Vec<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() > 100, "{tree}");
    for line in lines {
        let (licence, package) = line.split_once('|').unwrap();
        let name = package.split(' ').next().unwrap();
        let excepted = exceptions
            .iter()
            .filter(|(of, _)| *of == name)
            .flat_map(|(_, allow)| allow);
        let excepted: Vec<&String> = excepted.collect();
        let allowed = |licence: &str| {
            allow
                .iter()
                .chain(excepted.iter().copied())
                .any(|other| other == licence)
        };
        assert!(
            is_met(licence, &allowed),
            "{package}: deny.toml does not allow {licence}"
        );
        // A package of ours has its folder behind it; one of another registry or of a repository its address.
        let elsewhere = package.contains("registry `") || package.contains("://");
        assert!(!elsewhere, "{package} is not from crates.io");
    }
}
