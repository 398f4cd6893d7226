//! The encoders that have a name.

use std::fmt;

use genus_core::ranges;
use genus_kernels::{Isa, IsaError, Precision};
use thiserror::Error;

use crate::image::{Filter, Transform};
use crate::network_encoder::NetworkEncoder;
use crate::networks::{Architecture, ArchitectureError, LiteKind, Positions, ResNetKind, VitShape};
use crate::weights::{WeightsError, WeightsSource};

/// An encoder that has a name: its architecture, its transform, and where its weights are.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What it is good for, in a few words.
    pub good_for: &'static str,
    /// The network.
    pub architecture: Architecture,
    /// What images go through.
    pub transform: Transform,
    /// The number of features; 0 when only the weights tell.
    pub dim: usize,
    /// Where its weights are.
    pub home: WeightsHome,
    /// The licence of the weights.
    pub licence: &'static str,
}

/// Where the weights of an encoder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsHome {
    /// Built into this program.
    Embedded,
    /// On the Hugging Face hub.
    Hub {
        /// The repository.
        repo: &'static str,
        /// The file in it.
        file: &'static str,
    },
    /// None: they are trained, or supplied by the user.
    Own,
}

const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

const fn imagenet(filter: Filter) -> Transform {
    Transform {
        resize: 256,
        filter,
        crop: 224,
        mean: IMAGENET_MEAN,
        std: IMAGENET_STD,
    }
}

const fn lite(resize: usize, crop: usize) -> Transform {
    Transform {
        resize,
        filter: Filter::Bicubic,
        crop,
        // The numbers of the networks' own port from TensorFlow: (v − 127) / 128 on the scale of 0 to 255.
        mean: [127.0 / 255.0; 3],
        std: [128.0 / 255.0; 3],
    }
}

const fn vit(patch: usize, dim: usize, depth: usize, registers: usize, layer_scale: bool) -> Architecture {
    Architecture::Vit {
        shape: Some(VitShape {
            patch,
            dim,
            depth,
            heads: dim / 64,
            hidden: 4 * dim,
            registers,
            layer_scale,
            gated: false,
        }),
        positions: if registers > 0 {
            Positions::Smoothed
        } else {
            Positions::Dino
        },
        heads: None,
    }
}

