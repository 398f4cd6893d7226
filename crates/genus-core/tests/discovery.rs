//! What every answer says beside its categories: scores, centres and counts, against their definitions.

mod common;

use common::{Cloud, Recipe, dot, for_all, length, mean, one_shot_task, partition, points, recipes};
use genus_core::methods::{Method, Proto};
use genus_core::{Category, CentreNorm, Discover, Discovery, Kind, Subset, Task, TwoStep};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const SPECS: [&str; 8] = [
    "proto",
    "rankstat",
    "rankstat:order=unordered",
    "gcd:k-restarts=1:restarts=1",
    "shc",
    "shc:t=0:stop=after",
    "shc:t=0:min-similarity=0.9",
    "ukc:restarts=2",
];

fn two_step(spec: &str, size: usize, refine: usize) -> TwoStep<Method> {
    TwoStep {
        method: Method::parse(spec, 3).unwrap(),
        subset: Subset::Random { size, seed: 5 },
        centre_norm: CentreNorm::Cosine,
        refine,
    }
}

/// The number of a category among all, known ones first.
fn index(discovery: &Discovery, category: Category) -> usize {
    match category {
        Category::Known(class) => class,
        Category::Novel(group) => discovery.known() + group,
    }
}

/// Compares everything that follows from the categories with its definition.
fn follows_from_categories(task: &Task, discovery: &Discovery) -> Result<(), TestCaseError> {
    let points = points(task);
    let known = task.known();
    let count = known + discovery.novel();
    prop_assert_eq!(discovery.known(), known);
    prop_assert_eq!(discovery.categories().len(), task.queries());
    prop_assert_eq!(discovery.scores().len(), task.queries());
    prop_assert_eq!(discovery.query_clusters().len(), task.queries());
    prop_assert_eq!(discovery.prototype_clusters().len(), known);
    prop_assert_eq!(discovery.items().len(), count);
    prop_assert_eq!(discovery.centres().rows(), count);
    prop_assert_eq!(discovery.items().iter().sum::<usize>(), task.queries());

    let mut members: Vec<Vec<usize>> = (0..count).map(|c| if c < known { vec![c] } else { vec![] }).collect();
    for (query, &category) in discovery.categories().iter().enumerate() {
        members[index(discovery, category)].push(known + query);
    }
    for (category, members) in members.iter().enumerate() {
        let queries = members.iter().filter(|&&point| point >= known).count();
        prop_assert_eq!(discovery.items()[category], queries);
        prop_assert!(category < known || queries > 0, "group {} is empty", category - known);
    }
    // Larger groups first, and of equal ones that of the earlier query.
    for pair in members[known..].windows(2) {
        prop_assert!(
            (pair[1].len(), pair[0][0]) < (pair[0].len(), pair[1][0]),
            "{:?}",
            members
        );
    }

    let means: Vec<Vec<f64>> = members
        .iter()
        .map(|m| mean(m.iter().map(|&point| &points[point])))
        .collect();
    for (centre, mean) in discovery.centres().iter().zip(&means) {
        for (found, expected) in centre.iter().zip(mean) {
            let expected = expected / length(mean);
            prop_assert!(
                (f64::from(*found) - expected).abs() < 1e-4,
                "{} for {}",
                found,
                expected
            );
        }
        let squares: f64 = centre.iter().map(|&v| f64::from(v).powi(2)).sum();
        prop_assert!((squares - 1.0).abs() < 1e-5);
    }
    for (query, score) in discovery.scores().iter().enumerate() {
        let own = index(discovery, discovery.categories()[query]);
        let cosines: Vec<f64> = means
            .iter()
            .map(|mean| dot(mean, &points[known + query]) / length(mean))
            .collect();
        let rivals = (0..count).filter(|&c| c != own).map(|c| cosines[c]);
        let margin = rivals
            .reduce(f64::max)
            .map_or(cosines[own], |rival| cosines[own] - rival);
        prop_assert!(
            (f64::from(score.similarity) - cosines[own]).abs() < 2e-4,
            "{:?} {}",
            score,
            cosines[own]
        );
        prop_assert!(
            (f64::from(score.margin) - margin).abs() < 2e-4,
            "{:?} {}",
            score,
            margin
        );
    }
    Ok(())
}

/// Whether every query is of the class of a prototype in its cluster, or of the group of its cluster.
fn categories_are_clusters(discovery: &Discovery) -> Result<(), TestCaseError> {
    let clusters = partition(discovery);
    let (prototypes, queries) = clusters.split_at(discovery.known());
    for (a, &category) in discovery.categories().iter().enumerate() {
        match category {
            Category::Known(class) => prop_assert_eq!(prototypes[class], queries[a]),
            Category::Novel(_) => prop_assert!(!prototypes.contains(&queries[a])),
        }
        for b in 0..a {
            if category.kind() == Kind::Novel {
                prop_assert_eq!(category == discovery.categories()[b], queries[a] == queries[b]);
            }
        }
    }
    Ok(())
}

#[test]
fn every_method_on_small_tasks() {
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        for spec in SPECS {
            let discovery = Method::parse(spec, recipe.seed).unwrap().discover(&task).unwrap();
            follows_from_categories(&task, &discovery)?;
            categories_are_clusters(&discovery)?;
        }
        Ok(())
    });
}

