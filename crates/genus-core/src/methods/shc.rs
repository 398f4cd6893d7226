//! SHC, semi-supervised hierarchical clustering: merge the most similar clusters until two known classes would meet.

use super::parameters::{Parameter, Values};
use crate::choice::choice;
use crate::cluster::linkage::{self, Forest, LinkageMerge};
use crate::discovery::{Discovery, Stop, VANISHED, canonical};
use crate::error::{DiscoverError, ParameterError};
use crate::features::norm;
use crate::methods::{Discover, check_known};
use crate::real_time::Rule;
use crate::task::{Task, class_means};

pub(super) const NAME: &str = "shc";

/// Semi-supervised hierarchical clustering.
///
/// Prototypes and queries merge by average linkage under cosine until the best merge would join two known classes. Small
/// clusters without a prototype then join the nearest kept cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Shc {
    /// Clusters without a prototype are kept when they have more members than this (t).
    pub min_size: usize,
    /// What happens at the merge that would join two known classes.
    pub stop: StopAt,
    /// What becomes of a prototype's cluster that is no larger than `min_size`.
    pub small_known: SmallKnown,
    /// What is attached to the kept clusters: whole small clusters or their members one by one.
    pub remainder: Remainder,
    /// The similarity by which they are attached.
    pub attach: Attach,
    /// Multiplies the similarities between prototypes when the first merge is chosen; 1 leaves them alone.
    pub boost: f32,
    /// Which prototypes `boost` touches.
    pub boost_block: BoostBlock,
    /// Which algorithm finds the merges.
    pub linkage: Linkage,
    /// Merging also ends below this similarity; needed when there is one known class only.
    pub min_similarity: Option<f32>,
}

choice! {
    /// What happens at the merge that would join two known classes.
    StopAt {
        /// It is not made (the authors' code).
        Before = "before",
        /// It is made, and it is the last one (the paper's pseudo-code).
        After = "after",
    }
}

choice! {
    /// What becomes of a prototype's cluster that is no larger than the limit.
    SmallKnown {
        /// It is kept whole (the authors' code).
        Keep = "keep",
        /// Only its prototype is kept, its members are attached again (the paper's text).
        Dissolve = "dissolve",
    }
}

choice! {
    /// What is attached to the kept clusters.
    Remainder {
        /// Each small cluster as a whole (pseudo-code and code).
        Cluster = "cluster",
        /// Each of its members by itself (the paper's text).
        Sample = "sample",
    }
}

choice! {
    /// The similarity by which the remainder is attached.
    Attach {
        /// The average over the members of the kept cluster (the authors' code).
        Average = "average",
        /// The cosine with the mean of the kept cluster.
        Cosine = "cosine",
    }
}

choice! {
    /// Which prototypes the boost touches.
    BoostBlock {
        /// All of them.
        Way = "n-way",
        /// As many as there are examples of a class (the authors' code).
        Shot = "n-shot",
    }
}

choice! {
    /// Which algorithm finds the merges.
    Linkage {
        /// Merges of mutual neighbours, sorted afterwards, O(n²).
        Fast = "fast",
        /// The search for the best pair every time, O(n³), with the tie rule of the definition.
        Sequential = "sequential",
    }
}

