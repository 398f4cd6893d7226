//! Items come in: each joins a group, waits, or forms a new group with others that wait.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use genus::{
    CalibrationFile, Embedder, ImageOptions, Items as Rows, Length, Progress, Skipped, Source, Table, TableOptions,
};
use genus_core::{Features, Knowledge, Stream, Support, Task};
use genus_data::{ImageItem, ImageList, is_image_source, list_images, same_encoder};
use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::collection::{Collection, Groups, LEFT_WAITING};
use crate::error::Error;
use crate::knowledge::{Model, remember};
use crate::levels::Level;
use crate::live::{find_each_other, settle_in};
use crate::model::{Entry, GroupId, ItemId, Place};
use crate::refresh::Time;
use crate::rules::{Draft, View};
use crate::store::{Key, Store, Which, tally_of};

/// Items that may be looked at together when those that wait are reviewed: all pairs of them are compared.
pub(crate) const REVIEWED: usize = 2000;

/// Classes whose examples say how far items of one lie apart.
const LEARNT_FROM: usize = 1000;

/// How items come in.
#[derive(Clone, Debug, Default)]
pub struct AddOptions {
    /// How images become features; by default as those before.
    pub images: ImageOptions,
    /// What the columns of a table are.
    pub tables: TableOptions,
    /// Whether labels are taken for what a person said: items go into groups of these names, as examples.
    pub labelled: bool,
}

/// What became of items that came in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AddOutcome {
    /// How many are new.
    pub new: u64,
    /// How many were there before.
    pub known: u64,
    /// How many of the new ones joined a group.
    pub joined: u64,
    /// How many of all wait now.
    pub waiting: u64,
    /// How many that had waited before have found a group.
    pub settled: u64,
    /// New groups, by name.
    pub born: Vec<String>,
    /// Whether it is worth refreshing.
    pub refresh_advised: bool,
    /// The entry of the log, if anything is new.
    pub entry: Option<Entry>,
    /// Images that could not be read, and why.
    #[serde(skip)]
    pub skipped: Vec<Skipped>,
}

/// An item that is to come in.
pub(crate) struct IncomingItem<'a> {
    pub(crate) key: Key,
    pub(crate) name: &'a str,
    pub(crate) path: Option<&'a Path>,
    pub(crate) label: Option<&'a str>,
}

impl Collection {
    /// Adds the items of a source. The same content twice is one item. Everything happens or nothing does; features of images stay
    /// in the cache whatever happens.
    pub fn add(
        &mut self,
        source: impl Into<Source>,
        options: &AddOptions,
        progress: &dyn Progress,
    ) -> Result<AddOutcome, Error> {
        let source = source.into();
        let named = source.path().to_owned();
        let folder = self.folder().to_owned();
        let origin = self.origin()?;
        let has_items = self.dim()?.is_some();
        let mut embedder = match has_items {
            true => Embedder::of_taxonomy(&options.images, &folder, &origin, progress),
            false => Embedder::new(&options.images, progress),
        };
        let images = match &source {
            Source::Path(path) if !is_pipe(path) && is_image_source(path, &options.tables)? => {
                Some(list_images(path, &options.tables)?)
            }
            _ => None,
        };
        let mut added = AddOutcome::default();
        let mut keys = BTreeMap::new();
        let rows = match images {
            None => embedder.items(source, &options.tables, options.labelled)?,
            Some(list) => {
                let without = list.items.iter().find(|item| options.labelled && item.label.is_none());
                if let Some(item) = without {
                    let image = item.id.clone();
                    return Err(genus::Error::UnlabelledImage {
                        source_path: named,
                        image,
                    }
                    .into());
                }
                let list = self.unknown_images(list, options, &mut keys, &mut added, progress)?;
                if list.items.is_empty() {
                    added.skipped = skipped(&list);
                    return self.finish_add(added);
                }
                embedder.embedded(&list, &named, None)?
            }
        };
        let header = rows.header()?;
        same_encoder(
            (&folder, origin.encoder.as_deref()),
            (&named, header.encoder.as_deref()),
        )?;
        if let Some(dim) = self.dim()?.filter(|&dim| dim != header.dim) {
            return Err(Error::Dim {
                source_path: named,
                found: header.dim,
                dim,
            });
        }
        progress.start("items", header.rows.map_or(Length::Unknown, Length::Steps));
        let used = embedder.used().cloned();
        let done = self.store.transaction(|store| {
            if !has_items {
                store.set_meta("dim", &header.dim.to_string())?;
            }
            if origin.encoder.is_none()
                && let Some(encoder) = &header.encoder
            {
                store.set_meta("encoder", encoder)?;
            }
            if origin.images.is_none()
                && let Some(used) = &used
            {
                store.set_encoder(used)?;
            }
            self.take_in(store, &rows, &keys, header.dim, &named, options, &mut added, progress)
        });
        progress.end();
        done?;
        added.skipped = embedder.skipped().to_vec();
        self.finish_add(added)
    }

