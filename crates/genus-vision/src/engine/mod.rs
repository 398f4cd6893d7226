//! The engine: networks on a processor, without a tensor library.
//!
//! It takes a network of [`networks`](crate::networks) apart, packs its matrices for the registers of this processor once, and
//! sends images through it, a few at a time. They are shared out among the threads, and so is the work of each: a single image is
//! everybody's. Which thread does what, and with which others an image goes, never shows in the bits.

mod maps;
mod spares;
mod vit;

/// What is said of a part of a network that images do not go into.
const NOT_FIRST: &str = "the engine runs the first blocks of a network";

use genus_kernels::Isa;
use rayon::prelude::*;

use crate::networks::{self, Network};
use maps::Maps;
use spares::ScratchPool;
use vit::PackedVit;

/// The first blocks of a network, or all of them, packed for a kind of instructions.
#[derive(Debug)]
pub(crate) struct Engine {
    body: PackedBody,
    /// The numbers of an image.
    image: usize,
}

#[derive(Debug)]
enum PackedBody {
    Vit(Box<PackedVit>, ScratchPool<vit::TokenBuffers>),
    Maps(Box<Maps>, ScratchPool<maps::MapBuffers>),
}

impl Engine {
    /// Packs a network for images of `image` pixels a side.
    ///
    /// # Panics
    /// When it does not begin with the first block.
    pub(crate) fn new(network: Network, image: usize, isa: Isa) -> Self {
        let maps = |maps| PackedBody::Maps(Box::new(maps), ScratchPool::default());
        let body = match network.body {
            networks::NetworkBody::Vit(net) => {
                PackedBody::Vit(Box::new(PackedVit::new(*net, isa)), ScratchPool::default())
            }
            networks::NetworkBody::ResNet(net) => maps(Maps::resnet(*net, image, isa)),
            networks::NetworkBody::Lite(net) => maps(Maps::lite(*net, image, isa)),
            networks::NetworkBody::Conv(net) => maps(Maps::conv4(*net, image, isa)),
        };
        let image = 3 * image * image;
        Self { body, image }
    }

    /// What leaves the last of the blocks, a row an image; `pixels` holds whole images.
    pub(crate) fn run(&self, pixels: &[f32]) -> Vec<f32> {
        let (outputs, most) = match &self.body {
            PackedBody::Vit(vit, _) => (vit.outputs(), vit::TOGETHER),
            PackedBody::Maps(maps, _) => (maps.outputs(), 1),
        };
        let images = pixels.len() / self.image;
        let mut out = vec![0.0; images * outputs];
        // Every thread has some before any has many.
        let together = images.div_ceil(rayon::current_num_threads()).clamp(1, most);
        let rows = out.par_chunks_mut(together * outputs);
        let rows = rows.zip(pixels[..images * self.image].par_chunks(together * self.image));
        rows.with_max_len(1).for_each(|(out, pixels)| match &self.body {
            PackedBody::Vit(vit, spares) => spares.with(|scratch| vit.run(pixels, scratch, out)),
            PackedBody::Maps(maps, spares) => spares.with(|scratch| maps.run(pixels, scratch, out)),
        });
        out
    }
}
