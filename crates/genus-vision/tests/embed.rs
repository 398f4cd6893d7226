//! Many files through an encoder: order, failures, memory. The encoder is a stand-in that says which pixels it saw.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use genus_vision::{ContentHash, Embedding, EncodeError, Encoder, Filter, Fingerprint, Memory, NoMemory, Transform};

const SIDE: usize = 4;

/// Two features: the mean of the pixels, and a constant.
struct Means {
    transform: Transform,
    fingerprint: Fingerprint,
    most: AtomicUsize,
    fails: bool,
}

impl Means {
    fn new() -> Self {
        let transform = Transform {
            resize: SIDE,
            filter: Filter::Bilinear,
            crop: SIDE,
            mean: [0.0; 3],
            std: [1.0; 3],
        };
        Self {
            transform,
            fingerprint: Fingerprint::new("means", &blake3::hash(b""), &transform),
            most: AtomicUsize::new(0),
            fails: false,
        }
    }
}

impl Encoder for Means {
    fn dim(&self) -> usize {
        2
    }

    fn transform(&self) -> &Transform {
        &self.transform
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn encode(&self, pixels: &[f32]) -> Result<Vec<f32>, EncodeError> {
        let images = pixels.chunks_exact(self.transform.values());
        self.most.fetch_max(images.len(), Ordering::Relaxed);
        if self.fails {
            return Err(EncodeError::NotFinite);
        }
        Ok(images
            .flat_map(|image| [image.iter().sum::<f32>() / image.len() as f32, 1.0])
            .collect())
    }
}

/// A BMP of four pixels of one grey.
fn bmp(grey: u8) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    for field in [70u32, 0, 54, 40, 2, 2, 0x0018_0001, 0, 16, 0, 0, 0, 0] {
        file.extend(field.to_le_bytes());
    }
    let row = [grey, grey, grey, grey, grey, grey, 0, 0];
    file.extend(row.repeat(2));
    file
}

/// So many images, every fifth of which is none.
fn files(count: usize) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = (0..count).map(|at| {
        let path = folder.path().join(format!("{at}.bmp"));
        let content = if at % 5 == 4 {
            b"no image".to_vec()
        } else {
            bmp(at as u8)
        };
        std::fs::write(&path, content).unwrap();
        path
    });
    let paths = paths.collect();
    (folder, paths)
}

/// Remembers in a map, and counts.
#[derive(Default)]
struct Map {
    rows: Mutex<BTreeMap<ContentHash, Vec<f32>>>,
    recalled: AtomicUsize,
}

impl Memory for Map {
    fn recall(&self, content: &ContentHash) -> Option<Vec<f32>> {
        let row = self.rows.lock().unwrap().get(content).cloned()?;
        self.recalled.fetch_add(1, Ordering::Relaxed);
        Some(row)
    }

    fn remember(&self, content: &ContentHash, features: &[f32]) {
        self.rows.lock().unwrap().insert(*content, features.to_vec());
    }
}

#[derive(Debug)]
enum Stopped {
    Network(EncodeError),
    Here(usize),
}

impl From<EncodeError> for Stopped {
    fn from(error: EncodeError) -> Self {
        Stopped::Network(error)
    }
}

/// What came out, in the order in which it came.
fn run(
    embedding: &Embedding,
    encoder: &Means,
    paths: &[PathBuf],
    memory: &dyn Memory,
) -> Result<Vec<Option<Vec<f32>>>, Stopped> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut out = Vec::new();
    embedding.run(encoder, &paths, memory, |at, features| {
        assert_eq!(at, out.len(), "out of order");
        out.push(features.ok());
        Ok::<(), Stopped>(())
    })?;
    Ok(out)
}

#[test]
fn files_come_out_in_order_whatever_the_batch_and_the_threads() {
    let (_folder, paths) = files(53);
    for (batch, decoders) in [(1, 1), (1, 4), (3, 2), (8, 3), (64, 2), (0, 0)] {
        let encoder = Means::new();
        let embedding = Embedding {
            batch,
            decoders,
            ..Embedding::default()
        };
        let out = run(&embedding, &encoder, &paths, &NoMemory).unwrap();
        assert_eq!(out.len(), 53);
        for (at, row) in out.iter().enumerate() {
            match row {
                None => assert_eq!(at % 5, 4),
                Some(row) => {
                    assert!((row[0] - at as f32 / 255.0).abs() < 1e-6, "{at}: {row:?}");
                    assert_eq!(row[1], 1.0);
                }
            }
        }
        assert!(encoder.most.load(Ordering::Relaxed) <= batch.max(1));
    }
    assert!(
        run(&Embedding::default(), &Means::new(), &[], &NoMemory)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_is_remembered_does_not_go_through_the_network() {
    let (_folder, paths) = files(31);
    let memory = Map::default();
    let first = run(&Embedding::default(), &Means::new(), &paths, &memory).unwrap();
    assert_eq!(memory.recalled.load(Ordering::Relaxed), 0);
    let broken = Means {
        fails: true,
        ..Means::new()
    };
    // Nothing is left for the network but an empty batch, which asks nothing of it.
    let again = run(&Embedding::default(), &Means::new(), &paths, &memory).unwrap();
    assert_eq!(again, first);
    assert_eq!(memory.recalled.load(Ordering::Relaxed), first.iter().flatten().count());
    let error = run(&Embedding::default(), &broken, &paths, &NoMemory).unwrap_err();
    assert!(matches!(error, Stopped::Network(EncodeError::NotFinite)), "{error:?}");
}

#[test]
fn it_ends_when_it_is_told_to() {
    let (_folder, paths) = files(200);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut seen = 0;
    let result = Embedding::default().run(&Means::new(), &paths, &NoMemory, |at, _| {
        seen += 1;
        if at == 7 { Err(Stopped::Here(at)) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Stopped::Here(7))));
    assert_eq!(seen, 8);
}
