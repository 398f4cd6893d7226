//! Images wherever features are taken: they are embedded on the way in, each once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use genus_core::Features;
use genus_data::{
    EncoderRecord, FeatureCache, FeatureWriter, ImageItem, ImageList, Origin, TableFormat, TableOptions, TableReader,
    default_root, is_image_source, list_images, same_encoder,
};
use genus_files::ScratchFolder;
use genus_vision::{
    Augmentation, ContentHash, Embedding, Encoder, EncoderSpec, FeatureStore, Fingerprint, Hub, ImageSource, Isa,
    Limits, MODELS, Model, NoStore, OnnxError, OnnxModel, OnnxSettings, Precision, Rgb, WeightsHome, WeightsSource,
    with_decoded,
};

use rayon::prelude::*;

use crate::items::{Items, Source};
use crate::training::trained_encoder;
use crate::{Error, Length, Note, Progress, Skipped};

/// Where images of a sorted folder are that nobody was sure of.
const UNSURE: &str = "unsure/";
/// Why a picture of another format is left out.
const UNSUPPORTED: &str = "pictures of this format cannot be read; convert it to .jpg";

/// How images become features.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageOptions {
    /// The encoder: a name with parameters, such as `dinov2-small:size=448`, the folder of a training run, or an ONNX file. By
    /// default the built-in one.
    pub encoder: Option<String>,
    /// The file of its weights; by default those that belong to it: built in, in the training run's folder, or from the model
    /// hub or its cache.
    pub weights: Option<PathBuf>,
    /// The precision of matrix products; by default f32.
    pub precision: Option<Precision>,
    /// Where features are cached; by default in the user's cache folder.
    pub cache: CacheChoice,
    /// Whether an unreadable image is an error. Otherwise such images are skipped.
    pub strict: bool,
    /// How large images may be.
    pub limits: Limits,
}

impl ImageOptions {
    /// The name of the encoder, or the default.
    pub fn encoder(&self) -> &str {
        self.encoder.as_deref().unwrap_or(Model::DEFAULT)
    }

    /// The same options for another encoder, which may come with its weights as in `resnet18@FILE`.
    pub fn with_encoder(&self, encoder: &str) -> Self {
        let (name, weights) = match encoder.split_once('@') {
            Some((name, weights)) if !Path::new(encoder).is_dir() => (name, Some(PathBuf::from(weights))),
            _ => (encoder, None),
        };
        Self {
            encoder: Some(name.to_owned()),
            weights,
            ..self.clone()
        }
    }

    /// What the encoder is, and where its weights are, unless they are on the model hub.
    pub fn find(&self) -> Result<(EncoderSpec, Option<WeightsSource>), Error> {
        if is_onnx(self.encoder()) {
            return Err(Error::OnlyEmbeds {
                model: self.encoder().into(),
            });
        }
        let named = self.weights.clone().map(WeightsSource::File);
        if let Some((spec, trained)) = trained_encoder(self.encoder())? {
            return Ok((spec, Some(named.unwrap_or(WeightsSource::File(trained)))));
        }
        let spec = EncoderSpec::parse(self.encoder())?;
        let own = (spec.model.home == WeightsHome::Embedded).then_some(WeightsSource::Embedded);
        Ok((spec, named.or(own)))
    }

    /// The same with its weights on this machine, downloaded if needed.
    pub fn find_with_weights(&self, progress: &dyn Progress) -> Result<(EncoderSpec, WeightsSource), Error> {
        let (spec, weights) = self.find()?;
        let weights = match weights {
            Some(weights) => weights,
            None => WeightsSource::File(fetch_weights(&spec, progress)?),
        };
        Ok((spec, weights))
    }

