//! Networks of made-up values: every one is a hash of a name and a place, here and in the scripts that make goldens.

use std::collections::BTreeMap;

use genus_vision::{Architecture, Filter, LiteKind, Positions, ResNetKind, Tensor, Transform};
use serde_json::Value;

/// Numbers of 24 bits in [−1, 1) that depend on a name and a place only.
pub(crate) fn uniform(name: &str, count: usize) -> impl Iterator<Item = f32> {
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (1..=count as u64).map(move |place| {
        let mut z = seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 40) as f64 / f64::from(1 << 23) - 1.0) as f32
    })
}

pub(crate) fn pixels(side: usize) -> Vec<f32> {
    uniform("pixels", 2 * 3 * side * side).map(|v| 1.5 * v).collect()
}

pub(crate) fn transform(side: usize) -> Transform {
    Transform {
        resize: side,
        filter: Filter::Bicubic,
        crop: side,
        mean: [0.5; 3],
        std: [0.5; 3],
    }
}

pub(crate) fn architecture(value: &Value) -> Architecture {
    match value["kind"].as_str().unwrap() {
        "vit" => Architecture::Vit {
            shape: None,
            positions: Positions::ALL
                .into_iter()
                .find(|positions| positions.name() == value["positions"])
                .unwrap(),
            heads: value["heads"].as_u64().map(|heads| heads as usize),
        },
        "resnet18" => Architecture::ResNet(ResNetKind::ResNet18),
        "resnet50" => Architecture::ResNet(ResNetKind::ResNet50),
        "lite0" => Architecture::Lite(LiteKind::Lite0),
        "lite2" => Architecture::Lite(LiteKind::Lite2),
        other => panic!("{other}"),
    }
}

pub(crate) fn tensors(table: &Value) -> BTreeMap<String, Tensor> {
    let tensors = table.as_array().unwrap().iter().map(|row| {
        let name = row[0].as_str().unwrap();
        // Renamed tensors keep the values of the name that PyTorch filled.
        let filled = row.get(4).map_or(name, |filled| filled.as_str().unwrap());
        let shape: Vec<usize> = row[1]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect();
        let (offset, scale) = (row[2].as_f64().unwrap() as f32, row[3].as_f64().unwrap() as f32);
        let values = uniform(filled, shape.iter().product())
            .map(|v| offset + scale * v)
            .collect();
        (name.to_owned(), Tensor { shape, values })
    });
    tensors.collect()
}

pub(crate) fn assert_features(found: &[f32], expected: &Value, what: &str) {
    let expected: Vec<f32> = expected
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|v| v.as_f64().unwrap() as f32)
        .collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    let dim = found.len() / 2;
    for (found, expected) in found.chunks(dim).zip(expected.chunks(dim)) {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>();
        let cosine = dot(found, expected) / (dot(found, found) * dot(expected, expected)).sqrt();
        assert!(cosine >= 0.99999, "{what}: cosine {cosine}");
        // Relative to the size of the features: single ones may be as near to zero as they like.
        let size = (dot(expected, expected) / dim as f64).sqrt();
        let most = found
            .iter()
            .zip(expected)
            .map(|(f, e)| f64::from((f - e).abs()))
            .fold(0.0, f64::max);
        assert!(
            most <= 1e-3 * size,
            "{what}: off by {most} where features are of size {size}"
        );
    }
}
