//! `genus discover`: a pile sorted into known classes and new categories.

use std::path::Path;
use std::time::Instant;

use genus_core::methods::{self, Method};
use genus_core::{
    Assignment, Calibration, CentreNorm, Discover as _, Discovery, Features, Sample, Scenes, Source, Stop, Support,
    Task, TaskError, Taxonomy,
};
use genus_data::{
    CalibrationOrigin, DataError, ImageItem, Origin, Table, TableReader, read_table, same_encoder, write_taxonomy,
};
use genus_lab::Progress;
use genus_lab::training::trained_calibration;
use genus_report::Made;

use crate::args::{Discover, Global};
use crate::assign::check_dim;
use crate::blocks;
use crate::calibrate::{Given, knowledge};
use crate::failure::Failure;
use crate::images::{Embedder, Input};
use crate::next_steps::NextSteps;
use crate::output::Sink;
use crate::progress::Bar;
use crate::report;
use crate::summary::{self, Counts};

/// With more queries than this a subset is clustered and the rest assigned.
const AT_ONCE: usize = 20_000;
/// The size of that subset.
const SUBSET: usize = 5_000;
/// The way out where examples are no examples.
const WITHOUT_EXAMPLES: &str = "to sort without examples, leave out --support";

pub(crate) fn run(args: &Discover, global: &Global) -> Result<(), Failure> {
    let start = Instant::now();
    let (method, given) = make_method(args, global)?;
    let pile_path = args
        .query
        .as_deref()
        .or(args.table.as_deref())
        .unwrap_or(Path::new("the pile"));
    let next = NextSteps::new(&args.next, &args.output, pile_path, &args.method)?;
    let mut sink = Sink::open(&args.output, next, false)?;
    let at_once = args.subset.map_or(AT_ONCE, |subset| subset.get());
    let subset = args.subset.map_or(SUBSET, |subset| subset.get());
    let wanted = report::Wanted::new(args)?;
    let (examples, pile) = read_input(args, at_once, global)?;
    let support = &examples.support;
    if let Some(given) = &given {
        given.check(examples_path(args), support.features().dim(), pile.encoder.as_deref())?;
    }

    let found = match pile.rows {
        Rows::Here(queries) => {
            let task = make_task(args, support, queries.features)?;
            let discovery = working(global, || method.discover(&task))?;
            let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
            let assignments = assignments(&discovery, &taxonomy);
            sink.write(&queries.ids, &assignments, &taxonomy, discovery.scenes())?;
            let mut counts = Counts::new(&taxonomy);
            counts.add(&assignments);
            counts.scenes = discovery.scenes().filter(|scenes| !scenes.all_alone()).map(Scenes::len);
            Found {
                task,
                taxonomy,
                counts,
                stop: discovery.stop(),
                ids: queries.ids,
                labels: queries.labels,
                assignments,
                scenes: discovery.scenes().cloned(),
            }
        }
        Rows::Streamed(count) => {
            let stream = Stream {
                pile: pile.input.path(),
                only_unlabelled: pile.only_unlabelled,
                count,
            };
            two_step(args, global, &method, support, &stream, subset, &mut sink)?
        }
    };
    let found = Found {
        taxonomy: found.taxonomy.with_items(&found.counts.items),
        ..found
    };
    let taxonomy = &found.taxonomy;
    sink.plan(&pile.input)?;
    let known_by = taxonomy
        .calibration()
        .map(|calibration| KnownBy::new(calibration, support));
    let how = how(&args.method, known_by.as_ref(), found.stop);
    let page = match (wanted, sink.folder()) {
        (Some(wanted), Some(folder)) => {
            let made = Made {
                method: args.method.clone(),
                how: how.clone(),
                encoder: report::encoder_name(args, pile.input.images(), pile.encoder.as_deref()),
                seed: global.seed,
                seconds: start.elapsed().as_secs_f64(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let mut report = wanted.describe(&found, &examples, made, global)?;
            wanted.add_pictures(&mut report, &examples.images, pile.input.images(), global)?;
            Some(report::write(&report, folder)?)
        }
        _ => None,
    };
    if let Some(folder) = sink.folder() {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let of_examples = CalibrationOrigin {
            encoder: pile.encoder.clone(),
            fitted_on: match examples.is_empty() {
                true => format!("{}, without examples", examples_path(args).display()),
                false => format!("the examples of {}", examples_path(args).display()),
            },
            version: version.clone(),
            seed: global.seed,
        };
        let made = Origin {
            method: args.method.clone(),
            seed: global.seed,
            version,
            encoder: pile.encoder,
            growing: None,
            calibration: Some(given.map_or(of_examples, |given| given.made)),
        };
        write_taxonomy(folder, taxonomy, &made)?;
    }
    let folder = sink.folder().map(Path::to_owned);
    let done = sink.finish(global)?;
    if let Some(page) = page {
        page.commit()?;
    }
    if !global.quiet {
        say_as_is!("{}", summary::text(taxonomy, &found.counts, &how, start.elapsed()));
        if examples.is_empty() {
            say!("There is no labelled example, so everything is new.");
        }
        if known_by.is_some_and(|known_by| known_by.is_little()) {
            say!("More examples, or base classes (genus calibrate), make it surer.");
        }
        if let Some(folder) = folder {
            say!("Written to {}", folder.display());
            if !args.report.no_report {
                say!("Open {} in a browser", folder.join(report::FILE).display());
            }
        }
    }
    done.say(global);
    Ok(())
}

/// The method, and the calibration that it was given.
fn make_method(args: &Discover, global: &Global) -> Result<(Method, Option<Given>), Failure> {
    let method = Method::parse(&args.method, global.seed)?;
    if args.second_step.centre_norm == CentreNorm::AuthorsColumns && args.method.starts_with("calibrated") {
        return Err(Failure::Usage(
            "--centre-norm authors-columns is not for the method calibrated, which judges by cosines; choose another as in \
             --method shc"
                .into(),
        ));
    }
    // A method that would take a calibration says how it is to be made.
    let takes_one = method.calibration_settings().is_some();
    // A trained encoder brings its own.
    let own = trained_calibration(&args.images.encoder.encoder).filter(|_| takes_one);
    let Some(path) = args.calibration.as_ref().or(own.as_ref()) else {
        return Ok((method, None));
    };
    if !takes_one {
        return Err(Failure::Usage(format!(
            "the method {} has no use for --calibration; leave it out, or use --method calibrated",
            args.method
        )));
    }
    let given = Given::read(path)?;
    let known = methods::Given {
        seed: global.seed,
        calibration: Some(given.calibration.clone()),
    };
    Ok((Method::with(&args.method, &known)?, Some(given)))
}

/// Where the examples come from or, without any, the pile.
fn examples_path(args: &Discover) -> &Path {
    let path = args.support.as_deref().or(args.table.as_deref());
    path.or(args.query.as_deref()).unwrap_or(Path::new("the examples"))
}

/// The labelled examples, with what they are called.
pub(crate) struct Examples {
    pub(crate) support: Support,
    pub(crate) ids: Vec<String>,
    /// The images that they are, where they are images.
    pub(crate) images: Vec<ImageItem>,
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

    fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// What a discovery found: the categories of all items, and the items that were clustered.
pub(crate) struct Found {
    pub(crate) task: Task,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) counts: Counts,
    pub(crate) stop: Stop,
    /// What the queries of the task are called, the labels that they came with, and where they went.
    pub(crate) ids: Vec<String>,
    pub(crate) labels: Vec<Option<String>>,
    pub(crate) assignments: Vec<Assignment>,
    /// Which of them are of one scene, where that was looked for among all of the pile.
    pub(crate) scenes: Option<Scenes>,
}

/// The pile: in memory when it can be clustered at once, else to be read again block by block.
struct Pile {
    input: Input,
    only_unlabelled: bool,
    rows: Rows,
    /// What made the features, when their files say so.
    encoder: Option<String>,
}

enum Rows {
    Here(Table),
    Streamed(usize),
}

/// Reads the examples and, up to `at_once` rows, the pile.
fn read_input(args: &Discover, at_once: usize, global: &Global) -> Result<(Examples, Pile), Failure> {
    let mut embedder = Embedder::new(&args.images, global);
    match (&args.table, &args.support, &args.query) {
        (Some(table), ..) => {
            let input = embedder.input(table, false)?;
            let reader = TableReader::open(input.path())?;
            let (encoder, dim) = (reader.encoder().map(str::to_owned), reader.dim());
            drop(reader);
            let (labelled, rows) = read_mixed(&input, table, at_once, global)?;
            let pile = Pile {
                input,
                only_unlabelled: true,
                rows,
                encoder,
            };
            // What has no label is not looked for among the examples.
            let images = pile.input.images().to_vec();
            let examples = match labelled {
                Some(labelled) => examples_of(table, labelled, images)?,
                None => Examples::none(dim),
            };
            Ok((examples, pile))
        }
        (None, support, Some(query)) => {
            let mut given = None;
            if let Some(path) = support {
                let input = embedder.input(path, true)?;
                let examples = read_table(input.path()).map_err(|e| match e {
                    DataError::NoRows { .. } => Failure::failed(format!("{e}; {WITHOUT_EXAMPLES}")),
                    other => other.into(),
                })?;
                given = Some((path, examples, input.images().to_vec()));
            }
            let input = embedder.input(query, false)?;
            let reader = TableReader::open(input.path())?;
            let mut encoder = reader.encoder().map(str::to_owned);
            let examples = match given {
                Some((path, examples, images)) => {
                    same_encoder((path, examples.encoder.as_deref()), (query, reader.encoder()))?;
                    encoder = examples.encoder.or(encoder);
                    let examples = examples_of(path, examples.table, images)?;
                    check_dim(path, examples.support.features().dim(), query, reader.dim())?;
                    examples
                }
                None => Examples::none(reader.dim()),
            };
            let rows = match reader.rows() {
                Some(rows) if rows > at_once as u64 => Rows::Streamed(usize::try_from(rows).unwrap_or(usize::MAX)),
                _ => read_up_to(input.path(), at_once, global)?,
            };
            let pile = Pile {
                input,
                only_unlabelled: false,
                rows,
                encoder,
            };
            Ok((examples, pile))
        }
        _ => Err(Failure::Usage(
            "name one TABLE, or --query and, where there are examples, --support".into(),
        )),
    }
}

/// The pile of a file of its own; only counted once it has more rows than are kept.
fn read_up_to(path: &Path, at_once: usize, global: &Global) -> Result<Rows, Failure> {
    let mut kept = Kept::new(at_once);
    let bar = Bar::new(global);
    bar.spin("rows read");
    blocks::for_each(path, |block| {
        bar.add(block.len() as u64);
        let all: Vec<usize> = (0..block.len()).collect();
        kept.add(block, &all)
    })?;
    kept.finish(path)
}

/// The labelled rows of a table, and the others up to `at_once`.
fn read_mixed(input: &Input, named: &Path, at_once: usize, global: &Global) -> Result<(Option<Table>, Rows), Failure> {
    let mut labelled = Kept::new(usize::MAX);
    let mut pile = Kept::new(at_once);
    let bar = Bar::new(global);
    bar.spin("rows read");
    blocks::for_each(input.path(), |block| {
        bar.add(block.len() as u64);
        let (with, without): (Vec<usize>, Vec<usize>) = (0..block.len()).partition(|&row| block.labels[row].is_some());
        labelled.add(block.select(&with), &(0..with.len()).collect::<Vec<_>>())?;
        pile.add(block, &without)
    })?;
    if pile.count == 0 {
        return Err(Failure::failed(format!(
            "{}: every item has a label, so there is nothing to sort; leave the label of the pile's items empty",
            named.display()
        )));
    }
    Ok((labelled.table, pile.finish(named)?))
}

/// Rows that are kept until there are too many, and then only counted.
struct Kept {
    most: usize,
    count: usize,
    table: Option<Table>,
}

impl Kept {
    fn new(most: usize) -> Self {
        Self {
            most,
            count: 0,
            table: None,
        }
    }

    fn add(&mut self, block: Table, rows: &[usize]) -> Result<(), Failure> {
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
                let features = Features::new(dim, values).map_err(|e| Failure::failed(e.to_string()))?;
                Table { ids, labels, features }
            }
        });
        Ok(())
    }

    fn finish(self, path: &Path) -> Result<Rows, Failure> {
        match self.table {
            Some(table) => Ok(Rows::Here(table)),
            None if self.count > 0 => Ok(Rows::Streamed(self.count)),
            None => Err(Failure::failed(format!("{}: there is nothing to sort", path.display()))),
        }
    }
}

