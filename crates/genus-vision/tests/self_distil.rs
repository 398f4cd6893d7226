//! The objective of SimGCD is that of PyTorch: `goldens/make_self_distil.py` trains with it for a few steps.

mod made_up;

use std::collections::BTreeMap;

use genus_vision::train::{
    DistilLoss, ObjectiveSettings, SelfDistilHead, SelfDistilSettings, TrainError, Trainer, TrainerSettings, UNLABELLED,
};
use genus_vision::{Architecture, Encoder, Isa, NetworkEncoder, Tensor, Weights};
use made_up::{architecture, assert_features, pixels, tensors, transform, uniform};
use serde_json::Value;

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens/self_distil.json")).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn whole(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// The labels of both views.
fn labels(case: &Value) -> Vec<usize> {
    let label = |label: &Value| label.as_u64().map_or(UNLABELLED, |label| label as usize);
    let once: Vec<usize> = case["labels"].as_array().unwrap().iter().map(label).collect();
    once.repeat(2)
}

fn settings(goldens: &Value, case: &Value) -> SelfDistilSettings {
    let head = &case["head"];
    SelfDistilSettings {
        heads: whole(&head["heads"]),
        hidden: whole(&head["hidden"]),
        embedding: whole(&head["embedding"]),
        loss: DistilLoss {
            supervised: number(&goldens["supervised"]),
            entropy: number(&goldens["entropy"]),
            student: number(&goldens["student"]),
            teacher: numbers(&case["teachers"])[0],
        },
    }
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

fn assert_near(found: f64, expected: f64, share: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(
        off < share * expected.abs() + 1e-6,
        "{what}: {found} and not {expected}"
    );
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    let goldens = goldens();
    let case = &goldens["cases"][0];
    let inputs = whole(&case["head"]["inputs"]);
    let labels = labels(case);
    let features: Vec<f32> = uniform("self-distil features", labels.len() * inputs).collect();
    let before = tensors(&case["head"]["tensors"]);
    let (mut now, mut momentum) = (before.clone(), BTreeMap::new());
    let [decay, keep] = ["weight_decay", "momentum"].map(|name| number(&goldens[name]));
    for (step, &teacher) in numbers(&case["teachers"]).iter().enumerate() {
        let mut settings = settings(&goldens, case);
        settings.loss.teacher = teacher;
        let head = SelfDistilHead::new(inputs, settings).unwrap();
        let found = head.gradients(&now, &features, &labels).unwrap();
        assert_near(
            found.loss,
            numbers(&case["losses"])[step],
            1e-5,
            &format!("loss of step {step}"),
        );
        if step == 0 {
            let expected: Vec<f64> = case["gradients"]["features"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(numbers)
                .collect();
            let most = expected.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            assert_eq!(found.features.len(), expected.len());
            for (&found, expected) in found.features.iter().zip(expected) {
                assert!(
                    (f64::from(found) - expected).abs() < 1e-4 * most,
                    "{found} and not {expected}"
                );
            }
        }
        assert_eq!(found.tensors.len(), now.len());
        for (name, gradient) in found.tensors {
            let gradient: Vec<f64> = gradient.values.iter().map(|&v| f64::from(v)).collect();
            if step == 0 {
                let expected = number(&case["gradients"][&name]);
                assert_near(length(gradient.iter().copied()), expected, 1e-4, &name);
            }
            // What a trainer does, so that the next loss is the next golden.
            let tensor = now.get_mut(&name).unwrap();
            let decay = if tensor.shape.len() > 1 { decay } else { 0.0 };
            let momentum = momentum.entry(name).or_insert_with(|| vec![0.0; gradient.len()]);
            for ((value, before), slope) in tensor.values.iter_mut().zip(momentum).zip(gradient) {
                *before = keep * *before + slope + decay * f64::from(*value);
                *value -= (numbers(&case["lrs"])[step] * *before) as f32;
            }
        }
    }
}

/// The trainer of the golden network with the golden head.
fn trainer(goldens: &Value, case: &Value) -> Trainer {
    let settings = TrainerSettings {
        blocks: Some(whole(&case["blocks"])),
        objective: ObjectiveSettings::SelfDistil(settings(goldens, case)),
        momentum: number(&goldens["momentum"]),
        weight_decay: number(&goldens["weight_decay"]),
        fixed_statistics: true,
        ..TrainerSettings::default()
    };
    let weights = Weights {
        tensors: tensors(&case["tensors"]),
        ..Weights::default()
    };
    let kind = architecture(&case["architecture"]);
    let mut trainer = Trainer::new(kind, whole(&case["side"]), weights, settings, 0).unwrap();
    let mut state = trainer.state();
    for (name, tensor) in tensors(&case["head"]["tensors"]) {
        state.get_mut(&format!("value.{name}")).unwrap().values = tensor.values;
    }
    trainer.restore(state).unwrap();
    trainer
}

#[test]
fn steps_with_a_network_are_those_of_pytorch() {
    let goldens = goldens();
    let case = &goldens["cases"][1];
    let mut trainer = trainer(&goldens, case);
    let (labels, side) = (labels(case), whole(&case["side"]));
    let batch: Vec<f32> = uniform("training pixels", labels.len() * 3 * side * side)
        .map(|v| 1.5 * v)
        .collect();
    let batch = trainer.trunk().unwrap().run(&batch);
    let before = trainer.state();
    let steps = numbers(&case["lrs"]).into_iter().zip(numbers(&case["teachers"]));
    for ((rate, teacher), expected) in steps.zip(numbers(&case["losses"])) {
        trainer.set_teacher(teacher);
        let loss = trainer.step(&batch, &labels, rate).unwrap();
        assert_near(loss, expected, 1e-4, "loss");
    }
    let after = trainer.state();
    let moved = |key: &str| {
        let pairs = before[key].values.iter().zip(&after[key].values);
        length(pairs.map(|(a, b)| f64::from(a - b)))
    };
    let mut changed = Vec::new();
    for row in case["trained"].as_array().unwrap() {
        let key = format!("value.{}", row[0].as_str().unwrap());
        assert_near(moved(&key), number(&row[1]), 2e-3, &key);
        changed.push(key);
    }
    for key in after.keys() {
        assert!(
            key.starts_with("momentum.") || changed.contains(key) || moved(key) == 0.0,
            "{key}"
        );
    }
    // The trainer sees what an encoder with its weights sees.
    let two = trainer.trunk().unwrap().run(&pixels(side));
    let features = trainer.features(&two, 2).unwrap();
    assert_features(&features, &case["features"], "trainer");
    let encoder = NetworkEncoder::new(
        *trainer.architecture(),
        transform(side),
        trainer.weights(),
        Isa::Portable,
    )
    .unwrap();
    assert_features(&encoder.encode(&pixels(side)).unwrap(), &case["features"], "encoder");
}

/// A small trainer from nothing; convolutions, so that there are statistics to keep.
fn small(seed: u64) -> Trainer {
    let kind = Architecture::Conv4(4);
    let weights = Weights::first_values(&kind, 16, 1).unwrap();
    let settings = TrainerSettings {
        blocks: Some(2),
        objective: ObjectiveSettings::SelfDistil(SelfDistilSettings {
            heads: 3,
            hidden: 8,
            embedding: 4,
            loss: DistilLoss::default(),
        }),
        fixed_statistics: true,
        ..TrainerSettings::default()
    };
    Trainer::new(kind, 16, weights, settings, seed).unwrap()
}

#[test]
fn a_restart_is_a_beginning_at_any_number_of_threads() {
    let images: Vec<f32> = uniform("restart", 6 * 3 * 16 * 16).collect();
    let labels = [0, 1, UNLABELLED, 0, 1, UNLABELLED];
    let run = |threads: usize, restarted: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = small(if restarted { 1 } else { 2 });
            let batch = trainer.trunk().unwrap().run(&images);
            if restarted {
                trainer.step(&batch, &labels, 0.1).unwrap();
                trainer.restart(2);
            }
            let first = trainer.state();
            let loss = trainer.step(&batch, &labels, 0.1).unwrap();
            (first, loss.to_bits(), trainer.state())
        })
    };
    let fresh = run(1, false);
    assert!(fresh == run(1, true), "restarted");
    assert!(fresh == run(3, true), "threads");
    assert!(fresh.0 != small(3).state(), "seeds differ");
}

