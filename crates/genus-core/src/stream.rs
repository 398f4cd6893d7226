//! Items one by one: known, of a group found before, or waiting until others agree with them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::calibration::{Calibration, ClusteredPoints, Fitting, Group, Knowledge, Points};
use crate::discovery::{Kind, Score};
use crate::error::{DiscoverError, FeatureError, TaskError, TaxonomyError};
use crate::features::{Features, norm};
use crate::linalg;
use crate::task::Task;
use crate::taxonomy::{self, Assignment, Taxonomy, TaxonomyEntry};

/// So many items make a new group when they agree and each is sure of its place there.
const FEWEST: usize = 3;
/// Those that wait are reviewed when so many more do, or this share of them, whichever is more: a review looks at all pairs,
/// so that an item costs as much as a look at a few times all that wait.
const REVIEW_AFTER: usize = 8;
const REVIEW_SHARE: usize = 4;
/// Groups that a waiting item may be mistaken for, which keep it from a new group when it is reviewed.
const RIVALS: usize = 3;
/// Items that may wait, unless another number is asked for.
const ROOM: usize = 4000;
/// How fast the share of familiar items follows the items.
const RATE: f64 = 0.05;

/// A taxonomy that grows with the items that are observed.
///
/// An item joins a category when it is likelier than not that it belongs there, and else waits. Now and then those that wait
/// are reviewed: where some agree with each other, they become a new group, and where a category has come to suit one, it
/// joins that. Categories keep their numbers and names for ever, and an item that has joined one stays there.
///
/// What was seen so far decides about the next item, so the order of items matters; the number of threads does not.
///
/// ```
/// use genus_core::{Features, Knowledge, StreamPlace, Stream, Support, Task};
///
/// let examples = Features::from_rows([[1.0, 0.1, 0.0], [1.0, 0.2, 0.1], [0.1, 1.0, 0.0], [0.0, 1.0, 0.1]])?;
/// let support = Support::new(examples, &["cat", "cat", "dog", "dog"])?;
/// let task = Task::new(&support, Features::from_rows([[1.0, 0.0, 0.0]])?)?;
/// let mut stream = Stream::of_examples(&task, &Knowledge::Examples)?;
/// // A cat, and something that is neither.
/// assert!(matches!(stream.observe(&[1.0, 0.15, 0.05])?.place, StreamPlace::Joined(found) if found.category == 0));
/// assert!(matches!(stream.observe(&[0.1, 0.1, -1.0])?.place, StreamPlace::Waiting(_)));
/// assert_eq!(stream.waiting().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    calibration: Arc<Calibration>,
    entries: Vec<TaxonomyEntry>,
    /// A row a category, of length one. With the groups this is all that is known of members, and all that a taxonomy keeps.
    centres: Vec<f32>,
    groups: Vec<Group>,
    /// The cosine that is usual in every category.
    expected: Vec<f64>,
    waiting: VecDeque<WaitingItem>,
    room: usize,
    /// How many items were observed.
    observed: u64,
    /// How many have begun to wait since the last review, and how many did when it was over.
    unreviewed: usize,
    reviewed: usize,
    /// The number in the name of the next group.
    next_name: u64,
    /// The share of items that belong to a category that is there when they come, of late.
    familiar: f64,
}

/// An item that waits.
#[derive(Clone, Debug)]
struct WaitingItem {
    number: u64,
    /// Its features in the space of the calibration.
    row: Vec<f32>,
}

/// Everything that a [`Stream`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamParts {
    /// The taxonomy as it has grown, with the share of familiar items.
    pub taxonomy: Taxonomy,
    /// The items that wait, the longest first: their numbers, and their rows in the space of the calibration.
    pub waiting: Vec<(u64, Vec<f32>)>,
    /// How many may wait.
    pub room: usize,
    /// How many items were observed.
    pub observed: u64,
    /// How many have begun to wait since the last review.
    pub unreviewed: usize,
    /// How many waited when that was over.
    pub reviewed: usize,
    /// The number in the name of the next group.
    pub next_name: u64,
}

