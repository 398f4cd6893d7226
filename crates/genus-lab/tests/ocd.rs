//! OCD: codes that are alike are one class.

use std::sync::atomic::{AtomicU64, Ordering};

use genus_core::Features;
use genus_core::rng::Rng;
use genus_lab::{CodeRadius, Length, Ocd, OcdError, OcdTraining, Progress, Silent, SupportCode, train_on_features};
use genus_vision::train::{HashSettings, HashShape};
use proptest::prelude::*;

/// Hash values of codes written as in `+-+`; `0` is zero, digits are tenths, capitals `A` to `I` tenths below zero.
fn hashes(rows: &[&str]) -> Vec<f32> {
    let value = |letter: char| match letter {
        '+' => 1.0,
        '-' => -1.0,
        '0'..='9' => letter.to_digit(10).unwrap() as f32 / 10.0,
        _ => -((letter as u8 - b'A' + 1) as f32) / 10.0,
    };
    rows.iter().flat_map(|row| row.chars().map(value)).collect()
}

fn clusters(ocd: Ocd, support: &[(&str, usize)], known: usize, queries: &[&str]) -> Vec<usize> {
    let (rows, labels): (Vec<&str>, Vec<usize>) = support.iter().copied().unzip();
    let bits = rows[0].len();
    ocd.clusters(&hashes(&rows), &labels, known, &hashes(queries), bits, None)
        .unwrap()
}

fn with(support_code: SupportCode, radius: CodeRadius) -> Ocd {
    Ocd { support_code, radius }
}

#[test]
fn points_of_one_code_are_together() {
    let support = [("++-", 0), ("--+", 1)];
    let found = clusters(Ocd::default(), &support, 2, &["++-", "--+", "+++", "91A", "+++", "---"]);
    // The classes, then: the first, the second, a new one, the first again, the new one, and another.
    assert_eq!(found, [0, 1, 0, 1, 2, 0, 2, 3]);
    // A value of zero is no set bit.
    assert_eq!(
        clusters(Ocd::default(), &support, 2, &["000", "---", "+00", "110"]),
        [0, 1, 2, 2, 3, 0]
    );
}

#[test]
fn two_classes_of_one_code_are_one_cluster() {
    for radius in [CodeRadius::Exact, CodeRadius::Separation] {
        let found = clusters(
            with(SupportCode::Mean, radius),
            &[("++--", 0), ("19BA", 1), ("--++", 2)],
            3,
            &["++--", "--++"],
        );
        assert_eq!(found, [0, 0, 1, 0, 1]);
    }
}

#[test]
fn examples_become_a_code_in_three_ways() {
    // One strong value against two weak ones; a tie of votes; a sum of zero.
    let support = [("9+51", 0), ("A-A0", 0), ("A-AA", 0)];
    let found = |code: SupportCode, queries: &[&str]| clusters(with(code, CodeRadius::Exact), &support, 1, queries);
    assert_eq!(found(SupportCode::Mean, &["+-+-", "----"]), [0, 0, 1]);
    assert_eq!(found(SupportCode::Majority, &["+-+-", "----"]), [0, 1, 0]);
    // Votes that are even are broken by the mean.
    let even = [("9-", 0), ("A+", 0)];
    let found = clusters(with(SupportCode::Majority, CodeRadius::Exact), &even, 1, &["+-", "++"]);
    assert_eq!(found, [0, 0, 1]);
    // The prototypes' own codes, whatever the examples say.
    let ocd = with(SupportCode::Prototype, CodeRadius::Exact);
    let (examples, prototypes) = (hashes(&["++", "--"]), hashes(&["-+", "+-"]));
    let found = ocd.clusters(&examples, &[0, 1], 2, &hashes(&["++", "-+"]), 2, Some(&prototypes));
    assert_eq!(found.unwrap(), [0, 1, 2, 0]);
}

#[test]
fn near_codes_belong_to_a_class_within_a_radius() {
    // Five bits apart: two may differ.
    let support = [("++++++", 0), ("-----+", 1)];
    let queries = ["++++--", "+++---", "----++", "------", "++++++"];
    let separation = with(SupportCode::Mean, CodeRadius::Separation);
    assert_eq!(clusters(separation, &support, 2, &queries), [0, 1, 0, 2, 1, 1, 0]);
    assert_eq!(clusters(Ocd::default(), &support, 2, &queries), [0, 1, 2, 3, 4, 5, 0]);
    // Never less than one bit, though two classes are but one apart; the nearer is taken, and of two the first.
    let close = [("++++", 0), ("+++-", 1)];
    assert_eq!(
        clusters(separation, &close, 2, &["+++-", "-+++", "-++-", "--+-"]),
        [0, 1, 1, 0, 1, 2]
    );
    let tie = [("++-", 0), ("-+-", 1)];
    assert_eq!(clusters(separation, &tie, 2, &["+++", "-++"]), [0, 1, 0, 1]);
    // A single class keeps no distance from any.
    assert_eq!(clusters(separation, &[("++++", 0)], 1, &["-+++", "--++"]), [0, 0, 1]);
}

