//! Seconds of a training step as JSON, for `bench/compare.py`, which runs PyTorch beside it.
//!
//! `training_timings CASE [--batch N] [--steps N] [--cached]`; CASE is one of `bench/train.py`'s. With `--cached` the frozen
//! part is computed once, before the clock starts.

use std::error::Error;
use std::time::Instant;

use genus_vision::train::{Trainer, TrainerSettings};
use genus_vision::{EncoderSpec, Weights};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Images of the warm-up, as for PyTorch.
const WARM_UP: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1));
    let number = |flag, default: usize| after(flag).map_or(Ok(default), |text| text.parse());
    let (encoder, blocks, batch) = match args.first().map_or("", |case| case) {
        "vit-b16" => ("dino-vitb16", Some(2), 175),
        "resnet18" => ("resnet18:size=32", None, 175),
        "efficientnet-lite2" => ("efficientnet-lite2", Some(3), 64),
        _ => {
            return Err(
                "usage: training_timings vit-b16|resnet18|efficientnet-lite2 [--batch N] [--steps N] [--cached]".into(),
            );
        }
    };
    let (batch, steps) = (number("--batch", batch)?, number("--steps", 1)?);
    let cached = args.iter().any(|arg| arg == "--cached");

    let spec = EncoderSpec::parse(encoder)?;
    let side = spec.transform.crop;
    let weights = Weights::first_values(&spec.architecture, side, 0)?;
    let settings = TrainerSettings {
        blocks,
        ..TrainerSettings::default()
    };
    let mut trainer = Trainer::new(spec.architecture, side, weights, settings, 0)?;
    let image = 3 * side * side;
    let mut inputs: Vec<f32> = (0..batch * image).map(|i| (i % 255) as f32 / 127.0 - 1.0).collect();
    // Seven images of a class.
    let labels: Vec<usize> = (0..batch).map(|at| at % (batch / 7).max(2)).collect();
    if let (true, Some(trunk)) = (cached, trainer.trunk()) {
        // In small batches, as a store is filled.
        inputs = inputs
            .chunks(WARM_UP * image)
            .flat_map(|pixels| trunk.run(pixels))
            .collect();
    }
    let mut step = |images: usize| {
        let inputs = &inputs[..inputs.len() / batch * images];
        let through = match trainer.trunk() {
            Some(trunk) if !cached => Some(trunk.run(inputs)),
            _ => None,
        };
        trainer.step(through.as_deref().unwrap_or(inputs), &labels[..images], 0.01)
    };
    step(WARM_UP.min(batch))?;
    let mut times = Vec::new();
    let mut loss = f64::NAN;
    for _ in 0..steps.max(1) {
        let start = Instant::now();
        loss = step(batch)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let seconds = times[times.len() / 2];
    println!("{}", serde_json::json!({ "seconds_per_step": seconds, "loss": loss }));
    Ok(())
}
