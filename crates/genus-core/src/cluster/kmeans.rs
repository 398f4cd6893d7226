//! k-means in the manner of scikit-learn, on points or on nothing but their dot products.
//!
//! A centre is the mean of some points, and all that Lloyd's algorithm asks of it is its dot product with every point.
//! From the matrix of the points' dot products that is a sum of its rows, n² additions an iteration whatever the number
//! of features; from the points themselves it is a matrix product. Everything else is the same code.

use std::borrow::Cow;

use crate::linalg;
use crate::rng::Rng;
use crate::task::Task;

/// Squared distances below this are rounding noise between equal unit vectors.
const SAME_POINT: f32 = 1e-6;

/// Points to cluster.
pub(crate) enum KMeansSpace<'a> {
    /// By their n × n dot products.
    Gram(Cow<'a, [f32]>, usize),
    /// By their rows of `dim` features.
    Rows(Cow<'a, [f32]>, usize),
}

impl<'a> KMeansSpace<'a> {
    /// The points of a task: by dot products where the task keeps them.
    pub(crate) fn of(task: &'a Task) -> Self {
        match task.gram() {
            Some(gram) => KMeansSpace::Gram(Cow::Borrowed(gram), task.points().rows()),
            None => KMeansSpace::Rows(Cow::Borrowed(task.points().values()), task.dim()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            KMeansSpace::Gram(_, n) => *n,
            KMeansSpace::Rows(rows, dim) => rows.len() / dim,
        }
    }

    /// Some of the points, in the given order.
    pub(crate) fn subset(&self, members: &[usize]) -> KMeansSpace<'static> {
        match self {
            KMeansSpace::Gram(dots, n) => {
                let rows = members.iter().map(|&i| &dots[i * n..][..*n]);
                let values = rows.flat_map(|row| members.iter().map(|&j| row[j])).collect();
                KMeansSpace::Gram(Cow::Owned(values), members.len())
            }
            KMeansSpace::Rows(rows, dim) => {
                let values = members
                    .iter()
                    .flat_map(|&i| &rows[i * dim..][..*dim])
                    .copied()
                    .collect();
                KMeansSpace::Rows(Cow::Owned(values), *dim)
            }
        }
    }

    /// The squared distance of two points.
    pub(crate) fn squared_distance(&self, a: usize, b: usize) -> f32 {
        match self {
            KMeansSpace::Gram(dots, n) => dots[a * n + a] + dots[b * n + b] - 2.0 * dots[a * n + b],
            KMeansSpace::Rows(rows, dim) => {
                let pairs = rows[a * dim..][..*dim].iter().zip(&rows[b * dim..][..*dim]);
                pairs.map(|(x, y)| (x - y) * (x - y)).sum()
            }
        }
    }

    /// The squared length of every point.
    #[inline(always)]
    fn squares(&self) -> Vec<f32> {
        match self {
            KMeansSpace::Gram(dots, n) => (0..*n).map(|i| dots[i * n + i]).collect(),
            KMeansSpace::Rows(rows, dim) => rows
                .chunks_exact(*dim)
                .map(|row| crate::features::norm(row).powi(2) as f32)
                .collect(),
        }
    }

    /// The dot products of the mean of each group with every point, a row a group.
    #[inline(always)]
    fn mean_dots<'g>(&self, groups: impl Iterator<Item = &'g [usize]>) -> Vec<f32> {
        let n = self.len();
        match self {
            KMeansSpace::Gram(dots, _) => {
                let mut out = Vec::new();
                for group in groups {
                    let start = out.len();
                    out.resize(start + n, 0.0);
                    let row = &mut out[start..];
                    for &member in group {
                        for (sum, &dot) in row.iter_mut().zip(&dots[member * n..][..n]) {
                            *sum += dot;
                        }
                    }
                    let scale = 1.0 / group.len().max(1) as f32;
                    row.iter_mut().for_each(|v| *v *= scale);
                }
                out
            }
            KMeansSpace::Rows(rows, dim) => {
                let mut means = Vec::new();
                let mut count = 0;
                for group in groups {
                    count += 1;
                    let mut sum = vec![0f64; *dim];
                    for &member in group {
                        for (s, &v) in sum.iter_mut().zip(&rows[member * dim..][..*dim]) {
                            *s += f64::from(v);
                        }
                    }
                    means.extend(sum.iter().map(|&s| (s / group.len().max(1) as f64) as f32));
                }
                let by_point = linalg::dots(rows, &means, *dim);
                let mut out = vec![0.0; count * n];
                for (point, dots) in by_point.chunks_exact(count.max(1)).enumerate() {
                    for (group, &dot) in dots.iter().enumerate() {
                        out[group * n + point] = dot;
                    }
                }
                out
            }
        }
    }

    /// The variance of a feature, averaged over the features; for dot products over `dim` of them.
    fn mean_variance(&self, dim: usize) -> f64 {
        let n = self.len() as f64;
        let everything: Vec<usize> = (0..self.len()).collect();
        let mean = self.mean_dots(std::iter::once(&*everything));
        let mean_square = mean.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let square = self.squares().iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        (square - mean_square).max(0.0) / dim as f64
    }
}

