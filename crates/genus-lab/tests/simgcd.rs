//! SimGCD on frozen features is that of PyTorch (`goldens/make_simgcd.py`), and its gradient that of its definition.

use genus_core::Features;
use genus_core::methods::Values;
use genus_core::metrics::{Convention, Evaluation, accuracy};
use genus_core::rng::Rng;
use genus_lab::{SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn whole(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|v| v as usize).collect()
}

fn matrix(value: &Value) -> Features {
    let row = |row: &Value| numbers(row).into_iter().map(|v| v as f32).collect::<Vec<_>>();
    Features::from_rows(value.as_array().unwrap().iter().map(row)).unwrap()
}

fn matrices(value: &Value) -> Vec<Features> {
    value.as_array().unwrap().iter().map(matrix).collect()
}

#[test]
fn training_is_that_of_pytorch() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/simgcd.json")).unwrap();
    let cases = goldens["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let name = &case["name"];
        let number = |field: &str| case[field].as_f64().unwrap();
        let method = SimGcd {
            epochs: number("epochs") as usize,
            rate: number("rate"),
            momentum: number("momentum"),
            weight_decay: number("weight_decay"),
            supervised: number("supervised"),
            entropy: number("entropy"),
            student: number("student"),
            teacher: (numbers(&case["teacher"])[0], numbers(&case["teacher"])[1]),
            warm_up: number("warm_up") as usize,
            ..SimGcd::default()
        };
        let (support, queries) = (matrices(&case["support"]), matrices(&case["queries"]));
        let first = matrix(&case["first"]);
        let found = method
            .fit_from(&first, &support, &whole(&case["labels"]), &queries, 0)
            .unwrap();
        let losses = numbers(&case["losses"]);
        assert_eq!(found.losses().len(), losses.len());
        for (epoch, (found, expected)) in found.losses().iter().zip(losses).enumerate() {
            assert!(
                (found - expected).abs() < 1e-5 * expected.max(0.1),
                "{name}, epoch {epoch}: {found} and not {expected}"
            );
        }
        let expected = matrix(&case["weights"]);
        for (found, expected) in found.weights().values().iter().zip(expected.values()) {
            assert!((found - expected).abs() < 2e-5, "{name}: {found} and not {expected}");
        }
        assert_eq!(
            found.predict(&queries[0]).unwrap(),
            whole(&case["predictions"]),
            "{name}"
        );
    }
}

#[test]
fn the_default_is_the_setting_of_the_golden() {
    let goldens: Value = serde_json::from_str(include_str!("goldens/simgcd.json")).unwrap();
    let case = &goldens["cases"][0];
    let default = SimGcd::default();
    let fields = [
        ("epochs", default.epochs as f64),
        ("rate", default.rate),
        ("momentum", default.momentum),
        ("weight_decay", default.weight_decay),
        ("supervised", default.supervised),
        ("entropy", default.entropy),
        ("student", default.student),
        ("warm_up", default.warm_up as f64),
    ];
    for (field, value) in fields {
        assert_eq!(case[field].as_f64(), Some(value), "{field}");
    }
    assert_eq!(numbers(&case["teacher"]), [default.teacher.0, default.teacher.1]);
    assert_eq!(default.init, SimGcdInit::Random);
}

/// A random episode: matrices of views, labels, and how many heads there are.
struct Random {
    support: Vec<Features>,
    labels: Vec<usize>,
    queries: Vec<Features>,
    heads: usize,
}

fn random_matrix(rng: &mut Rng, rows: usize, dim: usize) -> Features {
    let values = (0..rows * dim).map(|_| (2.0 * rng.unit() - 1.0) as f32).collect();
    Features::new(dim, values).unwrap()
}

fn random(rng: &mut Rng, views: usize) -> Random {
    let heads = 1 + rng.below(6);
    let (examples, queries, dim) = (1 + rng.below(7), rng.below(9), 2 + rng.below(20));
    let known = 1 + rng.below(heads);
    Random {
        labels: (0..examples).map(|_| rng.below(known)).collect(),
        support: (0..views).map(|_| random_matrix(rng, examples, dim)).collect(),
        queries: (0..views).map(|_| random_matrix(rng, queries, dim)).collect(),
        heads,
    }
}

