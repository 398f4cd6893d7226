//! Image files to pixels.

use thiserror::Error;

use super::Rgb;

/// How large an image may be, so that a hostile file cannot take the machine down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a file.
    pub file_bytes: u64,
    /// The most pixels of an image.
    pub pixels: u64,
}

impl Default for Limits {
    /// 256 MiB and 100 million pixels.
    fn default() -> Self {
        Self {
            file_bytes: 256 << 20,
            pixels: 100_000_000,
        }
    }
}

/// Why an image cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
}

/// Decodes the first frame of an image file, upright and in RGB.
pub fn decode(_bytes: &[u8], _limits: &Limits) -> Result<Rgb, ImageError> {
    Err(ImageError::Empty)
}
