//! The repulsion of many points: those far away act as one (Barnes and Hut 1986).
//!
//! The points are halved again and again along the longer side of the box around them, until so many are left that fill
//! the vectors of the machine. Such a leaf looks at the others as one: what is far from its box it sees as a single heavy
//! point, and what it sees is the same list for all of its points.

use rayon::prelude::*;

use super::Force;
use crate::linalg::{self, Work};

/// Points of a leaf.
const LEAF: usize = 32;
/// Points whose forces are summed side by side.
const LANES: usize = 8;
/// Numbers that are added in single precision before the sum goes on in double.
const RUN: usize = 128;
/// A node that is so many times smaller than its distance acts as one point.
const NARROW: f32 = 0.5;
/// Below so many leaves waking another thread costs more than it saves.
const PARALLEL_FROM: usize = 64;

/// A tree whose memory is used from step to step.
pub(super) struct BarnesHutTree {
    /// The points from leaf to leaf. The order of the last step is nearly that of the next.
    order: Vec<u32>,
    /// Where they are, in this order.
    xs: Vec<f32>,
    ys: Vec<f32>,
    /// Every node before its left half, and this before its right half.
    nodes: Vec<TreeNode>,
}

#[derive(Clone, Copy, Default)]
struct TreeNode {
    centre: [f32; 2],
    mass: f32,
    /// The square of the longer side of the box around its points.
    size: f32,
    /// The next node that is not inside this one.
    skip: u32,
    /// The first of its points, in the order of the tree.
    first: u32,
}

impl BarnesHutTree {
    pub(super) fn new(points: usize) -> Self {
        let leaves = points.div_ceil(LEAF);
        Self {
            order: (0..points as u32).collect(),
            xs: vec![0.0; points],
            ys: vec![0.0; points],
            nodes: vec![TreeNode::default(); (2 * leaves).saturating_sub(1)],
        }
    }

    /// The repulsion of all other points on every point, and its weight.
    pub(super) fn repulsion(&mut self, place: &[[f64; 2]]) -> Vec<Force> {
        if place.is_empty() {
            return Vec::new();
        }
        self.build(place);
        let mut in_order = vec![Force::default(); place.len()];
        in_order
            .par_chunks_mut(LEAF)
            .enumerate()
            .for_each_init(PointMasses::default, |seen, (leaf, out)| {
                let own = leaf * LEAF..leaf * LEAF + out.len();
                let (xs, ys) = (&self.xs[own.clone()], &self.ys[own]);
                linalg::wide(LeafTraversal {
                    nodes: &self.nodes,
                    all: (&self.xs, &self.ys),
                    own: (xs, ys),
                    seen,
                    out,
                });
            });
        let mut forces = vec![Force::default(); place.len()];
        for (&point, force) in self.order.iter().zip(in_order) {
            forces[point as usize] = force;
        }
        forces
    }

    fn build(&mut self, place: &[[f64; 2]]) {
        let places: Vec<[f32; 2]> = place.iter().map(|p| p.map(|value| value as f32)).collect();
        let leaves = self.order.len().div_ceil(LEAF);
        let part = NodeSpan {
            order: &mut self.order,
            xs: &mut self.xs,
            ys: &mut self.ys,
            nodes: &mut self.nodes,
        };
        part.build(&places, leaves, 0, 0);
    }
}

/// What belongs to one node.
struct NodeSpan<'a> {
    order: &'a mut [u32],
    xs: &'a mut [f32],
    ys: &'a mut [f32],
    nodes: &'a mut [TreeNode],
}

