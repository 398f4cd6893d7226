//! The data set of a bench: a feature file, images, or one of those that have a name.

use std::collections::BTreeMap;
use std::path::Path;

use genus::training::{trained_encoder, trained_hash};
use genus::{CalibrationFile, Embedder, ImageOptions, Items};
use genus_data::datasets::{DatasetEntry, ImageSet, Images};
use genus_data::{ImageList, Split, list_images, read_table};
use genus_lab::{ClassLists, Dataset, Experiment, ImageRows, Ocd, SimGcd};
use genus_vision::{Augmented, ImageSource};

use crate::args::{BenchSource, Global};
use crate::failure::Failure;
use crate::progress::Bar;

/// How many augmented views the trained baselines see when nothing else is said, as in their papers.
const VIEWS: usize = 2;

/// The data set that was named, as features.
pub(crate) fn load(
    source: &BenchSource,
    calibration: Option<&Path>,
    methods: Trained,
    global: &Global,
) -> Result<Dataset, Failure> {
    load_by(source, &source.image_options.options(), calibration, methods, global)
}

/// The same through another encoder.
pub(crate) fn load_with(
    source: &BenchSource,
    encoder: &str,
    calibration: Option<&Path>,
    methods: Trained,
    global: &Global,
) -> Result<Dataset, Failure> {
    let options = source.image_options.options().with_encoder(encoder);
    load_by(source, &options, calibration, methods, global)
}

fn load_by(
    source: &BenchSource,
    options: &ImageOptions,
    calibration: Option<&Path>,
    methods: Trained,
    global: &Global,
) -> Result<Dataset, Failure> {
    let data = open(source, options, methods, global)?;
    if let Some(path) = calibration {
        CalibrationFile::read(path)?.check(Path::new(data.name()), data.features().dim(), data.encoder())?;
    }
    Ok(data)
}

fn open(source: &BenchSource, options: &ImageOptions, methods: Trained, global: &Global) -> Result<Dataset, Failure> {
    if let Some(features) = &source.features {
        // A report names what the user named.
        let data = Dataset::read(features, source.split.as_deref())?.called(features.display().to_string());
        return of_paper(data, source);
    }
    let wanted = Wanted {
        options,
        views: methods.views(source.views.views),
        ocd: source.ocd.as_deref().filter(|_| methods.ocd),
        images: methods.blocks,
        global,
    };
    if let Some(name) = &source.data {
        let part = match &source.images {
            None => Images::default(),
            Some(text) => text
                .to_string_lossy()
                .parse()
                .map_err(|e: genus_data::datasets::ParseImagesError| Failure::Usage(e.to_string()))?,
        };
        let set = DatasetEntry::find(name)?.open(&source.data_root.path(), part)?;
        return of_set(&set, &wanted);
    }
    let Some(images) = &source.images else {
        return Err(Failure::Usage(
            "name a feature file with --features, images with --images, or a data set with --data".into(),
        ));
    };
    if !genus_data::is_image_source(images)? {
        // A feature file under the wrong name of option is clear enough.
        let data = Dataset::read(images, source.split.as_deref())?.called(images.display().to_string());
        return of_paper(data, source);
    }
    let list = list_images(images)?;
    if let Some(item) = list.items.iter().find(|item| item.label.is_none()) {
        return Err(Failure::failed(format!(
            "{}: the image {} has no label; put the images of each class into a folder of its name, or name their classes in a \
             manifest with the columns path and label",
            images.display(),
            item.id
        )));
    }
    // The split is looked at before hours of work.
    if let Some(split) = &source.split {
        let mut classes: Vec<String> = list.items.iter().filter_map(|item| item.label.clone()).collect();
        classes.sort_unstable();
        classes.dedup();
        Split::read(split)?.resolve(&classes, None)?;
    }
    let read = |input: &Items| Dataset::read(input.path(), source.split.as_deref());
    let data = wanted
        .embedded(&list, images, read)?
        .called(images.display().to_string());
    of_paper(data, source)
}

