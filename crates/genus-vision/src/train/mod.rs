//! Training: the last blocks of a network learn, on batches of labelled images, to bring those of a class together.
//!
//! A [`Trainer`] takes one step at a time; where batches come from, how long it goes on and what is kept is the caller's.
//!
//! ```
//! use genus_vision::train::{HeadShape, ObjectiveSettings, Trainer, TrainerSettings};
//! use genus_vision::{Architecture, Weights};
//!
//! let architecture = Architecture::Conv4(4);
//! let weights = Weights::first_values(&architecture, 16, 0)?;
//! let head = HeadShape { hidden: 8, embedding: 8, width: 16 };
//! let objective = ObjectiveSettings::Contrast { head, temperature: 0.07 };
//! let settings = TrainerSettings { blocks: None, objective, ..TrainerSettings::default() };
//! let mut trainer = Trainer::new(architecture, 16, weights, settings, 0)?;
//! // Two dark images and two bright ones.
//! let pixels: Vec<f32> = [-1.0, -0.9, 0.9, 1.0].iter().flat_map(|&v| vec![v; 3 * 16 * 16]).collect();
//! let before = trainer.weights();
//! let loss = trainer.step(&pixels, &[0, 0, 1, 1], 0.01)?;
//! assert!(loss > 0.0 && trainer.weights() != before);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contrast;
mod descent;
mod distil;
mod fresh;
mod hash;
mod head;
mod objective;
mod self_distil;
mod trunk;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

use burn_tensor::{Device, Tensor as Array, TensorData};
use genus_kernels::{Isa, Precision};
use thiserror::Error;

pub use distil::{DistilLoss, UNLABELLED};
pub use hash::{HashHead, HashSettings, HashShape, HashTrainer};
pub use head::{HeadGradients, HeadShape, ProjectionHead};
pub use objective::ObjectiveSettings;
pub use self_distil::{SelfDistilHead, SelfDistilSettings};
pub use trunk::{Trunk, TrunkStore};

use descent::Sgd;
use objective::{Arrays, Gradients, TrainingObjective};

use crate::device::{device, on_processor};
use crate::networks::{Architecture, ArchitectureError, Network, Parts, TrainingTensors, values};
use crate::runner::Runner;
use crate::weights::{Tensor, Weights};
use crate::workers::Workers;

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerSettings {
    /// How many of the last blocks are trained; `None` for the whole network.
    pub blocks: Option<usize>,
    /// What it is trained for.
    pub objective: ObjectiveSettings,
    /// How much of its direction a step takes over from the one before.
    pub momentum: f64,
    /// How strongly every trained value is drawn to zero.
    pub weight_decay: f64,
    /// Whether batch normalisations of trained blocks keep the statistics that they came with, instead of those of the batch.
    /// A pretrained network does better so: a batch of a few classes is not what it will see.
    pub fixed_statistics: bool,
    /// What the frozen blocks run on.
    pub isa: Isa,
}

