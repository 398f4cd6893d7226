//! The prototypes and queries of a task in a calibrated space.

use super::cut::{Candidates, Cut, MergeTree, merge_features};
use super::logistic::logit;
use super::membership::{Group, MEMBER, member_features};
use super::space::Space;
use crate::cluster::linkage;
use crate::cluster::ward::{Merge, Tree, ward};
use crate::features::{Features, norm, scale_to_unit};
use crate::linalg;
use crate::task::{Task, class_means};

/// Passes of moving every query to its nearest centre, at most.
pub(crate) const PASSES: usize = 5;
/// New clusters of up to so many points are dissolved.
const SMALL: usize = 2;
/// Where clusters are smaller than this on average, only single points are: small ones are what is looked for.
const SMALL_PILE: f64 = 7.0;

/// Points to sort: the mean of each known class's examples, which weighs as much as they do, followed by the queries.
pub(crate) struct Points {
    dim: usize,
    known: usize,
    rows: Vec<f32>,
    weights: Vec<f32>,
}

impl Points {
    /// The points of a task in a space.
    pub(crate) fn of(task: &Task, space: &Space) -> Self {
        let queries = &task.points().values()[task.known() * task.dim()..];
        let support = space.apply(task.support().values());
        Self::new(
            task.dim(),
            &support,
            task.support_labels(),
            task.known(),
            &space.apply(queries),
        )
    }

    /// The prototypes of a task in a space, without the queries.
    pub(crate) fn examples(task: &Task, space: &Space) -> Self {
        let support = space.apply(task.support().values());
        Self::new(task.dim(), &support, task.support_labels(), task.known(), &[])
    }

    /// Examples and queries that are in the space already.
    pub(crate) fn new(dim: usize, support: &[f32], labels: &[usize], known: usize, queries: &[f32]) -> Self {
        let mut rows = class_means(&Features::from_finite(dim, support.to_vec()), labels, known);
        let mut weights = vec![0f32; known];
        labels.iter().for_each(|&class| weights[class] += 1.0);
        weights.resize(known + queries.len() / dim, 1.0);
        rows.extend_from_slice(queries);
        Self {
            dim,
            known,
            rows,
            weights,
        }
    }

    /// Groups that stay apart, by the means of their members and how many those are, and items that are in the space already.
    pub(crate) fn of_groups(dim: usize, means: &[f32], members: &[f64], items: &[f32]) -> Self {
        let mut weights: Vec<f32> = members.iter().map(|&members| members as f32).collect();
        weights.resize(members.len() + items.len() / dim, 1.0);
        Self {
            dim,
            known: members.len(),
            rows: [means, items].concat(),
            weights,
        }
    }

    pub(crate) fn known(&self) -> usize {
        self.known
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    pub(crate) fn row(&self, point: usize) -> &[f32] {
        &self.rows[point * self.dim..][..self.dim]
    }

    /// The tree of their merges, in which known classes never meet.
    pub(super) fn tree(&self, kind: MergeTree) -> Tree {
        match kind {
            MergeTree::Ward => ward(&self.rows, self.dim, &self.weights, self.known),
            MergeTree::Average => self.average_tree(),
        }
    }

    /// Average linkage by cosine, with what Ward says that its merges cost.
    fn average_tree(&self) -> Tree {
        let n = self.len();
        let mut unit = self.rows.clone();
        unit.chunks_exact_mut(self.dim).for_each(|row| {
            scale_to_unit(row);
        });
        let mut node: Vec<usize> = (0..n).collect();
        let mut weights: Vec<f64> = self.weights.iter().map(|&w| f64::from(w)).collect();
        let mut means: Vec<f64> = self.rows.iter().map(|&v| f64::from(v)).collect();
        // A cluster is done when it would meet one that holds another known class.
        let mut holds_class: Vec<bool> = (0..n).map(|point| point < self.known).collect();
        let mut done = vec![false; n];
        let mut merges = Vec::new();
        for merge in linkage::chain(linalg::gram(&unit, self.dim), n) {
            let (keep, drop) = (merge.a.min(merge.b), merge.a.max(merge.b));
            if done[keep] || done[drop] || (holds_class[keep] && holds_class[drop]) {
                done[keep] = true;
                continue;
            }
            let (upper, lower) = means.split_at_mut(drop * self.dim);
            let (kept, dropped) = (&mut upper[keep * self.dim..][..self.dim], &lower[..self.dim]);
            let (wa, wb) = (weights[keep], weights[drop]);
            let distance: f64 = kept.iter().zip(dropped).map(|(a, b)| (a - b).powi(2)).sum();
            kept.iter_mut()
                .zip(dropped)
                .for_each(|(a, b)| *a = (wa * *a + wb * b) / (wa + wb));
            merges.push(Merge {
                left: node[keep],
                right: node[drop],
                cost: wa * wb / (wa + wb) * distance,
            });
            node[keep] = n + merges.len() - 1;
            weights[keep] = wa + wb;
            holds_class[keep] |= holds_class[drop];
        }
        Tree { points: n, merges }
    }

    /// Sorts them: the likeliest division of the tree, small clusters dissolved, and up to `passes` of moving every query
    /// to its nearest centre. Also the mean size of a cluster that was settled on.
    pub(crate) fn sort(&self, cut: &Cut, passes: usize) -> (Sorted, f64) {
        let start = self.len() as f64 / (3 * self.known.max(1)) as f64;
        let division = Candidates::new(&self.tree(cut.tree), &self.weights, cut.variance).settle(cut, start);
        let size = division.size;
        let mut sorted = Sorted::new(self, division.clusters);
        if passes == 0 {
            return (sorted, size);
        }
        sorted.dissolve(self, if size < SMALL_PILE { SMALL - 1 } else { SMALL });
        for _ in 0..passes {
            if !sorted.pass(self) {
                break;
            }
        }
        if size >= SMALL_PILE {
            sorted.rejoin(self, size, cut);
            sorted.pass(self);
        }
        (sorted, size)
    }
}

impl Points {
    /// The groups that clusters are: their members, examples counted, and the lengths of their means.
    pub(crate) fn groups(&self, sorted: &Sorted) -> Vec<Group> {
        let (sums, weights) = sorted.sums(self);
        let lengths = sums.chunks_exact(self.dim).map(length);
        let group = |(length, members): (f64, f64)| Group {
            members,
            length: length / members,
        };
        lengths.zip(weights).map(group).collect()
    }

