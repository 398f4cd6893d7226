//! Resize, centre crop, normalise.

use std::fmt;
use std::ops::Range;

use super::{Filter, Rgb, resize};

/// What an image goes through before it is encoded.
///
/// It is torchvision's `Resize`, `CenterCrop`, `ToTensor` and `Normalize` on a Pillow image, to the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// The length of the shorter side after the resize.
    pub resize: usize,
    /// The kernel of the resize.
    pub filter: Filter,
    /// The side of the square that is cut out of the middle.
    pub crop: usize,
    /// What is subtracted from each channel, on the scale of 0 to 1.
    pub mean: [f32; 3],
    /// What each channel is divided by afterwards.
    pub std: [f32; 3],
}

/// Which square is cut out of an image, for training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crop {
    /// Where it lies between the left edge (0) and the right (1).
    pub across: f64,
    /// Where it lies between the upper edge (0) and the lower (1).
    pub down: f64,
    /// Whether left and right change places.
    pub mirrored: bool,
}

impl Transform {
    /// The number of values that [`apply`](Self::apply) gives: three channels of a square.
    pub fn values(&self) -> usize {
        3 * self.crop * self.crop
    }

    /// The normalised middle of an image: the red plane, then the green, then the blue.
    pub fn apply(&self, image: &Rgb) -> Vec<f32> {
        self.normalised(&self.pixels(image))
    }

    /// The same of another square than the middle.
    pub fn view(&self, image: &Rgb, view: Crop) -> Vec<f32> {
        let place = |at: f64| move |spare: usize| ((at * (spare as f64 + 1.0)) as usize).min(spare);
        let mut pixels = self.square(image, place(view.across), place(view.down));
        if view.mirrored {
            for row in pixels.as_chunks_mut::<3>().0.chunks_exact_mut(self.crop.max(1)) {
                row.reverse();
            }
        }
        self.normalised(&pixels)
    }

    fn normalised(&self, pixels: &[u8]) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.values());
        for channel in 0..3 {
            let (mean, std) = (self.mean[channel], self.std[channel]);
            let table: [f32; 256] = std::array::from_fn(|value| (value as f32 / 255.0 - mean) / std);
            values.extend(
                pixels
                    .as_chunks::<3>()
                    .0
                    .iter()
                    .map(|pixel| table[usize::from(pixel[channel])]),
            );
        }
        values
    }

    /// The middle of an image before it is normalised: red, green, blue, row after row.
    ///
    /// An image that is smaller than the square has black around it. Only what the square needs is computed, so that a
    /// long thin image costs no more than another.
    pub fn pixels(&self, image: &Rgb) -> Vec<u8> {
        self.square(image, middle, middle)
    }

    /// A square of the resized image; what is left of each side tells where it begins.
    fn square(&self, image: &Rgb, across: impl Fn(usize) -> usize, down: impl Fn(usize) -> usize) -> Vec<u8> {
        let size = self.resized(image);
        let mut square = vec![0; self.values()];
        if size.0 == 0 || self.crop == 0 {
            return square;
        }
        let (columns, left) = window(size.0, self.crop, across);
        let (rows, top) = window(size.1, self.crop, down);
        let row_bytes = columns.len() * 3;
        let middle = resize::resize(image, self.filter, size, columns, rows);
        let lines = square.chunks_exact_mut(self.crop * 3).skip(top);
        for (line, row) in lines.zip(middle.chunks_exact(row_bytes)) {
            line[left * 3..][..row_bytes].copy_from_slice(row);
        }
        square
    }

    /// Width and height after the resize: the shorter side is given and the longer is rounded down.
    fn resized(&self, image: &Rgb) -> (usize, usize) {
        let longer = |long: usize, short: usize| ((self.resize as f64 * long as f64) / short as f64) as usize;
        match (image.width(), image.height()) {
            (width, height) if width <= height => (self.resize, longer(height, width)),
            (width, height) => (longer(width, height), self.resize),
        }
    }
}

/// Which part of a side of a given length is in the square, and where in the square it begins.
fn window(length: usize, crop: usize, begin: impl Fn(usize) -> usize) -> (Range<usize>, usize) {
    if length <= crop {
        return (0..length, (crop - length) / 2);
    }
    let start = begin(length - crop);
    (start..start + crop, 0)
}

/// Half of what is left: an odd number's half is rounded to an even one, as Python does.
fn middle(spare: usize) -> usize {
    spare / 2 + usize::from(spare % 4 == 3)
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resize,
            filter,
            crop,
            mean,
            std,
        } = self;
        write!(f, "resize {resize} {filter}, crop {crop}, mean {mean:?}, std {std:?}")
    }
}
