//! A pile sorted into known classes and new categories.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use genus_core::methods::{Context, Method, MethodSpec};
use genus_core::{
    Assignment, Blocks, Calibration, CentreNorm, Discover as _, ExampleIndex, Features, Prototypes, Sample, Scenes,
    Source as LearntFrom, Stop, Subset, Support, Task, Taxonomy, TwoStep,
};
use genus_data::{
    CalibrationOrigin, DataError, EncoderRecord, ImageItem, Origin, SortedItem, Table, TableOptions, TaxonomyFolder,
    same_encoder,
};
use genus_report::{Provenance, Report, Truth};

use crate::calibrate::{CalibrationFile, knowledge};
use crate::counts::Counts;
use crate::images::{Embedder, ImageOptions};
use crate::items::{Items, Source};
use crate::output::{Destination, Output, OutputOptions, Rows, SavedFiles, write_rows};
use crate::report::{Page, PageContents, REPORT_FILE, ReportSource, begin_page};
use crate::training::trained_calibration;
use crate::{Error, Length, Note, Progress, Skipped};

/// With more queries than this, a subset is clustered and the rest is assigned.
const AT_ONCE: usize = 20_000;
/// The size of that subset.
pub(crate) const SUBSET: usize = 5_000;

/// Labelled examples and a pile.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Examples and pile are separate inputs. Without examples everything is new.
    Separate {
        /// The labelled examples.
        support: Option<Source>,
        /// The pile.
        query: Source,
    },
    /// Items without a label are the pile, the others the examples.
    Mixed(Source),
}

impl Inputs {
    /// Examples and a pile.
    pub fn new(support: impl Into<Source>, query: impl Into<Source>) -> Self {
        Inputs::Separate {
            support: Some(support.into()),
            query: query.into(),
        }
    }

    /// A pile without examples.
    pub fn without_examples(query: impl Into<Source>) -> Self {
        Inputs::Separate {
            support: None,
            query: query.into(),
        }
    }

    /// The source of the pile.
    pub fn pile(&self) -> &Source {
        let (Inputs::Separate { query: pile, .. } | Inputs::Mixed(pile)) = self;
        pile
    }

    /// The source of the examples or, without any, of the pile.
    pub fn examples(&self) -> &Source {
        match self {
            Inputs::Separate {
                support: Some(support), ..
            } => support,
            _ => self.pile(),
        }
    }
}

/// How a pile is sorted.
#[derive(Clone, Debug, Default)]
pub struct DiscoverOptions {
    /// The method.
    pub method: MethodSpec,
    /// The random seed.
    pub seed: u64,
    /// How examples become a class's prototype.
    pub prototypes: Prototypes,
    /// The calibration; by default that of the encoder or, if it has none, an estimate from the examples.
    pub calibration: Option<CalibrationFile>,
    /// Cluster a random subset of this size and assign the rest. By default 5,000 if there are more than 20,000 items.
    pub subset: Option<NonZeroUsize>,
    /// Passes of k-means over all items before they are assigned.
    pub refine: usize,
    /// How centres are normalised before items are assigned.
    pub centre_norm: CentreNorm,
    /// How images become features.
    pub images: ImageOptions,
    /// Which columns of tables are ids, labels and features.
    pub tables: TableOptions,
}

impl DiscoverOptions {
    /// With more queries than this a subset is clustered and the rest assigned.
    pub(crate) fn at_once(&self) -> usize {
        self.subset.map_or(AT_ONCE, NonZeroUsize::get)
    }
}

/// The result of sorting a pile.
#[derive(Debug)]
pub struct Outcome {
    /// The category of every item; empty after [`discover_into`], which passes them on.
    pub assignments: Vec<SortedItem>,
    /// The categories, with the number of their items.
    pub taxonomy: Taxonomy,
    /// How many items each category has.
    pub counts: Counts,
    /// The items that were clustered: all of them, or a random subset of a large pile.
    pub clustered: ClusteredItems,
    /// The labelled examples.
    pub examples: Examples,
    /// Images that could not be read.
    pub skipped: Vec<Skipped>,
    /// The running time.
    pub timings: Timings,
    /// The encoder that made the features, if known.
    pub encoder: Option<String>,
    options: DiscoverOptions,
    items: Items,
    calibration_origin: CalibrationOrigin,
    /// The encoder, if there were images.
    used: Option<EncoderRecord>,
}

