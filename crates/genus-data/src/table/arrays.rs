//! Formats made of whole arrays (`.npy`, `.npz`, `.safetensors`): the matrix is streamed, labels and ids are held.

use std::io::{self, Read};
use std::iter;

use super::columns::{self, ColumnRole, TableOptions};
use super::element::Element;
use super::label;
use super::limits::{MemoryGrowth, check_features};
use super::source::{FileOrigin, RowBlock, TableSource};
use crate::error::{DataError, FilePosition};

/// What the arrays may be called, best name first.
pub(super) const FEATURES: [&str; 4] = ["x", "embeddings", "embedding", "features"];
/// What the labels may be called, best name first.
pub(super) const LABELS: [&str; 3] = ["y", "labels", "label"];
/// What the names of the integers of the labels are called.
pub(super) const CLASSES: &str = "classes";
/// What the ids are called.
pub(super) const IDS: &str = "ids";
/// What the text that says which encoder made the features is called.
pub(super) const ENCODER: &str = "encoder";

/// Bytes decoded at a time: they stay in the processor's cache on their way to the matrix.
const CHUNK: usize = 256 << 10;

/// What the arrays of a file are called.
pub(super) struct Arrangement {
    pub(super) features: String,
    pub(super) labels: Option<String>,
    pub(super) ids: Option<String>,
}

impl Arrangement {
    /// Finds the arrays by what somebody says or by what they are usually called; `what` is the word for one of them.
    pub(super) fn of(
        origin: &FileOrigin,
        what: &str,
        present: &[String],
        options: &TableOptions,
    ) -> Result<Self, DataError> {
        let exists = |name: &&str| present.iter().any(|other| other == name);
        let named = |role: ColumnRole, name: &str| match exists(&name) {
            true => Ok(Some(name.to_owned())),
            false if options.may_lack == Some(role) => Ok(None),
            false => Err(columns::missing(origin, role, name, present.iter())),
        };
        let usual = |names: &[&str]| names.iter().copied().find(exists).map(str::to_owned);
        let features = match &options.features[..] {
            [] => usual(&FEATURES),
            [name] => named(ColumnRole::Features, name)?,
            [_, second, ..] => {
                let problem = format!("an {what} has all features of its rows; name one {what}, not \"{second}\" too");
                return Err(origin.malformed(problem));
            }
        };
        let features = features.ok_or_else(|| {
            let present = match present {
                [] => "nothing".to_owned(),
                present => present.join(", "),
            };
            origin.malformed(format!(
                "no {what} \"x\" with the features; the file has {present}; save the features as \"x\""
            ))
        })?;
        Ok(Self {
            features,
            labels: match &options.label {
                Some(name) => named(ColumnRole::Label, name)?,
                None => usual(&LABELS),
            },
            ids: match &options.id {
                Some(name) => named(ColumnRole::Id, name)?,
                None => usual(&[IDS]),
            },
        })
    }
}

/// One value a row.
pub(super) enum Column {
    Integers(Vec<i128>),
    Texts(Vec<String>),
}

impl Column {
    pub(super) fn len(&self) -> usize {
        match self {
            Column::Integers(integers) => integers.len(),
            Column::Texts(texts) => texts.len(),
        }
    }
}

/// An `n × d` array of numbers that comes in order from a stream.
pub(super) struct Matrix {
    pub(super) rows: u64,
    pub(super) dim: usize,
    pub(super) element: Element,
    /// Gives exactly the bytes of the array.
    pub(super) bytes: Box<dyn Read + Send>,
    /// The array is stored column after column.
    pub(super) columns_first: bool,
}

/// Checks the shape of the features; gives rows and columns.
pub(super) fn matrix_shape(origin: &FileOrigin, name: &str, shape: &[u64]) -> Result<(u64, usize), DataError> {
    let &[rows, dim] = shape else {
        return Err(origin.malformed(format!(
            "{name} has {} dimensions where two are needed, one row an item and one column a feature; reshape it",
            shape.len()
        )));
    };
    if rows == 0 {
        return Err(DataError::NoRows {
            path: origin.path.clone(),
        });
    }
    match usize::try_from(dim) {
        Ok(0) => Err(DataError::NoFeatures {
            path: origin.path.clone(),
        }),
        Ok(dim) => Ok((rows, dim)),
        Err(_) => Err(origin.malformed(format!("{name} has {dim} columns, more than this machine can address"))),
    }
}

