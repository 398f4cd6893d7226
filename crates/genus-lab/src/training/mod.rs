//! Training runs: a network learns from episodes of the base classes, and everything about it lies in one folder.
//!
//! | file | what it is |
//! |---|---|
//! | `config.toml` | the settings |
//! | `metrics.jsonl` | the loss of every step and the accuracies of every validation |
//! | `events.out.tfevents.*` | the same for TensorBoard |
//! | `checkpoint.safetensors` | everything that the next step depends on |
//! | `trunk.bin` | what the frozen blocks gave, when that is kept |
//! | `encoder.toml`, `encoder.safetensors` | the trained encoder, when the run is complete |

mod checkpoint;
mod data;
mod encoder;
mod settings;
mod tensorboard;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use genus_core::Features;
use genus_core::episode::EpisodeError;
use genus_data::DataError;
use genus_vision::train::{TrainError, Trainer, TrunkStore};
use genus_vision::{
    ArchitectureError, Embedding, EncodeError, Encoder, EncoderSpec, NoMemory, PortableEncoder, SpecError, Weights,
    WeightsError, read_weights,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use encoder::trained_encoder;
pub use settings::{Blocks, Schedule, TrainingSettings};

use crate::{Bench, Dataset, Experiment, LabError, Silent};
use data::{Seen, TrainingData};
use tensorboard::EventWriter;

const CONFIG: &str = "config.toml";
const METRICS: &str = "metrics.jsonl";
const TRUNK: &str = "trunk.bin";

/// How many views go through the frozen blocks at a time when they are kept.
const KEPT_AT_A_TIME: u64 = 32;

/// Hears how a training run goes, and may end it.
pub trait Watcher {
    /// An image is left out.
    fn skipped(&mut self, path: &Path, reason: &str);
    /// So many of the views that are kept have been through the frozen blocks.
    fn kept(&mut self, done: u64, of: u64);
    /// A step was taken.
    fn step(&mut self, step: &Step);
    /// The held-out classes were judged.
    fn validated(&mut self, validation: &Validation);
    /// Whether the run is to end after the step that it is at.
    fn stops(&self) -> bool;
}

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from one.
    pub step: u64,
    /// The number of steps of the run.
    #[serde(skip)]
    pub of: u64,
    /// Whether it is the last of its epoch.
    #[serde(skip)]
    pub ends_epoch: bool,
    /// Its epoch, from one.
    pub epoch: u64,
    /// The loss before it.
    pub loss: f64,
    /// The loss of a network that tells no image from another.
    #[serde(skip)]
    pub chance: f64,
    /// The learning rate.
    pub learning_rate: f64,
    /// Images seen in a second, decoding included.
    pub images_per_second: f64,
}

/// How well episodes of the held-out base classes are sorted by SHC, in the paper's metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The step after which they were judged.
    pub step: u64,
    /// The epoch that it ended.
    pub epoch: u64,
    /// Accuracy over all queries.
    pub all: f64,
    /// Over queries of known classes.
    pub old: f64,
    /// Over queries of new classes.
    pub new: f64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOutcome {
    /// The steps taken, those of earlier sittings included.
    pub step: u64,
    /// Whether there are none left.
    pub complete: bool,
    /// The last validation.
    pub validation: Option<Validation>,
}

