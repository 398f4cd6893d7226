//! Whether a job is complete and sound: every row once, and every file what it was published as.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::BulkError;
use crate::job::Job;
use crate::manifest::{Round, hash};
use crate::receipt::{PartKind, Receipt, folder};
use crate::reduce::Summary;
use crate::source::{Inputs, groups_of};
use crate::state::scratch;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The round that was looked at.
    pub round: String,
    /// How many shards there are.
    pub shards: usize,
    /// The shards that are not done.
    pub missing: Vec<usize>,
    /// Rows that were assigned.
    pub rows: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// What is wrong, in words.
    pub problems: Vec<String>,
}

impl Verdict {
    /// Whether nothing is wrong and nothing is missing.
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.problems.is_empty()
    }
}

impl Job {
    /// Looks at everything: the plan, the inputs, and what every shard has published in the round that the job is in.
    pub fn verify(&self) -> Result<Verdict, BulkError> {
        let round = self.round()?;
        let mut verdict = Verdict {
            round: round.to_string(),
            shards: self.manifest.shards.len(),
            ..Verdict::default()
        };
        self.check_plan(&mut verdict)?;
        let state = match self.state(round) {
            Ok(state) => state,
            Err(error) => {
                verdict.problems.push(error.to_string());
                return Ok(verdict);
            }
        };
        let categories = state.as_ref().map_or(0, |(state, _)| state.taxonomy.entries().len());
        let state = state.map(|(_, hash)| hash);
        let mut named = BTreeSet::new();
        for shard in 0..self.manifest.shards.len() {
            let inputs = Inputs::new(&self.manifest, shard);
            for piece in &self.manifest.shards[shard].pieces {
                if let Err(error) = inputs.check(piece) {
                    verdict.problems.push(error.to_string());
                }
            }
            let receipt = match self.receipt(round, shard) {
                Ok(Some(receipt)) => receipt,
                Ok(None) => {
                    verdict.missing.push(shard);
                    continue;
                }
                Err(error) => {
                    verdict.problems.push(error.to_string());
                    continue;
                }
            };
            named.extend(receipt.parts.values().map(|part| part.name.clone()));
            verdict.rows += receipt.rows;
            verdict.rejected += receipt.rejected;
            let problems = &mut verdict.problems;
            let mut say = |problem: String| problems.push(format!("shard {shard}: {problem}"));
            if receipt.state != state {
                say("it went by another taxonomy than the round".to_owned());
            }
            let read = receipt.rows + receipt.rejected;
            if let Some(planned) = self.manifest.shards[shard].rows().filter(|planned| *planned != read) {
                say(format!("{read} rows were read, and {planned} were planned"));
            }
            self.check_counts(&receipt, categories, &mut say);
            self.check_parts(&receipt, round, &mut say);
        }
        self.check_others(round, &named, &mut verdict)?;
        if let Some(summary) = self.summary()? {
            check_summary(&summary, &self.id, &mut verdict);
        }
        Ok(verdict)
    }

    /// Whether the shards have every row group of every input once.
    fn check_plan(&self, verdict: &mut Verdict) -> Result<(), BulkError> {
        let mut covered: BTreeMap<usize, Vec<Option<(usize, usize)>>> = BTreeMap::new();
        for piece in self.manifest.shards.iter().flat_map(|shard| &shard.pieces) {
            covered.entry(piece.input).or_default().push(piece.row_groups);
        }
        for (at, input) in self.manifest.inputs.iter().enumerate() {
            let mut pieces = covered.remove(&at).unwrap_or_default();
            pieces.sort_unstable();
            let is_whole = match &pieces[..] {
                [None] => true,
                pieces => {
                    let groups: Option<Vec<(usize, usize)>> = pieces.iter().copied().collect();
                    let follow = |groups: &[(usize, usize)]| {
                        groups.first().is_some_and(|first| first.0 == 0)
                            && groups.windows(2).all(|pair| pair[0].1 == pair[1].0)
                    };
                    match groups {
                        Some(groups) if follow(&groups) => match groups_of(&input.name, input.bytes) {
                            Ok(found) => groups.last().is_some_and(|last| last.1 == found.len()),
                            Err(error) => {
                                verdict.problems.push(error.to_string());
                                true
                            }
                        },
                        _ => false,
                    }
                }
            };
            if !is_whole {
                verdict
                    .problems
                    .push(format!("{}: the shards do not have every row once", input.name));
            }
        }
        Ok(())
    }

