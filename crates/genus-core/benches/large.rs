//! What grows with the pile: clustering thousands of points at once, assigning the rest.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use genus_core::methods::{Shc, Ukc};
use genus_core::{Discover, Features, Kind, Support, Task, Taxonomy, TaxonomyEntry};

const DIM: usize = 768;

fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Fifty directions with noise around them, ten of them known.
fn task(points: usize) -> Task {
    let means = noise(50 * DIM, 1);
    let spread = |count: usize, classes: usize, seed: u64| {
        let mut values = noise(count * DIM, seed);
        for (i, row) in values.chunks_exact_mut(DIM).enumerate() {
            let mean = &means[(i % classes) * DIM..][..DIM];
            row.iter_mut().zip(mean).for_each(|(v, m)| *v = m + 1.2 * *v);
        }
        Features::new(DIM, values).expect("finite")
    };
    let labels: Vec<String> = (0..50).map(|i| (i % 10).to_string()).collect();
    let support = Support::new(spread(50, 10, 2), &labels).expect("one label a row");
    Task::new(&support, spread(points, 50, 3)).expect("a task")
}

fn cluster(c: &mut Criterion) {
    let mut group = c.benchmark_group("cluster");
    group.sample_size(10);
    for points in [1_000, 5_000] {
        let task = task(points);
        group.bench_function(BenchmarkId::new("shc", points), |b| {
            b.iter(|| Shc::default().discover(&task))
        });
        group.bench_function(BenchmarkId::new("ukc", points), |b| {
            b.iter(|| Ukc::default().discover(&task))
        });
    }
}

fn assign(c: &mut Criterion) {
    const ROWS: usize = 50_000;
    let items = Features::new(DIM, noise(ROWS * DIM, 4)).expect("finite");
    let mut group = c.benchmark_group("assign");
    group.sample_size(10);
    for centres in [10, 100, 1000] {
        let entries = (0..centres)
            .map(|number| TaxonomyEntry {
                name: number.to_string(),
                kind: Kind::Known,
                items: 0,
            })
            .collect();
        let centres_matrix = Features::new(DIM, noise(centres * DIM, 5)).expect("finite");
        let taxonomy = Taxonomy::from_parts(entries, centres_matrix).expect("one centre a category");
        group.throughput(Throughput::Elements(ROWS as u64));
        group.bench_function(BenchmarkId::from_parameter(centres), |b| {
            b.iter(|| taxonomy.assign(black_box(&items)))
        });
    }
}

criterion_group!(benches, cluster, assign);
criterion_main!(benches);
