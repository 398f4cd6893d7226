//! How much of everything a table may have, so that a small file does not become a large one in memory.

use std::fs;

use super::source::FileOrigin;
use crate::error::DataError;

/// Bytes that one row of a text may take; more is taken for a file of another kind rather than read into memory.
pub(crate) const MAX_ROW_BYTES: u64 = 16 << 20;
/// The most features of a row.
pub(crate) const MAX_FEATURES: usize = 1 << 20;
/// The most bytes of a text in a binary file, with its padding.
pub(crate) const MAX_TEXT: usize = 1 << 18;
/// The most bytes that a column beside the features takes, where it is read as a whole.
pub(crate) const MAX_COLUMN: u64 = 1 << 30;
/// The most bytes of a batch of rows of an Arrow file, unpacked, and of the pages of a Parquet file with a column a feature that
/// are held at a time.
pub(crate) const MAX_BATCH: u64 = 1 << 30;
/// The most bytes of a page of a Parquet file.
pub(crate) const MAX_PAGE: u64 = 256 << 20;

/// A file may become so large in any case.
const FREE_GROWTH: u64 = 1 << 30;
/// Beyond that, so many times as large as it is: features are compressed by a few times.
const MAX_GROWTH: u64 = 256;

/// The most bytes that a compressed text of so many bytes may become.
pub(super) fn most_unpacked(length: u64) -> u64 {
    FREE_GROWTH.max(length.saturating_mul(MAX_GROWTH))
}

/// What a text takes besides its characters.
const TEXT_OVERHEAD: u64 = size_of::<String>() as u64;

/// The problem of a row that takes more bytes than it may.
pub(crate) fn too_long(limit: u64) -> String {
    let limit = match limit >> 20 {
        0 => format!("{} KiB", limit >> 10),
        megabytes => format!("{megabytes} MiB"),
    };
    format!("longer than {limit}; check that the file has one row a line and that every quote is closed")
}

/// Fails for a row of too many features.
pub(super) fn check_features(origin: &FileOrigin, count: u64) -> Result<(), DataError> {
    match count > MAX_FEATURES as u64 {
        true => Err(origin.malformed(format!(
            "its rows have {count} values each; a row has at most {MAX_FEATURES} features"
        ))),
        false => Ok(()),
    }
}

/// What a file has become in memory so far, beside what it may become.
#[derive(Clone, Copy)]
pub(super) struct MemoryGrowth {
    length: u64,
    bytes: u64,
}

impl MemoryGrowth {
    /// Nothing yet of a file.
    pub(super) fn of(origin: &FileOrigin) -> Self {
        let length = match origin.is_standard_input() {
            // What comes without an end is not packed, and not kept either.
            true => u64::MAX,
            false => fs::metadata(origin.file()).map_or(0, |found| found.len()),
        };
        Self { length, bytes: 0 }
    }

    /// Adds so many numbers of 32 bits.
    pub(super) fn add_values(&mut self, origin: &FileOrigin, count: u64) -> Result<(), DataError> {
        self.add_bytes(origin, count.saturating_mul(4))
    }

    /// Adds texts.
    pub(super) fn add_texts<'a>(
        &mut self,
        origin: &FileOrigin,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), DataError> {
        self.add_bytes(origin, texts.into_iter().map(kept).fold(0, u64::saturating_add))
    }

    /// Adds bytes.
    pub(super) fn add_bytes(&mut self, origin: &FileOrigin, bytes: u64) -> Result<(), DataError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= most_unpacked(self.length) {
            return Ok(());
        }
        Err(origin.malformed(format!(
            "its {} bytes have become more than {} GiB and more than {MAX_GROWTH} times as many, the most for a table; if it \
             is an honest one, write it without compression",
            self.length,
            FREE_GROWTH >> 30
        )))
    }
}

/// Bytes that a text takes in a column that is kept.
pub(super) fn kept(text: &str) -> u64 {
    text.len() as u64 + TEXT_OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_table_grows_by_a_gibibyte_or_by_its_size_many_times() {
        let origin = FileOrigin::new(Path::new("table.parquet"));
        let of = |length| MemoryGrowth { length, bytes: 0 };
        let gibibyte = 1 << 28;
        assert!(of(10).add_values(&origin, gibibyte).is_ok());
        let said = of(10).add_values(&origin, gibibyte + 1).unwrap_err().to_string();
        assert!(said.contains("table.parquet") && said.contains("1 GiB"), "{said}");
        // In parts, and of texts, of which an empty one takes room too.
        let mut growth = of(10);
        growth.add_values(&origin, gibibyte - 6).unwrap();
        growth.add_texts(&origin, [""]).unwrap();
        assert!(growth.add_texts(&origin, [""]).is_err());
        // A large file may become larger.
        assert!(of(1 << 30).add_values(&origin, 50 * gibibyte).is_ok());
        assert!(of(1 << 30).add_values(&origin, 257 * gibibyte).is_err());
    }
}
