//! Image files to pixels.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use image::codecs::{bmp::BmpDecoder, png::PngDecoder, webp::WebPDecoder};
use image::{ColorType, ImageDecoder};
use thiserror::Error;

use super::{Rgb, gif, jpeg, orientation, ppm, tiff, webp};

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

impl Limits {
    /// Refuses an image by the size in its header.
    pub(super) fn check(&self, width: u64, height: u64) -> Result<(), ImageError> {
        if width.saturating_mul(height) <= self.pixels {
            return Ok(());
        }
        Err(ImageError::TooManyPixels {
            width,
            height,
            limit: self.pixels,
        })
    }

    /// Refuses a file by its size.
    fn check_file(&self, bytes: u64) -> Result<(), ImageError> {
        if bytes <= self.file_bytes {
            return Ok(());
        }
        Err(ImageError::FileTooLarge {
            bytes,
            limit: self.file_bytes,
        })
    }

    /// The most bytes that a decoder may allocate: a largest image at 16 bits a channel, and room to work.
    pub(super) fn memory(&self) -> u64 {
        self.pixels.saturating_mul(8).saturating_add(64 << 20)
    }
}

/// Why an image cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It does not begin as any of the formats does.
    #[error("not an image in a known format (JPEG, PNG, WebP, GIF, BMP, TIFF or PPM)")]
    UnknownFormat,
    /// It is cut off or its data contradict themselves.
    #[error("damaged {format}: {message}")]
    Damaged {
        /// The name of the format.
        format: &'static str,
        /// What the decoder says.
        message: String,
    },
    /// It uses a part of its format that is not read.
    #[error("this kind of {format} is not supported: {what}")]
    Unsupported {
        /// The name of the format.
        format: &'static str,
        /// What it uses.
        what: String,
    },
    /// It has more pixels than allowed.
    #[error("the image has {width} × {height} pixels, more than the limit of {limit}")]
    TooManyPixels {
        /// The width in pixels.
        width: u64,
        /// The height in pixels.
        height: u64,
        /// The most pixels allowed.
        limit: u64,
    },
    /// The file is larger than allowed.
    #[error("the file has {bytes} bytes, more than the limit of {limit}")]
    FileTooLarge {
        /// The size of the file.
        bytes: u64,
        /// The most bytes allowed.
        limit: u64,
    },
    /// It is a folder, a pipe or a device.
    #[error("not a file")]
    NotAFile,
    /// It cannot be read from disk.
    #[error("cannot read the file: {0}")]
    Unreadable(#[from] io::Error),
}

impl ImageError {
    /// Whether it is not the file that is to blame but the machine, which has too few file handles or too little memory left.
    pub fn is_shortage(&self) -> bool {
        matches!(self, ImageError::Unreadable(error) if genus_files::is_shortage(error))
    }

    pub(super) fn damaged(format: &'static str, message: impl ToString) -> Self {
        ImageError::Damaged {
            format,
            message: message.to_string(),
        }
    }
}

/// What a file says of its image beside the pixels.
pub(super) struct ImageHeader {
    /// How the image is to be turned, as EXIF numbers it.
    pub(super) orientation: u8,
}

/// Reads a file of an image into memory, unless it is larger than allowed or no regular file.
///
/// A file that is too large is refused without being read; a pipe or a device is refused without waiting for it.
pub fn read_file(path: impl AsRef<Path>, limits: &Limits) -> Result<Vec<u8>, ImageError> {
    // Asked before opening: to open a pipe is to wait for its writer.
    if !std::fs::metadata(&path)?.is_file() {
        return Err(ImageError::NotAFile);
    }
    let file = File::open(&path)?;
    let size = file.metadata()?.len();
    limits.check_file(size)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // The file may grow while it is read.
    file.take(limits.file_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    limits.check_file(bytes.len() as u64)?;
    Ok(bytes)
}

/// Decodes the first frame of an image file, upright and in RGB.
///
/// The format is found by the content: JPEG, PNG, WebP, GIF, BMP, TIFF or binary PPM. The pixels are those that Pillow gives for
/// `ImageOps.exif_transpose(Image.open(file)).convert("RGB")`: transparency is dropped, not blended, and CMYK is
/// converted without a colour profile. Two things differ on purpose. Grey of 16 bits keeps its upper eight, where
/// Pillow turns everything above 255 white; and damaged data are an error, where Pillow may show a part. Lossy WebP
/// and JPEG inside TIFF are decoded by libraries whose rounding is their own: they may be off by a little.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Rgb, ImageError> {
    limits.check_file(bytes.len() as u64)?;
    let (image, header) = match bytes {
        [] => return Err(ImageError::Empty),
        [0xFF, 0xD8, 0xFF, ..] => jpeg::decode(bytes, limits)?,
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => {
            let decoder = PngDecoder::with_limits(Cursor::new(bytes), memory(limits));
            generic("PNG", decoder, limits)?
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            let orientation = webp::inspect(bytes, limits)?.unwrap_or(1);
            let (image, _) = generic("WebP", WebPDecoder::new(Cursor::new(bytes)), limits)?;
            (image, ImageHeader { orientation })
        }
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => gif::decode(bytes, limits)?,
        [b'P', b'6', b'\t'..=b'\r' | b' ' | b'#', ..] => ppm::decode(bytes, limits)?,
        [b'B', b'M', ..] => generic("BMP", BmpDecoder::new(Cursor::new(bytes)), limits)?,
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => tiff::decode(bytes, limits)?,
        _ => return Err(ImageError::UnknownFormat),
    };
    Ok(orientation::upright(image, header.orientation))
}

