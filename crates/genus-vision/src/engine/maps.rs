//! Convolutional networks on the engine, an image at a time: a list of layers from map to map.
//!
//! A map has its channels side by side, so that a convolution is a product: a row of its left side is what the kernel sees of
//! a pixel's neighbourhood, where it lies. A margin of zeros around a map stands for the padding of the layer that reads it.

use genus_kernels::{Activation, Addend, Buffer, Depthwise, Isa, LINE, MapLayout, Operand, Packed, RowLayout, product};
use rayon::prelude::*;

use super::NOT_FIRST;
use crate::networks::{self, Conv, values};

/// The first blocks of a convolutional network, packed.
#[derive(Debug)]
pub(super) struct Maps {
    /// The map of the pixels.
    pixels: Map,
    layers: Vec<Layer>,
    /// What leaves the last layer.
    last: Map,
    /// Whether means are taken at the end.
    means: bool,
}

/// What an image takes on its way: a buffer for every place of a map.
#[derive(Debug, Default)]
pub(super) struct MapBuffers(Vec<Buffer>);

/// Where a map is and how it is laid out.
#[derive(Clone, Copy, Debug)]
struct Map {
    /// Which of the buffers.
    place: usize,
    side: usize,
    channels: usize,
    /// Pixels of margin before the first and after the last.
    margin: (usize, usize),
    /// The distance of pixels.
    stride: usize,
}

impl Map {
    fn new(place: usize, side: usize, channels: usize, margin: (usize, usize)) -> Self {
        let lines = channels.div_ceil(LINE);
        // Pixels that lie a power of two apart would share a few sets of the first-level cache.
        let stride = LINE * (lines + usize::from(lines.is_multiple_of(32)));
        Self {
            place,
            side,
            channels,
            margin,
            stride,
        }
    }

    /// The distance of lines.
    fn line(&self) -> usize {
        (self.margin.0 + self.side + self.margin.1) * self.stride
    }

    fn len(&self) -> usize {
        self.line() * (self.margin.0 + self.side + self.margin.1)
    }

    /// Where pixel `before` pixels before the first is.
    fn start(&self, before: usize) -> usize {
        let margin = self.margin.0 - before;
        margin * self.line() + margin * self.stride
    }

    fn clear_margin(&self, values: &mut [f32]) {
        let (before, after) = self.margin;
        if before + after == 0 {
            return;
        }
        let lines = before + self.side + after;
        for (at, line) in values[..self.len()].chunks_exact_mut(self.line()).enumerate() {
            if at < before || at >= lines - after {
                line.fill(0.0);
            } else {
                line[..before * self.stride].fill(0.0);
                line[(before + self.side) * self.stride..].fill(0.0);
            }
        }
    }
}

/// A step from one map to another.
#[derive(Debug)]
struct Layer {
    from: Map,
    to: Map,
    step: MapOperation,
}

#[derive(Debug)]
enum MapOperation {
    Conv {
        packed: Packed,
        /// Where what the kernel sees lies, from its first pixel on, in pieces of `len` numbers.
        offsets: Vec<usize>,
        len: usize,
        stride: usize,
        /// Pixels before the first that the kernel sees.
        before: usize,
        /// The map that is added.
        add: Option<Map>,
        activation: Activation,
    },
    Depthwise {
        kernels: Depthwise,
        before: usize,
    },
    /// The largest of a square of pixels.
    Pool {
        size: usize,
        stride: usize,
        before: usize,
    },
}

/// The layers so far.
struct Plan {
    isa: Isa,
    layers: Vec<Layer>,
}

