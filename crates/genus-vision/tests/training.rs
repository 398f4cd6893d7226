//! Training is that of PyTorch: `goldens/make_training.py` trains networks of made-up weights for a few steps.

mod made_up;

use std::collections::BTreeMap;

use genus_vision::train::{HeadShape, ObjectiveSettings, ProjectionHead, TrainError, Trainer, TrainerSettings};
use genus_vision::{
    Architecture, Crop, Encoder, Filter, Isa, Limits, LiteKind, NetworkEncoder, Positions, Precision, ResNetKind,
    Tensor, Transform, VitShape, Weights, decode,
};
use made_up::{architecture, assert_features, pixels, tensors, transform, uniform};
use proptest::prelude::*;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn whole(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn labels(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(whole).collect()
}

/// A trainer of a golden case, with the head's tensors set, and the batch that it is trained on.
fn trainer(case: &Value, goldens: &Value) -> (Trainer, Vec<f32>) {
    let side = whole(&case["side"]);
    let head = &case["head"];
    let settings = TrainerSettings {
        blocks: case["blocks"].as_u64().map(|blocks| blocks as usize),
        objective: ObjectiveSettings::Contrast {
            head: HeadShape {
                hidden: whole(&head["hidden"]),
                embedding: whole(&head["embedding"]),
                width: whole(&head["width"]),
            },
            temperature: goldens["temperature"].as_f64().unwrap(),
        },
        momentum: goldens["momentum"].as_f64().unwrap(),
        weight_decay: goldens["weight_decay"].as_f64().unwrap(),
        fixed_statistics: case["fixed_statistics"].as_bool().unwrap_or(false),
        // Steps with the statistics of a small batch enlarge any difference in rounding: for them the trunk rounds as it did when
        // the bounds were set. What trunks give elsewhere is compared below.
        isa: match architecture(&case["architecture"]) {
            Architecture::Vit { .. } => Isa::best(Precision::F32).unwrap(),
            _ => Isa::Portable,
        },
    };
    let weights = Weights {
        tensors: tensors(&case["tensors"]),
        ..Weights::default()
    };
    let kind = architecture(&case["architecture"]);
    let mut trainer = Trainer::new(kind, side, weights, settings, 0).unwrap();
    let mut state = trainer.state();
    for (name, tensor) in tensors(&head["tensors"]) {
        state.get_mut(&format!("value.{name}")).unwrap().values = tensor.values;
    }
    trainer.restore(state).unwrap();
    let batch = uniform("training pixels", whole(&case["images"]) * 3 * side * side);
    (trainer, batch.map(|v| 1.5 * v).collect())
}

/// A step on pixels, through the trunk if there is one.
fn step(trainer: &mut Trainer, pixels: &[f32], labels: &[usize], rate: f64) -> Result<f64, TrainError> {
    let through = trainer.trunk().map(|trunk| trunk.run(pixels));
    trainer.step(through.as_deref().unwrap_or(pixels), labels, rate)
}

#[test]
fn steps_are_those_of_pytorch() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/training.json")).unwrap();
    let cases = goldens["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let (mut trainer, batch) = trainer(case, &goldens);
        let before = trainer.state();
        let labels = labels(&case["labels"]);
        for (rate, expected) in numbers(&case["lrs"]).into_iter().zip(numbers(&case["losses"])) {
            let loss = step(&mut trainer, &batch, &labels, rate).unwrap();
            assert!(
                (loss - expected).abs() < 1e-3 * expected,
                "{name}: {loss} and not {expected}"
            );
        }
        // Everything that PyTorch changed has changed as far, and nothing else.
        let after = trainer.state();
        let moved = |name: &str| {
            let pairs = before[name].values.iter().zip(&after[name].values);
            pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
        };
        let mut changed = Vec::new();
        let trained = case["trained"].as_array().unwrap().iter();
        for row in trained.chain(case["statistics"].as_array().unwrap()) {
            let tensor = row[0].as_str().unwrap();
            let expected = row.as_array().unwrap().last().unwrap().as_f64().unwrap();
            let key = ["value.", "fixed."].map(|kind| format!("{kind}{tensor}"));
            let key = key.into_iter().find(|key| after.contains_key(key)).unwrap();
            let found = moved(&key);
            assert!(
                (found - expected).abs() < 0.01 * expected + 1e-6,
                "{name}: {tensor} moved by {found} and not {expected}"
            );
            changed.push(key);
        }
        for key in after
            .keys()
            .filter(|key| !key.starts_with("momentum.") && !changed.contains(key))
        {
            assert_eq!(moved(key), 0.0, "{name}: {key}");
        }
        // The trained network is an ordinary one.
        let side = whole(&case["side"]);
        let kind = *trainer.architecture();
        let encoder = NetworkEncoder::new(kind, transform(side), trainer.weights(), trainer.isa()).unwrap();
        assert_features(&encoder.encode(&pixels(side)).unwrap(), &case["features"], name);
    }
}

