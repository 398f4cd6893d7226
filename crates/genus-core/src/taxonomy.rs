//! The lasting result: categories with names and centres, to which further items can be assigned.

use std::collections::HashSet;
use std::ops::Range;

use rayon::prelude::*;

use crate::discovery::{Category, Discovery, Kind, Score};
use crate::error::{FeatureError, TaskError, TaxonomyError};
use crate::features::{Features, norm, scale_to_unit};
use crate::linalg;

/// Rows that one thread assigns at a time.
const BLOCK: usize = 512;

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
            .chain(new_names.map(|name| (name, Kind::New)))
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
            .find(|pair| pair[0].kind == Kind::New && pair[1].kind == Kind::Known)
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
        Ok(Self { entries, centres })
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
    pub fn assign(&self, items: &Features) -> Result<Vec<Assignment>, TaskError> {
        let dim = self.centres.dim();
        if items.dim() != dim {
            return Err(TaskError::Dimensions {
                support: dim,
                queries: items.dim(),
            });
        }
        let count = self.entries.len();
        let blocks: Vec<Vec<Assignment>> = items
            .values()
            .par_chunks(BLOCK * dim)
            .enumerate()
            .map(|(block, rows)| {
                let dots = linalg::dots(rows, self.centres.values(), dim);
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
                            let row = block * BLOCK + row;
                            return Err(TaskError::Queries(FeatureError::ZeroRow { row }));
                        }
                        Ok(best_of(&linalg::dots(&unit, self.centres.values(), dim), 1.0))
                    })
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(blocks.concat())
    }

    /// Begins a pass that moves every centre to the mean of the items nearest to it. The prototypes of the known classes
    /// count as items of theirs.
    ///
    /// # Panics
    /// When the prototypes have another number of features.
    pub fn refinement<'a>(&'a self, prototypes: &'a Features) -> Refinement<'a> {
        let dim = self.centres.dim();
        assert_eq!(prototypes.dim(), dim, "prototypes as wide as the centres");
        let mut refinement = Refinement {
            taxonomy: self,
            sums: vec![0.0; self.entries.len() * dim],
            counts: vec![0; self.entries.len()],
        };
        for (class, prototype) in prototypes.iter().enumerate().take(self.entries.len()) {
            refinement.sums[class * dim..][..dim]
                .iter_mut()
                .zip(prototype)
                .for_each(|(s, &v)| *s += f64::from(v));
        }
        refinement
    }
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
        score: Score { similarity, margin },
    }
}

/// One pass of spherical k-means over items that need not fit into memory.
#[derive(Debug)]
pub struct Refinement<'a> {
    taxonomy: &'a Taxonomy,
    sums: Vec<f64>,
    counts: Vec<u64>,
}

impl Refinement<'_> {
    /// Counts some items in.
    pub fn add(&mut self, items: &Features) -> Result<(), TaskError> {
        let dim = items.dim();
        for (row, assignment) in items.iter().zip(self.taxonomy.assign(items)?) {
            let length = norm(row);
            let sum = &mut self.sums[assignment.category * dim..][..dim];
            sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v) / length);
            self.counts[assignment.category] += 1;
        }
        Ok(())
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
        Taxonomy {
            entries: entries
                .map(|(entry, &items)| TaxonomyEntry { items, ..entry.clone() })
                .collect(),
            centres: Features::from_finite(dim, values),
        }
    }
}
