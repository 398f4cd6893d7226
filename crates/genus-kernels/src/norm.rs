//! Layer normalisation.

use super::simd::{Kernel, Simd, with_simd};
use crate::isa::Isa;

/// The scale and the shift of a normalisation, and what is added to the variance.
#[derive(Debug)]
pub struct LayerNorm {
    /// The scale of every number.
    pub gamma: Vec<f32>,
    /// The shift of every number.
    pub beta: Vec<f32>,
    /// What is added to the variance.
    pub epsilon: f32,
}

struct NormKernel<'a> {
    x: &'a [f32],
    norm: &'a LayerNorm,
    out: &'a mut [f32],
}

impl LayerNorm {
    /// Normalises a row; what it gives is words, for a product.
    ///
    /// # Panics
    /// When a slice is too short; `out` needs room for whole registers.
    pub fn row(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        let x = &x[..self.gamma.len()];
        with_simd(isa, NormKernel { x, norm: self, out });
    }
}

/// The most numbers of two registers.
const PAIR: usize = 32;

impl Kernel for NormKernel<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, norm, out } = self;
        let dim = x.len();
        let step = S::WORD * S::LANES;
        let (whole, steps) = (dim - dim % S::LANES, dim.div_ceil(step));
        assert!(norm.gamma.len() == dim && norm.beta.len() == dim && out.len() >= steps * S::LANES && step <= PAIR);
        // SAFETY: the row, `gamma` and `beta` are `dim` numbers long, and registers are read of them up to `whole` or, step by
        // step, as long as a step ends before `dim`; what is left is copied to a place of its own, as long as the longest step.
        // `out` has a register for every step.
        unsafe {
            let mut sum = S::splat(0.0);
            for at in (0..whole).step_by(S::LANES) {
                sum = S::add(sum, S::load(x.as_ptr().add(at)));
            }
            let rest: f32 = x[whole..].iter().sum();
            let mean = (S::sum(sum) + rest) / dim as f32;
            let means = S::splat(mean);
            let mut squares = S::splat(0.0);
            for at in (0..whole).step_by(S::LANES) {
                let difference = S::sub(S::load(x.as_ptr().add(at)), means);
                squares = S::fma(difference, difference, squares);
            }
            let rest: f32 = x[whole..].iter().map(|v| (v - mean) * (v - mean)).sum();
            let scale = S::splat(1.0 / ((S::sum(squares) + rest) / dim as f32 + norm.epsilon).sqrt());
            let from = [x.as_ptr(), norm.gamma.as_ptr(), norm.beta.as_ptr()];
            let out = out.as_mut_ptr();
            for number in 0..dim / step {
                let words = normed::<S>(from, number * step, means, scale);
                S::store(out.add(number * S::LANES), words);
            }
            if !dim.is_multiple_of(step) {
                let mut rest = [[0.0; PAIR]; 3];
                let at = dim - dim % step;
                for (rest, values) in rest.iter_mut().zip([x, &norm.gamma, &norm.beta]) {
                    rest[..dim - at].copy_from_slice(&values[at..]);
                }
                let [x, gamma, beta] = &rest;
                let words = normed::<S>([x.as_ptr(), gamma.as_ptr(), beta.as_ptr()], 0, means, scale);
                S::store(out.add(at / S::WORD), words);
            }
        }
    }
}

/// A register of words of a normalised row: its numbers, scales and shifts are `at` after where they begin.
///
/// # Safety
/// The processor has the instructions of `S`, and all three have a register of numbers for every number of a word there.
#[inline(always)]
unsafe fn normed<S: Simd>([x, gamma, beta]: [*const f32; 3], at: usize, means: S::V, scale: S::V) -> S::V {
    // SAFETY: as the caller says.
    unsafe {
        let first = S::mul(S::sub(S::load(x.add(at)), means), scale);
        let first = S::fma(first, S::load(gamma.add(at)), S::load(beta.add(at)));
        if S::WORD == 1 {
            return first;
        }
        let at = at + S::LANES;
        let second = S::mul(S::sub(S::load(x.add(at)), means), scale);
        S::words(first, S::fma(second, S::load(gamma.add(at)), S::load(beta.add(at))))
    }
}
