//! Benchmark trials: which classes are known, which are new, which items are examples and which are queries.

use std::fmt;

use thiserror::Error;

use crate::choice::choice;
use crate::rng::Rng;

/// Streams of random numbers.
const EPISODE: u64 = 0x65;
const LARGE: u64 = 0x6c;

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
    /// The queries: those of known classes first, in each part query by query; in a large task sample by sample over all
    /// classes.
    pub queries: Vec<usize>,
    /// The true class of every query.
    pub truth: Vec<usize>,
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

/// Why no episode can be drawn.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EpisodeError {
    /// Fewer classes than an episode needs.
    #[error("an episode needs {needed} classes, and there are {found}")]
    TooFewClasses {
        /// How many it needs.
        needed: usize,
        /// How many there are.
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
        let Shape { way, shot, query, .. } = shape;
        if query == 0 {
            return Err(EpisodeError::Nothing { what: "query a class" });
        }
        let classes = self.draw_classes(shape, seed, &[EPISODE, number])?;
        let drawn = classes
            .iter()
            .enumerate()
            .map(|(at, &class)| {
                let needed = if at < way { shot.saturating_add(query) } else { query };
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
        let (old, new) = drawn.split_at(way);
        for sample in 0..shot + query {
            for (class, items) in old.iter().enumerate() {
                episode.add(items[sample], class, sample < shot);
            }
        }
        for sample in 0..query {
            for (at, items) in new.iter().enumerate() {
                episode.add(items[sample], way + at, false);
            }
        }
        Ok(episode)
    }

    /// Draws a large task: the classes at random, and of each as many items as the smallest has, the first `shot` of the
    /// known ones as examples. `query` of the shape is not used.
    pub fn large(&self, shape: Shape, seed: u64, number: u64) -> Result<Episode, EpisodeError> {
        let classes = self.draw_classes(shape, seed, &[LARGE, number])?;
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
        let classes = self.draw_classes(shape, seed, &[LARGE, number])?;
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

    fn draw_classes(&self, shape: Shape, seed: u64, uses: &[u64]) -> Result<Vec<usize>, EpisodeError> {
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
        Ok(Rng::new(seed, uses).sample(self.classes.len(), needed))
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
        }
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
