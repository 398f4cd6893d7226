//! The experiments on features made up for them, through the public interface.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use genus_core::episode::{Half, Pile, Shape, ShortClasses, Tail};
use genus_core::methods::Method;
use genus_core::metrics::{Accuracy, Convention, Evaluation, accuracy};
use genus_core::{CentreNorm, Discover, Features, Kind, Prototypes, Support, Task};
use genus_lab::{
    Bench, BenchReport, Dataset, DigitsTask, Experiment, LabError, LargeSettings, Length, PileSettings, PileVariable,
    Progress, Run, Silent, StreamSettings,
};

/// Numbers between -1 and 1 in a fixed order: SplitMix64.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// Rows around a random direction a class, so many of each class, and their labels.
fn rows(sizes: &[usize], spread: f32) -> (Vec<Vec<f32>>, Vec<Option<String>>) {
    const DIM: usize = 16;
    let mut noise = Noise(17);
    let centres: Vec<Vec<f32>> = sizes
        .iter()
        .map(|_| (0..DIM).map(|_| noise.next() + 0.3).collect())
        .collect();
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for (class, (&size, centre)) in sizes.iter().zip(&centres).enumerate() {
        for _ in 0..size {
            rows.push(centre.iter().map(|v| v + spread * noise.next()).collect());
            labels.push(Some(format!("class {class:02}")));
        }
    }
    (rows, labels)
}

/// Classes of equal size, far enough apart to be found and near enough for mistakes.
fn dataset(classes: usize, each: usize) -> Dataset {
    let (rows, labels) = rows(&vec![each; classes], 0.8);
    Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap()
}

fn bench(methods: &[&str]) -> Bench {
    Bench {
        shape: Shape {
            way: 3,
            shot: 2,
            new: 2,
            query: 4,
        },
        episodes: 12,
        seed: 5,
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

#[test]
fn proto_finds_nothing_new() {
    let data = dataset(8, 12);
    for (way, new) in [(3, 2), (2, 5), (4, 4), (3, 0)] {
        let mut bench = bench(&["proto"]);
        bench.shape = Shape {
            way,
            new,
            ..bench.shape
        };
        for experiment in [Experiment::Main, Experiment::RealTime] {
            let report = run(&bench, &data, &experiment);
            let run = &report.runs[0];
            assert_eq!(run.episodes.len(), 12);
            for episode in &run.episodes {
                if new > 0 {
                    assert_eq!(episode.new, 0.0);
                } else {
                    assert!(episode.new.is_nan());
                }
                let share = way as f64 / (way + new) as f64;
                assert!(
                    (episode.all - episode.old * share).abs() < 1e-12,
                    "{way} {new}: {episode:?}"
                );
                assert!((0.0..=1.0).contains(&episode.old) && episode.old > 0.5, "{episode:?}");
            }
        }
        let report = run(&bench, &data, &Experiment::Main);
        let k = report.runs[0].k.unwrap();
        assert_eq!((k.mean, k.truth, k.error), (way as f64, way + new, new as f64));
    }
}

#[test]
fn classes_far_apart_are_all_found() {
    let (rows, labels) = rows(&[12; 8], 0.05);
    let data = Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    // Two classes are more than a little larger than one, and of classes alone none is.
    let report = run(&bench(&["ukc:alpha=1.01"]), &data, &Experiment::Main);
    let run = &report.runs[0];
    assert_eq!(
        (run.all.mean, run.old.mean, run.new.mean),
        (1.0, 1.0, 1.0),
        "{}",
        report.markdown()
    );
    assert_eq!(run.all.ci95, 0.0);
    assert!((run.metrics.nmi.mean - 1.0).abs() < 1e-12 && (run.metrics.ari.mean - 1.0).abs() < 1e-12);
    for convention in run.metrics.conventions.values() {
        assert_eq!(convention.all.mean, 1.0);
    }
    assert_eq!(run.k.unwrap().error, 0.0);
}

#[test]
fn judging_queries_one_by_one_equals_tasks_of_one_query() {
    let data = dataset(8, 12);
    let methods = [
        "proto",
        "rankstat",
        "rankstat:order=unordered",
        "shc:t=0",
        "shc:t=0:boost=1.1",
        "ukc",
    ];
    let bench = bench(&methods);
    let report = run(&bench, &data, &Experiment::RealTime);
    for (spec, run) in methods.iter().zip(&report.runs) {
        let method = Method::parse(spec, bench.seed).unwrap();
        for (number, figures) in run.episodes.iter().enumerate() {
            let episode = data.pool().episode(bench.shape, bench.seed, number as u64).unwrap();
            let names: Vec<String> = episode.support_classes.iter().map(usize::to_string).collect();
            let support = Support::new(data.features().select(&episode.support), &names).unwrap();
            let (mut old, mut new) = (0u32, 0u32);
            for (&row, &truth) in episode.queries.iter().zip(&episode.truth) {
                let task = Task::new(&support, data.features().select(&[row])).unwrap();
                let discovery = method.discover(&task).unwrap();
                let category = discovery.categories()[0];
                match category.kind() {
                    Kind::Known if truth < 3 => old += u32::from(category == genus_core::Category::Known(truth)),
                    Kind::Novel if truth >= 3 => new += 1,
                    _ => {}
                }
            }
            let expected = [f64::from(old) / 12.0, f64::from(new) / 8.0, f64::from(old + new) / 20.0];
            for (found, expected) in [figures.old, figures.new, figures.all].into_iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{spec}, episode {number}: {figures:?}, not {expected}"
                );
            }
            assert_eq!(figures.k, None);
        }
        assert!(run.k.is_none());
    }
    // The small clusters of SHC that t is about do not exist with one query.
    let default = run(&bench_with(&bench, &["shc"]), &data, &Experiment::RealTime);
    assert_eq!(default.runs[0].all.mean, report.runs[3].all.mean);
}

