//! `genus bench`: the paper's experiments.

mod command_line;
mod paper;

use std::io::Write;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Instant;

use genus::{CacheChoice, CalibrationFile};
use genus_core::episode::{Pile, Shape};
use genus_data::datasets::DatasetEntry;
use genus_files::AtomicFile;
use genus_lab::{
    Bench, BenchMethod, BenchReport, Dataset, Experiment, LargeSettings, PileSettings, PileVariable, StreamSettings,
    figures_page,
};

use crate::args::{
    self, BenchCommand, BenchCommon, BenchSource, EpisodeBench, GlobalArgs, HalfArgs, MethodChoice, PilesBench,
    Results, StreamBench, TrialArgs,
};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::print;

pub(crate) fn run(bench: &args::BenchArgs, global: &GlobalArgs) -> Result<(), Failure> {
    match &bench.experiment {
        BenchCommand::Data { data_root, data } => paper::data(&data_root.path(), data),
        BenchCommand::Paper(arguments) => paper::run(arguments, global),
        BenchCommand::Transfer {
            data,
            data_root,
            images,
            trained,
            trial,
            results,
            image_options,
            episodes,
            query,
        } => {
            let runs = paper::trainings(trained)?;
            let sets = data
                .iter()
                .map(|name| DatasetEntry::find(name)?.open(&data_root.path(), *images))
                .collect::<Result<Vec<_>, _>>()?;
            let settings = settings(trial, *query, episodes.episodes, global)?;
            let mut output = BenchOutput::open(results)?;
            let start = Instant::now();
            let bar = Bar::new(global);
            let parts = paper::transfer_parts(&runs, &sets, &image_options.options(), &bar)?;
            let reports = parts
                .iter()
                .filter_map(|(_, data, experiment)| {
                    let once = |settings: &Bench| Ok(settings.run(data, experiment, &bar)?);
                    over_seeds(&settings, results, once).transpose()
                })
                .collect::<Result<Vec<_>, _>>()?;
            drop(bar);
            output.write(BenchReport::combined(reports), start, global)
        }
        BenchCommand::Backbones { bench, encoders } => {
            let common = &bench.common;
            if common.source.features.is_some() {
                return Err(Failure::Usage(
                    "features are of one encoder; name images with --images or a data set with --data".into(),
                ));
            }
            let settings = settings(&common.trial, bench.query, bench.episodes.episodes, global)?;
            let mut output = BenchOutput::open(&common.results)?;
            let start = Instant::now();
            let mut reports = Vec::new();
            for encoder in encoders {
                let name = encoder.split('@').next().unwrap_or(encoder).to_owned();
                let experiment = Experiment::Backbones { encoder: name };
                let mut source = common.source.source(common.trial.choice.calibration.as_deref())?;
                source.embedding.images = source.embedding.images.with_encoder(encoder);
                let bar = Bar::new(global);
                let data = source.load(&settings.methods_of(&experiment), &bar)?;
                let once = |settings: &Bench| Ok(settings.run(&data, &experiment, &bar)?);
                reports.extend(over_seeds(&settings, &common.results, once)?);
            }
            output.write(BenchReport::combined(reports), start, global)
        }
        BenchCommand::Plot {
            source,
            trial,
            out,
            episodes,
            query,
            projection,
            page,
        } => {
            let settings = settings(trial, *query, *episodes, global)?;
            let page = page.report.as_ref().map(AtomicFile::create).transpose()?;
            let bar = Bar::new(global);
            // The usual methods of a map are not trained.
            let source = source.source(trial.choice.calibration.as_deref())?;
            let data = source.load(&settings.methods, &bar)?;
            let figures = settings.plot(&data, *projection, &bar)?;
            drop(bar);
            std::fs::create_dir_all(out)
                .map_err(|e| Failure::failed(format!("cannot make the folder {}: {e}", out.display())))?;
            for figure in &figures {
                let path = out.join(format!("{}.svg", figure.name));
                write(Some(AtomicFile::create(&path)?), &figure.svg)?;
                print(&format!("{}\n", path.display()))?;
            }
            let title = format!("plot: {}", data.name());
            let lead = "Single episodes to look at: on the maps the truth stands beside what every method found, and the \
                        matrices say what became of the classes of the first one.";
            write(page, &figures_page(&title, lead, &command_line::this(), &figures))
        }
        BenchCommand::Main(bench) => DatasetRun::of(bench).run(Experiment::Main, global),
        BenchCommand::Ablation(bench) => DatasetRun::of(bench).run(Experiment::Ablation, global),
        BenchCommand::Realtime(bench) => DatasetRun::of(bench).run(Experiment::RealTime, global),
        BenchCommand::Piles(bench) => piles(bench, global),
        BenchCommand::Stream(bench) => stream(bench, global),
        BenchCommand::Tasks(bench) => DatasetRun::of(bench).run(Experiment::Tasks, global),
        BenchCommand::Alpha { bench, alpha } => DatasetRun::of(bench).run(Experiment::Alpha(alpha.clone()), global),
        BenchCommand::Threshold { bench, threshold } => {
            DatasetRun::of(bench).run(Experiment::Threshold(threshold.clone()), global)
        }
        BenchCommand::Large {
            common,
            subset,
            tasks,
            second_step,
            authors,
        } => {
            let single = DatasetRun {
                common,
                query: Shape::default().query,
                episodes: *tasks,
            };
            let large = LargeSettings {
                subset: subset.get(),
                refine: second_step.refine,
                centre_norm: second_step.centre_norm,
                authors: *authors,
            };
            single.run(Experiment::Large(large), global)
        }
        BenchCommand::Queries {
            common,
            query,
            episodes,
        } => {
            let single = DatasetRun {
                common,
                query: Shape::default().query,
                episodes: episodes.episodes,
            };
            single.run(Experiment::Queries(query.iter().map(|q| q.get()).collect()), global)
        }
    }
}

