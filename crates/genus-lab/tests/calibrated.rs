//! The calibrated method in a bench: where its calibration comes from, and the figures that only scores give.

use std::sync::Arc;

use genus_core::episode::{Pile, Shape};
use genus_core::methods::{Context, Method};
use genus_core::metrics::auroc;
use genus_core::rng::Rng;
use genus_core::{Calibration, CalibrationSettings, Discover, Features, RealTime, Support, Task};
use genus_lab::{Bench, BenchReport, Dataset, Experiment, Interval, LabError, LargeSettings, Run, Silent, TradeOff};

const DIM: usize = 24;
const EACH: usize = 14;

/// Rows around a direction a class, which all differ in the same few directions, as items of any class do to an encoder.
fn rows(classes: usize) -> (Features, Vec<Option<String>>) {
    let mut rng = Rng::new(11, &[2]);
    let mut vector = move |scale: f32| -> Vec<f32> {
        let number = |rng: &mut Rng| (0..3).map(|_| 2.0 * rng.unit() as f32 - 1.0).sum::<f32>();
        (0..DIM).map(|_| scale * number(&mut rng)).collect()
    };
    let shared: Vec<Vec<f32>> = (0..3).map(|_| vector(0.5)).collect();
    let middle = vector(0.6);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for class in 0..classes {
        let centre = vector(0.55);
        for _ in 0..EACH {
            let (noise, along) = (vector(0.25), vector(1.0));
            let row = (0..DIM).map(|at| {
                let common: f32 = shared.iter().zip(&along).map(|(direction, a)| a * direction[at]).sum();
                middle[at] + centre[at] + noise[at] + common
            });
            rows.push(row.collect::<Vec<f32>>());
            labels.push(Some(format!("class {class:02}")));
        }
    }
    (Features::from_rows(rows).unwrap(), labels)
}

/// The first classes are novel and the last are base classes.
fn dataset(novel: usize, base: usize) -> Dataset {
    let (features, labels) = rows(novel + base);
    let names: Vec<String> = (0..novel).map(|class| format!("class {class:02}")).collect();
    Dataset::new("made up", features, &labels, Some(&names)).unwrap()
}

/// A calibration of the last classes alone, made without a bench.
fn calibration(data: &Dataset, novel: usize, settings: CalibrationSettings) -> Calibration {
    let rows: Vec<usize> = (novel * EACH..data.features().rows()).collect();
    let labels: Vec<usize> = rows.iter().map(|row| row / EACH - novel).collect();
    Calibration::fit(&data.features().select(&rows), &labels, settings).unwrap()
}

fn bench(methods: &[&str]) -> Bench {
    Bench {
        shape: Shape {
            way: 4,
            shot: 3,
            new: 4,
            query: 8,
        },
        episodes: 10,
        seed: 3,
        methods: genus_lab::BenchMethod::list(methods.iter().copied()).unwrap(),
        ..Bench::default()
    }
}

fn run(bench: &Bench, data: &Dataset, experiment: &Experiment) -> BenchReport {
    bench.run(data, experiment, &Silent).unwrap()
}

/// Every figure of a run except its time.
fn figures(run: &Run) -> String {
    serde_json::to_string(run).unwrap()
}

fn settings(seed: u64) -> CalibrationSettings {
    CalibrationSettings {
        seed,
        ..CalibrationSettings::default()
    }
}

