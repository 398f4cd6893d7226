//! The space in which distances are judged.

use std::ops::Range;

use rayon::prelude::*;

use crate::eigen::leading;
use crate::features::{Features, norm, scale_to_unit};
use crate::linalg;
use crate::task::class_means;

/// How far the variances of the damped directions are shrunk to their mean, so that a direction that a few classes suggest
/// by chance is not taken for a fact.
const SHRINKAGE: f64 = 0.8;

/// Rows of other lengths may leave the range of `f32` on the way.
const PLAIN_LENGTHS: Range<f64> = 1e-12..1e12;
/// Squared lengths below this are not taken as differences.
const NEAR: f64 = 1e-3;

/// Rows that one thread transforms at a time.
const BLOCK: usize = linalg::BLOCK;

/// Features without the mean of the base classes, the directions in which items of one class differ most damped, and
/// scaled to length one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Space {
    mean: Vec<f32>,
    /// Orthogonal directions, a row each.
    directions: Vec<f32>,
    /// What is left of each direction.
    factors: Vec<f32>,
    /// The directions and the mean behind them.
    rows: Vec<f32>,
    /// The dot products of the directions and of the mean with the mean.
    along_mean: Vec<f64>,
}

impl Space {
    /// Puts a space together; `directions` has as many rows as there are factors.
    pub(crate) fn new(mean: Vec<f32>, directions: Vec<f32>, factors: Vec<f32>) -> Self {
        let dim = mean.len();
        let rows = [&*directions, &*mean].concat();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        Self {
            along_mean: rows.chunks_exact(dim).map(|row| dot(row, &mean)).collect(),
            rows,
            mean,
            directions,
            factors,
        }
    }

    /// Rows without this mean, scaled to length one.
    pub(crate) fn centred_on(mean: Vec<f32>) -> Self {
        Self::new(mean, Vec::new(), Vec::new())
    }

    /// The same directions around another mean.
    pub(crate) fn around(&self, mean: Vec<f32>) -> Self {
        Self::new(mean, self.directions.clone(), self.factors.clone())
    }

    /// The space of labelled items, with up to `count` directions damped; `centred` off leaves
    /// the mean where it is.
    pub(crate) fn fit(items: &Features, labels: &[usize], classes: usize, count: usize, centred: bool) -> Self {
        let dim = items.dim();
        let mut values = items.values().to_vec();
        values.chunks_exact_mut(dim).for_each(|row| {
            scale_to_unit(row);
        });
        let mean = if centred { mean_of(&values, dim) } else { vec![0.0; dim] };
        let plain = Self::centred_on(mean.clone());
        let mut rows = plain.apply(items.values());
        let means = class_means(&Features::from_finite(dim, rows.clone()), labels, classes);
        for (row, &label) in rows.chunks_exact_mut(dim).zip(labels) {
            row.iter_mut()
                .zip(&means[label * dim..][..dim])
                .for_each(|(v, mean)| *v -= mean);
        }
        let total: f64 = rows.iter().map(|&v| f64::from(v).powi(2)).sum();
        let pairs = if total > 0.0 {
            leading(&rows, dim, count)
        } else {
            Vec::new()
        };
        let (r, all) = (pairs.len() as f64, dim as f64);
        let rest = (total - pairs.iter().map(|(value, _)| value).sum::<f64>()).max(0.0) / (all - r).max(1.0);
        let shrunk = |variance: f64| (1.0 - SHRINKAGE) * variance + SHRINKAGE * total / all;
        let factors = pairs
            .iter()
            .map(|(value, _)| (shrunk(rest) / shrunk(*value)).sqrt().min(1.0) as f32)
            .collect();
        let directions = pairs.into_iter().flat_map(|(_, direction)| direction).collect();
        Self::new(mean, directions, factors)
    }

    /// The number of features.
    pub(crate) fn dim(&self) -> usize {
        self.mean.len()
    }

    pub(crate) fn mean(&self) -> &[f32] {
        &self.mean
    }

    pub(crate) fn directions(&self) -> &[f32] {
        &self.directions
    }

    pub(crate) fn factors(&self) -> &[f32] {
        &self.factors
    }

