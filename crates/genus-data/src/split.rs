//! Which classes count as known and which as new: a JSON file like `{"base": ["cat", "dog"], "novel": ["owl"]}`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::DataError;
use genus_files::{MAX_TEXT, read_named};

/// The classes of a split file, as written: names or indices, not yet compared with any features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    path: PathBuf,
    base: Option<Vec<ClassRef>>,
    novel: Vec<ClassRef>,
}

/// A split whose classes are all in the features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSplit {
    /// The known classes.
    pub base: Vec<String>,
    /// The new classes.
    pub novel: Vec<String>,
}

/// A class by its name or its index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a class must be a name or an index")]
enum ClassRef {
    Index(u64),
    Name(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitFile {
    base: Option<Vec<ClassRef>>,
    novel: Vec<ClassRef>,
}

impl Split {
    /// Reads a split file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref().to_owned();
        if path.is_dir() {
            return Err(DataError::Directory { path });
        }
        let text = match read_named(&path, MAX_TEXT) {
            Ok(text) => text,
            Err(source) => return Err(DataError::Read { path, source }),
        };
        match serde_json::from_slice(&text) {
            Ok(SplitFile { base, novel }) => Ok(Self { path, base, novel }),
            Err(e) => Err(DataError::Split {
                path,
                problem: format!(
                    "{e}; it must look like {{\"base\": [\"cat\", \"dog\"], \"novel\": [\"owl\"]}}, where \
                     \"base\" may be left out"
                ),
            }),
        }
    }

    /// Finds the classes of the split among the distinct labels of the features.
    ///
    /// An index means the class that `class_names` has there, or without `class_names` the class that is called like
    /// the number. Without `base` every class that is not novel is a base class.
    pub fn resolve(&self, classes: &[String], class_names: Option<&[String]>) -> Result<ResolvedSplit, DataError> {
        let in_features: HashSet<&str> = classes.iter().map(String::as_str).collect();
        let mut listed = HashSet::new();
        let mut resolve = |list: &[ClassRef]| -> Result<Vec<String>, DataError> {
            let mut names = Vec::with_capacity(list.len());
            for class in list {
                let name = self.name(class, class_names)?;
                if !in_features.contains(name.as_str()) {
                    return Err(self.refuse(format!(
                        "class \"{name}\" is not among the labels of the features; correct its name or take it \
                         out of the split"
                    )));
                }
                if !listed.insert(name.clone()) {
                    return Err(self.refuse(format!("class \"{name}\" is listed twice; leave it in one place only")));
                }
                names.push(name);
            }
            Ok(names)
        };
        let base = self.base.as_deref().map(&mut resolve).transpose()?;
        let novel = resolve(&self.novel)?;
        if novel.is_empty() {
            return Err(self.refuse("\"novel\" is empty; list at least one new class".to_owned()));
        }
        let rest = || classes.iter().filter(|class| !listed.contains(class.as_str()));
        let base = match (base, rest().next()) {
            (None, _) => rest().cloned().collect(),
            (Some(base), None) => base,
            (Some(_), Some(class)) => {
                return Err(self.refuse(format!(
                    "class \"{class}\" of the features is neither in \"base\" nor in \"novel\"; add it to one, \
                     or leave out \"base\" so that all others count as base"
                )));
            }
        };
        Ok(ResolvedSplit { base, novel })
    }

    fn name(&self, class: &ClassRef, class_names: Option<&[String]>) -> Result<String, DataError> {
        match (class, class_names) {
            (ClassRef::Name(name), _) => Ok(name.clone()),
            (ClassRef::Index(index), None) => Ok(index.to_string()),
            (ClassRef::Index(index), Some(names)) => {
                let name = usize::try_from(*index).ok().and_then(|index| names.get(index));
                name.cloned().ok_or_else(|| {
                    self.refuse(format!(
                        "class {index} does not exist, as the features name {} classes, counted from 0; correct \
                         the index",
                        names.len()
                    ))
                })
            }
        }
    }

    fn refuse(&self, problem: String) -> DataError {
        DataError::Split {
            path: self.path.clone(),
            problem,
        }
    }
}
