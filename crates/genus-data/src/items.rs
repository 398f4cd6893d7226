//! The items that a taxonomy has grown by, so that none counts twice.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use genus_core::{Assignment, Score};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::error::DataError;

/// Bytes of a key.
const KEY: usize = 16;

/// What an item is known by: a hash of its id and of its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemKey([u8; KEY]);

impl ItemKey {
    /// The key of an item. Items of the same id and other features are others, and so are those of the same features and
    /// another id.
    pub fn new(id: &str, features: &[f32]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(id.len() as u64).to_le_bytes());
        hasher.update(id.as_bytes());
        features.iter().for_each(|value| {
            hasher.update(&value.to_le_bytes());
        });
        let mut key = [0; KEY];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..KEY]);
        Self(key)
    }
}

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownItem {
    /// Its category, or the best guess while it waits.
    pub place: Assignment,
    /// Which of those that wait it is, counted from zero.
    pub waiting: Option<u32>,
}

/// The items that a taxonomy has grown by, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownItems {
    keys: Vec<ItemKey>,
    items: Vec<KnownItem>,
    numbers: HashMap<ItemKey, usize>,
}

impl KnownItems {
    /// The number of an item, if it is known.
    pub fn find(&self, key: &ItemKey) -> Option<usize> {
        self.numbers.get(key).copied()
    }

    /// Adds an item and gives its number; one that is known gets a new place.
    pub fn insert(&mut self, key: ItemKey, item: KnownItem) -> usize {
        let number = *self.numbers.entry(key).or_insert(self.items.len());
        match self.items.get_mut(number) {
            Some(known) => *known = item,
            None => {
                self.keys.push(key);
                self.items.push(item);
            }
        }
        number
    }

    /// Where the item of a number is.
    pub fn get(&self, number: usize) -> Option<&KnownItem> {
        self.items.get(number)
    }

    /// Changes where the item of a number is.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut KnownItem> {
        self.items.get_mut(number)
    }

    /// Where the items are.
    pub fn iter(&self) -> impl Iterator<Item = &KnownItem> {
        self.items.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items as the bytes of a file.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let rows = self.items.len();
        let number = |number: usize| u32::try_from(number).map_err(io::Error::other);
        let keys: Vec<u8> = self.keys.iter().flat_map(|key| key.0).collect();
        let (mut numbers, mut scores) = (Vec::with_capacity(12 * rows), Vec::with_capacity(12 * rows));
        for KnownItem { place, waiting } in &self.items {
            // Those that wait are counted from one, so that there is a number for the others.
            let wait = waiting.map_or(0, |row| row.saturating_add(1));
            for value in [number(place.category)?, u32::from(place.score.unsure), wait] {
                numbers.extend(value.to_le_bytes());
            }
            let Score {
                similarity,
                margin,
                probability,
                ..
            } = place.score;
            for value in [similarity, margin, probability.unwrap_or(f32::NAN)] {
                scores.extend(value.to_le_bytes());
            }
        }
        let view = |kind, width, bytes| TensorView::new(kind, vec![rows, width], bytes).map_err(io::Error::other);
        let tensors = [
            ("keys", view(Dtype::U8, KEY, &keys[..])?),
            ("places", view(Dtype::U32, 3, &numbers)?),
            ("scores", view(Dtype::F32, 3, &scores)?),
        ];
        safetensors::serialize(tensors, None).map_err(io::Error::other)
    }

    /// The items of a file that belongs to a taxonomy of so many categories.
    pub(crate) fn from_bytes(path: &Path, bytes: &[u8], categories: usize) -> Result<Self, DataError> {
        let wrong = |problem: String| DataError::Malformed {
            path: path.to_owned(),
            problem,
        };
        let file = SafeTensors::deserialize(bytes).map_err(|e| wrong(e.to_string()))?;
        let tensor = |name: &str, kind: Dtype, width: usize| {
            let tensor = file.tensor(name).map_err(|e| wrong(e.to_string()))?;
            match tensor.shape() {
                &[rows, found] if found == width && tensor.dtype() == kind => Ok((rows, tensor.data())),
                shape => Err(wrong(format!("its {name} are {shape:?} of {:?}", tensor.dtype()))),
            }
        };
        let (rows, keys) = tensor("keys", Dtype::U8, KEY)?;
        let (places, numbers) = tensor("places", Dtype::U32, 3)?;
        let (judged, scores) = tensor("scores", Dtype::F32, 3)?;
        if places != rows || judged != rows {
            return Err(wrong(format!(
                "it has {rows} keys, {places} places and {judged} scores"
            )));
        }
        let (keys, _) = keys.as_chunks::<KEY>();
        let (numbers, _) = numbers.as_chunks::<4>();
        let (scores, _) = scores.as_chunks::<4>();
        let mut items = Self::default();
        for ((key, place), score) in keys.iter().zip(numbers.chunks_exact(3)).zip(scores.chunks_exact(3)) {
            let [category, unsure, wait] = [place[0], place[1], place[2]].map(u32::from_le_bytes);
            let [similarity, margin, probability] = [score[0], score[1], score[2]].map(f32::from_le_bytes);
            if category as usize >= categories {
                return Err(wrong(format!("an item is in category {category} of {categories}")));
            }
            let score = Score {
                similarity,
                margin,
                probability: Some(probability).filter(|probability| !probability.is_nan()),
                unsure: unsure != 0,
            };
            let place = Assignment {
                category: category as usize,
                score,
            };
            items.insert(
                ItemKey(*key),
                KnownItem {
                    place,
                    waiting: wait.checked_sub(1),
                },
            );
        }
        Ok(items)
    }
}
