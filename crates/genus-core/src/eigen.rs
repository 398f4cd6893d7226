//! Eigenvalues and eigenvectors of symmetric matrices.

use crate::features::scale_to_unit;
use crate::linalg;
use crate::rng::Rng;

/// Vectors that are iterated beside those asked for: the gap to the first one left out decides how fast they settle.
const SPARE: usize = 16;
/// Rounds of the iteration. Directions that are as long as others within a few per cent need not be told apart.
const ROUNDS: usize = 12;

/// All eigenvalues of a small symmetric matrix, row after row, and their vectors, the largest first, by Jacobi's rotations.
///
/// ```
/// let pairs = genus_core::eigen::symmetric(vec![2.0, 1.0, 1.0, 2.0], 2);
/// assert!((pairs[0].0 - 3.0).abs() < 1e-12 && (pairs[1].0 - 1.0).abs() < 1e-12);
/// assert!((pairs[0].1[0] - pairs[0].1[1]).abs() < 1e-12);
/// ```
///
/// # Panics
/// When there are not `size` × `size` values.
pub fn symmetric(mut matrix: Vec<f64>, size: usize) -> Vec<(f64, Vec<f64>)> {
    assert_eq!(matrix.len(), size * size, "a square matrix");
    let mut vectors: Vec<Vec<f64>> = (0..size)
        .map(|i| (0..size).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..60 {
        let off: f64 = (0..size)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| matrix[i * size + j].powi(2))
            .sum();
        let trace: f64 = (0..size).map(|i| matrix[i * size + i].powi(2)).sum();
        if off <= 1e-32 * trace {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                let across = matrix[p * size + q];
                if across == 0.0 {
                    continue;
                }
                let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * across);
                let tangent = if theta >= 0.0 { 1.0 } else { -1.0 } / (theta.abs() + theta.hypot(1.0));
                let cosine = tangent.hypot(1.0).recip();
                let sine = tangent * cosine;
                for k in 0..size {
                    let (a, b) = (matrix[k * size + p], matrix[k * size + q]);
                    matrix[k * size + p] = cosine * a - sine * b;
                    matrix[k * size + q] = sine * a + cosine * b;
                }
                for k in 0..size {
                    let (a, b) = (matrix[p * size + k], matrix[q * size + k]);
                    matrix[p * size + k] = cosine * a - sine * b;
                    matrix[q * size + k] = sine * a + cosine * b;
                }
                let (left, right) = vectors.split_at_mut(q);
                for (a, b) in left[p].iter_mut().zip(&mut right[0]) {
                    (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
                }
            }
        }
    }
    let mut pairs: Vec<(f64, Vec<f64>)> = vectors
        .into_iter()
        .enumerate()
        .map(|(i, v)| (matrix[i * size + i], v))
        .collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    pairs
}

/// The directions in which rows of length `dim` are longest: the `count` largest eigenvalues of the sum of their outer
/// products with their vectors, the largest first. Fewer where the rows span fewer directions.
///
/// A subspace iteration on the smaller of the two matrices of dot products: that of the rows, or that of the columns.
pub(crate) fn leading(rows: &[f32], dim: usize, count: usize) -> Vec<(f64, Vec<f32>)> {
    let n = rows.len() / dim;
    let columns = transpose(rows, dim);
    let by_rows = n < dim;
    let (matrix, size) = match by_rows {
        true => (linalg::gram(rows, dim), n),
        false => (linalg::gram(&columns, n), dim),
    };
    let block = (count + SPARE).min(size);
    if block == 0 {
        return Vec::new();
    }
    // Any start will do that is not orthogonal to what is looked for.
    let mut rng = Rng::new(0, &[0xe16]);
    let mut basis: Vec<f32> = (0..block * size).map(|_| (2.0 * rng.unit() - 1.0) as f32).collect();
    orthonormalise(&mut basis, size);
    for _ in 0..ROUNDS {
        basis = linalg::dots(&basis, &matrix, size);
        orthonormalise(&mut basis, size);
    }
    // What the matrix is in the basis; its eigenvectors turn the basis to the best that it can say (Rayleigh–Ritz).
    let small = linalg::dots(&linalg::dots(&basis, &matrix, size), &basis, size);
    let pairs = symmetric(small.into_iter().map(f64::from).collect(), block);
    let largest = pairs.first().map_or(0.0, |pair| pair.0);
    let (values, weights): (Vec<f64>, Vec<Vec<f64>>) = pairs
        .into_iter()
        .take(count)
        .take_while(|(value, _)| *value > 1e-6 * largest)
        .unzip();
    let weights: Vec<f32> = weights.into_iter().flatten().map(|weight| weight as f32).collect();
    let mut vectors = linalg::dots(&weights, &transpose(&basis, size), block);
    if by_rows {
        // A vector of weights of the rows is the direction of their weighted sum.
        vectors = linalg::dots(&vectors, &columns, n);
    }
    let mut vectors: Vec<Vec<f32>> = vectors.chunks_exact(dim).map(<[f32]>::to_vec).collect();
    vectors.iter_mut().for_each(|vector| {
        scale_to_unit(vector);
    });
    values.into_iter().zip(vectors).collect()
}

