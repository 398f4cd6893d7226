//! Everything sorted anew, under what a person said.
//!
//! What a person said is held in two ways. Items that were confirmed or moved, and those that a merge or a split binds, are not
//! sorted at all: they stay, and are examples. Of the others, one that a method would put where a person said it does not belong
//! waits. So no answer of a method, however odd, can contradict a person.

use std::collections::{BTreeMap, BTreeSet};

use genus::{Length, Progress};
use genus_core::{Features, Kind, Support, Task};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::collection::{Collection, Groups, LEFT_WAITING};
use crate::error::Error;
use crate::knowledge::{self, AT_ONCE, spread};
use crate::levels::{self, Level};
use crate::model::{Entry, Group, GroupId, ItemId, Place, PlacedItem};
use crate::refine;
use crate::split::parts_of;
use crate::store::{Store, Which};

/// Examples of a group, at most, and of all groups together.
const EXAMPLES: usize = 50;
const ALL_EXAMPLES: usize = 20_000;
/// A group of fewer items is not divided.
const DIVISIBLE: usize = 6;
/// Groups whose fate the log tells one by one.
const TOLD: usize = 1000;

/// Whether everything is sorted for the first time, as `discover` does, or again, when people have said what some of it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    First,
    Again,
}

/// What became of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fate")]
pub enum Fate {
    /// It is there as before, with other items.
    Changed {
        /// Its name.
        group: String,
        /// Its items before.
        before: u64,
        /// Its items now.
        after: u64,
    },
    /// It is new.
    Born {
        /// Its name.
        group: String,
        /// Its items.
        items: u64,
    },
    /// It is no more.
    Ended {
        /// Its name.
        group: String,
        /// Its items before.
        before: u64,
        /// The group that most of them are in now, and how many; without one they wait.
        into: Option<(String, u64)>,
    },
}

/// What came of refreshing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RefreshOutcome {
    /// How many items were sorted anew.
    pub sorted: u64,
    /// How many stayed because a person said so, or as examples of a group that stands.
    pub fixed: u64,
    /// How many are in another group than before, or were in none.
    pub moved: u64,
    /// How many wait now.
    pub waiting: u64,
    /// How many groups are as they were.
    pub unchanged: u64,
    /// What became of the others.
    pub fates: Vec<Fate>,
    /// The entry of the log, if anything changed.
    pub entry: Option<Entry>,
}

impl RefreshOutcome {
    /// The names of new groups.
    pub(crate) fn born(&self) -> Vec<String> {
        let born = self.fates.iter().filter_map(|fate| match fate {
            Fate::Born { group, .. } => Some(group.clone()),
            _ => None,
        });
        born.collect()
    }
}

impl Collection {
    /// Sorts everything anew that no person has decided about.
    pub fn refresh(&mut self, level: Level, progress: &dyn Progress) -> Result<RefreshOutcome, Error> {
        self.store
            .transaction(|store| self.refresh_within(store, Time::Again, level, progress))
    }