/// When centres move too little to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tolerance {
    /// The sum of the squared shifts is at most this share of the mean variance of a feature (scikit-learn).
    Variance {
        /// The share.
        share: f64,
        /// The number of features.
        dim: usize,
    },
    /// The square of the sum of the shifts is below this (GCD).
    ShiftSum(f64),
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KMeans {
    pub(crate) restarts: usize,
    pub(crate) iterations: usize,
    pub(crate) tolerance: Tolerance,
}

/// A clustering.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    pub(crate) labels: Vec<usize>,
    /// The number of centres; fewer than asked for when there are fewer distinct points.
    pub(crate) centres: usize,
    pub(crate) inertia: f64,
}

impl KMeans {
    /// The settings of scikit-learn for points of `dim` features.
    pub(crate) fn scikit(restarts: usize, dim: usize) -> Self {
        Self {
            restarts,
            iterations: 300,
            tolerance: Tolerance::Variance { share: 1e-4, dim },
        }
    }

    /// The best of several runs, each from greedy k-means++ seeds.
    pub(crate) fn fit(&self, space: &KMeansSpace, k: usize, seed: u64, uses: &[u64]) -> Fit {
        let squares = space.squares();
        let limit = self.shift_limit(space);
        self.best_of(uses, |uses| {
            let seeds = greedy_seeds(space, &squares, k, &mut Rng::new(seed, uses));
            let dots = space.mean_dots(seeds.iter().map(std::slice::from_ref));
            let norms = seeds.iter().map(|&seed| squares[seed]).collect();
            Lloyd::new(space, &squares, dots, norms, &[]).run(self.iterations, limit)
        })
    }

    /// One run from the means of a partition, which must not have empty parts.
    pub(crate) fn refine(&self, space: &KMeansSpace, labels: &[usize], k: usize) -> Fit {
        let squares = space.squares();
        let groups = ClusterMembers::new(labels, k);
        let dots = space.mean_dots((0..k).map(|c| groups.members(c)));
        let norms = (0..k).map(|c| groups.mean_of(c, &dots[c * labels.len()..])).collect();
        let limit = self.shift_limit(space);
        Lloyd::new(space, &squares, dots, norms, &[]).run(self.iterations, limit)
    }

    /// The best of several runs in which the first points keep their given labels; the centres beyond those labels are
    /// seeded among the other points with probability proportional to the squared distance.
    pub(crate) fn fit_clamped(&self, space: &KMeansSpace, clamped: &[usize], k: usize, seed: u64, uses: &[u64]) -> Fit {
        let n = space.len();
        let squares = space.squares();
        let limit = self.shift_limit(space);
        let classes = clamped.iter().max().map_or(0, |&last| last + 1);
        let groups = ClusterMembers::new(clamped, classes);
        let class_dots = space.mean_dots((0..classes).map(|c| groups.members(c)));
        let class_norms: Vec<f32> = (0..classes).map(|c| groups.mean_of(c, &class_dots[c * n..])).collect();
        self.best_of(uses, |uses| {
            let mut rng = Rng::new(seed, uses);
            let (mut dots, mut norms) = (class_dots.clone(), class_norms.clone());
            let mut closest = vec![f32::INFINITY; n];
            closest[..clamped.len()].fill(0.0);
            for c in 0..k {
                if c >= classes {
                    let Some(seed) = draw(&closest, &mut rng) else { break };
                    dots.extend(space.mean_dots(std::iter::once(&[seed][..])));
                    norms.push(squares[seed]);
                }
                for i in clamped.len()..n {
                    let distance = squares[i] + norms[c] - 2.0 * dots[c * n + i];
                    closest[i] = closest[i].min(if distance < SAME_POINT { 0.0 } else { distance });
                }
            }
            Lloyd::new(space, &squares, dots, norms, clamped).run(self.iterations, limit)
        })
    }

    fn best_of(&self, uses: &[u64], run: impl Fn(&[u64]) -> Fit) -> Fit {
        let mut uses = uses.to_vec();
        uses.push(0);
        let last = uses.len() - 1;
        let mut best = run(&uses);
        for restart in 1..self.restarts {
            uses[last] = restart as u64;
            let fit = run(&uses);
            if fit.inertia < best.inertia {
                best = fit;
            }
        }
        best
    }

    fn shift_limit(&self, space: &KMeansSpace) -> ShiftLimit {
        match self.tolerance {
            Tolerance::Variance { share, dim } => ShiftLimit::SquaredSum(share * space.mean_variance(dim)),
            Tolerance::ShiftSum(limit) => ShiftLimit::SumSquared(limit),
        }
    }
}

