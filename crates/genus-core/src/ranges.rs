//! How large whole numbers may be that people set: one table for flags, parameters of methods and encoders, and files.
//!
//! Beyond these a run would end for want of memory, or never; within them whatever is wrong, zero among it, is found by the
//! part that knows more.

use thiserror::Error;

/// How large a number of this name may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its name: a flag without its dashes, or a parameter.
    pub name: &'static str,
    /// The most.
    pub most: u64,
}

/// A number outside its range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("at most {}", range.most)]
pub struct RangeError {
    /// The range.
    pub range: Range,
}

const fn most(name: &'static str, most: u64) -> Range {
    Range { name, most }
}

/// Every range.
pub const RANGES: &[Range] = &[
    most("batch", 65_536),
    most("bits", 4096),
    most("blocks", 10_000),
    most("bursts", 10_000),
    most("cache-trunk", 10_000),
    most("classes", 1_000_000),
    most("depth", 256),
    most("dim", 8192),
    most("directions", 65_536),
    most("draws", 1_000_000),
    most("episodes", 10_000_000),
    most("epochs", 1_000_000),
    most("examples", 1_000_000),
    most("head-hidden", 16_384),
    most("head-width", 1 << 20),
    most("heads", 1024),
    most("hidden", 16_384),
    most("items", 1_000_000),
    most("iterations", 1_000_000),
    most("k", 1_000_000),
    most("k-max", 1_000_000),
    most("k-restarts", 10_000),
    most("looks", 1_000_000),
    most("max-file-mb", 1 << 20),
    most("max-megapixels", 100_000),
    most("n", 1_000_000_000),
    most("network-hidden", 65_536),
    most("new", 1_000_000),
    most("orders", 1_000_000),
    most("outliers", 1_000_000),
    most("parts", 1_000_000),
    most("patch", 256),
    most("query", 1_000_000),
    most("rate", 1_000_000_000),
    most("refine", 1_000_000),
    most("restarts", 10_000),
    most("seeds", 1_000),
    most("shot", 1_000_000),
    most("size", 2048),
    most("subset", 100_000_000),
    most("t", 1_000_000_000),
    most("tasks", 10_000_000),
    most("threads", 1024),
    most("threshold", 1_000_000_000),
    most("top", 1 << 20),
    most("validate-every", 1_000_000),
    most("validation-classes", 1_000_000),
    most("validation-episodes", 10_000_000),
    most("views", 10_000),
    most("way", 1_000_000),
    most("width", 4096),
];

/// The range of a name, if the table has one.
pub fn find(name: &str) -> Option<Range> {
    RANGES.iter().find(|range| range.name == name).copied()
}

/// Fails when the table has a range of this name and the number is outside it.
pub fn check(name: &str, value: u64) -> Result<(), RangeError> {
    match find(name) {
        Some(range) if value > range.most => Err(RangeError { range }),
        _ => Ok(()),
    }
}
