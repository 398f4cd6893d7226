//! The end of a round: what all shards have done becomes one.

use std::collections::BTreeSet;

use genus::{DiscoverOptions, Inputs, Progress, Source, Table};
use genus_core::{Features, Kind, Taxonomy};
use genus_data::{read_table, write_taxonomy};
use serde::{Deserialize, Serialize};

use crate::BulkError;
use crate::job::Job;
use crate::manifest::{Discovery, Round, to_json};
use crate::receipt::{PartKind, Receipt, folder};
use crate::run::Drawn;
use crate::state::{State, files_of, scratch};
use crate::sums::{self, Tree};

/// The file that says what came of a job.
pub(crate) const SUMMARY: &str = "summary.json";
/// The labelled examples of a discovery.
pub(crate) const EXAMPLES: &str = "examples.parquet";

/// Items of a category that later rounds know it by.
const EXAMPLES_EACH: usize = 10;
/// Fewer items than this that fit nothing are not looked at, and fewer that agree make no category.
const FEWEST_LEFT: usize = 50;
const FEWEST_AGREEING: usize = 8;

/// What came of a round.
#[derive(Clone, Debug)]
pub enum Reduced {
    /// Another round has begun.
    Next(Round),
    /// The job is done.
    Done(Summary),
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The hash of the manifest.
    pub job: String,
    /// How many shards there are.
    pub shards: usize,
    /// Items that were assigned.
    pub rows: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Items whose category is only the best guess.
    pub unsure: u64,
    /// The categories.
    pub categories: Vec<CategoryCount>,
    /// The files of the assignments, in the order of the shards.
    pub parts: Vec<PartSummary>,
}

/// How many items a category got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryCount {
    /// Its name.
    pub name: String,
    /// `known` or `new`.
    pub kind: String,
    /// Its items.
    pub items: u64,
    /// Those of them that are unsure.
    pub unsure: u64,
}

/// A file of assignments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSummary {
    /// The shard.
    pub shard: usize,
    /// The file.
    pub file: String,
    /// How many rows it has.
    pub rows: u64,
    /// Rows of its inputs that could not be used.
    pub rejected: u64,
    /// The inputs that its rows are of.
    pub inputs: Vec<String>,
}

impl Job {
    /// Ends the round that the job is in, all of whose shards must be done. Doing so twice, or in two places at once, comes to the
    /// same.
    pub fn reduce(&self, progress: &dyn Progress) -> Result<Reduced, BulkError> {
        let round = self.round()?;
        let receipts = self.receipts(round)?;
        let rounds = self.manifest.rounds();
        let next = rounds.iter().skip_while(|other| **other != round).nth(1).copied();
        let (Some(next), Some(discovery)) = (next, &self.manifest.discovery) else {
            return Ok(Reduced::Done(self.finish(round, &receipts)?));
        };
        let state = match self.state(round)? {
            None => self.discover(round, &receipts, discovery, progress)?,
            Some((state, _)) => self.refine(round, &receipts, state, discovery, progress)?,
        };
        state.begin(&self.place, next)?;
        Ok(Reduced::Next(next))
    }

    /// The items that shards gathered, the first ones by the hash of their ids.
    fn gather(&self, receipts: &[Receipt], most: usize) -> Result<Option<Table>, BulkError> {
        let mut drawn: Vec<(f64, usize, String, Vec<f32>)> = Vec::new();
        for receipt in receipts {
            let Some(part) = receipt.parts.get(&PartKind::Sample) else {
                continue;
            };
            let folder = scratch()?;
            let path = folder.path().join("sample.parquet");
            std::fs::write(&path, part.read(&self.place)?).map_err(|source| BulkError::Write {
                name: path.display().to_string(),
                source,
            })?;
            let table = read_table(&path)?.table;
            for (id, features) in table.ids.iter().zip(table.features.iter()) {
                let place = Drawn::place_of(id).unwrap_or(1.0);
                let name = format!("{}-{id}", receipt.shard);
                drawn.push((place, receipt.shard, name, features.to_vec()));
            }
            // Never more than a few times as many are held as are wanted.
            if drawn.len() > 4 * most {
                cut(&mut drawn, most);
            }
        }
        cut(&mut drawn, most);
        if drawn.is_empty() {
            return Ok(None);
        }
        let features = Features::from_rows(drawn.iter().map(|(.., features)| features)).map_err(genus::Error::from)?;
        Ok(Some(Table {
            labels: vec![None; drawn.len()],
            ids: drawn.into_iter().map(|(_, _, name, _)| name).collect(),
            features,
        }))
    }

