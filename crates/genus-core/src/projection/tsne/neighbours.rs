//! The nearest neighbours of every point, and how they attract it.

use rayon::prelude::*;

use super::{Force, to_probabilities};
use crate::Features;
use crate::cluster::neighbours::{NearRow, nearest};
use crate::eigen::leading;
use crate::linalg;

/// Beyond so many features distances are taken along the longest directions of the rows: what is left out is mostly noise,
/// and neighbours are found ten times as fast.
const DIRECTIONS: usize = 50;

/// The symmetric probabilities that two points are neighbours, for those that are; they sum to one.
pub(super) struct Neighbours {
    /// Where the neighbours of every point begin, and where the last end.
    begin: Vec<usize>,
    /// The neighbours of a point in the order of their numbers.
    other: Vec<u32>,
    affinity: Vec<f32>,
}

impl Neighbours {
    /// Finds three times as many neighbours as the perplexity of every row, beyond which a Gaussian has nothing.
    ///
    /// `None` where all rows are the same.
    pub(super) fn new(rows: &Features, perplexity: f64) -> Option<Self> {
        let (values, dim) = reduced(rows)?;
        let count = ((3.0 * perplexity) as usize).clamp(1, rows.rows() - 1);
        let mut nearest = nearest(&values, dim, count);
        nearest.par_iter_mut().for_each(|near| {
            let mut distances: Vec<f32> = near.iter().map(|near| near.value).collect();
            to_probabilities(&mut distances, None, perplexity);
            near.iter_mut()
                .zip(distances)
                .for_each(|(near, probability)| near.value = probability);
        });
        Some(Self::symmetric(&nearest))
    }

    /// Half of what one point says of the other and half of what the other says of it.
    fn symmetric(nearest: &[Vec<NearRow>]) -> Self {
        let n = nearest.len();
        let share = 0.5 / n as f32;
        let mut both: Vec<Vec<NearRow>> = nearest.to_vec();
        for (point, near) in nearest.iter().enumerate() {
            for near in near {
                both[near.other as usize].push(NearRow {
                    other: point as u32,
                    value: near.value,
                });
            }
        }
        both.par_iter_mut().for_each(|near| {
            near.sort_unstable_by_key(|near| near.other);
            near.dedup_by(|later, kept| {
                let same = later.other == kept.other;
                if same {
                    kept.value += later.value;
                }
                same
            });
            near.iter_mut().for_each(|near| near.value *= share);
        });
        let mut begin = vec![0];
        begin.extend(both.iter().scan(0, |end, near| {
            *end += near.len();
            Some(*end)
        }));
        Self {
            begin,
            other: both.iter().flatten().map(|near| near.other).collect(),
            affinity: both.iter().flatten().map(|near| near.value).collect(),
        }
    }

    /// Adds the attraction of its neighbours to the forces on every point.
    pub(super) fn attract(&self, place: &[[f64; 2]], forces: &mut [Force]) {
        let places: Vec<[f32; 2]> = place.iter().map(|p| p.map(|value| value as f32)).collect();
        forces.par_iter_mut().enumerate().for_each(|(i, force)| {
            let own = self.begin[i]..self.begin[i + 1];
            force.attraction = attraction(places[i], &self.other[own.clone()], &self.affinity[own], &places);
        });
    }
}

fn attraction(from: [f32; 2], others: &[u32], affinities: &[f32], places: &[[f32; 2]]) -> [f64; 2] {
    // Four sums side by side: one would wait for itself.
    let mut sums = [[0f32; 2]; 4];
    let mut add = |lane: usize, other: u32, affinity: f32| {
        let place = places[other as usize];
        let gap = [from[0] - place[0], from[1] - place[1]];
        let pull = affinity / (1.0 + gap[0] * gap[0] + gap[1] * gap[1]);
        sums[lane][0] += pull * gap[0];
        sums[lane][1] += pull * gap[1];
    };
    let (others4, others_rest) = others.as_chunks::<4>();
    let (affinities4, affinities_rest) = affinities.as_chunks::<4>();
    for (others, affinities) in others4.iter().zip(affinities4) {
        for lane in 0..4 {
            add(lane, others[lane], affinities[lane]);
        }
    }
    for (lane, (&other, &affinity)) in others_rest.iter().zip(affinities_rest).enumerate() {
        add(lane, other, affinity);
    }
    [0, 1].map(|axis| sums.iter().map(|sum| f64::from(sum[axis])).sum())
}

