//! Vision transformers on the engine, a few images at a time.

use genus_kernels::{
    Activation, Addend, AttentionHead, Buffer, Isa, LayerNorm, Operand, Packed, RowLayout, Workspace, attend, gate,
    product, row_stride,
};
use rayon::prelude::*;

use super::NOT_FIRST;
use super::spares::ScratchPool;
use crate::networks::{self, Linear, Rotary, values};

/// The first blocks of a vision transformer, packed.
#[derive(Debug)]
pub(super) struct PackedVit {
    isa: Isa,
    dim: usize,
    heads: usize,
    patch: usize,
    /// Patches along a side of an image.
    side: usize,
    kernel: Packed,
    /// The tokens before those of the patches.
    prefix: Vec<f32>,
    /// What is added to the patches, rows `row_stride(dim)` apart.
    positions: Buffer,
    blocks: Vec<PackedVitBlock>,
    /// The last norm, when all blocks are here: then only the class token is wanted of the last block.
    norm: Option<LayerNorm>,
    rotary: Option<Rotary>,
    /// Where the heads' parts of a token are after attention.
    of_heads: Vec<usize>,
    workspaces: ScratchPool<Workspace>,
}

#[derive(Debug)]
struct PackedVitBlock {
    norm1: LayerNorm,
    query: Packed,
    key_value: Packed,
    project: Packed,
    norm2: LayerNorm,
    gate: Option<Packed>,
    widen: Packed,
    narrow: Packed,
}

/// What a few images take on their way.
#[derive(Debug, Default)]
pub(super) struct TokenBuffers {
    patches: Buffer,
    tokens: Buffer,
    normed: Buffer,
    attending: Buffer,
    mixed: Buffer,
    inner: Buffer,
    gated: Buffer,
}

/// Rows that are normalised by one thread at a time.
const ROWS: usize = 16;

/// How many images go through the blocks together: weights are fetched from memory once for all of them.
pub(super) const TOGETHER: usize = 4;

impl PackedVit {
    /// Packs a transformer that begins with the first block.
    pub(super) fn new(vit: networks::Vit, isa: Isa) -> Self {
        let networks::Vit {
            dim,
            heads,
            embed,
            blocks,
            norm,
            rotary,
        } = vit;
        let embed = embed.expect(NOT_FIRST);
        let stride = row_stride(dim);
        let positions = values(embed.positions);
        let mut padded = Buffer::zeros(embed.side * embed.side * stride);
        for (to, from) in padded.chunks_mut(stride).zip(positions.chunks(dim)) {
            to[..dim].copy_from_slice(from);
        }
        let prefix = values(embed.prefix);
        let tokens = prefix.len() / dim + embed.side * embed.side;
        Self {
            isa,
            dim,
            heads,
            patch: embed.patch,
            side: embed.side,
            kernel: pack(embed.kernel, isa, 1, 1.0, None),
            prefix,
            positions: padded,
            blocks: blocks
                .into_iter()
                .map(|block| PackedVitBlock::new(block, isa, heads))
                .collect(),
            norm: norm.map(normalisation),
            rotary,
            of_heads: (0..heads).map(|head| head * tokens * isa.words(dim / heads)).collect(),
            workspaces: ScratchPool::default(),
        }
    }

    /// The numbers that leave the last block for an image.
    pub(super) fn outputs(&self) -> usize {
        match self.norm {
            Some(_) => self.dim,
            None => self.tokens() * self.dim,
        }
    }

    fn tokens(&self) -> usize {
        self.prefix.len() / self.dim + self.side * self.side
    }

    /// The numbers of an image.
    fn pixels(&self) -> usize {
        let width = self.side * self.patch;
        3 * width * width
    }

    /// Sends the pixels of a few images through the blocks.
    pub(super) fn run(&self, pixels: &[f32], scratch: &mut TokenBuffers, out: &mut [f32]) {
        let (dim, tokens, images) = (self.dim, self.tokens(), pixels.len() / self.pixels());
        let stride = row_stride(dim);
        scratch.tokens.reserve(images * tokens * stride);
        scratch.normed.reserve(images * tokens * stride);
        self.embed(pixels, scratch);
        for (at, block) in self.blocks.iter().enumerate() {
            let last = self.norm.is_some() && at + 1 == self.blocks.len();
            self.block(block, images, if last { 1 } else { tokens }, scratch);
        }
        match &self.norm {
            Some(norm) => {
                for (out, tokens) in out.chunks_mut(dim).zip(scratch.tokens.chunks(tokens * stride)) {
                    // Features are numbers, whatever products take.
                    norm.row(self.isa.single(), tokens, &mut scratch.normed);
                    out.copy_from_slice(&scratch.normed[..dim]);
                }
            }
            None => {
                for (to, from) in out.chunks_exact_mut(dim).zip(scratch.tokens.chunks(stride)) {
                    to.copy_from_slice(&from[..dim]);
                }
            }
        }
    }

