//! Calibrated discovery, through the public interface: what it finds, what it says about it, and what it does when it is
//! asked the impossible.

mod common;

use std::sync::Arc;

use common::{Rng, for_all, recipes};
use genus_core::methods::{Calibrated, Context, Method, Shc};
use genus_core::metrics::{Convention, Evaluation, accuracy};
use genus_core::{
    Calibration, CalibrationError, CalibrationParts, CalibrationSettings, Category, Centre, CentreNorm, Discover,
    DiscoverError, Discovery, Eagerness, Features, Kind, Knowledge, MergeTree, RealTime, Source, Subset, Support, Task,
    Taxonomy, TwoStep,
};
use proptest::prelude::*;

/// Another frame of what an item shows.
fn frame(rng: &mut Rng, item: &[f32], noise: f64) -> Vec<f32> {
    item.iter().map(|v| v + (noise * rng.normal()) as f32).collect()
}

/// Features as networks make them: classes around a common middle, items of a class apart mostly in a few directions that
/// are the same for all classes.
struct World {
    dim: usize,
    rng: Rng,
    common: Vec<f64>,
    wide: Vec<Vec<f64>>,
    classes: Vec<Vec<f64>>,
}

impl World {
    fn new(classes: usize, dim: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let vector = |rng: &mut Rng, scale: f64| (0..dim).map(|_| scale * rng.normal()).collect::<Vec<f64>>();
        Self {
            dim,
            common: vector(&mut rng, 1.0),
            wide: (0..4).map(|_| vector(&mut rng, 0.35)).collect(),
            classes: (0..classes).map(|_| vector(&mut rng, 0.7)).collect(),
            rng,
        }
    }

    fn item(&mut self, class: usize) -> Vec<f32> {
        let along: Vec<f64> = self.wide.iter().map(|_| self.rng.normal()).collect();
        (0..self.dim)
            .map(|at| {
                let wide: f64 = self
                    .wide
                    .iter()
                    .zip(&along)
                    .map(|(direction, a)| a * direction[at])
                    .sum();
                (self.common[at] + self.classes[class][at] + wide + 0.35 * self.rng.normal()) as f32
            })
            .collect()
    }

    /// Base classes, so many items each.
    fn base(&mut self, classes: std::ops::Range<usize>, each: usize) -> (Features, Vec<usize>) {
        let labels: Vec<usize> = classes
            .clone()
            .flat_map(|class| vec![class - classes.start; each])
            .collect();
        let rows: Vec<Vec<f32>> = labels.iter().map(|label| self.item(classes.start + label)).collect();
        (Features::from_rows(rows).unwrap(), labels)
    }

    /// The first classes are known by some examples; the queries of every class and their classes.
    fn task(&mut self, known: usize, shots: usize, queries: &[usize]) -> (Task, Vec<usize>) {
        let labels: Vec<String> = (0..known * shots).map(|at| format!("class {}", at % known)).collect();
        let support: Vec<Vec<f32>> = (0..known * shots).map(|at| self.item(at % known)).collect();
        let truth: Vec<usize> = queries
            .iter()
            .enumerate()
            .flat_map(|(class, &count)| vec![class; count])
            .collect();
        let rows: Vec<Vec<f32>> = truth.iter().map(|&class| self.item(class)).collect();
        let support = Support::new(Features::from_rows(support).unwrap(), &labels).unwrap();
        (Task::new(&support, Features::from_rows(rows).unwrap()).unwrap(), truth)
    }
}

/// Forty base classes behind the twenty that tasks are made of.
fn world(seed: u64) -> (World, Arc<Calibration>) {
    let mut world = World::new(60, 48, seed);
    let (items, labels) = world.base(20..60, 20);
    let calibration = Calibration::fit(&items, &labels, CalibrationSettings::default()).unwrap();
    (world, Arc::new(calibration))
}

fn calibrated(calibration: &Arc<Calibration>) -> Calibrated {
    Calibrated {
        knowledge: Knowledge::Calibration(calibration.clone()),
        ..Calibrated::default()
    }
}

