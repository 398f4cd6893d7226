//! Ward's tree over weighted points: always the merge that raises the sum of squared distances to the centres least.

use std::cmp::Ordering;

use rayon::prelude::*;

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

/// Up to so many points a matrix of all costs is small and fast to look up.
const MATRIX_UP_TO: usize = 2048;

/// The tree of points given by their rows of `dim` features; see [`ward_of_gram`].
///
/// Of many points there is no matrix: memory is a copy of the rows and a little more.
pub(crate) fn ward(rows: &[f32], dim: usize, weights: &[f32], apart: usize) -> Tree {
    if weights.len() <= MATRIX_UP_TO {
        ward_of_gram(&linalg::gram(rows, dim), weights, apart)
    } else {
        Rounds::new(rows, dim, weights, apart).run().into_tree(weights.len())
    }
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

/// How many of the clusters around it a cluster knows.
const KNOWN: usize = 8;

/// A cluster that another one may merge with.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cost: f32,
    slot: u32,
}

impl Candidate {
    fn order(&self, other: &Candidate) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.slot.cmp(&other.slot))
    }
}

/// What a cluster knows of the clusters around it.
#[derive(Clone, Debug)]
struct Around {
    /// The cheapest to merge with first.
    candidates: Vec<Candidate>,
    /// No cluster that is not among the candidates is cheaper than this.
    bound: f32,
}

impl Around {
    /// The cheapest of all, if it is known for sure.
    fn nearest(&self) -> Option<Candidate> {
        self.candidates
            .first()
            .copied()
            .filter(|first| first.cost <= self.bound)
    }

    /// Whether there are clusters that it knows too little of.
    fn is_lost(&self) -> bool {
        self.nearest().is_none() && self.bound < f32::INFINITY
    }

    /// Puts the candidates in order and keeps a few.
    fn settle(&mut self) {
        self.candidates.sort_unstable_by(Candidate::order);
        if let Some(first_left_out) = self.candidates.get(KNOWN) {
            self.bound = smaller(self.bound, first_left_out.cost);
            self.candidates.truncate(KNOWN);
        }
    }
}

/// Merges in rounds, in each of them all clusters that are each other's nearest.
///
/// That is right for the same reason as chains are, and for this one a cluster need not look around again in every round.
/// When two clusters merge, the result is no nearer to a third one than the nearer of them was. So if a cluster knows some
/// candidates and that no other costs less than its bound, the bound stays true while others merge, as long as a merge of a
/// candidate with whatever takes the candidate's place. Only when the cheapest candidate costs more than the bound must it
/// be compared with all clusters again, by products of blocks of centres. Without the list it would have to be each time that
/// its nearest merges, and around a prototype, which is nearer to all the points of a class than they are to each
/// other, that is once a point.
struct Rounds {
    dim: usize,
    apart: usize,
    lightest: f32,
    /// A cluster keeps the slot of its first point, and slots the order of these, so that those that hold one of the
    /// first `apart` points are the first for ever.
    centres: Vec<f32>,
    weights: Vec<f32>,
    around: Vec<Around>,
    first_points: Vec<u32>,
    /// The slots in use, in order.
    alive: Vec<u32>,
}

impl Rounds {
    fn new(rows: &[f32], dim: usize, weights: &[f32], apart: usize) -> Self {
        let n = weights.len();
        let nothing = Around {
            candidates: Vec::new(),
            bound: 0.0,
        };
        Self {
            dim,
            apart,
            lightest: weights.iter().copied().fold(f32::INFINITY, smaller),
            centres: centred(rows, dim),
            weights: weights.to_vec(),
            around: vec![nothing; n],
            first_points: (0..n as u32).collect(),
            alive: (0..n as u32).collect(),
        }
    }

    fn run(mut self) -> Merges {
        let mut merges = Merges::new(self.weights.len());
        loop {
            self.look_around();
            let pairs = self.pairs();
            if pairs.is_empty() {
                return merges;
            }
            for &(keep, nearest) in &pairs {
                let first = |slot: u32| self.first_points[slot as usize] as usize;
                merges.push(first(keep), first(nearest.slot), nearest.cost);
            }
            self.merge(&pairs);
        }
    }

