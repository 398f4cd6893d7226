//! Where a tree is cut: the likeliest division of its points under a model of single merges.

use super::logistic::{log_probability, logit};
use crate::choice::choice;
use crate::cluster::ward::Tree;

/// What the model of a merge looks at.
pub(crate) const MERGE: usize = 6;

/// Rounds of the search for the mean size of a cluster.
const ROUNDS: usize = 12;
/// The size is found when a round changes its logarithm by less.
const SETTLED: f64 = 0.02;

choice! {
    /// Which tree is cut.
    MergeTree {
        /// Always the merge that raises the squared error least.
        Ward = "ward",
        /// Always the merge of the highest average cosine.
        Average = "average",
    }
}

choice! {
    /// What is made of the size of clusters.
    ClusterSize {
        /// The model of merges knows the mean size, which is found along with the clusters.
        Settled = "settled",
        /// The model does not know it.
        Ignored = "ignored",
    }
}

/// How a tree is made and cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) tree: MergeTree,
    pub(crate) size: ClusterSize,
    /// The coefficients of the model of merges.
    pub(crate) model: [f64; MERGE],
    /// The variance within a class, summed over features.
    pub(crate) variance: f64,
}

/// What is seen of one merge: `cost`, the rise of the squared error in units of the variance within a class, `weight`,
/// the product of the two sides' weights over their sum, and the mean size of a cluster.
pub(crate) fn merge_features(cost: f64, weight: f64, size: f64) -> [f64; MERGE] {
    [
        1.0,
        (cost + 1e-3).ln(),
        weight.ln(),
        weight.recip(),
        cost / weight,
        size.ln(),
    ]
}

/// A tree with what the model asks of each merge.
pub(crate) struct Candidates<'a> {
    tree: &'a Tree,
    /// The rise of the squared error in units of the variance within a class, and the weight, for every merge.
    seen: Vec<(f64, f64)>,
}

/// A division of the points of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Division {
    /// The cluster of every point.
    pub(crate) clusters: Vec<usize>,
    pub(crate) count: usize,
    /// The mean number of points of a cluster that the model was asked with.
    pub(crate) size: f64,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(tree: &'a Tree, weights: &[f32], variance: f64) -> Self {
        let mut of_node: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
        let seen = tree
            .merges
            .iter()
            .map(|merge| {
                let (a, b) = (of_node[merge.left], of_node[merge.right]);
                of_node.push(a + b);
                (merge.cost / variance, a * b / (a + b))
            })
            .collect();
        Self { tree, seen }
    }

    /// What the model sees of every merge.
    pub(crate) fn features(&self, size: f64) -> impl Iterator<Item = [f64; MERGE]> {
        self.seen
            .iter()
            .map(move |&(cost, weight)| merge_features(cost, weight, size))
    }

    /// The likeliest division when clusters have the given mean size: every merge inside of a cluster is of one class,
    /// every merge that is undone is not.
    fn divide(&self, model: &[f64; MERGE], size: f64) -> Division {
        let points = self.tree.points;
        let nodes = points + self.tree.merges.len();
        let mut whole = vec![0f64; nodes];
        let mut best = vec![0f64; nodes];
        let mut keep = vec![true; nodes];
        for (at, (merge, features)) in self.tree.merges.iter().zip(self.features(size)).enumerate() {
            let odds = logit(model, &features);
            let node = points + at;
            whole[node] = whole[merge.left] + whole[merge.right] + log_probability(odds);
            let apart = best[merge.left] + best[merge.right] + log_probability(-odds);
            keep[node] = whole[node] >= apart;
            best[node] = whole[node].max(apart);
        }
        let mut cluster = vec![usize::MAX; nodes];
        let mut count = 0;
        for node in (0..nodes).rev() {
            if cluster[node] == usize::MAX {
                if !keep[node] {
                    continue;
                }
                cluster[node] = count;
                count += 1;
            }
            if let Some(merge) = node.checked_sub(points).map(|at| &self.tree.merges[at]) {
                cluster[merge.left] = cluster[node];
                cluster[merge.right] = cluster[node];
            }
        }
        cluster.truncate(points);
        Division {
            clusters: cluster,
            count,
            size,
        }
    }

    /// The likeliest division whose own mean size is the one that the model was asked with, as near as it gets from
    /// `start`.
    pub(crate) fn settle(&self, cut: &Cut, start: f64) -> Division {
        let model = &cut.model;
        let mut division = self.divide(model, start.max(1.0));
        for _ in 0..ROUNDS {
            let found = self.tree.points as f64 / division.count.max(1) as f64;
            let change = (found / division.size).ln();
            if change.abs() < SETTLED {
                break;
            }
            // Half the way: the whole way may swing between two sizes for ever.
            // A model that ignores the size gives the same division at any.
            let share = if cut.size == ClusterSize::Ignored { 1.0 } else { 0.5 };
            let size = division.size * (share * change).exp();
            division = self.divide(model, size);
        }
        division
    }
}
