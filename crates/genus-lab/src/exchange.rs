//! Episodes that go out, and what others found in them that comes back: a method in any language is judged like those here.
//!
//! A file of episodes has a line of JSON that says what they are, then a line an episode. Predictions are a line an episode too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use genus_core::episode::{Episode, Shape};
use genus_files::{AtomicFile, MAX_TENSORS, read_named};
use serde::{Deserialize, Serialize};

use crate::experiment::Series;
use crate::machine::Machine;
use crate::report::{BenchReport, Run, Settings};
use crate::trial::{QueryMode, judge_clusters};
use crate::{Bench, Dataset, Experiment, LabError};

const FORMAT: &str = "genus episodes 1";

/// Episodes of an experiment, with all that it takes to judge what is found in them.
#[derive(Clone, Debug)]
pub struct EpisodeSet {
    settings: Settings,
    episodes: Vec<ExportedEpisode>,
}

/// An episode as a file has it: items are numbers of rows, classes are numbered with the known ones first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedEpisode {
    /// Its number in the file, from 0.
    pub episode: u64,
    /// The names of its classes, the known ones first.
    pub classes: Vec<String>,
    /// How many of them are known.
    pub known: usize,
    /// The rows of the examples.
    pub support: Vec<usize>,
    /// The class of every example.
    pub support_classes: Vec<usize>,
    /// The rows of the queries.
    pub queries: Vec<usize>,
    /// The class of every query. Outliers have the numbers after the last class, each its own, and are not scored.
    pub truth: Vec<usize>,
    /// How many of the queries, the last ones, are outliers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outliers: usize,
    /// Examples of a known class.
    pub shot: usize,
    /// Queries of a class, where there is no tail.
    pub query: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What was found in an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The number of the episode.
    pub episode: u64,
    /// What was said of every query, in their order.
    pub predictions: Vec<PredictedLabel>,
}

/// What was said of a query: the number or the name of a known class, or anything else that is the same for queries of one new
/// category and no others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PredictedLabel {
    /// A number; below the number of known classes it is one of these.
    Number(i64),
    /// A text; the name of a known class is that class.
    Name(String),
}

/// The first line of a file of episodes.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    #[serde(flatten)]
    settings: Settings,
}

impl Bench {
    /// Draws the episodes of an experiment: those that [`run`](Bench::run) runs methods on.
    pub fn episodes_of(&self, data: &Dataset, experiment: &Experiment) -> Result<EpisodeSet, LabError> {
        self.fits(experiment)?;
        let as_rows = match experiment {
            Experiment::Piles(_) => Err("its piles have frames, which are made and are no rows of the features"),
            Experiment::Stream(_) => Err("its items come one by one"),
            Experiment::RealTime => Err("its queries are judged one by one, which a file of predictions does not say"),
            _ => Ok(()),
        };
        if let Err(why) = as_rows {
            return Err(LabError::NothingToRun {
                data: data.name().to_owned(),
                reason: format!("episodes of {} cannot be written to a file: {why}", experiment.kind()),
            });
        }
        let mut notes = Vec::new();
        let mut episodes = Vec::new();
        for series in &self.series(data, experiment, &mut notes)? {
            let pool = self.pool(data, experiment, series, &mut notes)?;
            for number in 0..self.episodes {
                let drawn = self.draw(&pool, experiment, series, number);
                let (episode, mode) = drawn.map_err(|source| self.cannot_draw(data, source))?;
                debug_assert!(matches!(mode, QueryMode::Batch | QueryMode::TwoStep { .. }));
                let Episode {
                    classes,
                    known,
                    support,
                    support_classes,
                    queries,
                    truth,
                    outliers,
                } = episode;
                episodes.push(ExportedEpisode {
                    episode: episodes.len() as u64,
                    classes: classes.into_iter().map(|class| pool.classes()[class].clone()).collect(),
                    known,
                    support,
                    support_classes,
                    queries,
                    truth,
                    outliers,
                    shot: series.shape.shot,
                    query: series.shape.query,
                });
            }
        }
        Ok(EpisodeSet {
            settings: Settings::new(self, data, experiment, Machine::this()?),
            episodes,
        })
    }
}

impl EpisodeSet {
    /// The episodes.
    pub fn episodes(&self) -> &[ExportedEpisode] {
        &self.episodes
    }

    /// The episodes as the text of a file.
    pub fn to_text(&self) -> String {
        let header = Header {
            format: FORMAT.to_owned(),
            settings: self.settings.clone(),
        };
        let line = |text: serde_json::Result<String>| text.expect("it has only names and numbers") + "\n";
        let mut text = line(serde_json::to_string(&header));
        self.episodes
            .iter()
            .for_each(|episode| text += &line(serde_json::to_string(episode)));
        text
    }

