//! Taxonomies and the two steps for large piles, against the plainest form of both.

mod common;

use std::sync::Arc;

use common::{Cloud, Data, Recipe, Rng, dot, for_all, length, points, recipes};
use genus_core::methods::{Method, Shc};
use genus_core::{
    Assignment, Calibration, CalibrationParts, Category, Centre, CentreNorm, Discover, Eagerness, FeatureError,
    Features, Kind, MergeTree, PartialSums, Source, Subset, Task, TaskError, Taxonomy, TaxonomyEntry, TaxonomyError,
    TwoStep,
};
use proptest::prelude::*;

fn entries(kinds: &[Kind]) -> Vec<TaxonomyEntry> {
    let entry = |(number, &kind): (usize, &Kind)| TaxonomyEntry {
        name: format!("category {number}"),
        kind,
        items: number as u64,
    };
    kinds.iter().enumerate().map(entry).collect()
}

fn random_rows(rows: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = Rng::new(seed);
    (0..rows)
        .map(|_| (0..dim).map(|_| rng.normal() as f32).collect())
        .collect()
}

/// A taxonomy of random unit centres.
fn taxonomy(count: usize, dim: usize, seed: u64) -> Taxonomy {
    let centres = Features::from_rows(random_rows(count, dim, seed))
        .unwrap()
        .into_unit()
        .unwrap();
    let kinds: Vec<Kind> = (0..count)
        .map(|c| if 2 * c < count { Kind::Known } else { Kind::Novel })
        .collect();
    Taxonomy::from_parts(entries(&kinds), centres).unwrap()
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&v| f64::from(v)).collect()
}

fn naive_cosines(centres: &Features, item: &[f32]) -> Vec<f64> {
    let item = wide(item);
    centres
        .iter()
        .map(|centre| dot(&wide(centre), &item) / length(&item))
        .collect()
}

#[test]
fn items_go_to_the_nearest_centre() {
    for_all(
        60,
        (1usize..12, 1usize..20, 1usize..1300, 0u64..1 << 32),
        |(count, dim, rows, seed)| {
            let taxonomy = taxonomy(count, dim, seed);
            let items = Features::from_rows(random_rows(rows, dim, seed ^ 7)).unwrap();
            let assigned = taxonomy.assign(&items).unwrap();
            prop_assert_eq!(assigned.len(), rows);
            for (row, Assignment { category, score }) in assigned.into_iter().enumerate() {
                let mut cosines = naive_cosines(taxonomy.centres(), items.row(row));
                prop_assert!((f64::from(score.similarity) - cosines[category]).abs() < 1e-5);
                let best = cosines.iter().copied().fold(f64::MIN, f64::max);
                prop_assert!(best - cosines[category] < 1e-5, "{} of {:?}", category, cosines);
                cosines.remove(category);
                let rival = cosines.iter().copied().fold(f64::MIN, f64::max);
                let margin = if count == 1 { best } else { best - rival };
                prop_assert!((f64::from(score.margin) - margin).abs() < 1e-5);
            }
            Ok(())
        },
    );
}

#[test]
fn items_are_assigned_independently_of_each_other() {
    let taxonomy = taxonomy(7, 5, 1);
    let items = Features::from_rows(random_rows(1100, 5, 2)).unwrap();
    let together = taxonomy.assign(&items).unwrap();
    for (row, assignment) in together.iter().enumerate() {
        let alone = taxonomy.assign(&items.select(&[row])).unwrap()[0];
        assert_eq!(alone.category, assignment.category);
        assert!((alone.score.similarity - assignment.score.similarity).abs() < 1e-6);
        assert!((alone.score.margin - assignment.score.margin).abs() < 1e-6);
    }
    assert!(taxonomy.assign(&Features::new(5, vec![]).unwrap()).unwrap().is_empty());
}

#[test]
fn the_first_of_equally_near_centres_wins() {
    let centres = Features::from_rows([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, -1.0]]).unwrap();
    let taxonomy =
        Taxonomy::from_parts(entries(&[Kind::Known, Kind::Known, Kind::Novel, Kind::Novel]), centres).unwrap();
    let items = Features::from_rows([[3.0, 0.0], [1.0, 1.0], [-1.0, 0.0]]).unwrap();
    let assigned = taxonomy.assign(&items).unwrap();
    assert_eq!(assigned.iter().map(|a| a.category).collect::<Vec<_>>(), [1, 0, 0]);
    assert_eq!((assigned[0].score.similarity, assigned[0].score.margin), (1.0, 0.0));
}

