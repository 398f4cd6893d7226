//! What a result was computed with.

use serde::{Deserialize, Serialize};

/// The machine that a report was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The operating system.
    pub system: String,
    /// The kind of processor.
    pub architecture: String,
    /// What the processor calls itself, where it can be asked.
    pub processor: Option<String>,
    /// How many threads it runs side by side.
    pub threads: usize,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            system: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: processor(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
