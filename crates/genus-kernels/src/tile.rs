//! The innermost loops of a product: a few rows times a panel of columns, held in registers from the first to the last term.
//!
//! Every number of the result is one chain: the bias, then a fused multiply-add for each word in order, then what is added,
//! then the limits. How rows and columns are shared out among tiles and threads therefore does not touch its bits.

use super::simd::Simd;

/// The left side of a tile: `R` rows `stride` apart. The words of a row lie in pieces of `len`, one piece at each of the `offsets`.
#[derive(Clone, Copy)]
pub(super) struct LeftRows<'a> {
    pub(super) at: *const f32,
    pub(super) stride: usize,
    pub(super) offsets: &'a [usize],
    pub(super) len: usize,
}

/// What happens to the sums of a tile.
#[derive(Clone, Copy)]
pub(super) struct Epilogue {
    /// Of every column; null for none.
    pub(super) bias: *const f32,
    /// Added to the sums, rows `add_stride` apart; null for nothing.
    pub(super) add: *const f32,
    pub(super) add_stride: usize,
    /// The least and the largest value.
    pub(super) limits: (f32, f32),
}

impl Epilogue {
    /// Puts down a register of the result, whose sums are these: the one with number `w` of a row.
    ///
    /// # Safety
    /// The processor has the instructions of `S`, and `add` and `out` have such a register.
    #[inline(always)]
    pub(super) unsafe fn store<S: Simd>(&self, sum: S::V, row: usize, w: usize, out: *mut f32, out_stride: usize) {
        // SAFETY: as the caller says.
        unsafe {
            let (least, most) = (S::splat(self.limits.0), S::splat(self.limits.1));
            let sum = match self.add.is_null() {
                true => sum,
                false => S::add(sum, S::load(self.add.add(row * self.add_stride + w * S::LANES))),
            };
            // The sum stands second, so that what is not a number stays so.
            let sum = S::min(most, S::max(least, sum));
            S::store(out.add(row * out_stride + w * S::LANES), sum);
        }
    }
}

/// Once for each of the first `$rows` rows, written out: only sums that are named one by one are kept in registers.
macro_rules! each_row {
    ($rows:ident, $row:ident => $body:block) => {
        each_row!(@ $rows, $row, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $rows:ident, $row:ident, $body:block, $($number:literal)*) => {
        $(if $number < $rows {
            let $row = $number;
            $body
        })*
    };
}

/// `R` rows times `W` registers of columns.
///
/// # Safety
/// Beside the processor having the instructions of `S`: for every row r < `R`, `left` may be read at `at + r · stride +
/// offset + 0 … len` for each offset; `right` has offsets · len rows of `W` registers; `bias`, `add` and `out` have `W` registers
/// (in every row), of which `out` may be written. `add` may be `out`.
#[inline(always)]
pub(super) unsafe fn tile<S: Simd, const R: usize, const W: usize>(
    left: LeftRows,
    right: *const f32,
    finish: Epilogue,
    out: *mut f32,
    out_stride: usize,
) {
    // SAFETY: all pointers stay where the caller says that they may go; the pointers of rows beyond `R` are never formed.
    unsafe {
        let mut sums = [[S::splat(0.0); W]; R];
        if !finish.bias.is_null() {
            for w in 0..W {
                let bias = S::load(finish.bias.add(w * S::LANES));
                for row in &mut sums {
                    row[w] = bias;
                }
            }
        }
        let mut right = right;
        for &offset in left.offsets {
            // Three rows share a pointer: the processor adds the stride once or twice by itself, and all pointers fit.
            let mut groups = [left.at; 5];
            for (g, group) in groups.iter_mut().enumerate() {
                if 3 * g < R {
                    *group = left.at.add(offset + 3 * g * left.stride);
                }
            }
            for _ in 0..left.len {
                let mut columns = [S::splat(0.0); W];
                for (w, column) in columns.iter_mut().enumerate() {
                    *column = S::load(right.add(w * S::LANES));
                }
                each_row!(R, r => {
                    let value = S::splat(*groups[r / 3].add(r % 3 * left.stride));
                    for (sum, column) in sums[r].iter_mut().zip(columns) {
                        *sum = S::term(value, column, *sum);
                    }
                });
                for (g, group) in groups.iter_mut().enumerate() {
                    if 3 * g < R {
                        *group = group.add(1);
                    }
                }
                right = right.add(W * S::LANES);
            }
        }
        each_row!(R, r => {
            for (w, sum) in sums[r].into_iter().enumerate() {
                finish.store::<S>(sum, r, w, out, out_stride);
            }
        });
    }
}

/// A tile: so many rows and registers of columns.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) rows: usize,
    pub(super) registers: usize,
    pub(super) left: LeftRows<'a>,
    pub(super) right: *const f32,
    pub(super) finish: Epilogue,
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
}

/// As [`tile`], for a number of rows and registers that is known only now.
///
/// # Safety
/// As for [`tile`], with `rows` from 1 to `S::ROWS` and `registers` 1 or 2.
#[inline(always)]
pub(super) unsafe fn tile_of<S: Simd>(tile_of: Tile) {
    let Tile {
        rows,
        registers,
        left,
        right,
        finish,
        out,
        out_stride,
    } = tile_of;
    macro_rules! choose {
        ($($r:literal)*) => {
            match (rows, registers) {
                $(
                    // Tiles larger than the kind has are not compiled for it.
                    // SAFETY: as the caller says.
                    ($r, 2) if $r <= S::ROWS => unsafe { tile::<S, $r, 2>(left, right, finish, out, out_stride) },
                    // SAFETY: as the caller says.
                    ($r, 1) if $r <= S::ROWS => unsafe { tile::<S, $r, 1>(left, right, finish, out, out_stride) },
                )*
                _ => debug_assert!(false, "a tile of {rows} rows and {registers} registers"),
            }
        };
    }
    choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}
