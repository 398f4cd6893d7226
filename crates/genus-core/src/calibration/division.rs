//! Which points belong together: what many divisions of the graph of shared neighbours agree on.
//!
//! The graph is made of ranks, so no scale has to be known. Two things are: how many neighbours tie a point to its like, and how
//! much two groups may be tied before they are one. Neither can be told beforehand, so many are tried. Pile and examples say
//! how much each division is worth: by how much nearer points are to their own community than to the next, and by whether
//! examples of one class are together and those of two classes apart. Divisions that are worth nearly as much differ by chance,
//! so they vote, and the consensus counts.

use rayon::prelude::*;

use super::points::{ClusteredPoints, Points};
use crate::cluster::consensus::{Vote, consensus, resemblance};
use crate::cluster::graph::shared_neighbours;
use crate::cluster::leiden::{Graph, leiden};
use crate::cluster::neighbours::{NearRow, nearest};
use crate::discovery::canonical;
use crate::eigen::leading;
use crate::features::scale_to_unit;
use crate::linalg;
use crate::task::GRAM_LIMIT;

/// Neighbours are looked for along so many principal directions: what lies in the others is noise, and costs time.
const DIRECTIONS: usize = 128;
/// Of fewer rows than these the principal directions are little better than chance, and take longer to find than they save.
const FEWEST_ROWS: usize = 4 * DIRECTIONS;
/// So many rows say which directions those are.
const SAMPLE: usize = 4096;

/// Numbers of neighbours that are tried, and up to how many points: few for small communities, many for large ones. In a large
/// pile the graph of few neighbours falls to pieces.
const NEIGHBOURS: [(usize, usize); 9] = [
    (3, 400),
    (4, 400),
    (5, 1500),
    (7, usize::MAX),
    (10, usize::MAX),
    (15, usize::MAX),
    (25, usize::MAX),
    (40, usize::MAX),
    (60, usize::MAX),
];
/// No point is tied to more than one in so many of the others: a community has to be larger than what its points are tied to.
/// Up to five neighbours are tried in any pile.
const SHARE: usize = 8;
const ALWAYS: usize = 5;
/// Resolutions of the modularity that are tried. What suits a pile grows with the number of its categories.
const RESOLUTIONS: [f64; 9] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0];
/// In a large pile a first round tries every other one of them: it only says which directions to damp.
const FIRST_STEP: usize = 2;
/// What a division is worth beside its silhouette: the logarithm of its number of communities, the share of the pairs of examples of
/// one class that are together, and that of two classes that are.
const MANY: f64 = 0.03;
const TOGETHER: f64 = 0.15;
const MIXED: f64 = 0.75;
/// By how much less a division may be worth to count e times less, and the least weight that still counts.
const TEMPERATURE: f64 = 0.02;
const LEAST_WEIGHT: f64 = 0.02;

/// Communities of up to so many points are no category. Where they have fewer than four points on average pairs are what is looked for.
const SMALL: usize = 2;
const PAIRS: usize = 4;

/// What votes agree on has to resemble one of their communities at least so much to be a category.
const LEAST_RESEMBLANCE: f64 = 0.25;

/// A community is of a known class when it has at least so many of its examples, and this share of them. The community with most
/// examples of a class is always its own.
const ENOUGH: usize = 2;
const ENOUGH_SHARE: f64 = 0.15;

/// The examples and queries of a task with their neighbours.
pub(crate) struct Neighbourhoods<'a> {
    points: &'a Points,
    /// The examples and queries along the principal directions, scaled to length one.
    rows: Vec<f32>,
    dim: usize,
    near: Vec<Vec<NearRow>>,
}

/// Points are sorted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To learn in which directions the items of one category differ.
    First,
    /// In the space that the first round taught.
    Last,
}

/// A way to divide the points.
pub(crate) struct Division {
    /// How many neighbours points were tied to.
    neighbours: usize,
    /// The community of every example, then of every query.
    communities: Vec<usize>,
    /// What the examples add to its worth, and the whole of it.
    examples: f64,
    worth: f64,
}

impl<'a> Neighbourhoods<'a> {
    pub(crate) fn new(points: &'a Points) -> Self {
        let (rows, dim) = projected(points.items(), points.dim());
        let most = NEIGHBOURS[NEIGHBOURS.len() - 1]
            .0
            .min((rows.len() / dim).saturating_sub(1));
        Self {
            points,
            near: nearest(&rows, dim, most),
            rows,
            dim,
        }
    }

    fn len(&self) -> usize {
        self.near.len()
    }

