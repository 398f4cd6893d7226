//! Matrix products: the only place that talks to the `gemm` crate, and the only `unsafe` of this crate.
//!
//! Every routine cuts its work into blocks whose size depends on the shapes alone and runs each block on one thread, so
//! the bits of the result never depend on how many threads there are.

use std::borrow::Cow;

use rayon::prelude::*;

/// Work that [`wide`] can compile for the machine it runs on.
pub(crate) trait Work {
    type Output;

    /// Must be `#[inline(always)]`, and so must what it calls in its loops: only inlined code gets the wide registers.
    fn run(self) -> Self::Output;
}

/// Does `work` with the wide registers of this machine, where it has them.
///
/// Its loops are vectorised eight numbers wide instead of the four of the oldest x86-64. The operations and their order stay
/// the same, so do the bits of the result.
#[allow(unsafe_code)]
pub(crate) fn wide<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<W: Work>(work: W) -> W::Output {
            work.run()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has just been asked for the one feature that `with_avx2` needs.
            return unsafe { with_avx2(work) };
        }
    }
    work.run()
}

/// Rows of one block of a product. A block of 768-column rows fits the second-level cache.
///
/// The last bits of a product depend on how many rows it has, and not on which of them a row is. So what must not depend on the
/// rows beside it is multiplied in whole blocks: see [`whole_blocks`].
pub(crate) const BLOCK: usize = 256;

/// Rows with as many copies of the first behind them as make whole blocks.
pub(crate) fn whole_blocks(rows: &[f32], dim: usize) -> Cow<'_, [f32]> {
    let count = rows.len() / dim;
    let missing = count.next_multiple_of(BLOCK) - count;
    if missing == 0 {
        return Cow::Borrowed(rows);
    }
    let mut whole = Vec::with_capacity(rows.len() + missing * dim);
    whole.extend_from_slice(rows);
    (0..missing).for_each(|_| whole.extend_from_slice(&rows[..dim]));
    Cow::Owned(whole)
}

/// Below this many multiply-adds, about a millisecond, waking other threads costs more than it saves.
const PARALLEL_FROM: usize = 1 << 26;

