//! A taxonomy that grows with the items.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use genus_core::{Assignment, FeatureError, Stream, StreamPlace, TaskError, Taxonomy};
use genus_data::{
    AssignmentRow, AssignmentWriter, FeatureWriter, Format, GrowthState, ItemKey, KnownItem, KnownItems, Origin,
    SideFile, TaxonomyFolder, read_growing,
};
use genus_report::Report;

use crate::assign::{AssignOptions, AssignedItems, check_fit, with_calibration};
use crate::counts::Counts;
use crate::error::Purpose;
use crate::images::{Embedder, ImageOptions};
use crate::items::{Items, Source};
use crate::output::{Folder, Output, SavedFiles, write_rows};
use crate::report::{Page, REPORT_FILE, begin_page};
use crate::{Error, Progress, Skipped};

/// Grows the taxonomy of a folder with the items of a source, in their order, and writes it to the folder `into`, which may be
/// the same one. Items that fit no category wait there for the next run.
///
/// Nothing is written before [`GrowOutcome::save`]; until then the folder is locked.
pub fn grow(
    taxonomy: &Path,
    items: impl Into<Source>,
    into: &Path,
    options: &AssignOptions,
    progress: &dyn Progress,
) -> Result<GrowOutcome, Error> {
    let start = Instant::now();
    // The folder is nobody else's before it is read, or what others add in between would be lost.
    let ground = GrowthFolder::open(into)?;
    let found = read_growing(taxonomy)?;
    let (origin, before) = (found.made, found.growth);
    let found = with_calibration(taxonomy, found.taxonomy, &origin, options)?;
    let mut growth = GrowthRun::new(found.clone(), &origin, before, taxonomy, ground)?;
    let mut embedder = Embedder::of_taxonomy(&options.images, taxonomy, &origin, progress);
    let items = items.into();
    let query = items.called().to_owned();
    let items = embedder.items(items, &options.tables.for_pile(), false)?;
    check_fit((taxonomy, &found, &origin), (&query, &items), progress)?;
    let observed = growth.observe(&items, progress)?;
    progress.end();
    let taxonomy = growth.stream.taxonomy();
    let mut counts = Counts::new(&taxonomy);
    counts.add(&observed.assignments);
    Ok(GrowOutcome {
        ids: observed.ids,
        assignments: observed.assignments,
        taxonomy,
        counts,
        known: observed.known,
        joined: observed.joined.len(),
        waiting: growth.waiting.len(),
        skipped: embedder.skipped().to_vec(),
        time: start.elapsed(),
        origin,
        newly_joined: observed.joined,
        // A file that was there before changes nothing.
        unchanged: observed.nothing_new && growth.in_place,
        growth,
        images: options.images.clone(),
        items,
    })
}

/// The result of growing a taxonomy.
#[must_use = "what is not saved is lost"]
pub struct GrowOutcome {
    /// What the items are called.
    pub ids: Vec<String>,
    /// The final assignment of each.
    pub assignments: Vec<Assignment>,
    /// The grown taxonomy.
    pub taxonomy: Taxonomy,
    /// How many of the items each category has.
    pub counts: Counts,
    /// How many of the items had been added before.
    pub known: usize,
    /// How many items of earlier runs have joined a category.
    pub joined: usize,
    /// How many items are waiting.
    pub waiting: usize,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// The running time.
    pub time: Duration,
    /// Where the taxonomy comes from.
    pub origin: Origin,
    newly_joined: Vec<(String, Assignment)>,
    unchanged: bool,
    growth: GrowthRun,
    images: ImageOptions,
    items: Items,
}

impl GrowOutcome {
    /// The taxonomy and what it grew from, in words.
    pub fn how(&self) -> String {
        format!("grown from a taxonomy of {}", self.origin.method)
    }

    /// Writes the grown taxonomy, what waits, where items of earlier runs have gone, and a page that shows the items of this one;
    /// then where each item is, into an output, if there is one.
    pub fn save(
        mut self,
        output: Option<Output>,
        report: Option<&Page>,
        progress: &dyn Progress,
    ) -> Result<SavedFiles, Error> {
        // Items that were there before change nothing, and neither does their page.
        let is_shown = self.unchanged && self.growth.ground.folder.path().join(REPORT_FILE).exists();
        let page = match report {
            Some(page) if !is_shown => Some(self.page(page, progress)?),
            _ => None,
        };
        let Some(mut output) = output else {
            let report = self.save_taxonomy(page.as_ref())?;
            return Ok(SavedFiles {
                report,
                ..SavedFiles::default()
            });
        };
        // The taxonomy is saved first: whoever reads the rows may leave after the first.
        output.hold();
        write_rows(&mut output, &self.ids, &self.assignments, &self.taxonomy, None)?;
        let (items, method) = (std::mem::take(&mut self.items), self.origin.method.clone());
        let (mut saved, report) = output.save(&items, &method, progress, |_| self.save_taxonomy(page.as_ref()))?;
        saved.report = report;
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
        shown.page(page, None, Some(&self.assignments), progress)
    }

