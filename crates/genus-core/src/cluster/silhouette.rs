//! How well separated the clusters of a partition are.

/// The mean silhouette coefficient (Rousseeuw 1987) of a partition under Euclidean distance.
///
/// A point whose mean distance is `a` to the others of its cluster and `b` to the points of the nearest other cluster
/// has the coefficient `(b - a) / max(a, b)`; one that is alone in its cluster, or coincides with all of both, has 0.
/// Equal to scikit-learn's `silhouette_score` wherever that is defined: here `n` clusters of `n` points score 0 instead
/// of being an error. Fewer than two clusters have nothing to be separated from and give NaN.
///
/// `squared_distance(i, j)` is the **square** of the distance of two points, which is what Gram matrices give cheaply;
/// a value below zero, as rounding leaves it, counts as zero. It is asked for an ordered pair of different points at
/// most once, so the time is quadratic and the memory linear.
///
/// # Panics
/// When there is not one label for each of the `points`.
pub(crate) fn silhouette(points: usize, labels: &[usize], squared_distance: impl Fn(usize, usize) -> f32) -> f64 {
    assert_eq!(labels.len(), points, "every point needs a label");
    let mut distinct = labels.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < 2 {
        return f64::NAN;
    }
    let clusters: Vec<usize> = labels
        .iter()
        .map(|label| distinct.partition_point(|other| other < label))
        .collect();
    let mut sizes = vec![0usize; distinct.len()];
    for &cluster in &clusters {
        sizes[cluster] += 1;
    }

    let mut sums = vec![0f64; distinct.len()];
    let mut total = 0.0;
    for (i, &own) in clusters.iter().enumerate() {
        if sizes[own] == 1 {
            continue;
        }
        sums.fill(0.0);
        for (j, &cluster) in clusters.iter().enumerate() {
            if i != j {
                sums[cluster] += f64::from(squared_distance(i, j)).max(0.0).sqrt();
            }
        }
        let within = sums[own] / (sizes[own] - 1) as f64;
        let nearest = (0..sums.len())
            .filter(|&cluster| cluster != own)
            .map(|cluster| sums[cluster] / sizes[cluster] as f64)
            .fold(f64::INFINITY, f64::min);
        let coefficient = (nearest - within) / nearest.max(within);
        // Zero by zero, or distances too large for `f32`.
        if !coefficient.is_nan() {
            total += coefficient;
        }
    }
    total / points as f64
}

#[cfg(test)]
mod tests {
    use super::silhouette;
    use proptest::prelude::*;
    use serde_json::Value;

    fn on_a_line(points: &[f32], labels: &[usize]) -> f64 {
        silhouette(points.len(), labels, |i, j| (points[i] - points[j]).powi(2))
    }

    #[test]
    fn equals_scikit_learn() {
        let goldens: Value = serde_json::from_str(include_str!("../../tests/goldens/metrics.json")).unwrap();
        let cases = goldens["silhouette"].as_array().unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            let labels: Vec<usize> = case["labels"]
                .as_array()
                .unwrap()
                .iter()
                .map(|l| l.as_u64().unwrap() as usize)
                .collect();
            // Whole coordinates, so that squared distances are exact in `f32`.
            let points: Vec<Vec<f32>> = case["points"]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| {
                    point
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|v| v.as_i64().unwrap() as f32)
                        .collect()
                })
                .collect();
            let score = silhouette(points.len(), &labels, |i, j| {
                points[i].iter().zip(&points[j]).map(|(a, b)| (a - b) * (a - b)).sum()
            });
            let expected = case["silhouette"].as_f64().unwrap();
            assert!((score - expected).abs() <= 1e-12, "{score} for {case}");
        }
    }

    #[test]
    fn edges_are_as_documented() {
        assert!(silhouette(0, &[], |_, _| 0.0).is_nan());
        assert!(on_a_line(&[1.0], &[0]).is_nan());
        assert!(on_a_line(&[1.0, 2.0, 3.0], &[4, 4, 4]).is_nan());
        assert_eq!(on_a_line(&[1.0, 2.0, 3.0], &[2, 1, 0]), 0.0);
        assert_eq!(on_a_line(&[1.0, 1.0, 1.0, 1.0], &[0, 0, 1, 1]), 0.0);
        assert_eq!(silhouette(4, &[0, 0, 1, 1], |_, _| f32::INFINITY), 0.0);
        assert_eq!(silhouette(4, &[0, 0, 1, 1], |_, _| f32::NAN), 0.0);
        // A point alone counts in the mean, as 0.
        assert!((on_a_line(&[0.0, 0.0, 8.0], &[0, 0, 7]) - 2.0 / 3.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn lies_between_minus_one_and_one_and_ignores_names(
            points in prop::collection::vec((-9i8..9, 0usize..4), 2..30)
        ) {
            let points = points.into_iter().map(|(x, label)| (f32::from(x), label));
            let (places, labels): (Vec<f32>, Vec<usize>) = points.unzip();
            let renamed: Vec<usize> = labels.iter().map(|label| usize::MAX - 3 * label).collect();
            let score = on_a_line(&places, &labels);
            if score.is_nan() {
                prop_assert!(labels.iter().all(|label| label == &labels[0]));
            } else {
                prop_assert!((-1.0..=1.0).contains(&score));
                prop_assert!((score - on_a_line(&places, &renamed)).abs() < 1e-12);
            }
        }
    }
}
