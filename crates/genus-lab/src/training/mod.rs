//! Training runs: what they write down while they go on.

#[cfg_attr(not(test), expect(dead_code, reason = "no training run writes events yet"))]
mod tensorboard;
