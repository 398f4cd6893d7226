//! The page that shows what was found.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use genus_core::explain::{CategoryTree, confusable, nearest_categories, rivals, ties};
use genus_core::projection::Projection;
use genus_core::{Assignment, Features, MergeTree, Scenes, Stop, Task, Taxonomy};
use genus_data::{DataError, ImageItem, TableOptions, for_each_cell};
use genus_files::{AtomicFile, FileError};
use genus_report::{
    Category, Communities, Example, Item, NeighbourTies, Pictures, Provenance, Report, Slot, Truth, Why,
};
use genus_vision::{EncodeError, ImageSource, Limits, with_decoded};
use rayon::prelude::*;

use crate::counts::Counts;
use crate::discover::Inputs;
use crate::{Error, Length, Progress};

/// The name of the page in a folder of results.
pub const REPORT_FILE: &str = "report.html";
/// Categories of the tree.
const IN_TREE: usize = 48;
/// Neighbours of a category that are looked for.
const NEAREST: usize = 4;
/// The column that has the labels, and the word for the folders of images.
const LABEL: &str = "label";

/// The page of a discovery, and what it is to say about the items.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    truth: Option<ItemCells>,
    text: Option<ItemCells>,
}

/// Where something about the items stands.
#[derive(Clone, Debug)]
enum ItemCells {
    /// Beside the features: what the pile is labelled.
    Labels,
    /// In a column of a table, by the best of some names.
    Column(PathBuf, Vec<String>, TableOptions),
}

impl Page {
    /// A page of the pile of some inputs. What the items really are (`truth`) and what they say (`text`) is a table with a
    /// column of that name, or a column of the pile; `label` is for the labels of the pile. Both are looked at before any work is
    /// done.
    pub fn new(inputs: &Inputs, tables: &TableOptions, truth: Option<&str>, text: Option<&str>) -> Result<Self, Error> {
        let pile = inputs.pile().path();
        let mixed = matches!(inputs, Inputs::Mixed(_));
        let cells = |named: Option<&str>, columns: &[&str]| {
            let found = named.map(|named| find_cells(named, columns, pile, mixed, tables));
            found.transpose()
        };
        Ok(Self {
            title: title(pile),
            truth: cells(truth, &["truth", LABEL])?,
            text: cells(text, &["text"])?,
        })
    }

    /// How right a discovery is by the truth that the page was told of, if it was.
    pub(crate) fn judge(&self, found: &PageContents) -> Result<Option<Truth>, Error> {
        let ReportSource { task, taxonomy, .. } = found.described;
        let truths = look_up(&self.truth, found.described.ids, found.labels)?;
        Ok(truths.map(|truths| {
            let of_items: Vec<usize> = found.described.assignments.iter().map(|found| found.category).collect();
            Truth::judge(task.classes(), taxonomy.entries().len(), &of_items, &truths).0
        }))
    }

    /// Makes the page. What is told of the truth is looked up here.
    pub(crate) fn make(&self, found: PageContents, progress: &dyn Progress) -> Result<Report, Error> {
        let mut report = self.describe(&found, progress)?;
        add_pictures(&mut report, &found, progress)?;
        Ok(report)
    }

    /// Describes what was found, but for its pictures.
    fn describe(&self, found: &PageContents, progress: &dyn Progress) -> Result<Report, Error> {
        let ReportSource { ids, examples, .. } = found.described;
        let texts = look_up(&self.text, ids, found.labels)?;
        let truths = look_up(&self.truth, ids, found.labels)?;
        progress.start("drawing the map", Length::Unknown);
        let mut report = describe(&ReportSource {
            truths: truths.as_deref(),
            ..found.described
        });
        progress.end();
        report.title = self.title.clone();
        report.made = found.made.clone();
        if let Some(texts) = texts {
            let items = report.items.iter_mut().zip(texts);
            items.for_each(|(item, text)| item.text = text);
        }
        if let Some(ItemCells::Column(path, columns, tables)) = &self.text {
            // The examples may be in the same table.
            let texts = column(path, columns, tables, examples)?;
            let examples = report.examples.iter_mut().zip(texts);
            examples.for_each(|(example, text)| example.text = text);
        }
        Ok(report)
    }
}