    /// The pairs to merge now: all that are each other's nearest.
    fn pairs(&self) -> Vec<(u32, Candidate)> {
        let nearest = |slot: u32| self.around[slot as usize].nearest();
        let candidates = || self.alive.iter().filter_map(|&slot| Some((slot, nearest(slot)?)));
        let mutual = |&(slot, candidate): &(u32, Candidate)| {
            slot < candidate.slot && nearest(candidate.slot).is_some_and(|back| back.slot == slot)
        };
        let pairs: Vec<(u32, Candidate)> = candidates().filter(mutual).collect();
        if !pairs.is_empty() {
            return pairs;
        }
        // Only rounding can say that nobody is the nearest of its nearest. The cheapest pair is right all the same.
        let cheapest = candidates().min_by(|a, b| a.1.order(&b.1));
        let ordered = |(slot, Candidate { cost, slot: other }): (u32, Candidate)| {
            let slot_of_other = slot.max(other);
            (
                slot.min(other),
                Candidate {
                    cost,
                    slot: slot_of_other,
                },
            )
        };
        cheapest.map(ordered).into_iter().collect()
    }

    fn merge(&mut self, pairs: &[(u32, Candidate)]) {
        let mut merged_into: Vec<u32> = (0..self.weights.len() as u32).collect();
        let mut merged = vec![false; self.weights.len()];
        for &(keep, Candidate { cost, slot: drop }) in pairs {
            merged_into[drop as usize] = keep;
            merged[keep as usize] = true;
            merged[drop as usize] = true;
            self.merge_pair(keep as usize, drop as usize, cost);
        }
        self.alive.retain(|&slot| merged_into[slot as usize] == slot);

        let (centres, weights, dim, apart) = (&self.centres, &self.weights, self.dim, self.apart);
        let update = |(slot, around): (usize, &mut Around)| {
            if !merged[slot] && !around.candidates.iter().any(|c| merged[c.slot as usize]) {
                return;
            }
            let (centre, weight) = (&centres[slot * dim..][..dim], weights[slot]);
            around.candidates.iter_mut().for_each(|c| {
                c.cost = if merged[slot] || merged[c.slot as usize] {
                    f32::NAN
                } else {
                    c.cost
                };
                c.slot = merged_into[c.slot as usize];
            });
            around.candidates.sort_unstable_by_key(|c| c.slot);
            around.candidates.dedup_by_key(|c| c.slot);
            around
                .candidates
                .retain(|c| c.slot as usize != slot && (slot >= apart || c.slot as usize >= apart));
            for candidate in &mut around.candidates {
                if candidate.cost.is_nan() {
                    let other = candidate.slot as usize;
                    let distance = linalg::wide(SquaredDistance(centre, &centres[other * dim..][..dim]));
                    candidate.cost = rise(weight, weights[other], distance);
                }
            }
            around.settle();
        };
        self.around.par_iter_mut().enumerate().with_min_len(64).for_each(update);
    }

    /// Puts the mean of two clusters, and what both knew, in the slot of the first.
    fn merge_pair(&mut self, keep: usize, drop: usize, cost: f32) {
        let (weight, other_weight) = (self.weights[keep], self.weights[drop]);
        let total = weight + other_weight;
        let (upper, lower) = self.centres.split_at_mut(drop * self.dim);
        for (v, &other) in upper[keep * self.dim..][..self.dim].iter_mut().zip(&lower[..self.dim]) {
            *v += other_weight / total * (other - *v);
        }
        self.weights[keep] = total;

        let Around { candidates, bound } = std::mem::replace(
            &mut self.around[drop],
            Around {
                candidates: Vec::new(),
                bound: f32::INFINITY,
            },
        );
        let around = &mut self.around[keep];
        around.candidates.extend(candidates);
        // What both did not know costs at least the bound of each. How much that makes it cost to merge with the two together
        // rises or falls with the weight of the third, so it is least for the lightest or for an endless weight.
        let least = |third: f32| {
            ((weight + third) * around.bound + (other_weight + third) * bound - third * cost) / (total + third)
        };
        let bound = smaller(least(self.lightest), around.bound + bound - cost);
        around.bound = bound;
    }

    /// Compares the clusters that know too little with all others.
    fn look_around(&mut self) {
        if !self.alive.iter().any(|&slot| self.around[slot as usize].is_lost()) {
            return;
        }
        self.compact();
        let lost: Vec<usize> = (0..self.alive.len())
            .filter(|&slot| self.around[slot].is_lost())
            .collect();
        let squares: Vec<f32> = self.centres.par_chunks(self.dim).map(square).collect();
        let block = (lost.len() / 8).clamp(32, ROWS);
        let found: Vec<Vec<Around>> = lost
            .par_chunks(block)
            .map(|block| self.search(block, &squares))
            .collect();
        for (&slot, around) in lost.iter().zip(found.into_iter().flatten()) {
            self.around[slot] = around;
        }
    }

