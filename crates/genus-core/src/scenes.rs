//! Which items show one scene: copies, crops, the frames of a burst. They say no more of a category than one of them.

use std::collections::HashMap;
use std::ops::Range;

use crate::cluster::neighbours::{NearRow, nearest, order};
use crate::discovery::canonical;
use crate::features::{Features, norm, scale_to_unit};
use crate::task::Task;

/// The most different items of a scene; copies do not count.
const MOST: usize = 32;
/// So many items beyond a scene say what is usual around it.
const BEYOND: usize = 16;
/// The width of a scene, at most, as a share of the way from it to the nearest other item.
const WIDEST: f64 = 0.75;
/// How improbable a set of items must be before it is a scene where every other item is of one, as a logarithm. It would be
/// less if items spread as evenly as the reckoning takes for granted.
const SURPRISE: f64 = 8.3;
/// The most and the least that is asked for where scenes are rare or everywhere.
const RARE: f64 = 13.0;
const EVERYWHERE: f64 = 5.0;

/// A division of items into scenes.
///
/// ```
/// use genus_core::{Features, rng::Rng, scenes};
///
/// // Sixty things, and two of them once more: a copy, and another frame of the same.
/// let mut rng = Rng::new(7, &[]);
/// let mut items: Vec<Vec<f64>> = (0..60).map(|_| (0..8).map(|_| rng.unit()).collect()).collect();
/// items.push(items[7].clone());
/// items.push(items[9].iter().map(|value| value + 0.001).collect());
/// let items = items.iter().map(|item| item.iter().map(|&value| value as f32).collect::<Vec<_>>());
///
/// let found = scenes(&Features::from_rows(items)?);
/// assert_eq!(found.len(), 60);
/// assert_eq!(found.members(7), [7, 60]);
/// assert_eq!(found.members(9), [9, 61]);
/// # Ok::<(), genus_core::FeatureError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenes {
    /// The scene of every item.
    of: Vec<usize>,
    /// The items, scene after scene.
    items: Vec<usize>,
    /// Where the items of every scene begin, and where the last end.
    begin: Vec<usize>,
}

/// Finds the scenes of items by their features alone.
///
/// A scene is a set of at most 32 items, not counting copies, in which any two are at most three quarters as far apart as
/// any of them is from any other item, and which is too narrow for chance: where items lie in few directions, as the next
/// sixteen around the set tell, some are near each other for no reason. What is too much of a chance depends on how many
/// items are of a scene beyond doubt: where bursts are the habit, two items that are near each other are likelier one. The
/// largest such sets count.
///
/// Nothing in that is absolute, so it holds for any features. As the widest distance within is compared with the narrowest way
/// out, no chain of items leads through a dense class, and the order of the items does not matter.
///
/// Equal items are one scene however many they are. Where there would be no more than sixteen scenes nothing else is: these may
/// as well be clear classes.
pub fn scenes(items: &Features) -> Scenes {
    let copies = copies(items);
    let distinct = items.select(
        &(0..copies.len())
            .map(|scene| copies.representative(scene))
            .collect::<Vec<_>>(),
    );
    let found = Scenes::of_neighbours(&nearest(distinct.values(), distinct.dim(), Scenes::NEIGHBOURS));
    Scenes::from_numbers(&copies.spread(&found.of))
}

impl Scenes {
    /// How many neighbours of every item [`of_neighbours`](Self::of_neighbours) wants to see: a scene, and some more.
    pub(crate) const NEIGHBOURS: usize = MOST - 1 + BEYOND;

    /// The same as [`scenes`] from the nearest neighbours of every item, the nearest first, with squared distances.
    ///
    /// Where an item has more copies than neighbours were looked for, nothing but the copies is in its scene.
    pub(crate) fn of_neighbours(nearest: &[Vec<NearRow>]) -> Self {
        let equal = DisjointSets::of_equal(nearest).into_scenes();
        let without_copies: Vec<Vec<NearRow>>;
        let near = if equal.len() == nearest.len() {
            nearest
        } else {
            without_copies = between(&equal, nearest);
            &without_copies
        };
        Self::from_numbers(&equal.spread(&narrow_sets(near)))
    }

    /// The division in which items of one number are one scene; scenes are numbered by their first items.
    pub fn from_numbers(numbers: &[usize]) -> Self {
        let (of, count) = canonical(numbers);
        let mut begin = vec![0; count + 1];
        of.iter().for_each(|&scene| begin[scene + 1] += 1);
        (0..count).for_each(|scene| begin[scene + 1] += begin[scene]);
        let mut items: Vec<usize> = (0..of.len()).collect();
        items.sort_by_key(|&item| of[item]);
        Self { of, items, begin }
    }

