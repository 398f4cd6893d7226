//! What every encoder offers, whatever computes it.

use std::fmt;

use thiserror::Error;

use crate::image::Transform;

/// Images in, features out.
///
/// The features of an image depend on that image alone: not on the others of a batch, nor on the number of threads.
pub trait Encoder: Send + Sync {
    /// The number of features of an image.
    fn dim(&self) -> usize;

    /// What an image goes through before it is encoded.
    fn transform(&self) -> &Transform;

    /// What tells these features from those of another encoder.
    fn fingerprint(&self) -> &Fingerprint;

    /// The features of some transformed images, a row an image.
    ///
    /// `pixels` holds whole images, one after the other, each as [`Transform::apply`] gives it.
    fn encode(&self, pixels: &[f32]) -> Result<Vec<f32>, EncodeError>;
}

/// Fails unless `pixels` are those of whole images of a transform.
pub(crate) fn check_pixels(pixels: &[f32], transform: &Transform) -> Result<(), EncodeError> {
    let (values, image) = (pixels.len(), transform.values());
    match values.is_multiple_of(image) {
        true => Ok(()),
        false => Err(EncodeError::Pixels { values, image }),
    }
}

/// Features, if all of them are finite.
pub(crate) fn finite(features: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
    match features.iter().all(|value| value.is_finite()) {
        true => Ok(features),
        false => Err(EncodeError::NotFinite),
    }
}

/// What tells the features of one encoder from those of another: architecture, weights and transform.
///
/// ```text
/// vit-b16/224 weights 5f3a… resize 256 bicubic, crop 224, …
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Puts a fingerprint together.
    pub fn new(architecture: &str, weights: &blake3::Hash, transform: &Transform) -> Self {
        let weights = weights.to_hex();
        Self(format!("{architecture} weights {} {transform}", &weights[..32]))
    }

    /// The fingerprint as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why images could not be encoded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The pixels are not those of whole images.
    #[error("{values} values are not whole images of {image} values each")]
    Pixels {
        /// The number of values given.
        values: usize,
        /// The number of values of an image.
        image: usize,
    },
    /// The network gave a number that is not finite.
    #[error("the network gave NaN or an infinite number; the weights are damaged or not meant for this architecture")]
    NotFinite,
    /// The encoder did not give a row an image.
    #[error("the encoder gave {found} values for {images} images, not {dim} each")]
    Rows {
        /// The number of values that it gave.
        found: usize,
        /// The number of images.
        images: usize,
        /// The number of features of an image.
        dim: usize,
    },
    /// What runs the network failed.
    #[error("the network cannot be run: {problem}")]
    Runtime {
        /// What it said.
        problem: String,
    },
    /// The machine has too little left to read an image that may well be good.
    #[error("{}: {source}; close other programs, or raise the limits of this one (ulimit)", path.display())]
    Shortage {
        /// The image.
        path: std::path::PathBuf,
        /// What the operating system said.
        source: crate::image::ImageError,
    },
}
