//! Vision transformers: DINO, DINOv2 with or without registers, DINOv3, and their relatives.

use std::collections::BTreeMap;
use std::ops::Range;

use burn_tensor::module::{attention, layer_norm};
use burn_tensor::ops::AttentionModuleOptions;
use burn_tensor::{Device, Tensor as Array, TensorData, activation};

use super::parts::{Linear, Parts};
use super::positions::Rotary;
use super::{ArchitectureError, Positions};
use crate::weights::Tensor;

/// The sizes of a vision transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VitShape {
    /// The side of a patch in pixels.
    pub patch: usize,
    /// The length of a token.
    pub dim: usize,
    /// The number of blocks.
    pub depth: usize,
    /// The number of attention heads.
    pub heads: usize,
    /// The length of the layer between the two matrices of a block's perceptron.
    pub hidden: usize,
    /// The number of register tokens.
    pub registers: usize,
    /// Whether branches are scaled before they are added.
    pub layer_scale: bool,
    /// Whether the perceptron of a block is gated: SwiGLU instead of GELU.
    pub gated: bool,
}

impl VitShape {
    /// The number of values for images of `image` pixels a side.
    pub(super) fn parameters(&self, image: usize, positions: Positions) -> u64 {
        let [patch, dim, depth, hidden] = [self.patch, self.dim, self.depth, self.hidden].map(|size| size as u64);
        let linear = |inputs: u64, outputs: u64| (inputs + 1) * outputs;
        let norm = 2 * dim;
        let side = image as u64 / patch.max(1);
        let tokens = match positions {
            Positions::Rotary => 0,
            _ => 1 + side * side,
        };
        let prefix = 1 + self.registers as u64;
        let widenings = 1 + u64::from(self.gated);
        let scales = 2 * dim * u64::from(self.layer_scale);
        let attention = linear(dim, 3 * dim) + linear(dim, dim);
        let perceptron = widenings * linear(dim, hidden) + linear(hidden, dim);
        let block = 2 * norm + attention + perceptron + scales;
        linear(3 * patch * patch, dim) + (prefix + tokens) * dim + depth * block + norm
    }

    /// The sizes that the tensors of a file (in timm's names) have; heads of 64 features unless told otherwise.
    pub(crate) fn of(tensors: &BTreeMap<String, Tensor>, heads: Option<usize>) -> Option<Self> {
        let shape = |name: &str| tensors.get(name).map(|tensor| &tensor.shape[..]);
        let &[dim, 3, patch, _] = shape("patch_embed.proj.weight")? else {
            return None;
        };
        let block = |name: &str| name.strip_prefix("blocks.")?.split('.').next()?.parse::<usize>().ok();
        let depth = tensors.keys().filter_map(|name| block(name)).max()?.checked_add(1)?;
        Some(Self {
            patch,
            dim,
            // A file of n tensors has at most n blocks: no name makes us build millions of them.
            depth: depth.min(tensors.len()),
            heads: heads.unwrap_or((dim / 64).max(1)),
            hidden: *shape("blocks.0.mlp.fc1.weight")
                .or_else(|| shape("blocks.0.mlp.fc1_x.weight"))?
                .first()?,
            registers: match shape("reg_token") {
                Some(&[1, registers, _]) => registers,
                _ => 0,
            },
            layer_scale: tensors.contains_key("blocks.0.ls1.gamma"),
            gated: tensors.contains_key("blocks.0.mlp.fc1_g.weight"),
        })
    }
}

/// Some blocks of a vision transformer, with what stands before the first and after the last of all.
#[derive(Debug)]
pub(crate) struct Vit {
    pub(crate) dim: usize,
    pub(crate) heads: usize,
    pub(crate) embed: Option<PatchEmbedding>,
    pub(crate) blocks: Vec<VitBlock>,
    pub(crate) norm: Option<VitNorm>,
    pub(crate) rotary: Option<Rotary>,
}

/// From the pixels of an image of one size to tokens.
#[derive(Debug)]
pub(crate) struct PatchEmbedding {
    pub(crate) patch: usize,
    pub(crate) side: usize,
    pub(crate) kernel: Linear,
    /// The class token with its position, and the registers: 1 × (1 + registers) × dim.
    pub(crate) prefix: Array<3>,
    /// 1 × patches × dim.
    pub(crate) positions: Array<3>,
}

#[derive(Debug)]
pub(crate) struct VitNorm {
    pub(crate) gamma: Array<1>,
    pub(crate) beta: Array<1>,
    /// What is added to the variance.
    pub(crate) epsilon: f64,
}

impl VitNorm {
    fn take(parts: &mut Parts, name: &str, dim: usize, epsilon: f64) -> Self {
        Self {
            epsilon,
            gamma: parts.tensor(&format!("{name}.weight"), [dim]),
            beta: parts.tensor(&format!("{name}.bias"), [dim]),
        }
    }