    /// The number of scenes.
    pub fn len(&self) -> usize {
        self.begin.len() - 1
    }

    /// Whether there is no scene, as there is no item.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The number of items.
    pub fn items(&self) -> usize {
        self.of.len()
    }

    /// Whether every item is alone in its scene.
    pub fn all_alone(&self) -> bool {
        self.len() == self.items()
    }

    /// The scene of every item. Scenes are numbered by their first items.
    pub fn of(&self) -> &[usize] {
        &self.of
    }

    /// The items of a scene in ascending order.
    ///
    /// # Panics
    /// When there is no such scene.
    pub fn members(&self, scene: usize) -> &[usize] {
        &self.items[self.begin[scene]..self.begin[scene + 1]]
    }

    /// The item that stands for a scene: its first.
    ///
    /// # Panics
    /// When there is no such scene.
    pub fn representative(&self, scene: usize) -> usize {
        self.members(scene)[0]
    }

    /// One row a scene: the mean direction of its items, as long as they are on average. An item that is alone is copied.
    ///
    /// # Panics
    /// When there is not one row an item.
    pub fn collapse(&self, rows: &Features) -> Features {
        assert_eq!(rows.rows(), self.items(), "one row an item");
        let dim = rows.dim();
        let mut values = Vec::with_capacity(self.len() * dim);
        for scene in 0..self.len() {
            let members = self.members(scene);
            let first = rows.row(members[0]);
            if members.iter().all(|&item| rows.row(item) == first) {
                values.extend_from_slice(first);
                continue;
            }
            let count = members.len() as f64;
            let mean = |axis: usize| members.iter().map(|&item| f64::from(rows.row(item)[axis])).sum::<f64>() / count;
            let mut row: Vec<f32> = (0..dim).map(|axis| mean(axis) as f32).collect();
            let length = members.iter().map(|&item| norm(rows.row(item))).sum::<f64>() / count;
            if scale_to_unit(&mut row) {
                values.extend(row.iter().map(|&v| (f64::from(v) * length) as f32));
            } else {
                values.extend_from_slice(first);
            }
        }
        Features::from_finite(dim, values)
    }

    /// Gives every item what its scene has.
    ///
    /// # Panics
    /// When there is not one value a scene.
    pub fn spread<T: Clone>(&self, of_scenes: &[T]) -> Vec<T> {
        assert_eq!(of_scenes.len(), self.len(), "one value a scene");
        self.of.iter().map(|&scene| of_scenes[scene].clone()).collect()
    }

    /// What is told of every scene by those of its items that something is told of, where they agree.
    ///
    /// # Panics
    /// When there is not one entry an item.
    pub fn agreed<T: Clone + PartialEq>(&self, told: &[Option<T>]) -> Vec<Option<T>> {
        assert_eq!(told.len(), self.items(), "one entry an item");
        let of_scene = |scene: usize| {
            let mut said = self.members(scene).iter().filter_map(|&item| told[item].as_ref());
            let first = said.next()?;
            said.all(|other| other == first).then(|| first.clone())
        };
        (0..self.len()).map(of_scene).collect()
    }

    /// Whether most classes of which there are several examples have them all in one scene. Nobody shows a class by frames of
    /// one burst alone, so these are no scenes but classes that are as clear as bursts. The examples come after `first` other items.
    fn hold_classes(&self, first: usize, labels: &[usize], classes: usize) -> bool {
        let mut seen: Vec<(usize, Option<usize>)> = vec![(0, None); classes];
        for (&class, &scene) in labels.iter().zip(&self.of[first..]) {
            let (count, one) = &mut seen[class];
            *one = if *count == 0 {
                Some(scene)
            } else {
                one.filter(|&one| one == scene)
            };
            *count += 1;
        }
        let several = || seen.iter().filter(|(count, _)| *count > 1);
        2 * several().filter(|(_, one)| one.is_some()).count() > several().count()
    }

    /// The same division of some items in a row, which are numbered anew.
    ///
    /// # Panics
    /// When there are not so many items.
    pub fn select(&self, items: Range<usize>) -> Self {
        Self::from_numbers(&self.of[items])
    }
}

/// The scenes of a task's queries, and the classes of those that examples show too.
pub(crate) struct QueryScenes {
    pub(crate) scenes: Scenes,
    /// The class of every scene that an example is of, where all such examples agree.
    pub(crate) classes: Vec<Option<usize>>,
}

