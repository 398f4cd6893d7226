//! Ward's tree over weighted points: always the merge that raises the sum of squared distances to the centres least.

use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

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
const MATRIX_UP_TO: usize = crate::task::GRAM_LIMIT;

/// The tree of points given by their rows of `dim` features; see [`ward_of_gram`].
///
/// Of many points there is not a matrix: memory is a copy of the rows and a little more.
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
const KNOWN: usize = 16;

/// The shape of a tile of products.
const ROWS: usize = 256;
const COLUMNS: usize = 512;

/// Merges in rounds, in each of them all clusters that are each other's nearest.
///
/// That is right for the reason for which chains are: a merged cluster is no nearer to a third one than the nearer of its
/// parts was. For the same reason a cluster need not look around in every round. It knows a few candidates and that all
/// other clusters cost at least its bound. When others merge with each other the bound stays true; when a candidate merges,
/// with whatever, the result takes its place and the cost is taken anew. As long as the cheapest candidate costs no more
/// than the bound, it is the nearest of all. Only otherwise is the cluster compared with all others again, by products of
/// blocks of centres.
///
/// Knowing the nearest alone would be right too, but slow: a prototype is nearer to all the points of its class than they are
/// to each other, it takes one of them a round, and each time all the others would have to look around.
struct Rounds {
    apart: usize,
    /// The smallest weight of a point, so of any cluster.
    lightest: f32,
    /// Clusters are in the order of their first points, so those that hold one of the first `apart` points come first for
    /// ever.
    clusters: Clusters,
    around: Vec<NearestClusters>,
    first_points: Vec<u32>,
    /// The slots in use, in order.
    alive: Vec<u32>,
}

impl Rounds {
    fn new(rows: &[f32], dim: usize, weights: &[f32], apart: usize) -> Self {
        let n = weights.len();
        Self {
            apart,
            lightest: weights.iter().copied().fold(f32::INFINITY, smaller),
            clusters: Clusters {
                dim,
                centres: centred(rows, dim),
                weights: weights.to_vec(),
            },
            around: vec![NearestClusters::UNKNOWN; n],
            first_points: (0..n as u32).collect(),
            alive: (0..n as u32).collect(),
        }
    }

    fn run(mut self) -> Merges {
        let mut merges = Merges::new(self.alive.len());
        loop {
            self.look_around();
            let pairs = self.pairs();
            if pairs.is_empty() {
                return merges;
            }
            for pair in &pairs {
                let first = |slot: u32| self.first_points[slot as usize] as usize;
                merges.push(first(pair.keep), first(pair.drop), pair.cost);
            }
            self.merge(&pairs);
        }
    }

    /// The slots to merge now: all that are each other's nearest.
    fn pairs(&self) -> Vec<Rank> {
        let nearest = |slot: u32| self.around[slot as usize].nearest();
        let links = || {
            self.alive.iter().filter_map(|&slot| {
                let Candidate { cost, slot: other } = nearest(slot)?;
                let (keep, drop) = (slot.min(other), slot.max(other));
                Some(Rank { cost, keep, drop })
            })
        };
        let is_nearest = |of: u32, slot: u32| nearest(of).is_some_and(|candidate| candidate.slot == slot);
        let mutual = |link: &Rank| is_nearest(link.keep, link.drop) && is_nearest(link.drop, link.keep);
        let mut pairs: Vec<Rank> = links().filter(mutual).collect();
        // Each was found from both sides.
        pairs.sort_unstable_by_key(|pair| pair.keep);
        pairs.dedup_by_key(|pair| pair.keep);
        if pairs.is_empty() {
            // Only rounding can say that no cluster is the nearest of its nearest.
            pairs.extend(links().min_by(Rank::order));
        }
        pairs
    }

