//! Products of matrices, the right one packed, shared out among threads.
//!
//! What a product takes at a time of either side is a *word* of 32 bits: an f32, or two bf16 of adjacent terms. Rows of words are
//! rows of terms, and the right side's panels have a word for every column: the layout of AVX512-BF16, and of AMX too.

use rayon::prelude::*;

use super::buffer::{Buffer, LINE};
use super::math::gelu;
use super::simd::{Kernel, Simd, with_simd};
use super::tile::{Epilogue, LeftRows, Tile};
use crate::isa::{Isa, Precision};

/// The right side of products, laid out for one kind of register: panels of two registers of columns (the last may be of one),
/// in each panel the rows one after the other. Columns and pieces of rows are filled up with zeros.
#[derive(Debug)]
pub struct Packed {
    isa: Isa,
    depth: usize,
    columns: usize,
    values: Buffer,
    bias: Buffer,
}

/// A panel's first column and its number of registers.
fn panels(columns: usize, lanes: usize) -> impl Fn(usize) -> (usize, usize) {
    move |panel| {
        let first = 2 * lanes * panel;
        (first, if columns - first > lanes { 2 } else { 1 })
    }
}

impl Packed {
    /// Packs the values of a matrix that has a column for every bias and `pieces` of `len` rows: `value(row, column)`.
    ///
    /// The left side's terms come in the same pieces, each filled up with zeros to whole words.
    ///
    /// # Panics
    /// When there is no memory for so large a matrix.
    pub fn new(isa: Isa, [pieces, len]: [usize; 2], bias: &[f32], value: impl Fn(usize, usize) -> f32) -> Self {
        let (lanes, columns, words) = (isa.lanes(), bias.len(), isa.words(len));
        let (width, depth) = (columns.next_multiple_of(lanes), pieces.checked_mul(words));
        let (depth, size) = depth
            .and_then(|depth| Some((depth, depth.checked_mul(width)?)))
            .expect("the matrix can be addressed");
        let word = |k: usize, column: usize| match isa.precision() {
            Precision::F32 => value(k, column),
            Precision::Bf16 => {
                let (piece, at) = (k / words, 2 * (k % words));
                let term = |at: usize| match at < len {
                    true => u32::from(half::bf16::from_f32(value(piece * len + at, column)).to_bits()),
                    false => 0,
                };
                f32::from_bits(term(at) | term(at + 1) << 16)
            }
        };
        let mut values = Buffer::zeros(size);
        for panel in 0..columns.div_ceil(2 * lanes) {
            let (first, registers) = panels(columns, lanes)(panel);
            let wide = registers * lanes;
            for k in 0..depth {
                let row = &mut values[first * depth + k * wide..][..wide];
                for (lane, to) in row.iter_mut().take(columns - first).enumerate() {
                    *to = word(k, first + lane);
                }
            }
        }
        let mut padded = vec![0.0; width];
        padded[..columns].copy_from_slice(bias);
        Self {
            isa,
            depth,
            columns,
            values,
            bias: Buffer::from(&padded[..]),
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// Where the rows of a matrix are: `per_line` rows `row` apart in every line, lines `line` apart.
///
/// A plain matrix is one line; the maps of a convolution have lines of pixels with a margin between them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowLayout {
    /// Where the first row begins.
    pub start: usize,
    /// The distance of lines.
    pub line: usize,
    /// The distance of rows.
    pub row: usize,
}

impl RowLayout {
    /// Rows one after the other.
    pub fn rows(stride: usize) -> Self {
        Self {
            start: 0,
            line: 0,
            row: stride,
        }
    }

    fn at(&self, line: usize, row: usize) -> usize {
        self.start + line * self.line + row * self.row
    }

    /// One past the last value of `lines` × `per_line` rows of `width`, or `None` beyond what a `usize` holds. Pointers rely on
    /// it, so that nothing may wrap; where it is `Some`, nothing that [`at`](Self::at) computes for those rows does.
    fn end(&self, [lines, per_line]: [usize; 2], width: usize) -> Option<usize> {
        let line = lines.checked_sub(1)?.checked_mul(self.line)?;
        let row = per_line.checked_sub(1)?.checked_mul(self.row)?;
        self.start.checked_add(line)?.checked_add(row)?.checked_add(width)
    }
}

/// The left side of a product.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The words.
    pub values: &'a [f32],
    /// Where rows begin.
    pub place: RowLayout,
    /// The words of a row lie in pieces of this many …
    pub len: usize,
    /// … one at each of these distances from its beginning.
    pub offsets: &'a [usize],
}

impl<'a> Operand<'a> {
    /// Rows of `len` words in one piece.
    pub fn whole(values: &'a [f32], place: RowLayout, len: usize) -> Self {
        Self {
            values,
            place,
            len,
            offsets: &[0],
        }
    }
}

/// What is added to a product.
#[derive(Clone, Copy)]
pub enum Addend<'a> {
    /// Nothing.
    Nothing,
    /// What is there already.
    Out,
    /// Another matrix.
    From(&'a [f32], RowLayout),
}

/// What becomes of every number at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// It stays as it is.
    None,
    /// Cut at zero.
    Relu,
    /// Cut at zero and six.
    Relu6,
    /// Times the probability that a normal number is below it; the result is words, for another product.
    Gelu,
}

