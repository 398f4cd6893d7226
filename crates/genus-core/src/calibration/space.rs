//! The space in which distances are judged.

use rayon::prelude::*;

use crate::eigen::{leading, transpose};
use crate::features::{Features, scale_to_unit};
use crate::linalg;
use crate::task::class_means;

/// How far the variances of the damped directions are shrunk to their mean, so that a direction that a few classes suggest
/// by chance is not taken for a fact.
const SHRINKAGE: f64 = 0.8;

/// Rows that one thread transforms at a time.
const BLOCK: usize = 256;

/// Features without the mean of the base classes, the directions in which items of one class differ most damped, and
/// scaled to length one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Space {
    mean: Vec<f32>,
    /// Orthogonal directions, a row each.
    directions: Vec<f32>,
    /// What is left of each direction.
    factors: Vec<f32>,
    /// What is taken away of each direction, a column each, for the second of two products.
    taken: Vec<f32>,
}

impl Space {
    /// Puts a space together; `directions` has as many rows as there are factors.
    pub(crate) fn new(mean: Vec<f32>, directions: Vec<f32>, factors: Vec<f32>) -> Self {
        let dim = mean.len();
        let scaled: Vec<f32> = directions
            .chunks_exact(dim)
            .zip(&factors)
            .flat_map(|(row, factor)| row.iter().map(move |v| v * (1.0 - factor)))
            .collect();
        let taken = transpose(&scaled, dim);
        Self {
            mean,
            directions,
            factors,
            taken,
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
        let dim = self.dim();
        let mut out = rows.to_vec();
        let work = |block: &mut [f32]| {
            for row in block.chunks_exact_mut(dim) {
                scale_to_unit(row);
                row.iter_mut().zip(&self.mean).for_each(|(v, mean)| *v -= mean);
                scale_to_unit(row);
            }
            if self.factors.is_empty() {
                return;
            }
            let along = linalg::dots(block, &self.directions, dim);
            let taken = linalg::dots(&along, &self.taken, self.factors.len());
            for (row, taken) in block.chunks_exact_mut(dim).zip(taken.chunks_exact(dim)) {
                row.iter_mut().zip(taken).for_each(|(v, taken)| *v -= taken);
                scale_to_unit(row);
            }
        };
        out.par_chunks_mut(BLOCK * dim).for_each(work);
        out
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

/// The squared distance of two rows.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum()
}
