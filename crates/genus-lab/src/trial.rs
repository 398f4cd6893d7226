//! Runs methods on one episode and judges what they found.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use genus_core::episode::Episode;
use genus_core::methods::Method;
use genus_core::metrics::{
    Accuracy, Convention, Evaluation, accuracy, ari, auroc, classes_of_clusters, errors_among_least_sure, nmi,
};
use genus_core::{
    Category, CentreNorm, Discover, DiscoverError, Discovery, Features, Prototypes, RealTime, Score, Subset, Support,
    Task, TaskError, TwoStep,
};

use crate::contender::Contender;
use crate::piles::frame_rows;
use crate::{Bench, Dataset, LabError};

/// How queries are handed to a method.
#[derive(Clone, Debug)]
pub(crate) enum QueryMode {
    /// All at once.
    Batch,
    /// All at once, in bursts of so many frames; how sure a method is counts too.
    Pile { frames: usize },
    /// One by one.
    RealTime,
    /// Some at once, the rest assigned.
    TwoStep {
        subset: Subset,
        centre_norm: CentreNorm,
        refine: usize,
    },
}

/// How well one method did in one episode.
#[derive(Clone, Debug)]
pub(crate) struct MethodOutcome {
    /// In the order of [`Convention::ALL`].
    pub(crate) accuracies: [Accuracy; 4],
    pub(crate) nmi: f64,
    pub(crate) ari: f64,
    /// The number of categories found; single queries cannot tell.
    pub(crate) categories: Option<usize>,
    /// The number that there were: known classes, and new ones with a query.
    pub(crate) classes: usize,
    /// How well scores tell known from new, where queries came one by one and have scores.
    pub(crate) known_or_new: Option<SingleQueries>,
    /// What was called unsure, where there are outliers and the method says so.
    pub(crate) unsure: Option<UnsureRates>,
    /// What the probabilities of a pile are worth, where the method has some.
    pub(crate) sureness: Option<QueryConfidence>,
    /// The share of the queries that wait, in a stream.
    pub(crate) waiting: Option<f64>,
    pub(crate) time: Duration,
}

/// How well calibrated the probabilities are.
#[derive(Clone, Debug)]
pub(crate) struct QueryConfidence {
    /// Of every query that is not an outlier.
    pub(crate) probabilities: Vec<f32>,
    /// Whether it was assigned correctly.
    pub(crate) right: Vec<bool>,
    /// The share of the errors that are among the least sure tenth of these queries.
    pub(crate) errors_found: f64,
    /// The share of the outliers that are less sure than nine tenths of these queries; NaN without outliers.
    pub(crate) outliers_found: f64,
}

impl QueryConfidence {
    /// The share of the queries that somebody would look at.
    const LOOKED_AT: f64 = 0.1;

    /// `None` unless all queries have a probability; outliers come last.
    fn of(discovery: &Discovery, truth: &[usize]) -> Option<Self> {
        let scores = discovery.scores().iter();
        let mut probabilities: Vec<f32> = scores.map(|score| score.probability).collect::<Option<_>>()?;
        let outliers = probabilities.split_off(truth.len());
        let clusters = &discovery.query_clusters()[..truth.len()];
        let classes = classes_of_clusters(&Evaluation {
            known: discovery.prototype_clusters(),
            clusters,
            truth,
        });
        let right: Vec<bool> = clusters
            .iter()
            .zip(truth)
            .map(|pair| classes.binary_search(&(*pair.0, *pair.1)).is_ok())
            .collect();
        let mut sorted = probabilities.clone();
        sorted.sort_by(f32::total_cmp);
        let limit = sorted.get((Self::LOOKED_AT * sorted.len() as f64) as usize);
        let found = outliers
            .iter()
            .filter(|&p| limit.is_some_and(|limit| p < limit))
            .count();
        Some(Self {
            errors_found: errors_among_least_sure(&probabilities, &right, Self::LOOKED_AT),
            outliers_found: found as f64 / outliers.len() as f64,
            probabilities,
            right,
        })
    }
}

/// The scores of queries that came one by one.
#[derive(Clone, Debug)]
pub(crate) struct SingleQueries {
    /// How often a query of a known class has a higher score than one of a new class.
    pub(crate) auroc: f64,
    pub(crate) queries: Vec<SingleQuery>,
}

/// One query that came by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleQuery {
    /// How well it fits the best known class.
    pub(crate) score: f32,
    /// Whether it is of a known class.
    pub(crate) old: bool,
    /// Whether the best known class is its own.
    pub(crate) fits: bool,
    /// Whether it was rightly sorted.
    pub(crate) right: bool,
}

/// The shares of queries that were called unsure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsureRates {
    pub(crate) outliers: f64,
    pub(crate) others: f64,
}

/// One episode, and all that its methods share.
pub(crate) struct EpisodeTrial<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) episode: Episode,
    pub(crate) task: Task,
    pub(crate) mode: QueryMode,
    pub(crate) seed: u64,
    prototypes: Prototypes,
    number: u64,
}

