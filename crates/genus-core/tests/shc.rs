//! SHC against a twin that follows the definition word by word: mean vectors, all similarities anew at every step.

mod common;

use std::cell::Cell;

use common::{
    Data, Recipe, Rng, categories, dot, for_all, length, mean, numbered, one_shot_task, partition, points, recipes,
};
use genus_core::methods::{Attach, BoostBlock, Linkage, Remainder, Shc, SmallKnown, StopAt};
use genus_core::{Category, Discover, DiscoverError, Stop, Task};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// What the twin answers.
struct Naive {
    /// The cluster of every point.
    clusters: Vec<usize>,
    merges: usize,
    /// By how little the closest decision was taken: rounding may turn one below 1e-5.
    closest_call: f64,
}

/// The largest of some values, the first of equal ones, and by how much it exceeds the next.
fn first_largest(values: impl Iterator<Item = f64>) -> (usize, f64, f64) {
    let (mut at, mut best, mut second) = (usize::MAX, f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (index, value) in values.enumerate() {
        if value > best {
            (at, second, best) = (index, best, value);
        } else if value > second {
            second = value;
        }
    }
    (at, best, best - second)
}

fn naive(points: &[Vec<f64>], known: usize, shots: usize, options: &Shc) -> Naive {
    let block = match options.boost_block {
        BoostBlock::Way => known,
        BoostBlock::Shot => shots.min(known),
    };
    let mut clusters: Vec<Vec<usize>> = (0..points.len()).map(|point| vec![point]).collect();
    let mut means = points.to_vec();
    let holds_prototype = |cluster: &[usize]| cluster.iter().any(|&point| point < known);
    let mut merges = 0;
    let mut closest_call = f64::INFINITY;
    while clusters.len() > 1 {
        let pairs: Vec<(usize, usize)> = (0..clusters.len())
            .flat_map(|x| (x + 1..clusters.len()).map(move |y| (x, y)))
            .collect();
        let similarities = pairs.iter().map(|&(x, y)| {
            let boosted = merges == 0 && y < block;
            dot(&means[x], &means[y]) * if boosted { f64::from(options.boost) } else { 1.0 }
        });
        let (at, _, lead) = first_largest(similarities);
        let (x, y) = pairs[at];
        closest_call = closest_call.min(lead);
        if let Some(limit) = options.min_similarity {
            // The limit is on the similarity itself.
            let similarity = dot(&means[x], &means[y]);
            closest_call = closest_call.min((similarity - f64::from(limit)).abs());
            if similarity < f64::from(limit) {
                break;
            }
        }
        let joins_known = holds_prototype(&clusters[x]) && holds_prototype(&clusters[y]);
        if joins_known && options.stop == StopAt::Before {
            break;
        }
        let dropped = clusters.remove(y);
        let dropped_mean = means.remove(y);
        let (kept_size, dropped_size) = (clusters[x].len() as f64, dropped.len() as f64);
        for (kept, dropped) in means[x].iter_mut().zip(&dropped_mean) {
            *kept = (kept_size * *kept + dropped_size * dropped) / (kept_size + dropped_size);
        }
        clusters[x].extend(dropped);
        if joins_known {
            break;
        }
        merges += 1;
    }

    let mut kept: Vec<Vec<usize>> = Vec::new();
    let mut rest: Vec<Vec<usize>> = Vec::new();
    for cluster in clusters {
        let small = cluster.len() <= options.min_size;
        if holds_prototype(&cluster) && small && options.small_known == SmallKnown::Dissolve {
            let (prototypes, members): (Vec<usize>, Vec<usize>) = cluster.iter().partition(|&&point| point < known);
            kept.push(prototypes);
            rest.extend(members.into_iter().map(|member| vec![member]));
        } else if holds_prototype(&cluster) || !small {
            kept.push(cluster);
        } else if options.remainder == Remainder::Sample {
            rest.extend(cluster.into_iter().map(|member| vec![member]));
        } else {
            rest.push(cluster);
        }
    }
    let kept_means: Vec<Vec<f64>> = kept
        .iter()
        .map(|cluster| mean(cluster.iter().map(|&p| &points[p])))
        .collect();
    let mut answer = vec![usize::MAX; points.len()];
    for (number, cluster) in kept.iter().enumerate() {
        cluster.iter().for_each(|&point| answer[point] = number);
    }
    for unit in rest {
        let own = mean(unit.iter().map(|&p| &points[p]));
        let (number, _, lead) = first_largest(kept_means.iter().map(|kept| match options.attach {
            Attach::Average => dot(&own, kept),
            Attach::Cosine => dot(&own, kept) / (length(&own) * length(kept)),
        }));
        closest_call = closest_call.min(lead);
        unit.iter().for_each(|&point| answer[point] = number);
    }
    Naive {
        clusters: numbered(&answer),
        merges,
        closest_call,
    }
}

/// Both linkages give the twin's answer; `Ok(false)` when they do not but rounding may be the reason.
fn agrees(task: &Task, options: &Shc) -> Result<bool, TestCaseError> {
    let points = points(task);
    let twin = naive(&points, task.known(), task.shots(), options);
    for linkage in [Linkage::Fast, Linkage::Sequential] {
        let shc = Shc {
            linkage,
            ..options.clone()
        };
        let discovery = shc.discover(task).unwrap();
        if partition(&discovery) != twin.clusters && twin.closest_call < 1e-5 {
            return Ok(false);
        }
        prop_assert_eq!(partition(&discovery), &*twin.clusters, "{:?}", shc);
        prop_assert_eq!(
            discovery.categories(),
            categories(&points, task.known(), &twin.clusters),
            "{:?}",
            shc
        );
        match discovery.stop() {
            Stop::Cut { merges, .. } => prop_assert_eq!(merges, twin.merges),
            Stop::Exhausted => prop_assert_eq!(twin.merges, points.len() - 1),
            other => prop_assert!(false, "{:?} is not a way for {:?} to stop", other, shc),
        }
    }
    Ok(true)
}

fn agrees_on_random_tasks(options: &[Shc]) {
    const CASES: u32 = 120;
    let excused = Cell::new(0);
    for_all(CASES, recipes(), |recipe| {
        let task = recipe.task();
        for options in options {
            if options.boost != 1.0 && all_apart(&task) {
                continue;
            }
            excused.set(excused.get() + u32::from(!agrees(&task, options)?));
        }
        Ok(())
    });
    // A near tie matters in one of hundreds of tasks; more would hide a mistake.
    let compared = CASES * options.len() as u32;
    assert!(excused.get() * 50 <= compared, "{} of {compared}", excused.get());
}

/// Whether every pair of points is at more than a right angle: then a boost lowers what it touches.
fn all_apart(task: &Task) -> bool {
    let points = points(task);
    (0..points.len()).all(|a| (0..a).all(|b| dot(&points[a], &points[b]) < 0.0))
}

#[test]
fn the_default_is_the_definition() {
    agrees_on_random_tasks(&[Shc::default()]);
}

#[test]
fn any_size_limit() {
    agrees_on_random_tasks(&[0, 1, 3, 4, 1000].map(|min_size| Shc {
        min_size,
        ..Shc::default()
    }));
}

#[test]
fn stopping_after_the_merge() {
    agrees_on_random_tasks(&[0, 2].map(|min_size| Shc {
        stop: StopAt::After,
        min_size,
        ..Shc::default()
    }));
}

#[test]
fn dissolving_small_known_clusters() {
    agrees_on_random_tasks(&[2, 4].map(|min_size| Shc {
        small_known: SmallKnown::Dissolve,
        min_size,
        ..Shc::default()
    }));
}

#[test]
fn attaching_sample_by_sample() {
    agrees_on_random_tasks(&[2, 4].map(|min_size| Shc {
        remainder: Remainder::Sample,
        min_size,
        ..Shc::default()
    }));
}

#[test]
fn attaching_by_cosine() {
    agrees_on_random_tasks(&[2, 4].map(|min_size| Shc {
        attach: Attach::Cosine,
        min_size,
        ..Shc::default()
    }));
}

#[test]
fn boosting_the_prototypes() {
    agrees_on_random_tasks(&[BoostBlock::Way, BoostBlock::Shot].map(|boost_block| Shc {
        boost: 1.1,
        boost_block,
        ..Shc::default()
    }));
    agrees_on_random_tasks(&[BoostBlock::Way, BoostBlock::Shot].map(|boost_block| Shc {
        boost: 2.5,
        boost_block,
        ..Shc::default()
    }));
}

#[test]
fn stopping_at_a_similarity() {
    agrees_on_random_tasks(&[-0.5, 0.5, 0.9, 0.99].map(|limit| Shc {
        min_similarity: Some(limit),
        ..Shc::default()
    }));
}

#[test]
fn all_options_at_once() {
    agrees_on_random_tasks(&[Shc {
        min_size: 3,
        stop: StopAt::After,
        small_known: SmallKnown::Dissolve,
        remainder: Remainder::Sample,
        attach: Attach::Cosine,
        boost: 1.1,
        boost_block: BoostBlock::Shot,
        min_similarity: Some(0.2),
        ..Shc::default()
    }]);
}

/// Replaces some queries by copies of other ones and of prototypes. Copies are taken once a row, so that no similarity
/// below 1 is met twice before the copies have merged.
fn with_duplicates(recipe: &Recipe) -> Data {
    let mut data = Recipe {
        shot: 1,
        ..recipe.clone()
    }
    .data();
    let mut rng = Rng::new(recipe.seed ^ 1);
    let originals = data.queries.clone();
    for (at, original) in originals.iter().enumerate() {
        match rng.below(4) {
            0 => data.queries.push(original.clone()),
            1 if at < data.support.len() => data.queries.push(data.support[at].clone()),
            _ => {}
        }
    }
    data
}

#[test]
fn duplicates_of_queries_and_of_prototypes() {
    const CASES: u32 = 200;
    let excused = Cell::new(0);
    for_all(CASES, recipes(), |recipe| {
        // In the plane many points lie between two others: equal distances to both copies are met often.
        prop_assume!(recipe.dim > 2);
        let task = with_duplicates(&recipe).task();
        let points = points(&task);
        let options = Shc::default();
        let twin = naive(&points, task.known(), task.shots(), &options);
        for linkage in [Linkage::Fast, Linkage::Sequential] {
            let discovery = Shc {
                linkage,
                ..options.clone()
            }
            .discover(&task)
            .unwrap();
            let same = partition(&discovery) == twin.clusters;
            excused.set(excused.get() + u32::from(!same));
            // Whatever rounding does, copies end together.
            let clusters = partition(&discovery);
            for a in task.known()..points.len() {
                for b in (0..a).filter(|&b| points[a] == points[b]) {
                    prop_assert_eq!(clusters[a], clusters[b], "points {} and {}", a, b);
                }
            }
        }
        Ok(())
    });
    assert!(excused.get() * 50 <= 2 * CASES, "{} of {}", excused.get(), 2 * CASES);
}

#[test]
fn a_query_equal_to_a_prototype_belongs_to_it() {
    for_all(100, recipes(), |recipe| {
        let data = Recipe { shot: 1, ..recipe }.data();
        let task = Data {
            queries: [data.support.clone(), data.queries.clone()].concat(),
            ..data
        }
        .task();
        for linkage in [Linkage::Fast, Linkage::Sequential] {
            let discovery = Shc {
                linkage,
                ..Shc::default()
            }
            .discover(&task)
            .unwrap();
            for class in 0..task.known() {
                prop_assert_eq!(discovery.categories()[class], Category::Known(class));
            }
        }
        Ok(())
    });
}

/// The twin for codes of ±1, where almost every step is a tie: sums of whole numbers, compared as fractions.
///
/// Without a size limit nothing is attached, so the tie rule of the merges decides everything.
fn naive_on_codes(codes: &[Vec<i64>], known: usize) -> (Vec<usize>, usize) {
    let mut clusters: Vec<Vec<usize>> = (0..codes.len()).map(|point| vec![point]).collect();
    let mut ties = 0;
    while clusters.len() > 1 {
        // The sum of the dot products and the number of the pairs.
        let mut best: Option<(usize, usize, i64, i64)> = None;
        let mut tied = false;
        for x in 0..clusters.len() {
            for y in x + 1..clusters.len() {
                let pairs = clusters[x]
                    .iter()
                    .flat_map(|&a| clusters[y].iter().map(move |&b| (a, b)));
                let sum: i64 = pairs
                    .map(|(a, b)| codes[a].iter().zip(&codes[b]).map(|(v, w)| v * w).sum::<i64>())
                    .sum();
                let count = (clusters[x].len() * clusters[y].len()) as i64;
                let order = best.map_or(std::cmp::Ordering::Greater, |(_, _, s, c)| (sum * c).cmp(&(s * count)));
                if order.is_gt() {
                    best = Some((x, y, sum, count));
                }
                tied = order.is_eq() || (tied && order.is_lt());
            }
        }
        ties += usize::from(tied);
        let (x, y, ..) = best.unwrap();
        let holds = |cluster: &[usize]| cluster.iter().any(|&point| point < known);
        if holds(&clusters[x]) && holds(&clusters[y]) {
            break;
        }
        // The list stays in the order of first points: the earlier cluster takes the later one in.
        let dropped = clusters.remove(y);
        clusters[x].extend(dropped);
    }
    let mut answer = vec![0; codes.len()];
    for (number, cluster) in clusters.iter().enumerate() {
        cluster.iter().for_each(|&point| answer[point] = number);
    }
    (numbered(&answer), ties)
}

#[test]
fn ties_go_to_the_smallest_pair_of_first_points() {
    let ties = Cell::new(0);
    // The length of a code of 4 or 16 signs is a power of two, so unit rows and their products are exact.
    for_all(
        300,
        (
            2usize..=4,
            1usize..=30,
            prop_oneof![Just(4usize), Just(16)],
            0u64..1 << 32,
        ),
        |(way, queries, dim, seed)| {
            let mut rng = Rng::new(seed);
            let mut codes: Vec<Vec<i64>> = (0..way + queries)
                .map(|_| (0..dim).map(|_| if rng.below(2) == 0 { -1 } else { 1 }).collect())
                .collect();
            // Which points come first is a matter of their content.
            codes[way..].sort();
            let rows: Vec<Vec<f32>> = codes
                .iter()
                .map(|code| code.iter().map(|&v| v as f32).collect())
                .collect();
            let task = one_shot_task(&rows[..way], &rows[way..]);
            let (clusters, tied) = naive_on_codes(&codes, way);
            ties.set(ties.get() + tied);
            let shc = Shc {
                min_size: 0,
                linkage: Linkage::Sequential,
                ..Shc::default()
            };
            prop_assert_eq!(partition(&shc.discover(&task).unwrap()), clusters);
            Ok(())
        },
    );
    assert!(ties.get() > 1000, "{} ties", ties.get());
}

#[test]
fn one_known_class_needs_a_limit() {
    let task = one_shot_task(&[[1.0, 0.0, 0.0]], &[[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.1]]);
    assert_eq!(
        Shc::default().discover(&task),
        Err(DiscoverError::TooFewClasses {
            method: "shc",
            needed: 2,
            found: 1
        })
    );
    for linkage in [Linkage::Fast, Linkage::Sequential] {
        let shc = Shc {
            min_size: 0,
            min_similarity: Some(0.5),
            linkage,
            ..Shc::default()
        };
        let discovery = shc.discover(&task).unwrap();
        assert_eq!(
            discovery.categories(),
            [Category::Known(0), Category::Novel(0), Category::Novel(0)]
        );
        assert!(
            matches!(discovery.stop(), Stop::Cut { merges: 2, .. }),
            "{:?}",
            discovery.stop()
        );
        let everything = Shc {
            min_similarity: Some(-1.0),
            ..shc
        };
        let discovery = everything.discover(&task).unwrap();
        assert_eq!(discovery.categories(), [Category::Known(0); 3]);
        assert_eq!(discovery.stop(), Stop::Exhausted);
    }
}

#[test]
fn the_refused_merge_is_reported_with_its_similarity() {
    // The query joins class 0; the classes would meet at the mean of 0.6 and of the query's cosine with class 1.
    let task = one_shot_task(&[[1.0, 0.0], [0.6, 0.8]], &[[0.96, -0.28]]);
    let expected = (0.6 + (0.96 * 0.6 - 0.28 * 0.8)) / 2.0;
    for linkage in [Linkage::Fast, Linkage::Sequential] {
        let discovery = Shc {
            linkage,
            ..Shc::default()
        }
        .discover(&task)
        .unwrap();
        let Stop::Cut { merges: 1, similarity } = discovery.stop() else {
            panic!("{:?}", discovery.stop())
        };
        assert!((f64::from(similarity) - expected).abs() < 1e-6, "{similarity}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (parameter, bad) in [
        (
            "boost",
            Shc {
                boost: 0.9,
                ..Shc::default()
            },
        ),
        (
            "boost",
            Shc {
                boost: f32::NAN,
                ..Shc::default()
            },
        ),
        (
            "boost",
            Shc {
                boost: f32::INFINITY,
                ..Shc::default()
            },
        ),
        (
            "min-similarity",
            Shc {
                min_similarity: Some(1.5),
                ..Shc::default()
            },
        ),
        (
            "min-similarity",
            Shc {
                min_similarity: Some(f32::NAN),
                ..Shc::default()
            },
        ),
    ] {
        assert_eq!(bad.checked().unwrap_err().parameter, parameter);
    }
    assert_eq!(Shc::default().checked(), Ok(Shc::default()));
}
