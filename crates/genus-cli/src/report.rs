//! The page that shows what was found.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use genus_core::explain::{CategoryTree, confusable, nearest_categories, rivals};
use genus_core::projection::Projection;
use genus_core::{Assignment, Features, MergeTree, Scenes, Stop, Task, Taxonomy};
use genus_data::{AtomicFile, DataError, ImageItem, for_each_cell};
use genus_lab::{Progress as _, image_source};
use genus_report::{Category, Example, Item, Made, Pictures, Report, Slot, Truth, Why};
use genus_vision::{Limits, decode};
use rayon::prelude::*;

use crate::args::{Discover, Global};
use crate::discover::{Examples, Found};
use crate::failure::Failure;
use crate::images::limits;
use crate::progress::Bar;
use crate::summary::Counts;

/// The name of the page.
pub(crate) const FILE: &str = "report.html";
/// Categories of the tree.
const IN_TREE: usize = 48;
/// Neighbours of a category that are looked for.
const NEAREST: usize = 4;
/// The column that has the labels, and the word for the folders of images.
const LABEL: &str = "label";

/// What was asked of a report.
pub(crate) struct Wanted {
    title: String,
    limits: Limits,
    truth: Option<Told>,
    text: Option<Told>,
}

/// Where something about the items stands.
enum Told {
    /// Beside the features: what the pile is labelled.
    Labels,
    /// In a column of a table, by the best of some names.
    Column(PathBuf, Vec<String>),
}

impl Wanted {
    /// What the arguments ask for, if they ask for a report; what it needs is looked at before any work is done.
    pub(crate) fn new(args: &Discover) -> Result<Option<Self>, Failure> {
        if args.output.out.is_none() || args.report.no_report {
            return Ok(None);
        }
        let pile = args.query.as_deref().or(args.table.as_deref());
        let pile = pile.unwrap_or(Path::new("the pile"));
        let told = |named: &Option<String>, columns: &[&str]| {
            let told = named
                .as_ref()
                .map(|named| told(named, columns, pile, args.table.is_some()));
            told.transpose()
        };
        Ok(Some(Self {
            title: title(pile),
            limits: limits(&args.images),
            truth: told(&args.report.truth, &["truth", LABEL])?,
            text: told(&args.report.text, &["text"])?,
        }))
    }

    /// Describes what was found, but for its pictures.
    pub(crate) fn describe(
        &self,
        found: &Found,
        examples: &Examples,
        made: Made,
        global: &Global,
    ) -> Result<Report, Failure> {
        let texts = look_up(&self.text, &found.ids, &found.labels)?;
        let truths = look_up(&self.truth, &found.ids, &found.labels)?;
        let bar = Bar::new(global);
        bar.spin("drawing the map");
        let mut report = describe(&Seen {
            task: &found.task,
            taxonomy: &found.taxonomy,
            counts: &found.counts,
            stop: found.stop,
            assignments: &found.assignments,
            scenes: found.scenes.as_ref(),
            ids: &found.ids,
            examples: &examples.ids,
            truths: truths.as_deref(),
            seed: global.seed,
        });
        report.title = self.title.clone();
        report.made = made;
        if let Some(texts) = texts {
            report
                .items
                .iter_mut()
                .zip(texts)
                .for_each(|(item, text)| item.text = text);
        }
        if let Some(Told::Column(path, columns)) = &self.text {
            // The examples may be in the same table.
            let texts = column(path, columns, &examples.ids)?;
            report
                .examples
                .iter_mut()
                .zip(texts)
                .for_each(|(example, text)| example.text = text);
        }
        Ok(report)
    }

    /// Adds small pictures of the images, as many as the page has room for.
    pub(crate) fn add_pictures(
        &self,
        report: &mut Report,
        examples: &[ImageItem],
        pile: &[ImageItem],
        global: &Global,
    ) -> Result<(), Failure> {
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
        let bar = Bar::new(global);
        bar.start("pictures", pictures.len() as u64);
        pictures.fill(report, |report, slots| {
            let made = slots.par_iter().map(|slot| {
                let image = match *slot {
                    Slot::Example(at) => examples.get(&report.examples[at].id),
                    Slot::Item(at) => pile.get(&report.items[at].id),
                };
                // What could be embedded can be shown, unless the file has gone since: then it is only named.
                let bytes = image_source(image?).read(&self.limits).ok()?;
                decode(&bytes, &self.limits).ok()?.thumbnail(side)
            });
            let made = made.collect();
            bar.add(slots.len() as u64);
            Ok::<_, Failure>(made)
        })
    }
}

/// What a report is made from.
pub(crate) struct Seen<'a> {
    pub(crate) task: &'a Task,
    pub(crate) taxonomy: &'a Taxonomy,
    pub(crate) counts: &'a Counts,
    pub(crate) stop: Stop,
    pub(crate) assignments: &'a [Assignment],
    /// Which items are of one scene, where that was looked for.
    pub(crate) scenes: Option<&'a Scenes>,
    pub(crate) ids: &'a [String],
    /// What the examples are called.
    pub(crate) examples: &'a [String],
    /// The true classes of the items, where they are known.
    pub(crate) truths: Option<&'a [Option<String>]>,
    pub(crate) seed: u64,
}

