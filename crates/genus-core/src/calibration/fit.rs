//! Learning from base classes: trials whose outcome is known.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::cut::{Candidates, Cut, MERGE};
use super::logistic::Observation;
use super::membership::{MEMBER, best_group};
use super::points::{ClusteredPoints, PASSES, Points};
use super::space::{Space, dimensions_within, mean_of, within_variance};
use super::{CalibrationSettings, Centre};
use crate::features::Features;
use crate::rng::Rng;

/// Streams of random numbers.
const HALVES: u64 = 0x68;
const TRIAL: u64 = 0x74;

/// Trials of each half of the base classes.
const TRIALS: u64 = 60;
/// Points of a trial at most, so that their matrix of products is kept.
const MOST_POINTS: usize = 2000;
/// Queries of a class at most.
pub(super) const MOST_QUERIES: usize = 60;
/// One outlier among so many queries at most.
const MOST_OUTLIERS: usize = 8;
/// Numbers of examples and of new classes that are tried.
const SHOTS: [usize; 4] = [1, 2, 5, 10];
const NEW: [usize; 6] = [0, 3, 5, 10, 20, 40];

/// Items of base classes in a space, class by class.
pub(super) struct Base<'a> {
    half: &'a Half,
    dim: usize,
    centre: Centre,
    /// The items of every class, kind by kind.
    kinds: Vec<Vec<Vec<usize>>>,
}

/// Examples and queries whose classes are known, the known ones first.
pub(super) struct Trial {
    points: Points,
    /// The class of every point.
    truth: Vec<usize>,
    classes: usize,
    /// Classes from this number on are outliers.
    named: usize,
    /// The variance within a class, summed over features.
    pub(super) variance: f64,
}

impl<'a> Base<'a> {
    pub(super) fn new(half: &'a Half, dim: usize, centre: Centre) -> Self {
        let mut classes = vec![Vec::new(); half.classes];
        let labelled = half.labels.iter().enumerate();
        labelled.for_each(|(row, &label)| classes[label].push(row));
        let of_kind = |kind: Vec<usize>| {
            kind.into_iter()
                .map(|class| std::mem::take(&mut classes[class]))
                .collect()
        };
        Self {
            half,
            dim,
            centre,
            kinds: by_kind(&half.kinds).into_iter().map(of_kind).collect(),
        }
    }

    /// A trial of one kind, each in turn, and of random shape: two to ten known classes, none to forty new ones, one to ten examples, and either as many
    /// queries of every class or a long tail.
    pub(super) fn trial(&self, seed: u64, number: u64) -> Trial {
        let mut rng = Rng::new(seed, &[TRIAL, number]);
        // Numbers are even in one half and odd in the other.
        let of_kind = &self.kinds[number as usize / 2 % self.kinds.len()];
        let count = of_kind.len();
        let way = 2 + rng.below(9.min(count - 1));
        let new = NEW[rng.below(NEW.len())].min(count - way);
        let shots = SHOTS[rng.below(SHOTS.len())];
        let most = (MOST_POINTS / (way + new)).clamp(1, MOST_QUERIES);
        let tail = rng.below(2) == 1;
        let even = 3 + rng.below(most.saturating_sub(3).max(1));
        let mut chosen = rng.sample(count, count);
        let others = chosen.split_off(way + new);
        let (mut support, mut labels) = (Vec::new(), Vec::new());
        let (mut queries, mut truth) = (Vec::new(), Vec::new());
        for (at, &class) in chosen.iter().enumerate() {
            let items = &of_kind[class];
            let order = rng.sample(items.len(), items.len());
            // At least one item is left to be a query.
            let examples = if at < way { shots.min(items.len() - 1) } else { 0 };
            let left = items.len() - examples;
            let wanted = if tail {
                (most.min(left) as f64).powf(rng.unit()).round() as usize
            } else {
                even
            };
            for (place, &item) in order.iter().enumerate().take(examples + wanted.min(left)) {
                if place < examples {
                    support.push(items[item]);
                    labels.push(at);
                } else {
                    queries.push(items[item]);
                    truth.push(at);
                }
            }
        }
        // In every third trial some queries belong to no class: each is the only one of its class.
        let most = others.len().min(queries.len() / MOST_OUTLIERS);
        let outliers = if rng.below(3) == 0 { rng.below(most + 1) } else { 0 };
        for (at, &class) in others[..outliers].iter().enumerate() {
            queries.push(of_kind[class][rng.below(of_kind[class].len())]);
            truth.push(way + new + at);
        }
        let classes = way + new + outliers;
        let examples = support.len();
        let mut rows: Vec<f32> = support
            .into_iter()
            .chain(queries)
            .flat_map(|item: usize| &self.half.rows[item * self.dim..][..self.dim])
            .copied()
            .collect();
        let mut variance = self.half.variance;
        if self.centre == Centre::Task {
            rows = Space::centred_on(mean_of(&rows, self.dim)).apply(&rows);
            let all: Vec<usize> = labels.iter().chain(&truth).copied().collect();
            variance = within_variance(&rows, self.dim, &all, classes).unwrap_or(variance);
        }
        let (support, queries) = rows.split_at(examples * self.dim);
        Trial {
            points: Points::new(self.dim, support, &labels, way, queries),
            truth: (0..way).chain(truth).collect(),
            classes,
            named: way + new,
            variance,
        }
    }
}

