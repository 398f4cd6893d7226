//! Training runs from beginning to end, on small images and a small network.

use std::fs;
use std::path::{Path, PathBuf};

use genus::training::{
    Objective, Schedule, Step, TrainedBlocks, Training, TrainingError, TrainingOutcome, TrainingSettings, Validation,
    Watcher, trained_calibration, trained_encoder, trained_hash,
};
use genus_data::read_calibration;
use genus_vision::{Encoder, Isa, Limits, Weights, decode, read_weights};
use serde_json::Value;

const SIDE: usize = 18;

/// A BMP file of `SIDE` × `SIDE` pixels.
fn bmp(pixel: impl Fn(usize, usize) -> [u8; 3]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    let side = SIDE as u32;
    let row = (3 * SIDE).next_multiple_of(4);
    for value in [54 + (row * SIDE) as u32, 0, 54, 40, side, side] {
        file.extend(value.to_le_bytes());
    }
    file.extend(1u16.to_le_bytes());
    file.extend(24u16.to_le_bytes());
    file.extend([0; 24]);
    for y in (0..SIDE).rev() {
        let start = file.len();
        file.extend((0..SIDE).flat_map(|x| pixel(x, y)));
        file.resize(start + row, 0);
    }
    file
}

/// Classes of images in folders: stripes of a class's own width and colour, or that colour alone.
fn images(folder: &Path, classes: usize, each: usize, striped: bool) -> PathBuf {
    let root = folder.join("images");
    for class in 0..classes {
        let below = root.join(format!("class {class:02}"));
        fs::create_dir_all(&below).unwrap();
        for number in 0..each {
            let shade = |channel: usize| ((37 * class + 83 * channel + 11 * number * (channel + 1)) % 200 + 40) as u8;
            let file = bmp(|x, y| {
                let bright = !striped || (x * (1 + class % 3) + y * (class / 3) + number) % 7 < 3;
                [0, 1, 2].map(|channel| if bright { shade(channel) } else { 10 })
            });
            fs::write(below.join(format!("{number}.bmp")), file).unwrap();
        }
    }
    root
}

fn settings(images: &Path) -> TrainingSettings {
    TrainingSettings {
        data: None,
        part: None,
        images: images.to_owned(),
        split: None,
        encoder: "conv4:size=16,width=6".into(),
        weights: None,
        objective: Objective::Contrast,
        blocks: TrainedBlocks::All,
        fixed_statistics: false,
        way: 2,
        shot: 1,
        new: 1,
        query: 2,
        skip_short_classes: false,
        epochs: 3,
        episodes: 4,
        batch: None,
        learning_rate: 0.05,
        schedule: Schedule::Cosine,
        momentum: 0.9,
        weight_decay: 5e-5,
        temperature: 0.2,
        views: 1,
        mirror: true,
        head_hidden: 8,
        head_width: 32,
        bits: 12,
        cache_trunk: 0,
        validation_classes: None,
        validation_episodes: 20,
        validate_every: 2,
        seed: 3,
    }
}

/// Codes of five bits, on batches of ten images seen twice.
fn codes(images: &Path) -> TrainingSettings {
    TrainingSettings {
        data: None,
        part: None,
        objective: Objective::Hash,
        batch: Some(10),
        bits: 5,
        views: 2,
        ..settings(images)
    }
}

/// Keeps what it hears and stops after a step, if there is one to stop after.
#[derive(Default)]
struct Ear {
    steps: Vec<Step>,
    validations: Vec<Validation>,
    skipped: Vec<PathBuf>,
    kept: u64,
    stop_after: Option<u64>,
}

impl Watcher for Ear {
    fn skipped(&mut self, path: &Path, _: &str) {
        self.skipped.push(path.to_owned());
    }

    fn kept(&mut self, done: u64, _: u64) {
        self.kept = done;
    }

    fn step(&mut self, step: &Step) {
        self.steps.push(*step);
    }

    fn validated(&mut self, validation: &Validation) {
        self.validations.push(*validation);
    }

    fn stops(&self) -> bool {
        let last = self.steps.last().map_or(0, |step| step.step);
        self.stop_after.is_some_and(|after| last >= after)
    }
}

impl Ear {
    fn losses(&self) -> Vec<f64> {
        self.steps.iter().map(|step| step.loss).collect()
    }
}

