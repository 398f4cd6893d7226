//! Rounds the kernels of a network to 8-bit integers with a scale for every output channel, and leaves its classifier out:
//! `cargo run --release -p genus-vision --example quantise -- WEIGHTS OUT.safetensors`.
//!
//! It makes the file of `genus-lite2`; reading it gives the ordinary network again, so `--weights` takes the file too.

use std::collections::BTreeMap;

use genus_vision::read_weights;
use safetensors::tensor::{Dtype, TensorView, serialize};

/// What no feature needs.
const CLASSIFIERS: [&str; 4] = ["_fc.", "fc.", "classifier.", "head."];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("quantise WEIGHTS OUT.safetensors".into());
    };
    let mut tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = BTreeMap::new();
    for (name, tensor) in read_weights(from)?.tensors {
        if CLASSIFIERS.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        if tensor.shape.len() < 2 {
            tensors.insert(name, (Dtype::F32, tensor.shape, floats(&tensor.values)));
            continue;
        }
        let channels = tensor.shape[0];
        let rows = tensor.values.chunks_exact(tensor.values.len() / channels);
        let mut scales = Vec::new();
        let mut integers = Vec::new();
        for row in rows {
            let largest = row.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
            scales.push(scale);
            integers.extend(row.iter().map(|value| (value / scale).round() as i8 as u8));
        }
        tensors.insert(format!("{name}.scale"), (Dtype::F32, vec![channels], floats(&scales)));
        tensors.insert(name, (Dtype::I8, tensor.shape, integers));
    }
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        (name, view.expect("as many bytes as the shape says"))
    });
    let bytes = serialize(views, None)?;
    std::fs::write(&to, &bytes)?;
    println!("{to}: {} tensors, {:.2} MB", tensors.len(), bytes.len() as f64 / 1e6);
    Ok(())
}
