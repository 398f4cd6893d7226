//! A collection: its folder, what is in it, and what can be said about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use genus_data::{EncoderRecord, Origin};
use genus_files::FolderLock;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::Error;
use crate::model::{Action, Entry, EntryId, Group, GroupId, ItemId, Place, PlacedItem};
use crate::rules::{Changes, Draft, Refusal, View};
use crate::store::{NewEntry, Store, StoredItem, Tallies, Which, tally_of};

/// Items that the log names one by one; of more it has the number, and the places in its tables.
const NAMED_ITEMS: usize = 50;
/// Where it is noted how many items waited when all had been sorted.
pub(crate) const LEFT_WAITING: &str = "left_waiting";
/// Items with the same name that an error lists.
const LISTED: usize = 5;

/// A folder with items, groups, and everything that was ever said about them.
///
/// What is read is of one moment, and never waits for who writes; one process at a time may write.
pub struct Collection {
    folder: PathBuf,
    pub(crate) store: Store,
    author: String,
    /// What items that come one by one are judged by, as long as nothing else changes.
    pub(crate) live: Option<crate::live::Live>,
    /// Nobody else writes as long as this lives.
    _lock: Option<FolderLock>,
}

/// A group as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupInfo {
    /// Its number.
    pub id: GroupId,
    /// What it is called.
    pub name: String,
    /// Whether a person called it that.
    pub named: bool,
    /// How many items are in it.
    pub items: u64,
    /// How many of them a person put there or confirmed.
    pub confirmed: u64,
    /// How many wait that it is the best guess for.
    pub guessed: u64,
    /// The groups that were merged into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The larger group that it is one of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<GroupId>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_name: Option<String>,
    /// Whether it holds groups and no items.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub holds_groups: bool,
}

/// An item as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemInfo {
    /// Its number.
    pub id: ItemId,
    /// What it is called.
    pub name: String,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Where it is.
    #[serde(flatten)]
    pub state: ItemState,
    /// The larger group that the group is one of which it is in, or which is guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<GroupId>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_name: Option<String>,
    /// The number of its scene, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scene: Option<i64>,
}

/// Where an item is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum ItemState {
    /// In a group.
    In {
        /// The group.
        group: GroupId,
        /// Its name.
        group_name: String,
        /// How likely it belongs there.
        probability: Option<f32>,
        /// Whether a person said so.
        confirmed: bool,
        /// Whether it stays there because of a merge or a split.
        bound: bool,
    },
    /// Waits.
    Waiting {
        /// The best guess.
        guess: Option<GroupId>,
        /// Its name.
        guess_name: Option<String>,
        /// How likely it belongs there.
        probability: Option<f32>,
    },
    /// Belongs nowhere.
    Noise,
}

/// Where an item is shown: in its group, or with the best guess while it waits.
pub(crate) struct Shown<'a> {
    pub(crate) group: Option<GroupId>,
    pub(crate) name: &'a str,
    pub(crate) probability: Option<f32>,
    pub(crate) unsure: bool,
}

impl ItemState {
    /// Where the item is shown; nowhere if it belongs to no class. What a person said is certain.
    pub(crate) fn shown(&self) -> Option<Shown<'_>> {
        match self {
            ItemState::In {
                group,
                group_name,
                probability,
                confirmed,
                ..
            } => Some(Shown {
                group: Some(*group),
                name: group_name,
                probability: if *confirmed { Some(1.0) } else { *probability },
                unsure: false,
            }),
            ItemState::Waiting {
                guess,
                guess_name,
                probability,
            } => Some(Shown {
                group: *guess,
                name: guess_name.as_deref().unwrap_or_default(),
                probability: *probability,
                unsure: true,
            }),
            ItemState::Noise => None,
        }
    }
}