/// Why a training run cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// The files cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the run cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The images have no labels.
    #[error(
        "{data}: no image has a label; put the images of each class into a folder of its name, or name their classes in a manifest"
    )]
    NoLabels {
        /// The images.
        data: String,
    },
    /// The base classes cannot give an episode.
    #[error(
        "{data}: {source}; ask for smaller episodes (--way, --shot, --new, --query), or leave small classes out with --short-classes skip"
    )]
    Episode {
        /// The images.
        data: String,
        /// What is wrong.
        source: EpisodeError,
    },
    /// The base classes that are left cannot give an episode.
    #[error("{data}: {source}, as {held} are held out for validation; hold out fewer with --validation-classes")]
    AfterHoldingOut {
        /// The images.
        data: String,
        /// What is wrong.
        source: EpisodeError,
        /// How many classes are held out.
        held: usize,
    },
    /// The held-out classes cannot give an episode.
    #[error(
        "validation: {source}; hold out more classes with --validation-classes, or none with --validation-classes 0"
    )]
    Validation {
        /// What is wrong.
        source: EpisodeError,
    },
    /// An image that could be read cannot be any more.
    #[error("{}: {problem}", path.display())]
    Image {
        /// The image.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A setting that makes no sense.
    #[error("{problem}")]
    Setting {
        /// What is wrong.
        problem: String,
    },
    /// The encoder is not known.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The weights are those of something else.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The network cannot be trained like this.
    #[error(transparent)]
    Train(TrainError),
    /// The loss is no number any more.
    #[error(
        "the loss of step {step} is {loss}; the last good state, after step {saved}, is kept in {}. Go on from it with a lower \
         learning rate (--lr) in another folder, or look for a broken image",
        folder.display()
    )]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f64,
        /// The step of the last checkpoint.
        saved: u64,
        /// The run.
        folder: PathBuf,
    },
    /// Features could not be made.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The validation failed.
    #[error("validation: {0}")]
    Lab(Box<LabError>),
    /// A file of settings that cannot be understood.
    #[error("{}: {problem}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The folder has no run.
    #[error("there is no training run in {}: it has no {CONFIG}", folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a run of the same settings.
    #[error("{} holds this run already; go on with it: genus train --resume {}", folder.display(), folder.display())]
    Begun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a run of other settings.
    #[error("{} holds a run of other settings ({}); choose another folder with --out", folder.display(), differences.join(", "))]
    OtherSettings {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        differences: Vec<String>,
    },
    /// What the run depends on is not what it was.
    #[error("{}: {what} not those that the run began with; put them back, or begin another run", folder.display())]
    Changed {
        /// The folder.
        folder: PathBuf,
        /// What has changed, and `are`.
        what: &'static str,
    },
    /// A checkpoint that cannot be gone on from.
    #[error("{} is damaged: {problem}; bring back a copy of it, or begin again in another folder", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A run without an encoder yet.
    #[error("the training in {} is not complete; finish it with: genus train --resume {}", folder.display(), folder.display())]
    Unfinished {
        /// The folder.
        folder: PathBuf,
    },
}

impl From<LabError> for TrainingError {
    fn from(error: LabError) -> Self {
        TrainingError::Lab(Box::new(error))
    }
}

impl From<TrainError> for TrainingError {
    fn from(error: TrainError) -> Self {
        TrainingError::Train(error)
    }
}

/// What lies in `config.toml`: the settings, and what they were when the run began.
#[derive(Serialize, Deserialize)]
struct Config {
    format: String,
    /// Hashes of the list of images and of the weights to begin with.
    images_hash: String,
    weights_hash: String,
    settings: TrainingSettings,
}

const FORMAT: &str = "genus training 1";

/// A training run and its folder.
pub struct Training {
    folder: PathBuf,
    settings: TrainingSettings,
    spec: EncoderSpec,
    data: TrainingData,
    trainer: Trainer,
    /// Steps that were taken.
    step: u64,
    /// The step of the last checkpoint.
    saved: u64,
}

impl Training {
    /// Begins a run in a folder, which is made if need be.
    pub fn begin(
        settings: TrainingSettings,
        folder: impl AsRef<Path>,
        watcher: &mut dyn Watcher,
    ) -> Result<Self, TrainingError> {
        let folder = folder.as_ref();
        let path = folder.join(CONFIG);
        if path.exists() {
            let found = read_config(&path)?.settings;
            let differences = differences(&found, &settings);
            let folder = folder.to_owned();
            return Err(match differences.is_empty() {
                true => TrainingError::Begun { folder },
                false => TrainingError::OtherSettings { folder, differences },
            });
        }
        let (training, config) = Self::prepare(settings, folder, watcher)?;
        fs::create_dir_all(folder).map_err(|source| TrainingError::Write {
            path: folder.to_owned(),
            source,
        })?;
        let text = toml::to_string(&config).map_err(|e| TrainingError::Settings {
            path: path.clone(),
            problem: e.to_string(),
        })?;
        checkpoint::write(&path, text.as_bytes())?;
        checkpoint::save(folder, &training.trainer, 0)?;
        Ok(training)
    }

    /// Goes on with the run of a folder.
    pub fn resume(folder: impl AsRef<Path>, watcher: &mut dyn Watcher) -> Result<Self, TrainingError> {
        let folder = folder.as_ref();
        if !folder.join(CONFIG).exists() {
            return Err(TrainingError::NoRun {
                folder: folder.to_owned(),
            });
        }
        let begun = read_config(&folder.join(CONFIG))?;
        let (mut training, now) = Self::prepare(begun.settings, folder, watcher)?;
        let changed = |what| TrainingError::Changed {
            folder: folder.to_owned(),
            what,
        };
        if now.images_hash != begun.images_hash {
            return Err(changed("the images are"));
        }
        if now.weights_hash != begun.weights_hash {
            return Err(changed("the weights are"));
        }
        training.step = checkpoint::restore(folder, &mut training.trainer)?;
        training.saved = training.step;
        training.forget_after(training.step)?;
        Ok(training)
    }

