//! What the paper measures, each as a list of settings to run.

use genus_core::episode::{Episode, EpisodeError, Pool, Shape, ShortClasses};
use genus_core::methods::Method;
use genus_core::{CentreNorm, Prototypes, Subset};
use rayon::prelude::*;

use crate::report::{Report, Run, Settings};
use crate::trial::{self, Mode, Outcome};
use crate::{Dataset, LabError, Progress};

/// What every experiment needs to know.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The shape of an episode, where the experiment does not vary it.
    pub shape: Shape,
    /// How many episodes are averaged.
    pub episodes: u64,
    /// The seed of everything random.
    pub seed: u64,
    /// The methods, such as `shc` or `ukc:alpha=1.3`; empty for those of the paper's table.
    pub methods: Vec<String>,
    /// How examples become prototypes.
    pub prototypes: Prototypes,
    /// What to do with classes that have too few items.
    pub short_classes: ShortClasses,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            episodes: 500,
            seed: 0,
            methods: Vec::new(),
            prototypes: Prototypes::default(),
            short_classes: ShortClasses::Error,
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
    /// More known and new classes: 5 and 20, 10 and 20, 10 and 40.
    Tasks,
    /// UKC against α.
    Alpha(Vec<f64>),
    /// SHC against t.
    Threshold(Vec<usize>),
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
    /// Take the data in its own order and cluster the first 40 items a class, as the authors' code does.
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

/// Methods on episodes of one shape.
struct Series {
    shape: Shape,
    methods: Vec<Method>,
}

impl Experiment {
    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Experiment::Main => "main",
            Experiment::RealTime => "realtime",
            Experiment::Large(_) => "large",
            Experiment::Queries(_) => "queries",
            Experiment::Tasks => "tasks",
            Experiment::Alpha(_) => "alpha",
            Experiment::Threshold(_) => "threshold",
        }
    }

    /// The methods of the paper's table.
    fn methods(&self) -> &'static [&'static str] {
        match self {
            Experiment::Main => &["proto", "rankstat", "gcd", "shc", "ukc"],
            Experiment::RealTime => &["proto", "rankstat", "shc", "shc:boost=1.1", "ukc"],
            Experiment::Large(_) => &["proto", "rankstat", "shc", "ukc"],
            Experiment::Queries(_) | Experiment::Tasks => &["shc", "ukc"],
            Experiment::Alpha(_) => &["ukc"],
            Experiment::Threshold(_) => &["shc"],
        }
    }
}

impl Bench {
    /// Runs an experiment.
    pub fn run(&self, data: &Dataset, experiment: &Experiment, progress: &dyn Progress) -> Result<Report, LabError> {
        let mut notes = Vec::new();
        let series = self.series(data, experiment, &mut notes)?;
        let steps = self.episodes.saturating_mul(series.len() as u64);
        progress.start(steps);
        let mut runs = Vec::new();
        for series in &series {
            runs.extend(self.run_series(data, experiment, series, progress, &mut notes)?);
        }
        let settings = Settings::new(self, data, experiment);
        Ok(Report::new(settings, runs, notes))
    }

