//! Categories, streams and calibrations, and how they are found among rows.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genus::{CalibrationFile, DiscoverOptions, LabelledRows, MethodSpec};
use genus_core::{Assignment, Features, FeaturesView, Kind, StreamParts, StreamPlace, TaxonomyEntry};
use genus_data::{CalibrationOrigin, calibration_from_bytes, calibration_to_bytes};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::raised;
use crate::job::run;
use crate::rows::{Matrix, columns, matrix, numbers};

/// What is known of the features of an encoder.
#[pyclass(frozen, module = "genus", from_py_object)]
#[derive(Clone)]
pub(crate) struct Calibration(pub(crate) CalibrationFile);

#[pymethods]
impl Calibration {
    /// Reads a file of `genus calibrate`.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Ok(Self(CalibrationFile::read(&path).map_err(raised)?))
    }

    /// The one of the encoder that is built in.
    #[staticmethod]
    fn embedded() -> PyResult<Self> {
        let file = CalibrationFile::of_embedded();
        file.map(Self).ok_or_else(|| {
            PyValueError::new_err("this build of genus has no encoder inside, and so no calibration of it")
        })
    }

    /// The number of features that it is of.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.calibration.dim()
    }

    /// The number of classes that it was learnt from.
    #[getter]
    fn n_classes(&self) -> usize {
        self.0.calibration.classes()
    }

    /// What it was learnt from.
    #[getter]
    fn fitted_on(&self) -> &str {
        &self.0.origin.fitted_on
    }

    /// Writes it to a file, for `genus discover --calibration` and for here.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        genus_data::write_calibration(path, &self.0.calibration, &self.0.origin).map_err(raised)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let bytes = to_bytes(&slf.get().0.calibration, &slf.get().0.origin)?;
        Ok((py.get_type::<Self>().getattr("_restore")?, (PyBytes::new(py, &bytes),)))
    }

    #[staticmethod]
    fn _restore(bytes: &[u8]) -> PyResult<Self> {
        let (calibration, origin) = from_bytes(bytes)?;
        Ok(Self(CalibrationFile::in_memory(calibration, origin)))
    }

    fn __repr__(&self) -> String {
        let calibration = &self.0.calibration;
        format!(
            "<genus.Calibration of {} features, {}>",
            calibration.dim(),
            genus::knowledge(calibration)
        )
    }
}

fn to_bytes(calibration: &genus_core::Calibration, origin: &CalibrationOrigin) -> PyResult<Vec<u8>> {
    calibration_to_bytes(calibration, origin).map_err(raised)
}

fn from_bytes(bytes: &[u8]) -> PyResult<(genus_core::Calibration, CalibrationOrigin)> {
    calibration_from_bytes("the calibration".as_ref(), bytes).map_err(raised)
}

/// Categories with centres, to which items are assigned one by one.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Taxonomy(pub(crate) Arc<genus_core::Taxonomy>);

/// The bytes of a calibration, the members of every category and the familiar share.
type CalibrationParts<'py> = (Bound<'py, PyBytes>, Vec<(f64, f64)>, f64);

/// A taxonomy as Python pickles it: names, whether they are known, items, centres, and perhaps a calibration.
type Parts<'py> = (
    Vec<String>,
    Vec<bool>,
    Vec<u64>,
    Bound<'py, PyArray2<f32>>,
    Option<CalibrationParts<'py>>,
);

fn to_parts<'py>(py: Python<'py>, taxonomy: &genus_core::Taxonomy) -> PyResult<Parts<'py>> {
    let entries = taxonomy.entries();
    let calibration = match (taxonomy.calibration(), taxonomy.familiar()) {
        (Some(calibration), Some(familiar)) => {
            let nowhere = CalibrationOrigin {
                encoder: None,
                fitted_on: String::new(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed: 0,
            };
            let bytes = PyBytes::new(py, &to_bytes(calibration, &nowhere)?);
            Some((bytes, taxonomy.members(), familiar))
        }
        _ => None,
    };
    Ok((
        entries.iter().map(|entry| entry.name.clone()).collect(),
        entries.iter().map(|entry| entry.kind == Kind::Known).collect(),
        entries.iter().map(|entry| entry.items).collect(),
        matrix(py, taxonomy.centres().values().to_vec(), taxonomy.centres().dim())?,
        calibration,
    ))
}

