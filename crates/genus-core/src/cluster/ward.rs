//! Ward's tree over weighted points: always the merge that raises the sum of squared distances to the centres least.

use std::cmp::Ordering;

use crate::linalg::{self, Work};

/// One merge: two nodes become one.
///
/// Nodes below the number of points are the points themselves; after them, node `points + i` is merge `i`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Merge {
    /// The node that holds the lower first point.
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// By how much the merge raises the sum of squared distances to the centres: `h·|a − b|²`, where `a` and `b` are the
    /// centres and `h = wa·wb / (wa + wb)`.
    pub(crate) cost: f64,
}

/// All merges, the cheapest first and every node after its parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) points: usize,
    pub(crate) merges: Vec<Merge>,
}

/// The tree of points given by their rows of `dim` features; see [`ward_of_gram`].
pub(crate) fn ward(rows: &[f32], dim: usize, weights: &[f32], apart: usize) -> Tree {
    ward_of_gram(&linalg::gram(rows, dim), weights, apart)
}

/// The tree of points given by their dot products, an n × n matrix; the weights must be above zero.
///
/// The first `apart` points never share a cluster, so that as many roots remain. A merge of two clusters that hold such
/// points costs infinitely much; all others cost what Ward says, and merging never brings a third cluster nearer than the
/// nearer of the two was. So clusters that are each other's nearest may merge at once, whatever is cheaper elsewhere: sorted
/// afterwards, the merges are those of always taking the cheapest pair, and of equally cheap ones that with the lowest
/// first points. What rounding makes equal or unequal counts as such.
pub(crate) fn ward_of_gram(gram: &[f32], weights: &[f32], apart: usize) -> Tree {
    linalg::wide(Chain { gram, weights, apart }).into_tree(weights.len())
}

/// Where a merge stands in the order of merges. The clusters are named by their first points, the lower one first.
#[derive(Clone, Copy, Debug)]
struct Rank {
    cost: f32,
    keep: u32,
    drop: u32,
}

impl Rank {
    const FIRST: Rank = Rank {
        cost: 0.0,
        keep: 0,
        drop: 0,
    };

    fn order(&self, other: &Rank) -> Ordering {
        let points = (self.keep, self.drop).cmp(&(other.keep, other.drop));
        self.cost.total_cmp(&other.cost).then(points)
    }
}

/// Merges in the order in which they were found: a node after its parts, not yet sorted.
struct Merges {
    /// Of every cluster, by its first point, the rank of its last merge.
    last: Vec<Rank>,
    found: Vec<(Rank, u32, u32)>,
}

impl Merges {
    fn new(points: usize) -> Self {
        Self {
            last: vec![Rank::FIRST; points],
            found: Vec::with_capacity(points),
        }
    }

    /// Notes the merge of the clusters with the first points `keep < drop`.
    fn push(&mut self, keep: usize, drop: usize, cost: f32) {
        let (low, high) = (keep as u32, drop as u32);
        let own = Rank {
            cost,
            keep: low,
            drop: high,
        };
        // A node never comes before its parts; rounding must not say otherwise.
        let rank = [self.last[keep], self.last[drop]]
            .into_iter()
            .fold(own, |a, b| if a.order(&b).is_lt() { b } else { a });
        self.last[keep] = rank;
        self.found.push((rank, low, high));
    }

    fn into_tree(mut self, points: usize) -> Tree {
        // Stable: where ranks are equal a node stays behind its parts.
        self.found.sort_by(|a, b| a.0.order(&b.0));
        let mut node_of: Vec<usize> = (0..points).collect();
        let merges = self.found.iter().enumerate().map(|(at, &(rank, keep, drop))| {
            let (left, right) = (node_of[keep as usize], node_of[drop as usize]);
            node_of[keep as usize] = points + at;
            Merge {
                left,
                right,
                cost: f64::from(rank.cost),
            }
        });
        Tree {
            points,
            merges: merges.collect(),
        }
    }
}

/// Eight numbers at a time: what vectorises.
const LANES: usize = 8;

/// Merges along nearest-neighbour chains in a square matrix of costs.
///
/// A cluster lives in the row of its first point. So those that hold one of the first `apart` points are the first rows for
/// ever, and all that keeps them apart is an infinite corner of the matrix.
struct Chain<'a> {
    gram: &'a [f32],
    weights: &'a [f32],
    apart: usize,
}

