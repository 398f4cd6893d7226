//! `genus bench`: the paper's experiments.

mod args;
mod command_line;
mod paper;

pub(crate) use args::BenchArgs;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use genus_core::episode::Half;
use genus_core::projection::Projection;
use genus_files::AtomicFile;
use genus_lab::{
    Bench, BenchReport, DataSource, Dataset, EpisodeSet, Experiment, Machine, figures_page, read_predictions,
};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::say::{Terminal, print};
use paper::{Paper, Transfer};

/// What can be asked of the bench.
pub(crate) enum BenchTask {
    Run(Box<BenchRun>),
    Backbones(Box<Backbones>),
    Transfer(Box<Transfer>),
    Plot(Box<EpisodePlot>),
    Score(Box<ScoreRun>),
    Data { root: PathBuf, names: Vec<String> },
    Paper(Box<Paper>),
}

impl From<BenchRun> for BenchTask {
    fn from(run: BenchRun) -> Self {
        BenchTask::Run(Box::new(run))
    }
}

impl BenchTask {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        match self {
            BenchTask::Run(run) => run.run(terminal),
            BenchTask::Backbones(backbones) => backbones.run(terminal),
            BenchTask::Transfer(transfer) => transfer.run(terminal),
            BenchTask::Plot(plot) => plot.run(terminal),
            BenchTask::Score(score) => score.run(terminal),
            BenchTask::Data { root, names } => paper::data(&root, &names),
            BenchTask::Paper(paper) => paper.run(terminal),
        }
    }
}

/// An experiment on one data set.
pub(crate) struct BenchRun {
    source: DataSource,
    half: Option<HalfOfClasses>,
    bench: Bench,
    experiment: Experiment,
    seeds: NonZeroUsize,
    files: ResultFiles,
    /// Where the episodes go.
    export: Option<PathBuf>,
}

/// A half of the classes, with the others as base classes or without them.
#[derive(Clone, Copy)]
struct HalfOfClasses {
    half: Half,
    with_base: bool,
}

impl BenchRun {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let BenchRun { bench, experiment, .. } = self;
        bench.fits(&experiment)?;
        // Opened before any work is done, so that a wrong path costs no time.
        let output = self.files.open()?;
        let export = self.export.map(AtomicFile::create).transpose()?;
        let bar = Bar::new(terminal);
        let data = self.source.load(&bench.methods_of(&experiment), &bar)?;
        let data = match self.half {
            Some(HalfOfClasses { half, with_base }) => data.half(half, with_base),
            None => data,
        };
        let experiment = match experiment {
            // None named: as many as the data has.
            Experiment::Queries(numbers) if numbers.is_empty() => Experiment::queries(&data, &bench),
            other => other,
        };
        // Before hours of work on them.
        if export.is_some() {
            write(export, &bench.episodes_of(&data, &experiment)?.to_text())?;
        }
        let start = Instant::now();
        let report = over_seeds(&bench, self.seeds, &data, &experiment, &bar)?;
        drop(bar);
        output.write(report, start, terminal)
    }
}

/// Predictions of another program, judged.
pub(crate) struct ScoreRun {
    episodes: PathBuf,
    predictions: PathBuf,
    name: String,
    files: ResultFiles,
}

impl ScoreRun {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let output = self.files.open()?;
        let start = Instant::now();
        let episodes = EpisodeSet::read(&self.episodes)?;
        let report = episodes.score(&self.name, &read_predictions(&self.predictions)?)?;
        output.write(Some(report), start, terminal)
    }
}

/// Runs an experiment with so many seeds.
fn over_seeds(
    bench: &Bench,
    seeds: NonZeroUsize,
    data: &Dataset,
    experiment: &Experiment,
    bar: &Bar,
) -> Result<Option<BenchReport>, Failure> {
    let with = |number: u64| {
        let bench = Bench {
            seed: bench.seed.wrapping_add(number),
            ..bench.clone()
        };
        bench.run(data, experiment, bar)
    };
    let reports = (0..seeds.get() as u64).map(with).collect::<Result<Vec<_>, _>>()?;
    Ok(BenchReport::over_seeds(reports))
}