/// The examples of a file in which every row has a label.
fn examples_of(path: &Path, table: Table, images: Vec<ImageItem>) -> Result<Examples, Failure> {
    let labels: Vec<String> = table
        .labels
        .into_iter()
        .zip(&table.ids)
        .map(|(label, id)| {
            label.ok_or_else(|| {
                Failure::failed(format!(
                    "{}: item \"{id}\" has no label, and every row of --support needs one; if the file also holds the \
                     pile, run `genus discover {0}`; {WITHOUT_EXAMPLES}",
                    path.display()
                ))
            })
        })
        .collect::<Result<_, _>>()?;
    let support =
        Support::new(table.features, &labels).map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
    Ok(Examples {
        support,
        ids: table.ids,
        images,
    })
}

fn make_task(args: &Discover, support: &Support, queries: Features) -> Result<Task, Failure> {
    let task = Task::with_prototypes(support, queries, args.prototypes.kind).map_err(|e| {
        let way_out = match e {
            TaskError::ZeroPrototype { .. } => "; check its examples",
            _ => "",
        };
        Failure::failed(format!("{e}{way_out}"))
    })?;
    if let Some((a, b)) = task.identical_prototypes() {
        let (a, b) = (&task.classes()[a], &task.classes()[b]);
        if task.dim() == 1 {
            return Err(Failure::failed(format!(
                "the items have one feature, and items are compared by their direction: all numbers of one sign are alike, \
                 so nothing can tell classes `{a}` and `{b}` apart; use features of two or more columns"
            )));
        }
        return Err(Failure::failed(format!(
            "the examples of classes `{a}` and `{b}` have the same mean, so nothing can tell them apart; give them one \
             label or other examples"
        )));
    }
    Ok(task)
}

