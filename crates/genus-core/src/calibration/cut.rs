//! Where a tree is cut: the likeliest division of its points under a model of single merges.

use super::logistic::{log_probability, logit};
use crate::choice::choice;
use crate::cluster::ward::Tree;

/// What the model of a merge looks at.
pub(crate) const MERGE: usize = 5;

/// What a division costs in contrast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Price {
    /// For merging more or less eagerly than was learnt: of the square of what is added to the logits …
    square: f64,
    /// … and again of every category that there is without it: what is true of many merges is seldom true by chance.
    of_each: f64,
    /// That never costs more …
    most: f64,
    /// … nor more than this where categories are larger on average than any class that was learnt from.
    beyond: f64,
    /// For the logarithm of the number of categories: items agree a little better with ever smaller ones by chance.
    categories: f64,
}

impl Price {
    /// Where the model was learnt from base classes.
    pub(super) const LEARNT: Self = Self {
        square: 0.0,
        of_each: 0.0015,
        most: f64::INFINITY,
        beyond: f64::INFINITY,
        categories: 0.01,
    };
    /// Where it is estimated. In a space that nothing was damped in, contrast alone likes categories of several classes, so
    /// small steps are dearer and many categories are not; and a pile may be quite unlike those that the prior was learnt from,
    /// above all a large one.
    pub(super) const ESTIMATED: Self = Self {
        square: 0.06,
        of_each: 0.0,
        most: 0.24,
        beyond: 0.15,
        categories: 0.0,
    };
}

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
    /// How eagerly clusters are merged.
    Eagerness {
        /// As eagerly as leaves the items nearest to their own clusters and farthest from the others, not far from what was
        /// learnt.
        Chosen = "chosen",
        /// As was learnt.
        Learnt = "learnt",
    }
}

/// How a tree is made and cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) tree: MergeTree,
    pub(crate) eagerness: Eagerness,
    /// What a division costs in contrast.
    pub(crate) price: Price,
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

    /// The price of a division into so many categories, of so many points each on average, for which so much was added to the
    /// logits; without it there would be `learnt` categories.
    pub(super) fn price(&self, categories: usize, size: f64, step: f64, learnt: usize) -> f64 {
        let Price {
            square,
            of_each,
            most,
            beyond,
            categories: many,
        } = self.price;
        let limit = if size > self.largest { beyond } else { most };
        let leaving = (square + of_each * learnt as f64) * step * step;
        leaving.min(limit) + many * (categories.max(1) as f64).ln()
    }

    /// What the model sees of one merge: the rise of the squared error, and the product of the two sides' weights over their
    /// sum.
    ///
    /// Halves of one class drift apart as it grows, and how fast was seen up to the largest class only. A merge of far larger
    /// clusters is judged by the distance of their centres, as if their halves weighed as much as that class.
    pub(crate) fn features(&self, cost: f64, weight: f64) -> [f64; MERGE] {
        let seen = weight.min(self.largest);
        let cost = cost / self.variance * seen / weight / self.growth(4.0 * seen);
        [1.0, (cost + 1e-3).ln(), seen.ln(), seen.recip(), cost / seen]
    }
}