    fn merge(&mut self, pairs: &[Rank]) {
        let mut place: Vec<u32> = (0..self.around.len() as u32).collect();
        let mut merged = vec![false; self.around.len()];
        for pair in pairs {
            let (keep, drop) = (pair.keep as usize, pair.drop as usize);
            place[drop] = pair.keep;
            merged[keep] = true;
            merged[drop] = true;
            let dropped = std::mem::replace(&mut self.around[drop], NearestClusters::NOTHING);
            let weights = [keep, drop].map(|slot| self.clusters.weights[slot]);
            self.around[keep].join(dropped, weights, pair.cost, self.lightest);
            self.clusters.merge(keep, drop);
        }
        self.alive.retain(|&slot| place[slot as usize] == slot);

        let (clusters, apart) = (&self.clusters, self.apart);
        let update = |(slot, around): (usize, &mut NearestClusters)| {
            if !merged[slot] && !around.candidates.iter().any(|c| merged[c.slot as usize]) {
                return;
            }
            for candidate in &mut around.candidates {
                candidate.slot = place[candidate.slot as usize];
            }
            around.candidates.sort_unstable_by_key(|c| c.slot);
            around.candidates.dedup_by_key(|c| c.slot);
            around.candidates.retain(|c| may_merge(slot, c.slot as usize, apart));
            for candidate in &mut around.candidates {
                let other = candidate.slot as usize;
                if merged[slot] || merged[other] {
                    candidate.cost = clusters.cost(slot, other);
                }
            }
            around.settle();
        };
        self.around.par_iter_mut().enumerate().with_min_len(64).for_each(update);
    }

    /// Compares the clusters that know too little with all others.
    fn look_around(&mut self) {
        if !self.alive.iter().any(|&slot| self.around[slot as usize].is_lost()) {
            return;
        }
        self.compact();
        let n = self.alive.len();
        let squares: Vec<f32> = self
            .clusters
            .centres
            .par_chunks(self.clusters.dim)
            .map(square)
            .collect();
        let lost: Vec<usize> = (0..n).filter(|&slot| self.around[slot].is_lost()).collect();
        let tops = if lost.len() == n {
            self.compare_all(&squares)
        } else {
            let block = (lost.len() / 8).clamp(32, ROWS);
            lost.par_chunks(block)
                .flat_map_iter(|block| self.compare(block, &squares))
                .collect()
        };
        let clusters = &self.clusters;
        let found: Vec<NearestClusters> = lost
            .par_iter()
            .zip(tops)
            .map(|(&slot, top)| top.into_around(slot, clusters))
            .collect();
        for (slot, around) in lost.into_iter().zip(found) {
            self.around[slot] = around;
        }
    }

    /// Moves all clusters together; the product that follows reads every centre anyway.
    fn compact(&mut self) {
        let n = self.alive.len();
        if n == self.around.len() {
            return;
        }
        let mut place = vec![0u32; self.around.len()];
        for (to, &slot) in self.alive.iter().enumerate() {
            let from = slot as usize;
            place[from] = to as u32;
            self.clusters.shift(from, to);
            self.around.swap(from, to);
            self.first_points[to] = self.first_points[from];
        }
        self.clusters.truncate(n);
        self.around.truncate(n);
        self.first_points.truncate(n);
        self.alive = (0..n as u32).collect();
        for candidate in self.around.iter_mut().flat_map(|around| &mut around.candidates) {
            candidate.slot = place[candidate.slot as usize];
        }
    }

    /// The cheapest candidates of some clusters.
    fn compare(&self, slots: &[usize], squares: &[f32]) -> Vec<CheapestCandidates> {
        let dim = self.clusters.dim;
        let rows: Vec<f32> = slots
            .iter()
            .flat_map(|&slot| self.clusters.centre(slot))
            .copied()
            .collect();
        let mut tops: Vec<CheapestCandidates> = slots.iter().map(|_| CheapestCandidates::new()).collect();
        let mut tile = vec![0.0; slots.len() * COLUMNS];
        for (at, columns) in self.clusters.centres.chunks(COLUMNS * dim).enumerate() {
            let width = columns.len() / dim;
            linalg::product(&rows, columns, dim, &mut tile, width);
            self.offer(
                slots.iter().copied(),
                at * COLUMNS,
                &tile[..slots.len() * width],
                squares,
                &mut tops,
            );
        }
        tops
    }