    fn prepare(
        settings: TrainingSettings,
        folder: &Path,
        watcher: &mut dyn Watcher,
    ) -> Result<(Self, Config), TrainingError> {
        if let Some(problem) = settings.problem() {
            return Err(TrainingError::Setting { problem });
        }
        let spec = EncoderSpec::parse(&settings.encoder)?;
        let size = spec.transform.crop;
        let weights = match &settings.weights {
            Some(path) => read_weights(path)?,
            None => Weights::first_values(&spec.architecture, size, settings.seed)?,
        };
        let weights_hash = weights.hash().to_hex().to_string();
        let trainer = Trainer::new(spec.architecture, size, weights, settings.trainer(), settings.seed)?;
        let data = TrainingData::load(&settings, watcher)?;
        let config = Config {
            format: FORMAT.to_owned(),
            images_hash: blake3::Hash::from_bytes(data.hash).to_hex().to_string(),
            weights_hash,
            settings: settings.clone(),
        };
        let training = Self {
            folder: folder.to_owned(),
            settings,
            spec,
            data,
            trainer,
            step: 0,
            saved: 0,
        };
        Ok((training, config))
    }

    /// The settings of the run.
    pub fn settings(&self) -> &TrainingSettings {
        &self.settings
    }

    /// The number of base classes that are trained on and of those that are held out, and of images of both.
    pub fn classes(&self) -> (usize, usize, usize) {
        let held = self.data.validation.as_ref().map_or(0, |pool| pool.classes().len());
        (self.data.train.classes().len(), held, self.data.items.len())
    }

    /// The number of values that are trained.
    pub fn trained_values(&self) -> usize {
        self.trainer.trained_values()
    }

    /// The steps taken so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Takes the steps that are left, or as many as the watcher lets it.
    pub fn run(&mut self, watcher: &mut dyn Watcher) -> Result<TrainingOutcome, TrainingError> {
        let store = match (self.settings.cache_trunk, self.trainer.trunk()) {
            (0, _) | (_, None) => None,
            _ => match self.keep(watcher)? {
                Some(store) => Some(store),
                None => return Ok(self.outcome(None)),
            },
        };
        let mut log = Log::open(&self.folder)?;
        let mut validation = None;
        let (data, settings, spec) = (&self.data, &self.settings, &self.spec);
        let (folder, total) = (&self.folder, settings.steps());
        let trainer = &mut self.trainer;
        let (done, saved) = (&mut self.step, &mut self.saved);
        let first = *done;
        std::thread::scope(|scope| {
            // Batches are made ready one ahead of the step that takes them.
            let (send, batches) = mpsc::sync_channel::<Result<Batch, TrainingError>>(1);
            scope.spawn(move || {
                let mut store = store;
                for step in first..total {
                    let batch = Batch::make(data, settings, spec, step, store.as_mut());
                    let failed = batch.is_err();
                    if send.send(batch).is_err() || failed {
                        break;
                    }
                }
            });
            // Leaving this closure in any way drops the receiver, which ends the thread.
            let batches = batches;
            let mut before = Instant::now();
            while *done < total {
                let Ok(batch) = batches.recv() else { break };
                let batch = batch?;
                let epoch = *done / settings.episodes;
                let learning_rate = settings.learning_rate_in(epoch);
                let through = match trainer.trunk() {
                    Some(trunk) if batch.is_pixels => Some(trunk.run(&batch.inputs)),
                    _ => None,
                };
                let inputs = through.as_deref().unwrap_or(&batch.inputs);
                let loss = trainer
                    .step(inputs, &batch.labels, learning_rate)
                    .map_err(|error| match error {
                        TrainError::NotFinite { loss } => TrainingError::NotFinite {
                            step: *done + 1,
                            loss,
                            saved: *saved,
                            folder: folder.clone(),
                        },
                        other => TrainingError::Train(other),
                    })?;
                *done += 1;
                let now = Instant::now();
                let ends_epoch = done.is_multiple_of(settings.episodes);
                let report = Step {
                    step: *done,
                    of: total,
                    ends_epoch,
                    epoch: epoch + 1,
                    loss,
                    chance: (batch.labels.len() as f64 - 1.0).ln(),
                    learning_rate,
                    images_per_second: batch.labels.len() as f64 / (now - before).as_secs_f64().max(1e-9),
                };
                before = now;
                log.step(&report)?;
                watcher.step(&report);
                let stops = watcher.stops();
                if ends_epoch || stops {
                    checkpoint::save(folder, trainer, *done)?;
                    *saved = *done;
                }
                if ends_epoch && ((epoch + 1).is_multiple_of(settings.validate_every) || *done == total) {
                    if let Some(found) = validate(data, settings, spec, trainer, *done, epoch + 1)? {
                        log.validation(&found)?;
                        watcher.validated(&found);
                        validation = Some(found);
                    }
                    before = Instant::now();
                }
                if stops {
                    break;
                }
            }
            Ok::<(), TrainingError>(())
        })?;
        if self.step == total {
            encoder::save(&self.folder, &self.spec, &self.trainer.weights())?;
        }
        Ok(self.outcome(validation))
    }

