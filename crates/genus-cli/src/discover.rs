//! `genus discover`: a pile sorted into known classes and new categories.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use genus::{CalibrationFile, DiscoverOptions, Inputs, MethodSpec, Page, Source};
use genus_core::Source as LearntFrom;

use crate::args::Arguments;
use crate::args::shared::{ImageArgs, NextStepsArgs, OutputArgs, PrototypeArgs, SecondStepArgs, TableArgs, ranged};
use crate::failure::Failure;
use crate::output::{self, OutputTarget};
use crate::progress::Bar;
use crate::say::Terminal;
use crate::{record, summary};

/// Sort a pile into known classes and new categories
///
/// The labelled examples (--support) and the pile (--query) are separate inputs, or one table in which the rows without a label
/// are the pile. An input is a folder of images (for examples with one folder per class), a manifest of images (a table with a
/// column path, or a .txt file with one path per line), or a feature file (.npy, .npz, .safetensors, .csv, .tsv, .jsonl,
/// .parquet, .feather).
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
genus discover [OPTIONS] <TABLE>
       genus discover [OPTIONS] [--support <FILE|DIR>] --query <FILE|DIR>",
    after_help = "\
Examples:
  genus discover --support labelled/ --query photos/ --out result
  genus discover --support labelled/ --query photos/ --encoder dinov2-small
  genus discover --support labelled.npz --query pile.npy
  genus discover --query photos/ --out result
  genus discover table.csv --out result --format parquet
  genus discover table.tsv --label species --features 'pca*' --unlabelled unknown --unlabelled NA
  genus discover table.jsonl --out result --text caption --truth species
  genus discover table.parquet --calibration base.safetensors
  genus discover table.parquet --method ukc:alpha=1.3 --seed 7
  genus discover --support s.csv --query millions.parquet --subset 5000 --out result
  genus discover --support labelled/ --query photos/ --sort-into sorted --link hard
  genus discover --support labelled/ --query photos/ --out result --export label-studio

With --out, open DIR/report.html in a browser to see the result.

Output (CSV on standard output, or DIR/assignments.* with --out):
  id,category,kind,score,margin,probability,scene
  kind         known, new, or unsure if the category is only the best guess
  score        cosine similarity to the category's centre
  margin       lead of the score over the second-best category
  probability  estimated probability that the item belongs to the category, if there is one
  scene        a number shared by copies, crops and frames of a burst; empty if not determined"
)]
pub(crate) struct DiscoverArgs {
    /// A table with labelled and unlabelled rows
    #[arg(value_name = "TABLE", conflicts_with_all = ["support", "query"], required_unless_present_any = ["support", "query"])]
    table: Option<PathBuf>,
    /// The labelled examples: a feature file or images. One class is enough; without examples, everything is new
    #[arg(long, short, value_name = "FILE|DIR", requires = "query")]
    support: Option<PathBuf>,
    /// The pile to sort: a feature file or images
    #[arg(long, value_name = "FILE|DIR")]
    query: Option<PathBuf>,
    /// The method and its parameters, such as shc:t=3; see `genus methods`
    #[arg(long, short, default_value = "calibrated", value_name = "METHOD")]
    method: String,
    /// A calibration made by `genus calibrate`; by default that of the encoder, or an estimate from the examples
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    #[command(flatten)]
    prototypes: PrototypeArgs,
    /// Cluster a random subset of N queries and assign the rest to the nearest category. The choice depends on the content of
    /// the queries, not their order. By default 5,000 if there are more than 20,000 queries
    #[arg(long, value_parser = ranged::<NonZeroUsize>("subset"), value_name = "N")]
    subset: Option<NonZeroUsize>,
    #[command(flatten)]
    second_step: SecondStepArgs,
    #[command(flatten)]
    tables: TableArgs,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    report: ReportColumnArgs,
    #[command(flatten)]
    next: NextStepsArgs,
}
const REPORT: &str = "Report (DIR/report.html, with --out)";

