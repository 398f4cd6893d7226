//! Projections: places in the plane that depend on the rows and the seed alone, and keep neighbours.

use std::collections::BTreeSet;

use genus_core::Features;
use genus_core::projection::Projection;
use genus_core::rng::Rng;

fn features(rows: &[Vec<f32>]) -> Features {
    Features::from_rows(rows).unwrap()
}

#[test]
fn principal_components_are_those_of_scikit_learn() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("goldens/pca.json")).unwrap();
    let matrix = |value: &serde_json::Value| -> Vec<Vec<f64>> { serde_json::from_value(value.clone()).unwrap() };
    for case in cases.as_array().unwrap() {
        let rows: Vec<Vec<f32>> = matrix(&case["rows"])
            .iter()
            .map(|row| row.iter().map(|&value| value as f32).collect())
            .collect();
        let expected = matrix(&case["points"]);
        let found = Projection::Pca.points(&features(&rows), 1);
        assert_eq!(found.len(), expected.len());
        let scale = expected
            .as_slice()
            .iter()
            .flatten()
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            for axis in 0..2 {
                let gap = (f64::from(found[axis]) - expected[axis]).abs();
                assert!(gap <= 1e-6 * scale, "{}: {found:?} for {expected:?}", case["name"]);
            }
        }
    }
}

#[test]
fn projections_of_few_equal_and_extreme_rows_are_finite() {
    let far = vec![
        vec![f32::MAX; 3],
        vec![f32::MIN; 3],
        vec![0.0, f32::MAX, f32::MIN],
        vec![0.0; 3],
    ];
    let tiny: Vec<Vec<f32>> = (0..7).map(|i| vec![1e-44 * i as f32, f32::MIN_POSITIVE]).collect();
    let outlier: Vec<Vec<f32>> = (0..9)
        .map(|i| vec![if i == 4 { 1e30 } else { i as f32 }, 1.0])
        .collect();
    let line: Vec<Vec<f32>> = (0..12).map(|i| vec![i as f32, 2.0 * i as f32]).collect();
    let halves: Vec<Vec<f32>> = (0..40).map(|i| vec![(i / 20) as f32, 1.0, 0.1]).collect();
    let mut cases = vec![far.clone(), [far.clone(), far].concat(), tiny, outlier, line, halves];
    for n in [1, 2, 3, 4, 5, 6, 31] {
        cases.push(vec![vec![0.0; 4]; n]);
        cases.push(vec![vec![0.1, -3.3, 7.7]; n]);
        cases.push((0..n).map(|i| vec![(i * 7 % 5) as f32, 1.0, (i * i) as f32]).collect());
    }
    for rows in &cases {
        for &projection in Projection::ALL {
            let found = projection.points(&features(rows), 3);
            assert_eq!(found.len(), rows.len());
            assert!(
                found.as_flattened().iter().all(|value| value.is_finite()),
                "{projection}: {rows:?} {found:?}"
            );
        }
        if rows.iter().all(|row| *row == rows[0]) {
            assert!(
                Projection::Pca
                    .points(&features(rows), 3)
                    .iter()
                    .all(|&point| point == [0.0; 2])
            );
        }
    }
    let nothing = Features::new(3, vec![]).unwrap();
    assert!(
        Projection::ALL
            .iter()
            .all(|projection| projection.points(&nothing, 0).is_empty())
    );
}

#[test]
fn equal_rows_share_a_principal_place() {
    let rows: Vec<Vec<f32>> = (0..30)
        .map(|i| (0..50).map(|j| ((i % 3) * j) as f32 * 0.37).collect())
        .collect();
    let found = Projection::Pca.points(&features(&rows), 0);
    assert!((3..30).all(|i| found[i].map(f32::to_bits) == found[i % 3].map(f32::to_bits)));
}

/// Groups of points around random centres.
fn groups(count: usize, size: usize, dim: usize) -> Features {
    let mut rng = Rng::new(5, &[]);
    let mut number = move || (rng.unit() + rng.unit() + rng.unit() - 1.5) as f32;
    let centres: Vec<Vec<f32>> = (0..count).map(|_| (0..dim).map(|_| 4.0 * number()).collect()).collect();
    Features::from_rows(
        (0..count * size).map(|i| centres[i % count].iter().map(|c| c + number()).collect::<Vec<f32>>()),
    )
    .unwrap()
}

