//! Why categories are what they are: which lie near each other, which are easily confused, what ties items to them, how
//! they hang together.
//!
//! ```
//! use genus_core::Features;
//! use genus_core::explain::nearest_categories;
//!
//! let centres = Features::from_rows([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])?;
//! let nearest = nearest_categories(&centres, 1);
//! assert_eq!((nearest[0][0].category, nearest[2][0].category), (2, 1));
//! # Ok::<(), genus_core::FeatureError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::calibration::{MergeTree, projected};
use crate::cluster::neighbours::nearest;
use crate::cluster::{linkage, ward};
use crate::features::Features;
use crate::linalg;

/// An item is torn when its lead over the next category is less than this share of the usual lead.
const TORN: f32 = 0.25;
/// Members of a category that its own branches are made from.
const MEMBERS: usize = 300;
/// Branches of a category that are told apart.
const BRANCHES: usize = 4;
/// Of more points than this no ties are looked for: it takes the products of all pairs.
const MOST_TIED: usize = 25_000;
/// The fewest and the most neighbours that a point is tied to.
const FEWEST_TIES: usize = 5;
const MOST_TIES: usize = 15;
/// Neighbours of a point that are named.
const NAMED: usize = 3;
/// Two categories are linked from this share of the ties of one of them on, and so many pairs are told.
const LEAST_SHARE: f64 = 0.05;
const MOST_LINKS: usize = 20;
/// Rows whose rivals one thread looks for at a time.
const BLOCK: usize = 512;

/// A category and how similar it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The number of the category.
    pub category: usize,
    /// The cosine.
    pub similarity: f32,
}

/// For every category up to `count` others, the most similar first; `centres` are unit rows.
pub fn nearest_categories(centres: &Features, count: usize) -> Vec<Vec<Neighbour>> {
    let nearest = |(category, centre): (usize, &[f32])| {
        let cosines = linalg::dots(centre, centres.values(), centres.dim());
        let mut others: Vec<Neighbour> = cosines
            .into_iter()
            .enumerate()
            .filter(|&(other, _)| other != category)
            .map(|(category, similarity)| Neighbour { category, similarity })
            .collect();
        others.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        others.truncate(count);
        others
    };
    let rows: Vec<(usize, &[f32])> = centres.iter().enumerate().collect();
    rows.into_par_iter().map(nearest).collect()
}

/// For every item the most similar category other than its own; `None` where there is no other.
///
/// Items and centres are of the same space; lengths of items do not matter.
///
/// # Panics
/// When there is not one category an item, or items are not as wide as centres.
pub fn rivals(items: &Features, categories: &[usize], centres: &Features) -> Vec<Option<usize>> {
    assert_eq!(items.rows(), categories.len(), "every item has a category");
    assert_eq!(items.dim(), centres.dim(), "items as wide as the centres");
    let (dim, count) = (centres.dim(), centres.rows());
    let rival = |(dots, &own): (&[f32], &usize)| {
        let others = (0..count).filter(|&other| other != own);
        others.reduce(|best, other| if dots[other] > dots[best] { other } else { best })
    };
    let blocks = items
        .values()
        .par_chunks(BLOCK * dim)
        .zip(categories.par_chunks(BLOCK))
        .map(|(rows, own)| {
            let dots = linalg::dots(rows, centres.values(), dim);
            dots.chunks_exact(count.max(1)).zip(own).map(rival).collect::<Vec<_>>()
        });
    blocks.collect::<Vec<_>>().concat()
}

/// Two categories between which items are torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confusable {
    /// The one of the lower number.
    pub first: usize,
    /// The other one.
    pub second: usize,
    /// Items of either that could nearly as well be in the other.
    pub torn: usize,
    /// Items of both.
    pub items: usize,
}

