//! From the bytes of an image file to the numbers that a network takes, as Pillow and torchvision do it.
//!
//! Pretrained networks have seen images through those two, and their features shift when a pixel does: what is decoded
//! and resized here is the same to the bit, except where [`decode`] says otherwise.

mod decode;
mod gif;
mod jpeg;
mod orientation;
mod ppm;
mod resize;
mod source;
mod thumbnail;
mod tiff;
mod transform;
mod webp;

pub use decode::{ImageError, Limits, decode, read_file, with_decoded};
pub use resize::Filter;
pub use source::ImageSource;
pub use transform::{Crop, Transform};

/// A decoded image: eight bits a channel, red, green, blue, row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rgb {
    width: usize,
    height: usize,
    data: Vec<u8>,
}

impl Rgb {
    /// Takes pixels of three bytes each, row after row; `None` when their number is not width × height or zero.
    pub fn new(width: usize, height: usize, data: Vec<u8>) -> Option<Self> {
        let expected = width.checked_mul(height)?.checked_mul(3)?;
        (expected > 0 && data.len() == expected).then_some(Self { width, height, data })
    }

    /// The width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}