impl Plan {
    /// A convolution of square kernels; `before` pixels of the margin are in the first of them.
    fn conv(
        &mut self,
        conv: Conv,
        from: Map,
        to: Map,
        [stride, before]: [usize; 2],
        add: Option<Map>,
        activation: Activation,
    ) {
        let [outputs, inputs, kernel, _] = conv.weight.dims();
        let bias = conv.bias.map_or_else(|| vec![0.0; outputs], values);
        let weight = values(conv.weight);
        // Pixels without a gap between them are one piece.
        let whole = from.stride == inputs;
        let (pieces, len) = if whole {
            (kernel, kernel * inputs)
        } else {
            (kernel * kernel, inputs)
        };
        let offsets = (0..pieces).map(|piece| match whole {
            true => piece * from.line(),
            false => piece / kernel * from.line() + piece % kernel * from.stride,
        });
        let offsets = offsets.collect();
        let packed = Packed::new(self.isa, [pieces, len], &bias, |k, output| {
            let (tap, input) = (k / inputs, k % inputs);
            weight[(output * inputs + input) * kernel * kernel + tap]
        });
        self.layers.push(Layer {
            from,
            to,
            step: MapOperation::Conv {
                packed,
                offsets,
                len,
                stride,
                before,
                add,
                activation,
            },
        });
    }

    fn depthwise(&mut self, conv: Conv, from: Map, to: Map, [stride, before]: [usize; 2], activation: Activation) {
        let [outputs, _, kernel, _] = conv.weight.dims();
        let bias = conv.bias.map_or_else(|| vec![0.0; outputs], values);
        let kernels = Depthwise::new(self.isa, kernel, stride, &values(conv.weight), &bias, activation);
        let step = MapOperation::Depthwise { kernels, before };
        self.layers.push(Layer { from, to, step });
    }

    fn pool(&mut self, from: Map, to: Map, [size, stride, before]: [usize; 3]) {
        let step = MapOperation::Pool { size, stride, before };
        self.layers.push(Layer { from, to, step });
    }
}

/// The map of an image's pixels: three channels without a gap.
fn pixels(image: usize, margin: (usize, usize)) -> Map {
    Map {
        stride: 3,
        ..Map::new(0, image, 3, margin)
    }
}