impl Default for TrainerSettings {
    fn default() -> Self {
        Self {
            blocks: Some(2),
            objective: ObjectiveSettings::default(),
            momentum: 0.9,
            weight_decay: 5e-5,
            fixed_statistics: false,
            isa: Isa::best(Precision::F32).unwrap_or(Isa::Portable),
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
    /// A batch that does not fit this network.
    #[error("{values} values are not the images of {labels} labels")]
    Batch {
        /// The number of values.
        values: usize,
        /// The number of labels.
        labels: usize,
    },
    /// Values that are no rows of features.
    #[error("{values} values are not rows of {inputs} features")]
    Rows {
        /// The number of values.
        values: usize,
        /// The number of features of a row.
        inputs: usize,
    },
    /// A head that has a layer of nothing.
    #[error("a head of lengths {sizes:?} cannot be trained: each must be at least one")]
    Sizes {
        /// The lengths of its layers.
        sizes: Vec<usize>,
    },
    /// A batch that is not two views of the same images, or has labels without a head.
    #[error("{labels} rows are not one view and another of images with the same labels, below {heads}")]
    Views {
        /// The number of labels.
        labels: usize,
        /// The number of heads.
        heads: usize,
    },
    /// The loss is not finite.
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
    objective: Box<dyn TrainingObjective>,
    /// The whole network as it was at the beginning.
    network: BTreeMap<String, Tensor>,
    /// What is trained, of the network and of what comes after it, and what is used with it.
    descent: Sgd,
    trunk: Option<Trunk>,
    device: Device,
    workers: Workers,
}

impl Trainer {
    /// Prepares the training of a network for images of `image` pixels a side; `seed` makes what comes after it.
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
            ..Weights::default()
        };
        Network::new(architecture, image, whole, device.clone())?;

        let mut parts = Parts::of_file(network.clone(), &device);
        Network::part(&architecture, image, &mut parts, span.clone(), &device)?;
        let objective = settings.objective.objective(architecture.dim())?;
        let (mut parameters, mut fixed) = (objective.first_values(seed), objective.first_statistics());
        for (name, _) in parts.wanted() {
            let Some(tensor) = network.get(&name) else { continue };
            if trains(&name, span.start) {
                parameters.insert(name, tensor.clone());
            } else {
                fixed.insert(name, tensor.clone());
            }
        }
        let descent = Sgd::new(parameters, fixed, settings.momentum, settings.weight_decay, &device)
            .sparing_vectors(objective.spares_vectors());
        let workers = Workers::new();
        let trunk = match span.start {
            0 => None,
            cut => {
                let mut parts = Parts::of_file(network.clone(), &device);
                let network = Network::part(&architecture, image, &mut parts, 0..cut, &device)?;
                Some(Trunk {
                    runner: Runner::new(network, image, settings.isa),
                })
            }
        };
        Ok(Self {
            architecture,
            image,
            span,
            settings,
            objective,
            network,
            descent,
            trunk,
            device,
            workers,
        })
    }

    /// The architecture with the sizes that the weights have.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// What the frozen blocks run on.
    pub fn isa(&self) -> Isa {
        self.settings.isa
    }

    /// The frozen blocks, if there are any.
    pub fn trunk(&self) -> Option<&Trunk> {
        self.trunk.as_ref()
    }

    /// The number of values that are trained, those of the head included.
    pub fn trained_values(&self) -> usize {
        self.descent.trained().map(|(_, value)| value.dims()[0]).sum()
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
        self.objective.check(labels)?;
        let together = self.architecture.has_batch_norms() && !self.settings.fixed_statistics;
        let (loss, gradients, seen) = if together || !on_processor() {
            self.gradients_of_batch(inputs, labels)?
        } else {
            self.gradients_side_by_side(inputs, labels)?
        };
        if !loss.is_finite() {
            return Err(TrainError::NotFinite { loss });
        }
        self.descent.step(gradients, seen, learning_rate);
        Ok(loss)
    }