impl Trial {
    /// Points without outliers, with the class of every point, the known classes first.
    pub(super) fn new(points: Points, truth: Vec<usize>, classes: usize, variance: f64) -> Self {
        Self {
            points,
            truth,
            classes,
            named: classes,
            variance,
        }
    }

    /// The same cut with the variance of the trial.
    fn own(&self, cut: &Cut) -> Cut {
        Cut {
            variance: self.variance,
            ..cut.clone()
        }
    }

    /// What the merges of the trial's tree teach: how much of each was of one class.
    pub(super) fn merges(&self, cut: &Cut) -> Vec<Observation<MERGE>> {
        let points = &self.points;
        let cut = self.own(cut);
        let tree = points.tree(cut.tree);
        // The weight of every class in every node.
        let mut shares: Vec<Vec<f64>> = self
            .truth
            .iter()
            .zip(points.weights())
            .map(|(&class, &weight)| {
                let mut shares = vec![0.0; self.classes];
                shares[class] = f64::from(weight);
                shares
            })
            .collect();
        let candidates = Candidates::new(&tree, &cut, points.weights());
        let queries = (points.len() - points.known()).max(1) as f64;
        tree.merges
            .iter()
            .zip(candidates.features())
            .map(|(merge, features)| {
                let (a, b) = (&shares[merge.left], &shares[merge.right]);
                let (wa, wb): (f64, f64) = (a.iter().sum(), b.iter().sum());
                let most = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
                let same: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (wa * wb);
                let observation = Observation {
                    features,
                    outcome: same,
                    // A merge of mixed clusters says little, and one of large clusters decides about many points.
                    weight: most(a) / wa * most(b) / wb * wa.min(wb) / queries,
                };
                shares.push(a.iter().zip(b).map(|(a, b)| a + b).collect());
                observation
            })
            .collect()
    }
}

impl Trial {
    /// What the queries teach that come to the known classes one by one: whether the best class is theirs.
    pub(super) fn arrivals(&self) -> Vec<Observation<MEMBER>> {
        let points = &self.points;
        let affinity = points.affinity(&ClusteredPoints::prototypes(points));
        let expected: Vec<f64> = affinity
            .groups()
            .iter()
            .map(|group| group.expected(self.variance))
            .collect();
        let classes = &self.truth[points.known()..];
        let old = classes.iter().filter(|&&class| class < points.known()).count();
        // Known and new weigh the same, however many there are of each.
        let weight = |known: bool| 1.0 / (if known { old } else { classes.len() - old }) as f64;
        (points.known()..points.len())
            .map(|point| {
                let cosines: Vec<f64> = (0..points.known()).map(|class| affinity.cosine(class, point)).collect();
                let (best, features) = best_group(&cosines, &expected);
                let class = self.truth[point];
                Observation {
                    features,
                    outcome: f64::from(u8::from(class == best)),
                    weight: weight(class < points.known()),
                }
            })
            .collect()
    }

    /// What the queries teach once they are sorted: whether their category is of their class.
    pub(super) fn places(&self, cut: &Cut) -> Vec<Observation<MEMBER>> {
        let points = &self.points;
        let known = points.known();
        let sorted = points.sort(&self.own(cut), PASSES);
        let mut counts = vec![0usize; sorted.count * self.classes];
        for (point, &cluster) in sorted.clusters.iter().enumerate().skip(known) {
            counts[cluster * self.classes + self.truth[point]] += 1;
        }
        // A known class's cluster stands for that class, a new one for what most of its members are, the first of equals.
        let stands_for: Vec<usize> = (0..sorted.count)
            .map(|cluster| match cluster < known {
                true => cluster,
                false => {
                    let counts = &counts[cluster * self.classes..][..self.classes];
                    (0..self.classes).fold(0, |best, class| if counts[class] > counts[best] { class } else { best })
                }
            })
            .collect();
        let queries = (points.len() - known).max(1) as f64;
        let features = points.member_features(&sorted, &points.affinity(&sorted), self.variance);
        let seen = (known..points.len()).zip(features);
        seen.filter_map(|(point, features)| {
            let (class, cluster) = (self.truth[point], sorted.clusters[point]);
            let genuine = class < self.named && (cluster < known || class >= known);
            Some(Observation {
                features: features?,
                outcome: f64::from(u8::from(genuine && stands_for[cluster] == class)),
                weight: 1.0 / queries,
            })
        })
        .collect()
    }
}

/// The size of the largest class that trials show, when the classes have so many items.
pub(super) fn largest(sizes: &[usize]) -> f64 {
    sizes.iter().copied().max().unwrap_or(0).min(MOST_QUERIES) as f64
}