/// The running times of a discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Reading the input and embedding images.
    pub reading: Duration,
    /// Everything, up to the last assignment.
    pub total: Duration,
}

/// The items that were clustered, and their assignments.
#[derive(Debug)]
pub struct ClusteredItems {
    /// Their task.
    pub task: Task,
    /// How the method stopped.
    pub stop: Stop,
    /// Their ids.
    pub ids: Vec<String>,
    /// Their labels in the input.
    pub labels: Vec<Option<String>>,
    /// Where they went.
    pub assignments: Vec<Assignment>,
    /// Their scenes, if scenes were searched in the whole pile.
    pub scenes: Option<Scenes>,
}

/// The labelled examples and their ids.
#[derive(Debug)]
pub struct Examples {
    /// Their features and classes.
    pub support: Support,
    /// Their ids.
    pub ids: Vec<String>,
    /// Their images, if they are images.
    pub images: Vec<ImageItem>,
}

/// Sorts a pile into known classes and new categories.
///
/// The result is kept in memory; use [`discover_into`] for piles that are too large for that.
pub fn discover(inputs: Inputs, options: &DiscoverOptions, progress: &dyn Progress) -> Result<Outcome, Error> {
    let mut assignments = Vec::new();
    let outcome = discover_into(inputs, options, &mut assignments, progress)?;
    Ok(Outcome { assignments, ..outcome })
}