    /// Moves all clusters together. A product reads every centre anyway.
    fn compact(&mut self) {
        if self.alive.len() == self.weights.len() {
            return;
        }
        let mut moved_to = vec![0u32; self.weights.len()];
        for (to, &from) in self.alive.iter().enumerate() {
            let from = from as usize;
            moved_to[from] = to as u32;
            self.centres
                .copy_within(from * self.dim..(from + 1) * self.dim, to * self.dim);
            self.weights[to] = self.weights[from];
            self.around.swap(to, from);
            self.first_points[to] = self.first_points[from];
        }
        let n = self.alive.len();
        self.centres.truncate(n * self.dim);
        self.weights.truncate(n);
        self.around.truncate(n);
        self.first_points.truncate(n);
        self.alive = (0..n as u32).collect();
        for candidate in self.around.iter_mut().flat_map(|around| &mut around.candidates) {
            candidate.slot = moved_to[candidate.slot as usize];
        }
    }

    /// What is around the given clusters.
    fn search(&self, slots: &[usize], squares: &[f32]) -> Vec<Around> {
        let dim = self.dim;
        let rows: Vec<f32> = slots
            .iter()
            .flat_map(|&slot| &self.centres[slot * dim..][..dim])
            .copied()
            .collect();
        let mut tops: Vec<Top> = slots.iter().map(|_| Top::new()).collect();
        let mut tile = vec![0.0; slots.len() * COLUMNS];
        for (at, columns) in self.centres.chunks(COLUMNS * dim).enumerate() {
            linalg::product(&rows, columns, dim, &mut tile, COLUMNS);
            let (from, width) = (at * COLUMNS, columns.len() / dim);
            for ((dots, top), &slot) in tile.chunks_exact(COLUMNS).zip(&mut tops).zip(slots) {
                linalg::wide(Scan {
                    top,
                    slot,
                    apart: self.apart,
                    weight: self.weights[slot],
                    square: squares[slot],
                    from,
                    dots: &dots[..width],
                    weights: &self.weights[from..from + width],
                    squares: &squares[from..from + width],
                });
            }
        }
        let settled = tops.into_iter().zip(slots).map(|(top, &slot)| {
            let mut around = Around {
                candidates: top.best,
                bound: f32::INFINITY,
            };
            let centre = &self.centres[slot * dim..][..dim];
            for candidate in &mut around.candidates {
                let other = candidate.slot as usize;
                let distance = linalg::wide(SquaredDistance(centre, &self.centres[other * dim..][..dim]));
                candidate.cost = rise(self.weights[slot], self.weights[other], distance);
            }
            around.settle();
            around
        });
        settled.collect()
    }
}

/// The shape of a tile of products.
const ROWS: usize = 256;
const COLUMNS: usize = 512;

/// The cheapest candidates so far, one more than a cluster keeps: that one is the bound.
struct Top {
    best: Vec<Candidate>,
    /// What a candidate must cost less than.
    limit: f32,
}

impl Top {
    fn new() -> Self {
        Self {
            best: Vec::with_capacity(KNOWN + 2),
            limit: f32::INFINITY,
        }
    }

    fn insert(&mut self, candidate: Candidate) {
        let at = self.best.partition_point(|c| c.order(&candidate).is_lt());
        self.best.insert(at, candidate);
        self.best.truncate(KNOWN + 1);
        if let Some(last) = self.best.get(KNOWN) {
            self.limit = last.cost;
        }
    }
}

/// Looks for candidates of one cluster in a row of products.
struct Scan<'a> {
    top: &'a mut Top,
    slot: usize,
    apart: usize,
    weight: f32,
    square: f32,
    from: usize,
    dots: &'a [f32],
    weights: &'a [f32],
    squares: &'a [f32],
}

