//! `genus bench paper`, `data` and `transfer`: experiments on the data sets that have a name.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use genus::ImageOptions;
use genus::training::{Objective, TrainingError, TrainingSettings, trained_encoder};
use genus_core::episode::ShortClasses;
use genus_data::datasets::{DATASETS, DatasetEntry, ImageSet, Images};
use genus_files::AtomicFile;
use genus_lab::{Bench, BenchReport, Dataset, DatasetCounts, EmbeddingOptions, Experiment, Study, paper_counts};

use super::{ResultFiles, command_line, over_seeds};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{Terminal, print};
use crate::train;

/// The data sets of a list of names, or of the default.
fn entries(names: &[String], usual: impl Fn(&DatasetEntry) -> bool) -> Result<Vec<&'static DatasetEntry>, Failure> {
    let names: Vec<&str> = match names {
        [] => DATASETS
            .iter()
            .filter(|entry| usual(entry))
            .map(|entry| entry.name)
            .collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    Ok(names.into_iter().map(DatasetEntry::find).collect::<Result<_, _>>()?)
}

/// `genus bench data`: what is on disk.
pub(super) fn data(root: &Path, names: &[String]) -> Result<(), Failure> {
    let mut found: Vec<(Images, ImageSet)> = Vec::new();
    let mut missing = Vec::new();
    for entry in entries(names, |_| true)? {
        for images in [Images::Train, Images::Test, Images::All, Images::Paper] {
            match entry.open(root, images) {
                Ok(set) => found.push((images, set)),
                // Some layouts have no test images; what is not there at all is said once.
                Err(error) if images == Images::All => missing.push((entry, error.to_string())),
                Err(_) => {}
            }
        }
    }
    let mut text = DatasetCounts::of(&found).to_string();
    for (entry, error) in &missing {
        match names.is_empty() {
            true => {
                text += &format!(
                    "\n{} was not found; `genus bench data --data {}` shows where it was looked for\n",
                    entry.title, entry.name
                )
            }
            false => text += &format!("\n{error}\n"),
        }
    }
    if found.is_empty() {
        return Err(Failure::failed(format!(
            "{}: none of the data sets was found; name their folder with --data-root\n{text}",
            root.display()
        )));
    }
    print(&text)
}

/// The folders of trainings by the data set that each was trained on.
fn trainings(texts: &[String]) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let wrong = |text: &String| {
        Failure::Usage(format!(
            "`{text}` does not name a data set and the folder of a training, as in cub200=runs/cub"
        ))
    };
    let mut runs = Vec::new();
    for text in texts {
        let (name, run) = text.split_once('=').ok_or_else(|| wrong(text))?;
        let run = PathBuf::from(run);
        if trained_encoder(&run)?.is_none() {
            return Err(Failure::failed(format!(
                "{} is not the folder of a training run",
                run.display()
            )));
        }
        runs.push((DatasetEntry::find(name)?.name, run));
    }
    Ok(runs)
}

/// Encoders that were trained on one data set, on others.
pub(crate) struct Transfer {
    pub(super) data: Vec<String>,
    pub(super) root: PathBuf,
    pub(super) images: Images,
    pub(super) trained: Vec<String>,
    pub(super) options: ImageOptions,
    pub(super) bench: Bench,
    pub(super) seeds: NonZeroUsize,
    pub(super) files: ResultFiles,
}

impl Transfer {
    pub(super) fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let runs = trainings(&self.trained)?;
        let sets = self
            .data
            .iter()
            .map(|name| DatasetEntry::find(name)?.open(&self.root, self.images))
            .collect::<Result<Vec<_>, _>>()?;
        let output = self.files.open()?;
        let start = Instant::now();
        let bar = Bar::new(terminal);
        let parts = transfer_parts(&runs, &sets, &self.options, &bar)?;
        let reports = parts
            .iter()
            .filter_map(|(_, data, experiment)| over_seeds(&self.bench, self.seeds, data, experiment, &bar).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        drop(bar);
        output.write(BenchReport::combined(reports), start, terminal)
    }
}

/// Everything that the disk allows.
pub(crate) struct Paper {
    /// The folder that the data sets lie in.
    pub(super) root: PathBuf,
    /// The data sets; empty for those of the paper.
    pub(super) data: Vec<String>,
    pub(super) images: Images,
    pub(super) out: PathBuf,
    pub(super) options: ImageOptions,
    /// Epochs of a training on each data set, if there is to be one.
    pub(super) train: Option<u64>,
    pub(super) trained: Vec<String>,
    pub(super) encoders: Vec<String>,
    pub(super) views: Option<usize>,
    pub(super) bench: Bench,
    pub(super) page: Option<PathBuf>,
}

impl Paper {
    pub(super) fn run(&self, terminal: Terminal) -> Result<(), Failure> {
        run(self, terminal)
    }
}