impl<'a> EpisodeTrial<'a> {
    /// The trial of an episode that was drawn.
    pub(crate) fn new(
        data: &'a Dataset,
        episode: Episode,
        mode: QueryMode,
        bench: &Bench,
        number: u64,
    ) -> Result<Self, LabError> {
        let trial = TaskParts {
            episode: &episode,
            mode: &mode,
            prototypes: bench.prototypes,
            seed: bench.seed,
            number,
        };
        let task = trial.task(data.features())?;
        Ok(Self {
            data,
            episode,
            task,
            mode,
            seed: bench.seed,
            prototypes: bench.prototypes,
            number,
        })
    }

    /// The same trial on other features of the same items.
    pub(crate) fn on(&self, features: &Features) -> Result<Self, LabError> {
        let drawn = TaskParts {
            episode: &self.episode,
            mode: &self.mode,
            prototypes: self.prototypes,
            seed: self.seed,
            number: self.number,
        };
        Ok(Self {
            data: self.data,
            episode: self.episode.clone(),
            task: drawn.task(features)?,
            mode: self.mode.clone(),
            seed: self.seed,
            prototypes: self.prototypes,
            number: self.number,
        })
    }

    /// What a method finds when it sees all queries at once, or in two steps.
    pub(crate) fn discover(&self, contender: &Contender) -> Result<Discovery, LabError> {
        let Some(method) = contender.method() else {
            return contender.discover(self);
        };
        let discovery = match &self.mode {
            QueryMode::Batch | QueryMode::Pile { .. } | QueryMode::RealTime => method.discover(&self.task),
            QueryMode::TwoStep {
                subset,
                centre_norm,
                refine,
            } => {
                let two_step = TwoStep {
                    method,
                    subset: subset.clone(),
                    centre_norm: *centre_norm,
                    refine: *refine,
                };
                two_step.discover(&self.task)
            }
        };
        discovery.map_err(|source| self.failed(contender, source))
    }

    /// Runs a method on the features that it wants to see, and judges it.
    pub(crate) fn run_on_its_features(&self, contender: &Contender) -> Result<MethodOutcome, LabError> {
        match contender.features() {
            Some(features) => self.on(features)?.run(contender),
            None => self.run(contender),
        }
    }

    /// Runs a method and judges it.
    pub(crate) fn run(&self, contender: &Contender) -> Result<MethodOutcome, LabError> {
        let start = Instant::now();
        let task = &self.task;
        // Outliers are in the pile, and no answer to them is right or wrong.
        let truth = &self.episode.truth[..self.episode.belonging()];
        if !matches!(self.mode, QueryMode::RealTime) {
            let discovery = self.discover(contender)?;
            let time = start.elapsed();
            return Ok(MethodOutcome {
                unsure: unsure(&discovery, truth.len()),
                sureness: match self.mode {
                    QueryMode::Pile { .. } => QueryConfidence::of(&discovery, truth),
                    _ => None,
                },
                ..judge(&discovery, truth, time)
            });
        }
        let failed = |source| self.failed(contender, source);
        let rule = contender.method().and_then(Method::rule);
        if let Some(rule) = rule {
            let rule = RealTime::new(task, rule.clone()).map_err(failed)?;
            let judged = rule.judge_each(task);
            let time = start.elapsed();
            let categories: Vec<Category> = judged.iter().map(category).collect();
            return Ok(MethodOutcome {
                known_or_new: Some(sorting(task.known(), &judged, &rule.guess_each(task), truth)),
                ..judge_one_by_one(task.known(), &categories, truth, time)
            });
        }
        let categories = match contender.method() {
            None => contender.one_by_one(self)?,
            Some(method) => one_by_one(method, task).map_err(failed)?,
        };
        Ok(judge_one_by_one(task.known(), &categories, truth, start.elapsed()))
    }

    /// Says which method failed, and when.
    pub(crate) fn failed(&self, contender: &Contender, source: DiscoverError) -> LabError {
        self.method_failed(contender.spec(), source)
    }

    /// The same of what is not a contender.
    pub(crate) fn method_failed(&self, method: &str, source: DiscoverError) -> LabError {
        LabError::Discover {
            method: method.to_owned(),
            episode: self.number,
            source,
        }
    }

    /// The same of a baseline.
    pub(crate) fn baseline_failed(&self, contender: &Contender, problem: impl ToString) -> LabError {
        LabError::Baseline {
            method: contender.spec().to_owned(),
            episode: self.number,
            problem: problem.to_string(),
        }
    }
}

/// What a task is made of beside features.
struct TaskParts<'a> {
    episode: &'a Episode,
    mode: &'a QueryMode,
    prototypes: Prototypes,
    seed: u64,
    number: u64,
}

impl TaskParts<'_> {
    /// The task of an episode.
    fn task(&self, features: &Features) -> Result<Task, LabError> {
        let episode = self.episode;
        let names: Vec<String> = episode.support_classes.iter().map(|class| class.to_string()).collect();
        let queries = match *self.mode {
            QueryMode::Pile { frames } if frames > 1 => {
                let rows = frame_rows(features, &episode.queries, frames, self.seed, self.number);
                Features::new(features.dim(), rows).map_err(TaskError::Queries)
            }
            _ => Ok(features.select(&episode.queries)),
        };
        let task = Support::new(features.select(&episode.support), &names)
            .and_then(|support| Task::with_prototypes(&support, queries?, self.prototypes));
        task.map_err(|source| LabError::Discover {
            method: "the task".to_owned(),
            episode: self.number,
            source: source.into(),
        })
    }
}

