//! What is known of an encoder's features before a task begins: how far items of one class lie apart.

mod cut;
mod division;
mod estimate;
mod fit;
mod logistic;
mod membership;
mod parts;
mod points;
mod space;

use std::sync::Arc;

use crate::choice::choice;
use crate::discovery::Score;
use crate::error::CalibrationError;
use crate::features::Features;
use crate::task::Task;

use cut::Cut;
pub use cut::{Eagerness, MergeTree};
pub(crate) use division::{Neighbourhoods, Round, projected};
pub use estimate::Knowledge;
use logistic::Observation;
pub(crate) use membership::Group;
use membership::MEMBER;
pub use parts::CalibrationParts;
pub(crate) use points::{ClusteredPoints, PASSES, Points};
pub(crate) use space::Space;

/// The share of the rightly placed items of base classes that are called unsure.
const DOUBTED: f64 = 0.08;
/// Base classes with at least two items that are needed: a half must still hold known and new classes.
const FEWEST_CLASSES: usize = 8;

/// How a calibration is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationSettings {
    /// How the mean of all features is chosen.
    pub centre: Centre,
    /// Damp so many of the directions in which items of one class differ most.
    pub directions: usize,
    /// The tree that will be cut.
    pub tree: MergeTree,
    /// How eagerly clusters are merged.
    pub eagerness: Eagerness,
    /// The seed of the trials.
    pub seed: u64,
}

impl Default for CalibrationSettings {
    fn default() -> Self {
        Self {
            centre: Centre::Base,
            directions: 32,
            tree: MergeTree::Ward,
            eagerness: Eagerness::Chosen,
            seed: 0,
        }
    }
}

choice! {
    /// How the mean that is subtracted from all features is chosen.
    Centre {
        /// The mean of the base classes.
        Base = "base",
        /// The mean of a task's own items.
        Task = "task",
        /// Nothing.
        None = "none",
    }
}

choice! {
    /// What a calibration was learnt from.
    Source {
        /// Base classes, of which many items are known.
        Base = "base",
        /// The examples of the known classes of one task.
        Examples = "examples",
        /// Other encoders: there was one example a class.
        Prior = "prior",
    }
}

/// How far items of one class lie apart, and what that says about merges.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    source: Source,
    centre: Centre,
    /// From how many classes and items it was learnt.
    learnt: (usize, usize),
    space: Space,
    cut: Cut,
    /// The model of an item that comes to a group by itself.
    arrivals: [f64; MEMBER],
    /// The model of an item that was sorted with others.
    places: [f64; MEMBER],
    /// Below this probability a sorted item is unsure.
    doubt: f64,
}

impl Calibration {
    /// Learns from items of base classes; the classes are numbered from 0.
    ///
    /// Half of the classes make a space in which trials of the other half are judged, and the other way round: a space
    /// fits its own classes better than any to come.
    ///
    /// # Panics
    /// When there is not one label an item.
    pub fn fit(items: &Features, labels: &[usize], settings: CalibrationSettings) -> Result<Self, CalibrationError> {
        let classes = labels.iter().max().map_or(0, |&last| last + 1);
        Self::fit_kinds(items, labels, &vec![0; classes], settings)
    }