const fn dino(
    name: &'static str,
    [about, good_for]: [&'static str; 2],
    repo: &'static str,
    patch: usize,
    dim: usize,
) -> Model {
    Model {
        name,
        about,
        good_for,
        architecture: vit(patch, dim, 12, 0, false),
        transform: imagenet(Filter::Bicubic),
        dim,
        home: WeightsHome::Hub {
            repo,
            file: "pytorch_model.bin",
        },
        licence: "Apache-2.0",
    }
}

const fn dinov2(
    name: &'static str,
    about: &'static str,
    repo: &'static str,
    dim: usize,
    depth: usize,
    registers: usize,
) -> Model {
    Model {
        name,
        about,
        good_for: "images of all kinds, also kinds that differ in details",
        architecture: vit(14, dim, depth, registers, true),
        transform: imagenet(Filter::Bicubic),
        dim,
        home: WeightsHome::Hub {
            repo,
            file: "model.safetensors",
        },
        licence: "Apache-2.0",
    }
}

/// A DINOv3 transformer: the length of its tokens, its blocks, heads, and the length of its inner layer.
const fn dinov3(
    name: &'static str,
    about: &'static str,
    repo: &'static str,
    [dim, depth, heads, hidden]: [usize; 4],
    gated: bool,
) -> Model {
    Model {
        name,
        about,
        good_for: "images of all kinds, also kinds that differ in details (DINOv3 License)",
        architecture: Architecture::Vit {
            shape: Some(VitShape {
                patch: 16,
                dim,
                depth,
                heads,
                hidden,
                registers: 4,
                layer_scale: true,
                gated,
            }),
            positions: Positions::Rotary,
            heads: None,
        },
        transform: Transform {
            resize: 256,
            crop: 256,
            ..imagenet(Filter::Bicubic)
        },
        dim,
        home: WeightsHome::Hub {
            repo,
            file: "model.safetensors",
        },
        licence: "DINOv3 License",
    }
}

/// All of them: the default first, then the paper's.
pub const MODELS: &[Model] = &[
    #[cfg(feature = "embedded")]
    Model {
        name: "efficientnet-lite2-int8",
        about: "EfficientNet-Lite2 with 8-bit weights, built into this program",
        good_for: "photographs, at once: nothing to fetch",
        architecture: Architecture::Lite(LiteKind::Lite2),
        transform: lite(292, 260),
        dim: 1280,
        home: WeightsHome::Embedded,
        licence: "Apache-2.0",
    },
    dino(
        "dino-vitb16",
        ["DINO ViT-B/16", "the figures of the paper"],
        "facebook/dino-vitb16",
        16,
        768,
    ),
    dino(
        "dino-vitb8",
        ["DINO ViT-B/8", "small details, with time to spare"],
        "facebook/dino-vitb8",
        8,
        768,
    ),
    dino(
        "dino-vits16",
        ["DINO ViT-S/16", "what dino-vitb16 is for, at a quarter of the work"],
        "facebook/dino-vits16",
        16,
        384,
    ),
    dino(
        "dino-vits8",
        ["DINO ViT-S/8", "small details"],
        "facebook/dino-vits8",
        8,
        384,
    ),
    dinov2("dinov2-small", "DINOv2 ViT-S/14", "facebook/dinov2-small", 384, 12, 0),
    dinov2("dinov2-base", "DINOv2 ViT-B/14", "facebook/dinov2-base", 768, 12, 0),
    dinov2("dinov2-large", "DINOv2 ViT-L/14", "facebook/dinov2-large", 1024, 24, 0),
    dinov2(
        "dinov2-small-reg",
        "DINOv2 ViT-S/14 with registers",
        "facebook/dinov2-with-registers-small",
        384,
        12,
        4,
    ),
    dinov2(
        "dinov2-base-reg",
        "DINOv2 ViT-B/14 with registers",
        "facebook/dinov2-with-registers-base",
        768,
        12,
        4,
    ),
    dinov2(
        "dinov2-large-reg",
        "DINOv2 ViT-L/14 with registers",
        "facebook/dinov2-with-registers-large",
        1024,
        24,
        4,
    ),
    dinov3(
        "dinov3-small",
        "DINOv3 ViT-S/16",
        "timm/vit_small_patch16_dinov3.lvd1689m",
        [384, 12, 6, 1536],
        false,
    ),
    dinov3(
        "dinov3-small-plus",
        "DINOv3 ViT-S+/16",
        "timm/vit_small_plus_patch16_dinov3.lvd1689m",
        [384, 12, 6, 1536],
        true,
    ),
    dinov3(
        "dinov3-base",
        "DINOv3 ViT-B/16",
        "timm/vit_base_patch16_dinov3.lvd1689m",
        [768, 12, 12, 3072],
        false,
    ),
    dinov3(
        "dinov3-large",
        "DINOv3 ViT-L/16",
        "timm/vit_large_patch16_dinov3.lvd1689m",
        [1024, 24, 16, 4096],
        false,
    ),
    dinov3(
        "dinov3-huge-plus",
        "DINOv3 ViT-H+/16",
        "timm/vit_huge_plus_patch16_dinov3.lvd1689m",
        [1280, 32, 20, 5120],
        true,
    ),
    Model {
        name: "resnet18",
        about: "ResNet-18 trained on ImageNet by torchvision",
        good_for: "comparisons with other work",
        architecture: Architecture::ResNet(ResNetKind::ResNet18),
        transform: imagenet(Filter::Bilinear),
        dim: 512,
        home: WeightsHome::Hub {
            repo: "timm/resnet18.tv_in1k",
            file: "model.safetensors",
        },
        licence: "BSD-3-Clause",
    },
    Model {
        name: "resnet50",
        about: "ResNet-50 trained on ImageNet by torchvision",
        good_for: "comparisons with other work",
        architecture: Architecture::ResNet(ResNetKind::ResNet50),
        transform: imagenet(Filter::Bilinear),
        dim: 2048,
        home: WeightsHome::Hub {
            repo: "timm/resnet50.tv_in1k",
            file: "model.safetensors",
        },
        licence: "BSD-3-Clause",
    },
    Model {
        name: "efficientnet-lite0",
        about: "EfficientNet-Lite0",
        good_for: "photographs on a slow processor",
        architecture: Architecture::Lite(LiteKind::Lite0),
        transform: lite(256, 224),
        dim: 1280,
        home: WeightsHome::Hub {
            repo: "timm/tf_efficientnet_lite0.in1k",
            file: "model.safetensors",
        },
        licence: "Apache-2.0",
    },
    Model {
        name: "efficientnet-lite2",
        about: "EfficientNet-Lite2",
        good_for: "photographs; the built-in encoder before quantisation",
        architecture: Architecture::Lite(LiteKind::Lite2),
        transform: lite(292, 260),
        dim: 1280,
        home: WeightsHome::Hub {
            repo: "timm/tf_efficientnet_lite2.in1k",
            file: "model.safetensors",
        },
        licence: "Apache-2.0",
    },
    Model {
        name: "conv4",
        about: "four convolutions, to be trained with `genus train`",
        good_for: "small images such as drawn characters",
        architecture: Architecture::Conv4(64),
        transform: Transform {
            resize: 32,
            filter: Filter::Bilinear,
            crop: 28,
            mean: [0.5; 3],
            std: [0.5; 3],
        },
        dim: 64,
        home: WeightsHome::Own,
        licence: "that of the weights",
    },
    Model {
        name: "vit",
        about: "any vision transformer; its sizes come from its weights",
        good_for: "weights of your own",
        architecture: Architecture::Vit {
            shape: None,
            positions: Positions::Dino,
            heads: None,
        },
        transform: imagenet(Filter::Bicubic),
        dim: 0,
        home: WeightsHome::Own,
        licence: "that of the weights",
    },
];

impl Model {
    /// How many values of the network training can change; `None` where only the weights tell.
    pub fn parameters(&self) -> Option<u64> {
        // DINOv2 comes with positions for larger images.
        let image = match self.architecture {
            Architecture::Vit {
                shape: Some(VitShape { patch: 14, .. }),
                ..
            } => 518,
            _ => self.transform.crop,
        };
        self.architecture.parameters(image)
    }

    /// How many bytes are fetched from the hub, to a percent: the network in f32 and, where one comes along, its classifier for the
    /// thousand classes of ImageNet. `None` where nothing is fetched.
    pub fn download(&self) -> Option<u64> {
        let WeightsHome::Hub { .. } = self.home else {
            return None;
        };
        let classifier = match self.architecture {
            Architecture::ResNet(_) | Architecture::Lite(_) => 1000 * (self.dim as u64 + 1),
            _ => 0,
        };
        Some(4 * (self.parameters()? + classifier))
    }

    /// The default encoder: the built-in one, if there is one, or the paper's.
    pub const DEFAULT: &'static str = MODELS[0].name;
    /// The encoder of the paper.
    pub const PAPER: &'static str = "dino-vitb16";
}

/// An encoder by text: a name and what is different about it, as in `dinov2-small:size=518` or `vit:heads=6`.
#[derive(Clone, Copy, Debug)]
pub struct EncoderSpec {
    /// The entry of the catalogue.
    pub model: &'static Model,
    /// Its architecture, with what was asked for.
    pub architecture: Architecture,
    /// Its transform, with what was asked for.
    pub transform: Transform,
}

/// Why a text names no encoder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No such name.
    #[error("there is no encoder `{name}`{}", near(name))]
    Unknown {
        /// The name.
        name: String,
    },
    /// A parameter that this encoder does not have.
    #[error("the encoder `{name}` has no parameter `{key}`; it has {known}")]
    Parameter {
        /// The encoder.
        name: &'static str,
        /// The parameter.
        key: String,
        /// Those that it has.
        known: &'static str,
    },
    /// A network that no machine would train.
    #[error("a network of these sizes has {values} values; it may have {MOST_VALUES}")]
    TooLarge {
        /// The values of its blocks.
        values: u64,
    },
    /// A value that a parameter cannot have.
    #[error("`{value}` is no value for the parameter `{key}`; {expected}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// The value.
        value: String,
        /// What it may be.
        expected: String,
    },
}

