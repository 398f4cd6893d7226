//! Training: the last blocks of a network learn, on batches of labelled images, to bring those of a class together.
//!
//! A [`Trainer`] takes one step at a time; where batches come from, how long it goes on and what is kept is the caller's.
//!
//! ```
//! use genus_vision::train::{HeadShape, Trainer, TrainerSettings};
//! use genus_vision::{Architecture, Weights};
//!
//! let architecture = Architecture::Conv4(4);
//! let weights = Weights::first_values(&architecture, 16, 0)?;
//! let head = HeadShape { hidden: 8, embedding: 8, width: 16 };
//! let settings = TrainerSettings { blocks: None, head, ..TrainerSettings::default() };
//! let mut trainer = Trainer::new(architecture, 16, weights, settings, 0)?;
//! // Two dark images and two bright ones.
//! let pixels: Vec<f32> = [-1.0, -0.9, 0.9, 1.0].iter().flat_map(|&v| vec![v; 3 * 16 * 16]).collect();
//! let before = trainer.weights();
//! let loss = trainer.step(&pixels, &[0, 0, 1, 1], 0.01)?;
//! assert!(loss > 0.0 && trainer.weights() != before);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contrast;
mod fresh;
mod head;
mod trunk;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

use burn_tensor::{Device, Tensor as Array, TensorData};
use thiserror::Error;

pub use head::{Head, HeadGradients, HeadShape};
pub use trunk::{Trunk, TrunkStore};

use crate::networks::{Architecture, ArchitectureError, Live, Network, Parts, values};
use crate::portable::{device, on_processor};
use crate::weights::{Tensor, Weights};
use crate::workers::Workers;

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerSettings {
    /// How many of the last blocks are trained; `None` for the whole network.
    pub blocks: Option<usize>,
    /// The projection head.
    pub head: HeadShape,
    /// The temperature of the loss.
    pub temperature: f64,
    /// How much of its direction a step takes over from the one before.
    pub momentum: f64,
    /// How strongly every trained value is drawn to zero.
    pub weight_decay: f64,
    /// Whether batch normalisations of trained blocks keep the statistics that they came with, instead of those of the batch.
    /// A pretrained network does better so: a batch of a few classes is not what it will see.
    pub fixed_statistics: bool,
}

impl Default for TrainerSettings {
    fn default() -> Self {
        Self {
            blocks: Some(2),
            head: HeadShape::default(),
            temperature: 0.07,
            momentum: 0.9,
            weight_decay: 5e-5,
            fixed_statistics: false,
        }
    }
}

/// Why a network cannot be trained.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The weights are not those of the architecture.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// More blocks than there are, or none.
    #[error("{blocks} blocks cannot be trained: the network has {depth}")]
    Blocks {
        /// How many were asked for.
        blocks: usize,
        /// How many there are.
        depth: usize,
    },
    /// A batch that is no batch of this network.
    #[error("{values} values are not the images of {labels} labels")]
    Batch {
        /// The number of values.
        values: usize,
        /// The number of labels.
        labels: usize,
    },
    /// The loss is no number any more.
    #[error("the loss is {loss}")]
    NotFinite {
        /// The loss.
        loss: f64,
    },
    /// A state that is not one of this training.
    #[error("the state does not fit: {problem}")]
    State {
        /// What is wrong.
        problem: String,
    },
}

/// A network in training.
#[derive(Debug)]
pub struct Trainer {
    architecture: Architecture,
    image: usize,
    /// The blocks that are trained.
    span: Range<usize>,
    settings: TrainerSettings,
    head: Head,
    /// The whole network as it was at the beginning.
    network: BTreeMap<String, Tensor>,
    /// What is trained, of the network and of the head.
    parameters: BTreeMap<String, Parameter>,
    /// What the trained blocks use and is not trained by gradients: the last norm of a transformer, running statistics.
    fixed: BTreeMap<String, Array<1>>,
    trunk: Option<Trunk>,
    device: Device,
    workers: Workers,
}

#[derive(Clone, Debug)]
struct Parameter {
    value: Array<1>,
    momentum: Array<1>,
}

/// How much running statistics take over of a batch, as in PyTorch.
const RUNNING: f64 = 0.1;

type Arrays = BTreeMap<String, Array<1>>;

