//! Any bytes are a file of a training run's folder or an error: no panic, no endless loop, no memory without bounds.
#![cfg_attr(fuzzing, no_main)]

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::LazyLock;

use genus::training::{trained_encoder, trained_hash};
use genus_fuzz::{chosen, folder, fuzz_target, write};
use genus_vision::{read_weights_from, to_safetensors};

/// The file that is fuzzed; the last is a checkpoint whose hash is made right.
const FILES: [&str; 4] = ["config.toml", "encoder.toml", "hash.safetensors", "hash.safetensors"];

const CONFIG: &str = include_str!("../seeds/config.toml");
const ENCODER: &str = include_str!("../seeds/encoder.toml");

static FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let folders = (0..FILES.len()).map(|number| {
        let folder = folder(&format!("run/{number}"));
        write(&folder.join("config.toml"), CONFIG.as_bytes());
        write(&folder.join("encoder.toml"), ENCODER.as_bytes());
        folder
    });
    folders.collect()
});

/// The tensors of a file as those of a checkpoint.
fn checkpoint(bytes: &[u8]) -> Option<Vec<u8>> {
    let weights = read_weights_from(Cursor::new(bytes), "fuzz").ok()?;
    let about = format!(r#"{{"step":1,"tensors":"{}"}}"#, weights.hash().to_hex());
    Some(to_safetensors(&weights.tensors, &about))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = chosen(bytes, FILES.len()) else {
        return;
    };
    let folder = &FOLDERS[which];
    let path = folder.join(FILES[which]);
    match which {
        3 => match checkpoint(rest) {
            Some(checkpoint) => write(&path, &checkpoint),
            None => return,
        },
        _ => write(&path, rest),
    }
    let _ = trained_encoder(folder);
    let _ = trained_hash(folder);
});
