//! `genus train`: an encoder learns from classes that are known.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use genus::text::thousands;
use genus::training::{Objective, Schedule, Step, TrainedBlocks, Training, TrainingSettings, Validation, Watcher};
use genus::{ImageOptions, Skipped};
use genus_core::episode::ShortClasses;
use genus_data::datasets::Images;
use genus_vision::WeightsHome;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Arguments;
use crate::args::shared::{ClassArgs, DataRootArgs, EncoderArgs, IMAGES, of_paper, ranged};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::record;
use crate::say::Terminal;

/// What an interrupt means at the moment.
static STATE: AtomicU8 = AtomicU8::new(IDLE);
/// No training: the program ends.
const IDLE: u8 = 0;
/// A training: it finishes its step and saves.
const TRAINING: u8 = 1;
/// It was told so; a second interrupt ends the program.
const STOPPING: u8 = 2;

/// Hears an interrupt; whether a training deals with it.
pub(crate) fn interrupt() -> bool {
    STATE
        .compare_exchange(TRAINING, STOPPING, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

/// Fine-tune an encoder on labelled classes
///
/// The images come from a folder with one folder per class, or a manifest with labels; with --split only its base classes are
/// used. The last blocks of the network and a projection head are trained on episodes with a supervised contrastive loss; with
/// --objective ocd they are trained on pairs of views to produce hash codes, for the baseline OCD. Some base classes are held
/// out for validation. Ctrl-C finishes the step and saves a checkpoint; --resume continues. The folder of a finished run is an
/// encoder: --encoder runs/birds.
#[derive(Debug, clap::Args)]
#[command(
    allow_negative_numbers = true,
    override_usage = "\
genus train [OPTIONS] <IMAGES> --out <DIR>
       genus train --resume <DIR>",
    after_help = "\
Examples:
  genus train birds/ --split birds.json --out runs/birds --cache-trunk 4
  genus train birds/ --encoder efficientnet-lite2 --blocks 3 --lr 0.003 --out runs/lite
  genus train letters/ --encoder conv4 --from-scratch --no-mirror --epochs 20 --out runs/letters
  genus train birds/ --split birds.json --objective ocd --out runs/codes
  genus train --resume runs/birds
  genus discover --support labelled/ --query photos/ --encoder runs/birds"
)]
pub(crate) struct TrainArgs {
    /// A folder with one folder per class, or a manifest with labels
    #[arg(value_name = "IMAGES", required_unless_present_any = ["resume", "data"])]
    images: Option<PathBuf>,
    /// A data set by name instead, such as cub200; see `genus bench data`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["images", "split"])]
    data: Option<String>,
    #[command(flatten)]
    data_root: DataRootArgs,
    /// Which images of the data set to use
    #[arg(long = "images", id = "part", value_name = "train|test|all|paper", requires = "data")]
    part: Option<Images>,
    /// The folder of the run
    #[arg(long, short, value_name = "DIR", required_unless_present = "resume")]
    out: Option<PathBuf>,
    /// Resume the run in this folder, with its settings
    #[arg(long, value_name = "DIR", conflicts_with_all = SETTINGS)]
    resume: Option<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; only the base classes are used
    #[arg(long, value_name = "FILE")]
    split: Option<PathBuf>,
    #[command(flatten)]
    encoder: EncoderArgs,
    /// Start with random weights
    #[arg(long, conflicts_with = "weights", help_heading = IMAGES)]
    from_scratch: bool,
    /// The training objective: contrast (features), or ocd (hash codes; the head is written to hash.safetensors)
    #[arg(long, default_value = "contrast", value_name = "contrast|ocd")]
    objective: ObjectiveName,
    /// How many of the last blocks to train, or all. Default: 2; 1 for ocd; all with --from-scratch. The authors' code trains 1
    #[arg(long, value_name = "N|all")]
    blocks: Option<TrainedBlocks>,
    /// Statistics of batch normalisation in trained blocks: those of the weights (fixed) or of each batch. Default: fixed;
    /// batch with --from-scratch
    #[arg(long, value_name = "fixed|batch")]
    statistics: Option<StatisticsName>,
    #[command(flatten)]
    classes: ClassArgs,
    /// Queries per class; the authors' script uses 30
    #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q")]
    query: usize,
    /// Epochs. Default: 50; 100 for ocd. With 0 the encoder is written untrained
    #[arg(long, value_parser = ranged::<u64>("epochs"), value_name = "N")]
    epochs: Option<u64>,
    /// Episodes per epoch, each one step. Default: 50
    #[arg(long, value_parser = ranged::<u64>("episodes"), value_name = "N")]
    episodes: Option<u64>,
    /// Batch size, to train on batches of all classes instead of episodes; an epoch is then one pass over the images. Default
    /// for ocd: 128
    #[arg(long, value_parser = ranged::<usize>("batch"), value_name = "N", conflicts_with = "episodes")]
    batch: Option<usize>,
    /// Initial learning rate
    #[arg(long, default_value_t = 0.01, value_name = "RATE")]
    lr: f64,
    /// Learning rate schedule: cosine (down to 1/1000), or constant as in the authors' code
    #[arg(long, default_value = "cosine", value_name = "cosine|constant")]
    schedule: ScheduleName,
    /// Momentum
    #[arg(long, default_value_t = 0.9, value_name = "M")]
    momentum: f64,
    /// Weight decay
    #[arg(long, default_value_t = 5e-5, value_name = "D")]
    weight_decay: f64,
    /// Temperature of the loss
    #[arg(long, default_value_t = 0.07, value_name = "T")]
    temperature: f64,
    /// Augmented views per image and step. Default: 1; 2 for ocd
    #[arg(long, value_parser = ranged::<usize>("views"), value_name = "N")]
    views: Option<usize>,
    /// Do not flip images horizontally: for letters, digits, signs
    #[arg(long)]
    no_mirror: bool,
    /// Width of the head's two hidden layers
    #[arg(long, value_parser = ranged::<usize>("head-hidden"), default_value_t = 2048, value_name = "N")]
    head_hidden: usize,
    /// Width of the head's last layer; with 0 the head ends at its bottleneck of 256
    #[arg(long, value_parser = ranged::<usize>("head-width"), default_value_t = 65_536, value_name = "N")]
    head_width: usize,
    /// Bits per code, for ocd
    #[arg(long, value_parser = ranged::<usize>("bits"), default_value_t = 12, value_name = "N")]
    bits: usize,
    /// Run the frozen blocks once, on this many views per image, and train on their output; 0 runs them in every step
    #[arg(long, value_parser = ranged::<usize>("cache-trunk"), default_value_t = 0, value_name = "VIEWS")]
    cache_trunk: usize,
    /// Number of base classes held out for validation; by default as many as an episode needs, if twice as many remain
    #[arg(long, value_parser = ranged::<usize>("validation-classes"), value_name = "N")]
    validation_classes: Option<usize>,
    /// Episodes per validation
    #[arg(long, value_parser = ranged::<std::num::NonZeroU64>("validation-episodes"), default_value = "200", value_name = "N")]
    validation_episodes: std::num::NonZeroU64,
    /// Epochs between validations
    #[arg(long, value_parser = ranged::<u64>("validate-every"), default_value_t = 5, value_name = "N")]
    validate_every: u64,
}