    pub(crate) fn load(&self, progress: &dyn Progress) -> Result<LoadedEncoder, Error> {
        if is_onnx(self.encoder()) {
            return self.load_onnx();
        }
        // What cannot run is not fetched.
        let isa = self.find()?.0.isa(self.precision)?;
        let (spec, weights) = self.find_with_weights(progress)?;
        let name = self.encoder();
        let record = EncoderRecord {
            encoder: match Path::new(name).is_dir() {
                true => absolute(Path::new(name)).display().to_string(),
                false => name.to_owned(),
            },
            weights: weights.to_record(),
            precision: self.precision.map(|precision| precision.to_string()),
        };
        let encoder = spec.load(weights, isa)?;
        Ok(LoadedEncoder {
            name: name.to_owned(),
            isa: Some(encoder.isa()),
            encoder: Box::new(encoder),
            record,
        })
    }

    /// An encoder in an ONNX file, which has its own weights and precision.
    fn load_onnx(&self) -> Result<LoadedEncoder, Error> {
        let model = absolute(Path::new(self.encoder()));
        if self.weights.is_some() || self.precision.is_some() {
            return Err(Error::OnnxIsWhole { model });
        }
        Ok(LoadedEncoder {
            name: self.encoder().to_owned(),
            isa: None,
            encoder: onnx_encoder(&model)?,
            record: EncoderRecord {
                encoder: model.display().to_string(),
                weights: model,
                precision: None,
            },
        })
    }

    /// The same options with the encoder that a taxonomy was made with, unless another is named.
    fn of_taxonomy(&self, folder: &Path, made: &Origin) -> Result<Self, Error> {
        if self.encoder.is_some() {
            return Ok(self.clone());
        }
        let Some(record) = &made.images else {
            return self.by_fingerprint(folder, made);
        };
        let mut options = Self {
            encoder: Some(record.encoder.clone()),
            ..self.clone()
        };
        options.precision = self
            .precision
            .or(record.precision.as_ref().and_then(|text| text.parse().ok()));
        let gone = |file: &Path| Error::WeightsGone {
            taxonomy: folder.to_owned(),
            encoder: record.encoder.clone(),
            file: file.to_owned(),
        };
        let training = Path::new(&record.encoder);
        if training.is_absolute() && !training.exists() {
            return Err(gone(training));
        }
        if is_onnx(&record.encoder) {
            return Ok(options);
        }
        if let (None, WeightsSource::File(path)) = (&self.weights, WeightsSource::recorded(&record.weights)) {
            match path.is_file() {
                true => options.weights = Some(path),
                // The hub may have it, or its cache in another place.
                false if matches!(options.find()?.0.model.home, WeightsHome::Hub { .. }) => {}
                false => return Err(gone(&path)),
            }
        }
        Ok(options)
    }

    /// The same options with the available encoder that matches a taxonomy's features.
    fn by_fingerprint(&self, folder: &Path, made: &Origin) -> Result<Self, Error> {
        let unknown = || Error::UnknownEncoder {
            taxonomy: folder.to_owned(),
            fingerprint: made.encoder.clone(),
        };
        let fingerprint = made.encoder.as_deref().ok_or_else(unknown)?;
        let hub = Hub::from_env();
        for model in MODELS {
            let weights = match model.home {
                WeightsHome::Embedded => Some(WeightsSource::Embedded),
                WeightsHome::Hub { repo, file } => hub.cached(repo, file).map(WeightsSource::File),
                WeightsHome::Own => None,
            };
            let Some(weights) = weights.filter(|_| fingerprint.starts_with(&model.architecture.to_string())) else {
                continue;
            };
            let precision = fingerprint.contains(" in bf16 ").then_some(Precision::Bf16);
            let spec = EncoderSpec::parse(model.name)?;
            let Ok(encoder) = spec.load(weights, spec.isa(precision)?) else {
                continue;
            };
            if encoder.fingerprint().as_str() == fingerprint {
                return Ok(Self {
                    encoder: Some(model.name.to_owned()),
                    precision,
                    ..self.clone()
                });
            }
        }
        Err(unknown())
    }
}

/// Where features are cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheChoice {
    /// In `GENUS_CACHE`, or in the cache folder of the user.
    #[default]
    User,
    /// In this folder.
    Folder(PathBuf),
    /// No cache.
    Nowhere,
}

