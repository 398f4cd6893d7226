//! The charts that go with a report.

use genus_core::episode::Pile;

use crate::figures::{Curve, CurveChart, CurvePoint};
use crate::report::{Interval, Report, Run, TradeOff, in_words, outliers_in_words};

/// A drawing and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// The drawing, as an SVG file.
    pub svg: String,
}

impl Report {
    /// The chart of an experiment that varies one setting: queries a class, α or t; in real time, what every method could
    /// trade. Others have none.
    pub fn chart(&self) -> Option<Figure> {
        if self.settings.experiment == "realtime" {
            return Some(self.trade_off());
        }
        let (parameter, title, axis) = match &*self.settings.experiment {
            "queries" => ("", "Accuracy and queries a class", "Queries a class"),
            "alpha" => ("alpha", "Accuracy and α", "α"),
            "threshold" => ("t", "Accuracy and t", "t: clusters of more items are kept"),
            _ => return None,
        };
        let position = |run: &Run| match parameter {
            "" => Some(run.query as f64),
            name => run.parameters.get(name)?.parse().ok(),
        };
        // One line a method, apart from what is varied.
        let mut lines: Vec<(String, Vec<&Run>)> = Vec::new();
        for run in &self.runs {
            let mut other = run.clone();
            other.parameters.remove(parameter);
            let name = other.title();
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.1.push(run),
                None => lines.push((name, vec![run])),
            }
        }
        let curve = |name: &str, runs: &[&Run], side: Side| Curve {
            name: name.to_owned(),
            points: runs
                .iter()
                .filter_map(|run| {
                    let Interval { mean, ci95 } = side.of(run);
                    Some(CurvePoint {
                        x: position(run)?,
                        mean: 100.0 * mean,
                        half: 100.0 * ci95,
                    })
                })
                .collect(),
            paper: runs
                .iter()
                .filter_map(|run| Some((position(run)?, side.in_paper(run)?)))
                .collect(),
            at: None,
        };
        let curves = match &lines[..] {
            // A single method has room for all three accuracies.
            [(_, runs)] => [("All", Side::All), ("Old", Side::Old), ("New", Side::New)]
                .map(|(name, side)| curve(name, runs, side))
                .to_vec(),
            lines => lines.iter().map(|(name, runs)| curve(name, runs, Side::All)).collect(),
        };
        let settings = &self.settings;
        let method = if lines.len() == 1 {
            format!("{}, ", lines[0].0)
        } else {
            String::new()
        };
        let pile = match settings.pile() {
            plain if plain == Pile::default() => String::new(),
            // Queries are on the axis.
            pile if parameter.is_empty() => format!(", {}", outliers_in_words(pile.outliers)),
            pile => format!(", {}", in_words(settings.query, pile)),
        };
        let chart = CurveChart {
            title: format!("{title}: {}", settings.features),
            subtitle: format!(
                "{method}{}-way {}-shot {}-new{pile}, {} episodes a point, band: 95 % interval",
                settings.way, settings.shot, settings.new, settings.episodes
            ),
            x: axis.to_owned(),
            y: if lines.len() == 1 { "Accuracy, %" } else { "All, %" }.to_owned(),
            curves,
        };
        Some(Figure {
            name: settings.experiment.clone(),
            title: title.to_owned(),
            svg: chart.svg(),
        })
    }
}

impl Report {
    /// Old against New while the threshold moves, and where every method stands.
    fn trade_off(&self) -> Figure {
        let mut curves: Vec<Curve> = Vec::new();
        for run in &self.runs {
            let Some(scores) = &run.known_or_new else { continue };
            let percent = |trade: &TradeOff| (100.0 * trade.old, 100.0 * trade.new);
            let points = scores.curve.iter().map(percent);
            let points: Vec<CurvePoint> = points.map(|(x, mean)| CurvePoint { x, mean, half: 0.0 }).collect();
            let drawn = curves.iter().any(|curve| curve.points == points);
            curves.push(Curve {
                name: run.title(),
                // Methods that look at the same scores have the same line.
                points: if drawn { Vec::new() } else { points },
                paper: run
                    .paper
                    .iter()
                    .filter_map(|cell| Some((cell.old, cell.new?)))
                    .collect(),
                at: Some(percent(&scores.at)),
            });
        }
        let settings = &self.settings;
        let title = "Known against new";
        let chart = CurveChart {
            title: format!("{title}: {}", settings.features),
            subtitle: format!(
                "{}-way {}-shot {}-new with {}, {} episodes. Lines: any other threshold",
                settings.way,
                settings.shot,
                settings.new,
                in_words(settings.query, settings.pile()),
                settings.episodes
            ),
            x: "Old, %".to_owned(),
            y: "New, %".to_owned(),
            curves,
        };
        Figure {
            name: settings.experiment.clone(),
            title: title.to_owned(),
            svg: chart.svg(),
        }
    }
}

/// One of the three accuracies.
#[derive(Clone, Copy)]
enum Side {
    All,
    Old,
    New,
}

impl Side {
    fn of(self, run: &Run) -> Interval {
        match self {
            Side::All => run.all,
            Side::Old => run.old,
            Side::New => run.new,
        }
    }

    fn in_paper(self, run: &Run) -> Option<f64> {
        let cell = run.paper.as_ref()?;
        match self {
            Side::All => Some(cell.all),
            Side::Old => Some(cell.old),
            Side::New => cell.new,
        }
    }
}
