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
    /// The number of points of the largest class that the model was learnt from.
    pub(crate) largest: f64,
    /// In how many directions items of one class differ.
    pub(crate) dimensions: f64,
}

impl Cut {
    /// What it costs to merge the two halves of one class, in units of what it costs to merge two items of it.
    ///
    /// The halves of a class of so many members lie apart along its longest direction, and by chance the longest of few
    /// directions is longer.
    fn growth(&self, members: f64) -> f64 {
        (1.0 + (members / self.dimensions).sqrt()).powi(2)
    }

    /// What the model sees of one merge: the rise of the squared error, and the product of the two sides' weights over their
    /// sum, where clusters have the given mean size.
    ///
    /// Halves of one class drift apart as it grows, and how fast was seen up to the largest class only. A merge of far larger
    /// clusters is judged by the distance of their centres, as if their halves weighed as much as that class.
    pub(crate) fn features(&self, cost: f64, weight: f64, size: f64) -> [f64; MERGE] {
        let seen = weight.min(self.largest);
        let cost = cost / self.variance * seen / weight / self.growth(4.0 * seen);
        let size = match self.size {
            ClusterSize::Settled => size.clamp(1.0, (4.0 * self.largest).max(1.0)),
            // Its logarithm never changes, so it gets no coefficient.
            ClusterSize::Ignored => 1.0,
        };
        [1.0, (cost + 1e-3).ln(), seen.ln(), seen.recip(), cost / seen, size.ln()]
    }
}