fn of_parts(
    names: Vec<String>,
    known: Vec<bool>,
    items: Vec<u64>,
    centres: PyReadonlyArray2<'_, f32>,
    calibration: Option<CalibrationParts<'_>>,
) -> PyResult<genus_core::Taxonomy> {
    let entries = names
        .into_iter()
        .zip(known)
        .zip(items)
        .map(|((name, known), items)| TaxonomyEntry {
            name,
            kind: if known { Kind::Known } else { Kind::Novel },
            items,
        });
    let dim = centres.as_array().ncols();
    let values = centres.as_array().iter().copied().collect();
    let centres = Features::new(dim, values).map_err(raised)?;
    let taxonomy = genus_core::Taxonomy::from_parts(entries.collect(), centres).map_err(raised)?;
    let Some((bytes, members, familiar)) = calibration else {
        return Ok(taxonomy);
    };
    let (calibration, _) = from_bytes(bytes.as_bytes())?;
    let taxonomy = taxonomy.with_calibration(Arc::new(calibration), members);
    taxonomy
        .and_then(|taxonomy| taxonomy.with_familiar(familiar))
        .map_err(raised)
}

impl Taxonomy {
    fn of<'py, T: Send + 'static>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        work: impl FnOnce(&genus_core::Taxonomy, FeaturesView<'_>) -> Result<T, genus_core::TaskError> + Send + 'static,
    ) -> PyResult<T> {
        let (items, taxonomy) = (Matrix::new(items)?, self.0.clone());
        run(py, None, move |_| {
            items.look(|rows| work(&taxonomy, rows).map_err(|e| raised(genus::Error::from(e))))
        })
    }

    fn at(&self, category: usize) -> PyResult<usize> {
        match category < self.0.entries().len() {
            true => Ok(category),
            false => Err(PyIndexError::new_err(format!("there is no category {category}"))),
        }
    }
}

#[pymethods]
impl Taxonomy {
    /// The names of the categories, the known ones first.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.entries().iter().map(|entry| entry.name.clone()).collect()
    }

    /// Whether each is known.
    #[getter]
    fn known(&self) -> Vec<bool> {
        self.0.entries().iter().map(|entry| entry.kind == Kind::Known).collect()
    }

    /// How many items each was found with.
    #[getter]
    fn items(&self) -> Vec<u64> {
        self.0.entries().iter().map(|entry| entry.items).collect()
    }

    /// A row a category.
    #[getter]
    fn centres<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        matrix(py, self.0.centres().values().to_vec(), self.0.centres().dim())
    }

    /// Whether a calibration says how likely things are.
    #[getter]
    fn calibrated(&self) -> bool {
        self.0.calibration().is_some()
    }

    /// Where each item belongs by itself.
    fn assign<'py>(&self, py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<impl IntoPyObject<'py> + use<'py>> {
        let found = self.of(py, items, |taxonomy, rows| taxonomy.assign(rows))?;
        Ok(columns(py, &found))
    }

    /// How likely each belongs to every category.
    fn memberships<'py>(&self, py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let found = self.of(py, items, |taxonomy, rows| taxonomy.memberships(rows))?;
        matrix(py, found, self.0.entries().len())
    }

    /// The cosine of each with every centre.
    fn similarities<'py>(&self, py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let found = self.of(py, items, |taxonomy, rows| taxonomy.similarities(rows))?;
        matrix(py, found, self.0.entries().len())
    }

    /// The same with another name for a category.
    fn renamed(&self, category: usize, name: &str) -> PyResult<Self> {
        let renamed = (*self.0).clone().renamed(self.at(category)?, name).map_err(raised)?;
        Ok(Self(Arc::new(renamed)))
    }

    /// The same with two categories as one, and which category each is now.
    fn merged(&self, first: usize, second: usize) -> PyResult<(Self, Vec<usize>)> {
        if self.at(first)? == self.at(second)? {
            return Err(PyValueError::new_err("a category cannot be merged with itself"));
        }
        let (merged, now) = self.0.merged(first, second);
        Ok((Self(Arc::new(merged)), now))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let py = slf.py();
        Ok((py.get_type::<Self>().getattr("_restore")?, to_parts(py, &slf.get().0)?))
    }

    #[staticmethod]
    #[allow(clippy::type_complexity)]
    fn _restore(
        names: Vec<String>,
        known: Vec<bool>,
        items: Vec<u64>,
        centres: PyReadonlyArray2<'_, f32>,
        calibration: Option<CalibrationParts<'_>>,
    ) -> PyResult<Self> {
        Ok(Self(Arc::new(of_parts(names, known, items, centres, calibration)?)))
    }
}