impl NodeSpan<'_> {
    /// Makes the node of these points, whose number is `at` and whose first point is `first`, and those inside it.
    fn build(self, places: &[[f32; 2]], leaves: usize, at: usize, first: usize) -> TreeNode {
        let Some((own, inside)) = self.nodes.split_first_mut() else {
            return TreeNode::default();
        };
        let mut low = [f32::INFINITY; 2];
        let mut high = [f32::NEG_INFINITY; 2];
        for &point in &*self.order {
            for axis in 0..2 {
                let value = places[point as usize][axis];
                low[axis] = if value < low[axis] { value } else { low[axis] };
                high[axis] = if value > high[axis] { value } else { high[axis] };
            }
        }
        let sides = [high[0] - low[0], high[1] - low[1]];
        let longer = usize::from(sides[1] > sides[0]);
        *own = TreeNode {
            size: sides[longer] * sides[longer],
            mass: self.order.len() as f32,
            skip: (at + 2 * leaves - 1) as u32,
            first: first as u32,
            centre: [0.0; 2],
        };
        own.centre = if leaves == 1 {
            // A leaf's points in the order of their numbers: what halving left of their order is chance.
            self.order.sort_unstable();
            let mut sum = [0f64; 2];
            for ((&point, x), y) in self.order.iter().zip(self.xs).zip(self.ys) {
                [*x, *y] = places[point as usize];
                sum[0] += f64::from(*x);
                sum[1] += f64::from(*y);
            }
            sum.map(|sum| (sum / self.order.len() as f64) as f32)
        } else {
            // Whole leaves on the left, so that the last leaf alone may have gaps.
            let left_leaves = leaves / 2;
            let half = left_leaves * LEAF;
            self.order.select_nth_unstable_by(half, |&a, &b| {
                let along = |point: u32| places[point as usize][longer];
                along(a).total_cmp(&along(b)).then(a.cmp(&b))
            });
            let (left_order, right_order) = self.order.split_at_mut(half);
            let (left_xs, right_xs) = self.xs.split_at_mut(half);
            let (left_ys, right_ys) = self.ys.split_at_mut(half);
            let (left_nodes, right_nodes) = inside.split_at_mut(2 * left_leaves - 1);
            let left = NodeSpan {
                order: left_order,
                xs: left_xs,
                ys: left_ys,
                nodes: left_nodes,
            };
            let right = NodeSpan {
                order: right_order,
                xs: right_xs,
                ys: right_ys,
                nodes: right_nodes,
            };
            let build_left = || left.build(places, left_leaves, at + 1, first);
            let build_right = || right.build(places, leaves - left_leaves, at + 2 * left_leaves, first + half);
            let (left, right) = if leaves < PARALLEL_FROM {
                (build_left(), build_right())
            } else {
                rayon::join(build_left, build_right)
            };
            let total = f64::from(left.mass) + f64::from(right.mass);
            [0, 1].map(|axis| {
                let sum = f64::from(left.mass) * f64::from(left.centre[axis])
                    + f64::from(right.mass) * f64::from(right.centre[axis]);
                (sum / total) as f32
            })
        };
        *own
    }
}

/// What a leaf sees: points and their masses.
#[derive(Default)]
struct PointMasses {
    xs: Vec<f32>,
    ys: Vec<f32>,
    masses: Vec<f32>,
}

/// One leaf's look at all others.
struct LeafTraversal<'a> {
    nodes: &'a [TreeNode],
    all: (&'a [f32], &'a [f32]),
    own: (&'a [f32], &'a [f32]),
    seen: &'a mut PointMasses,
    out: &'a mut [Force],
}

impl Work for LeafTraversal<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (xs, ys) = self.own;
        self.seen.fill(self.nodes, self.all, bounds(xs), bounds(ys));
        for ((xs, ys), out) in xs.chunks(LANES).zip(ys.chunks(LANES)).zip(self.out.chunks_mut(LANES)) {
            // Lanes without a point compute as others do, and nobody looks.
            let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
            x[..xs.len()].copy_from_slice(xs);
            y[..ys.len()].copy_from_slice(ys);
            let sums = self.seen.repulsion(x, y);
            for (lane, force) in out.iter_mut().enumerate() {
                force.repulsion = [sums[0][lane], sums[1][lane]];
                // The point itself is among those seen: no distance, so no force, but a kernel of one.
                force.weight = sums[2][lane] - 1.0;
            }
        }
    }
}

