//! Streams: items one by one, against the batch, the plainest running means and each other.

mod common;

use std::sync::Arc;

use common::{Rng, for_all, recipes};
use genus_core::methods::Calibrated;
use genus_core::{
    Assignment, Calibration, CalibrationSettings, Centre, Discover, FeatureError, Features, Kind, Knowledge,
    Observation, Stream, StreamPlace, Support, Task, TaskError, Taxonomy, TaxonomyError,
};
use proptest::prelude::*;

const DIM: usize = 24;
const KNOWN: usize = 3;

/// Classes around random centres, this far spread.
struct World {
    centres: Vec<Vec<f64>>,
    spread: f64,
    rng: Rng,
}

impl World {
    fn new(classes: usize, spread: f64, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        // The first ten are as far from each other as can be.
        let mut centre = |class: usize, axis: usize| match class {
            0..10 if class == axis => (DIM as f64).sqrt(),
            0..10 => 0.0,
            _ => rng.normal(),
        };
        let centres = (0..classes).map(|class| (0..DIM).map(|axis| centre(class, axis)).collect());
        Self {
            centres: centres.collect(),
            spread,
            rng: Rng::new(seed + 1),
        }
    }

    fn item(&mut self, class: usize) -> Vec<f32> {
        let (spread, rng) = (self.spread, &mut self.rng);
        let row = self.centres[class].iter().map(|v| (v + spread * rng.normal()) as f32);
        row.collect()
    }

    /// Ten items of every one of the classes from the tenth on, which base classes are.
    fn calibration(&mut self, centre: Centre, directions: usize) -> Arc<Calibration> {
        let labels: Vec<usize> = (10..self.centres.len()).flat_map(|class| [class; 10]).collect();
        let rows: Vec<Vec<f32>> = labels.iter().map(|&class| self.item(class)).collect();
        let settings = CalibrationSettings {
            centre,
            directions,
            ..CalibrationSettings::default()
        };
        Arc::new(Calibration::fit(&Features::from_rows(rows).unwrap(), &labels, settings).unwrap())
    }

    /// Five examples of each known class, the first ones, beside some queries.
    fn task(&mut self, queries: &[Vec<f32>]) -> Task {
        let labels: Vec<usize> = (0..KNOWN).flat_map(|class| [class; 5]).collect();
        let rows: Vec<Vec<f32>> = labels.iter().map(|&class| self.item(class)).collect();
        let names: Vec<String> = labels.iter().map(|class| format!("class {class}")).collect();
        let support = Support::new(Features::from_rows(rows).unwrap(), &names).unwrap();
        Task::new(&support, Features::from_rows(queries).unwrap()).unwrap()
    }

    /// So many items of the first classes in random order, with their classes.
    fn pile(&mut self, classes: usize, items: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
        let truth: Vec<usize> = (0..items).map(|_| self.rng.below(classes)).collect();
        (truth.iter().map(|&class| self.item(class)).collect(), truth)
    }
}

/// A stream from examples of three classes, the items of three known and three new classes, and their classes.
fn scene(spread: f64, items: usize, seed: u64) -> (Stream, Vec<Vec<f32>>, Vec<usize>, Task, Knowledge) {
    let mut world = World::new(30, spread, seed);
    let knowledge = Knowledge::Calibration(world.calibration(Centre::Base, 4));
    let (pile, truth) = world.pile(6, items);
    let task = world.task(&pile);
    let stream = Stream::of_examples(&task, &knowledge).unwrap();
    (stream, pile, truth, task, knowledge)
}

/// Where every item was last said to be: its category, or none while it waits.
#[derive(Debug, Default, PartialEq)]
struct Places(Vec<Option<usize>>);

impl Places {
    fn note(&mut self, observation: &Observation) {
        assert_eq!(observation.number, self.0.len() as u64);
        self.0.push(match observation.place {
            StreamPlace::Joined(found) => Some(found.category),
            StreamPlace::Waiting(_) => None,
        });
        self.settle(&observation.settled);
    }