impl Trainer {
    /// Prepares the training of a network for images of `image` pixels a side; `seed` makes the head.
    pub fn new(
        architecture: Architecture,
        image: usize,
        weights: Weights,
        settings: TrainerSettings,
        seed: u64,
    ) -> Result<Self, TrainError> {
        let device = device();
        let (architecture, mut network) = architecture.settle(weights)?;
        let depth = architecture.blocks();
        let blocks = settings.blocks.unwrap_or(depth);
        if blocks == 0 || blocks > depth {
            return Err(TrainError::Blocks { blocks, depth });
        }
        let span = depth - blocks..depth;
        if let (
            0,
            Architecture::Vit {
                shape: Some(shape),
                positions,
                ..
            },
            Some(embedding),
        ) = (span.start, &architecture, network.get_mut("pos_embed"))
        {
            // Positions that are trained are those of the images that they are trained on.
            let side = image / shape.patch.max(1);
            if let Some(values) = positions.fit(embedding, side, shape.dim) {
                *embedding = Tensor {
                    shape: vec![1, 1 + side * side, shape.dim],
                    values,
                };
            }
        }
        // The whole network is built once: it says what is wrong with the weights.
        let whole = Weights {
            tensors: network.clone(),
            part: None,
        };
        Network::new(architecture, image, whole, device.clone())?;

        let flat =
            |tensor: &Tensor| Array::from_data(TensorData::new(tensor.values.clone(), [tensor.values.len()]), &device);
        let mut parts = Parts::of_file(network.clone(), &device);
        Network::part(&architecture, image, &mut parts, span.clone(), &device)?;
        let head = Head::new(architecture.dim(), settings.head);
        let (mut parameters, mut fixed) = (head.first_values(seed), BTreeMap::new());
        for (name, _) in parts.wanted() {
            let Some(tensor) = network.get(&name) else { continue };
            if trains(&name, span.start) {
                parameters.insert(name, tensor.clone());
            } else {
                fixed.insert(name, flat(tensor));
            }
        }
        let parameters = parameters.into_iter().map(|(name, tensor)| {
            let value = flat(&tensor);
            let momentum = value.zeros_like();
            (name, Parameter { value, momentum })
        });
        let workers = Workers::new();
        let trunk = match span.start {
            0 => None,
            cut => {
                let mut parts = Parts::of_file(network.clone(), &device);
                Some(Trunk {
                    network: Network::part(&architecture, image, &mut parts, 0..cut, &device)?,
                    image: 3 * image * image,
                    workers: Workers::new(),
                })
            }
        };
        Ok(Self {
            parameters: parameters.collect(),
            architecture,
            image,
            span,
            settings,
            head,
            network,
            fixed,
            trunk,
            device,
            workers,
        })
    }

    /// The architecture with the sizes that the weights have.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The frozen blocks, if there are any.
    pub fn trunk(&self) -> Option<&Trunk> {
        self.trunk.as_ref()
    }

    /// The number of values that are trained, those of the head included.
    pub fn trained_values(&self) -> usize {
        self.parameters
            .values()
            .map(|parameter| parameter.value.dims()[0])
            .sum()
    }

    /// One step on a batch; the loss before the step.
    ///
    /// `inputs` is what the trunk gives, or pixels when the whole network is trained, a row an image. When the loss is no
    /// finite number nothing is changed.
    pub fn step(&mut self, inputs: &[f32], labels: &[usize], learning_rate: f64) -> Result<f64, TrainError> {
        if labels.is_empty() || inputs.is_empty() || !inputs.len().is_multiple_of(labels.len()) {
            return Err(TrainError::Batch {
                values: inputs.len(),
                labels: labels.len(),
            });
        }
        let together = self.architecture.has_batch_norms() && !self.settings.fixed_statistics;
        let (loss, gradients, seen) = if together || !on_processor() {
            self.gradients_of_batch(inputs, labels)?
        } else {
            self.gradients_side_by_side(inputs, labels)?
        };
        if !loss.is_finite() {
            return Err(TrainError::NotFinite { loss });
        }
        let TrainerSettings {
            momentum, weight_decay, ..
        } = self.settings;
        for (name, gradient) in gradients {
            let Some(parameter) = self.parameters.get_mut(&name) else {
                continue;
            };
            let Parameter {
                value,
                momentum: before,
            } = parameter.clone();
            let direction = before * momentum + gradient + value.clone() * weight_decay;
            *parameter = Parameter {
                value: value - direction.clone() * learning_rate,
                momentum: direction,
            };
        }
        for (name, batch) in seen {
            if let Some(running) = self.fixed.get_mut(&name) {
                *running = running.clone() * (1.0 - RUNNING) + batch * RUNNING;
            }
        }
        Ok(loss)
    }

