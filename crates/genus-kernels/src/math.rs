//! Functions of every number in a register.

use super::simd::Simd;

/// e to the power of `x`, to about two units in the last place from −87 to 88, and as at these ends beyond them.
///
/// # Safety
/// The processor has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn exp<S: Simd>(x: S::V) -> S::V {
    // ln 2 in two parts, so that whole multiples of it are taken off without a rounding error.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // SAFETY: arithmetic on registers alone.
    unsafe {
        let x = S::min(S::splat(88.0), S::max(S::splat(-87.0), x));
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let r = S::fma(n, S::splat(-LN2_HIGH), x);
        let r = S::fma(n, S::splat(-LN2_LOW), r);
        // The best polynomial for e^r where |r| ≤ ln 2 / 2.
        let mut p = S::splat(1.987_569_1e-4);
        for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = S::fma(p, r, S::splat(c));
        }
        let p = S::fma(S::mul(p, r), r, S::add(r, S::splat(1.0)));
        S::mul(p, S::pow2(n))
    }
}

/// `x` times the probability that a normal number is below `x`, within 2 · 10⁻⁷ · |x|.
///
/// # Safety
/// The processor has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn gelu<S: Simd>(x: S::V) -> S::V {
    // SAFETY: arithmetic on registers alone.
    unsafe {
        let zero = S::splat(0.0);
        let size = S::max(S::sub(zero, x), x);
        // The tail of the normal distribution beyond |x| (Abramowitz and Stegun 7.1.26): a polynomial in t times a bell.
        let t = S::div(
            S::splat(1.0),
            S::fma(size, S::splat(0.327_591_1 / std::f32::consts::SQRT_2), S::splat(1.0)),
        );
        let mut p = S::splat(1.061_405_4);
        for c in [-1.453_152_1, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
            p = S::fma(p, t, S::splat(c));
        }
        let bell = exp::<S>(S::mul(S::mul(x, x), S::splat(-0.5)));
        let tail = S::mul(S::mul(S::mul(p, t), S::splat(0.5)), bell);
        S::fma(S::sub(zero, size), tail, S::max(zero, x))
    }
}

/// `x` times the logistic function of `x`: SiLU.
///
/// # Safety
/// The processor has the instructions of `S`.
#[inline(always)]
pub(super) unsafe fn silu<S: Simd>(x: S::V) -> S::V {
    // SAFETY: arithmetic on registers alone.
    unsafe {
        let one = S::splat(1.0);
        S::div(x, S::add(one, exp::<S>(S::sub(S::splat(0.0), x))))
    }
}