    /// The divisions of the graph that count, the best first.
    pub(crate) fn divisions(&self, round: Round) -> Vec<Division> {
        let (skipped, step) = match round {
            Round::First if self.len() > GRAM_LIMIT => (1, FIRST_STEP),
            Round::First | Round::Last => (0, 1),
        };
        let most = (self.len() / SHARE).max(ALWAYS);
        let graphs: Vec<(usize, Graph)> = NEIGHBOURS
            .into_iter()
            .filter(|&(neighbours, points)| neighbours <= most && self.len() <= points)
            .map(|(neighbours, _)| (neighbours, self.graph(neighbours)))
            .collect();
        let tried: Vec<(usize, f64)> = (0..graphs.len())
            .flat_map(|graph| {
                let resolutions = RESOLUTIONS.into_iter().skip(skipped).step_by(step);
                resolutions.map(move |resolution| (graph, resolution))
            })
            .collect();
        let mut judged: Vec<(f64, usize, f64, Division)> = tried
            .into_par_iter()
            .map(|(graph, resolution)| {
                let communities = self.without_small(&leiden(&graphs[graph].1, resolution, 0));
                let (together, mixed) = self.pairs(&communities);
                let examples = TOGETHER * together - MIXED * mixed;
                let division = self.division(graphs[graph].0, communities, examples);
                (mixed, graph, resolution, division)
            })
            .collect();
        judged.sort_by(|a, b| b.3.worth.total_cmp(&a.3.worth));
        let most = judged.first().map_or(0.0, |best| best.3.worth);
        judged.retain(|(_, _, _, division)| weight(division.worth - most) >= LEAST_WEIGHT);
        // Examples of two classes may be in one community only while it is asked whether they would be.
        let classes = self.classes();
        let graphs: Vec<Graph> = graphs
            .into_iter()
            .map(|(_, graph)| graph.kept_apart(classes.clone()))
            .collect();
        judged
            .into_par_iter()
            .map(|(mixed, graph, resolution, division)| match mixed > 0.0 {
                true => Division {
                    communities: self.without_small(&leiden(&graphs[graph], resolution, 0)),
                    ..division
                },
                false => division,
            })
            .collect()
    }

    /// The class of every example, and none of every query.
    fn classes(&self) -> Vec<Option<u32>> {
        let labelled = self.points.labels().iter().map(|&class| Some(class as u32));
        let queries = self.len() - self.points.labels().len();
        labelled.chain(std::iter::repeat_n(None, queries)).collect()
    }

    /// What another way of sorting says, beside the divisions of the graph. It keeps every example with its class whatever the pile
    /// says, so the examples add as much to its worth as to that of the best division.
    pub(crate) fn division_of(&self, sorted: &ClusteredPoints, divisions: &[Division]) -> Division {
        let queries = &sorted.clusters[self.points.known()..];
        let clusters: Vec<usize> = self.points.labels().iter().chain(queries).copied().collect();
        let (neighbours, examples) = divisions
            .first()
            .map_or((0, 0.0), |best| (best.neighbours, best.examples));
        self.division(neighbours, canonical(&clusters).0, examples)
    }

    fn division(&self, neighbours: usize, communities: Vec<usize>, examples: f64) -> Division {
        Division {
            neighbours,
            worth: self.clarity(&communities) + examples,
            communities,
            examples,
        }
    }

    /// The points of a community of the best division, on average.
    pub(crate) fn community_size(&self, divisions: &[Division]) -> f64 {
        let communities = divisions.first().map_or(&[][..], |best| &best.communities);
        let count = communities.iter().max().map_or(1, |&last| last + 1);
        self.len() as f64 / count as f64
    }

    /// The points sorted by what the best divisions agree on, with the number of neighbours that the very best is made with.
    pub(crate) fn consensus(&self, divisions: &[Division]) -> (ClusteredPoints, usize) {
        let most = divisions
            .iter()
            .map(|division| division.worth)
            .fold(f64::NEG_INFINITY, f64::max);
        let votes: Vec<Vote<'_>> = divisions
            .iter()
            .map(|division| Vote {
                clusters: &division.communities,
                weight: weight(division.worth - most),
            })
            .filter(|vote| vote.weight >= LEAST_WEIGHT)
            .collect();
        let agreed = self.without_small(&consensus(&votes, &self.classes()));
        let resemblance = resemblance(&votes, &agreed);
        let communities = self.without(&agreed, |own| resemblance[own] < LEAST_RESEMBLANCE);
        let neighbours = divisions.first().map_or(0, |best| best.neighbours);
        // What is left alone goes to the nearest category.
        (self.sorted(&communities).refined(self.points, 0), neighbours)
    }