    fn finish_add(&self, mut added: AddOutcome) -> Result<AddOutcome, Error> {
        let status = self.status()?;
        added.waiting = status.waiting;
        added.refresh_advised = status.refresh_advised;
        Ok(added)
    }

    /// The images that are not there yet; of those that are it is noted where they are now.
    fn unknown_images(
        &self,
        list: ImageList,
        options: &AddOptions,
        keys: &mut BTreeMap<String, (Key, PathBuf)>,
        added: &mut AddOutcome,
        progress: &dyn Progress,
    ) -> Result<ImageList, Error> {
        progress.start("looking for new images", Length::Steps(list.items.len() as u64));
        let hashed: Vec<Option<Key>> = list
            .items
            .par_iter()
            .map(|item| {
                let key = key_of_image(item);
                progress.step();
                key
            })
            .collect();
        progress.end();
        let mut seen = HashSet::new();
        let (all, mut unknown) = (
            list.items,
            ImageList {
                items: Vec::new(),
                ..list
            },
        );
        let mut moved = Vec::new();
        for (item, key) in all.into_iter().zip(hashed) {
            // What cannot be read is said when it is embedded.
            let Some(key) = key else {
                unknown.items.push(item);
                continue;
            };
            if !seen.insert(key) {
                added.known += 1;
                continue;
            }
            let found = self.store.item_of_key(&key)?;
            let path = std::path::absolute(&item.path).unwrap_or_else(|_| item.path.clone());
            match found {
                Some(id) if self.store.place(id)?.is_some() && !options.labelled => {
                    added.known += 1;
                    let before = self.store.item(id)?.and_then(|item| item.path);
                    if before.is_some_and(|before| before != path && !before.exists()) {
                        moved.push((id, path));
                    }
                }
                _ => {
                    keys.insert(item.id.clone(), (key, path));
                    unknown.items.push(item);
                }
            }
        }
        if !moved.is_empty() {
            self.store
                .transaction(|store| moved.iter().try_for_each(|(id, path)| store.set_path(*id, path)))?;
        }
        Ok(unknown)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one transaction")]
    fn take_in(
        &self,
        store: &Store,
        rows: &Rows,
        keys: &BTreeMap<String, (Key, PathBuf)>,
        dim: usize,
        source: &Path,
        options: &AddOptions,
        added: &mut AddOutcome,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let groups = Groups::read(store)?;
        // What comes first is sorted all at once, and by more than the examples alone.
        let is_first = !options.labelled && store.meta(LEFT_WAITING)?.is_none();
        let mut model = match is_first {
            true => None,
            false => Model::load(store, &groups, dim)?,
        };
        let kind = if options.labelled { "label" } else { "add" };
        let mut fresh: Vec<ItemId> = Vec::new();
        let entry = self.write(kind, |draft| {
            let mut seen: HashSet<Key> = HashSet::new();
            rows.for_each(|block: Table| {
                let features = rounded(&block.features)?;
                let mut coming = Vec::with_capacity(block.len());
                for (at, id) in block.ids.iter().enumerate() {
                    let (key, path) = match keys.get(id) {
                        Some((key, path)) => (*key, Some(path.as_path())),
                        None => (key_of_row(id, features.row(at)), None),
                    };
                    coming.push(IncomingItem {
                        key,
                        name: id,
                        path,
                        label: block.labels[at].as_deref().filter(|_| options.labelled),
                    });
                }
                take_block(
                    store,
                    draft,
                    model.as_mut(),
                    &coming,
                    &features,
                    &mut seen,
                    added,
                    &mut fresh,
                )?;
                progress.advance(block.len() as u64);
                Ok::<(), Error>(())
            })?;
            if let Some(model) = &model {
                self.review_with(store, draft, model, dim, &fresh, added)?;
            }
            Ok(json!({
                "from": source.display().to_string(),
                "new": added.new,
                "joined": added.joined,
                "settled": added.settled,
                "born": added.born,
            }))
        })?;
        if let Some(model) = &model
            && entry.is_some()
        {
            model.save(store)?;
        }
        added.entry = entry;
        if options.labelled {
            return self.learn_from_examples(store, dim);
        }
        if model.is_none() && added.new > 0 {
            added.joined = 0;
            let refreshed = self.refresh_within(store, Time::First, Level::AsFound, progress)?;
            added.born = refreshed.born();
            let waiting = tally_of(&store.tallies()?, Which::Waiting).items as u64;
            added.joined = added.new.saturating_sub(waiting);
        }
        Ok(())
    }

    /// What is known of how far items of a class lie apart before anything was sorted: what the encoder brings, or what the examples
    /// say.
    fn learn_from_examples(&self, store: &Store, dim: usize) -> Result<(), Error> {
        if store.knowledge()?.is_some() {
            return store.forget_centres();
        }
        let groups = Groups::read(store)?;
        let (mut items, mut labels) = (Vec::new(), Vec::new());
        let all: Vec<GroupId> = groups.parts.keys().copied().collect();
        for group in crate::knowledge::spread(&all, LEARNT_FROM) {
            for &part in &groups.parts[&group] {
                let members = crate::knowledge::spread(&store.members(part)?, 50);
                labels.extend(std::iter::repeat_n(group.to_string(), members.len()));
                items.extend(members);
            }
        }
        let Some(&first) = items.first() else { return Ok(()) };
        let support = Support::new(store.features(&items, dim)?, &labels)?;
        let task = Task::new(&support, store.features(&[first], dim)?)?;
        // The encoder's own calibration says more than a few examples do, and `refresh` goes by it as well.
        let shipped = CalibrationFile::shipped(store.meta("encoder")?.as_deref());
        let knowledge = shipped.map_or(Knowledge::Examples, |file| Knowledge::Calibration(file.calibration));
        let stream = Stream::of_examples(&task, &knowledge)?;
        let taxonomy = stream.taxonomy();
        match taxonomy.calibration() {
            Some(calibration) => remember(store, calibration, stream.familiar()),
            None => Ok(()),
        }
    }

    /// Lets those that wait find each other: new ones, and as many of those that have waited longest as there is room for.
    fn review_with(
        &self,
        store: &Store,
        draft: &mut Draft<Store>,
        model: &Model,
        dim: usize,
        fresh: &[ItemId],
        added: &mut AddOutcome,
    ) -> Result<(), Error> {
        if fresh.is_empty() {
            return Ok(());
        }
        let mut waiting: Vec<ItemId> = Vec::new();
        for &item in fresh.iter().rev().take(REVIEWED) {
            if matches!(draft.place(item)?, Some(placed) if matches!(placed.place, Place::Waiting { .. })) {
                waiting.push(item);
            }
        }
        let room = REVIEWED.saturating_sub(waiting.len());
        let earlier = store.items(Which::Waiting, ItemId::default(), room)?;
        let is_fresh: HashSet<ItemId> = waiting.iter().copied().collect();
        waiting.extend(
            earlier
                .iter()
                .map(|item| item.id)
                .filter(|item| !is_fresh.contains(item)),
        );
        waiting.sort_unstable();
        if waiting.is_empty() {
            return Ok(());
        }
        let found = find_each_other(store, model, dim, &waiting)?;
        let (settled, born) = settle_in(draft, &found)?;
        let joined = settled.iter().filter(|item| is_fresh.contains(item)).count() as u64;
        added.joined += joined;
        added.settled += settled.len() as u64 - joined;
        added.born.extend(born);
        Ok(())
    }
}

/// Takes in a block of items: what is there is left alone, the others join or wait.
#[expect(clippy::too_many_arguments, reason = "the parts of one transaction")]
pub(crate) fn take_block(
    store: &Store,
    draft: &mut Draft<Store>,
    model: Option<&mut Model>,
    coming: &[IncomingItem],
    features: &Features,
    seen: &mut HashSet<Key>,
    added: &mut AddOutcome,
    fresh: &mut Vec<ItemId>,
) -> Result<(), Error> {
    // The row, the item, and whether it was here before.
    let mut new: Vec<(usize, ItemId, bool)> = Vec::new();
    for (at, item) in coming.iter().enumerate() {
        let found = store.item_of_key(&item.key)?;
        let is_there = match found {
            Some(id) => draft.place(id)?.is_some(),
            None => false,
        };
        if !seen.insert(item.key) || is_there {
            added.known += 1;
            // What is labelled is an example wherever it was before.
            if let (Some(id), Some(label)) = (found, item.label) {
                put_labelled(draft, id, label)?;
            }
            continue;
        }
        let id = match found {
            Some(id) => id,
            None => {
                let row: Vec<f16> = features.row(at).iter().map(|&value| f16::from_f32(value)).collect();
                store.insert_item(&item.key, item.name, item.path, None, &row)?
            }
        };
        added.new += 1;
        if let Some(label) = item.label {
            added.joined += 1;
            draft.put_new(id, WAITING);
            put_labelled(draft, id, label)?;
            continue;
        }
        new.push((at, id, found.is_some()));
    }
    fresh.extend(new.iter().map(|&(_, id, _)| id));
    let Some(model) = model else {
        new.iter().for_each(|&(_, id, _)| draft.put_new(id, WAITING));
        return Ok(());
    };
    if new.is_empty() {
        return Ok(());
    }
    let rows = features.select(&new.iter().map(|&(at, ..)| at).collect::<Vec<_>>());
    let found = model.taxonomy.assign(&rows)?;
    let mut joined = Vec::with_capacity(found.len());
    for (&(_, id, was_here), assignment) in new.iter().zip(&found) {
        let group = model.groups[assignment.category];
        let probability = assignment.score.probability;
        let place = match assignment.score.unsure {
            true => Place::Waiting {
                guess: Some(group),
                probability,
            },
            false => Place::In {
                group,
                probability,
                said: false,
            },
        };
        // One that was taken back and comes again may have been said not to belong there.
        let place = match place.group() {
            Some(group) if was_here && draft.is_rejected(id, group)? => WAITING,
            _ => place,
        };
        joined.push(place.group().and(Some(assignment.category)));
        added.joined += u64::from(place.group().is_some());
        draft.put_new(id, place);
    }
    model.learn(&rows, &joined, &found)
}

/// Without a guess.
const WAITING: Place = Place::Waiting {
    guess: None,
    probability: None,
};

/// Makes an item an example of the group of a name, which is made if need be.
fn put_labelled(draft: &mut Draft<Store>, item: ItemId, label: &str) -> Result<(), Error> {
    let group = match draft.called_now(label)? {
        Some(group) => group,
        None => draft.new_group(Some(label))?,
    };
    draft.act(&crate::model::Action::Move {
        items: vec![item],
        to: group,
    })
}

/// Rows of length one, as half floats have them: so they are stored, and so they are judged.
pub(crate) fn rounded(features: &Features) -> Result<Features, Error> {
    let dim = features.dim();
    let mut values = features.clone().into_unit()?.into_values();
    let mut half = vec![f16::ZERO; dim];
    for row in values.chunks_exact_mut(dim) {
        half.convert_from_f32_slice(row);
        half.convert_to_f32_slice(row);
    }
    Ok(Features::new(dim, values)?)
}

/// What an image is known by: its bytes.
pub(crate) fn key_of_image(item: &ImageItem) -> Option<Key> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"image");
    std::io::copy(&mut File::open(&item.path).ok()?, &mut hasher).ok()?;
    if let Some(pixels) = &item.pixels {
        hasher.update(format!("{pixels:?}").as_bytes());
    }
    Some(short(&hasher))
}

