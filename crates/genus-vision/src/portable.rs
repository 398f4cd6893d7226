//! The portable encoder: networks in burn, on the processor or whatever device it was built for.

use std::sync::OnceLock;

use burn_tensor::Device;

use crate::encoder::{EncodeError, Encoder, Fingerprint};
use crate::image::Transform;
use crate::networks::{Architecture, ArchitectureError, Network, values};
use crate::weights::Weights;
use crate::workers::Workers;

/// An encoder that runs on every device of burn.
#[derive(Debug)]
pub struct PortableEncoder {
    network: Network,
    architecture: Architecture,
    transform: Transform,
    fingerprint: Fingerprint,
    workers: OnceLock<Workers>,
}

impl PortableEncoder {
    /// Builds the network for images that went through `transform`.
    pub fn new(architecture: Architecture, transform: Transform, weights: Weights) -> Result<Self, ArchitectureError> {
        let hash = weights.hash();
        let (network, architecture) = Network::new(architecture, transform.crop, weights, device())?;
        Ok(Self {
            network,
            architecture,
            fingerprint: Fingerprint::new(&architecture.to_string(), &hash, &transform),
            transform,
            workers: OnceLock::new(),
        })
    }

    /// The architecture with the sizes that the weights have.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }
}

impl Encoder for PortableEncoder {
    fn dim(&self) -> usize {
        self.architecture.dim()
    }

    fn transform(&self) -> &Transform {
        &self.transform
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn encode(&self, pixels: &[f32]) -> Result<Vec<f32>, EncodeError> {
        let image = self.transform.values();
        if !pixels.len().is_multiple_of(image) {
            return Err(EncodeError::Pixels {
                values: pixels.len(),
                image,
            });
        }
        let images = pixels.len() / image;
        let features = if images > 1 && on_processor() {
            let workers = self.workers.get_or_init(Workers::new);
            workers.rows(images, |at| {
                values(self.network.forward(&pixels[at * image..][..image], 1))
            })
        } else if images > 0 {
            values(self.network.forward(pixels, images))
        } else {
            Vec::new()
        };
        match features.iter().all(|value| value.is_finite()) {
            true => Ok(features),
            false => Err(EncodeError::NotFinite),
        }
    }
}

/// The device that this build is for.
pub(crate) fn device() -> Device {
    #[cfg(feature = "cuda")]
    return Device::cuda(0);
    #[cfg(all(feature = "metal", not(feature = "cuda")))]
    return Device::metal(Default::default());
    #[cfg(all(feature = "wgpu", not(any(feature = "cuda", feature = "metal"))))]
    return Device::wgpu(Default::default());
    #[cfg(not(any(feature = "cuda", feature = "metal", feature = "wgpu")))]
    Device::flex()
}

/// Whether that device is the processor itself.
pub(crate) fn on_processor() -> bool {
    !cfg!(any(feature = "cuda", feature = "metal", feature = "wgpu"))
}