impl QueryScenes {
    pub(crate) fn of(task: &Task) -> Self {
        let (queries, dim) = (task.queries(), task.dim());
        let rows = [&task.points().values()[task.known() * dim..], task.support().values()].concat();
        let items = Features::from_finite(dim, rows);
        let mut all = scenes(&items);
        if all.hold_classes(queries, task.support_labels(), task.known()) {
            all = copies(&items);
        }
        let labels = task.support_labels().iter().map(|&class| Some(class));
        let told: Vec<Option<usize>> = std::iter::repeat_n(None, queries).chain(labels).collect();
        let classes = all.agreed(&told);
        // Scenes are numbered by their first items, so those of the queries come first.
        let scenes = all.select(0..queries);
        Self {
            classes: classes[..scenes.len()].to_vec(),
            scenes,
        }
    }

    /// The task with one query a scene, unless it is that already.
    pub(crate) fn collapsed(&self, task: &Task) -> Option<Task> {
        if self.scenes.all_alone() {
            return None;
        }
        let queries = Features::from_finite(task.dim(), task.points().values()[task.known() * task.dim()..].to_vec());
        Some(task.with_unit_queries(&self.scenes.collapse(&queries)))
    }
}

/// The classes of labelled examples, to be found by what is equal to one of them.
#[derive(Clone, Debug)]
pub struct ExampleIndex {
    /// The class by the bits of a row; none where equal examples disagree.
    classes: HashMap<Vec<u32>, Option<usize>>,
}

impl ExampleIndex {
    /// Takes the class of every example.
    ///
    /// # Panics
    /// When there is not one label a row.
    pub fn new(examples: &Features, labels: &[usize]) -> Self {
        assert_eq!(examples.rows(), labels.len(), "one label a row");
        let mut classes = HashMap::new();
        for (row, &label) in examples.iter().zip(labels) {
            let class = classes.entry(bits(row)).or_insert(Some(label));
            *class = class.filter(|&class| class == label);
        }
        Self { classes }
    }

    /// The class of the examples that are equal to an item, if there are any and they agree.
    pub fn class_of(&self, item: &[f32]) -> Option<usize> {
        self.classes.get(&bits(item)).copied().flatten()
    }
}

/// What is the same for equal rows: zeros of either sign are equal.
fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|value| (value + 0.0).to_bits()).collect()
}

