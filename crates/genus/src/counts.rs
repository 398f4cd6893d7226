//! How many items each category has.

use genus_core::{Assignment, Taxonomy};

/// The number of items of each category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The items of each category.
    pub items: Vec<u64>,
    /// Those of them that are unsure.
    pub unsure: Vec<u64>,
    /// Whether there are probabilities.
    pub judged: bool,
    /// The number of scenes, if some items share one.
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

    /// Counts more items.
    pub fn add(&mut self, assignments: &[Assignment]) {
        for Assignment { category, score } in assignments {
            self.items[*category] += 1;
            self.unsure[*category] += u64::from(score.unsure);
            self.judged |= score.probability.is_some();
        }
    }
}
