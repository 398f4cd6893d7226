//! What an experiment found, as JSON, as Markdown and as a page.

mod contents;
mod markdown;
mod page;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use genus_core::episode::{Pile, Shape, Tail};
use genus_core::metrics::{Accuracy, Convention, Summary, calibration_error};
use serde::{Deserialize, Deserializer, Serialize};

use crate::experiment::{ExperimentKind, Series};
use crate::machine::Machine;
use crate::paper::{CellPlace, PaperCell, paper_cell};
use crate::piles::{PileKind, PileVariable};
use crate::trial::{MethodOutcome, QueryConfidence, SingleQueries, SingleQuery, UnsureRates};
use crate::{Bench, Dataset, Experiment};
pub use page::figures_page;
pub(crate) use page::{ReportPage, SectionBlock};
pub(crate) use table::{MarkdownTable, TableCell};

/// The result of an experiment. Accuracies are fractions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchReport {
    /// What was run.
    #[serde(flatten)]
    pub settings: Settings,
    /// What the reader should know: shapes and classes that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// One entry a method and setting.
    pub runs: Vec<Run>,
}

/// What was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The experiment.
    pub experiment: ExperimentKind,
    /// The feature file.
    pub features: String,
    /// Which of the paper's data sets it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The fingerprint of the encoder that made the features, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// How many classes episodes are drawn from.
    pub classes: usize,
    /// The half of the classes that these are, if they are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<String>,
    /// Known classes of an episode.
    pub way: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// New classes of an episode.
    pub new: usize,
    /// Queries per class, if there is no tail.
    pub query: usize,
    /// The queries of the smallest and the largest class, if there is a tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailReport>,
    /// Queries that belong to no class. They are not scored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outliers: usize,
    /// Episodes or, in the large-scale experiment, tasks.
    pub episodes: u64,
    /// The seed.
    pub seed: u64,
    /// All seeds, where there are several; figures are then means over them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// The orders that the items of an episode come in, in an experiment on streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<u64>,
    /// How examples became prototypes.
    pub prototypes: String,
    /// The settings of the large-scale experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<LargeReport>,
    /// The metric of `all`, `old` and `new`.
    pub metric: String,
    /// The version of Genus.
    pub version: String,
    /// The machine.
    pub machine: Machine,
}

/// The queries of the smallest and the largest class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailReport {
    /// Those of the smallest class.
    pub smallest: usize,
    /// Those of the largest.
    pub largest: usize,
}

/// The settings of the large-scale experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LargeReport {
    /// How many queries were clustered; the authors' order clusters the first two batches.
    pub subset: usize,
    /// Passes of k-means before the rest was assigned.
    pub refine: usize,
    /// How centres were scaled.
    pub centre_norm: String,
    /// Whether the data was taken in its own order.
    pub authors: bool,
}

/// A mean and half the width of its 95 % interval; `null` where there is nothing to average.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    #[serde(deserialize_with = "number_or_nothing")]
    pub mean: f64,
    /// Half the width of the interval.
    #[serde(deserialize_with = "number_or_nothing")]
    pub ci95: f64,
}

impl From<Summary> for Interval {
    fn from(summary: Summary) -> Self {
        Self {
            mean: summary.mean,
            ci95: summary.ci95,
        }
    }
}

/// The three accuracies of a convention.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AccuracySummary {
    /// Over all queries.
    pub all: Interval,
    /// Over queries of known classes.
    pub old: Interval,
    /// Over queries of new classes.
    pub new: Interval,
}

/// How many categories were found.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Categories {
    /// The mean number.
    pub mean: f64,
    /// Half the width of its interval.
    #[serde(deserialize_with = "number_or_nothing")]
    pub ci95: f64,
    /// The true number, outliers not counted.
    pub truth: usize,
    /// The mean distance from the truth, which is smaller in an episode with a new class that a tail left without queries.
    pub error: f64,
    /// The same as a fraction of the truth, where there is a tail or outliers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_error: Option<f64>,
}

