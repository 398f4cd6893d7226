//! The networks, in burn: they run on every device that it knows.

mod conv;
mod lite;
mod maps;
mod naming;
mod parts;
mod positions;
mod resnet;
mod vit;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use burn_tensor::{Device, Tensor as Array};
use thiserror::Error;

pub(crate) use conv::ConvNet;
pub use lite::LiteKind;
pub(crate) use lite::{Lite, LiteStep};
pub(crate) use parts::{Conv, Linear, Parts, TrainingTensors};
pub use positions::Positions;
pub(crate) use positions::Rotary;
pub use resnet::ResNetKind;
pub(crate) use resnet::{ResNet, ResNetBlock};
pub use vit::VitShape;
pub(crate) use vit::{Vit, VitBlock, VitNorm};

use crate::device::device;
use crate::weights::{Tensor, Weights};

/// A kind of network and what there is to choose about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// A vision transformer; the feature is the class token after the last norm.
    Vit {
        /// Its sizes; those that the weights have when there are none here.
        shape: Option<VitShape>,
        /// How position embeddings are brought to another number of patches.
        positions: Positions,
        /// The number of heads, which weights do not tell: one for 64 features when there is none here.
        heads: Option<usize>,
    },
    /// A residual network; the feature is the mean over the last map.
    ResNet(ResNetKind),
    /// An EfficientNet-Lite; the feature is the mean over the last map.
    Lite(LiteKind),
    /// Four convolutions of so many channels, for small images; the feature is the mean over the last map.
    Conv4(usize),
}

impl Architecture {
    /// The number of blocks, the unit of what is trained; 0 for a transformer whose sizes only its weights tell.
    pub fn blocks(&self) -> usize {
        match self {
            Architecture::Vit { shape, .. } => shape.map_or(0, |shape| shape.depth),
            Architecture::ResNet(kind) => kind.depth(),
            Architecture::Lite(kind) => kind.depth(),
            Architecture::Conv4(_) => conv::DEPTH,
        }
    }

    /// The number of features; 0 for a transformer whose sizes only its weights tell.
    pub fn dim(&self) -> usize {
        match self {
            Architecture::Vit { shape, .. } => shape.map_or(0, |shape| shape.dim),
            Architecture::ResNet(kind) => kind.dim(),
            Architecture::Lite(kind) => kind.dim(),
            Architecture::Conv4(width) => *width,
        }
    }

    /// How many values training can change, for images of `image` pixels a side; `None` where only the weights tell.
    pub fn parameters(&self, image: usize) -> Option<u64> {
        if let Architecture::Vit { shape, positions, .. } = self {
            return Some(shape.as_ref()?.parameters(image, *positions));
        }
        let device = device();
        let mut parts = Parts::of_file(BTreeMap::new(), &device);
        Network::part(self, image, &mut parts, 0..self.blocks(), &device).ok()?;
        let is_learnt = |(name, _): &(String, Vec<usize>)| !name.contains(".running_");
        let learnt = parts.wanted().into_iter().filter(is_learnt);
        Some(learnt.map(|(_, shape)| shape.iter().product::<usize>() as u64).sum())
    }

    /// Whether there are batch normalisations.
    pub(crate) fn has_batch_norms(&self) -> bool {
        !matches!(self, Architecture::Vit { .. })
    }

    /// The architecture with the sizes that the weights have, and the tensors under our names.
    pub(crate) fn settle(self, weights: Weights) -> Result<(Self, BTreeMap<String, Tensor>), ArchitectureError> {
        let tensors = naming::canonical(weights.tensors, &self);
        let architecture = match self {
            Architecture::Vit {
                shape: None,
                positions,
                heads,
            } => {
                let shape = VitShape::of(&tensors, heads).ok_or_else(|| ArchitectureError::NotVit {
                    missing: ["patch_embed.proj.weight", "blocks.0.mlp.fc1.weight"]
                        .into_iter()
                        .find(|&name| !tensors.contains_key(name))
                        .unwrap_or("patch_embed.proj.weight of four dimensions"),
                })?;
                Architecture::Vit {
                    shape: Some(shape),
                    positions,
                    heads,
                }
            }
            other => other,
        };
        Ok((architecture, tensors))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Architecture::Vit {
                shape: Some(shape),
                positions,
                ..
            } => {
                let VitShape {
                    patch,
                    dim,
                    depth,
                    heads,
                    hidden,
                    registers,
                    ..
                } = shape;
                let positions = positions.name();
                write!(f, "vit/{patch} {depth} × {dim} ({hidden}), {heads} heads")?;
                if *registers > 0 {
                    write!(f, ", {registers} registers")?;
                }
                if shape.layer_scale {
                    f.write_str(", layer scale")?;
                }
                if shape.gated {
                    f.write_str(", SwiGLU")?;
                }
                write!(f, ", {positions} positions")
            }
            Architecture::Vit { shape: None, .. } => f.write_str("vit"),
            Architecture::ResNet(ResNetKind::ResNet18) => f.write_str("resnet18"),
            Architecture::ResNet(ResNetKind::ResNet50) => f.write_str("resnet50"),
            Architecture::Lite(LiteKind::Lite0) => f.write_str("efficientnet-lite0"),
            Architecture::Lite(LiteKind::Lite2) => f.write_str("efficientnet-lite2"),
            Architecture::Conv4(width) => write!(f, "conv4 × {width}"),
        }
    }
}