/// Images of more pixels than this are decoded one at a time.
const LARGE: u64 = 16_000_000;
static LARGE_ONES: Mutex<()> = Mutex::new(());

/// Decodes an image for one use, on any number of threads: of images of more than 16 million pixels there is one in memory at a
/// time, however many threads decode.
pub fn with_decoded<T>(bytes: &[u8], limits: &Limits, take: impl FnOnce(Rgb) -> T) -> Result<T, ImageError> {
    let small = Limits {
        pixels: limits.pixels.min(LARGE),
        ..*limits
    };
    let decoded = match decode(bytes, &small) {
        // Too large, which is told by its header, or in need of more memory than a small one has.
        Err(_) if limits.pixels > LARGE => {
            let _turn = LARGE_ONES.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(take(decode(bytes, limits)?));
        }
        decoded => decoded?,
    };
    Ok(take(decoded))
}

fn memory(limits: &Limits) -> image::Limits {
    let mut memory = image::Limits::no_limits();
    memory.max_alloc = Some(limits.memory());
    memory
}

/// Decodes with a decoder of the `image` crate.
fn generic<D: ImageDecoder>(
    format: &'static str,
    decoder: image::ImageResult<D>,
    limits: &Limits,
) -> Result<(Rgb, ImageHeader), ImageError> {
    let fault = |error: image::ImageError| match error {
        image::ImageError::Unsupported(error) => ImageError::Unsupported {
            format,
            what: error.to_string(),
        },
        error => ImageError::damaged(format, error),
    };
    let mut decoder = decoder.map_err(fault)?;
    let (width, height) = decoder.dimensions();
    limits.check(width.into(), height.into())?;
    decoder.set_limits(memory(limits)).map_err(fault)?;
    let orientation = match format {
        // Its decoder takes any length of its metadata at its word.
        "WebP" => None,
        // Metadata that cannot be read are no reason to refuse the image.
        _ => {
            let exif = decoder.exif_metadata().ok().flatten();
            let turned = exif.and_then(|exif| orientation::from_exif(&exif));
            turned.or_else(|| orientation::from_xmp(&decoder.xmp_metadata().ok().flatten()?))
        }
    };
    let colour = decoder.color_type();
    let bytes = usize::try_from(decoder.total_bytes()).map_err(|error| ImageError::damaged(format, error))?;
    let mut samples = vec![0; bytes];
    decoder.read_image(&mut samples).map_err(fault)?;
    let data = rgb(samples, colour).ok_or_else(|| ImageError::Unsupported {
        format,
        what: format!("{colour:?}"),
    })?;
    let image = Rgb::new(width as usize, height as usize, data);
    let image = image.ok_or_else(|| ImageError::damaged(format, "an image without pixels"))?;
    let orientation = orientation.unwrap_or(1);
    Ok((image, ImageHeader { orientation }))
}

/// Drops transparency and the lower half of 16-bit samples.
fn rgb(samples: Vec<u8>, colour: ColorType) -> Option<Vec<u8>> {
    let high = |low: u8, high: u8| (u16::from_ne_bytes([low, high]) >> 8) as u8;
    Some(match colour {
        ColorType::Rgb8 => samples,
        ColorType::L8 => samples.iter().flat_map(|&grey| [grey; 3]).collect(),
        ColorType::La8 => samples.as_chunks().0.iter().flat_map(|&[grey, _]| [grey; 3]).collect(),
        ColorType::Rgba8 => samples
            .as_chunks()
            .0
            .iter()
            .flat_map(|&[r, g, b, _]| [r, g, b])
            .collect(),
        ColorType::L16 => samples
            .as_chunks()
            .0
            .iter()
            .flat_map(|&[a, b]| [high(a, b); 3])
            .collect(),
        ColorType::La16 => samples
            .as_chunks()
            .0
            .iter()
            .flat_map(|&[a, b, _, _]| [high(a, b); 3])
            .collect(),
        ColorType::Rgb16 => samples.as_chunks().0.iter().map(|&[a, b]| high(a, b)).collect(),
        ColorType::Rgba16 => {
            let pixels = samples.as_chunks().0.iter();
            pixels
                .flat_map(|&[a, b, c, d, e, f, _, _]| [high(a, b), high(c, d), high(e, f)])
                .collect()
        }
        _ => return None,
    })
}

/// Pillow's brightness of paper under an ink and black.
pub(super) fn inked(ink: u8, paper: u8) -> u8 {
    let product = u32::from(ink) * u32::from(paper) + 128;
    paper - (((product >> 8) + product) >> 8) as u8
}
