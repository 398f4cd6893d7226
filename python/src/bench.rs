//! Experiments: episodes as indices, methods on them, and how right they are.

use std::path::PathBuf;
use std::sync::Arc;

use genus_core::episode::{Pile, Shape, ShortClasses, Tail};
use genus_core::metrics::{Convention, Evaluation, accuracy, ari, nmi};
use genus_lab::{
    Bench, BenchMethod, BenchReport, EpisodeSet, Experiment, PredictedLabel, Prediction, read_predictions,
};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::raised;
use crate::job::run;
use crate::rows::Matrix;

/// Labelled features, and the classes that episodes are drawn from.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Dataset(Arc<genus_lab::Dataset>);

#[pymethods]
impl Dataset {
    /// Features with the class of every row, or none. Episodes are drawn from the classes in `novel`, others are learnt from.
    #[new]
    fn new(
        features: &Bound<'_, PyAny>,
        labels: Vec<Option<String>>,
        name: &str,
        novel: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let features = Matrix::new(features)?;
        let features = features.look(|rows| Ok(rows.select(&(0..rows.rows()).collect::<Vec<_>>())))?;
        let data = genus_lab::Dataset::new(name, features, &labels, novel.as_deref()).map_err(raised)?;
        Ok(Self(Arc::new(data)))
    }

    /// Reads a feature file; with a split episodes are drawn from its novel classes.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, split: Option<PathBuf>) -> PyResult<Self> {
        let data = run(py, None, move |_| {
            genus_lab::Dataset::read(&path, split.as_deref(), &genus::TableOptions::default()).map_err(raised)
        })?;
        Ok(Self(Arc::new(data)))
    }

    /// The classes that episodes are drawn from.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.pool().classes().to_vec()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The features of all rows.
    #[getter]
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let features = self.0.features();
        Ok(crate::rows::matrix(py, features.values().to_vec(), features.dim())?.into_any())
    }
}

/// What episodes are like, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Shaped {
    way: usize,
    shot: usize,
    new: usize,
    query: usize,
    episodes: u64,
    seed: u64,
    tail: Option<(usize, usize)>,
    outliers: usize,
    skip_short_classes: bool,
}

impl Shaped {
    fn bench(&self, methods: &[String]) -> PyResult<Bench> {
        let tail = match self.tail {
            None => None,
            Some((smallest, largest)) => Some(format!("{smallest}-{largest}").parse::<Tail>().map_err(raised)?),
        };
        Ok(Bench {
            shape: Shape {
                way: self.way,
                shot: self.shot,
                new: self.new,
                query: self.query,
            },
            pile: Pile {
                tail,
                outliers: self.outliers,
            },
            episodes: self.episodes,
            seed: self.seed,
            methods: BenchMethod::list(methods.iter().map(String::as_str)).map_err(raised)?,
            short_classes: match self.skip_short_classes {
                true => ShortClasses::Skip,
                false => ShortClasses::Error,
            },
            ..Bench::default()
        })
    }
}

/// Runs methods on the episodes of a data set.
#[pyfunction]
pub(crate) fn run_bench(
    py: Python<'_>,
    data: &Dataset,
    methods: Vec<String>,
    shaped: Shaped,
    listener: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let (data, bench) = (data.0.clone(), shaped.bench(&methods)?);
    let report = run(py, listener, move |progress| {
        bench.run(&data, &Experiment::Main, progress).map_err(raised)
    })?;
    Ok(Report(Arc::new(report)))
}

/// Episodes, as numbers of rows.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Episodes(Arc<EpisodeSet>);

/// Draws the episodes of a data set.
#[pyfunction]
pub(crate) fn episodes(py: Python<'_>, data: &Dataset, shaped: Shaped) -> PyResult<Episodes> {
    let (data, bench) = (data.0.clone(), shaped.bench(&[])?);
    let set = run(py, None, move |_| {
        bench.episodes_of(&data, &Experiment::Main).map_err(raised)
    })?;
    Ok(Episodes(Arc::new(set)))
}

