//! The lasting result: categories with names and centres, to which further items can be assigned.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::calibration::{Calibration, ClusteredPoints, Fitting, Group, Points};
use crate::discovery::{Category, Discovery, Kind, Score};
use crate::error::{FeatureError, TaskError, TaxonomyError};
use crate::features::{Features, FeaturesView, norm, scale_to_unit};
use crate::linalg;
use crate::task::Task;

/// Rows that one thread assigns at a time.
const BLOCK: usize = 512;

/// Cosines that differ by so much differ by a factor of e where nothing says how likely an item is.
const TEMPERATURE: f64 = 0.1;

/// Where a category suits best, others are at least by so much less likely.
const BELOW: f64 = 1.0 - 1e-9;

/// Items of other lengths are scaled first, because their products with a centre may leave the range of `f32`.
const PLAIN_LENGTHS: Range<f64> = 1e-30..1e30;

/// One category of a taxonomy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxonomyEntry {
    /// The name: the class's own for a known one, `new-1`, `new-2`, … for those found, the largest first among the items
    /// that were clustered.
    pub name: String,
    /// Named by the user or found.
    pub kind: Kind,
    /// How many items it was found with.
    pub items: u64,
}

/// Categories with stable numbers, names and centres.
#[derive(Clone, Debug, PartialEq)]
pub struct Taxonomy {
    entries: Vec<TaxonomyEntry>,
    centres: Features,
    fitting: Option<Fitting>,
}

/// The category that an item was assigned to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// The number of the category.
    pub category: usize,
    /// How well the item fits it.
    pub score: Score,
}

impl Taxonomy {
    /// Where the queries of a discovery are among its categories.
    pub fn assignments_of(&self, discovery: &Discovery) -> Vec<Assignment> {
        let queries = discovery.categories().iter().zip(discovery.scores());
        let assignment = |(&category, &score)| Assignment {
            category: self.index_of(category),
            score,
        };
        queries.map(assignment).collect()
    }

    /// The categories of a discovery; `classes` are the names of its known ones.
    ///
    /// # Panics
    /// When there is not one name a known class.
    pub fn from_discovery(classes: &[String], discovery: &Discovery) -> Self {
        assert_eq!(classes.len(), discovery.known(), "one name a known class");
        let taken: HashSet<&str> = classes.iter().map(String::as_str).collect();
        // A known class may itself be called `new-3`.
        let new_names = (1..)
            .map(|number| format!("new-{number}"))
            .filter(|name| !taken.contains(name.as_str()));
        let entries = classes
            .iter()
            .map(|class| (class.clone(), Kind::Known))
            .chain(new_names.map(|name| (name, Kind::Novel)))
            .zip(discovery.items())
            .map(|((name, kind), &items)| TaxonomyEntry {
                name,
                kind,
                items: items as u64,
            })
            .collect();
        Self {
            entries,
            centres: discovery.centres().clone(),
            fitting: discovery.fitting().cloned(),
        }
    }

    /// The known classes of a task as a calibration sees their examples.
    pub(crate) fn of_examples(task: &Task, calibration: Arc<Calibration>) -> Self {
        let (entries, centres, fitting) = examples(task, calibration);
        Self::of_fitting(entries, centres, fitting)
    }

    /// Categories that a calibration judges, with centres in its space.
    pub(crate) fn of_fitting(entries: Vec<TaxonomyEntry>, centres: Features, fitting: Fitting) -> Self {
        Self {
            entries,
            centres,
            fitting: Some(fitting),
        }
    }

