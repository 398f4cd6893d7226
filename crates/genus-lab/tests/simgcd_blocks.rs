//! SimGCD with the last blocks of a network trained in every episode.

use std::f64::consts::PI;

use genus_core::Features;
use genus_core::rng::Rng;
use genus_lab::{SimGcd, SimGcdError, SimGcdInit, SimGcdTrainer};
use genus_vision::train::{
    DistilLoss, ObjectiveSettings, SelfDistilSettings, TrainError, Trainer, TrainerSettings, UNLABELLED,
};
use genus_vision::{Architecture, Encoder, Filter, Isa, NetworkEncoder, Transform, Weights};

const SIDE: usize = 16;
const KIND: Architecture = Architecture::Conv4(16);

fn weights() -> Weights {
    Weights::first_values(&KIND, SIDE, 7).unwrap()
}

fn method() -> SimGcd {
    SimGcd {
        epochs: 50,
        // At the default a network that was never trained runs away.
        rate: 0.02,
        entropy: 4.0,
        blocks: 1,
        hidden: 16,
        init: SimGcdInit::Supports,
        ..SimGcd::default()
    }
}

/// A view of images: every class is stripes of its own colour and width, more or less.
fn view(classes: &[usize], seed: u64) -> Vec<f32> {
    let mut pixels = Vec::new();
    for (image, &class) in classes.iter().enumerate() {
        let mut rng = Rng::new(seed, &[image as u64]);
        for channel in 0..3 {
            for at in 0..SIDE * SIDE {
                let stripe = ((at % SIDE) / (1 + class)).is_multiple_of(2);
                let bright = if stripe == (channel == class % 3) { 1.0 } else { -1.0 };
                pixels.push(bright + 0.3 * (2.0 * rng.unit() - 1.0) as f32);
            }
        }
    }
    pixels
}

/// The examples, their labels and the queries, as the frozen blocks give two views of them, and the queries' classes.
struct Episode {
    support: Vec<Vec<f32>>,
    labels: Vec<usize>,
    queries: Vec<Vec<f32>>,
    truth: Vec<usize>,
}

fn episode(trainer: &SimGcdTrainer) -> Episode {
    let (labels, truth): (Vec<usize>, Vec<usize>) =
        ((0..9).map(|at| at / 3).collect(), (0..20).map(|at| at / 5).collect());
    let through = |classes: &[usize], seed| trainer.trunk().unwrap().run(&view(classes, seed));
    Episode {
        support: vec![through(&labels, 1), through(&labels, 2)],
        queries: vec![through(&truth, 3), through(&truth, 4)],
        labels,
        truth,
    }
}

fn trainer(method: &SimGcd) -> SimGcdTrainer {
    method.trainer(KIND, SIDE, weights(), 4).unwrap()
}

#[test]
fn what_is_easy_is_found_again_in_every_episode() {
    let mut trainer = trainer(&method());
    let Episode {
        support,
        labels,
        queries,
        truth,
    } = episode(&trainer);
    let found = trainer.fit(&support, &labels, &queries, 5).unwrap();
    assert_eq!(found, truth);
    let losses = trainer.losses().to_vec();
    assert_eq!(losses.len(), 50);
    assert!(losses[49] < losses[0], "{losses:?}");
    // The next episode begins where this one did; another seed begins elsewhere.
    assert_eq!(trainer.fit(&support, &labels, &queries, 5).unwrap(), found);
    assert_eq!(trainer.losses(), losses);
    trainer.fit(&support, &labels, &queries, 6).unwrap();
    assert_ne!(trainer.losses(), losses);
    // So does one on other threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.install(|| {
        let mut trainer = self::trainer(&method());
        assert_eq!(trainer.fit(&support, &labels, &queries, 5).unwrap(), found);
        assert_eq!(trainer.losses(), losses);
    });
}

#[test]
fn losses_are_those_of_steps_taken_one_by_one() {
    let method = SimGcd {
        epochs: 4,
        rate: 0.1,
        entropy: 2.0,
        warm_up: 3,
        init: SimGcdInit::Random,
        ..method()
    };
    let mut trainer = trainer(&method);
    let Episode {
        support,
        labels,
        queries,
        ..
    } = episode(&trainer);
    trainer.fit(&support, &labels, &queries, 9).unwrap();

    let settings = TrainerSettings {
        blocks: Some(1),
        objective: ObjectiveSettings::SelfDistil(SelfDistilSettings {
            heads: 4,
            hidden: 16,
            loss: DistilLoss::default(),
            ..SelfDistilSettings::default()
        }),
        fixed_statistics: true,
        ..TrainerSettings::default()
    };
    let mut steps = Trainer::new(KIND, SIDE, weights(), settings, 9).unwrap();
    let all: Vec<usize> = labels.iter().copied().chain([UNLABELLED; 20]).collect();
    let batch = [&support[0], &queries[0], &support[1], &queries[1]].map(|rows| &rows[..]);
    for (epoch, teacher) in [0.07, 0.055, 0.04, 0.04].into_iter().enumerate() {
        steps.set_teacher(teacher);
        let rate = 1e-4 + (0.1 - 1e-4) * (1.0 + (PI * epoch as f64 / 4.0).cos()) / 2.0;
        let loss = steps.step(&batch.concat(), &all.repeat(2), rate).unwrap();
        let found = trainer.losses()[epoch];
        assert!(
            (found - loss).abs() < 1e-6 * loss,
            "epoch {epoch}: {found} and not {loss}"
        );
    }
}

