//! The head of OCD, SMILE's: a short code of bits for every image, by the signs of its hash values.
//!
//! Features go through a small network, then two ways: one gives the signs, h = tanh(·), the other what is as large as one at
//! least, v = · / tanh(·). Training sees h ∘ v, so that what varies within a class can go to v and the signs stay. Where the
//! paper is silent this follows its authors' code: batch normalisation of the embedding and of both ways (trained scales,
//! ε = 1e-5), matrices that begin small (deviation 0.02), all views of a batch normalised together, and the tensors' names.

use std::collections::BTreeMap;

use burn_tensor::module::batch_norm_train;
use burn_tensor::{Device, Tensor as Array, TensorData, activation};
use genus_core::rng::Rng;

use super::contrast::contrast;
use super::descent::Sgd;
use super::head::{mlp, mlp_shapes};
use super::objective::{Arrays, Gradients, TrainingObjective};
use super::{TrainError, fresh};
use crate::device::device;
use crate::networks::{Parts, TrainingTensors, values};
use crate::weights::Tensor;

/// The sizes of a hash head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashShape {
    /// The length of the two layers inside.
    pub hidden: usize,
    /// The length of what both ways begin with.
    pub embedding: usize,
    /// The number of bits of a code.
    pub bits: usize,
}

impl Default for HashShape {
    fn default() -> Self {
        Self {
            hidden: 2048,
            embedding: 256,
            bits: 12,
        }
    }
}

/// How codes are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HashSettings {
    /// The head.
    pub shape: HashShape,
    /// The temperature of the contrastive loss.
    pub temperature: f64,
    /// How strongly hash values are drawn to −1 and 1.
    pub sign_weight: f64,
}

impl Default for HashSettings {
    fn default() -> Self {
        Self {
            shape: HashShape::default(),
            temperature: 0.07,
            sign_weight: 3.0,
        }
    }
}

/// Normalisations, by name: that of the embedding, and those of the two ways.
const EMBEDDING: &str = "head.mlp.5";
const SIGN: &str = "head.bn_h";
const MAGNITUDE: &str = "head.bn_v";
/// The matrices of the two ways.
const TO_SIGN: &str = "head.hash.weight";
const TO_MAGNITUDE: &str = "head.variance.weight";

/// What is added to a variance, PyTorch's.
const EPSILON: f64 = 1e-5;
/// The least length that a vector is divided by.
const LEAST: f64 = 1e-12;
/// Rows that are hashed at a time; fewer are filled up, so that a row's values do not depend on how many there are.
const AT_A_TIME: usize = 128;

impl HashShape {
    /// The names and shapes of the tensors that are trained.
    fn trained(self, inputs: usize) -> Vec<(String, Vec<usize>)> {
        let mut shapes = mlp_shapes([inputs, self.hidden, self.hidden, self.embedding]);
        for name in [TO_SIGN, TO_MAGNITUDE] {
            shapes.push((name.to_owned(), vec![self.bits, self.embedding]));
        }
        for (norm, length) in self.norms() {
            shapes.push((format!("{norm}.weight"), vec![length]));
            shapes.push((format!("{norm}.bias"), vec![length]));
        }
        shapes
    }

    /// The names and shapes of the running statistics.
    fn statistics(self) -> Vec<(String, Vec<usize>)> {
        let both =
            |(norm, length)| ["running_mean", "running_var"].map(|part| (format!("{norm}.{part}"), vec![length]));
        self.norms().into_iter().flat_map(both).collect()
    }

    fn norms(self) -> [(&'static str, usize); 3] {
        [(EMBEDDING, self.embedding), (SIGN, self.bits), (MAGNITUDE, self.bits)]
    }

    /// Whether there is such a head.
    pub(crate) fn check(self, inputs: usize) -> Result<(), TrainError> {
        let sizes = [inputs, self.hidden, self.embedding, self.bits];
        match sizes.contains(&0) {
            true => Err(TrainError::Sizes { sizes: sizes.to_vec() }),
            false => Ok(()),
        }
    }
}

/// Codes are learnt: the objective of OCD.
#[derive(Debug)]
pub(crate) struct HashObjective {
    inputs: usize,
    settings: HashSettings,
}

/// A way that batch normalisations go.
enum NormMode<'a> {
    /// By the batch, of which its mean and variance are noted.
    Batch(&'a mut Arrays),
    /// By the running statistics.
    Running,
}

impl HashObjective {
    pub(crate) fn new(inputs: usize, settings: HashSettings) -> Self {
        Self { inputs, settings }
    }

