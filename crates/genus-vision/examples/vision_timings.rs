//! Times of encoders as JSON, for `bench/compare.py`, which runs PyTorch with the same weights in the same run.
//!
//! `vision_timings ENCODER WEIGHTS REPEATS BATCH…` gives the median seconds of an image for every size of batch.

use std::error::Error;
use std::time::Instant;

use genus_vision::{Encoder, EncoderSpec, Isa};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [encoder, weights, repeats, batches @ ..] = &args[..] else {
        return Err("usage: vision_timings ENCODER WEIGHTS REPEATS BATCH…".into());
    };
    let repeats: usize = repeats.parse()?;
    let encoder = EncoderSpec::parse(encoder)?.load(weights, Isa::from_env(None)?)?;
    let mut figures = serde_json::Map::new();
    for batch in batches {
        let images: usize = batch.parse()?;
        let pixels: Vec<f32> = (0..images * encoder.transform().values())
            .map(|i| (i % 255) as f32 / 127.0 - 1.0)
            .collect();
        encoder.encode(&pixels)?;
        let mut times = Vec::new();
        for _ in 0..repeats.max(1) {
            let start = Instant::now();
            encoder.encode(&pixels)?;
            times.push(start.elapsed().as_secs_f64() / images as f64);
        }
        times.sort_by(f64::total_cmp);
        figures.insert(batch.clone(), times[times.len() / 2].into());
    }
    println!("{}", serde_json::Value::Object(figures));
    Ok(())
}
