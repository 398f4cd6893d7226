//! UKC: what must hold whatever k-means draws, and tasks whose answer is known.

mod common;

use std::cmp::Ordering;

use common::{Cloud, Recipe, Rng, for_all, numbered, one_shot_task, partition, recipes};
use genus_core::methods::{Method, ReferenceSize, Ukc};
use genus_core::{Category, Discover, DiscoverError, Discovery, Stop, Task};
use proptest::prelude::*;

const REFERENCES: [ReferenceSize; 4] = [
    ReferenceSize::PerSupport,
    ReferenceSize::PerSupportFloat,
    ReferenceSize::MeanQuery,
    ReferenceSize::MeanAll,
];

/// The numbers of queries and of prototypes of every cluster.
fn counts(discovery: &Discovery) -> Vec<(usize, usize)> {
    let clusters = partition(discovery);
    let mut counts = vec![(0, 0); clusters.iter().max().unwrap() + 1];
    for (point, &cluster) in clusters.iter().enumerate() {
        if point < discovery.known() {
            counts[cluster].1 += 1;
        } else {
            counts[cluster].0 += 1;
        }
    }
    counts
}

/// How the size of the largest cluster compares with the limit, from the definition in whole numbers: prototypes must be
/// apart, and `p / q` is the factor.
fn largest_against_limit(reference: ReferenceSize, (p, q): (usize, usize), counts: &[(usize, usize)]) -> Ordering {
    assert!(counts.iter().all(|&(_, prototypes)| prototypes <= 1));
    let queries = counts.iter().map(|&(queries, _)| queries);
    let largest = queries.clone().max().unwrap();
    let usual: Vec<usize> = match reference {
        ReferenceSize::PerSupport | ReferenceSize::PerSupportFloat => queries.filter(|&size| size > 0).collect(),
        ReferenceSize::MeanQuery => queries.collect(),
        ReferenceSize::MeanAll => counts
            .iter()
            .map(|&(queries, prototypes)| queries + prototypes)
            .collect(),
    };
    (largest * usual.len() * q).cmp(&(p * usual.iter().sum::<usize>()))
}

fn rounds(discovery: &Discovery) -> (usize, bool) {
    match discovery.stop() {
        Stop::Rounds { rounds, converged } => (rounds, converged),
        other => panic!("{other:?}"),
    }
}

#[test]
fn conditions_hold_at_the_end() {
    let converged_tasks = std::cell::Cell::new(0);
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        for reference in REFERENCES {
            for ((p, q), paper) in [((1, 1), false), ((14, 10), false), ((14, 10), true), ((5, 2), true)] {
                let ukc = Ukc {
                    alpha: p as f64 / q as f64,
                    reference,
                    split_at_limit: paper,
                    stop_below_limit: paper,
                    restarts: 3,
                    seed: recipe.seed,
                    ..Ukc::default()
                };
                let discovery = ukc.discover(&task).unwrap();
                let counts = counts(&discovery);
                prop_assert!(counts.iter().all(|&(_, prototypes)| prototypes <= 1), "{:?}", counts);
                let (rounds, converged) = rounds(&discovery);
                prop_assert!(rounds >= 1 && rounds <= task.points().rows());
                if converged {
                    let order = largest_against_limit(reference, (p, q), &counts);
                    let fits = if paper { order.is_lt() } else { order.is_le() };
                    prop_assert!(fits, "{:?} in {:?} by {:?}", order, counts, ukc);
                    converged_tasks.set(converged_tasks.get() + 1);
                }
            }
        }
        Ok(())
    });
    // The paper's own settings nearly always get there.
    assert!(converged_tasks.get() > 60 * 16 / 2, "{}", converged_tasks.get());
}

#[test]
fn the_default_converges_on_distinct_points() {
    for_all(100, recipes(), |recipe| {
        let task = recipe.task();
        let discovery = Ukc::default().discover(&task).unwrap();
        prop_assert!(rounds(&discovery).1, "{:?}", discovery.stop());
        Ok(())
    });
}

/// `classes` orthogonal directions of which the first `known` are known, `each` queries of each around them.
fn orthogonal(known: usize, classes: usize, each: usize, seed: u64) -> (Task, Vec<usize>) {
    let mut rng = Rng::new(seed);
    let mut row = |class: usize| -> Vec<f32> {
        (0..classes)
            .map(|d| (f64::from(u8::from(d == class)) + 0.03 * rng.normal()) as f32)
            .collect()
    };
    let prototypes: Vec<Vec<f32>> = (0..known).map(&mut row).collect();
    let truth: Vec<usize> = (0..classes * each).map(|i| i % classes).collect();
    let queries: Vec<Vec<f32>> = truth.iter().map(|&class| row(class)).collect();
    (one_shot_task(&prototypes, &queries), truth)
}

