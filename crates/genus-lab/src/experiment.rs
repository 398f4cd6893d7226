//! What the paper measures, each as a list of settings to run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use genus_core::episode::{Episode, EpisodeError, Pile, Pool, Shape, ShortClasses};
use genus_core::methods::MethodError;
use genus_core::{Calibration, CentreNorm, Prototypes, Subset};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::calibrations::Calibrations;
use crate::contender::{BenchMethod, Contender};
use crate::machine::Machine;
use crate::piles::{PileKind, PileSettings, in_bursts};
use crate::report::{BenchReport, Run, Settings};
use crate::streams::StreamSettings;
use crate::trial::{EpisodeTrial, MethodOutcome, QueryMode};
use crate::{Dataset, LabError};
use genus::{Length, Progress};

/// What every experiment needs to know.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The shape of an episode, where the experiment does not vary it.
    pub shape: Shape,
    /// Whether the classes have a long tail, and how many queries belong to none of them.
    pub pile: Pile,
    /// How many episodes are averaged.
    pub episodes: u64,
    /// The seed of everything random.
    pub seed: u64,
    /// The methods, such as `shc` or `ukc:alpha=1.3`; empty for those of the paper's table.
    pub methods: Vec<BenchMethod>,
    /// How examples become prototypes.
    pub prototypes: Prototypes,
    /// What to do with classes that have too few items.
    pub short_classes: ShortClasses,
    /// Where heads that were trained on a data set are kept, if they are.
    pub heads: Option<PathBuf>,
    /// What is known of the features already, in place of what the base classes say.
    pub calibration: Option<Arc<Calibration>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            pile: Pile::default(),
            episodes: 500,
            seed: 0,
            methods: Vec::new(),
            prototypes: Prototypes::default(),
            short_classes: ShortClasses::Error,
            heads: None,
            calibration: None,
        }
    }
}

/// One of the paper's experiments.
#[derive(Clone, Debug)]
pub enum Experiment {
    /// The main table: all methods on episodes of one shape.
    Main,
    /// Every query by itself.
    RealTime,
    /// Large tasks: a subset is clustered, the rest assigned.
    Large(LargeSettings),
    /// Accuracy against the number of queries of a class.
    Queries(Vec<usize>),
    /// Realistic piles: items per class, long tails, bursts, numbers of examples, outliers. An episode is a pile.
    Piles(PileSettings),
    /// A pile item by item, in several orders, beside as much of it at once. An episode is a pile.
    Stream(StreamSettings),
    /// More known and new classes: 5 and 20, 10 and 20, 10 and 40.
    Tasks,
    /// The calibrated method without one part of it at a time, and other methods on its features.
    Ablation,
    /// UKC against α.
    Alpha(Vec<f64>),
    /// SHC against t.
    Threshold(Vec<usize>),
    /// The features of one encoder, to compare with those of others.
    Backbones {
        /// What the encoder is called.
        encoder: String,
    },
    /// The features of an encoder that was trained on another data set.
    Transfer {
        /// The data set that it was trained on.
        trained_on: String,
    },
}

/// The settings of the large-scale experiment.
#[derive(Clone, Debug)]
pub struct LargeSettings {
    /// How many queries are clustered.
    pub subset: usize,
    /// Passes of spherical k-means over all items before they are assigned.
    pub refine: usize,
    /// How centres are scaled.
    pub centre_norm: CentreNorm,
    /// Take the data in its own order and cluster the first 40 items per class, as the authors' code does.
    pub authors: bool,
}

impl Default for LargeSettings {
    fn default() -> Self {
        Self {
            subset: 400,
            refine: 0,
            centre_norm: CentreNorm::Cosine,
            authors: false,
        }
    }
}

/// Methods on episodes of one kind.
pub(crate) struct Series {
    pub(crate) shape: Shape,
    pub(crate) pile: Pile,
    /// The pile, in an experiment on piles.
    pub(crate) kind: Option<PileKind>,
    pub(crate) methods: Vec<BenchMethod>,
}

impl Experiment {
    /// Which one it is, without its settings.
    pub fn kind(&self) -> ExperimentKind {
        match self {
            Experiment::Main => ExperimentKind::Main,
            Experiment::RealTime => ExperimentKind::RealTime,
            Experiment::Large(_) => ExperimentKind::Large,
            Experiment::Queries(_) => ExperimentKind::Queries,
            Experiment::Piles(_) => ExperimentKind::Piles,
            Experiment::Stream(_) => ExperimentKind::Stream,
            Experiment::Tasks => ExperimentKind::Tasks,
            Experiment::Ablation => ExperimentKind::Ablation,
            Experiment::Alpha(_) => ExperimentKind::Alpha,
            Experiment::Threshold(_) => ExperimentKind::Threshold,
            Experiment::Backbones { .. } => ExperimentKind::Backbones,
            Experiment::Transfer { .. } => ExperimentKind::Transfer,
        }
    }

