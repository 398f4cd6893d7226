//! How many answers it takes: a person who knows the truth says what the items are that [`Collection::ask`] asks about, and as many
//! others items at random, and after every round everything is sorted anew. Every answer is what one item is.
//!
//! `cargo run --release -p genus-lab --example ask -- FEATURES.npz OUT.json [--split FILE.json NAME] [--classes FROM COUNT]
//! [--items A_CLASS] [--answers MOST] [--round QUESTIONS] [--shipped]`, and `-- --draw OUT.svg TITLE=OUT.json…` draws what came out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;

use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Collection, ItemId, ItemState, Items, Level, Question};
use genus_lab::figures::{Curve, CurveChart, CurvePoint};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str, at: usize| {
        let found = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(found + at)
    };
    let number =
        |flag: &str, at: usize, default: usize| after(flag, at).and_then(|text| text.parse().ok()).unwrap_or(default);
    if let Some(out) = after("--draw", 1) {
        return draw(out, &arguments[2..]);
    }
    let [path, out, ..] = &arguments[..] else {
        return Err("name a file of labelled features, and one for what comes out".into());
    };
    let file = genus_data::read_table(path)?.table;
    let mut classes: BTreeSet<String> = file.labels.iter().flatten().cloned().collect();
    if let (Some(split), Some(half)) = (after("--split", 1), after("--split", 2)) {
        let split: BTreeMap<String, Vec<String>> = serde_json::from_slice(&std::fs::read(split)?)?;
        let half: BTreeSet<&String> = split.get(half).ok_or("no such half")?.iter().collect();
        classes.retain(|class| half.contains(class));
    }
    let (from, count) = (number("--classes", 1, 0), number("--classes", 2, usize::MAX));
    let classes: BTreeSet<&String> = classes.iter().skip(from).take(count).collect();
    let each = number("--items", 1, usize::MAX);
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut chosen = Vec::new();
    for (row, label) in file.labels.iter().enumerate() {
        let Some(label) = label.as_ref().filter(|label| classes.contains(label)) else {
            continue;
        };
        let count = seen.entry(label).or_default();
        if *count < each {
            *count += 1;
            chosen.push(row);
        }
    }
    let features: Features = file.features.select(&chosen);
    let truth: Vec<&str> = chosen.iter().filter_map(|&row| file.labels[row].as_deref()).collect();
    let (most, round) = (number("--answers", 1, 600), number("--round", 1, 20));
    println!("{} items of {} classes", truth.len(), classes.len());
    let mut curves = BTreeMap::new();
    for (name, asked) in [("asked", true), ("at random", false)] {
        let curve = simulate(&features, &truth, most, round, asked)?;
        for &(answers, right) in &curve {
            println!("{name:10} {answers:5} {:5.1} %", 100.0 * right);
        }
        let reached = curve.iter().find(|(_, right)| *right >= 0.9);
        println!(
            "{name}: 90 % right after {}",
            reached.map_or("more".to_owned(), |(answers, _)| answers.to_string())
        );
        curves.insert(name, curve);
        let json = json!({ "items": truth.len(), "classes": classes.len(), "curves": curves });
        std::fs::write(out, serde_json::to_vec(&json)?)?;
    }
    Ok(())
}

