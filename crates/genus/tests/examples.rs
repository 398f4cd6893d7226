//! The examples of all crates run, and print what they should. `cargo test` builds them; `--test examples` alone does not.

use std::path::{Path, PathBuf};
use std::process::Command;

use genus_vision::{EncoderSpec, Weights, to_safetensors};

/// What an example prints; `cargo test` has built it beside the tests.
#[track_caller]
fn printed(name: &str, arguments: &[&Path]) -> String {
    let tests = std::env::current_exe().unwrap();
    let path: PathBuf = [tests.parent().unwrap(), Path::new("../examples"), Path::new(name)]
        .iter()
        .collect();
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    let cache = tempfile::tempdir().unwrap();
    let ended = Command::new(&path)
        .args(arguments)
        .env("GENUS_CACHE", cache.path())
        .output();
    let ended = ended.unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", path.display()));
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn features() {
    let text = printed("features", &[]);
    for line in [
        "cat: 15 items",
        "dog: 15 items",
        "new-1: 15 items",
        "new-2: 15 items",
        "item 0 is a cat",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn stream() {
    let text = printed("stream", &[]);
    for line in [
        "item 0: cat\n",
        "item 1: dog\n",
        "item 2 waits\n",
        ", which waited: new-1\n",
        "\n4 categories, ",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn own_method() {
    let text = printed("own_method", &[]);
    for line in ["| shc ", "| leader ", "| leader (similarity = 0.9) "] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn photographs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let draw = |name: String, colour: [u8; 3], shade: u8| {
        let path = path(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A bitmap of 16 × 16 pixels of one colour, with a line across.
        let mut bytes = b"BM\x36\x03\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x10\0\0\0\x10\0\0\0\x01\0\x18\0".to_vec();
        bytes.extend([0; 24]);
        for pixel in 0..256 {
            bytes.extend(if pixel / 16 == usize::from(shade) {
                [255 - shade; 3]
            } else {
                colour
            });
        }
        std::fs::write(path, bytes).unwrap();
    };
    let colours = [[250, 10, 10], [10, 250, 10], [10, 10, 250]];
    for at in 0..4 {
        draw(format!("labelled/blue/{at}.bmp"), colours[0], at);
        draw(format!("labelled/green/{at}.bmp"), colours[1], at);
        for (kind, colour) in colours.into_iter().enumerate() {
            draw(format!("photos/{kind}-{at}.bmp"), colour, 5 + at);
        }
    }
    let spec = EncoderSpec::parse("conv4:size=16,width=8").unwrap();
    let weights = Weights::first_values(&spec.architecture, 16, 1).unwrap();
    std::fs::write(path("weights.safetensors"), to_safetensors(&weights.tensors, "{}")).unwrap();

    let encoder = format!("conv4:size=16,width=8@{}", path("weights.safetensors").display());
    let text = printed(
        "photographs",
        &[&path("labelled"), &path("photos"), &path("result"), Path::new(&encoder)],
    );
    for line in ["blue: 4 photographs", "green: ", "report.html"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(path("result/assignments.csv").exists());
}