    /// What sets it apart from others of its name: an encoder, or the data set that one was trained on.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Experiment::Backbones { encoder } => encoder,
            Experiment::Transfer { trained_on } => trained_on,
            _ => "",
        }
    }

    /// The methods of the paper's table, and after them the calibrated one.
    pub fn methods(&self) -> Vec<BenchMethod> {
        let names: &[&str] = match self {
            Experiment::Main => &["proto", "rankstat", "simgcd", "ocd", "gcd", "shc", "ukc", "calibrated"],
            Experiment::RealTime => &["proto", "rankstat", "ocd", "shc", "shc:boost=1.1", "ukc", "calibrated"],
            Experiment::Large(_) => &["proto", "rankstat", "ocd", "shc", "ukc", "calibrated"],
            Experiment::Backbones { .. } => &["proto", "shc", "ukc", "calibrated"],
            Experiment::Piles(_) => &["calibrated", "proto", "shc", "ukc"],
            Experiment::Stream(_) => &["calibrated", "ocd"],
            Experiment::Queries(_) | Experiment::Tasks | Experiment::Transfer { .. } => &["shc", "ukc", "calibrated"],
            Experiment::Ablation => &[
                "calibrated",
                "calibrated:tree=average",
                "calibrated:directions=0",
                "calibrated:centre=task:directions=0",
                "calibrated:centre=none:directions=0",
                "calibrated:eagerness=learnt",
                "calibrated:refine=0",
                "calibrated:source=examples",
                "calibrated:source=prior",
            ],
            Experiment::Alpha(_) => &["ukc"],
            Experiment::Threshold(_) => &["shc"],
        };
        let methods = BenchMethod::list(names.iter().copied()).expect("they are in the table");
        match self {
            Experiment::Ablation => {
                let plain = BenchMethod::list(["shc", "ukc"]).expect("they are in the table");
                let calibrated = plain.clone().into_iter().map(BenchMethod::on_calibrated_features);
                plain.into_iter().chain(calibrated).chain(methods).collect()
            }
            _ => methods,
        }
    }
}

/// An experiment without its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they are those of Experiment")]
pub enum ExperimentKind {
    Main,
    RealTime,
    Large,
    Queries,
    Piles,
    Stream,
    Tasks,
    Ablation,
    Alpha,
    Threshold,
    Backbones,
    Transfer,
}

impl ExperimentKind {
    /// The name on the command line and in the paper's tables.
    pub fn name(self) -> &'static str {
        match self {
            ExperimentKind::Main => "main",
            ExperimentKind::RealTime => "realtime",
            ExperimentKind::Large => "large",
            ExperimentKind::Queries => "queries",
            ExperimentKind::Piles => "piles",
            ExperimentKind::Stream => "stream",
            ExperimentKind::Tasks => "tasks",
            ExperimentKind::Ablation => "ablation",
            ExperimentKind::Alpha => "alpha",
            ExperimentKind::Threshold => "threshold",
            ExperimentKind::Backbones => "backbones",
            ExperimentKind::Transfer => "transfer",
        }
    }
}

impl fmt::Display for ExperimentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Bench {
    /// Makes sure that an experiment has a use for the tail and the outliers.
    pub fn fits(&self, experiment: &Experiment) -> Result<(), LabError> {
        let Pile { tail, outliers } = self.pile;
        let problem = match experiment {
            Experiment::Large(_) if self.pile != Pile::default() => {
                "a large task takes all items of its classes, so it has no tail and no outliers"
            }
            Experiment::Piles(_) if self.pile != Pile::default() => "the piles have tails and outliers of their own",
            Experiment::Stream(_) if outliers > 0 => {
                "what belongs nowhere waits for ever, and nothing says whether it should"
            }
            Experiment::Queries(_) if tail.is_some() => {
                "the queries of a class are what is varied, and a tail sets them"
            }
            Experiment::RealTime if outliers > 0 => "every query is judged by itself, so outliers would disturb none",
            _ if tail.is_some_and(|tail| tail.largest == 0) => "a tail that ends at 0 leaves no query to score",
            _ => return Ok(()),
        };
        Err(LabError::Pile {
            experiment: experiment.kind(),
            problem,
        })
    }

    /// The methods that were asked for, or those of an experiment.
    pub fn methods_of(&self, experiment: &Experiment) -> Vec<BenchMethod> {
        match &self.methods[..] {
            [] => experiment.methods(),
            named => named.to_vec(),
        }
    }