fn bench_with(bench: &Bench, methods: &[&str]) -> Bench {
    Bench {
        methods: genus_lab::BenchMethod::list(methods.iter().copied()).unwrap(),
        ..bench.clone()
    }
}

#[test]
fn other_methods_beside_it_do_not_change_a_method() {
    let data = dataset(10, 14);
    let all = ["proto", "rankstat", "gcd", "shc", "ukc"];
    let large = Experiment::Large(LargeSettings {
        subset: 20,
        ..LargeSettings::default()
    });
    for experiment in [Experiment::Main, Experiment::RealTime, large] {
        let together = run(&bench(&all), &data, &experiment);
        let reversed: Vec<&str> = all.into_iter().rev().collect();
        let backwards = run(&bench(&reversed), &data, &experiment);
        for (at, method) in all.iter().enumerate() {
            let alone = run(&bench(&[method]), &data, &experiment);
            assert_eq!(alone.runs.len(), 1);
            let name = experiment.kind().name();
            assert_eq!(figures(&alone.runs[0]), figures(&together.runs[at]), "{name}: {method}");
            assert_eq!(
                figures(&alone.runs[0]),
                figures(&backwards.runs[4 - at]),
                "{name}: {method}"
            );
        }
    }
}

#[test]
fn longer_runs_begin_like_shorter_ones() {
    let data = dataset(8, 12);
    let long = run(&bench(&["shc", "ukc"]), &data, &Experiment::Main);
    let short = Bench {
        episodes: 5,
        ..bench(&["shc", "ukc"])
    };
    let short = run(&short, &data, &Experiment::Main);
    for (long, short) in long.runs.iter().zip(&short.runs) {
        for (a, b) in long.episodes.iter().zip(&short.episodes) {
            assert_eq!((a.all, a.old, a.new, a.k), (b.all, b.old, b.new, b.k));
        }
    }
    let other_seed = Bench {
        seed: 6,
        ..bench(&["shc", "ukc"])
    };
    let other = run(&other_seed, &data, &Experiment::Main);
    assert_ne!(figures(&other.runs[0]), figures(&long.runs[0]));
}

#[test]
fn experiments_vary_what_they_are_about() {
    let data = dataset(8, 12);
    let specs = |report: &BenchReport| -> Vec<String> { report.runs.iter().map(Run::title).collect() };
    let alpha = run(&bench(&[]), &data, &Experiment::Alpha(vec![1.2, 1.4, 3.0]));
    assert_eq!(
        specs(&alpha),
        ["ukc (alpha = 1.2)", "ukc (alpha = 1.4)", "ukc (alpha = 3)"]
    );
    let threshold = run(&bench(&[]), &data, &Experiment::Threshold(vec![0, 2]));
    assert_eq!(specs(&threshold), ["shc (t = 0)", "shc (t = 2)"]);
    let queries = run(&bench(&["shc"]), &data, &Experiment::Queries(vec![1, 7]));
    assert_eq!(queries.runs.iter().map(|run| run.query).collect::<Vec<_>>(), [1, 7]);
    // The default value among them is the default.
    let main = run(&bench(&["shc", "ukc"]), &data, &Experiment::Main);
    assert_eq!(threshold.runs[1].all.mean, main.runs[0].all.mean);
    assert_eq!(alpha.runs[1].all.mean, main.runs[1].all.mean);
    let same = run(&bench(&["shc"]), &data, &Experiment::Queries(vec![4]));
    assert_eq!(figures(&same.runs[0]), figures(&main.runs[0]));
    // A method with a parameter of its own keeps it.
    let both = run(&bench(&["ukc:first-alpha=2"]), &data, &Experiment::Alpha(vec![1.2]));
    assert_eq!(specs(&both), ["ukc (alpha = 1.2, first-alpha = 2)"]);
    for (report, name) in [
        (&alpha, "alpha"),
        (&threshold, "threshold"),
        (&queries, "queries"),
        (&main, "main"),
    ] {
        assert_eq!(report.settings.experiment.name(), name);
        assert!(report.notes.is_empty());
    }
}

#[test]
fn the_methods_of_the_papers_tables_and_ours_are_the_default() {
    let data = dataset(8, 12);
    let methods = |experiment: Experiment| -> Vec<String> {
        let report = run(&bench(&[]), &data, &experiment);
        report.runs.iter().map(Run::title).collect()
    };
    // OCD learns from base classes, and there are none.
    assert_eq!(
        methods(Experiment::Main),
        ["proto", "rankstat", "simgcd", "gcd", "shc", "ukc", "calibrated"]
    );
    let real_time = ["proto", "rankstat", "shc", "shc (boost = 1.1)", "ukc", "calibrated"];
    assert_eq!(methods(Experiment::RealTime), real_time);
    let piles = Experiment::Piles(PileSettings {
        items: vec![2],
        varied: vec![PileVariable::Items],
        ..small_piles()
    });
    assert_eq!(methods(piles), ["calibrated", "proto", "shc", "ukc"]);
    let stream = Experiment::Stream(StreamSettings { orders: 1, looks: 1 });
    let defaults: Vec<String> = stream.methods().iter().map(ToString::to_string).collect();
    assert_eq!(defaults, ["calibrated", "ocd"]);
    assert_eq!(methods(stream), ["stream", "calibrated"]);
    assert_eq!(methods(Experiment::Queries(vec![2])), ["shc", "ukc", "calibrated"]);
}

