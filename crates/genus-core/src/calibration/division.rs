//! Which points belong together: communities of the graph of shared neighbours.
//!
//! The graph is made of ranks, so no scale has to be known. Two things are: how many neighbours tie a point to its like, and how
//! much two groups may be tied before they are one. The first follows the size of the communities that come out. Of the second
//! several are tried, and the examples and the pile choose.

use super::points::{Points, Sorted};
use crate::cluster::graph::shared_neighbours;
use crate::cluster::leiden::leiden;
use crate::cluster::neighbours::{Near, nearest};
use crate::discovery::canonical;

/// A point is tied to a third of its community …
const SHARE: f64 = 3.0;
/// … but to no more points than this, …
const MOST: usize = 100;
/// … and to no fewer. Where communities are so small that this decides, less is tried too.
const FEWEST: [usize; 3] = [7, 5, 4];
/// Resolutions of the modularity that are tried. The middle one is what sizes are first judged by.
const RESOLUTIONS: [f64; 8] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6];
const USUAL_RESOLUTION: f64 = 2.0;

/// At a resolution γ and with K communities of a size, two of them are one when more than γ / K of the ties of one lead to the other.
/// That share is what classes have in common, however many there are …
const TIED: f64 = 0.18;
/// … and this is the penalty on the square of its logarithm, in units of contrast.
const UNUSUAL: f64 = 0.033;
/// What it counts when examples of one class are together, and when examples of two classes are.
const TOGETHER: f64 = 0.13;
const MIXED: f64 = 0.52;

/// A community is of a known class when it has at least so many of its examples, and this share of them. The community with most
/// examples of a class is always its own.
const ENOUGH: usize = 2;
const ENOUGH_SHARE: f64 = 0.15;

/// The examples and queries of a task with their neighbours.
pub(super) struct Neighbourhoods<'a> {
    points: &'a Points,
    near: Vec<Vec<Near>>,
}

/// A way to divide the points.
struct Division {
    resolution: f64,
    /// To how many neighbours points were tied.
    neighbours: usize,
    /// The community of every example, then of every query.
    communities: Vec<usize>,
}

impl<'a> Neighbourhoods<'a> {
    pub(super) fn new(points: &'a Points) -> Self {
        let rows = points.items();
        let count = (rows.len() / points.dim() / 10).clamp(FEWEST[0], MOST);
        Self {
            points,
            near: nearest(
                &rows,
                points.dim(),
                count.min((rows.len() / points.dim()).saturating_sub(1)),
            ),
        }
    }

    /// The communities at the usual resolution: of every example, then of every query.
    pub(super) fn usual(&self) -> Vec<usize> {
        self.settled(USUAL_RESOLUTION, FEWEST[0], MOST).communities
    }

    /// The points sorted by the division that suits examples and pile best, with the number of neighbours that they are tied to;
    /// `variance` is that within a class.
    pub(super) fn best(&self, variance: f64) -> (Sorted, usize) {
        let usual = self.settled(USUAL_RESOLUTION, FEWEST[0], MOST);
        let start = 2 * usual.neighbours;
        let mut best: Option<(f64, Division)> = None;
        let mut judge = |division: Division| {
            let value = self.value(&division, variance);
            if best.as_ref().is_none_or(|best| value > best.0) {
                best = Some((value, division));
            }
        };
        for resolution in RESOLUTIONS {
            for fewest in FEWEST {
                let division = self.settled(resolution, fewest, start);
                let decided = division.neighbours <= FEWEST[0];
                judge(division);
                if !decided {
                    break;
                }
            }
        }
        // Examples of two classes may be in one community only while it is asked whether they would be.
        let (resolution, neighbours) = best.map_or((USUAL_RESOLUTION, usual.neighbours), |(_, best)| {
            (best.resolution, best.neighbours)
        });
        let labelled = self.points.labels().iter().map(|&class| Some(class as u32));
        let queries = self.near.len() - self.points.labels().len();
        let classes = labelled.chain(std::iter::repeat_n(None, queries)).collect();
        let communities = self.communities(resolution, neighbours, classes);
        // What is left alone goes to the nearest category.
        (self.sorted(&communities).refined(self.points, 0), neighbours)
    }

