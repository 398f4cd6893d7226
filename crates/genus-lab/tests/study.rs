//! Studies: many experiments in one folder, interrupted and gone on with; baselines and drawings of a bench.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use genus_core::Features;
use genus_core::episode::{Pile, Shape, ShortClasses, Tail};
use genus_core::projection::Projection;
use genus_core::rng::Rng;
use genus_lab::{Bench, BenchReport, Dataset, Experiment, LabError, Length, Progress, Silent, Study};

/// Classes around random directions, half of them novel.
fn dataset(classes: usize, each: usize) -> Dataset {
    let mut rng = Rng::new(3, &[1]);
    let mut number = move || 2.0 * rng.unit() as f32 - 1.0;
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for class in 0..classes {
        let centre: Vec<f32> = (0..12).map(|_| number()).collect();
        for _ in 0..each {
            rows.push(centre.iter().map(|v| v + 0.5 * number()).collect::<Vec<_>>());
            labels.push(Some(format!("class {class:02}")));
        }
    }
    let novel: Vec<String> = (0..classes / 2).map(|class| format!("class {class:02}")).collect();
    let features = Features::from_rows(rows).unwrap();
    Dataset::new("made up", features, &labels, Some(&novel)).unwrap()
}

fn bench() -> Bench {
    Bench {
        shape: Shape {
            way: 3,
            shot: 2,
            new: 2,
            query: 4,
        },
        episodes: 5,
        seed: 1,
        short_classes: ShortClasses::Skip,
        ..Bench::default()
    }
}

const QUICK: &str = "ocd:epochs=2:hidden=8:batch=16";

/// The same with baselines that train for a moment.
fn with_baselines() -> Bench {
    Bench {
        methods: genus_lab::BenchMethod::list(["proto", QUICK, "simgcd:epochs=5", "shc"]).unwrap(),
        ..bench()
    }
}

/// All files below a folder and their content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Runs a whole study; how many reports it made and how many it found.
fn study(folder: &Path, data: &Dataset) -> Result<(usize, usize), LabError> {
    let progress = &Silent;
    let mut study = Study::new(folder, with_baselines()).unwrap();
    study.skip("ImageNet-100", "it is not there");
    study.data_set(data, "made-up", progress)?;
    let encoders = ["plain", "other: one"].map(|name| Experiment::Backbones { encoder: name.into() });
    let parts = encoders.iter().map(|experiment| ("made-up", data, experiment));
    study.together("Encoders", "backbones", parts, progress)?;
    study.finish()?;
    // All shapes of `tasks` need more classes than there are.
    let skipped: Vec<&str> = study.skipped().iter().map(|(what, _)| &**what).collect();
    assert_eq!(skipped, ["ImageNet-100", "made-up tasks"]);
    Ok(study.counts())
}

#[test]
fn an_interrupted_study_ends_like_one_that_was_not() {
    let data = dataset(20, 10).of_set("cub200");
    let whole = tempfile::tempdir().unwrap();
    let (made, found) = study(whole.path(), &data).unwrap();
    assert_eq!((made, found), (9, 0));
    let complete = files(whole.path());
    for name in [
        "report.md",
        "made-up/main-5-shot.json",
        "made-up/backbones-other--one.json",
        "figures/made-up-queries.svg",
        "figures/made-up-map.svg",
        "figures/made-up-confusion-shc.svg",
    ] {
        assert!(complete.contains_key(name), "{name} of {:?}", complete.keys());
    }
    let report = String::from_utf8(complete["report.md"].clone()).unwrap();
    for text in [
        "ImageNet-100: it is not there",
        "made-up tasks: made up",
        "![Accuracy and α](figures/made-up-alpha.svg)",
        "| other: one ",
    ] {
        assert!(report.contains(text), "{text} is not in\n{report}");
    }

    // The same again finds everything, and changes nothing.
    assert_eq!(study(whole.path(), &data).unwrap(), (0, 9));
    assert_eq!(files(whole.path()), complete);

    // One that ended in the middle: some reports are not there, one is damaged, one is of other settings.
    let broken = tempfile::tempdir().unwrap();
    fs::create_dir_all(broken.path().join("made-up")).unwrap();
    let put = |name: &str, content: &[u8]| fs::write(broken.path().join("made-up").join(name), content).unwrap();
    put("main-5-shot.json", &complete["made-up/main-5-shot.json"]);
    put("main-1-shot.json", &complete["made-up/main-1-shot.json"][..700]);
    put("realtime.json", &complete["made-up/main-5-shot.json"]);
    put("alpha.json", b"");
    assert_eq!(study(broken.path(), &data).unwrap(), (8, 1));
    assert!(files(broken.path()) == complete, "the files differ");

    // Other features are another study.
    let other = dataset(20, 11).of_set("cub200");
    assert_eq!(study(broken.path(), &other).unwrap(), (9, 0));
}