#[test]
fn tasks_that_need_more_classes_than_there_are_are_left_out() {
    let data = dataset(26, 7);
    let report = run(&bench(&["proto"]), &data, &Experiment::Tasks);
    let shapes: Vec<(usize, usize)> = report.runs.iter().map(|run| (run.way, run.new_classes)).collect();
    assert_eq!(shapes, [(5, 20)]);
    assert_eq!(report.notes.len(), 2);
    assert!(
        report.notes[0].contains("10w2s20n") && report.notes[0].contains("30 classes of 26"),
        "{:?}",
        report.notes
    );
    assert!(
        report.notes[1].contains("10w2s40n") && report.notes[1].contains("50 classes of 26"),
        "{:?}",
        report.notes
    );
    for note in &report.notes {
        assert!(report.markdown().contains(note), "{}", report.markdown());
        assert!(report.json().contains(note), "{}", report.json());
    }
    let error = bench(&["proto"])
        .run(&dataset(24, 7), &Experiment::Tasks, &Silent)
        .unwrap_err();
    assert!(matches!(error, LabError::NothingToRun { .. }), "{error}");
    assert!(error.to_string().starts_with("made up: "), "{error}");
}

#[test]
fn short_classes_are_an_error_or_left_out() {
    let mut sizes = [12; 8];
    (sizes[2], sizes[5]) = (5, 1);
    let (rows, labels) = rows(&sizes, 0.8);
    let features = Features::from_rows(rows).unwrap();
    let data = Dataset::new("made up", features.clone(), &labels, None).unwrap();
    let error = bench(&["shc"])
        .run(&data, &Experiment::Main, &Silent)
        .unwrap_err()
        .to_string();
    for word in ["made up", "`class 02`", "5 items", "6"] {
        assert!(error.contains(word), "{error}");
    }
    let skip = Bench {
        short_classes: ShortClasses::Skip,
        ..bench(&["shc", "rankstat"])
    };
    let report = run(&skip, &data, &Experiment::Main);
    assert_eq!(report.notes.len(), 1);
    assert!(report.notes[0].ends_with("class 02, class 05"), "{:?}", report.notes);
    // The same as if they were not in the data.
    let (kept, kept_labels): (Vec<usize>, Vec<Option<String>>) = labels
        .iter()
        .cloned()
        .enumerate()
        .filter(|(_, label)| ![Some("class 02"), Some("class 05")].contains(&label.as_deref()))
        .unzip();
    let without = Dataset::new("made up", features.select(&kept), &kept_labels, None).unwrap();
    let expected = run(&skip, &without, &Experiment::Main);
    assert!(expected.notes.is_empty());
    for (found, expected) in report.runs.iter().zip(&expected.runs) {
        assert_eq!(figures(found), figures(expected));
    }
    // Fewer queries, and the larger of the two is long enough.
    let fewer = Bench {
        shape: Shape { query: 3, ..skip.shape },
        ..skip
    };
    assert!(run(&fewer, &data, &Experiment::Main).notes[0].ends_with(": class 05"));
}

#[test]
fn large_tasks_take_every_item() {
    let data = dataset(8, 12);
    // With the whole pile in the subset nothing is left to assign.
    let settings = LargeSettings {
        subset: 1000,
        ..LargeSettings::default()
    };
    let whole = run(&bench(&["shc", "proto"]), &data, &Experiment::Large(settings.clone()));
    for (number, figures) in whole.runs[1].episodes.iter().enumerate() {
        let task = data.pool().large(bench(&[]).shape, 5, number as u64).unwrap();
        assert_eq!(task.queries.len(), 5 * 12 - 3 * 2);
        assert_eq!(task.queries.iter().collect::<BTreeSet<_>>().len(), task.queries.len());
        // Old queries are 30 of 54.
        assert!((figures.all - figures.old * 30.0 / 54.0).abs() < 1e-12, "{figures:?}");
    }
    let other_seed = Bench {
        seed: 6,
        ..bench(&["shc", "proto"])
    };
    let other = run(&other_seed, &data, &Experiment::Large(settings.clone()));
    assert_ne!(
        figures(&other.runs[1]),
        figures(&whole.runs[1]),
        "the seed draws the items"
    );
    let part = |settings: LargeSettings| run(&bench(&["shc"]), &data, &Experiment::Large(settings));
    let small = LargeSettings { subset: 25, ..settings };
    let plain = part(small.clone());
    assert_ne!(figures(&plain.runs[0]), figures(&whole.runs[0]));
    assert!(plain.runs[0].all.mean > 0.4, "{}", plain.markdown());
    // What can be set has an effect.
    for other in [
        LargeSettings {
            refine: 2,
            ..small.clone()
        },
        LargeSettings {
            centre_norm: CentreNorm::AuthorsColumns,
            ..small.clone()
        },
    ] {
        assert_ne!(
            figures(&part(other.clone()).runs[0]),
            figures(&plain.runs[0]),
            "{other:?}"
        );
    }
}

#[test]
fn the_authors_order_uses_full_batches_only() {
    let (rows, labels) = rows(&[47; 6], 0.8);
    let data = Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    let settings = LargeSettings {
        authors: true,
        ..LargeSettings::default()
    };
    let report = run(&bench(&["proto", "shc"]), &data, &Experiment::Large(settings));
    // 40 of the 47 items of each of five classes, less the examples: 114 old and 80 new queries.
    for episode in &report.runs[0].episodes {
        assert!((episode.all - episode.old * 114.0 / 194.0).abs() < 1e-12, "{episode:?}");
    }
    assert!(report.markdown().contains("in the order of the data"));
}