#[derive(Clone, Copy)]
enum ShiftLimit {
    SquaredSum(f64),
    SumSquared(f64),
}

impl ShiftLimit {
    fn reached(self, squared_shifts: &[f64]) -> bool {
        match self {
            ShiftLimit::SquaredSum(limit) => squared_shifts.iter().sum::<f64>() <= limit,
            ShiftLimit::SumSquared(limit) => squared_shifts.iter().map(|s| s.sqrt()).sum::<f64>().powi(2) < limit,
        }
    }
}

/// Seeds by k-means++ with several tries a seed, of which the one that lowers the total most is taken.
fn greedy_seeds(space: &KMeansSpace, squares: &[f32], k: usize, rng: &mut Rng) -> Vec<usize> {
    linalg::wide(GreedySeeds { space, squares, k, rng })
}

struct GreedySeeds<'a> {
    space: &'a KMeansSpace<'a>,
    squares: &'a [f32],
    k: usize,
    rng: &'a mut Rng,
}

impl GreedySeeds<'_> {
    /// The squared distances of every point from some points, a row a point.
    #[inline(always)]
    fn distances(&self, seeds: &[usize]) -> Vec<f32> {
        let mut dots = self.space.mean_dots(seeds.iter().map(std::slice::from_ref));
        for (row, &seed) in dots.chunks_exact_mut(self.squares.len()).zip(seeds) {
            let own = self.squares[seed];
            for (v, &square) in row.iter_mut().zip(self.squares) {
                let distance = square + own - 2.0 * *v;
                *v = if distance < SAME_POINT { 0.0 } else { distance };
            }
        }
        dots
    }
}

impl linalg::Work for GreedySeeds<'_> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run(self) -> Vec<usize> {
        let n = self.squares.len();
        let tries = 2 + (self.k as f64).ln() as usize;
        let first = self.rng.below(n);
        let mut seeds = vec![first];
        let mut closest = self.distances(&[first]);
        while seeds.len() < self.k {
            let candidates: Vec<usize> = (0..tries).filter_map(|_| draw(&closest, self.rng)).collect();
            if candidates.is_empty() {
                break;
            }
            let mut rows = self.distances(&candidates);
            let mut best = (f64::INFINITY, 0);
            for (at, row) in rows.chunks_exact_mut(n).enumerate() {
                let mut total = 0f64;
                for (v, &c) in row.iter_mut().zip(&closest) {
                    *v = v.min(c);
                    total += f64::from(*v);
                }
                if total < best.0 {
                    best = (total, at);
                }
            }
            seeds.push(candidates[best.1]);
            closest.copy_from_slice(&rows[best.1 * n..][..n]);
        }
        seeds
    }
}

/// A random index with probability proportional to its weight; `None` when all weights are zero.
#[inline(always)]
fn draw(weights: &[f32], rng: &mut Rng) -> Option<usize> {
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    if total <= 0.0 {
        return None;
    }
    let target = rng.unit() * total;
    let mut sum = 0f64;
    let mut last = None;
    for (index, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            sum += f64::from(weight);
            last = Some(index);
            if sum > target {
                break;
            }
        }
    }
    last
}

/// The members of every cluster, in one array.
struct ClusterMembers {
    order: Vec<usize>,
    start: Vec<usize>,
}

impl ClusterMembers {
    #[inline(always)]
    fn new(labels: &[usize], k: usize) -> Self {
        let mut start = vec![0; k + 1];
        labels.iter().for_each(|&label| start[label + 1] += 1);
        for c in 0..k {
            start[c + 1] += start[c];
        }
        let mut next = start.clone();
        let mut order = vec![0; labels.len()];
        for (point, &label) in labels.iter().enumerate() {
            order[next[label]] = point;
            next[label] += 1;
        }
        Self { order, start }
    }

    fn members(&self, cluster: usize) -> &[usize] {
        &self.order[self.start[cluster]..self.start[cluster + 1]]
    }

    /// The mean over a cluster's members of a value per point: the product of two means when the values are one's dots.
    #[inline(always)]
    fn mean_of(&self, cluster: usize, values: &[f32]) -> f32 {
        let members = self.members(cluster);
        let sum: f64 = members.iter().map(|&i| f64::from(values[i])).sum();
        (sum / members.len().max(1) as f64) as f32
    }
}

/// One run of Lloyd's algorithm.
struct Lloyd<'a> {
    space: &'a KMeansSpace<'a>,
    squares: &'a [f32],
    clamped: &'a [usize],
    n: usize,
    k: usize,
    /// k × n: the dot product of every centre with every point.
    dots: Vec<f32>,
    /// The squared length of every centre.
    norms: Vec<f32>,
    labels: Vec<usize>,
    nearest: Vec<u32>,
    /// Squared distance to the nearest centre, less the point's own squared length.
    distance: Vec<f32>,
}

