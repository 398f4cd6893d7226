//! Methods by name: defaults, and errors that say what is wrong.

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;

use common::{Cloud, Recipe, Rng};
use genus_core::methods::{
    Attach, BoostBlock, Calibrated, Gcd, KeyOrder, Linkage, METHODS, Method, MethodError, NumberOfCategories, RankStat,
    ReferenceSize, Remainder, Shc, SmallKnown, StopAt, Ukc,
};
use genus_core::{
    CalibrationSettings, Centre, Discover, DiscoverError, Discovery, Eagerness, Features, Knowledge, MergeTree,
    Support, Task,
};

/// Tasks on some of which every parameter makes a difference.
fn tasks() -> Vec<Task> {
    let recipe = |seed| Recipe {
        cloud: Cloud::Blobs(if seed % 2 == 0 { 0.5 } else { 1.2 }),
        way: 5,
        shot: 3,
        new: 5,
        queries: 60,
        dim: 8,
        seed,
    };
    (0..10).map(|seed| recipe(seed).task()).collect()
}

fn answer(spec: &str, task: &Task) -> Discovery {
    Method::parse(spec, 3)
        .unwrap_or_else(|error| panic!("{error}"))
        .discover(task)
        .unwrap()
}

#[test]
fn every_documented_default_is_the_default() {
    let task = &tasks()[0];
    for entry in METHODS {
        let bare = answer(entry.name, task);
        let mut all = entry.name.to_owned();
        for parameter in entry.parameters {
            let spec = format!("{}:{}={}", entry.name, parameter.name, parameter.default);
            assert_eq!(answer(&spec, task), bare, "{spec}");
            let (set, unset) = (Method::parse(&spec, 3).unwrap(), Method::parse(entry.name, 3).unwrap());
            assert_eq!(set.rule(), unset.rule(), "{spec}");
            all.push_str(&format!(":{}={}", parameter.name, parameter.default));
            assert!(!parameter.help.is_empty());
        }
        assert_eq!(answer(&all, task), bare, "{all}");
        assert_eq!(Method::parse(&all, 3).unwrap().spec(), all);
        assert!(!entry.summary.is_empty());
    }
    let names: Vec<&str> = METHODS.iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["proto", "rankstat", "gcd", "shc", "ukc", "calibrated"]);
}