    pub(crate) fn refresh_within(
        &self,
        store: &Store,
        time: Time,
        level: Level,
        progress: &dyn Progress,
    ) -> Result<RefreshOutcome, Error> {
        let dim = self.dim()?.ok_or(Error::Nothing)?;
        let groups = Groups::read(store)?;
        let law = Decisions::read(store, &groups)?;
        let mut refreshed = RefreshOutcome {
            fixed: law.fixed,
            ..RefreshOutcome::default()
        };
        if law.queries.is_empty() {
            refreshed.unchanged = groups.parts.len() as u64;
            return Ok(refreshed);
        }
        let support = law.support(store, dim)?;
        let items: Vec<ItemId> = law.queries.iter().map(|&(item, _)| item).collect();
        progress.start("sorting", Length::Steps(items.len() as u64));
        let found = knowledge::sort(store, dim, &support, &items, self.seed()?, |steps| {
            progress.advance(steps)
        });
        progress.end();
        let mut found = found?;
        if time == Time::Again && !support.classes().is_empty() && items.len() <= AT_ONCE {
            found = refine::by_examples(found, &support, &store.features(&items, dim)?)?;
        }

        // Where the method would put every item: in a group that has examples, or in one that it found.
        let classes: Vec<GroupId> = support
            .classes()
            .iter()
            .map(|class| GroupId(class.parse().expect("the classes are the numbers of groups")))
            .collect();
        let entries = found.taxonomy.entries();
        let target = |category: usize| match (entries[category].kind, classes.get(category)) {
            (Kind::Known, Some(&group)) => Target::Group(group),
            _ => Target::Cluster(category),
        };
        let sets = levels::sets(found.taxonomy.centres());
        let mut targets: Vec<(Target, bool, Option<f32>)> = found
            .assignments
            .iter()
            .map(|assignment| {
                let score = assignment.score;
                (target(assignment.category), score.unsure, score.probability)
            })
            .collect();

        match level {
            Level::AsFound => {}
            Level::Coarser => coarser(&sets, &mut targets),
            Level::Finer => finer(store, dim, &items, entries.len(), &mut targets)?,
        }

        let before = law.sizes.clone();
        let heirs = heirs(&law, &groups, &targets);
        let mut after: BTreeMap<GroupId, u64> = law.fixed_sizes.clone();
        let mut flows: BTreeMap<(GroupId, GroupId), u64> = BTreeMap::new();
        let mut born: Vec<GroupId> = Vec::new();
        let mut ended: BTreeSet<GroupId> = BTreeSet::new();
        let mut fates = Vec::new();
        let entry = self.write("refresh", |draft| {
            let mut ids: BTreeMap<usize, GroupId> = heirs.clone();
            // The largest first, so that they have the first numbers.
            let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
            for (target, unsure, _) in &targets {
                if let (Target::Cluster(cluster), false) = (target, unsure) {
                    *sizes.entry(*cluster).or_default() += 1;
                }
            }
            let mut order: Vec<(std::cmp::Reverse<u64>, usize)> = sizes
                .iter()
                .filter(|(cluster, _)| !ids.contains_key(cluster))
                .map(|(&cluster, &size)| (std::cmp::Reverse(size), cluster))
                .collect();
            order.sort_unstable();
            for (_, cluster) in order {
                let group = draft.new_group(None)?;
                born.push(group);
                ids.insert(cluster, group);
            }
            for (&(item, placed), &(target, unsure, probability)) in law.queries.iter().zip(&targets) {
                let group = match target {
                    Target::Group(group) => Some(group),
                    Target::Cluster(cluster) => ids.get(&cluster).copied(),
                };
                let allowed = match group {
                    Some(group) if law.has_rejections(item) => (!draft.is_rejected(item, group)?).then_some(group),
                    other => other,
                };
                let place = match (allowed, unsure) {
                    (Some(whole), false) => Place::In {
                        // One that stays keeps the part that it came into.
                        group: match placed.place.group() {
                            Some(own) if groups.resolve(own) == Some(whole) => own,
                            _ => whole,
                        },
                        probability,
                        said: false,
                    },
                    (guess, _) => Place::Waiting {
                        guess,
                        probability: guess.and(probability),
                    },
                };
                let was = placed.place.group().and_then(|group| groups.resolve(group));
                let now = place.group().and(allowed);
                if let Some(now) = now {
                    *after.entry(now).or_default() += 1;
                }
                if let (Some(was), Some(now)) = (was, now) {
                    *flows.entry((was, now)).or_default() += 1;
                }
                refreshed.moved += u64::from(was != now);
                draft.put_from(item, placed, place);
            }
            // A group that nobody named and nothing binds is no more when it has lost all its items.
            for (&group, info) in groups.parts.keys().map(|group| (group, &groups.all[group])) {
                let stays = info.named || info.holds_groups || after.get(&group).is_some_and(|&items| items > 0);
                if !stays {
                    ended.insert(group);
                    draft.change_group(group, |group| group.ended = true)?;
                }
            }
            // Which groups are one in the level above. Those that were divided or joined just now have no place in the tree.
            let group_of = |&category: &usize| match target(category) {
                Target::Group(group) => Some(group),
                Target::Cluster(cluster) => ids.get(&cluster).copied(),
            };
            let sets = sets
                .iter()
                .map(|set| set.iter().filter_map(group_of).collect::<BTreeSet<GroupId>>());
            let sets: Vec<Vec<GroupId>> = sets
                .map(|set| set.into_iter().filter(|group| !ended.contains(group)).collect())
                .filter(|set: &Vec<GroupId>| set.len() > 1)
                .collect();
            levels::adopt(draft, &groups, &sets)?;
            let name = |draft: &crate::rules::Draft<Store>, group: GroupId| -> Result<String, Error> {
                Ok(draft.group(group)?.map_or_else(String::new, |group| group.name))
            };
            for &group in &born {
                let items = after.get(&group).copied().unwrap_or(0);
                fates.push(Fate::Born {
                    group: name(draft, group)?,
                    items,
                });
            }
            for &group in &ended {
                let into = flows
                    .range((group, GroupId(i64::MIN))..=(group, GroupId(i64::MAX)))
                    .max_by_key(|&(&(_, into), &items)| (items, std::cmp::Reverse(into)));
                let into = match into {
                    Some((&(_, into), &items)) => Some((name(draft, into)?, items)),
                    None => None,
                };
                fates.push(Fate::Ended {
                    group: name(draft, group)?,
                    before: before.get(&group).copied().unwrap_or(0),
                    into,
                });
            }
            for &group in groups.parts.keys().filter(|group| !groups.all[group].holds_groups) {
                let sizes = [&before, &after].map(|sizes| sizes.get(&group).copied().unwrap_or(0));
                let stayed = flows.get(&(group, group)).copied().unwrap_or(0)
                    + law.fixed_sizes.get(&group).copied().unwrap_or(0);
                if ended.contains(&group) {
                    continue;
                }
                if sizes == [stayed; 2] {
                    refreshed.unchanged += 1;
                } else {
                    fates.push(Fate::Changed {
                        group: name(draft, group)?,
                        before: sizes[0],
                        after: sizes[1],
                    });
                }
            }
            let told: Vec<&Fate> = fates.iter().take(TOLD).collect();
            Ok(json!({
                "sorted": items.len(),
                "fixed": law.fixed,
                "moved": refreshed.moved,
                "groups": told,
                "untold": fates.len().saturating_sub(TOLD),
            }))
        })?;
        if let Some(calibration) = found.taxonomy.calibration() {
            knowledge::remember(store, calibration, found.taxonomy.familiar().unwrap_or(0.5))?;
            store.forget_centres()?;
        }
        if let Some(scenes) = &found.scenes {
            note_scenes(store, &items, scenes)?;
        }
        refreshed.sorted = items.len() as u64;
        refreshed.waiting = crate::store::tally_of(&store.tallies()?, Which::Waiting).items as u64;
        store.set_meta(LEFT_WAITING, &refreshed.waiting.to_string())?;
        refreshed.fates = fates;
        refreshed.entry = entry;
        Ok(refreshed)
    }
}

