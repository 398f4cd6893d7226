//! Hugging Face `datasets`: `metadata.csv` in a sorted folder, and a card that says how it is read.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{ExportError, ExportFiles};
use crate::assignments::COLUMNS;
use crate::error::DataError;
use crate::sorting::{SortedItem, Sorting};

/// The table of the images.
pub(crate) const METADATA: &str = "metadata.csv";
/// The data card.
pub(crate) const CARD: &str = "README.md";

/// Without it a category called `train` or `test` would be taken for a part of the data of that name.
const CARD_TEXT: &str = "\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: \"**\"
---

Images sorted by Genus, a folder a category. `metadata.csv` says where every image went and how well it fits:
`datasets.load_dataset` reads both when it is given this folder.
";

pub(super) fn export(sorting: &Sorting, items: &[SortedItem]) -> Result<ExportFiles, ExportError> {
    let table = metadata(sorting, items).map_err(|e| DataError::write(METADATA, e))?;
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for (name, bytes) in [(METADATA, table), (CARD, CARD_TEXT.as_bytes().to_vec())] {
        let path = sorting.folder().join(name);
        match fs::read(&path) {
            Ok(found) if found == bytes => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => files.push((path, bytes)),
            Ok(_) => return Err(ExportError::Taken { path }),
            Err(source) => return Err(DataError::Read { path, source }.into()),
        }
    }
    Ok(ExportFiles {
        files,
        next: format!(
            "datasets: datasets.load_dataset({:?})",
            sorting.folder().display().to_string()
        ),
    })
}

fn metadata(sorting: &Sorting, items: &[SortedItem]) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["file_name"].iter().chain(&COLUMNS))?;
    for (target, item) in sorting.targets().zip(items) {
        let row = item.row();
        let cells = row.cells();
        writer.write_record([target].into_iter().chain(cells.iter().map(|cell| &**cell)))?;
    }
    writer.into_inner().map_err(|e| e.into_error())
}
