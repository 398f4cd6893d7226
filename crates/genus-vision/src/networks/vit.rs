//! Vision transformers: DINO, DINOv2 with or without registers, and their relatives.

use std::collections::BTreeMap;

use burn_tensor::module::{attention, layer_norm};
use burn_tensor::ops::AttentionModuleOptions;
use burn_tensor::{Device, Tensor as Array, activation};

use super::parts::{Linear, Parts, transposed};
use super::{ArchitectureError, Positions};
use crate::weights::Tensor;

const EPSILON: f64 = 1e-6;

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
}

impl VitShape {
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
            hidden: *shape("blocks.0.mlp.fc1.weight")?.first()?,
            registers: match shape("reg_token") {
                Some(&[1, registers, _]) => registers,
                _ => 0,
            },
            layer_scale: tensors.contains_key("blocks.0.ls1.gamma"),
        })
    }
}

/// A vision transformer for images of one size.
#[derive(Debug)]
pub(crate) struct Vit {
    shape: VitShape,
    side: usize,
    embed: Linear,
    /// The class token with its position, and the registers: 1 × (1 + registers) × dim.
    prefix: Array<3>,
    /// 1 × patches × dim.
    positions: Array<3>,
    blocks: Vec<Block>,
    norm: Norm,
}

#[derive(Debug)]
struct Norm {
    gamma: Array<1>,
    beta: Array<1>,
}

impl Norm {
    fn take(parts: &mut Parts, name: &str, dim: usize) -> Self {
        Self {
            gamma: parts.vector(&format!("{name}.weight"), dim),
            beta: parts.vector(&format!("{name}.bias"), dim),
        }
    }

    fn forward(&self, x: Array<3>) -> Array<3> {
        layer_norm(x, self.gamma.clone(), Some(self.beta.clone()), EPSILON)
    }
}

#[derive(Debug)]
struct Block {
    norm1: Norm,
    /// Queries, and keys with values, apart: the last block asks for one token only.
    query: Linear,
    key_value: Linear,
    project: Linear,
    scale1: Option<Array<1>>,
    norm2: Norm,
    widen: Linear,
    narrow: Linear,
    scale2: Option<Array<1>>,
}

impl Vit {
    pub(crate) fn new(
        shape: VitShape,
        image: usize,
        positions: Positions,
        tensors: BTreeMap<String, Tensor>,
        device: &Device,
    ) -> Result<Self, ArchitectureError> {
        let VitShape { patch, dim, .. } = shape;
        if patch == 0 || !image.is_multiple_of(patch) || image == 0 {
            return Err(ArchitectureError::PatchSize { image, patch });
        }
        if shape.heads == 0 || !dim.is_multiple_of(shape.heads) {
            return Err(ArchitectureError::Heads {
                dim,
                heads: shape.heads,
            });
        }
        let side = image / patch;
        let mut tensors = tensors;
        let embedding = tensors.remove("pos_embed");
        let mut parts = Parts::new(tensors, device);
        let class = parts.take("cls_token", &[1, 1, dim]);
        let registers = match shape.registers {
            0 => Vec::new(),
            count => parts.take("reg_token", &[1, count, dim]),
        };
        let pixels = 3 * patch * patch;
        let kernel = parts.take("patch_embed.proj.weight", &[dim, 3, patch, patch]);
        let blocks = (0..shape.depth).map(|b| Block::take(&mut parts, b, &shape)).collect();
        let norm = Norm::take(&mut parts, "norm", dim);
        let bias = parts.vector("patch_embed.proj.bias", dim);
        let embed = Linear::new(parts.array(transposed(&kernel, dim, pixels), [pixels, dim]), bias);

        let wrong = |found: Option<&Tensor>| ArchitectureError::PositionCount {
            found: found.map(|tensor| tensor.shape.clone()),
            dim,
        };
        let embedding = embedding.ok_or_else(|| wrong(None));
        let (class_position, patch_positions) = match embedding {
            Ok(embedding) if embedding.shape.last() == Some(&dim) => positions
                .split(&embedding, side)
                .ok_or_else(|| wrong(Some(&embedding)))?,
            Ok(embedding) => return Err(wrong(Some(&embedding))),
            Err(missing) => {
                // What else is wrong with the file says more.
                parts.finish()?;
                return Err(missing);
            }
        };
        let mut prefix: Vec<f32> = class.iter().zip(&class_position).map(|(c, p)| c + p).collect();
        prefix.extend(registers);
        let prefix = parts.array(prefix, [1, 1 + shape.registers, dim]);
        let positions = parts.array(patch_positions, [1, side * side, dim]);
        parts.finish()?;
        Ok(Self {
            shape,
            side,
            embed,
            prefix,
            positions,
            blocks,
            norm,
        })
    }

