//! The charts that go with a report.

use genus_core::episode::Pile;

use crate::experiment::ExperimentKind;
use crate::figures::{AxisStop, Curve, CurveChart, CurvePoint};
use crate::piles::PileVariable;
use crate::report::{
    BenchReport, Categories, Interval, Run, TradeOff, counted, examples_in_words, in_words, outliers_in_words,
};

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

impl BenchReport {
    /// The chart of an experiment that varies one setting: queries per class, α or t; what piles are like; how far a
    /// stream has come; in real time, what every method could trade. Others have none.
    pub fn chart(&self) -> Option<Figure> {
        match self.settings.experiment {
            ExperimentKind::RealTime => return Some(self.trade_off()),
            ExperimentKind::Piles => return Some(self.piles()),
            ExperimentKind::Stream => return Some(self.stream()),
            _ => {}
        }
        let (parameter, title, axis) = match self.settings.experiment {
            ExperimentKind::Queries => ("", "Accuracy and queries a class", "Queries a class"),
            ExperimentKind::Alpha => ("alpha", "Accuracy and α", "α"),
            ExperimentKind::Threshold => ("t", "Accuracy and t", "t: clusters of more items are kept"),
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
            ..CurveChart::default()
        };
        Some(Figure {
            name: settings.experiment.to_string(),
            title: title.to_owned(),
            svg: chart.svg(),
        })
    }

    /// The chart or, of an experiment that has none, the accuracies of the methods.
    pub fn drawing(&self) -> Figure {
        self.chart().unwrap_or_else(|| self.methods())
    }
}

impl BenchReport {
    /// The accuracies of the methods side by side: all three of one setting, or All of several.
    fn methods(&self) -> Figure {
        let settings = &self.settings;
        let group = |run: &Run| {
            let shape = format!("{} known, {} new", run.way, run.new_classes);
            let several = self
                .runs
                .iter()
                .any(|other| (other.way, other.new_classes) != (run.way, run.new_classes));
            let parts = [Some(run.subject.clone()), run.data.clone(), several.then_some(shape)];
            let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            parts.join(", ")
        };
        let (mut titles, mut groups) = (Vec::new(), Vec::new());
        for run in &self.runs {
            titles.extend(Some(run.title()).filter(|title| !titles.contains(title)));
            groups.extend(Some(group(run)).filter(|name| !groups.contains(name)));
        }
        let curve = |name: &str, of: &str, side: Side| {
            let runs = self.runs.iter().filter(|run| group(run) == of);
            let place = |run: &Run| {
                titles
                    .iter()
                    .position(|title| *title == run.title())
                    .unwrap_or_default() as f64
            };
            Curve {
                name: name.to_owned(),
                points: runs
                    .clone()
                    .map(|run| {
                        let Interval { mean, ci95 } = side.of(run);
                        CurvePoint {
                            x: place(run),
                            mean: 100.0 * mean,
                            half: 100.0 * ci95,
                        }
                    })
                    .collect(),
                paper: runs.filter_map(|run| Some((place(run), side.in_paper(run)?))).collect(),
                at: None,
            }
        };
        let curves = match &groups[..] {
            [one] => [("All", Side::All), ("Old", Side::Old), ("New", Side::New)]
                .map(|(name, side)| curve(name, one, side))
                .to_vec(),
            groups => groups.iter().map(|name| curve(name, name, Side::All)).collect(),
        };
        let title = "Accuracy of the methods";
        let chart = CurveChart {
            title: format!("{title}: {}", settings.features),
            subtitle: format!(
                "{}-way {}-shot {}-new, {} a method, band: 95 % interval",
                settings.way,
                settings.shot,
                settings.new,
                counted(settings.episodes, "episode")
            ),
            x: "Method".to_owned(),
            y: if groups.len() == 1 { "Accuracy, %" } else { "All, %" }.to_owned(),
            curves,
            stops: titles
                .iter()
                .map(|name| AxisStop {
                    name: name.clone(),
                    joined: false,
                })
                .collect(),
            ..CurveChart::default()
        };
        Figure {
            name: settings.experiment.to_string(),
            title: title.to_owned(),
            svg: chart.svg(),
        }
    }

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
            ..CurveChart::default()
        };
        Figure {
            name: settings.experiment.to_string(),
            title: title.to_owned(),
            svg: chart.svg(),
        }
    }
}

