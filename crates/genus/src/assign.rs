//! Further items for a taxonomy, streamed.

use std::path::Path;
use std::time::{Duration, Instant};

use genus_core::Taxonomy;
use genus_data::{Origin, SortedItem, read_taxonomy, same_encoder};

use crate::calibrate::{CalibrationFile, knowledge};
use crate::counts::Counts;
use crate::discover::check_dim;
use crate::images::{Embedder, ImageOptions};
use crate::items::{Items, Source};
use crate::output::{Output, Rows, Saved, write_rows};
use crate::{Error, Length, Progress, Skipped};

/// How items are assigned to a taxonomy.
#[derive(Clone, Debug, Default)]
pub struct AssignOptions {
    /// What is known of the features, for a taxonomy that has no calibration of its own.
    pub calibration: Option<CalibrationFile>,
    /// How images become features.
    pub images: ImageOptions,
}

/// Where items went.
#[derive(Debug)]
pub struct AssignOutcome {
    /// Where every item went; empty where [`assign_into`] handed them on.
    pub assignments: Vec<SortedItem>,
    /// The categories.
    pub taxonomy: Taxonomy,
    /// Where the taxonomy comes from.
    pub origin: Origin,
    /// Whether it is calibrated by what it was given here, and not by itself.
    pub calibrated_here: bool,
    /// How many items each category got.
    pub counts: Counts,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// How long it took.
    pub time: Duration,
    items: Items,
}

/// Assigns the items of a source to the categories of a taxonomy, which is in a folder.
pub fn assign(
    taxonomy: &Path,
    items: impl Into<Source>,
    options: &AssignOptions,
    progress: &dyn Progress,
) -> Result<AssignOutcome, Error> {
    let mut assignments = Vec::new();
    let outcome = assign_into(taxonomy, items, options, &mut assignments, progress)?;
    Ok(AssignOutcome { assignments, ..outcome })
}

/// Assigns any number of items, and hands on where they went as they are assigned.
pub fn assign_into(
    taxonomy: &Path,
    items: impl Into<Source>,
    options: &AssignOptions,
    rows: &mut dyn Rows,
    progress: &dyn Progress,
) -> Result<AssignOutcome, Error> {
    let start = Instant::now();
    let (found, origin) = read_taxonomy(taxonomy)?;
    let calibrated_here = options.calibration.is_some();
    let found = calibrated(taxonomy, found, &origin, options)?;
    let mut embedder = Embedder::new(&options.images, progress);
    let items = fitting_items(taxonomy, &found, &origin, items.into(), &mut embedder, progress)?;
    let mut counts = Counts::new(&found);
    items.for_each_block(|block| {
        let assignments = found.assign(&block.features)?;
        counts.add(&assignments);
        write_rows(rows, &block.ids, &assignments, &found, None)?;
        progress.advance(block.len() as u64);
        Ok(())
    })?;
    progress.end();
    Ok(AssignOutcome {
        assignments: Vec::new(),
        taxonomy: found,
        origin,
        calibrated_here,
        counts,
        skipped: embedder.skipped().to_vec(),
        time: start.elapsed(),
        items,
    })
}

impl AssignOutcome {
    /// Lets the assignments that an output was given appear, and does with the items what it was asked for.
    pub fn save(&self, output: Output, progress: &dyn Progress) -> Result<Saved, Error> {
        let (saved, ()) = output.save(&self.items, &self.origin.method, progress, |_| Ok(()))?;
        Ok(saved)
    }

    /// The taxonomy and what it goes by, in words.
    pub fn how(&self) -> String {
        let method = &self.origin.method;
        match (self.taxonomy.calibration(), self.calibrated_here) {
            (Some(own), false) => format!("taxonomy of {method} {}", knowledge(own)),
            (Some(given), true) => format!("taxonomy of {method}, calibrated {}", knowledge(given)),
            (None, _) => format!("taxonomy of {method}"),
        }
    }
}

/// A taxonomy with the calibration that it is given, if it is given one.
pub(crate) fn calibrated(
    path: &Path,
    taxonomy: Taxonomy,
    origin: &Origin,
    options: &AssignOptions,
) -> Result<Taxonomy, Error> {
    let Some(given) = &options.calibration else {
        return Ok(taxonomy);
    };
    if let Some(own) = taxonomy.calibration() {
        return Err(Error::CalibratedAlready {
            taxonomy: path.to_owned(),
            knowledge: knowledge(own),
        });
    }
    given.check(path, taxonomy.centres().dim(), origin.encoder.as_deref())?;
    let calibrated = taxonomy.calibrated_by(given.calibration.clone());
    calibrated.map_err(|source| Error::Calibration {
        calibration: given.path().to_owned(),
        source,
    })
}

/// The items of a source, of the same features as a taxonomy; that they are assigned begins.
pub(crate) fn fitting_items(
    path: &Path,
    taxonomy: &Taxonomy,
    origin: &Origin,
    source: Source,
    embedder: &mut Embedder,
    progress: &dyn Progress,
) -> Result<Items, Error> {
    let query = source.path().to_owned();
    let items = embedder.items(source, false)?;
    let header = items.header()?;
    same_encoder((path, origin.encoder.as_deref()), (&query, header.encoder.as_deref()))?;
    check_dim(path, taxonomy.centres().dim(), &query, header.dim)?;
    progress.start("items", header.rows.map_or(Length::Unknown, Length::Steps));
    Ok(items)
}