/// A collection in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The folder.
    pub folder: PathBuf,
    /// All items that are there.
    pub items: u64,
    /// Those in groups that have names.
    pub in_named: u64,
    /// Those in groups without.
    pub in_new: u64,
    /// Those that wait.
    pub waiting: u64,
    /// Those that belong to no class.
    pub noise: u64,
    /// Those that a person put somewhere or confirmed there.
    pub confirmed: u64,
    /// Groups with names.
    pub named_groups: u64,
    /// Groups without.
    pub new_groups: u64,
    /// Features per item.
    pub dim: Option<usize>,
    /// What made the features.
    pub encoder: Option<String>,
    /// The last entry of the log.
    pub log: EntryId,
    /// Whether refreshing is worth it: so much waits.
    pub refresh_advised: bool,
    /// What the next undo would undo, in a word.
    pub undo: Option<String>,
    /// What the next redo would redo.
    pub redo: Option<String>,
}

/// What an action would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Preview {
    /// How many items change their place.
    pub moved: u64,
    /// How many stay where they are and are confirmed.
    pub confirmed: u64,
    /// How many are out of their group.
    pub released: u64,
    /// How many belong to no class.
    pub noise: u64,
    /// The names of new groups.
    pub new_groups: Vec<String>,
    /// Groups that change their name: before and after.
    pub renamed: Vec<(String, String)>,
}