impl BenchReport {
    /// All and K of every method, pile by pile.
    fn piles(&self) -> Figure {
        let mut names: Vec<&str> = Vec::new();
        let mut stops: Vec<AxisStop> = Vec::new();
        for run in &self.runs {
            let Some(pile) = run.pile.as_ref().filter(|pile| !names.contains(&&*pile.name)) else {
                continue;
            };
            let varied = pile.varied();
            names.push(&pile.name);
            stops.push(AxisStop {
                name: run.place(varied),
                // Only numbers of items go on from each other.
                joined: varied == Some(PileVariable::Items) && !stops.is_empty(),
            });
        }
        let place = |run: &Run| {
            let name = &*run.pile.as_ref()?.name;
            Some(names.iter().position(|other| *other == name)? as f64)
        };
        let settings = &self.settings;
        let classes = settings.way + settings.new;
        let truth = (0..stops.len()).map(|at| (at as f64, classes as f64)).collect();
        let title = "Accuracy, categories and what is in a pile";
        let charts = [
            CurveChart {
                title: format!("{title}: {}", settings.features),
                subtitle: format!(
                    "{classes} classes, {} of them known from {} unless said otherwise, {} a pile, band: 95 % interval",
                    settings.way,
                    examples_in_words(settings.shot),
                    counted(settings.episodes, "draw")
                ),
                y: "All, %".to_owned(),
                curves: self.curves(&place, &|run| Some(percent(run.all))),
                stops: stops.clone(),
                ..CurveChart::default()
            },
            CurveChart {
                x: "Items a class (× frames of a burst, + outliers in all, other numbers of examples)".to_owned(),
                y: "Categories found".to_owned(),
                curves: self.curves_of_k(&place, truth),
                stops,
                logarithmic: true,
                ..CurveChart::default()
            },
        ];
        Figure {
            name: settings.experiment.to_string(),
            title: title.to_owned(),
            svg: CurveChart::stacked(&charts),
        }
    }

    /// All, K and what waits against the number of items that have come.
    fn stream(&self) -> Figure {
        let place = |run: &Run| Some(run.stream?.seen as f64);
        let mut truth: Vec<(f64, f64)> = Vec::new();
        for stream in self.runs.iter().filter_map(|run| run.stream) {
            let at = (stream.seen as f64, stream.classes);
            if truth.last() != Some(&at) {
                truth.push(at);
            }
        }
        let settings = &self.settings;
        let title = "Accuracy, categories and how much of a pile has come";
        let chart = |y: &str, curves| CurveChart {
            y: y.to_owned(),
            curves,
            ..CurveChart::default()
        };
        let mut waiting = self.curves(&place, &|run| Some(percent(run.stream?.waiting?)));
        waiting.retain(|curve| !curve.points.is_empty());
        let charts = [
            CurveChart {
                title: format!("{title}: {}", settings.features),
                subtitle: format!(
                    "{} classes with {}, {} of them known from {}, {} of {}, band: 95 % interval",
                    settings.way + settings.new,
                    in_words(settings.query, settings.pile()),
                    settings.way,
                    examples_in_words(settings.shot),
                    counted(settings.orders.unwrap_or_default(), "order"),
                    counted(settings.episodes, "pile")
                ),
                ..chart("All, %", self.curves(&place, &|run| Some(percent(run.all))))
            },
            CurveChart {
                logarithmic: true,
                ..chart("Categories found", self.curves_of_k(&place, truth))
            },
            CurveChart {
                x: "Items seen".to_owned(),
                ..chart("Waiting, %", waiting)
            },
        ];
        Figure {
            name: settings.experiment.to_string(),
            title: title.to_owned(),
            svg: CurveChart::stacked(&charts),
        }
    }

    /// A line a method.
    fn curves(&self, place: &dyn Fn(&Run) -> Option<f64>, value: &dyn Fn(&Run) -> Option<Interval>) -> Vec<Curve> {
        let mut curves: Vec<Curve> = Vec::new();
        for run in &self.runs {
            let name = run.title();
            let found = curves.iter().position(|curve| curve.name == name);
            let at = found.unwrap_or_else(|| {
                curves.push(Curve {
                    name,
                    ..Curve::default()
                });
                curves.len() - 1
            });
            if let (Some(x), Some(Interval { mean, ci95 })) = (place(run), value(run)) {
                curves[at].points.push(CurvePoint { x, mean, half: ci95 });
            }
        }
        curves
    }

    /// How many categories there were by every method, and how many there are.
    fn curves_of_k(&self, place: &dyn Fn(&Run) -> Option<f64>, truth: Vec<(f64, f64)>) -> Vec<Curve> {
        let mut curves = self.curves(place, &|run| {
            let Categories { mean, ci95, .. } = run.k?;
            Some(Interval { mean, ci95 })
        });
        let truth = truth.into_iter().map(|(x, mean)| CurvePoint { x, mean, half: 0.0 });
        curves.push(Curve {
            name: "truth".to_owned(),
            points: truth.collect(),
            ..Curve::default()
        });
        curves
    }
}

/// A share in %.
fn percent(Interval { mean, ci95 }: Interval) -> Interval {
    Interval {
        mean: 100.0 * mean,
        ci95: 100.0 * ci95,
    }
}

impl Run {
    /// The pile as it is called below an axis of items per class, where there is little room.
    fn place(&self, varied: Option<PileVariable>) -> String {
        let Some(pile) = &self.pile else { return String::new() };
        match (varied, pile.tail) {
            (_, Some(tail)) => format!("{}–{}", tail.smallest, tail.largest),
            (Some(PileVariable::Bursts), _) => format!("{} × {}", self.query, pile.frames),
            (Some(PileVariable::Examples), _) => format!("{}-shot", self.shot),
            (Some(PileVariable::Outliers), _) => format!("{} + {}", self.query, pile.outliers),
            _ => self.query.to_string(),
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
