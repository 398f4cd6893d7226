//! The first page of a TIFF.

use std::borrow::Cow;
use std::io::Cursor;

use ::tiff::decoder::{Decoder, DecodingResult};
use ::tiff::tags::Tag;
use ::tiff::{ColorType, TiffError};

use super::decode::{ImageError, ImageHeader, Limits, inked};
use super::{Rgb, orientation};

fn fault(error: TiffError) -> ImageError {
    match error {
        TiffError::UnsupportedError(error) => unsupported(error),
        error => ImageError::damaged("TIFF", error),
    }
}

fn unsupported(what: impl ToString) -> ImageError {
    ImageError::Unsupported {
        format: "TIFF",
        what: what.to_string(),
    }
}

/// How the decoder calls grey with a second channel that the file does not call transparency.
const GREY_AND_MORE: ColorType = ColorType::Multiband {
    bit_depth: 8,
    num_samples: 2,
};

/// Decodes the first page.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<(Rgb, ImageHeader), ImageError> {
    let (bytes, indexed) = without_palette(bytes);
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(fault)?;
    let (width, height) = decoder.dimensions().map_err(fault)?;
    limits.check(width.into(), height.into())?;
    let mut memory = ::tiff::decoder::Limits::default();
    // Up to four samples of 16 bits a pixel, and room for the tables and for a tile that is larger than the image.
    let most = (width as usize)
        .saturating_mul(height as usize)
        .saturating_mul(8)
        .saturating_add(16 << 20);
    memory.decoding_buffer_size = most;
    memory.intermediate_buffer_size = most;
    let mut decoder = decoder.with_limits(memory);

    let colour = decoder.colortype().map_err(fault)?;
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten();
    let orientation = orientation.and_then(|value| u8::try_from(value).ok()).unwrap_or(1);
    let palette = match indexed {
        true => {
            let map = decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap).map_err(fault)?;
            map.ok_or_else(|| ImageError::damaged("TIFF", "its palette is missing"))?
        }
        false => Vec::new(),
    };
    let mut samples = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut samples).map_err(fault)?;
    if samples.as_buffer(0).as_bytes().len() < layout.complete_len {
        return Err(ImageError::damaged(
            "TIFF",
            "it needs more memory than an image of its size should",
        ));
    }
    let (width, height) = (width as usize, height as usize);
    let samples = match samples {
        DecodingResult::U8(samples) => samples,
        // The upper half, as of any other format.
        DecodingResult::U16(samples) => samples.into_iter().map(|sample| (sample >> 8) as u8).collect(),
        _ => return Err(unsupported("samples that are not whole numbers of at most 16 bits")),
    };
    let page = TiffPage {
        width,
        height,
        samples,
        planes: layout.planes,
    };
    let data = match colour {
        ColorType::Gray(bits @ (1 | 2 | 4 | 8)) if indexed => {
            let entries = 1 << bits;
            if palette.len() < 3 * entries {
                return Err(ImageError::damaged("TIFF", "its palette is too short"));
            }
            let channel = |index: u8, channel: usize| (palette[channel * entries + usize::from(index)] >> 8) as u8;
            page.packed(bits, |index| [channel(index, 0), channel(index, 1), channel(index, 2)])
        }
        ColorType::Gray(bits @ (1 | 2 | 4 | 8)) => {
            // All ones are white.
            let scale = 255 / ((1u16 << bits) - 1) as u8;
            page.packed(bits, |index| [index * scale; 3])
        }
        ColorType::Gray(16) if !indexed => page.map(1, |sample| [sample[0]; 3]),
        ColorType::GrayA(8 | 16) | GREY_AND_MORE => page.map(2, |sample| [sample[0]; 3]),
        ColorType::RGB(8 | 16) => page.map(3, |sample| [sample[0], sample[1], sample[2]]),
        ColorType::RGBA(8 | 16) => page.map(4, |sample| [sample[0], sample[1], sample[2]]),
        ColorType::CMYK(8 | 16) => page.map(4, |sample| {
            let paper = 255 - sample[3];
            [sample[0], sample[1], sample[2]].map(|ink| inked(ink, paper))
        }),
        other => return Err(unsupported(format!("{other:?}"))),
    };
    let image = data.and_then(|data| Rgb::new(width, height, data));
    let image = image.ok_or_else(|| ImageError::damaged("TIFF", "it has fewer samples than pixels"))?;
    Ok((image, ImageHeader { orientation }))
}

/// Declares the indices of an image with a palette to be shades of grey; says whether it did.
///
/// The decoder refuses palettes, though it has no trouble with the indices.
fn without_palette(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    const PHOTOMETRIC: u16 = 262;
    let Some((at, 3)) = orientation::field(bytes, PHOTOMETRIC) else {
        return (bytes.into(), false);
    };
    let mut bytes = bytes.to_vec();
    // Three becomes one, whichever byte of the number it is in.
    let value = bytes[at..].iter_mut().take(4).find(|byte| **byte == 3);
    value.into_iter().for_each(|byte| *byte = 1);
    (bytes.into(), true)
}

struct TiffPage {
    width: usize,
    height: usize,
    samples: Vec<u8>,
    /// More than one when the channels come one after the other instead of pixel by pixel.
    planes: usize,
}

impl TiffPage {
    /// The pixels from `channels` samples each.
    fn map(&self, channels: usize, pixel: impl Fn(&[u8; 4]) -> [u8; 3]) -> Option<Vec<u8>> {
        let count = self.width.checked_mul(self.height)?;
        let (across, along) = match self.planes {
            1 => (1, channels),
            _ => (count, 1),
        };
        if self.samples.len() < count.checked_mul(channels)? {
            return None;
        }
        let mut data = Vec::with_capacity(count * 3);
        for at in 0..count {
            let mut sample = [0; 4];
            for (channel, sample) in sample[..channels].iter_mut().enumerate() {
                *sample = self.samples[at * along + channel * across];
            }
            data.extend(pixel(&sample));
        }
        Some(data)
    }

    /// The pixels from one sample each of up to eight bits; every row begins with a new byte.
    fn packed(&self, bits: u8, pixel: impl Fn(u8) -> [u8; 3]) -> Option<Vec<u8>> {
        let bits = usize::from(bits);
        let stride = (self.width * bits).div_ceil(8);
        if self.samples.len() < stride.checked_mul(self.height)? {
            return None;
        }
        let mut data = Vec::with_capacity(self.width * self.height * 3);
        for row in self.samples.chunks_exact(stride).take(self.height) {
            for x in 0..self.width {
                let byte = u16::from(row[x * bits / 8]);
                let value = byte >> (8 - bits - x * bits % 8) & ((1 << bits) - 1);
                data.extend(pixel(value as u8));
            }
        }
        Some(data)
    }
}
