//! Shards: each reads its rows, assigns them, and publishes what came of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use genus::{Counts, LiveEncoder, Progress};
use genus_core::rng::Rng;
use genus_core::{Assignment, Features, Refinement, Taxonomy};
use genus_data::{
    AssignmentRow, AssignmentWriter, DataError, FilePosition, RefusedRow, Table, TablePart, TableReader, same_encoder,
};
use serde::Serialize;

use crate::BulkError;
use crate::beat::Beat;
use crate::job::Job;
use crate::manifest::{Discovery, Piece, Round, Shard};
use crate::pictures::{self, Pictures};
use crate::receipt::{Part, PartKind, Receipt};
use crate::source::Inputs;
use crate::state::{State, scratch, write_table};
use crate::sums;

/// Rows of a block: 12 MB of 768 features.
const BLOCK: usize = 4096;
/// The stream of random numbers of samples.
const SAMPLE: u64 = 0x62;
/// How many times its share of a sample a shard gives, and how many items more: shards differ.
const MORE: f64 = 1.5;
const MORE_ITEMS: usize = 64;

/// Runs shards of a round.
pub struct Runner<'a> {
    job: &'a Job,
    round: Round,
    state: Option<(State, String)>,
    encoder: OnceLock<LiveEncoder>,
    /// How long the name of the folder is that all inputs are in.
    common_folder: usize,
}

/// What came of some shards.
#[derive(Debug, Default)]
pub struct Ran {
    /// Shards that are done now, with their rows.
    pub done: Vec<Receipt>,
    /// Shards that were done before.
    pub before: usize,
    /// Shards that failed, in ascending order, with the reason.
    pub failed: Vec<(usize, BulkError)>,
}

impl<'a> Runner<'a> {
    /// Runs shards of the round that a job is in, or of another that has begun.
    pub fn new(job: &'a Job, round: Option<Round>) -> Result<Self, BulkError> {
        let round = match round {
            Some(round) => round,
            None => job.round()?,
        };
        let state = job.state(round)?;
        Ok(Self {
            job,
            round,
            state,
            encoder: OnceLock::new(),
            common_folder: job.manifest.common_folder(),
        })
    }

    /// The round.
    pub fn round(&self) -> Round {
        self.round
    }

    /// Runs some shards, so many at a time. A shard that fails keeps the others from nothing.
    pub fn run(&self, shards: &[usize], at_once: usize, progress: &dyn Progress) -> Ran {
        let next = AtomicUsize::new(0);
        let ran = Mutex::new(Ran::default());
        std::thread::scope(|scope| {
            for _ in 0..at_once.clamp(1, shards.len().max(1)) {
                scope.spawn(|| {
                    while let Some(&shard) = shards.get(next.fetch_add(1, Memory::Relaxed)) {
                        let result = self.shard(shard, progress);
                        let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
                        match result {
                            Ok((receipt, true)) => ran.done.push(receipt),
                            Ok((_, false)) => ran.before += 1,
                            Err(error) => ran.failed.push((shard, error)),
                        }
                    }
                });
            }
        });
        let mut ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
        ran.done.sort_by_key(|receipt| receipt.shard);
        ran.failed.sort_by_key(|(shard, _)| *shard);
        ran
    }

