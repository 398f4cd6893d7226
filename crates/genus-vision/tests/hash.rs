//! Hash heads learn as in PyTorch: `goldens/make_hash.py` trains some for a few steps.

mod made_up;

use std::collections::BTreeMap;

use genus_vision::train::{
    HashHead, HashSettings, HashShape, HashTrainer, ObjectiveSettings, TrainError, Trainer, TrainerSettings,
};
use genus_vision::{Architecture, Encoder, Isa, NetworkEncoder, Tensor, Weights};
use made_up::{architecture, assert_features, pixels, tensors, transform, uniform};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

type State = BTreeMap<String, Tensor>;

fn whole(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens/hash.json")).unwrap()
}

fn settings(goldens: &Value, head: &Value) -> HashSettings {
    HashSettings {
        shape: HashShape {
            hidden: whole(&head["hidden"]),
            embedding: whole(&head["embedding"]),
            bits: whole(&head["bits"]),
        },
        temperature: goldens["temperature"].as_f64().unwrap(),
        sign_weight: goldens["sign_weight"].as_f64().unwrap(),
    }
}

/// What a golden case trains: a head by itself, or with a network.
enum Learner {
    Head(Box<HashTrainer>),
    Network(Box<Trainer>),
}

impl Learner {
    fn of(case: &Value, goldens: &Value) -> Self {
        let head = &case["head"];
        let settings = settings(goldens, head);
        let [momentum, weight_decay] = ["momentum", "weight_decay"].map(|name| goldens[name].as_f64().unwrap());
        let mut learner = match case["side"].as_u64() {
            None => {
                let inputs = whole(&head["inputs"]);
                Self::Head(Box::new(
                    HashTrainer::new(inputs, settings, momentum, weight_decay, 0).unwrap(),
                ))
            }
            Some(side) => {
                let settings = TrainerSettings {
                    blocks: Some(whole(&case["blocks"])),
                    objective: ObjectiveSettings::Hash(settings),
                    momentum,
                    weight_decay,
                    fixed_statistics: false,
                    // Steps with the statistics of a small batch enlarge any difference in rounding, and the goldens are of
                    // rounding like this; what the trunk gives elsewhere is compared in `training.rs`.
                    isa: Isa::Portable,
                };
                let weights = Weights {
                    tensors: tensors(&case["tensors"]),
                    ..Weights::default()
                };
                let kind = architecture(&case["architecture"]);
                Self::Network(Box::new(
                    Trainer::new(kind, side as usize, weights, settings, 0).unwrap(),
                ))
            }
        };
        let mut state = learner.state();
        for (name, tensor) in tensors(&head["tensors"]) {
            let key = ["value.", "fixed."].map(|kind| format!("{kind}{name}"));
            let key = key.into_iter().find(|key| state.contains_key(key)).unwrap();
            state.get_mut(&key).unwrap().values = tensor.values;
        }
        learner.restore(state);
        learner
    }

    fn state(&self) -> State {
        match self {
            Self::Head(trainer) => trainer.state(),
            Self::Network(trainer) => trainer.state(),
        }
    }

    fn restore(&mut self, state: State) {
        match self {
            Self::Head(trainer) => trainer.restore(state).unwrap(),
            Self::Network(trainer) => trainer.restore(state).unwrap(),
        }
    }

    fn step(&mut self, case: &Value, labels: &[usize], rate: f64) -> f64 {
        match self {
            Self::Head(trainer) => trainer.step(&rows(case), labels, rate).unwrap(),
            Self::Network(trainer) => {
                let side = whole(&case["side"]);
                let batch = uniform("training pixels", labels.len() * 3 * side * side).map(|v| 1.5 * v);
                let through = trainer.trunk().unwrap().run(&batch.collect::<Vec<_>>());
                trainer.step(&through, labels, rate).unwrap()
            }
        }
    }