    /// Rows of features in this space. A row that is the mean itself has no direction and becomes zeros.
    pub(crate) fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let mut out = rows.to_vec();
        self.apply_to(&mut out);
        out
    }

    /// The same in place.
    pub(crate) fn apply_to(&self, rows: &mut [f32]) {
        rows.par_chunks_mut(BLOCK * self.dim())
            .for_each(|block| self.apply_block(block));
    }

    /// Two products, and one scaling: everything by which a row is scaled on the way follows from its dot products with the
    /// directions and the mean.
    fn apply_block(&self, block: &mut [f32]) {
        let (dim, r) = (self.dim(), self.factors.len());
        let along = linalg::dots(block, &self.rows, dim);
        // What is added of each direction and of the mean to a row as it came; the sum is then scaled.
        let mut added = vec![0f32; along.len()];
        let mut scales = Vec::with_capacity(block.len() / dim);
        let of_rows = block.chunks_exact(dim).zip(along.chunks_exact(r + 1));
        for ((row, along), added) in of_rows.zip(added.chunks_exact_mut(r + 1)) {
            let length = norm(row);
            let along = |at: usize| f64::from(along[at]) / length;
            // The squared length of the unit row less the mean, and of that at length one less what is damped.
            let centred = 1.0 - 2.0 * along(r) + self.along_mean[r];
            let part = |at: usize| along(at) - self.along_mean[at];
            let damped: f64 = (0..r)
                .map(|at| (1.0 - f64::from(self.factors[at]).powi(2)) * part(at).powi(2))
                .sum();
            let left = 1.0 - damped / centred;
            let scale = (length * (centred * left).sqrt()).recip() as f32;
            // What is small is a difference of large numbers; such rows go the long way.
            if !(PLAIN_LENGTHS.contains(&length) && centred > NEAR && left > NEAR) {
                scales.push(None);
                continue;
            }
            for (at, (added, &factor)) in added.iter_mut().zip(&self.factors).enumerate() {
                *added = (-length * (1.0 - f64::from(factor)) * part(at)) as f32;
            }
            added[r] = -length as f32;
            scales.push(Some(scale));
        }
        let far: Vec<(usize, Vec<f32>)> = scales
            .iter()
            .enumerate()
            .filter(|(_, scale)| scale.is_none())
            .map(|(at, _)| (at, block[at * dim..][..dim].to_vec()))
            .collect();
        linalg::add_weighted(block, &added, &self.rows, dim);
        for (row, scale) in block.chunks_exact_mut(dim).zip(&scales) {
            let scale = scale.unwrap_or(0.0);
            row.iter_mut().for_each(|v| *v *= scale);
        }
        for (at, mut row) in far {
            self.apply_slowly(&mut row);
            block[at * dim..][..dim].copy_from_slice(&row);
        }
    }

    /// One row, step by step as it is defined.
    fn apply_slowly(&self, row: &mut [f32]) {
        scale_to_unit(row);
        row.iter_mut().zip(&self.mean).for_each(|(v, mean)| *v -= mean);
        scale_to_unit(row);
        let start = row.to_vec();
        for (direction, &factor) in self.directions.chunks_exact(self.dim()).zip(&self.factors) {
            let along: f32 = start.iter().zip(direction).map(|(v, d)| v * d).sum();
            row.iter_mut()
                .zip(direction)
                .for_each(|(v, d)| *v -= (1.0 - factor) * along * d);
        }
        scale_to_unit(row);
    }
}

/// The mean row.
pub(crate) fn mean_of(values: &[f32], dim: usize) -> Vec<f32> {
    let mut sums = vec![0f64; dim];
    for row in values.chunks_exact(dim) {
        sums.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
    }
    let n = (values.len() / dim).max(1) as f64;
    sums.into_iter().map(|sum| (sum / n) as f32).collect()
}

/// The mean over classes of the variance within a class, summed over features; `None` when no class has two items.
pub(crate) fn within_variance(rows: &[f32], dim: usize, labels: &[usize], classes: usize) -> Option<f64> {
    let means = class_means(&Features::from_finite(dim, rows.to_vec()), labels, classes);
    let mut errors = vec![0f64; classes];
    let mut counts = vec![0usize; classes];
    for (row, &label) in rows.chunks_exact(dim).zip(labels) {
        counts[label] += 1;
        errors[label] += squared_distance(row, &means[label * dim..][..dim]);
    }
    let variances: Vec<f64> = errors
        .iter()
        .zip(&counts)
        .filter(|(_, count)| **count > 1)
        .map(|(error, &count)| error / (count - 1) as f64)
        .collect();
    let mean = variances.iter().sum::<f64>() / variances.len() as f64;
    (mean > 0.0).then_some(mean)
}

/// In how many directions rows differ from the means of their classes: the inverse of the mean squared cosine of two
/// differences; `None` when there are no two that differ.
pub(crate) fn dimensions_within(rows: &[f32], dim: usize, labels: &[usize], classes: usize) -> Option<f64> {
    /// More pairs would say the same.
    const MOST: usize = 1000;
    let means = class_means(&Features::from_finite(dim, rows.to_vec()), labels, classes);
    let n = labels.len();
    // Evenly from all classes, in whatever order they come.
    let step = n.div_ceil(MOST).max(1);
    let mut directions = Vec::new();
    let mut of = Vec::new();
    for at in (0..n).step_by(step) {
        let label = labels[at];
        let mean = &means[label * dim..][..dim];
        let mut row: Vec<f32> = rows[at * dim..][..dim].iter().zip(mean).map(|(v, m)| v - m).collect();
        if scale_to_unit(&mut row) {
            directions.extend(row);
            of.push(label);
        }
    }
    let count = of.len();
    let dots = linalg::gram(&directions, dim);
    let (mut sum, mut pairs) = (0.0, 0.0);
    for a in 0..count {
        // Differences of one class depend on each other: they add up to nothing.
        for b in (0..a).filter(|&b| of[a] != of[b]) {
            sum += f64::from(dots[a * count + b]).powi(2);
            pairs += 1.0;
        }
    }
    (sum > 0.0).then(|| pairs / sum)
}

