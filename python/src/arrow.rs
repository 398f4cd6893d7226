//! Tables that hand out their columns by Arrow's capsules: polars, pyarrow, DuckDB and others.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::DataType;
use numpy::PyArray2;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::rows::matrix;

/// The features of a table as a matrix: every column a feature, or the lists of its only column.
#[pyfunction]
pub(crate) fn matrix_of_arrow<'py>(py: Python<'py>, table: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let stream = RecordBatchStreamReader::from_pyarrow_bound(table).map_err(|_| {
        PyTypeError::new_err(
            "X hands out Arrow data that is no table: give a table (a data frame) with a column a feature, or with one column of \
             lists",
        )
    })?;
    let schema = stream.schema();
    let lists = match schema.fields().as_ref() {
        [] => return Err(PyValueError::new_err("X has no columns")),
        [only] => matches!(
            only.data_type(),
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
        ),
        _ => false,
    };
    let (mut values, mut dim) = (Vec::new(), schema.fields().len());
    let mut before = 0;
    for batch in stream {
        let batch = batch.map_err(|e| PyValueError::new_err(format!("X: {e}")))?;
        match lists {
            true => dim = of_lists(&batch, before, &mut values)?.unwrap_or(dim),
            false => of_columns(&batch, before, &mut values)?,
        }
        before += batch.num_rows();
    }
    if lists && !values.is_empty() && values.len() != before * dim {
        return Err(PyValueError::new_err(
            "X has lists of different lengths, and every item needs as many features",
        ));
    }
    if before == 0 {
        return Err(PyValueError::new_err(format!(
            "Found array with 0 sample(s) (shape=(0, {dim})) while a minimum of 1 is required"
        )));
    }
    matrix(py, values, dim)
}

/// A column as floats; missing values are not numbers, and are refused where these are.
fn floats(name: &str, column: &ArrayRef, before: usize) -> PyResult<Vec<f32>> {
    if let Some(row) = (0..column.len()).find(|&row| column.is_null(row)) {
        return Err(PyValueError::new_err(format!(
            "Input X contains NaN: column {name:?} has no value in row {}; fill it or leave the row out",
            before + row
        )));
    }
    macro_rules! of {
        ($($variant:ident => $primitive:ty,)+) => {
            match column.data_type() {
                DataType::Float32 => Some(column.as_primitive::<Float32Type>().values().to_vec()),
                DataType::Float16 => {
                    Some(column.as_primitive::<Float16Type>().values().iter().map(|&v| f32::from(v)).collect())
                }
                DataType::Boolean => Some(column.as_boolean().values().iter().map(|v| f32::from(u8::from(v))).collect()),
                $(DataType::$variant => Some(column.as_primitive::<$primitive>().values().iter().map(|&v| v as f32).collect()),)+
                _ => None,
            }
        };
    }
    let floats: Option<Vec<f32>> = of! {
        Float64 => Float64Type,
        Int8 => Int8Type,
        Int16 => Int16Type,
        Int32 => Int32Type,
        Int64 => Int64Type,
        UInt8 => UInt8Type,
        UInt16 => UInt16Type,
        UInt32 => UInt32Type,
        UInt64 => UInt64Type,
    };
    floats.ok_or_else(|| {
        PyValueError::new_err(format!(
            "column {name:?} of X holds {}, and features are numbers: leave it out, or make features of it with an encoder",
            column.data_type()
        ))
    })
}

fn of_columns(batch: &RecordBatch, before: usize, values: &mut Vec<f32>) -> PyResult<()> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| floats(field.name(), column, before));
    let columns: Vec<Vec<f32>> = columns.collect::<PyResult<_>>()?;
    values.reserve(batch.num_rows() * columns.len());
    for row in 0..batch.num_rows() {
        values.extend(columns.iter().map(|column| column[row]));
    }
    Ok(())
}

/// The length of the lists, if there is one.
fn of_lists(batch: &RecordBatch, before: usize, values: &mut Vec<f32>) -> PyResult<Option<usize>> {
    let (schema, column) = (batch.schema(), batch.column(0));
    let name = schema.field(0).name();
    let mut dim = None;
    for row in 0..column.len() {
        if column.is_null(row) {
            return Err(PyValueError::new_err(format!(
                "column {name:?} of X has no features in row {}",
                before + row
            )));
        }
        let list = match column.data_type() {
            DataType::List(_) => column.as_list::<i32>().value(row),
            DataType::LargeList(_) => column.as_list::<i64>().value(row),
            _ => column.as_fixed_size_list().value(row),
        };
        let expected = *dim.get_or_insert(list.len());
        if list.len() != expected {
            return Err(PyValueError::new_err(format!(
                "column {name:?} of X has {} features in row {} and {expected} in others",
                list.len(),
                before + row
            )));
        }
        values.extend(floats(name, &list, before + row)?);
    }
    Ok(dim)
}