#[test]
fn without_learning_it_is_the_nearest_example() {
    // As good as no rate: what remains is where heads begin, which frozen features say too.
    let method = SimGcd {
        epochs: 1,
        rate: 1e-9,
        ..method()
    };
    let mut trainer = trainer(&method);
    let Episode {
        support,
        labels,
        queries,
        truth,
    } = episode(&trainer);
    let found = trainer.fit(&support, &labels, &queries, 5).unwrap();
    let transform = Transform {
        resize: SIDE,
        filter: Filter::Bicubic,
        crop: SIDE,
        mean: [0.5; 3],
        std: [0.5; 3],
    };
    let encoder = NetworkEncoder::new(KIND, transform, weights(), Isa::Portable).unwrap();
    let features = |classes: &[usize], seed| {
        let values = encoder.encode(&view(classes, seed)).unwrap();
        Features::new(values.len() / classes.len(), values).unwrap()
    };
    let examples = [features(&labels, 1), features(&labels, 2)];
    let items = [features(&truth, 3), features(&truth, 4)];
    let frozen = method.fit(&examples, &labels, &items, 4, 5).unwrap();
    assert_eq!(found, frozen.predict(&items[0]).unwrap());
}

#[test]
fn one_view_is_both_and_two_of_three_are_drawn() {
    let method = SimGcd { epochs: 5, ..method() };
    let mut trainer = trainer(&method);
    let Episode {
        support,
        labels,
        queries,
        ..
    } = episode(&trainer);
    let mut losses = |views: &[usize]| {
        let pick = |from: &[Vec<f32>]| views.iter().map(|&view| from[view].clone()).collect::<Vec<_>>();
        trainer.fit(&pick(&support), &labels, &pick(&queries), 1).unwrap();
        trainer.losses().to_vec()
    };
    assert_eq!(losses(&[0]), losses(&[0, 0]));
    assert_eq!(losses(&[1]), losses(&[1, 1, 1]));
    assert_ne!(losses(&[0, 1, 1]), losses(&[0, 0, 1]));
}

#[test]
fn what_cannot_be_trained_is_told() {
    let none = SimGcd { blocks: 0, ..method() };
    assert!(matches!(
        none.trainer(KIND, SIDE, weights(), 4),
        Err(SimGcdError::Train(TrainError::Blocks { .. }))
    ));
    assert!(matches!(
        method().trainer(KIND, SIDE, weights(), 0),
        Err(SimGcdError::Train(TrainError::Sizes { .. }))
    ));
    let mut trainer = trainer(&method());
    let Episode {
        support,
        labels,
        queries,
        ..
    } = episode(&trainer);
    let mut fit =
        |support: &[Vec<f32>], labels: &[usize], queries: &[Vec<f32>]| trainer.fit(support, labels, queries, 0);
    assert!(matches!(fit(&[], &labels, &[]), Err(SimGcdError::Views { .. })));
    assert!(matches!(
        fit(&support[..1], &labels, &queries),
        Err(SimGcdError::Views { .. })
    ));
    assert!(matches!(fit(&support, &[], &queries), Err(SimGcdError::EmptySupport)));
    assert!(matches!(
        fit(&support, &[4; 9], &queries),
        Err(SimGcdError::TooFewHeads { class: 4, heads: 4 })
    ));
    assert!(matches!(
        fit(&support, &labels[1..], &queries),
        Err(SimGcdError::Values { what: "examples", .. })
    ));
    let short = [queries[0].clone(), queries[1][1..].to_vec()];
    assert!(matches!(
        fit(&support, &labels, &short),
        Err(SimGcdError::Values {
            what: "queries",
            view: 1,
            ..
        })
    ));
    // No query is no mistake.
    let none = [Vec::new(), Vec::new()];
    assert!(fit(&support, &labels, &none).unwrap().is_empty());
}
