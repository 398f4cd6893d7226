//! Benchmark trials: which classes are known, which are new, which items are examples and which are queries.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::choice::choice;
use crate::ranges::{self, RangeError};
use crate::rng::Rng;

/// Streams of random numbers.
const EPISODE: u64 = 0x65;
const LARGE: u64 = 0x6c;
const OUTLIER: u64 = 0x6f;
const TAIL: u64 = 0x74;

/// Items of a class in a batch of the authors' large-scale code.
const BATCH: usize = 20;

/// The shape of an episode: N-way K-shot M-new Q-query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Known classes (N).
    pub way: usize,
    /// Labelled examples of a known class (K).
    pub shot: usize,
    /// New classes (M).
    pub new: usize,
    /// Queries of every class (Q).
    pub query: usize,
}

impl Shape {
    /// How many items of a class [`Pool::large_in_order`] needs: full batches that hold more than the examples.
    pub fn items_in_order(self) -> usize {
        (self.shot / BATCH + 1).saturating_mul(BATCH)
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            way: 5,
            shot: 5,
            new: 5,
            query: 15,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w{}s{}n", self.way, self.shot, self.new)
    }
}

/// What the queries of an episode are like where it is not the same number of every class; by default it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pile {
    /// Few queries of some classes and many of others, instead of as many of every class.
    pub tail: Option<Tail>,
    /// Outlier queries: each is the only one of its class.
    pub outliers: usize,
}

impl Pile {
    /// How many items of a class suffice for every episode: it may be a known one and have the most queries.
    pub fn items(self, shape: Shape) -> usize {
        let most = self.tail.map_or(shape.query, |tail| tail.largest);
        shape.shot.saturating_add(most)
    }

    /// How many classes an episode needs, those of the outliers among them.
    pub fn classes(self, shape: Shape) -> usize {
        shape.way.saturating_add(shape.new).saturating_add(self.outliers)
    }
}

/// The fewest and the most queries of a class; those of the others are on a geometric ladder between them.
///
/// ```
/// use genus_core::episode::Tail;
///
/// let tail: Tail = "1-16".parse()?;
/// assert_eq!(tail.ladder(5), [1, 2, 4, 8, 16]);
/// # Ok::<(), genus_core::episode::EpisodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Queries of the smallest class; with 0 it has none, and the ladder of the others begins at 1.
    pub smallest: usize,
    /// Queries of the largest class.
    pub largest: usize,
}

impl Tail {
    /// The numbers of queries of so many classes, ascending. A single class has the most.
    pub fn ladder(self, classes: usize) -> Vec<usize> {
        let Self { smallest, largest } = self;
        // Nothing is the first step of a geometric ladder from nothing.
        let empty = usize::from(smallest == 0 && classes > 1);
        let (low, high) = (smallest.max(empty) as f64, largest as f64);
        let rung = |class: usize| {
            if class < empty {
                return 0;
            }
            if class + 1 == classes {
                return largest;
            }
            let height = (class - empty) as f64 / (classes - 1 - empty) as f64;
            // A root of whole numbers is whole or irrational: none is halfway between two, so all machines round alike.
            ((low * (high / low).powf(height)).round() as usize).min(largest)
        };
        (0..classes).map(rung).collect()
    }

    fn check(self) -> Result<Self, EpisodeError> {
        let Self { smallest, largest } = self;
        if smallest > largest {
            return Err(EpisodeError::TailReversed { smallest, largest });
        }
        Ok(self)
    }
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            smallest: 3,
            largest: 24,
        }
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.smallest, self.largest)
    }
}

impl FromStr for Tail {
    type Err = EpisodeError;

    fn from_str(text: &str) -> Result<Self, EpisodeError> {
        let numbers = text
            .split_once('-')
            .and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        let Some((smallest, largest)) = numbers else {
            return Err(EpisodeError::NoTail { text: text.to_owned() });
        };
        ranges::check("items", largest as u64)?;
        Self { smallest, largest }.check()
    }
}

/// The items that episodes are drawn from, class by class.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    classes: Vec<String>,
    items: Vec<Vec<usize>>,
}

