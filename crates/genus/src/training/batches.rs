//! Plain batches: every epoch goes once through all items, in an order of its own.

use genus_core::rng::Rng;

/// The stream of random numbers.
const ORDER: u64 = 0x6f;

/// Batches of a number of items; what is left of an epoch and fills no batch is left out of it.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// The items.
    pub items: usize,
    /// Items of a batch.
    pub size: usize,
    /// The seed of the orders.
    pub seed: u64,
}

impl Batches {
    /// The number of batches of an epoch.
    pub fn of_epoch(&self) -> u64 {
        (self.items / self.size.max(1)) as u64
    }

    /// The items of a step, counted from zero over all epochs.
    pub fn batch(&self, step: u64) -> Vec<usize> {
        let each = self.of_epoch().max(1);
        let (epoch, at) = (step / each, (step % each) as usize);
        let order = Rng::new(self.seed, &[ORDER, epoch]).sample(self.items, self.items);
        order.into_iter().skip(at * self.size).take(self.size).collect()
    }
}