fn all(discovery: &Discovery, truth: &[usize]) -> f64 {
    let judged = Evaluation {
        known: discovery.prototype_clusters(),
        clusters: discovery.query_clusters(),
        truth,
    };
    accuracy(&judged, Convention::Paper).all
}

#[test]
fn it_finds_what_is_there_in_piles_of_every_kind() {
    let (mut world, calibration) = world(1);
    let tail: Vec<usize> = (0..10).map(|class| [3, 4, 6, 9, 14, 24, 3, 5, 8, 20][class]).collect();
    for (known, shots, queries) in [
        (5, 5, vec![15; 10]),
        (5, 1, vec![15; 10]),
        (5, 5, vec![5; 10]),
        (3, 5, vec![15; 20]),
        (2, 20, vec![15; 10]),
        (5, 5, tail),
        (5, 5, vec![15; 5]),
        (1, 3, vec![15; 6]),
    ] {
        let (task, truth) = world.task(known, shots, &queries);
        let method = calibrated(&calibration);
        let discovery = method.discover(&task).unwrap();
        let right = all(&discovery, &truth);
        let what = format!("{known} known, {shots} shots, {queries:?}");
        assert!(right > 0.85, "{what}: {right}");
        let found = discovery.items().iter().filter(|&&items| items > 0).count();
        assert!(
            found.abs_diff(queries.len()) <= 1 + queries.len() / 7,
            "{what}: {found} categories"
        );
        if known > 1 {
            let shc = all(&Shc::default().discover(&task).unwrap(), &truth);
            assert!(right >= shc, "{what}: {right}, and SHC {shc}");
        }
        // Without base classes nothing says that most of the spread is in four directions.
        let examples = all(&Calibrated::default().discover(&task).unwrap(), &truth);
        assert!(examples > 0.4, "{what}: {examples} from the examples");
    }
}

/// Classes to come may be wider or closer together than the base classes were: what the pile says outvotes the tree.
#[test]
fn what_was_learnt_may_be_quite_wrong() {
    let (mut world, calibration) = world(4);
    let off = |by: f64| {
        let parts = calibration.to_parts();
        let mut merges = parts.merges;
        merges[0] += by;
        calibrated(&Arc::new(
            Calibration::from_parts(CalibrationParts { merges, ..parts }).unwrap(),
        ))
    };
    let (mut right, mut by_tree) = (0.0, 0.0);
    for by in [-6.0, -4.0, 4.0, 6.0] {
        let (task, truth) = world.task(5, 5, &[15; 10]);
        let method = off(by);
        right += all(&method.discover(&task).unwrap(), &truth) / 4.0;
        let tree_alone = Calibrated { refine: 0, ..method };
        by_tree += all(&tree_alone.discover(&task).unwrap(), &truth) / 4.0;
    }
    assert!(right > 0.95 && right > by_tree + 0.05, "{right} and {by_tree}");
}

#[test]
fn without_new_classes_almost_nothing_is_new() {
    let (mut world, calibration) = world(2);
    let (task, _) = world.task(8, 5, &[20; 8]);
    let discovery = calibrated(&calibration).discover(&task).unwrap();
    let new = discovery
        .categories()
        .iter()
        .filter(|c| c.kind() == Kind::Novel)
        .count();
    assert!(new <= 8, "{new} of 160 are new");
}

#[test]
fn nothing_is_forced_into_a_class_without_queries() {
    let (mut world, calibration) = world(3);
    let queries: Vec<usize> = (0..10).map(|class| if class < 3 { 0 } else { 15 }).collect();
    let (task, _) = world.task(5, 5, &queries);
    let discovery = calibrated(&calibration).discover(&task).unwrap();
    let strays: usize = discovery.items()[..3].iter().sum();
    assert!(strays <= 3, "{strays} strays");
    assert_eq!(discovery.items().len(), discovery.known() + discovery.novel());
}

