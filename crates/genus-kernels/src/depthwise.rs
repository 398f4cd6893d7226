//! Convolutions of every channel by itself.

use rayon::prelude::*;

use super::buffer::Buffer;
use super::product::{Activation, limits};
use super::simd::{Kernel, Simd, with_simd};
use crate::isa::Isa;

/// The kernels of all channels: channels side by side, as in the maps.
#[derive(Debug)]
pub struct Depthwise {
    isa: Isa,
    kernel: usize,
    channels: usize,
    /// A row of channels for every place of the kernel, and the bias.
    values: Buffer,
    bias: Buffer,
    stride: usize,
    activation: Activation,
}

/// A square map: pixels one after the other, `channels` numbers apart.
#[derive(Clone, Copy, Debug)]
pub struct MapLayout {
    /// The pixels of a side.
    pub side: usize,
    /// The distance of pixels.
    pub channels: usize,
}

impl MapLayout {
    /// The numbers of the map, or `None` beyond what a `usize` holds: pointers rely on it.
    fn len(&self) -> Option<usize> {
        self.side.checked_mul(self.side)?.checked_mul(self.channels)
    }
}

/// Pixels of a line that are computed side by side, so that a weight is loaded once for all.
const TOGETHER: usize = 4;

struct LineKernel<'a> {
    depthwise: &'a Depthwise,
    input: &'a [f32],
    from: MapLayout,
    /// Pixels of margin before the first.
    before: usize,
    y: usize,
    out: &'a mut [f32],
    to: MapLayout,
}

impl Depthwise {
    /// From the kernels, channel by channel.
    ///
    /// # Panics
    /// When there is not one kernel a channel.
    pub fn new(isa: Isa, kernel: usize, stride: usize, weights: &[f32], bias: &[f32], activation: Activation) -> Self {
        let channels = bias.len().next_multiple_of(isa.lanes());
        let taps = kernel.checked_mul(kernel).expect("the kernel can be addressed");
        assert_eq!(Some(weights.len()), taps.checked_mul(bias.len()), "a kernel a channel");
        let mut values = Buffer::zeros(taps * channels);
        for (channel, kernel) in weights.chunks_exact(taps).enumerate() {
            for (tap, &weight) in kernel.iter().enumerate() {
                values[tap * channels + channel] = weight;
            }
        }
        let mut padded = Buffer::zeros(channels);
        padded[..bias.len()].copy_from_slice(bias);
        Self {
            isa,
            kernel,
            channels,
            values,
            bias: padded,
            stride,
            activation,
        }
    }

    /// Convolves a map. Before its first pixel there are `before` of margin, and after its last as many as it takes.
    ///
    /// # Panics
    /// When a slice is too short, or a map too narrow for the channels.
    pub fn run(&self, input: &[f32], from: MapLayout, before: usize, out: &mut [f32], to: MapLayout) {
        assert!(from.channels >= self.channels && to.channels >= self.channels);
        assert!(from.len().is_some_and(|len| len <= input.len()), "the map");
        let room = to.len().filter(|&len| len <= out.len() && len > 0).expect("the result");
        // Where a kernel begins and ends is counted from the first pixel, before which there is a margin.
        let furthest = (to.side - 1).checked_mul(self.stride);
        let furthest = furthest.and_then(|start| start.checked_add(self.kernel));
        assert!(
            [furthest, Some(before), Some(from.side)]
                .iter()
                .all(|place| place.is_some_and(|at| isize::try_from(at).is_ok())),
            "the places of the kernel"
        );
        let lines = out[..room].par_chunks_mut(to.side * to.channels).enumerate();
        lines.for_each(|(y, out)| {
            let line = LineKernel {
                depthwise: self,
                input,
                from,
                before,
                y,
                out,
                to,
            };
            with_simd(self.isa, line);
        });
    }
}

/// Which places of a kernel lie on a line of `side` pixels when it begins at `start`.
#[inline(always)]
fn inside(start: isize, kernel: usize, side: usize) -> std::ops::Range<usize> {
    let first = (-start).clamp(0, kernel as isize) as usize;
    let end = (side as isize - start).clamp(first as isize, kernel as isize) as usize;
    first..end
}

impl Kernel for LineKernel<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self {
            depthwise,
            input,
            from,
            before,
            y,
            out,
            to,
        } = self;
        let Depthwise { kernel, stride, .. } = *depthwise;
        let (least, most) = limits(depthwise.activation);
        let start = |at: usize| (at * stride) as isize - before as isize;
        let rows = inside(start(y), kernel, from.side);
        for channel in (0..depthwise.channels).step_by(S::LANES) {
            let mut x = 0;
            while x < to.side {
                let (columns, last) = (inside(start(x), kernel, from.side), x + TOGETHER - 1);
                let whole = columns == (0..kernel);
                // SAFETY: only places of the kernel that lie on the map are read, and a register of channels there is part of a pixel:
                // `run` above has made sure that pixels have room for all channels and that the maps are in their slices. Weights
                // and bias were made with whole registers of channels. `out` is the line `y`, and `x` is below its length.
                unsafe {
                    let bias = S::load(depthwise.bias.as_ptr().add(channel));
                    let weights = depthwise.values.as_ptr().add(channel);
                    let pixel = |ky: usize, kx: usize, x: usize| {
                        let line = (start(y) + ky as isize) as usize * from.side;
                        input
                            .as_ptr()
                            .add((line + (start(x) + kx as isize) as usize) * from.channels + channel)
                    };
                    if whole && last < to.side && inside(start(last), kernel, from.side) == (0..kernel) {
                        let mut sums = [bias; TOGETHER];
                        for ky in rows.clone() {
                            let line = pixel(ky, 0, x);
                            for kx in 0..kernel {
                                let weight = S::load(weights.add((ky * kernel + kx) * depthwise.channels));
                                let at = line.add(kx * from.channels);
                                sums[0] = S::fma(S::load(at), weight, sums[0]);
                                sums[1] = S::fma(S::load(at.add(stride * from.channels)), weight, sums[1]);
                                sums[2] = S::fma(S::load(at.add(2 * stride * from.channels)), weight, sums[2]);
                                sums[3] = S::fma(S::load(at.add(3 * stride * from.channels)), weight, sums[3]);
                            }
                        }
                        for sum in sums {
                            let sum = S::min(S::splat(most), S::max(S::splat(least), sum));
                            S::store(out.as_mut_ptr().add(x * to.channels + channel), sum);
                            x += 1;
                        }
                    } else {
                        let mut sum = bias;
                        for ky in rows.clone() {
                            for kx in columns.clone() {
                                let weight = S::load(weights.add((ky * kernel + kx) * depthwise.channels));
                                sum = S::fma(S::load(pixel(ky, kx, x)), weight, sum);
                            }
                        }
                        let sum = S::min(S::splat(most), S::max(S::splat(least), sum));
                        S::store(out.as_mut_ptr().add(x * to.channels + channel), sum);
                        x += 1;
                    }
                }
            }
        }
    }
}