/// Checks the shape of an array with one value a row.
pub(super) fn column_shape(origin: &FileOrigin, name: &str, shape: &[u64], rows: u64) -> Result<(), DataError> {
    match *shape {
        [length] if length == rows => Ok(()),
        [length] => Err(origin.malformed(format!(
            "\"{name}\" has {length} values but the features have {rows} rows; save one value a row"
        ))),
        _ => Err(origin.malformed(format!(
            "\"{name}\" has {} dimensions where one is needed, one value a row; flatten it",
            shape.len()
        ))),
    }
}

/// The bytes that an array of this shape takes, unless they cannot be counted.
pub(super) fn byte_length(shape: &[u64], element_size: usize) -> Option<u64> {
    shape
        .iter()
        .try_fold(element_size as u64, |product, &n| product.checked_mul(n))
}

/// What a file has besides its features.
#[derive(Default)]
pub(super) struct SideColumns {
    pub(super) ids: Option<Column>,
    pub(super) labels: Option<Column>,
    pub(super) classes: Option<Vec<String>>,
    pub(super) encoder: Option<String>,
}

/// Rows from a matrix and the columns beside it.
pub(super) struct Arrays {
    origin: FileOrigin,
    matrix: Matrix,
    /// The whole matrix, row after row, when it was stored column after column.
    transposed: Option<Vec<f32>>,
    row: u64,
    beside: SideColumns,
}

impl Arrays {
    /// Columns must be as long as the matrix.
    pub(super) fn open(
        origin: FileOrigin,
        mut matrix: Matrix,
        beside: SideColumns,
    ) -> Result<Box<dyn TableSource>, DataError> {
        check_features(&origin, matrix.dim as u64)?;
        for column in beside.ids.iter().chain(&beside.labels) {
            column_shape(&origin, "ids or labels", &[column.len() as u64], matrix.rows)?;
        }
        let transposed = if matrix.columns_first {
            Some(read_transposed(&origin, &mut matrix)?)
        } else {
            None
        };
        Ok(Box::new(Self {
            origin,
            matrix,
            transposed,
            row: 0,
            beside,
        }))
    }

    /// The values of the next rows.
    fn values(&mut self, rows: usize) -> Result<Vec<f32>, DataError> {
        let count = rows
            .checked_mul(self.matrix.dim)
            .ok_or_else(|| too_large(&self.origin))?;
        let mut values = Vec::new();
        if let Some(transposed) = &mut self.transposed {
            if rows as u64 == self.matrix.rows {
                return Ok(std::mem::take(transposed));
            }
            let start = self.row as usize * self.matrix.dim;
            values.extend_from_slice(&transposed[start..start + count]);
        } else {
            reserve(&self.origin, &mut values, count)?;
            read_elements(&self.origin, &mut self.matrix, count, &mut values)?;
        }
        Ok(values)
    }

    fn label(&self, row: usize) -> Result<Option<String>, DataError> {
        match (&self.beside.labels, &self.beside.classes) {
            (None, _) => Ok(None),
            (Some(Column::Texts(texts)), _) => Ok(label::from_text(texts[row].clone())),
            (Some(Column::Integers(integers)), None) => Ok(label::from_integer(integers[row])),
            (Some(Column::Integers(integers)), Some(classes)) => {
                label::from_index(integers[row], classes).map_err(|()| DataError::LabelOutsideClasses {
                    path: self.origin.path.clone(),
                    place: FilePosition::Row(row as u64 + 1),
                    label: integers[row],
                    classes: classes.len(),
                })
            }
        }
    }
}

impl TableSource for Arrays {
    fn dim(&self) -> usize {
        self.matrix.dim
    }

    fn rows(&self) -> Option<u64> {
        Some(self.matrix.rows)
    }