#[test]
fn outliers_are_unsure_more_often_than_what_belongs() {
    let (mut world, calibration) = world(4);
    let (mut outliers, mut genuine) = ((0.0, 0.0), (0.0, 0.0));
    for _ in 0..5 {
        let queries: Vec<usize> = (0..20).map(|class| if class < 10 { 15 } else { 1 }).collect();
        let (task, truth) = world.task(5, 5, &queries);
        let discovery = calibrated(&calibration).discover(&task).unwrap();
        for (score, class) in discovery.scores().iter().zip(truth) {
            let probability = score.probability.unwrap();
            assert!((0.0..=1.0).contains(&probability));
            let group = if class < 10 { &mut genuine } else { &mut outliers };
            group.0 += f64::from(u8::from(score.unsure));
            group.1 += 1.0;
        }
    }
    let (outliers, genuine) = (outliers.0 / outliers.1, genuine.0 / genuine.1);
    assert!(outliers > 0.5 && genuine < 0.15, "{outliers} and {genuine}");
}

#[test]
fn probabilities_mean_what_they_say() {
    let (mut world, calibration) = world(5);
    let mut bins = [(0.0, 0.0, 0.0); 4];
    for _ in 0..20 {
        let (task, truth) = world.task(5, 3, &[12; 10]);
        let rule = RealTime::new(
            &task,
            Method::with("calibrated", &given(&calibration))
                .unwrap()
                .rule()
                .unwrap()
                .clone(),
        );
        for ((class, score), truth) in rule.unwrap().judge_each(&task).into_iter().zip(truth) {
            let probability = f64::from(score.probability.unwrap());
            assert_eq!(class.is_some(), probability >= 0.5);
            // Whether it was likely enough or not, the class that was best is the query's own.
            let best = match class {
                Some(class) => class == truth,
                None => truth < task.known(),
            };
            let bin = &mut bins[((probability * 4.0) as usize).min(3)];
            bin.0 += probability;
            bin.1 += f64::from(u8::from(best));
            bin.2 += 1.0;
        }
    }
    for (said, true_share, count) in bins {
        if count > 60.0 {
            let (said, share) = (said / count, true_share / count);
            assert!((said - share).abs() < 0.2, "{said} said, {share} true, of {count}");
        }
    }
}

fn given(calibration: &Arc<Calibration>) -> Context {
    Context {
        seed: 0,
        calibration: Some(calibration.clone()),
    }
}

#[test]
fn single_queries_are_told_apart_better_than_by_the_nearest_pair() {
    let (mut world, calibration) = world(6);
    let method = Method::with("calibrated", &given(&calibration)).unwrap();
    let (mut own, mut shc) = (0, 0);
    for _ in 0..10 {
        let (task, truth) = world.task(5, 5, &[10; 10]);
        let right = |categories: Vec<Category>| {
            let pairs = categories.into_iter().zip(&truth);
            pairs
                .filter(|(category, truth)| match category {
                    Category::Known(class) => class == *truth,
                    Category::Novel(_) => **truth >= 5,
                })
                .count()
        };
        own += right(
            RealTime::new(&task, method.rule().unwrap().clone())
                .unwrap()
                .judge_all(&task),
        );
        let rule = Method::parse("shc", 0).unwrap().rule().unwrap().clone();
        shc += right(RealTime::new(&task, rule).unwrap().judge_all(&task));
    }
    assert!(own > shc && own > 850, "{own} and {shc} of 1000");
}

#[test]
fn one_query_by_itself_is_judged_as_among_others() {
    let (mut world, calibration) = world(7);
    let (task, _) = world.task(4, 3, &[5; 8]);
    for knowledge in [
        Knowledge::Calibration(calibration),
        Knowledge::Examples,
        Knowledge::Prior,
    ] {
        let rule = RealTime::new(&task, genus_core::Rule::Calibrated(knowledge)).unwrap();
        for (query, (class, score)) in rule.judge_each(&task).into_iter().enumerate() {
            let (alone, alone_score) = rule.judge(task.points().row(4 + query)).unwrap();
            assert_eq!(alone, class);
            let (a, b) = (alone_score.probability.unwrap(), score.probability.unwrap());
            assert!((a - b).abs() < 1e-4, "{a} and {b}");
        }
        assert!(rule.judge(&[0.0; 48]).is_err() && rule.judge(&[1.0]).is_err());
    }
}