#[test]
fn every_parameter_is_read() {
    let tasks = tasks();
    // Another value for every parameter: the answer of the text is that of the struct, and not that of the default.
    let checked = RefCell::new(BTreeSet::new());
    let check = |spec: &str, base: &str, method: &dyn Discover| {
        let mut matters = false;
        for task in &tasks {
            let answer = answer(spec, task);
            assert_eq!(answer, method.discover(task).unwrap(), "{spec}");
            matters |= answer != Method::parse(base, 3).unwrap().discover(task).unwrap();
        }
        assert!(matters, "{spec} is {base}");
        let (name, parameter) = (base.split(':').next().unwrap(), spec.rsplit(':').next().unwrap());
        let parameter = parameter.split('=').next().unwrap();
        checked.borrow_mut().insert(format!("{name}:{parameter}"));
    };
    let shc = Shc::default;
    check("shc:t=0", "shc", &Shc { min_size: 0, ..shc() });
    check(
        "shc:stop=after",
        "shc",
        &Shc {
            stop: StopAt::After,
            ..shc()
        },
    );
    check(
        "shc:t=8:small-known=dissolve",
        "shc:t=8",
        &Shc {
            min_size: 8,
            small_known: SmallKnown::Dissolve,
            ..shc()
        },
    );
    check(
        "shc:t=8:remainder=sample",
        "shc:t=8",
        &Shc {
            min_size: 8,
            remainder: Remainder::Sample,
            ..shc()
        },
    );
    check(
        "shc:t=8:attach=cosine",
        "shc:t=8",
        &Shc {
            min_size: 8,
            attach: Attach::Cosine,
            ..shc()
        },
    );
    check("shc:boost=9", "shc", &Shc { boost: 9.0, ..shc() });
    let block = Shc {
        boost: 9.0,
        boost_block: BoostBlock::Shot,
        ..shc()
    };
    check("shc:boost=9:boost-block=n-shot", "shc:boost=9", &block);
    check(
        "shc:min-similarity=0.9",
        "shc",
        &Shc {
            min_similarity: Some(0.9),
            ..shc()
        },
    );
    check(
        "shc:linkage=sequential",
        "shc",
        &Shc {
            linkage: Linkage::Sequential,
            ..shc()
        },
    );

    let ukc = || Ukc {
        seed: 3,
        ..Ukc::default()
    };
    check("ukc:alpha=1.1", "ukc", &Ukc { alpha: 1.1, ..ukc() });
    check(
        "ukc:alpha=2:first-alpha=1.1",
        "ukc:alpha=2",
        &Ukc {
            alpha: 2.0,
            first_alpha: Some(1.1),
            ..ukc()
        },
    );
    check(
        "ukc:alpha=1:split-at-limit=false",
        "ukc:alpha=1",
        &Ukc {
            alpha: 1.0,
            split_at_limit: false,
            ..ukc()
        },
    );
    check(
        "ukc:alpha=1:stop-below-limit=false",
        "ukc:alpha=1",
        &Ukc {
            alpha: 1.0,
            stop_below_limit: false,
            ..ukc()
        },
    );
    check(
        "ukc:m=mean-all",
        "ukc",
        &Ukc {
            reference: ReferenceSize::MeanAll,
            ..ukc()
        },
    );
    check(
        "ukc:m=mean-query",
        "ukc",
        &Ukc {
            reference: ReferenceSize::MeanQuery,
            ..ukc()
        },
    );
    check("ukc:restarts=1", "ukc", &Ukc { restarts: 1, ..ukc() });

    let gcd = || Gcd {
        seed: 3,
        ..Gcd::default()
    };
    for (text, categories) in [
        ("smallest", NumberOfCategories::Smallest),
        ("largest", NumberOfCategories::Largest),
        ("dtc", NumberOfCategories::Dtc),
        ("10", NumberOfCategories::Fixed(10)),
    ] {
        check(&format!("gcd:k={text}"), "gcd", &Gcd { categories, ..gcd() });
    }
    check(
        "gcd:k=smallest:k-restarts=1",
        "gcd:k=smallest",
        &Gcd {
            categories: NumberOfCategories::Smallest,
            estimate_restarts: 1,
            ..gcd()
        },
    );
    check(
        "gcd:k-max=7",
        "gcd",
        &Gcd {
            max_categories: Some(7),
            ..gcd()
        },
    );
    check(
        "gcd:k=10:restarts=1",
        "gcd:k=10",
        &Gcd {
            categories: NumberOfCategories::Fixed(10),
            restarts: 1,
            ..gcd()
        },
    );
    check(
        "gcd:k=10:iterations=1",
        "gcd:k=10",
        &Gcd {
            categories: NumberOfCategories::Fixed(10),
            iterations: 1,
            ..gcd()
        },
    );
    check(
        "gcd:k=10:tolerance=9",
        "gcd:k=10",
        &Gcd {
            categories: NumberOfCategories::Fixed(10),
            tolerance: 9.0,
            ..gcd()
        },
    );

    check(
        "rankstat:top=3",
        "rankstat",
        &RankStat {
            top: 3,
            ..RankStat::default()
        },
    );
    check(
        "rankstat:order=unordered",
        "rankstat",
        &RankStat {
            order: KeyOrder::Unordered,
            ..RankStat::default()
        },
    );

    check(
        "calibrated:source=prior",
        "calibrated",
        &Calibrated {
            knowledge: Knowledge::Prior,
            ..Calibrated::default()
        },
    );
    check(
        "calibrated:refine=0",
        "calibrated",
        &Calibrated {
            refine: 0,
            ..Calibrated::default()
        },
    );
    // The others are for the one who calibrates it.
    for (text, settings) in [
        (
            "centre=task",
            CalibrationSettings {
                centre: Centre::Task,
                ..CalibrationSettings::default()
            },
        ),
        (
            "directions=3",
            CalibrationSettings {
                directions: 3,
                ..CalibrationSettings::default()
            },
        ),
        (
            "tree=average",
            CalibrationSettings {
                tree: MergeTree::Average,
                ..CalibrationSettings::default()
            },
        ),
        (
            "eagerness=learnt",
            CalibrationSettings {
                eagerness: Eagerness::Learnt,
                ..CalibrationSettings::default()
            },
        ),
    ] {
        let method = Method::parse(&format!("calibrated:{text}"), 0).unwrap();
        assert_eq!(method.calibration_settings(), Some(settings));
        let name = text.split('=').next().unwrap();
        checked.borrow_mut().insert(format!("calibrated:{name}"));
    }
    for other in ["calibrated:source=examples", "calibrated:source=prior", "shc"] {
        assert_eq!(Method::parse(other, 0).unwrap().calibration_settings(), None);
    }

    let all = METHODS
        .iter()
        .flat_map(|entry| entry.parameters.iter().map(|p| format!("{}:{}", entry.name, p.name)));
    assert_eq!(*checked.borrow(), all.collect());
}

