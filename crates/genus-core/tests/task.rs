//! Features, supports and tasks: every way to be wrong, and prototypes by their definitions.

mod common;

use common::{dot, for_all, length, mean, points, recipes};
use genus_core::{
    Discover, FeatureError, Features, FeaturesView, Prototypes, Support, Task, TaskError, methods::Proto,
};
use proptest::prelude::*;

fn features<const D: usize>(rows: &[[f32; D]]) -> Features {
    Features::from_rows(rows).unwrap()
}

#[test]
fn features_refuse_what_is_no_finite_matrix() {
    assert_eq!(Features::new(0, vec![]), Err(FeatureError::NoColumns));
    assert_eq!(
        Features::new(3, vec![1.0; 7]),
        Err(FeatureError::Ragged {
            row: 2,
            expected: 3,
            found: 1
        })
    );
    for bad in [f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            Features::new(2, vec![1.0, 1.0, 1.0, bad]),
            Err(FeatureError::NotFinite {
                row: 1,
                column: 1,
                value: bad
            })
        );
    }
    let error = Features::new(2, vec![f32::NAN, 1.0]).unwrap_err();
    assert_eq!(error.to_string(), "row 0, column 0 is NaN, not a finite number");

    let rows: [&[f32]; 3] = [&[1.0, 2.0], &[1.0, 2.0], &[1.0]];
    assert_eq!(
        Features::from_rows(rows),
        Err(FeatureError::Ragged {
            row: 2,
            expected: 2,
            found: 1
        })
    );
    assert_eq!(Features::from_rows::<&[f32]>([]), Err(FeatureError::NoColumns));
    assert_eq!(Features::from_rows([[]; 2]), Err(FeatureError::NoColumns));
    assert_eq!(
        features(&[[1.0, 0.0], [0.0, -0.0]]).into_unit(),
        Err(FeatureError::ZeroRow { row: 1 })
    );
}

