//! Features are those of PyTorch, whatever project named the weights.
//!
//! `goldens/make_features.py` fills every network with made-up values and stores what it computes; the same values are made
//! here. The real weights beside the repository are compared when they are there.

mod made_up;

use std::collections::BTreeMap;
use std::path::Path;

use genus_vision::{
    Architecture, Encoder, EncoderSpec, Isa, Limits, NetworkEncoder, Positions, Precision, ResNetKind, Tensor, Weights,
    decode,
};
use made_up::{architecture, assert_features, pixels, tensors, transform};
use serde_json::Value;

/// All that this processor can run networks on so precisely.
fn available(precision: Precision) -> impl Iterator<Item = Isa> {
    let fitting = Isa::ALL.into_iter().filter(move |isa| isa.precision() == precision);
    fitting.filter(|isa| isa.is_available())
}

fn weights(table: &Value) -> Weights {
    Weights {
        tensors: tensors(table),
        ..Weights::default()
    }
}

#[test]
fn features_are_those_of_pytorch() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    let cases = goldens.as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let side = case["side"].as_u64().unwrap() as usize;
        let kind = architecture(&case["architecture"]);
        for isa in available(Precision::F32) {
            let name = format!("{name} on {isa}");
            let encoder = NetworkEncoder::new(kind, transform(side), weights(&case["tensors"]), isa)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let pixels = pixels(side);
            let both = encoder.encode(&pixels).unwrap();
            assert_features(&both, &case["features"], &name);
            // One image at a time gives the same bits.
            let alone = pixels
                .chunks(pixels.len() / 2)
                .flat_map(|image| encoder.encode(image).unwrap());
            assert!(
                alone.map(f32::to_bits).eq(both.iter().map(|v| v.to_bits())),
                "{name}: bits"
            );
        }
    }
}

#[test]
#[ignore = "needs ../shared/weights beside the repository, or GENUS_TEST_WEIGHTS"]
fn features_of_real_weights_are_those_of_pytorch() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/real_features.json")).unwrap();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/weights");
    let folder = std::env::var_os("GENUS_TEST_WEIGHTS").map_or(beside, Into::into);
    let mut compared = 0;
    for (name, case) in goldens.as_object().unwrap() {
        let path = folder.join(case["file"].as_str().unwrap());
        if !path.exists() {
            println!("skipped {name}: there is no {}", path.display());
            continue;
        }
        let side = case["side"].as_u64().unwrap() as usize;
        // timm smooths the positions of the transformer when it shrinks them.
        let spec = match name.split_once(' ') {
            Some(_) => format!("vit:positions=smoothed,size={side}"),
            None => name.replace('_', "-"),
        };
        for isa in available(Precision::F32) {
            let encoder = EncoderSpec::parse(&spec).unwrap().load(&path, isa).unwrap();
            let found = encoder.encode(&pixels(side)).unwrap();
            assert_features(&found, &case["features"], &format!("{name} on {isa}"));
            compared += 1;
        }
    }
    assert!(compared > 0, "not one of the networks is in {}", folder.display());
}

/// The least cosine between rows of features.
fn least_cosine(found: &[f32], expected: &[f32], dim: usize) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>();
    let pairs = found.chunks(dim).zip(expected.chunks(dim));
    pairs
        .map(|(f, e)| dot(f, e) / (dot(f, f) * dot(e, e)).sqrt())
        .fold(1.0, f64::min)
}

#[test]
fn features_of_bf16_are_near_those_of_f32() {
    if Isa::best(Precision::Bf16).is_err() {
        println!("skipped: this processor has no products of bf16");
        return;
    }
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    for case in goldens.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let side = case["side"].as_u64().unwrap() as usize;
        let kind = architecture(&case["architecture"]);
        let encoder = |isa| NetworkEncoder::new(kind, transform(side), weights(&case["tensors"]), isa);
        if !matches!(kind, Architecture::Vit { .. }) {
            // Convolutional networks say so instead of computing something else.
            assert!(available(Precision::Bf16).all(|isa| encoder(isa).is_err()), "{name}");
            continue;
        }
        let features = |isa| encoder(isa).unwrap().encode(&pixels(side)).unwrap();
        let expected = features(Isa::Portable);
        for isa in available(Precision::Bf16) {
            let cosine = least_cosine(&features(isa), &expected, expected.len() / 2);
            assert!((0.999..1.0).contains(&cosine), "{name} on {isa}: cosine {cosine}");
        }
    }
}