impl CacheChoice {
    /// The folder.
    pub fn folder(&self) -> Result<Option<PathBuf>, Error> {
        match self {
            CacheChoice::User => default_root().map(Some).ok_or(Error::NoCacheFolder),
            CacheChoice::Folder(folder) => Ok(Some(folder.clone())),
            CacheChoice::Nowhere => Ok(None),
        }
    }
}

/// Embeds images into a feature file: those of a folder, a manifest or a list. Gives the images that could not be read.
pub fn embed(
    images: &Path,
    file: &Path,
    options: &ImageOptions,
    tables: &TableOptions,
    progress: &dyn Progress,
) -> Result<Vec<Skipped>, Error> {
    let list = list_images(images, tables)?;
    let mut embedder = Embedder::new(options, progress);
    embedder.embed(&list, images, file, None)?;
    Ok(embedder.skipped)
}

/// Embeds images; the encoder is loaded with the first image.
pub struct Embedder<'a> {
    options: &'a ImageOptions,
    progress: &'a dyn Progress,
    /// The taxonomy whose features they are to be compared with.
    taxonomy: Option<(&'a Path, &'a Origin)>,
    loaded: Option<LoadedEncoder>,
    skipped: Vec<Skipped>,
}

/// An encoder, and how it is found again.
pub(crate) struct LoadedEncoder {
    /// What it is called, as it was asked for.
    pub(crate) name: String,
    /// The instruction set it runs on; none if another library runs it.
    pub(crate) isa: Option<Isa>,
    pub(crate) encoder: Box<dyn Encoder>,
    record: EncoderRecord,
}

impl<'a> Embedder<'a> {
    /// Nothing is loaded yet.
    pub fn new(options: &'a ImageOptions, progress: &'a dyn Progress) -> Self {
        Self {
            options,
            progress,
            taxonomy: None,
            loaded: None,
            skipped: Vec::new(),
        }
    }