/// The least and the largest value that an activation lets through.
pub(super) fn limits(activation: Activation) -> (f32, f32) {
    match activation {
        Activation::None | Activation::Gelu => (f32::NEG_INFINITY, f32::INFINITY),
        Activation::Relu => (0.0, f32::INFINITY),
        Activation::Relu6 => (0.0, 6.0),
    }
}

/// Rows are shared out among threads in blocks of so many tiles, whose left side fits the second-level cache.
const BLOCK: usize = 16;
/// About as many multiply-adds as are worth handing to another thread: some tenths of a millisecond.
const PIECE: usize = 1 << 23;

/// The most rows of a tile on anything.
const MOST_ROWS: usize = 32;

/// One product, on its way through the threads.
struct Product<'a> {
    left: *const f32,
    place: RowLayout,
    offsets: &'a [usize],
    len: usize,
    right: &'a Packed,
    add: *const f32,
    add_place: RowLayout,
    activation: Activation,
    out: *mut f32,
    out_place: RowLayout,
    per_line: usize,
    /// Tiles of a line.
    tiles: usize,
}

// SAFETY: what is read is not written while the product is made, except for `out` where it is also added; and of that every piece
// touches only its own rows and columns.
unsafe impl Sync for Product<'_> {}

/// Some tiles of rows times some panels of columns.
struct TileBlock<'a> {
    product: &'a Product<'a>,
    tiles: std::ops::Range<usize>,
    panels: std::ops::Range<usize>,
}

/// `out = activation(left · right + bias + add)`, with `lines` × `per_line` rows.
///
/// Columns of `out` up to a whole register are written; those beyond the matrix become zero where nothing else is added.
///
/// # Panics
/// When something does not fit its place, rows of `out` overlap, or the processor does not have the registers that the right
/// side was packed for.
pub fn product(
    [lines, per_line]: [usize; 2],
    left: Operand,
    right: &Packed,
    add: Addend,
    activation: Activation,
    out: &mut [f32],
    out_place: RowLayout,
) {
    if lines == 0 || per_line == 0 || right.columns == 0 {
        return;
    }
    let lanes = right.isa.lanes();
    let width = match activation {
        // Pairs of registers become one.
        Activation::Gelu if right.isa.precision() == Precision::Bf16 => right.columns.div_ceil(2 * lanes) * lanes,
        _ => right.columns.next_multiple_of(lanes),
    };
    let fits = |values: &[f32], place: &RowLayout, width: usize| {
        let end = place.end([lines, per_line], width);
        end.is_some_and(|end| end <= values.len())
    };
    let furthest = left.offsets.iter().max().copied().unwrap_or(0).checked_add(left.len);
    let terms = left.offsets.len().checked_mul(left.len);
    assert_eq!(Some(right.depth), terms, "the terms of both sides");
    assert!(left.len.is_multiple_of(right.isa.words(1)), "pieces are of whole words");
    assert!(
        activation != Activation::Gelu || matches!(add, Addend::Nothing),
        "words are not numbers"
    );
    assert!(
        furthest.is_some_and(|furthest| fits(left.values, &left.place, furthest)),
        "the left side"
    );
    assert!(fits(out, &out_place, width), "the result");
    let apart = |stride: usize, count: usize, length: usize| count == 1 || stride >= length;
    assert!(
        apart(out_place.row, per_line, width) && apart(out_place.line, lines, (per_line - 1) * out_place.row + width),
        "rows of the result overlap"
    );
    let out = out.as_mut_ptr();
    let (add, add_place) = match add {
        Addend::Nothing => (std::ptr::null(), RowLayout::default()),
        Addend::Out => (out.cast_const(), out_place),
        Addend::From(values, place) => {
            assert!(fits(values, &place, width), "what is added");
            (values.as_ptr(), place)
        }
    };
    let product = Product {
        left: left.values.as_ptr(),
        place: left.place,
        offsets: left.offsets,
        len: left.len,
        right,
        add,
        add_place,
        activation,
        out,
        out_place,
        per_line,
        tiles: per_line.div_ceil(right.isa.tile_rows()),
    };
    let tiles = lines * product.tiles;
    let panels = right.columns.div_ceil(2 * lanes);
    let rows = (lines * per_line).div_ceil(tiles.div_ceil(BLOCK));
    let together = PIECE.div_ceil(rows * right.depth.max(1) * 2 * lanes).clamp(1, panels);
    let (blocks, strips) = (tiles.div_ceil(BLOCK), panels.div_ceil(together));
    let piece = |at: usize| {
        let (block, strip) = (at / strips, at % strips);
        let piece = TileBlock {
            product: &product,
            tiles: BLOCK * block..tiles.min(BLOCK * (block + 1)),
            panels: together * strip..panels.min(together * (strip + 1)),
        };
        with_simd(right.isa, piece);
    };
    match blocks * strips {
        1 => piece(0),
        many => (0..many).into_par_iter().with_max_len(1).for_each(piece),
    }
}