    /// Runs an experiment.
    pub fn run(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        progress: &dyn Progress,
    ) -> Result<BenchReport, LabError> {
        self.fits(experiment)?;
        if let Experiment::Stream(settings) = experiment {
            return self.run_streams(data, experiment, *settings, progress);
        }
        // Before the work, which would be lost with it.
        let machine = Machine::this()?;
        let mut notes = Vec::new();
        let series = self.series(data, experiment, &mut notes)?;
        let methods: BTreeMap<String, &BenchMethod> = series
            .iter()
            .flat_map(|series| &series.methods)
            .map(|method| (method.to_string(), method))
            .collect();
        // All are built before any runs, so that what is trained is trained once.
        let mut contenders = BTreeMap::new();
        let mut calibrations = Calibrations::new(data, self, progress);
        for (spec, method) in methods {
            let contender = Contender::prepare(method, data, self, &mut calibrations, progress)?;
            contenders.insert(spec, contender);
        }
        notes.extend(calibrations.notes());
        let steps = self.episodes.saturating_mul(series.len() as u64);
        progress.start("episodes", Length::Steps(steps));
        let mut runs = Vec::new();
        for series in &series {
            runs.extend(self.run_series(data, experiment, series, &contenders, progress, &mut notes)?);
        }
        let settings = Settings::new(self, data, experiment, machine);
        Ok(BenchReport::new(settings, runs, notes))
    }

    /// The same without those of the experiment that cannot learn from this data.
    pub(crate) fn methods_for(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        notes: &mut Vec<String>,
    ) -> Vec<BenchMethod> {
        if !self.methods.is_empty() {
            return self.methods.clone();
        }
        let mut methods = experiment.methods();
        // Asked for by name it fails, and says so.
        if let Some(reason) = Contender::cannot_learn(data) {
            let before = methods.len();
            methods.retain(|method| !method.is_ocd());
            if methods.len() < before {
                notes.push(format!("ocd is left out: {reason}"));
            }
        }
        methods
    }