    /// The cheapest candidates of all clusters. Products are symmetric: every tile serves its rows and its columns.
    ///
    /// Which candidates are the cheapest does not depend on the order in which tiles are done.
    fn compare_all(&self, squares: &[f32]) -> Vec<CheapestCandidates> {
        let dim = self.clusters.dim;
        let blocks: Vec<&[f32]> = self.clusters.centres.chunks(ROWS * dim).collect();
        let new_tops = |block: &&[f32]| Mutex::new((0..block.len() / dim).map(|_| CheapestCandidates::new()).collect());
        let tops: Vec<Mutex<Vec<CheapestCandidates>>> = blocks.iter().map(new_tops).collect();
        let offer = |block: usize, other: usize, tile: &[f32]| {
            let slots = block * ROWS..block * ROWS + blocks[block].len() / dim;
            let mut tops = tops[block].lock().unwrap_or_else(PoisonError::into_inner);
            self.offer(slots, other * ROWS, tile, squares, &mut tops);
        };
        let tiles: Vec<(usize, usize)> = (0..blocks.len())
            .flat_map(|row| (row..blocks.len()).map(move |column| (row, column)))
            .collect();
        tiles.into_par_iter().for_each(|(row, column)| {
            let (height, width) = (blocks[row].len() / dim, blocks[column].len() / dim);
            let mut tile = vec![0.0; height * width];
            linalg::product(blocks[row], blocks[column], dim, &mut tile, width);
            offer(row, column, &tile);
            if row < column {
                let turned: Vec<f32> = (0..width)
                    .flat_map(|from| tile.iter().skip(from).step_by(width))
                    .copied()
                    .collect();
                offer(column, row, &turned);
            }
        });
        tops.into_iter()
            .flat_map(|tops| tops.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    /// Offers the clusters from slot `from` on as candidates to the given ones, with a row of dot products for each of these.
    fn offer(
        &self,
        slots: impl ExactSizeIterator<Item = usize>,
        from: usize,
        tile: &[f32],
        squares: &[f32],
        tops: &mut [CheapestCandidates],
    ) {
        let width = tile.len() / slots.len().max(1);
        let rows = tile.chunks_exact(width.max(1)).zip(tops);
        for (slot, (dots, top)) in slots.zip(rows) {
            linalg::wide(CandidateOffer {
                top,
                slot,
                apart: self.apart,
                weight: self.clusters.weights[slot],
                square: squares[slot],
                from,
                dots,
                weights: &self.clusters.weights[from..][..width],
                squares: &squares[from..][..width],
            });
        }
    }
}

/// Whether two clusters are different ones and do not hold points that stay apart.
#[inline(always)]
fn may_merge(a: usize, b: usize, apart: usize) -> bool {
    a != b && a.max(b) >= apart
}

/// Weighted centres, one in every slot.
struct Clusters {
    dim: usize,
    centres: Vec<f32>,
    weights: Vec<f32>,
}

impl Clusters {
    fn centre(&self, slot: usize) -> &[f32] {
        &self.centres[slot * self.dim..][..self.dim]
    }

    /// What it costs to merge two: the same bits whichever comes first, and without the rounding of dot products.
    fn cost(&self, a: usize, b: usize) -> f32 {
        let distance = linalg::wide(SquaredDistance(self.centre(a), self.centre(b)));
        rise(self.weights[a], self.weights[b], distance)
    }

    /// Merges two in the lower slot.
    fn merge(&mut self, keep: usize, drop: usize) {
        let total = self.weights[keep] + self.weights[drop];
        let share = self.weights[drop] / total;
        let (upper, lower) = self.centres.split_at_mut(drop * self.dim);
        for (v, &other) in upper[keep * self.dim..].iter_mut().zip(&lower[..self.dim]) {
            *v += share * (other - *v);
        }
        self.weights[keep] = total;
    }

    fn shift(&mut self, from: usize, to: usize) {
        self.centres
            .copy_within(from * self.dim..(from + 1) * self.dim, to * self.dim);
        self.weights[to] = self.weights[from];
    }

    fn truncate(&mut self, clusters: usize) {
        self.centres.truncate(clusters * self.dim);
        self.weights.truncate(clusters);
    }
}

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
struct NearestClusters {
    /// The cheapest to merge with first.
    candidates: Vec<Candidate>,
    /// No cluster that is not a candidate costs less than this.
    bound: f32,
}

impl NearestClusters {
    /// What is around has yet to be found out.
    const UNKNOWN: NearestClusters = NearestClusters {
        candidates: Vec::new(),
        bound: 0.0,
    };

    /// It is known that nothing is around.
    const NOTHING: NearestClusters = NearestClusters {
        candidates: Vec::new(),
        bound: f32::INFINITY,
    };

    /// The cheapest of all, if it is known for sure.
    fn nearest(&self) -> Option<Candidate> {
        self.candidates
            .first()
            .copied()
            .filter(|first| first.cost <= self.bound)
    }

    fn is_lost(&self) -> bool {
        self.nearest().is_none() && self.bound < f32::INFINITY
    }

    /// Adds what the other of two clusters knows that merge at `cost`.
    ///
    /// What both do not know costs each of them its bound or more. How much it then costs the two together rises or falls
    /// with the weight of that third cluster, so it is least for the lightest or for an endless weight.
    fn join(&mut self, other: NearestClusters, weights: [f32; 2], cost: f32, lightest: f32) {
        let [own, others] = weights.map(|weight| weight + lightest);
        let total = own + others - lightest;
        let for_lightest = (own * self.bound + others * other.bound - lightest * cost) / total;
        let for_heaviest = self.bound + other.bound - cost;
        self.bound = smaller(for_lightest, for_heaviest);
        self.candidates.extend(other.candidates);
    }

    /// Puts the candidates in order and keeps a few.
    fn settle(&mut self) {
        self.candidates.sort_unstable_by(Candidate::order);
        if let Some(left_out) = self.candidates.get(KNOWN) {
            self.bound = smaller(self.bound, left_out.cost);
            self.candidates.truncate(KNOWN);
        }
    }
}

/// The cheapest candidates so far, one more than a cluster keeps: that one becomes the bound.
struct CheapestCandidates {
    best: Vec<Candidate>,
    /// A candidate that costs more is none.
    limit: f32,
}

impl CheapestCandidates {
    fn new() -> Self {
        Self {
            best: Vec::with_capacity(KNOWN + 2),
            limit: f32::MAX,
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

    fn into_around(self, slot: usize, clusters: &Clusters) -> NearestClusters {
        let exact = |candidate: Candidate| Candidate {
            cost: clusters.cost(slot, candidate.slot as usize),
            ..candidate
        };
        let mut around = NearestClusters {
            candidates: self.best.into_iter().map(exact).collect(),
            bound: f32::INFINITY,
        };
        around.settle();
        around
    }
}

/// Offers one cluster a row of others.
struct CandidateOffer<'a> {
    top: &'a mut CheapestCandidates,
    slot: usize,
    apart: usize,
    weight: f32,
    square: f32,
    from: usize,
    dots: &'a [f32],
    weights: &'a [f32],
    squares: &'a [f32],
}

impl Work for CandidateOffer<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (chunks, rest) = self.dots.as_chunks::<LANES>();
        for (at, dots) in chunks.iter().enumerate() {
            self.offer(at * LANES, dots);
        }
        self.offer(chunks.len() * LANES, rest);
    }
}

impl CandidateOffer<'_> {
    /// Offers at most as many as there are lanes.
    #[inline(always)]
    fn offer(&mut self, at: usize, dots: &[f32]) {
        let others = self.weights[at..][..dots.len()].iter().zip(&self.squares[at..]);
        let mut costs = [f32::INFINITY; LANES];
        for ((cost, &dot), (&weight, &square)) in costs.iter_mut().zip(dots).zip(others) {
            *cost = rise(self.weight, weight, larger(self.square + square - 2.0 * dot, 0.0));
        }
        let limit = self.top.limit;
        if !costs.iter().fold(false, |any, &cost| any | (cost <= limit)) {
            return;
        }
        for (lane, &cost) in costs.iter().enumerate() {
            let other = self.from + at + lane;
            if cost <= self.top.limit && may_merge(self.slot, other, self.apart) {
                let slot = other as u32;
                self.top.insert(Candidate { cost, slot });
            }
        }
    }
}