    /// The trained blocks as one forward pass sees them, and their tensors; those of the graph when gradients are wanted.
    fn tail(&self, with_gradients: bool) -> Result<(Network, Live), ArchitectureError> {
        let network = self.parameters.iter().filter(|(name, _)| !is_head(name));
        let trained = network.map(|(name, parameter)| {
            let value = parameter.value.clone();
            let value = if with_gradients {
                value.autodiff().require_grad()
            } else {
                value
            };
            (name.clone(), value)
        });
        let fixed = self.fixed.iter().map(|(name, value)| (name.clone(), value.clone()));
        let live = Live {
            tensors: trained.chain(fixed).collect(),
            fixed_statistics: self.settings.fixed_statistics,
            ..Live::default()
        };
        let mut parts = Parts::of_training(&live, &self.device);
        let tail = Network::part(
            &self.architecture,
            self.image,
            &mut parts,
            self.span.clone(),
            &self.device,
        )?;
        Ok((tail, live))
    }

    fn through_head(&self, features: Array<2>, labels: &[usize]) -> head::Gradients {
        let head = self.parameters.iter().filter(|(name, _)| is_head(name));
        let head = head.map(|(name, parameter)| (name.clone(), parameter.value.clone()));
        self.head.backward(
            &head.collect(),
            features,
            labels,
            self.settings.temperature,
            &self.device,
        )
    }