    /// Runs one shard unless it is done. Gives its receipt, and whether it was run here.
    pub fn shard(&self, shard: usize, progress: &dyn Progress) -> Result<(Receipt, bool), BulkError> {
        let job = self.job;
        let Some(planned) = job.manifest.shards.get(shard) else {
            let last = job.manifest.shards.len() - 1;
            return Err(BulkError::NoShard { shard, last });
        };
        if let Some(receipt) = job.receipt(self.round, shard)? {
            progress.advance(receipt.rows + receipt.rejected);
            return Ok((receipt, false));
        }
        let mut inputs = Inputs::new(&job.manifest, shard);
        planned.pieces.iter().try_for_each(|piece| inputs.check(piece))?;
        let beat = Beat::begin(&job.place, self.round, shard);
        let mut work = Work::new(self, shard)?;
        self.read(planned, &mut inputs, &mut |read, input| {
            progress.advance((read.block.as_ref().map_or(0, Table::len) + read.refused.len()) as u64);
            if let Some(block) = read.block {
                work.add(&block)?;
            }
            work.refuse(&read.refused, input)?;
            beat.tell(work.rows + work.rejected);
            Ok(true)
        })?;
        // What was read is what was planned.
        planned.pieces.iter().try_for_each(|piece| inputs.check(piece))?;
        Ok((work.publish()?, true))
    }

    /// The name of an input behind the folder that all of them are in.
    fn short_name(&self, piece: &Piece) -> &str {
        &self.job.manifest.inputs[piece.input].name[self.common_folder..]
    }

