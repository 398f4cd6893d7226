//! A taxonomy on disk: `taxonomy.toml`, which a person can read, `centres.safetensors` and, when a calibration judges what
//! is assigned, `calibration.safetensors`. One that grows has further files: `waiting.npz`, `joined.csv` and
//! `items.safetensors`.
//!
//! `taxonomy.toml` knows the others by their content, so that it alone decides which taxonomy the folder has. A change writes
//! the others beside those that are there, as `.next.<name>`, then replaces `taxonomy.toml`, which is the one moment when the
//! folder changes, and then gives the others their names. Whoever reads takes what `taxonomy.toml` asks for under either name;
//! whoever changes the folder next finishes what was left, or throws away what never came about.

mod folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use genus_core::{Features, Kind, Taxonomy, TaxonomyEntry};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::calibration::{self, CalibrationOrigin};
use crate::error::DataError;
use crate::fingerprint::fingerprint;
use crate::items::KnownItems;
use crate::table::{Table, read_table};
use genus_files::{MAX_TENSORS, MAX_TEXT, read_whole};

pub use folder::{SideFile, TaxonomyFolder};

const FORMAT: &str = "genus taxonomy 1";
/// The format of a taxonomy with a calibration, in whose space the centres are.
const CALIBRATED: &str = "genus taxonomy 2";
const TOML: &str = "taxonomy.toml";
const CENTRES: &str = "centres.safetensors";
const CALIBRATION: &str = "calibration.safetensors";
const WAITING: &str = "waiting.npz";
const JOINED: &str = "joined.csv";
const ITEMS: &str = "items.safetensors";
/// The files that may belong to a `taxonomy.toml`.
const BESIDE: [&str; 5] = [CENTRES, CALIBRATION, WAITING, JOINED, ITEMS];

/// How often a folder is read that changes while it is read, and how long it is left alone in between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// How a taxonomy was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The method.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// The version of Genus.
    pub version: String,
    /// Which encoder made the features of its centres, when the feature file said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// How that encoder is found again, when the features were made of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<EncoderRecord>,
    /// What it needs to grow further, if it grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing: Option<GrowthState>,
    /// How its calibration was made, if it has one; this is in the calibration's own file.
    #[serde(skip)]
    pub calibration: Option<CalibrationOrigin>,
}

/// An encoder as it was used, so that it can be used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderRecord {
    /// Its name with its parameters, or the folder of a training.
    pub encoder: String,
    /// The file of its weights, or `embedded`.
    pub weights: PathBuf,
    /// The precision, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
}

/// Where a taxonomy that grows has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowthState {
    /// The share of the last items that belonged to categories which were there when they came.
    pub familiar: f64,
    /// How many items wait, in a feature file beside it.
    pub waiting: usize,
}

#[derive(Serialize, Deserialize)]
struct TaxonomyText {
    format: String,
    features: usize,
    /// The centres this file belongs to, so that halves of two taxonomies are not taken for one.
    centres: String,
    /// The same of the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibration: Option<String>,
    /// The share of the items that is expected to belong to one of the categories, where a calibration judges that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    familiar: Option<f64>,
    /// The same of what a taxonomy that grows has besides, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    beside: BTreeMap<String, String>,
    made: Origin,
    category: Vec<CategoryText>,
}

/// Whether a file belongs to a taxonomy.
#[derive(Clone, Copy, PartialEq)]
enum FileMembership<'a> {
    No,
    /// It does, with this mark.
    Marked(&'a str),
    /// It does, and is of a release that did not mark it.
    Unmarked,
}