impl Work for Chain<'_> {
    type Output = Merges;

    #[inline(always)]
    fn run(self) -> Merges {
        let n = self.weights.len();
        let (mut costs, side) = self.costs();
        let mut weights = self.weights.to_vec();
        weights.resize(side, 1.0);
        let mut alive: Vec<usize> = (0..n).collect();
        let mut merges = Merges::new(n);
        let mut chain: Vec<usize> = Vec::with_capacity(n);
        while alive.len() > self.apart.max(1) {
            if chain.is_empty() {
                chain.push(alive[alive.len() - 1]);
            }
            // Whether two links of the chain cost the same.
            let mut tied = false;
            let (x, y, cost) = loop {
                let tip = chain[chain.len() - 1];
                let row = &costs[tip * side..][..side];
                let (nearest, cost) = smallest(row);
                match chain.len().checked_sub(2).map(|before| chain[before]) {
                    Some(before) if before == nearest => break (tip, before, cost),
                    Some(before) => tied |= row[before] == cost,
                    None => {}
                }
                if cost == f32::INFINITY {
                    return merges;
                }
                chain.push(nearest);
            };
            // Links that cost more than what follows them stay right whatever merges at the tip. Between equals the points
            // decide, and a merged cluster may have lower ones.
            match tied {
                true => chain.clear(),
                false => chain.truncate(chain.len() - 2),
            }
            let (keep, drop) = (x.min(y), x.max(y));
            merges.push(keep, drop, cost);

            let (kept_weight, dropped_weight) = (weights[keep], weights[drop]);
            weights[keep] = kept_weight + dropped_weight;
            let (upper, lower) = costs.split_at_mut(drop * side);
            let kept_row = &mut upper[keep * side..][..side];
            for ((v, &other), &weight) in kept_row.iter_mut().zip(&lower[..side]).zip(&weights) {
                let sum = (kept_weight + weight) * *v + (dropped_weight + weight) * other - weight * cost;
                let merged = sum / (kept_weight + dropped_weight + weight);
                // Rounding must not bring a cluster nearer than its parts: chains rely on that.
                *v = larger(merged, smaller(*v, other));
            }
            kept_row[keep] = f32::INFINITY;
            kept_row[drop] = f32::INFINITY;
            alive.retain(|&cluster| cluster != drop);
            for &cluster in &alive {
                costs[cluster * side + keep] = costs[keep * side + cluster];
                costs[cluster * side + drop] = f32::INFINITY;
            }
        }
        merges
    }
}

impl Chain<'_> {
    /// The costs of merging every two points, in rows of a whole number of lanes.
    #[inline(always)]
    fn costs(&self) -> (Vec<f32>, usize) {
        let n = self.weights.len();
        let side = n.next_multiple_of(LANES);
        let squares: Vec<f32> = (0..n).map(|i| self.gram[i * n + i]).collect();
        let mut costs = vec![f32::INFINITY; n * side];
        for (i, row) in costs.chunks_exact_mut(side.max(1)).enumerate() {
            let (weight, square) = (self.weights[i], squares[i]);
            let others = self.weights.iter().zip(&squares).zip(&self.gram[i * n..][..n]);
            for (cost, ((&other_weight, &other_square), &dot)) in row.iter_mut().zip(others) {
                *cost = rise(weight, other_weight, larger(square + other_square - 2.0 * dot, 0.0));
            }
            row[i] = f32::INFINITY;
            if i < self.apart {
                row[..self.apart].fill(f32::INFINITY);
            }
        }
        (costs, side)
    }
}

/// What it costs to merge two clusters whose centres are so far from each other.
#[inline(always)]
fn rise(weight: f32, other: f32, squared_distance: f32) -> f32 {
    weight * other / (weight + other) * squared_distance
}

