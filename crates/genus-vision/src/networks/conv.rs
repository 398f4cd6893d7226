//! The small convolutional network of the few-shot literature: four blocks for images of a few dozen pixels.

use std::ops::Range;

use burn_tensor::module::max_pool2d;
use burn_tensor::ops::{ConvOptions, MaxPoolOptions};
use burn_tensor::{Device, Tensor as Array, activation};

use super::maps::{from_maps, spatial_mean, to_maps};
use super::parts::{Conv, Parts};

const EPSILON: f64 = 1e-5;

/// The number of blocks.
pub(crate) const DEPTH: usize = 4;

/// Some of the blocks, each a convolution, a normalisation, a cut at zero and a pool that halves the map.
#[derive(Debug)]
pub(crate) struct ConvNet {
    /// The channels of what comes in.
    inputs: usize,
    pub(crate) blocks: Vec<Conv>,
    /// Whether means are taken at the end.
    pub(crate) last: bool,
}

impl ConvNet {
    /// The blocks `span`, each of `width` channels.
    pub(crate) fn new(width: usize, parts: &mut Parts, span: Range<usize>) -> Self {
        let inputs = |block: usize| if block == 0 { 3 } else { width };
        let blocks = span.clone().map(|block| {
            let name = |part: &str| format!("blocks.{block}.{part}");
            parts.conv(&name("conv"), &name("bn"), [width, inputs(block), 3, 3], EPSILON)
        });
        Self {
            inputs: inputs(span.start),
            blocks: blocks.collect(),
            last: span.end == DEPTH,
        }
    }

    /// From pixels or maps to maps or, after the last block, to the means over the maps: images × values.
    pub(crate) fn forward(&self, values: &[f32], images: usize, device: &Device) -> Array<2> {
        let x = to_maps(values, images, self.inputs, device);
        let x = self.blocks.iter().fold(x, |x, conv| {
            let x = activation::relu(conv.forward(x, ConvOptions::new([1; 2], [1; 2], [1; 2], 1)));
            max_pool2d(x, MaxPoolOptions::new([2; 2]).with_stride([2; 2]))
        });
        if self.last { spatial_mean(x) } else { from_maps(x) }
    }
}