    /// Makes tokens of pixels.
    fn embed(&self, pixels: &[f32], scratch: &mut TokenBuffers) {
        let Self {
            patch, side, dim, isa, ..
        } = *self;
        let (width, stride, of_image) = (side * patch, row_stride(dim), self.tokens() * row_stride(dim));
        let numbers = 3 * patch * patch;
        let words = isa.words(numbers);
        let patch_stride = row_stride(words);
        let (images, of_patches) = (pixels.len() / self.pixels(), side * side * patch_stride);
        scratch.patches.reserve(images * of_patches);
        let rows = scratch.patches[..images * of_patches].par_chunks_mut(side * patch_stride);
        rows.enumerate().for_each(|(row, to)| {
            let (image, row) = (row / side, row % side);
            let pixels = &pixels[image * self.pixels()..];
            for (column, to) in to.chunks_mut(patch_stride).enumerate() {
                // The order of the patch kernel: channel, line, column.
                let lines = (0..3 * patch).map(|at| {
                    let (channel, line) = (at / patch, at % patch);
                    &pixels[(channel * width + row * patch + line) * width + column * patch..][..patch]
                });
                isa.fill_words(lines.flatten().copied(), to);
            }
        });
        let prefix = self.prefix.len() / dim;
        for tokens in scratch.tokens[..images * of_image].chunks_mut(of_image) {
            for (to, from) in tokens.chunks_mut(stride).zip(self.prefix.chunks(dim)) {
                to[..dim].copy_from_slice(from);
            }
        }
        // A line an image.
        let place = RowLayout {
            line: of_patches,
            ..RowLayout::rows(patch_stride)
        };
        let patches = Operand::whole(&scratch.patches, place, words);
        let out = RowLayout {
            start: prefix * stride,
            line: of_image,
            row: stride,
        };
        let positions = Addend::From(&self.positions, RowLayout::rows(stride));
        product(
            [images, side * side],
            patches,
            &self.kernel,
            positions,
            Activation::None,
            &mut scratch.tokens,
            out,
        );
    }

    /// Sends the tokens of some images through a block, of which the first `wanted` of each are to leave it.
    fn block(&self, block: &PackedVitBlock, images: usize, wanted: usize, scratch: &mut TokenBuffers) {
        let Self { isa, dim, heads, .. } = *self;
        let (tokens, width, stride) = (self.tokens(), dim / heads, row_stride(dim));
        let words = isa.words(dim);
        let word_stride = row_stride(words);
        // Queries, keys and values side by side; queries of the wanted tokens only.
        let head_stride = row_stride(3 * dim.next_multiple_of(isa.lanes()));
        let (keys, mixed_words) = (dim.next_multiple_of(isa.lanes()), isa.words(width));
        let hidden = isa.words(block.widen.columns());
        let hidden_stride = row_stride(hidden);
        scratch.attending.reserve(images * tokens * head_stride);
        scratch.mixed.reserve(images * heads * tokens * mixed_words);
        scratch.inner.reserve(images * tokens * hidden_stride);
        let TokenBuffers {
            tokens: x,
            normed,
            attending,
            mixed,
            inner,
            gated,
            ..
        } = scratch;
        // All tokens of all images are rows of one matrix; a few of each are lines of it.
        let (all, few) = ([1, images * tokens], [images, wanted]);
        let some = if wanted == tokens { all } else { few };
        let place = |row: usize| RowLayout {
            line: tokens * row,
            ..RowLayout::rows(row)
        };

        self.normalise(&block.norm1, x, images, tokens, normed);
        let left = Operand::whole(normed, place(word_stride), words);
        let out = place(head_stride);
        product(
            some,
            left,
            &block.query,
            Addend::Nothing,
            Activation::None,
            attending,
            out,
        );
        let out = RowLayout { start: keys, ..out };
        product(
            all,
            left,
            &block.key_value,
            Addend::Nothing,
            Activation::None,
            attending,
            out,
        );

        if let Some(rotary) = &self.rotary {
            let rows = attending[..images * tokens * head_stride].par_chunks_mut(head_stride);
            rows.enumerate().with_min_len(ROWS).for_each(|(row, attending)| {
                let token = row % tokens;
                let queries = if token < wanted { 0..dim } else { 0..0 };
                for part in [queries, keys..keys + dim] {
                    let heads = attending[part].chunks_exact_mut(width);
                    heads.for_each(|head| rotary.rotate(token, head));
                }
            });
        }

        let mixed = &mut mixed[..images * heads * tokens * mixed_words];
        let of_heads = mixed.par_chunks_mut(tokens * mixed_words).with_max_len(1).enumerate();
        of_heads.for_each(|(number, mixed)| {
            let (image, number) = (number / heads, number % heads);
            let head = AttentionHead {
                values: &attending[image * tokens * head_stride..],
                stride: head_stride,
                tokens,
                width,
                query: number * width,
                key: keys + number * width,
                value: keys + dim + number * width,
            };
            self.workspaces
                .with(|workspace| attend(isa, head, wanted, workspace, mixed));
        });
        let left = Operand {
            values: mixed,
            place: RowLayout {
                line: heads * tokens * mixed_words,
                ..RowLayout::rows(mixed_words)
            },
            len: mixed_words,
            offsets: &self.of_heads,
        };
        let out = place(stride);
        product(few, left, &block.project, Addend::Out, Activation::None, x, out);

        self.normalise(&block.norm2, x, images, wanted, normed);
        let left = Operand::whole(normed, place(word_stride), words);
        let inside = place(hidden_stride);
        match &block.gate {
            None => product(
                some,
                left,
                &block.widen,
                Addend::Nothing,
                Activation::Gelu,
                inner,
                inside,
            ),
            Some(gate_of) => {
                // The gates and what they are for side by side.
                let columns = block.widen.columns();
                let second = columns.next_multiple_of(isa.lanes());
                let gated_stride = row_stride(2 * second);
                gated.reserve(images * tokens * gated_stride);
                for (start, matrix) in [(0, gate_of), (second, &block.widen)] {
                    let out = RowLayout {
                        start,
                        ..place(gated_stride)
                    };
                    product(some, left, matrix, Addend::Nothing, Activation::None, gated, out);
                }
                let rows = inner[..images * tokens * hidden_stride].par_chunks_mut(hidden_stride);
                let rows = rows.zip(gated.par_chunks(gated_stride)).enumerate();
                rows.with_min_len(ROWS).for_each(|(row, (inner, gated))| {
                    if row % tokens < wanted {
                        gate(isa, &gated[..columns], &gated[second..][..columns], inner);
                    }
                });
            }
        }
        let left = Operand::whole(inner, inside, hidden);
        product(some, left, &block.narrow, Addend::Out, Activation::None, x, out);
    }

