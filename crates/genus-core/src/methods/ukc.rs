//! UKC, uncertainty-aware k-means: start with a cluster a known class, split what holds two classes or is too large.

use super::parameters::{Parameter, Values};
use super::{BoostBlock, Discover};
use crate::choice::choice;
use crate::cluster::kmeans::{KMeans, Space};
use crate::discovery::{Discovery, Stop, canonical};
use crate::error::{DiscoverError, ParameterError};
use crate::real_time::Rule;
use crate::task::Task;

pub(super) const NAME: &str = "ukc";

/// Uncertainty-aware k-means clustering.
///
/// k-means with one cluster a known class; then, round after round, clusters with several prototypes split into as many
/// parts, clusters with more than `alpha` times the usual number of queries split in two, and k-means goes on from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Ukc {
    /// How many times larger than usual a cluster must be to be split (α).
    pub alpha: f64,
    /// The factor of the first round, where it is to differ: the authors' code has 1.4 there whatever α is.
    pub first_alpha: Option<f64>,
    /// What the usual size is.
    pub reference: ReferenceSize,
    /// Split clusters of exactly the limit too (the paper), not only larger ones (the code).
    pub split_at_limit: bool,
    /// Stop only when every cluster is below the limit (the paper), rather than at most at it (the code).
    pub stop_below_limit: bool,
    /// How often k-means starts anew.
    pub restarts: usize,
    /// The seed of the starts.
    pub seed: u64,
}

choice! {
    /// What the usual size of a cluster is.
    ReferenceSize {
        /// The mean of the queries a prototype, rounded down, over the clusters that have any (the code).
        PerSupport = "per-support",
        /// The same without rounding.
        PerSupportFloat = "per-support-float",
        /// The mean number of queries of a cluster.
        MeanQuery = "mean-query",
        /// The mean number of points of a cluster, prototypes included (the paper).
        MeanAll = "mean-all",
    }
}

