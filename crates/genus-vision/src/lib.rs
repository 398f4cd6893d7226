//! Images to features.
//!
//! An [`Encoder`] is a pretrained network with the [`Transform`] that its images go through: [`decode`] the file, apply the
//! transform, encode.

mod encoder;
mod hub;
mod image;
mod weights;

pub use encoder::{EncodeError, Encoder, Fingerprint};
pub use hub::{Hub, HubError, HubSettings};
pub use image::{Filter, ImageError, Limits, Rgb, Transform, decode};
pub use weights::{Tensor, Weights, WeightsError, read_weights, read_weights_from};