    /// Where the page is, if there is one.
    fn save_taxonomy(mut self, page: Option<&Report>) -> Result<Option<PathBuf>, Error> {
        let folder = self.growth.ground.folder.path().to_owned();
        let page = page.map(|page| begin_page(page, &folder)).transpose()?;
        if !self.unchanged {
            let made = Origin {
                growing: Some(GrowthState {
                    familiar: self.growth.stream.familiar(),
                    waiting: self.waiting,
                }),
                ..self.origin
            };
            self.growth.write_waiting(self.taxonomy.centres().dim(), &made)?;
            self.growth.write_joined(&self.newly_joined, &self.taxonomy)?;
            let GrowthRun { ground, items, .. } = &mut self.growth;
            ground.taxonomy.outdate(REPORT_FILE);
            ground.taxonomy.write(&self.taxonomy, &made, Some(items))?;
        }
        self.growth.ground.folder.keep();
        let Some(page) = page else { return Ok(None) };
        let path = page.path().to_owned();
        page.commit()?;
        Ok(Some(path))
    }
}

/// The locked folder that a taxonomy grows into.
struct GrowthFolder {
    /// Given up before the folder is removed.
    taxonomy: TaxonomyFolder,
    folder: Folder,
}

impl GrowthFolder {
    fn open(path: &Path) -> Result<Self, Error> {
        let folder = Folder::create(path, Purpose::Growth)?;
        Ok(Self {
            taxonomy: TaxonomyFolder::open(path)?,
            folder,
        })
    }

    /// Whether this is the folder that a path names.
    fn is_at(&self, path: &Path) -> bool {
        match (fs::canonicalize(self.folder.path()), fs::canonicalize(path)) {
            (Ok(own), Ok(other)) => own == other,
            _ => false,
        }
    }
}

/// A taxonomy that is to grow, and the folder that it goes into.
struct GrowthRun {
    stream: Stream,
    ground: GrowthFolder,
    /// Whether it grows where it is.
    in_place: bool,
    /// How many of those that wait came with earlier files. They have the first numbers.
    earlier: u64,
    /// What waits, by its number in the stream.
    waiting: BTreeMap<u64, WaitingRow>,
    /// All items that it has ever grown by.
    items: KnownItems,
}

/// An item that waits.
struct WaitingRow {
    id: String,
    features: Vec<f32>,
    /// Its number among all items.
    item: usize,
}

/// What a stream made of the items of a source.
struct ObservedItems {
    ids: Vec<String>,
    assignments: Vec<Assignment>,
    /// Items of earlier runs that have found a category.
    joined: Vec<(String, Assignment)>,
    /// How many of the items had been added before.
    known: usize,
    nothing_new: bool,
}

impl GrowthRun {
    /// Goes on from a taxonomy that was read from a folder, and from what waits there.
    fn new(
        taxonomy: Taxonomy,
        made: &Origin,
        before: genus_data::Growth,
        from: &Path,
        ground: GrowthFolder,
    ) -> Result<Self, Error> {
        let mut stream = Stream::new(taxonomy).map_err(|source| Error::CannotGrow { source })?;
        if let Some(growing) = made.growing {
            stream = stream.with_familiar(growing.familiar);
        }
        let mut growth = Self {
            stream,
            in_place: ground.is_at(from),
            ground,
            earlier: 0,
            waiting: BTreeMap::new(),
            items: before.items,
        };
        let Some(table) = before.waiting else { return Ok(growth) };
        growth.stream = growth.stream.with_waiting(&table.features)?;
        // Which item each of them is; an older release did not say.
        let numbers: BTreeMap<u32, usize> = growth
            .items
            .iter()
            .enumerate()
            .filter_map(|(number, item)| Some((item.waiting?, number)))
            .collect();
        let guesses = growth.stream.waiting();
        for (row, (id, features)) in (0..).zip(table.ids.into_iter().zip(table.features.iter())) {
            let item = match (numbers.get(&row), guesses.get(row as usize)) {
                (Some(&item), _) => item,
                (None, Some(&(_, place))) => {
                    let key = ItemKey::new(&id, features);
                    growth.items.insert(key, KnownItem { place, waiting: None })
                }
                (None, None) => continue,
            };
            let features = features.to_vec();
            growth.waiting.insert(u64::from(row), WaitingRow { id, features, item });
        }
        growth.earlier = growth.waiting.len() as u64;
        Ok(growth)
    }

