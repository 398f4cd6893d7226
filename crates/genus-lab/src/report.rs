//! What an experiment found, as JSON and as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use genus_core::episode::Shape;
use genus_core::metrics::{Accuracy, Convention, Summary};
use serde::Serialize;

use crate::trial::Outcome;
use crate::{Bench, Dataset, Experiment};

/// The result of an experiment. Accuracies are fractions.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run.
    #[serde(flatten)]
    pub settings: Settings,
    /// What the reader should know: shapes and classes that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// One entry a method and setting.
    pub runs: Vec<Run>,
}

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The experiment.
    pub experiment: &'static str,
    /// The feature file.
    pub features: String,
    /// How many classes episodes are drawn from.
    pub classes: usize,
    /// Known classes of an episode.
    pub way: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// New classes of an episode.
    pub new: usize,
    /// Queries of a class.
    pub query: usize,
    /// Episodes or, in the large-scale experiment, tasks.
    pub episodes: u64,
    /// The seed.
    pub seed: u64,
    /// How examples became prototypes.
    pub prototypes: String,
    /// The settings of the large-scale experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large: Option<LargeReport>,
    /// The metric of `all`, `old` and `new`.
    pub metric: &'static str,
    /// The version of Genus.
    pub version: &'static str,
}

/// The settings of the large-scale experiment.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval.
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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AccuracySummary {
    /// Over all queries.
    pub all: Interval,
    /// Over queries of known classes.
    pub old: Interval,
    /// Over queries of new classes.
    pub new: Interval,
}

/// How many categories were found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Categories {
    /// The mean number.
    pub mean: f64,
    /// Half the width of its interval.
    pub ci95: f64,
    /// The true number.
    pub truth: usize,
    /// The mean distance from the truth.
    pub error: f64,
}

/// One method's result in one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The name of the method.
    pub method: String,
    /// The parameters that differ from the defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The shape of the episodes.
    pub way: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// New classes.
    pub new_classes: usize,
    /// Queries of a class.
    pub query: usize,
    /// Accuracy over all queries, by the paper's metric.
    pub all: Interval,
    /// Over queries of known classes.
    pub old: Interval,
    /// Over queries of new classes.
    pub new: Interval,
    /// The number of categories; absent where queries were judged one by one.
    pub k: Option<Categories>,
    /// Other conventions and indices.
    pub metrics: OtherMetrics,
    /// The episodes one by one.
    pub episodes: Vec<EpisodeFigures>,
    /// The time of the method, over all episodes. Not written: it differs from run to run.
    #[serde(skip)]
    pub time: Duration,
}

/// Other conventions and indices.
#[derive(Clone, Debug, Serialize)]
pub struct OtherMetrics {
    /// By the name of the convention.
    #[serde(flatten)]
    pub conventions: BTreeMap<&'static str, AccuracySummary>,
    /// Normalised mutual information.
    pub nmi: Interval,
    /// Adjusted Rand index.
    pub ari: Interval,
}

/// One episode, by the paper's metric.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EpisodeFigures {
    /// Accuracy over all queries.
    pub all: f64,
    /// Over queries of known classes.
    pub old: f64,
    /// Over queries of new classes.
    pub new: f64,
    /// The number of categories found.
    pub k: Option<usize>,
}

