//! Scenes: copies and frames are found, other items are left alone, and the definition gives the same.

mod common;

use common::{Rng, for_all};
use genus_core::methods::Calibrated;
use genus_core::{
    Category, CentreNorm, Discover, ExampleIndex, Features, Scenes, Subset, Support, Task, TwoStep, scenes,
};
use proptest::prelude::*;

/// Points without any duplicates.
fn cloud(rng: &mut Rng, rows: usize, dim: usize) -> Vec<Vec<f32>> {
    (0..rows)
        .map(|_| (0..dim).map(|_| rng.normal() as f32).collect())
        .collect()
}

/// Another frame of a point.
fn frame(rng: &mut Rng, point: &[f32], noise: f64) -> Vec<f32> {
    point.iter().map(|v| v + (noise * rng.normal()) as f32).collect()
}

fn found(rows: &[Vec<f32>]) -> Scenes {
    scenes(&Features::from_rows(rows).unwrap())
}

fn squared(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The definition, word by word: the largest sets of an item and its nearest that are narrow and improbable.
fn by_definition(rows: &[Vec<f32>]) -> Scenes {
    let mut distinct: Vec<usize> = Vec::new();
    let copy_of: Vec<usize> = (0..rows.len())
        .map(|row| {
            let known = distinct.iter().position(|&other| rows[other] == rows[row]);
            known.unwrap_or_else(|| {
                distinct.push(row);
                distinct.len() - 1
            })
        })
        .collect();
    let n = distinct.len();
    let between = |a: usize, b: usize| f64::from(squared(&rows[distinct[a]], &rows[distinct[b]])).sqrt();
    let mut sets: Vec<(f64, Vec<usize>)> = Vec::new();
    for size in 2..=32.min(n) {
        for item in 0..n {
            let mut set: Vec<usize> = (0..n).collect();
            set.sort_by(|&a, &b| between(item, a).total_cmp(&between(item, b)));
            let outside = set.split_off(size);
            if outside.len() < 16 {
                continue;
            }
            let within = set.iter().flat_map(|&a| set.iter().map(move |&b| (a, b)));
            let width = within.map(|(a, b)| between(a, b)).fold(0.0, f64::max);
            let mut way_out = f64::INFINITY;
            let mut directions = f64::INFINITY;
            for &a in &set {
                let mut beyond: Vec<f64> = outside.iter().map(|&b| between(a, b)).collect();
                beyond.sort_by(f64::total_cmp);
                way_out = way_out.min(beyond[0]);
                let growth: f64 = beyond[..15].iter().map(|d| (beyond[15] / d).ln()).sum();
                directions = directions.min(15.0 / growth);
            }
            if width <= 0.75 * way_out {
                sets.push(((way_out / width).ln() * directions * (size - 1) as f64, set));
            }
        }
    }
    let chosen = |asked: f64| {
        let mut number: Vec<usize> = (0..n).collect();
        for (_, set) in sets.iter().filter(|(surprise, _)| *surprise >= asked) {
            let name = n + set.iter().min().unwrap();
            set.iter().for_each(|&member| number[member] = name);
        }
        number
    };
    let share = chosen(13.0).iter().filter(|&&number| number >= n).count() as f64 / n as f64;
    let number = chosen((8.3 + ((1.0 - share) / share).ln()).clamp(5.0, 13.0));
    let scenes = number.iter().collect::<std::collections::BTreeSet<_>>().len();
    let number = if scenes > 16 { number } else { (0..n).collect() };
    Scenes::from_numbers(&copy_of.iter().map(|&item| number[item]).collect::<Vec<_>>())
}

#[test]
fn they_are_those_of_the_definition() {
    let cases = (any::<u64>(), 2usize..60, 1usize..24, 0usize..12, 0.01f64..0.6);
    for_all(60, cases, |(seed, points, dim, bursts, noise)| {
        let mut rng = Rng::new(seed);
        let mut rows = cloud(&mut rng, points, dim);
        for _ in 0..bursts {
            let of = rng.below(points);
            for _ in 0..1 + rng.below(5) {
                let size = noise * rng.unit();
                let made = frame(&mut rng, &rows[of].clone(), size);
                rows.push(made);
            }
            rows.push(rows[rng.below(rows.len())].clone());
        }
        prop_assert_eq!(found(&rows), by_definition(&rows));
        Ok(())
    });
}

#[test]
fn the_order_of_the_items_changes_nothing() {
    let cases = (any::<u64>(), 20usize..150, 2usize..20);
    for_all(40, cases, |(seed, points, dim)| {
        let mut rng = Rng::new(seed);
        let mut rows = cloud(&mut rng, points, dim);
        for _ in 0..points / 3 {
            let of = rows[rng.below(points)].clone();
            rows.push(frame(&mut rng, &of, 0.1));
        }
        // Whole numbers have many equal distances.
        if seed % 2 == 0 {
            rows.iter_mut().flatten().for_each(|v| *v = (*v * 20.0).round());
        }
        let mut shuffled: Vec<usize> = (0..rows.len()).collect();
        (1..rows.len()).for_each(|last| shuffled.swap(last, rng.below(last + 1)));
        let turned: Vec<Vec<f32>> = shuffled.iter().map(|&row| rows[row].clone()).collect();
        let (plain, turned) = (found(&rows), found(&turned));
        let mut back = vec![0; rows.len()];
        shuffled
            .iter()
            .zip(turned.of())
            .for_each(|(&row, &scene)| back[row] = scene);
        prop_assert_eq!(Scenes::from_numbers(&back), plain);
        Ok(())
    });
}

#[test]
fn frames_of_a_burst_are_one_scene_at_any_scale() {
    let mut rng = Rng::new(1);
    let photos = cloud(&mut rng, 70, 40);
    let mut rows = Vec::new();
    let mut truth = Vec::new();
    for (number, photo) in photos.iter().enumerate() {
        // From one frame to thirty.
        for _ in 0..[1, 2, 3, 8, 30][number % 5] {
            rows.push(frame(&mut rng, photo, 0.1));
            truth.push(number);
        }
    }
    for scale in [1e-6, 1.0, 1e6] {
        let scaled: Vec<Vec<f32>> = rows.iter().map(|row| row.iter().map(|v| v * scale).collect()).collect();
        assert_eq!(found(&scaled), Scenes::from_numbers(&truth), "{scale}");
    }
}

#[test]
fn without_duplicates_all_are_alone() {
    let mut rng = Rng::new(2);
    for dim in [16, 64, 300] {
        assert!(found(&cloud(&mut rng, 600, dim)).all_alone(), "{dim}");
    }
    // In few directions some are near each other by chance, and are left alone all the same.
    for dim in [1, 2, 3, 5] {
        let found = found(&cloud(&mut rng, 1_000, dim));
        assert!(found.len() > 985, "{} of 1000 along {dim}", found.len());
    }
}

#[test]
fn copies_are_one_scene_however_many() {
    let mut rng = Rng::new(3);
    let mut rows = cloud(&mut rng, 40, 12);
    for _ in 0..150 {
        rows.push(rows[5].clone());
    }
    // A zero has no sign.
    rows.push(vec![0.0; 12]);
    rows.push(vec![-0.0; 12]);
    let found = found(&rows);
    assert_eq!(found.len(), 41);
    assert_eq!(found.members(5).len(), 151);
    assert_eq!(found.members(40), [190, 191]);
    // Even where there is nothing else.
    assert_eq!(scenes(&Features::new(3, vec![0.5; 30]).unwrap()).len(), 1);
    assert_eq!(scenes(&Features::new(3, vec![0.5; 3]).unwrap()).of(), [0]);
}

#[test]
fn no_chain_leads_through_a_dense_class() {
    let mut rng = Rng::new(4);
    // A slow pan: every frame is near the next, the first and the last are far apart.
    let mut rows: Vec<Vec<f32>> = (0..25)
        .map(|step| {
            (0..20)
                .map(|axis| if axis == 0 { 0.15 * step as f32 } else { 0.0 })
                .collect()
        })
        .collect();
    rows.extend(cloud(&mut rng, 200, 20));
    assert!(found(&rows).all_alone());
    // A class of many that lie close together, far from everything else.
    let mut rows = cloud(&mut rng, 200, 20);
    rows.iter_mut()
        .take(100)
        .for_each(|row| row.iter_mut().for_each(|v| *v *= 0.01));
    assert!(found(&rows).all_alone());
    // A few clear classes.
    let centres = cloud(&mut rng, 10, 20);
    let rows: Vec<Vec<f32>> = (0..120).map(|at| frame(&mut rng, &centres[at % 10], 0.1)).collect();
    assert!(found(&rows).all_alone());
}

#[test]
fn few_items_say_nothing_but_copies() {
    let mut rng = Rng::new(5);
    let mut rows = cloud(&mut rng, 12, 30);
    let near = frame(&mut rng, &rows[3].clone(), 0.001);
    rows.push(near);
    rows.push(rows[0].clone());
    let found = found(&rows);
    assert_eq!((found.len(), found.members(0)), (13, &[0, 13][..]));
}

#[test]
fn a_scene_becomes_one_row_and_back() {
    let rows = Features::from_rows([[3.0, 4.0], [1.0, 0.0], [4.0, 3.0], [0.0, 2.0], [1.0, 0.0]]).unwrap();
    let scenes = Scenes::from_numbers(&[7, 2, 7, 5, 2]);
    assert_eq!((scenes.len(), scenes.items(), scenes.all_alone()), (3, 5, false));
    assert_eq!(scenes.of(), [0, 1, 0, 2, 1]);
    assert_eq!(scenes.members(0), [0, 2]);
    assert_eq!(scenes.representative(1), 1);
    let collapsed = scenes.collapse(&rows);
    // Both are five long, and so is what stands for them.
    let side = 12.5f32.sqrt();
    assert!((collapsed.row(0)[0] - side).abs() < 1e-5 && (collapsed.row(0)[1] - side).abs() < 1e-5);
    assert_eq!((collapsed.row(1), collapsed.row(2)), (&[1.0, 0.0][..], &[0.0, 2.0][..]));
    assert_eq!(scenes.spread(&["a", "b", "c"]), ["a", "b", "a", "c", "b"]);
    // Those that cancel out have no direction; the first stands for them.
    let opposite = Features::from_rows([[1.0f32], [-1.0]]).unwrap();
    assert_eq!(Scenes::from_numbers(&[0, 0]).collapse(&opposite).values(), [1.0]);
    assert_eq!(scenes.select(1..4).of(), [0, 1, 2]);
}

#[test]
fn what_is_told_of_some_items_holds_for_their_scene() {
    let scenes = Scenes::from_numbers(&[0, 0, 1, 1, 2, 3, 3]);
    let told = [None, Some('a'), Some('a'), Some('b'), None, Some('c'), Some('c')];
    assert_eq!(scenes.agreed(&told), [Some('a'), None, None, Some('c')]);
}

#[test]
fn examples_are_found_by_what_is_equal_to_them() {
    let examples = Features::from_rows([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [0.0, 2.0]]).unwrap();
    let shown = ExampleIndex::new(&examples, &[0, 1, 0, 2]);
    assert_eq!(shown.class_of(&[1.0, 0.0]), Some(0));
    assert_eq!(shown.class_of(&[1.0, -0.0]), Some(0));
    assert_eq!(shown.class_of(&[1.0, 1e-30]), None);
    // Somebody says that it is two things.
    assert_eq!(shown.class_of(&[0.0, 2.0]), None);
}

#[test]
fn a_copy_of_an_example_is_of_its_class_in_either_step() {
    let mut rng = Rng::new(41);
    let centres = cloud(&mut rng, 6, 64);
    let items: Vec<Vec<f32>> = (0..66).map(|at| frame(&mut rng, &centres[at % 6], 0.5)).collect();
    let (examples, pile) = items.split_at(6);
    // The last example lies among items of a new category, and its copy is the last item of the pile.
    let mut pile = pile.to_vec();
    pile.push(examples[5].clone());
    let examples = [0, 1, 0, 1, 0, 5].map(|at| examples[at].clone());
    let support = Support::new(Features::from_rows(&examples).unwrap(), &["a", "b", "a", "b", "a", "b"]).unwrap();
    let task = Task::new(&support, Features::from_rows(&pile).unwrap()).unwrap();
    for (subset, refine) in [(pile.len(), 0), (pile.len() - 1, 0), (pile.len() - 1, 1)] {
        let method = TwoStep {
            method: Calibrated::default(),
            subset: Subset::First(subset),
            centre_norm: CentreNorm::Cosine,
            refine,
        };
        let found = method.discover(&task).unwrap();
        assert_eq!(found.categories()[60], Category::Known(1), "{subset} {refine}");
        assert_eq!(
            (found.scores()[60].probability, found.scores()[60].unsure),
            (Some(1.0), false)
        );
    }
}
