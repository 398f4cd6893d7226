//! Writes reports of made-up discoveries into a folder: what the browser tests open.
//!
//! `cargo run -p genus-report --example fixtures -- DIR`

use std::path::Path;

use genus_core::explain::{CategoryTree, confusable, nearest_categories, rivals, ties};
use genus_core::rng::Rng;
use genus_core::{Features, Kind, MergeTree, Score};
use genus_report::{
    Asked, Category, Communities, Example, Item, NeighbourTies, Pictures, Provenance, Report, Slot, Truth, Why,
};
use image::{ImageEncoder as _, codecs::png::PngEncoder};

/// What a made-up discovery is like.
struct Shape {
    items: usize,
    known: usize,
    new: usize,
    total: u64,
    pictures: bool,
    texts: bool,
    truth: bool,
    evil: bool,
    probable: bool,
    scenes: bool,
    /// By neighbours and not by a tree; `Some(false)` when the ties were not looked for.
    communities: Option<bool>,
}

const PLAIN: Shape = Shape {
    items: 10,
    known: 2,
    new: 1,
    total: 10,
    pictures: false,
    texts: false,
    truth: false,
    evil: false,
    probable: false,
    scenes: false,
    communities: None,
};

/// Names that would break or script a careless page.
const EVIL: [&str; 10] = [
    "</script><script>window.hacked = 1</script>.jpg",
    "<img src=x onerror=\"window.hacked = 2\">.png",
    "\"quoted\" and 'single'.jpg",
    "🐦 bird & \u{2028}friends\u{2029} &lt;b&gt;.webp",
    "\u{202e}gnp.exe\u{202c} turned",
    "עברית שם קובץ.jpg",
    "العربية.png",
    "{{title}} ${window.hacked=3} `x`",
    "<!-- comment --><![CDATA[ x ]]>",
    "javascript:window.hacked=4//\\u003cscript\\u003e",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let reports = [
        (
            "ten",
            Shape {
                evil: true,
                texts: true,
                ..PLAIN
            },
        ),
        (
            "thousand",
            Shape {
                items: 1_000,
                known: 5,
                new: 9,
                total: 1_000,
                pictures: true,
                truth: true,
                evil: true,
                probable: true,
                scenes: true,
                communities: Some(true),
                ..PLAIN
            },
        ),
        (
            "twenty-thousand",
            Shape {
                items: 20_000,
                known: 20,
                new: 60,
                total: 20_000,
                pictures: true,
                probable: true,
                ..PLAIN
            },
        ),
        (
            "nothing-new",
            Shape {
                items: 40,
                known: 3,
                new: 0,
                total: 40,
                ..PLAIN
            },
        ),
        (
            "sample",
            Shape {
                items: 500,
                known: 4,
                new: 8,
                total: 1_234_567,
                probable: true,
                communities: Some(false),
                ..PLAIN
            },
        ),
    ];
    for (name, shape) in reports {
        std::fs::write(folder.join(format!("{name}.html")), report(&shape)?.html())?;
    }
    Ok(())
}