/// The pairs of categories that are most easily confused: those with the most torn items.
///
/// An item is torn between its category and its rival when its margin, the lead over the rival, is less than a quarter of
/// the usual one, which is the median of all margins.
///
/// # Panics
/// When there is not one category and one rival a margin.
pub fn confusable(margins: &[f32], categories: &[usize], rivals: &[Option<usize>]) -> Vec<Confusable> {
    assert!(margins.len() == categories.len() && margins.len() == rivals.len());
    let mut sorted = margins.to_vec();
    sorted.sort_by(f32::total_cmp);
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let limit = TORN * usual.max(0.0);
    let mut torn: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for ((&margin, &own), rival) in margins.iter().zip(categories).zip(rivals) {
        if let Some(rival) = rival.filter(|_| margin < limit) {
            *torn.entry((own.min(rival), own.max(rival))).or_default() += 1;
        }
    }
    let items = |category: usize| categories.iter().filter(|&&own| own == category).count();
    let mut pairs: Vec<Confusable> = torn
        .into_iter()
        .map(|((first, second), torn)| Confusable {
            first,
            second,
            torn,
            items: items(first) + items(second),
        })
        .collect();
    // Stable: equal ones stay in the order of their numbers.
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.torn));
    pairs
}

/// The nearest neighbours of points, and the links between categories.
#[derive(Clone, Debug, PartialEq)]
pub struct Ties {
    /// The number of nearest neighbours of every point.
    pub neighbours: usize,
    /// The neighbours of every point.
    pub points: Vec<PointTies>,
    /// The pairs of categories with the most ties between them, the strongest first.
    pub links: Vec<Link>,
}

/// A point's nearest neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointTies {
    /// How many of its nearest neighbours are in its own category.
    pub own: usize,
    /// Its few nearest neighbours, of any category, the nearest first.
    pub nearest: Vec<usize>,
}

/// Two categories with ties between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The one of the lower number.
    pub first: usize,
    /// The other one.
    pub second: usize,
    /// The share of the ties of the first one's points that lead to the second.
    pub from_first: f64,
    /// The share of the ties of the second one's points that lead to the first.
    pub from_second: f64,
}

impl Link {
    /// The larger of the two shares.
    pub fn strength(&self) -> f64 {
        self.from_first.max(self.from_second)
    }
}

/// What ties points with unit rows to their categories: to which of their nearest neighbours they are tied, and which categories
/// that links.
///
/// A point is tied to as many others as it was while communities were looked for ([`Stop::Communities`](crate::Stop)), but to at
/// least 5 and at most 15, and they are looked for along the same directions. Two categories are linked when of the ties of
/// either one in twenty leads to the other; up to twenty pairs are told. Of more than 25,000 points there is `None`.
///
/// ```
/// use genus_core::Features;
/// use genus_core::explain::ties;
///
/// let angles = [0.0f32, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5];
/// let points = Features::from_rows(angles.map(|angle| [angle.cos(), angle.sin()]))?;
/// let found = ties(&points, &[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], 5).expect("they are few");
/// assert_eq!((found.points[2].own, found.points[0].nearest[0]), (5, 1));
/// assert!(found.links.is_empty());
/// # Ok::<(), genus_core::FeatureError>(())
/// ```
///
/// # Panics
/// When there is not one category a point.
pub fn ties(points: &Features, categories: &[usize], neighbours: usize) -> Option<Ties> {
    assert_eq!(points.rows(), categories.len(), "every point has a category");
    if points.rows() > MOST_TIED {
        return None;
    }
    let neighbours = neighbours
        .clamp(FEWEST_TIES, MOST_TIES)
        .min(points.rows().saturating_sub(1));
    if neighbours == 0 {
        return Some(Ties {
            neighbours,
            points: vec![
                PointTies {
                    own: 0,
                    nearest: Vec::new()
                };
                points.rows()
            ],
            links: Vec::new(),
        });
    }
    let (rows, dim) = projected(points.values().to_vec(), points.dim());
    let near = nearest(&rows, dim, neighbours);
    // The ties of every category, and those from one to another.
    let mut all: BTreeMap<usize, usize> = BTreeMap::new();
    let mut across: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut tied = Vec::with_capacity(near.len());
    for (near, &own) in near.iter().zip(categories) {
        let others = || near.iter().map(|near| near.other as usize);
        *all.entry(own).or_default() += near.len();
        for other in others().map(|other| categories[other]).filter(|&other| other != own) {
            *across.entry((own, other)).or_default() += 1;
        }
        tied.push(PointTies {
            own: others().filter(|&other| categories[other] == own).count(),
            nearest: others().take(NAMED).collect(),
        });
    }
    let share = |from: usize, to: usize| {
        let ties = across.get(&(from, to)).copied().unwrap_or(0);
        ties as f64 / all.get(&from).copied().unwrap_or(0).max(1) as f64
    };
    // Either way there may be none.
    let pairs: BTreeSet<(usize, usize)> = across.keys().map(|&(from, to)| (from.min(to), from.max(to))).collect();
    let mut links: Vec<Link> = pairs
        .into_iter()
        .map(|(first, second)| Link {
            first,
            second,
            from_first: share(first, second),
            from_second: share(second, first),
        })
        .filter(|link| link.strength() >= LEAST_SHARE)
        .collect();
    // Stable: equal ones stay in the order of their numbers.
    links.sort_by(|a, b| b.strength().total_cmp(&a.strength()));
    links.truncate(MOST_LINKS);
    Some(Ties {
        neighbours,
        points: tied,
        links,
    })
}

