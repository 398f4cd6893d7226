//! How fast encoders are on this machine: measured when somebody asks, and remembered beside the features.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use genus_files::{AtomicFile, FileError, ScratchFolder, read_text};
use genus_vision::{Embedding, ImageSource, Isa, NoStore};
use serde::{Deserialize, Serialize};

use crate::images::{CacheChoice, ImageOptions};
use crate::{Error, Length, Progress};

/// Where speeds are remembered, in the cache folder.
const FILE: &str = "speeds.json";
/// The width and the height of the image that is embedded again and again.
const SIZE: [u32; 2] = [500, 375];
/// How many images warm the network up, and say how many can be timed.
const FIRST: usize = 8;
/// How long the timed ones may take, in seconds.
const TIME: f64 = 2.0;
/// The least and the most of them.
const TIMED: [f64; 2] = [16.0, 512.0];

/// A speed that was measured. It counts for the same instructions and the same number of threads alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SpeedMeasurement {
    encoder: String,
    isa: String,
    threads: usize,
    images_per_second: f64,
}

/// Images a second of every encoder that was measured on this machine with as many threads as there are now.
pub fn remembered_speeds(cache: &CacheChoice) -> BTreeMap<String, f64> {
    let (Ok(Some(folder)), Ok(isa)) = (cache.folder(), Isa::from_env(None)) else {
        return BTreeMap::new();
    };
    let [isa, threads] = [isa.to_string(), rayon::current_num_threads().to_string()];
    let fits = |speed: &SpeedMeasurement| speed.isa == isa && speed.threads.to_string() == threads;
    let speeds = read(&folder).into_iter().filter(fits);
    speeds.map(|speed| (speed.encoder, speed.images_per_second)).collect()
}

/// Embeds a made-up photograph again and again, for about two seconds, and remembers how many images a second that makes.
///
/// It counts what embedding takes: decoding, transform and network. Nothing is taken from the feature cache.
pub fn measure_speed(options: &ImageOptions, progress: &dyn Progress) -> Result<f64, Error> {
    let loaded = options.load(progress)?;
    let scratch = |source| Error::Scratch {
        folder: std::env::temp_dir(),
        source,
    };
    let folder = ScratchFolder::new().map_err(scratch)?;
    let file = folder.path().join("picture.bmp");
    fs::write(&file, picture()).map_err(scratch)?;
    progress.start(&format!("measuring {}", loaded.name), Length::Unknown);
    let embedding = Embedding {
        limits: options.limits,
        ..Embedding::default()
    };
    let time = |images: usize| {
        let files = vec![ImageSource::new(&file, None); images];
        let start = Instant::now();
        embedding.run(&*loaded.encoder, &files, &NoStore, |_, features| {
            progress.step();
            match features {
                Ok(_) => Ok(()),
                Err(error) => Err(Error::Unreadable {
                    path: file.clone(),
                    reason: error.to_string(),
                }),
            }
        })?;
        Ok::<f64, Error>(start.elapsed().as_secs_f64().max(1e-9))
    };
    let first = time(FIRST)? / FIRST as f64;
    let images = (TIME / first).clamp(TIMED[0], TIMED[1]).round();
    let images_per_second = images / time(images as usize)?;
    progress.end();
    if let Some(folder) = options.cache.folder()? {
        let speed = SpeedMeasurement {
            encoder: loaded.name.clone(),
            isa: loaded.isa.map_or("ONNX Runtime".to_owned(), |isa| isa.to_string()),
            threads: rayon::current_num_threads(),
            images_per_second,
        };
        remember(&folder, speed)?;
    }
    Ok(images_per_second)
}

/// The speeds of a folder; none where they cannot be read, for they can be measured again.
fn read(folder: &Path) -> Vec<SpeedMeasurement> {
    let text = read_text(folder.join(FILE)).unwrap_or_default();
    let speeds: Vec<SpeedMeasurement> = serde_json::from_str(&text).unwrap_or_default();
    let is_speed = |speed: &SpeedMeasurement| speed.images_per_second.is_finite() && speed.images_per_second > 0.0;
    speeds.into_iter().filter(is_speed).collect()
}

fn remember(folder: &Path, speed: SpeedMeasurement) -> Result<(), Error> {
    let mut speeds = read(folder);
    let is_same = |other: &SpeedMeasurement| {
        (&other.encoder, &other.isa, other.threads) == (&speed.encoder, &speed.isa, speed.threads)
    };
    speeds.retain(|other| !is_same(other));
    speeds.push(speed);
    let path = folder.join(FILE);
    let failed = |source: io::Error| FileError::write(path.display(), source);
    let text = serde_json::to_string_pretty(&speeds).map_err(|e| failed(e.into()))?;
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = AtomicFile::create(&path)?;
    file.append(text.as_bytes())?;
    Ok(file.commit()?)
}

/// A picture as a file: BMP, which takes next to nothing to decode.
fn picture() -> Vec<u8> {
    const HEADERS: u32 = 14 + 40;
    let [width, height] = SIZE;
    // Lines are whole words: 500 pixels of three bytes are.
    let pixels = width * height * 3;
    let mut bytes = b"BM".to_vec();
    let word = |bytes: &mut Vec<u8>, word: u32| bytes.extend(word.to_le_bytes());
    for field in [HEADERS + pixels, 0, HEADERS, 40, width, height] {
        word(&mut bytes, field);
    }
    // One plane of 24 bits a pixel, not compressed.
    bytes.extend([1, 0, 24, 0]);
    for field in [0, pixels, 2835, 2835, 0, 0] {
        word(&mut bytes, field);
    }
    // Slopes with some grain.
    bytes.extend((0..pixels).map(|at| (at % 251 + at / width % 5) as u8));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_remembered_for_the_same_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let isa = Isa::from_env(None).unwrap().to_string();
        let threads = rayon::current_num_threads();
        let speed = |encoder: &str, isa: &str, threads: usize, images_per_second: f64| SpeedMeasurement {
            encoder: encoder.to_owned(),
            isa: isa.to_owned(),
            threads,
            images_per_second,
        };
        for measured in [
            speed("a", &isa, threads, 1.0),
            speed("a", &isa, threads, 2.0),
            speed("a", "another", threads, 3.0),
            speed("a", &isa, threads + 1, 4.0),
            speed("b", &isa, threads, 5.0),
        ] {
            remember(folder.path(), measured).unwrap();
        }
        let cache = CacheChoice::Folder(folder.path().to_owned());
        let expected = BTreeMap::from([("a".to_owned(), 2.0), ("b".to_owned(), 5.0)]);
        assert_eq!(remembered_speeds(&cache), expected);
        // What is damaged is measured again.
        fs::write(folder.path().join(FILE), "[{").unwrap();
        assert_eq!(remembered_speeds(&cache), BTreeMap::new());
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn a_speed_is_that_of_a_picture_which_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let options = ImageOptions {
            cache: CacheChoice::Folder(folder.path().to_owned()),
            ..ImageOptions::default()
        };
        let speed = measure_speed(&options, &crate::Silent).unwrap();
        assert!(speed > 0.0);
        assert_eq!(remembered_speeds(&options.cache)[options.encoder()], speed);
    }
}
