//! Training runs: a network learns from episodes or batches of the base classes, and everything about it lies in one folder.
//!
//! | file | what it is |
//! |---|---|
//! | `config.toml` | the settings |
//! | `metrics.jsonl` | the loss of every step and the accuracies of every validation |
//! | `events.out.tfevents.*` | the same for TensorBoard |
//! | `checkpoint.safetensors` | everything that the next step depends on |
//! | `trunk.bin` | what the frozen blocks gave, when that is kept |
//! | `hash.safetensors` | the head that makes codes, when those are learnt and the run is complete |
//! | `encoder.toml`, `encoder.safetensors` | the trained encoder, when the run is complete |

mod batches;
mod calibration;
mod checkpoint;
mod data;
mod encoder;
mod error;
mod hash;
mod log;
mod settings;
mod tensorboard;
mod validation;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

use genus_files::{FileError, FolderLock, read_text};
use genus_vision::train::{TrainError, Trainer, TrunkStore};
use genus_vision::{EncoderSpec, Isa, Precision, Weights, WeightsSource};
use serde::{Deserialize, Serialize};

pub use batches::Batches;
pub use calibration::trained_calibration;
pub use encoder::trained_encoder;
pub use error::TrainingError;
pub use hash::{load_head, save_head, trained_hash};
pub use settings::{Objective, Schedule, TrainedBlocks, TrainingSettings};
pub use validation::Validation;

use data::{ImageView, TrainingData};
use log::TrainingLog;
use validation::validate;

const CONFIG: &str = "config.toml";
const TRUNK: &str = "trunk.bin";

/// How many views go through the frozen blocks at a time when they are kept.
const KEPT_AT_A_TIME: u64 = 32;

/// Receives the progress of a training run, and may stop it.
pub trait Watcher {
    /// The run is ready, and its first step is about to be taken.
    fn begins(&mut self, training: &Training) {
        let _ = training;
    }
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

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOutcome {
    /// The steps taken, those of earlier sittings included.
    pub step: u64,
    /// The steps of the run.
    pub steps: u64,
    /// Whether there are none left.
    pub complete: bool,
    /// The last validation.
    pub validation: Option<Validation>,
    /// From how many classes the encoder was calibrated, if it was.
    pub calibrated: Option<usize>,
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
    /// Steps of an epoch.
    steps_of_epoch: u64,
    /// Steps that were taken.
    step: u64,
    /// The step of the last checkpoint.
    saved: u64,
    /// Keeps others from training in the folder at the same time.
    _lock: FolderLock,
}

/// What a run is made of besides its folder.
struct PreparedRun {
    spec: EncoderSpec,
    data: TrainingData,
    trainer: Trainer,
    config: Config,
}

/// Trains an encoder in a folder: starts a run with some settings or, without settings, resumes the one in the folder.
pub fn train(
    settings: Option<TrainingSettings>,
    folder: &Path,
    watcher: &mut dyn Watcher,
) -> Result<TrainingOutcome, TrainingError> {
    let mut training = match settings {
        Some(settings) => Training::begin(settings, folder, watcher)?,
        None => Training::resume(folder, watcher)?,
    };
    watcher.begins(&training);
    training.run(watcher)
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
        check_free(folder, &settings)?;
        let prepared = PreparedRun::new(settings, watcher)?;
        fs::create_dir_all(folder).map_err(|e| FileError::write(folder.display(), e))?;
        let lock = FolderLock::take(folder)?;
        // Somebody else may have begun meanwhile.
        check_free(folder, &prepared.config.settings)?;
        let text = toml::to_string(&prepared.config).map_err(|e| TrainingError::Settings {
            path: path.clone(),
            problem: e.to_string(),
        })?;
        checkpoint::write(&path, text.as_bytes())?;
        checkpoint::save(folder, &prepared.trainer, 0)?;
        Ok(prepared.in_folder(folder, lock))
    }