#[test]
fn huge_and_tiny_items_are_assigned_by_their_direction() {
    let taxonomy = taxonomy(6, 16, 3);
    let rows = random_rows(40, 16, 4);
    let unit = Features::from_rows(&rows).unwrap().into_unit().unwrap();
    let expected = taxonomy.assign(&unit).unwrap();
    for scale in [3e38, 1e30, 1e-30, 1e-38] {
        let scaled = Features::new(16, unit.values().iter().map(|v| v * scale).collect()).unwrap();
        for (found, expected) in taxonomy.assign(&scaled).unwrap().iter().zip(&expected) {
            assert_eq!(found.category, expected.category, "{scale}");
            assert!((found.score.similarity - expected.score.similarity).abs() < 1e-5);
            assert!((found.score.margin - expected.score.margin).abs() < 1e-5);
        }
    }
    // Longer than any f32: the length of this row is four times its values.
    let longest = Features::new(16, vec![f32::MAX; 16]).unwrap();
    let plain = Features::new(16, vec![1.0; 16]).unwrap();
    let (found, expected) = (
        taxonomy.assign(&longest).unwrap()[0],
        taxonomy.assign(&plain).unwrap()[0],
    );
    assert_eq!(found.category, expected.category);
    assert!(
        (found.score.similarity - expected.score.similarity).abs() < 1e-5,
        "{found:?}"
    );
}

#[test]
fn items_without_direction_or_of_another_width_are_refused() {
    let taxonomy = taxonomy(3, 4, 5);
    let mut rows = random_rows(1200, 4, 6);
    rows[700] = vec![0.0; 4];
    assert_eq!(
        taxonomy.assign(&Features::from_rows(&rows).unwrap()),
        Err(TaskError::Queries(FeatureError::ZeroRow { row: 700 }))
    );
    assert_eq!(
        taxonomy.assign(&Features::from_rows([[1.0, 2.0]]).unwrap()),
        Err(TaskError::Dimensions { support: 4, queries: 2 })
    );
    let prototypes = Features::new(4, vec![]).unwrap();
    let mut pass = taxonomy.refinement(&prototypes);
    assert!(pass.add(&Features::from_rows([[1.0, 2.0]]).unwrap()).is_err());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let centres = Features::from_rows([[1.0, 0.0], [0.0, 1.0]]).unwrap();
    let nothing = Features::new(2, vec![]).unwrap();
    assert_eq!(Taxonomy::from_parts(vec![], nothing), Err(TaxonomyError::Empty));
    assert_eq!(
        Taxonomy::from_parts(entries(&[Kind::Known; 3]), centres.clone()),
        Err(TaxonomyError::CentreCount {
            categories: 3,
            centres: 2
        })
    );
    let mut twice = entries(&[Kind::Known, Kind::Novel]);
    twice[1].name = "category 0".to_owned();
    assert_eq!(
        Taxonomy::from_parts(twice, centres.clone()),
        Err(TaxonomyError::NameTwice {
            name: "category 0".to_owned()
        })
    );
    let taxonomy = Taxonomy::from_parts(entries(&[Kind::Known, Kind::Novel]), centres.clone()).unwrap();
    assert_eq!(taxonomy.centres(), &centres);
    assert_eq!(taxonomy.index_of(Category::Known(0)), 0);
    assert_eq!(taxonomy.index_of(Category::Novel(0)), 1);
}

#[test]
fn the_authors_scale_every_feature_across_the_centres() {
    let rows = [[3.0, 0.0, -1.0], [4.0, 0.0, 2.0], [0.0, 0.0, 2.0]];
    let taxonomy = Taxonomy::from_parts(
        entries(&[Kind::Known, Kind::Novel, Kind::Novel]),
        Features::from_rows(rows).unwrap(),
    )
    .unwrap()
    .with_authors_column_norm();
    let expected = [[0.6, 0.0, -1.0 / 3.0], [0.8, 0.0, 2.0 / 3.0], [0.0, 0.0, 2.0 / 3.0f32]];
    for (row, expected) in taxonomy.centres().iter().zip(&expected) {
        assert!(row.iter().zip(expected).all(|(v, w)| (v - w).abs() < 1e-6), "{row:?}");
    }
}