    /// The cosines of every query with some centres of length one, a row a query.
    pub(crate) fn cosines_with(&self, centres: &[f32]) -> Vec<f32> {
        linalg::dots(&self.rows[self.known * self.dim..], centres, self.dim)
    }

    /// What a model of membership sees of every query in its cluster, the query itself left out; `None` where it is alone.
    pub(crate) fn member_features(&self, sorted: &Sorted, variance: f64) -> Vec<Option<[f64; MEMBER]>> {
        let dim = self.dim;
        let (sums, weights) = sorted.sums(self);
        let lengths: Vec<f64> = sums.chunks_exact(dim).map(length).collect();
        let plain: Vec<f32> = sums.iter().map(|&v| v as f32).collect();
        let queries = &self.rows[self.known * dim..];
        let dots = linalg::dots(queries, &plain, dim);
        let of_queries = queries.chunks_exact(dim).zip(dots.chunks_exact(sorted.count.max(1)));
        of_queries
            .zip(&sorted.clusters[self.known..])
            .map(|((row, dots), &own)| {
                let others = weights[own] - 1.0;
                if others < 0.5 {
                    return None;
                }
                // The sum of the others is that of all less the query: its length and its product with the query follow.
                let square: f64 = norm(row).powi(2);
                let dot = f64::from(dots[own]) - square;
                let left = (lengths[own].powi(2) - 2.0 * f64::from(dots[own]) + square)
                    .max(0.0)
                    .sqrt();
                let group = Group {
                    members: others,
                    length: left / others,
                };
                let rivals = (0..sorted.count).filter(|&cluster| cluster != own);
                let rival = rivals
                    .map(|cluster| cosine(dots[cluster], lengths[cluster]))
                    .reduce(f64::max);
                let own_cosine = if left > 0.0 { dot / left } else { 0.0 };
                Some(member_features(own_cosine, rival, group.expected(variance), others))
            })
            .collect()
    }
}

/// A dot product with a vector of this length as a cosine; a vector without length is similar to nothing.
fn cosine(dot: f32, length: f64) -> f64 {
    if length > 0.0 { f64::from(dot) / length } else { 0.0 }
}

/// The Euclidean length.
fn length(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Points with their clusters. The cluster of a known class has the class's number.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    pub(crate) clusters: Vec<usize>,
    pub(crate) count: usize,
}

impl Sorted {
    /// The prototypes alone, each its own cluster.
    pub(crate) fn prototypes(points: &Points) -> Self {
        Self {
            clusters: (0..points.known).collect(),
            count: points.known,
        }
    }

    fn new(points: &Points, clusters: Vec<usize>) -> Self {
        let mut sorted = Self { clusters, count: 0 };
        sorted.number(points.known);
        sorted
    }

    /// Numbers the clusters anew in the order of their first points, which puts the known classes first.
    fn number(&mut self, known: usize) {
        let (clusters, count) = crate::discovery::canonical(&self.clusters);
        debug_assert!((0..known).all(|class| clusters[class] == class));
        (self.clusters, self.count) = (clusters, count);
    }

    /// The sums of the members and their weights, a row a cluster.
    pub(crate) fn sums(&self, points: &Points) -> (Vec<f64>, Vec<f64>) {
        let dim = points.dim;
        let mut sums = vec![0f64; self.count * dim];
        let mut weights = vec![0f64; self.count];
        for (point, &cluster) in self.clusters.iter().enumerate() {
            let weight = f64::from(points.weights[point]);
            weights[cluster] += weight;
            for (sum, &v) in sums[cluster * dim..][..dim].iter_mut().zip(points.row(point)) {
                *sum += weight * f64::from(v);
            }
        }
        (sums, weights)
    }

