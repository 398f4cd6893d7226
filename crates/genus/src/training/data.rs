//! The images of a training run: which there are, and the batch of every step.

use std::collections::{BTreeMap, BTreeSet};

use genus_core::episode::{Pool, ShortClasses};
use genus_core::rng::Rng;
use genus_data::datasets::{DatasetEntry, Images};
use genus_data::{ImageItem, Split, TableOptions, list_images};
use genus_vision::{Crop, EncodeError, ImageError, ImageSource, Limits, Rgb, Transform, with_decoded};
use rayon::prelude::*;

use super::batches::Batches;
use super::{TrainingError, TrainingSettings, Watcher};

/// Streams of random numbers.
const HELD_OUT: u64 = 0x76;
const VIEW: u64 = 0x77;
const KEPT_VIEW: u64 = 0x6b;
const CHOICE: u64 = 0x63;

/// The base images, some of their classes held out.
pub(crate) struct TrainingData {
    /// Images of all base classes.
    pub(crate) items: Vec<ImageItem>,
    /// The classes that are trained on.
    pub(crate) train: Pool,
    /// Their images, each with the number of its class.
    images: Vec<(usize, usize)>,
    /// The classes that are held out, if any are.
    pub(crate) validation: Option<Pool>,
    /// What stands for all images, in their order.
    pub(crate) hash: [u8; 32],
}

/// One view of one image of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageView {
    /// The image.
    pub(crate) item: usize,
    /// Its class in the episode, or among all.
    pub(crate) class: usize,
    /// Which view of it, within the step.
    at: u64,
}

