//! Corrections come back in from where people make them: a table of assignments, a Label Studio or FiftyOne export, a folder
//! that was sorted by hand.
//!
//! Only what differs from the collection is a correction: a row that nobody touched says nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use genus_data::{folders_of, list_folder};
use serde::Serialize;
use serde_json::Value;

use crate::add::key_of_image;
use crate::collection::{Collection, ItemInfo, ItemState, numbered};
use crate::error::Error;
use crate::model::{Action, Entry, GroupId, ItemId};

/// The largest file of corrections.
const LARGEST: u64 = 1 << 30;
/// Names of items that are listed when they are not found.
const LISTED: usize = 10;
/// What stands for items that belong to no class.
const NOISE: &str = "noise";

/// Corrections, before they are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Corrections {
    /// What is to be done.
    pub actions: Vec<Action>,
    /// Rows or files that say what is so already.
    pub unchanged: u64,
    /// Rows or files that match no item here.
    pub unknown: u64,
    /// Some of these.
    pub unknown_names: Vec<String>,
    /// Items that several rows contradict each other about; the last one counts.
    pub contradicted: u64,
}

/// What somebody says about an item.
struct Word {
    /// What they call it.
    name: String,
    /// Its file, where it is known.
    path: Option<PathBuf>,
    /// The group it is said to be in; empty for none.
    category: String,
    /// Whether that is said to be sure, where anything is said.
    sure: Option<bool>,
}

impl Collection {
    /// What a file or a folder of corrections says that differs from the collection.
    pub fn corrections(&self, path: &Path) -> Result<Corrections, Error> {
        let wrong = |problem: String| Error::Corrections {
            path: path.to_owned(),
            problem,
        };
        if path.is_dir() {
            return self.corrections_of_folder(path);
        }
        let bytes = genus_files::read_named(path, LARGEST).map_err(|e| wrong(e.to_string()))?;
        let text = decoded(&bytes);
        let words = match text.trim_start().chars().next() {
            Some('[' | '{') => json_words(&text).map_err(wrong)?,
            _ => table_words(&text).map_err(wrong)?,
        };
        self.compare(path, words, &BTreeMap::new())
    }

    /// Makes corrections, as one entry of the log; `None` when there are none.
    pub fn apply(&mut self, path: &Path, corrections: Corrections) -> Result<Option<Entry>, Error> {
        if corrections.actions.is_empty() {
            return Ok(None);
        }
        self.act(&corrections.into_action(path))
    }

    fn corrections_of_folder(&self, path: &Path) -> Result<Corrections, Error> {
        let list = list_folder(path)?;
        let groups = self.groups()?;
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        // What a folder is called need not be what the group is called.
        let of_folder: HashMap<String, &str> = folders_of(names.iter().copied())
            .into_iter()
            .map(|(name, folder)| (folder.to_lowercase(), name))
            .collect();
        let mut words = Vec::new();
        let mut by_content = BTreeMap::new();
        for image in &list.items {
            let is_doubtful = image.label.is_none() && image.id.starts_with("unsure/");
            let folder = match is_doubtful {
                true => image.id.split('/').nth(1).unwrap_or_default(),
                false => image.label.as_deref().unwrap_or_default(),
            };
            // Beside the folders nothing is said.
            if folder.is_empty() {
                continue;
            }
            let category = of_folder.get(&folder.to_lowercase()).copied().unwrap_or(folder);
            if let Some(key) = key_of_image(image)
                && let Some(item) = self.store.item_of_key(&key)?
            {
                by_content.insert(image.id.clone(), item);
            }
            words.push(Word {
                name: image.id.clone(),
                path: std::fs::canonicalize(&image.path).ok(),
                category: category.to_owned(),
                sure: Some(!is_doubtful),
            });
        }
        self.compare(path, words, &by_content)
    }

