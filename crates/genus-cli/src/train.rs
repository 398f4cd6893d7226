//! `genus train`: an encoder learns from classes that are known.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use genus::Skipped;
use genus::text::thousands;
use genus::training::{Objective, Schedule, Step, TrainedBlocks, Training, TrainingSettings, Validation, Watcher};
use genus_core::episode::ShortClasses;
use genus_vision::WeightsHome;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{GlobalArgs, ObjectiveName, ScheduleName, StatisticsName, TrainArgs, of_paper};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::record;

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

pub(crate) fn run(train: &TrainArgs, global: &GlobalArgs) -> Result<(), Failure> {
    match (&train.resume, &train.images, &train.out) {
        (Some(folder), ..) => run_in(None, folder, global),
        (None, images, Some(folder)) if images.is_some() || train.data.is_some() => {
            let images = images.clone().unwrap_or_else(|| train.data_root.path());
            run_in(Some(settings(train, &images, global)?), folder, global)
        }
        _ => Err(Failure::Usage(
            "name the images and the folder of the run (--out)".into(),
        )),
    }
}

/// Trains in a folder, with some settings or those that are there.
pub(crate) fn run_in(settings: Option<TrainingSettings>, folder: &Path, global: &GlobalArgs) -> Result<(), Failure> {
    let mut watcher = TrainingScreen::new(global);
    let outcome = genus::train(settings, folder, &mut watcher);
    STATE.store(IDLE, Ordering::SeqCst);
    watcher.finish();
    let outcome = outcome?;
    let folder = folder.display();
    if !outcome.complete {
        return Err(Failure::Interrupted(format!(
            "stopped after step {} of {}; go on with: genus train --resume {folder}",
            thousands(outcome.step),
            thousands(outcome.steps),
        )));
    }
    if !global.quiet {
        say!("The encoder is in {folder}; use it as --encoder {folder}");
        match outcome.calibrated {
            Some(classes) => {
                say!("It is calibrated on {classes} classes, which `genus discover` makes use of")
            }
            None => say!("There are too few classes to calibrate it on"),
        }
    }
    Ok(())
}

fn settings(train: &TrainArgs, images: &Path, global: &GlobalArgs) -> Result<TrainingSettings, Failure> {
    let images = absolute(images);
    let choice = of_paper(train.encoder.options());
    let (spec, weights) = choice.find()?;
    let weights = match (train.from_scratch, weights) {
        (true, _) => None,
        (false, Some(weights)) => Some(weights),
        (false, None) if spec.model.home == WeightsHome::Own => {
            return Err(Failure::Usage(format!(
                "the encoder `{}` has no weights of its own; name a file with --weights, or begin with random ones: \
                 --from-scratch",
                spec.model.name
            )));
        }
        (false, None) => Some(genus::fetch_weights(&spec, &Bar::new(global))?.into()),
    };
    let objective = match train.objective {
        ObjectiveName::Contrast => Objective::Contrast,
        ObjectiveName::Ocd => Objective::Hash,
    };
    let usual = TrainingSettings::usual(objective, train.from_scratch);
    Ok(TrainingSettings {
        images,
        data: train.data.clone(),
        part: train.part.map(|part| part.to_string()),
        split: train.split.as_deref().map(absolute),
        encoder: spec.to_string(),
        weights: weights.map(|weights| weights.to_record()),
        objective,
        blocks: train.blocks.unwrap_or(usual.blocks),
        fixed_statistics: match train.statistics {
            Some(statistics) => statistics == StatisticsName::Fixed,
            None => usual.fixed_statistics,
        },
        way: train.classes.way,
        shot: train.classes.shot,
        new: train.classes.new,
        query: train.query,
        skip_short_classes: train.classes.short_classes == ShortClasses::Skip,
        epochs: train.epochs.unwrap_or(usual.epochs),
        episodes: train.episodes.unwrap_or(usual.episodes),
        // Whoever asks for episodes gets them.
        batch: train.batch.or(usual.batch.filter(|_| train.episodes.is_none())),
        learning_rate: train.lr,
        schedule: match train.schedule {
            ScheduleName::Cosine => Schedule::Cosine,
            ScheduleName::Constant => Schedule::Constant,
        },
        momentum: train.momentum,
        weight_decay: train.weight_decay,
        temperature: train.temperature,
        views: train.views.unwrap_or(usual.views),
        mirror: !train.no_mirror,
        head_hidden: train.head_hidden,
        head_width: train.head_width,
        bits: train.bits,
        cache_trunk: train.cache_trunk,
        validation_classes: train.validation_classes,
        validation_episodes: train.validation_episodes.get(),
        validate_every: train.validate_every,
        seed: global.seed,
    })
}

/// A run is gone on with from anywhere.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A training on the standard error: a live line on a terminal, and a line an epoch that stays.
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
    fn new(global: &GlobalArgs) -> Self {
        Self {
            quiet: global.quiet,
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
                "           This is the loss of chance: all images look alike to the network. A lower --lr may help.",
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