impl TaxonomyText {
    fn belongs(&self, name: &str) -> FileMembership<'_> {
        let mark = match name {
            CENTRES => Some(&self.centres),
            CALIBRATION => self.calibration.as_ref(),
            other => self.beside.get(other),
        };
        let is_unmarked = self.beside.is_empty() && self.made.growing.is_some() && [WAITING, JOINED].contains(&name);
        match mark {
            Some(mark) => FileMembership::Marked(mark),
            None if is_unmarked => FileMembership::Unmarked,
            None => FileMembership::No,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct CategoryText {
    name: String,
    kind: String,
    items: u64,
    /// How many examples and items a calibration counts, and how much they agree: the length of the mean of their unit rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<f64>,
}

/// Writes a taxonomy into a folder that exists; the one that is there is replaced in one step.
pub fn write_taxonomy(folder: impl AsRef<Path>, taxonomy: &Taxonomy, made: &Origin) -> Result<(), DataError> {
    TaxonomyFolder::open(folder)?.write(taxonomy, made, None)
}

/// Files by name.
type Named = Vec<(&'static str, Vec<u8>)>;

/// A taxonomy as its files: `taxonomy.toml`, without what a growing one has besides, and the bytes of the others.
fn to_files(folder: &Path, taxonomy: &Taxonomy, made: &Origin) -> Result<(TaxonomyText, Named), DataError> {
    let centres = taxonomy.centres();
    let bytes: Vec<u8> = centres.values().iter().flat_map(|v| v.to_le_bytes()).collect();
    let unwritable = |name, source| DataError::write(folder.join(name).display(), source);
    let tensor = TensorView::new(Dtype::F32, vec![centres.rows(), centres.dim()], &bytes)
        .and_then(|view| safetensors::serialize([("centres", view)], None))
        .map_err(|e| unwritable(CENTRES, std::io::Error::other(e)))?;
    let calibration = taxonomy
        .calibration()
        .map(|calibration| calibration::to_bytes(calibration, &origin_of_calibration(made)))
        .transpose()
        .map_err(|e| unwritable(CALIBRATION, e))?;
    let members = taxonomy.members();
    let file = TaxonomyText {
        format: calibration.as_ref().map_or(FORMAT, |_| CALIBRATED).to_owned(),
        features: centres.dim(),
        centres: fingerprint(&tensor),
        calibration: calibration.as_ref().map(fingerprint),
        familiar: taxonomy.familiar(),
        beside: BTreeMap::new(),
        made: made.clone(),
        category: taxonomy
            .entries()
            .iter()
            .enumerate()
            .map(|(at, entry)| CategoryText {
                name: entry.name.clone(),
                kind: entry.kind.to_string(),
                items: entry.items,
                members: members.get(at).map(|&(count, _)| count),
                agreement: members.get(at).map(|&(_, length)| length),
            })
            .collect(),
    };
    let mut files = vec![(CENTRES, tensor)];
    files.extend(calibration.map(|bytes| (CALIBRATION, bytes)));
    Ok((file, files))
}

/// How a taxonomy's calibration was made: as is said, or with the taxonomy.
fn origin_of_calibration(made: &Origin) -> CalibrationOrigin {
    made.calibration.clone().unwrap_or_else(|| CalibrationOrigin {
        encoder: made.encoder.clone(),
        fitted_on: "the examples of the taxonomy".to_owned(),
        version: made.version.clone(),
        seed: made.seed,
    })
}

/// Reads a taxonomy from its folder.
pub fn read_taxonomy(folder: impl AsRef<Path>) -> Result<(Taxonomy, Origin), DataError> {
    let folder = folder.as_ref();
    read_settled(folder, |file| assemble(folder, file))
}

/// A taxonomy and what it needs to grow further.
#[derive(Debug)]
pub struct GrowingTaxonomy {
    /// The categories.
    pub taxonomy: Taxonomy,
    /// How it was made.
    pub made: Origin,
    /// What it has beside it.
    pub growth: Growth,
}

/// What a taxonomy that grows has beside it.
#[derive(Debug)]
pub struct Growth {
    /// The items that wait, if any do.
    pub waiting: Option<Table>,
    /// The items that it has grown by.
    pub items: KnownItems,
}

/// Reads a taxonomy, what waits for it and what it has grown by.
pub fn read_growing(folder: impl AsRef<Path>) -> Result<GrowingTaxonomy, DataError> {
    let folder = folder.as_ref();
    read_settled(folder, |file| {
        let items = match file.belongs(ITEMS) {
            FileMembership::Marked(mark) => {
                let (path, bytes) = read_belonging(folder, ITEMS, mark)?;
                KnownItems::from_bytes(&path, &bytes, file.category.len())?
            }
            _ => KnownItems::default(),
        };
        let waiting = read_waiting(folder, &file)?;
        let (taxonomy, made) = assemble(folder, file)?;
        Ok(GrowingTaxonomy {
            taxonomy,
            made,
            growth: Growth { waiting, items },
        })
    })
}

/// The items that wait.
fn read_waiting(folder: &Path, file: &TaxonomyText) -> Result<Option<Table>, DataError> {
    let count = file.made.growing.map_or(0, |growing| growing.waiting);
    if count == 0 {
        return Ok(None);
    }
    let table = match file.belongs(WAITING) {
        FileMembership::Marked(mark) => {
            let (path, _) = read_belonging(folder, WAITING, mark)?;
            let table = read_table(path)?.table;
            // It may have been replaced when it was read.
            read_belonging(folder, WAITING, mark)?;
            table
        }
        _ => read_table(folder.join(WAITING))?.table,
    };
    if table.len() == count {
        return Ok(Some(table));
    }
    let problem = format!(
        "it has {} items, but {count} wait for the taxonomy beside it; bring back the files that belong together, or set \
         `waiting = 0` in {TOML} to go on without them",
        table.len()
    );
    Err(wrong(&folder.join(WAITING), problem))
}

/// Reads what belongs to the `taxonomy.toml` of a folder. What does not come out right is read again, as another process may
/// have changed the folder meanwhile; what fails twice with the same `taxonomy.toml` is damaged.
fn read_settled<T>(folder: &Path, read: impl Fn(TaxonomyText) -> Result<T, DataError>) -> Result<T, DataError> {
    let path = folder.join(TOML);
    let mut failed_with = None;
    for _ in 1..TRIES {
        let text = read_named(&path, MAX_TEXT)?;
        let found = parse(&path, &text).and_then(&read);
        if found.is_ok() || failed_with.as_ref() == Some(&text) {
            return found;
        }
        if failed_with.replace(text).is_some() {
            std::thread::sleep(PAUSE);
        }
    }
    parse(&path, &read_named(&path, MAX_TEXT)?).and_then(read)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<TaxonomyText, DataError> {
    let text = std::str::from_utf8(bytes).map_err(|e| wrong(path, e.to_string()))?;
    let file: TaxonomyText = toml::from_str(text).map_err(|e| wrong(path, e.to_string()))?;
    if ![FORMAT, CALIBRATED].contains(&file.format.as_str()) {
        let problem = format!(
            "its format is `{}`, and this version reads `{FORMAT}` and `{CALIBRATED}`",
            file.format
        );
        return Err(wrong(path, problem));
    }
    Ok(file)
}

/// A file that belongs to a `taxonomy.toml`, under the name that it has or the one that it had before.
fn read_belonging(folder: &Path, name: &str, mark: &str) -> Result<(PathBuf, Vec<u8>), DataError> {
    let (path, next) = (folder.join(name), folder::next(folder, name));
    // Once more under the first name: it may have got it in between.
    for path in [&path, &next, &path] {
        if let Ok(bytes) = read_whole(path, MAX_TENSORS)
            && fingerprint(&bytes) == mark
        {
            return Ok((path.clone(), bytes));
        }
    }
    read_named(&path, MAX_TENSORS)?;
    let problem = format!("it does not belong to the {TOML} beside it; run `genus discover` again");
    Err(wrong(&path, problem))
}

fn wrong(path: &Path, problem: String) -> DataError {
    DataError::Malformed {
        path: path.to_owned(),
        problem,
    }
}

/// The taxonomy that a `taxonomy.toml` and the files that belong to it are.
fn assemble(folder: &Path, file: TaxonomyText) -> Result<(Taxonomy, Origin), DataError> {
    let toml_path = folder.join(TOML);
    let (centres_path, bytes) = read_belonging(folder, CENTRES, &file.centres)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| wrong(&centres_path, e.to_string()))?;
    let tensor = tensors
        .tensor("centres")
        .map_err(|e| wrong(&centres_path, e.to_string()))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != [file.category.len(), file.features] {
        let problem = format!(
            "its centres are {:?} of {:?}, and {TOML} speaks of {} categories of {} features",
            tensor.shape(),
            tensor.dtype(),
            file.category.len(),
            file.features
        );
        return Err(wrong(&centres_path, problem));
    }
    let values = tensor
        .data()
        .chunks_exact(4)
        .map(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]]))
        .collect();
    let centres = Features::new(file.features, values).map_err(|e| wrong(&centres_path, e.to_string()))?;
    let mut members = Vec::new();
    let entries = file
        .category
        .into_iter()
        .map(|entry| {
            let kind = match entry.kind.as_str() {
                "known" => Kind::Known,
                "new" => Kind::Novel,
                other => {
                    let problem = format!("category `{}` is of kind `{other}`, not known or new", entry.name);
                    return Err(wrong(&toml_path, problem));
                }
            };
            members.extend(entry.members.zip(entry.agreement));
            Ok(TaxonomyEntry {
                name: entry.name,
                kind,
                items: entry.items,
            })
        })
        .collect::<Result<_, _>>()?;
    let mut taxonomy = Taxonomy::from_parts(entries, centres).map_err(|e| wrong(&toml_path, e.to_string()))?;
    let mut made = file.made;
    match (file.format == CALIBRATED, &file.calibration) {
        (false, None) => {}
        (true, Some(mark)) => {
            let (path, bytes) = read_belonging(folder, CALIBRATION, mark)?;
            let (calibration, origin) = calibration::from_bytes(&path, &bytes)?;
            taxonomy = taxonomy
                .with_calibration(Arc::new(calibration), members)
                .and_then(|taxonomy| match file.familiar {
                    Some(share) => taxonomy.with_familiar(share),
                    None => Ok(taxonomy),
                })
                .map_err(|e| wrong(&toml_path, e.to_string()))?;
            made.calibration = Some(origin);
        }
        _ => {
            let problem = format!("a calibration goes with the format `{CALIBRATED}` and no other");
            return Err(wrong(&toml_path, problem));
        }
    }
    Ok((taxonomy, made))
}

/// The bytes of a file that has to be there.
fn read_named(path: &Path, most: u64) -> Result<Vec<u8>, DataError> {
    read_whole(path, most).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => DataError::NoTaxonomy { path: path.to_owned() },
        _ => DataError::Read {
            path: path.to_owned(),
            source,
        },
    })
}
