//! UKC, uncertainty-aware k-means: start with a cluster a known class, split what holds two classes or is too large.

use super::parameters::{Parameter, Values};
use super::{BoostBlock, Discover, check_known};
use crate::choice::choice;
use crate::cluster::kmeans::{KMeans, KMeansSpace};
use crate::discovery::{Discovery, Stop, canonical};
use crate::error::{DiscoverError, ParameterError};
use crate::real_time::Rule;
use crate::task::Task;

pub(super) const NAME: &str = "ukc";

/// Uncertainty-aware k-means clustering.
///
/// k-means with one cluster a known class; then, round after round, clusters with several prototypes split into as many
/// parts, clusters with `alpha` times the usual number of queries or more split in two, and k-means goes on from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Ukc {
    /// How many times larger than usual a cluster must be to be split (α): the number that its shortest decimal writes, so
    /// that 1.4 is 14/10 and clusters of exactly the limit are found to be so.
    pub alpha: f64,
    /// The factor of the first round, where it is to differ: the authors' code has 1.4 there whatever α is.
    pub first_alpha: Option<f64>,
    /// What the usual size is.
    pub reference: ReferenceSize,
    /// Split clusters of exactly the limit too (the paper), not only larger ones (as the code is written).
    pub split_at_limit: bool,
    /// Stop only when every cluster is below the limit (the paper), rather than at most at it (as the code is written).
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
        /// The mean number of points of a cluster, prototypes included, with which its queries are compared (the paper).
        MeanAll = "mean-all",
    }
}

impl Default for Ukc {
    fn default() -> Self {
        Self {
            alpha: 1.4,
            first_alpha: None,
            reference: ReferenceSize::PerSupport,
            split_at_limit: true,
            stop_below_limit: true,
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
    Parameter::new("split-at-limit", "true", "false: split only above the limit"),
    Parameter::new("stop-below-limit", "true", "false: stop at the limit too"),
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
    /// A query beside a prototype must never be a cluster that is too large. With clusters without queries in the mean it
    /// is, unless their prototypes count; where it is the only one in the mean it is where the usual size itself is split.
    pub(super) fn rule(&self) -> Option<Rule> {
        let smallest = self.first_alpha.map_or(self.alpha, |first| first.min(self.alpha));
        let stays = match self.reference {
            ReferenceSize::PerSupport | ReferenceSize::PerSupportFloat => !self.split_at_limit || smallest > 1.0,
            ReferenceSize::MeanQuery => false,
            ReferenceSize::MeanAll => true,
        };
        stays.then_some(Rule::Nearest {
            boost: 1.0,
            block: BoostBlock::Way,
            min_similarity: None,
        })
    }

    /// The limit of a round: a factor times the usual size.
    fn limit(&self, counts: &[Count], alpha: f64) -> Limit {
        let usual: Vec<(usize, usize)> = match self.reference {
            ReferenceSize::PerSupport => {
                let sizes = counts.iter().map(|c| (c.queries / c.prototypes.max(1), 1));
                sizes.filter(|&(size, _)| size > 0).collect()
            }
            ReferenceSize::PerSupportFloat => {
                let sizes = counts.iter().map(|c| (c.queries, c.prototypes.max(1)));
                sizes.filter(|&(size, _)| size > 0).collect()
            }
            ReferenceSize::MeanQuery => counts.iter().map(|c| (c.queries, 1)).collect(),
            ReferenceSize::MeanAll => counts.iter().map(|c| (c.queries + c.prototypes, 1)).collect(),
        };
        Limit::of_mean(alpha, &usual)
    }

    fn parts(&self, count: &Count, limit: Limit) -> usize {
        match count.prototypes {
            0 | 1 if limit.is_passed(count.queries, self.split_at_limit) => 2,
            0 | 1 => 1,
            several => several,
        }
    }

    fn finished(&self, counts: &[Count], limit: Limit) -> bool {
        let fits = |count: &Count| !limit.is_passed(count.queries, self.stop_below_limit);
        counts.iter().all(|count| count.prototypes <= 1 && fits(count))
    }
}

/// The size from which on clusters are too large. Sizes are whole numbers, so all that counts are those on either side.
///
/// Rounding must not decide. In the paper's own setting seven clusters of 15, 15, 15, 15, 30, 30 and 30 queries have the
/// limit 1.4 · 150 / 7, which is 30: computed in floating point, the order of the operations says whether 30 reaches it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    floor: usize,
    ceil: usize,
}

impl Limit {
    /// `alpha` times the mean of fractions; without any, no size is too large.
    fn of_mean(alpha: f64, sizes: &[(usize, usize)]) -> Self {
        if sizes.is_empty() {
            return Self {
                floor: usize::MAX,
                ceil: usize::MAX,
            };
        }
        Self::exact(alpha, sizes).unwrap_or_else(|| {
            let sum: f64 = sizes.iter().map(|&(over, under)| over as f64 / under as f64).sum();
            let limit = alpha * (sum / sizes.len() as f64);
            Self {
                floor: limit.floor() as usize,
                ceil: limit.ceil() as usize,
            }
        })
    }