    /// The methods and shapes that an experiment runs through.
    fn series(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Series>, LabError> {
        let names: Vec<&str> = if self.methods.is_empty() {
            experiment.methods().to_vec()
        } else {
            self.methods.iter().map(String::as_str).collect()
        };
        let parse = |specs: &[String]| -> Result<Vec<Method>, LabError> {
            Ok(specs
                .iter()
                .map(|spec| Method::parse(spec, self.seed))
                .collect::<Result<_, _>>()?)
        };
        let plain: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let varied = |parameter: &str, values: Vec<String>| -> Vec<String> {
            let all = names
                .iter()
                .flat_map(|name| values.iter().map(move |value| (name, value)));
            all.map(|(name, value)| format!("{name}:{parameter}={value}")).collect()
        };
        let mut shapes = vec![self.shape];
        let specs = match experiment {
            Experiment::Main | Experiment::RealTime | Experiment::Large(_) => plain,
            Experiment::Alpha(values) => varied("alpha", values.iter().map(f64::to_string).collect()),
            Experiment::Threshold(values) => varied("t", values.iter().map(usize::to_string).collect()),
            Experiment::Queries(values) => {
                shapes = values.iter().map(|&query| Shape { query, ..self.shape }).collect();
                plain
            }
            Experiment::Tasks => {
                shapes = [(5, 20), (10, 20), (10, 40)]
                    .map(|(way, new)| Shape { way, new, ..self.shape })
                    .to_vec();
                // A data set with few classes still gets the rows it has classes for.
                let found = data.pool().classes().len();
                shapes.retain(|shape| {
                    let fits = shape.way + shape.new <= found;
                    if !fits {
                        notes.push(format!(
                            "{shape} is left out: it needs {} classes of {found}",
                            shape.way + shape.new
                        ));
                    }
                    fits
                });
                plain
            }
        };
        if shapes.is_empty() {
            let reason = notes.join("; ");
            return Err(LabError::NothingToRun {
                data: data.name().to_owned(),
                reason,
            });
        }
        shapes
            .into_iter()
            .map(|shape| {
                Ok(Series {
                    shape,
                    methods: parse(&specs)?,
                })
            })
            .collect()
    }

    fn run_series(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        series: &Series,
        progress: &dyn Progress,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Run>, LabError> {
        let shape = series.shape;
        let needed = match experiment {
            Experiment::Large(large) if large.authors => shape.items_in_order(),
            Experiment::Large(_) => shape.shot.saturating_add(1),
            _ => shape.shot.saturating_add(shape.query),
        };
        let (pool, skipped) = data
            .pool()
            .clone()
            .with_at_least(needed, self.short_classes)
            .map_err(|source| self.cannot_draw(data, source))?;
        if !skipped.is_empty() {
            notes.push(format!(
                "{shape}: classes with fewer than {needed} items are left out: {}",
                skipped.join(", ")
            ));
        }
        let outcomes: Vec<Result<Vec<Outcome>, LabError>> = (0..self.episodes)
            .into_par_iter()
            .map(|number| {
                let (episode, mode) = self
                    .draw(&pool, experiment, shape, number)
                    .map_err(|source| self.cannot_draw(data, source))?;
                let failed = |method: &str| {
                    let method = method.to_owned();
                    move |source| LabError::Discover {
                        method,
                        episode: number,
                        source,
                    }
                };
                let task = trial::task(data.features(), &episode, self.prototypes).map_err(failed("the task"))?;
                let outcomes = series
                    .methods
                    .iter()
                    .map(|method| trial::run(method, &task, &episode.truth, &mode).map_err(failed(method.spec())))
                    .collect();
                progress.step();
                outcomes
            })
            .collect();
        // The first failure in the order of the episodes, whichever thread came to one first.
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        let runs = series.methods.iter().enumerate().map(|(at, method)| {
            let of_method = outcomes.iter().map(|episode| &episode[at]);
            Run::new(method.spec(), shape, of_method)
        });
        Ok(runs.collect())
    }

    fn draw(
        &self,
        pool: &Pool,
        experiment: &Experiment,
        shape: Shape,
        number: u64,
    ) -> Result<(Episode, Mode), EpisodeError> {
        match experiment {
            Experiment::RealTime => Ok((pool.episode(shape, self.seed, number)?, Mode::RealTime)),
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
                let mode = Mode::TwoStep {
                    subset,
                    centre_norm: large.centre_norm,
                    refine: large.refine,
                };
                Ok((episode, mode))
            }
            _ => Ok((pool.episode(shape, self.seed, number)?, Mode::Batch)),
        }
    }

    fn cannot_draw(&self, data: &Dataset, source: EpisodeError) -> LabError {
        let hint = match source {
            EpisodeError::TooFewItems { .. } => {
                "; ask for fewer queries or examples, or leave such classes out with --short-classes skip"
            }
            EpisodeError::TooFewClasses { .. } => "; ask for fewer known or new classes",
            _ => "",
        };
        LabError::Episode {
            data: data.name().to_owned(),
            source,
            hint,
        }
    }
}