/// The columns of a row-major matrix as rows.
pub(crate) fn transpose(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    let mut out = vec![0.0; values.len()];
    // Square tiles: neither side then leaves the cache.
    const TILE: usize = 32;
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for row in top..(top + TILE).min(rows) {
                for column in left..(left + TILE).min(columns) {
                    out[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
    out
}

/// Makes rows orthogonal and of length one; those that depend on the ones before become zero.
fn orthonormalise(rows: &mut [f32], dim: usize) {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let mut lanes = [0f64; 8];
        let ((a8, a_rest), (b8, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
        for (a, b) in a8.iter().zip(b8) {
            for lane in 0..8 {
                lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
            }
        }
        let rest: f64 = a_rest
            .iter()
            .zip(b_rest)
            .map(|(&a, &b)| f64::from(a) * f64::from(b))
            .sum();
        lanes.iter().sum::<f64>() + rest
    };
    for at in 0..rows.len() / dim {
        let (before, rest) = rows.split_at_mut(at * dim);
        let row = &mut rest[..dim];
        let length = dot(row, row).sqrt();
        // Twice is enough: the second pass takes away what rounding left of the first.
        for _ in 0..2 {
            for other in before.chunks_exact(dim) {
                let part = dot(row, other) as f32;
                row.iter_mut().zip(other).for_each(|(v, &o)| *v -= part * o);
            }
        }
        let left = dot(row, row).sqrt();
        let factor = if left > 1e-5 * length { left.recip() } else { 0.0 };
        row.iter_mut().for_each(|v| *v = (f64::from(*v) * factor) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_directions_are_those_of_the_whole_matrix() {
        let (n, dim, count) = (60, 30, 4);
        let mut rng = Rng::new(5, &[1]);
        // The k-th feature is shorter than the one before, so that the leading directions are well apart.
        let rows: Vec<f32> = (0..n * dim)
            .map(|at| ((rng.unit() - 0.5) * 0.7f64.powi((at % dim) as i32)) as f32)
            .collect();
        let mut outer = vec![0f64; dim * dim];
        for row in rows.chunks_exact(dim) {
            for i in 0..dim {
                for j in 0..dim {
                    outer[i * dim + j] += f64::from(row[i]) * f64::from(row[j]);
                }
            }
        }
        let all = symmetric(outer, dim);
        let found = leading(&rows, dim, count);
        assert_eq!(found.len(), count);
        for ((value, vector), (expected, direction)) in found.iter().zip(&all) {
            assert!((value - expected).abs() < 1e-4 * expected, "{value} for {expected}");
            let cosine: f64 = vector.iter().zip(direction).map(|(&v, &d)| f64::from(v) * d).sum();
            assert!(cosine.abs() > 1.0 - 1e-4, "{cosine}");
        }
    }

    #[test]
    fn rows_that_span_little_have_few_directions() {
        let rows: Vec<f32> = (0..20)
            .flat_map(|i| [i as f32, 2.0 * i as f32, 0.0, (i % 3) as f32])
            .collect();
        assert_eq!(leading(&rows, 4, 4).len(), 2);
        assert!(leading(&[0.0; 12], 4, 3).is_empty() && leading(&[], 4, 3).is_empty());
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let values: Vec<f32> = (0..37 * 70).map(|v| v as f32).collect();
        let turned = transpose(&values, 70);
        assert_eq!(turned[37 * 5 + 2], values[70 * 2 + 5]);
        assert_eq!(transpose(&turned, 37), values);
    }
}
