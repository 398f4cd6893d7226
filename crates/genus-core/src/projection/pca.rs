//! The two principal components of a matrix.
//!
//! The products of rows or of columns, whichever are fewer, go into one symmetric matrix; a subspace iteration finds its
//! largest eigenvectors. Everything is in double precision and every sum runs in a fixed order.

use rayon::prelude::*;

use crate::Features;
use crate::eigen::symmetric;
use crate::linalg;
use crate::rng::Rng;

/// Vectors that are iterated together. Convergence depends on the gap between the second eigenvalue and the first that is
/// not among them, so a few more than two are worth their price.
const BLOCK: usize = 12;
/// Iterations at most: noise without any direction does not converge, and any two of its directions are as good.
const MOST: usize = 1_000;
/// A component whose share of the largest eigenvalue is below this is rounding.
const VANISHED: f64 = 1e-13;

/// Rows that are taken in double precision at a time, so that many rows need no second copy.
const ROWS: usize = 512;
/// Columns of the products of columns that one thread sums.
const PANEL: usize = 64;

/// The coordinates of every row along the first two components; their largest loading is positive.
pub(super) fn points(rows: &Features) -> Vec<[f32; 2]> {
    let (n, dim) = (rows.rows(), rows.dim());
    let centred = CentredRows::new(rows);
    if n == 0 || centred.scale == 0.0 {
        return vec![[0.0; 2]; n];
    }
    let found = if n <= dim {
        let values = centred.values(rows.values());
        // An eigenvector of the products of rows weighs the rows.
        let pairs = leading(&products_of_rows(&values, dim, n), n);
        let loading = |(value, weights): (f64, Vec<f64>)| (value, weighted(&values, dim, &weights));
        pairs.into_iter().map(loading).collect()
    } else {
        leading(&products_of_columns(&centred), dim)
    };
    let mut loadings: Vec<Vec<f64>> = Vec::new();
    let mut largest = None;
    for (value, loading) in found {
        if value <= VANISHED * *largest.get_or_insert(value) {
            break;
        }
        loadings.extend(oriented(loading, &loadings));
    }
    let coordinate = |row: &[f64], at: usize| {
        let value = loadings
            .get(at)
            .map_or(0.0, |loading| centred.scale * dot(row, loading));
        // Sums of the largest numbers may leave the range of an f32.
        (value as f32).clamp(f32::MIN, f32::MAX)
    };
    rows.values()
        .par_chunks(dim)
        .map(|row| {
            let row = centred.values(row);
            [coordinate(&row, 0), coordinate(&row, 1)]
        })
        .collect()
}

/// Rows without their mean, divided by the largest magnitude that is left: products of what lies between −1 and 1 neither
/// overflow nor vanish.
struct CentredRows<'a> {
    rows: &'a Features,
    means: Vec<f64>,
    /// The magnitude.
    scale: f64,
}

impl<'a> CentredRows<'a> {
    fn new(rows: &'a Features) -> Self {
        let (n, dim) = (rows.rows(), rows.dim());
        let mut means = vec![0.0; dim];
        for row in rows.iter() {
            means
                .iter_mut()
                .zip(row)
                .for_each(|(mean, &value)| *mean += f64::from(value));
        }
        means.iter_mut().for_each(|mean| *mean /= n as f64);
        if n > 0 {
            // The mean of equal numbers can miss them by rounding, which would become a direction of its own.
            let first = rows.row(0);
            for (column, mean) in means.iter_mut().enumerate() {
                if rows.iter().all(|row| row[column] == first[column]) {
                    *mean = f64::from(first[column]);
                }
            }
        }
        let gaps = rows.iter().flat_map(|row| row.iter().zip(&means));
        let scale = gaps.fold(0.0, |most: f64, (&v, mean)| most.max((f64::from(v) - mean).abs()));
        Self { rows, means, scale }
    }

    /// The numbers of whole rows.
    fn values(&self, rows: &[f32]) -> Vec<f64> {
        let rows = rows.chunks_exact(self.means.len());
        rows.flat_map(|row| row.iter().zip(&self.means))
            .map(|(&value, mean)| (f64::from(value) - mean) / self.scale)
            .collect()
    }
}

/// The symmetric matrix of the dot products of all columns.
fn products_of_columns(centred: &CentredRows<'_>) -> Vec<f64> {
    let dim = centred.rows.dim();
    let mut products = vec![0.0; dim * dim];
    for rows in centred.rows.values().chunks(ROWS * dim) {
        let values = centred.values(rows);
        products
            .par_chunks_mut(PANEL * dim)
            .enumerate()
            .for_each(|(panel, out)| linalg::add_products_of_columns(out, &values, dim, panel * PANEL));
    }
    products
}