/// Lets what the method found be one where it is in one set.
fn coarser(sets: &[Vec<usize>], targets: &mut [(Target, bool, Option<f32>)]) {
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for set in sets {
        let mut found = set
            .iter()
            .filter(|&&category| targets.iter().any(|(target, ..)| *target == Target::Cluster(category)));
        if let Some(&one) = found.next() {
            first.extend(found.map(|&other| (other, one)));
        }
    }
    for (target, ..) in targets {
        if let Target::Cluster(cluster) = target {
            *cluster = first.get(cluster).copied().unwrap_or(*cluster);
        }
    }
}

/// Divides everything that the method found in two; `next` is the number of the first further cluster.
fn finer(
    store: &Store,
    dim: usize,
    items: &[ItemId],
    mut next: usize,
    targets: &mut [(Target, bool, Option<f32>)],
) -> Result<(), Error> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, (target, unsure, _)) in targets.iter().enumerate() {
        if let (Target::Cluster(cluster), false) = (target, unsure) {
            members.entry(*cluster).or_default().push(at);
        }
    }
    for rows in members.into_values().filter(|rows| rows.len() >= DIVISIBLE) {
        let ids: Vec<ItemId> = rows.iter().map(|&at| items[at]).collect();
        let parts = parts_of(&store.features(&ids, dim)?, 2);
        let second = parts.iter().filter(|&&part| part == 1).count();
        // A part of one or two is no group.
        if second.min(rows.len() - second) < DIVISIBLE / 2 {
            continue;
        }
        for (&at, part) in rows.iter().zip(parts) {
            if part == 1 {
                targets[at].0 = Target::Cluster(next);
            }
        }
        next += 1;
    }
    Ok(())
}

