//! GCD: estimate the number of categories from how well a clustering puts the labelled items right, then semi-supervised
//! k-means.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use super::parameters::{Parameter, Values};
use super::{Discover, check_known};
use crate::brent::minimize_bounded;
use crate::cluster::kmeans::{KMeans, KMeansSpace, Tolerance};
use crate::cluster::silhouette::silhouette;
use crate::discovery::{Discovery, Stop};
use crate::error::{DiscoverError, ParameterError};
use crate::linalg;
use crate::matching::max_weight_matching;
use crate::task::Task;

pub(super) const NAME: &str = "gcd";

/// Streams of random numbers: the estimate, the final clustering, the trials of [`NumberOfCategories::Dtc`].
const ESTIMATE: u64 = 0;
const FINAL: u64 = 1;
const DTC: u64 = 2;

/// Generalised category discovery: an estimate of the number of categories, then k-means with the labelled items fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Gcd {
    /// How many categories there are, or how to find out.
    pub categories: NumberOfCategories,
    /// The largest number tried; by default 20 more than there are known classes.
    pub max_categories: Option<usize>,
    /// How often k-means starts anew for each number tried.
    pub estimate_restarts: usize,
    /// How often the final k-means starts anew.
    pub restarts: usize,
    /// The most iterations of the final k-means.
    pub iterations: usize,
    /// The final k-means ends when the square of the sum of the centres' shifts is below this.
    pub tolerance: f64,
    /// The seed of the starts.
    pub seed: u64,
}

/// How many categories there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOfCategories {
    /// What bounded Brent minimisation finds to put the labelled items right.
    Brent,
    /// The smallest number that puts most labelled items right, after trying all.
    Smallest,
    /// The largest such number.
    Largest,
    /// Between the best silhouette and the best accuracy on hidden known classes (DTC).
    Dtc,
    /// This many, known classes included.
    Fixed(usize),
}

impl FromStr for NumberOfCategories {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "brent" => Self::Brent,
            "smallest" => Self::Smallest,
            "largest" => Self::Largest,
            "dtc" => Self::Dtc,
            number => Self::Fixed(
                number
                    .parse()
                    .map_err(|_| "one of brent, smallest, largest, dtc, or a number".to_owned())?,
            ),
        })
    }
}

impl Default for Gcd {
    fn default() -> Self {
        Self {
            categories: NumberOfCategories::Brent,
            max_categories: None,
            estimate_restarts: 10,
            restarts: 10,
            iterations: 10,
            tolerance: 1e-4,
            seed: 0,
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "k",
        "brent",
        "number of categories: brent|smallest|largest|dtc, or the number itself",
    ),
    Parameter::new("k-max", "none", "largest number tried (default: known classes + 20)"),
    Parameter::new(
        "k-restarts",
        "10",
        "how often k-means starts anew for each number tried",
    ),
    Parameter::new(
        "restarts",
        "10",
        "how often the final k-means starts anew (authors' script: 100)",
    ),
    Parameter::new(
        "iterations",
        "10",
        "most iterations of the final k-means (authors' script: 200)",
    ),
    Parameter::new("tolerance", "1e-4", "shift at which the final k-means ends"),
];

impl Gcd {
    pub(super) fn from_values(values: &Values, seed: u64) -> Result<Self, ParameterError> {
        let default = Self::default();
        Self {
            categories: values.get("k", default.categories)?,
            max_categories: values.optional("k-max")?,
            estimate_restarts: values.get("k-restarts", default.estimate_restarts)?,
            restarts: values.get("restarts", default.restarts)?,
            iterations: values.get("iterations", default.iterations)?,
            tolerance: values.get("tolerance", default.tolerance)?,
            seed,
        }
        .checked()
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        for (name, value) in [
            ("k-restarts", self.estimate_restarts),
            ("restarts", self.restarts),
            ("iterations", self.iterations),
        ] {
            if value == 0 {
                return Err(ParameterError::new(NAME, name, value, "at least 1"));
            }
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(ParameterError::new(
                NAME,
                "tolerance",
                self.tolerance,
                "a number of at least 0",
            ));
        }
        Ok(self)
    }

    /// The settings of the clustering in which labelled items stay where they are.
    fn clamped(&self) -> KMeans {
        KMeans {
            restarts: self.restarts,
            iterations: self.iterations,
            tolerance: Tolerance::ShiftSum(self.tolerance),
        }
    }

    /// The share of labelled items that plain k-means into `k` clusters puts right.
    fn labelled_accuracy(&self, task: &Task, space: &KMeansSpace, k: usize) -> f64 {
        let kmeans = KMeans::scikit(self.estimate_restarts, task.dim());
        let fit = kmeans.fit(space, k, self.seed, &[ESTIMATE, k as u64]);
        matched_share(&fit.labels[..task.support_labels().len()], task.support_labels())
    }

    fn estimate(&self, task: &Task, space: &KMeansSpace) -> Result<(usize, f64), DiscoverError> {
        let known = task.known();
        let upper = self
            .max_categories
            .unwrap_or(known + 20)
            .clamp(known, space.len().max(known));
        // The same number is tried only once: every clustering of it would be the same.
        let mut tried = BTreeMap::new();
        let mut accuracy = |k: usize| *tried.entry(k).or_insert_with(|| self.labelled_accuracy(task, space, k));
        Ok(match self.categories {
            NumberOfCategories::Fixed(k) if k > space.len() => {
                return Err(DiscoverError::TooManyCategories {
                    asked: k,
                    points: space.len(),
                });
            }
            NumberOfCategories::Fixed(k) if k < known => {
                return Err(DiscoverError::TooFewCategories { asked: k, known });
            }
            NumberOfCategories::Fixed(k) => (k, accuracy(k)),
            NumberOfCategories::Brent => {
                let minimum = minimize_bounded(known as f64, upper as f64, 1e-5, 500, |k| {
                    -accuracy((k as usize).max(known))
                });
                ((minimum.x as usize).clamp(known, upper), -minimum.value)
            }
            NumberOfCategories::Smallest | NumberOfCategories::Largest => {
                let mut best = (known, f64::NEG_INFINITY);
                for k in known..=upper {
                    let share = accuracy(k);
                    let ties = self.categories == NumberOfCategories::Largest && share == best.1;
                    if share > best.1 || ties {
                        best = (k, share);
                    }
                }
                best
            }
            NumberOfCategories::Dtc => {
                let k = self.dtc(task, space, upper)?;
                (k, accuracy(k))
            }
        })
    }

