//! A collection beside a naive twin in memory: random actions, undone and redone, end in the same state; sorting anew never
//! contradicts what was said; and the log alone adds up to the tables.

use std::collections::{BTreeMap, BTreeSet};

use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Collection, Error, GroupId, ItemId, ItemState, Items, Level, Refusal};
use proptest::prelude::*;

/// The naive state: every item knows its group, and merging goes through all of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Twin {
    items: BTreeMap<ItemId, Thing>,
    groups: BTreeMap<GroupId, (String, bool)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    place: Place,
    bound: bool,
    rejected: BTreeSet<GroupId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    In(GroupId, bool),
    Waiting(Option<GroupId>),
    Noise,
}

impl Twin {
    /// The state as a collection tells it, with what was rejected before.
    fn of(collection: &Collection, before: &Twin) -> Self {
        let mut twin = Twin::default();
        // What holds groups holds no items.
        for group in collection
            .groups()
            .unwrap()
            .into_iter()
            .filter(|group| !group.holds_groups)
        {
            twin.groups.insert(group.id, (group.name, group.named));
        }
        for item in collection.items(Items::All, None, usize::MAX >> 1).unwrap() {
            let (place, bound) = match item.state {
                ItemState::In {
                    group,
                    confirmed,
                    bound,
                    ..
                } => (Place::In(group, confirmed), bound),
                ItemState::Waiting { guess, .. } => (Place::Waiting(guess), false),
                ItemState::Noise => (Place::Noise, false),
            };
            let rejected = before
                .items
                .get(&item.id)
                .map_or_else(BTreeSet::new, |thing| thing.rejected.clone());
            let thing = Thing { place, bound, rejected };
            twin.items.insert(item.id, thing);
        }
        twin
    }

    /// The same without what a collection does not tell.
    fn told(&self) -> Self {
        let mut told = self.clone();
        told.items.values_mut().for_each(|thing| thing.rejected.clear());
        told
    }

    fn members(&self, group: GroupId) -> Vec<ItemId> {
        let items = self.items.iter();
        let own = items.filter(|(_, thing)| matches!(thing.place, Place::In(own, _) if own == group));
        own.map(|(&item, _)| item).collect()
    }

    fn move_item(&mut self, item: ItemId, to: GroupId) {
        let thing = self.items.get_mut(&item).unwrap();
        thing.bound &= matches!(thing.place, Place::In(own, _) if own == to);
        thing.place = Place::In(to, true);
        thing.rejected.remove(&to);
    }

    fn merge(&mut self, from: GroupId, into: GroupId) {
        self.groups.remove(&from);
        let moved = |group: GroupId| if group == from { into } else { group };
        for thing in self.items.values_mut() {
            thing.rejected = thing.rejected.iter().copied().map(moved).collect();
            match &mut thing.place {
                Place::In(group, said) => {
                    let touched = [from, into].contains(group);
                    *group = moved(*group);
                    let (group, said) = (*group, *said);
                    if !touched {
                        continue;
                    }
                    thing.bound = true;
                    if thing.rejected.contains(&group) && said {
                        thing.rejected.remove(&group);
                    } else if thing.rejected.contains(&group) {
                        thing.place = Place::Waiting(None);
                        thing.bound = false;
                    }
                }
                Place::Waiting(Some(guess)) => *guess = moved(*guess),
                _ => {}
            }
        }
    }
}

/// What is done; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Name(usize, u8),
    Merge(usize, usize),
    Split(usize, Vec<bool>),
    Move(Vec<usize>, usize),
    MoveToNew(Vec<usize>),
    Confirm(Vec<usize>),
    ConfirmGroup(usize),
    Reject(Vec<usize>),
    Noise(Vec<usize>),
    Add(u8),
    Refresh(Level),
    Undo,
    Redo,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::vec(any::<usize>(), 1..4);
    prop_oneof![
        2 => (any::<usize>(), any::<u8>()).prop_map(|(group, name)| Step::Name(group, name)),
        3 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Merge(a, b)),
        2 => (any::<usize>(), prop::collection::vec(any::<bool>(), 60)).prop_map(|(group, side)| Step::Split(group, side)),
        2 => (some(), any::<usize>()).prop_map(|(items, to)| Step::Move(items, to)),
        1 => some().prop_map(Step::MoveToNew),
        2 => some().prop_map(Step::Confirm),
        1 => any::<usize>().prop_map(Step::ConfirmGroup),
        3 => some().prop_map(Step::Reject),
        1 => some().prop_map(Step::Noise),
        1 => any::<u8>().prop_map(Step::Add),
        3 => prop_oneof![Just(Level::AsFound), Just(Level::Coarser), Just(Level::Finer)].prop_map(Step::Refresh),
        4 => Just(Step::Undo),
        3 => Just(Step::Redo),
    ]
}

