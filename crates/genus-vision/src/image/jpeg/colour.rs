//! From planes of samples to pixels: libjpeg's "fancy" upsampling and its conversions of colour.

use super::super::decode::inked;
use super::Component;

/// How the samples of the components are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Grey,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// Brings a component's row `y` of the image to the image's width.
///
/// A component at half the width or height is interpolated between neighbours, three to one; any other is repeated.
/// `sums` is room to work in.
fn row(component: &Component, most: (usize, usize), y: usize, sums: &mut [u16], out: &mut [u8]) {
    let (across, down) = (most.0 / component.across, most.1 / component.down);
    let line = |row: usize| &component.plane[row * component.stride..][..component.width];
    let smooth = across == 1 || component.width > 2;
    let near = y / down;
    // The even of two rows lies towards the row above, the odd towards the row below; at the edge there is none.
    let far = if y.is_multiple_of(2) {
        near.saturating_sub(1)
    } else {
        (near + 1).min(component.height - 1)
    };
    match (across, down) {
        (1, 1) => out[..component.width].copy_from_slice(line(near)),
        (2, 1) if smooth => {
            for (sum, &sample) in sums.iter_mut().zip(line(near)) {
                *sum = sample.into();
            }
            widen::<2, 1, 2>(&sums[..component.width], out);
        }
        (1, 2) => {
            let round = if y.is_multiple_of(2) { 1 } else { 2 };
            for ((out, &near), &far) in out.iter_mut().zip(line(near)).zip(line(far)) {
                *out = ((u16::from(near) * 3 + u16::from(far) + round) >> 2) as u8;
            }
        }
        (2, 2) if smooth => {
            for ((sum, &near), &far) in sums.iter_mut().zip(line(near)).zip(line(far)) {
                *sum = u16::from(near) * 3 + u16::from(far);
            }
            widen::<4, 8, 7>(&sums[..component.width], out);
        }
        _ => {
            for (out, &sample) in out.chunks_mut(across).zip(line(near)) {
                out.fill(sample);
            }
        }
    }
}

/// Doubles a row: each value gives two, each with a quarter of the neighbour on its side.
#[inline(always)]
fn widen<const SHIFT: u32, const LEFT: u16, const RIGHT: u16>(values: &[u16], out: &mut [u8]) {
    let last = values.len() - 1;
    out[0] = ((values[0] * 4 + LEFT) >> SHIFT) as u8;
    out[1] = ((values[0] * 3 + values[1] + RIGHT) >> SHIFT) as u8;
    let neighbours = values.iter().zip(&values[1..]).zip(&values[2..]);
    for (out, ((&left, &value), &right)) in out[2..].chunks_exact_mut(2).zip(neighbours) {
        out[0] = ((value * 3 + left + LEFT) >> SHIFT) as u8;
        out[1] = ((value * 3 + right + RIGHT) >> SHIFT) as u8;
    }
    out[2 * last] = ((values[last] * 3 + values[last - 1] + LEFT) >> SHIFT) as u8;
    out[2 * last + 1] = ((values[last] * 4 + RIGHT) >> SHIFT) as u8;
}

/// The nearest integer to 2¹⁶ times a constant.
const fn fix(value: f64) -> i32 {
    (value * 65536.0 + 0.5) as i32
}

/// Red, green and blue of a pixel in YCbCr.
///
/// The factors are split into a whole number and a rest of 16 bits: the same result, in products that vectors do well.
#[inline(always)]
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i16::from(y), i16::from(cb) - 128, i16::from(cr) - 128);
    let times = |value: i16, factor: i32| i32::from(value) * i32::from(factor as i16);
    let red = y + cr + ((times(cr, fix(1.402) - 65536) + HALF) >> 16) as i16;
    let green = y - cr + ((times(cb, -fix(0.34414)) + times(cr, 65536 - fix(0.71414)) + HALF) >> 16) as i16;
    let blue = y + 2 * cb + ((times(cb, fix(1.772) - 131_072) + HALF) >> 16) as i16;
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}

/// Pillow's RGB of inverted CMYK, which is how JPEG files hold it.
fn paper([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    [c, m, y].map(|ink| inked(255 - ink, k))
}

/// All pixels of an image.
pub(super) fn pixels(components: &[Component], colour: Colour, width: usize, height: usize) -> Vec<u8> {
    let most = super::most(components);
    // Upsampling writes whole groups of pixels: up to four beyond the width of the widest component.
    let room = components
        .iter()
        .map(|component| component.width * (most.0 / component.across))
        .max();
    let room = room.unwrap_or(0).max(width);
    let mut rows = vec![vec![0; room]; components.len()];
    let mut sums = vec![0; room];
    let mut planes = [vec![0u8; width], vec![0u8; width], vec![0u8; width]];
    let mut pixels = vec![0; width * height * 3];
    for (y, out) in pixels.chunks_exact_mut(width * 3).enumerate() {
        for (component, line) in components.iter().zip(&mut rows) {
            row(component, most, y, &mut sums, line);
        }
        let out = out.as_chunks_mut::<3>().0.iter_mut();
        match (colour, rows.as_slice()) {
            (Colour::YCbCr, [luma, cb, cr]) => {
                // Planes first: a loop that writes every third byte is not turned into vectors.
                let [red, green, blue] = &mut planes;
                let samples = luma[..width].iter().zip(&cb[..width]).zip(&cr[..width]);
                let places = red.iter_mut().zip(green.iter_mut()).zip(blue.iter_mut());
                for (((&y, &cb), &cr), ((red, green), blue)) in samples.zip(places) {
                    [*red, *green, *blue] = rgb(y, cb, cr);
                }
                for (out, ((&red, &green), &blue)) in out.zip(red.iter().zip(green.iter()).zip(blue.iter())) {
                    *out = [red, green, blue];
                }
            }
            (Colour::Rgb, [red, green, blue]) => {
                for (out, ((&red, &green), &blue)) in out.zip(red.iter().zip(green).zip(blue)) {
                    *out = [red, green, blue];
                }
            }
            (Colour::Cmyk | Colour::Ycck, [a, b, c, k]) => {
                for (out, (((&a, &b), &c), &k)) in out.zip(a.iter().zip(b).zip(c).zip(k)) {
                    let [c, m, y] = match colour {
                        Colour::Ycck => rgb(a, b, c).map(|value| 255 - value),
                        _ => [a, b, c],
                    };
                    *out = paper([c, m, y, k]);
                }
            }
            (_, lines) => {
                for (out, &grey) in out.zip(&lines[0]) {
                    *out = [grey; 3];
                }
            }
        }
    }
    pixels
}