    /// One with the encoder that a taxonomy was made with, unless the options name another.
    pub fn of_taxonomy(
        options: &'a ImageOptions,
        folder: &'a Path,
        made: &'a Origin,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            taxonomy: Some((folder, made)),
            ..Self::new(options, progress)
        }
    }

    /// The encoder, if there were images.
    pub fn used(&self) -> Option<&EncoderRecord> {
        self.loaded.as_ref().map(|loaded| &loaded.record)
    }

    fn load(&self) -> Result<LoadedEncoder, Error> {
        let Some((folder, made)) = self.taxonomy else {
            return self.options.load(self.progress);
        };
        let loaded = self.options.of_taxonomy(folder, made)?.load(self.progress)?;
        // Before hours of work.
        let other = (&*loaded.record.weights, Some(loaded.encoder.fingerprint().as_str()));
        same_encoder((folder, made.encoder.as_deref()), other)?;
        Ok(loaded)
    }

    /// The images that could not be read so far.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The items of a source. Images are embedded; features are taken as they are.
    pub fn items(&mut self, source: Source, tables: &TableOptions, needs_labels: bool) -> Result<Items, Error> {
        let path = match source {
            Source::Table { table, encoder } => return Items::in_memory(table, encoder),
            Source::Path(path) => path,
        };
        if is_pipe(&path) || is_table_on_standard_input(&path, tables) {
            return spooled(&path, tables);
        }
        if !is_image_source(&path, tables)? {
            return Ok(Items::file(&path, tables.clone()));
        }
        let mut list = list_images(&path, tables)?;
        if needs_labels {
            let all = list.items.len();
            list.items
                .retain(|item| item.label.is_some() || !item.id.starts_with(UNSURE));
            if list.items.len() < all {
                let images = (all - list.items.len()) as u64;
                self.progress.note(&Note::DoubtfulExamples { images });
            }
            self.note_odd_classes(&path, &list);
        }
        if let Some(item) = list.items.iter().find(|item| needs_labels && item.label.is_none()) {
            return Err(Error::UnlabelledImage {
                source_path: path,
                image: item.id.clone(),
            });
        }
        self.embedded(&list, &path, None)
    }

    /// Says where folders of examples may not be meant as they are.
    fn note_odd_classes(&self, examples: &Path, list: &ImageList) {
        if !list.empty_classes.is_empty() {
            let classes = &list.empty_classes;
            self.progress.note(&Note::EmptyClasses { examples, classes });
        }
        let Some(class) = list.items.first().and_then(|item| item.label.as_deref()) else {
            return;
        };
        let in_class = |item: &ImageItem| match item.id.split('/').collect::<Vec<_>>()[..] {
            [first, folder, _, ..] if first == class => Some(folder.to_owned()),
            _ => None,
        };
        let folders: Option<BTreeSet<String>> = list.items.iter().map(in_class).collect();
        if let Some(folders) = folders
            .map(|folders| folders.len() as u64)
            .filter(|&folders| folders > 1)
        {
            self.progress.note(&Note::ClassOfFolders {
                examples,
                class,
                folders,
            });
        }
    }

    /// The same if every item is read only once: a table on standard input is streamed.
    pub(crate) fn items_once(&mut self, source: Source, tables: &TableOptions) -> Result<Items, Error> {
        match &source {
            Source::Path(path)
                if is_table_on_standard_input(path, tables) && tables.format.is_some_and(TableFormat::is_text) =>
            {
                Ok(Items::once(TableReader::open_with(path, tables)?))
            }
            _ => self.items(source, tables, false),
        }
    }

    /// The features of a list of images, or of one of their views, in a file made for this run.
    pub fn embedded(&mut self, list: &ImageList, source: &Path, view: Option<Augmentation>) -> Result<Items, Error> {
        let folder = ScratchFolder::new().map_err(|source| Error::Scratch {
            folder: std::env::temp_dir(),
            source,
        })?;
        let name = source
            .file_name()
            .map_or("images".into(), |name| name.to_string_lossy());
        let file = folder.path().join(format!("{name}.parquet"));
        self.embed(list, source, &file, view)?;
        Ok(Items::made(file, list.items.clone(), folder, TableOptions::default()))
    }

    fn embed(&mut self, list: &ImageList, source: &Path, file: &Path, view: Option<Augmentation>) -> Result<(), Error> {
        let start = Instant::now();
        let (options, progress) = (self.options, self.progress);
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => self.load()?,
        };
        let LoadedEncoder { name, encoder, isa, .. } = &*self.loaded.insert(loaded);
        let fingerprint = encoder.fingerprint().as_str();
        let cache = match options.cache.folder()? {
            None => None,
            Some(folder) => Some(FeatureCache::open(&folder, fingerprint, encoder.dim())?),
        };
        let remembered = cache.as_ref().map(|cache| CacheStore {
            cache,
            progress,
            recalled: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        });
        let memory: &dyn FeatureStore = match &remembered {
            Some(remembered) => remembered,
            None => &NoStore,
        };
        let with_labels = list.items.iter().any(|item| item.label.is_some());
        let mut writer = FeatureWriter::create(file, encoder.dim(), Some(fingerprint), with_labels)?;
        let embedding = Embedding {
            limits: options.limits,
            augmented: view,
            ..Embedding::default()
        };
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut skip = |path: &Path, reason: String| {
            let path = path.to_owned();
            if options.strict {
                return Err(Error::Unreadable { path, reason });
            }
            skipped.push(Skipped { path, reason });
            Ok(())
        };
        list.skipped
            .iter()
            .try_for_each(|(path, reason)| skip(path, reason.clone()))?;
        if let (Some(path), true) = (list.unsupported.first(), options.strict) {
            skip(path, UNSUPPORTED.to_owned())?;
        }
        let stage = view.map_or("images".to_owned(), |view| {
            format!("view {} of images", view.number + 1)
        });
        progress.start(&stage, Length::Steps(list.items.len() as u64));
        let files: Vec<ImageSource> = list
            .items
            .iter()
            .map(|item| ImageSource::new(&item.path, item.pixels))
            .collect();
        let mut written = 0;
        embedding.run(&**encoder, &files, memory, |at, features| {
            let item = &list.items[at];
            match features {
                Ok(row) => {
                    writer.write(std::slice::from_ref(&item.id), std::slice::from_ref(&item.label), &row)?;
                    written += 1;
                }
                Err(error) => skip(&item.path, error.to_string())?,
            }
            progress.step();
            Ok::<(), Error>(())
        })?;
        progress.end();
        // Every view lacks the same images.
        if view.is_none() {
            progress.note(&Note::Skipped(&skipped));
            self.skipped.extend(skipped);
            if !list.unsupported.is_empty() {
                progress.note(&Note::Unsupported(&list.unsupported()));
            }
            let unsupported = list.unsupported.iter().map(|path| Skipped {
                path: path.clone(),
                reason: UNSUPPORTED.to_owned(),
            });
            self.skipped.extend(unsupported);
        }
        if written == 0 {
            return Err(Error::NoImages {
                source_path: source.to_owned(),
            });
        }
        writer.finish()?;
        progress.note(&Note::Embedded {
            images: written,
            view: view.map(|view| view.number),
            recalled: remembered.map_or(0, |memory| memory.recalled.into_inner()),
            encoder: name,
            isa: *isa,
            seconds: start.elapsed().as_secs_f64(),
        });
        Ok(())
    }
}

