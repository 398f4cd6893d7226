//! OCD: what has the same code of bits is of the same class.
//!
//! Du and others, On-the-fly Category Discovery (SMILE), CVPR 2023. A head learns on the base classes to give the images of a
//! class one code; classes that were never seen get codes of their own.

use std::collections::BTreeMap;
use std::str::FromStr;

use genus_core::methods::{Parameter, Values};
use genus_core::{Features, ParameterError};
use genus_vision::train::{HashSettings, HashTrainer, TrainError};
use thiserror::Error;

use genus::training::{Batches, Schedule};
use genus::{Length, Progress};

/// Why OCD cannot be trained or asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OcdError {
    /// Rows and labels that do not go together.
    #[error("{rows} rows have {labels} labels")]
    Labels {
        /// The number of rows.
        rows: usize,
        /// The number of labels.
        labels: usize,
    },
    /// A row that is not there.
    #[error("there is no row {row}: there are {rows}")]
    NoRow {
        /// The row.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// No view, or views that are not of the same items.
    #[error("there is no view of the rows, or one has other features than the first")]
    Views,
    /// A label that is not there.
    #[error("there is no class {label}: there are {known}")]
    NoClass {
        /// The label.
        label: usize,
        /// How many there are.
        known: usize,
    },
    /// Nothing to train on.
    #[error(
        "codes are learnt from two rows at least, in batches of two at least; there are {rows}, in batches of {batch}"
    )]
    TooFew {
        /// The number of rows.
        rows: usize,
        /// Rows of a batch.
        batch: usize,
    },
    /// Values that are not those of whole codes.
    #[error("{values} values are not codes of {bits} bits")]
    Values {
        /// The number of values.
        values: usize,
        /// The bits of a code.
        bits: usize,
    },
    /// Prototypes are needed and not given, or not one of every class.
    #[error("there are {found} prototypes of {known} classes")]
    Prototypes {
        /// How many there are.
        found: usize,
        /// How many are needed.
        known: usize,
    },
    /// The head cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// How a hash head is trained on features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OcdTraining {
    /// The head and its loss.
    pub hash: HashSettings,
    /// How many times every row is seen.
    pub epochs: u64,
    /// Rows of a step; all, when there are fewer.
    pub batch: usize,
    /// The learning rate at the beginning; it falls to a thousandth along half a cosine.
    pub rate: f64,
    /// How much of its direction a step takes over from the one before.
    pub momentum: f64,
    /// How strongly every trained value is drawn to zero.
    pub weight_decay: f64,
}

impl Default for OcdTraining {
    fn default() -> Self {
        Self {
            hash: HashSettings::default(),
            epochs: 100,
            batch: 128,
            rate: 0.01,
            momentum: 0.9,
            weight_decay: 5e-5,
        }
    }
}

/// Trains a hash head on some rows of features, which stay as they are; `labels` are those of `rows`, in their order.
///
/// `views` has one matrix a view of the same items, all of the same size; a step sees its items in every one of them.
pub fn train_on_features(
    views: &[Features],
    rows: &[usize],
    labels: &[usize],
    settings: OcdTraining,
    seed: u64,
    progress: &dyn Progress,
) -> Result<HashTrainer, OcdError> {
    if rows.len() != labels.len() {
        return Err(OcdError::Labels {
            rows: rows.len(),
            labels: labels.len(),
        });
    }
    let Some(dim) = views.first().map(Features::dim) else {
        return Err(OcdError::Views);
    };
    for view in views {
        if view.dim() != dim {
            return Err(OcdError::Views);
        }
        if let Some(&row) = rows.iter().find(|&&row| row >= view.rows()) {
            let rows = view.rows();
            return Err(OcdError::NoRow { row, rows });
        }
    }
    let batches = Batches {
        items: rows.len(),
        size: settings.batch.min(rows.len()),
        seed,
    };
    if batches.size < 2 {
        return Err(OcdError::TooFew {
            rows: rows.len(),
            batch: settings.batch,
        });
    }
    let OcdTraining {
        hash,
        epochs,
        momentum,
        weight_decay,
        ..
    } = settings;
    let mut trainer = HashTrainer::new(dim, hash, momentum, weight_decay, seed)?;
    let steps = epochs.saturating_mul(batches.of_epoch());
    progress.start("training ocd", Length::Steps(steps));
    for step in 0..steps {
        let batch = batches.batch(step);
        let seen = || views.iter().flat_map(|view| batch.iter().map(move |&at| (view, at)));
        let values: Vec<f32> = seen().flat_map(|(view, at)| view.row(rows[at])).copied().collect();
        let labels: Vec<usize> = seen().map(|(_, at)| labels[at]).collect();
        let rate = Schedule::Cosine.rate(settings.rate, step / batches.of_epoch(), epochs);
        trainer.step(&values, &labels, rate)?;
        progress.step();
    }
    Ok(trainer)
}