    /// Puts a taxonomy together from its stored parts.
    pub fn from_parts(entries: Vec<TaxonomyEntry>, centres: Features) -> Result<Self, TaxonomyError> {
        if entries.is_empty() {
            return Err(TaxonomyError::Empty);
        }
        if entries.len() != centres.rows() {
            return Err(TaxonomyError::CentreCount {
                categories: entries.len(),
                centres: centres.rows(),
            });
        }
        if let Some(late) = entries
            .windows(2)
            .find(|pair| pair[0].kind == Kind::Novel && pair[1].kind == Kind::Known)
        {
            return Err(TaxonomyError::KnownAfterNew {
                name: late[1].name.clone(),
            });
        }
        let mut names = HashSet::new();
        if let Some(twice) = entries.iter().find(|entry| !names.insert(&entry.name)) {
            return Err(TaxonomyError::NameTwice {
                name: twice.name.clone(),
            });
        }
        Ok(Self {
            entries,
            centres,
            fitting: None,
        })
    }

    /// Lets a calibration judge what is assigned; its centres are then in the calibration's space. `members` has, for every
    /// category, how many examples and items it was found with and the length of the mean of their unit rows.
    pub fn with_calibration(
        mut self,
        calibration: Arc<Calibration>,
        members: Vec<(f64, f64)>,
    ) -> Result<Self, TaxonomyError> {
        if calibration.dim() != self.centres.dim() {
            return Err(TaxonomyError::CalibrationWidth {
                calibration: calibration.dim(),
                centres: self.centres.dim(),
            });
        }
        if members.len() != self.entries.len() {
            return Err(TaxonomyError::MemberCount {
                categories: self.entries.len(),
                members: members.len(),
            });
        }
        let sensible =
            |&(members, length): &(f64, f64)| members.is_finite() && members >= 1.0 && (0.0..=1.001).contains(&length);
        if let Some(at) = members.iter().position(|group| !sensible(group)) {
            return Err(TaxonomyError::Members {
                name: self.entries[at].name.clone(),
            });
        }
        let group = |(members, length)| Group { members, length };
        self.fitting = Some(Fitting {
            calibration,
            groups: members.into_iter().map(group).collect(),
            familiar: Fitting::UNKNOWN_SHARE,
        });
        Ok(self)
    }

