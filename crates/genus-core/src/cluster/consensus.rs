//! The partition that agrees best with several others.
//!
//! Every partition says of every pair of points whether they belong together. The consensus puts those pairs together that more than
//! half of the partitions do, by weight, as far as pairs allow: it maximises the sum over its pairs of (share that puts them
//! together − ½), which makes it the median partition under the Rand distance.

use crate::discovery::canonical;

/// A partition and how much it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vote<'a> {
    /// The cluster of every point, numbered from 0.
    pub(crate) clusters: &'a [usize],
    pub(crate) weight: f64,
}

/// Pairs that a larger share of the votes puts together belong together.
const MAJORITY: f64 = 0.5;
/// Votes that weigh less than this share of the heaviest are not where a search starts.
const START: f64 = 0.3;
/// Searches that are made at most.
const STARTS: usize = 4;
/// Rounds of moves and merges at most; few are needed.
const ROUNDS: usize = 50;
/// Gains below this are rounding.
const LEAST_GAIN: f64 = 1e-9;

/// The consensus of partitions of the same points, clusters numbered by their first points. Points of different classes are never in
/// one cluster.
///
/// The search is local, from the heaviest votes: clusters exchange and merge what all votes keep together until nothing gains.
pub(crate) fn consensus(votes: &[Vote<'_>], class: &[Option<u32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..votes.len()).collect();
    order.sort_by(|&a, &b| votes[b].weight.total_cmp(&votes[a].weight).then(a.cmp(&b)));
    let Some(&heaviest) = order.first() else {
        return vec![0; class.len()];
    };
    let atoms = Atoms::new(votes, class);
    let starts = order
        .iter()
        .take_while(|&&vote| votes[vote].weight >= START * votes[heaviest].weight)
        .take(STARTS);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for &vote in starts {
        let found = Search::new(&atoms, vote).run();
        if best.as_ref().is_none_or(|best| found.0 > best.0 + LEAST_GAIN) {
            best = Some(found);
        }
    }
    let of_atom = best.map_or_else(|| vec![0; atoms.size.len()], |best| best.1);
    canonical(&atoms.of.iter().map(|&atom| of_atom[atom]).collect::<Vec<_>>()).0
}

/// How much every cluster resembles one of each vote, between 0 and 1: the share of its points and those of the most similar cluster
/// that are in both (the Jaccard index), on average over the votes.
///
/// Where votes disagree, a consensus has scraps of what is left when the rest is put together. They resemble nothing that anyone voted for.
pub(crate) fn resemblance(votes: &[Vote<'_>], clusters: &[usize]) -> Vec<f64> {
    let sizes = |clusters: &[usize]| {
        let mut sizes = vec![0f64; clusters.iter().max().map_or(0, |&last| last + 1)];
        clusters.iter().for_each(|&own| sizes[own] += 1.0);
        sizes
    };
    let own_sizes = sizes(clusters);
    let count = own_sizes.len();
    let total: f64 = votes.iter().map(|vote| vote.weight).sum();
    let mut resemblance = vec![0.0; count];
    for vote in votes {
        let their_sizes = sizes(vote.clusters);
        let mut both = vec![0f64; their_sizes.len() * count];
        vote.clusters
            .iter()
            .zip(clusters)
            .for_each(|(&their, &own)| both[their * count + own] += 1.0);
        for (own, (resemblance, size)) in resemblance.iter_mut().zip(&own_sizes).enumerate() {
            let of_pair = |(their, theirs): (usize, &f64)| {
                let both = both[their * count + own];
                both / (theirs + size - both)
            };
            let best = their_sizes.iter().enumerate().map(of_pair).fold(0.0, f64::max);
            *resemblance += vote.weight / total * best;
        }
    }
    resemblance
}

/// Sets of points that all votes keep together, which a consensus need not part.
struct Atoms {
    /// The atom of every point.
    of: Vec<usize>,
    size: Vec<f64>,
    class: Vec<Option<u32>>,
    /// The weights of the votes, which sum to one.
    weight: Vec<f64>,
    /// For every vote the cluster of every atom, and the number of clusters.
    clusters: Vec<Vec<usize>>,
    counts: Vec<usize>,
}

impl Atoms {
    fn new(votes: &[Vote<'_>], class: &[Option<u32>]) -> Self {
        let n = class.len();
        let signature = |point: usize| votes.iter().map(move |vote| vote.clusters[point]);
        let order = |&a: &usize, &b: &usize| signature(a).cmp(signature(b)).then(class[a].cmp(&class[b]));
        let mut points: Vec<usize> = (0..n).collect();
        points.sort_by(|a, b| order(a, b).then(a.cmp(b)));
        let mut of = vec![0; n];
        let mut count = 0;
        for (at, &point) in points.iter().enumerate() {
            if at > 0 && order(&points[at - 1], &point).is_ne() {
                count += 1;
            }
            of[point] = count;
        }
        // Numbered by their first points, so that they are visited in the order of the points.
        let (of, count) = canonical(&of);
        let mut first = vec![usize::MAX; count];
        let mut size = vec![0.0; count];
        for (point, &atom) in of.iter().enumerate() {
            first[atom] = first[atom].min(point);
            size[atom] += 1.0;
        }
        let total: f64 = votes.iter().map(|vote| vote.weight).sum();
        let clusters = |vote: &Vote<'_>| first.iter().map(|&point| vote.clusters[point]).collect();
        Self {
            size,
            class: first.iter().map(|&point| class[point]).collect(),
            weight: votes.iter().map(|vote| vote.weight / total).collect(),
            clusters: votes.iter().map(clusters).collect(),
            counts: votes
                .iter()
                .map(|vote| vote.clusters.iter().max().map_or(0, |&last| last + 1))
                .collect(),
            of,
        }
    }
}

/// A partition of atoms that is made better step by step.
struct Search<'a> {
    atoms: &'a Atoms,
    /// The cluster of every atom.
    own: Vec<usize>,
    /// The points of every cluster, and the class of those that have one with how many atoms that are.
    size: Vec<f64>,
    class: Vec<(usize, Option<u32>)>,
    /// For every vote a row a cluster of the vote: how many of its points are in every cluster of this partition.
    shared: Vec<Vec<f64>>,
}

impl<'a> Search<'a> {
    /// Starts at a vote; what its clusters hold of further classes becomes a cluster a class.
    fn new(atoms: &'a Atoms, vote: usize) -> Self {
        let mut first_class = vec![None; atoms.counts[vote]];
        let mut apart: Vec<(usize, Option<u32>)> = Vec::with_capacity(atoms.size.len());
        for (&cluster, &class) in atoms.clusters[vote].iter().zip(&atoms.class) {
            let of_cluster: &mut Option<u32> = &mut first_class[cluster];
            *of_cluster = of_cluster.or(class);
            apart.push((cluster, class.filter(|_| class != *of_cluster)));
        }
        let mut kinds = apart.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let own: Vec<usize> = apart
            .iter()
            .map(|kind| kinds.partition_point(|other| other < kind))
            .collect();
        // One more cluster stays empty, for an atom that is best alone.
        Self::of(atoms, own, kinds.len() + 1)
    }

    fn of(atoms: &'a Atoms, own: Vec<usize>, count: usize) -> Self {
        let mut search = Self {
            atoms,
            size: vec![0.0; count],
            class: vec![(0, None); count],
            shared: atoms
                .counts
                .iter()
                .map(|clusters| vec![0.0; clusters * count])
                .collect(),
            own,
        };
        for atom in 0..search.own.len() {
            search.put(atom, search.own[atom], 1.0);
        }
        search
    }

    fn count(&self) -> usize {
        self.size.len()
    }

    /// Adds an atom to what is known of a cluster, or with −1 takes it away.
    fn put(&mut self, atom: usize, cluster: usize, sign: f64) {
        let (size, count) = (sign * self.atoms.size[atom], self.count());
        self.size[cluster] += size;
        if self.atoms.class[atom].is_some() {
            let held = &mut self.class[cluster];
            held.0 = if sign > 0.0 { held.0 + 1 } else { held.0 - 1 };
            held.1 = self.atoms.class[atom];
        }
        for (shared, of_vote) in self.shared.iter_mut().zip(&self.atoms.clusters) {
            shared[of_vote[atom] * count + cluster] += size;
        }
    }

    /// The best partition that moves and merges lead to, and its value.
    fn run(mut self) -> (f64, Vec<usize>) {
        for _ in 0..ROUNDS {
            let moved = self.move_atoms();
            if !(self.merge() || moved) {
                break;
            }
        }
        (self.value(), self.own)
    }

    /// Moves every atom to the cluster that gains most; whether any moved.
    fn move_atoms(&mut self) -> bool {
        let mut moved = false;
        for atom in 0..self.own.len() {
            let (own, class) = (self.own[atom], self.atoms.class[atom]);
            self.put(atom, own, -1.0);
            let mut gain: Vec<f64> = self.size.iter().map(|size| -MAJORITY * size).collect();
            let count = self.count();
            for ((shared, of_vote), &weight) in self.shared.iter().zip(&self.atoms.clusters).zip(&self.atoms.weight) {
                let row = &shared[of_vote[atom] * count..][..count];
                gain.iter_mut()
                    .zip(row)
                    .for_each(|(gain, points)| *gain += weight * points);
            }
            let allowed = |cluster: usize| {
                let (held, of) = self.class[cluster];
                class.is_none() || held == 0 || of == class
            };
            let mut best = own;
            for cluster in (0..count).filter(|&cluster| allowed(cluster)) {
                if gain[cluster] > gain[best] + LEAST_GAIN {
                    best = cluster;
                }
            }
            self.put(atom, best, 1.0);
            self.own[atom] = best;
            moved |= best != own;
            if best != own && self.size.iter().all(|&size| size > 0.0) {
                let (own, count) = (std::mem::take(&mut self.own), self.count());
                *self = Self::of(self.atoms, own, count + 1);
            }
        }
        moved
    }

    /// Merges the two clusters that gain most by it, again and again; whether any did.
    fn merge(&mut self) -> bool {
        let count = self.count();
        let mut between = self.between();
        let mut into: Vec<usize> = (0..count).collect();
        let mut size = self.size.clone();
        let mut class = self.class.clone();
        let mut merged = false;
        loop {
            let mut best: Option<(f64, usize, usize)> = None;
            for a in (0..count).filter(|&a| size[a] > 0.0) {
                for b in (a + 1..count).filter(|&b| size[b] > 0.0) {
                    let apart = class[a].0 > 0 && class[b].0 > 0 && class[a].1 != class[b].1;
                    let gain = between[a * count + b] - MAJORITY * size[a] * size[b];
                    if !apart && gain > best.map_or(LEAST_GAIN, |best| best.0) {
                        best = Some((gain, a, b));
                    }
                }
            }
            let Some((_, a, b)) = best else {
                break;
            };
            merged = true;
            for other in 0..count {
                between[a * count + other] += between[b * count + other];
                between[other * count + a] = between[a * count + other];
            }
            size[a] += std::mem::take(&mut size[b]);
            class[a] = (
                class[a].0 + class[b].0,
                class[a].1.filter(|_| class[a].0 > 0).or(class[b].1),
            );
            into.iter_mut().filter(|into| **into == b).for_each(|into| *into = a);
        }
        if merged {
            let own = self.own.iter().map(|&own| into[own]).collect();
            *self = Self::of(self.atoms, own, count);
        }
        merged
    }

    /// For every two clusters the weight of the pairs between them that votes put together.
    fn between(&self) -> Vec<f64> {
        let count = self.count();
        let mut between = vec![0.0; count * count];
        for (shared, &weight) in self.shared.iter().zip(&self.atoms.weight) {
            for row in shared.chunks_exact(count) {
                let held: Vec<usize> = (0..count).filter(|&cluster| row[cluster] > 0.0).collect();
                for &a in &held {
                    held.iter()
                        .for_each(|&b| between[a * count + b] += weight * row[a] * row[b]);
                }
            }
        }
        between
    }

    /// What is maximised, up to a constant: the sum over all pairs that are together.
    fn value(&self) -> f64 {
        let between = self.between();
        let of = |cluster: usize| between[cluster * self.count() + cluster] - MAJORITY * self.size[cluster].powi(2);
        0.5 * (0..self.count()).map(of).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rng::Rng;

    /// The value of a partition by its definition, a pair at a time.
    fn naive_value(votes: &[Vote<'_>], clusters: &[usize]) -> f64 {
        let total: f64 = votes.iter().map(|vote| vote.weight).sum();
        let mut value = 0.0;
        for a in 0..clusters.len() {
            for b in (a + 1..clusters.len()).filter(|&b| clusters[a] == clusters[b]) {
                let together = votes.iter().filter(|vote| vote.clusters[a] == vote.clusters[b]);
                value += together.map(|vote| vote.weight).sum::<f64>() / total - MAJORITY;
            }
        }
        value
    }

    /// All partitions of so many points.
    fn partitions(points: usize) -> Vec<Vec<usize>> {
        let mut all = vec![vec![]];
        for _ in 0..points {
            let longer = |partition: &Vec<usize>| {
                let next = partition.iter().max().map_or(0, |&last| last + 1);
                let partition = partition.clone();
                (0..=next).map(move |own| [&*partition, &[own]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    fn random_votes(points: usize, votes: usize, rng: &mut Rng) -> Vec<(Vec<usize>, f64)> {
        let mut vote = || {
            let clusters: Vec<usize> = (0..points).map(|_| rng.below(3)).collect();
            (canonical(&clusters).0, 0.2 + rng.unit())
        };
        (0..votes).map(|_| vote()).collect()
    }

    fn as_votes(votes: &[(Vec<usize>, f64)]) -> Vec<Vote<'_>> {
        votes
            .iter()
            .map(|(clusters, weight)| Vote {
                clusters,
                weight: *weight,
            })
            .collect()
    }

    #[test]
    fn it_is_nearly_always_the_best_of_all_partitions_and_never_worse_than_the_heaviest_vote() {
        let mut rng = Rng::new(3, &[]);
        let all = partitions(7);
        let mut best_found = 0;
        for _ in 0..60 {
            let votes = random_votes(7, 5, &mut rng);
            let votes = as_votes(&votes);
            let found = naive_value(&votes, &consensus(&votes, &[None; 7]));
            let best = all.iter().map(|p| naive_value(&votes, p)).fold(f64::MIN, f64::max);
            // The heaviest vote is where a search starts, and no search ends lower than it starts.
            let heaviest = votes.iter().max_by(|a, b| a.weight.total_cmp(&b.weight)).unwrap();
            assert!(found >= naive_value(&votes, heaviest.clusters) - 1e-9);
            assert!(found <= best + 1e-9);
            best_found += usize::from(found > best - 1e-9);
        }
        assert!(best_found >= 57, "{best_found} of 60");
    }

    #[test]
    fn resemblance_is_that_of_sets() {
        let mut rng = Rng::new(9, &[]);
        for _ in 0..20 {
            let votes = random_votes(25, 4, &mut rng);
            let votes = as_votes(&votes);
            let clusters = canonical(&(0..25).map(|_| rng.below(5)).collect::<Vec<_>>()).0;
            let set = |clusters: &[usize], of: usize| -> BTreeSet<usize> {
                (0..25).filter(|&point| clusters[point] == of).collect()
            };
            let total: f64 = votes.iter().map(|vote| vote.weight).sum();
            for (own, found) in resemblance(&votes, &clusters).into_iter().enumerate() {
                let own = set(&clusters, own);
                let of_vote = |vote: &Vote<'_>| {
                    let with = |their: usize| {
                        let their = set(vote.clusters, their);
                        own.intersection(&their).count() as f64 / own.union(&their).count() as f64
                    };
                    vote.weight / total * (0..3).map(with).fold(0.0, f64::max)
                };
                let naive: f64 = votes.iter().map(of_vote).sum();
                assert!((found - naive).abs() < 1e-12, "{found} {naive}");
            }
        }
    }

    #[test]
    fn what_all_vote_for_resembles_their_votes_and_scraps_do_not() {
        let votes = [
            [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
            [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
        ];
        let votes = votes.each_ref().map(|clusters| Vote { clusters, weight: 1.0 });
        let found = resemblance(&votes, &[0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]);
        assert!(found[0] > 0.9 && found[2] > 0.9 && found[1] < 0.2, "{found:?}");
        assert_eq!(resemblance(&votes[..1], votes[0].clusters), [1.0, 1.0]);
    }

    #[test]
    fn its_value_is_that_of_the_definition() {
        let mut rng = Rng::new(5, &[]);
        for _ in 0..20 {
            let votes = random_votes(30, 4, &mut rng);
            let votes = as_votes(&votes);
            let atoms = Atoms::new(&votes, &[None; 30]);
            let (value, of_atom) = Search::new(&atoms, 0).run();
            let clusters: Vec<usize> = atoms.of.iter().map(|&atom| of_atom[atom]).collect();
            // Pairs within an atom and a point with itself are together in any case: they add a constant.
            let constant = 0.5 * 30.0 * (1.0 - MAJORITY);
            assert!((value - constant - naive_value(&votes, &clusters)).abs() < 1e-6);
        }
    }

    #[test]
    fn what_all_votes_say_is_what_comes_out() {
        let one = vec![0, 0, 1, 1, 2, 2, 2];
        let other = vec![0, 1, 1, 2, 2, 2, 2];
        let votes = |a: f64, b: f64| {
            let votes = [(one.clone(), a), (other.clone(), b)];
            consensus(&as_votes(&votes), &[None; 7])
        };
        assert_eq!(votes(1.0, 0.2), one);
        assert_eq!(votes(0.2, 1.0), other);
        assert_eq!(consensus(&[], &[None; 3]), [0, 0, 0]);
    }

    #[test]
    fn classes_stay_apart() {
        let mut rng = Rng::new(8, &[]);
        for _ in 0..40 {
            let votes = random_votes(24, 4, &mut rng);
            let class: Vec<Option<u32>> = (0..24).map(|_| Some(rng.below(6) as u32).filter(|&c| c < 3)).collect();
            let found = consensus(&as_votes(&votes), &class);
            for a in 0..24 {
                for b in 0..a {
                    let apart = class[a].is_some() && class[b].is_some() && class[a] != class[b];
                    assert!(!(apart && found[a] == found[b]));
                }
            }
        }
    }
}