#[test]
fn its_parts_put_together_are_the_same_calibration() {
    let (mut world, calibration) = world(8);
    let parts = calibration.to_parts();
    assert_eq!((parts.source, parts.classes, parts.items), (Source::Base, 40, 800));
    assert_eq!((parts.mean.len(), parts.factors.len()), (48, 32));
    let again = Calibration::from_parts(parts.clone()).unwrap();
    assert_eq!(again, *calibration);
    let (task, _) = world.task(5, 5, &[15; 10]);
    let answer = |calibration: Calibration| calibrated(&Arc::new(calibration)).discover(&task).unwrap();
    assert_eq!(answer(again), answer(Calibration::clone(&calibration)));

    let broken = |change: &dyn Fn(&mut CalibrationParts)| {
        let mut parts = parts.clone();
        change(&mut parts);
        assert!(matches!(
            Calibration::from_parts(parts),
            Err(CalibrationError::Parts { .. })
        ));
    };
    broken(&|parts| parts.mean.clear());
    broken(&|parts| parts.mean[3] = f32::NAN);
    broken(&|parts| parts.factors.truncate(3));
    broken(&|parts| parts.factors[0] = 1.5);
    broken(&|parts| parts.directions[7] = f32::INFINITY);
    broken(&|parts| parts.variance = 0.0);
    broken(&|parts| parts.variance = f64::NAN);
    broken(&|parts| parts.largest = 0.0);
    broken(&|parts| parts.dimensions = 0.0);
    broken(&|parts| parts.merges[2] = f64::INFINITY);
    broken(&|parts| parts.arrivals[0] = f64::NAN);
    broken(&|parts| parts.doubt = 1.5);
}

#[test]
fn calibrations_are_the_same_at_any_number_of_threads_and_follow_their_seed() {
    let mut world = World::new(20, 24, 9);
    let (items, labels) = world.base(0..20, 8);
    let fit = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = CalibrationSettings {
            seed,
            ..CalibrationSettings::default()
        };
        pool.install(|| Calibration::fit(&items, &labels, settings).unwrap())
    };
    let one = fit(1, 0);
    assert!(one == fit(2, 0) && one == fit(3, 0));
    assert_ne!(one, fit(1, 1));
}

#[test]
fn what_cannot_be_learnt_from() {
    let mut world = World::new(20, 8, 10);
    let (items, labels) = world.base(0..7, 5);
    let settings = CalibrationSettings::default();
    assert_eq!(
        Calibration::fit(&items, &labels, settings),
        Err(CalibrationError::TooFewClasses { needed: 8, found: 7 })
    );
    let (single, single_labels) = world.base(0..20, 1);
    assert_eq!(
        Calibration::fit(&single, &single_labels, settings),
        Err(CalibrationError::TooFewClasses { needed: 8, found: 0 })
    );
    let copies = Features::from_rows((0..20).map(|at| [1.0, (at / 2) as f32])).unwrap();
    let of_copies: Vec<usize> = (0..20).map(|at| at / 2).collect();
    assert_eq!(
        Calibration::fit(&copies, &of_copies, settings),
        Err(CalibrationError::NoSpread)
    );
    // Every kind needs as many classes as one would alone.
    let (two, two_labels) = world.base(0..20, 3);
    let kinds: Vec<usize> = (0..20).map(|class| usize::from(class < 7)).collect();
    assert_eq!(
        Calibration::fit_kinds(&two, &two_labels, &kinds, settings),
        Err(CalibrationError::TooFewClasses { needed: 8, found: 7 })
    );
    // Two items per class are few, and enough; gaps in the numbers of classes do not matter.
    let (pairs, pair_labels) = world.base(0..12, 2);
    let gaps: Vec<usize> = pair_labels.iter().map(|label| 3 * label + 1).collect();
    let calibration = Calibration::fit(&pairs, &gaps, settings).unwrap();
    assert_eq!((calibration.classes(), calibration.source()), (12, Source::Base));
}

