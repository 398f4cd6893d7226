//! ProtoNet and RankStat against their definitions.

mod common;

use std::cell::Cell;

use common::{categories, dot, for_all, numbered, one_shot_task, partition, points, recipes};
use genus_core::methods::{KeyOrder, Proto, RankStat};
use genus_core::{Category, Discover, DiscoverError, Features, Prototypes, Stop, Support, Task};
use proptest::prelude::*;

/// The classes from the nearest prototype to the farthest, and the smallest lead of one over the next.
fn ranking(points: &[Vec<f64>], known: usize, point: usize) -> (Vec<usize>, f64) {
    let with = |class: usize| {
        if class == point {
            f64::INFINITY
        } else {
            dot(&points[class], &points[point])
        }
    };
    let mut order: Vec<usize> = (0..known).collect();
    order.sort_by(|&a, &b| with(b).total_cmp(&with(a)));
    let lead = order
        .windows(2)
        .map(|pair| with(pair[0]) - with(pair[1]))
        .fold(f64::INFINITY, f64::min);
    (order, lead)
}

#[test]
fn every_query_joins_its_nearest_class() {
    for_all(100, recipes(), |recipe| {
        let task = recipe.task();
        let points = points(&task);
        let discovery = Proto.discover(&task).unwrap();
        prop_assert_eq!(discovery.stop(), Stop::Direct);
        prop_assert_eq!(discovery.novel(), 0);
        for (query, &category) in discovery.categories().iter().enumerate() {
            let (order, lead) = ranking(&points, task.known(), task.known() + query);
            if lead > 1e-6 {
                prop_assert_eq!(category, Category::Known(order[0]));
            }
        }
        Ok(())
    });
}

#[test]
fn the_first_of_equally_near_classes_wins() {
    let task = one_shot_task(&[[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], &[[1.0, 0.0], [1.0, 1.0]]);
    let discovery = Proto.discover(&task).unwrap();
    assert_eq!(discovery.categories(), [Category::Known(1), Category::Known(0)]);
}

#[test]
fn equal_keys_are_a_category() {
    let compared = Cell::new(0);
    for_all(150, recipes(), |recipe| {
        let task = recipe.task();
        let points = points(&task);
        let rankings: Vec<(Vec<usize>, f64)> = (0..points.len())
            .map(|point| ranking(&points, task.known(), point))
            .collect();
        if rankings.iter().any(|&(_, lead)| lead < 1e-6) {
            return Ok(());
        }
        for top in 2..=task.known() {
            for order in [KeyOrder::Ordered, KeyOrder::Unordered] {
                let mut keys: Vec<Vec<usize>> = rankings.iter().map(|(ranking, _)| ranking[..top].to_vec()).collect();
                if order == KeyOrder::Unordered {
                    keys.iter_mut().for_each(|key| key.sort_unstable());
                }
                let clusters: Vec<usize> = keys
                    .iter()
                    .map(|key| keys.iter().position(|other| other == key).unwrap())
                    .collect();
                let discovery = RankStat { top, order }.discover(&task).unwrap();
                prop_assert_eq!(partition(&discovery), numbered(&clusters));
                prop_assert_eq!(discovery.categories(), categories(&points, task.known(), &clusters));
                prop_assert_eq!(discovery.stop(), Stop::Direct);
                compared.set(compared.get() + 1);
            }
        }
        Ok(())
    });
    assert!(compared.get() > 500, "{}", compared.get());
}

#[test]
fn a_prototype_ranks_first_with_itself() {
    // The first two coincide, so each is as near to the other as to itself.
    let task = one_shot_task(&[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], &[[1.0, 0.1]]);
    let discovery = RankStat::default().discover(&task).unwrap();
    assert_eq!(numbered(discovery.prototype_clusters()), [0, 1, 2]);
    // A mean of unit vectors may be so short that another prototype is nearer to it than it is itself.
    let features = Features::from_rows([[1.0, 0.9, 0.0], [1.0, -0.9, 0.0], [1.0, 0.1, 0.0], [0.0, 0.0, 1.0]]).unwrap();
    let support = Support::new(features, &["a", "a", "b", "c"]).unwrap();
    let query = Features::from_rows([[1.0, 0.0, 0.0]]).unwrap();
    let task = Task::with_prototypes(&support, query, Prototypes::UnitMeanUnnormalised).unwrap();
    let discovery = RankStat::default().discover(&task).unwrap();
    assert_eq!(numbered(discovery.prototype_clusters()), [0, 1, 2]);
}

#[test]
fn keys_longer_than_the_classes_are_refused() {
    let task = one_shot_task(&[[1.0, 0.0], [0.0, 1.0]], &[[1.0, 0.1]]);
    let method = RankStat {
        top: 3,
        order: KeyOrder::Ordered,
    };
    assert_eq!(
        method.discover(&task),
        Err(DiscoverError::TooFewClasses {
            method: "rankstat",
            needed: 3,
            found: 2
        })
    );
}