    /// What goes into tanh on both ways, a row an item.
    fn forward(
        &self,
        live: &TrainingTensors,
        features: Array<2>,
        mut mode: NormMode,
        device: &Device,
    ) -> [Array<2>; 2] {
        let HashShape {
            hidden,
            embedding,
            bits,
        } = self.settings.shape;
        let mut parts = Parts::of_training(live, device);
        let x = mlp(&mut parts, features, [self.inputs, hidden, hidden, embedding]);
        let x = activation::gelu(norm(&mut parts, EMBEDDING, x, &mut mode));
        [(TO_SIGN, SIGN), (TO_MAGNITUDE, MAGNITUDE)].map(|(matrix, after)| {
            let matrix = parts.tensor(matrix, [bits, embedding]);
            norm(&mut parts, after, x.clone().matmul(matrix.transpose()), &mut mode)
        })
    }

    /// The loss and its gradients; that of the features is zero unless they ask for theirs.
    fn gradients<'a>(
        &self,
        tensors: impl Iterator<Item = (&'a String, &'a Array<1>)>,
        features: Array<2>,
        labels: &[usize],
        device: &Device,
    ) -> Gradients {
        let leaf = |(name, array): (&String, &Array<1>)| (name.clone(), array.clone().autodiff().require_grad());
        let live = TrainingTensors {
            tensors: tensors.map(leaf).collect(),
            ..TrainingTensors::default()
        };
        let mut seen = Arrays::new();
        let [signs, magnitudes] = self.forward(&live, features.clone(), NormMode::Batch(&mut seen), device);
        let shape = signs.dims();
        let plain = |way: &Array<2>| values(way.clone().inner());
        let (loss, slopes) = self.loss(&plain(&signs), &plain(&magnitudes), labels);
        let slopes = slopes.map(|slope| Array::from_data(TensorData::new(slope, shape), device).autodiff());
        let [d_signs, d_magnitudes] = slopes;
        // The gradient of this sum is the one that was found by hand.
        let mut found = ((signs * d_signs).sum() + (magnitudes * d_magnitudes).sum()).backward();
        let grown = |(name, leaf): (String, Array<1>)| Some((name, leaf.grad_remove(&mut found)?));
        let tensors = live.tensors.into_iter().filter_map(grown).collect();
        let asked = features.grad_remove(&mut found);
        Gradients {
            loss,
            features: asked.unwrap_or_else(|| features.inner().zeros_like()),
            tensors,
            seen,
        }
    }

    /// The loss, given what goes into tanh on both ways, and its gradients.
    ///
    /// These are few numbers, and where a way is at zero its formulas are not: so by hand, and in double precision.
    fn loss(&self, signs: &[f32], magnitudes: &[f32], labels: &[usize]) -> (f64, [Vec<f32>; 2]) {
        let HashSettings {
            shape,
            temperature,
            sign_weight,
        } = self.settings;
        let (items, bits) = (labels.len(), shape.bits);
        let h: Vec<f64> = signs.iter().map(|&a| f64::from(a).tanh()).collect();
        let (v, v_slope): (Vec<f64>, Vec<f64>) = magnitudes.iter().map(|&b| magnitude(f64::from(b))).unzip();
        let mut z: Vec<f64> = h.iter().zip(&v).map(|(h, v)| h * v).collect();
        let mut lengths = Vec::with_capacity(items);
        for row in z.chunks_exact_mut(bits) {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.iter_mut().for_each(|x| *x /= length.max(LEAST));
            lengths.push(length);
        }
        let row = |item: usize| &z[item * bits..][..bits];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let pairs = (0..items).flat_map(|a| (0..items).map(move |b| (a, b)));
        let similarities: Vec<f32> = pairs.map(|(a, b)| dot(row(a), row(b)) as f32).collect();
        let (contrast, slope) = contrast(&similarities, labels, temperature);
        let count = h.len().max(1) as f64;
        let weak = h.iter().map(|h| 1.0 - h.abs()).sum::<f64>() / count;

        let mut slopes = [vec![0.0; h.len()], vec![0.0; h.len()]];
        let mut pull = vec![0.0; bits];
        for item in 0..items {
            pull.fill(0.0);
            for other in 0..items {
                let by = f64::from(slope[item * items + other]) + f64::from(slope[other * items + item]);
                pull.iter_mut().zip(row(other)).for_each(|(pull, z)| *pull += by * z);
            }
            // What points along a row does not count, and a row of no length has no direction to change.
            let along = dot(&pull, row(item));
            let scale = if lengths[item] > LEAST {
                1.0 / lengths[item]
            } else {
                0.0
            };
            for (at, pull) in (item * bits..).zip(&pull) {
                let d_x = (pull - along * z[at]) * scale;
                let sign = if h[at] == 0.0 { 0.0 } else { h[at].signum() };
                let d_h = d_x * v[at] - sign_weight * sign / count;
                slopes[0][at] = (d_h * (1.0 - h[at] * h[at])) as f32;
                slopes[1][at] = (d_x * h[at] * v_slope[at]) as f32;
            }
        }
        (contrast + sign_weight * weak, slopes)
    }
}

