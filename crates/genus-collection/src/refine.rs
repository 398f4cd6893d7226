//! What was found, sorted once more by the examples: every group's centre follows its examples and, less, what is like them.
//!
//! A method looks for what lies together; a few examples say which of that is one kind. So a group that holds several kinds is
//! parted as soon as one item of each has been put where it belongs, which takes many corrections when only single items move.

use genus_core::{Features, Support, Taxonomy};

use crate::error::Error;
use crate::knowledge::Found;

/// How much an item that nobody decided about counts beside an example.
const UNSAID: f64 = 0.3;
/// By how much the logarithm of a chance grows with the cosine.
const SHARPNESS: f32 = 20.0;
/// Chances below this say nothing.
const LEAST: f32 = 0.01;
/// A group with a larger chance is likelier than all others together.
const LIKELY: f32 = 0.5;
/// How often the centres follow.
const ROUNDS: usize = 6;

/// The chances of an item between groups, given its cosines with their centres.
pub(crate) fn chances(cosines: &[f32]) -> Vec<f32> {
    let most = cosines.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut chances: Vec<f32> = cosines
        .iter()
        .map(|cosine| (SHARPNESS * (cosine - most)).exp())
        .collect();
    let sum: f32 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= sum);
    chances
}

/// What was found in some rows, once the centres have followed the examples.
pub(crate) fn by_examples(found: Found, support: &Support, rows: &Features) -> Result<Found, Error> {
    let Some(calibration) = found.taxonomy.calibration().cloned() else {
        return Ok(found);
    };
    let (dim, count) = (rows.dim(), found.taxonomy.entries().len());
    let items = calibration.transform(rows);
    let examples = calibration.transform(support.features());
    let mut said = vec![0.0f64; count * dim];
    for (example, &class) in examples.iter().zip(support.labels()) {
        add(&mut said[class * dim..][..dim], example, 1.0);
    }
    // Classes begin where their examples are, and what was found where its items are.
    let known = support.classes().len();
    let mut sums = said.clone();
    for (item, assignment) in items.iter().zip(&found.assignments) {
        if assignment.category >= known {
            add(&mut sums[assignment.category * dim..][..dim], item, 1.0);
        }
    }
    let mut centres = directions(&sums, found.taxonomy.centres(), dim)?;
    for _ in 0..ROUNDS {
        let cosines = items.dots(&centres);
        sums.copy_from_slice(&said);
        for (item, cosines) in items.iter().zip(cosines.chunks_exact(count)) {
            for (group, chance) in chances(cosines).into_iter().enumerate() {
                if chance >= LEAST {
                    add(&mut sums[group * dim..][..dim], item, UNSAID * f64::from(chance));
                }
            }
        }
        centres = directions(&sums, &centres, dim)?;
    }
    // How many are in each now, and how near to its centre they are, says how near others ought to be.
    let mut members = vec![(0.0f64, 0.0f64); count];
    let own = examples.dots(&centres);
    for (cosines, &class) in own.chunks_exact(count).zip(support.labels()) {
        members[class].0 += 1.0;
        members[class].1 += f64::from(cosines[class]);
    }
    for cosines in items.dots(&centres).chunks_exact(count) {
        let best = (0..count).max_by(|&a, &b| cosines[a].total_cmp(&cosines[b]).then(b.cmp(&a)));
        if let Some(best) = best {
            members[best].0 += 1.0;
            members[best].1 += f64::from(cosines[best]);
        }
    }
    let members = members
        .into_iter()
        .map(|(items, near)| (items.max(1.0), (near / items.max(1.0)).clamp(0.0, 1.0)));
    let mut taxonomy = Taxonomy::from_parts(found.taxonomy.entries().to_vec(), centres)?
        .with_calibration(calibration, members.collect())?;
    if let Some(familiar) = found.taxonomy.familiar() {
        taxonomy = taxonomy.with_familiar(familiar)?;
    }
    let mut assignments = taxonomy.assign(rows)?;
    // One that lay well with others, and lies nearer to one group than to all the rest, is not odd: it need not wait.
    let cosines = items.dots(taxonomy.centres());
    let both = assignments.iter_mut().zip(&found.assignments);
    for ((assignment, before), cosines) in both.zip(cosines.chunks_exact(count)) {
        let chance = chances(cosines)[assignment.category];
        assignment.score.unsure &= before.score.unsure || chance <= LIKELY;
    }
    Ok(Found {
        assignments,
        taxonomy,
        scenes: found.scenes,
    })
}

fn add(sum: &mut [f64], row: &[f32], weight: f64) {
    sum.iter_mut()
        .zip(row)
        .for_each(|(sum, &value)| *sum += weight * f64::from(value));
}

/// The directions of some sums; of one that has none, the one that was before.
fn directions(sums: &[f64], before: &Features, dim: usize) -> Result<Features, Error> {
    let mut values = Vec::with_capacity(sums.len());
    for (sum, before) in sums.chunks_exact(dim).zip(before.iter()) {
        let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
        match length > 1e-9 {
            true => values.extend(sum.iter().map(|value| (value / length) as f32)),
            false => values.extend_from_slice(before),
        }
    }
    Ok(Features::new(dim, values)?)
}
