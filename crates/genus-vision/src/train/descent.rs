//! Gradient descent with momentum: the tensors of a training, and what a step makes of them.

use std::collections::BTreeMap;

use burn_tensor::{Device, Tensor as Array, TensorData};

use super::TrainError;
use super::objective::Arrays;
use crate::networks::values;
use crate::weights::Tensor;

/// How much running statistics take over of a batch, as in PyTorch.
const RUNNING: f64 = 0.1;

/// What the tensors of a state are called.
const VALUE: &str = "value.";
const MOMENTUM: &str = "momentum.";
const FIXED: &str = "fixed.";

/// The tensors of a training.
#[derive(Debug)]
pub(crate) struct Sgd {
    /// What gradients change.
    parameters: BTreeMap<String, SgdParameter>,
    /// What they do not: the last norm of a transformer, running statistics.
    fixed: Arrays,
    /// The shapes of both; on the device all tensors are flat.
    shapes: BTreeMap<String, Vec<usize>>,
    momentum: f64,
    weight_decay: f64,
    /// Whether tensors of one dimension are not drawn to zero.
    spares_vectors: bool,
    device: Device,
}

#[derive(Clone, Debug)]
struct SgdParameter {
    value: Array<1>,
    momentum: Array<1>,
}

impl Sgd {
    pub(crate) fn new(
        parameters: BTreeMap<String, Tensor>,
        fixed: BTreeMap<String, Tensor>,
        momentum: f64,
        weight_decay: f64,
        device: &Device,
    ) -> Self {
        let flat = |tensor: Tensor| {
            let length = [tensor.values.len()];
            Array::from_data(TensorData::new(tensor.values, length), device)
        };
        let named = |(name, tensor): (&String, &Tensor)| (name.clone(), tensor.shape.clone());
        Self {
            shapes: parameters.iter().chain(&fixed).map(named).collect(),
            parameters: parameters
                .into_iter()
                .map(|(name, tensor)| {
                    let value = flat(tensor);
                    let momentum = value.zeros_like();
                    (name, SgdParameter { value, momentum })
                })
                .collect(),
            fixed: fixed.into_iter().map(|(name, tensor)| (name, flat(tensor))).collect(),
            momentum,
            weight_decay,
            spares_vectors: false,
            device: device.clone(),
        }
    }

    /// The same, with tensors of one dimension drawn to zero or not.
    pub(crate) fn sparing_vectors(self, spares_vectors: bool) -> Self {
        Self { spares_vectors, ..self }
    }

    /// What is trained.
    pub(crate) fn trained(&self) -> impl Iterator<Item = (&String, &Array<1>)> {
        self.parameters.iter().map(|(name, parameter)| (name, &parameter.value))
    }

    /// What is not.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = (&String, &Array<1>)> {
        self.fixed.iter()
    }

    /// Those tensors as they are now, in their shapes.
    pub(crate) fn tensors(&self, chosen: impl Fn(&str) -> bool) -> BTreeMap<String, Tensor> {
        let chosen = self.trained().chain(self.fixed()).filter(|(name, _)| chosen(name));
        let tensors = chosen.map(|(name, value)| {
            let shape = self.shapes.get(name).cloned().unwrap_or_default();
            let values = values(value.clone());
            (name.clone(), Tensor { shape, values })
        });
        tensors.collect()
    }

    /// One step against the gradients; running statistics move towards what was seen.
    pub(crate) fn step(&mut self, gradients: Arrays, seen: Arrays, learning_rate: f64) {
        for (name, gradient) in gradients {
            // Taken out, and not cloned: arrays that nobody else holds are changed where they are.
            let Some(SgdParameter { value, momentum }) = self.parameters.remove(&name) else {
                continue;
            };
            let vector = self.shapes.get(&name).is_some_and(|shape| shape.len() <= 1);
            let decay = if self.spares_vectors && vector {
                0.0
            } else {
                self.weight_decay
            };
            let momentum = momentum * self.momentum + gradient + value.clone() * decay;
            let value = value - momentum.clone() * learning_rate;
            self.parameters.insert(name, SgdParameter { value, momentum });
        }
        for (name, batch) in seen {
            if let Some(running) = self.fixed.get_mut(&name) {
                *running = running.clone() * (1.0 - RUNNING) + batch * RUNNING;
            }
        }
    }

    /// Everything that the next step depends on, by name.
    pub(crate) fn state(&self) -> BTreeMap<String, Tensor> {
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

    /// Goes back to a state; nothing is changed when it does not fit.
    pub(crate) fn restore(&mut self, mut state: BTreeMap<String, Tensor>) -> Result<(), TrainError> {
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
}