    fn graph(&self, neighbours: usize) -> Graph {
        let longest = self.near.first().map_or(0, Vec::len);
        shared_neighbours(&self.near, neighbours.min(longest), vec![None; self.len()])
    }

    /// The silhouette, and a little for many communities: of few and wide ones it is too fond.
    fn clarity(&self, communities: &[usize]) -> f64 {
        self.silhouette(communities) + MANY * (communities.len() as f64 / size(communities)).ln()
    }

    /// The sums of the rows of every community, and how many they are.
    fn sums(&self, communities: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let count = communities.iter().max().map_or(0, |&last| last + 1);
        let (mut sums, mut counts) = (vec![0f32; count * self.dim], vec![0f32; count]);
        for (row, &own) in self.rows.chunks_exact(self.dim).zip(communities) {
            counts[own] += 1.0;
            sums[own * self.dim..][..self.dim]
                .iter_mut()
                .zip(row)
                .for_each(|(sum, v)| *sum += v);
        }
        (sums, counts)
    }

    /// The communities with the points of small ones in the nearest of the others.
    fn without_small(&self, communities: &[usize]) -> Vec<usize> {
        let sizes = sizes(communities);
        let few = self.len() < PAIRS * sizes.len();
        let small = if few { SMALL - 1 } else { SMALL };
        self.without(communities, |own| sizes[own] <= small)
    }

    /// The communities with the points of some in the nearest of the others, if there are others.
    fn without(&self, communities: &[usize], dissolved: impl Fn(usize) -> bool) -> Vec<usize> {
        let (mut centres, counts) = self.sums(communities);
        let kept: Vec<usize> = (0..counts.len()).filter(|&own| !dissolved(own)).collect();
        if kept.is_empty() || kept.len() == counts.len() {
            return communities.to_vec();
        }
        centres.chunks_exact_mut(self.dim).for_each(|centre| {
            scale_to_unit(centre);
        });
        let kept_centres: Vec<f32> = kept
            .iter()
            .flat_map(|&own| &centres[own * self.dim..][..self.dim])
            .copied()
            .collect();
        let nearest = |row: &[f32]| {
            let fits = linalg::dots(row, &kept_centres, self.dim);
            let best = (0..kept.len()).reduce(|best, at| if fits[at] > fits[best] { at } else { best });
            best.map(|at| kept[at])
        };
        let rows = self.rows.chunks_exact(self.dim).zip(communities);
        let moved: Vec<usize> = rows
            .map(|(row, &own)| match dissolved(own) {
                false => own,
                true => nearest(row).unwrap_or(own),
            })
            .collect();
        canonical(&moved).0
    }

    /// How much nearer points are to the others of their own community than to the next one, as a share of how far they are from
    /// it, on average: between −1 and 1.
    fn silhouette(&self, communities: &[usize]) -> f64 {
        let (mut means, counts) = self.sums(communities);
        means.chunks_exact_mut(self.dim).zip(&counts).for_each(|(mean, count)| {
            mean.iter_mut().for_each(|v| *v /= count);
        });
        let count = counts.len();
        let dots = linalg::dots(&self.rows, &means, self.dim);
        let of_point = |(dots, &own): (&[f32], &usize)| {
            let members = f64::from(counts[own]);
            if members < 1.5 || count < 2 {
                return 0.0;
            }
            let fit = (f64::from(dots[own]) * members - 1.0) / (members - 1.0);
            let most = |dots: &[f32]| dots.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let next = f64::from(most(&dots[..own]).max(most(&dots[own + 1..])));
            (fit - next) / (1.0 - fit).max(1.0 - next).max(1e-6)
        };
        dots.chunks_exact(count.max(1))
            .zip(communities)
            .map(of_point)
            .sum::<f64>()
            / communities.len().max(1) as f64
    }

    /// The share of the pairs of examples of one class that are together, and of the pairs of two classes.
    fn pairs(&self, communities: &[usize]) -> (f64, f64) {
        let (labels, known) = (self.points.labels(), self.points.known());
        let count = communities.iter().max().map_or(0, |&last| last + 1);
        let (mut in_class, mut in_community, mut in_both) = (vec![0; known], vec![0; count], vec![0; count * known]);
        for (&class, &own) in labels.iter().zip(communities) {
            in_class[class] += 1;
            in_community[own] += 1;
            in_both[own * known + class] += 1;
        }
        let pairs = |counts: &[usize]| counts.iter().map(|&n| n * n.saturating_sub(1) / 2).sum::<usize>();
        let (same, together, both) = (pairs(&in_class), pairs(&in_community), pairs(&in_both));
        let other = pairs(&[labels.len()]) - same;
        let share = |pairs: usize, of: usize| pairs as f64 / of.max(1) as f64;
        (share(both, same), share(together - both, other))
    }