/// The dot product, summed in eight lanes.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + rest
}

/// The symmetric matrix of the dot products of all rows.
fn products_of_rows(rows: &[f64], dim: usize, count: usize) -> Vec<f64> {
    let mut gram = vec![0.0; count * count];
    gram.par_chunks_mut(count).enumerate().for_each(|(i, row)| {
        let one = &rows[i * dim..][..dim];
        for (j, cell) in row.iter_mut().enumerate().take(i + 1) {
            *cell = dot(one, &rows[j * dim..][..dim]);
        }
    });
    for i in 0..count {
        for j in 0..i {
            gram[j * count + i] = gram[i * count + j];
        }
    }
    gram
}

/// The two largest eigenvalues of a symmetric matrix without negative ones, with their vectors, the larger first.
fn leading(matrix: &[f64], size: usize) -> Vec<(f64, Vec<f64>)> {
    let block = BLOCK.min(size);
    // Any start will do that is not orthogonal to what is looked for.
    let mut rng = Rng::new(0, &[0x9ca]);
    let mut basis: Vec<Vec<f64>> = (0..block)
        .map(|_| (0..size).map(|_| 2.0 * rng.unit() - 1.0).collect())
        .collect();
    orthonormalise(&mut basis);
    let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
    for _ in 0..MOST {
        let images: Vec<Vec<f64>> = basis
            .iter()
            .map(|vector| matrix.par_chunks(size).map(|row| dot(row, vector)).collect())
            .collect();
        // The matrix as the block sees it; its eigenvectors turn the block to the best that it can say (Rayleigh–Ritz).
        let mut small: Vec<f64> = Vec::with_capacity(block * block);
        for image in &images {
            small.extend(basis.iter().map(|vector| dot(vector, image)));
        }
        let turned = symmetric(small, block);
        let turn = |vectors: &[Vec<f64>], weights: &[f64]| {
            let mut sum = vec![0.0; size];
            for (vector, &weight) in vectors.iter().zip(weights) {
                sum.iter_mut()
                    .zip(vector)
                    .for_each(|(sum, value)| *sum += weight * value);
            }
            sum
        };
        let next: Vec<Vec<f64>> = turned.iter().map(|(_, weights)| turn(&images, weights)).collect();
        found = turned
            .iter()
            .take(2)
            .map(|(value, weights)| (*value, turn(&basis, weights)))
            .collect();
        // What the matrix makes of a vector, less its eigenvalue times the vector, vanishes for an eigenvector.
        let done = found.iter().zip(&next).all(|((value, vector), image)| {
            let missed = image
                .iter()
                .zip(vector)
                .map(|(i, v)| (i - value * v) * (i - value * v))
                .sum::<f64>();
            missed.sqrt() <= 1e-11 * turned[0].0
        });
        if done {
            break;
        }
        basis = next;
        orthonormalise(&mut basis);
    }
    found
}

/// Makes the vectors orthogonal and of length one; those that depend on the ones before become zero.
fn orthonormalise(vectors: &mut [Vec<f64>]) {
    for at in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(at);
        let vector = &mut rest[0];
        let length = dot(vector, vector).sqrt();
        // Twice is enough: the second pass takes away what rounding left of the first.
        for _ in 0..2 {
            for other in before.iter() {
                let part = dot(vector, other);
                vector
                    .iter_mut()
                    .zip(other)
                    .for_each(|(value, other)| *value -= part * other);
            }
        }
        let left = dot(vector, vector).sqrt();
        let factor = if left > 1e-12 * length { left.recip() } else { 0.0 };
        vector.iter_mut().for_each(|value| *value *= factor);
    }
}

/// The sum of the rows, each times its weight.
fn weighted(rows: &[f64], dim: usize, weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; dim];
    for (row, &weight) in rows.chunks_exact(dim).zip(weights) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
    }
    sum
}

/// The loading at length one, orthogonal to those before, its largest value positive; `None` where nothing is left of it.
fn oriented(mut loading: Vec<f64>, before: &[Vec<f64>]) -> Option<Vec<f64>> {
    for other in before {
        let part = dot(&loading, other);
        loading
            .iter_mut()
            .zip(other)
            .for_each(|(value, other)| *value -= part * other);
    }
    let length = dot(&loading, &loading).sqrt();
    let most = loading.iter().copied().fold(
        0.0,
        |most: f64, value| if value.abs() > most.abs() { value } else { most },
    );
    if !(length > 0.0 && length.is_finite()) {
        return None;
    }
    loading.iter_mut().for_each(|value| *value *= most.signum() / length);
    Some(loading)
}