/// The rows less their mean: the nearer to the origin, the less rounding there is in dot products.
fn centred(rows: &[f32], dim: usize) -> Vec<f32> {
    let mut mean = vec![0f64; dim];
    for row in rows.chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
    }
    let n = (rows.len() / dim) as f64;
    let mean: Vec<f32> = mean.into_iter().map(|sum| (sum / n) as f32).collect();
    let mut rows = rows.to_vec();
    for row in rows.chunks_exact_mut(dim) {
        row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m);
    }
    rows
}

fn square(row: &[f32]) -> f32 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() as f32
}

/// The squared distance of two rows.
struct SquaredDistance<'a>(&'a [f32], &'a [f32]);

impl Work for SquaredDistance<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut lanes = [0f32; LANES];
        let ((a, rest_a), (b, rest_b)) = (self.0.as_chunks::<LANES>(), self.1.as_chunks::<LANES>());
        for (x, y) in a.iter().zip(b) {
            for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
                *lane += (x - y) * (x - y);
            }
        }
        for ((lane, x), y) in lanes.iter_mut().zip(rest_a).zip(rest_b) {
            *lane += (x - y) * (x - y);
        }
        lanes.iter().sum()
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
    use serde_json::Value;

    /// Weighted points, the first `apart` of which never share a cluster.
    struct WardCase {
        rows: Vec<f32>,
        dim: usize,
        weights: Vec<f32>,
        apart: usize,
    }

    impl WardCase {
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

        fn plain(&self) -> NaiveWard {
            let row = |row: &[f32]| row.iter().map(|&v| f64::from(v)).collect();
            NaiveWard {
                centres: self.rows.chunks_exact(self.dim).map(row).collect(),
                weights: self.weights.iter().map(|&w| f64::from(w)).collect(),
                apart: self.apart,
            }
        }
    }

    /// Plain in the plainest way, each under its first point.
    struct NaiveWard {
        centres: Vec<Vec<f64>>,
        weights: Vec<f64>,
        apart: usize,
    }

    impl NaiveWard {
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
    fn sequential(case: &WardCase) -> Tree {
        let n = case.points();
        let mut clusters = case.plain();
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
    fn check(case: &WardCase, tree: &Tree) {
        let n = case.points();
        assert_eq!(
            (tree.points, tree.merges.len()),
            (n, n - case.apart.max(1).min(n)),
            "merges are missing"
        );
        let mut clusters = case.plain();
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
    fn cases() -> impl Iterator<Item = WardCase> {
        (0..240).map(|seed| {
            let mut rng = Rng::new(seed, &[83]);
            let n = 2 + rng.below(90);
            let apart = [0, 1, 2, rng.below(n), n][rng.below(5)].min(n);
            WardCase::random(n, 1 + rng.below(30), apart, seed % 3 != 0, seed)
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
    fn scipy_makes_the_same_merges() {
        let goldens: Value = serde_json::from_str(include_str!("../../tests/goldens/ward.json")).unwrap();
        let cases = goldens.as_array().unwrap();
        assert_eq!(cases.len(), 5);
        for (at, golden) in cases.iter().enumerate() {
            let numbers = |value: &Value| -> Vec<f64> {
                let values = value.as_array().unwrap().iter();
                values.map(|v| v.as_f64().unwrap()).collect()
            };
            let points: Vec<Vec<f64>> = golden["points"].as_array().unwrap().iter().map(numbers).collect();
            let case = WardCase {
                rows: points.iter().flatten().map(|&v| v as f32).collect(),
                dim: points[0].len(),
                weights: numbers(&golden["weights"]).iter().map(|&w| w as f32).collect(),
                apart: 0,
            };
            for tree in [case.chained(), case.in_rounds()] {
                let expected = numbers(&golden["costs"]);
                assert_eq!(tree.merges.len(), expected.len());
                for (merge, cost) in tree.merges.iter().zip(expected) {
                    assert!(
                        (merge.cost - cost).abs() <= 1e-5 * cost + 1e-6,
                        "case {at}: {merge:?} for {cost}"
                    );
                }
                // Where there are weights, SciPy's nodes are of copies.
                if let Some(expected) = golden["nodes"].as_array() {
                    let sorted = |(a, b): (usize, usize)| vec![a.min(b) as f64, a.max(b) as f64];
                    let found: Vec<Vec<f64>> = nodes(&tree).into_iter().map(sorted).collect();
                    let expected: Vec<Vec<f64>> = expected.iter().map(numbers).collect();
                    assert_eq!(found, expected, "case {at}");
                }
            }
        }
    }

    #[test]
    fn ties_and_copies_leave_the_merges_valid() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, &[84]);
            let (n, dim) = (2 + rng.below(70), 1 + rng.below(7));
            let case = WardCase::signs(n, dim, rng.below(n.min(9)), seed);
            check(&case, &case.chained());
            check(&case, &case.in_rounds());
        }
    }

    #[test]
    fn both_ways_agree_on_a_thousand_points() {
        for (n, dim, apart) in [(1000, 16, 0), (1300, 40, 30)] {
            let case = WardCase::random(n, dim, apart, true, 7);
            let tree = case.chained();
            check(&case, &tree);
            assert_same(&tree, &case.in_rounds(), &format!("{n} points"));
        }
    }

    #[test]
    fn more_points_than_a_matrix_is_kept_for() {
        let case = WardCase::random(MATRIX_UP_TO + 10, 12, 5, true, 8);
        let tree = ward(&case.rows, case.dim, &case.weights, case.apart);
        check(&case, &tree);
        assert_eq!(tree, case.in_rounds());
    }

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let case = WardCase::random(1500, 24, 20, true, 9);
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
            let case = WardCase {
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
        let case = WardCase {
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
            let case = WardCase::random(n, 3, apart, false, 1);
            for tree in [case.chained(), case.in_rounds()] {
                assert_eq!((tree.points, tree.merges.len()), (n, 0));
            }
        }
    }
}
