//! What a round goes by: a taxonomy, and where categories are still found, prototypes and examples. It lies in a folder that is
//! called by its content, and the round begins when a file says which.

use std::fs;
use std::path::Path;

use genus_core::{Features, Taxonomy};
use genus_data::{FeatureWriter, Origin, Table, read_table, read_taxonomy, write_taxonomy};
use genus_files::ScratchFolder;
use serde::{Deserialize, Serialize};

use crate::BulkError;
use crate::manifest::{Round, from_json, hash, to_json};
use crate::place::{Place, read_local};

/// The prototypes of the known classes, as a table.
const PROTOTYPES: &str = "prototypes.parquet";
/// Some items of every category, as a table whose labels are the numbers of the categories.
const EXAMPLES: &str = "examples.parquet";

/// What a round goes by.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) taxonomy: Taxonomy,
    pub(crate) origin: Origin,
    pub(crate) prototypes: Option<Features>,
    pub(crate) examples: Option<Table>,
}

/// How a round begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The hash of what it goes by.
    state: String,
    files: Vec<StateFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    name: String,
    hash: String,
}

/// Where it is said what a round goes by.
pub(crate) fn start_name(round: Round) -> String {
    format!("{round}/start.json")
}

impl State {
    /// What it is as files, in order of their names.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, BulkError> {
        let scratch = scratch()?;
        let folder = scratch.path().join("state");
        fs::create_dir(&folder).map_err(|source| BulkError::Write {
            name: folder.display().to_string(),
            source,
        })?;
        write_taxonomy(&folder, &self.taxonomy, &self.origin)?;
        if let Some(prototypes) = &self.prototypes {
            let table = Table {
                ids: (0..prototypes.rows()).map(|row| row.to_string()).collect(),
                labels: vec![None; prototypes.rows()],
                features: prototypes.clone(),
            };
            write_table(&folder.join(PROTOTYPES), &table, None)?;
        }
        if let Some(examples) = &self.examples {
            write_table(&folder.join(EXAMPLES), examples, None)?;
        }
        files_of(&folder)
    }

    /// The hash of what it is.
    pub(crate) fn hash(&self) -> Result<String, BulkError> {
        Ok(Self::start(&self.files()?)?.state)
    }

    /// What begins a round with it.
    fn start(files: &[(String, Vec<u8>)]) -> Result<Start, BulkError> {
        let marks: Vec<StateFile> = files
            .iter()
            .map(|(name, bytes)| StateFile {
                name: name.clone(),
                hash: hash(bytes),
            })
            .collect();
        Ok(Start {
            state: hash(&to_json("start.json", &marks)?),
            files: marks,
        })
    }

    /// Lets a round begin with it, unless it has begun: what another machine began with first counts.
    pub(crate) fn begin(&self, place: &Place, round: Round) -> Result<(), BulkError> {
        let files = self.files()?;
        let start = Self::start(&files)?;
        for (name, bytes) in &files {
            place.publish(&format!("{round}/state-{}/{name}", start.state), bytes)?;
        }
        let name = start_name(round);
        place.publish(&name, &to_json(&name, &start)?)?;
        Ok(())
    }

    /// What a round that has begun goes by, with its hash.
    pub(crate) fn of(place: &Place, round: Round) -> Result<Option<(Self, String)>, BulkError> {
        let name = start_name(round);
        let Some(bytes) = place.read(&name)? else {
            return Ok(None);
        };
        let start: Start = from_json(&place.full(&name), &bytes)?;
        let scratch = scratch()?;
        for file in &start.files {
            let from = format!("{round}/state-{}/{}", start.state, file.name);
            let bytes = place.need(&from)?;
            if hash(&bytes) != file.hash || file.name.contains('/') {
                return Err(BulkError::Malformed {
                    name: place.full(&from),
                    problem: "it is damaged: its bytes are not those that the round began with".to_owned(),
                });
            }
            let to = scratch.path().join(&file.name);
            fs::write(&to, bytes).map_err(|source| BulkError::Write {
                name: to.display().to_string(),
                source,
            })?;
        }
        let (taxonomy, origin) = read_taxonomy(scratch.path())?;
        let table = |name: &str| -> Result<Option<Table>, BulkError> {
            match start.files.iter().any(|file| file.name == name) {
                true => Ok(Some(read_table(scratch.path().join(name))?.table)),
                false => Ok(None),
            }
        };
        let state = Self {
            taxonomy,
            origin,
            prototypes: table(PROTOTYPES)?.map(|table| table.features),
            examples: table(EXAMPLES)?,
        };
        Ok(Some((state, start.state)))
    }
}

/// A folder for this run.
pub(crate) fn scratch() -> Result<ScratchFolder, BulkError> {
    ScratchFolder::new().map_err(|source| BulkError::Write {
        name: std::env::temp_dir().display().to_string(),
        source,
    })
}

/// The files of a folder with their bytes, in order of their names; what is hidden is left out.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, BulkError> {
    let names = Place::Folder(folder.to_owned()).list("")?;
    let read = |name: String| {
        let bytes = read_local(&folder.join(&name))?;
        Ok((name, bytes))
    };
    names.into_iter().map(read).collect()
}

/// Writes a table of features.
pub(crate) fn write_table(path: &Path, table: &Table, encoder: Option<&str>) -> Result<(), BulkError> {
    let with_labels = table.labels.iter().any(Option::is_some);
    let mut writer = FeatureWriter::create(path, table.features.dim(), encoder, with_labels)?;
    writer.write(&table.ids, &table.labels, table.features.values())?;
    writer.finish()?;
    Ok(())
}
