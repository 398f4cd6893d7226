//! Portable pixmaps: a size as text, then three bytes a pixel.

use super::Rgb;
use super::decode::{ImageError, ImageHeader, Limits};

/// Decodes a binary pixmap of eight bits a channel.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<(Rgb, ImageHeader), ImageError> {
    let damaged = |message: &str| ImageError::damaged("PPM", message);
    let mut rest = bytes.get(2..).unwrap_or_default();
    let mut numbers = [0u64; 3];
    for number in &mut numbers {
        let (value, after) = next_number(rest).ok_or_else(|| damaged("its header has no size"))?;
        *number = value;
        rest = after;
    }
    let [width, height, largest] = numbers;
    if largest != 255 {
        return Err(ImageError::Unsupported {
            format: "PPM",
            what: format!("values up to {largest}, where 255 is the only largest value that is read"),
        });
    }
    limits.check(width, height)?;
    // One byte of white space ends the header.
    let pixels = rest.get(1..).unwrap_or_default();
    let size = |n: u64| usize::try_from(n).map_err(|_| damaged("its size"));
    let (width, height) = (size(width)?, size(height)?);
    let length = width.saturating_mul(height).saturating_mul(3);
    let pixels = pixels
        .get(..length)
        .ok_or_else(|| damaged("it ends before its pixels do"))?;
    let image = Rgb::new(width, height, pixels.to_vec()).ok_or_else(|| damaged("an image without pixels"))?;
    Ok((image, ImageHeader { orientation: 1 }))
}

/// The next number of a header, behind white space and comments, and what follows it.
fn next_number(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    loop {
        match bytes {
            [b'#', ..] => {
                let end = bytes.iter().position(|&byte| byte == b'\n')?;
                bytes = &bytes[end..];
            }
            [byte, rest @ ..] if byte.is_ascii_whitespace() => bytes = rest,
            _ => break,
        }
    }
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((number, &bytes[digits..]))
}
