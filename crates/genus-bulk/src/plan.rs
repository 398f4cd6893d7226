//! The plan of a job: inputs found, cut into shards and remembered; the output place taken.

use std::path::{Path, PathBuf};

use genus::{AssignOptions, CalibrationFile};
use genus_data::{Format, Origin, TableOptions, TableReader, read_table_with, read_taxonomy, same_encoder};

use crate::BulkError;
use crate::job::{Job, MANIFEST};
use crate::manifest::{Check, Columns, Discovery, Input, Manifest, Piece, Round, Shard, hash};
use crate::pictures;
use crate::place::{Found, Place, SourceFile, matching, read_local};
use crate::reduce::EXAMPLES;
use crate::run::{Runner, measure};
use crate::source::{fingerprint, groups_of, whole};
use crate::state::{State, scratch, write_table};

/// How long a shard is tried to say how long all will take.
const TRIED_SECONDS: f64 = 2.0;

/// What a job is to do.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Files, folders or patterns of names, on this machine or in an object store.
    pub inputs: Vec<String>,
    /// Where everything is written: a folder or an address.
    pub out: String,
    /// What items are assigned to.
    pub target: Target,
    /// The form of the assignments.
    pub format: Format,
    /// Which columns of tables are what.
    pub tables: TableOptions,
    /// Bytes of a shard, about.
    pub shard_bytes: u64,
    /// The most rows of a shard, as far as that is known.
    pub shard_rows: u64,
    /// How it is seen that an input has changed.
    pub check: Check,
}

/// What items are assigned to.
#[derive(Clone, Debug)]
pub enum Target {
    /// The categories of a taxonomy, which is in a folder.
    Taxonomy {
        /// The folder.
        folder: PathBuf,
        /// What is known of the features, for one that has no calibration of its own.
        calibration: Option<CalibrationFile>,
    },
    /// Categories that are discovered first.
    Discovery {
        /// The method, with its parameters.
        method: String,
        /// The seed of what is random.
        seed: u64,
        /// How many items are discovered on one machine.
        sample: usize,
        /// Passes of k-means over all items.
        passes: usize,
        /// Labelled examples, as a table.
        examples: Option<PathBuf>,
    },
}

impl PlanOptions {
    /// About a quarter of a gigabyte a shard.
    pub const SHARD_BYTES: u64 = 256 << 20;
    /// A million rows a shard.
    pub const SHARD_ROWS: u64 = 1 << 20;
    /// As many items as one machine discovers at once.
    pub const SAMPLE: usize = 20_000;
    /// Passes over all items.
    pub const PASSES: usize = 2;

    /// A plan with what is usual.
    pub fn new(inputs: Vec<String>, out: impl Into<String>, target: Target) -> Self {
        Self {
            inputs,
            out: out.into(),
            target,
            format: Format::Parquet,
            tables: TableOptions::default(),
            shard_bytes: Self::SHARD_BYTES,
            shard_rows: Self::SHARD_ROWS,
            check: Check::default(),
        }
    }
}

/// What a job will cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Rows, where that is known without reading them.
    pub rows: Option<u64>,
    /// Bytes that are read in every round.
    pub bytes: u64,
    /// Rounds.
    pub rounds: usize,
    /// Rows that the cores of this machine assign in a second, measured on a shard.
    pub rows_a_second: f64,
    /// Hours of one core for all rounds, at this rate, where the rows are known.
    pub core_hours: Option<f64>,
}

/// A file that is there.
struct FoundInput {
    name: String,
    file: SourceFile,
    found: Found,
}

