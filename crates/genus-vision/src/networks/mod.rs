//! The networks, in burn: they run on every device that it knows.

mod lite;
mod naming;
mod parts;
mod positions;
mod resnet;
mod vit;

use std::fmt;

use burn_tensor::{Device, Tensor as Array};
use thiserror::Error;

pub use lite::LiteKind;
pub use positions::Positions;
pub use resnet::ResNetKind;
pub use vit::VitShape;

use crate::weights::Weights;
use lite::Lite;
use resnet::ResNet;
use vit::Vit;

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
                write!(f, ", {positions} positions")
            }
            Architecture::Vit { shape: None, .. } => f.write_str("vit"),
            Architecture::ResNet(ResNetKind::ResNet18) => f.write_str("resnet18"),
            Architecture::ResNet(ResNetKind::ResNet50) => f.write_str("resnet50"),
            Architecture::Lite(LiteKind::Lite0) => f.write_str("efficientnet-lite0"),
            Architecture::Lite(LiteKind::Lite2) => f.write_str("efficientnet-lite2"),
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
    #[error("the position embeddings {}", positions_problem(found.as_deref(), *dim))]
    PositionCount {
        /// Their shape.
        found: Option<Vec<usize>>,
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
    /// Tokens that cannot be shared out among the heads.
    #[error("{dim} features cannot be shared out among {heads} heads; say how many there are, as in vit:heads=6")]
    Heads {
        /// The length of a token.
        dim: usize,
        /// The number of heads.
        heads: usize,
    },
}

fn positions_problem(found: Option<&[usize]>, dim: usize) -> String {
    match found {
        None => "(pos_embed) are missing".to_owned(),
        Some(shape) => format!("have the shape {shape:?}, which is not 1 × (a square of patches, and one) × {dim}"),
    }
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

/// A network with its weights, for images of one size.
#[derive(Debug)]
pub(crate) struct Network {
    body: Body,
    image: usize,
    device: Device,
}

#[derive(Debug)]
enum Body {
    Vit(Box<Vit>),
    ResNet(Box<ResNet>, usize),
    Lite(Box<Lite>, usize),
}

impl Network {
    /// Builds the network; the architecture comes back with the sizes that it has.
    pub(crate) fn new(
        architecture: Architecture,
        image: usize,
        weights: Weights,
        device: Device,
    ) -> Result<(Self, Architecture), ArchitectureError> {
        let tensors = naming::canonical(weights.tensors, &architecture);
        let (body, architecture) = match architecture {
            Architecture::Vit {
                shape,
                positions,
                heads,
            } => {
                let shape = match shape {
                    Some(shape) => shape,
                    None => VitShape::of(&tensors, heads).ok_or_else(|| ArchitectureError::NotVit {
                        missing: ["patch_embed.proj.weight", "blocks.0.mlp.fc1.weight"]
                            .into_iter()
                            .find(|&name| !tensors.contains_key(name))
                            .unwrap_or("patch_embed.proj.weight of four dimensions"),
                    })?,
                };
                let vit = Vit::new(shape, image, positions, tensors, &device)?;
                let architecture = Architecture::Vit {
                    shape: Some(shape),
                    positions,
                    heads,
                };
                (Body::Vit(Box::new(vit)), architecture)
            }
            Architecture::ResNet(kind) => (
                Body::ResNet(Box::new(ResNet::new(kind, tensors, &device)?), kind.dim()),
                architecture,
            ),
            Architecture::Lite(kind) => (
                Body::Lite(Box::new(Lite::new(kind, tensors, &device)?), kind.dim()),
                architecture,
            ),
        };
        Ok((Self { body, image, device }, architecture))
    }

    pub(crate) fn dim(&self) -> usize {
        match &self.body {
            Body::Vit(vit) => vit.dim(),
            Body::ResNet(_, dim) | Body::Lite(_, dim) => *dim,
        }
    }

    /// The features of some images, a row an image.
    pub(crate) fn forward(&self, pixels: &[f32]) -> Vec<f32> {
        let images = pixels.len() / (3 * self.image * self.image);
        let features: Array<2> = match &self.body {
            Body::Vit(vit) => vit.forward(pixels, images, &self.device),
            Body::ResNet(net, _) => net.forward(pixels, images, self.image, &self.device),
            Body::Lite(net, _) => net.forward(pixels, images, self.image, &self.device),
        };
        // Our own tensors are f32, so the conversion cannot fail.
        features.into_data().try_into_vec().unwrap_or_default()
    }
}