/// Why weights do not make a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArchitectureError {
    /// The weights are those of something else.
    #[error(
        "the weights do not fit:{}{}{}",
        list("missing", missing),
        list("wrong shape", misshapen),
        list("surplus", surplus)
    )]
    Tensors {
        /// Tensors that the network needs and the file does not have.
        missing: Vec<String>,
        /// Tensors of another shape.
        misshapen: Vec<String>,
        /// Tensors that the network has no place for.
        surplus: Vec<String>,
    },
    /// The sizes of the transformer cannot be told from the weights.
    #[error(
        "these are not the weights of a vision transformer: there is no {missing}. Names of the DINO repositories, of timm and \
         of Hugging Face transformers are known"
    )]
    NotVit {
        /// A tensor that every vision transformer has.
        missing: &'static str,
    },
    /// Position embeddings that are not those of a square of patches.
    #[error(
        "the position embeddings have the shape {found:?}, which is not 1 × (a square of patches, and one) × {dim}"
    )]
    PositionCount {
        /// Their shape.
        found: Vec<usize>,
        /// The length of a token.
        dim: usize,
    },
    /// An image that is not made of whole patches.
    #[error("images of {image} pixels are not made of whole patches of {patch}; choose a multiple of {patch}")]
    PatchSize {
        /// The side of an image.
        image: usize,
        /// The side of a patch.
        patch: usize,
    },
    /// An image that has vanished before the last map.
    #[error("images of {image} pixels are too small; this network needs {least}")]
    TooSmall {
        /// The side of an image.
        image: usize,
        /// The least side.
        least: usize,
    },
    /// A precision that only transformers have.
    #[error("only vision transformers run in bf16; this network runs in f32")]
    Precision,
    /// A transformer without sizes.
    #[error("a transformer without weights needs its sizes, as in vit:size=28,patch=7,dim=96,depth=4,heads=3")]
    NoSizes,
    /// Heads that cannot be rotated.
    #[error("heads of {width} features cannot be rotated by rows and columns; their width must be a multiple of 4")]
    Rotary {
        /// The features of a head.
        width: usize,
    },
    /// Tokens that cannot be shared out among the heads.
    #[error("{dim} features cannot be shared out among {heads} heads; set their number, as in vit:heads=6")]
    Heads {
        /// The length of a token.
        dim: usize,
        /// The number of heads.
        heads: usize,
    },
}

/// The first few of some names, on a line of their own.
fn list(what: &str, names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len() {
        0 => String::new(),
        count => {
            let shown = names[..count.min(SHOWN)].join(", ");
            let more = if count > SHOWN {
                format!(" and {} more", count - SHOWN)
            } else {
                String::new()
            };
            format!("\n  {what} ({count}): {shown}{more}")
        }
    }
}

/// Consecutive blocks of a network with their weights, for images of one size.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) body: NetworkBody,
    device: Device,
}

/// The blocks by kind.
#[derive(Debug)]
pub(crate) enum NetworkBody {
    Vit(Box<Vit>),
    ResNet(Box<ResNet>),
    Lite(Box<Lite>),
    Conv(Box<ConvNet>),
}

impl Network {
    /// Builds the whole network, strictly; the architecture comes back with the sizes that it has.
    pub(crate) fn new(
        architecture: Architecture,
        image: usize,
        weights: Weights,
        device: Device,
    ) -> Result<(Self, Architecture), ArchitectureError> {
        let (architecture, tensors) = architecture.settle(weights)?;
        let mut parts = Parts::of_file(tensors, &device);
        let network = Self::part(&architecture, image, &mut parts, 0..architecture.blocks(), &device)?;
        parts.finish()?;
        Ok((network, architecture))
    }

    /// Builds the blocks `span` of a network: with the first comes what stands before it, with the last what follows.
    pub(crate) fn part(
        architecture: &Architecture,
        image: usize,
        parts: &mut Parts,
        span: Range<usize>,
        device: &Device,
    ) -> Result<Self, ArchitectureError> {
        let body = match *architecture {
            Architecture::Vit { shape: None, .. } => return Err(ArchitectureError::NoSizes),
            Architecture::Vit {
                shape: Some(shape),
                positions,
                ..
            } => NetworkBody::Vit(Box::new(Vit::new(shape, image, positions, parts, span)?)),
            Architecture::ResNet(kind) => NetworkBody::ResNet(Box::new(ResNet::new(kind, parts, span))),
            Architecture::Lite(kind) => NetworkBody::Lite(Box::new(Lite::new(kind, parts, span))),
            Architecture::Conv4(width) => {
                let least = 1 << conv::DEPTH;
                if image < least {
                    return Err(ArchitectureError::TooSmall { image, least });
                }
                NetworkBody::Conv(Box::new(ConvNet::new(width, parts, span)))
            }
        };
        let device = device.clone();
        Ok(Self { body, device })
    }

    /// What leaves the last of the blocks, a row an image: features, if it is the network's last.
    pub(crate) fn forward(&self, values: &[f32], images: usize) -> Array<2> {
        match &self.body {
            NetworkBody::Vit(net) => net.forward(values, images, &self.device),
            NetworkBody::ResNet(net) => net.forward(values, images, &self.device),
            NetworkBody::Lite(net) => net.forward(values, images, &self.device),
            NetworkBody::Conv(net) => net.forward(values, images, &self.device),
        }
    }
}

/// The values of a tensor.
pub(crate) fn values<const D: usize>(array: Array<D>) -> Vec<f32> {
    array.into_data().try_into_vec().expect("our own tensors are f32")
}