#[test]
fn base_classes_make_it_better_than_the_papers_methods() {
    let data = dataset(12, 14);
    let large = Experiment::Large(LargeSettings {
        subset: 40,
        ..LargeSettings::default()
    });
    for experiment in [Experiment::Main, Experiment::RealTime, large] {
        let report = run(&bench(&["shc", "ukc", "calibrated"]), &data, &experiment);
        let [shc, ukc, calibrated] = &report.runs[..] else {
            panic!("three rows")
        };
        let best = shc.all.mean.max(ukc.all.mean);
        assert!(calibrated.all.mean > best, "{}", report.markdown());
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}

#[test]
fn the_calibration_is_of_the_base_classes_and_of_no_others() {
    let data = dataset(12, 14);
    for spec in ["calibrated", "calibrated:refine=0"] {
        let found = run(&bench(&[spec]), &data, &Experiment::Main);
        let given = Bench {
            calibration: Some(Arc::new(calibration(&data, 12, settings(3)))),
            ..bench(&[spec])
        };
        let expected = run(&given, &data, &Experiment::Main);
        assert_eq!(figures(&found.runs[0]), figures(&expected.runs[0]));
        assert_eq!(
            expected.notes,
            [format!("{spec}: by the calibration that was given, of 14 classes")]
        );
    }
    // Beside others that want the same, and in another order.
    let several = ["calibrated:tree=average", "calibrated:refine=0", "calibrated"];
    let together = run(&bench(&several), &data, &Experiment::Main);
    for (spec, expected) in several.iter().zip(&together.runs) {
        let alone = run(&bench(&[spec]), &data, &Experiment::Main);
        assert_eq!(figures(&alone.runs[0]), figures(expected));
    }
}

#[test]
fn a_calibration_that_was_given_comes_first_and_names_itself() {
    let data = dataset(12, 14);
    let other = calibration(&data, 16, settings(9));
    let given = |specs: &[&str]| Bench {
        calibration: Some(Arc::new(other.clone())),
        ..bench(specs)
    };
    let with = run(&given(&["calibrated"]), &data, &Experiment::Main);
    let without = run(&bench(&["calibrated"]), &data, &Experiment::Main);
    assert_ne!(figures(&with.runs[0]), figures(&without.runs[0]));
    // With settings of its own it wants one of its own.
    let average = ["calibrated:tree=average"];
    assert_eq!(
        figures(&run(&given(&average), &data, &Experiment::Main).runs[0]),
        figures(&run(&bench(&average), &data, &Experiment::Main).runs[0])
    );
    // One of other features is refused.
    let narrow = Features::from_rows(data.features().iter().map(|row| &row[1..])).unwrap();
    let labels: Vec<Option<String>> = (0..narrow.rows()).map(|row| Some((row / EACH).to_string())).collect();
    let narrow = Dataset::new("narrow", narrow, &labels, None).unwrap();
    let error = given(&["calibrated"])
        .run(&narrow, &Experiment::Main, &Silent)
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::Learning { .. }), "{text}");
    assert!(text.contains("24 features") && text.contains("23"), "{text}");
}

#[test]
fn without_base_classes_the_examples_say_what_they_can() {
    let none = dataset(12, 0);
    let report = run(&bench(&["shc", "calibrated"]), &none, &Experiment::Main);
    let note = "calibrated: no base classes, so every episode's own examples calibrate it";
    assert_eq!(report.notes, [note]);
    assert!(report.markdown().contains(note));
    let examples = run(&bench(&["calibrated:source=examples"]), &none, &Experiment::Main);
    assert_eq!(
        serde_json::to_string(&report.runs[1].episodes).unwrap(),
        serde_json::to_string(&examples.runs[0].episodes).unwrap()
    );
    assert!(examples.notes.is_empty());
    let few = run(&bench(&["calibrated"]), &dataset(12, 5), &Experiment::Main);
    assert_eq!(few.notes.len(), 1);
    assert!(
        few.notes[0].contains("at least 8 classes") && few.notes[0].contains("there are 5"),
        "{:?}",
        few.notes
    );
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let data = dataset(12, 14);
    let large = Experiment::Large(LargeSettings {
        subset: 40,
        ..LargeSettings::default()
    });
    let text = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let calibrated = bench(&["shc", "calibrated"]);
            let reports = [
                run(&calibrated, &data, &Experiment::RealTime),
                run(&calibrated, &data, &large),
                run(&with_outliers(&[]), &data, &Experiment::Ablation),
            ];
            let chart = reports[0].chart().unwrap().svg;
            // The machine is in a report, and its threads are.
            let runs = reports.map(|report| serde_json::to_string(&report.runs).unwrap());
            runs.concat() + &chart
        })
    };
    let one = text(1);
    assert!(one == text(2), "two threads");
    assert!(one == text(3), "three threads");
}

