//! One method's answer.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use crate::calibration::{Calibration, ClusteredPoints, Fitting, Points};
use crate::features::{Features, norm, scale_to_unit};
use crate::scenes::{QueryScenes, Scenes};
use crate::task::{Task, class_means};
use crate::taxonomy::{Assignment, Taxonomy};

/// The mean of unit vectors is zero when it is shorter than this: what is left is rounding and has no direction.
pub(crate) const VANISHED: f64 = 1e-6;

/// Whether a category was named by the user or found by Genus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One of the labelled classes.
    Known,
    /// A group of items that fit no labelled class.
    Novel,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Known => "known",
            Kind::Novel => "new",
        })
    }
}

/// Where an item belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// The known class of this number.
    Known(usize),
    /// The new group of this number; group 0 is the largest.
    Novel(usize),
}

impl Category {
    /// The category of this number when the known classes come first.
    pub(crate) fn of(number: usize, known: usize) -> Self {
        match number.checked_sub(known) {
            None => Category::Known(number),
            Some(group) => Category::Novel(group),
        }
    }

    /// Whether the category was named by the user or found.
    pub fn kind(self) -> Kind {
        match self {
            Category::Known(_) => Kind::Known,
            Category::Novel(_) => Kind::Novel,
        }
    }
}

/// How well an item fits its category.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The cosine between the item and the centre of its category.
    pub similarity: f32,
    /// By how much that exceeds the cosine with the best other category; negative where another centre is nearer.
    pub margin: f32,
    /// How likely the item belongs there, where a [`Calibration`] says so.
    pub probability: Option<f32>,
    /// Whether the probability is so low that the category is only the best guess.
    pub unsure: bool,
}

impl Score {
    /// The score of a category among the similarities with all of them. Without a rival the margin is the similarity.
    pub(crate) fn of(category: usize, similarities: impl Iterator<Item = f32>) -> Self {
        let mut similarity = 0.0;
        let mut rival = f32::NEG_INFINITY;
        for (other, s) in similarities.enumerate() {
            if other == category {
                similarity = s;
            } else {
                rival = rival.max(s);
            }
        }
        let margin = if rival.is_finite() {
            similarity - rival
        } else {
            similarity
        };
        Self::plain(similarity, margin)
    }

    /// A score that says nothing about how likely it is.
    pub(crate) fn plain(similarity: f32, margin: f32) -> Self {
        Self {
            similarity,
            margin,
            probability: None,
            unsure: false,
        }
    }
}

/// How a method came to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// Every query was judged by itself.
    Direct,
    /// Merging ended where two known classes would have met, or at the limit that was set.
    Cut {
        /// How many merges were made.
        merges: usize,
        /// The similarity of the merge that was refused.
        similarity: f32,
    },
    /// Nothing stood in the way of merging everything.
    Exhausted,
    /// Splitting went on for some rounds.
    Rounds {
        /// How many.
        rounds: usize,
        /// Whether every condition was met at the end.
        converged: bool,
    },
    /// The number of categories was estimated first.
    Estimated {
        /// How many categories.
        categories: usize,
        /// The share of the labelled items that a clustering into so many puts right.
        labelled_accuracy: f64,
    },
    /// Items that share their neighbours were found.
    Communities {
        /// To how many neighbours every item was tied.
        neighbours: usize,
    },
    /// The likeliest division of a tree was found.
    Likeliest {
        /// The number of points of a cluster, on average; the prototypes are points too.
        size: f64,
    },
}

/// One method's answer: a category and a score for every query, a centre for every category, how it stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    known: usize,
    categories: Vec<Category>,
    scores: Vec<Score>,
    centres: Features,
    items: Vec<usize>,
    clusters: Vec<usize>,
    stop: Stop,
    fitting: Option<Fitting>,
    scenes: Option<Scenes>,
}

