//! SimGCD as its paper has it: with the classifier the network's last blocks learn too.

use genus_core::Features;
use genus_vision::train::{
    ObjectiveSettings, SelfDistilHead, SelfDistilSettings, TrainError, Trainer, TrainerSettings, Trunk, UNLABELLED,
};
use genus_vision::{Architecture, Weights};

use super::simgcd::{EpisodeItems, SimGcd, SimGcdClassifier, SimGcdError, SimGcdInit, matrix, views_of};

/// The name of the classifier in a [`Trainer`]'s state.
fn classifier() -> String {
    format!("value.{}", SelfDistilHead::CLASSIFIER)
}

/// [`SimGcd`] with a network whose last blocks are trained, anew in every episode.
#[derive(Debug)]
pub struct SimGcdTrainer {
    method: SimGcd,
    heads: usize,
    /// The number of values of an item.
    each: usize,
    trainer: Trainer,
    losses: Vec<f64>,
}

impl SimGcd {
    /// Prepares the training of the last [`blocks`](SimGcd::blocks) of a network, for images of `image` pixels a side and
    /// episodes of so many classes, known and new.
    ///
    /// Batch normalisations keep the statistics that they came with.
    pub fn trainer(
        &self,
        architecture: Architecture,
        image: usize,
        weights: Weights,
        classes: usize,
    ) -> Result<SimGcdTrainer, SimGcdError> {
        let method = self.clone().checked()?;
        let settings = TrainerSettings {
            blocks: Some(method.blocks),
            objective: ObjectiveSettings::SelfDistil(SelfDistilSettings {
                heads: classes,
                hidden: method.hidden,
                loss: method.loss_at(0),
                ..SelfDistilSettings::default()
            }),
            momentum: method.momentum,
            weight_decay: method.weight_decay,
            fixed_statistics: true,
            ..TrainerSettings::default()
        };
        let trainer = Trainer::new(architecture, image, weights, settings, 0)?;
        let pixels = 3 * image * image;
        Ok(SimGcdTrainer {
            method,
            heads: classes,
            // What the trunk gives for one image says how much it gives for each.
            each: trainer
                .trunk()
                .map_or(pixels, |trunk| trunk.run(&vec![0.0; pixels]).len()),
            trainer,
            losses: Vec::new(),
        })
    }
}

impl SimGcdTrainer {
    /// The frozen blocks: what they give is what [`fit`](Self::fit) takes. Without any it takes pixels.
    pub fn trunk(&self) -> Option<&Trunk> {
        self.trainer.trunk()
    }

    /// Trains on one episode, from the network of the beginning, and gives the head of every query as the first view shows it.
    ///
    /// `support` and `queries` have an entry a view: what the frozen blocks gave for the same items in the same order, a row
    /// an item. Views are used as in [`SimGcd::fit`]; a single one is both.
    pub fn fit(
        &mut self,
        support: &[Vec<f32>],
        labels: &[usize],
        queries: &[Vec<f32>],
        seed: u64,
    ) -> Result<Vec<usize>, SimGcdError> {
        let rows = self.check(support, labels, queries)?;
        self.trainer.restart(seed);
        if self.method.init == SimGcdInit::Supports {
            self.begin_at_supports(support, labels, seed)?;
        }
        let labels: Vec<usize> = labels
            .iter()
            .copied()
            .chain(std::iter::repeat_n(UNLABELLED, rows))
            .collect();
        let labels = [&labels[..], &labels].concat();
        self.losses.clear();
        for epoch in 0..self.method.epochs {
            let views = views_of(epoch, support.len(), seed);
            let batch: Vec<f32> = (views.iter().cycle().take(2))
                .flat_map(|&view| support[view].iter().chain(&queries[view]).copied())
                .collect();
            self.trainer.set_teacher(self.method.loss_at(epoch).teacher);
            let loss = self.trainer.step(&batch, &labels, self.method.rate_at(epoch));
            self.losses.push(loss.map_err(|error| match error {
                TrainError::NotFinite { loss } => SimGcdError::NotFinite { epoch, loss },
                other => other.into(),
            })?);
        }
        if rows == 0 {
            return Ok(Vec::new());
        }
        let features = self.trainer.features(&queries[0], rows)?;
        let features = matrix(features.len() / rows, features)?;
        let weights = self.trainer.head().remove(SelfDistilHead::CLASSIFIER);
        let weights = weights.expect("the head has a classifier").values;
        SimGcdClassifier::new(matrix(features.dim(), weights)?, self.losses.clone()).predict(&features)
    }

    /// The loss at the beginning of every epoch of the last [`fit`](Self::fit).
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// Makes sure that all views are of the same items; the number of queries.
    fn check(&self, support: &[Vec<f32>], labels: &[usize], queries: &[Vec<f32>]) -> Result<usize, SimGcdError> {
        if support.is_empty() || support.len() != queries.len() {
            return Err(SimGcdError::Views {
                support: support.len(),
                queries: queries.len(),
            });
        }
        if labels.is_empty() {
            return Err(SimGcdError::EmptySupport);
        }
        if let Some(&class) = labels.iter().find(|&&label| label >= self.heads) {
            let heads = self.heads;
            return Err(SimGcdError::TooFewHeads { class, heads });
        }
        let each = self.each;
        let rows = queries[0].len() / each;
        for (what, expected, views) in [
            ("examples", labels.len() * each, support),
            ("queries", rows * each, queries),
        ] {
            if let Some(view) = views.iter().position(|values| values.len() != expected) {
                return Err(SimGcdError::Values {
                    what,
                    view,
                    expected,
                    found: views[view].len(),
                });
            }
        }
        Ok(rows)
    }

    /// Puts the heads of known classes where the network now sees their examples.
    fn begin_at_supports(&mut self, support: &[Vec<f32>], labels: &[usize], seed: u64) -> Result<(), SimGcdError> {
        let features = |view: &Vec<f32>| {
            let features = self.trainer.features(view, labels.len())?;
            matrix(features.len() / labels.len(), features)
        };
        let support: Vec<Features> = support.iter().map(features).collect::<Result<_, _>>()?;
        let none = vec![support[0].select(&[]); support.len()];
        let items = EpisodeItems::new(&support, labels, &none, self.heads)?;
        let first = self.method.first_directions(&items, seed);
        let mut state = self.trainer.state();
        if let Some(tensor) = state.get_mut(&classifier()) {
            tensor.values = first.into_iter().map(|v| v as f32).collect();
        }
        Ok(self.trainer.restore(state)?)
    }
}
