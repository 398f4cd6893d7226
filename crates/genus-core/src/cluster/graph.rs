//! The graph of shared neighbours: points are tied when they are near each other and have their neighbours in common.

use rayon::prelude::*;

use super::leiden::Graph;
use super::neighbours::NearRow;

/// Ties every point to its `size` nearest. The weight of a tie is the share of their neighbours that two points have in common
/// (the Jaccard index); without any there is no tie. Nodes of different classes are never in one community.
///
/// Ranks alone decide, so distances need not mean the same everywhere.
pub(crate) fn shared_neighbours(near: &[Vec<NearRow>], size: usize, class: Vec<Option<u32>>) -> Graph {
    let n = near.len();
    let listed = |point: usize| &near[point][..size.min(near[point].len())];
    let mut edges: Vec<Vec<(u32, f32)>> = (0..n)
        .into_par_iter()
        .map_init(
            || vec![false; n],
            |is_near, point| {
                let own = listed(point);
                own.iter().for_each(|near| is_near[near.other as usize] = true);
                let tie = |to: &NearRow| {
                    let others = listed(to.other as usize).iter();
                    let common = others.filter(|near| is_near[near.other as usize]).count();
                    (to.other, common as f32 / (2 * size - common) as f32)
                };
                let ties = own.iter().map(tie).filter(|tie| tie.1 > 0.0).collect();
                own.iter().for_each(|near| is_near[near.other as usize] = false);
                ties
            },
        )
        .collect();
    // A tie is at both of its points, whichever of them listed the other.
    let one_way = edges.clone();
    for (point, ties) in one_way.iter().enumerate() {
        ties.iter()
            .for_each(|&(other, weight)| edges[other as usize].push((point as u32, weight)));
    }
    edges.par_iter_mut().for_each(|ties| {
        ties.sort_unstable_by_key(|tie| tie.0);
        ties.dedup_by_key(|tie| tie.0);
    });
    Graph::new(edges, class)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::neighbours::nearest;
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn ties_are_the_shares_of_common_neighbours() {
        let mut rng = Rng::new(4, &[]);
        for (n, dim, size) in [(30, 3, 4), (80, 2, 10), (12, 5, 11), (2, 1, 1)] {
            let rows: Vec<f32> = (0..n * dim).map(|_| rng.unit() as f32).collect();
            let near = nearest(&rows, dim, size);
            let graph = shared_neighbours(&near, size, vec![None; n]);
            let of = |i: usize| -> BTreeSet<usize> { near[i].iter().map(|near| near.other as usize).collect() };
            for i in 0..n {
                let edges: Vec<(usize, f64)> = graph.edges(i).collect();
                let mut expected = Vec::new();
                for j in (0..n).filter(|&j| j != i && (of(i).contains(&j) || of(j).contains(&i))) {
                    let common = of(i).intersection(&of(j)).count();
                    if common > 0 {
                        expected.push((j, f64::from(common as f32 / (2 * size - common) as f32)));
                    }
                }
                assert_eq!(edges, expected, "node {i} of {n}");
            }
        }
    }
}
