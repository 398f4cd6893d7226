//! The projection head that the loss looks through, DINO's: it is trained with the network and then dropped.
//!
//! Its last layer is 65,536 wide, and the loss sees of it only the cosines of its outputs. Those need the 256 × 256 products of
//! its columns, never the outputs themselves: with unit rows W and G = WᵀW, the cosine of Wa and Wb is
//! aᵀGb / √(aᵀGa · bᵀGb), and a gradient of G is one of W by W · (dG + dGᵀ).

use std::collections::BTreeMap;

use burn_tensor::{Device, Tensor as Array, TensorData, activation};
use genus_core::rng::Rng;

use super::contrast::contrast;
use super::fresh;
use super::objective::{Arrays, Gradients, TrainingObjective};
use crate::networks::{Parts, TrainingTensors, values};
use crate::weights::Tensor;

/// The sizes of a projection head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// The length of the two layers inside.
    pub hidden: usize,
    /// The length of what the last layer takes.
    pub embedding: usize,
    /// The length of the last layer; with 0 there is none, and the loss sees the embedding.
    pub width: usize,
}

impl Default for HeadShape {
    fn default() -> Self {
        Self {
            hidden: 2048,
            embedding: 256,
            width: 65_536,
        }
    }
}

/// The three matrices before the last layer: their names, as in DINO's own files.
const LAYERS: [&str; 3] = ["head.mlp.0", "head.mlp.2", "head.mlp.4"];
const LAST: &str = "head.last_layer.weight_v";

/// The least length that a vector is divided by.
const LEAST: f64 = 1e-12;

/// A projection head; its tensors are handed to it.
#[derive(Clone, Debug)]
pub struct ProjectionHead {
    inputs: usize,
    shape: HeadShape,
}

/// The loss of a batch and its gradients.
#[derive(Clone, Debug)]
pub struct HeadGradients {
    /// The loss.
    pub loss: f64,
    /// With respect to the features, a row an item.
    pub features: Vec<f32>,
    /// With respect to the head's tensors.
    pub tensors: BTreeMap<String, Tensor>,
}

impl ProjectionHead {
    /// A head for so many features.
    pub fn new(inputs: usize, shape: HeadShape) -> Self {
        Self { inputs, shape }
    }

    /// The head's tensors at the beginning: small random matrices and no biases.
    pub fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor> {
        let tensors = self.shapes().into_iter().map(|(name, shape)| {
            let values = match shape.len() {
                1 => vec![0.0; shape[0]],
                _ => fresh::normal(&mut Rng::new(seed, &fresh::stream(&name)), shape.iter().product(), 0.02),
            };
            (name, Tensor { shape, values })
        });
        tensors.collect()
    }

    /// The names and shapes of all tensors.
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let HeadShape {
            hidden,
            embedding,
            width,
        } = self.shape;
        let mut shapes = mlp_shapes([self.inputs, hidden, hidden, embedding]);
        if width > 0 {
            shapes.push((LAST.to_owned(), vec![width, embedding]));
        }
        shapes
    }

    /// The contrastive loss of a batch seen through this head, and its gradients.
    pub fn gradients(
        &self,
        tensors: &BTreeMap<String, Tensor>,
        features: &[f32],
        labels: &[usize],
        temperature: f64,
    ) -> HeadGradients {
        let device = crate::device::device();
        let flat = |values: &[f32]| Array::from_data(TensorData::new(values.to_vec(), [values.len()]), &device);
        let arrays = tensors
            .iter()
            .map(|(name, tensor)| (name.clone(), flat(&tensor.values)))
            .collect();
        let features = flat(features).reshape([labels.len(), self.inputs]);
        let gradients = self.backward(&arrays, features, labels, temperature, &device);
        let shapes: BTreeMap<String, Vec<usize>> = self.shapes().into_iter().collect();
        let tensors = gradients.tensors.into_iter().map(|(name, gradient)| {
            let shape = shapes.get(&name).cloned().unwrap_or_default();
            let values = values(gradient);
            (name, Tensor { shape, values })
        });
        HeadGradients {
            loss: gradients.loss,
            features: values(gradients.features),
            tensors: tensors.collect(),
        }
    }

    fn backward(
        &self,
        tensors: &Arrays,
        features: Array<2>,
        labels: &[usize],
        temperature: f64,
        device: &Device,
    ) -> Gradients {
        let [items, inputs] = features.dims();
        let leaf = |(name, array): (&String, &Array<1>)| (name.clone(), array.clone().autodiff().require_grad());
        let mut live = TrainingTensors {
            tensors: tensors.iter().filter(|(name, _)| *name != LAST).map(leaf).collect(),
            ..TrainingTensors::default()
        };
        let features = features.autodiff().require_grad();
        let mut parts = Parts::of_training(&live, device);
        let lengths = [inputs, self.shape.hidden, self.shape.hidden, self.shape.embedding];
        let embedding = unit(mlp(&mut parts, features.clone(), lengths));

        let mut gradients = BTreeMap::new();
        let plain = embedding.clone().inner();
        let (loss, slope) = match tensors.get(LAST) {
            Some(last) => {
                let last = last.clone().reshape([self.shape.width, self.shape.embedding]);
                let (loss, slope, last) = through_last_layer(plain, last, labels, temperature, device);
                gradients.insert(LAST.to_owned(), last);
                (loss, slope)
            }
            None => {
                let similarities = plain.clone().matmul(plain.clone().transpose());
                let (loss, slope) = loss(similarities, labels, temperature, device);
                (loss, (slope.clone() + slope.transpose()).matmul(plain))
            }
        };
        // The gradient of this sum is the one that was found by hand.
        let mut found = (embedding * slope.autodiff()).sum().backward();
        for (name, leaf) in std::mem::take(&mut live.tensors) {
            if let Some(gradient) = leaf.grad_remove(&mut found) {
                gradients.insert(name, gradient);
            }
        }
        let zero = || Array::zeros([items, inputs], device);
        Gradients {
            loss,
            features: features.grad_remove(&mut found).unwrap_or_else(zero),
            tensors: gradients,
            seen: Arrays::new(),
        }
    }
}

