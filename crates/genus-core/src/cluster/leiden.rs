//! Communities of a weighted graph, by the Leiden algorithm (Traag, Waltman and van Eck, 2019).
//!
//! Nodes move to the community that raises the modularity most, communities are refined so that each of them is well connected
//! inside, and the refined parts become the nodes of a smaller graph on which the same begins anew.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::discovery::canonical;
use crate::rng::Rng;

/// What a random choice among merges that raise the modularity is smoothed by, as in the paper.
const RANDOMNESS: f64 = 0.01;
/// Times that the algorithm begins anew from what it found, at most. Large graphs hardly gain by the later ones.
const ITERATIONS: usize = 4;
const ITERATIONS_OF_LARGE: usize = 2;
/// A large graph has more nodes than this.
const LARGE: usize = 2048;

/// An undirected graph: the neighbours of every node with the weights of their edges.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// Where the edges of every node begin, and where the last end.
    begin: Vec<usize>,
    other: Vec<u32>,
    weight: Vec<f32>,
    /// Twice the weight of the edges inside every node.
    inside: Vec<f64>,
    /// The sum of the weights of all edges at every node, those inside twice.
    strength: Vec<f64>,
    /// Nodes of different classes are never in one community.
    class: Vec<Option<u32>>,
}

impl Graph {
    /// A graph of the edges of every node, each edge at both of its nodes; `class[node]` keeps nodes apart.
    pub(crate) fn new(edges: Vec<Vec<(u32, f32)>>, class: Vec<Option<u32>>) -> Self {
        assert_eq!(edges.len(), class.len(), "every node has a class or none");
        let nodes = edges.len();
        Self::with_inside(edges, vec![0.0; nodes], class)
    }

    fn with_inside(edges: Vec<Vec<(u32, f32)>>, inside: Vec<f64>, class: Vec<Option<u32>>) -> Self {
        let mut begin = vec![0];
        begin.extend(edges.iter().scan(0, |end, edges| {
            *end += edges.len();
            Some(*end)
        }));
        let sum = |edges: &Vec<(u32, f32)>| edges.iter().map(|edge| f64::from(edge.1)).sum::<f64>();
        Self {
            begin,
            strength: edges
                .iter()
                .zip(&inside)
                .map(|(edges, inside)| sum(edges) + inside)
                .collect(),
            other: edges.iter().flatten().map(|edge| edge.0).collect(),
            weight: edges.iter().flatten().map(|edge| edge.1).collect(),
            inside,
            class,
        }
    }

    /// The same graph whose nodes of different classes are never in one community.
    pub(crate) fn kept_apart(self, class: Vec<Option<u32>>) -> Self {
        assert_eq!(self.nodes(), class.len(), "every node has a class or none");
        Self { class, ..self }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.class.len()
    }

    pub(crate) fn edges(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let own = self.begin[node]..self.begin[node + 1];
        let weights = self.weight[own.clone()].iter();
        self.other[own]
            .iter()
            .zip(weights)
            .map(|(&other, &weight)| (other as usize, f64::from(weight)))
    }

    /// Twice the weight of all edges.
    fn total(&self) -> f64 {
        self.strength.iter().sum()
    }

    /// The graph whose nodes are the `count` parts of this one.
    fn aggregate(&self, part: &[usize], count: usize) -> Self {
        let mut members = vec![Vec::new(); count];
        part.iter()
            .enumerate()
            .for_each(|(node, &part)| members[part].push(node));
        let mut class = vec![None; count];
        let mut inside = vec![0f64; count];
        let mut sums = Sums::new(count);
        let mut edges = Vec::with_capacity(count);
        for (own, members) in members.iter().enumerate() {
            for &node in members {
                class[own] = class[own].or(self.class[node]);
                inside[own] += self.inside[node];
                self.edges(node)
                    .for_each(|(other, weight)| sums.add(part[other], weight));
            }
            inside[own] += sums.get(own);
            let mut outside: Vec<(u32, f32)> = sums
                .drain()
                .filter(|&(other, _)| other != own)
                .map(|(other, weight)| (other as u32, weight as f32))
                .collect();
            outside.sort_unstable_by_key(|edge| edge.0);
            edges.push(outside);
        }
        Self::with_inside(edges, inside, class)
    }
}