/// One method's result in one setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The name of the method.
    pub method: String,
    /// The parameters that differ from the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The encoder in an experiment on encoders, the data set that was trained on in one on transfer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The data set, where a report has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The shape of the episodes.
    pub way: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// New classes.
    pub new_classes: usize,
    /// Queries per class, if there is no tail.
    pub query: usize,
    /// What is special about the pile, in an experiment on piles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pile: Option<PileReport>,
    /// When it was looked at, in an experiment on streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamReport>,
    /// Accuracy over all queries, by the paper's metric.
    pub all: Interval,
    /// Over queries of known classes.
    pub old: Interval,
    /// Over queries of new classes.
    pub new: Interval,
    /// The number of categories; absent where queries were judged one by one.
    pub k: Option<Categories>,
    /// How well scores tell known from new, where queries were judged one by one and have scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_or_new: Option<NoveltyDetection>,
    /// What was called unsure, where there are outliers and the method says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<UnsureShares>,
    /// What the probabilities are worth, in an experiment on piles and where the method has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sureness: Option<ConfidenceReport>,
    /// What the paper has in its place, in %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperCell>,
    /// Other conventions and indices.
    pub metrics: OtherMetrics,
    /// The episodes one by one.
    pub episodes: Vec<EpisodeFigures>,
    /// The time of the method, over all episodes. Not written: it differs from run to run.
    #[serde(skip)]
    pub time: Duration,
}

/// What is special about a pile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PileReport {
    /// The pile in words, as in `24 × 60 in bursts of 3`.
    pub name: String,
    /// What it is there to vary: `items`, `tail`, `bursts`, `examples` or `outliers`.
    pub varied: String,
    /// The items of the smallest and the largest class, if it has a long tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailReport>,
    /// The frames of every item that is not an example.
    pub frames: usize,
    /// Items that belong to no class. They are not scored.
    pub outliers: usize,
}

/// When a stream was looked at.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StreamReport {
    /// After so many items.
    pub seen: usize,
    /// The known classes and the new ones that these are of, on average.
    pub classes: f64,
    /// The share of the items that wait, by a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Interval>,
}

/// How well calibrated the probabilities are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ConfidenceReport {
    /// The expected calibration error over the queries of all piles together, in ten bins of equal width.
    #[serde(deserialize_with = "number_or_nothing")]
    pub ece: f64,
    /// The share of the errors that are among the least sure tenth of the queries.
    pub errors_found: Interval,
    /// The share of the outliers that are less sure than nine tenths of the other queries.
    pub outliers_found: Interval,
}

/// How well the scores of single queries separate known classes from new ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoveltyDetection {
    /// How often a query of a known class has a higher score than one of a new class; equal scores count half.
    pub auroc: Interval,
    /// Where the method is, over the queries of all episodes.
    pub at: TradeOff,
    /// Where it would be with other thresholds, from the strictest to none.
    pub curve: Vec<TradeOff>,
}

/// The two accuracies that a threshold trades for each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TradeOff {
    /// Over queries of known classes.
    #[serde(deserialize_with = "number_or_nothing")]
    pub old: f64,
    /// Over queries of new classes.
    #[serde(deserialize_with = "number_or_nothing")]
    pub new: f64,
}

/// The shares of queries that were called unsure.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct UnsureShares {
    /// Of the outliers.
    pub outliers: Interval,
    /// Of the queries that belong somewhere.
    pub others: Interval,
}

/// Other conventions and indices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OtherMetrics {
    /// By the name of the convention.
    #[serde(flatten)]
    pub conventions: BTreeMap<String, AccuracySummary>,
    /// Normalised mutual information.
    pub nmi: Interval,
    /// Adjusted Rand index.
    pub ari: Interval,
}

/// One episode, by the paper's metric.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EpisodeFigures {
    /// Accuracy over all queries.
    #[serde(deserialize_with = "number_or_nothing")]
    pub all: f64,
    /// Over queries of known classes.
    #[serde(deserialize_with = "number_or_nothing")]
    pub old: f64,
    /// Over queries of new classes.
    #[serde(deserialize_with = "number_or_nothing")]
    pub new: f64,
    /// The number of categories found.
    pub k: Option<usize>,
}