/// Plans a job and takes its output place. The same plan again is no error and changes nothing.
pub fn plan(options: &PlanOptions) -> Result<Job, BulkError> {
    let mut names = Vec::new();
    for pattern in &options.inputs {
        names.extend(matching(pattern)?);
    }
    names.sort_unstable();
    names.dedup();
    let inputs = names
        .into_iter()
        .map(|name| find(&name))
        .collect::<Result<Vec<_>, _>>()?;
    let first = inputs.first().ok_or_else(|| BulkError::NoInputs {
        pattern: options.inputs.join(" "),
    })?;
    let tables = options.tables.for_pile();
    let (features, encoder) = match pictures::is_image(&first.name) || pictures::is_archive(&first.name) {
        true => of_images(&options.target)?,
        false => header(&first.name, &tables)?,
    };
    let place = Place::of(&options.out)?;

    let mut manifest = Manifest::new(features, options.format);
    manifest.columns = Columns::of(&options.tables);
    manifest.check = options.check;
    manifest.encoder = encoder;
    manifest.inputs = inputs
        .iter()
        .map(|input| Input {
            name: input.name.clone(),
            bytes: input.found.bytes,
            etag: input.found.etag.clone(),
        })
        .collect();
    manifest.shards = shards(&inputs, options)?;

    let mut state = None;
    let mut examples = None;
    match &options.target {
        Target::Taxonomy { folder, calibration } => {
            let given = state_of(folder, calibration.as_ref())?;
            if given.taxonomy.centres().dim() != features {
                return Err(BulkError::Width {
                    input: first.name.clone(),
                    expected: given.taxonomy.centres().dim(),
                    found: features,
                });
            }
            same_encoder(
                (folder, given.origin.encoder.as_deref()),
                (first.name.as_ref(), manifest.encoder.as_deref()),
            )?;
            manifest.encoder = manifest.encoder.take().or(given.origin.encoder.clone());
            manifest.taxonomy = Some(given.hash()?);
            state = Some(given);
        }
        Target::Discovery {
            method,
            seed,
            sample,
            passes,
            examples: path,
        } => {
            let spec: genus::MethodSpec = method.parse().map_err(genus::Error::from)?;
            if let Some(path) = path {
                examples = Some(examples_of(path, features, manifest.encoder.as_deref())?);
            }
            manifest.discovery = Some(Discovery {
                method: spec.to_string(),
                seed: *seed,
                sample: (*sample).max(1),
                passes: *passes,
                examples: examples.as_deref().map(hash),
            });
        }
    }
    // First the manifest takes the place; a plan that was cut short behind it is finished by the same plan again.
    let bytes = manifest.to_bytes()?;
    if !place.publish(MANIFEST, &bytes)? && place.need(MANIFEST)? != bytes {
        return Err(BulkError::Taken { place: place.full("") });
    }
    if let Some(examples) = examples {
        place.publish(EXAMPLES, &examples)?;
    }
    if let Some(state) = state {
        state.begin(&place, Round::Assign)?;
    }
    Ok(Job {
        id: hash(&bytes),
        manifest,
        place,
    })
}

fn find(name: &str) -> Result<FoundInput, BulkError> {
    let file = SourceFile::of(name)?;
    let found = file.find().map_err(|source| BulkError::Read {
        name: name.to_owned(),
        source,
    })?;
    Ok(FoundInput {
        name: name.to_owned(),
        file,
        found,
    })
}

/// How many features the items of a file have, and what made them.
fn header(name: &str, tables: &TableOptions) -> Result<(usize, Option<String>), BulkError> {
    let scratch = scratch()?;
    let path = whole(name, &scratch)?;
    let reader = TableReader::open_with(path, tables)?;
    Ok((reader.dim(), reader.encoder().map(str::to_owned)))
}

/// The same of images: they are embedded as those of the taxonomy were.
fn of_images(target: &Target) -> Result<(usize, Option<String>), BulkError> {
    let encoder = match target {
        Target::Taxonomy { folder, .. } => pictures::encoder(Some((folder, &read_taxonomy(folder)?.1)))?,
        Target::Discovery { .. } => pictures::encoder(None)?,
    };
    Ok((encoder.dim(), Some(encoder.fingerprint().to_owned())))
}

/// The taxonomy of a folder as the round of the assignments goes by it.
fn state_of(folder: &Path, calibration: Option<&CalibrationFile>) -> Result<State, BulkError> {
    let (taxonomy, origin) = read_taxonomy(folder)?;
    let options = AssignOptions {
        calibration: calibration.cloned(),
        ..AssignOptions::default()
    };
    Ok(State {
        taxonomy: genus::with_calibration(folder, taxonomy, &origin, &options)?,
        origin: Origin {
            growing: None,
            calibration: calibration
                .map(|given| given.origin.clone())
                .or(origin.calibration.clone()),
            ..origin
        },
        prototypes: None,
        examples: None,
    })
}