// `f32::max` treats NaN in a way that does not vectorise; there are none here.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The first of the smallest values and where it is, of a whole number of lanes.
#[inline(always)]
fn smallest(values: &[f32]) -> (usize, f32) {
    let mut lanes = [f32::INFINITY; LANES];
    for chunk in values.chunks_exact(LANES) {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = smaller(*lane, v);
        }
    }
    let least = lanes.into_iter().fold(f32::INFINITY, smaller);
    let found = |chunk: &[f32]| chunk.iter().fold(false, |found, &v| found | (v == least));
    let chunk = values.chunks_exact(LANES).position(found).unwrap_or(0);
    let rest = &values[(chunk * LANES).min(values.len())..];
    let at = rest.iter().position(|&v| v == least).unwrap_or(0);
    (chunk * LANES + at, least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Weighted points, the first `apart` of which never share a cluster.
    struct Case {
        rows: Vec<f32>,
        dim: usize,
        weights: Vec<f32>,
        apart: usize,
    }

    impl Case {
        /// Around a few centres, with weights that are all one or between a half and eight.
        fn random(n: usize, dim: usize, apart: usize, weighted: bool, seed: u64) -> Self {
            let mut rng = Rng::new(seed, &[81, n as u64, dim as u64]);
            let groups = 1 + rng.below(8);
            let centres: Vec<f64> = (0..groups * dim).map(|_| 2.0 * rng.unit() - 1.0).collect();
            let mut rows = Vec::new();
            for _ in 0..n {
                let centre = rng.below(groups) * dim;
                rows.extend((centre..centre + dim).map(|at| (centres[at] + 0.8 * rng.unit()) as f32));
            }
            let weight = |rng: &mut Rng| if weighted { 0.5 * 16f64.powf(rng.unit()) } else { 1.0 };
            let weights = (0..n).map(|_| weight(&mut rng) as f32).collect();
            Self {
                rows,
                dim,
                weights,
                apart,
            }
        }

        /// Codes of a few signs: most costs are equal and most points have copies.
        fn signs(n: usize, dim: usize, apart: usize, seed: u64) -> Self {
            let mut rng = Rng::new(seed, &[82]);
            Self {
                rows: (0..n * dim)
                    .map(|_| if rng.below(2) == 0 { -1.0 } else { 1.0 })
                    .collect(),
                dim,
                weights: vec![1.0; n],
                apart,
            }
        }

        fn points(&self) -> usize {
            self.weights.len()
        }

        fn chained(&self) -> Tree {
            ward(&self.rows, self.dim, &self.weights, self.apart)
        }

        fn clusters(&self) -> Clusters {
            let row = |row: &[f32]| row.iter().map(|&v| f64::from(v)).collect();
            Clusters {
                centres: self.rows.chunks_exact(self.dim).map(row).collect(),
                weights: self.weights.iter().map(|&w| f64::from(w)).collect(),
                apart: self.apart,
            }
        }
    }

    /// Clusters in the plainest way, each under its first point.
    struct Clusters {
        centres: Vec<Vec<f64>>,
        weights: Vec<f64>,
        apart: usize,
    }

    impl Clusters {
        fn cost(&self, a: usize, b: usize) -> f64 {
            let (wa, wb) = (self.weights[a], self.weights[b]);
            let pairs = self.centres[a].iter().zip(&self.centres[b]);
            let squared: f64 = pairs.map(|(x, y)| (x - y) * (x - y)).sum();
            if a.max(b) < self.apart {
                f64::INFINITY
            } else {
                wa * wb / (wa + wb) * squared
            }
        }

        fn merge(&mut self, a: usize, b: usize) {
            let (wa, wb) = (self.weights[a], self.weights[b]);
            let dropped = std::mem::take(&mut self.centres[b]);
            for (x, y) in self.centres[a].iter_mut().zip(dropped) {
                *x = (wa * *x + wb * y) / (wa + wb);
            }
            self.weights[a] += wb;
        }
    }

    /// Always the cheapest pair of all, the one with the lowest first points where several are.
    fn sequential(case: &Case) -> Tree {
        let n = case.points();
        let mut clusters = case.clusters();
        let mut alive: Vec<usize> = (0..n).collect();
        let mut node_of: Vec<usize> = (0..n).collect();
        let mut merges = Vec::new();
        while alive.len() > case.apart.max(1) {
            let mut best = (f64::INFINITY, 0, 0);
            for (at, &a) in alive.iter().enumerate() {
                for &b in &alive[at + 1..] {
                    let cost = clusters.cost(a, b);
                    if cost < best.0 {
                        best = (cost, a, b);
                    }
                }
            }
            let (cost, a, b) = best;
            clusters.merge(a, b);
            alive.retain(|&cluster| cluster != b);
            merges.push(Merge {
                left: node_of[a],
                right: node_of[b],
                cost,
            });
            node_of[a] = n + merges.len() - 1;
        }
        Tree { points: n, merges }
    }

    fn nodes(tree: &Tree) -> Vec<(usize, usize)> {
        tree.merges.iter().map(|merge| (merge.left, merge.right)).collect()
    }

    /// The first points of every two clusters that merge, lowest pairs first, and the costs, lowest first: rounding may swap
    /// merges that cost almost the same.
    fn pairs_and_costs(tree: &Tree) -> (Vec<(usize, usize)>, Vec<f64>) {
        let mut first_of: Vec<usize> = (0..tree.points).collect();
        let mut pairs = Vec::new();
        for merge in &tree.merges {
            pairs.push((first_of[merge.left], first_of[merge.right]));
            first_of.push(first_of[merge.left]);
        }
        pairs.sort_unstable();
        (pairs, tree.merges.iter().map(|merge| merge.cost).collect())
    }

    fn assert_same(found: &Tree, expected: &Tree, what: &str) {
        let (found, expected) = (pairs_and_costs(found), pairs_and_costs(expected));
        assert_eq!(found.0, expected.0, "{what}");
        for (f, e) in found.1.iter().zip(&expected.1) {
            assert!((f - e).abs() <= 1e-4 * e + 1e-6, "{what}: {f} for {e}");
        }
    }

    /// Replays a tree: every merge must be of two nodes that are there, at the cost of merging them, not cheaper than the
    /// one before, and, up to rounding, no other merge may be cheaper at that time.
    fn check(case: &Case, tree: &Tree) {
        let n = case.points();
        assert_eq!(
            (tree.points, tree.merges.len()),
            (n, n - case.apart.max(1).min(n)),
            "merges are missing"
        );
        let mut clusters = case.clusters();
        let mut alive: Vec<usize> = (0..n).collect();
        let mut first_of: Vec<Option<usize>> = (0..n).map(Some).collect();
        let mut before = 0.0;
        for merge in &tree.merges {
            let a = first_of[merge.left].take().unwrap();
            let b = first_of[merge.right].take().unwrap();
            assert!(a < b, "{merge:?}");
            let cost = clusters.cost(a, b);
            let tolerance = 1e-4 * cost + 1e-5;
            assert!((merge.cost - cost).abs() <= tolerance, "{merge:?}: {cost}");
            assert!(merge.cost >= before, "{merge:?} after {before}");
            if n <= 100 {
                let others = |&x: &usize| alive.iter().filter(move |&&y| y > x).map(move |&y| (x, y));
                let cheapest = alive.iter().flat_map(others).map(|(x, y)| clusters.cost(x, y));
                assert!(cost <= cheapest.fold(f64::INFINITY, f64::min) + tolerance, "{merge:?}");
            }
            before = merge.cost;
            clusters.merge(a, b);
            alive.retain(|&cluster| cluster != b);
            first_of.push(Some(a));
        }
        let roots: Vec<usize> = first_of.into_iter().flatten().collect();
        assert!(roots.len() == case.apart.max(1).min(n));
        assert!(roots.iter().all(|&root| root < case.apart.max(1)), "{roots:?}");
    }

    /// Many shapes: few and many points, all numbers of features, none or some of them apart.
    fn cases() -> impl Iterator<Item = Case> {
        (0..240).map(|seed| {
            let mut rng = Rng::new(seed, &[83]);
            let n = 2 + rng.below(90);
            let apart = [0, 1, 2, rng.below(n), n][rng.below(5)].min(n);
            Case::random(n, 1 + rng.below(30), apart, seed % 3 != 0, seed)
        })
    }

    #[test]
    fn chains_make_the_merges_of_always_taking_the_cheapest() {
        for (at, case) in cases().enumerate() {
            let tree = case.chained();
            check(&case, &tree);
            assert_same(&tree, &sequential(&case), &format!("case {at}"));
        }
    }

    #[test]
    fn ties_and_copies_leave_the_merges_valid() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, &[84]);
            let (n, dim) = (2 + rng.below(70), 1 + rng.below(7));
            let case = Case::signs(n, dim, rng.below(n.min(9)), seed);
            check(&case, &case.chained());
        }
    }

    #[test]
    fn of_equally_cheap_merges_that_of_the_lowest_points_is_first() {
        // All the points of a corner are copies of each other, and the corners are equally far from each other.
        let corners = [2, 0, 1, 2, 2, 1, 0, 2, 1, 0, 1];
        let rows = corners
            .iter()
            .flat_map(|&at| (0..3).map(move |i| if i == at { 1.0 } else { 0.0 }));
        for apart in 0..4 {
            let case = Case {
                rows: rows.clone().collect(),
                dim: 3,
                weights: vec![1.0; corners.len()],
                apart,
            };
            let copies = corners.len() - 3;
            let expected = nodes(&sequential(&case));
            for tree in [case.chained()] {
                assert_eq!(nodes(&tree)[..copies], expected[..copies], "{apart} apart");
                check(&case, &tree);
            }
        }
        // An equilateral triangle: whichever two merge, the third is as far from them as they were from each other.
        let case = Case {
            rows: vec![0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
            dim: 3,
            weights: vec![1.0; 3],
            apart: 0,
        };
        for tree in [case.chained()] {
            assert_eq!(nodes(&tree), [(0, 1), (3, 2)]);
            assert!(tree.merges.iter().all(|merge| merge.cost == 1.0));
        }
    }

    #[test]
    fn none_one_and_only_points_apart() {
        for (n, apart) in [(0, 0), (1, 0), (1, 1), (5, 5)] {
            let case = Case::random(n, 3, apart, false, 1);
            for tree in [case.chained()] {
                assert_eq!((tree.points, tree.merges.len()), (n, 0));
            }
        }
    }
}
