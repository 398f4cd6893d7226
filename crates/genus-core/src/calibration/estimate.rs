//! Without base classes: what the examples of one task say, and what other encoders say where the examples say nothing.

use std::sync::Arc;

use super::cut::{Cut, Eagerness, MERGE, MergeTree, Price};
use super::fit::Trial;
use super::logistic::{Observation, logit, probability};
use super::membership::MEMBER;
use super::points::Points;
use super::space::{Space, dimensions_within, mean_of, within_variance};
use super::{Calibration, Centre, Source};
use crate::error::DiscoverError;
use crate::rng::Rng;
use crate::task::Task;

/// The prior was learnt around the mean of each trial's own items, without damped directions, on trials of three kinds of
/// base classes: CUB-200 and CIFAR-100 as EfficientNet-Lite2 sees them, Banking77 as MiniLM does. The model of merges is one
/// model of all trials, with one more thing to look at: `APART`; it also looked at the mean size of clusters, and the constant
/// holds what a dozen points added. The others are the means of the three.
const MERGES: [f64; MERGE] = [4.16, -2.03, -1.04, -0.73, -1.97];
/// By how much the constant rises with the logarithm of the variance between classes over that within.
const APART: f64 = 0.58;
const ARRIVALS: [f64; MEMBER] = [0.62, 10.27, 1.85, -6.03, -0.94];
const PLACES: [f64; MEMBER] = [-2.58, 0.84, 4.78, 2.68, 0.21];
const DOUBT: f64 = 0.53;
/// The size of the largest class of the three.
const LARGEST: f64 = 40.0;
/// In how many directions items of one class usually differ, and how many differences that counts like.
const DIMENSIONS: f64 = 140.0;
const USUAL_WEIGHT: f64 = 20.0;
/// The variance within a class in units of the cost below which seven in ten merges of a Ward tree are: between 0.88 and
/// 0.92 for the base classes of the three.
const OF_COSTS: f64 = 0.9;
const COSTS_BELOW: f64 = 0.7;
/// The variance within a class where there is nothing to measure it by.
const VARIANCE: f64 = 0.67;

/// Trials in which some of the known classes are hidden.
const TRIALS: u64 = 20;
/// The stream of random numbers.
const HIDE: u64 = 0x68_69;
/// How far the prior may be moved by examples that have little to say: the standard deviation of the constant.
const DEVIATION: f64 = 0.4;

/// What is known of the spread of a class before a task begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Knowledge {
    /// What base classes say.
    Calibration(Arc<Calibration>),
    /// What the examples of the task say and, where no class has two of them, the prior.
    #[default]
    Examples,
    /// What other encoders say.
    Prior,
}

impl Knowledge {
    /// The calibration of a task, which may look at the queries for the middle of all features.
    pub(crate) fn of_task(&self, task: &Task) -> Result<Arc<Calibration>, DiscoverError> {
        self.applied(task, &task.points().values()[task.known() * task.dim()..])
    }

    /// The same without a look at the queries, for those that come one by one.
    pub(crate) fn of_examples(&self, task: &Task) -> Result<Arc<Calibration>, DiscoverError> {
        self.applied(task, &[])
    }

    fn applied(&self, task: &Task, queries: &[f32]) -> Result<Arc<Calibration>, DiscoverError> {
        let mean = || mean_of(&[task.support().values(), queries].concat(), task.dim());
        match self {
            Knowledge::Calibration(calibration) if calibration.dim() != task.dim() => {
                Err(DiscoverError::CalibrationWidth {
                    calibration: calibration.dim(),
                    task: task.dim(),
                })
            }
            // Around the mean of the task it is a calibration like any other, for whatever comes later too.
            Knowledge::Calibration(calibration) if calibration.centre == Centre::Task => Ok(Arc::new(Calibration {
                centre: Centre::Base,
                space: calibration.space.around(mean()),
                ..Calibration::clone(calibration)
            })),
            Knowledge::Calibration(calibration) => Ok(calibration.clone()),
            Knowledge::Examples => Ok(Arc::new(estimate(task, queries, mean(), true))),
            Knowledge::Prior => Ok(Arc::new(estimate(task, queries, mean(), false))),
        }
    }
}

