//! What a bench compares: the methods of the core, and the baselines that are trained.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use genus_core::methods::{Context, METHODS, Method, MethodError, MethodSpec};
use genus_core::{CalibrationSettings, Category, Discovery, Features, Stop};
use genus_vision::train::HashHead;
use genus_vision::{Augmentation, Limits, decode};

use crate::baselines::{
    BASELINES, Ocd, OcdError, OcdTraining, SimGcd, SimGcdError, SimGcdTrainer, SupportCode, train_on_features,
};
use crate::calibrations::Calibrations;
use crate::key;
use crate::trial::{EpisodeTrial, QueryMode};
use crate::{Bench, Dataset, ImageRows, LabError};
use genus::Progress;
use genus::training::{TrainingError, load_head, save_head};

/// A method of a bench: one of the core or a baseline that is trained.
#[derive(Clone, Debug)]
pub struct BenchMethod {
    spec: MethodSpec,
    /// Whether it is run on the features of the calibrated space.
    calibrated_features: bool,
}

impl BenchMethod {
    /// The methods of some texts.
    pub fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, MethodError> {
        texts.into_iter().map(str::parse).collect()
    }

    /// The same method on the features of the calibrated space.
    pub(crate) fn on_calibrated_features(self) -> Self {
        Self {
            calibrated_features: true,
            ..self
        }
    }

    /// The same method with one parameter more.
    pub(crate) fn with(&self, parameter: &str, value: impl fmt::Display) -> Result<Self, MethodError> {
        Ok(Self {
            spec: self.spec.with(parameter, value)?,
            ..*self
        })
    }

    /// Whether it is OCD, which learns from base classes.
    pub(crate) fn is_ocd(&self) -> bool {
        matches!(self.spec.name(), Ocd::NAME | Ocd::RADIUS_NAME)
    }

    /// Whether it is trained on augmented views.
    pub(crate) fn takes_views(&self) -> bool {
        self.is_ocd() || self.spec.name() == SimGcd::NAME
    }

    /// Whether it trains a network on the images themselves.
    pub(crate) fn takes_images(&self) -> bool {
        self.spec.name() == SimGcd::NAME
            && SimGcd::from_values(self.spec.values()).is_ok_and(|method| method.blocks > 0)
    }
}

impl From<MethodSpec> for BenchMethod {
    /// A method of any table, one of your own too.
    fn from(spec: MethodSpec) -> Self {
        Self {
            spec,
            calibrated_features: false,
        }
    }
}

impl FromStr for BenchMethod {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        MethodSpec::parse(text, &[METHODS, BASELINES]).map(Self::from)
    }
}

impl fmt::Display for BenchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.calibrated_features {
            ", calibrated features"
        } else {
            ""
        };
        write!(f, "{}{suffix}", self.spec)
    }
}

/// A method of a bench, with everything that it learns once a data set.
pub(crate) struct Contender {
    spec: String,
    kind: ContenderKind,
    /// What it sees in place of the data set's features.
    features: Option<Features>,
}

enum ContenderKind {
    Core(Method),
    Ocd(Ocd, HashCodes),
    SimGcd(SimGcd),
    SimGcdBlocks(Box<SimGcdNetwork>),
}

/// SimGCD with the network that it trains. The lock is never waited for: a thread of the pool that held it and waited for others
/// of its pool could take up an episode that wants it too.
struct SimGcdNetwork {
    trainer: Mutex<SimGcdTrainer>,
    classes: usize,
    views: u64,
}

/// The hash values of all items, and the head that gave them.
struct HashCodes {
    head: Arc<HashHead>,
    values: Vec<f32>,
}

impl Contender {
    /// Builds a method, and trains what it needs.
    pub(crate) fn prepare(
        method: &BenchMethod,
        data: &Dataset,
        bench: &Bench,
        calibrations: &mut Calibrations,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let spec = &method.spec;
        if method.calibrated_features {
            let settings = CalibrationSettings {
                seed: bench.seed,
                ..CalibrationSettings::default()
            };
            let features = calibrations
                .required(&method.to_string(), settings)?
                .transform(data.features());
            return Ok(Self {
                spec: method.to_string(),
                kind: ContenderKind::Core(spec.build(&Context::seed(bench.seed))?),
                features: Some(features),
            });
        }
        let name = spec.name();
        let learning = |problem| LabError::Learning {
            data: data.name().to_owned(),
            method: name.to_owned(),
            problem,
        };
        let kind = match name {
            Ocd::NAME | Ocd::RADIUS_NAME => {
                let classes = data.base().classes().len() + data.pool().classes().len();
                let (method, training) = Ocd::from_values(spec.values(), classes).map_err(MethodError::from)?;
                if let Some(problem) = Self::cannot_learn(data) {
                    return Err(LabError::NoBaseClasses {
                        data: data.name().to_owned(),
                        method: name.to_owned(),
                        problem: problem.to_owned(),
                    });
                }
                let codes = codes(data, training, bench, progress).map_err(learning)?;
                ContenderKind::Ocd(method, codes)
            }
            SimGcd::NAME => {
                let method = SimGcd::from_values(spec.values()).map_err(MethodError::from)?;
                match method.blocks {
                    0 => ContenderKind::SimGcd(method),
                    _ => {
                        let images = data.images().ok_or_else(|| LabError::NoImages {
                            data: data.name().to_owned(),
                            method: name.to_owned(),
                        })?;
                        ContenderKind::SimGcdBlocks(Box::new(network(&method, data, images, bench).map_err(learning)?))
                    }
                }
            }
            _ => ContenderKind::Core(core_method(spec, bench, calibrations)?),
        };
        Ok(Self {
            spec: method.to_string(),
            kind,
            features: None,
        })
    }

