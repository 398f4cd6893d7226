//! Which way up an image is, and turning it.

use super::Rgb;

/// The orientation that an EXIF block names, 1 to 8.
pub(super) fn from_exif(exif: &[u8]) -> Option<u8> {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let (_, value) = field(exif, 0x112)?;
    u8::try_from(value).ok().filter(|value| (1..=8).contains(value))
}

/// Where the value of a field of the first directory of a TIFF (which EXIF is) begins, and the value, a whole number.
pub(super) fn field(tiff: &[u8], tag: u16) -> Option<(usize, u32)> {
    let little = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => true,
        [b'M', b'M', 0, 42] => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let long = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    for entry in 0..usize::from(short(directory)?) {
        let entry = directory + 2 + 12 * entry;
        if short(entry)? != tag {
            continue;
        }
        let at = entry + 8;
        let value = match short(entry + 2)? {
            1 => u32::from(*tiff.get(at)?),
            3 => u32::from(short(at)?),
            4 => long(at)?,
            _ => return None,
        };
        return Some((at, value));
    }
    None
}

/// The orientation that an XMP packet names, where Pillow looks when EXIF says nothing.
pub(super) fn from_xmp(xmp: &[u8]) -> Option<u8> {
    const NAME: &[u8] = b"tiff:Orientation";
    let starts = xmp
        .windows(NAME.len())
        .enumerate()
        .filter(|(_, window)| *window == NAME);
    let mut values = starts.filter_map(|(start, _)| {
        let rest = &xmp[start + NAME.len()..];
        let digit = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?.first()?;
        digit.is_ascii_digit().then(|| digit - b'0')
    });
    values.next().filter(|value| (1..=8).contains(value))
}

/// Turns an image as its orientation asks.
pub(super) fn upright(image: Rgb, orientation: u8) -> Rgb {
    let (width, height) = (image.width, image.height);
    let (last_x, last_y) = (width - 1, height - 1);
    let pixels = image.data.as_chunks::<3>().0;
    // Where a pixel of the upright image comes from.
    let turn = |out_width: usize, out_height: usize, from: &dyn Fn(usize, usize) -> (usize, usize)| {
        let mut data = Vec::with_capacity(image.data.len());
        for y in 0..out_height {
            // Along a row the source moves by a constant step, one way or the other, along a row or a column.
            let (x0, y0) = from(0, y);
            let start = y0 * width + x0;
            let step = (out_width > 1).then(|| {
                let (x1, y1) = from(1, y);
                (y1 * width + x1) as isize - start as isize
            });
            let (mut at, step) = (start as isize, step.unwrap_or(0));
            for _ in 0..out_width {
                data.extend_from_slice(&pixels[at as usize]);
                at += step;
            }
        }
        Rgb {
            width: out_width,
            height: out_height,
            data,
        }
    };
    match orientation {
        2 => turn(width, height, &|x, y| (last_x - x, y)),
        3 => turn(width, height, &|x, y| (last_x - x, last_y - y)),
        4 => turn(width, height, &|x, y| (x, last_y - y)),
        5 => turn(height, width, &|x, y| (y, x)),
        6 => turn(height, width, &|x, y| (y, last_y - x)),
        7 => turn(height, width, &|x, y| (last_x - y, last_y - x)),
        8 => turn(height, width, &|x, y| (last_x - y, x)),
        _ => image,
    }
}