/// An encoder that stays in memory, for images that arrive one by one.
pub struct LiveEncoder {
    loaded: LoadedEncoder,
    limits: Limits,
}

impl LiveEncoder {
    /// Loads the encoder of some options, or the one that a taxonomy was made with unless they name another.
    pub fn load(
        options: &ImageOptions,
        made: Option<(&Path, &Origin)>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let embedder = Embedder {
            taxonomy: made,
            ..Embedder::new(options, progress)
        };
        Ok(Self {
            loaded: embedder.load()?,
            limits: options.limits,
        })
    }

    /// The number of features of an image.
    pub fn dim(&self) -> usize {
        self.loaded.encoder.dim()
    }

    /// The fingerprint of its features.
    pub fn fingerprint(&self) -> &str {
        self.loaded.encoder.fingerprint().as_str()
    }

    /// How it is found again.
    pub fn record(&self) -> &EncoderRecord {
        &self.loaded.record
    }

    /// The features of images that are decoded already.
    pub fn features_of(&self, images: &[Rgb], progress: &dyn Progress) -> Result<Features, Error> {
        let encoder = &*self.loaded.encoder;
        progress.start("images", Length::Steps(images.len() as u64));
        let rows = images.par_iter().map(|image| {
            let row = encoder.encode(&encoder.transform().apply(image))?;
            progress.step();
            Ok::<_, Error>(row)
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        progress.end();
        Ok(Features::new(encoder.dim(), rows.concat())?)
    }

    /// The features of an image, which is the content of a file.
    pub fn features(&self, file: &[u8]) -> Result<Vec<f32>, Error> {
        let encoder = &*self.loaded.encoder;
        let pixels = with_decoded(file, &self.limits, |image| encoder.transform().apply(&image));
        let pixels = pixels.map_err(|reason| Error::Unreadable {
            path: "the image".into(),
            reason: reason.to_string(),
        })?;
        Ok(encoder.encode(&pixels)?)
    }
}

/// What is known of a network in a file of ONNX.
#[derive(Debug)]
pub struct OnnxInfo {
    /// What the file says.
    pub model: OnnxModel,
    /// What the settings beside it say, or what is wrong with them.
    pub settings: Result<OnnxSettings, OnnxError>,
    /// How many features it gives and its fingerprint, or why it cannot be run; tried only with settings.
    pub trial: Option<Result<(usize, Fingerprint), Error>>,
}

impl OnnxInfo {
    /// Looks at a file of ONNX and what is beside it, and tries the network where this build can.
    pub fn of(model: &Path) -> Result<Self, Error> {
        let (found, settings) = (OnnxModel::read(model)?, OnnxSettings::read(model));
        let try_it = || {
            let encoder = onnx_encoder(model)?;
            Ok((encoder.dim(), encoder.fingerprint().clone()))
        };
        Ok(Self {
            trial: settings.is_ok().then(try_it),
            model: found,
            settings,
        })
    }
}

/// Whether an encoder is an ONNX file.
pub fn is_onnx(encoder: &str) -> bool {
    Path::new(encoder)
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("onnx"))
}

#[cfg(feature = "onnx")]
fn onnx_encoder(model: &Path) -> Result<Box<dyn Encoder>, Error> {
    Ok(Box::new(genus_vision::OnnxEncoder::load(model)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx_encoder(model: &Path) -> Result<Box<dyn Encoder>, Error> {
    Err(Error::NoOnnx {
        model: model.to_owned(),
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a path is a pipe, which can be read only once.
fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    return std::fs::metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type()));
    #[cfg(not(unix))]
    return path.as_os_str().is_empty();
}

/// Whether a path is standard input with a table on it, and not a list of images.
fn is_table_on_standard_input(path: &Path, tables: &TableOptions) -> bool {
    path == Path::new("-") && tables.format.is_some()
}

/// What comes through a pipe or standard input, in a file made for this run: a table is looked at more than once.
fn spooled(path: &Path, tables: &TableOptions) -> Result<Items, Error> {
    let failed = |source: std::io::Error| Error::Pipe {
        path: path.to_owned(),
        source,
    };
    let folder = ScratchFolder::new().map_err(failed)?;
    let name = match (is_table_on_standard_input(path, tables), tables.format) {
        (true, Some(format)) => format!("standard-input.{format}").into(),
        _ => path.file_name().unwrap_or("pipe".as_ref()).to_owned(),
    };
    let file = folder.path().join(name);
    let mut to = std::fs::File::create_new(&file).map_err(failed)?;
    match path == Path::new("-") {
        true => std::io::copy(&mut std::io::stdin().lock(), &mut to).map_err(failed)?,
        false => std::io::copy(&mut std::fs::File::open(path).map_err(failed)?, &mut to).map_err(failed)?,
    };
    let tables = TableOptions {
        called: Some(path.to_owned()),
        ..tables.clone()
    };
    if is_image_source(&file, &tables)? {
        return Err(Error::PipeOfImages { path: path.to_owned() });
    }
    Ok(Items::made(file, Vec::new(), folder, tables))
}

/// The weights of an encoder that has a name, from the model hub's cache or the hub.
pub fn fetch_weights(spec: &EncoderSpec, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let WeightsHome::Hub { repo, file } = spec.model.home else {
        return Err(Error::NoWeights {
            encoder: spec.model.name,
        });
    };
    let mut before = 0;
    let path = Hub::from_env().fetch(repo, file, &mut |done, total| {
        if before == 0 {
            progress.start("downloading", total.map_or(Length::Unknown, Length::Bytes));
        }
        progress.advance(done.saturating_sub(before));
        before = done;
    })?;
    progress.end();
    Ok(path)
}

/// The feature cache as the memory of the embedding.
struct CacheStore<'a> {
    cache: &'a FeatureCache,
    progress: &'a dyn Progress,
    recalled: AtomicU64,
    /// Whether it was said that nothing can be kept.
    warned: AtomicBool,
}

impl FeatureStore for CacheStore<'_> {
    fn recall(&self, content: &ContentHash) -> Option<Vec<f32>> {
        let features = self.cache.get(content)?;
        self.recalled.fetch_add(1, Ordering::Relaxed);
        Some(features)
    }

    fn remember(&self, content: &ContentHash, features: &[f32]) {
        // A cache that cannot be written (a full disk, say) costs time later, not the result now.
        if let Err(e) = self.cache.put(content, features)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            self.progress.note(&Note::NotRemembered(&e));
        }
    }
}
