//! EfficientNet-Lite: small and quick on a processor.

use std::collections::BTreeMap;

use burn_tensor::module::conv2d;
use burn_tensor::ops::ConvOptions;
use burn_tensor::{Device, Tensor as Array, TensorData};

use super::ArchitectureError;
use super::parts::{Conv, Parts};
use super::resnet::spatial_mean;
use crate::weights::Tensor;

const EPSILON: f64 = 1e-3;
const STEM: usize = 32;
const HEAD: usize = 1280;

/// Which EfficientNet-Lite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteKind {
    /// For images of 224 pixels.
    Lite0,
    /// For images of 260 pixels.
    Lite2,
}

/// Blocks of one kind: how much wider inside, channels, how many, stride of the first, side of the kernel.
struct Stage {
    widening: usize,
    channels: usize,
    count: usize,
    stride: usize,
    kernel: usize,
}

impl LiteKind {
    fn stages(self) -> [Stage; 7] {
        // Lite2 is a tenth wider and a fifth deeper, in steps of 8 channels and whole blocks; the first and the last stage
        // keep their number of blocks.
        let (channels, counts) = match self {
            LiteKind::Lite0 => ([16, 24, 40, 80, 112, 192, 320], [1, 2, 2, 3, 3, 4, 1]),
            LiteKind::Lite2 => ([16, 24, 48, 88, 120, 208, 352], [1, 3, 3, 4, 4, 5, 1]),
        };
        let strides = [1, 2, 2, 2, 1, 2, 1];
        let kernels = [3, 3, 5, 3, 5, 5, 3];
        std::array::from_fn(|at| Stage {
            widening: if at == 0 { 1 } else { 6 },
            channels: channels[at],
            count: counts[at],
            stride: strides[at],
            kernel: kernels[at],
        })
    }

    /// The stage and the place in it of every block, in order.
    pub(crate) fn places(self) -> Vec<(usize, usize)> {
        let stages = self.stages().into_iter().enumerate();
        stages
            .flat_map(|(stage, s)| (0..s.count).map(move |at| (stage, at)))
            .collect()
    }

    pub(crate) fn dim(self) -> usize {
        HEAD
    }
}

/// An EfficientNet-Lite without its classifier.
#[derive(Debug)]
pub(crate) struct Lite {
    stem: Step,
    blocks: Vec<Block>,
    head: Step,
}

#[derive(Debug)]
struct Step {
    conv: Conv,
    stride: usize,
    /// Every channel by itself.
    depthwise: bool,
    /// Whether values are cut to 0 … 6 afterwards.
    cut: bool,
}

#[derive(Debug)]
struct Block {
    steps: Vec<Step>,
    residual: bool,
}

impl Step {
    fn forward(&self, x: Array<4>) -> Array<4> {
        let [_, channels, height, width] = x.dims();
        let kernel = self.conv.weight.dims()[2];
        // TensorFlow's "same": the odd pixel of padding goes to the end.
        let pad = |length: usize| {
            let covered = (length.div_ceil(self.stride) - 1) * self.stride + kernel;
            let total = covered.saturating_sub(length);
            (total / 2, total - total / 2)
        };
        let groups = if self.depthwise { channels } else { 1 };
        let options = ConvOptions::new_with_padding([self.stride; 2], [pad(height), pad(width)], [1; 2], groups);
        let x = conv2d(x, self.conv.weight.clone(), Some(self.conv.bias.clone()), options);
        if self.cut { x.clamp(0.0, 6.0) } else { x }
    }
}

impl Lite {
    pub(crate) fn new(
        kind: LiteKind,
        tensors: BTreeMap<String, Tensor>,
        device: &Device,
    ) -> Result<Self, ArchitectureError> {
        let mut parts = Parts::new(tensors, device);
        let mut step = |name: &str, norm: &str, shape, stride, depthwise, cut| Step {
            conv: parts.conv(name, norm, shape, EPSILON),
            stride,
            depthwise,
            cut,
        };
        let stem = step("conv_stem", "bn1", [STEM, 3, 3, 3], 2, false, true);
        let mut blocks = Vec::new();
        let mut inputs = STEM;
        for (number, stage) in kind.stages().into_iter().enumerate() {
            for at in 0..stage.count {
                let name = |part: &str| format!("blocks.{number}.{at}.{part}");
                let stride = if at == 0 { stage.stride } else { 1 };
                let (inside, outputs) = (inputs * stage.widening, stage.channels);
                let deep = [inside, 1, stage.kernel, stage.kernel];
                let steps = if stage.widening == 1 {
                    vec![
                        step(&name("conv_dw"), &name("bn1"), deep, stride, true, true),
                        step(&name("conv_pw"), &name("bn2"), [outputs, inside, 1, 1], 1, false, false),
                    ]
                } else {
                    vec![
                        step(&name("conv_pw"), &name("bn1"), [inside, inputs, 1, 1], 1, false, true),
                        step(&name("conv_dw"), &name("bn2"), deep, stride, true, true),
                        step(
                            &name("conv_pwl"),
                            &name("bn3"),
                            [outputs, inside, 1, 1],
                            1,
                            false,
                            false,
                        ),
                    ]
                };
                blocks.push(Block {
                    steps,
                    residual: stride == 1 && inputs == outputs,
                });
                inputs = outputs;
            }
        }
        let head = step("conv_head", "bn2", [HEAD, inputs, 1, 1], 1, false, true);
        parts.finish()?;
        Ok(Self { stem, blocks, head })
    }

    /// The means over the last map: images × 1280.
    pub(crate) fn forward(&self, pixels: &[f32], images: usize, side: usize, device: &Device) -> Array<2> {
        let x = Array::from_data(TensorData::new(pixels.to_vec(), [images, 3, side, side]), device);
        let x = self.blocks.iter().fold(self.stem.forward(x), |x, block| {
            let out = block.steps.iter().fold(x.clone(), |x, step| step.forward(x));
            if block.residual { out + x } else { out }
        });
        spatial_mean(self.head.forward(x))
    }
}
