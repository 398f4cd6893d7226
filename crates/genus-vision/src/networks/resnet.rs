//! Residual networks.

use std::collections::BTreeMap;

use burn_tensor::module::{conv2d, max_pool2d};
use burn_tensor::ops::{ConvOptions, MaxPoolOptions};
use burn_tensor::{Device, Tensor as Array, TensorData, activation};

use super::ArchitectureError;
use super::parts::{Conv, Parts};
use crate::weights::Tensor;

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
}

/// A residual network without its classifier.
#[derive(Debug)]
pub(crate) struct ResNet {
    stem: Step,
    blocks: Vec<Block>,
}

/// A convolution with its stride; the padding keeps the middle in the middle.
#[derive(Debug)]
struct Step {
    conv: Conv,
    stride: usize,
}

#[derive(Debug)]
struct Block {
    steps: Vec<Step>,
    shortcut: Option<Step>,
}

impl Step {
    fn take(parts: &mut Parts, conv: &str, norm: &str, shape: [usize; 4], stride: usize) -> Self {
        Self {
            conv: parts.conv(conv, norm, shape, EPSILON),
            stride,
        }
    }

    fn forward(&self, x: Array<4>) -> Array<4> {
        let pad = self.conv.weight.dims()[2] / 2;
        let options = ConvOptions::new([self.stride; 2], [pad; 2], [1; 2], 1);
        conv2d(x, self.conv.weight.clone(), Some(self.conv.bias.clone()), options)
    }
}

impl ResNet {
    pub(crate) fn new(
        kind: ResNetKind,
        tensors: BTreeMap<String, Tensor>,
        device: &Device,
    ) -> Result<Self, ArchitectureError> {
        let mut parts = Parts::new(tensors, device);
        let stem = Step::take(&mut parts, "conv1", "bn1", [64, 3, 7, 7], 2);
        let mut blocks = Vec::new();
        let mut inputs = 64;
        for (stage, count) in kind.blocks().into_iter().enumerate() {
            let inside = 64 << stage;
            let outputs = inside * kind.expansion();
            for number in 0..count {
                let stride = if stage > 0 && number == 0 { 2 } else { 1 };
                let name = format!("layer{}.{number}", stage + 1);
                let mut step = |at: usize, shape, stride| {
                    Step::take(
                        &mut parts,
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
                    Step::take(&mut parts, &conv, &norm, [outputs, inputs, 1, 1], stride)
                });
                blocks.push(Block { steps, shortcut });
                inputs = outputs;
            }
        }
        parts.finish()?;
        Ok(Self { stem, blocks })
    }

    /// The means over the last map: images × dim.
    pub(crate) fn forward(&self, pixels: &[f32], images: usize, side: usize, device: &Device) -> Array<2> {
        let x = Array::from_data(TensorData::new(pixels.to_vec(), [images, 3, side, side]), device);
        let x = activation::relu(self.stem.forward(x));
        let pool = MaxPoolOptions::new([3; 2]).with_stride([2; 2]).with_padding([1; 2]);
        let x = self
            .blocks
            .iter()
            .fold(max_pool2d(x, pool), |x, block| block.forward(x));
        spatial_mean(x)
    }
}

impl Block {
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

/// The mean of every channel: images × channels.
pub(crate) fn spatial_mean(x: Array<4>) -> Array<2> {
    let [images, channels, height, width] = x.dims();
    x.reshape([images, channels, height * width])
        .mean_dim(2)
        .reshape([images, channels])
}
