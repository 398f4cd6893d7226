//! GCD: estimates on tasks whose answer is known, and what must hold on any.

mod common;

use common::{Recipe, Rng, for_all, recipes};
use genus_core::methods::{Gcd, Method, NumberOfCategories};
use genus_core::{Category, Discover, DiscoverError, Discovery, Features, Stop, Support, Task};
use proptest::prelude::*;

/// Nearly orthogonal classes in `dim` features: `shot` examples of the first `known`, `each` queries of all.
fn separable(known: usize, classes: usize, shot: usize, each: usize, seed: u64) -> (Task, Vec<usize>) {
    let mut rng = Rng::new(seed);
    let mut row = |class: usize| -> Vec<f32> {
        (0..classes)
            .map(|d| (f64::from(u8::from(d == class)) + 0.03 * rng.normal()) as f32)
            .collect()
    };
    let labels: Vec<usize> = (0..shot * known).map(|i| i % known).collect();
    let support: Vec<Vec<f32>> = labels.iter().map(|&class| row(class)).collect();
    let truth: Vec<usize> = (0..each * classes).map(|i| i % classes).collect();
    let queries: Vec<Vec<f32>> = truth.iter().map(|&class| row(class)).collect();
    let names: Vec<String> = labels.iter().map(|class| format!("class {class}")).collect();
    let support = Support::new(Features::from_rows(&support).unwrap(), &names).unwrap();
    (
        Task::new(&support, Features::from_rows(&queries).unwrap()).unwrap(),
        truth,
    )
}

fn estimate(discovery: &Discovery) -> (usize, f64) {
    match discovery.stop() {
        Stop::Estimated {
            categories,
            labelled_accuracy,
        } => (categories, labelled_accuracy),
        other => panic!("{other:?}"),
    }
}

fn gcd(categories: NumberOfCategories) -> Gcd {
    Gcd {
        categories,
        ..Gcd::default()
    }
}

/// Known classes are themselves, and the new ones are one group each.
fn assert_right(discovery: &Discovery, truth: &[usize], known: usize) {
    for (a, &class) in truth.iter().enumerate() {
        if class < known {
            assert_eq!(discovery.categories()[a], Category::Known(class));
        } else {
            assert_eq!(discovery.categories()[a].kind(), genus_core::Kind::Novel);
        }
        for (b, other) in truth[..a].iter().enumerate() {
            let together = discovery.categories()[a] == discovery.categories()[b];
            assert_eq!(together, class == *other, "queries {a} and {b}");
        }
    }
}

#[test]
fn the_right_number_finds_the_classes() {
    let (task, truth) = separable(4, 7, 5, 10, 1);
    let discovery = gcd(NumberOfCategories::Fixed(7)).discover(&task).unwrap();
    assert_eq!(estimate(&discovery), (7, 1.0));
    assert_right(&discovery, &truth, 4);
}

/// Five examples of the first four of some directions as known classes, twelve queries of all.
fn around<const D: usize>(directions: &[[f64; D]]) -> (Task, Vec<usize>) {
    let mut rng = Rng::new(7);
    let mut row = |class: usize| -> Vec<f32> {
        directions[class]
            .iter()
            .map(|v| (v + 0.02 * rng.normal()) as f32)
            .collect()
    };
    let labels: Vec<String> = (0..20).map(|i| format!("class {}", i % 4)).collect();
    let support: Vec<Vec<f32>> = (0..20).map(|i| row(i % 4)).collect();
    let truth: Vec<usize> = (0..12 * directions.len()).map(|i| i % directions.len()).collect();
    let queries: Vec<Vec<f32>> = truth.iter().map(|&class| row(class)).collect();
    let support = Support::new(Features::from_rows(&support).unwrap(), &labels).unwrap();
    (
        Task::new(&support, Features::from_rows(&queries).unwrap()).unwrap(),
        truth,
    )
}