/// How the examples of a class become its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SupportCode {
    /// The signs of the mean of their hash values.
    #[default]
    Mean,
    /// The code of the class's prototype, which has to be given.
    Prototype,
    /// Every bit by the majority of their codes; where there is none, by the mean of the values.
    Majority,
}

/// How far from the code of a class a query may be to belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeRadius {
    /// Not at all, as in SMILE.
    #[default]
    Exact,
    /// Half of the least distance between two known codes, and 1 at least: no query is then between two classes.
    Separation,
    /// As in PHE (Zheng and others, NeurIPS 2024): half of d_max, and 1 at least. d_max is no property of the codes at hand but
    /// the distance that codes of these bits can keep when there are so many classes, by the bound of Gilbert and Varshamov as
    /// its authors' code approximates it: d_max = 3 for 200 classes and 12 bits, so a radius of 1.
    Bound {
        /// The number of classes; PHE counts those of the data set.
        classes: usize,
    },
}

impl CodeRadius {
    /// The largest distance that still counts.
    fn of(self, known: &[Vec<bool>]) -> usize {
        let between = match self {
            Self::Exact => return 0,
            Self::Separation => {
                let pairs = known
                    .iter()
                    .enumerate()
                    .flat_map(|(at, a)| known[..at].iter().map(move |b| (a, b)));
                pairs.map(|(a, b)| distance(a, b)).min().unwrap_or(0)
            }
            Self::Bound { classes } => bound(known.first().map_or(0, Vec::len), classes),
        };
        (between / 2).max(1)
    }
}

/// The first d of at least 2 for which the codes of so many bits, shared out among the classes, number between those at a
/// distance of d − 2 and of d − 1 from one of them; 0 when there is none.
fn bound(bits: usize, classes: usize) -> usize {
    let share = (bits as f64).exp2() / classes.max(1) as f64;
    let mut at_distance = 1.0;
    for d in 2..=bits {
        let next = at_distance * (bits - (d - 2)) as f64 / (d - 1) as f64;
        if at_distance <= share && share <= next {
            return d;
        }
        at_distance = next;
    }
    0
}

/// OCD's answer to an episode, from the hash values of its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ocd {
    /// How the examples of a class become its code.
    pub support_code: SupportCode,
    /// How far from it a query may be; one that is near to no class keeps its own code.
    pub radius: CodeRadius,
}

impl FromStr for SupportCode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mean" => Ok(SupportCode::Mean),
            "prototype" => Ok(SupportCode::Prototype),
            "majority" => Ok(SupportCode::Majority),
            _ => Err("one of mean, prototype, majority".to_owned()),
        }
    }
}

impl Ocd {
    /// The name on the command line, of the method that matches codes exactly.
    pub const NAME: &str = "ocd";
    /// The name of the one that allows for PHE's radius.
    pub const RADIUS_NAME: &str = "ocd-radius";

    /// What can be set by text.
    pub const PARAMETERS: &[Parameter] = &[
        Parameter::new(
            "support",
            "mean",
            "code of a class from its examples: mean|prototype|majority",
        ),
        Parameter::new("epochs", "100", "how often the head sees the base classes"),
        Parameter::new("batch", "128", "items of a step of its training"),
        Parameter::new("rate", "0.01", "learning rate at the beginning"),
        Parameter::new("hidden", "2048", "length of the layers inside of the head"),
    ];