/// What a page shows: a discovery, or items that were assigned to a taxonomy.
pub(crate) struct PageContents<'a> {
    pub(crate) described: ReportSource<'a>,
    /// The labels that the items came with.
    pub(crate) labels: &'a [Option<String>],
    pub(crate) made: Provenance,
    /// The images that the items and the examples are, where they are images.
    pub(crate) images: &'a [ImageItem],
    pub(crate) example_images: &'a [ImageItem],
    pub(crate) limits: &'a Limits,
}

/// Adds small pictures of the images, as many as the page has room for.
fn add_pictures(report: &mut Report, found: &PageContents, progress: &dyn Progress) -> Result<(), Error> {
    illustrate(report, found.images, found.example_images, found.limits, progress)
}

/// Adds small pictures of images to a report, as many as the page has room for. Items and examples are found by their ids.
pub fn illustrate(
    report: &mut Report,
    pile: &[ImageItem],
    examples: &[ImageItem],
    limits: &Limits,
    progress: &dyn Progress,
) -> Result<(), Error> {
    if pile.is_empty() && examples.is_empty() {
        return Ok(());
    }
    if !pile.is_empty() {
        report.things = ["image", "images"].map(str::to_owned);
    }
    let by_id = |images: &[ImageItem]| -> HashMap<String, ImageItem> {
        images.iter().map(|item| (item.id.clone(), item.clone())).collect()
    };
    let (examples, pile) = (by_id(examples), by_id(pile));
    let pictures = Pictures::choose(report);
    let side = pictures.side();
    progress.start("pictures", Length::Steps(pictures.len() as u64));
    pictures.fill(report, |report, slots| {
        let made = slots.par_iter().map(|slot| {
            let image = match *slot {
                Slot::Example(at) => examples.get(&report.examples[at].id),
                Slot::Item(at) => pile.get(&report.items[at].id),
            };
            image.map_or(Ok(None), |image| picture(image, limits, side))
        });
        let made = made.collect();
        progress.advance(slots.len() as u64);
        made
    })?;
    progress.end();
    Ok(())
}

/// A small picture of an image. What could be embedded can be shown, unless the file has gone since: then it is only named.
fn picture(image: &ImageItem, limits: &Limits, side: usize) -> Result<Option<Vec<u8>>, Error> {
    let read = ImageSource::new(&image.path, image.pixels).read(limits);
    match read.and_then(|bytes| with_decoded(&bytes, limits, |image| image.thumbnail(side))) {
        Ok(picture) => Ok(picture),
        Err(source) if source.is_shortage() => {
            let path = image.path.clone();
            Err(EncodeError::Shortage { path, source }.into())
        }
        Err(_) => Ok(None),
    }
}

/// What a report is made from.
#[derive(Clone, Copy)]
pub struct ReportSource<'a> {
    /// The examples and the items.
    pub task: &'a Task,
    /// The categories.
    pub taxonomy: &'a Taxonomy,
    /// How many items they have.
    pub counts: &'a Counts,
    /// How the method stopped.
    pub stop: Stop,
    /// Where the items went.
    pub assignments: &'a [Assignment],
    /// Which items are of one scene, where that was looked for.
    pub scenes: Option<&'a Scenes>,
    /// What the items are called.
    pub ids: &'a [String],
    /// What the examples are called.
    pub examples: &'a [String],
    /// The true classes of the items, where they are known.
    pub truths: Option<&'a [Option<String>]>,
    /// The seed of the map.
    pub seed: u64,
}