#[test]
fn two_steps_on_small_tasks() {
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        for (spec, size, refine) in [
            ("shc:t=0", 5, 0),
            ("shc:t=0:stop=after", 9, 0),
            ("ukc:restarts=2", 12, 2),
        ] {
            let discovery = two_step(spec, size, refine).discover(&task).unwrap();
            categories_are_clusters(&discovery)?;
        }
        Ok(())
    });
}

#[test]
fn every_method_on_more_points_than_a_matrix_is_kept_for() {
    let recipe = Recipe {
        cloud: Cloud::Blobs(0.3),
        way: 4,
        shot: 3,
        new: 3,
        queries: 2100,
        dim: 3,
        seed: 11,
    };
    let task = recipe.task();
    for spec in SPECS {
        let spec = spec.replace("gcd:", "gcd:k-max=8:");
        let discovery = Method::parse(&spec, 1).unwrap().discover(&task).unwrap();
        follows_from_categories(&task, &discovery).unwrap_or_else(|error| panic!("{spec}: {error}"));
        categories_are_clusters(&discovery).unwrap_or_else(|error| panic!("{spec}: {error}"));
    }
    for refine in [0, 2] {
        let discovery = two_step("shc", 150, refine).discover(&task).unwrap();
        categories_are_clusters(&discovery).unwrap_or_else(|error| panic!("two steps: {error}"));
    }
}

#[test]
fn the_answer_does_not_depend_on_whether_the_matrix_is_kept() {
    // 2040 queries and 4 prototypes fit below the limit; the same queries and a few copies do not.
    let mut data = Recipe {
        cloud: Cloud::Blobs(0.4),
        way: 4,
        shot: 2,
        new: 2,
        queries: 2040,
        dim: 6,
        seed: 12,
    }
    .data();
    let small = data.task();
    data.queries.extend(data.queries[..20].to_vec());
    let large = data.task();
    for spec in ["proto", "rankstat"] {
        let method = Method::parse(spec, 0).unwrap();
        let (small, large) = (method.discover(&small).unwrap(), method.discover(&large).unwrap());
        assert_eq!(partition(&small)[..2044], partition(&large)[..2044]);
        // A few copies hardly move the centre of a large category.
        for (query, (a, b)) in small.scores().iter().zip(large.scores()).enumerate() {
            if small.items()[index(&small, small.categories()[query])] > 200 {
                assert!((a.similarity - b.similarity).abs() < 0.02, "{spec}: {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn without_a_rival_the_margin_is_the_similarity() {
    let task = one_shot_task(&[[1.0, 0.0]], &[[0.6, 0.8]]);
    let score = Proto.discover(&task).unwrap().scores()[0];
    // The centre is halfway between the two: the cosine of half of an angle whose cosine is 0.6.
    assert!((score.similarity - 0.8f32.sqrt()).abs() < 1e-6);
    assert_eq!(score.similarity, score.margin);
}

#[test]
fn opposite_members_leave_a_centre_that_is_similar_to_nothing() {
    // Three directions at equal angles cancel out, but not to the last bit.
    let angle = |degrees: f64| [degrees.to_radians().cos() as f32, degrees.to_radians().sin() as f32];
    for turn in 0..360 {
        let [a, b, c] = [0.0, 120.0, 240.0].map(|degrees| angle(f64::from(turn) + degrees));
        let task = one_shot_task(&[a], &[b, c]);
        let discovery = Proto.discover(&task).unwrap();
        for score in discovery.scores() {
            assert!(score.similarity.abs() <= 1.001, "{turn}: {score:?}");
            assert!(score.margin.abs() <= 2.001, "{turn}: {score:?}");
        }
    }
}

#[test]
fn clusters_from_elsewhere_make_an_answer() {
    use genus_core::{Features, Stop, Support};
    let support = Support::new(Features::from_rows([[1.0f32, 0.0], [0.0, 1.0]]).unwrap(), &["a", "b"]).unwrap();
    let queries = Features::from_rows([[1.0f32, 0.1], [0.1, 1.0], [-1.0, 0.2], [-1.0, -1.0], [-1.0, -0.9]]).unwrap();
    let task = Task::new(&support, queries).unwrap();
    // The numbers are names: small ones, and ones that no table could hold.
    for [a, b, c, d] in [[0, 1, 2, 3], [7, 3, 900, 5], [usize::MAX, 12, usize::MAX - 1, 1 << 60]] {
        let answer = Discovery::from_clusters(&task, vec![a, b, a, b, c, d, d], Stop::Direct);
        use Category::{Known, Novel};
        assert_eq!(answer.categories(), [Known(0), Known(1), Novel(1), Novel(0), Novel(0)]);
        assert_eq!(answer.items(), [1, 1, 2, 1]);
    }
    // Two prototypes in one cluster: the nearest counts.
    let shared = Discovery::from_clusters(&task, vec![5, 5, 5, 5, 9, 9, 9], Stop::Direct);
    assert_eq!(shared.categories()[..2], [Category::Known(0), Category::Known(1)]);
    assert_eq!(shared.prototype_clusters(), [0, 0]);
}