#[test]
fn refinement_is_a_pass_of_spherical_k_means() {
    for_all(
        60,
        (2usize..8, 2usize..10, 1usize..200, 0u64..1 << 32),
        |(count, dim, rows, seed)| {
            let taxonomy = taxonomy(count, dim, seed);
            let known = taxonomy
                .entries()
                .iter()
                .filter(|entry| entry.kind == Kind::Known)
                .count();
            let items = random_rows(rows, dim, seed ^ 1);
            let prototypes = Features::from_rows(random_rows(known, dim, seed ^ 2))
                .unwrap()
                .into_unit()
                .unwrap();
            let mut sums = vec![vec![0.0; dim]; count];
            let mut counts = vec![0u64; count];
            for (sum, prototype) in sums.iter_mut().zip(prototypes.iter()) {
                *sum = wide(prototype);
            }
            for item in &items {
                let cosines = naive_cosines(taxonomy.centres(), item);
                let nearest = (0..count)
                    .reduce(|a, b| if cosines[b] > cosines[a] { b } else { a })
                    .unwrap();
                let item = wide(item);
                sums[nearest]
                    .iter_mut()
                    .zip(&item)
                    .for_each(|(s, v)| *s += v / length(&item));
                counts[nearest] += 1;
            }

            let mut pass = taxonomy.refinement(&prototypes);
            for block in items.chunks(1 + rows / 3) {
                pass.add(&Features::from_rows(block).unwrap()).unwrap();
            }
            let refined = pass.finish();
            for (category, entry) in refined.entries().iter().enumerate() {
                let old = &taxonomy.entries()[category];
                prop_assert_eq!((&entry.name, entry.kind), (&old.name, old.kind));
                prop_assert_eq!(entry.items, counts[category]);
                let centre = wide(refined.centres().row(category));
                if category >= known && counts[category] == 0 {
                    prop_assert_eq!(refined.centres().row(category), taxonomy.centres().row(category));
                } else {
                    let total = length(&sums[category]);
                    prop_assert!(
                        centre
                            .iter()
                            .zip(&sums[category])
                            .all(|(v, s)| (v - s / total).abs() < 1e-5)
                    );
                }
            }
            Ok(())
        },
    );
}

/// A task of some new groups.
fn task() -> Task {
    Recipe {
        cloud: Cloud::Blobs(0.3),
        way: 3,
        shot: 2,
        new: 3,
        queries: 90,
        dim: 8,
        seed: 21,
    }
    .task()
}

#[test]
fn a_discovery_becomes_a_taxonomy() {
    let task = task();
    let discovery = Shc::default().discover(&task).unwrap();
    assert!(discovery.novel() >= 2);
    let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
    let names: Vec<&str> = taxonomy.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[..5], ["class 0", "class 1", "class 2", "new-1", "new-2"]);
    for (category, entry) in taxonomy.entries().iter().enumerate() {
        assert_eq!(entry.kind, if category < 3 { Kind::Known } else { Kind::Novel });
        assert_eq!(entry.items as usize, discovery.items()[category]);
    }
    assert_eq!(taxonomy.centres(), discovery.centres());
    assert_eq!(taxonomy.index_of(Category::Known(2)), 2);
    assert_eq!(taxonomy.index_of(Category::Novel(1)), 4);
    // The parts make the same taxonomy again.
    let again = Taxonomy::from_parts(taxonomy.entries().to_vec(), taxonomy.centres().clone());
    assert_eq!(again, Ok(taxonomy));
}