fn train(settings: &TrainingSettings, run: &Path, ear: &mut Ear) -> Result<TrainingOutcome, TrainingError> {
    Training::begin(settings.clone(), run, ear)?.run(ear)
}

fn resume(run: &Path, ear: &mut Ear) -> Result<TrainingOutcome, TrainingError> {
    Training::resume(run, ear)?.run(ear)
}

#[test]
fn a_run_learns_and_leaves_an_encoder() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 12, 5, true);
    fs::write(root.join("class 00/broken.bmp"), b"BM").unwrap();
    let settings = TrainingSettings {
        epochs: 6,
        learning_rate: 0.01,
        head_hidden: 64,
        ..settings(&root)
    };
    let run = folder.path().join("runs/stripes");
    let mut ear = Ear::default();
    let outcome = train(&settings, &run, &mut ear).unwrap();
    assert!(outcome.complete);
    assert_eq!((outcome.step, ear.steps.len()), (24, 24));
    assert_eq!(ear.skipped.len(), 1, "{:?}", ear.skipped);
    let losses = ear.losses();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    assert!(mean(&losses[20..]) < mean(&losses[..4]), "{losses:?}");
    // Three of twelve classes are held out, and judged every other epoch.
    assert_eq!(ear.validations.iter().map(|v| v.epoch).collect::<Vec<_>>(), [2, 4, 6]);
    // Along the cosine, epoch by epoch, to a thousandth at its end.
    let rates: Vec<f64> = ear.steps.iter().map(|step| step.learning_rate).collect();
    for (at, rate) in rates.iter().enumerate() {
        let share = (at / 4) as f64 / 6.0;
        let expected = 0.01 * (0.001 + 0.999 * (1.0 + (std::f64::consts::PI * share).cos()) / 2.0);
        assert!((rate - expected).abs() < 1e-12, "step {at}: {rate}");
    }
    // Everything is written down.
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = metrics
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.iter().filter(|line| line["loss"].is_f64()).count(), 24);
    assert_eq!(lines.iter().filter(|line| line["all"].is_f64()).count(), 3);
    let names: Vec<String> = fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("events.out.tfevents.")),
        "{names:?}"
    );
    // The folder is an encoder.
    let (spec, weights) = trained_encoder(&run).unwrap().unwrap();
    assert_eq!(spec.to_string(), settings.encoder);
    let encoder = spec.load(weights, Isa::Portable).unwrap();
    let image = decode(&fs::read(root.join("class 01/0.bmp")).unwrap(), &Limits::default()).unwrap();
    assert_eq!(encoder.encode(&encoder.transform().apply(&image)).unwrap().len(), 6);
    assert!(trained_encoder("conv4").unwrap().is_none());
    // With its calibration, of all classes where few are held out.
    assert_eq!(outcome.calibrated, Some(12));
    let (calibration, made) = read_calibration(trained_calibration(&run).unwrap()).unwrap();
    assert_eq!((calibration.classes(), calibration.dim()), (12, 6));
    assert_eq!(made.encoder.as_deref(), Some(encoder.fingerprint().as_str()));
    assert!(made.fitted_on.starts_with("the base classes of "), "{}", made.fitted_on);
    assert!(trained_calibration("conv4").is_none());
}

#[test]
fn a_run_of_no_epochs_gives_the_encoder_to_begin_with() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let settings = TrainingSettings {
        epochs: 0,
        ..settings(&root)
    };
    let mut ear = Ear::default();
    assert!(train(&settings, &run, &mut ear).unwrap().complete);
    let (spec, path) = trained_encoder(&run).unwrap().unwrap();
    let first = Weights::first_values(&spec.architecture, spec.transform.crop, settings.seed).unwrap();
    assert!(read_weights(path).unwrap() == first);
}