#[test]
fn the_teacher_matters() {
    let images: Vec<f32> = uniform("teacher", 6 * 3 * 16 * 16).collect();
    let labels = [0, 1, UNLABELLED, 0, 1, UNLABELLED];
    let loss = |temperature: f64| {
        let mut trainer = small(0);
        trainer.set_teacher(temperature);
        let batch = trainer.trunk().unwrap().run(&images);
        trainer.step(&batch, &labels, 0.1).unwrap()
    };
    assert!(loss(0.04) != loss(0.07));
}

#[test]
fn what_is_no_batch_of_two_views_is_told() {
    let mut trainer = small(0);
    let images: Vec<f32> = uniform("bad", 4 * 3 * 16 * 16).collect();
    let batch = trainer.trunk().unwrap().run(&images);
    let each = batch.len() / 4;
    let before = trainer.state();
    for (rows, labels) in [
        (3, &[0, 0, 0][..]),
        (4, &[0, 1, 1, 0]),
        (4, &[0, 3, 0, 3]),
        (4, &[0, UNLABELLED, UNLABELLED, 0]),
        (1, &[0]),
    ] {
        let error = trainer.step(&batch[..rows * each], labels, 0.1).unwrap_err();
        assert!(matches!(error, TrainError::Views { .. }), "{labels:?}: {error}");
    }
    assert!(trainer.state() == before);
    // Without any label there is still something to learn.
    assert!(trainer.step(&batch, &[UNLABELLED; 4], 0.1).unwrap().is_finite());
    assert!(matches!(
        trainer.features(&batch, 3 * each + 1),
        Err(TrainError::Batch { .. })
    ));
    assert!(matches!(trainer.features(&[], 0), Err(TrainError::Batch { .. })));

    let nothing = SelfDistilSettings {
        heads: 0,
        ..SelfDistilSettings::default()
    };
    assert!(matches!(SelfDistilHead::new(4, nothing), Err(TrainError::Sizes { .. })));
    let head = SelfDistilHead::new(
        4,
        SelfDistilSettings {
            heads: 2,
            hidden: 3,
            embedding: 3,
            loss: DistilLoss::default(),
        },
    );
    let head = head.unwrap();
    let tensors: BTreeMap<String, Tensor> = head.first_values(0);
    assert_eq!(tensors[SelfDistilHead::CLASSIFIER].shape, [2, 4]);
    assert!(head.gradients(&tensors, &[0.5; 8], &[0, 0]).is_ok());
    assert!(matches!(
        head.gradients(&tensors, &[0.5; 7], &[0, 0]),
        Err(TrainError::Batch { .. })
    ));
}
