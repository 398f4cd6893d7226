//! How much may be asked for.

use std::time::Duration;

/// How much may be asked for. What is beyond is refused, and says by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request with a batch.
    pub body: usize,
    /// Bytes of a request with one image.
    pub image: usize,
    /// Pixels of an image.
    pub pixels: u64,
    /// Requests of one client in a second.
    pub rate: u32,
    /// Open connections.
    pub connections: usize,
    /// Open streams of events.
    pub streams: usize,
    /// How long the head of a request may take, and how long its body.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 256 << 20,
            image: 64 << 20,
            pixels: 100_000_000,
            rate: 20_000,
            connections: 4096,
            streams: 2048,
            patience: Duration::from_secs(30),
        }
    }
}
