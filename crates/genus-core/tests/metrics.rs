//! The metrics against scipy, scikit-learn and brute force, and the laws they obey.
//!
//! The expected values are written by `goldens/make_goldens.py`.

use genus_core::metrics::{
    Accuracy, Convention, Evaluation, LARGEST_LITERAL, Summary, accuracy, ari, auroc, calibration_error,
    classes_of_clusters, errors_among_least_sure, nmi,
};
use proptest::prelude::*;
use serde_json::Value;

fn goldens(section: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("goldens/metrics.json")).unwrap();
    all[section].as_array().unwrap().clone()
}

fn labels(value: &Value) -> Vec<usize> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|label| label.as_u64().unwrap() as usize)
        .collect()
}

/// Equal to rounding, or both NaN.
fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12
}

fn same_accuracy(a: Accuracy, b: Accuracy) -> bool {
    same(a.all, b.all) && same(a.old, b.old) && same(a.new, b.new)
}

#[test]
fn accuracies_are_those_of_the_definitions() {
    let cases = goldens("judged");
    assert!(cases.len() > 200);
    for case in &cases {
        let (known, clusters, truth) = (
            labels(&case["known"]),
            labels(&case["clusters"]),
            labels(&case["truth"]),
        );
        let judged = Evaluation {
            known: &known,
            clusters: &clusters,
            truth: &truth,
        };
        for convention in Convention::ALL {
            let expected: Vec<f64> = case[convention.name()]
                .as_array()
                .unwrap()
                .iter()
                .map(|share| share.as_f64().unwrap_or(f64::NAN))
                .collect();
            let expected = Accuracy {
                all: expected[0],
                old: expected[1],
                new: expected[2],
            };
            let found = accuracy(&judged, convention);
            assert!(same_accuracy(found, expected), "{convention}: {found:?} for {case}");
        }
    }
}

#[test]
fn partition_measures_are_those_of_scikit_learn() {
    for case in goldens("judged") {
        let (clusters, truth) = (labels(&case["clusters"]), labels(&case["truth"]));
        let (information, rand) = (nmi(&truth, &clusters), ari(&truth, &clusters));
        assert!(
            same(information, case["nmi"].as_f64().unwrap()),
            "{information} for {case}"
        );
        assert!(same(rand, case["ari"].as_f64().unwrap()), "{rand} for {case}");
    }
}

#[test]
fn summaries_are_those_of_numpy() {
    for case in goldens("summary") {
        let values: Vec<f64> = case["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect();
        let with_gaps = values.iter().flat_map(|&value| [value, f64::NAN]);
        let summary = Summary::of(with_gaps);
        assert_eq!(summary.count, values.len());
        assert!(same(summary.mean, case["mean"].as_f64().unwrap()), "{summary:?}");
        assert!(same(summary.ci95, case["ci95"].as_f64().unwrap()), "{summary:?}");
    }
    assert_eq!(
        Summary::of([0.25]),
        Summary {
            mean: 0.25,
            ci95: 0.0,
            count: 1
        }
    );
    assert!(Summary::of([0.1; 9]).ci95 < 1e-15);
    let nothing = Summary::of([f64::NAN]);
    assert!(nothing.mean.is_nan() && nothing.ci95.is_nan() && nothing.count == 0);
}

#[test]
fn a_side_without_queries_has_no_accuracy() {
    for convention in Convention::ALL {
        let of = |clusters, truth| {
            accuracy(
                &Evaluation {
                    known: &[0, 1],
                    clusters,
                    truth,
                },
                convention,
            )
        };
        let only_old = of(&[0, 1], &[0, 1]);
        assert!(
            only_old.all == 1.0 && only_old.old == 1.0 && only_old.new.is_nan(),
            "{convention}"
        );
        let only_new = of(&[2, 2], &[5, 5]);
        assert!(
            only_new.all == 1.0 && only_new.old.is_nan() && only_new.new == 1.0,
            "{convention}"
        );
        let nothing = of(&[], &[]);
        assert!(
            nothing.all.is_nan() && nothing.old.is_nan() && nothing.new.is_nan(),
            "{convention}"
        );
    }
}

#[test]
fn a_shared_cluster_goes_to_the_class_with_most_queries_in_it() {
    // Both prototypes in cluster 0, with one query of the first class and two of the second.
    let judged = Evaluation {
        known: &[0, 0],
        clusters: &[0, 0, 0],
        truth: &[0, 1, 1],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).old, 2.0 / 3.0);
    // The released code gives it to the later class, whatever it holds.
    let judged = Evaluation {
        known: &[0, 0],
        clusters: &[0, 0, 0],
        truth: &[0, 0, 1],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).old, 2.0 / 3.0);
    assert_eq!(accuracy(&judged, Convention::AuthorsV2).old, 1.0 / 3.0);
    // A cluster with a prototype is never a new class's.
    let judged = Evaluation {
        known: &[0],
        clusters: &[0, 0, 1],
        truth: &[1, 1, 1],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).new, 1.0 / 3.0);
}

