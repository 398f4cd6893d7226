//! What a result was computed with.

use std::io;

use serde::{Deserialize, Serialize};

use crate::LabError;

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
    /// This machine. A lack of file handles is an error, and not a processor without a name.
    pub fn this() -> Result<Self, LabError> {
        Ok(Self {
            system: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: processor().map_err(LabError::Machine)?,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }
}

fn processor() -> io::Result<Option<String>> {
    let text = match std::fs::read_to_string("/proc/cpuinfo") {
        Err(error) if genus_files::is_shortage(&error) => return Err(error),
        // Not every system has it.
        Err(_) => return Ok(None),
        Ok(text) => text,
    };
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    Ok(name.map(|(_, name)| name.trim().to_owned()))
}