/// How categories hang together: a tree around the place where it was cut.
///
/// Every category has up to four branches, which are its own last merges, and the categories merge on as they would have
/// if nothing had stopped them.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryTree {
    /// Which tree it is.
    pub kind: MergeTree,
    /// The category of every branch; branches of one category stand together.
    pub branches: Vec<usize>,
    /// The merges, those within categories first. Node 0 is the first branch, and the first merge has the number behind
    /// the last branch.
    pub merges: Vec<TreeMerge>,
    /// How many of the merges are within categories.
    pub within: usize,
}

/// A merge of two nodes of a [`CategoryTree`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeMerge {
    /// One node.
    pub left: usize,
    /// The other.
    pub right: usize,
    /// The average cosine between their points, or in a Ward tree by how much the merge raises the squared error.
    pub level: f32,
}

impl CategoryTree {
    /// The tree of points with unit rows and their categories, of which only those that are chosen take part.
    ///
    /// The branches of a category of very many points are made from some of them, evenly chosen.
    ///
    /// # Panics
    /// When there is not one category a point.
    pub fn of(kind: MergeTree, points: &Features, categories: &[usize], chosen: &[usize]) -> Self {
        assert_eq!(points.rows(), categories.len(), "every point has a category");
        let mut tree = Self {
            kind,
            branches: Vec::new(),
            merges: Vec::new(),
            within: 0,
        };
        let mut clusters = Vec::new();
        // The merges are numbered from zero until the number of branches is known.
        for &category in chosen {
            let members: Vec<usize> = (0..points.rows()).filter(|&p| categories[p] == category).collect();
            if !members.is_empty() {
                let root = tree.grow(points, category, &members);
                clusters.push(Cluster {
                    node: root,
                    size: members.len() as f64,
                    sum: sum(points, &members),
                });
            }
        }
        tree.within = tree.merges.len();
        tree.join(clusters);
        tree.number()
    }

    /// Adds the branches of a category and gives its root.
    fn grow(&mut self, points: &Features, category: usize, members: &[usize]) -> Node {
        let step = members.len().div_ceil(MEMBERS);
        let some: Vec<usize> = members.iter().copied().step_by(step).collect();
        let rows = points.select(&some);
        let merges = self.merges_of(&linalg::gram(rows.values(), rows.dim()), some.len());
        // So many stand behind every one that was taken.
        let behind = match self.kind {
            MergeTree::Average => 1.0,
            MergeTree::Ward => members.len() as f32 / some.len() as f32,
        };
        let last = merges.len().saturating_sub(BRANCHES - 1);
        // What merged before is one branch, named by its first point.
        let mut first: Vec<usize> = (0..some.len()).collect();
        for &(keep, gone, _) in &merges[..last] {
            first.iter_mut().filter(|f| **f == gone).for_each(|f| *f = keep);
        }
        let mut node_of: BTreeMap<usize, Node> = BTreeMap::new();
        for &point in &first {
            node_of.entry(point).or_insert_with(|| {
                self.branches.push(category);
                Node::Branch(self.branches.len() - 1)
            });
        }
        let mut root = Node::Branch(self.branches.len() - 1);
        for &(keep, gone, level) in &merges[last..] {
            let (Some(left), Some(right)) = (node_of.get(&keep).copied(), node_of.remove(&gone)) else {
                continue;
            };
            root = self.merge(left, right, behind * level);
            node_of.insert(keep, root);
        }
        root
    }