impl Discovery {
    /// Turns clusters of the task's points, the prototypes followed by the queries, into an answer.
    ///
    /// A query in the cluster of a prototype belongs to that class. Where a method left several prototypes in one
    /// cluster, its queries go to the nearest of them. The numbers of clusters mean nothing and may have gaps.
    ///
    /// # Panics
    /// When there are not as many clusters as points.
    pub fn from_clusters(task: &Task, clusters: Vec<usize>, stop: Stop) -> Self {
        assert_eq!(clusters.len(), task.points().rows(), "every point has a cluster");
        let known = task.known();
        let (clusters, count) = canonical(&clusters);
        let mut classes_of: Vec<Vec<usize>> = vec![Vec::new(); count];
        for class in 0..known {
            classes_of[clusters[class]].push(class);
        }
        let groups = groups_by_size(&clusters[known..], |cluster| classes_of[cluster].is_empty(), count);
        let categories = (known..clusters.len())
            .map(|point| match &*classes_of[clusters[point]] {
                [] => Category::Novel(groups[clusters[point]]),
                [class] => Category::Known(*class),
                several => {
                    let dots = task.prototype_dots(point);
                    let nearest = several
                        .iter()
                        .copied()
                        .reduce(|a, b| if dots[b] > dots[a] { b } else { a });
                    Category::Known(nearest.unwrap_or(several[0]))
                }
            })
            .collect();
        Self::from_categories(task, categories, clusters, stop)
    }

    /// Completes an answer whose categories are already decided with its centres and scores.
    ///
    /// The centre of a category is the mean of its unit queries and, for a known class, of its prototype.
    pub(crate) fn from_categories(task: &Task, categories: Vec<Category>, clusters: Vec<usize>, stop: Stop) -> Self {
        let known = task.known();
        let index = |category: &Category| match *category {
            Category::Known(class) => class,
            Category::Novel(group) => known + group,
        };
        let of_point: Vec<usize> = (0..known).chain(categories.iter().map(index)).collect();
        let count = of_point.iter().max().map_or(known, |&last| (last + 1).max(known));
        let affinity = task.affinity(&of_point, count);
        let mut centres = class_means(task.points(), &of_point, count);
        let lengths: Vec<f64> = centres.chunks_exact(task.dim()).map(norm).collect();
        // A centre of opposite members may vanish; it then is zero, similar to nothing.
        let cosine = |point: usize, c: usize| match lengths[c] {
            length if length < VANISHED => 0.0,
            length => (f64::from(affinity.get(point, c)) / length) as f32,
        };
        let scores = (known..of_point.len())
            .map(|point| Score::of(of_point[point], (0..count).map(|c| cosine(point, c))))
            .collect();
        for (centre, &length) in centres.chunks_exact_mut(task.dim()).zip(&lengths) {
            if length < VANISHED {
                centre.fill(0.0);
            } else {
                scale_to_unit(centre);
            }
        }
        let mut items = vec![0; count];
        of_point[known..].iter().for_each(|&c| items[c] += 1);
        Self {
            known,
            categories,
            scores,
            centres: Features::from_finite(task.dim(), centres),
            items,
            clusters,
            stop,
            fitting: None,
            scenes: None,
        }
    }

    /// Turns points that were sorted in the space of a calibration into an answer. A point is a scene of queries: all of its
    /// members go where it goes. `neighbours` says how many of them were looked at where communities were found.
    pub(crate) fn from_sorted(
        points: &Points,
        sorted: ClusteredPoints,
        calibration: Arc<Calibration>,
        queries: QueryScenes,
        neighbours: Option<usize>,
    ) -> Self {
        let known = points.known();
        let QueryScenes { scenes, classes } = queries;
        let of_items = |clusters: &[usize]| scenes.spread(&clusters[known..]);
        let groups = groups_by_size(&of_items(&sorted.clusters), |cluster| cluster >= known, sorted.count);
        let of_point: Vec<usize> = sorted
            .clusters
            .iter()
            .map(|&cluster| {
                if cluster < known {
                    cluster
                } else {
                    known + groups[cluster]
                }
            })
            .collect();
        let sorted = ClusteredPoints {
            clusters: of_point,
            count: sorted.count,
        };
        let mut scores = calibration.scores(points, &sorted);
        // What an example shows leaves no doubt.
        for (score, _) in scores.iter_mut().zip(&classes).filter(|(_, class)| class.is_some()) {
            (score.probability, score.unsure) = (Some(1.0), false);
        }
        let places = of_items(&sorted.clusters);
        let mut items = vec![0; sorted.count];
        places.iter().for_each(|&at| items[at] += 1);
        Self {
            known,
            categories: places.iter().map(|&at| Category::of(at, known)).collect(),
            scores: scenes.spread(&scores),
            centres: Features::from_finite(points.dim(), sorted.centres(points)),
            items,
            stop: match neighbours {
                Some(neighbours) => Stop::Communities { neighbours },
                None => Stop::Likeliest {
                    size: (known + places.len()) as f64 / sorted.count.max(1) as f64,
                },
            },
            fitting: Some(Fitting {
                groups: points.affinity(&sorted).groups(),
                calibration,
                familiar: familiar(&scores),
            }),
            clusters: (0..known).chain(places).collect(),
            scenes: Some(scenes),
        }
    }