impl TrainingObjective for HashObjective {
    fn first_values(&self, seed: u64) -> BTreeMap<String, Tensor> {
        let tensors = self
            .settings
            .shape
            .trained(self.inputs)
            .into_iter()
            .map(|(name, shape)| {
                let values = match shape[..] {
                    [length] if name.ends_with("bias") => vec![0.0; length],
                    [length] => vec![1.0; length],
                    _ => fresh::normal(&mut Rng::new(seed, &fresh::stream(&name)), shape.iter().product(), 0.02),
                };
                (name, Tensor { shape, values })
            });
        tensors.collect()
    }

    fn first_statistics(&self) -> BTreeMap<String, Tensor> {
        let tensors = self.settings.shape.statistics().into_iter().map(|(name, shape)| {
            let first = if name.ends_with("var") { 1.0 } else { 0.0 };
            let values = vec![first; shape.iter().product()];
            (name, Tensor { shape, values })
        });
        tensors.collect()
    }

    fn backward(&self, tensors: &Arrays, features: Array<2>, labels: &[usize], device: &Device) -> Gradients {
        self.gradients(tensors.iter(), features.autodiff().require_grad(), labels, device)
    }
}

/// x / tanh(x), which is 1 at 0, and its slope.
fn magnitude(x: f64) -> (f64, f64) {
    // Around zero both are quotients of next to nothing, and their series are exact.
    if x.abs() < 1e-2 {
        let square = x * x;
        return (
            1.0 + square / 3.0 - square * square / 45.0,
            x * (2.0 / 3.0 - 4.0 / 45.0 * square),
        );
    }
    let t = x.tanh();
    (x / t, (t - x * (1.0 - t * t)) / (t * t))
}

/// A batch normalisation.
fn norm(parts: &mut Parts, name: &str, x: Array<2>, mode: &mut NormMode) -> Array<2> {
    let [items, length] = x.dims();
    let [scale, shift] = ["weight", "bias"].map(|part| parts.tensor(&format!("{name}.{part}"), [length]));
    match mode {
        NormMode::Batch(seen) => {
            let normed = batch_norm_train(x, scale, shift, EPSILON);
            // Running variances are without bias.
            let unbiased = items as f64 / (items as f64 - 1.0).max(1.0);
            seen.insert(format!("{name}.running_mean"), normed.mean.inner());
            seen.insert(format!("{name}.running_var"), normed.variance.inner() * unbiased);
            normed.output
        }
        NormMode::Running => {
            let [mean, variance] =
                ["running_mean", "running_var"].map(|part| parts.tensor(&format!("{name}.{part}"), [1, length]));
            let scale: Array<2> = scale.reshape([1, length]) * (variance + EPSILON).sqrt().recip();
            (x - mean) * scale + shift.reshape([1, length])
        }
    }
}

/// A hash head as it is used: the hash values of features.
#[derive(Debug)]
pub struct HashHead {
    hash: HashObjective,
    live: TrainingTensors,
    device: Device,
}

impl HashHead {
    /// The head of these tensors, running statistics included; its sizes are theirs.
    pub fn new(mut tensors: BTreeMap<String, Tensor>) -> Result<Self, TrainError> {
        let sizes = |name: &str| match tensors.get(name).map(|tensor| &tensor.shape[..]) {
            Some(&[outputs, inputs]) => Ok((outputs, inputs)),
            Some(_) => Err(format!("{name} is no matrix")),
            None => Err(format!("{name} is missing")),
        };
        let damaged = |problem| TrainError::State { problem };
        let (hidden, inputs) = sizes("head.mlp.0.weight").map_err(damaged)?;
        let (bits, embedding) = sizes(TO_SIGN).map_err(damaged)?;
        let shape = HashShape {
            hidden,
            embedding,
            bits,
        };
        shape.check(inputs)?;
        let device = device();
        let mut live = TrainingTensors::default();
        for (name, shape) in shape.trained(inputs).into_iter().chain(shape.statistics()) {
            let problem = match tensors.remove(&name) {
                Some(tensor) if tensor.shape != shape => format!("{name} is {:?} and not {shape:?}", tensor.shape),
                Some(tensor) if !tensor.values.iter().all(|value| value.is_finite()) => {
                    format!("{name} has values that are no numbers")
                }
                Some(tensor) => {
                    let length = [tensor.values.len()];
                    let array = Array::from_data(TensorData::new(tensor.values, length), &device);
                    live.tensors.insert(name, array);
                    continue;
                }
                None => format!("{name} is missing"),
            };
            return Err(damaged(problem));
        }
        if let Some(name) = tensors.keys().next() {
            return Err(damaged(format!("{name} is not part of it")));
        }
        let settings = HashSettings {
            shape,
            ..HashSettings::default()
        };
        Ok(Self {
            hash: HashObjective::new(inputs, settings),
            live,
            device,
        })
    }

