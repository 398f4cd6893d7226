//! EfficientNet-Lite: small and quick on a processor.

use std::ops::Range;

use burn_tensor::ops::ConvOptions;
use burn_tensor::{Device, Tensor as Array};

use super::maps::{from_maps, spatial_mean, to_maps};
use super::parts::{Conv, Parts};

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

    /// The number of blocks.
    pub(crate) fn depth(self) -> usize {
        self.places().len()
    }
}

/// Some blocks of an EfficientNet-Lite, with what stands before the first and after the last of all.
#[derive(Debug)]
pub(crate) struct Lite {
    /// The channels of what comes in.
    inputs: usize,
    pub(crate) stem: Option<LiteStep>,
    pub(crate) blocks: Vec<LiteBlock>,
    pub(crate) head: Option<LiteStep>,
}

#[derive(Debug)]
pub(crate) struct LiteStep {
    pub(crate) conv: Conv,
    pub(crate) stride: usize,
    /// Every channel by itself.
    pub(crate) depthwise: bool,
    /// Whether values are cut to 0 … 6 afterwards.
    pub(crate) cut: bool,
}

#[derive(Debug)]
pub(crate) struct LiteBlock {
    pub(crate) steps: Vec<LiteStep>,
    pub(crate) residual: bool,
}

impl LiteStep {
    /// The padding of a side of so many pixels. TensorFlow's "same": the odd pixel of padding goes to the end.
    pub(crate) fn padding(&self, length: usize) -> (usize, usize) {
        let covered = (length.div_ceil(self.stride) - 1) * self.stride + self.conv.kernel();
        let total = covered.saturating_sub(length);
        (total / 2, total - total / 2)
    }

    fn forward(&self, x: Array<4>) -> Array<4> {
        let [_, channels, height, width] = x.dims();
        let padding = [height, width].map(|length| self.padding(length));
        let groups = if self.depthwise { channels } else { 1 };
        let options = ConvOptions::new_with_padding([self.stride; 2], padding, [1; 2], groups);
        let x = self.conv.forward(x, options);
        if self.cut { x.clamp(0.0, 6.0) } else { x }
    }
}

impl LiteStep {
    fn take(
        parts: &mut Parts,
        [conv, norm]: [&str; 2],
        shape: [usize; 4],
        stride: usize,
        depthwise: bool,
        cut: bool,
    ) -> Self {
        Self {
            conv: parts.conv(conv, norm, shape, EPSILON),
            stride,
            depthwise,
            cut,
        }
    }
}

impl Lite {
    /// The blocks `span`.
    pub(crate) fn new(kind: LiteKind, parts: &mut Parts, span: Range<usize>) -> Self {
        let stem =
            (span.start == 0).then(|| LiteStep::take(parts, ["conv_stem", "bn1"], [STEM, 3, 3, 3], 2, false, true));
        let stages = kind.stages();
        let mut blocks = Vec::new();
        let (mut inputs, mut first) = (STEM, 3);
        for (number, (stage, at)) in kind.places().into_iter().enumerate() {
            if span.contains(&number) {
                if number == span.start && number > 0 {
                    first = inputs;
                }
                let name = format!("blocks.{stage}.{at}");
                let stride = if at == 0 { stages[stage].stride } else { 1 };
                blocks.push(LiteBlock::take(parts, &name, &stages[stage], inputs, stride));
            }
            inputs = stages[stage].channels;
        }
        let head = (span.end == kind.depth())
            .then(|| LiteStep::take(parts, ["conv_head", "bn2"], [HEAD, inputs, 1, 1], 1, false, true));
        Self {
            inputs: first,
            stem,
            blocks,
            head,
        }
    }

    /// From pixels or maps to maps or, after the last block, to the means over the maps: images × values.
    pub(crate) fn forward(&self, values: &[f32], images: usize, device: &Device) -> Array<2> {
        let mut x = to_maps(values, images, self.inputs, device);
        if let Some(stem) = &self.stem {
            x = stem.forward(x);
        }
        let x = self.blocks.iter().fold(x, |x, block| {
            let out = block.steps.iter().fold(x.clone(), |x, step| step.forward(x));
            if block.residual { out + x } else { out }
        });
        match &self.head {
            Some(head) => spatial_mean(head.forward(x)),
            None => from_maps(x),
        }
    }
}

impl LiteBlock {
    fn take(parts: &mut Parts, name: &str, stage: &Stage, inputs: usize, stride: usize) -> Self {
        let (inside, outputs) = (inputs * stage.widening, stage.channels);
        let deep = [inside, 1, stage.kernel, stage.kernel];
        let mut step = |conv: &str, norm: &str, shape, stride, depthwise, cut| {
            let [conv, norm] = [conv, norm].map(|part| format!("{name}.{part}"));
            LiteStep::take(parts, [&conv, &norm], shape, stride, depthwise, cut)
        };
        let steps = if stage.widening == 1 {
            vec![
                step("conv_dw", "bn1", deep, stride, true, true),
                step("conv_pw", "bn2", [outputs, inside, 1, 1], 1, false, false),
            ]
        } else {
            vec![
                step("conv_pw", "bn1", [inside, inputs, 1, 1], 1, false, true),
                step("conv_dw", "bn2", deep, stride, true, true),
                step("conv_pwl", "bn3", [outputs, inside, 1, 1], 1, false, false),
            ]
        };
        Self {
            steps,
            residual: stride == 1 && inputs == outputs,
        }
    }
}