    /// The method of some parameters, and how its head is trained; `classes` is the number of all classes, by which
    /// `ocd-radius` goes.
    pub fn from_values(values: &Values, classes: usize) -> Result<(Self, OcdTraining), ParameterError> {
        let name = values.method();
        let radius = match name {
            Self::RADIUS_NAME => CodeRadius::Bound { classes },
            _ => CodeRadius::Exact,
        };
        let mut training = OcdTraining::default();
        training.epochs = values.get("epochs", training.epochs)?;
        training.batch = values.get("batch", training.batch)?;
        training.rate = values.get("rate", training.rate)?;
        training.hash.shape.hidden = values.get("hidden", training.hash.shape.hidden)?;
        let positive = training.rate > 0.0 && training.rate.is_finite();
        if !positive {
            return Err(ParameterError::new(name, "rate", training.rate, "a number above 0"));
        }
        let support_code = values.get("support", SupportCode::default())?;
        Ok((Self { support_code, radius }, training))
    }

    /// The cluster of every prototype and then of every query: points of the same code are together, and two prototypes may
    /// be.
    ///
    /// Hash values are rows of so many bits; a bit is set when its value is above zero. `labels` are those of the examples,
    /// below `known`. A class without an example has the code of no bits set.
    pub fn clusters(
        &self,
        support_hashes: &[f32],
        labels: &[usize],
        known: usize,
        query_hashes: &[f32],
        bits: usize,
        prototype_hashes: Option<&[f32]>,
    ) -> Result<Vec<usize>, OcdError> {
        let support = rows(support_hashes, bits)?;
        if support.len() != labels.len() {
            return Err(OcdError::Labels {
                rows: support.len(),
                labels: labels.len(),
            });
        }
        if let Some(&label) = labels.iter().find(|&&label| label >= known) {
            return Err(OcdError::NoClass { label, known });
        }
        let codes: Vec<Vec<bool>> = match self.support_code {
            SupportCode::Prototype => {
                let prototypes = rows(prototype_hashes.unwrap_or(&[]), bits)?;
                if prototypes.len() != known {
                    let found = prototypes.len();
                    return Err(OcdError::Prototypes { found, known });
                }
                prototypes.into_iter().map(code).collect()
            }
            SupportCode::Mean | SupportCode::Majority => {
                let votes = self.support_code == SupportCode::Majority;
                let examples = |class| support.iter().zip(labels).filter(move |&(_, label)| *label == class);
                let bit = |class: usize, bit: usize| {
                    let values = examples(class).map(|(row, _)| row[bit]);
                    let (mut sum, mut lead) = (0.0, 0);
                    for value in values {
                        sum += f64::from(value);
                        lead += if value > 0.0 { 1 } else { -1 };
                    }
                    if votes && lead != 0 { lead > 0 } else { sum > 0.0 }
                };
                (0..known)
                    .map(|class| (0..bits).map(|at| bit(class, at)).collect())
                    .collect()
            }
        };
        let radius = self.radius.of(&codes);
        let queries = rows(query_hashes, bits)?.into_iter().map(|row| {
            let own = code(row);
            let nearest = codes.iter().min_by_key(|known| distance(known, &own));
            match nearest {
                Some(known) if distance(known, &own) <= radius => known.clone(),
                _ => own,
            }
        });
        let mut numbers = BTreeMap::new();
        let points = codes.iter().cloned().chain(queries);
        Ok(points
            .map(|code| {
                let next = numbers.len();
                *numbers.entry(code).or_insert(next)
            })
            .collect())
    }
}

/// Rows of hash values.
fn rows(values: &[f32], bits: usize) -> Result<Vec<&[f32]>, OcdError> {
    match bits > 0 && values.len().is_multiple_of(bits) {
        true => Ok(values.chunks_exact(bits).collect()),
        false => Err(OcdError::Values {
            values: values.len(),
            bits,
        }),
    }
}

fn code(hashes: &[f32]) -> Vec<bool> {
    hashes.iter().map(|&h| h > 0.0).collect()
}

/// The number of bits in which two codes differ.
fn distance(a: &[bool], b: &[bool]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}