/// Images of a class are brought together, seen through a head.
#[derive(Debug)]
pub(crate) struct ContrastiveObjective {
    pub(crate) head: ProjectionHead,
    pub(crate) temperature: f64,
}

impl TrainingObjective for ContrastiveObjective {
    fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor> {
        self.head.first_values(seed)
    }

    fn backward(&self, tensors: &Arrays, features: Array<2>, labels: &[usize], device: &Device) -> Gradients {
        self.head.backward(tensors, features, labels, self.temperature, device)
    }
}

/// The names and shapes of the tensors of the layers before the last; `lengths` are those of what is between them.
pub(crate) fn mlp_shapes(lengths: [usize; 4]) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    for (name, ends) in LAYERS.iter().zip(lengths.windows(2)) {
        shapes.push((format!("{name}.weight"), vec![ends[1], ends[0]]));
        shapes.push((format!("{name}.bias"), vec![ends[1]]));
    }
    shapes
}

/// Rows of features through those layers.
pub(crate) fn mlp(parts: &mut Parts, features: Array<2>, lengths: [usize; 4]) -> Array<2> {
    let items = features.dims()[0];
    let mut x = features.reshape([1, items, lengths[0]]);
    for (at, name) in LAYERS.iter().enumerate() {
        x = parts.linear(name, &[lengths[at + 1], lengths[at]]).forward(x);
        if at + 1 < LAYERS.len() {
            x = activation::gelu(x);
        }
    }
    x.reshape([items, lengths[3]])
}

/// Rows of length one.
pub(crate) fn unit(x: Array<2>) -> Array<2> {
    let length = x.clone().powi_scalar(2).sum_dim(1).sqrt().clamp_min(LEAST);
    x / length
}

/// The loss of a matrix of similarities and its gradient.
fn loss(similarities: Array<2>, labels: &[usize], temperature: f64, device: &Device) -> (f64, Array<2>) {
    let shape = similarities.dims();
    let (loss, slope) = contrast(&values(similarities), labels, temperature);
    (loss, Array::from_data(TensorData::new(slope, shape), device))
}

/// The loss of unit embeddings seen through the last layer, and the gradients of both.
fn through_last_layer(
    b: Array<2>,
    last: Array<2>,
    labels: &[usize],
    temperature: f64,
    device: &Device,
) -> (f64, Array<2>, Array<1>) {
    let lengths = last.clone().powi_scalar(2).sum_dim(1).sqrt().clamp_min(LEAST);
    let w = last / lengths.clone();
    let g = w.clone().transpose().matmul(w.clone());
    // Cosines of the outputs: products divided by both lengths.
    let y = b.clone().matmul(g);
    let products = y.clone().matmul(b.clone().transpose());
    let inverse = (y.clone() * b.clone())
        .sum_dim(1)
        .clamp_min(LEAST * LEAST)
        .sqrt()
        .recip();
    let scale = inverse.clone().matmul(inverse.clone().transpose());
    let (loss, slope) = loss(products.clone() * scale.clone(), labels, temperature, device);

    let both = slope.clone() + slope.clone().transpose();
    let d_inverse = (both.clone() * products).matmul(inverse.clone());
    // The gradient of each squared length; a square root in a denominator.
    let d_square = d_inverse * inverse.powi_scalar(3) * (-0.5);
    let d_b = (both * scale.clone()).matmul(y.clone()) + y * d_square.clone() * 2.0;
    let d_products = slope * scale;
    let d_g = b
        .clone()
        .transpose()
        .matmul(d_products.matmul(b.clone()) + b * d_square);
    let d_w = w.clone().matmul(d_g.clone() + d_g.transpose());
    // Rows keep their length: what points along a row does not count.
    let along = (w.clone() * d_w.clone()).sum_dim(1);
    let d_last = (d_w - w * along) / lengths;
    let [width, embedding] = d_last.dims();
    (loss, d_b, d_last.reshape([width * embedding]))
}
