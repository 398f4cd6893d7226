//! More items than a method can take at once: cluster a subset, assign the rest to its centres.

use crate::discovery::{Category, Discovery};
use crate::error::DiscoverError;
use crate::features::Features;
use crate::methods::{Discover, choice};
use crate::rng::Rng;
use crate::task::Task;
use crate::taxonomy::Taxonomy;

/// The stream of random numbers.
const SUBSET: u64 = 0x73;

/// Rows that are assigned at a time.
const BLOCK: usize = 8192;

/// Runs a method on some of the queries and assigns the others to the nearest centre.
#[derive(Clone, Debug)]
pub struct TwoStep<M> {
    /// The method of the first step.
    pub method: M,
    /// The queries it sees.
    pub subset: Subset,
    /// How centres are scaled before the second step.
    pub centre_norm: CentreNorm,
    /// Passes of spherical k-means over all queries between the two steps.
    pub refine: usize,
}

/// Which queries are clustered.
#[derive(Clone, Debug, PartialEq)]
pub enum Subset {
    /// So many, drawn at random.
    Random {
        /// How many.
        size: usize,
        /// The seed.
        seed: u64,
    },
    /// So many, from the first on.
    First(usize),
}

choice! {
    /// How centres are scaled before items are assigned to them.
    CentreNorm {
        /// Every centre to length one.
        Cosine = "cosine",
        /// Every feature across the centres: what the authors' code does by mistake.
        AuthorsColumns = "authors-columns",
    }
}

impl Subset {
    /// The chosen ones out of `n`, in ascending order.
    pub fn rows(&self, n: usize) -> Vec<usize> {
        match *self {
            Subset::First(size) => (0..size.min(n)).collect(),
            Subset::Random { size, seed } => {
                let mut rows = Rng::new(seed, &[SUBSET]).sample(n, size);
                rows.sort_unstable();
                rows
            }
        }
    }
}

impl<M: Discover> Discover for TwoStep<M> {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let rows = self.subset.rows(task.queries());
        if rows.len() == task.queries() && self.refine == 0 {
            return self.method.discover(task);
        }
        let (known, dim) = (task.known(), task.dim());
        let first = self.method.discover(&task.with_queries(&rows)?)?;
        let mut taxonomy = Taxonomy::from_discovery(task.classes(), &first);
        let queries = &task.points().values()[known * dim..];
        let blocks = || {
            queries
                .chunks(BLOCK * dim)
                .map(|rows| Features::from_finite(dim, rows.to_vec()))
        };
        let prototypes = Features::from_finite(dim, task.points().values()[..known * dim].to_vec());
        for _ in 0..self.refine {
            let mut pass = taxonomy.refinement(&prototypes);
            for block in blocks() {
                pass.add(&block)?;
            }
            taxonomy = pass.finish();
        }
        if self.centre_norm == CentreNorm::AuthorsColumns {
            taxonomy = taxonomy.with_authors_column_norm();
        }
        let mut categories = Vec::with_capacity(task.queries());
        for block in blocks() {
            categories.extend(
                taxonomy
                    .assign(&block)?
                    .iter()
                    .map(|assignment| match assignment.category {
                        class if class < known => Category::Known(class),
                        other => Category::Novel(other - known),
                    }),
            );
        }
        if self.refine == 0 {
            // What the method decided stands, even where another centre is nearer.
            for (&row, &category) in rows.iter().zip(first.categories()) {
                categories[row] = category;
            }
        }
        let clusters = (0..known)
            .map(|class| first.prototype_clusters()[class])
            .chain(categories.iter().map(|category| match *category {
                Category::Known(class) => first.prototype_clusters()[class],
                Category::Novel(group) => known + first.query_clusters().len() + group,
            }))
            .collect::<Vec<_>>();
        let clusters = crate::discovery::canonical(&clusters).0;
        Ok(Discovery::from_categories(task, categories, clusters, first.stop()))
    }
}