#[test]
fn an_interrupted_run_goes_on_as_if_nothing_had_happened() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let vit = "vit:size=16,patch=8,dim=12,depth=2,heads=2";
    let (episodes, codes) = (settings(&root), codes(&root));
    let batches = TrainingSettings {
        batch: Some(7),
        ..episodes.clone()
    };
    for (name, base, encoder, blocks, cache_trunk, views) in [
        ("all", &episodes, "conv4:size=16,width=6", TrainedBlocks::All, 0, 1),
        ("last", &episodes, "conv4:size=16,width=6", TrainedBlocks::Last(2), 0, 2),
        ("kept", &episodes, "conv4:size=16,width=6", TrainedBlocks::Last(2), 3, 1),
        ("vit", &episodes, vit, TrainedBlocks::Last(1), 0, 1),
        ("vit kept", &episodes, vit, TrainedBlocks::Last(1), 2, 1),
        (
            "batches",
            &batches,
            "conv4:size=16,width=6",
            TrainedBlocks::Last(1),
            0,
            1,
        ),
        ("codes", &codes, "conv4:size=16,width=6", TrainedBlocks::All, 0, 2),
        ("codes of vit", &codes, vit, TrainedBlocks::Last(1), 2, 2),
    ] {
        let settings = TrainingSettings {
            encoder: encoder.into(),
            blocks,
            cache_trunk,
            views,
            ..base.clone()
        };
        let [through, halting] = ["through", "halting"].map(|kind| folder.path().join(format!("{name} {kind}")));
        let mut whole = Ear::default();
        train(&settings, &through, &mut whole).unwrap();
        let mut first = Ear {
            stop_after: Some(6),
            ..Ear::default()
        };
        let outcome = train(&settings, &halting, &mut first).unwrap();
        assert_eq!((outcome.step, outcome.complete), (6, false));
        assert!(matches!(
            trained_encoder(&halting),
            Err(TrainingError::Unfinished { .. })
        ));
        let mut rest = Ear::default();
        assert!(resume(&halting, &mut rest).unwrap().complete);
        assert_eq!([first.losses(), rest.losses()].concat(), whole.losses(), "{name}");
        let files = [
            "encoder.safetensors",
            "checkpoint.safetensors",
            "encoder.toml",
            "config.toml",
        ];
        let hash = (settings.objective == Objective::Hash).then_some("hash.safetensors");
        for file in files.into_iter().chain(hash) {
            let bytes = |run: &Path| fs::read(run.join(file)).unwrap();
            assert!(bytes(&through) == bytes(&halting), "{name}: {file}");
        }
        // A run that is complete has nothing left to do.
        let mut nothing = Ear::default();
        assert!(resume(&halting, &mut nothing).unwrap().complete);
        assert!(nothing.steps.is_empty());
    }
}

#[test]
fn a_run_learns_codes() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 12, 5, true);
    // A class too small for an episode is trained on all the same, and not held out.
    for number in 2..5 {
        fs::remove_file(root.join(format!("class 07/{number}.bmp"))).unwrap();
    }
    let settings = TrainingSettings {
        epochs: 6,
        learning_rate: 0.02,
        head_hidden: 32,
        ..codes(&root)
    };
    let run = folder.path().join("run");
    let mut ear = Ear::default();
    assert!(train(&settings, &run, &mut ear).unwrap().complete);
    // Of 57 images 15 are held out; the two of the rest that fill no batch are left out of an epoch.
    assert_eq!(ear.steps.len(), 6 * 4);
    let ends: Vec<u64> = ear
        .steps
        .iter()
        .filter(|step| step.ends_epoch)
        .map(|step| step.step)
        .collect();
    assert_eq!(ends, [4, 8, 12, 16, 20, 24]);
    assert_eq!(ear.validations.len(), 3);
    let losses = ear.losses();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    assert!(mean(&losses[20..]) < mean(&losses[..4]), "{losses:?}");
    assert!((ear.steps[0].chance - (19f64.ln() + 3.0)).abs() < 1e-12);
    // The encoder and the head give codes.
    let (spec, weights) = trained_encoder(&run).unwrap().unwrap();
    let encoder = spec.load(weights, Isa::Portable).unwrap();
    let image = decode(&fs::read(root.join("class 01/0.bmp")).unwrap(), &Limits::default()).unwrap();
    let features = encoder.encode(&encoder.transform().apply(&image)).unwrap();
    let head = trained_hash(&run).unwrap().unwrap();
    let hashes = head.hashes(&features).unwrap();
    assert_eq!(hashes.len(), 5);
    assert!(hashes.iter().all(|h| h.abs() <= 1.0), "{hashes:?}");

    // A damaged file is told, and so is one that is missing.
    let path = run.join("hash.safetensors");
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let other = genus_vision::to_safetensors(&Default::default(), "{\"step\":1,\"tensors\":\"\"}");
    for bad in [&good[..good.len() - 1], &flipped, &other, b"", b"garbage!"] {
        fs::write(&path, bad).unwrap();
        let message = message(trained_hash(&run));
        assert!(message.contains("hash.safetensors is damaged"), "{message}");
    }
    // Whole, but of something else.
    fs::copy(run.join("checkpoint.safetensors"), &path).unwrap();
    assert!(message(trained_hash(&run)).contains("head.mlp.0.weight is missing"));
    fs::remove_file(&path).unwrap();
    assert!(message(trained_hash(&run)).contains("cannot read"));
}