/// The encoder whose name is most like a misspelt one, if any is like it at all.
fn near(name: &str) -> String {
    /// Letters swapped or missing leave more than this in common; other words less.
    const ALIKE: f64 = 0.8;
    let likeness = |model: &&Model| strsim::jaro_winkler(&name.to_lowercase(), model.name);
    let similar = MODELS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let similar = similar.filter(|model| likeness(model) >= ALIKE);
    similar.map_or(String::new(), |model| format!("; did you mean `{}`?", model.name))
}

/// Why an encoder could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The file is not meant for this encoder.
    #[error("{weights} is not the weights of {encoder}: {source}")]
    Architecture {
        /// The file.
        weights: WeightsSource,
        /// The encoder.
        encoder: String,
        /// What does not fit.
        source: ArchitectureError,
    },
    /// The network does not run in the precision that was asked for.
    #[error("{encoder} does not run in bf16, only vision transformers do; use f32")]
    Precision {
        /// The encoder.
        encoder: String,
    },
}

/// The most values of a network's blocks: four gigabytes of them.
const MOST_VALUES: u64 = 1 << 30;

impl EncoderSpec {
    /// Finds the encoder that a text names.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let model = MODELS
            .iter()
            .find(|model| model.name == name)
            .ok_or_else(|| SpecError::Unknown { name: name.to_owned() })?;
        let mut spec = Self {
            model,
            architecture: model.architecture,
            transform: model.transform,
        };
        for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            spec.set(key, value)?;
        }
        match spec.values() {
            values if values > MOST_VALUES => Err(SpecError::TooLarge { values }),
            _ => Ok(spec),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let in_range = |key: &'static str, range: &str, what: &str| {
            let most = ranges::find(range).map_or(u64::MAX, |range| range.most);
            let number = value.parse().ok().filter(|&number| 0 < number && number as u64 <= most);
            number.ok_or_else(|| SpecError::Value {
                key,
                value: value.to_owned(),
                expected: format!("it is {what} from 1 to {most}"),
            })
        };
        let number = |key, what| in_range(key, key, what);
        match (key, &mut self.architecture) {
            ("size", _) => {
                let size = number("size", "a number of pixels")?;
                // The margin around the crop stays the share of the image that it was.
                let Transform { resize, crop, .. } = self.model.transform;
                self.transform.resize = size * resize / crop;
                self.transform.crop = size;
            }
            ("heads", Architecture::Vit { shape, heads, .. }) => {
                let count = number("heads", "a number of attention heads")?;
                *heads = Some(count);
                if let Some(shape) = shape {
                    shape.heads = count;
                }
            }
            ("patch" | "dim" | "depth" | "hidden", Architecture::Vit { shape, heads, .. }) if self.model.dim == 0 => {
                // A small one, until the text says otherwise.
                let shape = shape.get_or_insert(VitShape {
                    patch: 16,
                    dim: 192,
                    depth: 12,
                    heads: heads.unwrap_or(3),
                    hidden: 768,
                    registers: 0,
                    layer_scale: false,
                    gated: false,
                });
                match key {
                    "patch" => shape.patch = number("patch", "a number of pixels")?,
                    "dim" => {
                        shape.dim = number("dim", "the length of a token")?;
                        shape.hidden = 4 * shape.dim;
                    }
                    "depth" => shape.depth = number("depth", "a number of blocks")?,
                    _ => shape.hidden = in_range("hidden", "network-hidden", "the length of a layer")?,
                }
            }
            ("width", Architecture::Conv4(width)) => {
                *width = number("width", "a number of channels")?;
            }
            ("positions", Architecture::Vit { positions, .. }) => {
                let found = Positions::ALL.into_iter().find(|positions| positions.name() == value);
                *positions = found.ok_or_else(|| SpecError::Value {
                    key: "positions",
                    value: value.to_owned(),
                    expected: "it is dino, smoothed (timm), plain (Hugging Face transformers) or rotary (DINOv3)"
                        .to_owned(),
                })?;
            }
            _ => {
                return Err(SpecError::Parameter {
                    name: self.model.name,
                    key: key.to_owned(),
                    known: match self.architecture {
                        Architecture::Vit { .. } if self.model.dim == 0 => {
                            "size, heads, positions, patch, dim, depth and hidden"
                        }
                        Architecture::Vit { .. } => "size, heads and positions",
                        Architecture::Conv4(_) => "size and width",
                        _ => "size",
                    },
                });
            }
        }
        Ok(())
    }

    /// How many values the matrices of its blocks have, where the text says how large they are.
    fn values(&self) -> u64 {
        match self.architecture {
            Architecture::Vit { shape: Some(shape), .. } => {
                let [dim, hidden, depth] = [shape.dim, shape.hidden, shape.depth].map(|number| number as u64);
                let matrices = if shape.gated { 3 } else { 2 };
                depth * (4 * dim * dim + matrices * dim * hidden)
            }
            Architecture::Conv4(width) => 3 * 9 * (width as u64).pow(2),
            _ => 0,
        }
    }

    /// What it runs on when a precision is asked for, or none: see [`Isa::from_env`].
    pub fn isa(&self, precision: Option<Precision>) -> Result<Isa, IsaError> {
        Isa::from_env(precision)
    }

    /// The encoder with these weights, to run on `isa`; nothing else is read, and no network asked.
    pub fn load(&self, weights: impl Into<WeightsSource>, isa: Isa) -> Result<NetworkEncoder, LoadError> {
        let source = weights.into();
        let weights = source.read()?;
        let encoder = NetworkEncoder::new(self.architecture, self.transform, weights, isa);
        encoder.map_err(|problem| match problem {
            ArchitectureError::Precision => LoadError::Precision {
                encoder: self.to_string(),
            },
            problem => LoadError::Architecture {
                weights: source,
                encoder: self.to_string(),
                source: problem,
            },
        })
    }
}

