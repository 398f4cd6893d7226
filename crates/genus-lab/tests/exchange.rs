//! Episodes that go out to a file, and predictions that come back.

use genus_core::episode::Shape;
use genus_core::rng::Rng;
use genus_core::{Discover, Features, Support, Task, methods::Ukc};
use genus_lab::{
    Bench, BenchMethod, Dataset, EpisodeSet, Experiment, LabError, PileSettings, PredictedLabel, Prediction, Silent,
    read_predictions,
};

fn data() -> Dataset {
    let mut rng = Rng::new(1, &[]);
    let rows = (0..200).map(|at| {
        let mut row: Vec<f32> = (0..16).map(|_| rng.unit() as f32 - 0.5).collect();
        row[at % 10] += 1.2;
        row
    });
    let labels: Vec<_> = (0..200).map(|at| Some(format!("class {}", at % 10))).collect();
    Dataset::new("made", Features::from_rows(rows).unwrap(), &labels, None).unwrap()
}

fn bench() -> Bench {
    Bench {
        shape: Shape {
            way: 3,
            shot: 2,
            new: 3,
            query: 5,
        },
        episodes: 6,
        seed: 5,
        methods: BenchMethod::list(["ukc"]).unwrap(),
        ..Bench::default()
    }
}

/// What the method says, as somebody outside would find it out.
fn predictions(data: &Dataset, set: &EpisodeSet) -> Vec<Prediction> {
    let predicted = set.episodes().iter().map(|episode| {
        // Called by their numbers, as in a bench: methods put classes in the order of their names, and the random starts of k-means follow.
        let classes: Vec<String> = episode.support_classes.iter().map(ToString::to_string).collect();
        let support = Support::new(data.features().select(&episode.support), &classes).unwrap();
        let task = Task::new(&support, data.features().select(&episode.queries)).unwrap();
        let found = Ukc {
            seed: 5,
            ..Ukc::default()
        }
        .discover(&task)
        .unwrap();
        let label = |&cluster: &usize| match found.prototype_clusters().iter().position(|&known| known == cluster) {
            Some(class) => PredictedLabel::Name(episode.classes[class].clone()),
            None => PredictedLabel::Number(1000 - cluster as i64),
        };
        Prediction {
            episode: episode.episode,
            predictions: found.query_clusters().iter().map(label).collect(),
        }
    });
    predicted.collect()
}

#[test]
fn what_a_method_here_says_is_judged_alike_from_outside() {
    let (data, bench) = (data(), bench());
    let set = bench.episodes_of(&data, &Experiment::Main).unwrap();
    let theirs = bench.run(&data, &Experiment::Main, &Silent).unwrap();
    let mut predictions = predictions(&data, &set);
    predictions.reverse();
    let ours = set.score("mine", &predictions).unwrap();
    let (ours, theirs) = (&ours.runs[0], &theirs.runs[0]);
    assert_eq!(ours.method, "mine");
    let text = |value: &dyn erased::Json| value.json();
    assert_eq!(text(&ours.metrics), text(&theirs.metrics));
    assert_eq!(text(&ours.episodes), text(&theirs.episodes));
    assert_eq!(text(&ours.k), text(&theirs.k));
}

mod erased {
    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap()
        }
    }
}

#[test]
fn files_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (data, bench) = (data(), bench());
    let set = bench.episodes_of(&data, &Experiment::Queries(vec![2, 4])).unwrap();
    assert_eq!(set.episodes().len(), 12);
    let path = folder.path().join("episodes.jsonl");
    set.write(&path).unwrap();
    let read = EpisodeSet::read(&path).unwrap();
    assert_eq!(read.episodes(), set.episodes());
    assert_eq!(read.to_text(), set.to_text());

    let truth = |episode: &genus_lab::ExportedEpisode| {
        let names: Vec<&str> = episode.truth.iter().map(|&class| &*episode.classes[class]).collect();
        format!(
            "{}\n",
            serde_json::json!({"episode": episode.episode, "predictions": names})
        )
    };
    let predicted = folder.path().join("predictions.jsonl");
    std::fs::write(&predicted, read.episodes().iter().map(truth).collect::<String>()).unwrap();
    let report = read.score("truth", &read_predictions(&predicted).unwrap()).unwrap();
    let shapes: Vec<usize> = report.runs.iter().map(|run| run.query).collect();
    assert_eq!(shapes, [2, 4]);
    assert!(report.runs.iter().all(|run| run.all.mean == 1.0));
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (data, bench) = (data(), bench());
    let set = bench.episodes_of(&data, &Experiment::Main).unwrap();
    let good = predictions(&data, &set);
    let problem = |predictions: &[Prediction]| set.score("mine", predictions).unwrap_err().to_string();
    assert_eq!(problem(&good[1..]), "mine, episode 0: it has no prediction");
    let mut short = good.clone();
    short[2].predictions.pop();
    assert_eq!(
        problem(&short),
        "mine, episode 2: it has 29 predictions, and 30 queries"
    );
    let mut twice = good.clone();
    twice.push(good[0].clone());
    assert_eq!(problem(&twice), "mine, episode 0: it is predicted twice");
    let mut beyond = good;
    beyond[0].episode = 99;
    assert_eq!(
        problem(&beyond),
        "mine, episode 99: there is no such episode: there are 6"
    );

    let path = folder.path().join("file.jsonl");
    let text = set.to_text();
    let broken = [
        String::new(),
        "{}\n".to_owned(),
        text.lines().next().unwrap().to_owned(),
        text.replace("\"known\":3", "\"known\":9"),
        text.replace("\"episode\":3", "\"episode\":4"),
        text.replacen("\"truth\":[0", "\"truth\":[99", 1),
        text.replacen("\"queries\":[", "\"queries\":[1,", 1),
    ];
    for text in broken {
        std::fs::write(&path, &text).unwrap();
        let error = EpisodeSet::read(&path).unwrap_err().to_string();
        assert!(error.contains("line "), "{error}");
    }
    std::fs::write(&path, "{\"episode\": 0}\n").unwrap();
    assert!(read_predictions(&path).unwrap_err().to_string().contains("line 1"));
    let piles = bench.episodes_of(&data, &Experiment::Piles(PileSettings::default()));
    assert!(matches!(piles, Err(LabError::NothingToRun { .. })));
}
