//! Calibrations on disk, alone and in a taxonomy: what is read is what was written, or an error that names the file.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{assert_mentions, file, golden};
use genus_core::{
    Calibration, CalibrationParts, Centre, Eagerness, Features, Kind, MergeTree, Source, Taxonomy, TaxonomyEntry,
};
use genus_data::{CalibrationOrigin, Origin, read_calibration, read_taxonomy, write_calibration, write_taxonomy};
use proptest::prelude::*;
use safetensors::SafeTensors;

const NAME: &str = "c.safetensors";

/// A calibration of three features with so many directions.
fn parts(directions: usize) -> CalibrationParts {
    CalibrationParts {
        source: Source::Base,
        classes: 12,
        items: 345,
        centre: Centre::Base,
        mean: vec![0.1, -0.2, f32::MIN_POSITIVE],
        directions: (0..3 * directions).map(|at| (at as f32).sin()).collect(),
        factors: (0..directions).map(|at| 1.0 / (at + 2) as f32).collect(),
        tree: MergeTree::Ward,
        eagerness: Eagerness::Chosen,
        variance: 0.1 + 0.2,
        largest: 60.5,
        dimensions: 1.0 / 3.0,
        merges: [1.0 / 3.0, -2e-300, 3e300, 4.0, -0.0],
        arrivals: [0.1, 0.2, 0.3, 0.4, 0.5],
        places: [-0.1, 1e-7, 0.3, 7.0, 5e-324],
        doubt: 0.53,
    }
}

fn calibration(directions: usize) -> Calibration {
    Calibration::from_parts(parts(directions)).unwrap()
}

fn origin() -> CalibrationOrigin {
    CalibrationOrigin {
        encoder: Some("vit größe=224".to_owned()),
        fitted_on: "base \"birds\".npz\nfingerprint = 3".to_owned(),
        version: "0.1.0".to_owned(),
        seed: u64::MAX,
    }
}

/// The bytes of a calibration's file.
fn written(calibration: &Calibration) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    write_calibration(&path, calibration, &origin()).unwrap();
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        1,
        "something else was left behind"
    );
    std::fs::read(path).unwrap()
}

/// What is said about a file of this content.
fn refusal(content: &[u8]) -> String {
    let (_folder, path) = file(NAME, content);
    let message = read_calibration(path).unwrap_err().to_string();
    assert_mentions(&message, &[NAME]);
    message
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_number_comes_back(
        (dim, count) in (1usize..9, 0usize..5),
        numbers in prop::collection::vec(-1e3f32..1e3, 64),
        coefficients in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO, 15),
        (variance, largest, dimensions) in (1e-9f64..10.0, 1f64..1e9, 1e-9f64..1e9),
        (doubt, seed) in (0f64..=1.0, any::<u64>()),
        (source, centre, tree, eagerness) in (0usize..3, 0usize..3, 0usize..2, 0usize..2),
        (encoder, fitted_on) in (any::<Option<String>>(), any::<String>()),
    ) {
        let parts = CalibrationParts {
            source: Source::ALL[source],
            classes: 7,
            items: 99,
            centre: Centre::ALL[centre],
            mean: numbers[..dim].to_vec(),
            directions: numbers[dim..][..count * dim].to_vec(),
            factors: numbers[60..][..count.min(4)].iter().map(|v| v.abs() / 1e3).collect(),
            tree: MergeTree::ALL[tree],
            eagerness: Eagerness::ALL[eagerness],
            variance,
            largest,
            dimensions,
            merges: coefficients[..5].try_into().unwrap(),
            arrivals: coefficients[5..10].try_into().unwrap(),
            places: coefficients[10..].try_into().unwrap(),
            doubt,
        };
        let calibration = Calibration::from_parts(parts).unwrap();
        let made = CalibrationOrigin { encoder, fitted_on, version: "1".to_owned(), seed };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        write_calibration(&path, &calibration, &made).unwrap();
        let (read, read_made) = read_calibration(&path).unwrap();
        // As text, which tells 0 from -0.
        prop_assert_eq!(format!("{:?}", read.to_parts()), format!("{:?}", calibration.to_parts()));
        prop_assert_eq!(read_made, made);
    }

    #[test]
    fn scattered_damage_never_goes_unseen(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let whole = calibration(2);
        let mut bytes = written(&whole);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        seen_or_harmless(&bytes, &whole);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        refusal(&bytes);
    }
}

