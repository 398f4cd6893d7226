//! How many answers it takes: a person who knows the truth answers what [`Collection::ask`] asks, and the same number of items
//! chosen at random, and after every round everything is sorted anew.
//!
//! `cargo run --release --example ask -- FEATURES.npz [ITEMS_A_CLASS] [CLASSES] [ROUNDS] [QUESTIONS]`

use std::collections::HashMap;
use std::error::Error;

use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Collection, ItemId, ItemState, Items, Level, Question};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let path = arguments.first().ok_or("name a file of labelled features")?;
    let (each, classes, rounds, questions) = (number(1, 25), number(2, 50), number(3, 10), number(4, 20));
    let file = genus_data::read_table(path)?.table;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut chosen = Vec::new();
    for (row, label) in file.labels.iter().enumerate() {
        let Some(label) = label else { continue };
        let known = seen.len();
        let count = match seen.get_mut(label.as_str()) {
            Some(count) => count,
            None if known < classes => seen.entry(label).or_default(),
            None => continue,
        };
        if *count < each {
            *count += 1;
            chosen.push(row);
        }
    }
    let features: Features = file.features.select(&chosen);
    let truth: Vec<&str> = chosen.iter().filter_map(|&row| file.labels[row].as_deref()).collect();
    println!("| answers | asked | at random |\n|---:|---:|---:|");
    let mut curves = Vec::new();
    for asked in [true, false] {
        curves.push(simulate(&features, &truth, rounds, questions, asked)?);
    }
    for (a, b) in curves[0].iter().zip(&curves[1]) {
        println!("| {} | {:.1} % | {:.1} % |", a.0, 100.0 * a.1, 100.0 * b.1);
    }
    Ok(())
}

/// How many answers were given, and the share of all items that are in a group of the right name, after every round.
fn simulate(
    features: &Features,
    truth: &[&str],
    rounds: usize,
    questions: usize,
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
    let truth_of = |name: &str| truth[name.parse::<usize>().unwrap_or(0)];
    let mut random = 1u64;
    let mut answers = 0;
    let mut curve = vec![(0, right(&collection, truth)?)];
    for _ in 0..rounds {
        if asked {
            for question in collection.ask(questions)? {
                answers += 1;
                match question {
                    Question::Name { group, typical } => {
                        let name = truth_of(&typical[0].name);
                        // A group whose typical items are of one kind has its name; of another only what is seen is said.
                        if typical.iter().any(|item| truth_of(&item.name) != name) {
                            place(&mut collection, typical[0].id, name)?;
                            continue;
                        }
                        let items = typical.iter().map(|item| item.id).collect();
                        let action = match collection.find_group(name) {
                            Ok(to) => Action::Move { items, to },
                            Err(_) => {
                                let (group, name) = (group.id, name.to_owned());
                                collection.act(&Action::Name { group, name })?;
                                Action::Confirm { items }
                            }
                        };
                        collection.act(&action)?;
                    }
                    Question::Place { item } => place(&mut collection, item.id, truth_of(&item.name))?,
                }
            }
        } else {
            for _ in 0..questions {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let item = ItemId(1 + ((random >> 33) % truth.len() as u64) as i64);
                answers += 1;
                let name = collection.item(item)?.name;
                place(&mut collection, item, truth_of(&name))?;
            }
        }
        collection.refresh(Level::AsFound, &Silent)?;
        curve.push((answers, right(&collection, truth)?));
    }
    Ok(curve)
}

/// Puts an item into the group of its class. When nothing is called that yet, the group that it is in is named by it.
fn place(collection: &mut Collection, item: ItemId, name: &str) -> Result<(), genus_collection::Error> {
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
    let right = items.iter().filter(|item| {
        let own = truth[item.name.parse::<usize>().unwrap_or(0)];
        matches!(&item.state, ItemState::In { group_name, .. } if group_name == own)
    });
    Ok(right.count() as f64 / truth.len() as f64)
}
