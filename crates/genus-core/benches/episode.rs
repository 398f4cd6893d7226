//! One episode of the paper's shape, 5-way 5-shot 5-new with 15 queries per class, at 768 features.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use genus_core::methods::{BoostBlock, Gcd, Proto, RankStat, Shc, Ukc};
use genus_core::{Discover, Features, RealTime, Rule, Support, Task};

const DIM: usize = 768;

/// Ten directions with noise around them, the first five known.
fn parts() -> (Support, Features) {
    let mut state = 1u64;
    let mut noise = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let means: Vec<f32> = (0..10 * DIM).map(|_| noise()).collect();
    let mut item = |class: usize| -> Vec<f32> {
        means[class * DIM..][..DIM]
            .iter()
            .map(|mean| mean + 1.5 * noise())
            .collect()
    };
    let labels: Vec<String> = (0..25).map(|i| (i % 5).to_string()).collect();
    let support: Vec<Vec<f32>> = (0..25).map(|i| item(i % 5)).collect();
    let queries: Vec<Vec<f32>> = (0..150).map(|i| item(i % 10)).collect();
    let features = |rows: Vec<Vec<f32>>| Features::from_rows(rows).expect("finite rows of one length");
    (
        Support::new(features(support), &labels).expect("one label a row"),
        features(queries),
    )
}

fn episode(c: &mut Criterion) {
    let (support, queries) = parts();
    let task = || Task::new(&support, queries.clone()).expect("a task");
    let mut group = c.benchmark_group("episode");
    group.bench_function("task", |b| b.iter(task));
    group.bench_function("task, gram and shc", |b| b.iter(|| Shc::default().discover(&task())));
    let prepared = task();
    let methods: [(&str, &dyn Discover); 5] = [
        ("proto", &Proto),
        ("rankstat", &RankStat::default()),
        ("gcd", &Gcd::default()),
        ("shc", &Shc::default()),
        ("ukc", &Ukc::default()),
    ];
    for (name, method) in methods {
        group.bench_function(name, |b| b.iter(|| method.discover(black_box(&prepared))));
    }
    let rule = Rule::Nearest {
        boost: 1.0,
        block: BoostBlock::Way,
        min_similarity: None,
    };
    let real_time = RealTime::new(&prepared, rule).expect("five classes");
    let query = queries.row(7);
    group.bench_function("real time, one query", |b| b.iter(|| real_time.judge(black_box(query))));
}

criterion_group!(benches, episode);
criterion_main!(benches);