/// A tree with what the model asks of each merge.
pub(crate) struct Candidates<'a> {
    tree: &'a Tree,
    cut: &'a Cut,
    /// The weight of every merge.
    weights: Vec<f64>,
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
    pub(crate) fn features(&self) -> impl Iterator<Item = [f64; MERGE]> {
        let merges = self.tree.merges.iter().zip(&self.weights);
        merges.map(|(merge, &weight)| self.cut.features(merge.cost, weight))
    }

    /// The logits that the model gives to all merges.
    pub(crate) fn logits(&self) -> Vec<f64> {
        self.features().map(|seen| logit(&self.cut.model, &seen)).collect()
    }

    /// The cluster of every point in the likeliest division when the merges have these logits: every merge inside a
    /// cluster is of one class, every merge that is undone is not.
    pub(crate) fn divide(&self, logits: impl Iterator<Item = f64>) -> Vec<usize> {
        let points = self.tree.points;
        let nodes = points + self.tree.merges.len();
        let mut whole = vec![0f64; nodes];
        let mut best = vec![0f64; nodes];
        let mut keep = vec![true; nodes];
        for (at, (merge, logit)) in self.tree.merges.iter().zip(logits).enumerate() {
            let node = points + at;
            whole[node] = whole[merge.left] + whole[merge.right] + log_probability(logit);
            let apart = best[merge.left] + best[merge.right] + log_probability(-logit);
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
        cluster
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
            eagerness: Eagerness::Chosen,
            price: Price::LEARNT,
            model,
            variance,
            largest: 40.0,
            dimensions: 100.0,
        }
    }

    #[test]
    fn merges_of_larger_clusters_than_were_seen_are_judged_by_their_distance() {
        let cut = cut([0.0; MERGE], 0.5);
        let of = |members: f64, distance: f64| cut.features(members / 4.0 * distance, members / 4.0);
        assert!(of(80.0, 0.3)[1] < of(160.0, 0.3)[1]);
        let near = |a: [f64; MERGE], b: [f64; MERGE]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(of(160.0, 0.3), of(4000.0, 0.3)) && !near(of(160.0, 0.3), of(4000.0, 0.4)));
        // In units of the variance: the cost, and the distance.
        let seen = cut.features(3.0, 5.0);
        let cost = 6.0 / cut.growth(20.0);
        assert!((seen[1] - (cost + 1e-3).ln()).abs() < 1e-9 && (seen[4] - cost / 5.0).abs() < 1e-9);
    }

    #[test]
    fn leaving_what_was_learnt_costs_more_where_more_was_learnt() {
        let mut cut = cut([0.0; MERGE], 0.5);
        assert!(cut.price(10, 15.0, 2.0, 10) < cut.price(10, 15.0, 2.0, 50));
        assert!(cut.price(10, 15.0, 1.0, 10) < cut.price(10, 15.0, -2.0, 10));
        assert!(cut.price(10, 15.0, 0.0, 10) < cut.price(11, 15.0, 0.0, 10));
        // An estimate is less sure, and least of all of categories larger than any that was seen.
        cut.price = Price::ESTIMATED;
        let (seen, larger) = (cut.price(10, 40.0, 9.0, 10), cut.price(10, 41.0, 9.0, 10));
        assert!(larger < seen && seen == cut.price(10, 40.0, 6.5, 50), "{larger} {seen}");
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
            let chances: Vec<f64> = candidates.logits().into_iter().map(probability).collect();
            let found = candidates.divide(candidates.logits().into_iter());
            // The roots are the nodes that no merge took.
            let taken: Vec<usize> = tree.merges.iter().flat_map(|merge| [merge.left, merge.right]).collect();
            let roots = (0..n + tree.merges.len()).filter(|node| !taken.contains(node));
            let mut clusters = 0;
            for root in roots {
                let all = divisions(&tree, &chances, root);
                let best = all.iter().map(|division| division.1).fold(0.0, f64::max);
                let own = all.iter().find(|(division, _)| {
                    division.iter().all(|members| {
                        let cluster = found[members[0]];
                        let size = found.iter().filter(|&&other| other == cluster).count();
                        size == members.len() && members.iter().all(|&member| found[member] == cluster)
                    })
                });
                let (division, chance) = own.expect("a division of the tree");
                assert!(*chance >= best * (1.0 - 1e-9), "{chance} for {best}, seed {seed}");
                clusters += division.len();
            }
            assert_eq!(Some(clusters - 1), found.into_iter().max());
        }
    }

    #[test]
    fn known_classes_are_never_in_one_cluster() {
        let (tree, weights) = random_tree(30, 5, 1);
        let eager = cut([50.0, 0.0, 0.0, 0.0, 0.0], 0.1);
        let candidates = Candidates::new(&tree, &eager, &weights);
        let clusters = candidates.divide(candidates.logits().into_iter());
        assert_eq!(clusters.iter().max(), Some(&4));
        let mut classes = clusters[..5].to_vec();
        classes.sort_unstable();
        assert_eq!(classes, [0, 1, 2, 3, 4]);
    }
}