    /// Of the features, or of the two images of all goldens.
    fn hashes(&self, case: &Value) -> Vec<f32> {
        match self {
            Self::Head(trainer) => trainer.hashes(&rows(case)).unwrap(),
            Self::Network(trainer) => {
                let side = whole(&case["side"]);
                let encoder = NetworkEncoder::new(
                    *trainer.architecture(),
                    transform(side),
                    trainer.weights(),
                    trainer.isa(),
                );
                let features = encoder.unwrap().encode(&pixels(side)).unwrap();
                HashHead::new(trainer.head()).unwrap().hashes(&features).unwrap()
            }
        }
    }
}

fn rows(case: &Value) -> Vec<f32> {
    uniform("hash features", whole(&case["rows"]) * whole(&case["head"]["inputs"])).collect()
}

fn labels(case: &Value) -> Vec<usize> {
    case["labels"].as_array().unwrap().iter().map(whole).collect()
}

#[test]
fn steps_and_codes_are_those_of_pytorch() {
    let goldens = goldens();
    let cases = goldens["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let mut learner = Learner::of(case, &goldens);
        let before = learner.state();
        for (rate, expected) in numbers(&case["lrs"]).into_iter().zip(numbers(&case["losses"])) {
            let loss = learner.step(case, &labels(case), rate);
            assert!(
                (loss - expected).abs() < 1e-3 * expected,
                "{name}: {loss} and not {expected}"
            );
        }
        // Everything that PyTorch changed has changed as far, running statistics too, and nothing else.
        let after = learner.state();
        let moved = |name: &str| {
            let pairs = before[name].values.iter().zip(&after[name].values);
            pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
        };
        let mut changed = Vec::new();
        for (kind, list) in [("value.", "trained"), ("fixed.", "statistics")] {
            for row in case[list].as_array().unwrap() {
                let key = format!("{kind}{}", row[0].as_str().unwrap());
                let (found, expected) = (moved(&key), row[1].as_f64().unwrap());
                assert!(
                    (found - expected).abs() < 0.01 * expected + 1e-6,
                    "{name}: {key} moved by {found} and not {expected}"
                );
                changed.push(key);
            }
        }
        for key in after
            .keys()
            .filter(|key| !key.starts_with("momentum.") && !changed.contains(key))
        {
            // A bias before a normalisation has no gradient but what rounding leaves of it.
            assert!(moved(key) < 1e-4, "{name}: {key} moved by {}", moved(key));
        }
        assert_features(&learner.hashes(case), &case["hashes"], name);
    }
}

#[test]
fn a_restored_state_takes_the_identical_next_step() {
    let goldens = goldens();
    // The head by itself and with a transformer; the ResNet would add only time.
    for case in &goldens["cases"].as_array().unwrap()[..2] {
        let labels = labels(case);
        let run = |threads: usize, interrupted: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut learner = Learner::of(case, &goldens);
                let first = learner.step(case, &labels, 0.01);
                if interrupted {
                    let state = learner.state();
                    learner = Learner::of(case, &goldens);
                    learner.restore(state);
                }
                let second = learner.step(case, &labels, 0.005);
                (first.to_bits(), second.to_bits(), learner.state(), learner.hashes(case))
            })
        };
        let through = run(1, false);
        let name = &case["name"];
        assert!(through == run(1, true), "{name}: resumed");
        assert!(through == run(3, false), "{name}: threads");
    }
}

/// Tensors in double precision.
type Wide = BTreeMap<String, Vec<f64>>;