    /// The same when this share of the items is expected to belong to one of its categories, which a calibration takes into account.
    pub fn with_familiar(mut self, share: f64) -> Result<Self, TaxonomyError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(TaxonomyError::Familiar { share });
        }
        if let Some(fitting) = &mut self.fitting {
            fitting.familiar = share;
        }
        Ok(self)
    }

    /// The share of the items that is expected to belong to one of its categories, where a calibration judges that. Of a pile it is the
    /// share of the items that were not unsure.
    pub fn familiar(&self) -> Option<f64> {
        self.fitting.as_ref().map(|fitting| fitting.familiar)
    }

    /// Lets a calibration judge what is assigned to categories that were found without one. Their centres go into its
    /// space, and their items are taken to lie as far apart as those of a class do.
    pub fn calibrated_by(self, calibration: Arc<Calibration>) -> Result<Self, TaxonomyError> {
        if self.fitting.is_some() {
            return Err(TaxonomyError::CalibratedAlready);
        }
        if !calibration.has_middle() {
            return Err(TaxonomyError::NoMiddle);
        }
        let members = |entry: &TaxonomyEntry| {
            let members = entry.items.max(1) as f64;
            let spread = calibration.variance() * (members - 1.0) / members;
            (members, (1.0 - spread).clamp(0.0, 1.0).sqrt())
        };
        let members = self.entries.iter().map(members).collect();
        let mut taxonomy = self.with_calibration(calibration.clone(), members)?;
        let dim = taxonomy.centres.dim();
        let mut centres = calibration.space().apply(taxonomy.centres.values());
        for (moved, centre) in centres.chunks_exact_mut(dim).zip(taxonomy.centres.iter()) {
            // A centre that vanished stays similar to nothing.
            if norm(centre) == 0.0 {
                moved.fill(0.0);
            }
        }
        taxonomy.centres = Features::from_finite(dim, centres);
        Ok(taxonomy)
    }

    /// What judges items that are assigned, if anything does.
    pub fn calibration(&self) -> Option<&Arc<Calibration>> {
        self.fitting.as_ref().map(|fitting| &fitting.calibration)
    }

    /// What [`with_calibration`](Self::with_calibration) was told of every category; empty without a calibration.
    pub fn members(&self) -> Vec<(f64, f64)> {
        let groups = self.fitting.iter().flat_map(|fitting| &fitting.groups);
        groups.map(|group| (group.members, group.length)).collect()
    }

    pub(crate) fn fitting(&self) -> Option<&Fitting> {
        self.fitting.as_ref()
    }

    /// The same categories with other numbers of items.
    ///
    /// # Panics
    /// When there is not one number a category.
    pub fn with_items(mut self, items: &[u64]) -> Self {
        assert_eq!(items.len(), self.entries.len(), "one number a category");
        self.entries
            .iter_mut()
            .zip(items)
            .for_each(|(entry, &items)| entry.items = items);
        self
    }

    /// The categories, known ones first.
    pub fn entries(&self) -> &[TaxonomyEntry] {
        &self.entries
    }

    /// The centre of every category.
    pub fn centres(&self) -> &Features {
        &self.centres
    }

    /// The number of a discovery's category in its taxonomy.
    pub fn index_of(&self, category: Category) -> usize {
        match category {
            Category::Known(class) => class,
            Category::Novel(group) => self.entries.iter().filter(|entry| entry.kind == Kind::Known).count() + group,
        }
    }

    /// Scales every feature across the centres instead of every centre across its features, as the authors' large-scale
    /// code does.
    pub fn with_authors_column_norm(mut self) -> Self {
        let dim = self.centres.dim();
        let mut values = self.centres.into_values();
        for column in 0..dim {
            let length = values
                .iter()
                .skip(column)
                .step_by(dim)
                .map(|&v| f64::from(v).powi(2))
                .sum::<f64>()
                .sqrt();
            if length > 0.0 {
                values
                    .iter_mut()
                    .skip(column)
                    .step_by(dim)
                    .for_each(|v| *v = (f64::from(*v) / length) as f32);
            }
        }
        self.centres = Features::from_finite(dim, values);
        self
    }

    /// The category of the nearest centre by cosine, for every item.
    pub fn assign<'a>(&self, items: impl Into<FeaturesView<'a>>) -> Result<Vec<Assignment>, TaskError> {
        self.block_by_block(items.into(), |rows, first| self.assign_block(rows, first))
    }

    /// The cosine of every item with the centre of every category, item after item.
    pub fn similarities<'a>(&self, items: impl Into<FeaturesView<'a>>) -> Result<Vec<f32>, TaskError> {
        self.block_by_block(items.into(), |rows, first| self.similarities_of_block(rows, first))
    }

    /// How likely every item belongs to every category, item after item, if it belongs to one of them: of an item they add up to 1,
    /// and none is higher than that of the category that it is [assigned](Self::assign) to.
    ///
    /// Without a calibration nothing says how likely anything is, and the cosines are put on a scale of which only the order counts.
    pub fn memberships<'a>(&self, items: impl Into<FeaturesView<'a>>) -> Result<Vec<f64>, TaskError> {
        let count = self.entries.len();
        let expected = self.fitting.as_ref().map(Fitting::expected);
        self.block_by_block(items.into(), |rows, first| {
            let best = self.assign_block(rows, first)?;
            let mut shares = Vec::with_capacity(best.len() * count);
            for (cosines, best) in self.similarities_of_block(rows, first)?.chunks_exact(count).zip(best) {
                let mut of_item = match (&self.fitting, &expected) {
                    (Some(fitting), Some(expected)) => {
                        fitting.calibration.arrivals(cosines, expected, fitting.familiar)
                    }
                    _ => {
                        let nearest = f64::from(cosines[best.category]);
                        let above = |&cosine: &f32| ((f64::from(cosine) - nearest) / TEMPERATURE).exp();
                        cosines.iter().map(above).collect()
                    }
                };
                // What decides is how well groups of any size suit, and a model may see it otherwise by a little.
                let highest = of_item[best.category].max(f64::MIN_POSITIVE);
                for (category, share) in of_item.iter_mut().enumerate() {
                    *share = if category == best.category {
                        highest
                    } else {
                        share.min(highest * BELOW)
                    };
                }
                let sum: f64 = of_item.iter().sum();
                shares.extend(of_item.into_iter().map(|share| share / sum));
            }
            Ok(shares)
        })
    }

    /// What `work` makes of every block of some items.
    fn block_by_block<T: Copy + Send>(
        &self,
        items: FeaturesView<'_>,
        work: impl Fn(&[f32], usize) -> Result<Vec<T>, TaskError> + Sync,
    ) -> Result<Vec<T>, TaskError> {
        let dim = self.centres.dim();
        if items.dim() != dim {
            return Err(TaskError::Dimensions {
                support: dim,
                queries: items.dim(),
            });
        }
        let blocks: Vec<Vec<T>> = items
            .values()
            .par_chunks(BLOCK * dim)
            .enumerate()
            .map(|(block, rows)| work(rows, block * BLOCK))
            .collect::<Result<_, _>>()?;
        Ok(blocks.concat())
    }

    /// The assignment of an item to a category that is known to be its own: how well it fits, and no doubt.
    ///
    /// # Panics
    /// When there is no such category, or the item has another number of features.
    pub fn put(&self, item: &[f32], category: usize) -> Assignment {
        assert!(category < self.entries.len(), "one of the categories");
        assert_eq!(item.len(), self.centres.dim(), "an item as wide as the centres");
        let mut row = self.in_space(item).into_owned();
        scale_to_unit(&mut row);
        let mut score = Score::of(
            category,
            linalg::dots(&row, self.centres.values(), row.len()).into_iter(),
        );
        score.probability = self.fitting.as_ref().map(|_| 1.0);
        Assignment { category, score }
    }

    /// Assigns a few rows, the first of which has this number. Where an item goes, and how surely, does not depend on those beside
    /// it, to the last bit: they may come one by one or in any blocks.
    fn assign_block(&self, rows: &[f32], first: usize) -> Result<Vec<Assignment>, TaskError> {
        let (dim, count) = (self.centres.dim(), self.entries.len());
        let whole = linalg::whole_blocks(rows, dim);
        if let Some(fitting) = &self.fitting {
            if let Some(row) = rows.chunks_exact(dim).position(|row| norm(row) == 0.0) {
                return Err(TaskError::Queries(FeatureError::ZeroRow { row: first + row }));
            }
            let in_space = fitting.calibration.space().apply(&whole);
            let expected = fitting.expected();
            let dots = linalg::dots(&in_space, self.centres.values(), dim);
            let assignment = |cosines: &[f32]| {
                let (category, score) = fitting.calibration.arrival(cosines, &expected, fitting.familiar);
                Assignment { category, score }
            };
            let dots = dots.chunks_exact(count).take(rows.len() / dim);
            return Ok(dots.map(assignment).collect());
        }
        let dots = linalg::dots(&whole, self.centres.values(), dim);
        let row_dots = rows.chunks_exact(dim).zip(dots.chunks_exact(count));
        row_dots
            .enumerate()
            .map(|(row, (values, dots))| {
                let length = norm(values);
                if PLAIN_LENGTHS.contains(&length) {
                    return Ok(best_of(dots, length));
                }
                let mut unit = values.to_vec();
                if !scale_to_unit(&mut unit) {
                    return Err(TaskError::Queries(FeatureError::ZeroRow { row: first + row }));
                }
                Ok(best_of(&linalg::dots(&unit, self.centres.values(), dim), 1.0))
            })
            .collect()
    }

    /// The cosines of a few rows, the first of which has this number.
    fn similarities_of_block(&self, rows: &[f32], first: usize) -> Result<Vec<f32>, TaskError> {
        let (dim, count) = (self.centres.dim(), self.entries.len());
        let mut unit = rows.to_vec();
        if let Some(row) = unit.chunks_exact_mut(dim).position(|row| !scale_to_unit(row)) {
            return Err(TaskError::Queries(FeatureError::ZeroRow { row: first + row }));
        }
        let whole = linalg::whole_blocks(&unit, dim);
        let mut dots = linalg::dots(&self.in_space(&whole), self.centres.values(), dim);
        dots.truncate(rows.len() / dim * count);
        Ok(dots)
    }

    /// The same categories, one of them with another name.
    ///
    /// # Panics
    /// When there is no such category.
    pub fn renamed(mut self, category: usize, name: &str) -> Result<Self, TaxonomyError> {
        let others = self.entries.iter().enumerate();
        if others.clone().any(|(at, entry)| at != category && entry.name == name) {
            return Err(TaxonomyError::NameTwice { name: name.to_owned() });
        }
        self.entries[category].name = name.to_owned();
        Ok(self)
    }

    /// The same categories with two as one, which has the name and the number of the first; a known class absorbs a new one. Which
    /// category each is now is said as well.
    ///
    /// # Panics
    /// When there are no such categories, or they are the same.
    pub fn merged(&self, first: usize, second: usize) -> (Self, Vec<usize>) {
        assert_ne!(first, second, "two categories");
        let dim = self.centres.dim();
        // Known classes stay before the new ones.
        let known = [first, second]
            .into_iter()
            .filter(|&at| self.entries[at].kind == Kind::Known);
        let place = known.min().unwrap_or(first.min(second));
        let weight = |at: usize| match &self.fitting {
            Some(fitting) => fitting.groups[at].members * fitting.groups[at].length,
            None => self.entries[at].items.max(1) as f64,
        };
        let [a, b] = [first, second].map(|at| (weight(at), self.centres.row(at)));
        let sum: Vec<f64> =
            a.1.iter()
                .zip(b.1)
                .map(|(&v, &w)| a.0 * f64::from(v) + b.0 * f64::from(w))
                .collect();
        let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut values = self.centres.values().to_vec();
        if length > 0.0 {
            let centre = values[place * dim..][..dim].iter_mut().zip(&sum);
            centre.for_each(|(mean, v)| *mean = (v / length) as f32);
        }
        let mut entries = self.entries.clone();
        entries[place] = TaxonomyEntry {
            name: self.entries[first].name.clone(),
            kind: self.entries[place].kind,
            items: self.entries[first].items + self.entries[second].items,
        };
        let gone = first + second - place;
        entries.remove(gone);
        values.drain(gone * dim..(gone + 1) * dim);
        let fitting = self.fitting.clone().map(|mut fitting| {
            let members = fitting.groups[first].members + fitting.groups[second].members;
            fitting.groups[place] = Group {
                members,
                length: (length / members).min(1.0),
            };
            fitting.groups.remove(gone);
            fitting
        });
        let now = |at: usize| match at {
            at if at == gone => place - usize::from(gone < place),
            at => at - usize::from(gone < at),
        };
        let merged = Self {
            entries,
            centres: Features::from_finite(dim, values),
            fitting,
        };
        (merged, (0..self.entries.len()).map(now).collect())
    }

    /// Begins a pass that moves every centre to the mean of the items nearest to it. The prototypes of the known classes
    /// count as items of theirs.
    ///
    /// # Panics
    /// When the prototypes have another number of features.
    pub fn refinement(&self, prototypes: &Features) -> Refinement<'_> {
        let dim = self.centres.dim();
        assert_eq!(prototypes.dim(), dim, "prototypes as wide as the centres");
        let mut refinement = self.partial_refinement();
        let rows = self.in_space(prototypes.values());
        for (class, prototype) in rows.chunks_exact(dim).enumerate().take(self.entries.len()) {
            // Behind a calibrated prototype stand the examples that are not items.
            let weight = self.fitting.as_ref().map_or(1.0, |fitting| {
                (fitting.groups[class].members - self.entries[class].items as f64).max(1.0)
            });
            refinement.add_row(class, prototype, weight);
        }
        refinement
    }

    /// The same with a new category for each of some groups of items, behind those that are there, which keep their numbers and
    /// names. Groups without items are left out.
    pub fn with_new_groups(mut self, groups: &[Features]) -> Result<Self, TaskError> {
        let dim = self.centres.dim();
        let number = |entry: &TaxonomyEntry| entry.name.strip_prefix("new-")?.parse::<u64>().ok();
        let mut name = self.entries.iter().filter_map(number).max().unwrap_or(0);
        let mut values = std::mem::replace(&mut self.centres, Features::from_finite(dim, Vec::new())).into_values();
        for group in groups.iter().filter(|group| !group.is_empty()) {
            if group.dim() != dim {
                return Err(TaskError::Dimensions {
                    support: dim,
                    queries: group.dim(),
                });
            }
            let mut sum = vec![0.0; dim];
            for row in self.in_space(group.values()).chunks_exact(dim) {
                let length = norm(row);
                let scale = if length > 0.0 { length.recip() } else { 0.0 };
                sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v) * scale);
            }
            let mut centre: Vec<f32> = sum.iter().map(|&v| v as f32).collect();
            scale_to_unit(&mut centre);
            values.extend(centre);
            let members = group.rows() as f64;
            if let Some(fitting) = &mut self.fitting {
                fitting.groups.push(Group {
                    members,
                    length: sum.iter().map(|v| v * v).sum::<f64>().sqrt() / members,
                });
            }
            name += 1;
            self.entries.push(TaxonomyEntry {
                name: format!("new-{name}"),
                kind: Kind::Novel,
                items: group.rows() as u64,
            });
        }
        self.centres = Features::from_finite(dim, values);
        Ok(self)
    }

    /// Begins the part of a pass that some of the items are: without the prototypes, which count once.
    pub fn partial_refinement(&self) -> Refinement<'_> {
        Refinement {
            taxonomy: self,
            sums: vec![0.0; self.entries.len() * self.centres.dim()],
            weights: vec![0.0; self.entries.len()],
            counts: vec![0; self.entries.len()],
        }
    }

    /// Rows as the centres see them: in the space of the calibration, if there is one.
    fn in_space<'r>(&self, rows: &'r [f32]) -> Cow<'r, [f32]> {
        match &self.fitting {
            None => Cow::Borrowed(rows),
            Some(fitting) => Cow::Owned(fitting.calibration.space().apply(rows)),
        }
    }
}

