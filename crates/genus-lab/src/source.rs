//! Where the data of a bench comes from: a feature file, images, or one of the data sets that have a name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genus::training::{trained_encoder, trained_hash};
use genus::{CalibrationFile, Embedder, ImageOptions, Items, Note, Progress};
use genus_data::datasets::{DatasetEntry, ImageSet, Images};
use genus_data::{ImageList, Split, TableOptions, is_image_source, list_images, read_table};
use genus_vision::{Augmentation, ImageSource};

use crate::contender::BenchMethod;
use crate::{ClassLists, Dataset, ImageRows, LabError};

/// The default number of augmented views for trained baselines, as in their papers.
const VIEWS: usize = 2;

/// The data of a bench, and what is made of it.
#[derive(Clone, Debug)]
pub struct DataSource {
    /// Where it lies.
    pub input: DataInput,
    /// The file of a class split.
    pub split: Option<PathBuf>,
    /// Which of the paper's data sets it is, where it has no name of its own.
    pub paper_set: Option<String>,
    /// A calibration that has to fit the features.
    pub calibration: Option<PathBuf>,
    /// Which columns of tables are ids, labels and features.
    pub tables: TableOptions,
    /// How images become features.
    pub embedding: EmbeddingOptions,
}

/// Where data lies.
#[derive(Clone, Debug)]
pub enum DataInput {
    /// A feature file, a folder of images with one folder per class, or a manifest.
    Path(PathBuf),
    /// A data set that has a name.
    Named {
        /// Its name.
        name: String,
        /// The folder that such data sets lie in.
        root: PathBuf,
        /// Which of its images are taken.
        images: Images,
    },
}

/// How the images of a bench become features.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingOptions {
    /// The encoder.
    pub images: ImageOptions,
    /// How many augmented views there are for baselines that are trained on them; by default 2.
    pub views: Option<usize>,
    /// The folder of a training of OCD, whose codes are then used.
    pub ocd: Option<PathBuf>,
}

impl DataSource {
    /// The data set as features, with what the methods need beside them.
    pub fn load(&self, methods: &[BenchMethod], progress: &dyn Progress) -> Result<Dataset, LabError> {
        let data = match &self.input {
            DataInput::Path(path) => self.load_path(path, methods, progress)?,
            DataInput::Named { name, root, images } => {
                let set = DatasetEntry::find(name)?.open(root, *images)?;
                self.embedding.load_set(&set, methods, progress)?
            }
        };
        if let Some(path) = &self.calibration {
            CalibrationFile::read(path)?.check(Path::new(data.name()), data.features().dim(), data.encoder())?;
        }
        Ok(data)
    }

    fn load_path(&self, path: &Path, methods: &[BenchMethod], progress: &dyn Progress) -> Result<Dataset, LabError> {
        let split = self.split.as_deref();
        let data = match is_image_source(path, &self.tables)? {
            false => Dataset::read(path, split, &self.tables)?,
            true => {
                let list = list_images(path, &self.tables)?;
                self.check_labels(&list, path)?;
                let read = |items: &Items| Dataset::read(items.path(), split, &TableOptions::default());
                self.embedding.embed(&list, path, methods, progress, read)?
            }
        };
        // A report names what the user named.
        let data = data.called(path.display().to_string());
        Ok(match &self.paper_set {
            None => data,
            Some(name) => data.of_set(DatasetEntry::find(name)?.name),
        })
    }

    /// Looks at labels and split before hours of work.
    fn check_labels(&self, list: &ImageList, path: &Path) -> Result<(), LabError> {
        if let Some(item) = list.items.iter().find(|item| item.label.is_none()) {
            return Err(LabError::UnlabelledImage {
                images: path.to_owned(),
                id: item.id.clone(),
            });
        }
        if let Some(split) = &self.split {
            let mut classes: Vec<String> = list.items.iter().filter_map(|item| item.label.clone()).collect();
            classes.sort_unstable();
            classes.dedup();
            Split::read(split)?.resolve(&classes, None)?;
        }
        Ok(())
    }
}

impl EmbeddingOptions {
    /// The features of a data set that has a name.
    pub fn load_set(
        &self,
        set: &ImageSet,
        methods: &[BenchMethod],
        progress: &dyn Progress,
    ) -> Result<Dataset, LabError> {
        for note in &set.notes {
            let title = &set.title;
            progress.note(&Note::DataSet { title, note });
        }
        let lists = ClassLists {
            classes: set.classes.clone(),
            base: set.base.clone(),
            novel: set.novel.clone(),
        };
        let read = |items: &Items| Dataset::read_with(items.path(), lists);
        let data = self.embed(&set.list, &set.root, methods, progress, read)?;
        Ok(data.called(&*set.title).of_set(&*set.name))
    }

    /// Embeds images, with their views and codes where methods need these.
    fn embed(
        &self,
        list: &ImageList,
        source: &Path,
        methods: &[BenchMethod],
        progress: &dyn Progress,
        read: impl FnOnce(&Items) -> Result<Dataset, LabError>,
    ) -> Result<Dataset, LabError> {
        // Looked at first: a wrong folder is to cost no time.
        let ocd = match self.ocd.as_ref().filter(|_| methods.iter().any(BenchMethod::is_ocd)) {
            None => None,
            Some(run) => {
                let head = trained_hash(run)?.ok_or_else(|| LabError::NoHead { run: run.clone() })?;
                // It says so when there is none.
                trained_encoder(run)?;
                Some((run, head))
            }
        };
        let mut embedder = Embedder::new(&self.images, progress);
        let items = embedder.embedded(list, source, None)?;
        let mut data = read(&items)?;
        if methods.iter().any(BenchMethod::takes_images) {
            let (encoder, weights) = self.images.find_with_weights(progress)?;
            // Images that could not be read have no row.
            let by_id: BTreeMap<&str, _> = list.items.iter().map(|item| (&*item.id, item)).collect();
            let ids = read_table(items.path())?.table.ids;
            let sources = ids
                .iter()
                .filter_map(|id| by_id.get(&**id))
                .map(|item| ImageSource::new(&item.path, item.pixels));
            data = data.with_images(ImageRows {
                sources: sources.collect(),
                encoder,
                weights,
            })?;
        }
        let views = match methods.iter().any(BenchMethod::takes_views) {
            true => self.views.unwrap_or(VIEWS),
            false => 0,
        };
        let views = (0..views as u64).map(|number| {
            let items = embedder.embedded(list, source, Some(Augmentation { number, mirror: true }))?;
            Ok(read_table(items.path())?.table.features)
        });
        data = data.with_views(views.collect::<Result<_, LabError>>()?)?;
        if let Some((run, head)) = ocd {
            let options = self.images.with_encoder(&run.display().to_string());
            let items = Embedder::new(&options, progress).embedded(list, source, None)?;
            data = data.with_codes(read_table(items.path())?.table.features, head)?;
        }
        Ok(data)
    }
}