/// Where an item is after it was observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamPlace {
    /// In a category.
    Joined(Assignment),
    /// Among those that wait; what is said is the best guess.
    Waiting(Assignment),
}

/// What came of observing an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The number of the item, counted from 0.
    pub number: u64,
    /// Where it is.
    pub place: StreamPlace,
    /// The numbers of other items whose wait it ended, with the categories that they joined.
    pub settled: Vec<(u64, Assignment)>,
    /// The number of an item that waited longest and may no longer, because too many do, with the best guess; it joins none.
    pub given_up: Option<(u64, Assignment)>,
}

impl Stream {
    /// Goes on from the categories of a taxonomy, which must have a calibration.
    pub fn new(taxonomy: Taxonomy) -> Result<Self, TaxonomyError> {
        let fitting = taxonomy.fitting().ok_or(TaxonomyError::NoCalibration)?;
        let entries = taxonomy.entries().to_vec();
        Ok(Self::of(entries, taxonomy.centres().clone(), fitting.clone()))
    }

    /// Begins with the known classes of a task, whose queries are not looked at.
    pub fn of_examples(task: &Task, knowledge: &Knowledge) -> Result<Self, DiscoverError> {
        let (entries, centres, fitting) = taxonomy::examples(task, knowledge.of_examples(task)?);
        Ok(Self::of(entries, centres, fitting))
    }

    fn of(entries: Vec<TaxonomyEntry>, centres: Features, fitting: Fitting) -> Self {
        let number = |entry: &TaxonomyEntry| entry.name.strip_prefix("new-")?.parse::<u32>().ok();
        let last = entries.iter().filter_map(number).max();
        Self {
            entries,
            centres: centres.into_values(),
            expected: fitting.expected(),
            calibration: fitting.calibration,
            groups: fitting.groups,
            waiting: VecDeque::new(),
            room: ROOM,
            observed: 0,
            unreviewed: 0,
            reviewed: 0,
            next_name: u64::from(last.unwrap_or(0)) + 1,
            familiar: Fitting::UNKNOWN_SHARE,
        }
    }

    /// Lets so many items wait at most, one at least, instead of 4,000.
    pub fn with_room(mut self, items: usize) -> Self {
        self.room = items.max(1);
        self
    }

    /// Lets these items wait, the first of them longest, as if they had just been reviewed; they are the next in number.
    ///
    /// With the taxonomy, the items that wait and the share of [`familiar`](Self::familiar) ones a stream that was just
    /// [reviewed](Self::review) can be put together again, and goes on to the same bits.
    pub fn with_waiting(mut self, items: &Features) -> Result<Self, TaskError> {
        for (row, item) in items.iter().enumerate() {
            let row = self.in_space(item, row)?;
            let number = self.take_number();
            self.waiting.push_back(WaitingItem { number, row });
        }
        self.reviewed = self.waiting.len();
        Ok(self)
    }

    /// Takes this share of the items to belong to categories that are there when they come, until items say otherwise.
    pub fn with_familiar(mut self, share: f64) -> Self {
        // What is no share at all says as little as nothing.
        let share = if share.is_nan() { 0.5 } else { share };
        self.familiar = share.clamp(Fitting::LEAST_SHARE, 1.0 - Fitting::LEAST_SHARE);
        self
    }

    /// Its parts.
    pub fn to_parts(&self) -> StreamParts {
        StreamParts {
            taxonomy: self.taxonomy(),
            waiting: self
                .waiting
                .iter()
                .map(|item| (item.number, item.row.clone()))
                .collect(),
            room: self.room,
            observed: self.observed,
            unreviewed: self.unreviewed,
            reviewed: self.reviewed,
            next_name: self.next_name,
        }
    }

