//! SimGCD: a classifier with a head for every category, known and new, that teaches itself on the queries.
//!
//! The whole method also trains a branch of contrastive losses. On frozen features that branch shares no trained tensor with
//! the classifier, so it cannot change any prediction, and it is not computed. What remains is this: rows of length one
//! go through a matrix whose rows have length one, and their cosines are logits. One view of an item teaches the other with
//! a colder softmax, labels teach the examples, and the mean prediction is held close to even, so that no head is left
//! empty. The gradient is in closed form: with the cosines one matrix product away, it is one more product.

use std::f64::consts::PI;
use std::str::FromStr;

use genus_core::methods::Parameter;
use genus_core::rng::Rng;
use genus_core::{FeatureError, Features, ParameterError};
use thiserror::Error;

/// Streams of random numbers: the first directions, the two views of an epoch.
const DIRECTIONS: u64 = 0x73;
const VIEWS: u64 = 0x76;

/// What the rate ends at, as a share of what it began with.
const LAST_RATE: f64 = 1e-3;

/// SimGCD, trained anew in every episode. It is told the true number of categories, as in its paper.
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
    /// How many views of an item the caller should provide; the features of a file are a single one.
    pub views: usize,
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
            views: 1,
        }
    }
}

/// Why SimGCD cannot be trained. Rows count from zero.
#[derive(Clone, Debug, Error, PartialEq)]
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
    /// The loss is no number any more.
    #[error("the loss of epoch {epoch} is {loss}; a smaller rate may help")]
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
        Parameter {
            name: "epochs",
            default: "50",
            help: "steps of training in an episode",
        },
        Parameter {
            name: "rate",
            default: "0.1",
            help: "learning rate at the beginning",
        },
        Parameter {
            name: "entropy",
            default: "2",
            help: "how strongly the mean prediction is held close to even (paper: 1, 2 or 4)",
        },
        Parameter {
            name: "init",
            default: "random",
            help: "where the heads of known classes begin: random|supports",
        },
        Parameter {
            name: "blocks",
            default: "0",
            help: "last blocks of the network that are trained too; needs images",
        },
        Parameter {
            name: "views",
            default: "1",
            help: "views of an item; more than 1 needs images",
        },
    ];

    /// Builds the method of the text after its name, such as `epochs=100:init=supports`; nothing is set by an empty one.
    pub fn from_parameters(text: &str) -> Result<Self, ParameterError> {
        let mut method = Self::default();
        let mut seen = Vec::new();
        for part in text.split(':').filter(|_| !text.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if seen.contains(&name) {
                return Err(wrong(name, value, "it is given twice"));
            }
            seen.push(name);
            method.set(name, value)?;
        }
        method.checked()
    }

    /// Sets a parameter by its name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        fn read<T: FromStr<Err: ToString>>(name: &str, value: &str) -> Result<T, ParameterError> {
            value.parse().map_err(|e: T::Err| wrong(name, value, &e.to_string()))
        }
        match name {
            "epochs" => self.epochs = read(name, value)?,
            "rate" => self.rate = read(name, value)?,
            "entropy" => self.entropy = read(name, value)?,
            "init" => self.init = read(name, value)?,
            "blocks" => self.blocks = read(name, value)?,
            "views" => self.views = read(name, value)?,
            _ => {
                let names: Vec<_> = Self::PARAMETERS.iter().map(|parameter| parameter.name).collect();
                return Err(wrong(name, value, &format!("its parameters are {}", names.join(", "))));
            }
        }
        Ok(())
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        for (name, value) in [("epochs", self.epochs), ("views", self.views)] {
            if value == 0 {
                return Err(wrong(name, value, "at least 1"));
            }
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
        let items = Items::new(support, labels, queries, classes)?;
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
        let items = Items::new(support, labels, queries, first.rows())?;
        same_dimensions("first directions", items.dim, first.dim())?;
        if let Some(row) = first.iter().position(|row| row.iter().all(|&v| v == 0.0)) {
            let (what, source) = ("first directions", FeatureError::ZeroRow { row });
            return Err(SimGcdError::Features { what, source });
        }
        let first = first.values().iter().map(|&v| f64::from(v)).collect();
        method.train(&items, first, seed)
    }

    /// Random values as PyTorch gives a new layer, which is what the authors begin with: even within ±1/√d.
    fn first_directions(&self, items: &Items, seed: u64) -> Vec<f64> {
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
                    for (row, _) in view.chunks_exact(dim).zip(&items.labels).filter(|(_, l)| **l == class) {
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

    fn train(&self, items: &Items, first: Vec<f64>, seed: u64) -> Result<SimGcdClassifier, SimGcdError> {
        let mut weights = first;
        let mut momentum = vec![0.0; weights.len()];
        let mut losses = Vec::with_capacity(self.epochs);
        for epoch in 0..self.epochs {
            let views = match items.views.len() {
                count @ 0..=2 => (0..count).collect(),
                count => Rng::new(seed, &[VIEWS, epoch as u64]).sample(count, 2),
            };
            let (loss, gradient) = self.gradient(items, &views, &weights, epoch);
            if !loss.is_finite() {
                return Err(SimGcdError::NotFinite { epoch, loss });
            }
            losses.push(loss);
            let rate = self.rate_at(epoch);
            for ((weight, before), slope) in weights.iter_mut().zip(&mut momentum).zip(gradient) {
                *before = self.momentum * *before + slope + self.weight_decay * *weight;
                *weight -= rate * *before;
            }
        }
        let weights = weights.into_iter().map(|v| v as f32).collect();
        let what = "heads";
        let weights = Features::new(items.dim, weights).map_err(|source| SimGcdError::Features { what, source })?;
        Ok(SimGcdClassifier { weights, losses })
    }

    /// The learning rate of an epoch.
    pub(crate) fn rate_at(&self, epoch: usize) -> f64 {
        let last = LAST_RATE * self.rate;
        last + (self.rate - last) * (1.0 + (PI * epoch as f64 / self.epochs as f64).cos()) / 2.0
    }

    /// The teacher's temperature in an epoch.
    pub(crate) fn teacher_at(&self, epoch: usize) -> f64 {
        let (first, last) = self.teacher;
        match self.warm_up {
            warm_up if epoch + 1 < warm_up => first + (last - first) * epoch as f64 / (warm_up - 1) as f64,
            _ => last,
        }
    }

    /// The loss of some views, each of which teaches the next in the circle, and its gradient.
    fn gradient(&self, items: &Items, views: &[usize], weights: &[f64], epoch: usize) -> (f64, Vec<f64>) {
        let Items { dim, heads, .. } = *items;
        let lengths: Vec<f64> = weights.chunks_exact(dim).map(length).collect();
        let unit: Vec<f32> = (weights.chunks_exact(dim).zip(&lengths))
            .flat_map(|(head, length)| head.iter().map(move |v| (v / length) as f32))
            .collect();
        let cosines: Vec<Vec<f64>> = views.iter().map(|&v| products(&items.views[v], &unit, dim)).collect();
        let (loss, slopes) = self.slopes(&cosines, &items.labels, heads, self.teacher_at(epoch));

        let mut towards = vec![0.0; heads * dim];
        for (&view, slopes) in views.iter().zip(&slopes) {
            add_weighted_rows(&mut towards, slopes, &items.views[view], dim);
        }
        let mut gradient = Vec::with_capacity(towards.len());
        for ((head, towards), length) in (unit.chunks_exact(dim)).zip(towards.chunks_exact(dim)).zip(lengths) {
            // Only the direction counts: what points along a head changes nothing.
            let pairs = || head.iter().zip(towards).map(|(&h, &t)| (f64::from(h), f64::from(t)));
            let along: f64 = pairs().map(|(h, t)| h * t).sum();
            gradient.extend(pairs().map(|(h, t)| (t - along * h) / length));
        }
        (loss, gradient)
    }

    /// The loss of the cosines of some views and its gradient with respect to them. The first rows of a view are labelled.
    fn slopes(&self, cosines: &[Vec<f64>], labels: &[usize], heads: usize, teacher: f64) -> (f64, Vec<Vec<f32>>) {
        let rows: usize = cosines.iter().map(|view| view.len() / heads).sum();
        let (rows, labelled) = (rows as f64, (cosines.len() * labels.len()) as f64);
        let cold: Vec<Vec<f64>> = cosines.iter().map(|view| softmax(view, heads, self.student)).collect();
        let mut mean = vec![0.0; heads];
        for row in cold.iter().flat_map(|view| view.chunks_exact(heads)) {
            mean.iter_mut().zip(row).for_each(|(sum, p)| *sum += p / rows);
        }
        let surprise: Vec<f64> = mean.iter().map(|p| p.max(f64::MIN_POSITIVE).ln()).collect();
        let entropy = -mean.iter().zip(&surprise).map(|(p, ln)| p * ln).sum::<f64>();

        let unlabelled = 1.0 - self.supervised;
        let mut loss = unlabelled * self.entropy * ((heads as f64).ln() - entropy);
        let mut slopes = Vec::with_capacity(cosines.len());
        for (at, (view, student)) in cosines.iter().zip(&cold).enumerate() {
            let teaches = softmax(&cosines[(at + 1) % cosines.len()], heads, teacher);
            let mut slope = Vec::with_capacity(view.len());
            for (row, p) in student.chunks_exact(heads).enumerate() {
                let (z, q) = (&view[row * heads..][..heads], &teaches[row * heads..][..heads]);
                let label = labels.get(row).copied();
                // −log p of a head, from the cosines: a probability may be too small for a number.
                let top = (0..heads).max_by(|&a, &b| z[a].total_cmp(&z[b])).unwrap_or(0);
                let least = -p[top].ln();
                let cost = |head: usize| least + (z[top] - z[head]) / self.student;
                loss += unlabelled / rows * (0..heads).map(|head| q[head] * cost(head)).sum::<f64>();
                loss += label.map_or(0.0, |label| self.supervised / labelled * cost(label));
                let expected: f64 = p.iter().zip(&surprise).map(|(p, ln)| p * ln).sum();
                slope.extend((0..heads).map(|head| {
                    let even = self.entropy * p[head] * (surprise[head] - expected);
                    let right = f64::from(u8::from(label == Some(head)));
                    let taught = label.map_or(0.0, |_| self.supervised / labelled * (p[head] - right));
                    ((unlabelled / rows * (p[head] - q[head] + even) + taught) / self.student) as f32
                }));
            }
            slopes.push(slope);
        }
        (loss, slopes)
    }
}

fn wrong(name: &str, value: impl ToString, expected: &str) -> ParameterError {
    ParameterError {
        method: SimGcd::NAME,
        parameter: name.to_owned(),
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

/// The unit rows of an episode: every view has the examples, whose labels are known, and then the queries.
struct Items {
    dim: usize,
    heads: usize,
    labels: Vec<usize>,
    views: Vec<Vec<f32>>,
}

impl Items {
    fn new(support: &[Features], labels: &[usize], queries: &[Features], heads: usize) -> Result<Self, SimGcdError> {
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
            views.push(values);
        }
        let labels = labels.to_vec();
        Ok(Self {
            dim,
            heads,
            labels,
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
    /// The number of the head nearest to each row, by cosine; those of known classes are the numbers of the classes.
    pub fn predict(&self, rows: &Features) -> Result<Vec<usize>, SimGcdError> {
        let (dim, heads) = (self.weights.dim(), self.weights.rows());
        same_dimensions("rows", dim, rows.dim())?;
        let what = "heads";
        let unit = self.weights.clone().into_unit();
        let unit = unit.map_err(|source| SimGcdError::Features { what, source })?;
        let cosines = products(rows.values(), unit.values(), dim);
        // The first of equals.
        let nearest = |row: &[f64]| (0..heads).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
        Ok(cosines.chunks_exact(heads).map(nearest).collect())
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

/// The exponentials of every row, divided by their sum.
fn softmax(logits: &[f64], heads: usize, temperature: f64) -> Vec<f64> {
    let mut all = Vec::with_capacity(logits.len());
    for row in logits.chunks_exact(heads) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let start = all.len();
        all.extend(row.iter().map(|logit| ((logit - largest) / temperature).exp()));
        let total: f64 = all[start..].iter().sum();
        all[start..].iter_mut().for_each(|p| *p /= total);
    }
    all
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The dot products of every row with every head, a row of them a row.
fn products(rows: &[f32], heads: &[f32], dim: usize) -> Vec<f64> {
    let row = |row| heads.chunks_exact(dim).map(move |head| dot(row, head));
    rows.chunks_exact(dim).flat_map(row).collect()
}

/// A dot product in lanes, which vectorise.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0f32; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(a * b));
    lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>() + rest.sum::<f64>()
}

/// Adds to every head the rows, each times its weight for the head.
fn add_weighted_rows(heads: &mut [f32], weights: &[f32], rows: &[f32], dim: usize) {
    const TOGETHER: usize = 4;
    let count = heads.len() / dim;
    for (head, sum) in heads.chunks_exact_mut(dim).enumerate() {
        let mut groups = rows.chunks_exact(TOGETHER * dim);
        let mut weights = weights.iter().skip(head).step_by(count).copied();
        let mut weight = || weights.next().unwrap_or(0.0);
        for group in &mut groups {
            let scales = [weight(), weight(), weight(), weight()];
            let (ab, cd) = group.split_at(2 * dim);
            let ((a, b), (c, d)) = (ab.split_at(dim), cd.split_at(dim));
            for ((((sum, a), b), c), d) in sum.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *sum += (a * scales[0] + b * scales[1]) + (c * scales[2] + d * scales[3]);
            }
        }
        for row in groups.remainder().chunks_exact(dim) {
            let scale = weight();
            sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += v * scale);
        }
    }
}