/// Rows without their mean, between −1 and 1, along their longest directions where there are many; `None` where all rows
/// are the same.
fn reduced(rows: &Features) -> Option<(Vec<f32>, usize)> {
    let (n, dim) = (rows.rows(), rows.dim());
    let mut mean = vec![0f64; dim];
    for row in rows.iter() {
        mean.iter_mut()
            .zip(row)
            .for_each(|(mean, &value)| *mean += f64::from(value));
    }
    mean.iter_mut().for_each(|mean| *mean /= n as f64);
    let centred = || {
        rows.iter()
            .flat_map(|row| row.iter().zip(&mean))
            .map(|(&v, m)| f64::from(v) - m)
    };
    let most = centred().fold(0.0, |most: f64, value| most.max(value.abs()));
    if most == 0.0 {
        return None;
    }
    let values: Vec<f32> = centred().map(|value| (value / most) as f32).collect();
    if dim <= DIRECTIONS {
        return Some((values, dim));
    }
    let directions: Vec<f32> = leading(&values, dim, DIRECTIONS)
        .into_iter()
        .flat_map(|(_, direction)| direction)
        .collect();
    let count = directions.len() / dim;
    (count > 0).then(|| (linalg::dots(&values, &directions, dim), count))
}

#[cfg(test)]
mod tests {
    use super::super::pairs::Pairs;
    use super::*;
    use crate::rng::Rng;

    fn random(rows: usize, dim: usize, seed: u64) -> Features {
        let mut rng = Rng::new(seed, &[rows as u64, dim as u64]);
        Features::new(dim, (0..rows * dim).map(|_| (rng.unit() - 0.5) as f32).collect()).unwrap()
    }

    #[test]
    fn with_all_points_as_neighbours_they_are_all_pairs() {
        let (n, dim) = (90, 7);
        let rows = random(n, dim, 2);
        let place: Vec<[f64; 2]> = rows
            .iter()
            .map(|row| [f64::from(row[0]) * 40.0, f64::from(row[1]) * 9.0])
            .collect();
        // Three times the perplexity is all the others.
        let perplexity = (n - 1) as f64 / 3.0;
        let neighbours = Neighbours::new(&rows, perplexity).unwrap();
        assert_eq!(neighbours.other.len(), n * (n - 1));
        let mut found = vec![Force::default(); n];
        neighbours.attract(&place, &mut found);
        for (found, exact) in found.iter().zip(Pairs::new(&rows, perplexity).unwrap().forces(&place)) {
            for axis in 0..2 {
                let (found, exact) = (found.attraction[axis], exact.attraction[axis]);
                assert!((found - exact).abs() < 1e-4 * exact.abs() + 1e-7, "{found} for {exact}");
            }
        }
    }

    #[test]
    fn affinities_are_symmetric_and_sum_to_one() {
        for (n, dim) in [(400, 6), (300, 70)] {
            let found = Neighbours::new(&random(n, dim, 3), 20.0).unwrap();
            let of = |i: usize| {
                let own = found.begin[i]..found.begin[i + 1];
                found.other[own.clone()]
                    .iter()
                    .copied()
                    .zip(found.affinity[own].iter().copied())
            };
            for i in 0..n {
                assert!(of(i).count() >= 60 && of(i).is_sorted_by(|a, b| a.0 < b.0));
                for (other, affinity) in of(i) {
                    assert_ne!(i, other as usize);
                    assert!(
                        of(other as usize).any(|back| back == (i as u32, affinity)),
                        "{i} and {other}"
                    );
                }
            }
            let sum: f64 = found.affinity.iter().map(|&p| f64::from(p)).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
    }

    #[test]
    fn the_longest_directions_keep_the_neighbours() {
        // A hundred features, of which seven say something.
        let (rows, noise) = (random(500, 7, 4), random(500, 100, 5));
        let wide = rows.iter().zip(noise.iter()).map(|(row, noise)| -> Vec<f32> {
            let said = |at: usize| row[at % 7] * ((at * 31 % 17) as f32 - 8.0);
            (0..100).map(|at| 1e3 + said(at) + 1e-3 * noise[at]).collect()
        });
        let wide = Features::from_rows(wide).unwrap();
        let (values, dim) = reduced(&wide).unwrap();
        assert!(
            values.len() == 500 * dim && (7..=DIRECTIONS).contains(&dim),
            "{dim} directions"
        );
        let near = |values: &[f32], dim: usize| -> Vec<Vec<u32>> {
            let sorted = |near: Vec<NearRow>| near.into_iter().map(|near| near.other).collect();
            nearest(values, dim, 10).into_iter().map(sorted).collect()
        };
        let centred: Vec<f32> = wide.values().iter().map(|v| v - 1e3).collect();
        let same = near(&values, dim)
            .iter()
            .flatten()
            .zip(near(&centred, 100).iter().flatten())
            .filter(|(a, b)| a == b)
            .count();
        assert!(same > 4_900, "{same} of 5000");
    }

    #[test]
    fn equal_rows_have_no_neighbours() {
        assert!(Neighbours::new(&Features::new(3, vec![0.25; 60]).unwrap(), 3.0).is_none());
    }
}
