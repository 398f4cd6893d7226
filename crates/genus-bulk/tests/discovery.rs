//! Discovery over shards: rounds whose result depends neither on the workers nor on what they did when.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use genus::Silent;
use genus_bulk::{Job, PlanOptions, Reduced, Round, Runner, Summary, Target, plan};
use genus_data::{Format, read_taxonomy};

const DIM: usize = 12;

/// The kind of an item: nine usual ones and, from 9 on, a rare one that only the last file has.
fn kind(at: usize) -> usize {
    match at >= 1700 && at.is_multiple_of(5) {
        true => 9,
        false => at % 9,
    }
}

fn features(at: usize) -> Vec<f32> {
    let noise = |column: usize| ((at * 7919 + column * 104_729 + at * column) % 1009) as f32 / 1009.0 - 0.5;
    (0..DIM)
        .map(|column| 0.5 * noise(column) + f32::from(u8::from(column == kind(at))))
        .collect()
}

fn table(rows: std::ops::Range<usize>, labelled: bool) -> String {
    let header: Vec<String> = (0..DIM).map(|column| format!("f{column}")).collect();
    let mut text = format!("id,label,{}\n", header.join(","));
    for at in rows {
        let cells: Vec<String> = features(at).iter().map(f32::to_string).collect();
        let label = if labelled {
            format!("kind {}", kind(at))
        } else {
            String::new()
        };
        text += &format!("item {at},{label},{}\n", cells.join(","));
    }
    text
}

/// A pile in files of unequal sizes, and a few examples of two of its kinds.
fn pile(folder: &Path) {
    fs::create_dir(folder.join("pile")).unwrap();
    for (name, rows) in [
        ("a", 0..300),
        ("b", 300..330),
        ("c", 330..900),
        ("d", 900..1700),
        ("e", 1700..2000),
    ] {
        fs::write(folder.join(format!("pile/{name}.csv")), table(rows, false)).unwrap();
    }
    let examples = |first: usize| (0..6).map(move |at| 2100 - 2100 % 45 + first + 45 * at);
    let mut text = table(0..0, true);
    for at in examples(1).chain(examples(2)) {
        text += table(at..at + 1, true).split_once('\n').unwrap().1;
    }
    fs::write(folder.join("examples.csv"), text).unwrap();
}

fn options(folder: &Path, out: &str, sample: usize, with_examples: bool) -> PlanOptions {
    let target = Target::Discovery {
        method: "calibrated".to_owned(),
        seed: 3,
        sample,
        passes: 2,
        examples: with_examples.then(|| folder.join("examples.csv")),
    };
    PlanOptions {
        format: Format::Csv,
        shard_bytes: 20_000,
        ..PlanOptions::new(
            vec![folder.join("pile").display().to_string()],
            folder.join(out).display().to_string(),
            target,
        )
    }
}

fn run_all(job: &Job, workers: usize, backwards: bool) -> Summary {
    loop {
        let runner = Runner::new(job, None).unwrap();
        let mut shards = job.missing(runner.round()).unwrap();
        if backwards {
            shards.reverse();
        }
        let ran = runner.run(&shards, workers, &Silent);
        assert!(ran.failed.is_empty(), "{:?}", ran.failed);
        if let Reduced::Done(summary) = job.reduce(&Silent).unwrap() {
            return summary;
        }
    }
}

/// The category of every item.
fn categories(job: &Job, summary: &Summary) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    for part in &summary.parts {
        let text = fs::read_to_string(job.place().full(&part.file)).unwrap();
        for line in text.lines().skip(1) {
            let mut cells = line.split(',');
            let at = cells.next().unwrap().strip_prefix("item ").unwrap().parse().unwrap();
            assert!(
                found.insert(at, cells.next().unwrap().to_owned()).is_none(),
                "item {at} twice"
            );
        }
    }
    found
}

/// The share of items that are of the kind that is most frequent in their category, where a category counts for one kind.
fn purity(found: &BTreeMap<usize, String>) -> f64 {
    let mut counts: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
    for (at, category) in found {
        *counts.entry(category).or_default().entry(kind(*at)).or_default() += 1;
    }
    let best: usize = counts.values().filter_map(|kinds| kinds.values().max()).sum();
    best as f64 / found.len() as f64
}

#[test]
fn the_result_does_not_depend_on_the_workers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pile(folder);
    let job = plan(&options(folder, "one", 400, true)).unwrap();
    assert!(job.manifest().shards.len() > 3, "{}", job.manifest().shards.len());
    assert_eq!(
        job.manifest().rounds(),
        [Round::Sample, Round::Pass(1), Round::Pass(2), Round::Assign]
    );
    let first = run_all(&job, 1, false);
    let other = plan(&options(folder, "three", 400, true)).unwrap();
    assert_eq!(run_all(&other, 3, true), first);
    for name in [
        "counts.csv",
        "summary.json",
        "taxonomy/taxonomy.toml",
        "taxonomy/centres.safetensors",
    ] {
        let [one, three] = ["one", "three"].map(|out| fs::read(folder.join(out).join(name)).unwrap());
        assert_eq!(one, three, "{name}");
    }
    for job in [&job, &other] {
        let verdict = job.verify().unwrap();
        assert!(verdict.is_clean(), "{verdict:?}");
    }
    assert_eq!((first.rows, first.rejected), (2000, 0));
    let found = categories(&job, &first);
    assert_eq!(found.len(), 2000);
    assert!(purity(&found) > 0.95, "{}", purity(&found));
    // The known classes come first and keep their names, and so does every category from round to round.
    let (taxonomy, origin) = read_taxonomy(folder.join("one/taxonomy")).unwrap();
    let names: Vec<&str> = taxonomy.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[..2], ["kind 1", "kind 2"], "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert_eq!(origin.method, "calibrated");
    let counted: u64 = taxonomy.entries().iter().map(|entry| entry.items).sum();
    assert_eq!(counted, 2000);
}

#[test]
fn what_the_sample_has_not_seen_becomes_a_category_later() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pile(folder);
    // So few that hardly one of the 60 rare items of 2,000 is among them.
    let job = plan(&options(folder, "out", 150, false)).unwrap();
    let summary = run_all(&job, 2, false);
    let found = categories(&job, &summary);
    let rare: Vec<&String> = found
        .iter()
        .filter(|(at, _)| kind(**at) == 9)
        .map(|(_, name)| name)
        .collect();
    assert_eq!(rare.len(), 60);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rare.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let (most, count) = counts.iter().max_by_key(|(_, count)| **count).unwrap();
    let all_of_it = found.values().filter(|name| name == most).count();
    assert!(
        *count >= 55 && all_of_it <= 2 * count,
        "{counts:?}, {all_of_it} in {most}"
    );
    // It was not there when the first pass began.
    let names = |round: &str| {
        let start: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join(format!("out/{round}/start.json"))).unwrap()).unwrap();
        let state = format!("out/{round}/state-{}", start["state"].as_str().unwrap());
        let (taxonomy, _) = read_taxonomy(folder.join(state)).unwrap();
        taxonomy
            .entries()
            .iter()
            .map(|entry| entry.name.clone())
            .collect::<Vec<_>>()
    };
    let (before, after) = (names("pass-1"), names("assignments"));
    assert_eq!(after[..before.len()], before[..], "names and numbers are kept");
    assert!(!before.contains(&(*most).to_owned()), "{before:?}");
}