/// An experiment on one data set.
struct DatasetRun<'a> {
    common: &'a BenchCommon,
    query: usize,
    episodes: NonZeroU64,
}

impl<'a> DatasetRun<'a> {
    fn of(bench: &'a EpisodeBench) -> Self {
        Self {
            common: &bench.common,
            query: bench.query,
            episodes: bench.episodes.episodes,
        }
    }

    fn run(&self, experiment: Experiment, global: &GlobalArgs) -> Result<(), Failure> {
        let trial = &self.common.trial;
        let settings = settings(trial, self.query, self.episodes, global)?;
        settings.fits(&experiment)?;
        let results = &self.common.results;
        // Opened before any work is done, so that a wrong path costs no time.
        let mut output = BenchOutput::open(results)?;
        let source = self.common.source.source(trial.choice.calibration.as_deref())?;
        let data = source.load(&settings.methods_of(&experiment), &Bar::new(global))?;
        let experiment = match experiment {
            // None named: as many as the data has.
            Experiment::Queries(numbers) if numbers.is_empty() => Experiment::queries(&data, &settings),
            other => other,
        };
        let start = Instant::now();
        let bar = Bar::new(global);
        let report = over_seeds(&settings, results, |settings| {
            Ok(settings.run(&data, &experiment, &bar)?)
        })?;
        drop(bar);
        output.write(report, start, global)
    }
}

/// Runs an experiment with every seed that was asked for.
fn over_seeds(
    settings: &Bench,
    results: &Results,
    once: impl Fn(&Bench) -> Result<BenchReport, Failure>,
) -> Result<Option<BenchReport>, Failure> {
    let with = |number: u64| {
        once(&Bench {
            seed: settings.seed.wrapping_add(number),
            ..settings.clone()
        })
    };
    let reports = (0..results.seeds.get() as u64)
        .map(with)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(BenchReport::over_seeds(reports))
}

/// `genus bench piles`.
fn piles(bench: &PilesBench, global: &GlobalArgs) -> Result<(), Failure> {
    let numbers = |list: &[NonZeroUsize]| list.iter().map(|number| number.get()).collect();
    let piles = PileSettings {
        items: numbers(&bench.items),
        tail: bench.tail,
        frames: bench.bursts.get(),
        examples: numbers(&bench.examples),
        outliers: bench.outliers.get(),
        varied: match &bench.vary[..] {
            [] => PileVariable::ALL.to_vec(),
            some => some.to_vec(),
        },
    };
    let shape = Shape {
        way: bench.way,
        shot: bench.shot,
        new: new_classes(bench.classes, bench.way)?,
        query: piles.usual_items(),
    };
    let settings = bench_of(&bench.choice, shape, bench.draws, global)?;
    let pile = PilesRun {
        source: &bench.source,
        half: &bench.half,
        choice: &bench.choice,
        results: &bench.results,
    };
    pile.run(&settings, &Experiment::Piles(piles), global)
}

/// `genus bench stream`.
fn stream(bench: &StreamBench, global: &GlobalArgs) -> Result<(), Failure> {
    let shape = Shape {
        way: bench.way,
        shot: bench.shot,
        new: new_classes(bench.classes, bench.way)?,
        query: bench.items.get(),
    };
    let settings = Bench {
        pile: Pile {
            tail: bench.tail,
            outliers: 0,
        },
        ..bench_of(&bench.choice, shape, bench.draws, global)?
    };
    let streams = StreamSettings {
        orders: bench.orders.get(),
        looks: bench.looks.get(),
    };
    let pile = PilesRun {
        source: &bench.source,
        half: &bench.half,
        choice: &bench.choice,
        results: &bench.results,
    };
    pile.run(&settings, &Experiment::Stream(streams), global)
}

/// An experiment on the piles of one data set, or of a half of it.
struct PilesRun<'a> {
    source: &'a BenchSource,
    half: &'a HalfArgs,
    choice: &'a MethodChoice,
    results: &'a Results,
}

