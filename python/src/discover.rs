//! Piles of photographs and tables, and what was found in them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use genus::{
    CacheChoice, CalibrateOptions, Destination, Format, ImageOptions, Inputs, OutputOptions, Page, Source, Table,
};
use genus_core::Kind;
use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::raised;
use crate::job::run;
use crate::rows::{Matrix, matrix};
use crate::taxonomy::{Calibration, options};

/// Items as Python gives them: a path, or features with their ids and labels.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Table(Bound<'py, PyAny>, Vec<String>, Vec<Option<String>>),
    Path(PathBuf),
}

impl Given<'_> {
    pub(crate) fn source(self) -> PyResult<Source> {
        match self {
            Given::Path(path) => Ok(Source::Path(path)),
            Given::Table(features, ids, labels) => {
                let features = Matrix::new(&features)?;
                let features = features.look(|rows| Ok(rows.select(&(0..rows.rows()).collect::<Vec<_>>())))?;
                Ok(Table { ids, labels, features }.into())
            }
        }
    }
}

/// How images become features, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Images {
    encoder: Option<String>,
    weights: Option<PathBuf>,
    precision: Option<String>,
    cache: Option<PathBuf>,
    use_cache: bool,
    strict: bool,
}

impl Images {
    pub(crate) fn options(self) -> PyResult<ImageOptions> {
        let wrong = |problem: &str| PyValueError::new_err(format!("precision is {problem}"));
        let options = ImageOptions {
            weights: self.weights,
            precision: self.precision.map(|text| text.parse().map_err(wrong)).transpose()?,
            cache: match (self.use_cache, self.cache) {
                (false, _) => CacheChoice::Nowhere,
                (true, Some(folder)) => CacheChoice::Folder(folder),
                (true, None) => CacheChoice::User,
            },
            strict: self.strict,
            ..ImageOptions::default()
        };
        Ok(match self.encoder {
            Some(encoder) => ImageOptions {
                weights: options.weights.clone(),
                encoder: Some(encoder),
                ..options
            },
            None => options,
        })
    }
}

/// What was found in a pile.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Outcome {
    outcome: Arc<genus::Outcome>,
    page: Arc<Page>,
    report: Mutex<Option<Arc<genus_report::Report>>>,
}

/// Sorts a pile. With `mixed` the items that have a label are the examples.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn discover<'py>(
    py: Python<'py>,
    query: Given<'py>,
    support: Option<Given<'py>>,
    mixed: bool,
    images: Images,
    method: &str,
    calibration: Option<Calibration>,
    seed: u64,
    subset: Option<usize>,
    refine: usize,
    truth: Option<String>,
    text: Option<String>,
    listener: Option<&Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let options = genus::DiscoverOptions {
        images: images.options()?,
        ..options(method, calibration, seed, subset, refine)?
    };
    let query = query.source()?;
    let inputs = match (mixed, support) {
        (true, _) => Inputs::Mixed(query),
        (false, Some(support)) => Inputs::new(support.source()?, query),
        (false, None) => Inputs::without_examples(query),
    };
    let (outcome, page) = run(py, listener, move |progress| {
        let page = Page::new(&inputs, &options.tables, truth.as_deref(), text.as_deref()).map_err(raised)?;
        Ok((genus::discover(inputs, &options, progress).map_err(raised)?, page))
    })?;
    Ok(Outcome {
        outcome: Arc::new(outcome),
        page: Arc::new(page),
        report: Mutex::new(None),
    })
}

impl Outcome {
    /// The page, made when it is first asked for.
    fn made(&self, py: Python<'_>, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<genus_report::Report>> {
        let kept = self.report.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(report) = kept {
            return Ok(report);
        }
        let (outcome, page) = (self.outcome.clone(), self.page.clone());
        let made = run(py, listener, move |progress| {
            outcome.report(&page, progress).map_err(raised)
        })?;
        let made = Arc::new(made);
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.clone());
        Ok(made)
    }
}