#[test]
fn prototypes_are_made_as_asked() {
    let (mut rows, labels) = rows(&[12; 8], 0.8);
    // Rows of very different length, where the mean of raw rows and the mean of directions differ.
    rows.iter_mut().enumerate().for_each(|(at, row)| {
        let scale = [1.0, 30.0, 0.2][at % 3];
        row.iter_mut().for_each(|v| *v *= scale);
    });
    let data = Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    let with = |prototypes: Prototypes| {
        let bench = Bench {
            prototypes,
            ..bench(&["rankstat"])
        };
        let report = run(&bench, &data, &Experiment::Main);
        assert_eq!(report.settings.prototypes, prototypes.to_string());
        figures(&report.runs[0])
    };
    let all: BTreeSet<String> = Prototypes::ALL.iter().map(|&kind| with(kind)).collect();
    assert!(all.len() > 1);
}

#[test]
fn a_data_set_draws_from_the_classes_it_is_told() {
    let (rows, labels) = rows(&[4; 12], 0.8);
    let novel = ["class 03".to_owned(), "class 07".to_owned(), "class 11".to_owned()];
    let data = Dataset::new(
        "made up",
        Features::from_rows(rows.clone()).unwrap(),
        &labels,
        Some(&novel),
    )
    .unwrap();
    assert_eq!(data.pool().classes(), novel);
    assert_eq!(data.features().rows(), 48, "all rows stay");
    assert_eq!(data.name(), "made up");
    // Numbers are in the order of numbers, so that a class keeps its place when there are ten.
    let numbered: Vec<Option<String>> = (0..48).map(|row| Some((row / 4).to_string())).collect();
    let data = Dataset::new("made up", Features::from_rows(rows.clone()).unwrap(), &numbered, None).unwrap();
    let expected: Vec<String> = (0..12).map(|class| class.to_string()).collect();
    assert_eq!(data.pool().classes(), expected);
    let error = Dataset::new("made up", Features::from_rows(rows).unwrap(), &vec![None; 48], None).unwrap_err();
    assert!(matches!(error, LabError::NoLabels { .. }));
}

#[test]
fn what_cannot_be_run_says_why() {
    let data = dataset(4, 12);
    let message = |bench: Bench| bench.run(&data, &Experiment::Main, &Silent).unwrap_err().to_string();
    let too_many = message(bench(&["shc"]));
    assert!(
        too_many.contains("made up") && too_many.contains("5 classes") && too_many.contains('4'),
        "{too_many}"
    );
    let unknown = genus_lab::BenchMethod::list(["shc", "none"]).unwrap_err().to_string();
    assert!(unknown.contains("`none`") && unknown.contains("simgcd"), "{unknown}");
    let wrong = genus_lab::BenchMethod::list(["ukc:alpha=0.5"]).unwrap_err().to_string();
    assert!(wrong.contains("alpha"), "{wrong}");
    let one = Bench {
        shape: Shape {
            way: 1,
            ..bench(&[]).shape
        },
        ..bench(&["proto", "shc"])
    };
    let one = message(one);
    assert!(
        one.starts_with("shc, episode ") && one.contains("at least 2 known classes"),
        "{one}"
    );
    for shape in [
        Shape {
            shot: usize::MAX,
            ..bench(&[]).shape
        },
        Shape {
            query: usize::MAX,
            ..bench(&[]).shape
        },
        Shape {
            new: usize::MAX,
            ..bench(&[]).shape
        },
    ] {
        assert!(
            message(Bench {
                shape,
                ..bench(&["shc"])
            })
            .contains("made up")
        );
    }
}

#[derive(Default)]
struct Counter {
    steps: AtomicU64,
    announced: AtomicU64,
}