/// Items of six kinds, of which the labelled ones are of the first two.
fn table(from: usize, count: usize, labelled: bool) -> Table {
    let row = |at: usize| -> Vec<f32> {
        let kind = if labelled { at % 2 } else { at % 6 };
        (0..8)
            .map(|column| {
                // Something like chance, but always the same.
                let noise = ((at * 37 + column * 101) % 97) as f32 / 97.0 - 0.5;
                0.35 * noise + f32::from(column == kind)
            })
            .collect()
    };
    Table {
        ids: (from..from + count)
            .map(|at| format!("{at}{}", if labelled { " shown" } else { "" }))
            .collect(),
        labels: (from..from + count)
            .map(|at| labelled.then(|| ["gull", "tern"][at % 2].to_owned()))
            .collect(),
        features: Features::from_rows((from..from + count).map(row)).unwrap(),
    }
}

struct Pair {
    collection: Collection,
    twin: Twin,
    /// States before what can be undone, and after what can be redone.
    done: Vec<(Twin, Twin)>,
    undone: Vec<(Twin, Twin)>,
    next_group: i64,
    next_name: i64,
}

impl Pair {
    fn new(folder: &std::path::Path) -> Self {
        let mut collection = Collection::create(folder, "somebody").unwrap();
        let labelled = AddOptions {
            labelled: true,
            ..AddOptions::default()
        };
        let mut pair_done = Vec::new();
        let empty = Twin::default();
        collection.add(table(0, 6, true), &labelled, &Silent).unwrap();
        let shown = Twin::of(&collection, &empty);
        pair_done.push((empty, shown.clone()));
        let from = collection.last_entry().unwrap();
        let mut pair = Self {
            collection,
            twin: shown.clone(),
            done: pair_done,
            undone: Vec::new(),
            next_group: 1,
            next_name: 1,
        };
        let pile = table(0, 42, false);
        pair.collection.add(pile, &AddOptions::default(), &Silent).unwrap();
        pair.adopt(shown, from);
        pair
    }

    fn adopt_numbers(&mut self) {
        for group in self.collection.groups().unwrap() {
            self.next_group = self.next_group.max(group.id.0 + 1);
        }
        for (id, (name, _)) in &self.twin.groups {
            self.next_group = self.next_group.max(id.0 + 1);
            if let Some(number) = name.strip_prefix("new-").and_then(|text| text.parse::<i64>().ok()) {
                self.next_name = self.next_name.max(number + 1);
            }
        }
    }

    fn new_group(&mut self) -> GroupId {
        let id = GroupId(self.next_group);
        self.twin.groups.insert(id, (format!("new-{}", self.next_name), false));
        self.next_group += 1;
        self.next_name += 1;
        id
    }

    fn group(&self, number: usize) -> Option<GroupId> {
        let groups: Vec<GroupId> = self.twin.groups.keys().copied().collect();
        (!groups.is_empty()).then(|| groups[number % groups.len()])
    }

    fn items(&self, numbers: &[usize]) -> Vec<ItemId> {
        let items: Vec<ItemId> = self.twin.items.keys().copied().collect();
        match items.is_empty() {
            true => Vec::new(),
            false => numbers.iter().map(|number| items[number % items.len()]).collect(),
        }
    }