#[test]
fn a_study_does_not_depend_on_threads() {
    let data = dataset(14, 9);
    let run = |threads: usize| {
        let folder = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| study(folder.path(), &data)).unwrap();
        files(folder.path())
    };
    assert!(run(1) == run(3), "the files differ");
}

#[test]
fn reports_read_back_are_the_same() {
    let report = with_baselines()
        .run(&dataset(14, 8), &Experiment::RealTime, &Silent)
        .unwrap();
    let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(again.json(), report.json());
    assert_eq!(again.markdown(), report.markdown());
    // ProtoNet has no K in real time, and with no new class there is no New.
    let only_old = Bench {
        shape: Shape {
            new: 0,
            ..bench().shape
        },
        methods: vec!["shc".parse().unwrap()],
        ..bench()
    };
    let report = only_old.run(&dataset(14, 8), &Experiment::Main, &Silent).unwrap();
    let again: BenchReport = serde_json::from_str(&report.json()).unwrap();
    assert!(again.runs[0].new.mean.is_nan());
    assert_eq!(again.json(), report.json());
}

/// Remembers what began.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Progress for Heard {
    fn start(&self, stage: &str, _length: Length) {
        self.0.lock().unwrap().push(stage.to_owned());
    }

    fn advance(&self, _steps: u64) {}
}

#[test]
fn a_head_is_trained_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = dataset(14, 8);
    let bench = Bench {
        methods: vec![QUICK.parse().unwrap()],
        heads: Some(folder.path().join("heads")),
        ..bench()
    };
    let run = |bench: &Bench| {
        let heard = Heard::default();
        let report = bench.run(&data, &Experiment::Main, &heard).unwrap();
        (report.json(), heard.0.into_inner().unwrap())
    };
    let (first, heard) = run(&bench);
    assert_eq!(heard, ["training ocd", "episodes"]);
    let (again, heard) = run(&bench);
    assert_eq!((again, &heard[..]), (first.clone(), &["episodes".to_owned()][..]));
    // What is damaged is made anew.
    for entry in fs::read_dir(folder.path().join("heads")).unwrap() {
        fs::write(entry.unwrap().path(), b"no tensors").unwrap();
    }
    let (again, heard) = run(&bench);
    assert_eq!((again, heard.len()), (first.clone(), 2));
    // Without a place to keep it, and with another seed.
    let without = Bench {
        heads: None,
        ..bench.clone()
    };
    assert_eq!(run(&without).0, first);
    let other = Bench { seed: 2, ..bench };
    assert_eq!(run(&other).1.len(), 2);
}