    pub(crate) fn dim(&self) -> usize {
        self.shape.dim
    }

    /// The class token of every image after the last norm: images × dim.
    pub(crate) fn forward(&self, pixels: &[f32], images: usize, device: &Device) -> Array<2> {
        let VitShape { dim, patch, .. } = self.shape;
        let patches = self.patches(pixels);
        let shape = [images, self.side * self.side, 3 * patch * patch];
        let x = Array::<3>::from_data(burn_tensor::TensorData::new(patches, shape), device);
        let x = self.embed.forward(x) + self.positions.clone();
        let mut x = Array::cat(vec![self.prefix.clone().repeat_dim(0, images), x], 1);
        for (at, block) in self.blocks.iter().enumerate() {
            // Only the class token leaves the last block, so only it goes through most of it.
            let wanted = if at + 1 == self.blocks.len() { 1 } else { x.dims()[1] };
            x = block.forward(x, wanted, self.shape.heads);
        }
        let class = x.slice([0..images, 0..1, 0..dim]);
        self.norm.forward(class).reshape([images, dim])
    }

    /// The pixels of every patch side by side, in the order of the patch kernel: channel, row, column.
    fn patches(&self, pixels: &[f32]) -> Vec<f32> {
        let (patch, side) = (self.shape.patch, self.side);
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

impl Block {
    fn take(parts: &mut Parts, number: usize, shape: &VitShape) -> Self {
        let VitShape { dim, hidden, .. } = *shape;
        let name = |part: &str| format!("blocks.{number}.{part}");
        let scale = |parts: &mut Parts, part| shape.layer_scale.then(|| parts.vector(&name(part), dim));
        let mut weight = parts.take(&name("attn.qkv.weight"), &[3 * dim, dim]);
        let mut bias = parts.take(&name("attn.qkv.bias"), &[3 * dim]);
        let (rest, rest_bias) = (weight.split_off(dim * dim), bias.split_off(dim));
        let linear = |weight: &[f32], bias: Vec<f32>, outputs: usize| {
            let weight = parts.array(transposed(weight, outputs, dim), [dim, outputs]);
            Linear::new(weight, parts.array(bias, [outputs]))
        };
        let query = linear(&weight, bias, dim);
        let key_value = linear(&rest, rest_bias, 2 * dim);
        Self {
            norm1: Norm::take(parts, &name("norm1"), dim),
            query,
            key_value,
            project: parts.linear(&name("attn.proj"), dim, dim),
            scale1: scale(parts, "ls1.gamma"),
            norm2: Norm::take(parts, &name("norm2"), dim),
            widen: parts.linear(&name("mlp.fc1"), dim, hidden),
            narrow: parts.linear(&name("mlp.fc2"), hidden, dim),
            scale2: scale(parts, "ls2.gamma"),
        }
    }

    /// The first `wanted` tokens after this block.
    fn forward(&self, x: Array<3>, wanted: usize, heads: usize) -> Array<3> {
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
        let mixed = attention(query, key, value, None, None, AttentionModuleOptions::default());
        let mixed = mixed.swap_dims(1, 2).reshape([images, wanted, dim]);
        let x = first(x) + scaled(self.project.forward(mixed), &self.scale1);
        let inner = activation::gelu(self.widen.forward(self.norm2.forward(x.clone())));
        x + scaled(self.narrow.forward(inner), &self.scale2)
    }
}

fn scaled(x: Array<3>, scale: &Option<Array<1>>) -> Array<3> {
    match scale {
        Some(scale) => x * scale.clone().unsqueeze(),
        None => x,
    }
}
