//! Matrix products: the only place that talks to the `gemm` crate, and the only `unsafe` of this crate.
//!
//! Every routine cuts its work into blocks whose size depends on the shapes alone and runs each block on one thread, so
//! the bits of the result never depend on how many threads there are.

use rayon::prelude::*;

/// Rows of one block of a product. A block of 768-column rows fits the second-level cache.
const BLOCK: usize = 256;

/// Below this many multiply-adds handing blocks to other threads costs more than it saves.
const PARALLEL_FROM: usize = 1 << 26;

/// `out[i, j] = a[i] · b[j]` for row-major `a` (m × dim) and `b` (n × dim); row `i` of `out` starts at `i * stride`.
///
/// # Panics
/// When a slice is too short for its shape.
#[allow(unsafe_code)]
fn product(a: &[f32], b: &[f32], dim: usize, out: &mut [f32], stride: usize) {
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