#[test]
fn without_base_classes_nothing_is_learnt() {
    let (features, labels): (Vec<_>, Vec<_>) = (0..40)
        .map(|at| {
            let mut row = [0.1f32; 8];
            row[at % 8] = 1.0 + 0.01 * at as f32;
            (row, Some(format!("{}", at % 8)))
        })
        .unzip();
    let data = Dataset::new("all novel", Features::from_rows(features).unwrap(), &labels, None).unwrap();
    let usual = Bench {
        shape: Shape {
            query: 3,
            ..bench().shape
        },
        ..bench()
    };
    let report = usual.run(&data, &Experiment::Main, &Silent).unwrap();
    let names: Vec<&str> = report.runs.iter().map(|run| &*run.method).collect();
    assert_eq!(
        names,
        ["proto", "rankstat", "simgcd", "gcd", "shc", "ukc", "calibrated"]
    );
    assert!(report.notes[0].starts_with("ocd is left out"), "{:?}", report.notes);
    let asked = Bench {
        methods: vec!["ocd".parse().unwrap()],
        ..usual
    };
    let error = asked.run(&data, &Experiment::Main, &Silent).unwrap_err();
    assert!(matches!(error, LabError::NoBaseClasses { .. }), "{error}");
}

#[test]
fn views_must_be_of_the_same_items() {
    let data = dataset(10, 8);
    let view = data.features().select(&[1, 0]);
    assert!(data.clone().with_views(vec![view]).is_err());
    let view = Features::from_rows((0..80).map(|at| [at as f32 + 1.0; 3])).unwrap();
    assert!(data.clone().with_views(vec![view]).is_err());
    // The same rows twice are what no views are.
    let twice = vec![data.features().clone(), data.features().clone()];
    let viewed = data.clone().with_views(twice).unwrap();
    let run = |data: &Dataset| {
        let bench = Bench {
            methods: vec!["simgcd:epochs=5".parse().unwrap()],
            ..bench()
        };
        bench.run(data, &Experiment::Main, &Silent).unwrap().runs[0].all.mean
    };
    assert!((run(&data) - run(&viewed)).abs() < 0.05);
    assert_ne!(data.fingerprint(), viewed.fingerprint());
}

#[test]
fn maps_show_the_truth_and_every_method() {
    let data = dataset(14, 8);
    let figures = bench().plot(&data, Projection::Pca, &Silent).unwrap();
    let names: Vec<&str> = figures.iter().map(|figure| &*figure.name).collect();
    assert_eq!(names, ["map", "confusion-ukc", "confusion-shc", "confusion-rankstat"]);
    for figure in &figures {
        assert!(figure.svg.starts_with("<svg "), "{}", figure.name);
    }
    assert!(figures[0].svg.contains("Episode 5"));
    assert!(figures[1].svg.contains("class 0"));
    let mut much = bench();
    much.shape.query = 100;
    assert!(matches!(
        much.plot(&data, Projection::Pca, &Silent),
        Err(LabError::Episode { .. })
    ));
}

#[test]
fn tails_and_outliers_are_drawn_and_kept_apart_in_a_folder() {
    let data = dataset(20, 12);
    let pile = Pile {
        tail: Some(Tail {
            smallest: 1,
            largest: 6,
        }),
        outliers: 2,
    };
    let with = Bench {
        methods: vec!["shc".parse().unwrap()],
        pile,
        ..bench()
    };
    let without = Bench {
        pile: Pile::default(),
        ..with.clone()
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |bench: &Bench| {
        let mut study = Study::new(folder.path(), bench.clone()).unwrap();
        study.data_set(&data, "made-up", &Silent).unwrap();
        (study.counts(), study.skipped().to_vec())
    };
    let (first, _) = run(&without);
    assert_eq!(first.1, 0);
    let (counts, skipped) = run(&with);
    assert_eq!(counts.1, 0, "a report of another pile is not taken");
    let what: Vec<&str> = skipped.iter().map(|(what, _)| &**what).collect();
    assert_eq!(
        what,
        ["made-up realtime", "made-up large", "made-up queries", "made-up tasks"]
    );

    let figures = with.plot(&data, Projection::Pca, &Silent).unwrap();
    assert!(figures[0].svg.contains("1 to 6 queries a class and 2 outliers"));
    assert!(figures[0].svg.contains("3 known, 2 new classes, 2 outliers"));
}