    /// The loss, the gradients of all parameters, and what running statistics are to take over, of a batch as a whole.
    fn gradients_of_batch(&self, inputs: &[f32], labels: &[usize]) -> Result<(f64, Arrays, Arrays), TrainError> {
        let (tail, live) = self.tail(true)?;
        let features = tail.forward(inputs, labels.len());
        let through = self.through_head(features.clone().inner(), labels);
        let mut gradients = through.tensors;
        gradients.extend(backward(features, through.features, &live));
        let mut seen = BTreeMap::new();
        for batch in live.seen.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            seen.insert(format!("{}.running_mean", batch.norm), batch.mean);
            seen.insert(format!("{}.running_var", batch.norm), batch.variance);
        }
        Ok((through.loss, gradients, seen))
    }

    /// The same for networks in which images know nothing of each other: a few at a time on every thread, first without
    /// gradients, then, when the loss is known, once more with them. What this computes twice is a fraction of a step, and
    /// the memory of a step is that of a few images.
    fn gradients_side_by_side(&self, inputs: &[f32], labels: &[usize]) -> Result<(f64, Arrays, Arrays), TrainError> {
        let each = inputs.len() / labels.len();
        // Fixed by the batch alone, so that sums are made in one order whatever the number of threads.
        let chunk = (CHUNK_VALUES / each).clamp(1, labels.len().div_ceil(8));
        let chunks: Vec<&[f32]> = inputs.chunks(chunk * each).collect();
        let (plain, _) = self.tail(false)?;
        let features = self.workers.rows(chunks.len(), |at| {
            values(plain.forward(chunks[at], chunks[at].len() / each))
        });
        let dim = self.architecture.dim();
        let features = Array::from_data(TensorData::new(features, [labels.len(), dim]), &self.device);
        let through = self.through_head(features, labels);
        let slopes = values(through.features);

        let sum: Mutex<(usize, Result<Arrays, ArchitectureError>)> = Mutex::new((0, Ok(through.tensors)));
        let added = Condvar::new();
        self.workers.run(chunks.len(), |at| {
            let gradients = self.tail(true).map(|(tail, live)| {
                let images = chunks[at].len() / each;
                let slope = slopes[at * chunk * dim..][..images * dim].to_vec();
                let slope = Array::from_data(TensorData::new(slope, [images, dim]), &self.device);
                backward(tail.forward(chunks[at], images), slope, &live)
            });
            let waiting = sum.lock().unwrap_or_else(PoisonError::into_inner);
            // Chunks are begun in order, so whoever is waited for is at work.
            let mut turn = added
                .wait_while(waiting, |(next, _)| *next != at)
                .unwrap_or_else(PoisonError::into_inner);
            turn.0 += 1;
            match (&mut turn.1, gradients) {
                (Ok(sum), Ok(gradients)) => {
                    for (name, gradient) in gradients {
                        let sum = sum.entry(name);
                        sum.and_modify(|sum| *sum = sum.clone() + gradient.clone())
                            .or_insert(gradient);
                    }
                }
                (Ok(_), Err(error)) => turn.1 = Err(error),
                (Err(_), _) => {}
            }
            added.notify_all();
        });
        let (_, gradients) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((through.loss, gradients?, BTreeMap::new()))
    }

    /// Everything that the next step depends on, by name.
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let tensor = |array: &Array<1>| Tensor {
            shape: array.dims().to_vec(),
            values: values(array.clone()),
        };
        let mut state = BTreeMap::new();
        for (name, parameter) in &self.parameters {
            state.insert(format!("{VALUE}{name}"), tensor(&parameter.value));
            state.insert(format!("{MOMENTUM}{name}"), tensor(&parameter.momentum));
        }
        for (name, value) in &self.fixed {
            state.insert(format!("{FIXED}{name}"), tensor(value));
        }
        state
    }

    /// Goes back to a state that [`state`](Self::state) gave; nothing is changed when it does not fit.
    pub fn restore(&mut self, mut state: BTreeMap<String, Tensor>) -> Result<(), TrainError> {
        let device = self.device.clone();
        let mut take = |name: String, length: usize| {
            let problem = match state.remove(&name) {
                Some(tensor) if tensor.values.len() == length => {
                    return Ok(Array::from_data(TensorData::new(tensor.values, [length]), &device));
                }
                Some(tensor) => format!("{name} has {} values and not {length}", tensor.values.len()),
                None => format!("{name} is missing"),
            };
            Err(TrainError::State { problem })
        };
        let (mut parameters, mut fixed) = (self.parameters.clone(), self.fixed.clone());
        for (name, parameter) in &mut parameters {
            let length = parameter.value.dims()[0];
            parameter.value = take(format!("{VALUE}{name}"), length)?;
            parameter.momentum = take(format!("{MOMENTUM}{name}"), length)?;
        }
        for (name, value) in &mut fixed {
            *value = take(format!("{FIXED}{name}"), value.dims()[0])?;
        }
        if let Some(name) = state.keys().next() {
            let problem = format!("{name} is not part of it");
            return Err(TrainError::State { problem });
        }
        (self.parameters, self.fixed) = (parameters, fixed);
        Ok(())
    }

    /// The whole network as it is now, without the head.
    pub fn weights(&self) -> Weights {
        let mut tensors = self.network.clone();
        let trained = self.parameters.iter().map(|(name, parameter)| (name, &parameter.value));
        for (name, value) in trained.chain(&self.fixed) {
            if let Some(tensor) = tensors.get_mut(name) {
                tensor.values = values(value.clone());
            }
        }
        Weights { tensors, part: None }
    }
}

/// About as many values as keep a thread busy without crowding the caches: four images of a ViT-B/16.
const CHUNK_VALUES: usize = 1 << 20;

/// What the tensors of a state are called.
const VALUE: &str = "value.";
const MOMENTUM: &str = "momentum.";
const FIXED: &str = "fixed.";

fn is_head(name: &str) -> bool {
    name.starts_with("head.")
}

/// Whether gradients change a tensor of the trained blocks. As in the authors' code, the last norm of a transformer stays as
/// it is unless all of the transformer is trained.
fn trains(name: &str, first: usize) -> bool {
    let running = name.ends_with(".running_mean") || name.ends_with(".running_var");
    let last_norm = name.starts_with("norm.") && first > 0;
    !running && !last_norm
}

/// The gradients of all tensors of a forward pass, given that of what it gave.
fn backward(output: Array<2>, slope: Array<2>, live: &Live) -> Arrays {
    // The gradient of this sum is the one that is given.
    let mut gradients = (output * slope.autodiff()).sum().backward();
    let found = |(name, leaf): (&String, &Array<1>)| Some((name.clone(), leaf.grad_remove(&mut gradients)?));
    live.tensors.iter().filter_map(found).collect()
}