fn run(paper: &Paper, terminal: Terminal) -> Result<(), Failure> {
    let (root, images) = (&paper.root, &paper.options);
    let page = paper.page.as_ref().map(AtomicFile::create).transpose()?;
    let mut runs = trainings(&paper.trained)?;
    let methods = paper.bench.methods_of(&Experiment::Main);
    let mut study = Study::new(&paper.out, paper.bench.clone())?;
    let bar = Bar::new(terminal);

    let (mut sets, mut counted) = (Vec::new(), Vec::new());
    for entry in entries(&paper.data, |entry| paper_counts(entry.name).is_some())? {
        match entry.open(root, paper.images) {
            Ok(set) => {
                counted.push((paper.images, set.clone()));
                sets.push(set);
            }
            Err(error) => study.skip(entry.title, error.to_string()),
        }
    }
    if sets.is_empty() {
        let reasons: Vec<String> = study
            .skipped()
            .iter()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        return Err(Failure::failed(format!(
            "{}: none of the data sets was found; name their folder with --data-root\n{}",
            root.display(),
            reasons.join("\n")
        )));
    }
    study.data_sets(DatasetCounts::of(&counted));

    let mut plain: Vec<(String, Dataset)> = Vec::new();
    for set in &sets {
        let trained = runs.iter().any(|(name, _)| *name == set.name);
        if let (Some(epochs), false) = (paper.train, trained) {
            let entry = DatasetEntry::find(&set.name)?;
            runs.push((entry.name, train_on(entry.name, root, epochs, paper, terminal)?));
        }
        let run = runs.iter().find(|(name, _)| *name == set.name);
        let options = match run {
            Some((_, run)) => images.with_encoder(&run.display().to_string()),
            None => images.clone(),
        };
        let embedding = EmbeddingOptions {
            images: options,
            views: paper.views,
            ocd: None,
        };
        let data = embedding.load_set(set, &methods, &bar)?;
        study.data_set(&data, &set.name, &bar)?;
        plain.push((set.name.clone(), data));
    }

    match paper.encoders.is_empty() {
        true => study.skip("backbones", "no encoders were named; name some with --encoders"),
        false => {
            let mut parts = Vec::new();
            for encoder in &paper.encoders {
                let embedding = by_encoder(images, encoder);
                for set in &sets {
                    let encoder = encoder.split('@').next().unwrap_or(encoder).to_owned();
                    parts.push((
                        set.name.clone(),
                        embedding.load_set(set, &[], &bar)?,
                        Experiment::Backbones { encoder },
                    ));
                }
            }
            study.together("Encoders", "backbones", borrowed(&parts), &bar)?;
        }
    }
    match runs.is_empty() {
        true => study.skip(
            "transfer",
            "no encoder was trained on one of the data sets; train them with --train, or name trainings with --trained",
        ),
        false => {
            let parts = transfer_parts(&runs, &sets, images, &bar)?;
            study.together("Transfer", "transfer", borrowed(&parts), &bar)?;
        }
    }
    drop(bar);
    let report = study.finish()?;
    super::write(page, &study.page(&command_line::this()))?;
    let (new, before) = study.counts();
    if !terminal.quiet {
        for (what, why) in study.skipped() {
            say!("left out: {what}: {why}");
        }
        say!("{new} experiments run, {before} already done");
    }
    print(&format!("{}\n", report.display()))
}

type Part = (String, Dataset, Experiment);

fn borrowed(parts: &[Part]) -> impl Iterator<Item = (&str, &Dataset, &Experiment)> {
    parts
        .iter()
        .map(|(folder, data, experiment)| (&**folder, data, experiment))
}

/// Features of another encoder, for methods that are not trained.
fn by_encoder(options: &ImageOptions, encoder: &str) -> EmbeddingOptions {
    EmbeddingOptions {
        images: options.with_encoder(encoder),
        ..EmbeddingOptions::default()
    }
}

/// Every training on every data set.
fn transfer_parts(
    runs: &[(&'static str, PathBuf)],
    sets: &[ImageSet],
    options: &ImageOptions,
    bar: &Bar,
) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for set in sets {
        for (trained_on, run) in runs {
            let embedding = by_encoder(options, &run.display().to_string());
            let trained_on = (*trained_on).to_owned();
            parts.push((
                set.name.clone(),
                embedding.load_set(set, &[], bar)?,
                Experiment::Transfer { trained_on },
            ));
        }
    }
    Ok(parts)
}

/// Trains the encoder on the base classes of a data set, or goes on with that; the folder of the training.
fn train_on(name: &str, root: &Path, epochs: u64, paper: &Paper, terminal: Terminal) -> Result<PathBuf, Failure> {
    let folder = paper.out.join("runs").join(name);
    let begun = match trained_encoder(&folder) {
        Ok(Some(_)) => return Ok(folder),
        Ok(None) => false,
        Err(TrainingError::Unfinished { .. }) => true,
        Err(error) => return Err(error.into()),
    };
    let settings = match begun {
        true => None,
        false => {
            let (spec, weights) = paper.options.find_with_weights(&Bar::new(terminal))?;
            Some(TrainingSettings {
                images: train::absolute(root),
                data: Some(name.to_owned()),
                part: Some(paper.images.to_string()),
                encoder: spec.to_string(),
                weights: Some(weights.to_record()),
                skip_short_classes: paper.bench.short_classes == ShortClasses::Skip,
                epochs,
                seed: paper.bench.seed,
                ..TrainingSettings::usual(Objective::Contrast, false)
            })
        }
    };
    train::run_in(settings, &folder, terminal)?;
    Ok(folder)
}
