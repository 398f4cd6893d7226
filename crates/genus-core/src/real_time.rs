//! One query at a time against the known classes, in O(N·d).
//!
//! Clustering N prototypes and one query has a closed form: with s the query's largest similarity to a prototype and b
//! the largest similarity between two prototypes, both SHC (t = 0) and UKC put the query with its nearest prototype when
//! s > b, and by itself otherwise.

use crate::calibration::Knowledge;
use crate::discovery::{Category, Score};
use crate::error::{DiscoverError, FeatureError, TaskError};
use crate::features::{Features, scale_to_unit};
use crate::methods::{BoostBlock, RankStat, check_known};
use crate::task::Task;
use crate::taxonomy::{Assignment, Taxonomy};

/// How a single query is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// It always belongs to the nearest class (ProtoNet).
    Always,
    /// It belongs to the nearest class when it is nearer than the two closest classes are to each other (SHC, UKC).
    Nearest {
        /// Multiplies the similarities between prototypes.
        boost: f32,
        /// Which prototypes the boost touches.
        block: BoostBlock,
        /// A query less similar than this is new in any case.
        min_similarity: Option<f32>,
    },
    /// It belongs to the class whose prototype has the same ranking of nearest classes (RankStat).
    Ranking(RankStat),
    /// It belongs to the best class when that is likelier than not.
    Calibrated(Knowledge),
}

/// Judges single queries against the prototypes of a task.
#[derive(Clone, Debug)]
pub struct RealTime {
    rule: Rule,
    /// The known classes as a calibration sees them.
    calibrated: Option<Taxonomy>,
    prototypes: Features,
    /// What the best similarity must exceed, with the lower class of the closest pair for exact ties.
    limit: (f32, usize),
    keys: Vec<Vec<usize>>,
}

/// What errors call it.
const NAME: &str = "the real-time rule";

impl RealTime {
    /// Prepares a rule for the known classes of a task.
    pub fn new(task: &Task, rule: Rule) -> Result<Self, DiscoverError> {
        let known = task.known();
        check_known(NAME, 1, known)?;
        let mut limit = (f32::NEG_INFINITY, 0);
        let mut keys = Vec::new();
        let mut calibrated = None;
        match &rule {
            Rule::Always => {}
            Rule::Calibrated(knowledge) => {
                calibrated = Some(Taxonomy::of_examples(task, knowledge.of_examples(task)?));
            }
            Rule::Nearest {
                boost,
                block,
                min_similarity,
            } => {
                if min_similarity.is_none() {
                    check_known(NAME, 2, known)?;
                }
                let block = block.size(task);
                for a in 0..known {
                    for b in a + 1..known {
                        let factor = if b < block { *boost } else { 1.0 };
                        let similarity = factor * task.prototype_dots(b)[a];
                        if similarity > limit.0 {
                            limit = (similarity, a);
                        }
                    }
                }
            }
            Rule::Ranking(ranking) => {
                ranking.check_known(known)?;
                keys = (0..known)
                    .map(|class| ranking.key(task.prototype_dots(class), Some(class)))
                    .collect();
            }
        }
        let prototypes = task.points().values()[..known * task.dim()].to_vec();
        Ok(Self {
            rule,
            calibrated,
            prototypes: Features::from_finite(task.dim(), prototypes),
            limit,
            keys,
        })
    }

    /// The known class of a query and how well it fits, or `None` in place of the class when it is new.
    ///
    /// The score is that of the nearest class.
    pub fn judge(&self, query: &[f32]) -> Result<(Option<usize>, Score), TaskError> {
        if query.len() != self.prototypes.dim() {
            return Err(TaskError::Dimensions {
                support: self.prototypes.dim(),
                queries: query.len(),
            });
        }
        if let Some(column) = query.iter().position(|v| !v.is_finite()) {
            return Err(TaskError::Queries(FeatureError::NotFinite {
                row: 0,
                column,
                value: query[column],
            }));
        }
        if let Some(taxonomy) = &self.calibrated {
            let found = taxonomy.assign(&Features::from_finite(query.len(), query.to_vec()))?;
            return Ok(judgement(found[0]));
        }
        let mut unit = query.to_vec();
        if !scale_to_unit(&mut unit) {
            return Err(TaskError::Queries(FeatureError::ZeroRow { row: 0 }));
        }
        let dots = crate::linalg::dots(&unit, self.prototypes.values(), unit.len());
        Ok(self.judge_dots(&dots))
    }

    /// The judgement of every query of a task that has the same known classes, each with its score.
    pub fn judge_each(&self, task: &Task) -> Vec<(Option<usize>, Score)> {
        let known = self.prototypes.rows();
        match &self.calibrated {
            Some(taxonomy) => assigned(taxonomy, task).into_iter().map(judgement).collect(),
            None => (known..task.points().rows())
                .map(|point| self.judge_dots(task.prototype_dots(point)))
                .collect(),
        }
    }

    /// The best known class of every query of a task that has the same known classes, also of those that are judged new:
    /// what they would be with a laxer threshold.
    pub fn guess_each(&self, task: &Task) -> Vec<usize> {
        let known = self.prototypes.rows();
        match &self.calibrated {
            Some(taxonomy) => assigned(taxonomy, task)
                .into_iter()
                .map(|found| found.category)
                .collect(),
            None => (known..task.points().rows())
                .map(|point| task.prototype_dots(point))
                .map(|dots| self.judge_dots(dots).0.unwrap_or_else(|| nearest(dots)))
                .collect(),
        }
    }

    /// The category of every query of a task that has the same known classes.
    pub fn judge_all(&self, task: &Task) -> Vec<Category> {
        let category = |(class, _): (Option<usize>, Score)| class.map_or(Category::Novel(0), Category::Known);
        self.judge_each(task).into_iter().map(category).collect()
    }

    fn judge_dots(&self, dots: &[f32]) -> (Option<usize>, Score) {
        let class = nearest(dots);
        let score = Score::of(class, dots.iter().copied());
        let known = match &self.rule {
            Rule::Always | Rule::Calibrated(_) => true,
            Rule::Nearest { min_similarity, .. } => {
                let (limit, lower) = self.limit;
                let similarity = dots[class];
                // Of equally similar pairs the one with the lower first point merges; the query is the last point.
                let first = similarity > limit || (similarity == limit && class < lower);
                first && min_similarity.is_none_or(|limit| similarity >= limit)
            }
            Rule::Ranking(ranking) => {
                let key = ranking.key(dots, None);
                // Unordered keys may be shared by two prototypes; the nearer one gets the query.
                let same = (0..self.keys.len()).filter(|&class| self.keys[class] == key);
                return (same.reduce(|a, b| if dots[b] > dots[a] { b } else { a }), score);
            }
        };
        (known.then_some(class), score)
    }
}

/// The queries of a task in a taxonomy of its known classes.
fn assigned(taxonomy: &Taxonomy, task: &Task) -> Vec<Assignment> {
    let queries = task.points().values()[task.known() * task.dim()..].to_vec();
    taxonomy
        .assign(&Features::from_finite(task.dim(), queries))
        .expect("the queries of a task have a direction, and as many features as its examples")
}

/// What an assignment to one of the known classes says: an item that is not likely of its class is new.
fn judgement(found: Assignment) -> (Option<usize>, Score) {
    ((!found.score.unsure).then_some(found.category), found.score)
}

/// The first of the largest values.
pub(crate) fn nearest(dots: &[f32]) -> usize {
    dots.iter()
        .enumerate()
        .fold(0, |best, (at, &dot)| if dot > dots[best] { at } else { best })
}
