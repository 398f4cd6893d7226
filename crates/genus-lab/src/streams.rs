//! A pile that comes item by item, in several random orders, beside what methods make of as much of it at once.

use std::time::{Duration, Instant};

use genus_core::episode::{Episode, EpisodeError, Pool};
use genus_core::rng::Rng;
use genus_core::{Assignment, DiscoverError, Knowledge, Rule, Stream, StreamPlace};
use rayon::prelude::*;

use crate::calibrations::Calibrations;
use crate::contender::Contender;
use crate::experiment::Series;
use crate::machine::Machine;
use crate::report::{BenchReport, Run, Settings};
use crate::trial::{EpisodeTrial, MethodOutcome, QueryMode, judge_clusters};
use crate::{Bench, Dataset, Experiment, LabError};
use genus::{Length, Progress};

/// The stream of random numbers that orders are drawn from.
const ORDER: u64 = 0x73;
/// What a stream is called among methods.
pub(crate) const STREAM: &str = "stream";
/// The method whose knowledge a stream has, and which sorts the pile at once.
const AT_ONCE: &str = "calibrated";

/// The settings of the experiment on streams. An episode is a pile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// In how many random orders the items of a pile come.
    pub orders: u64,
    /// How many times the stream is looked at, the last time at its end.
    pub looks: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self { orders: 5, looks: 8 }
    }
}

impl StreamSettings {
    /// After how many items the stream is looked at.
    fn looks(self, items: usize) -> Vec<usize> {
        let looks = self.looks.clamp(1, items.max(1));
        (1..=looks).map(|look| items * look / looks).collect()
    }
}

/// What the stream and every method had after some items.
struct StreamSnapshot {
    seen: usize,
    outcomes: Vec<MethodOutcome>,
}

impl Bench {
    /// Runs the experiment on streams.
    pub(crate) fn run_streams(
        &self,
        data: &Dataset,
        experiment: &Experiment,
        settings: StreamSettings,
        progress: &dyn Progress,
    ) -> Result<BenchReport, LabError> {
        let machine = Machine::this()?;
        let mut notes = Vec::new();
        let methods = self.methods_for(data, experiment, &mut notes);
        let mut calibrations = Calibrations::new(data, self, progress);
        let own = Contender::prepare(&AT_ONCE.parse()?, data, self, &mut calibrations, progress)?;
        let Some(Rule::Calibrated(knowledge)) = own.method().and_then(|method| method.rule()) else {
            return Err(LabError::Learning {
                data: data.name().to_owned(),
                method: STREAM.to_owned(),
                problem: format!("{AT_ONCE} has no rule for single items"),
            });
        };
        let contenders = methods
            .iter()
            .map(|method| Contender::prepare(method, data, self, &mut calibrations, progress))
            .collect::<Result<Vec<_>, _>>()?;
        notes.extend(calibrations.notes());
        let (pool, skipped) = data
            .pool()
            .clone()
            .with_at_least(self.pile.items(self.shape), self.short_classes)
            .map_err(|source| self.cannot_draw(data, source))?;
        if !skipped.is_empty() {
            notes.push(format!(
                "classes with too few items are left out: {}",
                skipped.join(", ")
            ));
        }
        let orders = settings.orders.max(1);
        let total = self.episodes.saturating_mul(orders);
        progress.start("orders", Length::Steps(total));
        let one = |number| -> Result<Vec<StreamSnapshot>, LabError> {
            let pile = self
                .in_order(&pool, number / orders, number)
                .map_err(|source| self.cannot_draw(data, source))?;
            let looks = settings.looks(pile.queries.len());
            let whole = EpisodeTrial::new(data, pile.clone(), QueryMode::Batch, self, number)?;
            let mut found = Vec::new();
            for (seen, streamed) in looks.iter().zip(whole.streamed(knowledge, &looks)?) {
                let trial = EpisodeTrial::new(data, first(&pile, *seen), QueryMode::Batch, self, number)?;
                let at_once = contenders.iter().map(|contender| trial.run_on_its_features(contender));
                let outcomes = std::iter::once(Ok(streamed)).chain(at_once);
                found.push(StreamSnapshot {
                    seen: *seen,
                    outcomes: outcomes.collect::<Result<_, _>>()?,
                });
            }
            progress.step();
            Ok(found)
        };
        let found: Vec<Result<Vec<StreamSnapshot>, LabError>> =
            match contenders.iter().any(Contender::needs_all_threads) {
                true => (0..total).map(one).collect(),
                false => (0..total).into_par_iter().map(one).collect(),
            };
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let series = Series {
            shape: self.shape,
            pile: self.pile,
            kind: None,
            methods,
        };
        let names: Vec<String> = std::iter::once(STREAM.to_owned())
            .chain(series.methods.iter().map(ToString::to_string))
            .collect();
        let mut runs = Vec::new();
        // All piles have as many items, so all orders are looked at after the same numbers of them.
        for look in 0..found.first().map_or(0, Vec::len) {
            for (at, name) in names.iter().enumerate() {
                let outcomes = found.iter().map(|looks| &looks[look].outcomes[at]);
                let run = Run::new(name, &series, experiment, None, outcomes.clone());
                runs.push(run.after(found[0][look].seen, outcomes));
            }
        }
        notes.extend(end(&runs));
        Ok(BenchReport::new(
            Settings::new(self, data, experiment, machine),
            runs,
            notes,
        ))
    }

