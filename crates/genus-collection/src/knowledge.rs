//! What new items are judged by: a calibration, and the centres of the groups. Both are remembered and can be made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use genus::CalibrationFile;
use genus_core::methods::{Context, MethodSpec};
use genus_core::{
    Assignment, Blocks, Calibration, CentreNorm, Discover as _, ExampleIndex, Features, Kind, Sample, Scenes, Subset,
    Support, Task, Taxonomy, TaxonomyEntry, TwoStep,
};
use genus_data::{CalibrationOrigin, calibration_from_bytes, calibration_to_bytes};

use crate::collection::Groups;
use crate::error::Error;
use crate::model::{GroupId, ItemId};
use crate::store::{Store, Which, tally_of};

/// Members of a group that its centre is the mean of.
const SEEN: usize = 256;
/// With more queries than this a subset is clustered and the rest assigned, as `discover` does.
pub(crate) const AT_ONCE: usize = 20_000;
/// The size of that subset.
const SUBSET: usize = 5_000;
/// Items that are read at a time.
pub(crate) const BLOCK: usize = 4096;
/// The bounds of the share of items that are expected to belong to a group.
const FAMILIAR: (f64, f64) = (0.02, 0.98);
/// How fast that share follows the items, as `Stream` has it.
const RATE: f64 = 0.05;

/// The groups that new items may join, with what judges whether they do.
pub(crate) struct Model {
    pub(crate) groups: Vec<GroupId>,
    pub(crate) taxonomy: Taxonomy,
    calibration: Arc<Calibration>,
    /// Those whose centre has moved.
    moved: BTreeSet<usize>,
}