/// JSON has no NaN: where there was nothing to average it says `null`.
fn number_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What a pile is like in words, as in `15 queries per class and 5 outliers`.
pub(crate) fn in_words(query: usize, pile: Pile) -> String {
    let queries = match pile.tail {
        Some(Tail { smallest, largest }) => format!("{smallest} to {largest}"),
        None => query.to_string(),
    };
    match pile.outliers {
        0 => format!("{queries} queries a class"),
        some => format!("{queries} queries a class and {}", outliers_in_words(some)),
    }
}

/// A number of things, as in `1 draw` or `3 draws`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    }
}

/// How many examples a class has, as in `5 examples each`.
pub(crate) fn examples_in_words(shot: usize) -> String {
    match shot {
        1 => "a single example each".to_owned(),
        more => format!("{more} examples each"),
    }
}

/// The same of outliers alone.
pub(crate) fn outliers_in_words(outliers: usize) -> String {
    match outliers {
        1 => "1 outlier".to_owned(),
        several => format!("{several} outliers"),
    }
}

impl From<Tail> for TailReport {
    fn from(Tail { smallest, largest }: Tail) -> Self {
        Self { smallest, largest }
    }
}

impl From<&PileKind> for PileReport {
    fn from(kind: &PileKind) -> Self {
        Self {
            name: kind.to_string(),
            varied: kind.varied.to_string(),
            tail: kind.pile.tail.map(TailReport::from),
            frames: kind.frames,
            outliers: kind.pile.outliers,
        }
    }
}

impl PileReport {
    /// What it is there to vary.
    pub(crate) fn varied(&self) -> Option<PileVariable> {
        self.varied.parse().ok()
    }
}

impl Settings {
    pub(crate) fn new(bench: &Bench, data: &Dataset, experiment: &Experiment, machine: Machine) -> Self {
        let Shape { way, shot, new, query } = bench.shape;
        Self {
            experiment: experiment.kind(),
            features: data.name().to_owned(),
            set: data.set().map(str::to_owned),
            encoder: data.encoder().map(str::to_owned),
            classes: data.pool().classes().len(),
            half: data.which_half().map(|half| half.to_string()),
            way,
            shot,
            new,
            query,
            tail: bench.pile.tail.map(TailReport::from),
            outliers: bench.pile.outliers,
            episodes: bench.episodes,
            seed: bench.seed,
            seeds: Vec::new(),
            orders: match experiment {
                Experiment::Stream(streams) => Some(streams.orders),
                _ => None,
            },
            prototypes: bench.prototypes.to_string(),
            large: match experiment {
                Experiment::Large(large) => Some(LargeReport {
                    subset: large.subset,
                    refine: large.refine,
                    centre_norm: large.centre_norm.to_string(),
                    authors: large.authors,
                }),
                _ => None,
            },
            metric: Convention::Paper.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
        }
    }

    pub(crate) fn pile(&self) -> Pile {
        Pile {
            tail: self
                .tail
                .map(|TailReport { smallest, largest }| Tail { smallest, largest }),
            outliers: self.outliers,
        }
    }
}

