//! Average linkage under cosine: which points merge, in which order, at which similarity.

use kodama::Method;

use crate::error::DiscoverError;
use crate::linalg;
use crate::task::Task;

/// One merge of two clusters, each given by one of its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkageMerge {
    pub(crate) a: usize,
    pub(crate) b: usize,
    /// The average dot product between the points of the two clusters.
    pub(crate) similarity: f32,
}

/// All merges from single points to one cluster, the most similar first.
///
/// Average linkage is reducible, so clusters that are each other's nearest may merge at once, whatever else is nearer
/// elsewhere: sorting the merges afterwards gives what always merging the most similar pair would give, in O(n²) instead of
/// O(n³). Where similarities tie exactly, so does the order.
pub(crate) fn fast(task: &Task) -> Result<Vec<LinkageMerge>, DiscoverError> {
    match task.gram() {
        Some(gram) => Ok(chain(gram.to_vec(), task.points().rows())),
        None => condensed(task),
    }
}

/// Merges along nearest-neighbour chains in a square matrix: rows are contiguous, so that looking for a neighbour runs at
/// the speed of memory.
pub(crate) fn chain(mut similarity: Vec<f32>, n: usize) -> Vec<LinkageMerge> {
    const DEAD: f32 = f32::NEG_INFINITY;
    (0..n).for_each(|i| similarity[i * n + i] = DEAD);
    let mut alive: Vec<usize> = (0..n).collect();
    let mut sizes = vec![1f32; n];
    // A parent is never more similar than its parts; rounding must not say otherwise.
    let mut last_merge = vec![f32::INFINITY; n];
    let mut merges = Vec::with_capacity(n.saturating_sub(1));
    let mut chain: Vec<usize> = Vec::with_capacity(n);
    while alive.len() > 1 {
        if chain.is_empty() {
            chain.push(alive[0]);
        }
        let (x, y, best) = loop {
            let tip = chain[chain.len() - 1];
            let row = &similarity[tip * n..][..n];
            let best = largest(row);
            // On a tie the chain turns back: otherwise it could run in a circle.
            match chain.len().checked_sub(2).map(|before| chain[before]) {
                Some(before) if row[before] == best => break (tip, before, best),
                _ => chain.push(row.iter().position(|&v| v == best).unwrap_or(tip)),
            }
        };
        chain.truncate(chain.len() - 2);
        let (keep, drop) = (x.min(y), x.max(y));
        let height = best.min(last_merge[keep]).min(last_merge[drop]);
        last_merge[keep] = height;
        merges.push(LinkageMerge {
            a: keep,
            b: drop,
            similarity: height,
        });

        let total = sizes[keep] + sizes[drop];
        let (share, other_share) = (sizes[keep] / total, sizes[drop] / total);
        sizes[keep] = total;
        let (upper, lower) = similarity.split_at_mut(drop * n);
        let kept_row = &mut upper[keep * n..][..n];
        for (v, &other) in kept_row.iter_mut().zip(&lower[..n]) {
            // Rounding must not lift an average above its parts: chains rely on that.
            *v = smaller(share * *v + other_share * other, larger(*v, other));
        }
        kept_row[keep] = DEAD;
        kept_row[drop] = DEAD;
        alive.retain(|&cluster| cluster != drop);
        for &cluster in &alive {
            similarity[cluster * n + keep] = similarity[keep * n + cluster];
            similarity[cluster * n + drop] = DEAD;
        }
    }
    // Stable: where heights are equal a parent stays behind its parts.
    merges.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    merges
}

// `f32::max` treats NaN in a way that does not vectorise; there are none here.
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The largest value, in eight lanes so that it vectorises.
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let chunks = values.chunks_exact(8);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, larger);
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, v);
        }
    }
    lanes.into_iter().fold(rest, larger)
}

