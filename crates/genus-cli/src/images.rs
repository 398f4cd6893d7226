//! Images wherever features are taken: they are embedded on the way in, each once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use genus_data::{
    FeatureCache, FeatureWriter, ImageItem, ImageList, ScratchFolder, default_root, is_image_source, list_images,
};
use genus_lab::training::trained_encoder;
use genus_lab::{Progress, image_source};
use genus_vision::{
    Augmented, ContentHash, Embedding, Encoder, EncoderSpec, Hub, ImageSource, Limits, Memory, NetworkEncoder, NoMemory,
};

use crate::args::{EncoderChoice, Global, ImageOptions};
use crate::failure::{Failure, printable};
use crate::progress::Bar;
use crate::summary;

/// How many unusable images are named one by one.
const NAMED: usize = 10;

/// A feature file: the one that was named, or that of the images that were.
pub(crate) struct Input {
    path: PathBuf,
    /// The images that it is of.
    images: Vec<ImageItem>,
    /// Keeps a file that was made for this run as long as it is needed.
    _temporary: Option<ScratchFolder>,
}

impl Input {
    /// A feature file as it is.
    pub(crate) fn file(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            images: Vec::new(),
            _temporary: None,
        }
    }

    /// The images that the features are of; none when they came as a file.
    pub(crate) fn images(&self) -> &[ImageItem] {
        &self.images
    }

    /// The feature file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Finds the file of an item by its id: the image, or what the id names, from here or from where the feature file is.
    pub(crate) fn files(&self) -> impl Fn(&str) -> ItemFile {
        let images: HashMap<&str, &Path> = self.images.iter().map(|item| (&*item.id, &*item.path)).collect();
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let inside: Vec<PathBuf> = [Path::new("."), &folder]
            .into_iter()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        move |id| {
            if !images.is_empty() {
                return images
                    .get(id)
                    .map_or(ItemFile::Missing, |&path| ItemFile::Inside(path.to_owned()));
            }
            let places = [PathBuf::from(id), folder.join(id)];
            let Some(path) = places.into_iter().find(|path| path.is_file()) else {
                return ItemFile::Missing;
            };
            // Where it leads in the end: a link in the folder may have been packed with the table.
            match path.canonicalize() {
                Ok(end) if inside.iter().any(|folder| end.starts_with(folder)) => ItemFile::Inside(path),
                _ => ItemFile::Outside(path),
            }
        }
    }
}

/// The file of an item.
pub(crate) enum ItemFile {
    /// One of the images, or one that a table may name.
    Inside(PathBuf),
    /// One elsewhere, which only somebody who trusts the table would want.
    Outside(PathBuf),
    /// There is none.
    Missing,
}

/// What makes features of images; the encoder is loaded when the first images come.
pub(crate) struct Embedder<'a> {
    options: &'a ImageOptions,
    global: &'a Global,
    encoder: Option<NetworkEncoder>,
}

impl<'a> Embedder<'a> {
    pub(crate) fn new(options: &'a ImageOptions, global: &'a Global) -> Self {
        Self {
            options,
            global,
            encoder: None,
        }
    }

    /// The features of what a path names. Images are embedded; a feature file is taken as it is.
    pub(crate) fn input(&mut self, path: &Path, needs_labels: bool) -> Result<Input, Failure> {
        if is_pipe(path) {
            return spooled(path);
        }
        if !is_image_source(path)? {
            return Ok(Input::file(path));
        }
        let list = list_images(path)?;
        if let Some(item) = list.items.iter().find(|item| needs_labels && item.label.is_none()) {
            return Err(Failure::failed(format!(
                "{}: the image {} has no label; put the examples of each class into a folder of its name, or name their \
                 classes in a manifest with the columns path and label",
                path.display(),
                item.id
            )));
        }
        self.embedded(&list, path, None)
    }

    /// The features of a list of images, or of one of their views, in a file made for this run.
    pub(crate) fn embedded(
        &mut self,
        list: &ImageList,
        source: &Path,
        view: Option<Augmented>,
    ) -> Result<Input, Failure> {
        let folder = ScratchFolder::new().map_err(|e| {
            Failure::failed(format!(
                "cannot make a temporary folder in {}: {e}",
                std::env::temp_dir().display()
            ))
        })?;
        let name = source
            .file_name()
            .map_or("images".into(), |name| name.to_string_lossy());
        let file = folder.path().join(format!("{name}.parquet"));
        self.embed_view(list, source, &file, view)?;
        Ok(Input {
            path: file,
            images: list.items.clone(),
            _temporary: Some(folder),
        })
    }

    /// Writes the features of a list of images to a file.
    pub(crate) fn embed(&mut self, list: &ImageList, source: &Path, file: &Path) -> Result<(), Failure> {
        self.embed_view(list, source, file, None)
    }