/// Shows that something is going on while a method works.
fn working<T>(global: &Global, work: impl FnOnce() -> T) -> T {
    let bar = Bar::new(global);
    bar.spin("clustering");
    work()
}

pub(crate) fn assignments(discovery: &Discovery, taxonomy: &Taxonomy) -> Vec<Assignment> {
    let queries = discovery.categories().iter().zip(discovery.scores());
    let assignment = |(&category, &score)| Assignment {
        category: taxonomy.index_of(category),
        score,
    };
    queries.map(assignment).collect()
}

/// A pile that is read again and again.
struct Stream<'a> {
    pile: &'a Path,
    only_unlabelled: bool,
    count: usize,
}

impl Stream<'_> {
    /// Hands every block of the pile to `work`.
    fn for_each(&self, mut work: impl FnMut(Table) -> Result<(), Failure>) -> Result<(), Failure> {
        blocks::for_each(self.pile, |block| {
            if !self.only_unlabelled {
                return work(block);
            }
            let rows: Vec<usize> = (0..block.len()).filter(|&row| block.labels[row].is_none()).collect();
            match rows.is_empty() {
                true => Ok(()),
                false => work(block.select(&rows)),
            }
        })
    }
}

/// Clusters a random subset of a streamed pile, which the items alone decide and not their order, and assigns the rest.
fn two_step(
    args: &Discover,
    global: &Global,
    method: &Method,
    support: &Support,
    stream: &Stream,
    subset: usize,
    sink: &mut Sink,
) -> Result<Found, Failure> {
    if !global.quiet {
        say!(
            "{} items: clustering {} of them, assigning the rest",
            summary::thousands(stream.count as u64),
            summary::thousands(subset as u64)
        );
    }
    let passes = 2 + args.second_step.refine as u64;
    let bar = Bar::new(global);
    bar.start("items", passes * stream.count as u64);

    let mut sample = Sample::new(subset, global.seed);
    let mut dim = 0;
    stream.for_each(|block| {
        dim = block.features.dim();
        for (row, item) in block.features.iter().enumerate() {
            sample.offer(item, || (block.ids[row].clone(), block.labels[row].clone()));
        }
        bar.add(block.len() as u64);
        Ok(())
    })?;
    let (chosen, names, values) = sample.finish();
    let (ids, labels) = names.into_iter().unzip();
    let features =
        Features::new(dim, values).map_err(|e| Failure::failed(format!("{}: {e}", stream.pile.display())))?;
    let task = make_task(args, support, features.clone())?;
    let discovery = method.discover(&task)?;
    let mut taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);

    let prototypes = task.points().select(&(0..task.known()).collect::<Vec<_>>());
    for _ in 0..args.second_step.refine {
        let mut pass = taxonomy.refinement(&prototypes);
        stream.for_each(|block| {
            bar.add(block.len() as u64);
            Ok(pass.add(&block.features)?)
        })?;
        taxonomy = pass.finish();
    }
    if args.second_step.centre_norm == CentreNorm::AuthorsColumns {
        taxonomy = taxonomy.with_authors_column_norm();
    }

    // What is equal to an example has its label, as it has where all are clustered.
    let shown = taxonomy.calibration().map(|_| support.shown());
    let assign = |items: &Features| -> Result<Vec<Assignment>, Failure> {
        let mut found = taxonomy.assign(items)?;
        for (assignment, item) in found.iter_mut().zip(items.iter()) {
            if let Some(class) = shown.as_ref().and_then(|shown| shown.class_of(item)) {
                *assignment = taxonomy.put(item, class);
            }
        }
        Ok(found)
    };
    // What the method decided stands, unless the centres have moved since.
    let of_chosen = match args.second_step.refine {
        0 => assignments(&discovery, &taxonomy),
        _ => assign(&features)?,
    };
    let mut counts = Counts::new(&taxonomy);
    stream.for_each(|block| {
        let mut found = assign(&block.features)?;
        for (assignment, item) in found.iter_mut().zip(block.features.iter()) {
            if let Some(number) = chosen.number(item) {
                *assignment = of_chosen[number];
            }
        }
        counts.add(&found);
        sink.write(&block.ids, &found, &taxonomy, None)?;
        bar.add(block.len() as u64);
        Ok(())
    })?;
    Ok(Found {
        task,
        taxonomy,
        counts,
        stop: discovery.stop(),
        ids,
        labels,
        assignments: of_chosen,
        // They are known of the subset alone, and half a column says nothing.
        scenes: None,
    })
}

