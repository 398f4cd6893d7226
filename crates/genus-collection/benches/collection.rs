//! What a collection costs as it grows: how fast items come in, everything is sorted anew and small things are done, the size of the
//! database beside that of the features, and the memory.
//!
//! `GENUS_ITEMS=1000,10000,100000,1000000 cargo bench -p genus-collection`

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Collection, Items, Level};

const DIM: usize = 1280;
const CLASSES: usize = 100;
/// Items that are added at a time.
const BLOCK: usize = 20_000;

/// Items of a hundred directions with noise around them.
struct Source {
    state: u64,
    means: Vec<f32>,
    next: usize,
}

impl Source {
    fn new() -> Self {
        let mut source = Self {
            state: 1,
            means: Vec::new(),
            next: 0,
        };
        source.means = (0..CLASSES * DIM).map(|_| source.noise()).collect();
        source
    }

    fn noise(&mut self) -> f32 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn block(&mut self, count: usize) -> Table {
        let mut values = Vec::with_capacity(count * DIM);
        for at in self.next..self.next + count {
            for column in 0..DIM {
                let mean = self.means[at % CLASSES * DIM + column];
                values.push(mean + 1.5 * self.noise());
            }
        }
        let ids = (self.next..self.next + count).map(|at| at.to_string()).collect();
        self.next += count;
        Table {
            ids,
            labels: vec![None; count],
            features: Features::new(DIM, values).expect("finite rows"),
        }
    }
}

/// The most memory that this process has had, in MB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes / 1024)
}

fn sizes() -> Vec<usize> {
    let asked = std::env::var("GENUS_ITEMS").unwrap_or_else(|_| "1000,10000".to_owned());
    asked.split(',').filter_map(|size| size.trim().parse().ok()).collect()
}

fn collection(c: &mut Criterion) {
    let mut quick = c.benchmark_group("collection");
    for size in sizes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c");
        let mut collection = Collection::create(&path, "bench").expect("a new collection");
        let mut source = Source::new();
        let (mut first, mut later) = (0.0, 0.0);
        let mut added = 0;
        while added < size {
            let block = source.block(BLOCK.min(size - added));
            let count = block.len();
            let start = Instant::now();
            collection.add(block, &AddOptions::default(), &Silent).expect("items");
            let took = start.elapsed().as_secs_f64();
            if added == 0 {
                first = took
            } else {
                later += took
            }
            added += count;
        }
        let start = Instant::now();
        collection.refresh(Level::AsFound, &Silent).expect("sorted anew");
        let refresh = start.elapsed().as_secs_f64();
        let file = std::fs::metadata(path.join("collection.db")).map_or(0, |found| found.len());
        let beside = file as f64 / (size * DIM * 2) as f64;
        println!(
            "{size} items: first {} in {first:.1} s, the others in {later:.1} s, refresh in {refresh:.1} s, database {beside:.2} x the features, {} MB of memory",
            size.min(BLOCK),
            most_memory()
        );
        let group = collection.groups().expect("groups")[0].id;
        let other = collection.groups().expect("groups")[1].id;
        let id = |name: &str| BenchmarkId::new(name, size);
        quick.bench_function(id("groups"), |b| {
            b.iter(|| Collection::open(&path).and_then(|read| read.groups()).expect("groups"));
        });
        quick.bench_function(id("show"), |b| {
            b.iter(|| black_box(collection.items(Items::Of(group), None, 100)).expect("items"));
        });
        quick.bench_function(id("name and undo"), |b| {
            b.iter(|| {
                let name = "Herring gull".to_owned();
                collection.act(&Action::Name { group, name }).expect("named");
                collection.undo().expect("undone")
            });
        });
        quick.bench_function(id("merge and undo"), |b| {
            b.iter(|| {
                let groups = vec![group, other];
                collection
                    .act(&Action::Merge {
                        groups,
                        into: Some(group),
                    })
                    .expect("merged");
                collection.undo().expect("undone")
            });
        });
    }
    quick.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = collection
}
criterion_main!(benches);