impl<'a> Lloyd<'a> {
    fn new(
        space: &'a KMeansSpace<'a>,
        squares: &'a [f32],
        dots: Vec<f32>,
        norms: Vec<f32>,
        clamped: &'a [usize],
    ) -> Self {
        let n = space.len();
        Self {
            space,
            squares,
            clamped,
            n,
            k: norms.len(),
            dots,
            norms,
            // No point belongs to a centre yet: the first comparison finds every cluster changed.
            labels: vec![usize::MAX; n],
            nearest: vec![0; n],
            distance: vec![0.0; n],
        }
    }

    fn run(self, iterations: usize, limit: ShiftLimit) -> Fit {
        linalg::wide(KMeansRun {
            lloyd: self,
            iterations,
            limit,
        })
    }

    /// Finds the nearest centre of every point; the first of equally near ones.
    #[inline(always)]
    fn assign(&mut self) {
        self.distance.fill(f32::INFINITY);
        for c in 0..self.k {
            let norm = self.norms[c];
            let row = &self.dots[c * self.n..][..self.n];
            for ((distance, nearest), &dot) in self.distance.iter_mut().zip(&mut self.nearest).zip(row) {
                let d = norm - 2.0 * dot;
                let better = d < *distance;
                *distance = if better { d } else { *distance };
                *nearest = if better { c as u32 } else { *nearest };
            }
        }
    }

    /// The nearest centres as labels, with clamped points kept and every centre given at least one point.
    #[inline(always)]
    fn new_labels(&self) -> Vec<usize> {
        let mut labels: Vec<usize> = self.nearest.iter().map(|&c| c as usize).collect();
        labels[..self.clamped.len()].copy_from_slice(self.clamped);
        if !self.clamped.is_empty() {
            // GCD leaves an empty cluster where it was.
            return labels;
        }
        let mut sizes = vec![0usize; self.k];
        labels.iter().for_each(|&c| sizes[c] += 1);
        for empty in 0..self.k {
            if sizes[empty] > 0 {
                continue;
            }
            // The point that fits worst starts the cluster anew.
            let worst = (0..self.n)
                .filter(|&i| sizes[labels[i]] > 1)
                .map(|i| (i, self.squares[i] + self.distance[i]))
                .fold(None, |worst: Option<(usize, f32)>, (i, d)| match worst {
                    Some((_, most)) if d <= most => worst,
                    _ => Some((i, d)),
                });
            if let Some((point, _)) = worst {
                sizes[labels[point]] -= 1;
                sizes[empty] += 1;
                labels[point] = empty;
            }
        }
        labels
    }

    /// Moves every centre whose members changed to their mean; the squared shift of every centre.
    #[inline(always)]
    fn move_centres(&mut self, labels: Vec<usize>) -> Vec<f64> {
        let groups = ClusterMembers::new(&labels, self.k);
        let mut changed = vec![false; self.k];
        for (&old, &new) in self.labels.iter().zip(&labels) {
            if old != new {
                changed[new] = true;
                if let Some(old) = changed.get_mut(old) {
                    *old = true;
                }
            }
        }
        let moved: Vec<usize> = (0..self.k)
            .filter(|&c| changed[c] && !groups.members(c).is_empty())
            .collect();
        let rows = self.moved_dots(&moved, &groups, &labels);
        let mut shifts = vec![0f64; self.k];
        for (&c, row) in moved.iter().zip(rows.chunks_exact(self.n)) {
            let old = &mut self.dots[c * self.n..][..self.n];
            let norm = groups.mean_of(c, row);
            let cross = groups.mean_of(c, old);
            shifts[c] = (f64::from(norm) + f64::from(self.norms[c]) - 2.0 * f64::from(cross)).max(0.0);
            old.copy_from_slice(row);
            self.norms[c] = norm;
        }
        self.labels = labels;
        shifts
    }

