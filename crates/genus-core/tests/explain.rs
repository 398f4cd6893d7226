//! What explains a discovery, against the plainest form of it.

use std::collections::BTreeMap;

use genus_core::explain::{CategoryTree, Confusable, Link, confusable, nearest_categories, rivals, ties};
use genus_core::methods::Shc;
use genus_core::rng::Rng;
use genus_core::{Category, Discover, Features, MergeTree, Support, Task};

fn random_rows(rows: usize, dim: usize, seed: u64) -> Features {
    let mut rng = Rng::new(seed, &[91]);
    let mut normal = || (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
    let values = (0..rows * dim).map(|_| normal() as f32).collect();
    Features::new(dim, values).unwrap().into_unit().unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[test]
fn the_nearest_categories_are_those_of_the_highest_cosine() {
    for (count, dim, seed) in [(1, 3, 1), (2, 3, 2), (40, 8, 3), (120, 5, 4)] {
        let centres = random_rows(count, dim, seed);
        for (category, nearest) in nearest_categories(&centres, 3).iter().enumerate() {
            assert_eq!(nearest.len(), 3.min(count - 1));
            let mut cosines: Vec<f64> = (0..count)
                .filter(|&other| other != category)
                .map(|other| dot(centres.row(category), centres.row(other)))
                .collect();
            cosines.sort_by(|a, b| b.total_cmp(a));
            for (neighbour, expected) in nearest.iter().zip(cosines) {
                let own = dot(centres.row(category), centres.row(neighbour.category));
                assert!((f64::from(neighbour.similarity) - own).abs() < 1e-5);
                assert!(
                    (own - expected).abs() < 1e-5,
                    "{category}: {neighbour:?}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn the_rival_is_the_best_category_but_the_own() {
    let (items, centres) = (random_rows(700, 6, 5), random_rows(9, 6, 6));
    let own: Vec<usize> = (0..700).map(|item| item % 9).collect();
    for (item, rival) in rivals(&items, &own, &centres).into_iter().enumerate() {
        let rival = rival.unwrap();
        assert_ne!(rival, own[item]);
        let best = (0..9)
            .filter(|&other| other != own[item])
            .map(|other| dot(items.row(item), centres.row(other)))
            .fold(f64::MIN, f64::max);
        assert!((dot(items.row(item), centres.row(rival)) - best).abs() < 1e-5);
    }
    assert_eq!(rivals(&items, &[0; 700], &random_rows(1, 6, 7)), [None; 700]);
}

#[test]
fn ties_lead_to_the_nearest_of_all() {
    for (count, dim, kinds, neighbours, seed) in [
        (2, 3, 2, 9, 1),
        (30, 4, 1, 7, 2),
        (60, 5, 4, 1, 3),
        (300, 6, 12, 10, 4),
        (700, 3, 40, 60, 5),
    ] {
        let points = random_rows(count, dim, 400 + seed);
        // Along a direction, so that some pairs have many ties and others none.
        let along = |point: usize| f64::from(points.row(point)[0]) / 2.0 + 0.5;
        let categories: Vec<usize> = (0..count)
            .map(|point| ((along(point) * kinds as f64) as usize).min(kinds - 1))
            .collect();
        let found = ties(&points, &categories, neighbours).unwrap();
        let expected = neighbours.clamp(5, 15).min(count - 1);
        assert_eq!((found.neighbours, found.points.len()), (expected, count));

        let mut shares: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (point, tied) in found.points.iter().enumerate() {
            let mut others: Vec<usize> = (0..count).filter(|&other| other != point).collect();
            others.sort_by(|&a, &b| {
                dot(points.row(point), points.row(b)).total_cmp(&dot(points.row(point), points.row(a)))
            });
            others.truncate(expected);
            let own = categories[point];
            assert_eq!(tied.nearest, others[..3.min(expected)]);
            assert_eq!(
                tied.own,
                others.iter().filter(|&&other| categories[other] == own).count()
            );
            let members = categories.iter().filter(|&&category| category == own).count();
            for &other in others.iter().filter(|&&other| categories[other] != own) {
                *shares.entry((own, categories[other])).or_default() += 1.0 / (members * expected) as f64;
            }
        }
        let share = |from: usize, to: usize| shares.get(&(from, to)).copied().unwrap_or(0.0);
        let mut strengths = Vec::new();
        for first in 0..kinds {
            for second in first + 1..kinds {
                let strength = share(first, second).max(share(second, first));
                if strength >= 0.05 - 1e-9 {
                    strengths.push(strength);
                }
            }
        }
        strengths.sort_by(|a, b| b.total_cmp(a));
        strengths.truncate(20);
        assert_eq!(found.links.len(), strengths.len());
        for (link, strength) in found.links.iter().zip(strengths) {
            let Link {
                first,
                second,
                from_first,
                from_second,
            } = *link;
            assert!(first < second);
            assert!((from_first - share(first, second)).abs() < 1e-9);
            assert!((from_second - share(second, first)).abs() < 1e-9);
            assert!((link.strength() - strength).abs() < 1e-9);
        }
    }
}

#[test]
fn few_points_have_few_ties_and_very_many_none() {
    let one = ties(&random_rows(1, 3, 8), &[0], 10).unwrap();
    assert_eq!((one.neighbours, one.points[0].own, one.links.len()), (0, 0, 0));
    assert_eq!(ties(&random_rows(25_001, 1, 9), &vec![0; 25_001], 10), None);
}

#[test]
fn torn_items_are_counted_between_their_category_and_its_rival() {
    // The usual lead is 0.4, so that less than 0.1 is torn.
    let margins = [0.4, 0.5, 0.05, -0.2, 0.4, 0.09, 0.6];
    let categories = [0, 0, 0, 1, 1, 2, 2];
    let rivals = [1, 1, 1, 0, 2, 1, 0].map(Some);
    let pair = |first, second, torn, items| Confusable {
        first,
        second,
        torn,
        items,
    };
    assert_eq!(
        confusable(&margins, &categories, &rivals),
        [pair(0, 1, 2, 5), pair(1, 2, 1, 4)]
    );
    assert_eq!(confusable(&[], &[], &[]), []);
    assert_eq!(confusable(&[0.3, -0.1], &[0, 0], &[None, None]), []);
}

/// A merge: the members of both sides, and its level.
type Merge = (Vec<usize>, Vec<usize>, f64);

/// All merges of a tree by looking at all pairs every time.
fn naive(kind: MergeTree, points: &Features) -> Vec<Merge> {
    let mut clusters: Vec<Vec<usize>> = (0..points.rows()).map(|point| vec![point]).collect();
    let mut merges = Vec::new();
    let average = |a: &[usize], b: &[usize]| {
        let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
        pairs.map(|(a, b)| dot(points.row(a), points.row(b))).sum::<f64>() / (a.len() * b.len()) as f64
    };
    // The squared error of a cluster: the squared distances of all pairs over its size.
    let error = |members: &[usize]| {
        let pairs = members.iter().flat_map(|&a| members.iter().map(move |&b| (a, b)));
        let squared = pairs.map(|(a, b)| 1.0 - dot(points.row(a), points.row(b)));
        squared.sum::<f64>() / members.len() as f64
    };
    let merit = |a: &[usize], b: &[usize]| match kind {
        MergeTree::Average => average(a, b),
        MergeTree::Ward => error(a) + error(b) - error(&[a, b].concat()),
    };
    while clusters.len() > 1 {
        let mut best = (f64::MIN, 0, 1);
        for b in 1..clusters.len() {
            for a in 0..b {
                let merit = merit(&clusters[a], &clusters[b]);
                if merit > best.0 {
                    best = (merit, a, b);
                }
            }
        }
        let gone = clusters.remove(best.2);
        let level = match kind {
            MergeTree::Average => best.0,
            MergeTree::Ward => -best.0,
        };
        merges.push((clusters[best.1].clone(), gone.clone(), level));
        clusters[best.1].extend(gone);
    }
    merges
}

/// A tree of categories must be the naive one around the place where these come from.
fn check(tree: &CategoryTree, merges: &[Merge], of_points: &[usize], count: usize) {
    assert_eq!(tree.merges.len(), tree.branches.len() - 1);
    let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-4 * b.abs().max(1.0), "{a}, not {b}");
    // Between categories: all that was not merged, in order.
    let (inside, between): (Vec<_>, Vec<_>) = merges
        .iter()
        .partition(|merge| of_points[merge.0[0]] == of_points[merge.1[0]]);
    let found = &tree.merges[tree.within..];
    assert_eq!(found.len(), between.len());
    found
        .iter()
        .zip(between)
        .for_each(|(merge, expected)| near(merge.level, expected.2));
    // Within a category: its last three.
    let leaves = tree.branches.len();
    let category_in = |mut node: usize| {
        while node >= leaves {
            node = tree.merges[node - leaves].left;
        }
        tree.branches[node]
    };
    for category in 0..count {
        let mut expected: Vec<f64> = inside
            .iter()
            .filter(|merge| of_points[merge.0[0]] == category)
            .map(|merge| merge.2)
            .collect();
        expected = expected.split_off(expected.len().saturating_sub(3));
        let own: Vec<f32> = tree.merges[..tree.within]
            .iter()
            .filter(|merge| category_in(merge.left) == category)
            .map(|merge| merge.level)
            .collect();
        assert_eq!(own.len(), expected.len());
        own.iter()
            .zip(expected)
            .for_each(|(&own, expected)| near(own, expected));
    }
}

#[test]
fn the_tree_is_that_of_the_method_around_its_cut() {
    for seed in 0..12 {
        let examples = random_rows(6, 5, 100 + seed);
        let support = Support::new(examples, &["a", "a", "b", "b", "c", "c"]).unwrap();
        let task = Task::new(&support, random_rows(40, 5, 200 + seed)).unwrap();
        // With nothing to attach afterwards, the categories are the clusters of the cut.
        let method = Shc {
            min_size: 0,
            ..Shc::default()
        };
        let discovery = method.discover(&task).unwrap();
        let number = |category: &Category| match *category {
            Category::Known(class) => class,
            Category::Novel(group) => task.known() + group,
        };
        let of_points: Vec<usize> = (0..task.known())
            .chain(discovery.categories().iter().map(number))
            .collect();
        let count = discovery.known() + discovery.novel();
        let all: Vec<usize> = (0..count).collect();
        let tree = CategoryTree::of(MergeTree::Average, task.points(), &of_points, &all);
        check(&tree, &naive(MergeTree::Average, task.points()), &of_points, count);
    }
}

#[test]
fn categories_of_a_cut_tree_hang_together_as_in_the_tree() {
    for seed in 0..6 {
        for kind in [MergeTree::Average, MergeTree::Ward] {
            let points = random_rows(40, 4, 300 + seed);
            let merges = naive(kind, &points);
            let count = 7;
            // Undo the last merges: what they would have put together are the categories.
            let mut of_points: Vec<usize> = (0..40).collect();
            for (kept, gone, _) in &merges[..40 - count] {
                let (to, from) = (of_points[kept[0]], of_points[gone[0]]);
                of_points.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            }
            let mut names = of_points.clone();
            names.sort_unstable();
            names.dedup();
            of_points.iter_mut().for_each(|c| *c = names.binary_search(c).unwrap());
            let tree = CategoryTree::of(kind, &points, &of_points, &(0..count).collect::<Vec<_>>());
            check(&tree, &merges, &of_points, count);
        }
    }
}

#[test]
fn every_node_of_a_tree_is_merged_once() {
    let points = random_rows(1000, 4, 9);
    let categories: Vec<usize> = (0..1000).map(|point| point * point % 7).collect();
    for kind in [MergeTree::Average, MergeTree::Ward] {
        // One that does not exist and one that is not asked for.
        let tree = CategoryTree::of(kind, &points, &categories, &[0, 1, 2, 12]);
        assert!(tree.branches.iter().all(|category| [0, 1, 2].contains(category)));
        let mut merged: Vec<usize> = tree.merges.iter().flat_map(|merge| [merge.left, merge.right]).collect();
        merged.sort_unstable();
        let nodes = tree.branches.len() + tree.merges.len();
        assert_eq!(merged, (0..nodes - 1).collect::<Vec<_>>());
        assert_eq!(CategoryTree::of(kind, &points, &categories, &[]).branches, []);
    }
}
