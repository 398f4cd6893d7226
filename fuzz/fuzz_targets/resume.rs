//! Any bytes are the metrics or the checkpoint of a run that goes on, or an error: no panic, no endless loop, no memory without
//! bounds. What goes on has whole lines of steps that were taken, and going on twice changes nothing.
#![cfg_attr(fuzzing, no_main)]

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use genus::training::{Step, Training, TrainingError, Validation, Watcher, train};
use genus_fuzz::{chosen, folder, fuzz_target, write};
use genus_vision::{read_weights_from, to_safetensors};

const METRICS: &str = "metrics.jsonl";
const CHECKPOINT: &str = "checkpoint.safetensors";

/// Ends a run after its first step.
struct Hurried;

impl Watcher for Hurried {
    fn skipped(&mut self, _: &Path, _: &str) {}
    fn kept(&mut self, _: u64, _: u64) {}
    fn step(&mut self, _: &Step) {}
    fn validated(&mut self, _: &Validation) {}
    fn stops(&self) -> bool {
        true
    }
}

/// A run that was ended after its first step, and the step's metrics and checkpoint.
static RUN: LazyLock<(PathBuf, Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let run = folder("resume/run");
    let images = folder("resume/base");
    for class in 0..4u8 {
        for image in 0..3u8 {
            // A bitmap of one pixel.
            let mut bytes = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
            bytes.extend([0; 24]);
            bytes.extend([60 * class, 90 * image, 7, 0]);
            write(&images.join(format!("{class}/{image}.bmp")), &bytes);
        }
    }
    let config = include_str!("../seeds/config.toml").replace("\"base\"", &format!("{images:?}"));
    let settings = toml::from_str::<toml::Table>(&config).unwrap()["settings"].clone();
    train(Some(settings.try_into().unwrap()), &run, &mut Hurried).unwrap();
    let file = |name: &str| fs::read(run.join(name)).unwrap();
    let (metrics, checkpoint) = (file(METRICS), file(CHECKPOINT));
    (run, metrics, checkpoint)
});

/// Some tensors as those of a checkpoint, with the hash that they have.
fn with_hash(bytes: &[u8]) -> Option<Vec<u8>> {
    let weights = read_weights_from(Cursor::new(bytes), "fuzz").ok()?;
    let about = format!(r#"{{"step":1,"tensors":"{}"}}"#, weights.hash().to_hex());
    Some(to_safetensors(&weights.tensors, &about))
}

/// A checkpoint of which some bytes are others: two bytes of an input say which, and a third what it becomes.
fn changed(mut checkpoint: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    for &[high, low, byte] in changes.as_chunks().0 {
        let at = usize::from(u16::from_be_bytes([high, low])) % checkpoint.len();
        checkpoint[at] = byte;
    }
    checkpoint
}

fn resume(run: &Path) -> Result<(u64, Vec<u8>), TrainingError> {
    let step = Training::resume(run, &mut Hurried)?.step();
    Ok((step, fs::read(run.join(METRICS)).unwrap()))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, 5) else {
        return;
    };
    let (run, metrics, whole) = &*RUN;
    let checkpoint = match which {
        0 => Some(whole.clone()),
        1 => Some(rest.to_owned()),
        2 => with_hash(rest),
        3 => Some(changed(whole.clone(), rest)),
        _ => with_hash(&changed(whole.clone(), rest)),
    };
    let Some(checkpoint) = checkpoint else { return };
    write(&run.join(METRICS), if which == 0 { rest } else { metrics });
    write(&run.join(CHECKPOINT), &checkpoint);
    if let Ok((step, metrics)) = resume(run) {
        for line in metrics.split_inclusive(|&byte| byte == b'\n') {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert!(line["step"].as_u64().unwrap() <= step);
        }
        assert_eq!(resume(run).unwrap(), (step, metrics));
    }
});