/// Options of a discovery as Python gives them.
pub(crate) fn options(
    method: &str,
    calibration: Option<Calibration>,
    seed: u64,
    subset: Option<usize>,
    refine: usize,
) -> PyResult<DiscoverOptions> {
    let method: MethodSpec = method.parse().map_err(raised)?;
    let subset = match subset.map(std::num::NonZeroUsize::new) {
        Some(None) => return Err(PyValueError::new_err("subset must be at least 1")),
        Some(some) => some,
        None => None,
    };
    Ok(DiscoverOptions {
        method,
        calibration: calibration.map(|calibration| calibration.0),
        seed,
        subset,
        refine,
        ..DiscoverOptions::default()
    })
}

/// Sorts the rows of a matrix whose label is negative.
#[pyfunction]
#[pyo3(signature = (items, labels, classes, method, calibration, seed, subset, refine, listener))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn discover_rows<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
    labels: PyReadonlyArray1<'py, i64>,
    classes: Vec<String>,
    method: &str,
    calibration: Option<Calibration>,
    seed: u64,
    subset: Option<usize>,
    refine: usize,
    listener: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Taxonomy, Bound<'py, PyAny>)> {
    let options = options(method, calibration, seed, subset, refine)?;
    let (items, labels) = (Matrix::new(items)?, numbers(&labels, classes.len())?);
    let sorted = run(py, listener, move |progress| {
        items.look(|features| {
            let rows = LabelledRows {
                features,
                classes: &classes,
                labels: &labels,
            };
            genus::discover_rows(rows, &options, progress).map_err(raised)
        })
    })?;
    let found = columns(py, &sorted.assignments).into_pyobject(py)?.into_any();
    Ok((Taxonomy(Arc::new(sorted.taxonomy)), found))
}

/// A taxonomy that grows with the items that it sees.
#[pyclass(frozen, module = "genus._genus")]
pub(crate) struct Stream(Arc<Mutex<genus_core::Stream>>);

impl Stream {
    fn new(stream: genus_core::Stream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    fn of_parts(parts: StreamParts) -> PyResult<Self> {
        Ok(Self::new(genus_core::Stream::from_parts(parts).map_err(raised)?))
    }

    fn lock(&self) -> MutexGuard<'_, genus_core::Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that begins with the labelled rows of a matrix.
#[pyfunction]
pub(crate) fn stream_of_rows<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
    labels: PyReadonlyArray1<'py, i64>,
    classes: Vec<String>,
    method: &str,
    calibration: Option<Calibration>,
    seed: u64,
) -> PyResult<Stream> {
    let options = options(method, calibration, seed, None, 0)?;
    let (items, labels) = (Matrix::new(items)?, numbers(&labels, classes.len())?);
    let stream = run(py, None, move |progress| {
        items.look(|features| {
            let rows = LabelledRows {
                features,
                classes: &classes,
                labels: &labels,
            };
            genus::stream_of_rows(rows, &options, progress).map_err(raised)
        })
    })?;
    Ok(Stream::new(stream))
}

/// What came of items that a stream saw: the number of the first, where each went (and whether it joined), and which earlier ones
/// have found a place or been given up.
type Observed<'py> = (u64, Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>);

#[pymethods]
impl Stream {
    /// Goes on from a taxonomy.
    #[staticmethod]
    fn of(taxonomy: &Taxonomy) -> PyResult<Self> {
        Ok(Self::new(
            genus_core::Stream::new((*taxonomy.0).clone()).map_err(raised)?,
        ))
    }

    /// The taxonomy as it has grown.
    fn taxonomy(&self) -> Taxonomy {
        Taxonomy(Arc::new(self.lock().taxonomy()))
    }

    /// The numbers of those that wait.
    fn waiting(&self) -> Vec<u64> {
        self.lock().waiting().into_iter().map(|(number, _)| number).collect()
    }