    /// Does the same to both; `naive` does it to the twin and says whether it is allowed.
    fn act(&mut self, action: Action, naive: impl FnOnce(&mut Self) -> bool) {
        let before = self.twin.clone();
        let allowed = naive(self);
        match self.collection.act(&action) {
            Ok(entry) => {
                assert!(allowed, "{action:?} was done, and the twin refused");
                if entry.is_some() {
                    self.done.push((before, self.twin.clone()));
                    self.undone.clear();
                }
            }
            Err(error) => {
                assert!(!allowed, "{action:?}: {error}");
                assert!(matches!(error, Error::Refused(_)), "{error}");
                self.twin = before;
            }
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Name(group, name) => {
                let Some(group) = self.group(*group) else { return };
                let name = format!("species {}", name % 5);
                let taken = self.twin.groups.iter().any(|(&id, own)| own.0 == name && id != group);
                let action = Action::Name {
                    group,
                    name: name.clone(),
                };
                self.act(action, |pair| {
                    pair.twin.groups.insert(group, (name, true));
                    !taken
                });
            }
            Step::Merge(a, b) => {
                let (Some(a), Some(b)) = (self.group(*a), self.group(*b)) else {
                    return;
                };
                let action = Action::Merge {
                    groups: vec![a, b],
                    into: None,
                };
                self.act(action, |pair| {
                    let named = |id: GroupId| pair.twin.groups[&id].1;
                    match (a == b, named(a), named(b)) {
                        (true, ..) | (_, true, true) => return false,
                        (_, false, true) => pair.twin.merge(a, b),
                        _ => pair.twin.merge(b, a),
                    }
                    true
                });
            }
            Step::Split(group, side) => {
                let Some(group) = self.group(*group) else { return };
                let members = self.twin.members(group);
                let sides = side.iter().copied().cycle();
                let part: Vec<ItemId> = members
                    .iter()
                    .zip(sides)
                    .filter(|(_, side)| *side)
                    .map(|(&item, _)| item)
                    .collect();
                let action = Action::Split {
                    group,
                    parts: vec![part.clone()],
                };
                self.act(action, |pair| {
                    if part.is_empty() || part.len() == members.len() {
                        return false;
                    }
                    let to = pair.new_group();
                    for item in &members {
                        let thing = pair.twin.items.get_mut(item).unwrap();
                        thing.bound = true;
                        if let (Place::In(_, said), true) = (thing.place, part.contains(item)) {
                            thing.place = Place::In(to, said);
                        }
                    }
                    true
                });
            }
            Step::Move(items, to) => {
                let (items, Some(to)) = (self.items(items), self.group(*to)) else {
                    return;
                };
                let action = Action::Move {
                    items: items.clone(),
                    to,
                };
                self.act(action, |pair| {
                    items.iter().for_each(|&item| pair.twin.move_item(item, to));
                    true
                });
            }
            Step::MoveToNew(items) => {
                let items = self.items(items);
                let action = Action::MoveToNew {
                    items: items.clone(),
                    name: None,
                };
                self.act(action, |pair| {
                    let to = pair.new_group();
                    items.iter().for_each(|&item| pair.twin.move_item(item, to));
                    true
                });
            }
            Step::Confirm(items) => {
                let items = self.items(items);
                let action = Action::Confirm { items: items.clone() };
                self.act(action, |pair| {
                    items.iter().all(|item| match pair.twin.items[item].place {
                        Place::In(group, _) | Place::Waiting(Some(group)) => {
                            pair.twin.move_item(*item, group);
                            true
                        }
                        _ => false,
                    })
                });
            }
            Step::ConfirmGroup(group) => {
                let Some(group) = self.group(*group) else { return };
                self.act(Action::ConfirmGroup { group }, |pair| {
                    let members = pair.twin.members(group);
                    members.iter().for_each(|&item| pair.twin.move_item(item, group));
                    true
                });
            }
            Step::Reject(items) => {
                let items = self.items(items);
                let action = Action::Reject { items: items.clone() };
                self.act(action, |pair| {
                    items.iter().all(|item| {
                        let thing = pair.twin.items.get_mut(item).unwrap();
                        match thing.place {
                            Place::In(group, _) | Place::Waiting(Some(group)) => {
                                thing.rejected.insert(group);
                                thing.place = Place::Waiting(None);
                                thing.bound = false;
                                true
                            }
                            _ => false,
                        }
                    })
                });
            }
            Step::Noise(items) => {
                let items = self.items(items);
                let action = Action::Noise { items: items.clone() };
                self.act(action, |pair| {
                    for item in items {
                        let thing = pair.twin.items.get_mut(&item).unwrap();
                        thing.place = Place::Noise;
                        thing.bound = false;
                    }
                    true
                });
            }
            Step::Add(number) => {
                let more = table(42 + 3 * usize::from(number % 20), 3, false);
                let before = self.twin.clone();
                let from = self.collection.last_entry().unwrap();
                self.collection.add(more, &AddOptions::default(), &Silent).unwrap();
                self.law(&before);
                // The first of all are sorted at once, which is an entry of its own.
                self.adopt(before, from);
            }
            Step::Refresh(level) => {
                let before = self.twin.clone();
                let from = self.collection.last_entry().unwrap();
                match self.collection.refresh(*level, &Silent) {
                    Ok(_) => {}
                    Err(Error::Nothing) => return,
                    Err(error) => panic!("{error}"),
                }
                self.law(&before);
                self.adopt(before, from);
            }
            Step::Undo => match self.done.pop() {
                None => {
                    let nothing = self.collection.undo();
                    assert!(matches!(nothing, Err(Error::Refused(Refusal::NothingToUndo))));
                }
                Some((before, after)) => {
                    self.collection.undo().unwrap();
                    self.twin = before.clone();
                    self.undone.push((before, after));
                }
            },
            Step::Redo => match self.undone.pop() {
                None => {
                    let nothing = self.collection.redo();
                    assert!(matches!(nothing, Err(Error::Refused(Refusal::NothingToRedo))));
                }
                Some((before, after)) => {
                    self.collection.redo().unwrap();
                    self.twin = after.clone();
                    self.done.push((before, after));
                }
            },
        }
    }