impl Model {
    /// The model of a collection; none while there is no group with items, or nothing was ever learnt.
    pub(crate) fn load(store: &Store, groups: &Groups, dim: usize) -> Result<Option<Self>, Error> {
        let Some((familiar, bytes)) = store.knowledge()? else {
            return Ok(None);
        };
        let (calibration, _) = calibration_from_bytes(store.path(), &bytes)?;
        if calibration.dim() != dim {
            return Ok(None);
        }
        let calibration = Arc::new(calibration);
        let tallies = store.tallies()?;
        let mut centres: BTreeMap<GroupId, (f64, f64, Vec<f32>)> = store
            .centres()?
            .into_iter()
            .filter(|found| found.centre.len() == dim)
            .map(|found| (found.group, (found.members, found.agreement, found.centre)))
            .collect();
        let (mut ids, mut members, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved = BTreeSet::new();
        for (&group, parts) in &groups.parts {
            let count = tally_of(&tallies, Which::In(parts)).items;
            let (seen, agreement, centre) = match centres.remove(&group) {
                Some(found) => found,
                // Nothing is known of a group that never had an item.
                None if count == 0 => continue,
                None => {
                    moved.insert(ids.len());
                    centre_of(store, parts, count as usize, dim, &calibration)?
                }
            };
            ids.push(group);
            members.push((seen.max(1.0), agreement.clamp(0.0, 1.0)));
            values.extend(centre);
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let taxonomy = build(&ids, members, Features::new(dim, values)?, &calibration, familiar)?;
        Ok(Some(Self {
            groups: ids,
            taxonomy,
            calibration,
            moved,
        }))
    }

    /// The cosines of items with all centres.
    pub(crate) fn cosines(&self, items: &Features) -> Vec<f32> {
        self.calibration.transform(items).dots(self.taxonomy.centres())
    }

    /// The cosine of the item in a row of these with the centre of a group, and its lead over the next.
    pub(crate) fn fit(&self, cosines: &[f32], row: usize, group: GroupId) -> Option<(f32, f32)> {
        let own = self.groups.binary_search(&group).ok()?;
        let count = self.groups.len();
        let cosines = &cosines[row * count..][..count];
        let others = cosines.iter().enumerate().filter(|&(at, _)| at != own);
        let best = others.map(|(_, &cosine)| cosine).fold(f32::NEG_INFINITY, f32::max);
        let margin = if best.is_finite() {
            cosines[own] - best
        } else {
            cosines[own]
        };
        Some((cosines[own], margin))
    }

    /// Counts in items that have joined, and how familiar the items were that came.
    pub(crate) fn learn(
        &mut self,
        items: &Features,
        joined: &[Option<usize>],
        seen: &[Assignment],
    ) -> Result<(), Error> {
        let dim = items.dim();
        let mut members = self.taxonomy.members();
        let mut centres = self.taxonomy.centres().values().to_vec();
        let rows: Vec<usize> = (0..items.rows()).filter(|&row| joined[row].is_some()).collect();
        if !rows.is_empty() {
            let inside = self.calibration.transform(&items.select(&rows));
            let mut sums: BTreeMap<usize, (f64, Vec<f64>)> = BTreeMap::new();
            for (&row, item) in rows.iter().zip(inside.iter()) {
                let Some(category) = joined[row].filter(|&category| category < self.groups.len()) else {
                    continue;
                };
                let (count, sum) = sums.entry(category).or_insert_with(|| {
                    let (count, length) = members[category];
                    let centre = centres[category * dim..][..dim].iter();
                    (count, centre.map(|&value| f64::from(value) * count * length).collect())
                });
                *count += 1.0;
                sum.iter_mut()
                    .zip(item)
                    .for_each(|(sum, &value)| *sum += f64::from(value));
            }
            for (category, (count, sum)) in sums {
                let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
                if length > 0.0 {
                    let centre = centres[category * dim..][..dim].iter_mut().zip(sum);
                    centre.for_each(|(value, sum)| *value = (sum / length) as f32);
                }
                members[category] = (count, (length / count).min(1.0));
                self.moved.insert(category);
            }
        }
        let mut familiar = self.taxonomy.familiar().unwrap_or(0.5);
        for assignment in seen {
            let probability = f64::from(assignment.score.probability.unwrap_or(0.5));
            familiar += RATE * (probability - familiar);
        }
        self.taxonomy = build(
            &self.groups,
            members,
            Features::new(dim, centres)?,
            &self.calibration,
            familiar,
        )?;
        Ok(())
    }

    /// Remembers what has changed.
    pub(crate) fn save(&self, store: &Store) -> Result<(), Error> {
        let members = self.taxonomy.members();
        for &at in &self.moved {
            let (count, agreement) = members[at];
            store.set_centre(self.groups[at], count, agreement, self.taxonomy.centres().row(at))?;
        }
        remember(store, &self.calibration, self.taxonomy.familiar().unwrap_or(0.5))
    }
}

impl Model {
    /// Remembers what has changed since the last time; the calibration has not.
    pub(crate) fn save_changes(&mut self, store: &Store) -> Result<(), Error> {
        let members = self.taxonomy.members();
        for at in std::mem::take(&mut self.moved) {
            let (count, agreement) = members[at];
            store.set_centre(self.groups[at], count, agreement, self.taxonomy.centres().row(at))?;
        }
        store.set_familiar(self.taxonomy.familiar().unwrap_or(0.5).clamp(FAMILIAR.0, FAMILIAR.1))
    }

    /// The group whose centre is nearest to the item in a row of some cosines, but for one.
    pub(crate) fn runner_up(&self, cosines: &[f32], row: usize, but: Option<GroupId>) -> Option<GroupId> {
        let count = self.groups.len();
        let own = &cosines[row * count..][..count];
        let others = self.groups.iter().zip(own).filter(|&(&group, _)| Some(group) != but);
        others.max_by(|a, b| a.1.total_cmp(b.1)).map(|(&group, _)| group)
    }
}

/// Remembers what was learnt.
pub(crate) fn remember(store: &Store, calibration: &Calibration, familiar: f64) -> Result<(), Error> {
    let origin = CalibrationOrigin {
        encoder: store.meta("encoder")?,
        fitted_on: "the items of the collection".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: 0,
    };
    let bytes = calibration_to_bytes(calibration, &origin).map_err(|source| Error::Io {
        path: store.path().to_owned(),
        source,
    })?;
    store.set_knowledge(familiar.clamp(FAMILIAR.0, FAMILIAR.1), &bytes)
}

fn build(
    ids: &[GroupId],
    members: Vec<(f64, f64)>,
    centres: Features,
    calibration: &Arc<Calibration>,
    familiar: f64,
) -> Result<Taxonomy, Error> {
    let entries = ids.iter().zip(&members).map(|(id, (count, _))| TaxonomyEntry {
        name: id.to_string(),
        kind: Kind::Novel,
        items: *count as u64,
    });
    let taxonomy = Taxonomy::from_parts(entries.collect(), centres)?
        .with_calibration(calibration.clone(), members)?
        .with_familiar(familiar.clamp(FAMILIAR.0, FAMILIAR.1))?;
    Ok(taxonomy)
}

/// The centre of a group by some of its items, spread over all of them.
fn centre_of(
    store: &Store,
    parts: &[GroupId],
    count: usize,
    dim: usize,
    calibration: &Calibration,
) -> Result<(f64, f64, Vec<f32>), Error> {
    use crate::rules::View;
    let mut items = Vec::with_capacity(count);
    for &part in parts {
        items.extend(store.members(part)?);
    }
    items.sort_unstable();
    let rows = calibration.transform(&store.features(&spread(&items, SEEN), dim)?);
    let mut sum = vec![0.0f64; dim];
    for row in rows.iter() {
        sum.iter_mut()
            .zip(row)
            .for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    let centre = sum.iter().map(|value| (value * scale) as f32).collect();
    let agreement = (length / rows.rows().max(1) as f64).min(1.0);
    Ok((items.len() as f64, agreement, centre))
}

/// At most so many, evenly spread.
pub(crate) fn spread<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    match all.len() <= most {
        true => all.to_vec(),
        false => (0..most).map(|at| all[at * all.len() / most]).collect(),
    }
}

/// What was found in some items.
pub(crate) struct Found {
    /// Where each is among the categories of the taxonomy.
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) taxonomy: Taxonomy,
    /// Which are of one scene, where that was looked for among all.
    pub(crate) scenes: Option<Scenes>,
}

/// Sorts some items, as `discover` does: at once, or a subset of them and then the rest.
pub(crate) fn sort(
    store: &Store,
    dim: usize,
    support: &Support,
    items: &[ItemId],
    seed: u64,
    mut step: impl FnMut(u64),
) -> Result<Found, Error> {
    let shipped = CalibrationFile::shipped(store.meta("encoder")?.as_deref());
    let context = Context {
        calibration: shipped.map(|file| file.calibration),
        ..Context::seed(seed)
    };
    let method = MethodSpec::default().build(&context).map_err(genus::Error::from)?;
    if items.len() <= AT_ONCE {
        let task = Task::new(support, store.features(items, dim)?)?;
        let discovery = method.discover(&task)?;
        step(items.len() as u64);
        let taxonomy = Taxonomy::from_discovery(task.classes(), &discovery);
        let assignments = taxonomy.assignments_of(&discovery);
        return Ok(Found {
            assignments,
            taxonomy,
            scenes: discovery.scenes().cloned(),
        });
    }
    let pile = Pile {
        store,
        dim,
        items,
        support,
    };
    let mut sample = Sample::new(SUBSET, seed);
    let mut at = 0usize;
    pile.for_each(|block| {
        for row in block.iter() {
            sample.offer(row, || at);
            at += 1;
        }
        Ok::<(), Error>(())
    })?;
    let (chosen, _, values) = sample.finish();
    let task = Task::new(support, Features::new(dim, values)?)?;
    let two_step = TwoStep {
        method,
        subset: Subset::Random { size: SUBSET, seed },
        centre_norm: CentreNorm::Cosine,
        refine: 0,
    };
    let mut assignments = Vec::with_capacity(items.len());
    let query = |_: usize, item: &[f32]| chosen.number(item);
    let (_, taxonomy) = two_step.run(&task, query, &pile, |block, _, found| {
        step(block.rows() as u64);
        assignments.extend(found);
        Ok(())
    })?;
    Ok(Found {
        assignments,
        taxonomy,
        scenes: None,
    })
}

/// Items that are read again and again, block by block.
struct Pile<'a> {
    store: &'a Store,
    dim: usize,
    items: &'a [ItemId],
    support: &'a Support,
}

impl Blocks for Pile<'_> {
    type Block = Features;
    type Error = Error;

    fn for_each(&self, mut work: impl FnMut(Features) -> Result<(), Error>) -> Result<(), Error> {
        let mut blocks = self.items.chunks(BLOCK);
        blocks.try_for_each(|block| work(self.store.features(block, self.dim)?))
    }

    fn features(block: &Features) -> &Features {
        block
    }

    fn examples(&self) -> ExampleIndex {
        self.support.shown()
    }
}
