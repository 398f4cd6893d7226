//! Exact t-SNE (van der Maaten and Hinton 2008), started from the principal components.
//!
//! It is our own because the crates for it sum in parallel in an order that depends on the number of threads, and bring
//! trees and Fourier transforms for sizes that nobody draws. Here threads share rows only and every sum runs in the order
//! of its indices.

use genus_core::{Features, rng::Rng};
use rayon::prelude::*;

/// With fewer points there are no neighbours to keep.
pub(super) const FEWEST: usize = 5;
/// With more points the matrix of all pairs is too large.
pub(super) const MOST: usize = 5_000;

const STEPS: usize = 1_000;
/// At first neighbours attract each other so many times as strongly, which brings groups together …
const EXAGGERATION: f64 = 12.0;
/// … for so many steps, with little momentum.
const EARLY: usize = 250;
/// Sums run in so many lanes, which the compiler makes vectors of.
const LANES: usize = 8;
/// Points whose forces are computed together: their numbers fit the first-level cache.
const BLOCK: usize = 256;

/// The place of every row; `None` where all rows are the same or the steps lead nowhere.
pub(super) fn points(rows: &Features, principal: &[[f32; 2]], seed: u64) -> Option<Vec<[f32; 2]>> {
    let n = rows.rows();
    let perplexity = 30f64.min((n - 1) as f64 / 3.0);
    let affinities = affinities(squared_distances(rows)?, n, perplexity);
    let mut place = start(principal, seed)?;
    let mut speed = vec![[0.0; 2]; n];
    let mut gain = vec![[1.0; 2]; n];
    // The largest steps that do not overshoot while attraction is strong (Belkina et al. 2019). Others take at least 50,
    // which throws small maps about until nothing of the start is left.
    let rate = n as f64 / EXAGGERATION / 4.0;
    for step in 0..STEPS {
        let (exaggeration, momentum) = if step < EARLY { (EXAGGERATION, 0.5) } else { (1.0, 0.8) };
        let forces = forces(&affinities, &place);
        let total: f64 = forces.iter().map(|force| force.weight).sum();
        for i in 0..n {
            for axis in 0..2 {
                let slope = 4.0 * (exaggeration * forces[i].attraction[axis] - forces[i].repulsion[axis] / total);
                // Steps grow along directions that keep their sign and shrink along those that do not.
                let same = (slope > 0.0) == (speed[i][axis] > 0.0);
                gain[i][axis] = if same {
                    0.01f64.max(0.8 * gain[i][axis])
                } else {
                    gain[i][axis] + 0.2
                };
                speed[i][axis] = momentum * speed[i][axis] - rate * gain[i][axis] * slope;
                place[i][axis] += speed[i][axis];
            }
        }
        for axis in 0..2 {
            let mean = place.iter().map(|p| p[axis]).sum::<f64>() / n as f64;
            place.iter_mut().for_each(|p| p[axis] -= mean);
        }
    }
    // Mirrored, a map is as good: it is shown the way the components lie.
    for axis in 0..2 {
        let alike = place
            .iter()
            .zip(principal)
            .map(|(p, start)| p[axis] * f64::from(start[axis]));
        if alike.sum::<f64>() < 0.0 {
            place.iter_mut().for_each(|p| p[axis] = -p[axis]);
        }
    }
    let places: Vec<[f32; 2]> = place.iter().map(|p| p.map(|value| value as f32)).collect();
    places
        .as_flattened()
        .iter()
        .all(|value| value.is_finite())
        .then_some(places)
}

/// The squared distances of all pairs, with a mean of one; `None` where all are zero.
fn squared_distances(rows: &Features) -> Option<Vec<f32>> {
    let (n, dim) = (rows.rows(), rows.dim());
    // Squares of what lies between −1 and 1 do not overflow.
    let most = rows.values().iter().fold(0.0, |most: f32, value| most.max(value.abs()));
    if most == 0.0 {
        return None;
    }
    let values: Vec<f32> = rows.values().iter().map(|value| value / most).collect();
    let mut distances = vec![0.0; n * n];
    distances.par_chunks_mut(n).enumerate().for_each(|(i, out)| {
        let one = &values[i * dim..][..dim];
        for (other, cell) in values.chunks_exact(dim).zip(out) {
            *cell = lanes(one, other, |sum, a, b| sum + (a - b) * (a - b));
        }
    });
    let sums: Vec<f64> = distances
        .par_chunks(n)
        .map(|row| row.iter().map(|&d| f64::from(d)).sum())
        .collect();
    let mean = sums.iter().sum::<f64>() / (n * n) as f64;
    if mean == 0.0 {
        return None;
    }
    distances
        .par_iter_mut()
        .for_each(|d| *d = (f64::from(*d) / mean) as f32);
    Some(distances)
}

/// From squared distances to the symmetric probabilities that two points are neighbours; they sum to one.
fn affinities(mut matrix: Vec<f32>, n: usize, perplexity: f64) -> Vec<f32> {
    matrix
        .par_chunks_mut(n)
        .enumerate()
        .for_each(|(i, row)| to_probabilities(row, i, perplexity));
    let share = 0.5 / n as f32;
    for i in 0..n {
        for j in 0..i {
            let both = share * (matrix[i * n + j] + matrix[j * n + i]);
            matrix[i * n + j] = both;
            matrix[j * n + i] = both;
        }
    }
    matrix
}