    /// Observes the items in their order, those excepted that were observed before.
    fn observe(&mut self, items: &Items, progress: &dyn Progress) -> Result<ObservedItems, Error> {
        let mut ids = Vec::new();
        // The number of every row's item among all items.
        let mut rows = Vec::new();
        let mut joined = Vec::new();
        let mut known = 0;
        items.for_each_block(|block| {
            for (id, item) in block.ids.iter().zip(block.features.iter()) {
                let key = ItemKey::new(id, item);
                if let Some(number) = self.items.find(&key) {
                    rows.push(number);
                    known += 1;
                    continue;
                }
                let observation = self.stream.observe(item).map_err(|e| in_row(e, rows.len()))?;
                let (StreamPlace::Joined(place) | StreamPlace::Waiting(place)) = observation.place;
                let number = self.items.insert(key, KnownItem { place, waiting: None });
                rows.push(number);
                if let StreamPlace::Waiting(_) = observation.place {
                    let waiting = WaitingRow {
                        id: id.clone(),
                        features: item.to_vec(),
                        item: number,
                    };
                    self.waiting.insert(observation.number, waiting);
                }
                let over = observation.settled.into_iter().chain(observation.given_up);
                self.settle(over, &mut joined);
            }
            progress.advance(block.len() as u64);
            ids.extend(block.ids);
            Ok(())
        })?;
        let nothing_new = known == rows.len();
        if !nothing_new {
            let last = self.stream.review();
            self.settle(last, &mut joined);
        }
        for (number, guess) in self.stream.waiting() {
            if let Some(waiting) = self.waiting.get(&number) {
                self.place(waiting.item, guess);
            }
        }
        let assignments = rows.iter().filter_map(|&row| Some(self.items.get(row)?.place));
        Ok(ObservedItems {
            ids,
            assignments: assignments.collect(),
            joined,
            known,
            nothing_new,
        })
    }

    /// Notes where items are whose wait is over; earlier ones that have found a category are in `joined` as well.
    fn settle(&mut self, over: impl IntoIterator<Item = (u64, Assignment)>, joined: &mut Vec<(String, Assignment)>) {
        for (number, place) in over {
            let Some(waited) = self.waiting.remove(&number) else {
                continue;
            };
            self.place(waited.item, place);
            if number < self.earlier && !place.score.unsure {
                joined.push((waited.id, place));
            }
        }
    }

    fn place(&mut self, item: usize, place: Assignment) {
        if let Some(item) = self.items.get_mut(item) {
            *item = KnownItem { place, waiting: None };
        }
    }

    fn write_waiting(&mut self, dim: usize, made: &Origin) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let path = self.ground.taxonomy.stage(SideFile::Waiting);
        let mut writer = FeatureWriter::create(&path, dim, made.encoder.as_deref(), false)?;
        let mut taken = BTreeSet::new();
        for (row, WaitingRow { id, features, item }) in (0..).zip(self.waiting.values()) {
            // Files may call different items the same.
            let (mut name, mut number) = (id.clone(), 1);
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{id}#{number}");
            }
            writer.write(&[name], &[], features)?;
            if let Some(item) = self.items.get_mut(*item) {
                item.waiting = Some(row);
            }
        }
        writer.finish()?;
        Ok(())
    }

    fn write_joined(&mut self, joined: &[(String, Assignment)], taxonomy: &Taxonomy) -> Result<(), Error> {
        if joined.is_empty() {
            return Ok(());
        }
        let path = self.ground.taxonomy.stage(SideFile::Joined);
        let mut writer = AssignmentWriter::create(&path, Format::Csv)?;
        for (id, place) in joined {
            let entry = &taxonomy.entries()[place.category];
            writer.write(&AssignmentRow {
                id,
                category: &entry.name,
                kind: entry.kind,
                score: place.score,
                scene: None,
            })?;
        }
        Ok(writer.finish()?)
    }
}

/// The same error with the row of the file that it is about.
fn in_row(error: TaskError, row: usize) -> TaskError {
    match error {
        TaskError::Queries(FeatureError::ZeroRow { .. }) => TaskError::Queries(FeatureError::ZeroRow { row }),
        other => other,
    }
}
