//! Without base classes: what the examples of one task say, and what other encoders say where the examples say nothing.

use std::sync::Arc;

use super::cut::{ClusterSize, Cut, MERGE, MergeTree};
use super::fit::Trial;
use super::logistic::{Observation, logit, probability};
use super::membership::MEMBER;
use super::points::Points;
use super::space::{Space, mean_of, within_variance};
use super::{Calibration, Centre, Source};
use crate::error::DiscoverError;
use crate::linalg;
use crate::rng::Rng;
use crate::task::Task;

/// The prior: the means of the coefficients of three calibrations with `centre=task` and `directions=0`, of the base
/// classes of CUB-200 and CIFAR-100 as EfficientNet-Lite2 sees them and of Banking77 as MiniLM does.
const MERGES: [f64; MERGE] = [3.80, -2.25, -0.26, -0.38, -1.79, 0.27];
const ARRIVALS: [f64; MEMBER] = [0.62, 10.27, 1.85, -6.03, -0.94];
const PLACES: [f64; MEMBER] = [-2.58, 0.84, 4.78, 2.68, 0.21];
const DOUBT: f64 = 0.53;
/// The variance within a class in units of half the mean squared distance of a query and its nearest: 1.4 for the two
/// encoders of images and 2.2 for the one of texts, where near copies are frequent.
const OF_NEAREST: f64 = 1.6;
/// The variance within a class where there is nothing to measure it by.
const VARIANCE: f64 = 0.67;

/// Trials in which some of the known classes are hidden.
const TRIALS: u64 = 20;
/// The stream of random numbers.
const HIDE: u64 = 0x68_69;
/// How far the prior may be moved by examples that have little to say: the standard deviation of the constant.
const DEVIATION: f64 = 0.5;

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
            Knowledge::Calibration(calibration) if calibration.centre == Centre::Task => Ok(Arc::new(Calibration {
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
            let nearest = variance_of_nearest(&space.apply(queries), dim);
            (Source::Prior, nearest.unwrap_or(VARIANCE))
        }
    };
    let mut cut = Cut {
        tree: MergeTree::Ward,
        size: ClusterSize::Settled,
        model: MERGES,
        variance,
    };
    if spread.is_some() {
        cut.model[0] += shift(&hidden(&support, dim, labels, known, &cut), labels.len());
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

/// The variance within a class as the distances of nearest neighbours suggest it; most neighbours are of one class.
fn variance_of_nearest(rows: &[f32], dim: usize) -> Option<f64> {
    /// More rows would say the same.
    const MOST: usize = 2000;
    let rows = &rows[..rows.len().min(MOST * dim)];
    let n = rows.len() / dim;
    let dots = linalg::gram(rows, dim);
    let nearest = (0..n).filter_map(|i| {
        let others = (0..n).filter(|&j| j != i);
        others.map(|j| f64::from(2.0 - 2.0 * dots[i * n + j])).reduce(f64::min)
    });
    let (sum, count) = nearest.fold((0.0, 0.0), |(sum, count), square| (sum + square.max(0.0), count + 1.0));
    let variance = 0.5 * OF_NEAREST * sum / count;
    // Copies say nothing about a class, and no class is wider than everything.
    (variance > 0.0).then(|| variance.clamp(0.05, 0.95))
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
        Trial::new(points, (0..shown).chain(truth).collect(), known, cut.variance).merges(cut.tree, cut.size)
    };
    (0..TRIALS).flat_map(trial).collect()
}

/// By how much the constant of the prior is moved to suit what was seen, which weighs as much as there are examples.
fn shift(seen: &[Observation<MERGE>], examples: usize) -> f64 {
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
            let p = probability(logit(&MERGES, &o.features) + constant);
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
