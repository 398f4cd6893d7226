//! Attention of one head: the scores of a few queries at a time, never those of all.

use super::buffer::Buffer;
use super::math::exp;
use super::simd::{Kernel, Simd, with_simd};
use super::tile::{Epilogue, LeftRows, Tile};
use crate::isa::Isa;

/// Queries, keys and values of one head: rows `stride` apart, `width` numbers from each of the three beginnings.
#[derive(Clone, Copy)]
pub struct AttentionHead<'a> {
    /// The numbers of all heads.
    pub values: &'a [f32],
    /// The distance of tokens.
    pub stride: usize,
    /// The number of tokens.
    pub tokens: usize,
    /// The numbers of a query, a key or a value.
    pub width: usize,
    /// Where a token's query begins.
    pub query: usize,
    /// Where its key begins.
    pub key: usize,
    /// Where its value begins.
    pub value: usize,
}

/// What a thread needs to attend.
#[derive(Debug, Default)]
pub struct Workspace {
    keys: Buffer,
    values: Buffer,
    scores: Buffer,
    mixed: Buffer,
}

struct AttentionKernel<'a> {
    head: AttentionHead<'a>,
    wanted: usize,
    /// The words of a row of `out`.
    words: usize,
    workspace: &'a mut Workspace,
    out: &'a mut [f32],
}

/// The mean of the values, weighted by how well their keys agree with a query, for the first `wanted` tokens: rows of words
/// in `out`, for a product. Queries are scaled already.
///
/// # Panics
/// When something is too short, or more tokens are wanted than there are.
pub fn attend(isa: Isa, head: AttentionHead, wanted: usize, workspace: &mut Workspace, out: &mut [f32]) {
    let AttentionHead {
        values,
        stride,
        tokens,
        width,
        ..
    } = head;
    if wanted == 0 || width == 0 {
        return;
    }
    assert!(wanted <= tokens, "as many tokens as are wanted");
    // Pointers rely on these sizes, so that none may wrap.
    let furthest = head.query.max(head.key).max(head.value).checked_add(width);
    let last = (tokens - 1).checked_mul(stride);
    let end = last
        .zip(furthest)
        .and_then(|(last, furthest)| last.checked_add(furthest));
    assert!(end.is_some_and(|end| end <= values.len()), "the tokens");
    let rows = wanted.checked_mul(isa.words(width));
    assert!(rows.is_some_and(|rows| rows <= out.len()), "the result");
    with_simd(
        isa,
        AttentionKernel {
            head,
            wanted,
            words: isa.words(width),
            workspace,
            out,
        },
    );
}