    /// Discovers categories in the sample.
    fn discover(
        &self,
        round: Round,
        receipts: &[Receipt],
        discovery: &Discovery,
        progress: &dyn Progress,
    ) -> Result<State, BulkError> {
        let sample = self.gather(receipts, discovery.sample)?;
        let sample = sample.ok_or_else(|| BulkError::Malformed {
            name: self.place.full(&folder(round, PartKind::Sample)),
            problem: "no row of any input could be used".to_owned(),
        })?;
        let examples = match discovery.examples {
            None => None,
            Some(_) => {
                let scratch = scratch()?;
                let path = scratch.path().join(EXAMPLES);
                let bytes = self.place.need(EXAMPLES)?;
                if Some(crate::manifest::hash(&bytes)) != discovery.examples {
                    return Err(BulkError::Malformed {
                        name: self.place.full(EXAMPLES),
                        problem: "they are not those of the plan".to_owned(),
                    });
                }
                std::fs::write(&path, bytes).map_err(|source| BulkError::Write {
                    name: path.display().to_string(),
                    source,
                })?;
                Some(read_table(&path)?.table)
            }
        };
        let options = options(discovery)?;
        let outcome = genus::discover(self.inputs(examples, sample.clone()), &options, progress)?;
        let task = &outcome.clustered.task;
        let known: Vec<usize> = (0..task.known()).collect();
        let category = |name: &str| outcome.taxonomy.entries().iter().position(|entry| entry.name == name);
        let places: Vec<Option<usize>> = outcome
            .assignments
            .iter()
            .map(|item| category(&item.category))
            .collect();
        let sure: Vec<bool> = outcome.assignments.iter().map(|item| !item.score.unsure).collect();
        Ok(State {
            examples: Some(examples_of(&outcome.taxonomy, &sample, &places, &sure)),
            prototypes: (!known.is_empty()).then(|| task.points().select(&known)),
            taxonomy: outcome.taxonomy,
            origin: self.manifest.origin(),
        })
    }

    /// Moves the centres to the means of their items, and adds categories of what fits nothing.
    fn refine(
        &self,
        round: Round,
        receipts: &[Receipt],
        state: State,
        discovery: &Discovery,
        progress: &dyn Progress,
    ) -> Result<State, BulkError> {
        let taxonomy = &state.taxonomy;
        let (categories, dim) = (taxonomy.entries().len(), taxonomy.centres().dim());
        let mut tree = Tree::default();
        for receipt in receipts {
            let part = receipt.parts.get(&PartKind::Sums).ok_or_else(|| BulkError::Malformed {
                name: self.place.full(&crate::receipt::receipt_name(round, receipt.shard)),
                problem: "it has no sums".to_owned(),
            })?;
            tree.push(sums::from_bytes(&part.read(&self.place)?, categories, dim)?);
        }
        let refinement = match &state.prototypes {
            Some(prototypes) => taxonomy.refinement(prototypes),
            None => taxonomy.partial_refinement(),
        };
        let moved = match tree.finish() {
            Some(sums) => refinement.add_sums(&sums).finish(),
            None => refinement.finish(),
        };
        let (taxonomy, added) = match self.gather(receipts, discovery.sample)? {
            Some(left) if left.len() >= FEWEST_LEFT => {
                let groups = self.groups_of(left, &state, discovery, progress)?;
                let taxonomy = moved.with_new_groups(&groups).map_err(genus::Error::from)?;
                (taxonomy, groups)
            }
            _ => (moved, Vec::new()),
        };
        let mut examples = state.examples.clone();
        if let Some(examples) = &mut examples {
            for (at, group) in added.iter().enumerate() {
                let rows: Vec<usize> = (0..group.rows().min(EXAMPLES_EACH)).collect();
                let number = categories + at;
                examples
                    .ids
                    .extend(rows.iter().map(|row| format!("{round}-{number}-{row}")));
                examples
                    .labels
                    .extend(rows.iter().map(|_| Some(category_label(number))));
                let values = [examples.features.values(), group.select(&rows).values()].concat();
                examples.features = Features::new(dim, values).map_err(genus::Error::from)?;
            }
        }
        Ok(State {
            taxonomy,
            examples,
            ..state
        })
    }

    /// The groups of items that fit no category: a discovery in which all categories are known.
    fn groups_of(
        &self,
        left: Table,
        state: &State,
        discovery: &Discovery,
        progress: &dyn Progress,
    ) -> Result<Vec<Features>, BulkError> {
        let features = left.features.clone();
        let outcome = genus::discover(
            self.inputs(state.examples.clone(), left),
            &options(discovery)?,
            progress,
        )?;
        let entries = outcome.taxonomy.entries().iter().enumerate();
        let new = entries.filter(|(_, entry)| entry.kind == Kind::Novel);
        let members = |name: &str| -> Vec<usize> {
            let items = outcome.assignments.iter().enumerate();
            let of_it = items.filter(|(_, item)| item.category == name && !item.score.unsure);
            of_it.map(|(row, _)| row).collect()
        };
        let groups = new.map(|(_, entry)| members(&entry.name));
        let large = groups.filter(|rows| rows.len() >= FEWEST_AGREEING);
        Ok(large.map(|rows| features.select(&rows)).collect())
    }

    fn inputs(&self, examples: Option<Table>, pile: Table) -> Inputs {
        let source = |table: Table| Source::Table {
            table,
            encoder: self.manifest.encoder.clone(),
        };
        Inputs::Separate {
            support: examples.map(source),
            query: source(pile),
        }
    }