#[test]
fn hidden_classes_tell_the_number() {
    // Of four known classes the last two are hidden. They are each other's nearest, so they are told apart only by the
    // right number of clusters, where the silhouette is best as well.
    let (task, truth) = around(&[
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.3, 0.0, 0.0],
        [0.0, 0.0, 1.0, -0.3, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]);
    for seed in 0..3 {
        let method = Gcd {
            seed,
            restarts: 30,
            ..gcd(NumberOfCategories::Dtc)
        };
        let discovery = method.discover(&task).unwrap();
        assert_eq!(estimate(&discovery).0, 6);
        assert_right(&discovery, &truth, 4);
    }
}

#[test]
fn the_number_lies_halfway_between_both_signs() {
    // Each hidden class is beside another known one: two clusters tell them apart. The silhouette wants all seven.
    let (task, _) = around(&[
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.6, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.6, 0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]);
    let method = Gcd {
        restarts: 30,
        ..gcd(NumberOfCategories::Dtc)
    };
    assert_eq!(estimate(&method.discover(&task).unwrap()).0, 5);
}

#[test]
fn hidden_classes_never_tell_more_than_there_is() {
    // A hidden class may be told apart by fewer clusters; the silhouette is best at the true number.
    for (known, classes, seed) in [(5, 8, 1), (4, 6, 2), (3, 5, 3), (6, 6, 4)] {
        let (task, _) = separable(known, classes, 5, 12, seed);
        let discovery = gcd(NumberOfCategories::Dtc).discover(&task).unwrap();
        let found = estimate(&discovery).0;
        assert!((known..=classes).contains(&found), "{found} for {known} of {classes}");
    }
}

#[test]
fn estimates_put_the_labelled_items_right() {
    let mut right = 0;
    for seed in 0..12 {
        let (task, _) = separable(4, 6, 5, 10, seed);
        let of = |how| estimate(&gcd(how).discover(&task).unwrap());
        let [smallest, largest] = [NumberOfCategories::Smallest, NumberOfCategories::Largest].map(of);
        // A scan tries every number, so it finds one that is right whatever the data.
        assert_eq!((smallest.1, largest.1), (1.0, 1.0), "seed {seed}");
        // With fewer clusters than classes some must be put together; four known classes may already be apart then, so the
        // smallest number lies between the known and the true one.
        assert!((4..=6).contains(&smallest.0), "seed {seed}: {}", smallest.0);
        assert!((6..=24).contains(&largest.0), "seed {seed}: {}", largest.0);
        // Brent's search follows a noisy curve downhill and may end beside the best number.
        let (categories, accuracy) = of(NumberOfCategories::Brent);
        assert!((4..=24).contains(&categories), "seed {seed}: {categories}");
        right += usize::from(accuracy == 1.0);
    }
    assert!(right >= 10, "{right} of 12");
}

#[test]
fn estimates_are_ordered() {
    // The scan tries every number, so where the search finds one as good it lies between the smallest and the largest.
    for_all(25, recipes(), |recipe| {
        let task = Recipe {
            queries: recipe.queries.min(20),
            ..recipe.clone()
        }
        .task();
        let run = |categories| {
            let method = Gcd {
                categories,
                max_categories: Some(task.known() + 6),
                estimate_restarts: 2,
                restarts: 1,
                seed: recipe.seed,
                ..Gcd::default()
            };
            estimate(&method.discover(&task).unwrap())
        };
        let (smallest, best) = run(NumberOfCategories::Smallest);
        let (largest, best_again) = run(NumberOfCategories::Largest);
        let (found, accuracy) = run(NumberOfCategories::Brent);
        prop_assert_eq!(best, best_again);
        prop_assert!(task.known() <= smallest && smallest <= largest && largest <= task.known() + 6);
        prop_assert!(accuracy <= best);
        if accuracy == best {
            prop_assert!(
                smallest <= found && found <= largest,
                "{} {} {}",
                smallest,
                found,
                largest
            );
        }
        // The number itself gives the accuracy that was reported for it.
        prop_assert_eq!(run(NumberOfCategories::Fixed(found)), (found, accuracy));
        prop_assert_eq!(run(NumberOfCategories::Fixed(largest)), (largest, best));
        Ok(())
    });
}

