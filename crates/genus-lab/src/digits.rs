//! The demonstration: handwritten digits, five of them known from five examples each, five never labelled.

use genus_core::episode::{Pool, Shape};
use genus_core::{Features, Support, Task, Taxonomy};
use genus_data::digits;

use crate::{LabError, ScoredMethod};

/// One large task on handwritten digits, with its pictures and its truth.
pub struct DigitsTask {
    pixels: Features,
    support: Vec<usize>,
    queries: Vec<usize>,
    truth: Vec<usize>,
    digits: Vec<u8>,
    task: Task,
}

impl DigitsTask {
    /// Draws which digits are known and which examples are labelled.
    pub fn new(seed: u64) -> Result<Self, LabError> {
        let set = digits();
        let data = "the digits";
        let labels: Vec<Option<String>> = set.labels.iter().map(|digit| Some(digit.to_string())).collect();
        let classes: Vec<String> = (0..10).map(|digit| digit.to_string()).collect();
        let drawn = Pool::new(&classes, &labels).large(Shape::default(), seed, 0);
        let episode = drawn.map_err(|source| LabError::Episode {
            data: data.to_owned(),
            source,
            tail: false,
        })?;
        let features = centred(&set.pixels);
        let names: Vec<&str> = episode
            .support
            .iter()
            .filter_map(|&row| labels[row].as_deref())
            .collect();
        let failed = |source: genus_core::TaskError| LabError::Discover {
            method: data.to_owned(),
            episode: 0,
            source: source.into(),
        };
        let support = Support::new(features.select(&episode.support), &names).map_err(failed)?;
        let task = Task::new(&support, features.select(&episode.queries)).map_err(failed)?;
        Ok(Self {
            pixels: set.pixels,
            digits: episode.classes.iter().map(|&class| class as u8).collect(),
            support: episode.support,
            queries: episode.queries,
            truth: episode.truth,
            task,
        })
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The known digits.
    pub fn known(&self) -> &[u8] {
        &self.digits[..self.task.known()]
    }

    /// The digit that a query really is.
    pub fn truth(&self, query: usize) -> u8 {
        self.digits[self.truth[query]]
    }

    /// The 8 × 8 picture of a query, values from 0 to 16.
    pub fn picture(&self, query: usize) -> &[f32] {
        self.pixels.row(self.queries[query])
    }

    /// The pictures of a known digit's examples.
    pub fn examples(&self, class: usize) -> impl Iterator<Item = &[f32]> {
        let of_class = self.support.iter().zip(self.task.support_labels());
        of_class
            .filter(move |&(_, &label)| label == class)
            .map(|(&row, _)| self.pixels.row(row))
    }

    /// Runs a method of the table.
    pub fn run(&self, method: &'static str, seed: u64) -> Result<ScoredMethod, LabError> {
        ScoredMethod::run(&self.task, &self.truth, method, seed)
    }

    /// The categories of a result with their names.
    pub fn taxonomy(&self, result: &ScoredMethod) -> Taxonomy {
        Taxonomy::from_discovery(self.task.classes(), &result.discovery)
    }
}

/// Pixels less the mean picture: all digits share much ink, and what they share tells nothing.
fn centred(pixels: &Features) -> Features {
    let (rows, dim) = (pixels.rows(), pixels.dim());
    let mut mean = vec![0f64; dim];
    for row in pixels.iter() {
        mean.iter_mut()
            .zip(row)
            .for_each(|(m, &v)| *m += f64::from(v) / rows as f64);
    }
    let values = pixels
        .iter()
        .flat_map(|row| row.iter().zip(&mean).map(|(&v, &m)| v - m as f32))
        .collect();
    // The difference of finite numbers of this size is finite.
    Features::new(dim, values).unwrap_or_else(|_| pixels.clone())
}
