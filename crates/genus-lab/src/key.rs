//! What a kept report or head depends on: written out field by field, under a number that goes up when the same key would give
//! something else.

use genus_data::calibration_fingerprint;
use serde_json::{Value, json};

use crate::baselines::OcdTraining;
use crate::{Bench, Dataset, Experiment};

/// The number of the reports. 2: the key is written out.
const REPORTS: u32 = 2;
/// The number of the heads. 2: the key is written out.
const HEADS: u32 = 2;

/// The key of the report of an experiment.
pub(crate) fn of_report(data: &Dataset, bench: &Bench, experiment: &Experiment) -> String {
    let methods: Vec<String> = bench.methods_of(experiment).iter().map(ToString::to_string).collect();
    hashed(&json!({
        "format": REPORTS,
        "release": env!("CARGO_PKG_VERSION"),
        "data": {
            "name": data.name(),
            "set": data.set(),
            "encoder": data.encoder(),
            "content": data.fingerprint().to_string(),
        },
        "experiment": of_experiment(experiment),
        "episodes": bench.episodes,
        "seed": bench.seed,
        "shape": bench.shape.to_string(),
        "tail": bench.pile.tail.map(|tail| tail.to_string()),
        "outliers": bench.pile.outliers,
        "methods": methods,
        "prototypes": bench.prototypes.to_string(),
        "short_classes": bench.short_classes.to_string(),
        "calibration": bench.calibration.as_deref().map(calibration_fingerprint),
    }))
}

/// The key of a head that is trained on the features of a data set.
pub(crate) fn of_head(data: &Dataset, training: &OcdTraining, seed: u64) -> String {
    let OcdTraining {
        hash,
        epochs,
        batch,
        rate,
        momentum,
        weight_decay,
    } = *training;
    hashed(&json!({
        "format": HEADS,
        "content": data.fingerprint().to_string(),
        "hidden": hash.shape.hidden,
        "embedding": hash.shape.embedding,
        "bits": hash.shape.bits,
        "temperature": hash.temperature,
        "sign_weight": hash.sign_weight,
        "epochs": epochs,
        "batch": batch,
        "rate": rate,
        "momentum": momentum,
        "weight_decay": weight_decay,
        "seed": seed,
    }))
}

fn hashed(key: &Value) -> String {
    blake3::hash(key.to_string().as_bytes()).to_hex().to_string()
}

fn of_experiment(experiment: &Experiment) -> Value {
    let settings = match experiment {
        Experiment::Main | Experiment::RealTime | Experiment::Tasks | Experiment::Ablation => Value::Null,
        Experiment::Large(large) => json!({
            "subset": large.subset,
            "refine": large.refine,
            "centre_norm": large.centre_norm.to_string(),
            "authors": large.authors,
        }),
        Experiment::Queries(numbers) | Experiment::Threshold(numbers) => json!(numbers),
        Experiment::Alpha(numbers) => json!(numbers),
        Experiment::Piles(piles) => json!({
            "items": piles.items,
            "tail": piles.tail.to_string(),
            "frames": piles.frames,
            "examples": piles.examples,
            "outliers": piles.outliers,
            "varied": piles.varied.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
        Experiment::Stream(stream) => json!({ "orders": stream.orders, "looks": stream.looks }),
        Experiment::Backbones { encoder } => json!(encoder),
        Experiment::Transfer { trained_on } => json!(trained_on),
    };
    json!({ "name": experiment.kind(), "settings": settings })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use genus_core::episode::{Pile, Shape, ShortClasses};
    use genus_core::{Calibration, CalibrationSettings, Features, Prototypes};

    use super::*;
    use crate::LargeSettings;

    #[test]
    fn everything_that_a_report_depends_on_is_in_its_key_and_nothing_else() {
        let rows = (0..60).map(|at| [1.0 + (at / 5) as f32, (at * at % 7) as f32, (at % 5) as f32]);
        let features = Features::from_rows(rows).unwrap();
        let numbers: Vec<usize> = (0..60).map(|at| at / 5).collect();
        let labels: Vec<Option<String>> = numbers.iter().map(|class| Some(class.to_string())).collect();
        let data = Dataset::new("a", features.clone(), &labels, None).unwrap();
        let calibration = |seed| {
            let settings = CalibrationSettings {
                seed,
                ..CalibrationSettings::default()
            };
            Some(Arc::new(Calibration::fit(&features, &numbers, settings).unwrap()))
        };
        let bench = Bench::default();
        let pile = Pile {
            outliers: 1,
            ..Pile::default()
        };
        let shape = Shape {
            way: 3,
            ..Shape::default()
        };
        let benches = [
            bench.clone(),
            Bench {
                seed: 1,
                ..bench.clone()
            },
            Bench {
                episodes: 1,
                ..bench.clone()
            },
            Bench { shape, ..bench.clone() },
            Bench { pile, ..bench.clone() },
            Bench {
                methods: vec!["ukc:alpha=1.3".parse().unwrap()],
                ..bench.clone()
            },
            Bench {
                prototypes: Prototypes::UnitMean,
                ..bench.clone()
            },
            Bench {
                short_classes: ShortClasses::Skip,
                ..bench.clone()
            },
            Bench {
                calibration: calibration(0),
                ..bench.clone()
            },
        ];
        let authors = LargeSettings {
            authors: true,
            ..LargeSettings::default()
        };
        let experiments = [
            Experiment::Main,
            Experiment::RealTime,
            Experiment::Large(LargeSettings::default()),
            Experiment::Large(authors),
            Experiment::Queries(vec![1]),
            Experiment::Queries(vec![1, 2]),
            Experiment::Threshold(vec![1]),
            Experiment::Alpha(vec![1.0]),
        ];
        let mut keys: BTreeSet<String> = benches
            .iter()
            .flat_map(|bench| experiments.iter().map(|experiment| of_report(&data, bench, experiment)))
            .collect();
        assert_eq!(keys.len(), benches.len() * experiments.len());
        for other in [
            data.clone().called("b"),
            data.clone().of_set("cub200"),
            Dataset::new("a", features.select(&(1..60).collect::<Vec<_>>()), &labels[1..], None).unwrap(),
        ] {
            assert!(keys.insert(of_report(&other, &bench, &Experiment::Main)));
        }
        let elsewhere = Bench {
            heads: Some("elsewhere".into()),
            ..bench
        };
        assert!(keys.contains(&of_report(&data, &elsewhere, &Experiment::Main)));
    }
}