impl Maps {
    /// Packs a residual network that begins with its first layer.
    pub(super) fn resnet(net: networks::ResNet, image: usize, isa: Isa) -> Self {
        let stem = net.stem.expect(NOT_FIRST);
        let mut plan = Plan {
            isa,
            layers: Vec::new(),
        };
        let halved = |side: usize| (side - 1) / 2 + 1;
        let input = pixels(image, (3, 3));
        let outside = Map::new(1, halved(image), 64, (0, 0));
        plan.conv(stem.conv, input, outside, [2, 3], None, Activation::Relu);
        // The first convolution of a block sees a margin if it is one of 3 × 3.
        let margin = |block: Option<&networks::ResNetBlock>| {
            let kernel = block
                .and_then(|block| block.steps.first())
                .map_or(1, |step| step.conv.kernel());
            (kernel / 2, kernel / 2)
        };
        let mut x = Map::new(2, halved(outside.side), 64, margin(net.blocks.first()));
        plan.pool(outside, x, [3, 2, 1]);
        let mut blocks = net.blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            let stride = block.steps.iter().map(|step| step.stride).product::<usize>();
            let side = (x.side - 1) / stride + 1;
            let outputs = block.steps.last().map_or(x.channels, |step| step.conv.weight.dims()[0]);
            let shortcut = match block.shortcut {
                Some(step) => {
                    let to = Map::new(4, side, outputs, (0, 0));
                    plan.conv(step.conv, x, to, [step.stride, 0], None, Activation::None);
                    to
                }
                None => x,
            };
            let end = Map::new(5 - x.place, side, outputs, margin(blocks.peek()));
            // Maps 2 and 3 take turns as a block's input and output, 0 and 1 as what is between.
            let mut steps = block.steps.into_iter().enumerate().peekable();
            let mut from = x;
            while let Some((at, step)) = steps.next() {
                let kernel = step.conv.kernel();
                let side = (from.side - 1) / step.stride + 1;
                let (to, add) = match steps.peek() {
                    None => (end, Some(shortcut)),
                    Some((_, next)) => {
                        let margin = next.conv.kernel() / 2;
                        (
                            Map::new(at % 2, side, step.conv.weight.dims()[0], (margin, margin)),
                            None,
                        )
                    }
                };
                plan.conv(step.conv, from, to, [step.stride, kernel / 2], add, Activation::Relu);
                from = to;
            }
            x = end;
        }
        Self {
            pixels: input,
            layers: plan.layers,
            last: x,
            means: net.last,
        }
    }

    /// Packs an EfficientNet-Lite that begins with its first layer.
    pub(super) fn lite(net: networks::Lite, image: usize, isa: Isa) -> Self {
        let stem = net.stem.expect(NOT_FIRST);
        let mut plan = Plan {
            isa,
            layers: Vec::new(),
        };
        let cut = |step: &networks::LiteStep| if step.cut { Activation::Relu6 } else { Activation::None };
        let input = pixels(image, stem.padding(image));
        let mut x = Map::new(1, image.div_ceil(stem.stride), stem.conv.weight.dims()[0], (0, 0));
        let (before, activation) = (input.margin.0, cut(&stem));
        plan.conv(stem.conv, input, x, [stem.stride, before], None, activation);
        for block in net.blocks {
            let mut from = x;
            let last = block.steps.len() - 1;
            for (at, step) in block.steps.into_iter().enumerate() {
                // Maps 1 and 2 take turns as a block's input and output, 3 and 4 are what is between.
                let place = if at == last { 3 - x.place } else { 3 + at % 2 };
                let outputs = step.conv.weight.dims()[0];
                let to = Map::new(place, from.side.div_ceil(step.stride), outputs, (0, 0));
                let (before, activation) = (step.padding(from.side).0, cut(&step));
                if step.depthwise {
                    plan.depthwise(step.conv, from, to, [step.stride, before], activation);
                } else {
                    let add = (at == last && block.residual).then_some(x);
                    plan.conv(step.conv, from, to, [step.stride, before], add, activation);
                }
                from = to;
            }
            x = from;
        }
        let means = net.head.is_some();
        if let Some(head) = net.head {
            let to = Map::new(3, x.side, head.conv.weight.dims()[0], (0, 0));
            let activation = cut(&head);
            plan.conv(head.conv, x, to, [1, 0], None, activation);
            x = to;
        }
        Self {
            pixels: input,
            layers: plan.layers,
            last: x,
            means,
        }
    }

    /// Packs a network of four convolutions that begins with its first layer.
    pub(super) fn conv4(net: networks::ConvNet, image: usize, isa: Isa) -> Self {
        let mut plan = Plan {
            isa,
            layers: Vec::new(),
        };
        let input = pixels(image, (1, 1));
        let mut x = input;
        let blocks = net.blocks.len();
        for (at, conv) in net.blocks.into_iter().enumerate() {
            let outputs = conv.weight.dims()[0];
            let wide = Map::new(1, x.side, outputs, (0, 0));
            plan.conv(conv, x, wide, [1, 1], None, Activation::Relu);
            let margin = if at + 1 < blocks { (1, 1) } else { (0, 0) };
            x = Map::new(2, wide.side / 2, outputs, margin);
            plan.pool(wide, x, [2, 2, 0]);
        }
        Self {
            pixels: input,
            layers: plan.layers,
            last: x,
            means: net.last,
        }
    }

    /// The numbers that leave the last layer for an image.
    pub(super) fn outputs(&self) -> usize {
        let Map { side, channels, .. } = self.last;
        if self.means { channels } else { channels * side * side }
    }

    /// Sends the pixels of an image through the layers.
    pub(super) fn run(&self, pixels: &[f32], MapBuffers(buffers): &mut MapBuffers, out: &mut [f32]) {
        let maps = self.layers.iter().map(|layer| &layer.to).chain([&self.pixels]);
        let places = maps.clone().map(|map| map.place + 1).max().unwrap_or(0);
        buffers.resize_with(places.max(buffers.len()), Buffer::default);
        for map in maps {
            buffers[map.place].reserve(map.len());
        }
        self.spread(pixels, &mut buffers[self.pixels.place]);
        for layer in &self.layers {
            layer.run(buffers);
        }
        let Map { side, channels, .. } = self.last;
        let last = &buffers[self.last.place];
        let pixel =
            |y: usize, x: usize| &last[self.last.start(0) + y * self.last.line() + x * self.last.stride..][..channels];
        if self.means {
            out.fill(0.0);
            for (y, x) in (0..side * side).map(|at| (at / side, at % side)) {
                out.iter_mut().zip(pixel(y, x)).for_each(|(sum, value)| *sum += value);
            }
            let area = (side * side) as f32;
            out.iter_mut().for_each(|sum| *sum /= area);
        } else {
            for (y, x) in (0..side * side).map(|at| (at / side, at % side)) {
                for (channel, value) in pixel(y, x).iter().enumerate() {
                    out[(channel * side + y) * side + x] = *value;
                }
            }
        }
    }

    /// From planes to channels side by side.
    fn spread(&self, planes: &[f32], out: &mut [f32]) {
        let map = &self.pixels;
        map.clear_margin(out);
        let (side, start) = (map.side, map.start(0));
        for y in 0..side {
            let to = &mut out[start + y * map.line()..][..3 * side];
            let [red, green, blue] = [0, 1, 2].map(|plane| &planes[(plane * side + y) * side..][..side]);
            for (x, pixel) in to.chunks_exact_mut(3).enumerate() {
                pixel.copy_from_slice(&[red[x], green[x], blue[x]]);
            }
        }
    }
}

