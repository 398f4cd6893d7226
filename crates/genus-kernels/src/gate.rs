//! The gate of a SwiGLU perceptron.

use super::math::silu;
use super::simd::{Kernel, Simd, with_simd};
use crate::isa::Isa;

/// Multiplies every value by the SiLU of its gate; what it gives is words, for a product.
///
/// # Panics
/// When there is not one gate a value, or `out` has no room for whole registers.
pub fn gate(isa: Isa, gates: &[f32], values: &[f32], out: &mut [f32]) {
    with_simd(isa, GateKernel { gates, values, out });
}

struct GateKernel<'a> {
    gates: &'a [f32],
    values: &'a [f32],
    out: &'a mut [f32],
}

/// The most numbers of two registers.
const PAIR: usize = 32;

impl Kernel for GateKernel<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { gates, values, out } = self;
        let dim = gates.len();
        let step = S::WORD * S::LANES;
        assert!(values.len() == dim && out.len() >= dim.div_ceil(step) * S::LANES && step <= PAIR);
        // SAFETY: both rows are `dim` numbers long, and a step is read of them as long as it ends before `dim`; what is left is
        // copied to a place of its own, as long as the longest step. `out` has a register for every step.
        unsafe {
            for number in 0..dim / step {
                let words = gated::<S>([gates.as_ptr(), values.as_ptr()], number * step);
                S::store(out.as_mut_ptr().add(number * S::LANES), words);
            }
            if !dim.is_multiple_of(step) {
                let at = dim - dim % step;
                let mut rest = [[0.0; PAIR]; 2];
                for (rest, row) in rest.iter_mut().zip([gates, values]) {
                    rest[..dim - at].copy_from_slice(&row[at..]);
                }
                let words = gated::<S>([rest[0].as_ptr(), rest[1].as_ptr()], 0);
                S::store(out.as_mut_ptr().add(at / S::WORD), words);
            }
        }
    }
}

/// A register of words of a gated row, `at` after where gates and values begin.
///
/// # Safety
/// The processor has the instructions of `S`, and both have a register of numbers for every number of a word there.
#[inline(always)]
unsafe fn gated<S: Simd>([gates, values]: [*const f32; 2], at: usize) -> S::V {
    // SAFETY: as the caller says.
    unsafe {
        let first = S::mul(silu::<S>(S::load(gates.add(at))), S::load(values.add(at)));
        if S::WORD == 1 {
            return first;
        }
        let at = at + S::LANES;
        let second = S::mul(silu::<S>(S::load(gates.add(at))), S::load(values.add(at)));
        S::words(first, second)
    }
}