    fn forward(&self, x: Array<3>) -> Array<3> {
        layer_norm(x, self.gamma.clone(), Some(self.beta.clone()), self.epsilon)
    }
}

#[derive(Debug)]
pub(crate) struct VitBlock {
    pub(crate) norm1: VitNorm,
    /// Queries, and keys with values, apart: the last block asks for one token only.
    pub(crate) query: Linear,
    pub(crate) key_value: Linear,
    pub(crate) project: Linear,
    pub(crate) scale1: Option<Array<1>>,
    pub(crate) norm2: VitNorm,
    /// Of a gated perceptron, what its inner layer is multiplied by.
    pub(crate) gate: Option<Linear>,
    pub(crate) widen: Linear,
    pub(crate) narrow: Linear,
    pub(crate) scale2: Option<Array<1>>,
}

impl Vit {
    /// The blocks `span` of a transformer for images of `image` pixels a side.
    pub(crate) fn new(
        shape: VitShape,
        image: usize,
        positions: Positions,
        parts: &mut Parts,
        span: Range<usize>,
    ) -> Result<Self, ArchitectureError> {
        let VitShape { patch, dim, heads, .. } = shape;
        if patch == 0 || !image.is_multiple_of(patch) || image == 0 {
            return Err(ArchitectureError::PatchSize { image, patch });
        }
        if heads == 0 || !dim.is_multiple_of(heads) {
            return Err(ArchitectureError::Heads { dim, heads });
        }
        let rotary = match positions {
            Positions::Rotary => {
                let rotary = Rotary::new(1 + shape.registers, image / patch, dim / heads);
                Some(rotary.ok_or(ArchitectureError::Rotary { width: dim / heads })?)
            }
            _ => None,
        };
        let epsilon = positions.epsilon();
        let embed = match span.start {
            0 => Some(PatchEmbedding::take(parts, shape, image / patch, positions)?),
            _ => None,
        };
        let last = span.end == shape.depth;
        Ok(Self {
            dim,
            heads,
            embed,
            blocks: span.map(|b| VitBlock::take(parts, b, &shape, epsilon)).collect(),
            norm: last.then(|| VitNorm::take(parts, "norm", dim, epsilon)),
            rotary,
        })
    }

    /// From pixels or tokens to tokens or, after the last block, to the class token of every image: images × values.
    pub(crate) fn forward(&self, values: &[f32], images: usize, device: &Device) -> Array<2> {
        let mut x = match &self.embed {
            Some(embed) => embed.forward(values, images, device),
            None => {
                let tokens = values.len() / (images * self.dim).max(1);
                Array::from_data(TensorData::new(values.to_vec(), [images, tokens, self.dim]), device)
            }
        };
        let rotations = self.rotary.as_ref().map(|rotary| Rotations::new(rotary, device));
        for (at, block) in self.blocks.iter().enumerate() {
            // Only the class token leaves the last block of all, so only it goes through most of it.
            let last = self.norm.is_some() && at + 1 == self.blocks.len();
            let wanted = if last { 1 } else { x.dims()[1] };
            x = block.forward(x, wanted, self.heads, rotations.as_ref());
        }
        if let Some(norm) = &self.norm {
            x = norm.forward(x.slice([0..images, 0..1]));
        }
        let tokens = x.dims()[1];
        x.reshape([images, tokens * self.dim])
    }
}

/// The rotations of all tokens as tensors: 1 × 1 × tokens × width.
struct Rotations {
    cosines: Array<4>,
    sines: Array<4>,
}

impl Rotations {
    fn new(rotary: &Rotary, device: &Device) -> Self {
        let (half, tokens) = (rotary.half, rotary.cosines.len() / rotary.half);
        let table = |values: &[f32]| {
            // Both numbers of a plane turn by the same angle.
            let twice = values.chunks_exact(half).flat_map(|row| [row, row].concat()).collect();
            Array::from_data(TensorData::new(twice, [1, 1, tokens, 2 * half]), device)
        };
        Self {
            cosines: table(&rotary.cosines),
            sines: table(&rotary.sines),
        }
    }

    /// Queries or keys of the first tokens, rotated: images × heads × tokens × width.
    fn rotate(&self, x: Array<4>) -> Array<4> {
        let [images, heads, tokens, width] = x.dims();
        let of_tokens = |table: &Array<4>| table.clone().slice([0..1, 0..1, 0..tokens, 0..width]);
        let part = |range| x.clone().slice([0..images, 0..heads, 0..tokens, range]);
        let turned = Array::cat(vec![part(width / 2..width).neg(), part(0..width / 2)], 3);
        x.clone() * of_tokens(&self.cosines) + turned * of_tokens(&self.sines)
    }
}