    /// Why no method can learn from a data set, if so.
    pub(crate) fn cannot_learn(data: &Dataset) -> Option<&'static str> {
        (data.base().classes().is_empty() && data.codes().is_none())
            .then_some("it learns from base classes, and there are none")
    }

    /// The text that it was built from.
    pub(crate) fn spec(&self) -> &str {
        &self.spec
    }

    /// What it sees in place of the data set's features, if it does.
    pub(crate) fn features(&self) -> Option<&Features> {
        self.features.as_ref()
    }

    /// The method of the core, if it is one.
    pub(crate) fn method(&self) -> Option<&Method> {
        match &self.kind {
            ContenderKind::Core(method) => Some(method),
            ContenderKind::Ocd(..) | ContenderKind::SimGcd(_) | ContenderKind::SimGcdBlocks(_) => None,
        }
    }

    /// Whether an episode takes all threads, so that one has to come after the other.
    pub(crate) fn needs_all_threads(&self) -> bool {
        matches!(self.kind, ContenderKind::SimGcdBlocks(_))
    }

    /// What a baseline finds in a trial.
    pub(crate) fn discover(&self, trial: &EpisodeTrial) -> Result<Discovery, LabError> {
        let all: Vec<usize> = (0..trial.task.queries()).collect();
        let seen = match &trial.mode {
            QueryMode::TwoStep { subset, .. } => subset.rows(&trial.task),
            QueryMode::Batch | QueryMode::Pile { .. } | QueryMode::RealTime => all,
        };
        let clusters = match &self.kind {
            ContenderKind::Core(method) => {
                return genus_core::Discover::discover(method, &trial.task).map_err(|e| trial.failed(self, e));
            }
            ContenderKind::Ocd(method, codes) => {
                ocd(method, codes, trial).map_err(|e| trial.baseline_failed(self, e))?
            }
            ContenderKind::SimGcd(method) => {
                let heads = simgcd(method, trial, &seen).map_err(|e| trial.baseline_failed(self, e))?;
                (0..trial.task.known()).chain(heads).collect()
            }
            ContenderKind::SimGcdBlocks(network) => {
                let heads = network
                    .heads(trial, &seen)
                    .map_err(|e| trial.baseline_failed(self, e))?;
                (0..trial.task.known()).chain(heads).collect()
            }
        };
        Ok(Discovery::from_clusters(&trial.task, clusters, Stop::Direct))
    }

    /// What a baseline says of every query when it sees one at a time.
    pub(crate) fn one_by_one(&self, trial: &EpisodeTrial) -> Result<Vec<Category>, LabError> {
        let known = trial.task.known();
        match &self.kind {
            // A code depends on its item alone.
            ContenderKind::Core(_) | ContenderKind::Ocd(..) => Ok(self.discover(trial)?.categories().to_vec()),
            ContenderKind::SimGcd(_) | ContenderKind::SimGcdBlocks(_) => (0..trial.task.queries())
                .map(|query| {
                    let head = match &self.kind {
                        ContenderKind::SimGcdBlocks(network) => network.heads(trial, &[query]).map(|heads| heads[0]),
                        ContenderKind::SimGcd(method) => simgcd(method, trial, &[query])
                            .map(|heads| heads[query])
                            .map_err(|e| e.to_string()),
                        _ => Ok(known),
                    };
                    Ok(match head.map_err(|e| trial.baseline_failed(self, e))? {
                        class if class < known => Category::Known(class),
                        _ => Category::Novel(0),
                    })
                })
                .collect(),
        }
    }
}

/// A method of the core, calibrated on the base classes where it asks for that.
fn core_method(spec: &MethodSpec, bench: &Bench, calibrations: &mut Calibrations) -> Result<Method, LabError> {
    let method = spec.build(&Context::seed(bench.seed))?;
    let Some(settings) = method.calibration_settings() else {
        return Ok(method);
    };
    let context = Context {
        seed: bench.seed,
        calibration: calibrations.of(&spec.to_string(), settings)?,
    };
    Ok(spec.build(&context)?)
}