    /// Communities as known classes and new groups.
    ///
    /// A class may have several forms, so all communities that its examples say are its own become one cluster.
    fn sorted(&self, communities: &[usize]) -> ClusteredPoints {
        let (labels, known) = (self.points.labels(), self.points.known());
        let sizes = sizes(communities);
        let count = sizes.len();
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
        ClusteredPoints::new(self.points, (0..known).chain(clusters).collect())
    }
}

/// How much a division counts that is worth so much more than the best.
fn weight(worth: f64) -> f64 {
    (worth / TEMPERATURE).exp()
}

/// Rows along their principal directions, scaled to length one, and the number of these.
pub(crate) fn projected(rows: Vec<f32>, dim: usize) -> (Vec<f32>, usize) {
    let count = rows.len() / dim;
    if dim <= DIRECTIONS || count <= FEWEST_ROWS {
        return (rows, dim);
    }
    // Evenly from all rows, as their order may mean something.
    let step = count.div_ceil(SAMPLE);
    let sample: Vec<f32> = rows.chunks_exact(dim).step_by(step).flatten().copied().collect();
    let directions: Vec<f32> = leading(&sample, dim, DIRECTIONS)
        .into_iter()
        .flat_map(|pair| pair.1)
        .collect();
    let kept = directions.len() / dim;
    if kept == 0 {
        return (rows, dim);
    }
    let mut projected = linalg::dots(&rows, &directions, dim);
    projected.chunks_exact_mut(kept).for_each(|row| {
        scale_to_unit(row);
    });
    (projected, kept)
}

/// How many points are in every community.
fn sizes(communities: &[usize]) -> Vec<usize> {
    let mut sizes = vec![0; communities.iter().max().map_or(0, |&last| last + 1)];
    communities.iter().for_each(|&own| sizes[own] += 1);
    sizes
}