#[test]
fn the_loss_and_its_gradient_are_those_of_pytorch() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/training.json")).unwrap();
    for case in goldens["supcon"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let flat = |value: &Value| value.as_array().unwrap().iter().flat_map(numbers).collect::<Vec<f64>>();
        let embeddings = flat(&case["embeddings"]);
        let labels = labels(&case["labels"]);
        let dim = embeddings.len() / labels.len();
        // A head that lets everything through: each matrix is one, and the bend of the GELU is shifted out of reach.
        let (head, tensors) = transparent(dim);
        let features: Vec<f32> = embeddings.iter().map(|&v| v as f32).collect();
        let found = head.gradients(&tensors, &features, &labels, case["temperature"].as_f64().unwrap());
        let expected = case["loss"].as_f64().unwrap();
        assert!(
            (found.loss - expected).abs() < 1e-4 * expected,
            "{name}: {} and not {expected}",
            found.loss
        );
        let slopes = flat(&case["gradient"]);
        let most = slopes.iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
        for (found, expected) in found.features.iter().zip(slopes) {
            let off = (f64::from(*found) - expected).abs();
            assert!(off < 1e-3 * most, "{name}: {found} and not {expected}");
        }
    }
}

/// A head without last layer whose embedding is its input.
fn transparent(dim: usize) -> (ProjectionHead, BTreeMap<String, Tensor>) {
    const SHIFT: f32 = 64.0;
    let shape = HeadShape {
        hidden: dim,
        embedding: dim,
        width: 0,
    };
    let head = ProjectionHead::new(dim, shape);
    let mut tensors = head.first_values(0);
    for (name, tensor) in &mut tensors {
        let diagonal = |at: usize| if at.is_multiple_of(dim + 1) { 1.0 } else { 0.0 };
        tensor.values = match (tensor.shape.len(), name.contains(".4.")) {
            (1, false) => vec![if name.contains(".0.") { SHIFT } else { 0.0 }; dim],
            (1, true) => vec![-SHIFT; dim],
            _ => (0..dim * dim).map(diagonal).collect(),
        };
    }
    (head, tensors)
}

/// Tensors in double precision: outputs, and the values.
type Wide = BTreeMap<String, (usize, Vec<f64>)>;