impl Run {
    pub(crate) fn new<'a>(
        spec: &str,
        series: &Series,
        experiment: &Experiment,
        set: Option<&str>,
        outcomes: impl Iterator<Item = &'a MethodOutcome> + Clone,
    ) -> Self {
        let Series { shape, pile, kind, .. } = *series;
        let mut parts = spec.split(':');
        let method = parts.next().unwrap_or_default().to_owned();
        let parameters = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let summary = |value: &dyn Fn(&MethodOutcome) -> f64| Interval::from(Summary::of(outcomes.clone().map(value)));
        let convention = |at: usize| {
            let side = |pick: fn(&Accuracy) -> f64| summary(&|outcome| pick(&outcome.accuracies[at]));
            AccuracySummary {
                all: side(|a| a.all),
                old: side(|a| a.old),
                new: side(|a| a.new),
            }
        };
        let paper = convention(0);
        let truth = shape.way + shape.new;
        let plain = pile == Pile::default() && kind.is_none();
        let found: Option<Vec<(usize, usize)>> = outcomes
            .clone()
            .map(|outcome| Some((outcome.categories?, outcome.classes)))
            .collect();
        let k = found.map(|found| {
            let Interval { mean, ci95 } = Summary::of(found.iter().map(|&(k, _)| k as f64)).into();
            let errors = found.iter().map(|&(k, classes)| k.abs_diff(classes) as f64);
            let relative = errors
                .clone()
                .zip(&found)
                .map(|(error, &(_, classes))| error / classes as f64);
            Categories {
                mean,
                ci95,
                truth,
                error: Summary::of(errors).mean,
                relative_error: (!plain).then(|| Summary::of(relative).mean),
            }
        });
        Self {
            method,
            parameters,
            subject: experiment.subject().to_owned(),
            data: None,
            way: shape.way,
            shot: shape.shot,
            new_classes: shape.new,
            query: shape.query,
            pile: kind.as_ref().map(PileReport::from),
            stream: None,
            all: paper.all,
            old: paper.old,
            new: paper.new,
            k,
            known_or_new: NoveltyDetection::of(outcomes.clone()),
            unsure: shares(outcomes.clone()),
            sureness: ConfidenceReport::of(outcomes.clone()),
            // The paper has no such piles.
            paper: set.filter(|_| plain).and_then(|set| {
                paper_cell(CellPlace {
                    table: experiment.kind().name(),
                    shape,
                    subject: experiment.subject(),
                    method: spec,
                    set,
                })
            }),
            metrics: OtherMetrics {
                conventions: Convention::ALL
                    .iter()
                    .enumerate()
                    .skip(1)
                    .map(|(at, other)| (other.name().to_owned(), convention(at)))
                    .collect(),
                nmi: summary(&|outcome| outcome.nmi),
                ari: summary(&|outcome| outcome.ari),
            },
            episodes: outcomes
                .clone()
                .map(|outcome| EpisodeFigures {
                    all: outcome.accuracies[0].all,
                    old: outcome.accuracies[0].old,
                    new: outcome.accuracies[0].new,
                    k: outcome.categories,
                })
                .collect(),
            time: outcomes.map(|outcome| outcome.time).sum(),
        }
    }

    /// The run of a method of somebody else's, by the name that it was given.
    pub(crate) fn of_somebody<'a>(
        name: &str,
        series: &Series,
        outcomes: impl Iterator<Item = &'a MethodOutcome> + Clone,
    ) -> Self {
        Self {
            method: name.to_owned(),
            parameters: BTreeMap::new(),
            ..Self::new("", series, &Experiment::Main, None, outcomes)
        }
    }

    /// The same run as what was there after so many items of a stream.
    pub(crate) fn after<'a>(mut self, seen: usize, outcomes: impl Iterator<Item = &'a MethodOutcome> + Clone) -> Self {
        let classes = Summary::of(outcomes.clone().map(|outcome| outcome.classes as f64)).mean;
        let waiting: Option<Vec<f64>> = outcomes.map(|outcome| outcome.waiting).collect();
        if let Some(k) = &mut self.k {
            // A class that has not come yet cannot be found.
            k.truth = classes.round() as usize;
        }
        self.stream = Some(StreamReport {
            seen,
            classes,
            waiting: waiting.map(|shares| Summary::of(shares).into()),
        });
        self
    }

    /// The method with its parameters, as in `shc (t = 3)`.
    pub fn title(&self) -> String {
        if self.parameters.is_empty() {
            return self.method.clone();
        }
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        format!("{} ({})", self.method, parameters.join(", "))
    }
}

impl NoveltyDetection {
    /// How far either accuracy moves from one point of the curve to the next, at least.
    const STEP: f64 = 0.01;