#[test]
#[ignore = "needs vit_s14_saliency.safetensors in GENUS_TEST_WEIGHTS, ../shared/data and instructions of bf16"]
fn photographs_through_real_weights_are_nearly_the_same_in_bf16() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("GENUS_TEST_WEIGHTS").map_or(beside.join("weights"), Into::into);
    let weights = folder.join("vit_s14_saliency.safetensors");
    let archive = std::fs::read(beside.join("data/cub200_small.tar")).expect("the archive is beside the repository");
    let spec = EncoderSpec::parse("vit:positions=smoothed,size=224").unwrap();
    // JPEG files begin where blocks of 512 bytes do.
    let starts = (0..archive.len())
        .step_by(512)
        .filter(|&at| archive[at..].starts_with(&[0xFF, 0xD8, 0xFF]));
    let photos = starts
        .step_by(300)
        .take(4)
        .map(|at| decode(&archive[at..], &Limits::default()).unwrap());
    let pixels: Vec<f32> = photos.flat_map(|photo| spec.transform.apply(&photo)).collect();
    let features = |isa| spec.load(&weights, isa).unwrap().encode(&pixels).unwrap();
    let portable = features(Isa::Portable);
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let cosine = least_cosine(&features(isa), &portable, portable.len() / 4);
        println!("cosine of {isa} with the portable path: {cosine}");
        let least = match isa.precision() {
            Precision::F32 => 0.99999,
            Precision::Bf16 => 0.9995,
        };
        assert!(cosine >= least, "{isa}: {cosine}");
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    for case in goldens.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        // One of each kind.
        if !["timm, patch 8", "torchvision, ResNet-18", "timm, Lite0"].contains(&name) {
            continue;
        }
        let side = case["side"].as_u64().unwrap() as usize;
        let kind = architecture(&case["architecture"]);
        let is_vit = matches!(kind, Architecture::Vit { .. });
        let bf16 = available(Precision::Bf16).filter(|_| is_vit);
        for isa in available(Precision::F32).chain(bf16) {
            let run = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let encoder = NetworkEncoder::new(kind, transform(side), weights(&case["tensors"]), isa).unwrap();
                    let pixels = pixels(side);
                    let one = encoder.encode(&pixels[..pixels.len() / 2]).unwrap();
                    let all = [one, encoder.encode(&pixels).unwrap()].concat();
                    all.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                })
            };
            let one = run(1);
            assert!(one == run(2) && one == run(3), "{name} on {isa}");
        }
    }
}

