//! SimGCD: a classifier with a head for every category, known and new, that teaches itself on the queries.
//!
//! The whole method also trains a branch of contrastive losses. On frozen features that branch shares no trained tensor with
//! the classifier, so it cannot change any prediction, and it is not computed. What remains is this: rows of length one
//! go through a matrix whose rows have length one, and their cosines are logits. One view of an item teaches the other with
//! a colder softmax, labels teach the examples, and the mean prediction is held close to even, so that no head is left
//! empty. The gradient is in closed form: with the cosines one matrix product away, it is one more product.

use std::f64::consts::PI;
use std::str::FromStr;

use genus_core::methods::{Parameter, Values};
use genus_core::rng::Rng;
use genus_core::{FeatureError, Features, ParameterError};
use genus_vision::train::{DistilLoss, TrainError, UNLABELLED};
use thiserror::Error;

/// Streams of random numbers: the first directions, the two views of an epoch.
const DIRECTIONS: u64 = 0x73;
const VIEWS: u64 = 0x76;

/// What the rate ends at, as a share of what it began with.
const LAST_RATE: f64 = 1e-3;

/// SimGCD, trained in every episode. It is given the true number of categories, as in its paper.
#[derive(Clone, Debug, PartialEq)]
pub struct SimGcd {
    /// How often all items are gone through; each time is one step.
    pub epochs: usize,
    /// The learning rate at the beginning; it falls to a thousandth along half a cosine.
    pub rate: f64,
    /// How much of its direction a step takes over from the one before.
    pub momentum: f64,
    /// How strongly every weight is drawn to zero.
    pub weight_decay: f64,
    /// The share of the labels in the loss; the rest is for what needs no labels.
    pub supervised: f64,
    /// How strongly the mean prediction is held close to even: in the paper 1, 2 (CUB) or 4, by data set.
    pub entropy: f64,
    /// The temperature of predictions that learn.
    pub student: f64,
    /// The temperature of predictions that teach, at the beginning and from `warm_up` on.
    pub teacher: (f64, f64),
    /// In how many epochs the teacher's temperature goes from the first to the last.
    pub warm_up: usize,
    /// Where the heads begin.
    pub init: SimGcdInit,
    /// How many of the network's last blocks are trained too; with 0 features stay as they are.
    pub blocks: usize,
    /// Where blocks are trained: the length of the layers before the embedding that trains them too.
    pub hidden: usize,
}

/// Where the heads of [`SimGcd`] begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimGcdInit {
    /// All in random directions, as in the paper.
    Random,
    /// Those of the known classes at the means of their examples.
    Supports,
}

impl FromStr for SimGcdInit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "random" => Ok(Self::Random),
            "supports" => Ok(Self::Supports),
            _ => Err("one of random, supports".to_owned()),
        }
    }
}

impl Default for SimGcd {
    fn default() -> Self {
        Self {
            epochs: 50,
            rate: 0.1,
            momentum: 0.9,
            weight_decay: 5e-5,
            supervised: 0.35,
            entropy: 2.0,
            student: 0.1,
            teacher: (0.07, 0.04),
            warm_up: 30,
            init: SimGcdInit::Random,
            blocks: 0,
            hidden: 2048,
        }
    }
}

/// Why SimGCD cannot be trained. Rows count from zero.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimGcdError {
    /// A parameter is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// No view, or not as many of the queries as of the examples.
    #[error(
        "there are {support} views of the examples and {queries} of the queries; there must be as many, and one at least"
    )]
    Views {
        /// The views of the examples.
        support: usize,
        /// The views of the queries.
        queries: usize,
    },
    /// Views of different items.
    #[error("view {view} of the {what} has {found} rows where {expected} are expected")]
    Rows {
        /// Examples or queries.
        what: &'static str,
        /// The view.
        view: usize,
        /// The rows of the first view, or the number of labels.
        expected: usize,
        /// Its own rows.
        found: usize,
    },
    /// Views of different items, or of other inputs than the network takes.
    #[error("view {view} of the {what} has {found} values where {expected} are expected")]
    Values {
        /// Examples or queries.
        what: &'static str,
        /// The view.
        view: usize,
        /// The values that whole rows would have.
        expected: usize,
        /// Its own values.
        found: usize,
    },
    /// Rows of different length.
    #[error("the {what} have {found} features an item where {expected} are expected")]
    Dimensions {
        /// Whose rows.
        what: &'static str,
        /// The length of the examples, or of the classifier.
        expected: usize,
        /// Their own length.
        found: usize,
    },
    /// No labelled example.
    #[error("there is no labelled example")]
    EmptySupport,
    /// A label without a head.
    #[error("class {class} has no head: there are {heads}")]
    TooFewHeads {
        /// The class.
        class: usize,
        /// The number of heads.
        heads: usize,
    },
    /// A row that has no direction.
    #[error("in the {what}: {source}")]
    Features {
        /// Whose rows.
        what: &'static str,
        /// What is wrong.
        source: FeatureError,
    },
    /// The blocks cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The loss is not finite.
    #[error("the loss of epoch {epoch} is {loss}; a smaller learning rate may help")]
    NotFinite {
        /// The epoch, from zero.
        epoch: usize,
        /// The loss.
        loss: f64,
    },
}