/// A query: its score, whether it is old, whether the best class is right, and whether the judgement is.
type Query = (f32, bool, bool, bool);

/// The judged queries of an episode by the definitions.
fn scored(data: &Dataset, bench: &Bench, method: &Method, number: u64) -> Vec<Query> {
    let episode = data.pool().episode(bench.shape, bench.seed, number).unwrap();
    let names: Vec<String> = episode.support_classes.iter().map(usize::to_string).collect();
    let support = Support::new(data.features().select(&episode.support), &names).unwrap();
    let task = Task::new(&support, data.features().select(&episode.queries)).unwrap();
    let rule = RealTime::new(&task, method.rule().unwrap().clone()).unwrap();
    let guesses = rule.guess_each(&task);
    let judged = rule.judge_each(&task);
    let all = judged.iter().zip(guesses).zip(&episode.truth);
    all.map(|((&(class, score), guess), &truth)| {
        let old = truth < bench.shape.way;
        let score = score.probability.unwrap_or(score.similarity);
        let right = if old { class == Some(truth) } else { class.is_none() };
        (score, old, guess == truth, right)
    })
    .collect()
}

#[test]
fn real_time_scores_tell_known_from_new() {
    let data = dataset(12, 14);
    let specs = ["proto", "shc", "rankstat", "calibrated", "gcd"];
    let bench = bench(&specs);
    let report = run(&bench, &data, &Experiment::RealTime);
    let calibration = Some(Arc::new(calibration(&data, 12, settings(3))));
    let share = |queries: &[Query], old: bool, chosen: &dyn Fn(&Query) -> bool| {
        let side: Vec<_> = queries.iter().filter(|query| query.1 == old).collect();
        side.iter().filter(|query| chosen(query)).count() as f64 / side.len() as f64
    };
    for (spec, run) in specs.iter().zip(&report.runs).take(4) {
        let given = Context {
            seed: 3,
            calibration: calibration.clone(),
        };
        let method = Method::with(spec, &given).unwrap();
        let episodes: Vec<_> = (0..10).map(|number| scored(&data, &bench, &method, number)).collect();
        let areas: Vec<f64> = episodes
            .iter()
            .map(|queries| {
                let scores: Vec<f32> = queries.iter().map(|query| query.0).collect();
                auroc(&scores, &queries.iter().map(|query| query.1).collect::<Vec<_>>())
            })
            .collect();
        let scores = run.known_or_new.as_ref().unwrap();
        let mean = areas.iter().sum::<f64>() / 10.0;
        assert!((scores.auroc.mean - mean).abs() < 1e-12, "{spec}");
        let all: Vec<_> = episodes.concat();
        let at = TradeOff {
            old: share(&all, true, &|query| query.3),
            new: share(&all, false, &|query| query.3),
        };
        assert_eq!(scores.at, at, "{spec}");
        // Every point of the curve is what some threshold gives, from strict to none.
        let mut thresholds: Vec<f32> = all.iter().map(|query| query.0).collect();
        thresholds.push(f32::INFINITY);
        thresholds.sort_by(f32::total_cmp);
        thresholds.dedup();
        let of_threshold = |limit: f32| TradeOff {
            old: share(&all, true, &|query| query.2 && query.0 >= limit),
            new: share(&all, false, &|query| query.0 < limit),
        };
        let possible: Vec<TradeOff> = thresholds.iter().map(|&limit| of_threshold(limit)).collect();
        assert!(scores.curve.iter().all(|point| possible.contains(point)), "{spec}");
        assert_eq!(scores.curve[0], TradeOff { old: 0.0, new: 1.0 });
        assert_eq!(scores.curve.last(), possible.first());
        assert!(
            scores.curve.len() > 20 && scores.curve.len() < 203,
            "{}",
            scores.curve.len()
        );
        for pair in scores.curve.windows(2) {
            assert!(pair[0].old <= pair[1].old && pair[0].new >= pair[1].new, "{spec}");
        }
        // A threshold that leaves a gap of more than two steps would be seen.
        let near = |point: &TradeOff| {
            let close = |other: &TradeOff| (point.old - other.old).abs().max((point.new - other.new).abs()) < 0.021;
            scores.curve.iter().any(close)
        };
        assert!(possible.iter().all(near), "{spec}");
    }
    // One that has to cluster every query has no score of it.
    assert!(report.runs[4].known_or_new.is_none());
    let area = |at: usize| report.runs[at].known_or_new.as_ref().unwrap().auroc.mean;
    assert_eq!(area(0), area(1), "both look at the same similarities");
    assert!(area(3) > area(1), "{}", report.markdown());
    let table = report.markdown();
    assert!(table.contains(" AUROC |"), "{table}");
    let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((again.json(), again.markdown()), (report.json(), table));
    assert_eq!(again.chart(), report.chart());
    let svg = report.chart().unwrap().svg;
    for name in ["proto", "shc", "rankstat", "calibrated", "Old, %", "New, %"] {
        assert!(svg.contains(name), "{name}");
    }
    assert!(!svg.contains("gcd"));
    // What clusters has no such figures.
    let main = run(&bench, &data, &Experiment::Main);
    assert!(main.runs.iter().all(|run| run.known_or_new.is_none()) && !main.markdown().contains("AUROC"));
}