#[test]
fn old_queries_compete_for_new_clusters_only_under_the_released_code() {
    // Two queries of the known class are stranded with one of the new class, in a cluster without a prototype.
    let judged = Evaluation {
        known: &[0],
        clusters: &[1, 1, 1],
        truth: &[0, 0, 1],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).new, 1.0);
    // The known class wins cluster 1 and then swaps it for its own, 0, with the new class: here that mends it.
    assert_eq!(accuracy(&judged, Convention::AuthorsV2).new, 1.0);
    // If the number 2 is borne by no class, the swap hands cluster 2 to it, and the new class goes without.
    let judged = Evaluation {
        known: &[0],
        clusters: &[2, 2, 2],
        truth: &[0, 0, 1],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).new, 1.0);
    assert_eq!(accuracy(&judged, Convention::AuthorsV2).new, 0.0);
}

#[test]
fn there_may_be_more_known_classes_than_numbers_in_use() {
    let judged = Evaluation {
        known: &[0, 0, 0, 1],
        clusters: &[0, 0, 1],
        truth: &[0, 0, 0],
    };
    assert_eq!(accuracy(&judged, Convention::Paper).old, 2.0 / 3.0);
    // Class 2 gets cluster 0 in the end, after 0 and 1 had it, and nobody else can.
    assert_eq!(accuracy(&judged, Convention::AuthorsV2).old, 0.0);
    assert_eq!(accuracy(&judged, Convention::GcdV2).old, 2.0 / 3.0);
}

#[test]
fn huge_labels_need_no_huge_memory() {
    let known = [usize::MAX, 7];
    let clusters = [
        usize::MAX,
        usize::MAX,
        7,
        usize::MAX - 1,
        usize::MAX - 1,
        LARGEST_LITERAL + 5,
    ];
    let truth = [0, 1, 1, usize::MAX, usize::MAX, 1 << 40];
    let huge = Evaluation {
        known: &known,
        clusters: &clusters,
        truth: &truth,
    };
    let small = Evaluation {
        known: &[3, 0],
        clusters: &[3, 3, 0, 2, 2, 1],
        truth: &[0, 1, 1, 3, 3, 2],
    };
    for convention in Convention::ALL {
        assert_eq!(
            accuracy(&huge, convention),
            accuracy(&small, convention),
            "{convention}"
        );
    }
    assert_eq!(nmi(&clusters, &truth), nmi(small.clusters, small.truth));
    assert_eq!(ari(&clusters, &truth), ari(small.clusters, small.truth));
}

#[test]
fn names_are_distinct_and_padded_on_demand() {
    let names = Convention::ALL.map(Convention::name);
    assert_eq!(names, ["paper", "authors-v2", "gcd-v1", "gcd-v2"]);
    assert_eq!(
        format!("{:>8}|{:<8}", Convention::Paper, Convention::GcdV2),
        "   paper|gcd-v2  "
    );
}

