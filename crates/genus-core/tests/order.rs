//! The same items in any order are sorted in the same way.

use std::collections::{BTreeMap, BTreeSet};

use genus_core::methods::Method;
use genus_core::rng::Rng;
use genus_core::{Category, Discover, Features, Support, Task};

/// Labelled rows and rows of a pile.
struct Rows {
    examples: Vec<(String, Vec<f32>)>,
    pile: Vec<Vec<f32>>,
}

/// Items around some directions; the first few classes have examples.
fn rows(seed: u64, dim: usize, noise: f64) -> Rows {
    pile_of(70, seed, dim, noise)
}

/// The same with another number of items.
fn pile_of(count: usize, seed: u64, dim: usize, noise: f64) -> Rows {
    let mut rng = Rng::new(seed, &[1]);
    let centres: Vec<Vec<f64>> = (0..7).map(|_| (0..dim).map(|_| rng.unit() - 0.5).collect()).collect();
    let mut around =
        |centre: &[f64]| -> Vec<f32> { centre.iter().map(|v| (v + noise * (rng.unit() - 0.5)) as f32).collect() };
    let examples = (0..20)
        .map(|at| (format!("class {}", at % 4), around(&centres[at % 4])))
        .collect();
    let pile = (0..count).map(|at| around(&centres[at % 7])).collect();
    Rows { examples, pile }
}

/// Rows of a few small whole numbers, many of which are alike or just as far from others.
fn tied_rows(seed: u64) -> Rows {
    let mut rng = Rng::new(seed, &[2]);
    let mut row = |class: usize| -> Vec<f32> {
        let mut row: Vec<f32> = (0..4).map(|_| rng.below(2) as f32).collect();
        row[class % 4] += 2.0;
        row
    };
    let examples = (0..12).map(|at| (format!("class {}", at % 3), row(at % 3))).collect();
    let pile = (0..40).map(&mut row).collect();
    Rows { examples, pile }
}

fn shuffled<T: Clone>(items: &[T], rng: &mut Rng) -> Vec<T> {
    let order = rng.sample(items.len(), items.len());
    order.into_iter().map(|at| items[at].clone()).collect()
}

/// The name of a known class, and the rows in it with how often they are there.
type Found = (Option<String>, BTreeMap<Vec<u32>, usize>);

/// Every category as the rows in it, by the name of the class where it is a known one. Rows of the same content are the same.
fn found(method: &str, rows: &Rows) -> BTreeSet<Found> {
    let (labels, features): (Vec<String>, Vec<Vec<f32>>) = rows.examples.iter().cloned().unzip();
    let support = Support::new(Features::from_rows(features).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(rows.pile.clone()).unwrap()).unwrap();
    let discovery = Method::parse(method, 3).unwrap().discover(&task).unwrap();
    let mut categories: BTreeMap<usize, BTreeMap<Vec<u32>, usize>> = BTreeMap::new();
    for (category, row) in discovery.categories().iter().zip(&rows.pile) {
        let number = match *category {
            Category::Known(class) => class,
            Category::Novel(group) => task.known() + group,
        };
        let content: Vec<u32> = row.iter().map(|value| value.to_bits()).collect();
        *categories.entry(number).or_default().entry(content).or_default() += 1;
    }
    // What is said of the categories goes with them.
    for (&number, members) in &categories {
        assert_eq!(discovery.items()[number], members.values().sum::<usize>());
    }
    let name = |number: usize| task.classes().get(number).cloned();
    categories
        .into_iter()
        .map(|(number, members)| (name(number), members))
        .collect()
}

const METHODS: [&str; 9] = [
    "proto",
    "rankstat",
    "shc",
    "shc:linkage=sequential",
    "ukc",
    "ukc:m=mean-all",
    "gcd",
    "gcd:k=9",
    "calibrated:source=examples",
];

