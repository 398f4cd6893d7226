//! Realistic piles: many or few items per class, long tails, bursts, few examples, outliers.

use std::fmt;
use std::str::FromStr;

use genus_core::Features;
use genus_core::episode::{Episode, Pile, Shape, Tail};
use genus_core::rng::Rng;

use crate::report::outliers_in_words;

/// The stream of random numbers that frames are made with.
const FRAME: u64 = 0x66;
/// How far a frame lies from its photograph, as a share of the photograph's length. The cosine of the two is about 0.97, which is
/// what two frames of `bench/bursts.py` have through EfficientNet-Lite2.
const SHAKE: f64 = 0.25;

/// What is varied from pile to pile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PileVariable {
    /// The items of a class.
    Items,
    /// Whether the classes have a long tail.
    Tail,
    /// Whether items come in bursts.
    Bursts,
    /// The examples of a known class.
    Examples,
    /// Whether there are outliers.
    Outliers,
}

impl PileVariable {
    /// Everything that can be varied.
    pub const ALL: [Self; 5] = [Self::Items, Self::Tail, Self::Bursts, Self::Examples, Self::Outliers];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Tail => "tail",
            Self::Bursts => "bursts",
            Self::Examples => "examples",
            Self::Outliers => "outliers",
        }
    }
}

impl fmt::Display for PileVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PileVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|varied| varied.name() == text);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The piles of an experiment. The shape of the bench has their classes and the usual number of examples.
#[derive(Clone, Debug)]
pub struct PileSettings {
    /// The numbers of items of a class. What else is varied is varied around the middle one.
    pub items: Vec<usize>,
    /// The fewest and the most items of a class in a pile with a long tail.
    pub tail: Tail,
    /// The frames of a burst.
    pub frames: usize,
    /// The numbers of examples of a known class.
    pub examples: Vec<usize>,
    /// The outliers of a pile.
    pub outliers: usize,
    /// What is varied.
    pub varied: Vec<PileVariable>,
}

impl Default for PileSettings {
    fn default() -> Self {
        Self {
            items: vec![20, 60, 200],
            tail: Tail {
                smallest: 6,
                largest: 200,
            },
            frames: 3,
            examples: vec![1, 5, 10],
            outliers: 10,
            varied: PileVariable::ALL.to_vec(),
        }
    }
}

impl PileSettings {
    /// The number of items of a class where another thing is varied: the middle one, the lower of two.
    pub fn usual_items(&self) -> usize {
        let mut items = self.items.clone();
        items.sort_unstable();
        items.get(items.len().saturating_sub(1) / 2).copied().unwrap_or(0)
    }

    /// The piles, each once, in the order of [`PileVariable::ALL`].
    pub(crate) fn piles(&self, shape: Shape) -> Vec<PileKind> {
        let usual = PileKind {
            varied: PileVariable::Items,
            shape: Shape {
                query: self.usual_items(),
                ..shape
            },
            pile: Pile::default(),
            frames: 1,
        };
        let mut piles: Vec<PileKind> = Vec::new();
        for varied in PileVariable::ALL
            .into_iter()
            .filter(|varied| self.varied.contains(varied))
        {
            let of = PileKind { varied, ..usual };
            let new: Vec<PileKind> = match varied {
                PileVariable::Items => self
                    .items
                    .iter()
                    .map(|&query| of.with(Shape { query, ..shape }))
                    .collect(),
                PileVariable::Tail => vec![PileKind {
                    pile: Pile {
                        tail: Some(self.tail),
                        ..of.pile
                    },
                    ..of
                }],
                PileVariable::Bursts => vec![PileKind {
                    frames: self.frames,
                    ..of
                }],
                PileVariable::Examples => {
                    let shots = self.examples.iter();
                    shots.map(|&shot| of.with(Shape { shot, ..usual.shape })).collect()
                }
                PileVariable::Outliers => vec![PileKind {
                    pile: Pile {
                        outliers: self.outliers,
                        ..of.pile
                    },
                    ..of
                }],
            };
            for pile in new {
                if !piles.iter().any(|other| other.is_same(&pile)) {
                    piles.push(pile);
                }
            }
        }
        piles
    }
}

/// One of the piles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PileKind {
    pub(crate) varied: PileVariable,
    pub(crate) shape: Shape,
    pub(crate) pile: Pile,
    /// The frames of every item that is not an example.
    pub(crate) frames: usize,
}

impl PileKind {
    fn with(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Whether the same would be drawn, whatever it is drawn for.
    fn is_same(&self, other: &Self) -> bool {
        *self
            == Self {
                varied: self.varied,
                ..*other
            }
    }
}

impl fmt::Display for PileKind {
    /// As in `24 × 60 in bursts of 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { way, new, shot, query } = self.shape;
        write!(f, "{} × ", way + new)?;
        match self.pile.tail {
            Some(Tail { smallest, largest }) => write!(f, "{smallest}–{largest}")?,
            None => write!(f, "{query}")?,
        }
        if self.frames > 1 {
            write!(f, " in bursts of {}", self.frames)?;
        }
        match (self.varied, shot) {
            (PileVariable::Examples, 1) => write!(f, ", 1 example")?,
            (PileVariable::Examples, more) => write!(f, ", {more} examples")?,
            _ => {}
        }
        match self.pile.outliers {
            0 => Ok(()),
            some => write!(f, " and {}", outliers_in_words(some)),
        }
    }
}

