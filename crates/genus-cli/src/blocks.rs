//! Feature files block by block, the next one read while the last one is worked on.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use genus_data::{DataError, Table, TableReader};

use crate::failure::Failure;

/// Rows of a block: 12 MB of 768 features. Larger ones leave the cache between reading and use.
const BLOCK: usize = 4096;

/// Hands every block of a file to `work`, in order.
pub(crate) fn for_each(path: &Path, mut work: impl FnMut(Table) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut reader = TableReader::open(path)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Result<Table, DataError>>(1);
        scope.spawn(move || {
            while let Some(block) = reader.next_block(BLOCK).transpose() {
                let failed = block.is_err();
                // When the receiver has gone the work has failed, and there is nothing more to read for.
                if sender.send(block).is_err() || failed {
                    return;
                }
            }
        });
        receiver.into_iter().try_for_each(|block| work(block?))
    })
}
