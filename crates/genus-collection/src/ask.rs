//! Which questions help most: groups to name, the largest first, then items at doubtful borders.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::collection::{Collection, GroupInfo, Groups, ItemInfo};
use crate::error::Error;
use crate::knowledge::Model;
use crate::model::{EntryId, GroupId, ItemId, Place};
use crate::refine::chances;
use crate::rules::{Draft, View};
use crate::store::Store;

/// A group of fewer is not worth a name before doubtful items are looked at.
const WORTH_A_NAME: u64 = 3;
/// Items that stand for a group that is to be named.
const TYPICAL: usize = 3;
/// An item that is less likely where it is counts as doubtful.
const SURE: f32 = 0.9;
/// An item that is at least so likely where it is, is not asked about.
const CERTAIN: f32 = 0.99;
/// Items whose doubt is looked at closely: those that are least sure of their place.
const LOOKED_AT: usize = 4_000;
/// Of two items whose cosine is this one answer says what the other would.
const ALIKE: f32 = 0.5;

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

/// A question that was asked, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// Whether it was what a group is; else it was where an item belongs.
    pub of_group: bool,
    /// What the group or the item was called.
    pub name: String,
    /// What was answered; nothing yet where it is open.
    pub answer: Option<Answer>,
}

impl Asked {
    /// The question and its answer as a report shows them.
    pub fn in_words(&self, when: String) -> genus_report::Asked {
        let answer = |answer: &Answer| match answer {
            Answer::Is(group) => group.clone(),
            Answer::Noise => "belongs nowhere".to_owned(),
            Answer::Gone => "is no more".to_owned(),
        };
        genus_report::Asked {
            when,
            question: match self.of_group {
                true => format!("What is {}?", self.name),
                false => format!("Where does {} belong?", self.name),
            },
            answer: self.answer.as_ref().map(answer),
        }
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is of this name, or belongs to the group of this name.
    Is(String),
    /// It belongs nowhere.
    Noise,
    /// The group is no more, or the item is none any longer.
    Gone,
}

impl Collection {
    /// Notes that some questions were asked, for [`asked`](Self::asked). Where nobody can write now, that is left out.
    pub fn note_asked(&self, questions: &[Question]) {
        let noted: Vec<(Option<ItemId>, Option<GroupId>, &str)> = questions
            .iter()
            .map(|question| match question {
                Question::Name { group, .. } => (None, Some(group.id), &*group.name),
                Question::Place { item } => (Some(item.id), None, &*item.name),
            })
            .collect();
        if !noted.is_empty() {
            let _ = Store::open(self.folder(), true).and_then(|store| store.note_asked(&noted));
        }
    }

    /// What was asked, open questions first and of these the last first, at most so many.
    pub fn asked(&self, most: usize) -> Result<Vec<Asked>, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let mut asked = Vec::new();
            for question in store.asked(most)? {
                let answer = match (question.item, question.group) {
                    (_, Some(group)) => match groups.resolve(group) {
                        Some(whole) => groups.all[&whole].named.then(|| Answer::Is(groups.name(whole))),
                        None => Some(Answer::Gone),
                    },
                    (Some(item), None) => match store.place(item)?.map(|placed| placed.place) {
                        Some(Place::In { group, said: true, .. }) => {
                            groups.resolve(group).map(|whole| Answer::Is(groups.name(whole)))
                        }
                        Some(Place::Noise) => Some(Answer::Noise),
                        Some(_) => None,
                        None => Some(Answer::Gone),
                    },
                    (None, None) => continue,
                };
                asked.push(Asked {
                    time: question.time,
                    of_group: question.group.is_some(),
                    name: question.name,
                    answer,
                });
            }
            asked.sort_by_key(|asked| asked.answer.is_some());
            Ok(asked)
        })
    }

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

    /// Items whose answer decides most: those that lie between two groups, of which none is much like another, and one of a scene.
    /// The oddest of all say little about others.
    fn doubtful(&self, count: usize) -> Result<Vec<ItemId>, Error> {
        let (Some(dim), true) = (self.dim()?, count > 0) else {
            return Ok(Vec::new());
        };
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let mut open: Vec<(f32, ItemId)> = Vec::new();
            for (item, placed) in store.places()? {
                let probability = match placed.place {
                    Place::Waiting { probability, .. } => probability.unwrap_or(0.0),
                    Place::In {
                        probability,
                        said: false,
                        ..
                    } if !groups.is_bound(&placed) => probability.unwrap_or(0.0),
                    _ => continue,
                };
                if probability < CERTAIN {
                    open.push((probability, item));
                }
            }
            open.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            open.truncate(LOOKED_AT.max(count));
            let mut items: Vec<ItemId> = open.iter().map(|&(_, item)| item).collect();
            items.sort_unstable();
            let rows = store.features(&items, dim)?;
            let Some(model) = Model::load(store, &groups, dim)? else {
                return Ok(open.into_iter().take(count).map(|(_, item)| item).collect());
            };
            let cosines = model.cosines(&rows);
            let mut order: Vec<(f32, usize)> = cosines
                .chunks_exact(model.groups.len())
                .map(|cosines| lead(&chances(cosines)))
                .zip(0..)
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let rows = model
                .taxonomy
                .calibration()
                .map_or(rows.clone(), |known| known.transform(&rows));
            let mut chosen: Vec<usize> = Vec::new();
            let mut scenes = BTreeSet::new();
            let mut passed_over = Vec::new();
            for (_, at) in order {
                if chosen.len() == count {
                    break;
                }
                let scene = store.item(items[at])?.and_then(|item| item.scene);
                if scene.is_some_and(|scene| !scenes.insert(scene)) {
                    continue;
                }
                let alike = |&other: &usize| cosine(rows.row(at), rows.row(other)) >= ALIKE;
                match chosen.iter().any(alike) {
                    true => passed_over.push(at),
                    false => chosen.push(at),
                }
            }
            let room = count - chosen.len();
            chosen.extend(passed_over.into_iter().take(room));
            Ok(chosen.into_iter().map(|at| items[at]).collect())
        })
    }
}

/// By how much the likeliest of some chances leads.
fn lead(chances: &[f32]) -> f32 {
    let (mut first, mut second) = (0.0, 0.0);
    for &chance in chances {
        if chance > first {
            (first, second) = (chance, first);
        } else if chance > second {
            second = chance;
        }
    }
    first - second
}

/// The cosine of two rows of length one.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
