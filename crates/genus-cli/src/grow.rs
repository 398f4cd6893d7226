//! `genus assign --grow`: a taxonomy that grows with the items.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use genus_core::{Assignment, FeatureError, Place, Stream, TaskError, Taxonomy};
use genus_data::{AssignmentRow, AssignmentWriter, FeatureWriter, Format, Growing, Origin, read_table, write_taxonomy};

use crate::assign::check_dim;
use crate::blocks;
use crate::failure::Failure;
use crate::images::Input;
use crate::output::{Folder, Sink};
use crate::progress::Bar;
use crate::summary::Counts;

/// The feature file of the items that wait, beside the taxonomy.
const WAITING: &str = "waiting.npz";
/// Where items of earlier files have gone.
const JOINED: &str = "joined.csv";

/// A taxonomy that is to grow, and the folder that it goes into.
pub(crate) struct Growth {
    stream: Stream,
    folder: Folder,
    /// How many of those that wait came with earlier files. They have the first numbers.
    earlier: usize,
    /// What waits: the id and the features of every number.
    waiting: BTreeMap<u64, (String, Vec<f32>)>,
}

/// What came of the items of a file.
pub(crate) struct Grown {
    /// The categories.
    pub(crate) taxonomy: Taxonomy,
    /// How many of the items each has.
    pub(crate) counts: Counts,
    /// How many items of earlier files have joined a category.
    pub(crate) joined: usize,
    /// How many items wait.
    pub(crate) waiting: usize,
}

impl Growth {
    /// Goes on from a taxonomy that was read from a folder, and from what waits there.
    pub(crate) fn new(taxonomy: Taxonomy, made: &Origin, from: &Path, folder: &Path) -> Result<Self, Failure> {
        let way_out = "or give one with --calibration";
        let dim = taxonomy.centres().dim();
        let mut stream = Stream::new(taxonomy).map_err(|e| Failure::failed(format!("--grow: {e}, {way_out}")))?;
        let mut waiting = BTreeMap::new();
        if let Some(growing) = made.growing {
            stream = stream.with_familiar(growing.familiar);
        }
        if let Some(count) = made.growing.map(|growing| growing.waiting).filter(|&count| count > 0) {
            let path = from.join(WAITING);
            let table = read_table(&path)?.table;
            check_dim(from, dim, &path, table.features.dim())?;
            if table.len() != count {
                return Err(Failure::failed(format!(
                    "{} has {} items, but {count} wait for the taxonomy beside it; bring back the files that belong together, \
                     or set `waiting = 0` in taxonomy.toml to go on without them",
                    path.display(),
                    table.len()
                )));
            }
            stream = stream.with_waiting(&table.features)?;
            let items = table.ids.into_iter().zip(table.features.iter());
            waiting.extend((0..).zip(items.map(|(id, row)| (id, row.to_vec()))));
        }
        Ok(Self {
            stream,
            folder: Folder::create(folder, "--grow")?,
            earlier: waiting.len(),
            waiting,
        })
    }

    /// Observes the items of a file in their order and writes where each is in the end, the grown taxonomy, what waits, and
    /// where items of earlier files have gone.
    pub(crate) fn run(mut self, items: &Input, made: &Origin, sink: &mut Sink, bar: &Bar) -> Result<Grown, Failure> {
        let mut ids = Vec::new();
        let mut places: Vec<Assignment> = Vec::new();
        let mut joined = Vec::new();
        blocks::for_each(items.path(), |block| {
            for (id, item) in block.ids.iter().zip(block.features.iter()) {
                let observation = self.stream.observe(item).map_err(|e| in_row(e, places.len()))?;
                if let Place::Waiting(_) = observation.place {
                    self.waiting.insert(observation.number, (id.clone(), item.to_vec()));
                }
                let (Place::Joined(place) | Place::Waiting(place)) = observation.place;
                places.push(place);
                let over = observation.settled.into_iter().chain(observation.given_up);
                self.settle(over, &mut places, &mut joined);
            }
            bar.add(block.len() as u64);
            ids.extend(block.ids);
            Ok(())
        })?;
        let last = self.stream.review();
        self.settle(last, &mut places, &mut joined);
        for (number, guess) in self.stream.waiting() {
            if let Some(at) = (number as usize).checked_sub(self.earlier) {
                places[at] = guess;
            }
        }
        let taxonomy = self.stream.taxonomy();
        sink.write(&ids, &places, &taxonomy, None)?;
        sink.plan(items)?;
        let made = Origin {
            growing: Some(Growing {
                familiar: self.stream.familiar(),
                waiting: self.waiting.len(),
            }),
            ..made.clone()
        };
        self.write_waiting(taxonomy.centres().dim(), &made)?;
        self.write_joined(&joined, &taxonomy)?;
        write_taxonomy(self.folder.path(), &taxonomy, &made)?;
        self.folder.keep();
        let mut counts = Counts::new(&taxonomy);
        counts.add(&places);
        Ok(Grown {
            taxonomy,
            counts,
            joined: joined.len(),
            waiting: self.waiting.len(),
        })
    }

    /// Notes where items are whose wait is over: those of this file in `places`, earlier ones that have found a category in
    /// `joined`.
    fn settle(
        &mut self,
        over: impl IntoIterator<Item = (u64, Assignment)>,
        places: &mut [Assignment],
        joined: &mut Vec<(String, Assignment)>,
    ) {
        for (number, place) in over {
            let waited = self.waiting.remove(&number);
            match (number as usize).checked_sub(self.earlier) {
                Some(at) => places[at] = place,
                None if place.score.unsure => {}
                None => joined.extend(waited.map(|(id, _)| (id, place))),
            }
        }
    }

    fn write_waiting(&self, dim: usize, made: &Origin) -> Result<(), Failure> {
        let path = self.folder.path().join(WAITING);
        if self.waiting.is_empty() {
            return remove(&path);
        }
        let mut writer = FeatureWriter::create(&path, dim, made.encoder.as_deref(), false)?;
        let mut taken = BTreeSet::new();
        for (id, row) in self.waiting.values() {
            // Files may call different items the same.
            let (mut name, mut number) = (id.clone(), 1);
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{id}#{number}");
            }
            writer.write(&[name], &[], row)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn write_joined(&self, joined: &[(String, Assignment)], taxonomy: &Taxonomy) -> Result<(), Failure> {
        let path = self.folder.path().join(JOINED);
        if joined.is_empty() {
            return remove(&path);
        }
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

/// Removes a file of an earlier run.
fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::failed(format!("cannot remove {}: {e}", path.display())))
        }
        _ => Ok(()),
    }
}

/// The same error with the row of the file that it is about.
fn in_row(error: TaskError, row: usize) -> TaskError {
    match error {
        TaskError::Queries(FeatureError::ZeroRow { .. }) => TaskError::Queries(FeatureError::ZeroRow { row }),
        other => other,
    }
}