    /// Writes what came of the job.
    fn finish(&self, round: Round, receipts: &[Receipt]) -> Result<Summary, BulkError> {
        let Some((state, _)) = self.state(round)? else {
            return Err(BulkError::NotBegun {
                round: round.to_string(),
            });
        };
        let entries = state.taxonomy.entries();
        let sum = |of: fn(&Receipt) -> &Vec<u64>| {
            let mut sums = vec![0u64; entries.len()];
            for receipt in receipts {
                sums.iter_mut().zip(of(receipt)).for_each(|(sum, count)| *sum += count);
            }
            sums
        };
        let (items, unsure) = (sum(|receipt| &receipt.counts), sum(|receipt| &receipt.unsure));
        let categories = entries.iter().enumerate().map(|(at, entry)| CategoryCount {
            name: entry.name.clone(),
            kind: entry.kind.to_string(),
            items: items[at],
            unsure: unsure[at],
        });
        let part = |receipt: &Receipt| {
            let pieces = self.manifest.shards[receipt.shard].pieces.iter();
            let inputs: BTreeSet<usize> = pieces.map(|piece| piece.input).collect();
            let file = receipt.parts.get(&PartKind::Assignments);
            file.map(|file| PartSummary {
                shard: receipt.shard,
                file: file.name.clone(),
                rows: receipt.rows,
                rejected: receipt.rejected,
                inputs: inputs
                    .into_iter()
                    .map(|at| self.manifest.inputs[at].name.clone())
                    .collect(),
            })
        };
        let summary = Summary {
            job: self.id.clone(),
            shards: receipts.len(),
            rows: receipts.iter().map(|receipt| receipt.rows).sum(),
            rejected: receipts.iter().map(|receipt| receipt.rejected).sum(),
            unsure: unsure.iter().sum(),
            categories: categories.collect(),
            parts: receipts.iter().filter_map(part).collect(),
        };
        let folder = scratch()?;
        let taxonomy = folder.path().join("taxonomy");
        std::fs::create_dir(&taxonomy).map_err(|source| BulkError::Write {
            name: taxonomy.display().to_string(),
            source,
        })?;
        write_taxonomy(&taxonomy, &state.taxonomy.with_items(&items), &state.origin)?;
        let mut files = files_of(&taxonomy)?;
        // It says which the others are, so it comes last.
        files.sort_by_key(|(name, _)| name.ends_with(".toml"));
        for (name, bytes) in files {
            self.place.replace(&format!("taxonomy/{name}"), &bytes)?;
        }
        self.place.replace("counts.csv", counts(&summary).as_bytes())?;
        self.remove_others(round, receipts)?;
        self.place.replace(SUMMARY, &to_json(SUMMARY, &summary)?)?;
        Ok(summary)
    }

    /// Removes parts that no receipt names: another machine published them and was not the first.
    fn remove_others(&self, round: Round, receipts: &[Receipt]) -> Result<(), BulkError> {
        for kind in [PartKind::Assignments, PartKind::Rejected] {
            let folder = folder(round, kind);
            let named = receipts.iter().filter_map(|receipt| receipt.parts.get(&kind));
            let named: BTreeSet<&str> = named.map(|part| part.name.as_str()).collect();
            for file in self.place.list(&folder)? {
                let name = format!("{folder}/{file}");
                if !named.contains(name.as_str()) {
                    self.place.remove(&name)?;
                }
            }
        }
        Ok(())
    }

    /// What came of the job, if it is done.
    pub fn summary(&self) -> Result<Option<Summary>, BulkError> {
        let Some(bytes) = self.place.read(SUMMARY)? else {
            return Ok(None);
        };
        Ok(Some(crate::manifest::from_json(&self.place.full(SUMMARY), &bytes)?))
    }
}

fn cut(drawn: &mut Vec<(f64, usize, String, Vec<f32>)>, most: usize) {
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then_with(|| a.2.cmp(&b.2)));
    drawn.truncate(most);
}

fn options(discovery: &Discovery) -> Result<DiscoverOptions, BulkError> {
    Ok(DiscoverOptions {
        method: discovery.method.parse().map_err(genus::Error::from)?,
        seed: discovery.seed,
        ..DiscoverOptions::default()
    })
}

/// The label of a category among examples: its number, so that their order is that of the categories.
fn category_label(number: usize) -> String {
    format!("category {number:06}")
}

/// Some sure items of every category.
fn examples_of(taxonomy: &Taxonomy, items: &Table, places: &[Option<usize>], sure: &[bool]) -> Table {
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for number in 0..taxonomy.entries().len() {
        let of_it = (0..items.len()).filter(|&row| places[row] == Some(number) && sure[row]);
        for row in of_it.take(EXAMPLES_EACH) {
            rows.push(row);
            labels.push(Some(category_label(number)));
        }
    }
    Table {
        labels,
        ..items.select(&rows)
    }
}

/// The counts as a table.
fn counts(summary: &Summary) -> String {
    let quoted = |name: &str| match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    };
    let row = |category: &CategoryCount| {
        let CategoryCount {
            name,
            kind,
            items,
            unsure,
        } = category;
        format!("{},{kind},{items},{unsure}\n", quoted(name))
    };
    let rows: String = summary.categories.iter().map(row).collect();
    format!("category,kind,items,unsure\n{rows}")
}