    /// What all episodes say together; `None` unless all have scores.
    fn of<'a>(outcomes: impl Iterator<Item = &'a MethodOutcome>) -> Option<Self> {
        let sortings: Vec<&SingleQueries> = outcomes
            .map(|outcome| outcome.known_or_new.as_ref())
            .collect::<Option<_>>()?;
        let mut queries: Vec<SingleQuery> = sortings.iter().flat_map(|sorting| &sorting.queries).copied().collect();
        queries.sort_by(|a, b| b.score.total_cmp(&a.score));
        let count = |chosen: fn(&SingleQuery) -> bool| queries.iter().filter(|query| chosen(query)).count() as f64;
        let (of_old, of_new) = (count(|query| query.old), count(|query| !query.old));
        let (mut old, mut new) = (0.0, of_new);
        let mut curve = vec![TradeOff {
            old: old / of_old,
            new: new / of_new,
        }];
        // The threshold falls, and whatever has a score above it becomes known.
        let mut rest = queries.len();
        for group in queries.chunk_by(|a, b| a.score == b.score) {
            old += group.iter().filter(|query| query.old && query.fits).count() as f64;
            new -= group.iter().filter(|query| !query.old).count() as f64;
            rest -= group.len();
            let next = TradeOff {
                old: old / of_old,
                new: new / of_new,
            };
            let moved = |last: &TradeOff| next.old - last.old >= Self::STEP || last.new - next.new >= Self::STEP;
            if rest == 0 || curve.last().is_none_or(moved) {
                curve.push(next);
            }
        }
        Some(Self {
            auroc: Summary::of(sortings.iter().map(|sorting| sorting.auroc)).into(),
            at: TradeOff {
                old: count(|query| query.old && query.right) / of_old,
                new: count(|query| !query.old && query.right) / of_new,
            },
            curve,
        })
    }
}

impl ConfidenceReport {
    /// What all piles say together; `None` unless all have probabilities.
    fn of<'a>(outcomes: impl Iterator<Item = &'a MethodOutcome>) -> Option<Self> {
        let all: Vec<&QueryConfidence> = outcomes
            .map(|outcome| outcome.sureness.as_ref())
            .collect::<Option<_>>()?;
        let probabilities: Vec<f32> = all.iter().flat_map(|one| &one.probabilities).copied().collect();
        let right: Vec<bool> = all.iter().flat_map(|one| &one.right).copied().collect();
        Some(Self {
            ece: calibration_error(&probabilities, &right),
            errors_found: Summary::of(all.iter().map(|one| one.errors_found)).into(),
            outliers_found: Summary::of(all.iter().map(|one| one.outliers_found)).into(),
        })
    }
}

/// The shares of all episodes; `None` unless all have some.
fn shares<'a>(outcomes: impl Iterator<Item = &'a MethodOutcome>) -> Option<UnsureShares> {
    let unsure: Vec<UnsureRates> = outcomes.map(|outcome| outcome.unsure).collect::<Option<_>>()?;
    Some(UnsureShares {
        outliers: Summary::of(unsure.iter().map(|share| share.outliers)).into(),
        others: Summary::of(unsure.iter().map(|share| share.others)).into(),
    })
}

/// The mean of a few values with its interval by Student's distribution: three seeds say little about how far seeds lie apart.
fn over_few(values: impl IntoIterator<Item = f64>) -> Summary {
    /// Quantiles of 97.5 % for one degree of freedom and more.
    const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    const NORMAL: f64 = 1.96;
    let summary = Summary::of(values);
    let freedom = summary.count.saturating_sub(1);
    let quantile = match STUDENT.get(freedom.saturating_sub(1)) {
        Some(&quantile) => quantile,
        // The first terms of its expansion around the normal distribution.
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom as f64),
    };
    Summary {
        ci95: summary.ci95 * quantile / NORMAL,
        ..summary
    }
}

impl BenchReport {
    pub(crate) fn new(settings: Settings, runs: Vec<Run>, notes: Vec<String>) -> Self {
        Self { settings, notes, runs }
    }