    /// Takes over what sorting made of it. Of two entries at once the state in between is what undoing shows.
    fn adopt(&mut self, before: Twin, from: genus_collection::EntryId) {
        let entries = self.collection.last_entry().unwrap().0 - from.0;
        self.twin = Twin::of(&self.collection, &before);
        self.adopt_numbers();
        match entries {
            0 => {}
            1 => {
                self.done.push((before, self.twin.clone()));
                self.undone.clear();
            }
            _ => {
                self.collection.undo().unwrap();
                let between = Twin::of(&self.collection, &before);
                self.collection.redo().unwrap();
                self.done.push((before, between.clone()));
                self.done.push((between, self.twin.clone()));
                self.undone.clear();
            }
        }
    }

    /// What a person said before holds.
    fn law(&self, before: &Twin) {
        let after = Twin::of(&self.collection, before);
        for (item, thing) in &before.items {
            let now = &after.items[item];
            match thing.place {
                Place::In(group, true) => assert_eq!(now.place, Place::In(group, true), "{item} was confirmed"),
                Place::In(group, false) if thing.bound => {
                    assert_eq!(now.place, Place::In(group, false), "{item} was bound");
                    assert!(now.bound, "{item} was bound");
                }
                Place::Noise => assert_eq!(now.place, Place::Noise, "{item} was noise"),
                _ => {}
            }
            if let Place::In(group, _) = now.place {
                assert!(!thing.rejected.contains(&group), "{item} was said not to be of {group}");
            }
        }
        for (group, (name, named)) in &before.groups {
            if *named {
                assert_eq!(after.groups.get(group), Some(&(name.clone(), true)), "a name is lost");
            } else if let Some(now) = after.groups.get(group) {
                assert_eq!(now, &(name.clone(), false));
            }
        }
    }

    fn compare(&self, step: &Step) {
        let told = Twin::of(&self.collection, &Twin::default());
        assert_eq!(told, self.twin.told(), "after {step:?}");
        let groups = self.collection.groups().unwrap();
        for group in &groups {
            if let Some(parent) = group.parent {
                let parent = groups
                    .iter()
                    .find(|other| other.id == parent)
                    .expect("a parent that is there");
                assert!(parent.holds_groups && !group.holds_groups);
            }
        }
        for group in groups.iter().filter(|group| !group.holds_groups) {
            let members = self.twin.members(group.id);
            assert_eq!(group.items, members.len() as u64);
            let said = members
                .iter()
                .filter(|item| matches!(self.twin.items[item].place, Place::In(_, true)));
            assert_eq!(group.confirmed, said.count() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_collection_is_what_its_twin_is(steps in prop::collection::vec(step(), 1..24)) {
        let folder = tempfile::tempdir().unwrap();
        let mut pair = Pair::new(&folder.path().join("c"));
        for step in &steps {
            pair.run(step);
            pair.compare(step);
        }
        let checked = pair.collection.check().unwrap();
        prop_assert!(checked.is_sound(), "{:?}", checked.problems);
    }
}

/// `GENUS_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("GENUS_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(24)
}
