//! Calibrated discovery: communities of shared neighbours, divided in many ways that vote; where base classes taught what merges are
//! likely of one class, a Ward tree cut by that has a vote as well.

use std::sync::Arc;

use super::Discover;
use super::parameters::{Parameter, Values};
use crate::calibration::{
    Calibration, CalibrationSettings, ClusteredPoints, Knowledge, Neighbourhoods, PASSES, Points, Round, Source,
};
use crate::discovery::Discovery;
use crate::error::{DiscoverError, ParameterError};
use crate::real_time::Rule;
use crate::scenes::QueryScenes;
use crate::task::Task;

pub(super) const NAME: &str = "calibrated";

/// From so many queries on it is judged how sure items are in the space that the pile teaches. In a smaller one directions were damped
/// by the very items that would be judged, and all of them would look too sure.
const PILE: usize = 400;

/// Merges by how far items of one class lie apart, which a [`Calibration`] knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// What is known of the spread of a class.
    pub knowledge: Knowledge,
    /// Passes of moving every query to its nearest centre, at most. With 0 the tree alone decides: small clusters are not
    /// dissolved, and none are joined.
    pub refine: usize,
}

impl Default for Calibrated {
    fn default() -> Self {
        Self {
            knowledge: Knowledge::default(),
            refine: PASSES,
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "source",
        "base",
        "what it knows the spread of a class from: base classes (a calibration, where there is one)|examples|prior",
    ),
    Parameter::new("refine", "5", "most passes of moving queries to the nearest centre"),
    Parameter::new(
        "centre",
        "base",
        "in a bench, calibrate around the mean of base|task, or none",
    ),
    Parameter::new("directions", "32", "in a bench, damp so many directions within classes"),
    Parameter::new("tree", "ward", "in a bench, calibrate for a ward|average tree"),
    Parameter::new(
        "eagerness",
        "chosen",
        "in a bench, merge as eagerly as suits the pile best (chosen)|as was learnt (learnt)",
    ),
];

impl Calibrated {
    /// The method of some parameters, and how it asks to be calibrated on base classes when it was not given a calibration.
    pub(super) fn from_values(
        values: &Values,
        calibration: Option<Arc<Calibration>>,
        seed: u64,
    ) -> Result<(Self, Option<CalibrationSettings>), ParameterError> {
        let default = CalibrationSettings::default();
        let settings = CalibrationSettings {
            centre: values.get("centre", default.centre)?,
            directions: values.get("directions", default.directions)?,
            tree: values.get("tree", default.tree)?,
            eagerness: values.get("eagerness", default.eagerness)?,
            seed,
        };
        let refine = values.get("refine", PASSES)?;
        let knowledge = match (values.get("source", Source::Base)?, calibration) {
            (Source::Base, Some(calibration)) => Knowledge::Calibration(calibration),
            (Source::Base, None) => return Ok((Self::of(Knowledge::Examples, refine), Some(settings))),
            (Source::Examples, _) => Knowledge::Examples,
            (Source::Prior, _) => Knowledge::Prior,
        };
        Ok((Self::of(knowledge, refine), None))
    }

    fn of(knowledge: Knowledge, refine: usize) -> Self {
        Self { knowledge, refine }
    }

    /// The decision for a single query.
    pub(super) fn rule(&self) -> Rule {
        Rule::Calibrated(self.knowledge.clone())
    }
}

impl Discover for Calibrated {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl Calibrated {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let queries = QueryScenes::of(task);
        let collapsed = queries.collapsed(task);
        let task = collapsed.as_ref().unwrap_or(task);
        let (points, mut sorted, calibration, neighbours) = self.sort(task)?;
        sorted.put(&points, &queries.classes);
        Ok(Discovery::from_sorted(
            &points,
            sorted,
            calibration,
            queries,
            neighbours,
        ))
    }

    /// The points of a task sorted, what they were sorted by, and how many neighbours they were tied to where communities were found.
    fn sort(&self, task: &Task) -> Result<(Points, ClusteredPoints, Arc<Calibration>, Option<usize>), DiscoverError> {
        let calibration = self.knowledge.of_task(task)?;
        let points = Points::of(task, calibration.space());
        if self.refine == 0 {
            let sorted = calibration.sort(&points, self.refine);
            return Ok((points, sorted, calibration, None));
        }
        let (sorted, _) = self.sort_points(Round::First, &points, &points, &calibration);
        // What was found says in which directions items of one category differ: these are damped, and the pile is sorted anew.
        let (sorted, neighbours) = match calibration.of_pile(task, &sorted) {
            None => self.sort_points(Round::Last, &points.damped(&sorted), &points, &calibration),
            Some(of_pile) => {
                let points_of_pile = Points::of(task, of_pile.space());
                let (sorted, neighbours) = self.sort_points(Round::Last, &points_of_pile, &points_of_pile, &of_pile);
                if task.queries() >= PILE {
                    return Ok((points_of_pile, sorted, Arc::new(of_pile), Some(neighbours)));
                }
                (sorted, neighbours)
            }
        };
        Ok((points, sorted, calibration, Some(neighbours)))
    }

    /// Points sorted, with the number of neighbours they were tied to. A tree is made of the points as the calibration knows them.
    fn sort_points(
        &self,
        round: Round,
        points: &Points,
        for_tree: &Points,
        calibration: &Calibration,
    ) -> (ClusteredPoints, usize) {
        let pile = Neighbourhoods::new(points);
        let mut divisions = pile.divisions(round);
        // Where categories are as small as the classes that merges were learnt from, the tree has a vote.
        if calibration.knows_merges_of(pile.community_size(&divisions)) {
            let by_tree = calibration.sort(for_tree, self.refine);
            divisions.push(pile.division_of(&by_tree, &divisions));
        }
        pile.consensus(&divisions)
    }
}