#[test]
fn features_are_their_rows() {
    let matrix = features(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    assert_eq!((matrix.rows(), matrix.dim(), matrix.is_empty()), (3, 2, false));
    assert_eq!(matrix.row(1), [3.0, 4.0]);
    assert_eq!(matrix.iter().len(), 3);
    assert_eq!(
        matrix.select(&[2, 0, 2]),
        features(&[[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]])
    );
    assert!(matrix.select(&[]).is_empty());
    assert!(Features::new(4, vec![]).unwrap().is_empty());
    assert_eq!(Features::new(2, matrix.values().to_vec()), Ok(matrix.clone()));
    assert_eq!(matrix.into_values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn unit_rows_have_length_one_and_keep_their_direction() {
    for_all(100, (1usize..40, -35i32..38, 0u64..1 << 32), |(dim, exponent, seed)| {
        let mut rng = common::Rng::new(seed);
        let row: Vec<f64> = (0..dim).map(|_| rng.normal()).collect();
        let scaled: Vec<f32> = row.iter().map(|v| (v * 10f64.powi(exponent)) as f32).collect();
        let unit = Features::from_rows([&scaled]).unwrap().into_unit().unwrap();
        let expected = length(&row);
        for (v, w) in unit.row(0).iter().zip(&row) {
            prop_assert!((f64::from(*v) - w / expected).abs() < 1e-6);
        }
        Ok(())
    });
}

#[test]
fn supports_number_their_classes_by_the_first_example() {
    let support = Support::new(features(&[[1.0], [2.0], [3.0], [4.0]]), &["b", "a", "b", "c"]).unwrap();
    assert_eq!(support.classes(), ["b", "a", "c"]);
    assert_eq!(support.labels(), [0, 1, 0, 2]);
    assert_eq!(support.features().rows(), 4);
    assert_eq!(
        Support::new(features(&[[1.0], [2.0]]), &["a"]),
        Err(TaskError::LabelCount { rows: 2, labels: 1 })
    );
    assert_eq!(
        Support::new::<&str>(Features::new(3, vec![]).unwrap(), &[]),
        Err(TaskError::EmptySupport)
    );
}

#[test]
fn tasks_refuse_what_cannot_be_sorted() {
    let support = |rows: &[[f32; 2]], labels: &[&str]| Support::new(features(rows), labels).unwrap();
    let good = support(&[[1.0, 0.0], [0.0, 1.0]], &["a", "b"]);
    let error = |support: &Support, queries: Features| Task::new(support, queries).unwrap_err();
    assert_eq!(error(&good, Features::new(2, vec![]).unwrap()), TaskError::NoQueries);
    assert_eq!(
        error(&good, features(&[[1.0, 2.0, 3.0]])),
        TaskError::Dimensions { support: 2, queries: 3 }
    );
    assert_eq!(
        error(&good, features(&[[1.0, 1.0], [0.0, 0.0]])),
        TaskError::Queries(FeatureError::ZeroRow { row: 1 })
    );
    let zero = support(&[[1.0, 0.0], [0.0, 0.0]], &["a", "a"]);
    assert_eq!(
        error(&zero, features(&[[1.0, 1.0]])),
        TaskError::Support(FeatureError::ZeroRow { row: 1 })
    );
    let opposite = support(&[[0.0, 1.0], [2.0, 3.0], [-2.0, -3.0]], &["a", "b", "b"]);
    for kind in Prototypes::ALL {
        assert_eq!(
            Task::with_prototypes(&opposite, features(&[[1.0, 1.0]]), *kind).unwrap_err(),
            TaskError::ZeroPrototype { class: "b".to_owned() },
            "{kind}"
        );
    }
    let task = Task::new(&good, features(&[[1.0, 1.0]])).unwrap();
    assert_eq!(task.with_queries(&[]).unwrap_err(), TaskError::NoQueries);
}

#[test]
fn prototypes_are_those_of_their_definitions() {
    for_all(100, recipes(), |recipe| {
        let data = recipe.data();
        let rows: Vec<Vec<f64>> = data
            .support
            .iter()
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect();
        let scaled = |row: &Vec<f64>| row.iter().map(|v| v / length(row)).collect::<Vec<f64>>();
        let units: Vec<Vec<f64>> = rows.iter().map(scaled).collect();
        for kind in Prototypes::ALL {
            let queries = Features::from_rows(&data.queries).unwrap();
            let task = Task::with_prototypes(&data.support(), queries, *kind).unwrap();
            prop_assert_eq!(task.known(), recipe.way);
            prop_assert_eq!(task.queries(), recipe.queries);
            prop_assert_eq!(task.dim(), recipe.dim);
            prop_assert_eq!(task.shots(), recipe.shot);
            let points = points(&task);
            for (class, prototype) in points[..recipe.way].iter().enumerate() {
                let name = format!("class {class}");
                prop_assert_eq!(&task.classes()[class], &name);
                let of_class = |rows: &[Vec<f64>]| {
                    mean(
                        rows.iter()
                            .zip(&data.labels)
                            .filter(|(_, label)| **label == name)
                            .map(|(row, _)| row),
                    )
                };
                let expected = match kind {
                    Prototypes::RawMean => scaled(&of_class(&rows)),
                    Prototypes::UnitMean => scaled(&of_class(&units)),
                    Prototypes::UnitMeanUnnormalised => of_class(&units),
                };
                for (found, expected) in prototype.iter().zip(&expected) {
                    prop_assert!((found - expected).abs() < 1e-6, "{}: {} for {}", kind, found, expected);
                }
            }
            for (query, raw) in data.queries.iter().enumerate() {
                let raw: Vec<f64> = raw.iter().map(|&v| f64::from(v)).collect();
                for (found, expected) in points[recipe.way + query].iter().zip(scaled(&raw)) {
                    prop_assert!((found - expected).abs() < 1e-6);
                }
            }
            for (unit, expected) in task.support().iter().zip(&units) {
                prop_assert!(unit.iter().zip(expected).all(|(&v, w)| (f64::from(v) - w).abs() < 1e-6));
            }
        }
        Ok(())
    });
}

#[test]
fn names_of_prototypes_are_read_back() {
    for kind in Prototypes::ALL {
        assert_eq!(kind.to_string().parse(), Ok(*kind));
    }
    assert_eq!(Prototypes::default().to_string(), "raw-mean");
    assert!("median".parse::<Prototypes>().is_err());
}

#[test]
fn huge_and_tiny_values_keep_their_direction() {
    for scale in [1e38, 1.0, 1e-30, 1e-37] {
        let row = |x: f32, y: f32| [x * scale, y * scale, x * scale, y * scale];
        let support = Support::new(
            features(&[row(3.0, 0.0), row(3.0, 1.0), row(0.0, 2.0), row(-1.0, 2.0)]),
            &["a", "a", "b", "b"],
        )
        .unwrap();
        for kind in Prototypes::ALL {
            let task = Task::with_prototypes(&support, features(&[row(3.0, 0.5), row(0.0, 1.0)]), *kind).unwrap();
            let points = points(&task);
            for point in &points {
                assert!(point.iter().all(|v| v.is_finite()));
                assert!(dot(point, point) > 0.8 && dot(point, point) < 1.000_001);
            }
            assert!(dot(&points[0], &points[2]) > 0.98, "{scale} {kind}");
            assert!(dot(&points[1], &points[3]) > 0.9);
            let discovery = Proto.discover(&task).unwrap();
            assert_eq!(discovery.items(), [1, 1]);
            assert!(discovery.scores().iter().all(|score| score.similarity.is_finite()));
        }
    }
}

#[test]
fn some_of_the_queries_make_a_task_too() {
    let data = common::Recipe {
        cloud: common::Cloud::Uniform,
        way: 3,
        shot: 2,
        new: 1,
        queries: 9,
        dim: 4,
        seed: 1,
    }
    .data();
    let task = data.task();
    let some = task.with_queries(&[7, 2, 7]).unwrap();
    assert_eq!(some.points(), &task.points().select(&[0, 1, 2, 10, 5, 10]));
    assert_eq!(some.classes(), task.classes());
    assert_eq!(some.support(), task.support());
    assert_eq!(some.support_labels(), task.support_labels());
}

#[test]
fn shots_are_those_of_the_smallest_class() {
    let support = Support::new(features(&[[1.0], [2.0], [3.0]]), &["a", "b", "a"]).unwrap();
    assert_eq!(Task::new(&support, features(&[[1.0]])).unwrap().shots(), 1);
}

#[test]
fn prototypes_that_point_the_same_way_are_named() {
    let task = |rows: &[[f32; 3]]| common::one_shot_task(rows, &[[1.0, 1.0, 1.0]]);
    let (x, y, z) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
    assert_eq!(task(&[x, y, z]).identical_prototypes(), None);
    assert_eq!(task(&[x]).identical_prototypes(), None);
    assert_eq!(task(&[x, y, [0.0, 5.0, 0.0], y]).identical_prototypes(), Some((1, 2)));
    assert_eq!(task(&[z, x, y, [0.0, 0.0, 1e-30]]).identical_prototypes(), Some((0, 3)));
    // Opposite is not the same, and neither is nearly the same.
    assert_eq!(task(&[x, [-1.0, 0.0, 0.0]]).identical_prototypes(), None);
    assert_eq!(task(&[x, [1.0, 0.01, 0.0]]).identical_prototypes(), None);
    // Prototypes that are shorter than one are compared by direction all the same.
    let support = Support::new(
        features(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        &["a", "a", "b", "c"],
    )
    .unwrap();
    let task = Task::with_prototypes(&support, features(&[[1.0, 1.0, 1.0]]), Prototypes::UnitMeanUnnormalised).unwrap();
    assert_eq!(task.identical_prototypes(), Some((0, 1)));
}

#[test]
fn features_give_the_dot_products_of_their_rows() {
    let (a, b) = (
        features(&[[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]]),
        features(&[[5.0, 6.0], [-7.0, 8.0]]),
    );
    assert_eq!(a.dots(&b), [17.0, 9.0, 39.0, 11.0, -6.0, -8.0]);
    assert!(a.select(&[]).dots(&b).is_empty());
    assert!(a.dots(&b.select(&[])).is_empty());
}

#[test]
#[should_panic(expected = "rows of different length")]
fn rows_of_different_length_have_no_products() {
    features(&[[1.0, 2.0]]).dots(&Features::new(1, vec![1.0, 2.0]).unwrap());
}

#[test]
fn rows_that_somebody_else_has_make_the_same_task() {
    let all: Vec<[f32; 3]> = (0..9).map(|at| [1.0 + at as f32, 0.5 * at as f32, 2.0]).collect();
    let values: Vec<f32> = all.concat();
    let support = Support::new(features(&all[..2]), &["a", "b"]).unwrap();
    let view = FeaturesView::new(3, &values).unwrap();
    let chosen = [8, 2, 5, 5];
    for kind in Prototypes::ALL {
        let of_rows = Task::of_rows(&support, view, &chosen, *kind).unwrap();
        let copied = Task::with_prototypes(&support, view.select(&chosen), *kind).unwrap();
        assert_eq!(of_rows.points(), copied.points());
    }
    let zero = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let view = FeaturesView::new(3, &zero).unwrap();
    assert_eq!(
        Task::of_rows(&support, view, &[0, 1], Prototypes::default()).unwrap_err(),
        TaskError::Queries(FeatureError::ZeroRow { row: 1 })
    );
    assert_eq!(FeaturesView::new(0, &[]), Err(FeatureError::NoColumns));
    assert!(FeaturesView::new(1, &[f32::NAN]).is_err());
}