#[test]
fn codes_are_those_of_runs_that_learn_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let [plain, begun] = ["plain", "begun"].map(|name| folder.path().join(name));
    let once = TrainingSettings {
        epochs: 1,
        ..settings(&root)
    };
    train(&once, &plain, &mut Ear::default()).unwrap();
    assert!(trained_hash(&plain).unwrap().is_none());
    assert!(trained_hash(&root).unwrap().is_none());
    assert!(trained_hash("conv4").unwrap().is_none());
    assert!(!plain.join("hash.safetensors").exists());
    // What other runs do not have is not in their settings, and settings from before are read.
    let config = fs::read_to_string(plain.join("config.toml")).unwrap();
    assert!(
        !["objective", "batch", "bits"].iter().any(|key| config.contains(key)),
        "{config}"
    );
    let mut ear = Ear {
        stop_after: Some(1),
        ..Ear::default()
    };
    train(&codes(&root), &begun, &mut ear).unwrap();
    assert!(matches!(trained_hash(&begun), Err(TrainingError::Unfinished { .. })));
    let config = fs::read_to_string(begun.join("config.toml")).unwrap();
    for part in ["objective = \"hash\"", "batch = 10", "bits = 5"] {
        assert!(config.contains(part), "{config}");
    }
}

#[test]
fn a_kept_trunk_gives_the_same_losses() {
    let folder = tempfile::tempdir().unwrap();
    // Of one colour, so that every view of an image is the same.
    let root = images(folder.path(), 9, 5, false);
    for (name, encoder) in [
        ("conv", "conv4:size=16,width=6"),
        ("vit", "vit:size=16,patch=8,dim=12,depth=3,heads=2"),
    ] {
        let run = |cache_trunk| {
            let settings = TrainingSettings {
                encoder: encoder.into(),
                blocks: TrainedBlocks::Last(2),
                cache_trunk,
                ..settings(&root)
            };
            let mut ear = Ear::default();
            let run = folder.path().join(format!("{name} {cache_trunk}"));
            train(&settings, &run, &mut ear).unwrap();
            (ear.losses(), ear.kept)
        };
        let (plain, none) = run(0);
        let (kept, views) = run(2);
        assert_eq!((none, views), (0, 2 * 9 * 5));
        assert_eq!(plain, kept, "{name}");
    }
}

#[test]
fn a_store_of_the_trunk_is_gone_on_with_and_made_anew_for_other_views() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let settings = TrainingSettings {
        blocks: TrainedBlocks::Last(2),
        cache_trunk: 2,
        ..settings(&root)
    };
    let run = folder.path().join("run");
    let mut whole = Ear::default();
    train(&settings, &run, &mut whole).unwrap();
    // Cut in the middle of a row, as by an interrupt.
    let kept = run.join("trunk.bin");
    let bytes = fs::read(&kept).unwrap();
    let other = folder.path().join("other");
    let mut ear = Ear {
        stop_after: Some(0),
        ..Ear::default()
    };
    // Nothing has been done yet but the views that were kept at once.
    assert_eq!(train(&settings, &other, &mut ear).unwrap().step, 0);
    fs::write(other.join("trunk.bin"), &bytes[..bytes.len() / 2 + 1]).unwrap();
    let mut ear = Ear::default();
    assert!(resume(&other, &mut ear).unwrap().complete);
    assert_eq!(ear.losses(), whole.losses());
    assert!(fs::read(other.join("trunk.bin")).unwrap() == bytes);
}