/// Everything about a discovery but its title, its texts and its pictures.
pub fn describe(described: &ReportSource) -> Report {
    let ReportSource { task, taxonomy, .. } = *described;
    let entries = taxonomy.entries();
    let known = task.known();
    let of_items: Vec<usize> = described
        .assignments
        .iter()
        .map(|assignment| assignment.category)
        .collect();
    // What was sorted in a space of its own is shown in it.
    let in_space = |rows: &Features| match taxonomy.calibration() {
        Some(calibration) => calibration.transform(rows),
        None => rows.clone(),
    };
    let points = in_space(task.points());
    let items = points.select(&(known..points.rows()).collect::<Vec<_>>());
    let centres = taxonomy.centres();
    let centres = centres.clone().into_unit().unwrap_or_else(|_| centres.clone());
    let rivals = rivals(&items, &of_items, &centres);
    let margins: Vec<f32> = described
        .assignments
        .iter()
        .map(|assignment| assignment.score.margin)
        .collect();

    let kind = match described.stop {
        Stop::Cut { .. } | Stop::Exhausted => Some(MergeTree::Average),
        Stop::Likeliest { .. } => Some(MergeTree::Ward),
        _ => None,
    };
    let tree = kind.map(|kind| {
        let of_points: Vec<usize> = (0..known).chain(of_items.iter().copied()).collect();
        // Known classes first, then the largest groups: that is their order.
        let chosen: Vec<usize> = (0..entries.len().min(IN_TREE)).collect();
        CategoryTree::of(kind, &points, &of_points, &chosen)
    });

    let support = in_space(task.support());
    let (communities, tied) = match described.stop {
        Stop::Communities { neighbours } => {
            let (communities, tied) = communities(described, &of_items, &support, &in_space, neighbours);
            (Some(communities), tied)
        }
        _ => (None, Vec::new()),
    };

    let mut rows = items.into_values();
    rows.extend(support.into_values());
    let places = Features::new(task.dim(), rows).ok().map(|rows| {
        let way = Projection::Tsne.for_count(rows.rows());
        (way, way.points(&rows, described.seed))
    });
    let place = |at: usize| places.as_ref().and_then(|(_, places)| places.get(at).copied());

    let judged = described
        .truths
        .map(|truths| Truth::judge(task.classes(), entries.len(), &of_items, truths));
    let items = described.assignments.iter().enumerate().map(|(at, assignment)| Item {
        id: described.ids[at].clone(),
        category: assignment.category,
        score: assignment.score,
        rival: rivals[at],
        place: place(at),
        text: None,
        picture: None,
        truth: judged.as_ref().and_then(|(_, numbers)| numbers[at]),
        scene: described.scenes.map(|scenes| scenes.of()[at]),
        tied: tied.get(at).cloned().flatten(),
    });
    let labels = task.support_labels().iter().enumerate();
    let examples = labels.map(|(at, &class)| Example {
        id: described.examples.get(at).cloned().unwrap_or_default(),
        class,
        place: place(described.assignments.len() + at),
        ..Example::default()
    });
    let categories = entries.iter().enumerate().map(|(at, entry)| Category {
        name: entry.name.clone(),
        kind: entry.kind,
        items: described.counts.items[at],
        unsure: described.counts.unsure[at],
        parent: None,
    });
    Report {
        title: String::new(),
        things: ["item", "items"].map(str::to_owned),
        made: Provenance::default(),
        categories: categories.collect(),
        items: items.collect(),
        examples: examples.collect(),
        projection: places.as_ref().map(|(way, _)| match way {
            Projection::Tsne => "t-SNE".to_owned(),
            Projection::Pca => "the two principal components".to_owned(),
        }),
        why: Why {
            tree,
            communities,
            cut: match described.stop {
                Stop::Cut { similarity, .. } => Some(similarity),
                _ => None,
            },
            doubt: taxonomy.calibration().map(|calibration| calibration.doubt() as f32),
            nearest: nearest_categories(&centres, NEAREST),
            confusable: confusable(&margins, &of_items, &rivals),
        },
        truth: judged.map(|(truth, _)| truth),
        history: Vec::new(),
        asked: Vec::new(),
    }
}