    fn settle(&mut self, settled: &[(u64, Assignment)]) {
        for &(number, found) in settled {
            let place = &mut self.0[number as usize];
            assert_eq!(*place, None, "item {number} is settled twice");
            *place = Some(found.category);
        }
    }
}

fn is_likely(found: &Assignment) -> bool {
    !found.score.unsure && found.score.probability.is_some_and(|p| (0.0..=1.0).contains(&p))
}

/// The same division, whatever the names.
fn same_partition(a: &[usize], b: &[usize]) -> bool {
    (0..a.len()).all(|i| (0..i).all(|j| (a[i] == a[j]) == (b[i] == b[j])))
}

#[test]
fn clear_classes_end_as_in_the_batch() {
    for seed in 0..5 {
        let (mut stream, pile, truth, task, knowledge) = scene(0.25, 120, seed);
        let mut places = Places::default();
        for item in &pile {
            places.note(&stream.observe(item).unwrap());
        }
        places.settle(&stream.review());
        assert!(stream.waiting().is_empty());
        let discovery = Calibrated { knowledge, refine: 5 }.discover(&task).unwrap();
        let found: Vec<usize> = places.0.into_iter().flatten().collect();
        assert!(same_partition(&found, discovery.query_clusters()), "seed {seed}");
        assert!(same_partition(&found, &truth), "seed {seed}");
        // Known classes have the numbers of their own.
        let known = found.iter().zip(&truth).filter(|(_, class)| **class < KNOWN);
        known.for_each(|(found, class)| assert_eq!(found, class));
        let taxonomy = stream.taxonomy();
        let batch = Taxonomy::from_discovery(task.classes(), &discovery);
        assert_eq!(taxonomy.entries().len(), batch.entries().len());
        let items = |taxonomy: &Taxonomy| {
            let mut items: Vec<u64> = taxonomy.entries().iter().map(|entry| entry.items).collect();
            items.sort_unstable();
            items
        };
        assert_eq!(items(&taxonomy), items(&batch));
        // What the stream grew judges items as any taxonomy does.
        let again = taxonomy.assign(&Features::from_rows(&pile).unwrap()).unwrap();
        assert!(
            again
                .iter()
                .zip(&found)
                .all(|(a, &found)| a.category == found && is_likely(a))
        );
    }
}