/// What the examples of a task say, if they are to be asked, and else the prior.
fn estimate(task: &Task, queries: &[f32], mean: Vec<f32>, ask: bool) -> Calibration {
    let (dim, labels, known) = (task.dim(), task.support_labels(), task.known());
    let space = Space::centred_on(mean);
    let support = space.apply(task.support().values());
    let spread = within_variance(&support, dim, labels, known).filter(|_| ask);
    let (source, variance) = match spread {
        Some(variance) => (Source::Examples, variance),
        None => {
            let points = Points::new(dim, &support, labels, known, &space.apply(queries));
            (Source::Prior, variance_of_costs(&points).unwrap_or(VARIANCE))
        }
    };
    let dimensions = spread.and_then(|_| dimensions_within(&support, dim, labels, known));
    let mut cut = Cut {
        dimensions: shrunk(dimensions.unwrap_or(DIMENSIONS), labels.len() - known),
        tree: MergeTree::Ward,
        eagerness: Eagerness::Chosen,
        price: Price::ESTIMATED,
        model: MERGES,
        variance,
        largest: LARGEST,
    };
    // Rows are of length one, so what does not vary within classes varies between them.
    cut.model[0] += APART * ((1.0 - variance).max(0.02) / variance).ln();
    if spread.is_some() {
        cut.model[0] += shift(&hidden(&support, dim, labels, known, &cut), labels.len(), &cut.model);
    }
    Calibration {
        source,
        centre: Centre::Base,
        learnt: (known, labels.len()),
        space,
        cut,
        arrivals: ARRIVALS,
        places: PLACES,
        doubt: DOUBT,
    }
}

/// The variance within a class as the costs of merges suggest it: most merges are within classes, and those of the middle
/// cost about that much.
fn variance_of_costs(points: &Points) -> Option<f64> {
    let tree = points.tree(MergeTree::Ward);
    let at = (COSTS_BELOW * tree.merges.len() as f64) as usize;
    let variance = OF_COSTS * tree.merges.get(at)?.cost;
    // Copies say nothing about a class, and no class is wider than everything.
    (variance > 0.0).then(|| variance.clamp(0.05, 0.95))
}

/// A number of dimensions as far towards the usual one as few differences within classes say little.
fn shrunk(dimensions: f64, differences: usize) -> f64 {
    let weight = differences as f64 / (differences as f64 + USUAL_WEIGHT);
    (weight * dimensions.ln() + (1.0 - weight) * DIMENSIONS.ln()).exp()
}

/// What merges teach when some known classes are hidden: their examples are queries, as are some of the others'.
fn hidden(support: &[f32], dim: usize, labels: &[usize], known: usize, cut: &Cut) -> Vec<Observation<MERGE>> {
    let mut members = vec![Vec::new(); known];
    labels
        .iter()
        .enumerate()
        .for_each(|(row, &label)| members[label].push(row));
    let trial = |number| {
        let mut rng = Rng::new(number, &[HIDE]);
        let order = rng.sample(known, known);
        // A class of one example can only stay known.
        let shown = 1 + rng.below(known.div_ceil(2));
        let mut rows = (Vec::new(), Vec::new());
        let (mut examples, mut truth) = (Vec::new(), Vec::new());
        for (at, &class) in order.iter().enumerate() {
            let items = &members[class];
            let kept = if at < shown {
                1 + rng.below(items.len().max(2) - 1)
            } else {
                0
            };
            for (place, item) in rng.sample(items.len(), items.len()).into_iter().enumerate() {
                let row = &support[items[item] * dim..][..dim];
                if place < kept {
                    rows.0.extend_from_slice(row);
                    examples.push(at);
                } else {
                    rows.1.extend_from_slice(row);
                    truth.push(at);
                }
            }
        }
        let points = Points::new(dim, &rows.0, &examples, shown, &rows.1);
        Trial::new(points, (0..shown).chain(truth).collect(), known, cut.variance).merges(cut)
    };
    (0..TRIALS).flat_map(trial).collect()
}

/// By how much the constant of the prior is moved to suit what was seen, which weighs as much as there are examples.
fn shift(seen: &[Observation<MERGE>], examples: usize, model: &[f64; MERGE]) -> f64 {
    let total: f64 = seen.iter().map(|o| o.weight).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let scale = examples as f64 / total;
    let mut constant = 0.0;
    for _ in 0..30 {
        let mut slope = -constant / DEVIATION.powi(2);
        let mut bend = DEVIATION.powi(-2);
        for o in seen {
            let p = probability(logit(model, &o.features) + constant);
            slope += scale * o.weight * (o.outcome - p);
            bend += scale * o.weight * p * (1.0 - p);
        }
        constant += slope / bend;
        if (slope / bend).abs() < 1e-9 {
            break;
        }
    }
    constant
}
