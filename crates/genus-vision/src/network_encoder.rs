//! The encoder that is a network.

use genus_kernels::{Isa, Precision};

use crate::device::{device, on_processor};
use crate::encoder::{EncodeError, Encoder, Fingerprint, check_pixels, finite};
use crate::image::Transform;
use crate::networks::{Architecture, ArchitectureError, Network};
use crate::runner::Runner;
use crate::weights::Weights;

/// A network with its weights, for images that went through one transform.
#[derive(Debug)]
pub struct NetworkEncoder {
    runner: Runner,
    isa: Isa,
    architecture: Architecture,
    transform: Transform,
    fingerprint: Fingerprint,
}

impl NetworkEncoder {
    /// Builds the network for images that went through `transform`, to run on `isa`.
    ///
    /// Features of the same precision are the same but for rounding, whatever they were computed on, and have the same
    /// fingerprint; those of bf16 have one of their own.
    ///
    /// # Panics
    /// When this processor does not have `isa`.
    pub fn new(
        architecture: Architecture,
        transform: Transform,
        weights: Weights,
        isa: Isa,
    ) -> Result<Self, ArchitectureError> {
        assert!(isa.is_available(), "this processor has no {isa}");
        // Built for another device, that is where networks run.
        let isa = match isa.precision() {
            Precision::F32 if !on_processor() => Isa::Portable,
            Precision::Bf16 if !on_processor() => return Err(ArchitectureError::Precision),
            _ => isa,
        };
        let hash = weights.hash();
        let int8 = if weights.int8 { " int8" } else { "" };
        let (network, architecture) = Network::new(architecture, transform.crop, weights, device())?;
        let text = match (isa.precision(), &architecture) {
            (Precision::F32, architecture) => format!("{architecture}{int8}"),
            (Precision::Bf16, Architecture::Vit { .. }) => format!("{architecture} in bf16{int8}"),
            (Precision::Bf16, _) => return Err(ArchitectureError::Precision),
        };
        Ok(Self {
            runner: Runner::new(network, transform.crop, isa),
            isa,
            architecture,
            fingerprint: Fingerprint::new(&text, &hash, &transform),
            transform,
        })
    }

    /// The architecture with the sizes that the weights have.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// What it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

impl Encoder for NetworkEncoder {
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
        check_pixels(pixels, &self.transform)?;
        finite(self.runner.run(pixels))
    }
}