/// The loss from its definition, in double precision. The teacher looks at `taught_by`, which is not differentiated.
fn definition(method: &SimGcd, episode: &Random, weights: &[f64], taught_by: &[f64]) -> f64 {
    let dim = episode.support[0].dim();
    let unit = |row: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        let row: Vec<f64> = row.collect();
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        row.into_iter().map(|v| v / length).collect()
    };
    // The predictions of a view at a temperature.
    let predict = |weights: &[f64], view: usize, temperature: f64| -> Vec<Vec<f64>> {
        let heads: Vec<Vec<f64>> = weights
            .chunks(dim)
            .map(|head| unit(&mut head.iter().copied()))
            .collect();
        let rows = episode.support[view].iter().chain(episode.queries[view].iter());
        let row = |row: &[f32]| {
            let x = unit(&mut row.iter().map(|&v| f64::from(v)));
            let logit = |head: &Vec<f64>| (head.iter().zip(&x).map(|(a, b)| a * b).sum::<f64>() / temperature).exp();
            let all: Vec<f64> = heads.iter().map(logit).collect();
            let total: f64 = all.iter().sum();
            all.into_iter().map(|p| p / total).collect()
        };
        rows.map(row).collect()
    };
    // One view is both.
    let pair = [0, episode.support.len() - 1];
    let students = pair.map(|view| predict(weights, view, method.student));
    let teachers = pair.map(|view| predict(taught_by, view, method.teacher.0));
    let rows = students[0].len() as f64;
    let cross = |q: &[Vec<f64>], p: &[Vec<f64>]| -> f64 {
        let terms = q.iter().flatten().zip(p.iter().flatten());
        -terms.map(|(q, p)| q * p.ln()).sum::<f64>() / rows
    };
    let distilled = (cross(&teachers[0], &students[1]) + cross(&teachers[1], &students[0])) / 2.0;
    let mean = |head: usize| students.iter().flatten().map(|row| row[head]).sum::<f64>() / (2.0 * rows);
    let entropy: f64 = (0..episode.heads).map(|head| -mean(head) * mean(head).ln()).sum();
    let labelled = |p: &Vec<Vec<f64>>| {
        let terms = episode.labels.iter().zip(p).map(|(&label, row)| -row[label].ln());
        terms.sum::<f64>() / episode.labels.len() as f64
    };
    let right = (labelled(&students[0]) + labelled(&students[1])) / 2.0;
    let cluster = distilled + method.entropy * ((episode.heads as f64).ln() - entropy);
    (1.0 - method.supervised) * cluster + method.supervised * right
}

#[test]
fn the_gradient_is_that_of_the_definition() {
    // The first step of plain gradient descent at rate 1 is the gradient.
    let method = SimGcd {
        epochs: 1,
        rate: 1.0,
        momentum: 0.0,
        weight_decay: 0.0,
        ..SimGcd::default()
    };
    for seed in 0..60 {
        let mut rng = Rng::new(seed, &[]);
        let views = 1 + seed as usize % 2;
        let episode = random(&mut rng, views);
        let first = random_matrix(&mut rng, episode.heads, episode.support[0].dim());
        let method = SimGcd {
            supervised: rng.unit(),
            entropy: 4.0 * rng.unit(),
            student: 0.1 + rng.unit(),
            teacher: (0.05 + rng.unit(), 0.04),
            ..method.clone()
        };
        let Random {
            support,
            labels,
            queries,
            ..
        } = &episode;
        let found = method.fit_from(&first, support, labels, queries, 0).unwrap();
        let at: Vec<f64> = first.values().iter().map(|&v| f64::from(v)).collect();
        let loss = definition(&method, &episode, &at, &at);
        assert!(
            (found.losses()[0] - loss).abs() < 1e-5,
            "{seed}: {:?} {loss}",
            found.losses()
        );
        const STEP: f64 = 1e-5;
        for (place, (before, after)) in first.values().iter().zip(found.weights().values()).enumerate() {
            let [below, above] = [-STEP, STEP].map(|by| {
                let mut moved = at.clone();
                moved[place] += by;
                definition(&method, &episode, &moved, &at)
            });
            let (slope, expected) = (f64::from(before - after), (above - below) / (2.0 * STEP));
            assert!(
                (slope - expected).abs() < 1e-4 * expected.abs().max(0.1),
                "{seed}, {place}: {slope} and not {expected}"
            );
        }
    }
}

/// Rows around one direction a class, in order of the classes.
fn around(rng: &mut Rng, classes: std::ops::Range<usize>, each: usize, noise: f32) -> Features {
    let rows = classes.flat_map(|class| vec![class; each]).map(|class| {
        let mut row = [0f32; 24];
        row.iter_mut()
            .for_each(|v| *v = noise * (2.0 * rng.unit() - 1.0) as f32);
        row[class] += 1.0;
        row
    });
    Features::from_rows(rows.collect::<Vec<_>>()).unwrap()
}

