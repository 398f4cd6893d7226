//! The values that a network begins with when it is trained from nothing.

use genus_core::rng::Rng;

use crate::device::device;
use crate::networks::{Architecture, ArchitectureError, Network, Parts};
use crate::weights::{Tensor, Weights};

/// The stream of random numbers that makes a tensor of this name.
pub(crate) fn stream(name: &str) -> Vec<u64> {
    const FIRST_VALUES: u64 = 0x66;
    std::iter::once(FIRST_VALUES)
        .chain(name.bytes().map(u64::from))
        .collect()
}

/// Normally distributed numbers of this standard deviation.
pub(crate) fn normal(rng: &mut Rng, count: usize, deviation: f64) -> Vec<f32> {
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        // Box and Muller: a random direction and the length that goes with it; two numbers at a time.
        let length = deviation * (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * rng.unit()).sin_cos();
        values.extend([(length * cosine) as f32, (length * sine) as f32]);
    }
    values.truncate(count);
    values
}

impl Weights {
    /// The weights that a network begins with when it is trained from nothing.
    ///
    /// Kernels are drawn as He and others propose (variance 2 / fan-out), the matrices of transformers with a standard
    /// deviation of 0.02; normalisations do nothing yet.
    pub fn first_values(architecture: &Architecture, image: usize, seed: u64) -> Result<Self, ArchitectureError> {
        let device = device();
        let mut parts = Parts::of_file(Default::default(), &device);
        Network::part(architecture, image, &mut parts, 0..architecture.blocks(), &device)?;
        let tensors = parts.wanted().into_iter().map(|(name, shape)| {
            let mut rng = Rng::new(seed, &stream(&name));
            let values = first_values(&name, &shape, &mut rng);
            (name, Tensor { shape, values })
        });
        Ok(Self {
            tensors: tensors.collect(),
            ..Self::default()
        })
    }
}

fn first_values(name: &str, shape: &[usize], rng: &mut Rng) -> Vec<f32> {
    let count = shape.iter().product();
    match *shape {
        [_] if name.ends_with("running_mean") || name.ends_with("bias") => vec![0.0; count],
        // What is added to a token begins small.
        [_] if name.ends_with("gamma") => vec![1e-5; count],
        [_] => vec![1.0; count],
        // A kernel for every channel by itself has one output for each of its weights.
        [outputs, inputs, height, width] if !name.starts_with("patch_embed") => {
            let fan_out = height * width * if inputs == 1 { 1 } else { outputs };
            normal(rng, count, (2.0 / fan_out as f64).sqrt())
        }
        _ => normal(rng, count, 0.02),
    }
}