#[test]
fn where_an_item_goes_does_not_depend_on_those_beside_it() {
    for (spec, dim, new) in [
        ("shc", 8, 3),
        ("shc", 400, 1),
        ("calibrated", 24, 3),
        ("calibrated", 800, 6),
    ] {
        let task = Recipe {
            cloud: Cloud::Blobs(0.6),
            way: 3,
            shot: 2,
            new,
            queries: 300,
            dim,
            seed: 5,
        }
        .task();
        let discovery = Method::parse(spec, 1).unwrap().discover(&task).unwrap();
        let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
        let items = task.points();
        let at_once = taxonomy.assign(items).unwrap();
        for length in [1, 7, 64, 255] {
            let rows: Vec<usize> = (0..items.rows()).collect();
            let parts = rows
                .chunks(length)
                .map(|rows| taxonomy.assign(&items.select(rows)).unwrap());
            assert_eq!(
                parts.collect::<Vec<_>>().concat(),
                at_once,
                "{spec}, {dim} features, {length} rows"
            );
        }
    }
}

#[test]
fn known_classes_may_have_the_names_of_new_ones() {
    let task = task();
    let discovery = Shc::default().discover(&task).unwrap();
    let classes = ["new-1", "dog", "new-3"].map(str::to_owned);
    let taxonomy = Taxonomy::from_discovery(&classes, &discovery);
    let names: Vec<&str> = taxonomy.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[..5], ["new-1", "dog", "new-3", "new-2", "new-4"]);
    assert!(Taxonomy::from_parts(taxonomy.entries().to_vec(), taxonomy.centres().clone()).is_ok());
}

fn two_step(spec: &str, subset: Subset) -> TwoStep<Method> {
    TwoStep {
        method: Method::parse(spec, 1).unwrap(),
        subset,
        centre_norm: CentreNorm::Cosine,
        refine: 0,
    }
}