    /// Normalises the first tokens of every image.
    fn normalise(&self, norm: &LayerNorm, x: &[f32], images: usize, wanted: usize, out: &mut [f32]) {
        let (stride, words) = (row_stride(self.dim), row_stride(self.isa.words(self.dim)));
        let tokens = self.tokens();
        let images = out[..images * tokens * words].par_chunks_mut(tokens * words);
        images.zip(x.par_chunks(tokens * stride)).for_each(|(out, x)| {
            let blocks = out[..wanted * words].par_chunks_mut(ROWS * words);
            blocks.zip(x.par_chunks(ROWS * stride)).for_each(|(out, x)| {
                for (out, x) in out.chunks_mut(words).zip(x.chunks(stride)) {
                    norm.row(self.isa, x, out);
                }
            });
        });
    }
}

impl PackedVitBlock {
    fn new(block: networks::VitBlock, isa: Isa, heads: usize) -> Self {
        let [scale1, scale2] = [block.scale1, block.scale2].map(|scale| scale.map(values));
        let dim = block.norm1.gamma.dims()[0];
        // Scores are divided by the root of a head's width: so are the queries, once and for all.
        let part = ((dim / heads) as f32).sqrt().recip();
        Self {
            norm1: normalisation(block.norm1),
            query: pack(block.query, isa, 1, part, None),
            key_value: pack(block.key_value, isa, 1, 1.0, None),
            project: pack(block.project, isa, heads, 1.0, scale1),
            norm2: normalisation(block.norm2),
            gate: block.gate.map(|gate| pack(gate, isa, 1, 1.0, None)),
            widen: pack(block.widen, isa, 1, 1.0, None),
            narrow: pack(block.narrow, isa, 1, 1.0, scale2),
        }
    }
}

/// A matrix whose inputs come in pieces, with its outputs scaled by one number and by one each.
fn pack(linear: Linear, isa: Isa, pieces: usize, scale: f32, scales: Option<Vec<f32>>) -> Packed {
    let [inputs, outputs] = linear.weight.dims();
    let scales = match scales {
        Some(scales) => scales.into_iter().map(|own| own * scale).collect(),
        None => vec![scale; outputs],
    };
    let bias: Vec<f32> = values(linear.bias)
        .iter()
        .zip(&scales)
        .map(|(bias, scale)| bias * scale)
        .collect();
    let weight = values(linear.weight);
    Packed::new(isa, [pieces, inputs / pieces], &bias, |k, column| {
        weight[k * outputs + column] * scales[column]
    })
}

fn normalisation(norm: networks::VitNorm) -> LayerNorm {
    LayerNorm {
        gamma: values(norm.gamma),
        beta: values(norm.beta),
        epsilon: norm.epsilon as f32,
    }
}