    /// A pile whose queries come in the order of a number.
    fn in_order(&self, pool: &Pool, pile: u64, number: u64) -> Result<Episode, EpisodeError> {
        let mut pile = pool.episode_of(self.shape, self.pile, self.seed, pile)?;
        let count = pile.queries.len();
        let order = Rng::new(self.seed, &[ORDER, number]).sample(count, count);
        pile.queries = order.iter().map(|&at| pile.queries[at]).collect();
        pile.truth = order.iter().map(|&at| pile.truth[at]).collect();
        Ok(pile)
    }
}

/// The same pile before the rest of its items came.
fn first(pile: &Episode, items: usize) -> Episode {
    let mut pile = pile.clone();
    pile.queries.truncate(items);
    pile.truth.truncate(items);
    pile
}

/// How far the end of the stream is from the pile at once.
fn end(runs: &[Run]) -> Option<String> {
    let last = |method: &str| {
        runs.iter()
            .rfind(|run| run.method == method && run.parameters.is_empty())
    };
    let (stream, at_once) = (last(STREAM)?, last(AT_ONCE)?);
    let points = 100.0 * (stream.all.mean - at_once.all.mean);
    let side = if points < 0.0 { "below" } else { "above" };
    Some(format!(
        "in the end the stream is {:.1} points {side} the pile at once ({AT_ONCE})",
        points.abs()
    ))
}

impl EpisodeTrial<'_> {
    /// Where a stream has put the queries after some of them, as it would say if no more came.
    fn streamed(&self, knowledge: &Knowledge, looks: &[usize]) -> Result<Vec<MethodOutcome>, LabError> {
        let failed = |source: DiscoverError| self.method_failed(STREAM, source);
        let mut stream = Stream::of_examples(&self.task, knowledge).map_err(failed)?;
        let mut places: Vec<Assignment> = Vec::new();
        let mut given_up = 0;
        let mut time = Duration::ZERO;
        let mut outcomes = Vec::new();
        for &query in &self.episode.queries {
            let start = Instant::now();
            let observed = stream.observe(self.data.features().row(query));
            time += start.elapsed();
            let observed = observed.map_err(|source| failed(source.into()))?;
            let (StreamPlace::Joined(place) | StreamPlace::Waiting(place)) = observed.place;
            places.push(place);
            given_up += usize::from(observed.given_up.is_some());
            settle(&mut places, observed.settled.into_iter().chain(observed.given_up));
            if looks.contains(&places.len()) {
                // A stream that ends is reviewed once more; this one goes on as if it had not been.
                let (mut ended, mut places) = (stream.clone(), places.clone());
                settle(&mut places, ended.review());
                let waiting = ended.waiting();
                let share = (waiting.len() + given_up) as f64 / places.len() as f64;
                settle(&mut places, waiting);
                let clusters: Vec<usize> = places.iter().map(|place| place.category).collect();
                let known: Vec<usize> = (0..self.task.known()).collect();
                outcomes.push(MethodOutcome {
                    categories: Some(ended.entries().len()),
                    waiting: Some(share),
                    ..judge_clusters(&known, &clusters, &self.episode.truth[..places.len()], time)
                });
            }
        }
        Ok(outcomes)
    }
}

/// Notes where items have gone.
fn settle(places: &mut [Assignment], gone: impl IntoIterator<Item = (u64, Assignment)>) {
    for (number, place) in gone {
        places[number as usize] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::StreamSettings;

    #[test]
    fn the_last_look_is_at_the_end() {
        let looks = |looks, items| StreamSettings { orders: 1, looks }.looks(items);
        assert_eq!(looks(4, 100), [25, 50, 75, 100]);
        assert_eq!(looks(3, 10), [3, 6, 10]);
        assert_eq!(looks(8, 3), [1, 2, 3]);
        assert_eq!(looks(0, 5), [5]);
    }
}