#[test]
fn well_separated_classes_are_found() {
    for (known, seed) in [(2, 1), (3, 2), (4, 3), (6, 4)] {
        // With one class too many a cluster holds two: two prototypes, or twice the usual number of queries.
        for new in [0, 1] {
            let (task, truth) = orthogonal(known, known + new, 12, seed);
            for reference in [ReferenceSize::PerSupport, ReferenceSize::PerSupportFloat] {
                let ukc = Ukc {
                    reference,
                    // Twice the usual size of k clusters with k + 1 classes is more than 1.3 times the mean.
                    alpha: 1.3,
                    ..Ukc::default()
                };
                let discovery = ukc.discover(&task).unwrap();
                let expected: Vec<usize> = (0..known).chain(truth.iter().copied()).collect();
                assert_eq!(partition(&discovery), numbered(&expected), "{known} known, {new} new");
                for (category, &class) in discovery.categories().iter().zip(&truth) {
                    let right = if class < known {
                        Category::Known(class)
                    } else {
                        Category::Novel(0)
                    };
                    assert_eq!(*category, right);
                }
                assert!(rounds(&discovery).1);
            }
        }
    }
}

/// Three known classes and a new one that is nearest to the first: at first these two share a cluster, twice as large as
/// the others.
fn new_beside_known() -> Task {
    let mut rng = Rng::new(9);
    let directions = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 1.0f64],
    ];
    let mut row = |class: usize| -> Vec<f32> {
        directions[class]
            .iter()
            .map(|v| (v + 0.02 * rng.normal()) as f32)
            .collect()
    };
    let prototypes: Vec<Vec<f32>> = (0..3).map(&mut row).collect();
    let queries: Vec<Vec<f32>> = (0..40).map(|i| row(i % 4)).collect();
    one_shot_task(&prototypes, &queries)
}

#[test]
fn the_first_factor_matters() {
    // The usual size is 4/3 of a class, the shared cluster has 2: it is split up to a factor of 1.5.
    let task = new_beside_known();
    let novel = |alpha, first_alpha| {
        let ukc = Ukc {
            alpha,
            first_alpha,
            ..Ukc::default()
        };
        ukc.discover(&task).unwrap().novel()
    };
    assert_eq!(novel(1.4, None), 1);
    assert_eq!(novel(1.6, None), 0);
    assert_eq!(novel(1.6, Some(1.4)), 1);
    // A lenient first round is made good by the next ones.
    assert_eq!(novel(1.4, Some(1.6)), 1);
}

#[test]
fn clusters_at_the_limit_split() {
    // 20 of 40/3 is exactly the limit of a factor of 1.5.
    let task = new_beside_known();
    let novel = |split_at_limit, stop_below_limit| {
        let ukc = Ukc {
            alpha: 1.5,
            split_at_limit,
            stop_below_limit,
            ..Ukc::default()
        };
        let discovery = ukc.discover(&task).unwrap();
        (discovery.novel(), rounds(&discovery))
    };
    assert_eq!(novel(false, false), (0, (1, true)));
    assert_eq!(novel(true, false), (1, (1, true)));
    assert_eq!(novel(true, true), (1, (1, true)));
    // Nothing to split, and yet not below the limit: it gives up and says so.
    assert_eq!(novel(false, true), (0, (1, false)));
}

/// Seven known classes and three new ones beside the last three of them, 15 queries each: at first clusters of 15, 15, 15,
/// 15, 30, 30 and 30.
fn three_new_beside_seven_known() -> Task {
    let mut rng = Rng::new(15);
    let mut row = |class: usize| -> Vec<f32> {
        // A new class is halfway between a known one and a direction of its own.
        let beside = class.checked_sub(7).map(|new| 4 + new);
        (0..10)
            .map(|d| f64::from(u8::from(d == class || Some(d) == beside)))
            .map(|v| (v + 0.02 * rng.normal()) as f32)
            .collect()
    };
    let prototypes: Vec<Vec<f32>> = (0..7).map(&mut row).collect();
    let queries: Vec<Vec<f32>> = (0..150).map(|i| row(i % 10)).collect();
    one_shot_task(&prototypes, &queries)
}

#[test]
fn the_tie_of_the_papers_own_setting_is_not_decided_by_rounding() {
    // 1.4 · 150 / 7 is 30. In floating point it is 30 or less, by the order of the operations.
    let rounded = [1.4 * (150.0 / 7.0), 1.4 * 150.0 / 7.0];
    assert!(rounded[0] < 30.0 && rounded[1] == 30.0);
    let task = three_new_beside_seven_known();
    let found = |spec: &str| {
        let discovery = Method::parse(spec, 0).unwrap().discover(&task).unwrap();
        let mut queries: Vec<usize> = counts(&discovery).iter().map(|&(queries, _)| queries).collect();
        queries.sort_unstable();
        (queries, discovery.novel(), rounds(&discovery))
    };
    let together = vec![15, 15, 15, 15, 30, 30, 30];
    let apart = vec![15; 10];
    for m in ["per-support", "per-support-float", "mean-query"] {
        assert_eq!(found(&format!("ukc:m={m}")), (apart.clone(), 3, (1, true)), "{m}");
        let above = format!("ukc:m={m}:split-at-limit=false:stop-below-limit=false");
        assert_eq!(found(&above), (together.clone(), 0, (1, true)), "{m}");
    }
    assert_eq!(found("ukc:alpha=1.45"), (together.clone(), 0, (1, true)));
    // The numbers next to 1.4 are not 1.4.
    assert_eq!(found("ukc:alpha=1.3999999999999997"), (apart, 3, (1, true)));
    assert_eq!(found("ukc:alpha=1.4000000000000001"), (together, 0, (1, true)));
}