    /// Reads the pieces of a shard, in order, until `each` has enough.
    fn read(&self, shard: &Shard, inputs: &mut Inputs, each: &mut Each) -> Result<(), BulkError> {
        let manifest = &self.job.manifest;
        let mut images: Option<(Pictures, &str)> = None;
        for piece in &shard.pieces {
            let name = &manifest.inputs[piece.input].name;
            let is_image = pictures::is_image(name);
            if !is_image
                && let Some((mut waiting, input)) = images.take()
                && !embed(&mut waiting, input, each)?
            {
                return Ok(());
            }
            let goes_on = match is_image {
                true => {
                    let (waiting, input) = match &mut images {
                        Some(images) => images,
                        None => images.insert((Pictures::new(self.encoder()?), name)),
                    };
                    let is_full = waiting.add(self.short_name(piece).to_owned(), 1, inputs.bytes(piece)?);
                    !is_full || embed(waiting, input, each)?
                }
                false if pictures::is_archive(name) => self.archive(piece, inputs, each)?,
                false => self.table(piece, inputs, each)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
        match images {
            Some((mut waiting, input)) => embed(&mut waiting, input, each).map(drop),
            None => Ok(()),
        }
    }

    /// The encoder of the images, loaded when the first of them come.
    fn encoder(&self) -> Result<&LiveEncoder, BulkError> {
        if let Some(encoder) = self.encoder.get() {
            return Ok(encoder);
        }
        let manifest = &self.job.manifest;
        let origin = match &self.state {
            Some((state, _)) => state.origin.clone(),
            None => manifest.origin(),
        };
        let encoder = pictures::encoder_of(&origin)?;
        same_encoder(
            ("the plan".as_ref(), manifest.encoder.as_deref()),
            ("the encoder".as_ref(), Some(encoder.fingerprint())),
        )?;
        Ok(self.encoder.get_or_init(|| encoder))
    }

    /// Reads an archive of images. Says whether to go on.
    fn archive(&self, piece: &Piece, inputs: &mut Inputs, each: &mut Each) -> Result<bool, BulkError> {
        let manifest = &self.job.manifest;
        let name = &manifest.inputs[piece.input].name;
        let prefix = match manifest.inputs.len() {
            1 => String::new(),
            _ => format!("{}#", self.short_name(piece)),
        };
        let mut waiting = Pictures::new(self.encoder()?);
        let mut goes_on = true;
        pictures::for_each_member(&inputs.path(piece)?, &mut |member, number, file| {
            if waiting.add(format!("{prefix}{member}"), number, file) {
                goes_on = embed(&mut waiting, name, each)?;
            }
            Ok(goes_on)
        })?;
        Ok(goes_on && embed(&mut waiting, name, each)?)
    }

    /// Reads a table block by block, the next one while one is worked on. Says whether to go on.
    fn table(&self, piece: &Piece, inputs: &mut Inputs, each: &mut Each) -> Result<bool, BulkError> {
        let manifest = &self.job.manifest;
        let name = &manifest.inputs[piece.input].name;
        let path = inputs.path(piece)?;
        let mut options = manifest.columns.options();
        options.called = Some(name.into());
        let part = TablePart {
            row_groups: piece.row_groups.map(|(first, end)| first..end),
            features: manifest.features,
        };
        let mut reader = TableReader::open_part(&path, &options, &part)?;
        if reader.dim() != manifest.features {
            return Err(BulkError::Width {
                input: name.clone(),
                expected: manifest.features,
                found: reader.dim(),
            });
        }
        same_encoder(
            ("the plan".as_ref(), manifest.encoder.as_deref()),
            (name.as_ref(), reader.encoder()),
        )?;
        let prefix = (manifest.inputs.len() > 1).then(|| format!("{}#", self.short_name(piece)));
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Result<Read, DataError>>(1);
            scope.spawn(move || {
                loop {
                    let block = reader.next_block(BLOCK);
                    let is_last = !matches!(block, Ok(Some(_)));
                    let read = block.map(|block| Read {
                        block,
                        refused: reader.refused(),
                        is_numbered: reader.is_numbered(),
                    });
                    // When the receiver has gone the work has failed, or enough was read.
                    if sender.send(read).is_err() || is_last {
                        return;
                    }
                }
            });
            for read in receiver {
                let mut read = read?;
                if let (Some(prefix), true) = (&prefix, read.is_numbered) {
                    let ids = read.block.iter_mut().flat_map(|block| &mut block.ids);
                    ids.chain(read.refused.iter_mut().filter_map(|row| row.id.as_mut()))
                        .for_each(|id| id.insert_str(0, prefix));
                }
                if !each(read, name)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Assigns rows of a shard, as long as `goes_on` says, and keeps nothing. Gives how many there were.
    pub(crate) fn try_rows(&self, shard: usize, mut goes_on: impl FnMut(u64) -> bool) -> Result<u64, BulkError> {
        let mut inputs = Inputs::new(&self.job.manifest, shard);
        let mut work = Work::new(self, shard)?;
        if let Some(planned) = self.job.manifest.shards.get(shard) {
            self.read(planned, &mut inputs, &mut |read, _| {
                if let Some(block) = read.block {
                    work.add(&block)?;
                }
                Ok(goes_on(work.rows))
            })?;
        }
        Ok(work.rows)
    }
}

/// Takes what was read of an input, and says whether to go on.
type Each<'a> = dyn FnMut(Read, &str) -> Result<bool, BulkError> + 'a;

/// Embeds the images that wait. Says whether to go on.
fn embed(waiting: &mut Pictures, input: &str, each: &mut Each) -> Result<bool, BulkError> {
    let (block, refused) = waiting.embed()?;
    let read = Read {
        block,
        refused,
        is_numbered: false,
    };
    each(read, input)
}

/// What was read at a time.
struct Read {
    block: Option<Table>,
    refused: Vec<RefusedRow>,
    /// Whether rows are called by their numbers, of which every file has the same.
    is_numbered: bool,
}

/// What a shard makes of its rows.
struct Work<'a> {
    runner: &'a Runner<'a>,
    shard: usize,
    rows: u64,
    rejected: u64,
    counts: Option<Counts>,
    assignments: Option<(AssignmentWriter, SharedBytes)>,
    rejects: Vec<u8>,
    sample: Option<Smallest>,
    sums: Option<Refinement<'a>>,
}

impl<'a> Work<'a> {
    fn new(runner: &'a Runner<'a>, shard: usize) -> Result<Self, BulkError> {
        let manifest = &runner.job.manifest;
        let taxonomy = runner.state.as_ref().map(|(state, _)| &state.taxonomy);
        let assignments = match runner.round {
            Round::Assign => {
                let bytes = SharedBytes::default();
                let writer = AssignmentWriter::new(Box::new(bytes.clone()), "the part", manifest.assignments()?)?;
                Some((writer, bytes))
            }
            _ => None,
        };
        let sample = manifest.discovery.as_ref().filter(|_| runner.round != Round::Assign);
        let share = manifest.shards[shard].bytes() as f64 / manifest.bytes().max(1) as f64;
        let sums = match (runner.round, &runner.state) {
            (Round::Pass(_), Some((state, _))) => Some(state.taxonomy.partial_refinement()),
            _ => None,
        };
        Ok(Self {
            runner,
            shard,
            rows: 0,
            rejected: 0,
            counts: taxonomy.map(Counts::new),
            assignments,
            rejects: Vec::new(),
            sample: sample.map(|discovery| Smallest::new(discovery, share)),
            sums,
        })
    }

    /// Takes some rows.
    fn add(&mut self, block: &Table) -> Result<(), BulkError> {
        self.rows += block.len() as u64;
        let Some((state, _)) = &self.runner.state else {
            if let Some(sample) = &mut self.sample {
                let rows = block.ids.iter().zip(block.features.iter());
                rows.for_each(|(id, features)| sample.offer(id, features));
            }
            return Ok(());
        };
        let taxonomy = &state.taxonomy;
        let found = taxonomy.assign(&block.features).map_err(genus::Error::from)?;
        if let Some(counts) = &mut self.counts {
            counts.add(&found);
        }
        if let Some(sums) = &mut self.sums {
            sums.add_assigned(&block.features, &found);
        }
        if let Some(sample) = &mut self.sample {
            let rows = block.ids.iter().zip(block.features.iter()).zip(&found);
            let unsure = rows.filter(|(_, assignment)| assignment.score.unsure);
            unsure.for_each(|((id, features), _)| sample.offer(id, features));
        }
        if let Some((writer, _)) = &mut self.assignments {
            write_rows(writer, &block.ids, &found, taxonomy)?;
        }
        Ok(())
    }

    /// Notes rows that cannot be used.
    fn refuse(&mut self, rows: &[RefusedRow], input: &str) -> Result<(), BulkError> {
        self.rejected += rows.len() as u64;
        for row in rows {
            let (in_file, line) = match row.place {
                FilePosition::Row(row) => (Some(row), None),
                FilePosition::Line(line) => (None, Some(line)),
            };
            let rejected = Rejected {
                input,
                row: in_file,
                line,
                id: row.id.as_deref(),
                reason: &row.reason,
            };
            serde_json::to_writer(&mut self.rejects, &rejected).map_err(|e| BulkError::Write {
                name: "rejected rows".to_owned(),
                source: e.into(),
            })?;
            self.rejects.push(b'\n');
        }
        Ok(())
    }

    /// Publishes what came of the rows, the receipt last.
    fn publish(self) -> Result<Receipt, BulkError> {
        let (job, round, shard) = (self.runner.job, self.runner.round, self.shard);
        let mut parts = BTreeMap::new();
        let mut publish = |kind: PartKind, ending: &str, bytes: &[u8]| -> Result<(), BulkError> {
            parts.insert(kind, Part::publish(&job.place, (round, shard, kind), ending, bytes)?);
            Ok(())
        };
        if let Some((writer, bytes)) = self.assignments {
            writer.finish()?;
            publish(
                PartKind::Assignments,
                job.manifest.assignments()?.extension(),
                &bytes.take(),
            )?;
        }
        if !self.rejects.is_empty() {
            publish(PartKind::Rejected, "jsonl", &self.rejects)?;
        }
        if let Some(sums) = self.sums {
            publish(PartKind::Sums, "safetensors", &sums::to_bytes(&sums.into_sums())?)?;
        }
        if let Some(sample) = self.sample.map(Smallest::finish).filter(|sample| !sample.is_empty()) {
            let table = Table {
                ids: sample.iter().map(|item| item.name()).collect(),
                labels: vec![None; sample.len()],
                features: Features::from_rows(sample.iter().map(|item| &item.features)).map_err(genus::Error::from)?,
            };
            let folder = scratch()?;
            let path = folder.path().join("sample.parquet");
            write_table(&path, &table, job.manifest.encoder.as_deref())?;
            publish(PartKind::Sample, "parquet", &crate::place::read_local(&path)?)?;
        }
        let (counts, unsure) = self
            .counts
            .map(|counts| (counts.items, counts.unsure))
            .unwrap_or_default();
        let receipt = Receipt {
            job: job.id.clone(),
            state: self.runner.state.as_ref().map(|(_, hash)| hash.clone()),
            shard,
            rows: self.rows,
            rejected: self.rejected,
            counts,
            unsure,
            parts,
        };
        receipt.publish(&job.place, round)
    }
}

fn write_rows(
    writer: &mut AssignmentWriter,
    ids: &[String],
    found: &[Assignment],
    taxonomy: &Taxonomy,
) -> Result<(), BulkError> {
    for (id, assignment) in ids.iter().zip(found) {
        let entry = &taxonomy.entries()[assignment.category];
        writer.write(&AssignmentRow {
            id,
            category: &entry.name,
            kind: entry.kind,
            score: assignment.score,
            scene: None,
        })?;
    }
    Ok(())
}

/// A row that cannot be used.
#[derive(Serialize)]
struct Rejected<'a> {
    input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    reason: &'a str,
}

/// Bytes that a writer was given, for who gave it them.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The items of a shard with the smallest hashes of their ids.
struct Smallest {
    seed: u64,
    room: usize,
    items: BinaryHeap<Drawn>,
    /// How many were offered.
    offered: u64,
}

/// An item that was drawn.
pub(crate) struct Drawn {
    /// The hash of its id, from 0 up to and without 1.
    pub(crate) place: f64,
    /// Which it is of those that were offered: ids may be there twice.
    number: u64,
    pub(crate) features: Vec<f32>,
}

impl Drawn {
    /// What it is called in the sample: that says its place as well.
    fn name(&self) -> String {
        format!("{:016x}-{}", self.place.to_bits(), self.number)
    }

    /// The place that a name says.
    pub(crate) fn place_of(name: &str) -> Option<f64> {
        let bits = u64::from_str_radix(name.split_once('-')?.0, 16).ok()?;
        Some(f64::from_bits(bits))
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Drawn {}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Drawn {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.total_cmp(&other.place).then(self.number.cmp(&other.number))
    }
}

impl Smallest {
    /// Those of a shard that has this share of the bytes.
    fn new(discovery: &Discovery, share: f64) -> Self {
        let wanted = (MORE * discovery.sample as f64 * share).ceil() as usize + MORE_ITEMS;
        Self {
            seed: discovery.seed,
            room: wanted.min(discovery.sample),
            items: BinaryHeap::new(),
            offered: 0,
        }
    }

    fn offer(&mut self, id: &str, features: &[f32]) {
        let place = Rng::new(self.seed, &[SAMPLE, fnv(id)]).unit();
        let number = self.offered;
        self.offered += 1;
        if self.items.len() >= self.room {
            if self.items.peek().is_none_or(|last| place >= last.place) {
                return;
            }
            self.items.pop();
        }
        self.items.push(Drawn {
            place,
            number,
            features: features.to_vec(),
        });
    }

    /// The items in order of their places.
    fn finish(self) -> Vec<Drawn> {
        self.items.into_sorted_vec()
    }
}

/// A number for a text, the same on every machine.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// How many rows of a job a second of one core assigns, by a measurement of so many seconds of a shard in the middle.
pub(crate) fn measure(runner: &Runner, seconds: f64) -> Result<f64, BulkError> {
    let shard = runner.job.manifest.shards.len() / 2;
    let start = Instant::now();
    let rows = runner.try_rows(shard, |_| start.elapsed().as_secs_f64() < seconds)?;
    Ok(rows as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
