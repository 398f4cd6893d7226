//! How likely an item belongs to a group.

use super::logistic::{logit, probability};

/// What the models of membership look at.
pub(crate) const MEMBER: usize = 5;

/// A group's own spread counts like that of so many more members that spread as classes do on average.
const PRIOR_MEMBERS: f64 = 4.0;
/// Members of a group point at least this much the same way, whatever their spread says.
const LEAST_AGREEMENT: f64 = 0.02;

/// What is known of a group: how many members it has, and the length of the mean of their unit rows, which is 1 when all
/// are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) members: f64,
    pub(crate) length: f64,
}

impl Group {
    /// The cosine that a genuine member is expected to have with the mean of the others.
    ///
    /// The fewer members, the further the mean lies from where the class is; the wider they spread, the less they agree.
    pub(crate) fn expected(self, variance: f64) -> f64 {
        let own = self.members * (1.0 - self.length * self.length).max(0.0);
        let spread = (own + PRIOR_MEMBERS * variance) / (self.members - 1.0 + PRIOR_MEMBERS);
        let agreement = (1.0 - spread).max(LEAST_AGREEMENT);
        agreement / (agreement + (1.0 - agreement) / self.members).sqrt()
    }
}

/// How well a cosine suits a group in which `expected` is usual: the higher the better, between groups of any size.
pub(crate) fn suits(cosine: f64, expected: f64) -> f64 {
    expected * cosine - 0.5 * expected * expected
}

/// What a model of membership sees: the cosine with the group's mean, by how much it exceeds that with the best other
/// group, the cosine that is usual in the group, and the logarithm of a count.
pub(crate) fn member_features(cosine: f64, rival: Option<f64>, expected: f64, count: f64) -> [f64; MEMBER] {
    let margin = cosine - rival.unwrap_or(0.0);
    [1.0, cosine, margin, expected, count.max(1.0).ln()]
}

/// The best of some groups for an item and what a model sees of it, given the cosines with their means and the cosines
/// that are usual in them; the count is that of the groups. There must be one.
pub(crate) fn best_group(cosines: &[f64], expected: &[f64]) -> (usize, [f64; MEMBER]) {
    let (mut best, mut second) = ((f64::NEG_INFINITY, 0), (f64::NEG_INFINITY, None));
    for (group, (&cosine, &usual)) in cosines.iter().zip(expected).enumerate() {
        let fit = suits(cosine, usual);
        if fit > best.0 {
            if group > 0 {
                second = (best.0, Some(best.1));
            }
            best = (fit, group);
        } else if fit > second.0 {
            second = (fit, Some(group));
        }
    }
    let cosine = |group: usize| cosines[group];
    let seen = member_features(
        cosine(best.1),
        second.1.map(cosine),
        expected[best.1],
        cosines.len() as f64,
    );
    (best.1, seen)
}

/// What a model sees of an item in every group in turn; its rival there is the best of the others.
pub(crate) fn every_group(cosines: &[f64], expected: &[f64]) -> impl Iterator<Item = [f64; MEMBER]> {
    let fit = |group: usize| suits(cosines[group], expected[group]);
    let best_but = |left_out: Option<usize>| {
        let others = (0..cosines.len()).filter(|&group| Some(group) != left_out);
        others.reduce(|a, b| if fit(b) > fit(a) { b } else { a })
    };
    let best = best_but(None);
    let second = best_but(best);
    (0..cosines.len()).map(move |group| {
        let rival = if Some(group) == best { second } else { best };
        let rival = rival.map(|rival| cosines[rival]);
        member_features(cosines[group], rival, expected[group], cosines.len() as f64)
    })
}

/// The probability that a model gives to what it sees.
pub(crate) fn chance(model: &[f64; MEMBER], features: &[f64; MEMBER]) -> f32 {
    probability(logit(model, features)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_and_closer_members_raise_what_is_expected() {
        let of = |members, length| Group { members, length }.expected(0.6);
        assert!(of(1.0, 1.0) < of(5.0, 0.72) && of(5.0, 0.72) < of(20.0, 0.66));
        assert!(of(5.0, 0.6) < of(5.0, 0.9));
        // The cosine of two items of a class is one less the variance within the class.
        assert!((of(1.0, 1.0) - 0.4).abs() < 1e-12, "{}", of(1.0, 1.0));
        assert!(of(3.0, 0.0) > 0.0);
    }

    #[test]
    fn the_best_group_is_named_with_its_rival() {
        let (best, features) = best_group(&[0.25, 0.75, 0.5], &[0.5, 0.5, 0.5]);
        assert_eq!(best, 1);
        assert_eq!(features[1..4], [0.75, 0.25, 0.5]);
        assert!((features[4] - 3f64.ln()).abs() < 1e-12);
        // The same cosine says more where less is usual.
        assert_eq!(best_group(&[0.5, 0.5], &[0.9, 0.5]).0, 1);
        assert_eq!(best_group(&[0.5], &[0.5]).1[2], 0.5);
    }

    #[test]
    fn every_group_has_the_best_of_the_others_as_its_rival() {
        let (cosines, expected) = ([0.25, 0.75, 0.5], [0.5, 0.5, 0.5]);
        let seen: Vec<_> = every_group(&cosines, &expected).collect();
        assert_eq!(seen.iter().map(|seen| seen[2]).collect::<Vec<_>>(), [-0.5, 0.25, -0.25]);
        assert_eq!(seen[1], best_group(&cosines, &expected).1);
        assert_eq!(every_group(&[0.5], &[0.5]).next(), Some(best_group(&[0.5], &[0.5]).1));
    }
}
