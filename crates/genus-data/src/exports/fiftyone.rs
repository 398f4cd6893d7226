//! FiftyOne: the labels of a `FiftyOneImageClassificationDataset`.
//!
//! The images are named by their absolute paths, so that none has to be copied.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Export, ExportError, ExportFiles, absolute, categories, number};
use crate::sorting::SortedItem;

pub(super) fn export(folder: &Path, items: &[SortedItem]) -> Result<ExportFiles, ExportError> {
    let mut labels = Map::new();
    for item in items {
        let mut label = json!({
            "label": item.category,
            "attributes": {
                "item": item.id,
                "kind": item.row().kind(),
                "score": number(item.score.similarity),
                "margin": number(item.score.margin),
            },
        });
        if let Some(probability) = item.score.probability {
            label["confidence"] = number(probability);
        }
        if let Some(scene) = item.scene {
            label["attributes"]["scene"] = scene.into();
        }
        let mut path = PathBuf::new();
        labels.insert(absolute(item, Export::FiftyOne, &mut path)?.to_owned(), label);
    }
    let file = folder.join("fiftyone.json");
    let next = format!(
        "FiftyOne: fiftyone.Dataset.from_dir(dataset_type=fiftyone.types.FiftyOneImageClassificationDataset, \
         labels_path={:?})",
        file.display().to_string()
    );
    let content = Value::from_iter([
        ("classes", Value::from(categories(items))),
        ("labels", Value::Object(labels)),
    ]);
    Ok(ExportFiles {
        files: vec![(file, format!("{content:#}\n").into_bytes())],
        next,
    })
}