/// The prototypes' clusters, and each query's cluster and class.
fn judged() -> impl Strategy<Value = (Vec<usize>, Vec<(usize, usize)>)> {
    (
        prop::collection::vec(0usize..7, 0..4),
        prop::collection::vec((0usize..9, 0usize..6), 0..60),
    )
}

/// What a class of clusters makes right, counted one by one.
fn right(judged: &Evaluation, classes: &[(usize, usize)], old: bool) -> f64 {
    let side: Vec<usize> = (0..judged.truth.len())
        .filter(|&query| (judged.truth[query] < judged.known.len()) == old)
        .collect();
    let hits = side
        .iter()
        .filter(|&&query| classes.contains(&(judged.clusters[query], judged.truth[query])))
        .count();
    hits as f64 / side.len() as f64
}

#[test]
fn the_classes_of_clusters_give_the_papers_accuracy() {
    for case in goldens("judged") {
        let [known, clusters, truth] = ["known", "clusters", "truth"].map(|name| labels(&case[name]));
        let judged = Evaluation {
            known: &known,
            clusters: &clusters,
            truth: &truth,
        };
        let classes = classes_of_clusters(&judged);
        assert!(classes.windows(2).all(|pair| pair[0].0 < pair[1].0), "{classes:?}");
        let mut taken: Vec<usize> = classes.iter().map(|pair| pair.1).collect();
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "{classes:?}");
        let expected = accuracy(&judged, Convention::Paper);
        assert!(same(right(&judged, &classes, true), expected.old), "{case}");
        assert!(same(right(&judged, &classes, false), expected.new), "{case}");
    }
}

/// Every pair of a positive item and another, one by one.
fn auroc_of_pairs(scores: &[f32], positives: &[bool]) -> f64 {
    let side = |wanted: bool| {
        let chosen = scores.iter().zip(positives).filter(move |item| *item.1 == wanted);
        chosen.map(|(&score, _)| score).collect::<Vec<f32>>()
    };
    let (high, low) = (side(true), side(false));
    let pairs = high.iter().flat_map(|a| low.iter().map(move |b| (a, b)));
    let won: f64 = pairs
        .map(|(a, b)| {
            if a > b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            }
        })
        .sum();
    won / (high.len() * low.len()) as f64
}

