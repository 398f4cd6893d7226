//! Which classes count as known and which as new; the lists ship with the crate, and each says where it is from.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The split of a data set by the places of its classes in the official order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassSplit {
    /// Where the lists are from and what the indices count.
    pub(super) source: String,
    /// The known classes, in the order of the original list.
    pub(super) known: Vec<usize>,
    /// The new classes, the ones hardest to tell from known classes first where the original list says so.
    pub(super) new: Vec<usize>,
    /// The names that the indices mean, where they are needed besides those on disk.
    #[serde(default)]
    pub(super) classes: Vec<String>,
}

static SPLITS: LazyLock<BTreeMap<String, ClassSplit>> =
    LazyLock::new(|| serde_json::from_str(include_str!("splits.json")).expect("the splits of the crate are valid"));

impl ClassSplit {
    /// The split of the data set of this name.
    pub(super) fn of(name: &str) -> &'static Self {
        SPLITS.get(name).expect("every data set of the crate has a split")
    }

    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.new.len()
    }
}