#[test]
fn the_radius_of_a_bound_is_that_of_its_authors() {
    // d_max of their table, by bits and classes; the radius is half of it.
    for (bits, classes, d_max) in [
        (12, 200, 3),
        (12, 37, 4),
        (12, 101, 3),
        (16, 200, 4),
        (16, 101, 5),
        (16, 37, 5),
        (32, 200, 10),
        (32, 37, 12),
        (64, 200, 24),
        (64, 37, 27),
    ] {
        let ocd = with(SupportCode::Mean, CodeRadius::Bound { classes });
        let query = |different: usize| [vec![-1.0; different], vec![1.0; bits - different]].concat();
        let together = |different: usize| {
            let found = ocd.clusters(&vec![1.0; bits], &[0], 1, &query(different), bits, None);
            found.unwrap() == [0, 0]
        };
        let radius = d_max / 2;
        assert!(
            together(radius) && !together(radius + 1),
            "{bits} bits, {classes} classes"
        );
    }
}

proptest! {
    /// Without a radius a cluster is a code, and with one the clusters of known classes only grow.
    #[test]
    fn a_radius_only_draws_to_known_classes(
        support in prop::collection::vec((0usize..3, prop::collection::vec(-1.0f32..1.0, 4)), 3..8),
        queries in prop::collection::vec(prop::collection::vec(-1.0f32..1.0, 4), 0..20),
        votes in any::<bool>(),
    ) {
        let labels: Vec<usize> = support.iter().map(|(label, _)| *label).collect();
        let examples: Vec<f32> = support.into_iter().flat_map(|(_, row)| row).collect();
        let code = |row: &Vec<f32>| row.iter().map(|h| *h > 0.0).collect::<Vec<_>>();
        let codes: Vec<Vec<bool>> = queries.iter().map(code).collect();
        let values: Vec<f32> = queries.concat();
        let support_code = if votes { SupportCode::Majority } else { SupportCode::Mean };
        let found = |radius| with(support_code, radius).clusters(&examples, &labels, 3, &values, 4, None).unwrap();
        let (exact, near) = (found(CodeRadius::Exact), found(CodeRadius::Separation));
        prop_assert_eq!(exact.len(), 3 + queries.len());
        for a in 0..queries.len() {
            for b in 0..queries.len() {
                prop_assert_eq!(exact[3 + a] == exact[3 + b], codes[a] == codes[b]);
            }
            if let Some(class) = (0..3).find(|&class| exact[class] == exact[3 + a]) {
                prop_assert_eq!(near[class], near[3 + a]);
            }
        }
    }
}

#[test]
fn what_does_not_go_together_is_told() {
    let ocd = Ocd::default();
    let ask = |support: &[f32], labels: &[usize], queries: &[f32], bits| {
        ocd.clusters(support, labels, 2, queries, bits, None).unwrap_err()
    };
    assert!(matches!(ask(&[1.0; 4], &[0, 1], &[1.0; 3], 2), OcdError::Values { .. }));
    assert!(matches!(ask(&[1.0; 3], &[0, 1], &[], 2), OcdError::Values { .. }));
    assert!(matches!(ask(&[], &[], &[], 0), OcdError::Values { .. }));
    assert!(matches!(ask(&[1.0; 4], &[0], &[], 2), OcdError::Labels { .. }));
    assert!(matches!(
        ask(&[1.0; 4], &[0, 2], &[], 2),
        OcdError::NoClass { label: 2, known: 2 }
    ));
    let prototypes = with(SupportCode::Prototype, CodeRadius::Exact);
    for given in [None, Some(&[1.0, 1.0][..])] {
        let error = prototypes.clusters(&[1.0; 4], &[0, 1], 2, &[], 2, given).unwrap_err();
        assert!(matches!(error, OcdError::Prototypes { known: 2, .. }), "{error}");
    }
}