    /// The report as indented JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps with string keys, numbers and strings have a JSON form")
    }

    /// Reports of the same experiment with several seeds as one: means, and how far the seeds lie apart; `None` of no reports.
    pub fn over_seeds(reports: Vec<BenchReport>) -> Option<BenchReport> {
        let mut over = reports.first()?.clone();
        if reports.len() == 1 {
            return Some(over);
        }
        over.settings.seeds = reports.iter().map(|report| report.settings.seed).collect();
        for (at, run) in over.runs.iter_mut().enumerate() {
            let runs: Vec<&Run> = reports.iter().filter_map(|report| report.runs.get(at)).collect();
            let mean = |of: &dyn Fn(&Run) -> Option<f64>| over_few(runs.iter().filter_map(|run| of(run)));
            let over = |of: &dyn Fn(&Run) -> Option<Interval>| Interval::from(mean(&|run| Some(of(run)?.mean)));
            run.all = over(&|run| Some(run.all));
            run.old = over(&|run| Some(run.old));
            run.new = over(&|run| Some(run.new));
            if let Some(k) = &mut run.k {
                let found = mean(&|run| Some(run.k?.mean));
                (k.mean, k.ci95) = (found.mean, found.ci95);
                k.error = mean(&|run| Some(run.k?.error)).mean;
                k.relative_error = k.relative_error.map(|_| mean(&|run| run.k?.relative_error).mean);
            }
            if let Some(scores) = &mut run.known_or_new {
                scores.auroc = over(&|run| Some(run.known_or_new.as_ref()?.auroc));
            }
            if let Some(unsure) = &mut run.unsure {
                unsure.outliers = over(&|run| Some(run.unsure?.outliers));
                unsure.others = over(&|run| Some(run.unsure?.others));
            }
            if let Some(sure) = &mut run.sureness {
                sure.ece = mean(&|run| Some(run.sureness?.ece)).mean;
                sure.errors_found = over(&|run| Some(run.sureness?.errors_found));
                sure.outliers_found = over(&|run| Some(run.sureness?.outliers_found));
            }
            if let Some(stream) = &mut run.stream {
                stream.waiting = stream.waiting.map(|_| over(&|run| run.stream?.waiting));
            }
            run.metrics.nmi = over(&|run| Some(run.metrics.nmi));
            run.metrics.ari = over(&|run| Some(run.metrics.ari));
            for (name, three) in &mut run.metrics.conventions {
                three.all = over(&|run| Some(run.metrics.conventions.get(name)?.all));
                three.old = over(&|run| Some(run.metrics.conventions.get(name)?.old));
                three.new = over(&|run| Some(run.metrics.conventions.get(name)?.new));
            }
            run.episodes = runs.iter().flat_map(|run| run.episodes.clone()).collect();
            run.time = runs.iter().map(|run| run.time).sum();
        }
        Some(over)
    }

    /// The runs of several reports as one, as of one encoder after the other; `None` of no reports.
    pub fn combined(reports: Vec<BenchReport>) -> Option<BenchReport> {
        let several = reports
            .iter()
            .any(|report| report.settings.features != reports[0].settings.features);
        let mut reports = reports.into_iter();
        let mut combined = reports.next()?;
        let named = |report: &mut BenchReport| {
            let name = report.settings.set.clone().unwrap_or(report.settings.features.clone());
            report
                .runs
                .iter_mut()
                .for_each(|run| run.data = several.then(|| name.clone()));
        };
        named(&mut combined);
        for mut report in reports {
            named(&mut report);
            if !combined
                .settings
                .features
                .split(", ")
                .any(|name| name == report.settings.features)
            {
                combined.settings.features += &format!(", {}", report.settings.features);
            }
            if combined.settings.encoder != report.settings.encoder {
                combined.settings.encoder = None;
            }
            if combined.settings.set != report.settings.set {
                combined.settings.set = None;
            }
            combined.notes.extend(report.notes);
            combined.runs.extend(report.runs);
        }
        Some(combined)
    }
}