/// The examples as a table of ours.
fn examples_of(path: &Path, features: usize, encoder: Option<&str>) -> Result<Vec<u8>, BulkError> {
    if path.is_dir() {
        return Err(BulkError::Examples {
            name: path.display().to_string(),
        });
    }
    let file = read_table_with(path, &TableOptions::default())?;
    if file.table.features.dim() != features {
        return Err(BulkError::Width {
            input: path.display().to_string(),
            expected: features,
            found: file.table.features.dim(),
        });
    }
    same_encoder((path, file.encoder.as_deref()), ("the inputs".as_ref(), encoder))?;
    let labelled: Vec<usize> = (0..file.table.len())
        .filter(|&row| file.table.labels[row].is_some())
        .collect();
    let scratch = scratch()?;
    let to = scratch.path().join(EXAMPLES);
    write_table(&to, &file.table.select(&labelled), file.encoder.as_deref())?;
    read_local(&to)
}

/// Cuts the inputs, in their order, into shards of about as many bytes.
fn shards(inputs: &[FoundInput], options: &PlanOptions) -> Result<Vec<Shard>, BulkError> {
    let mut shards: Vec<Shard> = Vec::new();
    let mut open = Shard { pieces: Vec::new() };
    for (number, input) in inputs.iter().enumerate() {
        let whole = |rows| Piece {
            input: number,
            row_groups: None,
            rows,
            start: 0,
            end: input.found.bytes,
            fingerprint: String::new(),
        };
        let units = match input.name.to_ascii_lowercase().ends_with(".parquet") {
            true => {
                let groups = groups_of(&input.name, input.found.bytes)?;
                let units = groups.iter().enumerate().map(|(at, group)| Piece {
                    input: number,
                    row_groups: Some((at, at + 1)),
                    rows: Some(group.rows),
                    start: group.start,
                    end: group.end,
                    fingerprint: String::new(),
                });
                units.collect()
            }
            false => vec![whole(pictures::is_image(&input.name).then_some(1))],
        };
        for unit in units {
            let bytes = open.bytes() + (unit.end - unit.start);
            let rows = open.rows().unwrap_or(0) + unit.rows.unwrap_or(0);
            if !open.pieces.is_empty() && (bytes > options.shard_bytes || rows > options.shard_rows) {
                shards.push(std::mem::replace(&mut open, Shard { pieces: Vec::new() }));
            }
            match open.pieces.last_mut() {
                // Row groups that follow each other are read together.
                Some(last)
                    if last.input == number
                        && last.row_groups.map(|(_, end)| end) == unit.row_groups.map(|(start, _)| start)
                        && unit.row_groups.is_some() =>
                {
                    last.row_groups = last
                        .row_groups
                        .zip(unit.row_groups)
                        .map(|((first, _), (_, end))| (first, end));
                    last.rows = last.rows.zip(unit.rows).map(|(before, more)| before + more);
                    last.start = last.start.min(unit.start);
                    last.end = last.end.max(unit.end);
                }
                _ => open.pieces.push(unit),
            }
        }
    }
    if !open.pieces.is_empty() {
        shards.push(open);
    }
    for piece in shards.iter_mut().flat_map(|shard| &mut shard.pieces) {
        let input = &inputs[piece.input];
        let print = fingerprint(&input.file, &input.found, (piece.start, piece.end), options.check);
        piece.fingerprint = print.map_err(|source| BulkError::Read {
            name: input.name.clone(),
            source,
        })?;
    }
    Ok(shards)
}

impl Job {
    /// What the job will cost, by a shard that is tried for a moment on this machine. Nothing of that is kept.
    pub fn estimate(&self) -> Result<Estimate, BulkError> {
        let runner = Runner::new(self, self.manifest.rounds().first().copied())?;
        let rows_a_second = measure(&runner, TRIED_SECONDS)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let rounds = self.manifest.rounds().len();
        let rows = self.manifest.rows();
        let seconds = |rows: u64| rows as f64 * rounds as f64 / rows_a_second.max(1e-9);
        Ok(Estimate {
            rows,
            bytes: self.manifest.bytes(),
            rounds,
            rows_a_second,
            core_hours: rows.map(|rows| seconds(rows) * cores as f64 / 3600.0),
        })
    }
}