/// Turns the distances from point `i` into the probabilities of a bell curve whose width makes their entropy that of
/// `perplexity` equal neighbours.
fn to_probabilities(row: &mut [f32], i: usize, perplexity: f64) {
    let nearest = (0..row.len())
        .filter(|&j| j != i)
        .map(|j| row[j])
        .fold(f32::MAX, f32::min);
    // Only differences to the nearest point matter, and they keep the sum away from zero.
    let beyond: Vec<f64> = row.iter().map(|&d| f64::from(d) - f64::from(nearest)).collect();
    let mean = beyond.iter().sum::<f64>() / row.len() as f64;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut narrow = if mean > 0.0 { mean.recip() } else { 1.0 };
    let mut weights = vec![0.0; row.len()];
    let mut sum = 0.0;
    // Sixty halvings and doublings: equal neighbours may keep the entropy above the target for ever.
    for _ in 0..60 {
        sum = 0.0;
        let mut weighted = 0.0;
        for (j, (weight, &d)) in weights.iter_mut().zip(&beyond).enumerate() {
            let exponent = narrow * d;
            *weight = if j == i || exponent > 40.0 {
                0.0
            } else {
                (-exponent).exp()
            };
            sum += *weight;
            weighted += *weight * exponent;
        }
        let excess = sum.ln() + weighted / sum - perplexity.ln();
        if excess.abs() < 1e-5 {
            break;
        }
        if excess > 0.0 {
            low = narrow;
            narrow = if high.is_finite() {
                (low + high) / 2.0
            } else {
                2.0 * low
            };
        } else {
            high = narrow;
            narrow = (low + high) / 2.0;
        }
    }
    row.iter_mut()
        .zip(&weights)
        .for_each(|(p, weight)| *p = (weight / sum) as f32);
}

/// The principal components, made tiny. A hair of noise frees points that lie on one line, or on each other.
fn start(principal: &[[f32; 2]], seed: u64) -> Option<Vec<[f64; 2]>> {
    let n = principal.len() as f64;
    let square = |point: &[f32; 2]| f64::from(point[0]) * f64::from(point[0]);
    let spread = (principal.iter().map(square).sum::<f64>() / n).sqrt();
    let mut rng = Rng::new(seed, &[0x75e]);
    (spread > 0.0 && spread.is_finite()).then(|| {
        let place = |value: f32, noise: f64| 1e-4 * (f64::from(value) / spread + 1e-2 * (noise - 0.5));
        principal
            .iter()
            .map(|point| [place(point[0], rng.unit()), place(point[1], rng.unit())])
            .collect()
    })
}

/// What all other points do to one.
#[derive(Default)]
struct Force {
    attraction: [f64; 2],
    repulsion: [f64; 2],
    /// The sum of the kernel over the other points.
    weight: f64,
}

/// The forces on every point, in one pass over all pairs.
fn forces(affinities: &[f32], place: &[[f64; 2]]) -> Vec<Force> {
    let n = place.len();
    let xs: Vec<f32> = place.iter().map(|p| p[0] as f32).collect();
    let ys: Vec<f32> = place.iter().map(|p| p[1] as f32).collect();
    affinities
        .par_chunks(n)
        .enumerate()
        .map(|(i, row)| force(row, &xs, &ys, xs[i], ys[i]))
        .collect()
}

fn force(row: &[f32], xs: &[f32], ys: &[f32], x: f32, y: f32) -> Force {
    let mut force = Force::default();
    let [mut dx, mut dy, mut kernel, mut pull, mut push] = [[0f32; BLOCK]; 5];
    for ((row, xs), ys) in row.chunks(BLOCK).zip(xs.chunks(BLOCK)).zip(ys.chunks(BLOCK)) {
        // First what has no sums, then the sums one by one: a loop that does both does not become vectors.
        for (i, ((&p, &other_x), &other_y)) in row.iter().zip(xs).zip(ys).enumerate() {
            dx[i] = x - other_x;
            dy[i] = y - other_y;
            kernel[i] = 1.0 / (1.0 + dx[i] * dx[i] + dy[i] * dy[i]);
            pull[i] = p * kernel[i];
            push[i] = kernel[i] * kernel[i];
        }
        let used = ..row.len();
        for (axis, gaps) in [&dx[used], &dy[used]].into_iter().enumerate() {
            force.attraction[axis] += f64::from(lanes(&pull[used], gaps, |sum, pull, gap| sum + pull * gap));
            force.repulsion[axis] += f64::from(lanes(&push[used], gaps, |sum, push, gap| sum + push * gap));
        }
        force.weight += f64::from(lanes(&kernel[used], &kernel[used], |sum, kernel, _| sum + kernel));
    }
    // The point itself is one of the others: no distance, so no force, but a kernel of one.
    force.weight -= 1.0;
    force
}

/// Adds up what `add` makes of pairs of numbers, lane by lane.
#[inline(always)]
fn lanes(a: &[f32], b: &[f32], add: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..LANES {
            sums[lane] = add(sums[lane], a[lane], b[lane]);
        }
    }
    for (lane, (&a, &b)) in rest_a.iter().zip(rest_b).enumerate() {
        sums[lane] = add(sums[lane], a, b);
    }
    sums.iter().sum()
}
