//! A taxonomy on disk: `taxonomy.toml`, which a person can read, and `centres.safetensors`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use genus_core::{Features, Kind, Taxonomy, TaxonomyEntry};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::atomic::AtomicFile;
use crate::error::DataError;

const FORMAT: &str = "genus taxonomy 1";
const TOML: &str = "taxonomy.toml";
const CENTRES: &str = "centres.safetensors";

/// How a taxonomy was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    features: usize,
    /// The centres this file belongs to, so that halves of two taxonomies are not taken for one.
    centres: String,
    made: Origin,
    category: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    kind: String,
    items: u64,
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
    let file = File {
        format: FORMAT.to_owned(),
        features: centres.dim(),
        centres: fingerprint(&tensor),
        made: made.clone(),
        category: taxonomy
            .entries()
            .iter()
            .map(|entry| Entry {
                name: entry.name.clone(),
                kind: entry.kind.to_string(),
                items: entry.items,
            })
            .collect(),
    };
    let toml_path = folder.join(TOML);
    let text = toml::to_string(&file).map_err(|e| unwritable(&toml_path, std::io::Error::other(e)))?;
    let mut finished = Vec::new();
    for (path, bytes) in [(centres_path, &*tensor), (toml_path, text.as_bytes())] {
        let mut file = AtomicFile::create(&path)?;
        file.write_all(bytes).map_err(|e| unwritable(&path, e))?;
        finished.push(file);
    }
    finished.into_iter().try_for_each(AtomicFile::commit)
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
    if file.format != FORMAT {
        let problem = format!("its format is `{}`, and this version reads `{FORMAT}`", file.format);
        return Err(wrong(&toml_path, problem));
    }
    let bytes = read(&centres_path)?;
    if fingerprint(&bytes) != file.centres {
        return Err(wrong(
            &centres_path,
            format!("it does not belong to the {TOML} beside it; run `genus discover` again"),
        ));
    }
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
            Ok(TaxonomyEntry {
                name: entry.name,
                kind,
                items: entry.items,
            })
        })
        .collect::<Result<_, _>>()?;
    let taxonomy = Taxonomy::from_parts(entries, centres).map_err(|e| wrong(&toml_path, e.to_string()))?;
    Ok((taxonomy, file.made))
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

/// FNV-1a: enough to see that two files were not written together.
fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
