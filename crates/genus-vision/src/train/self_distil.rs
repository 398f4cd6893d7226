//! The objective of SimGCD: one view of an image teaches the other which category it belongs to.
//!
//! Features go two ways. A classifier compares their directions with those of a head for every category, known and new; this
//! is what remains. Beside it a small network leads to an embedding in which the two views of an image are brought together,
//! and labelled images of a class too; it is there for what it does to the features.

use std::collections::BTreeMap;

use burn_tensor::{Device, Tensor as Array, TensorData};
use genus_core::rng::Rng;

use super::contrast::contrast;
use super::distil::{DistilLoss, UNLABELLED};
use super::head::{HeadGradients, mlp, mlp_shapes, unit};
use super::objective::{Arrays, Gradients, TrainingObjective};
use super::{TrainError, fresh};
use crate::device::device;
use crate::networks::{Parts, TrainingTensors, values};
use crate::weights::Tensor;

/// The temperatures of the two contrasts: of the views of an image, of the images of a class.
const OF_VIEWS: f64 = 1.0;
const OF_CLASSES: f64 = 0.07;

/// What is trained after the network, and for what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfDistilSettings {
    /// The number of categories.
    pub heads: usize,
    /// The length of the two layers before the embedding.
    pub hidden: usize,
    /// The length of the embedding.
    pub embedding: usize,
    /// How predictions are judged.
    pub loss: DistilLoss,
}

impl Default for SelfDistilSettings {
    fn default() -> Self {
        Self {
            heads: 10,
            hidden: 2048,
            embedding: 256,
            loss: DistilLoss::default(),
        }
    }
}

/// A classifier that teaches itself, and the embedding beside it; their tensors are handed to it.
///
/// A batch is one view of every image and then another view of every image, in the same order and with the same labels.
#[derive(Clone, Debug)]
pub struct SelfDistilHead {
    inputs: usize,
    settings: SelfDistilSettings,
}

impl SelfDistilHead {
    /// The tensor of the classifier: a row a head, of which the direction counts.
    pub const CLASSIFIER: &str = "head.classifier.weight_v";

    /// Both for so many features.
    pub fn new(inputs: usize, settings: SelfDistilSettings) -> Result<Self, TrainError> {
        let SelfDistilSettings {
            heads,
            hidden,
            embedding,
            ..
        } = settings;
        let sizes = [inputs, hidden, embedding, heads];
        match sizes.contains(&0) {
            true => Err(TrainError::Sizes { sizes: sizes.to_vec() }),
            false => Ok(Self { inputs, settings }),
        }
    }

    /// The tensors at the beginning, as the authors have them: small random matrices and no biases before the embedding, and
    /// a classifier whose values are spread evenly within ±1/√d.
    pub fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor> {
        let tensors = self.shapes().into_iter().map(|(name, shape)| {
            let count = shape.iter().product();
            let mut rng = Rng::new(seed, &fresh::stream(&name));
            let values = match shape.len() {
                1 => vec![0.0; count],
                _ if name == Self::CLASSIFIER => {
                    let reach = 1.0 / (self.inputs as f64).sqrt();
                    (0..count).map(|_| (reach * (2.0 * rng.unit() - 1.0)) as f32).collect()
                }
                _ => fresh::normal(&mut rng, count, 0.02),
            };
            (name, Tensor { shape, values })
        });
        tensors.collect()
    }

    /// The loss of a batch and its gradients.
    pub fn gradients(
        &self,
        tensors: &BTreeMap<String, Tensor>,
        features: &[f32],
        labels: &[usize],
    ) -> Result<HeadGradients, TrainError> {
        self.check(labels)?;
        if features.len() != labels.len() * self.inputs {
            return Err(TrainError::Batch {
                values: features.len(),
                labels: labels.len(),
            });
        }
        let device = device();
        let flat = |values: &[f32]| Array::from_data(TensorData::new(values.to_vec(), [values.len()]), &device);
        let arrays = tensors
            .iter()
            .map(|(name, tensor)| (name.clone(), flat(&tensor.values)))
            .collect();
        let features = flat(features).reshape([labels.len(), self.inputs]);
        let found = self.backward(&arrays, features, labels, &device);
        let shapes: BTreeMap<String, Vec<usize>> = self.shapes().into_iter().collect();
        let shaped = |(name, gradient): (String, Array<1>)| {
            let shape = shapes.get(&name).cloned().unwrap_or_default();
            let values = values(gradient);
            (name, Tensor { shape, values })
        };
        Ok(HeadGradients {
            loss: found.loss,
            features: values(found.features),
            tensors: found.tensors.into_iter().map(shaped).collect(),
        })
    }