#[test]
fn kinds_far_apart_teach_what_classes_of_each_are_like() {
    // Two kinds of things, far apart in features, and a pile of a third.
    let shifted = |mut items: Features, by: f32, at: usize| {
        let rows = items.iter().map(|row| {
            let mut row = row.to_vec();
            row[at] += by;
            row
        });
        items = Features::from_rows(rows.collect::<Vec<_>>()).unwrap();
        items
    };
    let mut world = World::new(60, 48, 21);
    let (first, first_labels) = world.base(20..40, 20);
    let (second, second_labels) = world.base(40..60, 20);
    let [first, second] = [shifted(first, 6.0, 0), shifted(second, 6.0, 1)];
    let items = Features::new(48, [first.values(), second.values()].concat()).unwrap();
    let labels: Vec<usize> = first_labels
        .iter()
        .copied()
        .chain(second_labels.iter().map(|label| 20 + label))
        .collect();
    let settings = CalibrationSettings {
        centre: Centre::Task,
        ..CalibrationSettings::default()
    };
    let kinds: Vec<usize> = (0..40).map(|class| class / 20).collect();
    let of_kinds = Arc::new(Calibration::fit_kinds(&items, &labels, &kinds, settings).unwrap());
    assert_eq!((of_kinds.classes(), of_kinds.source()), (40, Source::Base));
    let (task, truth) = world.task(4, 5, &[15; 8]);
    let found = calibrated(&of_kinds).discover(&task).unwrap();
    assert!(all(&found, &truth) > 0.9, "{}", all(&found, &truth));
    // What was found is around the mean of its own pile, and judges what comes later.
    let taxonomy = Taxonomy::from_discovery(task.classes(), &found);
    assert!(taxonomy.calibration().is_some());
}

#[test]
fn every_setting_makes_a_calibration_that_works() {
    let mut world = World::new(50, 32, 11);
    let (items, labels) = world.base(10..50, 12);
    let (task, truth) = world.task(5, 5, &[15; 10]);
    let default = CalibrationSettings::default();
    let mut seen = Vec::new();
    for settings in [
        default,
        CalibrationSettings {
            centre: Centre::Task,
            ..default
        },
        CalibrationSettings {
            centre: Centre::None,
            directions: 0,
            ..default
        },
        CalibrationSettings {
            tree: MergeTree::Average,
            ..default
        },
        CalibrationSettings {
            eagerness: Eagerness::Learnt,
            ..default
        },
    ] {
        let calibration = Calibration::fit(&items, &labels, settings).unwrap();
        let discovery = calibrated(&Arc::new(calibration)).discover(&task).unwrap();
        assert!(
            all(&discovery, &truth) > 0.5,
            "{settings:?}: {}",
            all(&discovery, &truth)
        );
        assert!(!seen.contains(&discovery), "{settings:?} changes nothing");
        seen.push(discovery);
    }
}

#[test]
fn the_answer_says_what_it_knew() {
    let (mut world, calibration) = world(12);
    for (shots, knowledge, source) in [
        (5, Knowledge::Calibration(calibration.clone()), Source::Base),
        (1, Knowledge::Calibration(calibration.clone()), Source::Base),
        (5, Knowledge::Examples, Source::Examples),
        (1, Knowledge::Examples, Source::Prior),
        (5, Knowledge::Prior, Source::Prior),
    ] {
        let (task, _) = world.task(4, shots, &[6; 8]);
        let method = Calibrated {
            knowledge,
            ..Calibrated::default()
        };
        assert_eq!(method.discover(&task).unwrap().calibration().unwrap().source(), source);
    }
    let (narrow, _) = World::new(4, 9, 1).task(2, 2, &[3; 4]);
    let wide = Method::with("calibrated", &given(&calibration)).unwrap();
    assert_eq!(
        wide.discover(&narrow),
        Err(DiscoverError::CalibrationWidth {
            calibration: 48,
            task: 9
        })
    );
}