impl SimGcd {
    /// The name on the command line.
    pub const NAME: &str = "simgcd";

    /// What can be set by text.
    pub const PARAMETERS: &[Parameter] = &[
        Parameter::new("epochs", "50", "steps of training in an episode"),
        Parameter::new("rate", "0.1", "learning rate at the beginning"),
        Parameter::new(
            "entropy",
            "2",
            "how strongly the mean prediction is held close to even (paper: 1, 2 or 4)",
        ),
        Parameter::new(
            "init",
            "random",
            "where the heads of known classes begin: random|supports",
        ),
        Parameter::new(
            "blocks",
            "0",
            "last blocks of the network that are trained too; needs images",
        ),
    ];

    /// The method of some parameters.
    pub fn from_values(values: &Values) -> Result<Self, ParameterError> {
        let usual = Self::default();
        Self {
            epochs: values.get("epochs", usual.epochs)?,
            rate: values.get("rate", usual.rate)?,
            entropy: values.get("entropy", usual.entropy)?,
            init: values.get("init", usual.init)?,
            blocks: values.get("blocks", usual.blocks)?,
            ..usual
        }
        .checked()
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        if self.epochs == 0 {
            return Err(wrong("epochs", self.epochs, "at least 1"));
        }
        for (name, value) in [
            ("rate", self.rate),
            ("student", self.student),
            ("teacher", self.teacher.0),
            ("teacher", self.teacher.1),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(wrong(name, value, "a number above 0"));
            }
        }
        for (name, value) in [("weight-decay", self.weight_decay), ("entropy", self.entropy)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(wrong(name, value, "a number not below 0"));
            }
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(wrong("momentum", self.momentum, "from 0 to below 1"));
        }
        if !(0.0..=1.0).contains(&self.supervised) {
            return Err(wrong("supervised", self.supervised, "from 0 to 1"));
        }
        Ok(self)
    }

    /// Trains a classifier for one episode.
    ///
    /// `support` and `queries` have one matrix a view, with the same items in the same rows. With one view an item teaches
    /// itself; of more than two, every epoch draws two. The head of a known class has the number of its label; the
    /// others, up to `classes`, are for new ones.
    pub fn fit(
        &self,
        support: &[Features],
        labels: &[usize],
        queries: &[Features],
        classes: usize,
        seed: u64,
    ) -> Result<SimGcdClassifier, SimGcdError> {
        let method = self.clone().checked()?;
        let items = EpisodeItems::new(support, labels, queries, classes)?;
        let first = method.first_directions(&items, seed);
        method.train(&items, first, seed)
    }

    /// The same from given directions, a row a head; their lengths matter to how fast each turns.
    pub fn fit_from(
        &self,
        first: &Features,
        support: &[Features],
        labels: &[usize],
        queries: &[Features],
        seed: u64,
    ) -> Result<SimGcdClassifier, SimGcdError> {
        let method = self.clone().checked()?;
        let items = EpisodeItems::new(support, labels, queries, first.rows())?;
        same_dimensions("first directions", items.dim, first.dim())?;
        if let Some(row) = first.iter().position(|row| row.iter().all(|&v| v == 0.0)) {
            let (what, source) = ("first directions", FeatureError::ZeroRow { row });
            return Err(SimGcdError::Features { what, source });
        }
        let first = first.values().iter().map(|&v| f64::from(v)).collect();
        method.train(&items, first, seed)
    }

    /// Where the heads begin. Random values are those that PyTorch gives a new layer, which is what the authors begin with:
    /// spread evenly within ±1/√d.
    pub(super) fn first_directions(&self, items: &EpisodeItems, seed: u64) -> Vec<f64> {
        let dim = items.dim;
        let reach = 1.0 / (dim as f64).sqrt();
        let mut rng = Rng::new(seed, &[DIRECTIONS]);
        let mut first: Vec<f64> = (0..items.heads * dim)
            .map(|_| reach * (2.0 * rng.unit() - 1.0))
            .collect();
        if self.init == SimGcdInit::Supports {
            for (class, head) in first.chunks_exact_mut(dim).enumerate() {
                let mut mean = vec![0.0; dim];
                for view in &items.views {
                    for (row, _) in view
                        .rows
                        .iter()
                        .zip(&items.labels)
                        .filter(|(_, label)| **label == class)
                    {
                        mean.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
                    }
                }
                // Heads turn the faster the shorter they are: all get the length that random ones have on average.
                let scale = 1.0 / (3f64.sqrt() * length(&mean));
                if scale.is_finite() {
                    head.iter_mut().zip(&mean).for_each(|(v, &mean)| *v = scale * mean);
                }
            }
        }
        first
    }

    fn train(&self, items: &EpisodeItems, first: Vec<f64>, seed: u64) -> Result<SimGcdClassifier, SimGcdError> {
        let mut weights = first;
        let mut momentum = vec![0.0; weights.len()];
        let mut losses = Vec::with_capacity(self.epochs);
        for epoch in 0..self.epochs {
            let views: Vec<&UnitView> = views_of(epoch, items.views.len(), seed)
                .into_iter()
                .map(|view| &items.views[view])
                .collect();
            let (loss, gradient) = self.gradient(items, &views, &weights, epoch)?;
            losses.push(loss);
            let rate = self.rate_at(epoch);
            for ((weight, before), slope) in weights.iter_mut().zip(&mut momentum).zip(gradient) {
                *before = self.momentum * *before + slope + self.weight_decay * *weight;
                *weight -= rate * *before;
            }
        }
        let weights = matrix(items.dim, weights.into_iter().map(|v| v as f32).collect())?;
        Ok(SimGcdClassifier { weights, losses })
    }

    /// The learning rate of an epoch.
    pub(super) fn rate_at(&self, epoch: usize) -> f64 {
        let last = LAST_RATE * self.rate;
        last + (self.rate - last) * (1.0 + (PI * epoch as f64 / self.epochs as f64).cos()) / 2.0
    }

    /// The loss in an epoch: the teacher's temperature changes.
    pub(super) fn loss_at(&self, epoch: usize) -> DistilLoss {
        let (first, last) = self.teacher;
        DistilLoss {
            supervised: self.supervised,
            entropy: self.entropy,
            student: self.student,
            teacher: match self.warm_up {
                warm_up if epoch + 1 < warm_up => first + (last - first) * epoch as f64 / (warm_up - 1) as f64,
                _ => last,
            },
        }
    }

    /// The loss of some views and its gradient.
    fn gradient(
        &self,
        items: &EpisodeItems,
        views: &[&UnitView],
        weights: &[f64],
        epoch: usize,
    ) -> Result<(f64, Vec<f64>), SimGcdError> {
        let EpisodeItems { dim, heads, .. } = *items;
        let lengths: Vec<f64> = weights.chunks_exact(dim).map(length).collect();
        let unit = (weights.chunks_exact(dim).zip(&lengths))
            .flat_map(|(head, length)| head.iter().map(move |v| (v / length) as f32))
            .collect();
        let unit = matrix(dim, unit)?;
        let cosines: Vec<Vec<f64>> = views
            .iter()
            .map(|view| view.rows.dots(&unit).into_iter().map(f64::from).collect())
            .collect();
        let (loss, slopes) = self.loss_at(epoch).gradients(&cosines, &items.labels, heads);
        if !loss.is_finite() {
            return Err(SimGcdError::NotFinite { epoch, loss });
        }
        let mut towards = vec![0.0; heads * dim];
        for (view, slopes) in views.iter().zip(slopes) {
            let by_head = matrix(items.labels.len(), transposed(&slopes, heads))?;
            let sums = by_head.dots(&view.columns);
            towards
                .iter_mut()
                .zip(sums)
                .for_each(|(all, sum)| *all += f64::from(sum));
        }
        let mut gradient = Vec::with_capacity(towards.len());
        for ((head, towards), length) in unit.iter().zip(towards.chunks_exact(dim)).zip(lengths) {
            // Only the direction counts: what points along a head changes nothing.
            let pairs = || head.iter().zip(towards).map(|(&h, t)| (f64::from(h), t));
            let along: f64 = pairs().map(|(h, t)| h * t).sum();
            gradient.extend(pairs().map(|(h, t)| (t - along * h) / length));
        }
        Ok((loss, gradient))
    }
}

