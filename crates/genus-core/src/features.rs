//! The matrix that everything starts from: one row an item, one column a feature.

use crate::error::FeatureError;
use crate::linalg;

/// An `n × d` row-major matrix of finite `f32` values, one row an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    dim: usize,
    values: Vec<f32>,
}

impl Features {
    /// Takes a row-major matrix; fails unless the length is a multiple of `dim` and every value is finite.
    pub fn new(dim: usize, values: Vec<f32>) -> Result<Self, FeatureError> {
        FeaturesView::new(dim, &values)?;
        Ok(Self { dim, values })
    }

    /// Copies equally long rows into a matrix.
    pub fn from_rows<R: AsRef<[f32]>>(rows: impl IntoIterator<Item = R>) -> Result<Self, FeatureError> {
        let mut values = Vec::new();
        let mut dim = None;
        for (row, r) in rows.into_iter().enumerate() {
            let r = r.as_ref();
            let expected = *dim.get_or_insert(r.len());
            if r.len() != expected {
                return Err(FeatureError::Ragged {
                    row,
                    expected,
                    found: r.len(),
                });
            }
            values.extend_from_slice(r);
        }
        Self::new(dim.ok_or(FeatureError::NoColumns)?, values)
    }

    /// A matrix whose values are known to be finite because they were computed from finite ones.
    pub(crate) fn from_finite(dim: usize, values: Vec<f32>) -> Self {
        debug_assert!(dim > 0 && values.len().is_multiple_of(dim));
        Self { dim, values }
    }

    /// The number of items.
    pub fn rows(&self) -> usize {
        self.values.len() / self.dim
    }

    /// The number of features of an item.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The features of one item.
    ///
    /// # Panics
    /// When `row` is not less than [`rows`](Self::rows).
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dim..][..self.dim]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }

    /// The whole matrix, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The whole matrix, row after row, handed over.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The named rows in the named order; a row may be named more than once.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn select(&self, rows: &[usize]) -> Self {
        FeaturesView::from(self).select(rows)
    }

    /// The dot products of every row with every row of `other`, a row of them for each row.
    ///
    /// # Panics
    /// When the two have rows of different length.
    pub fn dots(&self, other: &Self) -> Vec<f32> {
        assert_eq!(self.dim, other.dim, "rows of different length have no products");
        linalg::dots(&self.values, &other.values, self.dim)
    }

    /// Scales every row to length one; an all-zero row has no direction and is an error.
    pub fn into_unit(mut self) -> Result<Self, FeatureError> {
        for (row, values) in self.values.chunks_exact_mut(self.dim).enumerate() {
            if !scale_to_unit(values) {
                return Err(FeatureError::ZeroRow { row });
            }
        }
        Ok(self)
    }
}

/// A matrix as [`Features`] are one, of which somebody else has the memory: it is looked at where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeaturesView<'a> {
    dim: usize,
    values: &'a [f32],
}

impl<'a> FeaturesView<'a> {
    /// Looks at a row-major matrix; fails unless the length is a multiple of `dim` and every value is finite.
    pub fn new(dim: usize, values: &'a [f32]) -> Result<Self, FeatureError> {
        if dim == 0 {
            return Err(FeatureError::NoColumns);
        }
        if !values.len().is_multiple_of(dim) {
            return Err(FeatureError::Ragged {
                row: values.len() / dim,
                expected: dim,
                found: values.len() % dim,
            });
        }
        match first_not_finite(values) {
            None => Ok(Self { dim, values }),
            Some(at) => Err(FeatureError::NotFinite {
                row: at / dim,
                column: at % dim,
                value: values[at],
            }),
        }
    }

    /// The number of items.
    pub fn rows(&self) -> usize {
        self.values.len() / self.dim
    }

    /// The number of features of an item.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The features of one item.
    ///
    /// # Panics
    /// When `row` is not less than [`rows`](Self::rows).
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.dim..][..self.dim]
    }

    /// The whole matrix, row after row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// A copy of the named rows in the named order; a row may be named more than once.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn select(&self, rows: &[usize]) -> Features {
        let mut values = Vec::with_capacity(rows.len() * self.dim);
        for &row in rows {
            values.extend_from_slice(self.row(row));
        }
        Features { dim: self.dim, values }
    }
}

impl<'a> From<&'a Features> for FeaturesView<'a> {
    fn from(features: &'a Features) -> Self {
        Self {
            dim: features.dim,
            values: &features.values,
        }
    }
}

/// Where the first NaN or infinity stands. Whole blocks are looked at without stopping, which vectorises.
fn first_not_finite(values: &[f32]) -> Option<usize> {
    const BLOCK: usize = 1024;
    let block = values
        .chunks(BLOCK)
        .position(|block| block.iter().fold(false, |found, v| found | !v.is_finite()))?;
    let start = block * BLOCK;
    values[start..].iter().position(|v| !v.is_finite()).map(|at| start + at)
}

/// Scales a row to length one, or returns `false` when it is all zeros.
///
/// The sum is taken in `f64`: the squares of large `f32` values overflow `f32`.
pub(crate) fn scale_to_unit(row: &mut [f32]) -> bool {
    let norm = norm(row);
    if norm == 0.0 {
        return false;
    }
    let scale = (1.0 / norm) as f32;
    if scale.is_normal() {
        row.iter_mut().for_each(|v| *v *= scale);
    } else {
        // Rows near the ends of the range of f32.
        row.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    }
    true
}

/// The Euclidean length of a row, summed in eight lanes so that it vectorises and never depends on the machine.
pub(crate) fn norm(row: &[f32]) -> f64 {
    let mut lanes = [0f64; 8];
    let chunks = row.chunks_exact(8);
    let tail: f64 = chunks.remainder().iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(v) * f64::from(v);
        }
    }
    (lanes.iter().sum::<f64>() + tail).sqrt()
}
