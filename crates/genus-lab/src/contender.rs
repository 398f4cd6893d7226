//! What a bench compares: the methods of the core, and the baselines that are trained.

use std::sync::Arc;

use genus_core::methods::{Method, MethodError};
use genus_core::{Category, Discovery, Features, Stop};
use genus_vision::train::HashHead;

use crate::baselines::{Ocd, OcdError, OcdTraining, SimGcd, SimGcdError, train_on_features};
use crate::training::{TrainingError, load_head, save_head};
use crate::trial::{Mode, Trial};
use crate::{Bench, Dataset, LabError, Progress};

/// A method of a bench, with everything that it learns once a data set.
pub(crate) struct Contender {
    spec: String,
    kind: Kind,
}

enum Kind {
    Core(Method),
    Ocd(Ocd, Codes),
    SimGcd(SimGcd),
}

/// The hash values of all items, and the head that gave them.
struct Codes {
    head: Arc<HashHead>,
    values: Vec<f32>,
}

impl Contender {
    /// Builds the method of a text such as `ukc:alpha=1.3`.
    pub(crate) fn prepare(
        spec: &str,
        data: &Dataset,
        bench: &Bench,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
        let kind = match name {
            Ocd::NAME | Ocd::RADIUS_NAME => {
                let classes = data.base().classes().len() + data.pool().classes().len();
                let (method, training) = Ocd::parse(spec, classes).map_err(MethodError::from)?;
                let codes = codes(data, training, bench, progress).map_err(|problem| LabError::Learning {
                    data: data.name().to_owned(),
                    method: name.to_owned(),
                    problem,
                })?;
                Kind::Ocd(method, codes)
            }
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
            Kind::Ocd(..) | Kind::SimGcd(_) => None,
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
            Kind::Ocd(method, codes) => ocd(method, codes, trial).map_err(|e| trial.baseline_failed(self, e))?,
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
            // A code depends on its item alone.
            Kind::Core(_) | Kind::Ocd(..) => Ok(self.discover(trial)?.categories().to_vec()),
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

/// The cluster of every point by its code.
fn ocd(method: &Ocd, codes: &Codes, trial: &Trial) -> Result<Vec<usize>, OcdError> {
    let episode = &trial.episode;
    let bits = codes.head.bits();
    let of = |items: &[usize]| -> Vec<f32> {
        let rows = items.iter().flat_map(|&item| &codes.values[item * bits..][..bits]);
        rows.copied().collect()
    };
    // The means of the examples as they came, not of their directions: that is what the head has learnt on.
    let features = trial
        .data
        .codes()
        .map_or(trial.data.features(), |(features, _)| features);
    let mut means = vec![0.0; episode.known * features.dim()];
    let shots = episode.support.len() as f32 / episode.known.max(1) as f32;
    for (&item, &class) in episode.support.iter().zip(&episode.support_classes) {
        let mean = &mut means[class * features.dim()..][..features.dim()];
        mean.iter_mut()
            .zip(features.row(item))
            .for_each(|(mean, value)| *mean += value / shots);
    }
    let prototypes = codes.head.hashes(&means)?;
    let (support, queries) = (of(&episode.support), of(&episode.queries));
    method.clusters(
        &support,
        &episode.support_classes,
        episode.known,
        &queries,
        bits,
        Some(&prototypes),
    )
}

/// The codes of a data set: those it comes with, or those of a head that is trained on its base classes, or was before.
fn codes(data: &Dataset, training: OcdTraining, bench: &Bench, progress: &dyn Progress) -> Result<Codes, String> {
    let finish = |head: Arc<HashHead>, features: &Features| {
        let values = head.hashes(features.values()).map_err(|e| e.to_string())?;
        Ok(Codes { head, values })
    };
    if let Some((features, head)) = data.codes() {
        return finish(head.clone(), features);
    }
    if let Some(problem) = Contender::cannot_learn(data) {
        return Err(problem.to_owned());
    }
    let key = format!("{} {training:?} {}", data.fingerprint(), bench.seed);
    let key = blake3::hash(key.as_bytes()).to_hex();
    let kept = bench
        .heads
        .as_ref()
        .map(|folder| folder.join(format!("{key}.safetensors")));
    // What cannot be read is made anew.
    if let Some(head) = kept.as_ref().and_then(|path| load_head(path).ok()) {
        return finish(Arc::new(head), data.features());
    }
    let base = data.base().items();
    let rows: Vec<usize> = base.iter().flatten().copied().collect();
    let labels: Vec<usize> = base
        .iter()
        .enumerate()
        .flat_map(|(class, items)| vec![class; items.len()])
        .collect();
    let views = match data.views() {
        [] => std::slice::from_ref(data.features()),
        views => views,
    };
    let trainer =
        train_on_features(views, &rows, &labels, training, bench.seed, progress).map_err(|e| e.to_string())?;
    if let Some(path) = kept {
        save_head(&path, &trainer).map_err(|e: TrainingError| e.to_string())?;
    }
    finish(Arc::new(trainer.head().map_err(|e| e.to_string())?), data.features())
}