#[test]
fn weights_that_do_not_fit_are_told_in_full() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    let case = goldens
        .as_array()
        .unwrap()
        .iter()
        .find(|case| case["name"] == "timm, patch 16")
        .unwrap();
    let load = |change: &dyn Fn(&mut BTreeMap<String, Tensor>)| {
        let mut weights = weights(&case["tensors"]);
        change(&mut weights.tensors);
        let kind = architecture(&case["architecture"]);
        NetworkEncoder::new(kind, transform(64), weights, Isa::Portable)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(load(&|_| ()), Ok(()));
    let message = load(&|tensors| {
        tensors.remove("blocks.1.norm1.bias");
        tensors.get_mut("norm.weight").unwrap().shape = vec![2, 24];
        tensors.insert("stranger.weight".to_owned(), tensors["norm.bias"].clone());
    })
    .unwrap_err();
    for part in [
        "missing (1): blocks.1.norm1.bias",
        "norm.weight is 2 × 24 and not 48",
        "surplus (1): stranger.weight",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = load(&|tensors| drop(tensors.remove("patch_embed.proj.weight"))).unwrap_err();
    assert!(message.contains("patch_embed.proj.weight"), "{message}");
    let message = load(&|tensors| drop(tensors.remove("pos_embed"))).unwrap_err();
    assert!(message.contains("pos_embed"), "{message}");
    let message = load(&|tensors| tensors.get_mut("pos_embed").unwrap().shape = vec![17, 48]).unwrap_err();
    assert!(message.contains("[17, 48]"), "{message}");
    // A name with an enormous number does not make a network of that size.
    let huge = "blocks.18446744073709551615.norm1.bias";
    assert!(load(&|tensors| drop(tensors.insert(huge.to_owned(), tensors["norm.bias"].clone()))).is_err());
    // Weights of another network, and pixels that are no image.
    let other = NetworkEncoder::new(
        Architecture::ResNet(ResNetKind::ResNet18),
        transform(64),
        weights(&case["tensors"]),
        Isa::Portable,
    );
    assert!(other.unwrap_err().to_string().contains("missing"));
    for isa in available(Precision::F32) {
        let encoder = NetworkEncoder::new(
            architecture(&case["architecture"]),
            transform(64),
            weights(&case["tensors"]),
            isa,
        )
        .unwrap();
        assert!(encoder.encode(&[0.0; 7]).is_err());
        assert!(encoder.encode(&vec![f32::NAN; 3 * 64 * 64]).is_err());
        assert!(encoder.encode(&[]).unwrap().is_empty());
    }
}

#[test]
fn keys_of_dinov3_have_no_bias() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    let named = |name: &str| {
        goldens
            .as_array()
            .unwrap()
            .iter()
            .find(|case| case["name"] == name)
            .unwrap()
    };
    let case = named("timm, DINOv3 with biases");
    let encode = |weights: Weights| {
        let kind = architecture(&case["architecture"]);
        let encoder = NetworkEncoder::new(kind, transform(64), weights, Isa::Portable).unwrap();
        encoder.encode(&pixels(64)).unwrap()
    };
    let expected = encode(weights(&case["tensors"]));
    // DINOv3's own files have a bias of all three, and a mask that takes that of the keys away.
    let mut own = weights(&case["tensors"]);
    for block in 0..3 {
        let name = |part: &str| format!("blocks.{block}.attn.{part}");
        let [mut queries, values] = ["q_bias", "v_bias"].map(|part| own.tensors.remove(&name(part)).unwrap());
        queries.values.extend([7.0; 48]);
        queries.values.extend(&values.values);
        queries.shape = vec![144];
        let mask = Tensor {
            shape: vec![144],
            values: vec![f32::NAN; 144],
        };
        own.tensors.insert(name("qkv.bias"), queries);
        own.tensors.insert(name("qkv.bias_mask"), mask);
    }
    assert_eq!(encode(own), expected);
}

#[test]
fn a_fingerprint_tells_encoders_apart() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/features.json")).unwrap();
    let cases = goldens.as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == "timm, patch 16").unwrap();
    let print_on = |isa, kind, side, change: f32| {
        let mut weights = weights(&case["tensors"]);
        weights.tensors.get_mut("norm.bias").unwrap().values[0] += change;
        let encoder = NetworkEncoder::new(kind, transform(side), weights, isa).unwrap();
        encoder.fingerprint().to_string()
    };
    let print = |kind, side, change| print_on(Isa::Portable, kind, side, change);
    let kind = architecture(&case["architecture"]);
    let Architecture::Vit { shape, heads, .. } = kind else {
        panic!()
    };
    let other = Architecture::Vit {
        shape,
        heads,
        positions: Positions::Plain,
    };
    let mut prints = vec![
        print(kind, 64, 0.0),
        print(kind, 64, 1.0),
        print(kind, 80, 0.0),
        print(other, 64, 0.0),
    ];
    // One meaning, whatever it runs on; bf16 is another.
    for isa in available(Precision::F32) {
        assert_eq!(prints[0], print_on(isa, kind, 64, 0.0));
    }
    if let Ok(isa) = Isa::best(Precision::Bf16) {
        prints.push(print_on(isa, kind, 64, 0.0));
    }
    for (at, print) in prints.iter().enumerate() {
        assert!(!prints[..at].contains(print), "{print}");
    }
}