#[test]
fn members_of_the_subset_stay_and_the_rest_goes_to_the_nearest_centre() {
    for_all(60, recipes(), |recipe| {
        let task = recipe.task();
        let all = points(&task);
        for (spec, size) in [("shc:t=0", 6), ("ukc:restarts=2", 10), ("rankstat", 3), ("proto", 4)] {
            for centre_norm in [CentreNorm::Cosine, CentreNorm::AuthorsColumns] {
                let method = TwoStep {
                    centre_norm,
                    ..two_step(
                        spec,
                        Subset::Random {
                            size,
                            seed: recipe.seed,
                        },
                    )
                };
                let rows = method.subset.rows(&task);
                let discovery = method.discover(&task).unwrap();
                if rows.len() == task.queries() {
                    prop_assert_eq!(discovery, method.method.discover(&task).unwrap());
                    continue;
                }
                let first = method.method.discover(&task.with_queries(&rows).unwrap()).unwrap();
                prop_assert_eq!(discovery.stop(), first.stop());
                // Groups may have other numbers, as they have other sizes now.
                let mut group = vec![None; first.novel()];
                for (at, &row) in rows.iter().enumerate() {
                    match (first.categories()[at], discovery.categories()[row]) {
                        (Category::Known(a), Category::Known(b)) => prop_assert_eq!(a, b),
                        (Category::Novel(a), Category::Novel(b)) => {
                            prop_assert_eq!(*group[a].get_or_insert(b), b);
                        }
                        (a, b) => prop_assert!(false, "{:?} became {:?}", a, b),
                    }
                }
                prop_assert_eq!(discovery.novel(), first.novel());
                let mut taxonomy = Taxonomy::from_discovery(task.classes(), &first);
                if centre_norm == CentreNorm::AuthorsColumns {
                    taxonomy = taxonomy.with_authors_column_norm();
                }
                for query in (0..task.queries()).filter(|query| !rows.contains(query)) {
                    let point = &all[task.known() + query];
                    let cosines: Vec<f64> = taxonomy.centres().iter().map(|c| dot(&wide(c), point)).collect();
                    let found = match discovery.categories()[query] {
                        Category::Known(class) => class,
                        Category::Novel(number) => {
                            task.known() + group.iter().position(|&group| group == Some(number)).unwrap()
                        }
                    };
                    let best = cosines.iter().copied().fold(f64::MIN, f64::max);
                    prop_assert!(
                        best - cosines[found] < 1e-5,
                        "query {}: {} of {:?}",
                        query,
                        found,
                        cosines
                    );
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_subset_of_everything_is_the_plain_method() {
    let task = task();
    for spec in ["shc", "ukc", "gcd", "rankstat", "proto"] {
        let plain = Method::parse(spec, 1).unwrap().discover(&task).unwrap();
        for subset in [
            Subset::First(90),
            Subset::First(1000),
            Subset::Random { size: 90, seed: 3 },
            Subset::Random {
                size: usize::MAX,
                seed: 3,
            },
        ] {
            assert_eq!(two_step(spec, subset).discover(&task).unwrap(), plain);
        }
    }
}

#[test]
fn refining_between_the_steps_moves_items_to_their_nearest_centre() {
    // Clean groups: the passes change nothing but the numbers of the centres' members.
    let task = Recipe {
        cloud: Cloud::Blobs(0.05),
        way: 3,
        shot: 2,
        new: 2,
        queries: 200,
        dim: 12,
        seed: 8,
    }
    .task();
    let plain = Shc::default().discover(&task).unwrap();
    for refine in [0, 1, 5] {
        let method = TwoStep {
            refine,
            ..two_step("shc", Subset::Random { size: 80, seed: 1 })
        };
        assert_eq!(
            method.discover(&task).unwrap().categories(),
            plain.categories(),
            "{refine}"
        );
    }
}

#[test]
fn subsets_are_chosen_rows_in_order() {
    let task = |n: usize| {
        let support = genus_core::Support::new(Features::from_rows([[1.0, 0.0]]).unwrap(), &["a"]).unwrap();
        Task::new(
            &support,
            Features::from_rows((0..n).map(|row| [1.0, row as f32])).unwrap(),
        )
        .unwrap()
    };
    let random = |size, seed, n| Subset::Random { size, seed }.rows(&task(n));
    for (size, n) in [(0, 5), (1, 5), (5, 5), (9, 5), (400, 5000)] {
        let rows = random(size, 1, n);
        assert_eq!(rows.len(), size.min(n));
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]) && rows.iter().all(|&row| row < n));
        assert_eq!(rows, random(size, 1, n));
        assert_eq!(Subset::First(size).rows(&task(n)), (0..size.min(n)).collect::<Vec<_>>());
    }
    assert_ne!(random(10, 1, 1000), random(10, 2, 1000));
    // Every row is as likely, and so is every pair.
    let mut counts = [0usize; 6];
    let mut pairs = [[0usize; 6]; 6];
    for seed in 0..6000 {
        let rows = random(2, seed, 6);
        rows.iter().for_each(|&row| counts[row] += 1);
        pairs[rows[0]][rows[1]] += 1;
    }
    assert!(counts.iter().all(|&count| (1800..2200).contains(&count)), "{counts:?}");
    for a in 0..6 {
        assert!((a + 1..6).all(|b| (310..490).contains(&pairs[a][b])), "{pairs:?}");
    }
}

#[test]
fn a_subset_of_nothing_is_refused() {
    assert!(two_step("shc", Subset::First(0)).discover(&task()).is_err());
}

#[test]
fn classes_that_share_a_cluster_share_it_after_the_second_step() {
    // Merging two known classes is the last merge of the first step.
    let data = Data {
        support: vec![vec![1.0, 0.0, 0.0], vec![0.9, 0.4, 0.0], vec![0.0, 0.0, 1.0]],
        labels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        queries: vec![
            vec![1.0, 0.05, 0.0],
            vec![0.0, 0.1, 1.0],
            vec![1.0, -0.2, 0.0],
            vec![0.9, 0.5, 0.0],
        ],
        truth: vec![],
    };
    let discovery = two_step("shc:t=0:stop=after", Subset::First(2))
        .discover(&data.task())
        .unwrap();
    let (prototypes, queries) = (discovery.prototype_clusters(), discovery.query_clusters());
    assert_eq!(prototypes[0], prototypes[1]);
    assert_ne!(prototypes[0], prototypes[2]);
    assert_eq!(queries, [prototypes[0], prototypes[2], prototypes[0], prototypes[0]]);
    let expected = [0, 2, 0, 1].map(Category::Known);
    assert_eq!(discovery.categories(), expected);
}

#[test]
fn known_classes_come_first() {
    let entry = |name: &str, kind| TaxonomyEntry {
        name: name.to_owned(),
        kind,
        items: 1,
    };
    let centres = Features::from_rows([[1.0, 0.0], [0.0, 1.0]]).unwrap();
    let entries = vec![entry("new-1", Kind::Novel), entry("cat", Kind::Known)];
    let error = Taxonomy::from_parts(entries, centres).unwrap_err();
    assert!(error.to_string().contains("`cat`"), "{error}");
}

/// A calibration around a mean, with one direction damped.
fn around(mean: Vec<f32>, centre: Centre, variance: f64) -> Arc<Calibration> {
    let mut directions = vec![0.0; mean.len()];
    directions[0] = 1.0;
    let parts = CalibrationParts {
        source: Source::Base,
        classes: 9,
        items: 90,
        centre,
        mean,
        directions,
        factors: vec![0.25],
        tree: MergeTree::Ward,
        eagerness: Eagerness::Chosen,
        variance,
        largest: 60.0,
        dimensions: 100.0,
        merges: [0.0; 5],
        arrivals: [0.0, 8.0, 1.0, -4.0, 0.0],
        places: [0.0; 5],
        doubt: 0.5,
    };
    Arc::new(Calibration::from_parts(parts).unwrap())
}

fn unit(row: Vec<f64>) -> Vec<f64> {
    let length = length(&row);
    row.iter().map(|v| v / length).collect()
}

#[test]
fn a_taxonomy_without_a_calibration_takes_one() {
    let plain = taxonomy(5, 4, 3);
    let mean = vec![0.2f32, -0.1, 0.05, 0.3];
    let variance = 0.6;
    let calibrated = plain
        .clone()
        .calibrated_by(around(mean.clone(), Centre::Base, variance))
        .unwrap();
    for (centre, found) in plain.centres().iter().zip(calibrated.centres().iter()) {
        let less_mean = wide(centre).iter().zip(&mean).map(|(v, &m)| v - f64::from(m)).collect();
        let mut expected = unit(less_mean);
        expected[0] *= 0.25;
        for (expected, &found) in unit(expected).iter().zip(found) {
            assert!((expected - f64::from(found)).abs() < 1e-5);
        }
    }
    for (entry, (members, agreement)) in calibrated.entries().iter().zip(calibrated.members()) {
        assert_eq!(members, entry.items.max(1) as f64);
        let spread = 1.0 - agreement * agreement;
        assert!((spread - variance * (members - 1.0) / members).abs() < 1e-12);
    }
    assert_eq!(calibrated.entries(), plain.entries());
    let items = Features::from_rows(random_rows(40, 4, 5)).unwrap();
    let assigned = calibrated.assign(&items).unwrap();
    assert!(assigned.iter().all(|a| a.score.probability.is_some()));
    assert!(assigned.iter().any(|a| a.score.unsure) && assigned.iter().any(|a| !a.score.unsure));
    // However wide classes are, members do not agree less than not at all.
    let wide = plain.calibrated_by(around(mean, Centre::Base, 7.0)).unwrap();
    assert!(
        wide.members()
            .iter()
            .all(|&(_, agreement)| (0.0..=1.0).contains(&agreement))
    );
}

#[test]
fn a_centre_that_vanished_stays_similar_to_nothing() {
    let centres = Features::from_rows([[1.0, 0.0], [0.0, 0.0]]).unwrap();
    let plain = Taxonomy::from_parts(entries(&[Kind::Known, Kind::Novel]), centres).unwrap();
    let calibrated = plain.calibrated_by(around(vec![0.3, 0.1], Centre::Base, 0.5)).unwrap();
    assert_eq!(calibrated.centres().row(1), [0.0, 0.0]);
    assert_ne!(calibrated.centres().row(0), [0.0, 0.0]);
}

#[test]
fn calibrations_that_do_not_fit_a_taxonomy_are_refused() {
    let plain = taxonomy(3, 2, 1);
    let mean = vec![0.3, 0.1];
    let calibrated = plain
        .clone()
        .calibrated_by(around(mean.clone(), Centre::Base, 0.5))
        .unwrap();
    let again = calibrated.calibrated_by(around(mean.clone(), Centre::Base, 0.5));
    assert_eq!(again, Err(TaxonomyError::CalibratedAlready));
    let of_task = plain.clone().calibrated_by(around(mean, Centre::Task, 0.5));
    assert_eq!(of_task, Err(TaxonomyError::NoMiddle));
    let wide = plain.calibrated_by(around(vec![0.0; 3], Centre::Base, 0.5));
    let width = TaxonomyError::CalibrationWidth {
        calibration: 3,
        centres: 2,
    };
    assert_eq!(wide, Err(width));
}

#[test]
fn the_more_items_belong_the_less_is_unsure() {
    let plain = taxonomy(5, 4, 3);
    assert_eq!(plain.familiar(), None);
    let calibrated = plain
        .calibrated_by(around(vec![0.2, -0.1, 0.05, 0.3], Centre::Base, 0.6))
        .unwrap();
    assert_eq!(calibrated.familiar(), Some(0.5));
    let items = Features::from_rows(random_rows(40, 4, 5)).unwrap();
    let even = calibrated.assign(&items).unwrap();
    for share in [0.1, 0.9f64] {
        let other = calibrated.clone().with_familiar(share).unwrap().assign(&items).unwrap();
        for (even, other) in even.iter().zip(other) {
            // Bayes: the odds are multiplied by those of the share.
            let odds = |p: f32| f64::from(p) / (1.0 - f64::from(p));
            let expected = odds(even.score.probability.unwrap()) * share / (1.0 - share);
            let found = odds(other.score.probability.unwrap());
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} for {expected}");
            assert_eq!(even.category, other.category);
            assert_eq!(other.score.unsure, other.score.probability.unwrap() < 0.5);
        }
    }
    for share in [0.0, 1.0, f64::NAN, -1.0] {
        let refused = calibrated.clone().with_familiar(share);
        assert!(matches!(refused, Err(TaxonomyError::Familiar { .. })), "{share}");
    }
}

#[test]
fn similarities_are_cosines_and_memberships_agree_with_where_items_go() {
    for_all(
        40,
        (1usize..12, 2usize..20, 1usize..700, 0u64..1 << 32),
        |(count, dim, rows, seed)| {
            let taxonomy = taxonomy(count, dim, seed);
            let items = Features::from_rows(random_rows(rows, dim, seed + 1)).unwrap();
            let cosines = taxonomy.similarities(&items).unwrap();
            let shares = taxonomy.memberships(&items).unwrap();
            let found = taxonomy.assign(&items).unwrap();
            for (row, item) in items.iter().enumerate() {
                let naive = naive_cosines(taxonomy.centres(), item);
                let of_item = &shares[row * count..][..count];
                for (category, cosine) in naive.into_iter().enumerate() {
                    prop_assert!((f64::from(cosines[row * count + category]) - cosine).abs() < 1e-5);
                    prop_assert!(of_item[category] > 0.0);
                    prop_assert!(category == found[row].category || of_item[category] < of_item[found[row].category]);
                }
                prop_assert!((of_item.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
            // An item by itself is what it is among others.
            let last = items.select(&[rows - 1]);
            prop_assert_eq!(&taxonomy.memberships(&last).unwrap()[..], &shares[(rows - 1) * count..]);
            prop_assert_eq!(
                &taxonomy.similarities(&last).unwrap()[..],
                &cosines[(rows - 1) * count..]
            );
            Ok(())
        },
    );
}

#[test]
fn merged_categories_are_the_mean_of_their_items_and_the_others_stay() {
    for_all(
        60,
        (2usize..9, 0usize..8, 0usize..8, 0u64..1 << 32),
        |(count, first, second, seed)| {
            let (first, second) = (first % count, second % count);
            prop_assume!(first != second);
            let before = taxonomy(count, 7, seed);
            let (merged, now) = before.merged(first, second);
            prop_assert_eq!(merged.entries().len(), count - 1);
            prop_assert_eq!(now[first], now[second]);
            // Known classes stay before the new ones.
            let kinds: Vec<Kind> = merged.entries().iter().map(|entry| entry.kind).collect();
            prop_assert!(kinds.is_sorted());
            let of_both = &merged.entries()[now[first]];
            prop_assert_eq!(&of_both.name, &before.entries()[first].name);
            prop_assert_eq!(
                of_both.items,
                before.entries()[first].items + before.entries()[second].items
            );
            for at in (0..count).filter(|&at| at != first && at != second) {
                prop_assert_eq!(&merged.entries()[now[at]], &before.entries()[at]);
                prop_assert_eq!(merged.centres().row(now[at]), before.centres().row(at));
            }
            let weight = |at: usize| before.entries()[at].items.max(1) as f64;
            let pair = before.centres().row(first).iter().zip(before.centres().row(second));
            let sum: Vec<f64> = pair
                .map(|(&a, &b)| weight(first) * f64::from(a) + weight(second) * f64::from(b))
                .collect();
            let length = length(&sum);
            for (&mean, expected) in merged.centres().row(now[first]).iter().zip(sum) {
                prop_assert!((f64::from(mean) - expected / length).abs() < 1e-6);
            }
            Ok(())
        },
    );
}

#[test]
fn sums_of_parts_come_to_the_pass_over_all() {
    for_all(
        40,
        (2usize..8, 2usize..10, 1usize..200, 0u64..1 << 32),
        |(count, dim, rows, seed)| {
            let taxonomy = taxonomy(count, dim, seed);
            let items = random_rows(rows, dim, seed ^ 1);
            let prototypes = Features::from_rows(random_rows(1, dim, seed ^ 2)).unwrap();
            let mut whole = taxonomy.refinement(&prototypes);
            whole.add(&Features::from_rows(&items).unwrap()).unwrap();
            let whole = whole.finish();

            let mut all: Option<PartialSums> = None;
            for part in items.chunks(1 + rows / 4) {
                let mut pass = taxonomy.partial_refinement();
                let part = Features::from_rows(part).unwrap();
                pass.add_assigned(&part, &taxonomy.assign(&part).unwrap());
                let sums = pass.into_sums();
                match &mut all {
                    Some(all) => all.add(&sums),
                    None => all = Some(sums),
                }
            }
            let parts = taxonomy.refinement(&prototypes).add_sums(&all.unwrap()).finish();
            prop_assert_eq!(whole.entries(), parts.entries());
            for (one, other) in whole.centres().values().iter().zip(parts.centres().values()) {
                prop_assert!((one - other).abs() < 1e-5, "{} and {}", one, other);
            }
            Ok(())
        },
    );
}

#[test]
fn a_category_gets_another_name_that_no_other_has() {
    let taxonomy = taxonomy(3, 4, 1);
    let renamed = taxonomy.clone().renamed(2, "gull").unwrap();
    assert_eq!(renamed.entries()[2].name, "gull");
    assert_eq!(renamed.centres(), taxonomy.centres());
    assert_eq!(renamed.clone().renamed(2, "gull").unwrap(), renamed);
    assert!(matches!(renamed.renamed(0, "gull"), Err(TaxonomyError::NameTwice { name }) if name == "gull"));
}

#[test]
fn new_groups_come_behind_what_is_there() {
    let before = taxonomy(5, 4, 3);
    let groups = [
        Features::from_rows([[3.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]]).unwrap(),
        Features::new(4, vec![]).unwrap(),
        Features::from_rows([[0.0, 0.0, 0.0, -1.0]]).unwrap(),
    ];
    let after = before.clone().with_new_groups(&groups).unwrap();
    assert_eq!(after.entries()[..5], before.entries()[..]);
    assert_eq!(after.centres().values()[..20], before.centres().values()[..]);
    let added: Vec<_> = after.entries()[5..]
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind, entry.items))
        .collect();
    assert_eq!(added, [("new-1", Kind::Novel, 2), ("new-2", Kind::Novel, 1)]);
    // The mean of rows of length one, whatever their length was.
    let half = 0.5f32.sqrt();
    let centre = after.centres().row(5);
    assert!(
        (centre[0] - half).abs() < 1e-6 && (centre[1] - half).abs() < 1e-6,
        "{centre:?}"
    );
    assert_eq!(after.assign(&groups[2]).unwrap()[0].category, 6);
    // Numbers go on behind the last.
    let third = after.with_new_groups(&groups[2..]).unwrap();
    assert_eq!(third.entries()[7].name, "new-3");
    let narrow = Features::from_rows([[1.0]]).unwrap();
    assert!(matches!(
        before.with_new_groups(&[narrow]),
        Err(TaskError::Dimensions { .. })
    ));
}
