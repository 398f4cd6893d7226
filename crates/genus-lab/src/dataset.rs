//! Labelled features and the classes that episodes are drawn from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use genus_core::Features;
use genus_core::episode::{Half, Pool};
use genus_data::{Split, TableOptions, read_table, read_table_with};
use genus_vision::train::HashHead;
use genus_vision::{EncoderSpec, ImageSource, WeightsSource};

use crate::LabError;

/// Labelled features and the classes that episodes are drawn from.
#[derive(Clone, Debug)]
pub struct Dataset {
    name: String,
    set: Option<String>,
    encoder: Option<String>,
    features: Features,
    pool: Pool,
    base: Pool,
    views: Vec<Features>,
    codes: Option<(Features, Arc<HashHead>)>,
    images: Option<Arc<ImageRows>>,
    half: Option<Half>,
}

/// The images that the rows of a data set were made of, and by which encoder.
#[derive(Clone, Debug)]
pub struct ImageRows {
    /// The image of every row.
    pub sources: Vec<ImageSource>,
    /// The encoder.
    pub encoder: EncoderSpec,
    /// Its weights.
    pub weights: WeightsSource,
}

/// The classes of a data set, in its own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassLists {
    /// Every class.
    pub classes: Vec<String>,
    /// Those that may be learnt from.
    pub base: Vec<String>,
    /// Those that episodes are drawn from.
    pub novel: Vec<String>,
}

impl Dataset {
    /// Reads a feature file; with a split file episodes are drawn from its novel classes, else from all.
    pub fn read(features: &Path, split: Option<&Path>, tables: &TableOptions) -> Result<Self, LabError> {
        let file = read_table_with(features, tables)?;
        let mut classes = file.table.classes();
        let split = split
            .map(|path| Split::read(path)?.resolve(&classes, file.class_names.as_deref()))
            .transpose()?;
        if let Some(names) = &file.class_names {
            classes.clone_from(names);
        }
        let (base, novel) = split.map_or((None, None), |split| (Some(split.base), Some(split.novel)));
        let name = features.display().to_string();
        let data = Self::with_classes(name, file.table.features, &file.table.labels, classes, base, novel)?;
        Ok(Self {
            encoder: file.encoder,
            ..data
        })
    }

    /// Reads a feature file whose classes are known already, as those of a data set are.
    pub fn read_with(features: &Path, lists: ClassLists) -> Result<Self, LabError> {
        let file = read_table(features)?;
        let name = features.display().to_string();
        let (table, ClassLists { classes, base, novel }) = (file.table, lists);
        let data = Self::with_classes(name, table.features, &table.labels, classes, Some(base), Some(novel))?;
        Ok(Self {
            encoder: file.encoder,
            ..data
        })
    }

    /// Takes features with a label a row; episodes are drawn from `novel`, or from all classes, and all others are base
    /// classes.
    pub fn new(
        name: &str,
        features: Features,
        labels: &[Option<String>],
        novel: Option<&[String]>,
    ) -> Result<Self, LabError> {
        let classes: Vec<String> = labels
            .iter()
            .flatten()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect();
        let base = novel.map(|novel| classes.iter().filter(|class| !novel.contains(class)).cloned().collect());
        Self::with_classes(
            name.to_owned(),
            features,
            labels,
            classes,
            base,
            novel.map(<[String]>::to_vec),
        )
    }

    fn with_classes(
        name: String,
        features: Features,
        labels: &[Option<String>],
        mut classes: Vec<String>,
        base: Option<Vec<String>>,
        novel: Option<Vec<String>>,
    ) -> Result<Self, LabError> {
        if labels.iter().all(Option::is_none) {
            return Err(LabError::NoLabels { data: name });
        }
        // Numbers in the order of numbers: class 10 comes after class 9.
        if classes.iter().all(|class| class.parse::<u64>().is_ok()) {
            classes.sort_by_key(|class| class.parse::<u64>().ok());
        }
        let pool_of = |chosen: Option<Vec<String>>, otherwise: bool| {
            let chosen = chosen.map(|chosen| chosen.into_iter().collect::<BTreeSet<_>>());
            let kept = classes
                .iter()
                .filter(|class| chosen.as_ref().map_or(otherwise, |chosen| chosen.contains(*class)));
            Pool::new(&kept.collect::<Vec<_>>(), labels)
        };
        Ok(Self {
            pool: pool_of(novel, true),
            base: pool_of(base, false),
            name,
            set: None,
            encoder: None,
            features,
            views: Vec::new(),
            codes: None,
            images: None,
            half: None,
        })
    }

