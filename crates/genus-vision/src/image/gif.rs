//! The first frame of a GIF.

use ::gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::Rgb;
use super::decode::{ImageError, ImageHeader, Limits};

/// Decodes the first frame as Pillow shows it: what the frame does not cover has the transparent colour, or the first.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<(Rgb, ImageHeader), ImageError> {
    let fault = |error: DecodingError| ImageError::damaged("GIF", error);
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        limits.memory().try_into().unwrap_or(std::num::NonZeroU64::MIN),
    ));
    let mut decoder = options.read_info(bytes).map_err(fault)?;
    let screen = (usize::from(decoder.width()), usize::from(decoder.height()));
    limits.check(screen.0 as u64, screen.1 as u64)?;
    let frame = decoder.next_frame_info().map_err(fault)?;
    let frame = frame.ok_or_else(|| ImageError::damaged("GIF", "it has no frame"))?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (usize::from(frame.width), usize::from(frame.height));
    let background = frame.transparent.unwrap_or(0);
    let (width, height) = (screen.0.max(left + frame_width), screen.1.max(top + frame_height));
    limits.check(width as u64, height as u64)?;

    let mut indices = vec![0; decoder.buffer_size()];
    decoder.read_into_buffer(&mut indices).map_err(fault)?;
    // Without a palette the indices are shades of grey; an index beyond the palette is black.
    let mut colours = [[0; 3]; 256];
    match decoder.palette() {
        Ok(palette) => colours
            .iter_mut()
            .zip(palette.as_chunks().0)
            .for_each(|(colour, &entry)| *colour = entry),
        Err(_) => (0..=255)
            .zip(&mut colours)
            .for_each(|(grey, colour)| *colour = [grey; 3]),
    }
    let mut data = colours[usize::from(background)].repeat(width * height);
    if frame_width > 0 {
        for (y, row) in indices.chunks_exact(frame_width).enumerate() {
            let out = data[((top + y) * width + left) * 3..].as_chunks_mut::<3>().0;
            for (out, &index) in out.iter_mut().zip(row) {
                *out = colours[usize::from(index)];
            }
        }
    }
    let image = Rgb::new(width, height, data).ok_or_else(|| ImageError::damaged("GIF", "an image without pixels"))?;
    Ok((image, ImageHeader { orientation: 1 }))
}