/// The loss as the paper writes it in double precision, and the least that something was divided by or bends at.
fn explicit_loss(tensors: &Wide, features: &[f64], labels: &[usize], settings: &HashSettings) -> (f64, f64) {
    let mut least = f64::INFINITY;
    let items = labels.len();
    let linear = |x: &[Vec<f64>], name: &str, bias: bool| -> Vec<Vec<f64>> {
        let weight = &tensors[&format!("{name}.weight")];
        let apply = |row: &Vec<f64>| {
            let outputs = weight.chunks(row.len()).enumerate();
            let outputs = outputs.map(|(at, w)| {
                let start = if bias {
                    tensors[&format!("{name}.bias")][at]
                } else {
                    0.0
                };
                start + w.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()
            });
            outputs.collect()
        };
        x.iter().map(apply).collect()
    };
    let mut norm = |mut x: Vec<Vec<f64>>, name: &str| {
        for channel in 0..x[0].len() {
            let mean = x.iter().map(|row| row[channel]).sum::<f64>() / items as f64;
            let variance = x.iter().map(|row| (row[channel] - mean).powi(2)).sum::<f64>() / items as f64;
            least = least.min(variance.sqrt());
            let [scale, shift] = ["weight", "bias"].map(|part| tensors[&format!("{name}.{part}")][channel]);
            for row in &mut x {
                row[channel] = (row[channel] - mean) / (variance + 1e-5).sqrt() * scale + shift;
            }
        }
        x
    };
    let gelu = |mut x: Vec<Vec<f64>>| {
        for value in x.iter_mut().flatten() {
            *value *= 0.5 * (1.0 + erf(*value / 2f64.sqrt()));
        }
        x
    };
    let x: Vec<Vec<f64>> = features.chunks(features.len() / items).map(<[f64]>::to_vec).collect();
    let x = gelu(linear(&x, "head.mlp.0", true));
    let x = gelu(linear(&x, "head.mlp.2", true));
    let x = gelu(norm(linear(&x, "head.mlp.4", true), "head.mlp.5"));
    let a = norm(linear(&x, "head.hash", false), "head.bn_h");
    let b = norm(linear(&x, "head.variance", false), "head.bn_v");
    let h: Vec<Vec<f64>> = a.iter().map(|row| row.iter().map(|v| v.tanh()).collect()).collect();
    let z: Vec<Vec<f64>> = h
        .iter()
        .zip(&b)
        .map(|(h, b)| {
            let x: Vec<f64> = h.iter().zip(b).map(|(h, b)| h * b / b.tanh()).collect();
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            least = least.min(length);
            x.into_iter().map(|x| x / length).collect()
        })
        .collect();
    let bend = h.iter().flatten().fold(f64::INFINITY, |least, h| least.min(h.abs()));
    let similar = |i: usize, j: usize| z[i].iter().zip(&z[j]).map(|(a, b)| a * b).sum::<f64>() / settings.temperature;
    let (mut contrast, mut anchors) = (0.0, 0.0);
    for i in 0..items {
        let others: Vec<usize> = (0..items).filter(|&j| j != i).collect();
        let positives: Vec<usize> = others.iter().copied().filter(|&j| labels[j] == labels[i]).collect();
        if positives.is_empty() {
            continue;
        }
        let total = others.iter().map(|&j| similar(i, j).exp()).sum::<f64>().ln();
        contrast += positives.iter().map(|&j| total - similar(i, j)).sum::<f64>() / positives.len() as f64;
        anchors += 1.0;
    }
    let weak = h.iter().flatten().map(|h| 1.0 - h.abs()).sum::<f64>() / (items * settings.shape.bits) as f64;
    let loss = if anchors > 0.0 { contrast / anchors } else { 0.0 };
    (loss + settings.sign_weight * weak, least.min(100.0 * bend))
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
    // The same inputs every time: where a ReLU turns there is no slope to compare with.
    #![proptest_config(ProptestConfig {
        cases: 96,
        max_global_rejects: 4096,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_250_508),
        ..ProptestConfig::default()
    })]

    /// What a step goes against is the slope of the loss.
    #[test]
    fn gradients_are_finite_differences(
        seed in 0u64..1000,
        labels in prop::collection::vec(0usize..3, 4..9),
        (inputs, hidden, embedding, bits) in (2usize..5, 2usize..6, 2usize..5, 1usize..5),
        temperature in 0.1f64..1.0,
        sign_weight in 0.0f64..4.0,
    ) {
        let settings = HashSettings { shape: HashShape { hidden, embedding, bits }, temperature, sign_weight };
        let mut trainer = HashTrainer::new(inputs, settings, 0.0, 0.0, seed).unwrap();
        let mut state = trainer.state();
        for (name, tensor) in state.iter_mut().filter(|(name, _)| name.starts_with("value.")) {
            let count = tensor.values.len();
            // Scales near one, everything else around zero.
            let offset = if name.contains("bn_") && name.ends_with("weight") || name.ends_with("mlp.5.weight") { 1.5 } else { 0.0 };
            tensor.values = uniform(&format!("{seed} {name}"), count).map(|v| v + offset).collect();
        }
        let values: BTreeMap<&str, &Tensor> = state.iter().filter_map(|(name, tensor)| Some((name.strip_prefix("value.")?, tensor))).collect();
        let wide: Wide = values.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.values.iter().map(|&v| f64::from(v)).collect())).collect();
        trainer.restore(state.clone()).unwrap();
        let features: Vec<f32> = uniform(&format!("{seed} rows"), labels.len() * inputs).collect();
        let doubles: Vec<f64> = features.iter().map(|&v| f64::from(v)).collect();
        let loss = |tensors: &Wide| explicit_loss(tensors, &doubles, &labels, &settings);
        let (expected, least) = loss(&wide);
        // Directions of vectors of no length are lost in single precision, and the loss bends where a sign turns.
        prop_assume!(least > 0.05);
        let found = trainer.step(&features, &labels, 1.0).unwrap();
        prop_assert!((found - expected).abs() < 1e-3 * expected.max(1.0), "{found} and not {expected}");
        // Without momentum and decay the direction of a step is its gradient.
        let after = trainer.state();
        const STEP: f64 = 1e-5;
        for name in wide.keys() {
            let gradient = &after[&format!("momentum.{name}")].values;
            let scale = gradient.iter().fold(0.1, |most: f64, v| most.max(f64::from(v.abs())));
            for at in [0, gradient.len() / 2, gradient.len() - 1] {
                let [below, above] = [-STEP, STEP].map(|by| {
                    let mut moved = wide.clone();
                    moved.get_mut(name).unwrap()[at] += by;
                    loss(&moved).0
                });
                let slope = (above - below) / (2.0 * STEP);
                prop_assert!((f64::from(gradient[at]) - slope).abs() < 5e-3 * scale, "{name} {at}: {} and not {slope}", gradient[at]);
            }
        }
    }
}

