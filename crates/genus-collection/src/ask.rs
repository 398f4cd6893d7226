//! Which questions help most: groups to name, the largest first, then items at doubtful borders.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::collection::{Collection, GroupInfo, Groups, ItemInfo};
use crate::error::Error;
use crate::knowledge::Model;
use crate::model::{EntryId, GroupId, ItemId, Place};
use crate::rules::{Draft, View as _};

/// A group of fewer is not worth a name before doubtful items are looked at.
const WORTH_A_NAME: u64 = 3;
/// Items that stand for a group that is to be named.
const TYPICAL: usize = 3;
/// What is less likely to belong where it is may be asked for.
const SURE: f32 = 0.9;

/// Something that a person can answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ask")]
pub enum Question {
    /// What is this group?
    Name {
        /// The group.
        group: GroupInfo,
        /// Items that are typical of it.
        typical: Vec<ItemInfo>,
    },
    /// Where does this item belong?
    Place {
        /// The item, with the best guess.
        item: ItemInfo,
    },
}

/// A group that an item may belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The group.
    pub group: GroupId,
    /// Its name.
    pub name: String,
    /// The cosine of the item with the middle of the group.
    pub similarity: f32,
}

impl Collection {
    /// So many questions, those that help most first.
    pub fn ask(&self, count: usize) -> Result<Vec<Question>, Error> {
        let mut questions = Vec::new();
        let unnamed = self
            .groups()?
            .into_iter()
            .filter(|group| !group.named && !group.holds_groups && group.items >= WORTH_A_NAME);
        for group in unnamed.take(count) {
            let typical = self.typical(group.id)?;
            questions.push(Question::Name { group, typical });
        }
        let room = count - questions.len();
        for item in self.doubtful(room)? {
            questions.push(Question::Place { item: self.item(item)? });
        }
        Ok(questions)
    }

    /// The items of a group that are surest of their place, at most so many.
    pub fn surest(&self, group: GroupId, most: usize) -> Result<Vec<ItemId>, Error> {
        self.store.snapshot(|store| {
            let parts = Draft::new(store, EntryId(0), store.next()?).tree(group)?;
            store.surest(&parts, most)
        })
    }

    /// The items whose place a person would best say next, at most so many.
    pub fn doubtful_items(&self, most: usize) -> Result<Vec<ItemInfo>, Error> {
        self.doubtful(most)?.into_iter().map(|item| self.item(item)).collect()
    }

    /// How many items of each group are in doubt: nobody has said that they belong there, and that is not very likely either. Groups
    /// without any are left out.
    pub fn doubts(&self) -> Result<BTreeMap<GroupId, u64>, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let mut doubts: BTreeMap<GroupId, u64> = BTreeMap::new();
            for (part, count) in store.doubts(f64::from(SURE))? {
                if let Some(whole) = groups.resolve(part) {
                    *doubts.entry(whole).or_default() += count;
                }
            }
            Ok(doubts)
        })
    }

    /// For each of some items the groups that it is most like, at most so many, without those that a person said it is not of.
    pub fn candidates(&self, items: &[ItemId], most: usize) -> Result<Vec<Vec<Candidate>>, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let model = match self.dim()? {
                Some(dim) if !items.is_empty() => Model::load(store, &groups, dim)?.map(|model| (model, dim)),
                _ => None,
            };
            let Some((model, dim)) = model else {
                return Ok(vec![Vec::new(); items.len()]);
            };
            let cosines = model.cosines(&store.features(items, dim)?);
            let own = cosines.chunks_exact(model.groups.len());
            let mut all = Vec::with_capacity(items.len());
            for (&item, own) in items.iter().zip(own) {
                let rejected: BTreeSet<GroupId> = store
                    .rejections(item)?
                    .into_iter()
                    .filter_map(|group| groups.resolve(group))
                    .collect();
                let mut found: Vec<(GroupId, f32)> = model.groups.iter().copied().zip(own.iter().copied()).collect();
                found.retain(|(group, _)| !rejected.contains(group));
                found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let found = found.into_iter().take(most).map(|(group, similarity)| Candidate {
                    group,
                    name: groups.name(group),
                    similarity,
                });
                all.push(found.collect());
            }
            Ok(all)
        })
    }

    /// The items of a group that stand for it.
    fn typical(&self, group: GroupId) -> Result<Vec<ItemInfo>, Error> {
        self.surest(group, TYPICAL)?
            .into_iter()
            .map(|item| self.item(item))
            .collect()
    }

    /// Items whose answer decides most: in turn for every group that much is doubtful about, first what is in the middle of it. The
    /// most doubtful of all are mostly odd ones, whose answers say little about others. Of one scene one is asked for.
    fn doubtful(&self, count: usize) -> Result<Vec<ItemId>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let mut borders: BTreeMap<Option<GroupId>, Vec<(f32, ItemId)>> = BTreeMap::new();
            for (item, placed) in store.places()? {
                let (group, probability) = match placed.place {
                    Place::Waiting { guess, probability } => (guess, probability),
                    Place::In {
                        group,
                        probability,
                        said: false,
                    } if !groups.is_bound(&placed) && probability.is_some_and(|probability| probability < SURE) => {
                        (Some(group), probability)
                    }
                    _ => continue,
                };
                let group = group.and_then(|group| groups.resolve(group));
                borders
                    .entry(group)
                    .or_default()
                    .push((probability.unwrap_or(0.0), item));
            }
            let mut queues: Vec<Vec<(f32, ItemId)>> = borders.into_values().collect();
            for queue in &mut queues {
                queue.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let middle = queue[queue.len() / 2].0;
                // The nearest to the middle last, to be taken first.
                let off = |entry: &(f32, ItemId)| (entry.0 - middle).abs();
                queue.sort_by(|a, b| off(b).total_cmp(&off(a)).then(b.1.cmp(&a.1)));
            }
            queues.sort_by_key(|queue| (Reverse(queue.len()), queue.last().map(|&(_, item)| item)));
            let (mut chosen, mut scenes) = (Vec::new(), BTreeSet::new());
            while chosen.len() < count && queues.iter().any(|queue| !queue.is_empty()) {
                for queue in &mut queues {
                    let Some((_, item)) = queue.pop() else { continue };
                    let scene = store.item(item)?.and_then(|item| item.scene);
                    if chosen.len() < count && scene.is_none_or(|scene| scenes.insert(scene)) {
                        chosen.push(item);
                    }
                }
            }
            Ok(chosen)
        })
    }
}