impl Layer {
    fn run(&self, buffers: &mut [Buffer]) {
        let Self { from, to, step } = self;
        // Taken out, so that the others can be read; a map is never made of itself.
        let mut out = std::mem::take(&mut buffers[to.place]);
        let input = &buffers[from.place];
        to.clear_margin(&mut out);
        match step {
            MapOperation::Conv {
                packed,
                offsets,
                len,
                stride,
                before,
                add,
                activation,
            } => {
                let place = |map: &Map, before: usize, stride: usize| RowLayout {
                    start: map.start(before),
                    line: stride * map.line(),
                    row: stride * map.stride,
                };
                let add_map = add;
                let add = match add {
                    Some(map) => Addend::From(&buffers[map.place], place(map, 0, 1)),
                    None => Addend::Nothing,
                };
                let left = Operand {
                    values: input,
                    place: place(from, *before, *stride),
                    len: *len,
                    offsets,
                };
                // Without margins, all lines are one.
                let plain = *stride == 1
                    && offsets.len() == 1
                    && [Some(from), Some(to), add_map.as_ref()]
                        .iter()
                        .flatten()
                        .all(|map| map.margin == (0, 0));
                let shape = if plain {
                    [1, to.side * to.side]
                } else {
                    [to.side, to.side]
                };
                product(shape, left, packed, add, *activation, &mut out, place(to, 0, 1));
            }
            MapOperation::Depthwise { kernels, before } => {
                let square = |map: &Map| MapLayout {
                    side: map.side,
                    channels: map.stride,
                };
                kernels.run(input, square(from), *before, &mut out, square(to));
            }
            MapOperation::Pool { size, stride, before } => {
                let lines = out[to.start(0)..].par_chunks_mut(to.line()).take(to.side).enumerate();
                lines.for_each(|(y, out)| {
                    for (x, out) in out.chunks_mut(to.stride).take(to.side).enumerate() {
                        let seen = |at: usize| {
                            (at * stride).saturating_sub(*before)..(at * stride + size - before).min(from.side)
                        };
                        out[..to.channels].fill(f32::NEG_INFINITY);
                        for (y, x) in seen(y).flat_map(|y| seen(x).map(move |x| (y, x))) {
                            let pixel = &input[from.start(0) + y * from.line() + x * from.stride..][..to.channels];
                            for (most, &value) in out.iter_mut().zip(pixel) {
                                // What is not a number stays so.
                                if value > *most || value.is_nan() {
                                    *most = value;
                                }
                            }
                        }
                    }
                });
            }
        }
        buffers[to.place] = out;
    }
}
