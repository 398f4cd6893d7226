//! Further items for a taxonomy, streamed.

use std::path::Path;
use std::time::{Duration, Instant};

use genus_core::{Assignment, Features, Sample, Stop, Support, Task, Taxonomy};
use genus_data::{Origin, SortedItem, Table, TableOptions, read_taxonomy, same_encoder};
use genus_report::{Provenance, Report};
use genus_vision::Limits;

use crate::calibrate::{CalibrationFile, knowledge};
use crate::counts::Counts;
use crate::discover::{SUBSET, check_dim, note_left_out};
use crate::images::{Embedder, ImageOptions};
use crate::items::{Items, Source};
use crate::output::{Output, Rows, SavedFiles, write_rows};
use crate::report::{Page, PageContents, ReportSource, begin_page, remove_page};
use crate::{Error, Length, Progress, Skipped};

/// How items are assigned to a taxonomy.
#[derive(Clone, Debug, Default)]
pub struct AssignOptions {
    /// The calibration, for a taxonomy that has none.
    pub calibration: Option<CalibrationFile>,
    /// How images become features.
    pub images: ImageOptions,
    /// Which columns of tables are ids, labels and features.
    pub tables: TableOptions,
}

/// Where the items were assigned.
#[derive(Debug)]
pub struct AssignOutcome {
    /// The category of every item; empty after [`assign_into`], which passes them on.
    pub assignments: Vec<SortedItem>,
    /// The categories.
    pub taxonomy: Taxonomy,
    /// Where the taxonomy comes from.
    pub origin: Origin,
    /// Whether the calibration comes from the options and not from the taxonomy.
    pub calibrated_here: bool,
    /// The number of items of each category.
    pub counts: Counts,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// The running time.
    pub time: Duration,
    images: ImageOptions,
    items: Items,
    /// A sample for the page, if the items could be read only once.
    shown: Option<PageSample>,
}

/// Assigns the items of a source to the categories of a taxonomy in a folder.
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

/// Assigns any number of items, and passes each assignment on as it is made.
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
    let found = with_calibration(taxonomy, found, &origin, options)?;
    let mut embedder = Embedder::of_taxonomy(&options.images, taxonomy, &origin, progress);
    let items = items.into();
    let query = items.called().to_owned();
    let items = embedder.items_once(items, &options.tables.for_pile())?;
    check_fit((taxonomy, &found, &origin), (&query, &items), progress)?;
    let mut counts = Counts::new(&found);
    let mut shown = items.is_read_once().then(|| PageSample::new(origin.seed));
    items.for_each_block(|block| {
        let assignments = found.assign(&block.features)?;
        if let Some(shown) = &mut shown {
            shown.add(&block);
        }
        counts.add(&assignments);
        write_rows(rows, &block.ids, &assignments, &found, None)?;
        rows.flush()?;
        progress.advance(block.len() as u64);
        Ok(())
    })?;
    progress.end();
    Ok(AssignOutcome {
        skipped: embedder.skipped().to_vec(),
        assignments: Vec::new(),
        taxonomy: found,
        origin,
        calibrated_here,
        counts,
        time: start.elapsed(),
        images: options.images.clone(),
        items,
        shown,
    })
}

impl AssignOutcome {
    /// Lets the assignments that an output was given appear, and does with the items what it was asked for. A folder has room for
    /// a page that shows them, too.
    pub fn save(&self, output: Output, report: Option<&Page>, progress: &dyn Progress) -> Result<SavedFiles, Error> {
        let (mut saved, page) = output.save(&self.items, &self.origin.method, progress, |folder| {
            let Some(folder) = folder else { return Ok(None) };
            let page = match report {
                Some(page) => Some(begin_page(&self.page(page, progress)?, folder)?),
                None => None,
            };
            Ok(page)
        })?;
        match (page, &saved.folder) {
            (Some(page), _) => {
                saved.report = Some(page.path().to_owned());
                page.commit()?;
            }
            (None, Some(folder)) => remove_page(folder)?,
            (None, None) => {}
        }
        Ok(saved)
    }

    fn page(&self, page: &Page, progress: &dyn Progress) -> Result<Report, Error> {
        let shown = AssignedItems {
            taxonomy: &self.taxonomy,
            counts: &self.counts,
            origin: &self.origin,
            how: self.how(),
            time: self.time,
            items: &self.items,
            limits: &self.images.limits,
        };
        shown.page(page, self.shown.clone(), None, progress)
    }

    /// Describes the taxonomy and its calibration in words.
    pub fn how(&self) -> String {
        let method = &self.origin.method;
        match (self.taxonomy.calibration(), self.calibrated_here) {
            (Some(own), false) => format!("taxonomy of {method} {}", knowledge(own)),
            (Some(given), true) => format!("taxonomy of {method}, calibrated {}", knowledge(given)),
            (None, _) => format!("taxonomy of {method}"),
        }
    }
}