#[test]
fn with_no_new_queries_there_is_nothing_to_tell_apart() {
    let data = dataset(12, 14);
    let only_old = Bench {
        shape: Shape {
            new: 0,
            ..bench(&[]).shape
        },
        ..bench(&["shc", "calibrated"])
    };
    let report = run(&only_old, &data, &Experiment::RealTime);
    for run in &report.runs {
        assert!(run.known_or_new.as_ref().unwrap().auroc.mean.is_nan());
    }
    let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((again.json(), again.markdown()), (report.json(), report.markdown()));
    assert!(report.chart().unwrap().svg.contains("no data"));
}

fn with_outliers(methods: &[&str]) -> Bench {
    Bench {
        pile: Pile {
            outliers: 4,
            ..Pile::default()
        },
        ..bench(methods)
    }
}

#[test]
fn outliers_are_called_unsure_more_often_than_others() {
    let data = dataset(12, 14);
    let bench = with_outliers(&["shc", "calibrated"]);
    let report = run(&bench, &data, &Experiment::Main);
    assert!(report.runs[0].unsure.is_none());
    let given = Context {
        seed: 3,
        calibration: Some(Arc::new(calibration(&data, 12, settings(3)))),
    };
    let method = Method::with("calibrated", &given).unwrap();
    let (mut outliers, mut others) = (0.0, 0.0);
    for number in 0..10 {
        let episode = data.pool().episode_of(bench.shape, bench.pile, 3, number).unwrap();
        let names: Vec<String> = episode.support_classes.iter().map(usize::to_string).collect();
        let support = Support::new(data.features().select(&episode.support), &names).unwrap();
        let task = Task::new(&support, data.features().select(&episode.queries)).unwrap();
        let discovery = method.discover(&task).unwrap();
        for (query, score) in discovery.scores().iter().enumerate() {
            match query < episode.belonging() {
                true => others += f64::from(u8::from(score.unsure)) / episode.belonging() as f64 / 10.0,
                false => outliers += f64::from(u8::from(score.unsure)) / 4.0 / 10.0,
            }
        }
    }
    let found = report.runs[1].unsure.unwrap();
    let same = |interval: Interval, expected: f64| (interval.mean - expected).abs() < 1e-12;
    assert!(same(found.outliers, outliers), "{found:?} {outliers}");
    assert!(same(found.others, others), "{found:?} {others}");
    assert!(outliers > 1.5 * others, "{}", report.markdown());
    let table = report.markdown();
    assert!(
        table.contains("Outliers unsure") && table.contains("Others unsure"),
        "{table}"
    );
    let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((again.json(), again.markdown()), (report.json(), table));
    // Without outliers nothing is said of them.
    let plain = run(&self::bench(&["calibrated"]), &data, &Experiment::Main);
    assert!(plain.runs[0].unsure.is_none() && !plain.json().contains("unsure"));
}

