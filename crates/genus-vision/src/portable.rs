//! The portable encoder: networks in burn, on the processor or whatever device it was built for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use burn_tensor::Device;

use crate::encoder::{EncodeError, Encoder, Fingerprint};
use crate::image::Transform;
use crate::networks::{Architecture, ArchitectureError, Network};
use crate::weights::Weights;

/// An encoder that runs on every device of burn.
#[derive(Debug)]
pub struct PortableEncoder {
    network: Network,
    architecture: Architecture,
    transform: Transform,
    fingerprint: Fingerprint,
    /// One pool of one thread for every image in flight.
    workers: OnceLock<Vec<rayon::ThreadPool>>,
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

    /// Images side by side, each on one thread: no thread waits for another inside a network, and the bits of an image do not
    /// depend on what goes with it.
    fn side_by_side(&self, pixels: &[f32], rows: &mut [f32]) {
        let workers = self.workers.get_or_init(|| {
            let one = || rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
            (0..rayon::current_num_threads()).filter_map(|_| one()).collect()
        });
        let images = pixels.chunks_exact(self.transform.values());
        let rows: Vec<Mutex<&mut [f32]>> = rows.chunks_exact_mut(self.dim()).map(Mutex::new).collect();
        let images: Vec<&[f32]> = images.collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (Some(image), Some(row)) = (images.get(at), rows.get(at)) else {
                    break;
                };
                let features = self.network.forward(image);
                if let Ok(mut row) = row.lock() {
                    row.copy_from_slice(&features);
                }
            }
        };
        std::thread::scope(|scope| {
            for worker in &workers[..workers.len().min(images.len())] {
                scope.spawn(|| worker.install(work));
            }
        });
    }
}

impl Encoder for PortableEncoder {
    fn dim(&self) -> usize {
        self.network.dim()
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
            let mut rows = vec![f32::NAN; images * self.dim()];
            self.side_by_side(pixels, &mut rows);
            rows
        } else if images > 0 {
            self.network.forward(pixels)
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
fn device() -> Device {
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
fn on_processor() -> bool {
    !cfg!(any(feature = "cuda", feature = "metal", feature = "wgpu"))
}