#[pymethods]
impl Outcome {
    /// Where every item went, by columns.
    fn assignments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let items = &self.outcome.assignments;
        let columns = PyDict::new(py);
        columns.set_item("id", items.iter().map(|item| &*item.id).collect::<Vec<_>>())?;
        columns.set_item("category", items.iter().map(|item| &*item.category).collect::<Vec<_>>())?;
        let kind = |item: &genus::SortedItem| match (item.score.unsure, item.kind) {
            (true, _) => "unsure",
            (false, Kind::Known) => "known",
            (false, Kind::Novel) => "new",
        };
        columns.set_item("kind", items.iter().map(kind).collect::<Vec<_>>())?;
        let floats = |of: fn(&genus::SortedItem) -> f32| items.iter().map(of).collect::<Vec<_>>().into_pyarray(py);
        columns.set_item("score", floats(|item| item.score.similarity))?;
        columns.set_item("margin", floats(|item| item.score.margin))?;
        columns.set_item("probability", floats(|item| item.score.probability.unwrap_or(f32::NAN)))?;
        if items.iter().any(|item| item.scene.is_some()) {
            let scenes: Vec<i64> = items
                .iter()
                .map(|item| item.scene.map_or(-1, |scene| scene as i64))
                .collect();
            columns.set_item("scene", scenes.into_pyarray(py))?;
        }
        Ok(columns)
    }

    /// The categories, by columns.
    fn categories<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (entries, counts) = (self.outcome.taxonomy.entries(), &self.outcome.counts);
        let columns = PyDict::new(py);
        columns.set_item("category", entries.iter().map(|entry| &*entry.name).collect::<Vec<_>>())?;
        columns.set_item(
            "kind",
            entries.iter().map(|entry| entry.kind.to_string()).collect::<Vec<_>>(),
        )?;
        columns.set_item("items", counts.items.clone().into_pyarray(py))?;
        columns.set_item("unsure", counts.unsure.clone().into_pyarray(py))?;
        Ok(columns)
    }

    /// The method and how it came to its end, in words.
    #[getter]
    fn how(&self) -> String {
        self.outcome.how()
    }

    /// Images that could not be read, with the reasons.
    #[getter]
    fn skipped(&self) -> Vec<(PathBuf, String)> {
        let skipped = self.outcome.skipped.iter();
        skipped.map(|file| (file.path.clone(), file.reason.clone())).collect()
    }

    /// The categories with their centres.
    #[getter]
    fn taxonomy(&self) -> crate::taxonomy::Taxonomy {
        crate::taxonomy::Taxonomy(Arc::new(self.outcome.taxonomy.clone()))
    }

    /// The page that shows it.
    fn html(&self, py: Python<'_>, listener: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        Ok(self.made(py, listener)?.html())
    }

    /// Where the items are on the map, by columns; those that it has no room for are not there.
    fn map<'py>(&self, py: Python<'py>, listener: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.made(py, listener)?;
        let shown: Vec<_> = report
            .items
            .iter()
            .filter_map(|item| Some((item, item.place?)))
            .collect();
        let columns = PyDict::new(py);
        columns.set_item("id", shown.iter().map(|(item, _)| &*item.id).collect::<Vec<_>>())?;
        let category = |item: &genus_report::Item| report.categories[item.category].name.clone();
        columns.set_item(
            "category",
            shown.iter().map(|(item, _)| category(item)).collect::<Vec<_>>(),
        )?;
        columns.set_item(
            "x",
            shown
                .iter()
                .map(|(_, place)| place[0])
                .collect::<Vec<_>>()
                .into_pyarray(py),
        )?;
        columns.set_item(
            "y",
            shown
                .iter()
                .map(|(_, place)| place[1])
                .collect::<Vec<_>>()
                .into_pyarray(py),
        )?;
        Ok(columns)
    }

    /// Writes what the command line writes, into a folder; with the page, its path.
    fn write(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        format: &str,
        report: bool,
        listener: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<PathBuf>> {
        let format: Format = format
            .parse()
            .map_err(|e| PyValueError::new_err(format!("format: {e}")))?;
        let (outcome, page) = (self.outcome.clone(), self.page.clone());
        let saved = run(py, listener, move |progress| {
            let options = OutputOptions {
                format,
                ..OutputOptions::default()
            };
            let page = report.then_some(&*page);
            outcome
                .write(Destination::Folder(folder), options, page, progress)
                .map_err(raised)
        })?;
        Ok(saved.report)
    }
}

/// Learns from labelled items of other classes how far items of one class lie apart.
#[pyfunction]
pub(crate) fn calibrate<'py>(
    py: Python<'py>,
    items: Given<'py>,
    images: Images,
    seed: u64,
    listener: Option<&Bound<'py, PyAny>>,
) -> PyResult<Calibration> {
    let options = CalibrateOptions {
        seed,
        images: images.options()?,
        ..CalibrateOptions::default()
    };
    let items = items.source()?;
    let outcome = run(py, listener, move |progress| {
        genus::calibrate(items, &options, progress).map_err(raised)
    })?;
    Ok(Calibration(outcome.into()))
}

/// The images of a folder, a manifest or a list: id, path and label.
#[pyfunction]
pub(crate) fn list_images(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, PathBuf, Option<String>)>> {
    let list = run(py, None, move |_| {
        genus_data::list_images(&path, &genus::TableOptions::default()).map_err(raised)
    })?;
    Ok(list
        .items
        .into_iter()
        .map(|item| (item.id, item.path, item.label))
        .collect())
}

/// The features of image files, a row a file in their order.
#[pyfunction]
pub(crate) fn embed_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    images: Images,
    listener: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let options = images.options()?;
    let features = run(py, listener, move |progress| {
        let items = paths.into_iter().enumerate().map(|(at, path)| genus_data::ImageItem {
            id: at.to_string(),
            path,
            label: None,
            pixels: None,
        });
        let list = genus_data::ImageList {
            items: items.collect(),
            ..genus_data::ImageList::default()
        };
        let mut embedder = genus::Embedder::new(&options, progress);
        let items = embedder.embedded(&list, "the images".as_ref(), None).map_err(raised)?;
        Ok(items.read().map_err(raised)?.table.features)
    })?;
    let dim = features.dim();
    matrix(py, features.into_values(), dim)
}

/// The features of images in memory: width, height and the bytes of their pixels.
#[pyfunction]
pub(crate) fn embed_pixels<'py>(
    py: Python<'py>,
    pictures: Vec<(usize, usize, Vec<u8>)>,
    images: Images,
    listener: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let options = images.options()?;
    let features = run(py, listener, move |progress| {
        let pictures = pictures.into_iter().map(|(width, height, data)| {
            let picture = genus_vision::Rgb::new(width, height, data);
            picture.ok_or_else(|| PyValueError::new_err("an image has no pixels, or not three bytes each"))
        });
        let pictures: Vec<_> = pictures.collect::<PyResult<_>>()?;
        let encoder = genus::LiveEncoder::load(&options, None, progress).map_err(raised)?;
        encoder.features_of(&pictures, progress).map_err(raised)
    })?;
    let dim = features.dim();
    matrix(py, features.into_values(), dim)
}

/// Writes the pictures of the demo into a folder: the labelled ones, the pile, and a table with the truth.
#[pyfunction]
pub(crate) fn write_demo(folder: PathBuf, seed: u64) -> PyResult<(PathBuf, PathBuf, PathBuf)> {
    let written = genus_lab::EmojiPile::new(seed).write(&folder).map_err(raised)?;
    Ok((written.labelled, written.pile, written.truth))
}