    fn class_names(&self) -> Option<&[String]> {
        self.beside.classes.as_deref()
    }

    fn encoder(&self) -> Option<&str> {
        self.beside.encoder.as_deref()
    }

    fn next_block(&mut self, max_rows: usize) -> Result<Option<RowBlock>, DataError> {
        let rows = usize::try_from(self.matrix.rows - self.row)
            .unwrap_or(usize::MAX)
            .min(max_rows);
        if rows == 0 {
            return Ok(None);
        }
        let values = self.values(rows)?;
        let range = self.row as usize..self.row as usize + rows;
        let ids = match &mut self.beside.ids {
            None => None,
            Some(Column::Integers(integers)) => Some(integers[range.clone()].iter().map(i128::to_string).collect()),
            Some(Column::Texts(texts)) => Some(texts[range.clone()].iter_mut().map(std::mem::take).collect()),
        };
        let labels = match self.beside.labels {
            None => Vec::new(),
            Some(_) => range.map(|row| self.label(row)).collect::<Result<_, _>>()?,
        };
        self.row += rows as u64;
        if self.row == self.matrix.rows && self.transposed.is_none() {
            expect_end(&self.origin, &mut self.matrix)?;
        }
        Ok(Some(RowBlock {
            values,
            ids,
            labels,
            ..RowBlock::default()
        }))
    }
}

/// Reads a whole matrix that is stored column after column.
fn read_transposed(origin: &FileOrigin, matrix: &mut Matrix) -> Result<Vec<f32>, DataError> {
    let rows = usize::try_from(matrix.rows).map_err(|_| too_large(origin))?;
    let count = rows.checked_mul(matrix.dim).ok_or_else(|| too_large(origin))?;
    MemoryGrowth::of(origin).add_values(origin, count as u64)?;
    let mut values = Vec::new();
    reserve(origin, &mut values, count)?;
    values.resize(count, 0.0);
    let mut column = Vec::new();
    reserve(origin, &mut column, rows)?;
    for feature in 0..matrix.dim {
        column.clear();
        read_elements(origin, matrix, rows, &mut column)?;
        for (to, from) in values.iter_mut().skip(feature).step_by(matrix.dim).zip(&column) {
            *to = *from;
        }
    }
    expect_end(origin, matrix)?;
    Ok(values)
}

/// Appends the next `count` elements of the stream.
fn read_elements(
    origin: &FileOrigin,
    matrix: &mut Matrix,
    count: usize,
    values: &mut Vec<f32>,
) -> Result<(), DataError> {
    let size = matrix.element.size();
    let mut buffer = vec![0; CHUNK.min(count.saturating_mul(size))];
    let per_chunk = CHUNK / size;
    let chunks = iter::repeat_n(per_chunk, count / per_chunk).chain(Some(count % per_chunk));
    for elements in chunks {
        let bytes = &mut buffer[..elements * size];
        matrix.bytes.read_exact(bytes).map_err(|e| stream_error(origin, e))?;
        matrix.element.decode(bytes, values);
    }
    Ok(())
}

/// Reads past the last element, which is when compressed streams compare their checksum.
fn expect_end(origin: &FileOrigin, matrix: &mut Matrix) -> Result<(), DataError> {
    match matrix.bytes.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(origin.malformed("the features go on after their last row; the file is damaged, write it again")),
        Err(e) => Err(stream_error(origin, e)),
    }
}

/// What a failed read of array bytes means: damage to the file, or trouble with the disk.
pub(super) fn stream_error(origin: &FileOrigin, error: io::Error) -> DataError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => origin.malformed("the file ends early; it was cut off, copy or write it again"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            origin.malformed(format!("the file is damaged ({error}); copy or write it again"))
        }
        _ => origin.io(error),
    }
}

fn reserve(origin: &FileOrigin, values: &mut Vec<f32>, count: usize) -> Result<(), DataError> {
    values.try_reserve_exact(count).map_err(|_| too_large(origin))
}

fn too_large(origin: &FileOrigin) -> DataError {
    origin.malformed("the features do not fit into memory; read fewer rows at a time")
}
