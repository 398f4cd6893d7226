//! Label Studio: tasks with predictions, and the labelling configuration they are for.
//!
//! Label Studio serves files of its own machine below one folder, the document root, and only those that a local storage of
//! the project holds. Both are chosen here from where the images are.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Export, ExportError, ExportFiles, absolute, categories, number};
use crate::sorting::SortedItem;

pub(super) fn export(folder: &Path, items: &[SortedItem], made_by: &str) -> Result<ExportFiles, ExportError> {
    let mut paths = Vec::with_capacity(items.len());
    for item in items {
        let mut path = PathBuf::new();
        paths.push(absolute(item, Export::LabelStudio, &mut path)?.to_owned());
    }
    let storage = common_folder(&paths);
    // A storage has to be a folder below the root.
    let root = storage.parent().unwrap_or(&storage).to_owned();
    let tasks: Vec<Value> = items
        .iter()
        .zip(&paths)
        .map(|(item, path)| {
            task(
                item,
                Path::new(path).strip_prefix(&root).unwrap_or(Path::new(path)),
                made_by,
            )
        })
        .collect();
    let tasks = format!("{:#}\n", Value::Array(tasks));
    let (tasks_file, config_file) = (folder.join("label-studio.json"), folder.join("label-studio.xml"));
    let next = format!(
        "Label Studio: start it with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true \
         LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={}, make a project with {} as its labelling interface and a local storage {}, \
         and import {}",
        root.display(),
        config_file.display(),
        storage.display(),
        tasks_file.display()
    );
    Ok(ExportFiles {
        files: vec![
            (tasks_file, tasks.into_bytes()),
            (config_file, configuration(&categories(items)).into_bytes()),
        ],
        next,
    })
}

fn task(item: &SortedItem, below_root: &Path, made_by: &str) -> Value {
    let mut prediction = json!({
        "model_version": made_by,
        "result": [{
            "id": "category",
            "from_name": "category",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": [item.category]},
        }],
    });
    if let Some(probability) = item.score.probability {
        prediction["score"] = number(probability);
    }
    let mut task = json!({
        "data": {
            "image": format!("/data/local-files/?d={}", quoted(below_root)),
            "id": item.id,
            "kind": item.row().kind(),
            "score": number(item.score.similarity),
            "margin": number(item.score.margin),
        },
        "predictions": [prediction],
    });
    if let Some(scene) = item.scene {
        task["data"]["scene"] = scene.into();
    }
    task
}

/// The labelling interface: the image, and one choice a category.
fn configuration(categories: &[&str]) -> String {
    let mut text = String::from(
        "<View>\n  <Image name=\"image\" value=\"$image\" zoom=\"true\"/>\n  \
         <Choices name=\"category\" toName=\"image\" choice=\"single-radio\" showInline=\"true\">\n",
    );
    for category in categories {
        let _ = writeln!(text, "    <Choice value=\"{}\"/>", escaped(category));
    }
    text + "  </Choices>\n</View>\n"
}

/// Text inside an attribute. What XML cannot hold at all becomes �.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // An attribute's white space would become blanks.
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A path in the query of an address, with slashes on every system.
fn quoted(path: &Path) -> String {
    let mut out = String::new();
    for part in path.components() {
        if !out.is_empty() {
            out.push('/');
        }
        for byte in part.as_os_str().as_encoded_bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
                byte => {
                    let _ = write!(out, "%{byte:02X}");
                }
            }
        }
    }
    out
}

/// The folder that all files are below.
fn common_folder(paths: &[String]) -> PathBuf {
    let mut common: Option<PathBuf> = None;
    for path in paths {
        let folder = Path::new(path).parent().unwrap_or(Path::new(path));
        let common = common.get_or_insert_with(|| folder.to_owned());
        while !folder.starts_with(&*common) && common.pop() {}
    }
    common.unwrap_or_default()
}