    /// The dot products of the means of the changed clusters with every point, a row a cluster.
    ///
    /// From dot products, a few points that came and went are added to and taken from the sums of before: after the first
    /// iterations that touches a small part of the matrix.
    #[inline(always)]
    fn moved_dots(&self, moved: &[usize], groups: &ClusterMembers, labels: &[usize]) -> Vec<f32> {
        let members: usize = moved.iter().map(|&c| groups.members(c).len()).sum();
        let movers = self.labels.iter().zip(labels).filter(|(old, new)| old != new).count();
        let (KMeansSpace::Gram(dots, n), true) = (self.space, 2 * movers < members) else {
            return self.space.mean_dots(moved.iter().map(|&c| groups.members(c)));
        };
        let mut sizes = vec![0usize; self.k];
        let mut row_of = vec![usize::MAX; self.k];
        self.labels.iter().for_each(|&c| sizes[c] += 1);
        let mut rows = Vec::with_capacity(moved.len() * n);
        for (at, &c) in moved.iter().enumerate() {
            row_of[c] = at;
            let size = sizes[c] as f32;
            rows.extend(self.dots[c * n..][..*n].iter().map(|&dot| dot * size));
        }
        for (point, (&old, &new)) in self.labels.iter().zip(labels).enumerate() {
            if old != new {
                let dots = &dots[point * n..][..*n];
                if row_of[old] != usize::MAX {
                    let row = &mut rows[row_of[old] * n..][..*n];
                    row.iter_mut().zip(dots).for_each(|(sum, &dot)| *sum -= dot);
                }
                let row = &mut rows[row_of[new] * n..][..*n];
                row.iter_mut().zip(dots).for_each(|(sum, &dot)| *sum += dot);
            }
        }
        for (&c, row) in moved.iter().zip(rows.chunks_exact_mut(*n)) {
            let scale = 1.0 / groups.members(c).len() as f32;
            row.iter_mut().for_each(|v| *v *= scale);
        }
        rows
    }

    #[inline(always)]
    fn finish(self) -> Fit {
        let mut inertia = 0f64;
        let mut labels = Vec::with_capacity(self.n);
        for i in 0..self.n {
            let (label, distance) = match self.clamped.get(i) {
                Some(&label) => (label, self.norms[label] - 2.0 * self.dots[label * self.n + i]),
                None => (self.nearest[i] as usize, self.distance[i]),
            };
            inertia += f64::from(self.squares[i]) + f64::from(distance);
            labels.push(label);
        }
        Fit {
            labels,
            centres: self.k,
            inertia,
        }
    }
}

/// A whole run as one piece of work.
struct KMeansRun<'a> {
    lloyd: Lloyd<'a>,
    iterations: usize,
    limit: ShiftLimit,
}