/// What a run that is gone on with has of its own.
const SETTINGS: [&str; 33] = [
    "images",
    "data",
    "part",
    "out",
    "split",
    "encoder",
    "weights",
    "from_scratch",
    "objective",
    "blocks",
    "statistics",
    "way",
    "shot",
    "new",
    "query",
    "short_classes",
    "epochs",
    "episodes",
    "batch",
    "lr",
    "schedule",
    "momentum",
    "weight_decay",
    "temperature",
    "views",
    "no_mirror",
    "head_hidden",
    "head_width",
    "bits",
    "cache_trunk",
    "validation_classes",
    "validation_episodes",
    "validate_every",
];

/// What a network is trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ObjectiveName {
    Contrast,
    Ocd,
}

/// What batch normalisations go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StatisticsName {
    Fixed,
    Batch,
}

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ScheduleName {
    Cosine,
    Constant,
}

/// A training that goes on, or a new one.
pub(crate) enum TrainCommand {
    GoOn { folder: PathBuf },
    Begin { folder: PathBuf, run: Box<NewRun> },
}

/// What a new training has been told.
pub(crate) struct NewRun {
    /// All but the encoder and its weights.
    settings: TrainingSettings,
    encoder: ImageOptions,
    from_scratch: bool,
}

impl Arguments for TrainArgs {
    type Options = TrainCommand;

