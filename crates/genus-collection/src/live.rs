//! Items that come one by one, and are answered at once.
//!
//! What they are judged by stays in memory as long as nothing else changes. Those that wait find each other apart from this
//! ([`Collection::review`]): that takes time, and nobody has to wait for it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use genus::{ImageOptions, LiveEncoder, Progress};
use genus_core::{Features, Stream};
use genus_data::same_encoder;
use genus_files::{AtomicFile, create_own_folder};
use serde_json::json;

use crate::add::{AddOutcome, IncomingItem, REVIEWED, key_of_bytes, key_of_row, rounded, take_block};
use crate::collection::{Collection, Groups, ItemInfo, LEFT_WAITING};
use crate::error::Error;
use crate::knowledge::Model;
use crate::model::{Entry, EntryId, GroupId, ItemId, Place};
use crate::rules::Draft;
use crate::store::{Key, Store, StoredItem, Which};

/// How long an answer is kept for who asks again, in milliseconds: a day.
const REPLY_KEPT: i64 = 24 * 60 * 60 * 1000;
/// What the folder of images that came through the service is called.
const UPLOADS: &str = "uploads";

/// What items are judged by, and the entry of the log that it is true of.
pub(crate) struct Live {
    at: EntryId,
    groups: Groups,
    model: Option<Model>,
}

/// An item that comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// What it is called.
    pub name: String,
    /// Its features.
    pub features: Vec<f32>,
    /// The image that they are of.
    pub image: Option<ArrivedImage>,
}

/// An image that came, and where it was put.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivedImage {
    key: Key,
    path: PathBuf,
}

/// Where an item is that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The item as it is now.
    pub item: ItemInfo,
    /// Whether it was not there before.
    pub new: bool,
    /// Whether the group that it is in, or that is guessed, has a name.
    pub named: bool,
    /// The group that is likeliest after that.
    pub runner_up: Option<(GroupId, String)>,
}

/// Why an item was not taken in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// Another number of features.
    #[error("\"{name}\" has {found} features, and the items of the collection have {dim}")]
    Dim {
        /// The item.
        name: String,
        /// Its number of features.
        found: usize,
        /// That of the collection.
        dim: usize,
    },
    /// A feature that is not a number, or nothing but zeros.
    #[error("\"{name}\": {problem}")]
    Features {
        /// The item.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

/// Items that wait and have found each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    found: Vec<(ItemId, JoinTarget, Option<f32>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum JoinTarget {
    Group(GroupId),
    /// A new group, by a number that its items share.
    New(usize),
}

/// An answer that was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The hash of the request.
    pub request: [u8; 32],
    /// Its status.
    pub status: u16,
    /// What was said.
    pub body: Vec<u8>,
}

impl Review {
    /// Whether nobody has found anybody.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Collection {
    /// The encoder that makes features of images for this collection, to stay in memory.
    pub fn live_encoder(&self, options: &ImageOptions, progress: &dyn Progress) -> Result<LiveEncoder, Error> {
        let origin = self.origin()?;
        let made = self.dim()?.map(|_| (self.folder(), &origin));
        Ok(LiveEncoder::load(options, made, progress)?)
    }