impl Default for Ukc {
    fn default() -> Self {
        Self {
            alpha: 1.4,
            first_alpha: None,
            reference: ReferenceSize::PerSupport,
            split_at_limit: false,
            stop_below_limit: false,
            restarts: 20,
            seed: 0,
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("alpha", "1.4", "split clusters this many times larger than usual"),
    Parameter::new(
        "first-alpha",
        "none",
        "another factor for the first round (authors' code: 1.4)",
    ),
    Parameter::new(
        "m",
        "per-support",
        "the usual size: per-support|per-support-float|mean-query|mean-all",
    ),
    Parameter::new("split-at-limit", "false", "true: split at the limit too (paper's text)"),
    Parameter::new(
        "stop-below-limit",
        "false",
        "true: stop only below the limit (paper's text)",
    ),
    Parameter::new("restarts", "20", "how often k-means starts anew"),
];

impl Ukc {
    pub(super) fn from_values(values: &Values, seed: u64) -> Result<Self, ParameterError> {
        let default = Self::default();
        Self {
            alpha: values.get("alpha", default.alpha)?,
            first_alpha: values.optional("first-alpha")?,
            reference: values.get("m", default.reference)?,
            split_at_limit: values.get("split-at-limit", default.split_at_limit)?,
            stop_below_limit: values.get("stop-below-limit", default.stop_below_limit)?,
            restarts: values.get("restarts", default.restarts)?,
            seed,
        }
        .checked()
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        for (name, alpha) in [("alpha", Some(self.alpha)), ("first-alpha", self.first_alpha)] {
            // Below 1 even single points would be asked to split.
            if let Some(alpha) = alpha.filter(|alpha| !(alpha.is_finite() && *alpha >= 1.0)) {
                return Err(ParameterError::new(NAME, name, alpha, "a factor of at least 1"));
            }
        }
        if self.restarts == 0 {
            return Err(ParameterError::new(NAME, "restarts", 0, "at least 1"));
        }
        Ok(self)
    }

    /// The decision for a single query in closed form, where there is one.
    ///
    /// A query beside a prototype must never be a cluster that is too large: with empty clusters in the mean it is, and so
    /// it is where clusters of the usual size itself are split.
    pub(super) fn rule(&self) -> Option<Rule> {
        let ignores_empty = match self.reference {
            ReferenceSize::PerSupport | ReferenceSize::PerSupportFloat => true,
            ReferenceSize::MeanQuery | ReferenceSize::MeanAll => false,
        };
        let smallest = self.first_alpha.map_or(self.alpha, |first| first.min(self.alpha));
        let splits_usual = self.split_at_limit && smallest <= 1.0;
        (ignores_empty && !splits_usual).then_some(Rule::Nearest {
            boost: 1.0,
            block: BoostBlock::Way,
            min_similarity: None,
        })
    }

    /// The sizes that are compared, and the limit of a round.
    fn limit(&self, counts: &[Count], alpha: f64) -> f64 {
        let sizes: Vec<f64> = match self.reference {
            ReferenceSize::PerSupport => counts
                .iter()
                .map(|c| (c.queries / c.prototypes.max(1)) as f64)
                .filter(|&size| size > 0.0)
                .collect(),
            ReferenceSize::PerSupportFloat => counts
                .iter()
                .map(|c| c.queries as f64 / c.prototypes.max(1) as f64)
                .filter(|&size| size > 0.0)
                .collect(),
            ReferenceSize::MeanQuery | ReferenceSize::MeanAll => counts.iter().map(|c| self.size(c)).collect(),
        };
        if sizes.is_empty() {
            return f64::INFINITY;
        }
        alpha * sizes.iter().sum::<f64>() / sizes.len() as f64
    }

    fn size(&self, count: &Count) -> f64 {
        match self.reference {
            ReferenceSize::MeanAll => (count.queries + count.prototypes) as f64,
            _ => count.queries as f64,
        }
    }

    fn parts(&self, count: &Count, limit: f64) -> usize {
        let size = self.size(count);
        let too_large = if self.split_at_limit {
            size >= limit
        } else {
            size > limit
        };
        match count.prototypes {
            0 | 1 if too_large => 2,
            0 | 1 => 1,
            several => several,
        }
    }

    fn finished(&self, counts: &[Count], limit: f64) -> bool {
        let largest = counts.iter().map(|count| self.size(count)).fold(0.0, f64::max);
        let fits = if self.stop_below_limit {
            largest < limit
        } else {
            largest <= limit
        };
        fits && counts.iter().all(|count| count.prototypes <= 1)
    }
}

/// What a cluster holds.
#[derive(Clone, Copy, Default)]
struct Count {
    queries: usize,
    prototypes: usize,
}

fn count(clusters: &[usize], clusters_count: usize, known: usize) -> Vec<Count> {
    let mut counts = vec![Count::default(); clusters_count];
    for (point, &cluster) in clusters.iter().enumerate() {
        if point < known {
            counts[cluster].prototypes += 1;
        } else {
            counts[cluster].queries += 1;
        }
    }
    counts
}

impl Discover for Ukc {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let known = task.known();
        if known < 2 {
            return Err(DiscoverError::TooFewClasses {
                method: NAME,
                needed: 2,
                found: known,
            });
        }
        let space = Space::of(task);
        let kmeans = KMeans::scikit(self.restarts, task.dim());
        let start = kmeans.fit(&space, known.min(space.len()), self.seed, &[0]);
        let (mut clusters, mut k) = canonical(&start.labels);
        let mut limit = self.limit(&count(&clusters, k, known), self.first_alpha.unwrap_or(self.alpha));
        let mut converged = false;
        let mut rounds = 0;
        // Every round that goes on adds a centre, so there are at most as many rounds as points.
        while rounds < space.len() {
            rounds += 1;
            let counts = count(&clusters, k, known);
            let mut parts = clusters.clone();
            let mut parts_count = k;
            for (cluster, held) in counts.iter().enumerate() {
                let wanted = self.parts(held, limit).min(held.queries + held.prototypes);
                if wanted < 2 {
                    continue;
                }
                let members: Vec<usize> = (0..clusters.len()).filter(|&i| clusters[i] == cluster).collect();
                let split = kmeans.fit(
                    &space.subset(&members),
                    wanted,
                    self.seed,
                    &[rounds as u64, cluster as u64],
                );
                for (&point, &part) in members.iter().zip(&split.labels) {
                    if part > 0 {
                        parts[point] = parts_count + part - 1;
                    }
                }
                parts_count += split.centres - 1;
            }
            let (parts, parts_count) = canonical(&parts);
            let nothing_split = parts_count == k;
            let before = (clusters, limit);
            (clusters, k) = canonical(&kmeans.refine(&space, &parts, parts_count).labels);
            let counts = count(&clusters, k, known);
            limit = self.limit(&counts, self.alpha);
            converged = self.finished(&counts, limit);
            // A first round with a limit of its own, or points that moved on, may yet call for a split.
            let stuck = nothing_split && (&before.0, before.1) == (&clusters, limit);
            if converged || stuck {
                break;
            }
        }
        let separated = separate_prototypes(task, &mut clusters, k);
        let stop = Stop::Rounds {
            rounds,
            converged: converged && !separated,
        };
        Ok(Discovery::from_clusters(task, clusters, stop))
    }
}

/// Gives prototypes that no round could part a cluster each; queries there go to the nearest, the first of equal ones.
fn separate_prototypes(task: &Task, clusters: &mut [usize], mut k: usize) -> bool {
    let known = task.known();
    let mut together = vec![Vec::new(); k];
    for class in 0..known {
        together[clusters[class]].push(class);
    }
    let mut separated = false;
    for (cluster, classes) in together.iter().enumerate().filter(|(_, classes)| classes.len() > 1) {
        separated = true;
        let number: Vec<usize> = (0..classes.len())
            .map(|at| if at == 0 { cluster } else { k + at - 1 })
            .collect();
        k += classes.len() - 1;
        for point in (known..clusters.len())
            .filter(|&point| clusters[point] == cluster)
            .collect::<Vec<_>>()
        {
            let dots = task.prototype_dots(point);
            let nearest = (0..classes.len()).fold(0, |a, b| if dots[classes[b]] > dots[classes[a]] { b } else { a });
            clusters[point] = number[nearest];
        }
        for (&class, &number) in classes.iter().zip(&number) {
            clusters[class] = number;
        }
    }
    separated
}
