//! Judging single queries in closed form against clustering each of them with the prototypes.

mod common;

use std::cell::Cell;

use common::{Recipe, dot, for_all, one_shot_task, points, recipes};
use genus_core::methods::{BoostBlock, Method};
use genus_core::{Category, Discover, DiscoverError, FeatureError, RealTime, Rule, Task, TaskError};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const SHC: [&str; 8] = [
    "shc:t=0",
    "shc:t=0:linkage=sequential",
    "shc:t=0:boost=1.1",
    "shc:t=0:boost=1.1:boost-block=n-shot",
    "shc:t=0:boost=3:boost-block=n-shot",
    "shc:t=0:min-similarity=0.7",
    "shc:t=0:min-similarity=0.2:boost=1.1",
    "shc:t=0:stop=after:small-known=dissolve:remainder=sample:attach=cosine",
];
const UKC: [&str; 8] = [
    "ukc",
    "ukc:alpha=1:split-at-limit=false",
    "ukc:alpha=3:first-alpha=1.0000000000000002",
    "ukc:m=per-support-float",
    "ukc:split-at-limit=false:stop-below-limit=false",
    "ukc:alpha=1.1:first-alpha=1.4",
    "ukc:m=mean-all",
    "ukc:m=mean-all:alpha=1",
];
const RANKSTAT: [&str; 4] = [
    "rankstat",
    "rankstat:order=unordered",
    "rankstat:top=3",
    "rankstat:top=3:order=unordered",
];

/// The similarities of one query with the prototypes and of the prototypes with each other, largest first.
fn sorted_similarities(points: &[Vec<f64>], known: usize, query: usize) -> Vec<f64> {
    let mut all: Vec<f64> = (0..known).map(|class| dot(&points[class], &points[query])).collect();
    for a in 0..known {
        all.extend((0..a).map(|b| dot(&points[a], &points[b])));
    }
    all.sort_by(|a, b| b.total_cmp(a));
    all
}

/// Compares the rule of a method with the method on one query at a time.
fn equals_the_general_path(specs: &[&str], cases: u32) {
    let compared = Cell::new(0);
    for_all(cases, recipes(), |recipe| {
        let recipe = Recipe {
            queries: recipe.queries.min(8),
            ..recipe
        };
        let task = recipe.task();
        let all = points(&task);
        for spec in specs {
            let method = Method::parse(spec, recipe.seed).unwrap();
            let rule = method.rule().expect("a closed form").clone();
            let needed = if spec.contains("top=3") { 3 } else { 2 };
            if task.known() < needed {
                prop_assert!(RealTime::new(&task, rule).is_err());
                continue;
            }
            let judged = RealTime::new(&task, rule).unwrap().judge_all(&task);
            prop_assert_eq!(judged.len(), task.queries());
            for (query, &category) in judged.iter().enumerate() {
                let similarities = sorted_similarities(&all, task.known(), task.known() + query);
                let tie = similarities.windows(2).any(|pair| pair[0] - pair[1] < 1e-6);
                // Where all are negative a boost lowers what it touches.
                let lowered = spec.contains("boost") && similarities[0] < 0.0;
                if tie || lowered {
                    continue;
                }
                let alone = method.discover(&task.with_queries(&[query]).unwrap()).unwrap();
                prop_assert_eq!(&[category][..], alone.categories(), "{}, query {}", spec, query);
                compared.set(compared.get() + 1);
            }
        }
        Ok(())
    });
    assert!(compared.get() > cases as usize * specs.len(), "{}", compared.get());
}

#[test]
fn shc_equals_the_general_path() {
    equals_the_general_path(&SHC, 100);
}

#[test]
fn ukc_equals_the_general_path() {
    equals_the_general_path(&UKC, 60);
}

#[test]
fn protonet_equals_the_general_path() {
    equals_the_general_path(&["proto"], 60);
}

#[test]
fn rankstat_equals_the_general_path() {
    equals_the_general_path(&RANKSTAT, 100);
}

#[test]
fn the_closed_form_is_that_of_the_specification() {
    // s > f·b with s the largest similarity to a prototype and b the largest between two.
    for_all(100, recipes(), |recipe| {
        let task = recipe.task();
        let all = points(&task);
        for boost in [1.0f32, 1.1] {
            let rule = Rule::Nearest {
                boost,
                block: BoostBlock::Way,
                min_similarity: None,
            };
            let real_time = RealTime::new(&task, rule).unwrap();
            let pairs = (0..task.known()).flat_map(|a| (0..a).map(move |b| (a, b)));
            let b = pairs.map(|(a, b)| dot(&all[a], &all[b])).fold(f64::MIN, f64::max);
            for (query, &category) in real_time.judge_all(&task).iter().enumerate() {
                let with = |class: usize| dot(&all[class], &all[task.known() + query]);
                let nearest = (0..task.known())
                    .reduce(|a, b| if with(b) > with(a) { b } else { a })
                    .unwrap();
                let lead = with(nearest) - f64::from(boost) * b;
                if lead.abs() > 1e-5 {
                    let expected = if lead > 0.0 {
                        Category::Known(nearest)
                    } else {
                        Category::Novel(0)
                    };
                    prop_assert_eq!(category, expected);
                }
            }
        }
        Ok(())
    });
}

