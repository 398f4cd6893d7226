//! The manifest of a job: what is read, in which shards, and what is to be made of it.

use std::fmt;

use genus_data::{Format, Origin, TableOptions};
use serde::{Deserialize, Serialize};

use crate::BulkError;

/// The format of manifests that this version writes and reads.
const FORMAT: &str = "genus bulk 1";

/// The plan of a job, which never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    /// The version of Genus that made it.
    pub version: String,
    /// Features of an item.
    pub features: usize,
    /// The encoder that made them, where the inputs or the taxonomy say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// The hash of the taxonomy that the first round goes by; none where categories are discovered first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<String>,
    /// How categories are discovered first, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// The form of the assignments: `parquet`, `csv` or `jsonl`.
    pub assignments: String,
    /// Which columns of the inputs are what, where their names do not say it.
    #[serde(default, skip_serializing_if = "Columns::is_usual")]
    pub columns: Columns,
    /// What is remembered of the inputs, so that a change is seen.
    pub check: Check,
    /// Everything that is read.
    pub inputs: Vec<Input>,
    /// The parts that the work is done in.
    pub shards: Vec<Shard>,
}

/// How categories are discovered before items are assigned to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// The method, with its parameters.
    pub method: String,
    /// The seed of what is random.
    pub seed: u64,
    /// How many items are gathered and discovered on one machine.
    pub sample: usize,
    /// Passes of k-means over all items.
    pub passes: usize,
    /// The hash of the labelled examples, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<String>,
}

/// Which columns of the inputs are what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The column of ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The columns of features, or the one of lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// The format of tables whose names do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl Columns {
    pub(crate) fn of(options: &TableOptions) -> Self {
        Self {
            id: options.id.clone(),
            features: options.features.clone(),
            format: options.format.map(|format| format.to_string()),
        }
    }

    fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn options(&self) -> TableOptions {
        let options = TableOptions {
            id: self.id.clone(),
            features: self.features.clone(),
            format: self.format.as_ref().and_then(|format| format.parse().ok()),
            ..TableOptions::default()
        };
        options.for_pile()
    }
}

/// How it is seen that an input has changed since the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// By the size of the file, its end, and blocks all over each part, or by what an object store says (its ETag). A change of a few
    /// bytes that keeps the size may go unseen.
    #[default]
    Sampled,
    /// By a hash of every byte, which is read for the plan and again for every shard.
    Content,
}

/// A file that is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its path or address.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// What an object store calls its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A part of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// What it reads, in this order.
    pub pieces: Vec<Piece>,
}

impl Shard {
    /// How many bytes it reads.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.end - piece.start).sum()
    }

    /// How many rows it reads, where that is known without reading them.
    pub fn rows(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }
}

/// A file or some row groups of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The number of the input.
    pub input: usize,
    /// The first row group and the one behind the last; none is the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_groups: Option<(usize, usize)>,
    /// How many rows it has, where that is known without reading them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Where its first byte is.
    pub start: u64,
    /// Where its last byte ends.
    pub end: u64,
    /// What is remembered of its bytes.
    pub fingerprint: String,
}

/// A step of a job that all shards take part in, and that ends when it is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Some items of every shard are gathered, and categories are discovered among them.
    Sample,
    /// A pass of k-means over all items, from 1 on; what fits nothing is gathered, and new categories are added.
    Pass(usize),
    /// Every item is assigned.
    Assign,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Round::Sample => f.write_str("sample"),
            Round::Pass(number) => write!(f, "pass-{number}"),
            Round::Assign => f.write_str("assignments"),
        }
    }
}

impl Manifest {
    /// A plan.
    pub(crate) fn new(features: usize, assignments: Format) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features,
            encoder: None,
            taxonomy: None,
            discovery: None,
            assignments: assignments.extension().to_owned(),
            columns: Columns::default(),
            check: Check::default(),
            inputs: Vec::new(),
            shards: Vec::new(),
        }
    }

    /// The rounds of the job, in order; the last is always that of the assignments.
    pub fn rounds(&self) -> Vec<Round> {
        let passes = self.discovery.as_ref().map_or(0, |discovery| discovery.passes);
        let sample = self.discovery.as_ref().map(|_| Round::Sample);
        let passes = (1..=passes).map(Round::Pass);
        sample.into_iter().chain(passes).chain([Round::Assign]).collect()
    }

    /// The form of the assignments.
    pub fn assignments(&self) -> Result<Format, BulkError> {
        self.assignments.parse().map_err(|e| BulkError::Malformed {
            name: "manifest.json".to_owned(),
            problem: format!("{e}"),
        })
    }

    /// How many bytes are read in a round.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }

    /// How many rows there are, where that is known without reading them.
    pub fn rows(&self) -> Option<u64> {
        self.shards.iter().map(Shard::rows).sum()
    }

    /// How a taxonomy of this job is made.
    pub(crate) fn origin(&self) -> Origin {
        let discovery = self.discovery.as_ref();
        Origin {
            method: discovery.map_or(String::new(), |discovery| discovery.method.clone()),
            seed: discovery.map_or(0, |discovery| discovery.seed),
            version: self.version.clone(),
            encoder: self.encoder.clone(),
            images: None,
            growing: None,
            calibration: None,
        }
    }

    /// How long the name of the folder is that all inputs are in.
    pub(crate) fn common_folder(&self) -> usize {
        let folder = |name: &str| name.rfind('/').map_or(0, |at| at + 1);
        let first = self.inputs.first().map_or("", |input| &input.name);
        let mut common = folder(first);
        for other in &self.inputs {
            while common > 0 && !other.name.starts_with(&first[..common]) {
                common = folder(&first[..common - 1]);
            }
        }
        common
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, BulkError> {
        to_json("manifest.json", self)
    }

    /// Reads a manifest, whose parts must fit together.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self, BulkError> {
        let wrong = |problem: String| BulkError::Malformed {
            name: name.to_owned(),
            problem,
        };
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        if manifest.format != FORMAT {
            let problem = format!(
                "its format is \"{}\", and this version reads \"{FORMAT}\"",
                manifest.format
            );
            return Err(wrong(problem));
        }
        manifest.assignments()?;
        if manifest.taxonomy.is_some() == manifest.discovery.is_some() {
            return Err(wrong("it has both a taxonomy and a discovery, or neither".to_owned()));
        }
        if manifest.shards.is_empty() || manifest.features == 0 {
            return Err(wrong("it has no shards or no features".to_owned()));
        }
        for (number, shard) in manifest.shards.iter().enumerate() {
            let sensible = |piece: &Piece| piece.input < manifest.inputs.len() && piece.start < piece.end;
            if shard.pieces.is_empty() || !shard.pieces.iter().all(sensible) {
                return Err(wrong(format!(
                    "shard {number} reads nothing, or something that is not there"
                )));
            }
        }
        Ok(manifest)
    }
}

/// A value as the bytes of a file that a person can read.
pub(crate) fn to_json(name: &str, value: &impl Serialize) -> Result<Vec<u8>, BulkError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| BulkError::Malformed {
        name: name.to_owned(),
        problem: e.to_string(),
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The value that a file holds.
pub(crate) fn from_json<T: for<'de> Deserialize<'de>>(name: &str, bytes: &[u8]) -> Result<T, BulkError> {
    serde_json::from_slice(bytes).map_err(|e| BulkError::Malformed {
        name: name.to_owned(),
        problem: e.to_string(),
    })
}

/// A hash of bytes, as long as a name may be.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}