#[test]
fn what_is_new_waits_until_enough_agree() {
    let mut world = World::new(30, 0.25, 9);
    let knowledge = Knowledge::Calibration(world.calibration(Centre::Base, 4));
    let known = world.item(0);
    let task = world.task(std::slice::from_ref(&known));
    let mut stream = Stream::of_examples(&task, &knowledge).unwrap();
    let joined = stream.observe(&known).unwrap();
    assert!(matches!(joined.place, StreamPlace::Joined(found) if found.category == 0 && is_likely(&found)));
    for number in 1..3 {
        let waiting = stream.observe(&world.item(5)).unwrap();
        assert_eq!(waiting.number, number);
        assert!(matches!(waiting.place, StreamPlace::Waiting(guess) if guess.score.unsure && guess.category < KNOWN));
        assert!(waiting.settled.is_empty() && stream.review().is_empty());
    }
    for _ in 3..7 {
        stream.observe(&world.item(5)).unwrap();
    }
    let settled = stream.review();
    assert_eq!(settled.iter().map(|s| s.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(
        settled
            .iter()
            .all(|(_, found)| found.category == KNOWN && is_likely(found))
    );
    assert_eq!(stream.entries()[KNOWN].name, "new-1");
    assert_eq!(stream.entries()[KNOWN].items, 6);
    assert!(stream.waiting().is_empty() && stream.review().is_empty());
    // The next one joins at once.
    let next = stream.observe(&world.item(5)).unwrap();
    assert!(matches!(next.place, StreamPlace::Joined(found) if found.category == KNOWN));
}

#[test]
fn an_item_that_completes_a_group_joins_it_with_the_others() {
    let mut world = World::new(30, 0.2, 10);
    let knowledge = Knowledge::Calibration(world.calibration(Centre::Base, 4));
    let items: Vec<Vec<f32>> = (0..8).map(|_| world.item(7)).collect();
    let mut stream = Stream::of_examples(&world.task(&items), &knowledge).unwrap();
    let observations: Vec<Observation> = items.iter().map(|item| stream.observe(item).unwrap()).collect();
    assert!(
        observations[..7]
            .iter()
            .all(|o| matches!(o.place, StreamPlace::Waiting(_)))
    );
    let last = &observations[7];
    assert!(matches!(last.place, StreamPlace::Joined(found) if found.category == KNOWN));
    assert_eq!(
        last.settled.iter().map(|s| s.0).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5, 6]
    );
}

/// Every item is joined, settled, given up or waiting, once; what a category counts is what joined it; nothing is renamed.
fn account_for(mut stream: Stream, items: &[Vec<f32>], room: usize) -> Result<(), TestCaseError> {
    let mut places = Places::default();
    let mut given_up = Vec::new();
    let before: Vec<u64> = stream.entries().iter().map(|entry| entry.items).collect();
    for item in items {
        let names: Vec<(String, Kind, u64)> = of_entries(&stream);
        let observation = stream.observe(item).unwrap();
        places.note(&observation);
        if let Some((number, guess)) = observation.given_up {
            prop_assert!(guess.score.unsure && guess.category < stream.entries().len());
            given_up.push(number);
        }
        prop_assert!(stream.waiting().len() <= room);
        let now = of_entries(&stream);
        for (then, now) in names.iter().zip(&now) {
            prop_assert_eq!((&then.0, then.1), (&now.0, now.1));
            prop_assert!(then.2 <= now.2);
        }
        prop_assert!(
            now[names.len()..]
                .iter()
                .all(|entry| entry.1 == Kind::Novel && entry.2 >= 3)
        );
    }
    places.settle(&stream.review());
    let waiting: Vec<u64> = stream.waiting().iter().map(|(number, _)| *number).collect();
    prop_assert!(waiting.is_sorted() && given_up.is_sorted());
    let mut unplaced: Vec<u64> = given_up.into_iter().chain(waiting).collect();
    unplaced.sort_unstable();
    let expected = (0..items.len() as u64).filter(|&number| places.0[number as usize].is_none());
    prop_assert_eq!(unplaced, expected.collect::<Vec<_>>());
    let mut counts = before;
    counts.resize(stream.entries().len(), 0);
    places.0.iter().flatten().for_each(|&category| counts[category] += 1);
    let found: Vec<u64> = stream.entries().iter().map(|entry| entry.items).collect();
    prop_assert_eq!(counts, found);
    let taxonomy = stream.taxonomy();
    let checked = Taxonomy::from_parts(taxonomy.entries().to_vec(), taxonomy.centres().clone()).unwrap();
    let checked = checked.with_calibration(taxonomy.calibration().unwrap().clone(), taxonomy.members());
    let checked = checked.and_then(|checked| checked.with_familiar(taxonomy.familiar().unwrap()));
    prop_assert_eq!(checked.unwrap(), taxonomy);
    Ok(())
}

fn of_entries(stream: &Stream) -> Vec<(String, Kind, u64)> {
    let entry = |e: &genus_core::TaxonomyEntry| (e.name.clone(), e.kind, e.items);
    stream.entries().iter().map(entry).collect()
}

#[test]
fn every_item_is_somewhere_once() {
    for_all(150, (recipes(), 1usize..30, 0usize..3), |(recipe, room, start)| {
        let data = recipe.data();
        let support = Support::new(Features::from_rows(&data.support).unwrap(), &data.labels).unwrap();
        let task = Task::new(&support, Features::from_rows(&data.queries).unwrap()).unwrap();
        let knowledge = [Knowledge::Examples, Knowledge::Prior][start % 2].clone();
        let stream = if start == 2 {
            let discovery = Calibrated { knowledge, refine: 5 }.discover(&task).unwrap();
            Stream::new(Taxonomy::from_discovery(task.classes(), &discovery)).unwrap()
        } else {
            Stream::of_examples(&task, &knowledge).unwrap()
        };
        let items: Vec<Vec<f32>> = data.queries.iter().cycle().take(120).cloned().collect();
        account_for(stream.with_room(room), &items, room)
    });
}

#[test]
fn items_of_as_many_classes_wait_and_the_oldest_leave() {
    let (_, _, _, _, knowledge) = scene(0.25, 1, 3);
    let mut world = World::new(400, 0.25, 3);
    let task = world.task(&[vec![1.0; DIM]]);
    let mut stream = Stream::of_examples(&task, &knowledge).unwrap().with_room(20);
    let mut left = Vec::new();
    for class in 30..400 {
        let item = world.item(class);
        left.extend(stream.observe(&item).unwrap().given_up.map(|(number, _)| number));
        assert!(stream.waiting().len() <= 20);
    }
    assert!(left.len() > 200 && left.is_sorted(), "{} left", left.len());
}

#[test]
fn new_names_go_on_and_are_never_taken_twice() {
    let mut world = World::new(30, 0.2, 12);
    let calibration = world.calibration(Centre::Base, 4);
    let pile: Vec<Vec<f32>> = (0..40).map(|_| world.item(5)).collect();
    let task = world.task(&pile);
    let grown = {
        let mut stream = Stream::of_examples(&task, &Knowledge::Calibration(calibration.clone())).unwrap();
        pile.iter().for_each(|item| drop(stream.observe(item).unwrap()));
        stream.review();
        stream.taxonomy()
    };
    let names = |taxonomy: &Taxonomy| -> Vec<String> { taxonomy.entries().iter().map(|e| e.name.clone()).collect() };
    assert_eq!(names(&grown), ["class 0", "class 1", "class 2", "new-1"]);
    // A known class may be called like a new group, and groups may be missing.
    let mut entries = grown.entries().to_vec();
    entries[1].name = "new-7".into();
    let renamed = Taxonomy::from_parts(entries, grown.centres().clone()).unwrap();
    let renamed = renamed.with_calibration(calibration, grown.members()).unwrap();
    let mut stream = Stream::new(renamed).unwrap();
    for _ in 0..20 {
        let item = world.item(6);
        stream.observe(&item).unwrap();
    }
    stream.review();
    assert_eq!(
        names(&stream.taxonomy()),
        ["class 0", "new-7", "class 2", "new-1", "new-8"]
    );
}

#[test]
fn centres_are_the_means_of_examples_and_members() {
    // Without a centre and directions the space is that of unit rows, and the plainest form of a mean is easy.
    let mut world = World::new(30, 0.5, 13);
    let calibration = world.calibration(Centre::None, 0);
    let (pile, _) = world.pile(6, 200);
    let task = world.task(&pile);
    let mut stream = Stream::of_examples(&task, &Knowledge::Calibration(calibration)).unwrap();
    let mut places = Places::default();
    for item in &pile {
        places.note(&stream.observe(item).unwrap());
    }
    places.settle(&stream.review());
    let taxonomy = stream.taxonomy();
    assert!(taxonomy.entries().len() > KNOWN);
    let unit = |row: &[f32]| -> Vec<f64> {
        let row: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
        let length = common::length(&row);
        row.iter().map(|v| v / length).collect()
    };
    for category in 0..taxonomy.entries().len() {
        let examples = task.support().iter().zip(task.support_labels());
        let examples = examples.filter(|(_, class)| **class == category).map(|(row, _)| row);
        let items = pile
            .iter()
            .zip(&places.0)
            .filter(|(_, place)| **place == Some(category));
        let rows: Vec<Vec<f64>> = examples.chain(items.map(|(row, _)| &**row)).map(unit).collect();
        let mean: Vec<f64> = (0..DIM)
            .map(|d| rows.iter().map(|row| row[d]).sum::<f64>() / rows.len() as f64)
            .collect();
        let (members, length) = taxonomy.members()[category];
        assert_eq!(members, rows.len() as f64);
        assert!((length - common::length(&mean)).abs() < 1e-5, "{category}: {length}");
        for (found, expected) in taxonomy.centres().row(category).iter().zip(&mean) {
            assert!((f64::from(*found) - expected / length).abs() < 1e-5, "{category}");
        }
    }
}

/// All that can be seen of a stream.
fn state(stream: &Stream) -> (Taxonomy, Vec<(u64, Assignment)>, u64) {
    (stream.taxonomy(), stream.waiting(), stream.familiar().to_bits())
}

#[test]
fn items_that_cannot_be_used_change_nothing() {
    let (mut stream, pile, ..) = scene(0.5, 40, 14);
    pile.iter().for_each(|item| drop(stream.observe(item).unwrap()));
    let before = state(&stream);
    let mut broken = pile[0].clone();
    broken[3] = f32::NAN;
    assert!(matches!(
        stream.observe(&broken),
        Err(TaskError::Queries(FeatureError::NotFinite { row: 0, column: 3, .. }))
    ));
    assert_eq!(
        stream.observe(&[0.0; DIM]),
        Err(TaskError::Queries(FeatureError::ZeroRow { row: 0 }))
    );
    let narrow = TaskError::Dimensions {
        support: DIM,
        queries: 2,
    };
    assert_eq!(stream.observe(&[1.0, 2.0]), Err(narrow.clone()));
    assert_eq!(state(&stream), before);
    assert_eq!(stream.observe(&pile[0]).unwrap().number, 40);
    let waiting = Features::from_rows([[1.0, 2.0]]).unwrap();
    assert_eq!(stream.clone().with_waiting(&waiting).unwrap_err(), narrow);
    let waiting = Features::new(DIM, [vec![1.0; DIM], vec![0.0; DIM]].concat()).unwrap();
    assert_eq!(
        stream.with_waiting(&waiting).unwrap_err(),
        TaskError::Queries(FeatureError::ZeroRow { row: 1 })
    );
}

#[test]
fn a_taxonomy_without_a_calibration_cannot_grow() {
    let (stream, ..) = scene(0.25, 1, 15);
    let taxonomy = stream.taxonomy();
    let plain = Taxonomy::from_parts(taxonomy.entries().to_vec(), taxonomy.centres().clone()).unwrap();
    let error = Stream::new(plain).unwrap_err();
    assert_eq!(error, TaxonomyError::NoCalibration);
    assert!(error.to_string().contains("`calibrated`"), "{error}");
}

#[test]
fn a_stream_goes_on_where_it_was_saved() {
    let mut waited = 0;
    for (seed, pause) in [(1, 3), (2, 50), (3, 97), (4, 150)] {
        let (mut whole, pile, ..) = scene(1.5, 250, seed);
        pile[..pause].iter().for_each(|item| drop(whole.observe(item).unwrap()));
        whole.review();
        let waiting: Vec<u64> = whole.waiting().iter().map(|(number, _)| *number).collect();
        let rows: Vec<f32> = waiting
            .iter()
            .flat_map(|&number| &pile[number as usize])
            .copied()
            .collect();
        let mut second = Stream::new(whole.taxonomy())
            .unwrap()
            .with_waiting(&Features::new(DIM, rows).unwrap())
            .unwrap()
            .with_familiar(whole.familiar());
        let number = |number: u64| match waiting.get(number as usize) {
            Some(&first) => first,
            None => number - waiting.len() as u64 + pause as u64,
        };
        let renumber = |found: (u64, Assignment)| (number(found.0), found.1);
        for item in &pile[pause..] {
            let found = second.observe(item).unwrap();
            let renumbered = Observation {
                number: number(found.number),
                place: found.place,
                settled: found.settled.into_iter().map(renumber).collect(),
                given_up: found.given_up.map(renumber),
            };
            assert_eq!(whole.observe(item).unwrap(), renumbered);
        }
        assert_eq!(whole.taxonomy(), second.taxonomy());
        waited += waiting.len();
    }
    assert!(waited > 10, "only {waited} waited");
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut stream, pile, ..) = scene(0.8, 300, 16);
            let observed: Vec<Observation> = pile.iter().map(|item| stream.observe(item).unwrap()).collect();
            (observed, state(&stream))
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn where_most_is_new_an_item_must_suit_better() {
    let (stream, pile, ..) = scene(0.9, 60, 17);
    let probability = |share: f64, item: &Vec<f32>| {
        let place = stream.clone().with_familiar(share).observe(item).unwrap().place;
        let (StreamPlace::Joined(found) | StreamPlace::Waiting(found)) = place;
        (found.category, found.score.probability.unwrap())
    };
    for item in &pile {
        let [rare, even, usual] = [0.1, 0.5, 0.9].map(|share| probability(share, item));
        assert!(rare.0 == even.0 && even.0 == usual.0);
        assert!(rare.1 <= even.1 && even.1 <= usual.1);
    }
    // It follows what comes.
    let (mut stream, pile, truth, ..) = scene(0.25, 200, 18);
    assert_eq!(stream.familiar(), 0.5);
    let known = |(item, _): (&'_ Vec<f32>, &usize)| item.clone();
    let (old, new): (Vec<_>, Vec<_>) = pile.iter().zip(&truth).partition(|(_, class)| **class < KNOWN);
    for item in old.into_iter().map(known) {
        stream.observe(&item).unwrap();
    }
    assert!(stream.familiar() > 0.9, "{}", stream.familiar());
    for item in new.into_iter().map(known).take(7) {
        stream.observe(&item).unwrap();
    }
    assert!(stream.familiar() < 0.8, "{}", stream.familiar());
    assert_eq!(stream.with_familiar(7.0).familiar(), 0.95);
}

#[test]
fn a_stream_of_its_parts_goes_on_to_the_same_bits() {
    let mut world = World::new(6, 0.8, 11);
    let labels: Vec<String> = (0..KNOWN)
        .flat_map(|class| [format!("class {class}"), format!("class {class}")])
        .collect();
    let examples: Vec<Vec<f32>> = (0..KNOWN)
        .flat_map(|class| [class, class])
        .map(|class| world.item(class))
        .collect();
    let support = Support::new(Features::from_rows(&examples).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(&examples[..1]).unwrap()).unwrap();
    let mut whole = Stream::of_examples(&task, &Knowledge::Examples).unwrap();
    let mut parted = whole.clone();
    let mut waited = false;
    for at in 0..150 {
        let item = world.item(at * 7 % 6);
        waited |= !parted.waiting().is_empty();
        parted = Stream::from_parts(parted.to_parts()).unwrap();
        if at % 10 == 9 {
            assert_eq!(whole.show(&item, at % KNOWN), parted.show(&item, at % KNOWN));
        } else {
            assert_eq!(whole.observe(&item), parted.observe(&item));
        }
        assert_eq!(whole.to_parts(), parted.to_parts());
    }
    assert!(
        waited && whole.entries().len() > KNOWN,
        "something waited and something new was found"
    );
    let mut parts = whole.to_parts();
    parts.waiting.push((0, vec![1.0]));
    assert!(matches!(
        Stream::from_parts(parts),
        Err(TaxonomyError::CalibrationWidth { .. })
    ));
}

#[test]
fn what_is_shown_joins_and_moves_the_centre() {
    let mut world = World::new(4, 0.5, 3);
    let labels = ["a", "a", "b", "b"];
    let examples: Vec<Vec<f32>> = [0, 0, 1, 1].map(|class| world.item(class)).to_vec();
    let support = Support::new(Features::from_rows(&examples).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(&examples[..1]).unwrap()).unwrap();
    let mut stream = Stream::of_examples(&task, &Knowledge::Examples).unwrap();
    let strange = world.item(3);
    let before = stream
        .taxonomy()
        .similarities(&Features::from_rows([&strange]).unwrap())
        .unwrap()[1];
    let shown = stream.show(&strange, 1).unwrap();
    assert!(
        matches!(shown.place, StreamPlace::Joined(found) if found.category == 1 && found.score.probability == Some(1.0))
    );
    assert_eq!((shown.number, stream.entries()[1].items), (0, 1));
    let after = stream
        .taxonomy()
        .similarities(&Features::from_rows([&strange]).unwrap())
        .unwrap()[1];
    assert!(after > before, "{before} {after}");
    assert_eq!(
        stream.show(&[0.0; DIM], 1),
        Err(TaskError::Queries(FeatureError::ZeroRow { row: 0 }))
    );
    assert_eq!(stream.observe(&strange).unwrap().number, 1);
}
