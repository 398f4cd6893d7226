//! Many image files through an encoder: decoding runs ahead of the network, and memory stays the same for any number of files.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc;

use genus_core::rng::Rng;

use crate::encoder::{EncodeError, Encoder};
use crate::image::{Crop, ImageError, ImageSource, Limits, with_decoded};

/// The hash of a file's bytes: images are known by their content, wherever they lie.
pub type ContentHash = [u8; 32];

/// Features that were computed before.
pub trait FeatureStore: Sync {
    /// The features of the image with this content.
    fn recall(&self, content: &ContentHash) -> Option<Vec<f32>>;

    /// Takes note of the features of an image.
    fn remember(&self, content: &ContentHash, features: &[f32]);
}

/// Remembers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl FeatureStore for NoStore {
    fn recall(&self, _: &ContentHash) -> Option<Vec<f32>> {
        None
    }

    fn remember(&self, _: &ContentHash, _: &[f32]) {}
}

/// How to embed.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// How large images may be.
    pub limits: Limits,
    /// How many images go through the network at a time.
    pub batch: usize,
    /// How many threads read and decode.
    pub decoders: usize,
    /// Which square of an image the network sees: its middle, or another.
    pub augmented: Option<Augmentation>,
}

/// One of many views of every image: a square somewhere in it, perhaps mirrored.
///
/// Which one depends on the number and on the image's content alone, so that a view may be remembered like any feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Augmentation {
    /// Which of the views.
    pub number: u64,
    /// Whether half of them are mirrored.
    pub mirror: bool,
}

/// The stream of random numbers that makes views.
const VIEW: u64 = 0x61;

impl Augmentation {
    /// The view of an image whose file has this content.
    pub fn view(&self, content: &ContentHash) -> Crop {
        let words = content.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let uses: Vec<u64> = std::iter::once(VIEW).chain(words).collect();
        let mut rng = Rng::new(self.number, &uses);
        Crop {
            across: rng.unit(),
            down: rng.unit(),
            mirrored: rng.unit() < 0.5 && self.mirror,
        }
    }

    /// What the view is remembered under.
    fn key(&self, content: &ContentHash) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(content);
        hasher.update(b"view");
        hasher.update(&self.number.to_le_bytes());
        hasher.update(&[u8::from(self.mirror)]);
        *hasher.finalize().as_bytes()
    }
}

impl Default for Embedding {
    fn default() -> Self {
        let threads = rayon::current_num_threads();
        Self {
            limits: Limits::default(),
            batch: (4 * threads).max(8),
            decoders: threads,
            augmented: None,
        }
    }
}

/// An image on its way.
enum PreparedImage {
    Pixels(ContentHash, Vec<f32>),
    Known(Vec<f32>),
    Unusable(ImageError),
}

impl Embedding {
    /// Embeds the files in their order: `each` gets the features of one after the other, or why there are none.
    ///
    /// Ends early when `each` gives an error, or when the network fails or the machine has too little left to read an image,
    /// which is told by `From<EncodeError>`.
    pub fn run<E: From<EncodeError>>(
        &self,
        encoder: &dyn Encoder,
        files: &[ImageSource],
        memory: &dyn FeatureStore,
        mut each: impl FnMut(usize, Result<Vec<f32>, ImageError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let batch = self.batch.max(1);
        // One batch in the network, one decoded behind it, one under way.
        let window = 3 * batch;
        let (order, orders) = mpsc::sync_channel::<usize>(window);
        let (done, results) = mpsc::sync_channel::<(usize, PreparedImage)>(window);
        let orders = Mutex::new(orders);
        std::thread::scope(|scope| {
            for _ in 0..self.decoders.max(1) {
                let (orders, done) = (&orders, done.clone());
                scope.spawn(move || {
                    while let Some(at) = orders.lock().ok().and_then(|orders| orders.recv().ok()) {
                        let prepared = self.prepare(encoder, &files[at], memory);
                        if done.send((at, prepared)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            // Leaving this closure in any way drops the orders, which ends the decoders.
            let order = order;
            let results = results;
            let mut early = BTreeMap::new();
            let mut waiting: Vec<(usize, PreparedImage)> = Vec::new();
            let mut images = 0;
            let (mut ordered, mut next) = (0, 0);
            while next < files.len() {
                while ordered < files.len() && ordered < next - waiting.len() + window {
                    // The channel has room for the whole window: this never waits.
                    order.send(ordered).ok();
                    ordered += 1;
                }
                let Ok((at, prepared)) = results.recv() else { break };
                early.insert(at, prepared);
                while let Some(prepared) = early.remove(&next) {
                    images += usize::from(matches!(prepared, PreparedImage::Pixels(..)));
                    waiting.push((next, prepared));
                    next += 1;
                    if images == batch || waiting.len() == 2 * batch {
                        flush(encoder, files, memory, std::mem::take(&mut waiting), &mut each)?;
                        images = 0;
                    }
                }
            }
            flush(encoder, files, memory, waiting, &mut each)
        })
    }

    fn prepare(&self, encoder: &dyn Encoder, file: &ImageSource, memory: &dyn FeatureStore) -> PreparedImage {
        let bytes = match file.read(&self.limits) {
            Ok(bytes) => bytes,
            Err(error) => return PreparedImage::Unusable(error),
        };
        let content = *blake3::hash(&bytes).as_bytes();
        let key = self.augmented.map_or(content, |augmented| augmented.key(&content));
        if let Some(features) = memory.recall(&key) {
            return PreparedImage::Known(features);
        }
        let transform = encoder.transform();
        let pixels = with_decoded(&bytes, &self.limits, |image| match &self.augmented {
            None => transform.apply(&image),
            Some(augmented) => transform.view(&image, augmented.view(&content)),
        });
        match pixels {
            Ok(pixels) => PreparedImage::Pixels(key, pixels),
            Err(error) => PreparedImage::Unusable(error),
        }
    }
}

/// Sends what waits for the network through it, and everything on in its order.
fn flush<E: From<EncodeError>>(
    encoder: &dyn Encoder,
    files: &[ImageSource],
    memory: &dyn FeatureStore,
    waiting: Vec<(usize, PreparedImage)>,
    each: &mut impl FnMut(usize, Result<Vec<f32>, ImageError>) -> Result<(), E>,
) -> Result<(), E> {
    let pixels: Vec<&[f32]> = waiting
        .iter()
        .filter_map(|(_, prepared)| match prepared {
            PreparedImage::Pixels(_, pixels) => Some(&pixels[..]),
            PreparedImage::Known(_) | PreparedImage::Unusable(_) => None,
        })
        .collect();
    let features = encoder.encode(&pixels.concat())?;
    // Encoders are a public trait: one that gives other rows would shift the features of all images that follow.
    if features.len() != pixels.len() * encoder.dim() {
        return Err(EncodeError::Rows {
            found: features.len(),
            images: pixels.len(),
            dim: encoder.dim(),
        }
        .into());
    }
    let mut rows = features.chunks_exact(encoder.dim().max(1));
    for (at, prepared) in waiting {
        let result = match prepared {
            PreparedImage::Pixels(content, _) => {
                let row = rows.next().expect("there is a row an image");
                memory.remember(&content, row);
                Ok(row.to_vec())
            }
            PreparedImage::Known(features) => Ok(features),
            // The file may be good: to leave it out would be to lose it.
            PreparedImage::Unusable(source) if source.is_shortage() => {
                let path = files[at].path().to_owned();
                return Err(EncodeError::Shortage { path, source }.into());
            }
            PreparedImage::Unusable(error) => Err(error),
        };
        each(at, result)?;
    }
    Ok(())
}