#[test]
fn a_taxonomy_assigns_by_the_calibration_it_was_made_with() {
    let (mut world, calibration) = world(14);
    let (task, truth) = world.task(5, 5, &[15; 10]);
    let discovery = calibrated(&calibration).discover(&task).unwrap();
    let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
    assert_eq!(taxonomy.calibration(), Some(&calibration));
    let queries: Vec<Vec<f32>> = (5..task.points().rows())
        .map(|row| task.points().row(row).to_vec())
        .collect();
    let found = taxonomy.assign(&Features::from_rows(queries).unwrap()).unwrap();
    let same = found
        .iter()
        .zip(discovery.categories())
        .filter(|(assignment, category)| assignment.category == taxonomy.index_of(**category));
    assert!(same.count() > truth.len() * 95 / 100);
    // An item of a class that was not there is unlike them all.
    let strangers: Vec<Vec<f32>> = (0..50).map(|at| world.item(10 + at % 10)).collect();
    let found = taxonomy.assign(&Features::from_rows(strangers).unwrap()).unwrap();
    let unsure = found.iter().filter(|assignment| assignment.score.unsure).count();
    assert!(unsure > 35, "{unsure} of 50 strangers are unsure");
    // The stored parts make the same taxonomy.
    let again = Taxonomy::from_parts(taxonomy.entries().to_vec(), taxonomy.centres().clone())
        .unwrap()
        .with_calibration(calibration, taxonomy.members())
        .and_then(|again| again.with_familiar(taxonomy.familiar().unwrap()))
        .unwrap();
    assert_eq!(again, taxonomy);
    let zero = Features::new(48, vec![0.0; 48]).unwrap();
    assert!(taxonomy.assign(&zero).is_err());
}

#[test]
fn classes_far_larger_than_any_base_class() {
    let (mut world, calibration) = world(16);
    let (task, truth) = world.task(5, 5, &[300; 10]);
    let discovery = calibrated(&calibration).discover(&task).unwrap();
    assert!(all(&discovery, &truth) > 0.9, "{}", all(&discovery, &truth));
    let found = discovery.items().len();
    assert!((9..=12).contains(&found), "{found} categories");
}

#[test]
fn large_piles_in_two_steps() {
    let (mut world, calibration) = world(15);
    let (task, truth) = world.task(5, 5, &[120; 10]);
    for refine in [0, 2] {
        let two_step = TwoStep {
            method: calibrated(&calibration),
            subset: Subset::Random { size: 200, seed: 1 },
            centre_norm: CentreNorm::Cosine,
            refine,
        };
        let discovery = two_step.discover(&task).unwrap();
        assert!(all(&discovery, &truth) > 0.9, "{}", all(&discovery, &truth));
        assert!(discovery.scores().iter().all(|score| score.probability.is_some()));
        let sizes: Vec<usize> = discovery.items()[5..].to_vec();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        assert_eq!(discovery.items().iter().sum::<usize>(), 1200);
        // A taxonomy of it goes on where it ended.
        let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
        assert_eq!(taxonomy.members().len(), taxonomy.entries().len());
    }
}

#[test]
fn any_task_gets_an_answer() {
    for_all(150, (recipes(), 0usize..3), |(recipe, which)| {
        let task = recipe.task();
        let method = Calibrated {
            knowledge: if which == 0 {
                Knowledge::Prior
            } else {
                Knowledge::Examples
            },
            refine: which * 2,
        };
        let discovery = method.discover(&task).unwrap();
        prop_assert_eq!(discovery.categories().len(), task.queries());
        prop_assert_eq!(discovery.items().iter().sum::<usize>(), task.queries());
        // No two known classes in one cluster, and every new group has a query.
        let mut clusters = discovery.prototype_clusters().to_vec();
        clusters.sort_unstable();
        clusters.dedup();
        prop_assert_eq!(clusters.len(), task.known());
        prop_assert!(discovery.items()[task.known()..].iter().all(|&items| items > 0));
        for score in discovery.scores() {
            prop_assert!(score.similarity.is_finite() && score.margin.is_finite());
            prop_assert!(score.probability.is_some_and(|p| (0.0..=1.0).contains(&p)));
        }
        Ok(())
    });
}

