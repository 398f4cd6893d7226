//! Small pictures of images, as files that a browser shows.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use jpeg_encoder::{ColorType, Encoder};

use super::Rgb;
use super::resize::{Filter, resize};

/// Up to this side every pixel counts, and a PNG of so few is small.
const FEW_PIXELS: usize = 32;
/// Below it faces and feathers begin to smear, above it files grow for nothing that is seen.
const QUALITY: u8 = 78;

impl Rgb {
    /// The image as a small file: a JPEG whose longer side is at most `side` pixels, or, where the image has few pixels, a
    /// PNG of just these. `None` when it has no such form.
    pub fn thumbnail(&self, side: usize) -> Option<Vec<u8>> {
        let longer = self.width().max(self.height());
        let mut bytes = Vec::new();
        if longer <= FEW_PIXELS {
            let (width, height) = (self.width() as u32, self.height() as u32);
            let encoder = PngEncoder::new(&mut bytes);
            encoder
                .write_image(self.data(), width, height, ExtendedColorType::Rgb8)
                .ok()?;
            return Some(bytes);
        }
        let side = side.clamp(1, longer);
        let scaled = |length: usize| ((length as f64 * side as f64 / longer as f64).round() as usize).max(1);
        let size = (scaled(self.width()), scaled(self.height()));
        let pixels = resize(self, Filter::Bicubic, size, 0..size.0, 0..size.1);
        let mut encoder = Encoder::new(&mut bytes, QUALITY);
        encoder.set_optimized_huffman_tables(true);
        let (width, height) = (u16::try_from(size.0).ok()?, u16::try_from(size.1).ok()?);
        encoder.encode(&pixels, width, height, ColorType::Rgb).ok()?;
        Some(bytes)
    }
}
