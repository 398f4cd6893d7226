//! ProtoNet: the nearest known class, whatever the query is.

use super::{Discover, Parameter, check_known};
use crate::discovery::{Discovery, Stop};
use crate::error::DiscoverError;
use crate::real_time::nearest;
use crate::task::Task;

pub(super) const NAME: &str = "proto";
pub(super) const PARAMETERS: &[Parameter] = &[];

/// Puts every query with the prototype of the largest cosine; finds nothing new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Proto;

impl Discover for Proto {
    fn discover(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        task.in_canonical_order(|task| self.discover_in_order(task))
    }
}

impl Proto {
    fn discover_in_order(&self, task: &Task) -> Result<Discovery, DiscoverError> {
        let known = task.known();
        check_known(NAME, 1, known)?;
        let queries = (known..task.points().rows()).map(|point| nearest(task.prototype_dots(point)));
        let clusters = (0..known).chain(queries).collect();
        Ok(Discovery::from_clusters(task, clusters, Stop::Direct))
    }
}
