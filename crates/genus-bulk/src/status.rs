//! How far a job has come, by what has been published.

use serde::Serialize;

use crate::BulkError;
use crate::beat::{self, Worker};
use crate::job::Job;
use crate::manifest::from_json;
use crate::receipt::receipts;
use crate::reduce::SUMMARY;

/// A worker that has said nothing for so many seconds has gone.
const SILENT: u64 = 60;

/// How far a job has come.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The round that it is in.
    pub round: String,
    /// Which of how many that is, from 1 on.
    pub number: usize,
    /// How many rounds there are.
    pub rounds: usize,
    /// Shards of the round that are done.
    pub done: usize,
    /// How many shards there are.
    pub shards: usize,
    /// Bytes of the shards that are done.
    pub bytes: u64,
    /// Bytes of all shards.
    pub bytes_in_all: u64,
    /// Who is at work.
    pub workers: Vec<Worker>,
    /// Who was at work and has said nothing for a while: it was killed, or its machine is gone.
    pub lost: Vec<Worker>,
    /// Whether the job is done and reduced.
    pub is_complete: bool,
}

impl Job {
    /// How far the job has come. It goes by a listing of the output place, and so may lag behind in an object store.
    pub fn status(&self) -> Result<Status, BulkError> {
        let round = self.round()?;
        let rounds = self.manifest.rounds();
        let done: Vec<usize> = self
            .place
            .list(&receipts(round))?
            .iter()
            .filter_map(|name| name.strip_suffix(".json")?.parse().ok())
            .filter(|shard| *shard < self.manifest.shards.len())
            .collect();
        let folder = beat::folder(round);
        let mut said: Vec<Worker> = Vec::new();
        for name in self.place.list(&folder)? {
            // It may have ended meanwhile.
            if let Some(bytes) = self.place.read(&format!("{folder}/{name}"))? {
                said.extend(from_json::<Worker>(&name, &bytes));
            }
        }
        said.retain(|worker| !done.contains(&worker.shard));
        let now = beat::now();
        let (workers, lost) = said
            .into_iter()
            .partition(|worker| now.saturating_sub(worker.at) <= SILENT);
        Ok(Status {
            round: round.to_string(),
            number: rounds.iter().position(|other| *other == round).unwrap_or(0) + 1,
            rounds: rounds.len(),
            done: done.len(),
            shards: self.manifest.shards.len(),
            bytes: done.iter().map(|shard| self.manifest.shards[*shard].bytes()).sum(),
            bytes_in_all: self.manifest.bytes(),
            workers,
            lost,
            is_complete: self.place.read(SUMMARY)?.is_some(),
        })
    }
}