    /// A stream of its parts, which goes on to the same bits. Fails where the taxonomy has no calibration or a row another width.
    pub fn from_parts(parts: StreamParts) -> Result<Self, TaxonomyError> {
        let familiar = parts.taxonomy.familiar();
        let stream = Self::new(parts.taxonomy)?;
        if let Some((_, row)) = parts.waiting.iter().find(|(_, row)| row.len() != stream.dim()) {
            return Err(TaxonomyError::CalibrationWidth {
                calibration: stream.dim(),
                centres: row.len(),
            });
        }
        let waiting = parts
            .waiting
            .into_iter()
            .map(|(number, row)| WaitingItem { number, row });
        Ok(Self {
            waiting: waiting.collect(),
            room: parts.room.max(1),
            observed: parts.observed,
            unreviewed: parts.unreviewed,
            reviewed: parts.reviewed,
            // A name that somebody gave is not given again.
            next_name: parts.next_name.max(stream.next_name),
            familiar: familiar.unwrap_or(stream.familiar),
            ..stream
        })
    }

    /// Lets an item join a category because somebody said that it belongs there. After an error the stream is as it was.
    ///
    /// # Panics
    /// When there is no such category.
    pub fn show(&mut self, item: &[f32], category: usize) -> Result<Observation, TaskError> {
        assert!(category < self.entries.len(), "one of the categories");
        let row = self.in_space(item, 0)?;
        self.join(category, &row);
        let cosines = linalg::dots(&row, &self.centres, self.dim());
        let score = Score {
            probability: Some(1.0),
            ..Score::of(category, cosines.into_iter())
        };
        Ok(Observation {
            number: self.take_number(),
            place: StreamPlace::Joined(Assignment { category, score }),
            settled: Vec::new(),
            given_up: None,
        })
    }

    /// The share of the items of late that belong to categories that were there when they came; at first a half.
    ///
    /// Where most items are new, one must suit a category better to join it.
    pub fn familiar(&self) -> f64 {
        self.familiar
    }

    /// Lets an item join its category or wait. After an error the stream is as it was.
    pub fn observe(&mut self, item: &[f32]) -> Result<Observation, TaskError> {
        let row = self.in_space(item, 0)?;
        let number = self.take_number();
        let found = self.judge(&row);
        let probability = f64::from(found.score.probability.unwrap_or(0.0));
        let familiar = self.familiar + RATE * (probability - self.familiar);
        self.familiar = familiar.clamp(Fitting::LEAST_SHARE, 1.0 - Fitting::LEAST_SHARE);
        let mut observation = Observation {
            number,
            place: StreamPlace::Waiting(found),
            settled: Vec::new(),
            given_up: None,
        };
        if !found.score.unsure {
            self.join(found.category, &row);
            observation.place = StreamPlace::Joined(found);
            return Ok(observation);
        }
        self.waiting.push_back(WaitingItem { number, row });
        self.unreviewed += 1;
        if self.unreviewed >= REVIEW_AFTER.max(self.reviewed / REVIEW_SHARE) {
            observation.settled = self.review();
            if let Some(own) = observation.settled.iter().position(|&(settled, _)| settled == number) {
                observation.place = StreamPlace::Joined(observation.settled.remove(own).1);
            }
        }
        if self.waiting.len() > self.room {
            let oldest = self.waiting.pop_front();
            observation.given_up = oldest.map(|item| (item.number, self.guess(&item.row)));
        }
        Ok(observation)
    }