    /// Resumes the run in a folder.
    pub fn resume(folder: impl AsRef<Path>, watcher: &mut dyn Watcher) -> Result<Self, TrainingError> {
        let folder = folder.as_ref();
        if !folder.join(CONFIG).exists() {
            return Err(TrainingError::NoRun {
                folder: folder.to_owned(),
            });
        }
        let lock = FolderLock::take(folder)?;
        let begun = read_config(&folder.join(CONFIG))?;
        let prepared = PreparedRun::new(begun.settings, watcher)?;
        let changed = |what| TrainingError::Changed {
            folder: folder.to_owned(),
            what,
        };
        if prepared.config.images_hash != begun.images_hash {
            return Err(changed("the images are"));
        }
        if prepared.config.weights_hash != begun.weights_hash {
            return Err(changed("the weights are"));
        }
        let mut training = prepared.in_folder(folder, lock);
        if is_untouched(folder) {
            checkpoint::save(folder, &training.trainer, 0)?;
        } else {
            training.step = checkpoint::restore(folder, &mut training.trainer)?;
            training.saved = training.step;
        }
        log::forget_after(folder, training.step)?;
        Ok(training)
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

    /// The number of steps of the run.
    pub fn steps(&self) -> u64 {
        self.settings.epochs.saturating_mul(self.steps_of_epoch)
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
        let mut log = TrainingLog::open(&self.folder)?;
        let mut validation = None;
        let (data, settings, spec) = (&self.data, &self.settings, &self.spec);
        let (folder, total, steps_of_epoch) = (&self.folder, self.steps(), self.steps_of_epoch);
        let trainer = &mut self.trainer;
        let (done, saved) = (&mut self.step, &mut self.saved);
        let first = *done;
        // Judges the held-out classes where it is time to; whether it was.
        let mut judge = |trainer: &Trainer, log: &mut TrainingLog, step: u64, watcher: &mut dyn Watcher| {
            let epoch = step / steps_of_epoch;
            let is_due =
                step.is_multiple_of(steps_of_epoch) && (epoch.is_multiple_of(settings.validate_every) || step == total);
            if !is_due {
                return Ok(false);
            }
            if let Some(found) = validate(data, settings, spec, trainer, step, epoch)? {
                log.validation(&found)?;
                watcher.validated(&found);
                validation = Some(found);
            }
            Ok::<bool, TrainingError>(true)
        };
        // A run may have been ended after the checkpoint of an epoch and before it was judged.
        if first > 0 && !log::is_validated(folder, first)? {
            judge(trainer, &mut log, first, watcher)?;
        }
        std::thread::scope(|scope| {
            // Batches are made ready one ahead of the step that takes them.
            let (send, batches) = mpsc::sync_channel::<Result<Batch, TrainingError>>(1);
            scope.spawn(move || {
                let mut store = store;
                for step in first..total {
                    let batch = Batch::make(data, settings, spec, step, store.as_mut(), folder);
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
                let epoch = *done / steps_of_epoch;
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
                let ends_epoch = done.is_multiple_of(steps_of_epoch);
                let report = Step {
                    step: *done,
                    of: total,
                    ends_epoch,
                    epoch: epoch + 1,
                    loss,
                    chance: settings.chance(batch.labels.len()),
                    learning_rate,
                    images_per_second: batch.labels.len() as f64 / (now - before).as_secs_f64().max(1e-9),
                };
                before = now;
                log.step(&report)?;
                watcher.step(&report);
                let stops = watcher.stops();
                if ends_epoch || stops {
                    // What a checkpoint has behind it is never forgotten.
                    log.sync()?;
                    checkpoint::save(folder, trainer, *done)?;
                    *saved = *done;
                }
                if judge(trainer, &mut log, *done, watcher)? {
                    before = Instant::now();
                }
                if stops {
                    break;
                }
            }
            Ok::<(), TrainingError>(())
        })?;
        if self.step == total {
            if self.settings.objective == Objective::Hash {
                hash::save(&self.folder, &self.trainer, self.step)?;
            }
            let calibrated = calibration::save(&self.folder, &self.data, &self.settings, &self.spec, &self.trainer)?;
            // The encoder comes last: where it is, all is.
            encoder::save(&self.folder, &self.spec, &self.trainer.weights())?;
            return Ok(TrainingOutcome {
                calibrated,
                ..self.outcome(validation)
            });
        }
        Ok(self.outcome(validation))
    }

    fn outcome(&self, validation: Option<Validation>) -> TrainingOutcome {
        TrainingOutcome {
            step: self.step,
            steps: self.steps(),
            complete: self.step == self.steps(),
            validation,
            calibrated: None,
        }
    }

    /// The file of what the frozen blocks give for every view that is kept; none when the watcher stops it, and then the file
    /// has what there is.
    fn keep(&self, watcher: &mut dyn Watcher) -> Result<Option<TrunkStore>, TrainingError> {
        let path = self.folder.join(TRUNK);
        let failed = |e| FileError::write(path.display(), e);
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
}

impl PreparedRun {
    fn new(settings: TrainingSettings, watcher: &mut dyn Watcher) -> Result<Self, TrainingError> {
        if let Some(problem) = settings.problem() {
            return Err(TrainingError::Setting { problem });
        }
        let spec = EncoderSpec::parse(&settings.encoder)?;
        let size = spec.transform.crop;
        let weights = match &settings.weights {
            Some(path) => WeightsSource::recorded(path).read()?,
            None => Weights::first_values(&spec.architecture, size, settings.seed)?,
        };
        let weights_hash = weights.hash().to_hex().to_string();
        let isa = Isa::from_env(Some(Precision::F32))?;
        let trainer = Trainer::new(spec.architecture, size, weights, settings.trainer(isa), settings.seed)?;
        let data = TrainingData::load(&settings, watcher)?;
        let config = Config {
            format: FORMAT.to_owned(),
            images_hash: blake3::Hash::from_bytes(data.hash).to_hex().to_string(),
            weights_hash,
            settings,
        };
        Ok(Self {
            spec,
            data,
            trainer,
            config,
        })
    }

    /// The run in its folder, before the first step.
    fn in_folder(self, folder: &Path, lock: FolderLock) -> Training {
        let settings = self.config.settings;
        Training {
            folder: folder.to_owned(),
            steps_of_epoch: self.data.steps_of_epoch(&settings),
            settings,
            spec: self.spec,
            data: self.data,
            trainer: self.trainer,
            step: 0,
            saved: 0,
            _lock: lock,
        }
    }
}

/// Fails when a folder has a run that has begun.
fn check_free(folder: &Path, settings: &TrainingSettings) -> Result<(), TrainingError> {
    let path = folder.join(CONFIG);
    if !path.exists() {
        return Ok(());
    }
    let found = read_config(&path)?.settings;
    let differences = differences(&found, settings);
    let untouched = is_untouched(folder);
    let folder = folder.to_owned();
    match differences.is_empty() {
        true if untouched => Ok(()),
        true => Err(TrainingError::Begun { folder }),
        false => Err(TrainingError::OtherSettings { folder, differences }),
    }
}

/// Whether a run was stopped before its first checkpoint, and so before its first step.
fn is_untouched(folder: &Path) -> bool {
    !checkpoint::path(folder).exists() && !log::exists(folder)
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
        folder: &Path,
    ) -> Result<Self, TrainingError> {
        let seen: Vec<ImageView> = data.batch(settings, step)?;
        let is_pixels = store.is_none();
        let inputs = match store {
            None => data.pixels(settings, &spec.transform, step, &seen)?,
            Some(store) => {
                let mut inputs = Vec::new();
                for view in &seen {
                    let row = TrainingData::kept_row(settings, step, view);
                    store.read(row, &mut inputs).map_err(|source| TrainingError::Read {
                        path: folder.join(TRUNK),
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

fn read_config(path: &Path) -> Result<Config, TrainingError> {
    let text = read_text(path).map_err(|source| TrainingError::Read {
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
    let table = |settings| toml::Table::try_from(settings).expect("settings have a TOML form");
    let (theirs, ours) = (table(theirs), table(ours));
    let names: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let value = |table: &toml::Table, name: &str| table.get(name).map_or("none".to_owned(), |value| value.to_string());
    names
        .into_iter()
        .filter(|name| theirs.get(*name) != ours.get(*name))
        .map(|name| format!("{name} is {} and not {}", value(&theirs, name), value(&ours, name)))
        .collect()
}