/// Notes which items are of one scene; a scene is called by its first item.
fn note_scenes(store: &Store, items: &[ItemId], scenes: &genus_core::Scenes) -> Result<(), Error> {
    for (&item, &scene) in items.iter().zip(scenes.of()) {
        let members = scenes.members(scene);
        let first = members.iter().min().map_or(item, |&at| items[at]);
        store.set_scene(item, (members.len() > 1).then_some(first.0))?;
    }
    Ok(())
}

/// Where a method would put an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A group that has examples.
    Group(GroupId),
    /// What the method found, by its number.
    Cluster(usize),
}

/// What a person said, as far as sorting goes.
struct Decisions {
    /// The items that are to be sorted, with where they are.
    queries: Vec<(ItemId, PlacedItem)>,
    /// The examples of every group that has any.
    examples: BTreeMap<GroupId, Vec<ItemId>>,
    /// How many items stay because a person said so.
    fixed: u64,
    /// How many items every group has, and how many of them stay.
    sizes: BTreeMap<GroupId, u64>,
    fixed_sizes: BTreeMap<GroupId, u64>,
    /// Items that were said not to be somewhere.
    rejected: BTreeSet<ItemId>,
}

impl Decisions {
    fn read(store: &Store, groups: &Groups) -> Result<Self, Error> {
        let mut law = Decisions {
            queries: Vec::new(),
            examples: BTreeMap::new(),
            fixed: 0,
            sizes: BTreeMap::new(),
            fixed_sizes: BTreeMap::new(),
            rejected: store.all_rejected()?,
        };
        // The items of every group: said by a person, bound, and free ones by how sure they are.
        #[derive(Default)]
        struct Members {
            said: Vec<ItemId>,
            bound: Vec<ItemId>,
            free: Vec<(ItemId, PlacedItem)>,
        }
        let mut members: BTreeMap<GroupId, Members> = BTreeMap::new();
        for (item, placed) in store.places()? {
            let whole = placed.place.group().and_then(|group| groups.resolve(group));
            match (placed.place, whole) {
                (Place::Noise, _) => law.fixed += 1,
                (Place::In { said, .. }, Some(whole)) => {
                    *law.sizes.entry(whole).or_default() += 1;
                    let members = members.entry(whole).or_default();
                    match (said, groups.is_bound(&placed)) {
                        (true, _) => members.said.push(item),
                        (false, true) => members.bound.push(item),
                        (false, false) => members.free.push((item, placed)),
                    }
                }
                _ => law.queries.push((item, placed)),
            }
        }
        // Of more than can be sorted at once a sample is, in which small groups would be missing: there, all groups stand.
        let free = members.values().map(|members| members.free.len()).sum::<usize>() + law.queries.len();
        let all_stand = free > AT_ONCE;
        let anchored = |group: GroupId, members: &Members| {
            all_stand || groups.all[&group].named || !members.said.is_empty() || !members.bound.is_empty()
        };
        let classes = members
            .iter()
            .filter(|(group, members)| anchored(**group, members))
            .count();
        let most = (ALL_EXAMPLES / classes.max(1)).clamp(1, EXAMPLES);
        for (group, mut own) in members {
            let fixed = own.said.len() + own.bound.len();
            law.fixed += fixed as u64;
            *law.fixed_sizes.entry(group).or_default() += fixed as u64;
            if anchored(group, &own) {
                let mut examples = spread(&own.said, most);
                examples.extend(spread(&own.bound, most - examples.len()));
                // Of a group that was only named, those that are most typical stand for it.
                let room = most - examples.len();
                if examples.is_empty() && room > 0 {
                    let sureness = |placed: &PlacedItem| placed.place.probability().unwrap_or(1.0);
                    own.free
                        .sort_by(|a, b| sureness(&b.1).total_cmp(&sureness(&a.1)).then(a.0.cmp(&b.0)));
                    let typical = own.free.len().div_ceil(2).min(room);
                    examples.extend(own.free.iter().take(typical).map(|&(item, _)| item));
                    // They stay, as examples do.
                    law.fixed += typical as u64;
                    *law.fixed_sizes.entry(group).or_default() += typical as u64;
                    own.free.drain(..typical);
                }
                law.examples.insert(group, examples);
            }
            law.queries.extend(own.free);
        }
        law.queries.sort_by_key(|&(item, _)| item);
        Ok(law)
    }

