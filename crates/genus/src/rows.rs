//! A matrix that is in memory already, sorted where it is.

use std::collections::BTreeSet;

use genus_core::methods::Method;
use genus_core::{
    Assignment, Blocks, Discover as _, ExampleIndex, FeatureError, Features, FeaturesView, Kind, Knowledge, Stop,
    Stream, Support, Task, TaskError, Taxonomy, TaxonomyEntry,
};

use crate::discover::{LargePile, make_method, note_odd_label, told_apart};
use crate::{DiscoverOptions, Error, Length, Progress};

/// Rows of a block of a large pile.
const BLOCK: usize = 4096;

/// A matrix in memory, with the class of every row that has one. Its memory is somebody else's, and it is not copied.
#[derive(Clone, Copy, Debug)]
pub struct LabelledRows<'a> {
    /// The features, a row an item.
    pub features: FeaturesView<'a>,
    /// The names of the classes, in the order in which the taxonomy has them.
    pub classes: &'a [String],
    /// The class of every row; the rows without are the pile.
    pub labels: &'a [Option<usize>],
}

/// What was found among the rows of a matrix.
#[derive(Debug)]
pub struct SortedRows {
    /// The categories, the known ones in the order of the classes, with the number of items of the pile.
    pub taxonomy: Taxonomy,
    /// Where every row is; an example is in its class.
    pub assignments: Vec<Assignment>,
    /// How the method stopped; nothing was to be found where every row had a class.
    pub stop: Option<Stop>,
}

/// Sorts the rows of a matrix that have no class, as [`discover`](crate::discover) sorts those of a table: with the same numbers and
/// options the same comes out, to the last bit.
///
/// Where every row has a class there is nothing to find, and the taxonomy is that of the classes.
///
/// ```
/// use genus::{DiscoverOptions, FeaturesView, LabelledRows, Silent};
///
/// // Three labelled examples of two classes each, and a pile that holds a third.
/// let row = |class: usize, at: usize| {
///     let mut row = [0.0; 6];
///     row[class] = 1.0;
///     row[3 + at % 3] = 0.3;
///     row
/// };
/// let values: Vec<f32> = (0..6).map(|at| row(at / 3, at)).chain((0..30).map(|at| row(at / 10, at))).flatten().collect();
/// let labels: Vec<Option<usize>> = (0..36).map(|at| (at < 6).then_some(at / 3)).collect();
/// let rows = LabelledRows {
///     features: FeaturesView::new(6, &values)?,
///     classes: &["cat".to_owned(), "dog".to_owned()],
///     labels: &labels,
/// };
/// let sorted = genus::discover_rows(rows, &DiscoverOptions::default(), &Silent)?;
/// assert_eq!(sorted.assignments[6].category, 0);
/// assert_eq!(sorted.taxonomy.entries()[sorted.assignments[35].category].name, "new-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn discover_rows(
    rows: LabelledRows<'_>,
    options: &DiscoverOptions,
    progress: &dyn Progress,
) -> Result<SortedRows, Error> {
    let (method, calibration) = make_method(options)?;
    let LabelledRows { features, labels, .. } = rows;
    if let Some(calibration) = &calibration {
        calibration.check("the features".as_ref(), features.dim(), None)?;
    }
    let support = rows.support(progress)?;
    let pile: Vec<usize> = (0..features.rows()).filter(|&row| labels[row].is_none()).collect();
    let (taxonomy, of_pile, stop) = if pile.is_empty() {
        (examples_alone(rows, &support, options, &method)?, Vec::new(), None)
    } else if pile.len() <= options.at_once() {
        let task = Task::of_rows(&support, features, &pile, options.prototypes);
        let task = told_apart(task.map_err(|error| rows.in_the_matrix(error, &pile))?)?;
        progress.start("clustering", Length::Unknown);
        let discovery = method.discover(&task);
        progress.end();
        let discovery = discovery?;
        let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
        let assignments = taxonomy.assignments_of(&discovery);
        (taxonomy, assignments, Some(discovery.stop()))
    } else {
        let mut assignments = Vec::with_capacity(pile.len());
        let blocks = RowBlocks {
            features,
            pile: &pile,
            support: &support,
            progress,
        };
        let large = LargePile {
            blocks: &blocks,
            count: pile.len(),
            support: &support,
            progress,
        };
        let name = |_: &Features, row: usize| row;
        let found = large.sort(&method, options, name, |_, _, found| {
            assignments.extend_from_slice(found);
            Ok(())
        })?;
        let Some(found) = found else {
            return Err(Error::NothingToSort {
                items: "the features".into(),
            });
        };
        (found.taxonomy, assignments, Some(found.stop))
    };
    let mut items = vec![0; taxonomy.entries().len()];
    of_pile.iter().for_each(|assignment| items[assignment.category] += 1);
    let taxonomy = taxonomy.with_items(&items);
    let mut of_pile = of_pile.into_iter();
    let assignments = labels.iter().enumerate().filter_map(|(row, label)| match label {
        Some(class) => Some(taxonomy.put(features.row(row), *class)),
        None => of_pile.next(),
    });
    Ok(SortedRows {
        assignments: assignments.collect(),
        taxonomy,
        stop,
    })
}

