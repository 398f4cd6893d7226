//! Exports: what other programs are told. `bench/exports.py` loads them with the programs themselves.

use std::fs;
use std::path::{Path, PathBuf};

use genus_core::{Kind, Score};
use genus_data::{Export, ExportError, ExportFiles, LinkKind, SortedItem, Sorting};
use serde_json::{Value, json};

fn item(folder: &Path, id: &str, category: &str, kind: Kind, probability: Option<f32>) -> SortedItem {
    let path = folder.join("photos").join(id);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, id).unwrap();
    SortedItem {
        id: id.to_owned(),
        path,
        category: category.to_owned(),
        kind,
        score: Score {
            similarity: 0.1,
            margin: -0.25,
            probability,
            unsure: probability.is_some_and(|probability| probability < 0.5),
        },
        // Scenes are known where probabilities are.
        scene: probability.map(|_| 7),
    }
}

fn items(folder: &Path) -> Vec<SortedItem> {
    vec![
        item(folder, "a & b #1.jpg", "a \"quoted\" <class>", Kind::Known, Some(0.75)),
        item(folder, "sub/é 50%.jpg", "new-1", Kind::Novel, Some(0.25)),
        item(folder, "sub/c.png", "new-1", Kind::Novel, None),
    ]
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn parsed(path: PathBuf) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[test]
fn label_studio_gets_tasks_with_predictions_and_an_interface() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let exported = ExportFiles::label_studio(&out, &items(folder.path()), "genus test").unwrap();
    assert!(!out.exists(), "nothing is written yet");
    exported.write().unwrap();
    let tasks = parsed(out.join("label-studio.json"));
    assert_eq!(
        tasks[0],
        json!({
            "data": {
                "image": "/data/local-files/?d=photos/a%20%26%20b%20%231.jpg",
                "id": "a & b #1.jpg", "kind": "known", "score": 0.1, "margin": -0.25, "scene": 7,
            },
            "predictions": [{
                "model_version": "genus test", "score": 0.75,
                "result": [{
                    "id": "category", "from_name": "category", "to_name": "image", "type": "choices",
                    "value": {"choices": ["a \"quoted\" <class>"]},
                }],
            }],
        })
    );
    assert_eq!(
        tasks[1]["data"]["image"],
        "/data/local-files/?d=photos/sub/%C3%A9%2050%25.jpg"
    );
    assert_eq!(tasks[1]["data"]["kind"], "unsure");
    assert_eq!(tasks[2]["predictions"][0].get("score"), None);
    assert_eq!(tasks[2]["data"].get("scene"), None);
    let interface = read(out.join("label-studio.xml"));
    assert_eq!(
        interface,
        "<View>\n  <Image name=\"image\" value=\"$image\" zoom=\"true\"/>\n  \
         <Choices name=\"category\" toName=\"image\" choice=\"single-radio\" showInline=\"true\">\n    \
         <Choice value=\"a &quot;quoted&quot; &lt;class&gt;\"/>\n    <Choice value=\"new-1\"/>\n  \
         </Choices>\n</View>\n"
    );
    let root = folder.path().display().to_string();
    assert!(
        exported.next().contains(&format!("DOCUMENT_ROOT={root},")),
        "{}",
        exported.next()
    );
}

#[test]
fn fiftyone_gets_labels_by_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let items = items(folder.path());
    let exported = ExportFiles::fiftyone(folder.path(), &items).unwrap();
    exported.write().unwrap();
    let data = parsed(folder.path().join("fiftyone.json"));
    assert_eq!(data["classes"], json!(["a \"quoted\" <class>", "new-1"]));
    let labels = data["labels"].as_object().unwrap();
    assert_eq!(labels.len(), 3);
    assert_eq!(
        labels[items[0].path.to_str().unwrap()],
        json!({
            "label": "a \"quoted\" <class>", "confidence": 0.75,
            "attributes": {"item": "a & b #1.jpg", "kind": "known", "score": 0.1, "margin": -0.25, "scene": 7},
        })
    );
    let unjudged = &labels[items[2].path.to_str().unwrap()];
    assert_eq!(
        (unjudged.get("confidence"), unjudged["attributes"].get("scene")),
        (None, None)
    );
}

#[test]
fn hugging_face_gets_a_table_in_the_sorted_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (items, sorted) = (items(folder.path()), folder.path().join("sorted"));
    let sorting = || Sorting::plan(&sorted, LinkKind::Sym, &items).unwrap();
    let exported = ExportFiles::imagefolder(&sorting(), &items).unwrap();
    sorting().run(|| {}).unwrap();
    exported.write().unwrap();
    let expected = "file_name,id,category,kind,score,margin,probability,scene\n\
                    a _quoted_ _class_/a & b #1.jpg,a & b #1.jpg,\"a \"\"quoted\"\" <class>\",known,0.100000,-0.250000,0.750000,7\n\
                    unsure/new-1/é 50%.jpg,sub/é 50%.jpg,new-1,unsure,0.100000,-0.250000,0.250000,7\n\
                    new-1/c.png,sub/c.png,new-1,new,0.100000,-0.250000,,\n";
    assert_eq!(read(sorted.join("metadata.csv")), expected);
    for line in expected.lines().skip(1) {
        assert!(sorted.join(line.split(',').next().unwrap()).is_file(), "{line}");
    }
    assert!(read(sorted.join("README.md")).starts_with("---\nconfigs:\n"));
    // Once more is no change; a table of the user's is not replaced.
    ExportFiles::imagefolder(&sorting(), &items).unwrap().write().unwrap();
    for name in ["metadata.csv", "README.md"] {
        let ours = read(sorted.join(name));
        fs::write(sorted.join(name), "mine").unwrap();
        let error = ExportFiles::imagefolder(&sorting(), &items).unwrap_err();
        assert!(
            matches!(&error, ExportError::Taken { path } if path.ends_with(name)),
            "{error}"
        );
        assert_eq!(read(sorted.join(name)), "mine");
        fs::write(sorted.join(name), ours).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_text_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let mut items = items(folder.path());
    items[1].path = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.jpg"));
    fs::write(&items[1].path, "raw").unwrap();
    for error in [
        ExportFiles::label_studio(folder.path(), &items, "genus").unwrap_err(),
        ExportFiles::fiftyone(folder.path(), &items).unwrap_err(),
    ] {
        assert!(
            matches!(&error, ExportError::NotText { id, .. } if *id == items[1].id),
            "{error}"
        );
    }
    let sorting = Sorting::plan(&folder.path().join("sorted"), LinkKind::Sym, &items).unwrap();
    assert!(ExportFiles::imagefolder(&sorting, &items).is_ok());
}

#[test]
fn exports_have_names() {
    for export in Export::ALL {
        assert_eq!(export.to_string().parse(), Ok(export));
    }
    assert_eq!(
        "coco".parse::<Export>(),
        Err("one of label-studio, fiftyone, imagefolder".into())
    );
    for link in LinkKind::ALL {
        assert_eq!(link.to_string().parse(), Ok(link));
    }
    assert_eq!("move".parse::<LinkKind>(), Err("one of sym, hard, copy".into()));
}
