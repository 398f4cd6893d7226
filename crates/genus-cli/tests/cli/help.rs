//! Help, the list of methods, completions and manual pages.

use super::support::Folder;

fn help_of(command: &str) -> String {
    let outcome = Folder::new().genus(&format!("{command} --help")).success();
    assert_eq!(outcome.stderr, "");
    outcome.text().to_owned()
}

#[test]
fn help_shows_every_option_and_examples() {
    insta::assert_snapshot!("genus", help_of(""));
    insta::assert_snapshot!("discover", help_of("discover"));
    insta::assert_snapshot!("assign", help_of("assign"));
    insta::assert_snapshot!("bulk", help_of("bulk"));
    insta::assert_snapshot!("bulk_plan", help_of("bulk plan"));
    insta::assert_snapshot!("bulk_run", help_of("bulk run"));
    insta::assert_snapshot!("calibrate", help_of("calibrate"));
    insta::assert_snapshot!("embed", help_of("embed"));
    insta::assert_snapshot!("train", help_of("train"));
    insta::assert_snapshot!("encoders", help_of("encoders"));
    insta::assert_snapshot!("cache", help_of("cache"));
    insta::assert_snapshot!("bench", help_of("bench"));
    insta::assert_snapshot!("bench_main", help_of("bench main"));
    insta::assert_snapshot!("bench_large", help_of("bench large"));
    insta::assert_snapshot!("bench_piles", help_of("bench piles"));
    insta::assert_snapshot!("bench_stream", help_of("bench stream"));
    insta::assert_snapshot!("bench_paper", help_of("bench paper"));
    insta::assert_snapshot!("demo", help_of("demo"));
}

/// The commands about a collection.
const COLLECTION: [&str; 22] = [
    "init", "add", "status", "groups", "show", "name", "merge", "split", "move", "confirm", "reject", "noise", "undo",
    "redo", "log", "refresh", "ask", "report", "apply", "export", "compact", "check",
];

#[test]
fn every_command_has_examples() {
    let benches = [
        "main",
        "realtime",
        "large",
        "queries",
        "piles",
        "stream",
        "tasks",
        "ablation",
        "alpha",
        "threshold",
        "backbones",
        "transfer",
        "plot",
        "data",
        "paper",
    ];
    let commands = [
        "",
        "discover",
        "assign",
        "calibrate",
        "embed",
        "train",
        "bench",
        "demo",
        "methods",
        "encoders",
        "encoders list",
        "encoders info",
        "encoders pull",
        "cache",
        "cache info",
        "cache clear",
        "completions",
        "man",
        "bulk",
        "bulk plan",
        "bulk run",
        "bulk reduce",
        "bulk verify",
        "bulk status",
        "serve",
        "token",
        "token create",
        "token list",
        "token revoke",
    ]
    .map(str::to_owned);
    let commands = commands.into_iter().chain(COLLECTION.map(str::to_owned));
    for command in commands.chain(benches.map(|name| format!("bench {name}"))) {
        let help = help_of(&command);
        let (_, examples) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{command}\n{help}"));
        // An example of a bench names the experiment that it is an example of.
        assert!(examples.contains(&format!("  genus {command}")), "{command}\n{help}");
    }
}

/// What the examples of help show is understood: it fails for want of the files, not for wrong usage.
#[test]
fn the_examples_of_help_are_valid_commands() {
    let folder = Folder::new();
    let mut seen = 0;
    for command in [
        "",
        "discover",
        "assign",
        "bulk",
        "bulk plan",
        "bulk run",
        "bulk reduce",
        "bulk verify",
        "bulk status",
        "calibrate",
        "bench",
        "bench main",
        "bench large",
        "bench queries",
        "bench piles",
        "bench stream",
        "bench alpha",
        "bench backbones",
        "bench transfer",
        "bench plot",
        "bench paper",
    ]
    .into_iter()
    .chain(COLLECTION.into_iter().filter(|&command| command != "init"))
    {
        let help = help_of(command);
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        for example in examples.lines().filter_map(|line| line.strip_prefix("  genus ")) {
            let words = example.split("  ").next().unwrap().split(" > ").next().unwrap();
            if words == "demo" {
                continue;
            }
            let mut run = folder.command("");
            run.args(unquoted(words));
            let outcome = folder.outcome(run, words);
            assert_eq!(outcome.code, Some(1), "{words}\n{}", outcome.stderr);
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen} examples were tried");
}

/// The words of a command line, without the quotes around some.
fn unquoted(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(mark)) if letter == mark => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

#[test]
fn the_list_of_methods_names_every_parameter_with_its_default() {
    let outcome = Folder::new().genus("methods").success();
    assert_eq!(outcome.stderr, "");
    insta::assert_snapshot!("methods", outcome.text());
}

/// Every setting that the list shows can be given to its method as it stands there.
#[test]
fn the_listed_defaults_are_accepted() {
    let folder = Folder::with_animals();
    let list = folder.genus("methods").success();
    let mut method = String::new();
    let mut specs = Vec::new();
    for line in list.text().lines() {
        // Those of the bench are tested with it.
        if line.ends_with("(bench only)") {
            break;
        }
        match line.strip_prefix("    ") {
            Some(setting) => {
                let spec = format!("{method}:{}", setting.split_whitespace().next().unwrap());
                specs.push((spec, setting.contains("in a bench")));
            }
            None => method = line.split_whitespace().next().unwrap_or_default().to_owned(),
        }
    }
    assert!(specs.len() > 15, "{specs:?}");
    for (spec, in_a_bench) in specs {
        let plain = spec.split(':').next().unwrap().to_owned();
        let run = |method: &str| folder.genus(&format!("discover --support support.csv --query pile.csv -m {method}"));
        if in_a_bench {
            let refused = run(&spec);
            assert_eq!(refused.code, Some(2), "{spec}");
            assert!(refused.stderr.contains("has no effect"), "{}", refused.stderr);
            continue;
        }
        assert_eq!(run(&spec).success().text(), run(&plain).success().text(), "{spec}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let outcome = Folder::new().genus("--version").success();
    assert_eq!(outcome.text(), concat!("genus ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    folder.genus("man pages").success();
    let pages = folder.names("pages");
    for page in ["genus.1", "genus-discover.1", "genus-bench-main.1", "genus-man.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is not among {pages:?}");
    }
    assert!(!pages.iter().any(|name| name.contains("help")), "{pages:?}");
    let page = std::fs::read_to_string(folder.path("pages/genus-assign.1")).unwrap();
    // An option of its own, one that all have, and the examples.
    for words in ["\\-\\-taxonomy", "\\-\\-seed", "genus assign"] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
    // What is there is replaced, and nothing else is left.
    folder.genus("man pages").success();
    assert_eq!(folder.names("pages"), pages);
}

#[test]
fn completions_know_the_commands_of_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = Folder::new().genus(&format!("completions {shell}")).success();
        let script = outcome.text();
        for word in [
            "discover",
            "assign",
            "calibrate",
            "bench",
            "demo",
            "methods",
            "realtime",
            "threshold",
            "support",
            "taxonomy",
            "subset",
        ] {
            assert!(script.contains(word), "the script for {shell} does not mention {word}");
        }
        assert_eq!(outcome.stderr, "", "{shell}");
    }
}