/// Items that were assigned, as a page shows them.
pub(crate) struct AssignedItems<'a> {
    pub(crate) taxonomy: &'a Taxonomy,
    pub(crate) counts: &'a Counts,
    pub(crate) origin: &'a Origin,
    pub(crate) how: String,
    pub(crate) time: Duration,
    pub(crate) items: &'a Items,
    pub(crate) limits: &'a Limits,
}

impl AssignedItems<'_> {
    /// The page: of many items a random subset is shown, which is chosen here where it was not chosen before. Where each is can be
    /// said by its row; otherwise it is assigned again.
    pub(crate) fn page(
        &self,
        page: &Page,
        chosen: Option<PageSample>,
        places: Option<&[Assignment]>,
        progress: &dyn Progress,
    ) -> Result<Report, Error> {
        let shown = match chosen {
            Some(shown) => shown,
            None => {
                let mut shown = PageSample::new(self.origin.seed);
                self.items.for_each_block(|block| {
                    shown.add(&block);
                    Ok(())
                })?;
                shown
            }
        };
        let (names, values) = shown.finish();
        let features = Features::new(self.taxonomy.centres().dim(), values)?;
        let assignments = match places {
            Some(places) => names.iter().filter_map(|&(row, ..)| places.get(row).copied()).collect(),
            None => self.taxonomy.assign(&features)?,
        };
        let ids: Vec<String> = names.iter().map(|(_, id, _)| id.clone()).collect();
        let labels: Vec<Option<String>> = names.into_iter().map(|(.., label)| label).collect();
        let task = Task::new(&Support::none(features.dim()), features)?;
        page.make(
            PageContents {
                described: ReportSource {
                    task: &task,
                    taxonomy: self.taxonomy,
                    counts: self.counts,
                    stop: Stop::Direct,
                    assignments: &assignments,
                    scenes: None,
                    ids: &ids,
                    examples: &[],
                    truths: None,
                    seed: self.origin.seed,
                },
                labels: &labels,
                made: Provenance {
                    method: self.origin.method.clone(),
                    how: self.how.clone(),
                    encoder: match &self.origin.images {
                        Some(images) => Some(images.encoder.clone()),
                        None => self.origin.encoder.clone(),
                    },
                    seed: self.origin.seed,
                    seconds: self.time.as_secs_f64(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                },
                images: self.items.images(),
                example_images: &[],
                limits: self.limits,
            },
            progress,
        )
    }
}

/// A taxonomy with the calibration that it is given, if it is given one.
pub fn with_calibration(
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

/// Whether the items of a query have the same features as a taxonomy; that they are assigned begins.
pub(crate) fn check_fit(
    (path, taxonomy, origin): (&Path, &Taxonomy, &Origin),
    (query, items): (&Path, &Items),
    progress: &dyn Progress,
) -> Result<(), Error> {
    let header = items.header()?;
    note_left_out(query, &header.left_out, progress);
    same_encoder((path, origin.encoder.as_deref()), (query, header.encoder.as_deref()))?;
    check_dim(path, taxonomy.centres().dim(), query, header.dim)?;
    progress.start("items", header.rows.map_or(Length::Unknown, Length::Steps));
    Ok(())
}

/// An item's row in the pile, what it is called, and the label that it came with.
type Name = (usize, String, Option<String>);

/// The items that a page shows: all of a few, of more a random subset.
#[derive(Clone, Debug)]
pub(crate) struct PageSample {
    rows: usize,
    /// As long as they are few.
    all: (Vec<Name>, Vec<f32>),
    some: Sample<Name>,
}

impl PageSample {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rows: 0,
            all: (Vec::new(), Vec::new()),
            some: Sample::new(SUBSET, seed),
        }
    }

    /// The next items of the pile.
    pub(crate) fn add(&mut self, block: &Table) {
        for (at, item) in block.features.iter().enumerate() {
            let name = || (self.rows, block.ids[at].clone(), block.labels[at].clone());
            self.some.offer(item, name);
            match self.rows < SUBSET {
                true => {
                    self.all.0.push(name());
                    self.all.1.extend_from_slice(item);
                }
                false => self.all = (Vec::new(), Vec::new()),
            }
            self.rows += 1;
        }
    }

    /// What they are called, and their features one after the other.
    fn finish(self) -> (Vec<Name>, Vec<f32>) {
        match self.rows <= SUBSET {
            true => self.all,
            false => {
                let (_, names, values) = self.some.finish();
                (names, values)
            }
        }
    }
}