/// The text that gives this encoder again.
impl fmt::Display for EncoderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parameters = Vec::new();
        let mut differs = |key: &str, value: String, usual: String| {
            if value != usual {
                parameters.push(format!("{key}={value}"));
            }
        };
        let usual = self.model;
        differs(
            "size",
            self.transform.crop.to_string(),
            usual.transform.crop.to_string(),
        );
        match (self.architecture, usual.architecture) {
            (
                Architecture::Vit {
                    shape,
                    positions,
                    heads,
                },
                Architecture::Vit {
                    shape: usual_shape,
                    positions: usual_positions,
                    ..
                },
            ) => {
                if let (Some(shape), None) = (shape, usual_shape) {
                    for (key, value) in [
                        ("patch", shape.patch),
                        ("dim", shape.dim),
                        ("depth", shape.depth),
                        ("hidden", shape.hidden),
                    ] {
                        differs(key, value.to_string(), String::new());
                    }
                }
                if let Some(heads) = heads {
                    differs("heads", heads.to_string(), String::new());
                }
                differs("positions", positions.name().into(), usual_positions.name().into());
            }
            (Architecture::Conv4(width), Architecture::Conv4(usual)) => {
                differs("width", width.to_string(), usual.to_string());
            }
            _ => {}
        }
        f.write_str(self.model.name)?;
        if !parameters.is_empty() {
            write!(f, ":{}", parameters.join(","))?;
        }
        Ok(())
    }
}