#[test]
fn areas_under_the_roc_curve() {
    assert_eq!(auroc(&[0.1, 0.4, 0.35, 0.8], &[false, false, true, true]), 0.75);
    assert_eq!(auroc(&[0.5; 6], &[true, false, true, false, false, true]), 0.5);
    assert_eq!(auroc(&[0.0, -0.0], &[true, false]), 0.5);
    assert_eq!(auroc(&[2.0, 1.0], &[true, false]), 1.0);
    for positives in [&[][..], &[true, true], &[false]] {
        assert!(auroc(&vec![0.5; positives.len()], positives).is_nan());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn areas_are_those_of_all_pairs(items in prop::collection::vec((-6i8..6, any::<bool>()), 0..60)) {
        // Few different scores, so that many are equal.
        let (scores, positives): (Vec<f32>, Vec<bool>) =
            items.into_iter().map(|(score, positive)| (f32::from(score) / 4.0, positive)).unzip();
        let found = auroc(&scores, &positives);
        prop_assert!(same(found, auroc_of_pairs(&scores, &positives)));
        // The other way round it is the rest.
        let others: Vec<bool> = positives.iter().map(|positive| !positive).collect();
        prop_assert!(same(found, 1.0 - auroc(&scores, &others)));
    }

    #[test]
    fn names_of_clusters_do_not_matter(
        (known, queries) in judged(),
        names in Just((0usize..9).collect::<Vec<_>>()).prop_shuffle(),
        stride in 1usize..5,
    ) {
        let (clusters, truth): (Vec<_>, Vec<_>) = queries.into_iter().unzip();
        let rename = |clusters: &[usize]| -> Vec<usize> { clusters.iter().map(|&c| names[c] * stride).collect() };
        let (known_renamed, clusters_renamed) = (rename(&known), rename(&clusters));
        let plain = Evaluation { known: &known, clusters: &clusters, truth: &truth };
        let renamed = Evaluation { known: &known_renamed, clusters: &clusters_renamed, truth: &truth };
        for convention in [Convention::Paper, Convention::GcdV1] {
            prop_assert!(same_accuracy(accuracy(&plain, convention), accuracy(&renamed, convention)), "{}", convention);
        }
        // Where several joint matchings are best, Old and New under v2 hang on the numbering; All never does.
        prop_assert!(same(accuracy(&plain, Convention::GcdV2).all, accuracy(&renamed, Convention::GcdV2).all));
    }

    #[test]
    fn the_order_of_queries_does_not_matter(
        (known, queries) in judged(),
        seed in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let mut shuffled = queries.clone();
        for (i, index) in seed.iter().enumerate().take(queries.len()) {
            shuffled.swap(i, index.index(queries.len()));
        }
        let (clusters, truth): (Vec<_>, Vec<_>) = queries.into_iter().unzip();
        let (clusters_shuffled, truth_shuffled): (Vec<_>, Vec<_>) = shuffled.into_iter().unzip();
        for convention in Convention::ALL {
            let plain = accuracy(&Evaluation { known: &known, clusters: &clusters, truth: &truth }, convention);
            let again = Evaluation { known: &known, clusters: &clusters_shuffled, truth: &truth_shuffled };
            prop_assert!(same_accuracy(plain, accuracy(&again, convention)), "{}", convention);
        }
    }

    #[test]
    fn conventions_are_ordered_as_documented((known, queries) in judged()) {
        let (clusters, truth): (Vec<_>, Vec<_>) = queries.into_iter().unzip();
        let judged = Evaluation { known: &known, clusters: &clusters, truth: &truth };
        let [paper, authors, v1, v2] = Convention::ALL.map(|convention| accuracy(&judged, convention));
        // NaN on both sides or on neither: what is compared has the same queries.
        let at_most = |a: f64, b: f64| a.is_nan() && b.is_nan() || a <= b + 1e-12;
        for (name, other) in [("paper", paper), ("authors-v2", authors), ("gcd-v2", v2)] {
            prop_assert!(at_most(other.old, v1.old), "Old of {}", name);
            prop_assert!(at_most(other.new, v1.new), "New of {}", name);
            prop_assert!(at_most(other.all, v1.all), "All of {}", name);
            prop_assert!(at_most(other.all, v2.all), "All of {}", name);
        }
        prop_assert!(at_most(authors.new, paper.new));
        let mut distinct = known.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() == known.len() {
            prop_assert!(same(authors.old, paper.old));
            prop_assert!(at_most(authors.all, paper.all));
        }
    }

    #[test]
    fn all_is_the_mean_over_queries((known, queries) in judged()) {
        let (clusters, truth): (Vec<_>, Vec<_>) = queries.into_iter().unzip();
        let old = truth.iter().filter(|&&class| class < known.len()).count() as f64;
        let new = truth.len() as f64 - old;
        for convention in Convention::ALL {
            let found = accuracy(&Evaluation { known: &known, clusters: &clusters, truth: &truth }, convention);
            prop_assert_eq!(found.old.is_nan(), old == 0.0);
            prop_assert_eq!(found.new.is_nan(), new == 0.0);
            let right = |share: f64, of: f64| if of == 0.0 { 0.0 } else { share * of };
            prop_assert!(same(found.all, (right(found.old, old) + right(found.new, new)) / (old + new)));
        }
    }

    #[test]
    fn a_perfect_discovery_is_perfect(
        truth in prop::collection::vec(0usize..8, 1..50),
        n in 0usize..6,
        shift in 0usize..5,
    ) {
        // A cluster for each class, prototypes included, all numbers shifted in a circle.
        let cluster = |class: usize| (class + shift) % 8;
        let known: Vec<usize> = (0..n).map(cluster).collect();
        let clusters: Vec<usize> = truth.iter().map(|&class| cluster(class)).collect();
        for convention in Convention::ALL {
            let found = accuracy(&Evaluation { known: &known, clusters: &clusters, truth: &truth }, convention);
            prop_assert_eq!(found.all, 1.0, "{}", convention);
        }
        prop_assert!(same(nmi(&clusters, &truth), 1.0));
        prop_assert_eq!(ari(&clusters, &truth), 1.0);
    }

    #[test]
    fn partition_measures_are_symmetric_and_bounded(pairs in prop::collection::vec((0usize..6, 0usize..6), 0..60)) {
        let (a, b): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        prop_assert!(same(nmi(&a, &b), nmi(&b, &a)));
        prop_assert!(same(ari(&a, &b), ari(&b, &a)));
        prop_assert!((0.0..=1.0).contains(&nmi(&a, &b)));
        prop_assert!((-0.5 - 1e-12..=1.0).contains(&ari(&a, &b)));
        let renamed: Vec<usize> = a.iter().map(|&label| usize::MAX - label * 1000).collect();
        prop_assert!(same(nmi(&a, &b), nmi(&renamed, &b)));
        prop_assert_eq!(ari(&a, &b), ari(&renamed, &b));
    }
}

/// The definition of the calibration error, bin by bin.
fn error_of_bins(probabilities: &[f32], right: &[bool]) -> f64 {
    let mut error = 0.0;
    for bin in 0..10 {
        let (from, to) = (f64::from(bin) / 10.0, f64::from(bin + 1) / 10.0);
        let inside = |p: f32| (from..to).contains(&f64::from(p)) || (bin == 9 && p == 1.0);
        let members: Vec<(f64, bool)> = probabilities
            .iter()
            .zip(right)
            .filter(|&(&p, _)| inside(p))
            .map(|(&p, &right)| (f64::from(p), right))
            .collect();
        if members.is_empty() {
            continue;
        }
        let n = members.len() as f64;
        let said = members.iter().map(|member| member.0).sum::<f64>() / n;
        let was = members.iter().filter(|member| member.1).count() as f64 / n;
        error += n / probabilities.len() as f64 * (said - was).abs();
    }
    error
}

proptest! {
    #[test]
    fn the_calibration_error_is_that_of_its_bins(items in prop::collection::vec((0u16..=1000, any::<bool>()), 1..200)) {
        let (probabilities, right): (Vec<f32>, Vec<bool>) =
            items.iter().map(|&(p, right)| (f32::from(p) / 1000.0, right)).unzip();
        let found = calibration_error(&probabilities, &right);
        prop_assert!(same(found, error_of_bins(&probabilities, &right)), "{found}");
    }

    #[test]
    fn more_items_hold_more_errors_and_all_hold_all(
        items in prop::collection::vec((0u8..=9, any::<bool>()), 1..100),
        share in 0.0..1.0f64,
    ) {
        let (probabilities, right): (Vec<f32>, Vec<bool>) =
            items.iter().map(|&(p, right)| (f32::from(p) / 9.0, right)).unzip();
        let among = |share| errors_among_least_sure(&probabilities, &right, share);
        if right.iter().all(|&right| right) {
            prop_assert!(among(share).is_nan());
        } else {
            prop_assert!(same(among(0.0), 0.0) && same(among(1.0), 1.0));
            prop_assert!(among(share) <= among(share + 0.1) + 1e-12);
        }
        // What is equally likely cannot be told apart: every part of it holds its part of the errors.
        let even = errors_among_least_sure(&vec![0.5; right.len()], &right, share);
        prop_assert!(even.is_nan() || same(even, share));
    }
}

#[test]
fn nothing_to_judge_has_no_calibration_error() {
    assert!(calibration_error(&[], &[]).is_nan());
    assert!(errors_among_least_sure(&[], &[], 0.1).is_nan());
    // The last bin has the ones too.
    assert_eq!(
        calibration_error(&[1.0, 0.9], &[true, true]),
        f64::from(1.0 - 0.9f32) / 2.0
    );
}