/// Sorts a pile of any size, and passes each assignment on as it is made.
pub fn discover_into(
    inputs: Inputs,
    options: &DiscoverOptions,
    rows: &mut dyn Rows,
    progress: &dyn Progress,
) -> Result<Outcome, Error> {
    let start = Instant::now();
    let (mut method, mut calibration) = make_method(options)?;
    let at_once = options.at_once();
    let examples_path = inputs.examples().called().to_owned();
    let mut embedder = Embedder::new(&options.images, progress);
    let (examples, pile) = read_inputs(inputs, &options.tables, at_once, &mut embedder, progress)?;
    let reading = start.elapsed();
    if let (true, PileRows::Here(table)) = (examples.is_empty(), &pile.rows) {
        note_unused_labels(&examples_path, &table.labels, progress);
    }
    let support = &examples.support;
    if calibration.is_none()
        && options.method.takes_calibration()
        && let Some(shipped) = CalibrationFile::shipped(pile.encoder.as_deref())
    {
        method = options.method.build(&Context {
            calibration: Some(shipped.calibration.clone()),
            ..Context::seed(options.seed)
        })?;
        calibration = Some(shipped);
    }
    if let Some(calibration) = &calibration {
        calibration.check(&examples_path, support.features().dim(), pile.encoder.as_deref())?;
    }
    let (clustered, taxonomy, counts) = match pile.rows {
        PileRows::Here(queries) => at_once_found(&method, options, support, queries, rows, progress)?,
        PileRows::Streamed(count) => {
            let stream = PileBlocks {
                items: &pile.items,
                only_unlabelled: pile.only_unlabelled,
                count,
                support,
                progress,
            };
            two_step(&method, options, &stream, rows)?
        }
    };
    let of_examples = || CalibrationOrigin {
        encoder: pile.encoder.clone(),
        fitted_on: match examples.is_empty() {
            true => format!("{}, without examples", examples_path.display()),
            false => format!("the examples of {}", examples_path.display()),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: options.seed,
    };
    Ok(Outcome {
        assignments: Vec::new(),
        taxonomy: taxonomy.with_items(&counts.items),
        counts,
        clustered,
        calibration_origin: calibration.map_or_else(of_examples, |calibration| calibration.origin),
        encoder: pile.encoder,
        examples,
        used: embedder.used().cloned(),
        skipped: embedder.skipped().to_vec(),
        timings: Timings {
            reading,
            total: start.elapsed(),
        },
        options: options.clone(),
        items: pile.items,
    })
}

impl Outcome {
    /// Describes the method, its calibration and how it stopped in words.
    pub fn how(&self) -> String {
        let calibration = self.taxonomy.calibration();
        let knowledge = calibration.map(|calibration| known_by(calibration, &self.examples.support));
        how(&self.options.method, knowledge.as_deref(), self.clustered.stop)
    }

    /// What the page shows, which `write` puts into a folder.
    pub fn report(&self, page: &Page, progress: &dyn Progress) -> Result<Report, Error> {
        page.make(self.found(), progress)
    }

    /// Writes the assignments and what else a destination has room for: into a folder the taxonomy too, and a page that shows
    /// what was found.
    pub fn write(
        &self,
        to: Destination,
        options: OutputOptions,
        report: Option<&Page>,
        progress: &dyn Progress,
    ) -> Result<SavedFiles, Error> {
        let mut output = Output::open(to, options, self.items.path())?;
        for item in &self.assignments {
            output.write(&item.row())?;
        }
        self.save(output, report, progress)
    }

    /// Saves everything but the assignments, which the output has already; then makes them appear.
    pub fn save(&self, output: Output, report: Option<&Page>, progress: &dyn Progress) -> Result<SavedFiles, Error> {
        let (items, method) = (&self.items, self.options.method.to_string());
        let (mut saved, page) = output.save(items, &method, progress, |folder| {
            let Some(folder) = folder else { return Ok(None) };
            let page = match report {
                Some(page) => {
                    let made = page.make(self.found(), progress)?;
                    Some((begin_page(&made, folder)?, made.truth))
                }
                None => None,
            };
            let origin = Origin {
                method: method.clone(),
                seed: self.options.seed,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                encoder: self.encoder.clone(),
                images: self.used.clone(),
                growing: None,
                calibration: Some(self.calibration_origin.clone()),
            };
            let mut taxonomy = TaxonomyFolder::open(folder)?;
            taxonomy.outdate(REPORT_FILE);
            taxonomy.write(&self.taxonomy, &origin, None)?;
            Ok(page)
        })?;
        if let Some((page, truth)) = page {
            saved.report = Some(page.path().to_owned());
            saved.truth = truth;
            page.commit()?;
        }
        Ok(saved)
    }

    /// How right it is by the truth that a page was told of, if it was; for runs that write no page.
    pub fn judge(&self, page: &Page) -> Result<Option<Truth>, Error> {
        page.judge(&self.found())
    }

    fn found(&self) -> PageContents<'_> {
        let (clustered, examples) = (&self.clustered, &self.examples);
        PageContents {
            described: ReportSource {
                task: &clustered.task,
                taxonomy: &self.taxonomy,
                counts: &self.counts,
                stop: clustered.stop,
                assignments: &clustered.assignments,
                scenes: clustered.scenes.as_ref(),
                ids: &clustered.ids,
                examples: &examples.ids,
                truths: None,
                seed: self.options.seed,
            },
            labels: &clustered.labels,
            made: self.made(),
            images: self.items.images(),
            example_images: &examples.images,
            limits: &self.options.images.limits,
        }
    }

    /// How the result was made, for the report.
    fn made(&self) -> Provenance {
        Provenance {
            method: self.options.method.to_string(),
            how: self.how(),
            encoder: match &self.used {
                Some(used) => Some(used.encoder.clone()),
                None => self.encoder.clone(),
            },
            seed: self.options.seed,
            seconds: self.timings.total.as_secs_f64(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The method, and the calibration that it was given.
pub(crate) fn make_method(options: &DiscoverOptions) -> Result<(Method, Option<CalibrationFile>), Error> {
    let spec = &options.method;
    let mut given = Context::seed(options.seed);
    if let Some(parameter) = spec.learning_parameter() {
        return Err(Error::NoEffect {
            method: spec.name(),
            parameter,
        });
    }
    if options.centre_norm == CentreNorm::AuthorsColumns && spec.build(&given)?.is_calibrated() {
        return Err(Error::CentreNorm {
            method: spec.name().to_owned(),
        });
    }
    let calibration = match (&options.calibration, spec.takes_calibration()) {
        (Some(_), false) => {
            return Err(Error::NoUseForCalibration {
                method: spec.to_string(),
            });
        }
        (None, false) => None,
        (Some(calibration), true) => Some(calibration.clone()),
        // A trained encoder brings its own.
        (None, true) => match trained_calibration(options.images.encoder()) {
            Some(path) => Some(CalibrationFile::read(&path)?),
            None => None,
        },
    };
    given.calibration = calibration.as_ref().map(|file| file.calibration.clone());
    Ok((spec.build(&given)?, calibration))
}

impl Examples {
    /// No example of items with so many features.
    fn none(dim: usize) -> Self {
        Self {
            support: Support::none(dim),
            ids: Vec::new(),
            images: Vec::new(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The pile: in memory when it can be clustered at once, else to be read again block by block.
struct LoadedPile {
    items: Items,
    only_unlabelled: bool,
    rows: PileRows,
    /// The encoder of the features, if their files say so.
    encoder: Option<String>,
}

enum PileRows {
    Here(Table),
    Streamed(usize),
}

/// Reads the examples and, up to `at_once` rows, the pile.
fn read_inputs(
    inputs: Inputs,
    tables: &TableOptions,
    at_once: usize,
    embedder: &mut Embedder,
    progress: &dyn Progress,
) -> Result<(Examples, LoadedPile), Error> {
    // Before hours of work on the others.
    [inputs.examples(), inputs.pile()]
        .into_iter()
        .try_for_each(Source::check_there)?;
    match inputs {
        Inputs::Mixed(source) => {
            let path = source.called().to_owned();
            let items = embedder.items(source, tables, false)?;
            let header = items.header()?;
            note_left_out(&path, &header.left_out, progress);
            let (labelled, rows) = read_mixed(&items, &path, at_once, progress)?;
            let examples = match labelled {
                // What has no label is not looked for among the examples.
                Some(labelled) => examples_of(&path, labelled, items.images().to_vec(), progress)?,
                None => Examples::none(header.dim),
            };
            let pile = LoadedPile {
                items,
                only_unlabelled: true,
                rows,
                encoder: header.encoder,
            };
            Ok((examples, pile))
        }
        Inputs::Separate { support, query } => {
            let mut labelled = None;
            if let Some(source) = support {
                let path = source.called().to_owned();
                let items = embedder.items(source, &tables.for_examples(), true)?;
                let file = items.read().map_err(|source| match source {
                    DataError::NoRows { .. } => Error::NoExamples { source },
                    other => other.into(),
                })?;
                note_left_out(&path, &file.left_out, progress);
                labelled = Some((path, file, items.images().to_vec()));
            }
            let path = query.called().to_owned();
            let tables = match labelled {
                Some(_) => tables.for_pile(),
                None => tables.clone(),
            };
            let items = embedder.items(query, &tables, false)?;
            let header = items.header()?;
            note_left_out(&path, &header.left_out, progress);
            let mut encoder = header.encoder;
            let examples = match labelled {
                Some((support, file, images)) => {
                    same_encoder((&support, file.encoder.as_deref()), (&path, encoder.as_deref()))?;
                    encoder = file.encoder.or(encoder);
                    let examples = examples_of(&support, file.table, images, progress)?;
                    check_dim(&support, examples.support.features().dim(), &path, header.dim)?;
                    examples
                }
                None => Examples::none(header.dim),
            };
            let rows = match header.rows {
                Some(rows) if rows > at_once as u64 => PileRows::Streamed(usize::try_from(rows).unwrap_or(usize::MAX)),
                _ => read_up_to(&items, at_once, progress)?,
            };
            let pile = LoadedPile {
                items,
                only_unlabelled: false,
                rows,
                encoder,
            };
            Ok((examples, pile))
        }
    }
}

/// Words that say that a label is not known.
const NO_LABEL: [&str; 14] = [
    "unknown",
    "unlabelled",
    "unlabeled",
    "unclassified",
    "undefined",
    "none",
    "null",
    "nan",
    "na",
    "n/a",
    "?",
    "-",
    "todo",
    "missing",
];

fn means_no_label(label: &str) -> bool {
    NO_LABEL.iter().any(|word| label.trim().eq_ignore_ascii_case(word))
}

/// Says where a label reads as if it said that there is none.
pub(crate) fn note_odd_label(label: &str, examples: usize, progress: &dyn Progress) {
    if means_no_label(label) {
        let examples = examples as u64;
        progress.note(&Note::OddLabel { label, examples });
    }
}

/// Reports labels of a pile that nobody sorts by: whoever gave them may have meant examples.
fn note_unused_labels(pile: &Path, labels: &[Option<String>], progress: &dyn Progress) {
    let items = labels.iter().flatten().count() as u64;
    if items > 0 {
        progress.note(&Note::UnusedLabels { pile, items });
    }
}

/// Reports which columns of a table were left out.
pub(crate) fn note_left_out(table: &Path, columns: &[String], progress: &dyn Progress) {
    if !columns.is_empty() {
        progress.note(&Note::ColumnsLeftOut { table, columns });
    }
}

/// Fails when two files cannot come from the same encoder.
pub(crate) fn check_dim(first: &Path, first_dim: usize, second: &Path, second_dim: usize) -> Result<(), Error> {
    if first_dim == second_dim {
        return Ok(());
    }
    Err(Error::Dim {
        first: first.to_owned(),
        first_dim,
        second: second.to_owned(),
        second_dim,
    })
}

/// The pile of a file of its own; only counted once it has more rows than are kept.
fn read_up_to(items: &Items, at_once: usize, progress: &dyn Progress) -> Result<PileRows, Error> {
    let mut kept = BoundedRows::new(at_once);
    progress.start("rows read", Length::Unknown);
    items.for_each_block(|block| {
        progress.advance(block.len() as u64);
        let all: Vec<usize> = (0..block.len()).collect();
        kept.add(block, &all)
    })?;
    progress.end();
    kept.finish(items.path())
}

/// The labelled rows of a table, and the others up to `at_once`.
fn read_mixed(
    items: &Items,
    named: &Path,
    at_once: usize,
    progress: &dyn Progress,
) -> Result<(Option<Table>, PileRows), Error> {
    let mut labelled = BoundedRows::new(usize::MAX);
    let mut pile = BoundedRows::new(at_once);
    progress.start("rows read", Length::Unknown);
    items.for_each_block(|block| {
        progress.advance(block.len() as u64);
        let (with, without): (Vec<usize>, Vec<usize>) = (0..block.len()).partition(|&row| block.labels[row].is_some());
        labelled.add(block.select(&with), &(0..with.len()).collect::<Vec<_>>())?;
        pile.add(block, &without)
    })?;
    progress.end();
    if pile.count == 0 {
        let classes = labelled.table.map(|table| table.classes()).unwrap_or_default();
        return Err(Error::AllLabelled {
            items: named.to_owned(),
            odd: classes.into_iter().find(|label| means_no_label(label)),
        });
    }
    Ok((labelled.table, pile.finish(named)?))
}

/// Rows that are kept until there are too many, and then only counted.
struct BoundedRows {
    most: usize,
    count: usize,
    table: Option<Table>,
}

impl BoundedRows {
    fn new(most: usize) -> Self {
        Self {
            most,
            count: 0,
            table: None,
        }
    }

    fn add(&mut self, block: Table, rows: &[usize]) -> Result<(), Error> {
        self.count += rows.len();
        if self.count > self.most {
            self.table = None;
            return Ok(());
        }
        if rows.is_empty() {
            return Ok(());
        }
        let more = if rows.len() == block.len() {
            block
        } else {
            block.select(rows)
        };
        self.table = Some(match self.table.take() {
            None => more,
            Some(table) => {
                let dim = table.features.dim();
                let mut values = table.features.into_values();
                values.extend_from_slice(more.features.values());
                let (mut ids, mut labels) = (table.ids, table.labels);
                ids.extend(more.ids);
                labels.extend(more.labels);
                let features = Features::new(dim, values)?;
                Table { ids, labels, features }
            }
        });
        Ok(())
    }

    fn finish(self, path: &Path) -> Result<PileRows, Error> {
        match self.table {
            Some(table) => Ok(PileRows::Here(table)),
            None if self.count > 0 => Ok(PileRows::Streamed(self.count)),
            None => Err(Error::NothingToSort { items: path.to_owned() }),
        }
    }
}

/// The examples of a file in which every row has a label.
fn examples_of(path: &Path, table: Table, images: Vec<ImageItem>, progress: &dyn Progress) -> Result<Examples, Error> {
    for label in table.classes() {
        let of_class = table.labels.iter().filter(|other| other.as_ref() == Some(&label));
        note_odd_label(&label, of_class.count(), progress);
    }
    let labelled = table.labels.into_iter().zip(&table.ids).map(|(label, id)| {
        label.ok_or_else(|| Error::UnlabelledExample {
            items: path.to_owned(),
            id: id.clone(),
        })
    });
    let labels: Vec<String> = labelled.collect::<Result<_, _>>()?;
    let support = Support::new(table.features, &labels).map_err(|source| Error::Examples {
        items: path.to_owned(),
        source,
    })?;
    Ok(Examples {
        support,
        ids: table.ids,
        images,
    })
}

fn make_task(options: &DiscoverOptions, support: &Support, queries: Features) -> Result<Task, Error> {
    told_apart(Task::with_prototypes(support, queries, options.prototypes)?)
}

/// A task, unless nothing can tell two of its classes apart.
pub(crate) fn told_apart(task: Task) -> Result<Task, Error> {
    let Some(pair) = task.identical_prototypes() else {
        return Ok(task);
    };
    let [first, second] = [pair.0, pair.1].map(|class| task.classes()[class].clone());
    Err(match task.dim() {
        1 => Error::OneFeature { first, second },
        _ => Error::SameMean { first, second },
    })
}

/// Clusters a whole pile.
fn at_once_found(
    method: &Method,
    options: &DiscoverOptions,
    support: &Support,
    queries: Table,
    rows: &mut dyn Rows,
    progress: &dyn Progress,
) -> Result<(ClusteredItems, Taxonomy, Counts), Error> {
    let task = make_task(options, support, queries.features)?;
    progress.start("clustering", Length::Unknown);
    let discovery = method.discover(&task);
    progress.end();
    let discovery = discovery?;
    let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
    let assignments = taxonomy.assignments_of(&discovery);
    write_rows(rows, &queries.ids, &assignments, &taxonomy, discovery.scenes())?;
    let mut counts = Counts::new(&taxonomy);
    counts.add(&assignments);
    counts.scenes = discovery.scenes().filter(|scenes| !scenes.all_alone()).map(Scenes::len);
    let clustered = ClusteredItems {
        task,
        stop: discovery.stop(),
        ids: queries.ids,
        labels: queries.labels,
        assignments,
        scenes: discovery.scenes().cloned(),
    };
    Ok((clustered, taxonomy, counts))
}

/// A pile that is read again and again.
struct PileBlocks<'a> {
    items: &'a Items,
    only_unlabelled: bool,
    count: usize,
    support: &'a Support,
    progress: &'a dyn Progress,
}

impl Blocks for PileBlocks<'_> {
    type Block = Table;
    type Error = Error;

    fn for_each(&self, mut work: impl FnMut(Table) -> Result<(), Error>) -> Result<(), Error> {
        self.items.for_each_block(|block| {
            let block = match self.only_unlabelled {
                false => block,
                true => {
                    let rows: Vec<usize> = (0..block.len()).filter(|&row| block.labels[row].is_none()).collect();
                    if rows.is_empty() {
                        return Ok(());
                    }
                    block.select(&rows)
                }
            };
            self.progress.advance(block.len() as u64);
            work(block)
        })
    }

    fn features(block: &Table) -> &Features {
        &block.features
    }

    fn examples(&self) -> ExampleIndex {
        self.support.shown()
    }
}

/// Clusters a random subset of a streamed pile, which the items alone decide and not their order, and assigns the rest.
fn two_step(
    method: &Method,
    options: &DiscoverOptions,
    stream: &PileBlocks,
    sink: &mut dyn Rows,
) -> Result<(ClusteredItems, Taxonomy, Counts), Error> {
    let name = |block: &Table, row: usize| (block.ids[row].clone(), block.labels[row].clone());
    let mut counts = None;
    let pile = LargePile {
        blocks: stream,
        count: stream.count,
        support: stream.support,
        progress: stream.progress,
    };
    let found = pile.sort(method, options, name, |block, taxonomy, found| {
        counts.get_or_insert_with(|| Counts::new(taxonomy)).add(found);
        write_rows(sink, &block.ids, found, taxonomy, None)
    })?;
    let Some(SortedPile {
        task,
        stop,
        taxonomy,
        names,
        assignments,
    }) = found
    else {
        return Err(Error::NothingToSort {
            items: stream.items.path().to_owned(),
        });
    };
    let (ids, labels) = names.into_iter().unzip();
    let counts = counts.unwrap_or_else(|| Counts::new(&taxonomy));
    let clustered = ClusteredItems {
        task,
        stop,
        ids,
        labels,
        assignments,
        // They are known of the subset alone, and half a column says nothing.
        scenes: None,
    };
    Ok((clustered, taxonomy, counts))
}

/// A pile that is too large to be clustered at once.
pub(crate) struct LargePile<'a, B> {
    pub(crate) blocks: &'a B,
    pub(crate) count: usize,
    pub(crate) support: &'a Support,
    pub(crate) progress: &'a dyn Progress,
}

/// What came of it.
pub(crate) struct SortedPile<N> {
    /// The items that were clustered, by name, and where they went.
    pub(crate) task: Task,
    pub(crate) names: Vec<N>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) stop: Stop,
    pub(crate) taxonomy: Taxonomy,
}

impl<B: Blocks<Error = Error>> LargePile<'_, B> {
    /// Clusters a random subset and hands on every block with where its items went; nothing comes of no item.
    pub(crate) fn sort<N: Ord>(
        &self,
        method: &Method,
        options: &DiscoverOptions,
        name: impl Fn(&B::Block, usize) -> N,
        mut each: impl FnMut(&B::Block, &Taxonomy, &[Assignment]) -> Result<(), Error>,
    ) -> Result<Option<SortedPile<N>>, Error> {
        let (size, progress) = (options.subset.map_or(SUBSET, NonZeroUsize::get), self.progress);
        progress.note(&Note::TwoStep {
            items: self.count as u64,
            subset: size as u64,
        });
        let two_step = TwoStep {
            method,
            subset: Subset::Random {
                size,
                seed: options.seed,
            },
            centre_norm: options.centre_norm,
            refine: options.refine,
        };
        let passes = 2 + options.refine as u64;
        progress.start("items", Length::Steps(passes * self.count as u64));

        let mut sample = Sample::new(size, options.seed);
        let mut dim = 0;
        self.blocks.for_each(|block| {
            let features = B::features(&block);
            dim = features.dim();
            for (row, item) in features.iter().enumerate() {
                sample.offer(item, || name(&block, row));
            }
            Ok(())
        })?;
        let (chosen, names, values) = sample.finish();
        if names.is_empty() {
            return Ok(None);
        }
        let task = make_task(options, self.support, Features::new(dim, values)?)?;
        let mut of_chosen = vec![None; task.queries()];
        let query = |_: usize, item: &[f32]| chosen.number(item);
        let (discovery, taxonomy) = two_step.run(&task, query, self.blocks, |block, taxonomy, found| {
            for (&assignment, item) in found.iter().zip(B::features(&block).iter()) {
                if let Some(number) = chosen.number(item) {
                    of_chosen[number] = Some(assignment);
                }
            }
            each(&block, taxonomy, &found)
        })?;
        progress.end();
        Ok(Some(SortedPile {
            task,
            names,
            assignments: of_chosen.into_iter().flatten().collect(),
            stop: discovery.stop(),
            taxonomy,
        }))
    }
}

/// What a calibrated method went by, as it goes on after its name.
fn known_by(calibration: &Calibration, support: &Support) -> String {
    let mut counts = vec![0usize; support.classes().len()];
    support.labels().iter().for_each(|&label| counts[label] += 1);
    let fewest = counts.iter().copied().min().unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(0);
    let detail = match (calibration.source(), (fewest, most)) {
        (LearntFrom::Base, _) => String::new(),
        (LearntFrom::Prior, (_, 0)) => ", for there is no example".to_owned(),
        (LearntFrom::Prior, (_, 1)) => ", for there is one example a class".to_owned(),
        (LearntFrom::Prior, _) => String::new(),
        (LearntFrom::Examples, (fewest, most)) if fewest == most => format!(", {most} a class"),
        (LearntFrom::Examples, (fewest, most)) => format!(", {fewest} to {most} a class"),
    };
    knowledge(calibration) + &detail
}

/// Describes the method, its calibration and how it stopped in words.
pub fn how(method: &MethodSpec, knowledge: Option<&str>, stop: Stop) -> String {
    let method = match knowledge {
        None => method.to_string(),
        Some(knowledge) => format!("{method} {knowledge}"),
    };
    match stop {
        Stop::Direct => method,
        Stop::Cut { similarity, .. } => format!("{method}, the next merge was at similarity {similarity:.2}"),
        Stop::Exhausted => format!("{method}, nothing stood in the way of merging everything"),
        Stop::Rounds {
            rounds,
            converged: true,
        } => format!("{method}, {rounds} {}", if rounds == 1 { "round" } else { "rounds" }),
        Stop::Rounds {
            rounds,
            converged: false,
        } => format!("{method}, not converged after {rounds} rounds"),
        Stop::Communities { neighbours } => format!("{method}, by {neighbours} shared neighbours"),
        Stop::Likeliest { size } => format!("{method}, {size:.0} items a category"),
        Stop::Estimated {
            categories,
            labelled_accuracy,
        } => {
            format!(
                "{method}, {categories} categories put {:.0} % of the examples right",
                100.0 * labelled_accuracy
            )
        }
    }
}
