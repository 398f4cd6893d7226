//! Disk to features and back.
//!
//! [`read_table`] reads a feature file of any supported format (`.npy`, `.npz`, `.safetensors`, `.csv`, `.tsv`,
//! `.jsonl`, `.parquet`, `.feather`) into ids, labels and a matrix; [`TableReader`] does the same block by block for files larger than
//! memory, and [`FeatureWriter`] writes what they read. A feature file may say which encoder made its features;
//! [`same_encoder`] tells whether two files go together. [`Split`] says which classes are known and which are new, and
//! [`AssignmentWriter`] writes what became of every item. Taxonomies and calibrations are written and read whole.
//!
//! For images there is [`list_images`], which says which there are in a folder or a manifest, and [`FeatureCache`],
//! which keeps the features that were made of them once. Decoding them and making features is for others. [`datasets`]
//! lists the images of well-known data sets in the layouts that people have on disk, with the classes that count as new.
//!
//! Whatever is wrong with a file is a [`DataError`] that names the file, the row and the way out.
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("animals.csv");
//! std::fs::write(&path, "id,label,f0,f1\nrex,dog,0.9,0.1\ntom,cat,0.2,0.7\nnobody,,0.5,0.5\n")?;
//!
//! let table = genus_data::read_table(&path)?.table;
//! assert_eq!(table.ids, ["rex", "tom", "nobody"]);
//! assert_eq!(table.labels[1].as_deref(), Some("cat"));
//! assert_eq!(table.labels[2], None);
//! assert_eq!(table.features.row(0), [0.9, 0.1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assignments;
mod cache;
mod calibration;
pub mod datasets;
mod digits;
mod emoji;
mod error;
mod exports;
mod fingerprint;
mod images;
mod items;
mod sorting;
mod split;
mod table;
mod taxonomy;

pub use assignments::{AssignmentRow, AssignmentWriter, Format, ParseFormatError};
pub use cache::{CacheInfo, CachedEncoder, FeatureCache, default_root};
pub use calibration::{
    CalibrationOrigin, calibration_fingerprint, from_bytes as calibration_from_bytes, read_calibration,
    to_bytes as calibration_to_bytes, write_calibration,
};
pub use digits::{Digits, digits};
pub use emoji::{Emoji, emoji};
pub use error::{DataError, FilePosition};
pub use exports::{Export, ExportError, ExportFiles};
pub use images::{ImageItem, ImageList, is_image_source, list_folder, list_images, list_manifest, read_list};
pub use items::{ItemKey, KnownItem, KnownItems};
pub use sorting::{LinkKind, SortError, SortedItem, Sorting, folders as folders_of};
pub use split::{ResolvedSplit, Split};
pub use table::{
    ColumnProblem, ColumnRole, FeatureWriter, ParseTableFormatError, RefusedRow, RowGroup, Table, TableFile,
    TableFormat, TableOptions, TablePart, TableReader, for_each_cell, nearest, panic_is_caught, read_table,
    read_table_with, row_groups, same_encoder,
};
pub use taxonomy::{
    EncoderRecord, GrowingTaxonomy, Growth, GrowthState, Origin, SideFile, TaxonomyFolder, read_growing, read_taxonomy,
    write_taxonomy,
};