#[test]
fn equal_clusters_at_the_limit_come_to_an_end() {
    // With a factor of 1 clusters of one size are all at the limit, down to single points, which cannot be split.
    let (task, _) = orthogonal(3, 3, 4, 8);
    let ukc = Ukc {
        alpha: 1.0,
        ..Ukc::default()
    };
    let discovery = ukc.discover(&task).unwrap();
    assert!(
        counts(&discovery).iter().all(|&(q, s)| q + s == 1),
        "{:?}",
        counts(&discovery)
    );
    let (rounds, converged) = rounds(&discovery);
    assert!(!converged && rounds <= task.points().rows(), "{:?}", discovery.stop());
    // Nor can identical points, however many there are.
    let task = one_shot_task(
        &[[1.0, 0.0], [0.0, 1.0]],
        &[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
    );
    let discovery = ukc.discover(&task).unwrap();
    assert_eq!(counts(&discovery), [(2, 1), (2, 1)]);
    assert_eq!(
        discovery.stop(),
        Stop::Rounds {
            rounds: 1,
            converged: false
        }
    );
}

#[test]
fn prototypes_that_coincide_are_separated_and_said_to_be() {
    let prototypes = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    let queries = [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [1.0, 0.0, 0.1], [0.0, 1.0, 0.1]];
    let task = one_shot_task(&prototypes, &queries);
    assert_eq!(task.identical_prototypes(), Some((0, 1)));
    let discovery = Ukc::default().discover(&task).unwrap();
    let clusters = discovery.prototype_clusters();
    for a in 0..4 {
        assert!((0..a).all(|b| clusters[a] != clusters[b]), "{clusters:?}");
    }
    assert!(!rounds(&discovery).1);
    // The queries of the shared place go to the first of the equal ones.
    assert!(!discovery.categories().contains(&Category::Known(1)));
    assert!(!discovery.categories().contains(&Category::Known(3)));
}

#[test]
fn all_points_identical() {
    let task = one_shot_task(&[[0.6, 0.8]; 3], &[[0.6, 0.8]; 5]);
    let discovery = Ukc::default().discover(&task).unwrap();
    assert_eq!(discovery.categories(), [Category::Known(0); 5]);
    assert_eq!(numbered(discovery.prototype_clusters()), [0, 1, 2]);
    assert!(!rounds(&discovery).1);
}

#[test]
fn fewer_queries_than_classes() {
    let prototypes = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.2, 1.0, 0.0],
    ];
    let task = one_shot_task(&prototypes, &[[0.0, 1.0, 0.0, 0.05], [0.0, 0.0, 0.0, 1.0]]);
    let discovery = Ukc::default().discover(&task).unwrap();
    assert_eq!(discovery.categories(), [Category::Known(1), Category::Novel(0)]);
    assert!(rounds(&discovery).1);
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let recipe = Recipe {
        cloud: Cloud::Uniform,
        way: 3,
        shot: 1,
        new: 0,
        queries: 60,
        dim: 5,
        seed: 3,
    };
    let task = recipe.task();
    let answer = |seed| {
        let ukc = Ukc {
            seed,
            restarts: 1,
            ..Ukc::default()
        };
        ukc.discover(&task).unwrap()
    };
    for seed in 0..5 {
        assert_eq!(answer(seed), answer(seed));
    }
    // Points without structure and one start a fit: the seed decides.
    assert!((1..20).any(|seed| partition(&answer(seed)) != partition(&answer(0))));
}

#[test]
fn one_known_class_is_too_few() {
    let task = one_shot_task(&[[1.0, 0.0]], &[[0.0, 1.0]]);
    assert_eq!(
        Ukc::default().discover(&task),
        Err(DiscoverError::TooFewClasses {
            method: "ukc",
            needed: 2,
            found: 1
        })
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let default = Ukc::default;
    for (parameter, bad) in [
        (
            "alpha",
            Ukc {
                alpha: 0.99,
                ..default()
            },
        ),
        (
            "alpha",
            Ukc {
                alpha: f64::NAN,
                ..default()
            },
        ),
        (
            "alpha",
            Ukc {
                alpha: f64::INFINITY,
                ..default()
            },
        ),
        (
            "first-alpha",
            Ukc {
                first_alpha: Some(0.5),
                ..default()
            },
        ),
        (
            "restarts",
            Ukc {
                restarts: 0,
                ..default()
            },
        ),
    ] {
        assert_eq!(bad.checked().unwrap_err().parameter, parameter);
    }
    assert_eq!(default().checked(), Ok(default()));
}