/// What a calibrated method went by.
pub(crate) struct KnownBy<'a> {
    calibration: &'a Calibration,
    /// The fewest and the most examples of a class.
    shots: (usize, usize),
}

impl<'a> KnownBy<'a> {
    fn new(calibration: &'a Calibration, support: &Support) -> Self {
        let mut counts = vec![0usize; support.classes().len()];
        support.labels().iter().for_each(|&label| counts[label] += 1);
        let fewest = counts.iter().copied().min().unwrap_or(0);
        let most = counts.iter().copied().max().unwrap_or(0);
        Self {
            calibration,
            shots: (fewest, most),
        }
    }

    /// Whether it had to do with what other encoders say.
    fn is_little(&self) -> bool {
        self.calibration.source() == Source::Prior
    }

    /// As it goes on after the method's name.
    fn text(&self) -> String {
        let detail = match (self.calibration.source(), self.shots) {
            (Source::Base, _) => String::new(),
            (Source::Prior, (_, 0)) => ", for there is no example".to_owned(),
            (Source::Prior, (_, 1)) => ", for there is one example a class".to_owned(),
            (Source::Prior, _) => String::new(),
            (Source::Examples, (fewest, most)) if fewest == most => format!(", {most} a class"),
            (Source::Examples, (fewest, most)) => format!(", {fewest} to {most} a class"),
        };
        knowledge(self.calibration) + &detail
    }
}

/// The method, what it went by and how it came to its end, in words.
pub(crate) fn how(method: &str, known_by: Option<&KnownBy>, stop: Stop) -> String {
    let method = match known_by {
        None => method.to_owned(),
        Some(known_by) => format!("{method} {}", known_by.text()),
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