/// An episode of four known and three new classes, three examples and six queries of each.
fn easy(seed: u64) -> ([Features; 1], Vec<usize>, [Features; 1], Vec<usize>) {
    let mut rng = Rng::new(seed, &[]);
    let support = around(&mut rng, 0..4, 3, 0.2);
    let queries = around(&mut rng, 0..7, 6, 0.2);
    let labels = |classes: usize, each: usize| (0..classes * each).map(|row| row / each).collect();
    ([support], labels(4, 3), [queries], labels(7, 6))
}

#[test]
fn what_is_easy_is_found() {
    for init in [SimGcdInit::Supports, SimGcdInit::Random] {
        let method = SimGcd {
            init,
            ..SimGcd::default()
        };
        let (mut old, mut all) = (0.0, 0.0);
        for seed in 0..10 {
            let (support, labels, queries, truth) = easy(seed);
            let found = method.fit(&support, &labels, &queries, 7, seed).unwrap();
            // Known classes have the heads of their labels.
            assert_eq!(found.predict(&support[0]).unwrap(), labels, "{init:?} {seed}");
            let judged = Evaluation {
                known: &[0, 1, 2, 3],
                clusters: &found.predict(&queries[0]).unwrap(),
                truth: &truth,
            };
            let judged = accuracy(&judged, Convention::Paper);
            old += judged.old / 10.0;
            all += judged.all / 10.0;
        }
        // New heads begin anywhere, and two may come to share a class; random ones may also share a known one.
        let least = if init == SimGcdInit::Supports { 1.0 } else { 0.9 };
        assert!(old > least - 1e-9 && all > 0.8, "{init:?}: old {old}, all {all}");
    }
}

#[test]
fn views_that_are_alike_are_one() {
    let (support, labels, queries, _) = easy(1);
    let method = SimGcd::default();
    let one = method.fit(&support, &labels, &queries, 7, 5).unwrap();
    for views in [2, 4] {
        let [support, queries] = [&support, &queries].map(|features| vec![features[0].clone(); views]);
        let same = method.fit(&support, &labels, &queries, 7, 5).unwrap();
        for (a, b) in one.losses().iter().zip(same.losses()) {
            assert!((a - b).abs() < 1e-5, "{views} views: {a} and not {b}");
        }
    }
}

