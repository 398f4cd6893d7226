//! NumPy's archive of arrays, a ZIP file with one `.npy` an entry.

use std::fs::File;

use genus_files::FormatError;
use genus_files::archive::{Directory, EntryReader};

use super::arrays::{Arrangement, Arrays, CLASSES, Column, ENCODER, SideColumns, column_shape};
use super::columns::TableOptions;
use super::encoder;
use super::npy::NpyHeader;
use super::source::{FileOrigin, TableSource};
use crate::error::DataError;

/// Opens an `.npz` file: features and, where it has them, labels, class names and ids.
pub(super) fn open(origin: FileOrigin, file: File, options: &TableOptions) -> Result<Box<dyn TableSource>, DataError> {
    let archive = NpzArchive::open(origin, file)?;
    let names = archive.names();
    let arrays = Arrangement::of(&archive.origin, "array", &names, options)?;
    let x = &arrays.features;
    let (header, bytes) = archive.array(x)?;
    let matrix = header.into_matrix(&archive.origin, &format!("\"{x}\""), Box::new(bytes))?;

    let column = |name: &String| archive.column(name, matrix.rows);
    let labels = arrays.labels.as_ref().map(column).transpose()?;
    let ids = arrays.ids.as_ref().map(column).transpose()?;
    let classes = if names.iter().any(|n| n == CLASSES) {
        Some(archive.classes()?)
    } else {
        None
    };
    let encoder = if names.iter().any(|n| n == ENCODER) {
        archive.encoder()?
    } else {
        None
    };
    let beside = SideColumns {
        ids,
        labels,
        classes,
        encoder,
    };
    Arrays::open(archive.origin, matrix, beside)
}

struct NpzArchive {
    origin: FileOrigin,
    directory: Directory,
}

impl NpzArchive {
    fn open(origin: FileOrigin, file: File) -> Result<Self, DataError> {
        let directory = Directory::read(file).map_err(|e| {
            origin.format(e, |problem| {
                format!("not a readable .npz file ({problem}); it was cut off or is damaged, write it again")
            })
        })?;
        Ok(Self { origin, directory })
    }

    /// The names of the arrays.
    fn names(&self) -> Vec<String> {
        let names = self.directory.names().filter_map(|name| name.strip_suffix(".npy"));
        names.map(str::to_owned).collect()
    }

    /// The head of an array and the bytes that follow it, from a handle of their own.
    fn array(&self, name: &str) -> Result<(NpyHeader, EntryReader<File>), DataError> {
        let origin = &self.origin;
        let damaged = |error: FormatError| {
            origin.format(error, |problem| {
                format!("\"{name}\" cannot be read from the archive: {problem}; write the file again")
            })
        };
        let entry = self.directory.entry(&format!("{name}.npy")).map_err(damaged)?;
        let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
        let mut bytes = entry.open(file).map_err(damaged)?;
        let header = NpyHeader::read(origin, &format!("\"{name}\""), &mut bytes, entry.length())?;
        Ok((header, bytes))
    }

    /// An array with one value a row.
    fn column(&self, name: &str, rows: u64) -> Result<Column, DataError> {
        let (header, mut bytes) = self.array(name)?;
        column_shape(&self.origin, name, &header.shape, rows)?;
        header.read_column(&self.origin, name, &mut bytes)
    }

    /// The one text of the array that says which encoder made the features.
    fn encoder(&self) -> Result<Option<String>, DataError> {
        let (header, mut bytes) = self.array(ENCODER)?;
        if matches!(*header.shape, [] | [1])
            && let Column::Texts(mut texts) = header.read_column(&self.origin, ENCODER, &mut bytes)?
        {
            return Ok(texts.pop().and_then(encoder::from_text));
        }
        Err(self
            .origin
            .malformed("\"encoder\" must be one text; save it as numpy.array(\"...\")"))
    }

    fn classes(&self) -> Result<Vec<String>, DataError> {
        let (header, mut bytes) = self.array(CLASSES)?;
        if header.shape.len() != 1 {
            return Err(self
                .origin
                .malformed("\"classes\" must be a list of names, the first for label 0; flatten it"));
        }
        Ok(match header.read_column(&self.origin, CLASSES, &mut bytes)? {
            Column::Texts(names) => names,
            Column::Integers(names) => names.iter().map(i128::to_string).collect(),
        })
    }
}
