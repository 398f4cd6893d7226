//! What is read of a WebP before its decoder sees it.

use super::decode::{ImageError, Limits};
use super::orientation;

/// Finds how the image is to be turned, and checks the size of every frame.
///
/// The decoder would allocate what the header of a frame or the length of a chunk asks for, whatever the canvas is.
pub(super) fn inspect(bytes: &[u8], limits: &Limits) -> Result<Option<u8>, ImageError> {
    let (mut exif, mut xmp) = (None, None);
    for (name, data) in chunks(bytes.get(12..).unwrap_or_default()) {
        match name {
            b"EXIF" => exif = exif.or_else(|| orientation::from_exif(data)),
            b"XMP " => xmp = xmp.or_else(|| orientation::from_xmp(data)),
            // A frame of an animation: its place, its size and its time come before its own chunks.
            b"ANMF" => {
                for (name, data) in chunks(data.get(16..).unwrap_or_default()) {
                    check(name, data, limits)?;
                }
            }
            _ => check(name, data, limits)?,
        }
    }
    Ok(exif.or(xmp))
}

/// Name and content of one chunk after the other; the last may be cut off.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (name, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let data = &rest[..length.min(rest.len())];
        // Chunks begin at even places.
        bytes = rest.get(length.saturating_add(length % 2)..).unwrap_or_default();
        Some((name, data))
    })
}

/// Checks the size in the header of a chunk of pixels.
fn check(name: &[u8; 4], data: &[u8], limits: &Limits) -> Result<(), ImageError> {
    let (width, height) = match (name, data) {
        (b"VP8 ", &[_, _, _, _, _, _, a, b, c, d, ..]) => {
            (u16::from_le_bytes([a, b]) & 0x3FFF, u16::from_le_bytes([c, d]) & 0x3FFF)
        }
        (b"VP8L", &[_, a, b, c, d, ..]) => {
            let sides = u32::from_le_bytes([a, b, c, d]);
            ((sides & 0x3FFF) as u16 + 1, (sides >> 14 & 0x3FFF) as u16 + 1)
        }
        _ => return Ok(()),
    };
    limits.check(width.into(), height.into())
}