    /// The number of features that it takes.
    pub fn inputs(&self) -> usize {
        self.hash.inputs
    }

    /// The number of bits of a code.
    pub fn bits(&self) -> usize {
        self.hash.settings.shape.bits
    }

    /// The hash values of rows of features, between −1 and 1, so many a row as there are bits; a bit is set when its value is
    /// above zero.
    pub fn hashes(&self, features: &[f32]) -> Result<Vec<f32>, TrainError> {
        let inputs = self.hash.inputs;
        rows(features, inputs)?;
        let mut hashes = Vec::with_capacity(features.len() / inputs * self.bits());
        for block in features.chunks(AT_A_TIME * inputs) {
            let mut filled = block.to_vec();
            filled.resize(AT_A_TIME * inputs, 0.0);
            let filled = Array::from_data(TensorData::new(filled, [AT_A_TIME, inputs]), &self.device);
            let [signs, _] = self.hash.forward(&self.live, filled, NormMode::Running, &self.device);
            hashes.extend(&values(signs.tanh())[..block.len() / inputs * self.bits()]);
        }
        Ok(hashes)
    }
}

/// The number of rows of so many features.
fn rows(features: &[f32], inputs: usize) -> Result<usize, TrainError> {
    match features.len().is_multiple_of(inputs) {
        true => Ok(features.len() / inputs),
        false => Err(TrainError::Rows {
            values: features.len(),
            inputs,
        }),
    }
}

/// A hash head in training on features that stay as they are.
///
/// ```
/// use genus_vision::train::{HashSettings, HashShape, HashTrainer};
///
/// let shape = HashShape { hidden: 16, embedding: 8, bits: 4 };
/// let settings = HashSettings { shape, ..HashSettings::default() };
/// let mut trainer = HashTrainer::new(2, settings, 0.9, 5e-5, 0)?;
/// let features = [1.0, 0.1, 0.9, 0.0, 0.1, 1.0, 0.0, 0.9];
/// for _ in 0..5 {
///     trainer.step(&features, &[0, 0, 1, 1], 0.01)?;
/// }
/// assert_eq!(trainer.hashes(&features)?.len(), 4 * 4);
/// # Ok::<(), genus_vision::train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct HashTrainer {
    hash: HashObjective,
    descent: Sgd,
    device: Device,
}

impl HashTrainer {
    /// A head for so many features, before its first step.
    pub fn new(
        inputs: usize,
        settings: HashSettings,
        momentum: f64,
        weight_decay: f64,
        seed: u64,
    ) -> Result<Self, TrainError> {
        settings.shape.check(inputs)?;
        let device = device();
        let hash = HashObjective::new(inputs, settings);
        let (values, statistics) = (hash.first_values(seed), hash.first_statistics());
        Ok(Self {
            descent: Sgd::new(values, statistics, momentum, weight_decay, &device),
            hash,
            device,
        })
    }

    /// One step on a batch of rows; the loss before the step. When that is no finite number nothing is changed.
    pub fn step(&mut self, features: &[f32], labels: &[usize], learning_rate: f64) -> Result<f64, TrainError> {
        let inputs = self.hash.inputs;
        if labels.is_empty() || rows(features, inputs)? != labels.len() {
            return Err(TrainError::Batch {
                values: features.len(),
                labels: labels.len(),
            });
        }
        let features = Array::from_data(TensorData::new(features.to_vec(), [labels.len(), inputs]), &self.device);
        let found = self
            .hash
            .gradients(self.descent.trained(), features.autodiff(), labels, &self.device);
        if !found.loss.is_finite() {
            return Err(TrainError::NotFinite { loss: found.loss });
        }
        self.descent.step(found.tensors, found.seen, learning_rate);
        Ok(found.loss)
    }

    /// The head as it is now.
    pub fn head(&self) -> Result<HashHead, TrainError> {
        HashHead::new(self.tensors())
    }

    /// The hash values that the head as it is now gives, as [`HashHead::hashes`] does.
    pub fn hashes(&self, features: &[f32]) -> Result<Vec<f32>, TrainError> {
        self.head()?.hashes(features)
    }

    /// The tensors of the head as it is now, running statistics included.
    pub fn tensors(&self) -> BTreeMap<String, Tensor> {
        self.descent.tensors(|_| true)
    }

    /// Everything that the next step depends on, by name.
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        self.descent.state()
    }

    /// Goes back to a state that [`state`](Self::state) gave; nothing is changed when it does not fit.
    pub fn restore(&mut self, state: BTreeMap<String, Tensor>) -> Result<(), TrainError> {
        self.descent.restore(state)
    }
}