#[test]
fn the_defaults_are_the_settings_of_the_paper() {
    assert_eq!(
        Shc::default(),
        Shc {
            min_size: 2,
            stop: StopAt::Before,
            small_known: SmallKnown::Keep,
            remainder: Remainder::Cluster,
            attach: Attach::Average,
            boost: 1.0,
            boost_block: BoostBlock::Way,
            linkage: Linkage::Fast,
            min_similarity: None,
        }
    );
    assert_eq!(
        Ukc::default(),
        Ukc {
            alpha: 1.4,
            first_alpha: None,
            reference: ReferenceSize::PerSupport,
            split_at_limit: true,
            stop_below_limit: true,
            restarts: 20,
            seed: 0,
        }
    );
    assert_eq!(
        RankStat::default(),
        RankStat {
            top: 2,
            order: KeyOrder::Ordered
        }
    );
    let gcd = Gcd::default();
    assert_eq!(
        (gcd.categories, gcd.max_categories, gcd.estimate_restarts),
        (NumberOfCategories::Brent, None, 10)
    );
    assert_eq!((gcd.restarts, gcd.iterations, gcd.tolerance), (10, 10, 1e-4));
}

#[test]
fn the_seed_is_the_callers() {
    let tasks = tasks();
    let task = &tasks[0];
    let differs = |spec: &str| {
        let first = Method::parse(spec, 0).unwrap().discover(task).unwrap();
        (1..10).any(|seed| Method::parse(spec, seed).unwrap().discover(task).unwrap() != first)
    };
    assert!(differs("ukc:restarts=1"));
    assert!(differs("gcd:k=10:restarts=1"));
    assert!(!differs("shc") && !differs("proto") && !differs("rankstat"));
}

#[test]
fn unknown_names_are_named() {
    for name in ["", "SHC", "shc ", "kmeans"] {
        let error = Method::parse(name, 0).unwrap_err();
        assert_eq!(
            error,
            MethodError::Unknown {
                name: name.to_owned(),
                known: METHODS.iter().map(|entry| entry.name).collect()
            }
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!("`{name}`")) && text.contains("proto, rankstat, gcd, shc, ukc"),
            "{text}"
        );
    }
}