    fn check_counts(&self, receipt: &Receipt, categories: usize, say: &mut dyn FnMut(String)) {
        if categories > 0 {
            let counted: u64 = receipt.counts.iter().sum();
            if receipt.counts.len() != categories || counted != receipt.rows {
                say(format!(
                    "its categories have {counted} items, and it has {} rows",
                    receipt.rows
                ));
            }
        }
    }

    /// Whether the files of a shard have the bytes and the rows that its receipt says.
    fn check_parts(&self, receipt: &Receipt, round: Round, say: &mut dyn FnMut(String)) {
        for (kind, part) in &receipt.parts {
            let bytes = match self.place.read(&part.name) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    say(format!("{} is missing", part.name));
                    continue;
                }
                Err(error) => {
                    say(error.to_string());
                    continue;
                }
            };
            if bytes.len() as u64 != part.bytes || hash(&bytes) != part.hash {
                say(format!(
                    "{} is damaged: its bytes are not those that were published",
                    part.name
                ));
                continue;
            }
            let expected = match kind {
                PartKind::Assignments => receipt.rows,
                PartKind::Rejected => receipt.rejected,
                PartKind::Sample | PartKind::Sums => continue,
            };
            match rows_of(&part.name, &bytes) {
                Ok(rows) if rows == expected => {}
                Ok(rows) => say(format!("{} has {rows} rows instead of {expected}", part.name)),
                Err(error) => say(error.to_string()),
            }
        }
        let has = |kind| receipt.parts.contains_key(&kind);
        if (round == Round::Assign && !has(PartKind::Assignments))
            || (receipt.rejected > 0) != has(PartKind::Rejected)
            || (matches!(round, Round::Pass(_)) && !has(PartKind::Sums))
        {
            say("its receipt lacks a file".to_owned());
        }
    }

    /// Whether there are files that no receipt names. As long as shards run, there may be.
    fn check_others(&self, round: Round, named: &BTreeSet<String>, verdict: &mut Verdict) -> Result<(), BulkError> {
        if !verdict.missing.is_empty() || round != Round::Assign {
            return Ok(());
        }
        for kind in [PartKind::Assignments, PartKind::Rejected] {
            let folder = folder(round, kind);
            for file in self.place.list(&folder)? {
                let name = format!("{folder}/{file}");
                if !named.contains(&name) {
                    verdict
                        .problems
                        .push(format!("{name} belongs to no shard; `genus bulk reduce` removes it"));
                }
            }
        }
        Ok(())
    }
}

fn check_summary(summary: &Summary, job: &str, verdict: &mut Verdict) {
    let counted: u64 = summary.categories.iter().map(|category| category.items).sum();
    let is_whole = summary.job == job
        && summary.rows == verdict.rows
        && summary.rejected == verdict.rejected
        && counted == summary.rows;
    if verdict.missing.is_empty() && !is_whole {
        verdict
            .problems
            .push("summary.json is not of these shards; run `genus bulk reduce` again".to_owned());
    }
}

/// How many rows a file of a shard has.
fn rows_of(name: &str, bytes: &[u8]) -> Result<u64, BulkError> {
    if name.ends_with(".parquet") {
        let folder = scratch()?;
        let path = folder.path().join("part.parquet");
        std::fs::write(&path, bytes).map_err(|source| BulkError::Write {
            name: path.display().to_string(),
            source,
        })?;
        // One without rows has no row groups.
        return Ok(genus_data::row_groups(&path)?.iter().map(|group| group.rows).sum());
    }
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    Ok(match name.ends_with(".csv") {
        // A name may have line breaks within quotes.
        true => {
            let mut quoted = false;
            let ends = bytes.iter().filter(|byte| {
                quoted ^= **byte == b'"';
                **byte == b'\n' && !quoted
            });
            (ends.count() as u64).saturating_sub(1)
        }
        false => lines,
    })
}