/// What ties the items to their categories, and these to each other. As when they were sorted, a scene is one, and the examples
/// take part.
fn communities(
    described: &ReportSource,
    of_items: &[usize],
    support: &Features,
    in_space: &dyn Fn(&Features) -> Features,
    neighbours: usize,
) -> (Communities, Vec<Option<NeighbourTies>>) {
    let task = described.task;
    let alone = || Scenes::from_numbers(&(0..of_items.len()).collect::<Vec<_>>());
    let scenes = match described.scenes {
        Some(scenes) if scenes.items() == of_items.len() => scenes.clone(),
        _ => alone(),
    };
    let queries: Vec<usize> = (task.known()..task.points().rows()).collect();
    let mut rows = in_space(&scenes.collapse(&task.points().select(&queries))).into_values();
    rows.extend_from_slice(support.values());
    let category_of = |scene: usize| of_items[scenes.representative(scene)];
    let of_scenes = (0..scenes.len()).map(category_of);
    let of_points: Vec<usize> = of_scenes.chain(task.support_labels().iter().copied()).collect();
    let found = Features::new(task.dim(), rows)
        .ok()
        .and_then(|rows| ties(&rows, &of_points, neighbours));
    let Some(found) = found else {
        let nothing = Communities {
            neighbours,
            links: None,
        };
        return (nothing, Vec::new());
    };
    let slot = |point: usize| match point.checked_sub(scenes.len()) {
        Some(example) => Slot::Example(example),
        None => Slot::Item(scenes.representative(point)),
    };
    let tied = scenes.of().iter().zip(of_items).map(|(&scene, &own)| {
        // What was assigned later may have parted a scene.
        let ties = Some(&found.points[scene]).filter(|_| category_of(scene) == own)?;
        Some(NeighbourTies {
            own: ties.own,
            nearest: ties.nearest.iter().copied().map(slot).collect(),
        })
    });
    let tied = tied.collect();
    let communities = Communities {
        neighbours: found.neighbours,
        links: Some(found.links),
    };
    (communities, tied)
}

/// Begins a page in a folder; it appears when it is committed.
pub fn begin_page(report: &Report, folder: &Path) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create_own(folder.join(REPORT_FILE))?;
    file.append(report.html().as_bytes())?;
    Ok(file)
}

/// Removes the page of an earlier run, so that it is never beside the numbers of this one.
pub(crate) fn remove_page(folder: &Path) -> Result<(), Error> {
    let path = folder.join(REPORT_FILE);
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(FileError::write(path.display(), source).into())
        }
        _ => Ok(()),
    }
}

/// What a pile is called: the name of its folder or file.
fn title(pile: &Path) -> String {
    match pile.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "the pile".to_owned(),
    }
}

/// Finds where something stands, and that it is there.
fn find_cells(
    named: &str,
    columns: &[&str],
    pile: &Path,
    mixed: bool,
    tables: &TableOptions,
) -> Result<ItemCells, Error> {
    let (path, columns) = if Path::new(named).is_file() {
        (Path::new(named), columns.to_vec())
    } else if named == LABEL && !mixed {
        return Ok(ItemCells::Labels);
    } else if pile.is_dir() || pile == Path::new("-") {
        return Err(Error::NoSuchColumn {
            named: named.to_owned(),
            column: columns[0].to_owned(),
            pile: pile.to_owned(),
        });
    } else {
        (pile, vec![named])
    };
    // What is said about the pile is not said about another file, but for what its ids are called.
    let tables = match path == pile {
        true => tables.clone(),
        false => TableOptions {
            id: tables.id.clone(),
            ..TableOptions::default()
        },
    };
    for_each_cell(path, &columns, &tables, |_, _| false).map_err(|source| match source {
        DataError::Malformed { .. } if path == pile => Error::NoSuchFile {
            source: Box::new(source),
            named: named.to_owned(),
        },
        other => other.into(),
    })?;
    let columns = columns.into_iter().map(str::to_owned).collect();
    Ok(ItemCells::Column(path.to_owned(), columns, tables))
}

/// The cells of each item; an error when that is nothing about any.
fn look_up(
    cells: &Option<ItemCells>,
    ids: &[String],
    labels: &[Option<String>],
) -> Result<Option<Vec<Option<String>>>, Error> {
    let (found, nothing) = match cells {
        None => return Ok(None),
        Some(ItemCells::Labels) => (labels.to_vec(), Error::PileWithoutLabels),
        Some(ItemCells::Column(path, columns, tables)) => {
            let nothing = Error::NoneOfTheIds { table: path.clone() };
            (column(path, columns, tables, ids)?, nothing)
        }
    };
    match found.iter().all(Option::is_none) {
        true => Err(nothing),
        false => Ok(Some(found)),
    }
}

/// The cells of a column for some ids.
fn column(
    path: &Path,
    columns: &[String],
    tables: &TableOptions,
    ids: &[String],
) -> Result<Vec<Option<String>>, Error> {
    let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut cells = HashMap::new();
    for_each_cell(path, &columns, tables, |id, cell| {
        if wanted.contains(id.as_str()) {
            cells.insert(id, cell);
        }
        true
    })?;
    Ok(ids.iter().map(|id| cells.remove(id)).collect())
}