impl Kernel for AttentionKernel<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let AttentionHead {
            values: from,
            stride,
            tokens,
            width,
            query,
            key,
            value,
        } = self.head;
        let (panel, words) = (2 * S::LANES, self.words);
        let (columns, wide) = (tokens.next_multiple_of(panel), width.next_multiple_of(panel));
        // Tokens may overlap, so that the packed ones can be far more than what they are packed from.
        let (key_values, value_values) = (columns.checked_mul(width), tokens.checked_mul(wide));
        let Workspace {
            keys,
            values,
            scores,
            mixed,
        } = self.workspace;
        keys.reserve(key_values.expect("the keys can be addressed"));
        values.reserve(value_values.expect("the values can be addressed"));
        // An odd number of lines, so that rows do not share sets of the cache.
        let score_stride = columns.next_multiple_of(32) + 16;
        scores.reserve(S::Single::ROWS * score_stride);
        mixed.reserve(S::Single::ROWS * wide);
        // Keys become columns; those of tokens that are not there are zeros.
        keys[..columns * width].fill(0.0);
        for (token, row) in from.chunks(stride).take(tokens).enumerate() {
            let (at, lane) = (token / panel * panel * width, token % panel);
            for (k, &number) in row[key..key + width].iter().enumerate() {
                keys[at + k * panel + lane] = number;
            }
            let row = &row[value..value + width];
            for (part, numbers) in row.chunks(panel).enumerate() {
                let to = &mut values[(part * tokens + token) * panel..][..panel];
                to[..numbers.len()].copy_from_slice(numbers);
                to[numbers.len()..].fill(0.0);
            }
        }
        let tiles = self.wanted.div_ceil(S::Single::ROWS);
        for tile in 0..tiles {
            let (first, end) = (tile * self.wanted / tiles, (tile + 1) * self.wanted / tiles);
            let rows = end - first;
            // SAFETY: `attend` has made sure that all tokens are there, with queries of `width` numbers. The buffers have been made
            // long enough: `keys` for all panels of `width` rows, `values` for all panels of `tokens` rows, and `scores` and
            // `mixed` for the rows of a tile, of which there are at most `S::Single::ROWS`.
            unsafe {
                let left = LeftRows {
                    at: from.as_ptr().add(first * stride + query),
                    stride,
                    offsets: &[0],
                    len: width,
                };
                times::<S::Single>(rows, left, keys.as_ptr(), scores.as_mut_ptr(), [columns, score_stride]);
                let mut sums = [0.0; 14];
                for (row, sum) in sums.iter_mut().enumerate().take(rows) {
                    *sum = soften::<S>(&mut scores[row * score_stride..][..columns], tokens);
                }
                let left = LeftRows {
                    at: scores.as_ptr(),
                    stride: score_stride,
                    offsets: &[0],
                    len: tokens,
                };
                times::<S::Single>(rows, left, values.as_ptr(), mixed.as_mut_ptr(), [wide, wide]);
                for (row, sum) in sums.iter().enumerate().take(rows) {
                    let share = S::splat(1.0 / sum);
                    let mixed = &mut mixed[row * wide..][..wide];
                    for number in 0..wide / (S::WORD * S::LANES) {
                        let from = mixed.as_ptr().add(number * S::WORD * S::LANES);
                        let first = S::mul(S::load(from), share);
                        let second = S::mul(S::load(from.add((S::WORD - 1) * S::LANES)), share);
                        S::store(mixed.as_mut_ptr().add(number * S::LANES), S::words(first, second));
                    }
                    self.out[(first + row) * words..][..words].copy_from_slice(&mixed[..words]);
                }
            }
        }
    }
}

/// Some rows times a matrix of panels of two registers, `columns` wide in all, into rows `out_stride` apart.
///
/// # Safety
/// As for [`Simd::tile`], for every panel.
#[inline(always)]
unsafe fn times<S: Simd>(
    rows: usize,
    left: LeftRows,
    right: *const f32,
    out: *mut f32,
    [columns, out_stride]: [usize; 2],
) {
    let finish = Epilogue {
        bias: std::ptr::null(),
        add: std::ptr::null(),
        add_stride: 0,
        limits: (f32::NEG_INFINITY, f32::INFINITY),
    };
    for at in (0..columns).step_by(2 * S::LANES) {
        // SAFETY: as the caller says.
        unsafe {
            S::tile(Tile {
                rows,
                registers: 2,
                left,
                right: right.add(at * left.len),
                finish,
                out: out.add(at),
                out_stride,
            });
        }
    }
}

/// Scores become e to their power, the largest one's being 1; their sum.
///
/// # Safety
/// The processor has the instructions of `S`.
#[inline(always)]
unsafe fn soften<S: Simd>(scores: &mut [f32], tokens: usize) -> f32 {
    // Columns that are no tokens vanish beside the largest.
    scores[tokens..].fill(f32::NEG_INFINITY);
    let whole = scores.len() - scores.len() % S::LANES;
    // SAFETY: registers are read and written up to `whole`.
    unsafe {
        let mut largest = S::splat(f32::NEG_INFINITY);
        for at in (0..whole).step_by(S::LANES) {
            largest = S::max(largest, S::load(scores.as_ptr().add(at)));
        }
        let largest = S::splat(S::largest(largest));
        let mut sum = S::splat(0.0);
        for at in (0..whole).step_by(S::LANES) {
            let at = scores.as_mut_ptr().add(at);
            let power = exp::<S>(S::sub(S::load(at), largest));
            sum = S::add(sum, power);
            S::store(at, power);
        }
        S::sum(sum)
    }
}
