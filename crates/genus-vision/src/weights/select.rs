//! The network among the tensors of a checkpoint.

use std::collections::BTreeMap;

use genus_files::pickle::Value;

use super::checkpoint::Checkpoint;
use super::problem::Problem;
use super::storage::{Dtype, StorageSource, TensorEntry, read_tensors};
use super::{Tensor, Weights};

/// The parts of a checkpoint that hold a network, the best first: a self-supervised teacher is the average of its
/// student and has the better features.
const PARTS: [&str; 5] = ["teacher", "state_dict", "model", "model_state_dict", "student"];
/// What wrappers put before every name: parallel training, compilation, and a network with a head.
const WRAPPERS: [&str; 3] = ["module.", "_orig_mod.", "backbone."];
/// Beyond these a pickle repeats itself: dictionaries that hold each other can be small on disk and endless when
/// walked.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 1 << 18;
/// A network within a network within a checkpoint is as far as anyone goes.
const MAX_PARTS: usize = 3;
const MAX_NAME: usize = 1024;
const MAX_NAMES: usize = 1 << 26;

/// Finds the network in what a pickle built: its tensors by dotted name, and the part that they are.
pub(super) fn network(checkpoint: &Checkpoint) -> Result<(BTreeMap<String, TensorEntry>, Option<String>), Problem> {
    let mut dict = checkpoint.root();
    if checkpoint.entries(dict)?.is_none() {
        return Err(Problem::NoTensors);
    }
    let mut parts: Vec<&str> = Vec::new();
    let mut leaves = None;
    'inner: while parts.len() < MAX_PARTS {
        for part in PARTS {
            if let Some(inner) = checkpoint.item(dict, part)? {
                let found = DictWalk::flatten(checkpoint, inner)?;
                if !found.is_empty() {
                    (dict, leaves) = (inner, Some(found));
                    parts.push(part);
                    continue 'inner;
                }
            }
        }
        break;
    }
    let leaves = leaves.map_or_else(|| DictWalk::flatten(checkpoint, dict), Ok)?;
    Ok((leaves, (!parts.is_empty()).then(|| parts.join("."))))
}

/// Removes what wrappers added to the names, and reads the tensors.
pub(super) fn finish(
    leaves: BTreeMap<String, TensorEntry>,
    part: Option<String>,
    source: &mut dyn StorageSource,
    file_length: u64,
) -> Result<Weights, Problem> {
    let self_supervised = part
        .as_deref()
        .is_some_and(|part| part.ends_with("teacher") || part.ends_with("student"));
    let mut views = BTreeMap::new();
    for (name, leaf) in unwrap(leaves, self_supervised) {
        match leaf {
            TensorEntry::Floats(view) => views.insert(name, view),
            TensorEntry::Unsupported(kind) => return Err(Problem::Tensor { name, kind }),
        };
    }
    if views.is_empty() {
        return Err(Problem::NoTensors);
    }
    let quantised: Vec<String> = views
        .iter()
        .filter(|(_, view)| view.dtype == Dtype::I8)
        .map(|(name, _)| name.clone())
        .collect();
    let mut tensors = read_tensors(views, source, file_length)?;
    for name in &quantised {
        scale(&mut tensors, name)?;
    }
    Ok(Weights {
        tensors,
        part,
        int8: !quantised.is_empty(),
    })
}

/// The tensor with the scales of one of 8-bit integers.
pub(super) fn scale_of(name: &str) -> String {
    format!("{name}.scale")
}

/// Gives a tensor of 8-bit integers the values that they stand for: every output channel has a scale of its own.
fn scale(tensors: &mut BTreeMap<String, Tensor>, name: &str) -> Result<(), Problem> {
    let wrong = || {
        Problem::Malformed(format!(
            "tensor {name:?} of 8-bit integers has no scale for every output channel"
        ))
    };
    let scales = tensors.remove(&scale_of(name)).ok_or_else(wrong)?;
    let tensor = tensors.get_mut(name).ok_or_else(wrong)?;
    let channels = tensor.shape.first().copied().unwrap_or(0);
    if scales.shape != [channels] || channels == 0 {
        return Err(wrong());
    }
    let length = tensor.values.len() / channels;
    for (row, scale) in tensor.values.chunks_exact_mut(length.max(1)).zip(&scales.values) {
        row.iter_mut().for_each(|value| *value *= scale);
    }
    match tensor.values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(Problem::NotFinite(name.to_owned())),
    }
}