fn small() -> HashSettings {
    HashSettings {
        shape: HashShape {
            hidden: 8,
            embedding: 6,
            bits: 5,
        },
        ..HashSettings::default()
    }
}

#[test]
fn where_both_ways_are_zero_nothing_is_divided_by_zero() {
    // Rows that are all alike: batch normalisation leaves nothing of them.
    let mut trainer = HashTrainer::new(3, small(), 0.9, 5e-5, 1).unwrap();
    for _ in 0..3 {
        let loss = trainer.step(&[1.0; 12], &[0, 0, 1, 1], 0.1).unwrap();
        // As far from a sign as can be, and no row is closer to one than to another: ln 3, and 3 · 1.
        assert!((loss - (3.0 + 3f64.ln())).abs() < 1e-4, "{loss}");
    }
    let finite = |tensor: &Tensor| tensor.values.iter().all(|v| v.is_finite());
    assert!(trainer.state().values().all(finite));
    assert!(trainer.hashes(&[1.0; 6]).unwrap().iter().all(|h| h.is_finite()));
}

#[test]
fn codes_of_classes_that_are_far_apart_are_learnt() {
    let rows = |count: usize, seed: &str| -> (Vec<f32>, Vec<usize>) {
        let noise: Vec<f32> = uniform(seed, count * 6).collect();
        let value = |at: usize| 0.15 * noise[at] + if at % 6 == (at / 6) % 6 { 1.0 } else { 0.0 };
        (
            (0..count * 6).map(value).collect(),
            (0..count).map(|row| row % 6).collect(),
        )
    };
    let settings = HashSettings {
        shape: HashShape {
            hidden: 32,
            embedding: 16,
            bits: 8,
        },
        ..HashSettings::default()
    };
    let mut trainer = HashTrainer::new(6, settings, 0.9, 5e-5, 0).unwrap();
    let (features, labels) = rows(48, "learnt");
    let losses: Vec<f64> = (0..300)
        .map(|_| trainer.step(&features, &labels, 0.05).unwrap())
        .collect();
    assert!(losses[299] < 0.5 * losses[0], "{} to {}", losses[0], losses[299]);
    // Rows that it has not seen get the code of their class, and classes differ.
    let (unseen, labels) = rows(60, "not seen");
    let hashes = trainer.hashes(&unseen).unwrap();
    let codes: Vec<Vec<bool>> = hashes.chunks(8).map(|h| h.iter().map(|h| *h > 0.0).collect()).collect();
    let same = (0..60).filter(|&row| codes[row] == codes[labels[row]]).count();
    assert!(same >= 54, "{same} of 60");
    for class in 1..6 {
        assert!(!codes[..class].contains(&codes[class]), "{class}: {:?}", &codes[..6]);
    }
    // A row's values do not depend on those beside it.
    let head = HashHead::new(trainer.tensors()).unwrap();
    assert_eq!((head.inputs(), head.bits()), (6, 8));
    let many = [&unseen[..], &features[..], &unseen[..]].concat();
    assert_eq!(head.hashes(&many).unwrap()[..hashes.len()], hashes);
    assert_eq!(head.hashes(&unseen[6..12]).unwrap(), hashes[8..16]);
    assert!(head.hashes(&[]).unwrap().is_empty());
}