#[test]
fn a_number_that_is_given_must_be_possible() {
    let (task, _) = separable(3, 4, 2, 5, 4);
    let points = task.support().rows() + task.queries();
    assert_eq!(
        estimate(&gcd(NumberOfCategories::Fixed(3)).discover(&task).unwrap()).0,
        3
    );
    for asked in [0, 2] {
        assert_eq!(
            gcd(NumberOfCategories::Fixed(asked)).discover(&task),
            Err(DiscoverError::TooFewCategories { asked, known: 3 })
        );
    }
    let all = gcd(NumberOfCategories::Fixed(points)).discover(&task).unwrap();
    assert_eq!(estimate(&all).0, points);
    assert_eq!(
        gcd(NumberOfCategories::Fixed(points + 1)).discover(&task),
        Err(DiscoverError::TooManyCategories {
            asked: points + 1,
            points
        })
    );
    // The bound of the search never exceeds the number of points.
    let bounded = Gcd {
        max_categories: Some(1000),
        ..gcd(NumberOfCategories::Largest)
    };
    assert!(estimate(&bounded.discover(&task).unwrap()).0 <= points);
    let no_room = Gcd {
        max_categories: Some(0),
        ..gcd(NumberOfCategories::Brent)
    };
    assert_eq!(estimate(&no_room.discover(&task).unwrap()).0, 3);
}

#[test]
fn one_known_class_is_enough_except_for_hiding_one() {
    let (task, truth) = separable(1, 3, 5, 10, 5);
    let discovery = gcd(NumberOfCategories::Fixed(3)).discover(&task).unwrap();
    assert_right(&discovery, &truth, 1);
    let error = gcd(NumberOfCategories::Dtc).discover(&task).unwrap_err();
    assert!(
        matches!(
            error,
            DiscoverError::TooFewClasses {
                needed: 2,
                found: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn prototypes_are_in_clusters_of_their_own() {
    for_all(25, recipes(), |recipe| {
        let task = recipe.task();
        for spec in [
            "gcd:k-restarts=1",
            "gcd:k=dtc:restarts=1",
            "gcd:k=7:restarts=2:iterations=1:tolerance=0",
        ] {
            if spec.contains("k=7") && task.support().rows() + task.queries() < 7 {
                continue;
            }
            let discovery = Method::parse(spec, recipe.seed).unwrap().discover(&task).unwrap();
            let expected: Vec<usize> = (0..task.known()).collect();
            prop_assert_eq!(discovery.prototype_clusters(), expected);
            let (categories, accuracy) = estimate(&discovery);
            prop_assert!(discovery.known() + discovery.novel() <= categories);
            prop_assert!((0.0..=1.0).contains(&accuracy));
            prop_assert_eq!(
                &discovery,
                &Method::parse(spec, recipe.seed).unwrap().discover(&task).unwrap()
            );
        }
        Ok(())
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    let default = Gcd::default;
    for (parameter, bad) in [
        (
            "k-restarts",
            Gcd {
                estimate_restarts: 0,
                ..default()
            },
        ),
        (
            "restarts",
            Gcd {
                restarts: 0,
                ..default()
            },
        ),
        (
            "iterations",
            Gcd {
                iterations: 0,
                ..default()
            },
        ),
        (
            "tolerance",
            Gcd {
                tolerance: -1.0,
                ..default()
            },
        ),
        (
            "tolerance",
            Gcd {
                tolerance: f64::NAN,
                ..default()
            },
        ),
    ] {
        assert_eq!(bad.checked().unwrap_err().parameter, parameter);
    }
    assert_eq!(default().checked(), Ok(default()));
}
