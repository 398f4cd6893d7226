//! How right a discovery is.

use std::collections::BTreeMap;

use genus_core::metrics::{Accuracy, Convention, Evaluation, accuracy, classes_of_clusters};

/// The truth about a discovery.
#[derive(Clone, Debug)]
pub struct Truth {
    accuracy: Accuracy,
    classes: Vec<String>,
    known: usize,
    class_of: Vec<Option<usize>>,
    counts: Vec<Vec<usize>>,
    judged: usize,
}

impl Truth {
    /// Judges items by the names of their true classes, where these are known; gives also the number of each item's class.
    ///
    /// The first categories are the known classes, whose names are given; `categories` is the number of all of them.
    ///
    /// # Panics
    /// When there are not as many categories as true classes.
    pub fn judge(
        known: &[String],
        categories: usize,
        of_items: &[usize],
        truth: &[Option<String>],
    ) -> (Self, Vec<Option<usize>>) {
        assert_eq!(of_items.len(), truth.len(), "every item has a category");
        let known_numbers: BTreeMap<&str, usize> =
            known.iter().enumerate().map(|(n, name)| (name.as_str(), n)).collect();
        let mut new: Vec<&str> = truth.iter().flatten().map(String::as_str).collect();
        new.sort_unstable();
        new.dedup();
        new.retain(|name| !known_numbers.contains_key(name));
        let number = |name: &str| {
            let new = || new.binary_search(&name).ok().map(|at| known.len() + at);
            known_numbers.get(name).copied().or_else(new)
        };
        let numbers: Vec<Option<usize>> = truth.iter().map(|name| number(name.as_deref()?)).collect();
        let pairs = of_items.iter().zip(&numbers);
        let (clusters, classes): (Vec<usize>, Vec<usize>) = pairs
            .filter_map(|(&category, class)| Some((category, (*class)?)))
            .unzip();
        let prototypes: Vec<usize> = (0..known.len()).collect();
        let judged = Evaluation {
            known: &prototypes,
            clusters: &clusters,
            truth: &classes,
        };
        let mut class_of = vec![None; categories];
        for (category, class) in classes_of_clusters(&judged) {
            if let Some(slot) = class_of.get_mut(category) {
                *slot = Some(class);
            }
        }
        let mut counts = vec![vec![0; categories]; known.len() + new.len()];
        for (&category, &class) in clusters.iter().zip(&classes) {
            counts[class][category] += 1;
        }
        let truth = Self {
            accuracy: accuracy(&judged, Convention::Paper),
            classes: known.iter().map(String::as_str).chain(new).map(str::to_owned).collect(),
            known: known.len(),
            class_of,
            counts,
            judged: clusters.len(),
        };
        (truth, numbers)
    }

    /// The shares of items that are right, by the paper's metric.
    pub fn accuracy(&self) -> Accuracy {
        self.accuracy
    }

    /// The names of the true classes, the known ones first.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// How many of the classes are known.
    pub fn known(&self) -> usize {
        self.known
    }

    /// How many items were judged.
    pub fn judged(&self) -> usize {
        self.judged
    }

    /// The true class that a category stands for, if any.
    pub fn class_of(&self, category: usize) -> Option<usize> {
        self.class_of.get(category).copied().flatten()
    }

    /// The true class that every category stands for, if any.
    pub(crate) fn classes_of(&self) -> &[Option<usize>] {
        &self.class_of
    }

    /// How many items of each class are in each category.
    pub fn counts(&self) -> &[Vec<usize>] {
        &self.counts
    }
}