/// Rows around so many directions, the class of a row its number modulo theirs.
fn directions(rows: usize, classes: usize, dim: usize, seed: u64) -> (Features, Vec<usize>) {
    let mut rng = Rng::new(seed, &[]);
    let mut row = |class: usize| -> Vec<f32> {
        let value = |at: usize| if at % classes == class { 1.0 } else { 0.0 };
        (0..dim).map(|at| value(at) + 0.3 * (rng.unit() as f32 - 0.5)).collect()
    };
    let labels: Vec<usize> = (0..rows).map(|at| at % classes).collect();
    let rows: Vec<Vec<f32>> = labels.iter().map(|&class| row(class)).collect();
    (Features::from_rows(rows).unwrap(), labels)
}

fn small() -> OcdTraining {
    let shape = HashShape {
        hidden: 24,
        embedding: 12,
        bits: 8,
    };
    OcdTraining {
        hash: HashSettings {
            shape,
            ..HashSettings::default()
        },
        epochs: 60,
        batch: 20,
        rate: 0.05,
        ..OcdTraining::default()
    }
}

#[derive(Default)]
struct Count {
    steps: AtomicU64,
    of: AtomicU64,
}

impl Progress for Count {
    fn start(&self, _stage: &str, length: Length) {
        let Length::Steps(steps) = length else { return };
        self.of.store(steps, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }
}

#[test]
fn a_head_that_was_trained_on_features_sorts_an_episode() {
    let (features, labels) = directions(90, 6, 12, 1);
    // Four of six classes are trained on.
    let base: Vec<usize> = (0..90).filter(|&row| labels[row] < 4).collect();
    let of_base: Vec<usize> = base.iter().map(|&row| labels[row]).collect();
    let count = Count::default();
    let trainer = train_on_features(std::slice::from_ref(&features), &base, &of_base, small(), 7, &count).unwrap();
    // 60 rows make three batches.
    assert_eq!([&count.of, &count.steps].map(|n| n.load(Ordering::Relaxed)), [180, 180]);
    let hashes = trainer.hashes(features.values()).unwrap();
    // Rows 0 to 3 are examples; the next twelve are queries of all classes.
    let rows = |from: usize, to: usize| &hashes[from * 8..to * 8];
    let found = Ocd::default()
        .clusters(rows(0, 4), &[0, 1, 2, 3], 4, rows(6, 18), 8, None)
        .unwrap();
    let known: Vec<usize> = (0..12).filter(|at| at % 6 < 4).collect();
    let right = known.iter().filter(|&&at| found[4 + at] == found[at % 6]).count();
    assert!(right >= 7, "{right} of {}: {found:?}", known.len());

    // The same again, at another number of threads; another seed gives another head.
    let again = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = OcdTraining { epochs: 3, ..small() };
        pool.install(|| {
            train_on_features(
                std::slice::from_ref(&features),
                &base,
                &of_base,
                settings,
                seed,
                &Silent,
            )
            .unwrap()
            .state()
        })
    };
    assert!(again(1, 7) == again(3, 7));
    assert!(again(1, 7) != again(1, 8));
}

#[test]
fn features_that_cannot_be_trained_on_are_told() {
    let (features, labels) = directions(10, 2, 4, 0);
    let rows: Vec<usize> = (0..10).collect();
    let train = |rows: &[usize], labels: &[usize], settings| {
        train_on_features(std::slice::from_ref(&features), rows, labels, settings, 0, &Silent)
    };
    assert!(matches!(
        train(&rows, &labels[1..], small()),
        Err(OcdError::Labels { .. })
    ));
    assert!(matches!(
        train(&[0, 10], &[0, 1], small()),
        Err(OcdError::NoRow { row: 10, rows: 10 })
    ));
    assert!(matches!(train(&[0], &[0], small()), Err(OcdError::TooFew { .. })));
    assert!(matches!(train(&[], &[], small()), Err(OcdError::TooFew { .. })));
    let none = OcdTraining { batch: 1, ..small() };
    assert!(matches!(train(&rows, &labels, none), Err(OcdError::TooFew { .. })));
    let mut nothing = small();
    nothing.hash.shape.bits = 0;
    assert!(matches!(train(&rows, &labels, nothing), Err(OcdError::Train(_))));
    // A batch of all rows, when there are fewer than it takes.
    let count = Count::default();
    let settings = OcdTraining { epochs: 2, ..small() };
    train_on_features(std::slice::from_ref(&features), &rows, &labels, settings, 0, &count).unwrap();
    assert_eq!(count.steps.load(Ordering::Relaxed), 2);
}
