//! What a network is trained for: what its features go through, and the loss.

use std::collections::BTreeMap;
use std::fmt::Debug;

use burn_tensor::{Device, Tensor as Array};

use super::TrainError;
use super::hash::{HashObjective, HashSettings};
use super::head::{ContrastiveObjective, HeadShape, ProjectionHead};
use super::self_distil::{SelfDistilHead, SelfDistilSettings};
use crate::weights::Tensor;

/// Tensors by name, each flat.
pub(crate) type Arrays = BTreeMap<String, Array<1>>;

/// What a network is trained for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectiveSettings {
    /// Images of a class are brought together, seen through a projection head that is dropped in the end.
    Contrast {
        /// The projection head.
        head: HeadShape,
        /// The temperature of the loss.
        temperature: f64,
    },
    /// Images of a class get the same code of bits.
    Hash(HashSettings),
    /// Images learn their categories, known and new, from other views of themselves.
    SelfDistil(SelfDistilSettings),
}

impl Default for ObjectiveSettings {
    fn default() -> Self {
        Self::Contrast {
            head: HeadShape::default(),
            temperature: 0.07,
        }
    }
}

impl ObjectiveSettings {
    /// The objective for a network of so many features.
    pub(crate) fn objective(self, inputs: usize) -> Result<Box<dyn TrainingObjective>, TrainError> {
        match self {
            Self::Contrast { head, temperature } => Ok(Box::new(ContrastiveObjective {
                head: ProjectionHead::new(inputs, head),
                temperature,
            })),
            Self::Hash(settings) => {
                settings.shape.check(inputs)?;
                Ok(Box::new(HashObjective::new(inputs, settings)))
            }
            Self::SelfDistil(settings) => Ok(Box::new(SelfDistilHead::new(inputs, settings)?)),
        }
    }
}

/// What comes after a network in training: it takes the features of a batch, and gives the loss and its gradients.
///
/// It holds no tensors: those are handed to it, and their names begin with `head.`.
pub(crate) trait TrainingObjective: Debug + Send + Sync {
    /// The tensors that are trained, as they are at the beginning.
    fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor>;

    /// The tensors that are not trained but follow what batches are like, as they are at the beginning: running means and
    /// variances.
    fn first_statistics(&self) -> BTreeMap<String, Tensor> {
        BTreeMap::new()
    }

    /// Whether these can be the labels of a batch.
    fn check(&self, _labels: &[usize]) -> Result<(), TrainError> {
        Ok(())
    }

    /// Whether biases and all else that is not a matrix are not drawn to zero.
    fn spares_vectors(&self) -> bool {
        false
    }

    /// Sets the temperature of predictions that teach, if there are such.
    fn set_teacher(&mut self, _temperature: f64) {}

    /// The loss of a batch and its gradients; `tensors` are those that are trained, `labels` passed the check.
    fn backward(&self, tensors: &Arrays, features: Array<2>, labels: &[usize], device: &Device) -> Gradients;
}

/// The loss of a batch, its gradients, and what the batch is like.
pub(crate) struct Gradients {
    pub(crate) loss: f64,
    /// With respect to the features, a row an item.
    pub(crate) features: Array<2>,
    /// With respect to the tensors.
    pub(crate) tensors: Arrays,
    /// What running statistics are to take over, under their names.
    pub(crate) seen: Arrays,
}
