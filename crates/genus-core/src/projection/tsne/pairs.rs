//! All pairs: the definition of the forces, for sets that are small enough.

use rayon::prelude::*;

use super::{Force, to_probabilities};
use crate::Features;

/// Sums run in so many lanes, which the compiler makes vectors of.
const LANES: usize = 8;
/// Points whose forces are computed together: their numbers fit the first-level cache.
const BLOCK: usize = 256;

/// The symmetric probabilities that two points are neighbours, for all pairs; they sum to one.
pub(super) struct Pairs {
    affinities: Vec<f32>,
}

impl Pairs {
    /// `None` where all rows are the same.
    pub(super) fn new(rows: &Features, perplexity: f64) -> Option<Self> {
        Some(Self {
            affinities: affinities(squared_distances(rows)?, rows.rows(), perplexity),
        })
    }

    /// The forces on every point, in one pass over all pairs.
    pub(super) fn forces(&self, place: &[[f64; 2]]) -> Vec<Force> {
        let xs: Vec<f32> = place.iter().map(|p| p[0] as f32).collect();
        let ys: Vec<f32> = place.iter().map(|p| p[1] as f32).collect();
        self.affinities
            .par_chunks(place.len())
            .enumerate()
            .map(|(i, row)| force(row, &xs, &ys, xs[i], ys[i]))
            .collect()
    }
}

/// The squared distances of all pairs, with a mean of one; `None` where all are zero.
fn squared_distances(rows: &Features) -> Option<Vec<f32>> {
    let (n, dim) = (rows.rows(), rows.dim());
    // Squares of what lies between −1 and 1 do not overflow.
    let most = rows.values().iter().fold(0.0, |most: f32, value| most.max(value.abs()));
    if most == 0.0 {
        return None;
    }
    let values: Vec<f32> = rows.values().iter().map(|value| value / most).collect();
    let mut distances = vec![0.0; n * n];
    distances.par_chunks_mut(n).enumerate().for_each(|(i, out)| {
        let one = &values[i * dim..][..dim];
        for (other, cell) in values.chunks_exact(dim).zip(out) {
            *cell = lanes(one, other, |sum, a, b| sum + (a - b) * (a - b));
        }
    });
    let sums: Vec<f64> = distances
        .par_chunks(n)
        .map(|row| row.iter().map(|&d| f64::from(d)).sum())
        .collect();
    let mean = sums.iter().sum::<f64>() / (n * n) as f64;
    if mean == 0.0 {
        return None;
    }
    distances
        .par_iter_mut()
        .for_each(|d| *d = (f64::from(*d) / mean) as f32);
    Some(distances)
}

/// From squared distances to the symmetric probabilities that two points are neighbours; they sum to one.
fn affinities(mut matrix: Vec<f32>, n: usize, perplexity: f64) -> Vec<f32> {
    matrix
        .par_chunks_mut(n)
        .enumerate()
        .for_each(|(i, row)| to_probabilities(row, Some(i), perplexity));
    let share = 0.5 / n as f32;
    for i in 0..n {
        for j in 0..i {
            let both = share * (matrix[i * n + j] + matrix[j * n + i]);
            matrix[i * n + j] = both;
            matrix[j * n + i] = both;
        }
    }
    matrix
}

fn force(row: &[f32], xs: &[f32], ys: &[f32], x: f32, y: f32) -> Force {
    let mut force = Force::default();
    let [mut dx, mut dy, mut kernel, mut pull, mut push] = [[0f32; BLOCK]; 5];
    for ((row, xs), ys) in row.chunks(BLOCK).zip(xs.chunks(BLOCK)).zip(ys.chunks(BLOCK)) {
        // First what has no sums, then the sums one by one: a loop that does both does not become vectors.
        for (i, ((&p, &other_x), &other_y)) in row.iter().zip(xs).zip(ys).enumerate() {
            dx[i] = x - other_x;
            dy[i] = y - other_y;
            kernel[i] = 1.0 / (1.0 + dx[i] * dx[i] + dy[i] * dy[i]);
            pull[i] = p * kernel[i];
            push[i] = kernel[i] * kernel[i];
        }
        let used = ..row.len();
        for (axis, gaps) in [&dx[used], &dy[used]].into_iter().enumerate() {
            force.attraction[axis] += f64::from(lanes(&pull[used], gaps, |sum, pull, gap| sum + pull * gap));
            force.repulsion[axis] += f64::from(lanes(&push[used], gaps, |sum, push, gap| sum + push * gap));
        }
        force.weight += f64::from(lanes(&kernel[used], &kernel[used], |sum, kernel, _| sum + kernel));
    }
    // The point itself is one of the others: no distance, so no force, but a kernel of one.
    force.weight -= 1.0;
    force
}

/// Adds up what `add` makes of pairs of numbers, lane by lane.
#[inline(always)]
fn lanes(a: &[f32], b: &[f32], add: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..LANES {
            sums[lane] = add(sums[lane], a[lane], b[lane]);
        }
    }
    for (lane, (&a, &b)) in rest_a.iter().zip(rest_b).enumerate() {
        sums[lane] = add(sums[lane], a, b);
    }
    sums.iter().sum()
}