#[derive(Debug, clap::Args)]
struct ReportColumnArgs {
    /// Do not write a report
    #[arg(long, help_heading = REPORT, requires = "out", conflicts_with = "text")]
    no_report: bool,
    /// The true labels: a table with the columns id and truth (or label), or a column of the pile; for a folder of images with
    /// one folder per class, label. The accuracy is then printed, and shown in the report
    #[arg(long, value_name = "FILE|COLUMN", help_heading = REPORT)]
    truth: Option<String>,
    /// The texts of the items: a table with the columns id and text, or a column of the pile
    #[arg(long, value_name = "FILE|COLUMN", help_heading = REPORT, requires = "out")]
    text: Option<String>,
}

pub(crate) struct DiscoverCommand {
    inputs: Inputs,
    options: DiscoverOptions,
    target: OutputTarget,
    /// Whether a report is wanted, and what it shows; the truth is for the terminal, too.
    report: bool,
    columns: ReportColumns,
}

/// What a report shows beside what was found.
struct ReportColumns {
    truth: Option<String>,
    text: Option<String>,
}

impl Arguments for DiscoverArgs {
    type Options = DiscoverCommand;

    fn options(self, seed: u64) -> Result<DiscoverCommand, Failure> {
        let inputs = match (self.table, self.support, self.query) {
            (Some(table), ..) => Inputs::Mixed(table.into()),
            (None, support, Some(query)) => Inputs::Separate {
                support: support.map(Source::from),
                query: query.into(),
            },
            _ => {
                return Err(Failure::Usage(
                    "name one TABLE, or --query and, where there are examples, --support".into(),
                ));
            }
        };
        let method: MethodSpec = self.method.parse()?;
        let calibration = match &self.calibration {
            // What has no use for one says so, whatever is in the file.
            Some(_) if !method.takes_calibration() => {
                return Err(genus::Error::NoUseForCalibration {
                    method: method.to_string(),
                }
                .into());
            }
            Some(path) => Some(CalibrationFile::read(path)?),
            None => None,
        };
        let options = DiscoverOptions {
            method,
            seed,
            prototypes: self.prototypes.kind,
            calibration,
            subset: self.subset,
            refine: self.second_step.refine,
            centre_norm: self.second_step.centre_norm,
            images: self.images.options(),
            tables: self.tables.options(),
        };
        let report = !self.report.no_report;
        let columns = ReportColumns {
            truth: self.report.truth,
            text: self.report.text,
        };
        Ok(DiscoverCommand {
            inputs,
            options,
            target: self.output.target(self.next),
            report,
            columns,
        })
    }

    fn run(discover: DiscoverCommand, terminal: Terminal) -> Result<(), Failure> {
        let start = Instant::now();
        let progress = Bar::new(terminal);
        let DiscoverCommand {
            inputs,
            options,
            target,
            report,
            columns: ReportColumns { truth, text },
        } = discover;
        let mut output = target.open(inputs.pile().path())?;
        let is_written = report && output.folder().is_some();
        let page = match is_written || truth.is_some() {
            true => Some(Page::new(&inputs, &options.tables, truth.as_deref(), text.as_deref())?),
            false => None,
        };
        let outcome = genus::discover_into(inputs, &options, &mut output, &progress)?;
        // What is wrong with the truth is said before anything appears.
        let judged = match &page {
            Some(page) if !is_written => outcome.judge(page)?,
            _ => None,
        };
        let saved = outcome.save(output, page.as_ref().filter(|_| is_written), &progress)?;
        drop(progress);
        record::items(&outcome.taxonomy, &outcome.counts);
        record::time("reading", outcome.timings.reading);
        record::time("sorting", outcome.timings.total - outcome.timings.reading);
        if !terminal.quiet {
            let how = outcome.how();
            say_as_is!(
                "{}",
                summary::text(&outcome.taxonomy, &outcome.counts, &how, start.elapsed())
            );
            if outcome.examples.is_empty() {
                say!("There are no labelled examples, so everything is new.");
            }
            let source = outcome.taxonomy.calibration().map(|calibration| calibration.source());
            if source == Some(LearntFrom::Prior) {
                say!("More examples, or base classes (genus calibrate), would make the result more certain.");
            }
            if let Some(truth) = judged.as_ref().or(saved.truth.as_ref()) {
                say!("{}", summary::truth(truth));
            }
        }
        output::say_saved(&saved, terminal);
        Ok(())
    }
}