/// Removes prefixes as long as all names have them. Self-supervised networks are trained with projection heads that
/// are thrown away afterwards: beside a backbone they are dropped.
fn unwrap<T>(mut leaves: BTreeMap<String, T>, self_supervised: bool) -> BTreeMap<String, T> {
    let is_head = |name: &str| {
        let first = name.split('.').next().unwrap_or_default();
        first == "head" || first.ends_with("_head")
    };
    loop {
        let common = WRAPPERS.into_iter().find(|&prefix| {
            let wrapped = |name: &String| name.len() > prefix.len() && name.starts_with(prefix);
            !leaves.is_empty() && leaves.keys().all(wrapped)
        });
        if let Some(prefix) = common {
            let stripped = leaves
                .into_iter()
                .map(|(name, leaf)| (name[prefix.len()..].to_owned(), leaf));
            leaves = stripped.collect();
            continue;
        }
        let in_backbone = |name: &str| name.starts_with("backbone.");
        if self_supervised
            && leaves.keys().any(|name| in_backbone(name))
            && leaves.keys().all(|name| in_backbone(name) || is_head(name))
        {
            leaves.retain(|name, _| in_backbone(name));
            continue;
        }
        return leaves;
    }
}

/// One way through nested dictionaries.
struct DictWalk<'a> {
    checkpoint: &'a Checkpoint,
    leaves: BTreeMap<String, TensorEntry>,
    entries: usize,
    names: usize,
}

impl<'a> DictWalk<'a> {
    /// The tensors below a dictionary; none below anything else.
    fn flatten(checkpoint: &'a Checkpoint, dict: Value) -> Result<BTreeMap<String, TensorEntry>, Problem> {
        let mut walk = Self {
            checkpoint,
            leaves: BTreeMap::new(),
            entries: 0,
            names: 0,
        };
        let entries = checkpoint.entries(dict)?.unwrap_or_default();
        walk.dict(&entries, "", 0)?;
        Ok(walk.leaves)
    }

    fn dict(&mut self, entries: &[(Value, Value)], prefix: &str, depth: usize) -> Result<(), Problem> {
        let endless = || Problem::TooLarge("its dictionaries hold each other over and over".to_owned());
        if depth > MAX_DEPTH {
            return Err(endless());
        }
        let checkpoint = self.checkpoint;
        for &(key, value) in entries {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(endless());
            }
            let inner = checkpoint.entries(value)?;
            let leaf = match inner {
                Some(_) => None,
                None => checkpoint.leaf(value)?,
            };
            if inner.is_none() && leaf.is_none() {
                continue;
            }
            let unusable =
                || Problem::TooLarge(format!("the name of a tensor is over {MAX_NAME} bytes long or no text"));
            let number;
            let key = match (key, checkpoint.text(key)) {
                (_, Some(text)) => text,
                (Value::Int(int), _) => {
                    number = int.to_string();
                    &number
                }
                (Value::String(_), None) => return Err(unusable()),
                _ => continue,
            };
            if prefix.len() + key.len() > MAX_NAME {
                return Err(unusable());
            }
            // The state of an optimiser has the shapes of the weights and is none of them.
            if inner.is_some() && depth == 0 && key.starts_with("optim") {
                continue;
            }
            let name = format!("{prefix}{key}");
            if let Some(inner) = inner {
                self.dict(&inner, &format!("{name}."), depth + 1)?;
            }
            let Some(leaf) = leaf else { continue };
            self.names += name.len();
            if self.names > MAX_NAMES {
                return Err(endless());
            }
            if self.leaves.contains_key(&name) {
                return Err(Problem::Malformed(format!("two tensors have the name {name:?}")));
            }
            self.leaves.insert(name, leaf);
        }
        Ok(())
    }
}