/// The same in half the memory, for many points.
///
/// Kodama's generic algorithm touches the columns of the half matrix, one cache line a value, less often than its
/// nearest-neighbour chain: at 20,000 points it is the faster one.
fn condensed(task: &Task) -> Result<Vec<LinkageMerge>, DiscoverError> {
    let n = task.points().rows();
    let mut distances =
        linalg::condensed_distances(task.points().values(), task.dim()).ok_or(DiscoverError::TooLarge {
            points: n,
            gibibytes: (n as f64) * (n as f64) * 2.0 / f64::from(1 << 30),
        })?;
    let dendrogram = kodama::generic(&mut distances, n, Method::Average);
    // Clusters above n are earlier merges; the first point of each stands for it.
    let mut point_of: Vec<usize> = (0..n).collect();
    Ok(dendrogram
        .steps()
        .iter()
        .map(|step| {
            let (a, b) = (point_of[step.cluster1], point_of[step.cluster2]);
            point_of.push(a.min(b));
            LinkageMerge {
                a,
                b,
                similarity: 1.0 - step.dissimilarity,
            }
        })
        .collect())
}

/// All merges in order by looking for the most similar pair every time; ties go to the smallest (lower, higher) pair of
/// first points. O(n³): the reference where ties matter.
pub(crate) fn sequential(task: &Task) -> Vec<LinkageMerge> {
    let n = task.points().rows();
    let dots = linalg::gram(task.points().values(), task.dim());
    // Sums of dot products in f64 rather than averages: merging adds them, and equal sums stay equal.
    let mut sums: Vec<f64> = dots.iter().map(|&dot| f64::from(dot)).collect();
    let mut sizes = vec![1f64; n];
    let mut alive: Vec<usize> = (0..n).collect();
    let mut merges = Vec::with_capacity(n.saturating_sub(1));
    while alive.len() > 1 {
        let mut best = (alive[0], alive[1], f64::NEG_INFINITY);
        for (at, &x) in alive.iter().enumerate() {
            for &y in &alive[at + 1..] {
                let similarity = sums[x * n + y] / (sizes[x] * sizes[y]);
                if similarity > best.2 {
                    best = (x, y, similarity);
                }
            }
        }
        let (x, y, similarity) = best;
        for &other in &alive {
            if other != x && other != y {
                sums[x * n + other] += sums[y * n + other];
                sums[other * n + x] = sums[x * n + other];
            }
        }
        sizes[x] += sizes[y];
        alive.retain(|&cluster| cluster != y);
        merges.push(LinkageMerge {
            a: x,
            b: y,
            similarity: similarity as f32,
        });
    }
    merges
}

/// Clusters that grow by merging, each knowing its size and whether it holds a prototype.
pub(crate) struct Forest {
    parent: Vec<usize>,
    size: Vec<usize>,
    holds_prototype: Vec<bool>,
}

impl Forest {
    /// Every point by itself; the first `known` points are the prototypes.
    pub(crate) fn new(points: usize, known: usize) -> Self {
        Self {
            parent: (0..points).collect(),
            size: vec![1; points],
            holds_prototype: (0..points).map(|point| point < known).collect(),
        }
    }

    /// The first point of the cluster that holds `point`.
    pub(crate) fn root(&mut self, mut point: usize) -> usize {
        while self.parent[point] != point {
            self.parent[point] = self.parent[self.parent[point]];
            point = self.parent[point];
        }
        point
    }

    /// Whether merging the two would put known classes together.
    pub(crate) fn both_hold_prototypes(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.holds_prototype[a] && self.holds_prototype[b]
    }

    pub(crate) fn merge(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let (keep, drop) = (a.min(b), a.max(b));
        self.parent[drop] = keep;
        self.size[keep] += self.size[drop];
        self.holds_prototype[keep] |= self.holds_prototype[drop];
    }

    pub(crate) fn size(&self, root: usize) -> usize {
        self.size[root]
    }

