//! How many items went where.

use genus_core::{Assignment, Taxonomy};

/// How many items each category got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The items of each category.
    pub items: Vec<u64>,
    /// Those of them that are unsure.
    pub unsure: Vec<u64>,
    /// Whether anything said how likely the items are.
    pub judged: bool,
    /// How many scenes the items are, where some are of one.
    pub scenes: Option<usize>,
}

impl Counts {
    /// None yet.
    pub fn new(taxonomy: &Taxonomy) -> Self {
        let none = vec![0; taxonomy.entries().len()];
        Self {
            items: none.clone(),
            unsure: none,
            judged: false,
            scenes: None,
        }
    }

    /// Counts some more.
    pub fn add(&mut self, assignments: &[Assignment]) {
        for Assignment { category, score } in assignments {
            self.items[*category] += 1;
            self.unsure[*category] += u64::from(score.unsure);
            self.judged |= score.probability.is_some();
        }
    }
}
