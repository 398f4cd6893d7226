//! Single episodes to look at: maps of what methods found, and confusion matrices.

use std::collections::BTreeMap;

use genus_core::episode::Episode;
use genus_core::metrics::{Convention, Evaluation, accuracy, classes_of_clusters};
use genus_core::projection::Projection;
use genus_core::{Category, Discovery};

use crate::calibrations::Calibrations;
use crate::charts::Figure;
use crate::contender::{BenchMethod, Contender};
use crate::figures::{Confusion, MapGrid, MapPanel, MapRow};
use crate::report::{in_words, outliers_in_words};
use crate::trial::{EpisodeTrial, QueryMode};
use crate::{Bench, Dataset, LabError};
use genus::{Length, Progress};

/// The methods of the paper's figure.
const METHODS: [&str; 3] = ["ukc", "shc", "rankstat"];

impl Bench {
    /// Draws the first episodes as maps, the truth beside what every method found, and for every method a confusion matrix
    /// of the first one. `episodes` of the bench says how many maps there are.
    pub fn plot(
        &self,
        data: &Dataset,
        projection: Projection,
        progress: &dyn Progress,
    ) -> Result<Vec<Figure>, LabError> {
        let methods = match self.methods.is_empty() {
            true => BenchMethod::list(METHODS)?,
            false => self.methods.clone(),
        };
        let mut calibrations = Calibrations::new(data, self, progress);
        let contenders = methods
            .iter()
            .map(|method| Contender::prepare(method, data, self, &mut calibrations, progress))
            .collect::<Result<Vec<_>, _>>()?;
        let (pool, _) = data
            .pool()
            .clone()
            .with_at_least(self.pile.items(self.shape), self.short_classes)
            .map_err(|source| self.cannot_draw(data, source))?;
        progress.start("episodes", Length::Steps(self.episodes));
        let mut rows = Vec::new();
        let mut figures = Vec::new();
        for number in 0..self.episodes {
            let episode = pool
                .episode_of(self.shape, self.pile, self.seed, number)
                .map_err(|source| self.cannot_draw(data, source))?;
            let names: Vec<&String> = episode.classes.iter().map(|&class| &pool.classes()[class]).collect();
            let trial = EpisodeTrial::new(data, episode, QueryMode::Batch, self, number)?;
            let known = trial.task.known();
            let truth = (0..known)
                .chain(trial.episode.truth.iter().copied())
                .map(|class| category(class, known));
            let outliers = match trial.episode.outliers {
                0 => String::new(),
                some => format!(", {}", outliers_in_words(some)),
            };
            let mut panels = vec![MapPanel {
                categories: truth.collect(),
                caption: format!("{known} known, {} new classes{outliers}", names.len() - known),
            }];
            for contender in &contenders {
                let discovery = trial.discover(contender)?;
                let matched = MatchedGroups::new(&discovery, &trial.episode);
                panels.push(MapPanel {
                    categories: matched.points.iter().map(|&class| category(class, known)).collect(),
                    caption: format!("All {:.1} %", 100.0 * matched.all),
                });
                if number == 0 {
                    figures.push(self.confusion(data, contender.spec(), &names, &trial, &matched));
                }
            }
            rows.push(MapRow {
                name: format!("Episode {}", number + 1),
                points: projection.points(trial.task.points(), self.seed),
                known,
                panels,
            });
            progress.step();
        }
        let columns = std::iter::once("truth".to_owned()).chain(methods.iter().map(ToString::to_string));
        let map = MapGrid {
            title: format!("What was found: {}", data.name()),
            subtitle: format!(
                "{} with {}, {projection}, seed {}",
                self.shape,
                in_words(self.shape.query, self.pile),
                self.seed
            ),
            columns: columns.collect(),
            truth: true,
            rows,
        };
        figures.insert(
            0,
            Figure {
                name: "map".to_owned(),
                title: "Episodes in the plane".to_owned(),
                svg: map.svg(),
            },
        );
        Ok(figures)
    }

    fn confusion(
        &self,
        data: &Dataset,
        spec: &str,
        names: &[&String],
        trial: &EpisodeTrial,
        matched: &MatchedGroups,
    ) -> Figure {
        let known = trial.task.known();
        // Outliers have no row, so their numbers need no column.
        let column = |found: usize| match found < names.len() {
            true => found,
            false => found - trial.episode.outliers,
        };
        let found: Vec<usize> = matched.points.iter().map(|&found| column(found)).collect();
        let columns = found
            .iter()
            .map(|&column| column + 1)
            .max()
            .unwrap_or(0)
            .max(names.len());
        let mut counts = vec![vec![0; columns]; names.len()];
        let truth = &trial.episode.truth[..trial.episode.belonging()];
        for (&class, &found) in truth.iter().zip(&found[known..]) {
            counts[class][found] += 1;
        }
        let column_name = |column: usize| match names.get(column) {
            Some(name) if column < known => (*name).clone(),
            _ => format!("new {}", column + 1 - known),
        };
        let confusion = Confusion {
            title: format!("{spec}: {}", data.name()),
            subtitle: format!("Episode 1 of {}, seed {}", self.shape, self.seed),
            rows: names.iter().map(|&name| name.clone()).collect(),
            columns: (0..columns).map(column_name).collect(),
            counts,
            known_rows: known,
            known_columns: known,
        };
        let file: String = spec
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        Figure {
            name: format!("confusion-{file}"),
            title: format!("Where {spec} put the first episode"),
            svg: confusion.svg(),
        }
    }
}

fn category(class: usize, known: usize) -> Category {
    if class < known {
        Category::Known(class)
    } else {
        Category::Novel(class - known)
    }
}

/// What a method found, in the numbers of the true classes as far as they are matched.
struct MatchedGroups {
    /// The class of every prototype and query; groups that are no class have the numbers after the last and the outliers'.
    points: Vec<usize>,
    all: f64,
}

impl MatchedGroups {
    fn new(discovery: &Discovery, episode: &Episode) -> Self {
        let judged = Evaluation {
            known: discovery.prototype_clusters(),
            clusters: &discovery.query_clusters()[..episode.belonging()],
            truth: &episode.truth[..episode.belonging()],
        };
        let mut classes: BTreeMap<usize, usize> = classes_of_clusters(&judged).into_iter().collect();
        let mut next = episode.classes.len() + episode.outliers;
        let queries = discovery.query_clusters().iter().map(|&cluster| {
            *classes.entry(cluster).or_insert_with(|| {
                next += 1;
                next - 1
            })
        });
        Self {
            points: (0..discovery.known()).chain(queries).collect(),
            all: accuracy(&judged, Convention::Paper).all,
        }
    }
}