/// The squared distance of two rows.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn random(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
        let mut rng = Rng::new(seed, &[rows as u64, dim as u64]);
        (0..rows * dim).map(|_| (rng.unit() - 0.4) as f32).collect()
    }

    /// Items of some classes that differ most along the first features.
    fn labelled(classes: usize, each: usize, dim: usize, seed: u64) -> (Features, Vec<usize>) {
        let middles = random(classes, dim, seed);
        let noise = random(classes * each, dim, seed + 1);
        let values = noise
            .chunks_exact(dim)
            .enumerate()
            .flat_map(|(at, row)| {
                let middle = &middles[at / each * dim..][..dim];
                let wide = |feature: usize| if feature < 3 { 2.0 } else { 0.3 };
                let mixed = row.iter().enumerate().map(move |(feature, v)| wide(feature) * v);
                mixed.zip(middle).map(|(v, middle)| v + middle).collect::<Vec<f32>>()
            })
            .collect();
        let labels = (0..classes * each).map(|at| at / each).collect();
        (Features::new(dim, values).unwrap(), labels)
    }

    #[test]
    fn both_ways_into_the_space_lead_to_the_same_place() {
        for (count, centred, dim, seed) in [(0, true, 7, 1), (4, true, 20, 2), (4, false, 20, 3), (40, true, 24, 4)] {
            let (items, labels) = labelled(6, 20, dim, seed);
            let space = Space::fit(&items, &labels, 6, count, centred);
            assert!(count == 0 || space.factors().len() >= 4);
            let mut rows = random(600, dim, seed + 7);
            // Rows of all lengths, one that is the mean, one next to it, one that is a damped direction.
            rows.chunks_exact_mut(dim)
                .enumerate()
                .for_each(|(at, row)| row.iter_mut().for_each(|v| *v *= 10f32.powi(at as i32 % 9 - 4)));
            if centred {
                rows[..dim].copy_from_slice(space.mean());
                rows[dim..2 * dim].copy_from_slice(space.mean());
                rows[dim] += 1e-4;
            }
            if count > 0 {
                let far = space.directions()[..dim].iter().zip(space.mean());
                let far: Vec<f32> = far.map(|(direction, mean)| 1e4 * direction + mean).collect();
                rows[2 * dim..3 * dim].copy_from_slice(&far);
            }
            let mut slow = rows.clone();
            slow.chunks_exact_mut(dim).for_each(|row| space.apply_slowly(row));
            for (at, (fast, slow)) in space.apply(&rows).iter().zip(&slow).enumerate() {
                // Next to the mean both are what rounding leaves.
                assert!(
                    (fast - slow).abs() < 2e-5 || at / dim < 2,
                    "row {}: {fast} for {slow}",
                    at / dim
                );
            }
        }
    }

    #[test]
    fn what_differs_within_classes_is_damped() {
        let (items, labels) = labelled(12, 20, 16, 5);
        let plain = Space::fit(&items, &labels, 12, 0, true);
        let damped = Space::fit(&items, &labels, 12, 3, true);
        assert!(damped.factors().iter().all(|&f| f > 0.0 && f < 1.0));
        let spread = |space: &Space| within_variance(&space.apply(items.values()), 16, &labels, 12).unwrap();
        assert!(
            spread(&damped) < 0.8 * spread(&plain),
            "{} {}",
            spread(&damped),
            spread(&plain)
        );
    }

    #[test]
    fn the_variance_is_that_of_its_definition() {
        let rows = [0.0, 0.0, 2.0, 0.0, 5.0, 1.0, 5.0, 3.0, 5.0, 5.0, 9.0, 9.0];
        // Two items at 2 apart, three at −2, 0 and 2, and one alone, which has no variance.
        let variance = within_variance(&rows, 2, &[0, 0, 1, 1, 1, 2], 3).unwrap();
        assert!((variance - (2.0 + 4.0) / 2.0).abs() < 1e-12, "{variance}");
        assert_eq!(within_variance(&[1.0, 2.0], 1, &[0, 1], 2), None);
        assert_eq!(within_variance(&[1.0, 1.0], 1, &[0, 0], 1), None);
    }
}