/// Sums by number, of which few are not zero.
struct Sums {
    sum: Vec<f64>,
    touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl Sums {
    fn new(count: usize) -> Self {
        Self {
            sum: vec![0.0; count],
            touched: Vec::new(),
            is_touched: vec![false; count],
        }
    }

    fn add(&mut self, at: usize, value: f64) {
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(at);
        }
        self.sum[at] += value;
    }

    fn get(&self, at: usize) -> f64 {
        self.sum[at]
    }

    /// The sums in the order in which they were first added to; afterwards all are zero.
    fn drain(&mut self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let Self {
            sum,
            touched,
            is_touched,
        } = self;
        touched.drain(..).map(|at| {
            is_touched[at] = false;
            (at, std::mem::take(&mut sum[at]))
        })
    }
}

/// The community of every node, numbered from 0 in the order of their first nodes.
pub(crate) fn leiden(graph: &Graph, resolution: f64, seed: u64) -> Vec<usize> {
    let mut found: Vec<usize> = (0..graph.nodes()).collect();
    let iterations = if graph.nodes() > LARGE {
        ITERATIONS_OF_LARGE
    } else {
        ITERATIONS
    };
    for iteration in 0..iterations {
        let better = once(graph, resolution, &found, &mut Rng::new(seed, &[iteration as u64]));
        if better == found {
            break;
        }
        found = better;
    }
    found
}

/// One run from given communities, through ever smaller graphs.
fn once(graph: &Graph, resolution: f64, start: &[usize], rng: &mut Rng) -> Vec<usize> {
    // The node of the current graph that every node of the first is in.
    let mut node_of: Vec<usize> = (0..graph.nodes()).collect();
    let mut current = Cow::Borrowed(graph);
    let mut community = start.to_vec();
    loop {
        let nodes = current.nodes();
        let price = ExpectedWeight::new(&current, resolution);
        let count = move_nodes(&current, &price, &mut community, rng);
        if count == nodes {
            break;
        }
        let (part, parts) = refine(&current, &price, &community, rng);
        if parts == nodes {
            break;
        }
        // The communities found so far are where the parts begin.
        let mut of_part = vec![0; parts];
        part.iter()
            .zip(&community)
            .for_each(|(&part, &own)| of_part[part] = own);
        current = Cow::Owned(current.aggregate(&part, parts));
        node_of.iter_mut().for_each(|node| *node = part[*node]);
        community = of_part;
    }
    let found: Vec<usize> = node_of.iter().map(|&node| community[node]).collect();
    canonical(&found).0
}

/// What it costs to be together: the weight that edges would have at random, times the resolution.
struct ExpectedWeight(f64);

impl ExpectedWeight {
    fn new(graph: &Graph, resolution: f64) -> Self {
        let total = graph.total();
        Self(if total > 0.0 { resolution / total } else { 0.0 })
    }

    fn of(&self, a: f64, b: f64) -> f64 {
        self.0 * a * b
    }
}

/// Moves nodes to better communities until none gains by it; communities are numbered anew, and their number is returned.
fn move_nodes(graph: &Graph, price: &ExpectedWeight, community: &mut Vec<usize>, rng: &mut Rng) -> usize {
    let nodes = graph.nodes();
    let mut strength = vec![0f64; nodes];
    let mut members = vec![0usize; nodes];
    // How many of a community's nodes have a class, and which.
    let mut classes: Vec<(usize, Option<u32>)> = vec![(0, None); nodes];
    for (node, &own) in community.iter().enumerate() {
        strength[own] += graph.strength[node];
        members[own] += 1;
        if graph.class[node].is_some() {
            classes[own] = (classes[own].0 + 1, graph.class[node]);
        }
    }
    let mut free: Vec<usize> = (0..nodes).rev().filter(|&own| members[own] == 0).collect();
    let mut queue: VecDeque<usize> = rng.sample(nodes, nodes).into();
    let mut queued = vec![true; nodes];
    let mut sums = Sums::new(nodes);
    while let Some(node) = queue.pop_front() {
        queued[node] = false;
        let (own, class) = (community[node], graph.class[node]);
        graph
            .edges(node)
            .for_each(|(other, weight)| sums.add(community[other], weight));
        let strength_here = graph.strength[node];
        let gain = |weight: f64, others: f64| weight - price.of(strength_here, others);
        let mut best = (own, gain(sums.get(own), strength[own] - strength_here));
        if members[own] > 1 && best.1 < 0.0 {
            // A community of its own costs nothing.
            best = (usize::MAX, 0.0);
        }
        for (other, weight) in sums.drain() {
            let apart = class.is_some() && classes[other].0 > 0 && classes[other].1 != class;
            if other == own || apart {
                continue;
            }
            let value = gain(weight, strength[other]);
            if value > best.1 + 1e-12 {
                best = (other, value);
            }
        }
        if best.0 == own {
            continue;
        }
        let target = if best.0 == usize::MAX {
            free.pop().unwrap_or(own)
        } else {
            best.0
        };
        strength[own] -= strength_here;
        strength[target] += strength_here;
        members[own] -= 1;
        members[target] += 1;
        if members[own] == 0 {
            free.push(own);
        }
        if class.is_some() {
            classes[own].0 -= 1;
            classes[target] = (classes[target].0 + 1, class);
        }
        community[node] = target;
        for (other, _) in graph.edges(node) {
            if community[other] != target && !queued[other] {
                queued[other] = true;
                queue.push_back(other);
            }
        }
    }
    let (renumbered, count) = canonical(community);
    *community = renumbered;
    count
}