#[test]
fn what_is_no_head_or_no_batch_is_told() {
    let shape = HashShape {
        bits: 0,
        ..small().shape
    };
    let none = HashSettings { shape, ..small() };
    assert!(matches!(
        HashTrainer::new(3, none, 0.9, 0.0, 0),
        Err(TrainError::Sizes { .. })
    ));
    assert!(HashTrainer::new(0, small(), 0.9, 0.0, 0).is_err());
    let kind = Architecture::Conv4(4);
    let settings = TrainerSettings {
        objective: ObjectiveSettings::Hash(none),
        ..TrainerSettings::default()
    };
    let weights = Weights::first_values(&kind, 16, 0).unwrap();
    assert!(Trainer::new(kind, 16, weights, settings, 0).is_err());

    let mut trainer = HashTrainer::new(3, small(), 0.9, 0.0, 0).unwrap();
    let before = trainer.state();
    for (values, labels) in [(7, 2), (6, 3), (9, 2), (0, 0)] {
        let result = trainer.step(&vec![0.0; values], &vec![0; labels], 0.1);
        assert!(
            matches!(result, Err(TrainError::Batch { .. } | TrainError::Rows { .. })),
            "{values} {labels}"
        );
    }
    assert!(matches!(
        trainer.step(&[f32::NAN; 12], &[0, 0, 1, 1], 0.1),
        Err(TrainError::NotFinite { .. })
    ));
    assert!(trainer.state() == before, "a bad batch changes nothing");
    assert!(trainer.hashes(&[0.0; 4]).is_err());

    type Damage = fn(&mut State);
    let damages: [(Damage, &str); 6] = [
        (
            |state| drop(state.remove("head.bn_v.running_var")),
            "head.bn_v.running_var is missing",
        ),
        (
            |state| drop(state.remove("head.hash.weight")),
            "head.hash.weight is missing",
        ),
        (
            |state| state.get_mut("head.bn_h.weight").unwrap().shape = vec![9],
            "head.bn_h.weight is",
        ),
        (
            |state| state.get_mut("head.mlp.0.weight").unwrap().shape = vec![24],
            "no matrix",
        ),
        (
            |state| state.get_mut("head.mlp.4.bias").unwrap().values[0] = f32::NAN,
            "no numbers",
        ),
        (
            |state| {
                let other = state["head.mlp.0.bias"].clone();
                state.insert("stranger".into(), other);
            },
            "stranger is not part",
        ),
    ];
    for (damage, part) in damages {
        let mut tensors = trainer.tensors();
        damage(&mut tensors);
        let error = HashHead::new(tensors).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