/// Everything about a discovery but its title, its texts and its pictures.
pub(crate) fn describe(seen: &Seen) -> Report {
    let Seen { task, taxonomy, .. } = *seen;
    let entries = taxonomy.entries();
    let known = task.known();
    let of_items: Vec<usize> = seen.assignments.iter().map(|assignment| assignment.category).collect();
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
    let margins: Vec<f32> = seen
        .assignments
        .iter()
        .map(|assignment| assignment.score.margin)
        .collect();

    let kind = match seen.stop {
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

    let mut rows = items.into_values();
    rows.extend(in_space(task.support()).into_values());
    let places = Features::new(task.dim(), rows).ok().map(|rows| {
        let way = Projection::Tsne.for_count(rows.rows());
        (way, way.points(&rows, seen.seed))
    });
    let place = |at: usize| places.as_ref().and_then(|(_, places)| places.get(at).copied());

    let judged = seen
        .truths
        .map(|truths| Truth::judge(task.classes(), entries.len(), &of_items, truths));
    let items = seen.assignments.iter().enumerate().map(|(at, assignment)| Item {
        id: seen.ids[at].clone(),
        category: assignment.category,
        score: assignment.score,
        rival: rivals[at],
        place: place(at),
        text: None,
        picture: None,
        truth: judged.as_ref().and_then(|(_, numbers)| numbers[at]),
        scene: seen.scenes.map(|scenes| scenes.of()[at]),
    });
    let labels = task.support_labels().iter().enumerate();
    let examples = labels.map(|(at, &class)| Example {
        id: seen.examples.get(at).cloned().unwrap_or_default(),
        class,
        place: place(seen.assignments.len() + at),
        ..Example::default()
    });
    let categories = entries.iter().enumerate().map(|(at, entry)| Category {
        name: entry.name.clone(),
        kind: entry.kind,
        items: seen.counts.items[at],
        unsure: seen.counts.unsure[at],
    });
    Report {
        title: String::new(),
        things: ["item", "items"].map(str::to_owned),
        made: Made::default(),
        categories: categories.collect(),
        items: items.collect(),
        examples: examples.collect(),
        projection: places.as_ref().map(|(way, _)| match way {
            Projection::Tsne => "t-SNE".to_owned(),
            Projection::Pca => "the two principal components".to_owned(),
        }),
        why: Why {
            tree,
            cut: match seen.stop {
                Stop::Cut { similarity, .. } => Some(similarity),
                _ => None,
            },
            doubt: taxonomy.calibration().map(|calibration| calibration.doubt() as f32),
            nearest: nearest_categories(&centres, NEAREST),
            confusable: confusable(&margins, &of_items, &rivals),
        },
        truth: judged.map(|(truth, _)| truth),
    }
}

/// Begins the page in a folder; it appears when it is committed.
pub(crate) fn write(report: &Report, folder: &Path) -> Result<AtomicFile, Failure> {
    let path = folder.join(FILE);
    let mut file = AtomicFile::create_own(&path)?;
    file.write_all(report.html().as_bytes()).map_err(|source| {
        Failure::from(DataError::Write {
            target: path.display().to_string(),
            source,
            way_out: "",
        })
    })?;
    Ok(file)
}

/// What made the features: the encoder that was asked for, or what their file says.
pub(crate) fn encoder_name(args: &Discover, images: &[ImageItem], of_file: Option<&str>) -> Option<String> {
    match images {
        [] => of_file.map(str::to_owned),
        _ => Some(args.images.encoder.encoder.clone()),
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
fn told(named: &str, columns: &[&str], pile: &Path, one_table: bool) -> Result<Told, Failure> {
    let (path, columns) = if Path::new(named).is_file() {
        (Path::new(named), columns.to_vec())
    } else if named == LABEL && !one_table {
        return Ok(Told::Labels);
    } else if pile.is_dir() || pile == Path::new("-") {
        return Err(Failure::failed(format!(
            "there is neither a file {named} nor a column of that name, since {} is no table; name a table with the columns \
             id and {}, or say {LABEL} for the folders that images are in",
            pile.display(),
            columns[0]
        )));
    } else {
        (pile, vec![named])
    };
    for_each_cell(path, &columns, |_, _| false).map_err(|e| match e {
        DataError::Malformed { .. } if path == pile => Failure::failed(format!("{e}; there is no file {named} either")),
        other => other.into(),
    })?;
    Ok(Told::Column(
        path.to_owned(),
        columns.into_iter().map(str::to_owned).collect(),
    ))
}

/// What was told about each item; an error when that is nothing about any.
fn look_up(
    told: &Option<Told>,
    ids: &[String],
    labels: &[Option<String>],
) -> Result<Option<Vec<Option<String>>>, Failure> {
    let (found, place) = match told {
        None => return Ok(None),
        Some(Told::Labels) => (
            labels.to_vec(),
            "the pile has no labels; it takes one folder a class, or a column label".to_owned(),
        ),
        Some(Told::Column(path, columns)) => (
            column(path, columns, ids)?,
            format!(
                "{}: not one of its ids is that of an item that is shown",
                path.display()
            ),
        ),
    };
    if found.iter().all(Option::is_none) {
        return Err(Failure::failed(place));
    }
    Ok(Some(found))
}

/// The cells of a column for some ids.
fn column(path: &Path, columns: &[String], ids: &[String]) -> Result<Vec<Option<String>>, Failure> {
    let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut cells = HashMap::new();
    for_each_cell(path, &columns, |id, cell| {
        if wanted.contains(id.as_str()) {
            cells.insert(id, cell);
        }
        true
    })?;
    Ok(ids.iter().map(|id| cells.remove(id)).collect())
}
