//! What a bench compares: the methods of the core, and the baselines that are trained.

use genus_core::methods::{Method, MethodError};
use genus_core::{Category, Discovery, Stop};

use crate::baselines::{SimGcd, SimGcdError};
use crate::trial::{Mode, Trial};
use crate::{Bench, Dataset, LabError, Progress};

/// A method of a bench, with everything that it learns once a data set.
pub(crate) struct Contender {
    spec: String,
    kind: Kind,
}

enum Kind {
    Core(Method),
    SimGcd(SimGcd),
}

impl Contender {
    /// Builds the method of a text such as `ukc:alpha=1.3`.
    pub(crate) fn prepare(
        spec: &str,
        _data: &Dataset,
        bench: &Bench,
        _progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
        let kind = match name {
            SimGcd::NAME => Kind::SimGcd(SimGcd::from_parameters(parameters).map_err(MethodError::from)?),
            _ => Kind::Core(Method::parse(spec, bench.seed)?),
        };
        Ok(Self {
            spec: spec.to_owned(),
            kind,
        })
    }

    /// Whether a method of this name learns from base classes.
    pub(crate) fn learns(name: &str) -> bool {
        name.split(':').next().is_some_and(|name| name.starts_with("ocd"))
    }

    /// Why no method can learn from a data set, if so.
    pub(crate) fn cannot_learn(data: &Dataset) -> Option<String> {
        data.base().classes().is_empty().then(|| {
            "ocd is left out: it learns from base classes, and there are none; name them in a split (--split)"
                .to_owned()
        })
    }

    /// The text that it was built from.
    pub(crate) fn spec(&self) -> &str {
        &self.spec
    }

    /// The method of the core, if it is one.
    pub(crate) fn method(&self) -> Option<&Method> {
        match &self.kind {
            Kind::Core(method) => Some(method),
            Kind::SimGcd(_) => None,
        }
    }

    /// What a baseline finds in a trial.
    pub(crate) fn discover(&self, trial: &Trial) -> Result<Discovery, LabError> {
        let all: Vec<usize> = (0..trial.task.queries()).collect();
        let seen = match &trial.mode {
            Mode::TwoStep { subset, .. } => subset.rows(all.len()),
            Mode::Batch | Mode::RealTime => all,
        };
        let clusters = match &self.kind {
            Kind::Core(method) => {
                return genus_core::Discover::discover(method, &trial.task).map_err(|e| trial.failed(self, e));
            }
            Kind::SimGcd(method) => {
                let heads = simgcd(method, trial, &seen).map_err(|e| trial.baseline_failed(self, e))?;
                (0..trial.task.known()).chain(heads).collect()
            }
        };
        Ok(Discovery::from_clusters(&trial.task, clusters, Stop::Direct))
    }

    /// What a baseline says of every query when it sees one at a time.
    pub(crate) fn one_by_one(&self, trial: &Trial) -> Result<Vec<Category>, LabError> {
        let known = trial.task.known();
        match &self.kind {
            Kind::Core(_) => Ok(self.discover(trial)?.categories().to_vec()),
            Kind::SimGcd(method) => (0..trial.task.queries())
                .map(|query| {
                    let heads = simgcd(method, trial, &[query]).map_err(|e| trial.baseline_failed(self, e))?;
                    Ok(match heads[query] {
                        class if class < known => Category::Known(class),
                        _ => Category::Novel(0),
                    })
                })
                .collect(),
        }
    }
}

/// Trains SimGCD on the examples and some of the queries; the head of every query.
fn simgcd(method: &SimGcd, trial: &Trial, seen: &[usize]) -> Result<Vec<usize>, SimGcdError> {
    let (task, episode) = (&trial.task, &trial.episode);
    let known = task.known();
    let rows: Vec<usize> = (known..task.points().rows()).collect();
    let queries = task.points().select(&rows);
    let (support, seen) = match trial.data.views() {
        // Without other views an item is its own.
        [] => (vec![task.support().clone()], vec![queries.select(seen)]),
        views => {
            let seen: Vec<usize> = seen.iter().map(|&query| episode.queries[query]).collect();
            let of = |items: &[usize]| views.iter().map(|view| view.select(items)).collect();
            (of(&episode.support), of(&seen))
        }
    };
    let classifier = method.fit(
        &support,
        task.support_labels(),
        &seen,
        episode.classes.len(),
        trial.seed,
    )?;
    classifier.predict(&queries)
}
