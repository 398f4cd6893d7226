//! What a run did, for `--summary` and the exit code.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use genus::{Counts, Skipped};
use genus_core::{Kind, Taxonomy};
use genus_files::AtomicFile;
use serde::Serialize;

use crate::failure::Failure;

/// The most skipped files that a summary names.
const NAMED: usize = 10_000;

static RECORD: Mutex<Record> = Mutex::new(Record::new());

/// What is worth counting.
#[derive(Serialize)]
struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<ItemCounts>,
    /// Images that became features.
    images_embedded: u64,
    skipped: SkippedFiles,
    seconds: BTreeMap<&'static str, f64>,
}

/// Where the items were assigned.
#[derive(Serialize)]
struct ItemCounts {
    all: u64,
    known: u64,
    new: u64,
    unsure: u64,
    known_classes: usize,
    new_groups: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenes: Option<usize>,
}

/// What is missing from the result.
#[derive(Serialize)]
struct SkippedFiles {
    count: u64,
    /// Pictures of formats that cannot be read, by how their names end.
    unsupported: BTreeMap<String, u64>,
    /// Others, with the reason.
    files: Vec<(String, String)>,
}

impl Record {
    const fn new() -> Self {
        Self {
            items: None,
            images_embedded: 0,
            skipped: SkippedFiles {
                count: 0,
                unsupported: BTreeMap::new(),
                files: Vec::new(),
            },
            seconds: BTreeMap::new(),
        }
    }
}

fn record() -> MutexGuard<'static, Record> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes files that are missing from the result.
pub(crate) fn skipped(files: &[Skipped]) {
    let skipped = &mut record().skipped;
    skipped.count += files.len() as u64;
    let room = NAMED.saturating_sub(skipped.files.len());
    let named = files.iter().take(room);
    skipped
        .files
        .extend(named.map(|file| (file.path.display().to_string(), file.reason.clone())));
}

/// Notes pictures that are missing from the result, by how their names end.
pub(crate) fn unsupported(formats: &BTreeMap<String, u64>) {
    let skipped = &mut record().skipped;
    for (ending, count) in formats {
        skipped.count += count;
        *skipped.unsupported.entry(ending.clone()).or_default() += count;
    }
}

/// Notes images that became features.
pub(crate) fn embedded(images: u64) {
    record().images_embedded += images;
}

/// Notes where items went.
pub(crate) fn items(taxonomy: &Taxonomy, counts: &Counts) {
    let entries = taxonomy.entries();
    let of = |kind: Kind| (0..entries.len()).filter(move |&at| entries[at].kind == kind);
    let sure = |kind: Kind| of(kind).map(|at| counts.items[at] - counts.unsure[at]).sum();
    record().items = Some(ItemCounts {
        all: counts.items.iter().sum(),
        known: sure(Kind::Known),
        new: sure(Kind::Novel),
        unsure: counts.unsure.iter().sum(),
        known_classes: of(Kind::Known).count(),
        new_groups: of(Kind::Novel).count(),
        scenes: counts.scenes,
    });
}

/// Notes how long a part of the run took.
pub(crate) fn time(part: &'static str, time: Duration) {
    *record().seconds.entry(part).or_default() += time.as_secs_f64();
}

/// The exit code of a run that came to its end.
pub(crate) fn code() -> u8 {
    match record().skipped.count {
        0 => 0,
        _ => 3,
    }
}

/// The whole of a summary.
#[derive(Serialize)]
struct RunSummary<'a> {
    genus: &'a str,
    command: Vec<String>,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    record: &'a Record,
}

/// Where the summary goes.
static PATH: OnceLock<PathBuf> = OnceLock::new();

/// Says where the summary goes, for [`write_stopped`].
pub(crate) fn will_go_to(path: &Path) {
    // There is one command line.
    let _ = PATH.set(path.to_owned());
}

/// Writes the summary of a run that is stopped in the middle, if there is to be one.
pub(crate) fn write_stopped(code: u8) {
    if let Some(path) = PATH.get()
        && let Err(failure) = write(
            path,
            code,
            Some(&Failure::Interrupted("stopped by a signal".to_owned())),
        )
    {
        say!("{failure}");
    }
}

/// Writes the summary of a run that took so long and ended with this code.
pub(crate) fn write(path: &Path, code: u8, failure: Option<&Failure>) -> Result<(), Failure> {
    let summary = RunSummary {
        genus: env!("CARGO_PKG_VERSION"),
        command: std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        exit_code: code,
        error: failure.and_then(Failure::message).map(str::to_owned),
        record: &record(),
    };
    let failed = |e: &dyn std::fmt::Display| Failure::failed(format!("cannot write {}: {e}", path.display()));
    let text = serde_json::to_string_pretty(&summary).map_err(|e| failed(&e))?;
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "{text}").map_err(|e| failed(&e))?;
    Ok(file.commit()?)
}