/// One trial. Items are numbers of rows; classes are numbered with the known ones first.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The pool's numbers of the known classes, then of the new ones.
    pub classes: Vec<usize>,
    /// How many of them are known.
    pub known: usize,
    /// The examples, shot by shot.
    pub support: Vec<usize>,
    /// The class of every example.
    pub support_classes: Vec<usize>,
    /// The queries: those of known classes first, in each part query by query, and outliers last; in a large task sample by
    /// sample over all classes.
    pub queries: Vec<usize>,
    /// The true class of every query. Outliers have the numbers after the last class, each its own.
    pub truth: Vec<usize>,
    /// How many of the queries are outliers.
    pub outliers: usize,
}

choice! {
    /// What to do with classes that have too few items.
    ShortClasses {
        /// Fail and name the class.
        Error = "error",
        /// Leave them out.
        Skip = "skip",
    }
}

choice! {
    /// One of the two halves that classes are divided into, so that what is chosen on one can be measured on the other.
    Half {
        /// The larger one where the number of classes is odd.
        First = "first",
        /// The rest.
        Second = "second",
    }
}

impl Half {
    /// The other half.
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Why no episode can be drawn.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EpisodeError {
    /// A number outside its range.
    #[error("a class has {0} items")]
    Range(#[from] RangeError),
    /// Fewer classes than an episode needs.
    #[error("an episode needs {needed} classes, and there are {found}")]
    TooFewClasses {
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// Fewer classes beside those of an episode than it has outliers.
    #[error(
        "outliers are of a class each: {outliers} are asked for, and beside the {classes} classes of an episode there are {found}"
    )]
    TooFewForOutliers {
        /// How many outliers there should be.
        outliers: usize,
        /// How many known and new classes there are.
        classes: usize,
        /// How many classes are left.
        found: usize,
    },
    /// A class with fewer items than an episode needs.
    #[error("class `{class}` has {found} items, and an episode needs {needed} of a class")]
    TooFewItems {
        /// The class.
        class: String,
        /// How many items of a class an episode needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// A shape without known classes, examples or queries.
    #[error("an episode needs at least one {what}")]
    Nothing {
        /// What there is none of.
        what: &'static str,
    },
    /// A tail whose smallest class is larger than its largest.
    #[error("a tail goes from the fewest queries of a class to the most, as in {largest}-{smallest}")]
    TailReversed {
        /// What should be the fewest.
        smallest: usize,
        /// What should be the most.
        largest: usize,
    },
    /// A text that names no tail.
    #[error("`{text}` is not the fewest and the most queries of a class, as in 3-24")]
    NoTail {
        /// The text.
        text: String,
    },
}

impl Pool {
    /// Groups rows by class; `classes` in ascending order, rows of no listed class left out, classes without rows too.
    pub fn new<S: AsRef<str>>(classes: &[S], labels: &[Option<String>]) -> Self {
        let number: std::collections::HashMap<&str, usize> = classes
            .iter()
            .enumerate()
            .map(|(number, class)| (class.as_ref(), number))
            .collect();
        let mut items = vec![Vec::new(); classes.len()];
        for (row, label) in labels.iter().enumerate() {
            if let Some(&class) = label.as_deref().and_then(|label| number.get(label)) {
                items[class].push(row);
            }
        }
        let (classes, items) = classes
            .iter()
            .map(|class| class.as_ref().to_owned())
            .zip(items)
            .filter(|(_, items)| !items.is_empty())
            .unzip();
        Self { classes, items }
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The rows of every class.
    pub fn items(&self) -> &[Vec<usize>] {
        &self.items
    }

    /// The size of the smallest class.
    pub fn smallest_class(&self) -> usize {
        self.items.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Every second class, in their order: no seed moves a class from one half to the other, and classes that stand side by side,
    /// as those of one kind often do, are shared out evenly.
    ///
    /// ```
    /// use genus_core::episode::{Half, Pool};
    ///
    /// let labels = ["ant", "bee", "cat", "dog", "eel"].map(|class| Some(class.to_owned()));
    /// let pool = Pool::new(&["ant", "bee", "cat", "dog", "eel"], &labels);
    /// let (first, second) = (pool.half(Half::First), pool.half(Half::Second));
    /// assert_eq!(first.classes(), ["ant", "cat", "eel"]);
    /// assert_eq!(second.classes(), ["bee", "dog"]);
    /// ```
    pub fn half(&self, half: Half) -> Self {
        let first = match half {
            Half::First => 0,
            Half::Second => 1,
        };
        let chosen: Vec<usize> = (first..self.classes.len()).step_by(2).collect();
        Self {
            classes: chosen.iter().map(|&class| self.classes[class].clone()).collect(),
            items: chosen.iter().map(|&class| self.items[class].clone()).collect(),
        }
    }

    /// Makes sure that every class has `needed` items; the pool and the classes that were left out.
    pub fn with_at_least(self, needed: usize, policy: ShortClasses) -> Result<(Self, Vec<String>), EpisodeError> {
        if policy == ShortClasses::Error {
            if let Some(short) = (0..self.classes.len()).find(|&class| self.items[class].len() < needed) {
                return Err(EpisodeError::TooFewItems {
                    class: self.classes[short].clone(),
                    needed,
                    found: self.items[short].len(),
                });
            }
            return Ok((self, Vec::new()));
        }
        let (kept, short): (Vec<_>, Vec<_>) = self
            .classes
            .into_iter()
            .zip(self.items)
            .partition(|(_, items)| items.len() >= needed);
        let (classes, items) = kept.into_iter().unzip();
        Ok((
            Self { classes, items },
            short.into_iter().map(|(class, _)| class).collect(),
        ))
    }

    /// Draws the episode of a number. The same seed and number always give the same episode.
    pub fn episode(&self, shape: Shape, seed: u64, number: u64) -> Result<Episode, EpisodeError> {
        self.episode_of(shape, Pile::default(), seed, number)
    }

    /// Draws the episode of a number with a tail or outliers. Its classes and examples are those of the episode without,
    /// and the queries of a class begin with the same ones. `query` of the shape is not used where there is a tail.
    pub fn episode_of(&self, shape: Shape, pile: Pile, seed: u64, number: u64) -> Result<Episode, EpisodeError> {
        let Shape { way, shot, .. } = shape;
        match pile.tail {
            None if shape.query == 0 => return Err(EpisodeError::Nothing { what: "query a class" }),
            None => {}
            Some(tail) => {
                tail.check()?;
                if tail.largest == 0 && pile.outliers == 0 {
                    return Err(EpisodeError::Nothing { what: "query" });
                }
            }
        }
        let mut classes = self.draw_classes(shape, pile.outliers, seed, &[EPISODE, number])?;
        let apart = classes.split_off(way + shape.new);
        let queries = match pile.tail {
            None => vec![shape.query; classes.len()],
            Some(tail) => {
                let ladder = tail.ladder(classes.len());
                let order = Rng::new(seed, &[TAIL, number]).sample(ladder.len(), ladder.len());
                order.into_iter().map(|rung| ladder[rung]).collect()
            }
        };
        let drawn = classes
            .iter()
            .enumerate()
            .map(|(at, &class)| {
                let shots = if at < way { shot } else { 0 };
                let needed = shots.saturating_add(queries[at]);
                let items = &self.items[class];
                if items.len() < needed {
                    return Err(EpisodeError::TooFewItems {
                        class: self.classes[class].clone(),
                        needed,
                        found: items.len(),
                    });
                }
                let picked = Rng::new(seed, &[EPISODE, number, 1 + at as u64]).sample(items.len(), needed);
                Ok(picked.into_iter().map(|item| items[item]).collect::<Vec<_>>())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut episode = Episode::empty(classes, way);
        for part in [0..way, way..drawn.len()] {
            let samples = drawn[part.clone()].iter().map(Vec::len).max().unwrap_or(0);
            for sample in 0..samples {
                for class in part.clone() {
                    if let Some(&item) = drawn[class].get(sample) {
                        episode.add(item, class, sample < shot);
                    }
                }
            }
        }
        for (at, &class) in apart.iter().enumerate() {
            let items = &self.items[class];
            let item = Rng::new(seed, &[OUTLIER, number, at as u64]).below(items.len());
            episode.add(items[item], way + shape.new + at, false);
        }
        episode.outliers = apart.len();
        Ok(episode)
    }

    /// Draws a large task: the classes at random, and of each as many items as the smallest has, the first `shot` of the
    /// known ones as examples. `query` of the shape is not used.
    pub fn large(&self, shape: Shape, seed: u64, number: u64) -> Result<Episode, EpisodeError> {
        let classes = self.draw_classes(shape, 0, seed, &[LARGE, number])?;
        let each = self.items_each(&classes, shape.shot.saturating_add(1))?;
        let drawn: Vec<Vec<usize>> = classes
            .iter()
            .enumerate()
            .map(|(at, &class)| {
                let picked = Rng::new(seed, &[LARGE, number, 1 + at as u64]).sample(self.items[class].len(), each);
                picked.into_iter().map(|item| self.items[class][item]).collect()
            })
            .collect();
        let mut episode = Episode::empty(classes, shape.way);
        for sample in 0..each {
            for (class, items) in drawn.iter().enumerate() {
                episode.add(items[sample], class, sample < shape.shot);
            }
        }
        Ok(episode)
    }

    /// Draws a large task as the authors' code does: items in the order of the data, in batches of 20 a class, a class's
    /// items beyond the last full batch of the smallest class left out. Also returns how many of the queries are in the
    /// first two batches, which are the ones to cluster.
    pub fn large_in_order(&self, shape: Shape, seed: u64, number: u64) -> Result<(Episode, usize), EpisodeError> {
        let classes = self.draw_classes(shape, 0, seed, &[LARGE, number])?;
        let each = self.items_each(&classes, shape.items_in_order())? / BATCH * BATCH;
        let mut episode = Episode::empty(classes.clone(), shape.way);
        let mut in_first_two = 0;
        for sample in 0..each {
            for (at, &class) in classes.iter().enumerate() {
                episode.add(self.items[class][sample], at, sample < shape.shot);
            }
            if sample + 1 == (2 * BATCH).min(each) {
                in_first_two = episode.queries.len();
            }
        }
        Ok((episode, in_first_two))
    }

    /// The size of the smallest of some classes, which must be at least `needed`.
    fn items_each(&self, classes: &[usize], needed: usize) -> Result<usize, EpisodeError> {
        let smallest = classes.iter().copied().min_by_key(|&class| self.items[class].len());
        let Some(smallest) = smallest else {
            return Err(EpisodeError::Nothing { what: "class" });
        };
        let found = self.items[smallest].len();
        if found < needed {
            return Err(EpisodeError::TooFewItems {
                class: self.classes[smallest].clone(),
                needed,
                found,
            });
        }
        Ok(found)
    }

    /// The known classes, the new ones, and so many others.
    fn draw_classes(&self, shape: Shape, outliers: usize, seed: u64, uses: &[u64]) -> Result<Vec<usize>, EpisodeError> {
        for (count, what) in [(shape.way, "known class"), (shape.shot, "example a class")] {
            if count == 0 {
                return Err(EpisodeError::Nothing { what });
            }
        }
        let needed = shape.way.saturating_add(shape.new);
        if self.classes.len() < needed {
            return Err(EpisodeError::TooFewClasses {
                needed,
                found: self.classes.len(),
            });
        }
        let left = self.classes.len() - needed;
        if left < outliers {
            return Err(EpisodeError::TooFewForOutliers {
                outliers,
                classes: needed,
                found: left,
            });
        }
        // The first of a permutation, so the others change nothing in those before.
        Ok(Rng::new(seed, uses).sample(self.classes.len(), needed + outliers))
    }
}

impl Episode {
    fn empty(classes: Vec<usize>, known: usize) -> Self {
        Self {
            classes,
            known,
            support: Vec::new(),
            support_classes: Vec::new(),
            queries: Vec::new(),
            truth: Vec::new(),
            outliers: 0,
        }
    }

    /// How many of the queries belong to a class: all but the outliers, and they come first.
    pub fn belonging(&self) -> usize {
        self.queries.len().saturating_sub(self.outliers)
    }

    /// Adds an item as an example if it may be one and its class is known, else as a query.
    fn add(&mut self, item: usize, class: usize, may_be_example: bool) {
        if may_be_example && class < self.known {
            self.support.push(item);
            self.support_classes.push(class);
        } else {
            self.queries.push(item);
            self.truth.push(class);
        }
    }
}