/// The category of a query that came by itself.
fn category(judged: &(Option<usize>, Score)) -> Category {
    judged.0.map_or(Category::Novel(0), Category::Known)
}

/// What the scores of queries that came one by one say, given the best known class of each.
fn sorting(known: usize, judged: &[(Option<usize>, Score)], guesses: &[usize], truth: &[usize]) -> SingleQueries {
    let queries: Vec<SingleQuery> = truth
        .iter()
        .zip(judged)
        .zip(guesses)
        .map(|((&class, &(found, score)), &guess)| SingleQuery {
            score: score.probability.unwrap_or(score.similarity),
            old: class < known,
            fits: guess == class,
            right: found == Some(class).filter(|&class| class < known),
        })
        .collect();
    let scores: Vec<f32> = queries.iter().map(|query| query.score).collect();
    let old: Vec<bool> = queries.iter().map(|query| query.old).collect();
    SingleQueries {
        auroc: auroc(&scores, &old),
        queries,
    }
}

/// How many of the outliers and of the others were called unsure, where the method can say so; outliers come last.
fn unsure(discovery: &Discovery, belonging: usize) -> Option<UnsureRates> {
    let (others, outliers) = discovery.scores().split_at(belonging);
    if outliers.is_empty() || discovery.calibration().is_none() {
        return None;
    }
    let share = |scores: &[Score]| scores.iter().filter(|score| score.unsure).count() as f64 / scores.len() as f64;
    Some(UnsureRates {
        outliers: share(outliers),
        others: share(others),
    })
}

/// Every query in a task of its own, for methods without a closed form.
fn one_by_one(method: &Method, task: &Task) -> Result<Vec<Category>, DiscoverError> {
    (0..task.queries())
        .map(|query| Ok(method.discover(&task.with_queries(&[query])?)?.categories()[0]))
        .collect()
}

/// Judges the first queries, whose truth is known. Categories are counted with all of them.
fn judge(discovery: &Discovery, truth: &[usize], time: Duration) -> MethodOutcome {
    judge_clusters(discovery.prototype_clusters(), discovery.query_clusters(), truth, time)
}

/// The same of the clusters of prototypes and queries.
pub(crate) fn judge_clusters(known: &[usize], clusters: &[usize], truth: &[usize], time: Duration) -> MethodOutcome {
    let judged = Evaluation {
        known,
        clusters: &clusters[..truth.len()],
        truth,
    };
    MethodOutcome {
        accuracies: Convention::ALL.map(|convention| accuracy(&judged, convention)),
        nmi: nmi(judged.clusters, truth),
        ari: ari(judged.clusters, truth),
        categories: known.iter().chain(clusters).max().map(|last| last + 1),
        classes: classes(known.len(), truth),
        known_or_new: None,
        unsure: None,
        sureness: None,
        waiting: None,
        time,
    }
}

/// How many categories there are to find: a new class without a query cannot be.
fn classes(known: usize, truth: &[usize]) -> usize {
    let new: BTreeSet<usize> = truth.iter().copied().filter(|&class| class >= known).collect();
    known + new.len()
}

/// A new query is right when it is called new; there is no grouping to match. The conventions that do match see one group
/// of everything that was called new.
fn judge_one_by_one(known: usize, categories: &[Category], truth: &[usize], time: Duration) -> MethodOutcome {
    let prototypes: Vec<usize> = (0..known).collect();
    let clusters: Vec<usize> = categories[..truth.len()]
        .iter()
        .map(|category| match *category {
            Category::Known(class) => class,
            Category::Novel(_) => known,
        })
        .collect();
    let judged = Evaluation {
        known: &prototypes,
        clusters: &clusters,
        truth,
    };
    let right = |old: bool| {
        let side = || {
            truth
                .iter()
                .zip(&clusters)
                .filter(move |&(&class, _)| (class < known) == old)
        };
        let hits = side().filter(|&(&class, &cluster)| cluster == class.min(known)).count();
        (hits as f64, side().count() as f64)
    };
    let ((old, old_of), (new, new_of)) = (right(true), right(false));
    let single = Accuracy {
        all: (old + new) / (old_of + new_of),
        old: old / old_of,
        new: new / new_of,
    };
    MethodOutcome {
        accuracies: Convention::ALL.map(|convention| match convention {
            Convention::Paper | Convention::AuthorsV2 => single,
            Convention::GcdV1 | Convention::GcdV2 => accuracy(&judged, convention),
        }),
        nmi: nmi(&clusters, truth),
        ari: ari(&clusters, truth),
        categories: None,
        classes: classes(known, truth),
        known_or_new: None,
        unsure: None,
        sureness: None,
        waiting: None,
        time,
    }
}
