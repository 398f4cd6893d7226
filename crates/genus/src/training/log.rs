//! What a run writes down while it goes on: `metrics.jsonl`, and event files for TensorBoard.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use genus_files::{FileError, open_own, read_text};
use serde::Deserialize;

use super::checkpoint;
use super::tensorboard::EventWriter;
use super::{Step, TrainingError, Validation};

const METRICS: &str = "metrics.jsonl";

/// What a run writes down while it goes on.
pub(crate) struct TrainingLog {
    path: PathBuf,
    metrics: fs::File,
    events: EventWriter,
}

impl TrainingLog {
    pub(crate) fn open(folder: &Path) -> Result<Self, TrainingError> {
        let path = folder.join(METRICS);
        let failed = |e| FileError::write(path.display(), e);
        Ok(Self {
            metrics: open_own(OpenOptions::new().create(true).append(true), &path).map_err(failed)?,
            events: EventWriter::create(folder, clock()).map_err(failed)?,
            path,
        })
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<(), TrainingError> {
        let values = [
            ("loss", step.loss as f32),
            ("learning rate", step.learning_rate as f32),
            ("images per second", step.images_per_second as f32),
        ];
        self.write(serde_json::to_string(step), step.step, &values)
    }

    pub(crate) fn validation(&mut self, found: &Validation) -> Result<(), TrainingError> {
        let values = [
            ("validation/All", found.all as f32),
            ("validation/Old", found.old as f32),
            ("validation/New", found.new as f32),
        ];
        self.write(serde_json::to_string(found), found.step, &values)
    }

    /// Brings what was written down onto the disk.
    pub(crate) fn sync(&self) -> Result<(), TrainingError> {
        let synced = self.metrics.sync_data();
        Ok(synced.map_err(|e| FileError::write(self.path.display(), e))?)
    }

    fn write(
        &mut self,
        line: serde_json::Result<String>,
        step: u64,
        values: &[(&str, f32)],
    ) -> Result<(), TrainingError> {
        let written = line
            .map_err(io::Error::from)
            .and_then(|line| self.metrics.write_all(format!("{line}\n").as_bytes()))
            .and_then(|()| self.events.scalars(step, clock(), values));
        Ok(written.map_err(|e| FileError::write(self.path.display(), e))?)
    }
}

/// Seconds since 1970.
fn clock() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Whether anything was written down.
pub(crate) fn exists(folder: &Path) -> bool {
    folder.join(METRICS).exists()
}

/// Whether the held-out classes were judged after a step.
pub(crate) fn is_validated(folder: &Path, step: u64) -> Result<bool, TrainingError> {
    let text = read(&folder.join(METRICS))?.unwrap_or_default();
    let mut found = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Validation>(line).ok());
    Ok(found.any(|found| found.step == step))
}

fn read(path: &Path) -> Result<Option<String>, TrainingError> {
    match read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TrainingError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Takes the metrics of later steps out: those steps are taken again.
pub(crate) fn forget_after(folder: &Path, step: u64) -> Result<(), TrainingError> {
    let path = folder.join(METRICS);
    let Some(text) = read(&path)? else { return Ok(()) };
    #[derive(Deserialize)]
    struct LogLine {
        step: u64,
    }
    // A last line that was cut short belongs to a later step than the checkpoint.
    let is_kept = |line: &&str| serde_json::from_str::<LogLine>(line).is_ok_and(|line| line.step <= step);
    let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    checkpoint::write(&path, kept.as_bytes())
}