    /// The methods and shapes that an experiment runs through.
    pub(crate) fn series(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Series>, LabError> {
        let plain = self.methods_for(data, experiment, notes);
        let varied = |parameter: &str, values: Vec<String>| -> Result<Vec<BenchMethod>, MethodError> {
            let all = plain
                .iter()
                .flat_map(|method| values.iter().map(move |value| (method, value)));
            all.map(|(method, value)| method.with(parameter, value)).collect()
        };
        if let Experiment::Piles(settings) = experiment {
            return self.series_of_piles(data, settings, &plain, notes);
        }
        let mut shapes = vec![self.shape];
        let specs = match experiment {
            Experiment::Main
            | Experiment::RealTime
            | Experiment::Large(_)
            | Experiment::Ablation
            | Experiment::Backbones { .. }
            | Experiment::Piles(_)
            | Experiment::Stream(_)
            | Experiment::Transfer { .. } => plain.clone(),
            Experiment::Alpha(values) => varied("alpha", values.iter().map(f64::to_string).collect())?,
            Experiment::Threshold(values) => varied("t", values.iter().map(usize::to_string).collect())?,
            Experiment::Queries(values) => {
                shapes = values.iter().map(|&query| Shape { query, ..self.shape }).collect();
                plain.clone()
            }
            Experiment::Tasks => {
                shapes = [(5, 20), (10, 20), (10, 40)]
                    .map(|(way, new)| Shape { way, new, ..self.shape })
                    .to_vec();
                // A data set with few classes still gets the rows it has classes for.
                let found = data.pool().classes().len();
                shapes.retain(|shape| {
                    let needed = self.pile.classes(*shape);
                    let fits = needed <= found;
                    if !fits {
                        notes.push(format!("{shape} is left out: it needs {needed} classes of {found}"));
                    }
                    fits
                });
                plain.clone()
            }
        };
        if shapes.is_empty() {
            let reason = notes.join("; ");
            return Err(LabError::NothingToRun {
                data: data.name().to_owned(),
                reason,
            });
        }
        let series = shapes.into_iter().map(|shape| Series {
            shape,
            pile: self.pile,
            kind: None,
            methods: specs.clone(),
        });
        Ok(series.collect())
    }

    /// The piles that the data has enough items and classes for.
    fn series_of_piles(
        &self,
        data: &Dataset,
        settings: &PileSettings,
        methods: &[BenchMethod],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Series>, LabError> {
        let mut series = Vec::new();
        for kind in settings.piles(self.shape) {
            let (classes, items) = (kind.pile.classes(kind.shape), kind.pile.items(kind.shape));
            let large_enough = data.pool().items().iter().filter(|of_class| of_class.len() >= items);
            let found = large_enough.count();
            if found < classes {
                notes.push(format!(
                    "{kind} is left out: it needs {classes} classes of at least {items} items, and there are {found}"
                ));
                continue;
            }
            series.push(Series {
                shape: kind.shape,
                pile: kind.pile,
                kind: Some(kind),
                methods: methods.to_vec(),
            });
        }
        match series.is_empty() {
            true => Err(LabError::NothingToRun {
                data: data.name().to_owned(),
                reason: notes.join("; "),
            }),
            false => Ok(series),
        }
    }

    fn run_series(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        series: &Series,
        contenders: &BTreeMap<String, Contender>,
        progress: &dyn Progress,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Run>, LabError> {
        let pool = self.pool(data, experiment, series, notes)?;
        let run = |number| {
            let (episode, mode) = self
                .draw(&pool, experiment, series, number)
                .map_err(|source| self.cannot_draw(data, source))?;
            let trial = EpisodeTrial::new(data, episode, mode, self, number)?;
            let outcomes = series
                .methods
                .iter()
                .map(|method| trial.run_on_its_features(&contenders[&method.to_string()]));
            let outcomes = outcomes.collect();
            progress.step();
            outcomes
        };
        // One large pile at a time has the memory to itself, and its methods use all threads.
        let one_by_one = series.kind.is_some() || contenders.values().any(Contender::needs_all_threads);
        let outcomes: Vec<Result<Vec<MethodOutcome>, LabError>> = match one_by_one {
            true => (0..self.episodes).map(run).collect(),
            false => (0..self.episodes).into_par_iter().map(run).collect(),
        };
        // The first failure in the order of the episodes, whichever thread came to one first.
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        let runs = series.methods.iter().enumerate().map(|(at, method)| {
            let of_method = outcomes.iter().map(|episode| &episode[at]);
            Run::new(&method.to_string(), series, experiment, data.set(), of_method)
        });
        Ok(runs.collect())
    }

    /// The classes that the episodes of a series are drawn from.
    pub(crate) fn pool(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        series: &Series,
        notes: &mut Vec<String>,
    ) -> Result<Pool, LabError> {
        let shape = series.shape;
        let needed = match experiment {
            Experiment::Large(large) if large.authors => shape.items_in_order(),
            Experiment::Large(_) => shape.shot.saturating_add(1),
            _ => series.pile.items(shape),
        };
        let short_classes = match series.kind {
            // Piles that no class is large enough for were left out before.
            Some(_) => ShortClasses::Skip,
            None => self.short_classes,
        };
        let (pool, skipped) = data
            .pool()
            .clone()
            .with_at_least(needed, short_classes)
            .map_err(|source| self.cannot_draw(data, source))?;
        if !skipped.is_empty() {
            let setting = series.kind.map_or_else(|| shape.to_string(), |kind| kind.to_string());
            notes.push(format!(
                "{setting}: classes with fewer than {needed} items are left out: {}",
                skipped.join(", ")
            ));
        }
        Ok(pool)
    }

    pub(crate) fn draw(
        &self,
        pool: &Pool,
        experiment: &Experiment,
        series: &Series,
        number: u64,
    ) -> Result<(Episode, QueryMode), EpisodeError> {
        let Series { shape, pile, kind, .. } = *series;
        if let Some(PileKind { frames, .. }) = kind {
            let episode = pool.episode_of(shape, pile, self.seed, number)?;
            return Ok((in_bursts(episode, frames), QueryMode::Pile { frames }));
        }
        match experiment {
            Experiment::RealTime => Ok((pool.episode_of(shape, pile, self.seed, number)?, QueryMode::RealTime)),
            Experiment::Large(large) => {
                let (episode, subset) = if large.authors {
                    let (episode, first) = pool.large_in_order(shape, self.seed, number)?;
                    (episode, Subset::First(first))
                } else {
                    let subset = Subset::Random {
                        size: large.subset,
                        // Every task has a subset of its own.
                        seed: self.seed.wrapping_add(number),
                    };
                    (pool.large(shape, self.seed, number)?, subset)
                };
                let mode = QueryMode::TwoStep {
                    subset,
                    centre_norm: large.centre_norm,
                    refine: large.refine,
                };
                Ok((episode, mode))
            }
            _ => Ok((pool.episode_of(shape, pile, self.seed, number)?, QueryMode::Batch)),
        }
    }

    pub(crate) fn cannot_draw(&self, data: &Dataset, source: EpisodeError) -> LabError {
        LabError::Episode {
            data: data.name().to_owned(),
            source,
            tail: self.pile.tail.is_some(),
        }
    }
}