/// The views that an epoch looks at: all when there are two at most, else two of them.
pub(super) fn views_of(epoch: usize, views: usize, seed: u64) -> Vec<usize> {
    match views {
        0..=2 => (0..views).collect(),
        _ => Rng::new(seed, &[VIEWS, epoch as u64]).sample(views, 2),
    }
}

fn wrong(name: &str, value: impl ToString, expected: &str) -> ParameterError {
    ParameterError::new(SimGcd::NAME, name, value, expected)
}

/// The items of an episode: the examples, whose labels are known, and then the queries.
pub(super) struct EpisodeItems {
    dim: usize,
    heads: usize,
    labels: Vec<usize>,
    views: Vec<UnitView>,
}

/// The unit rows of all items as one view shows them, and the same turned: products with both are needed.
struct UnitView {
    rows: Features,
    columns: Features,
}

impl EpisodeItems {
    pub(super) fn new(
        support: &[Features],
        labels: &[usize],
        queries: &[Features],
        heads: usize,
    ) -> Result<Self, SimGcdError> {
        let (Some(first), Some(query)) = (support.first(), queries.first()) else {
            return Err(SimGcdError::Views {
                support: support.len(),
                queries: queries.len(),
            });
        };
        if support.len() != queries.len() {
            return Err(SimGcdError::Views {
                support: support.len(),
                queries: queries.len(),
            });
        }
        if labels.is_empty() {
            return Err(SimGcdError::EmptySupport);
        }
        if let Some(&class) = labels.iter().find(|&&label| label >= heads) {
            return Err(SimGcdError::TooFewHeads { class, heads });
        }
        let (dim, rows) = (first.dim(), query.rows());
        let mut views = Vec::with_capacity(support.len());
        for (view, (support, queries)) in support.iter().zip(queries).enumerate() {
            let mut values = Vec::with_capacity((labels.len() + rows) * dim);
            for (what, expected, features) in [("examples", labels.len(), support), ("queries", rows, queries)] {
                same_dimensions(what, dim, features.dim())?;
                if features.rows() != expected {
                    return Err(SimGcdError::Rows {
                        what,
                        view,
                        expected,
                        found: features.rows(),
                    });
                }
                let unit = features.clone().into_unit();
                let unit = unit.map_err(|source| SimGcdError::Features { what, source })?;
                values.extend_from_slice(unit.values());
            }
            views.push(UnitView {
                columns: matrix(labels.len() + rows, transposed(&values, dim))?,
                rows: matrix(dim, values)?,
            });
        }
        let unlabelled = std::iter::repeat_n(UNLABELLED, rows);
        Ok(Self {
            dim,
            heads,
            labels: labels.iter().copied().chain(unlabelled).collect(),
            views,
        })
    }
}