    fn options(self, seed: u64) -> Result<TrainCommand, Failure> {
        let (images, folder) = match (self.resume, self.images, self.out) {
            (Some(folder), ..) => return Ok(TrainCommand::GoOn { folder }),
            (None, Some(images), Some(folder)) => (images, folder),
            (None, None, Some(folder)) if self.data.is_some() => (self.data_root.path(), folder),
            _ => {
                return Err(Failure::Usage(
                    "name the images and a folder for the run (--out)".into(),
                ));
            }
        };
        let objective = match self.objective {
            ObjectiveName::Contrast => Objective::Contrast,
            ObjectiveName::Ocd => Objective::Hash,
        };
        let usual = TrainingSettings::usual(objective, self.from_scratch);
        let run = NewRun {
            encoder: of_paper(self.encoder.options()),
            from_scratch: self.from_scratch,
            settings: TrainingSettings {
                images: absolute(&images),
                data: self.data,
                part: self.part.map(|part| part.to_string()),
                split: self.split.as_deref().map(absolute),
                objective,
                blocks: self.blocks.unwrap_or(usual.blocks),
                fixed_statistics: match self.statistics {
                    Some(statistics) => statistics == StatisticsName::Fixed,
                    None => usual.fixed_statistics,
                },
                way: self.classes.way,
                shot: self.classes.shot,
                new: self.classes.new,
                query: self.query,
                skip_short_classes: self.classes.short_classes == ShortClasses::Skip,
                epochs: self.epochs.unwrap_or(usual.epochs),
                episodes: self.episodes.unwrap_or(usual.episodes),
                // Whoever asks for episodes gets them.
                batch: self.batch.or(usual.batch.filter(|_| self.episodes.is_none())),
                learning_rate: self.lr,
                schedule: match self.schedule {
                    ScheduleName::Cosine => Schedule::Cosine,
                    ScheduleName::Constant => Schedule::Constant,
                },
                momentum: self.momentum,
                weight_decay: self.weight_decay,
                temperature: self.temperature,
                views: self.views.unwrap_or(usual.views),
                mirror: !self.no_mirror,
                head_hidden: self.head_hidden,
                head_width: self.head_width,
                bits: self.bits,
                cache_trunk: self.cache_trunk,
                validation_classes: self.validation_classes,
                validation_episodes: self.validation_episodes.get(),
                validate_every: self.validate_every,
                seed,
                ..usual
            },
        };
        Ok(TrainCommand::Begin {
            folder,
            run: Box::new(run),
        })
    }

    fn run(train: TrainCommand, terminal: Terminal) -> Result<(), Failure> {
        match train {
            TrainCommand::GoOn { folder } => run_in(None, &folder, terminal),
            TrainCommand::Begin { folder, run } => run_in(Some(run.settings(terminal)?), &folder, terminal),
        }
    }
}

impl NewRun {
    /// The settings, with weights that are on this machine.
    fn settings(self, terminal: Terminal) -> Result<TrainingSettings, Failure> {
        let (spec, weights) = self.encoder.find()?;
        let weights = match (self.from_scratch, weights) {
            (true, _) => None,
            (false, Some(weights)) => Some(weights),
            (false, None) if spec.model.home == WeightsHome::Own => {
                return Err(Failure::Usage(format!(
                    "the encoder `{}` has no weights of its own; name a file with --weights, or start with random ones: \
                     --from-scratch",
                    spec.model.name
                )));
            }
            (false, None) => Some(genus::fetch_weights(&spec, &Bar::new(terminal))?.into()),
        };
        Ok(TrainingSettings {
            encoder: spec.to_string(),
            weights: weights.map(|weights| weights.to_record()),
            ..self.settings
        })
    }
}

/// Trains in a folder, with some settings or those that are there.
pub(crate) fn run_in(settings: Option<TrainingSettings>, folder: &Path, terminal: Terminal) -> Result<(), Failure> {
    let mut watcher = TrainingScreen::new(terminal);
    let outcome = genus::train(settings, folder, &mut watcher);
    STATE.store(IDLE, Ordering::SeqCst);
    watcher.finish();
    let outcome = outcome?;
    let folder = folder.display();
    if !outcome.complete {
        return Err(Failure::Interrupted(format!(
            "stopped after step {} of {}; resume with: genus train --resume {folder}",
            thousands(outcome.step),
            thousands(outcome.steps),
        )));
    }
    if !terminal.quiet {
        say!("The encoder is in {folder}; use it with --encoder {folder}");
        match outcome.calibrated {
            Some(classes) => {
                say!("It is calibrated on {classes} classes; `genus discover` uses the calibration")
            }
            None => say!("There are too few classes to calibrate it"),
        }
    }
    Ok(())
}