fn report(shape: &Shape) -> Result<Report, Box<dyn std::error::Error>> {
    let mut rng = Rng::new(7, &[shape.items as u64]);
    let count = shape.known + shape.new;
    let dim = 16;
    let mut normal = || (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
    let mut middles: Vec<f64> = (0..count * dim).map(|_| normal()).collect();
    if shape.communities.is_some() {
        // Two that are nearly one.
        let last = (count - 1) * dim;
        (last..count * dim).for_each(|at| middles[at] = middles[at - dim] + 0.3 * middles[at]);
    }
    let planes: Vec<[f64; 2]> = (0..count).map(|_| [9.0 * normal(), 9.0 * normal()]).collect();
    let around = |category: usize, normal: &mut dyn FnMut() -> f64| -> Vec<f32> {
        let middle = &middles[category * dim..][..dim];
        middle.iter().map(|m| (m + 0.45 * normal()) as f32).collect()
    };
    // Large and small categories, as there are in life.
    let category_of = |item: usize| ((item as f64 / shape.items as f64).powf(1.4) * count as f64) as usize;
    let own: Vec<usize> = (0..shape.items).map(category_of).collect();
    let rows: Vec<Vec<f32>> = own.iter().map(|&category| around(category, &mut normal)).collect();
    let features = Features::from_rows(rows)?.into_unit()?;
    let centres = Features::new(dim, middles.iter().map(|&m| m as f32).collect())?.into_unit()?;
    let cosine = |item: usize, category: usize| -> f32 {
        let pairs = features.row(item).iter().zip(centres.row(category));
        pairs.map(|(a, b)| a * b).sum()
    };
    let next = rivals(&features, &own, &centres);
    let classes: Vec<String> = (0..shape.known).map(|class| format!("Class {}", class + 1)).collect();
    // Some are in a category that is not theirs.
    let truths: Vec<Option<String>> = (0..shape.items)
        .map(|item| {
            let real = if item % 17 == 3 {
                next[item].unwrap_or(0)
            } else {
                own[item]
            };
            shape
                .truth
                .then(|| classes.get(real).cloned().unwrap_or_else(|| format!("Kind {real}")))
        })
        .collect();
    // Three of ten are frames of one scene.
    let mut scenes: Vec<usize> = (0..shape.items).collect();
    for at in (1..shape.items).filter(|at| [1, 2].contains(&(at % 10))) {
        if own[at] == own[at - 1] {
            scenes[at] = scenes[at - 1];
        }
    }
    let (truth, numbers) = Truth::judge(&classes, count, &own, &truths);
    let mut items: Vec<Item> = (0..shape.items)
        .map(|at| {
            let category = own[at];
            let similarity = cosine(at, category);
            let margin = similarity - next[at].map_or(0.0, |rival| cosine(at, rival));
            let probability = (1.0 / (1.0 + (-12.0 * (margin - 0.2)).exp())).clamp(0.0, 1.0);
            Item {
                id: match shape.evil && at < EVIL.len() {
                    true => EVIL[at].to_owned(),
                    false => format!("photos/2026/img_{at:05}.jpg"),
                },
                category,
                score: Score {
                    similarity,
                    margin,
                    probability: shape.probable.then_some(probability),
                    unsure: shape.probable && probability < 0.35,
                },
                rival: next[at],
                place: (shape.new > 0).then(|| [0, 1].map(|axis| (planes[category][axis] + 1.3 * normal()) as f32)),
                text: shape
                    .texts
                    .then(|| format!("What item {at} says: <b>{}</b>", EVIL[at % EVIL.len()])),
                picture: None,
                truth: numbers[at],
                scene: shape.scenes.then_some(scenes[at]),
                tied: None,
            }
        })
        .collect();
    let examples = (0..shape.known * 5).map(|at| Example {
        id: format!("labelled/{}/{}", classes[at / 5], at % 5),
        class: at / 5,
        place: (shape.new > 0).then(|| planes[at / 5].map(|v| (v + normal()) as f32)),
        ..Example::default()
    });
    let examples: Vec<Example> = examples.collect();
    let unsure: Vec<u64> = (0..count)
        .map(|at| {
            items
                .iter()
                .filter(|item| item.category == at && item.score.unsure)
                .count() as u64
        })
        .collect();
    let categories: Vec<Category> = (0..count)
        .map(|at| Category {
            name: classes
                .get(at)
                .cloned()
                .unwrap_or_else(|| format!("new-{}", at + 1 - shape.known)),
            kind: if at < shape.known { Kind::Known } else { Kind::Novel },
            items: own.iter().filter(|&&category| category == at).count() as u64 * shape.total / shape.items as u64,
            unsure: unsure[at],
            // Where nothing is new there is a level above, and something was asked.
            parent: (shape.new == 0 && at > 0).then(|| "set <b>1</b>".to_owned()),
        })
        .collect();
    let margins: Vec<f32> = items.iter().map(|item| item.score.margin).collect();
    let found = ties(&features, &own, 10).filter(|_| shape.communities == Some(true));
    if let Some(found) = &found {
        for (item, ties) in items.iter_mut().zip(&found.points) {
            // The nearest example stands in for the last neighbour.
            let example = (item.category < shape.known).then_some(Slot::Example(5 * item.category));
            let nearest = ties.nearest.iter().take(2).map(|&at| Slot::Item(at)).chain(example);
            item.tied = Some(NeighbourTies {
                own: ties.own,
                nearest: nearest.collect(),
            });
        }
    }
    let why = Why {
        tree: shape.communities.is_none().then(|| {
            CategoryTree::of(
                if shape.probable {
                    MergeTree::Ward
                } else {
                    MergeTree::Average
                },
                &features,
                &own,
                &(0..count.min(48)).collect::<Vec<_>>(),
            )
        }),
        communities: shape.communities.map(|_| Communities {
            neighbours: 10,
            links: found.map(|found| found.links),
        }),
        cut: (!shape.probable).then_some(0.3),
        doubt: shape.probable.then_some(0.35),
        nearest: nearest_categories(&centres, 4),
        confusable: confusable(&margins, &own, &next),
    };
    let mut report = Report {
        title: "photos of <2026>".into(),
        things: ["photo".into(), "photos".into()],
        made: Provenance {
            method: match (shape.probable, shape.communities) {
                (true, Some(_)) => "calibrated",
                (true, None) => "calibrated:refine=0",
                (false, _) => "shc",
            }
            .into(),
            how: if shape.probable {
                "calibrated by the examples, 5 a class"
            } else {
                "shc, the next merge was at similarity 0.30"
            }
            .into(),
            encoder: Some("dino-vitb16".into()),
            seed: 7,
            seconds: 12.3,
            version: "0.1.0".into(),
        },
        categories,
        items,
        examples,
        projection: (shape.new > 0).then(|| "t-SNE".into()),
        why,
        truth: shape.truth.then_some(truth),
        history: Vec::new(),
        asked: match shape.new {
            0 => vec![
                Asked {
                    when: "2026-05-01 12:00".to_owned(),
                    question: "What is new-1?".to_owned(),
                    answer: None,
                },
                Asked {
                    when: "2026-05-01 11:00".to_owned(),
                    question: "Where does </td><b>x.jpg belong?".to_owned(),
                    answer: Some("Class 1".to_owned()),
                },
            ],
            _ => Vec::new(),
        },
    };
    if shape.pictures {
        let pictures = Pictures::choose(&report);
        let side = pictures.side() as u32 / 4;
        pictures.fill(&mut report, |report, slots| {
            slots
                .iter()
                .map(|slot| {
                    let (category, seed) = match *slot {
                        Slot::Example(at) => (report.examples[at].class, at),
                        Slot::Item(at) => (report.items[at].category, at + 1_000),
                    };
                    picture(category, seed as u64, side).map(Some)
                })
                .collect::<Result<_, image::ImageError>>()
        })?;
    }
    Ok(report)
}

/// A few soft blobs in colours of the category.
fn picture(category: usize, seed: u64, side: u32) -> Result<Vec<u8>, image::ImageError> {
    let mut kind = Rng::new(1, &[category as u64]);
    let mut own = Rng::new(2, &[seed]);
    let sky: [f64; 3] = std::array::from_fn(|_| 90.0 + 120.0 * kind.unit());
    let thing: [f64; 3] = std::array::from_fn(|_| 20.0 + 200.0 * kind.unit());
    let (x, y, r) = (
        0.3 + 0.4 * own.unit(),
        0.35 + 0.3 * own.unit(),
        0.18 + 0.12 * own.unit(),
    );
    let stretch = 0.6 + kind.unit();
    let mut pixels = Vec::new();
    for row in 0..side {
        for column in 0..side {
            let (u, v) = (f64::from(column) / f64::from(side), f64::from(row) / f64::from(side));
            let distance = ((u - x).powi(2) * stretch + (v - y).powi(2) / stretch).sqrt() / r;
            let inside = 1.0 / (1.0 + ((distance - 1.0) * 14.0).exp());
            for channel in 0..3 {
                let value = (1.0 - inside) * (sky[channel] + 40.0 * v) + inside * thing[channel] * (1.1 - 0.4 * v);
                pixels.push(((value / 6.0).round() * 6.0).clamp(0.0, 255.0) as u8);
            }
        }
    }
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes).write_image(&pixels, side, side, image::ExtendedColorType::Rgb8)?;
    Ok(bytes)
}