#[test]
fn the_order_of_rows_decides_nothing() {
    for seed in 0..12 {
        for rows in [rows(seed, 12, 0.5), rows(seed, 40, 0.8), tied_rows(seed)] {
            let expected: Vec<_> = METHODS.iter().map(|method| found(method, &rows)).collect();
            let mut rng = Rng::new(seed, &[3]);
            for _ in 0..3 {
                let shuffled = Rows {
                    examples: shuffled(&rows.examples, &mut rng),
                    pile: shuffled(&rows.pile, &mut rng),
                };
                for (method, expected) in METHODS.iter().zip(&expected) {
                    assert!(found(method, &shuffled) == *expected, "{method}, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn the_order_of_a_large_pile_with_copies_decides_nothing() {
    let mut rows = pile_of(600, 4, 24, 1.2);
    let copies: Vec<Vec<f32>> = rows.pile[..40].to_vec();
    rows.pile.extend(copies);
    let expected = found("calibrated:source=examples", &rows);
    let mut rng = Rng::new(9, &[]);
    for _ in 0..3 {
        let shuffled = Rows {
            examples: shuffled(&rows.examples, &mut rng),
            pile: shuffled(&rows.pile, &mut rng),
        };
        assert!(found("calibrated:source=examples", &shuffled) == expected);
    }
}

#[test]
fn scenes_stay_with_their_items() {
    let mut rows = pile_of(60, 6, 12, 1.2);
    rows.pile.push(rows.pile[3].clone());
    let of = |rows: &Rows| {
        let (labels, features): (Vec<String>, Vec<Vec<f32>>) = rows.examples.iter().cloned().unzip();
        let support = Support::new(Features::from_rows(features).unwrap(), &labels).unwrap();
        let task = Task::new(&support, Features::from_rows(rows.pile.clone()).unwrap()).unwrap();
        let method = Method::parse("calibrated:source=examples", 3).unwrap();
        method.discover(&task).unwrap().scenes().unwrap().of().to_vec()
    };
    let scenes = of(&rows);
    assert_eq!(scenes[3], scenes[60]);
    let mut turned = Rows {
        examples: rows.examples.clone(),
        pile: rows.pile.clone(),
    };
    turned.pile.reverse();
    let mut back = of(&turned);
    back.reverse();
    for a in 0..scenes.len() {
        for b in 0..a {
            assert_eq!(scenes[a] == scenes[b], back[a] == back[b], "{a} {b}");
        }
    }
}

/// Scores, clusters and centres come back to the rows that they are of.
#[test]
fn what_is_said_of_an_item_stays_with_it() {
    let rows = rows(5, 12, 0.5);
    let (labels, features): (Vec<String>, Vec<Vec<f32>>) = rows.examples.iter().cloned().unzip();
    let support = Support::new(Features::from_rows(features).unwrap(), &labels).unwrap();
    let task = Task::new(&support, Features::from_rows(rows.pile).unwrap()).unwrap();
    for method in ["shc", "ukc", "gcd"] {
        let discovery = Method::parse(method, 3).unwrap().discover(&task).unwrap();
        let known = discovery.known();
        let mut earlier = (usize::MAX, 0);
        for (query, (category, score)) in discovery.categories().iter().zip(discovery.scores()).enumerate() {
            let number = match *category {
                Category::Known(class) => class,
                Category::Novel(group) => known + group,
            };
            let row = task.points().row(known + query);
            let centre = discovery.centres().row(number);
            let cosine: f32 = row.iter().zip(centre).map(|(a, b)| a * b).sum();
            assert!((cosine - score.similarity).abs() < 1e-4, "{method} {query}");
        }
        // New groups go from large to small, and by their first item where they are as large.
        for group in known..discovery.items().len() {
            let first = discovery
                .categories()
                .iter()
                .position(|c| *c == Category::Novel(group - known));
            let now = (discovery.items()[group], first.unwrap());
            assert!(now.0 < earlier.0 || now.0 == earlier.0 && now.1 > earlier.1, "{method}");
            earlier = now;
        }
        let clusters: Vec<usize> = [discovery.prototype_clusters(), discovery.query_clusters()].concat();
        let mut next = 0;
        for &cluster in &clusters {
            assert!(cluster <= next, "{method}: numbered by their first point");
            next = next.max(cluster + 1);
        }
    }
}
