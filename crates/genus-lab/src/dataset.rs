//! A feature file and the classes that episodes are drawn from.

use std::collections::BTreeSet;
use std::path::Path;

use genus_core::Features;
use genus_core::episode::Pool;
use genus_data::{Split, read_table};

use crate::LabError;

/// Labelled features and the classes that episodes are drawn from.
#[derive(Clone, Debug)]
pub struct Dataset {
    name: String,
    features: Features,
    pool: Pool,
}

impl Dataset {
    /// Reads a feature file; with a split file episodes are drawn from its novel classes, else from all.
    pub fn read(features: &Path, split: Option<&Path>) -> Result<Self, LabError> {
        let file = read_table(features)?;
        let mut classes = file.table.classes();
        let novel = split
            .map(|path| Split::read(path)?.resolve(&classes, file.class_names.as_deref()))
            .transpose()?
            .map(|split| split.novel);
        if let Some(names) = &file.class_names {
            classes.clone_from(names);
        }
        let allowed = novel.map(|novel| novel.into_iter().collect::<BTreeSet<_>>());
        let name = features.display().to_string();
        Self::with_classes(name, file.table.features, &file.table.labels, classes, allowed)
    }

    /// Takes features with a label a row; episodes are drawn from `novel`, or from all classes.
    pub fn new(
        name: &str,
        features: Features,
        labels: &[Option<String>],
        novel: Option<&[String]>,
    ) -> Result<Self, LabError> {
        let classes = labels
            .iter()
            .flatten()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect();
        let allowed = novel.map(|novel| novel.iter().cloned().collect());
        Self::with_classes(name.to_owned(), features, labels, classes, allowed)
    }

    fn with_classes(
        name: String,
        features: Features,
        labels: &[Option<String>],
        mut classes: Vec<String>,
        allowed: Option<BTreeSet<String>>,
    ) -> Result<Self, LabError> {
        if labels.iter().all(Option::is_none) {
            return Err(LabError::NoLabels { data: name });
        }
        // Numbers in the order of numbers: class 10 comes after class 9.
        if classes.iter().all(|class| class.parse::<u64>().is_ok()) {
            classes.sort_by_key(|class| class.parse::<u64>().ok());
        }
        classes.retain(|class| allowed.as_ref().is_none_or(|allowed| allowed.contains(class)));
        let pool = Pool::new(&classes, labels);
        Ok(Self { name, features, pool })
    }

    /// The same data under another name, for features that come from images.
    pub fn called(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What the data set is called: the path of its file, unless it was called otherwise.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All features, also of classes that no episode uses.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The classes that episodes are drawn from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}