    fn lengths(&self) -> [usize; 4] {
        let SelfDistilSettings { hidden, embedding, .. } = self.settings;
        [self.inputs, hidden, hidden, embedding]
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let mut shapes = mlp_shapes(self.lengths());
        shapes.push((Self::CLASSIFIER.to_owned(), vec![self.settings.heads, self.inputs]));
        shapes
    }

    /// The loss of both contrasts, from the similarities of all rows, and its gradient.
    fn contrasts(&self, similarities: &[f32], labels: &[usize]) -> (f64, Vec<f32>) {
        let rows = labels.len();
        let supervised = self.settings.loss.supervised;
        let images: Vec<usize> = (0..rows).map(|row| row % (rows / 2).max(1)).collect();
        let (of_views, mut slope) = contrast(similarities, &images, OF_VIEWS);
        slope.iter_mut().for_each(|slope| *slope *= (1.0 - supervised) as f32);

        let labelled: Vec<usize> = (0..rows).filter(|&row| labels[row] != UNLABELLED).collect();
        let pairs = || {
            labelled
                .iter()
                .flat_map(|&a| labelled.iter().map(move |&b| a * rows + b))
        };
        let among: Vec<f32> = pairs().map(|pair| similarities[pair]).collect();
        let classes: Vec<usize> = labelled.iter().map(|&row| labels[row]).collect();
        let (of_classes, by) = contrast(&among, &classes, OF_CLASSES);
        for (pair, by) in pairs().zip(by) {
            slope[pair] += supervised as f32 * by;
        }
        ((1.0 - supervised) * of_views + supervised * of_classes, slope)
    }
}

impl TrainingObjective for SelfDistilHead {
    fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor> {
        self.first_values(seed)
    }

    fn check(&self, labels: &[usize]) -> Result<(), TrainError> {
        let heads = self.settings.heads;
        let (first, second) = labels.split_at(labels.len() / 2);
        let known = |&label: &usize| label < heads || label == UNLABELLED;
        match !first.is_empty() && first == second && first.iter().all(known) {
            true => Ok(()),
            false => Err(TrainError::Views {
                labels: labels.len(),
                heads,
            }),
        }
    }

    fn spares_vectors(&self) -> bool {
        true
    }

    fn set_teacher(&mut self, temperature: f64) {
        self.settings.loss.teacher = temperature;
    }

    fn backward(&self, tensors: &Arrays, features: Array<2>, labels: &[usize], device: &Device) -> Gradients {
        let [rows, inputs] = features.dims();
        let heads = self.settings.heads;
        let leaf = |(name, array): (&String, &Array<1>)| (name.clone(), array.clone().autodiff().require_grad());
        let live = TrainingTensors {
            tensors: tensors.iter().map(leaf).collect(),
            ..TrainingTensors::default()
        };
        let features = features.autodiff().require_grad();
        let mut parts = Parts::of_training(&live, device);
        let embedding = unit(mlp(&mut parts, features.clone(), self.lengths()));
        let classifier = unit(parts.tensor(Self::CLASSIFIER, [heads, inputs]));
        let cosines = unit(features.clone()).matmul(classifier.transpose());

        let plain = embedding.clone().inner();
        let similarities = values(plain.clone().matmul(plain.clone().transpose()));
        let (contrasts, slope) = self.contrasts(&similarities, labels);
        let slope = Array::from_data(TensorData::new(slope, [rows, rows]), device);
        let d_embedding = (slope.clone() + slope.transpose()).matmul(plain);

        let views: Vec<f64> = values(cosines.clone().inner()).into_iter().map(f64::from).collect();
        let views: Vec<Vec<f64>> = views.chunks_exact(rows / 2 * heads).map(<[f64]>::to_vec).collect();
        let (distilled, slopes) = self.settings.loss.gradients(&views, &labels[..rows / 2], heads);
        let d_cosines = Array::from_data(TensorData::new(slopes.concat(), [rows, heads]), device);

        // The gradient of this sum is the one that was found by hand.
        let sum = (embedding * d_embedding.autodiff()).sum() + (cosines * d_cosines.autodiff()).sum();
        let mut found = sum.backward();
        let grown = |(name, leaf): (String, Array<1>)| Some((name, leaf.grad_remove(&mut found)?));
        let tensors = live.tensors.into_iter().filter_map(grown).collect();
        let zero = || Array::zeros([rows, inputs], device);
        Gradients {
            loss: contrasts + distilled,
            features: features.grad_remove(&mut found).unwrap_or_else(zero),
            tensors,
            seen: Arrays::new(),
        }
    }
}
