//! Items in the plane, those that are alike beside each other.

use std::collections::BTreeMap;

use genus_core::Features;
use genus_core::projection::Projection;

use crate::collection::{Collection, Groups};
use crate::error::Error;
use crate::knowledge::{BLOCK, spread};
use crate::model::{GroupId, ItemId, Place, PlacedItem};
use crate::store::Store;

/// Items that are laid out by how they lie to each other; the others go beside the nearest of these.
const LAID_OUT: usize = 4000;
/// How many of these an item is compared with: those of its own group.
const COMPARED: usize = 64;
/// When more than this share of items came since, everything is laid out anew.
const GROWTH: f64 = 0.5;
/// How far from the nearest an item is put, as a share of the whole map.
const NEAR: f32 = 0.008;

/// The places of items in the plane. They stay when others come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// How it was made: `t-SNE` or `PCA`.
    pub projection: &'static str,
    /// Every item with its place, by number.
    pub places: BTreeMap<ItemId, [f32; 2]>,
    /// Those that were laid out.
    laid_out: Vec<ItemId>,
    /// How many items there were then.
    items: usize,
}

impl Collection {
    /// The places of all items. Those that are on an earlier map stay where they are there, unless there are many more items by now.
    pub fn map(&self, earlier: Option<&Map>) -> Result<Map, Error> {
        let Some(dim) = self.dim()? else {
            return Ok(Map::default());
        };
        self.store.snapshot(|store| {
            let groups = Groups::read(store)?;
            let all = store.places()?;
            let shown = |placed: &PlacedItem| match placed.place {
                Place::In { group, .. } => groups.resolve(group),
                Place::Waiting { guess, .. } => guess.and_then(|guess| groups.resolve(guess)),
                Place::Noise => None,
            };
            let of: BTreeMap<ItemId, Option<GroupId>> =
                all.iter().map(|(item, placed)| (*item, shown(placed))).collect();
            let mut map = match earlier {
                Some(earlier) if of.len() as f64 <= earlier.items as f64 * (1.0 + GROWTH) => earlier.clone(),
                _ => lay_out(store, dim, &of.keys().copied().collect::<Vec<_>>(), self.seed()?)?,
            };
            map.places.retain(|item, _| of.contains_key(item));
            place_others(store, dim, &of, &mut map)?;
            Ok(map)
        })
    }
}

fn lay_out(store: &Store, dim: usize, items: &[ItemId], seed: u64) -> Result<Map, Error> {
    let laid_out = spread(items, LAID_OUT);
    if laid_out.is_empty() {
        return Ok(Map::default());
    }
    let rows = store.features(&laid_out, dim)?;
    let way = Projection::Tsne.for_count(rows.rows());
    let places = way.points(&rows, seed);
    Ok(Map {
        projection: match way {
            Projection::Tsne => "t-SNE",
            Projection::Pca => "PCA",
        },
        places: laid_out.iter().copied().zip(places).collect(),
        laid_out,
        items: items.len(),
    })
}

/// Puts every item that has no place beside the most similar one of its group that was laid out.
fn place_others(store: &Store, dim: usize, of: &BTreeMap<ItemId, Option<GroupId>>, map: &mut Map) -> Result<(), Error> {
    let mut others: BTreeMap<Option<GroupId>, Vec<ItemId>> = BTreeMap::new();
    for (&item, &group) in of {
        if !map.places.contains_key(&item) {
            others.entry(group).or_default().push(item);
        }
    }
    if others.is_empty() || map.laid_out.is_empty() {
        return Ok(());
    }
    let mut laid_out: BTreeMap<Option<GroupId>, Vec<ItemId>> = BTreeMap::new();
    for &item in &map.laid_out {
        if let Some(&group) = of.get(&item) {
            laid_out.entry(group).or_default().push(item);
        }
    }
    let anywhere = spread(&map.laid_out, COMPARED * 4);
    let extent = map
        .places
        .values()
        .flatten()
        .fold(0.0f32, |most, value| most.max(value.abs()));
    for (group, items) in others {
        let near = match laid_out.get(&group) {
            Some(own) => spread(own, COMPARED),
            None => anywhere.clone(),
        };
        let near: Vec<ItemId> = near.into_iter().filter(|item| map.places.contains_key(item)).collect();
        if near.is_empty() {
            continue;
        }
        let centres: Features = store.features(&near, dim)?;
        for block in items.chunks(BLOCK) {
            let cosines = store.features(block, dim)?.dots(&centres);
            for (&item, cosines) in block.iter().zip(cosines.chunks_exact(near.len())) {
                let best = (0..near.len())
                    .max_by(|&a, &b| cosines[a].total_cmp(&cosines[b]))
                    .unwrap_or(0);
                let [x, y] = map.places[&near[best]];
                // Around it, so that all are seen: the angle is that of sunflower seeds.
                let angle = (item.0 % 100_000) as f32 * 2.399_963_2;
                let far = extent * NEAR * (0.3 + 0.7 * ((item.0 % 97) as f32 / 97.0));
                map.places.insert(item, [x + far * angle.cos(), y + far * angle.sin()]);
            }
        }
    }
    Ok(())
}