/// The known classes of a task as a calibration sees their examples: entries without items, centres, and what judges them.
pub(crate) fn examples(task: &Task, calibration: Arc<Calibration>) -> (Vec<TaxonomyEntry>, Features, Fitting) {
    let points = Points::examples(task, calibration.space());
    let prototypes = ClusteredPoints::prototypes(&points);
    let entries = task.classes().iter().map(|class| TaxonomyEntry {
        name: class.clone(),
        kind: Kind::Known,
        items: 0,
    });
    let centres = Features::from_finite(task.dim(), prototypes.centres(&points));
    let groups = points.affinity(&prototypes).groups();
    let fitting = Fitting {
        calibration,
        groups,
        familiar: Fitting::UNKNOWN_SHARE,
    };
    (entries.collect(), centres, fitting)
}

/// The category of the largest dot product, the first of equal ones, in units of the item's length.
fn best_of(dots: &[f32], length: f64) -> Assignment {
    let (mut category, mut best, mut second) = (0, f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (at, &dot) in dots.iter().enumerate() {
        if dot > best {
            second = best;
            best = dot;
            category = at;
        } else if dot > second {
            second = dot;
        }
    }
    let scale = |dot: f32| (f64::from(dot) / length) as f32;
    let similarity = scale(best);
    let margin = if second.is_finite() {
        similarity - scale(second)
    } else {
        similarity
    };
    Assignment {
        category,
        score: Score::plain(similarity, margin),
    }
}

/// One pass of spherical k-means over items that need not fit into memory.
#[derive(Debug)]
pub struct Refinement<'a> {
    taxonomy: &'a Taxonomy,
    sums: Vec<f64>,
    weights: Vec<f64>,
    counts: Vec<u64>,
}

