//! Who is at work on which shard: small files that come and go, and that nothing but `status` goes by.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::manifest::{Round, to_json};
use crate::place::Place;

/// How often it is said how far a shard has come.
const EVERY: Duration = Duration::from_secs(10);

/// A process at work on a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The shard.
    pub shard: usize,
    /// The machine.
    pub machine: String,
    /// The number of the process there.
    pub process: u32,
    /// Rows read so far.
    pub rows: u64,
    /// When this was said, in seconds since 1970.
    pub at: u64,
}

/// The folder of a round with what is said of it.
pub(crate) fn folder(round: Round) -> String {
    format!("{round}/running")
}

/// Says that a shard is worked on as long as it lives.
pub(crate) struct Beat<'a> {
    place: &'a Place,
    name: String,
    worker: Worker,
    last: Cell<Instant>,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl<'a> Beat<'a> {
    pub(crate) fn begin(place: &'a Place, round: Round, shard: usize) -> Self {
        let machine = machine();
        let process = std::process::id();
        let beat = Self {
            place,
            name: format!("{}/{shard:06}-{machine}-{process}.json", folder(round)),
            worker: Worker {
                shard,
                machine,
                process,
                rows: 0,
                at: now(),
            },
            last: Cell::new(Instant::now()),
        };
        beat.say(0);
        beat
    }

    /// Says how many rows were read, unless it did so a moment ago.
    pub(crate) fn tell(&self, rows: u64) {
        if self.last.get().elapsed() >= EVERY {
            self.last.set(Instant::now());
            self.say(rows);
        }
    }

    fn say(&self, rows: u64) {
        let worker = Worker {
            rows,
            at: now(),
            ..self.worker.clone()
        };
        // For people only: the work does not depend on it.
        let _ = to_json(&self.name, &worker).map(|bytes| self.place.replace(&self.name, &bytes));
    }
}

impl Drop for Beat<'_> {
    fn drop(&mut self) {
        let _ = self.place.remove(&self.name);
    }
}

/// What this machine is called.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name: String = name
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .take(60)
        .collect();
    match name.is_empty() {
        true => "somewhere".to_owned(),
        false => name,
    }
}