/// The same episode with so many frames of every query, one after the other.
pub(crate) fn in_bursts(mut episode: Episode, frames: usize) -> Episode {
    let repeated = |values: &[usize]| -> Vec<usize> {
        let all = values.iter().flat_map(|&value| std::iter::repeat_n(value, frames));
        all.collect()
    };
    episode.queries = repeated(&episode.queries);
    episode.truth = repeated(&episode.truth);
    episode.outliers *= frames;
    episode
}

/// The rows of queries that come in bursts, as [`in_bursts`] has them.
///
/// The first frame of a burst is the row as it is. Another is moved a little along the difference of two other rows, so that
/// frames differ in what features differ in. This stands in for photographs; bursts of real ones come from `bench/bursts.py`.
pub(crate) fn frame_rows(features: &Features, queries: &[usize], frames: usize, seed: u64, number: u64) -> Vec<f32> {
    let length = |row: &mut dyn Iterator<Item = f64>| row.map(|v| v * v).sum::<f64>().sqrt();
    let mut values = Vec::with_capacity(queries.len() * features.dim());
    for (at, &query) in queries.iter().enumerate() {
        let row = features.row(query);
        let frame = at % frames;
        if frame == 0 {
            values.extend_from_slice(row);
            continue;
        }
        let mut rng = Rng::new(seed, &[FRAME, number, (at / frames) as u64, frame as u64]);
        let rows = features.rows();
        let from = rng.below(rows);
        // Another one, unless there is no other.
        let to = (from + 1 + rng.below((rows - 1).max(1))) % rows;
        let [from, to] = [from, to].map(|row| features.row(row));
        let step = || from.iter().zip(to).map(|(&from, &to)| f64::from(to) - f64::from(from));
        let way = length(&mut step());
        // Equal rows move nothing: the frame is a copy.
        let scale = match way > 0.0 {
            true => SHAKE * length(&mut row.iter().map(|&v| f64::from(v))) / way,
            false => 0.0,
        };
        values.extend(
            row.iter()
                .zip(step())
                .map(|(&v, step)| (f64::from(v) + scale * step) as f32),
        );
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        way: 8,
        shot: 5,
        new: 16,
        query: 0,
    };

    fn names(settings: &PileSettings) -> Vec<String> {
        settings.piles(SHAPE).iter().map(PileKind::to_string).collect()
    }

    #[test]
    fn one_thing_is_varied_at_a_time() {
        let expected = [
            "24 × 20",
            "24 × 60",
            "24 × 200",
            "24 × 6–200",
            "24 × 60 in bursts of 3",
            "24 × 60, 1 example",
            "24 × 60, 10 examples",
            "24 × 60 and 10 outliers",
        ];
        assert_eq!(names(&PileSettings::default()), expected);
    }

    #[test]
    fn what_is_asked_for_alone_is_there_alone() {
        let of = |varied: &[PileVariable], items: &[usize]| {
            names(&PileSettings {
                varied: varied.to_vec(),
                items: items.to_vec(),
                ..PileSettings::default()
            })
        };
        assert_eq!(of(&[PileVariable::Bursts], &[200, 20]), ["24 × 20 in bursts of 3"]);
        assert_eq!(
            of(&[PileVariable::Tail, PileVariable::Items], &[7, 7]),
            ["24 × 7", "24 × 6–200"]
        );
        let examples = ["24 × 9, 1 example", "24 × 9, 5 examples", "24 × 9, 10 examples"];
        assert_eq!(of(&[PileVariable::Examples], &[9]), examples);
        // A burst of one frame is no burst.
        let single = PileSettings {
            frames: 1,
            varied: vec![PileVariable::Items, PileVariable::Bursts],
            ..PileSettings::default()
        };
        assert_eq!(names(&single), ["24 × 20", "24 × 60", "24 × 200"]);
    }

    #[test]
    fn frames_are_near_their_photograph_and_nothing_else_is_as_near() {
        let mut rng = Rng::new(3, &[]);
        let rows: Vec<Vec<f32>> = (0..40)
            .map(|_| (0..32).map(|_| (rng.unit() - 0.5) as f32).collect())
            .collect();
        let features = Features::from_rows(&rows).unwrap();
        let queries: Vec<usize> = [4, 9, 11].iter().flat_map(|&row| [row; 3]).collect();
        let made = frame_rows(&features, &queries, 3, 1, 0);
        let made: Vec<&[f32]> = made.chunks_exact(32).collect();
        let cosine = |a: &[f32], b: &[f32]| {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        for (at, &query) in queries.iter().enumerate() {
            let near = cosine(made[at], features.row(query));
            match at % 3 {
                0 => assert_eq!(made[at], features.row(query)),
                _ => assert!((0.96..0.99).contains(&near), "{near}"),
            }
            for other in (0..40).filter(|&other| other != query) {
                assert!(cosine(made[at], features.row(other)) < near);
            }
        }
        assert_ne!(made[1], made[2]);
        assert_eq!(made.concat(), frame_rows(&features, &queries, 3, 1, 0));
        assert_ne!(made.concat(), frame_rows(&features, &queries, 3, 2, 0));
        assert_ne!(made.concat(), frame_rows(&features, &queries, 3, 1, 1));
    }
}