impl Progress for Counter {
    fn start(&self, _stage: &str, length: Length) {
        let Length::Steps(steps) = length else { return };
        self.announced.fetch_add(steps, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }
}

#[test]
fn progress_hears_of_every_episode() {
    let data = dataset(8, 12);
    for (experiment, steps) in [(Experiment::Main, 12), (Experiment::Queries(vec![1, 2, 3]), 36)] {
        let counter = Counter::default();
        bench(&["proto"]).run(&data, &experiment, &counter).unwrap();
        let counted = (counter.announced.into_inner(), counter.steps.into_inner());
        assert_eq!(counted, (steps, steps));
    }
}

#[test]
fn the_digits_are_one_large_task() {
    let demo = DigitsTask::new(0).unwrap();
    assert_eq!(demo.known().len(), 5);
    assert_eq!(demo.known().iter().collect::<BTreeSet<_>>().len(), 5);
    assert_eq!(demo.task().known(), 5);
    for class in 0..5 {
        assert_eq!(demo.examples(class).count(), 5);
    }
    let queries = demo.task().queries();
    let truths: BTreeSet<u8> = (0..queries).map(|query| demo.truth(query)).collect();
    assert_eq!(truths, (0..10).collect());
    assert!((0..queries).all(|query| demo.picture(query).iter().all(|v| (0.0..=16.0).contains(v))));
    // ProtoNet sees the known ones well and nothing else; SHC finds new ones too.
    let proto = demo.run("proto", 0).unwrap();
    assert!(proto.accuracy.old > 0.7, "{:?}", proto.accuracy);
    assert_eq!((proto.accuracy.new, proto.discovery.novel()), (0.0, 0));
    let shc = demo.run("shc", 0).unwrap();
    assert!(
        shc.accuracy.new > 0.5 && shc.accuracy.all > proto.accuracy.all,
        "{:?}",
        shc.accuracy
    );
    let taxonomy = demo.taxonomy(&shc);
    let items: u64 = taxonomy.entries().iter().map(|entry| entry.items).sum();
    assert_eq!(items, queries as u64);
    let names: Vec<String> = demo.known().iter().map(|digit| digit.to_string()).collect();
    assert_eq!(demo.task().classes(), names);
    assert_ne!(DigitsTask::new(1).unwrap().known(), demo.known());
}

#[test]
fn the_authors_order_leaves_out_classes_without_a_full_batch() {
    // Ten classes of 25 items and one of 10, which is less than a batch of 20.
    let classes = (0..11).flat_map(|class| std::iter::repeat_n(class, if class == 10 { 10 } else { 25 }));
    let (rows, labels): (Vec<[f32; 12]>, Vec<Option<String>>) = classes
        .enumerate()
        .map(|(row, class)| {
            let mut features = [0.05 * (row % 7) as f32; 12];
            features[class] += 1.0;
            (features, Some(format!("class {class}")))
        })
        .unzip();
    let data = Dataset::new("batches", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    let bench = |short_classes| Bench {
        shape: Shape {
            way: 2,
            shot: 2,
            new: 2,
            query: 1,
        },
        episodes: 5,
        methods: vec!["proto".parse().unwrap()],
        short_classes,
        ..Bench::default()
    };
    let large = Experiment::Large(LargeSettings {
        authors: true,
        ..LargeSettings::default()
    });
    let error = bench(ShortClasses::Error).run(&data, &large, &Silent).unwrap_err();
    assert!(error.to_string().contains("class 10"), "{error}");
    let report = bench(ShortClasses::Skip).run(&data, &large, &Silent).unwrap();
    assert!(report.notes[0].contains("class 10"), "{:?}", report.notes);
}

fn with_pile(methods: &[&str], tail: Option<(usize, usize)>, outliers: usize) -> Bench {
    let tail = tail.map(|(smallest, largest)| Tail { smallest, largest });
    Bench {
        pile: Pile { tail, outliers },
        ..bench(methods)
    }
}

/// What a method finds in an episode, from the definitions: the outliers are in its task and in none of the figures.
fn judged(data: &Dataset, bench: &Bench, spec: &str, number: u64) -> ([f64; 3], usize, usize) {
    let episode = data
        .pool()
        .episode_of(bench.shape, bench.pile, bench.seed, number)
        .unwrap();
    let names: Vec<String> = episode.support_classes.iter().map(usize::to_string).collect();
    let support = Support::new(data.features().select(&episode.support), &names).unwrap();
    let task = Task::new(&support, data.features().select(&episode.queries)).unwrap();
    let discovery = Method::parse(spec, bench.seed).unwrap().discover(&task).unwrap();
    let scored = episode.queries.len() - bench.pile.outliers;
    let judged = Evaluation {
        known: discovery.prototype_clusters(),
        clusters: &discovery.query_clusters()[..scored],
        truth: &episode.truth[..scored],
    };
    let Accuracy { all, old, new } = accuracy(&judged, Convention::Paper);
    let clusters = discovery.prototype_clusters().iter().chain(discovery.query_clusters());
    let new_classes: BTreeSet<usize> = judged.truth.iter().copied().filter(|&class| class >= 3).collect();
    ([all, old, new], clusters.max().unwrap() + 1, 3 + new_classes.len())
}

#[test]
fn tails_and_outliers_are_in_the_pile_and_outliers_are_not_scored() {
    let data = dataset(9, 12);
    for (tail, outliers) in [(Some((1, 9)), 0), (None, 4), (Some((0, 8)), 3)] {
        let bench = with_pile(&["proto", "shc", "ukc"], tail, outliers);
        let report = run(&bench, &data, &Experiment::Main);
        for (spec, run) in bench.methods.iter().zip(&report.runs) {
            let (mut error, mut relative) = (0.0, 0.0);
            for (number, figures) in run.episodes.iter().enumerate() {
                let (expected, k, classes) = judged(&data, &bench, &spec.to_string(), number as u64);
                let found = [figures.all, figures.old, figures.new];
                let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
                assert!(
                    found.iter().zip(&expected).all(same),
                    "{spec} {number}: {found:?} {expected:?}"
                );
                assert_eq!(figures.k, Some(k));
                error += k.abs_diff(classes) as f64 / 12.0;
                relative += k.abs_diff(classes) as f64 / classes as f64 / 12.0;
            }
            let k = run.k.unwrap();
            assert_eq!(k.truth, 5);
            assert!((k.error - error).abs() < 1e-12, "{spec}: {k:?} {error}");
            assert!(
                (k.relative_error.unwrap() - relative).abs() < 1e-12,
                "{spec}: {k:?} {relative}"
            );
        }
        assert!(report.runs[0].episodes.iter().any(|episode| episode.old > 0.5));
    }
    // Outliers change nothing for a method that looks at every query by itself, and something for one that does not.
    let both = ["proto", "ukc"];
    let plain = run(&bench(&both), &data, &Experiment::Main);
    let disturbed = run(&with_pile(&both, None, 4), &data, &Experiment::Main);
    let accuracies = |report: &BenchReport, at: usize| serde_json::to_string(&report.runs[at].episodes).unwrap();
    assert_eq!(accuracies(&plain, 0), accuracies(&disturbed, 0));
    assert_ne!(accuracies(&plain, 1), accuracies(&disturbed, 1));
}

#[test]
fn reports_name_the_tail_and_the_outliers_where_there_are_some() {
    let data = dataset(9, 12).of_set("cub200");
    let plain = run(&bench(&["shc"]), &data, &Experiment::Main);
    for word in ["tail", "outliers", "relative_error"] {
        assert!(!plain.json().contains(word), "{}", plain.json());
    }
    assert!(plain.markdown().contains("with 4 queries a class from 9 classes"));
    let report = run(&with_pile(&["shc"], Some((1, 9)), 3), &data, &Experiment::Main);
    assert!(
        report
            .markdown()
            .contains("with 1 to 9 queries a class and 3 outliers from 9 classes"),
        "{}",
        report.markdown()
    );
    assert!(report.markdown().contains("Outliers are not scored"));
    // They read back, those without too.
    for report in [&plain, &report] {
        let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(again.json(), report.json());
        assert_eq!(again.markdown(), report.markdown());
    }
    let settings = &report.settings;
    let tail = settings.tail.unwrap();
    assert_eq!((tail.smallest, tail.largest, settings.outliers), (1, 9, 3));
    let one = run(&with_pile(&["shc"], None, 1), &data, &Experiment::Queries(vec![2, 3]));
    assert!(
        one.markdown().contains("With 1 outlier in every episode"),
        "{}",
        one.markdown()
    );
    assert!(one.chart().unwrap().svg.contains(", 1 outlier, "));
    let alphas = run(
        &with_pile(&["ukc"], Some((1, 9)), 0),
        &data,
        &Experiment::Alpha(vec![1.4]),
    );
    assert!(alphas.chart().unwrap().svg.contains("1 to 9 queries a class"));
}

#[test]
fn the_papers_figures_stand_only_beside_its_own_piles() {
    let data = dataset(12, 30).of_set("cub200");
    let bench = |pile| Bench {
        episodes: 1,
        methods: vec!["shc".parse().unwrap()],
        pile,
        ..Bench::default()
    };
    assert!(
        run(&bench(Pile::default()), &data, &Experiment::Main).runs[0]
            .paper
            .is_some()
    );
    let outlier = Pile {
        outliers: 1,
        ..Pile::default()
    };
    let tail = Pile {
        tail: Some(Tail::default()),
        ..Pile::default()
    };
    for pile in [outlier, tail] {
        assert!(run(&bench(pile), &data, &Experiment::Main).runs[0].paper.is_none());
    }
}

#[test]
fn tails_and_outliers_that_cannot_be_say_why() {
    let data = dataset(9, 12);
    let message =
        |bench: &Bench, experiment: &Experiment| bench.run(&data, experiment, &Silent).unwrap_err().to_string();
    let main = |tail, outliers| message(&with_pile(&["proto"], tail, outliers), &Experiment::Main);
    let long = main(Some((2, 11)), 0);
    assert!(
        long.contains("class `class 00` has 12 items") && long.contains("needs 13"),
        "{long}"
    );
    let many = main(None, 5);
    assert!(
        many.contains("5 are asked for") && many.contains("beside the 5 classes of an episode there are 4"),
        "{many}"
    );
    assert!(main(Some((4, 3)), 0).contains("as in 3-4"));
    assert!(main(Some((0, 0)), 2).contains("no query to score"));
    // What has no meaning.
    let tail = with_pile(&["proto"], Some((1, 3)), 0);
    let outliers = with_pile(&["proto"], None, 2);
    let large = Experiment::Large(LargeSettings::default());
    let queries = Experiment::Queries(vec![2]);
    for (bench, experiment) in [
        (&tail, &large),
        (&outliers, &large),
        (&tail, &queries),
        (&outliers, &Experiment::RealTime),
    ] {
        assert!(matches!(bench.fits(experiment), Err(LabError::Pile { .. })));
        assert!(message(bench, experiment).starts_with(experiment.kind().name()));
    }
    for (bench, experiment) in [
        (&tail, &Experiment::RealTime),
        (&outliers, &queries),
        (&tail, &Experiment::Main),
        (&outliers, &Experiment::Main),
        (&bench(&["proto"]), &large),
    ] {
        bench.fits(experiment).unwrap();
        bench.run(&data, experiment, &Silent).unwrap();
    }
}

#[test]
fn larger_tasks_need_classes_for_their_outliers_too() {
    let data = dataset(30, 12);
    let notes = |outliers| {
        run(
            &with_pile(&["proto"], Some((1, 4)), outliers),
            &data,
            &Experiment::Tasks,
        )
        .notes
    };
    assert_eq!(notes(0).len(), 1);
    assert_eq!(notes(1)[0], "10w2s20n is left out: it needs 31 classes of 30");
}

/// Small piles of everything that can be varied.
fn small_piles() -> PileSettings {
    PileSettings {
        items: vec![2, 4, 9],
        tail: Tail {
            smallest: 1,
            largest: 9,
        },
        frames: 3,
        examples: vec![1, 2, 4],
        outliers: 3,
        varied: PileVariable::ALL.to_vec(),
    }
}

fn pile<'a>(report: &'a BenchReport, name: &str, method: &str) -> &'a Run {
    let is_it = |run: &&Run| run.method == method && run.pile.as_ref().is_some_and(|pile| pile.name == name);
    report.runs.iter().find(is_it).unwrap()
}

