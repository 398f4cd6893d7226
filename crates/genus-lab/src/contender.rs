//! What a bench compares: the methods of the core, and the baselines that are trained.

use std::sync::{Arc, Mutex, PoisonError};

use genus_core::methods::{Given, Method, MethodError};
use genus_core::{CalibrationSettings, Category, Discovery, Features, Stop};
use genus_vision::train::HashHead;
use genus_vision::{Augmented, Limits, decode, read_weights};

use crate::baselines::{
    Ocd, OcdError, OcdTraining, SimGcd, SimGcdError, SimGcdTrainer, SupportCode, train_on_features,
};
use crate::calibrations::Calibrations;
use crate::key;
use crate::trial::{Mode, Trial};
use crate::{Bench, Dataset, ImageRows, LabError};
use genus::Progress;
use genus::training::{TrainingError, load_head, save_head};

/// What follows the name of a method that is run on the features of the calibrated space.
pub(crate) const CALIBRATED_FEATURES: &str = ", calibrated features";

/// A method of a bench, with everything that it learns once a data set.
pub(crate) struct Contender {
    spec: String,
    kind: Kind,
    /// What it sees in place of the data set's features.
    features: Option<Features>,
}

enum Kind {
    Core(Method),
    Ocd(Ocd, Codes),
    SimGcd(SimGcd),
    SimGcdBlocks(Box<Network>),
}

/// SimGCD with the network that it trains. The lock is never waited for: a thread of the pool that held it and waited for others
/// of its pool could take up an episode that wants it too.
struct Network {
    trainer: Mutex<SimGcdTrainer>,
    classes: usize,
    views: u64,
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
        calibrations: &mut Calibrations,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        if let Some(plain) = spec.strip_suffix(CALIBRATED_FEATURES) {
            let settings = CalibrationSettings {
                seed: bench.seed,
                ..CalibrationSettings::default()
            };
            let features = calibrations.required(spec, settings)?.transform(data.features());
            return Ok(Self {
                spec: spec.to_owned(),
                kind: Kind::Core(Method::parse(plain, bench.seed)?),
                features: Some(features),
            });
        }
        let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
        let learning = |problem| LabError::Learning {
            data: data.name().to_owned(),
            method: name.to_owned(),
            problem,
        };
        let kind = match name {
            Ocd::NAME | Ocd::RADIUS_NAME => {
                let classes = data.base().classes().len() + data.pool().classes().len();
                let (method, training) = Ocd::parse(spec, classes).map_err(MethodError::from)?;
                if let Some(problem) = Self::cannot_learn(data) {
                    return Err(LabError::NoBaseClasses {
                        data: data.name().to_owned(),
                        method: name.to_owned(),
                        problem: problem.to_owned(),
                    });
                }
                let codes = codes(data, training, bench, progress).map_err(learning)?;
                Kind::Ocd(method, codes)
            }
            SimGcd::NAME => {
                let method = SimGcd::from_parameters(parameters).map_err(MethodError::from)?;
                match method.blocks {
                    0 => Kind::SimGcd(method),
                    _ => {
                        let images = data.images().ok_or_else(|| LabError::NoImages {
                            data: data.name().to_owned(),
                            method: name.to_owned(),
                        })?;
                        Kind::SimGcdBlocks(Box::new(network(&method, data, images, bench).map_err(learning)?))
                    }
                }
            }
            _ => Kind::Core(method(spec, bench, calibrations)?),
        };
        Ok(Self {
            spec: spec.to_owned(),
            kind,
            features: None,
        })
    }

    /// Makes sure that a text names a method.
    pub(crate) fn check(spec: &str) -> Result<(), LabError> {
        let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
        match name {
            Ocd::NAME | Ocd::RADIUS_NAME => Ocd::parse(spec, 0).map(drop).map_err(MethodError::from)?,
            SimGcd::NAME => SimGcd::from_parameters(parameters)
                .map(drop)
                .map_err(MethodError::from)?,
            _ => Method::parse(spec, 0).map(drop)?,
        }
        Ok(())
    }

    /// Whether a method of this name learns from base classes.
    pub(crate) fn learns(name: &str) -> bool {
        matches!(name.split(':').next(), Some(Ocd::NAME | Ocd::RADIUS_NAME))
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
            Kind::Core(method) => Some(method),
            Kind::Ocd(..) | Kind::SimGcd(_) | Kind::SimGcdBlocks(_) => None,
        }
    }

    /// Whether an episode takes all threads, so that one has to come after the other.
    pub(crate) fn needs_all_threads(&self) -> bool {
        matches!(self.kind, Kind::SimGcdBlocks(_))
    }

    /// What a baseline finds in a trial.
    pub(crate) fn discover(&self, trial: &Trial) -> Result<Discovery, LabError> {
        let all: Vec<usize> = (0..trial.task.queries()).collect();
        let seen = match &trial.mode {
            Mode::TwoStep { subset, .. } => subset.rows(&trial.task),
            Mode::Batch | Mode::Pile { .. } | Mode::RealTime => all,
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
            Kind::SimGcdBlocks(network) => {
                let heads = network
                    .heads(trial, &seen)
                    .map_err(|e| trial.baseline_failed(self, e))?;
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
            Kind::SimGcd(_) | Kind::SimGcdBlocks(_) => (0..trial.task.queries())
                .map(|query| {
                    let head = match &self.kind {
                        Kind::SimGcdBlocks(network) => network.heads(trial, &[query]).map(|heads| heads[0]),
                        Kind::SimGcd(method) => simgcd(method, trial, &[query])
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
fn method(spec: &str, bench: &Bench, calibrations: &mut Calibrations) -> Result<Method, LabError> {
    let method = Method::parse(spec, bench.seed)?;
    let Some(settings) = method.calibration_settings() else {
        return Ok(method);
    };
    let given = Given {
        seed: bench.seed,
        calibration: calibrations.of(spec, settings)?,
    };
    Ok(Method::with(spec, &given)?)
}

/// Prepares SimGCD's training of a network on the images of a data set.
fn network(method: &SimGcd, data: &Dataset, images: &ImageRows, bench: &Bench) -> Result<Network, String> {
    let weights = read_weights(&images.weights).map_err(|e| e.to_string())?;
    let architecture = images.encoder.architecture;
    let classes = bench.shape.way.saturating_add(bench.shape.new);
    let trainer = method.trainer(architecture, images.encoder.transform.crop, weights, classes);
    Ok(Network {
        trainer: Mutex::new(trainer.map_err(|e| e.to_string())?),
        classes,
        views: data.views().len().max(1) as u64,
    })
}

impl Network {
    /// The head of some queries after a training on them and the examples.
    fn heads(&self, trial: &Trial, seen: &[usize]) -> Result<Vec<usize>, String> {
        if seen.len() < trial.task.queries() && matches!(trial.mode, Mode::TwoStep { .. }) {
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
    let (limits, augmented) = (Limits::default(), Augmented { number, mirror: true });
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
fn means_of_examples(trial: &Trial) -> Vec<f32> {
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
fn codes(data: &Dataset, training: OcdTraining, bench: &Bench, progress: &dyn Progress) -> Result<Codes, String> {
    let finish = |head: Arc<HashHead>, features: &Features| {
        let values = head.hashes(features.values()).map_err(|e| e.to_string())?;
        Ok(Codes { head, values })
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
