//! Images to features.
//!
//! An [`Encoder`] is a pretrained network with the [`Transform`] that its images go through: [`decode`] the file, apply
//! the transform, encode. [`EncoderSpec`] finds one by its name and loads its weights; [`Embedding`] runs many files
//! through it.
//!
//! ```
//! use genus_vision::{Filter, Limits, Transform, decode};
//!
//! // Four grey pixels as a BMP: two headers, a palette of two greys, and a row of four bytes for each two pixels.
//! let mut file = b"BM".to_vec();
//! for field in [70, 0, 62, 40, 2, 2, 0x0008_0001, 0, 8, 0, 0, 2, 0, 0x0040_4040, 0x00C0_C0C0] {
//!     file.extend(u32::to_le_bytes(field));
//! }
//! file.extend([0, 1, 0, 0, 1, 0, 0, 0]);
//!
//! let image = decode(&file, &Limits::default())?;
//! assert_eq!((image.width(), image.height()), (2, 2));
//! assert_eq!(image.data(), [192, 192, 192, 64, 64, 64, 64, 64, 64, 192, 192, 192]);
//!
//! let transform = Transform {
//!     resize: 256,
//!     filter: Filter::Bicubic,
//!     crop: 224,
//!     mean: [0.485, 0.456, 0.406],
//!     std: [0.229, 0.224, 0.225],
//! };
//! let pixels = transform.apply(&image);
//! assert_eq!(pixels.len(), 3 * 224 * 224);
//! # Ok::<(), genus_vision::ImageError>(())
//! ```

mod catalogue;
mod device;
mod embed;
mod encoder;
mod engine;
mod hub;
mod image;
mod network_encoder;
mod networks;
mod onnx;
mod runner;
pub mod train;
mod weights;
mod workers;

pub use catalogue::{EncoderSpec, LoadError, MODELS, Model, SpecError, WeightsHome};
pub use embed::{Augmentation, ContentHash, Embedding, FeatureStore, NoStore};
pub use encoder::{EncodeError, Encoder, Fingerprint};
pub use genus_kernels::{Isa, IsaError, Precision};
pub use hub::{Hub, HubError, HubSettings};
pub use image::{Crop, Filter, ImageError, ImageSource, Limits, Rgb, Transform, decode, read_file, with_decoded};
pub use network_encoder::NetworkEncoder;
pub use networks::{Architecture, ArchitectureError, LiteKind, Positions, ResNetKind, VitShape};
#[cfg(feature = "onnx")]
pub use onnx::OnnxEncoder;
pub use onnx::{OnnxError, OnnxLength, OnnxModel, OnnxPooling, OnnxSettings, OnnxValue};
pub use weights::{Tensor, Weights, WeightsError, WeightsSource, read_weights, read_weights_from, to_safetensors};