/// Items with equal rows.
fn copies(items: &Features) -> Scenes {
    // Zeros of either sign are equal, and no value is anything but finite.
    let compare = |&a: &usize, &b: &usize| {
        let values = items.row(a).iter().zip(items.row(b));
        let differ = values.map(|(a, b)| (a + 0.0).total_cmp(&(b + 0.0)));
        differ
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut sorted: Vec<usize> = (0..items.rows()).collect();
    sorted.sort_by(compare);
    let mut numbers = vec![0; items.rows()];
    for run in sorted.chunk_by(|a, b| compare(a, b).is_eq()) {
        run.iter().for_each(|&item| numbers[item] = run[0]);
    }
    Scenes::from_numbers(&numbers)
}

/// The neighbours of every scene: those of its first item, each of another scene.
fn between(equal: &Scenes, nearest: &[Vec<NearRow>]) -> Vec<Vec<NearRow>> {
    let of_scene = |scene: usize| {
        let mut near: Vec<NearRow> = nearest[equal.representative(scene)]
            .iter()
            .map(|near| NearRow {
                other: equal.of[near.other as usize] as u32,
                value: near.value,
            })
            .filter(|near| near.other as usize != scene)
            .collect();
        near.sort_by_key(|near| near.other);
        near.dedup_by_key(|near| near.other);
        near.sort_unstable_by(order);
        near
    };
    (0..equal.len()).map(of_scene).collect()
}

/// A number for every item, the same for those of one scene. No two items are equal.
///
/// In a scene everything is nearer to each other than to the rest. So it is one of the clusters that come about when items are
/// joined from the nearest pair on, and it is enough to look at these.
fn narrow_sets(nearest: &[Vec<NearRow>]) -> Vec<usize> {
    let mut pairs: Vec<(f32, u32, u32)> = Vec::new();
    for (item, near) in nearest.iter().enumerate() {
        // The last that an item sees is beyond its scene, so what is not narrow for that is narrow for nothing.
        let Some(last) = near.last() else { continue };
        let close = near.iter().take(MOST - 1);
        pairs.extend(close.take_while(|near| is_narrow(near.value, last.value)).map(|near| {
            let (a, b) = (item as u32, near.other);
            (near.value, a.min(b), a.max(b))
        }));
    }
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    pairs.dedup();

    let mut forest = DisjointSets::new(nearest.len());
    let mut sets: Vec<(f64, Vec<usize>)> = Vec::new();
    for (_, a, b) in pairs {
        if let Some(set) = forest.join(a as usize, b as usize)
            && let Some(surprise) = surprise(set, nearest)
        {
            sets.push((surprise, set.to_vec()));
        }
    }
    let certain = chosen(nearest.len(), &sets, RARE);
    let share = certain.iter().filter(|set| set.is_some()).count() as f64 / nearest.len().max(1) as f64;
    let asked = (SURPRISE + ((1.0 - share) / share).ln()).clamp(EVERYWHERE, RARE);
    let found = chosen(nearest.len(), &sets, asked);
    let scenes = found
        .iter()
        .enumerate()
        .filter(|&(item, set)| set.is_none_or(|set| sets[set].1[0] == item));
    if scenes.count() <= BEYOND {
        return (0..nearest.len()).collect();
    }
    let number = |(item, set): (usize, Option<usize>)| set.map_or(item, |set| sets[set].1[0]);
    found.into_iter().enumerate().map(number).collect()
}

/// The largest set of every item that is improbable enough, if there is one.
fn chosen(items: usize, sets: &[(f64, Vec<usize>)], asked: f64) -> Vec<Option<usize>> {
    let mut of = vec![None; items];
    for (number, (surprise, set)) in sets.iter().enumerate() {
        if *surprise >= asked {
            // What comes later is larger.
            set.iter().for_each(|&item| of[item] = Some(number));
        }
    }
    of
}

/// Whether a squared distance within is small for one to the outside.
fn is_narrow(within: f32, way_out: f32) -> bool {
    f64::from(within) <= WIDEST * WIDEST * f64::from(way_out)
}

/// How improbable it is that a set is so narrow by chance, as a logarithm; `None` where it is not narrow, or not enough of its
/// surroundings is known.
fn surprise(set: &[usize], nearest: &[Vec<NearRow>]) -> Option<f64> {
    let others = set.len() - 1;
    if others >= MOST {
        return None;
    }
    let (mut width, mut way_out) = (0f32, f32::INFINITY);
    // The mean logarithm of how much further the last of the next items is: the more directions, the smaller.
    let mut growth = 0f64;
    for &item in set {
        // All of the set must come before the first that is not in it.
        let (within, beyond) = nearest[item].split_at_checked(others)?;
        let beyond = beyond.first_chunk::<BEYOND>()?;
        if !within.iter().all(|near| set.contains(&(near.other as usize))) {
            return None;
        }
        width = width.max(within.last()?.value);
        way_out = way_out.min(beyond[0].value);
        let last = f64::from(beyond[BEYOND - 1].value);
        let logs = beyond[..BEYOND - 1]
            .iter()
            .map(|near| (last / f64::from(near.value)).ln());
        growth = growth.max(logs.sum::<f64>() / (BEYOND - 1) as f64);
    }
    // Among items that spread evenly in m directions a neighbour is by chance r times nearer than the next in one of r to the
    // power of m cases, and m is one over the growth. Logarithms of squares are twice those of distances on both sides.
    is_narrow(width, way_out).then(|| others as f64 * (f64::from(way_out) / f64::from(width)).ln() / growth)
}

/// Sets of items that are joined one after the other.
struct DisjointSets {
    parent: Vec<usize>,
    members: Vec<Vec<usize>>,
}

impl DisjointSets {
    fn new(items: usize) -> Self {
        Self {
            parent: (0..items).collect(),
            members: (0..items).map(|item| vec![item]).collect(),
        }
    }

    fn of_equal(nearest: &[Vec<NearRow>]) -> Self {
        let mut forest = Self::new(nearest.len());
        for (item, near) in nearest.iter().enumerate() {
            for near in near.iter().take_while(|near| near.value == 0.0) {
                forest.join(item, near.other as usize);
            }
        }
        forest
    }

    fn root(&mut self, mut item: usize) -> usize {
        while self.parent[item] != item {
            self.parent[item] = self.parent[self.parent[item]];
            item = self.parent[item];
        }
        item
    }

    /// The members of the set that two items are in from now on, unless they were before.
    fn join(&mut self, a: usize, b: usize) -> Option<&[usize]> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return None;
        }
        let (keep, drop) = if self.members[a].len() >= self.members[b].len() {
            (a, b)
        } else {
            (b, a)
        };
        self.parent[drop] = keep;
        let dropped = std::mem::take(&mut self.members[drop]);
        self.members[keep].extend(dropped);
        Some(&self.members[keep])
    }

    fn into_scenes(mut self) -> Scenes {
        let numbers: Vec<usize> = (0..self.parent.len()).map(|item| self.root(item)).collect();
        Scenes::from_numbers(&numbers)
    }
}