impl PilesRun<'_> {
    fn run(&self, settings: &Bench, experiment: &Experiment, global: &GlobalArgs) -> Result<(), Failure> {
        settings.fits(experiment)?;
        let mut output = BenchOutput::open(self.results)?;
        let source = self.source.source(self.choice.calibration.as_deref())?;
        let data = source.load(&settings.methods_of(experiment), &Bar::new(global))?;
        let data = half_of(data, self.half);
        let start = Instant::now();
        let bar = Bar::new(global);
        let report = over_seeds(settings, self.results, |settings| {
            Ok(settings.run(&data, experiment, &bar)?)
        })?;
        drop(bar);
        output.write(report, start, global)
    }
}

/// How many of the classes of a pile are new.
fn new_classes(classes: NonZeroUsize, way: usize) -> Result<usize, Failure> {
    classes.get().checked_sub(way).ok_or_else(|| {
        Failure::Usage(format!(
            "{way} of the classes are to be known (--way), and a pile has {classes} (--classes)"
        ))
    })
}

/// The half of the classes that was asked for, if one was.
fn half_of(data: Dataset, options: &HalfArgs) -> Dataset {
    match options.half {
        Some(half) => data.half(half, options.with_base),
        None => data,
    }
}

fn settings(trial: &TrialArgs, query: usize, episodes: NonZeroU64, global: &GlobalArgs) -> Result<Bench, Failure> {
    let shape = Shape {
        way: trial.classes.way,
        shot: trial.classes.shot,
        new: trial.classes.new,
        query,
    };
    Ok(Bench {
        pile: Pile {
            tail: trial.tail,
            outliers: trial.outliers,
        },
        short_classes: trial.classes.short_classes,
        ..bench_of(&trial.choice, shape, episodes, global)?
    })
}

fn bench_of(choice: &MethodChoice, shape: Shape, episodes: NonZeroU64, global: &GlobalArgs) -> Result<Bench, Failure> {
    Ok(Bench {
        shape,
        episodes: episodes.get(),
        seed: global.seed,
        methods: BenchMethod::list(choice.methods.iter().map(String::as_str))?,
        prototypes: choice.prototypes.kind,
        heads: CacheChoice::User.folder().ok().flatten().map(|root| root.join("heads")),
        calibration: match &choice.calibration {
            None => None,
            Some(path) => Some(CalibrationFile::read(path)?.calibration),
        },
        ..Bench::default()
    })
}

/// Where a report goes besides the standard output.
struct BenchOutput {
    json: Option<AtomicFile>,
    csv: Option<AtomicFile>,
    latex: Option<AtomicFile>,
    svg: Option<AtomicFile>,
    page: Option<AtomicFile>,
}

impl BenchOutput {
    fn open(results: &Results) -> Result<Self, Failure> {
        let open = |path: &Option<PathBuf>| path.as_ref().map(AtomicFile::create).transpose();
        Ok(Self {
            json: open(&results.json)?,
            csv: open(&results.csv)?,
            latex: open(&results.latex)?,
            svg: open(&results.svg)?,
            page: open(&results.page.report)?,
        })
    }

    fn write(&mut self, report: Option<BenchReport>, start: Instant, global: &GlobalArgs) -> Result<(), Failure> {
        let Some(report) = report else { return Ok(()) };
        write(self.json.take(), &(report.json() + "\n"))?;
        write(self.csv.take(), &report.csv())?;
        write(self.latex.take(), &report.latex())?;
        write(self.svg.take(), &report.drawing().svg)?;
        write(self.page.take(), &report.page(&command_line::this()))?;
        print(&report.markdown())?;
        if !global.quiet {
            print_times(&report, start);
        }
        Ok(())
    }
}

/// Writes a text into a file that was opened for it, if one was.
fn write(file: Option<AtomicFile>, text: &str) -> Result<(), Failure> {
    let Some(mut file) = file else { return Ok(()) };
    file.write_all(text.as_bytes())
        .map_err(|e| Failure::failed(format!("cannot write {}: {e}", file.path().display())))?;
    Ok(file.commit()?)
}

/// Times differ from run to run, so they stay out of the results.
fn print_times(report: &BenchReport, start: Instant) {
    say!(
        "\n{:.1} s in all. Time of an episode on one thread:",
        start.elapsed().as_secs_f64()
    );
    for run in &report.runs {
        let each = run.time.as_secs_f64() / run.episodes.len().max(1) as f64;
        let pile = run.pile.as_ref().map(|pile| format!("{}: ", pile.name));
        let seen = run.stream.map(|stream| format!("{} items: ", stream.seen));
        let name = pile.or(seen).unwrap_or_default() + &run.title();
        say!("  {name:<24} {:8.3} ms", 1e3 * each);
    }
    say!("(The first method that needs the products of all points also pays for them.)");
}