    /// The same with another name for a category.
    fn renamed(&self, category: usize, name: &str) -> PyResult<Self> {
        let parts = self.lock().to_parts();
        let taxonomy = Taxonomy(Arc::new(parts.taxonomy)).renamed(category, name)?.0;
        Self::of_parts(StreamParts {
            taxonomy: (*taxonomy).clone(),
            ..parts
        })
    }

    /// The same with two categories as one, and which category each is now.
    fn merged(&self, first: usize, second: usize) -> PyResult<(Self, Vec<usize>)> {
        let parts = self.lock().to_parts();
        let (taxonomy, now) = Taxonomy(Arc::new(parts.taxonomy)).merged(first, second)?;
        let stream = Self::of_parts(StreamParts {
            taxonomy: (*taxonomy.0).clone(),
            ..parts
        })?;
        Ok((stream, now))
    }

    /// Sees the rows of a matrix in their order. A label that is not negative says where its row belongs.
    ///
    /// All are seen or, after an error, none.
    fn observe<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        labels: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Observed<'py>> {
        let mut stream = self.lock().clone();
        let labels = numbers(&labels, stream.entries().len())?;
        let items = Matrix::new(items)?;
        let (stream, first, places, over) = run(py, None, move |_| {
            items.look(|rows| {
                if labels.len() != rows.rows() {
                    return Err(PyValueError::new_err("one label a row is needed"));
                }
                let (mut first, mut places, mut over) = (None, Vec::new(), Vec::new());
                for (row, label) in labels.iter().enumerate() {
                    let item = rows.row(row);
                    let observed = match *label {
                        Some(category) => stream.show(item, category),
                        None => stream.observe(item),
                    };
                    let observed = observed.map_err(|e| in_row(e, row))?;
                    let (StreamPlace::Joined(place) | StreamPlace::Waiting(place)) = observed.place;
                    places.push(place);
                    over.extend(observed.settled.into_iter().chain(observed.given_up));
                    first.get_or_insert(observed.number);
                }
                Ok((stream, first.unwrap_or(0), places, over))
            })
        })?;
        *self.lock() = stream;
        let numbers: Vec<i64> = over.iter().map(|&(number, _)| number as i64).collect();
        let settled: Vec<Assignment> = over.into_iter().map(|(_, place)| place).collect();
        Ok((
            first,
            columns(py, &places).into_pyobject(py)?.into_any(),
            numbers.into_pyarray(py),
            columns(py, &settled).into_pyobject(py)?.into_any(),
        ))
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(
        Bound<'py, PyAny>,
        (
            Taxonomy,
            Vec<u64>,
            Bound<'py, PyArray2<f32>>,
            (usize, u64, usize, usize, u64),
        ),
    )> {
        let py = slf.py();
        let parts = slf.get().lock().to_parts();
        let dim = parts.taxonomy.centres().dim();
        let numbers = parts.waiting.iter().map(|(number, _)| *number).collect();
        let rows: Vec<f32> = parts.waiting.into_iter().flat_map(|(_, row)| row).collect();
        let counts = (
            parts.room,
            parts.observed,
            parts.unreviewed,
            parts.reviewed,
            parts.next_name,
        );
        let state = (
            Taxonomy(Arc::new(parts.taxonomy)),
            numbers,
            matrix(py, rows, dim)?,
            counts,
        );
        Ok((py.get_type::<Self>().getattr("_restore")?, state))
    }

    #[staticmethod]
    fn _restore(
        taxonomy: &Taxonomy,
        numbers: Vec<u64>,
        rows: PyReadonlyArray2<'_, f32>,
        counts: (usize, u64, usize, usize, u64),
    ) -> PyResult<Self> {
        let rows = rows.as_array();
        let waiting = numbers.into_iter().zip(rows.outer_iter().map(|row| row.to_vec()));
        let (room, observed, unreviewed, reviewed, next_name) = counts;
        Self::of_parts(StreamParts {
            taxonomy: (*taxonomy.0).clone(),
            waiting: waiting.collect(),
            room,
            observed,
            unreviewed,
            reviewed,
            next_name,
        })
    }
}

/// An error of a single item with the row that it is in.
fn in_row(error: genus_core::TaskError, row: usize) -> PyErr {
    use genus_core::{FeatureError, TaskError};
    raised(match error {
        TaskError::Queries(FeatureError::ZeroRow { .. }) => genus::Error::from(FeatureError::ZeroRow { row }),
        other => other.into(),
    })
}