/// What a part of a pile adds to a [`Refinement`].
///
/// Sums of parts are added up in any grouping that is always the same: the order of additions decides about the last bits.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialSums {
    /// The sum of the unit rows of every category, one category after the other.
    pub sums: Vec<f64>,
    /// The weight of the rows of every category.
    pub weights: Vec<f64>,
    /// How many rows every category has.
    pub counts: Vec<u64>,
}

impl PartialSums {
    /// Adds what another part adds.
    ///
    /// # Panics
    /// When the two are of different taxonomies.
    pub fn add(&mut self, other: &Self) {
        assert!(
            self.sums.len() == other.sums.len() && self.weights.len() == other.weights.len(),
            "sums of one taxonomy"
        );
        let pairs = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        pairs(&mut self.sums, &other.sums);
        pairs(&mut self.weights, &other.weights);
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(to, from)| *to += from);
    }
}

impl Refinement<'_> {
    /// Counts some items in whose assignments to the taxonomy are known.
    ///
    /// # Panics
    /// When there is not one assignment an item.
    pub fn add_assigned(&mut self, items: &Features, assignments: &[Assignment]) {
        assert_eq!(items.rows(), assignments.len(), "one assignment an item");
        let rows = self.taxonomy.in_space(items.values());
        for (row, assignment) in rows.chunks_exact(items.dim()).zip(assignments) {
            let length = norm(row);
            let scale = if length > 0.0 { length.recip() } else { 0.0 };
            self.add_row(assignment.category, row, scale);
            self.counts[assignment.category] += 1;
        }
    }

    /// What was counted in so far.
    pub fn into_sums(self) -> PartialSums {
        PartialSums {
            sums: self.sums,
            weights: self.weights,
            counts: self.counts,
        }
    }

    /// Counts in what a part of the pile adds.
    ///
    /// # Panics
    /// When it is of another taxonomy.
    pub fn add_sums(mut self, part: &PartialSums) -> Self {
        let mut sums = PartialSums {
            sums: self.sums,
            weights: self.weights,
            counts: self.counts,
        };
        sums.add(part);
        self.sums = sums.sums;
        self.weights = sums.weights;
        self.counts = sums.counts;
        self
    }

    /// Counts some items in.
    pub fn add(&mut self, items: &Features) -> Result<(), TaskError> {
        let assignments = self.taxonomy.assign(items)?;
        self.add_assigned(items, &assignments);
        Ok(())
    }

    fn add_row(&mut self, category: usize, row: &[f32], weight: f64) {
        let sum = &mut self.sums[category * row.len()..][..row.len()];
        sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v) * weight);
        self.weights[category] += weight;
    }

    /// The taxonomy with its centres moved; a category that got nothing stays where it was.
    pub fn finish(self) -> Taxonomy {
        let dim = self.taxonomy.centres.dim();
        let mut values: Vec<f32> = self.sums.iter().map(|&v| v as f32).collect();
        for (category, centre) in values.chunks_exact_mut(dim).enumerate() {
            if !scale_to_unit(centre) {
                centre.copy_from_slice(self.taxonomy.centres.row(category));
            }
        }
        let entries = self.taxonomy.entries.iter().zip(&self.counts);
        let fitting = self.taxonomy.fitting.as_ref().map(|fitting| Fitting {
            groups: self.groups(fitting),
            ..fitting.clone()
        });
        Taxonomy {
            fitting,
            entries: entries
                .map(|(entry, &items)| TaxonomyEntry { items, ..entry.clone() })
                .collect(),
            centres: Features::from_finite(dim, values),
        }
    }

    /// The members of the categories and the lengths of their means.
    fn groups(&self, before: &Fitting) -> Vec<Group> {
        let sums = self.sums.chunks_exact(self.taxonomy.centres.dim()).zip(&self.weights);
        sums.zip(&before.groups)
            .map(|((sum, &members), &before)| match members > 0.0 {
                true => Group {
                    members,
                    length: sum.iter().map(|v| v * v).sum::<f64>().sqrt() / members,
                },
                false => before,
            })
            .collect()
    }
}