    /// The answer that assignments to the categories of a first answer's taxonomy give. Categories that got no item are
    /// gone, unless they are known classes, and new ones are numbered anew from large to small.
    pub(crate) fn from_assignments(first: &Self, assignments: &[Assignment], taxonomy: &Taxonomy) -> Self {
        let known = first.known;
        let count = taxonomy.entries().len();
        let mut items = vec![0usize; count];
        let mut earliest = vec![usize::MAX; count];
        for (query, assignment) in assignments.iter().enumerate() {
            items[assignment.category] += 1;
            earliest[assignment.category] = earliest[assignment.category].min(query);
        }
        let mut order: Vec<usize> = (known..count).filter(|&category| items[category] > 0).collect();
        order.sort_by_key(|&category| (Reverse(items[category]), earliest[category]));
        let order: Vec<usize> = (0..known).chain(order).collect();
        let mut number = vec![usize::MAX; count];
        order
            .iter()
            .enumerate()
            .for_each(|(at, &category)| number[category] = at);
        let places = assignments.iter().map(|assignment| number[assignment.category]);
        // A method may have left several prototypes in one cluster.
        let cluster_of = |at: usize| {
            if at < known {
                first.clusters[at]
            } else {
                known + assignments.len() + at
            }
        };
        let clusters: Vec<usize> = (0..known).chain(places.clone()).map(cluster_of).collect();
        Self {
            known,
            categories: places.map(|at| Category::of(at, known)).collect(),
            scores: assignments.iter().map(|assignment| assignment.score).collect(),
            centres: taxonomy.centres().select(&order),
            items: order.iter().map(|&category| items[category]).collect(),
            clusters: canonical(&clusters).0,
            stop: first.stop,
            fitting: taxonomy.fitting().map(|fitting| fitting.select(&order)),
            scenes: None,
        }
    }

    /// The same answer for the classes and queries in another order: `classes` and `queries` say which of them each of these
    /// is. New groups are numbered from large to small, the one with the earlier first query first.
    pub(crate) fn put_back(self, classes: &[usize], queries: &[usize]) -> Self {
        let known = self.known;
        let place = |category: &Category| match *category {
            Category::Known(class) => class,
            Category::Novel(group) => known + group,
        };
        let mut earliest = vec![usize::MAX; self.items.len()];
        for (category, &query) in self.categories.iter().zip(queries) {
            let at = place(category);
            earliest[at] = earliest[at].min(query);
        }
        let mut groups: Vec<usize> = (known..self.items.len()).collect();
        groups.sort_by_key(|&group| (Reverse(self.items[group]), earliest[group]));
        // Which of these categories every one of those is, and the other way round.
        let mut order = vec![0; known];
        classes.iter().enumerate().for_each(|(at, &class)| order[class] = at);
        order.extend(groups);
        let mut number = vec![0; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(at, &category)| number[category] = at);
        let mut of_query = vec![0; queries.len()];
        queries.iter().enumerate().for_each(|(at, &query)| of_query[query] = at);
        let clusters: Vec<usize> = order[..known]
            .iter()
            .copied()
            .chain(of_query.iter().map(|&at| known + at))
            .map(|point| self.clusters[point])
            .collect();
        Self {
            known,
            categories: of_query
                .iter()
                .map(|&at| Category::of(number[place(&self.categories[at])], known))
                .collect(),
            scores: of_query.iter().map(|&at| self.scores[at]).collect(),
            centres: self.centres.select(&order),
            items: order.iter().map(|&category| self.items[category]).collect(),
            clusters: canonical(&clusters).0,
            stop: self.stop,
            fitting: self.fitting.map(|fitting| fitting.select(&order)),
            scenes: self.scenes.map(|scenes| {
                let numbers: Vec<usize> = of_query.iter().map(|&at| scenes.of()[at]).collect();
                Scenes::from_numbers(&numbers)
            }),
        }
    }

