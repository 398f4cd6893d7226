//! `genus assign --grow`: a taxonomy that grows with the items.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use genus_core::{Assignment, FeatureError, Place, Stream, TaskError, Taxonomy};
use genus_data::{
    AssignmentRow, AssignmentWriter, Beside, FeatureWriter, Format, Growing, ItemKey, KnownItem, KnownItems, Origin,
    TaxonomyFolder,
};

use crate::blocks;
use crate::failure::Failure;
use crate::images::Input;
use crate::output::{Folder, Sink};
use crate::progress::Bar;
use crate::summary::Counts;

/// The folder that a taxonomy is to grow into. Nobody else changes it as long as this lives.
pub(crate) struct Ground {
    /// Given up before the folder is removed.
    taxonomy: TaxonomyFolder,
    folder: Folder,
}

impl Ground {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let folder = Folder::create(path, "--grow")?;
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
pub(crate) struct Growth {
    stream: Stream,
    ground: Ground,
    /// Whether it grows where it is.
    in_place: bool,
    /// How many of those that wait came with earlier files. They have the first numbers.
    earlier: u64,
    /// What waits, by its number in the stream.
    waiting: BTreeMap<u64, Waiting>,
    /// All items that it has ever grown by.
    items: KnownItems,
}

/// An item that waits.
struct Waiting {
    id: String,
    features: Vec<f32>,
    /// Its number among all items.
    item: usize,
}

/// What came of the items of a file.
pub(crate) struct Grown {
    /// The categories.
    pub(crate) taxonomy: Taxonomy,
    /// How many of the items each has.
    pub(crate) counts: Counts,
    /// How many items of this file were there before.
    pub(crate) known: usize,
    /// How many items of earlier files have joined a category.
    pub(crate) joined: usize,
    /// How many items wait.
    pub(crate) waiting: usize,
}

impl Growth {
    /// Goes on from a taxonomy that was read from a folder, and from what waits there.
    pub(crate) fn new(
        taxonomy: Taxonomy,
        made: &Origin,
        before: genus_data::Growth,
        from: &Path,
        ground: Ground,
    ) -> Result<Self, Failure> {
        let way_out = "or give one with --calibration";
        let no_calibration = |e| Failure::failed(format!("--grow: {e}, {way_out}"));
        let mut stream = Stream::new(taxonomy).map_err(no_calibration)?;
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
            growth.waiting.insert(u64::from(row), Waiting { id, features, item });
        }
        growth.earlier = growth.waiting.len() as u64;
        Ok(growth)
    }

    /// Observes the items of a file in their order, those excepted that were observed before, and writes the grown taxonomy,
    /// what waits, and where items of earlier files have gone; then where each item is in the end.
    pub(crate) fn run(mut self, items: &Input, made: &Origin, sink: &mut Sink, bar: &Bar) -> Result<Grown, Failure> {
        let mut ids = Vec::new();
        // The number of every row's item among all items.
        let mut rows = Vec::new();
        let mut joined = Vec::new();
        let mut known = 0;
        // By the number in the stream, the number among all items.
        let mut observed: BTreeMap<u64, usize> = BTreeMap::new();
        blocks::for_each(items.path(), |block| {
            for (id, item) in block.ids.iter().zip(block.features.iter()) {
                let key = ItemKey::new(id, item);
                if let Some(number) = self.items.find(&key) {
                    rows.push(number);
                    known += 1;
                    continue;
                }
                let observation = self.stream.observe(item).map_err(|e| in_row(e, rows.len()))?;
                let (Place::Joined(place) | Place::Waiting(place)) = observation.place;
                let number = self.items.insert(key, KnownItem { place, waiting: None });
                rows.push(number);
                observed.insert(observation.number, number);
                if let Place::Waiting(_) = observation.place {
                    let waiting = Waiting {
                        id: id.clone(),
                        features: item.to_vec(),
                        item: number,
                    };
                    self.waiting.insert(observation.number, waiting);
                }
                let over = observation.settled.into_iter().chain(observation.given_up);
                self.settle(over, &mut joined);
            }
            bar.add(block.len() as u64);
            ids.extend(block.ids);
            Ok(())
        })?;
        if !observed.is_empty() {
            let last = self.stream.review();
            self.settle(last, &mut joined);
        }
        for (number, guess) in self.stream.waiting() {
            if let Some(waiting) = self.waiting.get(&number) {
                self.place(waiting.item, guess);
            }
        }
        let places: Vec<Assignment> = rows
            .iter()
            .filter_map(|&row| Some(self.items.get(row)?.place))
            .collect();
        let taxonomy = self.stream.taxonomy();
        sink.write(&ids, &places, &taxonomy, None)?;
        sink.plan(items)?;
        let waiting = self.waiting.len();
        // A file that was there before changes nothing.
        if !(observed.is_empty() && self.in_place) {
            let made = Origin {
                growing: Some(Growing {
                    familiar: self.stream.familiar(),
                    waiting,
                }),
                ..made.clone()
            };
            self.write_waiting(taxonomy.centres().dim(), &made)?;
            self.write_joined(&joined, &taxonomy)?;
            self.ground.taxonomy.write(&taxonomy, &made, Some(&self.items))?;
        }
        self.ground.folder.keep();
        let mut counts = Counts::new(&taxonomy);
        counts.add(&places);
        Ok(Grown {
            taxonomy,
            counts,
            known,
            joined: joined.len(),
            waiting,
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

    fn write_waiting(&mut self, dim: usize, made: &Origin) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let path = self.ground.taxonomy.stage(Beside::Waiting);
        let mut writer = FeatureWriter::create(&path, dim, made.encoder.as_deref(), false)?;
        let mut taken = BTreeSet::new();
        for (row, Waiting { id, features, item }) in (0..).zip(self.waiting.values()) {
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

    fn write_joined(&mut self, joined: &[(String, Assignment)], taxonomy: &Taxonomy) -> Result<(), Failure> {
        if joined.is_empty() {
            return Ok(());
        }
        let path = self.ground.taxonomy.stage(Beside::Joined);
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