#[test]
fn piles_are_episodes_that_differ_in_one_thing() {
    let data = dataset(12, 14);
    let methods = ["proto", "shc", "calibrated"];
    let report = run(&bench(&methods), &data, &Experiment::Piles(small_piles()));
    let names: Vec<&str> = report
        .runs
        .iter()
        .map(|run| &*run.pile.as_ref().unwrap().name)
        .collect();
    let expected = [
        "5 × 2",
        "5 × 4",
        "5 × 9",
        "5 × 1–9",
        "5 × 4 in bursts of 3",
        "5 × 4, 1 example",
        "5 × 4, 4 examples",
        "5 × 4 and 3 outliers",
    ];
    assert_eq!(names, expected.map(|name| [name; 3]).concat());
    for method in &methods {
        // The shape of the bench is that of its usual episodes.
        let main = run(&bench(&[method]), &data, &Experiment::Main);
        let usual = pile(&report, "5 × 4", method);
        let figures = |run: &Run| serde_json::to_string(&run.episodes).unwrap();
        assert_eq!(figures(usual), figures(&main.runs[0]), "{method}");
        let tail = Bench {
            pile: Pile {
                tail: Some(small_piles().tail),
                outliers: 0,
            },
            ..bench(&[method])
        };
        let tail = run(&tail, &data, &Experiment::Main);
        assert_eq!(
            figures(pile(&report, "5 × 1–9", method)),
            figures(&tail.runs[0]),
            "{method}"
        );
    }
    let said = report.markdown();
    assert!(
        said.contains("12 draws a pile of 5 classes, 3 of them known from 2 examples each, from 12 classes, seed 5")
    );
    assert!(said.contains("| 5 × 4 in bursts of 3 "), "{said}");
}

