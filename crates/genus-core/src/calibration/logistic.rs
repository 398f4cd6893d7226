//! Weighted logistic regression on a handful of features, the first of which is the constant 1.

/// The penalty on the squares of the coefficients of standardised features.
const PENALTY: f64 = 1e-3;
/// Newton steps at most; half a dozen suffice unless the outcomes can be told apart perfectly.
const STEPS: usize = 50;

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observation<const F: usize> {
    pub(crate) features: [f64; F],
    /// How much of it came true, from 0 to 1.
    pub(crate) outcome: f64,
    pub(crate) weight: f64,
}

/// The logit that the coefficients give to some features.
pub(crate) fn logit<const F: usize>(coefficients: &[f64; F], features: &[f64; F]) -> f64 {
    coefficients.iter().zip(features).map(|(c, f)| c * f).sum()
}

/// The probability of a logit.
pub(crate) fn probability(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// The logarithm of the probability of a logit, exact where the probability is rounded to 0.
pub(crate) fn log_probability(logit: f64) -> f64 {
    // Both forms agree; each is used where its exponential cannot overflow.
    if logit > 0.0 {
        -(-logit).exp().ln_1p()
    } else {
        logit - logit.exp().ln_1p()
    }
}

/// The coefficients under which the observations are likeliest, with a light penalty that keeps them finite; `None`
/// without observations of any weight.
pub(crate) fn fit<const F: usize>(observations: &[Observation<F>]) -> Option<[f64; F]> {
    let total: f64 = observations.iter().map(|o| o.weight).sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mean_of = |value: &dyn Fn(&Observation<F>) -> f64| -> f64 {
        observations.iter().map(|o| o.weight * value(o)).sum::<f64>() / total
    };
    let mut means = [0.0; F];
    let mut scales = [1.0; F];
    for at in 1..F {
        means[at] = mean_of(&|o| o.features[at]);
        let variance = mean_of(&|o| (o.features[at] - means[at]).powi(2));
        // A feature that never changes has nothing to say and gets no coefficient.
        scales[at] = if variance > 1e-12 { variance.sqrt().recip() } else { 0.0 };
    }
    let standard = |features: &[f64; F]| {
        let mut out = [1.0; F];
        for at in 1..F {
            out[at] = (features[at] - means[at]) * scales[at];
        }
        out
    };
    let mut coefficients = [0.0; F];
    for _ in 0..STEPS {
        let mut gradient = [0.0; F];
        let mut curvature = [[0.0; F]; F];
        for o in observations {
            let x = standard(&o.features);
            let p = probability(logit(&coefficients, &x));
            let (slope, bend) = (o.weight * (o.outcome - p), o.weight * p * (1.0 - p));
            for i in 0..F {
                gradient[i] += slope * x[i];
                for j in 0..F {
                    curvature[i][j] += bend * x[i] * x[j];
                }
            }
        }
        for i in 0..F {
            gradient[i] -= PENALTY * total * coefficients[i];
            curvature[i][i] += PENALTY * total;
        }
        let step = solve(curvature, gradient);
        coefficients.iter_mut().zip(&step).for_each(|(c, s)| *c += s);
        if step.iter().all(|s| s.abs() < 1e-9) {
            break;
        }
    }
    let mut plain = [0.0; F];
    plain[0] = coefficients[0];
    for at in 1..F {
        plain[at] = coefficients[at] * scales[at];
        plain[0] -= plain[at] * means[at];
    }
    plain.iter().all(|c| c.is_finite()).then_some(plain)
}

/// Solves a small positive definite system by elimination.
fn solve<const F: usize>(mut matrix: [[f64; F]; F], mut right: [f64; F]) -> [f64; F] {
    for at in 0..F {
        for row in at + 1..F {
            let factor = matrix[row][at] / matrix[at][at];
            let pivot = matrix[at];
            matrix[row].iter_mut().zip(pivot).for_each(|(v, p)| *v -= factor * p);
            right[row] -= factor * right[at];
        }
    }
    for at in (0..F).rev() {
        for column in at + 1..F {
            right[at] -= matrix[at][column] * right[column];
        }
        right[at] /= matrix[at][at];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn coefficients_are_found_again() {
        let truth = [0.5, -2.0, 1.0];
        let mut rng = Rng::new(1, &[3]);
        let observations: Vec<Observation<3>> = (0..20_000)
            .map(|_| {
                let features = [1.0, 4.0 * rng.unit() - 1.0, 100.0 + rng.unit()];
                let mut shifted = features;
                shifted[2] -= 100.0;
                let outcome = f64::from(u8::from(rng.unit() < probability(logit(&truth, &shifted))));
                Observation {
                    features,
                    outcome,
                    weight: 1.0,
                }
            })
            .collect();
        let found = fit(&observations).unwrap();
        assert!(
            (found[1] - truth[1]).abs() < 0.1 && (found[2] - truth[2]).abs() < 0.15,
            "{found:?}"
        );
        // The constant takes the 100 that the feature is shifted by.
        assert!((found[0] + 100.0 * found[2] - truth[0]).abs() < 0.15, "{found:?}");
    }

    #[test]
    fn shares_and_weights_count_as_so_many_outcomes() {
        let at = |x: f64, outcome: f64, weight: f64| Observation {
            features: [1.0, x],
            outcome,
            weight,
        };
        let whole = [
            at(0.0, 1.0, 1.0),
            at(0.0, 0.0, 3.0),
            at(1.0, 1.0, 3.0),
            at(1.0, 0.0, 1.0),
        ];
        let shares = [at(0.0, 0.25, 4.0), at(1.0, 0.75, 4.0)];
        let (a, b) = (fit(&whole).unwrap(), fit(&shares).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
        assert!((probability(logit(&a, &[1.0, 1.0])) - 0.75).abs() < 0.01);
    }

    #[test]
    fn nothing_to_learn_from() {
        assert_eq!(fit::<2>(&[]), None);
        let certain = |x: f64| Observation {
            features: [1.0, x],
            outcome: f64::from(u8::from(x > 0.0)),
            weight: 1.0,
        };
        let found = fit(&[certain(-1.0), certain(1.0)]).unwrap();
        assert!(found[1] > 1.0 && found[1].is_finite(), "{found:?}");
    }

    #[test]
    fn logarithms_of_probabilities_do_not_vanish() {
        for logit in [-3.0, 0.0, 2.5] {
            assert!((log_probability(logit) - probability(logit).ln()).abs() < 1e-12);
        }
        assert_eq!(log_probability(-1000.0), -1000.0);
        assert_eq!(log_probability(1000.0), 0.0);
    }
}
