//! What a report says, before it is Markdown or a page.

use genus_core::episode::Tail;

use super::table::{MarkdownTable, TableCell};
use super::{BenchReport, Interval, Run, Settings, counted, examples_in_words, in_words, outliers_in_words};
use crate::experiment::ExperimentKind;

/// What a report says.
pub(super) struct Contents {
    /// What was run, after the names of the experiment and of the data.
    pub(super) what: String,
    /// What the figures of the first table are.
    pub(super) how: String,
    /// The paper's metric.
    pub(super) main: MarkdownTable,
    /// Why some of the paper's figures are in doubt; the table names them by their number, from one.
    pub(super) doubts: Vec<String>,
    /// The other conventions and indices.
    pub(super) other: MarkdownTable,
}

/// What a leading column says of a run.
type Said = Box<dyn Fn(&Run) -> String>;

impl BenchReport {
    pub(super) fn contents(&self) -> Contents {
        let tail = self.settings.pile().tail;
        let shape = move |run: &Run| run.shape(tail);
        let several_shapes = self.runs.iter().any(|run| shape(run) != shape(&self.runs[0]));
        let with_paper = self.runs.iter().any(|run| run.paper.is_some());
        let subject = match self.settings.experiment {
            _ if self.runs.iter().all(|run| run.subject.is_empty()) => None,
            ExperimentKind::Transfer => Some("Trained on"),
            _ => Some("Encoder"),
        };
        let with_data = self.runs.iter().any(|run| run.data.is_some());
        let mut leading: Vec<(&str, Said)> = Vec::new();
        if let Some(title) = subject {
            leading.push((title, Box::new(|run| run.subject.clone())));
        }
        if with_data {
            leading.push(("Data", Box::new(|run| run.data.clone().unwrap_or_default())));
        }
        if self.runs.iter().any(|run| run.stream.is_some()) {
            let seen = |run: &Run| run.stream.map_or_else(String::new, |stream| stream.seen.to_string());
            leading.push(("Seen", Box::new(seen)));
        } else if self.runs.iter().any(|run| run.pile.is_some()) {
            let name = |run: &Run| run.pile.as_ref().map(|pile| pile.name.clone()).unwrap_or_default();
            leading.push(("Pile", Box::new(name)));
        } else if several_shapes {
            leading.push(("Setting", Box::new(shape)));
        }
        leading.push(("Method", Box::new(Run::title)));
        let lead = |run: &Run| -> Vec<TableCell> { leading.iter().map(|(_, cell)| cell(run).into()).collect() };
        let header = |more: &[&str]| -> Vec<String> {
            let titles = leading.iter().map(|(title, _)| *title);
            titles.chain(more.iter().copied()).map(str::to_owned).collect()
        };
        let with_scores = self.runs.iter().any(|run| run.known_or_new.is_some());
        let with_waiting = self
            .runs
            .iter()
            .any(|run| run.stream.is_some_and(|stream| stream.waiting.is_some()));
        let with_sureness = self.runs.iter().any(|run| run.sureness.is_some());
        let with_unsure = self.runs.iter().any(|run| run.unsure.is_some());
        let mut columns = vec!["All", "Old", "New", "K", "K error"];
        if with_scores {
            columns.push("AUROC");
        }
        if with_waiting {
            columns.push("Waiting");
        }
        if with_sureness {
            columns.extend(["ECE", "Errors found"]);
        }
        if with_sureness && with_unsure {
            columns.push("Outliers found");
        }
        if with_unsure {
            columns.extend(["Outliers unsure", "Others unsure"]);
        }
        if with_paper {
            columns.push("Paper");
        }
        let mut main = MarkdownTable::new(header(&columns), leading.len());
        let mut other = MarkdownTable::new(header(&["authors-v2", "gcd-v1", "gcd-v2", "NMI", "ARI"]), leading.len());
        let mut doubts = Vec::new();
        for run in &self.runs {
            let never_new = run.new.mean == 0.0;
            let paper = run.paper.as_ref();
            let mut cells = lead(run);
            cells.extend([
                TableCell::percent(run.all).beside(paper.map(|cell| cell.all)),
                TableCell::percent(run.old).beside(paper.map(|cell| cell.old)),
                match never_new {
                    true => TableCell::none(),
                    false => TableCell::percent(run.new).beside(paper.and_then(|cell| cell.new)),
                },
                run.k.map_or_else(TableCell::none, |k| {
                    TableCell::number(format!("{:.1} of {}", k.mean, k.truth), k.mean)
                }),
                run.k.map_or_else(TableCell::none, |k| {
                    let text = match k.relative_error {
                        Some(relative) => format!("{:.1} ({:.0} %)", k.error, 100.0 * relative),
                        None => format!("{:.1}", k.error),
                    };
                    TableCell::number(text, k.error)
                }),
            ]);
            let or_none = |interval: Option<Interval>| interval.map_or_else(TableCell::none, TableCell::percent);
            if with_scores {
                cells.push(or_none(run.known_or_new.as_ref().map(|scores| scores.auroc)));
            }
            if with_waiting {
                cells.push(or_none(run.stream.and_then(|stream| stream.waiting)));
            }
            if with_sureness {
                cells.push(run.sureness.map_or_else(TableCell::none, |sure| {
                    TableCell::number(format!("{:.3}", sure.ece), sure.ece)
                }));
                cells.push(or_none(run.sureness.map(|sure| sure.errors_found)));
            }
            if with_sureness && with_unsure {
                cells.push(or_none(run.sureness.map(|sure| sure.outliers_found)));
            }
            if with_unsure {
                cells.push(or_none(run.unsure.map(|shares| shares.outliers)));
                cells.push(or_none(run.unsure.map(|shares| shares.others)));
            }
            if with_paper {
                cells.push(paper.map_or_else(TableCell::none, |cell| {
                    let new = cell.new.map_or("–".to_owned(), |new| format!("{new:.1}"));
                    let mark = match &cell.doubt {
                        None => String::new(),
                        Some(doubt) => {
                            let known = doubts.iter().position(|other| other == doubt);
                            let number = known.unwrap_or_else(|| {
                                doubts.push(doubt.clone());
                                doubts.len() - 1
                            });
                            format!(" [{}]", number + 1)
                        }
                    };
                    TableCell::number(format!("{:.1} / {:.1} / {new}{mark}", cell.all, cell.old), cell.all)
                }));
            }
            main.row(cells);
            let three = |name: &str| {
                run.metrics.conventions.get(name).map_or_else(TableCell::default, |a| {
                    let [all, old, new] = [a.all, a.old, a.new].map(|interval| TableCell::short(interval).text);
                    TableCell::number(format!("{all} / {old} / {new}"), a.all.mean)
                })
            };
            let mut cells = lead(run);
            cells.extend([
                three("authors-v2"),
                three("gcd-v1"),
                three("gcd-v2"),
                TableCell::short(run.metrics.nmi),
                TableCell::short(run.metrics.ari),
            ]);
            other.row(cells);
        }
        let s = &self.settings;
        let seed = s.seeds_in_words();
        let queries = in_words(s.query, s.pile());
        let what = match &s.large {
            Some(large) if large.authors => format!(
                "{} tasks of {}-way {}-shot {}-new in the order of the data, the first two batches clustered, {}",
                s.episodes, s.way, s.shot, s.new, seed
            ),
            Some(large) => format!(
                "{} tasks of {}-way {}-shot {}-new, {} queries clustered and the rest assigned, {}",
                s.episodes, s.way, s.shot, s.new, large.subset, seed
            ),
            None if s.orders.is_some() => format!(
                "{} of {} of {} classes with {queries}, {} of them known from {}, from {} classes{}, {}",
                counted(s.orders.unwrap_or_default(), "order"),
                counted(s.episodes, "pile"),
                s.way + s.new,
                s.way,
                examples_in_words(s.shot),
                s.classes,
                s.half_in_words(),
                seed
            ),
            None if s.experiment == ExperimentKind::Piles => format!(
                "{} a pile of {} classes, {} of them known from {}, from {} classes{}, {}",
                counted(s.episodes, "draw"),
                s.way + s.new,
                s.way,
                examples_in_words(s.shot),
                s.classes,
                s.half_in_words(),
                seed
            ),
            None if with_data => format!(
                "{} episodes a row of {}-way {}-shot {}-new with {queries}, {}",
                s.episodes, s.way, s.shot, s.new, seed
            ),
            None if several_shapes => {
                format!("{} episodes a row from {} classes, {}", s.episodes, s.classes, seed)
            }
            None => format!(
                "{} episodes of {}-way {}-shot {}-new with {queries} from {} classes, {}",
                s.episodes, s.way, s.shot, s.new, s.classes, seed
            ),
        };
        let beside = if with_paper {
            " The paper's figures stand beside (All / Old / New)."
        } else {
            ""
        };
        let outliers = match (s.outliers, several_shapes) {
            (0, _) => String::new(),
            (_, false) => " Outliers are not scored; categories made of them count in K.".to_owned(),
            (each, true) => format!(
                " With {} in every episode, not scored; categories made of them count in K.",
                outliers_in_words(each)
            ),
        };
        let scores = if with_scores {
            " AUROC: how often a known query has a higher score than a new one, in %."
        } else {
            ""
        };
        let waiting = if with_waiting {
            " After so many items: a stream has seen them one by one, other methods all at once. Items that wait are judged by \
             the best guess."
        } else {
            ""
        };
        let sure = if with_sureness {
            " ECE: by how much probabilities are wrong, on average. Errors found: how many of them are among the least sure \
             tenth of the items, in %."
        } else {
            ""
        };
        let found = if with_sureness && with_unsure {
            " Outliers found: how many are less sure than nine tenths of the others, in %; they are not scored, and categories \
             made of them count in K."
        } else {
            ""
        };
        let between = if s.seeds.is_empty() {
            ""
        } else {
            " of the means of seeds"
        };
        Contents {
            what,
            how: format!(
                "Accuracy in % by the paper's metric, ± half the 95 % interval{between}.{scores}{waiting}{sure}{found}{beside}{outliers}"
            ),
            main,
            doubts,
            other,
        }
    }
}

impl Settings {
    /// The seed, or all of them.
    fn seeds_in_words(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        match seeds.is_empty() {
            true => format!("seed {}", self.seed),
            false => format!("seeds {}", seeds.join(", ")),
        }
    }

    /// Which half the classes are, as in ` (the first half)`.
    fn half_in_words(&self) -> String {
        let half = self.half.as_ref();
        half.map_or_else(String::new, |half| format!(" (the {half} half)"))
    }
}

impl Run {
    fn shape(&self, tail: Option<Tail>) -> String {
        let queries = tail.map_or(self.query.to_string(), |tail| tail.to_string());
        format!("{}w{}s{}n, {queries} queries", self.way, self.shot, self.new_classes)
    }
}