#[test]
fn only_methods_with_probabilities_are_judged_by_them() {
    let data = dataset(12, 14);
    let report = run(&bench(&["shc", "calibrated"]), &data, &Experiment::Piles(small_piles()));
    for run in &report.runs {
        let Some(sure) = run.sureness else {
            assert_eq!(run.method, "shc");
            continue;
        };
        assert_eq!(run.method, "calibrated");
        assert!((0.0..=1.0).contains(&sure.ece), "{sure:?}");
        let with_outliers = run.pile.as_ref().unwrap().outliers > 0;
        assert_eq!(sure.outliers_found.mean.is_nan(), !with_outliers, "{sure:?}");
        assert_eq!(run.unsure.is_some(), with_outliers);
        // A tenth of the items that is sorted by anything holds no more than all errors.
        assert!(sure.errors_found.mean.is_nan() || sure.errors_found.mean <= 1.0);
    }
    // Elsewhere nobody asked.
    let main = run(&bench(&["calibrated"]), &data, &Experiment::Main);
    assert!(main.runs[0].sureness.is_none() && main.runs[0].pile.is_none());
}

#[test]
fn frames_of_a_burst_stay_together() {
    // Far apart, so that every photograph is put right and with it all of its frames.
    let (rows, labels) = rows(&[14; 8], 0.05);
    let data = Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    let bursts = PileSettings {
        varied: vec![PileVariable::Items, PileVariable::Bursts],
        items: vec![6],
        ..small_piles()
    };
    let report = run(&bench(&["proto"]), &data, &Experiment::Piles(bursts));
    let [plain, bursts] = &report.runs[..] else {
        panic!("{}", report.markdown())
    };
    assert_eq!(plain.old.mean, 1.0);
    assert_eq!(bursts.old.mean, 1.0);
    assert_eq!(bursts.pile.as_ref().unwrap().frames, 3);
}

#[test]
fn piles_that_the_data_is_too_small_for_are_left_out() {
    let data = dataset(6, 8);
    let report = run(&bench(&["proto"]), &data, &Experiment::Piles(small_piles()));
    let names: Vec<&str> = report
        .runs
        .iter()
        .map(|run| &*run.pile.as_ref().unwrap().name)
        .collect();
    let expected = [
        "5 × 2",
        "5 × 4",
        "5 × 4 in bursts of 3",
        "5 × 4, 1 example",
        "5 × 4, 4 examples",
    ];
    assert_eq!(names, expected);
    let notes = report.notes.join("\n");
    assert!(
        notes.contains("5 × 9 is left out: it needs 5 classes of at least 11 items, and there are 0"),
        "{notes}"
    );
    assert!(
        notes.contains("5 × 4 and 3 outliers is left out: it needs 8 classes of at least 6 items, and there are 6"),
        "{notes}"
    );
    let nothing = bench(&["proto"]).run(&dataset(4, 8), &Experiment::Piles(small_piles()), &Silent);
    assert!(matches!(nothing, Err(LabError::NothingToRun { .. })), "{nothing:?}");
    let with_pile = Bench {
        pile: Pile {
            outliers: 2,
            ..Pile::default()
        },
        ..bench(&["proto"])
    };
    let refused = with_pile.run(&data, &Experiment::Piles(small_piles()), &Silent);
    assert!(matches!(refused, Err(LabError::Pile { .. })), "{refused:?}");
}

