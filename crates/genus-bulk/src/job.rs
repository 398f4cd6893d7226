//! A planned job: its rounds, and which of them it is in.

use crate::manifest::{Manifest, Round, hash};
use crate::place::Place;
use crate::receipt::Receipt;
use crate::state::State;
use crate::{BulkError, state};

/// The file of the plan.
pub(crate) const MANIFEST: &str = "manifest.json";

/// A planned job. Any number of processes on any number of machines may have it open.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) place: Place,
    pub(crate) manifest: Manifest,
    /// The hash of the manifest.
    pub(crate) id: String,
}

impl Job {
    /// Opens a job by its output place or its manifest.
    pub fn open(name: &str) -> Result<Self, BulkError> {
        let place = match name.strip_suffix(MANIFEST) {
            Some("") => ".",
            Some(place) if place.ends_with('/') => place.trim_end_matches('/'),
            _ => name,
        };
        let place = Place::of(place)?;
        let Some(bytes) = place.read(MANIFEST)? else {
            return Err(BulkError::NoJob { place: place.full("") });
        };
        Ok(Self {
            manifest: Manifest::parse(&place.full(MANIFEST), &bytes)?,
            id: hash(&bytes),
            place,
        })
    }

    /// The plan.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where its files are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The round that the job is in: the last that has begun.
    pub fn round(&self) -> Result<Round, BulkError> {
        let rounds = self.manifest.rounds();
        for &round in rounds[1..].iter().rev() {
            if self.place.read(&state::start_name(round))?.is_some() {
                return Ok(round);
            }
        }
        Ok(rounds[0])
    }

    /// The shards of a round that are not done, in ascending order.
    pub fn missing(&self, round: Round) -> Result<Vec<usize>, BulkError> {
        let mut missing = Vec::new();
        for shard in 0..self.manifest.shards.len() {
            if self.receipt(round, shard)?.is_none() {
                missing.push(shard);
            }
        }
        Ok(missing)
    }

    /// What a shard has done in a round, if it is done.
    pub fn receipt(&self, round: Round, shard: usize) -> Result<Option<Receipt>, BulkError> {
        Receipt::of(&self.place, &self.id, round, shard)
    }

    /// The receipts of a round, all of whose shards must be done.
    pub(crate) fn receipts(&self, round: Round) -> Result<Vec<Receipt>, BulkError> {
        let shards = self.manifest.shards.len();
        let (mut receipts, mut missing) = (Vec::with_capacity(shards), Vec::new());
        for shard in 0..shards {
            match self.receipt(round, shard)? {
                Some(receipt) => receipts.push(receipt),
                None => missing.push(shard),
            }
        }
        match missing.is_empty() {
            true => Ok(receipts),
            false => Err(BulkError::Missing {
                round: round.to_string(),
                missing,
                shards,
            }),
        }
    }

    /// What a round goes by, with its hash; the first round of a discovery goes by nothing.
    pub(crate) fn state(&self, round: Round) -> Result<Option<(State, String)>, BulkError> {
        if round == Round::Sample {
            return Ok(None);
        }
        let state = State::of(&self.place, round)?;
        let state = state.ok_or_else(|| BulkError::NotBegun {
            round: round.to_string(),
        })?;
        match &self.manifest.taxonomy {
            Some(planned) if *planned != state.1 => Err(BulkError::Malformed {
                name: self.place.full(&state::start_name(round)),
                problem: "its taxonomy is not that of the plan".to_owned(),
            }),
            _ => Ok(Some(state)),
        }
    }
}
