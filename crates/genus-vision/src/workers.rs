//! Pieces of work side by side, each on one thread.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One pool of one thread for every piece in flight.
///
/// No thread waits for another inside a network, and the bits of a piece do not depend on what goes on beside it.
#[derive(Debug)]
pub(crate) struct Workers(Vec<rayon::ThreadPool>);

impl Workers {
    /// As many as there are threads where this is called.
    pub(crate) fn new() -> Self {
        let one = || rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
        Self((0..rayon::current_num_threads()).filter_map(|_| one()).collect())
    }

    /// Does every piece once; they are begun in order.
    pub(crate) fn run(&self, pieces: usize, work: impl Fn(usize) + Sync) {
        if self.0.is_empty() {
            // The system gave no thread: this one will do.
            return (0..pieces).for_each(work);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    break;
                }
                work(piece);
            }
        };
        std::thread::scope(|scope| {
            for worker in &self.0[..self.0.len().min(pieces)] {
                scope.spawn(|| worker.install(work));
            }
        });
    }

    /// The rows of every piece one after the other: `row` gives those of one.
    pub(crate) fn rows(&self, pieces: usize, row: impl Fn(usize) -> Vec<f32> + Sync) -> Vec<f32> {
        let rows: Vec<std::sync::OnceLock<Vec<f32>>> = (0..pieces).map(|_| Default::default()).collect();
        self.run(pieces, |piece| {
            rows[piece].get_or_init(|| row(piece));
        });
        rows.into_iter().filter_map(|row| row.into_inner()).flatten().collect()
    }
}