#[test]
fn more_than_two_views_are_all_seen() {
    // Of four views one is of something else; a training that never drew it would be the one on the first two.
    let (support, labels, queries, _) = easy(1);
    let mut other = queries[0].clone().into_values();
    other.reverse();
    let other = Features::new(24, other).unwrap();
    let method = SimGcd::default();
    let fit = |at: usize, views: usize| {
        let support = vec![support[0].clone(); views];
        let mut queries = vec![queries[0].clone(); views];
        queries[at] = other.clone();
        method.fit(&support, &labels, &queries, 7, 5).unwrap()
    };
    let runs: Vec<SimGcdClassifier> = (0..4).map(|at| fit(at, 4)).collect();
    let plain = method.fit(&support, &labels, &queries, 7, 5).unwrap();
    for (at, run) in runs.iter().enumerate() {
        assert_ne!(run.weights(), plain.weights());
        assert!(runs[..at].iter().all(|before| before.weights() != run.weights()));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_at_any_number_of_threads() {
    let (support, labels, queries, _) = easy(2);
    let fit = |seed| SimGcd::default().fit(&support, &labels, &queries, 7, seed).unwrap();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    assert_eq!(pool(1).install(|| fit(3)), pool(3).install(|| fit(3)));
    assert_ne!(fit(3).weights(), fit(4).weights());
}

#[test]
fn heads_may_begin_at_the_examples() {
    let (support, labels, queries, _) = easy(3);
    let method = SimGcd {
        epochs: 1,
        rate: 1e-9,
        init: SimGcdInit::Supports,
        ..SimGcd::default()
    };
    let found = method.fit(&support, &labels, &queries, 7, 0).unwrap();
    let unit = found.weights().clone().into_unit().unwrap();
    let examples = support[0].clone().into_unit().unwrap();
    for class in 0..4 {
        let mut mean = [0f32; 24];
        for row in examples.select(&[3 * class, 3 * class + 1, 3 * class + 2]).iter() {
            mean.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
        }
        let mean = Features::from_rows([mean]).unwrap().into_unit().unwrap();
        for (found, expected) in unit.row(class).iter().zip(mean.row(0)) {
            assert!((found - expected).abs() < 1e-6);
        }
    }
    // All are about as long: the others are random.
    for head in found.weights().iter() {
        let length = head.iter().map(|v| v * v).sum::<f32>().sqrt();
        assert!((0.35..0.8).contains(&length), "{length}");
    }
}

#[test]
fn parameters_are_read_from_text() {
    let expected = SimGcd {
        epochs: 7,
        rate: 0.5,
        entropy: 4.0,
        init: SimGcdInit::Supports,
        blocks: 1,
        ..SimGcd::default()
    };
    let parsed = |text: &str| {
        let parts = text.split(':').filter(|_| !text.is_empty());
        SimGcd::from_values(&Values::parse(SimGcd::NAME, SimGcd::PARAMETERS, parts)?)
    };
    let text = "epochs=7:rate=0.5:entropy=4:init=supports:blocks=1";
    assert_eq!(parsed(text).unwrap(), expected);
    assert_eq!(parsed("").unwrap(), SimGcd::default());
    // The defaults that help shows are the defaults.
    for parameter in SimGcd::PARAMETERS {
        let text = format!("{}={}", parameter.name, parameter.default);
        assert_eq!(parsed(&text).unwrap(), SimGcd::default(), "{text}");
    }
    for (text, says) in [
        ("epochs=0", "at least 1"),
        ("epochs=1:epochs=1", "given twice"),
        ("rate=fast", "invalid float"),
        ("rate=inf", "above 0"),
        ("entropy=-1", "not below 0"),
        ("init=zero", "random, supports"),
        ("speed=3", "its parameters are epochs, rate"),
        (":", "its parameters are"),
    ] {
        let error = parsed(text).unwrap_err().to_string();
        assert!(error.starts_with("simgcd: ") && error.contains(says), "{text}: {error}");
    }
}

#[test]
fn what_cannot_be_trained_is_told() {
    let (support, labels, queries, _) = easy(4);
    let method = SimGcd::default();
    let fit = |support: &[Features], labels: &[usize], queries: &[Features], classes: usize| {
        method.fit(support, labels, queries, classes, 0).unwrap_err()
    };
    let zeros = |rows: usize, dim: usize| Features::new(dim, vec![0.0; rows * dim]).unwrap();
    let twice = [queries[0].clone(), queries[0].clone()];
    assert!(matches!(fit(&[], &[], &[], 3), SimGcdError::Views { .. }));
    assert!(matches!(fit(&support, &labels, &twice, 7), SimGcdError::Views { .. }));
    assert!(matches!(fit(&support, &[], &queries, 7), SimGcdError::EmptySupport));
    assert!(matches!(
        fit(&support, &labels[1..], &queries, 7),
        SimGcdError::Rows { what: "examples", .. }
    ));
    assert!(matches!(
        fit(&support, &labels, &queries, 3),
        SimGcdError::TooFewHeads { class: 3, heads: 3 }
    ));
    assert!(matches!(
        fit(&support, &labels, &[zeros(2, 5)], 7),
        SimGcdError::Dimensions { what: "queries", .. }
    ));
    assert!(matches!(
        fit(&support, &labels, &[zeros(2, 24)], 7),
        SimGcdError::Features { what: "queries", .. }
    ));
    let [support2, queries2] = [&support, &queries].map(|features| [features[0].clone(), features[0].select(&[0])]);
    assert!(matches!(
        fit(&support2, &labels, &queries2, 7),
        SimGcdError::Rows { view: 1, .. }
    ));
    let bad = SimGcd {
        supervised: 2.0,
        ..SimGcd::default()
    };
    assert!(matches!(
        bad.fit(&support, &labels, &queries, 7, 0),
        Err(SimGcdError::Parameter(_))
    ));
    for first in [zeros(7, 24), zeros(7, 23)] {
        assert!(method.fit_from(&first, &support, &labels, &queries, 0).is_err());
    }
    let wild = SimGcd {
        rate: 1e200,
        weight_decay: 1e200,
        ..SimGcd::default()
    };
    assert!(wild.fit(&support, &labels, &queries, 7, 0).is_err());
    // No query is no mistake.
    let none = [queries[0].select(&[])];
    let found = method.fit(&support, &labels, &none, 7, 0).unwrap();
    assert!(found.predict(&none[0]).unwrap().is_empty());
    assert!(matches!(
        found.predict(&zeros(1, 2)),
        Err(SimGcdError::Dimensions { .. })
    ));
}