    /// Reviews those that wait: new groups are made of those that agree, and who has come to suit a category joins it. The
    /// numbers of those whose wait is over, with their categories.
    ///
    /// It happens by itself as items come; once more at their end lets the last of them find each other.
    pub fn review(&mut self) -> Vec<(u64, Assignment)> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let mut settled = Vec::new();
        let together = self.together();
        let mut category_of = vec![
            None;
            together
                .iter()
                .flatten()
                .map(|&(group, _)| group + 1)
                .max()
                .unwrap_or(0)
        ];
        for (item, together) in std::mem::take(&mut self.waiting).into_iter().zip(together) {
            let Some((group, score)) = together else {
                self.waiting.push_back(item);
                continue;
            };
            let category = *category_of[group].get_or_insert_with(|| self.found());
            self.join(category, &item.row);
            settled.push((item.number, Assignment { category, score }));
        }
        for item in std::mem::take(&mut self.waiting) {
            let found = self.judge(&item.row);
            if found.score.unsure {
                self.waiting.push_back(item);
            } else {
                self.join(found.category, &item.row);
                settled.push((item.number, found));
            }
        }
        (self.unreviewed, self.reviewed) = (0, self.waiting.len());
        settled.sort_by_key(|&(number, _)| number);
        settled
    }

    /// The taxonomy as it has grown. What waits is in none of its categories.
    pub fn taxonomy(&self) -> Taxonomy {
        let fitting = Fitting {
            calibration: self.calibration.clone(),
            groups: self.groups.clone(),
            familiar: self.familiar,
        };
        let centres = Features::from_finite(self.dim(), self.centres.clone());
        Taxonomy::of_fitting(self.entries.clone(), centres, fitting)
    }

    /// The categories, known ones first, each with how many items it was found with or got since.
    pub fn entries(&self) -> &[TaxonomyEntry] {
        &self.entries
    }

    /// The numbers of the items that wait, the longest first, with the best guess for each.
    pub fn waiting(&self) -> Vec<(u64, Assignment)> {
        let guess = |item: &WaitingItem| (item.number, self.guess(&item.row));
        self.waiting.iter().map(guess).collect()
    }
}

impl Stream {
    fn dim(&self) -> usize {
        self.calibration.dim()
    }

    fn take_number(&mut self) -> u64 {
        self.observed += 1;
        self.observed - 1
    }

    /// An item in the space of the calibration; errors call it by the row that it is in.
    fn in_space(&self, item: &[f32], row: usize) -> Result<Vec<f32>, TaskError> {
        if item.len() != self.dim() {
            return Err(TaskError::Dimensions {
                support: self.dim(),
                queries: item.len(),
            });
        }
        if let Some(column) = item.iter().position(|v| !v.is_finite()) {
            let value = item[column];
            return Err(TaskError::Queries(FeatureError::NotFinite { row, column, value }));
        }
        if norm(item) == 0.0 {
            return Err(TaskError::Queries(FeatureError::ZeroRow { row }));
        }
        Ok(self.calibration.space().apply(item))
    }

    /// The best category for an item, and how likely it belongs there.
    fn judge(&self, row: &[f32]) -> Assignment {
        let cosines = linalg::dots(row, &self.centres, self.dim());
        let (category, score) = self.calibration.arrival(&cosines, &self.expected, self.familiar);
        Assignment { category, score }
    }

    /// The same for one that joins no category.
    fn guess(&self, row: &[f32]) -> Assignment {
        let found = self.judge(row);
        Assignment {
            score: Score {
                unsure: true,
                ..found.score
            },
            ..found
        }
    }

    /// Counts an item in.
    fn join(&mut self, category: usize, row: &[f32]) {
        let dim = self.dim();
        let centre = &mut self.centres[category * dim..][..dim];
        let group = &mut self.groups[category];
        let weight = group.members * group.length;
        let pairs = centre.iter().zip(row);
        let sum: Vec<f64> = pairs
            .map(|(&mean, &v)| weight * f64::from(mean) + f64::from(v))
            .collect();
        let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length > 0.0 {
            let unit = centre.iter_mut().zip(sum);
            unit.for_each(|(mean, v)| *mean = (v / length) as f32);
        }
        group.members += 1.0;
        group.length = (length / group.members).min(1.0);
        self.expected[category] = group.expected(self.calibration.variance());
        self.entries[category].items += 1;
    }

    /// A new category, without items yet.
    fn found(&mut self) -> usize {
        let name = format!("new-{}", self.next_name);
        self.next_name += 1;
        self.entries.push(TaxonomyEntry {
            name,
            kind: Kind::Novel,
            items: 0,
        });
        self.groups.push(Group {
            members: 0.0,
            length: 0.0,
        });
        self.centres.resize(self.entries.len() * self.dim(), 0.0);
        self.expected.push(0.0);
        self.entries.len() - 1
    }

