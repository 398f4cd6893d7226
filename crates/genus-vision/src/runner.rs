//! Blocks of a network, on whatever runs them fastest.

use std::sync::OnceLock;

use genus_kernels::Isa;

use crate::device::on_processor;
use crate::engine::Engine;
use crate::networks::{Network, values};
use crate::workers::Workers;

/// The first blocks of a network, or all of them, ready for images of one size.
#[derive(Debug)]
pub(crate) struct Runner {
    body: Backend,
    /// The number of values of an image.
    image: usize,
}

#[derive(Debug)]
enum Backend {
    /// The tensor library.
    Portable(Box<Network>, OnceLock<Workers>),
    Engine(Engine),
}

impl Runner {
    /// For images of `side` pixels a side.
    pub(crate) fn new(network: Network, side: usize, isa: Isa) -> Self {
        let body = match isa {
            isa if isa == Isa::Portable || !on_processor() => Backend::Portable(Box::new(network), OnceLock::new()),
            isa => Backend::Engine(Engine::new(network, side, isa)),
        };
        let image = 3 * side * side;
        Self { body, image }
    }

    /// What leaves the last block for every image, a row an image; `pixels` holds whole images.
    pub(crate) fn run(&self, pixels: &[f32]) -> Vec<f32> {
        let images = pixels.len() / self.image;
        match &self.body {
            Backend::Engine(engine) => engine.run(pixels),
            Backend::Portable(network, workers) if images > 1 && on_processor() => {
                let workers = workers.get_or_init(Workers::new);
                let image = |at: usize| &pixels[at * self.image..][..self.image];
                workers.rows(images, |at| values(network.forward(image(at), 1)))
            }
            Backend::Portable(network, _) if images > 0 => values(network.forward(pixels, images)),
            Backend::Portable(..) => Vec::new(),
        }
    }
}
