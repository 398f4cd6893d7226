//! Registers of many numbers, and how work is compiled for the kind that a processor has.

#[cfg(target_arch = "x86_64")]
use std::{arch::x86_64::*, mem::transmute};

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::tile::{Tile, tile_of};
use crate::isa::Isa;

/// A kind of register with what the kernels do with it.
///
/// # Safety
/// All methods may only be called where the processor has the instructions of the kind, which [`with_simd`] sees to; and
/// `load` and `store` only with pointers to `LANES` numbers.
pub(super) trait Simd {
    /// A register.
    type V: Copy;
    /// The kind with the same registers whose products are of f32.
    type Single: Simd<V = Self::V>;
    /// The numbers of a register.
    const LANES: usize;
    /// The numbers of a word, the 32 bits that products take at a time: one f32 or two bf16.
    const WORD: usize = 1;
    /// The most rows of a tile: with two registers of columns each, its sums take most of the registers and leave room for
    /// what is multiplied.
    const ROWS: usize;
    /// Whether rows are shared out evenly among tiles, so that none is much smaller than the others, and not all tiles are
    /// whole but the last.
    const EVEN: bool = true;

    unsafe fn splat(value: f32) -> Self::V;
    unsafe fn load(from: *const f32) -> Self::V;
    unsafe fn store(to: *mut f32, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// `sum` and the products of a word of the left side with the words of the right.
    #[inline(always)]
    unsafe fn term(left: Self::V, right: Self::V, sum: Self::V) -> Self::V {
        // SAFETY: as for this method.
        unsafe { Self::fma(left, right, sum) }
    }
    /// Two registers of numbers as one of words; where a word is one number, the first alone.
    #[inline(always)]
    unsafe fn words(first: Self::V, _second: Self::V) -> Self::V {
        first
    }
    /// `a · b + c`, rounded once.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger one; `b` where one of them is not a number, so that NaN in `b` is kept.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The smaller one; `b` where one of them is not a number.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// The nearest whole number.
    unsafe fn round(a: Self::V) -> Self::V;
    /// Two to the power of a whole number from −126 to 127.
    unsafe fn pow2(a: Self::V) -> Self::V;
    /// The sum of all numbers.
    unsafe fn sum(a: Self::V) -> f32;
    /// The largest number.
    unsafe fn largest(a: Self::V) -> f32;
    /// Computes a tile; not inlined, as there are many sizes of tiles. As safe as the tile is.
    unsafe fn tile(tile: Tile);
}

/// Something to do with registers of any kind.
pub(super) trait Kernel {
    /// Does it; must be `#[inline(always)]`, and so must what it calls in its loops: only inlined code gets the registers. (A
    /// closure is not, and must not touch them.)
    ///
    /// # Safety
    /// The processor has the instructions of `S`.
    unsafe fn run<S: Simd>(self);
}

/// Does `work` with the registers of a kind.
///
/// # Panics
/// When this processor does not have them.
pub(super) fn with_simd<W: Kernel>(isa: Isa, work: W) {
    assert!(isa.is_available(), "this processor has no {isa}");
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => {
            #[target_feature(enable = "avx512f,avx512bf16")]
            fn with_tiles<W: Kernel>(work: W) {
                let _tiles = amx::TileGuard;
                // SAFETY: this function is only called where there are tiles, and AVX-512 with bf16.
                unsafe { work.run::<Avx512<TILES>>() }
            }
            // SAFETY: the assertion above asked the processor.
            unsafe { with_tiles(work) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Bf16 => {
            #[target_feature(enable = "avx512f,avx512bf16")]
            fn with_bf16<W: Kernel>(work: W) {
                // SAFETY: this function is only called where there is AVX-512 with bf16.
                unsafe { work.run::<Avx512<PAIRS>>() }
            }
            // SAFETY: the assertion above asked the processor.
            unsafe { with_bf16(work) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            #[target_feature(enable = "avx512f")]
            fn with_avx512<W: Kernel>(work: W) {
                // SAFETY: this function is only called where there is AVX-512.
                unsafe { work.run::<Avx512<SINGLE>>() }
            }
            // SAFETY: the assertion above asked the processor.
            unsafe { with_avx512(work) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2,fma")]
            fn with_avx2<W: Kernel>(work: W) {
                // SAFETY: this function is only called where there are AVX2 and FMA.
                unsafe { work.run::<Avx2>() }
            }
            // SAFETY: the assertion above asked the processor.
            unsafe { with_avx2(work) }
        }
        // SAFETY: plain numbers need no instruction of their own.
        _ => unsafe { work.run::<Scalar>() },
    }
}

/// A function that computes tiles, compiled for some instructions.
macro_rules! tiles {
    ($name:ident, $kind:ty $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        #[inline(never)]
        unsafe fn $name(tile: Tile) {
            // SAFETY: as for `Simd::tile`.
            unsafe { tile_of::<$kind>(tile) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
tiles!(tile_bf16, Avx512<PAIRS>, "avx512f,avx512bf16");
#[cfg(target_arch = "x86_64")]
tiles!(tile_avx512, Avx512<SINGLE>, "avx512f");
#[cfg(target_arch = "x86_64")]
tiles!(tile_avx2, Avx2, "avx2,fma");
tiles!(tile_plain, Scalar);

/// AVX-512, with products of f32 …
#[cfg(target_arch = "x86_64")]
const SINGLE: u8 = 0;
/// … or of bf16, by registers …
#[cfg(target_arch = "x86_64")]
const PAIRS: u8 = 1;
/// … or by the tiles of AMX.
#[cfg(target_arch = "x86_64")]
pub(super) const TILES: u8 = 2;

/// AVX-512, with products of one of three kinds.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512<const PRODUCTS: u8>;

#[cfg(target_arch = "x86_64")]
impl<const PRODUCTS: u8> Simd for Avx512<PRODUCTS> {
    type V = __m512;
    type Single = Avx512<SINGLE>;
    const LANES: usize = 16;
    const WORD: usize = if PRODUCTS == SINGLE { 1 } else { 2 };
    const ROWS: usize = if PRODUCTS == TILES { amx::ROWS } else { 14 };
    // Every other number of rows has registers divided anew.
    const EVEN: bool = PRODUCTS != TILES;

    #[inline(always)]
    unsafe fn term(left: __m512, right: __m512, sum: __m512) -> __m512 {
        unsafe {
            if PRODUCTS != SINGLE {
                _mm512_dpbf16_ps(
                    sum,
                    transmute::<__m512, __m512bh>(left),
                    transmute::<__m512, __m512bh>(right),
                )
            } else {
                _mm512_fmadd_ps(left, right, sum)
            }
        }
    }

    #[inline(always)]
    unsafe fn words(first: __m512, second: __m512) -> __m512 {
        unsafe {
            if PRODUCTS != SINGLE {
                transmute::<__m512bh, __m512>(_mm512_cvtne2ps_pbh(second, first))
            } else {
                first
            }
        }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn round(a: __m512) -> __m512 {
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }

    #[inline(always)]
    unsafe fn pow2(a: __m512) -> __m512 {
        unsafe { _mm512_scalef_ps(_mm512_set1_ps(1.0), a) }
    }

    #[inline(always)]
    unsafe fn sum(a: __m512) -> f32 {
        unsafe { _mm512_reduce_add_ps(a) }
    }

    #[inline(always)]
    unsafe fn largest(a: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(a) }
    }

    #[inline(always)]
    unsafe fn tile(tile: Tile) {
        unsafe {
            match PRODUCTS {
                TILES => amx::tile(tile),
                PAIRS => tile_bf16(tile),
                _ => tile_avx512(tile),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Simd for Avx2 {
    type V = __m256;
    type Single = Self;
    const LANES: usize = 8;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        unsafe { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn round(a: __m256) -> __m256 {
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }

    #[inline(always)]
    unsafe fn pow2(a: __m256) -> __m256 {
        unsafe {
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
        }
    }

    #[inline(always)]
    unsafe fn sum(a: __m256) -> f32 {
        let mut lanes = [0.0; 8];
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), a) };
        halved(lanes, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn largest(a: __m256) -> f32 {
        let mut lanes = [0.0; 8];
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), a) };
        halved(lanes, f32::max)
    }

    #[inline(always)]
    unsafe fn tile(tile: Tile) {
        unsafe { tile_avx2(tile) }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn halved(mut lanes: [f32; 8], join: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [4, 2, 1] {
        for at in 0..half {
            lanes[at] = join(lanes[at], lanes[at + half]);
        }
    }
    lanes[0]
}

/// Numbers one by one: the kernels' pointers under an interpreter that looks at every access, and on any processor.
pub(super) struct Scalar;

impl Simd for Scalar {
    type V = [f32; 4];
    type Single = Self;
    const LANES: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: [f32; 4]) {
        unsafe { to.cast::<[f32; 4]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    unsafe fn div(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    unsafe fn fma(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn max(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn min(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn round(a: [f32; 4]) -> [f32; 4] {
        a.map(f32::round_ties_even)
    }

    #[inline(always)]
    unsafe fn pow2(a: [f32; 4]) -> [f32; 4] {
        a.map(|power| f32::from_bits(((power as i32 + 127) as u32) << 23))
    }

    #[inline(always)]
    unsafe fn sum(a: [f32; 4]) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }

    #[inline(always)]
    unsafe fn largest(a: [f32; 4]) -> f32 {
        a[0].max(a[1]).max(a[2].max(a[3]))
    }

    #[inline(always)]
    unsafe fn tile(tile: Tile) {
        unsafe { tile_plain(tile) }
    }
}