    /// Puts an image that came into the collection's folder. What it is called there is a hash of its content: no name from
    /// elsewhere becomes a path. `ending` is that of its format.
    pub fn keep_image(folder: &Path, bytes: &[u8], ending: &str) -> Result<ArrivedImage, Error> {
        let key = key_of_bytes(bytes);
        let text = key
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let mut place = folder.to_owned();
        for part in [UPLOADS, &text[..2]] {
            place.push(part);
            create_own_folder(&place).map_err(|source| Error::Io {
                path: place.clone(),
                source,
            })?;
        }
        let path = place.join(format!("{text}.{ending}"));
        let path = std::path::absolute(&path).unwrap_or(path);
        if !std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let mut file = AtomicFile::create_own(&path)?;
            file.append(bytes)?;
            file.commit()?;
        }
        Ok(ArrivedImage { key, path })
    }

    /// Takes items in, each for itself; one that does not fit is left out. `encoder` is what made the features of images.
    pub fn take(
        &mut self,
        arrivals: &[Arrival],
        encoder: Option<&LiveEncoder>,
    ) -> Result<Vec<Result<Decision, ItemError>>, Error> {
        let head = self.last_entry()?;
        let mut live = self.live.take().filter(|live| live.at == head);
        let this = &*self;
        let decided = this.store.transaction(|store| {
            let dim = match this.dim()? {
                Some(dim) => dim,
                None => match arrivals
                    .iter()
                    .find(|arrival| sound(arrival, arrival.features.len()).is_ok())
                {
                    Some(first) => {
                        store.set_meta("dim", &first.features.len().to_string())?;
                        first.features.len()
                    }
                    None => 0,
                },
            };
            if let Some(encoder) = encoder
                && arrivals.iter().any(|arrival| arrival.image.is_some())
            {
                this.note_encoder(store, encoder)?;
            }
            let mut decided: Vec<Option<Result<Decision, ItemError>>> = Vec::with_capacity(arrivals.len());
            let (mut fit, mut values) = (Vec::new(), Vec::new());
            for arrival in arrivals {
                match sound(arrival, dim) {
                    Ok(()) => {
                        fit.push(decided.len());
                        values.extend_from_slice(&arrival.features);
                        decided.push(None);
                    }
                    Err(unfit) => decided.push(Some(Err(unfit))),
                }
            }
            if !fit.is_empty() {
                let features = rounded(&Features::new(dim, values)?)?;
                let live = match &mut live {
                    Some(live) => live,
                    none => none.insert(Live::load(store, dim, head)?),
                };
                let chosen: Vec<&Arrival> = fit.iter().map(|&at| &arrivals[at]).collect();
                let found = this.take_rows(store, live, &chosen, &features)?;
                fit.iter()
                    .zip(found)
                    .for_each(|(&at, found)| decided[at] = Some(Ok(found)));
            }
            Ok(decided.into_iter().flatten().collect())
        })?;
        self.live = live;
        Ok(decided)
    }

    fn note_encoder(&self, store: &Store, encoder: &LiveEncoder) -> Result<(), Error> {
        let origin = self.origin()?;
        same_encoder(
            (self.folder(), origin.encoder.as_deref()),
            (Path::new("the image"), Some(encoder.fingerprint())),
        )?;
        if origin.encoder.is_none() {
            store.set_meta("encoder", encoder.fingerprint())?;
        }
        if origin.images.is_none() {
            store.set_encoder(encoder.record())?;
        }
        Ok(())
    }

    fn take_rows(
        &self,
        store: &Store,
        live: &mut Live,
        arrivals: &[&Arrival],
        features: &Features,
    ) -> Result<Vec<Decision>, Error> {
        let cosines = live.model.as_ref().map(|model| model.cosines(features));
        let coming: Vec<IncomingItem> = arrivals
            .iter()
            .enumerate()
            .map(|(at, arrival)| IncomingItem {
                key: match &arrival.image {
                    Some(image) => image.key,
                    None => key_of_row(&arrival.name, features.row(at)),
                },
                name: &arrival.name,
                path: arrival.image.as_ref().map(|image| &*image.path),
                label: None,
            })
            .collect();
        let mut added = AddOutcome::default();
        let mut fresh = Vec::new();
        let mut placed = Vec::with_capacity(coming.len());
        let entry = self.write_as("add", false, |draft| {
            let mut seen = HashSet::new();
            take_block(
                store,
                draft,
                live.model.as_mut(),
                &coming,
                features,
                &mut seen,
                &mut added,
                &mut fresh,
            )?;
            for item in &coming {
                let Some(id) = store.item_of_key(&item.key)? else {
                    continue;
                };
                placed.push((id, draft.place(id)?));
            }
            Ok(json!({ "from": "the service", "new": added.new, "joined": added.joined, "settled": 0, "born": [] }))
        })?;
        if let Some(entry) = &entry {
            live.at = entry.no;
            if let Some(model) = &mut live.model {
                model.save_changes(store)?;
            }
        }
        let mut is_fresh: HashSet<ItemId> = fresh.into_iter().collect();
        let mut decided = Vec::with_capacity(placed.len());
        for (row, ((id, place), item)) in placed.into_iter().zip(&coming).enumerate() {
            let new = is_fresh.remove(&id);
            let stored = match new {
                true => StoredItem {
                    id,
                    name: item.name.to_owned(),
                    path: item.path.map(Path::to_owned),
                    scene: None,
                    place,
                },
                false => StoredItem {
                    place,
                    ..store.item(id)?.ok_or(crate::Refusal::NoItem { item: id })?
                },
            };
            let info = live.groups.item(stored).ok_or(crate::Refusal::NoItem { item: id })?;
            let shown = info.state.shown().and_then(|shown| shown.group);
            let runner_up = match (&live.model, &cosines) {
                (Some(model), Some(cosines)) => model.runner_up(cosines, row, shown),
                _ => None,
            };
            decided.push(Decision {
                new,
                named: shown.is_some_and(|group| live.groups.all.get(&group).is_some_and(|group| group.named)),
                runner_up: runner_up.map(|group| (group, live.groups.name(group))),
                item: info,
            });
        }
        Ok(decided)
    }

    /// Looks which of the items that wait have found each other, or a group by now. Nothing is changed.
    pub fn review(&self) -> Result<Review, Error> {
        let Some(dim) = self.dim()? else {
            return Ok(Review::default());
        };
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let Some(model) = Model::load(store, &groups, dim)? else {
                return Ok(Review::default());
            };
            let mut waiting = store.newest_waiting(REVIEWED / 2)?;
            let oldest = store.items(Which::Waiting, ItemId::default(), REVIEWED / 2)?;
            waiting.extend(oldest.iter().map(|item| item.id));
            waiting.sort_unstable();
            waiting.dedup();
            Ok(Review {
                found: find_each_other(store, &model, dim, &waiting)?,
            })
        })
    }

    /// Puts items where a review found that they belong, unless something else happened to them since.
    pub fn settle(&mut self, review: &Review) -> Result<Option<Entry>, Error> {
        self.write_as("add", false, |draft| {
            let mut sure = Vec::new();
            for &(item, joins, probability) in &review.found {
                let waits = matches!(draft.place(item)?, Some(placed) if matches!(placed.place, Place::Waiting { .. }));
                let there = match joins {
                    JoinTarget::Group(group) => draft.resolve(group)? == Some(group),
                    JoinTarget::New(_) => true,
                };
                if waits && there {
                    sure.push((item, joins, probability));
                }
            }
            let (settled, born) = settle_in(draft, &sure)?;
            Ok(json!({ "from": "those that waited", "new": 0, "joined": 0, "settled": settled.len(), "born": born }))
        })
    }

    /// The answer that was given under a key within the last day.
    pub fn reply(&self, key: &[u8; 32]) -> Result<Option<Reply>, Error> {
        self.store.reply(key)
    }

    /// Notes an answer under a key, for who asks again.
    pub fn keep_reply(&mut self, key: &[u8; 32], reply: &Reply) -> Result<(), Error> {
        self.store
            .transaction(|store| store.keep_reply(key, &reply.request, reply.status, &reply.body, REPLY_KEPT))
    }
}

