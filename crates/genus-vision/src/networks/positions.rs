//! Position embeddings for another number of patches than the network was trained on.
//!
//! The projects interpolate the square of positions bicubically, each in its own way, and the last bits of the features
//! depend on it. DINOv3 has none: it rotates queries and keys by where their patches are.

use crate::weights::Tensor;

/// How position embeddings are brought to another number of patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Positions {
    /// DINO and DINOv2: the scale is that of a square larger by a tenth of a patch.
    #[default]
    Dino,
    /// timm, and DINOv2 with registers: the scale of the sizes, smoothed when shrinking.
    Smoothed,
    /// Hugging Face transformers: the scale of the sizes.
    Plain,
    /// DINOv3: rotary position embeddings, which need no interpolation.
    Rotary,
}

impl Positions {
    /// All of them.
    pub const ALL: [Positions; 4] = [
        Positions::Dino,
        Positions::Smoothed,
        Positions::Plain,
        Positions::Rotary,
    ];

    /// The name on the command line and in fingerprints.
    pub fn name(self) -> &'static str {
        match self {
            Positions::Dino => "dino",
            Positions::Smoothed => "smoothed",
            Positions::Plain => "plain",
            Positions::Rotary => "rotary",
        }
    }

    /// What normalisations add to the variance in networks with such positions.
    pub(crate) fn epsilon(self) -> f64 {
        match self {
            Positions::Rotary => 1e-5,
            _ => 1e-6,
        }
    }

    /// The embeddings (patches × dim) of a square of `from` patches a side for one of `to`.
    fn resize(self, values: &[f32], from: usize, to: usize, dim: usize) -> Vec<f32> {
        if from == to {
            return values.to_vec();
        }
        let taps = match self {
            Positions::Rotary => return vec![0.0; to * to * dim],
            Positions::Dino => plain_taps(from, to, from as f64 / (to as f64 + 0.1)),
            Positions::Plain => plain_taps(from, to, from as f64 / to as f64),
            Positions::Smoothed => smoothed_taps(from, to),
        };
        // Columns first, then rows: bicubic interpolation is one axis after the other.
        let mut narrow = vec![0f64; from * to * dim];
        for row in 0..from {
            for (column, taps) in taps.iter().enumerate() {
                let out = &mut narrow[(row * to + column) * dim..][..dim];
                for &(tap, weight) in taps {
                    let source = &values[(row * from + tap) * dim..][..dim];
                    out.iter_mut()
                        .zip(source)
                        .for_each(|(o, &v)| *o += weight * f64::from(v));
                }
            }
        }
        let mut out = Vec::with_capacity(to * to * dim);
        for taps in &taps {
            for column in 0..to {
                out.extend((0..dim).map(|d| {
                    let sum = taps
                        .iter()
                        .map(|&(tap, weight)| weight * narrow[(tap * to + column) * dim + d]);
                    sum.sum::<f64>() as f32
                }));
            }
        }
        out
    }

    /// The position of the class token and those of a square of `to` patches a side, one after the other; `None` when the
    /// number of those given is neither a square nor one more.
    pub(crate) fn fit(self, embedding: &Tensor, to: usize, dim: usize) -> Option<Vec<f32>> {
        let &[1, count, length] = &embedding.shape[..] else {
            return None;
        };
        if length != dim {
            return None;
        }
        let (class, patches) = match (side(count), side(count.checked_sub(1)?)) {
            // timm adds the class position to the class token of networks with registers, and keeps the patches alone.
            (Some(_), _) => (vec![0.0; dim], &embedding.values[..]),
            (None, Some(_)) => (embedding.values[..dim].to_vec(), &embedding.values[dim..]),
            (None, None) => return None,
        };
        let from = side(patches.len() / dim)?;
        let mut all = class;
        all.extend(self.resize(patches, from, to, dim));
        Some(all)
    }
}

/// Rotary position embeddings: of every token the cosines and sines that its queries and keys are rotated by.
///
/// Number `i` of a head and the one half a head later are a point of a plane. A quarter of the planes turn with the row of the
/// patch and a quarter with its column, each at a period of its own. The class token and registers are nowhere: they stay as they are.
#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    /// Half the width of a head.
    pub(crate) half: usize,
    /// Tokens × half.
    pub(crate) cosines: Vec<f32>,
    /// Tokens × half.
    pub(crate) sines: Vec<f32>,
}

impl Rotary {
    /// The base of the periods.
    const BASE: f64 = 100.0;

    /// Those of a square of `side` patches after `prefix` other tokens; `None` unless a head's width is a multiple of four.
    pub(crate) fn new(prefix: usize, side: usize, width: usize) -> Option<Self> {
        if width == 0 || !width.is_multiple_of(4) {
            return None;
        }
        let (half, quarter) = (width / 2, width / 4);
        let mut angles = vec![0.0; prefix * half];
        for row in 0..side {
            for column in 0..side {
                for at in [row, column] {
                    // Patches lie between −1 and 1, by their centres.
                    let place = 2.0 * (at as f64 + 0.5) / side as f64 - 1.0;
                    let period = |i: usize| Self::BASE.powf(i as f64 / quarter as f64);
                    angles.extend((0..quarter).map(|i| std::f64::consts::TAU * place / period(i)));
                }
            }
        }
        Some(Self {
            half,
            cosines: angles.iter().map(|angle| angle.cos() as f32).collect(),
            sines: angles.iter().map(|angle| angle.sin() as f32).collect(),
        })
    }

    /// Rotates a head of a token.
    pub(crate) fn rotate(&self, token: usize, head: &mut [f32]) {
        let (first, second) = head.split_at_mut(self.half);
        let cosines = &self.cosines[token * self.half..][..self.half];
        let sines = &self.sines[token * self.half..][..self.half];
        for (((a, b), cosine), sine) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
            (*a, *b) = (*a * cosine - *b * sine, *b * cosine + *a * sine);
        }
    }
}

/// The side of a square of so many patches.
fn side(count: usize) -> Option<usize> {
    let side = count.isqrt();
    (side > 0 && side * side == count).then_some(side)
}

/// For every output the inputs it is made of, with their weights.
type Taps = Vec<Vec<(usize, f64)>>;

/// PyTorch's `interpolate(mode="bicubic")`: four neighbours, the outermost repeated beyond the edge.
fn plain_taps(from: usize, to: usize, scale: f64) -> Taps {
    (0..to)
        .map(|out| {
            let at = scale * (out as f64 + 0.5) - 0.5;
            let first = at.floor();
            let taps = (-1..3).map(|step| {
                let position = first + f64::from(step);
                let input = position.clamp(0.0, from as f64 - 1.0) as usize;
                (input, cubic(at - position, -0.75))
            });
            taps.collect()
        })
        .collect()
}

/// PyTorch's `interpolate(mode="bicubic", antialias=True)`: the kernel grows with the scale, and its weights add up to one.
fn smoothed_taps(from: usize, to: usize) -> Taps {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    (0..to)
        .map(|out| {
            let centre = scale * (out as f64 + 0.5);
            let first = (centre - 2.0 * stretch + 0.5).max(0.0) as usize;
            let last = ((centre + 2.0 * stretch + 0.5) as usize).min(from);
            let weights: Vec<(usize, f64)> = (first..last)
                .map(|input| (input, cubic((input as f64 + 0.5 - centre) / stretch, -0.5)))
                .collect();
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            weights
                .into_iter()
                .map(|(input, weight)| (input, weight / total))
                .collect()
        })
        .collect()
}

/// The cubic convolution kernel.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}