/// The loss as the paper writes it, with the wide layer and all of its outputs, in double precision; and the least length that
/// something was divided by.
fn explicit_loss(tensors: &Wide, features: &[f64], labels: &[usize], temperature: f64) -> (f64, f64) {
    let least = std::cell::Cell::new(f64::INFINITY);
    let length = |x: &[f64]| {
        let length = x.iter().map(|v| v * v).sum::<f64>().sqrt();
        least.set(least.get().min(length));
        length
    };
    let unit = |x: Vec<f64>| {
        let length = length(&x);
        x.into_iter().map(|v| v / length).collect::<Vec<_>>()
    };
    let rows = |name: &str| {
        let (outputs, values) = &tensors[name];
        values
            .chunks(values.len() / outputs)
            .map(<[f64]>::to_vec)
            .collect::<Vec<_>>()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let apply = |x: &[f64], name: &str| -> Vec<f64> {
        let bias = &tensors[&format!("{name}.bias")].1;
        let weight = rows(&format!("{name}.weight"));
        weight.iter().zip(bias).map(|(row, bias)| dot(row, x) + bias).collect()
    };
    let gelu = |x: Vec<f64>| -> Vec<f64> { x.into_iter().map(|v| v * 0.5 * (1.0 + erf(v / 2f64.sqrt()))).collect() };
    const LAST: &str = "head.last_layer.weight_v";
    let last: Option<Vec<Vec<f64>>> = tensors
        .contains_key(LAST)
        .then(|| rows(LAST).into_iter().map(unit).collect());
    let dim = features.len() / labels.len();
    let z: Vec<Vec<f64>> = features
        .chunks(dim)
        .map(|x| {
            let x = gelu(apply(x, "head.mlp.0"));
            let x = gelu(apply(&x, "head.mlp.2"));
            let x = unit(apply(&x, "head.mlp.4"));
            match &last {
                Some(last) => unit(last.iter().map(|row| dot(row, &x)).collect()),
                None => x,
            }
        })
        .collect();
    let similar = |a: usize, b: usize| dot(&z[a], &z[b]) / temperature;
    let others = |item: usize| (0..labels.len()).filter(move |&other| other != item);
    let anchors: Vec<(usize, Vec<usize>)> = (0..labels.len())
        .map(|item| {
            (
                item,
                others(item).filter(|&o| labels[o] == labels[item]).collect::<Vec<_>>(),
            )
        })
        .filter(|(_, positives)| !positives.is_empty())
        .collect();
    let losses = anchors.iter().map(|(item, positives)| {
        let total = others(*item).map(|other| similar(*item, other).exp()).sum::<f64>().ln();
        positives.iter().map(|&p| total - similar(*item, p)).sum::<f64>() / positives.len() as f64
    });
    (losses.sum::<f64>() / anchors.len() as f64, least.get())
}

/// The error function by its series: it converges for the arguments of these tests.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The last layer that is never formed gives the loss and the gradients of the one that is.
    #[test]
    fn the_gram_form_equals_the_explicit_one(
        seed in 0u64..1000,
        labels in prop::collection::vec(0usize..3, 4..9),
        (dim, hidden, embedding) in (2usize..5, 2usize..6, 2usize..5),
        width in prop_oneof![Just(0usize), 3usize..20],
        temperature in 0.07f64..1.0,
    ) {
        prop_assume!(labels.iter().any(|label| labels.iter().filter(|other| *other == label).count() > 1));
        let head = ProjectionHead::new(dim, HeadShape { hidden, embedding, width });
        let mut tensors = head.first_values(seed);
        for (name, tensor) in &mut tensors {
            let count = tensor.values.len();
            tensor.values = uniform(&format!("{seed} {name}"), count).collect();
        }
        let features: Vec<f32> = uniform(&format!("{seed}"), labels.len() * dim).collect();
        let found = head.gradients(&tensors, &features, &labels, temperature);
        let wide: Vec<f64> = features.iter().map(|&v| f64::from(v)).collect();
        let double = |tensor: &Tensor| (tensor.shape[0], tensor.values.iter().map(|&v| f64::from(v)).collect());
        let doubles: Wide = tensors.iter().map(|(name, tensor)| (name.clone(), double(tensor))).collect();
        let loss = |tensors: &Wide, features: &[f64]| explicit_loss(tensors, features, &labels, temperature);
        let (expected, least) = loss(&doubles, &wide);
        // Directions of vectors of no length are lost in single precision.
        prop_assume!(least > 0.05);
        prop_assert!((found.loss - expected).abs() < 1e-3 * expected.max(1.0), "{} and not {expected}", found.loss);

        // Finite differences, for the features and for some values of every tensor.
        const STEP: f64 = 1e-5;
        let largest = |values: &[f32]| values.iter().fold(0.1, |most: f64, v| most.max(f64::from(v.abs())));
        let close = |found: f32, [below, above]: [(f64, f64); 2], scale: f64| {
            (f64::from(found) - (above.0 - below.0) / (2.0 * STEP)).abs() < 5e-3 * scale
        };
        for at in 0..wide.len() {
            let ends = [-STEP, STEP].map(|by| {
                let mut moved = wide.clone();
                moved[at] += by;
                loss(&doubles, &moved)
            });
            prop_assert!(close(found.features[at], ends, largest(&found.features)), "feature {at}");
        }
        for (name, gradient) in &found.tensors {
            prop_assert_eq!(&gradient.shape, &tensors[name].shape);
            for at in [0, gradient.values.len() / 2, gradient.values.len() - 1] {
                let ends = [-STEP, STEP].map(|by| {
                    let mut moved = doubles.clone();
                    moved.get_mut(name).unwrap().1[at] += by;
                    loss(&moved, &wide)
                });
                prop_assert!(close(gradient.values[at], ends, largest(&gradient.values)), "{name} {at}");
            }
        }
    }
}

