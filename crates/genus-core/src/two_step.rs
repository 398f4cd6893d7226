//! More items than a method can take at once: cluster a subset, assign the rest to its centres.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::choice::choice;
use crate::discovery::Discovery;
use crate::error::{DiscoverError, TaskError};
use crate::features::Features;
use crate::methods::Discover;
use crate::rng::hash_row;
use crate::scenes::ExampleIndex;
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
    /// So many, drawn at random by their content: the order of the pile decides nothing.
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
    /// The chosen ones of a task's queries, in ascending order; of equal ones only the first can be chosen.
    pub fn rows(&self, task: &Task) -> Vec<usize> {
        match *self {
            Subset::First(size) => (0..size.min(task.queries())).collect(),
            Subset::Random { size, seed } => {
                let mut sample = Sample::new(size, seed);
                let queries = task.points().iter().skip(task.known()).enumerate();
                queries.for_each(|(row, query)| sample.offer(query, || row));
                let mut rows = sample.finish().1;
                rows.sort_unstable();
                rows
            }
        }
    }
}

/// Chooses items at random while a pile comes by, in memory for the chosen ones only.
///
/// The seed and an item's content decide, so that the order in which the items come does not. Equal items count once; what
/// is known of the least of them stands for all.
///
/// ```
/// use genus_core::Sample;
///
/// let mut sample = Sample::new(2, 7);
/// for (name, row) in [("a", [1.0, 0.0]), ("b", [0.0, 1.0]), ("copy of a", [1.0, 0.0]), ("c", [3.0, 1.0])] {
///     sample.offer(&row, || name);
/// }
/// let (chosen, names, rows) = sample.finish();
/// assert_eq!((names.len(), rows.len()), (2, 2 * 2));
/// assert_eq!(chosen.number(&rows[2..]), Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct Sample<T> {
    size: usize,
    seed: u64,
    /// The items with the smallest hashes.
    smallest: BTreeMap<u64, (T, Vec<f32>)>,
}

impl<T: Ord> Sample<T> {
    /// A sample of so many.
    pub fn new(size: usize, seed: u64) -> Self {
        Self {
            size,
            seed,
            smallest: BTreeMap::new(),
        }
    }

    /// The next item of the pile, and what is known of it.
    pub fn offer(&mut self, item: &[f32], about: impl FnOnce() -> T) {
        let key = hash_row(self.seed, SUBSET, item);
        let is_full = self.smallest.len() >= self.size;
        if is_full && self.smallest.last_key_value().is_none_or(|(&last, _)| key > last) {
            return;
        }
        match self.smallest.entry(key) {
            Entry::Occupied(mut equal) => {
                let about = about();
                if about < equal.get().0 {
                    equal.get_mut().0 = about;
                }
            }
            Entry::Vacant(free) => {
                free.insert((about(), item.to_vec()));
                if is_full {
                    self.smallest.pop_last();
                }
            }
        }
    }

    /// Which items were chosen, what is known of them, and their rows one after the other.
    pub fn finish(self) -> (Selection, Vec<T>, Vec<f32>) {
        let keys = self.smallest.keys().enumerate().map(|(number, &key)| (key, number));
        let chosen = Selection {
            seed: self.seed,
            numbers: keys.collect(),
        };
        let mut rows = Vec::new();
        let about = self.smallest.into_values().map(|(about, row)| {
            rows.extend(row);
            about
        });
        (chosen, about.collect(), rows)
    }
}

/// The items that a [`Sample`] chose.
#[derive(Clone, Debug)]
pub struct Selection {
    seed: u64,
    numbers: HashMap<u64, usize>,
}

impl Selection {
    /// Which of the chosen an item is equal to, if any.
    pub fn number(&self, item: &[f32]) -> Option<usize> {
        self.numbers.get(&hash_row(self.seed, SUBSET, item)).copied()
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
    fn examples(&self) -> ExampleIndex;
}

impl<M: Discover> TwoStep<M> {
    /// Runs the method on a task whose queries are some items of a pile, and hands on every block of the pile with the assignments
    /// of its items to the categories that were found. `query` says which query of the task an item is, if any, by its place in
    /// the pile and its features. What the method said of the task, and the categories.
    pub fn run<B: Blocks>(
        &self,
        task: &Task,
        query: impl Fn(usize, &[f32]) -> Option<usize>,
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
        // What is equal to an example has its label, as it has where all are clustered.
        let shown = first.fitting().map(|_| pile.examples());
        let mut before = 0;
        pile.for_each(|block| {
            let items = B::features(&block);
            let mut found = taxonomy.assign(items).map_err(failed)?;
            for (at, (assignment, item)) in found.iter_mut().zip(items.iter()).enumerate() {
                if let Some(class) = shown.as_ref().and_then(|shown| shown.class_of(item)) {
                    *assignment = taxonomy.put(item, class);
                }
                if let Some(&decided) = query(before + at, item).and_then(|query| decided.get(query)) {
                    *assignment = decided;
                }
            }
            before += found.len();
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

    fn examples(&self) -> ExampleIndex {
        ExampleIndex::new(self.0.support(), self.0.support_labels())
    }
}

impl<M: Discover> Discover for TwoStep<M> {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let rows = self.subset.rows(task);
        if rows.len() == task.queries() && self.refine == 0 {
            return self.method.discover(task);
        }
        let mut assignments = Vec::with_capacity(task.queries());
        let subset = task.with_queries(&rows)?;
        let query = |row: usize, _: &[f32]| rows.binary_search(&row).ok();
        let (first, taxonomy) = self.run(&subset, query, &Queries(task), |_, _, found| {
            assignments.extend(found);
            Ok(())
        })?;
        Ok(Discovery::from_assignments(&first, &assignments, &taxonomy))
    }
}