impl Settings {
    pub(crate) fn new(bench: &Bench, data: &Dataset, experiment: &Experiment) -> Self {
        let Shape { way, shot, new, query } = bench.shape;
        Self {
            experiment: experiment.name(),
            features: data.name().to_owned(),
            classes: data.pool().classes().len(),
            way,
            shot,
            new,
            query,
            episodes: bench.episodes,
            seed: bench.seed,
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
            metric: Convention::Paper.name(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl Run {
    pub(crate) fn new<'a>(spec: &str, shape: Shape, outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Self {
        let mut parts = spec.split(':');
        let method = parts.next().unwrap_or_default().to_owned();
        let parameters = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let summary = |value: &dyn Fn(&Outcome) -> f64| Interval::from(Summary::of(outcomes.clone().map(value)));
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
        let found: Option<Vec<usize>> = outcomes.clone().map(|outcome| outcome.categories).collect();
        let k = found.map(|found| {
            let Interval { mean, ci95 } = Summary::of(found.iter().map(|&k| k as f64)).into();
            let error = Summary::of(found.iter().map(|&k| k.abs_diff(truth) as f64)).mean;
            Categories {
                mean,
                ci95,
                truth,
                error,
            }
        });
        Self {
            method,
            parameters,
            way: shape.way,
            shot: shape.shot,
            new_classes: shape.new,
            query: shape.query,
            all: paper.all,
            old: paper.old,
            new: paper.new,
            k,
            metrics: OtherMetrics {
                conventions: Convention::ALL
                    .iter()
                    .enumerate()
                    .skip(1)
                    .map(|(at, other)| (other.name(), convention(at)))
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

impl Report {
    pub(crate) fn new(settings: Settings, runs: Vec<Run>, notes: Vec<String>) -> Self {
        Self { settings, notes, runs }
    }

    /// The report as indented JSON.
    pub fn json(&self) -> String {
        // Maps with string keys, numbers and strings: nothing here can fail to serialise.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The report as two Markdown tables: the paper's metric, then the other conventions.
    pub fn markdown(&self) -> String {
        let several_shapes = self.runs.iter().any(|run| run.shape() != self.runs[0].shape());
        let setting = |run: &Run| if several_shapes { vec![run.shape()] } else { Vec::new() };
        let mut main = Table::new(
            (if several_shapes { vec!["Setting"] } else { vec![] })
                .into_iter()
                .chain(["Method", "All", "Old", "New", "K", "K error"]),
        );
        let mut other = Table::new(
            (if several_shapes { vec!["Setting"] } else { vec![] })
                .into_iter()
                .chain(["Method", "authors-v2", "gcd-v1", "gcd-v2", "NMI", "ARI"]),
        );
        for run in &self.runs {
            let never_new = run.new.mean == 0.0;
            main.row(
                setting(run).into_iter().chain([
                    run.title(),
                    percent(run.all),
                    percent(run.old),
                    if never_new { "–".to_owned() } else { percent(run.new) },
                    run.k
                        .map_or("–".to_owned(), |k| format!("{:.1} of {}", k.mean, k.truth)),
                    run.k.map_or("–".to_owned(), |k| format!("{:.1}", k.error)),
                ]),
            );
            let three = |name: &str| {
                run.metrics.conventions.get(name).map_or(String::new(), |a| {
                    format!("{} / {} / {}", short(a.all), short(a.old), short(a.new))
                })
            };
            other.row(setting(run).into_iter().chain([
                run.title(),
                three("authors-v2"),
                three("gcd-v1"),
                three("gcd-v2"),
                short(run.metrics.nmi),
                short(run.metrics.ari),
            ]));
        }
        let mut text = String::new();
        let s = &self.settings;
        // Writing to a string cannot fail.
        let _ = match &s.large {
            Some(large) if large.authors => writeln!(
                text,
                "**{}**, {}: {} tasks of {}-way {}-shot {}-new in the order of the data, the first two batches clustered, seed {}.",
                s.experiment, s.features, s.episodes, s.way, s.shot, s.new, s.seed
            ),
            Some(large) => writeln!(
                text,
                "**{}**, {}: {} tasks of {}-way {}-shot {}-new, {} queries clustered and the rest assigned, seed {}.",
                s.experiment, s.features, s.episodes, s.way, s.shot, s.new, large.subset, s.seed
            ),
            None if several_shapes => writeln!(
                text,
                "**{}**, {}: {} episodes a row from {} classes, seed {}.",
                s.experiment, s.features, s.episodes, s.classes, s.seed
            ),
            None => writeln!(
                text,
                "**{}**, {}: {} episodes of {}-way {}-shot {}-new with {} queries a class from {} classes, seed {}.",
                s.experiment, s.features, s.episodes, s.way, s.shot, s.new, s.query, s.classes, s.seed
            ),
        };
        let _ = write!(
            text,
            "Accuracy in % by the paper's metric, ± half the 95 % interval.\n\n{main}\nOther conventions (All / Old / New in %) \
             and indices:\n\n{other}"
        );
        for note in &self.notes {
            let _ = writeln!(text, "\nNote: {note}.");
        }
        text
    }
}

impl Run {
    fn shape(&self) -> String {
        format!(
            "{}w{}s{}n, {} queries",
            self.way, self.shot, self.new_classes, self.query
        )
    }
}

fn percent(interval: Interval) -> String {
    if interval.mean.is_nan() {
        return "–".to_owned();
    }
    format!("{:.1} ± {:.1}", 100.0 * interval.mean, 100.0 * interval.ci95)
}

fn short(interval: Interval) -> String {
    if interval.mean.is_nan() {
        return "–".to_owned();
    }
    format!("{:.1}", 100.0 * interval.mean)
}

/// A Markdown table whose columns line up as plain text too.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<'a>(header: impl Iterator<Item = &'a str>) -> Self {
        Self {
            rows: vec![header.map(str::to_owned).collect()],
        }
    }

    fn row(&mut self, cells: impl Iterator<Item = String>) {
        self.rows.push(cells.collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numbers = |column: usize| !["Setting", "Method"].contains(&&*self.rows[0][column]);
        for (at, row) in self.rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let fill = " ".repeat(widths[column] - cell.chars().count());
                match numbers(column) {
                    true => write!(f, "| {fill}{cell} ")?,
                    false => write!(f, "| {cell}{fill} ")?,
                }
            }
            writeln!(f, "|")?;
            if at == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    match numbers(column) {
                        true => write!(f, "|-{}:", "-".repeat(width))?,
                        false => write!(f, "|-{}-", "-".repeat(width))?,
                    }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}