    /// For every item that waits, the number of the new group that it belongs to, if any, and how well it fits there.
    ///
    /// The categories that they may be mistaken for are sorted along with them. But to be in the cluster of one is no reason
    /// to join it: the tree does not know that these items were found not to belong to any.
    fn together(&self) -> Vec<Option<(usize, Score)>> {
        let rows: Vec<f32> = self.waiting.iter().flat_map(|item| &item.row).copied().collect();
        let rivals = self.rivals(&rows);
        let means: Vec<f32> = rivals.iter().flat_map(|&category| self.mean(category)).collect();
        let members: Vec<f64> = rivals.iter().map(|&category| self.groups[category].members).collect();
        let points = Points::of_groups(self.dim(), &means, &members, &rows);
        let sorted = self.calibration.sort(&points, 0);
        let scores = self.calibration.scores(&points, &sorted);
        let large = large_clusters(&sorted, rivals.len(), &scores);
        let own = sorted.clusters[rivals.len()..].iter().zip(scores);
        own.map(|(&cluster, score)| (large[cluster] && !score.unsure).then_some((cluster, score)))
            .collect()
    }

    /// The categories that are among the nearest of any of these rows.
    fn rivals(&self, rows: &[f32]) -> Vec<usize> {
        let count = self.entries.len();
        let mut near = vec![false; count];
        for cosines in linalg::dots(rows, &self.centres, self.dim()).chunks_exact(count) {
            let mut order: Vec<usize> = (0..count).collect();
            let most = RIVALS.min(count) - 1;
            order.select_nth_unstable_by(most, |&a, &b| cosines[b].total_cmp(&cosines[a]).then(a.cmp(&b)));
            order[..=most].iter().for_each(|&category| near[category] = true);
        }
        (0..count).filter(|&category| near[category]).collect()
    }

    /// The mean of the members of a category.
    fn mean(&self, category: usize) -> impl Iterator<Item = f32> {
        let dim = self.dim();
        let length = self.groups[category].length;
        let centre = &self.centres[category * dim..][..dim];
        centre.iter().map(move |&v| (f64::from(v) * length) as f32)
    }
}

/// Which clusters hold none of the first points and enough that are sure of their place.
fn large_clusters(sorted: &ClusteredPoints, apart: usize, scores: &[Score]) -> Vec<bool> {
    let mut sure = vec![0; sorted.count];
    let items = sorted.clusters[apart..].iter().zip(scores);
    items.for_each(|(&cluster, score)| sure[cluster] += usize::from(!score.unsure));
    (0..sorted.count)
        .map(|cluster| cluster >= apart && sure[cluster] >= FEWEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::task::Support;

    #[test]
    fn rivals_are_the_nearest_of_any_item() {
        let mut rng = Rng::new(5, &[]);
        for count in [1, 2, 3, 4, 30] {
            let mut random = |rows: usize| -> Vec<f32> { (0..rows * 6).map(|_| rng.unit() as f32 - 0.5).collect() };
            let names: Vec<String> = (0..count).map(|class| format!("{class:02}")).collect();
            let support = Support::new(Features::from_finite(6, random(count)), &names).unwrap();
            let task = Task::new(&support, Features::from_finite(6, random(1))).unwrap();
            let stream = Stream::of_examples(&task, &Knowledge::Prior).unwrap();
            let rows = random(5);
            let mut expected = Vec::new();
            for row in rows.chunks_exact(6) {
                let dot =
                    |class: usize| -> f32 { row.iter().zip(&stream.centres[class * 6..]).map(|(a, b)| a * b).sum() };
                let mut order: Vec<usize> = (0..count).collect();
                order.sort_by(|&a, &b| dot(b).total_cmp(&dot(a)));
                expected.extend(order.into_iter().take(RIVALS));
            }
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(stream.rivals(&rows), expected);
        }
    }
}