/// Prepares SimGCD's training of a network on the images of a data set.
fn network(method: &SimGcd, data: &Dataset, images: &ImageRows, bench: &Bench) -> Result<SimGcdNetwork, String> {
    let weights = images.weights.read().map_err(|e| e.to_string())?;
    let architecture = images.encoder.architecture;
    let classes = bench.shape.way.saturating_add(bench.shape.new);
    let trainer = method.trainer(architecture, images.encoder.transform.crop, weights, classes);
    Ok(SimGcdNetwork {
        trainer: Mutex::new(trainer.map_err(|e| e.to_string())?),
        classes,
        views: data.views().len().max(1) as u64,
    })
}

impl SimGcdNetwork {
    /// The head of some queries after a training on them and the examples.
    fn heads(&self, trial: &EpisodeTrial, seen: &[usize]) -> Result<Vec<usize>, String> {
        if seen.len() < trial.task.queries() && matches!(trial.mode, QueryMode::TwoStep { .. }) {
            return Err("with blocks to train it takes whole episodes, not large tasks".to_owned());
        }
        if trial.episode.classes.len() != self.classes {
            return Err("with blocks to train all episodes must have as many classes".to_owned());
        }
        let mut trainer = self.trainer.lock().unwrap_or_else(PoisonError::into_inner);
        let episode = &trial.episode;
        let queries: Vec<usize> = seen.iter().map(|&query| episode.queries[query]).collect();
        let rows = |items: &[usize]| -> Result<Vec<Vec<f32>>, String> {
            let view = |number| {
                let pixels = pixels(trial.data, items, number)?;
                Ok(trainer.trunk().map_or(pixels.clone(), |trunk| trunk.run(&pixels)))
            };
            (0..self.views).map(view).collect()
        };
        let (support, queries) = (rows(&episode.support)?, rows(&queries)?);
        let heads = trainer.fit(&support, &episode.support_classes, &queries, trial.seed);
        heads.map_err(|e| e.to_string())
    }
}

/// One view of the images of some rows.
fn pixels(data: &Dataset, items: &[usize], number: u64) -> Result<Vec<f32>, String> {
    let Some(images) = data.images() else {
        return Ok(Vec::new());
    };
    let (limits, augmented) = (Limits::default(), Augmentation { number, mirror: true });
    let mut pixels = Vec::new();
    for &item in items {
        let source = &images.sources[item];
        let read = source
            .read(&limits)
            .and_then(|bytes| Ok((decode(&bytes, &limits)?, blake3::hash(&bytes))));
        let (image, content) = read.map_err(|e| format!("{}: {e}", source.path().display()))?;
        pixels.extend(
            images
                .encoder
                .transform
                .view(&image, augmented.view(content.as_bytes())),
        );
    }
    Ok(pixels)
}

/// Trains SimGCD on the examples and some of the queries; the head of every query.
fn simgcd(method: &SimGcd, trial: &EpisodeTrial, seen: &[usize]) -> Result<Vec<usize>, SimGcdError> {
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
fn ocd(method: &Ocd, codes: &HashCodes, trial: &EpisodeTrial) -> Result<Vec<usize>, OcdError> {
    let episode = &trial.episode;
    let bits = codes.head.bits();
    let of = |items: &[usize]| -> Vec<f32> {
        let rows = items.iter().flat_map(|&item| &codes.values[item * bits..][..bits]);
        rows.copied().collect()
    };
    let prototypes = match method.support_code {
        SupportCode::Prototype => Some(codes.head.hashes(&means_of_examples(trial))?),
        SupportCode::Mean | SupportCode::Majority => None,
    };
    let (support, queries) = (of(&episode.support), of(&episode.queries));
    method.clusters(
        &support,
        &episode.support_classes,
        episode.known,
        &queries,
        bits,
        prototypes.as_deref(),
    )
}

/// The mean of the examples of every class, as they came and not of their directions: that is what the head has learnt on.
fn means_of_examples(trial: &EpisodeTrial) -> Vec<f32> {
    let episode = &trial.episode;
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
    means
}

/// The codes of a data set: those it comes with, or those of a head that is trained on its base classes, or was before.
fn codes(data: &Dataset, training: OcdTraining, bench: &Bench, progress: &dyn Progress) -> Result<HashCodes, String> {
    let finish = |head: Arc<HashHead>, features: &Features| {
        let values = head.hashes(features.values()).map_err(|e| e.to_string())?;
        Ok(HashCodes { head, values })
    };
    if let Some((features, head)) = data.codes() {
        return finish(head.clone(), features);
    }
    let key = key::of_head(data, &training, bench.seed);
    let kept = bench
        .heads
        .as_ref()
        .map(|folder| folder.join(format!("{key}.safetensors")));
    // What cannot be read is made anew.
    if let Some(head) = kept.as_ref().and_then(|path| load_head(path).ok()) {
        return finish(Arc::new(head), data.features());
    }
    let (rows, labels) = data.base_rows();
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
