//! Residual networks.

use std::ops::Range;

use burn_tensor::module::max_pool2d;
use burn_tensor::ops::{ConvOptions, MaxPoolOptions};
use burn_tensor::{Device, Tensor as Array, activation};

use super::maps::{from_maps, spatial_mean, to_maps};
use super::parts::{Conv, Parts};

const EPSILON: f64 = 1e-5;

/// Which residual network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResNetKind {
    /// 18 layers, blocks of two convolutions.
    ResNet18,
    /// 50 layers, blocks of three convolutions.
    ResNet50,
}

impl ResNetKind {
    fn blocks(self) -> [usize; 4] {
        match self {
            ResNetKind::ResNet18 => [2, 2, 2, 2],
            ResNetKind::ResNet50 => [3, 4, 6, 3],
        }
    }

    /// How much wider a block's output is than its inside.
    fn expansion(self) -> usize {
        match self {
            ResNetKind::ResNet18 => 1,
            ResNetKind::ResNet50 => 4,
        }
    }

    pub(crate) fn dim(self) -> usize {
        512 * self.expansion()
    }

    /// The number of blocks.
    pub(crate) fn depth(self) -> usize {
        self.blocks().into_iter().sum()
    }
}

/// Some blocks of a residual network, with what stands before the first and after the last of all.
#[derive(Debug)]
pub(crate) struct ResNet {
    /// The channels of what comes in.
    inputs: usize,
    pub(crate) stem: Option<ResNetStep>,
    pub(crate) blocks: Vec<ResNetBlock>,
    /// Whether means are taken at the end.
    pub(crate) last: bool,
}

/// A convolution with its stride; the padding keeps the middle in the middle.
#[derive(Debug)]
pub(crate) struct ResNetStep {
    pub(crate) conv: Conv,
    pub(crate) stride: usize,
}

#[derive(Debug)]
pub(crate) struct ResNetBlock {
    pub(crate) steps: Vec<ResNetStep>,
    pub(crate) shortcut: Option<ResNetStep>,
}

impl ResNetStep {
    fn take(parts: &mut Parts, conv: &str, norm: &str, shape: [usize; 4], stride: usize) -> Self {
        Self {
            conv: parts.conv(conv, norm, shape, EPSILON),
            stride,
        }
    }

    fn forward(&self, x: Array<4>) -> Array<4> {
        let pad = self.conv.kernel() / 2;
        self.conv
            .forward(x, ConvOptions::new([self.stride; 2], [pad; 2], [1; 2], 1))
    }
}

impl ResNet {
    /// The blocks `span`.
    pub(crate) fn new(kind: ResNetKind, parts: &mut Parts, span: Range<usize>) -> Self {
        let stem = (span.start == 0).then(|| ResNetStep::take(parts, "conv1", "bn1", [64, 3, 7, 7], 2));
        let mut blocks = Vec::new();
        let (mut inputs, mut first) = (64, 3);
        let places = kind.blocks().into_iter().enumerate();
        let places = places.flat_map(|(stage, count)| (0..count).map(move |number| (stage, number)));
        for (at, (stage, number)) in places.enumerate() {
            let inside = 64 << stage;
            let outputs = inside * kind.expansion();
            if span.contains(&at) {
                if at == span.start && at > 0 {
                    first = inputs;
                }
                let stride = if stage > 0 && number == 0 { 2 } else { 1 };
                let name = format!("layer{}.{number}", stage + 1);
                blocks.push(ResNetBlock::take(kind, parts, &name, [inputs, inside, outputs], stride));
            }
            inputs = outputs;
        }
        Self {
            inputs: first,
            stem,
            blocks,
            last: span.end == kind.depth(),
        }
    }

    /// From pixels or maps to maps or, after the last block, to the means over the maps: images × values.
    pub(crate) fn forward(&self, values: &[f32], images: usize, device: &Device) -> Array<2> {
        let mut x = to_maps(values, images, self.inputs, device);
        if let Some(stem) = &self.stem {
            let pool = MaxPoolOptions::new([3; 2]).with_stride([2; 2]).with_padding([1; 2]);
            x = max_pool2d(activation::relu(stem.forward(x)), pool);
        }
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        if self.last { spatial_mean(x) } else { from_maps(x) }
    }
}

impl ResNetBlock {
    fn take(
        kind: ResNetKind,
        parts: &mut Parts,
        name: &str,
        [inputs, inside, outputs]: [usize; 3],
        stride: usize,
    ) -> Self {
        let mut step = |at: usize, shape, stride| {
            ResNetStep::take(
                parts,
                &format!("{name}.conv{at}"),
                &format!("{name}.bn{at}"),
                shape,
                stride,
            )
        };
        let steps = match kind {
            ResNetKind::ResNet18 => vec![
                step(1, [inside, inputs, 3, 3], stride),
                step(2, [inside, inside, 3, 3], 1),
            ],
            ResNetKind::ResNet50 => vec![
                step(1, [inside, inputs, 1, 1], 1),
                step(2, [inside, inside, 3, 3], stride),
                step(3, [outputs, inside, 1, 1], 1),
            ],
        };
        let shortcut = (stride != 1 || inputs != outputs).then(|| {
            let (conv, norm) = (format!("{name}.downsample.0"), format!("{name}.downsample.1"));
            ResNetStep::take(parts, &conv, &norm, [outputs, inputs, 1, 1], stride)
        });
        Self { steps, shortcut }
    }

    fn forward(&self, x: Array<4>) -> Array<4> {
        let shortcut = match &self.shortcut {
            Some(step) => step.forward(x.clone()),
            None => x.clone(),
        };
        let last = self.steps.len() - 1;
        let x = self.steps.iter().enumerate().fold(x, |x, (at, step)| {
            let x = step.forward(x);
            if at < last { activation::relu(x) } else { x }
        });
        activation::relu(x + shortcut)
    }
}