    /// All merges of some points given by their dot products, the first ones first; a cluster is named by its first point.
    fn merges_of(&self, gram: &[f32], points: usize) -> Vec<(usize, usize, f32)> {
        match self.kind {
            MergeTree::Average => linkage::chain(gram.to_vec(), points)
                .into_iter()
                .map(|merge| (merge.a.min(merge.b), merge.a.max(merge.b), merge.similarity))
                .collect(),
            MergeTree::Ward => {
                let mut first: Vec<usize> = (0..points).collect();
                let tree = ward::ward_of_gram(gram, &vec![1.0; points], 0);
                let name = |merge: ward::Merge| {
                    let (a, b) = (first[merge.left], first[merge.right]);
                    first.push(a.min(b));
                    (a.min(b), a.max(b), merge.cost as f32)
                };
                tree.merges.into_iter().map(name).collect()
            }
        }
    }

    /// Merges clusters until there is one.
    fn join(&mut self, mut clusters: Vec<Cluster>) {
        while clusters.len() > 1 {
            let mut best = (f64::NEG_INFINITY, 0, 1);
            for b in 1..clusters.len() {
                for a in 0..b {
                    // The higher the better; a cost is the better the lower it is.
                    let merit = match self.kind {
                        MergeTree::Average => clusters[a].similarity(&clusters[b]),
                        MergeTree::Ward => -clusters[a].cost(&clusters[b]),
                    };
                    if merit > best.0 {
                        best = (merit, a, b);
                    }
                }
            }
            let (merit, a, b) = best;
            let level = match self.kind {
                MergeTree::Average => merit,
                MergeTree::Ward => -merit,
            };
            let right = clusters.remove(b);
            let left = &mut clusters[a];
            left.node = self.merge(left.node, right.node, level as f32);
            left.size += right.size;
            left.sum.iter_mut().zip(&right.sum).for_each(|(s, v)| *s += v);
        }
    }

    fn merge(&mut self, left: Node, right: Node, level: f32) -> Node {
        let plain = |node| match node {
            Node::Branch(at) => at,
            Node::Merge(at) => MERGE + at,
        };
        self.merges.push(TreeMerge {
            left: plain(left),
            right: plain(right),
            level,
        });
        Node::Merge(self.merges.len() - 1)
    }

    /// Lets the numbers of merges begin behind the branches.
    fn number(mut self) -> Self {
        let branches = self.branches.len();
        let number = |node: &mut usize| {
            if let Some(merge) = node.checked_sub(MERGE) {
                *node = branches + merge;
            }
        };
        for merge in &mut self.merges {
            number(&mut merge.left);
            number(&mut merge.right);
        }
        self
    }
}

/// What merges are numbered from while the tree grows: more than there can be branches.
const MERGE: usize = usize::MAX / 2;

#[derive(Clone, Copy)]
enum Node {
    Branch(usize),
    Merge(usize),
}

/// A category, or several, on the way to one.
struct Cluster {
    node: Node,
    size: f64,
    sum: Vec<f64>,
}

impl Cluster {
    fn similarity(&self, other: &Self) -> f64 {
        let dot: f64 = self.sum.iter().zip(&other.sum).map(|(a, b)| a * b).sum();
        dot / (self.size * other.size)
    }

    /// By how much merging the two raises the squared error.
    fn cost(&self, other: &Self) -> f64 {
        let apart = |(a, b): (&f64, &f64)| (a / self.size - b / other.size).powi(2);
        let squared: f64 = self.sum.iter().zip(&other.sum).map(apart).sum();
        self.size * other.size / (self.size + other.size) * squared
    }
}

fn sum(points: &Features, rows: &[usize]) -> Vec<f64> {
    let mut sum = vec![0f64; points.dim()];
    for &row in rows {
        sum.iter_mut()
            .zip(points.row(row))
            .for_each(|(s, &v)| *s += f64::from(v));
    }
    sum
}
