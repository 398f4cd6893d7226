//! What several test files share: random tasks, and the plainest form of what the core computes.
#![allow(dead_code)] // Every test file uses a part of it.

use genus_core::{Category, Discovery, Features, Support, Task};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// SplitMix64: small, and the same numbers everywhere.
#[derive(Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.unit() * bound as f64) as usize
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Runs a property over the same inputs every time.
pub(crate) fn for_all<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_250_508),
        ..Config::default()
    };
    if let Err(error) = TestRunner::new(config).run(&strategy, property) {
        panic!("{error}");
    }
}

/// How the points of a random task lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cloud {
    /// Gaussian classes of this spread around centres of spread one.
    Blobs(f64),
    /// Uniform in a cube around the origin.
    Uniform,
    /// Uniform in the positive orthant, where all similarities are large.
    Positive,
    /// Gaussian classes that share a large common component, as the features of networks do.
    Shifted(f64),
}

/// A random task that is small to print.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) cloud: Cloud,
    pub(crate) way: usize,
    pub(crate) shot: usize,
    pub(crate) new: usize,
    pub(crate) queries: usize,
    pub(crate) dim: usize,
    pub(crate) seed: u64,
}

pub(crate) fn clouds() -> impl Strategy<Value = Cloud> {
    prop_oneof![
        Just(Cloud::Blobs(0.05)),
        Just(Cloud::Blobs(0.4)),
        Just(Cloud::Blobs(1.0)),
        Just(Cloud::Uniform),
        Just(Cloud::Positive),
        Just(Cloud::Shifted(0.3)),
    ]
}

/// Tasks of 2 to 6 known classes with 1 to 5 examples, up to 40 queries and 2 to 40 features.
pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    (
        clouds(),
        2usize..=6,
        1usize..=5,
        0usize..=4,
        1usize..=40,
        2usize..=40,
        0u64..1 << 32,
    )
        .prop_map(|(cloud, way, shot, new, queries, dim, seed)| Recipe {
            cloud,
            way,
            shot,
            new,
            queries,
            dim,
            seed,
        })
}

/// The rows of a task before anything is normalised.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) support: Vec<Vec<f32>>,
    pub(crate) labels: Vec<String>,
    pub(crate) queries: Vec<Vec<f32>>,
    /// The class that every query was drawn from; those below the number of known classes are known.
    pub(crate) truth: Vec<usize>,
}

impl Recipe {
    pub(crate) fn data(&self) -> Data {
        let mut rng = Rng::new(self.seed);
        let classes = self.way + self.new;
        let centres: Vec<Vec<f64>> = (0..classes)
            .map(|_| (0..self.dim).map(|_| rng.normal()).collect())
            .collect();
        let row = |class: usize, rng: &mut Rng| -> Vec<f32> {
            (0..self.dim)
                .map(|d| match self.cloud {
                    Cloud::Blobs(spread) => centres[class][d] + spread * rng.normal(),
                    Cloud::Uniform => 2.0 * rng.unit() - 1.0,
                    Cloud::Positive => rng.unit(),
                    Cloud::Shifted(spread) => 1.5 + centres[class][d] + spread * rng.normal(),
                })
                .map(|v| v as f32)
                .collect()
        };
        let mut support = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..self.shot {
            for class in 0..self.way {
                support.push(row(class, &mut rng));
                labels.push(format!("class {class}"));
            }
        }
        let truth: Vec<usize> = (0..self.queries).map(|_| rng.below(classes)).collect();
        let queries = truth.iter().map(|&class| row(class, &mut rng)).collect();
        Data {
            support,
            labels,
            queries,
            truth,
        }
    }

    pub(crate) fn task(&self) -> Task {
        self.data().task()
    }
}

impl Data {
    pub(crate) fn support(&self) -> Support {
        Support::new(Features::from_rows(&self.support).unwrap(), &self.labels).unwrap()
    }

    pub(crate) fn task(&self) -> Task {
        Task::new(&self.support(), Features::from_rows(&self.queries).unwrap()).unwrap()
    }
}

/// A task of one example a class.
pub(crate) fn one_shot_task<R: AsRef<[f32]>, S: AsRef<[f32]>>(prototypes: &[R], queries: &[S]) -> Task {
    let labels: Vec<String> = (0..prototypes.len()).map(|class| format!("class {class}")).collect();
    let support = Support::new(Features::from_rows(prototypes).unwrap(), &labels).unwrap();
    Task::new(&support, Features::from_rows(queries).unwrap()).unwrap()
}

/// The points of a task in double precision.
pub(crate) fn points(task: &Task) -> Vec<Vec<f64>> {
    task.points()
        .iter()
        .map(|row| row.iter().map(|&v| f64::from(v)).collect())
        .collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub(crate) fn length(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

pub(crate) fn mean<'a>(rows: impl IntoIterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    let mut rows = rows.into_iter();
    let mut sum = rows.next().expect("the mean of something").clone();
    let mut count = 1.0;
    for row in rows {
        count += 1.0;
        sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
    }
    sum.iter_mut().for_each(|s| *s /= count);
    sum
}

/// The same partition with its clusters numbered in the order of their first point.
pub(crate) fn numbered(clusters: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    clusters
        .iter()
        .map(|cluster| {
            seen.iter().position(|other| other == cluster).unwrap_or_else(|| {
                seen.push(*cluster);
                seen.len() - 1
            })
        })
        .collect()
}

/// The cluster of every point, prototypes first.
pub(crate) fn partition(discovery: &Discovery) -> Vec<usize> {
    numbered(&[discovery.prototype_clusters(), discovery.query_clusters()].concat())
}

/// What the clusters of the points of a task mean: the class of the (nearest) prototype in the cluster, or else a new
/// group, the largest first and of equal ones that of the earlier query.
pub(crate) fn categories(points: &[Vec<f64>], known: usize, clusters: &[usize]) -> Vec<Category> {
    let queries = known..points.len();
    let held = |cluster: usize| (0..known).filter(move |&class| clusters[class] == cluster);
    let mut groups: Vec<usize> = Vec::new();
    for query in queries.clone() {
        if held(clusters[query]).next().is_none() && !groups.contains(&clusters[query]) {
            groups.push(clusters[query]);
        }
    }
    let size = |cluster: usize| queries.clone().filter(|&query| clusters[query] == cluster).count();
    groups.sort_by_key(|&cluster| std::cmp::Reverse(size(cluster)));
    queries
        .clone()
        .map(|query| {
            let cosine = |class: usize| dot(&points[query], &points[class]);
            let nearest = held(clusters[query]).reduce(|a, b| if cosine(b) > cosine(a) { b } else { a });
            match nearest {
                Some(class) => Category::Known(class),
                None => Category::Novel(groups.iter().position(|&group| group == clusters[query]).unwrap()),
            }
        })
        .collect()
}