/// The same of an image that is in memory.
pub(crate) fn key_of_bytes(bytes: &[u8]) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"image");
    hasher.update(bytes);
    short(&hasher)
}

/// What the row of a table is known by: its id and its features.
pub(crate) fn key_of_row(id: &str, features: &[f32]) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"row");
    hasher.update(&(id.len() as u64).to_le_bytes());
    hasher.update(id.as_bytes());
    let bytes: Vec<u8> = features.iter().flat_map(|value| value.to_le_bytes()).collect();
    hasher.update(&bytes);
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> Key {
    *hasher.finalize().as_bytes().first_chunk().expect("32 bytes")
}

fn skipped(list: &ImageList) -> Vec<Skipped> {
    let skipped = list.skipped.iter().map(|(path, reason)| Skipped {
        path: path.clone(),
        reason: reason.clone(),
    });
    skipped.collect()
}

fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    return std::fs::metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type()));
    #[cfg(not(unix))]
    return path.as_os_str().is_empty();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_known_by_its_name_and_its_features() {
        let key = key_of_row("a", &[1.0, 0.5]);
        assert_eq!(key, key_of_row("a", &[1.0, 0.5]));
        assert_ne!(key, key_of_row("b", &[1.0, 0.5]));
        assert_ne!(key, key_of_row("a", &[1.0, 0.25]));
    }

    #[test]
    fn large_and_small_numbers_are_stored_by_their_direction() {
        let rows = Features::from_rows([[3e30f32, 4e30], [3e-30, 4e-30]]).unwrap();
        let rounded = rounded(&rows).unwrap();
        for row in rounded.iter() {
            assert!((row[0] - 0.6).abs() < 1e-3 && (row[1] - 0.8).abs() < 1e-3, "{row:?}");
        }
    }
}