#[test]
fn tsne_keeps_groups_together_and_apart() {
    let (count, size) = (6, 20);
    let rows = groups(count, size, 24);
    let places = Projection::Tsne.points(&rows, 0);
    let gap = |a: [f32; 2], b: [f32; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    for i in 0..places.len() {
        let mut others: Vec<usize> = (0..places.len()).filter(|&j| j != i).collect();
        others.sort_by(|&a, &b| gap(places[i], places[a]).total_cmp(&gap(places[i], places[b])));
        let same = others[..size - 1].iter().filter(|&&j| j % count == i % count).count();
        assert_eq!(same, size - 1, "point {i}");
    }
    // Inside a group it shows more than the two components do: neighbours in the plane are neighbours among the rows.
    let far = |a: usize, b: usize| {
        rows.row(a)
            .iter()
            .zip(rows.row(b))
            .map(|(a, b)| (a - b) * (a - b))
            .sum::<f32>()
    };
    let kept = |places: &[[f32; 2]]| -> usize {
        let nearest = |i: usize, distance: &dyn Fn(usize) -> f32| -> BTreeSet<usize> {
            let mut others: Vec<usize> = (0..places.len()).filter(|&j| j != i).collect();
            others.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            others.into_iter().take(5).collect()
        };
        let both = |i: usize| (nearest(i, &|j| gap(places[i], places[j])), nearest(i, &|j| far(i, j)));
        (0..places.len())
            .map(both)
            .map(|(plane, truth)| plane.intersection(&truth).count())
            .sum()
    };
    let (tsne, pca) = (kept(&places), kept(&Projection::Pca.points(&rows, 0)));
    assert!(
        tsne > pca && tsne > 2 * places.len(),
        "{tsne} of {} neighbours, PCA {pca}",
        5 * places.len()
    );
}

#[test]
fn tsne_lies_as_the_principal_components_do() {
    for (count, size) in [(3, 4), (4, 6), (5, 10), (6, 15), (8, 25)] {
        let rows = groups(count, size, 12);
        let (tsne, pca) = (Projection::Tsne.points(&rows, 4), Projection::Pca.points(&rows, 4));
        for axis in 0..2 {
            // Both have their mean at zero.
            let sum = |f: &dyn Fn(usize) -> f32| (0..tsne.len()).map(f).sum::<f32>();
            let spread = |places: &[[f32; 2]]| sum(&|i| places[i][axis] * places[i][axis]).sqrt();
            let alike = sum(&|i| tsne[i][axis] * pca[i][axis]) / spread(&tsne) / spread(&pca);
            assert!(alike > 0.3, "{count} groups of {size}, axis {axis}: {alike}");
        }
    }
}

#[test]
fn places_do_not_depend_on_the_number_of_threads() {
    // More points than one block of the sums, and not a multiple of their lanes; and more than all pairs are taken of.
    let few = (Projection::ALL, groups(7, 39, 17));
    let many = (&[Projection::Tsne][..], groups(7, 144, 60));
    for (&projection, rows) in [few, many]
        .iter()
        .flat_map(|(ways, rows)| ways.iter().map(move |way| (way, rows)))
    {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let places = pool.install(|| projection.points(rows, 9));
            places
                .as_flattened()
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        let one = run(1);
        assert!(one == run(4) && one == run(1) && one == run(3), "{projection}");
    }
}

#[test]
fn a_seed_moves_tsne_alone() {
    let rows = groups(3, 10, 5);
    assert_ne!(Projection::Tsne.points(&rows, 1), Projection::Tsne.points(&rows, 2));
    assert_eq!(Projection::Pca.points(&rows, 1), Projection::Pca.points(&rows, 2));
}

#[test]
fn projections_have_names_and_sizes() {
    for &projection in Projection::ALL {
        assert_eq!(projection.to_string().parse(), Ok(projection));
    }
    assert_eq!("umap".parse::<Projection>(), Err("one of tsne, pca".into()));
    let tsne = |count| Projection::Tsne.for_count(count);
    assert_eq!(
        [4, 5, 30_000, 30_001].map(tsne),
        [Projection::Pca, Projection::Tsne, Projection::Tsne, Projection::Pca]
    );
    assert_eq!(Projection::Pca.for_count(100), Projection::Pca);
}
