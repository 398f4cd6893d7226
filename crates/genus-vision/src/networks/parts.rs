//! Taking the tensors of a network out of a weights file, strictly, or out of a training under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use burn_tensor::module::{batch_norm_train, conv2d, linear};
use burn_tensor::ops::ConvOptions;
use burn_tensor::{Device, Tensor as Array, TensorData};

use super::{ArchitectureError, Positions};
use crate::weights::Tensor;

/// The tensors that a network still has to take, and what was wrong with those it took.
///
/// Problems are collected and told together by [`finish`](Self::finish): whoever has the wrong file sees all of it at once.
pub(crate) struct Parts<'a> {
    source: TensorSource<'a>,
    device: &'a Device,
    wanted: Vec<(String, Vec<usize>)>,
    missing: Vec<String>,
    misshapen: Vec<String>,
}

enum TensorSource<'a> {
    /// A file: every tensor is taken once, and laid out for inference.
    File(BTreeMap<String, Tensor>),
    /// A training: gradients flow back to the tensors.
    Live(&'a TrainingTensors),
}

/// The tensors of one forward pass in training.
#[derive(Debug, Default)]
pub(crate) struct TrainingTensors {
    /// The tensors by name, each flat.
    pub(crate) tensors: BTreeMap<String, Array<1>>,
    /// Whether batch normalisations keep the statistics that they came with.
    pub(crate) fixed_statistics: bool,
    /// What the batch normalisations saw.
    pub(crate) seen: Arc<Mutex<Vec<BatchStatistics>>>,
}

/// What a batch normalisation saw of a batch.
#[derive(Debug)]
pub(crate) struct BatchStatistics {
    /// The normalisation.
    pub(crate) norm: String,
    /// The mean of every channel.
    pub(crate) mean: Array<1>,
    /// The variance of every channel, without bias, as running variances are kept.
    pub(crate) variance: Array<1>,
}

/// A matrix with inputs in rows and its bias.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: Array<2>,
    pub(crate) bias: Array<1>,
}

impl Linear {
    pub(crate) fn forward(&self, x: Array<3>) -> Array<3> {
        linear(x, self.weight.clone(), Some(self.bias.clone()))
    }
}

/// A convolution and the batch normalisation after it.
///
/// With fixed statistics a normalisation is a scale, which is in the kernel, and a bias; in training it stands by itself.
#[derive(Debug)]
pub(crate) struct Conv {
    pub(crate) weight: Array<4>,
    pub(crate) bias: Option<Array<1>>,
    norm: Option<BatchNorm>,
}

/// A batch normalisation in training.
#[derive(Debug)]
struct BatchNorm {
    name: String,
    gamma: Array<1>,
    beta: Array<1>,
    epsilon: f64,
    statistics: NormStatistics,
}

/// What a batch normalisation in training takes for mean and variance.
#[derive(Debug)]
enum NormStatistics {
    /// Those of the batch, of which it takes note.
    Batch(Arc<Mutex<Vec<BatchStatistics>>>),
    /// Those that it came with.
    Fixed(Box<[Array<1>; 2]>),
}

impl Conv {
    /// The side of the kernel.
    pub(crate) fn kernel(&self) -> usize {
        self.weight.dims()[2]
    }

    pub(crate) fn forward(&self, x: Array<4>, options: ConvOptions<2>) -> Array<4> {
        let Some(norm) = &self.norm else {
            return conv2d(x, self.weight.clone(), self.bias.clone(), options);
        };
        let x = if self.kernel() == 1 && options.stride == [1, 1] && options.groups == 1 {
            pointwise(x, self.weight.clone())
        } else {
            conv2d(x, self.weight.clone(), None, options)
        };
        norm.forward(x)
    }
}

impl BatchNorm {
    fn forward(&self, x: Array<4>) -> Array<4> {
        let (gamma, beta) = (self.gamma.clone(), self.beta.clone());
        let seen = match &self.statistics {
            NormStatistics::Fixed(both) => {
                let [mean, variance] = both.as_ref();
                let scale = gamma * (variance.clone() + self.epsilon).sqrt().recip();
                let shift = beta - mean.clone() * scale.clone();
                let channels = [1, scale.dims()[0], 1, 1];
                return x * scale.reshape(channels) + shift.reshape(channels);
            }
            NormStatistics::Batch(seen) => seen,
        };
        let [images, _, height, width] = x.dims();
        let normed = batch_norm_train(x, gamma, beta, self.epsilon);
        if let Ok(mut seen) = seen.lock() {
            let count = (images * height * width) as f64;
            seen.push(BatchStatistics {
                norm: self.name.clone(),
                mean: normed.mean.inner(),
                variance: normed.variance.inner() * (count / (count - 1.0).max(1.0)),
            });
        }
        normed.output
    }
}

/// A convolution with a kernel of one pixel as one matrix product: burn's gradient of its kernel takes six times as long.
fn pointwise(x: Array<4>, weight: Array<4>) -> Array<4> {
    let [images, inputs, height, width] = x.dims();
    let outputs = weight.dims()[0];
    let pixels = x.swap_dims(0, 1).reshape([inputs, images * height * width]);
    let out = weight.reshape([outputs, inputs]).matmul(pixels);
    out.reshape([outputs, images, height, width]).swap_dims(0, 1)
}

impl<'a> Parts<'a> {
    /// The tensors of a file.
    pub(crate) fn of_file(tensors: BTreeMap<String, Tensor>, device: &'a Device) -> Self {
        Self::new(TensorSource::File(tensors), device)
    }

    /// The tensors of a training.
    pub(crate) fn of_training(live: &'a TrainingTensors, device: &'a Device) -> Self {
        Self::new(TensorSource::Live(live), device)
    }

