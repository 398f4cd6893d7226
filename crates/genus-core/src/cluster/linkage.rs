//! Average linkage under cosine: which points merge, in which order, at which similarity.

use kodama::Method;

use crate::error::DiscoverError;
use crate::linalg;
use crate::task::Task;

/// One merge of two clusters, each given by one of its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Merge {
    pub(crate) a: usize,
    pub(crate) b: usize,
    /// The average dot product between the points of the two clusters.
    pub(crate) similarity: f32,
}

/// All merges from single points to one cluster, the most similar first, by a nearest-neighbour chain.
///
/// Average linkage is reducible, so this equals always merging the most similar pair, in O(n²) instead of O(n³). Where
/// similarities tie exactly the order is the chain's.
pub(crate) fn chain(task: &Task) -> Result<Vec<Merge>, DiscoverError> {
    let n = task.points().rows();
    let mut distances = match task.gram() {
        Some(gram) => (0..n)
            .flat_map(|i| gram[i * n + i + 1..(i + 1) * n].iter().map(|&dot| 1.0 - dot))
            .collect(),
        None => linalg::condensed_distances(task.points().values(), task.dim()).ok_or(DiscoverError::TooLarge {
            points: n,
            gibibytes: (n as f64) * (n as f64) * 2.0 / f64::from(1 << 30),
        })?,
    };
    let dendrogram = kodama::linkage(&mut distances, n, Method::Average);
    // Clusters above n are earlier merges; the first point of each stands for it.
    let mut point_of: Vec<usize> = (0..n).collect();
    Ok(dendrogram
        .steps()
        .iter()
        .map(|step| {
            let (a, b) = (point_of[step.cluster1], point_of[step.cluster2]);
            point_of.push(a.min(b));
            Merge {
                a,
                b,
                similarity: 1.0 - step.dissimilarity,
            }
        })
        .collect())
}

/// All merges in order by looking for the most similar pair every time; ties go to the smallest (lower, higher) pair of
/// first points. O(n³): the reference where ties matter.
pub(crate) fn sequential(task: &Task) -> Vec<Merge> {
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
        merges.push(Merge {
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