/// A tree with what the model asks of each merge.
pub(crate) struct Candidates<'a> {
    tree: &'a Tree,
    cut: &'a Cut,
    /// The weight of every merge.
    weights: Vec<f64>,
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
    pub(crate) fn new(tree: &'a Tree, cut: &'a Cut, weights: &[f32]) -> Self {
        let mut of_node: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
        let weights = tree
            .merges
            .iter()
            .map(|merge| {
                let (a, b) = (of_node[merge.left], of_node[merge.right]);
                of_node.push(a + b);
                a * b / (a + b)
            })
            .collect();
        Self { tree, cut, weights }
    }

    /// What the model sees of every merge.
    pub(crate) fn features(&self, size: f64) -> impl Iterator<Item = [f64; MERGE]> {
        let merges = self.tree.merges.iter().zip(&self.weights);
        merges.map(move |(merge, &weight)| self.cut.features(merge.cost, weight, size))
    }

    /// The likeliest division when clusters have the given mean size: every merge inside of a cluster is of one class,
    /// every merge that is undone is not.
    fn divide(&self, size: f64) -> Division {
        let points = self.tree.points;
        let nodes = points + self.tree.merges.len();
        let mut whole = vec![0f64; nodes];
        let mut best = vec![0f64; nodes];
        let mut keep = vec![true; nodes];
        for (at, (merge, features)) in self.tree.merges.iter().zip(self.features(size)).enumerate() {
            let odds = logit(&self.cut.model, &features);
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
    pub(crate) fn settle(&self, start: f64) -> Division {
        let mut division = self.divide(start.max(1.0));
        for _ in 0..ROUNDS {
            let found = self.tree.points as f64 / division.count.max(1) as f64;
            let change = (found / division.size).ln();
            if change.abs() < SETTLED {
                break;
            }
            // Half the way, as the whole way may swing between two sizes for ever; a model that ignores the size needs none.
            let share = if self.cut.size == ClusterSize::Ignored {
                1.0
            } else {
                0.5
            };
            division = self.divide(division.size * (share * change).exp());
        }
        division
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::logistic::probability;
    use crate::cluster::ward::ward;
    use crate::rng::Rng;

    fn random_tree(n: usize, apart: usize, seed: u64) -> (Tree, Vec<f32>) {
        let mut rng = Rng::new(seed, &[n as u64]);
        let rows: Vec<f32> = (0..n * 3).map(|_| rng.unit() as f32).collect();
        let weights: Vec<f32> = (0..n).map(|at| if at < apart { 3.0 } else { 1.0 }).collect();
        (ward(&rows, 3, &weights, apart), weights)
    }

    fn cut(model: [f64; MERGE], variance: f64) -> Cut {
        Cut {
            tree: MergeTree::Ward,
            size: ClusterSize::Settled,
            model,
            variance,
            largest: 40.0,
            dimensions: 100.0,
        }
    }

    #[test]
    fn merges_of_larger_clusters_than_were_seen_are_judged_by_their_distance() {
        let cut = cut([0.0; MERGE], 0.5);
        let of = |members: f64, distance: f64| cut.features(members / 4.0 * distance, members / 4.0, 12.0);
        assert!(of(80.0, 0.3)[1] < of(160.0, 0.3)[1]);
        let near = |a: [f64; MERGE], b: [f64; MERGE]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(of(160.0, 0.3), of(4000.0, 0.3)) && !near(of(160.0, 0.3), of(4000.0, 0.4)));
        // In units of the variance: the cost, and the distance.
        let seen = cut.features(3.0, 5.0, 12.0);
        let cost = 6.0 / cut.growth(20.0);
        assert!((seen[1] - (cost + 1e-3).ln()).abs() < 1e-9 && (seen[4] - cost / 5.0).abs() < 1e-9);
        assert_eq!(cut.features(3.0, 5.0, 1e9)[5], 160f64.ln());
    }

    /// Every way to undo merges from the roots down, with the probability of its being right.
    fn divisions(tree: &Tree, chances: &[f64], node: usize) -> Vec<(Vec<Vec<usize>>, f64)> {
        let Some(at) = node.checked_sub(tree.points) else {
            return vec![(vec![vec![node]], 1.0)];
        };
        let merge = tree.merges[at];
        let (mut members, mut whole, mut below) = (Vec::new(), 1.0, vec![node]);
        while let Some(node) = below.pop() {
            match node.checked_sub(tree.points) {
                None => members.push(node),
                Some(at) => {
                    whole *= chances[at];
                    below.extend([tree.merges[at].left, tree.merges[at].right]);
                }
            }
        }
        let mut all = vec![(vec![members], whole)];
        for (left, a) in divisions(tree, chances, merge.left) {
            for (right, b) in divisions(tree, chances, merge.right) {
                all.push(([left.clone(), right].concat(), a * b * (1.0 - chances[at])));
            }
        }
        all
    }

    #[test]
    fn no_division_is_likelier() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed, &[3]);
            let (n, apart) = (1 + rng.below(8), rng.below(3));
            let apart = apart.min(n);
            let (tree, weights) = random_tree(n, apart, seed);
            let model = [0.0; MERGE].map(|_: f64| 3.0 * (rng.unit() - 0.5));
            let cut = cut(model, 0.2);
            let candidates = Candidates::new(&tree, &cut, &weights);
            let chances: Vec<f64> = candidates
                .features(2.0)
                .map(|f| probability(logit(&model, &f)))
                .collect();
            let found = candidates.divide(2.0);
            // The roots are the nodes that no merge took.
            let taken: Vec<usize> = tree.merges.iter().flat_map(|merge| [merge.left, merge.right]).collect();
            let roots = (0..n + tree.merges.len()).filter(|node| !taken.contains(node));
            let mut clusters = 0;
            for root in roots {
                let all = divisions(&tree, &chances, root);
                let best = all.iter().map(|division| division.1).fold(0.0, f64::max);
                let own = all.iter().find(|(division, _)| {
                    division.iter().all(|members| {
                        let cluster = found.clusters[members[0]];
                        let size = found.clusters.iter().filter(|&&other| other == cluster).count();
                        size == members.len() && members.iter().all(|&member| found.clusters[member] == cluster)
                    })
                });
                let (division, chance) = own.expect("a division of the tree");
                assert!(*chance >= best * (1.0 - 1e-9), "{chance} for {best}, seed {seed}");
                clusters += division.len();
            }
            assert_eq!(clusters, found.count);
        }
    }

    #[test]
    fn the_size_that_is_settled_on_is_that_of_the_clusters() {
        // A model in which larger clusters make merges likelier, as it is learnt.
        let model = [2.0, -2.0, 0.0, 0.0, -0.5, 0.5];
        let mut settled = 0;
        for seed in 0..50 {
            let (tree, weights) = random_tree(80, 4, seed);
            let division = Candidates::new(&tree, &cut(model, 0.05), &weights).settle(80.0 / 12.0);
            let own = 80.0 / division.count as f64;
            // Where the size jumps past its own clusters' there is none to settle on.
            settled += usize::from((own / division.size).ln().abs() < 0.1);
            assert_eq!(division.clusters.iter().max(), Some(&(division.count - 1)));
        }
        assert!(settled > 35, "{settled} of 50");
    }

    #[test]
    fn known_classes_are_never_in_one_cluster() {
        let (tree, weights) = random_tree(30, 5, 1);
        let eager = [50.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let division = Candidates::new(&tree, &cut(eager, 0.1), &weights).divide(5.0);
        assert_eq!(division.count, 5);
        let mut classes = division.clusters[..5].to_vec();
        classes.sort_unstable();
        assert_eq!(classes, [0, 1, 2, 3, 4]);
    }
}