    /// The trained blocks as one forward pass sees them, and their tensors; those of the graph when gradients are wanted.
    fn tail(
        &self,
        with_gradients: bool,
        fixed_statistics: bool,
    ) -> Result<(Network, TrainingTensors), ArchitectureError> {
        let network = |(name, _): &(&String, &Array<1>)| !is_head(name);
        let trained = self.descent.trained().filter(network).map(|(name, value)| {
            let value = value.clone();
            let value = if with_gradients {
                value.autodiff().require_grad()
            } else {
                value
            };
            (name.clone(), value)
        });
        let fixed = self.descent.fixed().filter(network);
        let fixed = fixed.map(|(name, value)| (name.clone(), value.clone()));
        let live = TrainingTensors {
            tensors: trained.chain(fixed).collect(),
            fixed_statistics,
            ..TrainingTensors::default()
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

    fn through_objective(&self, features: Array<2>, labels: &[usize]) -> Gradients {
        let head = self.descent.trained().filter(|(name, _)| is_head(name));
        let head = head.map(|(name, value)| (name.clone(), value.clone())).collect();
        self.objective.backward(&head, features, labels, &self.device)
    }

    /// The loss, the gradients of all parameters, and what running statistics are to take over, of a batch as a whole.
    fn gradients_of_batch(&self, inputs: &[f32], labels: &[usize]) -> Result<(f64, Arrays, Arrays), TrainError> {
        let (tail, live) = self.tail(true, self.settings.fixed_statistics)?;
        let features = tail.forward(inputs, labels.len());
        let through = self.through_objective(features.clone().inner(), labels);
        let mut gradients = through.tensors;
        gradients.extend(backward(features, through.features, &live));
        let mut seen = through.seen;
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
        let features = self.features_side_by_side(&chunks, each)?;
        let dim = self.architecture.dim();
        let features = Array::from_data(TensorData::new(features, [labels.len(), dim]), &self.device);
        let through = self.through_objective(features, labels);
        let slopes = values(through.features);

        let sum: Mutex<(usize, Result<Arrays, ArchitectureError>)> = Mutex::new((0, Ok(through.tensors)));
        let added = Condvar::new();
        self.workers.run(chunks.len(), |at| {
            let gradients = self.tail(true, true).map(|(tail, live)| {
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
        Ok((through.loss, gradients?, through.seen))
    }

    /// The features of pieces of a batch, by the statistics that are kept.
    fn features_side_by_side(&self, chunks: &[&[f32]], each: usize) -> Result<Vec<f32>, ArchitectureError> {
        let (plain, _) = self.tail(false, true)?;
        Ok(self.workers.rows(chunks.len(), |at| {
            values(plain.forward(chunks[at], chunks[at].len() / each))
        }))
    }

    /// The features that the network as it is now gives for images, a row an image.
    ///
    /// `inputs` is as in a [`step`](Self::step), with as many values of each image as there are in all, divided by `images`.
    pub fn features(&self, inputs: &[f32], images: usize) -> Result<Vec<f32>, TrainError> {
        if images == 0 || inputs.is_empty() || !inputs.len().is_multiple_of(images) {
            return Err(TrainError::Batch {
                values: inputs.len(),
                labels: images,
            });
        }
        let each = inputs.len() / images;
        let chunks: Vec<&[f32]> = inputs.chunks(each).collect();
        Ok(self.features_side_by_side(&chunks, each)?)
    }

    /// Begins anew with the network of the beginning; `seed` makes what comes after it.
    pub fn restart(&mut self, seed: u64) {
        let of_network = |(name, _): (&String, &Array<1>)| Some((name.clone(), self.network.get(name)?.clone()));
        let mut parameters = self.objective.first_values(seed);
        parameters.extend(self.descent.trained().filter_map(of_network));
        let mut fixed = self.objective.first_statistics();
        fixed.extend(self.descent.fixed().filter_map(of_network));
        let TrainerSettings {
            momentum, weight_decay, ..
        } = self.settings;
        self.descent = Sgd::new(parameters, fixed, momentum, weight_decay, &self.device)
            .sparing_vectors(self.objective.spares_vectors());
    }

    /// Sets the temperature of predictions that teach; objectives without a teacher do not change.
    pub fn set_teacher(&mut self, temperature: f64) {
        self.objective.set_teacher(temperature);
    }

    /// Everything that the next step depends on, by name.
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        self.descent.state()
    }

    /// Goes back to a state that [`state`](Self::state) gave; nothing is changed when it does not fit.
    pub fn restore(&mut self, state: BTreeMap<String, Tensor>) -> Result<(), TrainError> {
        self.descent.restore(state)
    }

    /// The whole network as it is now, without what comes after it.
    pub fn weights(&self) -> Weights {
        let mut tensors = self.network.clone();
        for (name, value) in self.descent.trained().chain(self.descent.fixed()) {
            if let Some(tensor) = tensors.get_mut(name) {
                tensor.values = values(value.clone());
            }
        }
        Weights {
            tensors,
            ..Weights::default()
        }
    }

    /// What comes after the network as it is now: the tensors of its objective, running statistics included.
    pub fn head(&self) -> BTreeMap<String, Tensor> {
        self.descent.tensors(is_head)
    }
}

/// About as many values as keep a thread busy without crowding the caches: four images of a ViT-B/16.
const CHUNK_VALUES: usize = 1 << 20;

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
fn backward(output: Array<2>, slope: Array<2>, live: &TrainingTensors) -> Arrays {
    // The gradient of this sum is the one that is given.
    let mut gradients = (output * slope.autodiff()).sum().backward();
    let found = |(name, leaf): (&String, &Array<1>)| Some((name.clone(), leaf.grad_remove(&mut gradients)?));
    live.tensors.iter().filter_map(found).collect()
}