    /// The examples as a support. Of two groups that nothing can tell apart the second has none: its items stay anyhow.
    fn support(&self, store: &Store, dim: usize) -> Result<Support, Error> {
        let mut classes: Vec<(String, Features)> = Vec::new();
        for (group, items) in self.examples.iter().filter(|(_, items)| !items.is_empty()) {
            classes.push((group.to_string(), store.features(items, dim)?));
        }
        let some = store.features(&[self.queries[0].0], dim)?;
        // A class whose examples cancel each other out has no direction.
        classes.retain(|(_, features)| {
            let mut sum = vec![0.0f64; dim];
            for row in features.iter() {
                sum.iter_mut()
                    .zip(row)
                    .for_each(|(sum, &value)| *sum += f64::from(value));
            }
            sum.iter().map(|value| value * value).sum::<f64>() > 1e-12
        });
        loop {
            if classes.is_empty() {
                return Ok(Support::none(dim));
            }
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for (label, features) in &classes {
                values.extend_from_slice(features.values());
                labels.extend(std::iter::repeat_n(label.clone(), features.rows()));
            }
            let support = Support::new(Features::new(dim, values)?, &labels)?;
            let task = Task::new(&support, some.clone())?;
            let Some((_, second)) = task.identical_prototypes() else {
                return Ok(support);
            };
            let twin = support.classes()[second].clone();
            classes.retain(|(label, _)| *label != twin);
        }
    }

    fn has_rejections(&self, item: ItemId) -> bool {
        self.rejected.contains(&item)
    }
}

/// Which cluster carries on which group: the one that most of the group's items are in, unless more of another's are.
fn heirs(law: &Decisions, groups: &Groups, targets: &[(Target, bool, Option<f32>)]) -> BTreeMap<usize, GroupId> {
    let mut overlap: BTreeMap<GroupId, BTreeMap<Target, u64>> = BTreeMap::new();
    for (&(_, placed), &(target, unsure, _)) in law.queries.iter().zip(targets) {
        let Some(group) = placed.place.group().and_then(|group| groups.resolve(group)) else {
            continue;
        };
        let is_free = |group: &Group| !group.named && !group.holds_groups;
        if !unsure && is_free(&groups.all[&group]) && !law.examples.contains_key(&group) {
            *overlap.entry(group).or_default().entry(target).or_default() += 1;
        }
    }
    let mut claims: Vec<(u64, GroupId, usize)> = Vec::new();
    for (group, targets) in overlap {
        let most = targets
            .iter()
            .max_by_key(|&(target, &items)| (items, std::cmp::Reverse(*target)));
        if let Some((&Target::Cluster(cluster), &items)) = most {
            claims.push((items, group, cluster));
        }
    }
    claims.sort_by_key(|&(items, group, _)| (std::cmp::Reverse(items), group));
    let mut heirs = BTreeMap::new();
    for (_, group, cluster) in claims {
        heirs.entry(cluster).or_insert(group);
    }
    heirs
}