/// In how many directions items of one class differ, on average over the halves; `None` where no two differ.
pub(super) fn dimensions(halves: &[Half], dim: usize) -> Option<f64> {
    let of = |half: &Half| dimensions_within(&half.rows, dim, &half.labels, half.classes);
    let found: Vec<f64> = halves.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

/// The classes of every kind that has some.
pub(super) fn by_kind(kinds: &[usize]) -> Vec<Vec<usize>> {
    let mut classes = BTreeMap::<usize, Vec<usize>>::new();
    for (class, &kind) in kinds.iter().enumerate() {
        classes.entry(kind).or_default().push(class);
    }
    classes.into_values().collect()
}

/// Two halves of the classes of every kind, at random: each is judged in a space that was fitted on the other.
pub(super) fn halves(kinds: &[Vec<usize>], seed: u64) -> [Vec<usize>; 2] {
    let mut halves = [Vec::new(), Vec::new()];
    for classes in kinds {
        let order = Rng::new(seed, &[HALVES]).sample(classes.len(), classes.len());
        let (first, second) = order.split_at(classes.len() / 2);
        for (half, part) in halves.iter_mut().zip([first, second]) {
            half.extend(part.iter().map(|&at| classes[at]));
        }
    }
    halves
}

/// The items of some classes, numbered anew in the order of `classes`.
pub(super) fn select(items: &Features, labels: &[usize], classes: &[usize]) -> (Features, Vec<usize>) {
    let most = labels.iter().max().map_or(0, |&last| last + 1);
    let mut number = vec![usize::MAX; most];
    classes.iter().enumerate().for_each(|(at, &class)| number[class] = at);
    let rows: Vec<usize> = (0..labels.len())
        .filter(|&row| number[labels[row]] != usize::MAX)
        .collect();
    let labels = rows.iter().map(|&row| number[labels[row]]).collect();
    (items.select(&rows), labels)
}

/// Half of the base classes in the space of the other half.
pub(super) struct Half {
    pub(super) rows: Vec<f32>,
    pub(super) labels: Vec<usize>,
    pub(super) classes: usize,
    /// The kind of every class.
    kinds: Vec<usize>,
    pub(super) variance: f64,
}

impl Half {
    /// The classes `judged` in the space that `settings` makes of the classes `fitted`; `None` when none varies.
    pub(super) fn new(
        items: &Features,
        labels: &[usize],
        kinds: &[usize],
        [fitted, judged]: [&[usize]; 2],
        space: impl Fn(&Features, &[usize], usize) -> Space,
    ) -> Option<Self> {
        let (others, other_labels) = select(items, labels, fitted);
        let space = space(&others, &other_labels, fitted.len());
        let (own, labels) = select(items, labels, judged);
        let rows = space.apply(own.values());
        let variance = within_variance(&rows, items.dim(), &labels, judged.len())?;
        Some(Self {
            rows,
            labels,
            classes: judged.len(),
            kinds: judged.iter().map(|&class| kinds[class]).collect(),
            variance,
        })
    }
}

/// What `learn` says of every trial of every half, in order.
pub(super) fn observe<T: Send>(
    halves: &[Half],
    dim: usize,
    settings: CalibrationSettings,
    learn: impl Fn(&Trial) -> Vec<T> + Sync,
) -> Vec<T> {
    let mut all = Vec::new();
    for (at, half) in halves.iter().enumerate() {
        let base = Base::new(half, dim, settings.centre);
        let of_trials: Vec<Vec<T>> = (0..TRIALS)
            .into_par_iter()
            .map(|number| learn(&base.trial(settings.seed, 2 * number + at as u64)))
            .collect();
        all.extend(of_trials.into_iter().flatten());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_trial_mixes_kinds() {
        const DIM: usize = 8;
        // Items of one kind lie in the first four dimensions, those of the other in the last four.
        let (mut rng, mut rows, mut labels) = (Rng::new(3, &[]), Vec::new(), Vec::new());
        let kinds: Vec<usize> = (0..24).map(|class| 5 * (class % 2)).collect();
        for (class, &kind) in kinds.iter().enumerate() {
            for _ in 0..6 {
                let first = if kind == 0 { 0 } else { 4 };
                let value = |at: usize, rng: &mut Rng| match (first..first + 4).contains(&at) {
                    true => 0.1 + rng.unit() as f32,
                    false => 0.0,
                };
                rows.extend((0..DIM).map(|at| value(at, &mut rng)));
                labels.push(class);
            }
        }
        let half = Half {
            rows,
            labels,
            classes: kinds.len(),
            kinds,
            variance: 0.5,
        };
        let base = Base::new(&half, DIM, Centre::None);
        let mut seen = [0, 0];
        for number in 0..40 {
            let points = base.trial(0, number).points.items();
            let of_first = points.chunks_exact(DIM).filter(|row| row[0] != 0.0).count();
            assert!(of_first == 0 || of_first == points.len() / DIM, "trial {number}");
            seen[usize::from(of_first == 0)] += 1;
        }
        assert_eq!(seen, [20, 20]);
    }
}
