//! The settings of a training run, as stored in its folder.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use genus_core::episode::Shape;
use genus_core::ranges;
use genus_vision::Isa;
use genus_vision::train::{HashSettings, HashShape, HeadShape, ObjectiveSettings, TrainerSettings};
use serde::{Deserialize, Serialize};

/// Everything that a training run depends on but the images themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingSettings {
    /// The images: a folder with one folder per class, a manifest with labels, or the folder that a data set lies in.
    pub images: PathBuf,
    /// The name of the data set, if it is one of those that have a name; its split then says which classes are base classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Which of the data set's images are taken: train, test, all or paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Which classes are base classes; without it all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<PathBuf>,
    /// The encoder that is trained, as `EncoderSpec` writes it.
    pub encoder: String,
    /// The weights to begin with, as [`WeightsSource::to_record`](genus_vision::WeightsSource::to_record) writes them; without any the network is trained from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// What it is trained for.
    #[serde(default, skip_serializing_if = "Objective::is_usual")]
    pub objective: Objective,
    /// Which blocks are trained.
    pub blocks: TrainedBlocks,
    /// Whether batch normalisations of trained blocks keep the statistics that they came with.
    pub fixed_statistics: bool,
    /// Known classes of an episode.
    pub way: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// New classes of an episode.
    pub new: usize,
    /// Queries of a class.
    pub query: usize,
    /// Leaves classes out that have too few images for an episode.
    pub skip_short_classes: bool,
    /// How many epochs there are; with none the encoder is the one to begin with.
    pub epochs: u64,
    /// Episodes, and so steps, of an epoch.
    pub episodes: u64,
    /// Images of a step, of all classes that are trained on; an epoch then goes once through all images, and episodes are
    /// for validation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// The learning rate at the beginning.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// How much of its direction a step takes over from the one before.
    pub momentum: f64,
    /// How strongly every trained value is drawn to zero.
    pub weight_decay: f64,
    /// The temperature of the loss.
    pub temperature: f64,
    /// Views of every image in a step.
    pub views: usize,
    /// Whether half of the views are mirrored.
    pub mirror: bool,
    /// The length of the head's layers inside.
    pub head_hidden: usize,
    /// The length of the head's last layer; 0 for none.
    pub head_width: usize,
    /// The bits of a code, where codes are learnt.
    #[serde(default = "usual_bits", skip_serializing_if = "is_usual_bits")]
    pub bits: usize,
    /// How many views of every image the frozen blocks see once and for all; 0 to run them in every step.
    pub cache_trunk: usize,
    /// How many base classes are held out for validation; without it as many as an episode needs, if twice as many are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_classes: Option<usize>,
    /// Episodes of a validation.
    pub validation_episodes: u64,
    /// Epochs from one validation to the next.
    pub validate_every: u64,
    /// The seed of everything random.
    pub seed: u64,
}

impl TrainingSettings {
    /// The authors' settings for an objective, of all blocks from nothing or of the last ones of a network with weights; the
    /// images and the encoder are left to be named.
    pub fn usual(objective: Objective, from_scratch: bool) -> Self {
        let (blocks, epochs, batch, views) = match objective {
            Objective::Contrast => (2, 50, None, 1),
            Objective::Hash => (1, 100, Some(128), 2),
        };
        let Shape { way, shot, new, query } = Shape::default();
        Self {
            images: PathBuf::new(),
            data: None,
            part: None,
            split: None,
            encoder: String::new(),
            weights: None,
            objective,
            blocks: match from_scratch {
                true => TrainedBlocks::All,
                false => TrainedBlocks::Last(blocks),
            },
            fixed_statistics: !from_scratch,
            way,
            shot,
            new,
            query,
            skip_short_classes: false,
            epochs,
            episodes: 50,
            batch,
            learning_rate: 0.01,
            schedule: Schedule::Cosine,
            momentum: 0.9,
            weight_decay: 5e-5,
            temperature: 0.07,
            views,
            mirror: true,
            head_hidden: 2048,
            head_width: 65_536,
            bits: usual_bits(),
            cache_trunk: 0,
            validation_classes: None,
            validation_episodes: 200,
            validate_every: 5,
            seed: 0,
        }
    }
}

fn usual_bits() -> usize {
    HashShape::default().bits
}

fn is_usual_bits(bits: &usize) -> bool {
    *bits == usual_bits()
}

/// What a network is trained for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// To bring the images of a class together.
    #[default]
    Contrast,
    /// To give the images of a class the same code, as OCD does.
    Hash,
}

impl Objective {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Which blocks are trained: the last so many, or all with everything around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TrainedBlocks {
    /// The last so many.
    Last(usize),
    /// The whole network.
    All,
}

impl fmt::Display for TrainedBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrainedBlocks::Last(count) => count.fmt(f),
            TrainedBlocks::All => f.write_str("all"),
        }
    }
}

