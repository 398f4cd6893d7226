//! The prototypes and queries of a task in a calibrated space.

use std::sync::OnceLock;

use super::CalibrationSettings;
use super::cut::{Candidates, Cut, Eagerness, MergeTree};
use super::membership::{Group, MEMBER, member_features};
use super::space::Space;
use crate::cluster::linkage;
use crate::cluster::ward::{Merge, Tree, ward, ward_of_gram};
use crate::features::{Features, norm, scale_to_unit};
use crate::linalg;
use crate::task::{GRAM_LIMIT, Task, class_means};

/// Passes of moving every query to its nearest centre, at most.
pub(crate) const PASSES: usize = 5;
/// New clusters of up to so many points are dissolved.
const SMALL: usize = 2;
/// Where clusters are smaller than this on average, only single points are: small ones are what is looked for.
const SMALL_PILE: f64 = 7.0;

/// How much more and less eagerly than was learnt clusters are merged to see what comes of it: what is added to the logit of
/// every merge. The nearest come first: a division that was made already only costs more.
const STEPS: &[f64] = &[0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, 3.0, 4.5, 6.5, 9.0];
/// Divisions with more products of clusters and points than this are not tried: their table would outgrow the points.
const MOST_PRODUCTS: usize = 1 << 24;
/// Passes before a division is judged where there is not a matrix of products and a pass is dear.
const DEAR_PASSES: usize = 1;

/// Points to sort: the mean of each known class's examples, which weighs as much as they do, followed by the queries.
pub(crate) struct Points {
    dim: usize,
    known: usize,
    rows: Vec<f32>,
    weights: Vec<f32>,
    /// The examples themselves, and their classes.
    examples: Vec<f32>,
    labels: Vec<usize>,
    /// The dot products of all points, unless there are too many of them.
    gram: OnceLock<Vec<f32>>,
    /// The squared lengths of all points.
    squares: OnceLock<Vec<f64>>,
}

impl Points {
    /// The points of a task in a space.
    pub(crate) fn of(task: &Task, space: &Space) -> Self {
        Self::in_space(task, &task.points().values()[task.known() * task.dim()..], space)
    }

    /// The prototypes of a task in a space, without the queries.
    pub(crate) fn examples(task: &Task, space: &Space) -> Self {
        Self::in_space(task, &[], space)
    }

    fn in_space(task: &Task, queries: &[f32], space: &Space) -> Self {
        // Queries and examples go into the space together, behind the room for the prototypes.
        let (dim, known) = (task.dim(), task.known());
        let mut rows = Vec::with_capacity(known * dim + queries.len() + task.support().values().len());
        rows.resize(known * dim, 0.0);
        rows.extend_from_slice(queries);
        rows.extend_from_slice(task.support().values());
        space.apply_to(&mut rows[known * dim..]);
        let support = rows.split_off(known * dim + queries.len());
        Self::with_room(dim, support, task.support_labels(), known, rows)
    }

    /// Examples and queries that are in the space already.
    pub(crate) fn new(dim: usize, support: &[f32], labels: &[usize], known: usize, queries: &[f32]) -> Self {
        let mut rows = vec![0.0; known * dim];
        rows.extend_from_slice(queries);
        Self::with_room(dim, support.to_vec(), labels, known, rows)
    }

    /// Queries behind the room for the prototypes, which are the means of the examples.
    fn with_room(dim: usize, support: Vec<f32>, labels: &[usize], known: usize, mut rows: Vec<f32>) -> Self {
        let support = Features::from_finite(dim, support);
        let prototypes = class_means(&support, labels, known);
        rows[..known * dim].copy_from_slice(&prototypes);
        let mut weights = vec![0f32; known];
        labels.iter().for_each(|&class| weights[class] += 1.0);
        weights.resize(rows.len() / dim, 1.0);
        Self {
            dim,
            known,
            rows,
            weights,
            examples: support.into_values(),
            labels: labels.to_vec(),
            gram: OnceLock::new(),
            squares: OnceLock::new(),
        }
    }

