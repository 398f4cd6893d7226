//! What comes of answers: a few of them decide about many items.

use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Collection, ItemId, ItemState, Items, Level, Question};

/// Numbers around nothing that look random.
fn noise(state: &mut u64) -> f32 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Items of six kinds, two and two of which are much alike; every one is called by its kind and a number.
fn birds() -> Table {
    let mut state = 5;
    let row = |at: usize| {
        let kind = at % 6;
        let mut row = [0.0f32; 24];
        row.iter_mut().for_each(|value| *value = 0.22 * noise(&mut state));
        row[kind / 2] += 1.0;
        row[3 + kind] += 0.55;
        row
    };
    Table {
        ids: (0..180).map(|at| format!("{}-{at}", at % 6)).collect(),
        labels: vec![None; 180],
        features: Features::from_rows((0..180).map(row)).unwrap(),
    }
}

fn kind(name: &str) -> &str {
    name.split('-').next().unwrap()
}

/// Puts an item where it belongs.
fn answer(collection: &mut Collection, item: ItemId) {
    let name = kind(&collection.item(item).unwrap().name).to_owned();
    let items = vec![item];
    let action = match collection.find_group(&name) {
        Ok(to) => Action::Move { items, to },
        Err(_) => Action::MoveToNew {
            items,
            name: Some(name),
        },
    };
    collection.act(&action).unwrap();
}

/// How many are in a group of their kind.
fn right(collection: &Collection) -> usize {
    let items = collection.items(Items::All, None, 1000).unwrap();
    let is_right =
        |state: &ItemState, name: &str| matches!(state, ItemState::In { group_name, .. } if group_name == kind(name));
    items.iter().filter(|item| is_right(&item.state, &item.name)).count()
}

#[test]
fn two_examples_of_every_kind_part_what_was_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut collection = Collection::create(folder.path().join("c"), "ann").unwrap();
    collection.add(birds(), &AddOptions::default(), &Silent).unwrap();
    (1..=12).for_each(|item| answer(&mut collection, ItemId(item)));
    assert_eq!(right(&collection), 12);
    collection.refresh(Level::AsFound, &Silent).unwrap();
    assert!(right(&collection) > 150, "{} of 180 are right", right(&collection));
    // Whoever answered is not contradicted, and all of it can be undone.
    for item in (1..=12).map(ItemId) {
        assert!(matches!(
            collection.item(item).unwrap().state,
            ItemState::In { confirmed: true, .. }
        ));
    }
    collection.undo().unwrap();
    assert_eq!(right(&collection), 12);
    assert!(collection.check().unwrap().is_sound());
}

#[test]
fn nothing_is_asked_twice_and_everything_is_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut collection = Collection::create(folder.path().join("c"), "ann").unwrap();
    collection.add(birds(), &AddOptions::default(), &Silent).unwrap();
    let mut asked = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let questions = collection.ask(10).unwrap();
        let mut this_round = std::collections::BTreeSet::new();
        for question in &questions {
            let item = match question {
                Question::Name { typical, .. } => typical[0].id,
                Question::Place { item } => item.id,
            };
            assert!(this_round.insert(item), "#{item} is asked about twice");
            if matches!(question, Question::Place { .. }) {
                assert!(!asked.contains(&item), "#{item} was answered");
            }
            answer(&mut collection, item);
        }
        asked.extend(this_round);
        collection.refresh(Level::AsFound, &Silent).unwrap();
    }
    assert!(right(&collection) >= 170, "{} of 180 are right", right(&collection));
}