impl FromStr for TrainedBlocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(TrainedBlocks::All),
            (_, Ok(count)) if count > 0 => match ranges::check("blocks", count as u64) {
                Ok(()) => Ok(TrainedBlocks::Last(count)),
                Err(error) => Err(format!("it must be {error}")),
            },
            _ => Err(format!("`{text}` is neither a number of blocks nor `all`")),
        }
    }
}

impl From<TrainedBlocks> for String {
    fn from(blocks: TrainedBlocks) -> Self {
        blocks.to_string()
    }
}

impl TryFrom<String> for TrainedBlocks {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How the learning rate changes from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Down to a thousandth along half a cosine.
    Cosine,
    /// Not at all, as in the authors' code.
    Constant,
}

/// What the learning rate is multiplied by at the end of the cosine.
const LAST_RATE: f64 = 1e-3;

impl Schedule {
    /// The learning rate in an epoch, counted from zero, given that at the beginning.
    pub fn rate(self, first: f64, epoch: u64, epochs: u64) -> f64 {
        match self {
            Schedule::Constant => first,
            Schedule::Cosine => {
                let share = epoch as f64 / epochs.max(1) as f64;
                let height = (1.0 + (std::f64::consts::PI * share).cos()) / 2.0;
                first * (LAST_RATE + (1.0 - LAST_RATE) * height)
            }
        }
    }
}

impl TrainingSettings {
    /// The shape of an episode.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            way: self.way,
            shot: self.shot,
            new: self.new,
            query: self.query,
        }
    }

    pub(crate) fn trainer(&self, isa: Isa) -> TrainerSettings {
        TrainerSettings {
            blocks: match self.blocks {
                TrainedBlocks::Last(count) => Some(count),
                TrainedBlocks::All => None,
            },
            objective: match self.objective {
                Objective::Contrast => ObjectiveSettings::Contrast {
                    head: HeadShape {
                        hidden: self.head_hidden,
                        width: self.head_width,
                        ..HeadShape::default()
                    },
                    temperature: self.temperature,
                },
                Objective::Hash => ObjectiveSettings::Hash(self.hash()),
            },
            momentum: self.momentum,
            weight_decay: self.weight_decay,
            fixed_statistics: self.fixed_statistics,
            isa,
        }
    }

    /// The learning rate in an epoch, counted from zero.
    pub(crate) fn learning_rate_in(&self, epoch: u64) -> f64 {
        self.schedule.rate(self.learning_rate, epoch, self.epochs)
    }

    /// The loss of a batch of so many images in which the network tells none from another.
    pub(crate) fn chance(&self, images: usize) -> f64 {
        let alike = (images as f64 - 1.0).ln();
        match self.objective {
            Objective::Contrast => alike,
            // Values of zero are as far from a sign as can be.
            Objective::Hash => alike + self.hash().sign_weight,
        }
    }

    fn hash(&self) -> HashSettings {
        HashSettings {
            shape: HashShape {
                hidden: self.head_hidden,
                bits: self.bits,
                ..HashShape::default()
            },
            temperature: self.temperature,
            ..HashSettings::default()
        }
    }

    /// What is out of range, if anything is.
    pub(crate) fn problem(&self) -> Option<String> {
        let positive = [
            ("the learning rate", self.learning_rate),
            ("the temperature", self.temperature),
        ];
        let positive = positive
            .into_iter()
            .find(|(_, value)| !(*value > 0.0 && value.is_finite()));
        if let Some((what, value)) = positive {
            return Some(format!("{what} is {value}; it must be above zero"));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Some(format!(
                "the momentum is {}; it must be from 0 up to and without 1",
                self.momentum
            ));
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return Some(format!(
                "the weight decay is {}; it must not be negative",
                self.weight_decay
            ));
        }
        let whole = [
            ("views of an image", self.views as u64),
            ("episodes of an epoch", self.episodes),
            ("epochs between validations", self.validate_every),
            ("values inside of the head", self.head_hidden as u64),
            ("bits of a code", self.bits as u64),
            ("images of a batch", self.batch.map_or(1, |images| images as u64)),
        ];
        if let Some((what, _)) = whole.into_iter().find(|(_, value)| *value == 0) {
            return Some(format!("there are 0 {what}; there must be at least one"));
        }
        let ranged = [
            ("way", self.way as u64),
            ("shot", self.shot as u64),
            ("new", self.new as u64),
            ("query", self.query as u64),
            ("epochs", self.epochs),
            ("episodes", self.episodes),
            ("batch", self.batch.map_or(1, |images| images as u64)),
            ("views", self.views as u64),
            ("head-hidden", self.head_hidden as u64),
            ("head-width", self.head_width as u64),
            ("bits", self.bits as u64),
            ("cache-trunk", self.cache_trunk as u64),
            ("validation-classes", self.validation_classes.unwrap_or(0) as u64),
            ("validation-episodes", self.validation_episodes),
            ("validate-every", self.validate_every),
        ];
        ranged.into_iter().find_map(|(name, value)| {
            let error = ranges::check(name, value).err()?;
            Some(format!("{name} is {value}; it must be {error}"))
        })
    }
}