    /// The centres: the mean directions of the members.
    pub(crate) fn centres(&self, points: &Points) -> Vec<f32> {
        let (sums, _) = self.sums(points);
        let mut centres = Vec::with_capacity(sums.len());
        for sum in sums.chunks_exact(points.dim) {
            let length = length(sum);
            let scale = if length > 0.0 { length.recip() } else { 0.0 };
            centres.extend(sum.iter().map(|v| (v * scale) as f32));
        }
        centres
    }

    /// Moves the members of new clusters of up to `small` members to the nearest of the others' centres.
    fn dissolve(&mut self, points: &Points, small: usize) {
        let mut sizes = vec![0usize; self.count];
        self.clusters.iter().for_each(|&cluster| sizes[cluster] += 1);
        let kept: Vec<bool> = (0..self.count)
            .map(|cluster| cluster < points.known || sizes[cluster] > small)
            .collect();
        if kept.iter().all(|&kept| kept) || !kept.contains(&true) {
            return;
        }
        let centres = self.centres(points);
        let loose: Vec<usize> = (points.known..points.len())
            .filter(|&point| !kept[self.clusters[point]])
            .collect();
        for (point, nearest) in loose.iter().zip(nearest(points, &loose, &centres, |c| kept[c])) {
            self.clusters[*point] = nearest;
        }
        self.number(points.known);
    }

    /// Merges clusters that are likelier one class than two, the likeliest pair first; two known classes never.
    ///
    /// The tree decided by what clusters looked like on the way; now they are complete.
    fn rejoin(&mut self, points: &Points, size: f64, cut: &Cut) {
        let (dim, known) = (points.dim, points.known);
        let (mut sums, mut weights) = self.sums(points);
        let odds = |sums: &[f64], weights: &[f64], a: usize, b: usize| {
            let (wa, wb) = (weights[a], weights[b]);
            let pairs = sums[a * dim..][..dim].iter().zip(&sums[b * dim..][..dim]);
            let distance: f64 = pairs.map(|(x, y)| (x / wa - y / wb).powi(2)).sum();
            let weight = wa * wb / (wa + wb);
            logit(
                &cut.model,
                &merge_features(weight * distance / cut.variance, weight, size),
            )
        };
        let mut alive: Vec<usize> = (0..self.count).collect();
        let mut of_pair = vec![f64::NEG_INFINITY; self.count * self.count];
        for b in known..self.count {
            (0..b).for_each(|a| of_pair[a * self.count + b] = odds(&sums, &weights, a, b));
        }
        let mut into: Vec<usize> = (0..self.count).collect();
        loop {
            let mut best = (0.0, 0, 0);
            for (at, &a) in alive.iter().enumerate() {
                for &b in &alive[at + 1..] {
                    if of_pair[a * self.count + b] > best.0 {
                        best = (of_pair[a * self.count + b], a, b);
                    }
                }
            }
            let (likeliest, keep, drop) = best;
            if likeliest <= 0.0 {
                break;
            }
            into.iter_mut().filter(|c| **c == drop).for_each(|c| *c = keep);
            let (upper, lower) = sums.split_at_mut(drop * dim);
            upper[keep * dim..][..dim]
                .iter_mut()
                .zip(&lower[..dim])
                .for_each(|(a, b)| *a += b);
            weights[keep] += weights[drop];
            alive.retain(|&cluster| cluster != drop);
            for &other in alive.iter().filter(|&&other| other.max(keep) >= known && other != keep) {
                let (a, b) = (other.min(keep), other.max(keep));
                of_pair[a * self.count + b] = odds(&sums, &weights, a, b);
            }
        }
        self.clusters.iter_mut().for_each(|cluster| *cluster = into[*cluster]);
        self.number(known);
    }

    /// Moves every query to its nearest centre; whether any moved.
    fn pass(&mut self, points: &Points) -> bool {
        let centres = self.centres(points);
        let queries: Vec<usize> = (points.known..points.len()).collect();
        let mut moved = false;
        for (point, nearest) in queries.iter().zip(nearest(points, &queries, &centres, |_| true)) {
            moved |= self.clusters[*point] != nearest;
            self.clusters[*point] = nearest;
        }
        self.number(points.known);
        moved
    }
}

/// The nearest of the allowed centres for some points, the first of equally near ones.
fn nearest(points: &Points, which: &[usize], centres: &[f32], allowed: impl Fn(usize) -> bool) -> Vec<usize> {
    let count = centres.len() / points.dim;
    let rows: Vec<f32> = which.iter().flat_map(|&point| points.row(point)).copied().collect();
    let dots = linalg::dots(&rows, centres, points.dim);
    dots.chunks_exact(count)
        .map(|dots| {
            let mut best = (usize::MAX, f32::NEG_INFINITY);
            for (centre, &dot) in dots.iter().enumerate() {
                if allowed(centre) && dot > best.1 {
                    best = (centre, dot);
                }
            }
            best.0
        })
        .collect()
}
