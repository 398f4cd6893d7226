//! Taking the tensors of a network out of a weights file, strictly.

use std::collections::BTreeMap;

use burn_tensor::{Device, Tensor as Array, TensorData};

use super::ArchitectureError;
use crate::weights::Tensor;

/// The tensors that a network still has to take, and what was wrong with those it took.
///
/// Problems are collected and told together by [`finish`](Self::finish): whoever has the wrong file sees all of it at once.
pub(crate) struct Parts<'a> {
    tensors: BTreeMap<String, Tensor>,
    device: &'a Device,
    missing: Vec<String>,
    misshapen: Vec<String>,
}

/// A matrix with inputs in rows and its bias.
#[derive(Debug)]
pub(crate) struct Linear {
    weight: Array<2>,
    bias: Array<1>,
}

impl Linear {
    pub(crate) fn new(weight: Array<2>, bias: Array<1>) -> Self {
        Self { weight, bias }
    }

    pub(crate) fn forward(&self, x: Array<3>) -> Array<3> {
        burn_tensor::module::linear(x, self.weight.clone(), Some(self.bias.clone()))
    }
}

/// The kernel of a convolution with the normalisation that follows it folded in.
#[derive(Debug)]
pub(crate) struct Conv {
    pub(crate) weight: Array<4>,
    pub(crate) bias: Array<1>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(tensors: BTreeMap<String, Tensor>, device: &'a Device) -> Self {
        Self {
            tensors,
            device,
            missing: Vec::new(),
            misshapen: Vec::new(),
        }
    }

    /// The values of a tensor; zeros, and a problem noted, when it is not there in this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        match self.tensors.remove(name) {
            Some(tensor) if tensor.shape == shape => return tensor.values,
            Some(tensor) => {
                let problem = format!("{name} is {} and not {}", by(&tensor.shape), by(shape));
                self.misshapen.push(problem);
            }
            None => self.missing.push(name.to_owned()),
        }
        vec![0.0; shape.iter().product()]
    }

    pub(crate) fn array<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Array<D> {
        Array::from_data(TensorData::new(values, shape), self.device)
    }

    pub(crate) fn vector(&mut self, name: &str, length: usize) -> Array<1> {
        let values = self.take(name, &[length]);
        self.array(values, [length])
    }

    /// `name.weight` (outputs × inputs, as PyTorch has it) and `name.bias`; the matrix is turned once, here.
    pub(crate) fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Linear {
        let weight = self.take(&format!("{name}.weight"), &[outputs, inputs]);
        let weight = transposed(&weight, outputs, inputs);
        Linear {
            weight: self.array(weight, [inputs, outputs]),
            bias: self.vector(&format!("{name}.bias"), outputs),
        }
    }

    /// A convolution without bias of its own and the batch normalisation after it, as one convolution.
    pub(crate) fn conv(&mut self, conv: &str, norm: &str, shape: [usize; 4], epsilon: f64) -> Conv {
        let outputs = shape[0];
        let mut weight = self.take(&format!("{conv}.weight"), &shape);
        let [gamma, beta, mean, variance] = ["weight", "bias", "running_mean", "running_var"]
            .map(|part| self.take(&format!("{norm}.{part}"), &[outputs]));
        let mut bias = Vec::with_capacity(outputs);
        for (output, kernel) in weight.chunks_exact_mut(shape[1..].iter().product()).enumerate() {
            let scale = f64::from(gamma[output]) / (f64::from(variance[output]) + epsilon).sqrt();
            kernel.iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
            bias.push((f64::from(beta[output]) - f64::from(mean[output]) * scale) as f32);
        }
        Conv {
            weight: self.array(weight, shape),
            bias: self.array(bias, [outputs]),
        }
    }

    /// Whether all was there, in the right shapes, and nothing besides.
    pub(crate) fn finish(self) -> Result<(), ArchitectureError> {
        let surplus: Vec<String> = self.tensors.into_keys().collect();
        if self.missing.is_empty() && self.misshapen.is_empty() && surplus.is_empty() {
            return Ok(());
        }
        Err(ArchitectureError::Tensors {
            missing: self.missing,
            misshapen: self.misshapen,
            surplus,
        })
    }
}

fn by(shape: &[usize]) -> String {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    match lengths.len() {
        0 => "a single number".to_owned(),
        _ => lengths.join(" × "),
    }
}

pub(crate) fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend((0..rows).map(|row| values[row * columns + column]));
    }
    out
}
