//! A taxonomy on disk: `taxonomy.toml`, which a person can read, `centres.safetensors` and, when a calibration judges what
//! is assigned, `calibration.safetensors`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genus_core::{Features, Kind, Taxonomy, TaxonomyEntry};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::atomic::AtomicFile;
use crate::calibration::{self, CalibrationOrigin};
use crate::error::DataError;
use crate::fingerprint::fingerprint;

const FORMAT: &str = "genus taxonomy 1";
/// The format of a taxonomy with a calibration, in whose space the centres are.
const CALIBRATED: &str = "genus taxonomy 2";
const TOML: &str = "taxonomy.toml";
const CENTRES: &str = "centres.safetensors";
const CALIBRATION: &str = "calibration.safetensors";

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
    /// What it needs to grow further, if it grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing: Option<Growing>,
    /// How its calibration was made, if it has one; this is in the calibration's own file.
    #[serde(skip)]
    pub calibration: Option<CalibrationOrigin>,
}

/// Where a taxonomy that grows has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growing {
    /// The share of the last items that belonged to categories which were there when they came.
    pub familiar: f64,
    /// How many items wait, in a feature file beside it.
    pub waiting: usize,
}

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    features: usize,
    /// The centres this file belongs to, so that halves of two taxonomies are not taken for one.
    centres: String,
    /// The same of the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibration: Option<String>,
    made: Origin,
    category: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    kind: String,
    items: u64,
    /// How many examples and items a calibration counts, and how much they agree: the length of the mean of their unit rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<f64>,
}

/// Writes a taxonomy into a folder that exists.
pub fn write_taxonomy(folder: impl AsRef<Path>, taxonomy: &Taxonomy, made: &Origin) -> Result<(), DataError> {
    let folder = folder.as_ref();
    let centres = taxonomy.centres();
    let bytes: Vec<u8> = centres.values().iter().flat_map(|v| v.to_le_bytes()).collect();
    let centres_path = folder.join(CENTRES);
    let unwritable = |path: &Path, source| DataError::Write {
        target: path.display().to_string(),
        source,
        way_out: "",
    };
    let tensor = TensorView::new(Dtype::F32, vec![centres.rows(), centres.dim()], &bytes)
        .and_then(|view| safetensors::serialize([("centres", view)], None))
        .map_err(|e| unwritable(&centres_path, std::io::Error::other(e)))?;
    let calibration_path = folder.join(CALIBRATION);
    let calibration = taxonomy
        .calibration()
        .map(|calibration| calibration::to_bytes(calibration, &origin_of_calibration(made)))
        .transpose()
        .map_err(|e| unwritable(&calibration_path, e))?;
    let members = taxonomy.members();
    let file = File {
        format: calibration.as_ref().map_or(FORMAT, |_| CALIBRATED).to_owned(),
        features: centres.dim(),
        centres: fingerprint(&tensor),
        calibration: calibration.as_ref().map(fingerprint),
        made: made.clone(),
        category: taxonomy
            .entries()
            .iter()
            .enumerate()
            .map(|(at, entry)| Entry {
                name: entry.name.clone(),
                kind: entry.kind.to_string(),
                items: entry.items,
                members: members.get(at).map(|&(count, _)| count),
                agreement: members.get(at).map(|&(_, length)| length),
            })
            .collect(),
    };
    let toml_path = folder.join(TOML);
    let text = toml::to_string(&file).map_err(|e| unwritable(&toml_path, std::io::Error::other(e)))?;
    let files = [
        Some((centres_path, tensor)),
        calibration.map(|bytes| (calibration_path, bytes)),
        Some((toml_path, text.into_bytes())),
    ];
    let mut finished = Vec::new();
    for (path, bytes) in files.into_iter().flatten() {
        let mut file = AtomicFile::create(&path)?;
        file.write_all(&bytes).map_err(|e| unwritable(&path, e))?;
        finished.push(file);
    }
    finished.into_iter().try_for_each(AtomicFile::commit)
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
    let toml_path = folder.join(TOML);
    let centres_path = folder.join(CENTRES);
    let wrong = |path: &Path, problem: String| DataError::Malformed {
        path: path.to_owned(),
        problem,
    };
    let text = String::from_utf8(read(&toml_path)?).map_err(|e| wrong(&toml_path, e.to_string()))?;
    let file: File = toml::from_str(&text).map_err(|e| wrong(&toml_path, e.to_string()))?;
    if ![FORMAT, CALIBRATED].contains(&file.format.as_str()) {
        let problem = format!(
            "its format is `{}`, and this version reads `{FORMAT}` and `{CALIBRATED}`",
            file.format
        );
        return Err(wrong(&toml_path, problem));
    }
    let read_half = |path: &PathBuf, mark: &str| {
        let bytes = read(path)?;
        match fingerprint(&bytes) == mark {
            true => Ok(bytes),
            false => Err(wrong(
                path,
                format!("it does not belong to the {TOML} beside it; run `genus discover` again"),
            )),
        }
    };
    let bytes = read_half(&centres_path, &file.centres)?;
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
                "new" => Kind::New,
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
            let path = folder.join(CALIBRATION);
            let (calibration, origin) = calibration::from_bytes(&path, &read_half(&path, mark)?)?;
            taxonomy = taxonomy
                .with_calibration(Arc::new(calibration), members)
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

fn read(path: &PathBuf) -> Result<Vec<u8>, DataError> {
    fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => DataError::Malformed {
            path: path.clone(),
            problem: "there is no such file; `genus discover … --out DIR` makes the folder that belongs here"
                .to_owned(),
        },
        _ => DataError::Read {
            path: path.clone(),
            source,
        },
    })
}
