//! Parts that a group may be split into.

use genus_core::{Features, Support};

use crate::collection::Collection;
use crate::error::Error;
use crate::knowledge;
use crate::model::{GroupId, ItemId};
use crate::rules::{Draft, Refusal, View};

/// Rounds of moving items to the nearest centre.
const ROUNDS: usize = 30;

impl Collection {
    /// Parts of a group, the largest first: as many as are asked for, or as many as its items form by themselves, two at least.
    pub fn propose_split(&self, group: GroupId, into: Option<usize>) -> Result<Vec<Vec<ItemId>>, Error> {
        self.store.snapshot(|store| {
            let draft = Draft::new(store, Default::default(), store.next()?);
            let whole = draft.resolve(group)?.ok_or(Refusal::NoGroup { group })?;
            let mut items = Vec::new();
            for part in draft.tree(whole)? {
                items.extend(store.members(part)?);
            }
            items.sort_unstable();
            let dim = self.dim()?.ok_or(Error::Nothing)?;
            if items.len() < 2 || into.is_some_and(|parts| parts < 2 || parts > items.len()) {
                return Err(Refusal::OnePart.into());
            }
            let mut numbers = Vec::new();
            if into.is_none() {
                let found = knowledge::sort(store, dim, &Support::none(dim), &items, self.seed()?, |_| {})?;
                numbers = found.assignments.iter().map(|found| found.category).collect();
            }
            if numbers.iter().all(|&number| Some(&number) == numbers.first()) {
                numbers = parts_of(&store.features(&items, dim)?, into.unwrap_or(2));
            }
            let mut parts = vec![Vec::new(); numbers.iter().max().map_or(0, |most| most + 1)];
            items
                .iter()
                .zip(numbers)
                .for_each(|(&item, part)| parts[part].push(item));
            parts.retain(|part: &Vec<ItemId>| !part.is_empty());
            parts.sort_by_key(|part| (std::cmp::Reverse(part.len()), part[0]));
            match parts.len() {
                0 | 1 => Err(Refusal::OnePart.into()),
                _ => Ok(parts),
            }
        })
    }
}

/// So many parts by k-means on unit rows, begun with items far from each other: nothing is random.
pub(crate) fn parts_of(rows: &Features, count: usize) -> Vec<usize> {
    let dim = rows.dim();
    let mean = mean_of(rows, |_| true);
    let centred: Vec<f32> = rows
        .iter()
        .flat_map(|row| {
            row.iter()
                .zip(&mean)
                .map(|(&value, &mean)| (f64::from(value) - mean) as f32)
        })
        .collect();
    let row = |at: usize| &centred[at * dim..][..dim];
    let distance = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum() };
    let furthest = |nearest: &[f64]| {
        let order = |&a: &usize, &b: &usize| nearest[a].total_cmp(&nearest[b]).then(b.cmp(&a));
        (0..nearest.len()).max_by(order).unwrap_or(0)
    };
    let origin = vec![0.0; dim];
    let mut nearest: Vec<f64> = (0..rows.rows()).map(|at| distance(row(at), &origin)).collect();
    let mut centres: Vec<Vec<f32>> = vec![row(furthest(&nearest)).to_vec()];
    nearest.fill(f64::INFINITY);
    while centres.len() < count {
        let last = &centres[centres.len() - 1];
        (0..nearest.len()).for_each(|at| nearest[at] = nearest[at].min(distance(row(at), last)));
        centres.push(row(furthest(&nearest)).to_vec());
    }
    let mut numbers = vec![0; rows.rows()];
    for _ in 0..ROUNDS {
        let mut moved = false;
        for (at, number) in numbers.iter_mut().enumerate() {
            let best = (0..count)
                .map(|centre| (distance(row(at), &centres[centre]), centre))
                .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
                .map_or(0, |(_, centre)| centre);
            moved |= *number != best;
            *number = best;
        }
        if !moved {
            break;
        }
        for (part, centre) in centres.iter_mut().enumerate() {
            let members: Vec<usize> = (0..numbers.len()).filter(|&at| numbers[at] == part).collect();
            if members.is_empty() {
                continue;
            }
            for (column, value) in centre.iter_mut().enumerate() {
                let sum: f64 = members.iter().map(|&at| f64::from(row(at)[column])).sum();
                *value = (sum / members.len() as f64) as f32;
            }
        }
    }
    numbers
}

fn mean_of(rows: &Features, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut sum = vec![0.0; rows.dim()];
    let mut count = 0.0;
    for (_, row) in rows.iter().enumerate().filter(|&(at, _)| wanted(at)) {
        count += 1.0;
        sum.iter_mut()
            .zip(row)
            .for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sum.iter().map(|sum| sum / f64::max(count, 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_parts_are_found() {
        let rows = (0..30).map(|at| {
            let mut row = [0.1, 0.1, 0.1];
            row[at % 3] = 1.0 + 0.01 * at as f32;
            row
        });
        let rows = Features::from_rows(rows).unwrap().into_unit().unwrap();
        let parts = parts_of(&rows, 3);
        (0..30).for_each(|at| assert_eq!(parts[at], parts[at % 3]));
        assert_eq!(parts_of(&rows, 3), parts);
    }
}