/// `out[i, j] = a[i] · b[j]` for row-major `a` (m × dim) and `b` (n × dim); row `i` of `out` starts at `i * stride`.
///
/// # Panics
/// When a slice is too short for its shape.
#[allow(unsafe_code)]
pub(crate) fn product(a: &[f32], b: &[f32], dim: usize, out: &mut [f32], stride: usize) {
    let (m, n) = (a.len() / dim, b.len() / dim);
    if m == 0 || n == 0 {
        return;
    }
    assert!(a.len() == m * dim && b.len() == n * dim && n <= stride && out.len() >= (m - 1) * stride + n);
    // SAFETY: `gemm` reads m × dim values of `a` and n × dim of `b` and writes out[i * stride + j] for i < m, j < n; the
    // assertion above puts all of them inside their slices. `out` is borrowed mutably, so nothing aliases it. With
    // `read_dst` false the old contents of `out` are not used.
    unsafe {
        gemm::gemm(
            m,
            n,
            dim,
            out.as_mut_ptr(),
            1,
            stride as isize,
            false,
            a.as_ptr(),
            1,
            dim as isize,
            b.as_ptr(),
            dim as isize,
            1,
            0.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Adds to every row of `out` (m × n) the sum of `rows` (k × n), each times its weight (m × k).
///
/// # Panics
/// When a slice is not of its shape.
#[allow(unsafe_code)]
pub(crate) fn add_weighted(out: &mut [f32], weights: &[f32], rows: &[f32], n: usize) {
    let (m, k) = (out.len() / n, rows.len() / n);
    if m == 0 || k == 0 {
        return;
    }
    assert!(out.len() == m * n && rows.len() == k * n && weights.len() == m * k);
    // SAFETY: `gemm` reads m × k values of `weights` and k × n of `rows`, and reads and writes m × n of `out`; the assertion
    // above makes the slices exactly so long. `out` is borrowed mutably, so nothing aliases it, and all of it has values.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            true,
            weights.as_ptr(),
            1,
            k as isize,
            rows.as_ptr(),
            1,
            n as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Adds to `out` the dot products of the columns of `rows` (k × dim) from column `first` on, as many as `out` has rows,
/// with all columns; in double precision.
///
/// # Panics
/// When a slice is not of its shape.
#[allow(unsafe_code)]
pub(crate) fn add_products_of_columns(out: &mut [f64], rows: &[f64], dim: usize, first: usize) {
    let (m, k) = (out.len() / dim, rows.len() / dim);
    if m == 0 || k == 0 {
        return;
    }
    assert!(out.len() == m * dim && rows.len() == k * dim && first + m <= dim);
    // SAFETY: `gemm` reads rows[r * dim + first + i] and rows[r * dim + j] for r < k, i < m, j < dim, and reads and writes
    // out[i * dim + j]; the assertion above puts all of them inside their slices. `out` is borrowed mutably, so nothing
    // aliases it, and all of it has values.
    unsafe {
        gemm::gemm(
            m,
            dim,
            k,
            out.as_mut_ptr(),
            1,
            dim as isize,
            true,
            rows.as_ptr().add(first),
            dim as isize,
            1,
            rows.as_ptr(),
            1,
            dim as isize,
            1.0f64,
            1.0f64,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// The dot products of every row of `a` with every row of `b`, as a row-major matrix of `b`'s number of columns.
pub(crate) fn dots(a: &[f32], b: &[f32], dim: usize) -> Vec<f32> {
    let (m, n) = (a.len() / dim, b.len() / dim);
    let mut out = vec![0.0; m * n];
    if n == 0 {
        return out;
    }
    let blocks = out.chunks_mut(BLOCK * n).zip(a.chunks(BLOCK * dim));
    if m * n * dim < PARALLEL_FROM {
        blocks.for_each(|(out, a)| product(a, b, dim, out, n));
    } else {
        blocks.par_bridge().for_each(|(out, a)| product(a, b, dim, out, n));
    }
    out
}

/// The symmetric matrix of the dot products of all rows with each other.
pub(crate) fn gram(x: &[f32], dim: usize) -> Vec<f32> {
    let n = x.len() / dim;
    let mut out = vec![0.0; n * n];
    if n == 0 {
        return out;
    }
    let block = gram_block(n);
    // Only what lies left of the diagonal block's right edge is computed; the rest is its mirror image.
    let fill = |(index, rows): (usize, &mut [f32])| {
        let from = index * block;
        let to = (from + block).min(n);
        product(&x[from * dim..to * dim], &x[..to * dim], dim, rows, n);
    };
    if n * n * dim < PARALLEL_FROM {
        out.chunks_mut(block * n).enumerate().for_each(fill);
    } else {
        out.par_chunks_mut(block * n).enumerate().for_each(fill);
    }
    for i in 0..n {
        for j in i + 1..n {
            out[i * n + j] = out[j * n + i];
        }
    }
    out
}

/// A few blocks save almost half of the product; more of them would starve the kernel.
fn gram_block(n: usize) -> usize {
    (n / 8).clamp(48, BLOCK)
}

/// The cosine distances `1 − x[i] · x[j]` of all pairs `i < j`, row after row; `None` when memory does not suffice.
pub(crate) fn condensed_distances(x: &[f32], dim: usize) -> Option<Vec<f32>> {
    let n = x.len() / dim;
    let pairs = n.checked_mul(n.saturating_sub(1))? / 2;
    let mut out: Vec<f32> = Vec::new();
    out.try_reserve_exact(pairs).ok()?;
    out.resize(pairs, 0.0);
    // The pairs of consecutive rows are consecutive in `out`, so blocks of rows own disjoint slices of it.
    let mut blocks = Vec::new();
    let mut rest = out.as_mut_slice();
    for from in (0..n).step_by(BLOCK) {
        let to = (from + BLOCK).min(n);
        let length = (from..to).map(|i| n - 1 - i).sum();
        let (block, tail) = rest.split_at_mut(length);
        blocks.push((from, to, block));
        rest = tail;
    }
    blocks.into_par_iter().for_each(|(from, to, block)| {
        let mut tile = vec![0.0; (to - from) * BLOCK];
        for column in (from..n).step_by(BLOCK) {
            let end = (column + BLOCK).min(n);
            product(
                &x[from * dim..to * dim],
                &x[column * dim..end * dim],
                dim,
                &mut tile,
                BLOCK,
            );
            let mut row_start = 0;
            for i in from..to {
                let first = column.max(i + 1);
                if first < end {
                    let pairs = &mut block[row_start + first - i - 1..row_start + end - i - 1];
                    let dots = &tile[(i - from) * BLOCK + first - column..];
                    for (pair, &dot) in pairs.iter_mut().zip(dots) {
                        *pair = 1.0 - dot;
                    }
                }
                row_start += n - 1 - i;
            }
        }
    });
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn random(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
        let mut rng = Rng::new(seed, &[rows as u64, dim as u64]);
        (0..rows * dim).map(|_| (2.0 * rng.unit() - 1.0) as f32).collect()
    }

    fn naive(a: &[f32], b: &[f32], dim: usize) -> Vec<f64> {
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(&v, &w)| f64::from(v) * f64::from(w)).sum();
        a.chunks_exact(dim)
            .flat_map(|x| b.chunks_exact(dim).map(move |y| dot(x, y)))
            .collect()
    }

    fn assert_close(found: &[f32], expected: &[f64], what: &str) {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (at, (&f, &e)) in found.iter().zip(expected).enumerate() {
            assert!((f64::from(f) - e).abs() <= 1e-4, "{what}, value {at}: {f} for {e}");
        }
    }

    #[test]
    fn products_of_odd_shapes() {
        for (m, n, dim) in [
            (1, 1, 1),
            (1, 7, 3),
            (7, 1, 3),
            (2, 2, 1),
            (17, 33, 1),
            (3, 5, 64),
            (255, 31, 9),
            (256, 31, 9),
            (257, 31, 9),
            (513, 2, 5),
            (2, 513, 5),
            (40, 40, 771),
        ] {
            let (a, b) = (random(m, dim, 1), random(n, dim, 2));
            assert_close(&dots(&a, &b, dim), &naive(&a, &b, dim), &format!("{m} x {n} x {dim}"));
        }
        assert!(dots(&[], &[1.0, 2.0], 2).is_empty());
        assert!(dots(&[1.0, 2.0], &[], 2).is_empty());
    }

    #[test]
    fn products_that_are_shared_among_threads() {
        let (m, n, dim) = (513, 515, 257);
        assert!(m * n * dim >= PARALLEL_FROM);
        let (a, b) = (random(m, dim, 1), random(n, dim, 2));
        assert_close(&dots(&a, &b, dim), &naive(&a, &b, dim), "dots");
        let x = random(515, dim, 3);
        assert_close(&gram(&x, dim), &naive(&x, &x, dim), "gram");
    }

    #[test]
    fn a_product_leaves_what_lies_between_its_rows() {
        let (a, b) = (random(3, 4, 1), random(2, 4, 2));
        let mut out = vec![9.0; 2 * 5 + 2];
        product(&a, &b, 4, &mut out, 5);
        let expected = naive(&a, &b, 4);
        for (i, row) in out.chunks(5).enumerate() {
            assert_close(&row[..2], &expected[2 * i..][..2], "product");
            assert!(row[2..].iter().all(|&v| v == 9.0));
        }
    }

    #[test]
    fn weighted_rows_are_added() {
        for (m, k, n) in [(1, 1, 1), (3, 2, 5), (17, 33, 40), (5, 1, 300)] {
            let (weights, rows) = (random(m, k, 1), random(k, n, 2));
            let before = random(m, n, 3);
            let mut found = before.clone();
            add_weighted(&mut found, &weights, &rows, n);
            let expected: Vec<f64> = (0..m * n)
                .map(|at| {
                    let terms = (0..k).map(|t| f64::from(weights[at / n * k + t]) * f64::from(rows[t * n + at % n]));
                    f64::from(before[at]) + terms.sum::<f64>()
                })
                .collect();
            assert_close(&found, &expected, &format!("{m} x {k} x {n}"));
        }
        let mut untouched = [1.0, 2.0];
        add_weighted(&mut untouched, &[], &[], 2);
        assert_eq!(untouched, [1.0, 2.0]);
    }

    #[test]
    fn products_of_columns_are_added() {
        for (k, dim, first, m) in [(1, 1, 0, 1), (3, 5, 1, 2), (70, 33, 30, 3), (600, 20, 0, 20)] {
            let rows: Vec<f64> = random(k, dim, 1).into_iter().map(f64::from).collect();
            let mut found = vec![0.5; m * dim];
            add_products_of_columns(&mut found, &rows, dim, first);
            for (at, found) in found.iter().enumerate() {
                let (one, other) = (first + at / dim, at % dim);
                let expected: f64 = rows.chunks_exact(dim).map(|row| row[one] * row[other]).sum();
                assert!((found - 0.5 - expected).abs() < 1e-10, "{k} x {dim}, {one} and {other}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn columns_must_exist() {
        add_products_of_columns(&mut [0.0; 4], &[1.0; 4], 2, 1);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn weights_must_be_one_a_row() {
        add_weighted(&mut [0.0; 4], &[1.0; 3], &[1.0; 4], 2);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_product_checks_the_room_for_its_result() {
        product(&[1.0; 4], &[1.0; 4], 2, &mut [0.0; 3], 2);
    }

    #[test]
    fn gram_matrices_are_all_products_and_symmetric() {
        for (n, dim) in [
            (0, 2),
            (1, 1),
            (1, 5),
            (2, 1),
            (47, 3),
            (48, 3),
            (49, 3),
            (97, 1),
            (255, 7),
            (256, 7),
            (257, 7),
            (513, 3),
        ] {
            let x = random(n, dim, 4);
            let found = gram(&x, dim);
            assert_close(&found, &naive(&x, &x, dim), &format!("{n} x {dim}"));
            for i in 0..n {
                for j in 0..i {
                    assert_eq!(found[i * n + j].to_bits(), found[j * n + i].to_bits());
                }
            }
        }
    }

    #[test]
    fn condensed_distances_are_one_less_the_products() {
        for (n, dim) in [
            (0, 2),
            (1, 1),
            (2, 1),
            (3, 5),
            (255, 7),
            (256, 7),
            (257, 7),
            (511, 1),
            (512, 2),
            (513, 3),
            (770, 2),
        ] {
            let x = random(n, dim, 5);
            let all = naive(&x, &x, dim);
            let expected: Vec<f64> = (0..n)
                .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
                .map(|(i, j)| 1.0 - all[i * n + j])
                .collect();
            let found = condensed_distances(&x, dim).unwrap();
            assert_close(&found, &expected, &format!("{n} x {dim}"));
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let x = random(600, 200, 6);
        let y = random(600, 200, 7);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let all = pool.install(|| [dots(&x, &y, 200), gram(&x, 200), condensed_distances(&x, 200).unwrap()]);
            all.concat().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3));
    }
}