impl linalg::Work for KMeansRun<'_> {
    type Output = Fit;

    #[inline(always)]
    fn run(self) -> Fit {
        let mut lloyd = self.lloyd;
        lloyd.assign();
        for _ in 0..self.iterations {
            let labels = lloyd.new_labels();
            if labels == lloyd.labels {
                break;
            }
            let shifts = lloyd.move_centres(labels);
            lloyd.assign();
            if self.limit.reached(&shifts) {
                break;
            }
        }
        lloyd.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};
    use serde_json::Value;

    /// The same cases every time, and no files.
    fn config(cases: u32) -> Config {
        Config {
            cases,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(20_250_508),
            ..Config::default()
        }
    }

    /// Lloyd's algorithm until no label changes, or for so many iterations.
    fn plain(iterations: usize) -> KMeans {
        KMeans {
            restarts: 1,
            iterations,
            tolerance: Tolerance::ShiftSum(0.0),
        }
    }

    /// Gaussian points, in groups when `spread` is small.
    fn cloud(n: usize, dim: usize, spread: f64, seed: u64) -> Vec<f32> {
        let mut rng = Rng::new(seed, &[77]);
        let mut normal = || (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
        let centres: Vec<f64> = (0..4 * dim).map(|_| normal()).collect();
        (0..n * dim)
            .map(|at| (centres[(at / dim) % 4 * dim + at % dim] + spread * normal()) as f32)
            .collect()
    }

    fn rows(values: &[f32], dim: usize) -> KMeansSpace<'_> {
        KMeansSpace::Rows(Cow::Borrowed(values), dim)
    }

    fn gram(values: &[f32], dim: usize) -> KMeansSpace<'static> {
        KMeansSpace::Gram(Cow::Owned(linalg::gram(values, dim)), values.len() / dim)
    }

    fn wide(values: &[f32], dim: usize) -> Vec<Vec<f64>> {
        values
            .chunks_exact(dim)
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect()
    }

    fn squared(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
    }

    fn numbered(labels: &[usize]) -> Vec<usize> {
        crate::discovery::canonical(labels).0
    }

    /// The textbook: the mean of every label that has points.
    fn means(points: &[Vec<f64>], labels: &[usize], old: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mean = |c: usize| {
            let members: Vec<&Vec<f64>> = points
                .iter()
                .zip(labels)
                .filter(|(_, l)| **l == c)
                .map(|(p, _)| p)
                .collect();
            if members.is_empty() {
                return old[c].clone();
            }
            (0..points[0].len())
                .map(|d| members.iter().map(|p| p[d]).sum::<f64>() / members.len() as f64)
                .collect()
        };
        (0..old.len()).map(mean).collect()
    }

    /// The textbook: Lloyd's algorithm in which the first points keep their labels. `None` when a decision is so close
    /// that rounding may turn it, or when a cluster that is not clamped loses all its points.
    fn textbook(
        points: &[Vec<f64>],
        mut centres: Vec<Vec<f64>>,
        clamped: &[usize],
        iterations: usize,
        enough: impl Fn(&[f64]) -> Option<bool>,
    ) -> Option<(Vec<usize>, f64)> {
        let assign = |centres: &[Vec<f64>]| -> Option<Vec<usize>> {
            let nearest = |i: usize| {
                let distances: Vec<f64> = centres.iter().map(|c| squared(&points[i], c)).collect();
                let best = (0..centres.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b]))?;
                let clear = (0..centres.len()).all(|c| c == best || distances[c] > distances[best] + 1e-4);
                clear.then_some(best)
            };
            (0..points.len())
                .map(|i| clamped.get(i).copied().map_or_else(|| nearest(i), Some))
                .collect()
        };
        let mut labels = assign(&centres)?;
        let mut before = None;
        for _ in 0..iterations {
            if before.as_ref() == Some(&labels) {
                break;
            }
            if clamped.is_empty() && (0..centres.len()).any(|c| !labels.contains(&c)) {
                return None;
            }
            let moved = means(points, &labels, &centres);
            let shifts: Vec<f64> = moved.iter().zip(&centres).map(|(a, b)| squared(a, b)).collect();
            centres = moved;
            before = Some(labels);
            labels = assign(&centres)?;
            if enough(&shifts)? {
                break;
            }
        }
        let inertia = points.iter().zip(&labels).map(|(p, &l)| squared(p, &centres[l])).sum();
        Some((labels, inertia))
    }

    proptest! {
        #![proptest_config(config(150))]

        #[test]
        fn dot_products_and_rows_give_the_same_fit(
            n in 6usize..60, dim in 1usize..12, k in 1usize..6, spread in 0.05f64..1.0, seed in 0u64..1 << 32
        ) {
            let values = cloud(n, dim, spread, seed);
            let kmeans = KMeans::scikit(10, dim);
            let (a, b) = (
                kmeans.fit(&rows(&values, dim), k, seed, &[1]),
                kmeans.fit(&gram(&values, dim), k, seed, &[1]),
            );
            // Two starts may find the same clustering under other numbers, and rounding chooses between them.
            prop_assert!((a.inertia - b.inertia).abs() <= 1e-4 * (1.0 + a.inertia), "{} {}", a.inertia, b.inertia);
            prop_assert_eq!(numbered(&a.labels), numbered(&b.labels));
            prop_assert_eq!(a.centres, b.centres);
            let (start, parts) = crate::discovery::canonical(&(0..n).map(|i| i * k / n).collect::<Vec<_>>());
            let (a, b) = (
                kmeans.refine(&rows(&values, dim), &start, parts),
                kmeans.refine(&gram(&values, dim), &start, parts),
            );
            // Both points of a pair fit equally badly, so rounding chooses which of them an empty cluster gets.
            prop_assert_eq!(numbered(&a.labels), numbered(&b.labels));
        }

        #[test]
        fn refining_is_the_textbook_algorithm(
            n in 4usize..50, dim in 1usize..8, k in 1usize..6, spread in 0.05f64..1.0,
            iterations in prop_oneof![Just(0usize), Just(1), Just(2), Just(300)], seed in 0u64..1 << 32
        ) {
            let values = cloud(n, dim, spread, seed);
            let points = wide(&values, dim);
            let mut rng = Rng::new(seed, &[78]);
            let (start, k) = crate::discovery::canonical(&(0..n).map(|_| rng.below(k)).collect::<Vec<_>>());
            let centres = means(&points, &start, &vec![Vec::new(); k]);
            let Some((labels, inertia)) = textbook(&points, centres, &[], iterations, |_| Some(false)) else {
                return Ok(());
            };
            for space in [rows(&values, dim), gram(&values, dim)] {
                let fit = plain(iterations).refine(&space, &start, k);
                prop_assert_eq!(&fit.labels, &labels);
                prop_assert!((fit.inertia - inertia).abs() <= 1e-4 * (1.0 + inertia), "{} {}", fit.inertia, inertia);
                prop_assert_eq!(fit.centres, k);
            }
        }

        #[test]
        fn centres_that_hardly_move_end_it(
            n in 20usize..60, dim in 1usize..5, share in 0.001f64..0.5, seed in 0u64..1 << 32
        ) {
            let values = cloud(n, dim, 1.0, seed);
            let points = wide(&values, dim);
            let start: Vec<usize> = (0..n).map(|i| i % 3).collect();
            let centres = means(&points, &start, &vec![Vec::new(); 3]);
            let centre = &means(&points, &vec![0; n], &[Vec::new()])[0];
            let variance = points.iter().map(|p| squared(p, centre)).sum::<f64>() / (n * dim) as f64;
            let limit = share * variance;
            let enough = |shifts: &[f64]| {
                let sum: f64 = shifts.iter().sum();
                ((sum - limit).abs() > 1e-5).then_some(sum <= limit)
            };
            let Some((labels, _)) = textbook(&points, centres, &[], 300, enough) else {
                return Ok(());
            };
            let kmeans = KMeans { tolerance: Tolerance::Variance { share, dim }, ..plain(300) };
            for space in [rows(&values, dim), gram(&values, dim)] {
                prop_assert_eq!(&kmeans.refine(&space, &start, 3).labels, &labels);
            }
        }

        #[test]
        fn inertia_is_the_sum_of_squared_distances_to_the_means(
            n in 2usize..50, dim in 1usize..8, k in 1usize..6, spread in 0.05f64..1.0, seed in 0u64..1 << 32
        ) {
            let values = cloud(n, dim, spread, seed);
            let points = wide(&values, dim);
            for space in [rows(&values, dim), gram(&values, dim)] {
                let fit = plain(300).fit(&space, k.min(n), seed, &[]);
                let centres = means(&points, &fit.labels, &vec![vec![0.0; dim]; fit.centres]);
                let expected: f64 = points.iter().zip(&fit.labels).map(|(p, &l)| squared(p, &centres[l])).sum();
                prop_assert!((fit.inertia - expected).abs() <= 1e-4 * (1.0 + expected), "{} {}", fit.inertia, expected);
                // No point would rather be elsewhere.
                for (point, &label) in points.iter().zip(&fit.labels) {
                    let own = squared(point, &centres[label]);
                    prop_assert!(centres.iter().all(|c| squared(point, c) >= own - 1e-4));
                }
            }
        }

        #[test]
        fn clamped_classes_are_the_textbook_semi_supervised_algorithm(
            n in 6usize..50, dim in 1usize..8, classes in 1usize..5, each in 1usize..4, spread in 0.05f64..1.0,
            iterations in prop_oneof![Just(1usize), Just(2), Just(10)],
            tolerance in prop_oneof![Just(1e-4f64), Just(0.25)], seed in 0u64..1 << 32
        ) {
            let values = cloud(n + classes * each, dim, spread, seed);
            let points = wide(&values, dim);
            let clamped: Vec<usize> = (0..classes * each).map(|i| i % classes).collect();
            let centres = means(&points[..clamped.len()], &clamped, &vec![Vec::new(); classes]);
            let enough = |shifts: &[f64]| {
                let sum: f64 = shifts.iter().map(|s| s.sqrt()).sum();
                let clear = sum == 0.0 || (sum * sum - tolerance).abs() > 1e-2 * tolerance.max(0.1);
                clear.then_some(sum * sum < tolerance)
            };
            let Some((labels, inertia)) = textbook(&points, centres, &clamped, iterations, enough) else {
                return Ok(());
            };
            let kmeans = KMeans { restarts: 3, iterations, tolerance: Tolerance::ShiftSum(tolerance) };
            for space in [rows(&values, dim), gram(&values, dim)] {
                let fit = kmeans.fit_clamped(&space, &clamped, classes, seed, &[]);
                prop_assert_eq!(&fit.labels, &labels);
                prop_assert!((fit.inertia - inertia).abs() <= 1e-4 * (1.0 + inertia), "{} {}", fit.inertia, inertia);
            }
        }

        #[test]
        fn clamped_points_stay_and_further_centres_come_from_the_others(
            n in 6usize..50, dim in 1usize..8, classes in 1usize..5, more in 0usize..6, seed in 0u64..1 << 32
        ) {
            let values = cloud(n + classes, dim, 0.2, seed);
            let clamped: Vec<usize> = (0..classes).rev().collect();
            let kmeans = KMeans { restarts: 3, iterations: 10, tolerance: Tolerance::ShiftSum(1e-4) };
            for space in [rows(&values, dim), gram(&values, dim)] {
                let fit = kmeans.fit_clamped(&space, &clamped, classes + more, seed, &[]);
                prop_assert_eq!(&fit.labels[..classes], &clamped);
                prop_assert_eq!(fit.centres, classes + more.min(n));
                prop_assert!(fit.labels.iter().all(|&label| label < fit.centres));
                prop_assert_eq!(&fit, &kmeans.fit_clamped(&space, &clamped, classes + more, seed, &[]));
            }
        }
    }

    #[test]
    fn more_restarts_never_fit_worse_and_each_has_its_own_start() {
        let values = cloud(60, 3, 0.9, 5);
        let space = rows(&values, 3);
        let inertia = |restarts| KMeans::scikit(restarts, 3).fit(&space, 8, 1, &[]).inertia;
        let all: Vec<f64> = (1..12).map(inertia).collect();
        assert!(all.windows(2).all(|pair| pair[1] <= pair[0]), "{all:?}");
        assert!(all[0] > all[10], "{all:?}");
    }

    #[test]
    fn inertia_is_that_of_scikit_learn() {
        let goldens: Value = serde_json::from_str(include_str!("../../tests/goldens/kmeans.json")).unwrap();
        let cases = goldens.as_array().unwrap();
        assert!(cases.len() > 4);
        for (number, case) in cases.iter().enumerate() {
            let points = case["points"].as_array().unwrap();
            let dim = points[0].as_array().unwrap().len();
            let values: Vec<f32> = points
                .iter()
                .flat_map(|row| row.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32))
                .collect();
            let k = case["k"].as_u64().unwrap() as usize;
            let golden = |name: &str| case[name].as_f64().unwrap();
            for space in [rows(&values, dim), gram(&values, dim)] {
                let inertia = |restarts, seed| KMeans::scikit(restarts, dim).fit(&space, k, seed, &[]).inertia;
                // The tolerance may end a run just before the bottom, here as there.
                let close = |found: f64, expected: f64| (found / expected - 1.0).abs() <= 1e-3;
                if number < 3 {
                    assert!(
                        close(inertia(20, 0), golden("best_of_20")),
                        "case {number}: {}",
                        inertia(20, 0)
                    );
                }
                assert!(
                    close(inertia(200, 0), golden("best")),
                    "case {number}: {}",
                    inertia(200, 0)
                );
                // Single runs are as good on average: four standard errors of the difference of two means of 400, and
                // room for one run in hundreds that goes wrong here and not there.
                let mean = (0..400).map(|seed| inertia(1, seed)).sum::<f64>() / 400.0;
                let error = golden("deviation") * (2.0f64 / 400.0).sqrt();
                assert!(
                    (mean - golden("mean")).abs() <= 4.0 * error + 0.02 * golden("best"),
                    "case {number}: {mean}"
                );
            }
        }
    }

    #[test]
    fn a_centre_without_points_goes_to_the_worst_fit() {
        // The first centre lies between two points that are nearer to the others.
        let values = [-10.0, 10.0, -9.0, -11.0, 9.0, 10.2, 12.5];
        let start = [0, 0, 1, 1, 2, 2, 2];
        for space in [rows(&values, 1), gram(&values, 1)] {
            for iterations in [1, 300] {
                let fit = plain(iterations).refine(&space, &start, 3);
                assert_eq!(fit.labels, [1, 2, 1, 1, 2, 2, 0]);
                assert!((fit.inertia - (2.0 + 0.8267)).abs() < 1e-3, "{}", fit.inertia);
            }
        }
    }

    #[test]
    fn there_are_no_more_centres_than_distinct_points() {
        let distinct = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8f32]];
        let values: Vec<f32> = (0..10).flat_map(|i| distinct[i % 3]).collect();
        let expected: Vec<usize> = (0..10).map(|i| i % 3).collect();
        for space in [rows(&values, 2), gram(&values, 2)] {
            for k in 3..12 {
                let fit = KMeans::scikit(3, 2).fit(&space, k, 4, &[]);
                assert_eq!((numbered(&fit.labels), fit.centres), (expected.clone(), 3), "k = {k}");
                assert!(fit.inertia.abs() < 1e-5);
            }
            let clamped = [0, 1];
            let fit = KMeans::scikit(3, 2).fit_clamped(&space, &clamped, 9, 4, &[]);
            assert_eq!((numbered(&fit.labels), fit.centres), (expected.clone(), 3));
        }
        let same = [0.6f32, 0.8].repeat(5);
        for space in [rows(&same, 2), gram(&same, 2)] {
            let fit = KMeans::scikit(3, 2).fit(&space, 4, 4, &[]);
            assert_eq!((fit.labels, fit.centres), (vec![0; 5], 1));
        }
    }

    #[test]
    fn draws_are_in_proportion_to_the_weights() {
        let weights = [0.0, 1.0, 0.0, 3.0, 0.0];
        let mut rng = Rng::new(3, &[]);
        let mut counts = [0usize; 5];
        for _ in 0..40_000 {
            counts[draw(&weights, &mut rng).unwrap()] += 1;
        }
        assert_eq!((counts[0], counts[2], counts[4]), (0, 0, 0));
        assert!((9_500..10_500).contains(&counts[1]), "{counts:?}");
        assert_eq!(draw(&[0.0; 3], &mut rng), None);
        assert_eq!(draw(&[], &mut rng), None);
    }

    #[test]
    fn subsets_and_distances_are_those_of_the_points() {
        let values = cloud(9, 3, 0.5, 6);
        let points = wide(&values, 3);
        let members = [7, 0, 7, 3];
        for space in [rows(&values, 3), gram(&values, 3)] {
            let subset = space.subset(&members);
            assert_eq!(subset.len(), 4);
            for (a, &i) in members.iter().enumerate() {
                for (b, &j) in members.iter().enumerate() {
                    let expected = squared(&points[i], &points[j]);
                    assert!((f64::from(subset.squared_distance(a, b)) - expected).abs() < 1e-4);
                    assert!((f64::from(space.squared_distance(i, j)) - expected).abs() < 1e-4);
                }
            }
        }
    }
}