#[test]
fn wrong_parameters_are_named() {
    for (spec, method, parameter, value, hint) in [
        ("shc:alpha=2", "shc", "alpha", "2", "its parameters are t, stop"),
        ("proto:t=1", "proto", "t", "1", "it has no parameters"),
        ("shc:", "shc", "", "", "its parameters are"),
        ("shc:t=1:stop=after:t=2", "shc", "t", "2", "given twice"),
        ("shc:t=-1", "shc", "t", "-1", "invalid digit"),
        ("shc:t", "shc", "t", "", "empty string"),
        ("shc:t=2=3", "shc", "t", "2=3", "invalid digit"),
        ("shc:stop=never", "shc", "stop", "never", "one of before, after"),
        ("shc:boost=0.5", "shc", "boost", "0.5", "at least 1"),
        ("shc:boost=inf", "shc", "boost", "inf", "at least 1"),
        ("shc:min-similarity=2", "shc", "min-similarity", "2", "from -1 to 1"),
        (
            "shc:min-similarity=high",
            "shc",
            "min-similarity",
            "high",
            "invalid float",
        ),
        ("ukc:alpha=0.9", "ukc", "alpha", "0.9", "at least 1"),
        ("ukc:alpha=nan", "ukc", "alpha", "NaN", "at least 1"),
        ("ukc:first-alpha=0", "ukc", "first-alpha", "0", "at least 1"),
        ("ukc:m=median", "ukc", "m", "median", "per-support-float"),
        ("ukc:restarts=0", "ukc", "restarts", "0", "at least 1"),
        ("ukc:split-at-limit=yes", "ukc", "split-at-limit", "yes", "true"),
        (
            "gcd:k=many",
            "gcd",
            "k",
            "many",
            "brent, smallest, largest, dtc, or a number",
        ),
        ("gcd:k-max=x", "gcd", "k-max", "x", "invalid digit"),
        ("gcd:iterations=0", "gcd", "iterations", "0", "at least 1"),
        ("gcd:tolerance=-1", "gcd", "tolerance", "-1", "at least 0"),
        ("rankstat:top=1", "rankstat", "top", "1", "at least 2"),
        ("rankstat:order=none", "rankstat", "order", "none", "ordered, unordered"),
    ] {
        let Err(MethodError::Parameter(error)) = Method::parse(spec, 0) else {
            panic!("{spec} is accepted or wrongly refused");
        };
        assert_eq!(
            (error.method, &*error.parameter, &*error.value),
            (method, parameter, value),
            "{spec}"
        );
        assert!(error.to_string().contains(hint), "{spec}: {error}");
    }
}

#[test]
fn a_method_shows_the_text_it_was_built_from() {
    let method = Method::parse("ukc:alpha=1.3", 0).unwrap();
    assert_eq!(method.spec(), "ukc:alpha=1.3");
    assert_eq!(format!("{method:?}"), "Method(\"ukc:alpha=1.3\")");
}

#[test]
fn without_examples_everything_is_new_or_the_method_says_what_it_needs() {
    let mut rng = Rng::new(77);
    let centres: Vec<Vec<f32>> = (0..5).map(|_| (0..24).map(|_| rng.normal() as f32).collect()).collect();
    let rows = (0..100).map(|at| -> Vec<f32> {
        let centre = &centres[at % 5];
        centre.iter().map(|v| v + 0.3 * rng.normal() as f32).collect()
    });
    let task = Task::new(&Support::none(24), Features::from_rows(rows).unwrap()).unwrap();
    assert_eq!((task.known(), task.queries(), task.shots()), (0, 100, 0));
    let found = Method::parse("calibrated", 0).unwrap().discover(&task).unwrap();
    assert_eq!((found.known(), found.novel()), (0, 5));
    for (query, category) in found.categories().iter().enumerate() {
        assert_eq!(*category, found.categories()[query % 5]);
    }
    for (method, least) in [
        ("proto", 1),
        ("rankstat", 2),
        ("rankstat:top=3", 3),
        ("gcd", 1),
        ("gcd:k=5", 1),
        ("shc", 2),
        ("shc:min-similarity=0.5", 1),
        ("ukc", 2),
    ] {
        let outcome = Method::parse(method, 0).unwrap().discover(&task);
        assert!(
            matches!(outcome, Err(DiscoverError::TooFewClasses { needed, found: 0, .. }) if needed == least),
            "{method}: {outcome:?}"
        );
    }
}
