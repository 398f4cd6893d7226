//! The encoder inside the program.
#![cfg(feature = "embedded")]

mod common;

use common::images;
use genus_vision::{Encoder, EncoderSpec, Isa, Limits, Model, WeightsHome, WeightsSource, decode};

#[test]
fn the_default_encoder_is_inside_and_says_what_it_is() {
    let spec = EncoderSpec::parse(Model::DEFAULT).unwrap();
    assert_eq!(spec.model.home, WeightsHome::Embedded);
    let encoder = spec.load(WeightsSource::Embedded, Isa::Portable).unwrap();
    assert_eq!(encoder.dim(), 1280);
    let fingerprint = encoder.fingerprint().as_str();
    assert!(
        fingerprint.starts_with("efficientnet-lite2 int8 weights "),
        "{fingerprint}"
    );
    // Whoever changes the weights changes the features of every cache and taxonomy.
    assert!(
        fingerprint.contains(" a009dedd21bc25aecdf3878e68f5b7ee "),
        "{fingerprint}"
    );
}

#[test]
fn a_settings_file_names_the_weights_inside_and_those_of_files() {
    for source in [WeightsSource::Embedded, WeightsSource::from("/weights/lite2.pth")] {
        assert_eq!(WeightsSource::recorded(&source.to_record()), source);
    }
}

#[test]
#[ignore = "needs ../shared/weights beside the repository"]
fn features_are_nearly_those_of_the_weights_that_were_rounded() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/weights/efficientnet_lite2.pth"
    );
    let load = |name: &str, weights: WeightsSource| {
        let isa = Isa::from_env(None).unwrap();
        EncoderSpec::parse(name).unwrap().load(weights, isa).unwrap()
    };
    let rounded = load(Model::DEFAULT, WeightsSource::Embedded);
    let exact = load("efficientnet-lite2", path.into());
    let mut cosines = Vec::new();
    for (name, bytes) in images() {
        let Ok(image) = decode(&bytes, &Limits::default()) else {
            continue;
        };
        let pixels = exact.transform().apply(&image);
        let [a, b] = [&rounded, &exact].map(|encoder| encoder.encode(&pixels).unwrap());
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        // Of a line of pixels the network sees little but what resizing makes of it.
        let least = if image.width().min(image.height()) < 8 {
            0.95
        } else {
            0.97
        };
        assert!(cosine > least, "{name}: {cosine}");
        cosines.push(cosine);
    }
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    assert!(cosines.len() > 10 && mean > 0.985, "{mean} of {}", cosines.len());
}