/// Damage is an error that names the file, unless nothing of the content changed.
#[track_caller]
fn seen_or_harmless(bytes: &[u8], whole: &Calibration) {
    let (_folder, path) = file(NAME, bytes);
    match read_calibration(path) {
        Ok(read) => assert_eq!(read, (whole.clone(), origin())),
        Err(e) => assert_mentions(&e.to_string(), &[NAME]),
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    for directions in [0, 2] {
        let bytes = written(&calibration(directions));
        for length in 0..bytes.len() {
            refusal(&bytes[..length]);
        }
        refusal(&[&bytes[..], b"more"].concat());
    }
}

#[test]
fn every_byte_may_be_anything() {
    let whole = calibration(2);
    let bytes = written(&whole);
    for at in 0..bytes.len() {
        for value in [0, 0xff, bytes[at] ^ 1] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            seen_or_harmless(&damaged, &whole);
        }
    }
}

#[test]
fn others_can_read_the_tensors_and_the_text() {
    let bytes = written(&calibration(2));
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = tensors.names();
    names.sort_unstable();
    assert_eq!(names, ["directions", "factors", "mean"]);
    assert_eq!(tensors.tensor("directions").unwrap().shape(), [2, 3]);
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let metadata = header.metadata().clone().unwrap();
    assert_eq!(metadata.keys().collect::<Vec<_>>(), ["genus"]);
    let text: toml::Table = metadata["genus"].parse().unwrap();
    assert_eq!(text["format"].as_str(), Some("genus calibration 2"));
    assert_eq!(text["classes"].as_integer(), Some(12));
    assert_eq!(text["variance"].as_float(), Some(0.1 + 0.2));
    assert_eq!(text["source"].as_str(), Some("base"));
    // Without directions there is no empty tensor of them.
    let bytes = written(&calibration(0));
    assert!(SafeTensors::deserialize(&bytes).unwrap().tensor("directions").is_err());
}

#[test]
fn other_files_are_not_taken_for_calibrations() {
    for name in ["f4.safetensors", "f4.npy", "rows.csv"] {
        let message = refusal(&std::fs::read(golden(name)).unwrap());
        assert_mentions(&message, &["not a calibration", "genus calibrate"]);
    }
    let message = read_calibration("none.safetensors").unwrap_err().to_string();
    assert_mentions(&message, &["none.safetensors"]);
    let folder = tempfile::tempdir().unwrap();
    let message = read_calibration(folder.path()).unwrap_err().to_string();
    assert_mentions(&message, &["is a directory"]);
}