    /// Writes the episodes to a file.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        let mut file = AtomicFile::create(path)?;
        file.append(self.to_text().as_bytes())?;
        Ok(file.commit()?)
    }

    /// Reads episodes.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = read_text(path)?;
        let wrong = |line: usize, problem: String| malformed(path, line, problem);
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let header = lines.next().map(|(_, line)| serde_json::from_str::<Header>(line));
        let settings = match header {
            Some(Ok(header)) if header.format == FORMAT => header.settings,
            _ => {
                let problem = format!(
                    "it does not begin with the line of \"{FORMAT}\"; `genus bench main … --export-episodes FILE` writes one"
                );
                return Err(wrong(0, problem));
            }
        };
        let mut episodes = Vec::new();
        for (at, line) in lines {
            let episode: ExportedEpisode = serde_json::from_str(line).map_err(|e| wrong(at, e.to_string()))?;
            episode.check(episodes.len()).map_err(|problem| wrong(at, problem))?;
            episodes.push(episode);
        }
        if episodes.is_empty() {
            return Err(wrong(0, "there is no episode in it".to_owned()));
        }
        Ok(Self { settings, episodes })
    }

    /// Judges what somebody found, as the methods here are judged. Every episode needs its prediction, in any order.
    pub fn score(&self, method: &str, predictions: &[Prediction]) -> Result<BenchReport, LabError> {
        let failed = |episode: u64, problem: String| LabError::Baseline {
            method: method.to_owned(),
            episode,
            problem,
        };
        let mut of: BTreeMap<u64, &Prediction> = BTreeMap::new();
        for prediction in predictions {
            if prediction.episode >= self.episodes.len() as u64 {
                let problem = format!("there is no such episode: there are {}", self.episodes.len());
                return Err(failed(prediction.episode, problem));
            }
            if of.insert(prediction.episode, prediction).is_some() {
                return Err(failed(prediction.episode, "it is predicted twice".to_owned()));
            }
        }
        let mut runs = Vec::new();
        for series in self.episodes.chunk_by(|a, b| a.shape() == b.shape()) {
            let outcomes = series.iter().map(|episode| {
                let prediction = of.get(&episode.episode);
                let prediction =
                    prediction.ok_or_else(|| failed(episode.episode, "it has no prediction".to_owned()))?;
                let clusters = episode.clusters(&prediction.predictions);
                let clusters = clusters.map_err(|problem| failed(episode.episode, problem))?;
                let known: Vec<usize> = (0..episode.known).collect();
                let truth = &episode.truth[..episode.queries.len() - episode.outliers];
                Ok(judge_clusters(&known, &clusters, truth, Duration::ZERO))
            });
            let outcomes = outcomes.collect::<Result<Vec<_>, LabError>>()?;
            let series = Series {
                shape: series[0].shape(),
                pile: self.settings.pile(),
                kind: None,
                methods: Vec::new(),
            };
            runs.push(Run::of_somebody(method, &series, outcomes.iter()));
        }
        Ok(BenchReport::new(self.settings.clone(), runs, Vec::new()))
    }
}

/// Reads predictions: a line of JSON an episode, as `{"episode": 0, "predictions": [0, 3, "new-1"]}`.
pub fn read_predictions(path: &Path) -> Result<Vec<Prediction>, LabError> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| {
                let problem =
                    format!("{e}; a line is an episode, as in {{\"episode\": 0, \"predictions\": [0, 3, \"new-1\"]}}");
                malformed(path, at, problem)
            })
        })
        .collect()
}

fn read_text(path: &Path) -> Result<String, LabError> {
    let bytes = read_named(path, MAX_TENSORS).map_err(|source| genus_data::DataError::Read {
        path: path.to_owned(),
        source,
    })?;
    String::from_utf8(bytes).map_err(|e| malformed(path, 0, e.to_string()))
}

fn malformed(path: &Path, line: usize, problem: String) -> LabError {
    genus_data::DataError::Malformed {
        path: PathBuf::from(path),
        problem: format!("line {}: {problem}", line + 1),
    }
    .into()
}

impl ExportedEpisode {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        Shape {
            way: self.known,
            shot: self.shot,
            new: self.classes.len().saturating_sub(self.known),
            query: self.query,
        }
    }

    /// What is wrong with one that was read.
    fn check(&self, number: usize) -> Result<(), String> {
        let classes = self.classes.len() + self.outliers;
        let problem = if self.episode != number as u64 {
            format!("it is episode {}, and {number} comes here", self.episode)
        } else if self.known > self.classes.len() || self.known == 0 {
            format!("{} of its {} classes are known", self.known, self.classes.len())
        } else if self.support.len() != self.support_classes.len() || self.queries.len() != self.truth.len() {
            "it has not one class an item".to_owned()
        } else if self.queries.len() <= self.outliers {
            "it has no query that belongs to a class".to_owned()
        } else if self.truth.iter().any(|&class| class >= classes)
            || self.support_classes.iter().any(|&class| class >= self.known)
        {
            "it has an item of a class that it does not have".to_owned()
        } else {
            return Ok(());
        };
        Err(problem)
    }

    /// The cluster of every query: a known class has its number, new categories those from there on.
    fn clusters(&self, predictions: &[PredictedLabel]) -> Result<Vec<usize>, String> {
        if predictions.len() != self.queries.len() {
            return Err(format!(
                "it has {} predictions, and {} queries",
                predictions.len(),
                self.queries.len()
            ));
        }
        let mut new: BTreeMap<&PredictedLabel, usize> = BTreeMap::new();
        let clusters = predictions.iter().map(|label| {
            let known = match label {
                PredictedLabel::Number(number) => usize::try_from(*number).ok().filter(|&class| class < self.known),
                PredictedLabel::Name(name) => self.classes[..self.known].iter().position(|class| class == name),
            };
            known.unwrap_or_else(|| {
                let next = self.known + new.len();
                *new.entry(label).or_insert(next)
            })
        });
        Ok(clusters.collect())
    }
}
