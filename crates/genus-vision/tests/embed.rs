//! Many files through an encoder: order, failures, memory. The encoder is a stand-in that says which pixels it saw.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use genus_vision::{
    Augmentation, ContentHash, Embedding, EncodeError, Encoder, FeatureStore, Filter, Fingerprint, ImageSource,
    NoStore, Transform,
};

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

impl FeatureStore for Map {
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
    memory: &dyn FeatureStore,
) -> Result<Vec<Option<Vec<f32>>>, Stopped> {
    let paths: Vec<ImageSource> = paths.iter().map(ImageSource::file).collect();
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
        let out = run(&embedding, &encoder, &paths, &NoStore).unwrap();
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
        run(&Embedding::default(), &Means::new(), &[], &NoStore)
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
    let error = run(&Embedding::default(), &broken, &paths, &NoStore).unwrap_err();
    assert!(matches!(error, Stopped::Network(EncodeError::NotFinite)), "{error:?}");
}

#[test]
fn it_ends_when_it_is_told_to() {
    let (_folder, paths) = files(200);
    let paths: Vec<ImageSource> = paths.iter().map(ImageSource::file).collect();
    let mut seen = 0;
    let result = Embedding::default().run(&Means::new(), &paths, &NoStore, |at, _| {
        seen += 1;
        if at == 7 { Err(Stopped::Here(at)) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Stopped::Here(7))));
    assert_eq!(seen, 8);
}

#[test]
fn views_depend_on_their_number_and_the_image_alone() {
    // A picture that grows brighter from left to right: the mean tells where the square was cut out.
    let folder = tempfile::tempdir().unwrap();
    let mut file = b"P6\n# made up\n64 8 255\n".to_vec();
    file.extend((0..8 * 64).flat_map(|pixel| [(pixel % 64 * 4) as u8; 3]));
    let paths: Vec<PathBuf> = ["a.ppm", "b.ppm"].map(|name| folder.path().join(name)).to_vec();
    paths.iter().for_each(|path| std::fs::write(path, &file).unwrap());
    let embedding = |number, mirror| Embedding {
        augmented: Some(Augmentation { number, mirror }),
        ..Embedding::default()
    };
    let memory = Map::default();
    let middle = run(&Embedding::default(), &Means::new(), &paths, &memory).unwrap();
    let views: Vec<_> = (0..6)
        .map(|number| run(&embedding(number, false), &Means::new(), &paths, &memory).unwrap())
        .collect();
    for (at, view) in views.iter().enumerate() {
        assert_eq!(view[0], view[1], "the same content has the same view");
        assert_eq!(
            view,
            &run(&embedding(at as u64, false), &Means::new(), &paths, &NoStore).unwrap()
        );
    }
    // There are 29 places in this picture, so that two views may be alike.
    let different = (0..6).filter(|&at| !views[..at].contains(&views[at])).count();
    assert!(different >= 4, "{different} of 6 views differ");
    // All are remembered, each under a name of its own.
    let broken = Means {
        fails: true,
        ..Means::new()
    };
    let before = memory.recalled.load(Ordering::Relaxed);
    assert_eq!(memory.rows.lock().unwrap().len(), 7);
    assert_eq!(
        run(&Embedding::default(), &Means::new(), &paths, &memory).unwrap(),
        middle
    );
    assert_eq!(memory.recalled.load(Ordering::Relaxed), before + 2);
    assert!(
        run(&embedding(0, true), &broken, &paths, &memory).is_err(),
        "a mirrored view is another"
    );
}

#[test]
fn bare_pixels_inside_of_a_file_are_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.bin");
    let mut bytes = vec![9; 5];
    bytes.extend([10, 20, 30, 40, 50, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13]);
    std::fs::write(&path, &bytes).unwrap();
    let limits = genus_vision::Limits::default();
    let planes = |path: &std::path::Path, offset, width, height| {
        ImageSource::new(path, Some(genus_files::RawPixels { offset, width, height }))
    };
    let source = planes(&path, 5, 3, 2);
    let image = genus_vision::decode(&source.read(&limits).unwrap(), &limits).unwrap();
    assert_eq!((image.width(), image.height()), (3, 2));
    assert_eq!(image.data()[..6], [10, 1, 7, 20, 2, 8]);
    assert_eq!(image.data()[15..], [60, 6, 13]);
    // Beyond the end of the file there is none.
    assert!(planes(&path, 6, 3, 2).read(&limits).is_err());
    assert!(planes(&path, u64::MAX, 3, 2).read(&limits).is_err());
    assert!(planes(&path, 0, u32::MAX, u32::MAX).read(&limits).is_err());
    assert!(planes(folder.path(), 0, 1, 1).read(&limits).is_err());
}

#[test]
fn damaged_pixmaps_are_refused() {
    let limits = genus_vision::Limits::default();
    let good = b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06".to_vec();
    assert_eq!(genus_vision::decode(&good, &limits).unwrap().data(), [1, 2, 3, 4, 5, 6]);
    for end in 0..good.len() {
        assert!(genus_vision::decode(&good[..end], &limits).is_err(), "{end} bytes");
    }
    for header in [
        "P6 0 1 255\n",
        "P6 99999999 99999999 255\n",
        "P6 1 1 65535\n",
        "P6 -1 1 255\n",
        "P6 # 1 1 255",
    ] {
        let mut file = header.as_bytes().to_vec();
        file.extend([0; 64]);
        assert!(genus_vision::decode(&file, &limits).is_err(), "{header}");
    }
}