    /// Learns from base classes of several kinds of things, such as birds and letters, for piles of any kind: `kinds` has the kind of
    /// every class. No trial mixes kinds, for telling a bird from a letter says nothing about telling birds apart. The mean of
    /// several kinds is that of none, so [`Centre::Task`] is the setting for it.
    ///
    /// # Panics
    /// When there is not one label an item, or a class has no kind.
    pub fn fit_kinds(
        items: &Features,
        labels: &[usize],
        kinds: &[usize],
        settings: CalibrationSettings,
    ) -> Result<Self, CalibrationError> {
        assert_eq!(items.rows(), labels.len(), "one label an item");
        let classes = labels.iter().max().map_or(0, |&last| last + 1);
        assert!(kinds.len() >= classes, "one kind a class");
        let mut counts = vec![0usize; classes];
        labels.iter().for_each(|&label| counts[label] += 1);
        let usable: Vec<usize> = (0..classes).filter(|&class| counts[class] > 1).collect();
        let kinds: Vec<usize> = usable.iter().map(|&class| kinds[class]).collect();
        let of_kinds = fit::by_kind(&kinds);
        let fewest = of_kinds.iter().map(Vec::len).min().unwrap_or(0);
        if fewest < FEWEST_CLASSES {
            return Err(CalibrationError::TooFewClasses {
                needed: FEWEST_CLASSES,
                found: fewest,
            });
        }
        let dim = items.dim();
        let (items, labels) = fit::select(items, labels, &usable);
        let space = |items: &Features, labels: &[usize], classes| {
            Space::fit(
                items,
                labels,
                classes,
                settings.directions,
                settings.centre == Centre::Base,
            )
        };
        let [first, second] = fit::halves(&of_kinds, settings.seed);
        let halves: Vec<fit::Half> = [(&first, &second), (&second, &first)]
            .into_iter()
            .map(|(fitted, judged)| fit::Half::new(&items, &labels, &kinds, [fitted, judged], space))
            .collect::<Option<_>>()
            .ok_or(CalibrationError::NoSpread)?;
        let variances = fit::observe(&halves, dim, settings, |trial| vec![trial.variance]);
        let mut cut = Cut {
            tree: settings.tree,
            eagerness: settings.eagerness,
            price: cut::Price::LEARNT,
            model: Default::default(),
            variance: variances.iter().sum::<f64>() / variances.len() as f64,
            largest: fit::largest(&counts),
            dimensions: fit::dimensions(&halves, dim).ok_or(CalibrationError::NoSpread)?,
        };
        let merges = fit::observe(&halves, dim, settings, |trial| trial.merges(&cut));
        cut.model = logistic::fit(&merges).ok_or(CalibrationError::NoSpread)?;
        let arrivals = logistic::fit(&fit::observe(&halves, dim, settings, fit::Trial::arrivals));
        let seen = fit::observe(&halves, dim, settings, |trial| trial.places(&cut));
        let (arrivals, places) = arrivals.zip(logistic::fit(&seen)).ok_or(CalibrationError::NoSpread)?;
        Ok(Self {
            source: Source::Base,
            centre: settings.centre,
            learnt: (usable.len(), labels.len()),
            space: space(&items, &labels, usable.len()),
            cut,
            arrivals,
            places,
            doubt: doubt(&seen, &places),
        })
    }

    /// What it was learnt from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// From how many classes it was learnt.
    pub fn classes(&self) -> usize {
        self.learnt.0
    }

    /// The variance within a class, summed over the features of its space.
    pub fn variance(&self) -> f64 {
        self.cut.variance
    }

    /// The probability below which an item that was sorted with others is unsure.
    pub fn doubt(&self) -> f64 {
        self.doubt
    }

    /// The number of features that it is of.
    pub fn dim(&self) -> usize {
        self.space.dim()
    }

    /// Whether its space has a middle of its own, rather than that of each task.
    pub(crate) fn has_middle(&self) -> bool {
        self.centre != Centre::Task
    }

    /// Items in its space, for other methods: without the mean of the base classes, the directions in which items of one
    /// class differ most damped, scaled to length one. An item that is the mean itself becomes zeros.
    ///
    /// # Panics
    /// When the items have another number of features.
    pub fn transform(&self, items: &Features) -> Features {
        assert_eq!(items.dim(), self.dim(), "a calibration is of one number of features");
        Features::from_finite(items.dim(), self.space.apply(items.values()))
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// How well every query fits its cluster.
    pub(crate) fn scores(&self, points: &Points, sorted: &ClusteredPoints) -> Vec<Score> {
        let affinity = points.affinity(sorted);
        let seen = points.member_features(sorted, &affinity, self.cut.variance);
        (points.known()..points.len())
            .zip(seen)
            .map(|(point, seen)| {
                // An item that is all alone belongs to no class.
                let probability = seen.map_or(0.0, |seen| membership::chance(&self.places, &seen));
                let cosines = (0..sorted.count).map(|cluster| affinity.cosine(cluster, point) as f32);
                Score {
                    probability: Some(probability),
                    unsure: f64::from(probability) < self.doubt,
                    ..Score::of(sorted.clusters[point], cosines)
                }
            })
            .collect()
    }

    /// The best of some groups for an item that comes by itself, given its cosines with their means and the cosines that
    /// are usual in them, and how well it fits when this share of the items belongs to one of the groups.
    pub(crate) fn arrival(&self, cosines: &[f32], expected: &[f64], familiar: f64) -> (usize, Score) {
        let exact: Vec<f64> = cosines.iter().map(|&cosine| f64::from(cosine)).collect();
        let (best, seen) = membership::best_group(&exact, expected);
        // The model was taught with as many of either kind.
        let odds = logistic::logit(&self.arrivals, &seen) + (familiar / (1.0 - familiar)).ln();
        let probability = logistic::probability(odds) as f32;
        let score = Score {
            probability: Some(probability),
            unsure: probability < 0.5,
            ..Score::of(best, cosines.iter().copied())
        };
        (best, score)
    }

    /// How likely an item that comes by itself belongs to each of some groups, as [`arrival`](Self::arrival) says it of the best.
    pub(crate) fn arrivals(&self, cosines: &[f32], expected: &[f64], familiar: f64) -> Vec<f64> {
        let exact: Vec<f64> = cosines.iter().map(|&cosine| f64::from(cosine)).collect();
        let prior = (familiar / (1.0 - familiar)).ln();
        let seen = membership::every_group(&exact, expected);
        seen.map(|seen| logistic::probability(logistic::logit(&self.arrivals, &seen) + prior))
            .collect()
    }

    /// Sorts points of its space.
    pub(crate) fn sort(&self, points: &Points, passes: usize) -> ClusteredPoints {
        points.sort(&self.cut, passes)
    }
}

impl Calibration {
    /// Whether base classes taught it merges, and trials show categories of so many points.
    pub(crate) fn knows_merges_of(&self, size: f64) -> bool {
        self.source == Source::Base && size <= fit::MOST_QUERIES as f64
    }