    /// What words say that is not so.
    fn compare(&self, path: &Path, words: Vec<Word>, known: &BTreeMap<String, ItemId>) -> Result<Corrections, Error> {
        self.store.snapshot(|_| {
            let mut by_name: HashMap<String, Vec<ItemId>> = HashMap::new();
            let mut by_path: HashMap<PathBuf, ItemId> = HashMap::new();
            let mut items: BTreeMap<ItemId, ItemInfo> = BTreeMap::new();
            self.for_each_block(|block| {
                for item in block {
                    by_name.entry(item.name.clone()).or_default().push(item.id);
                    if let Some(path) = &item.path {
                        by_path.insert(path.clone(), item.id);
                    }
                    items.insert(item.id, item);
                }
                Ok(())
            })?;
            let mut found = Corrections::default();
            let mut said: BTreeMap<ItemId, Word> = BTreeMap::new();
            for word in words {
                let item = known
                    .get(&word.name)
                    .copied()
                    .or_else(|| word.path.as_ref().and_then(|path| by_path.get(path).copied()))
                    .or_else(|| match by_name.get(&word.name).map(Vec::as_slice) {
                        Some([item]) => Some(*item),
                        _ => None,
                    })
                    .or_else(|| numbered(&word.name))
                    .filter(|item| items.contains_key(item));
                let Some(item) = item else {
                    found.unknown += 1;
                    if found.unknown_names.len() < LISTED {
                        found.unknown_names.push(word.name);
                    }
                    continue;
                };
                let before = said.insert(item, word);
                let differs = |before: &Word| before.category != said[&item].category;
                found.contradicted += u64::from(before.as_ref().is_some_and(differs));
            }
            if said.is_empty() {
                let names = found.unknown_names.join(", ");
                return Err(Error::Corrections {
                    path: path.to_owned(),
                    problem: match names.is_empty() {
                        true => "it says nothing about any item".to_owned(),
                        false => format!("none of its items is in the collection: {names}"),
                    },
                });
            }
            self.plan(&items, &said, &mut found)?;
            Ok(found)
        })
    }

    fn plan(
        &self,
        items: &BTreeMap<ItemId, ItemInfo>,
        said: &BTreeMap<ItemId, Word>,
        found: &mut Corrections,
    ) -> Result<(), Error> {
        let groups: HashMap<String, GroupId> = self
            .groups()?
            .into_iter()
            .filter(|group| !group.holds_groups)
            .map(|group| (group.name, group.id))
            .collect();
        // A group all of whose items are said to be of one new name has that name.
        let mut told: BTreeMap<GroupId, BTreeSet<&str>> = BTreeMap::new();
        let mut untold: BTreeSet<GroupId> = BTreeSet::new();
        for (id, item) in items {
            if let ItemState::In { group, .. } = item.state {
                match said.get(id) {
                    Some(word) => _ = told.entry(group).or_default().insert(word.category.trim()),
                    None => _ = untold.insert(group),
                }
            }
        }
        let mut renamed: BTreeMap<GroupId, &str> = BTreeMap::new();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        for (group, names) in &told {
            let name = names.first().copied().unwrap_or_default();
            let is_new = !name.is_empty() && name != NOISE && !groups.contains_key(name);
            if names.len() == 1 && is_new && !untold.contains(group) && taken.insert(name) {
                renamed.insert(*group, name);
                found.actions.push(Action::Name {
                    group: *group,
                    name: name.to_owned(),
                });
            }
        }
        let of_new_name: HashMap<&str, GroupId> = renamed.iter().map(|(&group, &name)| (name, group)).collect();
        let (mut moved, mut to_new) = (
            BTreeMap::<GroupId, Vec<ItemId>>::new(),
            BTreeMap::<&str, Vec<ItemId>>::new(),
        );
        let (mut confirmed, mut rejected, mut noise) = (Vec::new(), Vec::new(), Vec::new());
        for (&id, word) in said {
            let category = word.category.trim();
            let target = groups.get(category).or_else(|| of_new_name.get(category)).copied();
            let is_noise = category == NOISE && target.is_none();
            match &items[&id].state {
                ItemState::Noise if is_noise => found.unchanged += 1,
                _ if is_noise => noise.push(id),
                ItemState::In { group, .. } => match (target, word.sure) {
                    (_, Some(false)) => rejected.push(id),
                    (Some(target), _) if target == *group => found.unchanged += 1,
                    (Some(target), _) => moved.entry(target).or_default().push(id),
                    (None, _) if category.is_empty() => rejected.push(id),
                    (None, _) => to_new.entry(category).or_default().push(id),
                },
                ItemState::Waiting { guess, .. } => match (target, word.sure) {
                    // It waits, and nobody is sure of anything else.
                    (_, Some(false)) => found.unchanged += 1,
                    (None, _) if category.is_empty() => found.unchanged += 1,
                    (Some(target), None) if *guess == Some(target) => found.unchanged += 1,
                    (Some(target), _) if *guess == Some(target) => confirmed.push(id),
                    (Some(target), _) => moved.entry(target).or_default().push(id),
                    (None, _) => to_new.entry(category).or_default().push(id),
                },
                ItemState::Noise => match target {
                    Some(target) => moved.entry(target).or_default().push(id),
                    None if category.is_empty() => found.unchanged += 1,
                    None => to_new.entry(category).or_default().push(id),
                },
            }
        }
        let actions = &mut found.actions;
        actions.extend(moved.into_iter().map(|(to, items)| Action::Move { items, to }));
        actions.extend(to_new.into_iter().map(|(name, items)| Action::MoveToNew {
            items,
            name: Some(name.to_owned()),
        }));
        if !confirmed.is_empty() {
            actions.push(Action::Confirm { items: confirmed });
        }
        if !rejected.is_empty() {
            actions.push(Action::Reject { items: rejected });
        }
        if !noise.is_empty() {
            actions.push(Action::Noise { items: noise });
        }
        Ok(())
    }
}

