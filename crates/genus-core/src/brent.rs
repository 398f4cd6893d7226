//! The smallest value of a function of one variable between two bounds.

/// Where a bounded search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Minimum {
    /// The best point visited.
    pub(crate) x: f64,
    /// The function there.
    pub(crate) value: f64,
    /// How often the function was evaluated.
    pub(crate) evaluations: usize,
}

/// Searches `[lower, upper]` for a minimum by Brent's method: golden-section steps, and steps to the lowest point of a
/// parabola through the three best points where that is promising.
///
/// The points visited are those of `scipy.optimize.minimize_scalar(method="bounded")`, rounding included: on a function
/// with plateaus, where the search ends is a matter of which points it happened to see. `max_evaluations` is scipy's
/// `maxiter`, except that 0 and 1 mean a single evaluation where scipy makes two.
///
/// A NaN counts as `+∞`, so that the search leaves the region that has no value; scipy would stay. Bounds in the wrong
/// order are swapped, and with a bound that is not finite the search ends after one evaluation at no meaningful point.
pub(crate) fn minimize_bounded(
    lower: f64,
    upper: f64,
    xatol: f64,
    max_evaluations: usize,
    mut f: impl FnMut(f64) -> f64,
) -> Minimum {
    // Not `f64::EPSILON.sqrt()`: this is scipy's constant, and every point depends on it.
    let relative_tolerance = 2.2e-16f64.sqrt();
    let golden = 0.5 * (3.0 - 5f64.sqrt());
    let mut value_at = |x: f64| {
        let value = f(x);
        if value.is_nan() { f64::INFINITY } else { value }
    };

    let (mut a, mut b) = if lower > upper { (upper, lower) } else { (lower, upper) };
    let mut best = a + golden * (b - a);
    let mut best_value = value_at(best);
    let mut evaluations = 1;
    let (mut second, mut second_value) = (best, best_value);
    let (mut third, mut third_value) = (best, best_value);
    // The last step and the one before it: a parabola is trusted only while steps shrink.
    let mut step = 0.0f64;
    let mut step_before = 0.0f64;

    while evaluations < max_evaluations {
        let middle = 0.5 * (a + b);
        let tolerance = relative_tolerance * best.abs() + xatol / 3.0;
        let wide = (best - middle).abs() > 2.0 * tolerance - 0.5 * (b - a);
        // False for NaN too, which ends a search between bounds that are not finite.
        if !wide {
            break;
        }

        let mut parabolic = false;
        if step_before.abs() > tolerance {
            let r = (best - second) * (best_value - third_value);
            let q = (best - third) * (best_value - second_value);
            let p = (best - third) * q - (best - second) * r;
            let q = 2.0 * (q - r);
            let p = if q > 0.0 { -p } else { p };
            let q = q.abs();
            let r = step_before;
            step_before = step;
            if p.abs() < (0.5 * q * r).abs() && p > q * (a - best) && p < q * (b - best) {
                parabolic = true;
                step = p / q;
                let x = best + step;
                // A point this close to a bound could not be told from it.
                if x - a < 2.0 * tolerance || b - x < 2.0 * tolerance {
                    step = if middle >= best { tolerance } else { -tolerance };
                }
            }
        }
        if !parabolic {
            step_before = if best >= middle { a - best } else { b - best };
            step = golden * step_before;
        }
        let stride = step.abs().max(tolerance);
        let x = if step >= 0.0 { best + stride } else { best - stride };
        let value = value_at(x);
        evaluations += 1;

        if value <= best_value {
            if x >= best {
                a = best;
            } else {
                b = best;
            }
            (third, third_value) = (second, second_value);
            (second, second_value) = (best, best_value);
            (best, best_value) = (x, value);
        } else {
            if x < best {
                a = x;
            } else {
                b = x;
            }
            if value <= second_value || second == best {
                (third, third_value) = (second, second_value);
                (second, second_value) = (x, value);
            } else if value <= third_value || third == best || third == second {
                (third, third_value) = (x, value);
            }
        }
    }
    Minimum {
        x: best,
        value: best_value,
        evaluations,
    }
}

