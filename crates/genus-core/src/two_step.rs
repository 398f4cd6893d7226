//! More items than a method can take at once: cluster a subset, assign the rest to its centres.

use std::collections::BTreeSet;

use crate::choice::choice;
use crate::discovery::Discovery;
use crate::error::DiscoverError;
use crate::features::Features;
use crate::methods::Discover;
use crate::rng::Rng;
use crate::scenes::Shown;
use crate::task::Task;
use crate::taxonomy::{Assignment, Taxonomy};

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
                // Floyd's sampling: memory for the chosen ones only, however many there are to choose from.
                let mut rng = Rng::new(seed, &[SUBSET]);
                let mut rows = BTreeSet::new();
                for last in n - size.min(n)..n {
                    let row = rng.below(last + 1);
                    if !rows.insert(row) {
                        rows.insert(last);
                    }
                }
                rows.into_iter().collect()
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
        let mut assignments = Vec::with_capacity(task.queries());
        for block in blocks() {
            assignments.extend(taxonomy.assign(&block)?);
        }
        if self.refine == 0 {
            // What the method decided stands, even where another centre is nearer.
            for (&row, (&category, &score)) in rows.iter().zip(first.categories().iter().zip(first.scores())) {
                let category = taxonomy.index_of(category);
                assignments[row] = Assignment { category, score };
            }
        }
        if first.fitting().is_some() {
            // What is equal to an example has its label, as it has where all are clustered.
            let shown = Shown::new(task.support(), task.support_labels());
            for (assignment, item) in assignments.iter_mut().zip(queries.chunks_exact(dim)) {
                if let Some(class) = shown.class_of(item) {
                    *assignment = taxonomy.put(item, class);
                }
            }
        }
        let whole = Discovery::from_assignments(&first, &assignments, &taxonomy);
        Ok(match first.fitting() {
            Some(_) => whole,
            None => whole.around_all_queries(task),
        })
    }
}