    /// Which queries are of one scene, where the method looked for that.
    pub fn scenes(&self) -> Option<&Scenes> {
        self.scenes.as_ref()
    }

    /// What it was sorted by, where the method knows how far items of one class lie apart.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.fitting.as_ref().map(|fitting| &*fitting.calibration)
    }

    pub(crate) fn fitting(&self) -> Option<&Fitting> {
        self.fitting.as_ref()
    }

    /// The category of every query.
    pub fn categories(&self) -> &[Category] {
        &self.categories
    }

    /// The score of every query.
    pub fn scores(&self) -> &[Score] {
        &self.scores
    }

    /// The number of known classes.
    pub fn known(&self) -> usize {
        self.known
    }

    /// The number of new groups.
    pub fn novel(&self) -> usize {
        self.items.len() - self.known
    }

    /// The unit centres of the known classes, in order, followed by those of the new groups.
    pub fn centres(&self) -> &Features {
        &self.centres
    }

    /// How many queries each category got, known classes first.
    pub fn items(&self) -> &[usize] {
        &self.items
    }

    /// How the method came to its end.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// The cluster of every known class's prototype.
    ///
    /// Metrics look at clusters rather than categories: a method may leave two prototypes in one cluster.
    pub fn prototype_clusters(&self) -> &[usize] {
        &self.clusters[..self.known]
    }

    /// The cluster of every query.
    pub fn query_clusters(&self) -> &[usize] {
        &self.clusters[self.known..]
    }
}

/// Numbers clusters in the order of their first point, without gaps.
pub(crate) fn canonical(clusters: &[usize]) -> (Vec<usize>, usize) {
    let range = clusters.iter().max().map_or(0, |&last| last.saturating_add(1));
    let mut count = 0;
    let mut number_of = |number: &mut usize| {
        if *number == usize::MAX {
            *number = count;
            count += 1;
        }
        *number
    };
    // A table of all numbers, unless they come from elsewhere and are far apart.
    let renumbered = if range <= 8 * clusters.len() {
        let mut numbers = vec![usize::MAX; range];
        clusters
            .iter()
            .map(|&cluster| number_of(&mut numbers[cluster]))
            .collect()
    } else {
        let mut numbers = std::collections::HashMap::new();
        let mut of = |&cluster| number_of(numbers.entry(cluster).or_insert(usize::MAX));
        clusters.iter().map(&mut of).collect()
    };
    (renumbered, count)
}

/// The number of every chosen cluster when these are sorted from large to small, the earlier first query first.
fn groups_by_size(clusters: &[usize], chosen: impl Fn(usize) -> bool, count: usize) -> Vec<usize> {
    let mut sizes = vec![0usize; count];
    clusters.iter().for_each(|&cluster| sizes[cluster] += 1);
    // Clusters are numbered by their first point, so a stable sort keeps the earlier one first.
    let mut order: Vec<usize> = (0..count).filter(|&cluster| chosen(cluster)).collect();
    order.sort_by_key(|&cluster| Reverse(sizes[cluster]));
    let mut rank = vec![usize::MAX; count];
    order
        .iter()
        .enumerate()
        .for_each(|(number, &cluster)| rank[cluster] = number);
    rank
}
/// The share of the items that are not unsure; one of either kind more keeps it from 0 and 1.
fn familiar(scores: &[Score]) -> f64 {
    let sure = scores.iter().filter(|score| !score.unsure).count();
    let share = (sure + 1) as f64 / (scores.len() + 2) as f64;
    share.clamp(Fitting::LEAST_SHARE, 1.0 - Fitting::LEAST_SHARE)
}