    /// The same in a space in which the directions are damped in which members of the clusters of `sorted` differ.
    pub(crate) fn damped(&self, sorted: &ClusteredPoints) -> Self {
        let queries = &sorted.clusters[self.known..];
        let clusters: Vec<usize> = self.labels.iter().chain(queries).copied().collect();
        let items = Features::from_finite(self.dim, self.items());
        let directions = CalibrationSettings::default().directions;
        let space = Space::fit(&items, &clusters, sorted.count, directions, true);
        let rows = space.apply(items.values());
        let (examples, queries) = rows.split_at(self.examples.len());
        Self::new(self.dim, examples, &self.labels, self.known, queries)
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
            examples: means.to_vec(),
            labels: (0..members.len()).collect(),
            gram: OnceLock::new(),
            squares: OnceLock::new(),
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

    /// The classes of the examples.
    pub(super) fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The examples followed by the queries.
    pub(super) fn items(&self) -> Vec<f32> {
        [&*self.examples, &self.rows[self.known * self.dim..]].concat()
    }

    fn row(&self, point: usize) -> &[f32] {
        &self.rows[point * self.dim..][..self.dim]
    }

    /// All dot products, where they are kept. That depends on the number of points alone.
    fn gram(&self) -> Option<&[f32]> {
        let few = self.len() <= GRAM_LIMIT;
        few.then(|| &**self.gram.get_or_init(|| linalg::gram(&self.rows, self.dim)))
    }

    /// The squared length of a point.
    fn square(&self, point: usize) -> f64 {
        let of_row = |row: &[f32]| norm(row).powi(2);
        self.squares
            .get_or_init(|| self.rows.chunks_exact(self.dim).map(of_row).collect())[point]
    }

    /// The tree of their merges, in which known classes never meet.
    pub(super) fn tree(&self, kind: MergeTree) -> Tree {
        match (kind, self.gram()) {
            (MergeTree::Ward, Some(gram)) => ward_of_gram(gram, &self.weights, self.known),
            (MergeTree::Ward, None) => ward(&self.rows, self.dim, &self.weights, self.known),
            (MergeTree::Average, _) => self.average_tree(),
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
    /// to its nearest centre. Without passes the tree alone decides, as eagerly as was learnt.
    ///
    /// What was learnt of other classes may not be quite true of these. So divisions that merge more and less eagerly are made
    /// as well, and that of the highest contrast wins, less a price for many categories and for leaving what was learnt.
    pub(crate) fn sort(&self, cut: &Cut, passes: usize) -> ClusteredPoints {
        let tree = self.tree(cut.tree);
        let candidates = Candidates::new(&tree, cut, &self.weights);
        let logits = candidates.logits();
        let divide = |eagerness: f64| {
            ClusteredPoints::new(self, candidates.divide(logits.iter().map(|logit| logit + eagerness)))
        };
        let learnt = divide(0.0);
        if passes == 0 {
            return learnt;
        }
        if cut.eagerness == Eagerness::Learnt {
            return learnt.refined(self, passes);
        }
        let tried = if self.gram().is_some() { passes } else { DEAR_PASSES };
        let mut made = vec![learnt.clusters.clone()];
        let learnt = learnt.refined(self, tried);
        let categories = learnt.count;
        let judge = |sorted: ClusteredPoints, step: f64| {
            let size = self.len() as f64 / sorted.count.max(1) as f64;
            let price = cut.price(sorted.count, size, step, categories);
            let value = self.contrast(&sorted) / cut.variance - price;
            (sorted, value)
        };
        let mut best = judge(learnt, 0.0);
        for &step in STEPS {
            let sorted = divide(step);
            if sorted.count * self.len() > MOST_PRODUCTS || made.contains(&sorted.clusters) {
                continue;
            }
            made.push(sorted.clusters.clone());
            let judged = judge(sorted.refined(self, tried), step);
            if judged.1 > best.1 {
                best = judged;
            }
        }
        best.0.refined(self, passes)
    }

    /// How much more alike queries are to the others of their cluster than to the members of the next, on average.
    pub(super) fn contrast(&self, sorted: &ClusteredPoints) -> f64 {
        let affinity = self.affinity(sorted);
        let of_query = |point: usize| {
            let own = sorted.clusters[point];
            let mean = |cluster: usize| affinity.dot(cluster, point) / affinity.weights[cluster];
            let others = affinity.weights[own] - 1.0;
            let fit = if others < 0.5 {
                0.0
            } else {
                (affinity.dot(own, point) - self.square(point)) / others
            };
            let rivals = (0..sorted.count).filter(|&cluster| cluster != own).map(mean);
            fit - rivals.reduce(f64::max).unwrap_or(0.0)
        };
        let queries = (self.len() - self.known).max(1) as f64;
        (self.known..self.len()).map(of_query).sum::<f64>() / queries
    }

    /// What clusters have to do with points.
    pub(crate) fn affinity(&self, sorted: &ClusteredPoints) -> Affinity {
        let (n, count) = (self.len(), sorted.count);
        let mut weights = vec![0f64; count];
        for (&cluster, &weight) in sorted.clusters.iter().zip(&self.weights) {
            weights[cluster] += f64::from(weight);
        }
        let mut dots = vec![0f32; count * n];
        match self.gram() {
            Some(gram) => {
                let members = sorted.clusters.iter().zip(&self.weights);
                for ((&cluster, &weight), row) in members.zip(gram.chunks_exact(n)) {
                    let sums = &mut dots[cluster * n..][..n];
                    sums.iter_mut().zip(row).for_each(|(sum, dot)| *sum += weight * dot);
                }
            }
            None => {
                let sums: Vec<f32> = sorted.sums(self).into_iter().map(|v| v as f32).collect();
                let by_point = linalg::dots(&self.rows, &sums, self.dim);
                for (point, row) in by_point.chunks_exact(count.max(1)).enumerate() {
                    row.iter().enumerate().for_each(|(c, &dot)| dots[c * n + point] = dot);
                }
            }
        }
        let mut affinity = Affinity {
            points: n,
            dots,
            lengths: Vec::new(),
            weights,
        };
        affinity.lengths = (0..count)
            .map(|cluster| affinity.between(self, sorted, cluster)[cluster].max(0.0).sqrt())
            .collect();
        affinity
    }

    /// What a model of membership sees of every query in its cluster, the query itself left out; `None` where it is alone.
    pub(crate) fn member_features(
        &self,
        sorted: &ClusteredPoints,
        affinity: &Affinity,
        variance: f64,
    ) -> Vec<Option<[f64; MEMBER]>> {
        (self.known..self.len())
            .map(|point| {
                let own = sorted.clusters[point];
                let others = affinity.weights[own] - 1.0;
                if others < 0.5 {
                    return None;
                }
                // The sum of the others is that of all less the query: its length and its product with the query follow.
                let square = self.square(point);
                let (whole, length) = (affinity.dot(own, point), affinity.lengths[own]);
                let left = (length * length - 2.0 * whole + square).max(0.0).sqrt();
                let cosine = if left > 0.0 { (whole - square) / left } else { 0.0 };
                let group = Group {
                    members: others,
                    length: left / others,
                };
                let rivals = (0..sorted.count).filter(|&cluster| cluster != own);
                let rival = rivals.map(|cluster| affinity.cosine(cluster, point)).reduce(f64::max);
                Some(member_features(cosine, rival, group.expected(variance), others))
            })
            .collect()
    }
}

/// The dot products of clusters' weighted sums with points.
pub(crate) struct Affinity {
    points: usize,
    /// A row a cluster.
    dots: Vec<f32>,
    /// The lengths of the sums.
    lengths: Vec<f64>,
    /// The weights of the clusters.
    weights: Vec<f64>,
}

impl Affinity {
    fn dot(&self, cluster: usize, point: usize) -> f64 {
        f64::from(self.dots[cluster * self.points + point])
    }

    /// The cosine of a point of length one with a cluster's centre; a centre that vanishes is similar to nothing.
    pub(crate) fn cosine(&self, cluster: usize, point: usize) -> f64 {
        match self.lengths[cluster] {
            0.0 => 0.0,
            length => self.dot(cluster, point) / length,
        }
    }

    /// The dot products of the sum of one cluster with the sums of all.
    fn between(&self, points: &Points, sorted: &ClusteredPoints, cluster: usize) -> Vec<f64> {
        let mut sums = vec![0f64; sorted.count];
        let row = &self.dots[cluster * self.points..][..self.points];
        for ((&other, &weight), &dot) in sorted.clusters.iter().zip(&points.weights).zip(row) {
            sums[other] += f64::from(weight) * f64::from(dot);
        }
        sums
    }

    /// The groups that the clusters are: their members, examples counted, and the lengths of their means.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let group = |(&length, &members): (&f64, &f64)| Group {
            members,
            length: length / members,
        };
        self.lengths.iter().zip(&self.weights).map(group).collect()
    }

    /// The nearest of the allowed clusters for a point, the first of equally near ones.
    fn nearest(&self, point: usize, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best = None;
        for cluster in (0..self.lengths.len()).filter(|&cluster| allowed(cluster)) {
            let cosine = self.cosine(cluster, point);
            if best.is_none_or(|(_, most)| cosine > most) {
                best = Some((cluster, cosine));
            }
        }
        best.map(|(cluster, _)| cluster)
    }
}

/// Points with their clusters. The cluster of a known class has the class's number.
#[derive(Clone, Debug)]
pub(crate) struct ClusteredPoints {
    pub(crate) clusters: Vec<usize>,
    pub(crate) count: usize,
}

impl ClusteredPoints {
    /// The prototypes alone, each its own cluster.
    pub(crate) fn prototypes(points: &Points) -> Self {
        Self {
            clusters: (0..points.known).collect(),
            count: points.known,
        }
    }

