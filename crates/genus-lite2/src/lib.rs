//! The image encoder inside Genus: EfficientNet-Lite2 with 8-bit weights.
//!
//! It is a file in a crate of its own, so that whoever brings another encoder can leave it out: the feature `embedded` of
//! `genus-vision`.
//!
//! ```
//! // A safetensors file: the length of its header, and the header.
//! let header = u64::from_le_bytes(genus_lite2::WEIGHTS[..8].try_into().unwrap());
//! assert_eq!(genus_lite2::WEIGHTS[8], b'{');
//! assert!(header < genus_lite2::WEIGHTS.len() as u64);
//! ```

/// The weights: 8-bit kernels, each with a scale for every output channel, and batch normalisations in f32.
pub const WEIGHTS: &[u8] = include_bytes!("../weights.safetensors");

/// How far items of one class lie apart in its features: what `genus calibrate` learnt from base classes of several kinds of images.
pub const CALIBRATION: &[u8] = include_bytes!("../calibration.safetensors");
