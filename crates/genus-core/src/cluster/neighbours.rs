//! The nearest neighbours of every row.

use rayon::prelude::*;

use crate::linalg;

/// The shape of a tile of products.
const ROWS: usize = 256;
const COLUMNS: usize = 512;

/// A row near another one, and its squared distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NearRow {
    pub(crate) other: u32,
    pub(crate) value: f32,
}

/// The `count` nearest other rows of every row with their squared distances, the nearest first and of equal ones the one
/// that comes first; fewer where there are not so many.
pub(crate) fn nearest(values: &[f32], dim: usize, count: usize) -> Vec<Vec<NearRow>> {
    let halves: Vec<f32> = values
        .chunks_exact(dim)
        .map(|row| row.iter().map(|v| v * v).sum::<f32>() / 2.0)
        .collect();
    let blocks: Vec<Vec<Vec<NearRow>>> = values
        .par_chunks(ROWS * dim)
        .enumerate()
        .map(|(block, rows)| {
            let from = block * ROWS;
            let mut found: Vec<NearestCandidates> =
                (0..rows.len() / dim).map(|_| NearestCandidates::new(count)).collect();
            let mut tile = vec![0.0; ROWS * COLUMNS];
            for (at, columns) in values.chunks(COLUMNS * dim).enumerate() {
                linalg::product(rows, columns, dim, &mut tile, COLUMNS);
                let first = at * COLUMNS;
                let halves = &halves[first..][..columns.len() / dim];
                for (row, (found, dots)) in found.iter_mut().zip(tile.chunks(COLUMNS)).enumerate() {
                    // Half the squared distance less what all candidates of this row share.
                    for (column, (half, dot)) in halves.iter().zip(dots).enumerate() {
                        let value = half - dot;
                        if value < found.limit && first + column != from + row {
                            found.push(first + column, value);
                        }
                    }
                }
            }
            let exact = |row: &[f32], other: u32| -> f32 {
                let other = &values[other as usize * dim..][..dim];
                squared_distance(row, other)
            };
            // A difference of large numbers found them; their distances are taken anew, so that equal rows have none.
            rows.chunks_exact(dim)
                .zip(found)
                .map(|(row, found)| found.into_nearest(|other| exact(row, other)))
                .collect()
        })
        .collect();
    blocks.into_iter().flatten().collect()
}

/// The squared distance of two rows, summed in lanes.
fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut lanes = [0f32; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b));
    lanes.into_iter().chain(rest).sum()
}

/// The smallest values seen so far, and a few more.
struct NearestCandidates {
    count: usize,
    /// What is not below this is not among the smallest.
    limit: f32,
    seen: Vec<NearRow>,
}

impl NearestCandidates {
    fn new(count: usize) -> Self {
        Self {
            count,
            limit: f32::INFINITY,
            seen: Vec::with_capacity(2 * count),
        }
    }

    fn push(&mut self, other: usize, value: f32) {
        self.seen.push(NearRow {
            other: other as u32,
            value,
        });
        if self.seen.len() == 2 * self.count {
            self.keep_smallest();
        }
    }

    fn keep_smallest(&mut self) {
        if self.seen.len() > self.count {
            // Columns come in order, so of equal values those seen first are kept: a later one is not below the limit.
            let (_, last, _) = self.seen.select_nth_unstable_by(self.count - 1, order);
            self.limit = last.value;
            self.seen.truncate(self.count);
        }
    }

    fn into_nearest(mut self, distance: impl Fn(u32) -> f32) -> Vec<NearRow> {
        self.keep_smallest();
        self.seen.iter_mut().for_each(|near| near.value = distance(near.other));
        self.seen.sort_unstable_by(order);
        self.seen
    }
}

pub(crate) fn order(a: &NearRow, b: &NearRow) -> std::cmp::Ordering {
    a.value.total_cmp(&b.value).then(a.other.cmp(&b.other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_nearest_are_those_of_sorting_all() {
        let mut rng = Rng::new(1, &[]);
        for (n, dim, count, steps) in [
            (2, 1, 1, 9),
            (40, 3, 39, 4),
            (300, 2, 10, 12),
            (1_100, 5, 90, 40),
            (700, 1, 20, 3),
        ] {
            // Small whole numbers have exact products, and many equal distances.
            let values: Vec<f32> = (0..n * dim).map(|_| rng.below(steps) as f32).collect();
            let found = nearest(&values, dim, count);
            assert_eq!(found.len(), n);
            for (i, found) in found.iter().enumerate() {
                let row = |i: usize| &values[i * dim..][..dim];
                let far = |j: usize| row(i).iter().zip(row(j)).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
                let mut all: Vec<NearRow> = (0..n)
                    .filter(|&j| j != i)
                    .map(|j| NearRow {
                        other: j as u32,
                        value: far(j),
                    })
                    .collect();
                all.sort_by(order);
                all.truncate(count);
                assert_eq!(*found, all, "point {i} of {n}");
            }
        }
    }
}