impl Live {
    fn load(store: &Store, dim: usize, at: EntryId) -> Result<Self, Error> {
        let groups = Groups::read(store)?;
        // As long as nothing was ever sorted, everything waits to be sorted at once.
        let model = match store.meta(LEFT_WAITING)?.is_none() && store.knowledge()?.is_none() {
            true => None,
            false => Model::load(store, &groups, dim)?,
        };
        Ok(Self { at, groups, model })
    }
}

/// Whether an item can be taken in.
fn sound(arrival: &Arrival, dim: usize) -> Result<(), ItemError> {
    let name = || arrival.name.clone();
    let found = arrival.features.len();
    let problem = |problem: &str| ItemError::Features {
        name: name(),
        problem: problem.to_owned(),
    };
    if found == 0 {
        return Err(problem("it has no features"));
    }
    if found != dim {
        return Err(ItemError::Dim {
            name: name(),
            found,
            dim,
        });
    }
    if arrival.features.iter().any(|value| !value.is_finite()) {
        return Err(problem("a feature is no finite number"));
    }
    match arrival.features.iter().all(|&value| value == 0.0) {
        true => Err(problem("all its features are zero")),
        false => Ok(()),
    }
}

/// Which of some items that wait join a group, or form one with each other.
pub(crate) fn find_each_other(
    store: &Store,
    model: &Model,
    dim: usize,
    waiting: &[ItemId],
) -> Result<Vec<(ItemId, JoinTarget, Option<f32>)>, Error> {
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let features = store.features(waiting, dim)?;
    let mut stream = Stream::new(model.taxonomy.clone())?
        .with_familiar(model.taxonomy.familiar().unwrap_or(0.5))
        .with_room(REVIEWED)
        .with_waiting(&features)?;
    let settled = stream.review().into_iter().map(|(number, assignment)| {
        let joins = match model.groups.get(assignment.category) {
            Some(&group) => JoinTarget::Group(group),
            None => JoinTarget::New(assignment.category),
        };
        (waiting[number as usize], joins, assignment.score.probability)
    });
    Ok(settled.collect())
}

/// Puts items that wait where they belong: who was put, and the names of the groups that are new.
pub(crate) fn settle_in(
    draft: &mut Draft<Store>,
    found: &[(ItemId, JoinTarget, Option<f32>)],
) -> Result<(Vec<ItemId>, Vec<String>), Error> {
    let mut born: BTreeMap<usize, GroupId> = BTreeMap::new();
    let mut settled = Vec::new();
    for &(item, joins, probability) in found {
        let group = match joins {
            JoinTarget::Group(group) => group,
            JoinTarget::New(number) => match born.get(&number) {
                Some(&group) => group,
                None => {
                    let group = draft.new_group(None)?;
                    born.insert(number, group);
                    group
                }
            },
        };
        if draft.is_rejected(item, group)? {
            continue;
        }
        let place = Place::In {
            group,
            probability,
            said: false,
        };
        draft.put(item, place)?;
        settled.push(item);
    }
    let mut names = Vec::new();
    for &group in born.values() {
        names.extend(draft.group(group)?.map(|group| group.name));
    }
    Ok((settled, names))
}