/// The size that communities have when they are weighed by how many points are in them: that of all points over the number of
/// communities of one size whose division would say as much.
fn size(communities: &[usize]) -> f64 {
    let (communities, _) = canonical(communities);
    let all = communities.len() as f64;
    let shares = sizes(&communities).into_iter().map(|size| size as f64 / all);
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

    fn sort(points: &Points) -> ClusteredPoints {
        let pile = Neighbourhoods::new(points);
        pile.consensus(&pile.divisions(Round::Last)).0
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
    fn the_silhouette_is_that_of_all_pairs() {
        let (points, _) = points(&[9, 14, 5, 30], &[(0, 0), (1, 1), (1, 1)], 1.4, 11);
        let found = Neighbourhoods::new(&points);
        let mut rng = Rng::new(2, &[]);
        let communities = canonical(&(0..found.len()).map(|_| rng.below(4)).collect::<Vec<_>>()).0;
        let row = |at: usize| &found.rows[at * found.dim..][..found.dim];
        let dot = |a: usize, b: usize| {
            row(a)
                .iter()
                .zip(row(b))
                .map(|(&a, &b)| f64::from(a) * f64::from(b))
                .sum::<f64>()
        };
        let mut sum = 0.0;
        for at in 0..found.len() {
            // The mean cosine with the others of every community.
            let mean = |own: usize| {
                let others = (0..found.len()).filter(|&other| other != at && communities[other] == own);
                let dots: Vec<f64> = others.map(|other| dot(at, other)).collect();
                dots.iter().sum::<f64>() / dots.len() as f64
            };
            let fit = mean(communities[at]);
            let next = (0..4)
                .filter(|&own| own != communities[at])
                .map(mean)
                .fold(f64::NEG_INFINITY, f64::max);
            sum += (fit - next) / (1.0 - fit).max(1.0 - next);
        }
        let naive = sum / found.len() as f64;
        assert!(
            (found.silhouette(&communities) - naive).abs() < 1e-5,
            "{} {naive}",
            found.silhouette(&communities)
        );
    }

    #[test]
    fn what_is_sorted_rightly_is_clearest() {
        let (points, truth) = points(&[40, 40, 40, 40], &[(0, 0), (0, 0)], 1.0, 6);
        let found = Neighbourhoods::new(&points);
        let clarity = |of_query: &dyn Fn(usize, usize) -> usize| {
            let queries = truth.iter().enumerate().map(|(at, &blob)| of_query(at, blob));
            let sorted = ClusteredPoints::new(&points, std::iter::once(0).chain(queries).collect());
            found.division_of(&sorted, &[]).worth
        };
        let right = clarity(&|_, blob| blob);
        assert!(right > clarity(&|_, blob| blob.min(2)), "two in one");
        assert!(
            right > clarity(&|at, blob| if blob == 3 { 3 + at % 2 } else { blob }),
            "one in two"
        );
        assert!(right > clarity(&|at, _| at % 4), "anyhow");
    }

    #[test]
    fn pairs_of_examples_are_counted() {
        let (points, _) = points(&[4], &[(0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (0, 2)], 0.5, 1);
        let found = Neighbourhoods::new(&points);
        // Of four pairs of a class one is together, and of eleven of two classes two are: those of class 2 and class 0.
        let (together, mixed) = found.pairs(&[0, 0, 1, 2, 3, 0, 5, 5, 5, 5]);
        assert!((together - 1.0 / 4.0).abs() < 1e-12 && (mixed - 2.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn points_of_small_communities_go_to_the_nearest_other() {
        let (points, truth) = points(&[20, 20], &[], 0.3, 5);
        let found = Neighbourhoods::new(&points);
        let mut torn = truth.clone();
        (torn[3], torn[25], torn[26]) = (2, 3, 3);
        assert_eq!(found.without_small(&torn), truth);
        // Where all are small there is nowhere to go.
        let alone: Vec<usize> = (0..truth.len()).collect();
        assert_eq!(found.without_small(&alone), alone);
    }

    #[test]
    fn what_nobody_voted_for_is_no_category() {
        let (points, truth) = points(&[40, 40, 40], &[], 0.5, 5);
        let found = Neighbourhoods::new(&points);
        // Three divisions that differ in where the first ten of a blob belong: most say of every blob that it is not there.
        let division = |blob: usize| {
            let mut communities = truth.clone();
            communities[..10].fill(blob);
            Division {
                worth: 1.0,
                ..found.division(7, communities, 0.0)
            }
        };
        let (sorted, _) = found.consensus(&[division(0), division(1), division(2)]);
        assert_eq!((sorted.count, canonical(&sorted.clusters).0), (3, truth.clone()));
        let classes = vec![None; truth.len()];
        let divisions = [division(0), division(1), division(2)];
        let votes = divisions.each_ref().map(|division| Vote {
            clusters: &division.communities,
            weight: 1.0,
        });
        assert_eq!(
            consensus(&votes, &classes).into_iter().max(),
            Some(3),
            "the ten are a scrap"
        );
    }

    #[test]
    fn rows_along_principal_directions_keep_their_cosines() {
        // Rows that lie in few of many directions, with next to nothing in the others.
        let (dim, count, of) = (300, FEWEST_ROWS + 50, 6);
        let mut rng = Rng::new(8, &[]);
        let mut rows: Vec<f32> = Vec::new();
        for _ in 0..count {
            let row: Vec<f64> = (0..dim)
                .map(|axis| (rng.unit() - 0.5) * if axis < of { 1.0 } else { 1e-4 })
                .collect();
            let mut row: Vec<f32> = row.into_iter().map(|v| v as f32).collect();
            scale_to_unit(&mut row);
            rows.extend(row);
        }
        let (found, kept) = projected(rows.clone(), dim);
        // Directions with nothing in them are left out.
        assert_eq!((kept, found.len()), (of, count * of));
        let dot = |rows: &[f32], dim: usize, a: usize, b: usize| -> f32 {
            let (a, b) = (&rows[a * dim..][..dim], &rows[b * dim..][..dim]);
            a.iter().zip(b).map(|(a, b)| a * b).sum()
        };
        for a in (0..count).step_by(7) {
            let (before, after) = (dot(&rows, dim, a, 3), dot(&found, kept, a, 3));
            assert!((before - after).abs() < 1e-4, "{before} {after}");
        }
        // Few rows or few directions stay as they are.
        let few = rows[..FEWEST_ROWS * dim].to_vec();
        assert_eq!(projected(few.clone(), dim), (few, dim));
    }

    #[test]
    fn the_size_is_that_of_equal_communities_that_say_as_much() {
        assert!((size(&[0, 0, 1, 1, 2, 2]) - 2.0).abs() < 1e-12);
        assert!((size(&[0; 9]) - 9.0).abs() < 1e-12);
        let uneven = size(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert!(uneven > 10.0 / 3.0 && uneven < 10.0, "{uneven}");
    }
}