impl Corrections {
    /// All of them as one action.
    pub fn into_action(self, from: &Path) -> Action {
        Action::Several {
            from: from.display().to_string(),
            actions: self.actions,
        }
    }
}

/// Bytes as text: UTF-8, with or without a mark before it, UTF-16 with one, or else what Western Windows writes.
fn decoded(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.as_chunks().0.iter().map(|&pair| unit(pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&byte| windows(byte)).collect(),
        },
    }
}

/// A byte of code page 1252.
fn windows(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// The rows of a table of assignments, whatever a spreadsheet made of it.
fn table_words(text: &str) -> Result<Vec<Word>, String> {
    // Some write the separator into a line of its own.
    let text = match text.split_once('\n') {
        Some((first, rest)) if first.trim().to_lowercase().starts_with("sep=") => rest,
        _ => text,
    };
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let separator = [',', ';', '\t']
        .into_iter()
        .max_by_key(|&mark| (header.matches(mark).count(), mark == ','))
        .unwrap_or(',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator as u8)
        .flexible(true)
        .has_headers(true)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|e| e.to_string())?.clone();
    let column = |names: &[&str]| {
        let is_one = |cell: &str| names.contains(&cell.trim().trim_matches('\'').to_lowercase().as_str());
        headers.iter().position(is_one)
    };
    let id = column(&["id", "item", "path"]).ok_or("it has no column id")?;
    let category = column(&["category", "label", "group", "class"]).ok_or("it has no column category")?;
    let kind = column(&["kind"]);
    let mut words = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| e.to_string())?;
        let cell = |at: usize| unmarked(record.get(at).unwrap_or_default());
        let name = cell(id);
        if name.trim().is_empty() {
            continue;
        }
        let sure = kind
            .map(&cell)
            .and_then(|kind| match kind.trim().to_lowercase().as_str() {
                "unsure" => Some(false),
                "known" | "new" | "in" => Some(true),
                _ => None,
            });
        words.push(Word {
            path: Some(PathBuf::from(name)),
            name: name.to_owned(),
            category: cell(category).to_owned(),
            sure,
        });
    }
    Ok(words)
}

/// A cell without the mark that keeps a spreadsheet from taking it for a formula.
fn unmarked(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '-', '@', '\t', '\r']) => rest,
        _ => cell,
    }
}

/// What a Label Studio export (JSON, or its short form) or the labels of a FiftyOne data set say; or lines of JSON.
fn json_words(text: &str) -> Result<Vec<Word>, String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let lines: Result<Vec<Value>, _> = text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(serde_json::from_str)
                .collect();
            Value::Array(lines.map_err(|_| format!("it is no JSON: {error}"))?)
        }
    };
    match &value {
        Value::Object(map) => match (map.get("labels"), map.get("classes")) {
            (Some(Value::Object(labels)), classes) => {
                let classes = classes.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                Ok(labels
                    .iter()
                    .filter_map(|(path, label)| fiftyone(path, label, classes))
                    .collect())
            }
            _ => Err("it has no labels; a FiftyOne data set has them".to_owned()),
        },
        Value::Array(tasks) => {
            let words: Vec<Word> = tasks.iter().filter_map(task).collect();
            match words.is_empty() && !tasks.is_empty() {
                true => Err("none of its tasks has an annotation".to_owned()),
                false => Ok(words),
            }
        }
        _ => Err("it is neither a Label Studio export nor a FiftyOne data set".to_owned()),
    }
}

fn fiftyone(path: &str, label: &Value, classes: &[Value]) -> Option<Word> {
    let category = match label {
        Value::String(name) => name.clone(),
        Value::Number(number) => classes.get(number.as_u64()? as usize)?.as_str()?.to_owned(),
        Value::Object(map) => match map.get("label")? {
            Value::String(name) => name.clone(),
            _ => return None,
        },
        // A sample without a label.
        Value::Null => String::new(),
        _ => return None,
    };
    let item = label["attributes"]["item"].as_str();
    Some(Word {
        name: item.unwrap_or(path).to_owned(),
        path: Some(PathBuf::from(path)),
        category,
        sure: None,
    })
}