    /// The number of categories halfway between the best silhouette and the best accuracy on known classes that are
    /// treated as unknown, less the clusters that stay tiny.
    fn dtc(&self, task: &Task, space: &KMeansSpace, upper: usize) -> Result<usize, DiscoverError> {
        let known = task.known();
        check_known("gcd:k=dtc", 2, known)?;
        let anchors = ((known as f64 * 0.6).round() as usize).clamp(1, known - 1);
        let labels = task.support_labels();
        let (fixed, hidden): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(|&i| labels[i] < anchors);
        let order: Vec<usize> = fixed
            .iter()
            .chain(&hidden)
            .copied()
            .chain(labels.len()..space.len())
            .collect();
        let space = space.subset(&order);
        let clamped: Vec<usize> = fixed.iter().map(|&i| labels[i]).collect();
        let probes: Vec<usize> = hidden.iter().map(|&i| labels[i]).collect();
        let free = clamped.len()..space.len();
        let kmeans = self.clamped();
        let cluster = |k: usize| {
            kmeans
                .fit_clamped(&space, &clamped, k, self.seed, &[DTC, k as u64])
                .labels
        };
        let mut best_silhouette = (f64::NEG_INFINITY, anchors);
        let mut best_accuracy = (f64::NEG_INFINITY, anchors);
        for k in anchors..=upper {
            let labels = cluster(k);
            let quality = silhouette(free.len(), &labels[free.clone()], |a, b| {
                space.squared_distance(free.start + a, free.start + b)
            });
            let accuracy = matched_share(&labels[free.start..][..probes.len()], &probes);
            if quality > best_silhouette.0 {
                best_silhouette = (quality, k);
            }
            if accuracy > best_accuracy.0 {
                best_accuracy = (accuracy, k);
            }
        }
        let k = (best_silhouette.1 + best_accuracy.1).div_ceil(2);
        let mut sizes = vec![0usize; k];
        cluster(k).into_iter().for_each(|label| sizes[label] += 1);
        let largest = sizes.iter().copied().max().unwrap_or(0);
        Ok(sizes
            .iter()
            .filter(|&&size| size > 0 && size * 100 >= largest)
            .count()
            .max(known))
    }
}

impl Discover for Gcd {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl Gcd {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        check_known(NAME, 1, task.known())?;
        let space = labelled_and_queries(task);
        let (categories, labelled_accuracy) = self.estimate(task, &space)?;
        let labels = task.support_labels();
        let fit = self
            .clamped()
            .fit_clamped(&space, labels, categories, self.seed, &[FINAL]);
        let clusters = (0..task.known())
            .chain(fit.labels[labels.len()..].iter().copied())
            .collect();
        let stop = Stop::Estimated {
            categories,
            labelled_accuracy,
        };
        Ok(Discovery::from_clusters(task, clusters, stop))
    }
}

/// The labelled items followed by the queries. The queries' dot products are the task's own.
fn labelled_and_queries(task: &Task) -> KMeansSpace<'static> {
    let (known, dim) = (task.known(), task.dim());
    let queries = &task.points().values()[known * dim..];
    let support = task.support().values();
    let Some(gram) = task.gram() else {
        return KMeansSpace::Rows(Cow::Owned([support, queries].concat()), dim);
    };
    let (s, q, points) = (task.support().rows(), task.queries(), task.points().rows());
    let n = s + q;
    let among_support = linalg::gram(support, dim);
    let across = linalg::dots(support, queries, dim);
    let mut dots = vec![0.0; n * n];
    for i in 0..s {
        dots[i * n..][..s].copy_from_slice(&among_support[i * s..][..s]);
        dots[i * n + s..][..q].copy_from_slice(&across[i * q..][..q]);
    }
    for i in 0..q {
        let row = &mut dots[(s + i) * n..][..n];
        for (j, v) in row[..s].iter_mut().enumerate() {
            *v = across[j * q + i];
        }
        row[s..].copy_from_slice(&gram[(known + i) * points + known..][..q]);
    }
    KMeansSpace::Gram(Cow::Owned(dots), n)
}

/// The share of items that is right when clusters and classes are matched one to one as well as possible.
fn matched_share(clusters: &[usize], classes: &[usize]) -> f64 {
    let rows = clusters.iter().max().map_or(0, |&last| last + 1);
    let columns = classes.iter().max().map_or(0, |&last| last + 1);
    let mut counts = vec![0i64; rows * columns];
    for (&cluster, &class) in clusters.iter().zip(classes) {
        counts[cluster * columns + class] += 1;
    }
    let matching = max_weight_matching(rows, columns, |r, c| counts[r * columns + c]);
    let right: i64 = matching
        .iter()
        .enumerate()
        .filter_map(|(r, c)| c.map(|c| counts[r * columns + c]))
        .sum();
    right as f64 / clusters.len().max(1) as f64
}
