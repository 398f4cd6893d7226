//! t-SNE (van der Maaten and Hinton 2008), started from the principal components.
//!
//! Few points feel every other one ([`pairs`]). Many feel the attraction of their neighbours ([`neighbours`]) and the
//! repulsion of the others through a tree ([`tree`]): Barnes and Hut's way rather than that of interpolation on a grid,
//! because at the sizes that a page can show it is as fast, and it needs no Fourier transform and no grid that grows with
//! the map.
//!
//! It is our own because the crates for it sum in parallel in an order that depends on the number of threads. Here every
//! point's sums are one thread's work and run in an order that the points alone decide.

mod neighbours;
mod pairs;
mod tree;

use crate::Features;
use crate::rng::Rng;

use self::neighbours::Neighbours;
use self::pairs::Pairs;

/// With fewer points there are no neighbours to keep.
pub(super) const FEWEST: usize = 5;
/// With more points it would take more than a minute, and a map of them shows little but density.
pub(super) const MOST: usize = 30_000;
/// Up to so many points all pairs are about as fast as the tree.
const PAIRS_UP_TO: usize = 300;

/// To so many neighbours a point is close.
const PERPLEXITY: f64 = 30.0;
const STEPS: usize = 1_000;
/// At first neighbours attract each other so many times as strongly, which brings groups together …
const EXAGGERATION: f64 = 12.0;
/// … for so many steps, with little momentum.
const EARLY: usize = 250;

/// What all other points do to one.
#[derive(Clone, Copy, Debug, Default)]
struct Force {
    attraction: [f64; 2],
    repulsion: [f64; 2],
    /// The sum of the kernel over the other points.
    weight: f64,
}

/// How likely points are neighbours, and so what moves them.
enum Affinities {
    All(Pairs),
    Nearest(Neighbours),
}

impl Affinities {
    /// `None` where all rows are the same.
    fn new(rows: &Features) -> Option<Self> {
        let perplexity = PERPLEXITY.min((rows.rows() - 1) as f64 / 3.0);
        match rows.rows() <= PAIRS_UP_TO {
            true => Pairs::new(rows, perplexity).map(Self::All),
            false => Neighbours::new(rows, perplexity).map(Self::Nearest),
        }
    }

    fn forces(&self, place: &[[f64; 2]], tree: &mut tree::BarnesHutTree) -> Vec<Force> {
        match self {
            Self::All(pairs) => pairs.forces(place),
            Self::Nearest(neighbours) => {
                let mut forces = tree.repulsion(place);
                neighbours.attract(place, &mut forces);
                forces
            }
        }
    }
}

/// The place of every row; `None` where all rows are the same or the steps lead nowhere.
pub(super) fn points(rows: &Features, principal: &[[f32; 2]], seed: u64) -> Option<Vec<[f32; 2]>> {
    let n = rows.rows();
    let mut place = start(principal, seed)?;
    let affinities = Affinities::new(rows)?;
    let mut tree = tree::BarnesHutTree::new(n);
    let mut speed = vec![[0.0; 2]; n];
    let mut gain = vec![[1.0; 2]; n];
    // The largest steps that do not overshoot while attraction is strong (Belkina et al. 2019). Others take at least 50,
    // which throws small maps about until nothing of the start is left.
    let rate = n as f64 / EXAGGERATION / 4.0;
    for step in 0..STEPS {
        let (exaggeration, momentum) = if step < EARLY { (EXAGGERATION, 0.5) } else { (1.0, 0.8) };
        let forces = affinities.forces(&place, &mut tree);
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

/// Turns squared distances into the probabilities of a Gaussian whose width makes their entropy that of `perplexity`
/// equal neighbours. The point at `own`, if any, is the one that the distances are from.
fn to_probabilities(row: &mut [f32], own: Option<usize>, perplexity: f64) {
    let other = |j: usize| own != Some(j);
    let nearest = (0..row.len())
        .filter(|&j| other(j))
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
            *weight = if !other(j) || exponent > 40.0 {
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
