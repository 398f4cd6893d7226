//! Runs methods on one episode and judges what they found.

use std::time::{Duration, Instant};

use genus_core::episode::Episode;
use genus_core::methods::Method;
use genus_core::metrics::{Accuracy, Convention, Judged, accuracy, ari, nmi};
use genus_core::{
    Category, CentreNorm, Discover, DiscoverError, Discovery, Features, Prototypes, RealTime, Subset, Support, Task,
    TwoStep,
};

/// How queries are handed to a method.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// All at once.
    Batch,
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
pub(crate) struct Outcome {
    /// In the order of [`Convention::ALL`].
    pub(crate) accuracies: [Accuracy; 4],
    pub(crate) nmi: f64,
    pub(crate) ari: f64,
    /// The number of categories found; single queries cannot tell.
    pub(crate) categories: Option<usize>,
    pub(crate) time: Duration,
}

/// The task of an episode.
pub(crate) fn task(features: &Features, episode: &Episode, kind: Prototypes) -> Result<Task, DiscoverError> {
    let names: Vec<String> = episode.support_classes.iter().map(|class| class.to_string()).collect();
    let support = Support::new(features.select(&episode.support), &names)?;
    Ok(Task::with_prototypes(
        &support,
        features.select(&episode.queries),
        kind,
    )?)
}

/// Runs a method on a task and judges it.
pub(crate) fn run(method: &Method, task: &Task, truth: &[usize], mode: &Mode) -> Result<Outcome, DiscoverError> {
    let start = Instant::now();
    match mode {
        Mode::Batch => {
            let discovery = method.discover(task)?;
            Ok(judge(&discovery, truth, start.elapsed()))
        }
        Mode::TwoStep {
            subset,
            centre_norm,
            refine,
        } => {
            let two_step = TwoStep {
                method: ByReference(method),
                subset: subset.clone(),
                centre_norm: *centre_norm,
                refine: *refine,
            };
            let discovery = two_step.discover(task)?;
            Ok(judge(&discovery, truth, start.elapsed()))
        }
        Mode::RealTime => {
            let categories = match method.rule() {
                Some(rule) => RealTime::new(task, rule.clone())?.judge_all(task),
                None => one_by_one(method, task)?,
            };
            Ok(judge_one_by_one(task.known(), &categories, truth, start.elapsed()))
        }
    }
}

struct ByReference<'a>(&'a Method);

impl Discover for ByReference<'_> {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        self.0.discover(task)
    }
}

/// Every query in a task of its own, for methods without a closed form.
fn one_by_one(method: &Method, task: &Task) -> Result<Vec<Category>, DiscoverError> {
    (0..task.queries())
        .map(|query| Ok(method.discover(&task.with_queries(&[query])?)?.categories()[0]))
        .collect()
}

fn judge(discovery: &Discovery, truth: &[usize], time: Duration) -> Outcome {
    let judged = Judged {
        known: discovery.prototype_clusters(),
        clusters: discovery.query_clusters(),
        truth,
    };
    let clusters = judged.known.iter().chain(judged.clusters);
    Outcome {
        accuracies: Convention::ALL.map(|convention| accuracy(&judged, convention)),
        nmi: nmi(judged.clusters, truth),
        ari: ari(judged.clusters, truth),
        categories: clusters.max().map(|last| last + 1),
        time,
    }
}

/// A new query is right when it is called new; there is no grouping to match. The conventions that do match see one group
/// of everything that was called new.
fn judge_one_by_one(known: usize, categories: &[Category], truth: &[usize], time: Duration) -> Outcome {
    let prototypes: Vec<usize> = (0..known).collect();
    let clusters: Vec<usize> = categories
        .iter()
        .map(|category| match *category {
            Category::Known(class) => class,
            Category::Novel(_) => known,
        })
        .collect();
    let judged = Judged {
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
    Outcome {
        accuracies: Convention::ALL.map(|convention| match convention {
            Convention::Paper | Convention::AuthorsV2 => single,
            Convention::GcdV1 | Convention::GcdV2 => accuracy(&judged, convention),
        }),
        nmi: nmi(&clusters, truth),
        ari: ari(&clusters, truth),
        categories: None,
        time,
    }
}