/// The file with a text in the place of another of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
    let mut bytes = bytes.to_vec();
    bytes[at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_newer_format_and_changed_numbers_are_told() {
    let bytes = written(&calibration(1));
    let newer = refusal(&replaced(&bytes, "genus calibration 2", "genus calibration 3"));
    assert_mentions(&newer, &["`genus calibration 3`", "`genus calibration 2`"]);
    let changed = refusal(&replaced(&bytes, "doubt = 0.53", "doubt = 0.54"));
    assert_mentions(&changed, &["has changed", "genus calibrate"]);
}

fn taxonomy() -> Taxonomy {
    let entry = |name: &str, kind| TaxonomyEntry {
        name: name.to_owned(),
        kind,
        items: 3,
    };
    let entries = vec![entry("cat", Kind::Known), entry("new-1", Kind::Novel)];
    Taxonomy::from_parts(entries, Features::new(3, vec![1.0, 0.5, 0.0, 0.0, 0.1, 1.0]).unwrap()).unwrap()
}

fn calibrated(directions: usize) -> Taxonomy {
    let members = vec![(8.0, 0.1 + 0.2), (1e9 / 7.0, 1.0 / 3.0)];
    taxonomy()
        .with_calibration(Arc::new(calibration(directions)), members)
        .and_then(|taxonomy| taxonomy.with_familiar(0.1 + 0.7))
        .unwrap()
}

fn made(calibration: Option<CalibrationOrigin>) -> Origin {
    Origin {
        method: "calibrated".to_owned(),
        seed: 1,
        version: "0".to_owned(),
        encoder: None,
        images: None,
        growing: None,
        calibration,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_calibrated_taxonomy_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    for directions in [0, 2] {
        let made = made(Some(origin()));
        write_taxonomy(folder.path(), &calibrated(directions), &made).unwrap();
        assert_eq!(read_taxonomy(folder.path()).unwrap(), (calibrated(directions), made));
    }
    assert_eq!(
        names(folder.path()),
        ["calibration.safetensors", "centres.safetensors", "taxonomy.toml"]
    );
    let items = Features::new(3, vec![1.0, 0.4, 0.2, -1.0, 0.0, 2.0]).unwrap();
    let read = read_taxonomy(folder.path()).unwrap().0;
    assert_eq!(read.assign(&items).unwrap(), calibrated(2).assign(&items).unwrap());
    assert!(read.assign(&items).unwrap()[0].score.probability.is_some());
    // The file in the folder is one like any other.
    let (alone, alone_made) = read_calibration(folder.path().join("calibration.safetensors")).unwrap();
    assert_eq!((alone, alone_made), (calibration(2), origin()));
}

#[test]
fn a_plain_taxonomy_is_written_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    write_taxonomy(folder.path(), &taxonomy(), &made(None)).unwrap();
    assert_eq!(names(folder.path()), ["centres.safetensors", "taxonomy.toml"]);
    let text = std::fs::read_to_string(folder.path().join("taxonomy.toml")).unwrap();
    let keys = ["members", "agreement", "\ncalibration"];
    assert!(keys.iter().all(|key| !text.contains(key)), "{text}");
    assert!(text.starts_with("format = \"genus taxonomy 1\"\n"), "{text}");
    // It is plain even where a calibrated one was before.
    write_taxonomy(folder.path(), &calibrated(1), &made(None)).unwrap();
    write_taxonomy(folder.path(), &taxonomy(), &made(None)).unwrap();
    assert_eq!(read_taxonomy(folder.path()).unwrap(), (taxonomy(), made(None)));
}

#[test]
fn halves_of_two_taxonomies_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration.safetensors");
    let refused = || read_taxonomy(folder.path()).unwrap_err().to_string();
    write_taxonomy(folder.path(), &calibrated(1), &made(None)).unwrap();
    write_calibration(&path, &calibration(2), &origin()).unwrap();
    assert_mentions(
        &refused(),
        &["calibration.safetensors", "does not belong", "genus discover"],
    );
    std::fs::remove_file(&path).unwrap();
    assert_mentions(&refused(), &["calibration.safetensors", "no such file"]);
    write_taxonomy(folder.path(), &calibrated(1), &made(None)).unwrap();
    let toml = folder.path().join("taxonomy.toml");
    let text = std::fs::read_to_string(&toml).unwrap();
    for (from, to, mention) in [
        ("members = 8.0\n", "", "members"),
        ("members = 8.0\n", "members = 0.0\n", "`cat`"),
        ("agreement = 0.3", "agreement = 3", "`cat`"),
        ("genus taxonomy 2", "genus taxonomy 1", "calibration"),
        ("genus taxonomy 2", "genus taxonomy 3", "genus taxonomy 3"),
    ] {
        assert!(text.contains(from), "{text}");
        std::fs::write(&toml, text.replacen(from, to, 1)).unwrap();
        assert_mentions(&refused(), &["taxonomy.toml", mention]);
    }
}