fn one_by_one(task: &Task, real_time: &RealTime, scale: f32) -> Result<(), TestCaseError> {
    let known = task.known();
    let guesses = real_time.guess_each(task);
    for (query, category) in real_time.judge_all(task).into_iter().enumerate() {
        let row: Vec<f32> = task.points().row(known + query).iter().map(|v| v * scale).collect();
        let (class, score) = real_time.judge(&row).unwrap();
        prop_assert_eq!(class.map_or(Category::Novel(0), Category::Known), category);
        let all = points(task);
        let mut similarities: Vec<f64> = (0..known).map(|class| dot(&all[class], &all[known + query])).collect();
        // Without a class a query would go to the nearest.
        match class {
            Some(class) => prop_assert_eq!(guesses[query], class),
            None => prop_assert!(f64::from(score.similarity) - similarities[guesses[query]] < 1e-5),
        }
        similarities.sort_by(|a, b| b.total_cmp(a));
        let margin = if known > 1 {
            similarities[0] - similarities[1]
        } else {
            similarities[0]
        };
        prop_assert!((f64::from(score.similarity) - similarities[0]).abs() < 1e-5);
        prop_assert!((f64::from(score.margin) - margin).abs() < 1e-5);
    }
    Ok(())
}

#[test]
fn one_query_is_judged_as_among_many() {
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        for spec in [
            "proto",
            "shc:boost=1.1",
            "shc:min-similarity=0.5",
            "ukc",
            "rankstat",
            "rankstat:order=unordered",
        ] {
            let method = Method::parse(spec, 0).unwrap();
            let real_time = RealTime::new(&task, method.rule().unwrap().clone()).unwrap();
            // A query need not have length one.
            for scale in [1.0, 64.0, 1e-20, 1e30] {
                one_by_one(&task, &real_time, scale)?;
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_new_to_a_calibration_has_a_best_class_too() {
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        let method = Method::parse("calibrated:source=prior", 0).unwrap();
        let real_time = RealTime::new(&task, method.rule().unwrap().clone()).unwrap();
        let (judged, guesses) = (real_time.judge_each(&task), real_time.guess_each(&task));
        prop_assert_eq!(guesses.len(), task.queries());
        for ((class, _), guess) in judged.into_iter().zip(guesses) {
            prop_assert_eq!(class.unwrap_or(guess), guess);
            prop_assert!(guess < task.known());
        }
        Ok(())
    });
}

#[test]
fn one_known_class_needs_a_limit() {
    let task = one_shot_task(&[[1.0, 0.0]], &[[1.0, 0.1], [0.1, 1.0]]);
    let rule = |min_similarity| Rule::Nearest {
        boost: 1.0,
        block: BoostBlock::Way,
        min_similarity,
    };
    let error = RealTime::new(&task, rule(None)).unwrap_err();
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
    let real_time = RealTime::new(&task, rule(Some(0.5))).unwrap();
    assert_eq!(real_time.judge_all(&task), [Category::Known(0), Category::Novel(0)]);
    let always = RealTime::new(&task, Rule::Always).unwrap();
    assert_eq!(always.judge_all(&task), [Category::Known(0); 2]);
}

#[test]
fn equal_similarities_go_by_the_lower_first_point() {
    // All cosines are ½: between the classes, and of the query with both.
    let half = [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]];
    let rule = Method::parse("shc:t=0", 0).unwrap().rule().unwrap().clone();
    // The pair of the classes comes first …
    let task = one_shot_task(&half[..2], &half[2..]);
    assert_eq!(
        RealTime::new(&task, rule.clone()).unwrap().judge_all(&task),
        [Category::Novel(0)]
    );
    // … unless the query is as near to an earlier class.
    let prototypes = [[0.0, 0.0, 1.0, 1.0], half[0], [0.0, 1.0, 0.0, -1.0]];
    let closest = one_shot_task(&prototypes, &half[1..2]);
    let expected = Method::parse("shc:t=0:linkage=sequential", 0)
        .unwrap()
        .discover(&closest)
        .unwrap();
    let judged = RealTime::new(&closest, rule).unwrap().judge_all(&closest);
    assert_eq!(judged, [Category::Known(0)]);
    assert_eq!(judged, expected.categories());
}

#[test]
fn bad_queries_are_refused() {
    let task = one_shot_task(&[[1.0, 0.0], [0.0, 1.0]], &[[1.0, 1.0]]);
    let real_time = RealTime::new(&task, Rule::Always).unwrap();
    assert_eq!(
        real_time.judge(&[1.0]),
        Err(TaskError::Dimensions { support: 2, queries: 1 })
    );
    for value in [f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            real_time.judge(&[0.0, value]),
            Err(TaskError::Queries(FeatureError::NotFinite {
                row: 0,
                column: 1,
                value
            }))
        );
    }
    let error = real_time.judge(&[f32::NAN, 1.0]).unwrap_err();
    assert!(error.to_string().contains("column 0 is NaN"), "{error}");
    assert_eq!(
        real_time.judge(&[0.0, 0.0]),
        Err(TaskError::Queries(FeatureError::ZeroRow { row: 0 }))
    );
    assert!(real_time.judge(&[]).is_err());
}

#[test]
fn a_method_without_a_closed_form_has_no_rule() {
    assert!(Method::parse("gcd", 0).unwrap().rule().is_none());
    // A query as near to a class as can be: these settings split the pair up all the same.
    let prototypes = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ];
    let task = one_shot_task(&prototypes, &[[1.0, 0.01, 0.0, 0.0]]);
    for spec in ["ukc:m=mean-query", "ukc:alpha=1", "ukc:alpha=2:first-alpha=1"] {
        let method = Method::parse(spec, 0).unwrap();
        assert!(method.rule().is_none(), "{spec}");
        assert_eq!(
            method.discover(&task).unwrap().categories(),
            [Category::Novel(0)],
            "{spec}"
        );
    }
}