    /// Clusters of the prototypes and the queries, those of the prototypes being their classes.
    pub(super) fn new(points: &Points, clusters: Vec<usize>) -> Self {
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

    /// Puts the queries whose class is known where they belong.
    pub(crate) fn put(&mut self, points: &Points, classes: &[Option<usize>]) {
        let queries = self.clusters[points.known..].iter_mut().zip(classes);
        queries.for_each(|(cluster, class)| *cluster = class.unwrap_or(*cluster));
        self.number(points.known);
    }

    /// The weighted sums of the members, a row a cluster.
    fn sums(&self, points: &Points) -> Vec<f64> {
        let dim = points.dim;
        let mut sums = vec![0f64; self.count * dim];
        for (point, &cluster) in self.clusters.iter().enumerate() {
            let weight = f64::from(points.weights[point]);
            for (sum, &v) in sums[cluster * dim..][..dim].iter_mut().zip(points.row(point)) {
                *sum += weight * f64::from(v);
            }
        }
        sums
    }

    /// The centres: the mean directions of the members.
    pub(crate) fn centres(&self, points: &Points) -> Vec<f32> {
        let sums = self.sums(points);
        let mut centres = Vec::with_capacity(sums.len());
        for sum in sums.chunks_exact(points.dim) {
            let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
            let scale = if length > 0.0 { length.recip() } else { 0.0 };
            centres.extend(sum.iter().map(|v| (v * scale) as f32));
        }
        centres
    }

    /// Small clusters dissolved and up to `passes` made.
    pub(super) fn refined(mut self, points: &Points, passes: usize) -> Self {
        let small_pile = (points.len() as f64) < SMALL_PILE * self.count as f64;
        self.dissolve(points, if small_pile { SMALL - 1 } else { SMALL });
        for _ in 0..passes {
            if !self.pass(points) {
                break;
            }
        }
        self
    }

    /// Moves the members of new clusters of up to `small` members to the nearest of the others' centres.
    fn dissolve(&mut self, points: &Points, small: usize) {
        let mut sizes = vec![0usize; self.count];
        self.clusters.iter().for_each(|&cluster| sizes[cluster] += 1);
        let kept = |cluster: usize| cluster < points.known || sizes[cluster] > small;
        if (0..self.count).all(kept) {
            return;
        }
        let affinity = points.affinity(self);
        for point in points.known..points.len() {
            if !kept(self.clusters[point]) {
                // Without a cluster that is kept there is nowhere to go.
                self.clusters[point] = affinity.nearest(point, kept).unwrap_or(self.clusters[point]);
            }
        }
        self.number(points.known);
    }

    /// Moves every query to its nearest centre; whether any moved.
    fn pass(&mut self, points: &Points) -> bool {
        let affinity = points.affinity(self);
        let mut moved = false;
        for point in points.known..points.len() {
            let nearest = affinity.nearest(point, |_| true).unwrap_or(self.clusters[point]);
            moved |= self.clusters[point] != nearest;
            self.clusters[point] = nearest;
        }
        self.number(points.known);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::super::cut::Price;
    use super::*;
    use crate::rng::Rng;

    /// Blobs of unit rows, the first three with two examples each.
    fn points(blobs: usize, each: usize, spread: f64, seed: u64) -> Points {
        let dim = 12;
        let mut rng = Rng::new(seed, &[blobs as u64]);
        let mut row = |middle: &[f64]| -> Vec<f32> {
            let mut row: Vec<f32> = middle
                .iter()
                .map(|v| (v + spread * (rng.unit() - 0.5)) as f32)
                .collect();
            scale_to_unit(&mut row);
            row
        };
        let mut middles = Rng::new(seed, &[9]);
        let middles: Vec<Vec<f64>> = (0..blobs)
            .map(|_| (0..dim).map(|_| middles.unit() - 0.5).collect())
            .collect();
        let support: Vec<f32> = (0..6).flat_map(|at| row(&middles[at / 2])).collect();
        let queries: Vec<f32> = (0..blobs * each).flat_map(|at| row(&middles[at % blobs])).collect();
        Points::new(dim, &support, &[0, 0, 1, 1, 2, 2], 3, &queries)
    }

    fn cut() -> Cut {
        Cut {
            tree: MergeTree::Ward,
            eagerness: Eagerness::Chosen,
            price: Price::LEARNT,
            model: [4.5, -2.25, -0.26, -0.38, -1.79],
            variance: 0.25,
            largest: 40.0,
            dimensions: 100.0,
        }
    }

    #[test]
    fn affinities_are_those_of_the_sums() {
        let points = points(6, 10, 0.8, 1);
        let sorted = points.sort(&cut(), PASSES);
        let affinity = points.affinity(&sorted);
        let sums = sorted.sums(&points);
        for (cluster, sum) in sums.chunks_exact(points.dim).enumerate() {
            let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
            assert!((affinity.lengths[cluster] - length).abs() < 1e-4);
            for point in 0..points.len() {
                let dot: f64 = sum.iter().zip(points.row(point)).map(|(s, &v)| s * f64::from(v)).sum();
                assert!((affinity.dot(cluster, point) - dot).abs() < 1e-4);
            }
        }
        // The length of a mean is its sum's in units of its members, and examples are members.
        let groups = affinity.groups();
        let members: f64 = groups.iter().map(|group| group.members).sum();
        assert!((members - 66.0).abs() < 1e-9 && groups.iter().all(|group| group.length <= 1.0 + 1e-6));
    }

    #[test]
    fn what_a_query_is_to_the_others_of_its_cluster() {
        let points = points(5, 8, 0.9, 2);
        let sorted = points.sort(&cut(), PASSES);
        let features = points.member_features(&sorted, &points.affinity(&sorted), 0.3);
        for point in points.known..points.len() {
            let own = sorted.clusters[point];
            let mut sum = vec![0f64; points.dim];
            let mut others = 0.0;
            for other in (0..points.len()).filter(|&other| other != point && sorted.clusters[other] == own) {
                let weight = f64::from(points.weights[other]);
                others += weight;
                sum.iter_mut()
                    .zip(points.row(other))
                    .for_each(|(s, &v)| *s += weight * f64::from(v));
            }
            let Some(seen) = features[point - points.known] else {
                assert_eq!(others, 0.0);
                continue;
            };
            let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
            let dot: f64 = sum.iter().zip(points.row(point)).map(|(s, &v)| s * f64::from(v)).sum();
            assert!(
                (seen[1] - dot / length).abs() < 1e-4,
                "{} for {}",
                seen[1],
                dot / length
            );
            let group = Group {
                members: others,
                length: length / others,
            };
            assert!((seen[3] - group.expected(0.3)).abs() < 1e-4);
            assert!((seen[4] - others.max(1.0).ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn no_division_that_was_tried_is_worth_more() {
        for seed in 0..40 {
            let points = points(3 + seed as usize % 5, 4 + seed as usize % 9, 1.1, seed);
            let cut = Cut {
                price: if seed % 2 == 0 { Price::LEARNT } else { Price::ESTIMATED },
                ..cut()
            };
            // All of them, those that are the same too.
            let tree = points.tree(cut.tree);
            let candidates = Candidates::new(&tree, &cut, &points.weights);
            let divide = |step: f64| {
                let logits = candidates.logits().into_iter().map(|logit| logit + step);
                ClusteredPoints::new(&points, candidates.divide(logits)).refined(&points, PASSES)
            };
            let learnt = divide(0.0).count;
            let mut best: Option<(ClusteredPoints, f64)> = None;
            for step in std::iter::once(0.0).chain(STEPS.iter().copied()) {
                let sorted = divide(step);
                let size = points.len() as f64 / sorted.count as f64;
                let price = cut.price(sorted.count, size, step, learnt);
                let value = points.contrast(&sorted) / cut.variance - price;
                if best.as_ref().is_none_or(|best| value > best.1) {
                    best = Some((sorted, value));
                }
            }
            let expected = best.unwrap().0.refined(&points, PASSES);
            assert_eq!(points.sort(&cut, PASSES).clusters, expected.clusters, "seed {seed}");
        }
    }

    #[test]
    fn small_clusters_are_dissolved() {
        let points = points(4, 20, 0.3, 4);
        let mut sorted = points.sort(&cut(), 0);
        let new = sorted.clusters[points.known..].iter().position(|&c| c >= 3).unwrap() + points.known;
        let home = sorted.clusters[new];
        sorted.clusters[new] = sorted.count;
        let mut sorted = ClusteredPoints::new(&points, sorted.clusters.clone());
        sorted.dissolve(&points, 1);
        let mate = (points.known..points.len()).find(|&p| p != new && sorted.clusters[p] == sorted.clusters[new]);
        assert!(mate.is_some());
        assert!(sorted.count <= home.max(4) + 1);
    }

    #[test]
    fn many_points_are_sorted_as_few_are() {
        // Beyond the limit there is not a matrix of products; the same blobs come out.
        let many = points(5, 500, 0.3, 5);
        assert!(many.gram().is_none());
        let sorted = many.sort(&cut(), PASSES);
        assert_eq!(sorted.count, 5);
        for blob in 0..5 {
            let of_blob: Vec<usize> = (0..500).map(|at| sorted.clusters[3 + blob + 5 * at]).collect();
            assert!(of_blob.iter().all(|&cluster| cluster == of_blob[0]));
        }
        let affinity = many.affinity(&sorted);
        let sums = sorted.sums(&many);
        let dot: f64 = sums[..many.dim]
            .iter()
            .zip(many.row(77))
            .map(|(s, &v)| s * f64::from(v))
            .sum();
        assert!((affinity.dot(0, 77) - dot).abs() < 1e-2);
    }
}