    pub(crate) fn holds_prototype(&self, root: usize) -> bool {
        self.holds_prototype[root]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::rng::Rng;
    use crate::task::Support;

    /// One known class and `queries` other points, normally distributed.
    fn task(queries: usize, dim: usize, seed: u64) -> Task {
        let mut rng = Rng::new(seed, &[79]);
        let mut normal = || (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
        let mut rows = |n: usize| Features::new(dim, (0..n * dim).map(|_| normal() as f32).collect()).unwrap();
        Task::new(&Support::new(rows(1), &["a"]).unwrap(), rows(queries)).unwrap()
    }

    /// Replays merges with the sums of the members: every one must be of two clusters at the similarity of their means,
    /// and none more similar than the one before.
    fn check(task: &Task, merges: &[LinkageMerge]) {
        let n = task.points().rows();
        assert_eq!(merges.len(), n - 1);
        let mut forest = Forest::new(n, 1);
        let mut sums: Vec<Vec<f64>> = task
            .points()
            .iter()
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect();
        let mut before = f32::INFINITY;
        for merge in merges {
            let (a, b) = (forest.root(merge.a), forest.root(merge.b));
            assert_ne!(a, b);
            let dot: f64 = sums[a].iter().zip(&sums[b]).map(|(x, y)| x * y).sum();
            let expected = dot / (forest.size(a) * forest.size(b)) as f64;
            assert!(
                (f64::from(merge.similarity) - expected).abs() < 1e-5,
                "{merge:?}: {expected}"
            );
            assert!(merge.similarity <= before + 1e-6, "{merge:?} after {before}");
            before = merge.similarity;
            forest.merge(a, b);
            let (keep, drop) = (a.min(b), a.max(b));
            assert_eq!(forest.root(drop), keep);
            let dropped = std::mem::take(&mut sums[drop]);
            sums[keep].iter_mut().zip(dropped).for_each(|(s, v)| *s += v);
        }
        assert_eq!((forest.root(n - 1), forest.size(0)), (0, n));
    }

    #[test]
    fn merges_are_at_the_average_similarity_and_in_order() {
        for (queries, dim, seed) in [(1, 1, 1), (1, 5, 2), (2, 3, 3), (40, 2, 4), (120, 8, 5), (300, 30, 6)] {
            let task = task(queries, dim, seed);
            check(&task, &fast(&task).unwrap());
            check(&task, &sequential(&task));
        }
    }

    #[test]
    fn both_ways_make_the_same_merges() {
        for seed in 0..20 {
            let task = task(60, 12, seed);
            let (chained, slow) = (fast(&task).unwrap(), sequential(&task));
            for (a, b) in chained.iter().zip(&slow) {
                assert_eq!((a.a.min(a.b), a.a.max(a.b)), (b.a, b.b));
                assert!((a.similarity - b.similarity).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn ties_and_copies_leave_the_merges_valid() {
        // Codes of a few signs: most similarities are equal and most points have copies, so that rounding of the averages
        // decides almost everything.
        for seed in 0..300 {
            let mut rng = Rng::new(seed, &[80]);
            let (n, dim) = (2 + rng.below(70), 1 + rng.below(7));
            let mut sign = || if rng.below(2) == 0 { -1.0 } else { 1.0 };
            let mut rows = |n: usize| Features::new(dim, (0..n * dim).map(|_| sign()).collect()).unwrap();
            let task = Task::new(&Support::new(rows(1), &["a"]).unwrap(), rows(n)).unwrap();
            check(&task, &fast(&task).unwrap());
            check(&task, &condensed(&task).unwrap());
            check(&task, &sequential(&task));
        }
    }

    #[test]
    fn half_the_memory_gives_the_same_merges() {
        for seed in 0..20 {
            let task = task(60, 12, seed);
            for (a, b) in fast(&task).unwrap().iter().zip(&condensed(&task).unwrap()) {
                assert_eq!((a.a.min(a.b), a.a.max(a.b)), (b.a.min(b.b), b.a.max(b.b)));
                assert!((a.similarity - b.similarity).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn more_points_than_a_matrix_is_kept_for() {
        let task = task(2060, 4, 7);
        assert!(task.gram().is_none());
        check(&task, &fast(&task).unwrap());
    }

    #[test]
    fn clusters_know_what_they_hold() {
        let mut forest = Forest::new(6, 2);
        assert!(forest.both_hold_prototypes(0, 1) && !forest.both_hold_prototypes(1, 2));
        forest.merge(4, 3);
        forest.merge(5, 1);
        assert_eq!((forest.root(4), forest.root(5)), (3, 1));
        assert!(forest.holds_prototype(1) && !forest.holds_prototype(3));
        assert!(forest.both_hold_prototypes(5, 0) && !forest.both_hold_prototypes(4, 5));
        forest.merge(4, 5);
        assert_eq!((forest.root(3), forest.size(1)), (1, 4));
        assert!(forest.both_hold_prototypes(3, 0));
    }
}