    fn new(source: TensorSource<'a>, device: &'a Device) -> Self {
        Self {
            source,
            device,
            wanted: Vec::new(),
            missing: Vec::new(),
            misshapen: Vec::new(),
        }
    }

    /// The values of a tensor of a file; zeros, and a problem noted, when it is not there in this shape.
    fn take(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        self.wanted.push((name.to_owned(), shape.to_owned()));
        let found = match &mut self.source {
            TensorSource::File(tensors) => tensors.remove(name),
            TensorSource::Live(_) => None,
        };
        match found {
            Some(tensor) if tensor.shape == shape => return tensor.values,
            Some(tensor) => {
                let problem = format!("{name} is {} and not {}", by(&tensor.shape), by(shape));
                self.misshapen.push(problem);
            }
            None => self.missing.push(name.to_owned()),
        }
        vec![0.0; shape.iter().product()]
    }

    /// The tensor of a training, if this is one and has it.
    fn live(&self, name: &str) -> Option<Array<1>> {
        match &self.source {
            TensorSource::File(_) => None,
            TensorSource::Live(live) => live.tensors.get(name).cloned(),
        }
    }

    fn array<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Array<D> {
        Array::from_data(TensorData::new(values, shape), self.device)
    }

    /// A tensor as it is.
    pub(crate) fn tensor<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Array<D> {
        match self.live(name) {
            Some(flat) => flat.reshape(shape),
            None => {
                let values = self.take(name, &shape);
                self.array(values, shape)
            }
        }
    }

    /// A matrix that is kept as outputs × inputs, as PyTorch does, with inputs in rows; a file's is turned once, here.
    /// `shape` is the one in the file: outputs, and what inputs are made of.
    fn matrix(&mut self, name: &str, shape: &[usize]) -> Array<2> {
        let (outputs, inputs) = (shape[0], shape[1..].iter().product());
        match self.live(name) {
            Some(flat) => flat.reshape([outputs, inputs]).transpose(),
            None => {
                let values = self.take(name, shape);
                self.array(transposed(&values, outputs, inputs), [inputs, outputs])
            }
        }
    }

    /// `name.weight` and `name.bias`; `shape` is that of the weight.
    pub(crate) fn linear(&mut self, name: &str, shape: &[usize]) -> Linear {
        Linear {
            weight: self.matrix(&format!("{name}.weight"), shape),
            bias: self.tensor(&format!("{name}.bias"), [shape[0]]),
        }
    }

    /// A linear map as two: the one to its first outputs, and the one to the rest.
    pub(crate) fn split_linear(&mut self, name: &str, inputs: usize, outputs: usize, first: usize) -> [Linear; 2] {
        let Linear { weight, bias } = self.linear(name, &[outputs, inputs]);
        [0..first, first..outputs].map(|part| Linear {
            weight: weight.clone().slice([0..inputs, part.clone()]),
            bias: bias.clone().slice([part]),
        })
    }

    /// A convolution without bias of its own and the batch normalisation after it.
    pub(crate) fn conv(&mut self, conv: &str, norm: &str, shape: [usize; 4], epsilon: f64) -> Conv {
        let outputs = shape[0];
        if let TensorSource::Live(live) = &self.source {
            let statistics = match live.fixed_statistics {
                true => {
                    let both = ["running_mean", "running_var"];
                    NormStatistics::Fixed(Box::new(
                        both.map(|part| self.tensor(&format!("{norm}.{part}"), [outputs])),
                    ))
                }
                false => NormStatistics::Batch(Arc::clone(&live.seen)),
            };
            return Conv {
                weight: self.tensor(&format!("{conv}.weight"), shape),
                bias: None,
                norm: Some(BatchNorm {
                    name: norm.to_owned(),
                    gamma: self.tensor(&format!("{norm}.weight"), [outputs]),
                    beta: self.tensor(&format!("{norm}.bias"), [outputs]),
                    epsilon,
                    statistics,
                }),
            };
        }
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
            bias: Some(self.array(bias, [outputs])),
            norm: None,
        }
    }

    /// The positions of the class token (1 × 1 × dim) and of a square of `side` patches (1 × side² × dim).
    pub(crate) fn positions(
        &mut self,
        how: Positions,
        side: usize,
        dim: usize,
    ) -> Result<[Array<3>; 2], ArchitectureError> {
        const NAME: &str = "pos_embed";
        let patches = side * side;
        if how == Positions::Rotary {
            return Ok([1, patches].map(|tokens| Array::zeros([1, tokens, dim], self.device)));
        }
        let both = |embedding: Array<3>| [0..1, 1..1 + patches].map(|rows| embedding.clone().slice([0..1, rows]));
        let shape = [1, 1 + patches, dim];
        let found = match &mut self.source {
            TensorSource::File(tensors) => tensors.remove(NAME),
            TensorSource::Live(_) => None,
        };
        let Some(found) = found else {
            return Ok(both(self.tensor(NAME, shape)));
        };
        self.wanted.push((NAME.to_owned(), shape.to_vec()));
        let values = how.fit(&found, side, dim).ok_or(ArchitectureError::PositionCount {
            found: found.shape,
            dim,
        })?;
        Ok(both(self.array(values, shape)))
    }

    /// Every tensor that was asked for, in order, with its shape.
    pub(crate) fn wanted(self) -> Vec<(String, Vec<usize>)> {
        self.wanted
    }

    /// Whether all was there, in the right shapes, and nothing besides.
    pub(crate) fn finish(self) -> Result<(), ArchitectureError> {
        let surplus: Vec<String> = match self.source {
            TensorSource::File(tensors) => tensors.into_keys().collect(),
            TensorSource::Live(_) => Vec::new(),
        };
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

fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend((0..rows).map(|row| values[row * columns + column]));
    }
    out
}