impl Collection {
    /// Makes an empty collection in a folder, which is made if need be. `author` is who the log says it was.
    pub fn create(folder: impl AsRef<Path>, author: &str) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let made = genus::Folder::create(folder, genus::Purpose::Collection)?;
        let lock = FolderLock::take(folder)?;
        let store = Store::create(folder)?;
        store.transaction(|store| {
            store.set_meta("version", env!("CARGO_PKG_VERSION"))?;
            store.set_meta("seed", "0")
        })?;
        made.keep();
        Ok(Self {
            folder: folder.to_owned(),
            store,
            author: author.to_owned(),
            live: None,
            _lock: Some(lock),
        })
    }

    /// Opens a collection to look at it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        Ok(Self {
            folder: folder.to_owned(),
            store: Store::open(folder, false)?,
            author: String::new(),
            live: None,
            _lock: None,
        })
    }

    /// Opens a collection to change it. Another process that does so is waited for a few seconds; then the error says which.
    pub fn open_to_write(folder: impl AsRef<Path>, author: &str) -> Result<Self, Error> {
        let folder = folder.as_ref();
        // What cannot be opened is not locked either.
        drop(Store::open(folder, false)?);
        let read_only = |error: genus_files::FileError| match &error {
            genus_files::FileError::Write { source, .. }
                if matches!(
                    source.kind(),
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Error::ReadOnly {
                    path: folder.join(crate::store::FILE),
                }
            }
            _ => error.into(),
        };
        let lock = FolderLock::take(folder).map_err(read_only)?;
        Ok(Self {
            folder: folder.to_owned(),
            store: Store::open(folder, true)?,
            author: author.to_owned(),
            live: None,
            _lock: Some(lock),
        })
    }

    /// Sets who the log says it was from now on.
    pub fn set_author(&mut self, author: &str) {
        author.clone_into(&mut self.author);
    }

    /// Everything that `work` does is written as one: all of it is on the disk when this returns, or nothing happened.
    ///
    /// What a part of it refuses ([`Error::Refused`]) has changed nothing by itself, so `work` may go on with the others.
    pub fn together<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.store.begin()?;
        let done = work(self);
        let done = self.store.end(done);
        if done.is_err() {
            self.live = None;
        }
        done
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many features an item has, once there is one.
    pub fn dim(&self) -> Result<Option<usize>, Error> {
        Ok(self.store.meta("dim")?.and_then(|text| text.parse().ok()))
    }

    /// What made the features, and how it is found again.
    pub(crate) fn origin(&self) -> Result<Origin, Error> {
        let images = self.store.meta("images")?;
        let images = images.and_then(|text| serde_json::from_str::<EncoderRecord>(&text).ok());
        Ok(Origin {
            method: "calibrated".to_owned(),
            seed: self.seed()?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            encoder: self.store.meta("encoder")?,
            images,
            growing: None,
            calibration: None,
        })
    }

    /// Whether its features were made of images, which can be shown then.
    pub fn has_images(&self) -> Result<bool, Error> {
        Ok(self.store.meta("images")?.is_some())
    }

    /// Sets the seed of what is random.
    pub fn set_seed(&mut self, seed: u64) -> Result<(), Error> {
        self.store
            .transaction(|store| store.set_meta("seed", &seed.to_string()))
    }

    /// Removes a collection that was made a moment ago and came to nothing; its folder, too, if that was made for it.
    pub fn remove_new(folder: &Path, with_folder: bool) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.join(format!("{}{end}", crate::store::FILE)));
        }
        if with_folder {
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Takes over the categories of a taxonomy that `discover` or `assign` wrote, with their names: items that are added join them.
    pub fn take_over(&mut self, taxonomy: &Path) -> Result<Option<Entry>, Error> {
        let (found, origin) = genus_data::read_taxonomy(taxonomy)?;
        let calibration = found
            .calibration()
            .ok_or(genus_core::TaxonomyError::NoCalibration)?
            .clone();
        self.store.transaction(|store| {
            store.set_meta("dim", &found.centres().dim().to_string())?;
            if let Some(encoder) = &origin.encoder {
                store.set_meta("encoder", encoder)?;
            }
            if let Some(images) = &origin.images {
                store.set_encoder(images)?;
            }
            let mut groups = Vec::new();
            let entry = self.write("take-over", |draft| {
                for entry in found.entries() {
                    // What is called as we would call it, nobody has named.
                    let is_ours = entry.kind == genus_core::Kind::Novel
                        && entry
                            .name
                            .strip_prefix("new-")
                            .is_some_and(|number| number.parse::<u32>().is_ok());
                    let group = draft.new_group(Some(&entry.name))?;
                    draft.change_group(group, |group| group.named = !is_ours)?;
                    groups.push(group);
                }
                Ok(json!({ "from": taxonomy.display().to_string() }))
            })?;
            for (at, (&group, (members, agreement))) in groups.iter().zip(found.members()).enumerate() {
                store.set_centre(group, members, agreement, found.centres().row(at))?;
            }
            crate::knowledge::remember(store, &calibration, found.familiar().unwrap_or(0.5))?;
            store.set_meta(LEFT_WAITING, "0")?;
            Ok(entry)
        })
    }

    /// The random seed.
    pub(crate) fn seed(&self) -> Result<u64, Error> {
        Ok(self.store.meta("seed")?.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// The last entry of the log.
    pub fn last_entry(&self) -> Result<EntryId, Error> {
        Ok(self.store.head()?.no)
    }
}

// What can be said.
impl Collection {
    /// Does what was said, as one entry of the log; `None` when everything is so already.
    pub fn act(&mut self, action: &Action) -> Result<Option<Entry>, Error> {
        self.write(action.word(), |draft| {
            draft.act(action)?;
            Ok(summary(action))
        })
    }

    /// What an action would do; nothing is changed.
    pub fn preview(&self, action: &Action) -> Result<Preview, Error> {
        self.store.snapshot(|store| {
            let head = store.head()?;
            let mut draft = Draft::new(store, EntryId(head.no.0 + 1), store.next()?);
            draft.act(action)?;
            Ok(preview(&draft.finish().0))
        })
    }

    /// Undoes what was done last and is not undone.
    pub fn undo(&mut self) -> Result<Entry, Error> {
        let author = self.author.clone();
        self.store.transaction(|store| {
            let head = store.head()?;
            let of = head.undo.ok_or(Refusal::NothingToUndo)?;
            let below = store.head_at(EntryId(of.0 - 1))?.undo;
            turn(store, &author, "undo", of, (below, Some(of)))
        })
    }

    /// Does again what was undone last, unless something else was done since.
    pub fn redo(&mut self) -> Result<Entry, Error> {
        let author = self.author.clone();
        self.store.transaction(|store| {
            let head = store.head()?;
            let of = head.redo.ok_or(Refusal::NothingToRedo)?;
            let undone = store.undone_by(of)?.ok_or(Refusal::NothingToRedo)?;
            let below = store.head_at(EntryId(undone.0 - 1))?.redo;
            turn(store, &author, "redo", of, (Some(of), below))
        })
    }

    /// Writes an entry that can be undone. `work` gives what the log says of it.
    pub(crate) fn write(
        &self,
        kind: &str,
        work: impl FnOnce(&mut Draft<Store>) -> Result<Value, Error>,
    ) -> Result<Option<Entry>, Error> {
        self.write_as(kind, true, work)
    }

    /// Writes an entry. What happens by itself is not undone: the next undo is of what a person did before.
    pub(crate) fn write_as(
        &self,
        kind: &str,
        can_be_undone: bool,
        work: impl FnOnce(&mut Draft<Store>) -> Result<Value, Error>,
    ) -> Result<Option<Entry>, Error> {
        self.store.transaction(|store| {
            let head = store.head()?;
            let no = EntryId(head.no.0 + 1);
            let mut draft = Draft::new(store, no, store.next()?);
            let said = work(&mut draft)?;
            let (changes, next) = draft.finish();
            if changes.is_empty() {
                return Ok(None);
            }
            forget_centres(store, &changes)?;
            let entry = NewEntry {
                author: &self.author,
                kind,
                said: &said,
                of: None,
                undo: if can_be_undone { Some(no) } else { head.undo },
                redo: if can_be_undone { None } else { head.redo },
            };
            store.append(no, &entry, &changes, next).map(Some)
        })
    }
}

/// Makes an entry that reads another backwards or again.
fn turn(
    store: &Store,
    author: &str,
    kind: &str,
    of: EntryId,
    (undo, redo): (Option<EntryId>, Option<EntryId>),
) -> Result<Entry, Error> {
    let no = EntryId(store.head()?.no.0 + 1);
    let changed = store.changes_of(of)?;
    let mut draft = Draft::new(store, no, store.next()?);
    draft.restore(&changed, kind == "undo")?;
    let (changes, next) = draft.finish();
    forget_centres(store, &changes)?;
    let was = store.entries(Some(EntryId(of.0 + 1)), 1)?;
    let said = json!({ "what": was.first().map(|entry| entry.kind.clone()) });
    let entry = NewEntry {
        author,
        kind,
        said: &said,
        of: Some(of),
        undo,
        redo,
    };
    store.append(no, &entry, &changes, next)
}

/// Forgets the centres of the groups whose items change.
pub(crate) fn forget_centres(store: &Store, changes: &Changes) -> Result<(), Error> {
    let mut touched: BTreeSet<GroupId> = changes.groups.keys().copied().collect();
    for change in changes.items.values() {
        let places = [change.before, change.after].into_iter().flatten();
        touched.extend(places.filter_map(|placed| placed.place.group()));
    }
    let as_it_is = Draft::new(store, EntryId(0), store.next()?);
    for group in touched {
        store.forget_centre(group)?;
        if let Some(whole) = as_it_is.resolve(group)? {
            store.forget_centre(whole)?;
        }
        let mut after = changes
            .groups
            .get(&group)
            .and_then(|change| change.after.as_ref()?.into);
        while let Some(whole) = after {
            store.forget_centre(whole)?;
            after = match changes.groups.get(&whole) {
                Some(change) => change.after.as_ref().and_then(|group| group.into),
                None => store.group(whole)?.and_then(|group| group.into),
            };
        }
    }
    Ok(())
}

/// An action as the log tells it to people: what it did to every item is in its tables.
fn summary(action: &Action) -> Value {
    fn shorten(value: &mut Value) {
        match value {
            Value::Array(list) if list.len() > NAMED_ITEMS => *value = json!({ "count": list.len() }),
            Value::Array(list) => list.iter_mut().for_each(shorten),
            Value::Object(map) => map.values_mut().for_each(shorten),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(action).unwrap_or(Value::Null);
    shorten(&mut value);
    value
}

fn preview(changes: &Changes) -> Preview {
    let mut preview = Preview::default();
    for change in changes.items.values() {
        let [was, now] = [change.before, change.after].map(|placed| placed.map(|placed| placed.place));
        match (was, now) {
            (_, Some(Place::Noise)) => preview.noise += 1,
            (_, Some(Place::Waiting { .. })) => preview.released += 1,
            (Some(was), Some(now)) if was.group() == now.group() => preview.confirmed += 1,
            _ => preview.moved += 1,
        }
    }
    for change in changes.groups.values() {
        match (&change.before, &change.after) {
            (None, Some(group)) => preview.new_groups.push(group.name.clone()),
            (Some(was), Some(now)) if was.name != now.name => {
                preview.renamed.push((was.name.clone(), now.name.clone()));
            }
            _ => {}
        }
    }
    preview
}

/// All groups, and where each is part of by now.
pub(crate) struct Groups {
    pub(crate) all: BTreeMap<GroupId, Group>,
    /// The parts of those that stand by themselves, themselves first.
    pub(crate) parts: BTreeMap<GroupId, Vec<GroupId>>,
    whole: BTreeMap<GroupId, GroupId>,
}

impl Groups {
    pub(crate) fn read(store: &Store) -> Result<Self, Error> {
        let all = store.groups()?;
        let mut whole: BTreeMap<GroupId, GroupId> = BTreeMap::new();
        for &id in all.keys() {
            let mut at = id;
            // No longer than there are groups, whatever a damaged file says.
            for _ in 0..=all.len() {
                match all.get(&at) {
                    Some(Group { into: Some(into), .. }) => at = *into,
                    Some(group) if !group.ended => {
                        whole.insert(id, at);
                        break;
                    }
                    _ => break,
                }
            }
        }
        let mut parts: BTreeMap<GroupId, Vec<GroupId>> = BTreeMap::new();
        for (&part, &id) in &whole {
            let parts = parts.entry(id).or_default();
            match part == id {
                true => parts.insert(0, part),
                false => parts.push(part),
            }
        }
        Ok(Self { all, parts, whole })
    }

    /// The group that a group is part of by now, if it is still there.
    pub(crate) fn resolve(&self, id: GroupId) -> Option<GroupId> {
        self.whole.get(&id).copied()
    }

    pub(crate) fn name(&self, id: GroupId) -> String {
        self.all
            .get(&id)
            .map_or_else(|| format!("#{id}"), |group| group.name.clone())
    }

    /// Whether an item stays where it is because of what was said of its group.
    pub(crate) fn is_bound(&self, placed: &PlacedItem) -> bool {
        let sealed = placed.place.group().and_then(|group| self.all.get(&group)?.sealed);
        sealed.is_some_and(|sealed| placed.since <= sealed)
    }

    fn info(&self, id: GroupId, tallies: &Tallies) -> GroupInfo {
        let group = &self.all[&id];
        let parts = self.parts.get(&id).map_or(&[][..], |parts| parts);
        let own = tally_of(tallies, Which::In(parts));
        GroupInfo {
            id,
            name: group.name.clone(),
            named: group.named,
            items: own.items as u64,
            confirmed: own.said as u64,
            guessed: tally_of(tallies, Which::Guessed(parts)).items as u64,
            merged: parts.iter().skip(1).map(|&part| self.name(part)).collect(),
            parent: self.parent(id),
            parent_name: self.parent(id).map(|parent| self.name(parent)),
            holds_groups: group.holds_groups,
        }
    }

    /// The larger group that one is one of.
    fn parent(&self, id: GroupId) -> Option<GroupId> {
        let parent = self.all.get(&id)?.parent?;
        (self.resolve(parent) == Some(parent)).then_some(parent)
    }

    pub(crate) fn item(&self, item: StoredItem) -> Option<ItemInfo> {
        let placed = item.place?;
        let state = match placed.place {
            Place::In {
                group,
                probability,
                said,
            } => match self.resolve(group) {
                Some(whole) => ItemState::In {
                    group: whole,
                    group_name: self.name(whole),
                    probability,
                    confirmed: said,
                    bound: self.is_bound(&placed),
                },
                None => ItemState::Waiting {
                    guess: None,
                    guess_name: None,
                    probability: None,
                },
            },
            Place::Waiting { guess, probability } => {
                let guess = guess.and_then(|guess| self.resolve(guess));
                ItemState::Waiting {
                    guess,
                    guess_name: guess.map(|guess| self.name(guess)),
                    probability: probability.filter(|_| guess.is_some()),
                }
            }
            Place::Noise => ItemState::Noise,
        };
        let parent = state.shown().and_then(|shown| self.parent(shown.group?));
        Some(ItemInfo {
            id: item.id,
            name: item.name,
            path: item.path,
            state,
            parent,
            parent_name: parent.map(|parent| self.name(parent)),
            scene: item.scene,
        })
    }
}

/// Which items are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// All of them.
    All,
    /// Those of a group.
    Of(GroupId),
    /// Those that wait.
    Waiting,
    /// Those that wait with a group as the best guess.
    GuessedFor(GroupId),
    /// Those that belong to no class.
    Noise,
}

// What can be asked.
impl Collection {
    /// The collection in numbers.
    pub fn status(&self) -> Result<Status, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let tallies = store.tallies()?;
            let infos: Vec<GroupInfo> = groups
                .parts
                .keys()
                .map(|&id| groups.info(id, &tallies))
                .filter(|info| !info.holds_groups)
                .collect();
            let sum = |named: bool| infos.iter().filter(move |info| info.named == named);
            let waiting = tally_of(&tallies, Which::Waiting).items as u64;
            let items = tally_of(&tallies, Which::All).items as u64;
            let head = store.head()?;
            let word = |no: Option<EntryId>| -> Result<Option<String>, Error> {
                let Some(no) = no else { return Ok(None) };
                let entry = store.entries(Some(EntryId(no.0 + 1)), 1)?;
                Ok(entry.into_iter().next().map(|entry| entry.kind))
            };
            Ok(Status {
                folder: self.folder.clone(),
                items,
                in_named: sum(true).map(|info| info.items).sum(),
                in_new: sum(false).map(|info| info.items).sum(),
                waiting,
                noise: tally_of(&tallies, Which::Noise).items as u64,
                confirmed: infos.iter().map(|info| info.confirmed).sum(),
                named_groups: sum(true).count() as u64,
                new_groups: sum(false).count() as u64,
                dim: self.dim()?,
                encoder: store.meta("encoder")?,
                log: head.no,
                refresh_advised: refresh_advised(store, waiting, items)?,
                undo: word(head.undo)?,
                redo: word(head.redo)?,
            })
        })
    }

    /// All groups that are there, those with names first, then from large to small.
    pub fn groups(&self) -> Result<Vec<GroupInfo>, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let tallies = store.tallies()?;
            let mut infos: Vec<GroupInfo> = groups.parts.keys().map(|&id| groups.info(id, &tallies)).collect();
            infos.sort_by(|a, b| {
                let key = |info: &GroupInfo| (!info.named, std::cmp::Reverse(info.items), info.id);
                key(a).cmp(&key(b))
            });
            Ok(infos)
        })
    }

    /// One group.
    pub fn group(&self, id: GroupId) -> Result<GroupInfo, Error> {
        self.store.snapshot(|store| {
            let draft = Draft::new(store, EntryId(0), store.next()?);
            let no_group = Refusal::NoGroup { group: id };
            let whole = draft.resolve(id)?.ok_or(no_group)?;
            let parts = draft.tree(whole)?;
            let mut all = BTreeMap::new();
            for &part in &parts {
                all.extend(store.group(part)?.map(|group| (part, group)));
            }
            if let Some(parent) = all[&whole].parent {
                all.extend(store.group(parent)?.map(|group| (parent, group)));
            }
            let mut own: BTreeMap<GroupId, GroupId> = parts.iter().map(|&part| (part, whole)).collect();
            own.extend(all[&whole].parent.map(|parent| (parent, parent)));
            let groups = Groups {
                all,
                parts: BTreeMap::from([(whole, parts)]),
                whole: own,
            };
            Ok(groups.info(whole, &store.tallies()?))
        })
    }

    /// Hands on all items, block by block.
    pub(crate) fn for_each_block(&self, mut each: impl FnMut(Vec<ItemInfo>) -> Result<(), Error>) -> Result<(), Error> {
        let mut after = None;
        loop {
            let block = self.items(Items::All, after, crate::knowledge::BLOCK)?;
            let Some(last) = block.last() else { return Ok(()) };
            after = Some(last.id);
            each(block)?;
        }
    }

    /// Items after one of them, by number, at most so many.
    pub fn items(&self, which: Items, after: Option<ItemId>, most: usize) -> Result<Vec<ItemInfo>, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let parts = |id: GroupId| -> Vec<GroupId> { groups.parts.get(&id).cloned().unwrap_or_default() };
            let after = after.unwrap_or_default();
            let found = match which {
                Items::All => store.items(Which::All, after, most)?,
                Items::Waiting => store.items(Which::Waiting, after, most)?,
                Items::Noise => store.items(Which::Noise, after, most)?,
                Items::Of(group) => store.items(Which::In(&parts(group)), after, most)?,
                Items::GuessedFor(group) => store.items(Which::Guessed(&parts(group)), after, most)?,
            };
            Ok(found.into_iter().filter_map(|item| groups.item(item)).collect())
        })
    }

    /// One item.
    pub fn item(&self, id: ItemId) -> Result<ItemInfo, Error> {
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let item = store.item(id)?.and_then(|item| groups.item(item));
            Ok(item.ok_or(Refusal::NoItem { item: id })?)
        })
    }

    /// Entries of the log, the last first, from before one of them.
    pub fn log(&self, before: Option<EntryId>, most: usize) -> Result<Vec<Entry>, Error> {
        self.store.entries(before, most)
    }

    /// Entries of the log after one of them, in their order.
    pub fn log_after(&self, no: EntryId, most: usize) -> Result<Vec<Entry>, Error> {
        self.store.entries_after(no, most)
    }

    /// The group of a name, or of a number as in `#12`. A name that was merged away finds what it is part of by now.
    pub fn find_group(&self, text: &str) -> Result<GroupId, Error> {
        self.store.snapshot(|store| {
            if let Some(id) = store.called(text)? {
                return Ok(id);
            }
            let draft = Draft::new(store, EntryId(0), store.next()?);
            let number = text.strip_prefix('#').and_then(|number| number.parse().ok());
            if let Some(number) = number
                && let Some(id) = draft.resolve(GroupId(number))?
            {
                return Ok(id);
            }
            let groups = Groups::read(store)?;
            let merged = groups
                .all
                .iter()
                .filter(|(_, group)| group.name == text && group.into.is_some());
            if let Some(id) = merged.filter_map(|(&id, _)| groups.resolve(id)).next_back() {
                return Ok(id);
            }
            let names = groups.parts.keys().map(|id| &groups.all[id].name);
            let nearest = names
                .map(|name| (strsim::jaro_winkler(name, text), name))
                .filter(|(likeness, _)| *likeness > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)));
            Err(Error::NoSuchGroup {
                group: text.to_owned(),
                nearest: nearest.map(|(_, name)| name.clone()),
            })
        })
    }

    /// The item of a name, or of a number as in `#12`.
    pub fn find_item(&self, text: &str) -> Result<ItemId, Error> {
        self.store.snapshot(|store| {
            let found = store.items_called(text)?;
            match &found[..] {
                [item] => return Ok(*item),
                [] => {}
                several => {
                    return Err(Error::AmbiguousItem {
                        item: text.to_owned(),
                        count: several.len(),
                        numbers: several.iter().take(LISTED).map(|item| format!("#{item}")).collect(),
                    });
                }
            }
            match numbered(text) {
                Some(item) if store.place(item)?.is_some() => Ok(item),
                _ => Err(Error::NoSuchItem { item: text.to_owned() }),
            }
        })
    }
}

/// The item of a text such as `#12` or `#12 gull.jpg`, as one is called where its name alone is not enough.
pub(crate) fn numbered(text: &str) -> Option<ItemId> {
    let number = text.strip_prefix('#')?.split(' ').next()?;
    number.parse().ok().map(ItemId)
}

/// Whether so much more waits than after the last time that it is worth sorting anew: a tenth, and more than a handful.
fn refresh_advised(store: &Store, waiting: u64, items: u64) -> Result<bool, Error> {
    let left = store
        .meta(LEFT_WAITING)?
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let more = waiting.saturating_sub(left);
    Ok(more >= 20 && more * 10 >= items)
}
