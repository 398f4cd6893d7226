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
pub(crate) enum Space<'a> {
    /// By their n × n dot products.
    Gram(Cow<'a, [f32]>, usize),
    /// By their rows of `dim` features.
    Rows(Cow<'a, [f32]>, usize),
}

impl<'a> Space<'a> {
    /// The points of a task: by dot products where the task keeps them.
    pub(crate) fn of(task: &'a Task) -> Self {
        match task.gram() {
            Some(gram) => Space::Gram(Cow::Borrowed(gram), task.points().rows()),
            None => Space::Rows(Cow::Borrowed(task.points().values()), task.dim()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Space::Gram(_, n) => *n,
            Space::Rows(rows, dim) => rows.len() / dim,
        }
    }

    /// Some of the points, in the given order.
    pub(crate) fn subset(&self, members: &[usize]) -> Space<'static> {
        match self {
            Space::Gram(dots, n) => {
                let rows = members.iter().map(|&i| &dots[i * n..][..*n]);
                let values = rows.flat_map(|row| members.iter().map(|&j| row[j])).collect();
                Space::Gram(Cow::Owned(values), members.len())
            }
            Space::Rows(rows, dim) => {
                let values = members
                    .iter()
                    .flat_map(|&i| &rows[i * dim..][..*dim])
                    .copied()
                    .collect();
                Space::Rows(Cow::Owned(values), *dim)
            }
        }
    }

    /// The squared distance of two points.
    pub(crate) fn squared_distance(&self, a: usize, b: usize) -> f32 {
        match self {
            Space::Gram(dots, n) => dots[a * n + a] + dots[b * n + b] - 2.0 * dots[a * n + b],
            Space::Rows(rows, dim) => {
                let pairs = rows[a * dim..][..*dim].iter().zip(&rows[b * dim..][..*dim]);
                pairs.map(|(x, y)| (x - y) * (x - y)).sum()
            }
        }
    }

    /// The squared length of every point.
    fn squares(&self) -> Vec<f32> {
        match self {
            Space::Gram(dots, n) => (0..*n).map(|i| dots[i * n + i]).collect(),
            Space::Rows(rows, dim) => rows
                .chunks_exact(*dim)
                .map(|row| crate::features::norm(row).powi(2) as f32)
                .collect(),
        }
    }

    /// The dot products of the mean of each group with every point, a row a group.
    fn mean_dots<'g>(&self, groups: impl Iterator<Item = &'g [usize]>) -> Vec<f32> {
        let n = self.len();
        match self {
            Space::Gram(dots, _) => {
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
            Space::Rows(rows, dim) => {
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
    pub(crate) fn fit(&self, space: &Space, k: usize, seed: u64, uses: &[u64]) -> Fit {
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
    pub(crate) fn refine(&self, space: &Space, labels: &[usize], k: usize) -> Fit {
        let squares = space.squares();
        let groups = Groups::new(labels, k);
        let dots = space.mean_dots((0..k).map(|c| groups.members(c)));
        let norms = (0..k).map(|c| groups.mean_of(c, &dots[c * labels.len()..])).collect();
        Lloyd::new(space, &squares, dots, norms, &[]).run(self.iterations, self.shift_limit(space))
    }

    /// The best of several runs in which the first points keep their given labels; the centres beyond those labels are
    /// seeded among the other points with probability proportional to the squared distance.
    pub(crate) fn fit_clamped(&self, space: &Space, clamped: &[usize], k: usize, seed: u64, uses: &[u64]) -> Fit {
        let n = space.len();
        let squares = space.squares();
        let limit = self.shift_limit(space);
        let classes = clamped.iter().max().map_or(0, |&last| last + 1);
        let groups = Groups::new(clamped, classes);
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

    fn shift_limit(&self, space: &Space) -> ShiftLimit {
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
fn greedy_seeds(space: &Space, squares: &[f32], k: usize, rng: &mut Rng) -> Vec<usize> {
    let n = space.len();
    let tries = 2 + (k as f64).ln() as usize;
    let distances = |seeds: &[usize]| -> Vec<f32> {
        let mut dots = space.mean_dots(seeds.iter().map(std::slice::from_ref));
        for (row, &seed) in dots.chunks_exact_mut(n).zip(seeds) {
            for (v, &square) in row.iter_mut().zip(squares) {
                let distance = square + squares[seed] - 2.0 * *v;
                *v = if distance < SAME_POINT { 0.0 } else { distance };
            }
        }
        dots
    };
    let first = rng.below(n);
    let mut seeds = vec![first];
    let mut closest = distances(&[first]);
    while seeds.len() < k {
        let candidates: Vec<usize> = (0..tries).filter_map(|_| draw(&closest, rng)).collect();
        if candidates.is_empty() {
            break;
        }
        let mut rows = distances(&candidates);
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

/// A random index with probability proportional to its weight; `None` when all weights are zero.
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
struct Groups {
    order: Vec<usize>,
    start: Vec<usize>,
}

impl Groups {
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
    fn mean_of(&self, cluster: usize, values: &[f32]) -> f32 {
        let members = self.members(cluster);
        let sum: f64 = members.iter().map(|&i| f64::from(values[i])).sum();
        (sum / members.len().max(1) as f64) as f32
    }
}

/// One run of Lloyd's algorithm.
struct Lloyd<'a> {
    space: &'a Space<'a>,
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
    fn new(space: &'a Space<'a>, squares: &'a [f32], dots: Vec<f32>, norms: Vec<f32>, clamped: &'a [usize]) -> Self {
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

    fn run(mut self, iterations: usize, limit: ShiftLimit) -> Fit {
        self.assign();
        for _ in 0..iterations {
            let labels = self.new_labels();
            if labels == self.labels {
                break;
            }
            let shifts = self.move_centres(labels);
            self.assign();
            if limit.reached(&shifts) {
                break;
            }
        }
        self.finish()
    }

    /// Finds the nearest centre of every point; the first of equally near ones.
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
    fn move_centres(&mut self, labels: Vec<usize>) -> Vec<f64> {
        let groups = Groups::new(&labels, self.k);
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
        let rows = self.space.mean_dots(moved.iter().map(|&c| groups.members(c)));
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
