//! A matrix in memory, against the same rows as a table.

use genus::{
    DiscoverOptions, Error, Features, FeaturesView, Inputs, LabelledRows, Note, Progress, Silent, Table, discover,
    discover_rows,
};
use genus_core::{FeatureError, rng::Rng};

const DIM: usize = 12;

/// Items around five directions; of three of them the first four are examples, whose classes are not in the order of their rows.
fn rows(each: usize) -> (Vec<f32>, Vec<String>, Vec<Option<usize>>) {
    let mut rng = Rng::new(4, &[]);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for at in 0..5 * each {
        let kind = at % 5;
        values.extend((0..DIM).map(|axis| f32::from(u8::from(axis == kind)) + 0.3 * (rng.unit() as f32 - 0.5)));
        labels.push((kind < 3 && at < 20).then(|| [2, 0, 1][kind]));
    }
    (values, ["ant", "bee", "cat"].map(str::to_owned).to_vec(), labels)
}

#[test]
fn a_matrix_is_sorted_like_a_table_to_the_last_bit() {
    let (values, classes, labels) = rows(40);
    let given = LabelledRows {
        features: FeaturesView::new(DIM, &values).unwrap(),
        classes: &classes,
        labels: &labels,
    };
    let table = Table {
        ids: (0..labels.len()).map(|row| row.to_string()).collect(),
        labels: labels
            .iter()
            .map(|label| label.map(|class| classes[class].clone()))
            .collect(),
        features: Features::new(DIM, values.clone()).unwrap(),
    };
    let subset = std::num::NonZeroUsize::new(60);
    for (method, subset, refine) in [
        ("calibrated", None, 0),
        ("ukc", None, 0),
        ("shc", subset, 1),
        ("calibrated", subset, 0),
    ] {
        let options = DiscoverOptions {
            method: method.parse().unwrap(),
            seed: 3,
            subset,
            refine,
            ..DiscoverOptions::default()
        };
        let found = discover_rows(given, &options, &Silent).unwrap();
        let expected = discover(Inputs::Mixed(table.clone().into()), &options, &Silent).unwrap();
        let names = |taxonomy: &genus::Taxonomy| taxonomy.entries().iter().map(|e| e.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found.taxonomy)[..3], classes);
        for item in &expected.assignments {
            let row: usize = item.id.parse().unwrap();
            let place = found.assignments[row];
            assert_eq!(found.taxonomy.entries()[place.category].name, item.category, "{method}");
            assert_eq!(place.score, item.score, "{method}");
        }
        for (row, label) in labels.iter().enumerate() {
            assert!(label.is_none_or(|class| found.assignments[row].category == class));
        }
        let items: u64 = found.taxonomy.entries().iter().map(|entry| entry.items).sum();
        assert_eq!(items as usize, labels.iter().filter(|label| label.is_none()).count());
    }
}

#[test]
fn where_all_have_a_class_the_classes_are_what_is_found() {
    let (values, classes, labels) = rows(8);
    let labelled: Vec<usize> = (0..labels.len()).filter(|&row| labels[row].is_some()).collect();
    let features = FeaturesView::new(DIM, &values).unwrap().select(&labelled);
    let labels: Vec<Option<usize>> = labelled.iter().map(|&row| labels[row]).collect();
    for method in ["calibrated", "shc"] {
        let options = DiscoverOptions {
            method: method.parse().unwrap(),
            ..DiscoverOptions::default()
        };
        let given = LabelledRows {
            features: FeaturesView::from(&features),
            classes: &classes,
            labels: &labels,
        };
        let found = discover_rows(given, &options, &Silent).unwrap();
        assert_eq!((found.taxonomy.entries().len(), found.stop), (3, None));
        let nearest = found.taxonomy.assign(&features).unwrap();
        let right = nearest
            .iter()
            .zip(&labels)
            .filter(|(place, label)| Some(place.category) == **label);
        assert_eq!(right.count(), labels.len(), "{method}");
    }
}

#[test]
fn an_error_names_the_row_of_the_matrix() {
    let (mut values, classes, labels) = rows(8);
    for row in [0, 23] {
        let kept = values[row * DIM..][..DIM].to_vec();
        values[row * DIM..][..DIM].fill(0.0);
        let given = LabelledRows {
            features: FeaturesView::new(DIM, &values).unwrap(),
            classes: &classes,
            labels: &labels,
        };
        let error = discover_rows(given, &DiscoverOptions::default(), &Silent).unwrap_err();
        assert!(
            matches!(error, Error::Features(FeatureError::ZeroRow { row: found }) if found == row),
            "{error}"
        );
        values[row * DIM..][..DIM].copy_from_slice(&kept);
    }
    let ragged = LabelledRows {
        features: FeaturesView::new(DIM, &values).unwrap(),
        classes: &classes,
        labels: &labels[1..],
    };
    let error = discover_rows(ragged, &DiscoverOptions::default(), &Silent).unwrap_err();
    assert!(matches!(error, Error::Ragged { .. }), "{error}");
}

#[test]
fn a_class_that_reads_like_none_is_told() {
    struct Notes(std::sync::Mutex<Vec<String>>);
    impl Progress for Notes {
        fn start(&self, _: &str, _: genus::Length) {}
        fn advance(&self, _: u64) {}
        fn note(&self, note: &Note) {
            if let Note::OddLabel { label, examples } = note {
                self.0.lock().unwrap().push(format!("{label} {examples}"));
            }
        }
    }
    let (values, mut classes, labels) = rows(8);
    classes[1] = "Unknown".to_owned();
    let notes = Notes(Default::default());
    let given = LabelledRows {
        features: FeaturesView::new(DIM, &values).unwrap(),
        classes: &classes,
        labels: &labels,
    };
    discover_rows(given, &DiscoverOptions::default(), &notes).unwrap();
    assert_eq!(*notes.0.lock().unwrap(), ["Unknown 4"]);
}