#[pymethods]
impl Episodes {
    /// Reads those of a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self(Arc::new(run(py, None, move |_| {
            EpisodeSet::read(&path).map_err(raised)
        })?)))
    }

    /// Writes them to a file.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let set = self.0.clone();
        run(py, None, move |_| set.write(&path).map_err(raised))
    }

    fn __len__(&self) -> usize {
        self.0.episodes().len()
    }

    /// One of them.
    fn episode<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let episode = self.0.episodes().get(number);
        let episode = episode.ok_or_else(|| PyIndexError::new_err(format!("there is no episode {number}")))?;
        let array = |numbers: &[usize]| numbers.iter().map(|&n| n as i64).collect::<Vec<_>>().into_pyarray(py);
        let parts = PyDict::new(py);
        parts.set_item("number", number)?;
        parts.set_item("classes", episode.classes.clone())?;
        parts.set_item("known", episode.known)?;
        parts.set_item("support", array(&episode.support))?;
        parts.set_item("support_classes", array(&episode.support_classes))?;
        parts.set_item("queries", array(&episode.queries))?;
        parts.set_item("truth", array(&episode.truth))?;
        parts.set_item("outliers", episode.outliers)?;
        Ok(parts)
    }

    /// Judges what a method said of the queries of every episode: numbers of known classes, and other numbers for new ones.
    fn score(&self, py: Python<'_>, method: String, predictions: Vec<Vec<i64>>) -> PyResult<Report> {
        let set = self.0.clone();
        let predictions = predictions.into_iter().zip(0..).map(|(labels, episode)| Prediction {
            episode,
            predictions: labels.into_iter().map(PredictedLabel::Number).collect(),
        });
        let predictions: Vec<_> = predictions.collect();
        let report = run(py, None, move |_| set.score(&method, &predictions).map_err(raised))?;
        Ok(Report(Arc::new(report)))
    }

    /// The same of a file of predictions.
    fn score_file(&self, py: Python<'_>, method: String, path: PathBuf) -> PyResult<Report> {
        let set = self.0.clone();
        let report = run(py, None, move |_| {
            let predictions = read_predictions(&path).map_err(raised)?;
            set.score(&method, &predictions).map_err(raised)
        })?;
        Ok(Report(Arc::new(report)))
    }
}

/// What an experiment found.
#[pyclass(frozen, name = "BenchReport", module = "genus._genus")]
pub(crate) struct Report(Arc<BenchReport>);

#[pymethods]
impl Report {
    fn json(&self) -> String {
        self.0.json()
    }

    fn markdown(&self) -> String {
        self.0.markdown()
    }

    fn latex(&self) -> String {
        self.0.latex()
    }

    fn csv(&self) -> String {
        self.0.csv()
    }

    /// One with the runs of both.
    fn with_runs_of(&self, other: &Self) -> Self {
        let mut report = (*self.0).clone();
        report.runs.extend(other.0.runs.iter().cloned());
        Self(Arc::new(report))
    }
}

fn places(array: &PyReadonlyArray1<'_, i64>, what: &str) -> PyResult<Vec<usize>> {
    let place = |&number: &i64| {
        usize::try_from(number)
            .map_err(|_| PyValueError::new_err(format!("{what} has {number}, and numbers begin at 0")))
    };
    array.as_array().iter().map(place).collect()
}

/// The accuracies of all conventions, NMI and ARI of clusters: those of the prototypes, those of the queries, and the truth.
#[pyfunction]
pub(crate) fn metrics<'py>(
    py: Python<'py>,
    known: PyReadonlyArray1<'py, i64>,
    clusters: PyReadonlyArray1<'py, i64>,
    truth: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let (known, clusters, truth) = (
        places(&known, "known")?,
        places(&clusters, "predictions")?,
        places(&truth, "truth")?,
    );
    if clusters.len() != truth.len() {
        let problem = format!(
            "there are {} predictions and {} true classes",
            clusters.len(),
            truth.len()
        );
        return Err(PyValueError::new_err(problem));
    }
    let judged = Evaluation {
        known: &known,
        clusters: &clusters,
        truth: &truth,
    };
    let found = PyDict::new(py);
    for convention in Convention::ALL {
        let accuracy = accuracy(&judged, convention);
        let sides = PyDict::new(py);
        sides.set_item("all", accuracy.all)?;
        sides.set_item("old", accuracy.old)?;
        sides.set_item("new", accuracy.new)?;
        found.set_item(convention.name(), sides)?;
    }
    found.set_item("nmi", nmi(&clusters, &truth))?;
    found.set_item("ari", ari(&clusters, &truth))?;
    let mut all: Vec<usize> = known.into_iter().chain(clusters).collect();
    all.sort_unstable();
    all.dedup();
    found.set_item("k", all.len())?;
    Ok(found)
}

/// The names of the methods and baselines, with what they do.
#[pyfunction]
pub(crate) fn method_table() -> Vec<(&'static str, &'static str)> {
    let tables = genus_core::methods::METHODS.iter().chain(genus_lab::BASELINES);
    tables.map(|entry| (entry.name, entry.summary)).collect()
}