    /// The same in a space in which the directions are damped in which the items of a task differ within categories: a pile
    /// tells them much as base classes would. Where base classes did, there is nothing to tell.
    pub(crate) fn of_pile(&self, task: &Task, sorted: &ClusteredPoints) -> Option<Self> {
        if self.source == Source::Base {
            return None;
        }
        let (dim, labels, known) = (task.dim(), task.support_labels(), task.known());
        let queries = &task.points().values()[known * dim..];
        let items = Features::from_finite(dim, [task.support().values(), queries].concat());
        let clusters: Vec<usize> = labels.iter().chain(&sorted.clusters[known..]).copied().collect();
        let directions = CalibrationSettings::default().directions;
        let space = Space::fit(&items, &clusters, sorted.count, directions, true);
        let rows = space.apply(items.values());
        let examples = &rows[..labels.len() * dim];
        let variance = space::within_variance(examples, dim, labels, known)
            .or_else(|| space::within_variance(&rows, dim, &clusters, sorted.count));
        let mut estimated = Self { space, ..self.clone() };
        estimated.cut.variance = variance.unwrap_or(self.cut.variance);
        Some(estimated)
    }
}

/// The probability that so few of the rightly placed items stay below.
fn doubt(seen: &[Observation<MEMBER>], model: &[f64; MEMBER]) -> f64 {
    let right = seen.iter().filter(|o| o.outcome == 1.0);
    let mut chances: Vec<(f64, f64)> = right
        .map(|o| (f64::from(membership::chance(model, &o.features)), o.weight))
        .collect();
    chances.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = chances.iter().map(|c| c.1).sum();
    let mut below = 0.0;
    for (chance, weight) in chances {
        below += weight;
        if below > DOUBTED * total {
            return chance;
        }
    }
    0.5
}

/// A calibration with what it asks of every category.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitting {
    pub(crate) calibration: Arc<Calibration>,
    pub(crate) groups: Vec<Group>,
    /// The share of the items that are expected to belong to one of the categories.
    pub(crate) familiar: f64,
}

impl Fitting {
    /// The share that is expected where nothing is known of it.
    pub(crate) const UNKNOWN_SHARE: f64 = 0.5;
    /// However long nothing new or nothing familiar came, it may come.
    pub(crate) const LEAST_SHARE: f64 = 0.05;

    /// Some of the categories, in the given order.
    pub(crate) fn select(&self, categories: &[usize]) -> Self {
        Self {
            calibration: self.calibration.clone(),
            familiar: self.familiar,
            groups: categories.iter().map(|&category| self.groups[category]).collect(),
        }
    }

    /// The cosine that is usual in every category.
    pub(crate) fn expected(&self) -> Vec<f64> {
        let of = |group: &Group| group.expected(self.calibration.cut.variance);
        self.groups.iter().map(of).collect()
    }
}