/// A task of Label Studio, or a line of assignments. Without an annotation it says nothing.
fn task(task: &Value) -> Option<Word> {
    let choice = |value: &Value| -> Option<String> {
        match value {
            Value::String(name) => Some(name.clone()),
            Value::Array(names) => names.first()?.as_str().map(str::to_owned),
            Value::Object(map) => map.get("choices")?.as_array()?.first()?.as_str().map(str::to_owned),
            _ => None,
        }
    };
    let image_path = |image: &Value| -> Option<PathBuf> {
        let image = image.as_str()?;
        let path = image.split_once("?d=").map_or(image, |(_, path)| path);
        Some(PathBuf::from(unquoted(path)))
    };
    if let Some(annotations) = task.get("annotations").and_then(Value::as_array) {
        let valid = annotations
            .iter()
            .rev()
            .find(|annotation| annotation["was_cancelled"] != true)?;
        let results = valid["result"].as_array()?;
        let category = results.iter().find_map(|result| choice(&result["value"]))?;
        return Some(Word {
            name: task["data"]["id"].as_str()?.to_owned(),
            path: image_path(&task["data"]["image"]),
            category,
            sure: Some(true),
        });
    }
    let name = task.get("id")?;
    let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    Some(Word {
        name,
        path: image_path(&task["image"]),
        category: choice(task.get("category").or_else(|| task.get("label"))?)?,
        sure: match task["kind"].as_str() {
            Some("unsure") => Some(false),
            Some(_) => Some(true),
            None => None,
        },
    })
}

/// A text without the escapes of an address.
fn unquoted(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |digit: u8| char::from(digit).to_digit(16);
        match (first, after) {
            (b'%', [high, low, beyond @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push((hex(*high).unwrap_or(0) * 16 + hex(*low).unwrap_or(0)) as u8);
                rest = beyond;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_understood_after_a_spreadsheet() {
        let expected = [("a.jpg", "gull", Some(false)), ("=b", "tern", None)];
        for text in [
            "id,category,kind\na.jpg,gull,unsure\n'=b,tern,\n",
            "sep=;\r\n\"ID\";Category ;kind\r\n\"a.jpg\";gull;unsure\r\n'=b;tern;\r\n;;\r\n",
            "score\tkind\tcategory\tid\n0,5\tunsure\tgull\ta.jpg\n0,25\t\ttern\t'=b\n",
        ] {
            let words = table_words(text).unwrap();
            let words: Vec<_> = words
                .iter()
                .map(|word| (word.name.as_str(), word.category.as_str(), word.sure))
                .collect();
            assert_eq!(words, expected, "{text}");
        }
        assert!(table_words("name,x\n").is_err());
    }

    #[test]
    fn texts_of_windows_are_read() {
        assert_eq!(decoded(b"M\xf6we \x96 5 \x80"), "Möwe – 5 €");
        assert_eq!(decoded(b"\xef\xbb\xbfM\xc3\xb6we"), "Möwe");
        assert_eq!(decoded(b"\xff\xfeM\0\xf6\0"), "Mö");
    }

    #[test]
    fn label_studio_and_fiftyone_are_read() {
        let studio = r#"[
            {"data": {"id": "a", "image": "/data/local-files/?d=x%20y.jpg"},
             "annotations": [{"result": [{"value": {"choices": ["old"]}}]}, {"result": [{"value": {"choices": ["gull"]}}]},
                             {"was_cancelled": true, "result": []}]},
            {"data": {"id": "b"}, "annotations": []}]"#;
        let words = json_words(studio).unwrap();
        assert_eq!(words.len(), 1);
        assert_eq!((&*words[0].name, &*words[0].category), ("a", "gull"));
        assert_eq!(words[0].path.as_deref(), Some(Path::new("x y.jpg")));
        let fiftyone = r#"{"classes": ["gull", "tern"], "labels": {"/p/a.jpg": 1, "/p/b.jpg": {"label": "gull", "attributes": {"item": "b"}}}}"#;
        let words = json_words(fiftyone).unwrap();
        let words: Vec<_> = words.iter().map(|word| (&*word.name, &*word.category)).collect();
        assert_eq!(words, [("/p/a.jpg", "tern"), ("b", "gull")]);
    }
}