/// One of the paper's data sets, when the user says so.
fn of_paper(data: Dataset, source: &BenchSource) -> Result<Dataset, Failure> {
    Ok(match &source.paper_set {
        None => data,
        Some(name) => data.of_set(DatasetEntry::find(name)?.name),
    })
}

/// The features of a data set that has a name.
pub(crate) fn of_set(set: &ImageSet, wanted: &Wanted) -> Result<Dataset, Failure> {
    if !wanted.global.quiet {
        for note in &set.notes {
            say!("{}: {note}", set.title);
        }
    }
    let lists = ClassLists {
        classes: set.classes.clone(),
        base: set.base.clone(),
        novel: set.novel.clone(),
    };
    let data = wanted.embedded(&set.list, &set.root, |input| Dataset::read_with(input.path(), lists))?;
    Ok(data.called(&*set.title).of_set(&*set.name))
}

/// Which of the baselines that are trained take part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trained {
    ocd: bool,
    any: bool,
    /// Whether one of them trains a network in every episode.
    blocks: bool,
}

impl Trained {
    /// Those of a list of methods, where none means those of the experiment.
    pub(crate) fn of(methods: &[String], experiment: &Experiment) -> Self {
        let methods: Vec<&str> = match methods {
            [] => experiment.methods().to_vec(),
            named => named.iter().map(String::as_str).collect(),
        };
        let any = |prefix: &str| methods.iter().any(|name| name.starts_with(prefix));
        let ocd = any(Ocd::NAME);
        Self {
            ocd,
            any: ocd || any(SimGcd::NAME),
            blocks: methods
                .iter()
                .any(|name| name.starts_with(SimGcd::NAME) && name.contains("blocks=")),
        }
    }

    /// How many views they are to see.
    pub(crate) fn views(self, asked: Option<usize>) -> usize {
        match self.any {
            true => asked.unwrap_or(VIEWS),
            false => 0,
        }
    }
}

/// What is to be made of images.
pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a ImageOptions,
    /// How many augmented views.
    pub(crate) views: usize,
    /// The folder of OCD's own training.
    pub(crate) ocd: Option<&'a Path>,
    /// Whether a network is trained on the images themselves.
    pub(crate) images: bool,
    pub(crate) global: &'a Global,
}

impl Wanted<'_> {
    /// Embeds images, with their views and codes where these are wanted.
    fn embedded(
        &self,
        list: &ImageList,
        source: &Path,
        read: impl FnOnce(&Items) -> Result<Dataset, genus_lab::LabError>,
    ) -> Result<Dataset, Failure> {
        // Looked at first: a wrong folder is to cost no time.
        let ocd = match self.ocd {
            None => None,
            Some(run) => {
                let head = trained_hash(run)?
                    .ok_or_else(|| Failure::failed(format!("{} is no training with --objective ocd", run.display())))?;
                // It says so when there is none.
                trained_encoder(run)?;
                Some((run, head))
            }
        };
        let progress = Bar::new(self.global);
        let mut embedder = Embedder::new(self.options, &progress);
        let input = embedder.embedded(list, source, None)?;
        let mut data = read(&input)?;
        if self.images {
            let (encoder, weights) = self.options.find_with_weights(&progress)?;
            // Images that could not be read have no row.
            let by_id: BTreeMap<&str, _> = list.items.iter().map(|item| (&*item.id, item)).collect();
            let ids = read_table(input.path())?.table.ids;
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
        let mut views = Vec::new();
        for number in 0..self.views as u64 {
            let view = Augmented { number, mirror: true };
            let input = embedder.embedded(list, source, Some(view))?;
            views.push(read_table(input.path())?.table.features);
        }
        data = data.with_views(views)?;
        if let Some((run, head)) = ocd {
            let options = self.options.with_encoder(&run.display().to_string());
            let input = Embedder::new(&options, &progress).embedded(list, source, None)?;
            data = data.with_codes(read_table(input.path())?.table.features, head)?;
        }
        Ok(data)
    }
}