    fn embed_view(
        &mut self,
        list: &ImageList,
        source: &Path,
        file: &Path,
        view: Option<Augmented>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        let (options, global) = (self.options, self.global);
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => load(options, global)?,
        };
        let encoder = self.encoder.insert(encoder);
        let fingerprint = encoder.fingerprint().as_str();
        let cache = match options.no_cache {
            true => None,
            false => Some(FeatureCache::open(&cache_root()?, fingerprint, encoder.dim())?),
        };
        let remembered = cache.as_ref().map(|cache| Remembered {
            cache,
            recalled: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        });
        let memory: &dyn Memory = match &remembered {
            Some(remembered) => remembered,
            None => &NoMemory,
        };
        let with_labels = list.items.iter().any(|item| item.label.is_some());
        let mut writer = FeatureWriter::create(file, encoder.dim(), Some(fingerprint), with_labels)?;
        let bar = Bar::new(global);
        let what = view.map_or("images".to_owned(), |view| {
            format!("view {} of images", view.number + 1)
        });
        bar.start(&what, list.items.len() as u64);
        let embedding = Embedding {
            limits: limits(options),
            augmented: view,
            ..Embedding::default()
        };
        let mut skipped: Vec<(String, String)> = list
            .skipped
            .iter()
            .map(|(path, reason)| (path.display().to_string(), reason.clone()))
            .collect();
        if let (true, Some((path, reason))) = (options.strict, skipped.first()) {
            return Err(Failure::failed(format!("{path}: {reason} (--strict)")));
        }
        let files: Vec<ImageSource> = list.items.iter().map(image_source).collect();
        let mut written = 0;
        embedding.run(encoder, &files, memory, |at, features| {
            let item = &list.items[at];
            match features {
                Ok(row) => {
                    writer.write(std::slice::from_ref(&item.id), std::slice::from_ref(&item.label), &row)?;
                    written += 1;
                }
                Err(error) if options.strict => {
                    return Err(Failure::failed(format!("{}: {error} (--strict)", item.path.display())));
                }
                Err(error) => skipped.push((item.path.display().to_string(), error.to_string())),
            }
            bar.step();
            Ok::<(), Failure>(())
        })?;
        drop(bar);
        // Every view lacks the same images.
        if view.is_none() {
            report_skipped(&skipped);
        }
        if written == 0 {
            return Err(Failure::failed(format!(
                "{}: not one image could be read",
                source.display()
            )));
        }
        writer.finish()?;
        if !global.quiet {
            let seconds = start.elapsed().as_secs_f64();
            let recalled = remembered
                .as_ref()
                .map_or(0, |memory| memory.recalled.load(Ordering::Relaxed));
            let how = match recalled {
                0 => format!("{:.1} images/s", written as f64 / seconds.max(1e-9)),
                all if all == written => "all from the cache".to_owned(),
                some => format!("{} from the cache", summary::thousands(some)),
            };
            say!(
                "{} {what} embedded with {} on {} in {seconds:.1} s ({how})",
                summary::thousands(written),
                options.encoder.encoder,
                encoder.isa(),
            );
        }
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
fn spooled(path: &Path) -> Result<Input, Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("cannot read {}: {e}", path.display()));
    let folder = ScratchFolder::new().map_err(failed)?;
    let file = folder.path().join(path.file_name().unwrap_or("pipe".as_ref()));
    let mut to = std::fs::File::create_new(&file).map_err(failed)?;
    std::io::copy(&mut std::fs::File::open(path).map_err(failed)?, &mut to).map_err(failed)?;
    if is_image_source(&file)? {
        return Err(Failure::failed(format!(
            "{} is a pipe with a list of images; name a file, or - for the standard input",
            path.display()
        )));
    }
    Ok(Input {
        path: file,
        images: Vec::new(),
        _temporary: Some(folder),
    })
}

/// How large images may be.
pub(crate) fn limits(options: &ImageOptions) -> Limits {
    Limits {
        file_bytes: options.max_file_mb.saturating_mul(1 << 20),
        pixels: options.max_megapixels.saturating_mul(1_000_000),
    }
}

/// Unusable images are said even when nothing else is: they are missing from the result.
fn report_skipped(skipped: &[(String, String)]) {
    for (path, reason) in skipped.iter().take(NAMED) {
        say!("skipped {}: {}", printable(path), printable(reason));
    }
    if skipped.len() > NAMED {
        say!("skipped {} images in all", summary::thousands(skipped.len() as u64));
    }
}

/// The encoder that was asked for, with its weights.
pub(crate) fn load(options: &ImageOptions, global: &Global) -> Result<NetworkEncoder, Failure> {
    let (spec, weights) = find(&options.encoder)?;
    let isa = spec.isa(options.precision)?;
    let weights = match weights {
        Some(path) => path,
        None => fetch(&spec, global)?,
    };
    Ok(spec.load(weights, isa)?)
}

/// The encoder that was asked for, and the file of its weights if it was named or the encoder is a trained one.
pub(crate) fn find(choice: &EncoderChoice) -> Result<(EncoderSpec, Option<PathBuf>), Failure> {
    match trained_encoder(&choice.encoder)? {
        Some((spec, trained)) => Ok((spec, Some(choice.weights.clone().unwrap_or(trained)))),
        None => Ok((EncoderSpec::parse(&choice.encoder)?, choice.weights.clone())),
    }
}

/// The weights of a named encoder, from the hub's cache or the hub.
pub(crate) fn fetch(spec: &EncoderSpec, global: &Global) -> Result<PathBuf, Failure> {
    let Some((repo, file)) = spec.model.hub else {
        return Err(Failure::Usage(format!(
            "the encoder `{}` has no weights of its own; name a file with --weights",
            spec.model.name
        )));
    };
    let bar = Bar::new(global);
    let mut before = 0;
    let path = Hub::from_env().fetch(repo, file, &mut |done, total| {
        if before == 0 {
            bar.bytes("downloading", total);
        }
        bar.add(done.saturating_sub(before));
        before = done;
    })?;
    Ok(path)
}

/// Where features are remembered.
pub(crate) fn cache_root() -> Result<PathBuf, Failure> {
    default_root().ok_or_else(|| {
        Failure::failed("there is no home folder to keep the feature cache in; set GENUS_CACHE, or use --no-cache")
    })
}

/// The feature cache as the memory of the embedding.
struct Remembered<'a> {
    cache: &'a FeatureCache,
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
            say!("these features are not remembered: {e}");
        }
    }
}