/// A run is gone on with from anywhere.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A training on standard error: a live line on a terminal, and a line an epoch that stays.
struct TrainingScreen {
    quiet: bool,
    bar: ProgressBar,
    validation: String,
    /// Losses of the epoch so far.
    epoch: (f64, u64),
    skipped: u64,
    /// Whether it was said that nothing is being learnt.
    collapsed: bool,
    start: Instant,
}

impl TrainingScreen {
    fn new(terminal: Terminal) -> Self {
        Self {
            quiet: terminal.quiet,
            bar: ProgressBar::hidden(),
            validation: String::new(),
            epoch: (0.0, 0),
            skipped: 0,
            collapsed: false,
            start: Instant::now(),
        }
    }

    fn introduce(&mut self, training: &Training) {
        let settings = training.settings();
        let (classes, held, images) = training.classes();
        let blocks = match settings.blocks {
            TrainedBlocks::All => "all blocks".to_owned(),
            TrainedBlocks::Last(1) => "the last block".to_owned(),
            TrainedBlocks::Last(count) => format!("the last {count} blocks"),
        };
        let head = match settings.objective {
            Objective::Contrast => "a head".to_owned(),
            Objective::Hash => format!("a head of {} bits", settings.bits),
        };
        self.say(&format!(
            "Training {blocks} of {} and {head} ({} values) on {classes} classes, {held} held out, {} images",
            settings.encoder,
            thousands(training.trained_values() as u64),
            thousands(images as u64),
        ));
        if training.step() > 0 {
            self.say(&format!("Going on after step {}", thousands(training.step())));
        }
        self.start = Instant::now();
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.bar.suspend(|| say!("{line}"));
        }
    }

    fn show(&mut self, length: u64, at: u64, template: &str) {
        if self.quiet {
            return;
        }
        if self.bar.length() != Some(length) || self.bar.is_hidden() && self.bar.position() == 0 {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(length).with_position(at.saturating_sub(1));
            self.bar.reset_eta();
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
        }
        self.bar.set_position(at);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for TrainingScreen {
    fn begins(&mut self, training: &Training) {
        self.introduce(training);
        STATE.store(TRAINING, Ordering::SeqCst);
    }

    fn skipped(&mut self, path: &Path, reason: &str) {
        self.skipped += 1;
        record::skipped(&[Skipped {
            path: path.to_owned(),
            reason: reason.to_owned(),
        }]);
        if self.skipped <= 10 {
            // Said even when nothing else is: they are missing from the training.
            say!("skipped {}: {reason}", path.display());
        }
    }

    fn kept(&mut self, done: u64, of: u64) {
        self.show(
            of,
            done,
            "frozen blocks {wide_bar:.green/dim} {human_pos}/{human_len} views · {eta} left",
        );
    }

    fn step(&mut self, step: &Step) {
        self.show(
            step.of,
            step.step,
            "{wide_bar:.green/dim} {human_pos}/{human_len} · {msg} · {eta} left",
        );
        self.bar.set_message(format!(
            "loss {:.3} · rate {:.2e} · {:.0} images/s{}",
            step.loss, step.learning_rate, step.images_per_second, self.validation
        ));
        self.epoch = (self.epoch.0 + step.loss, self.epoch.1 + 1);
        if !step.ends_epoch {
            return;
        }
        let mean = self.epoch.0 / self.epoch.1 as f64;
        self.epoch = (0.0, 0);
        self.say(&format!(
            "epoch {:>3}  loss {mean:.4}  rate {:.2e}  {:.0} images/s  {:.0} s",
            step.epoch,
            step.learning_rate,
            step.images_per_second,
            self.start.elapsed().as_secs_f64()
        ));
        if (mean - step.chance).abs() < 0.002 * step.chance && !self.collapsed {
            self.collapsed = true;
            self.say(
                "           This is the loss of random guessing: the network does not tell images apart. A lower --lr may help.",
            );
        }
    }

    fn validated(&mut self, found: &Validation) {
        let percent = [found.all, found.old, found.new].map(|value| 100.0 * value);
        let [all, old, new] = percent;
        self.validation = format!(" · held out: All {all:.1} Old {old:.1} New {new:.1}");
        self.say(&format!(
            "           held-out classes: All {all:.1}  Old {old:.1}  New {new:.1}"
        ));
    }

    fn stops(&self) -> bool {
        STATE.load(Ordering::SeqCst) == STOPPING
    }
}