#[cfg(test)]
mod tests {
    use super::minimize_bounded;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The functions of the goldens: only operations that every machine rounds alike, because parabolas magnify
    /// rounding.
    fn function(name: &str) -> fn(f64) -> f64 {
        match name {
            "parabola" => |x| (x - 2.0) * (x - 2.0),
            "quartic" => |x| x * x * x * x - 3.0 * x * x + x,
            "absolute" => |x| (x - 1.25).abs(),
            "witch" => |x| -1.0 / (1.0 + (x - 7.0) * (x - 7.0)),
            "line" => |x| 3.0 - x,
            "constant" => |_| 1.0,
            "step" => |x| -(x.trunc().min(12.0)),
            "stairs" => |x| (x.trunc() - 17.0).abs(),
            "plateau" => |x| {
                if x.trunc() < 9.0 || x.trunc() > 14.0 {
                    -0.8
                } else {
                    -1.0
                }
            },
            "saw" => |x| x - x.trunc() - 0.05 * x.trunc(),
            name => panic!("no function {name}"),
        }
    }

    #[test]
    fn visits_the_points_that_scipy_visits() {
        let goldens: Value = serde_json::from_str(include_str!("../tests/goldens/metrics.json")).unwrap();
        let cases = goldens["brent"].as_array().unwrap();
        assert!(cases.len() > 15);
        for case in cases {
            let number = |name: &str| case[name].as_f64().unwrap();
            let f = function(case["function"].as_str().unwrap());
            let mut visited = Vec::new();
            let limit = number("max_evaluations") as usize;
            let minimum = minimize_bounded(number("lower"), number("upper"), number("xatol"), limit, |x| {
                visited.push(x);
                f(x)
            });
            let expected: Vec<f64> = case["visited"]
                .as_array()
                .unwrap()
                .iter()
                .map(|x| x.as_f64().unwrap())
                .collect();
            assert_eq!(visited.len(), expected.len(), "{case}");
            for (x, expected) in visited.iter().zip(&expected) {
                assert!((x - expected).abs() <= 1e-12, "{x} for {expected} in {case}");
            }
            assert!((minimum.x - number("x")).abs() <= 1e-12, "{minimum:?} in {case}");
            assert!(
                (minimum.value - number("value")).abs() <= 1e-12,
                "{minimum:?} in {case}"
            );
            assert_eq!(minimum.evaluations, visited.len());
        }
    }

    #[test]
    fn a_region_without_values_is_left() {
        let minimum = minimize_bounded(
            0.0,
            10.0,
            1e-5,
            500,
            |x| if x < 5.0 { f64::NAN } else { (x - 6.0).powi(2) },
        );
        assert!((minimum.x - 6.0).abs() < 1e-4, "{minimum:?}");
    }

    #[test]
    fn ends_whatever_it_is_given() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(minimize_bounded(bad, 1.0, 1e-5, 50, |x| x).evaluations, 1);
            assert_eq!(minimize_bounded(0.0, bad, 1e-5, 50, |x| x).evaluations, 1);
            assert!(minimize_bounded(0.0, 1.0, bad, 50, |x| x).evaluations <= 50);
            assert!(minimize_bounded(0.0, 1.0, 1e-5, 50, |_| bad).evaluations <= 50);
        }
        assert_eq!(minimize_bounded(3.0, 3.0, 1e-5, 50, |x| x).x, 3.0);
        assert_eq!(minimize_bounded(0.0, 1.0, 1e-5, 0, |x| x).evaluations, 1);
        assert_eq!(minimize_bounded(-1.0, 1.0, -1.0, 50, f64::abs).evaluations, 50);
        let (there, back) = (
            minimize_bounded(0.0, 4.0, 1e-5, 50, f64::abs),
            minimize_bounded(4.0, 0.0, 1e-5, 50, f64::abs),
        );
        assert_eq!(there, back);
    }

    proptest! {
        #[test]
        fn stays_between_the_bounds_and_returns_the_best_point_visited(
            lower in -50.0f64..50.0, width in 0.0f64..100.0, pitch in 0.1f64..5.0, target in -60.0f64..60.0
        ) {
            let upper = lower + width;
            let mut least = f64::INFINITY;
            let minimum = minimize_bounded(lower, upper, 1e-5, 200, |x| {
                assert!((lower..=upper).contains(&x), "{x} outside {lower}..{upper}");
                let value = ((x / pitch).floor() * pitch - target).abs();
                least = least.min(value);
                value
            });
            prop_assert!(minimum.evaluations <= 200);
            prop_assert_eq!(minimum.value, least);
        }
    }
}
