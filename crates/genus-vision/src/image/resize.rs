//! Pillow's resampling.

use std::fmt;
use std::ops::Range;

use super::Rgb;

/// The kernel of a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Pillow's `BILINEAR`.
    Bilinear,
    /// Pillow's `BICUBIC` (a = −0.5).
    Bicubic,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Filter::Bilinear => "bilinear",
            Filter::Bicubic => "bicubic",
        })
    }
}

impl Filter {
    /// How far the kernel reaches to either side.
    fn support(self) -> f64 {
        match self {
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
        }
    }

    /// The kernel. The order of the operations is Pillow's, and with it every rounding.
    fn weight(self, x: f64) -> f64 {
        const A: f64 = -0.5;
        let x = x.abs();
        match self {
            Filter::Bilinear if x < 1.0 => 1.0 - x,
            Filter::Bicubic if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Filter::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
            _ => 0.0,
        }
    }
}

/// The fractional bits of a weight: 32 less eight of the sample and two for sums beyond its range.
const PRECISION: u32 = 32 - 8 - 2;

/// The weights of the samples that make some samples of a resized row.
struct FilterWeights {
    /// For each sample: the first that counts.
    starts: Vec<usize>,
    /// For each sample: where its weights end in `values`; they begin where those before end.
    ends: Vec<usize>,
    values: Vec<i32>,
}

impl FilterWeights {
    /// The weights of the samples `window` of a row of `to` that is made from a row of `from`.
    fn new(filter: Filter, from: usize, to: usize, window: Range<usize>) -> Self {
        let scale = from as f64 / to as f64;
        // The kernel is as wide as a sample of the result, but never narrower than one of the source.
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let mut weights = Self {
            starts: Vec::with_capacity(window.len()),
            ends: Vec::with_capacity(window.len()),
            values: Vec::new(),
        };
        let mut row = Vec::new();
        for at in window {
            let centre = (at as f64 + 0.5) * scale;
            // Casts round towards zero and negative ones to zero.
            let start = (centre - support + 0.5) as usize;
            let end = ((centre + support + 0.5) as usize).min(from);
            row.clear();
            row.extend((start..end).map(|x| filter.weight((x as f64 - centre + 0.5) * (1.0 / stretch))));
            let sum: f64 = row.iter().sum();
            weights.values.extend(row.iter().map(|weight| {
                let weight = if sum != 0.0 { weight / sum } else { *weight };
                let fixed = weight * f64::from(1 << PRECISION);
                (if fixed < 0.0 { fixed - 0.5 } else { fixed + 0.5 }) as i32
            }));
            weights.starts.push(start);
            weights.ends.push(weights.values.len());
        }
        weights
    }

    /// For each sample: the first that counts, and the weights.
    fn iter(&self) -> impl Iterator<Item = (usize, &[i32])> {
        let mut begin = 0;
        self.starts.iter().zip(&self.ends).map(move |(&start, &end)| {
            let weights = &self.values[begin..end];
            begin = end;
            (start, weights)
        })
    }

    /// The samples that count for any.
    fn reach(&self) -> Range<usize> {
        let start = self.starts.iter().copied().min().unwrap_or(0);
        let end = self.iter().map(|(start, weights)| start + weights.len()).max();
        start..end.unwrap_or(0).max(start)
    }
}

/// The sample of a sum of weighted samples.
#[inline(always)]
fn sample(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Half of the last bit that is kept.
const HALF: i32 = 1 << (PRECISION - 1);

/// The columns and rows of a window of the image resized to `size`, without making what is outside the window.
pub(super) fn resize(
    image: &Rgb,
    filter: Filter,
    size: (usize, usize),
    columns: Range<usize>,
    rows: Range<usize>,
) -> Vec<u8> {
    let (width, height) = (columns.len(), rows.len());
    // Like Pillow, a side that stays as it is takes no part: its weights would all be one.
    let vertical = (size.1 != image.height).then(|| FilterWeights::new(filter, image.height, size.1, rows.clone()));
    let reach = vertical.as_ref().map_or(rows, FilterWeights::reach);
    let source = |row: usize| &image.data[row * image.width * 3..][..image.width * 3];

    let mut narrow = Vec::with_capacity(reach.len() * width * 3);
    if size.0 == image.width {
        for row in reach.clone() {
            narrow.extend_from_slice(&source(row)[columns.start * 3..columns.end * 3]);
        }
    } else {
        let weights = FilterWeights::new(filter, image.width, size.0, columns);
        for row in reach.clone() {
            let pixels = source(row).as_chunks::<3>().0;
            for (start, weights) in weights.iter() {
                let mut sums = [HALF; 3];
                for (pixel, &weight) in pixels[start..].iter().zip(weights) {
                    for (sum, &value) in sums.iter_mut().zip(pixel) {
                        *sum = sum.wrapping_add(i32::from(value).wrapping_mul(weight));
                    }
                }
                narrow.extend(sums.map(sample));
            }
        }
    }

    let Some(weights) = vertical else {
        return narrow;
    };
    let stride = width * 3;
    let mut out = Vec::with_capacity(height * stride);
    let mut sums = vec![0i32; stride];
    for (start, weights) in weights.iter() {
        sums.fill(HALF);
        let lines = narrow[(start - reach.start) * stride..].chunks_exact(stride.max(1));
        for (line, &weight) in lines.zip(weights) {
            for (sum, &value) in sums.iter_mut().zip(line) {
                *sum = sum.wrapping_add(i32::from(value).wrapping_mul(weight));
            }
        }
        out.extend(sums.iter().map(|&sum| sample(sum)));
    }
    out
}