/// How many answers were given, and the share of all items that are in a group of the right name, after every round.
fn simulate(
    features: &Features,
    truth: &[&str],
    most: usize,
    round: usize,
    asked: bool,
) -> Result<Vec<(usize, f64)>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut collection = Collection::create(folder.path().join("c"), "the one who knows")?;
    let table = Table {
        ids: (0..truth.len()).map(|at| at.to_string()).collect(),
        labels: vec![None; truth.len()],
        features: features.clone(),
    };
    collection.add(table, &AddOptions::default(), &Silent)?;
    let mut random = 1u64;
    let mut answered: BTreeSet<ItemId> = BTreeSet::new();
    let mut curve = vec![(0, right(&collection, truth)?)];
    while answered.len() < most.min(truth.len()) {
        let before = answered.len();
        let items: Vec<ItemId> = match asked {
            true => collection.ask(round)?.iter().map(asked_about).collect(),
            false => std::iter::from_fn(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                Some(ItemId(1 + ((random >> 33) % truth.len() as u64) as i64))
            })
            .filter(|item| answered.insert(*item))
            .take(round.min(truth.len() - before))
            .collect(),
        };
        for item in items {
            answered.insert(item);
            let name = collection.item(item)?.name;
            answer(&mut collection, item, truth_of(truth, &name))?;
        }
        if answered.len() == before {
            break;
        }
        collection.refresh(Level::AsFound, &Silent)?;
        curve.push((answered.len(), right(&collection, truth)?));
        let status = collection.status()?;
        println!(
            "{:5} answers: {:.1} % right, {} of {} in named groups, {} in {} others, {} wait",
            answered.len(),
            100.0 * curve[curve.len() - 1].1,
            status.in_named,
            status.items,
            status.in_new,
            status.new_groups,
            status.waiting
        );
    }
    Ok(curve)
}

/// The item that an answer is about: of a group that is to be named, the one that is most typical of it.
fn asked_about(question: &Question) -> ItemId {
    match question {
        Question::Name { typical, .. } => typical[0].id,
        Question::Place { item } => item.id,
    }
}

fn truth_of<'a>(truth: &[&'a str], name: &str) -> &'a str {
    truth[name.parse::<usize>().unwrap_or(0)]
}

/// Puts an item into the group of its class. When nothing is called that yet, the group that it is in is named by it.
fn answer(collection: &mut Collection, item: ItemId, name: &str) -> Result<(), genus_collection::Error> {
    if let Ok(to) = collection.find_group(name) {
        return collection.act(&Action::Move { items: vec![item], to }).map(drop);
    }
    if let ItemState::In { group, .. } = collection.item(item)?.state
        && !collection.group(group)?.named
    {
        let name = name.to_owned();
        collection.act(&Action::Name { group, name })?;
        return collection.act(&Action::Confirm { items: vec![item] }).map(drop);
    }
    let name = Some(name.to_owned());
    collection
        .act(&Action::MoveToNew {
            items: vec![item],
            name,
        })
        .map(drop)
}

/// The share of items that are in a group called what they are.
fn right(collection: &Collection, truth: &[&str]) -> Result<f64, genus_collection::Error> {
    let items = collection.items(Items::All, None, truth.len())?;
    let right = items.iter().filter(
        |item| matches!(&item.state, ItemState::In { group_name, .. } if group_name == truth_of(truth, &item.name)),
    );
    Ok(right.count() as f64 / truth.len() as f64)
}

/// Draws curves, one chart a file.
fn draw(out: &str, files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut charts = Vec::new();
    for file in files {
        let (title, file) = file.split_once('=').ok_or("a chart is TITLE=FILE")?;
        let found: Value = serde_json::from_slice(&std::fs::read(file)?)?;
        let curves: BTreeMap<String, Vec<(f64, f64)>> = serde_json::from_value(found["curves"].clone())?;
        charts.push(CurveChart {
            title: title.to_owned(),
            subtitle: format!(
                "{} items of {} classes, nothing known before",
                found["items"], found["classes"]
            ),
            x: "answers".to_owned(),
            y: "in a group of the right name, %".to_owned(),
            curves: curves
                .into_iter()
                .map(|(name, points)| Curve {
                    name,
                    points: points
                        .into_iter()
                        .map(|(answers, right)| CurvePoint {
                            x: answers,
                            mean: 100.0 * right,
                            half: 0.0,
                        })
                        .collect(),
                    paper: Vec::new(),
                    at: None,
                })
                .collect(),
            ..CurveChart::default()
        });
    }
    Ok(std::fs::write(out, CurveChart::stacked(&charts))?)
}