/// A stream that begins with the examples among the rows of a matrix; the other rows are not looked at.
pub fn stream_of_rows(
    rows: LabelledRows<'_>,
    options: &DiscoverOptions,
    progress: &dyn Progress,
) -> Result<Stream, Error> {
    let (_, calibration) = make_method(options)?;
    if let Some(calibration) = &calibration {
        calibration.check("the features".as_ref(), rows.features.dim(), None)?;
    }
    let knowledge = calibration.map_or(Knowledge::Examples, |file| Knowledge::Calibration(file.calibration));
    let support = rows.support(progress)?;
    let task = told_apart(task_of_examples(rows, &support, options)?)?;
    Ok(Stream::of_examples(&task, &knowledge)?)
}

/// The taxonomy of the examples alone.
fn examples_alone(
    rows: LabelledRows<'_>,
    support: &Support,
    options: &DiscoverOptions,
    method: &Method,
) -> Result<Taxonomy, Error> {
    // Classes that nothing can tell apart are no reason to refuse: there is nothing to find between them.
    let task = task_of_examples(rows, support, options)?;
    if method.is_calibrated() {
        let (_, calibration) = make_method(options)?;
        let knowledge = calibration.map_or(Knowledge::Examples, |file| Knowledge::Calibration(file.calibration));
        return Ok(Stream::of_examples(&task, &knowledge)?.taxonomy());
    }
    let prototypes = task.points().select(&(0..task.known()).collect::<Vec<_>>());
    let entries = task.classes().iter().map(|class| TaxonomyEntry {
        name: class.clone(),
        kind: Kind::Known,
        items: 0,
    });
    Ok(Taxonomy::from_parts(entries.collect(), prototypes)?)
}

/// A task of examples. It wants a query, which nobody looks at.
fn task_of_examples(rows: LabelledRows<'_>, support: &Support, options: &DiscoverOptions) -> Result<Task, Error> {
    let any = rows.examples().first().map_or(0, |&(_, row)| row);
    let task = Task::of_rows(support, rows.features, &[any], options.prototypes);
    task.map_err(|error| rows.in_the_matrix(error, &[any]))
}

impl LabelledRows<'_> {
    /// The same error with the row of the matrix that it is about.
    fn in_the_matrix(&self, error: TaskError, pile: &[usize]) -> Error {
        match error {
            TaskError::Queries(FeatureError::ZeroRow { row }) => FeatureError::ZeroRow { row: pile[row] }.into(),
            TaskError::Support(FeatureError::ZeroRow { row }) => FeatureError::ZeroRow {
                row: self.examples()[row].1,
            }
            .into(),
            other => other.into(),
        }
    }

    /// The class and the row of every example, class by class.
    fn examples(&self) -> Vec<(usize, usize)> {
        let rows = self.labels.iter().enumerate();
        let mut examples: Vec<(usize, usize)> = rows
            .filter_map(|(row, class)| class.map(|class| (class, row)))
            .collect();
        examples.sort_unstable();
        examples
    }

    /// The examples, class by class.
    fn support(&self, progress: &dyn Progress) -> Result<Support, Error> {
        let (rows, labels) = (self.features.rows(), self.labels.len());
        if rows != labels {
            let ids = rows;
            return Err(Error::Ragged { rows, ids, labels });
        }
        let examples = self.examples();
        if examples.is_empty() {
            return Ok(Support::none(self.features.dim()));
        }
        for class in examples.iter().map(|&(class, _)| class).collect::<BTreeSet<_>>() {
            let count = examples.iter().filter(|&&(other, _)| other == class).count();
            note_odd_label(&self.classes[class], count, progress);
        }
        let rows: Vec<usize> = examples.iter().map(|&(_, row)| row).collect();
        let names: Vec<&str> = examples.iter().map(|&(class, _)| &*self.classes[class]).collect();
        Ok(Support::new(self.features.select(&rows), &names)?)
    }
}

/// The rows of a pile in memory, block by block.
struct RowBlocks<'a> {
    features: FeaturesView<'a>,
    pile: &'a [usize],
    support: &'a Support,
    progress: &'a dyn Progress,
}

impl Blocks for RowBlocks<'_> {
    type Block = Features;
    type Error = Error;

    fn for_each(&self, mut work: impl FnMut(Features) -> Result<(), Error>) -> Result<(), Error> {
        self.pile.chunks(BLOCK).try_for_each(|rows| {
            self.progress.advance(rows.len() as u64);
            work(self.features.select(rows))
        })
    }

    fn features(block: &Features) -> &Features {
        block
    }

    fn examples(&self) -> ExampleIndex {
        self.support.shown()
    }
}