#[test]
fn an_ablation_has_a_row_for_every_part() {
    let data = dataset(12, 14);
    let report = run(&bench(&[]), &data, &Experiment::Ablation);
    let titles: Vec<String> = report.runs.iter().map(Run::title).collect();
    assert_eq!(
        titles,
        [
            "shc",
            "ukc",
            "shc, calibrated features",
            "ukc, calibrated features",
            "calibrated",
            "calibrated (tree = average)",
            "calibrated (directions = 0)",
            "calibrated (centre = task, directions = 0)",
            "calibrated (centre = none, directions = 0)",
            "calibrated (eagerness = learnt)",
            "calibrated (refine = 0)",
            "calibrated (source = examples)",
            "calibrated (source = prior)",
        ]
    );
    // Rows on calibrated features are those of a data set that has them.
    let features = calibration(&data, 12, settings(3)).transform(data.features());
    let (_, labels) = rows(26);
    let novel = data.pool().classes().to_vec();
    let moved = Dataset::new("made up", features, &labels, Some(&novel)).unwrap();
    let expected = run(&bench(&["shc", "ukc"]), &moved, &Experiment::Main);
    for (at, expected) in expected.runs.iter().enumerate() {
        let episodes = |run: &Run| serde_json::to_string(&run.episodes).unwrap();
        assert_eq!(episodes(&report.runs[2 + at]), episodes(expected));
        assert_ne!(episodes(&report.runs[at]), episodes(expected));
    }
    // What is run in place of the list, and what cannot be.
    let named = run(&bench(&["shc", "calibrated"]), &data, &Experiment::Ablation);
    assert_eq!(named.runs.len(), 2);
    let error = bench(&[])
        .run(&dataset(12, 0), &Experiment::Ablation, &Silent)
        .unwrap_err();
    assert!(matches!(error, LabError::NoBaseClasses { .. }), "{error}");
}

#[test]
fn calibrated_features_are_directions_from_the_middle_of_the_base_classes() {
    let data = dataset(4, 10);
    let plain = CalibrationSettings {
        directions: 0,
        ..settings(0)
    };
    let unit = |row: &[f32]| -> Vec<f64> {
        let length = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
        row.iter().map(|&v| f64::from(v) / length).collect()
    };
    let rows: Vec<Vec<f64>> = data.features().iter().map(unit).collect();
    let base = &rows[4 * EACH..];
    let mean: Vec<f64> = (0..DIM)
        .map(|at| base.iter().map(|row| row[at]).sum::<f64>() / base.len() as f64)
        .collect();
    let found = calibration(&data, 4, plain).transform(data.features());
    assert_eq!((found.rows(), found.dim()), (rows.len(), DIM));
    for (row, found) in rows.iter().zip(found.iter()) {
        let moved: Vec<f32> = row.iter().zip(&mean).map(|(v, mean)| (v - mean) as f32).collect();
        for (expected, &found) in unit(&moved).into_iter().zip(found) {
            assert!((expected - f64::from(found)).abs() < 1e-5);
        }
    }
    // Damping brings the items of a class together.
    let spread = |features: &Features| -> f64 {
        let of_class = |class: usize| {
            let items: Vec<&[f32]> = features.iter().skip(class * EACH).take(EACH).collect();
            let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
            items
                .iter()
                .flat_map(|a| items.iter().map(move |b| cosine(a, b)))
                .sum::<f64>()
        };
        (0..4).map(of_class).sum()
    };
    let damped = calibration(&data, 4, settings(0)).transform(data.features());
    assert!(
        spread(&damped) > spread(&found),
        "{} {}",
        spread(&damped),
        spread(&found)
    );
}