fn same_dimensions(what: &'static str, expected: usize, found: usize) -> Result<(), SimGcdError> {
    if expected == found {
        return Ok(());
    }
    Err(SimGcdError::Dimensions { what, expected, found })
}

/// A trained classifier: a head for every known class and for every new one.
#[derive(Clone, Debug, PartialEq)]
pub struct SimGcdClassifier {
    weights: Features,
    losses: Vec<f64>,
}

impl SimGcdClassifier {
    pub(super) fn new(weights: Features, losses: Vec<f64>) -> Self {
        Self { weights, losses }
    }

    /// The number of the head nearest to each row, by cosine; those of known classes are the numbers of the classes.
    pub fn predict(&self, rows: &Features) -> Result<Vec<usize>, SimGcdError> {
        same_dimensions("rows", self.weights.dim(), rows.dim())?;
        let what = "heads";
        let unit = self.weights.clone().into_unit();
        let unit = unit.map_err(|source| SimGcdError::Features { what, source })?;
        // The first of equals.
        let nearest = |row: &[f32]| (0..row.len()).fold(0, |top, head| if row[head] > row[top] { head } else { top });
        Ok(rows.dots(&unit).chunks_exact(unit.rows()).map(nearest).collect())
    }

    /// The heads, a row each. Their directions are what counts.
    pub fn weights(&self) -> &Features {
        &self.weights
    }

    /// The loss at the beginning of every epoch.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// A matrix of numbers that were computed; they are finite unless the training ran away.
pub(super) fn matrix(dim: usize, values: Vec<f32>) -> Result<Features, SimGcdError> {
    let what = "heads";
    Features::new(dim, values).map_err(|source| SimGcdError::Features { what, source })
}

/// A matrix of rows of this length with columns in the place of rows.
fn transposed(values: &[f32], dim: usize) -> Vec<f32> {
    (0..dim)
        .flat_map(|column| values.iter().skip(column).step_by(dim).copied())
        .collect()
}
