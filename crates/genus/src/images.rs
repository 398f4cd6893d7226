//! Images wherever features are taken: they are embedded on the way in, each once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use genus_data::{FeatureCache, FeatureWriter, ImageList, default_root, is_image_source, list_images};
use genus_files::ScratchFolder;
use genus_vision::{
    Augmented, ContentHash, Embedding, Encoder, EncoderSpec, Hub, ImageSource, Limits, Memory, NetworkEncoder,
    NoMemory, Precision,
};

use crate::items::{Items, Source};
use crate::training::trained_encoder;
use crate::{Error, Length, Note, Progress, Skipped};

/// How images become features.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageOptions {
    /// The encoder: a name with its parameters, as in `dinov2-small:size=448`, or the folder of a training.
    pub encoder: String,
    /// The file of its weights; by default those of the training, or from the model hub and its cache.
    pub weights: Option<PathBuf>,
    /// The precision of matrix products; by default f32.
    pub precision: Option<Precision>,
    /// Where features are remembered; by default in the user's cache folder.
    pub cache: CacheChoice,
    /// Whether the first image that cannot be read is an error. Otherwise such images are skipped.
    pub strict: bool,
    /// How large images may be.
    pub limits: Limits,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            encoder: Self::ENCODER.to_owned(),
            weights: None,
            precision: None,
            cache: CacheChoice::default(),
            strict: false,
            limits: Limits::default(),
        }
    }
}

impl ImageOptions {
    /// The encoder of the paper.
    pub const ENCODER: &str = "dino-vitb16";

    /// The same options for another encoder, which may come with its weights as in `resnet18@FILE`.
    pub fn with_encoder(&self, encoder: &str) -> Self {
        let (name, weights) = match encoder.split_once('@') {
            Some((name, weights)) if !Path::new(encoder).is_dir() => (name, Some(PathBuf::from(weights))),
            _ => (encoder, None),
        };
        Self {
            encoder: name.to_owned(),
            weights,
            ..self.clone()
        }
    }

    /// What the encoder is, and the file of its weights if it was named or the encoder is a trained one.
    pub fn find(&self) -> Result<(EncoderSpec, Option<PathBuf>), Error> {
        match trained_encoder(&self.encoder)? {
            Some((spec, trained)) => Ok((spec, Some(self.weights.clone().unwrap_or(trained)))),
            None => Ok((EncoderSpec::parse(&self.encoder)?, self.weights.clone())),
        }
    }

    /// The same with its weights on this machine, fetched if need be.
    pub fn find_with_weights(&self, progress: &dyn Progress) -> Result<(EncoderSpec, PathBuf), Error> {
        let (spec, weights) = self.find()?;
        let weights = match weights {
            Some(path) => path,
            None => fetch_weights(&spec, progress)?,
        };
        Ok((spec, weights))
    }

    fn load(&self, progress: &dyn Progress) -> Result<NetworkEncoder, Error> {
        let (spec, weights) = self.find()?;
        // What cannot run is not fetched.
        let isa = spec.isa(self.precision)?;
        let weights = match weights {
            Some(path) => path,
            None => fetch_weights(&spec, progress)?,
        };
        Ok(spec.load(weights, isa)?)
    }
}

/// Where features are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheChoice {
    /// In `GENUS_CACHE`, or in the cache folder of the user.
    #[default]
    User,
    /// In this folder.
    Folder(PathBuf),
    /// Nowhere.
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

/// Embeds images into a feature file: those of a folder, a manifest or a list. The images that could not be read.
pub fn embed(
    images: &Path,
    file: &Path,
    options: &ImageOptions,
    progress: &dyn Progress,
) -> Result<Vec<Skipped>, Error> {
    let list = list_images(images)?;
    let mut embedder = Embedder::new(options, progress);
    embedder.embed(&list, images, file, None)?;
    Ok(embedder.skipped)
}

/// What makes features of images; the encoder is loaded when the first images come.
pub struct Embedder<'a> {
    options: &'a ImageOptions,
    progress: &'a dyn Progress,
    encoder: Option<NetworkEncoder>,
    skipped: Vec<Skipped>,
}

