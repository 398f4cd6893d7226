//! The same input gives the same bits: at any number of threads, and whatever ran before.

mod common;

use common::{Cloud, Recipe};
use genus_core::methods::Method;
use genus_core::{CentreNorm, Discover, Discovery, Subset, Task, TwoStep};

const SPECS: [&str; 8] = [
    "proto",
    "rankstat",
    "gcd:k-max=9:k-restarts=2:restarts=2",
    "gcd:k=dtc:k-max=7:restarts=1",
    "shc:attach=cosine",
    "ukc:restarts=3",
    "calibrated",
    "calibrated:source=prior",
];

/// Tasks of different size: so small that nothing is shared among threads, with a matrix of all products so large that
/// it is, and with so many points that none is kept.
fn recipes() -> [Recipe; 3] {
    let recipe = |queries, dim| Recipe {
        cloud: Cloud::Blobs(0.5),
        way: 4,
        shot: 3,
        new: 3,
        queries,
        dim,
        seed: 17,
    };
    [recipe(60, 9), recipe(1900, 20), recipe(2200, 6)]
}

fn methods() -> Vec<(String, Box<dyn Discover + Send>)> {
    let mut methods: Vec<(String, Box<dyn Discover + Send>)> = Vec::new();
    for spec in SPECS {
        methods.push((spec.to_owned(), Box::new(Method::parse(spec, 5).unwrap())));
    }
    for (spec, refine) in [("shc", 0), ("ukc:restarts=2", 2), ("calibrated", 0), ("calibrated", 2)] {
        let two_step = TwoStep {
            method: Method::parse(spec, 5).unwrap(),
            subset: Subset::Random { size: 200, seed: 5 },
            centre_norm: CentreNorm::Cosine,
            refine,
        };
        methods.push((format!("{spec} in two steps"), Box::new(two_step)));
    }
    methods
}

/// Everything a discovery says, to the bit.
fn bits(discovery: &Discovery) -> (Vec<u32>, String) {
    let scores = discovery
        .scores()
        .iter()
        .flat_map(|score| [score.similarity, score.margin, score.probability.unwrap_or(-1.0)]);
    let numbers = scores
        .chain(discovery.centres().values().iter().copied())
        .map(f32::to_bits)
        .collect();
    let rest = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        discovery.categories(),
        discovery.items(),
        discovery.stop(),
        discovery.prototype_clusters(),
        discovery.query_clusters()
    );
    (numbers, rest)
}

fn in_pool<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
        .install(run)
}

#[test]
fn threads_change_nothing() {
    for recipe in recipes() {
        let data = recipe.data();
        let run = |threads: usize| -> Vec<(Vec<u32>, String)> {
            in_pool(threads, || {
                let task = data.task();
                methods()
                    .iter()
                    .map(|(_, method)| bits(&method.discover(&task).unwrap()))
                    .collect()
            })
        };
        let one = run(1);
        for threads in [2, 3] {
            for ((name, _), (one, more)) in methods().iter().zip(one.iter().zip(run(threads))) {
                assert!(
                    *one == more,
                    "{name} with {threads} threads and {} queries",
                    recipe.queries
                );
            }
        }
    }
}

#[test]
fn what_ran_before_changes_nothing() {
    for recipe in recipes() {
        let data = recipe.data();
        let shared: Task = data.task();
        let mut methods = methods();
        let alone: Vec<_> = methods
            .iter()
            .map(|(_, method)| bits(&method.discover(&data.task()).unwrap()))
            .collect();
        for (at, (name, method)) in methods.iter().enumerate() {
            assert!(alone[at] == bits(&method.discover(&shared).unwrap()), "{name}");
        }
        methods.reverse();
        let shared = data.task();
        for ((name, method), alone) in methods.iter().zip(alone.iter().rev()) {
            assert!(
                *alone == bits(&method.discover(&shared).unwrap()),
                "{name} in reverse order"
            );
            assert!(*alone == bits(&method.discover(&shared).unwrap()), "{name} once more");
        }
    }
}

#[test]
fn the_reference_linkage_is_deterministic_too() {
    let data = Recipe {
        queries: 150,
        ..recipes()[0].clone()
    }
    .data();
    let run = |threads| {
        in_pool(threads, || {
            bits(
                &Method::parse("shc:linkage=sequential", 0)
                    .unwrap()
                    .discover(&data.task())
                    .unwrap(),
            )
        })
    };
    assert_eq!(run(1), run(3));
}