impl Work for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Scan { top, slot, apart, .. } = self;
        let cost = |dot: f32, weight: f32, square: f32| {
            rise(self.weight, weight, larger(self.square + square - 2.0 * dot, 0.0))
        };
        let mut offer = |at: usize, cost: f32| {
            let other = self.from + at;
            if cost < top.limit && other != slot && (slot >= apart || other >= apart) {
                let slot = other as u32;
                top.insert(Candidate { cost, slot });
            }
            top.limit
        };
        let mut limit = offer(0, f32::INFINITY);
        let whole = self.dots.len() / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            let (dots, weights, squares) = (
                &self.dots[at..][..LANES],
                &self.weights[at..][..LANES],
                &self.squares[at..][..LANES],
            );
            let mut costs = [0f32; LANES];
            for lane in 0..LANES {
                costs[lane] = cost(dots[lane], weights[lane], squares[lane]);
            }
            if costs.iter().fold(false, |any, &cost| any | (cost < limit)) {
                for (lane, &cost) in costs.iter().enumerate() {
                    limit = offer(at + lane, cost);
                }
            }
        }
        for at in whole..self.dots.len() {
            limit = offer(at, cost(self.dots[at], self.weights[at], self.squares[at]));
        }
    }
}

/// The rows less their mean: the nearer the origin, the less rounding there is in products.
fn centred(rows: &[f32], dim: usize) -> Vec<f32> {
    let mut mean = vec![0f64; dim];
    for row in rows.chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
    }
    let share = 1.0 / (rows.len() / dim) as f64;
    let mean: Vec<f32> = mean.into_iter().map(|sum| (sum * share) as f32).collect();
    rows.chunks_exact(dim)
        .flat_map(|row| row.iter().zip(&mean).map(|(v, m)| v - m))
        .collect()
}

fn square(row: &[f32]) -> f32 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() as f32
}

/// The squared distance of two centres, which has the same bits for both.
struct SquaredDistance<'a>(&'a [f32], &'a [f32]);

impl Work for SquaredDistance<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut lanes = [0f32; LANES];
        let (a, b) = (self.0.chunks_exact(LANES), self.1.chunks_exact(LANES));
        let rest = a.remainder().iter().zip(b.remainder());
        let rest: f32 = rest.map(|(x, y)| (x - y) * (x - y)).sum();
        for (x, y) in a.zip(b) {
            for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
                *lane += (x - y) * (x - y);
            }
        }
        lanes.iter().sum::<f32>() + rest
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

        fn in_rounds(&self) -> Tree {
            Rounds::new(&self.rows, self.dim, &self.weights, self.apart)
                .run()
                .into_tree(self.points())
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
    fn both_ways_make_the_merges_of_always_taking_the_cheapest() {
        for (at, case) in cases().enumerate() {
            let expected = sequential(&case);
            for (way, tree) in [("chained", case.chained()), ("in rounds", case.in_rounds())] {
                check(&case, &tree);
                assert_same(&tree, &expected, &format!("case {at} {way}"));
            }
        }
    }

    #[test]
    fn ties_and_copies_leave_the_merges_valid() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, &[84]);
            let (n, dim) = (2 + rng.below(70), 1 + rng.below(7));
            let case = Case::signs(n, dim, rng.below(n.min(9)), seed);
            check(&case, &case.chained());
            check(&case, &case.in_rounds());
        }
    }

    #[test]
    fn both_ways_agree_on_a_thousand_points() {
        for (n, dim, apart) in [(1000, 16, 0), (1300, 40, 30)] {
            let case = Case::random(n, dim, apart, true, 7);
            let tree = case.chained();
            check(&case, &tree);
            assert_same(&tree, &case.in_rounds(), &format!("{n} points"));
        }
    }

    #[test]
    fn more_points_than_a_matrix_is_kept_for() {
        let case = Case::random(MATRIX_UP_TO + 10, 12, 5, true, 8);
        let tree = ward(&case.rows, case.dim, &case.weights, case.apart);
        check(&case, &tree);
        assert_eq!(tree, case.in_rounds());
    }

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let case = Case::random(1500, 24, 20, true, 9);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let trees = pool.install(|| [case.chained(), case.in_rounds()]);
            trees.map(|tree| {
                (
                    nodes(&tree),
                    pairs_and_costs(&tree)
                        .1
                        .into_iter()
                        .map(f64::to_bits)
                        .collect::<Vec<_>>(),
                )
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3));
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
            for tree in [case.chained(), case.in_rounds()] {
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
        for tree in [case.chained(), case.in_rounds()] {
            assert_eq!(nodes(&tree), [(0, 1), (3, 2)]);
            assert!(tree.merges.iter().all(|merge| merge.cost == 1.0));
        }
    }

    #[test]
    fn none_one_and_only_points_apart() {
        for (n, apart) in [(0, 0), (1, 0), (1, 1), (5, 5)] {
            let case = Case::random(n, 3, apart, false, 1);
            for tree in [case.chained(), case.in_rounds()] {
                assert_eq!((tree.points, tree.merges.len()), (n, 0));
            }
        }
    }
}
