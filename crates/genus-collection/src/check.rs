//! Whether everything is in order.

use std::path::PathBuf;

use serde::Serialize;

use crate::collection::Collection;
use crate::error::Error;
use crate::model::ItemId;
use crate::store::Which;

/// Problems of one kind that are listed.
const LISTED: usize = 20;
/// Items that are looked at at a time.
const BLOCK: usize = 10_000;

/// A file that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileProblem {
    /// The item.
    pub item: ItemId,
    /// Where its file was.
    pub path: PathBuf,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckOutcome {
    /// How many items were looked at.
    pub items: u64,
    /// What is wrong with the database, in words; empty when all is well.
    pub problems: Vec<String>,
    /// How many photographs are no longer where they were.
    pub missing: u64,
    /// Some of them.
    pub missing_files: Vec<FileProblem>,
}

impl CheckOutcome {
    /// Whether the collection is sound. A photograph that has moved is no fault of it.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Collection {
    /// Looks at everything: the file, that its tables are what the log adds up to, features, and whether photographs are there.
    pub fn check(&self) -> Result<CheckOutcome, Error> {
        self.store.snapshot(|store| {
            let mut checked = CheckOutcome {
                problems: store.check_integrity()?,
                ..CheckOutcome::default()
            };
            if !checked.problems.is_empty() {
                return Ok(checked);
            }
            checked.problems.extend(store.refold()?);
            checked.problems.extend(store.check_pairs()?);
            if let Some(dim) = self.dim()? {
                let mut wrong = Vec::new();
                let count = store.check_features(dim, |item, problem| {
                    if wrong.len() < LISTED {
                        wrong.push(format!("item #{item} {problem}"));
                    }
                })?;
                checked.items = count;
                checked.problems.extend(wrong);
            }
            let mut after = ItemId::default();
            loop {
                let items = store.items(Which::All, after, BLOCK)?;
                let Some(last) = items.last() else { break };
                after = last.id;
                for item in items {
                    let Some(path) = item.path.filter(|path| !path.exists()) else {
                        continue;
                    };
                    checked.missing += 1;
                    if checked.missing_files.len() < LISTED {
                        checked.missing_files.push(FileProblem { item: item.id, path });
                    }
                }
            }
            Ok(checked)
        })
    }
}

/// What compacting came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompactOutcome {
    /// The size of the file before, in bytes.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// Items that had been taken back for good.
    pub forgotten: u64,
}

impl Collection {
    /// Gives back the room of what is no longer used. Items whose addition was undone, and cannot be redone, go with it.
    pub fn compact(&mut self) -> Result<CompactOutcome, Error> {
        let size = || std::fs::metadata(self.store.path()).map_or(0, |found| found.len());
        self.store.checkpoint()?;
        let before = size();
        let forgotten = self.store.transaction(|store| {
            // As long as something can be redone, it may be what brings them back.
            match store.head()?.redo {
                Some(_) => Ok(0),
                None => store.forget_absent(),
            }
        })?;
        self.store.vacuum()?;
        Ok(CompactOutcome {
            before,
            after: size(),
            forgotten,
        })
    }
}