fn message<T>(result: Result<T, TrainingError>) -> String {
    match result {
        Ok(_) => panic!("it went well"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_trained_on_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let begin = |settings: TrainingSettings| message(Training::begin(settings, &run, &mut Ear::default()));
    let base = settings(&root);
    for (settings, parts) in [
        (
            TrainingSettings {
                way: 20,
                ..base.clone()
            },
            vec!["needs 21 classes", "there are 9"],
        ),
        (
            TrainingSettings {
                query: 5,
                ..base.clone()
            },
            vec!["class 00", "5 items"],
        ),
        (
            TrainingSettings {
                validation_classes: Some(8),
                ..base.clone()
            },
            vec!["8 are held out"],
        ),
        (
            TrainingSettings {
                validation_classes: Some(1),
                ..base.clone()
            },
            vec!["validation"],
        ),
        (
            TrainingSettings {
                learning_rate: 0.0,
                ..base.clone()
            },
            vec!["learning rate is 0"],
        ),
        (
            TrainingSettings {
                momentum: 1.0,
                ..base.clone()
            },
            vec!["momentum is 1"],
        ),
        (
            TrainingSettings {
                temperature: f64::NAN,
                ..base.clone()
            },
            vec!["temperature"],
        ),
        (
            TrainingSettings {
                views: 0,
                ..base.clone()
            },
            vec!["0 views"],
        ),
        (
            TrainingSettings {
                batch: Some(0),
                ..base.clone()
            },
            vec!["0 images of a batch"],
        ),
        (
            TrainingSettings {
                batch: Some(31),
                ..base.clone()
            },
            vec!["takes 31 images", "there are 30"],
        ),
        (
            TrainingSettings {
                bits: 0,
                ..base.clone()
            },
            vec!["0 bits"],
        ),
        (
            TrainingSettings {
                blocks: TrainedBlocks::Last(9),
                ..base.clone()
            },
            vec!["9 blocks", "has 4"],
        ),
        (
            TrainingSettings {
                encoder: "conv4:size=8".into(),
                ..base.clone()
            },
            vec!["8 pixels", "16"],
        ),
        (
            TrainingSettings {
                encoder: "vit".into(),
                ..base.clone()
            },
            vec!["needs its sizes"],
        ),
        (
            TrainingSettings {
                images: folder.path().join("none"),
                ..base.clone()
            },
            vec!["none"],
        ),
        (
            TrainingSettings {
                images: root.join("class 00"),
                ..base.clone()
            },
            vec!["no image has a label"],
        ),
    ] {
        let message = begin(settings);
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
        assert!(!run.exists(), "{message}");
    }
}

#[test]
fn a_folder_belongs_to_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let base = settings(&root);
    train(&base, &run, &mut Ear::default()).unwrap();
    let again = |settings| message(Training::begin(settings, &run, &mut Ear::default()));
    assert!(again(base.clone()).contains("already contains this run"));
    let other = again(TrainingSettings {
        epochs: 9,
        blocks: TrainedBlocks::Last(1),
        ..base.clone()
    });
    for part in ["epochs is 3 and not 9", "blocks is \"all\" and not \"1\""] {
        assert!(other.contains(part), "{other}");
    }
    // The images are part of it.
    fs::remove_file(root.join("class 04/4.bmp")).unwrap();
    let changed = message(Training::resume(&run, &mut Ear::default()));
    assert!(changed.contains("the images are not those"), "{changed}");
    assert!(message(Training::resume(&root, &mut Ear::default())).contains("no training run in"));
}

#[test]
fn a_damaged_checkpoint_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    train(&settings(&root), &run, &mut Ear::default()).unwrap();
    let path = run.join("checkpoint.safetensors");
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut header = good.clone();
    header[9] ^= 1;
    for bad in [
        &good[..good.len() - 1],
        &good[..20],
        &flipped,
        &header,
        b"",
        b"garbage!",
    ] {
        fs::write(&path, bad).unwrap();
        let message = message(Training::resume(&run, &mut Ear::default()));
        assert!(message.contains("checkpoint.safetensors is damaged"), "{message}");
    }
    fs::remove_file(&path).unwrap();
    assert!(message(Training::resume(&run, &mut Ear::default())).contains("cannot read"));
    // One of another network.
    fs::write(
        &path,
        genus_vision::to_safetensors(&Default::default(), "{\"step\":1,\"tensors\":\"\"}"),
    )
    .unwrap();
    assert!(message(Training::resume(&run, &mut Ear::default())).contains("damaged"));
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_state() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let settings = TrainingSettings {
        learning_rate: 1e30,
        schedule: Schedule::Constant,
        ..settings(&root)
    };
    let mut ear = Ear::default();
    let error = message(train(&settings, &run, &mut ear));
    let step = ear.steps.len() + 1;
    assert!(error.contains(&format!("the loss of step {step} is")), "{error}");
    assert!(error.contains("after step 0"), "{error}");
    Training::resume(&run, &mut Ear::default()).unwrap();
}