impl<'a> Embedder<'a> {
    /// Nothing is loaded yet.
    pub fn new(options: &'a ImageOptions, progress: &'a dyn Progress) -> Self {
        Self {
            options,
            progress,
            encoder: None,
            skipped: Vec::new(),
        }
    }

    /// The images that could not be read so far.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The items of a source. Images are embedded; features are taken as they are.
    pub(crate) fn items(&mut self, source: Source, needs_labels: bool) -> Result<Items, Error> {
        let path = match source {
            Source::Table { table, encoder } => return Items::in_memory(table, encoder),
            Source::Path(path) => path,
        };
        if is_pipe(&path) {
            return spooled(&path);
        }
        if !is_image_source(&path)? {
            return Ok(Items::file(&path));
        }
        let list = list_images(&path)?;
        if let Some(item) = list.items.iter().find(|item| needs_labels && item.label.is_none()) {
            return Err(Error::UnlabelledImage {
                source_path: path,
                image: item.id.clone(),
            });
        }
        self.embedded(&list, &path, None)
    }

    /// The features of a list of images, or of one of their views, in a file made for this run.
    pub fn embedded(&mut self, list: &ImageList, source: &Path, view: Option<Augmented>) -> Result<Items, Error> {
        let folder = ScratchFolder::new().map_err(|source| Error::Scratch {
            folder: std::env::temp_dir(),
            source,
        })?;
        let name = source
            .file_name()
            .map_or("images".into(), |name| name.to_string_lossy());
        let file = folder.path().join(format!("{name}.parquet"));
        self.embed(list, source, &file, view)?;
        Ok(Items::made(file, list.items.clone(), folder))
    }

    fn embed(&mut self, list: &ImageList, source: &Path, file: &Path, view: Option<Augmented>) -> Result<(), Error> {
        let start = Instant::now();
        let (options, progress) = (self.options, self.progress);
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => options.load(progress)?,
        };
        let encoder = self.encoder.insert(encoder);
        let fingerprint = encoder.fingerprint().as_str();
        let cache = match options.cache.folder()? {
            None => None,
            Some(folder) => Some(FeatureCache::open(&folder, fingerprint, encoder.dim())?),
        };
        let remembered = cache.as_ref().map(|cache| Remembered {
            cache,
            progress,
            recalled: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        });
        let memory: &dyn Memory = match &remembered {
            Some(remembered) => remembered,
            None => &NoMemory,
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
        embedding.run(encoder, &files, memory, |at, features| {
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
            encoder: &options.encoder,
            isa: encoder.isa(),
            seconds: start.elapsed().as_secs_f64(),
        });
        Ok(())
    }
}

/// Whether a path leads to a pipe, which can be read once only.
fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    return std::fs::metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type()));
    #[cfg(not(unix))]
    return path.as_os_str().is_empty();
}

/// What comes through a pipe, in a file made for this run: a table is looked at more than once.
fn spooled(path: &Path) -> Result<Items, Error> {
    let failed = |source: std::io::Error| Error::Pipe {
        path: path.to_owned(),
        source,
    };
    let folder = ScratchFolder::new().map_err(failed)?;
    let file = folder.path().join(path.file_name().unwrap_or("pipe".as_ref()));
    let mut to = std::fs::File::create_new(&file).map_err(failed)?;
    std::io::copy(&mut std::fs::File::open(path).map_err(failed)?, &mut to).map_err(failed)?;
    if is_image_source(&file)? {
        return Err(Error::PipeOfImages { path: path.to_owned() });
    }
    Ok(Items::made(file, Vec::new(), folder))
}

/// The weights of an encoder that has a name, from the model hub's cache or the hub.
pub fn fetch_weights(spec: &EncoderSpec, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let Some((repo, file)) = spec.model.hub else {
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
struct Remembered<'a> {
    cache: &'a FeatureCache,
    progress: &'a dyn Progress,
    recalled: AtomicU64,
    /// Whether it was said that nothing can be kept.
    warned: AtomicBool,
}

impl Memory for Remembered<'_> {
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