#[inline(always)]
fn bounds(values: &[f32]) -> [f32; 2] {
    let mut bounds = [f32::INFINITY, f32::NEG_INFINITY];
    for &value in values {
        bounds[0] = if value < bounds[0] { value } else { bounds[0] };
        bounds[1] = if value > bounds[1] { value } else { bounds[1] };
    }
    bounds
}

impl PointMasses {
    /// Looks at the tree from a box.
    #[inline(always)]
    fn fill(&mut self, nodes: &[TreeNode], all: (&[f32], &[f32]), x: [f32; 2], y: [f32; 2]) {
        self.xs.clear();
        self.ys.clear();
        self.masses.clear();
        let outside = |value: f32, [low, high]: [f32; 2]| {
            let (below, above) = (low - value, value - high);
            let gap = if below > above { below } else { above };
            if gap > 0.0 { gap } else { 0.0 }
        };
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            let (dx, dy) = (outside(node.centre[0], x), outside(node.centre[1], y));
            if node.size <= NARROW * NARROW * (dx * dx + dy * dy) {
                self.xs.push(node.centre[0]);
                self.ys.push(node.centre[1]);
                self.masses.push(node.mass);
                at = node.skip as usize;
            } else {
                if node.skip as usize == at + 1 {
                    let points = node.first as usize..node.first as usize + node.mass as usize;
                    self.xs.extend_from_slice(&all.0[points.clone()]);
                    self.ys.extend_from_slice(&all.1[points]);
                    self.masses.resize(self.xs.len(), 1.0);
                }
                at += 1;
            }
        }
    }

    /// The forces along both axes and the weight, for a vector of points.
    #[inline(always)]
    fn repulsion(&self, x: [f32; LANES], y: [f32; LANES]) -> [[f64; LANES]; 3] {
        let mut totals = [[0f64; LANES]; 3];
        let runs = self
            .xs
            .chunks(RUN)
            .zip(self.ys.chunks(RUN))
            .zip(self.masses.chunks(RUN));
        for ((xs, ys), masses) in runs {
            let mut sums = [[0f32; LANES]; 3];
            for ((&seen_x, &seen_y), &mass) in xs.iter().zip(ys).zip(masses) {
                for lane in 0..LANES {
                    let (dx, dy) = (x[lane] - seen_x, y[lane] - seen_y);
                    let kernel = 1.0 / (1.0 + dx * dx + dy * dy);
                    let weight = mass * kernel;
                    let push = weight * kernel;
                    sums[0][lane] += push * dx;
                    sums[1][lane] += push * dy;
                    sums[2][lane] += weight;
                }
            }
            for (total, sum) in totals.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
                *total += f64::from(*sum);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The definition: every other point by itself, in double precision. Also how strong all pushes are together, whatever
    /// their direction: what a force is the small rest of can be missed by more than the force itself.
    fn naive(place: &[[f64; 2]]) -> Vec<(Force, f64)> {
        let on = |i: usize| {
            let (mut force, mut pushes) = (Force::default(), 0.0);
            for other in (0..place.len()).filter(|&j| j != i).map(|j| place[j]) {
                let gap = [place[i][0] - other[0], place[i][1] - other[1]];
                let kernel = 1.0 / (1.0 + gap[0] * gap[0] + gap[1] * gap[1]);
                force.weight += kernel;
                force.repulsion[0] += kernel * kernel * gap[0];
                force.repulsion[1] += kernel * kernel * gap[1];
                pushes += kernel * kernel * gap[0].hypot(gap[1]);
            }
            (force, pushes)
        };
        (0..place.len()).map(on).collect()
    }

    /// Maps as they are at the first step and at the last: of one heap, of groups, of a line, of one place, of a few.
    fn maps() -> Vec<(&'static str, Vec<[f64; 2]>)> {
        let mut rng = Rng::new(3, &[1]);
        let mut heap = |n: usize, width: f64| -> Vec<[f64; 2]> {
            let mut bell = || rng.unit() + rng.unit() + rng.unit() - 1.5;
            (0..n).map(|_| [width * bell(), width * bell()]).collect()
        };
        let mut groups = heap(1_300, 1.5);
        for (i, place) in groups.iter_mut().enumerate() {
            place[0] += 12.0 * (i % 7) as f64;
            place[1] += 9.0 * (i % 11) as f64;
        }
        let mut outlier = heap(700, 2.0);
        outlier[13] = [1e4, -1e4];
        let mut doubled = heap(400, 20.0);
        doubled.extend(doubled.clone());
        vec![
            ("tiny", heap(1_100, 1e-4)),
            ("heap", heap(1_500, 30.0)),
            ("groups", groups),
            ("line", (0..900).map(|i| [0.1 * f64::from(i), 0.0]).collect()),
            ("one place", vec![[2.0, -1.0]; 500]),
            ("outlier", outlier),
            ("doubled", doubled),
            ("one", vec![[5.0, 5.0]]),
            ("two", vec![[5.0, 5.0], [6.0, 5.0]]),
            ("a leaf", heap(LEAF, 3.0)),
            ("a leaf and one", heap(LEAF + 1, 3.0)),
            ("three leaves", heap(3 * LEAF - 5, 3.0)),
        ]
    }

    #[test]
    fn forces_are_close_to_those_of_all_pairs() {
        for (name, place) in maps() {
            let (found, exact) = (BarnesHutTree::new(place.len()).repulsion(&place), naive(&place));
            let (mut missed, mut pushed, mut weights) = (0.0, 0.0, [0.0; 2]);
            for (found, (exact, pushes)) in found.iter().zip(&exact) {
                let [x, y] = [0, 1].map(|axis| found.repulsion[axis] - exact.repulsion[axis]);
                let said = format!("{name}: {found:?} for {exact:?}, pushes {pushes}");
                assert!(x.hypot(y) <= 0.02 * pushes + 1e-5, "{said}");
                assert!(
                    (found.weight - exact.weight).abs() <= 0.01 * exact.weight + 1e-5,
                    "{said}"
                );
                missed += x.hypot(y);
                pushed += pushes;
                weights[0] += found.weight;
                weights[1] += exact.weight;
            }
            assert!(missed <= 0.005 * pushed + 1e-3, "{name}: {missed} of {pushed}");
            assert!(
                (weights[0] - weights[1]).abs() <= 0.002 * weights[1] + 1e-3,
                "{name}: {weights:?}"
            );
        }
    }

    #[test]
    fn a_tree_that_was_used_gives_the_forces_of_a_new_one() {
        let mut rng = Rng::new(8, &[]);
        let mut place: Vec<[f64; 2]> = (0..2_500).map(|_| [rng.unit(), 9.0 * rng.unit()]).collect();
        let mut used = BarnesHutTree::new(place.len());
        for _ in 0..4 {
            let bits = |forces: Vec<Force>| -> Vec<[u64; 3]> {
                let numbers = |f: Force| [f.repulsion[0], f.repulsion[1], f.weight].map(f64::to_bits);
                forces.into_iter().map(numbers).collect()
            };
            assert!(bits(used.repulsion(&place)) == bits(BarnesHutTree::new(place.len()).repulsion(&place)));
            place
                .iter_mut()
                .for_each(|[x, y]| (*x, *y) = (*x + 0.3 * *y * *y - 1.0, 0.8 * *y + *x));
        }
    }

    #[test]
    fn places_that_are_no_numbers_do_not_panic() {
        let mut place = vec![[1.0, 2.0]; 200];
        for (at, value) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX]
            .into_iter()
            .enumerate()
        {
            place[40 * at] = [value, -value];
        }
        assert_eq!(BarnesHutTree::new(200).repulsion(&place).len(), 200);
        assert!(BarnesHutTree::new(0).repulsion(&[]).is_empty());
    }
}