    /// The same data under another name, for features that come from images.
    pub fn called(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same data as one of the paper's data sets, whose figures are then printed with the results.
    pub fn of_set(mut self, set: impl Into<String>) -> Self {
        self.set = Some(set.into());
        self
    }

    /// The same data with other views of the items, a matrix a view, in the same order of rows.
    ///
    /// Fails when a matrix has other rows or columns than the features.
    pub fn with_views(mut self, views: Vec<Features>) -> Result<Self, LabError> {
        let size = |features: &Features| (features.rows(), features.dim());
        if let Some(other) = views.iter().find(|view| size(view) != size(&self.features)) {
            return Err(LabError::NothingToRun {
                data: self.name,
                reason: format!(
                    "a view has {} rows of {} features, and there are {} of {}",
                    other.rows(),
                    other.dim(),
                    self.features.rows(),
                    self.features.dim()
                ),
            });
        }
        self.views = views;
        Ok(self)
    }

    /// The same data with the features of the network that OCD trained, in the same order of rows, and its head.
    ///
    /// Fails when there are other rows, or features that the head does not take.
    pub fn with_codes(mut self, features: Features, head: HashHead) -> Result<Self, LabError> {
        if features.rows() != self.features.rows() || features.dim() != head.inputs() {
            return Err(LabError::NothingToRun {
                data: self.name,
                reason: format!(
                    "the features of OCD's encoder are {} rows of {}, where {} rows of {} are expected",
                    features.rows(),
                    features.dim(),
                    self.features.rows(),
                    head.inputs()
                ),
            });
        }
        self.codes = Some((features, Arc::new(head)));
        Ok(self)
    }

    /// The same data with the images that it was made of, for methods that train a network on them.
    ///
    /// Fails when there are not as many images as rows.
    pub fn with_images(mut self, images: ImageRows) -> Result<Self, LabError> {
        if images.sources.len() != self.features.rows() {
            return Err(LabError::NothingToRun {
                data: self.name,
                reason: format!(
                    "there are {} images of {} rows",
                    images.sources.len(),
                    self.features.rows()
                ),
            });
        }
        self.images = Some(Arc::new(images));
        Ok(self)
    }

    /// The same data with one half of its classes: episodes are drawn from no others. The other half may become base classes,
    /// which may be learnt from; else they are as they were.
    pub fn half(mut self, half: Half, learn_from_other: bool) -> Self {
        if learn_from_other {
            self.base = self.pool.half(half.other());
        }
        self.pool = self.pool.half(half);
        self.half = Some(half);
        self
    }

    /// The half of the classes that episodes are drawn from, if it is not all of them.
    pub fn which_half(&self) -> Option<Half> {
        self.half
    }

    /// What the data set is called: the path of its file, unless it was called otherwise.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which of the paper's data sets it is, if it is one.
    pub fn set(&self) -> Option<&str> {
        self.set.as_deref()
    }

    /// The fingerprint of the encoder that made the features, if it is known.
    pub fn encoder(&self) -> Option<&str> {
        self.encoder.as_deref()
    }

    /// All features, also of classes that no episode uses.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Other views of the same items.
    pub fn views(&self) -> &[Features] {
        &self.views
    }

    /// The images that the rows were made of, if they are known.
    pub fn images(&self) -> Option<&ImageRows> {
        self.images.as_deref()
    }

    /// The features that OCD's own network gives, and its head.
    pub(crate) fn codes(&self) -> Option<(&Features, &Arc<HashHead>)> {
        self.codes.as_ref().map(|(features, head)| (features, head))
    }

    /// The classes that episodes are drawn from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The classes that may be learnt from: there are none unless a split names them.
    pub fn base(&self) -> &Pool {
        &self.base
    }

    /// The rows of the base classes with the number of their class.
    pub(crate) fn base_rows(&self) -> (Vec<usize>, Vec<usize>) {
        let items = self.base.items().iter().enumerate();
        items
            .flat_map(|(class, items)| items.iter().map(move |&item| (item, class)))
            .unzip()
    }

    /// A hash of everything that a result depends on: features, views and classes.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let codes = self.codes.iter().map(|(features, _)| features);
        for matrix in std::iter::once(&self.features).chain(&self.views).chain(codes) {
            hasher.update(&(matrix.dim() as u64).to_le_bytes());
            for row in matrix.iter() {
                let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
                hasher.update(&bytes);
            }
        }
        for pool in [&self.pool, &self.base] {
            hasher.update(&(pool.classes().len() as u64).to_le_bytes());
            for (class, items) in pool.classes().iter().zip(pool.items()) {
                hasher.update(&(class.len() as u64).to_le_bytes());
                hasher.update(class.as_bytes());
                hasher.update(&(items.len() as u64).to_le_bytes());
                for &item in items {
                    hasher.update(&(item as u64).to_le_bytes());
                }
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}