    fn outcome(&self, validation: Option<Validation>) -> TrainingOutcome {
        TrainingOutcome {
            step: self.step,
            complete: self.step == self.settings.steps(),
            validation,
        }
    }

    /// The file of what the frozen blocks give for every view that is kept; none when the watcher stops it, and then the file
    /// has what there is.
    fn keep(&self, watcher: &mut dyn Watcher) -> Result<Option<TrunkStore>, TrainingError> {
        let path = self.folder.join(TRUNK);
        let failed = |source| TrainingError::Write {
            path: path.clone(),
            source,
        };
        let Some(trunk) = self.trainer.trunk() else {
            return Ok(None);
        };
        let transform = &self.spec.transform;
        let settings = &self.settings;
        let views = (self.data.items.len() * settings.cache_trunk) as u64;
        let pixels = |rows| self.data.kept_pixels(settings, transform, rows);
        // Rows depend on the images, on the weights and on the transform; one of the rows stands for the latter two.
        let first = trunk.run(&pixels(0..1)?);
        let mut key = blake3::Hasher::new();
        key.update(&self.data.hash);
        for number in [settings.seed, settings.cache_trunk as u64, u64::from(settings.mirror)] {
            key.update(&number.to_le_bytes());
        }
        let bytes: Vec<u8> = first.iter().flat_map(|value| value.to_le_bytes()).collect();
        key.update(&bytes);
        let mut store = TrunkStore::open(&path, *key.finalize().as_bytes(), first.len()).map_err(failed)?;
        while store.rows() < views {
            let rows = store.rows()..views.min(store.rows() + KEPT_AT_A_TIME);
            store.append(&trunk.run(&pixels(rows)?)).map_err(failed)?;
            watcher.kept(store.rows(), views);
            if watcher.stops() {
                return Ok(None);
            }
        }
        Ok(Some(store))
    }

    /// Takes the metrics of later steps out: those steps are taken again.
    fn forget_after(&self, step: u64) -> Result<(), TrainingError> {
        let path = self.folder.join(METRICS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(TrainingError::Read { path, source }),
        };
        #[derive(Deserialize)]
        struct Line {
            step: u64,
        }
        // A last line that was cut short belongs to a later step than the checkpoint.
        let is_kept = |line: &&str| serde_json::from_str::<Line>(line).is_ok_and(|line| line.step <= step);
        let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
        checkpoint::write(&path, kept.as_bytes())
    }
}

/// What a step takes.
struct Batch {
    labels: Vec<usize>,
    inputs: Vec<f32>,
    /// Whether the frozen blocks have not seen them yet.
    is_pixels: bool,
}

impl Batch {
    fn make(
        data: &TrainingData,
        settings: &TrainingSettings,
        spec: &EncoderSpec,
        step: u64,
        store: Option<&mut TrunkStore>,
    ) -> Result<Self, TrainingError> {
        let seen: Vec<Seen> = data.batch(settings, step)?;
        let is_pixels = store.is_none();
        let inputs = match store {
            None => data.pixels(settings, &spec.transform, step, &seen)?,
            Some(store) => {
                let mut inputs = Vec::new();
                for view in &seen {
                    let row = TrainingData::kept_row(settings, step, view);
                    store.read(row, &mut inputs).map_err(|source| TrainingError::Read {
                        path: TRUNK.into(),
                        source,
                    })?;
                }
                inputs
            }
        };
        Ok(Self {
            labels: seen.iter().map(|seen| seen.class).collect(),
            inputs,
            is_pixels,
        })
    }
}