/// The lines of the metrics without what depends on the clock.
fn metrics(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|mut line| {
            line.as_object_mut().unwrap().remove("images_per_second");
            line
        })
        .collect()
}

#[test]
fn an_epoch_that_was_saved_and_not_judged_is_judged_later() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 12, 5, true);
    let settings = TrainingSettings {
        epochs: 4,
        ..settings(&root)
    };
    let [whole, cut] = ["whole", "cut"].map(|name| folder.path().join(name));
    train(&settings, &whole, &mut Ear::default()).unwrap();
    let steps_of_epoch = metrics(&whole)
        .iter()
        .filter(|line| line["epoch"] == 1 && line["loss"].is_f64())
        .count() as u64;
    // Stopped at the end of an epoch that is judged, and at the end of all.
    for last in [2 * steps_of_epoch, 4 * steps_of_epoch] {
        fs::remove_dir_all(&cut).ok();
        let mut ear = Ear {
            stop_after: Some(last),
            ..Ear::default()
        };
        train(&settings, &cut, &mut ear).unwrap();
        // A kill between the checkpoint and the judgement leaves everything but the last line, and no encoder.
        let text = fs::read_to_string(cut.join("metrics.jsonl")).unwrap();
        let (kept, judged) = text.trim_end().rsplit_once('\n').unwrap();
        assert!(judged.contains("\"all\""), "{judged}");
        fs::write(cut.join("metrics.jsonl"), format!("{kept}\n")).unwrap();
        fs::remove_file(cut.join("encoder.toml")).ok();
        let mut ear = Ear::default();
        let outcome = resume(&cut, &mut ear).unwrap();
        assert!(outcome.complete && outcome.validation.is_some());
        assert_eq!(metrics(&cut), metrics(&whole));
        let bytes = |run: &Path| fs::read(run.join("encoder.safetensors")).unwrap();
        assert!(bytes(&cut) == bytes(&whole));
        // It is judged once.
        resume(&cut, &mut Ear::default()).unwrap();
        assert_eq!(metrics(&cut), metrics(&whole));
    }
}

#[test]
fn a_folder_is_trained_in_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let mut ear = Ear::default();
    let training = Training::begin(settings(&root), &run, &mut ear).unwrap();
    let refused = resume(&run, &mut Ear::default()).unwrap_err().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
    drop(training);
    resume(&run, &mut Ear::default()).unwrap();
}

/// What somebody else put into the folder of a run does not decide what is written to.
#[cfg(unix)]
#[test]
fn links_in_a_run_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = images(folder.path(), 9, 5, true);
    let run = folder.path().join("run");
    let settings = TrainingSettings {
        blocks: TrainedBlocks::Last(2),
        cache_trunk: 2,
        ..settings(&root)
    };
    drop(Training::begin(settings, &run, &mut Ear::default()).unwrap());
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, run.join("trunk.bin")).unwrap();
    let refused = resume(&run, &mut Ear::default()).unwrap_err().to_string();
    assert!(refused.contains("trunk.bin") && refused.contains("link"), "{refused}");
    fs::remove_file(run.join("trunk.bin")).unwrap();
    let names = [
        "checkpoint.safetensors",
        "metrics.jsonl",
        "encoder.toml",
        "encoder.safetensors",
        "calibration.safetensors",
    ];
    let target = |name: &str| folder.path().join(format!("target of {name}"));
    let mut before = Vec::new();
    for name in names {
        let path = run.join(name);
        match path.exists() {
            true => fs::rename(&path, target(name)).unwrap(),
            false => fs::copy(&victim, target(name)).map(drop).unwrap(),
        }
        std::os::unix::fs::symlink(target(name), &path).unwrap();
        before.push(fs::read(target(name)).unwrap());
    }
    assert!(resume(&run, &mut Ear::default()).unwrap().complete);
    for (name, before) in names.iter().zip(before) {
        assert!(fs::read(target(name)).unwrap() == before, "{name}");
        assert!(fs::symlink_metadata(run.join(name)).unwrap().is_file(), "{name}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}