/// A BMP file of made-up pixels.
fn bmp(side: usize, seed: u64) -> Vec<u8> {
    let row = (3 * side).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for value in [54 + row * side, 0, 54, 40, side, side] {
        file.extend((value as u32).to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    file.extend([0; 24]);
    let name = format!("pixels {seed}");
    let noise = uniform(&name, row * side);
    file.extend(noise.map(|v| (127.5 * (v + 1.0)) as u8));
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A view is a window of the whole resized image, mirrored or not.
    #[test]
    fn a_view_is_a_window_of_the_resized_image(
        side in 1usize..40,
        (resize, crop) in (1usize..50).prop_flat_map(|resize| (Just(resize), 1..=resize)),
        (across, down) in (0.0f64..1.0, 0.0f64..1.0),
        mirrored in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let image = decode(&bmp(side, seed), &Limits::default()).unwrap();
        let transform = Transform { resize, filter: Filter::Bicubic, crop, mean: [0.3; 3], std: [0.2; 3] };
        let whole = Transform { crop: resize, ..transform }.apply(&image);
        let found = transform.view(&image, Crop { across, down, mirrored });
        let [left, top] = [across, down].map(|at| (at * (resize - crop + 1) as f64) as usize);
        let mut expected = Vec::new();
        for channel in whole.chunks(resize * resize) {
            for line in channel.chunks(resize).skip(top).take(crop) {
                let mut line = line[left..left + crop].to_vec();
                if mirrored {
                    line.reverse();
                }
                expected.extend(line);
            }
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_restored_state_takes_the_identical_next_step() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/training.json")).unwrap();
    for case in goldens["cases"].as_array().unwrap() {
        let labels = labels(&case["labels"]);
        let run = |threads: usize, interrupted: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (mut trained, batch) = trainer(case, &goldens);
                let first = step(&mut trained, &batch, &labels, 0.01).unwrap();
                if interrupted {
                    let state = trained.state();
                    (trained, _) = trainer(case, &goldens);
                    trained.restore(state).unwrap();
                }
                let second = step(&mut trained, &batch, &labels, 0.005).unwrap();
                (first.to_bits(), second.to_bits(), trained.state())
            })
        };
        let through = run(1, false);
        let name = &case["name"];
        assert!(through == run(1, true), "{name}: resumed");
        assert!(through == run(3, false), "{name}: threads");
    }
}

#[test]
fn what_leaves_the_frozen_blocks_does_not_depend_on_what_they_run_on() {
    let shape = VitShape {
        patch: 7,
        dim: 27,
        depth: 3,
        heads: 3,
        hidden: 50,
        registers: 2,
        layer_scale: true,
        gated: false,
    };
    let vit = Architecture::Vit {
        shape: Some(shape),
        positions: Default::default(),
        heads: None,
    };
    let rotary = Architecture::Vit {
        shape: Some(VitShape {
            dim: 24,
            gated: true,
            ..shape
        }),
        positions: Positions::Rotary,
        heads: None,
    };
    let kinds = [
        (vit, 28),
        (rotary, 28),
        (Architecture::ResNet(ResNetKind::ResNet18), 35),
        (Architecture::Lite(LiteKind::Lite0), 37),
        (Architecture::Conv4(6), 22),
    ];
    for (kind, side) in kinds {
        // Cut where maps are large and where they are small.
        for blocks in [1, kind.blocks() - 1] {
            let run = |isa| {
                let weights = Weights::first_values(&kind, side, 5).unwrap();
                let head = HeadShape {
                    hidden: 4,
                    embedding: 4,
                    width: 8,
                };
                let settings = TrainerSettings {
                    blocks: Some(blocks),
                    objective: ObjectiveSettings::Contrast {
                        head,
                        temperature: 0.07,
                    },
                    isa,
                    ..TrainerSettings::default()
                };
                let trainer = Trainer::new(kind, side, weights, settings, 0).unwrap();
                trainer.trunk().unwrap().run(&pixels(side))
            };
            let expected = run(Isa::Portable);
            let size = (expected.iter().map(|v| f64::from(v * v)).sum::<f64>() / expected.len() as f64).sqrt();
            let singles = Isa::ALL.into_iter().filter(|isa| isa.precision() == Precision::F32);
            for isa in singles.filter(|isa| isa.is_available()) {
                let found = run(isa);
                assert_eq!(found.len(), expected.len(), "{kind} on {isa}");
                let pairs = found.iter().zip(&expected);
                let most = pairs.map(|(f, e)| f64::from((f - e).abs())).fold(0.0, f64::max);
                assert!(most <= 2e-5 * size, "{kind} on {isa}: off by {most} of {size}");
            }
        }
    }
}

#[test]
fn what_cannot_be_trained_is_told() {
    let kind = Architecture::Conv4(4);
    let new = |blocks| {
        let weights = Weights::first_values(&kind, 16, 1).unwrap();
        let head = HeadShape {
            hidden: 4,
            embedding: 4,
            width: 8,
        };
        let settings = TrainerSettings {
            blocks,
            objective: ObjectiveSettings::Contrast {
                head,
                temperature: 0.07,
            },
            ..TrainerSettings::default()
        };
        Trainer::new(kind, 16, weights, settings, 0)
    };
    assert!(new(Some(5)).unwrap_err().to_string().contains("the network has 4"));
    assert!(new(Some(0)).is_err());
    let mut trainer = new(None).unwrap();
    let before = trainer.state();
    let image = 3 * 16 * 16;
    assert!(matches!(
        trainer.step(&vec![0.0; image + 1], &[0, 0], 0.1),
        Err(TrainError::Batch { .. })
    ));
    assert!(matches!(trainer.step(&[], &[], 0.1), Err(TrainError::Batch { .. })));
    let bad = vec![f32::NAN; 4 * image];
    assert!(matches!(
        trainer.step(&bad, &[0, 0, 1, 1], 0.1),
        Err(TrainError::NotFinite { .. })
    ));
    assert!(trainer.state() == before, "a bad batch changes nothing");
    let mut other = before.clone();
    other.remove("momentum.blocks.0.conv.weight");
    assert!(
        trainer
            .restore(other)
            .unwrap_err()
            .to_string()
            .contains("momentum.blocks.0.conv.weight")
    );
    let mut other = before.clone();
    other.insert(
        "stranger".into(),
        Tensor {
            shape: vec![1],
            values: vec![0.0],
        },
    );
    assert!(trainer.restore(other).is_err());
    assert!(trainer.state() == before, "a state that does not fit changes nothing");
    // A transformer from nothing needs its sizes.
    let vit = |shape| Architecture::Vit {
        shape,
        positions: Default::default(),
        heads: None,
    };
    assert!(
        Weights::first_values(&vit(None), 28, 0)
            .unwrap_err()
            .to_string()
            .contains("dim=")
    );
    let shape = VitShape {
        patch: 7,
        dim: 12,
        depth: 2,
        heads: 3,
        hidden: 24,
        registers: 0,
        layer_scale: false,
        gated: false,
    };
    let weights = Weights::first_values(&vit(Some(shape)), 28, 0).unwrap();
    assert_eq!(weights.tensors["pos_embed"].shape, [1, 17, 12]);
    NetworkEncoder::new(
        vit(None),
        transform(28),
        Weights {
            tensors: weights.tensors,
            ..Weights::default()
        },
        Isa::Portable,
    )
    .unwrap();
}
