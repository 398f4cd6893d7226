//! `genus bench`: the paper's experiments.

use std::io::Write;
use std::time::Instant;

use genus_core::episode::{Shape, ShortClasses};
use genus_data::AtomicFile;
use genus_lab::{Bench, Dataset, Experiment, LargeSettings, Report};

use crate::args::{self, BenchCommand, BenchCommon, Global};
use crate::failure::Failure;
use crate::images::{Embedder, Input};
use crate::output;
use crate::progress::Bar;

/// Numbers of queries that are tried when none are named.
const QUERIES: [usize; 7] = [1, 5, 10, 15, 20, 25, 30];

pub(crate) fn run(bench: &args::Bench, global: &Global) -> Result<(), Failure> {
    let common = bench.experiment.common();
    let mut embedder = Embedder::new(&common.image_options, global);
    let (named, input) = match (&common.features, &common.images) {
        (Some(features), _) => (features, Input::file(features)),
        (None, Some(images)) => (images, embedder.input(images, true)?),
        (None, None) => {
            return Err(Failure::Usage(
                "name a feature file with --features, or images with --images".into(),
            ));
        }
    };
    // A report names what the user named, not the file that the images became.
    let data = Dataset::read(input.path(), common.split.as_deref())?.called(named.display().to_string());
    let (query, episodes) = match &bench.experiment {
        BenchCommand::Large { tasks, .. } => (Shape::default().query, *tasks),
        BenchCommand::Queries { episodes, .. } => (Shape::default().query, episodes.episodes),
        BenchCommand::Main(bench)
        | BenchCommand::Realtime(bench)
        | BenchCommand::Tasks(bench)
        | BenchCommand::Alpha { bench, .. }
        | BenchCommand::Threshold { bench, .. } => (bench.query, bench.episodes.episodes),
    };
    let settings = Bench {
        shape: Shape {
            way: common.classes.way,
            shot: common.classes.shot,
            new: common.classes.new,
            query,
        },
        episodes: episodes.get(),
        seed: global.seed,
        methods: common.methods.clone(),
        prototypes: common.prototypes.kind,
        short_classes: common.classes.short_classes,
    };
    let experiment = experiment(&bench.experiment, &data);
    // Opened before any work is done, so that a wrong path costs no time.
    let json = common.json.as_ref().map(AtomicFile::create).transpose()?;
    let start = Instant::now();
    let bar = Bar::new(global);
    let report = settings.run(&data, &experiment, &bar)?;
    drop(bar);
    if let Some(mut file) = json {
        let written = file
            .write_all(report.json().as_bytes())
            .and_then(|()| file.write_all(b"\n"));
        written.map_err(|e| Failure::failed(format!("cannot write {}: {e}", file.path().display())))?;
        file.commit()?;
    }
    output::print(&report.markdown())?;
    if !global.quiet {
        print_times(&report, start);
    }
    Ok(())
}

fn experiment(command: &BenchCommand, data: &Dataset) -> Experiment {
    match command {
        BenchCommand::Main(_) => Experiment::Main,
        BenchCommand::Realtime(_) => Experiment::RealTime,
        BenchCommand::Tasks(_) => Experiment::Tasks,
        BenchCommand::Alpha { alpha, .. } => Experiment::Alpha(alpha.clone()),
        BenchCommand::Threshold { threshold, .. } => Experiment::Threshold(threshold.clone()),
        BenchCommand::Large {
            subset,
            second_step,
            authors,
            ..
        } => Experiment::Large(LargeSettings {
            subset: subset.get(),
            refine: second_step.refine,
            centre_norm: second_step.centre_norm,
            authors: *authors,
        }),
        BenchCommand::Queries { common, query, .. } if query.is_empty() => {
            let most = match common.classes.short_classes {
                ShortClasses::Error => data.pool().smallest_class().saturating_sub(common.classes.shot),
                ShortClasses::Skip => usize::MAX,
            };
            // With nothing within reach the smallest number says which class is too small.
            let within: Vec<usize> = QUERIES.into_iter().filter(|&query| query <= most.max(1)).collect();
            Experiment::Queries(within)
        }
        BenchCommand::Queries { query, .. } => Experiment::Queries(query.iter().map(|q| q.get()).collect()),
    }
}

/// Times differ from run to run, so they stay out of the results.
fn print_times(report: &Report, start: Instant) {
    anstream::eprintln!(
        "\n{:.1} s in all. Time of an episode on one thread:",
        start.elapsed().as_secs_f64()
    );
    for run in &report.runs {
        let each = run.time.as_secs_f64() / run.episodes.len().max(1) as f64;
        anstream::eprintln!("  {:<24} {:8.3} ms", run.title(), 1e3 * each);
    }
    anstream::eprintln!("(The first method that needs the products of all points also pays for them.)");
}

impl BenchCommand {
    fn common(&self) -> &BenchCommon {
        match self {
            BenchCommand::Large { common, .. } | BenchCommand::Queries { common, .. } => common,
            BenchCommand::Main(bench)
            | BenchCommand::Realtime(bench)
            | BenchCommand::Tasks(bench)
            | BenchCommand::Alpha { bench, .. }
            | BenchCommand::Threshold { bench, .. } => &bench.common,
        }
    }
}