/// Parts of communities that are well connected inside, and how many there are.
fn refine(graph: &Graph, price: &ExpectedWeight, community: &[usize], rng: &mut Rng) -> (Vec<usize>, usize) {
    let nodes = graph.nodes();
    let count = community.iter().max().map_or(0, |&last| last + 1);
    let mut whole = vec![0f64; count];
    for (node, &own) in community.iter().enumerate() {
        whole[own] += graph.strength[node];
    }
    let mut part: Vec<usize> = (0..nodes).collect();
    let mut strength = graph.strength.clone();
    let mut members = vec![1usize; nodes];
    // The weight of the edges between a part and the rest of its community.
    let mut outward: Vec<f64> = (0..nodes)
        .map(|node| {
            let within = graph
                .edges(node)
                .filter(|&(other, _)| community[other] == community[node]);
            within.map(|(_, weight)| weight).sum()
        })
        .collect();
    let mut sums = Sums::new(nodes);
    let mut choices: Vec<(usize, f64)> = Vec::new();
    for node in rng.sample(nodes, nodes) {
        let (own, strength_here) = (community[node], graph.strength[node]);
        let well = |outward: f64, strength: f64| outward >= price.of(strength, whole[own] - strength);
        if members[part[node]] > 1 || !well(outward[node], strength_here) {
            continue;
        }
        let within = graph.edges(node).filter(|&(other, _)| community[other] == own);
        within.for_each(|(other, weight)| sums.add(part[other], weight));
        choices.clear();
        choices.push((node, 0.0));
        let mut best = 0f64;
        let mut weights = Vec::new();
        for (other, weight) in sums.drain() {
            let gain = weight - price.of(strength_here, strength[other]);
            if other != node && gain >= 0.0 && well(outward[other], strength[other]) {
                choices.push((other, gain));
                weights.push((other, weight));
                best = best.max(gain);
            }
        }
        let chance = |gain: f64| ((gain - best) / RANDOMNESS).exp();
        let mut left = rng.unit() * choices.iter().map(|choice| chance(choice.1)).sum::<f64>();
        let chosen = choices.iter().find(|choice| {
            left -= chance(choice.1);
            left < 0.0
        });
        let target = chosen.map_or(node, |choice| choice.0);
        if target == node {
            continue;
        }
        let shared = weights
            .iter()
            .find(|&&(other, _)| other == target)
            .map_or(0.0, |&(_, weight)| weight);
        outward[target] += outward[node] - 2.0 * shared;
        strength[target] += strength_here;
        members[target] += 1;
        members[node] = 0;
        part[node] = target;
    }
    canonical(&part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modularity of some communities at a resolution.
    fn modularity(graph: &Graph, community: &[usize], resolution: f64) -> f64 {
        let total = graph.total();
        if total == 0.0 {
            return 0.0;
        }
        let count = community.iter().max().map_or(0, |&last| last + 1);
        let (mut inside, mut strength) = (vec![0f64; count], vec![0f64; count]);
        for node in 0..graph.nodes() {
            let own = community[node];
            inside[own] += graph.inside[node];
            strength[own] += graph.strength[node];
            let within = graph.edges(node).filter(|&(other, _)| community[other] == own);
            inside[own] += within.map(|(_, weight)| weight).sum::<f64>();
        }
        let of = |(inside, strength): (&f64, &f64)| inside / total - resolution * (strength / total).powi(2);
        inside.iter().zip(&strength).map(of).sum()
    }

    fn graph(nodes: usize, edges: &[(usize, usize, f32)], class: Vec<Option<u32>>) -> Graph {
        let mut both = vec![Vec::new(); nodes];
        for &(a, b, weight) in edges {
            both[a].push((b as u32, weight));
            both[b].push((a as u32, weight));
        }
        Graph::new(both, class)
    }

    fn random(nodes: usize, density: f64, seed: u64) -> Graph {
        let mut rng = Rng::new(seed, &[nodes as u64]);
        let mut edges = Vec::new();
        for a in 0..nodes {
            for b in 0..a {
                if rng.unit() < density {
                    edges.push((a, b, 0.1 + rng.unit() as f32));
                }
            }
        }
        graph(nodes, &edges, vec![None; nodes])
    }

    /// Every way to divide some nodes.
    fn partitions(nodes: usize) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for _ in 0..nodes {
            all = all
                .into_iter()
                .flat_map(|partition: Vec<usize>| {
                    let next = partition.iter().max().map_or(0, |&last| last + 1);
                    (0..=next).map(move |own| [&*partition, &[own]].concat())
                })
                .collect();
        }
        all
    }

    #[test]
    fn on_small_graphs_the_best_of_all_divisions_is_found() {
        let mut missed = 0;
        for seed in 0..60 {
            let graph = random(7, 0.5, seed);
            let resolution = 0.5 + 0.25 * (seed % 5) as f64;
            let best = partitions(7)
                .iter()
                .map(|division| modularity(&graph, division, resolution))
                .fold(f64::NEG_INFINITY, f64::max);
            let found = modularity(&graph, &leiden(&graph, resolution, seed), resolution);
            assert!(
                found <= best + 1e-9 && found > best - 0.05,
                "{found} for {best}, seed {seed}"
            );
            missed += usize::from(found < best - 1e-9);
        }
        assert!(missed <= 6, "{missed} of 60");
    }

    #[test]
    fn no_node_gains_by_moving_and_communities_hang_together() {
        for seed in 0..20 {
            let graph = random(60, 0.08, seed);
            let found = leiden(&graph, 1.3, 0);
            let value = modularity(&graph, &found, 1.3);
            let count = found.iter().max().unwrap() + 1;
            for node in 0..60 {
                for target in 0..=count {
                    let mut moved = found.clone();
                    moved[node] = target;
                    assert!(
                        modularity(&graph, &moved, 1.3) <= value + 1e-9,
                        "node {node}, seed {seed}"
                    );
                }
            }
            for own in 0..count {
                let members: Vec<usize> = (0..60).filter(|&node| found[node] == own).collect();
                let mut seen = vec![members[0]];
                let mut at = 0;
                while at < seen.len() {
                    let next: Vec<usize> = graph.edges(seen[at]).map(|edge| edge.0).collect();
                    next.into_iter().filter(|&node| found[node] == own).for_each(|node| {
                        if !seen.contains(&node) {
                            seen.push(node);
                        }
                    });
                    at += 1;
                }
                assert_eq!(seen.len(), members.len());
            }
        }
    }

    #[test]
    fn nodes_of_two_classes_are_never_together() {
        // All are tied to all, so nothing else keeps them apart.
        let edges: Vec<(usize, usize, f32)> = (0..12).flat_map(|a| (0..a).map(move |b| (a, b, 1.0))).collect();
        let mut class = vec![None; 12];
        (class[0], class[1], class[5]) = (Some(0), Some(1), Some(0));
        assert_eq!(leiden(&graph(12, &edges, vec![None; 12]), 1.0, 0), [0; 12]);
        for seed in 0..10 {
            let found = leiden(&graph(12, &edges, class.clone()), 1.0, seed);
            assert!(found[0] != found[1] && found[1] != found[5], "{found:?}");
        }
    }

    #[test]
    fn nothing_and_nobody() {
        assert_eq!(leiden(&graph(0, &[], Vec::new()), 1.0, 0), [0; 0]);
        assert_eq!(leiden(&graph(3, &[], vec![None; 3]), 1.0, 0), [0, 1, 2]);
    }
}
