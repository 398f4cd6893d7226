//! Matrices and arrays, in both directions.

use genus_core::{Assignment, FeaturesView};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::failure::raised;

/// A matrix that NumPy has: C-contiguous, of 32-bit floats. It stays where it is, and alive as long as this is.
pub(crate) struct Matrix(Py<PyArray2<f32>>);

impl Matrix {
    /// Takes an array as it is.
    pub(crate) fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let array = array.cast::<PyArray2<f32>>().map_err(|_| {
            PyTypeError::new_err("X must be a two-dimensional NumPy array of float32; convert it with numpy.ascontiguousarray(X, dtype=\"float32\")")
        })?;
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "X must be C-contiguous, row after row; convert it with numpy.ascontiguousarray(X, dtype=\"float32\")",
            ));
        }
        Ok(Self(array.clone().unbind()))
    }

    /// Looks at it while Python goes on.
    pub(crate) fn look<T: Send>(&self, work: impl FnOnce(FeaturesView<'_>) -> PyResult<T> + Send) -> PyResult<T> {
        Python::attach(|py| {
            let array = self
                .0
                .bind(py)
                .try_readonly()
                .map_err(|e| PyValueError::new_err(e.to_string()))?;
            let dim = array.shape()[1];
            let values = array.as_slice().map_err(|e| PyValueError::new_err(e.to_string()))?;
            py.detach(|| work(FeaturesView::new(dim, values).map_err(raised)?))
        })
    }
}

/// Classes by number, `None` where it is negative.
pub(crate) fn numbers(labels: &PyReadonlyArray1<'_, i64>, classes: usize) -> PyResult<Vec<Option<usize>>> {
    let number = |&label: &i64| match usize::try_from(label) {
        Err(_) => Ok(None),
        Ok(class) if class < classes => Ok(Some(class)),
        Ok(class) => Err(PyValueError::new_err(format!(
            "there is no class {class}: there are {classes}"
        ))),
    };
    labels.as_array().iter().map(number).collect()
}

/// Where items went, as columns: category, similarity, margin, probability (NaN where nothing says it) and whether it is unsure.
type Columns<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
);

pub(crate) fn columns<'py>(py: Python<'py>, assignments: &[Assignment]) -> Columns<'py> {
    let floats = |of: fn(&Assignment) -> f32| -> Bound<'py, PyArray1<f32>> {
        assignments.iter().map(of).collect::<Vec<_>>().into_pyarray(py)
    };
    let categories: Vec<i64> = assignments.iter().map(|found| found.category as i64).collect();
    let unsure: Vec<bool> = assignments.iter().map(|found| found.score.unsure).collect();
    (
        categories.into_pyarray(py),
        floats(|found| found.score.similarity),
        floats(|found| found.score.margin),
        floats(|found| found.score.probability.unwrap_or(f32::NAN)),
        unsure.into_pyarray(py),
    )
}

/// Values as a matrix with so many columns.
pub(crate) fn matrix<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = values.len() / columns.max(1);
    values.into_pyarray(py).reshape([rows, columns])
}
