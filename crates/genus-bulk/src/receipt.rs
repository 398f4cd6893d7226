//! What a shard has done in a round: the last file that it publishes, which says what belongs to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::BulkError;
use crate::manifest::{Round, from_json, hash, to_json};
use crate::place::Place;

/// What a shard has done in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The hash of the manifest.
    pub job: String,
    /// The hash of what the round went by; none in the first where nothing is known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The shard.
    pub shard: usize,
    /// Rows that were used.
    pub rows: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// The items that each category got.
    pub counts: Vec<u64>,
    /// Those of them that are unsure.
    pub unsure: Vec<u64>,
    /// The files that it published, by what they are.
    pub parts: BTreeMap<PartKind, Part>,
}

/// What a file of a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// Where its items went.
    Assignments,
    /// The rows that could not be used, and why.
    Rejected,
    /// Some of its items.
    Sample,
    /// The sums of its items by category.
    Sums,
}

impl PartKind {
    fn folder(self) -> &'static str {
        match self {
            PartKind::Assignments => "parts",
            PartKind::Rejected => "rejected",
            PartKind::Sample => "sample",
            PartKind::Sums => "sums",
        }
    }
}

/// A file of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name, which has a part of its hash: what different programs or machines make of a shard does not mix.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash.
    pub hash: String,
}

/// The folder of a kind of files in a round.
pub(crate) fn folder(round: Round, kind: PartKind) -> String {
    format!("{round}/{}", kind.folder())
}

/// The folder of the receipts of a round.
pub(crate) fn receipts(round: Round) -> String {
    format!("{round}/done")
}

/// The name of a shard's receipt.
pub(crate) fn receipt_name(round: Round, shard: usize) -> String {
    format!("{}/{shard:06}.json", receipts(round))
}

impl Part {
    /// Publishes the bytes of a part. Where it is there already it is the same, as its name says.
    pub(crate) fn publish(
        place: &Place,
        (round, shard, kind): (Round, usize, PartKind),
        ending: &str,
        bytes: &[u8],
    ) -> Result<Self, BulkError> {
        let hash = hash(bytes);
        let name = format!("{}/{shard:06}-{}.{ending}", folder(round, kind), &hash[..16]);
        place.publish(&name, bytes)?;
        Ok(Self {
            name,
            bytes: bytes.len() as u64,
            hash,
        })
    }

    /// Its bytes, which are those that were published.
    pub(crate) fn read(&self, place: &Place) -> Result<Vec<u8>, BulkError> {
        let bytes = place.need(&self.name)?;
        match bytes.len() as u64 == self.bytes && hash(&bytes) == self.hash {
            true => Ok(bytes),
            false => Err(BulkError::Malformed {
                name: place.full(&self.name),
                problem: "it is damaged: its bytes are not those that were published".to_owned(),
            }),
        }
    }
}

impl Receipt {
    /// The receipt of a shard, if it is done.
    pub(crate) fn of(place: &Place, job: &str, round: Round, shard: usize) -> Result<Option<Self>, BulkError> {
        let name = receipt_name(round, shard);
        let Some(bytes) = place.read(&name)? else {
            return Ok(None);
        };
        let receipt: Self = from_json(&place.full(&name), &bytes)?;
        match receipt.job == job && receipt.shard == shard {
            true => Ok(Some(receipt)),
            false => Err(BulkError::Malformed {
                name: place.full(&name),
                problem: "it is of another job or shard".to_owned(),
            }),
        }
    }

    /// Publishes it, unless another process was first; then its receipt counts.
    pub(crate) fn publish(self, place: &Place, round: Round) -> Result<Self, BulkError> {
        let name = receipt_name(round, self.shard);
        match place.publish(&name, &to_json(&name, &self)?)? {
            true => Ok(self),
            false => {
                let first = Self::of(place, &self.job, round, self.shard)?;
                Ok(first.unwrap_or(self))
            }
        }
    }
}