impl PatchEmbedding {
    fn take(parts: &mut Parts, shape: VitShape, side: usize, positions: Positions) -> Result<Self, ArchitectureError> {
        let VitShape { patch, dim, .. } = shape;
        let class = parts.tensor("cls_token", [1, 1, dim]);
        let [class_position, positions] = parts.positions(positions, side, dim)?;
        let mut prefix = class + class_position;
        if shape.registers > 0 {
            let registers = parts.tensor("reg_token", [1, shape.registers, dim]);
            prefix = Array::cat(vec![prefix, registers], 1);
        }
        Ok(Self {
            patch,
            side,
            kernel: parts.linear("patch_embed.proj", &[dim, 3, patch, patch]),
            prefix,
            positions,
        })
    }

    fn forward(&self, pixels: &[f32], images: usize, device: &Device) -> Array<3> {
        let patches = self.patches(pixels);
        let shape = [images, self.side * self.side, 3 * self.patch * self.patch];
        let x = Array::<3>::from_data(TensorData::new(patches, shape), device);
        let x = self.kernel.forward(x) + self.positions.clone();
        Array::cat(vec![self.prefix.clone().repeat_dim(0, images), x], 1)
    }

    /// The pixels of every patch side by side, in the order of the patch kernel: channel, row, column.
    fn patches(&self, pixels: &[f32]) -> Vec<f32> {
        let (patch, side) = (self.patch, self.side);
        let width = side * patch;
        let mut out = Vec::with_capacity(pixels.len());
        for image in pixels.chunks_exact(3 * width * width) {
            for row in 0..side {
                for column in 0..side {
                    for channel in image.chunks_exact(width * width) {
                        for line in 0..patch {
                            let start = (row * patch + line) * width + column * patch;
                            out.extend_from_slice(&channel[start..start + patch]);
                        }
                    }
                }
            }
        }
        out
    }
}

impl VitBlock {
    fn take(parts: &mut Parts, number: usize, shape: &VitShape, epsilon: f64) -> Self {
        let VitShape { dim, hidden, .. } = *shape;
        let name = |part: &str| format!("blocks.{number}.{part}");
        let scale = |parts: &mut Parts, part| shape.layer_scale.then(|| parts.tensor(&name(part), [dim]));
        let [query, key_value] = parts.split_linear(&name("attn.qkv"), dim, 3 * dim, dim);
        let norm1 = VitNorm::take(parts, &name("norm1"), dim, epsilon);
        let inner = if shape.gated { "mlp.fc1_x" } else { "mlp.fc1" };
        Self {
            norm1,
            query,
            key_value,
            project: parts.linear(&name("attn.proj"), &[dim, dim]),
            scale1: scale(parts, "ls1.gamma"),
            norm2: VitNorm::take(parts, &name("norm2"), dim, epsilon),
            gate: shape.gated.then(|| parts.linear(&name("mlp.fc1_g"), &[hidden, dim])),
            widen: parts.linear(&name(inner), &[hidden, dim]),
            narrow: parts.linear(&name("mlp.fc2"), &[dim, hidden]),
            scale2: scale(parts, "ls2.gamma"),
        }
    }

    /// The first `wanted` tokens after this block.
    fn forward(&self, x: Array<3>, wanted: usize, heads: usize, rotations: Option<&Rotations>) -> Array<3> {
        let [images, tokens, dim] = x.dims();
        let width = dim / heads;
        let normed = self.norm1.forward(x.clone());
        let first = |x: Array<3>| {
            if wanted < tokens {
                x.slice([0..images, 0..wanted, 0..dim])
            } else {
                x
            }
        };
        let query = self.query.forward(first(normed.clone()));
        let query = query.reshape([images, wanted, heads, width]).swap_dims(1, 2);
        let [key, value] = {
            let both = self
                .key_value
                .forward(normed)
                .reshape([images, tokens, 2, heads, width]);
            [0, 1].map(|which| {
                let part = both
                    .clone()
                    .slice([0..images, 0..tokens, which..which + 1, 0..heads, 0..width]);
                part.reshape([images, tokens, heads, width]).swap_dims(1, 2)
            })
        };
        let [query, key] = [query, key].map(|x| match rotations {
            Some(rotations) => rotations.rotate(x),
            None => x,
        });
        let mixed = attention(query, key, value, None, None, AttentionModuleOptions::default());
        let mixed = mixed.swap_dims(1, 2).reshape([images, wanted, dim]);
        let x = first(x) + scaled(self.project.forward(mixed), &self.scale1);
        let normed = self.norm2.forward(x.clone());
        let inner = match &self.gate {
            Some(gate) => activation::silu(gate.forward(normed.clone())) * self.widen.forward(normed),
            None => activation::gelu(self.widen.forward(normed)),
        };
        x + scaled(self.narrow.forward(inner), &self.scale2)
    }
}

fn scaled(x: Array<3>, scale: &Option<Array<1>>) -> Array<3> {
    match scale {
        Some(scale) => x * scale.clone().unsqueeze(),
        None => x,
    }
}