    /// The communities at a resolution when points are tied to a share of the community that they are in.
    fn settled(&self, resolution: f64, fewest: usize, most: usize) -> Division {
        let mut neighbours = most.clamp(fewest, self.longest().max(fewest));
        loop {
            let communities = self.communities(resolution, neighbours, vec![None; self.near.len()]);
            let wanted = (size(&communities) / SHARE).round() as usize;
            // Fewer ties make smaller communities, so this goes one way.
            let wanted = wanted.max(fewest);
            if wanted >= neighbours {
                return Division {
                    resolution,
                    neighbours,
                    communities,
                };
            }
            neighbours = wanted;
        }
    }

    fn longest(&self) -> usize {
        self.near.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn communities(&self, resolution: f64, neighbours: usize, classes: Vec<Option<u32>>) -> Vec<usize> {
        let graph = shared_neighbours(&self.near, neighbours.min(self.longest()), classes);
        leiden(&graph, resolution, 0)
    }

    /// How well a division suits examples and pile.
    fn value(&self, division: &Division, variance: f64) -> f64 {
        let sorted = self.sorted(&division.communities);
        let (together, mixed) = self.pairs(&division.communities);
        let tied = division.resolution / sorted.count.max(1) as f64;
        self.points.contrast(&sorted) / variance - UNUSUAL * (tied / TIED).ln().powi(2) + TOGETHER * together
            - MIXED * mixed
    }

    /// The share of the pairs of examples of one class that are together, and of the pairs of two classes.
    fn pairs(&self, communities: &[usize]) -> (f64, f64) {
        let labels = self.points.labels();
        let (mut same, mut other) = ((0usize, 0usize), (0usize, 0usize));
        for a in 0..labels.len() {
            for b in 0..a {
                let (together, of) = if labels[a] == labels[b] { &mut same } else { &mut other };
                *together += usize::from(communities[a] == communities[b]);
                *of += 1;
            }
        }
        let share = |(together, of): (usize, usize)| together as f64 / of.max(1) as f64;
        (share(same), share(other))
    }

    /// Communities as known classes and new groups.
    ///
    /// A class may have several forms, so all communities that its examples say are its own become one cluster.
    fn sorted(&self, communities: &[usize]) -> Sorted {
        let (labels, known) = (self.points.labels(), self.points.known());
        let count = communities.iter().max().map_or(0, |&last| last + 1);
        let mut sizes = vec![0usize; count];
        communities.iter().for_each(|&own| sizes[own] += 1);
        let mut examples = vec![0usize; known];
        let mut held = vec![0usize; count * known];
        for (&class, &own) in labels.iter().zip(communities) {
            examples[class] += 1;
            held[own * known + class] += 1;
        }
        let mut class_of: Vec<Option<usize>> = (0..count)
            .map(|own| {
                let held = &held[own * known..][..known];
                let most = (0..known).reduce(|best, class| if held[class] > held[best] { class } else { best })?;
                let enough = held[most] >= ENOUGH && held[most] as f64 >= ENOUGH_SHARE * examples[most] as f64;
                enough.then_some(most)
            })
            .collect();
        for class in 0..known {
            let order = |&own: &usize| (held[own * known + class], sizes[own], std::cmp::Reverse(own));
            let main = (0..count)
                .filter(|&own| held[own * known + class] > 0)
                .max_by_key(order);
            if let Some(main) = main.filter(|&main| class_of[main].is_none()) {
                class_of[main] = Some(class);
            }
        }
        let clusters = communities[labels.len()..]
            .iter()
            .map(|&own| class_of[own].unwrap_or(known + own));
        Sorted::new(self.points, (0..known).chain(clusters).collect())
    }
}

/// The size that communities have when they are weighed by how many points are in them: that of all points over the number of
/// communities of one size whose division would say as much.
fn size(communities: &[usize]) -> f64 {
    let (communities, count) = canonical(communities);
    let mut sizes = vec![0usize; count];
    communities.iter().for_each(|&own| sizes[own] += 1);
    let all = communities.len() as f64;
    let shares = sizes.iter().map(|&size| size as f64 / all);
    all / shares.map(|share| -share * share.ln()).sum::<f64>().exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::scale_to_unit;
    use crate::rng::Rng;

    /// Blobs of unit rows of the given sizes; the examples are of the given blobs.
    fn points(sizes: &[usize], examples: &[(usize, usize)], spread: f64, seed: u64) -> (Points, Vec<usize>) {
        let dim = 24;
        let mut rng = Rng::new(seed, &[1]);
        let middles: Vec<Vec<f64>> = (0..sizes.len())
            .map(|_| (0..dim).map(|_| rng.unit() - 0.5).collect())
            .collect();
        let mut row = |blob: usize| -> Vec<f32> {
            let near = middles[blob].iter().map(|v| (v + spread * (rng.unit() - 0.5)) as f32);
            let mut row: Vec<f32> = near.collect();
            scale_to_unit(&mut row);
            row
        };
        let support: Vec<f32> = examples.iter().flat_map(|&(blob, _)| row(blob)).collect();
        let labels: Vec<usize> = examples.iter().map(|&(_, class)| class).collect();
        let truth: Vec<usize> = (0..sizes.len()).flat_map(|blob| vec![blob; sizes[blob]]).collect();
        let queries: Vec<f32> = truth.iter().flat_map(|&blob| row(blob)).collect();
        let known = labels.iter().max().map_or(0, |&last| last + 1);
        (Points::new(dim, &support, &labels, known, &queries), truth)
    }

    fn sort(points: &Points) -> Sorted {
        Neighbourhoods::new(points).best(0.3).0
    }

    #[test]
    fn blobs_of_all_sizes_are_found_however_many_items_there_are() {
        for each in [1, 4, 12] {
            let sizes: Vec<usize> = [20, 25, 30, 40, 50, 60, 80].iter().map(|size| each * size).collect();
            let examples: Vec<(usize, usize)> = (0..9).map(|at| (at % 3, at % 3)).collect();
            let (points, truth) = points(&sizes, &examples, 0.6, each as u64);
            let found = sort(&points);
            assert_eq!(found.count, 7, "{each}");
            let of_queries = canonical(&found.clusters[3..]).0;
            assert_eq!(of_queries, canonical(&truth).0, "{each}");
        }
    }

    #[test]
    fn a_class_may_have_two_forms_and_a_stray_example_takes_nothing() {
        // Class 0 has examples in two blobs, class 1 one of its five in a blob that is not its own.
        let mut examples = vec![(0, 0); 4];
        examples.extend([(1, 0), (1, 0), (1, 0), (2, 1), (2, 1), (2, 1), (2, 1), (3, 1)]);
        let (points, truth) = points(&[80, 80, 80, 80, 80], &examples, 0.5, 3);
        let found = sort(&points);
        let of_blob = |blob: usize| -> Vec<usize> {
            let queries = truth.iter().enumerate().filter(|&(_, &own)| own == blob);
            let mut clusters: Vec<usize> = queries.map(|(at, _)| found.clusters[2 + at]).collect();
            clusters.dedup();
            clusters
        };
        assert_eq!((of_blob(0), of_blob(1), of_blob(2)), (vec![0], vec![0], vec![1]));
        assert_eq!((of_blob(3), of_blob(4)), (vec![2], vec![3]));
    }

    #[test]
    fn few_points_copies_and_no_examples_are_no_obstacle() {
        for (sizes, examples) in [
            (vec![1], vec![(0, 0)]),
            (vec![2, 1], vec![]),
            (vec![500], vec![(0, 0)]),
            (vec![9, 9], vec![(0, 0), (1, 1)]),
        ] {
            for spread in [0.0, 0.4] {
                let (points, truth) = points(&sizes, &examples, spread, 7);
                assert_eq!(sort(&points).clusters.len(), points.known() + truth.len());
            }
        }
    }

    #[test]
    fn threads_do_not_matter() {
        let (points, _) = points(&[150, 150, 150, 90], &[(0, 0), (0, 0), (1, 1)], 1.6, 5);
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sort(&points).clusters)
        };
        assert_eq!(of(1), of(4));
    }

    #[test]
    fn the_size_is_that_of_equal_communities_that_say_as_much() {
        assert!((size(&[0, 0, 1, 1, 2, 2]) - 2.0).abs() < 1e-12);
        assert!((size(&[0; 9]) - 9.0).abs() < 1e-12);
        let uneven = size(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert!(uneven > 10.0 / 3.0 && uneven < 10.0, "{uneven}");
    }
}
