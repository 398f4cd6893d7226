//! Decoding and transforming beside Pillow and torchvision.

mod common;

use common::{goldens, images, table};
use genus_vision::{Filter, Limits, Transform, decode};
use serde_json::Value;

fn crc32(bytes: &[u8]) -> u64 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xEDB8_8320 * (crc & 1));
        }
    }
    u64::from(!crc)
}

fn transform(item: &Value) -> Transform {
    Transform {
        resize: number(&item["resize"]),
        filter: match item["filter"].as_str() {
            Some("bilinear") => Filter::Bilinear,
            _ => Filter::Bicubic,
        },
        crop: number(&item["crop"]),
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    }
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

#[test]
fn every_golden_image_is_what_pillow_and_torchvision_make_of_it() {
    let crops = std::fs::read(goldens().join("crops.bin")).expect("the goldens are there");
    let table = table();
    let mut wrong = Vec::new();
    for (entry, (name, bytes)) in table["images"].as_array().expect("a list").iter().zip(images()) {
        let image = match decode(&bytes, &Limits::default()) {
            Ok(image) => image,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let exact = entry["exact"] == true;
        let size = (number(&entry["width"]), number(&entry["height"]));
        if (image.width(), image.height()) != size {
            wrong.push(format!(
                "{name}: {} × {} instead of {size:?}",
                image.width(),
                image.height()
            ));
            continue;
        }
        if exact && crc32(image.data()) != number(&entry["checksum"]) as u64 {
            wrong.push(format!("{name}: decoded pixels"));
        }
        for item in entry["crops"].as_array().expect("a list") {
            let transform = transform(item);
            let pixels = transform.pixels(&image);
            if let Some(offset) = item["offset"].as_u64() {
                let expected = &crops[offset as usize..][..transform.values()];
                let worst = pixels
                    .iter()
                    .zip(expected)
                    .map(|(a, b)| a.abs_diff(*b))
                    .max()
                    .expect("pixels");
                if worst > u8::from(!exact) {
                    wrong.push(format!("{name}: {transform} differs by {worst}"));
                }
            }
            if exact && crc32(&pixels) != number(&item["checksum"]) as u64 {
                wrong.push(format!("{name}: {transform} is not equal"));
            }
            // The normalised values are those of the pixels, plane by plane.
            let values = transform.apply(&image);
            let area = transform.crop * transform.crop;
            for (at, pixel) in pixels.chunks_exact(3).enumerate() {
                for channel in 0..3 {
                    let expected = f32::from(pixel[channel]) / 255.0;
                    let expected = (expected - transform.mean[channel]) / transform.std[channel];
                    assert_eq!(values[channel * area + at], expected, "{name}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn normalised_values_are_torchs_to_the_bit() {
    let table = table();
    let (_, bytes) = images().swap_remove(0);
    let image = decode(&bytes, &Limits::default()).expect("an image");
    let transform = transform(&serde_json::json!({"resize": 16, "crop": 12, "filter": "bicubic"}));
    let bits: Vec<u32> = transform.apply(&image).iter().map(|value| value.to_bits()).collect();
    let expected: Vec<u32> = serde_json::from_value(table["normalized_bits"].clone()).expect("a list of numbers");
    assert_eq!(bits, expected);
}

#[test]
#[ignore = "needs ../shared/data/cub200_small.tar beside the repository"]
fn real_photographs_are_what_pillow_and_torchvision_make_of_them() {
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/cub200_small.tar");
    let archive = std::fs::read(archive).expect("the archive is beside the repository");
    let text = std::fs::read_to_string(goldens().join("real.json")).expect("the goldens are there");
    let entries: Vec<Value> = serde_json::from_str(&text).expect("the goldens are JSON");
    let mut left: std::collections::BTreeMap<_, _> = entries
        .iter()
        .map(|entry| (entry["name"].as_str().expect("a name"), entry))
        .collect();
    let transform = transform(&serde_json::json!({"resize": 292, "crop": 260, "filter": "bicubic"}));
    // A tar is blocks of 512 bytes: a header with name and size in octal digits, then the content.
    let field = |bytes: &[u8]| {
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).trim().to_owned()
    };
    let mut at = 0;
    while let Some(header) = archive.get(at..at + 512).filter(|header| header[0] != 0) {
        let size = usize::from_str_radix(&field(&header[124..136]), 8).expect("a size in octal digits");
        let name = field(&header[..100]);
        if let Some(entry) = left.remove(name.as_str()) {
            let image = decode(&archive[at + 512..][..size], &Limits::default()).expect("a photograph");
            assert_eq!(crc32(image.data()), number(&entry["pixels"]) as u64, "{name}");
            assert_eq!(
                crc32(&transform.pixels(&image)),
                number(&entry["crop"]) as u64,
                "{name}"
            );
        }
        at += 512 + size.next_multiple_of(512);
    }
    assert!(left.is_empty(), "not in the archive: {left:?}");
}