#[test]
fn piles_of_copies_and_single_queries() {
    let support = Support::new(
        Features::from_rows([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]).unwrap(),
        &["a", "a", "b", "b"],
    )
    .unwrap();
    for queries in [
        vec![[1.0, 0.0, 0.0]; 1],
        vec![[1.0, 0.0, 0.0]; 9],
        vec![[0.0, 0.0, 1.0]; 9],
        vec![[1.0, 1.0, 1.0]; 2],
    ] {
        let count = queries.len();
        let task = Task::new(&support, Features::from_rows(queries).unwrap()).unwrap();
        let discovery = Calibrated::default().discover(&task).unwrap();
        assert_eq!(discovery.categories().len(), count);
        // Copies stay together.
        assert!(
            discovery
                .categories()
                .iter()
                .all(|category| *category == discovery.categories()[0])
        );
    }
}

#[test]
fn frames_of_a_burst_count_once() {
    let mut world = World::new(8, 64, 31);
    let (task, truth) = world.task(4, 5, &[12; 8]);
    let plain = Calibrated::default().discover(&task).unwrap();
    assert!(plain.scenes().unwrap().all_alone());
    // Three frames of everything; what is a frame of what goes by turns.
    let points = task.points();
    let frames: Vec<Vec<f32>> = (0..3 * truth.len())
        .map(|at| frame(&mut world.rng, points.row(task.known() + at % truth.len()), 0.005))
        .collect();
    let labels: Vec<String> = task
        .support_labels()
        .iter()
        .map(|label| task.classes()[*label].clone())
        .collect();
    let support = Support::new(task.support().clone(), &labels).unwrap();
    let bursts = Task::new(&support, Features::from_rows(&frames).unwrap()).unwrap();
    let found = Calibrated::default().discover(&bursts).unwrap();
    let scenes = found.scenes().unwrap();
    assert_eq!((scenes.len(), scenes.items()), (truth.len(), frames.len()));
    assert_eq!(scenes.members(5), [5, 5 + truth.len(), 5 + 2 * truth.len()]);
    assert_eq!(found.novel(), plain.novel());
    let same = found.categories().iter().zip(plain.categories().iter().cycle());
    let same = same.filter(|(a, b)| a == b).count();
    assert!(same >= frames.len() * 98 / 100, "{same} of {}", frames.len());
    assert_eq!(found.items().iter().sum::<usize>(), frames.len());
}

#[test]
fn a_copy_of_an_example_is_of_its_class() {
    let mut world = World::new(6, 64, 32);
    let labels = ["a", "a", "a", "b", "b", "b"];
    let mut examples: Vec<Vec<f32>> = (0..6).map(|at| world.item(at / 3)).collect();
    // One example lies among items of another class: by its features alone it would not be found.
    examples[2] = world.item(4);
    let mut pile: Vec<Vec<f32>> = (0..60).map(|at| world.item(at % 6)).collect();
    pile.push(examples[2].clone());
    pile.push(frame(&mut world.rng, &examples[4], 0.002));
    let support = Support::new(Features::from_rows(&examples).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(&pile).unwrap()).unwrap();
    let found = Calibrated::default().discover(&task).unwrap();
    assert_eq!(found.categories()[60..], [Category::Known(0), Category::Known(1)]);
    for score in &found.scores()[60..] {
        assert_eq!((score.probability, score.unsure), (Some(1.0), false));
    }
}

#[test]
fn classes_as_clear_as_bursts_are_classes() {
    let mut rng = Rng::new(33);
    let centres: Vec<Vec<f32>> = (0..30)
        .map(|_| (0..48).map(|_| rng.normal() as f32).collect())
        .collect();
    let examples: Vec<Vec<f32>> = (0..40).map(|at| frame(&mut rng, &centres[at % 10], 0.05)).collect();
    let labels: Vec<String> = (0..40).map(|at| format!("class {}", at % 10)).collect();
    let pile: Vec<Vec<f32>> = (0..300).map(|at| frame(&mut rng, &centres[at % 30], 0.05)).collect();
    let support = Support::new(Features::from_rows(&examples).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(&pile).unwrap()).unwrap();
    let found = Calibrated::default().discover(&task).unwrap();
    assert!(found.scenes().unwrap().all_alone());
    assert_eq!((found.known(), found.novel()), (10, 20));
}
