//! A calibration taken apart, to be stored and put together again.

use super::cut::{Cut, MERGE, Price};
use super::membership::MEMBER;
use super::space::Space;
use super::{Calibration, Centre, Eagerness, MergeTree, Source};
use crate::error::CalibrationError;

/// Everything that a [`Calibration`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationParts {
    /// What it was learnt from.
    pub source: Source,
    /// From how many classes.
    pub classes: usize,
    /// From how many items.
    pub items: usize,
    /// How the mean of all features is chosen.
    pub centre: Centre,
    /// That middle, one value a feature.
    pub mean: Vec<f32>,
    /// Directions that are damped, row after row.
    pub directions: Vec<f32>,
    /// What is left of each direction.
    pub factors: Vec<f32>,
    /// The tree that is cut.
    pub tree: MergeTree,
    /// How eagerly clusters are merged.
    pub eagerness: Eagerness,
    /// The variance within a class, summed over features.
    pub variance: f64,
    /// The number of points of the largest class that the model of merges was learnt from.
    pub largest: f64,
    /// In how many directions items of one class differ.
    pub dimensions: f64,
    /// The coefficients of the model of merges.
    pub merges: [f64; MERGE],
    /// The coefficients of the model of an item that comes by itself.
    pub arrivals: [f64; MEMBER],
    /// The coefficients of the model of an item that was sorted with others.
    pub places: [f64; MEMBER],
    /// Below this probability a sorted item is unsure.
    pub doubt: f64,
}

impl Calibration {
    /// Its parts.
    pub fn to_parts(&self) -> CalibrationParts {
        CalibrationParts {
            source: self.source,
            classes: self.learnt.0,
            items: self.learnt.1,
            centre: self.centre,
            mean: self.space.mean().to_vec(),
            directions: self.space.directions().to_vec(),
            factors: self.space.factors().to_vec(),
            tree: self.cut.tree,
            eagerness: self.cut.eagerness,
            variance: self.cut.variance,
            largest: self.cut.largest,
            dimensions: self.cut.dimensions,
            merges: self.cut.model,
            arrivals: self.arrivals,
            places: self.places,
            doubt: self.doubt,
        }
    }

    /// A calibration of its parts; fails where they do not belong together or are no numbers to reckon with.
    pub fn from_parts(parts: CalibrationParts) -> Result<Self, CalibrationError> {
        let wrong = |problem: &'static str| Err(CalibrationError::Parts { problem });
        let dim = parts.mean.len();
        if dim == 0 {
            return wrong("there are no features");
        }
        if parts.directions.len() != parts.factors.len() * dim {
            return wrong("there is not one factor a direction");
        }
        let vectors = parts.mean.iter().chain(&parts.directions);
        if !vectors.clone().all(|v| v.is_finite() && v.abs() <= 1e3) {
            return wrong("the mean or a direction is not of finite numbers of unit vectors");
        }
        if !parts.factors.iter().all(|f| (0.0..=1.0).contains(f)) {
            return wrong("the factors are not between 0 and 1");
        }
        if !(parts.variance.is_finite() && parts.variance > 0.0) {
            return wrong("the variance is not above 0");
        }
        if !(parts.largest.is_finite() && parts.largest >= 1.0) {
            return wrong("the largest class has no point");
        }
        if !(parts.dimensions.is_finite() && parts.dimensions > 0.0) {
            return wrong("items of one class differ in no direction");
        }
        if !(0.0..=1.0).contains(&parts.doubt) {
            return wrong("the limit of doubt is not between 0 and 1");
        }
        let coefficients = parts.merges.iter().chain(&parts.arrivals).chain(&parts.places);
        if !coefficients.clone().all(|c| c.is_finite()) {
            return wrong("a coefficient is not a finite number");
        }
        Ok(Self {
            source: parts.source,
            centre: parts.centre,
            learnt: (parts.classes, parts.items),
            space: Space::new(parts.mean, parts.directions, parts.factors),
            cut: Cut {
                tree: parts.tree,
                eagerness: parts.eagerness,
                price: match parts.source {
                    Source::Base => Price::LEARNT,
                    Source::Examples | Source::Prior => Price::ESTIMATED,
                },
                model: parts.merges,
                variance: parts.variance,
                largest: parts.largest,
                dimensions: parts.dimensions,
            },
            arrivals: parts.arrivals,
            places: parts.places,
            doubt: parts.doubt,
        })
    }
}