    /// The same in whole numbers, as long as 128 bits hold them.
    ///
    /// They hold any factor that a size can reach, and the sum of any whole sizes. Fractions are of clusters that share
    /// prototypes: for those to have no common denominator in reach there must be hundreds of known classes, shared by
    /// clusters of nearly every number up to fifty. Such a round is never the last, so all sizes are judged again.
    fn exact(alpha: f64, sizes: &[(usize, usize)]) -> Option<Self> {
        let (alpha, parts) = decimal(alpha)?;
        let mut sum = (0u128, 1u128);
        for &(over, under) in sizes {
            let (over, under) = (over as u128, under as u128);
            let common = gcd(sum.1, under);
            sum.0 = sum
                .0
                .checked_mul(under / common)?
                .checked_add(over.checked_mul(sum.1 / common)?)?;
            sum.1 = sum.1.checked_mul(under / common)?;
        }
        let over = sum.0.checked_mul(alpha)?;
        let under = sum.1.checked_mul(parts)?.checked_mul(sizes.len() as u128)?;
        Some(Self {
            floor: usize::try_from(over / under).ok()?,
            ceil: usize::try_from(over.div_ceil(under)).ok()?,
        })
    }

    /// Whether a size is above the limit, or at it where that counts too.
    fn is_passed(self, size: usize, at_limit: bool) -> bool {
        if at_limit { size >= self.ceil } else { size > self.floor }
    }
}

/// The fraction that the shortest decimal of a number writes: 14 / 10 for 1.4, although no `f64` is that.
fn decimal(number: f64) -> Option<(u128, u128)> {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, 10u128.checked_pow(fraction.len() as u32)?))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
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
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl Ukc {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let known = task.known();
        check_known(NAME, 2, known)?;
        let space = KMeansSpace::of(task);
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

#[cfg(test)]
mod tests {
    use super::Limit;

    /// Whether size · q · |sizes| · D reaches p · Σ sizes · D, for a factor p / q and a common multiple D of all denominators.
    fn reaches(size: usize, (p, q): (i128, i128), sizes: &[(usize, usize)]) -> std::cmp::Ordering {
        let multiple: i128 = sizes.iter().map(|&(_, under)| under as i128).product();
        let sum: i128 = sizes
            .iter()
            .map(|&(over, under)| over as i128 * multiple / under as i128)
            .sum();
        (size as i128 * q * sizes.len() as i128 * multiple).cmp(&(p * sum))
    }

    #[test]
    fn ties_are_ties() {
        let factors = [
            (1.0, (1, 1)),
            (1.1, (11, 10)),
            (1.3, (13, 10)),
            (1.35, (135, 100)),
            (1.4, (14, 10)),
            (1.45, (145, 100)),
            (1.6, (16, 10)),
            (2.0, (2, 1)),
            (2.5, (5, 2)),
            (
                1.333_333_333_333_333_3,
                (13_333_333_333_333_333, 10_000_000_000_000_000),
            ),
        ];
        let mut ties = 0;
        for (alpha, fraction) in factors {
            for a in 0..24 {
                for b in 1..24 {
                    for under in 1..6 {
                        let sizes = [(a, 1), (b, 1), (b, under), (7, 6), (a + b, under + 1)];
                        let limit = Limit::of_mean(alpha, &sizes);
                        for size in 0..60 {
                            let order = reaches(size, fraction, &sizes);
                            assert_eq!(
                                limit.is_passed(size, true),
                                order.is_ge(),
                                "{size} of {sizes:?} by {alpha}"
                            );
                            assert_eq!(
                                limit.is_passed(size, false),
                                order.is_gt(),
                                "{size} of {sizes:?} by {alpha}"
                            );
                            ties += usize::from(order.is_eq());
                        }
                    }
                }
            }
        }
        assert!(ties > 100, "{ties}");
    }

    #[test]
    fn what_128_bits_do_not_hold_is_rounded() {
        let whole = [(40, 1), (60, 1)];
        assert_eq!(Limit::of_mean(1e300, &whole).floor, usize::MAX);
        assert_eq!(Limit::of_mean(f64::INFINITY, &whole).ceil, usize::MAX);
        // The common denominator of all primes below 120 has 46 digits.
        let primes = (2..120).filter(|&p| (2..p).all(|d| p % d != 0));
        let sizes: Vec<(usize, usize)> = primes.map(|p| (10 * p + 1, p)).collect();
        assert_eq!(Limit::exact(1.4, &sizes), None);
        assert_eq!(Limit::of_mean(1.4, &sizes), Limit { floor: 14, ceil: 15 });
    }
}