impl TrainingData {
    /// Lists the images, leaves out what cannot be read, and holds classes out.
    pub(crate) fn load(settings: &TrainingSettings, watcher: &mut dyn Watcher) -> Result<Self, TrainingError> {
        let data = settings.data.clone().unwrap_or(settings.images.display().to_string());
        let (listed, known) = match &settings.data {
            None => (list_images(&settings.images, &TableOptions::default())?, None),
            Some(name) => {
                let part = settings.part.as_deref().map_or(Ok(Images::default()), str::parse);
                let part = part.map_err(|e| TrainingError::Setting { problem: e.to_string() })?;
                let set = DatasetEntry::find(name)?.open(&settings.images, part)?;
                (set.list, Some(set.base))
            }
        };
        for (path, reason) in &listed.skipped {
            watcher.skipped(path, reason);
        }
        let labels: BTreeSet<String> = listed.items.iter().filter_map(|item| item.label.clone()).collect();
        if labels.is_empty() {
            return Err(TrainingError::NoLabels { data });
        }
        let mut classes: Vec<String> = labels.into_iter().collect();
        if let Some(base) = known {
            classes = base;
        } else if let Some(split) = &settings.split {
            classes = Split::read(split)?.resolve(&classes, None)?.base;
        }
        let base: BTreeSet<&String> = classes.iter().collect();
        let mut items = listed.items;
        items.retain(|item| item.label.as_ref().is_some_and(|label| base.contains(label)));
        // A training that meets a bad image after hours is worse than a minute now.
        let unreadable: Vec<Option<String>> = items.par_iter().map(problem).collect::<Result<_, _>>()?;
        let mut readable = Vec::with_capacity(items.len());
        for (item, problem) in items.into_iter().zip(unreadable) {
            match problem {
                Some(reason) => watcher.skipped(&item.path, &reason),
                None => readable.push(item),
            }
        }
        let items = readable;
        let labels: Vec<Option<String>> = items.iter().map(|item| item.label.clone()).collect();
        let policy = match settings.skip_short_classes {
            true => ShortClasses::Skip,
            false => ShortClasses::Error,
        };
        let shape = settings.shape();
        let short = |source| TrainingError::Episode {
            data: data.clone(),
            source,
        };
        let needed = shape.shot.saturating_add(shape.query);
        let all = Pool::new(&classes, &labels);
        // Classes that episodes can be drawn from. Plain batches take images of all classes, and episodes are then only those
        // of a validation, for which small classes are not held out.
        let policy = if settings.batch.is_some() {
            ShortClasses::Skip
        } else {
            policy
        };
        let (large, _) = all.clone().with_at_least(needed, policy).map_err(short)?;
        let large = large.classes().to_vec();
        let classes = match settings.batch {
            Some(_) => all.classes().to_vec(),
            None => large.clone(),
        };
        let count = settings.validation_classes.unwrap_or_else(|| {
            let needed = shape.way.saturating_add(shape.new);
            if large.len() / 3 >= needed { needed } else { 0 }
        });
        let count = count.min(large.len());
        let held = Rng::new(settings.seed, &[HELD_OUT]).sample(large.len(), count);
        let held: BTreeSet<&String> = held.into_iter().map(|class| &large[class]).collect();
        let part = |held_out: bool| {
            let chosen = classes.iter().filter(|class| held.contains(class) == held_out);
            Pool::new(&chosen.collect::<Vec<_>>(), &labels)
        };
        let train = part(false);
        let validation = (count > 0).then(|| part(true));
        let numbers: BTreeMap<&String, usize> = train.classes().iter().zip(0..).collect();
        let number = |label: &Option<String>| label.as_ref().and_then(|label| numbers.get(label)).copied();
        let images = labels.iter().enumerate();
        let images: Vec<(usize, usize)> = images
            .filter_map(|(item, label)| Some((item, number(label)?)))
            .collect();
        // A batch of each now, so that what cannot be drawn is said before anything else is done.
        match settings.batch {
            Some(needed) if images.len() < needed => {
                let found = images.len();
                return Err(TrainingError::TooFewImages { data, needed, found });
            }
            Some(_) => {}
            None => {
                train.episode(shape, settings.seed, 0).map_err(|source| match count {
                    0 => short(source),
                    held => TrainingError::AfterHoldingOut {
                        data: data.clone(),
                        source,
                        held,
                    },
                })?;
            }
        }
        if let Some(pool) = &validation {
            pool.episode(shape, settings.seed, 0)
                .map_err(|source| TrainingError::Validation { source })?;
        }
        let mut hasher = blake3::Hasher::new();
        for item in &items {
            for text in [&item.id, item.label.as_ref().unwrap_or(&item.id)] {
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        Ok(Self {
            items,
            train,
            images,
            validation,
            hash: *hasher.finalize().as_bytes(),
        })
    }

    /// The number of steps of an epoch.
    pub(crate) fn steps_of_epoch(&self, settings: &TrainingSettings) -> u64 {
        let batches = settings.batch.map(|size| self.batches(settings, size));
        batches.map_or(settings.episodes, |batches| batches.of_epoch())
    }

    fn batches(&self, settings: &TrainingSettings, size: usize) -> Batches {
        Batches {
            items: self.images.len(),
            size,
            seed: settings.seed,
        }
    }

    /// What a step looks at: every image of a batch or of an episode, so many times as there are views.
    pub(crate) fn batch(&self, settings: &TrainingSettings, step: u64) -> Result<Vec<ImageView>, TrainingError> {
        let images: Vec<(usize, usize)> = match settings.batch {
            Some(size) => {
                let batch = self.batches(settings, size).batch(step);
                batch.into_iter().map(|at| self.images[at]).collect()
            }
            None => {
                let episode = self.train.episode(settings.shape(), settings.seed, step);
                let episode = episode.map_err(|source| TrainingError::Episode {
                    data: settings.images.display().to_string(),
                    source,
                })?;
                let support = episode.support.iter().zip(&episode.support_classes);
                let queries = episode.queries.iter().zip(&episode.truth);
                support.chain(queries).map(|(&item, &class)| (item, class)).collect()
            }
        };
        let views = (0..settings.views).flat_map(|_| &images);
        Ok(views
            .enumerate()
            .map(|(at, &(item, class))| ImageView {
                item,
                class,
                at: at as u64,
            })
            .collect())
    }

    /// The pixels of a batch, a view after the other.
    pub(crate) fn pixels(
        &self,
        settings: &TrainingSettings,
        transform: &Transform,
        step: u64,
        batch: &[ImageView],
    ) -> Result<Vec<f32>, TrainingError> {
        self.views(
            transform,
            batch.par_iter().map(|seen| {
                let mut rng = Rng::new(settings.seed, &[VIEW, step, seen.at]);
                (seen.item, view(&mut rng, settings.mirror))
            }),
        )
    }

    /// The pixels of some of the views that are kept, `settings.cache_trunk` of every image.
    pub(crate) fn kept_pixels(
        &self,
        settings: &TrainingSettings,
        transform: &Transform,
        rows: std::ops::Range<u64>,
    ) -> Result<Vec<f32>, TrainingError> {
        self.views(
            transform,
            rows.into_par_iter().map(|row| {
                let mut rng = Rng::new(settings.seed, &[KEPT_VIEW, row]);
                let item = (row / settings.cache_trunk.max(1) as u64) as usize;
                (item, view(&mut rng, settings.mirror))
            }),
        )
    }

    /// Which of the kept views a step looks at.
    pub(crate) fn kept_row(settings: &TrainingSettings, step: u64, seen: &ImageView) -> u64 {
        let views = settings.cache_trunk.max(1);
        let view = Rng::new(settings.seed, &[CHOICE, step, seen.at]).below(views);
        (seen.item * views + view) as u64
    }

    fn views(
        &self,
        transform: &Transform,
        views: impl ParallelIterator<Item = (usize, Crop)>,
    ) -> Result<Vec<f32>, TrainingError> {
        let rows = views.map(|(item, view)| {
            read(&self.items[item], |image| transform.view(&image, view)).map_err(|source| TrainingError::Image {
                path: self.items[item].path.clone(),
                problem: source.to_string(),
            })
        });
        let rows: Vec<Vec<f32>> = rows.collect::<Result<_, TrainingError>>()?;
        Ok(rows.concat())
    }
}

fn view(rng: &mut Rng, mirror: bool) -> Crop {
    Crop {
        across: rng.unit(),
        down: rng.unit(),
        mirrored: rng.unit() < 0.5 && mirror,
    }
}

/// Why an image cannot be used.
fn problem(item: &ImageItem) -> Result<Option<String>, TrainingError> {
    match read(item, drop) {
        Ok(()) => Ok(None),
        Err(source) if source.is_shortage() => {
            let path = item.path.clone();
            Err(EncodeError::Shortage { path, source }.into())
        }
        Err(error) => Ok(Some(error.to_string())),
    }
}

fn read<T>(item: &ImageItem, take: impl FnOnce(Rgb) -> T) -> Result<T, ImageError> {
    let limits = Limits::default();
    with_decoded(&ImageSource::new(&item.path, item.pixels).read(&limits)?, &limits, take)
}
