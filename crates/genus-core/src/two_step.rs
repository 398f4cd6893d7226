//! More items than a method can take at once: cluster a subset, assign the rest to its centres.

use std::collections::BTreeSet;

use crate::choice::choice;
use crate::discovery::Discovery;
use crate::error::{DiscoverError, TaskError};
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
    #[derive(Default)]
    CentreNorm {
        /// Every centre to length one.
        #[default]
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

/// A pile that can be gone through again and again, block by block.
pub trait Blocks {
    /// Some items.
    type Block;
    /// Why it cannot be read, or something cannot be done with it.
    type Error: From<DiscoverError>;

    /// Hands every block to `work`, in order.
    fn for_each(&self, work: impl FnMut(Self::Block) -> Result<(), Self::Error>) -> Result<(), Self::Error>;

    /// The features of the items of a block.
    fn features(block: &Self::Block) -> &Features;

    /// The examples, as the items of the pile are.
    fn examples(&self) -> Shown;
}

impl<M: Discover> TwoStep<M> {
    /// Runs the method on a task whose queries are the `rows` of a pile, in ascending order, and hands on every block of the pile
    /// with the assignments of its items to the categories that were found. What the method said of the task, and the
    /// categories.
    pub fn run<B: Blocks>(
        &self,
        task: &Task,
        rows: &[usize],
        pile: &B,
        mut each: impl FnMut(B::Block, &Taxonomy, Vec<Assignment>) -> Result<(), B::Error>,
    ) -> Result<(Discovery, Taxonomy), B::Error> {
        let failed = |error: TaskError| DiscoverError::from(error);
        let first = self.method.discover(task)?;
        let mut taxonomy = Taxonomy::from_discovery(task.classes(), &first);
        let prototypes = task.points().select(&(0..task.known()).collect::<Vec<_>>());
        for _ in 0..self.refine {
            let mut pass = taxonomy.refinement(&prototypes);
            pile.for_each(|block| Ok(pass.add(B::features(&block)).map_err(failed)?))?;
            taxonomy = pass.finish();
        }
        if self.centre_norm == CentreNorm::AuthorsColumns {
            taxonomy = taxonomy.with_authors_column_norm();
        }
        // What the method decided stands, even where another centre is nearer, unless the centres have moved since.
        let decided = match self.refine {
            0 => taxonomy.assignments_of(&first),
            _ => Vec::new(),
        };
        let mut decided = rows.iter().zip(decided).peekable();
        // What is equal to an example has its label, as it has where all are clustered.
        let shown = first.fitting().map(|_| pile.examples());
        let mut before = 0;
        pile.for_each(|block| {
            let items = B::features(&block);
            let mut found = taxonomy.assign(items).map_err(failed)?;
            for (assignment, item) in found.iter_mut().zip(items.iter()) {
                if let Some(class) = shown.as_ref().and_then(|shown| shown.class_of(item)) {
                    *assignment = taxonomy.put(item, class);
                }
            }
            let end = before + found.len();
            while let Some((&row, decided)) = decided.next_if(|&(&row, _)| row < end) {
                found[row - before] = decided;
            }
            before = end;
            each(block, &taxonomy, found)
        })?;
        Ok((first, taxonomy))
    }
}

/// The queries of a task as a pile.
struct Queries<'a>(&'a Task);

impl Blocks for Queries<'_> {
    type Block = Features;
    type Error = DiscoverError;

    fn for_each(&self, work: impl FnMut(Features) -> Result<(), DiscoverError>) -> Result<(), DiscoverError> {
        let (known, dim) = (self.0.known(), self.0.dim());
        let queries = self.0.points().values()[known * dim..].chunks(BLOCK * dim);
        let mut blocks = queries.map(|rows| Features::from_finite(dim, rows.to_vec()));
        blocks.try_for_each(work)
    }

    fn features(block: &Features) -> &Features {
        block
    }

    fn examples(&self) -> Shown {
        Shown::new(self.0.support(), self.0.support_labels())
    }
}

impl<M: Discover> Discover for TwoStep<M> {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let rows = self.subset.rows(task.queries());
        if rows.len() == task.queries() && self.refine == 0 {
            return self.method.discover(task);
        }
        let mut assignments = Vec::with_capacity(task.queries());
        let subset = task.with_queries(&rows)?;
        let (first, taxonomy) = self.run(&subset, &rows, &Queries(task), |_, _, found| {
            assignments.extend(found);
            Ok(())
        })?;
        Ok(Discovery::from_assignments(&first, &assignments, &taxonomy))
    }
}
