//! Networks in ONNX files: their features are those of ONNX Runtime for Python (`goldens/make_onnx.py`).
//!
//! ```sh
//! ORT_DYLIB_PATH=…/libonnxruntime.so.1.31.1 cargo test --workspace --features genus-cli/onnx --test onnx -- --ignored
//! ```
#![cfg(feature = "onnx")]

// Other tests use the rest of it.
#[allow(dead_code)]
mod made_up;

use std::path::{Path, PathBuf};

use genus_vision::{Encoder, OnnxEncoder};
use made_up::{assert_features, pixels};
use serde_json::Value;

const SETTINGS: &str = "size = 16\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\n";

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// The golden network in a folder of its own, with these settings beside it.
fn load(folder: &Path, settings: &str) -> Result<OnnxEncoder, String> {
    let model = folder.join("network.onnx");
    std::fs::copy(goldens().join("onnx/network.onnx"), &model).unwrap();
    std::fs::write(folder.join("network.toml"), settings).unwrap();
    OnnxEncoder::load(&model).map_err(|error| error.to_string())
}

#[test]
#[ignore = "needs ONNX Runtime in ORT_DYLIB_PATH"]
fn features_are_those_of_onnx_runtime() {
    let text = std::fs::read_to_string(goldens().join("onnx/features.json")).unwrap();
    let features: Value = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut prints = Vec::new();
    for (pooling, output) in [("none", "row"), ("map", "map"), ("cls", "tokens"), ("mean", "tokens")] {
        let settings = format!("{SETTINGS}pooling = \"{pooling}\"\noutput = \"{output}\"\n");
        let encoder = load(folder.path(), &settings).unwrap();
        assert_eq!(encoder.dim(), 5);
        let pixels = pixels(16);
        let both = encoder.encode(&pixels).unwrap();
        assert_features(&both, &features[pooling], pooling);
        // One image at a time gives the same bits, and so does any number of threads.
        let alone = pixels
            .chunks(pixels.len() / 2)
            .flat_map(|image| encoder.encode(image).unwrap());
        assert!(
            alone.map(f32::to_bits).eq(both.iter().map(|v| v.to_bits())),
            "{pooling}: bits"
        );
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let by_one = pool.install(|| load(folder.path(), &settings).unwrap().encode(&pixels).unwrap());
        assert_eq!(by_one, both, "{pooling}: threads");
        prints.push(encoder.fingerprint().to_string());
    }
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), 4, "a fingerprint each");
}

#[test]
#[ignore = "needs ONNX Runtime in ORT_DYLIB_PATH"]
fn what_does_not_fit_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |settings: &str| load(folder.path(), settings).err().unwrap();
    for (more, expected) in [
        ("output = \"logits\"", "no output `logits`; there are row, map, tokens"),
        ("input = \"image\"", "no input `image`; there are pixels"),
        ("pooling = \"cls\"", "is 1 × 5, of which the pooling `cls` makes no row"),
        ("pooling = \"max\"", "unknown variant `max`"),
        ("polling = \"cls\"", "unknown field `polling`"),
        ("resize = 8", "no 16 pixels can be cut out"),
        ("resize = 100000000", "from 1 to 2048"),
    ] {
        let message = fails(&format!("{SETTINGS}{more}\n"));
        assert!(message.contains(expected), "{message}");
    }
    let message = fails("size = 17\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\n");
    assert!(message.contains("network.onnx"), "{message}");
    assert!(fails("size = 16\nmean = [0, 0, 0]\nstd = [0, 1, 1]\n").contains("`std`"));

    let model = folder.path().join("network.onnx");
    std::fs::remove_file(folder.path().join("network.toml")).unwrap();
    let message = OnnxEncoder::load(&model).err().unwrap().to_string();
    assert!(message.contains("network.toml is missing"), "{message}");
    std::fs::write(folder.path().join("network.toml"), SETTINGS).unwrap();
    std::fs::write(&model, b"not a model").unwrap();
    assert!(OnnxEncoder::load(&model).is_err());
    std::fs::remove_file(&model).unwrap();
    assert!(
        OnnxEncoder::load(&model)
            .err()
            .unwrap()
            .to_string()
            .contains("cannot read")
    );
}