#[test]
fn a_half_of_the_classes_is_drawn_from_and_the_other_can_be_learnt_from() {
    let whole = dataset(11, 8);
    let names = |pool: &genus_core::episode::Pool| pool.classes().to_vec();
    for half in [Half::First, Half::Second] {
        let alone = whole.clone().half(half, false);
        assert_eq!(names(alone.pool()), names(&whole.pool().half(half)));
        assert!(alone.base().classes().is_empty());
        let with_base = whole.clone().half(half, true);
        assert_eq!(names(with_base.pool()), names(alone.pool()));
        assert_eq!(names(with_base.base()), names(&whole.pool().half(half.other())));
        let one = PileSettings {
            varied: vec![PileVariable::Items],
            ..small_piles()
        };
        let report = run(
            &bench(&["proto"]),
            &alone,
            &Experiment::Piles(PileSettings { items: vec![4], ..one }),
        );
        assert_eq!(report.settings.half.as_deref(), Some(&*half.to_string()));
        assert!(report.markdown().contains(&format!("classes (the {half} half)")));
    }
}

#[test]
fn a_stream_ends_near_the_pile_at_once_where_classes_are_far_apart() {
    let (rows, labels) = rows(&[20; 8], 0.2);
    let data = Dataset::new("made up", Features::from_rows(rows).unwrap(), &labels, None).unwrap();
    let bench = Bench {
        shape: Shape {
            query: 12,
            ..bench(&[]).shape
        },
        episodes: 2,
        ..bench(&["calibrated", "proto"])
    };
    let settings = StreamSettings { orders: 3, looks: 4 };
    let report = run(&bench, &data, &Experiment::Stream(settings));
    let of = |method: &str| -> Vec<&Run> { report.runs.iter().filter(|run| run.method == method).collect() };
    let (stream, at_once) = (of("stream"), of("calibrated"));
    let seen: Vec<usize> = stream.iter().map(|run| run.stream.unwrap().seen).collect();
    assert_eq!(seen, [15, 30, 45, 60]);
    for (stream, at_once) in stream.iter().zip(&at_once) {
        // Three orders of two piles.
        assert_eq!(stream.episodes.len(), 6);
        let waiting = stream.stream.unwrap().waiting.unwrap().mean;
        assert!((0.0..=1.0).contains(&waiting), "{waiting}");
        assert!(at_once.stream.unwrap().waiting.is_none());
        // Where no class is missing all five are there.
        assert!(stream.stream.unwrap().classes <= 5.0);
    }
    let (stream, at_once) = (stream[3], at_once[3]);
    assert_eq!(stream.k.unwrap().truth, 5);
    assert!(stream.all.mean > at_once.all.mean - 0.1, "{}", report.markdown());
    // The whole pile is the pile, in whatever order it comes, to a method that looks at items one by one.
    let main = run(
        &Bench {
            methods: vec!["proto".parse().unwrap()],
            ..bench.clone()
        },
        &data,
        &Experiment::Main,
    );
    let orders: Vec<f64> = of("proto")[3].episodes.iter().map(|episode| episode.all).collect();
    let piles: Vec<f64> = main.runs[0]
        .episodes
        .iter()
        .flat_map(|episode| [episode.all; 3])
        .collect();
    assert_eq!(orders, piles);
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.starts_with("in the end the stream is"))
    );
}

#[test]
fn the_order_of_a_stream_depends_on_the_seed_and_on_nothing_else() {
    let data = dataset(8, 14);
    let settings = StreamSettings { orders: 4, looks: 2 };
    let streams = |seed| {
        let bench = Bench {
            seed,
            episodes: 1,
            ..bench(&["proto"])
        };
        let report = run(&bench, &data, &Experiment::Stream(settings));
        let figures: Vec<String> = report.runs.iter().map(figures).collect();
        (
            figures,
            report.runs[1]
                .episodes
                .iter()
                .map(|episode| episode.all)
                .collect::<Vec<_>>(),
        )
    };
    let (first, halves) = streams(1);
    assert_eq!(first, streams(1).0);
    assert_ne!(first, streams(2).0);
    // Half of the items is not the same half in every order.
    assert!(halves.iter().any(|all| *all != halves[0]), "{halves:?}");
    let outliers = Bench {
        pile: Pile {
            outliers: 1,
            ..Pile::default()
        },
        ..bench(&["proto"])
    };
    let refused = outliers.run(&data, &Experiment::Stream(settings), &Silent);
    assert!(matches!(refused, Err(LabError::Pile { .. })), "{refused:?}");
}

#[test]
fn several_seeds_are_one_report_with_their_interval() {
    let data = dataset(8, 12);
    let of = |seed: u64| {
        let bench = Bench {
            seed,
            ..bench(&["shc", "proto"])
        };
        run(&bench, &data, &Experiment::Main)
    };
    let single = BenchReport::over_seeds(vec![of(5)]).unwrap();
    assert_eq!(single.json(), of(5).json());
    assert!(BenchReport::over_seeds(Vec::new()).is_none());
    let reports = [5, 6, 7].map(of);
    let over = BenchReport::over_seeds(reports.to_vec()).unwrap();
    assert_eq!(over.settings.seeds, [5, 6, 7]);
    let means = reports.each_ref().map(|report| report.runs[0].all.mean);
    let mean = means.iter().sum::<f64>() / 3.0;
    assert!((over.runs[0].all.mean - mean).abs() < 1e-12);
    // Two degrees of freedom: Student's quantile is 4.303.
    let deviation = (means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(deviation > 0.0);
    let half = 4.303 * deviation / 3f64.sqrt();
    assert!((over.runs[0].all.ci95 - half).abs() < 1e-9 * half.max(1.0));
    assert_eq!(over.runs[0].episodes.len(), 3 * 12);
    for text in [over.markdown(), over.latex(), over.csv()] {
        assert!(text.contains("shc") && text.contains("proto"), "{text}");
    }
    assert!(over.markdown().contains("seeds 5, 6, 7"));
}
