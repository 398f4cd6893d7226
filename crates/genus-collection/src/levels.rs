//! Levels: groups of groups, where two cuts of the tree of their centres agree on one.

use std::collections::{BTreeMap, BTreeSet};

use genus_core::Features;

use crate::collection::Groups;
use crate::error::Error;
use crate::model::GroupId;
use crate::rules::Draft;
use crate::store::Store;

/// With more categories than this no tree is made: it takes all pairs of them.
const MOST: usize = 4000;

/// With fewer, the two cuts are one.
const FEWEST: usize = 6;

/// How fine groups are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// As the items say.
    #[default]
    AsFound,
    /// New groups that are one in the level above are one.
    Coarser,
    /// New groups are divided once more.
    Finer,
}

/// Sets of categories, two or more each, that are one after a third of all merges of their centres and still alone, with nobody
/// else, after half of them.
pub(crate) fn sets(centres: &Features) -> Vec<Vec<usize>> {
    let count = centres.rows();
    if !(FEWEST..=MOST).contains(&count) {
        return Vec::new();
    }
    let Ok(unit) = centres.clone().into_unit() else {
        return Vec::new();
    };
    let cosines = unit.dots(&unit);
    let mut distances: Vec<f32> = Vec::with_capacity(count * (count - 1) / 2);
    for row in 0..count {
        distances.extend((row + 1..count).map(|column| 1.0 - cosines[row * count + column]));
    }
    let tree = kodama::linkage(&mut distances, count, kodama::Method::Average);
    let after = |merges: usize| -> BTreeSet<Vec<usize>> {
        let mut clusters: BTreeMap<usize, Vec<usize>> = (0..count).map(|at| (at, vec![at])).collect();
        for (at, step) in tree.steps().iter().take(merges).enumerate() {
            let mut members = clusters.remove(&step.cluster1).unwrap_or_default();
            members.extend(clusters.remove(&step.cluster2).unwrap_or_default());
            members.sort_unstable();
            clusters.insert(count + at, members);
        }
        clusters.into_values().filter(|members| members.len() > 1).collect()
    };
    let (lower, upper) = (after(count.div_ceil(3)), after(count / 2));
    lower.intersection(&upper).cloned().collect()
}

/// Gives every group its parent. A parent keeps its number and name with the most of its groups; one that has none is no more.
pub(crate) fn adopt(draft: &mut Draft<Store>, groups: &Groups, sets: &[Vec<GroupId>]) -> Result<(), Error> {
    let mut heirs: BTreeMap<usize, GroupId> = BTreeMap::new();
    let mut claims: BTreeMap<GroupId, BTreeMap<usize, usize>> = BTreeMap::new();
    for (set, members) in sets.iter().enumerate() {
        for member in members {
            let parent = groups.all.get(member).and_then(|group| group.parent);
            if let Some(parent) = parent.filter(|&parent| groups.resolve(parent) == Some(parent)) {
                *claims.entry(parent).or_default().entry(set).or_default() += 1;
            }
        }
    }
    for (parent, claims) in claims {
        let most = claims
            .into_iter()
            .max_by_key(|&(set, count)| (count, std::cmp::Reverse(set)));
        if let Some((set, _)) = most {
            heirs.entry(set).or_insert(parent);
        }
    }
    let mut parent_of: BTreeMap<GroupId, GroupId> = BTreeMap::new();
    for (set, members) in sets.iter().enumerate() {
        let parent = match heirs.get(&set) {
            Some(&parent) => parent,
            None => {
                let parent = draft.new_parent()?;
                heirs.insert(set, parent);
                parent
            }
        };
        parent_of.extend(members.iter().map(|&member| (member, parent)));
    }
    let kept: BTreeSet<GroupId> = heirs.values().copied().collect();
    let mut all: BTreeSet<GroupId> = groups.parts.keys().copied().collect();
    all.extend(parent_of.keys());
    for id in all {
        let Some(group) = draft.group(id)? else { continue };
        let parent = parent_of.get(&id).copied();
        if group.holds_groups && !kept.contains(&id) {
            draft.change_group(id, |group| group.ended = true)?;
        } else if !group.holds_groups && group.parent != parent {
            draft.change_group(id, |group| group.parent = parent)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_centres_are_a_set() {
        // Two pairs, three that are near each other, and some that are nearer to one another than to these.
        let row = |at: usize, near: usize| {
            let mut row = [0.0f32; 12];
            row[at] = 1.0;
            row[11] = 0.1 * near as f32;
            row[10] = if at > 2 { 0.5 } else { 0.0 };
            row
        };
        let rows = [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
            (2, 0),
            (2, 1),
            (2, 2),
            (3, 0),
            (4, 0),
            (5, 0),
            (6, 0),
            (7, 0),
        ];
        let centres = Features::from_rows(rows.map(|(at, near)| row(at, near))).unwrap();
        assert_eq!(sets(&centres), [vec![0, 1], vec![2, 3], vec![4, 5, 6]]);
        assert_eq!(sets(&centres.select(&[0, 1])), Vec::<Vec<usize>>::new());
    }
}