/// Several encoders on the same images.
pub(crate) struct Backbones {
    run: BenchRun,
    encoders: Vec<String>,
}

impl Backbones {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let BenchRun {
            source, bench, seeds, ..
        } = self.run;
        let output = self.run.files.open()?;
        let start = Instant::now();
        let mut reports = Vec::new();
        for encoder in &self.encoders {
            let name = encoder.split('@').next().unwrap_or(encoder).to_owned();
            let experiment = Experiment::Backbones { encoder: name };
            let mut source = source.clone();
            source.embedding.images = source.embedding.images.with_encoder(encoder);
            let bar = Bar::new(terminal);
            let data = source.load(&bench.methods_of(&experiment), &bar)?;
            reports.extend(over_seeds(&bench, seeds, &data, &experiment, &bar)?);
        }
        output.write(BenchReport::combined(reports), start, terminal)
    }
}

/// Single episodes, drawn.
pub(crate) struct EpisodePlot {
    source: DataSource,
    bench: Bench,
    projection: Projection,
    out: PathBuf,
    page: Option<PathBuf>,
}

impl EpisodePlot {
    fn run(self, terminal: Terminal) -> Result<(), Failure> {
        let page = self.page.map(AtomicFile::create).transpose()?;
        let machine = Machine::this()?;
        let bar = Bar::new(terminal);
        // The usual methods of a map are not trained.
        let data = self.source.load(&self.bench.methods, &bar)?;
        let figures = self.bench.plot(&data, self.projection, &bar)?;
        drop(bar);
        let out = self.out;
        std::fs::create_dir_all(&out)
            .map_err(|e| Failure::failed(format!("cannot make the folder {}: {e}", out.display())))?;
        for figure in &figures {
            let path = out.join(format!("{}.svg", figure.name));
            write(Some(AtomicFile::create(&path)?), &figure.svg)?;
            print(&format!("{}\n", path.display()))?;
        }
        let title = format!("plot: {}", data.name());
        let lead = "Single episodes to look at: on the maps the truth stands beside what every method found, and the \
                    matrices say what became of the classes of the first one.";
        write(
            page,
            &figures_page(&title, lead, &command_line::this(), &figures, machine),
        )
    }
}

/// Where a report goes besides standard output.
struct ResultFiles<File = PathBuf> {
    json: Option<File>,
    csv: Option<File>,
    latex: Option<File>,
    svg: Option<File>,
    page: Option<File>,
}

impl ResultFiles {
    fn open(self) -> Result<ResultFiles<AtomicFile>, Failure> {
        let open = |path: Option<PathBuf>| path.map(AtomicFile::create).transpose();
        Ok(ResultFiles {
            json: open(self.json)?,
            csv: open(self.csv)?,
            latex: open(self.latex)?,
            svg: open(self.svg)?,
            page: open(self.page)?,
        })
    }
}

impl ResultFiles<AtomicFile> {
    fn write(self, report: Option<BenchReport>, start: Instant, terminal: Terminal) -> Result<(), Failure> {
        let Some(report) = report else { return Ok(()) };
        write(self.json, &(report.json() + "\n"))?;
        write(self.csv, &report.csv())?;
        write(self.latex, &report.latex())?;
        write(self.svg, &report.drawing().svg)?;
        write(self.page, &report.page(&command_line::this()))?;
        print(&report.markdown())?;
        // Who judges predictions does not know how long they took.
        let timed = report.runs.iter().any(|run| !run.time.is_zero());
        if timed && !terminal.quiet {
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
        "\n{:.1} s in total. Time per episode on one thread:",
        start.elapsed().as_secs_f64()
    );
    for run in &report.runs {
        let each = run.time.as_secs_f64() / run.episodes.len().max(1) as f64;
        let pile = run.pile.as_ref().map(|pile| format!("{}: ", pile.name));
        let seen = run.stream.map(|stream| format!("{} items: ", stream.seen));
        let name = pile.or(seen).unwrap_or_default() + &run.title();
        say!("  {name:<24} {:8.3} ms", 1e3 * each);
    }
    say!("(The first method that needs the Gram matrix includes the time to compute it.)");
}