impl Kernel for TileBlock<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Product {
            left,
            place,
            offsets,
            len,
            right,
            add,
            add_place,
            activation,
            out,
            out_place,
            per_line,
            tiles,
        } = *self.product;
        let limits = limits(activation);
        // Where the numbers of a tile stay until they are words.
        let mut sums = [0.0f32; MOST_ROWS * 32];
        let word = if activation == Activation::Gelu { S::WORD } else { 1 };
        for panel in self.panels {
            let (first, registers) = panels(right.columns, S::LANES)(panel);
            for tile in self.tiles.clone() {
                let (line, tile) = (tile / tiles, tile % tiles);
                let (from, to) = match S::EVEN {
                    true => (tile * per_line / tiles, (tile + 1) * per_line / tiles),
                    false => (tile * S::ROWS, per_line.min((tile + 1) * S::ROWS)),
                };
                // SAFETY: `product` has made sure that every row with all of its terms, and every row of what is added and
                // of the result with all registers of its columns, is where the places say; the panel is one of those that
                // `Packed` made, with `depth` rows, and so is its bias. A tile has at most `S::ROWS` rows, as `tiles` was made
                // of that number.
                unsafe {
                    let out = out.add(out_place.at(line, from) + first / word);
                    let finish = Epilogue {
                        bias: right.bias.as_ptr().add(first),
                        add: match add.is_null() {
                            true => add,
                            false => add.add(add_place.at(line, from) + first),
                        },
                        add_stride: add_place.row,
                        limits,
                    };
                    let left = LeftRows {
                        at: left.add(place.at(line, from)),
                        stride: place.row,
                        offsets,
                        len,
                    };
                    let tile = Tile {
                        rows: to - from,
                        registers,
                        left,
                        right: right.values.as_ptr().add(first * right.depth),
                        finish,
                        out,
                        out_stride: out_place.row,
                    };
                    if activation != Activation::Gelu {
                        S::tile(tile);
                        continue;
                    }
                    let wide = 2 * S::LANES;
                    S::tile(Tile {
                        out: sums.as_mut_ptr(),
                        out_stride: wide,
                        ..tile
                    });
                    for row in 0..to - from {
                        let sums = sums.as_ptr().add(row * wide);
                        let first = gelu::<S>(S::load(sums));
                        let mut second = S::splat(0.0);
                        if registers == 2 {
                            second = gelu::<S>(S::load(sums.add(S::LANES)));
                        }
                        let out = out.add(row * out_place.row);
                        S::store(out, S::words(first, second));
                        if S::WORD == 1 && registers == 2 {
                            S::store(out.add(S::LANES), second);
                        }
                    }
                }
            }
        }
    }
}

/// The distance of the rows of a matrix: whole lines, and an odd number of them where rows would otherwise share a few sets of
/// the first-level cache.
pub fn row_stride(columns: usize) -> usize {
    let lines = columns.div_ceil(LINE);
    LINE * (lines + usize::from(lines.is_multiple_of(16)))
}