impl Default for Shc {
    fn default() -> Self {
        Self {
            min_size: 2,
            stop: StopAt::Before,
            small_known: SmallKnown::Keep,
            remainder: Remainder::Cluster,
            attach: Attach::Average,
            boost: 1.0,
            boost_block: BoostBlock::Way,
            linkage: Linkage::Fast,
            min_similarity: None,
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("t", "2", "keep new clusters with more members than this"),
    Parameter::new("stop", "before", "before|after the merge that joins two known classes"),
    Parameter::new("small-known", "keep", "keep|dissolve known clusters no larger than t"),
    Parameter::new("remainder", "cluster", "attach the rest cluster|sample-wise"),
    Parameter::new("attach", "average", "attach by average|cosine similarity"),
    Parameter::new(
        "boost",
        "1",
        "factor on prototype similarities at the first merge (authors' code: 1.1)",
    ),
    Parameter::new(
        "boost-block",
        "n-way",
        "which prototypes it touches: n-way|n-shot of them",
    ),
    Parameter::new("linkage", "fast", "fast|sequential (slow, exact on ties)"),
    Parameter::new("min-similarity", "none", "also stop merging below this similarity"),
];

impl Shc {
    pub(super) fn from_values(values: &Values) -> Result<Self, ParameterError> {
        let default = Self::default();
        Self {
            min_size: values.get("t", default.min_size)?,
            stop: values.get("stop", default.stop)?,
            small_known: values.get("small-known", default.small_known)?,
            remainder: values.get("remainder", default.remainder)?,
            attach: values.get("attach", default.attach)?,
            boost: values.get("boost", default.boost)?,
            boost_block: values.get("boost-block", default.boost_block)?,
            linkage: values.get("linkage", default.linkage)?,
            min_similarity: values.optional("min-similarity")?,
        }
        .checked()
    }

    /// The method itself when its parameters make sense.
    pub fn checked(self) -> Result<Self, ParameterError> {
        if !(self.boost.is_finite() && self.boost >= 1.0) {
            return Err(ParameterError::new(NAME, "boost", self.boost, "a factor of at least 1"));
        }
        if let Some(limit) = self.min_similarity.filter(|limit| !(-1.0..=1.0).contains(limit)) {
            return Err(ParameterError::new(
                NAME,
                "min-similarity",
                limit,
                "a cosine from -1 to 1",
            ));
        }
        Ok(self)
    }

    /// The decision for a single query (`min_size` = 0) in closed form.
    pub(super) fn rule(&self) -> Rule {
        Rule::Nearest {
            boost: self.boost,
            block: self.boost_block,
            min_similarity: self.min_similarity,
        }
    }

    /// Merges as far as the known classes allow.
    fn grow(&self, task: &Task, merges: &[LinkageMerge]) -> (Forest, Stop) {
        let mut forest = Forest::new(task.points().rows(), task.known());
        if let Some(LinkageMerge { a, b, similarity }) = self.boosted_stop(task, merges) {
            let too_far = self.min_similarity.is_some_and(|limit| similarity < limit);
            if !too_far && self.stop == StopAt::After {
                forest.merge(a, b);
            }
            return (forest, Stop::Cut { merges: 0, similarity });
        }
        for (made, merge) in merges.iter().enumerate() {
            let too_far = self.min_similarity.is_some_and(|limit| merge.similarity < limit);
            let joins_known = forest.both_hold_prototypes(merge.a, merge.b);
            if too_far || joins_known {
                if joins_known && !too_far && self.stop == StopAt::After {
                    forest.merge(merge.a, merge.b);
                }
                return (
                    forest,
                    Stop::Cut {
                        merges: made,
                        similarity: merge.similarity,
                    },
                );
            }
            forest.merge(merge.a, merge.b);
        }
        (forest, Stop::Exhausted)
    }

    /// With a boost: the merge of the closest prototypes if their boosted similarity beats every pair, which makes it
    /// the first one. The boost has no later effect.
    fn boosted_stop(&self, task: &Task, merges: &[LinkageMerge]) -> Option<LinkageMerge> {
        if self.boost == 1.0 {
            return None;
        }
        let block = self.boost_block.size(task);
        let pairs = (0..block).flat_map(|a| (a + 1..block).map(move |b| (a, b)));
        let closest = pairs
            .map(|(a, b)| LinkageMerge {
                a,
                b,
                similarity: task.prototype_dots(b)[a],
            })
            .reduce(|best, pair| if pair.similarity > best.similarity { pair } else { best })?;
        // The first merge of the list is the most similar pair of all points.
        let top = merges.first()?.similarity;
        (self.boost * closest.similarity > top).then_some(closest)
    }
}

impl BoostBlock {
    /// How many of the first prototypes are touched.
    pub(crate) fn size(self, task: &Task) -> usize {
        match self {
            BoostBlock::Way => task.known(),
            BoostBlock::Shot => task.shots().min(task.known()),
        }
    }
}

impl Discover for Shc {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl Shc {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        // What stays small goes to what is kept, and prototypes always are.
        check_known(NAME, if self.min_similarity.is_none() { 2 } else { 1 }, task.known())?;
        let merges = match self.linkage {
            Linkage::Fast => linkage::fast(task)?,
            Linkage::Sequential => linkage::sequential(task),
        };
        let (mut forest, stop) = self.grow(task, &merges);
        let n = task.points().rows();
        let roots: Vec<usize> = (0..n).map(|point| forest.root(point)).collect();

        // Kept clusters are numbered by their root, which is their first point; the rest gets numbers behind them, a
        // number a cluster or a number a member.
        let mut kept = Vec::with_capacity(n);
        let mut rest = Vec::with_capacity(n);
        for (point, &root) in roots.iter().enumerate() {
            let known = forest.holds_prototype(root);
            let small = forest.size(root) <= self.min_size;
            let dissolve = known && small && self.small_known == SmallKnown::Dissolve;
            let keep = if dissolve {
                point < task.known()
            } else {
                known || !small
            };
            if keep {
                kept.push((point, root));
            } else {
                let unit = match self.remainder {
                    Remainder::Cluster if !dissolve => root,
                    _ => point,
                };
                rest.push((point, unit));
            }
        }
        let clusters = self.attach_rest(task, &kept, &rest);
        Ok(Discovery::from_clusters(task, clusters, stop))
    }
}

impl Shc {
    /// The cluster of every point: the kept ones as they are, every unit of the rest with its most similar kept cluster.
    fn attach_rest(&self, task: &Task, kept: &[(usize, usize)], rest: &[(usize, usize)]) -> Vec<usize> {
        let n = task.points().rows();
        let mut clusters = vec![usize::MAX; n];
        for &(point, root) in kept {
            clusters[point] = root;
        }
        if rest.is_empty() {
            return clusters;
        }
        // One more cluster holds everything that is to be attached, so that every point has a number.
        let bin = n;
        let all: Vec<usize> = clusters
            .iter()
            .map(|&c| if c == usize::MAX { bin } else { c })
            .collect();
        let (compact, count) = canonical(&all);
        let mut root_of = vec![bin; count];
        compact.iter().zip(&all).for_each(|(&c, &root)| root_of[c] = root);
        let affinity = task.affinity(&compact, count);
        let scale: Vec<f64> = match self.attach {
            Attach::Average => vec![1.0; count],
            Attach::Cosine => class_means(task.points(), &compact, count)
                .chunks_exact(task.dim())
                .map(|mean| match norm(mean) {
                    length if length < VANISHED => 0.0,
                    length => 1.0 / length,
                })
                .collect(),
        };
        let mut units: Vec<(usize, usize)> = rest.iter().map(|&(point, unit)| (unit, point)).collect();
        units.sort_unstable();
        for members in units.chunk_by(|a, b| a.0 == b.0) {
            let total = |c: usize| -> f64 {
                let sum: f64 = members
                    .iter()
                    .map(|&(_, point)| f64::from(affinity.get(point, c)))
                    .sum();
                sum * scale[c]
            };
            let mut best = (f64::NEG_INFINITY, bin);
            for c in (0..count).filter(|&c| root_of[c] != bin) {
                let similarity = total(c);
                if similarity > best.0 {
                    best = (similarity, root_of[c]);
                }
            }
            for &(_, point) in members {
                clusters[point] = best.1;
            }
        }
        clusters
    }
}