/// Judges episodes of the held-out classes with the network as it is.
fn validate(
    data: &TrainingData,
    settings: &TrainingSettings,
    spec: &EncoderSpec,
    trainer: &Trainer,
    step: u64,
    epoch: u64,
) -> Result<Option<Validation>, TrainingError> {
    let Some(pool) = &data.validation else { return Ok(None) };
    let encoder = PortableEncoder::new(*trainer.architecture(), spec.transform, trainer.weights())?;
    let held: Vec<usize> = (0..data.items.len())
        .filter(|&item| {
            let label = data.items[item].label.as_ref();
            label.is_some_and(|label| pool.classes().contains(label))
        })
        .collect();
    let files = data.files();
    let files: Vec<&Path> = held.iter().map(|&item| files[item]).collect();
    let mut values = Vec::new();
    let mut broken = None;
    Embedding::default().run(&encoder, &files, &NoMemory, |at, features| {
        match features {
            Ok(row) => values.extend(row),
            Err(error) => {
                broken.get_or_insert((files[at].to_owned(), error.to_string()));
            }
        }
        Ok::<(), EncodeError>(())
    })?;
    if let Some((path, problem)) = broken {
        return Err(TrainingError::Image { path, problem });
    }
    let labels: Vec<Option<String>> = held.iter().map(|&item| data.items[item].label.clone()).collect();
    let features =
        Features::new(encoder.dim(), values).map_err(|e| TrainingError::Setting { problem: e.to_string() })?;
    let dataset = Dataset::new("held-out classes", features, &labels, None)?;
    let bench = Bench {
        shape: settings.shape(),
        episodes: settings.validation_episodes,
        seed: settings.seed,
        methods: vec!["shc".into()],
        ..Bench::default()
    };
    let report = bench.run(&dataset, &Experiment::Main, &Silent)?;
    Ok(report.runs.first().map(|run| Validation {
        step,
        epoch,
        all: run.all.mean,
        old: run.old.mean,
        new: run.new.mean,
    }))
}

/// What a run writes down while it goes on.
struct Log {
    path: PathBuf,
    metrics: fs::File,
    events: EventWriter,
}

impl Log {
    fn open(folder: &Path) -> Result<Self, TrainingError> {
        let path = folder.join(METRICS);
        let failed = |source| TrainingError::Write {
            path: path.clone(),
            source,
        };
        Ok(Self {
            metrics: OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(failed)?,
            events: EventWriter::create(folder, clock()).map_err(failed)?,
            path,
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), TrainingError> {
        let values = [
            ("loss", step.loss as f32),
            ("learning rate", step.learning_rate as f32),
            ("images per second", step.images_per_second as f32),
        ];
        self.write(serde_json::to_string(step), step.step, &values)
    }

    fn validation(&mut self, found: &Validation) -> Result<(), TrainingError> {
        let values = [
            ("validation/All", found.all as f32),
            ("validation/Old", found.old as f32),
            ("validation/New", found.new as f32),
        ];
        self.write(serde_json::to_string(found), found.step, &values)
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
        written.map_err(|source| TrainingError::Write {
            path: self.path.clone(),
            source,
        })
    }
}

/// Seconds since 1970.
fn clock() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

fn read_config(path: &Path) -> Result<Config, TrainingError> {
    let text = fs::read_to_string(path).map_err(|source| TrainingError::Read {
        path: path.to_owned(),
        source,
    })?;
    let damaged = |problem: String| TrainingError::Settings {
        path: path.to_owned(),
        problem,
    };
    let config: Config = toml::from_str(&text).map_err(|e| damaged(e.message().to_owned()))?;
    match config.format == FORMAT {
        true => Ok(config),
        false => Err(damaged(format!(
            "it is a `{}`, and this release reads `{FORMAT}`",
            config.format
        ))),
    }
}

/// The settings that two runs do not have in common, as `name: theirs, not ours`.
fn differences(theirs: &TrainingSettings, ours: &TrainingSettings) -> Vec<String> {
    let table = |settings| toml::Table::try_from(settings).unwrap_or_default();
    let (theirs, ours) = (table(theirs), table(ours));
    let names: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let value = |table: &toml::Table, name: &str| table.get(name).map_or("none".to_owned(), |value| value.to_string());
    names
        .into_iter()
        .filter(|name| theirs.get(*name) != ours.get(*name))
        .map(|name| format!("{name} is {} and not {}", value(&theirs, name), value(&ours, name)))
        .collect()
}
